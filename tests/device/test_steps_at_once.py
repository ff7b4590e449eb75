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
