"""GPU copies with several loads in flight per lane: transposed tiles, 16-bit numbers in pairs, padding by blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from paper import RECORDS, paper
from support import data

import cltensor as ct
import cltensor.nn.functional as F
from cltensor.codegen.move.copies import copy_strided
from cltensor.codegen.operand import Operand

pytestmark = pytest.mark.elsewhere

PAIRS = [(130, 70), (64, 64), (66, 258), (3, 70, 130)]


def copy(x: Any, to: Any) -> None:
    """Copy with the kernel for large tensors."""
    src, dst = (
        Operand(t._storage.buffer(), t.dtype, tuple(t.shape), t.stride(), t.storage_offset())
        for t in (x, to)
    )
    copy_strided(x._storage.backend, src, dst)


@pytest.mark.parametrize("dtype", ["int16", "float32", "int8", "int64"])
@pytest.mark.parametrize("shape", [*PAIRS, (129, 71), (131, 128), (2, 3, 67, 66)])
def test_matrices_are_turned(shape: tuple[int, ...], dtype: str) -> None:
    a = data(*shape, dtype=dtype)
    turned = np.ascontiguousarray(a.swapaxes(-1, -2))
    to = ct.zeros(*turned.shape, dtype=getattr(ct, dtype))
    copy(ct.tensor(a).mT, to)
    assert np.array_equal(to.numpy(force=True), turned)


@pytest.mark.parametrize("columns", [slice(2, 72), slice(1, 71), slice(3, 70), slice(0, 71)])
def test_parts_of_matrices_of_16_bits_are_turned(columns: slice) -> None:
    """At an odd offset, or with an odd width, pairs of 16-bit numbers cannot be moved as 32 bits."""
    a = data(80, 75, dtype="int16")
    for x, b in ((ct.tensor(a), a), (ct.tensor(np.ascontiguousarray(a[:, :74])), a[:, :74])):
        for rows in (slice(0, 66), slice(1, 67), slice(3, 70)):
            part = np.ascontiguousarray(b[rows, columns].T)
            for start in (2, 3):
                out = ct.zeros(76, 84, dtype=ct.int16)
                to = out[2 : 2 + part.shape[0], start : start + part.shape[1]]
                copy(x[rows, columns].t(), to)
                assert np.array_equal(to.numpy(force=True), part)
                assert out.sum().item() == part.sum()


def test_what_lies_in_pairs_is_turned_in_pairs() -> None:
    def names(*shape: int, start: int = 0) -> set[str]:
        with paper(RECORDS["H200"]) as backend:
            x = ct.empty(*shape, dtype=ct.bfloat16)[..., start:].mT
            copy(x, ct.empty(*x.shape, dtype=ct.bfloat16))
        return {launch.name for launch in backend.launches if launch.name.startswith("copy_tile")}

    for shape in PAIRS:
        assert names(*shape) == {"copy_tile_b2_r1_v0_paired"}
    for shape, start in (((129, 70), 0), ((70, 129), 0), ((128, 131), 1), ((128, 130), 1)):
        assert names(*shape, start=start) == {"copy_tile_b2_r1_v0"}


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
def test_padding_ends_anywhere_in_a_block(mode: str) -> None:
    spelt = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    for height, width in ((3, 509), (30, 30), (29, 31), (61, 65)):
        a = data(1, 2, height, width)
        found = F.pad(ct.tensor(a), (2, 1, 1, 2), mode=mode)
        expected = np.pad(a, ((0, 0), (0, 0), (1, 2), (2, 1)), mode=spelt[mode])  # type: ignore[call-overload]
        assert np.array_equal(found.numpy(force=True), expected)
