"""Sorting kernels: sort, topk, k-th values, medians, modes, binary search and the uniques of a
sorted row.

Sorts are stable on order-preserving unsigned keys (NaN is the largest value, -0 equals 0), so a
kernel depends on how values are stored and never on arithmetic. CPU schedule: radix sort of whole
rows, long rows in parts that are then merged in parallel. GPU schedule: radix sort, of rows that local
memory holds there, of others in passes over memory. Knows operands and backends, nothing of tensors.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from ... import dtypes
from ..index.moves import Through, move
from ..move.copies import copy_strided, dense
from ..operand import Operand
from ..region import GRAIN, Dims, empty, index_type, is_gpu, moved_last, narrow, run, workers
from ..source import include
from .mask import run_numbers, run_values

if TYPE_CHECKING:
    from ...runtime import Backend, Buffer

# A work-group has TILE_LANES lanes. A lane holds at most TILE_MOST elements, but TILE_ITEMS if no row needs more: with
# more, registers and local memory let fewer groups run at once.
TILE_LANES, TILE_MOST, TILE_ITEMS = 256, 16, 8
_CHUNKS = 1024  # chunks of a row, at most; a group counts the digits of each
_SEGMENTS = 32  # segments of chunks, at most, whose counts are added up by lanes side by side
# The largest k of `topk` for which sort/topk.mako finds the elements; for sort/first.mako, on a CPU.
_TOPK_MOST, _FIRST_MOST = 64, 1024
# CHOSEN_LANES: lanes of a group that picks elements of a row without sorting. CHOSEN_ALONE: elements of a row, at most,
# for that, if there are few rows.
CHOSEN_LANES, CHOSEN_ALONE = 1024, 1 << 17
_TURN = 1 << 12  # elements from which on strided rows are copied to contiguous memory first


def _sortable(x: Operand, what: str) -> None:
    if x.dtype.is_complex:
        raise NotImplementedError(f"\"{what}\" not implemented for '{x.dtype.scalar_name}'")
    if x.shape and max(x.shape) >= 2**32 - 1:
        raise RuntimeError(f"{what}: rows of 2**32 elements and more are not supported")


def _key_type(dt: dtypes.dtype) -> dtypes.dtype:
    """Return the dtype that stands for all whose keys are made alike (uint8 for bool)."""
    return dtypes.uint8 if dt is dtypes.bool else dt


def _lift(x: Operand, dim: int) -> Operand:
    """Return a view with `dim` as the last dim; of a 0-d operand as one row of one element."""
    if not x.shape:
        return x._replace(shape=(1,), strides=(1,))
    return moved_last(x, dim)


class _Rows:
    """Rows of a source and of its results, in the argument order of the sort kernels."""

    def __init__(self, src: Operand, *results: Operand) -> None:
        every = (src, *results)
        self.buffers = [x.buffer for x in every]
        self.length = src.shape[-1]
        self.dims = Dims(src.shape[:-1], [x.strides[:-1] for x in every])
        self.rows = self.dims.n
        self.offsets = [x.offset for x in every]
        self.steps = [x.strides[-1] for x in every]
        self.nbytes = math.prod(src.shape) * sum(x.dtype.itemsize for x in every)


class _Sorting:
    """One sort of the rows (last dim) of `src` into strided operands of the same shape, with its scratch memory.

    Scratch memory has two halves of keys, and of the keys' positions where these are wanted.
    """

    def __init__(
        self,
        backend: Backend,
        src: Operand,
        values: Operand,
        indices: Operand | None,
        descending: bool,
    ) -> None:
        results = [values, *([indices] if indices else [])]
        self.backend, self.rows, self.order = backend, _Rows(src, *results), indices is not None
        self.total = self.rows.rows * self.rows.length
        self.dt = _key_type(src.dtype)
        rank = self.rows.dims.rank
        self.key: dict[str, Any] = {
            "dt": self.dt,
            "descending": descending,
            "rank": rank,
            "I": index_type(backend, src, *results),
            "order": self.order,
        }
        way = "desc" if descending else "asc"
        self.name = f"{self.dt.code}_{way}_r{rank}{'' if self.order else '_values'}"
        self.scratch: list[Buffer] = []

    def take(self, half: int) -> None:
        """Allocate scratch memory for `half` keys in each half.

        On a CPU a key and its position share a word of 8 bytes, the key in the upper bits, unless keys have 8 bytes.
        """
        word, places = self.dt.itemsize, self.order
        if places and not is_gpu(self.backend):
            word, places = 8, word == 8
        self.scratch = [self.backend.alloc(2 * half * word)]
        self.scratch += [self.backend.alloc(2 * half * 4)] * places

    def launch(
        self,
        template: str,
        what: str,
        scalars: list[int],
        work: int | tuple[int, int],
        **more: Any,
    ) -> None:
        """Run one kernel."""
        r = self.rows
        run(
            self.backend,
            template,
            f"{what}_{self.name}",
            [*r.buffers, *self.scratch],
            [r.length, r.rows, *scalars, *r.offsets, *r.steps, *r.dims.args()],
            work,
            r.nbytes,
            **self.key,
            **more,
        )

    def merge(self, span: int, half: int, work: int) -> None:
        """Merge sorted runs of `span` keys until a row is one run; the last merge writes the results."""
        a, b = 0, half
        while span < self.rows.length:
            last = 2 * span >= self.rows.length
            what = "sort_last" if last else "sort_merge"
            self.launch("sort/merge", what, [span, a, b], work, final=last)
            a, b = b, a
            span *= 2


def _sort(
    backend: Backend,
    src: Operand,
    values: Operand,
    indices: Operand | None,
    descending: bool,
    bits: int | None = None,
) -> None:
    """Sort the rows (last dim) of `src` into `values` and, if wanted, `indices`, strided operands of the same shape.

    `bits`: keys differ in no higher bits than these lowest ones; a GPU then skips the other digits.
    """
    sorting = _Sorting(backend, _along(backend, src), values, indices, descending)
    if sorting.total and is_gpu(backend):
        _sort_on_gpu(sorting, -(-(bits or 8 * src.dtype.itemsize) // 8))
    elif sorting.total:
        _sort_rows(sorting)


def _sort_rows(sorting: _Sorting) -> None:
    """Sort on a CPU: whole rows, or if there are few and long ones, parts of rows that are then merged."""
    backend, total = sorting.backend, sorting.total
    rows, length = sorting.rows.rows, sorting.rows.length
    work, units, chunks = workers(backend, total), backend.info.compute_units, 1
    ahead = include("ahead")
    if rows < units and length >= 4 * GRAIN:
        while chunks * rows < units:
            chunks *= 2
    if chunks == 1:
        work = min(work, rows)
        sorting.take(work * length)
        sorting.launch(
            "sort/rows", "sort_rows", [1, work * length], work, final=True, headers=ahead
        )
        return
    work = min(rows * chunks, 4 * units)
    sorting.take(total)
    sorting.launch("sort/rows", "sort_part", [chunks, total], work, final=False, headers=ahead)
    sorting.merge(-(-length // chunks), total, work)


def _sort_on_gpu(sorting: _Sorting, passes: int) -> None:
    """Sort on a GPU: rows that fit local memory there, others by the `passes` lowest digits of eight bits."""
    info, word = sorting.backend.info, max(4, sorting.dt.itemsize)
    lanes, items = min(TILE_LANES, info.max_group), TILE_MOST
    while items > 1 and _local_bytes(lanes, items, word) > info.local_mem:
        items //= 2
    how = {"lanes": lanes, "word": "ulong" if word == 8 else "uint"}
    if sorting.rows.length <= lanes * items:
        _sort_in_tiles(sorting, passes, items, how)
    else:
        _sort_by_digits(sorting, passes, min(items, TILE_ITEMS), how)


def _local_bytes(lanes: int, items: int, word: int) -> int:
    """Return the local memory for a tile of lanes * items keys: what sort/ranks.mako and sort/radix.mako declare."""
    keys = lanes * (items + 1) * (word + 2)  # `staged` and `held`
    counts = lanes * (9 + 2) * 4  # `counts` and `sums`
    return keys + counts + 3 * 256 * 4 + 8  # `next`, `start` and `stop`; `alike`


def _sort_in_tiles(sorting: _Sorting, passes: int, items: int, how: dict[str, Any]) -> None:
    """Sort in one launch; a group takes as many whole rows as fit its tile of at most `items` keys per lane."""
    rows, length, lanes = sorting.rows.rows, sorting.rows.length, how["lanes"]
    # The cost of summing digits' counts is shared by a lane's elements; if there is little to sort, more lanes with
    # fewer elements take less time.
    much = 8 * sorting.backend.info.compute_units * lanes * TILE_ITEMS
    enough = TILE_ITEMS if rows * length >= much else 1
    while items > enough and length <= lanes * items // 2:
        items //= 2
    per = lanes * items // length
    work = min(-(-rows // per), 1 << 16) * lanes, lanes
    digits = 2 * passes  # of four bits
    sorting.launch("sort/tile", f"sort_tile{items}", [per, digits], work, items=items, **how)


def _sort_by_digits(sorting: _Sorting, passes: int, items: int, how: dict[str, Any]) -> None:
    """Sort long rows by one digit after the other, in three launches each; a row is cut into chunks of whole tiles."""
    rows, length, lanes = sorting.rows.rows, sorting.rows.length, how["lanes"]
    tiles = -(-length // (lanes * items))
    units = sorting.backend.info.compute_units
    each = max(-(-tiles * rows // (8 * units)), -(-tiles // _CHUNKS))  # tiles of a chunk
    chunks = -(-tiles // min(each, tiles))
    size = -(-tiles // chunks) * lanes * items
    segments = 1
    while segments < min(_SEGMENTS, chunks // 8):
        segments *= 2
    if passes > 1:
        sorting.take(sorting.total)
    alloc = sorting.backend.alloc
    sorting.scratch[:0] = [alloc(rows * (chunks + 1) * 256 * 4), alloc(rows * passes * 4)]
    groups = {
        "count": rows * chunks,
        "offsets": rows * segments * 256 // lanes,
        "move": rows * chunks,
    }
    for digit in range(passes):
        for step, count in groups.items():
            first = digit == 0 and step != "offsets"
            last = digit == passes - 1 and step == "move"
            sorting.launch(
                "sort/radix",
                f"sort_{step}{items}_{passes}{'_first' * first}{'_last' * last}",
                [chunks, size, digit, segments],
                (count * lanes, lanes),
                step=step,
                first=first,
                last=last,
                items=items,
                passes=passes,
                **how,
            )


def sort(
    backend: Backend,
    src: Operand,
    dim: int = -1,
    descending: bool = False,
) -> tuple[Operand, Operand]:
    """Return the values along `dim` in stable order, and their int64 positions; NaN counts as the largest."""
    _sortable(src, "sort")
    dim = dim % len(src.shape) if src.shape else 0
    results = empty(backend, src.dtype, src.shape), empty(backend, dtypes.int64, src.shape)
    rows = [_lift(x, dim) for x in results]
    if rows[0].strides[-1] != 1 and math.prod(src.shape) >= _TURN:
        # Sort into contiguous rows and copy: each number would otherwise be written to a cache line of its own.
        ordered = [empty(backend, x.dtype, x.shape) for x in rows]
        _sort(backend, _lift(src, dim), ordered[0], ordered[1], descending)
        for x, y in zip(ordered, rows, strict=True):
            copy_strided(backend, x, y)
    else:
        _sort(backend, _lift(src, dim), rows[0], rows[1], descending)
    return results


def sort_flat(backend: Backend, src: Operand, bits: int | None = None) -> tuple[Operand, Operand]:
    """Return a 1-D operand's values in ascending order, and positions; `bits`: if of unsigned integers, theirs."""
    if not src.shape[0] or bits is None:
        return sort(backend, src, 0)
    values, order = empty(backend, src.dtype, src.shape), empty(backend, dtypes.int64, src.shape)
    _sort(backend, src, values, order, False, bits)
    return values, order


