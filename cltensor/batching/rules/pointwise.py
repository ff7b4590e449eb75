"""Rules for pointwise functions: operands broadcast, so the hidden dimension goes in front of all visible ones.

Owns the alignment of operands, which other rules use. In dtype promotion, torch gives a 0-dim tensor less weight than
one with dims. An operand that is 0-dim for each slice has one dim in the underlying tensor, which would give it full
weight: such an operand is first cast to the dtype that the visible shapes promote to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import dtypes
from ...ops import core
from ...ops.row import OPERANDS, Row
from ...tensor import Tensor
from ..batched import NoRule, first
from ..calls import Call, rule
from ..levels import STACK

_UNBATCHED_SELF = (
    "vmap: {name}(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that has more "
    "elements than `self`. This happened due to `other` being vmapped over but `self` not being vmapped over {where}. Please try "
    "to use out-of-place operators instead of {name}. If said operator is being called inside the PyTorch framework, "
    "please file a bug report instead."
)


UNBATCHED_SELF = _UNBATCHED_SELF.format(name="inplace arithmetic", where="in a vmap")


def refuse_unbatched(call: Call, t: Any, name: str = "") -> None:
    """Raise torch's error for writing batched values into `t` unless `t` is batched.

    name: torch's of an operator that has no rule in torch, which its error names.
    """
    if not call.here(t):
        where = f"at level {call.level}"
        raise RuntimeError(
            _UNBATCHED_SELF.format(name=name, where=where) if name else UNBATCHED_SELF
        )


def rank(tensors: Sequence[Any]) -> int:
    """Return the largest number of visible dimensions among the tensors."""
    return max([len(t.shape) for t in tensors if isinstance(t, Tensor)], default=0)


def padded(t: Any, ndim: int) -> Any:
    """Return the underlying tensor with the hidden dimension first, then dims of size 1 that pad the visible ones to `ndim`."""
    value = first(t.value, t.bdim)
    missing = ndim - len(t.shape)
    if missing > 0:
        shape = value.shape
        value = value.reshape(shape[0], *(1,) * missing, *shape[1:])
    return value


def aligned(call: Call, values: Sequence[Any], unpromoted: Sequence[bool] = ()) -> list[Any]:
    """Return the operands' underlying tensors, padded so that they broadcast.

    Values not batched at this level stay unchanged. unpromoted: for each value, whether it takes no part in dtype
    promotion (False for values beyond its end).
    """
    tensors = [v for v in values if isinstance(v, Tensor)]
    ndim = rank(tensors)
    made = [padded(v, ndim) if call.here(v) else v for v in values]
    if ndim and any(not t.shape and call.here(t) for t in tensors):
        counted = [
            v
            for i, v in enumerate(values)
            if isinstance(v, Tensor | bool | int | float | complex)
            and not (i < len(unpromoted) and unpromoted[i])
        ]
        want = core.result_type(counted) if counted else None
        for i, v in enumerate(values):
            skip = i < len(unpromoted) and unpromoted[i]
            if not call.here(v) or v.dtype is dtypes.bool:
                continue  # a condition must stay bool, and any other bool operand never decides the promotion
            if not v.shape and v.dtype is not want and not skip:
                made[i] = made[i].to(want)
    return made


@rule("Row.__call__")
def row(call: Call, op: Row, *xs: Any) -> Any:
    """Apply a row (see ops/row.py) to the underlying tensors."""
    skip = [letter in op.unpromoted for letter in OPERANDS[: len(xs)]] if op.unpromoted else ()
    return call.hide(op(*aligned(call, xs, skip)))


@rule("Row.inplace")
def row_in_place(call: Call, op: Row, t: Any, *others: Any) -> Any:
    """Write a row's result into its first operand."""
    refuse_unbatched(call, t)
    skip = (
        [letter in op.unpromoted for letter in OPERANDS[: len(others) + 1]] if op.unpromoted else ()
    )
    value, *rest = aligned(call, (t, *others), skip)
    if (
        rank((t, *others)) > len(t.shape)
    ):  # the underlying tensors would broadcast along the batch dimension of self instead of failing
        shape = core.layouts.broadcast_shapes(
            *[o.shape for o in (t, *others) if isinstance(o, Tensor)]
        )
        raise RuntimeError(
            f"output with shape {list(t.shape)} doesn't match the broadcast shape {list(shape)}"
        )
    op.inplace(value, *rest)
    return t


# Pointwise functions that are not rows; numbers and flags are passed on unchanged.
@rule(
    "where clamp clip clamp_min clamp_max gelu softplus hardshrink softshrink logsigmoid nan_to_num isclose logit special_logit "
    "polygamma special_polygamma round special_round lerp addcmul addcdiv fill complex polar angle conj resolve_conj resolve_neg isreal frexp float_power "
    "special_multigammaln mvlgamma special_xlog1py special_zeta threshold square abs absolute positive pow isin_ "
    "add sub subtract rsub div divide true_divide floor_divide remainder fmod bitwise_left_shift bitwise_right_shift "
    "__lshift__ __rshift__ real imag_"
)
def elements(call: Call, *args: Any, **kwargs: Any) -> Any:
    """Call a pointwise function on the aligned operands."""
    keys = list(kwargs)
    if kwargs.get("out") is not None:
        return call.fallback()
    made = aligned(call, [*args, *kwargs.values()])
    return call.hide(call.f(*made[: len(args)], **dict(zip(keys, made[len(args) :], strict=True))))


@rule("allclose equal")
def compared(call: Call, *args: Any, **kwargs: Any) -> Any:
    """Refuse, as torch does: there is one answer per slice, not one Python bool."""
    if STACK.inside:
        raise NoRule(call.name)
    if call.name == "equal":
        raise RuntimeError(
            "Batching rule not implemented for aten::equal. We could not generate a fallback."
        )
    raise RuntimeError(
        "vmap over torch.allclose isn't supported yet. Please file an issue at https://github.com/pytorch/pytorch/issues if you "
        "need this feature."
    )


@rule("prelu")
def prelu(call: Call, input: Any, weight: Any) -> Any:
    """Scale negative elements by a number for each channel."""
    if weight.numel() != 1 and len(input.shape) > 1:
        weight = weight.reshape(-1, *(1,) * (len(input.shape) - 2))
    elif weight.numel() == 1:
        weight = weight.reshape(())
    return input.where(input > 0, input * weight)
