"""Damaged and hostile checkpoints, by the thousand: each loads or raises a clean error, and no code from a file is ever
run."""

from __future__ import annotations

import importlib
import io
import os
import pickle
import random
import signal
import subprocess
import sys
import textwrap
import zipfile
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import outcome

import cltensor as torch
from cltensor.serialization import load, save
from cltensor.utils import npz, safetensors

ROOT = Path(__file__).resolve().parents[2]
CLEAN = (RuntimeError, pickle.UnpicklingError, EOFError, ValueError)


def checkpoint() -> bytes:
    base = torch.arange(12.0).reshape(3, 4)
    state = OrderedDict(a=base, b=base[1:, ::2].t(), n=torch.tensor(3), e=torch.zeros(0, 2))
    file = io.BytesIO()
    save(
        {"state": state, "list": [1, 2.5, "x", None, (True, 2**70)], "size": torch.Size([1])}, file
    )
    return file.getvalue()


@pytest.fixture
def nothing_runs(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Fail if anything is run: patches every usual way to run code or programs."""
    told: list[str] = []

    def tell(name: str) -> Any:
        return lambda *args, **kwargs: told.append(name)

    for place, names in ((os, ("system", "popen", "execv", "remove")), (subprocess, ("Popen", "run"))):  # fmt: skip
        for name in names:
            monkeypatch.setattr(place, name, tell(name))
    yield told
    monkeypatch.undo()
    assert not told


def attempt(content: bytes, **kwargs: Any) -> bool:
    """Load a checkpoint; return whether that succeeded. Any error but a clean one fails the test."""
    try:
        load(io.BytesIO(content), **kwargs)
    except CLEAN:
        return False
    return True


def test_bits_flipped(nothing_runs: list[str]) -> None:
    content, rng = checkpoint(), random.Random(0)
    failed = 0
    for _ in range(700):
        damaged = bytearray(content)
        for _ in range(rng.choice((1, 1, 4))):
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        failed += not attempt(bytes(damaged))
    assert failed > 100


def test_bits_flipped_in_the_pickle(nothing_runs: list[str]) -> None:
    with zipfile.ZipFile(io.BytesIO(checkpoint())) as z:
        entries = {name: z.read(name) for name in z.namelist()}
    (name,) = [n for n in entries if n.endswith("data.pkl")]
    rng, failed = random.Random(1), 0
    for _ in range(700):
        body = bytearray(entries[name])
        for _ in range(rng.choice((1, 2, 8))):
            body[rng.randrange(len(body))] = rng.randrange(256)
        failed += not attempt(rezipped({**entries, name: bytes(body)}))
    assert failed > 300


def rezipped(entries: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as z:
        for name, body in entries.items():
            z.writestr(name, body)
    return file.getvalue()


def test_cut_short(nothing_runs: list[str]) -> None:
    content = checkpoint()
    assert attempt(content)
    for length in range(0, len(content) - 1, 7):
        assert not attempt(content[:length])


def test_noise(nothing_runs: list[str]) -> None:
    rng = random.Random(2)
    for _ in range(300):
        noise = rng.randbytes(rng.randrange(1, 200))
        assert not attempt(noise)
        attempt(rezipped({"archive/data.pkl": noise, "archive/version": b"3\n"}))


HOSTILE = [
    b"cos\nsystem\n(S'true'\ntR.",
    b"cbuiltins\neval\n(S'1'\ntR.",
    b"cbuiltins\ngetattr\n(cbuiltins\nset\nS'__class__'\ntR.",
    b"ccltensor.serialization\nload\n(S'/etc/passwd'\ntR.",
    b"ctorch._utils\n_rebuild_tensor_v2\n(K\x00K\x00(K\x05t(K\x01tI00\n}tR.",
    b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R.",
    b"cbuiltins\nbytearray\nJ\xff\xff\xff\x7f\x85R.",
    b"ctorch\nSize\n(NtR.",
    b"i" + b"os\nsystem\n" + b".",
    b"(cos\nsystem\nS'true'\no.",
    b"\x82\x01.",
    b"P1\n.",
    b"((((((t.",
    b"K\x01K\x02a.",
    b"]" * 10_000 + b"a" * 9_999 + b".",
    b"\x8d" + (2**62).to_bytes(8, "little") + b"x.",
]


@pytest.mark.parametrize("body", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile(body: bytes, nothing_runs: list[str]) -> None:
    attempt(rezipped({"archive/data.pkl": body, "archive/version": b"3\n"}))
    attempt(body)


def test_a_killed_save_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    save(torch.ones(3), path)
    program = f"""
        import os, signal, sys
        sys.path.insert(0, {str(ROOT)!r})
        import cltensor as torch
        from cltensor.serialization import archive
        put = archive.Writer.put
        def killed(self, name, data):
            put(self, name, data)
            if name.startswith("data/"):
                os.kill(os.getpid(), signal.SIGKILL)
        archive.Writer.put = killed
        torch.save([torch.zeros(1000), torch.zeros(5)], {str(path)!r})
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert load(path).tolist() == [1, 1, 1]


# ------------------------------------------------------------------------------------- the other formats


def named() -> dict[str, Any]:
    names = ["bool", "uint8", "int16", "int64", "uint32", "float16", "bfloat16", "float32", "float64", "complex64"]  # fmt: skip
    made = {n: torch.arange(6).reshape(2, 3).t().to(getattr(torch, n)) for n in names}
    return {**made, "empty": torch.zeros(0, 3), "scalar": torch.tensor(2.5)}


def same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert set(found) == set(expected)
    for name, t in expected.items():
        f = found[name]
        assert (f.tolist(), f.dtype, f.shape) == (t.tolist(), t.dtype, t.shape)


def test_safetensors(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    safetensors.save_file(named(), path, {"made": "here"})
    same(safetensors.load_file(path), named())
    assert safetensors.metadata(path) == {"made": "here"}
    with pytest.raises(TypeError, match="no type for tensor"):
        safetensors.save_file({"x": torch.zeros(1, dtype=torch.complex128)}, path)
    with pytest.raises(ValueError, match="expected a dict from names to tensors"):
        safetensors.save_file({"x": 3}, path)
    with pytest.raises(TypeError):
        safetensors.save_file({"x": torch.zeros(1)}, path, {"epoch": 3})
    same(safetensors.load_file(path), named())  # a save that failed changed nothing
    assert safetensors.save(named(), {"made": "here"}) == path.read_bytes()


def test_safetensors_asks_for_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "safetensors", None)
    monkeypatch.delitem(sys.modules, "cltensor.utils.safetensors")
    with pytest.raises(ImportError, match="pip install 'safetensors"):
        importlib.import_module("cltensor.utils.safetensors")


def test_damaged_safetensors(tmp_path: Path) -> None:
    path, rng = tmp_path / "x.safetensors", random.Random(3)
    safetensors.save_file(named(), path)
    content = path.read_bytes()
    for i in range(300):
        damaged = bytearray(content[: rng.randrange(len(content))] if i % 3 == 0 else content)
        if damaged:
            damaged[rng.randrange(min(len(damaged), 900))] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        kind, error = outcome(lambda: safetensors.load_file(path))
        if kind == "error":
            assert isinstance(error, RuntimeError)
            assert "the safetensors file is damaged" in str(error)


def test_npz(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    tensors = {k: v for k, v in named().items() if k != "bfloat16"}
    for compressed in (False, True):
        npz.save(tensors, path, compressed)
        same(npz.load(path), tensors)
    assert np.load(path)["scalar"] == 2.5
    np.savez(path, x=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle"):
        npz.load(path)
