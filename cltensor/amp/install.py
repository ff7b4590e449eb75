"""How listed ops learn of autocast: users and the library have a function object each for such an op, of the same code.
Those that users find are put in place as the package is loaded (`separate`); the first use of autocast gives them other
code, which casts operands (`install`), and so does what lets functions ask `__torch_function__`, before they begin to
(`PREPARING` in subclasses.py).

Before that, and for every other op, autocast costs nothing. A function that a program has imported by name, or keeps as
a key, stays the same object. The library calls its own functions inside what is one op in torch, as `matrix_exp` or
`bilinear`, where nothing must be cast. Knows the namespaces, not the ops.
"""

from __future__ import annotations

import functools
import importlib
import sys
import weakref
from collections.abc import Callable, Mapping
from types import FunctionType, ModuleType
from typing import Any

from .. import dtypes
from ..dtypes import dtype
from ..interception import Ask, asking, for_good, twin
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

# Users' functions of the listed ops, with their policies by device type. The library's own is `__uncast__` of each.
_LISTED: dict[FunctionType, Mapping[str, str]] = {}


def separate(*places: tuple[str, Any]) -> None:
    """Put users' functions in place of the library's own for the listed ops; by default, wherever users find them.

    places: (name, module, class or table).
    """
    holders = places or _holders()
    shown: dict[int, FunctionType] = {}
    for name, by_device in policies().items():
        prefix, _, rest = name.partition("_")
        for place, holder in holders:
            local = rest if prefix == place and place in ("linalg", "fft") else name
            found = _names(holder).get(local)
            if isinstance(found, FunctionType) and id(found) not in shown:
                made = shown[id(found)] = twin(found)
                vars(made)["__uncast__"] = found
                _LISTED[made] = by_device
    for _, holder in holders:
        names = [name for name, value in _names(holder).items() if id(value) in shown]
        for name in names:
            made = shown[id(_names(holder)[name])]
            if isinstance(holder, dict):
                holder[name] = made
            else:
                setattr(holder, name, made)
        if isinstance(holder, ModuleType):  # once all names are there: a function may have two
            for name in names:
                _settle(_names(holder)[name], holder, name)


@functools.cache
def install() -> None:
    """Let users' functions of the listed ops cast their operands where autocast is on."""
    importlib.import_module("..fft", __package__)
    CASTING.append(lambda: STATE.active)
    with for_good():
        for shown, by_device in _LISTED.items():
            shown.__code__ = asking(shown, _casting(shown, by_device))
            # The function beneath has the signature, and looks for sparse operands.
            vars(shown).update(__wrapped__=vars(shown)["__uncast__"], __takes_sparse__=True)


def _names(holder: Any) -> Mapping[str, Any]:
    return holder if isinstance(holder, dict) else vars(holder)


def _settle(fn: Any, holder: ModuleType, name: str) -> None:
    """Let a function be pickled as `name` of `holder`, unless its own module has it under its own name."""
    if getattr(sys.modules.get(fn.__module__), fn.__qualname__, None) is not fn:
        fn.__module__, fn.__qualname__ = holder.__name__, name


def _holders() -> list[tuple[str, Any]]:
    """Return the loaded places where users find functions: modules, the Tensor class, and the tables of all ops."""
    root = sys.modules[__package__.partition(".")[0]]
    found: list[tuple[str, Any]] = [("", root), ("", Tensor), ("", FUNCTIONS), ("", METHODS)]
    for path in ("nn.functional", "linalg", "special", "ops.nn.recurrent"):
        found.append((path, importlib.import_module(f"{root.__name__}.{path}")))
    return found + [("", module) for module in EXPOSED]


def _casting(shown: FunctionType, by_device: Mapping[str, str]) -> Ask:
    """Return what users' function of an op does with its arguments."""
    fn = vars(shown)["__uncast__"]

    def cast_first(args: Any, kwargs: Any) -> Any:
        try:
            return _run(fn, by_device, args, kwargs) if STATE.active else fn(*args, **kwargs)
        except Exception:
            if not foreign(shown, args, kwargs, between=1):
                raise
        return shown(*args, **kwargs)

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
