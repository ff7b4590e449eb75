"""Our own elementary functions against numpy (those of float32 in double precision): worst error over all magnitudes, special values, signs of
zero, and the same bits from vectors as from single lanes."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import pytest
from scipy import special as sp
from support import ct as torch

from cltensor.codegen.pointwise import PointOp
from cltensor.ops import core

# name: (reference, units in the last place allowed)
ONE: dict[str, tuple[Callable, float]] = {
    "exp": (np.exp, 1),
    "exp2": (np.exp2, 1),
    "expm1": (np.expm1, 1.5),
    "log": (np.log, 1),
    "log2": (np.log2, 1.4),
    "log10": (np.log10, 1.2),
    "log1p": (np.log1p, 1.2),
    "sin": (np.sin, 1.2),
    "cos": (np.cos, 1.2),
    "tan": (np.tan, 1.8),
    "asin": (np.arcsin, 1.2),
    "acos": (np.arccos, 1.2),
    "atan": (np.arctan, 1.5),
    "sinh": (np.sinh, 2),
    "cosh": (np.cosh, 1.5),
    "tanh": (np.tanh, 1.6),
    "asinh": (np.arcsinh, 2),
    "acosh": (np.arccosh, 2.5),
    "atanh": (np.arctanh, 2.5),
    "erf": (sp.erf, 1.2),
    "erfc": (sp.erfc, 4.5),
    "sigmoid": (sp.expit, 2.2),
    "log1p_exp": (lambda x: np.log1p(np.exp(-np.abs(x))), 1.9),
}
NOT_POSITIVE = {"log1p_exp"}  # functions whose arguments are not positive
TWO: dict[str, tuple[Callable, float]] = {
    "pow": (np.power, 2.2),
    "atan2": (np.arctan2, 1.7),
    "hypot": (np.hypot, 1.3),
    "fmod": (np.fmod, 0),
}
ENDS = [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, -0.5, 2, 3, -3, 2.5, 88.7, 88.8, -87.4]
ENDS += [-104, 1e30, -1e30, 1e-30, 3.4e38, -3.4e38, 16777216, 16777215, -16777216, 8388607.5]
QUARTER_TURNS = [7.729178919452902e28, -21999384576.0]  # the numbers nearest to multiples of pi/2
BELOW = [1e-45, -1e-45, 1e-40, -1e-40, 1.1754942e-38]  # denormal


@functools.cache
def points() -> np.ndarray:
    """Return numbers of all magnitudes evenly, the neighbourhood of zero densely, and the special values ENDS."""
    everywhere = np.arange(0, 1 << 32, 104729, dtype=np.uint64).astype(np.uint32).view(np.float32)
    smallest = torch.tensor([1e-40]) * 1
    below = BELOW if smallest.item() else []
    if not below:
        everywhere = everywhere[(np.abs(everywhere) > 1.2e-38) | np.isnan(everywhere)]
    near = np.linspace(-12, 12, 60001)
    return np.concatenate([np.array(ENDS + QUARTER_TURNS + below), near, everywhere]).astype(
        np.float32
    )


@functools.cache
def pairs() -> tuple[np.ndarray, np.ndarray]:
    """Return pairs x, y: every two of ENDS, then pairs for which x ** y is spread over the range of results."""
    ends = np.array(ENDS, np.float32)
    rng = np.random.default_rng(0)
    x = np.exp(rng.normal(0, 3, 60000)).astype(np.float32)
    x[::2] = 1 + rng.normal(0, 1, 30000) * 10.0 ** rng.uniform(-6, -0.5, 30000)
    x = np.abs(x)
    log = np.log2(x.astype(np.float64))
    y = (rng.uniform(-126, 128, x.size) / np.where(log == 0, 1, log)).astype(np.float32)
    y[:30000] = np.rint(y[:30000])
    x[:30000:2] *= -1
    grid = np.meshgrid(ends, ends)
    return np.append(grid[0], x), np.append(grid[1], y)


@functools.cache
def values(lanes: str) -> dict[str, np.ndarray]:
    """Return all functions at the points, computed by a few fused kernels, of vectors or of single lanes."""
    one = [torch.tensor(points()).clone()]  # pending: functions that read it are fused
    two = [torch.tensor(v).clone() for v in pairs()]
    results = {}
    for name in (*ONE, *TWO):
        own = "-abs(x)" if name in NOT_POSITIVE else "x"
        text = f"{name}({own})" if name in ONE else f"{name}(x, y)"
        if lanes == "single":  # a formula with i0 is not vectorised
            text = f"where(x == x or x != x, {text}, i0(x))"
        given = one if name in ONE else two
        op = PointOp(f"{name}_{lanes}", text)
        results[name] = core.compute(
            op, torch.float32, torch.float32, given, given[0].shape, given[0].device
        )
    return {name: t.cpu().numpy() for name, t in results.items()}


def compare(found: np.ndarray, wanted: np.ndarray, allowed: float) -> None:
    with np.errstate(over="ignore"):
        rounded = wanted.astype(np.float32)
    finite = np.isfinite(rounded) & np.isfinite(found)
    np.testing.assert_array_equal(found[~finite], rounded[~finite])
    zero = finite & (rounded == 0) & (wanted == 0)
    np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(rounded[zero]))
    unit = np.spacing(np.maximum(np.abs(rounded[finite]), np.finfo(np.float32).tiny))
    error = np.abs(found[finite].astype(np.float64) - wanted[finite]) / unit
    assert error.max() <= allowed


@pytest.mark.parametrize("name", ONE)
def test_one_argument(name: str) -> None:
    reference, allowed = ONE[name]
    with np.errstate(all="ignore"):
        wanted = reference(points().astype(np.float64))
    compare(values("vector")[name], wanted, allowed)


def test_erf_ends_at_one() -> None:
    far = np.abs(points()) > 4.1
    np.testing.assert_array_equal(values("vector")["erf"][far], np.sign(points()[far]))


@pytest.mark.parametrize("name", TWO)
def test_two_arguments(name: str) -> None:
    reference, allowed = TWO[name]
    x, y = pairs()
    with np.errstate(all="ignore"):
        wanted = reference(x.astype(np.float64), y.astype(np.float64))
    compare(values("vector")[name], wanted, allowed)


@pytest.mark.fp64
@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="nothing more exact to compare with")
def test_powers_of_doubles() -> None:
    """Powers: bases near 1 with large exponents, results up to and past the range's ends, denormal bases, ENDS; vectors
    and single lanes."""
    rng, n = np.random.default_rng(0), 20_000
    middle = rng.choice([2**0.5, 0.5**0.5], n) * (1 + rng.uniform(-1e-6, 1e-6, n))
    ends = [
        *ENDS,
        2.0**52 + 1,
        2.0**53 - 1,
        2.0**53,
        1 - 2.0**53,
        2.0**52 - 0.5,
        1e300,
        -1e300,
        5e-324,
        1.7e308,
    ]
    grid = np.meshgrid(ends, ends)
    x, y = (np.concatenate([np.ravel(a) for a in sets]) for sets in zip(
        grid, (np.exp(rng.uniform(-700, 700, n)), rng.uniform(-3, 3, n)),
        (1 + rng.uniform(-1e-10, 1e-10, n), rng.uniform(-1e12, 1e12, n)), (middle, rng.uniform(-2100, 2100, n)),
        (np.exp(rng.uniform(-740, -710, n)), rng.uniform(-1, 1.2, n)), (rng.uniform(1.5, 3, n), rng.uniform(-1074, -600, n)),
        (-rng.uniform(0, 9, n), rng.integers(-60, 60, n)), (rng.standard_normal(n), rng.integers(-9, 9, n) / 2), strict=True,
    ))  # fmt: skip
    a, b = torch.tensor(x), torch.tensor(y)
    found = (a**b).cpu().numpy()
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
        wanted = exact.astype(np.float64)
        off = np.abs(found - exact) / np.spacing(np.abs(wanted))
    finite = np.isfinite(wanted)
    assert off[finite].max() < 1
    np.testing.assert_array_equal(found[~finite], wanted[~finite])
    np.testing.assert_array_equal(np.signbit(found[finite]), np.signbit(wanted[finite]))
    alone = [(a[k] ** b[k]).item() for k in range(600, x.size, 9973)]
    np.testing.assert_array_equal(alone, found[600::9973])


def _erfc(x: np.ndarray) -> np.ndarray:
    """Return erfc of long doubles from 1/2 on: up to 2 by the series of erf, beyond by the continued fraction."""
    near = x < 2
    t, u = np.where(near, x, 1), np.where(near, 3, x)
    term = total = t
    for n in range(1, 60):
        term = term * -t * t / n
        total = total + term / (2 * n + 1)
    fraction = u
    for n in range(150, 0, -1):
        fraction = u + n / (2 * fraction)
    root = np.sqrt(np.longdouble("3.14159265358979323846264"))
    return np.where(near, 1 - 2 * total / root, np.exp(-u * u) / (root * fraction))


@pytest.mark.fp64
@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="nothing more exact to compare with")
def test_erfc_of_doubles() -> None:
    """Also with denormal results and negative arguments; vectors and single numbers give the same bits."""
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [rng.uniform(0.5, 3, 30000), rng.uniform(3, 27.3, 30000), [0.5, 2, 26.5, 27.2]]
    )
    wanted = _erfc(x.astype(np.longdouble))
    unit = np.spacing(np.abs(wanted.astype(np.float64)))
    found = torch.erfc(torch.tensor(x)).numpy(force=True)
    assert np.max(np.abs(found - wanted) / unit) < 2
    small = rng.uniform(-0.5, 0.5, 3001)
    np.testing.assert_allclose(
        torch.erfc(torch.tensor(small)).numpy(force=True), sp.erfc(small), rtol=7e-16
    )
    np.testing.assert_allclose(
        torch.erfc(torch.tensor(-x)).numpy(force=True), sp.erfc(-x), rtol=7e-16
    )
    ends = torch.tensor(
        [0.0, -0.0, np.inf, -np.inf, 28, 1e300, -1e300, np.nan], dtype=torch.float64
    )
    np.testing.assert_array_equal(ends.erfc().numpy(force=True), [1, 1, 0, 2, 0, 0, 2, np.nan])
    for at in (5, 30007):
        assert torch.tensor(x[at : at + 3]).erfc().tolist() == found[at : at + 3].tolist()


# name: (reference, units in the last place allowed, the range of evenly spaced points)
OF_DOUBLES: dict[str, tuple[Callable, float, tuple[float, float]]] = {
    "log": (np.log, 0.65, (0.3, 3)),
    "log2": (np.log2, 0.65, (0.3, 3)),
    "log10": (np.log10, 0.65, (0.3, 3)),
    "log1p": (np.log1p, 0.7, (-0.9, 3)),
    "expm1": (np.expm1, 0.95, (-4, 4)),
    "sinh": (np.sinh, 1.2, (-4, 4)),
    "cosh": (np.cosh, 1.2, (-4, 4)),
    "sin": (np.sin, 0.8, (-1e6, 1e6)),
    "cos": (np.cos, 0.8, (-1e6, 1e6)),
}


@pytest.mark.fp64
@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="nothing more exact to compare with")
@pytest.mark.parametrize("name", OF_DOUBLES)
def test_functions_of_doubles(name: str) -> None:
    """At points over the range, of all magnitudes, near 1 and multiples of a quarter turn, and special ones; vectors
    and single numbers alike."""
    reference, bound, (low, high) = OF_DOUBLES[name]
    rng, n = np.random.default_rng(0), 20_001
    circular = name in ("sin", "cos")
    sizes = 2.0 ** rng.uniform(-1070, 19.9 if circular else 1023, n)
    signs = 1.0 if low > 0 else rng.choice([-1.0, 1.0], n)
    beside = 1 + rng.uniform(-0.5, 0.5, n) * 10 ** rng.uniform(-14, 0, n)
    if circular:
        beside = np.rint(rng.uniform(-6e5, 6e5, n)) * (np.pi / 2)
    some = rng.uniform(low, high, n)
    x = np.concatenate(
        [some, sizes * signs, beside, rng.uniform(-720, 720, n) if low < 0 else some]
    )
    with np.errstate(all="ignore"):
        exact = reference(x.astype(np.longdouble))
        wanted = exact.astype(np.float64)
    found = getattr(torch, name)(torch.tensor(x)).numpy(force=True)
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(found[~finite], wanted[~finite])
    off = np.abs(found - exact)[finite] / np.spacing(np.abs(wanted[finite]))
    assert off.max() < bound
    ends = np.array(
        [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 5e-324, -5e-324, 710.4758, 1e22, -1e300]
    )
    with np.errstate(all="ignore"):
        wanted = reference(ends)
    found_ends = getattr(torch, name)(torch.tensor(ends)).numpy(force=True)
    np.testing.assert_allclose(found_ends, wanted, rtol=5e-16, atol=0)
    np.testing.assert_array_equal(np.signbit(found_ends[:2]), np.signbit(wanted[:2]))
    for at in (5, n + 7, 2 * n + 3):
        alone = [getattr(torch.tensor(x[k]), name)().item() for k in range(at, at + 3)]
        np.testing.assert_array_equal(alone, found[at : at + 3])


@pytest.mark.fp64
def test_remainders_of_doubles() -> None:
    """Remainders are exact, whether quotients are small, large, whole numbers or not finite."""
    rng, n = np.random.default_rng(1), 20_000
    ends = [
        *ENDS,
        5e-324,
        -5e-324,
        7e-310,
        3e-308,
        1e300,
        1.7e308,
        2.0**51,
        2.0**52 + 1,
        2.0**53 - 1,
    ]
    grid = np.meshgrid(ends, ends)
    far = rng.standard_normal((2, n)) * 10.0 ** rng.uniform(-300, 300, (2, n))
    x, y = (np.concatenate([np.ravel(a) for a in sets]) for sets in zip(
        grid, far, (rng.standard_normal(n) * 1e4, rng.standard_normal(n)), (rng.random(n) * 2.0**51, rng.random(n) + 0.5),
        (rng.integers(-(10**15), 10**15, n), rng.integers(1, 1000, n)), strict=True,
    ))  # fmt: skip
    a, b = torch.tensor(x), torch.tensor(y)
    found, floored = torch.fmod(a, b).cpu().numpy(), torch.remainder(a, b).cpu().numpy()
    with np.errstate(all="ignore"):
        wanted = np.fmod(x, y)
        np.testing.assert_array_equal(floored, np.remainder(x, y))
    np.testing.assert_array_equal(found, wanted)
    known = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(wanted[known]))


@pytest.mark.parametrize("name", [*ONE, *TWO])
def test_single_lanes_have_the_bits_of_vectors(name: str) -> None:
    wide, single = values("vector")[name], values("single")[name]
    same = wide.view(np.uint32) == single.view(np.uint32)
    assert (same | (np.isnan(wide) & np.isnan(single))).all()


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("gelu", lambda x: x * sp.ndtr(x)),
        ("mish", lambda x: x * np.tanh(np.logaddexp(0, x))),
    ],
)
def test_activations(name: str, reference: Callable) -> None:
    x = np.append(np.linspace(-12, 12, 20001), [-1e13, -100, 100, 1e13, 0]).astype(np.float32)
    found = getattr(torch.nn.functional, name)(torch.tensor(x)).cpu().numpy()
    np.testing.assert_allclose(found, reference(x.astype(np.float64)), rtol=4e-7, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_every_nan_stays_one_as_a_sixteen_bit_float(dtype: str) -> None:
    """Whatever a NaN's bits: rounding must not carry into the exponent, or past it."""
    bits = np.array([0x7F800001, 0x7F80FFFF, 0x7FC00000, 0x7FFFFFFF], np.uint32)
    x = torch.from_numpy(np.concatenate([bits, bits | 0x80000000] * 3).view(np.float32))
    for n in (1, 3, 24):  # a single number, part of a vector, whole vectors
        for part in (x[:n], x[-n:]):
            short = part.to(torch.get_default_device()).to(getattr(torch, dtype))
            assert short.isnan().all().item()
            assert short.float().isnan().all().item()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sixteen_bit_floats_are_rounded_once(dtype: str) -> None:
    """Every value of the dtype is loaded and stored unchanged, and ties are rounded to even."""
    bits = np.arange(1 << 16, dtype=np.uint16)
    bits = bits[bits & 0x7FFF <= (0x7C00 if dtype == "float16" else 0x7F80)]
    if dtype == "float16":
        exact = bits.view(np.float16).astype(np.float32)
    else:
        exact = (bits.astype(np.uint32) << 16).view(np.float32)
    kind = getattr(torch, dtype)
    wide = torch.tensor(exact)
    stored = wide.to(kind)
    np.testing.assert_array_equal(stored.float().cpu().numpy(), exact)
    np.testing.assert_array_equal((stored * 1 + 0).float().cpu().numpy(), exact)
    finite = np.sort(exact[np.isfinite(exact)].astype(np.float64))
    between = (finite[:-1] + finite[1:]) / 2
    found = torch.tensor(between.astype(np.float32)).to(kind).float().cpu().numpy()
    step = np.diff(finite)
    assert (np.abs(found - between) <= step / 2).all()
    if dtype == "float16":
        np.testing.assert_array_equal(found, between.astype(np.float16).astype(np.float32))
    else:
        assert not (found.view(np.uint32) >> 16 & 1).any()


