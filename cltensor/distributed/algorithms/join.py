"""`Join`: processes with fewer inputs than others go on taking part in collectives until all are done.

Each iteration begins with a count of the processes that still have inputs; a process without inputs shadows the
collectives of the others' iteration. What it has to do for that is given by hooks; this module knows nothing of it.
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

_MANY = 1000  # iterations without inputs after which a process warns


class JoinHook:
    """Hooks of a process without inputs: `main_hook` runs in every iteration of the others, `post_hook` when all are
    done.
    """

    def main_hook(self) -> None:
        """Take part in the collectives of the others' iteration."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Finish, when all processes are done; `is_last_joiner`: this process was one of the last to have inputs."""


class JoinConfig(NamedTuple):
    """Settings of a Join for one of its joinables."""

    enable: bool = False
    throw_on_early_termination: bool = False
    is_first_joinable: bool = False


class Joinable(ABC):
    """Base of what can join: a subclass calls `Join.notify_join_context(self)` before the collectives of an iteration."""

    @abstractmethod
    def __init__(self) -> None:
        super().__init__()
        self._join_config = JoinConfig()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return the hooks for a process without inputs."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """The device of the counts."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The group of the counts."""


class Join:
    """A context in which processes may have different numbers of inputs.

    throw_on_early_termination: raise RuntimeError in all processes as soon as one has no more inputs. ValueError
    without joinables, or if their groups differ.
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
        """Count this process among those with inputs; return the work of that all_reduce, None outside a Join context."""
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
