"""The reduction family: a fused expression is reduced over any dims of any layout in one or two launches.

Chooses between vectors along the reduced dims ('row') and along the kept ones ('col'), or a GPU's lanes (gpu.py), and how
many parts an output is cut into where outputs are few. Results are dense over the kept dims. Deterministic: the same
shapes on the same device always add in the same order. Knows nothing of tensors and pending values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...dtypes import dtype
from ...layouts import contiguous_strides
from ...symbols import remembered
from ..language import convert
from ..operand import Operand
from ..pointwise import Memory, scalar_type
from ..region import LINE
from ..source import include, lane_macros, render
from .arrivals import SHOW, announces, arrivals
from .extremes import Extreme
from .gpu import AT_ONCE, LEAST, Division, divide, divide_merge
from .prologue import Reader, Source, Split, along_reduced, split
from .state import BLOCK, State
from .states import KINDS

if TYPE_CHECKING:
    from ...runtime import Backend, Buffer

GRAIN = 16384  # elements that are worth a CPU work-item
PACE = 20_000  # elements times their weight per microsecond of one CPU thread
# On a GPU: a chain that costs more than WRITTEN_OUT is in the kernel's text only once, in a loop, instead of once for
# each of the elements that a lane reads at once; with more than MANY_READ operands, a lane reads fewer elements at
# once.
WRITTEN_OUT, MANY_READ = 64, 3
# The last work-group of a GPU's launch merges the parts of all groups if these are at most BY_LAST states, and at most
# BY_LAST_OUTPUTS outputs for each of its lanes.
BY_LAST, BY_LAST_OUTPUTS = 1 << 14, 4
# Limits, in bytes and in vectors, of the running states of a strip of outputs in 'col': a work-item passes over the
# whole strip with a few rows before it takes the next ones, so that states are loaded and stored once for several rows.
COL_BYTES = 1 << 15
COL_VECTORS = 256
# In 'col', rows are read one after another, instead of several together, if a strip has at least SHORT[0] vectors and
# at most SHORT[1], or SHORT[2] for a state with `together`.
SHORT = (8, 64, 24)
WIDEST = 16  # lanes of the widest registers
# NARROW: vectors of states that registers hold while many short rows are read. NARROW_LEAST: elements from which on a
# reduction is worth a kernel built for its length of rows.
NARROW, NARROW_LEAST = 28, 1 << 17
# The lanes of rows of fewer than ABREAST numbers are merged together with those of other rows; for states without a
# block (extremes, whose merges test for NaN) of four times as many. Vectors then run along rows of at least
# ABREAST_LEAST numbers.
ABREAST_LEAST, ABREAST = 10, 64
# Prefetch distance in bytes along rows: hardware prefetches end at a page
FURTHER = 1 << 13
_NUMPY = {"uchar": np.uint8, "char": np.int8, "ushort": np.uint16, "short": np.int16, "uint": np.uint32, "int": np.int32, "ulong": np.uint64, "long": np.int64, "float": np.float32, "double": np.float64, "float2": np.complex64, "double2": np.complex128}  # fmt: skip

_kernels: dict[tuple, Any] = {}


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
    kernel, cut, parts, scaled = plan.kernel, plan.cut, plan.parts, plan.scaled
    if kernel is None:
        return results
    targets = last = [r.buffer for r in results]
    if parts * plan.folded > 1:
        targets = [backend.alloc(plan.nout * plan.folded * parts * size) for size in plan.stored]
    args = [cut.nout, plan.ochunk, cut.nred, parts, plan.pchunk]
    if plan.pairs:
        leaves = [(b, dt, strides, 2 * at) for b, dt, strides, at in source.leaves]
        source = source._replace(leaves=tuple(leaves))
    args += plan.reader.arguments(source, cut)
    if scaled:
        args.append(scale)
    if plan.rest:
        args.append(plan.rest)
    n = cut.nout * cut.nred
    nbytes = sum([min(leaf[0].nbytes, n * leaf[1].itemsize) for leaf in source.leaves])
    if plan.joined:
        targets = [*targets, arrivals(backend), *last]
    backend.launch(kernel, (plan.items,), (plan.group,), [*args, *targets], nbytes)
    if not plan.joined and parts * plan.folded > 1:
        _merge(
            backend, kind, compute, tuple(outputs), targets, results, plan.nout, parts * plan.folded, scale, plan.gpu
        )  # fmt: skip
    return results


class _Plan(NamedTuple):
    """A kernel and its division of work, for all reductions of one pattern; no kernel where there are no outputs."""

    kept: tuple[int, ...]  # the result's shape
    strides: tuple[int, ...]  # the result's
    nout: int  # outputs: elements of the result
    kernel: Any
    cut: Split  # of the dims as the kernel sees them (complex numbers as pairs, rows folded)
    reader: Reader
    gpu: bool
    scaled: bool  # whether this kernel (not that of the merge) divides by `scale`
    stored: tuple[int, ...]  # bytes of each field of a part's state
    group: int  # work-items of a group
    items: int  # work-items of the launch
    ochunk: int  # outputs of a work-item on a CPU
    parts: int  # parts into which an output's elements are divided; more than one are merged
    pchunk: int  # elements of a part
    pairs: bool  # whether complex numbers are read as twice as many real ones
    folded: int  # rows that are taken side by side as one (see `_folded`); each of them makes a part of its own
    rest: int  # numbers of the rows left over by that
    joined: bool  # whether the last group to finish merges the parts


@remembered(4096)
def _plan(
    backend: Backend,
    wake_us: int,
    kind: str,
    source: Source,
    dims: tuple[int, ...],
    compute: dtype,
    outputs: tuple[tuple[str, dtype], ...],
    schedule: str | None,
    parts: int | None,
) -> _Plan:
    shape = source.shape
    kept = tuple([n for d, n in enumerate(shape) if d not in dims])
    _require(backend, source, compute, outputs)
    state = KINDS[kind](compute)
    cut = split(shape, tuple([leaf[2] for leaf in source.leaves]), dims, ordered=state.needs_index)
    gpu = backend.info.kind != "cpu" if schedule is None else schedule.startswith("gpu")
    if schedule is None:
        row = along_reduced(cut, LEAST) if gpu else along_reduced(cut)
        abreast = not gpu and _abreast(cut, state, parts)
        row = row or (abreast and along_reduced(cut, ABREAST_LEAST))
    else:
        row, abreast = schedule in ("row", "gpu-row"), False
    width = 1 if gpu else backend.info.lanes

    def read(row: bool, values: list[dtype]) -> Reader:
        return Reader(
            source,
            cut,
            row=row,
            lanes=width,
            outputs=values,
            beside=[dt for name, dt in outputs if name == "index"],
            wide=state.dt.itemsize > 4,
            gpu=gpu,
        )

    values = [dt for name, dt in outputs if name != "index"]
    pairs = not gpu and state.pairs and compute.is_complex and _plainly(source, compute)
    if pairs:
        along = cut.reduced_strides[0][-1] == 1
        across = cut.kept_strides[0][-1] == 1 < cut.kept[-1]
        row = row and (along or not across or schedule == "row")
        pairs = not cut.constant[0] and (along if row else across)
    stored, made = tuple(_sizes(state)), outputs
    if pairs:
        state = KINDS[kind](compute.to_real())
        state.turns, values = True, [state.dt] * len(values)
        if row:
            state.paired = compute
        else:
            made = tuple([(name, state.dt) for name, _ in outputs])
        source, cut = _in_parts(source, cut, state.dt, row)
    folded, rest = 1, 0
    if not (gpu or schedule or parts or state.paired):
        folded, rest, cut = _folded(cut, state, read(False, values).lanes)
        row = row and folded == 1
    reader = read(row, values)
    unroll = 1 if gpu else _unroll(backend, reader, state, row)
    lanes: Division | None = None
    narrow = 0
    if not cut.nout:
        division, kernel, joined = (1, 0, 0, 1, 0), None, False
    else:
        if gpu:
            wide = max(state.dt.itemsize, *[dt.itemsize for dt in reader.types]) > 4
            lanes = divide(backend.info, cut, row, sum(_sizes(state)), wide, parts)
            division = lanes.group, lanes.groups * lanes.group, 1, lanes.parts, lanes.pchunk
        else:
            vectors = unroll if row else _col_vectors(state, reader.lanes)
            alone = cut.nout * cut.nred * _weight(reader, state) < PACE * wake_us
            narrow = 0 if row else _narrow(cut, reader, state, 0 if rest else NARROW_LEAST)
            assert narrow or not rest
            grain = cut.kept[-1] if narrow else reader.lanes
            division = 1, *_plan_cpu(backend, cut, row, reader.lanes, vectors, parts, alone, grain)
        abreast = abreast and row and reader.lanes > 1 and division[3] == 1
        joined = lanes is not None and announces(backend) and _by_last(lanes, cut.nout)
        kernel = _kernel(
            backend,
            state,
            reader,
            unroll,
            lanes,
            made,
            division[3] * folded > 1,
            narrow,
            rest > 0,
            abreast,
            KINDS[kind](compute, merging=True) if joined else None,
        )
    scaled = state.scale and (joined or division[3] * folded == 1)
    return _Plan(
        kept,
        contiguous_strides(kept),
        math.prod(kept),
        kernel,
        cut,
        reader,
        gpu,
        scaled,
        stored,
        *division,
        pairs,
        folded,
        rest,
        joined,
    )


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


def _stored(state: State) -> list[str]:
    return [kind for _, kind in state.partial("", 1, "0")]


def _sizes(state: State) -> list[int]:
    return [np.dtype(_NUMPY[t]).itemsize for t in _stored(state)]


def _prefetches(schedule: str, state: State, reader: Reader) -> bool:
    """Return whether a CPU's kernel asks for the next elements ahead, as memory would idle otherwise.

    That is so where an update takes long, or the elements of a row are widened from 16 bits (measured; not from 8).
    """
    short = any(cls == "v" and dt.itemsize == 2 for dt, cls in reader.program.leaves)
    return schedule in state.ahead or (schedule == "row" and short)


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


def _col_vectors(state: State, lanes: int) -> int:
    """Return how many vectors of outputs a strip of 'col' has, such that their states stay in a core's own cache."""
    fields = state.block or state.fields
    size = sum(np.dtype(_NUMPY[t]).itemsize for _, t, _ in fields) * lanes
    return max(16, min(COL_VECTORS, COL_BYTES // size))


def _narrow(cut: Split, reader: Reader, state: State, least: int) -> int:
    """Return the vectors of a row of outputs, if their states fit registers while many rows are read; else 0.

    `least`: numbers of the whole reduction, at least.
    """
    vectors = -(-cut.kept[-1] // reader.lanes)
    if "col" in state.ahead or cut.nout * cut.nred < least:
        return 0
    short = 2 < vectors < SHORT[0] and vectors * len(state.block or state.fields) <= NARROW
    return int(vectors) if short else 0


def _folded(cut: Split, state: State, lanes: int) -> tuple[int, int, Split]:
    """Take several adjacent rows of few numbers as one row, so that it fills several vectors.

    Returns how many rows, the numbers of the rows left over, and the new dims. Rows are left over only where states stay
    in registers (see `_narrow`).
    """
    whole = 1, 0, cut
    one = len(cut.kept) == len(cut.reduced) == 1
    if not one or state.needs_index or cut.nout * cut.nred < NARROW_LEAST:
        return whole
    width, rows = cut.kept[0], cut.reduced[0]
    layouts = zip(cut.kept_strides, cut.reduced_strides, cut.constant, strict=False)
    read = [(k, r) for k, r, constant in layouts if not constant]
    if not 1 < width < lanes or not read or any(steps != ((1,), (width,)) for steps in read):
        return whole
    most = 4 * lanes // width
    times = next((n for n in range(most, 2 * lanes // width, -1) if rows % n == 0), 0)
    if not times:
        if "col" in state.ahead:
            return whole
        times = most
    count, left = times * width, rows % times * width
    across = tuple([(k[0] and 1,) for k in cut.kept_strides])
    along = tuple([(r[0] and count,) for r in cut.reduced_strides])
    rows //= times
    return times, left, Split((count,), (rows,), across, along, cut.constant, count, rows)


def _abreast(cut: Split, state: State, parts: int | None) -> bool:
    """Return whether lanes are merged for several rows at once: for short rows that takes longer than reading them."""
    if state.prime or state.needs_index or state.dt.is_complex or not state.light:
        return False
    short = len(cut.reduced) == 1 and 1 < cut.nred < ABREAST * (1 if state.block else 4)
    large = cut.nout >= ABREAST and cut.nout * cut.nred >= NARROW_LEAST
    return bool(short and large and parts is None)


def _plan_cpu(
    backend: Backend,
    cut: Split,
    row: bool,
    lanes: int,
    vectors: int,
    parts: int | None,
    alone: bool,
    grain: int,
) -> tuple[int, int, int, int]:
    """Return work-items, outputs per item, parts per output, elements per part; `vectors` are read together.

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
    return -(-cut.nout // ochunk) * parts, ochunk, parts, pchunk


def _at_once(reader: Reader, state: State, lanes: Division) -> int:
    """Return how many elements a GPU's lane reads before it adds the first."""
    program = reader.program
    if sum(node.op.formula.cost for node in program.nodes) > WRITTEN_OUT or not state.light:
        return 1 if state.light else AT_ONCE // 2
    read = len(program.leaves) - len(reader.still)
    if read > MANY_READ or state.dt.itemsize > 8:
        return AT_ONCE // 2
    # States of extremes take few registers, and with lanes along outputs a compute unit has few lanes to hide latency.
    long = not reader.row and lanes.pchunk >= lanes.along * AT_ONCE * 4
    return 2 * AT_ONCE if long and isinstance(state, Extreme) else AT_ONCE


def _kernel(
    backend: Backend,
    state: State,
    reader: Reader,
    unroll: int,
    lanes: Division | None,
    outputs: tuple,
    partial: bool,
    narrow: int,
    rest: bool,
    abreast: bool,
    joining: State | None,
) -> Any:
    at_once = _at_once(reader, state, lanes) if lanes else 1
    key = (
        backend.device,
        at_once,
        state.name,
        state.dt,
        state.paired,
        state.turns and state.name,
        reader.key,
        reader.values,
        unroll,
        lanes and (lanes.across, lanes.along, lanes.narrow),
        None if partial and joining is None else outputs,
        joining is not None,
        partial,
        narrow,
        rest,
        abreast,
    )
    kernel = _kernels.get(key)
    if kernel is not None:
        return kernel
    schedule = "row" if reader.row else "col"
    i64 = np.int64
    parameters = [
        "const long nout",
        "const long ochunk",
        "const long nred",
        "const long parts",
        "const long pchunk",
        *reader.parameters(),
    ]
    types: list = [i64] * 5 + reader.argument_types()
    if state.scale and (joining is not None or not partial):
        parameters.append(f"const {_real(state.dt).reg} scale")
        types.append(scalar_type(state.dt))
    if rest:
        parameters.append("const long rest")
        types.append(i64)
    targets = _stored(state) if partial else [dt.cl for _, dt in outputs]
    parameters += [f"__global {t} *q{k}" for k, t in enumerate(targets)]
    types += [None] * len(targets)
    if joining is not None:
        parameters += ["volatile __global int *arrived"]
        parameters += [f"__global {dt.cl} *w{k}" for k, (_, dt) in enumerate(outputs)]
        types += [None] * (1 + len(outputs))
    codes = "_".join(
        dict.fromkeys(
            d.code
            for d in (*(d for d, _ in reader.program.leaves), state.dt, *(o[1] for o in outputs))
        )
    )
    ops = "".join(node.op.name + "_" for node in reader.program.nodes)[:48]
    classes = "".join(c for _, c in reader.program.leaves)
    name = f"{state.name}__{ops}{codes}__{'gpu_' if lanes else ''}{'pairs_' if state.paired else 'turns_' if state.turns and state.name == 'prod' else ''}{schedule}{f'{lanes.across}x{lanes.along}' if lanes else ''}_{classes}{reader.kept_rank}{reader.reduced_rank}{f'_n{narrow}' if narrow else ''}{'_rest' * rest}{'_abreast' * abreast}{'p' if partial else ''}{'j' if joining is not None else ''}"
    first = schedule == "row" and state.needs_index
    ahead = (first or _prefetches(schedule, state, reader)) and not lanes
    headers = (
        SHOW * (joining is not None)
        + include("ahead") * ahead
        + reader.headers(state.dt)
        + include(*state.headers)
    )
    common = {
        "fn": name, "state": state, "reader": reader, "compute": (state.dt,) * len(reader.values), "headers": headers,
        "memories": reader.memories, "parameters": parameters, "outputs": outputs, "partial": partial, "convert": convert,
    }  # fmt: skip
    if lanes:
        text = render(
            "reduce/gpu", **common, across=lanes.across, along=lanes.along, narrow=lanes.narrow,
            at_once=at_once, block=BLOCK, joining=joining,
        )  # fmt: skip
    else:
        text = render(
            "reduce/first" if first else "reduce/reduce", **common, schedule=schedule, lanes=reader.lanes, unroll=unroll,
            block=16 if first else BLOCK, vectors=_col_vectors(state, reader.lanes), ahead=ahead, short=SHORT, narrow=narrow,
            rest=rest, abreast=abreast, FURTHER=FURTHER, LINE=LINE,
        )  # fmt: skip
    kernel = _kernels[key] = backend.kernel(name, text, types)
    return kernel


def _by_last(lanes: Division, nout: int) -> bool:
    """Return whether merging the parts in the last group to finish takes less time than in a second launch."""
    return 1 < lanes.parts <= BY_LAST // nout and nout <= BY_LAST_OUTPUTS * lanes.across


def _real(dt: dtype) -> dtype:
    return dt.to_real() if dt.is_complex else dt


def _merge(
    backend: Backend,
    kind: str,
    compute: dtype,
    outputs: tuple,
    fields: list[Buffer],
    results: list[Operand],
    nout: int,
    parts: int,
    scale: float | None,
    gpu: bool,
) -> None:
    state = KINDS[kind](compute, merging=True)
    lanes = divide_merge(backend.info, nout, parts, sum(_sizes(state))) if gpu else None
    shape = lanes and (lanes.across, lanes.along, lanes.narrow)
    key = (backend.device, "merge", kind, compute, outputs, shape)
    kernel = _kernels.get(key)
    if kernel is None:
        parameters = ["const long nout", "const long ochunk", "const long parts"]
        types: list = [np.int64] * 3
        if state.scale:
            parameters.append(f"const {_real(compute).reg} scale")
            types.append(scalar_type(compute))
        parameters += [f"__global const {t} *p{k}" for k, (_, t, _) in enumerate(state.fields)]
        parameters += [f"__global {dt.cl} *q{k}" for k, (_, dt) in enumerate(outputs)]
        types += [None] * (len(state.fields) + len(outputs))
        name = f"{kind}__{compute.code}_{'_'.join(dict.fromkeys(dt.code for _, dt in outputs))}__merge{f'_gpu{lanes.across}x{lanes.along}' if lanes else ''}"
        used = [compute, *(dt for _, dt in outputs)]
        # Outputs are merged as vectors of 16, a cache line, where the state's functions take vectors.
        abreast = lanes is None and compute.reg == "float" and not state.needs_index
        head = lane_macros(16 if abreast else 1, compute.reg in ("double", "double2"))
        head += include("half") if any(d.code in ("f16", "bf16") for d in used) else ""
        head += include("complex") if any(d.is_complex for d in used) else ""
        head += include(*state.headers)
        common = {
            "fn": name, "state": state, "reader": None, "compute": (compute,), "headers": head, "memories": {dt.code: Memory(dt, 1) for dt in used},
            "parameters": parameters, "outputs": outputs, "partial": False, "convert": convert,
        }  # fmt: skip
        if lanes:
            text = render(
                "reduce/gpu", **common, across=lanes.across, along=lanes.along, narrow=lanes.narrow, at_once=1, block=BLOCK, joining=None,
            )  # fmt: skip
        else:
            text = render(
                "reduce/reduce", **common, schedule="merge", lanes=1, unroll=1, block=BLOCK, vectors=1, short=SHORT, ahead=False, FURTHER=FURTHER, LINE=LINE,
                narrow=0, rest=False, abreast=abreast,
            )  # fmt: skip
        kernel = _kernels[key] = backend.kernel(name, text, types)
    # Outputs per work-item on a CPU, which merges a cache line of them at a time.
    chunk = 1 if lanes else max(1, -(-nout // (backend.info.compute_units * 4)))
    args: list = [nout, chunk, parts]
    if state.scale:
        args.append(scale)
    items, group = (lanes.groups * lanes.group, lanes.group) if lanes else (-(-nout // chunk), 1)
    backend.launch(kernel, (items,), (group,), [*args, *fields, *[r.buffer for r in results]], 0)
