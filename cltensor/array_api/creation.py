"""Creation functions, under the standard's arguments."""

from __future__ import annotations

from typing import Any

from .. import creation as make
from ..creation import asarray
from ..dtypes import int64
from ..ops.row import FUNCTIONS as F
from ..tensor import Tensor

__all__ = ["arange", "asarray", "empty", "eye", "full", "linspace", "ones", "tril", "triu", "zeros"]  # fmt: skip


def arange(
    start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None
) -> Tensor:
    """Return evenly spaced numbers of [start, stop), or [0, start); an empty array if the step leads away from stop."""
    start, stop = (0, start) if stop is None else (start, stop)
    if (stop - start) * step <= 0:
        kinds = (type(start), type(stop), type(step))
        return make.empty((0,), dtype=dtype if float in kinds or dtype else int64, device=device)
    return make.arange(start, stop, step, dtype=dtype, device=device)


def _filled(name: str) -> Any:
    function = getattr(make, name)

    def fill(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
        return function(_shape(shape), dtype=dtype, device=device)

    fill.__name__ = fill.__qualname__ = name
    fill.__doc__ = f"Return an array like torch's `{name}`."
    return fill


def _shape(shape: Any) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


empty, ones, zeros = map(_filled, ("empty", "ones", "zeros"))


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return an array of one value."""
    return make.full(_shape(shape), fill_value, dtype=dtype, device=device)


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None
) -> Tensor:
    """Return a matrix of ones on the k-th diagonal and zeros elsewhere."""
    made = make.zeros((n_rows, n_rows if n_cols is None else n_cols), dtype=dtype, device=device)
    if -made.shape[0] < k < made.shape[1]:
        made.diagonal(k).fill_(1)
    return made


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: bool = True
) -> Tensor:  # fmt: skip
    """Return `num` evenly spaced numbers from start to stop, which is left out without `endpoint`."""
    made = make.linspace(start, stop, num if endpoint else num + 1, dtype=dtype, device=device)
    return made if endpoint else made[:num]


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Return the elements on and below the k-th diagonal, zeros elsewhere."""
    return F["tril"](x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Return the elements on and above the k-th diagonal, zeros elsewhere."""
    return F["triu"](x, k)
