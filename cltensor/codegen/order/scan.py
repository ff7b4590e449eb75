"""Scan kernels: cumsum, cumprod, cummax, cummin and logcumsumexp along one dim.

Long rows are split in parts that are scanned in parallel from the states of the parts before them;
the split depends on shapes and the device only, so results are the same in every run. Knows
operands and backends, nothing of tensors.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from ... import dtypes
from ..move.copies import dense
from ..operand import Operand
from ..region import (
    GRAIN,
    Dims,
    empty,
    index_type,
    is_dense,
    is_gpu,
    moved_last,
    narrow,
    run,
    workers,
)
from ..source import include, lane_macros

if TYPE_CHECKING:
    from ...runtime import Backend

KINDS = ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp")
# Neighbouring rows that a CPU work-item scans together in `columns`, at least and at most.
_BLOCK = (64, 1024)
# Rows, or parts of rows, that are walked together: each row is a chain of dependent operations, and the chains of
# several rows overlap in time.
_ABREAST = 4
_BESIDE = 16  # rows of which a CPU's vector takes a step each (`beside`); half as many for doubles
# Where a step's latency is long, a long row is cut into _PIECES parts, which are scanned as rows are; a row of _LONG
# numbers and more into _MANY parts.
_PIECES, _MANY, _LONG = 64, 256, 1 << 16
_LANES = 128  # of a GPU work-group
# Bytes of adjacent elements that a GPU's lane scans by itself: _ITEMS of whole rows, _MANY_ITEMS of parts of long rows
# if no positions are wanted.
_ITEMS, _MANY_ITEMS = 32, 64
# Parts of a row on a GPU, at most: where the lanes of a group together combine the states of earlier parts, and where
# each lane does so alone.
_CHUNKS_OF_GROUPS, _CHUNKS_OF_LANES = 1024, 64
_STATE_BYTES = 32  # scratch memory for the state of a part
_SHORT_OF_LANES = 32  # length of rows up to which a GPU's lane scans a row by itself
_LINE = 16  # numbers of short rows that a vector holds
_SHORT = 64  # length of rows, at most, that share vectors with their neighbours (scan/short.mako)
_TORCH_NAMES = {
    "cummax": "cummax_cpu",
    "cummin": "cummin_cpu",
    "logcumsumexp": "logcumsumexp_out_cpu",
}


def _check(dt: dtypes.dtype, kind: str) -> None:
    if kind not in KINDS:
        raise ValueError(f"scan: unknown kind {kind!r}")
    bad = dt is dtypes.complex32
    bad |= kind in ("cummax", "cummin") and dt.is_complex
    bad |= kind == "logcumsumexp" and dt.category < dtypes.FLOATING
    if bad:
        name = _TORCH_NAMES.get(kind, f"{kind}_out_cpu")
        raise NotImplementedError(f"\"{name}\" not implemented for '{dt.scalar_name}'")


def scan(
    backend: Backend,
    src: Operand,
    dim: int,
    kind: str,
    dtype: dtypes.dtype | None = None,
    back: bool = False,
) -> Operand | tuple[Operand, Operand]:
    """Return the scan of `src` along `dim`; for cummax and cummin a pair with the int64 positions.

    `back`: scan from the end (not for cummax and cummin).
    cumsum and cumprod take `dtype` (default: int64 for integers and bool); each element is
    converted first. For equal extremes the position is that of the last; once met, a NaN stays the extreme.
    """
    ranked = kind in ("cummax", "cummin")
    target = src.dtype
    if kind in ("cumsum", "cumprod"):
        target = dtype or (dtypes.int64 if src.dtype.category < dtypes.FLOATING else src.dtype)
    _check(target, kind)
    dim = dim % len(src.shape) if src.shape else 0
    result = empty(backend, target, src.shape)
    indices = empty(backend, dtypes.int64, src.shape) if ranked else None
    if math.prod(src.shape):
        ends = [_turned(x, dim) if back else x for x in (src, result)]
        _scan(backend, ends[0], dim, kind, ends[1], indices)
    return result if indices is None else (result, indices)


def _turned(x: Operand, dim: int) -> Operand:
    """Return a view with the order along `dim` reversed."""
    if not x.shape:
        return x
    strides = tuple(-s if d == dim else s for d, s in enumerate(x.strides))
    return x._replace(strides=strides, offset=x.offset + (x.shape[dim] - 1) * x.strides[dim])


def _headers(kind: str, dt: dtypes.dtype, wide: bool, unit: bool, ahead: bool = False) -> str:
    """Return the text of the device functions that a CPU's or GPU's kernel needs.

    `wide`: states are vectors; `unit`: numbers are moved by vectors; `ahead`: the kernel prefetches.
    """
    if kind == "logcumsumexp":
        names = ["elementary/exp", "elementary/log1p"] if not dt.is_complex else []
    else:
        names = ["all_lanes"] * (wide and kind in ("cummax", "cummin"))
    if dt.itemsize == 2 and (wide or unit):
        names = ["half", *names]
    if ahead:
        names = ["ahead", *names]
    lanes = _lanes(dt) if wide or unit else 1
    return lane_macros(lanes, dt.reg == "double") + include(*names) if names else ""


def _lanes(dt: dtypes.dtype) -> int:
    """Return how many numbers a CPU's vector holds, which is also how many rows are taken together in `beside`."""
    return _BESIDE // 2 if dt.reg == "double" else _BESIDE


