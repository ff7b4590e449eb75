"""`distributed.checkpoint.state_dict`: the states of a module and its optimisers by the names of the bare module's
parameters, whether it is compiled, trained in parallel, or neither.

Every process has all values: nothing is sharded here. Knows no file format.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from ..compiler import OptimizedModule
from ..nn import Module
from ..nn.modules.state import _IncompatibleKeys
from ..nn.parallel import DistributedDataParallel
from ..optim import Optimizer
from ..tensor import Tensor
from ..utils._pytree import tree_map_only
from .groups import get_rank, is_initialized
from .objects import broadcast_object_list

__all__ = [
    "StateDictOptions",
    "Stateful",
    "get_model_state_dict",
    "get_optimizer_state_dict",
    "get_state_dict",
    "set_model_state_dict",
    "set_optimizer_state_dict",
    "set_state_dict",
]

_WRAPPERS = {DistributedDataParallel: "module", OptimizedModule: "_orig_mod"}

Optimizers = Optimizer | Iterable[Optimizer]


@runtime_checkable
class Stateful(Protocol):
    """An object whose state is written to a checkpoint and read from it."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state."""


@dataclass
class StateDictOptions:
    """What `get_state_dict` and `set_state_dict` do, as in torch.

    full_state_dict, cpu_offload: both together give states on the cpu device to rank 0 and empty ones to all others.
    ignore_frozen_params: leave out parameters that require no gradient. strict: names that are missing are an error.
    broadcast_from_rank0: all ranks take over rank 0's states. flatten_optimizer_state_dict: one dict, by names such as
    "state.weight.exp_avg". The others have no effect.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def _checked(options: StateDictOptions | None, submodules: Any = None) -> StateDictOptions:
    if submodules:
        raise NotImplementedError("submodules: select the names in the whole state instead")
    options = options or StateDictOptions()
    if options.broadcast_from_rank0 and not options.full_state_dict:
        raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")
    return options


# ------------------------------------------------------------------------------------------- names


def _bare(model: Module, name: str) -> str:
    """Return the name of a parameter or buffer without the names that wrappers put before those of their modules."""
    owner: Any = model
    kept = []
    for part in name.split("."):
        if not any(isinstance(owner, kind) and part == own for kind, own in _WRAPPERS.items()):
            kept.append(part)
        owner = getattr(owner, part, None)
    return ".".join(kept)


def _names(model: Module) -> dict[Tensor, str]:
    return {p: _bare(model, name) for name, p in model.named_parameters()}


def _told(state: dict[str, Any], options: StateDictOptions) -> dict[str, Any]:
    """Return the state on the device and the ranks that the options name."""
    if not options.cpu_offload:
        return state
    if options.full_state_dict and is_initialized() and get_rank():
        return {}
    return tree_map_only(Tensor, lambda t: t.cpu(), state)


def _received(state: dict[str, Any], options: StateDictOptions) -> dict[str, Any]:
    """Return the state to take over: rank 0's if the options say so."""
    if not options.broadcast_from_rank0:
        return state
    held = [state]
    broadcast_object_list(held, src=0)
    return held[0]


# ------------------------------------------------------------------------------------------- modules


