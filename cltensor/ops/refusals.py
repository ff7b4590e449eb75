"""torch's errors for dtypes that a function does not accept.

`no_kernel`: torch has no kernel for a dtype: `"<name>_cpu" not implemented for '<dtype>'`.
`refusal`: a pointwise op has no formula for the operands' dtype; mostly as above.
`raising`: a gradient that torch does not have.
`out_refusal`: the `out=` tensor's dtype is not the result's; most functions cast, those named here refuse.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..dtypes import C_NAMES, can_cast, dtype

_KERNELS = {
    "addcmul": "addcmul_cpu_out",
    "clamp_max": "minimum_cpu",
    "clamp_min": "maximum_cpu",
    "digamma": "digamma",
    "floor_divide": "div_floor_cpu",
    "gelu": "GeluKernelImpl",
    "gelu_tanh": "GeluKernelImpl",
    "lerp": "lerp_kernel_tensor",
    "lerp_number": "lerp_kernel_scalar",
    "ndtr": "erf_vml_cpu",
    "nan_to_num": "nan_to_num",
    "pow": "pow",
    "softshrink": "softshrink_check",
    **{
        name: f"{name}_vml_cpu"
        for name in ("ceil", "erf", "erfc", "erfinv", "floor", "i0", "lgamma", "round", "trunc")
    },
}
_BOOL = {
    "neg": "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` or "
    "`logical_not()` operator instead.",
    "relu": "Boolean inputs not supported for relu",
}
_COMPLEX = {
    "deg2rad": "deg2rad is not supported for complex tensors.",
    "fmax": "fmax not implemented for complex tensors.",
    "fmin": "fmin not implemented for complex tensors.",
    "heaviside": "heaviside is not yet implemented for complex tensors.",
    "isneginf": "isneginf does not support complex inputs.",
    "isposinf": "isposinf does not support complex inputs.",
    "maximum": "maximum not implemented for complex tensors.",
    "minimum": "minimum not implemented for complex tensors.",
    "rad2deg": "rad2deg is not supported for complex tensors.",
}
_COMPLEX_UNIMPLEMENTED = {
    "ceil": "ceil is not supported for complex inputs",
    "floor": "floor is not supported for complex inputs",
    "relu": "clamp is not supported for complex types",
    "sign": "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead.",
    "signbit": "signbit is not implemented for complex tensors.",
    "trunc": "trunc is not supported for complex inputs",
}


def no_kernel(kernel: str, dt: dtype) -> NotImplementedError:
    """Return the error for a dtype that a kernel of torch's, named in the text, is not made for."""
    return NotImplementedError(f"\"{kernel}\" not implemented for '{dt.scalar_name}'")


def need_float(kernel: str, dt: dtype, last: int = 2) -> None:
    """Raise `no_kernel` for a dtype that is not floating point; complex ones are accepted if `last` is 3."""
    if not 2 <= dt.category <= last:
        raise no_kernel(kernel, dt)


def raising(text: str) -> Callable:
    """Return a backward function that raises RuntimeError(text), for a node torch records but cannot differentiate."""

    def backward(ctx: Any, g: Any) -> Any:
        raise RuntimeError(text)

    return backward


def refusal(row: str, dt: dtype) -> Exception:
    """Return the error for a row that has no formula for the dtype."""
    name = row.removeprefix("special_")
    if dt.category == 0 and name in _BOOL:
        return RuntimeError(_BOOL[name])
    if dt.category == 3 and name in _COMPLEX:
        return RuntimeError(_COMPLEX[name])
    if dt.category == 3 and name in _COMPLEX_UNIMPLEMENTED:
        return NotImplementedError(_COMPLEX_UNIMPLEMENTED[name])
    kernel = _KERNELS.get(name, f"{name}_cpu")
    return no_kernel(kernel, dt)


