"""Tensors made in inference mode, used outside of it: which ops are recorded and which raise errors, as in torch.
Second derivatives of step functions.
"""

from __future__ import annotations

from typing import Any

import pytest
from parity.oracle import Ran, assert_same_outcome, first_line, lines, th
from support import ct

# `i`, `p` and `b` were made in inference mode; `i` and `p` require grad. `n` was made outside of it and requires grad.
LINES = """
i * i
i * 2
i + 1
i.exp()
i.sum()
i.view(3, 1)
i.clone()
(i.clone() * n).sum().backward() or i.grad
(i * 2).sum().backward() or i.grad
i + n
i * n
i * torch.ones(3)
b * n
p.relu()
i @ i
i.add_(1)
b.add_(1)
(n * 1).mul_(i)
i.data.is_inference()
b.data.is_inference()
i.detach().is_inference()
torch.nn.functional.linear(i, torch.ones(2, 3))
"""


def _made(module: Any) -> dict[str, Any]:
    with module.inference_mode():
        i, b = module.ones(3, requires_grad=True), module.ones(3)
        p = module.nn.Parameter(module.ones(3))
    return {"i": i, "b": b, "p": p, "n": module.ones(3, requires_grad=True)}


@pytest.mark.parametrize("line", lines(LINES))
def test_used_outside(line: str) -> None:
    found, expected = (Ran(m, lambda m: eval(line, {"torch": m, **_made(m)})) for m in (ct, th))
    assert_same_outcome(found, expected, where=f"{line}: ")
    if expected.error is not None and found.error is not None:
        assert first_line(found.error) == first_line(expected.error)


# Second derivatives of step functions are zeros, not None. x (3, 4), w (2, 4) and b (2,) require grad; t are targets.
STEPS = """
F.nll_loss(x, t)
F.nll_loss(x, t, reduction="sum") * b[0]
F.nll_loss(x, t, weight=c) * b[0] ** 2
F.linear(x, w, b).relu().sum()
F.linear(F.linear(x, w, b).relu(), w.T.contiguous()).leaky_relu().sum()
(F.hardtanh(x) * x).sum() * b.sum()
F.threshold(x, 0.1, 2.0).prod()
"""


def _second(module: Any, line: str) -> list[Any]:
    """Return the second derivatives of a line by `grad` and by `backward`, and the gradients that a hook saw."""
    F = module.nn.functional
    x = (module.arange(12.0).reshape(3, 4).sin()).requires_grad_()
    w = (module.arange(8.0).reshape(2, 4).cos()).requires_grad_()
    b = module.tensor([0.3, -0.2]).requires_grad_()
    names = {"F": F, "x": x, "w": w, "b": b, "t": module.tensor([0, 3, 1])}
    value = eval(line, names | {"c": module.tensor([1.0, 2.0, 0.5, 0.1])})
    first = module.autograd.grad(value, (x, w, b), create_graph=True, allow_unused=True)
    total = sum(g.square().sum() + g.sum() for g in first if g is not None)
    seen: list[Any] = []
    x.register_hook(lambda g: seen.append(g))
    again = module.autograd.grad(total, (x, w, b), allow_unused=True, retain_graph=True)
    total.backward()
    return [*again, x.grad, w.grad, b.grad, *seen]


@pytest.mark.parametrize("line", lines(STEPS))
def test_second_derivatives_of_steps_are_zeros(line: str) -> None:
    found, expected = (Ran(m, lambda m: _second(m, line)) for m in (ct, th))
    assert_same_outcome(found, expected, 1e-4, f"{line}: ")
