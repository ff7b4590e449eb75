"""LDL factorizations, randomized factorizations of low rank, and extreme eigenpairs."""

from __future__ import annotations

import numpy as np
import pytest
from support import close, data

import cltensor as ct


def _symmetric(n: int, dtype: str, hermitian: bool, hollow: bool) -> np.ndarray:
    a = data(2, n, n, dtype=dtype)
    t = a.swapaxes(-1, -2)
    a = a + (t.conj() if hermitian else t)
    if hollow:  # zeros on the diagonal need pivots of 2 x 2 blocks
        a[:, range(n), range(n)] = 0
    return a


@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_ldl_solves(dtype: str, hermitian: bool) -> None:
    for n, hollow in ((1, False), (2, True), (7, False), (7, True)):
        a = _symmetric(n, dtype, hermitian, hollow)
        A = ct.tensor(a)
        LD, pivots = ct.linalg.ldl_factor(A, hermitian=hermitian)
        assert pivots.dtype is ct.int32 and pivots.shape == (2, n)
        assert not hollow or (pivots < 0).any()
        b = data(n, 3, dtype=dtype)
        B = ct.tensor(b)
        x = ct.linalg.ldl_solve(LD, pivots, B, hermitian=hermitian)
        close((A @ x - B).abs().max(), 0.0, 1e-10)


def test_ldl_of_a_positive_matrix_is_cholesky_with_a_diagonal() -> None:
    A = ct.eye(3) + 1
    LD, pivots, info = ct.linalg.ldl_factor_ex(A)
    assert pivots.tolist() == [1, 2, 3] and info.item() == 0
    L = LD.tril(-1) + ct.eye(3)
    close(L @ LD.diagonal().diag() @ L.mT, A.tolist())
    assert ct.linalg.ldl_factor_ex(ct.zeros(2, 2)).info.item() == 1
    with pytest.raises(RuntimeError, match="Unknown error code: 1"):
        ct.linalg.ldl_factor(ct.zeros(2, 2))
    with pytest.raises(RuntimeError, match="derivative for aten::linalg_ldl_factor_ex"):
        ct.linalg.ldl_factor(A.requires_grad_())[0].sum().backward()


def test_svd_and_pca_of_low_rank() -> None:
    ct.manual_seed(0)
    a = data(12, 3, dtype="float64") @ data(3, 8, dtype="float64")
    A = ct.tensor(a)
    for x in (A, A.mT):
        U, S, V = ct.svd_lowrank(x, 5)
        assert U.shape == (x.shape[0], 5) and V.shape == (x.shape[1], 5)
        close((U * S) @ V.mT, x.tolist(), 1e-9)
    U, S, V = ct.pca_lowrank(A, 3)
    close(S, np.linalg.svd(a - a.mean(0))[1][:3], 1e-9)
    with pytest.raises(ValueError, match="must be non-negative integer and not greater than"):
        ct.pca_lowrank(A, 9)


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
def test_low_rank_of_sparse_matrices(layout: str) -> None:
    ct.manual_seed(0)
    a = data(12, 3, dtype="float64") @ data(3, 8, dtype="float64")
    a[::3] = 0
    A = ct.tensor(a).to_sparse(layout=getattr(ct, layout))
    M = ct.tensor(a[:1])
    for x, m in ((A, None), (A.mT, None), (A, M), (A, M.expand(12, 8)), (A.mT, M.mT)):
        U, S, V = ct.svd_lowrank(x, 5, M=m)
        want = x.to_dense() - (0 if m is None else m)
        close((U * S) @ V.mT, want.tolist(), 1e-9)
    U, S, V = ct.pca_lowrank(A, 4)
    close((U * S) @ V.mT, a - a.mean(0), 1e-9)
    with pytest.raises(ValueError, match="pca_lowrank input is expected to be 2-dimensional"):
        ct.pca_lowrank(ct.ones(2, 3, 4).to_sparse(), 2)


def test_lobpcg_finds_extreme_pairs(one_by_one: None) -> None:
    ct.manual_seed(0)
    a = data(24, 24, dtype="float64")
    a = a @ a.T + np.eye(24)
    A = ct.tensor(a)
    B = ct.diag(ct.linspace(1, 2, 24, dtype=ct.float64))
    for largest in (True, False):
        E, V = ct.lobpcg(A, 2, largest=largest)
        expected = np.linalg.eigvalsh(a)
        close(E, expected[::-1][:2] if largest else expected[:2], 1e-6)
        close((A @ V - V * E).abs().max(), 0.0, 1e-4)
    E, V = ct.lobpcg(A, 2, B=B)
    close((A @ V - B @ V * E).abs().max(), 0.0, 1e-4)
    leaf = A.clone().requires_grad_()
    E, V = ct.lobpcg(leaf, 1)
    E.sum().backward()
    close(leaf.grad, (V @ V.mT).tolist(), 1e-6)
    with pytest.raises(ValueError, match="is smaller than 3 x"):
        ct.lobpcg(A, 9)


@pytest.mark.fp64
def test_gradients_of_lobpcg_belong_to_both_triangles(one_by_one: None) -> None:
    ct.manual_seed(0)
    root = ct.rand(6, 6, dtype=ct.float64)
    A = (root @ root.mT / 10).requires_grad_()

    def pairs(A: ct.Tensor) -> tuple[ct.Tensor, ct.Tensor]:
        E, V = ct.lobpcg(A, 2)
        return E, V * V.gather(-2, V.abs().argmax(-2, keepdim=True)).sign()

    assert ct.autograd.gradcheck(pairs, A)
    E, V = pairs(A)
    (g,) = ct.autograd.grad(E.sum() + V.sum(), A)
    close(g, g.mT.tolist())
