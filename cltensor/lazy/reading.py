"""What kernels that read expressions (reductions, norms) may compute for themselves, and what they depend on then.

Owns that decision, and the key of such a kernel that is found without collecting it. Knows nothing of kernels or tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .expression import HEAVY, INDEXED, LIGHT, PRODUCTS, READ
from .tree import DECIDED, MOST, LeafRecord, walk

if TYPE_CHECKING:
    from ..runtime import Buffer
    from ..storage import Storage
    from .expression import Expr

MOST_READ = 2  # memory that a value is computed from again and again, in its own size


def is_read(storage: Storage) -> bool:
    """Whether such a kernel may compute a pending value for itself; else it is to be run first.

    A product takes what is computed from it along (Note [Products]). Else it is run for a second one, unless it is light; and where it has grown from what one has computed, and reads much more
    memory than it takes: or each norm along a residual stream would add up all layers before it.
    """
    expr = storage.value
    flags = expr.flags
    if flags & (INDEXED | PRODUCTS) or (flags & READ and expr.held > MOST_READ * storage.nbytes):
        return False
    return not storage.reduced or (expr.size <= LIGHT and not flags & HEAVY)


def note_read(storage: Storage) -> None:
    """Note that such a kernel computes a pending value for itself."""
    expr = storage.value
    if expr.size > 1:
        storage.reduced = True
    expr.flags |= READ


def told(expr: Expr, key: list[Any], numbers: list[Any]) -> list[tuple[Buffer, int]] | None:
    """Add to `key` and `numbers` what a kernel that computes an expression depends on; returns what it reads, buffers and offsets.

    None where there is more to decide, as when somebody holds a part of it; what was added is then of no use.
    """
    if expr.value is not None or expr.flags & ~DECIDED or expr.size > MOST:
        return None
    leaves: list[LeafRecord] = []
    held: list[Any] = []
    names: dict[Any, int] = {}
    if not walk(expr, None, key, leaves, numbers, held, names, {}) or held:
        return None
    if any(through is not None and part.live() is not None for part, through in names):
        return None  # it is run first, and the kernel reads memory of its own
    return [leaf[:2] for leaf in leaves]
