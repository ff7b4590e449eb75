"""Every test in this folder creates its tensors on the device named by `--device`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from backends import SCHEDULES, backend_for
from support import choose_anew, poison


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """A test that computes with float64 is none for a device that has no such numbers."""
    try:
        return (yield)
    except RuntimeError as error:
        if "has no float64" in str(error):
            pytest.skip(str(error))
        raise


@pytest.fixture(autouse=True)
def _default_device(dev: Any) -> Iterator[None]:
    import cltensor

    cltensor.set_default_device(dev)
    yield
    cltensor.set_default_device(None)


@pytest.fixture(autouse=True)
def _no_host_computation(request: pytest.FixtureRequest) -> Iterator[None]:
    """Nothing but the LAPACK family computes on the host; its tests carry the mark `lapack`."""
    from cltensor.runtime import STATS

    before = STATS.host_ops
    yield
    if request.node.get_closest_marker("lapack") is None:
        assert STATS.host_ops == before, "computed on the host"


@pytest.fixture(autouse=True)
def _short_header_has_every_builtin() -> Iterator[None]:
    from cltensor.runtime import pocl

    before = len(pocl.lacking)
    yield
    assert not pocl.lacking[before:], (
        "cltensor/runtime/pocl.py leaves out builtins that a kernel calls"
    )


@pytest.fixture(autouse=True)
def _a_team_runs_every_kernel() -> Iterator[None]:
    from cltensor.runtime import program

    before = len(program.queued)
    yield
    assert not program.queued[before:], "a kernel went to PoCL's queue"


@pytest.fixture(autouse=True)
def _nothing_remembered(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each test works out its launches anew, and one that changes what decides them works out each."""
    from cltensor.ops import replay

    replay.forget()
    with pytest.MonkeyPatch.context() as patch:
        if "monkeypatch" in request.fixturenames:
            patch.setattr(replay, "MOST", 0)
        yield


@pytest.fixture(autouse=True, scope="session")
def _barriers_build_quickly() -> Iterator[None]:
    """Kernels with barriers, which only GPU schedules have, are built for PoCL without optimisation.

    It makes loops of the lanes between two barriers, and optimising those takes seconds instead of 0.1 s.
    """
    from cltensor.runtime.program import ProgramCache

    load = ProgramCache._load_or_build

    def quickly(self: Any, name: str, source: str, options: tuple[str, ...]) -> Any:
        slow = self._pocl and "barrier(" in source
        return load(self, name, source, (*options, "-cl-opt-disable") if slow else options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ProgramCache, "_load_or_build", quickly)
        yield


@pytest.fixture(scope="module")
def backend(dev: Any) -> Any:
    """Return the backend of the device under test."""
    from cltensor.runtime import get_backend

    return get_backend(dev)


@pytest.fixture(params=SCHEDULES)
def be(request: pytest.FixtureRequest) -> Any:
    """Return a backend that takes one schedule after the other."""
    return backend_for(request.param)


@pytest.fixture
def on_a_cpu(backend: Any) -> None:
    """Skip where the device is none with the CPU's choice of schedules."""
    if backend.info.kind != "cpu":
        pytest.skip("this device keeps one schedule")


@pytest.fixture
def divided(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small work, too, is divided among the threads of a CPU, also where it has been planned before."""
    from cltensor.codegen.products import gemm_cpu
    from cltensor.runtime import DeviceInfo

    choose_anew(monkeypatch)
    monkeypatch.setattr(gemm_cpu, "_plans", {})
    monkeypatch.setattr(DeviceInfo, "wake_us", 0)


@pytest.fixture
def poisoned(dev: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fill all memory that is given out with NaN."""
    from cltensor.runtime import get_backend

    poison(get_backend(dev), monkeypatch)
