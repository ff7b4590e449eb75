"""RAdam: Adam that rectifies the variance of its first steps."""

from __future__ import annotations

from typing import Any

from ..ops.selection import where
from ..tensor import Tensor
from .base import FusedOptimizer
from .given import step_given
from .stepper import check_options, exact, gradient, lerp

__all__ = ["RAdam", "radam"]


class RAdam(FusedOptimizer):
    """Descend along the averaged gradient in the first steps, whose average of squares is too uncertain; then as Adam.

    params: parameters or groups. lr: learning rate. betas: decay of the averages of gradient and square. eps: added to
    the root. weight_decay: factor of the L2 penalty, or of the direct decay where `decoupled_weight_decay`.
    maximize: ascend. differentiable: let gradients flow through `step`. ValueError for options out of range.
    """

    counts_on_device = True
    late_options = {
        "foreach": None, "maximize": False, "differentiable": False, "decoupled_weight_decay": False, "capturable": False,
    }  # fmt: skip

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_options(lr, weight_decay, eps=eps, betas=betas)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _buffers(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq")

    def _update(self, group: dict[str, Any], params: list[Tensor]) -> None:
        lr, (beta1, beta2) = self._number(group, "lr"), group["betas"]
        lines = [
            *gradient(group),
            lerp("m", "g", "w1", 1 - beta1),
            "v = v * beta2 + g * g * w2",
        ]
        for count, some in self._by_count(group, params):
            numbers = {
                "w1": 1 - beta1,
                "beta2": beta2,
                "w2": 1 - beta2,
                "bias": 1 - beta1**count,
                "lr": lr,
                "eps": group["eps"],
                "weight_decay": group["weight_decay"],
                "shrink": 1 - lr * group["weight_decay"],
            }
            last = "p = p - m / bias * lr"
            root, rectify = _rectified(count, beta2)
            if rectify is not None:
                numbers |= {"root": root, "rectify": rectify}
                scale = "(root / (sqrt(v) + eps)) * rectify"
                if isinstance(rectify, Tensor):
                    scale = f"where(rectify > 0, {scale}, 1)"
                last += f" * {scale}"
            states = {"m": "exp_avg", "v": "exp_avg_sq"}
            self._run(group, [*lines, last], some, states, numbers)


def _rectified(count: Any, beta2: float) -> tuple[Any, Any]:
    """Return the root of the bias correction of the averaged square, and the factor that rectifies its variance.

    The factor is None in the first steps, whose variance cannot be rectified. For a counter on the device both results
    are tensors, and the factor is 0 in those steps.
    """
    certain = 2 / (1 - beta2) - 1
    known = not isinstance(count, Tensor)
    steps = count if known else exact(count)
    bias = 1 - beta2**steps
    rho = certain - 2 * steps * beta2**steps / bias
    square = (rho - 4) * (rho - 2) * certain / ((certain - 4) * (certain - 2) * rho)
    if known:
        return bias**0.5, square**0.5 if rho > 5.0 else None
    rectify = where(rho > 5.0, square.clamp(min=0).sqrt(), 0.0)
    return bias.sqrt().to(count.dtype), rectify.to(count.dtype)


def radam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: float | Tensor,
    weight_decay: float,
    eps: float,
) -> None:
    """Update tensors in place by a step of RAdam, whose state is given as lists."""
    step_given(RAdam, locals(), exp_avgs="exp_avg", exp_avg_sqs="exp_avg_sq", state_steps="step")