def _sorted_values(backend: Backend, src: Operand) -> Operand:
    """Return the values of a 1-D operand in ascending order, -0 before 0."""
    _sortable(src, "sort")
    values = empty(backend, src.dtype, src.shape)
    _sort(backend, src, values, None, False)
    return values


def _along(backend: Backend, rows: Operand) -> Operand:
    """Return rows with contiguous elements: a copy by tiles if that is less work than strided reads."""
    if rows.strides[-1] == 1 or math.prod(rows.shape) < _TURN:
        return rows
    return dense(backend, rows)


def topk(
    backend: Backend, src: Operand, k: int, dim: int = -1, largest: bool = True
) -> tuple[Operand, Operand]:
    """Return the `k` largest (or smallest) values along `dim`, in order, and their positions.

    RuntimeError when `k` exceeds the size of the dim.
    """
    _sortable(src, "topk")
    dim = dim % len(src.shape) if src.shape else 0
    if k < 0 or k > (src.shape[dim] if src.shape else 1):
        raise RuntimeError("selected index k out of range")
    shape = (*src.shape[:dim], k, *src.shape[dim + 1 :]) if src.shape else ()
    values, indices = empty(backend, src.dtype, shape), empty(backend, dtypes.int64, shape)
    if not math.prod(shape) or not k:
        return values, indices
    length = src.shape[dim] if src.shape else 1
    gpu = is_gpu(backend)
    if gpu and k <= _picked(backend) and _chooses(backend, src, dim):
        lifted = [_lift(x, dim) for x in (src, values, indices)]
        _choose(backend, "topk", k, lifted[0], lifted[1], lifted[2], largest)
        return values, indices
    many = k > _FIRST_MOST or (k > 16 and (32 if k > _TOPK_MOST else 8) * k > length)
    if many or gpu:
        every = sort(backend, src, dim, largest)
        for part, result in zip(every, (values, indices), strict=True):
            copy_strided(backend, narrow(part, dim, 0, k) if src.shape else part, result)
        return values, indices
    r = _Rows(_along(backend, _lift(src, dim)), _lift(values, dim), _lift(indices, dim))
    dt = _key_type(src.dtype)
    order, unit = "max" if largest else "min", r.steps[0] == 1
    work = min(r.rows, workers(backend, r.rows * r.length))
    held, scratch = [k], []
    if k > _TOPK_MOST:
        held = [k, 4 * k]
        scratch = [backend.alloc(work * 4 * k * size) for size in (dt.itemsize, 4)]
    run(
        backend,
        "sort/first" if scratch else "sort/topk",
        f"{'first' if scratch else 'topk'}_{dt.code}_{order}_r{r.dims.rank}{'_unit' * unit}",
        [*r.buffers, *scratch],
        [r.length, r.rows, *held, *r.offsets, *r.steps, *r.dims.args()],
        work,
        r.nbytes,
        dt=dt,
        largest=largest,
        unit=unit,
        rank=r.dims.rank,
        I="long",
        most=_TOPK_MOST,
    )
    return values, indices


