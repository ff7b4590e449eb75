"""`swap_in_optimizer_params_and_state`: an optimiser's steps on other parameters, with a state of theirs.

What is given is checked before anything is exchanged, with torch's errors. Knows no algorithm.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..tensor import Tensor
from .optimizer import Optimizer

__all__ = ["swap_in_optimizer_params_and_state"]

_NAME = "swap_in_optimizer_params_and_state"
_STYLE = f"{_NAME} requires optimizer.state_dict()-style "


def _checked_state(state: Any) -> dict[Any, Any]:
    if not isinstance(state, dict):
        raise RuntimeError(
            f"{_NAME} requires swapin_optim_state['state'] to be a dict mapping packed parameter ids to per-param state dicts, "
            f"got {type(state).__name__}."
        )
    if any(isinstance(key, Tensor) for key in state):
        raise RuntimeError(f"{_STYLE}state keyed by packed parameter ids.")
    if any(isinstance(key, int) and not isinstance(own, dict) for key, own in state.items()):
        raise RuntimeError(
            f"{_NAME} requires per-parameter optimizer state entries to be dictionaries."
        )
    return state


def _checked_group(index: int, live: dict[str, Any], group: Any) -> list[int]:
    """Return the numbers of a group's parameters; RuntimeError where it does not have the form of the live one."""
    if not isinstance(group, dict):
        raise RuntimeError(f"{_NAME} requires each optimizer param group to be a dictionary.")
    numbers = group.get("params")
    if not isinstance(numbers, list) or not all(isinstance(n, int) for n in numbers):
        raise RuntimeError(
            f"{_STYLE}param_groups[*]['params'] entries keyed by packed parameter ids."
        )
    if len(live["params"]) != len(numbers):
        raise RuntimeError(
            f"swapin_optim_state param group {index} has a different number of params than the live optimizer param group."
        )
    surplus, lacking = [k for k in group if k not in live], [k for k in live if k not in group]
    if surplus or lacking:
        raise RuntimeError(
            f"{_STYLE}param group keys to exactly match the live optimizer group keys for group {index}. "
            f"Keys only in swap-in: {surplus}. Keys only in live: {lacking}."
        )
    return numbers


def _checked(optimizer: Optimizer, given: Any) -> tuple[dict[Any, Any], list[dict[str, Any]]]:
    if not optimizer.state:
        raise RuntimeError(f"{_NAME} requires initialized optimizer state.")
    if not isinstance(given, dict):
        raise RuntimeError(f"{_NAME} requires a DCP-style optimizer state_dict.")
    state, groups = _checked_state(given.get("state")), given.get("param_groups")
    if not isinstance(groups, list):
        raise RuntimeError(
            f"{_NAME} requires swapin_optim_state['param_groups'] to be a list of param-group dicts, got {type(groups).__name__}."
        )
    if len(optimizer.param_groups) != len(groups):
        raise RuntimeError(
            "swapin_optim_state has a different number of parameter groups than the live optimizer."
        )
    return state, groups


def _ready(
    optimizer: Optimizer, parameters: dict[str, Tensor], given: dict[str, Any]
) -> tuple[list[dict[str, Any]], dict[Tensor, Any]]:
    """Return the groups and the state that the optimiser has meanwhile."""
    state, groups = _checked(optimizer, given)
    rest, used = list(parameters.values()), set[int]()
    made: list[dict[str, Any]] = []
    states: defaultdict[Tensor, Any] = defaultdict(dict)
    for index, (live, group) in enumerate(zip(optimizer.param_groups, groups, strict=True)):
        numbers = _checked_group(index, live, group)
        own, rest = rest[: len(numbers)], rest[len(numbers) :]
        if len(own) < len(numbers):
            raise RuntimeError(
                f"{_NAME} requires the explicit parameter state to match optimizer.param_groups ordering."
            )
        used.update(numbers)
        made.append({**group, "params": own})
        # Copies, so that entries that a step adds do not appear in the caller's dicts.
        for p, number in zip(own, numbers, strict=True):
            states[p] = dict(state.get(number, {}))
    if surplus := [key for key in state if key not in used]:
        raise RuntimeError(
            f"{_NAME} requires swapin_optim_state['state'] to be keyed only by packed parameter ids from "
            f"param_groups[*]['params']; got extra keys {surplus!r}."
        )
    return made, states


@contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer, swapin_parameters: dict[str, Tensor], swapin_optim_state: dict[str, Any]
) -> Iterator[None]:
    """Within a `with` block, let an optimiser have other parameters, settings and state; it gets its own back at the end.

    swapin_parameters: the parameters, in the order of the optimiser's. swapin_optim_state: what `state_dict()` returns;
    its tensors are changed in place, nothing else of it is. RuntimeError, in torch's words, where they do not fit.
    """
    groups, state = _ready(optimizer, swapin_parameters, swapin_optim_state)
    own = [dict(group) for group in optimizer.param_groups], optimizer.state

    def install(groups: list[dict[str, Any]], state: Any) -> None:
        for live, group in zip(optimizer.param_groups, groups, strict=True):
            live.clear()
            live.update(group)
        optimizer.state = state

    install(groups, state)
    try:
        yield
    finally:
        install(*own)
