"""Schedules made of schedules: one after the other, or all at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler, set_value
from .plateau import ReduceLROnPlateau


class _Combined(LRScheduler):
    """Base of `SequentialLR` and `ChainedScheduler`: checks, saves and loads the schedules they are made of."""

    _schedulers: Sequence[LRScheduler]

    def _take(self, schedulers: Sequence[Any], optimizer: Optimizer) -> None:
        name = self.__class__.__name__
        for i, s in enumerate(schedulers):
            if not hasattr(s, "optimizer"):
                raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
            if isinstance(s, ReduceLROnPlateau):
                raise ValueError(
                    f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be specified "
                    f"when calling `step`, but got one at index {i} in the given schedulers sequence."
                )
            if optimizer != s.optimizer:
                raise ValueError(
                    f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                    f"{s.__class__.__name__} at index {i} has {s.optimizer}, which is different from "
                    f"{optimizer.__class__.__name__}."
                )
        self._schedulers = schedulers
        self.optimizer = optimizer

    def state_dict(self) -> dict[str, Any]:
        """Return everything but the optimiser, with the state of every part."""
        state = super().state_dict()
        parts = state.pop("_schedulers")  # they come last, as in torch
        state["_schedulers"] = [s.state_dict() for s in parts]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load what `state_dict` returned, and the parts' states in it."""
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "_schedulers"})
        for scheduler, saved in zip(self._schedulers, state_dict["_schedulers"], strict=False):
            scheduler.load_state_dict(saved)


class SequentialLR(_Combined):
    """Run one schedule after the other; each epoch in `milestones` starts the next.

    ValueError unless there is one milestone less than schedules.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: list[LRScheduler],
        milestones: list[int],
        last_epoch: int = -1,
    ) -> None:
        if len(schedulers) < 1:
            raise ValueError(
                f"{self.__class__.__name__} expects at least one scheduler, but got no scheduler."
            )
        self._take(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of milestone "
                f"points, but got number of schedulers {len(schedulers)} and the number of milestones to be equal to "
                f"{len(milestones)}"
            )
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        # Constructing the parts has stepped each of them once: undo that, and step only the first.
        for group in optimizer.param_groups:
            set_value(group, "lr", group["initial_lr"])
        self.recursive_undo()
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def recursive_undo(self, sched: Any = None) -> None:
        """Undo the first step of a schedule, or of all its parts."""
        target = self if sched is None else sched
        if hasattr(target, "_schedulers"):
            for part in target._schedulers:
                self.recursive_undo(part)
        elif hasattr(target, "last_epoch"):
            target.last_epoch -= 1

    def step(self) -> None:  # type: ignore[override]
        """Go to the next epoch of the schedule whose turn it is."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Combined):
    """Apply all schedules at each step, one after the other: each starts from the rates that the former has written."""

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        if len(schedulers) < 1:
            raise ValueError(
                f"{self.__class__.__name__} expects at least one scheduler to be chained, but got no scheduler."
            )
        self._take(schedulers, optimizer or schedulers[0].optimizer)
        self._last_lr = self._current()

    def step(self) -> None:  # type: ignore[override]
        """Step every schedule."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._current()
