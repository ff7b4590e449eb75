"""Adam, with weight decay as a penalty or decoupled, and AMSGrad."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from .base import FusedOptimizer
from .given import step_given
from .stepper import check_options, gradient, lerp, number, require

__all__ = ["Adam", "adam"]


class Adam(FusedOptimizer):
    """Descend along the averaged gradient over the root of the averaged squared gradient.

    params: parameters or groups. lr: learning rate, a number or a tensor of one element. betas: decay of the two averages.
    eps: added to the root. weight_decay: factor of the L2 penalty, or of the direct decay where `decoupled_weight_decay`.
    amsgrad: divide by the largest average so far. maximize: ascend. differentiable: let gradients flow through `step`.
    ValueError for options out of range.
    """

    counts_on_device = True
    late_options = {
        "amsgrad": False, "maximize": False, "foreach": None, "capturable": False, "differentiable": False,
        "decoupled_weight_decay": False, "fused": None,
    }  # fmt: skip

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and foreach and not capturable:
            raise ValueError(
                "lr as a Tensor is not supported for capturable=False and foreach=True"
            )
        check_options(lr, weight_decay, eps=eps, betas=betas)
        _check_betas(betas, bool(foreach) and not capturable)
        defaults = {
            "lr": lr,
            "betas": tuple(b.squeeze() if isinstance(b, Tensor) and b.ndim else b for b in betas),
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)
        check_fused(fused, foreach, differentiable)

    def _update_sparse(self, group: dict[str, Any], params: list[Tensor]) -> None:
        raise RuntimeError(
            "Adam does not support sparse gradients, please consider SparseAdam instead"
        )

    def _buffers(self, group: dict[str, Any]) -> tuple[str, ...]:
        names = ("exp_avg", "exp_avg_sq")
        return (*names, "max_exp_avg_sq") if group["amsgrad"] else names

    def _update(self, group: dict[str, Any], params: list[Tensor]) -> None:
        if group["foreach"] and isinstance(group["lr"], Tensor) and not group["capturable"]:
            raise RuntimeError(
                "lr as a Tensor is not supported for capturable=False and foreach=True"
            )
        keep = group["differentiable"] or self._stays_on_device(group)
        lr, decay = self._number(group, "lr"), self._number(group, "weight_decay")
        beta1, beta2 = (number(b, keep) for b in group["betas"])
        states = {"m": "exp_avg", "v": "exp_avg_sq"}
        lines = [*gradient(group), lerp("m", "g", "w1", 1 - beta1), "v = v * beta2 + g * g * w2"]
        root = "v"
        if group["amsgrad"]:
            root, states["x"] = "x", "max_exp_avg_sq"
            lines.append("x = where(x >= v, x, v)")
        # torch's `step * m / (sqrt(v) / root + eps)`, multiplied through by `root`: one division instead of two.
        lines.append(f"p = p + step * root * m / (sqrt({root}) + eps * root)")
        for count, some in self._by_count(group, params):
            numbers = {
                "w1": 1 - beta1,
                "beta2": beta2,
                "w2": 1 - beta2,
                "step": -lr / (1 - beta1**count),
                "root": (1 - beta2**count) ** 0.5,
                "eps": group["eps"],
                "weight_decay": decay,
                "shrink": 1 - lr * decay,
            }
            self._run(group, lines, some, states, numbers)


def _check_betas(betas: Any, plain: bool) -> None:
    kinds = [isinstance(b, Tensor) for b in betas]
    if not (all(kinds) or all(isinstance(b, float) for b in betas)):
        raise ValueError("betas must be either both floats or both Tensors")
    for i, beta in enumerate(betas):
        if kinds[i]:
            require(
                not plain,
                f"betas[{i}] as a Tensor is not supported for capturable=False and foreach=True",
            )
            require(beta.numel() == 1, f"Tensor betas[{i}] must be 1-element")


def check_fused(fused: Any, foreach: Any, differentiable: Any) -> None:
    """Raise torch's RuntimeError for options that exclude each other."""
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def adam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    max_exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    decoupled_weight_decay: bool = False,
    *,
    amsgrad: bool,
    beta1: float | Tensor,
    beta2: float | Tensor,
    lr: float | Tensor,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """Update tensors in place by a step of Adam, whose state is given as lists."""
    step_given(
        Adam,
        locals(),
        exp_avgs="exp_avg",
        exp_avg_sqs="exp_avg_sq",
        max_exp_avg_sqs="max_exp_avg_sq",
        state_steps="step",
    )
