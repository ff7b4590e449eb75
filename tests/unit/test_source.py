"""Sources of kernel text: a template is translated once for each state of its file."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from cltensor import dtypes
from cltensor.codegen import pointwise, source
from cltensor.codegen.pointwise import Node, PointOp, Program
from cltensor.config import CONFIG


@pytest.fixture
def templates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "templates"
    folder.mkdir()
    (folder / "one.mako").write_text("value ${n}")
    monkeypatch.setattr(source, "TEMPLATES", folder)
    monkeypatch.setattr(source, "cache_dir", lambda: tmp_path / "cache")
    monkeypatch.setattr(source, "_lookup", source._lookup.__wrapped__)
    return folder


def test_translations_are_kept(templates: Path) -> None:
    assert source.render("one", n=1) == "value 1"
    folder = source._modules()
    assert folder is not None
    (kept,) = folder.rglob("*.py")
    kept.write_text(kept.read_text().replace("'value '", "'kept '"))
    assert source.render("one", n=2) == "kept 2"


def test_other_templates_are_translated_anew(templates: Path) -> None:
    assert source.render("one", n=1) == "value 1"
    before = source._modules()
    path = templates / "one.mako"
    path.write_text("other ${n}")
    os.utime(path, (0, 0))  # older than the translation, as after an installation
    assert source.render("one", n=3) == "other 3"
    assert source._modules() != before


def test_nothing_is_kept_without_a_cache(
    templates: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "CONFIG", replace(CONFIG, cache_size=0))
    assert source.render("one", n=1) == "value 1"
    assert not (tmp_path / "cache").exists()


def test_a_disk_that_refuses_is_survived(
    templates: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(source, "_modules", lambda: tmp_path / "file" / "folder")
    assert source.render("one", n=1) == "value 1"


def test_device_functions_come_once_and_behind_what_they_include() -> None:
    text = source.include("elementary/tanh", "elementary/asinh", "elementary/exp")
    marks = [
        "CLT_ALL_LANES(M)",
        "CLT_EXP(F",
        "CLT_TANH(F",
        "CLT_LOG(F",
        "CLT_LOG1P(F",
        "CLT_LOG_HYPERBOLIC(F",
    ]
    places = [text.index(f"#define {mark}") for mark in marks]
    assert places == sorted(places)
    assert text.count("#define CLT_EXP(F") == 1
    assert "#include" not in text


def test_bytes_of_masks_come_with_a_one_that_the_compiler_does_not_know() -> None:
    """A known 1 becomes a constant loaded under the mask: with an empty mask that takes AMD's processors as long as 80
    vectors."""
    op = PointOp("eq", "x == y")
    node = Node(op, dtypes.float32, dtypes.bool, (("a", 0), ("a", 1)))
    leaves = ((dtypes.float32, "d"), (dtypes.float32, "d"))
    program = Program(leaves, (), (node,), ((("t", 0), dtypes.bool, "d"),), 0)
    text = pointwise.source(program, 16, False)[1]
    assert "CLT_TRUTH(convert_uchar16((a0 == a1)), uchar16)" in text
    assert text.index("clt_one") < text.index("__kernel")
    assert "CLT_TRUTH" not in pointwise.source(program, 1, False)[1]


def test_bools_are_joined_as_bytes() -> None:
    """If the compiler knew that bytes were masks, it would load and compare the second operand under the first mask."""
    node = Node(PointOp("and", "x and y"), dtypes.bool, dtypes.bool, (("a", 0), ("a", 1)))
    leaves = ((dtypes.bool, "d"), (dtypes.bool, "d"))
    program = Program(leaves, (), (node,), ((("t", 0), dtypes.bool, "d"),), 0)
    text = pointwise.source(program, 16, False)[1]
    assert "(CLT_BYTES(a0) != " in text
    assert "(CLT_BYTES(a1) != " in text
    assert "CLT_BYTES" not in pointwise.source(program, 1, False)[1]


def test_floats_made_of_float16_are_any_floats_to_the_compiler() -> None:
    """If the compiler knew of the float16s, it would compare those, a lane at a time: the maximum of a million took 20
    times as long."""
    text = source.include("half")
    for width, bits in ((8, "ps256"), (16, "ps512_mask")):
        made = text[text.index(f"clt_of_f16_float{width}(ushort{width} v) {{") :]
        assert made.index(f"vcvtph2{bits}(") < made.index("CLT_ANY_FLOAT(f)") < made.index("return")
