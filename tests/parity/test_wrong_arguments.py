"""Missing, surplus and unknown arguments and arguments of the wrong type: torch's texts, to the letter."""

from __future__ import annotations

import re

import pytest
from parity.oracle import evaluate, first_line
from support import data

# Functions called without arguments, with one and four tensors, with an unknown keyword, and with values that are no tensors.
NAMES = """
abs_ log_ arccos_ arccos negative fix arctan2 lu_solve polar complex lu_unpack
special.airy_ai special.erf special.expit special.gammainc special.psi special.zeta special.xlog1py special.i0e
linalg.cholesky linalg.det linalg.eigvals linalg.householder_product linalg.ldl_solve linalg.lu linalg.lu_solve linalg.multi_dot
linalg.solve_triangular linalg.tensorinv linalg.tensorsolve linalg.matrix_exp
fft.fft2 fft.ihfftn fft.fftshift fft.fftfreq
greater less_equal not_equal
"""
CALLS = ("", "a", "a, a, a, a", "a, foo=1", "None", "'x'", "1.5", "a, None", "a, 'x'")
# torch counts the required keyword of the first, "takes from 3 to 2"; the second is computed here.
LEFT = {"linalg.solve_triangular(a, a, a, a)", "fft.fftfreq(1.5)"}


def told(error: Exception) -> str:
    """Return an error's class and text, without the list of overloads that torch's text ends with."""
    return (
        f"{type(error).__name__}: {re.sub(', but expected (one of:|[(]).*', '', first_line(error))}"
    )


@pytest.mark.parametrize("name", NAMES.split())
def test_wrong_arguments_of_functions(name: str) -> None:
    for call in CALLS:
        program = f"{name}({call})"
        found, expected = evaluate(f"torch.{program}", {"a": data(3, 3)})
        if expected.error is None or program in LEFT:
            continue
        assert found.error is not None, program
        assert told(found.error) == told(expected.error), program


@pytest.mark.parametrize(
    "call",
    ["a.arccos(a)", "a.greater(a, a)", "a.less_('x')", "a.arctan2()", "a.negative_(foo=1)",],
)  # fmt: skip
def test_wrong_arguments_of_methods(call: str) -> None:
    found, expected = evaluate(call, {"a": data(3, 3)})
    assert told(found.error) == told(expected.error)


def test_parameters_have_torchs_names() -> None:
    for call in (
        "torch.linalg.matrix_exp(input=a)",
        "torch.linalg.tensorsolve(input=a, other=a[0])",
        "torch.special.airy_ai(x=a)",
    ):
        found, expected = evaluate(call, {"a": data(3, 3) + 3})
        assert found.error is None, found.error
        assert expected.error is None
