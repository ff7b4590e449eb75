"""Running states of sums, products and deviations, and all kinds of reductions by name (see state.py, extremes.py)."""

from __future__ import annotations

from ..language import lanes_of
from .extremes import ArgMax, ArgMin, Both, Max, Min
from .state import State, select

# 2^-64, by which a sum of exponentials that cl_kernels/elementary/exp.cl has left 2^64 times too large is multiplied.
LOWER = {"float": "5.42101086e-20f", "double": "5.421010862427522e-20"}


class Sum(State):
    """The sum. Floats are added up block by block, so that rounding errors do not grow with the number of elements."""

    name, pairs = "sum", True

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
        return {"value": (f"{p}s", self.paired or self.dt)}


class Mean(Sum):
    """The sum, divided by the number of elements where it leaves the kernel."""

    name, scale = "mean", True

    def results(self, p, lanes, origin):
        return {"value": (f"({p}s / scale)", self.paired or self.dt)}


class NanSum(Sum):
    """NaN counts as zero."""

    name, pairs = "nansum", False

    def update(self, p, v, lanes, ok="", index=""):
        zero = f"({lanes_of(self.base, lanes)})(0)"
        return super().update(p, [select(f"({v[0]} == {v[0]})", v[0], zero)], lanes, ok)


class NormOne(Sum):
    """The sum of absolute values."""

    name, pairs = "norm1", False

    def update(self, p, v, lanes, ok="", index=""):
        zero = f"({lanes_of(self.base, lanes)})(0)"
        return super().update(p, [select(f"({v[0]} < {zero})", f"-{v[0]}", v[0])], lanes, ok)


class NormTwo(Sum):
    """The root of the sum of squares."""

    name, pairs = "norm2", False

    def update(self, p, v, lanes, ok="", index=""):
        return super().update(p, [f"{v[0]} * {v[0]}"], lanes, ok)

    def results(self, p, lanes, origin):
        return {"value": (f"sqrt({p}s)", self.dt)}


