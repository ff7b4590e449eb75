"""`cltensor.version`: the package's version, and that it is built on neither CUDA nor ROCm."""

from __future__ import annotations

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "xpu"]

__version__ = "0.1.0"
debug = False
cuda: str | None = None
hip: str | None = None
xpu: str | None = None
git_version = "Unknown"
