"""Running states of reductions: what is kept while elements go by, as C text for any number of lanes.

A state has fields (merged at the end, and what partial results consist of) and may have a block: short-lived accumulators
flushed into the fields every few steps, which is what keeps long sums accurate. Names are `<prefix><field>`.
"""

from __future__ import annotations

from ... import dtypes
from ...dtypes import dtype
from ..language import SIGNED, lanes_of

BLOCK = 128  # steps between flushes


def select(condition: str, yes: str, no: str) -> str:
    """Choose per lane. The operator, not `select()`: that is a call into the builtin library on PoCL, 3 to 7 times slower."""
    return f"({condition} ? {yes} : {no})"


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


class State:
    """One kind of reduction over values of a compute dtype."""

    name = ""
    needs_index = False
    prime = False  # wants its first vector before it starts
    scale = False  # takes a number from the host (a count, or degrees of freedom)
    light = True  # worth several independent accumulators
    ahead = False  # whether an element takes so long that memory would wait, unless it is asked for the next ones
    headers: tuple[str, ...] = ()

    def __init__(self, compute: dtype, *, merging: bool = False) -> None:
        self.dt, self.base = compute, compute.reg
        self.merging = merging
        self.index = "long" if merging or compute.itemsize == 8 else "int"
        self.mask = SIGNED[self.base]

    @property
    def fields(self) -> tuple[tuple[str, str, str], ...]:
        """(name, C type, initial value) of what partial results hold."""
        raise NotImplementedError

    @property
    def block(self) -> tuple[tuple[str, str, str], ...]:
        """The same for the short-lived accumulators."""
        return ()

    def declare(self, p: str, lanes: int) -> list[str]:
        """Declare a fresh state."""
        return [
            f"{lanes_of(t, lanes)} {p}{n} = ({lanes_of(t, lanes)})({v});"
            for n, t, v in (*self.fields, *self.block)
        ]

    def update(self, p: str, v: list[str], lanes: int, ok: str = "", index: str = "") -> list[str]:
        """Take in values; `ok` masks lanes, `index` is their position."""
        raise NotImplementedError

    def flush(self, p: str, lanes: int) -> list[str]:
        """Move the block into the fields."""
        return []

    def first(self, p: str, v: list[str]) -> list[str]:
        """Look at the first values (see `prime`)."""
        return []

    def together(self, p: str, v: list[str], lanes: int, index: str = "") -> list[str]:
        """See several vectors of values at once, the first at position `index`; nothing where that is no quicker than one by one."""
        return []

    def merge(self, d: str, a: str, b: str, lanes: int) -> list[str]:
        """Store into `d` what states `a` and `b` have seen; `d` may be `a`."""
        raise NotImplementedError

    def results(self, p: str, lanes: int, origin: str) -> dict[str, tuple[str, dtype]]:
        """Name the final values: text and dtype. `origin` is the position the part began at."""
        raise NotImplementedError

    def partial(self, p: str, lanes: int, origin: str) -> list[tuple[str, str]]:
        """What a part hands on, field by field: text and C type of a lane."""
        return [(p + n, t) for n, t, _ in self.fields]


class Sum(State):
    name = "sum"

    @property
    def fields(self) -> tuple:
        return (("s", self.base, "0"),)

    @property
    def block(self) -> tuple:
        return (("t", self.base, "0"),) if self.dt.category >= 2 and not self.merging else ()

    def update(self, p, v, lanes, ok="", index=""):
        value = select(ok, v[0], f"({lanes_of(self.base, lanes)})(0)") if ok else v[0]
        return [f"{p}{'t' if self.block else 's'} += {value};"]

    def flush(self, p, lanes):
        return (
            [f"{p}s += {p}t;", f"{p}t = ({lanes_of(self.base, lanes)})(0);"] if self.block else []
        )

    def merge(self, d, a, b, lanes):
        return [f"{d}s = {a}s + {b}s;"]

    def results(self, p, lanes, origin):
        return {"value": (f"{p}s", self.dt)}


class Mean(Sum):
    name, scale = "mean", True

    def results(self, p, lanes, origin):
        return {"value": (f"({p}s / scale)", self.dt)}


class NanSum(Sum):
    """NaN counts as zero."""

    name = "nansum"

    def update(self, p, v, lanes, ok="", index=""):
        zero = f"({lanes_of(self.base, lanes)})(0)"
        return super().update(p, [select(f"({v[0]} == {v[0]})", v[0], zero)], lanes, ok)


