"""Tensors of cltensor are made on the device named by `--device`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def _default_device(dev: Any) -> Iterator[None]:
    import cltensor

    cltensor.set_default_device(dev)
    yield
    cltensor.set_default_device(None)
