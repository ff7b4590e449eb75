"""`distributed.checkpoint`: folders go both ways between the libraries, and errors have torch's words."""

from __future__ import annotations

import importlib
import pickle
from pathlib import Path
from typing import Any

import pytest
from support import ct

th: Any = pytest.importorskip("torch", minversion="2.13", reason="torch 2.13 is the oracle")
pytestmark = [
    pytest.mark.ours,
    pytest.mark.filterwarnings("ignore:torch.distributed is disabled", "ignore:TypedStorage"),
]
BOTH = pytest.mark.parametrize(
    ("writer", "reader"), [(th, ct), (ct, th), (ct, ct)], ids=["from torch", "to torch", "own"]
)


def checkpoints(module: Any) -> Any:
    return importlib.import_module(f"{module.__name__}.distributed.checkpoint")


def state(torch: Any, value: float) -> dict[str, Any]:
    """Return what is saved: a module, an optimiser's state, and tensors and other values in dicts and lists."""
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=value, momentum=0.9)
    with torch.no_grad():
        for p in model.parameters():
            p.fill_(value)
            p.grad = torch.full_like(p, value)
    optimizer.step()
    return {
        "model": model,
        "optimizer": optimizer.state_dict(),
        "list": [torch.full((2,), value), {"at": torch.full((), value, dtype=torch.float64)}],
        "part": torch.full((4, 4), value, dtype=torch.bfloat16)[:, 1],
        "plain": [value, None],
        "numbers": {3: torch.full((1,), value)},
    }


def numbers(state: dict[str, Any]) -> Any:
    found = {**state, "model": state["model"].state_dict()}
    return {k: str(v).replace("cltensor", "torch") for k, v in found.items()}


@BOTH
def test_folders_go_both_ways(writer: Any, reader: Any, tmp_path: Path) -> None:
    saved, loaded = state(writer, 0.5), state(reader, 2.0)
    weight = loaded["model"].weight
    assert numbers(saved) != numbers(loaded)
    checkpoints(writer).save(saved, checkpoint_id=tmp_path)
    assert checkpoints(reader).load(loaded, checkpoint_id=tmp_path) is None
    assert numbers(saved) == numbers(loaded)
    assert loaded["model"].weight is weight


@BOTH
def test_what_does_not_fit(writer: Any, reader: Any, tmp_path: Path) -> None:
    dcp = checkpoints(reader)
    checkpoints(writer).save({"a": writer.ones(2), "b": 1}, checkpoint_id=str(tmp_path))
    for wanted, kind, text in (
        ({"c": 1}, RuntimeError, "Missing key in checkpoint state_dict: c."),
        ({"a": reader.ones(3)}, ValueError, "Size mismatch between saved torch.Size([2]) and current: torch.Size([3]) for a"),
    ):  # fmt: skip
        with pytest.raises(dcp.CheckpointException) as caught:
            dcp.load(wanted, checkpoint_id=tmp_path)
        error, _ = caught.value.failures[0]
        assert (type(error), str(error)) == (kind, text)
        assert text in str(caught.value)
    with pytest.raises(RuntimeError, match="`checkpoint_id` must be specified"):
        dcp.load({})


def test_tensors_saved_in_parts(tmp_path: Path) -> None:
    """As torch saves tensors that are divided among processes."""
    dcp = checkpoints(th)
    parts = importlib.import_module("torch.distributed.checkpoint.metadata")
    dcp.save({"a": th.arange(3.0), "b": th.arange(3.0, 6)}, checkpoint_id=tmp_path)
    reader = dcp.FileSystemReader(tmp_path)
    metadata = reader.read_metadata()
    kinds, places = metadata.state_dict_metadata, metadata.storage_data
    first, second = (places[parts.MetadataIndex(name, [0])] for name in "ab")
    whole = kinds["a"]
    whole.size = th.Size([6])
    whole.chunks.append(parts.ChunkStorageMetadata(th.Size([3]), th.Size([3])))
    metadata.state_dict_metadata = {"a": whole}
    metadata.storage_data = {
        parts.MetadataIndex("a", [0]): first,
        parts.MetadataIndex("a", [3]): second,
    }
    (tmp_path / ".metadata").write_bytes(pickle.dumps(metadata))
    found = {"a": ct.zeros(6)}
    checkpoints(ct).load(found, checkpoint_id=tmp_path)
    assert found["a"].tolist() == [0, 1, 2, 3, 4, 5]


def test_a_folder_cannot_run_code(tmp_path: Path) -> None:
    dcp = checkpoints(ct)
    (tmp_path / ".metadata").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    with pytest.raises(dcp.CheckpointException, match="UnpicklingError"):
        dcp.load({}, checkpoint_id=tmp_path)
