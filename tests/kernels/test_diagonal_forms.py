"""Eigenvalues of Hermitian matrices and singular values by kernels, both schedules, against numpy: with repeated,
vanishing and widely spread values."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np
import pytest
from support import close, data

import cltensor as torch
from cltensor import dtypes, linalg
from cltensor.codegen.factor import condense, conquer, jacobi, parts, qr, rotations
from cltensor.codegen.operand import Operand
from cltensor.codegen.region import empty, from_host, is_gpu

# Batch size and rows of the matrices: one number, part of a vector, one past a panel.
SIZES = [(1, 1), (3, 5), (2, 33)]
KINDS = ["float32", "complex64"]


def dagger(a: np.ndarray) -> np.ndarray:
    return a.swapaxes(-1, -2).conj()


def hermitian(*shape: int, kind: str = "float32") -> np.ndarray:
    a = data(*shape, dtype=kind)
    return a + dagger(a)


def get(be: Any, x: Operand) -> np.ndarray:
    return be.read(x.buffer, 0, x.nbytes).view(x.dtype.name).reshape(x.shape)


def product(be: Any, reflectors: tuple[Operand, Operand], first: int, m: int) -> np.ndarray:
    """Return the product of the reflectors as a matrix (count, m, m)."""
    vectors, inverse = reflectors
    count = vectors.shape[0]
    x = parts.identity(be, vectors.dtype, count, m, m)
    if m > first:
        below = parts.part(x, (first, m), (0, m))
        qr.multiply(be, qr.blocks_of(be, vectors, inverse), below, adjoint=False)
    return get(be, x._replace(shape=(count, m, m))).swapaxes(1, 2)


def narrow(made: condense.Condensed, be: Any, upper_alone: bool) -> np.ndarray:
    d, e = get(be, made.diagonal), get(be, made.beside)[:, :-1]
    full = np.stack([np.diag(x) + np.diag(y, 1) for x, y in zip(d, e, strict=True)])
    return full if upper_alone else full + np.triu(full, 1).swapaxes(1, 2)


@pytest.fixture(params=["together", "step by step"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have one work-group process a whole matrix, or divide its products among several."""
    if request.param != "together":
        monkeypatch.setattr(condense, "_SMALL", 0)
        monkeypatch.setattr(condense, "_ALONE", 0)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("kind", KINDS)
def test_hermitian_matrices_become_tridiagonal(be: Any, kind: str) -> None:
    # The last ones: two strips are updated. A GPU's work-group takes seconds for the largest here.
    for count, n in [*SIZES, (1, 70), *[(1, 165)] * (not is_gpu(be))]:
        a = hermitian(count, n, n, kind=kind)
        made = condense.tridiagonal(
            be, parts.by_columns(be, from_host(be, dtypes.BY_NAME[kind], a))
        )
        q = product(be, made.left, 1, n)
        close(dagger(q) @ a @ q, narrow(made, be, False), 1e-5 * n + 1e-5)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("kind", KINDS)
def test_matrices_become_bidiagonal(be: Any, kind: str) -> None:
    for (count, n), more in zip([*SIZES, (1, 70)], (0, 2, 0, 20), strict=True):
        a = data(count, n + more, n, dtype=kind)
        made = condense.bidiagonal(be, parts.by_columns(be, from_host(be, dtypes.BY_NAME[kind], a)))
        assert made.right is not None
        p, q = product(be, made.left, 0, n + more), product(be, made.right, 1, n)
        found = dagger(p) @ a @ q
        close(found[:, :n], narrow(made, be, True), 1e-5 * n + 1e-5)
        close(found[:, n:], np.zeros((count, more, n)), 1e-5 * n + 1e-5)


