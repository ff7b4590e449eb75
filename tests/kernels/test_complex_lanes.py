"""Vectors of complex numbers: the same bits as single numbers, and every layout and conversion against numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import choose_anew
from support import ct as torch

from cltensor.codegen import pointwise

DTYPES = ["complex64", pytest.param("complex128", marks=pytest.mark.fp64)]
ENDS = [0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 2.5, -200, 1e30, -1e-30, 3e38, 9e18, 1e19]
FUNCTIONS: dict[str, Callable] = {
    "product": lambda a, b: a * b,
    "quotient": lambda a, b: a / b,
    "reciprocal": lambda a, b: 1 / a,
    "sum": lambda a, b: a - 2j * b,
    "negative": lambda a, b: -a,
    "conjugate": lambda a, b: a.conj() * 1,
    "abs": lambda a, b: a.abs(),
    "angle": lambda a, b: torch.angle(a),
    "exponential": lambda a, b: torch.exp(a / (1 + a.abs() / 99)),
    "sign": lambda a, b: torch.sgn(a),
    "polar": lambda a, b: torch.polar(a.abs(), b.real),
    "comparison": lambda a, b: a != b,
    "choice": lambda a, b: torch.where(a.real > 0, a, b),
    "truth": lambda a, b: a.bool(),
    "lerp": lambda a, b: torch.lerp(a, b, 0.3),
}
DOUBLE = {
    "product",
    "quotient",
    "sum",
    "abs",
    "exponential",
    "polar",
    "comparison",
}  # of complex128
OF_ONE = [
    "log",
    "log1p",
    "sqrt",
    "rsqrt",
    "expm1",
    "sinh",
    "cosh",
    "tan",
    "asin",
    "acos",
    "acosh",
    "atanh",
]


def _samples(dtype: str, n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)

    def part() -> np.ndarray:
        numbers = rng.normal(size=n) * np.exp(rng.normal(size=n) * 12)
        return np.where(rng.random(n) < 0.3, rng.choice(ENDS, n), numbers)

    made = np.empty(n, dtype)
    made.real, made.imag = part(), part()
    return made


@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_of_single_numbers(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = _samples(dtype, 2003, 0), _samples(dtype, 2003, 1)

    def results() -> dict[str, np.ndarray]:
        x, y = torch.tensor(a), torch.tensor(b)
        tried = [n for n in FUNCTIONS if n in DOUBLE or dtype == "complex64"]
        return {name: FUNCTIONS[name](x, y).cpu().numpy() for name in tried}

    found = results()
    monkeypatch.setattr(pointwise, "choose_lanes", lambda *_, **__: 1)
    choose_anew(monkeypatch)
    _same(found, results())


def _same(found: dict[str, np.ndarray], singles: dict[str, np.ndarray]) -> None:
    for name, single in singles.items():
        parts = (found[name], single)
        if single.dtype.kind == "c":
            parts = tuple(v.view(v.real.dtype) for v in parts)
        np.testing.assert_array_equal(*parts, err_msg=name)
        if single.dtype.kind in "fc":
            sign = [np.signbit(np.nan_to_num(v)) for v in parts]
            np.testing.assert_array_equal(*sign, err_msg=name)


@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_of_single_functions(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = _samples(dtype, 1001, 4), _samples(dtype, 1001, 5)

    def results() -> dict[str, np.ndarray]:
        x, y = torch.tensor(a).clone(), torch.tensor(b)  # pending, so that functions share kernels
        made = {name: getattr(torch, name)(x) for name in OF_ONE}
        made["pow"] = torch.pow(x, y)
        return {name: value.cpu().numpy() for name, value in made.items()}

    found = results()
    monkeypatch.setattr(pointwise, "choose_lanes", lambda *_, **__: 1)
    choose_anew(monkeypatch)
    _same(found, results())


def _close(found: Any, wanted: np.ndarray) -> None:
    found = found.cpu().numpy()
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_layouts_and_conversions(dtype: str) -> None:
    rng = np.random.default_rng(2)
    z = (rng.normal(size=(37, 25)) + 1j * rng.normal(size=(37, 25))).astype(dtype)
    real = z.real.dtype
    t = torch.tensor(z)
    _close(t + t[:, :1] * t[0], z + z[:, :1] * z[0])
    _close(t.t()[1:] * 2, z.T[1:] * real.type(2))
    _close(t[:, ::2] + t[:, 1:2], z[:, ::2] + z[:, 1:2])
    _close(t + t.real, z + z.real)
    _close(t.abs() * t.imag.double(), np.abs(z) * z.imag.astype(np.float64))
    _close(torch.complex(t.real, t.imag) * (t.real > 0), z * (z.real > 0))
    _close(t.to(torch.complex64) * 1j, z.astype(np.complex64) * np.complex64(1j))
    wide = torch.zeros(37, 51, dtype=t.dtype)
    wide[:, 1::2] = t * 2
    _close(wide[:, 1::2], z * real.type(2))
    wide[:, :25].mul_(t)
    assert not wide[:, 0].abs().any()


@pytest.mark.parametrize("dim", [0, 1, None])
def test_reductions_of_what_complex_numbers_come_to(dim: int | None) -> None:
    rng = np.random.default_rng(3)
    z = (rng.normal(size=(37, 53)) + 1j * rng.normal(size=(37, 53))).astype(np.complex64)
    t = torch.tensor(z)
    dims = () if dim is None else (dim,)

    def close(found: Any, wanted: Any) -> None:
        np.testing.assert_allclose(found.cpu().numpy(), wanted, rtol=2e-5)

    close(t.abs().sum(dims), np.abs(z).sum(dim))
    close((t * (1 + 2j)).abs().sum(dims), np.abs(z * (1 + 2j)).sum(dim))
    close((t[:, :1] * t).abs().amax(dims), np.abs(z[:, :1] * z).max(dim))
    close(t.t().abs().sum(dims), np.abs(z.T).sum(dim))
    close(t[:, ::2].abs().sum(dims), np.abs(z[:, ::2]).sum(dim))
    close(
        torch.softmax(t.abs(), 1).sum(dims),
        (np.exp(np.abs(z)) / np.exp(np.abs(z)).sum(1, keepdims=True)).sum(dim),
    )
    close((t * t).sum(dims), (z * z).sum(dim))


@pytest.mark.fp64
@pytest.mark.filterwarnings("ignore:Casting complex values to real")
def test_rows_of_real_parts_in_double_precision() -> None:
    """A kernel that reads complex64 and computes in float64 needs the functions of both."""
    rng = np.random.default_rng(0)
    given = (rng.normal(size=(5, 7)) + 1j * rng.normal(size=(5, 7))).astype(np.complex64)
    found = torch.softmax(torch.tensor(given), 1, dtype=torch.float64).cpu().numpy()
    raised = np.exp(given.real.astype(np.float64))
    np.testing.assert_allclose(found, raised / raised.sum(1, keepdims=True), 1e-12)


@pytest.mark.filterwarnings("ignore:Casting complex values to real")
def test_complex32_on_the_way() -> None:
    x = torch.tensor([1.0 + 2j, 0.1 - 1j, 0, 3, 4])
    assert x.to(torch.complex32).to(torch.int64).tolist() == [1, 0, 0, 3, 4]
    found = x.to(torch.complex32).to(torch.complex64) * 2
    np.testing.assert_array_equal(found.cpu().numpy()[1], np.complex64(2 * np.float16(0.1) - 2j))


def test_complex32_is_found_and_added_to_where_indices_say() -> None:
    x = torch.tensor([1.0 + 2j, 0, 1j]).to(torch.complex32).requires_grad_()
    assert x.detach().nonzero().tolist() == [[0], [2]]
    at = torch.tensor([2, 0, 2])
    assert x.detach().index_add(0, at, x.detach()).tolist() == [1 + 2j, 0, 1 + 4j]
    (x[at] * (2 - 1j)).to(torch.complex64).sum().real.backward()
    assert x.grad is not None and x.grad.tolist() == [2 + 1j, 0, 4 + 2j]
