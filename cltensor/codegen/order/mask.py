"""Selection by mask: masked_select, nonzero, masked_scatter, and the runs of equal neighbours that
`unique` needs.

Results whose length the device counts read one small array back: the number of elements kept. Of a small mask
(`is_small`) the caller reads that number, so that the launch can be replayed. Knows operands and backends, nothing of
tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ... import dtypes
from ...layouts import numel
from ..checks import checking
from ..move.copies import dense
from ..operand import Operand
from ..region import Dims, empty, index_type, is_gpu, run, storage, workers
from .scan import scan

if TYPE_CHECKING:
    from ...runtime import Backend


def is_small(backend: Backend, n: int) -> bool:
    """Return whether a single CPU work-item both counts and moves what a mask of n elements keeps, in one launch.

    False on the meta device, where the count that is read at once raises the error.
    """
    return not is_gpu(backend) and workers(backend, n) == 1 and backend.info.has_memory


class _Places:
    """Where kept elements go: counts per work-item (CPU schedule) or an inclusive scan of the mask (GPU schedule).

    A single work-item counts while it moves the elements (`alone`), so that the total is known only afterwards.
    """

    alone = False

    def __init__(self, backend: Backend, mask: Operand) -> None:
        self.backend, self.mask = backend, mask
        self.n = numel(mask.shape)
        self.gpu = is_gpu(backend)
        if self.gpu:
            flags = self._flags()
            self.work = self.n
            flat = flags._replace(shape=(self.n,), strides=(1,))
            self.counted = dtypes.int32 if self.n < 1 << 31 else dtypes.int64
            self.buffer = scan(backend, flat, 0, "cumsum", self.counted).buffer
            return
        self.counted = dtypes.int64
        dims = Dims(mask.shape, [mask.strides])
        self.work = workers(backend, self.n)
        self.buffer = backend.alloc(8 * self.work)
        self.alone = is_small(backend, self.n)
        if not self.alone:
            self.launch("count", dims, [], [self.n, mask.offset, *dims.args()], mask.dtype)

    def _flags(self) -> Operand:
        """Return the mask as dense bool."""
        mask = dense(self.backend, self.mask)
        if mask.dtype is dtypes.bool:
            return mask
        flags = scan(
            self.backend,
            mask._replace(shape=(*mask.shape, 1), strides=(*mask.strides, 1)),
            -1,
            "cumsum",
            dtypes.bool,
        )
        assert isinstance(flags, Operand)
        return flags

    def room(self) -> int:
        """Return how many elements to allocate for the kept ones: all of them, if their number is not known yet."""
        return self.n if self.alone else self.total()

    def total(self) -> int:
        """Read back the number of kept elements; if `alone`, valid only after they were moved."""
        if self.gpu:
            size = self.counted.itemsize
            last = self.backend.read(self.buffer, size * (self.n - 1), size)
            return int(last.view(np.int32 if size == 4 else np.int64)[0])
        return int(self.backend.read(self.buffer, 0, 8 * self.work).view(np.int64).sum())

    def count(self) -> Operand | None:
        """Return the number of kept elements as an operand if `alone`, valid once they are moved; else None."""
        return Operand(self.buffer, self.counted, (1,), (1,), 0) if self.alone else None

    def launch(
        self,
        action: str,
        dims: Dims,
        operands: Sequence[Operand],
        scalars: Sequence[int],
        moved: dtypes.dtype,
        buffers: Sequence[object] = (),
    ) -> None:
        """Run one kernel of mask.mako over the mask's elements."""
        mask = self.mask
        run(
            self.backend,
            "mask",
            f"mask_{action}_{mask.dtype.code}_{self.counted.code}_b{moved.itemsize}_r{dims.rank}{'_alone' * self.alone}",
            [mask.buffer, self.buffer, *(x.buffer for x in operands), *buffers],  # type: ignore[list-item]
            scalars,
            self.work,
            self.n * (mask.dtype.itemsize + moved.itemsize),
            mask=mask.dtype,
            action=action,
            T="long" if action == "nonzero" else storage(moved),
            rank=dims.rank,
            I=index_type(self.backend, mask, *operands),
            gpu=self.gpu,
            counted=self.counted.cl,
            alone=self.alone,
            units=() if self.gpu else dims.units(),
        )


Counted = tuple[
    Operand, Operand | None
]  # elements, and of how many of them count (int64); None: of all


def masked_select(backend: Backend, src: Operand, mask: Operand) -> Counted:
    """Return the elements of `src` where `mask` (same shape, already expanded) holds, as a 1-D operand, and None.

    If the mask `is_small`: an operand of as many elements as the mask has, and how many of them are valid, not read
    back yet.
    """
    if not numel(src.shape):
        return empty(backend, src.dtype, (0,)), None
    places = _Places(backend, mask)
    return _selected(places, places.room(), src), places.count()


def _selected(places: _Places, many: int, src: Operand) -> Operand:
    result, mask = empty(places.backend, src.dtype, (many,)), places.mask
    if many:
        dims = Dims(mask.shape, [mask.strides, src.strides])
        scalars = [places.n, mask.offset, src.offset, *dims.args()]
        places.launch("select", dims, [src, result], scalars, src.dtype)
    return result


