"""Grad modes: whether ops record a graph, per thread.

Owns the thread-local flags and the context managers that set them (`no_grad`, `enable_grad`,
`set_grad_enabled`, `inference_mode`), which also decorate functions and generators. Knows nothing
of tensors or nodes.
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
import warnings
from collections.abc import Callable
from threading import get_ident
from typing import Any


class _Flags(threading.local):
    """Autograd's state of the current thread, read by every op.

    `enabled`: ops record nodes. `inference`: inside inference mode (then `enabled` is False).
    `pack`: the innermost pair of saved-tensor hooks, or None. `pack_off`: why such hooks are
    forbidden, or None. `task`: the backward pass running in this thread, or None. `levels`: the
    forward-mode levels visible to this thread, or None if it sees all open ones. `inner`: inside
    an op that records its result itself (`unrecorded`).
    """

    enabled: bool = True
    inference: bool = False
    pack: Any = None
    pack_off: str | None = None
    task: Any = None
    levels: Any = None
    inner: bool = False


GRAD = _Flags()
OFF: set[int] = set()  # the threads that may have turned `GRAD.enabled` off


def set_enabled(on: bool) -> None:
    """Set this thread's `GRAD.enabled`.

    While no thread is in `OFF`, ops need not read the flag, which takes five times as long, because it is the thread's.
    """
    GRAD.enabled = on
    if not on:
        OFF.add(get_ident())
    elif OFF:
        OFF.discard(get_ident())


class _Inference:
    """`used`: whether any thread has been in inference mode. Before that no new tensor asks for its thread's flag, which takes longer."""

    __slots__ = ("used",)

    def __init__(self) -> None:
        self.used = False


INFERENCE = _Inference()


class _Forward:
    """The open forward-mode levels (see dual.py), and `open`, whether there are any: the flag that every op tests."""

    __slots__ = ("levels", "open")

    def __init__(self) -> None:
        self.levels: tuple[Any, ...] = ()
        self.open = False


FORWARD = _Forward()


def is_grad_enabled() -> bool:
    """Return True if ops of this thread record a graph."""
    return GRAD.enabled


def is_inference_mode_enabled() -> bool:
    """Return True inside `inference_mode()`."""
    return GRAD.inference


def _wrap_generator(make: Callable[[], Any], func: Callable[..., Any]) -> Callable[..., Any]:
    """Return a generator function whose every step runs inside a new context; the consumer's mode is unaffected."""

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gen = func(*args, **kwargs)
        try:
            with make():
                response = gen.send(None)
            while True:
                try:
                    request = yield response
                except GeneratorExit:
                    with make():
                        gen.close()
                    raise
                except BaseException:
                    with make():
                        response = gen.throw(*sys.exc_info()[1:2])
                else:
                    with make():
                        response = gen.send(request)
        except StopIteration as stop:
            return stop.value

    return wrapper


class Mode:
    """A context manager that also decorates functions, generators and (with a warning) classes."""

    __slots__ = ("prev",)
    prev: Any  # the state to restore at the end of the block

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, *exc: Any) -> None:
        raise NotImplementedError

    def clone(self) -> Mode:
        return type(self)()

    def __call__(self, func: Any) -> Any:
        if inspect.isclass(func):
            warnings.warn(
                "Decorating classes is deprecated and will be disabled in "
                "future versions. You should only decorate functions or methods. "
                "To preserve the current behavior of class decoration, you can "
                "directly decorate the `__init__` method and nothing else.",
                FutureWarning,
                stacklevel=2,
            )
            made = func

            @functools.wraps(made, updated=())
            def build(*args: Any, **kwargs: Any) -> Any:
                with self.clone():
                    return made(*args, **kwargs)

            return build
        if inspect.isgeneratorfunction(func):
            return _wrap_generator(self.clone, func)
        clone = self.clone

        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with clone():
                return func(*args, **kwargs)

        return wrapper


