"""SparseAdam, which needs sparse gradients: there are none here, so it only says so."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from .optimizer import Optimizer
from .stepper import require, run_closure

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Adam on the rows a sparse gradient names. `step` raises: gradients are dense; use `Adam`."""

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
        found = [
            [i, d]
            for i, group in enumerate(self.param_groups)
            for d, p in enumerate(group["params"])
            if p.is_complex()
        ]
        if found:
            raise ValueError(
                f"Complex params at indices {found}: SparseAdam does not support complex parameters"
            )

    def step(self, closure: Any = None) -> Any:
        """Raise RuntimeError where a parameter has a gradient: there are no sparse ones."""
        loss = run_closure(closure)
        if any(p.grad is not None for group in self.param_groups for p in group["params"]):
            raise RuntimeError(
                "SparseAdam does not support dense gradients, please consider Adam instead"
            )
        return loss
