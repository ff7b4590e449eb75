"""Views and their autograd history under in-place writes.

Owns `ViewMeta`, the gradient edge of any tensor, the checks before an in-place write and the
rebasing of history after it. Knows nothing of the engine.

Note [Views and in-place writes]
    A view stores its root base and the version for which its own grad node is valid. A
    differentiable write into a view replaces the history of the *base* by a `CopySlices` node,
    which runs the write's formula on the slice of the gradient that the view covers. All other
    views of that base then have an outdated node, which their version reveals; the next time the
    node of such a view is asked for, the view is re-derived from the base to get a new one.
    In-place ops do three things: `check_inplace(t, *others)` before the write, then
    `t._vc.value += 1`, then `rebase(t, name, inputs, backward, saved)`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from . import anomaly, dual
from .anomaly import STATE as ANOMALY
from .mode import FORWARD, GRAD, OFF, set_enabled
from .node import NO_EDGE, AccumulateGrad, Node, TensorBase, accumulator, next_sequence, op_class
from .saved import SavedTensor, save, save_dict, short_name
from .version import InferenceVersion

# Why a view may not be written to (CreationMeta in torch).
DEFAULT, CUSTOM_FUNCTION, MULTI_OUTPUT, NO_GRAD, INFERENCE = range(5)

LEAF_WRITTEN = "a leaf Variable that requires grad is being used in an in-place operation."
VIEW_OF_LEAF_WRITTEN = (
    "a view of a leaf Variable that requires grad is being used in an in-place operation."
)
_INFERENCE_WRITE = "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details."
_WHY = {
    CUSTOM_FUNCTION: (
        " This view was created inside a custom Function (or because an input was returned as-is) and the autograd logic to handle view+inplace would override the custom backward associated with the custom Function, leading to incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of the custom Function."
    ),
    MULTI_OUTPUT: (
        " This view is the output of a function that returns multiple views. Such functions do not allow the output views to be modified inplace. You should replace the inplace operation by an out-of-place one."
    ),
}


class ViewMeta:
    """The record that makes a tensor a view: its root base, how to re-derive it, the version for which
    its node is valid, and its `kind`.

    `replay(base)` re-derives the view; it is None where strides and offset describe the view fully. The
    code that makes one sets all four attributes: every view has one, and a constructor would cost a call.
    """

    __slots__ = ("base", "kind", "replay", "version")

    base: Any
    replay: Callable[[Any], Any] | None
    kind: int
    version: int


def mark_view(
    view: Any, parent: Any, replay: Callable[[Any], Any] | None = None, multi: bool = False
) -> None:
    """Mark `view` as a view of `parent` (which may be a view itself).

    `replay(parent)` re-derives the view; it is used only where shape, strides and offset in the
    parent's elements do not describe the view (a change of dtype). `multi`: the view is one of
    several that one op returned. Does nothing within an op (`unrecorded`).
    """
    off = OFF and not GRAD.enabled
    if off and GRAD.inner:
        return
    vc, meta = view._vc, parent._view
    if meta is None:
        if vc.__class__ is InferenceVersion:
            return
        base, kind = parent, DEFAULT
    else:
        base, kind = meta.base, meta.kind
    if kind == DEFAULT:
        if off:
            kind = INFERENCE if GRAD.inference else NO_GRAD
        elif multi:
            kind = MULTI_OUTPUT
    if replay is not None and view.dtype is parent.dtype:
        replay = None
    if meta is not None and (replay is not None or meta.replay is not None):
        replay = _compose(meta.replay, _strided(parent, base), replay, _strided(view, parent))
    view._view = made = ViewMeta()
    made.base, made.kind, made.replay, made.version = base, kind, replay, vc.value
    if FORWARD.open:
        dual.follow(view, parent)


def _strided(view: Any, parent: Any) -> tuple[Any, Any, int]:
    """Return the shape and strides of a view, and its offset from the start of `parent`."""
    return view.shape, view.stride(), view.storage_offset() - parent.storage_offset()


def _restride(parent: Any, how: tuple[Any, Any, int]) -> Any:
    """Return the view of `parent` that `_strided` described."""
    return parent.as_strided(how[0], how[1], parent.storage_offset() + how[2])


def _compose(
    first: Callable[[Any], Any] | None,
    first_layout: Any,
    second: Callable[[Any], Any] | None,
    layout: Any,
) -> Callable[[Any], Any]:
    """Return the `replay` of a view of a view; a step whose own `replay` is None is re-derived by its layout."""

    def replay(base: Any) -> Any:
        middle = first(base) if first is not None else _restride(base, first_layout)
        return second(middle) if second is not None else _restride(middle, layout)

    return replay


def requires(t: Any) -> bool:
    """Return True if gradients flow into `t`."""
    if t._requires or t._node is not None:
        return True
    meta = t._view
    if meta is None:
        return False
    base = meta.base
    return base._requires or base._node is not None


def grad_node(t: Any) -> Node | None:
    """Return the node that made `t`, None for a leaf; an outdated view is re-derived from its base first."""
    meta = t._view
    if meta is None or meta.version == t._vc.value:
        return t._node
    return _refresh(t, meta)


def _refresh(t: Any, meta: ViewMeta) -> Node | None:
    """Re-derive an outdated view from its base, if the base requires grad; return the view's node, then a new one."""
    base = meta.base
    if not (base._requires or base._node is not None):
        return t._node
    _check_kind(t, meta, True)
    prev = GRAD.enabled
    set_enabled(True)
    try:
        fresh = meta.replay(base) if meta.replay is not None else _restride(base, _strided(t, base))
    finally:
        set_enabled(prev)
    set_node(t, fresh._node, fresh._nr)
    meta.version = t._vc.value
    return t._node


