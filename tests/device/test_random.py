"""Random numbers: reproducible whatever the launch, distributed as they should be; generators, gradients."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from backends import another_device
from scipy import stats
from scipy.stats import qmc
from support import choose_anew
from support import ct as torch

from cltensor import config
from cltensor.codegen import drawn, pointwise
from cltensor.ops.random import draws

N = 20000


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(1234)


def numpy(t: Any) -> np.ndarray:
    return t.detach().cpu().numpy()


# ---------------------------------------------------------------------- reproducible

DRAWS: dict[str, Callable[[], Any]] = {
    "rand": lambda: torch.rand(1003),
    "rand float16": lambda: torch.rand(1003, dtype=torch.float16),
    "randn": lambda: torch.randn(17, 59),
    "randint": lambda: torch.randint(-5, 1000, (1003,)),
    "wide randint": lambda: torch.randint(-(2**62), 2**62, (1003,)),
    "randperm": lambda: torch.randperm(1003),
    "bernoulli": lambda: torch.bernoulli(torch.full((1003,), 0.3)),
    "dropout": lambda: torch.nn.functional.dropout(torch.ones(1003), 0.3),
    "poisson": lambda: torch.poisson(torch.full((1003,), 20.0)),
    "exponential": lambda: torch.empty(1003).exponential_(2),
    "strided": lambda: torch.zeros(31, 34)[:, 1::3].uniform_(0, 2),
    "rows of odd length": lambda: torch.zeros(37, 13)[:, 1:12].normal_(),
    "several draws": lambda: (
        torch.rand(1003) + torch.randn(1003) * torch.empty(1003).bernoulli_(0.3)
    ),
}


@pytest.mark.parametrize("name", sorted(DRAWS))
def test_a_seed_repeats_and_draws_differ(name: str) -> None:
    first, second = numpy(DRAWS[name]()), numpy(DRAWS[name]())
    assert (first != second).any()
    torch.manual_seed(1234)
    np.testing.assert_array_equal(numpy(DRAWS[name]()), first)


@pytest.mark.parametrize("name", sorted(DRAWS))
def test_numbers_do_not_depend_on_lanes_or_eagerness(
    name: str, backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = numpy(DRAWS[name]())
    for lanes in (1,) if name == "poisson" or backend.info.kind != "cpu" else (1, 16):
        monkeypatch.setattr(
            pointwise, "choose_lanes", lambda program, preferred, lanes=lanes, **_: lanes
        )
        choose_anew(monkeypatch)
        torch.manual_seed(1234)
        np.testing.assert_allclose(numpy(DRAWS[name]()), first, rtol=1e-6, atol=1e-6)
    monkeypatch.undo()
    monkeypatch.setattr(config, "CONFIG", dataclasses.replace(config.CONFIG, eager=True))
    torch.manual_seed(1234)
    np.testing.assert_array_equal(numpy(DRAWS[name]()), first)


def test_a_gpu_stores_numbers_of_two_sizes_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outputs of one kernel whose elements differ in size are right. A lane stores equally many of each, as many as of
    the wider dtype: pairs, where the narrower one alone would be stored in fours.
    """
    another_device(monkeypatch, kind="gpu", lanes=1)
    for n in (1, 2, 1003):
        x = torch.rand(n, device="opencl:77")
        y = torch.complex(x, x + 1)
        found = numpy(y)
        np.testing.assert_array_equal(found.real, numpy(x))
        np.testing.assert_array_equal(found.imag, numpy(x) + np.float32(1))


