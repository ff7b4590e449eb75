"""`cltensor.masked`: reductions and normalisations that leave out the elements where a mask is False.

Each function fills masked-out elements with the identity of its operation and calls the plain function. Knows no
kernel and no gradient; a mask broadcasts to the input, and None masks nothing out.
"""

from __future__ import annotations

import builtins
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

from .. import dtypes
from ..dtypes import dtype as DType
from ..memory_format import sparse_coo, sparse_csr
from ..nn import functional
from ..ops.linalg.table import LINALG
from ..ops.row import FUNCTIONS
from ..sparse.reduce import reduced
from ..tensor import Tensor

Dims = int | Sequence[int] | None

_REDUCTIONS = (
    "sum", "prod", "amax", "amin", "argmax", "argmin", "mean", "median", "norm", "var", "std", "logsumexp",
)  # fmt: skip
_SPARSE = (sparse_coo, sparse_csr)
_NORMALIZATIONS = ("softmax", "log_softmax", "softmin", "normalize", "cumsum", "cumprod")

# ------------------------------------------------------------------------------------------- masks and dims


def _input_mask(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Return the keyword `mask` as bools of the input's shape."""
    mask = kwargs.get("mask")
    if mask is None:
        raise ValueError("_input_mask requires explicit mask")
    if not mask._strided:
        mask = mask.to_dense()
    if mask.ndim > input.ndim:
        raise IndexError(
            "_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)"
        )
    return mask.expand(input.shape).to(dtypes.bool)


def _output_mask(op: Callable, input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Return where the result of `op(input, *args, **kwargs)` is defined: where not all elements were masked out."""
    if op.__name__ in _NORMALIZATIONS:
        return _input_mask(input, *args, **kwargs)
    if op.__name__ not in _REDUCTIONS:
        raise ValueError(
            f"_output_mask expected masked operation (got callable {op.__module__}.{op.__name__})"
        )
    if op.__name__ == "norm":
        args = args[1:]
    mask = _input_mask(input, *args, **kwargs)
    keepdim = builtins.bool(kwargs.get("keepdim", False))
    for d in reversed(_dims(args[0] if args else kwargs.get("dim"), input.ndim)):
        mask = mask.any(d, keepdim)
    return mask


def _combine_input_and_mask(op: Callable, input: Tensor, mask: Tensor | None, *args: Any) -> Tensor:
    """Replace masked-out elements by the identity of `op`."""
    if mask is None:
        return input
    return input.masked_fill(
        ~_input_mask(input, mask=mask), _ignored(op.__name__, input.dtype, *args)
    )


def _ignored(function: str, dt: DType, ord: Any = 2.0) -> Any:
    """Return the identity of a reduction over elements of a dtype. NotImplementedError if there is none."""
    if function in ("sum", "norm"):
        return math.inf if function == "norm" and ord == -math.inf else 0
    if function == "prod":
        return 1
    if function == "median":
        return math.nan
    low = function in ("amax", "argmax", "logsumexp", "logaddexp")
    if dt.is_floating_point or (dt.is_complex and function == "logsumexp"):
        return -math.inf if low else math.inf
    if dt.category == 1:
        limits = dtypes.iinfo(dt)
        return limits.min if low else limits.max
    raise NotImplementedError(f"identity of {function} on {dt} input")


def _dims(dim: Dims, ndim: int) -> tuple[int, ...]:
    """Return the dims, sorted and counted from the front; None and () are all of them, [] is none."""
    if dim is None or dim == ():
        return tuple(range(ndim))
    ndim = builtins.max(ndim, 1)
    found: list[int] = []
    for d in (dim,) if isinstance(dim, int) else dim:
        if d in found:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        if not -ndim <= d < ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {d})"
            )
        found.append(d % ndim)
    return tuple(sorted(found))


def _counts(input: Tensor, dim: Dims, mask: Tensor | None) -> Tensor:
    """Return how many elements are not masked out, with the reduced dims kept."""
    which = input.new_ones(input.shape, dtype=dtypes.bool) if mask is None else mask
    return which.sum(_dims(dim, input.ndim), True)


def _of_sparse(
    function: Callable, input: Tensor, dim: Dims, keepdim: bool | None, dtype: DType | None, mask: Tensor | None
) -> Tensor:  # fmt: skip
    """Reduce the entries of a sparse tensor that are not masked out; the result has the same layout."""
    name, rows = function.__name__, input.layout is sparse_csr
    kind = "sparse_csr" if rows else "sparse_coo"
    dims = _dims(dim, input.ndim)
    if mask is None and name != "sum":
        told = "amax" if name == "amin" and not rows else name  # torch's error says amax for amin
        raise ValueError(f"masked {told} expects explicit mask for {kind} tensor input")
    if rows and not keepdim:
        error = RuntimeError if name in ("sum", "prod") else AssertionError
        raise error("reduction operations on CSR tensors with keepdim=False is unsupported")
    wide = name in ("sum", "prod") and input.dtype.category < 2
    dtype = dtype or (dtypes.int64 if wide else input.dtype)
    nothing = 0 if name == "mean" else _ignored(name, input.dtype)
    return reduced(input, name, dims, builtins.bool(keepdim), dtype, mask, nothing)


# ------------------------------------------------------------------------------------------- reductions


def sum(
    input: Tensor, dim: Dims = None, *, keepdim: bool | None = False, dtype: DType | None = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Add the elements; 0 where all are masked out."""
    if input.layout in _SPARSE:
        return _of_sparse(sum, input, dim, keepdim, dtype, mask)
    value = _combine_input_and_mask(sum, input, mask)
    dtype = (dtypes.int64 if input.dtype.category < 2 else input.dtype) if dtype is None else dtype
    return value.sum(_dims(dim, input.ndim), builtins.bool(keepdim), dtype=dtype)


def prod(
    input: Tensor, dim: Dims = None, *, keepdim: bool | None = False, dtype: DType | None = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Multiply the elements; 1 where all are masked out."""
    if input.layout in _SPARSE:
        return _of_sparse(prod, input, dim, keepdim, dtype, mask)
    value = _combine_input_and_mask(prod, input, mask)
    value = value.to(
        (dtypes.int64 if input.dtype.category < 2 else input.dtype) if dtype is None else dtype
    )
    for d in reversed(_dims(dim, input.ndim)):
        value = value.prod(d, builtins.bool(keepdim))
    return value


def amax(
    input: Tensor, dim: Dims = None, *, keepdim: bool | None = False, dtype: DType | None = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Find the largest elements; the dtype's lowest value where all are masked out."""
    if input.layout in _SPARSE:
        return _of_sparse(amax, input, dim, keepdim, dtype, mask)
    value = _combine_input_and_mask(amax, input, mask)
    return value.amax(_dims(dim, input.ndim), builtins.bool(keepdim)).to(dtype or input.dtype)


def amin(
    input: Tensor, dim: Dims = None, *, keepdim: bool | None = False, dtype: DType | None = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Find the smallest elements; the dtype's highest value where all are masked out."""
    if input.layout in _SPARSE:
        return _of_sparse(amin, input, dim, keepdim, dtype, mask)
    value = _combine_input_and_mask(amin, input, mask)
    return value.amin(_dims(dim, input.ndim), builtins.bool(keepdim)).to(dtype or input.dtype)


def argmax(
    input: Tensor, dim: int | None = None, *, keepdim: bool | None = False, dtype: DType | None = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Find where the largest elements are; indices in `dtype`, by default the input's."""
    value = _combine_input_and_mask(argmax, input, mask)
    return value.argmax(dim, builtins.bool(keepdim)).to(dtype or input.dtype)


def argmin(
    input: Tensor, dim: int | None = None, *, keepdim: bool | None = False, dtype: DType | None = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Find where the smallest elements are; indices in `dtype`, by default the input's."""
    value = _combine_input_and_mask(argmin, input, mask)
    return value.argmin(dim, builtins.bool(keepdim)).to(dtype or input.dtype)


def mean(
    input: Tensor, dim: Dims = None, *, keepdim: bool | None = False, dtype: DType | None = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Average the elements; nan where all are masked out. ValueError for a dtype neither floating nor complex."""
    found = input.dtype if dtype is None else dtype
    if found.category < 2:
        raise ValueError(
            f"mean(): Could not infer output dtype. {'Input' if dtype is None else 'Optional'} dtype must be either a "
            f"floating point or complex dtype. Got: {found}"
        )
    if input.layout is sparse_coo:
        raise ValueError(
            f"masked mean expects strided or sparse_csr tensor (got {input.layout} tensor)"
        )
    if input.layout is sparse_csr:
        return _of_sparse(mean, input, dim, keepdim, dtype, mask)
    mask = None if mask is None else _input_mask(input, mask=mask)
    total = sum(input, dim, keepdim=keepdim, dtype=found, mask=mask)
    return total / _counts(input, dim, mask).reshape(total.shape)


def median(
    input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Find the lower medians along a dim; nan where all elements are masked out, which is a ValueError for integers."""
    floating = input.dtype.is_floating_point
    value = _combine_input_and_mask(median, input if floating else input.float(), mask)
    value = FUNCTIONS["nanmedian"](value, _dims(dim, input.ndim)[0], keepdim).values
    if floating:
        return value
    if value.isnan().any():
        raise ValueError(
            "masked median expects no fully masked out rows if dtype is not floating point"
        )
    return value.to(dtype or input.dtype)


def logsumexp(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Compute the logarithm of the sum of exponentials; -inf where all elements are masked out."""
    value = _combine_input_and_mask(logsumexp, input, mask)
    return value.logsumexp(_dims(dim, input.ndim), keepdim).to(dtype or input.dtype)


def norm(
    input: Tensor, ord: float | None = 2.0, dim: Dims = None, *, keepdim: bool | None = False, dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Compute vector norms of order `ord`."""
    value = _combine_input_and_mask(norm, input, mask, ord)
    dims, keep = _dims(dim, input.ndim), builtins.bool(keepdim)
    ord = 2.0 if ord is None else ord
    return LINALG["vector_norm"](value, ord, dims, keep, dtype=dtype or input.dtype)


def var(
    input: Tensor, dim: Dims = None, unbiased: bool | None = None, *, correction: float | None = None, keepdim: bool | None = False,
    dtype: DType | None = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Compute variances: divide by the count less `correction` (by default 1, or 0 if `unbiased` is False)."""
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    if correction is None:
        correction = 0.0 if unbiased is False else 1.0
    found = dtype or (input.dtype if input.dtype.category > 1 else dtypes.float32)
    working = found if found.category > 1 else dtypes.float32
    mask = None if mask is None else _input_mask(input, mask=mask)
    count = _counts(input, dim, mask)
    x = input - sum(input, dim, keepdim=True, dtype=found, mask=mask) / count
    total = sum(x * x.conj(), dim, keepdim=keepdim, dtype=working, mask=mask)
    count = count.reshape(total.shape)
    if correction:
        count = (count.to(working.to_real()) - correction).clamp_min(0)
    return (total / count).to(found)


def std(
    input: Tensor, dim: Dims = None, unbiased: bool | None = None, *, correction: float | None = None, keepdim: bool | None = False,
    dtype: DType | None = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Compute standard deviations: the roots of `var`."""
    return var(
        input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask
    ).sqrt()


# ------------------------------------------------------------------------------------------- of the input's shape


def cumsum(
    input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """Compute cumulative sums along a dim; masked-out elements count as 0."""
    value, dtype = _combine_input_and_mask(sum, input, mask), dtype or input.dtype
    return value.cumsum(_dims(dim, input.ndim)[0], dtype=dtype)


def cumprod(
    input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """Compute cumulative products along a dim; masked-out elements count as 1."""
    value, dtype = _combine_input_and_mask(prod, input, mask), dtype or input.dtype
    return value.cumprod(_dims(dim, input.ndim)[0], dtype=dtype)


def softmax(
    input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """Compute exponentials along a dim, divided by their sum; 0 for masked-out elements."""
    value, dtype = _combine_input_and_mask(amax, input, mask), dtype or input.dtype
    return functional.softmax(value, _dims(dim, input.ndim)[0], dtype=dtype)


def log_softmax(
    input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """Logarithm of `softmax`."""
    value, dtype = _combine_input_and_mask(amax, input, mask), dtype or input.dtype
    return functional.log_softmax(value, _dims(dim, input.ndim)[0], dtype=dtype)


def softmin(
    input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """`softmax` of the negated input."""
    value, dtype = _combine_input_and_mask(amin, input, mask), dtype or input.dtype
    return functional.softmin(value, _dims(dim, input.ndim)[0], dtype=dtype)


def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: DType | None = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Divide by the norm along a dim, or by eps where the norm is less."""
    size = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _combine_input_and_mask(sum, input, mask) / size.clamp_min(eps)


def logaddexp(
    input: Tensor, other: Tensor, *, dtype: DType | None = None, input_mask: Tensor | None = None, other_mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Compute the logarithm of the sum of two exponentials; masked-out ones count as 0."""
    x = _combine_input_and_mask(logaddexp, input, input_mask)
    y = _combine_input_and_mask(logaddexp, other, other_mask)
    return FUNCTIONS["logaddexp"](x, y).to(dtype or input.dtype)


_LATE = ("MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor")


def __getattr__(name: str) -> Any:
    if name in _LATE:  # see the module why it is not loaded with this one
        from . import maskedtensor

        return getattr(maskedtensor, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [*_LATE, *_REDUCTIONS, *_NORMALIZATIONS, "logaddexp"]  # noqa: PLE0604 - the tables hold names

# Programs also import these functions from torch's path `masked._ops`.
_ops = sys.modules[f"{__name__}._ops"] = sys.modules[__name__]