def set_node(t: Any, node: Node | None, nr: int) -> None:
    """Give `t` another node: its retained gradient moves to the new node, its hooks stay with the old one."""
    old = t._node
    if old is not None and t._retain and old._extra is not None and old._extra.retain is not None:
        old._extra.retain.pop(t._nr, None)
        if node is not None:
            retain_on(t, node, nr)
    if t._hooks is not None and old is not node:
        t._hooks = None
    t._node = node
    t._nr = nr
    t._requires = False


def retain_on(t: Any, node: Node, nr: int) -> None:
    """Have a node keep the gradient of its output number `nr` as the `.grad` of `t`, while `t` lives."""
    extra = node._extras()
    if extra.retain is None:
        extra.retain = {}
    extra.retain[nr] = weakref.ref(t)


def gradient_edge(t: Any) -> tuple[Any, int]:
    """Return the `(node, output number)` that `t`'s gradient flows to; `(None, 0)` if it needs
    none.
    """
    node = t._node if t._view is None else grad_node(t)
    if node is not None:
        return node, t._nr
    if t._requires:
        return accumulator(t), 0
    return NO_EDGE


def _check_kind(t: Any, meta: ViewMeta, indirect: bool) -> None:
    """Raise torch's RuntimeError if the view's kind forbids a write to it (`indirect`: to its base or another view)."""
    kind = meta.kind
    if kind == DEFAULT:
        return
    what = "its base or another view of its base has been" if indirect else "is being"
    node = t._node
    if kind in (NO_GRAD, INFERENCE) or node is None:
        where, other, block = (
            ("inference mode", "in normal mode", "inference_mode")
            if kind == INFERENCE
            else ("no_grad mode", "with grad mode enabled", "no_grad")
        )
        why = (
            " Given that this use case is ambiguous and error-prone, it is forbidden. You can "
            "clarify your code by moving both the view and the inplace either both inside the "
            f"{block} block (if you don't want the inplace to be tracked) or both outside (if you "
            "want the inplace to be tracked)."
        )
        made = "A view was created in"
        if node is not None:
            made = (
                f"Output {t._nr} of {short_name(node.name())} is a view of a view which was "
                "created in"
            )
        raise RuntimeError(
            f"{made} {where} and {what} modified inplace {other}.{_WHY.get(kind, why)}"
        )
    verb = f"and {what}" if indirect else "and is being"
    raise RuntimeError(
        f"Output {t._nr} of {short_name(node.name())} is a view {verb} modified "
        f"inplace.{_WHY[kind]}"
    )


