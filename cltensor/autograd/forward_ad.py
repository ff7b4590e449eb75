"""`torch.autograd.forward_ad`: dual tensors, which carry a tangent along with their value.

Owns the names users see and their errors. How tangents are stored and propagated is in dual.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from . import dual
from .mode import FORWARD, GRAD, Mode

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]

# The level that `dual_level` opened; -1 if none is open.
_current_level = -1


def enter_dual_level() -> int:
    """Open the level at which tensors can be given tangents, and return its number.

    RuntimeError if a level is open already.
    """
    global _current_level
    if _current_level >= 0 or FORWARD.open:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _current_level = dual.enter().number
    return _current_level


def exit_dual_level(*, level: int | None = None) -> None:
    """Close the open level and drop its tangents. RuntimeError if none is open, or if `level` is another one."""
    global _current_level
    if (_current_level if level is None else level) != _current_level:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    if _current_level < 0:
        raise RuntimeError("Trying to exit a forward AD level but no level exists")
    dual.leave()
    _current_level -= 1


class dual_level(Mode):
    """Open a level of forward-mode differentiation for a block, or for each call of a decorated function.

    >>> import cltensor as torch
    >>> import cltensor.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     x = fwAD.make_dual(torch.tensor(3.0), torch.tensor(1.0))
    ...     fwAD.unpack_dual(x * x).tangent
    tensor(6.)
    """

    __slots__ = ()

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc: Any) -> None:
        exit_dual_level()


class UnpackedDualTensor(NamedTuple):
    """The value of a dual tensor, as a view of it without the tangent, and the tangent, None if it is not dual."""

    primal: Any
    tangent: Any


def _level(number: int, function: str) -> dual.Level:
    if number >= len(FORWARD.levels):
        raise RuntimeError(f"Invalid level given to {function}")
    return FORWARD.levels[number]


def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Any:
    """Return a view of `tensor` that has `tangent` as its tangent; a tangent of another layout is copied.

    ValueError for a dtype that is neither floating nor complex; RuntimeError if no level is open, the shapes differ, or
    `tensor` has a tangent already.
    """
    if level is None:
        level = _current_level
    if level < 0:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    for name, t in (("primal", tensor), ("tangent", tangent)):
        if t.dtype.category < 2:
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {t.dtype}")
    return pair(tensor, tangent, _level(level, "_make_dual"))


def pair(tensor: Any, tangent: Any, level: dual.Level) -> Any:
    """As `make_dual`, at the given level."""
    if dual.tangent(tensor, level) is not None:
        raise RuntimeError(
            f"Making a dual Tensor based on a Tensor that already has a forward gradient at the same level {level.number} is not supported."
        )
    made = _apart(tensor, level)
    dual.assign(made, level, tangent)
    return made


def _apart(t: Any, level: dual.Level) -> Any:
    """Return a view of `t` that has the tangents of the levels outside `level` alone."""
    with dual.below(level):
        made = t.view_as(t)
    made._root = dual.APART
    return made


def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """Return a tensor's value, as a view without the tangent, and its tangent."""
    if level is None:
        level = _current_level
    if level < 0:
        return UnpackedDualTensor(tensor, None)
    return parts(tensor, _level(level, "_fw_primal"))


def parts(tensor: Any, level: dual.Level) -> UnpackedDualTensor:
    """As `unpack_dual`, at the given level."""
    return UnpackedDualTensor(_apart(tensor, level), dual.tangent(tensor, level))


def _is_fwd_grad_enabled() -> bool:
    """Return whether ops of this thread propagate tangents."""
    return GRAD.levels is None


class _set_fwd_grad_enabled(Mode):
    """Switch the propagation of tangents in this thread on or off at once.

    As a context manager, restore the state at the end.
    """

    __slots__ = ("mode",)

    def __init__(self, mode: bool) -> None:
        self.prev = GRAD.levels
        self.mode = mode
        GRAD.levels = None if mode else ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: Any) -> None:
        GRAD.levels = self.prev

    def clone(self) -> _set_fwd_grad_enabled:
        return type(self)(self.mode)
