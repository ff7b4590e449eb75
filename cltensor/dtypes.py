"""Element types: their names, how they are stored and computed with, and how types promote.

Owns the `dtype` records, the promotion rules, the default dtype, `finfo` and `iinfo`. Knows nothing
of tensors, shapes or devices.
"""

from __future__ import annotations

import math
from builtins import bool as pybool
from builtins import float as pyfloat
from builtins import int as pyint
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

BOOL, INTEGRAL, FLOATING, COMPLEX = 0, 1, 2, 3


class dtype:
    """An element type. Only the module's singletons exist, so types compare by identity."""

    __slots__ = (
        "abbr",
        "category",
        "cl",
        "code",
        "index",
        "is_complex",
        "is_floating_point",
        "is_signed",
        "itemsize",
        "name",
        "np",
        "reg",
        "scalar_name",
    )
    __module__ = "torch"

    name: str
    scalar_name: str  # as error messages spell it: "Float", "ComplexHalf"
    abbr: str
    code: str
    category: pyint
    itemsize: pyint
    is_floating_point: pybool
    is_complex: pybool
    is_signed: pybool
    np: np.dtype[Any] | None
    cl: str
    reg: str
    index: pyint

    def __new__(cls, *args: Any, **kwargs: Any) -> dtype:
        raise TypeError("cannot create 'torch.dtype' instances")

    def __repr__(self) -> str:
        return "torch." + self.name

    __str__ = __repr__

    def __reduce__(self) -> tuple[Any, ...]:
        return _by_name, (self.name,)

    def __copy__(self) -> dtype:
        return self

    def __deepcopy__(self, memo: Any) -> dtype:
        return self

    def to_real(self) -> dtype:
        """Return the type of one component: itself, or the matching real type of a complex one."""
        return _REAL.get(self, self)

    def to_complex(self) -> dtype:
        """Return the complex type that holds this floating type.

        RuntimeError for bool and integers.
        """
        found = _COMPLEX.get(self)
        if found is None:
            raise RuntimeError(f"Unknown Complex ScalarType for {self.scalar_name}")
        return found


ALL: list[dtype] = []


def _new(
    name: str,
    scalar_name: str,
    code: str,
    category: pyint,
    itemsize: pyint,
    cl: str,
    *,
    reg: str = "",
    numpy: pybool = True,
    abbr: str = "",
) -> dtype:
    d = object.__new__(dtype)
    d.name = name
    d.scalar_name = scalar_name
    d.code = code
    d.category = category
    d.itemsize = itemsize
    d.abbr = abbr or code
    d.is_floating_point = category == FLOATING
    d.is_complex = category == COMPLEX
    d.is_signed = category >= FLOATING or name.startswith("int")
    d.np = np.dtype(name) if numpy else None
    d.cl, d.reg = cl, reg or cl
    d.index = len(ALL)
    ALL.append(d)
    return d


class foreign(dtype):
    """A dtype of torch's that no tensor can have here: programs can name it, compare it and ask for its limits."""

    __slots__ = ()
    __module__ = "torch"


def _foreign(
    name: str, scalar_name: str, category: pyint, signed: pybool = True, itemsize: pyint = 1
) -> foreign:
    d = object.__new__(foreign)
    d.name, d.scalar_name, d.category, d.itemsize = name, scalar_name, category, itemsize
    d.is_floating_point, d.is_complex, d.is_signed, d.np = category == FLOATING, False, signed, None
    FOREIGN[name] = d
    return d


FOREIGN: dict[str, foreign] = {}


def _by_name(name: str) -> dtype:
    return BY_NAME.get(name) or FOREIGN[name]


# The names below shadow Python's own; this module uses pybool, pyint and pyfloat for those.
bool = _new("bool", "Bool", "b8", BOOL, 1, "uchar")
uint8 = _new("uint8", "Byte", "u8", INTEGRAL, 1, "uchar")
int8 = _new("int8", "Char", "i8", INTEGRAL, 1, "char")
int16 = _new("int16", "Short", "i16", INTEGRAL, 2, "short")
int32 = _new("int32", "Int", "i32", INTEGRAL, 4, "int")
int64 = _new("int64", "Long", "i64", INTEGRAL, 8, "long")
uint16 = _new("uint16", "UInt16", "u16", INTEGRAL, 2, "ushort")
uint32 = _new("uint32", "UInt32", "u32", INTEGRAL, 4, "uint")
uint64 = _new("uint64", "UInt64", "u64", INTEGRAL, 8, "ulong")
float16 = _new("float16", "Half", "f16", FLOATING, 2, "half", reg="float")
bfloat16 = _new("bfloat16", "BFloat16", "bf16", FLOATING, 2, "ushort", reg="float", numpy=False)
float32 = _new("float32", "Float", "f32", FLOATING, 4, "float")
float64 = _new("float64", "Double", "f64", FLOATING, 8, "double")
complex32 = _new("complex32", "ComplexHalf", "c32", COMPLEX, 4, "uint", reg="float2", numpy=False)
complex64 = _new("complex64", "ComplexFloat", "c64", COMPLEX, 8, "float2")
complex128 = _new("complex128", "ComplexDouble", "c128", COMPLEX, 16, "double2")

