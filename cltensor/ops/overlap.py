"""Overlap-add: what `unfold` cut into windows is added up again, in one reduction over a strided view."""

from __future__ import annotations

from typing import Any

from ..autograd import record as graph
from ..autograd.mode import unrecorded
from .core import Tensor
from .row import FUNCTIONS


def overlap_add(windows: Tensor, n: int, step: int) -> Tensor:
    """Add windows (…, count, size), each `step` after the one before, to a result (…, n). Differentiable."""
    with unrecorded():
        value = _added(windows.detach(), n, step)
    if graph.needs_grad(windows):
        saved = {"size": windows.shape[-1], "step": step}
        graph.record("UnfoldBackwardBackward0", (windows,), value, _back, saved)
    return value


def _back(ctx: Any, g: Tensor) -> Tensor:
    return g.unfold(-1, ctx.size, ctx.step)


def _added(windows: Tensor, n: int, step: int) -> Tensor:
    *batch, count, size = windows.shape
    if not windows.numel():
        return windows.new_zeros((*batch, n))
    # Cut windows and result into pieces of `step` elements: piece t of the result is the sum over r of piece r of
    # window t - r. With `parts` - 1 windows of zeros at both ends, the pieces to sum lie at equal distances in memory.
    parts = -(-size // step)
    row = parts * step
    pad = FUNCTIONS["constant_pad_nd"]
    wide = pad(windows, [0, row - size, parts - 1, parts - 1]).contiguous()
    pieces = count + parts - 1
    rows = count + 2 * (parts - 1)
    lined = wide.reshape(-1, rows * row)
    view = lined.as_strided(
        (lined.shape[0], pieces, parts, step),
        (rows * row, row, row - step, 1),
        (parts - 1) * step,
    )
    line = view.sum(2).reshape(*batch, pieces * step)
    have = pieces * step
    return line.narrow(-1, 0, n).contiguous() if have >= n else pad(line, [0, n - have])
