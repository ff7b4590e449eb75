"""Running a collected pointwise chain as the epilogue of the matrix product it starts from (Note [Products])."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import layouts
from ..codegen.pointwise import INDEX
from ..codegen.products import gemm
from ..codegen.products.epilogue import Epilogue, Place
from .launch import TURN, runs_across, scalar_args

if TYPE_CHECKING:
    from ..runtime import Backend, Buffer
    from .expression import Leaf
    from .fusion import Fusion
    from .product import Factors

# A result of a chain that is written: the reference of its node in the program (or of the product's own leaf), the
# dtype in which it is stored, and the dense buffer it is written to.
Result = tuple[tuple[str, int], Any, "Buffer"]
"""What is kept of a chain: its reference, dtype, and where it is written."""


def run_fused(backend: Backend, fusion: Fusion, outputs: list[Result]) -> bool:
    """Compute a fusion's product and its chain in one launch.

    Return False, with nothing done, where that is not possible.
    """
    expr = fusion.product
    if expr is None or fusion.shape[-1] != expr.shape[-1]:
        return False
    for node in fusion.nodes:
        if node.op is INDEX or node.compute.is_complex or node.result.is_complex:
            return False
        backend.require(node.compute)
        backend.require(node.result)
    n = expr.shape[-1]
    leaves = []
    for leaf in fusion.leaves:
        place = None
        if leaf is not fusion.product_leaf:
            place = _place(leaf, fusion.shape)
            if place is None or leaf.dtype.is_complex:
                return False
        leaves.append((leaf.dtype, place))
    epilogue = Epilogue(
        tuple(leaves),
        tuple(scalar_args(fusion.scalars, fusion.scalar_types)),
        tuple(fusion.scalar_types),
        tuple(fusion.nodes),
        tuple([(ref, dt, Place(buffer, 0, n, 1)) for ref, dt, buffer in outputs]),
    )
    f: Factors = expr.args[-1].value
    return gemm.fused(backend, f.a, f.b, epilogue, alpha=f.alpha, beta=f.beta, bias=f.bias)


def _place(leaf: Leaf, shape: tuple[int, ...]) -> Place | None:
    """Return an operand's layout over the product, seen as a matrix of rows.

    None if the operand's rows are not evenly spaced, or if it is large and read across memory.
    """
    strides = leaf.strides
    if strides is None:
        return Place(leaf.buffer, leaf.offset, shape[-1], 1)
    if layouts.numel(shape) >= TURN and runs_across(leaf.strides, shape):
        return None
    sizes, (rows,) = layouts.collapse(shape[:-1], [strides[:-1]])
    if len(sizes) > 1:
        return None
    return Place(leaf.buffer, leaf.offset, rows[0] if sizes else 0, strides[-1])
