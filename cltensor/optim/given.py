"""`step_given`: a step of an optimiser over tensors, gradients and state that the caller holds in lists.

It implements torch's functional forms (`torch.optim.adam.adam` and its kin). Knows no algorithm: it runs the class's
`_update`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from ..autograd import is_grad_enabled
from ..tensor import Tensor
from .base import FusedOptimizer


class _Given(FusedOptimizer):
    """An optimiser without parameters of its own: group, gradients and state are the caller's."""

    grads: dict[Tensor, Tensor]

    def __init__(self, group: dict[str, Any], grads: dict[Tensor, Tensor], state: Any) -> None:
        self.defaults, self.grads, self.state = group, grads, state

    def _gradient(self, p: Tensor) -> Tensor:
        return self.grads[p]

    def _prepare(self, group: dict[str, Any], params: list[Tensor]) -> None:
        pass  # the caller made the state


@cache
def _given(kind: Any) -> type[_Given]:
    return type(kind.__name__, (_Given, kind), {})


_PAIRS = {  # options that are tuples in the class, separate arguments in the functional form
    "betas": ("beta1", "beta2"),
    "etas": ("etaminus", "etaplus"),
    "step_sizes": ("step_size_min", "step_size_max"),
}


def step_given(kind: Any, given: dict[str, Any], **lists: str) -> None:
    """Update tensors by one step of the optimiser class `kind`, given the arguments of torch's functional form.

    given: these arguments by name; the first two are the parameters and their gradients, and the others, unless in
    `lists`, are options of the class. lists: which arguments are state, with the state's name in the class; a list may
    be too short where the options do not need that state. RuntimeError for counters that are numbers, AssertionError
    for `grad_scale` or `found_inf` unless fused.
    """
    (_, params), (_, grads), *others = given.items()
    group = {"capturable": False, "decoupled_weight_decay": False, **dict(others)}
    states: dict[str, list[Any]] = {name: group.pop(argument) for argument, name in lists.items()}
    for name, parts in _PAIRS.items():
        if parts[0] in group:
            group[name] = tuple([group.pop(part) for part in parts])
    fused, scale, found_inf = (group.get(n) for n in ("fused", "grad_scale", "found_inf"))
    steps: Sequence[Any] = states.get("step", ())
    if not all(isinstance(t, Tensor) for t in steps):
        raise RuntimeError(
            "API has changed, `state_steps` argument must contain a list of singleton tensors"
        )
    if not fused and not (scale is None and found_inf is None):
        raise AssertionError("Expected grad_scale and found_inf to be None")
    if found_inf is not None and found_inf.item():
        return
    group.setdefault("differentiable", is_grad_enabled() and any(p.requires_grad for p in params))
    if scale is not None:
        grads = [g.div_(scale) for g in grads]
    state: dict[Any, dict[str, Any]] = {
        p: {name: entries[i] for name, entries in states.items() if i < len(entries)}
        for i, p in enumerate(params)
    }
    run: _Given = _given(kind)(group, dict(zip(params, grads, strict=True)), state)
    dense = [p for p, g in zip(params, grads, strict=True) if g._strided]
    if len(dense) < len(params):
        run._update_sparse(group, [p for p in params if not run.grads[p]._strided])
    if dense:
        run._update(group, dense)
    for name, entries in states.items():  # a first step may have made new state: momentum buffers
        entries[:] = [state[p].get(name) for p in params][: len(entries)]
