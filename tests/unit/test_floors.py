"""Imports only go down: the floors of ARCHITECTURE.md, read from its text, hold everywhere."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "cltensor"


def floors() -> dict[str, int]:
    """Return module or folder name -> floor, from the numbered lines of the document."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    block = text.partition("## Floors")[2].partition("```")[2].partition("```")[0]
    made: dict[str, int] = {}
    for line in block.splitlines():
        if match := re.match(r"\s*(\d+)\s+(.*)", line):
            for name in re.findall(r"(\w+)(?:\.py|/)", match[2]):
                made[name] = int(match[1])
    return made


FLOORS = floors()
# Above everything: what assembles the package, and the command line.
TOP = {"__init__", "__main__"}
# What may ask the assembled package, once it runs: programs of their own, and what torch reports of itself.
OF_THE_WHOLE = {"stubs", "tune", "__config__"}
MODULES = sorted(PACKAGE.rglob("*.py"))


def owner(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """Return the cltensor modules or folders that a file imports, in functions too; "__init__" for the package itself.

    What stands under TYPE_CHECKING is for annotations, and does not count.
    """
    tree = ast.parse(path.read_text(), str(path))
    typing_only: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for inner in node.body:
                typing_only.update(ast.walk(inner))
    package = ("cltensor", *path.relative_to(PACKAGE).parts[:-1])
    found: set[str] = set()
    for node in ast.walk(tree):
        if node in typing_only:
            continue
        if isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            names = [f"{module}.{a.name}" for a in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "cltensor":
                found.add(parts[1] if len(parts) > 1 and parts[1] in FLOORS else "__init__")
    return found


def test_the_document_names_every_module() -> None:
    assert set(FLOORS) | TOP == {owner(path) for path in MODULES}
    assert FLOORS["errors"] == 1
    assert FLOORS["tensor"] == 9


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_down(path: Path) -> None:
    me = owner(path)
    if me in TOP:
        return
    names = imported(path)
    assert "__init__" not in names or me in OF_THE_WHOLE, "imports the package as a whole"
    above = {name: FLOORS[name] for name in names & set(FLOORS) if FLOORS[name] > FLOORS[me]}
    assert not above, f"floor {FLOORS[me]} imports from above: {above}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_no_torch(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            assert all(a.name.split(".")[0] != "torch" for a in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            assert (node.module or "").split(".")[0] != "torch"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_module_says_what_it_owns(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text())), "a module opens with a short paragraph"


# Private by torch's spelling: modules here and programs import them under these names, as they do from torch's own modules.
TORCHS_OWN = {
    "_BatchNorm", "_ConvTransposeNd", "_EXTRA_STATE_KEY_SUFFIX", "_IncompatibleKeys", "_InverseTransform", "_LazyNormBase",
    "_Namespace", "_NormBase", "_StridedShard", "_add_batch_dim", "_assert", "_assign_attr", "_broadcast_to_and_flatten",
    "_package_registry", "_pytree", "_remove_batch_dim", "_standard_normal", "_sum_rightmost", "_weight_norm",
}  # fmt: skip


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_private_names_stay_in_their_module(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level and node.module != "_tree_kinds":
            private = {a.name for a in node.names if re.match("_[^_]", a.name)}
            assert private <= TORCHS_OWN, f"line {node.lineno}"