float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu = (
    _foreign(f"float8_{form}", f"Float8_{form}", FLOATING, form != "e8m0fnu")
    for form in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu")
)
float4_e2m1fn_x2 = _foreign("float4_e2m1fn_x2", "Float4_e2m1fn_x2", FLOATING)
int1, int2, int3, int4, int5, int6, int7 = (
    _foreign(f"int{bits}", f"Int{bits}", INTEGRAL) for bits in range(1, 8)
)
uint1, uint2, uint3, uint4, uint5, uint6, uint7 = (
    _foreign(f"uint{bits}", f"UInt{bits}", INTEGRAL, False) for bits in range(1, 8)
)
qint8, quint8, quint4x2, quint2x4 = (
    _foreign(
        name, f"Q{name[1:].replace('int', 'Int').replace('u', 'U')}", INTEGRAL, name == "qint8"
    )
    for name in ("qint8", "quint8", "quint4x2", "quint2x4")
)
qint32 = _foreign("qint32", "QInt32", INTEGRAL, itemsize=4)
bits8, bits1x8, bits2x4, bits4x2 = (
    _foreign(f"bits{form}", f"Bits{form}", INTEGRAL, False) for form in ("8", "1x8", "2x4", "4x2")
)
bits16 = _foreign("bits16", "Bits16", INTEGRAL, False, 2)

half, float, double = float16, float32, float64
short, int, long = int16, int32, int64
chalf, cfloat, cdouble = complex32, complex64, complex128

# What C++ calls the element types, as some of torch's messages spell them.
C_NAMES = {
    "float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16", "int64": "long int", "int32": "int", "int16": "short int",
    "int8": "signed char", "uint8": "unsigned char", "bool": "bool", "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
    "complex32": "c10::complex<c10::Half>", "uint16": "short unsigned int", "uint32": "unsigned int", "uint64": "long unsigned int",
}  # fmt: skip

_PYTHON: dict[Any, dtype] = {pyfloat: float64, pyint: int64, pybool: bool, complex: complex128}
BY_NAME: dict[str, dtype] = {d.name: d for d in ALL}
_BY_NUMPY: dict[Any, dtype] = {d.np: d for d in ALL if d.np is not None}
_REAL = {complex32: float16, complex64: float32, complex128: float64}
_COMPLEX = {
    float16: complex32,
    bfloat16: complex64,
    float32: complex64,
    float64: complex128,
    complex32: complex32,
    complex64: complex64,
    complex128: complex128,
}
_WIDE_UNSIGNED = (uint16, uint32, uint64)


# -- promotion ------------------------------------------------------------------------------------


def _promote(a: dtype, b: dtype) -> dtype | None:
    if a is b:
        return a
    if a in _WIDE_UNSIGNED or b in _WIDE_UNSIGNED:
        # These promote with floating types only.
        other = b if a in _WIDE_UNSIGNED else a
        return other if other.is_floating_point else None
    low, high = (a, b) if a.category <= b.category else (b, a)
    if high.is_complex and low.category >= FLOATING:
        real = _promote(low.to_real(), high.to_real())
        assert real is not None
        return real.to_complex()
    if low.category < high.category:
        return high
    if high.is_floating_point:
        if low.itemsize == high.itemsize:
            return float32  # float16 with bfloat16: neither holds the other
        return low if low.itemsize > high.itemsize else high
    if low.itemsize == high.itemsize:
        return int16  # uint8 with int8
    return low if low.itemsize > high.itemsize else high


_TABLE: list[list[dtype | None]] = [[_promote(a, b) for b in ALL] for a in ALL]


def promote_types(a: dtype, b: dtype) -> dtype:
    """Return the smallest type that holds both.

    RuntimeError where uint16, uint32 or uint64 has no partner.
    """
    if a is b:
        return a
    if a.__class__ is not dtype or b.__class__ is not dtype:
        if isinstance(a, dtype) and isinstance(b, dtype):
            raise RuntimeError(
                f"Promotion for {_few(a, b)} Types is not supported, attempted to promote {a.scalar_name} and {b.scalar_name}"
            )
        a = required(a, "promote_types", "'type1' (position 1)")
        b = required(b, "promote_types", "'type2' (position 2)")
    found = _TABLE[a.index][b.index]
    if found is None:
        raise RuntimeError(
            "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote "
            f"{a.scalar_name} and {b.scalar_name}"
        )
    return found


