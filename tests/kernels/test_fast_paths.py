"""The fast paths of reductions, rows and scans, on both schedules, against plain loops in numpy on random sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import close, data

import cltensor as ct
from cltensor import dtypes
from cltensor.codegen.index import lookup, scatter
from cltensor.codegen.index import rows as chosen
from cltensor.codegen.move import pad
from cltensor.codegen.operand import Operand
from cltensor.codegen.order import scan
from cltensor.codegen.reduce import reduction as family
from cltensor.codegen.reduce.prologue import of_operands
from cltensor.ops import core
from cltensor.runtime import STATS, get_backend

FEW = settings(max_examples=25, deadline=None, derandomize=True)
AWKWARD = [np.nan, np.inf, -np.inf, 0.0, -0.0, 2.0]


def operand(array: np.ndarray) -> Operand:
    return core.kernel_operand(ct.tensor(array.copy()))


def backend() -> Any:
    return get_backend(ct.get_default_device())


def values(x: Operand) -> np.ndarray:
    return core.result(x, ct.get_default_device()).numpy(force=True)


def numbers(shape: tuple[int, ...], seed: int, kind: str) -> np.ndarray:
    """Return ordinary numbers ("plain"), numbers with many ties ("equals"), or special values in a few places ("few")
    or everywhere ("all")."""
    rng = np.random.default_rng(seed)
    plain = rng.standard_normal(shape).astype(np.float32)
    if kind == "equals":
        return np.round(plain)
    odd = rng.choice(np.array(AWKWARD, np.float32), shape)
    return np.where(rng.random(shape) < {"plain": 0, "few": 0.01, "all": 1}[kind], odd, plain)


@pytest.mark.parametrize(
    ("name", "schedule"),
    [("argmax", "row"), ("argmin", "col"), ("argmax", "gpu-row"), ("argmin", "gpu-col")],
)
@given(
    rows=st.integers(1, 40), columns=st.integers(1, 3000), dim=st.integers(0, 1),
    parts=st.integers(1, 3), seed=st.integers(0, 99),
    kind=st.sampled_from(["plain", "equals", "few", "all"]),
)  # fmt: skip
@FEW
def test_positions_of_extremes(
    schedule: str, name: str, rows: int, columns: int, dim: int, parts: int, seed: int, kind: str
) -> None:
    a = numbers((rows, columns) if dim else (columns, rows), seed, kind)
    value, at = family.reduce(
        backend(), name, of_operands(operand(a)), (dim,), dtypes.float32,
        (("value", dtypes.float32), ("index", dtypes.int64)), schedule=schedule, parts=parts,
    )  # fmt: skip
    expected = getattr(a, name)(axis=dim)
    np.testing.assert_array_equal(values(at), expected)
    picked = np.take_along_axis(a, np.expand_dims(expected, dim), dim).squeeze(dim)
    np.testing.assert_array_equal(values(value), picked)
    known = ~np.isnan(picked)
    assert (np.signbit(values(value)) == np.signbit(picked))[known].all()  # of two zeros the first


@pytest.mark.parametrize(
    ("name", "schedule"), [("max", "col"), ("min", "col"), ("max", "row"), ("min", "gpu-col")]
)
@given(
    rows=st.integers(1, 40), columns=st.integers(1, 3000), parts=st.integers(1, 3), seed=st.integers(0, 99),
    kind=st.sampled_from(["plain", "equals", "few", "all"]),
)  # fmt: skip
@FEW
def test_extremes_of_columns(
    name: str, schedule: str, rows: int, columns: int, parts: int, seed: int, kind: str
) -> None:
    a = numbers((columns, rows), seed, kind)
    (value,) = family.reduce(
        backend(), name, of_operands(operand(a)), (0,), dtypes.float32,
        (("value", dtypes.float32),), schedule=schedule, parts=parts,
    )  # fmt: skip
    np.testing.assert_array_equal(values(value), getattr(a, name)(axis=0))


@pytest.mark.parametrize("schedule", ["col", "gpu-col"])
@given(rows=st.integers(2, 300), columns=st.integers(1, 3000), seed=st.integers(0, 99))
@FEW
def test_deviations_of_columns(schedule: str, rows: int, columns: int, seed: int) -> None:
    a = numbers((rows, columns), seed, "plain") * 3 + 100
    found = family.reduce(
        backend(), "var", of_operands(operand(a)), (0,), dtypes.float32,
        (("var", dtypes.float32), ("mean", dtypes.float32)), scale=rows - 1.0, schedule=schedule,
    )  # fmt: skip
    exact = a.astype(np.float64)
    np.testing.assert_allclose(values(found[0]), exact.var(0, ddof=1), 2e-4)
    np.testing.assert_allclose(values(found[1]), exact.mean(0), 1e-5)


@given(shape=st.sampled_from([(70, 900), (3, 50, 41), (4100,)]), seed=st.integers(0, 9))
@settings(max_examples=6, deadline=None, derandomize=True)
def test_positions_of_integers(shape: tuple[int, ...], seed: int) -> None:
    a = np.random.default_rng(seed).integers(-5, 5, shape).astype(np.int16)
    x = ct.tensor(a.copy())
    for dim in (None, *range(a.ndim)):
        np.testing.assert_array_equal(x.argmax(dim).numpy(force=True), a.argmax(axis=dim))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@given(
    places=st.integers(1, 30), width=st.integers(16, 70), n=st.integers(1, 60),
    flat=st.booleans(), seed=st.integers(0, 99),
)  # fmt: skip
@FEW
def test_rows_are_added_in_index_order(
    dtype: str, places: int, width: int, n: int, flat: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((places, width)).astype(dtype)
    rows = rng.standard_normal((n, 1 if flat else width)).astype(dtype)
    at = rng.integers(0, places, n)
    target, source = operand(table), operand(rows)
    if flat:
        source = source._replace(shape=(n, width), strides=(1, 0))
    scatter.index_add(backend(), target, 0, operand(at), source)
    expected = table.copy()
    if backend().info.kind == "cpu" or n <= 32:
        for place, row in zip(at, rows, strict=True):
            wide = expected[place].astype(np.float32) + row.astype(np.float32)
            expected[place] = wide.astype(dtype)
    else:  # on a GPU many rows are sorted by place, and a place's rows are summed before they are added to it
        for place in set(at):
            first, *others = rows[at == place].astype(np.float32)
            total = sum(others, first)
            expected[place] = (table[place].astype(np.float32) + total).astype(dtype)
    np.testing.assert_array_equal(values(target), expected)


def test_a_bad_index_of_a_row_is_found() -> None:
    table = ct.zeros(5, 64)
    for bad in (5, -1):
        at = ct.tensor([0, bad])
        with pytest.raises(RuntimeError, match="out of bounds"):
            table.index_add(0, at, ct.ones(2, 64)).sum().item()
        with pytest.raises((IndexError, RuntimeError), match="out of"):
            table.index_select(0, at).sum().item()


@given(
    places=st.integers(1, 30), width=st.integers(1, 70), n=st.integers(1, 60), step=st.integers(1, 2),
    seed=st.integers(0, 99),
)  # fmt: skip
@FEW
def test_rows_are_taken(places: int, width: int, n: int, step: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((places * step, width)).astype(np.float32)
    at = rng.integers(0, places, n)
    x = ct.tensor(table.copy())[::step]
    found = lookup.index_select(backend(), core.kernel_operand(x), 0, operand(at))
    np.testing.assert_array_equal(values(found), table[::step][at])


@given(
    rows=st.integers(2, 9), places=st.integers(1, 90), n=st.integers(1, 200),
    shared=st.booleans(), seed=st.integers(0, 99),
)  # fmt: skip
@FEW
def test_elements_along_rows(rows: int, places: int, n: int, shared: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((rows, places)).astype(np.float32)
    new = rng.standard_normal((rows, n)).astype(np.float32)
    at = np.broadcast_to(rng.integers(0, places, (1 if shared else rows, n)), (rows, n))
    where = operand(at)
    if shared:
        where = where._replace(strides=(0, 1))
    found = values(lookup.gather(backend(), operand(table), 1, where))
    np.testing.assert_array_equal(found, np.take_along_axis(table, at, 1))
    target = operand(table)
    scatter.scatter(backend(), target, 1, where, operand(new), "add")
    expected = table.copy()
    for j in range(n):
        expected[range(rows), at[:, j]] += new[:, j]
    off = 0 if backend().info.kind == "cpu" or n <= 32 else 1e-5  # a GPU sums them in parts
    np.testing.assert_allclose(values(target), expected, rtol=off, atol=off)


@given(rows=st.integers(1, 3), length=st.integers(1, 400), seed=st.integers(0, 99))
@FEW
def test_sums_so_far(rows: int, length: int, seed: int) -> None:
    a = np.random.default_rng(seed).standard_normal((rows, length)).astype(np.float32)
    dense = values(scan.scan(backend(), operand(a), 1, "cumsum"))
    wide = ct.tensor(np.repeat(a, 2, 1))[:, ::2]
    strided = values(scan.scan(backend(), core.kernel_operand(wide), 1, "cumsum"))
    np.testing.assert_allclose(dense, np.cumsum(a.astype(np.float64), 1), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(strided, dense)


def test_sums_so_far_of_parts_meet() -> None:
    a = np.abs(np.random.default_rng(0).standard_normal(100_003)).astype(np.float32)
    x = ct.tensor(a.copy())
    found = x.cumsum(0).numpy(force=True)
    np.testing.assert_allclose(found, np.cumsum(a.astype(np.float64)), rtol=1e-6)
    assert (np.diff(found) >= 0).all()
    a[50_000] = np.inf
    found = ct.tensor(a).cumsum(0).numpy(force=True)
    assert np.isfinite(found[:50_000]).all()
    assert np.isposinf(found[50_000:]).all()


def test_a_gradient_of_rows_is_a_fill_and_a_launch() -> None:
    table = ct.randn(500, 64).requires_grad_()
    at = ct.tensor([3, 3, 499])
    g = ct.ones(3, 64)
    out = ct.nn.functional.embedding(at, table)
    for t in (out, g):
        t._storage.buffer()
    before = STATS.launches
    (grad,) = ct.autograd.grad(out, [table], g)
    grad._storage.buffer()
    if backend().info.kind == "cpu":
        assert STATS.launches - before == 2
    assert grad[3, 0].item() == 2
    assert grad.sum().item() == 192


@pytest.mark.parametrize("dt", ["float32", "bfloat16", "int8", "float64"])
def test_steps_in_rows(dt: str) -> None:
    n = 37  # two vectors and five elements
    a = np.random.default_rng(0).integers(-40, 40, (3, 3 * n)).astype(np.float64)
    x = ct.tensor(a).to(getattr(ct, dt))
    found = x.clone()
    found[:, ::3] = x[:, 1::3] * 2
    expected = a.copy()
    expected[:, ::3] = a[:, 1::3] * 2
    np.testing.assert_array_equal(found.double().numpy(force=True), expected)
    total = x[:, ::3].double().sum(1)
    np.testing.assert_array_equal(total.numpy(force=True), a[:, ::3].sum(1))


def test_rows_asked_for_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chosen, "_CACHE", 0)
    rng = np.random.default_rng(0)
    a, at = rng.standard_normal((50, 40)).astype(np.float32), rng.integers(-50, 50, 60)
    x, index = ct.tensor(a), ct.tensor(at)
    np.testing.assert_array_equal(x[index].numpy(force=True), a[at])
    expected, new = a.copy(), rng.standard_normal((60, 40)).astype(np.float32)
    np.add.at(expected, at % 50, new)
    found = x.index_add(0, index % 50, ct.tensor(new))
    np.testing.assert_allclose(found.numpy(force=True), expected, rtol=1e-6, atol=1e-6)
    with pytest.raises(IndexError, match="out of range in self"):
        ct.nn.functional.embedding(ct.tensor([0] * 20 + [1 << 60]), x).numpy(force=True)


@pytest.mark.parametrize(
    "kind", ["uint8", "int16", "bfloat16", "float16", "int32", "float32", "float64"]
)
def test_vectors_in_part_touch_nothing_beside_them(kind: str) -> None:
    dt = getattr(ct, kind)
    at = ct.get_default_device()
    for n in range(1, 35):
        a = np.arange(3 * n, dtype=np.float64).reshape(3, n) % 50
        x = ct.tensor(np.pad(a, ((0, 0), (0, 70)), constant_values=99), device=at).to(dt)
        out = ct.full((3, n + 70), 77, dtype=dt, device=at)
        # At unaligned offsets, surrounded by other numbers.
        out[1:2, 3 : 3 + n] = x[1:2, :n] + x[2:3, :n]
        expected = np.full((3, n + 70), 77.0)
        expected[1:2, 3 : 3 + n] = a[1:2] + a[2:3]
        np.testing.assert_array_equal(out.double().numpy(force=True), expected)


@given(
    rows=st.integers(1, 40), columns=st.integers(1, 70), gap=st.integers(0, 3), seed=st.integers(0, 99),
    kind=st.sampled_from(["float32", "bfloat16", "float64"]),
)  # fmt: skip
@FEW
def test_softmax_of_short_rows(rows: int, columns: int, gap: int, seed: int, kind: str) -> None:
    a = np.full((rows, columns + gap), np.inf)  # reading between rows would show
    a[:, :columns] = np.random.default_rng(seed).standard_normal((rows, columns)).round(1)
    x = ct.tensor(a, device=ct.get_default_device()).to(getattr(ct, kind))[:, :columns]
    e = np.exp(x.double().numpy(force=True))
    found = x.softmax(1).double().numpy(force=True)
    tolerance = {"float32": 1e-6, "bfloat16": 8e-3, "float64": 1e-12}[kind]
    np.testing.assert_allclose(found, e / e.sum(1, keepdims=True), rtol=tolerance)


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@given(
    size=st.tuples(st.integers(4, 9), st.integers(4, 20)), seed=st.integers(0, 99), last=st.booleans(),
    amounts=st.lists(st.integers(-1, 3), min_size=4, max_size=4),
)  # fmt: skip
@settings(max_examples=10, deadline=None, derandomize=True)
def test_gradients_of_padding_by_edges(
    mode: str, size: tuple[int, int], seed: int, last: bool, amounts: list[int]
) -> None:
    a = np.random.default_rng(seed).standard_normal((2, 3, *size)).astype(np.float32)
    x = ct.tensor(a, device=ct.get_default_device())
    if last:
        x = x.contiguous(memory_format=ct.channels_last)
    x.requires_grad_()
    out = ct.nn.functional.pad(x, amounts, mode=mode)
    g = ct.tensor(np.random.default_rng(seed + 1).standard_normal(out.shape).astype(np.float32))
    plain, general = g.to(x.device), g.to(x.device).requires_grad_()
    (found,) = ct.autograd.grad(out, x, plain, retain_graph=True)
    (wanted,) = ct.autograd.grad(out, x, general, create_graph=True)
    np.testing.assert_allclose(found.numpy(force=True), wanted.numpy(force=True), atol=1e-5)
    np.testing.assert_array_equal(plain.numpy(force=True), g.numpy(force=True))  # is not written to


@given(rows=st.integers(0, 5), width=st.integers(1, 6), amounts=st.lists(st.integers(-3, 4), min_size=4, max_size=4))  # fmt: skip
@settings(max_examples=40, deadline=None, derandomize=True)
def test_short_rows_are_set_and_copied_into(rows: int, width: int, amounts: list[int]) -> None:
    rows += pad.ROWS
    left, right, above, below = amounts
    kept = range(max(-left, 0), width - max(-right, 0))
    if width + left + right <= 0 or len(kept) == 0:
        return
    a = np.random.default_rng(width).standard_normal((rows, width)).astype(np.float32)
    want = np.full((rows + above + below, width + left + right), 2.5, np.float32)
    inside = a[max(-above, 0) : rows - max(-below, 0), kept.start : kept.stop]
    down, across = max(above, 0), max(left, 0)
    want[down : down + inside.shape[0], across : across + inside.shape[1]] = inside
    for x in (ct.tensor(a), ct.tensor(np.ascontiguousarray(a.T)).T):
        found = ct.nn.functional.pad(x, amounts, value=2.5)
        np.testing.assert_array_equal(found.numpy(force=True), want)


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.0, float("inf")])
def test_distances_of_pairs(p: float, poisoned: None) -> None:
    for n, width in ((0, 3), (1, 3), (2, 5), (40, 17), (150, 3)):
        x = data(n, width, seed=n)
        delta = (x[:, None] - x[None])[np.triu_indices(n, 1)]
        wanted = np.linalg.norm(delta, p, axis=1) if len(delta) else np.zeros(0)
        close(ct.nn.functional.pdist(ct.tensor(x.tolist()).reshape(n, width), p), wanted)
    leaf = ct.tensor(data(5, 3, dtype="float64"), requires_grad=True)
    assert ct.autograd.gradcheck(lambda t: ct.nn.functional.pdist(t, p), (leaf,))


@pytest.mark.parametrize("p", [0.5, 1.0, 2.0, 3.0, float("inf")])
def test_gradients_of_distances_match_those_of_plain_operators(p: float, one_by_one: None) -> None:
    """Kernels' gradients match those of plain operators, which are used under `create_graph`."""
    rng = np.random.default_rng(0)
    for first, second in (((3, 1, 9, 5), (2, 66, 5)), ((70, 83), (33, 83))):
        a, b = rng.standard_normal(first).round(1), rng.standard_normal(second).round(1)
        b[..., 3, :] = a[0, 0, 3] if a.ndim > 2 else a[3]  # at distance 0
        b[..., 4, :] = np.arange(b.shape[-1]) / 7  # a unique largest difference
        leaves = [ct.tensor(v, device=ct.get_default_device(), requires_grad=True) for v in (a, b)]
        mode = "donot_use_mm_for_euclid_dist"
        out = ct.cdist(*leaves, p, mode)
        wanted = np.linalg.norm(a[..., :, None, :] - b[..., None, :, :], p, axis=-1)
        np.testing.assert_allclose(out.numpy(force=True), wanted, rtol=1e-9)
        g = ct.tensor(np.cos(np.arange(wanted.size)).reshape(wanted.shape), device=out.device)
        one, other = (ct.autograd.grad(out, leaves, g, True, create) for create in (False, True))
        for x, y in zip(one, other, strict=True):
            np.testing.assert_allclose(
                x.numpy(force=True), y.numpy(force=True), rtol=1e-9, atol=1e-8
            )
        flat = leaves[1].detach().view(-1, b.shape[-1])[:33].requires_grad_()
        pairs = ct.nn.functional.pdist(flat, p)
        one, other = (
            ct.autograd.grad(pairs, flat, pairs.cos(), True, create)[0] for create in (False, True)
        )
        np.testing.assert_allclose(
            one.numpy(force=True), other.numpy(force=True), rtol=1e-9, atol=1e-8
        )


