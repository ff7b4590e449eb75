"""Rules for views: nothing is copied when the hidden dimension is moved, so that writes into a view reach its base."""

from __future__ import annotations

import functools
from typing import Any

from ...dtypes import dtype
from ...layouts import broadcast_shapes, infer_shape, wrap_dim
from ...ops.row import FUNCTIONS
from ...ops.shape import sizes
from ...utils._pytree import tree_map
from ..batched import hide
from ..calls import Call, named_rule, rule
from .dims import shifted


def _sizes(name: str, args: tuple, kwargs: dict[str, Any]) -> tuple[int, ...]:
    """Return the sizes or dims that a call passes as several arguments, as one sequence, or by name."""
    for key in ("shape", "size", "dims"):
        if key in kwargs and not args:
            args = (kwargs.pop(key),)
    return sizes(name, args)


@rule("view reshape")
def reshaped(call: Call, input: Any, *shape: Any, **kwargs: Any) -> Any:
    """View (or copy, if `reshape` has to) the elements in another shape; `view` also takes a dtype."""
    if "dtype" in kwargs:
        shape = (kwargs.pop("dtype"),)
    if len(shape) == 1 and isinstance(shape[0], dtype):
        value = call.front(input)
        if not input.shape and shape[0].itemsize != value.dtype.itemsize:
            return call.fallback()
        return call.hide(value.view(shape[0]))
    wanted = infer_shape(_sizes(call.name, shape, kwargs), input.numel())
    return call.hide(call.f(call.front(input), (call.size, *wanted)))


@rule("view_as reshape_as expand_as")
def like(call: Call, self: Any, other: Any) -> Any:
    """Call `view`, `reshape` or `expand` with another tensor's shape."""
    return getattr(self, call.name[:-3])(other.shape)


