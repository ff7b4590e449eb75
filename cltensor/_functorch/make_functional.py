"""Modules as functions of their parameters, as functorch made them; `func.functional_call` has taken their place."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from ..func import functional_call
from ..nn.modules.module import Module
from ..ops.row import FUNCTIONS
from ..tensor import Tensor

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "combine_state_for_ensemble",
    "make_functional",
    "make_functional_with_buffers",
]


class FunctionalModule(Module):
    """A module without parameters of its own: a call takes them first, in the order in which they were taken out."""

    def __init__(self, stateless_model: Module, param_names: Sequence[str]) -> None:
        super().__init__()
        # Not a submodule: its parameters are not this module's.
        self.__dict__["stateless_model"] = stateless_model
        self.param_names = tuple(param_names)

    def forward(self, params: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        """Call the module with these parameters."""
        state = dict(zip(self.param_names, params, strict=True))
        return functional_call(self.stateless_model, state, args, kwargs)


class FunctionalModuleWithBuffers(Module):
    """A module without parameters and buffers of its own: a call takes both first."""

    def __init__(
        self, stateless_model: Module, param_names: Sequence[str], buffer_names: Sequence[str]
    ) -> None:
        super().__init__()
        self.__dict__["stateless_model"] = stateless_model
        self.param_names, self.buffer_names = tuple(param_names), tuple(buffer_names)

    def forward(  # type: ignore[override]
        self, params: Sequence[Tensor], buffers: Sequence[Tensor], *args: Any, **kwargs: Any
    ) -> Any:
        """Call the module with these parameters and buffers."""
        state = dict(zip(self.param_names, params, strict=True))
        state |= zip(self.buffer_names, buffers, strict=True)
        return functional_call(self.stateless_model, state, args, kwargs)


def _copied(model: Module, disable_autograd_tracking: bool) -> tuple[Module, dict[str, Any]]:
    """Return a copy of a module, and the copy's parameters by name."""
    made = copy.deepcopy(model)
    found = dict(made.named_parameters())
    if disable_autograd_tracking:
        for param in found.values():
            param.requires_grad_(False)
    return made, found


def make_functional(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModule, tuple[Tensor, ...]]:
    """Return a module as a function of its parameters, and copies of these.

    disable_autograd_tracking: the copies require no gradients. RuntimeError: the module has buffers.
    """
    if any(True for _ in model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead."
        )
    made, params = _copied(model, disable_autograd_tracking)
    return FunctionalModule(made, [*params]), tuple(params.values())


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Return a module as a function of its parameters and buffers, and copies of these.

    disable_autograd_tracking: the parameters' copies require no gradients.
    """
    made, params = _copied(model, disable_autograd_tracking)
    buffers = dict(made.named_buffers())
    made_of = FunctionalModuleWithBuffers(made, [*params], [*buffers])
    return made_of, tuple(params.values()), tuple(buffers.values())


def combine_state_for_ensemble(
    models: Sequence[Module],
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Return modules of one class as one function, and their parameters and buffers, stacked, for `vmap`.

    RuntimeError: there are no modules, they are not of one class, or only some are in training mode.
    """
    if not len(models):
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if any(m.training is not models[0].training for m in models):
        raise RuntimeError(
            "combine_state_for_ensemble: Expected all models to have the same training/eval mode."
        )
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError(
            "combine_state_for_ensemble: Expected all models to be of the same class."
        )
    functions, *states = zip(*map(make_functional_with_buffers, models), strict=True)
    params, buffers = (
        tuple(FUNCTIONS["stack"](list(same)).detach() for same in zip(*each, strict=True))
        for each in states
    )
    return functions[0], params, buffers
