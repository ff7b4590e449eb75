"""`cltensor.backends`: what torch programs ask and tell about the libraries under torch.

None of those libraries is here: what asks is answered no, what is told is kept and without effect.
"""

from __future__ import annotations

from . import cpu, cuda, cudnn, mha, mkl, mkldnn, mps, openmp, opt_einsum

__all__ = ["cpu", "cuda", "cudnn", "mha", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"]