def get_model_state_dict(
    model: Module, *, submodules: Any = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """Return the module's state dict by the names of the bare module. NotImplementedError for `submodules`."""
    options = _checked(options, submodules)
    state = {_bare(model, name): value for name, value in model.state_dict().items()}
    if options.ignore_frozen_params:
        for p, name in _names(model).items():
            if not p.requires_grad:
                del state[name]
    return _told(state, options)


def set_model_state_dict(
    model: Module, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> _IncompatibleKeys:
    """Load what `get_model_state_dict` returned; returns the names that are missing and unexpected."""
    options = _checked(options)
    given = _received(model_state_dict, options)
    own = {_bare(model, name): name for name in model.state_dict()}
    named = {own.get(name, name): value for name, value in given.items()}
    return model.load_state_dict(named, strict=options.strict)


# ------------------------------------------------------------------------------------------- optimisers


def _listed(optimizers: Optimizers) -> list[Optimizer]:
    return [optimizers] if isinstance(optimizers, Optimizer) else list(optimizers)


def _some(optimizers: Optimizers) -> list[Optimizer]:
    """Return a list of the optimisers; RuntimeError if there are none."""
    listed = _listed(optimizers)
    if not listed:
        raise RuntimeError("Optimizers are not passed in but optim_only is set to True.")
    return listed


def _begin(optimizer: Optimizer) -> None:
    """Make the states of an optimiser that has not stepped yet, by a step that moves nothing."""
    groups = optimizer.param_groups
    params = [p for group in groups for p in group["params"] if p.requires_grad]
    if optimizer.state or any(p.grad is not None for p in params):
        return
    rates = [group["lr"] for group in groups]
    for p in params:
        p.grad = p.detach().new_zeros(p.shape)
    for group in groups:
        group["lr"] = group["lr"] * 0
    optimizer.step()
    for group, rate in zip(groups, rates, strict=True):
        group["lr"] = rate
    optimizer.zero_grad(set_to_none=True)


def get_optimizer_state_dict(
    model: Module,
    optimizers: Optimizers,
    *,
    submodules: Any = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:
    """Return the optimisers' states in one dict, by parameters' names. An optimiser without a state steps once, with a
    learning rate of 0. KeyError for parameters that are not the module's.
    """
    options, names = _checked(options, submodules), _names(model)
    state: dict[str, Any] = {}
    groups: list[dict[str, Any]] = []
    for optimizer in _some(optimizers):
        _begin(optimizer)
        order = [names[p] for group in optimizer.param_groups for p in group["params"]]
        found = optimizer.state_dict()
        state |= {order[at]: held for at, held in found["state"].items()}
        groups += [g | {"params": [order[at] for at in g["params"]]} for g in found["param_groups"]]
    made = {"state": state, "param_groups": groups}
    return _told(_flat(made) if options.flatten_optimizer_state_dict else made, options)


def _flat(found: dict[str, Any]) -> dict[str, Any]:
    flat = {f"state.{n}.{k}": v for n, held in found["state"].items() for k, v in held.items()}
    for group in found["param_groups"]:
        settings = {k: v for k, v in group.items() if k != "params"}
        flat |= {f"param_groups.{n}.{k}": v for n in group["params"] for k, v in settings.items()}
    return flat


def _part(flat: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Return the values right below `prefix`, by the rest of their names."""
    rest = {k[len(prefix) :]: v for k, v in flat.items() if k.startswith(prefix)}
    return {k: v for k, v in rest.items() if "." not in k}


def _unflat(flat: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return a state with a group for each name that the flat one has; names of one group have the same settings."""
    held = {name: _part(flat, f"state.{name}.") for name in names}
    groups = [_part(flat, f"param_groups.{name}.") | {"params": [name]} for name in held]
    return {
        "state": {name: values for name, values in held.items() if values},
        "param_groups": groups,
    }


def set_optimizer_state_dict(
    model: Module,
    optimizers: Optimizers,
    optim_state_dict: dict[str, Any],
    *,
    options: StateDictOptions | None = None,
) -> None:
    """Load what `get_optimizer_state_dict` returned. RuntimeError for a parameter without a state, if `strict`."""
    options, names = _checked(options), _names(model)
    given = _received(optim_state_dict, options)
    if options.flatten_optimizer_state_dict:
        given = _unflat(given, names.values())
    for optimizer in _some(optimizers):
        optimizer.load_state_dict(_numbered(optimizer, given, names, options.strict))


def _numbered(
    optimizer: Optimizer, given: dict[str, Any], names: dict[Tensor, str], strict: bool
) -> dict[str, Any]:
    """Return the part of a state that is an optimiser's, by its parameters' numbers as its own state dict is."""
    state: dict[int, Any] = {}
    groups = []
    at = 0
    for own in optimizer.param_groups:
        order = [names[p] for p in own["params"]]
        found = next((g for g in given["param_groups"] if {*g["params"]} & {*order}), own)
        groups.append({**found, "params": [*range(at, at + len(order))]})
        for p, name in zip(own["params"], order, strict=True):
            if name in given["state"]:
                state[at] = given["state"][name]
            elif strict and p.requires_grad and given["state"]:
                raise RuntimeError(
                    f"Missing optimizer state for parameter '{name}' in checkpoint. The parameter requires gradients but has no saved optimizer "
                    "state. To load anyway, use StateDictOptions(strict=False)."
                )
            at += 1
    return {"state": state, "param_groups": groups}


# ------------------------------------------------------------------------------------------- both


def get_state_dict(
    model: Module,
    optimizers: Optimizers,
    *,
    submodules: Any = None,
    options: StateDictOptions | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return `get_model_state_dict` and `get_optimizer_state_dict`; the latter is empty without optimisers."""
    listed = _listed(optimizers)
    found = get_model_state_dict(model, submodules=submodules, options=options)
    return found, get_optimizer_state_dict(model, listed, options=options) if listed else {}


def set_state_dict(
    model: Module,
    optimizers: Optimizers,
    *,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
    options: StateDictOptions | None = None,
) -> _IncompatibleKeys:
    """Load what `get_state_dict` returned; returns the module's names that are missing and unexpected."""
    listed = _listed(optimizers)
    if listed:
        set_optimizer_state_dict(model, listed, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)
