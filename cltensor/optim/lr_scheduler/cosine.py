"""Schedules along a cosine: once down (and up again), or with restarts."""

from __future__ import annotations

import math
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler


class CosineAnnealingLR(LRScheduler):
    """Lower the rate from its initial value to `eta_min` along half a period of a cosine, in `T_max` epochs, and raise
    it again after.
    """

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Compute the rates of this epoch from those of the last one."""
        self._warn_outside_step()
        epoch, top, least = self.last_epoch, self.T_max, self.eta_min
        groups = self.optimizer.param_groups
        if self._is_initial:
            return self._current()
        # First step after loading: there is no last rate to start from.
        if self._step_count == 1 and epoch > 0:
            height = 1 + math.cos(epoch * math.pi / top)
            return [least + (base - least) * height / 2 for base in self.base_lrs]
        # The last rate was `eta_min`: its distance from `eta_min`, which is scaled below, is 0.
        if (epoch - 1 - top) % (2 * top) == 0:
            height = 1 - math.cos(math.pi / top)
            return [
                g["lr"] + (base - least) * height / 2
                for base, g in zip(self.base_lrs, groups, strict=True)
            ]
        height = 1 + math.cos(math.pi * epoch / top)
        ratio = height / (1 + math.cos(math.pi * (epoch - 1) / top))
        return [ratio * (g["lr"] - least) + least for g in groups]

    def _get_closed_form_lr(self) -> list[Any]:
        least, height = self.eta_min, 1 + math.cos(math.pi * self.last_epoch / self.T_max)
        return [least + (base - least) * height / 2 for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Lower the rate from its initial value to `eta_min` along half a period of a cosine, and restart; `T_0` epochs
    first, then `T_mult` times as many.

    ValueError for arguments of the wrong type or sign.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(
                f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}"
            )
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Compute the rates of this epoch."""
        self._warn_outside_step()
        least, height = self.eta_min, 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return [least + (base - least) * height / 2 for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Go to the next epoch, or to a given one, which may be a fraction, and write its rates."""
        if epoch is None and self.last_epoch >= 0:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            epoch = 0 if epoch is None else epoch
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            self._jump(epoch)
        self.last_epoch = math.floor(epoch)
        with self._flag("_get_lr_called_within_step"):
            values = self.get_lr()
        self._write(values)

    def _jump(self, epoch: float) -> None:
        first, growth = self.T_0, self.T_mult
        if epoch < first:
            self.T_i, self.T_cur = first, epoch
        elif growth == 1:
            self.T_cur = epoch % first
        else:
            n = int(math.log(epoch / first * (growth - 1) + 1, growth))
            self.T_cur = epoch - first * (growth**n - 1) / (growth - 1)
            self.T_i = first * growth**n
