"""Captured functions equal uncaptured ones in values, in-place state, random numbers and errors, and run no Python."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cltensor as torch
from cltensor.codegen.checks import RecordedLog
from cltensor.runtime import RecordingError, get_backend


def chain(x: Any, y: Any) -> Any:
    z = x * y + 2
    return torch.sigmoid(z * z - x) * y


def test_values_and_new_arguments() -> None:
    runs = []

    def counted(x: Any, y: Any) -> Any:
        runs.append(1)
        return chain(x, y)

    f = torch.capture(counted)
    results, wanted = [], []
    for _ in range(5):
        x, y = torch.randn(37), torch.randn(37)
        results.append(f(x, y))
        wanted.append(chain(x, y))
    assert len(runs) == 2  # the first call runs as it is, the second is recorded
    for result, want in zip(results, wanted, strict=True):
        assert torch.equal(result, want)  # later plays do not overwrite earlier results


def test_other_shapes_views_and_structures() -> None:
    @torch.capture
    def both(pair: Any, *, scale: float) -> dict[str, Any]:
        return {"sum": (pair[0] + pair[1]) * scale, "rows": [p.sum(0) for p in pair]}

    wide = torch.randn(20, 8)
    for begin in (0, 3, 6, 9):
        for scale in (1.0, 2.0):
            a, b = wide[begin : begin + 5], wide.t()[:5, :8]
            found = both((a, b), scale=scale)
            assert torch.allclose(found["sum"], (a + b) * scale)
            # A recording is given a dense copy, whose rows may be added in another order.
            assert torch.allclose(found["rows"][1], b.sum(0), atol=1e-6)
    assert both((wide, wide), scale=1.0)["sum"].shape == (20, 8)


def training(seed: int) -> tuple[Callable, list[Any]]:
    torch.manual_seed(seed)
    w1 = (torch.randn(20, 32) * 0.1).requires_grad_()
    w2 = (torch.randn(32, 5) * 0.1).requires_grad_()
    params, speed = [w1, w2], [torch.zeros(20, 32), torch.zeros(32, 5)]

    def step(x: Any, y: Any) -> Any:
        hidden = torch.nn.functional.dropout((x @ w1).relu(), 0.3)
        loss = torch.nn.functional.cross_entropy(hidden @ w2, y)
        with torch.no_grad():
            for p, v, g in zip(params, speed, torch.autograd.grad(loss, params), strict=True):
                v.mul_(0.9).add_(g)
                p.sub_(v, alpha=0.1)
        return loss

    return step, params


def test_training_step_with_random_numbers() -> None:
    xs = [torch.randn(16, 20) for _ in range(6)]
    ys = [torch.randint(0, 5, (16,)) for _ in range(6)]
    losses, ends = [], []
    for captured in (False, True):
        step, params = training(0)
        step = torch.capture(step) if captured else step
        torch.manual_seed(5)
        losses.append([step(x, y).item() for x, y in zip(xs[:4], ys[:4], strict=True)])
        with torch.no_grad():
            params[0].mul_(0.5)  # the recording sees a write made outside of it
        losses[-1] += [step(x, y).item() for x, y in zip(xs[4:], ys[4:], strict=True)]
        ends.append(params)
    assert losses[0] == losses[1]
    assert all(torch.equal(a, b) for a, b in zip(*ends, strict=True))


def test_modules_and_optimisers() -> None:
    losses = []
    for captured in (False, True):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(20, 8), torch.nn.ReLU(), torch.nn.Linear(8, 5))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, capturable=True)

        def step(x: Any, y: Any, model: Any = model, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        run = torch.capture(step) if captured else step
        x, y = torch.randn(16, 20), torch.randint(0, 5, (16,))
        losses.append([run(x, y).item() for _ in range(6)])
    assert losses[0] == losses[1]
    assert losses[0][-1] < losses[0][0]

    counting = torch.optim.Adam([torch.randn(3).requires_grad_()])

    @torch.capture
    def steps() -> None:
        counting.param_groups[0]["params"][0].grad = torch.ones(3)
        counting.step()

    steps()
    with pytest.raises(RecordingError, match="capturable"):
        steps()


@pytest.mark.parametrize(
    "kind", ["RAdam", "NAdam", "Rprop", "ASGD", "Adamax", "RMSprop", "Adadelta"]
)
def test_capturable_optimisers_are_recorded(kind: str) -> None:
    found = []
    for captured in (False, True):
        torch.manual_seed(0)
        model, extra = torch.nn.Linear(5, 3), {"t0": 3} if kind == "ASGD" else {}
        optimizer = getattr(torch.optim, kind)(
            model.parameters(), lr=1e-2, capturable=captured, **extra
        )

        def step(x: Any, model: Any = model, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        run = torch.capture(step) if captured else step
        losses = [run(torch.randn(4, 5)).item() for _ in range(9)]
        states = [v for s in optimizer.state.values() for v in s.values()]
        found.append([losses, *[t.tolist() for t in [*model.parameters(), *states]]])
    for plain, recorded in zip(*found, strict=True):
        np.testing.assert_allclose(recorded, plain, 2e-5, 1e-6)


def test_autocast_is_part_of_what_is_recorded() -> None:
    w = torch.randn(4, 4)
    play = torch.capture(lambda x: x @ w)
    x = torch.randn(2, 4)
    for _ in range(3):
        assert play(x).dtype is torch.float32
        with torch.autocast(x.device.type, torch.bfloat16):
            assert play(x).dtype is torch.bfloat16


def test_plays_build_and_allocate_nothing_that_stays() -> None:
    step, _ = training(1)
    play = torch.capture(step)
    x, y = torch.randn(16, 20), torch.randint(0, 5, (16,))
    for _ in range(3):
        play(x, y)
    torch.opencl.synchronize()
    device = x.device
    before, held = torch.stats(), torch.opencl.memory_allocated(device)
    for _ in range(20):
        play(x, y)
    torch.opencl.synchronize()
    after = torch.stats()
    assert after.builds == before.builds
    launches = (after.launches - before.launches) / 20
    assert launches == int(launches) > 0
    assert torch.opencl.memory_allocated(device) == held


def test_memory_is_used_again_within_a_recording(dev: Any) -> None:
    w = torch.eye(64, device=dev) + 0.01
    kept: list[Any] = []

    def walk(x: Any) -> tuple[Any, Any]:
        kept.clear()
        for step in range(24):
            x = (x @ w).relu()
            if step % 8 == 3:
                kept.append(x.sum(0))
        return x, x.cumsum(0)

    x = torch.rand(64, 64, device=dev)
    # Bytes of the log in which the recording's launches note bad indices, with room for each thread.
    log = RecordedLog(get_backend(dev)).buffer.nbytes
    play = torch.capture(walk)
    for _ in range(2):  # first run as it is, then recorded
        torch.opencl.synchronize()
        torch.opencl.reset_peak_memory_stats(dev)
        before = torch.opencl.memory_allocated(dev)
        play(x)
        torch.opencl.synchronize()
        assert torch.opencl.max_memory_allocated(dev) - before < 8 * x.nbytes + log
    inputs = [x, -x, x * 2]
    found = [play(v) for v in inputs]
    held = [t.tolist() for t in kept]  # made while recording; they hold values of the last play
    for v, results in zip(inputs, found, strict=True):
        assert all(map(torch.equal, results, walk(v)))
    assert [t.tolist() for t in kept] == held


def test_refusals() -> None:
    x = torch.randn(4)
    for reading in (lambda t: t.sum().item(), lambda t: t.tolist(), lambda t: t if t.sum() else -t):
        f = torch.capture(reading)
        f(x)
        with pytest.raises(RecordingError, match="reads values"):
            f(x)
        assert torch.equal(x + 0, x)  # the device is usable again

    writes = torch.capture(lambda t: t.add_(1))
    writes(x)
    with pytest.raises(RecordingError, match="argument number 0"):
        writes(x)
    with pytest.raises(RecordingError, match="requires grad"):
        torch.capture(chain)(x.clone().requires_grad_(), x)


@pytest.mark.parametrize("known", [False, True])
def test_index_errors_come_at_the_next_read(known: bool) -> None:
    table = torch.randn(5, 3)
    look_up = torch.capture(lambda i: torch.nn.functional.embedding(i, table))
    good = torch.tensor([0, 4])
    for _ in range(4 * known):  # from then on the call is replayed; a replay is recorded, too
        torch.nn.functional.embedding(good, table)
    for _ in range(3):
        assert torch.equal(look_up(good), table[good])
    out = look_up(torch.tensor([0, 9]))
    with pytest.raises((IndexError, RuntimeError), match="out of"):
        out.tolist()
    assert torch.equal(look_up(good), table[good])


def test_a_failed_recording_gives_its_memory_back() -> None:
    x = torch.randn(1 << 16)
    device = x.device

    def fails(t: Any) -> Any:
        return (t * 2 + t.sum()).tolist()

    held = []
    for _ in range(4):
        f = torch.capture(fails)
        f(x)
        with pytest.raises(RecordingError):
            f(x)
        held.append(torch.opencl.memory_reserved(device))
    assert held[1] == held[-1]


def test_copies_into_what_changes() -> None:
    """A result that a copy from the host writes, here a constant, is new memory at each play, for one copy each."""

    @torch.capture
    def constant(x: torch.Tensor) -> Any:
        return torch.tensor([1.0, 2.0, 3.0]), x + 1

    results = [constant(torch.full((2,), float(n))) for n in range(4)]
    before = torch.stats().copies
    results.append(constant(torch.full((2,), 4.0)))
    assert torch.stats().copies == before + 1
    for n, (found, shifted) in enumerate(results):
        assert found.tolist() == [1, 2, 3]
        assert shifted.tolist() == [n + 1, n + 1]


def test_numbers_that_are_equal_are_told_apart() -> None:
    """Numbers that compare equal but differ in type, in the sign of zero, or in their place among the arguments have
    recordings of their own.
    """

    @torch.capture
    def scaled(x: Any, k: Any) -> Any:
        return torch.mul(x, k) if isinstance(x, torch.Tensor) else x - k

    x = torch.arange(3)
    for k in (1, 1.0, True, 0.0, -0.0, 0, float("nan"), 1):
        for _ in range(3):
            found, expected = scaled(x, k), x * k
            assert found.dtype is expected.dtype
            assert str(found.tolist()) == str(expected.tolist())
    for _ in range(3):
        assert scaled(x, 0).tolist() == [0, 0, 0]
        assert scaled(0, x).tolist() == [0, -1, -2]


def test_what_waits_for_the_old_value_of_a_state_has_it() -> None:
    """A result that is pending outside of a recording reads a state's value from before the play that writes it."""
    w = torch.ones(40)

    @torch.capture
    def step(x: Any) -> Any:
        w.add_(x)
        return w.sum()

    x = torch.ones(40)
    for n in range(1, 5):
        seen = w * 2
        assert step(x).item() == 40 * (n + 1)
        assert seen.tolist() == [2.0 * n] * 40


