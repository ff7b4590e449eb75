"""`FusedOptimizer`: an optimiser that updates a group's parameters by chains of formulas.

Makes the state and drives `step`; a subclass defines what state there is and what the chain computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..autograd import set_grad_enabled
from ..sparse.dispatch import STATE
from ..tensor import Tensor
from .optimizer import Optimizer
from .stepper import by_count, by_count_on_device, counter, number, run_closure, update, zeros_like


class FusedOptimizer(Optimizer):
    """Base of the optimisers whose update of a parameter is a chain of formulas.

    `foreach` and `fused` choose nothing: every step is fused over all parameters. `capturable` keeps counters on the
    parameters' device; in classes with `counts_on_device` the host does not read them there. `differentiable` runs the
    same formulas as recorded operations.
    """

    # Defaults of options that a group saved by an older version may lack; read only.
    late_options: dict[str, Any] = {}
    counters: Sequence[str] = ("step",)
    counts_on_device = False  # whether the formulas accept the count as a tensor, for `capturable`

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in self.late_options.items():
                group.setdefault(name, value)
            for p in group["params"]:
                known = self.state.get(p, {})
                for name in self.counters if known else ():
                    if not isinstance(known[name], Tensor):
                        known[name] = self._counter(group, p, known[name])

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters; `closure`, called first, computes the loss and its gradients anew.

        Returns its loss.
        """
        with set_grad_enabled(self.defaults["differentiable"]):
            loss = run_closure(closure)
            for group in self.param_groups:
                params = [p for p in group["params"] if p._grad is not None]
                if STATE.made:
                    params = self._without_sparse(group, params)
                if params:
                    self._prepare(group, params)
                    self._update(group, params)
        return loss

    def _gradient(self, p: Tensor) -> Tensor:
        return p._grad

    def _update(self, group: dict[str, Any], params: list[Tensor]) -> None:
        raise NotImplementedError

    def _without_sparse(self, group: dict[str, Any], params: list[Tensor]) -> list[Tensor]:
        """Update the parameters with sparse gradients; return the others."""
        some = [p for p in params if not p._grad._strided]
        if some:
            self._update_sparse(group, some)
        return [p for p in params if p._grad._strided] if some else params

    def _update_sparse(self, group: dict[str, Any], params: list[Tensor]) -> None:
        """Update parameters by sparse gradients; RuntimeError by default."""
        raise RuntimeError(f"{type(self).__name__} does not support sparse gradients")

    def _buffers(self, group: dict[str, Any]) -> Sequence[str]:
        """Return the names of the states that start as zeros, with the parameter's shape."""
        return ()

    def _prepare(self, group: dict[str, Any], params: list[Tensor]) -> None:
        """Make the state of parameters that have none."""
        new = [p for p in params if not self.state[p]]
        if not new:
            return
        for p in new:
            self._start(group, p, self.state[p])
        for name in self._buffers(group):
            for p, zeros in zip(new, zeros_like(new), strict=True):
                self.state[p][name] = zeros

    def _start(self, group: dict[str, Any], p: Tensor, state: dict[str, Any]) -> None:
        state["step"] = self._counter(group, p, 0.0)

    def _counter(self, group: dict[str, Any], p: Tensor, value: float) -> Tensor:
        fused = bool(group.get("fused"))
        return counter(value, p if fused or group.get("capturable") else None, fused=fused)

    def _by_count(
        self, group: dict[str, Any], params: Sequence[Tensor]
    ) -> Iterator[tuple[Any, list[Tensor]]]:
        """Add 1 to the parameters' counters; yield pairs of a number of steps (a tensor, if it stays on the device) and
        the parameters that have made it.
        """
        stays = self._stays_on_device(group)
        yield from (by_count_on_device if stays else by_count)(params, self.state)

    def _stays_on_device(self, group: dict[str, Any]) -> bool:
        return self.counts_on_device and group["capturable"] and not group["differentiable"]

    def _number(self, group: dict[str, Any], name: str) -> Any:
        value = group[name]
        if not isinstance(value, Tensor):
            return value
        return number(value, group["differentiable"] or self._stays_on_device(group))

    def _run(
        self,
        group: dict[str, Any],
        lines: Sequence[str],
        params: Sequence[Tensor],
        states: dict[str, str],
        numbers: dict[str, Any],
    ) -> None:
        """Run statements that update `p` and states and read the gradient `g`; `states` maps names in the statements to
        names in the state.
        """
        writes: dict[str, Sequence[Tensor]] = {"p": params}
        # Looked up only if needed: `self.state` is a defaultdict, to which a look-up adds an entry.
        found = [self.state[p] for p in params] if states else []
        for letter, name in states.items():
            writes[letter] = [state[name] for state in found]
        grads = {"g": [self._gradient(p) for p in params]}
        label = self.__class__.__name__.lower()
        update(label, lines, writes, grads, numbers, differentiable=group["differentiable"])
