"""Calls on batched tensors: how they are met before they reach an op, and what is done about them.

Owns the interception, the table of rules and what is done where there is no rule. Knows no rule: those are in rules/.

Note [Batching]
    `vmap` calls its function once, with tensors of which one dimension is hidden (`Batched`). While one runs, the functions of
    the library stand aside: each has its code exchanged for a line that looks whether an argument is batched, and the code is
    given back when the last `vmap` ends. So whatever way a function is reached - a method, an operator, a name that somebody
    imported long ago, a gradient formula - it is met, and where no `vmap` runs nothing is there that could cost anything.
    A call with batched arguments goes to the function's rule, for the innermost level among them: a rule moves the hidden
    dimension where the function takes it and calls the function once on what is beneath, which may be batched at an outer level.
    A function without a rule is tried as it is: most are written in terms of others. What reads memory instead raises `NoRule`,
    and is then, and from then on, called for each slice, and the results stacked (said at CLTENSOR_DEBUG=3).
    Gradients need no more: the tensors beneath are recorded as ever, and samples do not depend on each other. A gradient that
    is batched itself (`vmap` over a vjp) goes through the nodes' formulas as any function's argument.
"""

from __future__ import annotations

import threading
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .. import interception
from ..amp.install import BENEATH
from ..errors import debug_line
from ..ops.row import FUNCTIONS
from ..tensor import Tensor
from ..utils._pytree import tree_flatten, tree_map, tree_unflatten
from . import levels
from .batched import Batched, NoRule, first, hide, is_batched, top
from .levels import STACK, level_of
from .signatures import bound, innermost, spread

DYNAMIC = (
    "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over aten::{}. Please file an "
    "issue at https://github.com/pytorch/pytorch/issues if you need this feature."
)

_ESCAPED = (
    "Your tensor may have escaped from inside a function being vmapped and this is a user error (see "
    "https://pytorch.org/functorch/stable/ux_limitations.html), or there is an internal functorch error in `vmap`."
)

RULES: dict[str, Callable] = {}
ALWAYS: set[str] = set()  # names whose rules are asked without batched arguments, too
LOOPED: dict[str, int] = {}  # what was called for each slice, and how often


def rule(names: str, *, always: bool = False) -> Callable:
    """Make a function the rule of some names: it is called with a `Call`, and the arguments."""
    return _entering(names, always, lambda fn: fn)


def named_rule(
    names: str, serves: Callable[[Call, dict[str, Any]], bool] | None = None
) -> Callable:
    """As `rule`, with the arguments by name, defaults filled in. What it does not serve goes on as without a rule."""

    def by_name(fn: Callable) -> Callable:
        def bind(call: Call, *args: Any, **kwargs: Any) -> Any:
            given = bound(call.entry, args, kwargs)
            return fn(call, given) if serves is None or serves(call, given) else call.fallback()

        return bind

    return _entering(names, False, by_name)


def _entering(names: str, always: bool, form: Callable) -> Callable:

    def register(fn: Callable) -> Callable:
        made = form(fn)
        for name in names.split():
            RULES[name] = made
            if always:
                ALWAYS.add(name)
        return fn

    return register


