"""The profiler sees every launch once, in the range that caused it, and nothing when it is off."""

from __future__ import annotations

import gzip
import json
import warnings
from pathlib import Path
from typing import Any

import pytest

import cltensor as torch
from cltensor.autograd import loop
from cltensor.autograd import profiler as old
from cltensor.profiler import (
    DeviceType,
    ProfilerAction,
    ProfilerActivity,
    profile,
    record_function,
    schedule,
    tensorboard_trace_handler,
)
from cltensor.runtime.observe import OBSERVERS


@pytest.fixture
def x() -> Any:
    return torch.arange(12.0).reshape(3, 4).requires_grad_()


def work(x: Any) -> Any:
    return (x * x + 2).sum()


def kernels(events: Any) -> list[Any]:
    """Return the events of launches, without those of copies to and from a discrete device."""
    on_device = [e for e in events if e.device_type is DeviceType.OPENCL]
    return [e for e in on_device if not e.name.startswith("Memcpy")]


def named(events: Any, name: str) -> Any:
    (found,) = [e for e in events if e.key == name]
    return found


def test_launches_and_ranges(x: Any) -> None:
    expected = work(x).item()
    torch.opencl.synchronize()  # a profile begins by running what others left pending
    before = torch.stats().launches
    with profile(record_shapes=True) as prof:
        with record_function("outer"):
            value = work(x)
            value.item()
        value.backward()
    assert value.item() == expected
    seen = kernels(prof.events())
    assert len(seen) == torch.stats().launches - before
    assert all(e.device_time_total > 0 and e.cpu_time_total == 0 for e in seen)
    outer, total = named(prof.events(), "outer"), named(prof.events(), "aten::sum")
    assert [c.name for c in outer.cpu_children] == [
        "aten::mul",
        "aten::add",
        "aten::sum",
        "aten::item",
    ]
    assert total.cpu_parent is outer
    assert outer.cpu_children[0].kernels == []  # lazy: it ran in the sum's kernel
    assert total.input_shapes == [[3, 4]]
    (kernel,) = total.kernels
    assert kernel.name.startswith("sum__mul_add_f32")
    assert total.self_device_time_total == kernel.duration
    assert outer.device_time_total >= kernel.duration  # plus a discrete device's copy
    assert 0 <= outer.self_cpu_time_total <= outer.cpu_time_total
    assert any(e.name.endswith(": SumBackward0") for e in prof.events())
    launch = next(e for e in seen if e.launched_by is total)
    assert launch.nbytes == 12 * 4
    assert launch.rate[0].endswith(" GB/s")


def test_averages_and_table(x: Any) -> None:
    with profile(
        activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True, with_stack=True
    ) as prof:
        for _ in range(3):
            work(x).item()
        torch.ones(2, 5).relu()
    averages = prof.key_averages(group_by_input_shape=True)
    total = named(averages, "aten::sum")
    assert total.count == 3
    assert total.cpu_time == pytest.approx(total.cpu_time_total / 3)
    text = averages.table(sort_by="self_cuda_time_total", row_limit=4)
    lines = text.splitlines()
    heads = (
        "Name",
        "Self CPU %",
        "Self OPENCL",
        "CPU Mem",
        "# of Calls",
        "Rate",
        "Input Shapes",
    )
    assert all(head in lines[1] for head in heads)
    assert "[[3, 4]]" in averages.table()
    assert "Source Location" in prof.key_averages(group_by_stack_n=2).table()
    times = [e.self_device_time_total for e in averages]
    first = max(averages, key=lambda e: e.self_device_time_total)
    assert lines[3].strip().startswith(first.key[:40])
    assert "Self CPU time total: " in text
    assert "Self OPENCL time total: " in text
    assert max(times) > 0
    assert any(__file__ in entry for e in prof.events() for entry in e.stack)
    assert len(prof.key_averages().table(row_limit=2, top_level_events_only=True).splitlines()) > 5
    assert prof.key_averages().total_average().count == len(prof.events())
    with pytest.raises(AttributeError):
        averages.table(sort_by="beauty")
    with pytest.warns(FutureWarning, match="cuda_time"):
        assert total.cuda_time == total.device_time


