"""torch's deprecated argument orders of fused sums, with numbers between the tensors.

`add_(alpha, x)`, `addcmul(input, value, a, b)`, `addmm(beta, input, alpha, a, b)`.

Reorders arguments, with torch's warning, and converts numbers to Python's; the functions themselves do the computing.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import Warned, caller_level
from .core import Tensor, is_tensor
from .numpy_names import answered
from .row import FUNCTIONS, METHODS
from .values import number

_warned: list[str] = []


def _warn(name: str, numbers: Sequence[str]) -> None:
    if Warned.always or not _warned:  # once in a program, as torch does
        _warned.append(name)
        warnings.warn(
            f"This overload of {name} is deprecated: pass {' and '.join(numbers)} by name",
            UserWarning,
            stacklevel=caller_level(),
        )


def scaled(name: str, alpha: Any, later: Sequence[Any]) -> tuple[Tensor, Any]:
    """Read what follows the first operand of `name(input, alpha, other)`: return `other` and `alpha`, or raise TypeError."""
    if len(later) != 1 or (is_tensor(alpha) and alpha.ndim):
        raise TypeError(f"{name}() takes 2 positional arguments but {len(later) + 2} were given")
    if is_tensor(alpha):
        alpha = alpha.item()
    _warn(name, ("alpha",))
    return later[0], alpha


def _accepting(fn: Callable, name: str, method: bool, numbers: Sequence[str]) -> Callable:
    """Wrap a function of three tensors so that it accepts its numbers between them, and 0-dim tensors as numbers."""

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        for key in numbers if kwargs else ():
            if key in kwargs:
                kwargs[key] = number(name, key, kwargs[key])
        if len(args) < 4 or not is_tensor(args[-1]):
            return fn(*args, **kwargs)
        tensors = [a for a in args if is_tensor(a)]
        given = [a for a in args if not is_tensor(a)]
        if len(tensors) != 3 or len(given) > len(numbers):
            return fn(*args, **kwargs)
        _warn(name, numbers)
        return fn(*tensors, **dict(zip(numbers, given, strict=False)), **kwargs)

    return answered(call, name, method)


def _accept(names: str, numbers: Sequence[str]) -> None:
    for name in names.split():
        for table in (FUNCTIONS, METHODS):
            if name in table:
                table[name] = _accepting(table[name], name, table is METHODS, numbers)


def install() -> None:
    """Wrap the exported functions and methods so that they accept the old forms."""
    _accept("addcmul addcdiv addcmul_ addcdiv_", ("value",))
    _accept(
        "addmm addmv addr addbmm baddbmm addmm_ addmv_ addr_ addbmm_ baddbmm_", ("beta", "alpha")
    )
