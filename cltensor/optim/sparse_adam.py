"""SparseAdam: Adam on the rows that sparse gradients name."""

from __future__ import annotations

from math import prod
from typing import Any

from ..autograd import no_grad
from ..ops import multi
from ..sparse.tensor import SparseTensor
from ..tensor import Tensor
from .optimizer import Optimizer
from .stepper import number, require, run_closure, zeros_like

__all__ = ["SparseAdam"]

_STEP = """m = m + (g - m) * w1
v = v + (g * g - v) * w2
p = p + m / (sqrt(v) + eps) * step"""


class SparseAdam(Optimizer):
    """Adam on the rows in which a sparse gradient has entries: other rows, and their moments, stay as they are.

    params: dense parameters or groups. lr: learning rate. betas: decay of the mean and of the mean square. eps: added to the
    root. maximize: ascend. ValueError for options out of range, sparse and complex parameters; `step` raises RuntimeError for a
    dense gradient.
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor):
            require(lr.numel() == 1, "Tensor lr must be 1-element")
        require(lr > 0.0, f"Invalid learning rate: {lr}")
        require(eps > 0.0, f"Invalid epsilon value: {eps}")
        for i, beta in enumerate(betas):
            require(0.0 <= beta < 1.0, f"Invalid beta parameter at index {i}: {beta}")
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        self._refuse(lambda p: not p._strided, "Sparse", "requires dense parameter tensors")
        self._refuse(lambda p: p.is_complex(), "Complex", "does not support complex parameters")

    def _refuse(self, bad: Any, kind: str, why: str) -> None:
        found = [
            [i, d]
            for i, group in enumerate(self.param_groups)
            for d, p in enumerate(group["params"])
            if bad(p)
        ]
        if found:
            raise ValueError(f"{kind} params at indices {found}: SparseAdam {why}")

    @no_grad()
    def step(self, closure: Any = None) -> Any:
        """Update the rows that gradients name; `closure`, called first, computes the loss and its gradients anew.

        Returns its loss.
        """
        loss = run_closure(closure)
        for group in self.param_groups:
            params = [p for p in group["params"] if p._grad is not None]
            if any(p._grad._strided for p in params):
                raise RuntimeError(
                    "SparseAdam does not support dense gradients, please consider Adam instead"
                )
            for p in params:
                state = self.state[p]
                if not state:
                    state["step"] = 0
                    state["exp_avg"], state["exp_avg_sq"] = zeros_like([p, p])
                state["step"] += 1
            for p in params:
                self._update(group, p, self.state[p])
        return loss

    def _update(self, group: dict[str, Any], p: Tensor, state: dict[str, Any]) -> None:
        grad: SparseTensor = p._grad.coalesce()
        if not grad._v.numel():
            return
        (beta1, beta2), count, pattern = group["betas"], state["step"], grad._pattern
        numbers = {
            "w1": 1 - beta1,
            "w2": 1 - beta2,
            "eps": group["eps"],
            "step": -number(group["lr"]) * (1 - beta2**count) ** 0.5 / (1 - beta1**count),
        }
        text = ("g = -g\n" if group.get("maximize", False) else "") + _STEP
        written = (p, state["exp_avg"], state["exp_avg_sq"])
        shape = (prod(pattern.sizes), *p.shape[len(pattern.sizes) :])
        rows = [x.contiguous().view(shape) for x in written]
        chain = multi.chain("sparse_adam", text, "p m v", "g")
        multi.apply_rows(chain, rows, [grad._v.to(p.dtype)], pattern.keys, numbers)
        for x, made in zip(written, rows, strict=True):
            if made._storage is not x._storage:
                x.copy_(made.view(x.shape))
