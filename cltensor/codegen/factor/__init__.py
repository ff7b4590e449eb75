"""Batched dense factorizations, in place: kernels for blocks of columns, dense products for all updates between.

Knows operands, nothing of tensors.
"""
