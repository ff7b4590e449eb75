"""Launches and kernels for GPUs on paper (tests/paper.py) keep within the limits of each device."""

from __future__ import annotations

import math
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from paper import RECORDS, Paper, argument_bytes, compute, paper
from support import constants_restored

from cltensor.runtime import DeviceInfo

BYTES = {
    "char": 1, "uchar": 1, "half": 2, "short": 2, "ushort": 2, "int": 4, "uint": 4, "float": 4, "long": 8, "ulong": 8, "double": 8,
    "clt_b16": 16,
}  # fmt: skip
BYTES |= {f"{name}{lanes}": size * lanes for name, size in BYTES.items() for lanes in (2, 4)}
LOCAL = re.compile(r"^\s*__local (\w+) ([^;=]+\]);", re.MULTILINE)
NAMED = re.compile(r"typedef (\w+) (\w+);")
RECORD = re.compile(r"typedef struct \{([^}]*)\} (\w+);")


@pytest.fixture(scope="module", params=sorted(RECORDS, key=lambda name: RECORDS[name].fp64))
def rendered(request: pytest.FixtureRequest) -> Any:
    """Return a device on paper that has recorded the kernels and launches of a small computation of each family."""
    import families

    import cltensor
    from cltensor.codegen.products import gemm_mma
    from cltensor.ops import dense

    with (
        pytest.MonkeyPatch.context() as patch,
        constants_restored(),
        paper(RECORDS[request.param]) as backend,
    ):
        dense.WAITS = 0
        # No matrix units: other targets cannot compile their assembly.
        patch.setitem(gemm_mma._found, backend, False)
        failed = compute(families.families(cltensor))
    # Sparse families need counts read from the device, where no values are computed.
    assert [name for name in failed if not name.startswith("sparse")] == []
    return backend


def local_bytes(source: str) -> int:
    """Return the bytes of local memory that a kernel's text declares."""
    sizes = dict(BYTES)
    for old, new in NAMED.findall(source):
        if old in sizes:
            sizes[new] = sizes[old]
    for fields, name in RECORD.findall(source):
        kinds = [field.split() for field in fields.split(";") if field.strip()]
        sizes[name] = sum(sizes.get(kind[0], 8) * len(kind[1:]) for kind in kinds)
    total = 0
    for kind, names in LOCAL.findall(source):
        for declared in re.findall(r"\w+((?:\[[^]]*\])+)", names):
            extents = re.findall(r"\[([\d\s+*/()-]+)\]", declared)
            assert len(extents) == declared.count("["), f"not a number: {declared}"
            total += sizes[kind] * math.prod(eval(extent) for extent in extents)
    return total


def test_groups_are_no_larger_than_the_device_allows_and_divide_the_work(rendered: Paper) -> None:
    for name, size, group in rendered.launches:
        assert group is not None, name
        assert math.prod(group) <= rendered.info.max_group, name
        assert not any(n % g for n, g in zip(size, group, strict=True)), name
        assert all(n < 1 << 31 for n in size), name


def test_groups_that_work_together_say_how_large_they_are(rendered: Paper) -> None:
    """With a declared work-group size the compiler keeps within the registers for it; otherwise a launch may be limited
    to fewer work-items."""
    texts = {text.name: text.source for text in rendered.texts}
    said = re.compile(r"reqd_work_group_size\((\d+), (\d+), (\d+)\)")
    for name, _, group in rendered.launches:
        found = said.search(texts[name])
        if found is None:
            assert "barrier(" not in texts[name], name
        else:
            assert tuple(map(int, found.groups())) == (*group, 1, 1)[:3], name


def test_kernels_take_no_more_arguments_than_the_device_allows(rendered: Paper) -> None:
    for text in rendered.texts:
        assert argument_bytes(text) <= rendered.info.arg_bytes, text.name


def test_local_memory_suffices(rendered: Paper) -> None:
    found = {text.name: local_bytes(text.source) for text in rendered.texts}
    assert any(found.values())
    for name, size in found.items():
        assert size <= rendered.info.local_mem, name


def test_local_memory_is_counted() -> None:
    text = "typedef float T;\ntypedef struct { T v; long at; } S;\n  __local T a[2][3 * (4 + 1)], b[2];\n __local S s[4];\n"
    assert local_bytes(text) == 4 * 32 + 12 * 4


_compiled: set[tuple] = set()  # to skip repetitions: most devices get the same texts
_plain: set[str] = set()  # texts that compiled without any extension


def test_llvm_compiles_all(rendered: Paper, tmp_path: Path) -> None:
    """As OpenCL C 1.2 without any extension where the device has none: no double, no half.

    Texts that compile this way are not compiled again with extensions: test_lane_schedules.py builds them for a device with doubles.
    """
    import gpu_compile

    if not gpu_compile.clang():
        pytest.skip("clang is not installed")
    words = [gpu_compile.clang(), "-x", "cl", "-cl-std=CL1.2", "-Xclang", "-finclude-default-header"]  # fmt: skip
    words += ["--target=spir64", "-fsyntax-only"]
    if not rendered.info.fp64:
        words += ["-Xclang", "-cl-ext=-all"]
    new = [
        t
        for t in rendered.texts
        if (*words, t.options, t.source) not in _compiled
        and not (rendered.info.fp64 and t.source in _plain)
    ]
    for options in {text.options for text in new}:
        paths = []
        for n, text in enumerate(t for t in new if t.options == options):
            path = tmp_path / f"{n}.cl"
            path.write_text(text.source)
            paths.append(str(path))
        known = [o for o in options if not o.startswith("-cl-nv-")]
        said = subprocess.run([*words, *known, *paths], capture_output=True, text=True, check=False)  # fmt: skip
        assert said.returncode == 0, said.stderr[:2000]
        mentioned = [line for line in said.stderr.splitlines() if "double" in line]
        assert not mentioned, "\n".join(mentioned[:20])
    _compiled.update((*words, t.options, t.source) for t in new)
    if not rendered.info.fp64:
        _plain.update(t.source for t in new)


@pytest.mark.parametrize(
    ("shape", "kernel"),
    [((1 << 16, 10), "row16x8"), ((64, 10), "row16x8"), ((1 << 16, 100), "row8x16")],
)
def test_short_rows_share_a_group(shape: tuple[int, int], kernel: str) -> None:
    import cltensor

    with paper(RECORDS["H200"]) as backend:
        cltensor.zeros(shape).softmax(1).tolist()
    assert any(
        text.name.startswith("softmax") and f"gpu_{kernel}" in text.name for text in backend.texts
    )


def test_what_families_change_is_put_back() -> None:
    import families

    import cltensor
    from cltensor.codegen.order import mask
    from cltensor.codegen.products import product

    with constants_restored(), paper(RECORDS["H200"]):
        made = families.families(cltensor)
        assert not compute({name: made[name] for name in ("gemm wide", "mask counted ahead")})
        assert product.WIDE_GROUPS == 0
        assert mask.is_small.__module__ != mask.__name__
    assert product.WIDE_GROUPS > 0
    assert mask.is_small.__module__ == mask.__name__


def test_records_are_of_gpus() -> None:
    for info in RECORDS.values():
        assert isinstance(info, DeviceInfo)
        assert info.kind == "gpu"