class NormOne(Sum):
    """The sum of absolute values."""

    name = "norm1"

    def update(self, p, v, lanes, ok="", index=""):
        zero = f"({lanes_of(self.base, lanes)})(0)"
        return super().update(p, [select(f"({v[0]} < {zero})", f"-{v[0]}", v[0])], lanes, ok)


class NormTwo(Sum):
    """The root of the sum of squares."""

    name = "norm2"

    def update(self, p, v, lanes, ok="", index=""):
        return super().update(p, [f"{v[0]} * {v[0]}"], lanes, ok)

    def results(self, p, lanes, origin):
        return {"value": (f"sqrt({p}s)", self.dt)}


class Prod(State):
    name = "prod"

    @property
    def fields(self) -> tuple:
        return (("s", self.base, "1, 0" if self.dt.is_complex else "1"),)

    def _times(self, a: str, b: str) -> str:
        return f"cmul_{self.base}({a}, {b})" if self.dt.is_complex else f"{a} * {b}"

    def update(self, p, v, lanes, ok="", index=""):
        value = select(ok, v[0], f"({lanes_of(self.base, lanes)})(1)") if ok else v[0]
        return [f"{p}s = {self._times(f'{p}s', value)};"]

    def merge(self, d, a, b, lanes):
        return [f"{d}s = {self._times(f'{a}s', f'{b}s')};"]

    def results(self, p, lanes, origin):
        return {"value": (f"{p}s", self.dt)}


class Xor(State):
    """The exclusive or of words."""

    name = "xor"

    @property
    def fields(self) -> tuple:
        return (("s", self.base, "0"),)

    def update(self, p, v, lanes, ok="", index=""):
        value = select(ok, v[0], f"({lanes_of(self.base, lanes)})(0)") if ok else v[0]
        return [f"{p}s ^= {value};"]

    def merge(self, d, a, b, lanes):
        return [f"{d}s = {a}s ^ {b}s;"]

    def results(self, p, lanes, origin):
        return {"value": (f"{p}s", self.dt)}


class Extreme(State):
    """max or min; NaN wins."""

    sign = ">"

    def identity(self) -> str:
        return lowest(self.dt) if self.sign == ">" else highest(self.dt)

    @property
    def fields(self) -> tuple:
        return (("s", self.base, self.identity()),)

    def _better(self, v: str, s: str) -> str:
        nan = f" | ({v} != {v})" if self.dt.category == 2 else ""
        return f"(({v} {self.sign} {s}){nan})"

    def update(self, p, v, lanes, ok="", index=""):
        if not ok and self.dt.category == 2:  # an instruction less than the mask of both
            larger = select(f"({v[0]} {self.sign} {p}s)", v[0], p + "s")
            return [f"{p}s = {select(f'({v[0]} != {v[0]})', v[0], larger)};"]
        better = self._better(v[0], p + "s")
        if ok:
            better = f"({better} & {ok})"
        return [f"{p}s = {select(better, v[0], p + 's')};"]

    def _most(self, p: str, v: list[str], lanes: int) -> list[str]:
        """Name the first extreme of vectors top<p>, and of floats the mask of lanes with a NaN odd<p>: by halves, so that none waits for all."""
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
    name = "max"


class Min(Extreme):
    name, sign = "min", "<"


class Both(State):
    """Smallest and largest in one pass; the value is given twice."""

    name = "aminmax"

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
    """Extreme value and where it is first; an index still unset means that every element equals the identity."""

    needs_index, ahead = True, True

    @property
    def unset(self) -> str:
        return "0x7fffffff" if self.index == "int" else "0x7fffffffffffffffL"

    @property
    def fields(self) -> tuple:
        return (("s", self.base, self.identity()), ("i", self.index, self.unset))

    def _wins(self, v: str, s: str) -> str:
        if self.dt.category != 2:
            return f"({v} {self.sign} {s})"
        # One comparison is true for a NaN, too.
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
        """See the extreme of the vectors at once, and then which of them has it first; one by one only where a NaN is."""
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
    name = "argmax"


class ArgMin(Arg):
    name, sign = "argmin", "<"


