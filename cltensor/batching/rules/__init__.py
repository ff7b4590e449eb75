"""The batching rules: how each kind of function treats a hidden dimension. Importing this fills `calls.RULES`."""

from . import (
    dims,
    images,
    indexing,
    joins,
    leading,
    losses,
    makers,
    norms,
    pointwise,
    products,
    randoms,
    same,
    views,
    writes,
)

__all__ = [
    "dims",
    "images",
    "indexing",
    "joins",
    "leading",
    "losses",
    "makers",
    "norms",
    "pointwise",
    "products",
    "randoms",
    "same",
    "views",
    "writes",
]
