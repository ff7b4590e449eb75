"""Muon: momentum, made orthogonal by a Newton-Schulz iteration, for matrices."""

from __future__ import annotations

import math
from typing import Any

from ..autograd import no_grad
from ..ops.row import FUNCTIONS
from ..tensor import Tensor
from .optimizer import Optimizer
from .stepper import number, require, run_closure, zeros_like

__all__ = ["Muon"]

_COEFFICIENTS = (3.4445, -4.775, 2.0315)
_ADJUSTMENTS = ("original", "match_rms_adamw")


class Muon(Optimizer):
    """Descend along the nearest semi-orthogonal matrix to the momentum; parameters have two dims.

    params: parameters or groups. lr: learning rate. weight_decay: direct decay. momentum: decay of the averaged
    gradient. nesterov: use Nesterov momentum. ns_coefficients, ns_steps: polynomial and number of steps of the
    Newton-Schulz iteration. eps: least norm to divide by. adjust_lr_fn: how lr is adjusted to the shape: None,
    "original" or "match_rms_adamw". ValueError for options out of range.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = _COEFFICIENTS,
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        if isinstance(lr, Tensor):
            require(lr.numel() == 1, "Tensor lr must be 1-element")
        require(lr >= 0.0, f"Learning rate should be >= 0 but is: {lr}")
        require(momentum >= 0.0, f"momentum should be >= 0 but is: {momentum}")
        require(weight_decay >= 0.0, f"weight decay should be >= 0 but is: {weight_decay}")
        require(
            adjust_lr_fn is None or adjust_lr_fn in _ADJUSTMENTS,
            f"Adjust learning rate function {adjust_lr_fn} is not supported",
        )
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for p in group["params"]:
                require(
                    p.ndim == 2,
                    f"Muon only supports 2D parameters whereas we found a parameter with size: {p.size()}",
                )

    @no_grad()
    def step(self, closure: Any = None) -> Any:
        """Update the parameters; `closure`, called first, computes the loss and its gradients anew.

        Returns its loss.
        """
        loss = run_closure(closure)
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self._descend(group, p)
        return loss

    def _descend(self, group: dict[str, Any], p: Tensor) -> None:
        if not p.grad._strided:
            raise RuntimeError("Muon does not support sparse gradients")
        if p.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        lr, state, momentum = number(group["lr"]), self.state[p], group["momentum"]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = zeros_like([p.grad])[0]
        average = state["momentum_buffer"]
        average.lerp_(p.grad, 1 - momentum)
        update = p.grad.lerp(average, momentum) if group["nesterov"] else average
        update = _orthogonal(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        p.mul_(1 - lr * group["weight_decay"])
        p.add_(update, alpha=-_adjusted(lr, group["adjust_lr_fn"], tuple(p.shape)))


def _orthogonal(grad: Tensor, coefficients: Any, steps: int, eps: float) -> Tensor:
    """Return a matrix with its singular values moved towards 1, by the Newton-Schulz iteration in bfloat16."""
    require(steps < 100, "Number of steps must be less than 100 for computational efficiency")
    require(grad.ndim == 2, "Input tensor gradient must be a 2D matrix")
    require(len(coefficients) == 3, "Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    addmm = FUNCTIONS["addmm"]
    x = grad.bfloat16()
    tall = grad.shape[0] > grad.shape[1]
    if tall:
        x = x.T
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        x = addmm(x, addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x


def _adjusted(lr: float, how: str | None, shape: tuple[int, ...]) -> float:
    rows, columns = shape
    if how == "match_rms_adamw":
        return lr * 0.2 * math.sqrt(max(rows, columns))
    return lr * math.sqrt(max(1, rows / columns))
