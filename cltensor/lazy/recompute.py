"""Which intermediate results a kernel does not write, because their next reader can recompute them.

An intermediate result that something holds is mostly held by an autograd graph, for a gradient whose kernel reads the same operands
anyway. Where memory bandwidth is the limit, recomputing it there costs next to nothing, while keeping it costs one pass over memory to write it
and one to read it. This module owns the decision; the code that collects a fusion asks it. The result then stays pending.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import layouts
from .expression import BESIDE, INDEXED, RESHAPED, Expr
from .fusion import Fusion, Output

if TYPE_CHECKING:
    from ..runtime import Backend

LARGE = 1 << 23  # bytes of a result from which on memory bandwidth is the limit, not arithmetic
MOST_COST = 20  # total `Formula.cost` of the nodes that are computed again
MOST_HELD = 2  # bytes of operands that a result may keep alive while it is pending, in multiples of its own bytes
MOST_TIMES = 2  # how often a result may be computed without being written


def is_large(expr: Expr) -> bool:
    """Return whether a result is so large that leaving it unwritten can save time (see `spared`)."""
    return layouts.numel(expr.shape) * expr.dtype.itemsize >= LARGE


def spared(fusion: Fusion, target: Expr) -> list[Output]:
    """Return the outputs, other than the target, that need not be written.

    These are cheap to compute, are operands of other nodes of the fusion, and keep little memory alive: up to MOST_HELD
    times their own bytes if the rest of the kernel reads their operands as well, else about their own bytes.
    """
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
        product = leaf is fusion.product_leaf  # a placeholder, whose buffer is not the product's
        held += n * leaf.dtype.itemsize if product else leaf.buffer.nbytes
    return held <= nbytes * (BESIDE + (MOST_HELD if read <= elsewhere else 1))


def note_left(backend: Backend, left: list[Expr]) -> None:
    """Note results that a kernel has computed without writing them: they move to `backend.left`, so that they do not
    count among the pending results, whose number is bounded.
    """
    if not left:
        return
    for expr in left:
        expr.again += 1
    cells = [*backend.left, *[expr.cell for expr in left if expr.again == 1 and expr.cell]]
    backend.left = [c for c in cells if (s := c()) is not None and s.value.__class__ is Expr]
