"""Elements and rows selected by indices or masks: embedding, gather, scatter."""

from __future__ import annotations

from typing import Any

from benchmarks.case import Case, Index, on

TABLE, LOOKED_UP = (50_000, 128), Index(50_000, (8192,))
MATRIX, PLACES = (4096, 1024), Index(1024, (4096, 256))
TAKEN, WHOLE = 4.0 * 8192 * 128, 4.0 * 4096 * 1024
PICKED = 4.0 * 4096 * 256
# Memory is read in lines of 64 bytes. A gather along rows touches nearly all lines of its input. Where there are as
# many random indices as lines, a part 1 / e of the lines is touched by none; MET is the rest. Indices have 8 bytes.
MET = 1 - 1 / 2.718281828


def embedding(torch: Any, table: Any, index: Any) -> Any:
    return torch.nn.functional.embedding(index, table)


def gather(torch: Any, x: Any, index: Any) -> Any:
    return x.gather(1, index)


# The elements picked are read, written, and read by the sum; the gradient, which is written, is as large as the input.
LOOKED_UP_BYTES = 3 * TAKEN + 4.0 * 50_000 * 128
CASES = [
    Case("index", "embedding, 8192 of 50,000 x 128", on(embedding, TABLE, LOOKED_UP), 2 * TAKEN, bar=1.0),
    Case("index", "embedding, forward and backward", on(embedding, TABLE, LOOKED_UP, grad=True), LOOKED_UP_BYTES, bar=1.0, quick=True),
    Case("index", "embedding, bfloat16, 8192 of 50,000 x 128", on(embedding, TABLE, LOOKED_UP, dtype="bfloat16"), TAKEN),
    Case("index", "x[rows], forward and backward", on(lambda t, x, i: x[i], TABLE, LOOKED_UP, grad=True), LOOKED_UP_BYTES),
    Case("index", "x[rows, columns], 1 Mi of 4096²", on(lambda t, x, i, j: x[i, j], (4096, 4096), Index(4096, (1 << 20,)), Index(4096, (1 << 20,))), (64 * MET + 20.0) * (1 << 20)),
    Case("index", "x[x > 0], 4 Mi", on(lambda t, x: x[x > 0], (1 << 22,)), 6.0 * (1 << 22)),
    Case("index", "index_select, dim 1, 512 of 4096 x 1024", on(lambda t, x, i: x.index_select(1, i), MATRIX, Index(1024, (512,))), 1.5 * WHOLE),
    Case("index", "gather, 4096 x 256 of 1024", on(gather, MATRIX, PLACES), WHOLE + 3 * PICKED, bar=1.0),
    Case("index", "gather, dim 0, 256 of 4096 x 1024", on(lambda t, x, i: x.gather(0, i), MATRIX, Index(4096, (256, 1024))), MET * WHOLE + 12.0 * 256 * 1024),
    Case("index", "gather, forward and backward", on(gather, MATRIX, PLACES, grad=True), 2 * WHOLE + 6 * PICKED, bar=1.0),
    Case("index", "scatter a number, 4096 x 256 into 1024", on(lambda t, x, i: x.scatter(1, i, 0.5), MATRIX, PLACES), 2 * WHOLE + 2 * PICKED),
    Case("index", "scatter_add, 4096 x 256 into 1024", on(lambda t, x, i, v: x.scatter_add(1, i, v), MATRIX, PLACES, (4096, 256)), 2 * WHOLE + 3 * PICKED),
    Case("index", "index_add, 16384 rows of 256", on(lambda t, x, i, rows: x.index_add(0, i, rows), (8192, 256), Index(8192, (16384,)), (16384, 256)), 4.0 * 256 * (8192 * 2 + 16384), bar=1.0, quick=True),
    Case("index", "bincount, 1 Mi into 1000", on(lambda t, i: t.bincount(i, minlength=1000), Index(1000, (1 << 20,))), 8.0 * (1 << 20), bound="read"),
]  # fmt: skip
