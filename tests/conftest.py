"""The `--device`, `--units`, `--vectors`, `--as-gpu`, `--later`, `--whole`, `--asked` and `--schedules` options, the `dev` fixture, and checks that several folders make of each test.

What must happen before cltensor is imported is in the root conftest.
"""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

_GPU = {
    "kind": "gpu", "lanes": 1, "native_lanes": 1, "compute_units": 132, "max_group": 1024, "local_mem": 48 << 10,
    "fp16": False, "subgroups": False,
}  # fmt: skip


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--device", default="cpu", help="device for tests/device, e.g. cpu, opencl:0, opencl:1"
    )
    parser.addoption(
        "--units",
        type=int,
        help="divide work as for so many compute units, e.g. 24; there are no more threads for it",
    )
    parser.addoption(
        "--vectors",
        choices=("own", "other"),
        default="own",
        help="divide rows, sums and Fourier transforms among lanes as for this processor, or as for one of AVX2 if this has AVX-512, and the other way round",
    )
    parser.addoption(
        "--as-gpu",
        action="store_true",
        help="let opencl:0 call itself a GPU of NVIDIA's size with memory of its own, whatever it is",
    )
    parser.addoption(
        "--later",
        action="store_true",
        help="leave every launch to the team that may be left to it, however short",
    )
    parser.addoption(
        "--whole",
        action="store_true",
        help="let PoCL compile kernels that need every register as it does for users, in three times the time",
    )
    parser.addoption(
        "--asked",
        action="store_true",
        help="let functions ask their arguments from the start, as they do once there was a sparse, nested or masked tensor or one of a subclass",
    )
    parser.addoption(
        "--schedules",
        choices=("own", "elsewhere", "all"),
        default="own",
        help="run tests of what the CPU is given, of what it is not (other devices' kernels run there, too) and all of tests/kernels, or all; elsewhere than on cpu all are run",
    )


def pytest_configure(config: pytest.Config) -> None:
    if units := config.getoption("--units"):
        from cltensor.runtime import platforms

        describe = platforms.describe
        platforms.describe = lambda *args, **kwargs: dataclasses.replace(
            describe(*args, **kwargs), compute_units=units
        )
    if config.getoption("--vectors") == "other":
        from cltensor.runtime import platforms

        described = platforms.describe

        def other(*args: Any, **kwargs: Any) -> Any:
            info = described(*args, **kwargs)
            return dataclasses.replace(info, native_lanes=8 if info.native_lanes >= 16 else 16)

        platforms.describe = other
    if config.getoption("--later"):
        from cltensor.runtime import team

        team.LATER = team.SOON = -1
    if config.getoption("--as-gpu"):
        from cltensor.runtime.backend import Backend

        begin = Backend.__init__

        def as_gpu(self: Any, dev: Any, cl_device: Any, shared: bool) -> None:
            begin(self, dev, cl_device, shared)
            if (dev.type, dev.index) == ("opencl", 0):
                self.info = dataclasses.replace(self.info, **_GPU)

        Backend.__init__ = as_gpu  # type: ignore[method-assign]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = config.getoption("--schedules")
    if config.getoption("--device") == "cpu" and wanted != "all":
        parts: dict[str, list[pytest.Item]] = {"own": [], "elsewhere": []}
        for item in items:
            kernels = item.path.parent.name == "kernels" and wanted == "elsewhere"
            parts["elsewhere" if kernels or _is_elsewhere(item) else "own"].append(item)
        items[:] = parts.pop(wanted)
        for left_out in parts.values():
            config.hook.pytest_deselected(items=left_out)
    if os.environ.get("CLTENSOR_TEST_MODULE", "cltensor") != "cltensor":
        for item in items:
            if item.get_closest_marker("ours"):
                item.add_marker(pytest.mark.skip(reason="of this library's own, not of torch's"))


def _is_elsewhere(item: pytest.Item) -> bool:
    """Return whether a test runs GPU kernels only: it has a parameter "gpu..." or the marker `elsewhere`."""
    given = item.callspec.params.values() if hasattr(item, "callspec") else ()
    named = any(isinstance(x, str) and x.split("-")[0] == "gpu" for x in given)
    return named or item.get_closest_marker("elsewhere") is not None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Skip a test that fails because the device has no float64."""
    try:
        return (yield)
    except RuntimeError as error:
        if "has no float64" in str(error):
            pytest.skip(str(error))
        raise


@pytest.fixture(scope="session", autouse=True)
def asked(request: pytest.FixtureRequest) -> None:
    """With `--asked`, make one tensor of each kind whose presence changes how functions are called."""
    if not request.config.getoption("--asked"):
        return
    import cltensor as torch

    class Of(torch.Tensor):
        pass

    dense = torch.ones(2)
    dense.as_subclass(Of)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are prototypes
        dense.to_sparse()
        torch.nested.nested_tensor([dense])
        torch.masked.masked_tensor(dense, dense > 0)


@pytest.fixture(scope="session")
def dev(request: pytest.FixtureRequest) -> Any:
    """Return the `cltensor.device` under test."""
    import cltensor

    return cltensor.device(request.config.getoption("--device"))


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run every op at once: compositions of the same few operators then share kernels instead of building their own."""
    from cltensor import config

    monkeypatch.setattr(config, "CONFIG", dataclasses.replace(config.CONFIG, eager=True))


@pytest.fixture
def default_device(dev: Any) -> Iterator[None]:
    """Create tensors on the device named by `--device`."""
    import cltensor

    cltensor.set_default_device(dev)
    yield
    cltensor.set_default_device(None)


@pytest.fixture
def short_header_has_every_builtin() -> Iterator[None]:
    """Assert that PoCL's shortened header has each builtin that the test's kernels call."""
    from cltensor.runtime import pocl

    before = len(pocl.lacking)
    yield
    assert not pocl.lacking[before:], (
        "cltensor/runtime/builtin_header.py leaves out builtins that a kernel calls"
    )


@pytest.fixture
def a_team_runs_every_kernel() -> Iterator[None]:
    """Assert that the thread team runs every CPU kernel of a test, and none goes to PoCL's queue."""
    from cltensor.runtime import program

    before = len(program.queued)
    yield
    assert not program.queued[before:], "a kernel went to PoCL's queue"


@pytest.fixture
def nothing_remembered(request: pytest.FixtureRequest) -> Iterator[None]:
    """Forget recorded launches before each test; record none in tests that monkeypatch, as these may change what
    decides launches."""
    from cltensor.lazy import product_tree
    from cltensor.ops import replay

    replay.forget()
    with pytest.MonkeyPatch.context() as patch:
        if "monkeypatch" in request.fixturenames:
            patch.setattr(replay, "MOST", 0)
            patch.setattr(product_tree, "MOST", 0)
        yield


@pytest.fixture
def of_kernels(
    default_device: None,
    short_header_has_every_builtin: None,
    a_team_runs_every_kernel: None,
    nothing_remembered: None,
) -> None:
    """Combine the fixtures that every test of kernels uses."""