def test_calls_with_other_names_numbers_shapes_and_dtypes_are_other_calls() -> None:
    @torch.capture
    def scaled(x: Any, by: Any = 3) -> Any:
        return x * by

    x = torch.ones(4)
    for _ in range(4):
        assert scaled(x, by=5).tolist() == [5] * 4
        assert scaled(x).tolist() == [3] * 4
        assert scaled(x, 7).tolist() == [7] * 4
        assert scaled(x[1:], 7).tolist() == [7] * 3
        assert scaled(x[1:]).tolist() == [3] * 3
        assert scaled(x.double()).dtype is torch.float64
    with pytest.raises(RecordingError, match="argument number 0 requires grad"):
        scaled(torch.ones(4).requires_grad_())


def test_modes_are_part_of_what_is_recorded() -> None:
    grads = []

    @torch.capture
    def asked(x: Any) -> Any:
        grads.append(torch.is_grad_enabled())
        return x + torch.is_grad_enabled()

    x = torch.ones(2)
    for _ in range(3):
        assert asked(x).tolist() == [2, 2]
        with torch.no_grad():
            assert asked(x).tolist() == [1, 1]
    assert grads == [True, False] * 2


def test_what_is_written_outside_lies_where_a_play_reads_it() -> None:
    """A play reads the new value although the write outside put it into other memory, because a pending result still
    reads the old value.
    """
    w = torch.ones(40)
    double = torch.capture(lambda x: x * w)
    x = torch.ones(40)
    for n in range(1, 6):
        kept = w + 1
        w.mul_(2)
        w._storage.buffer()
        assert double(x).tolist() == [2.0**n] * 40
        assert kept.tolist() == [2.0 ** (n - 1) + 1] * 40


