"""Checkpoints go both ways between the libraries: what one writes the other reads, shared memory and all."""

from __future__ import annotations

import io
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
from support import ct

from cltensor.serialization import load, save

th: Any = pytest.importorskip("torch", minversion="2.13", reason="torch 2.13 is the oracle")

DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float64",
    "complex64",
    "complex128",
]
NEWER = ["uint16", "uint32", "uint64"]


def content(module: Any, dtypes: list[str] = DTYPES + NEWER) -> dict[Any, Any]:
    base = module.arange(12.0).reshape(3, 4)
    state = OrderedDict(
        a=base,
        b=base[1:, ::2].t(),
        scalar=module.tensor(3),
        empty=module.zeros(0, 3),
        grad=module.ones(2, requires_grad=True),
    )
    for name in dtypes:
        state[name] = module.ones(3, dtype=getattr(module, name))
    state._metadata = OrderedDict(version=1)  # type: ignore[attr-defined]
    return {
        "state": state, "again": base, "set": {1, 2}, "size": module.Size([1, 2]), "dtype": module.float32, "device": module.device("cuda:1"), "bytes": b"xy",
        "complex": 1j, "none": None, "tuple": (1, 2.5, "ü", True, 2**70, -5, [1]), 1: 2, "array": bytearray(b"q"),
    }  # fmt: skip


def assert_same(found: dict[Any, Any], expected: dict[Any, Any]) -> None:
    assert list(found) == list(expected)
    assert found["state"]._metadata == expected["state"]._metadata
    assert list(found["state"]) == list(expected["state"])
    for key, b in expected["state"].items():
        a = found["state"][key]
        assert type(a) is type(b)
        assert (a.tolist(), str(a.dtype), a.shape, a.stride(), a.requires_grad) == (
            b.tolist(),
            str(b.dtype),
            b.shape,
            b.stride(),
            b.requires_grad,
        )
    found["again"][1, 0] = 99
    assert found["state"]["b"][0, 0].item() == 99
    for key in ("set", "size", "dtype", "device", "bytes", "complex", "none", "tuple", 1, "array"):
        assert found[key] == expected[key]


@pytest.mark.parametrize("weights_only", [True, False])
def test_torch_reads_ours(weights_only: bool, tmp_path: Path) -> None:
    path = tmp_path / "ours.pt"
    save(content(ct), path)
    assert_same(th.load(path, weights_only=weights_only), content(th))
    assert_same(th.load(path, mmap=True, weights_only=weights_only), content(th))


@pytest.mark.parametrize("weights_only", [True, False])
def test_we_read_torchs(weights_only: bool, tmp_path: Path) -> None:
    path = tmp_path / "torchs.pt"
    th.save(content(th), path)
    assert_same(load(path, weights_only=weights_only), content(ct))
    assert_same(load(path, mmap=True, weights_only=weights_only), content(ct))


@pytest.mark.parametrize("weights_only", [True, False])
def test_we_read_torchs_older_format(weights_only: bool) -> None:
    file = io.BytesIO()
    th.save(content(th, DTYPES), file, _use_new_zipfile_serialization=False)
    file.seek(0)
    assert_same(load(file, weights_only=weights_only), content(ct, DTYPES))


def test_a_state_dict_of_torch_modules() -> None:
    net = th.nn.Sequential(th.nn.Linear(3, 4), th.nn.BatchNorm1d(4))
    optimizer = th.optim.Adam(net.parameters())
    net(th.randn(5, 3)).sum().backward()
    optimizer.step()
    file = io.BytesIO()
    th.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    found = load(file)
    for key, value in net.state_dict().items():
        assert found["net"][key].tolist() == value.tolist()
    assert (
        found["optimizer"]["state"][0]["exp_avg"].tolist()
        == optimizer.state_dict()["state"][0]["exp_avg"].tolist()
    )
    back = io.BytesIO()
    save(found, back)
    back.seek(0)
    net.load_state_dict(th.load(back)["net"])
    back.seek(0)
    optimizer.load_state_dict(th.load(back)["optimizer"])


def test_parameters() -> None:
    if not hasattr(ct.nn, "Parameter"):
        pytest.skip("needs nn.Parameter")
    file = io.BytesIO()
    th.save(th.nn.Parameter(th.ones(2)), file)
    file.seek(0)
    found = load(file)
    assert type(found) is ct.nn.Parameter
    assert found.requires_grad
    back = io.BytesIO()
    save([found, ct.nn.Parameter(ct.zeros(1), requires_grad=False)], back)
    back.seek(0)
    first, second = th.load(back)
    assert type(first) is type(second) is th.nn.Parameter
    assert (first.requires_grad, second.requires_grad) == (True, False)
    assert first.tolist() == [1, 1]
