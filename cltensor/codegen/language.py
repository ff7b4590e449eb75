"""The small language in which rows state their formulas, and its translation to OpenCL C.

A formula is a Python expression over operands `x y z w`, literals, comparisons, `and or not` and named functions, for
example `"where(x > 0, x, 0)"`. It is parsed once and emitted for any register type and any number of lanes:
comparisons become lane masks, `where` becomes `select`, literals get the type's suffix. The caller converts operands
to the compute type; this module knows nothing of tensors, layouts or memory.

Values have one of two kinds: a number of the compute type, or a mask (OpenCL's own result of a comparison: 0 / 1 for a
scalar, 0 / -1 per lane for a vector).
"""

from __future__ import annotations

import ast
import functools
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..dtypes import dtype

OPERANDS = "xyzwuvst"

# Builtins of OpenCL C that take any number of lanes, for floating types.
_FLOAT_BUILTINS = {
    name: name
    for name in [
        "copysign",
        "fabs",
        "fmax",
        "fmin",
        "ldexp",
        "nextafter",
        "rsqrt",
        "sqrt",
        "cbrt",
    ]
}
_MASK_BUILTINS = {"isnan", "isinf", "isfinite", "signbit"}


class Library(NamedTuple):
    """A device function of the library, defined in cl_kernels/."""

    header: str  # the file in cl_kernels/, without its suffix
    vector: bool  # whether the function takes vectors, too
    # What computes it in double: "" if the function exists for double; its own name if OpenCL's builtin of that name
    # does; else a formula.
    double: str
    cost: int  # about how many additions take as long on a CPU


# name in formulas -> where it is defined; `<name>_<type>` is the C function's name, type being its register type.
LIBRARY: dict[str, Library] = {}


def library(
    header: str,
    names: str,
    *,
    vector: bool = False,
    single: bool = False,
    double: str = "",
    cost: int = 0,
) -> None:
    """Declare the device functions of `cl_kernels/<header>.cl` to the language.

    Functions that are `single` exist for float only, of any number of lanes; for double OpenCL's builtin, or the formula
    `double`, replaces them. `cost`: about how many additions take as long on a CPU.
    """
    cost = cost or (6 if single else 120 if vector else 500)
    for name in names.split():
        LIBRARY[name] = Library(header, vector or single, double or (name if single else ""), cost)


library("complex", "cmul cdiv crecip", vector=True, cost=30)
library("complex_polar", "cabs carg cexp cpolar csgn", vector=True, cost=30)
library(
    "complex_functions",
    "clog csqrt cpow csin ccos ctan csinh ccosh ctanh clog10 clog2 clog1p cexpm1 casin cacos catan casinh cacosh catanh crsqrt",
    vector=True,
    cost=100,
)
# exp_neg(x) requires x <= 0.
library("elementary/exp", "exp exp_neg", vector=True, cost=6)
library("elementary/exp2", "exp2", single=True)
library("elementary/expm1", "expm1", vector=True, cost=6)
library("elementary/sinh", "sinh cosh", vector=True, cost=6)
library("elementary/tanh", "tanh", single=True)
library("elementary/sigmoid", "sigmoid", single=True, double="1 / (1 + exp(-x))")
library("elementary/erf", "erf erfc", vector=True, cost=6)
library(
    "elementary/mish",
    "mish",
    single=True,
    double="x * tanh(where(x > 20, x, log1p(exp(x))))",
)
library(
    "elementary/gelu", "gelu", single=True, double="x * 0.5 * (1 + erf(x * 0.7071067811865476))"
)
library(
    "elementary/gelu_slope",
    "gelu_slope",
    single=True,
    double="0.5 * (1 + erf(x * 0.7071067811865476)) + x * exp(x * x * -0.5) * 0.3989422804014327",
)
library("elementary/log", "log log2 log10", vector=True, cost=6)
library("elementary/rounding", "rint floor ceil trunc", single=True, cost=1)
library("elementary/log1p", "log1p", vector=True, cost=6)
# log(1 + exp(x)); requires x <= 0.
library("elementary/log1p_exp", "log1p_exp", single=True, double="log1p(exp(x))", cost=12)
library("elementary/asinh", "asinh acosh atanh", single=True)
library("elementary/pow", "pow", vector=True, cost=45)
library("elementary/hypot", "hypot", single=True)
library("elementary/sine", "sin cos", vector=True, cost=6)
library("elementary/sine", "tan", single=True)
library("elementary/asin", "asin acos", single=True)
library("elementary/atan", "atan atan2", single=True)
library("special/lgamma", "lgamma", single=True, cost=30)
library("special/digamma", "digamma", vector=True, cost=30)
library("special/gamma", "trigamma", vector=True, cost=60)
library("special/gamma", "zeta", vector=True, cost=600)
library("special/igamma", "igamma igammac", vector=True, cost=600)
library("elementary/gcd", "gcd lcm")
library("elementary/ipow", "ipow", cost=200)
library("elementary/division", "fmod floor_rest floor_quotient floor_settled", vector=True, cost=20)
library("elementary/frexp", "mantissa exponent", vector=True, cost=12)
library("elementary/exp2_whole", "exp2_whole", vector=True, cost=8)
library("special/normal", "erfinv ndtri log_ndtr erfcx", vector=True, cost=30)
library("special/bessel_i", "i0 i0e i1 i1e", vector=True, cost=60)
library("special/bessel_j", "j0 j1 y0 y1", vector=True, cost=60)
library("special/bessel_k", "k0 k0e k1 k1e", vector=True, cost=60)
library("special/airy", "airy sj0", vector=True, cost=60)
library(
    "special/polynomials",
    "chebyshev_t chebyshev_u chebyshev_v chebyshev_w shifted_t shifted_u shifted_v shifted_w hermite_h hermite_he laguerre_l legendre_p",
)
library("random/philox", "philox_bits philox_more philox_word philox_below unit_log", vector=True)
library("random/poisson", "poisson poisson_double", vector=True, cost=300)
library("random/gamma", "gamma_draw gamma_draw_double", vector=True, cost=300)
library("random/gamma", "binomial_draw binomial_draw_double gamma_slope beta_slope")