def _picked(backend: Backend) -> int:
    """Return how many elements of a row a GPU's work-group can pick and sort in local memory."""
    return _FIRST_MOST if backend.info.local_mem >= 1 << 15 else _FIRST_MOST // 4


def _chooses(backend: Backend, src: Operand, dim: int) -> bool:
    """Return whether a GPU's groups each pick elements from a row without sorting it.

    For rows longer than a tile, unless a few groups would have very long rows.
    """
    length = src.shape[dim] if src.shape else 1
    if length <= TILE_LANES * TILE_ITEMS:
        return False
    rows = math.prod(src.shape) // length
    return length <= CHOSEN_ALONE or 4 * rows >= backend.info.compute_units


def _choose(
    backend: Backend,
    mode: str,
    k: int,
    src: Operand,
    values: Operand,
    indices: Operand,
    largest: bool = False,
) -> None:
    r = _Rows(_along(backend, src), values, indices)
    dt, lanes = _key_type(src.dtype), min(CHOSEN_LANES, backend.info.max_group)
    run(
        backend,
        "sort/chosen",
        f"chosen_{mode}_{dt.code}_{'desc' if largest else 'asc'}_r{r.dims.rank}",
        r.buffers,
        [r.length, r.rows, k, *r.offsets, *r.steps, *r.dims.args()],
        (min(r.rows, 1 << 16) * lanes, lanes),
        r.nbytes,
        dt=dt,
        mode=mode,
        descending=largest,
        lanes=lanes,
        most=_picked(backend),
        rank=r.dims.rank,
        I=index_type(backend, src, values, indices),
    )


