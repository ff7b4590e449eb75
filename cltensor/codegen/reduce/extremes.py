"""Running states of the largest and smallest elements, and of their positions (see state.py)."""

from __future__ import annotations

from ... import dtypes
from ...dtypes import dtype
from ..language import lanes_of
from .state import State, select


def lowest(dt: dtype) -> str:
    """The identity of max."""
    if dt.category == 2:
        return "-INFINITY"
    if dt.category == 0 or not dt.is_signed:
        return "0"
    value = -(1 << (dt.itemsize * 8 - 1))
    return "(-9223372036854775807L - 1)" if dt.itemsize == 8 else f"({value + 1} - 1)"


def highest(dt: dtype) -> str:
    """The identity of min."""
    if dt.category == 2:
        return "INFINITY"
    if dt.category == 0:
        return "1"
    value = (1 << (dt.itemsize * 8 - (1 if dt.is_signed else 0))) - 1
    return f"{value}{'UL' if not dt.is_signed else 'L'}"


class Extreme(State):
    """The largest or smallest element; NaN if there is one."""

    sign, ahead = ">", ("row",)

    def identity(self) -> str:
        return lowest(self.dt) if self.sign == ">" else highest(self.dt)

    @property
    def fields(self) -> tuple:
        return (("s", self.base, self.identity()),)

    def _better(self, v: str, s: str) -> str:
        nan = f" | ({v} != {v})" if self.dt.category == 2 else ""
        return f"(({v} {self.sign} {s}){nan})"

    def update(self, p, v, lanes, ok="", index=""):
        if not ok and self.dt.category == 2:  # an instruction less than with a mask of both tests
            larger = select(f"({v[0]} {self.sign} {p}s)", v[0], p + "s")
            return [f"{p}s = {select(f'({v[0]} != {v[0]})', v[0], larger)};"]
        better = self._better(v[0], p + "s")
        if ok:
            better = f"({better} & {ok})"
        return [f"{p}s = {select(better, v[0], p + 's')};"]

    def _most(self, p: str, v: list[str], lanes: int) -> list[str]:
        """Compute the lane-wise extreme of vectors (of equals the first), top<p>, and for floats the mask of NaNs, odd<p>.

        Vectors are joined pairwise, as a tree, which makes a shorter dependency chain than one after another.
        """
        kind, mask = lanes_of(self.base, lanes), lanes_of("int" if lanes == 1 else self.mask, lanes)
        out, left, step = [], list(v), 0
        while len(left) > 1:
            step += 1
            pairs = zip(left[::2], left[1::2], strict=False)
            made = [f"m{p}{step}_{k}" for k in range(len(left) // 2)]
            out += [
                f"const {kind} {name} = {select(f'({b} {self.sign} {a})', b, a)};"
                for name, (a, b) in zip(made, pairs, strict=True)
            ]
            left = made + left[2 * len(made) :]
        out.append(f"const {kind} top{p} = {left[0]};")
        if self.dt.category == 2:
            out.append(f"const {mask} odd{p} = {' | '.join(f'({x} != {x})' for x in v)};")
        return out

    def together(self, p, v, lanes, index=""):
        if self.dt.category != 2 or lanes == 1:
            return []
        kind = lanes_of(self.base, lanes)
        larger = select(f"(top{p} {self.sign} {p}s)", f"top{p}", p + "s")
        nan = select(f"odd{p}", f"({kind})(NAN)", larger)
        return [*self._most(p, v, lanes), f"{p}s = {nan};"]

    def merge(self, d, a, b, lanes):
        return [f"{d}s = {select(self._better(b + 's', a + 's'), b + 's', a + 's')};"]

    def results(self, p, lanes, origin):
        return {"value": (f"{p}s", self.dt)}


class Max(Extreme):
    """The largest element; NaN if there is one."""

    name = "max"


class Min(Extreme):
    """The smallest element; NaN if there is one."""

    name, sign = "min", "<"


class Both(State):
    """The smallest and the largest element in one pass; `update` and `together` get each value twice."""

    name, ahead = "aminmax", ("row",)

    def __init__(self, compute: dtype, *, merging: bool = False) -> None:
        super().__init__(compute, merging=merging)
        self.low, self.high = Min(compute), Max(compute)

    @property
    def fields(self) -> tuple:
        return (("ns", self.base, highest(self.dt)), ("xs", self.base, lowest(self.dt)))

    def update(self, p, v, lanes, ok="", index=""):
        return self.low.update(p + "n", v, lanes, ok) + self.high.update(p + "x", v, lanes, ok)

    def merge(self, d, a, b, lanes):
        return self.low.merge(d + "n", a + "n", b + "n", lanes) + self.high.merge(
            d + "x", a + "x", b + "x", lanes
        )

    def results(self, p, lanes, origin):
        return {"min": (f"{p}ns", self.dt), "max": (f"{p}xs", self.dt)}


class Arg(Extreme):
    """The extreme value and its first position.

    If the index is still unset at the end, every element equals the identity.
    """

    needs_index, ahead = True, ("col",)

    @property
    def unset(self) -> str:
        return "0x7fffffff" if self.index == "int" else "0x7fffffffffffffffL"

    @property
    def fields(self) -> tuple:
        return (("s", self.base, self.identity()), ("i", self.index, self.unset))

    def _wins(self, v: str, s: str) -> str:
        if self.dt.category != 2:
            return f"({v} {self.sign} {s})"
        # The negated comparison is also true if v is NaN, so no test of its own is needed.
        return f"(!({v} {'<=' if self.sign == '>' else '>='} {s}) & ({s} == {s}))"

    def update(self, p, v, lanes, ok="", index=""):
        wins = self._wins(v[0], p + "s") + (f" & {ok}" if ok else "")
        mask = lanes_of("int" if lanes == 1 else self.mask, lanes)
        return [
            f"const {mask} w{p} = {wins};",
            f"{p}s = {select(f'w{p}', v[0], p + 's')};",
            f"{p}i = {select(f'w{p}', index, p + 'i')};",
        ]

    def together(self, p, v, lanes, index=""):
        """Take the lane-wise extreme of all vectors, then the first vector with it; one by one if there is a NaN."""
        if lanes == 1:
            return []
        mask, places = lanes_of(self.mask, lanes), lanes_of(self.index, lanes)

        def at(u: int) -> str:
            return f"({places})(({self.index})({index}) + {u})"

        first = [
            f"{places} at{p} = {at(len(v) - 1)};",
            *[
                f"at{p} = {select(f'({x} == top{p})', at(u), f'at{p}')};"
                for u, x in reversed(list(enumerate(v[:-1])))
            ],
            f"const {mask} won{p} = {self._wins(f'top{p}', p + 's')};",
            f"{p}s = {select(f'won{p}', f'top{p}', p + 's')};",
            f"{p}i = {select(f'won{p}', f'at{p}', p + 'i')};",
        ]
        if self.dt.category != 2:
            return [*self._most(p, v, lanes), *first]
        fold, odd, width = [], f"odd{p}", lanes
        while width > 1:
            width //= 2
            half = lanes_of(self.mask, width)
            fold.append(f"const {half} odd{p}{width} = {odd}.lo | {odd}.hi;")
            odd = f"odd{p}{width}"
        alone = [
            f"{{ {' '.join(self.update(p, [x], lanes, '', at(u)))} }}" for u, x in enumerate(v)
        ]
        nan = [f"if ({odd}) {{", *[f"  {text}" for text in alone], "} else {"]
        return [*self._most(p, v, lanes), *fold, *nan, *[f"  {text}" for text in first], "}"]

    def merge(self, d, a, b, lanes):
        same = (
            f"({b}s == {a}s)"
            if self.dt.category != 2
            else f"(({b}s == {a}s) | (({b}s != {b}s) & ({a}s != {a}s)))"
        )
        mask = lanes_of("int" if lanes == 1 else self.mask, lanes)
        wins = f"{self._wins(b + 's', a + 's')} | ({same} & ({b}i < {a}i))"
        return [
            f"{{ const {mask} w = {wins};",
            f"  {d}s = {select('w', b + 's', a + 's')};",
            f"  {d}i = {select('w', b + 'i', a + 'i')}; }}",
        ]

    def _position(self, p: str, lanes: int, origin: str) -> str:
        kind = lanes_of(self.index, lanes)
        known = select(f"({p}i == ({kind})({self.unset}))", f"({kind})(0)", p + "i")
        wide = f"(long)({known})" if lanes == 1 else f"convert_long{lanes}({known})"
        return wide if self.merging else f"({wide} + ({origin}))"

    def results(self, p, lanes, origin):
        return {
            "value": (f"{p}s", self.dt),
            "index": (self._position(p, lanes, origin), dtypes.int64),
        }

    def partial(self, p, lanes, origin):
        return [(p + "s", self.base), (self._position(p, lanes, origin), "long")]


class ArgMax(Arg):
    """The position of the largest element, the first of equal ones; of the first NaN if there is one."""

    name = "argmax"


class ArgMin(Arg):
    """The position of the smallest element, the first of equal ones; of the first NaN if there is one."""

    name, sign = "argmin", "<"
