"""The device functions of cl_kernels/ against scipy and numpy: accuracy over wide ranges, poles,
infinities, branch cuts."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special as sp
from support import choose_anew
from support import ct as torch

from cltensor.codegen import pointwise
from cltensor.codegen.language import LIBRARY
from cltensor.codegen.pointwise import PointOp
from cltensor.ops import core

LETTERS = "xyz"
INF, NAN = np.inf, np.nan


@functools.cache
def op(name: str, count: int) -> PointOp:
    return PointOp(name, f"{name}({', '.join(LETTERS[:count])})")


def apply(name: str, *tensors: Any) -> Any:
    """Apply a device function to tensors of one dtype and shape."""
    dtype = tensors[0].dtype
    return core.compute(
        op(name, len(tensors)), dtype, dtype, list(tensors), tensors[0].shape, tensors[0].device
    )


def evaluate(name: str, *arrays: Any) -> np.ndarray:
    """Apply a device function to arrays of one dtype."""
    return apply(name, *[torch.tensor(np.ascontiguousarray(a)) for a in arrays]).cpu().numpy()


def pending(array: np.ndarray) -> Any:
    """Return a pending copy of an array, so that many functions of it are fused and built as one kernel."""
    return torch.tensor(array).clone()


def each_at_its_points(points: dict[str, np.ndarray], dtype: str) -> dict[str, np.ndarray]:
    """Apply every function to all points, and return for each the values at its own points."""
    x = pending(np.concatenate([*points.values()]).astype(dtype))
    results = {name: apply(name, x) for name in points}
    ends = np.cumsum([len(own) for own in points.values()])
    return {
        name: results[name].cpu().numpy()[end - len(own) : end]
        for (name, own), end in zip(points.items(), ends)
    }


def spread(low: float, high: float, n: int = 4001) -> np.ndarray:
    return np.random.default_rng(1).uniform(low, high, n)


def powers(low: int, high: int, n: int = 2001) -> np.ndarray:
    return 10.0 ** np.random.default_rng(2).uniform(low, high, n)


def error(found: np.ndarray, wanted: np.ndarray, *, mixed: bool) -> float:
    """Return the largest relative error in units of the dtype's epsilon; with `mixed`, absolute where the
    value is below 1."""
    eps = np.finfo(found.dtype).eps
    tiny = float(np.finfo(found.dtype).tiny)
    usable = (
        np.isfinite(wanted)
        & (np.abs(wanted) < float(np.finfo(found.dtype).max))
        & (np.abs(wanted) > 100 * tiny)
    )
    size = np.abs(wanted[usable])
    return float(
        np.max(np.abs(found[usable] - wanted[usable]) / (np.maximum(size, 1) if mixed else size))
        / eps
    )


POSITIVE = np.concatenate([spread(0.001, 30), powers(-6, 2)])
BOTH = np.concatenate([spread(-30, 30), powers(-6, 2), -powers(-6, 2)])
WHOLE_LINE: dict[str, tuple[Callable, np.ndarray, float, bool]] = {
    # name: (reference, arguments, epsilons allowed, absolute below 1)
    "lgamma": (sp.gammaln, np.concatenate([spread(-20, 20), powers(-6, 4)]), 8, True),
    "digamma": (sp.digamma, np.concatenate([spread(0.01, 20), powers(-6, 4)]), 8, True),
    "trigamma": (
        lambda x: sp.polygamma(1, x),
        np.concatenate([spread(0.01, 20), powers(-6, 4)]),
        8,
        False,
    ),
    "tanh": (np.tanh, BOTH, 4, False),
    "exp": (np.exp, np.concatenate([spread(-86, 88), powers(-6, 1), -powers(-6, 1)]), 2, False),
    "erf": (sp.erf, BOTH, 2, False),
    "erfinv": (sp.erfinv, np.concatenate([spread(-1, 1), 1 - powers(-6, -1)]), 6, False),
    "ndtri": (sp.ndtri, np.concatenate([spread(0, 1), powers(-30, -1)]), 8, False),
    "erfcx": (sp.erfcx, np.concatenate([spread(-8, 8), powers(-6, 3)]), 24, False),
    "log_ndtr": (sp.log_ndtr, np.concatenate([spread(-40, 5), -powers(-6, 3)]), 8, True),
    "i0": (sp.i0, np.clip(BOTH, -80, 80), 12, False),
    "i0e": (sp.i0e, BOTH, 12, False),
    "i1": (sp.i1, np.clip(BOTH, -80, 80), 24, False),
    "i1e": (sp.i1e, BOTH, 24, False),
    "k0": (sp.k0, np.clip(POSITIVE, 0, 80), 16, False),
    "k0e": (sp.k0e, POSITIVE, 16, False),
    "k1": (sp.k1, np.clip(POSITIVE, 0, 80), 16, False),
    "k1e": (sp.k1e, POSITIVE, 16, False),
    "j0": (sp.j0, BOTH, 16, True),
    "j1": (sp.j1, BOTH, 16, True),
    "y0": (sp.y0, POSITIVE, 16, True),
    "y1": (sp.y1, POSITIVE, 24, True),
    "sj0": (lambda x: sp.spherical_jn(0, x), BOTH, 8, True),
    "airy": (lambda x: sp.airy(x)[0], np.clip(BOTH, -30, 30), 80, True),
}


@functools.cache
def whole_line(dtype: str) -> dict[str, np.ndarray]:
    return each_at_its_points({name: x for name, (_, x, *_) in WHOLE_LINE.items()}, dtype)


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.fp64)])
@pytest.mark.parametrize("name", sorted(WHOLE_LINE))
def test_one_argument(name: str, dtype: str) -> None:
    reference, x, allowed, mixed = WHOLE_LINE[name]
    x = x.astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = reference(x.astype(np.float64))
    assert error(whole_line(dtype)[name], wanted, mixed=mixed) <= allowed


def log_gamma_pairs(n: int = 4001) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    a = 10 ** rng.uniform(-2, 3, n)
    return a, a * np.exp(rng.normal(0, 0.4, n))


TWO: dict[str, tuple[Callable, Callable[[], tuple[np.ndarray, np.ndarray]], float]] = {
    "zeta": (sp.zeta, lambda: (spread(1.05, 15), spread(0.05, 30)), 12),
    "igamma": (sp.gammainc, log_gamma_pairs, 64),
    "igammac": (sp.gammaincc, log_gamma_pairs, 64),
}


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.fp64)])
@pytest.mark.parametrize("name", sorted(TWO))
def test_two_arguments(name: str, dtype: str) -> None:
    reference, make, allowed = TWO[name]
    a, b = (v.astype(dtype) for v in make())
    assert (
        error(
            evaluate(name, a, b), reference(a.astype(np.float64), b.astype(np.float64)), mixed=True
        )
        <= allowed
    )


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.fp64)])
def test_derivatives_of_digamma(dtype: str) -> None:
    x = spread(0.05, 30).astype(dtype)
    for n in (2, 3):
        found = torch.polygamma(n, torch.tensor(x)).cpu().numpy()
        assert error(found, sp.polygamma(n, x.astype(np.float64)), mixed=True) <= 12


def test_zeta_out_of_its_series() -> None:
    s = np.array([1, 0.5, 2, 2.5, 2, 3, 2, 1e9, NAN, 2], "float32")
    q = np.array([2, 2, -3, -3.5, -3.5, -0.5, 1e9, 2, 1, NAN], "float32")
    # Below zero: the numbers near it, each by itself, and the rest.
    steps = [sum((k - 3.5) ** -2 for k in range(4)) + sp.zeta(2, 0.5), -8 + sp.zeta(3, 0.5)]
    wanted = np.float32([INF, NAN, INF, NAN, *steps, 1e-9, 0, NAN, NAN])
    np.testing.assert_allclose(evaluate("zeta", s, q), wanted, rtol=2e-6)


def test_incomplete_gamma_of_large_arguments_is_uniform() -> None:
    a = np.float32(4e6)
    x = (a + 2000 * np.linspace(-3, 3, 101)).astype(np.float32)
    p, q = evaluate("igamma", np.full_like(x, a), x), evaluate("igammac", np.full_like(x, a), x)
    assert np.abs(p + q - 1).max() < 4e-7
    assert np.all(np.diff(p) > 0)
    assert abs(p[50] - sp.gammainc(4e6, 4e6)) < 1e-6


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.fp64)])
def test_incomplete_gamma_of_a_lane_does_not_know_its_neighbours(
    dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = [0, 1, 25, 500, 1e-30, 1e5, 3e38, INF, NAN, -1]
    a, x = (np.array(v).ravel() for v in np.meshgrid(ends, ends))
    a, x = (np.concatenate(v).astype(dtype) for v in zip((a, x), log_gamma_pairs(901)))
    order = np.random.default_rng(7).permutation(len(a))

    def results(at: Any) -> tuple[np.ndarray, ...]:
        given = [torch.tensor(v[at]).clone() for v in (a, x)]
        return tuple(
            v.cpu().numpy() for v in [apply(name, *given) for name in ("igamma", "igammac")]
        )

    found, moved = results(np.arange(len(a))), results(order)
    monkeypatch.setattr(pointwise, "choose_lanes", lambda *_, **__: 1)
    choose_anew(monkeypatch)
    single = results(order)
    references = (sp.gammainc, sp.gammaincc)
    for one, other, alone, reference in zip(found, moved, single, references):
        np.testing.assert_array_equal(one[order], other)
        # In double precision a driver's builtins may round differently for vectors.
        np.testing.assert_allclose(alone, other, rtol=0 if dtype == "float32" else 1e-13)
        wanted = reference(*(v[:100].astype(np.float64) for v in (a, x)))
        np.testing.assert_allclose(one[:100], wanted, rtol=1e-4, atol=1e-30)


POINTS = [
    ("exp", [0, 88.8, INF, -INF, -110, NAN], [1, INF, INF, 0, 0, NAN]),
    ("erf", [0, 5, INF, -INF, NAN], [0, 1, 1, -1, NAN]),
    ("lgamma", [0, -1, INF, NAN], [INF, INF, INF, NAN]),
    ("digamma", [0.0, -0.0, -1, -3, INF, -INF, NAN], [-INF, INF, NAN, NAN, INF, NAN, NAN]),
    ("erfinv", [-1, 1, 0, 1.5, NAN], [-INF, INF, 0, NAN, NAN]),
    ("ndtri", [0, 1, 0.5, -0.1, 1.1, NAN], [-INF, INF, 0, NAN, NAN, NAN]),
    ("erfcx", [0, INF, -INF, NAN], [1, 0, INF, NAN]),
    ("log_ndtr", [INF, -INF, NAN], [0, -INF, NAN]),
    ("i0e", [0, INF, -INF, NAN], [1, 0, 0, NAN]),
    ("k0", [0, -1, INF, NAN], [INF, NAN, 0, NAN]),
    ("y0", [0, -1, NAN], [-INF, NAN, NAN]),
    ("sj0", [0, INF, NAN], [1, 0, NAN]),
]


def test_poles_and_ends() -> None:
    found = each_at_its_points({name: np.array(x) for name, x, _ in POINTS}, "float32")
    for name, _, wanted in POINTS:
        np.testing.assert_allclose(found[name], np.float32(wanted), atol=1e-7, err_msg=name)


CUTS = [complex(re, im) for re in (-2.0, -0.5, 0.5, 2.0) for im in (0.0, -0.0)]
CUTS += [complex(re, im) for re in (0.0, -0.0) for im in (-2.0, -0.5, 0.5, 2.0)]
_PARTS = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e-8, -1e-20, 1e19, -3e38, INF, -INF, NAN)
GRID = [complex(re, im) for re in _PARTS for im in _PARTS]


def complex_samples(dtype: str) -> np.ndarray:
    rng = np.random.default_rng(4)
    z = (rng.standard_normal(3000) + 1j * rng.standard_normal(3000)) * 10 ** rng.uniform(
        -3, 1, 3000
    )
    near_circle = np.exp(1j * rng.uniform(-4, 4, 500)) * (1 + 1e-4 * rng.standard_normal(500))
    return np.concatenate([z, near_circle]).astype(dtype)


COMPLEX: dict[str, tuple[Callable, float]] = {
    "cexp": (np.exp, 8),
    "clog": (np.log, 8),
    "csqrt": (np.sqrt, 4),
    "csin": (np.sin, 16),
    "ccos": (np.cos, 16),
    "ctan": (np.tan, 12),
    "csinh": (np.sinh, 16),
    "ccosh": (np.cosh, 16),
    "ctanh": (np.tanh, 12),
    "casin": (np.arcsin, 12),
    "cacos": (np.arccos, 12),
    "catan": (np.arctan, 12),
    "casinh": (np.arcsinh, 12),
    "cacosh": (np.arccosh, 12),
    "catanh": (np.arctanh, 12),
    "crecip": (lambda z: 1 / z, 6),
    "clog10": (np.log10, 8),
    "clog2": (np.log2, 8),
    "clog1p": (np.log1p, 8),
    "cexpm1": (np.expm1, 8),
    "crsqrt": (lambda z: 1 / np.sqrt(z), 8),
    "csgn": (lambda z: z / np.abs(z), 4),
    "cabs": (np.abs, 4),
    "carg": (np.angle, 6),
}


@functools.cache
def complex_values(dtype: str) -> dict[str, np.ndarray]:
    """Return all functions of COMPLEX at the samples, CUTS and GRID, computed by a few fused kernels."""
    z = pending(np.append(complex_samples(dtype), np.array(CUTS + GRID, dtype)))
    results = {name: apply(name, z) for name in COMPLEX}
    return {name: t.cpu().numpy() for name, t in results.items()}


@pytest.mark.parametrize("dtype", ["complex64", pytest.param("complex128", marks=pytest.mark.fp64)])
@pytest.mark.parametrize("name", sorted(COMPLEX))
def test_complex_functions(name: str, dtype: str) -> None:
    reference, allowed = COMPLEX[name]
    z = complex_samples(dtype)
    wanted = reference(z.astype(np.clongdouble)).astype(np.complex128)
    found = complex_values(dtype)[name][: len(z)]
    finite = np.isfinite(wanted) & (np.abs(wanted) < 1e30)
    relative = np.abs(found - wanted)[finite] / np.abs(wanted)[finite]
    assert relative.max() <= allowed * np.finfo(dtype).eps


@pytest.mark.parametrize(
    "name", ["csqrt", "clog", "casin", "cacos", "catan", "casinh", "cacosh", "catanh"]
)
def test_branch_cuts_follow_the_sign_of_zero(name: str) -> None:
    with np.errstate(all="ignore"):
        wanted = COMPLEX[name][0](np.array(CUTS, np.complex128))
    found = complex_values("complex64")[name][-len(CUTS + GRID) : -len(GRID)]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def _kinds(z: np.ndarray) -> np.ndarray:
    """Classify real and imaginary parts as NaN, infinite, zero or another number, with the sign."""
    v = z.astype(np.complex64).view(np.float32)
    kind = np.where(np.isnan(v), 0, np.where(np.isinf(v), 1, np.where(v == 0, 2, 3)))
    return np.where(np.isnan(v), 0, np.where(np.signbit(v), -kind, kind))


@pytest.mark.parametrize("dtype", ["complex64", pytest.param("complex128", marks=pytest.mark.fp64)])
@pytest.mark.parametrize("name", ["csqrt", "clog", "casin", "cacos", "casinh", "cacosh", "ccosh"])
def test_ends_of_complex_numbers(name: str, dtype: str) -> None:
    z = np.array(GRID, dtype)
    with np.errstate(all="ignore"):
        wanted = COMPLEX[name][0](z)
    # C leaves the sign of an infinite or zero part unspecified where the other part is NaN.
    known = ~(np.isnan(wanted.real) | np.isnan(wanted.imag))
    found = complex_values(dtype)[name][-len(GRID) :]
    np.testing.assert_array_equal(_kinds(found[known]), _kinds(wanted[known].astype(dtype)))
    assert np.array_equal(np.isnan(found), np.isnan(wanted))


def test_a_logarithm_beside_the_unit_circle_is_near_in_each_part() -> None:
    rng = np.random.default_rng(6)
    angle = np.concatenate([rng.uniform(-4, 4, 999), 10 ** rng.uniform(-6, -1, 999)])
    z = (np.exp(1j * angle) * (1 + 10 ** rng.uniform(-9, -2, angle.size))).astype(np.complex64)
    wide = z.astype(np.clongdouble)
    real, size = evaluate("clog", z).real, wide.real**2 + wide.imag**2 - 1
    assert (np.abs(real - np.log1p(size) / 2) <= 4 * np.finfo("f").eps * np.abs(size)).all()


def test_a_part_that_is_no_number_leaves_what_is_known_of_the_other() -> None:
    nan, inf = np.nan, np.inf
    parts = [
        (0, nan),
        (-0.0, nan),
        (nan, 0),
        (nan, -0.0),
        (0, inf),
        (-0.0, -inf),
        (inf, 0),
        (1, nan),
        (100, inf),
    ]
    z = np.array([complex(*p) for p in parts], np.complex64)
    x = torch.tensor(z.tolist())
    for name in ("tan", "tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh"):
        with np.errstate(all="ignore"):
            wanted = getattr(np, name.replace("a", "arc", 1) if name[0] == "a" else name)(z)
        found = np.array(getattr(torch, name)(x).tolist())
        for got, want in ((found.real, wanted.real), (found.imag, wanted.imag)):
            np.testing.assert_allclose(np.abs(got), np.abs(want), rtol=1e-6, err_msg=name)


def test_complex_products_and_quotients() -> None:
    a, b = complex_samples("complex64"), complex_samples("complex64")[::-1].copy()
    wide = a.astype(np.complex128), b.astype(np.complex128)
    for name, wanted in (("cmul", wide[0] * wide[1]), ("cdiv", wide[0] / wide[1])):
        assert (np.abs(evaluate(name, a, b) - wanted) / np.abs(wanted)).max() < 6e-7
    power = evaluate("cpow", a, b[:] / 4)
    wanted = wide[0] ** (wide[1] / 4)
    assert np.nanmax(np.abs(power - wanted) / np.abs(wanted)) < 1e-4


def test_complex_division_neither_overflows_nor_underflows() -> None:
    a = np.array([1e30 + 1e30j, 1e-30 + 1e-30j, 1 + 1j, 3e38 + 0j], np.complex64)
    b = np.array([1e30 + 1e30j, 1e-30 + 1e-30j, 1e38 + 1e38j, 3e38 + 3e38j], np.complex64)
    np.testing.assert_allclose(evaluate("cdiv", a, b), [1, 1, 1e-38, 0.5 - 0.5j], rtol=1e-5)


def test_division_by_complex_zero_is_infinite() -> None:
    found = evaluate("cdiv", np.array([1 + 1j], np.complex64), np.array([0j], np.complex64))
    assert np.isinf(found.real).all()
    assert np.isinf(found.imag).all()


def test_exponential_of_large_real_parts() -> None:
    z = np.array([89 + 1.5j, 100 + 1.5j, -200 + 1j, np.inf + 0j, -np.inf + 1j], np.complex64)
    with np.errstate(over="ignore"):
        wanted = np.exp(z.astype(np.complex128)).astype(np.complex64)
    found = evaluate("cexp", z)
    np.testing.assert_allclose(found.real, wanted.real, rtol=2e-5)
    np.testing.assert_allclose(found.imag, wanted.imag, rtol=2e-5)


# Draws take a key; gcd and ipow take integers.
DECLARED = [
    n
    for n, e in LIBRARY.items()
    if not e.header.startswith("random/") and e.header not in ("elementary/gcd", "elementary/ipow")
]
OF_TWO = {"cmul", "cdiv", "cpow", "cpolar", "pow", "atan2", "hypot", *TWO}
OF_TWO |= {"fmod", "floor_rest", "floor_quotient"}


@pytest.mark.parametrize("start", range(0, len(DECLARED), 30))
def test_every_declared_function_exists(start: int) -> None:
    real, both = (pending(np.full(3, v)) for v in (np.float32(0.5), np.complex64(0.5 + 0.5j)))
    found = {}
    for name in DECLARED[start : start + 30]:
        header = LIBRARY[name].header
        count = 2 if header == "special/polynomials" or name in OF_TWO else 1
        count = 3 if name == "floor_settled" else count
        found[name] = apply(name, *[both if header.startswith("complex") else real] * count)
    for name, value in found.items():
        assert np.isfinite(value.cpu().numpy().real).any() or name in ("zeta", "acosh")


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
@pytest.mark.parametrize("far", [1e9, np.inf])
def test_a_huge_angle_leaves_its_neighbours_alone(name: str, far: float) -> None:
    x = np.tile(np.array([far, 1e-5, 0.3, -2, 1e6, -8388607, 200], np.float32), 5)
    with np.errstate(invalid="ignore"):
        wanted = getattr(np, name)(x.astype(np.float64))
    np.testing.assert_allclose(evaluate(name, x), wanted, rtol=1e-5)


def test_tanh_reaches_one() -> None:
    x = np.array([9.05, 20, 1e5, INF] * 5, np.float32)
    np.testing.assert_array_equal(evaluate("tanh", np.append(x, -x)), np.sign(np.append(x, -x)))
