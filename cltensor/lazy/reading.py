"""Whether a kernel that reads an expression (a reduction, a norm, a write of a part) computes it itself, or has it run first.

Owns that decision, and the key by which such a kernel is found without collecting a fusion. Knows nothing of kernels or tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .expression import HEAVY, INDEXED, LIGHT, PRODUCTS, READ
from .tree import DECIDED, MOST, LeafRecord, walk

if TYPE_CHECKING:
    from ..runtime import Buffer
    from ..storage import Storage
    from .expression import Expr

MOST_READ = 2  # bytes of operands from which a value may be recomputed repeatedly, in multiples of its own bytes


def is_read(storage: Storage) -> bool:
    """Return whether a reading kernel computes a storage's pending value itself; if False, the value is run first.

    False for a value with a matrix product in it, whose launch computes the chain behind it anyway (Note [Products]);
    for the second reader, unless the value is cheap; and for a value computed from one that a reading kernel has
    computed without writing it, if its operands take much more memory than it does: otherwise each norm along a
    residual stream would add up all layers before it.
    """
    expr = storage.value
    flags = expr.flags
    if flags & (INDEXED | PRODUCTS) or is_grown(storage):
        return False
    return not storage.reduced or (expr.size <= LIGHT and not flags & HEAVY)


def is_grown(storage: Storage) -> bool:
    """Return whether a pending value is computed from one that a reading kernel has computed without writing it, and its
    operands take much more memory than it does.
    """
    expr = storage.value
    return bool(expr.flags & READ) and expr.held > MOST_READ * storage.nbytes


def note_read(storage: Storage) -> None:
    """Note that a reading kernel computes a storage's pending value itself."""
    expr = storage.value
    if expr.size > 1:
        storage.reduced = True
    expr.flags |= READ


def told(expr: Expr, key: list[Any], numbers: list[Any]) -> list[tuple[Buffer, int]] | None:
    """Append an expression's structure to `key` and its numbers to `numbers`, for a kernel that computes it; return
    (buffer, offset) of each operand read.

    None if the expression is not simple enough, for example because a live tensor holds a part of it; ignore what was added then.
    """
    if expr.value is not None or expr.flags & ~DECIDED or expr.size > MOST:
        return None
    leaves: list[LeafRecord] = []
    held: list[Any] = []
    names: dict[Any, int] = {}
    if not walk(expr, None, key, leaves, numbers, held, names, {}) or held:
        return None
    if any(through is not None and part.live() is not None for part, through in names):
        return None  # that part is run first, and the kernel reads its memory
    return [leaf[:2] for leaf in leaves]
