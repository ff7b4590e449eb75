"""The names of the package `functorch`, which became `torch.func`: each call warns, as torch's does.

`cltensor.as_torch` lends this module to programs that import functorch.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from .. import func
from . import make_functional as modules
from .make_functional import FunctionalModule, FunctionalModuleWithBuffers

_RENAMED = {
    "vmap": "torch.vmap",
    "make_functional": "torch.func.functional_call",
    "make_functional_with_buffers": "torch.func.functional_call",
    "combine_state_for_ensemble": "torch.func.stack_module_state",
}


def _warning(fn: Callable[..., Any], name: str) -> Callable[..., Any]:
    text = (
        "We've integrated functorch into PyTorch. As the final step of the "
        f"integration, `functorch.{name}` is deprecated as of PyTorch "
        "2.0 and will be deleted in a future version of PyTorch >= 2.3. "
        f"Please use `{_RENAMED.get(name, f'torch.func.{name}')}` instead; see the PyTorch 2.0 release notes "
        "and/or the `torch.func` migration guide for more details "
        "https://pytorch.org/docs/main/func.migrating.html"
    )

    @functools.wraps(fn)
    def called(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(text, FutureWarning, stacklevel=2)
        return fn(*args, **kwargs)

    return called


_FUNCTIONS = [
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "vjp",
    "vmap",
]
_MODULES = ["combine_state_for_ensemble", "make_functional", "make_functional_with_buffers"]
globals().update({name: _warning(getattr(func, name), name) for name in _FUNCTIONS})
globals().update({name: _warning(getattr(modules, name), name) for name in _MODULES})

__all__ = ["FunctionalModule", "FunctionalModuleWithBuffers", *_FUNCTIONS, *_MODULES]  # noqa: PLE0604 - both are lists of names
