"""Launching a collected fusion: its kernel and arguments, and operands that are worth transposing first."""

from __future__ import annotations

from itertools import repeat
from math import prod
from typing import Any

from .. import layouts
from ..codegen import pointwise
from ..codegen.move import copies
from ..codegen.operand import Operand
from ..codegen.pointwise import IDENTITY, Program, foreseen
from ..codegen.region import STREAM, STREAM_ALIGN, past_cache
from ..dtypes import dtype
from ..runtime import Backend, Buffer, Counter
from ..symbols import remembered
from .expression import Leaf
from .fusion import Fusion, arranged

# In units of an addition (`Formula.cost`): ACCESS is the cost of an element beside its nodes, PACE the work that one
# CPU thread does in a microsecond, GRAIN the work that justifies a work-item.
ACCESS, PACE, GRAIN = 3, 25_000, 1 << 16
# Bytes of a row above which its partly written first and last cache lines matter little.
LONG = 1024
TURN = 1 << 16  # elements above which a transposed operand is first copied by tiles


def scalar_args(values: list[Any], types: list[dtype]) -> list:
    """Return kernel arguments for Python numbers, converted to their compute dtypes; a complex number becomes two."""
    out: list = []
    for value, dt in zip(values, types, strict=True):
        category = dt.category
        if category == 2:
            out.append(float(value.real if value.__class__ is complex else value))
        elif category == 3:
            value = complex(value)
            out += [value.real, value.imag]
        elif category == 1:
            fits = value.__class__ is Counter or (value.__class__ is int and 0 <= value < 128)
            out.append(value if fits else wrap_int(int(value), dt))
        else:
            out.append(1 if value else 0)
    return out


def wrap_int(value: int, dt: dtype) -> int:
    """Return an integer wrapped to a dtype by two's complement."""
    bits = dt.itemsize * 8
    value &= (1 << bits) - 1
    return value - (1 << bits) if dt.is_signed and value >> (bits - 1) else value


_kernels: dict[tuple, tuple] = {}  # (backend, program) -> what `entry_of` returns
_ONE = (1,)


