"""The array API standard's namespace for tensors: its names and arguments, over this library's functions.

`tensor.__array_namespace__()` returns this module. Where torch's name and meaning are the standard's, the function is torch's.
"""

from __future__ import annotations

import math

from .. import dtypes
from ..interchange import from_dlpack
from ..ops.row import FUNCTIONS as _F
from . import fft, linalg
from .creation import arange, asarray, empty, eye, full, linspace, ones, tril, triu, zeros
from .elementwise import (
    atan2,
    hypot,
    logaddexp,
    logical_and,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    nextafter,
    sign,
)
from .kinds import __array_namespace_info__, astype, can_cast, finfo, iinfo, isdtype, result_type
from .linalg import matmul, matrix_transpose, tensordot, vecdot
from .manipulation import (
    broadcast_arrays,
    broadcast_to,
    clip,
    concat,
    diff,
    expand_dims,
    flip,
    meshgrid,
    permute_dims,
    repeat,
    reshape,
    roll,
    squeeze,
    stack,
    take,
    take_along_axis,
    tile,
    unstack,
    where,
)
from .reductions import (
    all,
    any,
    argmax,
    argmin,
    argsort,
    count_nonzero,
    cumulative_prod,
    cumulative_sum,
    max,
    mean,
    min,
    nonzero,
    prod,
    searchsorted,
    sort,
    std,
    sum,
    unique_all,
    unique_counts,
    unique_inverse,
    unique_values,
    var,
)

__array_api_version__ = "2024.12"
e, pi, inf, nan, newaxis = math.e, math.pi, math.inf, math.nan, None

_SAME = [
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atanh", "bitwise_and", "bitwise_left_shift", "bitwise_or",
    "bitwise_right_shift", "bitwise_xor", "ceil", "conj", "copysign", "cos", "cosh", "divide", "empty_like", "exp", "expm1",
    "floor", "floor_divide", "full_like", "greater", "greater_equal", "imag", "isfinite", "isinf", "isnan", "less",
    "less_equal", "log", "log10", "log1p", "log2", "logical_not", "moveaxis", "multiply", "negative", "not_equal",
    "ones_like", "positive", "pow", "real", "reciprocal", "remainder", "round", "signbit", "sin", "sinh", "sqrt", "square", "subtract", "tan", "tanh", "trunc", "zeros_like",
]  # fmt: skip
_DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "complex64",
    "complex128",
]  # fmt: skip

globals().update({name: _F[name] for name in _SAME})
globals().update({name: getattr(dtypes, name) for name in _DTYPES})
# Under this name torch has something else: whether all elements are equal.
bitwise_invert, equal = _F["bitwise_not"], _F["eq"]

__all__ = [  # noqa: PLE0604 - the tables hold names
    "__array_namespace_info__", "all", "any", "arange", "argmax", "argmin", "argsort", "asarray", "astype", "atan2", "bitwise_invert",
    "broadcast_arrays", "broadcast_to", "can_cast", "clip", "concat", "count_nonzero", "cumulative_prod", "cumulative_sum", "diff",
    "e", "empty", "equal", "expand_dims", "eye", "fft", "finfo", "flip", "from_dlpack", "full", "hypot", "iinfo", "inf", "isdtype", "linalg",
    "linspace", "logaddexp", "logical_and", "logical_or", "logical_xor", "matmul", "matrix_transpose", "max", "maximum", "mean",
    "meshgrid", "min", "minimum", "nextafter", "nan", "newaxis", "nonzero", "ones", "permute_dims", "pi",
    "prod", "repeat", "reshape", "result_type", "roll", "searchsorted", "sign", "sort", "squeeze", "stack", "std", "sum", "take",
    "take_along_axis", "tensordot", "tile", "tril", "triu", "unique_all", "unique_counts", "unique_inverse", "unique_values",
    "unstack", "var", "vecdot", "where", "zeros", *_SAME, *_DTYPES,
]  # fmt: skip
