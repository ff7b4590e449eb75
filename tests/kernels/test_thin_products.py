"""Products with vectors, with few rows or columns, and of many small matrices, by the kernels for each: whole numbers, whose
sums are exact in every order, beside numpy's."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import close, data

import cltensor as torch
from cltensor.codegen.products import gemm_cpu, gemm_few, gemm_gram, gemm_small, gemm_tall, gemv
from cltensor.ops import dense
from cltensor.runtime import STATS

t = torch.tensor


def keeps_to_its_room(a: Any, b: Any, exact: np.ndarray) -> None:
    """Assert that a product into the middle of a matrix writes there, and nothing else."""
    m, n = exact.shape
    room = torch.full((m + 2, n + 2), 7.0, dtype=a.dtype)
    torch.mm(a, b, out=room[1:-1, 1:-1])
    found = room.numpy(force=True)
    assert np.array_equal(found[1:-1, 1:-1], exact)
    found[1:-1, 1:-1] = 7
    assert (found == 7).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bfloat16"])
def test_a_wide_matrix_across_memory_times_a_vector(dtype: str, monkeypatch: Any) -> None:
    made: list[tuple[Any, ...]] = []
    kernel = gemv._kernel

    def noted(*given: Any) -> Any:
        made.append(given[3:])
        return kernel(*given)

    monkeypatch.setattr(gemv, "_kernel", noted)
    rng = np.random.default_rng(0)
    for k, m in ((67, 2 * gemv.M_ROOM + 5), (130, 1027), (2, 40_001)):
        # Whole numbers, so that sums are exact in every order.
        a, x = rng.integers(-3, 4, (k, m)), rng.integers(-2, 3, k)
        matrix, vector = (torch.tensor(v).to(getattr(torch, dtype)) for v in (a, x))
        found = matrix.t() @ vector
        assert np.array_equal(found.double().cpu().numpy(), a.T @ x)
    if matrix._storage.backend.info.kind == "cpu":
        assert [given[0] for given in made] == ["cols"] * 3
        assert made[0][-1] and made[2][-1]  # a row is longer than M_ROOM


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
def test_many_short_rows_times_a_vector(dtype: str) -> None:
    dt = getattr(torch, dtype)
    rng = np.random.default_rng(0)
    for shape in ((200, 2), (131, 17), (3, 70, 63)):
        # Small integers, so that sums are exact in every order. NaNs (cast) follow each row; they must not be added.
        a, x = rng.integers(-3, 4, shape), rng.integers(-2, 3, shape[-1])
        wide = np.full((*shape[:-1], shape[-1] + 3), np.nan)
        wide[..., : shape[-1]] = a
        matrix, vector = torch.tensor(wide).to(dt)[..., : shape[-1]], torch.tensor(x).to(dt)
        expected = a @ x
        assert np.array_equal((matrix @ vector).double().cpu().numpy(), expected)
        assert np.array_equal((matrix.contiguous() @ vector).double().cpu().numpy(), expected)
        if len(shape) == 2:
            out = torch.zeros(2 * len(a), dtype=dt)[::2]
            torch.addmv(vector.new_full((len(a),), 3), matrix, vector, beta=2, alpha=-1, out=out)
            assert np.array_equal(out.double().cpu().numpy(), 6 - expected)
    infinite = torch.tensor([[np.inf, 1.0, 2.0]] * 80).to(dt) @ torch.tensor([1.0, 0, 0]).to(dt)
    assert torch.equal(infinite.float(), torch.full((80,), np.inf))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "bfloat16"])
def test_few_columns_across_memory_times_a_vector(dtype: str) -> None:
    rng = np.random.default_rng(0)
    # Columns that fill whole vectors and columns that do not; K in one piece and in several.
    for k, m in ((90, 16), (70, 41), (20_001, 100), (3000, 250)):
        a, x = rng.integers(-3, 4, (k, m)), rng.integers(-2, 3, k)
        matrix, vector = (torch.tensor(v).to(getattr(torch, dtype)) for v in (a, x))
        exact = torch.tensor(a.T @ x).to(getattr(torch, dtype)).double().cpu().numpy()
        assert np.array_equal((matrix.t() @ vector).double().cpu().numpy(), exact)
        several = torch.stack([matrix, -matrix]).mT @ vector
        assert np.array_equal(several.double().cpu().numpy(), [exact, -exact])


# Vectors contiguous and strided, fewer than the kernel takes at a time; matrices that fit a cache or do not; a batch.
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
def test_many_rows_times_a_few_vectors(dtype: str) -> None:
    dt = getattr(torch, dtype)
    rng = np.random.default_rng(0)
    for n, k, columns in ((40_000, 129, 3), (2500, 70, 8), (1200, 1100, 5)):
        a, b = rng.integers(-2, 3, (n, k)), rng.integers(-1, 2, (k, columns))
        exact = torch.tensor(a @ b).to(dt).double().cpu().numpy()
        x, y = torch.tensor(a).to(dt), torch.tensor(b).to(dt)
        assert np.array_equal((x @ y).double().cpu().numpy(), exact)
        assert np.array_equal((x @ y.t().contiguous().t()).double().cpu().numpy(), exact)
        assert np.array_equal((y.t() @ x.t()).double().cpu().numpy(), exact.T)
    found = x.view(2, 600, 1100) @ torch.stack([y, -y])
    assert np.array_equal(found.double().cpu().numpy(), [exact[:600], -exact[600:]])


@pytest.mark.usefixtures("divided", "poisoned")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_long_rows_times_some_vectors(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small integers, so that sums are exact. Tries blocks of K and their remainders, addends that are broadcast or
    not, and rows that are divided among threads anywhere.
    """
    monkeypatch.setattr(gemm_few, "TASK_BYTES", 64)
    rng = np.random.default_rng(0)
    for m, k, n in ((67, 1031, 12), (300, 241, 9), (130, 1536, 11), (41, 5000, 2)):
        a, b, s = (rng.integers(-3, 4, shape).astype(dtype) for shape in ((m, k), (k, n), (m, n)))
        exact = a @ b
        wide = t(np.concatenate([a, a[:, :9]], 1))[:, :-9]
        for x in (t(a), wide):
            for y in (t(b), t(b.T.copy()).T):
                assert np.array_equal((x @ y).numpy(force=True), exact)
        assert np.array_equal((t(b.T.copy()) @ wide.T).numpy(force=True), exact.T)
        for added in (t(s), t(s[0]), t(s[:, :1])):
            found = torch.addmm(added, t(a), t(b), beta=2, alpha=3)
            expected = 2 * added.expand(m, n).numpy(force=True) + 3 * exact
            assert np.array_equal(found.numpy(force=True), expected)
        keeps_to_its_room(t(a), t(b), exact)
        monkeypatch.setattr(gemm_few, "FAR_BYTES", 0)  # from the second shape on, prefetch rows


