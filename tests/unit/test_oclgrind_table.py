"""The families that run under Oclgrind reach every template."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_template_has_a_family() -> None:
    tree = ast.parse((ROOT / "tests" / "families.py").read_text())
    table, families = {}, set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "TEMPLATES":
            table = ast.literal_eval(node.value)
        elif isinstance(node, ast.FunctionDef) and node.name == "families":
            made = node.body[-1]
            assert isinstance(made, ast.Return)
            assert isinstance(made.value, ast.Dict)
            families = {ast.literal_eval(key) for key in made.value.keys if key is not None}
    reached = {name for names in table.values() for name in names.split()}
    folder = ROOT / "templates"
    templates = {p.relative_to(folder).with_suffix("").as_posix() for p in folder.rglob("*.mako")}
    assert reached == templates
    assert set(table) <= families