def test_arguments_and_states_may_be_results() -> None:
    w = torch.ones(3)

    @torch.capture
    def several(x: Any) -> Any:
        return x, x[1:], w, w.add_(x)[:2], x + w

    for n in range(1, 5):
        x = torch.full((3,), float(n))
        same, part, state, seen, total = several(x)
        assert same.data_ptr() == x.data_ptr()
        assert part.tolist() == [n, n]
        assert state.data_ptr() == w.data_ptr()
        assert seen.tolist() == w.tolist()[:2] == [1 + n * (n + 1) / 2] * 2
        assert total.tolist() == (x + w).tolist()


@pytest.mark.parametrize("recorded", [0, 1 << 63, (1 << 64) - 1])
def test_seeds_of_64_bits_are_recorded_and_played(recorded: int) -> None:
    draw = torch.capture(lambda: torch.rand(70))
    for seed in (recorded, 0, 1 << 63, (1 << 64) - 1, -5):
        found = []
        for fn in (draw, draw, draw, lambda: torch.rand(70)):
            torch.manual_seed(seed)
            found.append(fn().tolist())
        assert found[0] == found[1] == found[2] == found[3]


def test_a_play_waits_for_what_is_queued(dev: Any) -> None:
    backend, double = get_backend(dev), torch.capture(lambda x: x * 2)
    if backend.team is None:
        pytest.skip("there a play is queued, too")
    x = torch.ones(5)
    for _ in range(3):
        double(x)
    backend.finish()
    backend.seq += 1  # as if something were queued
    double(x)
    assert backend.finished == backend.seq


