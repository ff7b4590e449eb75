"""The layer that interleaves groups of channels."""

from __future__ import annotations

from ...tensor import Tensor
from .. import functional as F
from .layer import Layer

__all__ = ["ChannelShuffle"]


class ChannelShuffle(Layer):
    """Interleave the channels (dim 1) of `groups` groups (Zhang et al., arXiv 1707.01083)."""

    _shown = ("groups",)

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)
