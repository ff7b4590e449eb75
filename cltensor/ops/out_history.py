"""What `out=` does where an operand requires grad: most functions refuse, some give `out` the result's history, and
some give it a history without derivatives.

Tables of functions by name. Must not know how a result is written.
"""

from __future__ import annotations

from typing import Any

from ..autograd import record as graph
from .refusals import raising

# Functions that compute a result with its history, and copy it into `out`.
KEPT = {
    *("diff", "inner", "linalg_cond", "linalg_matrix_norm", "linalg_norm", "linalg_tensorinv", "linalg_tensorsolve"),
    *("nanquantile", "quantile", "special_ndtr", "tensordot", "lu"),
}  # fmt: skip
# Functions whose `out=` form torch records, though nothing can be differentiated through it.
_UNDERIVED = {
    *("alias_copy", "as_strided_copy", "conj_physical", "detach_copy", "diag_embed", "diagonal_copy", "expand_copy", "floor_divide"),
    *("heaviside", "histogram", "linalg_eigvals", "linalg_ldl_factor_ex", "linalg_ldl_solve", "log_softmax", "permute_copy"),
    *("select_copy", "slice_copy", "slice_scatter", "softmax", "squeeze_copy", "t_copy", "transpose_copy", "unfold_copy"),
    *("unsqueeze_copy", "view_as_complex_copy", "view_as_real_copy", "view_copy", "_chunk_cat"),
}  # fmt: skip
# The function that torch's text names, where it is the step by which another one writes its result.
_STEPS = {
    "float_power": "pow",
    "kron": "mul",
    "linalg_cholesky": "linalg_cholesky_ex",
    "linalg_det": "_linalg_det",
    "linalg_eigh": "_linalg_eigh",
    "linalg_eigvalsh": "_linalg_eigh",
    "linalg_inv": "linalg_inv_ex",
    "linalg_ldl_factor": "linalg_ldl_factor_ex",
    "linalg_lu_factor": "linalg_lu_factor_ex",
    "linalg_slogdet": "_linalg_slogdet",
    "linalg_solve": "_linalg_solve_ex",
    "linalg_solve_ex": "_linalg_solve_ex",
    "linalg_svd": "_linalg_svd",
    "linalg_svdvals": "_linalg_svd",
    "log_sigmoid": "log_sigmoid_forward",
    "msort": "sort",
    "multi_dot": "mm",
    "nanmean": "nansum",
    "outer": "mul",
    "qr": "linalg_qr",
    "square": "pow",
    "svd": "_linalg_svd",
}


def refusal(function: str) -> RuntimeError:
    """Return torch's error for an operand of `function` that requires grad."""
    said = _STEPS.get(function, function)
    said = f"aten::{said}" if said in _UNDERIVED else said
    return RuntimeError(
        f"{said}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad."
    )


def is_underived(function: str) -> bool:
    """Return whether `function` accepts operands that require grad, though `out` cannot be differentiated then."""
    return _STEPS.get(function, function) in _UNDERIVED


def record_underived(out: Any, function: str, inputs: tuple[Any, ...]) -> None:
    """Give `out`, into which `function` has written, a node that raises torch's RuntimeError in the backward pass."""
    said = _STEPS.get(function, function)
    graph.rebase(
        out,
        "NotImplemented",
        (out, *inputs),
        raising(f"derivative for aten::{said} is not implemented"),
    )
