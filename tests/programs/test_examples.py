"""Every example runs as a program of its own, with its cheapest settings, and writes its picture."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

for name in ("sklearn", "matplotlib", "tqdm"):
    pytest.importorskip(name, reason='the examples need pip install "cltensor[examples]"')

FOLDER = Path(__file__).resolve().parents[2] / "examples"
EXAMPLES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "common")
CHEAP = {"train_digits": ["--epochs", "4"]}


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_runs(name: str, dev: Any, tmp_path: Path) -> None:
    picture = tmp_path / f"{name}.png"
    words = [sys.executable, FOLDER / f"{name}.py", "--device", dev, "--picture", picture]
    ran = subprocess.run(
        [*map(str, words), *CHEAP.get(name, ["--quick"])],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "cltensor" in ran.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")
