"""Adamax: Adam with the largest gradient in place of the averaged square."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from .base import FusedOptimizer
from .given import step_given
from .stepper import check_options, gradient, lerp

__all__ = ["Adamax", "adamax"]


class Adamax(FusedOptimizer):
    """Descend along the averaged gradient over the decaying maximum of the gradient's absolute value.

    params: parameters or groups. lr: learning rate. betas: decay of average and maximum. eps: added to that value.
    weight_decay: factor of the L2 penalty. maximize: ascend. differentiable: let gradients flow through `step`.
    ValueError for options out of range.
    """

    counts_on_device = True
    late_options = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}  # fmt: skip

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_options(lr, weight_decay, eps=eps, betas=betas)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _buffers(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("exp_avg", "exp_inf")

    def _update(self, group: dict[str, Any], params: list[Tensor]) -> None:
        lr, (beta1, beta2) = self._number(group, "lr"), group["betas"]
        lines = [
            *gradient(group),
            lerp("m", "g", "w1", 1 - beta1),
            "x = x * beta2",
            "size = abs(g) + eps",
            "x = where(x >= size, x, size)",
            "p = p + step * m / x",
        ]
        for count, some in self._by_count(group, params):
            numbers = {
                "w1": 1 - beta1,
                "beta2": beta2,
                "eps": group["eps"],
                "step": -lr / (1 - beta1**count),
                "weight_decay": group["weight_decay"],
            }
            self._run(group, lines, some, {"m": "exp_avg", "x": "exp_inf"}, numbers)


def adamax(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_infs: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: float | Tensor,
    weight_decay: float,
) -> None:
    """Update tensors in place by a step of Adamax, whose state is given as lists."""
    step_given(Adamax, locals(), exp_avgs="exp_avg", exp_infs="exp_inf", state_steps="step")