def _select(
    backend: Backend, src: Operand, dim: int, mode: str, k: int = 1
) -> tuple[Operand, Operand]:
    _sortable(src, mode)
    shape = (*src.shape[:dim], *src.shape[dim + 1 :])
    values, indices = empty(backend, src.dtype, shape), empty(backend, dtypes.int64, shape)
    if not math.prod(shape):
        return values, indices
    rows = _lift(src, dim)
    dt = _key_type(src.dtype)
    places = [x._replace(shape=(*x.shape, 1), strides=(*x.strides, 1)) for x in (values, indices)]
    gpu = is_gpu(backend)
    if gpu and mode != "mode" and _chooses(backend, src, dim):
        _choose(backend, mode, k, rows, places[0], places[1])
        return values, indices
    if mode == "mode" or gpu:
        ordered = empty(backend, src.dtype, rows.shape)
        order = empty(backend, dtypes.int64, rows.shape)
        _sort(backend, rows, ordered, order, False)
        dims = Dims(shape, [values.strides, indices.strides])
        run(
            backend,
            "sort/pick",
            f"pick_{mode}_{dt.code}_r{dims.rank}",
            [ordered.buffer, order.buffer, values.buffer, indices.buffer],
            [rows.shape[-1], dims.n, k, 0, 0, *dims.args()],
            dims.n if gpu else min(dims.n, workers(backend, math.prod(src.shape))),
            math.prod(src.shape) * dt.itemsize,
            dt=dt,
            mode=mode,
            rank=dims.rank,
            I=index_type(backend, ordered, order),
            gpu=gpu,
        )
        return values, indices
    r = _Rows(_along(backend, rows), *places)
    work = min(r.rows, workers(backend, r.rows * r.length))
    scratch = backend.alloc(work * r.length * dt.itemsize)
    run(
        backend,
        "sort/select",
        f"select_{mode}_{dt.code}_r{r.dims.rank}",
        [*r.buffers, scratch],
        [r.length, r.rows, k, *r.offsets, r.steps[0], *r.dims.args()],
        work,
        r.nbytes,
        dt=dt,
        mode=mode,
        rank=r.dims.rank,
        I="long",
    )
    return values, indices


