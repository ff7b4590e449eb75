"""What torch programs import and ask before their first tensor is there, answers, and touches no OpenCL."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import cltensor as torch

ABSENT = [
    "backends.cudnn.is_available", "backends.mps.is_available", "backends.mkl.is_available", "backends.cuda.is_built",
    "distributed.is_available", "distributed.is_initialized", "jit.is_scripting", "xpu.is_available", "mps.is_available",
    "compiler.is_compiling", "onnx.is_in_onnx_export",
]  # fmt: skip


@pytest.mark.parametrize("name", ABSENT)
def test_what_is_absent_says_so(name: str) -> None:
    module, _, asked = name.rpartition(".")
    assert getattr(importlib.import_module(f"cltensor.{module}"), asked)() is False


def test_switches_are_kept() -> None:
    cudnn = torch.backends.cudnn
    cudnn.benchmark = True
    with cudnn.flags(enabled=True, deterministic=True):
        assert cudnn.deterministic
        assert not cudnn.benchmark
    assert cudnn.benchmark
    assert not cudnn.deterministic
    cudnn.benchmark = False
    torch.backends.cuda.enable_flash_sdp(False)
    assert not torch.backends.cuda.flash_sdp_enabled()
    torch.backends.cuda.enable_flash_sdp(True)
    assert torch.backends.cuda.matmul.allow_tf32 is False
    assert torch.version.cuda is None
    assert torch.version.__version__ == torch.__version__


def test_jit_gives_functions_back() -> None:
    @torch.jit.script
    def scripted(x: int) -> int:
        return x + 1

    @torch.jit.ignore
    def ignored(x: int) -> int:
        return x

    @torch.jit.ignore(drop=True)
    def dropped(x: int) -> int:
        return x

    calls = []
    assert torch.jit.trace(lambda x: calls.append(x) or x, (3,))(4) == 4
    assert calls == [3, 4]
    assert (scripted(1), ignored(2), dropped(3)) == (2, 2, 3)
    with pytest.raises(NotImplementedError, match="state_dict"):
        torch.jit.save(scripted, "x.pt")


def test_what_cannot_be_done_raises_by_name() -> None:
    with pytest.raises(RuntimeError, match="init_process_group"):
        torch.distributed.init_process_group("gloo")
    with pytest.raises(RuntimeError, match="DistributedDataParallel"):
        torch.nn.parallel.DistributedDataParallel(torch.nn.Identity())
    with pytest.raises(NotImplementedError, match=r"onnx\.export"):
        torch.onnx.export(None, None, "x.onnx")
    with pytest.raises(NotImplementedError, match=r"hub\.load"):
        torch.hub.load("pytorch/vision", "resnet18")


def test_hub_loads_once_and_checks_the_hash(tmp_path: Path) -> None:
    source = tmp_path / "weights-0000.pt"
    torch.save({"w": [1, 2]}, source)
    url = source.as_uri()
    folder = tmp_path / "kept"
    assert torch.hub.load_state_dict_from_url(url, str(folder), progress=False) == {"w": [1, 2]}
    source.write_bytes(b"changed")
    assert torch.utils.model_zoo.load_url(url, str(folder)) == {"w": [1, 2]}
    with pytest.raises(RuntimeError, match=r"invalid hash value"):
        torch.hub.load_state_dict_from_url(url, str(tmp_path / "other"), False, False, True)
    assert not any((tmp_path / "other").iterdir())
    torch.hub.set_dir(tmp_path)
    assert torch.hub.get_dir() == str(tmp_path)


def test_trees() -> None:
    from cltensor.utils._pytree import tree_flatten, tree_map, tree_unflatten

    tree = {"a": [1, (2, 3)], "b": 4}
    leaves, spec = tree_flatten(tree)
    assert leaves == [1, 2, 3, 4]
    assert tree_unflatten(leaves, spec) == tree
    assert tree_map(lambda a, b: a + b, tree, tree) == {"a": [2, (4, 6)], "b": 8}
    with pytest.raises(ValueError, match="length 1 but"):
        tree_unflatten([1], spec)


def test_sizes_and_prefixes() -> None:
    from cltensor.nn.modules.utils import _pair, consume_prefix_in_state_dict_if_present

    assert _pair(3) == (3, 3)
    assert _pair([1, 2]) == (1, 2)
    state = {"module.w": 1, "b": 2}
    consume_prefix_in_state_dict_if_present(state, "module.")
    assert state == {"w": 1, "b": 2}


def _square(index: int, folder: str) -> None:
    Path(folder, str(index)).write_text(str(index * index))


def _fail(index: int) -> None:
    if index == 1:
        raise ValueError("no")


def test_start_methods() -> None:
    mp = torch.multiprocessing
    mp.set_start_method("forkserver", force=True)
    assert mp.get_start_method() == "forkserver"
    mp.set_start_method("spawn")
    assert mp.get_start_method() == "spawn" in mp.get_all_start_methods()
    with pytest.raises(ValueError, match="does not survive a fork"):
        mp.set_start_method("fork")


def test_spawned_processes(tmp_path: Path) -> None:
    torch.multiprocessing.spawn(_square, (str(tmp_path),), nprocs=2)
    assert sorted(p.read_text() for p in tmp_path.iterdir()) == ["0", "1"]
    with pytest.raises(torch.multiprocessing.ProcessRaisedException, match="ValueError: no"):
        torch.multiprocessing.spawn(_fail, nprocs=2)


def test_importing_them_starts_nothing() -> None:
    program = (
        "import sys, cltensor as torch\n"
        "import cltensor.backends.cudnn as cudnn, cltensor.distributed, cltensor.multiprocessing, cltensor.jit, cltensor.onnx\n"
        "from cltensor.nn.parallel import DistributedDataParallel\n"
        "from cltensor.nn.attention import SDPBackend, sdpa_kernel\n"
        "from cltensor.utils.benchmark import Timer\n"
        "assert 'pyopencl' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
