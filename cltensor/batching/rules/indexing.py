"""Rules for indexing and scattering: a batched index tensor is combined with an index of slice numbers for the batch dimension."""

from __future__ import annotations

from typing import Any

from ...layouts import broadcast_shapes, wrap_dim
from ...ops.row import FUNCTIONS
from ...ops.subscripts import MASKS, as_integer, as_tuple, is_sequence
from ...tensor import Tensor
from ..batched import Batched, NoRule, hide
from ..calls import DYNAMIC, Call, named_rule, rule
from ..levels import STACK
from .dims import shifted
from .pointwise import refuse_unbatched

_MASK = (
    "vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over indexing with a boolean "
    "mask."
)
_SELECTED = (
    "vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask) We cannot support this because for each batch this "
    "would return a differently shaped Tensor. Please file an issue at https://github.com/pytorch/pytorch/issues if you need this "
    "feature."
)


def _numbers(call: Call, like: Any, ndim: int) -> Any:
    """Return the slice numbers 0, 1, … as an index tensor of `ndim` dims, along the first of them."""
    made = FUNCTIONS["arange"](call.size, device=like.device)
    return made.reshape(call.size, *(1,) * (ndim - 1))


# ------------------------------------------------------------------------------------------- subscripts


def _items(index: Any) -> tuple:
    return index if isinstance(index, tuple) else as_tuple(index) or (index,)


def _taken_apart(x: Any, index: Any) -> tuple[Any, list[Any]]:
    """Apply the parts of a subscript that make views (integers, slices, None).

    Return the view, and a list with the index tensor of each of its dims (None for a dim without one); masks are
    converted to index tensors. The list is empty if the subscript has no tensors.
    """
    items = list(_items(index))
    items = [
        FUNCTIONS["tensor"](i, device=x.device) if is_sequence(i) and as_integer(i) is None else i
        for i in items
    ]
    if not any(isinstance(i, Tensor) for i in items):
        return x[tuple(items)], []
    named = sum(
        (i.ndim if i.dtype in MASKS else 1)
        if isinstance(i, Tensor)
        else int(i is not None and i is not Ellipsis and not isinstance(i, bool))
        for i in items
    )
    rest = len(x.shape) - named
    if not any(i is Ellipsis for i in items):
        items.append(Ellipsis)
    plain: list[Any] = []
    found: list[Any] = []
    for i in items:
        if isinstance(i, Tensor):
            if i.dtype in MASKS and i.__class__ is Batched:
                raise RuntimeError(_MASK)
            wide = i.ndim if i.dtype in MASKS else 1
            plain += [slice(None)] * wide
            found += list(i.nonzero().unbind(1)) if i.dtype in MASKS else [i]
        elif i is Ellipsis:
            plain += [slice(None)] * rest
            found += [None] * rest
        else:
            plain.append(i)
            if as_integer(i) is None or isinstance(i, bool):
                found.append(None)
    return x[tuple(plain)], found


@rule("getitem")
def getitem(call: Call, x: Any, index: Any) -> Any:
    """Return `x[index]`."""
    items = _items(index)
    tensors = any(
        isinstance(i, Tensor) or (is_sequence(i) and as_integer(i) is None) for i in items
    )
    if not tensors:
        value = call.front(x)
        whole = (slice(None), *items)
        return call.hide(value[whole])
    seen, found = _taken_apart(x, index)
    return _picked(call, seen, found) if found else seen


def _block(found: list[Any]) -> tuple[int, bool]:
    """Return the first dim with an index tensor, and whether all such dims are adjacent."""
    places = [d for d, i in enumerate(found) if i is not None]
    return places[0], places == list(range(places[0], places[-1] + 1))


def _broadcast(call: Call, found: list[Any]) -> tuple[list[Any], int]:
    """Return the index tensors with the hidden dimension in front (slices for None), and the visible rank of their common shape."""
    ndim = max(len(i.shape) for i in found if i is not None)
    made = []
    for i in found:
        if call.here(i):
            value = call.front(i)
            i = value.reshape(value.shape[0], *(1,) * (ndim - len(i.shape)), *value.shape[1:])
        made.append(slice(None) if i is None else i)
    return made, ndim


def _picked(call: Call, x: Any, found: list[Any]) -> Any:
    """Index a tensor with an index tensor or None for each dim, as `_taken_apart` returns them."""
    start, together = _block(found)
    if not any(call.here(i) for i in found):
        if not call.here(x):
            return x[tuple(slice(None) if i is None else i for i in found)]
        value = call.front(x)
        whole = (slice(None), *[slice(None) if i is None else i for i in found])
        out = value[whole]
        ndim = len(broadcast_shapes(*[tuple(i.shape) for i in found if i is not None]))
        return call.hide(out, 0 if together else ndim)
    made, ndim = _broadcast(call, found)
    if not call.here(x):
        return call.hide(x[tuple(made)], start if together else 0)
    value = call.front(x)
    numbered = (_numbers(call, value, ndim + 1), *made)
    out = value[numbered]
    if together and start:
        out = out.movedim(tuple(range(1, ndim + 1)), tuple(range(start + 1, start + ndim + 1)))
    return call.hide(out)


