"""Factorizations and substitution by kernels, both schedules, against numpy: sizes past blocks and vectors, batches of
any layout."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from support import close, data

import cltensor as torch
from cltensor import dtypes, linalg
from cltensor.codegen.factor import cholesky, lu, parts, qr, triangular
from cltensor.codegen.operand import Operand
from cltensor.codegen.region import empty, from_host, is_gpu
from cltensor.ops.linalg import factors

# Batch size and rows of the matrices: one number, part of a vector, one past a block, two blocks, half a block; and
# many matrices
# as lanes of vectors, more than whole vectors.
SIZES = [(1, 1), (3, 5), (2, 33), (1, 100), (37, 3), (33, 16)]
KINDS = ["float32", "complex64"]


def dagger(a: np.ndarray) -> np.ndarray:
    return a.swapaxes(-1, -2).conj()


def put(be: Any, a: np.ndarray) -> Operand:
    """Copy matrices [count, m, n] to the device, column-major."""
    return parts.by_columns(be, from_host(be, dtypes.BY_NAME[str(a.dtype)], a))


def get(be: Any, x: Operand, kind: str = "") -> np.ndarray:
    """Read back column-major matrices, or a dense operand [count, n]."""
    shape = (x.shape[0], x.shape[2], x.shape[1]) if len(x.shape) == 3 else x.shape
    raw = be.read(x.buffer, 0, int(np.prod(shape)) * x.dtype.itemsize)
    found = raw.view(kind or x.dtype.name).reshape(shape)
    return found.swapaxes(1, 2) if len(x.shape) == 3 else found


def well_conditioned(count: int, n: int, kind: str) -> np.ndarray:
    return data(count, n, n, dtype=kind) + 2 * n * np.eye(n, dtype=kind)


@pytest.mark.parametrize("kind", KINDS)
def test_cholesky(be: Any, kind: str) -> None:
    for count, n in SIZES:
        a = data(count, n, n, dtype=kind)
        p = a @ dagger(a) + n * np.eye(n, dtype=kind)
        m, info = put(be, p), parts.zeros(be, dtypes.int32, (count,))
        cholesky.cholesky(be, m, info)
        close(np.tril(get(be, m)), np.linalg.cholesky(p), 1e-4)
        assert not get(be, info, "int32").any()


@pytest.mark.parametrize("kind", KINDS)
def test_lu(be: Any, kind: str) -> None:
    for (count, n), more in itertools.product(SIZES, (0, 9, -4)):
        rows = max(n + more, 1)
        a, k = data(count, rows, n, dtype=kind), min(rows, n)
        m, info = put(be, a), parts.zeros(be, dtypes.int32, (count,))
        pivots = empty(be, dtypes.int32, (count, k))
        lu.lu(be, m, pivots, info, True)
        packed, exchanges = get(be, m), get(be, pivots, "int32")
        low = np.tril(packed[:, :, :k], -1) + np.eye(rows, k, dtype=kind)
        made = low @ np.triu(packed[:, :k])
        for z, s in itertools.product(range(count), reversed(range(k))):
            other = exchanges[z, s] - 1
            assert s <= other < rows
            made[z, [s, other]] = made[z, [other, s]]
        close(made, a, 1e-4 * n)
        assert np.abs(low).max() < 1.5  # not 1: pivots are largest by |re| + |im|
        assert not get(be, info, "int32").any()


@pytest.mark.parametrize("kind", KINDS)
def test_qr(be: Any, kind: str) -> None:
    for (count, n), more in itertools.product(SIZES, (0, 9, -4)):
        if n == 100 and more and is_gpu(be):
            continue  # a GPU's work-group takes seconds for each of these here
        rows = max(n + more, 1)
        a, k = data(count, rows, n, dtype=kind), min(rows, n)
        if n > 4:
            a[:, :, 3], a[:, 2:, 2] = 0, 0  # columns whose reflector is the identity
        m, v = put(be, a), parts.flat(empty(be, dtypes.BY_NAME[kind], (count, k, rows)), k, rows)
        tau = empty(be, dtypes.BY_NAME[kind], (count, k))
        blocks = qr.qr(be, m, v, tau)
        r = np.triu(get(be, m)[:, :k])
        for columns in {k, rows}:
            x = parts.identity(be, dtypes.BY_NAME[kind], count, rows, columns)
            qr.first_columns(be, blocks, x)
            q = get(be, x)
            close(dagger(q) @ q, np.broadcast_to(np.eye(columns), (count, columns, columns)), 1e-4)
            close(q[:, :, :k] @ r, a, 1e-4 * n)
            x = put(be, a)
            qr.multiply(be, blocks, x, adjoint=True)
            close(get(be, x)[:, :k], r, 1e-4 * n)


@pytest.mark.parametrize("kind", KINDS)
def test_substitution(be: Any, kind: str) -> None:
    flags = itertools.product((False, True), repeat=4)
    for (upper, unit, conjugate, by_rows), (count, n) in itertools.product(flags, SIZES):
        a, b = well_conditioned(count, n, kind), data(count, n, 19, seed=2, dtype=kind)
        if unit:
            a /= 2 * n
        m = np.triu(a) if upper else np.tril(a)
        if unit:
            m[:, np.arange(n), np.arange(n)] = 1
        x = parts.transposed(put(be, b.swapaxes(1, 2))) if by_rows else put(be, b)
        triangular.solve(be, put(be, a), x, upper=upper, unit=unit, conjugate=conjugate)
        found = get(be, parts.transposed(x)).swapaxes(1, 2) if by_rows else get(be, x)
        close(found, np.linalg.solve(m.conj() if conjugate else m, b), 1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_inverse_of_a_triangle(be: Any, kind: str) -> None:
    for unit, conjugate, (count, n) in itertools.product((False, True), (False, True), SIZES):
        a = well_conditioned(count, n, kind) / (2 * n if unit else 1)
        m = np.tril(a)
        if unit:
            m[:, np.arange(n), np.arange(n)] = 1
        x = parts.identity(be, dtypes.BY_NAME[kind], count, n, n)
        triangular.invert(be, put(be, a), x, unit=unit, conjugate=conjugate)
        found = get(be, x)
        close(found, np.linalg.inv(m.conj() if conjugate else m), 1e-4)
        assert not np.triu(found, 1).any()


@pytest.mark.parametrize("kind", ["int32", "float64", "complex128"])
def test_exchanges_side_by_side(be: Any, kind: str) -> None:
    """Contiguous rows are exchanged many numbers at a time: more than a vector, and the remainder."""
    a = data(2, 7, 37, dtype=kind)
    pivots = np.array([[3, 2, 7, 5, 5, 6, 7], [1, 7, 7, 4, 6, 7, 7]], "int32")
    for backwards in (False, True):
        x = parts.transposed(put(be, np.ascontiguousarray(a.swapaxes(1, 2))))
        exchanges = from_host(be, dtypes.int32, pivots)
        lu.exchange(be, x, exchanges, 1, 6, backwards=backwards)
        expected = a.copy()
        for z, s in itertools.product(range(2), range(5, 0, -1) if backwards else range(1, 6)):
            other = pivots[z, s] - 1
            expected[z, [s, other]] = expected[z, [other, s]]
        found = get(be, parts.transposed(x)).swapaxes(1, 2)
        np.testing.assert_array_equal(found, expected)


def test_the_first_bad_pivot_or_minor_is_told(be: Any) -> None:
    for at in (0, 2, 40):
        a = np.tile(np.eye(70, dtype="float32"), (2, 1, 1))
        a[1, at, at] = a[1, 60, 60] = 0
        for family in ("lu", "cholesky"):
            m, info = put(be, a), parts.zeros(be, dtypes.int32, (2,))
            if family == "lu":
                lu.lu(be, m, empty(be, dtypes.int32, (2, 70)), info, True)
            else:
                cholesky.cholesky(be, m, info)
            assert get(be, info, "int32").tolist() == [0, at + 1]


# ------------------------------------------------------------------------------------------- as functions of tensors


def laid_out(array: np.ndarray) -> list[Any]:
    """Return the same matrices row-major, column-major, and with gaps between elements."""
    wide = np.zeros((*array.shape[:-2], 2 * array.shape[-2], 2 * array.shape[-1]), array.dtype)
    wide[..., ::2, 1::2] = array
    columns = torch.tensor(np.ascontiguousarray(array.swapaxes(-1, -2))).mT
    return [torch.tensor(array), columns, torch.tensor(wide)[..., ::2, 1::2]]


def test_layouts_and_batches_that_broadcast() -> None:
    a, b = well_conditioned(6, 34, "float32").reshape(2, 3, 34, 34), data(3, 34, 5)
    for x, y in zip(laid_out(a), laid_out(b), strict=True):
        close(linalg.solve(x, y), np.linalg.solve(a, b), 1e-4)
        close(linalg.solve_triangular(x, y, upper=True), np.linalg.solve(np.triu(a), b), 1e-4)
        close(linalg.solve(x[:, :1], y), np.linalg.solve(a[:, :1], b), 1e-4)
        close(
            torch.cholesky_solve(y, x.tril()),
            np.linalg.solve(np.tril(a) @ dagger(np.tril(a)), b),
            1e-4,
        )
        close(linalg.det(x / 70), np.linalg.det(a / 70), 1e-4)
    x, y = torch.tensor(a[0]), torch.tensor(b)
    assert linalg.solve_triangular(x, y, upper=True).stride() == (170, 1, 34)
    assert linalg.solve_triangular(x, y.mT, upper=True, left=False).stride() == (170, 1, 5)
    assert linalg.solve(x, y).stride() == (170, 1, 34)
    assert linalg.solve(x, y.mT, left=False).stride() == (170, 34, 1)
    assert linalg.qr(x)[1].stride() == linalg.cholesky(x).stride() == (1156, 1, 34)


@pytest.mark.parametrize("kind", KINDS)
def test_by_lu_from_both_sides(kind: str) -> None:
    a, b = well_conditioned(2, 40, kind), data(2, 40, 7, dtype=kind)
    given = linalg.lu_factor(torch.tensor(a))
    spread = torch.zeros(2, 80, dtype=torch.int32)[:, ::2]
    assert (
        linalg.lu_solve(given.LU, spread.copy_(given.pivots), torch.tensor(b)).tolist()
        == linalg.lu_solve(*given, torch.tensor(b)).tolist()
    )
    assert torch.lu_unpack(given.LU, spread)[0].tolist() == torch.lu_unpack(*given)[0].tolist()
    for left, adjoint in itertools.product((True, False), repeat=2):
        m, right = dagger(a) if adjoint else a, b if left else b.swapaxes(1, 2)
        found = linalg.lu_solve(*given, torch.tensor(right), left=left, adjoint=adjoint)
        found = found.numpy(force=True)
        close(m @ found if left else found @ m, right, 1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_products_with_reflectors(kind: str) -> None:
    a, c = data(2, 90, 80, dtype=kind), data(2, 90, 5, dtype=kind)
    packed, tau = torch.geqrf(torch.tensor(a))
    q = linalg.qr(torch.tensor(a), mode="complete")[0].numpy(force=True)
    close(linalg.householder_product(packed, tau), q[..., :80], 1e-4)
    close(
        linalg.householder_product(packed, tau[..., :20])[..., 20:].abs().sum(-2) > 0,
        [[True] * 60] * 2,
    )
    for left, transpose in itertools.product((True, False), repeat=2):
        m, x = dagger(q) if transpose else q, c if left else c.swapaxes(1, 2)
        found = torch.ormqr(packed, tau, torch.tensor(x), left=left, transpose=transpose)
        close(found, m @ x if left else x @ m, 1e-4)


def test_what_is_singular_goes_on_to_infinities() -> None:
    a = torch.tensor([[[1.0, 2.0], [2.0, 4.0]], [[1.0, 0.0], [0.0, 1.0]]])
    result, info = linalg.solve_ex(a, torch.ones(2, 2, 1))
    assert info.tolist() == [2, 0]
    assert not result[0].isfinite().all()
    assert result[1].flatten().tolist() == [1.0, 1.0]
    assert linalg.det(a).tolist() == [0.0, 1.0]
    assert linalg.slogdet(a).logabsdet.tolist() == [-float("inf"), 0.0]
    with pytest.raises(linalg.LinAlgError, match=r"\(Batch element 0\): The solver failed because"):
        linalg.solve(a, torch.ones(2, 2, 1))
    with pytest.raises(
        linalg.LinAlgError, match=r"\(Batch element 1\): The diagonal element 1 is zero"
    ):
        torch.cholesky_inverse(torch.stack([torch.eye(2), torch.zeros(2, 2)]))


def test_many_small_ones_are_what_each_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matrices as lanes of vectors, some singular, with NaN or not positive definite, get the same bits as when
    factorized and solved one by one."""
    monkeypatch.setattr("cltensor.codegen.region.GRAIN", 16)  # several work-items
    a = torch.tensor(data(70, 4, 4))
    a[3] = 0
    a[5, 2] = a[5, 1]
    a[11, 1, 1] = a[13, 0, 0] = a[14, 2, 0] = float("nan")
    p = a @ a.mT + 0.1 * torch.eye(4)
    p[7] = -p[7]
    for fn, x in (
        (linalg.lu_factor_ex, a), (linalg.cholesky_ex, p), (linalg.inv_ex, a), (lambda x: (linalg.det(x),), a),
        (lambda x: (linalg.solve_triangular(x, x[..., :2], upper=True),), a),
        (lambda x: (linalg.solve_triangular(x, x[..., :2], upper=False, unitriangular=True),), a),
        (lambda x: (linalg.solve_triangular(x, x[:, :2], upper=False, left=False),), a),
    ):  # fmt: skip
        single = [fn(x[z : z + 1]) for z in range(len(x))]
        for many, *each in zip(fn(x), *single, strict=True):
            np.testing.assert_array_equal(many.numpy(force=True), torch.cat(each).numpy(force=True))


