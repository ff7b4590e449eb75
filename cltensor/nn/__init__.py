"""`cltensor.nn`: modules, the functions of networks, parameters and buffers.

Module classes are loaded when the first of them is asked for, so that a program without networks starts sooner.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from . import functional, parameter
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

if TYPE_CHECKING:
    from . import attention, common_types, grad, init, modules, parallel, utils
    from .modules import *
    from .parallel import DataParallel

_HERE = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "attention",
    "factory_kwargs",
    "functional",
    "grad",
    "init",
    "modules",
    "parallel",
    "parameter",
    "utils",
]


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """Return the keywords `device`, `dtype` and `memory_format` of a layer's, also those given as `factory_kwargs`.

    TypeError for other keywords, and for one that is given twice.
    """
    if kwargs is None:
        return {}
    simple = {"device", "dtype", "memory_format"}
    if unexpected := set(kwargs) - simple - {"factory_kwargs"}:
        raise TypeError(f"unexpected kwargs {unexpected}")
    found = dict(kwargs.get("factory_kwargs", {}))
    for name in sorted(simple & set(kwargs)):
        if name in found:
            raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
        found[name] = kwargs[name]
    return found


def __getattr__(name: str) -> Any:
    if name in ("attention", "common_types", "grad", "init", "modules", "parallel", "utils"):
        return importlib.import_module(f"{__name__}.{name}")
    if name == "DataParallel":
        return importlib.import_module(f"{__name__}.parallel").DataParallel
    if name == "__all__" or not name.startswith("_"):
        classes = importlib.import_module(f"{__name__}.modules")
        if name == "__all__":
            return [*_HERE, *classes.__all__]
        if name in classes.__all__:
            value = globals()[name] = getattr(classes, name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
