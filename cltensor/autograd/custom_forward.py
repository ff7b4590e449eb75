"""Forward mode for custom Functions: what a Function's `jvp` is given, and what it must return.

Knows nothing of backward formulas; see function.py for those, dual.py for tangents.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import dual
from .saved import TensorBase

_RETURNS_VIEW = "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view."
_NOT_WRITTEN = (
    "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is modifying an input inplace, "
    "then the jvp function must modify the corresponding gradient inplace."
)
_NOT_AS_IS = (
    "An inplace custom Function is not returning the forward mode gradients as-is. If the forward is modifying an input inplace, "
    "then the jvp function must modify the gradient inplace and return it as-is."
)


def _among(t: Any, items: Sequence[Any] | None) -> bool:
    return any(item is t for item in items or ())


def propagate(cls: Any, ctx: Any, args: Sequence[Any], given: Sequence[Any], outs: Sequence[Any]) -> None:  # fmt: skip
    """Give the results `outs` of a Function their tangents.

    `given` are the same results as forward returned them, `args` its arguments.
    """
    for level in dual.levels():
        own = [dual.tangent(a, level) if isinstance(a, TensorBase) else None for a in args]
        if all(t is None for t in own):
            continue
        ctx.pushing = True
        try:
            with dual.below(level):
                tangents = [_filled(t, a, ctx) for t, a in zip(own, args, strict=True)]
                versions = [None if t is None else t._vc.value for t in tangents]
                found = cls.jvp(ctx, *tangents)
        finally:
            ctx.pushing = False
        news = found if isinstance(found, tuple) else (found,)
        if len(news) != len(outs):
            raise RuntimeError(
                f"Function's jvp returned an invalid number of forward gradients (expected {len(outs)} but got {len(news)})"
            )
        for i, (raw, out, new) in enumerate(zip(given, outs, news, strict=True)):
            if not _differentiable(out) or _among(raw, ctx.non_differentiable):
                if new is not None:
                    raise RuntimeError(
                        f"Function's jvp returned a gradient at position {i}, but  the corresponding forward output is not a "
                        "differentiable Tensor.You should return None at that position instead."
                    )
            elif new is not None:
                if _among(raw, ctx.dirty_tensors):
                    _check_written(raw, args, own, tangents, versions, new)
                    dual.overwrite(out, level, new)
                else:
                    _check_view(raw, args, own, new)
                    dual.assign(out, level, new)
    ctx.saved_for_forward = None


def _differentiable(t: Any) -> bool:
    return isinstance(t, TensorBase) and t.dtype.category >= 2  # type: ignore[attr-defined]


def _filled(tangent: Any, arg: Any, ctx: Any) -> Any:
    """Return a tangent as `jvp` gets it: zeros for a missing one, unless the function turned materialisation off."""
    if tangent is None and ctx.materialize_grads and _differentiable(arg):
        return arg.new_zeros(arg.shape)
    return tangent


def _check_written(
    raw: Any, args: Sequence[Any], own: list[Any], tangents: list[Any], versions: list[Any], new: Any
) -> None:  # fmt: skip
    """Raise RuntimeError unless `jvp` wrote the tangent of a written argument in place and returned it as it is."""
    for arg, had, tangent, version in zip(args, own, tangents, versions, strict=True):
        if arg is raw and had is not None:
            if tangent._vc.value == version:
                raise RuntimeError(_NOT_WRITTEN)
            if new is not tangent:
                raise RuntimeError(_NOT_AS_IS)


def _check_view(raw: Any, args: Sequence[Any], own: list[Any], new: Any) -> None:
    """Raise RuntimeError unless a result that is a view of an argument gets a view of that argument's tangent."""
    for arg, tangent in zip(args, own, strict=True):
        if tangent is None or (arg is not raw and arg._storage is not raw._storage):
            continue
        if new._view is None:
            raise RuntimeError(_RETURNS_VIEW)
        if tangent._view is not None:
            if new._view.base is not tangent._view.base:
                raise RuntimeError(
                    "A custom Function is returning a view but the jvp is not returning a view of the same base as the given "
                    "grad input."
                )
        elif new._view.base is not tangent:
            raise RuntimeError(
                "A custom Function is returning a view but the jvp is not returning a view of the given grad input."
            )
