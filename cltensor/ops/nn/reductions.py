"""The names of what becomes of each element's loss, their numbers, and the arguments that came before the names."""

from __future__ import annotations

import warnings

from ...errors import caller_level

_WAYS = ("none", "mean", "sum")
INVALID = "{} is not a valid value for reduction"


def get_enum(reduction: str) -> int:
    """Return a reduction's number: 0 none, 1 mean, 2 sum. ValueError for another name; the former name of "mean" warns."""
    if reduction == "elementwise_mean":
        warnings.warn(
            "reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.",
            stacklevel=caller_level(),
        )
        reduction = "mean"
    if reduction not in _WAYS:
        raise ValueError(INVALID.format(reduction))
    return _WAYS.index(reduction)


def legacy_get_string(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> str:
    """Return the reduction that the old arguments `size_average` and `reduce` stand for; by default with a warning."""
    average = True if size_average is None else size_average
    reduction = "none" if reduce is not None and not reduce else "mean" if average else "sum"
    if emit_warning:
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
            stacklevel=caller_level(),
        )
    return reduction


def legacy_get_enum(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> int:
    """Return the number of the reduction that the old arguments stand for."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))


def reduction_of(
    size_average: bool | None, reduce: bool | None, reduction: str, refusal: str = ""
) -> str:
    """Join the old arguments `size_average` and `reduce` with `reduction`.

    ValueError for another name, the former one of "mean" included if the text of the error is given as `refusal`.
    """
    if size_average is not None or reduce is not None:
        return legacy_get_string(size_average, reduce)
    if refusal and reduction not in _WAYS:
        raise ValueError(refusal.format(reduction))
    return _WAYS[get_enum(reduction)]
