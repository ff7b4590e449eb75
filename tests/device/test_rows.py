"""Every row that names a numpy reference, in everything that is made from a row.

Values of each dtype category the formula has; empty operands, for some rows 0-dim, strided and broadcast ones; function,
method, in-place and `out=` forms; first and second derivatives against finite differences. A new row is tested by being there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cltensor as torch
from cltensor.autograd import gradcheck, gradgradcheck
from cltensor.ops.row import FLOAT, FUNCTIONS, METHODS, ROWS, Row

pytestmark = pytest.mark.usefixtures("one_by_one")

NAMED = [r for r in ROWS.values() if r.reference is not None and r.name in FUNCTIONS]
TOLERANCE = {"float32": 3e-6, "float64": 1e-12, "int64": 0, "bool": 0}


def samples(row: Row, kind: str, *shapes: tuple[int, ...]) -> list[np.ndarray]:
    """Return an array for each shape, of numbers in the row's domain; integers are never zero, as some rows divide."""
    rng = np.random.default_rng(sum(map(ord, row.name)))
    low, high = row.domain
    made = []
    for shape in shapes:
        if kind == "bool":
            made.append(rng.random(shape) > 0.5)
        elif kind == "int64":
            made.append(rng.integers(max(1, int(low)), max(4, int(high) + 1), shape))
        else:
            made.append((rng.random(shape) * (high - low) + low).astype(kind))
    return made


def kinds(row: Row) -> list[str]:
    """Return the dtypes to try: one of each category the row computes in."""
    found = ["float32"] if row.ops[2] is not None else []
    if row.ops[1] is not None or row.promote is FLOAT:
        found.append("int64")
    if row.ops[0] is not None:
        found.append("bool")
    return found


def same(found: Any, wanted: np.ndarray, kind: str) -> None:
    result = found.cpu().numpy()
    assert result.shape == wanted.shape
    tolerance = max(TOLERANCE[kind], TOLERANCE["float32"] if result.dtype.kind == "f" else 0)
    np.testing.assert_allclose(result, wanted.astype(result.dtype), tolerance, tolerance)


# Rows that are tried with more layouts. How elements are read does not depend on the formula, so a few suffice: of one
# and of two operands, with numbers and bools as results.
LAID = ["neg", "sqrt", "sin", "isnan", "signbit", "sub", "pow", "atan2", "lt", "logical_or"]


@pytest.mark.parametrize("row", NAMED, ids=lambda r: r.name)
def test_values_and_forms(row: Row) -> None:
    function, count = FUNCTIONS[row.name], len(row.args)
    assert row.reference is not None
    for kind in kinds(row):
        arrays = samples(row, kind, *[(3, 8)] * count)
        tensors = [torch.tensor(a) for a in arrays]
        in_float = kind == "float32" or row.promote is FLOAT
        wide = [a.astype(np.float64) if in_float else a for a in arrays]
        with np.errstate(all="ignore"):
            try:
                wanted = np.asarray(row.reference(*wide))
            except TypeError:  # numpy has no such function of bools
                continue
        value = function(*tensors)
        same(value, wanted, kind)
        same(METHODS[row.name](*tensors), wanted, kind)
        out = torch.empty(0, dtype=value.dtype)
        assert function(*tensors, out=out) is out
        same(out, wanted, kind)
        if row.name + "_" in METHODS and torch.can_cast(value.dtype, tensors[0].dtype):
            target = tensors[0].clone()
            assert METHODS[row.name + "_"](target, *tensors[1:]) is target
            same(target, wanted, kind)
        if row.name in LAID:
            same(function(*[t[0, 0] for t in tensors]), wanted[0, 0], kind)
        assert function(*[t[:0] for t in tensors]).shape == (0, 8)


@pytest.mark.parametrize("name", LAID)
def test_layouts(name: str) -> None:
    row = ROWS[name]
    assert row.reference is not None
    arrays = samples(row, "float32", (3, 16), *[(16,)] * (len(row.args) - 1))
    tensors = [torch.tensor(a)[..., ::2] for a in arrays]
    with np.errstate(all="ignore"):
        wanted = np.asarray(row.reference(*[a[..., ::2].astype(np.float64) for a in arrays]))
    same(FUNCTIONS[row.name](*tensors), wanted, "float32")


@pytest.mark.fp64
@pytest.mark.parametrize("row", [r for r in NAMED if r.grads], ids=lambda r: r.name)
def test_derivatives(row: Row) -> None:
    if row.node == "NotImplemented":
        pytest.skip("torch has no derivative either")
    arrays = samples(row, "float64", (3, 4), *[(4,)] * (len(row.args) - 1))
    wanted = {index for index, _, _ in row.grads}
    inputs = [torch.tensor(a).requires_grad_(i in wanted) for i, a in enumerate(arrays)]
    assert gradcheck(FUNCTIONS[row.name], inputs)
    if row.name not in ("floor", "ceil", "trunc", "round", "sign", "sgn"):
        assert gradgradcheck(FUNCTIONS[row.name], inputs)
