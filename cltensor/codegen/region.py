"""What kernels over strided memory share (copies, indexing, scans, sorts, windows): traversal of dims, and launches.

Owns the collapse of dims into the fewest, the layout arguments every such kernel takes, the number
of work-items, and the cache from a template's key to a kernel. Knows nothing of what a kernel does
with its elements.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..layouts import contiguous_strides, is_contiguous, merge, numel
from .operand import Operand
from .source import render

if TYPE_CHECKING:
    from ..dtypes import dtype
    from ..runtime import Backend, Buffer

# OpenCL type of an element by its size in bytes, for kernels that move elements without computing with them.
STORAGE = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong", 16: "clt_b16"}
# Elements of a CPU work-item, at least: fewer take less time than starting a work-item.
GRAIN = 8192
PACE = 3500  # elements that a CPU thread copies in a microsecond
LINE = 64  # bytes of a cache line
# Results of at least this many bytes are written with non-temporal stores: they would not stay in the cache.
STREAM = 11 << 20
STREAM_ALIGN = (
    128  # alignment of such results in bytes; their rows are aligned to the widest vector
)
GPU_GROUP = 64
_GPU_LANES = 1 << 18
_NUMPY = {"long": np.int64, "int": np.int32}


class Dims:
    """A collapsed iteration space: sizes, and for each operand its strides."""

    __slots__ = ("n", "sizes", "strides")

    def __init__(self, sizes: Sequence[int], strides: Sequence[Sequence[int]]) -> None:
        self.sizes, self.strides = collapse(sizes, strides)
        self.n = numel(self.sizes)

    @classmethod
    def apart(cls, sizes: Sequence[int], strides: Sequence[Sequence[int]]) -> Dims:
        """Make dims without merging any, for kernels that need the index along each."""
        self = cls.__new__(cls)
        self.sizes = tuple(sizes)
        self.strides = tuple(map(tuple, strides))
        self.n = numel(tuple(sizes))
        return self

    @property
    def rank(self) -> int:
        """How many dims are left."""
        return len(self.sizes)

    def args(self) -> list[int]:
        """Return the kernel arguments that describe the traversal: every size, then the strides of each operand."""
        return [*self.sizes, *(s for strides in self.strides for s in strides)]

    def units(self) -> tuple[bool, ...]:
        """Return for each operand whether its innermost stride is 1."""
        return tuple(strides[-1] == 1 for strides in self.strides)


def collapse(
    sizes: Sequence[int], strides: Sequence[Sequence[int]]
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Merge dims as `layouts.merge` does; at least one is left."""
    merged = merge(tuple(sizes), tuple([tuple(s) for s in strides]))
    return merged if merged[0] else ((1,), ((1,),) * len(strides))


def is_dense(x: Operand) -> bool:
    """Return whether the elements lie in row-major order without gaps."""
    return is_contiguous(x.shape, x.strides)


def empty(backend: Backend, dt: dtype, shape: Sequence[int]) -> Operand:
    """Allocate a dense operand with undefined contents."""
    shape = tuple(shape)
    return Operand(
        backend.alloc(numel(shape) * dt.itemsize), dt, shape, contiguous_strides(shape), 0
    )


def from_host(backend: Backend, dt: dtype, array: np.ndarray[Any, Any]) -> Operand:
    """Copy a small host array to the device as an operand of `dt` (same item size)."""
    array = np.ascontiguousarray(array)
    result = empty(backend, dt, array.shape)
    if array.size:
        backend.write(result.buffer, 0, array)
    return result


def as_dtype(x: Operand, dt: dtype) -> Operand:
    """Read the same memory as another type of the same size."""
    return x._replace(dtype=dt)


def is_gpu(backend: Backend) -> bool:
    """Return whether work-items are lanes (GPU schedule) rather than threads (CPU schedule)."""
    return backend.info.kind != "cpu"


def storage(dt: dtype) -> str:
    """Return the OpenCL type that moves elements of a dtype."""
    return STORAGE[dt.itemsize]


def narrow(x: Operand, dim: int, start: int, length: int) -> Operand:
    """Return a view of `length` positions of a dim, from `start` on."""
    shape = (*x.shape[:dim], length, *x.shape[dim + 1 :])
    return x._replace(shape=shape, offset=x.offset + start * x.strides[dim])


