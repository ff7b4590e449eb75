"""Stochastic gradient descent, with momentum."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from .adam import check_fused
from .base import FusedOptimizer
from .given import step_given
from .stepper import gradient, require, zeros_like

__all__ = ["SGD", "sgd"]


class SGD(FusedOptimizer):
    """Descend along the gradient, or along its running sum.

    params: parameters or groups. lr: learning rate, a number or a tensor of one element. momentum: decay of the running
    sum, which takes 1 - dampening of each gradient. nesterov: use Nesterov momentum. weight_decay: factor of the L2
    penalty. maximize: ascend. differentiable: let gradients flow through `step`. ValueError for options out of range.
    """

    counters = ()
    late_options = {
        "nesterov": False, "maximize": False, "foreach": None, "differentiable": False, "fused": False,
    }  # fmt: skip

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        if isinstance(lr, Tensor):
            require(lr.numel() == 1, "Tensor lr must be 1-element")
        require(not lr < 0.0, f"Invalid learning rate: {lr}")
        require(not momentum < 0.0, f"Invalid momentum value: {momentum}")
        require(not weight_decay < 0.0, f"Invalid weight_decay value: {weight_decay}")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, defaults)
        check_fused(fused, foreach, differentiable)

    def _prepare(self, group: dict[str, Any], params: list[Tensor]) -> None:
        pass

    def _update(self, group: dict[str, Any], params: list[Tensor]) -> None:
        numbers = {
            "lr": self._number(group, "lr"),
            "weight_decay": self._number(group, "weight_decay"),
            "momentum": group["momentum"],
            "fresh": 1 - group["dampening"],
        }
        lines = gradient(group)
        if group["momentum"] == 0:
            self._run(group, [*lines, "p = p - lr * g"], params, {}, numbers)
            return
        ahead = "g + momentum * b" if group["nesterov"] else "b"
        states, last = {"b": "momentum_buffer"}, f"p = p - lr * ({ahead})"
        new = [p for p in params if self.state[p].get("momentum_buffer") is None]
        old = [p for p in params if self.state[p].get("momentum_buffer") is not None]
        if new:
            for p, buffer in zip(new, zeros_like(new), strict=True):
                self.state[p]["momentum_buffer"] = buffer
            start = "b = g"
            if group["differentiable"]:  # no gradient flows through the first buffer
                self._run(group, [*lines, start], new, states, numbers)
                for p in new:
                    self.state[p]["momentum_buffer"] = self.state[p]["momentum_buffer"].detach()
                start = "b = b"
            self._run(group, [*lines, start, last], new, states, numbers)
        if old:
            self._run(group, [*lines, "b = momentum * b + fresh * g", last], old, states, numbers)

    def _update_sparse(self, group: dict[str, Any], params: list[Tensor]) -> None:
        lr, momentum = self._number(group, "lr"), group["momentum"]
        for p in params:
            g = self._gradient(p)
            g = -g if group["maximize"] else g
            if group["weight_decay"] != 0:
                g = g.add(p, alpha=group["weight_decay"])  # RuntimeError: the sum would be dense
            if momentum != 0:
                state = self.state[p]
                if (old := state.get("momentum_buffer")) is None:
                    new = g.clone()
                else:
                    new = (old * momentum).add(g, alpha=1 - group["dampening"])
                # Coalesced, as else the number of entries would grow at each step.
                state["momentum_buffer"] = new = new.coalesce()
                g = g.add(new, alpha=momentum) if group["nesterov"] else new
            p.add_(g, alpha=-lr)


def sgd(
    params: list[Tensor],
    d_p_list: list[Tensor],
    momentum_buffer_list: list[Tensor | None],
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    *,
    weight_decay: float,
    momentum: float,
    lr: float | Tensor,
    dampening: float,
    nesterov: bool,
    maximize: bool,
) -> None:
    """Update tensors in place by a step of SGD, whose state is given as lists."""
    step_given(SGD, locals(), momentum_buffer_list="momentum_buffer")