def _mixed(dtype: type, n: int = 2048) -> tuple[np.ndarray, np.ndarray]:
    """Return small whole numbers, numbers of every size, zeros, infinities and NaN, mixed so that the lanes of a vector
    differ."""
    rng = np.random.default_rng(3)
    ends = [0.0, -0.0, np.inf, -np.inf, np.nan, np.finfo(dtype).max, np.finfo(dtype).tiny]

    def draw() -> np.ndarray:
        kinds = [
            rng.integers(-20, 20, n).astype(np.float64),
            rng.choice(ends, n),
            rng.normal(size=n) * 3,
            np.exp(rng.normal(size=n) * 9) * rng.choice([-1.0, 1.0], n),
        ]
        return np.choose(rng.integers(0, 4, n), kinds).astype(dtype)

    return draw(), draw()


def test_angles_on_the_axes_and_halfway_are_those_of_floats() -> None:
    y = np.array([1, 1, -1, -1, 0, -0.0, 0, -0.0, 2, np.inf, 3, -3, 3, np.inf, np.inf], "float32")
    x = np.array([0, -0.0, 0, -0.0, -1, -1, -0.0, 3, -0.0, 5, 3, 3, -3, np.inf, -np.inf], "float32")
    found = torch.atan2(torch.tensor(y), torch.tensor(x)).numpy(force=True)
    assert np.array_equal(
        found.view("int32"), np.arctan2(y, x, dtype="float64").astype("float32").view("int32")
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "name", ["pow", "fmod", "remainder", "floor_divide", "atan2", "hypot", "nextafter"]
)
def test_lanes_do_not_see_one_another_two_operands(name: str, dtype: type) -> None:
    x, y = _mixed(dtype)
    reference = {"atan2": np.arctan2, "pow": np.power}.get(name) or getattr(np, name)
    with np.errstate(all="ignore"):
        if name in (
            "remainder",
            "floor_divide",
        ):  # sums of tiny numbers: the reference is rounded, ours is exact
            y = np.where(np.isfinite(y) & (np.abs(y) > 1e-3), y, dtype(2.5))
            x = np.where(np.abs(x) < 1e4, x, dtype(7))
        wanted = reference(x.astype(np.float64), y.astype(np.float64)).astype(dtype)
        if name == "nextafter":
            wanted = reference(x, y)
    got = getattr(torch, name)(torch.tensor(x), torch.tensor(y)).cpu().numpy()
    np.testing.assert_allclose(got, wanted, rtol=1e-11 if dtype is np.float64 else 3e-6)


