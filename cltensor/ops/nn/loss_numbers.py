"""Losses as torch's top level has them: the functions of nn.functional with the reduction as a number.

0 is "none", 1 "mean", 2 "sum"; 0 is also what torch's Python functions take where none is given.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from .. import ranking
from ..numpy_names import answered
from ..row import public
from . import losses

_WAYS = ("none", "mean", "sum")
_NEEDED = inspect.Parameter.empty
# The types of parameters that are no tensors.
_TYPES = {
    "weight": "Tensor | None",
    "pos_weight": "Tensor | None",
    "reduction": "int",
    **dict.fromkeys(("margin", "p", "eps"), "float"),
    **dict.fromkeys(("full", "log_input", "log_target", "swap"), "bool"),
}


def _numbered(fn: Callable, name: str = "", /, **parameters: Any) -> None:
    """Export a loss with these parameters, in torch's order, and `reduction` last unless it is among them."""
    name = name or fn.__name__
    order = {**parameters, "reduction": 0} if "reduction" not in parameters else parameters
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature(
        [
            inspect.Parameter(n, kind, default=v, annotation=_TYPES.get(n, "Tensor"))
            for n, v in order.items()
        ]
    )

    def loss(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        way = bound.arguments["reduction"]
        if isinstance(way, bool) or not isinstance(way, int) or not 0 <= way < len(_WAYS):
            raise ValueError(f"{way} is not a valid value for reduction")
        return fn(**{**bound.arguments, "reduction": _WAYS[way]})

    loss.__name__ = loss.__qualname__ = name
    loss.__doc__ = f"`nn.functional.{name}` with a number as the reduction: 0 none, 1 mean, 2 sum."
    loss.__signature__ = signature  # type: ignore[attr-defined]
    public(name, method=False)(answered(loss, name))


_PAIR = {"input": _NEEDED, "target": _NEEDED}
_TWO = {"input1": _NEEDED, "input2": _NEEDED, "target": _NEEDED}
_numbered(losses.binary_cross_entropy_with_logits, **_PAIR, weight=None, pos_weight=None)
_numbered(losses.kl_divergence, "kl_div", **_PAIR, reduction=0, log_target=False)
_numbered(ranking.hinge_embedding_loss, **_PAIR, margin=1.0)
_numbered(ranking.cosine_embedding_loss, **_TWO, margin=0.0)
_numbered(ranking.margin_ranking, "margin_ranking_loss", **_TWO, margin=0.0)
_numbered(
    ranking.poisson_nll_loss,
    **_PAIR,
    log_input=_NEEDED,
    full=_NEEDED,
    eps=_NEEDED,
    reduction=_NEEDED,
)
_numbered(
    ranking.triplet_margin_loss, anchor=_NEEDED, positive=_NEEDED, negative=_NEEDED, margin=1.0, p=2.0, eps=1e-06, swap=False
)  # fmt: skip
