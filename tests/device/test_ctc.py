"""The CTC loss: against a sum over all alignments, its gradient against differences, both schedules, lengths and errors."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from backends import backend_for
from hypothesis import given, settings
from hypothesis import strategies as st
from support import close, data

import cltensor as ct
import cltensor.nn.functional as F
from cltensor.autograd import gradcheck
from cltensor.codegen import ctc as family

pytestmark = pytest.mark.usefixtures("one_by_one")  # compositions share kernels of single operators

TIMES, LENGTHS = [4, 3], [3, 1]
TARGETS = [[1, 2, 2], [3, 0, 0]]


def _log_probs() -> np.ndarray:
    x = data(4, 2, 4).astype(np.float64)
    return x - np.log(np.exp(x).sum(2, keepdims=True))


def _loss(lp: np.ndarray, labels: list[int], blank: int = 0) -> float:
    """Return minus the logarithm of the total probability of all paths that collapse to the labels."""
    total = 0.0
    for path in itertools.product(range(lp.shape[1]), repeat=lp.shape[0]):
        merged = [k for k, _ in itertools.groupby(path) if k != blank]
        if merged == labels:
            total += math.exp(sum(lp[t, c] for t, c in enumerate(path)))
    return -math.log(total) if total else math.inf


def _want(blank: int = 0) -> list[float]:
    lp = _log_probs()
    return [
        _loss(lp[:t, b], TARGETS[b][:n], blank)
        for b, (t, n) in enumerate(zip(TIMES, LENGTHS, strict=True))
    ]


def test_the_loss_sums_over_all_alignments() -> None:
    want = np.array(_want())
    for dtype in (ct.float32, ct.float64):
        lp = ct.tensor(_log_probs().tolist(), dtype=dtype)
        times, lengths = ct.tensor(TIMES), ct.tensor(LENGTHS)
        targets = ct.tensor(TARGETS)
        close(F.ctc_loss(lp, targets, times, lengths, reduction="none"), want)
        close(F.ctc_loss(lp, targets, TIMES, LENGTHS, reduction="sum"), want.sum())
        close(F.ctc_loss(lp, targets, times, lengths), (want / LENGTHS).mean())
        joined = ct.tensor([1, 2, 2, 3])
        close(F.ctc_loss(lp, joined, times, lengths, reduction="none"), want)
        strided = ct.tensor(np.array(TARGETS).T.tolist()).t()
        close(F.ctc_loss(lp, strided, times, lengths, reduction="none"), want)
    both = ct.tensor([_log_probs().tolist()] * 2) * ct.tensor([2.0, 1.0]).reshape(2, 1, 1, 1)
    close(F.ctc_loss(both[1], ct.tensor(TARGETS), TIMES, LENGTHS, reduction="none"), want)
    one = ct.tensor(_log_probs()[:, 0].tolist())
    close(F.ctc_loss(one, targets[0], (4,), (3,), reduction="none"), want[0])


def test_another_blank_and_no_labels() -> None:
    lp = _log_probs()
    t = ct.tensor(lp.tolist())
    targets = ct.tensor([[1, 2, 0], [2, 2, 2]])
    found = F.ctc_loss(t, targets, (4, 4), (2, 0), blank=3, reduction="none")
    close(found, [_loss(lp[:, 0], [1, 2], 3), _loss(lp[:, 1], [], 3)])
    empty = F.ctc_loss(t, targets, (0, 0), (0, 1), blank=3, reduction="none")
    assert empty.tolist() == [0.0, math.inf]


def test_the_gradient_is_that_of_the_loss() -> None:
    logits = ct.tensor(data(4, 2, 4).tolist(), dtype=ct.float64, requires_grad=True)

    def loss(x: Any) -> Any:
        return F.ctc_loss(x.log_softmax(2), ct.tensor(TARGETS), TIMES, LENGTHS, reduction="none")

    assert gradcheck(loss, (logits,))
    lp = ct.tensor(_log_probs().tolist(), requires_grad=True)
    out = F.ctc_loss(lp, ct.tensor(TARGETS), TIMES, LENGTHS)
    (g,) = ct.autograd.grad(out, lp, create_graph=True)
    assert g[3, 1].abs().sum().item() == 0  # beyond the sample's time
    with pytest.raises(RuntimeError, match="_ctc_loss_backward is not implemented"):
        g.sum().backward()


def test_labels_that_do_not_fit() -> None:
    lp = ct.tensor(_log_probs().tolist(), requires_grad=True)
    targets = ct.tensor(TARGETS)
    assert F.ctc_loss(lp, targets, (2, 3), LENGTHS).item() == math.inf
    out = F.ctc_loss(lp, targets, (2, 3), LENGTHS, reduction="sum", zero_infinity=True)
    close(out, _want()[1])
    out.backward()
    assert lp.grad[:, 0].abs().sum().item() == 0
    assert lp.grad[:, 1].abs().sum().item() > 0


@pytest.mark.elsewhere
@pytest.mark.parametrize("dt", ["float32", "float64"])
@given(
    times=st.integers(1, 40), classes=st.integers(2, 40), longest=st.integers(0, 40), seed=st.integers(0, 99)
)  # fmt: skip
@settings(max_examples=12, deadline=None, derandomize=True)
def test_schedules_agree(dt: str, times: int, classes: int, longest: int, seed: int) -> None:
    from kernel_tools import get, put, torch

    rng = np.random.default_rng(seed)
    labels = torch.tensor(rng.integers(1, classes, (3, max(longest, 1))))
    lengths = [longest, *rng.integers(0, longest + 1, 2).tolist()]
    all_times = [times, *rng.integers(1, times + 1, 2).tolist()]
    logs = torch.tensor(rng.standard_normal((times, 3, classes))).log_softmax(2)
    found = []
    for b in map(backend_for, ("cpu", "gpu")):
        lp, targets = put(b, logs.to(getattr(torch, dt))), put(b, labels)
        starts = [i * labels.shape[1] for i in range(3)]
        x = family.samples(b, lp, targets, all_times, lengths, starts, 0)
        loss, states = family.alpha(b, x)
        slope = put(b, torch.tensor([1.0, 2.0, 3.0], dtype=getattr(torch, dt)))
        grads = [family.gradient(b, x, states, loss, slope, forgive) for forgive in (False, True)]
        found.append([get(b, v) for v in (loss, *grads)])
    tolerance = 1e-12 if dt == "float64" else 1e-5
    for cpu, gpu in zip(*found, strict=True):
        np.testing.assert_allclose(cpu, gpu, rtol=tolerance, atol=10 * tolerance)


def test_errors() -> None:
    lp, targets = ct.tensor(_log_probs().tolist()), ct.tensor(TARGETS)
    cases: list[tuple[tuple, dict[str, Any], str]] = [
        ((TIMES, LENGTHS), {"blank": 4}, "blank must be in label range"),
        (([5, 3], LENGTHS), {}, "Expected input_lengths to have value at most 4, but got value 5"),
        (([4], LENGTHS), {}, "input_lengths must be of size batch_size"),
        ((TIMES, [4, 1]), {}, "Expected tensor to have size at least 4 at dimension 1"),
        ((ct.tensor([4.0, 3.0]), LENGTHS), {}, "input_lengths must be integral"),
    ]
    for lengths, kwargs, text in cases:
        with pytest.raises(RuntimeError, match=text):
            F.ctc_loss(lp, targets, *lengths, **kwargs)
    with pytest.raises(
        RuntimeError, match=r"label (9 of sample 0|11 of sample 1) is not in the label range"
    ):
        F.ctc_loss(lp, targets + 8, TIMES, LENGTHS).item()
    with pytest.raises(RuntimeError, match=r"label 4 of sample [01] is not in the label range"):
        F.ctc_loss(lp, targets.clamp(min=4), TIMES, LENGTHS).item()
    with pytest.raises(ValueError, match="x is not a valid value for reduction"):
        F.ctc_loss(lp, targets, TIMES, LENGTHS, reduction="x")
