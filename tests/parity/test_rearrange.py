"""`func.rearrange`: shapes, elements, classes of errors and their texts are torch's.

Texts are not compared for lines marked `names differ`: torch's errors call the dims d0, d1, …
"""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from parity.oracle import Ran, assert_same_error, assert_same_value, ct, first_line, lines, th

LINES = """
R(x, "a b c -> c b a")
R(x, "a b c->(a c) b")
R(x, "a b c -> (a b c)")
R(x, "a b c -> a 1 b c ()")
R(x, "a b c -> b (c ()) a")
R(x, "a b (c d)->(c a) (b d)", d=2)
R(x, "(a d) b c -> a d b c", d=2)
R(x, "... c -> c ...")
R(x, "a ... -> ... a")
R(x, "a ... c -> a (...) c")
R(x, "... (c d)->d (... c)", d=2)
R(x, "... -> ...")
R(x[:, :1], "a 1 c -> c a")
R([x, x], "n a b c -> a n b c")
R((x, x + 1), "n a b c -> (a n) b c")
R(x, "class b c -> b class c")
R(3, "a -> a")
R(x, "a b c -> a b")
R(x, "a b -> a b")
R(x, "a b c")
R(x, "a a c -> a c")
R(x, "a b c -> a a b c")
R(x, "(a b c -> a b c")
R(x, "a (b (c)) d -> a b c d")
R(x, "a b) c -> a b c")
R(x, "a 2 c -> a c")
R(x, "a b c -> a b c", z=2)
R(x, "(a ...) c -> a c")
R(x, "a ... ... -> a")
R(x, "a . c -> a c")
R(x, "a b-c d -> a")
R(x, "_a b c -> _a b c")
R(x, "1a b c -> b c")
R(x, "a b c -> a ... b c")
R(x, "a b c -> a->b c")
R(x, "a b c -> a b c", a="2")
R(x, "(a d) b c -> a d b c", d=3)
R(x, "(a d) b c -> a d b c")  ## names differ
R(x, "a b c -> a b c", a=5)  ## names differ
"""


@pytest.mark.parametrize("line", [*lines(LINES)])
def test_outcome(line: str) -> None:
    def program(torch: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x = torch.arange(24.0).reshape(2, 3, 4)
            return eval(line, {"R": torch.func.rearrange, "x": x})

    found, expected = Ran(ct, program), Ran(th, program)
    if expected.error is None:
        assert found.error is None, found.error
        assert_same_value(found.value, expected.value)
        return
    assert_same_error(found, expected)
    assert found.error is not None
    if "## names differ" not in LINES.partition(line)[2].partition("\n")[0]:
        assert first_line(found.error) == first_line(expected.error)


def test_gradients_pass() -> None:
    for torch in (th, ct):
        x = torch.arange(6.0).reshape(2, 3).requires_grad_()
        y = torch.func.rearrange(x, "a b -> (b a)")
        (y * torch.arange(6.0)).sum().backward()
        assert x.grad.tolist() == [[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]]