class Var(State):
    """Count, mean and sum of squared deviations: blocks are summed about a running mean, then merged."""

    name, prime, scale = "var", True, True

    @property
    def fields(self) -> tuple:
        return (("n", self.base, "0"), ("u", self.base, "0"), ("q", self.base, "0"))

    @property
    def block(self) -> tuple:
        if self.merging:
            return ()
        return (
            ("k", self.base, "0"),
            ("c", self.base, "0"),
            ("x", self.base, "0"),
            ("y", self.base, "0"),
        )

    def first(self, p, v):
        return [f"{p}k = {v[0]};"]

    def update(self, p, v, lanes, ok="", index=""):
        kind = lanes_of(self.base, lanes)
        d, one = f"({v[0]} - {p}k)", f"({kind})(1)"
        if ok:
            d, one = select(ok, d, f"({kind})(0)"), select(ok, one, f"({kind})(0)")
        return [
            f"const {kind} d{p} = {d};",
            f"{p}c += {one};",
            f"{p}x += d{p};",
            f"{p}y += d{p} * d{p};",
        ]

    def together(self, p, v, lanes, index=""):
        """See vectors one by one, as they would be alone, and count them once."""
        kind = lanes_of(self.base, lanes)
        return [
            f"{p}c += ({kind})({len(v)});",
            *[f"{{ const {kind} d = {x} - {p}k; {p}x += d; {p}y += d * d; }}" for x in v],
        ]

    def flush(self, p, lanes):
        kind = lanes_of(self.base, lanes)
        zero = f"({kind})(0)"
        return [
            f"{{ const {kind} c = fmax({p}c, ({kind})(1)), e = {p}x / c, t = {p}n + {p}c, g = {p}c / fmax(t, ({kind})(1));",
            f"  const {kind} m = {p}k + e, d = m - {p}u, z = {p}n * g;",
            f"  {p}q += ({p}y - {p}x * e) + {select(f'(z > {zero})', 'd * d * z', zero)};",
            f"  {p}u = {select(f'({p}n > {zero})', f'{p}u + d * g', 'm')};",
            f"  {p}n = t; {p}k = {p}u; {p}c = {zero}; {p}x = {zero}; {p}y = {zero}; }}",
        ]

    def merge(self, d, a, b, lanes):
        kind = lanes_of(self.base, lanes)
        zero = f"({kind})(0)"
        return [
            f"{{ const {kind} t = {a}n + {b}n, g = {b}n / fmax(t, ({kind})(1)), e = {b}u - {a}u, z = {a}n * g;",
            f"  const {kind} q = {a}q + {b}q + {select(f'(z > {zero})', 'e * e * z', zero)};",
            f"  const {kind} m = {a}u + e * g;",
            f"  {d}n = t; {d}u = m; {d}q = q; }}",
        ]

    def results(self, p, lanes, origin):
        kind = lanes_of(self.base, lanes)
        mean = select(f"({p}n > ({kind})(0))", p + "u", f"({kind})(NAN)")
        var = f"({select(f'({p}q < ({kind})(0))', f'({kind})(0)', p + 'q')} / scale)"
        return {
            "var": (var, self.dt),
            "std": (f"sqrt({var})", self.dt),
            "mean": (mean, self.dt),
            "m2": (p + "q", self.dt),
        }


class Sums(State):
    """The sums of two values."""

    name = "sums"

    @property
    def fields(self) -> tuple:
        return (("s", self.base, "0"), ("r", self.base, "0"))

    @property
    def block(self) -> tuple:
        return () if self.merging else (("t", self.base, "0"), ("u", self.base, "0"))

    def update(self, p, v, lanes, ok="", index=""):
        zero = f"({lanes_of(self.base, lanes)})(0)"
        values = [select(ok, x, zero) if ok else x for x in v]
        return [f"{p}{n} += {x};" for n, x in zip("tu", values, strict=True)]

    def flush(self, p, lanes):
        zero = f"({lanes_of(self.base, lanes)})(0)"
        return [f"{p}s += {p}t; {p}r += {p}u;", f"{p}t = {zero}; {p}u = {zero};"]

    def merge(self, d, a, b, lanes):
        return [f"{d}s = {a}s + {b}s; {d}r = {a}r + {b}r;"]

    def results(self, p, lanes, origin):
        return {"first": (p + "s", self.dt), "second": (p + "r", self.dt)}