class Entry:
    """A function of the library: its own code under another name, and its rule."""

    __slots__ = (
        "always",
        "code",
        "fn",
        "innermost",
        "loops",
        "name",
        "order",
        "original",
        "own",
        "rule",
        "signature",
    )

    def __init__(self, name: str, fn: Any) -> None:
        self.name, self.fn = name, fn
        self.own, self.original = fn.__code__, interception.twin(fn)
        self.innermost = innermost(fn)
        self.rule: Any = RULES.get(name)
        self.always = name in ALWAYS
        self.loops = False
        self.signature: Any = None
        self.code = interception.asking(fn, self.call)

    def call(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """What a call of the function does while a `vmap` runs."""
        if self.always and STACK.levels:
            return self.rule(Call(self, len(STACK.levels), args, kwargs), *args, **kwargs)
        level = top(args)
        if kwargs and (named := top(list(kwargs.values()))) > level:
            level = named
        if not level:
            return self.original(*args, **kwargs)
        if self.rule is not None:
            return self.rule(Call(self, level, args, kwargs), *args, **kwargs)
        return attempt(self, level, args, kwargs)


class Call:
    """One call of a function with arguments batched at a level, for its rule."""

    __slots__ = ("args", "entry", "kwargs", "level", "randomness", "size")

    def __init__(self, entry: Entry, level: int, args: tuple, kwargs: dict[str, Any]) -> None:
        found = level_of(level)
        if found is None:
            raise RuntimeError(_ESCAPED)
        self.entry, self.level, self.args, self.kwargs = entry, level, args, kwargs
        self.size, self.randomness = found.size, found.randomness

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def f(self) -> Callable:
        """The function, for what lies beneath this level."""
        return self.entry.fn

    def here(self, t: Any) -> bool:
        """Whether a value is batched at this level."""
        return t.__class__ is Batched and t.level == self.level

    def front(self, t: Any) -> Any:
        """Show the hidden dimension as the first; what has none stays as it is."""
        return first(t.value, t.bdim) if self.here(t) else t

    def full(self, t: Any) -> Any:
        """Show the hidden dimension as the first, a repeated one where there is none."""
        if self.here(t):
            return first(t.value, t.bdim)
        return t.unsqueeze(0).expand(self.size, *t.shape)

    def hide(self, out: Any, dim: int = 0) -> Any:
        """Hide a dimension of each result."""
        if isinstance(out, Tensor):
            return hide(out, dim, self.level)
        return tree_map(lambda t: hide(t, dim, self.level) if isinstance(t, Tensor) else t, out)

    def again(self, given: dict[str, Any]) -> Any:
        """Call the function with arguments by name."""
        args, kwargs = spread(self.entry, given)
        return self.f(*args, **kwargs)

    def fallback(self) -> Any:
        """Do as without a rule."""
        return attempt(self.entry, self.level, self.args, self.kwargs)

    def loop(self) -> Any:
        """Call the function for each slice."""
        return sliced(self.name, self.f, self.level, self.args, self.kwargs)


# ------------------------------------------------------------------------------------------- without a rule


def attempt(entry: Entry, level: int, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Run a function on batched tensors as it is, or for each slice where it reads their memory."""
    if not entry.loops:
        STACK.inside += 1
        try:
            return entry.original(*args, **kwargs)
        except NoRule:
            entry.loops = True
        finally:
            STACK.inside -= 1
    return sliced(entry.name, entry.fn, level, args, kwargs)


def sliced(name: str, fn: Callable, level: int, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Call a function for each slice of the tensors batched at a level, and stack the results."""
    LOOPED[name] = LOOPED.get(name, 0) + 1
    debug_line(3, "vmap: %s is called for each slice", name)
    leaves, spec = tree_flatten((args, kwargs))
    size = next(t.value.shape[t.bdim] for t in leaves if is_batched(t, level))
    results: list[list[Any]] = []
    form: Any = None
    for i in range(max(size, 1)):
        parts = [_part(t, i, level, size) for t in leaves]
        made, named = tree_unflatten(parts, spec)
        found, form = tree_flatten(fn(*made, **named))
        results.append(found)
    return tree_unflatten([_joined(name, c, level, size) for c in zip(*results, strict=True)], form)


def _part(t: Any, i: int, level: int, size: int) -> Any:
    if not is_batched(t, level):
        return t
    if not size:  # only the results' shapes are wanted
        shape = t.shape
        return t.value.new_ones(shape)
    return t.value.select(t.bdim, i)


def _joined(name: str, column: Sequence[Any], level: int, size: int) -> Any:
    head = column[0]
    if not isinstance(head, Tensor):
        return head
    if any(t.shape != head.shape for t in column):
        raise RuntimeError(DYNAMIC.format(name))
    if not size:
        return hide(head.new_zeros((0, *head.shape)), 0, level)
    return hide(FUNCTIONS["stack"](list(column)), 0, level)


# ------------------------------------------------------------------------------------------- standing aside

_ENTRIES: list[Entry] = []
_LOCK = threading.RLock()
_running = 0


class Aside:
    """While entered, the functions of the library look for batched arguments."""

    def __enter__(self) -> None:
        global _running
        with _LOCK:
            _running += 1
            if _running == 1:
                _stand_aside()

    def __exit__(self, *exc: Any) -> None:
        global _running
        with _LOCK:
            _running -= 1
            if not _running:
                _come_back()


def _stand_aside() -> None:
    from . import derivatives

    if not _ENTRIES:
        _ENTRIES.extend(_collected())
    for e in _ENTRIES:
        e.fn.__code__ = e.code
    derivatives.install()


def _come_back() -> None:
    from . import derivatives

    for e in _ENTRIES:
        e.fn.__code__ = e.own
    derivatives.remove()


class _Meanwhile:
    """Functions get other code for good (Note [Interception]): they are met with that from then on."""

    def give_back(self) -> None:
        _LOCK.acquire()
        if _running:
            _come_back()
        _ENTRIES.clear()

    def take_again(self) -> None:
        if _running:
            _stand_aside()
        _LOCK.release()


interception.TEMPORARY.insert(0, _Meanwhile())


def _collected() -> Iterator[Entry]:
    from . import derivatives, functions, places, rules  # noqa: F401 - they register themselves

    seen: set[int] = set()
    for name, shown in places.functions():
        for fn in (shown, BENEATH.get(shown)):  # autocast may stand before it
            if id(fn) not in seen and isinstance(fn, types.FunctionType):
                seen.add(id(fn))
                yield Entry(name, fn)


def active() -> bool:
    """Whether this thread runs a `vmap`."""
    return bool(levels.STACK.levels)
