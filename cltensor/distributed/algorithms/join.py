"""`Join`: processes with fewer inputs than others go on taking part until all are done.

Each iteration begins with a count of those that still have inputs; who has none does what the collectives of the others' iteration
need. Knows nothing of what joins; that says by its hooks.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, NamedTuple

from ...ops.row import FUNCTIONS
from ..collectives import all_reduce
from ..groups import get_rank
from ..work import Work

__all__ = ["Join", "JoinHook", "Joinable"]

_MANY = 1000  # iterations without inputs after which a process says so


class JoinHook:
    """What a process without inputs does: `main_hook` in every iteration of the others, `post_hook` when all are done."""

    def main_hook(self) -> None:
        """Do what the others' iteration needs of everybody."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """End: all processes are done, and this is, or is not, one of the last."""


class JoinConfig(NamedTuple):
    """How a Join treats something that joins."""

    enable: bool = False
    throw_on_early_termination: bool = False
    is_first_joinable: bool = False


class Joinable(ABC):
    """What can be joined: it calls `Join.notify_join_context(self)` before the collectives of an iteration."""

    @abstractmethod
    def __init__(self) -> None:
        super().__init__()
        self._join_config = JoinConfig()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return what a process without inputs does."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """The device of the counts."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The group of the counts."""


class Join:
    """A block in which processes may have different numbers of inputs.

    throw_on_early_termination: RuntimeError in all as soon as one has none. ValueError without joinables, or where their groups differ.
    """

    def __init__(
        self,
        joinables: list[Any],
        enable: bool = True,
        throw_on_early_termination: bool = False,
        **kwargs: Any,
    ) -> None:
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        self._enable, self._throw = enable, throw_on_early_termination
        self._hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        for i, joinable in enumerate(joinables):
            joinable._join_config = JoinConfig(enable, throw_on_early_termination, i == 0)
        self._group = joinables[0].join_process_group
        if any(joinable.join_process_group != self._group for joinable in joinables):
            raise ValueError("Using join context manager with multiple process groups")
        self._device = joinables[0].join_device
        self._rank = get_rank(self._group)

    def __enter__(self) -> None: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._enable or kind:
            return
        last, rounds = True, 0
        while self._still_at_work():
            if self._throw:
                all_reduce(FUNCTIONS["ones"]((1,), device=self._device), group=self._group)
                raise RuntimeError(f"Rank {self._rank} exhausted all inputs.")
            for hook in self._hooks:
                hook.main_hook()
            last, rounds = False, rounds + 1
            if rounds == _MANY:
                warnings.warn(
                    f"Detected uneven input skew of greater than {_MANY}. This means that rank {self._rank} has at least {_MANY} fewer inputs "
                    "than other currently-active ranks. This level of skew could lead to performance degradation during training.",
                    stacklevel=2,
                )
        for hook in self._hooks:
            hook.post_hook(last)

    def _still_at_work(self) -> bool:
        count = FUNCTIONS["zeros"]((1,), device=self._device)
        all_reduce(count, group=self._group)
        return bool(count.item())

    @staticmethod
    def notify_join_context(joinable: Any) -> Work | None:
        """Count this process among those with inputs; return the work of the count, None outside of a block."""
        if not hasattr(joinable, "_join_config"):
            raise AssertionError(
                f"Check that the {type(joinable)} constructor calls the ``Joinable`` constructor"
            )
        config = joinable._join_config
        if not config.is_first_joinable or not config.enable:
            return None
        group, place = joinable.join_process_group, joinable.join_device
        work = all_reduce(FUNCTIONS["ones"]((1,), device=place), group=group, async_op=True)
        if config.throw_on_early_termination:
            ended = FUNCTIONS["zeros"]((1,), device=place)
            all_reduce(ended, group=group)
            if ended.item():
                raise RuntimeError(
                    "Detected at least one rank that exhausted inputs. Throwing across all ranks."
                )
        return work