class NormSums(Sums):
    """Of x, a gradient g, mean and reciprocal deviation: the sums of g times the normalised x, and of g."""

    name = "norm_sums"

    def update(self, p, v, lanes, ok="", index=""):
        x, g, mean, rstd = v
        return super().update(p, [f"({x} - {mean}) * {rstd} * {g}", g], lanes, ok)


class Ratio(Sums):
    """The sums of two values, and the first divided by the second."""

    name = "ratio"

    def results(self, p, lanes, origin):
        return {"value": (f"({p}s / {p}r)", self.dt), **super().results(p, lanes, origin)}


class HitRatio(Ratio):
    """The sum of a value, and how many of a second are not negative, and the first divided by the other."""

    name = "hit_ratio"

    def update(self, p, v, lanes, ok="", index=""):
        kind = lanes_of(self.base, lanes)
        hit = select(f"({v[1]} >= ({kind})(0))", f"({kind})(1)", f"({kind})(0)")
        return super().update(p, [v[0], hit], lanes, ok)


class LogSumExp(State):
    """Largest value and the sum of exp(value - largest), with one exponential per element."""

    name, light, ahead = "logsumexp", False, True
    headers = ("elementary/exp",)

    def _exp(self, lanes: int) -> str:
        return f"clt_exp_neg_{lanes_of(self.base, lanes)}" if self.base == "float" else "exp"

    @property
    def fields(self) -> tuple:
        return (
            ("m", self.base, "-INFINITY"),
            ("s", self.base, "0"),
        )

    def update(self, p, v, lanes, ok="", index=""):
        kind = lanes_of(self.base, lanes)
        value = select(ok, v[0], f"({kind})(-INFINITY)") if ok else v[0]
        mask = lanes_of("int" if lanes == 1 else self.mask, lanes)
        return [
            f"const {mask} w{p} = {value} > {p}m;",
            f"const {kind} z{p} = {self._exp(lanes)}({select(f'w{p}', f'{p}m - {value}', f'{value} - {p}m')});",
            f"const {kind} e{p} = {select(f'({value} == {p}m)', f'({kind})(1)', f'z{p}')};",
            f"{p}s = {select(f'w{p}', f'{p}s * e{p} + ({kind})(1)', f'{p}s + e{p}')};",
            f"{p}m = {select(f'w{p}', value, p + 'm')};",
        ]

    def merge(self, d, a, b, lanes):
        kind = lanes_of(self.base, lanes)

        def part(x: str) -> str:
            return (
                f"{x}s * {select(f'({x}m == m)', f'({kind})(1)', f'{self._exp(lanes)}({x}m - m)')}"
            )

        return [
            f"{{ const {kind} m = fmax({a}m, {b}m), s = {part(a)} + {part(b)}; {d}m = m; {d}s = s; }}"
        ]

    def together(self, p, v, lanes, index=""):
        if self.base != "float":
            return []
        kind = lanes_of(self.base, lanes)
        zero, one = f"({kind})(0)", f"({kind})(1)"
        top, total = [f"{kind} n{p} = {p}m;"], [f"{kind} r{p} = {zero};"]
        for x in v:
            top.append(f"n{p} = {select(f'({x} > n{p})', x, f'n{p}')};")
            below = select(f"({x} == n{p})", zero, f"{x} - n{p}")
            total.append(f"r{p} += clt_exp_raised_{kind}({below});")
        fallen = select(f"({p}m == n{p})", one, f"{self._exp(lanes)}({p}m - n{p})")
        lower = f"({kind})(5.42101086e-20f)"
        return [*top, *total, f"{p}s = {p}s * {fallen} + r{p} * {lower};", f"{p}m = n{p};"]

    def results(self, p, lanes, origin):
        one = f"({lanes_of(self.base, lanes)})(1)"
        total = f"({p}s + ({p}m - {p}m))"  # NaN where the largest is infinite
        return {
            "value": (f"({p}m + log({p}s))", self.dt),
            "top": (p + "m", self.dt),
            "factor": (f"({one} / {total})", self.dt),
            "log": (f"log({total})", self.dt),
        }


KINDS: dict[str, type[State]] = {
    k.name: k
    for k in (
        Sum,
        Mean,
        NanSum,
        NormOne,
        NormTwo,
        Prod,
        Xor,
        Max,
        Min,
        Both,
        ArgMax,
        ArgMin,
        Var,
        Sums,
        NormSums,
        Ratio,
        HitRatio,
        LogSumExp,
    )
}