def _nonempty(src: Operand, dim: int, name: str) -> int:
    dim = dim % len(src.shape) if src.shape else 0
    if src.shape and not src.shape[dim]:
        raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")
    return dim


def kthvalue(backend: Backend, src: Operand, k: int, dim: int = -1) -> tuple[Operand, Operand]:
    """Return the `k`-th smallest value along `dim` (from 1) and its position, the first of
    equals on a CPU.
    """
    dim = dim % len(src.shape) if src.shape else 0
    if not 1 <= k <= (src.shape[dim] if src.shape else 1):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {dim}")
    return _select(backend, src, dim, "kth", k)


def median(
    backend: Backend, src: Operand, dim: int, ignore_nan: bool = False
) -> tuple[Operand, Operand]:
    """Return the lower median along `dim` and its position; NaN if there is one, or of the
    others with `ignore_nan`.
    """
    name = "nanmedian" if ignore_nan else "median"
    return _select(backend, src, _nonempty(src, dim, name), name)


def mode(backend: Backend, src: Operand, dim: int = -1) -> tuple[Operand, Operand]:
    """Return the most frequent value along `dim`, the smallest of equally frequent ones, and its
    last position.
    """
    return _select(backend, src, _nonempty(src, dim, "mode"), "mode")


def searchsorted(
    backend: Backend,
    sorted: Operand,
    values: Operand,
    right: bool = False,
    out_dtype: dtypes.dtype = dtypes.int64,
    sorter: Operand | None = None,
) -> Operand:
    """Return where each value goes in its sorted row: `sorted` is 1-D, or has the leading dims of
    `values`.

    `sorter` (int64, shape of `sorted`) gives the order of an unsorted `sorted`. Both operands have
    one dtype.
    """
    result = empty(backend, out_dtype, values.shape)
    n = math.prod(values.shape)
    if not n:
        return result
    length = sorted.shape[-1]
    flat = len(sorted.shape) == 1

    def over(x: Operand) -> tuple[int, ...]:
        return (0,) * len(values.shape) if flat else (*x.strides[:-1], 0)

    extra = [] if sorter is None else [sorter]
    dims = Dims(values.shape, [over(sorted), values.strides, result.strides, *map(over, extra)])
    gpu = is_gpu(backend)
    side = "right" if right else "left"
    many = 16 if dims.sizes[-1] >= 8 and not dims.strides[0][-1] else 1  # searches of one row
    run(
        backend,
        "sort/search",
        f"search_{side}_{values.dtype.code}_r{dims.rank}_n{many}",
        [x.buffer for x in (sorted, values, result, *extra)],
        [n, length, sorted.strides[-1], sorted.offset, values.offset, 0]
        + [v for x in extra for v in (x.strides[-1], x.offset)]
        + [*dims.args()],
        n if gpu else workers(backend, n * max(1, length.bit_length())),
        n * (values.dtype.itemsize + 8),
        dt=values.dtype,
        out=out_dtype.cl,
        right=right,
        sorter=sorter is not None,
        rank=dims.rank,
        many=many,
        I=index_type(backend, sorted, values, *extra),
        gpu=gpu,
    )
    return result


