"""`torch.autograd.forward_ad`: the names of forward-mode differentiation, which this library does
not have.

Owns the error that says so, and what to use in its place.
"""

from __future__ import annotations

from typing import Any

_TEXT = (
    "forward-mode AD is not available; torch.autograd.functional.jvp gives the same product by "
    "double backward"
)


class dual_level:
    """Refuse to open a level."""

    def __enter__(self) -> int:
        raise NotImplementedError(_TEXT)

    def __exit__(self, *exc: Any) -> None:
        pass


def make_dual(tensor: Any, tangent: Any, *, level: Any = None) -> Any:
    """Raise NotImplementedError."""
    raise NotImplementedError(_TEXT)


def unpack_dual(tensor: Any, *, level: Any = None) -> Any:
    """Raise NotImplementedError."""
    raise NotImplementedError(_TEXT)
