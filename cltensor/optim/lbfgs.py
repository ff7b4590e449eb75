"""L-BFGS: quasi-Newton steps from the last differences of parameters and gradients, with a strong Wolfe line search.

All parameters are treated as one flat vector; the host reads a few numbers per iteration, to decide how to go on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autograd import enable_grad, no_grad
from ..memory_format import contiguous_format
from ..ops.row import FUNCTIONS
from ..tensor import Tensor
from .line_search import strong_wolfe
from .optimizer import Optimizer
from .stepper import number, require

__all__ = ["LBFGS"]


class LBFGS(Optimizer):
    """Minimise a smooth function that `step`'s closure computes; one group of parameters only.

    lr: length of a step (the first trial of a line search). max_iter, max_eval: bounds of iterations and evaluations in a
    step (max_eval None: 1.25 max_iter). tolerance_grad, tolerance_change: when to stop. history_size: differences kept.
    line_search_fn: None or "strong_wolfe". ValueError for options out of range.
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        if isinstance(lr, Tensor):
            require(lr.numel() == 1, "Tensor lr must be 1-element")
        require(lr >= 0.0, f"Invalid learning rate: {lr}")
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    @property
    def _params(self) -> list[Tensor]:
        return self.param_groups[0]["params"]

    # ------------------------------------------------------------------------------------- flat vectors

    def _flat_grad(self) -> Tensor:
        return FUNCTIONS["cat"](
            [
                _flat(p.new_zeros(p.shape) if p.grad is None else p.grad.detach().to_dense())
                for p in self._params
            ]
        )

    def _move(self, step: float, direction: Tensor) -> None:
        """Add `step * direction` to the parameters."""
        offset = 0
        for p in self._params:
            real = FUNCTIONS["view_as_real"](p) if p.is_complex() else p
            real.add_(direction[offset : offset + real.numel()].view_as(real), alpha=step)
            offset += real.numel()

    def _evaluate_at(
        self, closure: Callable[[], Any], start: list[Tensor], step: float, direction: Tensor
    ) -> tuple[float, Tensor]:
        """Return loss and gradient at `start + step * direction`. The parameters hold `start` before and after."""
        self._move(step, direction)
        loss = float(closure())
        grad = self._flat_grad()
        for p, value in zip(self._params, start, strict=True):
            p.copy_(value)
        return loss, grad

    # ------------------------------------------------------------------------------------- the step

    @no_grad()
    def step(self, closure: Callable[[], Any]) -> Any:
        """Run up to max_iter iterations; `closure` clears the gradients, computes the loss and its gradients, and returns it."""
        closure = enable_grad()(closure)
        group = self.param_groups[0]
        # One state for all parameters, kept under the first one, with which it is saved, loaded and cast.
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first_loss = closure()
        loss, evaluations = float(first_loss), 1
        state["func_evals"] += 1
        grad = self._flat_grad()
        if _largest(grad) <= group["tolerance_grad"]:
            return first_loss
        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            direction = self._direction(state, grad)
            _remember(state, grad, loss)
            lr, previous = number(group["lr"]), loss
            length = lr * _first_step(grad) if state["n_iter"] == 1 else lr
            state["d"], state["t"] = direction, length
            slope = grad.dot(direction).item()
            if slope > -group["tolerance_change"]:
                break
            used, last = 0, iteration == group["max_iter"]
            if group["line_search_fn"] is not None:
                loss, grad, length, used = self._search(
                    closure, direction, length, loss, grad, slope, group["max_eval"] - evaluations
                )
                state["t"] = length
                self._move(length, direction)
            else:
                self._move(length, direction)
                if not last:
                    loss, grad, used = float(closure()), self._flat_grad(), 1
            evaluations += used
            state["func_evals"] += used
            if last or evaluations >= group["max_eval"]:
                break
            if _settled(group, grad, direction, length, loss - previous):
                break
        return first_loss

    def _search(
        self,
        closure: Callable[[], Any],
        direction: Tensor,
        length: float,
        loss: float,
        grad: Tensor,
        slope: float,
        most: int,
    ) -> tuple[float, Tensor, float, int]:
        if self.param_groups[0]["line_search_fn"] != "strong_wolfe":
            raise RuntimeError("only 'strong_wolfe' is supported")
        start = [p.clone(memory_format=contiguous_format) for p in self._params]

        def at(step: float) -> tuple[float, Tensor]:
            return self._evaluate_at(closure, start, step, direction)

        return strong_wolfe(at, direction, length, loss, grad, slope, most=most)

    def _direction(self, state: dict[str, Any], grad: Tensor) -> Tensor:
        """Return minus the approximate inverse Hessian times the gradient (the two-loop recursion)."""
        if state["n_iter"] == 1:
            state["old_dirs"], state["old_stps"], state["ro"] = [], [], []
            state["H_diag"] = 1
            return -grad
        _learn(state, grad, self.param_groups[0]["history_size"])
        changes, steps, ro = state["old_dirs"], state["old_stps"], state["ro"]
        weights: list[Any] = [None] * len(changes)
        q = -grad
        for i in reversed(range(len(changes))):
            weights[i] = steps[i].dot(q) * ro[i]
            q = q - weights[i] * changes[i]
        q = q * state["H_diag"]
        for i in range(len(changes)):
            q = q + (weights[i] - changes[i].dot(q) * ro[i]) * steps[i]
        return q


def _flat(t: Tensor) -> Tensor:
    return (FUNCTIONS["view_as_real"](t) if t.is_complex() else t).reshape(-1)


def _largest(t: Tensor) -> float:
    return t.abs().max().item()


def _remember(state: dict[str, Any], grad: Tensor, loss: float) -> None:
    if state.get("prev_flat_grad") is None:
        state["prev_flat_grad"] = grad.clone(memory_format=contiguous_format)
    else:
        state["prev_flat_grad"].copy_(grad)
    state["prev_loss"] = loss


def _learn(state: dict[str, Any], grad: Tensor, history: int) -> None:
    """Add the last changes of gradient and parameters to the history, if the curvature along them is positive."""
    change = grad - state["prev_flat_grad"]
    step = state["d"] * state["t"]
    curve = change.dot(step)
    if curve.item() <= 1e-10:
        return
    rows = (state["old_dirs"], state["old_stps"], state["ro"])
    if len(rows[0]) == history:
        for row in rows:
            row.pop(0)
    for row, value in zip(rows, (change, step, 1.0 / curve), strict=True):
        row.append(value)
    state["H_diag"] = curve / change.dot(change)


def _settled(
    group: dict[str, Any], grad: Tensor, direction: Tensor, length: float, gained: float
) -> bool:
    return (
        _largest(grad) <= group["tolerance_grad"]
        or _largest(direction * length) <= group["tolerance_change"]
        or abs(gained) < group["tolerance_change"]
    )


def _first_step(grad: Tensor) -> float:
    """Return the factor of the learning rate for the first step: 1, or 1 / |grad|_1 if that is less."""
    total = grad.abs().sum().item()
    return 1.0 / total if total > 1 else 1.0