_LIGHT_BUILTINS = {"fabs", "floor", "ceil", "trunc", "rint", "fmax", "fmin", "sqrt", "copysign"}
BUILTIN_COST = 40  # of OpenCL's builtins that are not light, in the unit of `Library.cost`
DIVISION_COST = 20  # of % of integers, in the same unit


@dataclass(frozen=True)
class Formula:
    """A parsed formula: its text, and what it needs."""

    text: str
    tree: ast.expr = field(repr=False, compare=False)
    # Files of cl_kernels/ with the functions that the formula calls.
    headers: frozenset[str] = field(compare=False)
    # A function in it takes no vectors: the kernel computes one element at a time.
    scalar_only: bool = field(compare=False)
    # It calls a function other than those of a few instructions (_LIGHT_BUILTINS).
    heavy: bool = field(compare=False)
    # It contains `/` or `%`.
    divides: bool = field(compare=False)
    """Of integer lanes: by functions of elementary/quotient.cl."""
    cost: int = field(compare=False)
    """About how many additions take as long on a CPU."""
    double_headers: frozenset[str] = field(compare=False)
    """What the formulas that replace library functions for double (`Library.double`) need besides."""

    def headers_for(self, dt: dtype) -> frozenset[str]:
        """Return the headers in cl_kernels/ that the formula needs when it is computed in `dt`."""
        return self.headers | self.double_headers if dt.reg == "double" else self.headers


@functools.cache
def parse(text: str) -> Formula:
    """Parse a formula; raises SyntaxError or ValueError for what the language does not have."""
    tree = ast.parse(text, mode="eval").body
    headers, scalar_only, heavy, divides, cost = set(), False, False, False, 1
    double_headers: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if not isinstance(node.func, ast.Name):
                raise ValueError(f"formula {text!r}: only plain function names can be called")
            name = node.func.id
            if name in LIBRARY:
                headers.add(LIBRARY[name].header)
                if LIBRARY[name].double not in ("", name):
                    double_headers |= parse(LIBRARY[name].double).headers
                scalar_only |= not LIBRARY[name].vector
                heavy |= name not in _LIGHT_BUILTINS
                cost += LIBRARY[name].cost
            elif name in _FLOAT_BUILTINS:
                if name not in _LIGHT_BUILTINS:
                    heavy = True
                    cost += BUILTIN_COST
            elif name not in _MASK_BUILTINS and name not in _SPECIAL:
                raise ValueError(f"formula {text!r}: unknown function {name!r}")
        elif isinstance(node, ast.Div | ast.Mod):
            divides = True
            cost += DIVISION_COST if isinstance(node, ast.Mod) else 0
    return Formula(
        text,
        tree,
        frozenset(headers),
        scalar_only,
        heavy,
        divides,
        cost,
        frozenset(double_headers),
    )


