"""Batching rules: `vmap` of a function is the function of each slice, and calls it once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support import data

import cltensor as torch
from cltensor.batching import calls

F = torch.nn.functional
PLACES = [[1, 0, 3], [0, 2, 2]]

# Functions of a matrix x of 4 x 4 numbers and of a matrix w that is the same for all slices.
RULES: dict[str, Callable[[Any, Any], Any]] = {
    "flip": lambda x, w: x.flip(0, 1),
    "roll": lambda x, w: x.roll(1, 1) + x.roll(3),
    "rot90": lambda x, w: x.rot90(),
    "diff": lambda x, w: torch.diff(x, dim=0),
    "cross": lambda x, w: torch.linalg.cross(x[:, :3], w[:, :3]),
    "msort": lambda x, w: torch.msort(x),
    "repeat_interleave": lambda x, w: x.repeat_interleave(2, 1),
    "trapezoid": lambda x, w: torch.trapezoid(x),
    "fft": lambda x, w: torch.fft.fft2(x).abs(),
    "rfft": lambda x, w: torch.fft.rfft(x, dim=0).real,
    "pad": lambda x, w: torch.constant_pad_nd(x, (1, 0, 0, 2), 1.5),
    "max_pool2d": lambda x, w: F.max_pool2d(x[None], 2),
    "avg_pool2d": lambda x, w: F.avg_pool2d(x[None, None], 2),
    "max_unpool2d": lambda x, w: F.max_unpool2d(*F.max_pool2d(x[None], 2, return_indices=True), 2),
    "interpolate": lambda x, w: F.interpolate(x[None, None], scale_factor=2),
    "pixel_shuffle": lambda x, w: F.pixel_shuffle(x.reshape(1, 4, 2, 2), 2),
    "unfold and fold": lambda x, w: F.fold(F.unfold(x[None, None], 2), (4, 4), 2),
    "affine_grid": lambda x, w: F.affine_grid(x[None, :2, :3], (1, 1, 3, 3), align_corners=False),
    "grid_sample": lambda x, w: F.grid_sample(
        x[None, None], x.reshape(1, 2, 4, 2), align_corners=False
    ),
    "gather": lambda x, w: x.gather(1, torch.tensor(PLACES)),
    "take_along_dim": lambda x, w: torch.take_along_dim(x, torch.tensor(PLACES * 2), 1),
    "take": lambda x, w: x.take(torch.tensor(PLACES)),
    "put": lambda x, w: x.put(torch.tensor([3, 5]), w[0, :2]),
    "masked_fill": lambda x, w: x.masked_fill(w > 0, 3.0),
    "select_scatter": lambda x, w: x.select_scatter(w[0], 0, 2),
    "slice_scatter": lambda x, w: x.slice_scatter(w[:2], 0, 1, 3),
    "diagonal_scatter": lambda x, w: x.diagonal_scatter(w[0]),
    "bucketize": lambda x, w: torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0])),
    "hstack": lambda x, w: torch.hstack([x, w]) - torch.vstack([x, x]).reshape(4, 8),
    "atleast_3d": lambda x, w: torch.atleast_3d(x),
    "split": lambda x, w: x.split([1, 3])[1] * 1,
    "chunk": lambda x, w: x.chunk(2, 1)[0] * 1,
    "diag": lambda x, w: x.diag() + x[0].diag(),
    "diag_embed": lambda x, w: torch.diag_embed(x),
    "diagflat": lambda x, w: torch.diagflat(x),
    "trace": lambda x, w: x.trace(),
    "fliplr": lambda x, w: x.fliplr() * x.flipud(),
    "tril": lambda x, w: x.tril() - x.triu(),
    "full_like": lambda x, w: torch.full_like(x, 2.0) + x,
    "prelu": lambda x, w: F.prelu(x, w[0, :1]),
    "mm": lambda x, w: x.mm(w) - w.mm(x),
    "bmm": lambda x, w: x.reshape(2, 2, 4).bmm(w.reshape(2, 4, 2)),
    "mv": lambda x, w: x.mv(w[0]),
    "outer": lambda x, w: torch.outer(x[0], w[1]),
    "vdot": lambda x, w: torch.vdot(x[0], w[1]),
    "inner": lambda x, w: torch.inner(x, w),
    "kron": lambda x, w: torch.kron(x[:2, :2], w),
    "addmm": lambda x, w: torch.addmm(w, x, w, beta=2),
    "bilinear": lambda x, w: F.bilinear(x, w, w.reshape(1, 4, 4)),
    "cdist": lambda x, w: torch.cdist(x, w),
    "diagonal": lambda x, w: x.diagonal() * 1,
    "permute": lambda x, w: x.permute(1, 0) * 1,
    "transpose": lambda x, w: x.transpose(0, 1) * 1,
    "select": lambda x, w: x.select(1, -1) * 1,
    "unfold a dim": lambda x, w: x.unfold(1, 2, 1) * 1,
    "repeat": lambda x, w: x.repeat(2, 1),
    "ravel": lambda x, w: x.ravel() * 1,
    "broadcast_tensors": lambda x, w: torch.broadcast_tensors(x[0], w)[0] * 1,
    "sum_to_size": lambda x, w: x.sum_to_size(1, 4),
    "view of bits": lambda x, w: x.view(torch.int32),
    "new_full": lambda x, w: x.new_full((2,), 3.0) + x[0, 0],
    "zero_": lambda x, w: (x * 1).zero_() + x,
    "masked_fill_": lambda x, w: (x * 1).masked_fill_(w > 0, 1.0),
}


@pytest.mark.usefixtures("one_by_one")
@pytest.mark.parametrize("dim", [0, -1])
@pytest.mark.parametrize("name", RULES)
def test_a_mapped_function_is_that_of_each_slice(name: str, dim: int) -> None:
    fn = RULES[name]
    xs, w = torch.tensor(data(3, 4, 4)), torch.tensor(data(4, 4, seed=1))
    given = xs if dim == 0 else xs.movedim(0, dim).contiguous()
    calls.LOOPED.clear()
    found = torch.vmap(lambda x: fn(x, w), in_dims=dim)(given)
    assert not calls.LOOPED
    expected = torch.stack([fn(x, w) for x in xs])
    assert found.dtype is expected.dtype
    torch.testing.assert_close(found, expected, equal_nan=True)
