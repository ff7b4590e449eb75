"""Masked tensors: values, masks, printing, errors and derivatives are torch's."""

from __future__ import annotations

import importlib
import subprocess
import sys
import warnings
from typing import Any

import pytest
from parity.oracle import th
from support import ct

CALLS = [
    "m", "m.sum()", "m.sum(1)", "m.mean(0)", "m.mean()", "m.prod(1)", "m.prod()", "m.amax(1)", "m.amin()", "m.argmax(1)", "m.argmin()",
    "m.std()", "m.var(1)", "torch.var(m)", "m.sum(0, keepdim=True)", "m.sum(dim=(0, 1))", "torch.sum(m, 1)", "torch.amax(m, 1)", "m.all(1)",
    "(m > 1).all(1)", "m.sum(1).get_mask()", "e.sum(1)", "e.sum(1).get_mask()", "e.mean(1)", "e.amax(1)", "m.to_tensor(9)", "m.get_mask()",
    "m[0]", "m[0, 1]", "m[:, 1:]", "m[m.get_mask()]", "m.t()", "m.transpose(0, 1)", "m.reshape(3, 2)", "m.view(6)", "m.flatten()",
    "m.unsqueeze(0)", "m.expand(2, 2, 3)", "m.select(0, 1)", "m.narrow(0, 0, 1)", "m.split(1)", "m.chunk(2)", "m.unfold(0, 1, 1)",
    "torch.cat([m, m])", "torch.stack([m, m])", "m * m", "m * torch.ones(2, 3)", "torch.ones(2, 3) * m", "m + 1.5", "m / m", "m // 2",
    "m % 2", "1 / m", "-m", "m ** 2", "m.pow(2)", "m == m", "m > 1", "m.eq(1)", "torch.atan2(m, m)", "torch.logaddexp(m, m)",
    "torch.maximum(m, m)", "m.add(torch.ones(3))", "torch.exp(m)", "m.log()", "m.clamp(1, 2)", "torch.isnan(m)", "m.softmax(1)",
    "torch.softmax(m, 1)", "torch.where(m.get_mask(), m, m)", "torch.where(m.get_mask(), m, w)", "torch.ones_like(m)", "m.clone()",
    "m.detach()", "m.data", "m.half()", "m.to(torch.float64)", "m.contiguous()", "m.to_dense()", "m.is_contiguous()", "m.stride()",
    "m.shape", "m.dtype", "m.ndim", "m.numel()", "len(m)", "m.is_leaf", "(m * 2).is_leaf", "m.requires_grad", "m.is_floating_point()",
    "n.abs_()", "n.add_(1)", "n.mul_(n)", "tm.is_masked_tensor(m)", "tm.is_masked_tensor(m.get_data())", "isinstance(m, torch.Tensor)",
    "tm.masked_tensor(torch.arange(8, 12), torch.tensor([True, False, True, True]))", "tm.masked_tensor(torch.tensor(3.0), torch.tensor(False))",
    "tm.masked_tensor(torch.arange(3) > 1, torch.tensor([True, False, True]))", "tm.masked_tensor(torch.arange(4), torch.arange(4) > 1).sum()",
    "tm.masked_tensor(torch.arange(12.0).reshape(2, 2, 3), torch.arange(12).reshape(2, 2, 3) % 2 == 0)",
    "tm.masked_tensor(torch.tensor([1.5, float('nan'), 1000.25]), torch.ones(3).bool())", "str(n.sum())",
    # what raises
    "m + w", "m @ m.t()", "m.tolist()", "m.numpy()", "m.max()", "m.any()", "m.cumsum(1)", "m.logsumexp(1)", "torch.zeros_like(m)", "m.dot(m)",
    "m.repeat(2, 1)", "torch.logical_and(m, m)", "torch.lerp(m, m, 0.5)", "m.abs_()", "m.mean(0).to_tensor(0) @ m", "bool(m)", "m.item()",
    "tm.masked_tensor(torch.ones(2), torch.ones(2))", "tm.masked_tensor(torch.ones(3), torch.ones(2).bool())",
    "tm.masked_tensor([1], torch.ones(1).bool())", "tm.masked_tensor(torch.ones(1), [1])", "tm.masked_tensor(m, m.get_mask())",
    "tm.masked_tensor(torch.ones(2) * 1j, torch.ones(2).bool())", "tm.masked_tensor(torch.arange(4), torch.arange(4) > 1).mean()",
]  # fmt: skip
GRADIENTS = [
    "m.sum()", "(m * m).sum()", "(m * n).exp().sum()", "m.mean()", "m.prod()", "m.amax()", "m.amax(1).sum()", "m.to_tensor(0).sum()",
    "m.t().sum(0).sum()", "m.reshape(3, 2).sum()", "(m + 1).sum()", "m.std()", "m.var(1).sum()", "(m / n).sum()", "m.sqrt().sum()",
    "m.clone().sum()", "m.double().sum()", "m.mean(1).sum()", "torch.cat([m, m]).sum()", "m.get_data().sum()", "m.prod(1).sum()",
]  # fmt: skip


