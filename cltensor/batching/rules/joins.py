"""Rules for functions that join or split tensors.

In a join, tensors that are not batched are expanded to all slices, and `dim` is shifted by one for the batch dimension
in front. The other functions are written in terms of functions that have rules.
"""

from __future__ import annotations

from typing import Any

from ...layouts import wrap_dim
from ...tensor import Tensor
from ..calls import Call, attempt, named_rule, rule


@named_rule("cat concat concatenate stack")
def join(call: Call, given: dict[str, Any]) -> Any:
    """Concatenate tensors along a dim, or stack them along a new one."""
    tensors = list(given["tensors"])
    if given["out"] is not None:
        return call.fallback()
    stacks = call.name == "stack"
    # torch's `cat` ignores tensors of shape (0,), whatever the shapes of the others.
    passed = [not stacks and len(t.shape) == 1 and t.shape[0] == 0 for t in tensors]
    kept = [t for t, past in zip(tensors, passed, strict=True) if not past] or tensors
    dim = wrap_dim(int(given["dim"]), max(len(t.shape) for t in kept) + stacks)
    made = [call.full(t) for t in tensors]
    # Ignored tensors have gradients, and take part in dtype promotion: keep them.
    if len(kept) < len(tensors):
        sizes = list(kept[0].shape)
        sizes[dim] = 0
        made = [
            t.reshape(call.size, *sizes) if past else t
            for t, past in zip(made, passed, strict=True)
        ]
    return call.hide(call.f(made, dim + 1))


@rule("hstack vstack row_stack dstack column_stack")
def stacked(call: Call, tensors: Any, **kwargs: Any) -> Any:
    """Join tensors by NumPy's functions, which give tensors of few dims more dims first."""
    from ...ops.row import FUNCTIONS

    name = "vstack" if call.name == "row_stack" else call.name
    if name == "column_stack":
        made = [t.reshape(-1, 1) if len(t.shape) <= 1 else t for t in tensors]
        return FUNCTIONS["cat"](made, 1)
    least, dim = {"hstack": (1, 1), "vstack": (2, 0), "dstack": (3, 2)}[name]
    made = [FUNCTIONS[f"atleast_{least}d"](t) for t in tensors]
    return FUNCTIONS["cat"](made, 0 if name == "hstack" and len(made[0].shape) == 1 else dim)


@rule("block_diag")
def block_diag(call: Call, *tensors: Any) -> Any:
    """Put matrices on a diagonal: the result, which is made like the first of them, is batched if that is."""
    if len(tensors) == 1 and isinstance(tensors[0], tuple | list):
        tensors = tuple(tensors[0])
    made = [call.hide(call.full(t)) if isinstance(t, Tensor) else t for t in tensors]
    return attempt(call.entry, call.level, tuple(made), {})


@rule("atleast_1d atleast_2d atleast_3d")
def atleast(call: Call, *tensors: Any) -> Any:
    """Give each tensor at least 1, 2 or 3 dims, by inserting dims of size 1."""
    if len(tensors) == 1 and isinstance(tensors[0], tuple | list):
        tensors = tuple(tensors[0])
    made = tuple([_atleast(t, int(call.name[8])) for t in tensors])
    return made[0] if len(made) == 1 else made


def _atleast(t: Any, least: int) -> Any:
    """Insert dims of size 1 into a tensor of fewer than `least` dims, where NumPy puts them."""
    ndim = len(t.shape)
    if ndim >= least:
        return t
    if least == 3 and ndim == 2:
        return t.unsqueeze(2)
    if least == 3 and ndim == 1:
        return t.unsqueeze(0).unsqueeze(2)
    while len(t.shape) < least:
        t = t.unsqueeze(0)
    return t


@rule("meshgrid")
def meshgrid(call: Call, *tensors: Any, indexing: str | None = None) -> Any:
    """Return the coordinates of a grid's points, a tensor for each of its axes."""
    if len(tensors) == 1 and isinstance(tensors[0], tuple | list):
        tensors = tuple(tensors[0])
    flat = [t.reshape(-1) for t in tensors]
    if indexing == "xy" and len(flat) > 1:
        flat[0], flat[1] = flat[1], flat[0]
    shape = [t.shape[0] for t in flat]
    made = [
        t.reshape(*(1,) * i, -1, *(1,) * (len(flat) - i - 1)).expand(shape)
        for i, t in enumerate(flat)
    ]
    if indexing == "xy" and len(flat) > 1:
        made[0], made[1] = made[1], made[0]
    return tuple(made)


@rule("hsplit vsplit dsplit")
def split(call: Call, input: Any, indices_or_sections: Any) -> Any:
    """Split along the dim that NumPy's function of that name splits."""
    if len(input.shape) < {"hsplit": 1, "vsplit": 2, "dsplit": 3}[call.name]:
        return call.fallback()
    dim = {"hsplit": int(len(input.shape) > 1), "vsplit": 0, "dsplit": 2}[call.name]
    return input.tensor_split(indices_or_sections, dim)


@rule("rot90")
def rot90(call: Call, input: Any, k: int = 1, dims: Any = (0, 1)) -> Any:
    """Rotate by `k` quarter turns in the plane of two dims."""
    ndim = len(input.shape)
    if len(dims) != 2 or ndim < 2 or dims[0] % ndim == dims[1] % ndim:
        return call.fallback()
    if k % 4 == 0:
        return input.clone()
    if k % 4 == 2:
        return input.flip(tuple(dims))
    return input.flip(dims[1] if k % 4 == 1 else dims[0]).transpose(*dims)
