"""The benchmark suite's machinery, on cases of a few numbers."""

from __future__ import annotations

import dataclasses
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cltensor
from benchmarks import cached, held, kernels, kits, measure, report, suite
from benchmarks.case import Case, Index, Kit, on
from cltensor.tune import peaks

PEAK = {"copy": 1e9, "update": 1e9, "read": 1e9, "write": 1e9, "flops": 1e10}


@pytest.fixture
def ours(dev: Any) -> Any:
    return kits.ours(str(dev))


@pytest.fixture
def peer(dev: Any) -> Any:
    (kit,) = kits.peers(str(dev), 1, ["numpy"])
    return kit


def _add(torch: Any, a: Any, b: Any) -> Any:
    return a + b


TINY = Case("pointwise", "a + b, 64", on(_add, (64,), (64,)), bytes=768, also=("numpy",))


def test_inputs_are_the_same_everywhere(ours: Any, peer: Any) -> None:
    assert np.array_equal(ours.host(ours.rand(5, seed=1)), peer.rand(5, seed=1))
    assert ours.rand(50, dtype="int32").abs().max() > 100
    assert ours.randint(7, 50).max() < 7


def test_a_program_may_have_indices_and_a_backward(ours: Any) -> None:
    taken = on(lambda t, x, i: x[i], (8,), Index(8, (5,)))(ours)()
    assert taken.shape == (5,)
    (gradient,) = on(lambda t, x: x * x, (8,), grad=True)(ours)()
    assert np.allclose(ours.host(gradient), 2 * ours.host(ours.rand(8)))


PORTABLE = {
    "sigmoid": lambda t, x: t.sigmoid(x),
    "softmax": lambda t, x: t.softmax(x, 1),
    "layer_norm": lambda t, x: t.nn.functional.layer_norm(x, (8,)),
    "cumsum": lambda t, x: t.cumsum(x, 0),
    "sort": lambda t, x: t.sort(x)[0],
    "transposed": lambda t, x: x.T.reshape(-1),
}


@pytest.mark.parametrize("name", ["numpy", "jax", "tinygrad"])
def test_other_libraries_names_mean_the_same(name: str, ours: Any, dev: Any) -> None:
    if find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    (kit,) = kits.peers(str(dev), 1, [name])
    for word, program in PORTABLE.items():
        if word in ("sigmoid", "transposed") or hasattr(kit.torch, word):
            mine, theirs = (k.host(on(program, (4, 8))(k)()) for k in (ours, kit))
            assert np.allclose(mine, theirs, atol=1e-5), word