def _few(a: dtype, b: dtype) -> str:
    return "Float8" if any(d.name.startswith("float8") for d in (a, b)) else "Float4" if "float4" in (a.name[:6], b.name[:6]) else "Barebones"  # fmt: skip


def _combine(higher: dtype | None, lower: dtype | None) -> dtype | None:
    """Let a lower rank (0-dim tensor, scalar) change only the category of a higher one."""
    if higher is None:
        return lower
    if lower is None or higher.is_complex:
        return higher
    if higher.is_floating_point:
        return higher.to_complex() if lower.is_complex else higher
    if higher is bool:
        return promote_types(higher, lower)
    return lower if lower.category >= FLOATING else higher


_RESULTS: dict[tuple[tuple[dtype, pyint], ...], dtype] = {}


def result_type_of(items: Sequence[tuple[dtype, pyint]]) -> dtype:
    """Return the result type of an operation on `(dtype, rank)` operands.

    Rank 2 is a tensor with dimensions, 1 a 0-dim tensor, 0 a Python scalar. RuntimeError for types
    that do not promote.
    """
    key = tuple(items)
    found = _RESULTS.get(key)
    if found is not None:
        return found
    by_rank: list[dtype | None] = [None, None, None]
    for d, rank in key:
        seen = by_rank[rank]
        by_rank[rank] = d if seen is None else promote_types(seen, d)
    result = _combine(by_rank[2], _combine(by_rank[1], by_rank[0]))
    if result is None:
        raise ValueError("result_type_of() needs at least one operand")
    _RESULTS[key] = result
    return result


def can_cast(from_: dtype, to: dtype) -> pybool:
    """Tell whether an in-place result or `out=` may be stored as `to`: no category is lost."""
    if from_.category > to.category and from_.category >= FLOATING:
        return False
    return not (from_.category == INTEGRAL and to is bool)


def asked(dt: Any, function: str, argument: str = "'dtype'") -> dtype | None:
    """Return the dtype that a `dtype=` argument (a dtype, a Python type, None) means; TypeError for anything else."""
    if dt is None or dt.__class__ is dtype:
        return dt
    if dt.__class__ is type and dt in _PYTHON:
        return _PYTHON[dt]
    if isinstance(dt, foreign):
        raise NotImplementedError(f"{function}(): there are no tensors of {dt} here")
    raise TypeError(
        f"{function}(): argument {argument} must be torch.dtype, not {type(dt).__name__}"
    )


def required(dt: Any, function: str, argument: str = "'dtype'") -> dtype:
    """Return the dtype that an argument means, as `asked` does; TypeError for None, too."""
    found = asked(dt, function, argument)
    if found is None:
        raise TypeError(f"{function}(): argument {argument} must be torch.dtype, not NoneType")
    return found


# -- Python scalars and the default type ----------------------------------------------------------

_default: dtype = float32
DEFAULT_CHANGED: list[Callable[[], None]] = []  # called when the default type has changed


def get_default_dtype() -> dtype:
    """Return the type of tensors made from Python floats."""
    return _default


def get_default_complex_dtype() -> dtype:
    """Return the type of tensors made from Python complex numbers."""
    return _COMPLEX[_default]


def set_default_dtype(d: dtype) -> None:
    """Set the type of tensors made from Python floats; TypeError unless it is a floating type."""
    global _default
    if not isinstance(d, dtype):
        raise TypeError(
            "invalid dtype object: only floating-point types are supported as the default type"
        )
    if not d.is_floating_point or isinstance(d, foreign):
        raise TypeError("only floating-point types are supported as the default type")
    if d is not _default:
        _default = d
        for tell in DEFAULT_CHANGED:
            tell()


def scalar_dtype(value: Any) -> dtype:
    """Return the type a Python or numpy scalar takes part in promotion with.

    TypeError for anything else.
    """
    kind = type(value)
    if kind is pyfloat:
        return _default
    if kind is pyint:
        return int64
    if kind is pybool or isinstance(value, np.bool_):
        return bool
    if kind is complex:
        return _COMPLEX[_default]
    if isinstance(value, (pyint, np.integer)):
        return int64
    if isinstance(value, (pyfloat, np.floating)):
        return _default
    if isinstance(value, (complex, np.complexfloating)):
        return _COMPLEX[_default]
    raise TypeError(f"expected a number, got {kind.__name__}")


def nearest(value: Any, d: dtype) -> pyfloat:
    """Return the number that `value`, a real one, becomes in a 16-bit floating type."""
    return _rounded(value, d) if value else pyfloat(value)  # a cache takes 0.0 for -0.0