class Prod(State):
    """The product. Where lanes are real and imaginary parts in turn, it has the same bits as `cmul`."""

    name, pairs = "prod", True

    @property
    def fields(self) -> tuple:
        return (("s", self.base, "1, 0" if self.dt.is_complex else "1"),)

    def initial(self, first, kind, lanes):
        return super().initial(
            ", ".join(["1, 0"] * (lanes // 2)) if self.turns else first, kind, lanes
        )

    def _one(self, lanes: int) -> str:
        return self.initial(self.fields[0][2], self.base, lanes)

    def _times(self, a: str, b: str, lanes: int) -> str:
        if not self.turns:
            return f"cmul_{self.base}({a}, {b})" if self.dt.is_complex else f"{a} * {b}"
        places = range(lanes)
        even, odd, turned = (
            ".s" + "".join(f"{k:x}" for k in order)
            for order in (
                [k & ~1 for k in places],
                [k | 1 for k in places],
                [k ^ 1 for k in places],
            )
        )
        sign = f"({lanes_of(self.base, lanes)})({', '.join(['-1, 1'] * (lanes // 2))})"
        return f"{a}{even} * {b} + {a}{odd} * ({sign} * {b}{turned})"

    def update(self, p, v, lanes, ok="", index=""):
        if not ok:
            return [f"{p}s = {self._times(f'{p}s', v[0], lanes)};"]
        taken = select(ok, v[0], self._one(lanes))
        return [
            f"const {lanes_of(self.base, lanes)} m{p} = {taken};",
            f"{p}s = {self._times(f'{p}s', f'm{p}', lanes)};",
        ]

    def merge(self, d, a, b, lanes):
        return [f"{d}s = {self._times(f'{a}s', f'{b}s', lanes)};"]

    def results(self, p, lanes, origin):
        return {"value": (f"{p}s", self.paired or self.dt)}


class Xor(State):
    """The bitwise exclusive or."""

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


class Var(State):
    """Count n, mean u + l and sum q of squared deviations: blocks are summed about a running mean, then merged.

    The mean is kept as the unevaluated sum of two numbers: where values are many standard deviations from 0, a single
    number's rounding error would exceed the differences of blocks' means. A block has the number k near the mean, the
    count c, and the sums x of value - k and y of its square. Two sets with means that differ by e become one (Chan, Golub
    and LeVeque, The American Statistician 37, 1983):

        n = na + nb,  mean = mean_a + e nb / n,  q = qa + qb + e^2 na nb / n
    """

    name, prime, scale, ahead = "var", True, True, ("row",)

    @property
    def fields(self) -> tuple:
        return tuple((name, self.base, "0") for name in "nulq")

    @property
    def block(self) -> tuple:
        if self.merging:
            return ()
        return tuple((name, self.base, "0") for name in "kcxy")

    def first(self, p, v):
        """Take the first value as the number near the mean."""
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
        """Update with each vector in turn, with the same bits as `update`, but count all of them at once."""
        kind = lanes_of(self.base, lanes)
        return [
            f"{p}c += ({kind})({len(v)});",
            *[f"{{ const {kind} d = {x} - {p}k; {p}x += d; {p}y += d * d; }}" for x in v],
        ]

    def flush(self, p, lanes):
        """Merge the block, of mean k + e and squared deviations y - x e, and begin one near the new mean.

        The mean's two parts are renormalised, s + (the rounding error of s).
        """
        kind = lanes_of(self.base, lanes)
        zero = f"({kind})(0)"
        return [
            f"{{ const {kind} c = fmax({p}c, ({kind})(1)), e = {p}x / c, t = {p}n + {p}c, g = {p}c / fmax(t, ({kind})(1));",
            f"  const {kind} d = (({p}k - {p}u) - {p}l) + e, z = {p}n * g;",
            f"  {p}q += ({p}y - {p}x * e) + {select(f'(z > {zero})', 'd * d * z', zero)};",
            f"  const {kind} u = {select(f'({p}n > {zero})', f'{p}u', f'{p}k')}, l = {select(f'({p}n > {zero})', f'{p}l + d * g', 'e')};",
            f"  const {kind} s = u + l, r = s - u;",
            f"  {p}u = s; {p}l = (u - (s - r)) + (l - r); {p}k = s;",
            f"  {p}n = t; {p}c = {zero}; {p}x = {zero}; {p}y = {zero}; }}",
        ]

    def merge(self, d, a, b, lanes):
        kind = lanes_of(self.base, lanes)
        zero = f"({kind})(0)"
        return [
            f"{{ const {kind} t = {a}n + {b}n, g = {b}n / fmax(t, ({kind})(1)), e = ({b}u - {a}u) + ({b}l - {a}l), z = {a}n * g;",
            f"  const {kind} q = {a}q + {b}q + {select(f'(z > {zero})', 'e * e * z', zero)};",
            f"  const {kind} u = {select(f'({a}n > {zero})', f'{a}u', f'{b}u')}, l = {select(f'({a}n > {zero})', f'{a}l + e * g', f'{b}l')};",
            f"  {d}n = t; {d}u = u; {d}l = l; {d}q = q; }}",
        ]

    def results(self, p, lanes, origin):
        kind = lanes_of(self.base, lanes)
        mean = select(f"({p}n > ({kind})(0))", f"({p}u + {p}l)", f"({kind})(NAN)")
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
    """The sums of g times the normalised x, and of g; values are x, the gradient g, mean and reciprocal deviation."""

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
    """The sum of a value, the number of second values that are not negative, and the sum divided by that number."""

    name = "hit_ratio"

    def update(self, p, v, lanes, ok="", index=""):
        kind = lanes_of(self.base, lanes)
        hit = select(f"({v[1]} >= ({kind})(0))", f"({kind})(1)", f"({kind})(0)")
        return super().update(p, [v[0], hit], lanes, ok)


class LogSumExp(State):
    """Largest value m and the sum s of exp(value - m), with one exponential per element.

    A value above m rescales the sum, s exp(m - value) + 1; another adds exp(value - m). Equal values add 1, because the
    difference of infinities is NaN.
    """

    name, light, ahead = "logsumexp", False, ("col",)
    headers = ("elementary/exp", "all_lanes")
    RISE = 16  # how far a value may exceed the maximum that the sum of exponentials is relative to

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

    @property
    def beside(self) -> tuple:
        return (("t", self.base, "-INFINITY"),)

    def together(self, p, v, lanes, index=""):
        """Update with the sum of exponentials relative to an earlier maximum, until a value exceeds that by RISE.

        `t` is the maximum of all values. The branch is taken for all lanes together, but changes no bit of a lane that
        did not need it.
        """
        kind, mask = lanes_of(self.base, lanes), lanes_of(self.mask, lanes)
        zero, one, added = f"({kind})(0)", f"({kind})(1)", f"clt_exp_added_{kind}"
        fallen = select(f"({p}m == n{p})", one, f"clt_exp_neg_{kind}({p}m - n{p})")
        return [
            f"{kind} n{p} = {p}t, r{p} = {zero};",
            *[f"n{p} = {select(f'({x} > n{p})', x, f'n{p}')};" for x in v],
            f"{p}t = n{p};",
            f"const {mask} w{p} = ~(n{p} - {p}m <= ({kind})({self.RISE}));",  # also set for infinities
            f"if (CLT_ANY_{mask}(w{p})) {{",
            f"  {p}s = {select(f'w{p}', f'{p}s * {fallen}', f'{p}s')};",
            f"  {p}m = {select(f'w{p}', f'n{p}', f'{p}m')};",
            *[
                f"  r{p} = {added}(r{p}, {select(f'({x} == {p}m)', zero, f'{x} - {p}m')});"
                for x in v
            ],
            "} else {",
            *[f"  r{p} = {added}(r{p}, {x} - {p}m);" for x in v],
            "}",
            f"{p}s += r{p} * ({kind})({LOWER[self.base]});",
        ]

    def settle(self, p, lanes):
        kind = lanes_of(self.base, lanes)
        top = select(f"({p}t > {p}m)", p + "t", p + "m")
        fallen = select(f"({p}m == n)", f"({kind})(1)", f"clt_exp_neg_{kind}({p}m - n)")
        return [f"{{ const {kind} n = {top}; {p}s *= {fallen}; {p}m = n; }}"]

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
