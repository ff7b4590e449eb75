"""Small functions of several steps are one replayed call, with the values, layouts and dtypes of single steps."""

from __future__ import annotations

import pytest
from calls import whole

import cltensor as torch
from cltensor.ops import replay
from cltensor.runtime import STATS

F = torch.nn.functional

ONE_CALL = {
    "margin_ranking_loss": lambda x, y: F.margin_ranking_loss(x, y, x),
    "hinge_embedding_loss": lambda x, y: F.hinge_embedding_loss(x, y, margin=0.5),
    "soft_margin_loss": F.soft_margin_loss,
    "cosine_embedding_loss": lambda x, y: F.cosine_embedding_loss(x, y, x[:, 0]),
    "triplet_margin_loss": lambda x, y: F.triplet_margin_loss(x, y, y, swap=True),
    "poisson_nll_loss": F.poisson_nll_loss,
    "kl_div": lambda x, y: F.kl_div(x, y, reduction="sum", log_target=True),
    "multi_margin_loss": lambda x, y: F.multi_margin_loss(x, torch.arange(4, device=x.device)),
    "norm": lambda x, y: x.norm(3, 1),
    "nanmean": lambda x, y: x.nanmean(1),
    "count_nonzero": lambda x, y: x.count_nonzero(0),
    "diff": lambda x, y: x.diff(2, 0, prepend=y),
    "trapezoid": lambda x, y: torch.trapezoid(x, dx=0.5),
    "trace": lambda x, y: x.trace(),
    "block_diag": lambda x, y: torch.block_diag(x, y[0], x[0, 0]),
    "vander": lambda x, y: torch.vander(x[0], 4),
    "linalg.cross": lambda x, y: torch.linalg.cross(x[:3], y[1:, :1], dim=0),
    "one_hot": lambda x, y: F.one_hot(torch.arange(4, device=x.device), 6),
}


@pytest.mark.parametrize("name", ONE_CALL)
def test_a_function_of_several_steps_is_one_call(name: str) -> None:
    fn, cases = ONE_CALL[name], [(whole(4, 6), whole(4, 6)) for _ in range(4)]
    torch.opencl.synchronize()
    found = [fn(*pair) for pair in cases]
    before = STATS.replays
    again = fn(*cases[-1])
    assert STATS.replays == before + 1
    for result, operands in zip([*found, again], [*cases, cases[-1]], strict=True):
        replay.forget()
        wanted = fn(*operands)
        assert result.dtype is wanted.dtype
        assert result.stride() == wanted.stride()
        assert result.tolist() == wanted.tolist()


def test_a_new_default_dtype_decides_what_integers_give() -> None:
    xs = torch.arange(12).reshape(3, 4)
    try:
        for _ in range(3):
            assert F.poisson_nll_loss(xs, xs, reduction="none").dtype is torch.float32
            assert torch.cov(xs).dtype is torch.float32
        torch.set_default_dtype(torch.float16)
        assert F.poisson_nll_loss(xs, xs, reduction="none").dtype is torch.float16
        assert torch.cov(xs).dtype is torch.float16
    finally:
        torch.set_default_dtype(torch.float32)


LOSSES = {
    "MultiMarginLossBackward0": lambda x, y: F.multi_margin_loss(x, torch.arange(4)),
    "SoftMarginLossBackward0": F.soft_margin_loss,
    "MeanBackward0": lambda x, y: F.cosine_embedding_loss(x, y, torch.tensor([1, -1, 1, -1])),
    "SumBackward0": lambda x, y: F.hinge_embedding_loss(x, y, reduction="sum"),
    "ClampMinBackward0": lambda x, y: F.margin_ranking_loss(x, y, x, reduction="none"),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_and_its_gradient_are_a_call_each(name: str) -> None:
    x, y = whole(4, 6).requires_grad_(), whole(4, 6)
    for _ in range(4):
        before = STATS.replays
        loss = LOSSES[name](x, y)
        (slope,) = torch.autograd.grad(loss, x, torch.ones_like(loss))
        replays = STATS.replays - before
    assert loss.grad_fn.name() == name
    assert replays == 2
    replay.forget()
    (wanted,) = torch.autograd.grad(LOSSES[name](x, y), x, torch.ones_like(loss))
    assert slope.tolist() == wanted.tolist()


def test_operands_of_a_loss_may_be_written_before_its_gradient_as_in_torch() -> None:
    for _ in range(3):
        x, target = torch.ones(2, 3, requires_grad=True), torch.tensor([1, -1])
        loss = F.cosine_embedding_loss(x, whole(2, 3), target)
        target.neg_()
        loss.backward()
        scores = x * 1
        loss = F.multi_margin_loss(scores, torch.tensor([0, 2]))
        with torch.no_grad():
            scores.mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()