_SPECIAL = {
    "where",
    "abs",
    "min",
    "max",
    "re",
    "im",
    "cplx",
    "conj",
    "mask",
    "shr",
    "popcount",
    "rounded",  # to the result's dtype, as torch does between two operations
}


def _negated(value: Any) -> Any:
    return -value


def parts(lanes: int) -> tuple[str, str]:
    """Return the member names of the real and the imaginary part of a complex value of `lanes` lanes."""
    return ("x", "y") if lanes == 1 else ("lo", "hi")


def lanes_of(base: str, lanes: int) -> str:
    """Name the type of `lanes` lanes of `base`; vectors of complex numbers are structs (cl_kernels/complex.cl)."""
    if lanes > 1 and base in ("float2", "double2"):
        return f"clt_{base}_{lanes}"
    return base if lanes == 1 else f"{base}{lanes}"


SIGNED = {
    "uchar": "char",
    "char": "char",
    "ushort": "short",
    "short": "short",
    "uint": "int",
    "int": "int",
    "ulong": "long",
    "long": "long",
    "float": "int",
    "double": "long",
    "float2": "int",
    "double2": "long",
}


class Emitter:
    """Emits one formula for a compute type and a number of lanes."""

    def __init__(
        self, dt: dtype, lanes: int, operands: dict[str, str], masks: frozenset[str] = frozenset()
    ) -> None:
        self.dt, self.lanes, self.operands, self.masks = dt, lanes, operands, masks
        self.base = dt.reg
        self.type = lanes_of(self.base, lanes)
        self.real = self.base[:-1] if dt.is_complex else self.base
        self.pairs = dt.is_complex and lanes > 1
        self.re, self.im = parts(lanes)

    def pair(self, x: str, y: str = "0") -> str:
        """Make a complex value from its real and imaginary part."""
        if not self.pairs:
            return f"(({self.base})({x}, {y}))"
        real = lanes_of(self.real, self.lanes)
        return f"make_{self.type}(({real})({x}), ({real})({y}))"

    # ---- literals
    def literal(self, value: Any) -> str:
        if self.dt.is_complex:
            value = complex(value)
            if self.pairs:
                return self.pair(self._real(value.real), self._real(value.imag))
            return f"(({self.base})({self._real(value.real)}, {self._real(value.imag)}))"
        return f"(({self.type})({self._real(value)}))"

    def _real(self, value: float | int) -> str:
        if self.real in ("float", "double"):
            value = float(value)
            if value != value:
                return f"({self.real})NAN"
            if value in (float("inf"), float("-inf")):
                return ("-" if value < 0 else "") + f"({self.real})INFINITY"
            return repr(value) + ("f" if self.real == "float" else "")
        return f"({self.real}){int(value)}" + ("L" if abs(int(value)) > 2**31 - 1 else "")

    # ---- nodes
    def number(self, node: ast.expr) -> str:
        text, kind = self.emit(node)
        return text if kind == "num" else self.from_mask(text)

    def from_mask(self, text: str) -> str:
        """Make 0 / 1 of the compute type from a mask."""
        if self.lanes == 1:
            return f"(({self.base})({text}))"
        ones = f"({text}) & ({lanes_of(SIGNED[self.base], self.lanes)})(1)"
        if self.pairs:
            return self.pair(f"convert_{lanes_of(self.real, self.lanes)}({ones})")
        return f"convert_{self.type}({ones})"

    def mask(self, node: ast.expr, hidden: bool = False) -> str:
        """A condition as a mask; `hidden`: hide from the compiler how its bytes were made (cl_kernels/truth.cl)."""
        text, kind = self.emit(node)
        if kind == "mask":
            return text
        if hidden:
            text = f"CLT_BYTES({text})"
        if self.dt.is_complex:
            zero = f"({lanes_of(self.real, self.lanes)})(0)" if self.pairs else "0"
            return f"({text}.{self.re} != {zero} || {text}.{self.im} != {zero})"
        return f"({text} != {self.literal(0)})"

    def emit(self, node: ast.expr) -> tuple[str, str]:
        if isinstance(node, ast.Constant):
            return self.literal(node.value), "num"
        if isinstance(node, ast.Name):
            if node.id in self.operands:
                return self.operands[node.id], "mask" if node.id in self.masks else "num"
            return self.literal(
                {"pi": 3.141592653589793, "inf": float("inf"), "nan": float("nan")}[node.id]
            ), "num"
        if isinstance(node, ast.UnaryOp):
            return self._unary(node)
        if isinstance(node, ast.BinOp):
            return self._binary(node)
        if isinstance(node, ast.BoolOp):
            both = isinstance(node.op, ast.And)
            masks = [self.mask(v, both and self.type == "uchar16") for v in node.values]
            return "(" + (" && " if both else " || ").join(masks) + ")", "mask"
        if isinstance(node, ast.Compare):
            return self._compare(node)
        if isinstance(node, ast.Call):
            return self._call(node.func.id, node.args)  # type: ignore[attr-defined]
        raise ValueError(f"formula: {ast.dump(node)} is not in the language")

    def _unary(self, node: ast.UnaryOp) -> tuple[str, str]:
        if isinstance(node.op, ast.Not):
            return f"(!{self.mask(node.operand)})", "mask"
        if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            return self.literal(_negated(node.operand.value)), "num"
        sign = {ast.USub: "-", ast.Invert: "~", ast.UAdd: "+"}[type(node.op)]
        return f"({sign}{self.number(node.operand)})", "num"

    def _binary(self, node: ast.BinOp) -> tuple[str, str]:
        sign = {
            ast.Add: "+",
            ast.Sub: "-",
            ast.Mult: "*",
            ast.Div: "/",
            ast.Mod: "%",
            ast.BitAnd: "&",
            ast.BitOr: "|",
            ast.BitXor: "^",
            ast.LShift: "<<",
            ast.RShift: ">>",
        }[type(node.op)]
        a, b = self.number(node.left), self.number(node.right)
        if self.dt.is_complex and sign in "*/":
            return f"{'cmul' if sign == '*' else 'cdiv'}_{self.type}({a}, {b})", "num"
        if self.lanes > 1 and sign in "/%" and self.dt.category < 2:
            return f"clt_{'quotient' if sign == '/' else 'rest'}_{self.type}({a}, {b})", "num"
        text = f"({a} {sign} {b})"
        if self.lanes == 1 and self.base in ("uchar", "char", "ushort", "short"):
            text = f"(({self.base}){text})"  # C promotes small integers to int
        return text, "num"

    def _compare(self, node: ast.Compare) -> tuple[str, str]:
        terms = [node.left, *node.comparators]
        found = []
        for left, op, right in zip(terms, node.ops, terms[1:], strict=False):
            sign = {
                ast.Lt: "<",
                ast.LtE: "<=",
                ast.Gt: ">",
                ast.GtE: ">=",
                ast.Eq: "==",
                ast.NotEq: "!=",
            }[type(op)]
            a, b = self.number(left), self.number(right)
            if self.dt.is_complex:
                join = "&&" if sign == "==" else "||"
                re, im = self.re, self.im
                found.append(f"({a}.{re} {sign} {b}.{re} {join} {a}.{im} {sign} {b}.{im})")
            else:
                found.append(f"({a} {sign} {b})")
        return found[0] if len(found) == 1 else "(" + " && ".join(found) + ")", "mask"

    def _call(self, name: str, args: list[ast.expr]) -> tuple[str, str]:
        if name == "where":
            cond, a, b = self.mask(args[0]), self.number(args[1]), self.number(args[2])
            if self.pairs:
                return f"pick_{self.type}({cond}, {a}, {b})", "num"
            # Some drivers compile select() to a call into a library.
            return f"({cond} ? {a} : {b})", "num"
        if name == "mask":
            return self.mask(args[0]), "mask"
        if name in _MASK_BUILTINS:
            a = self.number(args[0])
            if self.dt.is_complex:
                join = "&&" if name == "isfinite" else "||"
                return f"({name}({a}.{self.re}) {join} {name}({a}.{self.im}))", "mask"
            if self.dt.category < 2:
                return f"({a} != {a})" if name != "isfinite" else f"({a} == {a})", "mask"
            return f"{name}({a})", "mask"
        values = [self.number(a) for a in args]
        if name == "abs":
            if self.dt.category == 2:
                return self._absolute(values[0]), "num"
            if not self.dt.is_signed:
                return values[0], "num"
            if self.lanes > 1:
                return f"({values[0]} < {self.literal(0)} ? -{values[0]} : {values[0]})", "num"
            return f"(({self.base})abs({values[0]}))", "num"
        if name in ("min", "max"):
            return f"{'f' if self.dt.category == 2 else ''}{name}({', '.join(values)})", "num"
        if name == "rounded":
            return round_to(values[0], self.dt, self.lanes), "num"
        if name == "popcount":
            return f"popcount({values[0]})", "num"
        if name == "shr":  # arithmetic or logical by the compute type's sign; amounts are in range
            return f"({values[0]} >> {values[1]})", "num"
        if name in ("re", "im"):
            return self.pair(f"{values[0]}.{self.re if name == 're' else self.im}"), "num"
        if name == "conj":
            return self.pair(f"{values[0]}.{self.re}", f"-{values[0]}.{self.im}"), "num"
        if name == "cplx":
            return self.pair(f"{values[0]}.{self.re}", f"{values[1]}.{self.re}"), "num"
        if name not in LIBRARY:
            return f"{_FLOAT_BUILTINS[name]}({', '.join(values)})", "num"
        instead = LIBRARY[name].double if self.base == "double" else ""
        if instead in ("", name):
            return f"{instead or f'{name}_{self.type}'}({', '.join(values)})", "num"
        operands = dict(zip(OPERANDS, values, strict=False))
        return Emitter(self.dt, self.lanes, operands).emit(parse(instead).tree)

    def _absolute(self, text: str) -> str:
        """|x| of floats; of vectors by clearing sign bits, as some drivers compile fabs() to a library call."""
        if self.lanes == 1:
            return f"fabs({text})"
        whole = lanes_of(SIGNED[self.base], self.lanes)
        most = "0x7fffffff" if self.base == "float" else "0x7fffffffffffffffL"
        return f"as_{self.type}(as_{whole}({text}) & ({whole})({most}))"


