"""The headers of cl_kernels/ that formulas of pointwise ops need."""

from __future__ import annotations

import pytest

from cltensor import dtypes
from cltensor.codegen.language import LIBRARY, parse


@pytest.mark.parametrize("name", ["mish", "log1p_exp"])
def test_what_replaces_a_function_for_double_brings_its_headers(name: str) -> None:
    formula = parse(f"{name}(x) + 1")
    assert formula.headers_for(dtypes.float32) == {LIBRARY[name].header}
    doubles = formula.headers_for(dtypes.float64)
    assert {LIBRARY[name].header, "elementary/exp", "elementary/log1p"} <= doubles
