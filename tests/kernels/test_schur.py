"""Eigenvalues of general matrices by kernels, on both schedules, against numpy: random, triangular, defective, badly
scaled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import close, data

import cltensor as torch
from cltensor import dtypes, linalg
from cltensor.codegen.factor import parts, qr, schur
from cltensor.codegen.region import empty, from_host

KINDS = ["float32", "complex64"]


def get(be: Any, x: Any) -> np.ndarray:
    """Return a dense operand's or padded matrices' numbers."""
    if len(x.shape) == 3:
        x, n = x._replace(shape=(x.shape[0], x.shape[2], x.strides[2])), x.shape[1]
        stored = be.read(x.buffer, 0, x.nbytes).view(x.dtype.name).reshape(x.shape)
        return stored[:, :, :n].swapaxes(1, 2)
    return be.read(x.buffer, 0, x.nbytes).view(x.dtype.name).reshape(x.shape)


def paired(found: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest distance of eigenvalues, each paired with the nearest of those left."""
    left, most = list(expected), 0.0
    for value in found:
        near = int(np.argmin(np.abs(np.array(left) - value)))
        most = max(most, abs(left.pop(near) - value))
    return most


def exact(a: np.ndarray) -> np.ndarray:
    return np.linalg.eigvals(a.astype("complex128"))


@pytest.mark.parametrize("kind", KINDS)
def test_matrices_become_hessenberg(be: Any, kind: str) -> None:
    for count, n in [(1, 1), (3, 2), (3, 5), (2, 33)]:
        a = data(count, n, n, dtype=kind)
        if n > 2:
            a[0, 2] *= 1 << 12  # a row and its column to be balanced
            a[0, :, 2] /= 1 << 12
        h, v, inverse, places, scales = schur.hessenberg(be, from_host(be, dtypes.BY_NAME[kind], a))
        q = parts.identity(be, h.dtype, count, n, n)
        if n > 1:
            below = parts.part(q, (1, n), (0, n))
            qr.multiply(be, qr.blocks_of(be, v, inverse), below, adjoint=False)
        form, basis, by = get(be, h), get(be, q), get(be, scales)[:, None, :]
        balanced = a / by.swapaxes(1, 2) * by
        close(basis.conj().swapaxes(1, 2) @ balanced @ basis, form, 1e-5 * n)
        assert (np.tril(form, -2) == 0).all()
        assert (get(be, places) == np.arange(n)).all()
        if n > 2:
            assert by[0, 0, 2] >= 256


@pytest.mark.parametrize("steps", [1 << 17, 1], ids=["in one launch", "step by step"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_matrix_becomes_triangular(
    be: Any, monkeypatch: pytest.MonkeyPatch, kind: str, steps: int
) -> None:
    """A GPU's launches end after some steps, and the next one goes on."""
    monkeypatch.setattr(schur, "_STEPS", steps)
    monkeypatch.setattr(schur, "is_gpu", lambda backend: True)
    n = 9
    a = data(3, n, n, dtype=kind)
    h, *_ = schur.hessenberg(be, from_host(be, dtypes.BY_NAME[kind], a))
    before = get(be, h)
    states, values = schur.begin(be, h)
    z, launches = parts.identity(be, h.dtype, 3, n, n), 0
    while not launches or get(be, states)[:, 0].any():
        assert (get(be, states)[:, 0] < 2).all()
        schur.go_on(be, h, states, values, z)
        launches += 1
    assert (launches > 5) == (steps == 1)
    form, basis = get(be, h), get(be, z)
    close(basis.conj().swapaxes(1, 2) @ before @ basis, form, 1e-5 * n)
    assert (np.tril(form, -2) == 0).all()
    pairs = np.diagonal(form, -1, 1, 2) != 0
    assert pairs.any() == (kind == "float32")
    assert not (pairs[:, 1:] & pairs[:, :-1]).any()
    for found, matrix in zip(get(be, values), a, strict=True):
        assert paired(found, exact(matrix)) < 1e-5


def test_states_say_what_went_wrong(be: Any) -> None:
    a = np.stack([np.eye(4), np.full((4, 4), np.nan), np.full((4, 4), np.inf)]).astype("float32")
    h, *_ = schur.hessenberg(be, from_host(be, dtypes.float32, a))
    states, values = schur.begin(be, h)
    schur.go_on(be, h, states, values, None)
    assert get(be, states)[:, 0].tolist() == [0, 3, 3]


@pytest.mark.parametrize("kind", KINDS)
def test_back_substitution(be: Any, kind: str) -> None:
    """More vectors than a group holds; a pair of conjugate values may lie across two groups."""
    n = 70
    t = np.triu(data(2, n, n, dtype=kind)) + np.diag(np.arange(1.0, n + 1)).astype(kind)
    if kind == "float32":
        for k in (3, 7, 15, 31, 63):
            t[:, k + 1, k] = -3
            t[:, k, k + 1] = 2
            t[:, k + 1, k + 1] = t[:, k, k]
    stored = from_host(be, dtypes.BY_NAME[kind], np.ascontiguousarray(t.swapaxes(1, 2)))
    h = stored._replace(strides=(n * n, 1, n))
    values = np.diagonal(t, 0, 1, 2).astype("complex64")
    if kind == "float32":
        for k in (3, 7, 15, 31, 63):
            values[:, k] += 6**0.5 * 1j
            values[:, k + 1] -= 6**0.5 * 1j
    out = schur.back_substitute(be, h, from_host(be, dtypes.complex64, values))
    flat = be.read(out.buffer, 0, out.nbytes).view("complex64").reshape(out.shape)
    x = flat.swapaxes(1, 2).reshape(2, n, -1)[:, :, :n]
    x = x / np.abs(x).max(1, keepdims=True)
    close(t @ x, x * values[:, None, :], 1e-3)
    assert (np.tril(x, -2) == 0).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 5, 5), (2, 2, 17, 17), (40, 40)])