@rule("setitem")
def setitem(call: Call, x: Any, index: Any, value: Any) -> None:
    """Execute `x[index] = value`."""
    refuse_unbatched(call, x)
    seen, found = _taken_apart(x, index)
    if not found:
        if isinstance(value, Tensor):
            while len(value.shape) > len(seen.shape) and value.shape[0] == 1:
                value = value.squeeze(0)
            seen.copy_(value)
        else:
            seen.fill_(value)
        return
    if not isinstance(value, Tensor):
        value = (
            seen.new_empty((), dtype=x.dtype).fill_(value)
            if not hasattr(value, "__len__")
            else FUNCTIONS["tensor"](value, dtype=x.dtype, device=x.device)
        )
    _put(call, seen, found, value, False)


def _put(call: Call, seen: Any, found: list[Any], value: Any, accumulate: bool) -> None:
    """Write, or with `accumulate` add, a value into the elements of `seen` that the index tensors in `found` name."""
    start, together = _block(found)
    into = call.front(seen)
    made, ndim = _broadcast(call, found)
    joint = broadcast_shapes(*[tuple(i.shape) for i in found if i is not None])
    rest = [n for d, n in enumerate(seen.shape) if d >= len(found) or found[d] is None]
    at = start if together else 0
    shape = (*rest[:at], *joint, *rest[at:])
    value = value.to(seen.dtype) if value.dtype is not seen.dtype else value
    whole = call.full(value.expand(shape))
    if at:
        whole = whole.movedim(tuple(range(at + 1, at + ndim + 1)), tuple(range(1, ndim + 1)))
    # Dims with an index tensor go to the front, next to the batch dimension, so that all indexed dims are adjacent.
    places = [d + 1 for d, i in enumerate(found) if i is not None]
    others = [d for d in range(1, into.ndim) if d not in places]
    indices = [i for i in made if not isinstance(i, slice)]
    into.permute(0, *places, *others).index_put_(
        [_numbers(call, into, ndim + 1), *indices], whole, accumulate=accumulate
    )


