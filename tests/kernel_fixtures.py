"""Fixtures of every test in tests/device and tests/kernels, whose conftest.py files import all of this module."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from backends import OF_A_CPU, SCHEDULES, backend_for
from support import built_quickly, choose_anew, poison

__all__ = [
    "_as_kernels_are_tested",
    "_kernels_build_quickly",
    "_no_schedule_of_a_cpu_on_others",
    "backend",
    "be",
    "divided",
    "on_a_cpu",
    "poisoned",
]


@pytest.fixture(autouse=True)
def _as_kernels_are_tested(of_kernels: None) -> None:
    pass


@pytest.fixture(autouse=True, scope="module")
def _kernels_build_quickly(request: pytest.FixtureRequest) -> Iterator[None]:
    """Have PoCL build large kernels in less time than those that users get; `--whole` leaves bodies as they are."""
    from cltensor.runtime.program import ProgramCache

    built = built_quickly(ProgramCache._load_or_build, whole=request.config.getoption("--whole"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ProgramCache, "_load_or_build", built)
        yield


@pytest.fixture(scope="module")
def backend(dev: Any) -> Any:
    """Return the backend of the device under test."""
    from cltensor.runtime import get_backend

    return get_backend(dev)


@pytest.fixture(params=SCHEDULES)
def be(request: pytest.FixtureRequest) -> Any:
    """Return a backend for each schedule in turn."""
    return backend_for(request.param)


@pytest.fixture(autouse=True)
def _no_schedule_of_a_cpu_on_others(request: pytest.FixtureRequest) -> None:
    """Skip a test's CPU schedules if the device under test is no CPU, unless the test chooses its backend by
    `backend_for`."""
    node = request.node
    named = node.callspec.params.get("schedule") if hasattr(node, "callspec") else None
    if named in OF_A_CPU and "backend_for" not in request.function.__code__.co_names:
        request.getfixturevalue("on_a_cpu")


@pytest.fixture
def on_a_cpu(backend: Any) -> None:
    """Skip the test if the device under test is no CPU: other devices have one schedule."""
    if backend.info.kind != "cpu":
        pytest.skip("this device keeps one schedule")


@pytest.fixture
def divided(monkeypatch: pytest.MonkeyPatch) -> None:
    """Divide small work, too, among a CPU's threads, and forget plans made before."""
    from cltensor.codegen.products import gemm_cpu
    from cltensor.runtime import DeviceInfo

    choose_anew(monkeypatch)
    monkeypatch.setattr(gemm_cpu, "_plans", {})
    monkeypatch.setattr(DeviceInfo, "wake_us", 0)


@pytest.fixture
def poisoned(dev: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fill all memory that the device's backend allocates with NaN."""
    from cltensor.runtime import get_backend

    poison(get_backend(dev), monkeypatch)
