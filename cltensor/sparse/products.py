"""Products with a sparse matrix, and their gradients: with respect to the entries, and to the dense operand.

`spread` (entries times a dense matrix) and `sampled` (rows of two dense matrices multiplied where there are entries) are each
other's gradients, so derivatives of any order stay here. Dtypes without a kernel go through plain operators.
"""

from __future__ import annotations

from math import prod
from typing import Any

from ..autograd import record as graph
from ..autograd.mode import unrecorded
from ..codegen.products import sparse as kernels
from ..memory_format import sparse_coo, sparse_csr
from ..ops import core
from ..ops.row import FUNCTIONS as F
from ..ops.row import public
from .arithmetic import add, into, mul
from .convert import relaid, to_coo
from .pattern import Pattern
from .shape import transpose
from .table import op
from .tensor import LAYOUT_NAMES, SparseTensor, coalesced, like, pack, summed, values_of

Tensor = Any


def _rowwise(x: Tensor) -> Tensor:
    """Return the matrix, copied unless the elements of each row are adjacent in memory."""
    return x if x.shape[1] < 2 or x._strides[1] == 1 else x.contiguous()


def spread(p: Pattern, values: Tensor, dense: Tensor, turned: bool = False) -> Tensor:
    """Multiply the sparse matrix with these values at pattern `p`, or its transpose if `turned`, by a dense one."""
    lines = p.columns if turned else p.rows
    if values.dtype not in kernels.DTYPES:
        to, of = (1, 0) if turned else (0, 1)
        each = values.unsqueeze(1) * dense.index_select(0, p.indices[of])
        return summed(each, p.indices[to].contiguous(), p.sizes[to])
    with unrecorded():
        ordered = values if lines.order is None else values.index_select(0, lines.order)
        operands = [
            core.kernel_operand(t)
            for t in (lines.pointer[:-1], lines.other, ordered.contiguous(), _rowwise(dense))
        ]
        backend = values._storage.backend
        out = core.result(kernels.lines_by_matrix(backend, *operands), values.device)
    if graph.needs_grad(values, dense):
        saved = {
            "pattern": p,
            "values": values if graph.needs_grad(dense) else None,
            "dense": dense if graph.needs_grad(values) else None,
            "turned": turned,
        }
        graph.record("SparseAddmmBackward0", (values, dense), out, _spread_back, saved)
    return out


def _spread_back(ctx: Any, g: Tensor) -> tuple:
    p, turned = ctx.pattern, ctx.turned
    gv = gd = None
    if ctx.needs[0]:
        gv = sampled(p, ctx.dense, g) if turned else sampled(p, g, ctx.dense)
    if ctx.needs[1]:
        gd = spread(p, ctx.values, g, not turned)
    return gv, gd


def sampled(p: Pattern, left: Tensor, right: Tensor) -> Tensor:
    """Return, for each entry (i, j) of the pattern, the dot product of row i of `left` and row j of `right`."""
    if left.dtype not in kernels.DTYPES:
        row, column = p.indices
        return (left.index_select(0, row) * right.index_select(0, column)).sum(1)
    with unrecorded():
        p.check()
        indices = p.indices if p.indices.is_contiguous() else p.indices.contiguous()
        backend = left._storage.backend
        operands = [
            core.kernel_operand(t)
            for t in (indices[0], indices[1], _rowwise(left), _rowwise(right))
        ]
        out = core.result(kernels.rows_by_rows(backend, *operands), left.device)
    if graph.needs_grad(left, right):
        saved = {"pattern": p, "left": left, "right": right}
        graph.record("SparseSampledBackward0", (left, right), out, _sampled_back, saved)
    return out


def sampled_addmm(
    input: Any, mat1: Any, mat2: Any, *, beta: Any = 1.0, alpha: Any = 1.0, out: Any = None
) -> SparseTensor:
    """Compute alpha * (mat1 @ mat2) where the CSR matrix `input` has entries, plus beta * input."""
    if not isinstance(input, SparseTensor) or input.layout is sparse_coo:
        raise NotImplementedError(
            f"Could not run 'aten::sparse_sampled_addmm' with an input of layout {input.layout}: it takes torch.sparse_csr."
        )
    _check_sampled(input, mat1, mat2, input if out is None else out)
    values = sampled(input._pattern, mat1, mat2.t()) * alpha
    made = like(input, values + values_of(input) * beta, "SparseSampledAddmmBackward0")
    return made if out is None else into(made, out, "sparse_sampled_addmm")


