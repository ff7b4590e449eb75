"""Tangents of forward-mode differentiation: which tensors have one, at which level, and how an op's results get theirs.

Owns the levels of forward-mode differentiation and what tensors hold for them. Knows no op: a tangent is computed from
what `record` is given, so every op that has a backward formula also has a forward derivative.

Note [Forward mode]
    A tensor holds one tangent for each open level. An op on such tensors calls `record` (or `rebase`, if in place) as
    if it had to be recorded, also under `no_grad`, and there `propagate` computes its results' tangents at once: by the
    op's own rule (`push`; rows of real numbers put the tangent in the gradient's place in the formula), or from its
    backward formula. The backward formula is the VJP, which is linear in the gradient u; so its derivative with respect
    to u, obtained by a backward pass over the formula, is the JVP. A view's tangent is the same view of its base's
    tangent: a tangent has the layout of its tensor, and shares memory as the tensor does. While a level's tangents are
    computed, only levels opened before it are visible; this makes `func.jvp` nest. Where no level is open, all this
    costs one test of a flag.
"""

from __future__ import annotations

import contextlib
import re
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .mode import FORWARD, GRAD, set_enabled
from .node import NO_EDGE, Node, TensorBase, op_class
from .saved import SavedTensor

# Passed as `push`: the results are views of the input, and the caller gives them their tangents itself.
VIEW: Any = object()

_UNDERIVABLE = re.compile(
    r"(?:the )?derivative for (?:aten::|')(\w+?)(?:_backward)?(?:: \w+)?'? is not implemented"
)

# Value of `_root` for a tensor that is a view in reverse mode only: its tangents are its own, not views of its base's.
APART: Any = object()


class Level:
    """One forward derivative being taken: the tensors with a tangent at this level, and the levels outside it."""

    def __init__(self, number: int, outer: tuple[Level, ...]) -> None:
        self.number, self.outer = number, outer
        self.held: weakref.WeakSet[Tangents] = weakref.WeakSet()


class Tangents:
    """The tangents of one tensor, by level."""

    __slots__ = ("__weakref__", "of")

    def __init__(self) -> None:
        self.of: dict[Level, Any] = {}


def enter() -> Level:
    """Open a new innermost level and return it."""
    level = Level(len(FORWARD.levels), levels())
    FORWARD.levels = (*FORWARD.levels, level)
    FORWARD.open = True
    return level


def leave() -> None:
    """Close the level opened last, and drop its tangents."""
    level = FORWARD.levels[-1]
    FORWARD.levels = FORWARD.levels[:-1]
    FORWARD.open = bool(FORWARD.levels)
    for held in list(level.held):
        held.of.pop(level, None)


@contextlib.contextmanager
def inside() -> Iterator[Level]:
    """Open a level for the `with` block; ops of this thread propagate its tangents there."""
    before, level = GRAD.levels, enter()
    GRAD.levels = None if before is None else (*before, level)
    try:
        yield level
    finally:
        GRAD.levels = before
        leave()


def levels() -> tuple[Level, ...]:
    """Return the levels whose tangents ops propagate in this thread, the outermost first."""
    below = GRAD.levels
    return FORWARD.levels if below is None else below


@contextlib.contextmanager
def only(seen: tuple[Level, ...]) -> Iterator[None]:
    """Within the `with` block, let this thread's ops propagate the tangents of these levels alone."""
    before, GRAD.levels = GRAD.levels, seen
    try:
        yield
    finally:
        GRAD.levels = before


def below(level: Level) -> contextlib.AbstractContextManager[None]:
    """Within the `with` block, let this thread's ops propagate the tangents of the levels outside `level` alone."""
    return only(level.outer)


# ------------------------------------------------------------------------------------------- a tensor's tangents


