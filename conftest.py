"""What a pytest run needs before cltensor is imported: its own kernel cache, names for doctests.

The cache of a run lies in a temporary folder and goes with it, so that no test passes on
yesterday's binaries.
`CLTENSOR_TEST_CACHE=<folder>` keeps it instead, which makes the next run of the same tests quick.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from importlib.util import find_spec
from typing import Any

import pytest

# Modules whose import says what to install; their docstrings are read where it is.
collect_ignore = [
    f"cltensor/utils/{name}.py" for name in ("safetensors", "tensorboard") if not find_spec(name)
]

os.environ.pop("OMP_NUM_THREADS", None)  # tests of a team want its helpers

_own_cache: str | None = None
if kept := os.environ.get("CLTENSOR_TEST_CACHE"):
    os.environ["CLTENSOR_CACHE_DIR"] = os.path.abspath(kept)
elif "PYTEST_XDIST_WORKER" not in os.environ:  # a worker shares its controller's folder
    _own_cache = tempfile.mkdtemp(prefix="cltensor-tests-")
    os.environ["CLTENSOR_CACHE_DIR"] = _own_cache


def pytest_unconfigure() -> None:
    if _own_cache is not None:
        shutil.rmtree(_own_cache, ignore_errors=True)


@pytest.fixture(autouse=True)
def _doctest_names(request: pytest.FixtureRequest) -> None:
    """Give docstring examples `torch` and `cltensor` (the package) and `np`."""
    if isinstance(request.node, pytest.DoctestItem):
        import numpy as np

        import cltensor

        names: dict[str, Any] = request.getfixturevalue("doctest_namespace")
        names.update(torch=cltensor, cltensor=cltensor, np=np)
