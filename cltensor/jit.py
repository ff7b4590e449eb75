"""`cltensor.jit`: TorchScript's interface. Functions stay Python: fusion is always on, and `capture` records launches.

Decorators and annotations for the compiler are accepted and have no effect; reading or writing its files raises.
"""

from __future__ import annotations

import contextlib
import functools
import typing
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, Final, NoReturn

from .nn.modules.module import Module
from .reexport import absent, expose

__all__ = [
    "Attribute",
    "Error",
    "Final",
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptModule",
    "annotate",
    "export",
    "freeze",
    "fuser",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "optimize_for_inference",
    "optimized_execution",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "set_fusion_strategy",
    "trace",
    "trace_module",
    "unused",
    "wait",
]

_isinstance = isinstance
_WHY = "there is no TorchScript, functions run as they are"
(ScriptFunction,) = absent(__name__, "ScriptFunction", _WHY)


class Error(Exception):
    """torch's error for failures in compiled code; never raised here."""


class Attribute(typing.NamedTuple):
    """A value for an attribute of a script module, with its type."""

    value: Any
    type: Any


class ScriptModule(Module):
    """Base of modules whose methods torch would compile; here they run as Python. `script` does not make them."""


RecursiveScriptModule = ScriptModule


def script(obj: Any, *args: Any, **options: Any) -> Any:
    """Return a function, class or module as it is."""
    return obj


def trace(func: Any = None, example_inputs: Any = None, *args: Any, **options: Any) -> Any:
    """Run a function or module on the example, as torch does, and return it as it is.

    Unlike torch's, the result still follows branches: nothing is recorded.
    """
    if example_inputs is None:
        example_inputs = options.get("example_kwarg_inputs") or ()
    if _isinstance(example_inputs, dict):
        func(**example_inputs)
    else:
        func(*(example_inputs if _isinstance(example_inputs, tuple | list) else (example_inputs,)))
    return func


def trace_module(mod: Any, inputs: dict[str, Any], *args: Any, **options: Any) -> Any:
    """Run methods of a module on the examples named for them and return the module."""
    for name, example in inputs.items():
        trace(getattr(mod, name), example)
    return mod


def _same(fn: Any) -> Any:
    """Return a function as it is."""
    return fn


export = interface = script_if_tracing = script_method = _same

_overload = _overload_method = _script_if_tracing = _same


class TracerWarning(Warning):
    """A warning category that programs silence; nothing here issues such warnings."""


def ignore(drop: Any = False, **options: Any) -> Any:
    """Return a function as it is; a decorator with or without arguments."""
    return drop if callable(drop) else _same


def unused(fn: Callable) -> Callable:
    """Return the function as it is: it would raise only in compiled code, which does not exist here."""
    return fn


def freeze(mod: Any, *args: Any, **options: Any) -> Any:
    """Return a module as it is; RuntimeError while it trains."""
    if getattr(mod, "training", False):
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module before freezing."
        )
    return mod


def optimize_for_inference(mod: Any, other_methods: Any = None) -> Any:
    """Return a module in eval mode as it is."""
    return freeze(mod)


def annotate(the_type: Any, the_value: Any) -> Any:
    """Return the value."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Do what Python's isinstance does; a parametrised type such as `List[int]` counts as its origin, `list`."""
    targets = target_type if _isinstance(target_type, tuple) else (target_type,)
    return _isinstance(obj, tuple(getattr(t, "__origin__", t) for t in targets))


def is_scripting() -> bool:
    """Return False."""
    return False


def is_tracing() -> bool:
    """Return False."""
    return False


@contextlib.contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """Do nothing: the call is accepted."""
    yield


fuser = functools.partial(optimized_execution)


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Keep a strategy for TorchScript's fuser, which there is none of; return the one kept before."""
    from ._C import _jit_set_fusion_strategy

    return _jit_set_fusion_strategy(strategy)


def wait(future: Callable[[], Any]) -> Any:
    """Return the value of a call made by `fork`."""
    return future()


def fork(func: Callable, *args: Any, **kwargs: Any) -> Callable[[], Any]:
    """Call a function at once; `wait` returns its value."""
    value = func(*args, **kwargs)
    return lambda: value


def _get_trace_graph(
    f: Any, args: Any = (), kwargs: Any = None, *rest: Any, **options: Any
) -> NoReturn:
    """NotImplementedError: no graph is recorded."""
    raise NotImplementedError(f"jit._get_trace_graph: {_WHY}")


def _no_files(what: str) -> NoReturn:
    raise NotImplementedError(
        f"jit.{what}: TorchScript archives are not there; save a module's state_dict() instead"
    )


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """NotImplementedError: TorchScript archives are not there."""
    _no_files("save")


def load(f: Any, map_location: Any = None, _extra_files: Any = None) -> Any:
    """NotImplementedError: TorchScript archives are not there."""
    _no_files("load")


# BroadcastingList: TorchScript's list for which one number may be given. `annotations` also has the names of `typing`.
_annotations = ModuleType(f"{__name__}.annotations", "Names for annotations.")
vars(_annotations).update({name: getattr(typing, name) for name in typing.__all__})
for _name in ("BroadcastingList1", "BroadcastingList2", "BroadcastingList3"):
    setattr(_annotations, _name, list)
expose(
    globals(), {"annotations": _annotations, "_script": "RecursiveScriptModule ScriptModule script"}
)
