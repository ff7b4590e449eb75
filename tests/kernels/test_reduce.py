"""Reductions on the device: values against numpy over dims, layouts and dtypes; schedules; launches; gradients."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support import close, data

import cltensor as ct
from cltensor import dtypes
from cltensor.codegen.reduce import kernels
from cltensor.codegen.reduce import reduction as family
from cltensor.codegen.reduce.prologue import Split, of_operands
from cltensor.ops import core
from cltensor.runtime import STATS, get_backend

pytestmark = pytest.mark.usefixtures("divided")

SHAPES = [(), (1,), (31,), (32,), (33,), (33, 32), (31, 33), (3, 33, 5), (2, 3, 4, 5), (0,), (0, 3), (3, 0)]  # fmt: skip


def _tensor(array: np.ndarray) -> Any:
    return ct.tensor(array.tolist(), dtype=getattr(ct, str(array.dtype))).reshape(array.shape)


def _dims(ndim: int) -> list[Any]:
    return [None, *range(ndim)] + ([(0, ndim - 1)] if ndim > 1 else [])


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [
        *(("float32", shape) for shape in SHAPES),
        *(("int32", shape) for shape in SHAPES if len(shape) < 3),
        *(("uint8", shape) for shape in ((33,), (33, 32), (3, 0))),
        *(("bool", shape) for shape in ((33,), (0,))),
    ],
    ids=str,
)
def test_sum_and_truth_match_numpy(dtype: str, shape: tuple[int, ...]) -> None:
    """float32: sums in every layout, other reductions in layouts of up to two dims; int32: sums in these; other dtypes:
    sums in some."""
    a = data(*shape, dtype=dtype)
    x = _tensor(a)
    for dim in _dims(a.ndim):
        close(x.sum(dim), a.sum(axis=dim), 1e-4)
        if a.ndim > 2 or (dtype != "float32" and shape != (33,)):
            continue
        close(x.any(dim), a.any(axis=dim))
        close(x.all(dim), a.all(axis=dim))
        close(x.count_nonzero(dim), np.count_nonzero(a, axis=dim))


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [
        *(("float32", s) for s in SHAPES if 0 not in s),
        *(("int64", (33,)), ("int64", (33, 32)), ("int8", (33,))),
    ],
    ids=str,
)
def test_extremes_match_numpy(dtype: str, shape: tuple[int, ...]) -> None:
    a = data(*shape, dtype=dtype)
    x = _tensor(a)
    for d in range(a.ndim):
        values, indices = x.max(d)
        close(values, a.max(axis=d))
        close(indices, a.argmax(axis=d))
        if dtype != "float32" and shape != (33,):
            continue
        close(x.amin(d, keepdim=True), a.min(axis=d, keepdims=True))
        low, high = x.aminmax(dim=d)
        close(low, a.min(axis=d))
        close(high, a.max(axis=d))
    if dtype == "float32" or shape == (33,):
        close(x.max(), a.max())
        close(x.argmin(), a.argmin())


@pytest.mark.parametrize("shape", [(33, 32), (3, 33, 5), (70, 31)], ids=str)
def test_statistics_match_numpy(shape: tuple[int, ...]) -> None:
    """With three dims the variance alone, whose running state is the largest."""
    a = data(*shape)
    x = _tensor(a)
    for dim in _dims(a.ndim):
        close(x.var(dim), a.var(axis=dim, ddof=1))
        if a.ndim == 3:
            continue
        close(x.mean(dim), a.mean(axis=dim))
        close(x.std(dim, correction=0), a.std(axis=dim))
        axes = tuple(range(a.ndim)) if dim is None else dim
        close(x.logsumexp(axes), np.log(np.exp(a).sum(axis=dim)))
        close(
            x.prod(dim) if not isinstance(dim, tuple) else x.sum(dim),
            a.prod(axis=dim) if not isinstance(dim, tuple) else a.sum(axis=dim),
            1e-4,
        )


@pytest.mark.parametrize(
    "change",
    [lambda v: v.T, lambda v: v[1:, ::2], lambda v: v[::3], lambda v: v[2], lambda v: v[:, 3:4]],
)
def test_any_layout_is_read_in_place(change: Any) -> None:
    a = data(33, 34)
    x, a = change(_tensor(a)), change(a)
    for dim in _dims(a.ndim):
        close(x.sum(dim), a.sum(axis=dim), 1e-4)
        close(
            x.argmax(dim) if not isinstance(dim, tuple) else x.amax(dim),
            a.argmax(axis=dim) if not isinstance(dim, tuple) else a.max(axis=dim),
        )
    close(x.expand(3, *x.shape).sum(0), 3 * a, 1e-4)


@pytest.mark.parametrize(
    ("schedule", "parts", "dtype"),
    [
        *((s, None, "float32") for s in ("row", "col")),
        *((s, 3, "int16") for s in ("row", "col")),
        *((s, 3, "float32") for s in ("gpu-row", "gpu-col")),
        ("gpu-row", None, "int16"),
    ],
)
def test_every_schedule_agrees(schedule: str, parts: int | None, dtype: str) -> None:
    a = (data(33, 40, 18) * 3).astype(dtype)
    x = ct.tensor(a.copy())
    backend = get_backend(x.device)
    dt = x.dtype
    wide = dtypes.float32 if dt.category == 2 else dtypes.int64
    views = ((x.permute(2, 0, 1), a.transpose(2, 0, 1)), (x, a))
    for view, array in views if dtype == "float32" else views[:1]:
        source = of_operands(core.kernel_operand(view))
        for dims in ((1,), (0, 2)):

            def run(
                kind: str,
                compute: Any,
                outputs: Any,
                scale: float | None = None,
                source: Any = source,
                dims: Any = dims,
            ) -> list[Any]:
                found = family.reduce(
                    backend,
                    kind,
                    source,
                    dims,
                    compute,
                    outputs,
                    scale=scale,
                    schedule=schedule,
                    parts=parts,
                )
                return [core.result(f, x.device) for f in found]

            exact = array.astype(np.float64)
            close(run("sum", wide, [("value", wide)])[0], exact.sum(axis=dims), 2e-3)
            if len(dims) == 1:
                compute = dtypes.float32 if dt.category == 2 else dtypes.int32
                close(
                    run("argmin", compute, [("index", dtypes.int64)])[0], array.argmin(axis=dims[0])
                )
            if dt is dtypes.float32 and view is not x:
                n = exact.size // exact.sum(axis=dims).size
                var, mean = run("var", dt, [("var", dt), ("mean", dt)], n - 1)
                close(var, exact.var(axis=dims, ddof=1), 1e-4)
                close(mean, exact.mean(axis=dims), 1e-4)
                close(
                    run("logsumexp", dt, [("value", dt)])[0],
                    np.log(np.exp(exact).sum(axis=dims)),
                    1e-4,
                )


# Few vectors of columns, and so many that rows are read one by one.
@pytest.mark.parametrize("columns", [48, 300])
def test_positions_and_sums_of_many_parts(columns: int) -> None:
    a = data(90, columns)
    x = ct.tensor(a)
    backend, source = get_backend(x.device), of_operands(core.kernel_operand(x))
    places, values = [("index", ct.int64)], [("value", ct.float32)]
    own = ("col",) if backend.info.kind == "cpu" else ()
    for schedule in (*own, "gpu-col", "gpu-row"):
        for parts in (3, 40):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(kernels, "_kernels", {})  # CPU and GPU schedules share a device
                at, total = (
                    family.reduce(
                        backend,
                        kind,
                        source,
                        (0,),
                        ct.float32,
                        outputs,
                        schedule=schedule,
                        parts=parts,
                    )[0]
                    for kind, outputs in (("argmax", places), ("sum", values))
                )
            close(core.result(at, x.device), a.argmax(0), 0)
            close(core.result(total, x.device), a.sum(0), 1e-4)


@pytest.mark.parametrize("columns", [20, 150, 1030], ids=str)
def test_columns_do_not_depend_on_how_long_the_rows_are(columns: int) -> None:
    a = data(37, columns)
    a[7, columns // 2], a[30, 3] = np.nan, a[:, 3].max()
    x, one = ct.tensor(a), [ct.tensor(a[:, k].copy()) for k in (3, columns // 2, columns - 1)]
    for fn in (ct.sum, ct.amax, ct.argmax, ct.var):
        found = fn(x, 0).cpu().numpy()[[3, columns // 2, columns - 1]]
        np.testing.assert_allclose(found, [fn(c, 0).item() for c in one], 1e-5, 1e-6)


def test_columns_of_several_rows_are_no_long_run() -> None:
    backend: Any = SimpleNamespace(info=SimpleNamespace(compute_units=2))

    def parts(*kept: int) -> int:
        cut = Split(kept, (3136,), ((1,) * len(kept),), ((64,),), (False,), 1024, 3136)
        return family._divide_cpu(backend, cut, False, 16, 64, None, False, 16).parts

    assert parts(16, 64) == 1  # a row of outputs for each work-item
    assert parts(1024) > 1


# Rows that end inside a vector or not; samples whose rows belong to one work-item each; in one part and in several.
@pytest.mark.parametrize(
    ("shape", "dim", "parts"),
    [((150, 60), 0, None), ((3, 140, 112), 1, 3), ((140, 2, 48), 0, 3)],
    ids=str,
)
def test_states_of_short_rows_in_registers_give_the_bits_of_those_in_memory(
    shape: tuple[int, ...], dim: int, parts: int | None, on_a_cpu: None
) -> None:
    a = data(*shape)
    a[-1, ..., 5], a[2, ..., 41] = np.inf, np.nan
    x = ct.tensor(a)
    backend, source = get_backend(x.device), of_operands(core.kernel_operand(x))
    for kind, names in (("sum", ["value"]), ("var", ["var", "mean"]), ("aminmax", ["min", "max"])):
        outputs = tuple((n, ct.float32) for n in names)
        found = []
        for least in (0, a.size + 1):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(family, "NARROW_LEAST", least)
                plan = family._plan.__wrapped__(
                    backend, 0, kind, source.pattern(), (dim,), ct.float32, outputs, "col", parts
                )
                assert ("_n" in plan.kernel.name) == (not least)
                patch.setattr(family, "_plan", lambda *_, plan=plan: plan)
                made = family.reduce(
                    backend, kind, source, (dim,), ct.float32, outputs, scale=9.0 * (kind == "var")
                )
            found.append([core.result(v, x.device).cpu().numpy() for v in made])
        for one, other in zip(*found, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "bfloat16"])
def test_lanes_of_short_rows_are_joined_beside_others(
    dtype: str, backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(family, "NARROW_LEAST", 0)
    made: list[str] = []
    kernel = family.reducing

    def noted(*given: Any) -> Any:
        found = kernel(*given)
        made.append(found.name)
        return found

    monkeypatch.setattr(family, "reducing", noted)
    family._plan.cache_clear()
    for shape in ((67, 10), (5, 30, 33), (70, 63)):
        # Whole numbers, so that sums are exact in every order.
        a = np.round(data(*shape) * 2)
        x = ct.tensor(a).to(getattr(ct, dtype))
        wide = ct.zeros(*shape[:-1], shape[-1] + 5).to(x.dtype)
        wide[..., :-5] = x
        for y in (x, wide[..., :-5]):
            np.testing.assert_array_equal(y.sum(-1).double().cpu(), a.sum(-1))
            np.testing.assert_array_equal((y * 2 - y).sum(-1).double().cpu(), a.sum(-1))
            np.testing.assert_array_equal(y.amax(-1).double().cpu(), a.max(-1))
            low, high = y.aminmax(dim=-1)
            np.testing.assert_array_equal(high.double().cpu() - low.double().cpu(), a.max(-1) - a.min(-1))  # fmt: skip
            if x.is_floating_point():
                close(y.double().mean(-1).cpu(), a.mean(-1), 1e-6)
                close(y.norm(dim=-1).double().cpu(), np.linalg.norm(a, axis=-1), 1e-2)
    if dtype == "float32" and backend.info.kind == "cpu":
        assert sum("_abreast" in name for name in made) > 12
    if x.is_floating_point():
        x[3, 7], x[4, 0], x[5] = np.nan, np.inf, -np.inf
        a = x.double().cpu().numpy()
        np.testing.assert_array_equal(x.amax(1).double().cpu(), a.max(1))
        np.testing.assert_array_equal(x.sum(1)[3:6].double().cpu(), [np.nan, np.inf, -np.inf])
    family._plan.cache_clear()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "complex64"])
def test_rows_of_few_numbers_are_added_up_side_by_side(
    dtype: str, poisoned: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Narrow rows are reduced several at a time, with partial results for each column; neighbouring rows may be far
    from each other's mean."""
    monkeypatch.setattr(family, "NARROW_LEAST", 0)
    made: list[int] = []
    left: list[int] = []
    plan = family._plan.__wrapped__

    def noted(*given: Any) -> Any:
        found = plan(*given)
        made.append(found.task.folded)
        left.append(found.task.rest)
        return found

    monkeypatch.setattr(family, "_plan", noted)
    for rows, width in ((2640, 3), (330, 10), (144, 15), (2640, 2), (101, 3), (643, 7)):
        # Whole numbers, so that sums are exact in every order.
        a = np.round(data(rows, width) * 2) + (np.arange(width) * 64 if dtype == "float32" else 0)
        x = ct.tensor(a).to(getattr(ct, dtype))
        np.testing.assert_array_equal(x.sum(0).to(ct.complex128).cpu().real, a.sum(0))
        np.testing.assert_array_equal((x * 2 - x).sum(0).to(ct.complex128).cpu().real, a.sum(0))
        if dtype == "complex64":
            continue
        low, high = x.aminmax(dim=0)
        np.testing.assert_array_equal(low.double().cpu(), a.min(0))
        np.testing.assert_array_equal(high.double().cpu(), a.max(0))
        np.testing.assert_array_equal(x.argmax(0).cpu(), a.argmax(0))
        if dtype == "float32":
            x[7, 1] = np.nan
            assert x.amax(0).isnan().tolist() == [k == 1 for k in range(width)]
            x[7, 1] = a[7, 1] = 9
            var, mean = ct.var_mean(x, 0)
            close(var.cpu(), a.var(0, ddof=1), 1e-5)
            close(mean.cpu(), a.mean(0), 1e-6)
    if dtype == "float32" and get_backend(x.device).info.kind == "cpu":
        assert max(made) == 30
        assert {101 % 21 * 3, 643 % 9 * 7} <= set(left)


