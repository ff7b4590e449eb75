"""Adagrad: the gradient over the root of the sum of all its squares."""

from __future__ import annotations

from typing import Any

from .. import creation
from ..memory_format import preserve_format
from ..sparse.tensor import entries
from ..tensor import Tensor
from .adam import check_fused
from .base import FusedOptimizer
from .given import step_given
from .stepper import check_options, gradient, require

__all__ = ["Adagrad", "adagrad"]


class Adagrad(FusedOptimizer):
    """Descend along the gradient over the root of the sum of its squares. The constructor makes the state.

    params: parameters or groups. lr: learning rate. lr_decay: after n steps the rate is lr / (1 + n * lr_decay).
    weight_decay: factor of the L2 penalty. initial_accumulator_value: where the sums start. eps: added to the root.
    maximize: ascend. differentiable: let gradients flow through `step`. ValueError for options out of range.
    """

    late_options = {"foreach": None, "maximize": False, "differentiable": False, "fused": None}

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_options(lr)
        require(lr_decay >= 0.0, f"Invalid lr_decay value: {lr_decay}")
        require(weight_decay >= 0.0, f"Invalid weight_decay value: {weight_decay}")
        initial = initial_accumulator_value
        require(initial >= 0.0, f"Invalid initial_accumulator_value value: {initial}")
        require(eps >= 0.0, f"Invalid epsilon value: {eps}")
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        check_fused(fused, foreach, differentiable)
        for group in self.param_groups:
            self._prepare(group, group["params"])

    def _start(self, group: dict[str, Any], p: Tensor, state: dict[str, Any]) -> None:
        super()._start(group, p, state)
        initial = self.defaults["initial_accumulator_value"]
        state["sum"] = creation.full_like(
            p,
            complex(initial, initial) if p.is_complex() else initial,
            memory_format=preserve_format,
        )

    def share_memory(self) -> None:
        """Move the sums to memory that other processes can see."""
        for state in self.state.values():
            state["sum"].share_memory_()

    def _update(self, group: dict[str, Any], params: list[Tensor]) -> None:
        lr = self._number(group, "lr")
        lines = [*gradient(group), "v = v + g * g", "p = p + step * g / (sqrt(v) + eps)"]
        for count, some in self._by_count(group, params):
            numbers = {
                "step": -lr / (1 + (count - 1) * group["lr_decay"]),
                "eps": group["eps"],
                "weight_decay": group["weight_decay"],
            }
            self._run(group, lines, some, {"v": "sum"}, numbers)

    def _update_sparse(self, group: dict[str, Any], params: list[Tensor]) -> None:
        if group["weight_decay"] != 0:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
        self._prepare(group, params)
        lr = self._number(group, "lr")
        for count, some in self._by_count(group, params):
            step = -lr / (1 + (count - 1) * group["lr_decay"])
            for p in some:
                g = self._gradient(p).coalesce()
                total, values = self.state[p]["sum"], g.values()
                if group["maximize"]:
                    values = -values
                total.add_(entries(g, values * values))
                root = total.sparse_mask(g).values().sqrt() + group["eps"]
                p.add_(entries(g, values / root), alpha=step)


def adagrad(
    params: list[Tensor],
    grads: list[Tensor],
    state_sums: list[Tensor],
    state_steps: list[Tensor],
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float | Tensor,
    weight_decay: float,
    lr_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """Update tensors in place by a step of Adagrad, whose state is given as lists."""
    step_given(Adagrad, locals(), state_sums="sum", state_steps="step")
