"""Sparse tensors: coordinates (COO) and matrices compressed by rows or columns (CSR, CSC), under torch's names.

`pattern` knows where entries are, `tensor` has the object and its gradients, and `table` and `dispatch` route calls to
the functions of the other files. Dense operations do not depend on this package.
"""

from __future__ import annotations

from typing import Any

from ..ops.elsewhere import HANDLERS
from ..ops.row import FUNCTIONS as F
from ..ops.row import METHODS
from ..tensor import Tensor
from . import alike, arithmetic, convert, pattern, products, shape  # noqa: F401 - to fill the table
from . import tensor as objects
from .creation import check_sparse_tensor_invariants
from .products import sampled_addmm
from .reduce import log_softmax, softmax, spdiags, sum
from .tensor import SparseTensor
from .typed import TYPES

__all__ = [
    "SparseTensor",
    "addmm",
    "as_sparse_gradcheck",
    "check_sparse_tensor_invariants",
    "log_softmax",
    "mm",
    "sampled_addmm",
    "softmax",
    "spdiags",
    "spsolve",
    "sum",
]

globals().update(TYPES)


def mm(mat1: Any, mat2: Any, reduce: str | None = None) -> Any:
    """Multiply matrices of which at least one is sparse; gradients flow to both, to a sparse one's entries only.

    reduce: how the products of a CSR matrix's row, its entries times rows of the dense `mat2`, become one row: "sum",
    "mean", "amax" or "amin".
    """
    if reduce is not None:
        return products.reduced(mat1, mat2, reduce)
    if not isinstance(mat1, SparseTensor) and not isinstance(mat2, SparseTensor):
        return F["mm"](mat1, mat2)
    return products.masked_mm(mat1, mat2)


def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1.0, alpha: Any = 1.0) -> Any:
    """Compute beta * input + alpha * mat1 @ mat2 with a sparse matrix among them; gradients flow to all, to a sparse one's entries only."""
    if not isinstance(mat1, SparseTensor) and not isinstance(mat2, SparseTensor):
        return F["addmm"](input, mat1, mat2, beta=beta, alpha=alpha)
    return products.masked_addmm(input, mat1, mat2, beta=beta, alpha=alpha)


def as_sparse_gradcheck(gradcheck: Any) -> Any:
    """NotImplementedError: gradcheck perturbs dense elements."""
    raise NotImplementedError("torch.sparse.as_sparse_gradcheck is not built")


def spsolve(input: Any, other: Any, *, left: bool = True) -> Any:
    """NotImplementedError: there is no sparse solver."""
    raise NotImplementedError("torch.sparse.spsolve is not built")


# ---- what dense tensors answer

_COO, _CSR, _CSC = "sparse coordinate", "sparse row compressed", "sparse column compressed"
_WORDS = {
    "coalesce": _COO, "is_coalesced": _COO, "indices": _COO, "_indices": _COO, "_values": _COO, "values": "sparse",
    "crow_indices": _CSR, "col_indices": _CSR, "ccol_indices": _CSC, "row_indices": _CSC,
}  # fmt: skip


def _refused(name: str, words: str) -> Any:
    def method(self: Any) -> Any:
        raise RuntimeError(f"{name} expected {words} tensor layout but got Strided")

    method.__name__ = method.__qualname__ = name
    method.__doc__ = "RuntimeError: the tensor is dense."
    return method


def _nnz(self: Any) -> int:
    """NotImplementedError: the tensor is dense."""
    raise NotImplementedError("Could not run 'aten::_nnz' with arguments from the 'CPU' backend.")


def _sparse_dim(self: Any) -> int:
    """Return 0: all dims are dense."""
    return 0


def _dense_dim(self: Any) -> int:
    """Return the number of dims: all are dense."""
    return self.ndim


METHODS.update({name: _refused(name, words) for name, words in _WORDS.items()})
_DENSE = (
    "_nnz sparse_dim dense_dim to_sparse to_sparse_coo to_sparse_csr to_sparse_csc to_sparse_bsr to_sparse_bsc sparse_mask "
    "smm sspaddmm"
)
_sparse_dim.__name__, _dense_dim.__name__ = "sparse_dim", "dense_dim"
METHODS.update(_nnz=_nnz, sparse_dim=_sparse_dim, dense_dim=_dense_dim)
for _name in (*_WORDS, *_DENSE.split()):
    setattr(Tensor, _name, METHODS[_name])


def _embedded(rows: Any, indices: Any, size: Any) -> SparseTensor:
    """Return an embedding table's sparse gradient, of size `size`: `rows` to be added at the row numbers `indices`."""
    made = pattern.Pattern(size[:1], indices.reshape(1, -1), checked=True)
    return objects.pack(made, rows, size)


HANDLERS["sparse rows"] = _embedded
__all__ += TYPES  # noqa: PLE0605 - the table decides
