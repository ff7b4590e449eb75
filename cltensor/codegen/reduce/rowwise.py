"""The row family: kernels that pass over rows several times (softmax, normalisations, cross entropy).

A `Kind` says what is accumulated in each pass and what is stored. The operands may be pending expressions, as in a
reduction; those with stride 0 along a row are numbers of the row. Owns schedules and launches; knows nothing of tensors.

Names in the text of a CPU's kernel (those of operands are made by Reader in prologue.py):

    o, lo, hi          a row, the work-item's range of rows
    j, at, m           an element of a run of the row, the first element of a vector, how many of its lanes count
    run, runs          where a row is several runs of adjacent elements, as of dims that do not merge
    w, vectors, width  across rows: a vector of them, how many of these there are, rows in all
    <name>             a result of a stage, as `top` or `total`; the same in all lanes when the stage has ended
    part_<name><u>     accumulator u of a result, added to it after each block
    A_<name>, P_<name> results and accumulators of several rows
    q0, zh, zb, z_*    the stored result, where its current row and run begin, its strides over rows; zr_*: over reduced dims
    kept, kb           what a kind keeps of an element between passes, and where the row's begin in scratch memory
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ... import dtypes
from ...dtypes import dtype
from ...layouts import contiguous_strides
from ...symbols import remembered
from ..language import SIGNED, convert
from ..operand import Operand
from ..pointwise import scalar_type
from ..region import LINE, STORAGE, STREAM, STREAM_ALIGN
from ..source import include, render
from ..turn import turn
from .gpu import AT_ONCE, PARTED, divide_rows
from .gpu import Rows as Lanes
from .prologue import Reader, Source, Split, along_reduced, split
from .row_kinds import Kind

if TYPE_CHECKING:
    from ...runtime import Backend, Buffer

GRAIN = 8192  # elements that are worth a CPU work-item
FOUND = 24  # elements that a work-item processes in the time of one access at a random address
PACE = 2000  # elements per microsecond of one CPU thread
WIDE_VECTORS = 64  # vectors of neighbouring rows that 'col' takes together, at most
LANES = 16  # of the widest vectors
LEAST = 6  # elements of a contiguous row, at least, for vectors along it, even if most of their lanes idle
# On a GPU: a chain that costs more than WRITTEN_OUT is in the kernel's text only once, in a loop, instead of once for
# each of the elements that a lane reads at once. HELD_MOST: elements that a lane keeps in registers, at most.
WRITTEN_OUT, HELD_MOST = 64, 16
BLOCK = 128  # steps between flushes of a sum
KEPT = 1 << 14  # elements of a row up to which it stays in a core's own cache between passes
BLOCKS = 1 << 12  # elements of a longer row that go through two stages at a time
# If what all work-items keep of long rows is more than KEPT_BYTES together, there is only one work-item per compute
# unit: it then keeps each row in the memory of its previous one.
KEPT_BYTES = 1 << 22
# While a row of AHEAD[0] to AHEAD[1] elements is computed, the next one is prefetched.
AHEAD = (512, 1 << 16)
# Up to TURNED rows are transposed at once; fewer, down to LANES, if they would not fit TURNED_BYTES of a core's own
# cache. TURNED_LEAST: elements of an operand, at least, for its rows to be transposed.
TURNED, TURNED_BYTES, TURNED_LEAST = 64, 1 << 19, 1 << 19
# Elements of a run from which on results are written with non-temporal stores even if runs do not begin at a cache line
STREAM_PEELED = 256
# Rows of up to ABREAST vectors (ABREAST_HEAVY where stages have exponentials) go through each stage together, as many
# rows as a vector has lanes.
ABREAST, ABREAST_HEAVY = 8, 16
# How a result is stored. PLAIN: by plain stores; WHOLE: by non-temporal stores, where all runs begin at a cache line;
# PEELED: by non-temporal stores from each run's first aligned vector on.
PLAIN, WHOLE, PEELED = 0, 1, 2
# Across rows: with steps of at least FURTHER[0] elements, hardware does not prefetch, and the kernel does, FURTHER[1]
# steps ahead.
FURTHER = (512, 4)

_kernels: dict[tuple, Any] = {}


class Targets(NamedTuple):
    """Class indices, dense over the rows; the index that does not count; the status slot where a bad one is noted."""

    buffer: Buffer
    offset: int
    ignore: int
    status: Buffer
    slot: int


class Rows(NamedTuple):
    """A result over all elements (None if the kind stores none), and what is stored besides.

    `numbers`: first those of the rows, dense over the rows; then those of runs, dense over rows and a row's outer dims; then
    partial sums of the kind's `columns`: (parts, pitch), the pitch a multiple of a vector's lanes.
    """

    all: Operand | None
    numbers: list[Operand]


def run(
    backend: Backend,
    kind: Kind,
    source: Source,
    dims: Sequence[int],
    compute: dtype,
    out: dtype,
    *,
    strides: tuple[int, ...] | None = None,
    eps: float = 0.0,
    targets: Targets | None = None,
    turned: int | None = None,
    schedule: str | None = None,
) -> Rows:
    """Compute `kind` over the rows along `dims` into fresh memory, laid out by `strides` (row-major if None).

    `turned`: an operand for which `turning` is true. `schedule` overrides the choice: "row", "col", "gpu-row", "gpu-col".
    """
    shape, alloc = source.shape, backend.alloc
    place = alloc(math.prod(shape) * out.itemsize) if kind.store else None
    plan = _plan(
        backend, backend.info.wake_us, kind, source.pattern(), tuple(dims), compute, out, strides, turned, schedule, _streams(backend, place)
    )  # fmt: skip
    result = None if place is None else Operand(place, out, shape, plan.strides, 0)
    numbers = [
        Operand(alloc(math.prod(each) * dt.itemsize), dt, each, contiguous_strides(each), 0)
        for dt, each in zip(plan.types, plan.shapes, strict=True)
    ]
    if plan.kernel is None:
        return Rows(result, numbers)
    args = [plan.nout, plan.chunk, plan.cut.nred, *plan.reader.arguments(source, plan.cut)]
    if result is not None:
        args += [result.buffer, *plan.along]
    args += [x.buffer for x in numbers]
    if kind.epsilon:
        args.append(float(eps))
    if targets is not None:
        args += [*targets]
    if kind.columns:
        args += [plan.height, plan.shapes[-1][1]]
    if plan.scratch:
        args.append(alloc(plan.scratch))
    if turned is not None:
        args += [alloc(plan.aside), plan.at_once]
    n = plan.n
    nbytes = n * out.itemsize * bool(kind.store)
    read = n if kind.stages or kind.store else plan.nout * FOUND  # else one element per row is read
    nbytes += sum([min(leaf[0].nbytes, read * leaf[1].itemsize) for leaf in source.leaves])
    backend.launch(plan.kernel, (plan.items,), (plan.group,), args, nbytes)
    return Rows(result, numbers)


class _Task(NamedTuple):
    """What is computed: a kind over the rows of a source."""

    kind: Kind
    source: Source
    cut: Split  # the result's strides come last
    row: bool  # vectors run along rows, else across them
    compute: dtype
    out: dtype
    turned: int | None  # an operand whose rows are transposed

    def reader(self, lanes: int, gpu: bool) -> Reader:
        """Return what reads the elements in vectors of at most `lanes`."""
        wide = self.compute.itemsize > 4
        return Reader(
            self.source, self.cut, row=self.row, lanes=lanes, outputs=[self.out], wide=wide, turned=self.turned, gpu=gpu
        )  # fmt: skip


class _Plan(NamedTuple):
    """A kernel and the division of its work, for all calls of one pattern; no kernel where there are no elements."""

    n: int  # elements
    strides: tuple[int, ...]  # the result's
    nout: int  # rows
    types: tuple[dtype, ...]  # of `Rows.numbers`
    shapes: tuple[tuple[int, ...], ...]  # of `Rows.numbers`
    kernel: Any = None
    cut: Any = None  # a Split
    reader: Any = None  # a Reader
    along: tuple[int, ...] = ()  # the result's strides over kept and reduced dims
    scratch: int = 0  # bytes of scratch memory for what the kind keeps between its passes
    items: int = 0  # work-items of the launch
    group: int = 1  # work-items of a group
    chunk: int = 0  # rows of a CPU's work-item
    height: int = 0  # rows that are added up to one part of `columns`
    aside: int = 0  # bytes of scratch memory for transposed rows
    at_once: int = 0  # rows that a work-item transposes at once


@remembered(4096)
def _plan(
    backend: Backend,
    wake_us: int,
    kind: Kind,
    source: Source,
    dims: tuple[int, ...],
    compute: dtype,
    out: dtype,
    strides: tuple[int, ...] | None,
    turned: int | None,
    schedule: str | None,
    streams: bool,
) -> _Plan:
    """Plan a call of `run`; `wake_us`: the device's, which tests change; `streams`: whether the result is worth
    non-temporal stores.
    """
    shape = source.shape
    n, steps = math.prod(shape), contiguous_strides(shape) if strides is None else strides
    kept = tuple([size for d, size in enumerate(shape) if d not in dims])
    types = _numbers(kind, compute)
    outer = (*kept, *[shape[d] for d in dims[:-1]])
    shapes = (kept,) * (len(types) - len(kind.runs) - len(kind.columns)) + (outer,) * len(kind.runs)
    plan = _Plan(n, steps, math.prod(kept), types, shapes)
    if not n:
        return plan
    _require(backend, source, compute, out)
    layouts = tuple([leaf[2] for leaf in source.leaves])
    cut = split(shape, layouts, dims if shape else (), (steps,), ordered=True)
    plan = plan._replace(cut=cut, along=(*cut.kept_strides[-1], *cut.reduced_strides[-1]))
    gpu = backend.info.kind != "cpu" if schedule is None else schedule.startswith("gpu")
    row = along_reduced(cut, LEAST) if schedule is None else schedule.endswith("row")
    # Only the schedule along rows stores numbers of runs and columns, so layouts do not matter then.
    row = row or bool(kind.runs or kind.columns) or turned is not None
    task = _Task(kind, source, cut, row, compute, out, turned)
    return _on_gpu(backend, task, plan) if gpu else _on_cpu(backend, wake_us, task, plan, streams)


def _on_gpu(backend: Backend, task: _Task, plan: _Plan) -> _Plan:
    """Add a GPU's kernel and division of work to a plan."""
    kind, compute, out, reader = task.kind, task.compute, task.out, task.reader(1, True)
    divided = _divided(backend, kind, reader, task.cut, compute)
    if kind.keep and not divided.held and out is not compute:
        kind = kind.recomputed()
    kernel = _lanes_kernel(backend, task._replace(kind=kind), reader, divided)
    group = divided.across * divided.along
    return plan._replace(kernel=kernel, reader=reader, items=divided.groups * group, group=group)


