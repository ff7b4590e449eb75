"""Copies: other layouts, parts, joins. Little is computed; what counts is the order of memory accesses."""

from __future__ import annotations

from benchmarks.case import EVERY, Case, Make, on

Mi = 1 << 20


def _transposed(n: int) -> Make:
    # A transposing copy, by methods that every library has.
    return on(lambda t, a: a.T.reshape(-1), (n, n))


def _parts(dim: int, *shape: int) -> Make:
    return on(lambda t, *parts: t.cat(parts, dim), *[shape] * 4)


CASES = [
    Case("copy", "clone, 16 Mi", on(lambda t, a: a.clone(), (16 * Mi,)), 8 * 16 * Mi),
    Case("copy", "transposed, 4096²", _transposed(4096), 8 * 16 * Mi, bar=4, quick=True, also=EVERY),
    Case("copy", "transposed, 4095²", _transposed(4095), 8 * 4095**2),
    Case("copy", "transposed, bfloat16, 4096²", on(lambda t, a: a.T.contiguous(), (4096, 4096), dtype="bfloat16"), 4 * 16 * Mi),
    Case("copy", "channels last, 16 x 64 x 112²", on(lambda t, a: a.permute(0, 2, 3, 1).contiguous(), (16, 64, 112, 112)), 8 * 16 * 64 * 112**2),
    Case("copy", "every second row times 2 plus 1, 4096²", on(lambda t, a: a[::2] * 2 + 1, (8192, 4096)), 8 * 16 * Mi),
    # Every cache line of the input holds wanted elements, so all of the input is read.
    Case("copy", "every second column times 2 plus 1, 4096²", on(lambda t, a: a[:, ::2] * 2 + 1, (4096, 8192)), 12 * 16 * Mi),
    Case("copy", "cat, dim 0, 4 x 1024 x 4096", _parts(0, 1024, 4096), 8 * 16 * Mi),
    Case("copy", "cat, dim 1, 4 x 4096 x 1024", _parts(1, 4096, 1024), 8 * 16 * Mi),
    Case("copy", "cat, dim 1, 4 x 4095 x 1023", _parts(1, 4095, 1023), 8 * 4 * 4095 * 1023),
    Case("copy", "cat, dim 0, float16, 4 x 1024 x 4096", on(lambda t, *parts: t.cat(parts), *[(1024, 4096)] * 4, dtype="float16"), 4 * 16 * Mi),
    Case("copy", "cat, dim 1, float16, 4 x 4096 x 1024", on(lambda t, *parts: t.cat(parts, 1), *[(4096, 1024)] * 4, dtype="float16"), 4 * 16 * Mi),
    Case("copy", "every second column, float16, 2048²", on(lambda t, a: a[:, ::2].contiguous(), (2048, 4096), dtype="float16"), 6 * 4 * Mi),
    Case("copy", "to bytes, 4 Mi", on(lambda t, a: a.to(t.uint8), (4 * Mi,)), 5 * 4 * Mi, check=False, bound="read"),
    Case("copy", "stack, last dim, 4 x 4 Mi", on(lambda t, *parts: t.stack(parts, -1), *[(4 * Mi,)] * 4), 8 * 16 * Mi),
    Case("copy", "pad by 1, 16 x 64 x 112²", on(lambda t, a: t.nn.functional.pad(a, (1, 1, 1, 1)), (16, 64, 112, 112)), 4 * 16 * 64 * (112**2 + 114**2)),
    Case("copy", "flip, dim 1, 4096²", on(lambda t, a: a.flip(1), (4096, 4096)), 8 * 16 * Mi),
    Case("copy", "roll, dim 1, 4096²", on(lambda t, a: a.roll(1, 1), (4096, 4096)), 8 * 16 * Mi),
    Case("copy", "repeat 4 times, 4 Mi", on(lambda t, a: a.repeat(4), (4 * Mi,)), 16 * 4 * Mi, bound="write"),
    Case("copy", "lower triangle, 4096²", on(lambda t, a: a.tril(), (4096, 4096)), 6 * 16 * Mi),
]  # fmt: skip