@pytest.mark.parametrize("rooms", [1 << 24, 1], ids=["room for all", "in many parts"])
@pytest.mark.parametrize("kind", ["eigenvalues", "singular_values"])
def test_rotations(be: Any, monkeypatch: pytest.MonkeyPatch, kind: str, rooms: int) -> None:
    monkeypatch.setattr(rotations, "_NUMBERS", rooms)
    for (count, n), lower in zip([*SIZES, (1, 70)], (False, True) * 2, strict=True):
        d, e = data(count, n), data(count, n, seed=1)
        full = np.stack([np.diag(x) + np.diag(y[:-1], 1) for x, y in zip(d, e, strict=True)])
        if kind == "eigenvalues":
            full += np.triu(full, 1).swapaxes(1, 2)
        elif lower:
            full = full.swapaxes(1, 2)
        x, y = (from_host(be, dtypes.float32, z) for z in (d, e))
        lists, products = rotations.begin(be, kind, x, True)
        for times in range(1000):
            rotations.go_on(be, kind, x, y, lists, products, lower and not times)
            states = be.read(lists.states.buffer, 0, lists.states.nbytes).view("int32")
            if not states.reshape(count, 3)[:, 1].any():
                break
        assert not states.reshape(count, 3)[:, 1].any()
        assert (times > 0) == (rooms == 1 and n > 1)
        assert products is not None
        vectors = get(be, products)[:, :, :n].reshape(-1, count, n, n)
        right, left = vectors[0].swapaxes(1, 2), vectors[-1]
        close(left @ full @ right, np.stack([np.diag(z) for z in get(be, x)]), 2e-6 * n + 1e-6)
        plain = from_host(be, dtypes.float32, d)
        beside = from_host(be, dtypes.float32, e)
        lists, products = rotations.begin(be, kind, plain, False)
        rotations.go_on(be, kind, plain, beside, lists, None, lower)
        close(*(np.sort(abs(get(be, z))) for z in (plain, x)), 2e-6 * n)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="others are as fast")
def test_what_rotations_make_fades_to_zeros(be: Any) -> None:
    """Products of rotations far from the diagonal would be denormal, and take Intel's processors most of the time."""
    if not be.info.is_pocl:
        pytest.skip("no builtin sets the mode")
    x, y = (from_host(be, dtypes.float32, data(1, 150, seed=seed)) for seed in (0, 1))
    lists, products = rotations.begin(be, "eigenvalues", x, True)
    assert products is not None
    rotations.go_on(be, "eigenvalues", x, y, lists, products)
    sizes = np.abs(get(be, products))
    assert sizes[sizes > 0].min() >= np.finfo("float32").tiny
    mode = be.kernel("mode", "__kernel void mode(__global float *x) { x[0] *= 0.5f; }", (None,))
    buffer = from_host(be, dtypes.float32, np.full(1, 1e-38, "float32")).buffer
    be.launch(mode, (1,), (1,), [buffer])
    assert be.read(buffer, 0, 4).view("float32")[0] > 0  # the thread's denormal mode is restored


def test_room_for_rotations_is_given_by_rows_of_whole_vectors(be: Any) -> None:
    lists, products = rotations.begin(be, "eigenvalues", empty(be, dtypes.float32, (3, 5)), True)
    assert products is not None
    assert products.shape[:2] == (3, 5)
    assert products.shape[2] % parts.lanes_of(be, dtypes.float32) == 0
    assert lists.states.shape == (3, 3)


# ------------------------------------------------------------------------------------------- as functions of tensors


def check(a: np.ndarray, tol: float) -> None:
    """Assert that eigenvectors (of the Hermitian part) and singular vectors of square matrices are orthonormal and give
    back the matrix."""
    n, size = a.shape[-1], max(float(np.abs(a).max()), 1e-30)
    h = a / 2 + dagger(a) / 2
    values, vectors = (x.numpy(force=True) for x in linalg.eigh(torch.tensor(h)))
    close((vectors * (values / size)[..., None, :]) @ dagger(vectors), h / size, tol)
    u, s, vh = (x.numpy(force=True) for x in linalg.svd(torch.tensor(a)))
    close((u * (s / size)[..., None, :]) @ vh, a / size, tol)
    for q in (vectors, u, vh):
        close(dagger(q) @ q, np.broadcast_to(np.eye(n), q.shape), tol)
    assert (np.diff(values) >= 0).all()
    assert (np.diff(s) <= 0).all() and (s >= 0).all()


