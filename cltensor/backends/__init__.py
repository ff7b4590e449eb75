"""`cltensor.backends`: queries and settings of the libraries that torch builds on.

None of those libraries is used here: queries return False, and settings are stored without effect.
"""

from __future__ import annotations

from ..reexport import lend
from . import cpu, cuda, cudnn, mha, mkl, mkldnn, mps, openmp, opt_einsum

__all__ = [
    "cpu", "cuda", "cudnn", "disable_global_flags", "flags_frozen", "mha", "mkl", "mkldnn", "mps", "openmp", "opt_einsum",
]  # fmt: skip

lend(
    globals(),
    {
        "cusparselt": ("backends.absent", "get_max_alg_id is_available version"),
        "kleidiai": ("backends.absent", "is_available"),
        "miopen": ("backends.absent", "immediate"),
        "nnpack": ("backends.absent", "flags is_available set_flags"),
        "quantized": ("backends.absent", "engine supported_engines"),
        "xnnpack": ("backends.absent", "enabled"),
    },
)

__allow_nonbracketed_mutation_flag = True  # torch's name, which programs set


def disable_global_flags() -> None:
    """Record that flags may be set only by `flags()` contexts; here setting a flag has no effect anyway."""
    global __allow_nonbracketed_mutation_flag
    __allow_nonbracketed_mutation_flag = False


def flags_frozen() -> bool:
    """Tell whether `disable_global_flags` was called."""
    return not __allow_nonbracketed_mutation_flag
