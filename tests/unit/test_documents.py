"""The files and notes named in documents, docstrings and comments exist; no file is too long to read."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {"cltensor": "*.py", "templates": "*.mako", "cl_kernels": "*.cl"}
TEXTS = [
    ROOT / name
    for name in (
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "DRIVERS.md",
        "benchmarks/README.md",
    )
]
TEXTS += [path for folder, kind in FOLDERS.items() for path in (ROOT / folder).rglob(kind)]
# A path in prose or in an include. `dt.cl` is an attribute, hence the rule for ".cl"; paths of torch's files begin with
# "torch/".
NAMED = re.compile(r"(?<![\w.])(/?(?:[\w.]+/)*\w+\.(?:py|mako|cl))\b(?!\()")
OTHERS = ("torch/", "setup.py", "hubconf.py", "sitecustomize.py", "__main__.py")


def test_files_that_are_named_exist() -> None:
    files = {
        path.relative_to(ROOT).as_posix()
        for folder in (*FOLDERS, "tests", "benchmarks", "examples")
        for path in (ROOT / folder).rglob("*.*")
    }
    ends = {
        "/".join(parts[k:]) for f in files for parts in [f.split("/")] for k in range(len(parts))
    }
    missing = [
        f"{text.relative_to(ROOT)}: {name}"
        for text in TEXTS
        for name in NAMED.findall(text.read_text())
        if name.strip("/") not in ends
        and not name.startswith(OTHERS)
        and (not name.endswith(".cl") or "/" in name)
    ]
    assert not missing


def test_notes_that_are_named_are_written() -> None:
    texts = {path: path.read_text() for path in TEXTS}
    written = {
        n for t in texts.values() for n in re.findall(r"Note \[([^\]\n]+)\](?:\.|:|\s*\n)", t)
    }
    missing = [
        f"{path.relative_to(ROOT)}: Note [{name}]"
        for path, text in texts.items()
        for name in re.findall(r"Note \[([^\]\n]+)\]", text)
        if name not in written
    ]
    assert not missing


def test_files_are_short() -> None:
    made = {"_surface.pyi"}  # by a program
    long = {
        path.relative_to(ROOT).as_posix(): lines
        for folder in ("cltensor", "templates", "cl_kernels", "tests", "benchmarks", "examples")
        for path in (ROOT / folder).rglob("*.*")
        if path.suffix in (".py", ".pyi", ".mako", ".cl") and path.name not in made
        if (lines := len(path.read_text().splitlines())) > 600
    }
    assert not long, "split them (CONTRIBUTING.md, Style)"
