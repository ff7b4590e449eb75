"""Run every op by itself (no fusion), so that thousands of lines compared with torch share their kernels.

tests/device/test_fusion.py shows that fusion changes no bit.
"""

from __future__ import annotations

import pytest
from kernel_fixtures import _kernels_build_quickly  # noqa: F401 - a fixture of every test here


@pytest.fixture(autouse=True)
def _every_op_by_itself(one_by_one: None) -> None:
    pass
