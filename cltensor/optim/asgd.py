"""Averaged stochastic gradient descent."""

from __future__ import annotations

import itertools
from typing import Any

from .. import dtypes
from ..tensor import Tensor
from .base import FusedOptimizer
from .given import step_given
from .stepper import check_options, counter, gradient, number, peek, poke, put, tally

__all__ = ["ASGD", "asgd"]

_AVERAGE = "a = a + (p - a) * mu"
_MARKS = itertools.count()


class ASGD(FusedOptimizer):
    """Descend with a falling rate, and keep the average of the parameters in the state "ax".

    params: parameters or groups. lr: learning rate. lambd: decay of parameters and rate. alpha: power of the rate's fall.
    t0: the step at which averaging starts. weight_decay: factor of the L2 penalty. maximize: ascend.
    differentiable: let gradients flow through `step`. ValueError for options out of range.
    """

    counters = ("step", "eta", "mu")
    counts_on_device = True
    late_options = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}  # fmt: skip

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_options(lr, weight_decay)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _start(self, group: dict[str, Any], p: Tensor, state: dict[str, Any]) -> None:
        super()._start(group, p, state)
        state["eta"] = self._counter(group, p, number(group["lr"]))
        state["mu"] = self._counter(group, p, 1.0)

    def _counter(self, group: dict[str, Any], p: Tensor, value: float) -> Tensor:
        return counter(value, p)

    def _buffers(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("ax",)

    def _update(self, group: dict[str, Any], params: list[Tensor]) -> None:
        lr = self._number(group, "lr")
        for count, some in self._by_count(group, params):
            if isinstance(count, Tensor):
                self._update_on_device(group, some, _rates(group, lr, count))
                continue
            rates: dict[tuple[float, float], list[Tensor]] = {}
            for p in some:
                state, following = self.state[p], _rates(group, lr, count)
                rates.setdefault((peek(state["eta"]), peek(state["mu"])), []).append(p)
                for name, rate in zip(("eta", "mu"), following, strict=True):
                    poke(state[name], _rounded(rate))
            for (eta, mu), same in rates.items():
                self._descend(group, same, eta, mu, "a = p" if mu == 1 else _AVERAGE)

    def _update_on_device(
        self, group: dict[str, Any], params: list[Tensor], following: tuple[Tensor, Tensor]
    ) -> None:
        """Do as `_update` with rates that the host does not know.

        Instead of a rate's value the host notes a mark, the same for all rates written together; parameters are grouped
        by it.
        """
        parts: dict[float, list[Tensor]] = {}
        for p in params:
            parts.setdefault(tally(self.state[p]["eta"]), []).append(p)
        for some in parts.values():
            first = self.state[some[0]]
            average = f"a = where(mu == 1, p, {_AVERAGE[4:]})"
            self._descend(group, some, first["eta"], first["mu"], average)
        mark = -1.0 - next(_MARKS)  # negative, hence no rate
        for name, rate in zip(("eta", "mu"), following, strict=True):
            put([self.state[p][name] for p in params], rate, mark)

    def _descend(
        self, group: dict[str, Any], params: list[Tensor], eta: Any, mu: Any, average: str
    ) -> None:
        lines = [*gradient(group), "p = p * keep", "p = p - eta * g", average]
        numbers = {
            "keep": 1 - group["lambd"] * eta,
            "eta": eta,
            "mu": mu,
            "weight_decay": group["weight_decay"],
        }
        self._run(group, lines, params, {"a": "ax"}, numbers)


def _rates(group: dict[str, Any], lr: Any, count: Any) -> tuple[Any, Any]:
    """Return the rate of the next step, and the next step's weight in the average."""
    late = count - group["t0"]
    late = late.clamp(min=1) if isinstance(late, Tensor) else max(1, late)
    return lr / (1 + group["lambd"] * lr * count) ** group["alpha"], 1 / late


def _rounded(value: float) -> float:
    """Return a number rounded to the default dtype, for states that loading may have cast to a wider one."""
    return float(dtypes.get_default_dtype().np.type(value))


def asgd(
    params: list[Tensor],
    grads: list[Tensor],
    axs: list[Tensor],
    mus: list[Tensor],
    etas: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lambd: float,
    lr: float | Tensor,
    t0: float,
    alpha: float,
    weight_decay: float,
) -> None:
    """Update tensors in place by a step of ASGD, whose state is given as lists."""
    step_given(ASGD, locals(), axs="ax", mus="mu", etas="eta", state_steps="step")
