"""The multi-tensor family: a chain of formulas over named operands, applied to many tensors in one launch.

OpenCL 1.2 kernels take no arrays of pointers, so a launch binds a bounded number of tensors, every operand of each as an
argument of its own; a `plan` in device memory says where they start and end. There are only a few classes of how many
tensors a kernel takes (its slots), and the numbers in a formula are arguments, so a chain is built once per pattern of
dtypes and class. Knows buffers and offsets, nothing of shapes or tensors.
"""

from __future__ import annotations

import ast
import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import dtypes
from ..dtypes import dtype
from .checks import Describe, checking
from .language import Emitter, Formula, convert, lanes_of, parse
from .memory import Memory
from .operand import Operand
from .pointwise import scalar_type
from .region import GPU_GROUP, gpu_size, workers
from .source import include, lane_macros, render

if TYPE_CHECKING:
    from ..runtime import Backend, Buffer

FLAG = "found"  # a chain that assigns a mask to this name sets the flag where the mask holds for any element
CLASSES = (1, 8, 48)  # numbers of slots worth a kernel of their own, below the device's limit
MAX_SLOTS, GPU_SLOTS = 48, 128  # slots of a kernel, at most, on a CPU and on a GPU
_GRAIN = 4096  # elements that are worth a work-item
# Lanes of a GPU's work-group, and elements that each reads before it writes the first.
_GROUP, _AT_ONCE = 128, 4
_GROUPS = 64  # work-groups per compute unit of a GPU, at most
_PACE = 650  # elements per microsecond of one CPU thread
_AHEAD = 1536  # distance of prefetches in bytes
_ROWS_AHEAD = 8  # distance of prefetches in rows, in `apply_rows`
_MAX_PLANS = 128  # entries of _plans
_CONSTANTS = ("pi", "inf", "nan")


class Chain:
    """Statements `name = formula`, one a line, over operands in memory, one-element operands and numbers.

    writes, reads: the operands, in the order of their arguments; what is assigned to the former is stored at the end.
    shared: operands of one element that all tensors read. each: numbers of which every tensor has its own. A name
    that is none of these and not assigned before is a number that all tensors share. `loaded`: the operands whose
    elements are read.
    """

    def __init__(
        self, name: str, text: str, writes: str, reads: str, shared: str = "", each: str = ""
    ) -> None:
        self.name, self.writes, self.shared = name, tuple(writes.split()), tuple(shared.split())
        self.each = tuple(each.split())
        self.operands = (*self.writes, *reads.split())
        self.steps: list[tuple[str, Formula]] = []
        known = {*self.operands, *self.shared, *self.each, *_CONSTANTS}
        numbers: dict[str, None] = {}
        for line in filter(None, map(str.strip, text.splitlines())):
            target, _, formula = line.partition(" = ")
            self.steps.append((target, parse(formula)))
            numbers.update(dict.fromkeys(n for n in names(self.steps[-1][1]) if n not in known))
            known.add(target)
        self.numbers = tuple(numbers)
        self.loaded = {n for _, formula in self.steps for n in names(formula)} & {*self.operands}
        self.flagged = any(target == FLAG for target, _ in self.steps)

    def __repr__(self) -> str:
        return f"<Chain {self.name}: {'; '.join(f'{t} = {f.text}' for t, f in self.steps)}>"


# Chains are interned by their text: equal ones are the same object, which is part of a kernel's key.
chain = functools.cache(Chain)


def names(formula: Formula) -> list[str]:
    """Return the names of values a formula uses, in order."""
    called = {id(n.func) for n in ast.walk(formula.tree) if isinstance(n, ast.Call)}
    return [n.id for n in ast.walk(formula.tree) if isinstance(n, ast.Name) and id(n) not in called]


# One tensor of a list: number of elements, buffers and offsets of the chain's operands, and its own numbers (`each`).
Part = tuple[int, tuple["Buffer", ...], tuple[int, ...], tuple[float, ...]]


class Shared(NamedTuple):
    """A one-element operand that all tensors of a launch read."""

    buffer: Buffer
    dtype: dtype
    offset: int


class _Built(NamedTuple):
    """The kernel of a chain, for certain dtypes and a number of slots."""

    kernel: Any
    slots: int  # tensors that a launch takes
    gpu: bool


_kernels: dict[tuple, _Built] = {}
_plans: dict[tuple, Buffer] = {}


