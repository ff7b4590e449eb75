"""Run the row-wise kernels (codegen/reduce/rowwise.py) on tensors whose pending expressions become their prologue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import layouts, lazy
from ...codegen.reduce import reduction as reductions
from ...codegen.reduce import rowwise as family
from ...codegen.reduce.gpu import STRIP
from ...codegen.reduce.prologue import Source
from ...codegen.reduce.row_kinds import Kind
from ...dtypes import dtype
from ...runtime import Backend, Buffer, get_backend
from ...size import Size
from ...storage import new_storage
from .. import core
from ..core import Tensor
from ..kinds import Sizes
from ..reducing import accumulator, row_major, source
from ..reducing import run as reduce_run
from ..replay import Replayed


def run(
    kind: Kind,
    xs: Sequence[Tensor],
    dims: Sequence[int],
    out: dtype,
    *,
    strides: tuple[int, ...] | None = None,
    eps: float = 0.0,
    targets: family.Targets | None = None,
    keepdim: bool = False,
) -> tuple[Any, list[Tensor]]:
    """Run the row kernel `kind` along `dims` without gradient; return the elementwise result and the rows' numbers.

    The tensors `xs` broadcast to the first one's shape.
    """
    given, numbers = list(xs), None
    if targets is not None:
        given += (targets.buffer, targets.status)
        numbers = targets.offset, targets.ignore, targets.slot
    laid = None if strides is None else Sizes(strides)
    whole, *rows = _run(given, kind, tuple(dims), out, laid, eps, numbers, keepdim)
    return whole, rows


@Replayed.reading(source)
def _run(
    read: Source,
    buffers: Sequence[Buffer],
    dev: Any,
    kind: Kind,
    dims: tuple[int, ...],
    out: dtype,
    strides: tuple[int, ...] | None,
    eps: float,
    numbers: tuple[int, int, int] | None,
    keepdim: bool,
) -> list[Any]:
    targets = None
    if numbers is not None:
        offset, ignore, slot = numbers
        targets = family.Targets(buffers[0], offset, ignore, buffers[1], slot)
    backend, strides = get_backend(dev), None if strides is None else tuple(strides)
    turned = None
    with backend.lock:
        if kind.store and strides is None:
            turned = _across_rows(backend, kind, read, dims)
            if turned is None:
                read = row_major(backend, read)
        found = family.run(
            backend, kind, read, dims, accumulator(out), out, strides=strides, eps=eps, targets=targets, turned=turned
        )  # fmt: skip
    whole = None
    if found.all is not None:
        op = found.all
        storage = new_storage(backend, op.buffer, layouts.numel(op.shape) * out.itemsize)
        whole = core.make(storage, Size(op.shape), out, dev, strides)
    rows = found.numbers
    if keepdim:
        shape = layouts.reduced_shape(read.shape, dims, True)
        rows = [op._replace(shape=shape) for op in rows]
    return [whole, *[core.result(op, dev) for op in rows]]


def _across_rows(backend: Backend, kind: Kind, read: Source, dims: tuple[int, ...]) -> int | None:
    """Return the index of the one operand that lies across the rows in memory, if the kernel can transpose it.

    Else None: several such operands are better copied first.
    """
    if kind.pick or kind.columns or kind.runs:
        return None
    across = [k for k, leaf in enumerate(read.leaves) if lazy.runs_across(leaf[2], read.shape)]
    if len(across) != 1:
        return None
    _, dt, steps, _ = read.leaves[across[0]]
    return across[0] if family.turning(backend, read.shape, dt, steps, dims) else None


ROW = 1 << 18  # the longest row, in elements, that stays in a core's own cache between passes
# Elements in total that stay in a cache between passes over rows that lie across memory.
COLUMNS = 1 << 19
LONG = 512  # from this length on, a vector's width of rows across memory does not stay in a cache
# The longest rows, across memory order and along it, that one work-group of a GPU finishes soon enough.
LONG_ACROSS, LONG_ALONG = 1 << 11, 1 << 14
SMALL = 1 << 16  # from this many elements on, every compute unit should have a row


def worth(x: Tensor, dims: Sequence[int], most: int = COLUMNS, *, norm: bool = False) -> bool:
    """Return whether one kernel that passes over the rows of `x` along `dims` several times beats separate reductions.

    `most` bounds the total number of elements where rows lie across memory order, unless the kernel can transpose them
    as it reads, which pays for a `norm` only.
    """
    n, total = layouts.numel(tuple([x.shape[d] for d in dims])), x.numel()
    backend = get_backend(x.device)
    if not total or n > ROW:
        return False
    if total > most and _across(x, dims):
        along = tuple(x.shape), x.dtype, tuple(x._strides), tuple(dims)
        if not norm or not family.turning(backend, *along):
            return False
    return total <= SMALL or total // n >= backend.info.compute_units


def by_lanes(x: Tensor) -> bool:
    """Return whether the tensor's device is not a CPU, so that work-items are lanes."""
    return get_backend(x.device).info.kind != "cpu"