@rule("flatten")
def flatten(call: Call, input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """Merge the dims from `start_dim` to `end_dim` into one."""
    if not len(input.shape):
        return input.reshape(1)
    ndim = len(input.shape)
    return call.hide(
        call.f(call.front(input), wrap_dim(start_dim, ndim) + 1, wrap_dim(end_dim, ndim) + 1)
    )


@rule("ravel")
def ravel(call: Call, input: Any) -> Any:
    """Merge all dims into one."""
    return input.contiguous().reshape(-1)


@rule("expand broadcast_to")
def expand(call: Call, input: Any, *size: Any, implicit: bool = False, **kwargs: Any) -> Any:
    """Broadcast along new leading dims and dims of size 1."""
    wanted = _sizes(call.name, size, kwargs)
    value = call.front(input)
    missing = len(wanted) - len(input.shape)
    if missing < 0:
        return input.value.select(input.bdim, 0).expand(wanted)  # raises
    if missing:
        value = value.reshape(call.size, *(1,) * missing, *value.shape[1:])
        wanted = tuple([1 if n == -1 and d < missing else n for d, n in enumerate(wanted)])
    return call.hide(value.expand(call.size, *wanted))


@rule("permute")
def permute(call: Call, input: Any, *dims: Any, **kwargs: Any) -> Any:
    """Reorder the dims."""
    order = _sizes(call.name, dims, kwargs)
    ndim = len(input.shape)
    return call.hide(
        call.f(call.front(input), (0, *[wrap_dim(d, max(ndim, 1)) + 1 for d in order]))
    )


@named_rule("transpose swapdims swapaxes")
def transpose(call: Call, given: dict[str, Any]) -> Any:
    """Exchange two dims."""
    x, a, b = list(given.values())[:3]
    ndim = len(x.shape)
    if not ndim:
        wrap_dim(a, 1), wrap_dim(b, 1)
        return x
    made = call.front(x).transpose(shifted(a, ndim), shifted(b, ndim))
    return call.hide(made)


@rule("movedim moveaxis")
def movedim(call: Call, input: Any, source: Any, destination: Any) -> Any:
    """Move dims to other positions."""
    ndim = len(input.shape)
    return call.hide(call.front(input).movedim(shifted(source, ndim), shifted(destination, ndim)))


@rule("t numpy_T matrix_T matrix_H adjoint")
def turned(call: Call, input: Any) -> Any:
    """Transpose: `t` a matrix, `numpy_T` (that is `.T`) all dims, the others the last two dims."""
    ndim = len(input.shape)
    value = call.front(input)
    if call.name == "t" and ndim > 2:
        return input.value.select(input.bdim, 0).t()  # raises
    if call.name == "numpy_T":
        return call.hide(value.permute(0, *range(ndim, 0, -1)))
    if ndim < 2:
        if call.name == "t":
            return call.hide(value.view_as(value))
        return call.f(input.value.select(input.bdim, 0))  # raises
    made = value.transpose(-1, -2)
    if call.name in ("matrix_H", "adjoint") and made.is_complex():
        made = made.conj()
    return call.hide(made)


@rule("unsqueeze")
def unsqueeze(call: Call, input: Any, dim: int = 0, **kwargs: Any) -> Any:
    """Insert a dim of size 1."""
    dim = kwargs.get("axis", dim)
    place = wrap_dim(dim, len(input.shape) + 1) + 1
    return call.hide(call.front(input).unsqueeze(place))


@rule("squeeze")
def squeeze(call: Call, input: Any, dim: Any = None, **kwargs: Any) -> Any:
    """Remove dims of size 1: all, or those named."""
    dim = kwargs.get("axis", dim)
    ndim, value = len(input.shape), call.front(input)
    if not ndim:
        return input
    if dim is None:
        places: Any = tuple([d + 1 for d, n in enumerate(input.shape) if n == 1])
        return call.hide(value.squeeze(places) if places else value.view_as(value))
    return call.hide(value.squeeze(shifted(dim, ndim)))


@named_rule("select")
def select(call: Call, given: dict[str, Any]) -> Any:
    """View one index of a dim; the dim is removed."""
    x, dim, index = given["input"], given["dim"], given["index"]
    if not len(x.shape) or call.here(index):
        return call.fallback()
    made = call.front(x).select(shifted(dim, len(x.shape)), index)
    return call.hide(made)


@named_rule("diagonal")
def diagonal(call: Call, given: dict[str, Any]) -> Any:
    """View a diagonal of two dims as the last dim."""
    ndim = len(given["input"].shape)
    return call.hide(
        call.front(given["input"]).diagonal(
            given["offset"], shifted(given["dim1"], ndim), shifted(given["dim2"], ndim)
        )
    )


@named_rule("unfold")
def unfold(call: Call, given: dict[str, Any]) -> Any:
    """View sliding windows along a dim.

    `nn.functional.unfold` has the same name in the table of rules: calls with a `kernel_size` are its calls.
    """
    if "kernel_size" in given:
        from .images import folded

        return folded(call, *call.args, **call.kwargs)
    x = given["self"]
    if not len(x.shape):
        windows = call.front(x).unsqueeze(1).unfold(1, given["size"], given["step"])
        return call.hide(windows.squeeze(1))
    place = shifted(given["dimension"], len(x.shape))
    return call.hide(call.front(x).unfold(place, given["size"], given["step"]))


@rule("as_strided")
def as_strided(
    call: Call, input: Any, size: Any, stride: Any, storage_offset: int | None = None
) -> Any:
    """View the memory with sizes and strides, per slice.

    Raises RuntimeError if positions lie outside the first slice.
    """
    if len(size) != len(stride):
        raise RuntimeError(
            f"Tensor.as_strided(size, stride, ...): size and stride must have the same length! Got size {list(size)} and stride {list(stride)}"
        )
    value = call.front(input)
    first = value.storage_offset()
    offset = first if storage_offset is None else storage_offset
    end, last = (
        start + sum((n - 1) * step for n, step in zip(sizes, steps, strict=True)) + 1
        for start, sizes, steps in (
            (offset, size, stride),
            (first, value.shape[1:], value.stride()[1:]),
        )
    )
    if 0 not in size and (offset < first or end > last):
        raise RuntimeError(
            f"result = tensor.as_strided({list(size)}, {list(stride)}, {offset}) can access memory outside of `tensor`. "
            f"`result` can access some memory in range [{offset}, {end}], but `tensor` can only access some memory in range "
            f"[{first}, {last}]. This is not supported inside of vmap, please try to rewrite the `as_strided` call as a "
            "sequence of PyTorch view operations"
        )
    return call.hide(value.as_strided((call.size, *size), (value.stride()[0], *stride), offset))


@rule("view_as_real view_as_complex")
def pairs(call: Call, input: Any) -> Any:
    """View complex numbers as pairs of real numbers, or pairs as complex numbers."""
    if call.name == "view_as_complex" and not len(input.shape):
        return call.fallback()
    return call.hide(call.f(call.front(input)))


@rule("real imag")
def part(call: Call, input: Any) -> Any:
    """View the real or the imaginary parts of complex numbers."""
    return hide(call.f(input.value), input.bdim, call.level)


@rule("set_real set_imag")
def set_part(call: Call, self: Any, value: Any) -> None:
    """Write the real or the imaginary parts of complex numbers."""
    (self.real if call.name == "set_real" else self.imag).copy_(value)


@rule("view_dtype")
def bits(call: Call, x: Any, dt: dtype) -> Any:
    """View the bits as another dtype."""
    return x.view(dt)


@rule("repeat tile")
def repeat(call: Call, input: Any, *repeats: Any, **kwargs: Any) -> Any:
    """Copy the tensor several times along each dim."""
    for key in ("repeats", "dims"):
        if key in kwargs:
            repeats = (kwargs[key],)
    counts = sizes(call.name, repeats)
    ndim = len(input.shape)
    if call.name == "tile" and len(counts) < ndim:
        counts = (1,) * (ndim - len(counts)) + tuple(counts)
    value = call.front(input)
    missing = len(counts) - ndim
    if missing < 0:
        return call.fallback()
    if missing:
        value = value.reshape(call.size, *(1,) * missing, *value.shape[1:])
    return call.hide(value.repeat(1, *counts))


@rule("broadcast_tensors")
def broadcast_tensors(call: Call, *tensors: Any) -> Any:
    """Expand tensors to their common shape."""
    shape = broadcast_shapes(*[tuple(t.shape) for t in tensors])
    return tuple([t.expand(shape) for t in tensors])


@rule("sum_to_size")
def sum_to_size(call: Call, self: Any, *size: Any, **kwargs: Any) -> Any:
    """Sum over the dims along which a tensor of the wanted size would be broadcast to this one."""
    wanted = _sizes(call.name, size, kwargs)
    ndim, lead = len(self.shape), len(self.shape) - len(wanted)
    dims = [d for d in range(ndim) if d < lead or (wanted[d - lead] == 1 and self.shape[d] != 1)]
    out = self.sum(dims, keepdim=True) if dims else self
    return out.reshape(wanted) if lead else out


@rule(
    "as_strided_copy diagonal_copy expand_copy narrow_copy permute_copy select_copy split_copy split_with_sizes_copy squeeze_copy "
    "t_copy transpose_copy unbind_copy unfold_copy unsqueeze_copy view_copy view_as_real_copy"
)
def copied(call: Call, input: Any, *args: Any, **kwargs: Any) -> Any:
    """Return a copy of the view that the function of the same name without `_copy` makes."""
    plain = call.name.removesuffix("_copy")
    view = getattr(input, plain, None) or functools.partial(FUNCTIONS[plain], input)
    return tree_map(lambda t: t.clone(), view(*args, **kwargs))
