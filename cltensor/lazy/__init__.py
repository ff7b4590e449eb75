"""The graph of pending pointwise expressions, and when and how they are run.

A pending value is an `Expr`: a formula over operands, dense in row-major order of its shape. Operands are other `Expr`s
(of the same iteration shape), `View`s of them (permuted or broadcast), `Leaf`s (memory with a layout) and `Scalar`s
(kernel arguments). Running an expression fuses everything it depends on into one kernel, whose outputs are the nodes
that live storages hold.

Note [Bounds]. Fusion is bounded: by the number of nodes in an expression, of distinct leaves, of bytes that pending
expressions keep alive, of pending results per device, and by the device's limit on kernel arguments. The code that ends
a fusion counts the reason in `STATS.splits`.

This package knows storages only as cells with a `value`; it knows nothing of tensors.
"""

from ..codegen.pointwise import INDEX
from .expression import (
    HEAVY,
    INDEXED,
    MAX_RECOMPUTE,
    STRIDED,
    UNKNOWN_READS,
    Expr,
    Leaf,
    Scalar,
    View,
    buffers,
    too_big,
    view_dims,
)
from .fusion import Fusion
from .launch import TURN, runs_across, scalar_args, turned
from .product import Factors, pending_product
from .product_tree import forget
from .reading import is_grown, is_read, note_read, told
from .schedule import (
    flush,
    force,
    realise,
    register,
    run_held,
    run_readers,
    split,
    write_region,
)

__all__ = [
    "HEAVY",
    "INDEX",
    "INDEXED",
    "MAX_RECOMPUTE",
    "STRIDED",
    "TURN",
    "UNKNOWN_READS",
    "Expr",
    "Factors",
    "Fusion",
    "Leaf",
    "Scalar",
    "View",
    "buffers",
    "flush",
    "force",
    "forget",
    "is_grown",
    "is_read",
    "note_read",
    "pending_product",
    "realise",
    "register",
    "run_held",
    "run_readers",
    "runs_across",
    "scalar_args",
    "split",
    "told",
    "too_big",
    "turned",
    "view_dims",
    "write_region",
]
