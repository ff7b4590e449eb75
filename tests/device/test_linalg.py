"""Linear algebra: values against numpy, gradients of both orders against finite differences, errors, counting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import close, data

import cltensor as torch
from cltensor import linalg

pytestmark = pytest.mark.usefixtures("one_by_one")


def t(array: np.ndarray, grad: bool = False) -> Any:
    made = torch.tensor(array)
    return made.requires_grad_() if grad else made


def square(n: int = 3, batch: tuple[int, ...] = (), dtype: str = "float64") -> np.ndarray:
    return data(*batch, n, n, dtype=dtype) + 3 * np.eye(n, dtype=dtype)


def positive(n: int = 3, batch: tuple[int, ...] = (), dtype: str = "float64") -> np.ndarray:
    a = data(*batch, n, n, seed=7, dtype=dtype)
    return a @ a.swapaxes(-1, -2).conj() + np.eye(n, dtype=dtype)


def dagger(x: Any) -> Any:
    return x.mH if hasattr(x, "mH") and not isinstance(x, np.ndarray) else x.swapaxes(-1, -2).conj()


def n(x: Any) -> Any:
    """Return a result as an array, so that numpy multiplies it: cltensor would build kernels of four dtypes just for
    that.
    """
    return x.numpy(force=True)


@pytest.mark.parametrize(
    ("dtype", "batch"),
    [
        *(
            (dtype, batch)
            for dtype in ("float64", "complex128")
            for batch in ((), (2,), (2, 3), (0,))
        ),
        ("float32", ()),
    ],
    ids=str,
)
def test_factorizations_multiply_back(batch: tuple[int, ...], dtype: str) -> None:
    tol = 1e-4 if dtype == "float32" else 1e-10
    a, p, w = square(3, batch, dtype), positive(3, batch, dtype), data(*batch, 4, 2, dtype=dtype)
    close(n(linalg.inv(t(a))) @ a, np.broadcast_to(np.eye(3), a.shape), tol)
    close(torch.det(t(a)), np.linalg.det(a), tol)
    b = data(*batch, 3, 2, dtype=dtype)
    close(a @ n(linalg.solve(t(a), t(b))), b, tol)
    close(n(linalg.solve(t(a), t(dagger(b)), left=False)) @ a, dagger(b), tol)
    low = linalg.cholesky(t(p))
    close(n(low) @ dagger(n(low)), p, tol)
    close(torch.cholesky_solve(t(b), low), np.linalg.solve(p, b), tol)
    close(torch.cholesky_inverse(low), np.linalg.inv(p), tol)
    close(linalg.cholesky(t(p), upper=True), dagger(n(low)), tol)
    q, r = map(n, linalg.qr(t(w)))
    close(q @ r, w, tol)
    u, s, vh = map(n, linalg.svd(t(w), full_matrices=False))
    close((u * s[..., None, :]) @ vh, w, tol)
    close(linalg.svdvals(t(w)), s, tol)
    for decompose, matrix in ((linalg.eigh, p), (linalg.eig, a)):
        values, vectors = map(n, decompose(t(matrix)))
        close(matrix @ vectors, vectors * values[..., None, :], tol)
    P, L, U = map(n, linalg.lu(t(a)))
    close(P @ L @ U, a, tol)
    P, L, U = map(n, torch.lu_unpack(*linalg.lu_factor(t(a))))
    close(P @ L @ U, a, tol)
    close(linalg.lu_solve(*linalg.lu_factor(t(a)), t(b)), np.linalg.solve(a, b), tol)
    close(linalg.solve_triangular(t(a), t(b), upper=True), np.linalg.solve(np.triu(a), b), tol)
    close(linalg.pinv(t(w)), np.linalg.pinv(w), tol)
    close(
        linalg.lstsq(t(w), t(data(*batch, 4, 1, dtype=dtype)))[0],
        np.linalg.pinv(w) @ data(*batch, 4, 1, dtype=dtype),
        tol,
    )
    sign, size = map(n, linalg.slogdet(t(a)))
    close(sign * np.exp(size), np.linalg.det(a), tol)


def test_results_are_named() -> None:
    a = t(square())
    assert linalg.svd(a).Vh.shape == (3, 3)
    assert linalg.slogdet(a).logabsdet.shape == ()
    assert linalg.eigh(a).eigenvalues.shape == (3,)
    assert linalg.lstsq(a, a).solution.shape == (3, 3)
    assert repr(linalg.qr(t(np.eye(1)))).startswith("torch.return_types.linalg_qr(\nQ=")


def symmetric(fn: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: fn((x + dagger(x)) / 2)


def svd_parts(w: Any) -> Any:
    """Return numbers made from a singular value decomposition that do not depend on the phases of singular vectors."""
    u, s, vh = linalg.svd(w, full_matrices=False)
    return (u * s.unsqueeze(-2)).abs() + vh.abs().sum()


DIFFERENTIABLE: dict[str, tuple[Callable[..., Any], str]] = {
    "inv": (linalg.inv, "A"),
    "det": (torch.det, "A"),
    "slogdet": (lambda a: linalg.slogdet(a)[1], "A"),
    "logdet": (
        symmetric(lambda p: torch.logdet(p).real if p.is_complex() else torch.logdet(p)),
        "P",
    ),
    "solve": (linalg.solve, "AB"),
    "solve vector": (lambda a, b: linalg.solve(a, b[..., 0]), "AB"),
    "solve right": (lambda a, b: linalg.solve(a, b.mT, left=False), "AB"),
    "cholesky": (symmetric(linalg.cholesky), "P"),
    "cholesky upper": (symmetric(lambda p: linalg.cholesky(p, upper=True)), "P"),
    "cholesky_solve": (
        lambda p, b: torch.cholesky_solve(b, linalg.cholesky((p + dagger(p)) / 2)),
        "PB",
    ),
    "cholesky_inverse": (symmetric(lambda p: torch.cholesky_inverse(linalg.cholesky(p))), "P"),
    "qr": (lambda w: linalg.qr(w)[1].abs(), "W"),
    "qr wide": (lambda w: linalg.qr(w.mT)[1].abs(), "W"),
    "qr q": (lambda w: linalg.qr(w)[0].abs(), "W"),
    "svdvals": (linalg.svdvals, "W"),
    "svd": (svd_parts, "W"),
    "svd wide": (lambda w: svd_parts(w.mT), "W"),
    "eigvalsh": (symmetric(linalg.eigvalsh), "P"),
    "eigh": (symmetric(lambda p: linalg.eigh(p)[1].abs()), "P"),
    "eigvals": (lambda a: linalg.eigvals(a).abs().sum(), "A"),
    "eig": (lambda a: linalg.eig(a)[1].abs().sum(), "A"),
    "pinv": (linalg.pinv, "W"),
    "pinv wide": (lambda w: linalg.pinv(w.mT), "W"),
    "lstsq": (lambda w, b: linalg.lstsq(w, torch.cat((b, b[..., :1, :]), -2))[0], "WB"),
    "solve_triangular": (lambda a, b: linalg.solve_triangular(a, b, upper=False), "AB"),
    "solve_triangular unit": (
        lambda a, b: linalg.solve_triangular(a, b.mT, upper=True, left=False, unitriangular=True),
        "AB",
    ),
    "triangular_solve": (lambda a, b: torch.triangular_solve(b, a, transpose=True)[0], "AB"),
    "lu": (lambda a: linalg.lu(a)[1] + linalg.lu(a)[2], "A"),
    "lu, rows in place": (lambda a: (p := linalg.lu(a, pivot=False))[1] + p[2], "A"),
    "lu_factor": (lambda a: linalg.lu_factor(a)[0], "A"),
    "lu_solve": (lambda a, b: linalg.lu_solve(*linalg.lu_factor(a), b), "AB"),
    "matrix_exp": (lambda a: torch.matrix_exp(a * 0.5), "A"),
    "householder_product": (lambda w: linalg.householder_product(w, w[..., 0, :]), "W"),
    "ormqr": (lambda w: torch.ormqr(w, w[..., 0, :], w), "W"),
    "nuclear norm": (lambda w: linalg.matrix_norm(w, "nuc"), "W"),
    "spectral norm": (lambda w: linalg.matrix_norm(w, 2), "W"),
    "column norm": (lambda w: linalg.matrix_norm(w, 1), "W"),
    "cond": (linalg.cond, "A"),
    "cond 1": (lambda a: linalg.cond(a, 1), "A"),
    "matrix_power": (lambda a: torch.matrix_power(a, -2), "A"),
}


CORE = (
    "inv", "det", "slogdet", "solve", "cholesky", "qr", "svdvals", "svd", "eigh", "eigvals", "pinv", "lstsq",
    "solve_triangular", "matrix_exp", "householder_product",
)  # fmt: skip


def inputs(kinds: str, dtype: str) -> tuple[Any, ...]:
    made = {
        "A": square(3, (), dtype),
        "P": positive(3, (), dtype),
        "B": data(3, 2, seed=4, dtype=dtype),
        "W": data(4, 2, seed=5, dtype=dtype),
    }
    return tuple(t(made[k], True) for k in kinds)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients(name: str) -> None:
    fn, kinds = DIFFERENTIABLE[name]
    assert torch.autograd.gradcheck(fn, inputs(kinds, "float64"), atol=1e-4)


@pytest.mark.parametrize("name", CORE)
def test_complex_gradients(name: str) -> None:
    fn, kinds = DIFFERENTIABLE[name]
    assert torch.autograd.gradcheck(fn, inputs(kinds, "complex128"), atol=1e-4)


@pytest.mark.parametrize("name", CORE)
def test_second_derivatives(name: str) -> None:
    fn, kinds = DIFFERENTIABLE[name]
    assert torch.autograd.gradgradcheck(fn, inputs(kinds, "float64"), atol=1e-3)


def test_gradients_where_singular_values_repeat() -> None:
    a = t(np.eye(3), True)
    linalg.svd(a)[1].sum().backward()
    close(a.grad, np.eye(3))
    b = t(np.eye(3), True)
    linalg.eigh(b)[0].sum().backward()
    close(b.grad, np.eye(3))


def test_determinant_of_a_singular_matrix_has_a_gradient() -> None:
    a = t(np.array([[1.0, 2.0], [2.0, 4.0]]), True)
    torch.det(a).backward()
    close(a.grad, [[4.0, -2.0], [-2.0, 1.0]])


def test_exponential() -> None:
    a = data(2, 4, 4, dtype="float64")
    values, vectors = np.linalg.eig(a)
    expected = ((vectors * np.exp(values)[..., None, :]) @ np.linalg.inv(vectors)).real
    close(torch.matrix_exp(t(a)), expected, 1e-9)
    big = 20 * a
    values, vectors = np.linalg.eig(big)
    expected = ((vectors * np.exp(values)[..., None, :]) @ np.linalg.inv(vectors)).real
    close(
        torch.matrix_exp(t(big)) / np.abs(expected).max(), expected / np.abs(expected).max(), 1e-9
    )
    close(linalg.matrix_exp(t(np.zeros((2, 2)))), np.eye(2))
    close(torch.matrix_exp(t(data(3, 3))), torch.matrix_exp(t(data(3, 3)).double()).tolist(), 1e-5)


def test_norms() -> None:
    a = data(3, 4, dtype="float64")
    for order in ("fro", "nuc", 1, -1, 2, -2, float("inf"), -float("inf")):
        close(linalg.matrix_norm(t(a), order), np.linalg.norm(a, order))
        close(linalg.norm(t(a), order), np.linalg.norm(a, order))
        assert linalg.matrix_norm(t(a), order, keepdim=True).shape == (1, 1)
    close(linalg.norm(t(a)), np.linalg.norm(a))
    close(linalg.norm(t(a), 2, dim=1), np.linalg.norm(a, 2, 1))
    s = square()
    for order in (None, 1, -1, 2, -2, "fro", "nuc", float("inf")):
        close(linalg.cond(t(s), order), np.linalg.cond(s, order))
    assert linalg.cond(torch.zeros(2, 2), 1).item() == float("inf")
    close(linalg.matrix_rank(t(np.ones((3, 3)))), 1)
    close(linalg.matrix_rank(t(a), tol=100.0), 0)


def test_other_functions() -> None:
    a = data(4, 6, 8, 3, dtype="float64")
    close(linalg.tensorinv(t(a)), np.linalg.tensorinv(a), 1e-8)
    e = data(2, 3, 6, dtype="float64")
    close(
        linalg.tensorsolve(t(e), t(data(2, 3, dtype="float64"))),
        np.linalg.tensorsolve(e, data(2, 3, dtype="float64")),
        1e-8,
    )
    close(linalg.vander(t(data(3))), np.vander(data(3), increasing=True))
    close(
        linalg.vecdot(t(data(2, 3)), t(data(2, 3, seed=1))),
        (data(2, 3) * data(2, 3, seed=1)).sum(-1),
    )
    close(
        linalg.multi_dot([t(data(2, 3)), t(data(3, 4)), t(data(4))]),
        data(2, 3) @ data(3, 4) @ data(4),
        1e-4,
    )
    w = data(4, 3, dtype="float64")
    packed, tau = torch.geqrf(t(w))
    close(linalg.householder_product(packed, tau) @ torch.triu(packed[:3]), w)
    full = torch.ormqr(packed, tau, torch.eye(4, dtype=torch.float64))
    close(full @ full.mT, np.eye(4))
    close(torch.ormqr(packed, tau, t(w), transpose=True)[:3], torch.triu(packed[:3]).tolist())
    packed.requires_grad_()
    linalg.householder_product(packed, tau[:0]).sum().backward()
    assert packed.grad is None  # without reflectors, the product is constant


ERRORS = {
    "linalg.inv(torch.zeros(3, 3))": "linalg.inv: The diagonal element 1 is zero, the inversion could not be completed because the input matrix is singular.",
    "linalg.inv(torch.zeros(2, 3, 3))": "linalg.inv: (Batch element 0): The diagonal element 1 is zero, the inversion could not be completed because the input matrix is singular.",
    "linalg.inv(torch.zeros(2, 3))": "linalg.inv: A must be batches of square matrices, but they are 2 by 3 matrices",
    "linalg.inv(torch.zeros(3))": "linalg.inv: The input tensor A must have at least 2 dimensions.",
    "linalg.inv(torch.zeros(3, 3).long())": "linalg.inv: Expected a floating point or complex tensor as input. Got Long",
    "linalg.inv(torch.zeros(3, 3).half())": "linalg.inv: Low precision dtypes not supported. Got Half",
    "linalg.cholesky(-torch.eye(3))": "linalg.cholesky: The factorization could not be completed because the input is not positive-definite (the leading minor of order 1 is not positive-definite).",
    "linalg.solve(torch.zeros(3, 3), torch.ones(3))": "torch.linalg.solve: The solver failed because the input matrix is singular.",
    "linalg.solve(torch.eye(3), torch.ones(4, 2))": "linalg.solve: Incompatible shapes of A and B for the equation AX = B (3x3 and 4x2)",
    "linalg.svd(torch.full((3, 3), float('nan')))": "linalg.svd: The algorithm failed to converge because the input matrix contained non-finite values.",
    "linalg.qr(torch.ones(3, 3), 'foo')": "qr received unrecognized mode 'foo' but expected one of 'reduced' (default), 'r', or 'complete'",
    "linalg.eigh(torch.eye(3), UPLO='X')": "Expected UPLO argument to be 'L' or 'U', but got X",
    "linalg.matrix_norm(torch.ones(3, 3), 3)": "linalg.matrix_norm: Order 3 not supported.",
}


@pytest.mark.parametrize("line", ERRORS)
def test_errors(line: str) -> None:
    with pytest.raises(RuntimeError) as error:
        eval(line, {"torch": torch, "linalg": linalg})
    assert str(error.value) == ERRORS[line]


def test_the_error_of_a_bad_matrix_has_its_own_class() -> None:
    with pytest.raises(linalg.LinAlgError, match="diagonal element 3 is zero"):
        linalg.inv(torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0]]))
    with pytest.raises(linalg.LinAlgError, match="leading minor of order 2"):
        linalg.cholesky(torch.tensor([[1.0, 2.0], [2.0, 1.0]]))
    assert linalg.inv_ex(torch.zeros(2, 2)).info.item() == 1
    assert linalg.cholesky_ex(-torch.eye(2)).info.item() == 1
