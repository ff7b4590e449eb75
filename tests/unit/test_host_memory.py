"""How much memory a process can get, as control groups and the system report it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cltensor.runtime import host_memory

MIB = 1 << 20


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder in place of that of the control groups."""
    if sys.platform == "win32":
        pytest.skip("there are no control groups")
    monkeypatch.setattr(host_memory, "_GROUPS", tmp_path)
    return tmp_path


def test_no_limit(groups: Path) -> None:
    free = host_memory.physical_memory()
    (groups / "memory.max").write_text("max\n")
    assert 0 < host_memory.available_memory() <= host_memory.physical_memory() == free


def test_a_limit_and_what_is_used_of_it(groups: Path) -> None:
    """Page cache that can be given up does not count as used. Without a number for what is used, all is free."""
    (groups / "memory.max").write_text(f"{8 * MIB}\n")
    assert host_memory.available_memory() == host_memory.physical_memory() == 8 * MIB
    (groups / "memory.current").write_text(f"{6 * MIB}\n")
    assert host_memory.available_memory() == 2 * MIB
    (groups / "memory.stat").write_text(f"anon {4 * MIB}\ninactive_file {MIB}\n")
    assert host_memory.available_memory() == 3 * MIB
    (groups / "memory.current").write_text(f"{9 * MIB}\n")
    assert host_memory.available_memory() == 0


def test_control_groups_of_version_1(groups: Path) -> None:
    (groups / "memory").mkdir()
    (groups / "memory" / "memory.limit_in_bytes").write_text(f"{8 * MIB}\n")
    (groups / "memory" / "memory.usage_in_bytes").write_text(f"{5 * MIB}\n")
    (groups / "memory" / "memory.stat").write_text(f"cache 7\ntotal_inactive_file {2 * MIB}\n")
    assert host_memory.available_memory() == 5 * MIB