def test_an_infinite_number_is_counted_once() -> None:
    """An infinity makes no NaN where two blocks overlap, and a row has the same bits whatever rows lie beside it."""
    a, b = data(90, 1003), np.abs(data(1003, 5, seed=1))
    a[3, 990], a[4, 1002], a[5, 500] = np.inf, -np.inf, np.inf
    found = (t(a) @ t(b)).numpy(force=True)
    assert np.array_equal(found[3:6], [[np.inf] * 5, [-np.inf] * 5, [np.inf] * 5])
    assert np.array_equal(found[13:], (t(a)[13:] @ t(b)).numpy(force=True))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_long_rows_by_some_columns_go_part_by_part(dtype: str) -> None:
    dt = getattr(torch, dtype)
    rng = np.random.default_rng(0)
    n, k, columns = 401, 803, 7 if dtype == "float64" else 14
    a, b, c = (rng.integers(-2, 3, shape) for shape in ((n, k), (k, columns), (n, columns)))
    x, y, z = (torch.tensor(v).to(dt) for v in (a, b, c))
    close((x @ y).cpu(), a @ b, 0)
    close((x.t().contiguous().t() @ y).cpu(), a @ b, 0)
    close(torch.addmm(z, x, y, beta=3, alpha=-2).cpu(), 3 * c - 2 * (a @ b), 0)
    close(torch.nn.functional.linear(x, y.t().contiguous(), z[0]).relu().cpu(), np.maximum(a @ b + c[0], 0), 0)  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_dot_products_of_what_is_not_adjacent(dtype: str) -> None:
    """Long strided vectors are copied first; 16-bit vectors that are contiguous are read where they are."""
    x, y = data(3, 5001), data(3, 5001, seed=1)
    x, y = x.astype(dtype).astype("float32"), y.astype(dtype).astype("float32")
    a, b = (t(v).to(getattr(torch, dtype)) for v in (x, y))
    tolerance = 1e-4 if dtype == "float32" else 0.3
    close(a[0].dot(b[1]).cpu().float(), x[0] @ y[1], tolerance)
    for step in (2, 7):
        p, q = x[:, ::step], y[:, ::step]
        close(a[0, ::step].dot(b[1, ::step]).cpu().float(), p[0] @ q[1], tolerance)
        close(a[2, 1::step].dot(b[2, : a[2, 1::step].shape[0]]).cpu().float(), x[2, 1::step] @ y[2, : x[2, 1::step].size], tolerance)  # fmt: skip
    both = a[:, None, ::2] @ b[1, ::2, None]
    close(both.cpu().float()[:, 0, 0], x[:, ::2] @ y[1, ::2], tolerance)
    assert int(a[0, :1].expand(5001).dot(a[0, :1].expand(5001)) * 0) == 0


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.integers(2, 40), st.integers(1, 20), st.integers(1, 20), st.integers(1, 17),
    st.booleans(), st.booleans(), st.booleans(), st.sampled_from(["float32", "bfloat16", "float64"]),
)  # fmt: skip
def test_many_small_matrices(
    batch: int, m: int, k: int, n: int, turn_a: bool, turn_b: bool, cut: bool, dtype: str
) -> None:
    """Small integers, so that sums are exact in any order. The NaNs behind each row and each matrix must not enter
    sums, and elements before and after `out` must stay.
    """
    rng = np.random.default_rng(0)
    wide = rng.integers(-3, 4, (batch, m, k)), rng.integers(-3, 4, (batch, k, n))
    operands = []
    for array, turn in zip(wide, (turn_a, turn_b), strict=True):
        array = array.swapaxes(1, 2) if turn else array
        room = torch.full(
            (batch, array.shape[1] + 1, array.shape[2] + 1), torch.nan, dtype=getattr(torch, dtype)
        )
        place = room[:, :-1, :-1]
        place.copy_(torch.tensor(np.ascontiguousarray(array)))
        x = place if cut else place.contiguous()
        operands.append(x.mT if turn else x)
    a, b = operands
    out = torch.full((batch + 2, m, n), 7.0, dtype=a.dtype)
    torch.bmm(a, b, out=out[1:-1])
    found = out.double().cpu().numpy()
    assert np.array_equal(found[1:-1], wide[0] @ wide[1])
    assert (found[[0, -1]] == 7).all()


