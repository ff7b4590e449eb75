"""`cltensor.backends`: what torch programs ask and tell about the libraries under torch.

None of those libraries is here: what asks is answered no, what is told is kept and without effect.
"""

from __future__ import annotations

from . import cpu, cuda, cudnn, mha, mkl, mkldnn, mps, openmp, opt_einsum

__all__ = [
    "cpu", "cuda", "cudnn", "disable_global_flags", "flags_frozen", "mha", "mkl", "mkldnn", "mps", "openmp", "opt_einsum",
]  # fmt: skip

__allow_nonbracketed_mutation_flag = True  # torch's name, which programs set


def disable_global_flags() -> None:
    """Note that flags are not to be set but by `flags()` contexts; here setting one has no effect anyway."""
    global __allow_nonbracketed_mutation_flag
    __allow_nonbracketed_mutation_flag = False


def flags_frozen() -> bool:
    """Tell whether `disable_global_flags` was called."""
    return not __allow_nonbracketed_mutation_flag
