"""The profiler's signatures, schedules, steps and columns are torch's."""

from __future__ import annotations

import inspect
import itertools
import warnings
from typing import Any

import pytest
from parity.oracle import th
from support import ct

PROFILERS = th.profiler, ct.profiler
SIGNATURES = [
    "profile.__init__",
    "schedule",
    "tensorboard_trace_handler",
    "record_function.__init__",
    "profile.key_averages",
    "profile.export_chrome_trace",
    "profile.export_stacks",
    "profile.add_metadata",
    "profile.step",
]


def parameters(function: Any) -> list[tuple[str, Any, Any]]:
    return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures(name: str) -> None:
    theirs, ours = (parameters(eval(f"p.{name}", {"p": p})) for p in PROFILERS)
    assert ours == theirs


@pytest.mark.ours
def test_signatures_of_tables() -> None:
    theirs = th.autograd.profiler_util.EventList
    for method in ("table", "key_averages", "export_stacks", "export_chrome_trace"):
        assert parameters(getattr(ct.profiler.EventList, method)) == parameters(
            getattr(theirs, method)
        )


@pytest.mark.parametrize(
    "numbers", list(itertools.product((0, 2), (0, 1), (1, 3), (0, 2), (0, 1), (0, 1)))
)
def test_schedules(numbers: tuple[int, ...]) -> None:
    names = ("wait", "warmup", "active", "repeat", "skip_first", "skip_first_wait")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, ours = (p.schedule(**dict(zip(names, numbers, strict=True))) for p in PROFILERS)
    assert [ours(n).name for n in range(20)] == [theirs(n).name for n in range(20)]


def test_without_a_schedule_every_step_is_recorded() -> None:
    theirs, ours = (p.profiler._default_schedule_fn for p in PROFILERS)
    assert [ours(n).name for n in range(3)] == [theirs(n).name for n in range(3)]


@pytest.mark.filterwarnings("ignore:Warning. Profiler clears events")
def test_cycles() -> None:
    """`on_trace_ready` is called after the same steps as in torch, with the same steps recorded."""

    def cycles(module: Any, plan: Any, steps: int, **how: Any) -> list[Any]:
        seen: list[Any] = []

        def ready(prof: Any) -> None:
            names = {e.trace_name for e in prof.events() if e.name == "ProfilerStep*"}
            seen.append((prof.step_num, sorted(names)))

        cpu = [module.profiler.ProfilerActivity.CPU]
        with module.profiler.profile(
            activities=cpu, schedule=plan, on_trace_ready=ready, **how
        ) as prof:
            for _ in range(steps):
                prof.step()
        return seen

    plan = {"wait": 1, "warmup": 1, "active": 2, "repeat": 2}
    for steps in (3, 4, 9):
        theirs, ours = (cycles(m, m.profiler.schedule(**plan), steps) for m in (th, ct))
        assert ours == theirs


def test_columns() -> None:
    tables = []
    for module in (th, ct):
        x = module.ones(3)
        cpu = [module.profiler.ProfilerActivity.CPU]
        with module.profiler.profile(
            activities=cpu, record_shapes=True, profile_memory=True
        ) as prof:
            x.add(x)
        tables.append(
            prof.key_averages(group_by_input_shape=True).table(header="what", row_limit=3)
        )
    theirs, ours = ([line.split("  ") for line in t.splitlines()] for t in tables)
    want, have = ([c.strip() for c in t[3] if c.strip()] for t in (theirs, ours))
    assert [c for c in have if c in want] == want
    assert "aten::add" in tables[0] and "aten::add" in tables[1]
    assert tables[1].startswith("====")
    assert ours[1] == theirs[1] == ["what"]
