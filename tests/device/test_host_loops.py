"""Python functions applied to elements, `as_subclass`, chosen strides, files, reductions given as numbers, settings."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support import close, data

import cltensor as ct

F = ct.nn.functional


def test_apply_and_map() -> None:
    x = ct.arange(6, device="cpu").view(2, 3).t()
    assert x.apply_(lambda v: v / 2 + 1) is x
    assert x.tolist() == [[1, 2], [1, 3], [2, 3]]
    y = ct.ones(3, device="cpu").map_(ct.tensor([2.0], device="cpu"), lambda a, b: a + 2 * b)
    assert y.tolist() == [5, 5, 5]
    with pytest.raises(RuntimeError, match="Can't call apply_"):
        ct.ones(2, requires_grad=True, device="cpu").apply_(abs)
    with pytest.raises(TypeError, match=r"expected torch\.FloatTensor for 'other'"):
        y.map_(y.double(), max)


def test_as_subclass_keeps_history() -> None:
    class Named(ct.Tensor):
        pass

    x = ct.ones(2, requires_grad=True)
    y = x.as_subclass(Named)
    assert type(y) is Named and y.grad_fn.name() == "AliasBackward0"
    (y * 3).sum().backward()
    assert x.grad.tolist() == [3, 3]
    with pytest.raises(TypeError, match="does not inherit from Tensor"):
        x.as_subclass(int)


def test_empty_permuted() -> None:
    x = ct.empty_permuted((2, 3, 4), (0, 2, 1))
    assert x.shape == (2, 3, 4) and x.stride() == (12, 1, 3)
    with pytest.raises(RuntimeError, match="Duplicate dim not allowed"):
        ct.empty_permuted((2, 3), (0, 0))


def test_from_file(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    np.arange(8, dtype="float32").tofile(path)
    own = ct.from_file(str(path), size=8)
    own += 1
    assert own.tolist() == list(range(1, 9))
    assert np.fromfile(path, "float32")[0] == 0
    shared = ct.from_file(str(path), shared=True, size=10)
    shared[0] = 7
    shared.sum().item()
    assert np.fromfile(path, "float32").tolist() == [7, 1, 2, 3, 4, 5, 6, 7, 0, 0]
    with pytest.raises(RuntimeError, match="unable to open file"):
        ct.from_file(str(tmp_path / "none"), size=2)


def test_losses_with_numbered_reductions() -> None:
    x, y = (ct.tensor(data(3, 4, seed=s).tolist()) for s in (0, 1))
    for number, word in enumerate(("none", "mean", "sum")):
        close(ct.kl_div(x, y.exp(), number), F.kl_div(x, y.exp(), reduction=word).tolist())
        close(
            ct.binary_cross_entropy_with_logits(x, y.sigmoid(), reduction=number),
            F.binary_cross_entropy_with_logits(x, y.sigmoid(), reduction=word).tolist(),
        )
    each = F.triplet_margin_loss(x, y, -y, reduction="none")
    close(ct.triplet_margin_loss(x, y, -y), each.tolist())
    with pytest.raises(ValueError, match="is not a valid value for reduction"):
        ct.kl_div(x, y, 7)


def test_switches_keep_what_they_are_told() -> None:
    assert ct.get_float32_matmul_precision() == "highest"
    ct.set_float32_matmul_precision("high")
    assert ct.get_float32_matmul_precision() == "high"
    with pytest.warns(UserWarning, match="is not one of"):
        ct.set_float32_matmul_precision("low")
    ct.set_float32_matmul_precision("highest")
    ct.set_deterministic_debug_mode("warn")
    assert ct.get_deterministic_debug_mode() == 1
    assert ct.is_deterministic_algorithms_warn_only_enabled()
    ct.set_deterministic_debug_mode(0)
    with pytest.raises(RuntimeError, match="expected 0, 1, or 2"):
        ct.set_deterministic_debug_mode(3)


def test_storages_lie_in_files(tmp_path: Path) -> None:
    path = tmp_path / "bytes"
    path.write_bytes(bytes(range(32)))
    own = ct.UntypedStorage.from_file(str(path), False, 32)
    assert (own.nbytes(), own[3], own[4:6].tolist()) == (32, 3, [4, 5])
    assert ct.asarray(own[4:8], dtype=ct.uint8).view(ct.int16).tolist() == [1284, 1798]
    own.fill_(0)
    assert path.read_bytes() == bytes(range(32))
    shared = ct.UntypedStorage.from_file(str(path), True, 40)
    shared[0] = 7
    assert (path.read_bytes()[0], path.stat().st_size) == (7, 40)
    assert len(ct.FloatStorage.from_file(str(path), False, 4)) == 4
    assert ct.UntypedStorage.from_file(str(path)).nbytes() == 0
    with pytest.raises(RuntimeError, match="smaller than the required"):
        ct.UntypedStorage.from_file(str(path), False, 64)


def test_the_safetensors_package_opens_files_for_torch(tmp_path: Path) -> None:
    """safetensors saves and loads tensors where programs have put cltensor into sys.modules in the place of torch."""
    pytest.importorskip("safetensors")
    program = (
        "import sys, cltensor; sys.modules['torch'] = cltensor\n"
        "from safetensors import safe_open\nfrom safetensors.torch import load_file, save_file\n"
        "import torch\n"
        f"p = {str(tmp_path / 'w.safetensors')!r}\n"
        "save_file({'a': torch.arange(6.0).view(2, 3), 'b': torch.ones(3, dtype=torch.bfloat16)}, p)\n"
        "t = load_file(p); print(t['a'].tolist(), t['b'].dtype, t['b'].tolist())\n"
        "with safe_open(p, framework='pt') as f: print(f.get_tensor('a')[1].tolist(), f.get_slice('a')[:, 1:2].tolist())\n"
    )
    made = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert made.stdout.split("\n")[:2] == [
        "[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]] torch.bfloat16 [1.0, 1.0, 1.0]",
        "[3.0, 4.0, 5.0] [[1.0], [4.0]]",
    ], made.stderr
