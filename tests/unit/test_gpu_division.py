"""The division of a reduction among a GPU's work-groups: enough lanes, parts only where they pay, no more lanes than
the device has."""

from __future__ import annotations

import pytest
from paper import RECORDS

from cltensor.codegen.reduce.gpu import AT_ONCE, divide, divide_merge
from cltensor.codegen.reduce.prologue import split

SHAPES = [((1 << 24,), 0), ((4096, 4096), 0), ((4096, 4096), 1), ((16, 1 << 18), 1), ((100352, 64), 0), ((1024, 128), 0), ((1 << 20, 3), 0), ((30, 1 << 20), 0), ((65536, 64), 1), ((4096,), 0), ((1, 1), 0), ((5, 1), 1)]  # fmt: skip


@pytest.mark.parametrize("record", RECORDS)
@pytest.mark.parametrize(("shape", "dim"), SHAPES)
@pytest.mark.parametrize("size", [4, 32])
def test_every_element_has_a_lane(record: str, shape: tuple[int, ...], dim: int, size: int) -> None:
    info = RECORDS[record]
    steps = tuple([shape[1], 1][-len(shape) :]) if len(shape) > 1 else (1,)
    cut = split(shape, (steps,), (dim,))
    made = divide(info, cut, dim == len(shape) - 1, size, size > 8)
    assert made.group <= info.max_group
    assert made.group * size <= info.local_mem
    assert made.group & (made.group - 1) == 0
    assert made.parts * made.pchunk >= cut.nred > (made.parts - 1) * made.pchunk
    join = divide_merge(info, cut.nout, made.parts, size)
    assert join.group <= info.max_group
    assert join.along == 1 or join.along < 2 * made.parts or join.along <= 16


@pytest.mark.parametrize(("shape", "dim"), SHAPES)
def test_much_work_fills_a_large_device(shape: tuple[int, ...], dim: int) -> None:
    info = RECORDS["H200"]
    steps = tuple([shape[1], 1][-len(shape) :]) if len(shape) > 1 else (1,)
    cut = split(shape, (steps,), (dim,))
    made = divide(info, cut, dim == len(shape) - 1, 4, False)
    if cut.nout * cut.nred >= info.compute_units * 1024 * 2 * AT_ONCE * 2:
        assert made.groups * made.group >= info.compute_units * 768


def test_little_work_is_one_launch() -> None:
    """Splitting outputs into parts would need a second launch."""
    for shape, dim in (((4096,), 0), ((1024, 128), 0), ((64, 512), 0), ((2048, 1024), 0)):
        steps = (shape[-1], 1)[-len(shape) :]
        cut = split(shape, (steps,), (dim,))
        assert divide(RECORDS["H200"], cut, len(shape) == 1, 4, False).parts == 1
