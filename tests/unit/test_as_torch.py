"""Programs and libraries that import torch, run on cltensor in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LIBRARY = """
import importlib.metadata
import importlib.util

import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

import cltensor

version = importlib.metadata.version("torch")
there = importlib.util.find_spec("torch") is not None


def loss(x):
    return F.mse_loss(nn.Linear(3, 1)(x), x[:, :1])
"""

PROGRAM = """
import sys
import warnings

warnings.simplefilter("error")
import torch
import library
import cltensor
import torch.fft
from torch.distributions.normal import Normal

assert torch is cltensor
assert torch.fft is sys.modules["cltensor.fft"] is sys.modules["torch.fft"]
assert library.DataLoader is cltensor.utils.data.DataLoader
assert torch.nn.__spec__.name == "cltensor.nn"
assert torch.__spec__.name == "cltensor"
assert library.there
assert library.version == torch.__version__
assert Normal is cltensor.distributions.Normal
library.loss(torch.ones(2, 3)).backward()
try:
    import torch.no_such_module
except ModuleNotFoundError as error:
    assert error.name == "torch.no_such_module"
    assert str(error) == "No module named 'torch.no_such_module'"
from cltensor import as_torch

as_torch.install()
assert sum(type(f).__module__ == "cltensor.as_torch" for f in sys.meta_path) == 1
print(__name__, sys.argv[1:])
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "library.py").write_text(LIBRARY)
    (tmp_path / "program.py").write_text(PROGRAM)
    return tmp_path


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        check=False,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_scripts_and_modules(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    done = run("-m", "cltensor.as_torch", str(folder / "program.py"), "--lr", "1", cwd=elsewhere)
    assert done.stdout == "__main__ ['--lr', '1']\n", done.stderr
    done = run("-m", "cltensor.as_torch", "-m", "program", "-x", cwd=folder)
    assert done.stdout == "__main__ ['-x']\n", done.stderr


def test_usage(folder: Path) -> None:
    for arguments in ([], ["-m"], ["--help"]):
        done = run("-m", "cltensor.as_torch", *arguments, cwd=folder)
        assert done.returncode == 2
        assert done.stderr.startswith("usage: python -m cltensor.as_torch")


def test_install_is_refused_after_torch_itself(folder: Path) -> None:
    program = "import sys, types; sys.modules['torch'] = types.ModuleType('torch'); import cltensor.as_torch as a; a.install()"
    done = run("-c", program, cwd=folder)
    assert (
        "RuntimeError: cltensor.as_torch.install: torch itself is imported already" in done.stderr
    )