def check_of(*more: np.ndarray) -> None:
    """Check matrices with vanishing, repeated and the given values, both diagonal and full."""
    n = len(more[0])
    q = np.linalg.qr(data(n, n))[0]
    few = np.r_[np.ones(3), np.zeros(n - 3)]
    for d in (np.zeros(n), np.ones(n), np.repeat([3.0, -2.0], n // 2), few, *more):
        for a in (np.diag(d), (q * d) @ q.T):
            check(a.astype("float32"), 1e-5)


@pytest.mark.parametrize("kind", ["float32", "float64", "complex64", "complex128"])
def test_dtypes(kind: str) -> None:
    check(data(2, 40, 40, dtype=kind), 1e-4 if dtypes.BY_NAME[kind].to_real().itemsize == 4 else 1e-13)  # fmt: skip


def test_values_that_repeat_vanish_or_differ_by_orders_of_magnitude() -> None:
    n = 20
    check_of(10.0 ** -np.arange(n))
    check(np.triu(np.ones((n, n), "float32")), 1e-5)
    check(np.eye(n, k=1, dtype="float32"), 1e-5)
    for size in (1e-36, 1e-20, 1e19, 1e36):
        check(data(n, n) * np.float32(size), 1e-5)
    small = linalg.svdvals(torch.tensor(np.diag([1.0, 1e-20, 1e-30]).astype("float32")))
    np.testing.assert_allclose(small.tolist(), [1.0, 1e-20, 1e-30], rtol=1e-5)


@pytest.mark.usefixtures("poisoned")
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_small_matrices_side_by_side(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small matrices as lanes of vectors have the values that reflectors and rotations find, whatever the triangle,
    size, rank and layout."""
    monkeypatch.setattr("cltensor.codegen.region.GRAIN", 16)  # several work-items
    tol = 2e-6 if kind == "float32" else 4e-15
    for count, n in ((1, 1), (3, 2), (1, 8), (37, 3), (21, 4), (67, 11), (2, 16)):
        a = data(count, n, n, dtype=kind)
        v = data(n, 1, dtype=kind)
        a[0] = v * v.T
        a[count // 2] *= 1e-30
        a[-1, n // 2 :] = 0
        for side, triangle in (("L", np.tril), ("U", np.triu)):
            h = triangle(a) + dagger(triangle(a, -1 if side == "L" else 1))
            given = (
                torch.tensor(np.where(triangle(np.ones((n, n))) == 0, np.nan, a)).mT.contiguous().mT
            )
            values, vectors = linalg.eigh(given, side)
            close(linalg.eigvalsh(given, side), values, tol)
            with monkeypatch.context() as m:
                m.setattr(jacobi, "MOST", 0)
                size = np.abs(h).max((1, 2))[:, None] + 1e-37
                close(values.numpy(force=True) / size, linalg.eigvalsh(given, side).numpy(force=True) / size, n * tol)  # fmt: skip
            assert values.dtype is vectors.dtype is given.dtype
            assert vectors.stride() == (n * n, 1, n)
            w, q = values.numpy(force=True), vectors.numpy(force=True)
            assert (np.diff(w) >= 0).all()
            close(dagger(q) @ q, np.broadcast_to(np.eye(n), q.shape), n * tol)
            close(h / size[..., None] @ q, q * (w / size)[:, None, :], n * tol)


def test_small_matrices_that_are_not_finite_or_too_small_for_squares() -> None:
    a = torch.tensor(np.stack([hermitian(3, 3)] * 20))
    assert linalg.eigvalsh(a * 1e-40).ne(0).all()
    close(linalg.eigvalsh(a * 1e37) / 1e37, linalg.eigvalsh(a), 1e-5)
    a[17, 2, 0] = float("inf")
    with pytest.raises(
        linalg.LinAlgError, match=r"linalg.eigh: \(Batch element 17\): The algorithm"
    ):
        linalg.eigh(a)
    assert linalg.eigh(a, "U")[1].isfinite().all()


@pytest.mark.parametrize("kind", KINDS)
def test_vectors_of_what_has_no_rank_are_orthonormal(kind: str) -> None:
    """In a matrix of low rank the remaining part gets smaller with each step, down to denormal numbers."""
    for n in (30, 100):
        a = np.ones((n, n), kind)
        check(a, 5e-6 * n)  # the matrix's norm is n
        a[5] += data(n, dtype=kind) * 1e-3
        check(a, 5e-6 * n)


@pytest.fixture
def divided(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use divide and conquer for small matrices, too, with several levels."""
    monkeypatch.setattr(jacobi, "MOST", 0)
    monkeypatch.setattr(conquer, "MANY", 8)
    monkeypatch.setattr(conquer, "LEAF", 4)


@pytest.mark.usefixtures("divided")
@pytest.mark.parametrize("kind", ["float32", "float64", "complex64"])
def test_divide_and_conquer(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tol = 1e-5 if dtypes.BY_NAME[kind].to_real().itemsize == 4 else 1e-13
    for shape in ((8, 8), (3, 9, 9), (31, 31), (64, 64)):
        a = data(*shape, dtype=kind)
        check(a, tol)
        given = torch.tensor(a + dagger(a)), torch.tensor(a)
        found = linalg.eigh(given[0])[0], linalg.svd(given[1])[1]
        with monkeypatch.context() as m:
            m.setattr(conquer, "MANY", 1000)
            plain = linalg.eigh(given[0])[0], linalg.svd(given[1])[1]
        for one, other in zip(found, plain, strict=True):
            close(one / other.abs().amax(), other / other.abs().amax(), tol)
    for shape in ((20, 13), (13, 20), (2, 12, 17), (40, 11)):
        a = data(*shape, dtype=kind)
        u, s, vh = (x.numpy(force=True) for x in linalg.svd(torch.tensor(a), full_matrices=False))
        close((u * s[..., None, :]) @ vh, a, 10 * tol)


@pytest.mark.usefixtures("divided")
def test_halves_with_the_same_values_and_what_couples_nothing() -> None:
    """Merges in which all or most values are deflated: values stay, vectors are rotated."""
    n = 40
    check_of(1 + 1e-6 * np.arange(n), 2.0 ** -np.arange(n))
    for a in (np.ones((n, n)), np.triu(np.ones((n, n)))):
        check(a.astype("float32"), 1e-4)  # elements are 1; the norm is some n
    for a in (
        np.eye(n, k=1),
        2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1),
        np.diag(np.abs(np.arange(n) - n // 2.0)) + np.eye(n, k=1) + np.eye(n, k=-1),
        np.kron(np.eye(4), data(n // 4, n // 4)),
    ):
        check(a.astype("float32"), 1e-5)
    for size in (1e-36, 1e19):
        check(data(n, n) * np.float32(size), 1e-5)


@pytest.mark.usefixtures("divided")
def test_what_is_divided_is_refused_and_known_by_its_shape_as_other_matrices() -> None:
    bad = torch.stack([torch.eye(20), torch.full((20, 20), float("nan"))])
    with pytest.raises(linalg.LinAlgError, match=r"linalg.svd: \(Batch element 1\): .* contained"):
        linalg.svd(bad)
    with pytest.raises(linalg.LinAlgError, match=r"linalg.eigh: .* \(error code: 19\)"):
        linalg.eigh(bad[1])
    a = torch.empty(2, 20, 20, device="meta")
    assert [x.shape for x in linalg.svd(a)] == [(2, 20, 20), (2, 20), (2, 20, 20)]
    assert [x.shape for x in linalg.eigh(a)] == [(2, 20), (2, 20, 20)]


def test_large_matrices_are_divided() -> None:
    assert conquer.divided(1000) == (16, 63)
    assert conquer.divided(conquer.MANY)[0] > 1
    check(data(conquer.MANY + 3, conquer.MANY + 3), 1e-4)


@pytest.mark.parametrize("shape", [(9, 5), (7, 5), (5, 7), (2, 5, 9)], ids=str)
def test_long_and_wide_matrices(shape: tuple[int, ...]) -> None:
    for kind in KINDS:
        a = data(*shape, dtype=kind)
        for full in (False, True):
            u, s, vh = linalg.svd(torch.tensor(a), full_matrices=full)
            k = s.shape[-1]
            assert u.shape[-1] == (shape[-2] if full else k)
            assert vh.shape[-2] == (shape[-1] if full else k)
            assert u.stride()[-2:] == (1, shape[-2]) and vh.stride()[-2:] == (1, vh.shape[-2])
            u, s, vh = (x.numpy(force=True) for x in (u, s, vh))
            close((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], a, 1e-5)
            for q in (u, dagger(vh)):
                eye = np.eye(q.shape[-1])
                close(dagger(q) @ q, np.broadcast_to(eye, (*shape[:-2], *eye.shape)), 1e-5)
        close(linalg.svdvals(torch.tensor(a)), s, 1e-5)


def test_one_triangle_is_read() -> None:
    a = hermitian(6, 6, kind="complex64")
    want = np.linalg.eigvalsh(a)
    for triangle, side in ((np.tril, "L"), (np.triu, "U")):
        given = triangle(a) + np.where(triangle(np.ones((6, 6))) == 0, np.nan, 0)
        given[range(6), range(6)] += 5j  # the diagonal of a Hermitian matrix is real
        close(linalg.eigvalsh(torch.tensor(given.astype("complex64")), side), want, 1e-5)
        assert linalg.eigh(torch.tensor(given.astype("complex64")), side)[1].isfinite().all()


def test_what_is_not_finite_is_refused() -> None:
    for bad in (float("nan"), float("inf")):
        a = torch.stack([torch.eye(4), torch.full((4, 4), bad)])
        with pytest.raises(
            linalg.LinAlgError,
            match=r"linalg.svd: \(Batch element 1\): The algorithm failed to converge because the input matrix contained",
        ):
            linalg.svd(a)
        with pytest.raises(linalg.LinAlgError, match=r"linalg.eigh: The algorithm failed"):
            linalg.eigvalsh(a[1])


def test_nothing_to_find() -> None:
    for shape in ((0, 0), (2, 0, 0), (0, 3, 3), (3, 0), (0, 3)):
        u, s, vh = linalg.svd(torch.zeros(*shape))
        assert (*u.shape[:-2], u.shape[-1], vh.shape[-2]) == shape
        assert s.shape == (*shape[:-2], min(shape[-2:]))
        assert linalg.svdvals(torch.zeros(*shape)).shape == s.shape
        if shape[-1] == shape[-2]:
            assert linalg.eigh(torch.zeros(*shape))[1].shape == shape


def test_shapes_are_known_without_values() -> None:
    a = torch.empty(2, 7, 4, device="meta")
    assert [x.shape for x in linalg.svd(a)] == [(2, 7, 7), (2, 4), (2, 4, 4)]
    assert [x.shape for x in linalg.eigh(a.mT @ a)] == [(2, 4), (2, 4, 4)]
    assert linalg.pinv(a).shape == (2, 4, 7)


def test_calls_are_replayed() -> None:
    a = torch.tensor(hermitian(20, 20))
    for fn in (linalg.eigh, linalg.svd):
        for _ in range(3):
            fn(a)
        before = torch.stats()
        found = fn(a)
        after = torch.stats()
        assert after["replays"] - before["replays"] == 3  # condensed form, rotations, vectors
        assert after["builds"] == before["builds"]
        assert all(x.tolist() == y.tolist() for x, y in zip(found, fn(a), strict=True))


def test_pseudo_inverses_and_ranks() -> None:
    a = data(3, 6, 2) @ data(3, 2, 5)
    close(linalg.pinv(torch.tensor(a)), np.linalg.pinv(a, rcond=1e-5), 1e-3)
    h = a @ dagger(a)
    close(linalg.pinv(torch.tensor(h), hermitian=True), np.linalg.pinv(h, 1e-5, True), 1e-2)
    assert linalg.matrix_rank(torch.tensor(a)).tolist() == [2, 2, 2]
    assert linalg.matrix_rank(torch.tensor(h), hermitian=True).tolist() == [2, 2, 2]
    assert linalg.matrix_rank(torch.diag(torch.tensor([3.0, 1.0, 0.1])), atol=0.5).item() == 2
    of_each = torch.tensor([1.5, 0.0])
    many = torch.diag(torch.tensor([2.0, 1.0])).expand(2, 2, 2)
    assert linalg.matrix_rank(many, atol=of_each).tolist() == [1, 2]
    close(linalg.pinv(many, atol=of_each)[0], [[0.5, 0.0], [0.0, 0.0]])
    assert linalg.matrix_rank(torch.zeros(2, 0, 3)).tolist() == [0, 0]


def test_least_squares_of_a_lower_rank() -> None:
    found = linalg.lstsq(torch.ones(5, 3), torch.ones(5, 1))
    assert found.rank.item() == 1
    close(found.solution, np.full((3, 1), 1 / 3), 1e-5)
    a, b = data(2, 6, 3), data(2, 6, 2, seed=1)
    found = linalg.lstsq(torch.tensor(a), torch.tensor(b), driver="gelsd")
    close(found.solution, np.linalg.pinv(a) @ b, 1e-4)
    close(found.singular_values, np.linalg.svd(a, compute_uv=False), 1e-5)
    assert found.residuals.shape == (2, 2)