def convert(text: str, source: dtype, target: dtype, lanes: int) -> str:
    """Convert a register value between dtypes as torch does: to bool is `!= 0`, float to int truncates."""
    if source is target or (
        source.reg == target.reg and target.category == 2 and source.itemsize <= target.itemsize
    ):
        return text
    re, im = parts(lanes)
    if target.category == 0:
        if source.is_complex:
            if lanes > 1:
                zero = f"({lanes_of(source.reg[:-1], lanes)})(0)"
                return truth(f"{text}.{re} != {zero} || {text}.{im} != {zero}", lanes)
            return f"((uchar)({text}.x != 0 || {text}.y != 0))"
        zero = f"({lanes_of(source.reg, lanes)})(0)"
        if lanes == 1:
            return f"((uchar)({text} != {zero}))"
        return truth(f"{text} != {zero}", lanes)
    if target.is_complex:
        real = target.reg[:-1]
        if lanes > 1:
            real = lanes_of(real, lanes)
            if source.is_complex:
                x, y = f"convert_{real}({text}.{re})", f"convert_{real}({text}.{im})"
            else:
                x, y = f"convert_{real}({text})", f"({real})(0)"
            return f"make_{lanes_of(target.reg, lanes)}({x}, {y})"
        if source.is_complex:
            made = f"(({target.reg})(({real}){text}.x, ({real}){text}.y))"
        else:
            made = f"(({target.reg})(({real})({text}), 0))"
        return round_to(made, target, lanes)
    given = source.reg
    if source.is_complex:
        text, given = f"{text}.{re}", given[:-1]
    if given == target.reg:
        return text if target.category != 2 else round_to(text, target, lanes)
    if source.category >= 2 and target.category == 1:
        # Convert to a wider integer first, so that a value out of range gives on an x86 CPU what torch gives there. For
        # vectors of float and an 8-bit target int is wide enough: the low 8 bits of a float beyond its range are 0
        # either way, and a conversion to 64 bits would go lane by lane.
        narrow = lanes > 1 and target.itemsize == 1 and given == "float"
        wide = "int" if narrow or target.reg in ("int", "short") else "long"
        middle = f"convert_{lanes_of(wide, lanes)}_rtz({text})"
        return middle if target.reg == wide else f"convert_{lanes_of(target.reg, lanes)}({middle})"
    return round_to(f"convert_{lanes_of(target.reg, lanes)}({text})", target, lanes)


def truth(mask: str, lanes: int) -> str:
    """Make 0 / 1 of a bool register from a mask of several lanes (cl_kernels/truth.cl)."""
    return f"CLT_TRUTH(convert_uchar{lanes}({mask}), uchar{lanes})"


def round_to(text: str, dt: dtype, lanes: int) -> str:
    """Round a float register to what a 16-bit float can hold, so that fusion never changes a result."""
    if dt.code in ("f16", "bf16"):
        return f"clt_round_{dt.code}_{lanes_of('float', lanes)}({text})"
    if dt.code == "c32":  # complex32 is always computed one number at a time
        return f"(float2)(clt_round_f16_float(({text}).x), clt_round_f16_float(({text}).y))"
    return text
