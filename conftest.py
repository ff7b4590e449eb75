"""What a pytest run needs before cltensor is imported: its own kernel cache, names for doctests.

The cache of a run lies in a temporary folder, in memory where there is plenty, and goes with it, so that no test passes on
yesterday's binaries.
`CLTENSOR_TEST_CACHE=<folder>` keeps it instead, which makes the next run of the same tests quick.
"""

from __future__ import annotations

import gc
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
# The oracle's products are small, and its threads wait awake for more: a quarter of the time of tests of products.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

_ROOM = 4 << 30  # bytes, several times what a whole run writes


def _memory() -> str | None:
    """Return a folder in memory: PoCL waits three times for the disk with each kernel, a tenth of a build and more."""
    folder = "/dev/shm"
    try:
        found = os.statvfs(folder)
    except (AttributeError, OSError):
        return None
    roomy = found.f_bavail * found.f_frsize >= _ROOM and not found.f_flag & os.ST_NOEXEC
    return folder if roomy and os.access(folder, os.W_OK) else None


_own_cache: str | None = None
if kept := os.environ.get("CLTENSOR_TEST_CACHE"):
    os.environ["CLTENSOR_CACHE_DIR"] = os.path.abspath(kept)
elif "PYTEST_XDIST_WORKER" not in os.environ:  # a worker shares its controller's folder
    _own_cache = tempfile.mkdtemp(prefix="cltensor-tests-", dir=_memory())
    os.environ["CLTENSOR_CACHE_DIR"] = _own_cache


def pytest_configure(config: pytest.Config) -> None:
    """Say that `cltensor.ops` has none of what pytest asks of modules with docstrings: like `torch.ops`, it has a namespace of any name."""
    if config.getoption("doctestmodules"):
        from cltensor import ops

        ops.pytest_plugins, ops.pytestmark = [], []
        for name in ("setUpModule", "setup_module", "tearDownModule", "teardown_module"):
            setattr(ops, name, None)


def pytest_collection_finish() -> None:
    """Keep what processes that tests start compile; modules and tests stay, so that the collector need not look at them again."""
    # Each would compile the whole package, 0.6 s, where nothing is kept.
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
        os.environ["PYTHONPYCACHEPREFIX"] = os.path.join(
            os.environ["CLTENSOR_CACHE_DIR"], "bytecode"
        )
    gc.collect()
    gc.freeze()


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
