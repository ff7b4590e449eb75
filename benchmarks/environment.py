"""Settings made before any library is imported: the peers that may take part, and the number of threads of each."""

from __future__ import annotations

import os

PEERS = ("torch", "numpy", "jax", "tinygrad")

# OpenMP, MKL and OpenBLAS (torch, NumPy), PoCL and Intel's runtime (cltensor, and tinygrad on the same device), XLA's CPU
# client (jax). NumPy always uses one thread, except for products.
VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "POCL_MAX_PTHREAD_COUNT",
    "CL_CONFIG_CPU_TBB_NUM_WORKERS",
    "NPROC",
)


def limit_threads(threads: int) -> None:
    """Give every library this number of threads; each reads its variable once, when it is imported."""
    os.environ.update(dict.fromkeys(VARIABLES, str(threads)))
