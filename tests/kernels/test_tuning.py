"""Tables of tuned sizes: what is read, what is ignored, that no size changes a result, and whose verdict counts."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cltensor as torch
from cltensor import config
from cltensor.codegen.operand import Operand
from cltensor.codegen.products import gemm, product
from cltensor.runtime import DeviceInfo, children, get_backend, tuning
from cltensor.tune import cli
from cltensor.tune.child import Trial, bits
from cltensor.tune.parameters import PARAMETERS, chosen


def configured(monkeypatch: pytest.MonkeyPatch, **fields: Any) -> None:
    changed = dataclasses.replace(config.CONFIG, **fields)
    for module in ("cltensor.config", "cltensor.errors", "cltensor.runtime.tuning"):
        monkeypatch.setattr(f"{module}.CONFIG", changed)


@pytest.fixture
def info(dev: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    configured(monkeypatch, tuning=str(tmp_path), debug=1)
    return get_backend(dev).info


def test_a_table_is_kept(info: Any, tmp_path: Path) -> None:
    assert tuning.load(info) == {}  # no table yet, which is not reported
    file = tuning.save(info, tuning.Table({"move.grain": 4096}, {"copy": 2e9}), {"when": "today"})
    assert file.parent == tmp_path
    assert [p.name for p in tmp_path.iterdir()] == [file.name]
    found = tuning.load(info)
    assert found == {"move.grain": 4096}
    assert found.peaks == {"copy": 2e9, "flops": 0.0}
    newer = dataclasses.replace(info, driver_version="another")
    assert tuning.path(newer) != file
    assert tuning.load(newer) == {}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("not JSON", "Expecting value"),
        ('{"format": 1}', "device"),
        ({"format": 99}, "made by another version"),
        ({"device": {"name": "another"}}, "made for another device"),
        ({"values": {"move.grain": 1}}, "move.grain must be an integer from 256"),
        ({"values": {"move.grain": 4096.0}}, "move.grain must be an integer"),
        ({"values": {"gemm.magic": 3}}, "no size is called 'gemm.magic'"),
        ({"values": 3}, "attribute"),
    ],
)
def test_a_bad_table_is_ignored(
    info: Any, change: Any, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tuning.save(info, tuning.Table({"move.grain": 4096}), {})
    text = change if isinstance(change, str) else json.dumps(json.loads(file.read_text()) | change)
    file.write_text(text)
    capsys.readouterr()
    assert tuning.load(info) == {}
    (line,) = capsys.readouterr().err.splitlines()
    assert why in line
    assert str(file) in line


def test_tables_can_be_off(info: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tuning.save(info, tuning.Table({"move.grain": 4096}), {})
    configured(monkeypatch, tuning="0")
    assert tuning.path(info) is None
    assert tuning.load(info) == {}
    with pytest.raises(OSError, match="forbids"):
        tuning.save(info, tuning.Table(), {})


def test_shipped_tables_lie_under_the_users(
    info: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = tmp_path / "shipped"
    shipped.mkdir()
    monkeypatch.setattr(tuning, "SHIPPED", shipped)
    table = {
        "format": 1,
        "device": {"kind": info.kind},
        "values": {"move.grain": 512, "multi.grain": 512},
    }
    (shipped / "a.json").write_text(json.dumps(table))
    (shipped / "b.json").write_text(
        json.dumps(table | {"device": {"kind": "toaster"}, "values": {}})
    )
    tuning.save(info, tuning.Table({"move.grain": 4096}), {})
    assert tuning.load(info) == {"move.grain": 4096, "multi.grain": 512}


@pytest.fixture
def untouched(dev: Any) -> Iterator[None]:
    """Restore the device's table of sizes after the test, and forget the kernels and plans made with other sizes."""
    backend = get_backend(dev)
    before = dict(backend.tuned)
    yield
    backend.tuned.clear()
    backend.tuned.update(before)
    for parameter in PARAMETERS:
        parameter.forget()


@pytest.mark.parametrize("parameter", PARAMETERS, ids=lambda p: p.name)
def test_no_size_changes_a_result(dev: Any, parameter: Any, untouched: None) -> None:
    if get_backend(dev).info.kind not in parameter.kinds:
        pytest.skip("for another kind of device")
    assert set(parameter.candidates) <= set(
        range(tuning.LIMITS[parameter.name][0], tuning.LIMITS[parameter.name][1] + 1)
    )
    trial = Trial(str(dev), parameter, parameter.candidates[0])
    case = list(parameter.cases(torch, True).values())[-1]
    trial.switch(False)
    expected = bits(case())
    trial.switch(True)
    assert get_backend(dev).tuned[parameter.name] == parameter.candidates[0]
    assert bits(case()) == expected


