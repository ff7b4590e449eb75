"""`LRScheduler`: counts epochs and writes learning rates into an optimiser's groups.

A schedule says what the rates are (`get_lr`); rates are plain Python numbers, or tensors that are filled in place.
"""

from __future__ import annotations

import functools
import types
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ...tensor import Tensor
from ..optimizer import Optimizer

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed form is "
    "used instead of the new chainable form, where available. Please open an issue if you are unable to replicate your use "
    "case: https://github.com/pytorch/pytorch/issues/new/choose."
)
_SEE = " See more details at https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
_OVERRIDDEN = (
    "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. Please, make sure to "
    "call `optimizer.step()` before `lr_scheduler.step()`." + _SEE
)
_WRONG_ORDER = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you should call them in "
    "the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure to do this will result in PyTorch "
    "skipping the first value of the learning rate schedule." + _SEE
)
_NO_INITIAL = "param 'initial_lr' is not specified in param_groups[{}] when resuming scheduler with last_epoch >= 0.\nThis typically happens when:\n1. You're trying to resume training from a checkpoint but haven't properly loaded the optimizer state\n2. You're using last_epoch >= 0 for a fresh training run (not recommended)"


def _own(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value


def values_of(optimizer: Optimizer, key: str) -> list[Any]:
    """Return the values of an option in all groups; tensors are copied."""
    return [_own(group[key]) for group in optimizer.param_groups]


def set_value(group: dict[str, Any], key: str, value: Any) -> None:
    """Set an option of a group; where it is a tensor, fill that in place."""
    if isinstance(group[key], Tensor):
        group[key].fill_(value.squeeze() if isinstance(value, Tensor) and value.ndim else value)
    else:
        group[key] = value


def for_groups(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """Return an argument's value for every group, given one for all or a list; ValueError for a list of the wrong
    length.
    """
    groups = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [_own(value) for _ in range(groups)]
    if len(value) != groups:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. "
            f"{name} has {len(value)} values, param_groups has {groups}."
        )
    return [_own(v) for v in value]


def check_optimizer(optimizer: Any) -> None:
    """Raise TypeError unless given an optimiser."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def function_state(fn: Any) -> dict[str, Any] | None:
    """Return what a schedule saves of a callable: the attributes of an object, None for a function."""
    return None if isinstance(fn, types.FunctionType) else fn.__dict__.copy()


class LRScheduler:
    """Base of all schedules: adjusts the rates of an optimiser's groups, from `last_epoch` on."""

    _get_lr_called_within_step: bool = False
    _is_initial: bool = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _own(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(_NO_INITIAL.format(i))
        self.base_lrs: list[Any] = values_of(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        _watch_steps(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        with self._flag("_is_initial"):
            self.step()

    @contextmanager
    def _flag(self, name: str) -> Iterator[None]:
        setattr(self, name, True)
        try:
            yield
        finally:
            setattr(self, name, False)

    def state_dict(self) -> dict[str, Any]:
        """Return everything but the optimiser."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load what `state_dict` returned."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Any]:
        """Return the rates last written."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """Compute the rates of this epoch from those of the last one."""
        raise NotImplementedError

    def _current(self) -> list[Any]:
        return values_of(self.optimizer, "lr")

    def _warn_outside_step(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                UserWarning,
                stacklevel=3,
            )

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch (or, deprecated, to a given one) and write its rates; call after `optimizer.step()`."""
        if self._step_count == 1:
            if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
                warnings.warn(_OVERRIDDEN, UserWarning, stacklevel=2)
            elif not getattr(self.optimizer, "_opt_called", False):
                warnings.warn(_WRONG_ORDER, UserWarning, stacklevel=2)
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        with self._flag("_get_lr_called_within_step"):
            closed: Callable | None = None
            if epoch is None:
                self.last_epoch += 1
            else:
                self.last_epoch = epoch
                closed = getattr(self, "_get_closed_form_lr", None)
            values = self.get_lr() if closed is None else closed()
        self._write(values)

    def _write(self, values: list[Any]) -> None:
        for group, lr in zip(self.optimizer.param_groups, values, strict=True):
            set_value(group, "lr", lr)
        self._last_lr = self._current()


def _watch_steps(optimizer: Any) -> None:
    """Make the optimiser remember that `step` was called, for the warning about the order of steps."""
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        return
    watched, function = weakref.ref(optimizer), optimizer.step.__func__

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        owner: Any = watched()
        owner._opt_called = True
        return function.__get__(owner, owner.__class__)(*args, **kwargs)

    wrapper._wrapped_by_lr_sched = True  # type: ignore[attr-defined]
    optimizer.step = wrapper


class FactorLR(LRScheduler):
    """Base of the schedules that multiply every rate by the same factor."""

    def _factor(self) -> float | None:
        """The factor of this epoch; None leaves the rates as they are."""
        raise NotImplementedError

    def get_lr(self) -> list[Any]:
        """Compute the rates of this epoch from those of the last one."""
        self._warn_outside_step()
        factor = self._factor()
        if factor is None:
            return self._current()
        return [group["lr"] * factor for group in self.optimizer.param_groups]


class ClosedFactorLR(FactorLR):
    """Base of the schedules that also know, in closed form, the factor from the initial rates to an epoch's."""

    def _closed_factor(self) -> float:
        raise NotImplementedError

    def _get_closed_form_lr(self) -> list[Any]:
        factor = self._closed_factor()
        return [base * factor for base in self.base_lrs]
