"""Parity is of values, types, words: every op runs by itself, so that thousands of lines share their kernels.

That fusing changes no bit is tests/device/test_fusion.py's to show.
"""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _every_op_by_itself(one_by_one: None) -> None:
    pass
