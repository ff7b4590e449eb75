"""The reduction family: a fused expression is reduced over any dims of any layout in one or two launches.

Chooses between vectors along the reduced dims ('row') and along the kept ones ('col'), or a GPU's lanes (gpu.py), and how
many parts an output is cut into where outputs are few. Results are dense over the kept dims. Deterministic: the same
shapes on the same device always add in the same order. Knows nothing of tensors and pending values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...dtypes import dtype
from ...layouts import contiguous_strides
from ...symbols import remembered
from ..operand import Operand
from .arrivals import announces, arrivals
from .gpu import LEAST, Division, divide, divide_merge
from .kernels import SHORT, Form, Outputs, merging, reducing, sizes, strip
from .prologue import Reader, Source, Split, along_reduced, split
from .state import State
from .states import KINDS

if TYPE_CHECKING:
    from ...runtime import Backend, Buffer

GRAIN = 16384  # elements that are worth a CPU work-item
PACE = 20_000  # elements times their weight per microsecond of one CPU thread
# The last work-group of a GPU's launch merges the parts of all groups if these are at most BY_LAST states, and at most
# BY_LAST_OUTPUTS outputs for each of its lanes.
BY_LAST, BY_LAST_OUTPUTS = 1 << 14, 4
WIDEST = 16  # lanes of the widest registers
# NARROW: vectors of states that registers hold while many short rows are read. NARROW_LEAST: elements from which on a
# reduction is worth a kernel built for its length of rows.
NARROW, NARROW_LEAST = 28, 1 << 17
# The lanes of rows of fewer than ABREAST numbers are merged together with those of other rows; for states without a
# block (extremes, whose merges test for NaN) of four times as many. Vectors then run along rows of at least
# ABREAST_LEAST numbers.
ABREAST_LEAST, ABREAST = 10, 64


def reduce(
    backend: Backend,
    kind: str,
    source: Source,
    dims: Sequence[int],
    compute: dtype,
    outputs: Sequence[tuple[str, dtype]],
    *,
    scale: float | None = None,
    schedule: str | None = None,
    parts: int | None = None,
) -> list[Operand]:
    """Reduce `source` over `dims`: one dense operand over the kept dims for each named output.

    `compute` is the accumulator's dtype. `scale`: the number by which sums are divided (mean, var). `schedule` ("row",
    "col", "gpu-row" or "gpu-col") and `parts` override the choice.
    """
    plan = _plan(
        backend, backend.info.wake_us, kind, source.pattern(), tuple(sorted(dims)), compute, tuple(outputs), schedule, parts
    )  # fmt: skip
    results = [
        Operand(backend.alloc(plan.nout * dt.itemsize), dt, plan.kept, plan.strides, 0)
        for _, dt in outputs
    ]
    kernel, task, work = plan.kernel, plan.task, plan.work
    if kernel is None:
        return results
    cut, merged = task.cut, work.parts * task.folded  # parts of an output
    targets = last = [r.buffer for r in results]
    if merged > 1:
        targets = [backend.alloc(plan.nout * merged * size) for size in plan.stored]
    args = [cut.nout, work.ochunk, cut.nred, work.parts, work.pchunk]
    if task.pairs:
        leaves = [(b, dt, strides, 2 * at) for b, dt, strides, at in source.leaves]
        source = source._replace(leaves=tuple(leaves))
    args += plan.reader.arguments(source, cut)
    if plan.scaled:
        args.append(scale)
    if task.rest:
        args.append(task.rest)
    n = cut.nout * cut.nred
    nbytes = sum([min(leaf[0].nbytes, n * leaf[1].itemsize) for leaf in source.leaves])
    if plan.joined:
        targets = [*targets, arrivals(backend), *last]
    backend.launch(kernel, (work.items,), (work.group,), [*args, *targets], nbytes)
    if merged > 1 and not plan.joined:
        state = KINDS[kind](compute, merging=True)
        _merge(backend, state, tuple(outputs), targets, last, plan.nout, merged, scale, plan.gpu)
    return results


class _Task(NamedTuple):
    """A reduction as the kernel sees it: complex numbers may be pairs of real ones, several rows one row."""

    state: State
    source: Source
    cut: Split
    row: bool  # vectors run along the reduced dims
    outputs: Outputs
    pairs: bool = False  # complex numbers are read as twice as many real ones
    folded: int = 1  # rows that are taken side by side as one (`_folded`); each of them makes a part of its own
    rest: int = 0  # numbers of the rows left over by that

    def reader(self, lanes: int, gpu: bool) -> Reader:
        """Return what reads the elements in vectors of at most `lanes`."""
        beside = [dt for name, dt in self.outputs if name == "index"]
        values = [
            self.state.dt if self.pairs else dt for name, dt in self.outputs if name != "index"
        ]
        wide = self.state.dt.itemsize > 4
        return Reader(
            self.source, self.cut, row=self.row, lanes=lanes, outputs=values, beside=beside, wide=wide, gpu=gpu
        )  # fmt: skip


class _Work(NamedTuple):
    """The division of a launch's work."""

    group: int  # work-items of a group
    items: int  # work-items of the launch
    ochunk: int  # outputs of a work-item on a CPU
    parts: int  # parts into which an output's elements are divided; more than one are merged
    pchunk: int  # elements of a part