def _on_cpu(backend: Backend, wake_us: int, task: _Task, plan: _Plan, streams: bool) -> _Plan:
    """Add a CPU's kernel and division of work to a plan."""
    kind, source, cut, row, compute, out, turned = task
    lanes = backend.info.lanes
    past = _past(backend, cut, lanes, out) if streams and row else PLAIN
    scratch = bool(kind.keep) and (out is not compute or past != PLAIN)
    blocks = row and lanes > 1 and turned is None and _blocks(kind, cut, scratch)
    if scratch and not row:
        kind, scratch = kind.recomputed(), False
    reader = task.reader(lanes, False)
    abreast = row and turned is None and _abreast(kind, cut, reader)
    kernel = _kernel(backend, task._replace(kind=kind), reader, scratch, past, abreast, blocks)
    worked = plan.n if kind.stages or kind.store else min(plan.n, cut.nout * FOUND)
    turned_row = at_once = 0  # bytes of a transposed row; rows
    if turned is not None:
        size = source.leaves[turned][1].itemsize
        turned_row = _pitch(cut.nred, size) * size
        at_once = min(TURNED, TURNED_BYTES // turned_row // LANES * LANES)
    chunk = _chunk(backend, wake_us, cut.nout, worked, at_once or (1 if row else reader.lanes))
    height, shapes = 0, plan.shapes
    if kind.columns:
        height = min(chunk, BLOCK)
        chunk = -(-chunk // height) * height
        pitch = -(-cut.nred // reader.lanes) * reader.lanes
        shapes += ((-(-cut.nout // height), pitch),) * len(kind.columns)
    if blocks and scratch and -(-cut.nout // chunk) * cut.nred * compute.itemsize > KEPT_BYTES:
        chunk = max(chunk, -(-cut.nout // backend.info.compute_units))
    items = -(-cut.nout // chunk)
    beside = cut.nred // BLOCKS * blocks + reader.lanes
    spare = items * (cut.nred + beside) * compute.itemsize if scratch else 0
    spare *= reader.lanes if abreast else 1
    return plan._replace(
        shapes=shapes, kernel=kernel, reader=reader, scratch=spare, items=items, chunk=chunk, height=height,
        aside=items * at_once * turned_row, at_once=at_once,
    )  # fmt: skip


def turning(
    backend: Backend,
    shape: tuple[int, ...],
    dt: dtype,
    strides: tuple[int, ...],
    dims: tuple[int, ...],
) -> bool:
    """Return whether work-items can transpose an operand's rows as they reach them.

    Requires rows along the last dim, with a large stride, whose neighbours are adjacent in memory.
    """
    if dims != (len(shape) - 1,) or backend.info.kind != "cpu" or backend.info.lanes < LANES:
        return False
    if math.prod(shape) < TURNED_LEAST or dt.is_complex or dt.itemsize == 1:
        return False
    n, step = shape[-1], strides[-1]
    kept = [pair for pair in zip(shape[:-1], strides, strict=False) if pair[0] > 1]
    if n < LANES or step < LANES or not kept or kept[-1][0] < LANES or kept[-1][1] != 1:
        return False
    return LANES * _pitch(n, dt.itemsize) * dt.itemsize <= TURNED_BYTES


def _pitch(n: int, size: int) -> int:
    """Return the elements from a transposed row to the next: an odd number of cache lines, to spread over sets."""
    line = LINE // size
    lines = -(-n // line)
    return (lines + 1 - lines % 2) * line


def _numbers(kind: Kind, compute: dtype) -> tuple[dtype, ...]:
    """Return the dtypes of the numbers stored of rows, runs and columns."""
    target = (dtypes.int32,) * bool(kind.pick)
    rows = (compute,) * len(kind.rows + kind.each + kind.pick) + target
    return rows + (compute,) * (len(kind.runs) + len(kind.columns))


def _abreast(kind: Kind, cut: Split, reader: Reader) -> bool:
    """Return whether several short rows go through each stage together."""
    if not kind.stages or kind.runs or kind.columns or reader.lanes == 1:
        return False
    vectors = ABREAST_HEAVY if kind.heavy else ABREAST
    return cut.nout > 1 and cut.nred <= vectors * reader.lanes


def _blocks(kind: Kind, cut: Split, scratch: bool) -> bool:
    """Return whether long rows go through both stages block by block; not if what is kept waits in a cached result."""
    if not kind.relative or len(cut.reduced) > 1 or cut.nred <= KEPT:
        return False
    return scratch or not kind.keep


def _streams(backend: Backend, place: Buffer | None) -> bool:
    """Return whether a result is large and aligned enough to be written with non-temporal stores."""
    if place is None or place.nbytes < STREAM or not backend.info.host_shared:
        return False
    return place.address % STREAM_ALIGN == 0


def _past(backend: Backend, cut: Split, lanes: int, out: dtype) -> int:
    """Return how a result that may be written with non-temporal stores is stored (PLAIN, WHOLE or PEELED)."""
    reduced = cut.reduced_strides[-1]
    if out.code in ("f16", "bf16") or lanes == 1 or reduced[-1] != 1:
        return PLAIN
    if not any(step % lanes for step in (*cut.kept_strides[-1], *reduced[:-1])):
        return WHOLE
    return PEELED if cut.reduced[-1] >= STREAM_PEELED else PLAIN


def _require(backend: Backend, source: Source, compute: dtype, out: dtype) -> None:
    """Raise what the backend says of a dtype that the device lacks."""
    read = [leaf[1] for leaf in source.leaves]
    for dt in (compute, out, *read, *[node.compute for node in source.nodes]):
        backend.require(dt)


def _chunk(backend: Backend, wake_us: int, nout: int, n: int, lanes: int) -> int:
    """Return the rows of one CPU work-item."""
    alone = n < PACE * wake_us
    items = 1 if alone else max(1, min(backend.info.compute_units * 4, n // GRAIN, nout))
    chunk = -(-nout // items)
    return -(-chunk // lanes) * lanes


def _kernel(
    backend: Backend, task: _Task, reader: Reader, scratch: bool, streams: int, abreast: bool, blocks: bool
) -> Any:  # fmt: skip
    """Return the kernel of a CPU's schedule; the flags are those of rowwise/rowwise.mako.

    streams: PLAIN, WHOLE or PEELED.
    """
    kind, cut, compute, out = task.kind, task.cut, task.compute, task.out
    along = cut.reduced_strides[-1][-1] if reader.row else cut.kept_strides[-1][-1]
    overlap = backend.info.native_lanes < LANES
    key = (
        backend.device,
        kind,
        compute,
        out,
        reader.key,
        reader.values,
        along == 1,
        streams,
        overlap,
        abreast,
        blocks,
    )
    kernel = _kernels.get(key)
    if kernel is not None:
        return kernel
    parameters, types = _signature(kind, reader, compute, out, scratch)
    name = _named(kind, reader, out, "row" if reader.row else "col") + "_abreast" * abreast
    name += ("", "_streamed", "_peeled_streamed")[streams]
    name += "_turned" * (reader.turned is not None) + "_blocks" * blocks
    ahead = AHEAD if reader.row else FURTHER
    # A result of 16 bits needs only an exponential of that accuracy.
    brief = kind.heavy and bool(kind.store) and compute.reg == "float" and out.itemsize == 2
    head = (
        include("stream") * bool(streams)
        + include("ahead")
        + include("limits") * (reader.turned is not None)
        + reader.headers(compute)
        + include(*kind.headers(compute), *["elementary/exp_brief"] * brief)
    )
    scalar = None  # reads single elements, for what is computed of a row's target
    if kind.pick:
        scalar = Reader(task.source, cut, row=reader.row, lanes=1, outputs=[out])
    unroll = 2 if reader.row and reader.lanes > 1 and not kind.heavy else 1
    text = render(
        "rowwise/rowwise", fn=name, kind=kind, reader=reader, scalar=scalar, lanes=reader.lanes, unroll=unroll, block=BLOCK, dt=compute,
        out=out, compute=_computed(kind, reader, compute), mask=SIGNED[compute.reg],
        memories=reader.memories, headers=head, parameters=parameters, dense_out=along == 1, convert=convert, wide_vectors=WIDE_VECTORS,
        scratch=scratch, streams=streams, PEELED=PEELED, brief=brief, overlap=overlap, ahead=ahead, abreast=reader.lanes if abreast else 0, blocks=BLOCKS * blocks, turn=turn, storage=STORAGE, LINE=LINE,
    )  # fmt: skip
    kernel = _kernels[key] = backend.kernel(name, text, types)
    return kernel


def _named(kind: Kind, reader: Reader, out: dtype, schedule: str) -> str:
    """Return the beginning of a kernel's name: the kind, the chain before it, dtypes, schedule, operands' classes."""
    codes = "_".join(dict.fromkeys(d.code for d in (*(d for d, _ in reader.program.leaves), out)))
    ops = "".join(node.op.name + "_" for node in reader.program.nodes)[:48]
    classes = "".join(c for _, c in reader.program.leaves)
    return f"{kind.name}__{ops}{codes}__{schedule}_{classes}{reader.kept_rank}{reader.reduced_rank}"


def _computed(kind: Kind, reader: Reader, compute: dtype) -> list[dtype]:
    """Return the dtypes that values are computed in."""
    index = dtypes.int64 if compute.itemsize > 4 else dtypes.int32
    return [index if k in kind.integers else compute for k in range(len(reader.values))]


def _heavy(reader: Reader) -> bool:
    """Return whether a GPU's kernel has the chain only once, in a loop."""
    return sum([node.op.formula.cost for node in reader.program.nodes]) > WRITTEN_OUT


def _divided(backend: Backend, kind: Kind, reader: Reader, cut: Split, compute: dtype) -> Lanes:
    """Divide rows among a GPU's groups; lanes keep elements that several passes, the storing one included, read."""
    sums = max([len(stage.sums) for stage in kind.stages], default=0)
    passes = len(kind.stages) + bool(kind.store)
    most = 0
    if passes > 1 and sums and not kind.runs:
        most = AT_ONCE if _heavy(reader) else HELD_MOST
    held = len([k for k in kind.summed() if k not in reader.fixed])
    words, local = -(-compute.itemsize // 4) * max(held, 1), compute.itemsize * max(sums, 1)
    return divide_rows(backend.info, cut, reader.row, local, compute.itemsize > 4, words, most)


def _lanes_kernel(backend: Backend, task: _Task, reader: Reader, lanes: Lanes) -> Any:
    """Return the kernel of a GPU's schedule."""
    kind, cut, compute, out = task.kind, task.cut, task.compute, task.out
    dense = (cut.reduced_strides if reader.row else cut.kept_strides)[-1][-1] == 1
    shape = lanes._replace(groups=0)
    key = (backend.device, kind, compute, out, reader.key, reader.values, shape, dense)
    kernel = _kernels.get(key)
    if kernel is not None:
        return kernel
    parameters, types = _signature(kind, reader, compute, out, False)
    schedule = f"gpu_{'row' if reader.row else 'col'}{lanes.across}x{lanes.along}"
    name = _named(kind, reader, out, schedule) + (f"_held{lanes.held}" if lanes.held else "")
    # Lanes of the largest groups have few registers, and addresses across rows take more of them.
    many = len(reader.program.leaves) > 2 or (
        not reader.row and lanes.across * lanes.along > PARTED
    )
    at_once = 1 if _heavy(reader) else AT_ONCE // 2 if many else AT_ONCE
    text = render(
        "rowwise/gpu", fn=name, kind=kind, reader=reader, across=lanes.across, along=lanes.along, held=lanes.held, narrow=lanes.narrow,
        at_once=at_once, read=kind.summed(), dt=compute, out=out, compute=_computed(kind, reader, compute), mask="int" if compute.itemsize < 8 else "long",
        memories=reader.memories, headers=reader.headers(compute) + include(*kind.headers(compute)), parameters=parameters, dense_out=dense, convert=convert,
    )  # fmt: skip
    kernel = _kernels[key] = backend.kernel(name, text, types)
    return kernel


def _signature(
    kind: Kind, reader: Reader, compute: dtype, out: dtype, scratch: bool
) -> tuple[list[str], list]:
    """Return the kernel's parameters and their types for the backend."""
    i64 = np.int64
    parameters = ["const long nout", "const long chunk", "const long nred", *reader.parameters()]
    types: list = [i64] * 3 + reader.argument_types()
    if kind.store:
        kept = reader.kept_rank if reader.row else reader.kept_rank - 1
        strides = [f"z_{d}" for d in range(kept)] + ([] if reader.row else ["z_k"])
        strides += [f"zr_{d}" for d in range(reader.reduced_rank - 1)] + ["z_r"]
        parameters += [f"__global {out.cl} *q0", *[f"const long {name}" for name in strides]]
        types += [None] + [i64] * len(strides)
    numbers = _numbers(kind, compute)
    parameters += [f"__global {dt.cl} *row{k}" for k, dt in enumerate(numbers)]
    types += [None] * len(numbers)
    if kind.epsilon:
        parameters.append(f"const {compute.reg} eps")
        types.append(scalar_type(compute))
    if kind.pick:
        parameters += ["__global const long *targets", "const long origin", "const long ignore"]
        parameters += ["__global long *status", "const long slot"]
        types += [None, i64, i64, None, i64]
    if kind.columns:
        parameters += ["const long height", "const long pitch"]
        types += [i64, i64]
    if scratch:
        parameters.append(f"__global {compute.cl} *spare")
        types.append(None)
    if reader.turned is not None:
        size = reader.types[reader.turned].itemsize
        parameters += [f"__global {STORAGE[size]} *aside", "const long at_once"]
        types += [None, i64]
    return parameters, types
