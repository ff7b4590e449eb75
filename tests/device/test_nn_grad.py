"""`nn.grad`: its explicit gradients of convolutions equal those of autograd."""

from __future__ import annotations

from typing import Any

import pytest

import cltensor as torch
from cltensor.nn import grad

SHAPES = {1: ((2, 4, 9), (6, 2, 3)), 2: ((2, 4, 7, 6), (6, 2, 3, 2)), 3: ((1, 4, 5, 4, 4), (2, 2, 2, 3, 2))}  # fmt: skip


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_both_gradients_are_those_of_autograd(dims: int, dev: Any) -> None:
    x, w = (torch.randn(s, device=dev, requires_grad=True) for s in SHAPES[dims])
    moves = {"stride": 2, "padding": 1, "dilation": 1, "groups": 2}
    y = getattr(torch.nn.functional, f"conv{dims}d")(x, w, **moves)
    g = torch.randn_like(y)
    by_x, by_w = torch.autograd.grad(y, (x, w), g)
    torch.testing.assert_close(getattr(grad, f"conv{dims}d_input")(x.shape, w, g, **moves), by_x)
    torch.testing.assert_close(getattr(grad, f"conv{dims}d_weight")(x, w.shape, g, **moves), by_w)


def test_sizes_that_do_not_fit_are_errors(dev: Any) -> None:
    w, g = torch.ones(4, 2, 3, 3, device=dev), torch.ones(1, 4, 6, 6, device=dev)
    with pytest.raises(RuntimeError, match=r"tensor.size\[2\] == 7 but got: dimension 4"):
        grad.conv2d_input((1, 2, 9, 8), w, g)
    with pytest.raises(RuntimeError, match="to have 2 channels, but got 3 channels"):
        grad.conv2d_input((1, 3, 8, 8), w, g)
    with pytest.raises(RuntimeError, match=r"tensor.size\[0\] == 1 but got: dimension 3"):
        grad.conv2d_input((1, 2, 8, 8), w, g[0])