def test_eigenvectors(kind: str, shape: tuple[int, ...]) -> None:
    a = data(*shape, dtype=kind)
    values, vectors = (x.numpy(force=True) for x in linalg.eig(torch.tensor(a)))
    close(a @ vectors, vectors * values[..., None, :], 1e-5)
    close(np.linalg.norm(vectors, axis=-2), np.ones(shape[:-1]), 1e-6)
    largest = np.take_along_axis(vectors, np.abs(vectors).argmax(-2)[..., None, :], -2)
    close(largest.imag, np.zeros_like(largest.imag), 1e-6)
    alone = linalg.eigvals(torch.tensor(a)).numpy(force=True)
    for found, also, matrix in zip(
        values.reshape(-1, shape[-1]),
        alone.reshape(-1, shape[-1]),
        a.reshape(-1, *shape[-2:]),
        strict=True,
    ):
        assert paired(found, exact(matrix)) < 2e-5
        assert paired(also, exact(matrix)) < 2e-5
    if kind == "float32":  # pairs are conjugate to the last bit, the positive imaginary part first
        first = (values.imag > 0).nonzero()
        second = (*first[:-1], first[-1] + 1)
        assert (values[second] == values[first].conj()).all()


@pytest.mark.parametrize("kind", KINDS)
def test_values_of_triangular_matrices_are_exact(kind: str) -> None:
    a = data(6, 6, dtype=kind)
    mixed = np.array([3, 0, 5, 1, 4, 2])
    for matrix in (np.triu(a), np.tril(a), np.triu(a)[mixed][:, mixed]):
        values, vectors = linalg.eig(torch.tensor(matrix))
        assert sorted(values.tolist(), key=abs) == sorted(np.diag(a).tolist(), key=abs)
        close(matrix @ vectors.numpy(force=True), (vectors * values).numpy(force=True), 1e-5)
    rotation = torch.tensor([[0.0, -1.0], [1.0, 0.0]])
    assert linalg.eigvals(rotation).tolist() == [1j, -1j]


def test_matrices_without_a_full_set_of_eigenvectors() -> None:
    """The vectors of a Jordan block are all nearly the same; those of a nilpotent one exceed float32's range."""
    for matrix in (
        np.eye(12, k=1),
        np.eye(12) + np.eye(12, k=1),
        np.eye(12, k=-1),
        np.zeros((5, 5)),
    ):
        a = matrix.astype("float32")
        values, vectors = (x.numpy(force=True) for x in linalg.eig(torch.tensor(a)))
        close(values, np.full(len(a), a[0, 0]), 0)
        close(a @ vectors, vectors * values, 1e-5)
        close(np.linalg.norm(vectors, axis=0), np.ones(len(a)), 1e-6)


def test_matrices_of_every_scale() -> None:
    a = data(8, 8, dtype="float32")
    for size in (1e-36, 1e36):
        given = a * np.float32(size)
        found = linalg.eigvals(torch.tensor(given)).numpy(force=True) / size
        assert paired(found, exact(a)) < 1e-5
    assert linalg.eigvals(torch.tensor(a) * 1e-40).abs().gt(0).all()
    by = np.float32(2.0) ** np.arange(-20, 20, 5, dtype="float32")
    graded = a * by / by[:, None]  # similar to a
    values, vectors = linalg.eig(torch.tensor(graded))
    assert paired(values.numpy(force=True), exact(a)) < 1e-4
    assert vectors.isfinite().all()


def test_empty_and_unknown_matrices() -> None:
    for shape in ((0, 0), (0, 3, 3), (2, 0, 0)):
        values, vectors = linalg.eig(torch.zeros(shape))
        assert values.shape == shape[:-1]
        assert vectors.shape == shape
    values, vectors = linalg.eig(torch.empty(2, 3, 3, device="meta"))
    assert (values.shape, values.dtype) == ((2, 3), torch.complex64)
    assert vectors.stride() == linalg.eig(torch.ones(2, 3, 3))[1].stride() == (9, 1, 3)
    assert linalg.eigvals(torch.empty(2, 3, 3, device="meta")).shape == (2, 3)


@pytest.mark.parametrize("function", ["eig", "eigvals"])
def test_what_is_not_finite_is_refused(function: str) -> None:
    bad = torch.stack([torch.eye(3), torch.full((3, 3), float("nan"))])
    with pytest.raises(RuntimeError, match=f"^torch.linalg.{function}: input tensor should not "):
        getattr(linalg, function)(bad)


def test_an_iteration_that_does_not_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def failed(backend: Any, h: Any) -> Any:
        states = from_host(backend, dtypes.int32, np.array([[0, 3, 0], [2, 0, 0]], "int32"))
        return states, empty(backend, dtypes.complex64, h.shape[:2])

    monkeypatch.setattr(schur, "begin", failed)
    monkeypatch.setattr(schur, "go_on", lambda *_: None)
    with pytest.raises(linalg.LinAlgError, match=r"linalg.eig: \(Batch element 1\): The algorithm"):
        linalg.eig(torch.ones(2, 3, 3))
