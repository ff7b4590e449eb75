"""Kernels that read a pending chain and pass over its elements: reductions, and what passes over rows several times."""
