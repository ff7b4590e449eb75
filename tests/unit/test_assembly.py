"""Inline assembly is left out for drivers that would end the process over it."""

from __future__ import annotations

import re

import pytest

from cltensor.codegen.source import include
from cltensor.runtime import pocl
from cltensor.runtime.folders import shipped

OURS_ALONE = {"team.cl"}  # built with pip's PoCL only


def test_younger_pocls_are_given_none() -> None:
    assert "-DCLT_NO_ASSEMBLY" in pocl.build_options((6, 0))
    assert "-DCLT_NO_ASSEMBLY" not in pocl.build_options((3, 0))


def test_no_pocl_but_the_wheels_is_given_builtins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pocl, "_short_header", True)
    assert pocl.build_options((3, 0)) == (pocl.BUILTINS,)
    for other in ((1, 8), (3, 1), (5, 0), (7, 0)):
        assert pocl.BUILTINS not in pocl.build_options(other)


def test_all_of_it_asks() -> None:
    found = set()
    for folder in ("cl_kernels", "templates"):
        for path in sorted(shipped(folder).rglob("*")):
            text = path.read_text() if path.suffix in (".cl", ".mako") else ""
            if re.search(r"\b(__)?asm(__)?\b", text) and path.name not in OURS_ALONE:
                found.add(path.name)
                if path.suffix == ".cl":  # together with the files it includes
                    text = include(str(path.relative_to(shipped(folder)).with_suffix("")))
                before = re.split(r"\b(?:__)?asm(?:__)?\b", text)[0]
                assert "CLT_NO_ASSEMBLY" in before, path
    assert {"half.cl", "truth.cl", "dot.cl"} <= found
