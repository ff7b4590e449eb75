"""Tensors of cltensor are made on the device named by `--device`."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _on_a_device(default_device: None) -> None:
    pass