def test_named_results_keep_their_names() -> None:
    Pair = namedtuple("Pair", ["x", "rest"])
    largest = torch.capture(lambda pair: Pair(pair.x.max(0), [pair.x.min(1)]))
    for n in range(4):
        x = torch.tensor([[1.0, n], [n, 2.0]])
        result = largest(Pair(x, 1))
        assert type(result) is Pair
        found, (least,) = result
        assert type(found) is type(x.max(0))
        assert found.values.tolist() == [max(1, n), max(n, 2)]
        assert least.indices.tolist() == x.min(1).indices.tolist()


def test_arguments_that_share_memory_are_told_apart() -> None:
    b = torch.ones(3)
    f = torch.capture(lambda x, y: x * 10 + y + b)
    for x, y in ((b, b), (b, b), (b, torch.zeros(3)), (torch.zeros(3), b)):
        assert torch.equal(f(x, y), x * 10 + y + b)

    def counts(x: Any) -> Any:
        b.add_(1)
        return x * 10

    f = torch.capture(counts)
    for _ in range(3):
        f(torch.zeros(3))
    with pytest.raises(RecordingError, match="argument number 0"):
        f(b)
    f = torch.capture(counts)
    f(b)
    with pytest.raises(RecordingError, match="argument number 0"):
        f(b)


def test_the_recorded_results_are_not_written_over() -> None:
    f = torch.capture(lambda x: x.cumsum(0).cumsum(0).cumsum(0).cumsum(0).cumsum(0))
    results = [f(torch.full((4,), float(k))) for k in range(4)]
    assert [t[1].item() for t in results] == [0, 6, 12, 18]


def test_a_captured_function_in_another_is_part_of_it() -> None:
    b = torch.zeros(3)

    @torch.capture
    def inner(x: Any) -> Any:
        b.add_(x)
        return b * 2

    for _ in range(3):
        inner(torch.ones(3))
    outer = torch.capture(lambda x: inner(x * 1) + 1)
    assert [outer(torch.ones(3))[0].item() for _ in range(4)] == [9, 11, 13, 15]
    assert b.tolist() == [7, 7, 7]


def test_generators_are_seeded_outside() -> None:
    def mine(x: Any) -> Any:
        return x + torch.rand(3, generator=torch.Generator(x.device).manual_seed(3))

    def seeded(x: Any) -> Any:
        torch.manual_seed(3)
        return x + torch.rand(3)

    f, x = torch.capture(mine), torch.zeros(3)
    assert len({tuple(f(x).tolist()) for _ in range(4)}) == 1
    f = torch.capture(seeded)
    f(x)
    with pytest.raises(RecordingError, match="seeds a random generator"):
        f(x)


@pytest.mark.parametrize("forked", [False, True])
def test_draws_that_go_back_are_counted(forked: bool) -> None:
    p = torch.ones(8, requires_grad=True)

    def step(x: Any) -> Any:
        if forked:
            with torch.random.fork_rng():
                y = p * torch.rand(8)
        else:
            drop = torch.nn.functional.dropout
            y = torch.utils.checkpoint.checkpoint(lambda p: drop(p * 1), p, use_reentrant=False)
        loss = (y * x * torch.rand(8)).sum()
        return loss, torch.autograd.grad(loss, p)[0]

    found = []
    for run in (step, torch.capture(step)):
        torch.manual_seed(1)
        found.append([[t.tolist() for t in run(torch.ones(8))] for _ in range(5)])
    assert found[0] == found[1]
