"""Numbers that note what is done with them, so that it can be done again for others.

Note [Symbols]. What a kernel is told follows from shapes and strides by a long way, most of which asks the same questions of all
shapes alike: is this dense, does it fit, how many work-items are worth it. So a `Symbol` goes the way once in the place of a
size. It is a number with a value, and what is computed from it is another Symbol; but each answer that the way depended on (a
comparison, a truth, a place in a list, a key of a table) is noted as a condition. `Work.function` is then the whole way as a few
lines: given other sizes it says None where a condition does not hold, and else the numbers that came out, as the long way does.

What Python asks of a number without a word to us it asks by `__index__`, `__hash__` and the like, and then the condition is that
the number is the very same. So nothing is assumed that was not looked at; what only holds for one size is only found for that.
A function that keeps its results by sizes is `remembered`, or it would be such a table.

Owns the numbers and the lines. Knows nothing of what they count.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable
from typing import Any

WORKING: list[Work] = []  # while there is one, `remembered` functions are called


class Symbol:
    """A number that stands for others; `least` is known to hold for all of them, None being no bound."""

    __slots__ = ("fixed", "least", "name", "value", "work")

    def __init__(self, work: Work, name: str, value: int, least: int | None) -> None:
        self.work, self.name, self.value, self.least = work, name, value, least
        self.fixed = False  # whether it is known to be this very number

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # what asks whether this is an integer means just that
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
    """What is done with some numbers; while the block runs, it is noted."""

    def __init__(self) -> None:
        self.values: list[int] = []  # of the numbers that are given
        # Name, text and the names in it; of a condition the name is None.
        self._lines: list[tuple[str | None, str, tuple[str, ...]]] = []
        self._known: dict[str, Any] = {}  # what texts are
        self._negated: dict[str, Symbol] = {}  # of what a Symbol of this name is the negative
        self._open = True

    def __enter__(self) -> Work:
        WORKING.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        WORKING.remove(self)
        self._open = False

    def number(self, value: int, least: int = 2) -> Symbol:
        """Make a Symbol of a number that is given."""
        self.values.append(value)
        return Symbol(self, f"s{len(self.values) - 1}", value, least)

    def fix(self, x: Symbol) -> Any:
        """Say what a number is, which is a condition then."""
        if self._open and not x.fixed:
            self._lines.append((None, f"{x.name} == {x.value}", (x.name,)))
            x.fixed = True
        return x.value

    def combine(self, sign: str, compute: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
        """Do arithmetic."""
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
        """Return -x."""
        if x.name in self._negated:
            return self._negated[x.name]
        found = self.combine("-", operator.sub, 0, x)
        if type(found) is Symbol:
            self._negated[found.name] = x
        return found

    def ask(self, sign: str, compare: Callable[[Any, Any], bool], a: Any, b: Any) -> bool:
        """Compare, which is a condition."""
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
        """Both numbers, those that are known as plain ones, and the names of the others."""
        a = a.value if type(a) is Symbol and (a.fixed or a.work is not self) else a
        b = b.value if type(b) is Symbol and (b.fixed or b.work is not self) else b
        return a, b, tuple([x.name for x in (a, b) if type(x) is Symbol])

    def function(self, results: Any) -> Callable[..., Any]:
        """Return what gives the results, tuples within tuples with Symbols of this work in them, for other numbers in the places of the given ones."""
        needed: set[str] = set()
        end = self._literal(results, needed)
        body: list[str] = []
        conditions: list[str] = []  # next to each other, the last of them first
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
        if type(x) is Symbol and x.work is self:
            names.add(x.name)
            return x.name
        if isinstance(x, tuple):
            return f"({''.join([self._literal(item, names) + ', ' for item in x])})"
        return repr(x)


_HUGE = 1 << 62  # nothing that there is memory for is counted by such numbers
_PLAIN = (int, float)
_NUMBERS = (int, float, bool, Symbol)

# (what is on the right, whether the left is the result: else 0)
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
    """What the result of arithmetic is at least, where that is easily seen."""
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
    """Whether the answer follows from what the numbers are at least, and at most."""
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
    def method(self: Symbol, other: Any) -> Any:
        if type(other) not in _NUMBERS:
            plain = self.work.fix(self)
            return compute(other, plain) if turned else compute(plain, other)
        pair = (other, self) if turned else (self, other)
        return _work(self, other).combine(sign, compute, *pair)

    return method


def _comparison(sign: str, compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def method(self: Symbol, other: Any) -> bool:
        if type(other) not in _NUMBERS:
            if other is None or other.__class__ in (str, tuple, list):
                return NotImplemented
            return compare(self.work.fix(self), other)
        return _work(self, other).ask(sign, compare, self, other)

    return method


def _work(x: Symbol, other: Any) -> Work:
    """The work that goes on: a table may still hold numbers of an older one, which are plain now."""
    return other.work if type(other) is Symbol and not x.work._open else x.work


def _fixing(compute: Callable[[Any, Any], Any], turned: bool) -> Callable[[Any, Any], Any]:
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
    """Say which numbers make a kind: those below 2. The others are added to `sizes`."""
    sizes += [n for n in numbers if n > 1]
    return [n if n < 2 else 2 for n in numbers]


def pattern(numbers: tuple[Any, ...], sizes: list[int]) -> tuple[Any, ...]:
    """Do the same with tuples in tuples, in which there may be other things."""
    found: list[Any] = []
    for n in numbers:
        if n.__class__ is int:
            found += few((n,), sizes)
        else:
            found.append(pattern(n, sizes) if isinstance(n, tuple) else n)
    return tuple(found)


def opened(numbers: tuple[Any, ...], number: Callable[[int], Any]) -> Any:
    """Put what `number` makes of the numbers that make no kind into their places, in the order of `pattern`."""
    found = [
        (n if n < 2 else number(n)) if n.__class__ is int
        else opened(n, number) if isinstance(n, tuple)
        else n
        for n in numbers
    ]  # fmt: skip
    make = getattr(numbers, "_make", tuple)
    return make(found)


def remembered(most: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Keep results of a pure function by its arguments, where these are plain numbers."""

    def wrap(fn: Callable[..., Any]) -> Callable[..., Any]:
        kept = functools.lru_cache(most)(fn)

        @functools.wraps(fn)
        def call(*args: Any, **named: Any) -> Any:
            return fn(*args, **named) if WORKING else kept(*args, **named)

        call.cache_clear = kept.cache_clear  # type: ignore[attr-defined]
        return call

    return wrap


def plain(values: Iterable[Any]) -> tuple[Any, ...]:
    """Return the numbers that Symbols among some values are here, without a condition."""
    return tuple([x.value if type(x) is Symbol else x for x in values])


def is_symbol(x: Any) -> bool:
    """Whether this is a number that stands for others now."""
    return type(x) is Symbol and x.work._open and not x.fixed