def test_nan_goes_where_it_goes_in_torch() -> None:
    nan = float("nan")
    for a, pivots, packed in (
        ([[nan, 2.0], [3.0, 4.0]], [1, 2], [[nan, 2.0], [nan, nan]]),
        ([[1.0, 2.0], [nan, 4.0]], [1, 2], [[1.0, 2.0], [nan, nan]]),
    ):
        found = linalg.lu_factor_ex(torch.tensor(a))
        assert found.pivots.tolist() == pivots
        np.testing.assert_array_equal(found.LU.tolist(), packed)
        assert found.info.item() == 0
    factor, info = linalg.cholesky_ex(torch.tensor([[1.0, 2.0], [nan, 4.0]]))
    np.testing.assert_array_equal(factor.tolist(), [[1.0, 0.0], [nan, nan]])
    assert info.item() == 2


def test_nothing_to_compute() -> None:
    for shape in ((0, 0), (2, 0, 0), (40, 0, 0), (0, 3, 3)):
        a = torch.zeros(*shape)
        assert (
            linalg.inv(a).shape == linalg.cholesky(a).shape == linalg.lu_factor(a).LU.shape == shape
        )
        assert linalg.det(a).tolist() == ([1.0] * shape[0] if len(shape) > 2 else 1.0)
    assert linalg.qr(torch.zeros(3, 0), mode="complete").Q.tolist() == torch.eye(3).tolist()
    assert linalg.solve(torch.eye(3), torch.zeros(3, 0)).shape == (3, 0)


