"""Rules for functions with a `dim`: the hidden dimension is moved to the front, and the dims asked for are shifted by one.

torch lets a 0-dim tensor's dim be named 0 or -1. Such a tensor is given a dim of size 1 for the call, which is removed
from the results.
"""

from __future__ import annotations

from typing import Any

from ...layouts import wrap_dim
from ...ops.dims import names_none
from ...tensor import Tensor
from ...utils._pytree import tree_map
from ..calls import Call, named_rule, rule
from .pointwise import aligned


def shifted(dim: Any, ndim: int) -> Any:
    """Return a dim, or each of several, shifted by one for the batch dimension in front."""
    if isinstance(dim, tuple | list):
        return tuple([shifted(d, ndim) for d in dim])
    return wrap_dim(int(dim), max(ndim, 1)) + 1


def _scalars(out: Any) -> Any:
    """Remove from the results the dimension that was added to a 0-dim tensor."""
    return tree_map(lambda t: t.squeeze(1) if isinstance(t, Tensor) and t.ndim > 1 else t, out)


def along(call: Call, given: dict[str, Any], head: str) -> Any:
    """Call the function with `dim` shifted, for the tensor in the argument `head`."""
    x = given[head]
    value, ndim = call.front(x), len(x.shape)
    given["dim"] = shifted(given["dim"], ndim)
    given[head] = value if ndim else value.unsqueeze(1)
    out = call.again(given)
    return call.hide(out if ndim else _scalars(out))


def head_of(given: dict[str, Any]) -> str:
    """Return the name of the first parameter, which holds the tensor."""
    return next(iter(given))


def _of_first(call: Call, given: dict[str, Any]) -> bool:
    """Return whether the first argument is batched and no `out=` is given."""
    return given.get("out") is None and call.here(given[head_of(given)])


@named_rule(
    "sum mean nansum nanmean amax amin logsumexp any all count_nonzero linalg_vector_norm special_logsumexp",
    _of_first,
)
def reduced(call: Call, given: dict[str, Any]) -> Any:
    """Reduce over dims; over all visible ones if none is named."""
    head = head_of(given)
    x, dim = given[head], given["dim"]
    if names_none(dim):
        ndim = len(x.shape)
        keep = given.get("keepdim", False)
        value = call.front(x)
        if call.name == "linalg_vector_norm" and ndim > 1:
            given[head], given["dim"] = value.flatten(1), 1
            given["keepdim"] = False
            out = call.again(given)
            return call.hide(out.reshape(-1, *(1,) * ndim) if keep else out)
        given[head] = value if ndim else value.unsqueeze(1)
        given["dim"] = tuple(range(1, max(ndim, 1) + 1))
        if call.name in ("any", "all", "count_nonzero") and len(given["dim"]) == 1:
            given["dim"] = 1
        out = call.again(given)
        return call.hide(out if ndim else _scalars(out))
    return along(call, given, head)


@named_rule("prod argmax argmin median nanmedian aminmax quantile nanquantile", _of_first)
def flat(call: Call, given: dict[str, Any]) -> Any:
    """Reduce over one dim, over all elements where none is named."""
    head = head_of(given)
    x, ndim = given[head], len(given[head].shape)
    if call.here(given.get("q")):
        return call.fallback()
    lead = int("q" in given and isinstance(given["q"], Tensor) and given["q"].ndim)
    if given["dim"] is None:
        keep = given.get("keepdim", False)
        given[head], given["dim"] = call.front(x).reshape(call.size, -1), 1
        if "keepdim" in given:
            given["keepdim"] = False
        out = call.again(given)
        if call.name in ("median", "nanmedian"):
            out = out[0]
        if keep and ndim:
            ones = (1,) * ndim
            out = tree_map(lambda t: t.reshape(*t.shape, *ones), out)
        return call.hide(out, lead)
    given["dim"] = shifted(given["dim"], ndim)
    value = call.front(x)
    given[head] = value if ndim else value.unsqueeze(1)
    out = call.again(given)
    if not ndim and given.get("keepdim"):
        out = tree_map(lambda t: t.squeeze(-1), out)
    return call.hide(out, lead)


