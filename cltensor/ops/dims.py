"""The arguments of reductions: which operand, which dims, and torch's errors for what cannot be reduced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import layouts
from ..errors import class_name
from . import arguments, core
from .core import Tensor
from .operands import check_tensor
from .refusals import no_kernel

NO_DIM = "{}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument."


def refuse(input: Any, name: str) -> None:
    """Raise torch's TypeError for an operand that is no tensor."""
    if not isinstance(input, core.Registry.tensor):
        check_tensor(name, "input", 1, input)


def names_none(dim: Any) -> bool:
    """Return whether a `dim=` argument names no dim: None, or an empty tuple or list.

    Never compared with `==`, which NumPy's ints answer with an array.
    """
    return dim is None or (dim.__class__ is not int and isinstance(dim, tuple | list) and not dim)


def dims_of(name: str, dim: Any, ndim: int) -> tuple[int, ...]:
    """Wrap a `dim=` argument; None and an empty one mean every dim."""
    if dim is None:
        return tuple(range(ndim))
    one = dim[0] if dim.__class__ is tuple and len(dim) == 1 else dim
    if one.__class__ is int and 0 <= one < ndim <= 64:  # most calls
        return (one,)
    if dim.__class__ is not int and not isinstance(dim, tuple | list):
        if dim.__class__ is bool or not hasattr(dim, "__index__"):
            raise TypeError(
                f"{name}(): argument 'dim' must be tuple of ints, not {type(dim).__name__}"
            )
        dim = dim.__index__()
    if isinstance(dim, tuple | list):
        if not dim:
            return tuple(range(ndim))
        for position, d in enumerate(dim):
            if (d.__class__ is bool and not position) or not hasattr(d, "__index__"):
                raise TypeError(
                    f"{name}(): argument 'dim' failed to unpack the object at pos {position + 1} with error \"type must be tuple of ints,but got {type(d).__name__}\""
                )
        dim = tuple([d.__index__() for d in dim])
    return layouts.wrap_dims(dim, ndim)


def check_flag(name: str, argument: str, value: Any, position: int = 0) -> None:
    """Raise torch's TypeError unless the value is a bool: in `x.sum(0, 1)` the 1 is no second dim, but `keepdim`."""
    if value.__class__ is not bool:
        place = f" (position {position})" if position else ""
        raise TypeError(
            f"{name}(): argument '{argument}'{place} must be bool, not {class_name(value)}"
        )


def whole(name: str, argument: str, value: Any, position: int = 0) -> int:
    """Return an argument that has to be one int; TypeError otherwise, also for a bool."""
    if value.__class__ is int:
        return value
    if not arguments.is_whole(value):
        place = f" (position {position})" if position else ""
        raise TypeError(
            f"{name}(): argument '{argument}'{place} must be int, not {class_name(value)}"
        )
    return value.__index__()


def one_dim(name: str, dim: Any, ndim: int) -> int:
    """Wrap a `dim=` argument that has to be one dim."""
    return layouts.wrap_dim(whole(name, "dim", dim), ndim)


def nonempty(name: str, input: Tensor, dims: Sequence[int], given: Any = None) -> None:
    """Raise torch's IndexError for a reduction without identity over an empty dim; it names the dims as in `given`."""
    named = dims if given is None else given if isinstance(given, tuple | list) else (given,)
    for d, said in zip(dims, named or dims, strict=True):
        if input.shape[d] == 0:
            raise IndexError(f"{name}: Expected reduction dim {said} to have non-zero size.")


def one_or_all(name: str, dim: Any, ndim: int) -> tuple[int, ...]:
    """Wrap a `dim=` argument that is one dim, or None for all."""
    return layouts.wrap_dims(None if dim is None else whole(name, "dim", dim), ndim)


def no_complex(input: Tensor, kernel: str) -> None:
    """Raise torch's NotImplementedError for a complex operand."""
    if input.dtype.is_complex:
        raise no_kernel(kernel, input.dtype)