@pytest.mark.usefixtures("divided")
@pytest.mark.parametrize("long", [4099, 30_000])
def test_parts_of_long_sums_and_what_is_added_to_them(
    long: int, backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With many compute units K is split. The partial sums and the addend give the whole sum, although the last part of
    K is shorter than the others.
    """
    info = dataclasses.replace(backend.info, compute_units=48)
    monkeypatch.setattr(backend, "info", info)
    monkeypatch.setattr(gemm_cpu, "_plans", {})
    a, b, s = data(19, long), data(long, 37, seed=1), data(19, 37, seed=2)
    exact = a.astype(np.float64) @ b
    close(t(a) @ t(b), exact, 1e-3)
    for added in (s, s[:1], s[:, :1], s[:1, :1]):
        wide = t(added).expand(19, 37)
        close(torch.addmm(wide, t(a), t(b), beta=2, alpha=0.5), 2 * added + exact / 2, 1e-3)
    close(torch.addmm(t(s.T.copy()).T, t(a), t(b)), s + exact, 1e-3)
    pairs = t(np.stack([a, a])).bfloat16(), t(np.stack([b, b])).bfloat16()
    first = pairs[0][0].float() @ pairs[1][0].float()
    close(torch.bmm(*pairs)[1].float(), first.tolist(), 1.0)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("size", [(96, 33, 40), (100, 35, 17), (7, 33, 64)], ids=str)
def test_nothing_is_left_of_the_product_before(size: tuple[int, int, int], turned: bool) -> None:
    """The NaNs of an earlier product are not read from reused memory, where an odd K leaves the last pair of bfloat16
    numbers half empty and tiles have more rows than the matrix.
    """
    m, k, n = size
    a, b = data(m, k).round(1), data(k, n, seed=1).round(1)

    def product(a: np.ndarray, b: np.ndarray) -> Any:
        x, y = (t(v.T.copy()).T if turned else t(v) for v in (a, b))
        return x.bfloat16() @ y.bfloat16()

    expected = t(a).bfloat16().float() @ t(b).bfloat16().float()
    assert product(np.full_like(a, np.nan), np.full_like(b, np.nan)).isnan().all().item()
    close(product(a, b).float(), expected.tolist(), 5e-2)


@pytest.mark.usefixtures("divided", "poisoned")
def test_many_small_matrices_of_two_batch_dims_are_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gemm_small, "TASK_WORK", 1)
    a, b = data(5, 9, 4, 5), data(9, 5, 6, seed=1)
    close(t(a)[:, 1:8] @ t(b)[1:8], a[:, 1:8] @ b[1:8])


TALL = [(64, 3, 3), (67, 9, 5), (130, 20, 16), (200, 384, 7), (71, 40, 2), (66, 5, 8), (65, 1, 11)]


@pytest.mark.usefixtures("divided", "poisoned")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_many_rows_with_a_few_columns(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small integers, so that sums are exact. Rows are divided among threads anywhere; elements around an `out` that is
    part of a larger matrix must stay.
    """
    monkeypatch.setattr(gemm_tall, "TASK_WORK", 64)
    rng = np.random.default_rng(0)
    for m, k, n in TALL:
        a, b, s = (rng.integers(-3, 4, shape).astype(dtype) for shape in ((m, k), (k, n), (m, n)))
        exact = a @ b
        for x in (t(a), t(a.T.copy()).T, t(np.repeat(a, 2, 1))[:, ::2]):
            for y in (t(b), t(b.T.copy()).T):
                assert np.array_equal((x @ y).numpy(force=True), exact)
        for added in (t(s), t(s[:1]).expand(m, n), t(s[:, :1]).expand(m, n), t(s.T.copy()).T):
            expected = 2 * added.numpy(force=True) + 3 * exact
            found = torch.addmm(added, t(a), t(b), beta=2, alpha=3)
            assert np.array_equal(found.numpy(force=True), expected)
        found = t(s.copy()).addmm_(t(a), t(b), beta=2, alpha=3)
        assert np.array_equal(found.numpy(force=True), 2 * s + 3 * exact)
        keeps_to_its_room(t(a), t(b), exact)
        chain = torch.relu(torch.nn.functional.linear(t(a), t(b.T.copy()), t(s[0])) * 2)
        assert np.array_equal(chain.numpy(force=True), np.maximum(2 * (exact + s[0]), 0))


@pytest.mark.parametrize(("k", "n"), [(9, 5), (20, 16), (1003, 9)])
def test_a_chain_after_a_few_columns_is_in_their_launch(
    k: int, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dense, "WAITS", 0)  # small products stay pending, as large ones do
    x, w, s = t(data(67, k)), t(data(n, k)), t(data(n))
    torch.opencl.synchronize()
    before = STATS.launches
    torch.relu(torch.nn.functional.linear(x, w, s) * 2).tolist()
    assert STATS.launches - before == 1


@pytest.mark.usefixtures("divided", "poisoned")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_few_rows_with_few_columns_over_a_long_k(
    dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small integers, so that sums are exact. Tries operands of any layout, an addend, `out`, and K divided anywhere."""
    monkeypatch.setattr(gemm_gram, "LEAST", 32)
    monkeypatch.setattr(gemm_gram, "PIECE", 16)
    rng = np.random.default_rng(0)
    for m, k, n in [(2, 33, 3), (3, 67, 3), (5, 530, 7), (8, 1100, 2), (7, 70, 4)]:
        a, b, s = (rng.integers(-3, 4, shape).astype(dtype) for shape in ((m, k), (k, n), (m, n)))
        exact = a @ b
        for x in (t(a), t(a.T.copy()).T, t(np.repeat(a, 2, 1))[:, ::2]):
            for y in (t(b), t(b.T.copy()).T, t(np.repeat(b, 3, 0))[::3]):
                assert np.array_equal((x @ y).numpy(force=True), exact)
        assert torch.equal(t(a) @ t(b[:1]).expand(k, n), t(a) @ t(b[:1].repeat(k, 0)))
        found = torch.addmm(t(s), t(a.T.copy()).T, t(b), beta=2, alpha=3)
        assert np.array_equal(found.numpy(force=True), 2 * s + 3 * exact)
        keeps_to_its_room(t(a), t(b), exact)
