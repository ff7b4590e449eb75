"""Dense factorizations in batches, in place: blocks of columns by kernels of their own, everything between them by the dense product.

Knows operands, nothing of tensors.
"""
