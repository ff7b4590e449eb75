"""Every template family on a device that claims to be a GPU: GPU schedules give the values of CPU schedules.

The families are those of tests/families.py, whose sizes are tiny, odd and just past a vector or a tile; other tests check the values of the
CPU's schedules.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import Any
from unittest.mock import MagicMock

import families
import numpy as np
import pytest
from support import constants_restored, poison

import cltensor as ct
from cltensor.codegen.products import product
from cltensor.codegen.reduce import reduction
from cltensor.ops import replay
from cltensor.runtime import Backend, device, device_list, get_backend, registry
from cltensor.runtime.program import ProgramCache

NAMES = list(families.families(MagicMock()))  # collecting tests must not make tensors


@pytest.fixture
def as_it_was() -> Iterator[None]:
    """Restore the constants that families change, and forget launches recorded with those values."""
    with constants_restored():
        yield
    replay.forget()


@pytest.fixture(scope="module")
def lanes() -> Iterator[Backend]:
    """Yield a private twin, named opencl:76, of the first GPU, or else of the first device, that claims to be a GPU with few compute units.

    PoCL builds its kernels without optimisation, which would be most of the build time.
    """
    every = [get_backend(d) for d in device_list()]
    first = next((backend for backend in every if backend.info.kind == "gpu"), every[0])
    twin = Backend(device("opencl:76"), first.cl_device, False)
    twin.info = dataclasses.replace(
        twin.info, kind="gpu", lanes=1, compute_units=2, host_shared=False
    )
    load = ProgramCache._load_or_build

    def quickly(self: Any, name: str, source: str, options: tuple[str, ...]) -> Any:
        assert not _unused_arrays(source), name
        more = ("-cl-opt-disable",) if self is twin.programs and twin.info.is_pocl else ()
        return load(self, name, source, (*options, *more))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ProgramCache, "_load_or_build", quickly)
        patch.setitem(registry.backends, twin.device, twin)
        poison(twin, patch)
        yield twin


def _unused_arrays(source: str) -> list[str]:
    """Return the local arrays that a kernel declares but never uses: PoCL 6 ends the process over these."""
    declared = re.findall(r"__local \w+ (\w+\[[^;]*);", source)
    names = [name for line in declared for name in re.findall(r"(?:^|, )(\w+)\[", line)]
    return [name for name in names if len(re.findall(rf"\b{name}\b", source)) == 1]


def _results(name: str, where: Any) -> list[np.ndarray]:
    ct.set_default_device(where)
    ct.manual_seed(5)
    found = families.families(ct)[name]()
    every = found if isinstance(found, tuple | list) else (found,)
    assert all(x.device == where for x in every)
    return [np.asarray(x.detach().tolist()) for x in every]


@pytest.mark.parametrize("n", [1, 3, 4, 33, 4099])
def test_random_numbers_side_by_side(lanes: Backend, n: int) -> None:
    """A lane draws the numbers that share a block of Philox words, for any destination, and the remaining ones one by
    one."""

    def drawn(where: Any) -> list[Any]:
        ct.manual_seed(5)
        ct.set_default_device(where)
        x = ct.empty(n + 1)
        dt = (ct.float32, ct.float64, ct.float16)
        found = [f(n, dtype=kind) for f in (ct.rand, ct.randn) for kind in dt]
        found += [ct.randint(9, (n,)), ct.nn.functional.dropout(ct.ones(n), 0.3)]
        found += [
            x[1:].uniform_().clone(),
            ct.rand(n) * ct.arange(n) + ct.randn(n),
            ct.rand(n, 3).T.exp(),
        ]
        return [np.asarray(y.tolist()) for y in found]

    for a, b in zip(drawn(lanes.device), drawn(device_list()[0]), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5)


@pytest.mark.parametrize("bins", [1, 300, 2047, 2048, 5000])
def test_counts(lanes: Backend, bins: int) -> None:
    """Counts in tables in local memory, added up over work-groups, or in one global table."""
    x = np.random.default_rng(bins).integers(0, bins, 20_000)
    found = ct.tensor(x, device=lanes.device).bincount(minlength=bins)
    np.testing.assert_array_equal(found.tolist(), np.bincount(x, minlength=bins))


@pytest.mark.parametrize("length", [2, 8, 31])
def test_scans_of_short_rows(lanes: Backend, length: int) -> None:
    """Each lane scans a row of its own, whatever the neighbouring rows hold."""
    x = np.random.default_rng(length).integers(-9, 9, (300, length)).astype(np.float32)
    for turned in (False, True):
        given = (
            ct.tensor(x.T.copy(), device=lanes.device).T
            if turned
            else ct.tensor(x, device=lanes.device)
        )
        np.testing.assert_array_equal(given.cumsum(1).tolist(), x.cumsum(1))
        np.testing.assert_array_equal(given[:3].cumprod(1).tolist(), x[:3].cumprod(1))
        top, _ = given.cummax(1)
        np.testing.assert_array_equal(top.tolist(), np.maximum.accumulate(x, 1))
        np.testing.assert_array_equal(given.to(ct.int64).cumsum(1).tolist(), x.cumsum(1))


def test_single_halves_are_rounded_after_each_step(lanes: Backend) -> None:
    """Rounding to infinity, to multiples of the smallest denormal, and to even, as for vectors of halves."""
    x = np.array([60000, -60000, 6e-5, 1e-7, 2049 / 2048, 3e-8, 65504], np.float16)
    for name in ("float16", "bfloat16"):
        found = [
            ((v * 2 / 2) * 1.0009765 - 1e-7).float().cpu().numpy()
            for v in (
                ct.tensor(x, device=where).to(getattr(ct, name))
                for where in (lanes.device, device_list()[0])
            )
        ]
        np.testing.assert_array_equal(*found)
        assert np.isinf(found[0][:2]).all() == (name == "float16")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("n", [384, 507, 512, 513, 1023, 1025, 24571])
def test_lanes_that_take_several_elements_write_none_beside_them(
    n: int, dtype: str, lanes: Backend
) -> None:
    whole = ct.zeros(n + 64, dtype=getattr(ct, dtype), device=lanes.device)
    whole[32 : n + 32].add_(1)
    found = whole.float().cpu().numpy()
    assert found[32 : n + 32].tolist() == [1] * n
    assert not found[:32].any()
    assert not found[n + 32 :].any()


@pytest.mark.parametrize("announces", [False, True])
@pytest.mark.parametrize("units", [1, 40])
def test_groups_of_many_shapes_reduce(
    units: int, announces: bool, lanes: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few and many outputs, elements adjacent or strided, in one piece and in parts, which the last work-group or a
    second launch joins."""
    monkeypatch.setattr(lanes, "info", dataclasses.replace(lanes.info, compute_units=units))
    monkeypatch.setattr(reduction, "announces", lambda _backend: announces)
    reduction._plan.cache_clear()  # type: ignore[attr-defined]
    replay.forget()
    rng, made = np.random.default_rng(units), []
    launch = lanes.launch_held
    monkeypatch.setattr(lanes, "launch_held", lambda k, *a, **b: (made.append(k.name), launch(k, *a, **b)))  # fmt: skip
    cases = [((70001,), 0), ((7, 3001), 1), ((3001, 7), 0), ((33, 130), 0), ((3001, 20), 1), ((3, 5, 7, 11), (0, 2)), ((1, 300), 0), ((3, 6, 20, 30), (0, 2, 3)), ((711, 65), 0), ((3, 6, 20, 30), (1, 3))]  # fmt: skip
    for shape, dims in cases:
        a = rng.standard_normal(shape).astype(np.float32)
        x, exact = ct.tensor(a, device=lanes.device), a.astype(np.float64)
        np.testing.assert_allclose(x.var(dims, correction=0).tolist(), exact.var(dims), 1e-4, 1e-5)
        np.testing.assert_allclose((2 * x).sum(dims).tolist(), 2 * exact.sum(dims), 1e-3, 1e-3)
        if isinstance(dims, int):
            np.testing.assert_array_equal(x.argmin(dims).tolist(), a.argmin(dims))
    assert any("gpu_row" in name for name in made)
    assert any("gpu_col" in name for name in made)
    assert any("merge_gpu" in name for name in made) != announces
    assert any("gpu_" in name and name.endswith("pj") for name in made) == announces
    reduction._plan.cache_clear()  # type: ignore[attr-defined]
    replay.forget()


