"""Nested tensors of strided layout: functions of elements and of rows on the flat buffer, others tensor by tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..nn import functional as NF
from ..ops.row import FUNCTIONS as F
from ..ops.row import first_name
from ..tensor import Tensor
from .elements import in_place
from .shape import enlarged
from .table import op
from .tensor import StridedNestedTensor, flat, from_list, place


def _by_elements(func: Any, args: Any, kwargs: Any) -> Any:
    first = next(a for a in (*args, *kwargs.values()) if isinstance(a, StridedNestedTensor))
    name = first_name(func)
    given = [_values(a, first, name) for a in args]
    named = {k: _values(a, first, name) for k, a in kwargs.items()}
    made = func(*given, **named)
    if in_place(name):
        return args[0]
    return flat(made, first._pattern) if isinstance(made, Tensor) else made


def _values(a: Any, first: StridedNestedTensor, name: str) -> Any:
    """Return an operand as a flat one: nested of the same sizes, or dense and broadcast to each tensor."""
    if isinstance(a, StridedNestedTensor):
        if a._pattern != first._pattern:
            if len(a) != len(first) or a.dim() != first.dim():
                raise RuntimeError(
                    f"{name} does not support broadcasting when given a NestedTensor"
                )
            raise RuntimeError(
                f"{name} expected both nested tensors to have the same sizes, but got {list(map(list, first._pattern))} and {list(map(list, a._pattern))}"
            )
        return a._v
    if isinstance(a, Tensor) and a.ndim:
        if a.ndim > first.dim() or (a.ndim == first.dim() and a.shape[0] not in (1, len(first))):
            raise RuntimeError(f"{name} does not support broadcasting when given a NestedTensor")
        whole = a.ndim == first.dim()
        parts = [
            (a[i if a.shape[0] > 1 else 0] if whole else a).expand(s)
            for i, s in enumerate(first._pattern)
        ]
        return from_list(parts)._v
    return a


StridedNestedTensor._by_elements = staticmethod(_by_elements)


def each(x: StridedNestedTensor, fn: Callable[[Any], Any]) -> StridedNestedTensor:
    """Compute a function of each tensor."""
    return from_list([fn(t) for t in unbind(x)])


def _own(*names: str) -> Callable:
    return op(*names, strided=True)


@_own("unbind")
def unbind(input: StridedNestedTensor, dim: int = 0) -> tuple[Any, ...]:
    """Return the tensors of the batch, views of the buffer."""
    if place(dim, input.dim()):
        raise RuntimeError(
            f"NestedTensor can only be unbound along dimension 0 got dimension {dim} instead."
        )
    sizes = [s.numel() for s in input._pattern]
    if not sizes:
        return ()
    parts = input._v.split(sizes)
    return tuple(x.view(s) for x, s in zip(parts, input._pattern, strict=True))


@_own("getitem")
def getitem(input: StridedNestedTensor, index: Any) -> Any:
    """Choose by an int for the batch, then as for the tensor chosen; slices of whole dims and ints behind an ellipsis."""
    given = list(index) if isinstance(index, tuple) else [index]
    if given and isinstance(given[0], int):
        row = unbind(input)[given[0]]
        return row[tuple(given[1:])] if len(given) > 1 else row
    if given and (given[0] is Ellipsis or given[0] == slice(None)):
        rest = tuple(given) if given[0] is Ellipsis else tuple(given[1:])
        return each(input, lambda x: x[rest])
    raise NotImplementedError("slice(): not supported for NestedTensor on dim=0")


@_own("to_padded_tensor", "nested_to_padded_tensor")
def to_padded_tensor(
    input: StridedNestedTensor, padding: float, output_size: Any = None, out: Any = None
) -> Any:
    """Return a dense tensor of the largest sizes, filled up with `padding`."""
    if not input._pattern:
        raise RuntimeError(
            "to_padded_tensor(): at least one constituent tensor should have non-zero numel"
        )
    most = [max(sizes) for sizes in zip(*input._pattern, strict=True)]
    made = F["stack"]([enlarged(x, most, padding) for x in unbind(input)])
    if output_size is not None:
        made = enlarged(made, output_size, padding)
    return made if out is None else out.copy_(made)


def _rows(name: str, x: Any, width: int, fn: Callable[[Any], Any]) -> StridedNestedTensor:
    """Compute a function of rows (R, width) on all of them at once; their width may change."""
    if not isinstance(x, StridedNestedTensor):
        raise RuntimeError(f"{name}(): expected a NestedTensor as input")
    if any(s[-1] != width for s in x._pattern):
        raise RuntimeError(
            f"{name}(): last dim of nested tensors must be {width}, but got {list(map(list, x._pattern))}"
        )
    made = fn(x._v.view(-1, width))
    return flat(made.reshape(-1), [(*s[:-1], made.shape[-1]) for s in x._pattern])


@_own("linear")
def linear(input: StridedNestedTensor, weight: Any, bias: Any = None) -> StridedNestedTensor:
    """x @ weight.T + bias."""
    return _rows("linear", input, weight.shape[-1], lambda x: NF.linear(x, weight, bias))


@_own("layer_norm")
def layer_norm(
    input: StridedNestedTensor,
    normalized_shape: Any,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
) -> StridedNestedTensor:
    """Normalise the last dims."""
    return each(input, lambda x: NF.layer_norm(x, normalized_shape, weight, bias, eps))


@_own("softmax")
def softmax(
    input: StridedNestedTensor, dim: int = -1, _stacklevel: int = 3, dtype: Any = None
) -> StridedNestedTensor:
    """exp(x) / sum(exp(x)) along a dim, tensor by tensor."""
    return each(input, lambda x: F["softmax"](x, _inside(input, dim, "softmax"), dtype=dtype))


@_own("log_softmax")
def log_softmax(
    input: StridedNestedTensor, dim: int = -1, _stacklevel: int = 3, dtype: Any = None
) -> StridedNestedTensor:
    """The logarithm of `softmax`."""
    return each(
        input, lambda x: F["log_softmax"](x, _inside(input, dim, "log_softmax"), dtype=dtype)
    )


def _inside(x: StridedNestedTensor, dim: int, name: str) -> int:
    d = place(dim, x.dim())
    if d == 0:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0")
    return d - 1


@_own("matmul", "bmm", "mm")
def matmul(input: Any, other: Any) -> StridedNestedTensor:
    """Products with a dense matrix, and of the tensors of two batches pairwise."""
    if not isinstance(input, StridedNestedTensor):
        raise RuntimeError("Expected both to be nested, but got a non-nested self and nested other")
    if not isinstance(other, StridedNestedTensor):
        if other.ndim == 2:
            return _rows("matmul", input, other.shape[0], lambda x: x @ other)
        if other.ndim != input.dim() or other.shape[0] != len(input):
            raise RuntimeError(
                "Expected both to be nested, but got a nested self and non-nested other"
            )
        return from_list([a @ b for a, b in zip(unbind(input), other, strict=True)])
    if len(input) != len(other):
        raise RuntimeError(
            f"matmul: Expected size for the 1st dimension of 2nd input tensor to be: {len(input)} but got: {len(other)}."
        )
    return from_list([a @ b for a, b in zip(unbind(input), unbind(other), strict=True)])


@_own("scaled_dot_product_attention")
def attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """Attention of each query with the key and value of the same number, tensor by tensor."""
    if not all(isinstance(x, StridedNestedTensor) for x in (query, key, value)):
        raise RuntimeError(
            "Expected query, key, and value to all be nested tensors of strided layout"
        )
    if attn_mask is not None:
        raise RuntimeError("Masks are not yet supported!")
    made = [
        NF.scaled_dot_product_attention(
            q, k, v, None, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
        )
        for q, k, v in zip(unbind(query), unbind(key), unbind(value), strict=True)
    ]
    return from_list(made)


@_own("embedding")
def embedding(input: StridedNestedTensor, weight: Any, *settings: Any, **named: Any) -> Any:
    """Rows of a table for nested indices."""
    made = NF.embedding(input._v, weight, *settings, **named)
    return flat(made.reshape(-1), [(*s, weight.shape[1]) for s in input._pattern])


def _reduction(name: str) -> Callable[..., Any]:
    def fn(input: StridedNestedTensor, dim: Any = None, keepdim: bool = False, **given: Any) -> Any:
        if dim is None:
            return F[name](input._v, **given)
        inside = _inside(input, dim[0] if isinstance(dim, tuple | list) else dim, name)
        if inside != input.dim() - 2:
            raise RuntimeError(f"NestedTensor {name} only reduces across the last dimension")
        return each(input, lambda x: F[name](x, inside, keepdim=keepdim, **given))

    return fn


for _name in ("sum", "mean", "prod", "amax", "amin", "any", "all"):
    _own(_name)(_reduction(_name))


def _of_each(name: str) -> Callable[..., Any]:
    """Return a function whose dims are those of the batch: it moves them by one for each tensor."""

    def fn(input: StridedNestedTensor, dim: int, *rest: Any) -> Any:
        inside = _inside(input, dim, name)
        return each(input, lambda x: F[name](x, inside, *rest))

    return fn


for _name in ("select", "squeeze", "cumsum"):
    _own(_name)(_of_each(_name))


@_own("is_same_size")
def is_same_size(input: Any, other: Any) -> bool:
    """Tell whether the tensors of both batches have the same shapes."""
    nested = [isinstance(x, StridedNestedTensor) for x in (input, other)]
    if not all(nested):
        mine, others = ("nested" if x else "not nested" for x in nested)
        raise RuntimeError(
            f"Expected both self and other to be nested tensors. Self is {mine}. While Other is {others}."
        )
    return input._pattern == other._pattern


@_own("narrow")
def narrow(input: StridedNestedTensor, dim: int, start: int, length: int) -> StridedNestedTensor:
    """Return a part of a dim, or of the batch."""
    if place(dim, input.dim()) == 0:
        return from_list(unbind(input)[start : start + length])
    return each(input, lambda x: x.narrow(dim - 1 if dim > 0 else dim, start, length))


@_own("unsqueeze")
def unsqueeze(input: StridedNestedTensor, dim: int) -> StridedNestedTensor:
    """Insert a dim of size 1, not before the batch."""
    d = place(dim, input.dim() + 1)
    if d == 0:
        raise RuntimeError("unsqueeze(): For nested tensors, squeezing dim 0 is not supported")
    return each(input, lambda x: x.unsqueeze(d - 1))


@_own("transpose", "swapaxes", "swapdims")
def transpose(input: StridedNestedTensor, dim0: int, dim1: int) -> StridedNestedTensor:
    """Swap two dims other than the batch; copies."""
    a, b = place(dim0, input.dim()), place(dim1, input.dim())
    if not a * b:
        raise RuntimeError("Nested tensor dimension 0 cannot be transposed")
    return each(input, lambda x: x.transpose(a - 1, b - 1))


@_own("chunk")
def chunk(input: StridedNestedTensor, chunks: int, dim: int = 0) -> tuple[Any, ...]:
    """Split the last dim into equal parts."""
    if _inside(input, dim, "chunk") != input.dim() - 2:
        raise RuntimeError(
            f"Chunk for nested tensors is currently only supported for the last dimension, got dim {dim}"
        )
    return _split([x.chunk(chunks, -1) for x in unbind(input)])


@_own("split", "split_with_sizes")
def split(input: StridedNestedTensor, split_size: Any, dim: int = 0) -> tuple[Any, ...]:
    """Split the last dim into parts."""
    if _inside(input, dim, "split") != input.dim() - 2:
        raise RuntimeError(
            f"split_with_sizes for nested tensors is currently only supported for the last dimension, got dim {dim}"
        )
    return _split([x.split(split_size, -1) for x in unbind(input)])


def _split(parts: Sequence[Sequence[Any]]) -> tuple[Any, ...]:
    return tuple(from_list(x) for x in zip(*parts, strict=True))


@_own("view", "reshape")
def reshape(input: StridedNestedTensor, *size: Any) -> StridedNestedTensor:
    """Return the elements in another shape: the batch stays, -1 keeps a dim's sizes."""
    wanted = tuple(size[0]) if len(size) == 1 and isinstance(size[0], tuple | list) else size
    if len(wanted) < 2 or wanted[0] not in (-1, len(input)):
        raise RuntimeError(
            "view: For now nested view cannot change or infer the implicit batch dimension"
        )
    shapes = [
        [own[d] if n == -1 and d < len(own) else n for d, n in enumerate(wanted[1:])]
        for own in input._pattern
    ]
    return from_list([x.reshape(s) for x, s in zip(unbind(input), shapes, strict=True)])


@_own("cat", "concat", "concatenate")
def cat(tensors: Sequence[Any], dim: int = 0) -> StridedNestedTensor:
    """Join batches behind each other."""
    if not all(isinstance(x, StridedNestedTensor) for x in tensors):
        raise RuntimeError("cat(): expected each tensor in given list to be nested.")
    if place(dim, tensors[0].dim()):
        raise RuntimeError(
            "cat(): not supported for NestedTensor of strided layout on dim other than 0"
        )
    return flat(F["cat"]([x._v for x in tensors]), [s for x in tensors for s in x._pattern])