def entry_of(backend: Backend, program: Program) -> tuple:
    """Return the launch record of a program (kernel, group, alone, grain, most); the kernel is built at first use.

    `group` is a GPU's work-group size, 0 on a CPU; `alone` the elements that one CPU thread does sooner than several;
    `grain` the elements worth a work-item (a work-group on a GPU); `most` the limit on their number.
    """
    key = (backend, program)
    entry = _kernels.get(key)
    if entry is None:
        info = backend.info
        lanes = pointwise.choose_lanes(program, info.lanes, complexes=True)
        gpu = info.kind != "cpu"
        tuned = backend.tuned
        for node in program.nodes:
            backend.require(node.compute)
            backend.require(node.result)
        if gpu:
            group, most = min(tuned.get("pointwise.group", 128), info.max_group), 64
        else:
            group, most = 0, tuned.get("pointwise.items", 4)
        name, text, types = pointwise.source(pointwise.as_bits(program), lanes, gpu, group)
        kernel = backend.kernel(name, text, types, info.build_options)
        cost = ACCESS + sum(node.op.formula.cost for node in program.nodes)
        alone = PACE * info.wake_us // cost
        grain = max(1024, tuned.get("pointwise.grain", GRAIN) // cost)
        if gpu:
            grain = group * pointwise.at_once(program)
        entry = _kernels[key] = (kernel, group, alone, grain, info.compute_units * most)
    return entry


def start(backend: Backend, entry: tuple, n: int, args: list, nbytes: int) -> None:
    """Launch a program over n elements; the caller holds the backend's lock.

    `args` are n, the chunk of elements per work-item, which this function sets, and the program's own arguments.
    """
    kernel, group, alone, grain, most = entry
    if group:
        groups = min((n + grain - 1) // grain, most)
        backend.launch_held(kernel, (groups * group,), (group,), args, nbytes)
        return
    if n <= alone:
        args[1] = n
        backend.launch_held(kernel, _ONE, _ONE, args, nbytes)
        return
    size, args[1] = _divided(n, grain, most)
    backend.launch_held(kernel, size, _ONE, args, nbytes)


@remembered(4096)
def _divided(n: int, grain: int, most: int) -> tuple[tuple[int], int]:
    """Return the global size of a launch over n elements on a CPU, and the elements of a work-item."""
    items = min(most, (n + grain - 1) // grain)
    chunk = -(-n // items)
    chunk = -(-chunk // 16) * 16
    return (-(-n // chunk),), chunk


def runs_across(strides: tuple[int, ...] | None, shape: tuple[int, ...]) -> bool:
    """Return whether a layout is read across memory: the innermost dim's stride is large while another dim's is 1, as
    in a transpose.
    """
    if strides is None:
        return False
    varied = [(n, st) for n, st in zip(shape, strides, strict=True) if n > 1]
    if not varied or varied[-1][1] < 16:
        return False
    return any(st == 1 and n >= 16 for n, st in varied) and all(st for _, st in varied)


def _operand(leaf: Leaf, shape: tuple[int, ...]) -> Operand:
    strides = layouts.contiguous_strides(shape) if leaf.strides is None else leaf.strides
    return Operand(leaf.buffer, leaf.dtype, shape, strides, leaf.offset)


def turned(backend: Backend, leaf: Leaf, shape: tuple[int, ...]) -> Leaf:
    """Return a dense copy of an operand that a large iteration would read across memory; any other operand unchanged.

    The copy is made by tiles, which takes less time than a kernel that uses one element of every cache line it reads.
    """
    if leaf.strides is None or prod(shape) < TURN or not runs_across(leaf.strides, shape):
        return leaf
    return Leaf(copies.dense(backend, _operand(leaf, shape)).buffer, leaf.dtype, None, 0)


def _is_copy(fusion: Fusion, outputs: list) -> bool:
    """Return whether a fusion only copies one operand, without conversion."""
    nodes = fusion.nodes
    if len(nodes) != 1 or len(outputs) != 1 or nodes[0].op is not IDENTITY:
        return False
    return len(fusion.leaves) == 1 and outputs[0][1] is fusion.leaves[0].dtype is nodes[0].compute


def _streams(
    backend: Backend, leaves: list[Leaf], outputs: list, n: int, sizes: tuple[int, ...]
) -> bool:
    """Return whether a kernel should use non-temporal stores: for large results, unless it reads their buffers or short
    rows share cache lines.
    """
    if not past_cache(backend, n * sum(dt.itemsize for _, dt, _, _, _ in outputs)):
        return False
    least = min([dt.itemsize for _, dt, _, _, _ in outputs])
    if sizes and sizes[-1] % 16 and sizes[-1] * least < LONG:
        return False
    read = {id(leaf.buffer) for leaf in leaves}
    for _, dt, buffer, _, offset in outputs:
        place = buffer.address + offset * dt.itemsize
        if place % STREAM_ALIGN or id(buffer) in read:
            return False
    return True


_DENSE = ("d", ())  # the class of an operand that needs no strides


def launch(
    backend: Backend,
    fusion: Fusion,
    outputs: list[tuple[tuple[str, int], dtype, Buffer, tuple[int, ...] | None, int]],
) -> None:
    """Run a collected fusion; `outputs` say where results go: (reference, dtype, buffer, strides or None, offset)."""
    shape, leaves = fusion.shape, fusion.leaves
    n = prod(shape)
    if fusion.strided and n >= TURN:
        across = any(runs_across(leaf.strides, shape) for leaf in leaves)
        if _is_copy(fusion, outputs):
            _, dt, buffer, strides, offset = outputs[0]
            dense = layouts.contiguous_strides(shape) if strides is None else strides
            given, made = _operand(leaves[0], shape), Operand(buffer, dt, shape, dense, offset)
            if across:
                copies.copy_strided(backend, given, made)
            if across or copies.repeated(backend, given, made):
                return
        if across:
            leaves = [turned(backend, leaf, shape) for leaf in leaves]
    if fusion.strided or outputs[0][3] is not None:
        layouts_in = tuple([leaf.strides for leaf in leaves])
        layouts_out = tuple([o[3] for o in outputs])
        stored = [*[leaf.dtype for leaf in leaves], *[dt for _, dt, _, _, _ in outputs]]
        narrow, rank, sizes, leaf_classes, out_classes = arranged(
            backend, shape, layouts_in, layouts_out, fusion.nodes, stored
        )
    else:  # everything is dense, as in most launches
        rank, sizes, leaf_classes, out_classes = 0, (), repeat(_DENSE), repeat(_DENSE)
        narrow = 0
    args: list = [n, 0, *sizes]
    operands, results = [], []
    nbytes = 0
    for leaf, (kind, strides) in zip(leaves, leaf_classes, strict=False):
        dt, buffer = leaf.dtype, leaf.buffer
        operands.append((dt, kind))
        args += (buffer, leaf.offset, *strides)
        size = n * dt.itemsize
        nbytes += size if size < buffer.nbytes else buffer.nbytes
    if fusion.scalars:
        args += scalar_args(fusion.scalars, fusion.scalar_types)
    for (ref, dt, buffer, _, offset), (kind, strides) in zip(outputs, out_classes, strict=False):
        results.append((ref, dt, kind))
        args += (buffer, offset, *strides)
        nbytes += n * dt.itemsize
    large = nbytes >= STREAM
    program = Program(
        tuple(operands),
        tuple(fusion.scalar_types),
        tuple(fusion.nodes),
        tuple(results),
        rank,
        large and _streams(backend, leaves, outputs, n, () if narrow and rank == 2 else sizes),
        narrow,
        large and backend.info.kind == "cpu" and not foreseen(operands),
    )
    start(backend, entry_of(backend, program), n, args, nbytes)
