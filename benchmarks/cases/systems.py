"""Linear systems, the factorizations they rest on, and eigen- and singular vectors, of one matrix and of batches of small ones.

Operations are counted as Golub and Van Loan, "Matrix Computations", do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.case import Case, Kit, Make, Run


def _dominant(*shape: int) -> np.ndarray:
    """Return symmetric matrices whose size is added to the diagonal: positive-definite and well-conditioned."""
    x = np.random.default_rng(0).random(shape, dtype=np.float32) * 2 - 1
    return (x + x.swapaxes(-1, -2)) / 2 + shape[-1] * np.eye(shape[-1], dtype=np.float32)


def _of(fn: Callable[..., Any], shape: tuple[int, ...], columns: int) -> Make:
    def make(kit: Kit) -> Run:
        right = kit.rand(*shape[:-1], columns, seed=1)
        return kit.program(fn, kit.put(_dominant(*shape)), right)

    return make


def _cases(shape: tuple[int, ...], label: str) -> list[Case]:
    """Return the cases for a shape; `programs`: operations / n**3, columns of the right-hand side, program."""
    n, count = shape[-1], int(np.prod(shape[:-2]))
    programs: dict[str, tuple[float, int, Callable[..., Any]]] = {
        "cholesky": (1 / 3, 1, lambda torch, a, b: torch.linalg.cholesky(a)),
        "lu": (2 / 3, 1, lambda torch, a, b: torch.linalg.lu_factor(a)[0]),
        "qr": (8 / 3, 1, lambda torch, a, b: torch.linalg.qr(a)[1]),
        "inverse": (2, 1, lambda torch, a, b: torch.linalg.inv(a)),
        "system": (2 / 3 + 2 / n, 1, lambda torch, a, b: torch.linalg.solve(a, b)),
        "eigenvectors": (9, 1, lambda torch, a, b: torch.linalg.eigh(a)[0]),
        "singular vectors": (21, 1, lambda torch, a, b: torch.linalg.svd(a)[1]),
        "triangular system": (1, n, lambda torch, a, b: torch.linalg.solve_triangular(a, b, upper=False)),
    }  # fmt: skip
    return [
        Case("solve", f"{name}, {label}", _of(fn, shape, columns), 0.0, flops * count * n**3)
        for name, (flops, columns, fn) in programs.items()
    ]


SMALL = ("cholesky", "inverse", "system")
# A symmetric matrix with its columns shifted is not symmetric; its eigenvalues lie on a circle. Their order is each
# library's own, so their sorted sizes are compared.
GENERAL = _of(
    lambda torch, a, b: torch.linalg.eig(a.roll(1, -1))[0].abs().sort(-1)[0], (256, 64, 64), 1
)
CASES = [
    *_cases((1024, 1024), "1024²"),
    *_cases((256, 64, 64), "256 x 64²"),
    Case("solve", "general eigenvectors, 256 x 64²", GENERAL, 0.0, 25 * 256 * 64**3),
    *(case for case in _cases((20000, 4, 4), "20,000 x 4²") if case.name.startswith(SMALL)),
]
