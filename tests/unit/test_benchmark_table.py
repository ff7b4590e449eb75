"""The table of benchmark cases and the files of results, as far as they need no device."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchmarks import __main__ as command
from benchmarks import cases, memory, report, start
from benchmarks.environment import PEERS, VARIABLES, limit_threads
from cltensor.tune.peaks import MOVES

ALL = cases.load([])


def test_labels_are_unique_and_fit_their_column() -> None:
    assert [label for label, n in Counter(c.label for c in ALL).items() if n > 1] == []
    assert [c.label for c in ALL if len(c.label) > 56] == []


def test_every_case_is_drawn_and_can_be_rated() -> None:
    drawn = {family for families in report.GROUPS.values() for family in families}
    assert {c.family for c in ALL} == drawn
    for c in ALL:
        assert c.bytes >= 0 and c.flops >= 0
        assert c.bound in MOVES
        assert set(c.also) <= set(PEERS)


def test_every_module_of_cases_is_loaded() -> None:
    folder = Path(cases.__file__).parent
    assert {p.stem for p in folder.glob("*.py")} - {"__init__"} == set(cases.MODULES)


def test_cases_are_chosen_by_family_and_by_beginning() -> None:
    assert {c.family for c in cases.load(["gemv"])} == {"gemv"}
    assert [c.label for c in cases.load(["gemm: 1024³, A transposed, B"])] == [
        "gemm: 1024³, A transposed, B transposed"
    ]


def test_quick_has_few_peers_and_the_peers_can_be_named(capsys: Any) -> None:
    assert command.options(["--quick"]).peers == ["torch", "numpy"]
    assert command.options(["--compile"]).peers[-1] == "torch.compile"
    assert command.options(["--peers", "jax"]).peers == ["jax"]
    with pytest.raises(SystemExit):
        command.options(["--peers", "jaxx"])
    assert "no peer is called jaxx" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        command.options(["--peers", "numpy", "--compile"])
    assert "--compile needs torch" in capsys.readouterr().err


def test_words_that_choose_nothing_are_named(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "limit_threads", lambda threads: None)
    for how in ("--list", "--kernels", "--no-write"):
        assert command.main(["gemv", "gemmm", how]) == 2
        assert "no case begins with gemmm: see --list" in capsys.readouterr().err
    (slow,) = (c.label for c in cases.load(["gemv: vector by vector"]))
    assert command.main([slow, "--quick", "--list"]) == 2
    assert "with --quick" in capsys.readouterr().err
    assert command.main([slow, "start", "--list"]) == 0
    assert capsys.readouterr().out == f"{slow}\n"


def test_threads_are_the_same_for_every_library(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.setenv(name, "7")
    limit_threads(3)
    import os

    assert {os.environ[name] for name in VARIABLES} == {"3"}


def _result(name: str, ratio: float, spread: float = 0.1, **more: Any) -> dict[str, Any]:
    torch = {"low": ratio - spread, "ratio": ratio, "high": ratio + spread}
    return {
        "family": "gemm", "name": name, "bytes": 100.0, "flops": 0.0, "bound": "copy", "bar": 1.0, "median_s": 1.0, "low_s": 0.9,
        "high_s": 1.1, "launches": 1, "peers": {"torch": torch}, "left_out": {}, "of_peak": 0.5, "limit": "copy", **more,
    }  # fmt: skip


def _results(*found: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"cases": list(found), "peak": {"copy": 200.0, "flops": 1e9}, **more}


def _files(folder: Path, *results: dict[str, Any]) -> list[Path]:
    paths = [folder / f"{k}.json" for k in range(len(results))]
    for path, result in zip(paths, results):
        report.write(path, result)
    return paths


def test_comparing_marks_what_moved_beyond_the_spread(tmp_path: Path, capsys: Any) -> None:
    alone = {"peers": {}}
    first = _results(
        *(_result("a", 1), _result("b", 1), _result("c", 1), _result("d", 1)),
        _result("gone", 1),
        _result("alone", 1, **alone),
        driver="one",
    )
    second = _results(
        *(_result("a", 1.15), _result("b", 1.3), _result("c", 0.7), _result("d", 1)),
        _result("alone", 1, **alone, median_s=0.5, low_s=0.4, high_s=0.6),
        driver="two",
    )
    assert report.compare(*_files(tmp_path, first, second)) == 1
    assert capsys.readouterr().out.splitlines() == [
        "driver: one -> two",
        "faster  gemm: b: times as fast as torch, 1 -> 1.3",
        "SLOWER  gemm: c: times as fast as torch, 1 -> 0.7",
        "faster  gemm: alone: runs a second, 1 -> 2",
        "2 cases within the spread",
        "1 only in 0.json: gemm: gone",
    ]
    assert report.compare(*_files(tmp_path, first, first)) == 0


def test_new_results_replace_those_of_the_same_cases(tmp_path: Path) -> None:
    (path,) = _files(tmp_path, _results(_result("a", 1), _result("b", 1), driver="one"))
    merged = report.merge(path, _results(_result("b", 2), _result("c", 3)))
    ratios = {c["name"]: c["peers"]["torch"]["ratio"] for c in merged["cases"]}
    assert ratios == {"a": 1, "b": 2, "c": 3}
    assert merged["driver"] == "one"
    assert json.loads(json.dumps(merged)) == merged
    (path,) = _files(tmp_path, _results(start={"import torch": 1.0}))
    assert report.merge(path, _results(_result("b", 2)))["start"] == {"import torch": 1.0}


def test_summary_and_table_say_what_holds() -> None:
    results = _results(_result("good", 2), _result("bad", 0.5), _result("odd", 2, of_peak=1.2))
    words = report.summary(results)
    assert "2 of 3 aims reached" in words
    assert "torch 0.50 (0.40-0.60) < aim 1" in words
    assert (
        "beyond the peak, 120 % (in a cache, or by fewer operations than counted): gemm: odd"
        in words
    )
    assert "MiB" not in words
    assert report.summary(_results()) == ""
    moved = [_result(str(share), 2, bytes=1e8, of_peak=share) for share in (0.7, 0.8, 0.9)]
    moved[0]["in_cache"] = 0.9
    words = report.summary(_results(*moved))
    assert "2 of 3 cases that move 32 MiB" in words
    assert "; 1 others reach as much of their own speed on data in a cache" in words
    assert "90 % of its speed in a cache" in report.line(moved[0])
    assert "| gemm: good | 1 s | 0.0 GB/s | 50 % | 1 | 2.00 |" in report.aims(results)
    assert "| gemm | 3 | 2.00 | 2.00 | 0.50 | bad |" in report.families(results)


def test_what_trainings_hold_is_said_beside_torchs() -> None:
    beside, alone = memory.lines(
        {"training: a": {"cltensor": 2_000_000, "torch": 3_000_000}, "training: b": {"cltensor": 1}}
    )
    assert beside.split() == [
        "training:",
        "a",
        "cltensor",
        "2.0",
        "MB,",
        "torch",
        "3.0",
        "MB:",
        "0.67",
        "of",
        "torch's",
    ]
    assert "torch" not in alone


def test_first_results_are_those_of_the_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, dict[str, str]]] = []

    def seconds(program: str, **environment: str) -> float:
        asked.append((program, environment))
        return 1.0

    monkeypatch.setattr(start, "seconds", seconds)
    monkeypatch.setattr(start, "find_spec", lambda name: object())
    found = start.measure(1, "opencl:3", "cuda")
    assert set(found.values()) == {1.0}
    first = [(p, e) for p, e in asked if "t.ones" in p and "import torch" not in p]
    assert len(first) == 2 and all("'opencl:3'" in p and e["CLTENSOR_CACHE_DIR"] for p, e in first)
    assert [p for p, _ in asked if "import torch as" in p and "'cuda'" in p]


@pytest.mark.skipif(not memory.FORGET.exists(), reason="the system does not count peaks")
def test_a_peak_is_counted_and_forgotten() -> None:
    memory.FORGET.write_text("5")
    before = memory._count("VmHWM")
    held = bytearray(b"1") * (64 << 20)
    assert memory._count("VmHWM") - before > 48 << 20
    del held
    memory.FORGET.write_text("5")
    assert memory._count("VmHWM") - before < 32 << 20