def test_sizes_reach_launches(dev: Any, untouched: None, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = get_backend(dev)
    if backend.info.kind != "cpu":
        pytest.skip("work-items are counted on a CPU")
    grain = next(p for p in PARAMETERS if p.name == "pointwise.grain")
    x = torch.ones(1 << 14)
    seen = []
    monkeypatch.setattr(DeviceInfo, "wake_us", 0)  # otherwise work this small is not divided
    for value in (1 << 15, 1 << 22):
        backend.tuned["pointwise.grain"] = value
        grain.forget()
        with torch.profiler.profile() as prof:
            (x + 1).sum_to_size(1 << 14).tolist()
        seen.append(next(e.details["grid"] for e in prof.events() if e.details))
    assert seen == [[2], [1]]


def test_blocks_of_k_do_not_change_a_product(dev: Any, untouched: None) -> None:
    backend = get_backend(dev)
    m, k, n = 17, 37, 19
    a, b = torch.randn(m, k), torch.randn(k, n)
    sides = [Operand(t._storage.buffer(), t.dtype, tuple(t.shape), t.stride()) for t in (a, b)]
    found = []
    for step in (16, 4):
        backend.tuned["gemm.step"] = step
        product._kernels.clear()
        out = gemm.matmul(backend, *sides, schedule="gpu")
        found.append(backend.read(out.buffer, 0, m * n * 4).tobytes())
    assert found[0] == found[1]


# --- verdicts


def test_judge() -> None:
    assert cli.judge({"a": [2.0, 1.0], "b": [1.0, 1.0]})[0] == pytest.approx(2**0.5)
    assert cli.judge({"a": [2.0, 1.0], "b": [1.0, 1.2]})[0] is None  # too slow in one case
    assert cli.judge({"a": [1.01, 1.0]})[0] is None  # not worth it


def test_tuner_keeps_what_wins_twice(
    info: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tuner = cli.Tuner("cpu", info, True, 1.0)
    asked = []

    def ask(task: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
        asked.append(task)
        if task["what"] == "peaks":
            return {"copy": 1e10, "flops": 1e11}, ""
        gain = {2: 3.0, 4: 1.5, 16: 1.0}.get(task["value"])
        if task["value"] == 2 and task["effort"] == "confirm":
            gain = 0.5  # the gain measured before was luck
        if task["what"] == "move.grain":
            return (
                (None, "died of SIGSEGV") if task["value"] < 4000 else ({"differs": ["gather"]}, "")
            )
        return {"times": {"case": [gain, 1.0]}}, ""

    monkeypatch.setattr(tuner, "ask", ask)
    names = ("copy.vectors", "move.grain")
    assert tuner.run([p for p in PARAMETERS if p.name in names]) == 0
    assert tuning.load(info) == {"copy.vectors": 4}
    assert tuning.load(info).peaks["copy"] == 1e10
    assert [t["value"] for t in asked if t.get("effort") == "confirm"] == [2, 4]
    said = capsys.readouterr().out
    assert "died of SIGSEGV" in said
    assert "other results than the default: gather" in said
    assert "move.grain: default" in said


def test_children_may_fail(info: Any) -> None:
    hasty = cli.Tuner("cpu", info, True, 0.01)
    assert hasty.ask({"what": "peaks"}) == (None, "took more than 0.01 seconds")
    failing = cli.Tuner("cpu:x", info, True, 60.0)
    result, trouble = failing.ask({"what": "peaks"})
    assert result is None
    assert "failed with exit code 1: RuntimeError: Invalid device string" in trouble
    assert children.ended(-11) == "died of SIGSEGV"


def test_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--family", "nonesuch"]) == 2
    assert "there is no family 'nonesuch'" in capsys.readouterr().out
    assert cli.main(["--device", "opencl:77"]) == 2
    assert {p.family for p in chosen("gpu", [])} == {"copy", "gemm", "pointwise"}
    assert [p.name for p in chosen("cpu", ["copy"])] == ["copy.vectors"]