class _Schedule(NamedTuple):
    """How rows are walked. A GPU's kernels know only the first two."""

    columns: bool  # neighbouring rows together, step by step
    chunks: int  # parts of each row that are scanned in parallel
    adjacent: bool = False  # columns are neighbours in memory, in all operands
    unit: bool = (
        False  # operand and result are contiguous along rows, and of a dtype that vectors hold
    )
    same: bool = False  # the operand is one number along a row
    filled: bool = False  # the result is contiguous along rows, and of a dtype that vectors hold
    dense: bool = False  # operand and result are contiguous along rows, of any dtype
    beside: bool = (
        False  # as many rows at a time as a vector has lanes, a step of each in one vector
    )
    wide: bool = False  # by vectors
    apart: bool = (
        False  # the operand lies such that copying it costs less than scanning it number by number
    )
    abreast: int = (
        0  # rows or parts that are walked together, number by number; 0: one after the other
    )


def _schedule(
    backend: Backend,
    src: Operand,
    dst: Operand,
    kind: str,
    dims: Dims,
    length: int,
    steps: list[int],
) -> _Schedule:
    """Choose by layouts and the device; whether rows are neighbours in memory, the strides of `dst` decide.

    Rows of `length` elements are `steps` apart in each operand: source, result, and positions if these are wanted.
    """
    columns = dims.sizes[-1] >= 8 and abs(dims.strides[1][-1]) < abs(steps[1]) and length > 1
    if is_gpu(backend):
        # Else most lanes of a group that takes a short row would idle.
        columns = columns or 1 < length <= _SHORT_OF_LANES
        ranked = len(steps) > 2
        return _Schedule(columns, _chunks_on_gpu(backend, dst.dtype, dims, length, columns, ranked))
    return _schedule_on_cpu(backend, src.dtype, dst.dtype, kind, dims, length, steps, columns)


