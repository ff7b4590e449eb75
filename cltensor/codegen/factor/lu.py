"""The LU factorization with row exchanges, in place, recursive by halves of the columns.

After Toledo, SIAM J. Matrix Anal. 18, 1997.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..operand import Operand
from ..region import index_type, is_gpu, run, workers
from .parts import SMALL, block_width, launch, middle, part, runs, side_by_side, take_off
from .triangular import solve

if TYPE_CHECKING:
    from ...runtime import Backend


def lu(backend: Backend, a: Operand, pivots: Operand, info: Operand, exchanged: bool) -> None:
    """Overwrite A [count, m, n], column-major, by its packed factors: A = P L U, L with ones on its diagonal.

    `pivots` [count, min(m, n)], int32: row i was exchanged with row pivots[i] - 1, which is row i itself for all unless
    `exchanged`. `info` [count] gets the number, from 1, of the first pivot that is zero, 0 if none is.
    """
    if not a.nbytes:
        return
    count, m, n = a.shape
    if m == n and side_by_side(backend, a, n):
        _side_by_side(backend, a, pivots, info, exchanged)
        return
    width, k = block_width(backend, count), min(m, n)
    _factor(backend, part(a, (0, m), (0, k)), pivots, info, 0, exchanged, width)
    if n > m:
        beside = part(a, (0, m), (m, n))
        if exchanged:
            exchange(backend, beside, pivots, 0, m)
        solve(backend, part(a, (0, m), (0, m)), beside, upper=False, unit=True)


def _side_by_side(
    backend: Backend, a: Operand, pivots: Operand, info: Operand, exchanged: bool
) -> None:
    count, n, _ = a.shape
    launch(
        backend,
        "lanes",
        "lu_lanes",
        [a.buffer, info.buffer, pivots.buffer],
        [
            *(count, n, a.offset, a.strides[0], a.strides[2]),
            *(int(exchanged), pivots.offset, pivots.strides[0]),
        ],
        (a, pivots),
        runs(backend, count, n**3),
        2 * a.nbytes,
        kind="lu",
        most=SMALL,
    )


def _factor(
    backend: Backend,
    a: Operand,
    pivots: Operand,
    info: Operand,
    before: int,
    exchanged: bool,
    width: int,
) -> None:
    """Factorize columns whose first `before` rows are final."""
    count, m, n = a.shape
    if n <= width:
        rows = part(a, (before, m), (0, n))
        launch(
            backend,
            "panel",
            "lu",
            [a.buffer, info.buffer, pivots.buffer],
            [
                *(count, m - before, n, before, rows.offset, a.strides[0], a.strides[2]),
                *(int(exchanged), pivots.offset + before, pivots.strides[0]),
            ],
            (a, pivots),
            count,
            2 * count * (m - before) * n * a.dtype.itemsize,
            kind="lu",
        )
        return
    at = middle(n, width)
    done = before + at
    left, right = part(a, (0, m), (0, at)), part(a, (0, m), (at, n))
    _factor(backend, left, pivots, info, before, exchanged, width)
    if exchanged:
        exchange(backend, right, pivots, before, done)
    above = part(right, (before, done), (0, n - at))
    solve(backend, part(left, (before, done), (0, at)), above, upper=False, unit=True)
    take_off(backend, part(right, (done, m), (0, n - at)), part(left, (done, m), (0, at)), above)
    _factor(backend, right, pivots, info, done, exchanged, width)
    if exchanged:
        exchange(backend, left, pivots, done, before + n)


def exchange(
    backend: Backend,
    x: Operand,
    pivots: Operand,
    begin: int,
    end: int,
    *,
    backwards: bool = False,
) -> None:
    """Exchange rows of X [count, m, k] by pivots[begin:end], in order or backwards."""
    count, _, k = x.shape
    if not x.nbytes or begin == end:
        return
    work = count * k
    gpu = is_gpu(backend)
    run(
        backend,
        "factor/exchange",
        f"exchange_b{x.dtype.itemsize}",
        [x.buffer, pivots.buffer],
        [
            *(count, k, begin, end, int(backwards), x.offset, *x.strides),
            *(pivots.offset, pivots.strides[0]),
        ],
        work if gpu else min(work, workers(backend, work * (end - begin))),
        2 * work * (end - begin) * x.dtype.itemsize,
        T={4: "uint", 8: "ulong", 16: "ulong2"}[x.dtype.itemsize],
        size=x.dtype.itemsize,
        lanes=1 if gpu else 64 // x.dtype.itemsize,
        I=index_type(backend, x, pivots),
        gpu=gpu,
    )


def determinant(
    backend: Backend, packed: Operand, pivots: Operand, value: Operand, logs: Operand | None
) -> None:
    """Compute determinants from dense packed LU factors [count, n, n] and pivots, into `value` [count].

    With `logs`, `value` gets the sign only and `logs` the logarithm of the absolute value.
    """
    count, n, _ = packed.shape
    if not count:
        return
    kind, dt = "det" if logs is None else "slogdet", packed.dtype
    run(
        backend,
        "factor/determinant",
        f"{kind}_{dt.code}",
        [packed.buffer, pivots.buffer, value.buffer, *([] if logs is None else [logs.buffer])],
        [count, n, n * n],
        count if is_gpu(backend) else min(count, workers(backend, count * n)),
        count * n * (dt.itemsize + pivots.dtype.itemsize),
        kind=kind,
        dt=dt,
        block=32,
        I=index_type(backend, packed, pivots),
        gpu=is_gpu(backend),
    )