class _Plan(NamedTuple):
    """A kernel and its division of work, for all reductions of one pattern; no kernel where there are no outputs."""

    kept: tuple[int, ...]  # the result's shape
    strides: tuple[int, ...]  # the result's
    nout: int  # outputs: elements of the result
    kernel: Any
    task: _Task
    reader: Reader
    work: _Work
    gpu: bool
    scaled: bool  # whether this kernel (not that of the merge) divides by `scale`
    stored: tuple[int, ...]  # bytes of each field of a part's state
    joined: bool  # whether the last group to finish merges the parts


@remembered(4096)
def _plan(
    backend: Backend,
    wake_us: int,
    kind: str,
    source: Source,
    dims: tuple[int, ...],
    compute: dtype,
    outputs: Outputs,
    schedule: str | None,
    parts: int | None,
) -> _Plan:
    """Plan a reduction (`reduce`); `wake_us`: the device's, which tests change."""
    _require(backend, source, compute, outputs)
    state = KINDS[kind](compute)
    layouts = tuple([leaf[2] for leaf in source.leaves])
    cut = split(source.shape, layouts, dims, ordered=state.needs_index)
    gpu = backend.info.kind != "cpu" if schedule is None else schedule.startswith("gpu")
    abreast = schedule is None and not gpu and _abreast(cut, state, parts)
    if schedule is not None:
        row = schedule in ("row", "gpu-row")
    else:
        row = along_reduced(cut, LEAST) if gpu else along_reduced(cut)
        row = row or (abreast and along_reduced(cut, ABREAST_LEAST))
    task, stored = _Task(state, source, cut, row, outputs), tuple(sizes(state))
    lanes = 1 if gpu else backend.info.lanes
    if not gpu:
        task = _paired(task, compute, schedule == "row")
        if schedule is None and not parts and not task.state.paired:
            task = _folded(task, task._replace(row=False).reader(lanes, gpu).lanes)
    reader = task.reader(lanes, gpu)
    kept = tuple([n for d, n in enumerate(source.shape) if d not in dims])
    form: Form | None = None
    if not task.cut.nout:
        work = _Work(1, 0, 0, 1, 0)
    elif gpu:
        joining = KINDS[kind](compute, merging=True) if announces(backend) else None
        work, form = _on_gpu(backend, task, reader, parts, joining)
    else:
        work, form = _on_cpu(backend, task, reader, parts, abreast, wake_us)
    joined = form is not None and form.joining is not None
    return _Plan(
        kept,
        contiguous_strides(kept),
        math.prod(kept),
        form and reducing(backend, form),
        task,
        reader,
        work,
        gpu,
        state.scale and (joined or work.parts * task.folded == 1),
        stored,
        joined,
    )


def _on_gpu(
    backend: Backend, task: _Task, reader: Reader, parts: int | None, joining: State | None
) -> tuple[_Work, Form]:
    """Divide a reduction among a GPU's groups; `joining`: merges the parts in the last one, where that is possible."""
    state, cut = task.state, task.cut
    wide = max(state.dt.itemsize, *[dt.itemsize for dt in reader.types]) > 4
    lanes = divide(backend.info, cut, task.row, sum(sizes(state)), wide, parts)
    if not _by_last(lanes, cut.nout):
        joining = None
    work = _Work(lanes.group, lanes.groups * lanes.group, 1, lanes.parts, lanes.pchunk)
    return work, Form(state, reader, 1, lanes, task.outputs, lanes.parts > 1, joining=joining)


