"""`cltensor.version`: what version of torch's interface this is, which release of the package, and that it
is built on neither CUDA nor ROCm.

Programs ask `torch.__version__` which names and habits they may count on, so `__version__` begins with the torch
that this package follows. The package's own release is its local part, and `package` here.
"""

from __future__ import annotations

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "package", "rocm", "xpu"]

package = "0.1.0"  # the build reads it from here
__version__ = f"2.13.0+cltensor{package}"
debug = False
cuda: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
git_version = "Unknown"
