"""`grouped_mm`: one matrix product per group, for groups of different sizes, such as the tokens of a mixture's experts.

Owns the checks and the division into groups; each group's product is `mm`. The offsets are read on the host.
"""

from __future__ import annotations

from ..dtypes import bfloat16, dtype, float16, float32, int32
from ..ops.row import FUNCTIONS
from ..tensor import Tensor

__all__ = ["grouped_mm"]


def grouped_mm(
    mat_a: Tensor, mat_b: Tensor, *, offs: Tensor | None = None, bias: Tensor | None = None,
    out_dtype: dtype | None = None,
) -> Tensor:  # fmt: skip
    """Multiply group by group: group i of a 2-D operand ends at `offs[i]`, group i of a 3-D operand is its item i.

    (M, K) with (G, K, N): rows of the first are divided; the result is (M, N). (G, M, K) with (K, N): columns of the
    second; (M, N). (M, K) with (K, N): both along K; (G, M, N). (G, M, K) with (G, K, N) is `bmm`. Operands are
    float32, bfloat16 or float16; `offs` (G) is int32 and ascending; results beyond the last offset are 0. RuntimeError,
    in torch's words, for what does not fit.
    """
    _check(mat_a, mat_b, offs, bias, out_dtype)
    if offs is None:
        return FUNCTIONS["bmm"](mat_a, mat_b)
    ends = offs.tolist()
    if mat_a.ndim == mat_b.ndim:
        parts = zip(_divided(mat_a, ends, 1), _divided(mat_b, ends, 0), strict=True)
        return FUNCTIONS["stack"]([a @ b for a, b in parts])
    if mat_a.ndim == 2:
        parts = zip(_divided(mat_a, ends, 0), mat_b.unbind(0), strict=True)
        return _joined([a @ b for a, b in parts], mat_a.shape[0], 0)
    parts = zip(mat_a.unbind(0), _divided(mat_b, ends, 1), strict=True)
    return _joined([a @ b for a, b in parts], mat_b.shape[1], 1)


def _divided(matrix: Tensor, ends: list[int], dim: int) -> list[Tensor]:
    """Return the groups of a matrix along `dim`; a group that would end before it begins is empty."""
    starts = [0, *ends]
    return [matrix.narrow(dim, i, max(j - i, 0)) for i, j in zip(starts, ends, strict=False)]


def _joined(parts: list[Tensor], size: int, dim: int) -> Tensor:
    """Concatenate the groups' results along `dim`, filled up with zeros to `size`."""
    rest = size - sum(part.shape[dim] for part in parts)
    if rest:
        shape = list(parts[0].shape)
        shape[dim] = rest
        parts = [*parts, parts[0].new_zeros(shape)]
    return FUNCTIONS["cat"](parts, dim)


def _check(
    a: Tensor, b: Tensor, offs: Tensor | None, bias: Tensor | None, out_dtype: dtype | None
) -> None:
    if a.dtype not in (float32, bfloat16, float16):
        raise RuntimeError(
            f"Expected mat_a to be Float32, BFloat16 or Float16 matrix, got {a.dtype.scalar_name}"
        )
    for name, matrix in (("mat_a", a), ("mat_b", b)):
        if matrix.ndim not in (2, 3):
            raise RuntimeError(f"{name} has to be 2 or 3d")
    flat = a.ndim == 2 or b.ndim == 2
    if flat != (offs is not None):
        raise RuntimeError(
            "Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d"
        )
    if a.shape[-1] != b.shape[-2]:
        raise RuntimeError("contraction dimension of mat_a and mat_b must match")
    if offs is not None:
        if offs.ndim != 1:
            raise RuntimeError("offs has to be 1D")
        if offs.dtype is not int32:
            raise RuntimeError("Offsets have to be int32")
        groups = [t.shape[0] for t in (a, b) if t.ndim == 3]
        if groups and groups[0] != offs.shape[0]:
            raise RuntimeError("matrix batch sizes have to match")
    elif a.shape[0] != b.shape[0]:
        raise RuntimeError("batched dimension has to match")
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if out_dtype is not None and out_dtype is not a.dtype:
        raise RuntimeError("Grouped gemm output dtype must match `mat_a` dtype")