def tangent(t: Any, level: Level) -> Any:
    """Return the tangent of `t` at `level`, or None; a view's may be made here, as a view of its base's tangent."""
    held = t._fw
    if held is not None:
        own = held.of.get(level)
        if own is not None:
            return own
    base = _base(t)
    held = None if base is None else base._fw
    of_base = None if held is None else held.of.get(level)
    if of_base is None:
        return None
    with below(level):
        made = _part(of_base, t, base)
    _put(t, level, made)
    return made


def _base(t: Any) -> Any:
    """Return the tensor of whose tangent the tangent of `t` is a view; None if the tangent of `t` is its own."""
    root, meta = t._root, t._view
    if root is APART or meta is None:
        return None
    return meta.base if root is None else root


def _part(of_base: Any, t: Any, base: Any) -> Any:
    """Return the view of the base's tangent that corresponds to the view `t` of the base."""
    replay = t._view.replay
    if replay is not None:
        return replay(of_base)
    offset = t.storage_offset() - base.storage_offset() + of_base.storage_offset()
    return of_base.as_strided(t.shape, t.stride(), offset)


def _put(t: Any, level: Level, value: Any) -> None:
    """Store the tangent of a tensor at a level, without checks or copies."""
    held = t._fw
    if held is None:
        held = t._fw = Tangents()
    held.of[level] = value
    level.held.add(held)


def follow(view: Any, parent: Any) -> None:
    """Set `_root` of a new view: the tensor of whose tangent the view's tangent is a part."""
    root = parent._root
    if root is APART:
        view._root = parent
    elif root is not None:
        view._root = root


def share(view: Any, parent: Any, of: Callable[[Any], Any]) -> None:
    """Give a new view of `parent` its tangents: the same view, made by `of`, of the parent's tangents."""
    for level in levels():
        found = tangent(parent, level)
        if found is not None:
            with below(level):
                made = of(found)
            _put(view, level, made)


def carry(made: Any, source: Any, through: Callable[[Any], Any] | None = None) -> Any:
    """Give `made`, which has its source's elements and layout, the source's tangents, passed through `through` if
    given; return `made`.
    """
    if FORWARD.open:
        for level in levels():
            found = tangent(source, level)
            if found is not None:
                _put(made, level, found if through is None else through(found))
    return made


def keep(made: Any, source: Any) -> None:
    """As `carry`, but with copies of the tangents, which later in-place writes to the source do not change."""
    for level in levels():
        found = tangent(source, level)
        if found is not None:
            with below(level):
                copied = found.clone()
            assign(made, level, copied)


def leaf(t: Any) -> Any:
    """Return a detached tensor of the same elements that requires grad, batched ones too, whose users cannot ask for it."""
    made = t.detach()
    made.requires_grad = True
    return made


def again(t: Any) -> Any:
    """Return another tensor object for `t`, with respect to which derivatives can be taken.

    In grad mode the graph of `t` stays connected.
    """
    if GRAD.enabled and t.requires_grad:
        return t.view_as(t)
    return carry(leaf(t), t)


def drop(t: Any) -> None:
    """Remove all tangents from a tensor."""
    if t._fw is not None:
        t._fw, t._root = None, APART


def is_dual(t: Any) -> bool:
    """Return whether ops on this tensor propagate a tangent."""
    return isinstance(t, TensorBase) and any(tangent(t, level) is not None for level in levels())


def flows(tensors: Sequence[Any]) -> bool:
    """Return whether an op on these inputs has tangents to propagate; inputs that are no tensors are ignored."""
    if GRAD.inference or not levels():
        return False
    return any(is_dual(t) for t in tensors)


# ------------------------------------------------------------------------------------------- giving one