def _check_sampled(input: Any, mat1: Any, mat2: Any, out: Any) -> None:
    for name, mat in (("mat1", mat1), ("mat2", mat2)):
        if isinstance(mat, SparseTensor):
            raise RuntimeError(
                f"sampled_addmm: Expected {name} to have strided layout, but got {LAYOUT_NAMES[mat.layout]}"
            )
    if out.layout is not sparse_csr:
        raise RuntimeError(
            f"sampled_addmm: Expected result to have sparse csr layout, but got {LAYOUT_NAMES.get(out.layout, 'Strided')}"
        )
    pairs = ("mat1", mat1, "mat2", mat2), ("mat1", mat1, "self", input), ("result", out, "self", input)  # fmt: skip
    for name, x, other, y in pairs:
        if x.dtype is not y.dtype:
            raise RuntimeError(
                f"sampled_addmm: Expected {name} and {other} to have the same dtype, but got {x.dtype.scalar_name} and {y.dtype.scalar_name}"
            )
    for name, mat in (("mat1", mat1), ("mat2", mat2)):
        if mat.ndim != 2:
            raise RuntimeError(
                f"sampled_addmm: Expected {name} to be a matrix, got {mat.ndim}-D tensor"
            )
    if mat1.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"sampled_addmm: mat1 and mat2 shapes cannot be multiplied ({mat1.shape[0]}x{mat1.shape[1]} and {mat2.shape[0]}x{mat2.shape[1]})"
        )
    for name, mat, dim in (("mat1", mat1, 0), ("mat2", mat2, 1)):
        if mat.shape[dim] != input.shape[dim]:
            raise RuntimeError(
                f"sampled_addmm: self.shape[{dim - 2}] must match {name}.shape[{dim - 2}]"
            )


def _sampled_back(ctx: Any, g: Tensor) -> tuple:
    p, needs = ctx.pattern, ctx.needs
    return (
        spread(p, g, ctx.right) if needs[0] else None,
        spread(p, g, ctx.left, True) if needs[1] else None,
    )


# ------------------------------------------------------------------------------------------- checks


def _check(function: str, a: Any, b: Any) -> None:
    for position, x in ((1, a), (2, b)):
        if not core.is_tensor(x):
            raise TypeError(
                f"{function}(): argument (position {position}) must be Tensor, not {type(x).__name__}"
            )
    if a.ndim != 2 or b.ndim != 2:
        if isinstance(a, SparseTensor) and a._v.ndim > 1:
            raise RuntimeError(
                f"addmm: matrices expected, got {a.sparse_dim()}D tensor (sparse) with {a.dense_dim()} dense dims"
            )
        raise RuntimeError(f"addmm: 2D tensors expected, got {a.ndim}D and {b.ndim}D tensors")
    for x in (a, b):
        if isinstance(x, SparseTensor) and x._v.ndim > 1:
            raise RuntimeError(
                f"addmm: expected a sparse matrix with scalar values, but got values with dense_dim {x.dense_dim()}"
            )
    if a.shape[1] != b.shape[0]:
        if isinstance(a, SparseTensor) and a.is_sparse and not isinstance(b, SparseTensor):
            raise RuntimeError(
                f"addmm: Argument #3 (dense): Expected dim 0 size {a.shape[1]}, got {b.shape[0]}"
            )
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({a.shape[0]}x{a.shape[1]} and {b.shape[0]}x{b.shape[1]})"
        )
    if a.dtype is not b.dtype:
        if isinstance(a, SparseTensor) and a.is_sparse and isinstance(b, SparseTensor):
            raise RuntimeError(
                f"mat1 dtype {a.dtype.scalar_name} does not match mat2 dtype {b.dtype.scalar_name}"
            )
        raise RuntimeError(
            f"expected scalar type {a.dtype.scalar_name} but found {b.dtype.scalar_name}"
        )
    core.common_device((a, b))


# ------------------------------------------------------------------------------------------- products


