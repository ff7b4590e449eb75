"""Adafactor: Adam with the second moment of a matrix factored into a row and a column."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from .. import creation, dtypes
from ..autograd import no_grad
from ..ops import multi
from ..tensor import Tensor
from .base import FusedOptimizer
from .stepper import counter, lerp, number, require, run_closure, update

__all__ = ["Adafactor"]

# Parameters of up to this many elements are stacked (copied), so that those of one shape are computed together.
_SMALL = 1 << 16


class Adafactor(FusedOptimizer):
    """Descend along the gradient over the root of a factored estimate of its averaged square. The host does not wait
    for the device.

    params: parameters or groups. lr: bound of the relative step. beta2_decay: power by which the average's decay goes to 1.
    eps: lower bounds of the square's root (None: the dtype's epsilon) and of a parameter's root mean square. d: bound
    of the update's root mean square. weight_decay: direct decay. maximize: ascend. ValueError for options out of range.
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
        """Update the parameters; `closure`, called first, computes the loss and its gradients anew.

        Returns its loss.
        """
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
                alike: dict[Any, list[Tensor]] = {}
                for p in some:
                    key = p.shape, p.dtype, p.device, p.grad.dtype
                    alike.setdefault(key if p.numel() <= _SMALL else id(p), []).append(p)
                stacks = []
                for ps in alike.values():
                    if len(ps) > 1 and ps[0].numel():
                        stacks.append(_Stack(ps))
                        continue
                    for p in ps:
                        self._descend(group, p, count)
                if stacks:
                    self._descend_together(group, stacks, count)
        return loss

    def _start(self, group: dict[str, Any], p: Tensor, state: dict[str, Any]) -> None:
        state["step"] = counter(0.0)
        shape = tuple(p.grad.shape)
        if len(shape) > 1:
            state["row_var"] = p.grad.new_zeros((*shape[:-1], 1))
            state["col_var"] = p.grad.new_zeros((*shape[:-2], 1, shape[-1]))
        else:
            state["variance"] = p.grad.new_zeros(shape)

    def _descend_together(
        self, group: dict[str, Any], stacks: Sequence[_Stack], count: float
    ) -> None:
        """Do as `_descend` for stacks of parameters: each launch is for all parameters, or for all of one shape."""
        lr, (_, eps2) = number(group["lr"]), group["eps"]
        params = [p for stack in stacks for p in stack.params]
        grads = [p.grad for p in params]
        copies = [t for stack in stacks for t in multi.slices(stack.p)]
        copies += [t for stack in stacks for t in multi.slices(stack.g)]
        multi.apply(_COPY, [copies, params + grads], {})
        states: dict[str, list[Tensor]] = {"state": [], "copy": []}
        news: list[Tensor] = []
        for stack in stacks:
            for name, new in stack.squares().items():
                stack.state[name] = creation.empty_like(new)
                states["state"] += [self.state[p][name] for p in stack.params]
                states["copy"] += multi.slices(stack.state[name])
                news += multi.slices(new)
        weight = count ** group["beta2_decay"]
        lines = [lerp("state", "new", "weight", weight), "copy = state"]
        update("adafactor_average", lines, states, {"new": news}, {"weight": weight})
        steps: list[Tensor] = []
        for stack in stacks:
            eps1 = self._eps1(group, stack.p)
            scale = (stack.rms(stack.p)).clamp(min=eps2) * min(lr, 1 / count**0.5)
            step = _estimate(stack.state, eps1).clamp(min=eps1 * eps1).rsqrt() * stack.g
            clip = (stack.rms(step) / group["d"]).clamp(min=1.0)
            steps += multi.slices(step * (scale / clip))
        sign = "+" if group["maximize"] else "-"
        shrink = 1 - lr * group["weight_decay"]
        line = f"p = p * shrink {sign} step" if shrink != 1 else f"p = p {sign} step"
        update("adafactor", [line], {"p": params}, {"step": steps}, {"shrink": shrink})

    def _eps1(self, group: dict[str, Any], p: Tensor) -> float:
        eps1 = group["eps"][0]
        return dtypes.finfo(p.dtype).eps if eps1 is None else eps1

    def _descend(self, group: dict[str, Any], p: Tensor, count: float) -> None:
        lr, eps1, eps2 = number(group["lr"]), self._eps1(group, p), group["eps"][1]
        grad = -p.grad if group["maximize"] else p.grad
        scale = (p.norm(2) / p.numel() ** 0.5).clamp(min=eps2) * min(lr, 1 / count**0.5)
        if group["weight_decay"] != 0:
            p.mul_(1 - lr * group["weight_decay"])
        state, weight = self.state[p], count ** group["beta2_decay"]
        for name, new in _squares(grad).items():
            state[name].lerp_(new, weight)
        step = _estimate(state, eps1).clamp(min=eps1 * eps1).rsqrt() * grad
        clip = (step.norm(2) / (step.numel() ** 0.5 * group["d"])).clamp(min=1.0)
        p.sub_(step * (scale / clip))


_COPY = multi.chain("copy", "to = g", "to", "g")


class _Stack:
    """Parameters of one shape, with room for copies of them, their gradients and their state, stacked along a first
    dim.
    """

    def __init__(self, params: list[Tensor]) -> None:
        first = params[0]
        shape = (len(params), *first.shape)
        self.params = params
        self.p = creation.empty(shape, dtype=first.dtype, device=first.device)
        self.g = creation.empty(shape, dtype=first.grad.dtype, device=first.device)
        self.state: dict[str, Tensor] = {}

    def squares(self) -> dict[str, Tensor]:
        """Return the squares that the states average, by the states' names."""
        return _squares(self.g, self.params[0].ndim)

    def rms(self, x: Tensor) -> Tensor:
        """Return the root mean square of each parameter's slice of `x`, shaped to broadcast against `x`."""
        norms = x.reshape(len(self.params), -1).norm(2, dim=1)
        norms = norms / prod(x.shape[1:]) ** 0.5
        return norms.reshape(-1, *[1] * (x.ndim - 1))


def _squares(grad: Tensor, ndim: int = -1) -> dict[str, Tensor]:
    """Return a gradient's squares, by the names of the states that average them: factored into row and column means
    from two dims on.

    ndim: the number of dims of one parameter, where `grad` is stacked.
    """
    if (grad.ndim if ndim < 0 else ndim) < 2:
        return {"variance": grad * grad}
    return {
        "row_var": grad.square().mean(-1, keepdim=True),
        "col_var": grad.square().mean(-2, keepdim=True),
    }


def _estimate(state: dict[str, Tensor], eps1: float) -> Tensor:
    """Return the averaged square that the states represent: the outer product of row and column, scaled."""
    if "variance" in state:
        return state["variance"]
    row, col = state["row_var"], state["col_var"]
    return row * col / row.mean(-2, keepdim=True).clamp(min=eps1)
