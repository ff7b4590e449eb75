"""Imports only go down: the floors of ARCHITECTURE.md, read from its text, hold everywhere."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "cltensor"


def floors() -> dict[str, int]:
    """Return the floor of each module or folder, by name, from the numbered lines of the document."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    block = text.partition("## Floors")[2].partition("```")[2].partition("```")[0]
    made: dict[str, int] = {}
    for line in block.splitlines():
        if match := re.match(r"\s*(\d+)\s+(.*)", line):
            for name in re.findall(r"(\w+)(?:\.py|/)", match[2]):
                made[name] = int(match[1])
    return made


FLOORS = floors()
# Above all floors: the module that assembles the package, and the command line.
TOP = {"__init__", "__main__"}
# Modules that may import the assembled package at run time: programs of their own, and torch's report of its build.
OF_THE_WHOLE = {"stubs", "tune", "__config__"}


class Module(NamedTuple):
    """The parts of a parsed file that the rules check; each file is parsed once."""

    name: str
    path: Path
    doc: str | None
    imports: list[ast.Import | ast.ImportFrom]  # including those in functions
    for_annotations: set[ast.AST]  # statements under TYPE_CHECKING


def read(path: Path) -> Module:
    tree = ast.parse(path.read_text(), str(path))
    imports: list[ast.Import | ast.ImportFrom] = []
    typing_only: set[ast.AST] = set()
    for node in statements(tree.body):
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports.append(node)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            typing_only.update(statements(node.body))
    return Module(
        str(path.relative_to(PACKAGE)), path, ast.get_docstring(tree), imports, typing_only
    )


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield all nested statements, which is enough to find imports; expressions, most of a tree, are not visited."""
    for node in body:
        yield node
        for name in ("body", "orelse", "finalbody"):
            yield from statements(getattr(node, name, ()))
        for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            yield from statements(part.body)


@functools.cache
def modules() -> list[Module]:
    return [read(path) for path in sorted(PACKAGE.rglob("*.py"))]


def owner(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(module: Module) -> set[str]:
    """Return the cltensor modules or folders that a file imports, in functions too; "__init__" for the package itself.

    Imports under TYPE_CHECKING serve annotations only, and do not count.
    """
    package = ("cltensor", *module.path.relative_to(PACKAGE).parts[:-1])
    found: set[str] = set()
    for node in module.imports:
        if node in module.for_annotations:
            continue
        if isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        else:
            base = package[: len(package) - node.level + 1] if node.level else ()
            whole = ".".join([*base, *([node.module] if node.module else [])])
            names = [f"{whole}.{a.name}" for a in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "cltensor":
                found.add(parts[1] if len(parts) > 1 and parts[1] in FLOORS else "__init__")
    return found


def test_the_document_names_every_module() -> None:
    assert set(FLOORS) | TOP == {owner(module.path) for module in modules()}
    assert FLOORS["errors"] == 1
    assert FLOORS["tensor"] == 9


def test_imports_go_down() -> None:
    wrong: dict[str, Any] = {}
    for module in modules():
        me = owner(module.path)
        if me in TOP:
            continue
        names = imported(module)
        if "__init__" in names and me not in OF_THE_WHOLE:
            wrong[module.name] = "imports the package as a whole"
        above = {name: FLOORS[name] for name in names & set(FLOORS) if FLOORS[name] > FLOORS[me]}
        if above:
            wrong[module.name] = f"floor {FLOORS[me]} imports from above: {above}"
    assert not wrong


def test_no_torch() -> None:
    wrong = set()
    for module in modules():
        for node in module.imports:
            if isinstance(node, ast.Import):
                names = [a.name for a in node.names]
            else:
                names = [] if node.level else [node.module or ""]
            if any(name.split(".")[0] == "torch" for name in names):
                wrong.add(f"{module.name}:{node.lineno}")
    assert not wrong


def test_each_module_says_what_it_owns() -> None:
    silent = [module.name for module in modules() if not module.doc]
    assert not silent, "a module opens with a short paragraph"


# Names with an underscore because torch spells them so: modules here and programs import them as they do from torch.
TORCHS_OWN = {
    "_BatchNorm", "_ConvTransposeNd", "_EXTRA_STATE_KEY_SUFFIX", "_IncompatibleKeys", "_InverseTransform",
    "_LazyNormBase", "_Namespace", "_NormBase", "_StridedShard", "_VF", "_add_batch_dim", "_assert", "_assign_attr",
    "_broadcast_to_and_flatten", "_foreach_utils", "_jit_set_fusion_strategy", "_lazy_call", "_lazy_init",
    "_package_registry", "_pytree", "_reduction", "_remove_batch_dim", "_standard_normal", "_sum_rightmost",
    "_weight_norm",
}  # fmt: skip


def test_private_names_stay_in_their_module() -> None:
    wrong = {}
    for module in modules():
        for node in module.imports:
            if isinstance(node, ast.ImportFrom) and node.level and node.module != "_tree_kinds":
                private = {a.name for a in node.names if re.match("_[^_]", a.name)}
                if private - TORCHS_OWN:
                    wrong[f"{module.name}:{node.lineno}"] = private - TORCHS_OWN
    assert not wrong