def test_deviations_of_columns_far_from_each_other() -> None:
    a = (data(64, 40) + np.arange(40) * 1e4).astype(np.float32)
    np.testing.assert_allclose(
        ct.tensor(a).var(0).cpu().numpy(), a.astype(np.float64).var(0, ddof=1), rtol=1e-4
    )


# Neighbouring numbers, and so the means, are a thirtieth of a standard deviation apart.
@pytest.mark.parametrize("schedule", ["row", "col", "gpu-row", "gpu-col"])
@pytest.mark.parametrize("parts", [None, 3, 20])
def test_deviations_that_are_small_beside_the_mean(schedule: str, parts: int | None) -> None:
    a = (data(3000, 40) + 4e5).astype(np.float32)
    x = ct.tensor(a)
    var, mean = (
        core.result(found, x.device)
        for found in family.reduce(
            get_backend(x.device),
            "var",
            of_operands(core.kernel_operand(x)),
            (0,),
            ct.float32,
            [("var", ct.float32), ("mean", ct.float32)],
            scale=2999,
            schedule=schedule,
            parts=parts,
        )
    )
    exact = a.astype(np.float64)
    np.testing.assert_allclose(var.cpu().numpy(), exact.var(0, ddof=1), rtol=1e-6)
    np.testing.assert_allclose(mean.cpu().numpy(), exact.mean(0), rtol=1e-7)