def check_inference(t: Any) -> None:
    """Raise RuntimeError if `t` was made in inference mode and is about to be written outside of it."""
    if type(t._vc) is InferenceVersion and not GRAD.inference:
        raise RuntimeError(_INFERENCE_WRITE)


def check_inplace(t: Any, *others: Any) -> None:
    """Raise torch's RuntimeError if `t` may not be written in place.

    `others` are the op's further tensor inputs; None and numbers are ignored.
    """
    meta = t._view
    if meta is None and t._requires and GRAD.enabled:
        raise RuntimeError(LEAF_WRITTEN)
    check_inference(t)
    if meta is None or (OFF and not GRAD.enabled):
        return
    wants = requires(t)
    if not wants:
        for other in others:
            if getattr(other, "_vc", None) is not None and requires(other):
                break
        else:
            return
    _check_kind(t, meta, False)
    if wants:
        if meta.base._node is None:
            raise RuntimeError(VIEW_OF_LEAF_WRITTEN)
        if grad_node(t) is None:
            raise RuntimeError(LEAF_WRITTEN)


def inferred(inputs: Sequence[Any]) -> bool:
    """Return whether all operands were made in inference mode; an op on such operands is not recorded, as in torch.

    A number counts as an operand that was not, because torch wraps it in an ordinary tensor.
    """
    for t in inputs:
        vc = getattr(t, "_vc", None)
        if vc.__class__ is not InferenceVersion and (vc is not None or t.__class__ in (int, float, bool, complex)):  # fmt: skip
            return False
    return True


def input_edges(inputs: Sequence[Any]) -> tuple[list[tuple[Any, int]], list[Any], bool]:
    """Return the edges to which the inputs' gradients flow, the inputs' shapes, and whether any input requires grad.

    A view made in no_grad mode of a tensor that requires grad counts as requiring grad, as in torch; its gradient flows
    nowhere.
    """
    edges: list[tuple[Any, int]] = []
    shapes: list[Any] = []
    found = False
    for t in inputs:
        if isinstance(t, TensorBase):
            shapes.append(t.shape)  # type: ignore[attr-defined]
            view = t._view
            node = t._node if view is None else grad_node(t)
            if node is not None:
                edges.append((node, t._nr))
                found = True
                continue
            if view is not None and (view.base._node is not None or view.base._requires):
                found = True
            if t._requires and (t._vc.__class__ is not InferenceVersion or not inferred(inputs)):  # type: ignore[attr-defined]
                ref = t._acc
                node = ref() if ref is not None else None
                if node is None:
                    node = AccumulateGrad(t)
                    t._acc = weakref.ref(node)
                edges.append((node, 0))
                found = True
                continue
        else:
            shapes.append(None)
        edges.append(NO_EDGE)
    return edges, shapes, found


class CopySlices(Node):
    """The node of a write into part of a base: it applies the write's own formula to the part of the
    base's gradient that the write covered.
    """

    __slots__ = ("_index", "_inner", "_layout", "_replay", "_strides")

    def __init__(self, base: Any, view: Any, inner: Node, index: int) -> None:
        edges = list(inner._edges)
        edges[index] = gradient_edge(base)
        inner._edges = self._edges = tuple(edges)
        self._index = index
        self._inner = inner
        self._layout = _strided(view, base)
        self._replay = view._view.replay
        self._strides = None if base.is_contiguous() else base.stride()
        self._extra = None
        self._fn = None
        self._key = -next_sequence()
        self._meta = ((base.shape, base.dtype, base.device),)
        self._saved = inner._saved
        self.shapes = inner.shapes

    def name(self) -> str:
        return "torch::autograd::CopySlices"

    def slice_of(self, base: Any) -> Any:
        """Return the part of `base` (or of a tensor laid out like it) that the write covered."""
        return self._replay(base) if self._replay is not None else _restride(base, self._layout)

    def _release(self) -> None:
        self._inner._release()

    def _apply(self, grads: list[Any]) -> tuple[Any, ...]:
        inner, index, grad = self._inner, self._index, grads[0]
        if grad is None:
            return (None,) * len(self._edges)
        # A new copy of the gradient in the base's layout, so that the view's strides are valid for it.
        shape = self._meta[0][0]
        if self._strides is None:
            full = grad.new_empty(shape)
        else:
            full = grad.new_empty_strided(shape, self._strides)
        full.copy_(grad)
        part = self.slice_of(full)
        given = part.clone()
        outs = inner._fn(inner, given) if inner._fn is not None else inner._apply([given])
        if type(outs) is not tuple:
            outs = (outs,)
        if self._edges[index][0] is None:
            return outs
        own = outs[index]
        if own is None:
            part.zero_()
        else:
            part.copy_(own)
        return (*outs[:index], full, *outs[index + 1 :])


