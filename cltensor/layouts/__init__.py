"""Shapes, strides and offsets: what a view is, as pure functions on tuples of ints.

Everything is counted in elements. Owns views, broadcasting, reshaping without a copy, dense stride
orders, joint collapsing and overlap; raises torch's errors for impossible requests. Must not know
of devices, buffers or tensors.
"""

from .basics import (
    Layout,
    Shape,
    check_shape,
    contiguous_strides,
    is_contiguous,
    numel,
    own_dim,
    reduced_shape,
    storage_bytes,
    storage_extent,
    wrap_dim,
    wrap_dims,
)
from .broadcast import broadcast_shapes, expand, expand_shape, expand_strides, joint_shape
from .joint import (
    FULL_OVERLAP,
    NO_OVERLAP,
    PARTIAL_OVERLAP,
    TOO_HARD,
    collapse,
    internal_overlap,
    may_share,
    merge,
    overlap,
)
from .order import (
    channels_last_strides,
    dense_strides,
    elementwise_strides,
    is_channels_last,
    is_non_overlapping_and_dense,
    like_channels_last,
    preserve_strides,
)
from .parts import chunk_sizes, split_sizes, tensor_split_bounds
from .reshape import (
    flatten_shape,
    infer_shape,
    reshape,
    shape_for,
    unflatten_shape,
    view,
    view_strides,
)
from .views import (
    as_strided,
    diagonal,
    movedim_order,
    narrow,
    permutation,
    permute,
    permute_inverse,
    permuted,
    select,
    slice_,
    squeeze,
    transpose,
    unfold,
    unsqueeze,
    without,
)

__all__ = [
    "FULL_OVERLAP", "Layout", "NO_OVERLAP", "PARTIAL_OVERLAP", "Shape", "TOO_HARD", "as_strided", "broadcast_shapes", "channels_last_strides", "check_shape",
    "chunk_sizes", "collapse", "contiguous_strides", "dense_strides", "diagonal", "elementwise_strides", "expand", "expand_shape", "expand_strides",
    "flatten_shape", "infer_shape", "internal_overlap", "is_channels_last", "is_contiguous", "is_non_overlapping_and_dense", "joint_shape", "like_channels_last", "may_share", "merge", "movedim_order",
    "narrow", "numel", "overlap", "own_dim", "permutation", "permute", "permute_inverse", "permuted", "preserve_strides", "reduced_shape", "reshape", "select", "shape_for", "slice_", "split_sizes", "squeeze",
    "storage_bytes", "storage_extent", "tensor_split_bounds", "transpose", "unflatten_shape", "unfold", "unsqueeze", "view", "view_strides", "without", "wrap_dim", "wrap_dims",
]  # fmt: skip