def test_long_sums_are_accurate() -> None:
    a = np.random.default_rng(0).random(1 << 22, dtype=np.float32)
    x = ct.tensor(a)
    exact = a.astype(np.float64).sum()
    assert abs(x.sum().item() - exact) <= 4e-7 * exact
    # All roundings have the same direction, so nothing cancels: a sequential sum would be wrong by a thousandth.
    tenths, exact = ct.full((1 << 22,), 0.1), float(np.float32(0.1)) * (1 << 22)
    assert abs(tenths.sum().item() - exact) <= 4e-6 * exact
    close(tenths.view(4, -1).sum(1) / exact, [0.25] * 4, 2e-6)
    close(tenths.view(-1, 32).sum(0) / exact, [1 / 32] * 32, 2e-6)
    shifted = ct.tensor(a + 1000)
    assert abs(shifted.var().item() - (a + 1000).astype(np.float64).var(ddof=1)) < 1e-5


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "complex64"])
def test_products_match_numpy(dtype: str) -> None:
    every = {"float32": 4, "float64": 1}
    for shape in ((5, 37), (37, 5), (1, 701), (3, 20, 7))[: every.get(dtype, 3)]:
        a = (1 + data(*shape) / 5).astype(dtype)
        if dtype == "int64":
            a[..., ::9] = -3  # and so wraps round
        for dim in _dims(a.ndim):
            if dim is not None and not isinstance(dim, tuple):
                np.testing.assert_allclose(
                    ct.tensor(a).prod(dim).cpu().numpy(), a.prod(dim), rtol=1e-4, atol=1e-6
                )
        np.testing.assert_allclose(ct.tensor(a).prod().item(), a.prod(), rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64"])
def test_the_extreme_of_nothing_but_ends_is_one(dtype: str) -> None:
    """For the narrowest dtype in every schedule; for the others along rows, with as many rows as lead to one
    schedule."""
    info = np.iinfo(dtype)
    every = dtype == "int8"
    for shape in ((3, 40), (40, 3), (1, 700)) if every else ((3, 40), (1, 700)):
        low, high = (ct.tensor(np.full(shape, v, dtype)) for v in (info.min, info.max))
        for dim in (0, 1, (0, 1)) if every else (1,):
            assert set(low.amax(dim).reshape(-1).tolist()) == {info.min}
            assert set(high.amin(dim).reshape(-1).tolist()) == {info.max}
        for found, end in ((low.max(1), info.min), (high.min(1), info.max)):
            assert set(found.values.tolist()) == {end}
            assert not any(found.indices.tolist())
        assert [v.item() for v in low.aminmax()] == [info.min] * 2
        assert [v.item() for v in high.aminmax()] == [info.max] * 2


def test_nan_wins_and_first_of_equals_is_found() -> None:
    a = np.tile(np.float32([1, 3, 3, 0, 0]), (4, 9))
    x = _tensor(a)
    assert x.argmax(1).tolist() == [1] * 4
    assert x.argmin(1).tolist() == [3] * 4
    a[2, 7] = np.nan
    x = _tensor(a)
    assert (
        np.isnan(x.max().item())
        and x.argmax(1).tolist() == [1, 1, 7, 1]
        and x.argmin().item() == 2 * 45 + 7
    )
    lowest = ct.full((40,), -float("inf"))
    assert lowest.argmax().item() == 0 and lowest.max(0)[1].item() == 0


@pytest.mark.parametrize("rows", [3, 8, 37])
def test_logsumexp_across_memory_of_what_is_not_finite(rows: int) -> None:
    """Several elements of each column are taken at once: an infinite maximum is the result, unless an element is
    NaN."""
    inf, nan = np.inf, np.nan
    a = np.tile(data(rows, 1), (1, 45))
    want = np.tile(np.log(np.exp(a[:, :1].astype(np.float64)).sum(0)), 45)
    a[:, 1:5] = -inf
    a[1, 2] = 5
    a[-1, 3] = nan
    a[0, 4] = inf
    a[2, 5] = inf
    a[0, 6] = inf
    a[-1, 6] = nan
    a[1, 7] = nan
    a[:, 8] = np.finfo(np.float32).min
    want[1:9] = -inf, 5, nan, inf, inf, nan, nan, np.finfo(np.float32).min
    np.testing.assert_allclose(ct.tensor(a).logsumexp(0).cpu().numpy(), want, rtol=1e-6)


def test_empty_reductions() -> None:
    empty = ct.zeros(0, 3)
    assert (
        empty.sum().item() == 0
        and empty.prod(0).tolist() == [1, 1, 1]
        and np.isnan(empty.mean().item())
    )
    assert empty.all().item() is True and empty.any(0).tolist() == [False] * 3
    with pytest.raises(
        RuntimeError,
        match=r"max\(\): Expected reduction dim to be specified for input.numel\(\) == 0",
    ):
        empty.max()
    with pytest.raises(
        IndexError, match=r"argmax\(\): Expected reduction dim 0 to have non-zero size"
    ):
        empty.argmax(0)


def test_a_chain_is_the_prologue_of_its_reduction(backend: Any) -> None:
    def step(n: int, m: int) -> tuple[int, int]:
        x, y = ct.ones(n, m) * 3, ct.ones(n, m)
        x.data_ptr(), y.data_ptr()
        before = STATS.launches, STATS.builds
        value = ((x - y) ** 2).mean().item()
        counts = STATS.launches - before[0], STATS.builds - before[1]
        assert value == 4
        return counts

    step(64, 100)
    launches, builds = step(65, 90)
    assert launches <= (1 if backend.info.kind == "cpu" else 2) and builds == 0
    step(900, 900)
    launches, builds = step(1000, 800)
    assert launches <= 2 and builds == 0


@pytest.mark.parametrize("shape", [(), (31,), (33, 32), (31, 33), (3, 0)], ids=str)
def test_norms_and_nansum_are_reductions_of_their_own(shape: tuple[int, ...]) -> None:
    """One launch each, for operands in memory and for pending ones."""
    a = data(*shape)
    x = _tensor(a)
    x.data_ptr()
    for dim in _dims(a.ndim):
        before = STATS.launches
        found = x.norm(2, dim), x.norm(1, dim), ct.where(x > 1, np.nan, x).nansum(dim)
        assert STATS.launches - before <= 3
        close(found[0], np.sqrt((a * a).sum(axis=dim)), 1e-5)
        close(found[1], np.abs(a).sum(axis=dim), 1e-5)
        close(found[2], np.where(a > 1, 0, a).sum(axis=dim), 1e-5)


@pytest.mark.parametrize("shape", [s for s in SHAPES if 0 not in s], ids=str)
def test_hashes_are_words_combined(shape: tuple[int, ...]) -> None:
    a = data(*shape)
    for x, words in (
        (_tensor(a), a.astype(np.float64).view(np.int64)),
        (_tensor(a.astype(np.int64)), a.astype(np.int64)),
    )[: 2 if a.ndim < 3 else 1]:
        for dim in _dims(a.ndim):
            dims = (dim,) if isinstance(dim, int) else tuple(range(a.ndim)) if dim is None else dim
            found = x.hash_tensor(dim)
            assert found.dtype is ct.uint64
            want = words
            for d in sorted([d % a.ndim for d in dims], reverse=True) if a.ndim else ():
                want = np.bitwise_xor.reduce(want, axis=d)
            np.testing.assert_array_equal(found.cpu().numpy().view(np.int64), want)


def test_a_pending_value_read_twice_runs_once() -> None:
    x = ct.ones(50, 60)
    x.data_ptr()
    y = x.exp() * 2 + 1
    first, second = y.sum(), y.amax()
    assert first.item() == pytest.approx(
        3000 * (2 * np.e + 1), rel=1e-5
    ) and second.item() == pytest.approx(2 * np.e + 1)


@pytest.mark.usefixtures("one_by_one")
@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x.mean((0, 2)),
        lambda x: x.amax((0, 1)),
        lambda x: x.std((0, 2), correction=0),
        lambda x: x.norm(3, 1),
        lambda x: x.cumprod(1),
    ],
)
def test_gradients(fn: Any) -> None:
    """Gradients of reductions over several dims, or one between others; test_gradients.py has the simple cases."""
    x = (
        ct.from_numpy(data(2, 4, 3, dtype="float64"))
        .to(ct.get_default_device())
        .requires_grad_(True)
    )
    assert ct.autograd.gradcheck(fn, (x,))
    assert ct.autograd.gradgradcheck(fn, (x,))


