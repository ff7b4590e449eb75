"""Rprop: each element has a step size of its own, and of its gradient only the sign is used."""

from __future__ import annotations

from typing import Any

from .. import creation
from ..tensor import Tensor
from .base import FusedOptimizer
from .given import step_given
from .stepper import check_options, number, require

__all__ = ["Rprop", "rprop"]


class Rprop(FusedOptimizer):
    """Move each element by its step size, against the sign of its gradient.

    Step sizes grow while the sign stays the same, and shrink when it changes.
    params: parameters or groups. lr: the first step size. etas: factors to shrink and to grow by. step_sizes: the
    smallest and the largest. maximize: ascend. differentiable: let gradients flow through `step`. ValueError for
    options out of range.
    """

    counts_on_device = True
    late_options = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}  # fmt: skip

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_options(lr)
        require(0.0 < etas[0] < 1.0 < etas[1], f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _buffers(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("prev",)

    def _prepare(self, group: dict[str, Any], params: list[Tensor]) -> None:
        super()._prepare(group, params)
        for p in params:
            if "step_size" not in self.state[p]:
                first = number(group["lr"])
                size = complex(first, first) if p.is_complex() else first
                self.state[p]["step_size"] = creation.full_like(p.grad, size)

    def _update(self, group: dict[str, Any], params: list[Tensor]) -> None:
        lines = ["g = -g"] if group["maximize"] else []
        lines += [
            "turn = g * q",
            "s = where(turn > 0, s * grow, where(turn < 0, s * shrink, s))",
            "s = where(s < least, least, where(s > most, most, s))",
            "g = where(turn < 0, 0, g)",
            "p = p - where(g > 0, s, where(g < 0, -s, 0))",
            "q = g",
        ]
        (shrink, grow), (least, most) = group["etas"], group["step_sizes"]
        numbers = {"grow": grow, "shrink": shrink, "least": least, "most": most}
        for _, some in self._by_count(group, params):
            self._run(group, lines, some, {"q": "prev", "s": "step_size"}, numbers)


def rprop(
    params: list[Tensor],
    grads: list[Tensor],
    prevs: list[Tensor],
    step_sizes: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    maximize: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    step_size_min: float,
    step_size_max: float,
    etaminus: float,
    etaplus: float,
) -> None:
    """Update tensors in place by a step of Rprop, whose state is given as lists."""
    step_given(Rprop, locals(), prevs="prev", step_sizes="step_size", state_steps="step")