def slot_limit(backend: Backend, chain: Chain) -> int:
    """Return how many tensors one launch can take, by the device's limit on argument bytes."""
    fixed = 2 + len(chain.numbers) + 2 * len(chain.shared) + chain.flagged
    taken = len(chain.operands) + len(chain.each)
    most = MAX_SLOTS if backend.info.kind == "cpu" else GPU_SLOTS
    return max(1, min(most, (backend.info.arg_bytes // 8 - fixed) // taken))


def apply(
    backend: Backend,
    chain: Chain,
    types: tuple[dtype, ...],
    parts: Sequence[Part],
    numbers: Mapping[str, float],
    shared: Sequence[Shared] = (),
    flag: Buffer | None = None,
) -> None:
    """Run a chain on the tensors `parts`; each one's operands have the dtypes `types`, which are real floating ones.

    `flag` is a buffer of one float, which a chain that assigns FLAG may set to 1.
    """
    limit = slot_limit(backend, chain)
    first = 0
    while first < len(parts):
        left, slots = len(parts) - first, limit
        for few in CLASSES:
            if left <= few < limit:
                slots = few
                break
        _launch(backend, chain, types, parts[first : first + slots], slots, numbers, shared, flag)
        first += slots


def _launch(
    backend: Backend,
    chain: Chain,
    types: tuple[dtype, ...],
    parts: Sequence[Part],
    slots: int,
    numbers: Mapping[str, float],
    shared: Sequence[Shared],
    flag: Buffer | None,
) -> None:
    built = _kernel(backend, chain, types, tuple([s.dtype for s in shared]), slots)
    sizes, buffers, offsets, own = zip(*parts, strict=True)
    total = sum(sizes)
    if built.gpu:
        grain = _AT_ONCE * min(_GROUP, backend.info.max_group)
        chunk = max(1, -(-total // (backend.info.compute_units * _GROUPS * grain))) * grain
    else:
        chunk = max(
            backend.tuned.get("multi.grain", _GRAIN),
            -(-total // (backend.info.compute_units * 8)),
        )
        if total < _PACE * backend.info.wake_us:
            chunk = max(chunk, total)
        chunk = -(-chunk // 64) * 64
    args: list[Any] = [chunk, _plan(backend, sizes, offsets, slots)]
    args += [float(numbers[name]) for name in chain.numbers]
    for one in shared:
        args += [one.buffer, one.offset]
    if chain.flagged:
        args.append(flag)
    args += itertools.chain.from_iterable(buffers)
    args += buffers[0] * (slots - len(parts))  # unused slots: the plan gives them no elements
    if chain.each:
        args += itertools.chain.from_iterable(own)
        args += own[0] * (slots - len(parts))
    group = min(_GROUP, backend.info.max_group) if built.gpu else 1
    size = sum([dt.itemsize for dt in types[: len(chain.writes)]])
    for name, dt in zip(chain.operands, types, strict=True):
        size += dt.itemsize * (name in chain.loaded)
    backend.launch(built.kernel, (-(-total // chunk) * group,), (group,), args, total * size)


def apply_rows(
    backend: Backend,
    chain: Chain,
    dt: dtype,
    buffers: Sequence[Buffer],
    offsets: Sequence[int],
    keys: Operand,
    shape: tuple[int, int],
    numbers: Mapping[str, float],
    describe: Describe,
) -> None:
    """Run a chain on those rows of tensors of `shape` whose indices are in `keys` (dense, int64, no index twice).

    Operands that are written are such tensors; those that are only read have one row for each key. `describe` makes the
    exception for an index out of range.
    """
    n, (size, width) = keys.shape[0], shape
    built = _kernel(backend, chain, (dt,) * len(buffers), (), 1, rows=True)
    total, group = n * width, 1
    if built.gpu:
        items, group = gpu_size(total), GPU_GROUP
    else:
        items = min(n, workers(backend, len(buffers) * total))
    with checking(backend, describe) as status:
        args: list[Any] = [n, width, size, keys.buffer, keys.offset, status.buffer, status.offset]
        args += [float(numbers[name]) for name in chain.numbers]
        args += [*buffers, *offsets]
        moved = dt.itemsize * (len(buffers) + len(chain.writes))
        backend.launch(built.kernel, (items,), (group,), args, total * moved)


def _plan(
    backend: Backend, sizes: tuple[int, ...], offsets: tuple[tuple[int, ...], ...], slots: int
) -> Buffer:
    """Return a buffer with where each part starts in the count of all elements, and the offsets of all operands.

    Buffers are cached, as an optimiser passes the same list in every step.
    """
    key = (backend, slots, sizes, offsets)
    found = _plans.get(key)
    if found is None:
        left = slots - len(sizes)
        ends = np.cumsum([0, *sizes, *[0] * left])
        table = np.concatenate([ends, np.ravel([*offsets, *[offsets[0]] * left])]).astype(np.int64)
        found = backend.alloc(table.nbytes)
        backend.write(found, 0, table)
        if len(_plans) >= _MAX_PLANS:
            del _plans[next(iter(_plans))]
        _plans[key] = found
    return found


# ---------------------------------------------------------------------------------------------- text


def _kernel(
    backend: Backend,
    chain: Chain,
    types: tuple[dtype, ...],
    shared: tuple[dtype, ...],
    slots: int,
    rows: bool = False,
) -> _Built:
    key = (backend, chain, types, shared, slots, rows)
    built = _kernels.get(key)
    if built is None:
        info = backend.info
        for dt in (*types, *shared):
            backend.require(dt)
        wide = any(dt.itemsize > 4 for dt in types)
        scalar = any(f.scalar_only for _, f in chain.steps)
        gpu = info.kind != "cpu"
        lanes = 1 if scalar or gpu else info.lanes // 2 if wide else info.lanes
        group = min(_GROUP, info.max_group) if gpu else 0
        name, text, arguments = source(chain, types, shared, slots, lanes, group, rows)
        kernel = backend.kernel(name, text, arguments, info.build_options)
        built = _kernels[key] = _Built(kernel, slots, gpu)
    return built


def source(
    chain: Chain,
    types: tuple[dtype, ...],
    shared: tuple[dtype, ...],
    slots: int,
    lanes: int,
    group: int,
    rows: bool = False,
) -> tuple[str, str, list]:
    """Render a chain; return kernel name, text and argument types. `group`: lanes of a GPU's work-group, 0 on a CPU."""
    compute = dtypes.float64 if dtypes.float64 in types else dtypes.float32
    name = f"{chain.name}_{'_'.join(dict.fromkeys(dt.code for dt in types))}_{'rows' if rows else slots}"
    memories = {dt.code: Memory(dt, lanes) for dt in types}
    lines, stores, flag = _body(chain, types, compute, lanes)
    read = zip(chain.operands, types, strict=True)
    needed = {(dt.code, "load") for name, dt in read if name in chain.loaded}
    needed |= {(dt.code, "store") for dt in types[: len(chain.writes)]}
    text = render(
        "multi_tensor", name=name, headers=include("ahead") + _headers(chain, (*types, *shared), compute, lanes), ahead=_AHEAD, lanes=lanes, slots=slots, gpu=group > 0,
        operands=list(zip(chain.operands, types, strict=True)), written=len(chain.writes), loaded=chain.loaded, memories=memories, needed=needed,
        numbers=chain.numbers, each=chain.each, shared=list(zip(chain.shared, shared, strict=True)),
        shared_memories={dt.code: Memory(dt, 1) for dt in shared},
        register=lanes_of(compute.reg, lanes), scalar=compute.reg, lines=lines, stores=stores, flag=flag,
        rows=_ROWS_AHEAD if rows else 0, group=group, at_once=_AT_ONCE, halves=[1 << k for k in reversed(range((slots - 1).bit_length()))],
    )  # fmt: skip
    i64 = dtypes.int64.np.type
    first = [i64, i64, i64, None, i64, None, i64] if rows else [i64, None]
    arguments: list = [*first, *[scalar_type(compute)] * len(chain.numbers)]
    arguments += [None, i64] * len(shared) + [None] * (chain.flagged + slots * len(types))
    arguments += [scalar_type(compute)] * (slots * len(chain.each))
    return name, text, arguments + [i64] * len(types) * rows


def _body(
    chain: Chain, types: tuple[dtype, ...], compute: dtype, lanes: int
) -> tuple[list[str], list[tuple[int, str, str]], str]:
    """Return a chain's statements, its stores (operand, dtype code, value) and the condition of its flag."""
    register = lanes_of(compute.reg, lanes)
    values = {name: f"n_{name}" for name in (*chain.numbers, *chain.shared, *chain.each)}
    lines, flag = [], ""
    for name, dt in zip(chain.operands, types, strict=True):
        if name not in chain.loaded:
            continue
        values[name] = f"{name}_in"
        lines.append(f"const {register} {name}_in = {convert(f'{name}_raw', dt, compute, lanes)};")
    for number, (target, formula) in enumerate(chain.steps):
        emitter = Emitter(compute, lanes, values)
        if target == FLAG:
            flag = emitter.mask(formula.tree)
            flag = flag if lanes == 1 else f"any({flag})"
            lines.append(f"bad |= {flag};")
            continue
        lines.append(f"const {register} {target}_{number} = {emitter.number(formula.tree)};")
        values[target] = f"{target}_{number}"
    stores = [
        (k, types[k].code, convert(values[name], compute, types[k], lanes))
        for k, name in enumerate(chain.writes)
    ]
    return lines, stores, flag


def _headers(chain: Chain, types: Sequence[dtype], compute: dtype, lanes: int) -> str:
    found = sorted({h for _, formula in chain.steps for h in formula.headers_for(compute)})
    if any(dt.code in ("f16", "bf16") for dt in types):
        found.insert(0, "half")
    return lane_macros(lanes, dtypes.float64 in types) + include(*found)