def moved_last(x: Operand, dim: int) -> Operand:
    """Return a view with `dim` as the last dim."""
    order = [d for d in range(len(x.shape)) if d != dim] + [dim]
    return x._replace(
        shape=tuple(x.shape[d] for d in order), strides=tuple(x.strides[d] for d in order)
    )


def index_type(backend: Backend, *operands: Operand) -> str:
    """Return the C type of element offsets: 64 bits on a CPU, 32 on other devices where every
    offset fits.
    """
    if not is_gpu(backend):
        return "long"
    for x in operands:
        reach = abs(x.offset) + sum(
            abs(s) * max(n - 1, 0) for n, s in zip(x.shape, x.strides, strict=True)
        )
        if max(reach, numel(x.shape)) >= 2**31 - 2**24:
            return "long"
    return "int"


def workers(backend: Backend, work: int, grain: int = GRAIN) -> int:
    """Return how many CPU work-items to give `work` elements: few, each with enough to do."""
    if work < PACE * backend.info.wake_us:
        return 1
    return max(1, min(backend.info.compute_units * 4, work // grain))


def max_workers(backend: Backend) -> int:
    """Return the largest result of `workers`."""
    return max(1, backend.info.compute_units * 4)


def past_cache(backend: Backend, results: int) -> bool:
    """Return whether results of this many bytes are written with non-temporal stores.

    Only on a device that shares the host's memory: the stores need aligned addresses, which other devices do not
    reveal.
    """
    return results >= STREAM and backend.info.host_shared


def group_limit(backend: Backend) -> int:
    """Return the largest power of two that the device allows as the size of a work-group."""
    return 1 << backend.info.max_group.bit_length() - 1


def gpu_size(work: int) -> int:
    """Return the global size of a grid-stride GPU launch over `work` elements."""
    return max(1, min(-(-work // GPU_GROUP), _GPU_LANES // GPU_GROUP)) * GPU_GROUP


def lanes_of_planes(planes: int, each: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the global and local size of a launch whose lanes each own a place of a plane and walk through planes.

    `each`: elements of a plane. Short planes share a work-group.
    """
    width = 1
    while width < min(each, GPU_GROUP):
        width *= 2
    columns, rows = -(-each // width) * width, GPU_GROUP // width
    walks = max(gpu_size(planes * columns) // columns, 1)
    high = -(-planes // -(-planes // walks))
    return (columns, -(-high // rows) * rows), (width, rows)


@functools.cache
def _kernel(
    backend: Backend, template: str, name: str, types: str, key: tuple[tuple[str, Any], ...]
) -> Any:
    text = render(template, fn=name, **dict(key))
    kinds = [None if t == "b" else _NUMPY["long" if t == "l" else "int"] for t in types]
    return backend.kernel(name, text, kinds)


def run(
    backend: Backend,
    template: str,
    name: str,
    buffers: Sequence[Buffer],
    scalars: Sequence[int],
    work: int | tuple[int, int] | tuple[tuple[int, int], tuple[int, int]],
    nbytes: int = 0,
    longs: Sequence[int] = (),
    **key: Any,
) -> None:
    """Render (or find) a kernel and launch it: buffers first, then index-typed scalars, then 64-bit
    scalars.

    `work` is the number of work-items of a CPU schedule (local size 1), or of elements of a grid-
    stride GPU schedule; a pair gives global and local size as they are, of one dimension or two.
    """
    kind = "l" if key["I"] == "long" else "i"
    types = "b" * len(buffers) + kind * len(scalars) + "l" * len(longs)
    kernel = _kernel(backend, template, name, types, tuple(key.items()))
    size: tuple[int, ...]
    local: tuple[int, ...]
    if not isinstance(work, tuple):
        size, local = ((gpu_size(work),), (GPU_GROUP,)) if key.get("gpu") else ((work,), (1,))
    elif isinstance(work[0], tuple):
        size, local = work
    else:
        size, local = work[:1], work[1:]
    backend.launch(kernel, size, local, [*buffers, *scalars, *longs], nbytes)
