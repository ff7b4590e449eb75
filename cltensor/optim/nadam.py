"""NAdam: Adam with Nesterov momentum."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from .base import FusedOptimizer
from .given import step_given
from .stepper import check_options, gradient, lerp, peek, poke, put, require, tally

__all__ = ["NAdam", "nadam"]


class NAdam(FusedOptimizer):
    """Adam whose step looks ahead along its momentum.

    params: parameters or groups. lr: learning rate. betas: decay of the averages of gradient and square. eps: added to
    the root. weight_decay: factor of the L2 penalty, or of the direct decay where `decoupled_weight_decay`.
    momentum_decay: how fast the momentum warms up. maximize: ascend. differentiable: let gradients flow through `step`.
    ValueError for options out of range.
    """

    counters = ("step", "mu_product")
    counts_on_device = True
    late_options = {
        "maximize": False, "foreach": None, "capturable": False, "differentiable": False, "decoupled_weight_decay": False,
    }  # fmt: skip

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_options(lr, weight_decay, eps=eps, betas=betas)
        require(momentum_decay >= 0.0, f"Invalid momentum_decay value: {momentum_decay}")
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _start(self, group: dict[str, Any], p: Tensor, state: dict[str, Any]) -> None:
        super()._start(group, p, state)
        state["mu_product"] = self._counter(group, p, 1.0)

    def _buffers(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq")

    def _update(self, group: dict[str, Any], params: list[Tensor]) -> None:
        lr, (beta1, beta2) = self._number(group, "lr"), group["betas"]
        lines = [
            *gradient(group),
            lerp("m", "g", "w1", 1 - beta1),
            "v = v * beta2 + g * g * w2",
            "size = sqrt(v / bias) + eps",
            "p = p + along * g / size",
            "p = p + ahead * m / size",
        ]
        numbers = {
            "w1": 1 - beta1,
            "beta2": beta2,
            "w2": 1 - beta2,
            "eps": group["eps"],
            "weight_decay": group["weight_decay"],
            "shrink": 1 - lr * group["weight_decay"],
        }
        for count, some in self._by_count(group, params):
            mu, following = (_momentum(group, n) for n in (count, count + 1))
            numbers["bias"] = 1 - beta2**count
            for product, same in self._by_product(group, some, count, mu):
                numbers["along"] = -lr * (1.0 - mu) / (1.0 - product)
                numbers["ahead"] = -lr * following / (1.0 - product * following)
                self._run(group, lines, same, {"m": "exp_avg", "v": "exp_avg_sq"}, numbers)

    def _by_product(
        self, group: dict[str, Any], params: list[Tensor], count: Any, mu: Any
    ) -> list[tuple[Any, list[Tensor]]]:
        """Multiply every parameter's product of momenta by `mu`; return pairs of a product and its parameters."""
        if isinstance(count, Tensor):
            return self._by_product_on_device(group, params, count, mu)
        if group["differentiable"]:  # each product has a history of its own
            return [(self.state[p]["mu_product"].mul_(mu), [p]) for p in params]
        parts: dict[float, list[Tensor]] = {}
        for p in params:
            product = self.state[p]["mu_product"]
            parts.setdefault(poke(product, peek(product) * mu), []).append(p)
        return list(parts.items())

    def _by_product_on_device(
        self, group: dict[str, Any], params: list[Tensor], count: Tensor, mu: Tensor
    ) -> list[tuple[Any, list[Tensor]]]:
        parts: dict[float, list[Tensor]] = {}
        for p in params:
            parts.setdefault(tally(self.state[p]["mu_product"]), []).append(p)
        found = []
        for value, some in parts.items():
            products = [self.state[p]["mu_product"] for p in some]
            put(products, products[0] * mu, value * _momentum(group, tally(count)))
            found.append((products[0], some))
        return found


def _momentum(group: dict[str, Any], count: Any) -> Any:
    """Return the momentum of a step, which warms up from half of beta1."""
    return group["betas"][0] * (1.0 - 0.5 * 0.96 ** (count * group["momentum_decay"]))


def nadam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    mu_products: list[Tensor],
    state_steps: list[Tensor],
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: float | Tensor,
    weight_decay: float,
    momentum_decay: float,
    eps: float,
) -> None:
    """Update tensors in place by a step of NAdam, whose state is given as lists."""
    step_given(
        NAdam,
        locals(),
        exp_avgs="exp_avg",
        exp_avg_sqs="exp_avg_sq",
        mu_products="mu_product",
        state_steps="step",
    )