@pytest.mark.parametrize(
    ("name", "forms"),
    [
        ("rand", ["short"]),
        ("rand float16", ["short"]),
        ("dropout", ["short"]),
        ("randn", ["apart"]),
        ("wide randint", ["all"]),
    ],
)
def test_words_of_a_draw_are_drawn_ahead(
    name: str, forms: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Codegen recognises the formulas of a draw and generates its words ahead of the chain. If it did not, the numbers
    would be the same, but slower.
    """
    found: list[str] = []

    def choose(program: Any, *args: Any, **settings: Any) -> int:
        found.extend(draw.form for draw in drawn.draws(program).values())
        return lanes(program, *args, **settings)

    lanes = pointwise.choose_lanes
    monkeypatch.setattr(pointwise, "choose_lanes", choose)
    choose_anew(monkeypatch)
    numpy(DRAWS[name]())
    assert found == forms


def test_counters_are_taken_at_the_call() -> None:
    a, b = torch.rand(64), torch.rand(64)
    b_first = numpy(b)
    a_second = numpy(a)
    torch.manual_seed(1234)
    np.testing.assert_array_equal(numpy(torch.rand(64)), a_second)
    np.testing.assert_array_equal(numpy(torch.rand(64)), b_first)


def test_a_prefix_of_a_longer_draw() -> None:
    long = numpy(torch.rand(1000))
    torch.manual_seed(1234)
    np.testing.assert_array_equal(numpy(torch.rand(77)), long[:77])


def test_reading_twice_gives_one_value() -> None:
    x = torch.rand(100)
    y = x * 2
    np.testing.assert_array_equal(numpy(y), numpy(x) * 2)
    z = torch.rand(8, 1)
    wide = numpy(z + torch.zeros(8, 5))
    np.testing.assert_array_equal(wide, np.repeat(numpy(z), 5, 1))


def test_known_answer_of_philox() -> None:
    """Philox4x32-10 of counter 0 and key 0 gives the first of the generator's published test vectors."""
    g = torch.Generator(torch.rand(1).device).manual_seed(0)
    low = torch.empty(2, dtype=torch.int64, device=g.device).random_(-(2**63), None, generator=g)
    assert [int(w) + 2**63 for w in numpy(low)] == [0xE169C58D6627E8D5, 0x9B00DBD8BC57AC4C]
    # Where 32 bits for each element suffice, four elements share a block.
    words = [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    drawn = numpy(torch.rand(4, generator=g.manual_seed(0), device=g.device))
    assert (drawn * 2.0**24).tolist() == [w % 2**24 for w in words]


def test_words_of_any_length() -> None:
    """Element i is made from the random word number i, however many are drawn, and wherever vectors begin."""
    g = torch.Generator(torch.rand(1).device)

    def draw(*shape: int) -> torch.Tensor:
        return torch.rand(*shape, generator=g.manual_seed(3), device=g.device)

    all_of_them = numpy(draw(1 << 16))
    for n in (1, 2, 3, 5, 17, 63, 129, 1001):
        np.testing.assert_array_equal(numpy(draw(n)), all_of_them[:n])
    square = draw(256, 256) + torch.zeros(256, 256).T
    np.testing.assert_array_equal(numpy(square).ravel(), all_of_them)
    kept = torch.nn.functional.dropout(torch.ones(1 << 16, device=g.device), 0.25)
    assert abs(float((kept != 0).float().mean()) - 0.75) < 0.01


# ---------------------------------------------------------------------- distributions


def fits(sample: Any, law: Any) -> None:
    assert stats.kstest(numpy(sample).ravel().astype(np.float64), law.cdf).pvalue > 1e-3


FLOATS = ["float32", pytest.param("float64", marks=pytest.mark.fp64)]


@pytest.mark.parametrize("dtype", FLOATS)
def test_continuous_distributions(dtype: str) -> None:
    kind = getattr(torch, dtype)
    fits(torch.rand(N, dtype=kind), stats.uniform())
    fits(torch.randn(N, dtype=kind), stats.norm())
    x = torch.empty(N, dtype=kind)
    fits(x.uniform_(-3, 5), stats.uniform(-3, 8))
    fits(x.normal_(2, 0.5), stats.norm(2, 0.5))
    fits(x.exponential_(3), stats.expon(scale=1 / 3))
    fits(x.cauchy_(1, 2), stats.cauchy(1, 2))
    fits(x.log_normal_(0.5, 0.7), stats.lognorm(0.7, scale=np.exp(0.5)))


def test_uniform_stays_below_one() -> None:
    for kind in (torch.float32, torch.float16, torch.bfloat16):
        x = torch.rand(1 << 18, dtype=kind).float()
        assert float(x.max()) < 1
        assert float(x.min()) >= 0


def test_neighbours_are_uncorrelated() -> None:
    for x in (numpy(torch.rand(1 << 16)), numpy(torch.randn(1 << 16))):
        for lag in (1, 2, 3, 8, 16):
            assert abs(np.corrcoef(x[:-lag], x[lag:])[0, 1]) < 0.015
    a, b = numpy(torch.randn(1 << 16)), numpy(torch.randn(1 << 16))
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.015


def chi_square(found: np.ndarray, expected: np.ndarray) -> None:
    keep = expected > 5
    found, expected = found[keep], expected[keep]
    assert stats.chisquare(found, expected * found.sum() / expected.sum()).pvalue > 1e-3


def test_integers() -> None:
    x = numpy(torch.randint(-3, 7, (N,)))
    assert x.dtype == np.int64
    chi_square(np.bincount(x + 3, minlength=10), np.full(10, N / 10))
    chi_square(
        np.bincount(numpy(torch.empty(N).random_(5)).astype(int), minlength=5), np.full(5, N / 5)
    )
    chi_square(
        np.bincount(numpy(torch.zeros(N, dtype=torch.uint8).random_()), minlength=256),
        np.full(256, N / 256),
    )
    wide = numpy(torch.randint(-(2**63), 2**63 - 1, (N,))).astype(np.float64)
    assert stats.kstest(wide / 2.0**64 + 0.5, stats.uniform().cdf).pvalue > 1e-3


def test_discrete_distributions() -> None:
    chi_square(
        np.bincount(numpy(torch.empty(N).bernoulli_(0.3)).astype(int)), N * np.array([0.7, 0.3])
    )
    p = torch.tensor([0.0, 0.25, 1.0]).repeat(4000, 1)
    np.testing.assert_allclose(numpy(torch.bernoulli(p)).mean(0), [0, 0.25, 1], atol=0.03)
    k = np.arange(60)
    for rate in (0.5, 6.0, 25.0):
        found = np.bincount(numpy(torch.poisson(torch.full((N,), rate))).astype(int), minlength=60)[
            :60
        ]
        chi_square(found, N * stats.poisson(rate).pmf(k))
    chi_square(
        np.bincount(numpy(torch.empty(N).geometric_(0.3)).astype(int), minlength=60)[:60],
        N * stats.geom(0.3).pmf(k),
    )
    assert numpy(torch.poisson(torch.zeros(10))).sum() == 0


def test_multinomial() -> None:
    w = torch.tensor([0.0, 1.0, 3.0, 6.0])
    found = np.bincount(numpy(torch.multinomial(w, N, replacement=True)), minlength=4)
    assert found[0] == 0
    chi_square(found[1:], N * np.array([0.1, 0.3, 0.6]))
    rows = numpy(torch.multinomial(w.repeat(N, 1), 1))[:, 0]
    chi_square(np.bincount(rows, minlength=4)[1:], N * np.array([0.1, 0.3, 0.6]))
    both = numpy(torch.multinomial(w.repeat(500, 1), 3))
    assert (np.sort(both, 1) == [1, 2, 3]).all()


def test_permutations() -> None:
    assert sorted(torch.randperm(1000).tolist()) == list(range(1000))
    firsts = np.array([int(torch.randperm(5)[0]) for _ in range(300)])
    assert (np.bincount(firsts, minlength=5) > 30).all()
    assert torch.randperm(4, dtype=torch.int32).dtype is torch.int32
    assert torch.randperm(0).shape == (0,)


def test_complex_normal_has_variance_one() -> None:
    z = numpy(torch.randn(N, dtype=torch.complex64))
    assert abs(np.mean(np.abs(z) ** 2) - 1) < 0.03
    fits(torch.tensor(z.imag.copy()), stats.norm(0, np.sqrt(0.5)))


# ---------------------------------------------------------------------- generators


def test_state_is_saved_and_restored() -> None:
    g = torch.Generator(torch.rand(0).device).manual_seed(3)
    one = torch.rand(5, generator=g)
    saved = g.get_state()
    assert saved.dtype is torch.uint8
    two = torch.rand(5, generator=g)
    assert torch.equal(torch.rand(5, generator=g.set_state(saved)), two)
    assert not torch.equal(one, two)
    assert g.initial_seed() == 3
    copy = pickle.loads(pickle.dumps(g))
    assert torch.equal(torch.rand(5, generator=copy), torch.rand(5, generator=g.clone_state()))


def test_default_state_is_saved_and_restored() -> None:
    torch.rand(10, device="cpu")
    state = torch.get_rng_state()
    first = torch.rand(10, device="cpu")
    torch.set_rng_state(state)
    assert torch.equal(torch.rand(10, device="cpu"), first)


def test_own_generator_leaves_the_default_alone() -> None:
    a = numpy(torch.rand(8))
    torch.manual_seed(1234)
    g = torch.Generator(torch.rand(0).device).manual_seed(9)
    torch.rand(100, generator=g)
    np.testing.assert_array_equal(numpy(torch.rand(8)), a)


def test_fork_keeps_the_state() -> None:
    from cltensor.random import fork_rng

    state = torch.get_rng_state().tolist()
    with fork_rng():
        torch.manual_seed(1)
        torch.rand(3, device="cpu")
    assert torch.get_rng_state().tolist() == state


def test_seeds() -> None:
    assert torch.manual_seed(5) is torch.default_generator
    assert torch.initial_seed() == 5
    torch.manual_seed(-1)
    assert torch.initial_seed() == 2**64 - 1
    seed = torch.seed()
    assert torch.initial_seed() == seed
    assert torch.Generator().initial_seed() == 67280421310721
    with pytest.raises(ValueError, match="Overflow when unpacking long"):
        torch.manual_seed(2**64)
    with pytest.raises(TypeError, match=r"RNG state must be a torch\.ByteTensor"):
        torch.set_rng_state(torch.zeros(16))


# ---------------------------------------------------------------------- gradients


def test_fillers_cut_the_gradient() -> None:
    for fill, node in (
        ("uniform_", "UniformBackward0"),
        ("normal_", "NormalBackward0"),
        ("exponential_", "ExponentialBackward0"),
    ):
        x = torch.ones(3, requires_grad=True)
        y = x * 2
        getattr(y, fill)()
        assert type(y.grad_fn).__name__ == node
        y.sum().backward()
        assert x.grad.tolist() == [0, 0, 0]


def test_draws_from_parameters_have_zero_gradients() -> None:
    p = torch.full((3,), 0.5, requires_grad=True)
    for t, node in (
        (torch.bernoulli(p), "BernoulliBackward0"),
        (torch.poisson(p), "PoissonBackward0"),
        (torch.normal(p, 1.0), "NormalBackward1"),
        (torch.normal(1.0, p), "NormalBackward2"),
        (torch.normal(p, p), "NormalBackward3"),
    ):
        assert type(t.grad_fn).__name__ == node
        p.grad = None
        t.sum().backward()
        assert p.grad.tolist() == [0, 0, 0]


def test_random_numbers_fuse_and_repeat_without_builds() -> None:
    def step(n: int) -> Any:
        return numpy((torch.rand(n) * 2 - 1).abs())

    step(100_000)
    before = torch.stats()
    step(100_000)
    step(100_257)
    after = torch.stats()
    assert after["builds"] == before["builds"]
    assert after["launches"] - before["launches"] == 2


def test_many_pending_probabilities_are_not_written() -> None:
    """A large pending tensor of probabilities is not stored: it is computed in the kernel that checks the probabilities
    and again in the kernel that draws.
    """
    x = torch.rand(1 << 19) - 0.5
    x[0] = 0.25  # a partial write computes the pending x first
    held = x.abs()
    torch.opencl.synchronize()
    torch.manual_seed(1)
    want = numpy(torch.bernoulli(held))
    launches = []
    for _ in range(2):
        torch.manual_seed(1)
        before = torch.stats()["launches"]
        drawn_values = torch.bernoulli(x.abs())
        torch.opencl.synchronize()
        launches.append(torch.stats()["launches"] - before)
        np.testing.assert_array_equal(numpy(drawn_values), want)
    checked = 2 if x.device.type == "cpu" else 0  # launches of the check: partial results, then all
    assert launches[1] <= checked + 1
    if checked:
        with pytest.raises(RuntimeError, match="p_in >= 0"):
            torch.bernoulli((x * 4).abs())


ALIKE: dict[str, Callable[[], Any]] = {
    "rand": lambda: torch.rand(5, 7),
    "randn": lambda: torch.randn(5, 7),
    "randn, float16": lambda: torch.randn(35, dtype=torch.float16),
    "randn_like": lambda: torch.randn_like(torch.ones(7, 5).t()),
    "randint": lambda: torch.randint(-3, 12, (5, 7)),
    "randint, as floats": lambda: torch.randint(0, 12, (5, 7), dtype=torch.float32),
    "multinomial": lambda: torch.multinomial(torch.arange(8.0).view(2, 4), 1),
    "randperm": lambda: torch.randperm(35),
    "uniform_": lambda: torch.zeros(5, 7).uniform_(-1, 2),
    "uniform_, float64": lambda: torch.zeros(35, dtype=torch.float64).uniform_(),
    "normal_, complex": lambda: torch.zeros(35, dtype=torch.complex64).normal_(),
    "exponential_": lambda: torch.zeros(35, dtype=torch.float16).exponential_(2.0),
    "bernoulli_": lambda: torch.zeros(35, dtype=torch.bool).bernoulli_(0.3),
    "random_": lambda: torch.zeros(35, dtype=torch.uint8).random_(3, 200),
    "randint, wide": lambda: torch.randint(-(2**40), 2**60, (35,)),
}


@pytest.mark.parametrize("name", ALIKE)
def test_small_draws_alike_are_launched_at_once_with_the_numbers_of_pending_ones(name: str) -> None:
    draws._known.clear()
    torch.manual_seed(7)
    found = [ALIKE[name]() for _ in range(4)]
    apart = found[-1]._storage.backend.team is not None
    assert found[-1]._storage.waits is not (apart or name in ("multinomial", "randperm"))
    torch.manual_seed(7)
    for t in found:
        draws._known.clear()
        wanted = ALIKE[name]()
        assert wanted._storage.waits or name in ("multinomial", "randperm")
        assert t.stride() == wanted.stride()
        np.testing.assert_array_equal(numpy(t), numpy(wanted))


def test_small_draws_in_place_reach_views_and_leave_what_was_read_before() -> None:
    for value in range(4):
        t = torch.full((6, 4), float(value))
        row, twice = t[1], t * 2
        torch.manual_seed(value)
        t.uniform_(5, 6)
        wanted = row + 1
        assert (numpy(twice) == 2 * value).all()
        assert (numpy(t) >= 5).all()
        np.testing.assert_array_equal(numpy(wanted), numpy(t)[1] + np.float32(1))
        assert t._version == row._version == 1


def test_small_draws_in_place_stay_in_memory_that_others_see() -> None:
    for _ in range(4):
        t, part = torch.zeros(24, device="cpu"), torch.zeros(24)[4:]
        seen, address = t.numpy(), t.data_ptr()
        t.normal_()
        part.normal_()
        assert t.data_ptr() == address
        np.testing.assert_array_equal(seen, t.numpy())
        assert seen.any() and numpy(part).any()


# ------------------------------------------------------------------------------------------- quasi-random


def test_sobol_points_are_the_sequences() -> None:
    engine = torch.quasirandom.SobolEngine(7)
    wanted = qmc.Sobol(7, scramble=False, bits=30).random(128)
    np.testing.assert_array_equal(numpy(engine.draw(1)), wanted[:1])
    np.testing.assert_array_equal(numpy(engine.draw(40, dtype=torch.float64)), wanted[1:41])
    engine.fast_forward(9)
    np.testing.assert_array_equal(numpy(engine.draw(78)), wanted[50:])
    assert engine.num_generated == 128
    np.testing.assert_array_equal(numpy(engine.quasi) * 2.0**-30, wanted[-1])
    out = torch.empty(0)
    assert engine.reset().draw_base2(5, out=out) is out
    np.testing.assert_array_equal(numpy(out), wanted[:32])


def test_scrambled_sobol_points_stay_spread() -> None:
    engine = torch.quasirandom.SobolEngine(3, scramble=True, seed=5)
    points = numpy(engine.draw(64))
    assert (points != numpy(torch.quasirandom.SobolEngine(3).draw(64))).all()
    for column in points.T:  # one point in each interval of length 1/64
        assert sorted((column * 64).astype(int)) == list(range(64))
    again = torch.quasirandom.SobolEngine(3, scramble=True, seed=5)
    np.testing.assert_array_equal(numpy(again.draw(64)), points)
