"""Programs and libraries that import torch, run on cltensor in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import cltensor as torch
from cltensor._functorch import deprecated as functorch

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
assert torch.__name__ == "torch"
assert repr(torch.Tensor) == "<class 'torch.Tensor'>"
assert repr(torch.nn.Parameter) == "<class 'torch.nn.parameter.Parameter'>"
assert torch.onnx is cltensor.onnx
for name in ("_C", "fx"):  # loaded once, although what they import is imported as torch's
    assert getattr(torch, name) is sys.modules[f"cltensor.{name}"] is sys.modules[f"torch.{name}"]
assert library.there
assert library.version == torch.__version__
import functorch

assert functorch.vmap.__wrapped__ is torch.vmap
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
    done = run("-m", "cltensor.as_torch", "-m", "torch.distributed.run", "--help", cwd=folder)
    assert "nproc" in done.stdout, done.stderr


PARENT = """
import subprocess
import sys
import torch
import torch.multiprocessing


def answer(place):
    import torch

    place.put(f"{torch.version.package} {sys.of_user}")


if __name__ == "__main__":
    ask = "import sys, torch.nn, cltensor; print(torch is cltensor, torch.nn is cltensor.nn, sys.of_user)"
    version = "import importlib.metadata as m; print(m.version('torch'))"
    plain = "import sys; print('cltensor' in sys.modules, sys.of_user)"
    for program in (ask, version, plain):
        print(subprocess.check_output([sys.executable, "-c", program], text=True), end="", flush=True)
    context = torch.multiprocessing.get_context("spawn")
    place = context.SimpleQueue()
    child = context.Process(target=answer, args=(place,))
    child.start()
    print(place.get())
    child.join()
"""


def test_processes_that_a_program_starts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They have cltensor in the place of torch, imported when they ask for it; a sitecustomize of the user's runs, too."""
    (folder / "parent.py").write_text(PARENT)
    (folder / "of_user").mkdir()
    (folder / "of_user" / "sitecustomize.py").write_text("import sys; sys.of_user = __name__")
    monkeypatch.setenv("PYTHONPATH", str(folder / "of_user"), prepend=os.pathsep)
    done = run("-m", "cltensor.as_torch", "parent.py", cwd=folder)
    mine = "sitecustomize"
    assert done.stdout.splitlines() == [
        f"True True {mine}",
        torch.__version__,
        f"False {mine}",
        f"{torch.version.package} {mine}",
    ], done.stderr


def test_a_module_that_names_torch_while_it_loads(tmp_path: Path) -> None:
    # torch._VF is asked for in the middle of torch.fx; modules loaded so far then get their second names
    (tmp_path / "it.py").write_text(
        "import sys, torch.fx\n"
        "assert torch.fx is sys.modules['torch.fx'] is sys.modules['cltensor.fx']\n"
        "assert torch.fx.Proxy is torch.fx.proxy.Proxy is sys.modules['torch.fx.proxy'].Proxy\n"
        "print(torch.fx.proxy.GraphAppendingTracer.__name__)\n"
    )
    assert run("-m", "cltensor.as_torch", "it.py", cwd=tmp_path).stdout == "GraphAppendingTracer\n"


def test_usage(folder: Path) -> None:
    for arguments in ([], ["-m"], ["--unknown"]):
        done = run("-m", "cltensor.as_torch", *arguments, cwd=folder)
        assert done.returncode == 2
        assert done.stderr.startswith("usage: python -m cltensor.as_torch")
    done = run("-m", "cltensor.as_torch", "--help", cwd=folder)
    assert done.returncode == 0
    assert done.stdout.startswith("usage: python -m cltensor.as_torch")


def test_a_script_that_is_not_there_is_named(folder: Path) -> None:
    done = run("-m", "cltensor.as_torch", "nothing.py", cwd=folder)
    assert done.returncode == 2
    assert done.stderr == "cltensor.as_torch: can't open file 'nothing.py'\n"


def test_install_is_refused_after_torch_itself(folder: Path) -> None:
    program = "import sys, types; sys.modules['torch'] = types.ModuleType('torch'); import cltensor.as_torch as a; a.install()"
    done = run("-c", program, cwd=folder)
    assert (
        "RuntimeError: cltensor.as_torch.install: torch itself is imported already" in done.stderr
    )


def test_functorch() -> None:
    """Modules as functions of their state; every function warns that `torch.func` has taken its place."""
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    x = torch.rand(4, 3)
    with pytest.warns(
        FutureWarning, match=r"`functorch.make_functional` .* `torch.func.functional_"
    ):
        linear, params = functorch.make_functional(net[0], disable_autograd_tracking=True)
    assert torch.equal(linear(params, x), net[0](x))
    assert not params[0].requires_grad
    assert not [*linear.parameters()]
    with pytest.warns(FutureWarning), pytest.raises(RuntimeError, match="`model` has buffers"):
        functorch.make_functional(net)
    with pytest.warns(FutureWarning):
        called, params, buffers = functorch.make_functional_with_buffers(net)
    loss = called(params, buffers, x)[0, 0]
    loss.backward()
    assert params[0].grad is not None
    assert net[0].weight.grad is None
    assert net[1].num_batches_tracked.item() == 0


def test_modules_as_an_ensemble() -> None:
    nets = [torch.nn.Linear(3, 1) for _ in range(4)]
    x = torch.rand(2, 3)
    with pytest.warns(FutureWarning, match="stack_module_state"):
        called, params, buffers = functorch.combine_state_for_ensemble(nets)
    with pytest.warns(FutureWarning, match="`torch.vmap`"):
        found = functorch.vmap(called, (0, 0, None))(params, buffers, x)
    assert torch.allclose(found, torch.stack([net(x) for net in nets]))
    mixed = [torch.nn.Linear(1, 1), torch.nn.Linear(1, 1).eval()]
    for bad, why in (
        ([], "one model, got 0"),
        (mixed, "training/eval"),
        ([nets[0], torch.nn.ReLU()], "class"),
    ):
        with pytest.warns(FutureWarning), pytest.raises(RuntimeError, match=why):
            functorch.combine_state_for_ensemble(bad)
