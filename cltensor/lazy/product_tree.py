"""Replaying the launches of matrix products with small pointwise trees computed from them.

Running a pending product takes many steps in Python: its chain is collected and laid out over rows and columns, a
schedule is chosen, a kernel looked up. Which launches result depends only on layouts, dtypes, numbers, and which
results live storages hold. So the second time that the same tree is met, its launches are traced (runtime/trace.py),
and from the third time on they are played, in a third of the Python time. Owns the table of traces. Trees that
`tree.walk` leaves to a Fusion are run the general way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from ..runtime import ACTIVE, STATS, Buffer, Numbers, Trace
from ..symbols import WORKING, Work
from .expression import PRODUCTS, RESHAPED, Expr
from .product import Factors, let_go
from .recompute import is_large
from .tree import DECIDED, LeafRecord, settle, walk
from .tree import MOST as NODES

if TYPE_CHECKING:
    from ..runtime import Backend
    from ..storage import Storage

    Long = Callable[[Backend, Storage, Expr], None]

MOST = 1024  # trees that are remembered; 0 turns this replay off


class _Launched(NamedTuple):
    """The traced launches of a tree."""

    trace: Trace
    numbers: Numbers  # what the trace derives from sizes; the sizes are in the tree's key, and so always the same
    # Of the results among a play's buffers: inner results that live storages hold, the tree's last.
    places: tuple[int, ...]


_launched: dict[tuple, _Launched | None] = {}  # None: the tree cannot be traced
_seen: set[tuple] = set()


def forget() -> None:
    """Forget all traces, so that the general way is taken again."""
    _launched.clear()
    _seen.clear()


def run_product_tree(storage: Storage, expr: Expr, long: Long) -> bool:
    """Run a pending storage's value by a replay if it is a small tree over one product that was traced before; False,
    with nothing done, if not.

    `long` runs any expression the general way; it is called, under a trace, when a tree is met for the second time. The
    caller holds the backend's lock.
    """
    if WORKING or expr.flags & ~(DECIDED | PRODUCTS | RESHAPED) or expr.size > NODES or expr.users:
        return False
    if storage.home is not None or expr.live() is not storage or is_large(expr):
        return False
    backend = storage.backend
    key: list[Any] = [backend, expr.shape]
    leaves: list[LeafRecord] = []
    numbers: list[Any] = []
    held: list[tuple[Expr, Storage]] = []
    names: dict[Any, int] = {}
    missing: dict[Expr, int] = {}
    if not walk(expr, None, key, leaves, numbers, held, names, missing):
        return False
    if missing and any(missing.values()):
        return False
    factors = _tell_numbers(numbers, key)
    if factors is None:
        return False
    given: list[Buffer] = []
    for buffer, offset, _, _ in leaves:
        key.append(offset)
        if buffer in given:
            key.append((given.index(buffer),))
        else:
            given.append(buffer)
    found = tuple(key)
    launched = _launched.get(found)
    if launched is None:
        return _note(found, given, held, storage, expr, long)
    buffers = launched.trace.play(given, launched.numbers)
    STATS.replays += 1
    let_go(factors)
    *kept, last = [buffers[place] for place in launched.places]
    settle(storage, expr, last, held, kept, names)
    return True


def _tell_numbers(numbers: list[Any], key: list[Any]) -> Factors | None:
    """Append a tree's numbers to its key.

    Return its product's Factors (which `walk` lists as a number), None if there are several products.
    """
    factors = None
    others = []
    for x in numbers:
        if x.__class__ is not Factors:
            others.append(x)
        elif factors is None:
            factors = x
        else:
            return None
    if factors is not None:
        a, b, bias, alpha, beta, _ = factors
        key += (a.shape, b.shape, bias is None)
        if alpha != 1 or beta != 1:
            others += (alpha, beta)
    if others:
        key.append(repr(others))  # as text, because 0.0 == -0.0
    return factors


def _note(
    key: tuple,
    given: list[Buffer],
    held: list[tuple[Expr, Storage]],
    storage: Storage,
    expr: Expr,
    long: Long,
) -> bool:
    """Run a tree by `long` and trace its launches, if it is met for the second time.

    Else return False, with nothing done.
    """
    if key in _launched or ACTIVE.recorder is not None or not MOST:
        return False
    if key not in _seen:
        if len(_seen) >= MOST:
            _seen.clear()
        _seen.add(key)
        return False
    if len(_launched) >= MOST:
        _launched.clear()
    _launched[key] = None
    trace = Trace(key[0], given, Work())
    with trace.noting():
        long(key[0], storage, expr)
        places = [trace.place(s.value) for s in (*[other for _, other in held], storage)]
        trace.results = ()
    if trace.refused or any(place is None or place < len(given) for place in places):
        return True
    numbers = trace.numbers(())
    assert numbers is not None
    _launched[key] = _Launched(trace, numbers, tuple(places))  # type: ignore[arg-type]
    return True
