"""Small calls of every family of kernels, with functions that make their operands, for tests of properties that all
families share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cltensor as torch
from cltensor.nn.attention.varlen import varlen_attn

F = torch.nn.functional


def whole(*shape: int) -> Any:
    """Small whole numbers: sums of them are exact in any order."""
    return torch.randint(-4, 5, shape).float()


def places(*shape: int, below: int) -> Any:
    return torch.randint(0, below, shape)


# name -> (function to call, function that makes its operands)
CALLS: dict[str, tuple[Callable[..., Any], Callable[[], tuple]]] = {
    "sum": (lambda x: x.sum(), lambda: (whole(5, 7),)),
    "mean of columns": (lambda x: x.mean(0, keepdim=True), lambda: (whole(5, 7).t(),)),
    "max along rows": (lambda x: tuple(x.max(1)), lambda: (whole(5, 7)[1:, ::2],)),
    "argmax": (lambda x: x.argmax(), lambda: (whole(5, 7),)),
    "softmax": (lambda x: torch.softmax(x, 1), lambda: (whole(5, 7),)),
    "softmax, other dim": (lambda x: torch.softmax(x, 0), lambda: (whole(5, 7),)),
    "layer_norm": (lambda x, w: F.layer_norm(x, (7,), w), lambda: (whole(5, 7), whole(7))),
    "cross_entropy": (F.cross_entropy, lambda: (whole(5, 7), places(5, below=7))),
    "product": (lambda a, b: a @ b, lambda: (whole(5, 7), whole(7, 3))),
    "product with itself": (lambda a: a @ a, lambda: (whole(6, 6),)),
    "linear": (F.linear, lambda: (whole(5, 7), whole(3, 7), whole(3))),
    "cat": (lambda a, b: torch.cat([a, b, a], 1), lambda: (whole(5, 7), whole(5, 2))),
    "stack": (lambda a, b: torch.stack([a, b]), lambda: (whole(5, 7), whole(5, 7))),
    "cat of many": (lambda *xs: torch.cat(xs), lambda: [whole(3) for _ in range(9)]),
    "cumsum": (lambda x: x.cumsum(1), lambda: (whole(5, 7),)),
    "cummax": (lambda x: tuple(x.cummax(1)), lambda: (whole(5, 7),)),
    "sort": (lambda x: tuple(x.sort(1)), lambda: (whole(5, 7),)),
    "convolution": (F.conv2d, lambda: (whole(2, 3, 8, 8), whole(4, 3, 3, 3), whole(4))),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), lambda: (whole(2, 3, 8, 8),)),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 2), lambda: (whole(2, 3, 8, 8),)),
    "interpolate": (lambda x: F.interpolate(x, scale_factor=2.0), lambda: (whole(2, 3, 4, 4),)),
    "grid_sample": (
        lambda x, p: F.grid_sample(x, p / 4, align_corners=False),
        lambda: (whole(2, 3, 4, 4), whole(2, 5, 5, 2)),
    ),
    "tril": (lambda x: x.tril(1), lambda: (whole(5, 7),)),
    "cdist": (lambda a, b: torch.cdist(a, b, 1.0), lambda: (whole(2, 5, 4), whole(3, 4))),
    "pdist": (lambda x: F.pdist(x, 1.0), lambda: (whole(6, 4),)),
    "pad": (lambda x: F.pad(x, (1, 2)), lambda: (whole(2, 5, 7),)),
    "flip": (lambda x: x.flip(0), lambda: (whole(5, 7),)),
    "roll": (lambda x: x.roll(2, 0), lambda: (whole(5, 7),)),
    "rfft": (torch.fft.rfft, lambda: (whole(5, 8),)),
    "attention": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        lambda: (whole(2, 5, 4), whole(2, 5, 4), whole(2, 5, 3)),
    ),
    "attention in sequences": (
        lambda q, k, v, at: varlen_attn(q, k, v, at, at, 4, 4),
        lambda: (
            whole(6, 2, 4),
            whole(6, 2, 4),
            whole(6, 2, 3),
            torch.tensor([0, 2, 6], dtype=torch.int32),
        ),
    ),
    "index": (lambda x, i: x[i], lambda: (whole(5, 7), places(4, below=5))),
    "embedding": (lambda i, w: F.embedding(i, w), lambda: (places(2, 3, below=5), whole(5, 7))),
    "embedding_bag": (F.embedding_bag, lambda: (places(2, 3, below=5), whole(5, 7))),
    "embedding_bag, max": (
        lambda i, w: F.embedding_bag(i, w, mode="max"),
        lambda: (places(2, 3, below=5), whole(5, 7)),
    ),
    "lstm_cell": (
        lambda x, h, c, w, u: torch.lstm_cell(x, (h, c), w, u),
        lambda: (whole(2, 3), whole(2, 4), whole(2, 4), whole(16, 3), whole(16, 4)),
    ),
    "gru_cell": (
        torch.gru_cell,
        lambda: (whole(2, 3), whole(2, 4), whole(12, 3), whole(12, 4), whole(12), whole(12)),
    ),
    "rnn_tanh_cell": (
        torch.rnn_tanh_cell,
        lambda: (whole(2, 3), whole(2, 4), whole(4, 3), whole(4, 4)),
    ),
    "lstm": (
        lambda x, h, c, w, u: torch.lstm(x, (h, c), (w, u), False, 1, 0.0, False, False, True),
        lambda: (whole(2, 5, 3), whole(1, 2, 4), whole(1, 2, 4), whole(16, 3), whole(16, 4)),
    ),
    "gather": (lambda x, i: x.gather(1, i), lambda: (whole(5, 7), places(5, 2, below=7))),
    "scatter": (lambda x, i: x.scatter(1, i, 2.0), lambda: (whole(5, 7), places(5, 2, below=7))),
    "scatter_add": (
        lambda x, i, s: x.scatter_add(1, i, s),
        lambda: (whole(5, 7), places(5, 2, below=7), whole(5, 2)),
    ),
    "rows added to a copy": (
        lambda x, i, s: x.index_add(0, i, s),
        lambda: (whole(4096, 128), places(6, below=4096), whole(6, 128)),
    ),
    "index_select": (lambda x, i: x.index_select(1, i), lambda: (whole(5, 7), places(3, below=7))),
    "index_copy": (
        lambda x, i, s: x.index_copy(1, i, s),
        lambda: (whole(5, 7), torch.tensor([4, 1]), whole(5, 2)),
    ),
    "index_fill": (
        lambda x, i: x.index_fill(0, i, 2.0),
        lambda: (whole(5, 7), places(3, below=5)),
    ),
    "put": (
        lambda x, i, s: x.put(i, s),
        lambda: (whole(5, 7), torch.tensor([[3, -1], [0, 34]]), whole(2, 2)),
    ),
    "put, adding": (
        lambda x, i, s: x.put(i, s, True),
        lambda: (whole(5, 7), places(4, below=35), whole(2, 2)),
    ),
    "masked_scatter": (
        lambda x, m, s: x.masked_scatter(m, s),
        lambda: (whole(5, 7), whole(5, 7) > 0, whole(35)),
    ),
    "take_along_dim": (
        lambda x, i: x.take_along_dim(i - 7, 1),
        lambda: (whole(5, 7), places(5, 2, below=14)),
    ),
    "matrix by vector": (lambda a, x: a @ x, lambda: (whole(5, 7), whole(7))),
    "take": (torch.take, lambda: (whole(5, 7), places(2, 3, below=35))),
    "einsum": (
        lambda a, b: torch.einsum("bij,bjk->ikb", a, b),
        lambda: (whole(2, 3, 4), whole(2, 4, 5)),
    ),
    "cosine_similarity": (F.cosine_similarity, lambda: (whole(5, 7), whole(5, 7))),
    "pairwise_distance": (F.pairwise_distance, lambda: (whole(5, 7), whole(7))),
    "binary_cross_entropy": (
        lambda x, y: F.binary_cross_entropy(x.sigmoid(), y.sigmoid()),
        lambda: (whole(3, 5), whole(3, 5)),
    ),
    "binary_cross_entropy_with_logits": (
        lambda x, y, w: F.binary_cross_entropy_with_logits(x, y, w.detach()),
        lambda: (whole(3, 5), whole(3, 5), whole(5)),
    ),
    "normalize": (lambda x: F.normalize(x, 2.0, (0, 2)), lambda: (whole(3, 5, 7),)),
    "local_response_norm": (lambda x: F.local_response_norm(x, 3), lambda: (whole(2, 4, 5),)),
    "multi-head attention": (
        lambda x, w, o: F.multi_head_attention_forward(
            x, x, x, 4, 2, w, None, None, None, False, 0.0, o, None
        ),
        lambda: (whole(3, 2, 4), whole(12, 4) / 4, whole(4, 4)),
    ),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), lambda: (whole(2, 8, 3, 5),)),
    "unfold": (lambda x: F.unfold(x, (2, 3), padding=1), lambda: (whole(2, 3, 4, 5),)),
    "corrcoef": (torch.corrcoef, lambda: (whole(3, 7) + torch.arange(7),)),
    "isclose": (torch.isclose, lambda: (whole(5, 7), whole(7))),
    "kron": (torch.kron, lambda: (whole(2, 3), whole(4))),
    "prod": (lambda x: x.prod(1), lambda: (whole(5, 7),)),
    "affine_grid": (
        lambda x: F.affine_grid(x, (2, 1, 3, 4), align_corners=False),
        lambda: (whole(2, 2, 3),),
    ),
    "diag": (torch.diag, lambda: (whole(5),)),
    "fold": (lambda x: F.fold(x, (4, 5), (2, 3)), lambda: (whole(2, 12, 9),)),
    "histc": (lambda x: torch.histc(x, 4, -4.0, 4.0), lambda: (whole(5, 7),)),
    "bincount": (lambda i: torch.bincount(i, minlength=6), lambda: (places(9, below=6),)),
    "glu": (lambda x: F.glu(x, 0), lambda: (whole(6, 5),)),
    "one_hot": (lambda i: F.one_hot(i, 5), lambda: (places(4, 3, below=5),)),
    "total norm": (
        lambda a, b: torch.nn.utils.get_total_norm([a, b, a]),
        lambda: (whole(5, 7), whole(3)),
    ),
}


def listed(found: Any) -> list[Any]:
    return list(found) if isinstance(found, tuple) else [found]
