"""Operands and gradients at an offset into a storage give the results of separate ones, in every kernel family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from calls import CALLS, listed, places, whole

import cltensor as torch

F, L = torch.nn.functional, torch.linalg


def _square(*batch: int, n: int = 4) -> Any:
    """Matrices that have an inverse, and no two eigenvalues near each other."""
    return torch.randn(*batch, n, n) / 8 + torch.diag(torch.arange(1.0, n + 1))


def _positive() -> Any:
    a = _square(2)
    return a @ a.mT


def _lines() -> Any:
    return torch.randn(2, 3, 9)


def _image() -> Any:
    return torch.randn(2, 3, 6, 8)


def _volume() -> Any:
    return torch.randn(1, 2, 4, 5, 6)


MORE: dict[str, tuple[Callable[..., Any], Callable[[], tuple]]] = {
    # images and lines
    "grid_sample, bicubic": (
        lambda x, p: F.grid_sample(x, p, "bicubic", "reflection", True),
        lambda: (_image(), torch.randn(2, 3, 5, 2)),
    ),
    "grid_sample, volumes": (
        lambda x, p: F.grid_sample(x, p, padding_mode="border", align_corners=False),
        lambda: (_volume(), torch.randn(1, 3, 2, 3, 3)),
    ),
    "affine_grid": (
        lambda t: F.affine_grid(t, (2, 3, 4, 5), align_corners=False),
        lambda: (torch.randn(2, 2, 3),),
    ),
    "bilinear images": (lambda x: F.interpolate(x, (9, 5), mode="bilinear"), lambda: (_image(),)),
    "bicubic images": (lambda x: F.interpolate(x, (9, 12), mode="bicubic"), lambda: (_image(),)),
    "antialiased images": (
        lambda x: F.interpolate(x, (3, 5), mode="bilinear", antialias=True),
        lambda: (_image(),),
    ),
    "linear lines": (lambda x: F.interpolate(x, 13, mode="linear"), lambda: (_lines(),)),
    "trilinear volumes": (lambda x: F.interpolate(x, 7, mode="trilinear"), lambda: (_volume(),)),
    "max_pool2d that meets": (lambda x: F.max_pool2d(x, 3, 2, 1), lambda: (_image(),)),
    "max_pool1d": (lambda x: F.max_pool1d(x, 2), lambda: (_lines(),)),
    "max_pool3d": (lambda x: F.max_pool3d(x, 2), lambda: (_volume(),)),
    "max_unpool2d": (
        lambda x, i: F.max_unpool2d(x, i, 2),
        lambda: F.max_pool2d(_image(), 2, return_indices=True),
    ),
    "avg_pool2d that meets": (lambda x: F.avg_pool2d(x, 3, 2, 1), lambda: (_image(),)),
    "avg_pool3d": (lambda x: F.avg_pool3d(x, 2), lambda: (_volume(),)),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, (4, 3)), lambda: (_image(),)),
    "adaptive_max_pool2d": (lambda x: F.adaptive_max_pool2d(x, (4, 3)), lambda: (_image(),)),
    "fractional_max_pool2d": (
        lambda x, s: F.fractional_max_pool2d(x, 2, (3, 4), _random_samples=s),
        lambda: (_image(), torch.rand(2, 3, 2)),
    ),
    "lp_pool2d": (lambda x: F.lp_pool2d(x, 2.0, 2), lambda: (_image(),)),
    "unfold": (lambda x: F.unfold(x, 3, padding=1), lambda: (_image(),)),
    "fold": (lambda x: F.fold(x, (6, 8), 2, stride=2), lambda: (torch.randn(2, 12, 12),)),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), lambda: (torch.randn(2, 8, 3, 5),)),
    "reflected edges": (lambda x: F.pad(x, (2, 1, 1, 2), "reflect"), lambda: (_image(),)),
    "repeated edges": (lambda x: F.pad(x, (2, 1, 1, 2), "replicate"), lambda: (_image(),)),
    "edges of the other side": (lambda x: F.pad(x, (2, 1), "circular"), lambda: (_lines(),)),
    # convolutions
    "conv1d": (F.conv1d, lambda: (_lines(), torch.randn(4, 3, 3))),
    "conv3d": (F.conv3d, lambda: (_volume(), torch.randn(3, 2, 2, 2, 2))),
    "depthwise convolution": (
        lambda x, w: F.conv2d(x, w, padding=1, groups=3),
        lambda: (_image(), torch.randn(3, 1, 3, 3)),
    ),
    "convolution of many channels": (
        lambda x, w: F.conv2d(x, w, padding=1),
        lambda: (torch.randn(1, 32, 8, 8), torch.randn(32, 32, 3, 3)),
    ),
    "1 x 1 convolution": (F.conv2d, lambda: (_image(), torch.randn(5, 3, 1, 1))),
    "transposed convolution": (
        lambda x, w: F.conv_transpose2d(x, w, stride=2),
        lambda: (_image(), torch.randn(3, 4, 3, 3)),
    ),
    # norms and losses
    "batch_norm": (
        lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
        lambda: (_image(), torch.randn(3), torch.randn(3)),
    ),
    "group_norm": (lambda x, w: F.group_norm(x, 3, w), lambda: (_image(), torch.randn(3))),
    "instance_norm": (F.instance_norm, lambda: (_image(),)),
    "rms_norm": (lambda x, w: F.rms_norm(x, (8,), w), lambda: (_image(), torch.randn(8))),
    "local_response_norm": (lambda x: F.local_response_norm(x, 3), lambda: (_image(),)),
    "normalize": (F.normalize, lambda: (_image(),)),
    "renorm": (lambda x: x.renorm(2, 1, 1.0), lambda: (_image(),)),
    "log_softmax": (lambda x: x.log_softmax(1), lambda: (_image(),)),
    "logsumexp": (lambda x: x.logsumexp(1), lambda: (_image(),)),
    "nll_loss of images": (
        lambda x, t, w: F.nll_loss(x, t, w.detach()),
        lambda: (_image(), places(2, 6, 8, below=3), torch.rand(3)),
    ),
    "cross_entropy of probabilities": (
        lambda x, t: F.cross_entropy(x, t.softmax(1)),
        lambda: (torch.randn(5, 7), torch.randn(5, 7)),
    ),
    "mse_loss": (F.mse_loss, lambda: (_image(), _image())),
    "kl_div": (lambda x, t: F.kl_div(x, t, reduction="sum"), lambda: (_image(), torch.rand(8))),
    "binary_cross_entropy_with_logits": (
        F.binary_cross_entropy_with_logits,
        lambda: (_image(), torch.rand(2, 3, 6, 8)),
    ),
    "multi_margin_loss": (
        F.multi_margin_loss, lambda: (torch.randn(5, 7), places(5, below=7))
    ),
    "multilabel_margin_loss": (
        F.multilabel_margin_loss,
        lambda: (torch.randn(3, 4), torch.tensor([[1, 0, -1, 2], [3, -1, 0, 0], [0, 1, 2, 3]])),
    ),
    "cosine_similarity": (F.cosine_similarity, lambda: (_image(), _image())),
    "ctc_loss": (
        lambda x, t: F.ctc_loss(x.log_softmax(2), t, (6, 6), (3, 2)),
        lambda: (torch.randn(6, 2, 5), places(2, 3, below=4) + 1),
    ),
    # order and scans
    "topk": (lambda x: tuple(x.topk(3, 1)), lambda: (_image(),)),
    "kthvalue": (lambda x: tuple(x.kthvalue(2, 1)), lambda: (_image(),)),
    "median": (lambda x: tuple(x.median(1)), lambda: (_image(),)),
    "mode": (lambda x: tuple(x.mode(1)), lambda: (whole(5, 7),)),
    "quantile": (lambda x: x.quantile(0.3, 2), lambda: (_image(),)),
    "unique": (lambda x: x.detach().unique(), lambda: (whole(5, 7),)),
    "unique_consecutive": (lambda x: x.detach().unique_consecutive(), lambda: (whole(40),)),
    "argsort": (lambda x: x.argsort(0, stable=True), lambda: (whole(5, 7),)),
    "searchsorted": (
        torch.searchsorted, lambda: (torch.randn(2, 9).sort(1)[0], torch.randn(2, 4))
    ),
    "cumprod": (lambda x: x.cumprod(0), lambda: (torch.randn(5, 7),)),
    "logcumsumexp": (lambda x: x.logcumsumexp(1), lambda: (torch.randn(5, 7),)),
    "cumsum of columns": (lambda x: x.cumsum(0), lambda: (torch.randn(5, 7),)),
    # reductions
    "var": (lambda x: x.var(1), lambda: (_image(),)),
    "std of all": (lambda x: x.std(), lambda: (_image(),)),
    "prod": (lambda x: x.prod(2), lambda: (_image(),)),
    "norm": (lambda x: x.norm(3.0, 0), lambda: (_image(),)),
    "amax": (lambda x: x.amax((0, 2)), lambda: (_image(),)),
    "aminmax": (lambda x: tuple(x.aminmax(dim=1)), lambda: (_image(),)),
    "count_nonzero": (lambda x: x.count_nonzero(1), lambda: (whole(5, 7),)),
    "any": (lambda x: (x > 3).any(1), lambda: (whole(5, 7),)),
    "histogram": (
        lambda x, w: torch.histogram(x, 5, range=(-3.0, 3.0), weight=w)[0],
        lambda: (torch.randn(50), torch.rand(50)),
    ),
    # places
    "take": (lambda x, i: x.take(i), lambda: (torch.randn(5, 7), places(4, below=35))),
    "put": (
        lambda x, i, s: x.put(i, s),
        lambda: (torch.randn(5, 7), torch.tensor([3, 30, 9]), torch.randn(3)),
    ),
    "index_put": (
        lambda x, i, s: x.index_put((i,), s, accumulate=True),
        lambda: (torch.randn(5, 7), places(4, below=5), torch.randn(4, 7)),
    ),
    "index_copy": (
        lambda x, i, s: x.index_copy(1, i, s),
        lambda: (torch.randn(5, 7), torch.tensor([6, 0, 2]), torch.randn(5, 3)),
    ),
    "index_fill": (lambda x, i: x.index_fill(0, i, 2.0), lambda: (whole(5, 7), places(3, below=5))),
    "index_reduce": (
        lambda x, i, s: x.index_reduce(0, i, s, "amax"),
        lambda: (torch.randn(5, 7), places(4, below=5), torch.randn(4, 7)),
    ),
    "scatter_reduce": (
        lambda x, i, s: x.scatter_reduce(1, i, s, "mean"),
        lambda: (torch.randn(5, 7), places(5, 3, below=7), torch.randn(5, 3)),
    ),
    "masked_select": (lambda x, m: x[m > 0], lambda: (torch.randn(5, 7), whole(5, 7))),
    "masked_scatter": (
        lambda x, m, s: x.masked_scatter(m > 0, s),
        lambda: (torch.randn(5, 7), whole(5, 7), torch.randn(5, 7)),
    ),
    "masked_fill": (lambda x, m: x.masked_fill(m > 0, 2.0), lambda: (_image(), whole(8))),
    "nonzero": (lambda x: x.nonzero(), lambda: (whole(5, 7),)),
    "repeat_interleave": (
        lambda x, n: x.repeat_interleave(n, 0), lambda: (torch.randn(5, 7), places(5, below=3))
    ),
    "bags": (
        lambda i, w, o, s: F.embedding_bag(i, w, o, mode="sum", per_sample_weights=s),
        lambda: (places(6, below=5), torch.randn(5, 7), torch.tensor([0, 2]), torch.randn(6)),
    ),
    "segment_reduce": (
        lambda x, n: torch.segment_reduce(x, "mean", lengths=n, axis=0),
        lambda: (torch.randn(5, 7), torch.tensor([2, 3])),
    ),
    # products
    "batched product": (torch.bmm, lambda: (torch.randn(3, 5, 7), torch.randn(3, 7, 2))),
    "matrix by vector": (torch.mv, lambda: (torch.randn(40, 33), torch.randn(33))),
    "vector by matrix": (lambda v, a: v @ a, lambda: (torch.randn(40), torch.randn(40, 33))),
    "dot": (torch.dot, lambda: (torch.randn(77), torch.randn(77))),
    "addmm": (
        torch.addmm, lambda: (torch.randn(20), torch.randn(30, 50), torch.randn(50, 20))
    ),
    "larger product": (torch.mm, lambda: (torch.randn(70, 90), torch.randn(90, 50))),
    "product of bfloat16": (
        lambda a, b: (a.bfloat16()[1] @ b.bfloat16()[1]).float(),
        lambda: (torch.randn(2, 9, 20), torch.randn(2, 20, 7)),
    ),
    "bilinear": (
        F.bilinear, lambda: (torch.randn(5, 3), torch.randn(5, 4), torch.randn(2, 3, 4))
    ),
    "attention with a mask": (
        F.scaled_dot_product_attention,
        lambda: (*(torch.randn(2, 2, 9, 8) for _ in range(3)), torch.randn(9, 9)),
    ),
    "attention of one query": (
        F.scaled_dot_product_attention,
        lambda: (torch.randn(2, 1, 8), torch.randn(2, 33, 8), torch.randn(2, 33, 8)),
    ),
    "cross": (lambda a, b: L.cross(a, b), lambda: (torch.randn(9, 3), torch.randn(9, 3))),
    "cdist by products": (torch.cdist, lambda: (torch.randn(30, 8), torch.randn(40, 8))),
    # factors
    "inv": (L.inv, lambda: (_square(2),)),
    "solve": (L.solve, lambda: (_square(2), torch.randn(2, 4, 3))),
    "solve_triangular": (
        lambda a, b: L.solve_triangular(a, b, upper=True), lambda: (_square(), torch.randn(4, 3))
    ),
    "cholesky": (L.cholesky, lambda: (_positive(),)),
    "cholesky_solve": (
        lambda b, a: torch.cholesky_solve(b, a), lambda: (torch.randn(4, 2), _square())
    ),
    "eigh": (lambda a: L.eigvalsh(a), lambda: (_positive(),)),
    "svdvals": (L.svdvals, lambda: (_square(),)),
    "qr": (lambda a: tuple(L.qr(a)), lambda: (_square(),)),
    "det": (L.det, lambda: (_square(2),)),
    "householder_product": (
        L.householder_product, lambda: (torch.randn(5, 3), torch.rand(3))
    ),
    "matrix_exp": (L.matrix_exp, lambda: (_square(2) / 4,)),
    # the rest
    "where": (lambda c, a, b: torch.where(c > 0, a, b), lambda: (whole(5, 7), _lines()[0, :1, :7], whole(5, 1))),
    "lerp": (torch.lerp, lambda: (torch.randn(5, 7), torch.randn(7), torch.rand(5, 1))),
    "complex products": (
        lambda a, b: torch.view_as_real(torch.complex(a, b) * torch.complex(b, a)),
        lambda: (torch.randn(5, 7), torch.randn(5, 7)),
    ),
    "fft": (lambda x: torch.view_as_real(torch.fft.fft(x)), lambda: (torch.randn(3, 16),)),
    "fft2": (lambda x: torch.fft.rfft2(x).abs(), lambda: (torch.randn(2, 6, 10),)),
    "irfft": (
        lambda x: torch.fft.irfft(torch.view_as_complex(x)), lambda: (torch.randn(3, 9, 2),)
    ),
    "stft": (
        lambda x, w: torch.stft(x, 16, window=w, return_complex=True).abs(),
        lambda: (torch.randn(2, 80), torch.hann_window(16) + 0.1),
    ),
    "diag_embed": (torch.diag_embed, lambda: (torch.randn(3, 4),)),
    "triu of a batch": (lambda x: x.triu(-1), lambda: (torch.randn(3, 5, 4),)),
    "kron": (torch.kron, lambda: (torch.randn(2, 3), torch.randn(4, 2))),
    "roll of two dims": (lambda x: x.roll((1, 2), (0, 1)), lambda: (torch.randn(5, 7),)),
    "multi-head attention": (
        lambda x, w, b, o: F.multi_head_attention_forward(
            x, x, x, 8, 2, w, b, None, None, False, 0.0, o, None
        )[0],
        lambda: (torch.randn(5, 2, 8), torch.randn(24, 8), torch.randn(24), torch.randn(8, 8)),
    ),
    "prelu": (F.prelu, lambda: (_image(), torch.rand(3))),
    "multi-tensor add": (
        lambda *xs: tuple(torch._foreach_add(list(xs[:3]), list(xs[3:]), alpha=2.0)),
        lambda: tuple(whole(5, 7) for _ in range(6)),
    ),
}  # fmt: skip
EVERY = {**CALLS, **MORE}


def _amid(t: Any) -> Any:
    """Return a contiguous view of equal values that has a nonzero offset in a larger storage."""
    return torch.stack([torch.full_like(t, 3), t])[1]


def _outcome(fn: Callable[..., Any], operands: tuple, laid: Callable[[Any], Any]) -> list[Any]:
    """Results, and gradients by every operand, with operands and slopes laid so."""
    placed = [laid(t.detach()) for t in operands]
    for t in placed:
        t.requires_grad_(t.is_floating_point())
    results = listed(fn(*placed))
    wanted = [t for t in placed if t.requires_grad]
    roots = [t for t in results if t.requires_grad]
    if not roots:
        return results
    slopes = [laid((torch.arange(t.numel()) % 7 - 3.0).reshape(t.shape).to(t.dtype)) for t in roots]
    return results + list(torch.autograd.grad(roots, wanted, slopes, allow_unused=True))


@pytest.mark.usefixtures("one_by_one")  # gradients share kernels of single operators
@pytest.mark.parametrize("name", EVERY)
def test_where_memory_begins(name: str) -> None:
    fn, make = EVERY[name]
    operands = make()
    alone = _outcome(fn, operands, torch.clone)
    for found, expected in zip(_outcome(fn, operands, _amid), alone, strict=True):
        if expected is None:
            assert found is None
            continue
        wanted = expected.detach().cpu().numpy()
        close = {"rtol": 1e-4, "atol": 1e-5 * (1 + np.abs(wanted).max(initial=0))}
        np.testing.assert_allclose(found.detach().cpu().numpy(), wanted, **close)
