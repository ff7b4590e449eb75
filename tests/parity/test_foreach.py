"""`torch._foreach_*`: the same lists of results as torch's, also in place, and the same gradients and errors."""

from __future__ import annotations

from typing import Any

import pytest
from parity.oracle import Ran, assert_same_error, assert_same_value, tensor, th
from support import ct, data

UNARY = [
    "abs",
    "acos",
    "asin",
    "atan",
    "ceil",
    "cos",
    "cosh",
    "erf",
    "erfc",
    "exp",
    "expm1",
    "floor",
    "frac",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "neg",
    "reciprocal",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
]
LINES = [
    *(f"torch._foreach_{n}(a), torch._foreach_{n}_(a)" for n in UNARY),
    *(
        f"torch._foreach_{n}(a, b), torch._foreach_{n}(a, 2), torch._foreach_{n}(a, [2, 3.0]), torch._foreach_{n}_(a, b), torch._foreach_{n}_(a, 0.5)"
        for n in ("add", "sub", "mul", "div", "pow", "maximum", "minimum", "clamp_min", "clamp_max")
    ),
    "torch._foreach_add(a, b, alpha=2), torch._foreach_sub(a, b, alpha=3), torch._foreach_add(a, torch.tensor(2.0), alpha=3)",
    "torch._foreach_mul(a, torch.tensor(2.0)), torch._foreach_div_(a, torch.tensor(2.0)), torch._foreach_pow(2, a)",
    "torch._foreach_addcmul(a, b, c, value=2), torch._foreach_addcmul(a, b, c, [2, 3.0]), torch._foreach_addcdiv_(a, b, c, torch.tensor([2.0, 3.0]))",
    "torch._foreach_lerp(a, b, 0.3), torch._foreach_lerp(a, b, [0.1, 0.2]), torch._foreach_lerp_(a, b, c)",
    "torch._foreach_copy_(a, b), torch._foreach_clone(a), torch._foreach_max(b), torch._foreach_zero_(a)",
    "torch._foreach_norm(a), torch._foreach_norm(a, 1), torch._foreach_norm(a, float('inf')), torch._foreach_norm(a, dtype=torch.float64)",
    "torch._foreach_mm([x.view(2, 2) for x in a[:1]], [x.view(2, 2) for x in b[:1]])",
    "torch.autograd.grad(sum(x.sum() for x in torch._foreach_mul(torch._foreach_exp(r), b)), r)",
]  # fmt: skip
ERRORS = """
torch._foreach_exp([])
torch._foreach_exp(a[0])
torch._foreach_exp(3)
torch._foreach_exp([3])
torch._foreach_add(a, b[:1])
torch._foreach_add([], b)
torch._foreach_add(a, [1.0])
torch._foreach_add(a, torch.ones(2))
torch._foreach_addcmul(a, b, c[:1])
torch._foreach_zero_([])
""".strip().splitlines()


def run(module: Any, line: str) -> Any:
    """Evaluate a line on the lists a, b, c and r of two tensors each; those in r require grad."""
    names: dict[str, Any] = {"torch": module}
    for n, name in enumerate("abcr"):
        values = [abs(data(4, seed=n)) * 0.4 + 0.2, abs(data(2, 3, seed=n + 10)) * 0.4 + 0.2]
        names[name] = [tensor(module, v, requires_grad=name == "r") for v in values]
    return eval(line, names)


@pytest.mark.parametrize("line", LINES)
def test_values(line: str) -> None:
    found, expected = (Ran(m, lambda m: run(m, line)) for m in (ct, th))
    assert expected.error is None, expected.error
    assert found.error is None, f"{type(found.error).__name__}: {found.error}"
    assert_same_value(found.value, expected.value, tol=2e-5, where=line)


@pytest.mark.parametrize("line", ERRORS)
def test_errors(line: str) -> None:
    found, expected = (Ran(m, lambda m: run(m, line)) for m in (ct, th))
    assert expected.error is not None
    assert_same_error(found, expected)


def test_in_place_gives_back_the_list() -> None:
    def names(module: Any) -> list[bool]:
        listed = [tensor(module, data(3)), tensor(module, data(2))]
        fixed = tuple(listed)
        made = [
            module._foreach_add_(listed, 1) is listed,
            module._foreach_lerp_(listed, listed, 0.5) is listed,
            module._foreach_exp_(fixed) is fixed,
            module._foreach_copy_(listed, listed) is listed,
            module._foreach_zero_(fixed) is fixed,
        ]
        return [*made, all(x is y for x, y in zip(listed, fixed, strict=True))]

    assert names(ct) == names(th) == [True] * 6