@pytest.mark.parametrize("name", sorted(ONE.keys() - NOT_POSITIVE))
def test_lanes_do_not_see_one_another_float64(name: str) -> None:
    x, _ = _mixed(np.float64)
    with np.errstate(all="ignore"):
        wanted = ONE[name][0](x)
    got = getattr(torch, name)(torch.tensor(x)).cpu().numpy()
    np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-300)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.int64])
def test_quotients_of_integers(dtype: type) -> None:
    """All magnitudes, the ends, and dividends beside multiples of their divisors."""
    rng, info, n = np.random.default_rng(5), np.iinfo(dtype), 20011

    def draw() -> np.ndarray:
        whole = rng.integers(info.min, info.max, n, dtype=dtype, endpoint=True)
        whole >>= rng.integers(0, info.bits, n).astype(dtype)
        ends = np.array([info.min, info.min + 1, info.max, info.max - 1, info.max // 2, 1, 0])
        return np.where(rng.random(n) < 0.1, rng.choice(ends, n), whole).astype(dtype)

    def check(x: np.ndarray, y: np.ndarray, divisor: object) -> None:
        a = torch.tensor(x).clone()  # pending: expressions that read it become one kernel
        with np.errstate(all="ignore"):
            quotient, rest = x // y, x % y
            towards_zero = quotient + ((rest != 0) & ((x < 0) != (y < 0)))
        for got, wanted in (
            (a // divisor, quotient),
            (a % divisor, rest),
            (torch.div(a, divisor, rounding_mode="trunc"), towards_zero),
            (torch.fmod(a, divisor), x - towards_zero * y),
        ):
            np.testing.assert_array_equal(got.cpu().numpy(), wanted)

    with np.errstate(over="ignore"):
        x, y = draw(), draw()
        y[y == 0] = 3
        x[::2] = (x[::2] // y[::2]) * y[::2] + rng.integers(-1, 2, len(x[::2])).astype(dtype)
        check(x, y, torch.tensor(y))
        for end in (7, info.max, info.min or 2, info.max // 2 + 1):
            check(x, np.full_like(x, end), end)
