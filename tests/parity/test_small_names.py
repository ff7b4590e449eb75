"""Small names of torch's that programs ask for: what they answer is what torch's do."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import pytest
from parity.oracle import th
from support import ct


def test_tags() -> None:
    ours, theirs = ({t.name: t.value for t in m.Tag.__members__.values()} for m in (ct, th))
    assert ours == theirs
    assert repr(ct.Tag.core) == repr(th.Tag.core)
    assert str(ct.Tag.pointwise) == str(th.Tag.pointwise)


def test_capabilities() -> None:
    theirs, ours = th.cpu.get_capabilities(), ct.cpu.get_capabilities()
    asked = {k for k, v in theirs.items() if isinstance(v, bool)} & set(ours)
    assert {k: ours[k] for k in asked} == {k: theirs[k] for k in asked}
    assert ours["architecture"] == theirs["architecture"]
    with pytest.raises(TypeError):
        ours["avx"] = 1  # type: ignore[index]


def test_no_generator_of_a_thread() -> None:
    assert th.random.thread_safe_generator() is ct.random.thread_safe_generator() is None


def test_skip_data() -> None:
    for torch in (th, ct):
        x = torch.arange(6.0).reshape(2, 3)
        empty, full = io.BytesIO(), io.BytesIO()
        with torch.serialization.skip_data():
            torch.save({"x": x}, empty)
        torch.save({"x": x}, full)
        assert abs(len(empty.getvalue()) - len(full.getvalue())) < 64
        for reader in (th, ct):
            empty.seek(0)
            assert reader.load(empty)["x"].tolist() == [[0.0] * 3] * 2
        full.seek(0)
        with torch.serialization.skip_data():
            assert torch.load(full)["x"].shape == (2, 3)
        full.seek(0)
        assert torch.load(full)["x"].tolist() == x.tolist()


ASKED = [
    "u.stride()", "u.is_contiguous()", "u.untyped_storage()", "u.detach()", "u.dim()", "u.numel()", "u.data_ptr()", "u.element_size()",
    "u.storage_offset()", "u.type()", "u.numpy()", "u.tolist()", "u.zero_()", "u.fill_(1)", "u.pin_memory()",
]  # fmt: skip


@pytest.mark.parametrize("line", ASKED)
def test_uninitialised_parameters_name_what_was_asked(line: str) -> None:
    def words(torch: Any) -> str:
        with pytest.raises(
            ValueError, match="Attempted to use an uninitialized parameter"
        ) as raised:
            eval(line, {"u": torch.nn.UninitializedParameter()})
        return str(raised.value)

    assert words(ct) == words(th)


def test_skipped_data_is_filled_in_later() -> None:
    for torch in (th, ct):
        x = torch.arange(1.0, 7.0)
        empty = io.BytesIO()
        with torch.serialization.skip_data():
            torch.save(x, empty)
        with zipfile.ZipFile(empty) as names:
            name = next(n for n in names.namelist() if n.endswith("data/0"))
            with names.open(name) as entry:
                start = entry._orig_compress_start  # type: ignore[attr-defined]
        whole = bytearray(empty.getvalue())
        whole[start : start + 24] = x.cpu().numpy().tobytes()
        for reader in (th, ct):
            assert reader.load(io.BytesIO(bytes(whole))).tolist() == x.tolist()
