"""The wheel: built without a network and installed into an empty environment, it runs a kernel."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import sys, pathlib, cltensor
place = pathlib.Path(cltensor.__file__).resolve()
assert place.is_relative_to(pathlib.Path(sys.argv[1]).resolve()), place
x = cltensor.arange(5, dtype=cltensor.float32)
y = (x * 2 + 1).sum()
assert y.item() == 25.0, y
print("ran", cltensor.stats().launches)
"""


def run(*command: object, **more: Any) -> str:
    words = [str(c) for c in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False, **more)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return str(done.stdout)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("hatchling")
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", out, cwd=ROOT)
    (made,) = out.glob("*.whl")
    return made


def test_contents(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder, suffix in (("cl_kernels", "*.cl"), ("templates", "*.mako")):
        for path in (ROOT / folder).rglob(suffix):
            assert f"cltensor/{folder}/{path.relative_to(ROOT / folder).as_posix()}" in names
    assert "cltensor/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    tops = {name.split("/")[0] for name in names}
    assert tops == {"cltensor", next(t for t in tops if t.endswith(".dist-info"))}


def test_runs_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", venv)
    bin_dir = venv / ("Scripts" if os.name == "nt" else "bin")
    python = bin_dir / Path(sys.executable).name
    if not python.exists():
        python = bin_dir / "python"
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    zipfile.ZipFile(wheel).extractall(site)
    # Link all dependencies from this environment, but not cltensor itself.
    for folder in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        for entry in Path(folder).iterdir():
            if "cltensor" in entry.name or entry.name.startswith(("torch", "__editable__")):
                continue
            if entry.suffix != ".pth" and not (site / entry.name).exists():
                (site / entry.name).symlink_to(entry, target_is_directory=entry.is_dir())
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment["CLTENSOR_CACHE_DIR"] = str(tmp_path / "cache")
    out = run(python, "-c", PROGRAM, venv, cwd=tmp_path, env=environment)
    assert out.startswith("ran ")