def test_ties_of_the_largest_difference_all_get_the_gradient_of_a_distance() -> None:
    x = ct.tensor([[0.0, 0.0, 0.0], [2.0, 1.0, -2.0]], requires_grad=True)
    ct.nn.functional.pdist(x, float("inf")).sum().backward()
    assert x.grad.tolist() == [[-1.0, 0.0, 1.0], [1.0, 0.0, -1.0]]


def test_gradients_of_distances_by_products() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 30, 5)).round(1), rng.standard_normal((2, 27, 5)).round(1)
    a[:, 3] = b[:, 4]  # at distance 0
    leaves = [ct.tensor(v, device=ct.get_default_device(), requires_grad=True) for v in (a, b)]
    ways = "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"
    one, other = (
        ct.autograd.grad((ct.cdist(*leaves, compute_mode=way) ** 2).sin().sum(), leaves)
        for way in ways
    )
    for x, y in zip(one, other, strict=True):
        np.testing.assert_allclose(x.numpy(force=True), y.numpy(force=True), atol=1e-6)


def test_whole_numbers_equal_themselves_without_a_kernel() -> None:
    x = ct.tensor([3, 1, 2], device=ct.get_default_device())
    ct.opencl.synchronize()
    before = STATS.launches
    assert ct.equal(x, x)
    assert ct.equal(x[1:], x[1:])
    assert STATS.launches == before
    assert not ct.equal(x[1:], x[:-1])
    nan = ct.tensor([1.0, float("nan")], device=ct.get_default_device())
    assert not ct.equal(nan, nan)


def test_dims_with_equal_steps_lie_as_in_the_long_way() -> None:
    y = ct.arange(24.0).reshape(4, 3, 2).contiguous()[:, :, ::2].transpose(1, 2)
    assert y.stride() == (6, 2, 2)
    assert [z.stride() for z in (y.exp(), y + y, ct.zeros_like(y))] == [(3, 1, 1)] * 3
    y = ct.arange(13.0).as_strided((4, 2, 3), (3, 1, 1))
    assert [z.stride() for z in (y.exp(), y + y, ct.zeros_like(y))] == [(6, 1, 2)] * 3