def few_from_cache(x: Tensor, dims: Sequence[int]) -> bool:
    """Return whether two passes over each row beat one with a running state: on a CPU, for rows along memory."""
    return get_backend(x.device).info.kind == "cpu" and worth(x, dims, 0)


def fresh(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return `x`, a result that nobody else holds, in `shape` and without a grad node."""
    if x.shape == shape:
        return x
    return core.make(x._storage, Size(shape), x.dtype, x.device) if x._contig else x.reshape(shape)


def by_columns(x: Tensor, dims: Sequence[int]) -> bool:
    """Return whether a pass over rows should also sum over the rows.

    On a CPU, for dense rows whose column sums stay in a core's own cache.
    """
    first = x.ndim - len(dims)
    if not x._contig or tuple(dims) != tuple(range(first, x.ndim)):
        return False
    width = layouts.numel(tuple(x.shape[first:]))
    return family.LEAST <= width <= family.KEPT and get_backend(x.device).info.kind == "cpu"


def columns(parts: Sequence[Tensor], shape: tuple[int, ...]) -> list[Tensor]:
    """Add up the partial column sums that a kernel left, one or two tensors of them; `shape` is a row's."""
    n = layouts.numel(shape)
    seen = [
        core.make(x._storage, Size((x.shape[0], n)), x.dtype, x.device, (x.shape[1], 1), 0)
        for x in parts
    ]
    if len(seen) > 1:
        return sums("sums", seen, ("first", "second"), seen[0].dtype, (0,))
    return reduce_run("sum", seen[0], (0,), seen[0].dtype, [("value", seen[0].dtype)])


def by_runs(x: Tensor) -> bool:
    """Return whether the last dim of `x` is contiguous and long enough for kernels to leave sums of each such run."""
    return x._contig and x.shape[-1] >= family.LEAST


def spread_out(x: Tensor, dims: Sequence[int]) -> bool:
    """Return whether rows lie across memory order and are long, on a CPU.

    The rows that share a cache line then do not stay in a core's own cache.
    """
    long = layouts.numel(tuple([x.shape[d] for d in dims])) >= LONG
    if not long or x.numel() < COLUMNS or not x._contig or not _across(x, dims):
        return False
    return get_backend(x.device).info.kind == "cpu"


def in_parts(x: Tensor, dims: Sequence[int]) -> bool:
    """Return whether rows on a GPU are so few and long that splitting each beats one work-group per row.

    A second launch joins the parts.
    """
    info = get_backend(x.device).info
    if info.kind == "cpu" or not x.numel():
        return False
    n, across = layouts.numel(tuple([x.shape[d] for d in dims])), _across(x, dims)
    groups = x.numel() // n // (STRIP if across else 1)
    return n > (LONG_ACROSS if across else LONG_ALONG) and groups < info.compute_units // 2


def _across(x: Tensor, dims: Sequence[int]) -> bool:
    """Return whether neighbours in memory belong to different rows."""
    steps = [(s, d) for d, (n, s) in enumerate(zip(x.shape, x._strides, strict=True)) if n > 1]
    return bool(steps) and min(steps)[1] not in dims


def sums(
    kind: str,
    xs: Sequence[Tensor],
    names: Sequence[str],
    out: dtype,
    dims: Sequence[int] | None = None,
) -> list[Tensor]:
    """Compute two sums over tensors of one shape in one pass, without recording a gradient.

    `kind` is one of codegen/reduce/states.py, `names` are those of its results.
    """
    return _sums(xs, kind, tuple(names), out, None if dims is None else tuple(dims))


@Replayed.reading(source)
def _sums(
    read: Source,
    _: Any,
    dev: Any,
    kind: str,
    names: tuple[str, ...],
    out: dtype,
    dims: tuple[int, ...] | None,
) -> list[Tensor]:
    backend = get_backend(dev)
    over = range(len(read.shape)) if dims is None else dims
    with backend.lock:
        found = reductions.reduce(
            backend, kind, read, tuple(over), accumulator(out), [(name, out) for name in names]
        )  # fmt: skip
    return [core.result(op, dev) for op in found]
