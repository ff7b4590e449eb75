"""The generated stub is up to date with the rows, and declares the names that the library has."""

from __future__ import annotations

import ast

import cltensor
from cltensor import stubs


def test_stub_is_up_to_date() -> None:
    assert stubs.PATH.read_text() == stubs.text(), "run `python -m cltensor.stubs`"


def test_stub_parses_and_names_exist() -> None:
    tree = ast.parse(stubs.PATH.read_text())
    functions = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
    (methods,) = (n for n in tree.body if isinstance(n, ast.ClassDef))
    assert {"relu", "matmul", "conv2d", "zeros"} <= functions
    assert all(hasattr(cltensor, name) for name in functions)
    names = {n.target.id if isinstance(n, ast.AnnAssign) else n.name for n in methods.body}
    assert {"__add__", "relu", "add_"} <= names
    assert all(hasattr(cltensor.Tensor, name) for name in names)