def nonzero(backend: Backend, src: Operand) -> Counted:
    """Return the coordinates of the elements that are not zero: int64 of shape (ndim, count), in row-major order, and
    None.

    If `src` as a mask `is_small`: memory for the coordinates of all elements, and how many elements are not zero, not
    read back yet; the coordinates fill the front of the memory as an operand of shape (ndim, count).
    """
    ndim = len(src.shape)
    if not numel(src.shape):
        return empty(backend, dtypes.int64, (ndim, 0)), None
    if not ndim:  # a single element has no coordinates
        found, count = nonzero(backend, src._replace(shape=(1,), strides=(1,)))
        return found._replace(shape=(0, found.shape[1])), count
    places = _Places(backend, src)
    return _coordinates(places, places.room()), places.count()


def _coordinates(places: _Places, many: int) -> Operand:
    src = places.mask
    ndim = len(src.shape)
    result = empty(places.backend, dtypes.int64, (ndim, many))
    if many:
        # Dims are not merged, as the indices along them are the coordinates.
        dims = Dims.apart(src.shape, [src.strides])
        scalars = [many, places.n, src.offset, *dims.args()]
        places.launch("nonzero", dims, [result], scalars, dtypes.int64)
    return result


def compact(backend: Backend, flags: Operand) -> Operand:
    """Return the positions at which a 1-D operand is not zero."""
    places = _Places(backend, flags)
    found = _coordinates(places, places.room())
    return found._replace(shape=(places.total(),), strides=(1,))


def run_values(
    backend: Backend, src: Operand, starts: bool
) -> tuple[Operand, Operand | None, Operand | None]:
    """Return the first of each run of equal values of a nonempty 1-D operand, with `starts` their positions, and None.

    If `src` as a mask `is_small`: operands of as many elements as `src` has, and how many of them are valid, not read
    back yet.
    """
    places = _Places(backend, first_of_runs(backend, src))
    many = places.room()
    values = _selected(places, many, src)
    found = _coordinates(places, many)._replace(shape=(many,), strides=(1,)) if starts else None
    return values, found, places.count()


def masked_scatter(backend: Backend, dst: Operand, mask: Operand, src: Operand) -> None:
    """Fill the elements of `dst` where `mask` (same shape) holds with the elements of `src` in
    order, in place.

    RuntimeError when `src` has fewer elements than `mask` has ones.
    """
    if not numel(dst.shape):
        return
    places = _Places(backend, mask)
    source = dense(backend, src)
    if source.offset:
        source = _packed(backend, source)
    dims = Dims(mask.shape, [mask.strides, dst.strides])

    def describe(value: int, ordinal: int) -> Exception:
        return RuntimeError("Number of elements of source < number of ones in mask")

    with checking(backend, describe) as status:
        scalars = [
            status.offset,
            numel(src.shape),
            places.n,
            mask.offset,
            dst.offset,
            *dims.args(),
        ]
        places.launch("scatter", dims, [dst, source], scalars, dst.dtype, [status.buffer])


def _packed(backend: Backend, x: Operand) -> Operand:
    result = empty(backend, x.dtype, x.shape)
    size = x.dtype.itemsize
    backend.copy(x.buffer, x.offset * size, result.buffer, 0, numel(x.shape) * size)
    return result


def first_of_runs(backend: Backend, src: Operand, first: bool = True) -> Operand:
    """Flag the first of each run of equal values of a 1-D operand (bool); the first run's flag is `first`."""
    n = src.shape[0]
    gpu = is_gpu(backend)
    flags = empty(backend, dtypes.bool, (n,))
    run(
        backend,
        "sort/runs",
        f"runs_{src.dtype.code}",
        [src.buffer, flags.buffer],
        [n, src.offset, src.strides[0]],
        n if gpu else workers(backend, n),
        n * (src.dtype.itemsize + 1),
        dt=src.dtype,
        lengths=False,
        first_flag=first,
        wide=not gpu
        and src.strides[0] == 1
        and src.dtype.cl == src.dtype.reg
        and not src.dtype.is_complex,
        I=index_type(backend, src),
        gpu=gpu,
    )
    return flags


def run_numbers(backend: Backend, src: Operand) -> Operand:
    """Return for each element of a 1-D operand the number of its run of equal values (int64)."""
    groups = scan(backend, first_of_runs(backend, src, False), 0, "cumsum", dtypes.int64)
    assert isinstance(groups, Operand)
    return groups


def run_lengths(backend: Backend, starts: Operand, total: int) -> Operand:
    """Return the lengths of runs, given their starts; the last run ends at `total`."""
    n = starts.shape[0]
    result = empty(backend, dtypes.int64, (n,))
    gpu = is_gpu(backend)
    run(
        backend,
        "sort/runs",
        "runs_lengths",
        [starts.buffer, result.buffer],
        [n, total],
        n if gpu else workers(backend, n),
        16 * n,
        dt=None,
        lengths=True,
        first_flag=False,
        wide=False,
        I=index_type(backend, starts),
        gpu=gpu,
    )
    return result