def assign(t: Any, level: Level, new: Any, written: bool = False) -> None:
    """Make `new` the tangent of a tensor that has none; `written`: the tensor was written in place.

    `new` is used as it is if it has the tensor's layout, else copied into that layout. For a view that was written, the
    base gets the tangent as well. RuntimeError for another shape, or if `new` has a tangent at this level itself.
    """
    if tangent(new, level) is not None:
        raise RuntimeError(
            f"Setting a forward grad that itself has a forward gradient at the same level{level.number} is not supported."
        )
    if t.shape != new.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(t.shape)} while the given forward gradient is of size {list(new.shape)}."
        )
    with below(level):
        base = _base(t) if written else None
        if base is not None:
            whole = _laid_out(new, base, zeros=True)
            made = _part(whole, t, base)
            made.copy_(new)
            _put(base, level, whole)
            new = made
        elif not _same_layout(new, t):
            made = _laid_out(new, t)
            made.copy_(new)
            new = made
    _put(t, level, new)


def _elements(t: Any) -> int:
    return t._storage.nbytes // t.dtype.itemsize


def _same_layout(a: Any, b: Any) -> bool:
    """Return whether storage sizes, offsets and strides of both agree, so that the same views of both are possible."""
    if not a.numel():
        return True
    if _elements(a) != _elements(b) or a.storage_offset() != b.storage_offset():
        return False
    pairs = zip(a.shape, a.stride(), b.stride(), strict=True)
    return all(p == q or n == 1 for n, p, q in pairs)


def _laid_out(like: Any, t: Any, zeros: bool = False) -> Any:
    """Return a new tensor with the dtype of `like` and the layout of `t`.

    Filled with zeros if `zeros`, or if the layout has gaps.
    """
    if _elements(t) != t.numel():
        flat = like.new_zeros(_elements(t))
        return flat.as_strided(t.shape, t.stride(), t.storage_offset())
    made = like.new_empty_strided(t.shape, t.stride())
    return made.zero_() if zeros else made


def overwrite(t: Any, level: Level, new: Any) -> None:
    """Give a tensor that was written in place its new tangent (None: zeros), copied into its old tangent if
    it has one.
    """
    old = tangent(t, level)
    if old is None:
        if new is not None:
            assign(t, level, new, written=True)
    elif new is not old:
        with below(level):
            old.zero_() if new is None else old.copy_(new)


def take(t: Any, value: Any) -> None:
    """Give a tensor the tangents of `value`, whose elements were just copied into it."""
    for level in levels():
        overwrite(t, level, tangent(value, level))


# ------------------------------------------------------------------------------------------- an op's tangents


def propagate(
    name: str,
    inputs: Sequence[Any],
    outputs: Any,
    backward: Callable[..., Any],
    saved: dict[str, Any],
    push: Callable[..., Any] | None,
    written: bool = False,
) -> None:
    """Give the results of an op their tangents; the arguments are those of `record`.

    `push(ctx, out, *tangents)` returns the result's tangent from those of the inputs (None for inputs without one), or
    NotImplemented to have it computed from the backward formula.
    """
    several = isinstance(outputs, tuple | list)
    outs = tuple(outputs) if several else (outputs,)
    for level in levels():
        given = [tangent(t, level) if isinstance(t, TensorBase) else None for t in inputs]
        if all(g is None for g in given):
            continue
        ctx = _context(name, inputs, given, saved)
        task, GRAD.task = GRAD.task, None
        try:
            with below(level):
                found: Any = NotImplemented
                if push is not None and not several:
                    found = _formula(push, ctx, outputs, *given)
                if found is NotImplemented:
                    found = _transposed(ctx, inputs, outs, backward, given)
                else:
                    found = (found,)
                found = [_fresh(new, out, given) for new, out in zip(found, outs, strict=True)]
                if GRAD.enabled and not any(_recorded(t) for t in (*inputs, *given)):
                    # No input requires grad. Drop the history that a formula makes if it runs its op again, on leaves
                    # of its own.
                    found = [new if new is None else carry(new.detach(), new) for new in found]
        finally:
            GRAD.task = task
        for out, new in zip(outs, found, strict=True):
            if new is not None:
                if written:
                    overwrite(out, level, new)
                else:
                    assign(out, level, new)


def _nowhere() -> Node:
    """Return a node without inputs and formula, which exists only for an edge to lead to it."""
    node = Node()
    node._edges = node._meta = node.shapes = ()
    node._fn = node._extra = node._saved = None
    node._key = 0
    return node