def test_names_are_given_back(x: Any) -> None:
    places = (torch.Tensor, "__mul__"), (torch.Tensor, "sum"), (torch, "relu"), (loop, "_run_node")
    before = [vars(owner)[name] for owner, name in places]
    with profile():
        assert vars(torch.Tensor)["__mul__"] is not before[0]
        assert len(OBSERVERS) == 1
        with pytest.raises(RuntimeError, match="already enabled"):
            profile().start()
    assert [vars(owner)[name] for owner, name in places] == before
    assert OBSERVERS == []
    with pytest.raises(ZeroDivisionError), profile() as prof:  # an error in the program ends it too
        1 / 0
    assert OBSERVERS == []
    assert list(prof.events()) == []
    assert prof.key_averages().table() == ""


def test_only_launches(x: Any) -> None:
    with profile(activities=[ProfilerActivity.CUDA]) as prof, record_function("outer"):
        work(x).item()
    assert {e.device_type for e in prof.events()} == {DeviceType.OPENCL}
    with profile() as prof:
        prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU, ProfilerActivity.CUDA])
        work(x).item()
        prof.toggle_collection_dynamic(True, [ProfilerActivity.CUDA])
        work(x).item()
        prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
        work(x)
    assert {e.name for e in prof.events() if e.device_type is DeviceType.CPU} == {
        "aten::mul",
        "aten::add",
        "aten::sum",
    }
    assert len(kernels(prof.events())) >= 2
    with pytest.raises(AssertionError, match="No valid profiler activities found"):
        profile(activities=[])


def test_decorator_and_old_interface(x: Any, tmp_path: Path) -> None:
    @record_function("twice")
    def twice() -> Any:
        return work(x)

    twice()  # outside of a profile it is the function
    nvtx = torch.cuda.nvtx
    with torch.autograd.profiler.profile(record_shapes=True) as prof:
        twice().item()
        assert nvtx.range_push("pushed") == 0
        with nvtx.range("number {}", 3):
            nvtx.mark("here")
        assert (nvtx.range_pop(), nvtx.range_pop()) == (0, -1)
        nvtx.range_end(nvtx.range_start("started"))
    assert named(prof.key_averages(group_by_input_shape=True), "twice").count == 1
    inner = named(prof.function_events, "here").cpu_parent
    assert (inner.name, inner.cpu_parent.name) == ("number 3", "pushed")
    assert named(prof.function_events, "started").cpu_parent is None
    assert str(prof) == prof.table()
    prof.export_chrome_trace(str(tmp_path / "old.json"))
    assert json.loads((tmp_path / "old.json").read_text())["traceEvents"]
    with old.profile(enabled=False) as off:
        work(x)
    assert str(off) == "<unfinished torch.autograd.profile>"
    with pytest.raises(RuntimeError, match="not reentrant"), prof:
        pass
    with pytest.raises(RuntimeError, match="didn't finish"):
        old.profile().key_averages()
    with pytest.raises(AssertionError, match="CUDA"), old.emit_nvtx():
        pass


def test_marks_for_other_tools_are_ranges() -> None:
    itt = torch.profiler.itt
    with torch.profiler.profile() as profile:
        assert itt.range_push("pushed") is None
        with itt.range("number {}", 3):
            itt.mark("here")
        assert itt.range_pop() is None
    assert itt.is_available()
    assert {"pushed", "number 3", "here"} <= {e.key for e in profile.key_averages()}


def test_shapes_are_plain_numbers_while_a_kind_of_calls_is_noted() -> None:
    cell = torch.nn.LSTMCell(3, 5)
    with profile(record_shapes=True) as prof:
        for n in range(2, 6):
            cell(torch.ones(n, 3))
    shapes = [shape for e in prof.events() for shape in e.input_shapes]
    assert {str(type(n)) for shape in shapes for n in shape} == {"<class 'int'>"}


