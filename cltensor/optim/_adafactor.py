"""Adafactor: Adam with the second moment kept as a row and a column."""

from __future__ import annotations

from typing import Any

from .. import dtypes
from ..autograd import no_grad
from ..tensor import Tensor
from .base import FusedOptimizer
from .stepper import counter, number, require, run_closure

__all__ = ["Adafactor"]


class Adafactor(FusedOptimizer):
    """Descend along the gradient over the root of a factored estimate of its averaged square; nothing waits for the device.

    params: parameters or groups. lr: bound of the relative step. beta2_decay: power by which the average's decay goes to 1.
    eps: least square (None: the dtype's epsilon), and least size of a parameter. d: bound of the update's root mean square.
    weight_decay: direct decay. maximize: ascend. ValueError for options out of range.
    """

    late_options = {"foreach": None}

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor):
            require(lr.numel() == 1, "Tensor lr must be 1-element")
        require(lr >= 0.0, f"Learning rate should be >= 0 but is: {lr}")
        require(beta2_decay <= 0.0, f"beta2_decay should be <= 0 but is: {beta2_decay}")
        require(eps[0] is None or eps[0] >= 0.0, f"epsilon1 should be >= 0 but is: {eps[0]}")
        require(eps[1] >= 0.0, f"epsilon2 should be >= 0 but is: {eps[1]}")
        require(d >= 1.0, f"Clipping threshold d should be >= 1 but is: {d}")
        require(weight_decay >= 0.0, f"weight_decay should be >= 0 but is: {weight_decay}")
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    @no_grad()
    def step(self, closure: Any = None) -> Any:
        """Update the parameters; `closure` computes the loss anew and is called before. Returns its loss."""
        loss = run_closure(closure)
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            if not all(p.grad._strided for p in params):
                raise RuntimeError("Adafactor does not support sparse gradients")
            if any(p.is_complex() for p in params):
                raise RuntimeError("Adafactor does not support complex parameters")
            for p in params:
                if not self.state[p]:
                    self._start(group, p, self.state[p])
            for count, some in self._by_count(group, params):
                for p in some:
                    self._descend(group, p, count)
        return loss

    def _start(self, group: dict[str, Any], p: Tensor, state: dict[str, Any]) -> None:
        state["step"] = counter(0.0)
        shape = tuple(p.grad.shape)
        if len(shape) > 1:
            state["row_var"] = p.grad.new_zeros((*shape[:-1], 1))
            state["col_var"] = p.grad.new_zeros((*shape[:-2], 1, shape[-1]))
        else:
            state["variance"] = p.grad.new_zeros(shape)

    def _descend(self, group: dict[str, Any], p: Tensor, count: float) -> None:
        lr, (eps1, eps2) = number(group["lr"]), group["eps"]
        eps1 = dtypes.finfo(p.dtype).eps if eps1 is None else eps1
        grad = -p.grad if group["maximize"] else p.grad
        scale = (p.norm(2) / p.numel() ** 0.5).clamp(min=eps2) * min(lr, 1 / count**0.5)
        if group["weight_decay"] != 0:
            p.mul_(1 - lr * group["weight_decay"])
        square = self._square(self.state[p], grad, count ** group["beta2_decay"], eps1)
        update = square.clamp(min=eps1 * eps1).rsqrt() * grad
        clip = (update.norm(2) / (update.numel() ** 0.5 * group["d"])).clamp(min=1.0)
        p.sub_(update * (scale / clip))

    def _square(self, state: dict[str, Any], grad: Tensor, weight: float, eps1: float) -> Tensor:
        """Average the square of the gradient, factored where it has rows and columns; returns the estimate."""
        if grad.ndim < 2:
            state["variance"].lerp_(grad * grad, weight)
            return state["variance"]
        row, col = state["row_var"], state["col_var"]
        row.lerp_(grad.square().mean(-1, keepdim=True), weight)
        col.lerp_(grad.square().mean(-2, keepdim=True), weight)
        return row * col / row.mean(-2, keepdim=True).clamp(min=eps1)
