"""The `--device` and `--units` options and the `dev` fixture; what precedes the import is in the root conftest."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--device", default="cpu", help="device for tests/device, e.g. cpu, opencl:0, opencl:1"
    )
    parser.addoption(
        "--units",
        type=int,
        help="divide work as for so many compute units, e.g. 24; there are no more threads for it",
    )


def pytest_configure(config: pytest.Config) -> None:
    if units := config.getoption("--units"):
        from cltensor.runtime import backend

        describe = backend.describe
        backend.describe = lambda *args, **kwargs: dataclasses.replace(
            describe(*args, **kwargs), compute_units=units
        )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("CLTENSOR_TEST_MODULE", "cltensor") != "cltensor":
        for item in items:
            if item.get_closest_marker("ours"):
                item.add_marker(pytest.mark.skip(reason="of this library's own, not of torch's"))


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