def test_chrome_trace(x: Any, tmp_path: Path) -> None:
    with profile(with_modules=True) as prof:
        with record_function('a "quoted" name'):
            torch.nn.Linear(4, 2)(x).sum().backward()
        prof.add_metadata("who", "me")
        prof.add_metadata_json("n", "3")
    for name, read in (("t.json", open), ("t.json.gz", gzip.open)):
        prof.export_chrome_trace(str(tmp_path / name))
        with read(tmp_path / name, "rt") as file:
            data = json.load(file)
    assert (data["who"], data["n"], data["displayTimeUnit"]) == ("me", 3, "ms")
    spans = [e for e in data["traceEvents"] if e["ph"] == "X"]
    assert len(spans) == len(prof.events())
    assert {"cpu_op", "user_annotation", "kernel"} <= {e["cat"] for e in spans}
    assert 'a "quoted" name' in {e["name"] for e in spans}
    assert "nn.Module: Linear" in {e["name"] for e in spans}
    ids = {e["args"]["External id"] for e in spans if e["cat"] != "kernel"}
    launched = [e for e in spans if e["cat"] == "kernel" and "External id" in e["args"]]
    assert launched
    assert {e["args"]["External id"] for e in launched} <= ids
    arrows = [e["id"] for e in data["traceEvents"] if e["ph"] == "s"]
    assert sorted(arrows) == sorted(e["id"] for e in data["traceEvents"] if e["ph"] == "f")
    prof.export_stacks(str(tmp_path / "stacks"))
    with pytest.raises(ValueError, match="metric should be one of"):
        prof.export_stacks(str(tmp_path / "stacks"), "weight")


def test_schedule() -> None:
    plan = schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    none, warm, record, save = ProfilerAction
    cycle = [none, warm, record, save]
    assert [plan(i) for i in range(11)] == [none, *cycle, *cycle, none, none]
    assert schedule(wait=3, warmup=1, active=1, skip_first_wait=1)(0) is warm
    with pytest.raises(AssertionError, match="Got wait=-1"):
        schedule(wait=-1, warmup=1, active=1)
    with pytest.warns(UserWarning, match="won't be using warmup"):
        schedule(wait=0, warmup=0, active=1)
    with pytest.raises(AssertionError, match="Got -1"):
        plan(-1)


@pytest.mark.parametrize("keep", [False, True])
def test_steps(x: Any, tmp_path: Path, keep: bool) -> None:
    ready: list[list[str]] = []

    def note(prof: Any) -> None:
        ready.append([e.trace_name for e in prof.events() if e.key == "ProfilerStep*"])

    plan = schedule(wait=1, warmup=1, active=2, repeat=2)
    with profile(schedule=plan, on_trace_ready=note, acc_events=keep) as prof:
        for _ in range(10):
            work(x).item()
            prof.step()
    first, second = ["ProfilerStep#2", "ProfilerStep#3"], ["ProfilerStep#6", "ProfilerStep#7"]
    assert ready == [first, first + second if keep else second]
    assert named(prof.key_averages(), "aten::sum").count == (4 if keep else 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = schedule(wait=0, warmup=0, active=1, repeat=2)
    with profile(
        schedule=plan, on_trace_ready=tensorboard_trace_handler(str(tmp_path / "log"), "w", keep)
    ) as prof:
        for _ in range(3):
            prof.step()
    names = sorted(p.name for p in (tmp_path / "log").iterdir())
    assert len(names) == 2
    assert all(n.startswith("w.") and n.endswith(".pt.trace.json" + ".gz" * keep) for n in names)


def test_recordings_and_copies(x: Any) -> None:
    f = torch.capture(lambda a: (a + 1).sum())
    a = torch.ones(5)
    for _ in range(2):
        f(a)
    before = torch.stats().launches
    with profile() as prof:
        value = f(a)
    assert value.item() == 10
    assert len(kernels(prof.events())) == torch.stats().launches - before >= 1


def test_stretches_by_calls_that_a_traced_program_holds(x: Any) -> None:
    graph = torch.fx.Graph()
    node = graph.placeholder("x")
    begun = graph.call_function(torch.ops.profiler._record_function_enter, ("part",))
    done = graph.call_function(torch.sum, (node,))
    torch.ops.profiler._record_function_exit(torch.fx.Proxy(begun))
    graph.output(done)
    traced = torch.fx.GraphModule(torch.nn.Module(), graph)
    with profile() as prof:
        traced(x)
    assert "torch.ops.profiler._record_function_exit" in traced.code
    assert named(prof.events(), "part").cpu_time_total >= named(prof.events(), "aten::sum").cpu_time_total  # fmt: skip