# {d} and {o} are the C names of the dtypes of result and `out=`, {D} and {O} torch's names.
EXPECTED = "Expected out tensor to have dtype {d}, but got {o} instead"
_OUT = {
    **dict.fromkeys(
        (
            *("tril", "triu", "diag_embed", "renorm", "scatter", "scatter_add", "scatter_reduce"),
            *("index_add", "index_copy", "index_reduce", "isin", "msort", "triangular_solve"),
            *("avg_pool2d", "avg_pool3d", "linear", "lu_unpack", "qr", "slice_scatter", "svd"),
            *(
                f"linalg_{name}"
                for name in (
                    *(
                        "cholesky",
                        "cholesky_ex",
                        "cross",
                        "det",
                        "eigh",
                        "eigvalsh",
                        "inv",
                        "inv_ex",
                    ),
                    *(
                        "ldl_factor",
                        "ldl_factor_ex",
                        "ldl_solve",
                        "lu",
                        "lu_factor",
                        "lu_factor_ex",
                    ),
                    *("lu_solve", "qr", "slogdet", "solve", "solve_ex", "svd", "svdvals"),
                )
            ),
        ),
        EXPECTED,
    ),
    **dict.fromkeys(
        [
            "abs",
            "bitwise_not",
            "ceil",
            "conj_physical",
            "floor",
            "frac",
            "gelu",
            "hardshrink",
            "neg",
            "round",
            "sgn",
            "sign",
            "softplus",
            "softshrink",
            "trunc",
        ],
        "Found dtype {O} but expected {D}",
    ),
    "addbmm": "self and mat2 must have the same dtype, but got {O} and {D}",
    "log_sigmoid": "expected scalar type {D} but found {O}",
    "mv": "addmv input tensors must have the same dtype, but got {O}, {D}, and {D}",
    **dict.fromkeys(("dot", "vdot"), "result dtype {O} does not match input dtype {D}"),
    **dict.fromkeys(
        ("tensordot", "inner"),
        "tensordot: Expected the output tensor to have dtype {D}, but got an output tensor with dtype {O}",
    ),
    "histc": "torch.histogram: input tensor and hist tensor should have the same dtype, but got input {d} and hist {o}",
    "linalg_matrix_norm": "linalg.matrix_norm expected out tensor dtype {D} but got: {O}",
    "linalg_norm": "linalg.norm expected out tensor dtype {D} but got: {O}",
    "linalg_solve_triangular": "expected scalar type {D} but found {O}",
    "linalg_vecdot": "linalg.vecdot: Expected out of dtype{D} but found {O}",
    "masked_select": "masked_select(): self and result must have the same scalar type",
    "multi_dot": "multi_dot(): expected out tensor to have dtype {d} but got {o}",
    "multinomial": "multinomial expects {D} tensor out, got: {O}",
    "nan_to_num": "nan_to_num: dtype of out: {O} should be same as input: {D}",
    "narrow_copy": "Expected self.dtype() == output.dtype() to be true, but got false.  "
    "(Could this error message be improved?  If so, please report an enhancement request to PyTorch.)",
    "ormqr": "torch.ormqr: Expected input and result to have the same dtype, but input has dtype{D} and result has dtype {O}",
    "where": "Expected out type to be {D} but got {O}",
}
# Functions that cast only where `can_cast` allows it: torch's name of the function, and its word for the result.
_CASTS = {
    "cholesky": ("cholesky", "result"),
    "cholesky_inverse": ("cholesky_inverse", "result"),
    "cholesky_solve": ("cholesky_solve", "result"),
    "linalg_cond": ("linalg.cond", "result"),
    "linalg_eig": ("torch.linalg.eig", "eigenvalues"),
    "linalg_eig_vectors": ("torch.linalg.eig", "eigenvectors"),
    "linalg_eigvals": ("torch.linalg.eigvals", "eigenvalues"),
    "linalg_householder_product": ("torch.linalg.householder_product", "result"),
    "linalg_matrix_rank": ("torch.linalg.matrix_rank", "result"),
    "linalg_pinv": ("linalg.pinv", "result"),
    "linalg_tensorinv": ("tensorinv", "result"),
    "linalg_tensorsolve": ("tensorsolve", "result"),
}


def out_refusal(function: str, dt: dtype, out: dtype, usual: str = "") -> str:
    """Return the error text of a function for an `out=` of another dtype than the result's, "" if it casts.

    usual: the text for functions that are not named here.
    """
    if function in _CASTS:
        name, what = _CASTS[function]
        if can_cast(dt, out):
            return ""
        return (
            f"{name}: Expected {what} to be safely castable from {dt.scalar_name} dtype, "
            f"but got {what} with dtype {out.scalar_name}"
        )
    return _OUT.get(function, usual).format(
        d=C_NAMES[dt.name], o=C_NAMES[out.name], D=dt.scalar_name, O=out.scalar_name
    )