def test_shapes_are_known_without_values() -> None:
    a = torch.empty(2, 40, 40, device="meta")
    assert linalg.inv(a).shape == linalg.cholesky(a).shape == linalg.solve(a, a).shape == a.shape
    assert linalg.qr(a[..., :9], mode="complete").Q.shape == (2, 40, 40)
    assert linalg.lu_factor(a).pivots.shape == (2, 40)


def test_calls_are_replayed() -> None:
    a, b = torch.tensor(well_conditioned(1, 70, "float32")[0]), torch.tensor(data(70, 3))
    found = [linalg.solve(a, b) for _ in range(3)]
    before = torch.stats()
    again = linalg.solve(a, b)
    after = torch.stats()
    assert after["replays"] > before["replays"]
    assert after["builds"] == before["builds"]
    assert all(x.tolist() == again.tolist() for x in found)


def test_a_function_is_one_call_to_replay() -> None:
    """A function of any number of steps is replayed as one call. LU, solve and the like are followed by a host read."""
    a, b = torch.tensor(well_conditioned(1, 40, "float32")[0]), torch.tensor(data(40, 3))
    made, packed = linalg.lu_factor(a), torch.geqrf(a)
    for fn in (
        lambda: linalg.lu(a),
        lambda: linalg.inv(a),
        lambda: linalg.solve(a, b[:, 0]),
        lambda: linalg.cholesky(a.diag().diag()),
        lambda: torch.cholesky_inverse(a),
        lambda: linalg.qr(a),
        lambda: linalg.householder_product(*packed),
        lambda: torch.ormqr(*packed, b),
        lambda: linalg.lstsq(a, b),
        lambda: linalg.lstsq(a, b, driver="gels"),
        lambda: torch.lu_unpack(*made, unpack_data=False),
        lambda: linalg.matrix_power(a, 5),
    ):
        for _ in range(2):
            fn()
        before = torch.stats()["replays"]
        fn()
        assert torch.stats()["replays"] - before <= 2


