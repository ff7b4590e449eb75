"""Differentiable samples of categories."""

from __future__ import annotations

import warnings

from ...errors import caller_level
from ..core import Tensor


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """Sample from the Gumbel-softmax distribution along `dim` (Jang et al., arXiv 1611.01144).

    `hard`: the result is one-hot, its gradient that of the soft sample.
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=caller_level())
    noise = -logits.new_empty(logits.shape).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    best = soft.detach().max(dim, keepdim=True)[1]
    one_hot = logits.new_zeros(logits.shape).scatter_(dim, best, 1.0)
    return one_hot - soft.detach() + soft
