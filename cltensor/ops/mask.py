"""Ops on masks, search in sorted values, and one-hot vectors: nonzero, masked_select, masked_scatter, searchsorted.

Results whose length the device counts read one number back. Subscripts are in index.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import dtypes, layouts
from ..autograd import record as graph
from ..autograd.mode import unrecorded
from ..codegen.operand import Operand
from ..codegen.order import mask as masks
from ..codegen.order import sort as sort_kernels
from ..runtime import device
from ..size import Size
from ..storage import new_storage
from . import core, parts, shape, writes
from .changes import backend_of, both, change, like, need_tensor, target, zeros
from .composite import SMALL, at_once
from .core import Tensor, is_tensor
from .extremes import span
from .refusals import no_kernel
from .replay import Replayed
from .row import FUNCTIONS, METHODS, public

# ------------------------------------------------------------------------------------------- masks


def results(found: Sequence[Operand | None], dev: device) -> list[Tensor | None]:
    """Wrap what a kernel computed as tensors; None stays None."""
    return [None if op is None else core.result(op, dev) for op in found]


@Replayed.of_memory
def _coordinates(operands: Sequence[Tensor]) -> list[Tensor | None]:
    (x,) = operands
    found = masks.nonzero(backend_of(x), core.kernel_operand(x))
    return results(found, x.device)


@Replayed.of_memory
def _kept(operands: Sequence[Tensor]) -> list[Tensor | None]:
    x, mask = operands
    found = masks.masked_select(backend_of(x), core.kernel_operand(x), core.kernel_operand(mask))
    return results(found, x.device)


def first_of(room: Tensor, n: int | None) -> Tensor:
    """Return the first n elements of a fresh contiguous tensor, as rows of n if it has two dims; all if n is None.

    The result's storage ends with them.
    """
    if n is None:
        return room
    size = (*room.shape[:-1], n)
    storage = room._storage
    kept = new_storage(storage.backend, storage.value, layouts.numel(size) * room.dtype.itemsize)
    return core.make(kept, Size(size), room.dtype, room.device)


def _counted(found: Sequence[Tensor | None]) -> Tensor:
    """Return as many elements of the first tensor as the second one says."""
    room, count = found
    return first_of(room, None if count is None else count.item())


def kept(x: Tensor, mask: Tensor) -> Tensor:
    """Return the elements of `x` where `mask`, bool or uint8 and of the same shape, is not zero; records no gradient."""
    return _counted(_kept((x, mask)))


@public()
def nonzero(input: Tensor, *, out: Tensor | None = None, as_tuple: bool = False) -> Any:
    """Return the coordinates of elements that are not zero, (count, ndim), or a tuple of one tensor per dimension."""
    need_tensor("nonzero", input=input)
    if as_tuple:
        if out is not None:
            raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
        return nonzero(input.reshape(1) if not input.ndim else input).unbind(1)
    if out is not None and out.dtype is not dtypes.int64:
        raise RuntimeError(
            f"nonzero: Expected out tensor to have scalar type Long but got scalar type{out.dtype.scalar_name}"
        )
    x, backend = input.detach(), backend_of(input)
    if x.dtype.category > 1 and not masks.is_small(backend, x.numel()):
        x = x != 0
    dense = _counted(_coordinates((x,)))
    ndim, count = dense.shape
    value = core.make(
        dense._storage, Size((count, ndim)), dtypes.int64, input.device, (1, count), 0
    )
    return value if out is None else writes.deliver(value, out, "nonzero", ())


METHODS["nonzero"] = lambda self, *, as_tuple=False: nonzero(self, as_tuple=as_tuple)


@public()
def argwhere(input: Tensor) -> Tensor:
    """Return the coordinates of elements that are not zero, (count, ndim)."""
    return nonzero(input)


@public()
def masked_select(input: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the elements where the bool mask holds, both broadcast together, as a 1-D tensor."""
    need_tensor("masked_select", input=input, mask=mask)
    if mask.dtype is not dtypes.bool:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    mask = like(mask, input)
    joint = layouts.broadcast_shapes(mask.shape, input.shape)
    wide, at = shape.expand(input.detach(), joint), shape.expand(mask, joint)
    value = kept(wide, at)
    if graph.needs_grad(input):
        graph.record(
            "MaskedSelectBackward0",
            (input,),
            value,
            lambda ctx, g: masked_scatter(zeros(g, ctx.mask.shape), ctx.mask, g),
            {"mask": at},
        )
    return (
        value
        if out is None
        else writes.deliver(value, out, "masked_select", (input, mask), apart=True)
    )