def test_a_power_is_that_of_products() -> None:
    a = torch.tensor(data(3, 5, 5)) / 3
    for n in (2, 3, 7, 12):
        want = a
        for _ in range(n - 1):
            want = want @ a
        for _ in range(3):
            close(linalg.matrix_power(a, n), want, 1e-4)
    inverse = linalg.matrix_power(a + torch.eye(5), -2)
    close(inverse @ (a + torch.eye(5)) @ (a + torch.eye(5)), torch.eye(5).expand(3, 5, 5), 1e-3)


def test_least_squares_by_what_is_beyond_doubt() -> None:
    """QR's solution is used if a bound, or a second, closer one, shows that no singular value is too small; otherwise
    the SVD is computed."""
    n = 48
    u, v = (np.linalg.qr(data(n, n, seed=s, dtype="float64"))[0] for s in (1, 2))
    s = np.ones(n)
    s[-1] = 1 / 50
    a, b = torch.tensor((u * s) @ v), torch.tensor(data(n, 2, dtype="float64"))
    for rcond, whole in ((1 / 1000, True), (1 / 200, True), (1 / 40, False)):
        for scale in (1.0, 1e-120, 1e120):
            found = linalg.lstsq(a * scale, b, rcond)
            kept = s > rcond
            want = (v.T[:, kept] / s[kept]) @ (u.T[kept] @ b.numpy(force=True))
            close(found.solution * scale, want, 1e-8)
            assert found.rank.item() == n - (not whole)
            by_qr = factors.least_squares_if_certain(a * scale, b, rcond)
            assert (by_qr is not None) == whole
    ranks = linalg.lstsq(torch.stack([a, a * 0]), b, 1 / 1000).rank
    assert ranks.tolist() == [n, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_least_squares(kind: str) -> None:
    for m, n in ((40, 7), (7, 40), (33, 33), (3, 0), (0, 3)):
        a, b = data(2, m, n, dtype=kind), data(2, m, 2, seed=3, dtype=kind)
        a[:, range(min(m, n)), range(min(m, n))] += m
        found = linalg.lstsq(torch.tensor(a), torch.tensor(b))
        want = np.linalg.pinv(a) @ b
        close(found.solution, want, 1e-4)
        assert found.rank.tolist() == [min(m, n)] * 2
        assert found.residuals.shape == (0,)
        by_rank = linalg.lstsq(torch.tensor(a), torch.tensor(b), driver="gels")
        close(by_rank.solution, want, 1e-4)
        if m > n:
            close(by_rank.residuals, (np.abs(a @ want - b) ** 2).sum(1), 1e-3)
    wide = linalg.lstsq(torch.ones(3, 1, 1) + torch.eye(4), torch.ones(4, 2))
    assert wide.solution.shape == (3, 4, 2)
    assert wide.rank.tolist() == [4] * 3


@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_ldl(kind: str, hermitian: bool) -> None:
    """The factors multiply to A, in any layout; zeros and small numbers on the diagonal lead to 2 x 2 blocks."""
    for (count, n), size in itertools.product(SIZES, (1, 1e-2, 0)):
        a = data(count, n, n, dtype=kind)
        a = a + (dagger(a) if hermitian else a.swapaxes(1, 2))
        a[:, range(n), range(n)] = np.float32(size) * a[:, range(n), range(n)].real + (n == 1)
        b = data(count, n, 5, seed=2, dtype=kind)
        for x, y in zip(laid_out(a), laid_out(b), strict=True):
            packed, pivots, info = linalg.ldl_factor_ex(x, hermitian=hermitian)
            assert not info.any() and not packed.triu(1).any()
            assert n == 1 or size or (pivots < 0).any()
            found = linalg.ldl_solve(packed, pivots, y, hermitian=hermitian)
            rest = (a @ found.numpy(force=True) - b) / (np.abs(a).max() * found.abs().max().item())
            assert np.abs(rest).max() < 1e-6 * n
    solved = linalg.ldl_solve(packed[:1], pivots[:1].long(), y, hermitian=hermitian)
    alone = linalg.ldl_solve(packed[0].mT.contiguous().mT, pivots[0], y[1], hermitian=hermitian)
    np.testing.assert_array_equal(solved[1].numpy(force=True), alone.numpy(force=True))


def test_ldl_of_what_has_no_factors() -> None:
    nan = float("nan")
    a = torch.tensor([[[0.0, 0.0], [0.0, 2.0]], [[nan, 1.0], [1.0, 2.0]], [[1.0, 2.0], [2.0, 4.0]]])
    _, pivots, info = linalg.ldl_factor_ex(a)
    assert pivots.tolist() == [[1, 2], [1, 2], [2, 2]]
    assert info.tolist() == [1, 1, 2]
    with pytest.raises(RuntimeError, match="a zero pivot at 2"):
        linalg.ldl_factor_ex(a, check_errors=True)
    with pytest.raises(RuntimeError, match="pivots out of range"):
        linalg.ldl_solve(a, torch.tensor([[1, 3]] * 3), a)
    for shape in ((0, 0), (2, 0, 0), (0, 3, 3)):
        packed, pivots = linalg.ldl_factor(torch.zeros(*shape))
        assert packed.shape == shape and pivots.shape == shape[:-1]
        assert linalg.ldl_solve(packed, pivots, torch.zeros(shape)).shape == shape
    packed, pivots = linalg.ldl_factor(torch.empty(2, 40, 40, device="meta"))
    assert linalg.ldl_solve(packed, pivots, packed).shape == (2, 40, 40)