def _softmax(a: np.ndarray, dim: int) -> np.ndarray:
    e = np.exp(a.astype(np.float64) - a.max(dim, keepdims=True))
    return e / e.sum(dim, keepdims=True)


# Rows that fit lanes' registers, longer ones, short ones of which a work-group takes several, and few long ones in
# parts.
@pytest.mark.parametrize(
    ("shape", "dim", "units", "launches"),
    [((37, 1001), 1, 2, 1), ((3, 17003), 1, 2, 1), ((300, 10), 1, 2, 1), ((301, 130), 0, 2, 1), ((4, 70, 33), 1, 2, 1), ((3001, 40), 0, 2, 1), ((2, 70001), 1, 40, 3), ((9001, 20), 0, 40, 3)],
)  # fmt: skip
def test_rows_of_many_shapes(
    shape: tuple[int, ...], dim: int, units: int, launches: int, lanes: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.setattr(lanes, "info", dataclasses.replace(lanes.info, compute_units=units))
    a, w = np.random.default_rng(dim).standard_normal((2, *shape)).astype(np.float32)
    x = ct.tensor(a, device=lanes.device, requires_grad=True)
    count, launch = [0], lanes.launch_held
    monkeypatch.setattr(lanes, "launch_held", lambda *a, **b: (count.__setitem__(0, count[0] + 1), launch(*a, **b)))  # fmt: skip
    y = x.softmax(dim)
    assert count[0] <= launches
    p = _softmax(a, dim)
    np.testing.assert_allclose(y.tolist(), p, 1e-4, 1e-7)
    (g,) = ct.autograd.grad(y, x, ct.tensor(w, device=lanes.device))
    np.testing.assert_allclose(g.tolist(), p * (w - (w * p).sum(dim, keepdims=True)), 1e-3, 1e-6)
    y = x.bfloat16().log_softmax(dim).float().tolist()
    np.testing.assert_allclose(y, np.log(p), 0.03, 0.03)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("norm", ["batch", "group"])
def test_norms_of_few_channels_by_sums(
    norm: str, weighted: bool, lanes: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The two sums of the gradient are one kernel, and the rest is a pointwise chain."""
    from cltensor.ops.nn import rowwise

    monkeypatch.setattr(rowwise, "SMALL", 1)
    monkeypatch.setattr(rowwise, "COLUMNS", 1)
    monkeypatch.setattr(lanes, "info", dataclasses.replace(lanes.info, compute_units=40))
    rng, made, launch = np.random.default_rng(3), [], lanes.launch_held
    monkeypatch.setattr(lanes, "launch_held", lambda k, *a, **b: (made.append(k.name), launch(k, *a, **b)))  # fmt: skip
    a, slope = (2 * rng.standard_normal((2, 5, 6, 7, 9)) + 3).astype(np.float32)
    w, b = rng.standard_normal((2, 6)).astype(np.float32) if weighted else (None, None)
    found = []
    for where in (lanes.device, device_list()[0]):
        x = ct.tensor(a, device=where, requires_grad=True)
        factors = [
            v if v is None else ct.tensor(v, device=where, requires_grad=True) for v in (w, b)
        ]
        if norm == "batch":
            y = ct.nn.functional.batch_norm(x, None, None, *factors, training=True)
        else:
            y = ct.nn.functional.group_norm(x, 3, *factors)
        given = [v for v in (x, *factors) if v is not None]
        by = ct.autograd.grad(y, given, ct.tensor(slope, device=where))
        found.append([np.asarray(v.tolist()) for v in (y, *by)])
    assert sum(name.startswith("norm_sums") and "merge" not in name for name in made) == 1
    for mine, expected in zip(*found, strict=True):
        np.testing.assert_allclose(mine, expected, 2e-4, 2e-4)


@pytest.mark.parametrize("name", NAMES)
def test_lanes_find_what_vectors_find(
    name: str, lanes: Backend, as_it_was: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(product, "_kernels", {})  # drops kernels built with these settings
    mine = _results(name, lanes.device)
    expected = _results(name, device_list()[0])
    tolerance = 1e-2 if "half" in name else 2e-5
    for a, b in zip(mine, expected, strict=True):
        if name == "conv2d winograd":  # filters' gradients that see inf are not finite
            a, b = (np.where(np.isfinite(v), v, np.nan) for v in (a, b))
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