def _masked_scatter(inplace: bool, input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Fill the places where the bool mask holds with the elements of `source` in order."""
    need_tensor("masked_scatter_", mask=mask, source=source)
    if input.dtype is not source.dtype:
        raise RuntimeError(
            f"masked_scatter: expected self and source to have same dtypes but got{input.dtype.scalar_name} and {source.dtype.scalar_name}"
        )
    if mask.dtype is not dtypes.bool:
        raise RuntimeError(
            f"masked_scatter_ only supports boolean masks, but got mask with dtype {mask.dtype.scalar_name}"
        )
    mask, source = like(mask, input), like(source, input)
    if inplace:
        at = mask if mask.shape == input.shape else shape.expand(mask, tuple(input.shape))
    else:
        joint = layouts.broadcast_shapes(mask.shape, input.shape)
        at = mask if mask.shape == joint else shape.expand(mask, joint)
        input = input if input.shape == joint else shape.expand(input, joint)

    def run(t: Tensor) -> None:
        reads = [core.snapshot(x) if x._storage is t._storage else x for x in (at, source)]
        t._storage.for_write()
        _scattered([t, *reads])

    return change(
        "MaskedScatterBackward0",
        input,
        (source,),
        run,
        _masked_scatter_back,
        {"mask": at},
        inplace=inplace,
    )


@Replayed.of_memory
def _scattered(operands: Sequence[Tensor]) -> list[Tensor]:
    t, mask, source = operands
    read = core.kernel_operand(mask), core.kernel_operand(source)
    masks.masked_scatter(backend_of(t), target(t), *read)
    return []


def _masked_scatter_back(ctx: Any, g: Tensor) -> tuple:
    own = g.masked_fill(ctx.mask, 0) if ctx.needs[0] else None
    part = None
    if ctx.needs[1]:
        full = tuple(ctx.shapes[1])
        picked = masked_select(g, ctx.mask)
        n = layouts.numel(full)
        if picked.numel() < n:
            count = picked.numel()
            picked = parts.embed(picked, (n,), lambda z: parts.slice_dim(z, 0, 0, count))
        part = picked.reshape(full)
    return own, part


both("masked_scatter", _masked_scatter, out=False)
masked_scatter: Callable[..., Tensor] = FUNCTIONS["masked_scatter"]

# ------------------------------------------------------------------------------------------- search, one-hot


@public(method=False)
def searchsorted(
    sorted_sequence: Tensor,
    input: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return where values go in a sorted sequence (1-D, or with the leading dimensions of `input`).

    The result has the shape of `input`, a number counting as 0-d: the first place that keeps the order, the one after
    equal elements with `right`. Dtypes promote; the result is int64, or int32 with `out_int32`.
    """
    right = _from_right(side, right)
    need_tensor("searchsorted", sorted_sequence=sorted_sequence)
    given = _searched(sorted_sequence, input)
    if sorter is not None:
        _check_sorter(sorter, sorted_sequence)
    dt = dtypes.int32 if out_int32 else dtypes.int64
    if out is not None and out.dtype is not dt:
        raise RuntimeError(
            f"{_SEARCH}output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) "
            "depending on whether out_int32 flag is True, but we got output tensor's dtype "
            f"{out.dtype.scalar_name} and out_int32 flag is {out_int32}"
        )
    rows, given = sorted_sequence.detach(), given.detach()
    joint = core.result_type((rows, given))
    if joint.is_complex or joint is dtypes.bool:
        raise no_kernel("searchsorted_out_cpu", joint)
    operands = [rows.to(joint), given.to(joint)]
    if sorter is not None:
        operands.append(like(sorter, rows))
    (value,) = _places(operands, right, dt)
    return value if out is None else writes.deliver(value, out, "searchsorted", ())


@Replayed.of_memory
def _places(operands: Sequence[Tensor], right: bool, dt: Any) -> list[Tensor]:
    """Return where values go in sorted rows; the operands are the rows, the values and, if rows are not sorted, their
    order.
    """
    rows, given, *order = map(core.kernel_operand, operands)
    backend = backend_of(operands[0])
    found = sort_kernels.searchsorted(backend, rows, given, right, dt, *order)
    return [core.result(found, operands[0].device)]


_SEARCH = "torch.searchsorted(): "


def _from_right(side: str | None, right: bool) -> bool:
    if side is None:
        return right
    if side not in ("left", "right"):
        raise RuntimeError(f"{_SEARCH}side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(
            f"{_SEARCH}side and right can't be set to opposites, got side of left while right was True"
        )
    return side == "right"


def _searched(rows: Tensor, input: Any) -> Tensor:
    """Return the values to look for in `rows` as a tensor, on its device."""
    if not rows.ndim:
        raise RuntimeError(
            f"{_SEARCH}boundaries tensor should have positive dimension, but got 0 dimension"
        )
    given = input
    if not is_tensor(given):
        if rows.ndim != 1:
            raise RuntimeError(
                f"{_SEARCH}input value can be a scalar only when boundaries tensor dimension is 1, but we got boundaries tensor dim({rows.ndim}) "
                "and input value's dim(0) numel(1)"
            )
        given = FUNCTIONS["full"]((), given, device=rows.device)
    given = like(given, rows)
    if rows.ndim != 1 and (rows.ndim != given.ndim or rows.shape[:-1] != given.shape[:-1]):
        raise RuntimeError(
            f"{_SEARCH}boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input value tensor must match, "
            f"but we got boundaries tensor {list(rows.shape)} and input value tensor {list(given.shape)}"
        )
    return given


def _check_sorter(sorter: Tensor, rows: Tensor) -> None:
    if sorter.shape != rows.shape:
        raise RuntimeError(
            f"{_SEARCH}boundary and sorter must have the same size, but got boundary tensor {list(rows.shape)}and got sorter tensor {list(sorter.shape)}"
        )
    if sorter.dtype is not dtypes.int64:
        raise RuntimeError(
            f"{_SEARCH}sorter must be a tensor of long dtype but got dtype {sorter.dtype.scalar_name}"
        )
    if sorter.numel() and bool(((sorter < 0) | (sorter >= rows.shape[-1])).any()):
        raise RuntimeError(f"{_SEARCH}sorter index out of range")


@public(method=False)
def bucketize(
    input: Any,
    boundaries: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return the bucket of each value between sorted boundaries."""
    if boundaries.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right, out=out)


def _vectors(given: Sequence[Tensor], classes: int) -> list[Tensor]:
    places = FUNCTIONS["arange"](classes, device=given[0].device)
    return [(given[0].contiguous().unsqueeze(-1) == places).long()]


_small_vectors = at_once(_vectors)


@at_once
def _small_vectors_and_span(given: Sequence[Tensor], classes: int) -> list[Tensor]:
    return [*_vectors(given, classes), FUNCTIONS["stack"](given[0].aminmax())]


def _check_span(low: int, high: int, classes: int) -> None:
    """Raise torch's errors unless all numbers between low and high are one of `classes`; -1 stands for any number of them."""
    if low < 0:
        raise RuntimeError("Class values must be non-negative.")
    if high >= classes != -1:
        raise RuntimeError("Class values must be smaller than num_classes.")


def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """Return int64 vectors of zeros with a one at the class; RuntimeError for classes out of range."""
    if input.dtype is not dtypes.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if not input.numel():
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return input.new_zeros((*input.shape, num_classes))
    if num_classes > 0 and input.numel() * num_classes <= SMALL:
        value, ends = _small_vectors_and_span((input,), num_classes)
        low, high = ends.tolist()
        _check_span(low, high, num_classes)
        return value
    low, high = span(input)
    _check_span(low, high, num_classes)
    classes = high + 1 if num_classes == -1 else num_classes
    if input.numel() * classes <= SMALL:
        return _small_vectors((input,), classes)[0]
    with unrecorded():
        return _vectors((input,), classes)[0]
