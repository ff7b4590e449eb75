"""The `--device` option and the `dev` fixture; what precedes the import is in the root conftest."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--device", default="cpu", help="device for tests/device, e.g. cpu, opencl:0, opencl:1"
    )


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