@pytest.mark.parametrize("call", ["std", "var", "std_mean", "var_mean"])
def test_too_few_elements_for_the_correction_warn(dev: Any, call: str) -> None:
    x = ct.tensor(data(1, 3), device=dev)
    with pytest.warns(UserWarning, match=rf"{call}\(\): degrees of freedom is <= 0"):
        getattr(ct, call)(x, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        getattr(ct, call)(x, 0, correction=0)


@pytest.mark.parametrize(("shape", "dim"), [((0, 3), 0), ((3, 0), 1), ((0, 0, 3), (0, 1))])
def test_pending_constants_without_elements(shape: tuple[int, ...], dim: Any) -> None:
    """Nothing is read or reduced: the result is the value of an empty sum."""
    assert ct.zeros(shape).sum(dim).tolist() == [0.0] * 3
    assert ct.ones(shape, dtype=ct.int64).all(dim).tolist() == [True] * 3


def test_a_reduction_may_be_written_over_a_part_of_what_it_reads() -> None:
    array = data(3, 4)
    for name in ("sum", "mean", "prod", "amax", "std", "logsumexp"):
        x = ct.tensor(array)
        expected = getattr(ct, name)(x, 0).cpu().numpy()
        getattr(ct, name)(x, 0, out=x[1])
        close(x.cpu().numpy(), np.stack((array[0], expected, array[2])))