class _Bare(Mode):
    """A mode without arguments, which can be used as a decorator without parentheses."""

    __slots__ = ()

    def __new__(cls, orig_func: Any = None) -> Any:
        self = object.__new__(cls)
        return self if orig_func is None else self(orig_func)

    def __exit__(self, *exc: Any) -> None:
        set_enabled(self.prev)


class no_grad(_Bare):
    """Record no graph inside the block or the decorated function."""

    __slots__ = ()

    def __enter__(self) -> None:
        self.prev = GRAD.enabled
        set_enabled(False)


class unrecorded(Mode):
    """As `no_grad`, but also without propagating tangents: for the inner steps of an op that records its result itself.

    Views are not marked inside either: a result that is a view of an intermediate tensor, which nothing else holds,
    counts as a tensor of its own.
    """

    __slots__ = ()

    def __enter__(self) -> None:
        self.prev = GRAD.enabled, GRAD.levels, GRAD.inner
        GRAD.levels, GRAD.inner = (), True
        set_enabled(False)

    def __exit__(self, *exc: Any) -> None:
        enabled, GRAD.levels, GRAD.inner = self.prev
        set_enabled(enabled)


class enable_grad(_Bare):
    """Record a graph inside the block or the decorated function, also within `no_grad()`."""

    __slots__ = ()

    def __enter__(self) -> None:
        self.prev = GRAD.enabled
        set_enabled(not GRAD.inference)


class set_grad_enabled(Mode):
    """Switch recording on or off at once; as a context manager, restore the state at the end."""

    __slots__ = ("mode",)

    def __init__(self, mode: bool) -> None:
        if type(mode) is not bool:
            raise TypeError(
                "set_grad_enabled(): argument 'enabled' (position 1) must be bool, not "
                f"{type(mode).__name__}"
            )
        self.prev = GRAD.enabled
        self.mode = mode
        set_enabled(mode and not GRAD.inference)

    def __call__(self, func: Any) -> Any:
        set_enabled(self.prev)
        return super().__call__(func)

    def __enter__(self) -> None:
        set_enabled(self.mode and not GRAD.inference)

    def __exit__(self, *exc: Any) -> None:
        set_enabled(self.prev)

    def clone(self) -> set_grad_enabled:
        return type(self)(self.mode)

    def __str__(self) -> str:
        return f"torch.set_grad_enabled(mode={self.mode})"


class inference_mode(Mode):
    """Record no graph and count no versions; tensors made inside may never take part in a graph."""

    __slots__ = ("mode",)

    def __new__(cls, mode: Any = True) -> Any:
        self = object.__new__(cls)
        if isinstance(mode, bool):
            return self
        self.mode = True
        return self(mode)

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode

    def __enter__(self) -> None:
        self.prev = (GRAD.enabled, GRAD.inference)
        GRAD.inference = self.mode
        set_enabled(not self.mode)
        INFERENCE.used = True

    def __exit__(self, *exc: Any) -> None:
        enabled, GRAD.inference = self.prev
        set_enabled(enabled)

    def clone(self) -> inference_mode:
        return type(self)(self.mode)


_multithreading = True


def is_multithreading_enabled() -> bool:
    """Return what `set_multithreading_enabled` was told; True by default."""
    return _multithreading


def is_view_replay_enabled() -> bool:
    """Return False: a view is re-derived from its base by strides wherever these describe it fully."""
    return False


class set_multithreading_enabled(Mode):
    """Has no effect, accepted for compatibility with torch: a backward pass always runs in the thread that
    called it.
    """

    __slots__ = ("mode",)

    def __init__(self, mode: bool) -> None:
        global _multithreading
        self.prev = _multithreading
        self.mode = mode
        _multithreading = mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: Any) -> None:
        global _multithreading
        _multithreading = self.prev

    def clone(self) -> set_multithreading_enabled:
        return type(self)(self.mode)