@rule("max min")
def extremes(call: Call, input: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the extreme of all elements, the extremes along a dim, or the elementwise extremes of two tensors."""
    other = kwargs.get("other", args[0] if args else None)
    if isinstance(other, Tensor):
        pair = "maximum" if call.name == "max" else "minimum"
        from ...ops.row import FUNCTIONS

        return FUNCTIONS[pair](input, other)
    keep = kwargs.get("keepdim", kwargs.get("keepdims", args[1] if len(args) > 1 else False))
    dim = kwargs.get("dim", kwargs.get("axis", other))
    value, ndim = call.front(input), len(input.shape)
    if dim is None:
        return call.hide(
            getattr(value, "a" + call.name)(tuple(range(1, ndim + 1))) if ndim else value.clone()
        )
    out = call.f(value if ndim else value.unsqueeze(1), shifted(dim, ndim), keepdim=keep)
    return call.hide(out if ndim else _scalars(out))


@rule("var std var_mean std_mean")
def spread(call: Call, input: Any, *args: Any, **kwargs: Any) -> Any:
    """Compute variances or standard deviations over dims; over all visible ones if none is named."""
    given = {k: v for k, v in kwargs.items() if k != "out"}
    names = ("unbiased",) if args and isinstance(args[0], bool) else ("dim", "unbiased", "keepdim")
    given |= dict(zip(names, args, strict=False))
    dim = given.pop("dim", given.pop("axis", None))
    if given.get("unbiased", 0) is None:
        del given["unbiased"]
    if "unbiased" in given:
        given["correction"] = int(given.pop("unbiased"))
    ndim = len(input.shape)
    value = call.front(input)
    dims = tuple(range(1, max(ndim, 1) + 1)) if names_none(dim) else shifted(dim, ndim)
    out = call.f(value if ndim else value.unsqueeze(1), dim=dims, **given)
    return call.hide(out if ndim else _scalars(out))


@rule("unsafe_chunk unsafe_split unsafe_split_with_sizes")
def apart(call: Call, input: Any, *args: Any, **kwargs: Any) -> Any:
    """Split a copy of the tensor, so that the parts do not share its memory."""
    return getattr(input.clone(), call.name.removeprefix("unsafe_"))(*args, **kwargs)


@named_rule(
    "sort argsort topk kthvalue mode cummax cummin cumsum cumprod logcumsumexp softmax log_softmax softmin glu unbind split split_with_sizes "
    "chunk tensor_split narrow unflatten renorm special_softmax special_log_softmax "
    "linalg_vander_ fft_fft fft_ifft fft_rfft fft_irfft fft_hfft fft_ihfft fft_fft2 fft_ifft2 fft_rfft2 fft_irfft2 fft_hfft2 fft_ihfft2 ",
    _of_first,
)
def one(call: Call, given: dict[str, Any]) -> Any:
    """Call a function that works along one dim; without a dim, it takes the fallback."""
    if given.get("dim", 0) is None:
        return call.fallback()
    head = head_of(given)
    if not len(given[head].shape) and call.name in (
        "unbind",
        "split",
        "chunk",
        "tensor_split",
        "narrow",
        "split_with_sizes",
    ):
        return call.fallback()
    if call.name == "renorm":
        return call.fallback()
    if call.name == "unflatten":
        given["sizes"] = tuple(given["sizes"])
    return along(call, given, head)


@named_rule(
    "fft_fftn fft_ifftn fft_rfftn fft_irfftn fft_hfftn fft_ihfftn fft_fftshift fft_ifftshift",
    _of_first,
)
def transformed(call: Call, given: dict[str, Any]) -> Any:
    """Transform over dims; over all visible ones if none is named."""
    head = head_of(given)
    if given["dim"] is None:
        ndim = len(given[head].shape)
        sizes = given.get("s")
        given["dim"] = tuple(range(ndim if sizes is None else len(sizes)))
        if sizes is not None:
            given["dim"] = tuple(range(ndim - len(sizes), ndim))
    return along(call, given, head)


@named_rule("diff")
def diff(call: Call, given: dict[str, Any]) -> Any:
    """Return differences along a dim, after joining `prepend` and `append` to the input."""
    ndim = len(given["input"].shape)
    given["dim"] = shifted(given["dim"], ndim)
    for name in ("input", "prepend", "append"):
        if given[name] is not None:
            given[name] = call.full(given[name])
    return call.hide(call.again(given))


@rule("msort")
def msort(call: Call, input: Any, **kwargs: Any) -> Any:
    """Sort along the first dim."""
    return input.sort(0)[0]


@rule("flip")
def flip(call: Call, input: Any, *dims: Any, **kwargs: Any) -> Any:
    """Reverse dims."""
    if kwargs:
        dims = (kwargs["dims"],)
    if len(dims) == 1 and isinstance(dims[0], tuple | list):
        dims = tuple(dims[0])
    value, ndim = call.front(input), len(input.shape)
    if not ndim:
        return input.clone()
    return call.hide(value.flip(shifted(dims, ndim)))


@named_rule("roll")
def roll(call: Call, given: dict[str, Any]) -> Any:
    """Roll along dims; along the flattened slice if none is named."""
    x = given["input"]
    value, ndim = call.front(x), len(x.shape)
    if given["dims"] in ((), None, []):
        shift = given["shifts"]
        shift = shift[0] if isinstance(shift, tuple | list) else shift
        return call.hide(value.reshape(call.size, -1).roll(shift, 1).reshape(value.shape))
    return call.hide(value.roll(given["shifts"], shifted(given["dims"], ndim)))


@named_rule("trapezoid trapz cumulative_trapezoid")
def area(call: Call, given: dict[str, Any]) -> Any:
    """Integrate along a dim."""
    y = given["y"]
    if (given["x"] is not None and (call.here(given["x"]) or given["x"].ndim > 1)) or not call.here(
        y
    ):
        return call.fallback()
    return along(call, given, "y")


@rule("linalg_cross cross")
def cross(call: Call, input: Any, other: Any, dim: Any = None, **kwargs: Any) -> Any:
    """Return cross products along a dim: by default the first of size 3 (torch.cross), or the last (linalg.cross)."""
    dim = kwargs.get("axis", dim)
    if dim is None:
        if call.name == "cross":
            shape = [max(a, b) for a, b in zip(input.shape, other.shape, strict=True)]
            dim = next((d for d, n in enumerate(shape) if n == 3), None)
            if dim is None:
                return call.fallback()
        else:
            dim = -1
    ndim = max(len(input.shape), len(other.shape))
    a, b = aligned(call, (input, other))
    return call.hide(
        call.f(
            a if call.here(input) else a[None],
            b if call.here(other) else b[None],
            dim=wrap_dim(dim, ndim) + 1,
        )
    )


@named_rule("repeat_interleave")
def repeat_interleave(call: Call, given: dict[str, Any]) -> Any:
    """Repeat elements along a dim; those of the flattened slice if none is named."""
    x, repeats, dim = given["input"], given["repeats"], given["dim"]
    if not call.here(x) or repeats is None or call.here(repeats):
        return call.loop()
    value = call.front(x)
    if dim is None or not len(x.shape):
        value, dim = value.reshape(call.size, -1), 0
    return call.hide(value.repeat_interleave(repeats, shifted(dim, value.ndim - 1)))