class Unique(NamedTuple):
    """Distinct values, and what else was asked for."""

    values: Operand
    # int64: the index among `values` of each element; None if not asked for.
    inverse: Operand | None
    # int64: where the run of each value begins, from which `run_lengths` tells how often it occurs; None if not asked
    # for.
    starts: Operand | None
    valid: Operand | None  # int64: how many of values and starts are valid; None: all


def unique_consecutive(
    backend: Backend, src: Operand, inverse: bool = True, starts: bool = True
) -> Unique:
    """Return, for a 1-D operand, the first of each run of equal values, the run of each position, and where each run
    begins.

    NaNs differ from each other. On sorted values this is `unique`. The number of runs is read back, unless `src` is
    small.
    """
    if not src.shape[0]:
        none = empty(backend, dtypes.int64, (0,))
        values = empty(backend, src.dtype, (0,))
        return Unique(values, none if inverse else None, none if starts else None, None)
    values, begun, count = run_values(backend, src, starts)
    return Unique(values, run_numbers(backend, src) if inverse else None, begun, count)


def unique(backend: Backend, src: Operand, inverse: bool = True, starts: bool = True) -> Unique:
    """Return the sorted unique values of `src`, where each element is among them (shape of
    `src`), and where each value's run begins among the sorted elements.
    """
    flat = dense(backend, src)
    flat = flat._replace(shape=(math.prod(src.shape),), strides=(1,))
    if not inverse or not flat.shape[0]:
        found = unique_consecutive(backend, _sorted_values(backend, flat), False, starts)
        return found._replace(inverse=empty(backend, dtypes.int64, src.shape)) if inverse else found
    ordered, order = sort_flat(backend, flat)
    found = unique_consecutive(backend, ordered, True, starts)
    assert found.inverse is not None
    places = empty(backend, dtypes.int64, src.shape)
    # A permutation has no duplicates, so the order of writes does not matter.
    through = [Through(order, (1,), flat.shape[0], 1)]
    move(backend, "set", places, found.inverse, flat.shape, (0,), (1,), through, describe=_never)
    return found._replace(inverse=places)


def _never(value: int, ordinal: int) -> Exception:
    return AssertionError(f"position {value} of a sort")