def _chunks_on_gpu(
    backend: Backend, dt: dtypes.dtype, dims: Dims, length: int, columns: bool, ranked: bool
) -> int:
    """Return into how many parts a GPU cuts each of `dims.n` rows."""
    units = backend.info.compute_units
    if columns:
        return max(1, min(1024 * units // dims.n, length // 16, _CHUNKS_OF_LANES))
    if dims.n >= 4 * units:
        return 1
    tile = _LANES * _items(dt, not ranked) * (2 if ranked else 1)
    return max(1, min(16 * units // dims.n, length // tile, _CHUNKS_OF_GROUPS))


def _schedule_on_cpu(
    backend: Backend, src_dt: dtypes.dtype, dt: dtypes.dtype, kind: str, dims: Dims, length: int, steps: list[int], columns: bool
) -> _Schedule:  # fmt: skip
    """Choose a CPU's schedule, given whether neighbouring rows are scanned together (`columns`)."""
    ranked, units = len(steps) > 2, backend.info.compute_units
    # Each step waits for a slow operation of the step before: products, and sums that no vectors make.
    waits = kind == "cumprod" or (kind == "cumsum" and dt.reg != "float")
    waits = waits and dt.category >= dtypes.FLOATING
    chunks = 1
    if not columns and dims.n < units:
        several = _ABREAST if waits else 1
        chunks = max(1, min(-(-4 * units * several // dims.n), length * several // GRAIN))

    held = dt.reg == "float" or (kind == "logcumsumexp" and dt.reg == "double")
    held = held and src_dt is dt  # whether vectors hold the numbers of both
    near = [s[-1] for s in dims.strides] if columns else steps  # between a vector's elements
    stored = held and length < 1 << 31 and (columns or ranked) and all(s == 1 for s in near[1:])
    # Each number of a row would take a cache line, which other rows need as well.
    across = any(
        0 < abs(s) < abs(steps[0])
        for s, n in zip(dims.strides[0], dims.sizes, strict=True)
        if n > 1
    )
    apart = columns and stored and near[0] != 1
    apart = apart or (not columns and across and dims.n * length >= GRAIN)
    dense = steps[0] == steps[1] and abs(steps[1]) == 1
    # For products, transposing vectors of rows takes more time than the steps of a few rows `abreast`.
    beside = kind == "logcumsumexp" or (kind == "cumprod" and dt.itemsize == 2)
    beside = beside and dense and held and not columns and chunks == 1
    beside = beside and min(dims.n, length) >= _lanes(dt)
    return _Schedule(
        columns,
        chunks,
        adjacent=columns and all(step == 1 for step in near),
        unit=held and dense,
        same=not columns and steps[0] == 0,
        filled=not columns and dt.reg == "float" and abs(steps[1]) == 1,
        dense=dense,
        beside=beside,
        wide=stored and near[0] == 1,
        apart=apart,
        abreast=_ABREAST if waits and not (columns or beside) else 0,
    )


def _items(dt: dtypes.dtype, many: bool) -> int:
    """Return how many adjacent elements a GPU's lane scans by itself; local memory is the same for all dtypes."""
    return (_MANY_ITEMS if many else _ITEMS) // max(4, min(dt.itemsize, 16))


def _scan(
    backend: Backend, src: Operand, dim: int, kind: str, dst: Operand, indices: Operand | None
) -> None:
    """Scan `src` along `dim` into `dst`, and into `indices` if given: by parts, short rows together, or as planned.

    Where strides along `dim` are negative, rows are walked from their end in memory.
    """
    operands = [src, dst, *([] if indices is None else [indices])]
    if not src.shape:
        operands = [x._replace(shape=(1,), strides=(1,)) for x in operands]
    lifted = [moved_last(x, dim) for x in operands]
    shape = lifted[0].shape
    length, steps = shape[-1], [x.strides[-1] for x in lifted]
    if kind == "logcumsumexp" and _splits(backend, lifted):
        _in_pieces(backend, *lifted)
        return
    back = steps[1] < 0
    ahead = [_turned(x, len(shape) - 1) if back else x for x in lifted]
    if _is_short(backend, kind, *ahead[:2]):
        _short(backend, kind, ahead, back)
        return
    dims = Dims(shape[:-1], [x.strides[:-1] for x in lifted])
    plan = _schedule(backend, src, dst, kind, dims, length, steps)
    onward = _turned(src, dim) if back else src
    if plan.apart and not is_dense(onward):
        copied = dense(backend, onward)
        _scan(backend, _turned(copied, dim) if back else copied, dim, kind, dst, indices)
        return
    _scan_rows(backend, operands, kind, plan, dims, length, steps, back)


def _scan_rows(
    backend: Backend, operands: list[Operand], kind: str, plan: _Schedule, dims: Dims, length: int, steps: list[int], back: bool
) -> None:  # fmt: skip
    """Scan rows of `length` elements, `steps` apart in each operand, as planned; `dims` are the others.

    operands: source, result, and indices if these are wanted. Rows in parts take two launches: the first computes the
    state at the end of each part, the second scans the parts from those of the parts before.
    """
    src, dst, *indices = operands
    total, pieces = dims.n * length, dims.n * plan.chunks
    tail: list[int] = []
    width = 1
    if plan.columns:
        width = dims.sizes[-1]
        tail = [width, *(s[-1] for s in dims.strides)]
        dims = Dims(dims.sizes[:-1], [s[:-1] for s in dims.strides])
    several = plan.chunks > 1
    scratch = backend.alloc(pieces * _STATE_BYTES if several else _STATE_BYTES)
    offsets = [src.offset, dst.offset, steps[0], steps[1]]
    if indices:
        offsets += [indices[0].offset, steps[2]]
    buffers = [x.buffer for x in operands] + [scratch]
    scalars = [length, dims.n, plan.chunks, *offsets, *tail, *dims.args()]
    template, variables = _variables(backend, operands, kind, plan, dims.rank, back)
    work = _work(backend, dst.dtype, plan, dims.n, width, pieces, total)
    name = _named(kind, src.dtype, dst.dtype, plan, dims.rank, back)
    nbytes = total * (src.dtype.itemsize + dst.dtype.itemsize + 8 * len(indices))
    if several:
        read = total * src.dtype.itemsize
        run(backend, template, name + "_totals", buffers, scalars, work, read, totals=True, **variables)  # fmt: skip
    run(backend, template, name, buffers, scalars, work, nbytes, totals=False, **variables)


def _variables(
    backend: Backend, operands: list[Operand], kind: str, plan: _Schedule, rank: int, back: bool
) -> tuple[str, dict[str, Any]]:
    """Return the template that scans as planned, and its variables."""
    (src, dst, *indices), gpu = operands, is_gpu(backend)
    wide, unit = plan.wide or plan.beside, plan.unit or plan.filled
    variables: dict[str, Any] = {
        "kind": kind,
        "src_dt": src.dtype,
        "dt": dst.dtype,
        "R": _register(backend, kind, dst.dtype),
        "pair": _is_pair(backend, kind, dst.dtype),
        "rank": rank,
        "I": index_type(backend, *operands),
        "columns": plan.columns,
        "headers": _headers(kind, dst.dtype, wide, unit, plan.columns and not gpu),
    }
    if gpu:
        items = _items(dst.dtype, plan.chunks > 1 and not indices)
        return "scan/lanes", variables | {"lanes": _LANES, "items": items}
    variables |= {"block": _BLOCK, "lanes": _lanes(dst.dtype), "back": back, "wide": wide}
    variables |= {"unit": plan.unit, "same": plan.same, "filled": plan.filled, "dense": plan.dense}
    variables |= {"adjacent": plan.adjacent, "beside": plan.beside, "abreast": plan.abreast}
    return "scan/rows", variables


def _work(
    backend: Backend, dt: dtypes.dtype, plan: _Schedule, rows: int, width: int, pieces: int, total: int
) -> int | tuple[int, int]:  # fmt: skip
    """Return the work-items of a launch that scans `total` elements in so many pieces.

    rows: rows, or with `columns` runs of `width` neighbouring ones.
    """
    if is_gpu(backend):
        lanes = -(-pieces // _LANES) * _LANES if plan.columns else min(pieces, 1 << 16) * _LANES
        return lanes, _LANES
    most = workers(backend, total)
    if plan.columns:
        return min(most, backend.info.compute_units, rows * -(-width // _BLOCK[0]))
    if plan.beside:
        return min(most, rows // _lanes(dt))
    return min(most, max(1, pieces // plan.abreast) if plan.abreast and plan.chunks > 1 else pieces)


def _named(
    kind: str, src_dt: dtypes.dtype, dt: dtypes.dtype, plan: _Schedule, rank: int, back: bool
) -> str:
    """Return a kernel's name: dtypes, rank and schedule."""
    said = {
        "_columns": plan.columns,
        "_adjacent": plan.adjacent,
        "_wide": plan.wide,
        "_beside": plan.beside,
        "_abreast": plan.abreast,
        "_back": back,
    }
    schedule = "".join(word for word, holds in said.items() if holds)
    return f"{kind}_{src_dt.code}_{dt.code}_r{rank}{schedule}"


def _is_short(backend: Backend, kind: str, src: Operand, dst: Operand) -> bool:
    """Return whether rows are short and the result dense: vectors then hold parts of several rows (scan/short.mako)."""
    register, length = _short_register(kind, dst.dtype), dst.shape[-1]
    # Longer rows are transposed instead, where a step costs more than that: logcumsumexp, doubles.
    most = _BESIDE - 1 if kind == "logcumsumexp" or register == "double" else _SHORT
    if is_gpu(backend) or not 2 <= length <= most:
        return False
    if kind == "cumprod" and dst.dtype is dtypes.float64:
        return False  # there is no wider type to compute in (see `_short_register`)
    if kind == "cumsum" and register == "float" and length > 2 * _LINE and length % _LINE == 0:
        return False  # rows of whole vectors share none with their neighbours
    known = src.dtype is dst.dtype and register in ("float", "double", "int", "long")
    known |= dst.dtype is dtypes.int64 and src.dtype.category < dtypes.FLOATING
    return known and is_dense(dst) and (register == dst.dtype.reg or backend.info.fp64)


def _register(backend: Backend, kind: str, dt: dtypes.dtype) -> str:
    """Return the C type that is computed in.

    With doubles on the device, these for products of float32 and complex64, and on a CPU for sums of complex64, as torch has
    it.
    """
    doubles = kind == "cumprod" and dt in (dtypes.float32, dtypes.complex64)
    doubles |= kind == "cumsum" and dt is dtypes.complex64 and not is_gpu(backend)
    return dt.reg.replace("float", "double") if doubles and backend.info.fp64 else dt.reg


def _is_pair(backend: Backend, kind: str, dt: dtypes.dtype) -> bool:
    """Return whether a second float keeps rounding errors, of sums and float32 products not made in doubles."""
    if _register(backend, kind, dt) != dt.reg:
        return False
    if kind == "cumprod":
        return dt is dtypes.float32
    return kind == "cumsum" and dt.reg in ("float", "float2")


def _short_register(kind: str, dt: dtypes.dtype) -> str:
    """Return the C type that short rows are scanned in: double for products of floats.

    The order of multiplications differs, and in one order a product can leave a float's range but not in another.
    """
    return "double" if kind == "cumprod" and dt.reg == "float" else dt.reg


def _short(backend: Backend, kind: str, lifted: list[Operand], back: bool) -> None:
    """Scan short rows, copied to dense memory if they are not adjacent; `back`: begin with the end of the last row."""
    src, dst = dense(backend, lifted[0]), lifted[1]
    length, total = dst.shape[-1], math.prod(dst.shape)
    register = _short_register(kind, dst.dtype)
    operands = [src, *lifted[1:]]
    first = total - 1 if back else 0
    exponents = kind == "logcumsumexp"
    lanes = _lanes(dst.dtype) if exponents else _LINE
    headers = lane_macros(lanes, exponents and register == "double")
    if dst.dtype.itemsize == 2:
        headers += include("half")
    if exponents:
        headers += include("elementary/exp", "elementary/log1p")
    run(
        backend,
        "scan/short",
        f"{kind}_{src.dtype.code}_{dst.dtype.code}_short{'_back' if back else ''}",
        [x.buffer for x in operands],
        [length, total // length, *(x.offset + first for x in operands)],
        min(workers(backend, total), total // length),
        sum(total * x.dtype.itemsize for x in operands),
        kind=kind, src_dt=src.dtype, dt=dst.dtype, R=register, I="long", lanes=lanes, back=back, headers=headers,
    )  # fmt: skip


def _splits(backend: Backend, lifted: list[Operand]) -> bool:
    """Return whether rows are so few and long that scanning parts of each side by side pays (`_in_pieces`)."""
    src, dst = lifted
    if is_gpu(backend) or src.dtype is not dst.dtype or dst.dtype.cl not in ("float", "double"):
        return False
    unit = src.strides[-1] == dst.strides[-1] and abs(dst.strides[-1]) == 1
    lanes = _lanes(dst.dtype)
    return unit and src.shape[-1] >= 2 * _PIECES * lanes and math.prod(src.shape[:-1]) < lanes


def _in_pieces(backend: Backend, src: Operand, dst: Operand) -> None:
    """Scan parts of rows as rows of their own, and then combine each with the result of the parts before."""
    kind, kept, length = "logcumsumexp", src.shape[:-1], src.shape[-1]
    pieces = _MANY if length >= _LONG else _PIECES
    lanes = _lanes(dst.dtype)
    piece = length // pieces // lanes * lanes
    whole, last, step = piece * pieces, len(kept), dst.strides[-1]

    def parts(x: Operand) -> Operand:
        return x._replace(
            shape=(*kept, pieces, piece), strides=(*x.strides[:-1], piece * step, step)
        )

    def rest(x: Operand) -> Operand:
        return x._replace(shape=(*kept, length - whole), offset=x.offset + whole * step)

    _scan(backend, parts(src), last + 1, kind, parts(dst), None)
    if whole < length:
        _scan(backend, rest(src), last, kind, rest(dst), None)
    ends = narrow(parts(dst), last + 1, piece - 1, 1)
    before = empty(backend, dst.dtype, (*kept, pieces))
    _scan(
        backend,
        ends._replace(shape=before.shape, strides=ends.strides[:-1]),
        last,
        kind,
        before,
        None,
    )
    dims = Dims(kept, [before.strides[:-1], dst.strides[:-1]])
    run(
        backend,
        "scan/after",
        f"{kind}_{dst.dtype.code}_after_r{dims.rank}{'_back' if step < 0 else ''}",
        [before.buffer, dst.buffer],
        [dims.n, pieces, piece, length, before.offset, dst.offset, *dims.args()],
        min(workers(backend, dims.n * length), dims.n * pieces),
        2 * dims.n * length * dst.dtype.itemsize,
        kind=kind, src_dt=dst.dtype, dt=dst.dtype, rank=dims.rank, lanes=lanes, back=step < 0, I="long", headers=_headers(kind, dst.dtype, True, True),
    )  # fmt: skip
