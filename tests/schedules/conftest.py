"""Tests of every template family in every schedule: a second build of each, and so none of the README's tests."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _as_kernels_are_tested(of_kernels: None) -> None:
    pass