def _on_cpu(
    backend: Backend, task: _Task, reader: Reader, parts: int | None, abreast: bool, wake_us: int
) -> tuple[_Work, Form]:
    """Divide a reduction among a CPU's threads; `abreast`: see `_abreast`."""
    state, cut, row, rest = task.state, task.cut, task.row, task.rest > 0
    unroll = _unroll(backend, reader, state, row)
    vectors = unroll if row else strip(state, reader.lanes)
    alone = cut.nout * cut.nred * _weight(reader, state) < PACE * wake_us
    narrow = 0 if row else _narrow(cut, reader, state, 0 if rest else NARROW_LEAST)
    assert narrow or not rest
    grain = cut.kept[-1] if narrow else reader.lanes
    work = _divide_cpu(backend, cut, row, reader.lanes, vectors, parts, alone, grain)
    abreast = abreast and row and reader.lanes > 1 and work.parts == 1
    partial = work.parts * task.folded > 1
    return work, Form(state, reader, unroll, None, task.outputs, partial, narrow, rest, abreast)


def _paired(task: _Task, compute: dtype, forced: bool) -> _Task:
    """Let complex numbers be read as pairs of real ones, where they lie as one operand and the state allows it.

    forced: `row` has been demanded.
    """
    state, cut, row = task.state, task.cut, task.row
    if not (state.pairs and compute.is_complex and _plainly(task.source, compute)):
        return task
    along = cut.reduced_strides[0][-1] == 1
    across = cut.kept_strides[0][-1] == 1 < cut.kept[-1]
    row = row and (along or not across or forced)
    if cut.constant[0] or not (along if row else across):
        return task._replace(row=row)
    state, outputs = KINDS[state.name](compute.to_real()), task.outputs
    state.turns = True
    if row:
        state.paired = compute
    else:
        outputs = tuple([(name, state.dt) for name, _ in outputs])
    source, cut = _in_parts(task.source, cut, state.dt, row)
    return _Task(state, source, cut, row, outputs, pairs=True)


def _plainly(source: Source, compute: dtype) -> bool:
    """Return whether the reduced values are one operand as it lies in memory."""
    return len(source.leaves) == 1 and not source.nodes and source.leaves[0][1] is compute


def _in_parts(source: Source, cut: Split, real: dtype, row: bool) -> tuple[Source, Split]:
    """Return a source and split that view complex numbers as twice as many real ones.

    The complex numbers are contiguous along the reduced dims (`row`) or along the kept ones.
    """
    (leaf,) = source.leaves
    kept, reduced = (
        tuple([tuple([2 * s for s in steps]) for steps in strides])
        for strides in (cut.kept_strides, cut.reduced_strides)
    )
    if row:
        ((*outer, _),) = reduced
        cut = cut._replace(
            reduced=(*cut.reduced[:-1], 2 * cut.reduced[-1]),
            kept_strides=kept,
            reduced_strides=((*outer, 1),),
            nred=2 * cut.nred,
        )
    else:
        ((*outer, _),) = kept
        cut = cut._replace(
            kept=(*cut.kept[:-1], 2 * cut.kept[-1]),
            kept_strides=((*outer, 1),),
            reduced_strides=reduced,
            nout=2 * cut.nout,
        )
    return source._replace(leaves=((leaf[0], real, leaf[2], leaf[3]),)), cut


def _require(
    backend: Backend, source: Source, compute: dtype, outputs: Sequence[tuple[str, dtype]]
) -> None:
    for dt in (
        compute,
        *(leaf[1] for leaf in source.leaves),
        *(node.compute for node in source.nodes),
        *(o[1] for o in outputs),
    ):
        backend.require(dt)


def _weight(reader: Reader, state: State) -> int:
    """Estimate the work of an element: 1 for a plain sum."""
    weight = 1 + sum(8 if node.op.heavy else 1 for node in reader.program.nodes)
    return weight + (0 if state.light else 8) + 2 * len(state.block)


def _unroll(backend: Backend, reader: Reader, state: State, row: bool) -> int:
    """Return how many vectors a CPU work-item reads per step: neighbours in a row, or in 'col' of several rows."""
    weight = _weight(reader, state) - 1
    # Costly elements fill the registers, sooner where a vector takes two of them.
    if weight > 8:
        return 1 if weight > 16 or (row and backend.info.native_lanes < WIDEST) else 2
    if not row:
        # Positions of extremes look at the vectors twice, so that all of them have to stay in registers.
        return 4 if state.needs_index and backend.info.native_lanes < WIDEST else 8
    return 4 if len(state.block) <= 2 else 2  # the accumulators stay in registers


