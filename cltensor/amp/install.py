"""How listed ops learn of autocast: at its first use they are replaced, wherever users find them, by wrappers that cast
operands; so they are before functions begin to ask `__torch_function__` (`PREPARING` in subclasses.py).

Before that, and for every other op, autocast costs nothing. The function objects beneath stay unchanged
(interception.py, in contrast, exchanges a function's code): the library calls them by its own names inside what is one
op in torch, as `matrix_exp` or `bilinear`, where nothing must be cast. Knows the namespaces, not the ops.
"""

from __future__ import annotations

import functools
import importlib
import sys
import weakref
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from .. import dtypes
from ..dtypes import dtype
from ..ops.composite import CASTING
from ..ops.elsewhere import foreign
from ..ops.row import FUNCTIONS, METHODS
from ..reexport import EXPOSED
from ..tensor import Tensor
from .lists import BANNED, DTYPE, LOWER, RESULT, WIDEST, policies
from .state import STATE

_BANNED_TEXT = (
    "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\n"
    "Many models use a sigmoid layer right before the binary cross entropy layer.\n"
    "In this case, combine the two layers using torch.nn.functional.binary_cross_entropy_with_logits\n"
    "or torch.nn.BCEWithLogitsLoss.  binary_cross_entropy_with_logits and BCEWithLogits are\n"
    "safe to autocast."
)

# Wrapper of a listed op -> the op itself, which the library calls by its own name.
BENEATH: dict[Callable, Callable] = {}


@functools.cache
def install() -> None:
    """Replace the listed ops, once."""
    CASTING.append(lambda: STATE.active)
    holders = _holders()
    wrapped: dict[int, tuple[Callable, Callable]] = {}
    for name, by_device in policies().items():
        prefix, _, rest = name.partition("_")
        for place, holder in holders:
            local = rest if prefix == place and place in ("linalg", "fft") else name
            found = vars(holder).get(local) if not isinstance(holder, dict) else holder.get(local)
            if callable(found) and id(found) not in wrapped:
                wrapped[id(found)] = (found, _wrapper(found, by_device))
    BENEATH.update((new, found) for found, new in wrapped.values())
    for _, holder in holders:
        names = holder if isinstance(holder, dict) else dict(vars(holder))
        for name, value in list(names.items()):
            new = wrapped.get(id(value))
            if new is None:
                continue
            if isinstance(holder, dict):
                holder[name] = new[1]
            else:
                setattr(holder, name, new[1])
                if isinstance(holder, ModuleType):
                    _settle(new[1], holder, name)


def _settle(fn: Any, holder: ModuleType, name: str) -> None:
    """Let a wrapper be pickled as `name` of `holder`, unless its own module has it under its own name."""
    if getattr(sys.modules.get(fn.__module__), fn.__qualname__, None) is not fn:
        fn.__module__, fn.__qualname__ = holder.__name__, name


def _holders() -> list[tuple[str, Any]]:
    """Return the places where users find functions: modules, the Tensor class, and the tables of all ops."""
    root = sys.modules[__package__.partition(".")[0]]
    found: list[tuple[str, Any]] = [("", root), ("", Tensor), ("", FUNCTIONS), ("", METHODS)]
    for path in ("nn.functional", "linalg", "fft", "special", "ops.nn.recurrent"):
        found.append((path, importlib.import_module(f"{root.__name__}.{path}")))
    return found + [("", module) for module in EXPOSED]


def _wrapper(fn: Callable, by_device: Mapping[str, str]) -> Callable:
    @functools.wraps(fn)
    def cast_first(*args: Any, **kwargs: Any) -> Any:
        try:
            return _run(fn, by_device, args, kwargs) if STATE.active else fn(*args, **kwargs)
        except Exception:
            if not foreign(cast_first, args, kwargs):
                raise
        return cast_first(*args, **kwargs)

    vars(cast_first)["__uncast__"] = fn
    return cast_first


def _run(
    fn: Callable, by_device: Mapping[str, str], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    first = _first_tensor((*args, *kwargs.values()))
    place = None if first is None else "cpu" if first.device.type == "cpu" else "cuda"
    policy = by_device.get(place) if place is not None and STATE.enabled[place] else None
    if policy is None or kwargs.get("out") is not None:
        return fn(*args, **kwargs)
    assert place is not None
    if policy == BANNED:
        raise RuntimeError(_BANNED_TEXT)
    if policy == DTYPE:
        if _eligible(first, place) and kwargs.get("dtype") is None and not _names_dtype(args):
            kwargs = {**kwargs, "dtype": dtypes.float32}
    elif policy != RESULT:
        target = dtypes.float32
        if policy == LOWER:
            target = STATE.dtypes[place]
        elif policy == WIDEST:
            target = _widest((*args, *kwargs.values()), place, STATE.dtypes[place])
        args = tuple([_cast(a, place, target) for a in args])
        kwargs = {name: _cast(a, place, target) for name, a in kwargs.items()}
    STATE.active = False  # ops called inside this one are not cast
    try:
        made = fn(*args, **kwargs)
        return _cast(made, place, STATE.dtypes[place]) if policy == RESULT else made
    finally:
        STATE.active = any(STATE.enabled.values())


def _names_dtype(args: tuple[Any, ...]) -> bool:
    return any(isinstance(a, dtype) for a in args)


def _first_tensor(values: Any) -> Any:
    for value in values:
        if isinstance(value, Tensor):
            return value
        if isinstance(value, (list, tuple)):
            found = _first_tensor(value)
            if found is not None:
                return found
    return None


def _eligible(value: Any, place: str) -> bool:
    """Return whether autocast may cast a value: a floating tensor, not complex or float64, on the device type."""
    return (
        isinstance(value, Tensor)
        and value.dtype.is_floating_point
        and value.dtype is not dtypes.float64
        and (value.device.type == "cpu") == (place == "cpu")
    )


def _widest(values: Any, place: str, lower: dtype) -> dtype:
    for value in values:
        if isinstance(value, (list, tuple)):
            if _widest(value, place, lower) is dtypes.float32:
                return dtypes.float32
        elif _eligible(value, place) and value.dtype is dtypes.float32:
            return dtypes.float32
    return lower


def _cast(value: Any, place: str, target: dtype) -> Any:
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(_cast(v, place, target) for v in value)
    if not _eligible(value, place) or value.dtype is target:
        return value
    if STATE.cache and value.requires_grad and value.is_leaf and value.dtype is dtypes.float32:
        return _kept_cast(value, target)
    return value.to(target)


def _kept_cast(value: Tensor, target: dtype) -> Tensor:
    """Return a parameter's low-precision copy, which is made once and kept until autocast ends."""
    from ..autograd.mode import GRAD

    known = STATE.casts.get(id(value))
    if known is not None and known[0]() is value and known[1].dtype is target:
        return known[1]
    made = value.to(target)
    if GRAD.enabled:  # a copy made without history would cut the graph of a later use
        STATE.casts[id(value)] = (weakref.ref(value), made)
    return made