def names(torch: Any) -> dict[str, Any]:
    tm = importlib.import_module(f"{torch.__name__}.masked")
    mask = torch.tensor([[True, False, True], [False, True, True]])
    values = torch.arange(6.0).reshape(2, 3)
    return {
        "torch": torch,
        "tm": tm,
        "m": tm.masked_tensor(values, mask, requires_grad=True),
        "n": tm.masked_tensor(values - 2.5, mask),
        "e": tm.masked_tensor(values, torch.tensor([[True, True, False], [False] * 3])),
        "w": tm.masked_tensor(values * 10, ~mask),
    }


def plain(value: Any) -> str:
    """Return how a value is printed, without the names of classes and nodes that differ."""
    text = repr(value).partition(", grad_fn=")[0].rstrip(")")
    return text.replace("cltensor", "torch")


@pytest.mark.ours
@pytest.mark.parametrize("call", CALLS)
def test_results_are_torchs(call: str) -> None:
    def outcome(torch: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return plain(eval(call, names(torch)))
            except Exception as error:
                words = str(error)
                return type(error), "" if "dispatch failed" in words else words.partition("(")[0]

    assert outcome(ct) == outcome(th)


@pytest.mark.ours
@pytest.mark.parametrize("call", GRADIENTS)
def test_derivatives_are_torchs(call: str) -> None:
    grads = []
    for torch in (ct, th):
        given = names(torch)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            eval(call, given).backward()
            grad = given["m"].grad
        assert grad.get_mask().tolist() == given["m"].get_mask().tolist()
        grads.append(grad.to_tensor(0).tolist())
    assert grads[0] == [pytest.approx(row, rel=1e-4) for row in grads[1]]


def test_derivatives_reach_a_plain_tensor() -> None:
    tm = importlib.import_module(f"{ct.__name__}.masked")
    x = ct.tensor([0.0, 1.0, 4.0], requires_grad=True)
    # The derivative of a root is infinite at 0, and times 0 it would be nan.
    (tm.as_masked_tensor(x, x > 0).sqrt() * 0 + 1).sum().backward()
    grad = x.grad.to_tensor(0) if tm.is_masked_tensor(x.grad) else x.grad
    assert grad.tolist() == [0.0] * 3
    x.grad = None
    tm.as_masked_tensor(x, x > 0).sqrt().sum().backward()
    grad = x.grad.to_tensor(0) if tm.is_masked_tensor(x.grad) else x.grad
    assert grad.tolist() == [0.0, 0.5, 0.25]


@pytest.mark.ours
def test_programs_without_masked_tensors_do_not_ask() -> None:
    program = (
        "import cltensor as torch\n"
        "import cltensor.masked\n"
        "before = torch.add.__code__\n"
        "from cltensor.masked import MaskedTensor\n"
        "import cltensor.masked.maskedtensor.core as core\n"
        "assert core.MaskedTensor is MaskedTensor and torch.add.__code__ is not before\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("name", ["masked_tensor", "as_masked_tensor", "MaskedTensor"])
def test_masked_tensors_have_copies(name: str) -> None:
    def told(torch: Any) -> list[str]:
        data, mask = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([True, False, True])
        made = getattr(torch.masked, name)(data, mask)
        data[0], mask[2] = 9.0, False
        made.add_(made)
        first = repr(made)
        made.sgn_()
        return [first, repr(made), str(data), str(mask)]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert told(ct) == told(th)


@pytest.mark.parametrize(
    "call",
    [
        "grad((x * x).sum(), x)", "grad((x * x).sum(), (x,))", "grad(x * x, x, torch.ones(3))", "grad(x * x, x, y)",
        "grad(outputs=(x * x).sum(), inputs=x)", "grad((x * x).sum(), (x, y), allow_unused=True)", "grad((x * x).sum(), (x, y))",
        "grad(grad((x * x * x).sum(), x, create_graph=True)[0].sum(), x)", "(backward((x * x).sum()), x.grad)",
        "(backward([(x * x).sum(), (x * 3).sum()]), x.grad)", "made(torch.arange(3), m, requires_grad=True)",
    ],
)  # fmt: skip
def test_autograd_functions_take_masked_tensors(call: str) -> None:
    def told(torch: Any) -> str:
        m, made = torch.tensor([True, False, True]), torch.masked.masked_tensor
        x, y = (made(torch.arange(1.0, 4.0), m, requires_grad=True) for _ in range(2))
        names = {"torch": torch, "m": m, "made": made, "x": x, "y": y}
        try:
            return repr(eval(call, {**vars(torch.autograd), **names}))
        except RuntimeError as error:
            return str(error)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert told(ct) == told(th)
