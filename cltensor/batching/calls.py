"""Calls on batched tensors: how they are intercepted before they reach an op, and how they are dispatched.

Owns the interception, the table of rules and the fallback for functions without a rule. The rules are in rules/.

Note [Batching]
    `vmap` calls its function once, with tensors of which one dimension is hidden (`Batched`). While a `vmap` runs, the
    `__code__` of each library function is replaced by one that checks whether an argument is batched; the original code
    is put back when the last `vmap` ends. So a call is intercepted however the function is reached - as a method, an
    operator, a name imported earlier, from a gradient formula - and while no `vmap` runs there is no check and no cost.
    A call with batched arguments goes to the function's rule, for the innermost level among the arguments: the rule
    moves the hidden dimension to where the function accepts it and calls the function once on the underlying tensors
    (`Batched.value`), which may be batched at an outer level. A function without a rule is first run unchanged: most
    are written in terms of other functions. One that reads memory instead raises `NoRule`; that call and all later ones
    of the function are then made once for each slice, and the results are stacked (logged at CLTENSOR_DEBUG=3).
    Gradients need nothing further: autograd records the underlying tensors as usual, and samples do not depend on each
    other. A gradient that is itself batched (`vmap` over a VJP) passes through the nodes' formulas as any function's
    argument does.
"""

from __future__ import annotations

import threading
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .. import interception
from ..errors import debug_line
from ..ops.row import FUNCTIONS
from ..tensor import Tensor
from ..utils._pytree import tree_flatten, tree_map, tree_unflatten
from .batched import Batched, NoRule, first, hide, is_batched, top
from .levels import STACK, level_of, one_slice
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
ALWAYS: set[str] = set()  # names whose rules are called even if no argument is batched
LOOPED: dict[str, int] = {}  # function name -> how many calls were made slice by slice


def rule(names: str, *, always: bool = False) -> Callable:
    """Decorate a function as the rule for these names (separated by spaces): it is passed a `Call`, then the arguments.

    always: call the rule in any running `vmap`, even if no argument is batched.
    """
    return _entering(names, always, lambda fn: fn)


def named_rule(
    names: str, serves: Callable[[Call, dict[str, Any]], bool] | None = None
) -> Callable:
    """As `rule`, but the rule is passed a dict of the arguments by parameter name, after the `Call`.

    A call for which `serves` returns False takes the fallback.
    """

    def by_name(fn: Callable) -> Callable:
        def bind(call: Call, *args: Any, **kwargs: Any) -> Any:
            given = bound(call.entry, args, kwargs)
            return fn(call, given) if serves is None or serves(call, given) else call.fallback()

        return bind

    return _entering(names, False, by_name)


def _entering(names: str, always: bool, form: Callable) -> Callable:
    """Return a decorator that enters `form(function)` into `RULES` under each name, and returns the function unchanged."""

    def register(fn: Callable) -> Callable:
        made = form(fn)
        for name in names.split():
            RULES[name] = made
            if always:
                ALWAYS.add(name)
        return fn

    return register


class Entry:
    """A function of the library that is intercepted during a `vmap`.

    fn: the function; own: its original `__code__`; code: the code that replaces that during a `vmap`, and calls `call`;
    original: a copy of the function that keeps the original code. innermost: a copy of the function under all
    decorators, whose signature is computed at first use. loops: whether the function, having no rule, is called for
    each slice.
    """

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
        """Execute a call while a `vmap` runs: by the rule, by the fallback, or unchanged if no argument is batched."""
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
    """One call of a function with arguments batched at a level, as the function's rule sees it."""

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
        """The function, to be called on the underlying tensors of this level."""
        return self.entry.fn

    def here(self, t: Any) -> bool:
        """Return whether a value is batched at this level."""
        return t.__class__ is Batched and t.level == self.level

    def front(self, t: Any) -> Any:
        """Return the underlying tensor with the hidden dimension first; other values as they are."""
        return first(t.value, t.bdim) if self.here(t) else t

    def full(self, t: Any) -> Any:
        """Return the underlying tensor with the hidden dimension first; a tensor without one is expanded."""
        if self.here(t):
            return first(t.value, t.bdim)
        return t.unsqueeze(0).expand(self.size, *t.shape)

    def hide(self, out: Any, dim: int = 0) -> Any:
        """Return the result, or each tensor in a tree of results, with dimension `dim` hidden at this level."""
        if isinstance(out, Tensor):
            return hide(out, dim, self.level)
        return tree_map(lambda t: hide(t, dim, self.level) if isinstance(t, Tensor) else t, out)

    def again(self, given: dict[str, Any]) -> Any:
        """Call the function with a dict of arguments by name, as `named_rule` passes them."""
        args, kwargs = spread(self.entry, given)
        return self.f(*args, **kwargs)

    def fallback(self) -> Any:
        """Execute the call as if the function had no rule (`attempt`)."""
        return attempt(self.entry, self.level, self.args, self.kwargs)

    def loop(self) -> Any:
        """Call the function once for each slice, and stack the results."""
        return sliced(self.name, self.f, self.level, self.args, self.kwargs)


# ------------------------------------------------------------------------------------------- without a rule


def attempt(entry: Entry, level: int, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Run a function that has no rule unchanged on batched tensors.

    If it reads their memory, call it for each slice instead; all later calls do so without this attempt.
    """
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
        with one_slice(level):
            found, form = tree_flatten(fn(*made, **named))
        results.append(found)
    return tree_unflatten([_joined(name, c, level, size) for c in zip(*results, strict=True)], form)


def _part(t: Any, i: int, level: int, size: int) -> Any:
    """Return slice `i` of a tensor batched at this level; other values as they are."""
    if not is_batched(t, level):
        return t
    if not size:  # there is no slice: a call on ones finds the results' shapes and dtypes
        shape = t.shape
        return t.value.new_ones(shape)
    return t.value.select(t.bdim, i)


def _joined(name: str, column: Sequence[Any], level: int, size: int) -> Any:
    """Stack one result of all slices, and hide the new dimension; of results that are no tensors, return the first."""
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
    """Context in which the library's functions check for batched arguments.

    Nested and concurrent uses are counted: the first exchanges the functions' code, the last puts it back.
    """

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
    """Exchange the functions' code for code that checks for batched arguments."""
    from . import derivatives

    if not _ENTRIES:
        _ENTRIES.extend(_collected())
    for e in _ENTRIES:
        e.fn.__code__ = e.code
    derivatives.install()


def _come_back() -> None:
    """Give the functions their own code back."""
    from . import derivatives

    for e in _ENTRIES:
        e.fn.__code__ = e.own
    derivatives.remove()


class _Meanwhile:
    """Restores the functions' own code while interception.py replaces that code for good (Note [Interception]).

    The entries are dropped, because they remember the code that is being replaced.
    """

    def give_back(self) -> None:
        _LOCK.acquire()  # until `take_again`
        if _running:
            _come_back()
        _ENTRIES.clear()

    def take_again(self) -> None:
        try:
            if _running:
                _stand_aside()
        finally:
            _LOCK.release()


interception.TEMPORARY.insert(0, _Meanwhile())


def _collected() -> Iterator[Entry]:
    """Yield an entry for each function to intercept, once all rules are registered."""
    from . import derivatives, functions, places, rules  # noqa: F401 - they register themselves

    seen: set[int] = set()
    for name, shown in places.functions():
        for fn in (shown, getattr(shown, "__uncast__", None)):  # users' function, and the library's
            if id(fn) not in seen and isinstance(fn, types.FunctionType):
                seen.add(id(fn))
                yield Entry(name, fn)
