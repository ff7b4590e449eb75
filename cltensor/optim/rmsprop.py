"""RMSprop: the gradient over the root of its averaged square."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from .base import FusedOptimizer
from .given import step_given
from .stepper import check_options, gradient, lerp, require

__all__ = ["RMSprop", "rmsprop"]


class RMSprop(FusedOptimizer):
    """Descend along the gradient over the root of its averaged square.

    params: parameters or groups. lr: learning rate. alpha: decay of the average. eps: added to the root. weight_decay:
    factor of the L2 penalty. momentum: decay of the running sum of steps. centered: subtract the averaged gradient's
    square. maximize: ascend. differentiable: let gradients flow through `step`. ValueError for options out of range.
    """

    counts_on_device = True
    late_options = {
        "momentum": 0, "centered": False, "foreach": None, "maximize": False, "differentiable": False, "capturable": False,
    }  # fmt: skip

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_options(lr, eps=eps)
        require(momentum >= 0.0, f"Invalid momentum value: {momentum}")
        require(weight_decay >= 0.0, f"Invalid weight_decay value: {weight_decay}")
        require(alpha >= 0.0, f"Invalid alpha value: {alpha}")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _buffers(self, group: dict[str, Any]) -> tuple[str, ...]:
        return tuple(self._states(group).values())

    def _states(self, group: dict[str, Any]) -> dict[str, str]:
        states = {"v": "square_avg"}
        if group["momentum"] > 0:
            states["b"] = "momentum_buffer"
        if group["centered"]:
            states["m"] = "grad_avg"
        return states

    def _update(self, group: dict[str, Any], params: list[Tensor]) -> None:
        alpha = group["alpha"]
        lines = [*gradient(group), "v = v * alpha + g * g * w"]
        if group["centered"]:
            lines += [lerp("m", "g", "w", 1 - alpha), "size = sqrt(v - m * m) + eps"]
        else:
            lines.append("size = sqrt(v) + eps")
        if group["momentum"] > 0:
            lines += ["b = b * momentum + g / size", "p = p - lr * b"]
        else:
            lines.append("p = p - lr * g / size")
        numbers = {
            "lr": self._number(group, "lr"),
            "alpha": alpha,
            "w": 1 - alpha,
            "eps": group["eps"],
            "momentum": group["momentum"],
            "weight_decay": group["weight_decay"],
        }
        for _, some in self._by_count(group, params):
            self._run(group, lines, some, self._states(group), numbers)


def rmsprop(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    grad_avgs: list[Tensor],
    momentum_buffer_list: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lr: float | Tensor,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
) -> None:
    """Update tensors in place by a step of RMSprop, whose state is given as lists."""
    step_given(
        RMSprop,
        locals(),
        square_avgs="square_avg",
        grad_avgs="grad_avg",
        momentum_buffer_list="momentum_buffer",
        state_steps="step",
    )
