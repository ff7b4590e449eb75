"""Symbolic integers: they record the arithmetic and comparisons done with them, so that these can be repeated for
other values.

Note [Symbols]. The arguments of a kernel follow from shapes and strides through much Python code, most of which asks
the same questions of all similar shapes: is this dense, does it fit, how many work-items are worth it. So that code
runs once with a `Symbol` in the place of each size. A Symbol has a concrete value, and arithmetic with it makes
another Symbol; each answer that the code's path depended on (a comparison, a truth value, an index into a list, a key
of a table) is recorded as a condition. `Work.function` then generates the whole path as a few lines of Python: given
other sizes, they return None where a condition does not hold, and else the numbers that the original code would
compute.

Where Python uses a number's value directly (`__index__`, `__hash__` and the like), the recorded condition is that the
number equals the present value. So nothing is assumed that was not checked: a path taken for one size only serves
that size only. An ordinary cache keyed by sizes would hash Symbols and so fix their values; a function that caches
results by sizes is therefore `remembered`.

Owns the Symbols and the generated functions. Knows nothing of what the numbers count.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable
from typing import Any

# The Works in progress. While there are any, `remembered` functions bypass their caches.
WORKING: list[Work] = []


class Symbol:
    """An integer with a concrete value that also stands for other values; `least` is a lower bound of all of them, None
    if none is known.
    """

    __slots__ = ("fixed", "least", "name", "value", "work")

    def __init__(self, work: Work, name: str, value: int, least: int | None) -> None:
        self.work, self.name, self.value, self.least = work, name, value, least
        self.fixed = False  # whether a recorded condition says that the number equals `value`

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # so that `isinstance(x, int)` holds; `type(x)` is Symbol
        return self.value.__class__

    def __index__(self) -> int:
        return operator.index(self.work.fix(self))

    def __int__(self) -> int:
        return int(self.work.fix(self))

    def __hash__(self) -> int:
        return hash(self.work.fix(self))

    def __float__(self) -> float:
        return float(self.work.fix(self))

    def __bool__(self) -> bool:
        return self.work.ask("!=", operator.ne, self, 0)

    def __repr__(self) -> str:
        return repr(self.work.fix(self))

    def __format__(self, how: str) -> str:
        return format(self.work.fix(self), how)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.work.fix(self), name)

    def __neg__(self) -> Any:
        return self.work.negative(self)

    def __abs__(self) -> Any:
        return -self if self < 0 else self

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self


class Work:
    """A record of what is done with some numbers while the `with` block runs."""

    def __init__(self) -> None:
        self.values: list[int] = []  # of the given numbers, s0, s1, …
        # (name of the result, expression, names in the expression); of a condition the name is None.
        self._lines: list[tuple[str | None, str, tuple[str, ...]]] = []
        self._known: dict[str, Any] = {}  # by expression: its Symbol, or a comparison's answer
        self._negated: dict[str, Symbol] = {}  # by name of a negative: the Symbol it was made from
        self._open = True

    def __enter__(self) -> Work:
        WORKING.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        WORKING.remove(self)
        self._open = False

    def number(self, value: int, least: int = 2) -> Symbol:
        """Make a Symbol of a given number, a parameter of the generated function."""
        self.values.append(value)
        return Symbol(self, f"s{len(self.values) - 1}", value, least)

    def fix(self, x: Symbol) -> Any:
        """Return the value of a Symbol, and record the condition that it has this value."""
        if self._open and not x.fixed:
            self._lines.append((None, f"{x.name} == {x.value}", (x.name,)))
            x.fixed = True
        return x.value

    def combine(self, sign: str, compute: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
        """Return `a sign b`, as a Symbol where an operand is one whose value is not fixed."""
        a, b, names = self._operands(a, b)
        value = compute(_plain(a), _plain(b))
        if not (names and self._open):
            return value
        if (
            (same := _UNCHANGED.get(sign))
            and b.__class__ is int
            and type(b) is int
            and b == same[0]
        ):
            return a if same[1] else 0
        if sign in "*+":
            if type(a) is not Symbol:
                a, b = b, a
            if type(b) is int and b == (sign == "*"):
                return a
            if type(b) is Symbol and b.name < a.name:
                a, b = b, a
        text = f"{_text(a)} {sign} {_text(b)}"
        found = self._known.get(text)
        if found is None:
            name = f"t{len(self._known)}"
            found = self._known[text] = Symbol(self, name, value, _least(sign, a, b))
            self._lines.append((name, text, names))
        return found

    def negative(self, x: Symbol) -> Any:
        """Return -x; if `x` is itself the negative of a Symbol, return that Symbol."""
        if x.name in self._negated:
            return self._negated[x.name]
        found = self.combine("-", operator.sub, 0, x)
        if type(found) is Symbol:
            self._negated[found.name] = x
        return found

    def ask(self, sign: str, compare: Callable[[Any, Any], bool], a: Any, b: Any) -> bool:
        """Return the answer of a comparison, and record it as a condition unless it follows from what is known."""
        a, b, names = self._operands(a, b)
        answer = compare(_plain(a), _plain(b))
        if not (names and self._open) or a is b or _surely(sign, a, b):
            return answer
        text = f"{_text(a)} {sign} {_text(b)}"
        if text in self._known:
            return answer
        self._known[text] = answer
        self._lines.append((None, text if answer else f"not {text}", names))
        if type(b) in _PLAIN and (sign == "==") == answer and sign in ("==", "!="):
            a.fixed = True
        return answer

    def _operands(self, a: Any, b: Any) -> tuple[Any, Any, tuple[str, ...]]:
        """Return both operands, and the names of the Symbols among them. Symbols that are fixed, or belong to another
        Work, are replaced by their values first.
        """
        a = a.value if type(a) is Symbol and (a.fixed or a.work is not self) else a
        b = b.value if type(b) is Symbol and (b.fixed or b.work is not self) else b
        return a, b, tuple([x.name for x in (a, b) if type(x) is Symbol])

    def function(self, results: Any) -> Callable[..., Any]:
        """Return a function that computes `results` for other values of the given numbers; None if a condition fails.

        results: nested tuples, in which there may be Symbols of this Work.
        """
        needed: set[str] = set()
        end = self._literal(results, needed)
        body: list[str] = []
        conditions: list[str] = []  # adjacent ones, for one `if`; the last recorded comes first
        for name, text, names in reversed(self._lines):
            if name is None:
                needed.update(names)
                conditions.append(text)
            elif name in needed:
                needed.update(names)
                body += [*_condition(conditions), f"    {name} = {text}"]
                conditions = []
        body += _condition(conditions)
        given = ", ".join([f"s{i}" for i in range(len(self.values))])
        lines = [f"def run({given}):", *reversed(body), f"    return {end}"]
        namespace: dict[str, Any] = {"inf": math.inf}
        exec("\n".join(lines), namespace)
        return namespace["run"]

    def _literal(self, x: Any, names: set[str]) -> str:
        """Return the text of nested tuples, and add the names of the Symbols in them to `names`."""
        if type(x) is Symbol and x.work is self:
            names.add(x.name)
            return x.name
        if isinstance(x, tuple):
            return f"({''.join([self._literal(item, names) + ', ' for item in x])})"
        return repr(x)


_HUGE = 1 << 62  # above any size, stride or offset: no memory is that large
_PLAIN = (int, float)
_NUMBERS = (int, float, bool, Symbol)

# For each operator, the right operand with which nothing need be computed, and whether the result is then the left
# operand; if not, it is 0.
_UNCHANGED = {"-": (0, True), "//": (1, True), "%": (1, False), "<<": (0, True), ">>": (0, True)}


def _condition(texts: list[str]) -> list[str]:
    return [f"    if not ({' and '.join(reversed(texts))}): return None"] if texts else []


def _plain(x: Any) -> Any:
    return x.value if type(x) is Symbol else x


def _text(x: Any) -> str:
    x = int(x) if type(x) is bool else x
    return x.name if type(x) is Symbol else f"({x!r})" if x < 0 else repr(x)


def _bound(x: Any) -> int | None:
    return x.least if type(x) is Symbol else x


def _least(sign: str, a: Any, b: Any) -> int | None:
    """Return a lower bound of the result of arithmetic, None where none is easily seen."""
    low, other = _bound(a), _bound(b)
    if low is None or other is None or low < 0 or other < 0:
        return None
    if sign == "+":
        return low + other
    if sign == "*":
        return low * other
    if sign == "//" and type(b) is int:
        return low // b
    return 0 if sign in ("//", "%") else None


def _surely(sign: str, a: Any, b: Any) -> bool:
    """Return whether a comparison's answer follows from the bounds of a Symbol: `least` below and `_HUGE` above."""
    if type(b) not in _PLAIN:
        if type(a) not in _PLAIN:
            return False
        a, b, sign = b, a, {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(sign, sign)
    if b >= _HUGE and sign != "==" and sign != "!=":
        return True
    low = a.least
    if low is None:
        return False
    return low > b if sign in ("==", "!=", "<=", ">") else low >= b


def _method(
    sign: str, compute: Callable[[Any, Any], Any], turned: bool
) -> Callable[[Any, Any], Any]:
    """Return a method for arithmetic that Symbols record; `turned`: the Symbol is the right operand."""

    def method(self: Symbol, other: Any) -> Any:
        if type(other) not in _NUMBERS:
            plain = self.work.fix(self)
            return compute(other, plain) if turned else compute(plain, other)
        pair = (other, self) if turned else (self, other)
        return _work(self, other).combine(sign, compute, *pair)

    return method


def _comparison(sign: str, compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """Return a method for a comparison, which is recorded as a condition."""

    def method(self: Symbol, other: Any) -> bool:
        if type(other) not in _NUMBERS:
            if other is None or other.__class__ in (str, tuple, list):
                return NotImplemented
            return compare(self.work.fix(self), other)
        return _work(self, other).ask(sign, compare, self, other)

    return method


def _work(x: Symbol, other: Any) -> Work:
    """Return the Work that records an operation on `x` and `other`.

    A Symbol of a finished Work, which some table may still hold, counts as a plain number.
    """
    return other.work if type(other) is Symbol and not x.work._open else x.work


def _fixing(compute: Callable[[Any, Any], Any], turned: bool) -> Callable[[Any, Any], Any]:
    """Return a method for arithmetic that is not recorded: it fixes the Symbols' values and computes with these."""

    def method(self: Symbol, other: Any) -> Any:
        plain = self.work.fix(self)
        other = _fixed(other)
        return compute(other, plain) if turned else compute(plain, other)

    return method


def _fixed(x: Any) -> Any:
    return x.work.fix(x) if type(x) is Symbol else x


_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%"}
for _name, _sign in _ARITHMETIC.items():
    _compute = getattr(operator, _name)
    setattr(Symbol, f"__{_name}__", _method(_sign, _compute, False))
    setattr(Symbol, f"__r{_name}__", _method(_sign, _compute, True))
for _name in ("pow", "lshift", "rshift", "and_", "or_", "xor"):
    _compute = getattr(operator, _name)
    setattr(Symbol, f"__{_name.strip('_')}__", _fixing(_compute, False))
    setattr(Symbol, f"__r{_name.strip('_')}__", _fixing(_compute, True))
for _name, _sign in {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}.items():
    setattr(Symbol, f"__{_name}__", _comparison(_sign, getattr(operator, _name)))


def few(numbers: tuple[int, ...], sizes: list[int]) -> list[int]:
    """Return the part of a kind's key that `numbers` make: numbers below 2 as they are, and 2 in place of any other.

    The numbers replaced are appended to `sizes`.
    """
    sizes += [n for n in numbers if n > 1]
    return [n if n < 2 else 2 for n in numbers]


def pattern(numbers: tuple[Any, ...], sizes: list[int]) -> tuple[Any, ...]:
    """Do what `few` does with nested tuples; items other than ints stay as they are."""
    found: list[Any] = []
    for n in numbers:
        if n.__class__ is int:
            found += few((n,), sizes)
        else:
            found.append(pattern(n, sizes) if isinstance(n, tuple) else n)
    return tuple(found)


def opened(numbers: tuple[Any, ...], number: Callable[[int], Any]) -> Any:
    """Return nested tuples with `number(n)` for each int n > 1, called in the order in which `pattern` lists them."""
    found = [
        (n if n < 2 else number(n)) if n.__class__ is int
        else opened(n, number) if isinstance(n, tuple)
        else n
        for n in numbers
    ]  # fmt: skip
    make = getattr(numbers, "_make", tuple)
    return make(found)


def remembered(most: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Cache `most` results of a pure function by its arguments, but not while a Work is in progress."""

    def wrap(fn: Callable[..., Any]) -> Callable[..., Any]:
        kept = functools.lru_cache(most)(fn)

        @functools.wraps(fn)
        def call(*args: Any, **named: Any) -> Any:
            return fn(*args, **named) if WORKING else kept(*args, **named)

        call.cache_clear = kept.cache_clear  # type: ignore[attr-defined]
        return call

    return wrap


def plain(values: Iterable[Any]) -> tuple[Any, ...]:
    """Return the values with plain numbers in the places of Symbols; records no condition."""
    return tuple([x.value if type(x) is Symbol else x for x in values])


def is_symbol(x: Any) -> bool:
    """Return whether `x` is a Symbol of a Work in progress whose value is not fixed."""
    return type(x) is Symbol and x.work._open and not x.fixed
