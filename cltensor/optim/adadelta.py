"""Adadelta: the gradient, scaled by the ratio of the root mean squares of recent steps and gradients."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from .base import FusedOptimizer
from .given import step_given
from .stepper import check_options, gradient, require

__all__ = ["Adadelta", "adadelta"]


class Adadelta(FusedOptimizer):
    """Descend along the gradient, scaled by the root of the average of squared steps over that of squared gradients.

    params: parameters or groups. lr: factor of the step. rho: decay of both averages. eps: added to both. weight_decay:
    factor of the L2 penalty. maximize: ascend. differentiable: let gradients flow through `step`. ValueError for
    options out of range.
    """

    counts_on_device = True
    late_options = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}  # fmt: skip

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_options(lr)
        require(0.0 <= rho <= 1.0, f"Invalid rho value: {rho}")
        require(eps >= 0.0, f"Invalid epsilon value: {eps}")
        require(weight_decay >= 0.0, f"Invalid weight_decay value: {weight_decay}")
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _buffers(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("square_avg", "acc_delta")

    def _update(self, group: dict[str, Any], params: list[Tensor]) -> None:
        lines = [
            *gradient(group),
            "v = v * rho + g * g * w",
            "d = sqrt(u + eps) / sqrt(v + eps) * g",
            "u = u * rho + d * d * w",
            "p = p - lr * d",
        ]
        numbers = {
            "lr": self._number(group, "lr"),
            "rho": group["rho"],
            "w": 1 - group["rho"],
            "eps": group["eps"],
            "weight_decay": group["weight_decay"],
        }
        for _, some in self._by_count(group, params):
            self._run(group, lines, some, {"v": "square_avg", "u": "acc_delta"}, numbers)


def adadelta(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    acc_deltas: list[Tensor],
    state_steps: list[Tensor],
    capturable: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float | Tensor,
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """Update tensors in place by a step of Adadelta, whose state is given as lists."""
    step_given(
        Adadelta, locals(), square_avgs="square_avg", acc_deltas="acc_delta", state_steps="step"
    )