# The edge of an input that has a tangent, in a formula's context: makes `ctx.needs` true for this input.
_WANTED = (_nowhere(), 0)


def _recorded(t: Any) -> bool:
    return isinstance(t, TensorBase) and t.requires_grad  # type: ignore[attr-defined]


def _context(name: str, inputs: Sequence[Any], given: list[Any], saved: dict[str, Any]) -> Node:
    """Return the node that a formula gets as `ctx`: it has the saved values, and marks the inputs that have a tangent
    as needed.
    """
    node = op_class(name)()
    node._saved = {k: tuple(v) if isinstance(v, list) else v for k, v in saved.items()}
    node._edges = tuple([NO_EDGE if g is None else _WANTED for g in given])
    node.shapes = tuple([getattr(t, "shape", None) for t in inputs])
    node._fn = node._extra = None
    node._meta = ()
    node._key = 0
    return node


def _transposed(
    ctx: Node,
    inputs: Sequence[Any],
    outs: tuple[Any, ...],
    backward: Callable[..., Any],
    given: list[Any],
) -> list[Any]:
    """Return the JVP for each output: the derivative of the backward formula (the VJP) by its gradient argument."""
    from .engine import grad
    from .loop import fit

    record, pack = GRAD.enabled, GRAD.pack
    GRAD.pack = None
    set_enabled(True)
    try:
        weights = [
            leaf(o.new_zeros(o.shape)) if o is not None and o.dtype.category >= 2 else None
            for o in outs
        ]
        pulled = _formula(backward, ctx, *weights)
        if not isinstance(pulled, tuple | list):
            pulled = (pulled,)
        ends, along = [], []
        for i, (v, g) in enumerate(zip(pulled, given, strict=True)):
            if v is not None and g is not None and v.requires_grad:
                t = inputs[i]
                ends.append(fit(v, (t.shape, t.dtype, t.device), ctx, i))
                along.append(g)
        wanted = [w for w in weights if w is not None]
        found: Any = (None,) * len(wanted)
        if ends:
            found = _formula(grad, ends, wanted, along, create_graph=record, allow_unused=True)
    finally:
        GRAD.pack = pack
        set_enabled(record)
    each = iter(found)
    return [None if w is None else _or_zeros(next(each), w) for w in weights]


def _formula(formula: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """Call a formula; its error that a derivative is not implemented is replaced by torch's error for forward mode."""
    try:
        return formula(*args, **named)
    except RuntimeError as error:
        found = _UNDERIVABLE.match(str(error))
        if found is None:
            raise
        raise NotImplementedError(
            f"Trying to use forward AD with {found[1]} that does not support it because it has not been implemented yet.\n"
            "Please file an issue to PyTorch at https://github.com/pytorch/pytorch/issues/new?template=feature-request.yml so that "
            "we can prioritize its implementation or submit a PR adding the implementation to derivatives.yaml"
        ) from error


def _or_zeros(found: Any, like: Any) -> Any:
    return like.new_zeros(like.shape) if found is None else found


def _fresh(new: Any, out: Any, given: list[Any]) -> Any:
    """Return a computed tangent in the result's dtype, copied if it shares memory with a tangent in `given`."""
    if new is None:
        return None
    if new.dtype is not out.dtype:
        new = new.to(out.dtype)
    for g in given:
        if g is not None and g._storage is new._storage:
            return new.clone()
    return new


def remember(node: Any, saved: dict[str, Any], outputs: Any) -> None:
    """Give the tangents of an op's results also to the aliases of these results that its node has saved."""
    kept = node._saved if node is not None else None
    for key, item in kept.items() if kept else ():
        if item.__class__ is SavedTensor and item.output and isinstance(item.data, TensorBase):
            source = saved.get(key, outputs)
            if isinstance(source, TensorBase):
                carry(item.data, source)