def _sparse_by_sparse(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """Multiply sparse matrices: each entry (i, k) of `a` by all entries (k, j) of `b`; products in the same place (i,
    j) are summed.
    """
    kind = sparse_coo if a.layout is sparse_coo else sparse_csr
    a, b = coalesced(to_coo(a)), coalesced(to_coo(b))
    p, q = a._pattern, b._pattern
    with unrecorded():
        begin = q.rows.pointer
        column = p.indices[1]
        start = begin.index_select(0, column)
        length = begin.index_select(0, column + 1) - start
        of_a = F["repeat_interleave"](length)
        before = length.cumsum(0) - length
        step = F["arange"](of_a.shape[0], device=of_a.device) - before.index_select(0, of_a)
        of_b = start.index_select(0, of_a) + step
        indices = F["stack"](
            [p.indices[0].index_select(0, of_a), q.indices[1].index_select(0, of_b)]
        )
        sizes = (a.shape[0], b.shape[1])
        pattern = Pattern(sizes, indices, checked=True)
    values = values_of(a).index_select(0, of_a) * values_of(b).index_select(0, of_b)
    made = coalesced(pack(pattern, values, sizes, sparse_coo, "SparseSparseMatmulBackward0"))
    return relaid(made, kind)


@op("mm", mixed=True)
def mm(input: Any, mat2: Any, *, out: Any = None) -> Any:
    """Multiply matrices of which at least one is sparse; the product of two sparse ones is sparse.

    A sparse leaf gets a dense gradient, as in torch: elements without an entry have one, too.
    """
    if out is not None:
        return into(mm(input, mat2), out, "mm")
    if isinstance(input, SparseTensor) is isinstance(mat2, SparseTensor):
        return masked_mm(input, mat2)
    turned = isinstance(mat2, SparseTensor)
    s = mat2 if turned else input
    if not ((s.is_leaf or s._unmasked) and graph.needs_grad(s)):
        return masked_mm(input, mat2)
    _check("mm", input, mat2)
    dense = input.t() if turned else mat2
    with unrecorded():
        out = spread(s._pattern, s._v, dense, turned)
    graph.record("MmBackward0", (s, dense), out, _leaf_back, {"s": s, "dense": dense, "turned": turned})  # fmt: skip
    return out.t() if turned else out


def _leaf_back(ctx: Any, g: Tensor) -> tuple:
    gs = gd = None
    if ctx.needs[0]:
        gs = F["mm"](g, ctx.dense.t().conj())
        gs = gs.t() if ctx.turned else gs
    if ctx.needs[1]:
        gd = spread(ctx.s._pattern, values_of(ctx.s).conj(), g, not ctx.turned)
    return gs, gd


def masked_mm(input: Any, mat2: Any) -> Any:
    """Multiply as `mm` does; the gradient of a sparse matrix has its entries."""
    _check("mm", input, mat2)
    if isinstance(input, SparseTensor):
        if isinstance(mat2, SparseTensor):
            return _sparse_by_sparse(input, mat2)
        return spread(input._pattern, values_of(input), mat2)
    return spread(mat2._pattern, values_of(mat2), input.t(), True).t()


@op("mv", mixed=True)
def mv(input: Any, vec: Any, *, out: Any = None) -> Any:
    """Multiply a sparse matrix by a vector."""
    if input.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(
            f"mv: two tensor dim should be 2 and 1, but got SparseTensor Dim: {input.ndim}Tensor Dim: {vec.ndim}"
        )
    if isinstance(vec, SparseTensor):
        return NotImplemented
    if input.shape[1] != vec.shape[0]:
        if isinstance(input, SparseTensor) and not input.is_sparse:
            raise RuntimeError(
                f"size mismatch, got input ({input.shape[0]}), mat ({input.shape[0]}x{input.shape[1]}), vec ({vec.shape[0]})"
            )
        raise RuntimeError(
            f"mv: expected self.size(-1) == vec.size(-1), but got {input.shape[1]} and {vec.shape[0]}"
        )
    made = mm(input, vec.unsqueeze(1)).squeeze(1)
    return made if out is None else into(made, out, "mv")


def _flat(s: SparseTensor) -> SparseTensor:
    """Return a batch of sparse matrices as one block-diagonal matrix."""
    batch, m, n = s.shape
    p = s._pattern
    if len(p.sizes) != 3:
        raise NotImplementedError("bmm: batches of sparse matrices have three sparse dims")
    p.check()
    with unrecorded():
        b, i, j = p.indices
        indices = F["stack"]([b * m + i, b * n + j])
    sizes = (batch * m, batch * n)
    pattern = Pattern(sizes, indices, coalesced=p.coalesced, checked=True)
    return pack(pattern, values_of(s), sizes, sparse_coo, "ViewBackward0")


@op("bmm", mixed=True)
def bmm(input: Any, mat2: Any) -> Any:
    """Multiply a batch of sparse matrices by a batch of dense ones."""
    if isinstance(mat2, SparseTensor) and isinstance(input, SparseTensor):
        raise RuntimeError("bmm_sparse: Tensor 'mat2' must be dense")
    if isinstance(mat2, SparseTensor):
        return bmm(transpose(mat2, 1, 2), input.transpose(1, 2)).transpose(1, 2)
    if input.ndim != 3 or mat2.ndim != 3:
        raise RuntimeError(
            f"bmm_sparse: Tensors must be 3D, but got {input.ndim}D and {mat2.ndim}D"
        )
    batch, m, n = input.shape
    if mat2.shape[0] != batch:
        raise RuntimeError("bmm_sparse: 'self.size(0)' and 'mat2.size(0)' must match")
    if mat2.shape[1] != n:
        raise RuntimeError("bmm_sparse: 'self.size(2)' and 'mat2.size(1)' must match")
    width = mat2.shape[2]
    return mm(_flat(input), mat2.reshape(batch * n, width)).reshape(batch, m, width)


@op("matmul", mixed=True)
def matmul(input: Any, other: Any) -> Any:
    """Multiply as `@` does."""
    da, db = input.ndim, other.ndim
    if da == 2 and db == 2:
        return mm(input, other)
    if da == 2 and db == 1:
        return mv(input, other)
    if (
        da == 1
        and db == 2
        and isinstance(other, SparseTensor)
        and not isinstance(input, SparseTensor)
    ):
        return mv(transpose(other, 0, 1), input)
    if da == 3 and db == 3:
        return bmm(input, other)
    if da > 2 and db == 2 and not isinstance(input, SparseTensor):
        rows = input.reshape(prod(input.shape[:-1]), input.shape[-1])
        return mm(rows, other).reshape(*input.shape[:-1], other.shape[1])
    return NotImplemented


def _added(input: Any, product: Any, beta: Any, alpha: Any) -> Any:
    if alpha != 1:
        product = product * alpha
    if beta == 0:
        return product
    if beta != 1:
        input = input * beta
    if isinstance(product, SparseTensor) and not isinstance(input, SparseTensor):
        return input.expand(product.shape) + product
    return input + product


@op("addmm", mixed=True)
def addmm(
    input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1, out: Any = None
) -> Any:
    """Compute beta * input + alpha * mat1 @ mat2 with a sparse matrix among them."""
    if not isinstance(mat1, SparseTensor) and not isinstance(mat2, SparseTensor):
        return NotImplemented
    made = _added(input, mm(mat1, mat2), beta, alpha)
    return made if out is None else into(made, out, "addmm")


def masked_addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Compute `addmm`; the gradient of a sparse matrix has its entries."""
    return _added(input, masked_mm(mat1, mat2), beta, alpha)


@op("addmv", mixed=True)
def addmv(input: Any, mat: Any, vec: Any, *, beta: Any = 1, alpha: Any = 1, out: Any = None) -> Any:
    """Compute beta * input + alpha * mat @ vec with a sparse matrix."""
    if not isinstance(mat, SparseTensor):
        return NotImplemented
    made = _added(input, mv(mat, vec), beta, alpha)
    return made if out is None else into(made, out, "addmv")


@public(method=False, aliases=("dsmm",))
def spmm(input: Any, mat2: Any) -> Any:
    """Multiply matrices, sparse or dense."""
    return F["mm"](input, mat2)


def _check_rows(function: str, s: SparseTensor, dense: Any) -> None:
    for position, x in ((2, s), (3, dense)):
        if x.ndim != 2:
            raise RuntimeError(
                f"{function}: Argument #{position}: matrices expected, got {x.ndim}D tensor"
            )
    if s.shape[1] != dense.shape[0]:
        raise RuntimeError(
            f"{function}: Argument #3: Expected dim 0 size {s.shape[1]}, got {dense.shape[0]}"
        )
    _check(function, s, dense)


@public(method=False, aliases=("hsmm",))
def hspmm(mat1: Any, mat2: Any, *, out: Any = None) -> SparseTensor:
    """Multiply a sparse matrix by a dense one; the result is sparse in its rows, with a dense row for each row of
    `mat1` that has entries.
    """
    if not isinstance(mat1, SparseTensor) and not isinstance(mat2, SparseTensor):
        raise NotImplementedError(
            "Could not run 'aten::hspmm' with arguments from the 'CPU' backend."
        )
    _check_rows("hspmm", mat1, mat2)
    if isinstance(mat2, SparseTensor):
        raise RuntimeError(
            "addmm_sparse_dense: expected strided result tensor, got tensor with layout Sparse"
        )
    made = _by_rows(mat1, mat2)
    return made if out is None else into(made, out, "hspmm")


def _by_rows(mat1: SparseTensor, mat2: Tensor) -> SparseTensor:
    with unrecorded():
        pointer = mat1._pattern.rows.pointer
        rows = (pointer[1:] > pointer[:-1]).nonzero().t().contiguous()
        pattern = Pattern((mat1.shape[0],), rows, coalesced=True, checked=True)
    values = masked_mm(mat1, mat2).index_select(0, rows[0])
    return pack(pattern, values, (mat1.shape[0], mat2.shape[1]), sparse_coo, "HspmmBackward0")


def _product(mat1: Any, mat2: Any) -> SparseTensor:
    """Multiply a sparse matrix by a dense one for `sspaddmm`; the result has an entry for each number."""
    if not isinstance(mat1, SparseTensor):
        raise RuntimeError("sspaddmm: expected 'mat1' to have sparse layout, got 'mat1' with layout Strided")  # fmt: skip
    if isinstance(mat2, SparseTensor):
        raise RuntimeError(
            f"sspaddmm: expected 'mat2' to have strided layout, got 'mat2' with layout {LAYOUT_NAMES[mat2.layout]}"
        )
    _check_rows("sspaddmm", mat1, mat2)
    made = _by_rows(mat1, mat2)
    rows, width = made._pattern.indices[0], mat2.shape[1]
    with unrecorded():
        columns = F["arange"](width, device=rows.device).repeat(rows.shape[0])
        indices = F["stack"]([F["repeat_interleave"](rows, width), columns])
    pattern = Pattern(made.shape, indices, checked=True)
    return pack(pattern, values_of(made).reshape(-1), made.shape, sparse_coo, "SmmBackward0")


@public()
def smm(input: Any, mat: Any) -> SparseTensor:
    """Multiply a sparse matrix by a dense one; the result is sparse."""
    if not isinstance(input, SparseTensor) and not isinstance(mat, SparseTensor):
        raise RuntimeError("tensor.sspaddmm(...) can only be called on sparse tensors")
    return _product(input, mat)


@public()
def sspaddmm(
    input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1, out: Any = None
) -> SparseTensor:
    """Compute beta * input + alpha * mat1 @ mat2 of sparse input and mat1; the result is sparse."""
    product = _product(mat1, mat2)
    for dim, (n, wanted) in enumerate(zip(input.shape, product.shape)):
        if n != wanted:
            raise RuntimeError(f"sspaddmm: Argument #1: Expected dim {dim} size {wanted}, got {n}")
    made = add(mul(input, beta) if beta != 1 else input, product, alpha)
    return made if out is None else into(made, out, "sspaddmm")


F["saddmm"] = sspaddmm


def reduced(a: Any, dense: Any, reduce: str) -> Tensor:
    """Reduce, for each row i of a CSR matrix, its entries (i, k) times the rows k of a dense matrix; 0 where it has no
    entry.
    """
    if reduce == "prod":
        raise RuntimeError("sparse_mm_reduce: reduce type of prod has not been enabled.")
    reduce = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    if reduce not in ("sum", "mean", "amax", "amin"):
        raise RuntimeError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}"
        )
    if not isinstance(a, SparseTensor) or a.layout is not sparse_csr:
        raise NotImplementedError(
            f"Could not run 'aten::_sparse_mm_reduce_impl' with a first matrix of layout {a.layout}: it takes torch.sparse_csr."
        )
    if isinstance(dense, SparseTensor):
        raise RuntimeError(
            f"Expected tensor to have Strided Layout, but got tensor with {LAYOUT_NAMES[dense.layout]} Layout (while checking arguments for "
            "sparse_mm_reduce)"
        )
    if reduce == "sum":
        return masked_mm(a, dense)
    rows, columns = a._pattern.indices
    if reduce == "mean":
        counts = F["bincount"](rows, minlength=a.shape[0]).clamp(min=1).to(dense.dtype)
        return masked_mm(a, dense) / counts.unsqueeze(1)
    each = values_of(a).unsqueeze(1) * dense.index_select(0, columns)
    start = each.new_zeros((a.shape[0], dense.shape[1]))
    return start.scatter_reduce(
        0, rows.unsqueeze(1).expand_as(each), each, reduce, include_self=False
    )
