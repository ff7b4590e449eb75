"""Reference counts: who else holds a gradient."""

from __future__ import annotations

import ast
from pathlib import Path

import cltensor


def test_counted_objects_come_out_of_a_container_or_slot() -> None:
    """A reference in a local variable counts differently from CPython 3.14 on (Note [References])."""
    counted = []
    for path in Path(cltensor.__file__).parent.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("getrefcount"):
                counted.append((path.name, call.args[0]))
    assert {name for name, _ in counted} >= {"capture_state.py", "loop.py"}
    loose = [(n, ast.unparse(a)) for n, a in counted if not isinstance(a, ast.Attribute | ast.Subscript)]  # fmt: skip
    assert loose == []
