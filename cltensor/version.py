"""`cltensor.version`: what version of torch's interface this is, which release of the package, and that it
is built on neither CUDA nor ROCm.

Programs decide by `torch.__version__` which functions they can use and how these behave, so `__version__` begins with
the version of torch whose interface this package follows. The package's own release is the local part, and `package`
here.
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