@lru_cache(maxsize=1024)
def _rounded(value: pyfloat, d: dtype) -> pyfloat:
    with np.errstate(over="ignore"):
        if d is float16:
            return pyfloat(np.float16(value))
        bits = pyint(np.float32(value).view(np.uint32))
    kept = bits + 0x7FFF + ((bits >> 16) & 1) if value == value else bits
    return pyfloat(np.uint32(kept & 0xFFFF0000).view(np.float32))


def from_numpy(kind: Any) -> dtype:
    """Return the type of a numpy dtype (either byte order); TypeError when there is none."""
    found = _BY_NUMPY.get(kind)
    if found is None:
        kind = np.dtype(kind)
        found = _BY_NUMPY.get(kind.newbyteorder("="))
    if found is None:
        raise TypeError(
            f"can't convert np.ndarray of type {kind.type.__module__}.{kind.type.__name__}. The only supported types are: float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool."
        )
    return found


def to_real(d: dtype) -> dtype:
    """Return the type of one component of `d`."""
    return d.to_real()


def to_complex(d: dtype) -> dtype:
    """Return the complex type that holds the floating type `d`.

    RuntimeError for bool and integers.
    """
    return d.to_complex()


# -- limits ---------------------------------------------------------------------------------------

_FLOAT_LIMITS = {  # (max, min, eps, tiny) of types that do not follow IEEE 754's scheme
    "float8_e4m3fn": (448.0, -448.0, 0.125, 2.0**-6),
    "float8_e4m3fnuz": (240.0, -240.0, 0.125, 2.0**-7),
    "float8_e5m2": (57344.0, -57344.0, 0.25, 2.0**-14),
    "float8_e5m2fnuz": (57344.0, -57344.0, 0.125, 2.0**-15),
    "float8_e8m0fnu": (2.0**127, 2.0**-127, 1.0, 2.0**-127),
}
_FLOAT_SHAPE = {  # (largest exponent, mantissa bits, decimal digits)
    float16: (15, 10, 3),
    bfloat16: (127, 7, 2),
    float32: (127, 23, 6),
    float64: (1023, 52, 15),
}


class finfo:
    """Limits of a floating type, or of the components of a complex one.

    Default: the default dtype.
    """

    __slots__ = ("bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny")
    __module__ = "torch"

    def __init__(self, type: dtype | None = None) -> None:
        self.min: pyfloat
        if isinstance(type, foreign) and type.name in _FLOAT_LIMITS:
            d: dtype = type
            high, self.min, eps, tiny = _FLOAT_LIMITS[d.name]
            digits = 0
        else:
            d = _default if type is None else required(type, "finfo", "'type' (position 1)")
            if d.category < FLOATING:
                raise TypeError(
                    "torch.finfo() requires a floating point input type. Use torch.iinfo to handle "
                    "'torch.finfo'"
                )
            d = d.to_real()
            exponent, mantissa, digits = _FLOAT_SHAPE[d]
            eps, tiny = 2.0**-mantissa, 2.0 ** (1 - exponent)
            high = (2.0 - eps) * 2.0**exponent
            self.min = -high
        self.bits: pyint = d.itemsize * 8
        self.dtype: str = d.name
        self.eps: pyfloat = eps
        self.max: pyfloat = high
        self.tiny: pyfloat = tiny
        self.smallest_normal: pyfloat = tiny
        self.resolution: pyfloat = pyfloat(f"1e-{digits}")

    def __repr__(self) -> str:
        return f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"

    def __eq__(self, other: object) -> pybool:
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self) -> pyint:
        return hash(("finfo", self.dtype))


class iinfo:
    """Limits of an integer type."""

    __slots__ = ("bits", "dtype", "max", "min")
    __module__ = "torch"

    def __init__(self, type: dtype) -> None:
        d = required(type, "iinfo", "'type' (position 1)")
        if d is bool:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        if d.category != INTEGRAL:
            raise TypeError(
                "torch.iinfo() requires an integer input type. Use torch.finfo to handle "
                "'torch.iinfo'"
            )
        self.bits: pyint = d.itemsize * 8
        self.dtype: str = d.name
        self.max: pyint = 2 ** (self.bits - d.is_signed) - 1
        self.min: pyint = -self.max - 1 if d.is_signed else 0

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"

    def __eq__(self, other: object) -> pybool:
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self) -> pyint:
        return hash(("iinfo", self.dtype))


def filler(d: dtype) -> Any:
    """Return the value that makes reads of uninitialised memory noticeable: nan, True or the largest integer."""
    if d.category >= 2:
        return math.nan
    return True if d.category == 0 else iinfo(d).max
