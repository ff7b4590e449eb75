"""`torch.nested`: batches of tensors of different sizes.

Jagged tensors, which differ in one dimension, are one dense tensor of values and offsets: operations on them are
operations on the values, in as many launches as for a dense tensor. Tensors of strided layout may differ in all
dimensions; what is no function of elements or rows is computed tensor by tensor. Owns the functions that make them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import creation, dtypes
from ..autograd.mode import no_grad
from ..memory_format import jagged, strided
from ..ops.row import FUNCTIONS as F
from ..tensor import Tensor
from . import buffers, layers, reduce  # noqa: F401 - to fill the table
from . import shape as shapes
from .ragged import Ragged
from .tensor import NestedTensor, flat, from_list, make

__all__ = [
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]
_UNSUPPORTED = "Specified layout is unsupported for nested tensors: {}"


def _check(tensors: Sequence[Any]) -> None:
    if not tensors:
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    for what, values in (
        ("have the same dtype", [t.dtype for t in tensors]),
        ("be on the same device", [t.device for t in tensors]),
        ("have the same dim", [t.ndim for t in tensors]),
    ):
        if len({*values}) > 1:
            raise RuntimeError(
                f"When constructing a nested tensor, all tensors in list must {what}"
            )
    if not tensors[0].ndim:
        raise RuntimeError("Cannot construct a nested tensor from a list of zero-dim tensors")


def nested_tensor(
    tensor_list: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """Copy tensors, or what `torch.tensor` takes, to a nested tensor without history."""
    if layout not in (None, strided, jagged):
        raise RuntimeError(_UNSUPPORTED.format(layout))
    if not isinstance(tensor_list, list | tuple):
        raise TypeError(
            f"nested_tensor(): Expected first argument to be a list of tensors, but got {type(tensor_list).__name__}"
        )
    with no_grad():
        given = [t.detach() if isinstance(t, Tensor) else creation.tensor(t) for t in tensor_list]
        made = as_nested_tensor(given, dtype, device, layout)
    return made.requires_grad_(True) if requires_grad else made


def as_nested_tensor(ts: Any, dtype: Any = None, device: Any = None, layout: Any = None) -> Any:
    """Make a nested tensor of a batch or a list of tensors, to which gradients flow.

    TypeError for anything else; RuntimeError for tensors that do not fit each other, and for another layout than that of a nested tensor.
    """
    listed = isinstance(ts, list | tuple) and all(isinstance(t, Tensor) for t in ts)
    if not listed and not isinstance(ts, Tensor):
        raise TypeError(
            "as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of tensors "
        )
    to = {k: v for k, v in (("dtype", dtype), ("device", device)) if v is not None}
    if isinstance(ts, NestedTensor):
        if layout is not ts.layout:
            raise RuntimeError(
                "as_nested_tensor(): Converting between nested tensor layouts is not supported"
            )
        return ts.to(**to) if to else ts
    if isinstance(ts, Tensor) and ts.ndim < 2:
        raise RuntimeError("as_nested_tensor(): Expected tensor argument to have dim() > 1")
    if layout not in (None, strided, jagged):
        raise RuntimeError(_UNSUPPORTED.format(layout))
    if isinstance(ts, Tensor):
        batch = ts.to(**to) if to else ts
        if layout is not jagged:
            return flat(batch.reshape(-1), [batch.shape[1:]] * batch.shape[0])
        count, length = batch.shape[:2]
        offsets = creation.arange(count + 1, device=batch.device) * length
        return make(batch.reshape(-1, *batch.shape[2:]), Ragged.of(offsets, None, length, length))
    if layout is not jagged:
        if len({t.ndim for t in ts}) > 1:
            raise RuntimeError(
                "All Tensors given to nested_tensor must have the same dimension. "
                f"Found dimension {next(t.ndim for t in ts if t.ndim != ts[0].ndim)} for Tensor at index "
                f"{next(i for i, t in enumerate(ts) if t.ndim != ts[0].ndim)} and dimension {ts[0].ndim} for Tensor at index 0."
            )
        return from_list([t.to(**to) if to else t for t in ts])
    _check(ts)
    return shapes.stacked([t.to(**to) if to else t for t in ts])


def nested_tensor_from_jagged(
    values: Any,
    offsets: Any = None,
    lengths: Any = None,
    jagged_dim: int | None = None,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> Any:
    """Make a jagged tensor that is a view of values, given where sequences begin, or how long they are, or both.

    jagged_dim: the ragged dim, 1 by default. min_seqlen, max_seqlen: the extreme lengths, where the program knows them.
    """
    if offsets is None:
        if lengths is None:
            raise RuntimeError(
                "nested_tensor_from_jagged(): At least one of offsets or lengths is required."
            )
        offsets = F["cat"]([lengths.new_zeros(1), lengths.cumsum(0)])
        lengths = None
    at = 1 if jagged_dim is None else jagged_dim
    if at < 1:
        raise ValueError(f"Expected jagged_dim >=1, but got {at}.")
    if offsets.ndim != 1:
        raise AssertionError(f"offsets must be 1D, but got {offsets.ndim}D")
    if isinstance(values, NestedTensor):
        raise AssertionError("values must not be a NestedTensor")
    if lengths is not None and lengths.shape[0] != offsets.shape[0] - 1:
        raise AssertionError(
            f"offsets and lengths batch sizes must match: offsets.shape[0] - 1 = {offsets.shape[0] - 1}, lengths.shape[0] = {lengths.shape[0]}"
        )
    return make(values.view_as(values), Ragged.of(offsets, lengths, max_seqlen, min_seqlen), at)


def narrow(tensor: Any, dim: int, start: Any, length: Any, layout: Any = strided) -> Any:
    """Return a part of dim `dim` of each row of a batch: with jagged layout a view, of places given for each row.

    RuntimeError for starts and lengths of a wrong kind, and for another dim than 1 with jagged layout.
    """
    for name, value in (("start", start), ("length", length)):
        if not isinstance(value, int | Tensor):
            raise RuntimeError(f"{name} must be an integer or a tensor")
    if layout is strided:
        if isinstance(start, Tensor) or isinstance(length, Tensor):
            raise RuntimeError("start and length must be integers for the strided layout NT impl")
        return from_list(tensor.unbind()).narrow(dim, start, length)
    if layout is not jagged:
        raise RuntimeError(f"Specified layout is unsupported for nested narrow: {layout}")
    if dim != 1:
        raise RuntimeError("jagged layout only supports dim=1")
    count, longest = tensor.shape[:2]
    made = []
    for value in (start, length):
        x = value if isinstance(value, Tensor) else creation.tensor([value], device=tensor.device)
        if x.ndim > 1 or x.numel() not in (1, count):
            raise RuntimeError(
                "When constructing a jagged nested tensor using narrow(), your start and length must be Tensors that broadcast to input.shape[0]"
            )
        made.append(x.to(dtypes.int64).expand(count))
    starts, lengths = made
    begin = creation.arange(count, device=tensor.device) * longest + starts
    offsets = F["cat"]([begin, begin[-1:] + lengths[-1:]])
    values = tensor.view(-1, *tensor.shape[2:])
    if not bool((begin[:-1] + lengths[:-1] != begin[1:]).any()):  # no gaps
        values = values[int(offsets[0]) : int(offsets[-1])]
        return make(values, Ragged.of(offsets - offsets[0]))
    return make(values.view_as(values), Ragged.of(offsets, lengths.contiguous()))


def masked_select(tensor: Any, mask: Any) -> Any:
    """Choose elements of the rows of a matrix by a mask that broadcasts to it: a jagged tensor."""
    if tensor.ndim != 2:
        raise RuntimeError("masked_select only support 2-D selections currently")
    if tensor.layout is not strided or tensor.is_nested:
        raise RuntimeError(
            f"torch.nested.masked_select requires a strided tensor, given {tensor.layout}"
        )
    if mask.layout is not strided or mask.is_nested:
        raise RuntimeError(
            f"torch.nested.masked_select requires a strided mask, given: {mask.layout}"
        )
    seen = mask.expand_as(tensor)
    offsets = F["cat"]([seen.new_zeros(1, dtype=dtypes.int64), seen.sum(1).cumsum(0)])
    return make(tensor.masked_select(mask), Ragged.of(offsets))


def to_padded_tensor(input: Any, padding: float, output_size: Any = None, out: Any = None) -> Any:
    """Return a dense tensor of the largest sizes, or of larger ones in `output_size`, filled up with `padding`."""
    if isinstance(input, NestedTensor):
        return input._table["to_padded_tensor"](input, padding, output_size, out)
    raise TypeError("to_padded_tensor(): argument 'input' must be a nested tensor")