def test_a_case_is_made_smaller(ours: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    part = cached.Part(ours, 0.26)
    assert part.rand(100, 3).shape == (26, 3) and part.kept == 0.26
    assert part.rand(100).shape == (26,) and part.rand(3).shape == (3,)
    assert part.randint(7, 100).shape == (26,)
    assert cached.Part(ours, 1e-9).rand(100, 3).shape == (1, 3)
    mine = suite.timed_on(ours, TINY.make(ours), queued=False)
    assert cached.share(TINY, mine, ours, 0.0) is None  # too small for it
    monkeypatch.setattr(cached, "SMALL", 384)
    monkeypatch.setattr(cached, "SMALLER", 96)
    found = cached.share(dataclasses.replace(TINY, bytes=769), mine, ours, 0.0)
    assert isinstance(found, float)
    assert (
        cached.share(dataclasses.replace(TINY, family="sort", bytes=769), mine, ours, 0.0) is None
    )
    one_row = Case("copy", "of one row", on(lambda t, a: a + 1, (1, 64)), bytes=1000)
    assert cached.share(one_row, mine, ours, 0.0) is None


def test_a_case_is_measured_beside_its_peers(ours: Any, peer: Any) -> None:
    found = suite.one(TINY, ours, [peer], 0.0, compile=False)
    assert found["launches"] == 1
    assert found["peers"].keys() == {"numpy"} and found["left_out"] == {}
    assert found["low_s"] <= found["median_s"] <= found["high_s"]
    alone = Case("pointwise", "a", on(lambda t, a: a * 2, (64,)))
    assert suite.one(alone, ours, [peer], 0.0, compile=False)["peers"] == {}


def test_a_gpu_is_waited_for_once_a_measurement() -> None:
    seen: list[str] = []
    run, wait, submit = (lambda name=name: seen.append(name) for name in ("run", "wait", "submit"))
    timed = measure.Timed("one", run, wait, submit)
    timed.inner = 3
    timed._measure()
    assert seen == ["run", "submit"] * 3 + ["wait"]
    seen.clear()
    alone = measure.Timed("one", run, wait)
    alone.inner = 2
    alone._measure()
    assert seen == ["run", "wait"] * 2


def test_queued_runs_are_all_launched(ours: Any, peer: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(kits, "is_gpu", lambda device: True)
    mine = suite.timed_on(ours, TINY.make(ours), True)
    mine.first()
    mine.inner = 7
    before = cltensor.stats().launches
    mine._measure()
    assert cltensor.stats().launches - before == 7
    found = suite.one(TINY, ours, [peer], 0.0, compile=False)
    assert found["queued"] and found["launches"] == 1
    alone = dataclasses.replace(TINY, alone=True)
    assert not suite.one(alone, ours, [peer], 0.0, compile=False)["queued"]


def test_a_peer_that_fails_is_named_and_left_out(ours: Any, peer: Any) -> None:
    case = Case("pointwise", "tanh", on(lambda t, a: t.tanh(a), (64,)), 512, also=("numpy",))
    found = suite.one(case, ours, [peer], 0.0, compile=False)
    assert found["peers"] == {} and "AttributeError" in found["left_out"]["numpy"]
    assert "numpy left out: AttributeError" in suite.line(found)


def test_a_library_that_is_not_there_is_named(dev: Any, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr(kits, "_Jax", lambda gpu: __import__("not_installed"))
    assert list(kits.peers(str(dev), 1, ["jax"])) == []
    assert "jax does not take part: ModuleNotFoundError" in capsys.readouterr().out


def test_results_that_differ_are_an_error(ours: Any, peer: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(peer, "put", lambda values: values + 1)
    with pytest.raises(ArithmeticError, match="numpy differs by"):
        suite.one(TINY, ours, [peer], 0.0, compile=False)


def test_disagreement_is_relative_to_the_largest_number() -> None:
    a = np.array([1.0, 100.0])
    assert suite.disagreement([a, a], [a, a + 1]) == pytest.approx(1 / 101)
    assert suite.disagreement([a > 2], [a > 1]) == 0
    assert suite.disagreement([a], [a * np.nan]) == float("inf")
    assert suite.disagreement([a], [a[:1]]) == float("inf")
    infinite = np.array([1.0, -np.inf])
    assert suite.disagreement([infinite], [infinite]) == 0
    assert suite.disagreement([infinite], [a]) == float("inf")


def test_a_run_is_written_and_drawn(
    dev: Any, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.setattr(suite, "best", lambda device, peak: PEAK)
    probe = peaks.Probe(lambda: None, 1e6)
    monkeypatch.setattr(measure, "ratios", lambda *_: {"ratio": 0.5, "low": 0.5, "high": 0.5})
    monkeypatch.setattr(peaks, "probes", lambda device: dict.fromkeys(PEAK, probe))
    broken = Case("gemm", "broken", on(lambda t, a: a.no_such_name, (4,)))
    found = suite.run([TINY, broken], str(dev), 1, 0.0, ["numpy"])
    assert found["cases"][0]["limit"] == "copy"
    assert found["cases"][0]["of_peak"] == pytest.approx(0.5 * TINY.bytes / 1e6)
    out = capsys.readouterr().out
    assert "gemm: broken" in out and "AttributeError" in out
    assert [report.label(c) for c in found["cases"]] == ["pointwise: a + b, 64"]
    assert {"python", "cltensor", "numpy"} == found["versions"].keys()
    path = tmp_path / "found.json"
    report.write(path, found)
    assert report.read(path) == found
    pytest.importorskip("matplotlib")
    report.draw(tmp_path / "found.png", report.read(path))
    assert (tmp_path / "found.png").read_bytes().startswith(b"\x89PNG")


def test_kernels_of_a_case_are_watched(ours: Any) -> None:
    found = kernels.one(TINY, ours, None, PEAK)
    (kernel,) = found["kernels"]
    assert kernel["count"] == found["launches"] == 1
    assert kernel["name"].startswith("add__f32")
    assert kernel["bytes"] == 768
    assert found["seconds"] == kernel["seconds"] > 0
    assert found["of_peak"] == pytest.approx(TINY.bytes / found["seconds"] / PEAK["copy"])
    first, second = kernels.lines(found)
    assert TINY.label in first
    assert kernel["name"] in second
    assert kernels.summary([found]) == ""
    beside = {**found, "bytes": 1e8, "seconds": 1.0, "torch_seconds": 0.9, "of_peak": 0.5}
    assert kernels.summary([beside]).splitlines() == [
        "0 of 1 cases take no longer than torch, 1 no more than a quarter longer",
        "0 of 1 cases that move 32 MiB and more reach 80 % of the device's own speed",
    ]


class Queue:
    """A simulated queue with a clock of its own: enqueued work keeps the device busy, and waiting moves the clock to
    the end of that work.
    """

    def __init__(self, queueing: float) -> None:
        self.now, self.busy_until, self.queueing = 0.0, 0.0, queueing

    def take(self, seconds: float) -> None:
        self.busy_until = max(self.busy_until, self.now) + seconds

    def run(self) -> None:
        self.now += self.queueing
        self.take(2e-3)

    def wait(self) -> None:
        self.now = max(self.now, self.busy_until)


def queued(monkeypatch: Any, queueing: float) -> tuple[Queue, held.Held]:
    queue = Queue(queueing)
    monkeypatch.setattr(held, "time", SimpleNamespace(perf_counter=lambda: queue.now))
    return queue, held.Held(Kit("queue", None, wait=queue.wait), queue.take)


def test_a_held_device_is_timed_without_the_host(monkeypatch: Any) -> None:
    queue, device = queued(monkeypatch, queueing=1e-3)
    assert device.seconds(queue.run, 3) == pytest.approx(2e-3)
    queue.queueing = 1e-2  # the host takes longer than the device does
    assert device.seconds(queue.run, 3) == pytest.approx(2e-3)


def test_what_waits_by_itself_is_not_timed_held(monkeypatch: Any) -> None:
    queue, device = queued(monkeypatch, queueing=1e-3)

    def run() -> None:
        queue.run()
        queue.wait()

    assert device.seconds(run, 3) is None


def test_a_queue_of_ours_is_held(dev: Any) -> None:
    if dev.type == "cpu":
        pytest.skip("a team has no queue")
    import cltensor

    device = held.ours(kits.ours(str(dev)), cltensor.runtime.get_backend(dev))
    few, many = (device._measure(None, 0, seconds)[1] for seconds in (1e-3, 1e-2))
    assert many > 2 * few


def test_runs_together_are_neither_too_many_nor_too_long() -> None:
    assert held.runs_together(1e-6, 1) == held.MOST_RUNS
    assert held.runs_together(1e-6, 100) == 4
    assert held.runs_together(1.0, 1) == held.runs_together(0.0, 10**6) == 1
