"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cltensor.runtime import folders


def test_a_failed_write_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "table"
    folders.write_whole(file, b"first")
    folders.write_whole(file, b"second")
    assert file.read_bytes() == b"second"

    def refuse(*paths: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="no room"):
        folders.write_whole(file, b"third")
    monkeypatch.undo()
    assert file.read_bytes() == b"second"
    assert list(tmp_path.iterdir()) == [file]