def attach(t: Any, inner: Node, index: int) -> None:
    """Make `inner`, just recorded for a write into `t` (its input number `index`), the history of
    `t` or its base.
    """
    meta = t._view
    if meta is None:
        set_node(t, inner, 0)
        return
    base = meta.base
    node = CopySlices(base, t, inner, index)
    shape, strides, offset = base.shape, base.stride(), base.storage_offset()
    ref = weakref.ref(node)

    def locate(part: Any) -> Any:
        """Return the saved result as a slice of the base with its new node, for higher derivatives."""
        node: Any = ref()
        whole = part.alias().as_strided(shape, strides, offset)
        whole._node = node
        whole._nr = 0
        return dual.carry(node.slice_of(whole), part)

    for value in inner._saved.values() if inner._saved else ():
        if type(value) is SavedTensor and value.output:
            value.output = locate
    set_node(base, node, 0)


def rebase(
    t: Any,
    name: str,
    inputs: Sequence[Any],
    backward: Callable[..., Any],
    saved: dict[str, Any] | None = None,
    push: Callable[..., Any] | None = None,
) -> Node | None:
    """Record an in-place write into `t`; called after the write and after raising `t._vc.value` by one.

    As `record`, with `t` itself among the inputs. The value saved as "result" is `t` as it is now;
    every other saved tensor gets its version of before the write, so one that shares `t`'s storage is
    reported as modified when backward reads it. To save the values of before the write, pass a clone
    or a `SavedTensor` made beforehand. Does nothing where no input requires grad or grad mode is off.
    """
    if FORWARD.open and dual.flows(inputs):
        plain = dict(saved) if saved else {}
        with dual.only(()):
            made = rebase(t, name, inputs, backward, saved)
        dual.propagate(name, inputs, t, backward, plain, push, written=True)
        dual.remember(made, plain, t)
        return made
    if OFF and not GRAD.enabled:
        return None
    vc = t._vc
    result = None
    vc.value -= 1  # so that the inputs' edges are found as they were before the write
    try:
        edges, shapes, found = input_edges(inputs)
        if not found:
            return None
        if saved:
            result = saved.pop("result", None)
            for key, value in saved.items():
                if value is t:
                    # Save an alias: the node becomes that of `t`, so saving `t` would make a reference cycle.
                    saved[key] = save(_before(t), None)
            save_dict(saved, ())
    finally:
        vc.value += 1
    node = op_class(name)()
    node._edges = tuple(edges)
    node.shapes = tuple(shapes)
    node._fn = backward
    node._key = -next_sequence()
    node._extra = None
    node._meta = ((t.shape, t.dtype, t.device),)
    node._saved = saved
    if result is not None:
        item = save(result, True)
        item.nr = 0
        saved["result"] = item  # type: ignore[index]
    if ANOMALY.enabled:
        anomaly.remember(node._extras(), GRAD.task.node if GRAD.task is not None else None)
    index = next(i for i, item in enumerate(inputs) if item is t)
    attach(t, node, index)
    return node


def _before(t: Any) -> Any:
    """Return an alias of `t` with the node that `t` has now, before the write gives `t` another."""
    old = t.alias()
    old._node, old._nr = t._node, t._nr
    return old