def _narrow(cut: Split, reader: Reader, state: State, least: int) -> int:
    """Return the vectors of a row of outputs, if their states fit registers while many rows are read; else 0.

    `least`: numbers of the whole reduction, at least.
    """
    vectors = -(-cut.kept[-1] // reader.lanes)
    if "col" in state.ahead or cut.nout * cut.nred < least:
        return 0
    short = 2 < vectors < SHORT[0] and vectors * len(state.block or state.fields) <= NARROW
    return int(vectors) if short else 0


def _folded(task: _Task, lanes: int) -> _Task:
    """Take several adjacent rows of few numbers as one row, so that it fills several vectors of `lanes`.

    Rows are left over only where states stay in registers (see `_narrow`).
    """
    state, cut = task.state, task.cut
    one = len(cut.kept) == len(cut.reduced) == 1
    if not one or state.needs_index or cut.nout * cut.nred < NARROW_LEAST:
        return task
    width, rows = cut.kept[0], cut.reduced[0]
    layouts = zip(cut.kept_strides, cut.reduced_strides, cut.constant, strict=False)
    read = [(k, r) for k, r, constant in layouts if not constant]
    if not 1 < width < lanes or not read or any(steps != ((1,), (width,)) for steps in read):
        return task
    most = 4 * lanes // width
    times = next((n for n in range(most, 2 * lanes // width, -1) if rows % n == 0), 0)
    if not times:
        if "col" in state.ahead:
            return task
        times = most
    count, left = times * width, rows % times * width
    across = tuple([(k[0] and 1,) for k in cut.kept_strides])
    along = tuple([(r[0] and count,) for r in cut.reduced_strides])
    rows //= times
    cut = Split((count,), (rows,), across, along, cut.constant, count, rows)
    return task._replace(cut=cut, row=False, folded=times, rest=left)


def _abreast(cut: Split, state: State, parts: int | None) -> bool:
    """Return whether lanes are merged for several rows at once: for short rows that takes longer than reading them."""
    if state.prime or state.needs_index or state.dt.is_complex or not state.light:
        return False
    short = len(cut.reduced) == 1 and 1 < cut.nred < ABREAST * (1 if state.block else 4)
    large = cut.nout >= ABREAST and cut.nout * cut.nred >= NARROW_LEAST
    return bool(short and large and parts is None)


def _divide_cpu(
    backend: Backend,
    cut: Split,
    row: bool,
    lanes: int,
    vectors: int,
    parts: int | None,
    alone: bool,
    grain: int,
) -> _Work:
    """Divide a reduction among a CPU's work-items, which read `vectors` together.

    alone: one work-item, if `parts` does not ask for more. grain: in 'col', outputs per item are a multiple of this.
    """
    total = cut.nout * max(cut.nred, 1)
    # Enough items that threads which finish early find more work; fewer for 'col', whose parts are dear to merge.
    most = 1 if alone else backend.info.compute_units * (16 if row else 8)
    items = max(1, min(most, total // GRAIN))
    width = vectors * lanes
    if row:
        ochunk = max(1, -(-cut.nout // items))
        wanted = 1 if cut.nout >= items else -(-items // cut.nout)
    else:
        # Prefer long runs of neighbouring outputs to more parts: rows are then read in runs of a page.
        ochunk = max(1, -(-cut.nout // items))
        if cut.nred >= 512:
            ochunk = max(ochunk, min(cut.kept[-1], width))
        ochunk = -(-ochunk // grain) * grain
        wanted = -(-items // -(-cut.nout // ochunk))
    wanted = max(parts or wanted, -(-cut.nred // (1 << 30)))
    pchunk = max(1, -(-cut.nred // wanted))
    if row:
        pchunk = -(-pchunk // width) * width
    parts = max(1, -(-cut.nred // pchunk))
    return _Work(1, -(-cut.nout // ochunk) * parts, ochunk, parts, pchunk)


def _by_last(lanes: Division, nout: int) -> bool:
    """Return whether merging the parts in the last group to finish takes less time than in a second launch."""
    return 1 < lanes.parts <= BY_LAST // nout and nout <= BY_LAST_OUTPUTS * lanes.across


def _merge(
    backend: Backend,
    state: State,
    outputs: Outputs,
    fields: list[Buffer],
    results: list[Buffer],
    nout: int,
    parts: int,
    scale: float | None,
    gpu: bool,
) -> None:
    """Merge the states of parts, whose `fields` are in these buffers, into results."""
    lanes = divide_merge(backend.info, nout, parts, sum(sizes(state))) if gpu else None
    kernel = merging(backend, state, outputs, lanes)
    # Outputs per work-item on a CPU, which merges a cache line of them at a time.
    chunk = 1 if lanes else max(1, -(-nout // (backend.info.compute_units * 4)))
    args: list = [nout, chunk, parts]
    if state.scale:
        args.append(scale)
    items, group = (lanes.groups * lanes.group, lanes.group) if lanes else (-(-nout // chunk), 1)
    backend.launch(kernel, (items,), (group,), [*args, *fields, *results], 0)
