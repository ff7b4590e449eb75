"""Communication hooks of DistributedDataParallel, by name."""

from __future__ import annotations

import enum
from enum import Enum
from functools import partial
from typing import Any

from . import debugging_hooks, default_hooks
from . import default_hooks as default

__all__ = [
    "DDPCommHookType",
    "default",
    "debugging_hooks",
    "default_hooks",
    "register_ddp_comm_hook",
]


def _register(hook: Any, model: Any, state: Any) -> None:
    model.register_comm_hook(state, hook)


def _member(hook: Any) -> Any:
    """Return an Enum member's value.

    From Python 3.14 on a `partial` in a class body is a method unless wrapped in `enum.member`.
    """
    value = partial(_register, hook)
    member = getattr(enum, "member", None)  # from Python 3.11 on
    return member(value) if member else value


class DDPCommHookType(Enum):
    """Hooks to register by `register_ddp_comm_hook`."""

    ALLREDUCE = _member(default_hooks.allreduce_hook)
    FP16_COMPRESS = _member(default_hooks.fp16_compress_hook)
    BF16_COMPRESS = _member(default_hooks.bf16_compress_hook)


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Register one of the hooks."""
    comm_hook_type.value(model=model, state=state)