@rule("index_put index_put_")
def index_put(call: Call, input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """Write, or with `accumulate` add, values at the positions given by index tensors or masks."""
    found: list[Any] = []
    for i in indices:
        if isinstance(i, Tensor) and i.dtype in MASKS:
            if i.__class__ is Batched:
                raise RuntimeError(_MASK)
            found += list(i.nonzero().unbind(1))
        else:
            found.append(i)
    out = input
    if call.name == "index_put":
        out = call.hide(call.full(input).clone())
    else:
        refuse_unbatched(call, input)
    _put(call, out, found + [None] * (len(input.shape) - len(found)), values, accumulate)
    return out


# ------------------------------------------------------------------------------------------- along a dim


@named_rule("gather")
def gather(call: Call, given: dict[str, Any]) -> Any:
    """Gather elements along a dim."""
    x, index = given["input"], given["index"]
    a, i = call.full(x), call.full(index)
    dim = shifted(given["dim"], len(x.shape))
    if not len(x.shape):
        a = a.unsqueeze(1)
    flat = not len(index.shape)
    if flat:
        i = i.unsqueeze(1)
    out = call.f(a, dim, i)
    return call.hide(out.squeeze(1) if flat else out)


@named_rule("take_along_dim")
def take_along_dim(call: Call, given: dict[str, Any]) -> Any:
    """Gather elements along a dim, with broadcasting; from the flattened input if `dim` is None."""
    x, index, dim = given["input"], given["indices"], given["dim"]
    if dim is None:
        return x.reshape(-1).gather(0, index.reshape(-1))
    ndim = len(x.shape)
    if len(index.shape) != ndim:
        return call.fallback()
    return call.hide(call.f(call.full(x), call.full(index), wrap_dim(dim, ndim) + 1))


@rule("scatter scatter_add scatter_reduce")
def scatter(call: Call, input: Any, dim: int, index: Any, *args: Any, **kwargs: Any) -> Any:
    """Scatter elements or a number along a dim."""
    dim = kwargs.pop("axis", dim)
    names = ("src", "reduce")
    given = dict(zip(names, args, strict=False)) | kwargs
    src = given.pop("src", given.pop("value", None))
    x, i = call.full(input), call.full(index)
    scalar, flat = not len(input.shape), not len(index.shape)
    x, i = (x.unsqueeze(1) if scalar else x), (i.unsqueeze(1) if flat else i)
    if isinstance(src, Tensor):
        low = not len(src.shape)
        src = call.full(src)
        src = src.unsqueeze(1) if low else src
        if low and not flat:
            src = src.reshape(-1, *(1,) * (i.ndim - 1)).expand(i.shape)
    rest = [given.pop("reduce")] if "reduce" in given and call.name == "scatter_reduce" else []
    if isinstance(src, Tensor):
        out = call.f(x, shifted(dim, len(input.shape)), i, src, *rest, **given)
    else:
        out = call.f(x, shifted(dim, len(input.shape)), i, value=src, **given)
    return call.hide(out.squeeze(1) if scalar else out)


@named_rule("index_select")
def index_select(call: Call, given: dict[str, Any]) -> Any:
    """Select along a dim by a 1-d index."""
    x, index = given["input"], given["index"]
    ndim = len(x.shape)
    if not call.here(index):
        value = call.front(x)
        if not ndim:
            return call.hide(value.unsqueeze(1).index_select(1, index).squeeze(1))
        return call.hide(value.index_select(shifted(given["dim"], ndim), index))
    if not ndim:
        return x.clone()
    dim = wrap_dim(given["dim"], ndim)
    picked = index if len(index.shape) else index.reshape(1)
    place = (*(slice(None),) * dim, picked)
    return x[place]


@rule("index_add index_copy index_fill index_reduce")
def index_write(call: Call, input: Any, dim: int, index: Any, *args: Any, **kwargs: Any) -> Any:
    """Write into the positions of a dim that a 1-d index names.

    With a batched index, the slices are concatenated along that dim, and slice i's index is increased by i times its
    size.
    """
    ndim = len(input.shape)
    if not ndim:
        more = [
            a.reshape(1) if isinstance(a, Tensor) and call.name != "index_fill" else a for a in args
        ]
        return call.f(input.reshape(1), dim, index, *more, **kwargs).reshape(())
    dim = wrap_dim(dim, ndim)
    named = dict(kwargs)
    source = named.pop("source", named.pop("value", None))
    rest = list(args)
    if rest:
        source = rest.pop(0)
    x = call.full(input)
    if not call.here(index):
        if isinstance(source, Tensor):
            if call.name == "index_fill":
                if call.here(source):
                    mask = FUNCTIONS["zeros"](
                        input.shape[dim], dtype=FUNCTIONS["tensor"](True).dtype, device=x.device
                    )
                    mask[index] = True
                    shape = [-1 if d == dim else 1 for d in range(ndim)]
                    return input.where(~mask.reshape(shape), source.to(input.dtype))
            else:
                low = not len(source.shape)
                source = call.full(source)
                if low:
                    source = source.reshape(-1, *(1,) * ndim)
        return call.hide(call.f(x, dim + 1, index, source, *rest, **named))
    if call.name == "index_fill" and isinstance(source, Tensor) and call.here(source):
        return call.loop()
    size, length = call.size, input.shape[dim]
    index = index if len(index.shape) else index.reshape(1)
    i = call.front(index)
    i = (i + FUNCTIONS["arange"](size, device=i.device).unsqueeze(1) * length).reshape(-1)
    flat = x.movedim(dim + 1, 1).flatten(0, 1)
    if isinstance(source, Tensor) and call.name != "index_fill":
        if not len(source.shape):
            source = source.reshape(*(1,) * ndim)
        source = call.full(source).movedim(dim + 1, 1).flatten(0, 1)
    out = call.f(flat, 0, i, source, *rest, **named)
    return call.hide(out.unflatten(0, (size, length)).movedim(1, dim + 1))


@rule("take")
def take(call: Call, input: Any, index: Any, **kwargs: Any) -> Any:
    """Take elements by their index in the flattened input."""
    flat = input.reshape(-1)
    return flat[index.reshape(-1)].reshape(index.shape)


@rule("put")
def put(call: Call, input: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    """Write elements by their index in the flattened input."""
    flat = input.reshape(-1)
    if not call.here(flat):
        flat = call.hide(call.full(flat))
    values = source.reshape(-1)
    return flat.index_put((index.reshape(-1),), values, accumulate).reshape(input.shape)


@named_rule("embedding")
def embedding(call: Call, given: dict[str, Any]) -> Any:
    """Look up rows of a table.

    Batched tables are concatenated to one, and slice i's indices are increased by i times a table's rows.
    """
    index = given.get("indices", given.get("input"))
    weight = given["weight"]
    key = "indices" if "indices" in given else "input"
    if not call.here(weight):
        given[key] = call.front(index)
        return call.hide(call.again(given))
    pad = given.get("padding_idx")
    if (
        (pad is not None and pad != -1)
        or given.get("max_norm") is not None
        or len(weight.shape) != 2
    ):
        return call.fallback()
    rows = weight.shape[0]
    table = call.front(weight)
    if not call.here(index):
        return call.hide(table[:, index])
    numbers = FUNCTIONS["arange"](call.size, device=table.device) * rows
    given["weight"] = table.flatten(0, 1)
    i = call.front(index)
    given[key] = i + numbers.reshape(-1, *(1,) * (i.ndim - 1))
    return call.hide(call.again(given))


@rule("one_hot")
def one_hot(call: Call, tensor: Any, num_classes: int = -1) -> Any:
    """Encode an index as one-hot vectors; `num_classes` must be given, since a value cannot decide the shape."""
    if num_classes <= 0:
        raise RuntimeError(
            "When vmap-ing torch.nn.functional.one_hot, please provide an explicit positive num_classes argument."
        )
    return hide(call.f(tensor.value, num_classes), tensor.bdim, call.level)


@rule("masked_select")
def masked_select(call: Call, input: Any, mask: Any, **kwargs: Any) -> Any:
    """Select the elements where a mask holds; a batched mask raises RuntimeError."""
    if mask.__class__ is Batched:
        raise RuntimeError(_SELECTED)
    shape = broadcast_shapes(tuple(input.shape), tuple(mask.shape))
    return input.expand(shape)[mask.expand(shape)]


@rule("masked_scatter")
def masked_scatter(call: Call, input: Any, mask: Any, source: Any) -> Any:
    """Write elements of `source`, in order, where a mask holds: a loop over the slices."""
    return call.loop()


@rule("nonzero unique unique_consecutive")
def dynamic(call: Call, *args: Any, **kwargs: Any) -> Any:
    """Raise RuntimeError: the size of the result would differ between slices."""
    if STACK.inside:
        raise NoRule(call.name)
    raise RuntimeError(DYNAMIC.format("_unique2" if call.name == "unique" else call.name))


@named_rule("select_scatter")
def select_scatter(call: Call, given: dict[str, Any]) -> Any:
    """Return the input with a tensor in the place of one index of a dim."""
    x = given["input"]
    return call.hide(
        call.f(
            call.full(x),
            call.full(given["src"]),
            shifted(given["dim"], len(x.shape)),
            given["index"],
        )
    )


@named_rule("slice_scatter")
def slice_scatter(call: Call, given: dict[str, Any]) -> Any:
    """Return the input with a tensor in the place of a slice of a dim."""
    x = given["input"]
    given["dim"] = shifted(given["dim"], len(x.shape))
    given["input"], given["src"] = call.full(x), call.full(given["src"])
    return call.hide(call.again(given))


@named_rule("diagonal_scatter")
def diagonal_scatter(call: Call, given: dict[str, Any]) -> Any:
    """Return the input with a tensor in the place of a diagonal."""
    x = given["input"]
    for name in ("dim1", "dim2"):
        given[name] = shifted(given[name], len(x.shape))
    given["input"], given["src"] = call.full(x), call.full(given["src"])
    return call.hide(call.again(given))


@rule("argwhere nonzero_static")
def slices(call: Call, *args: Any, **kwargs: Any) -> Any:
    """Loop over the slices."""
    return call.loop()


@named_rule("bucketize")
def bucketize(call: Call, given: dict[str, Any]) -> Any:
    """Find the bucket between boundaries that each element falls into."""
    x, bounds = given["input"], given["boundaries"]
    if not isinstance(x, Tensor) or given["out"] is not None:
        return call.fallback()
    if call.here(bounds):
        return FUNCTIONS["searchsorted"](
            bounds, x, out_int32=given["out_int32"], right=given["right"]
        )
    given["input"] = call.front(x)
    return call.hide(call.again(given))


@rule("searchsorted")
def searchsorted(call: Call, sorted_sequence: Any, input: Any, **kwargs: Any) -> Any:
    """Find where elements would be inserted into sorted rows."""
    if not isinstance(input, Tensor) or kwargs.get("out") is not None:
        return call.fallback()
    order = kwargs.get("sorter")
    s = call.full(sorted_sequence)
    if len(sorted_sequence.shape) == 1:
        shape = input.shape
        flat = call.full(input.reshape(-1) if len(shape) != 1 else input)
        if order is not None:
            kwargs["sorter"] = call.full(order)
        made = call.hide(call.f(s, flat.contiguous(), **kwargs))
        return made.reshape(shape)
    if order is not None:
        kwargs["sorter"] = call.full(order)
    return call.hide(call.f(s, call.full(input), **kwargs))
