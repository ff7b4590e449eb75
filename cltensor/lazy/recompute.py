"""Which results are computed again by their next reader instead of being kept when a kernel computes them.

What a kernel computes on its way, and somebody holds, is mostly held by a graph, for a gradient whose kernel reads the same operands
anyway: to compute it there again costs next to nothing where memory is the limit, to keep it a pass over memory to write it
and one to read it. This owns the decision; whoever collects a kernel asks for it. The result then stays pending.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import layouts
from .expression import BESIDE, INDEXED, RESHAPED, Expr
from .fusion import Fusion, Output

if TYPE_CHECKING:
    from ..runtime import Backend

LARGE = 1 << 23  # bytes of a result from which on memory is the limit, not what is computed
MOST_COST = 20  # of the nodes to compute again, as `Formula.cost`
MOST_HELD = 2  # bytes that it keeps alive as long as it is pending, in those of the result
MOST_TIMES = 2  # that it is computed and not kept


def is_large(expr: Expr) -> bool:
    """Whether a result is of a size for which `spared` is worth asking."""
    return layouts.numel(expr.shape) * expr.dtype.itemsize >= LARGE


def spared(fusion: Fusion, target: Expr) -> list[Output]:
    """The outputs of a kernel, other than its target, that need not be kept: cheap, and of operands that the rest of the kernel reads, too, or of no more bytes."""
    if len(fusion.outputs) < 2 or any(storage.home is not None for _, _, storage in fusion.outputs):
        return []
    used = {ref for node in fusion.nodes for ref in node.args}
    return [
        out
        for out in fusion.outputs
        if out[1] is not target and out[0] in used and _is_spared(fusion, *out[:2])
    ]


def _is_spared(fusion: Fusion, ref: tuple[str, int], expr: Expr) -> bool:
    if ref[0] != "t" or expr.again >= MOST_TIMES or expr.flags & (INDEXED | RESHAPED):
        return False
    within, cost = {ref}, 0
    todo = [ref]
    while todo:
        node = fusion.nodes[todo.pop()[1]]
        cost += node.op.formula.cost
        for arg in node.args:
            if arg not in within:
                within.add(arg)
                if arg[0] == "t":
                    todo.append(arg)
    if cost > MOST_COST:
        return False
    elsewhere = {
        arg for k, node in enumerate(fusion.nodes) if ("t", k) not in within for arg in node.args
    }
    read = {arg for arg in within if arg[0] == "a"}
    n = layouts.numel(expr.shape)
    nbytes = n * expr.dtype.itemsize
    held = 0
    for leaf in [fusion.leaves[i] for _, i in read]:
        product = leaf is fusion.product_leaf  # which has no memory yet
        held += n * leaf.dtype.itemsize if product else leaf.buffer.nbytes
    return held <= nbytes * (BESIDE + (MOST_HELD if read <= elsewhere else 1))


def note_left(backend: Backend, left: list[Expr]) -> None:
    """Note results that a kernel has computed and not kept: they do not count among the pending ones, whose number is bounded."""
    if not left:
        return
    for expr in left:
        expr.again += 1
    cells = [*backend.left, *[expr.cell for expr in left if expr.again == 1 and expr.cell]]
    backend.left = [c for c in cells if (s := c()) is not None and s.value.__class__ is Expr]
