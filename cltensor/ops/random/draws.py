"""Random tensors: how bits become numbers of a distribution, and the functions that make new tensors of them.

A random tensor is a pointwise expression over the linear index of its elements, with seed and counter as kernel arguments:
it is lazy and fuses as any other. Where bits come from is `generator.py`; tensors whose parameters are tensors are in
`parametrised.py` and `gamma.py`, fillers of existing tensors in `fill.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ... import config, dtypes
from ...codegen import drawn as drawn_ahead
from ...codegen.pointwise import IDENTITY, PointOp
from ...dtypes import dtype as DType
from ...layouts import check_shape, numel
from ...lazy import Expr, Scalar
from ...lazy.tree import Prepared
from ...runtime import ACTIVE, Buffer, device, get_backend
from ...size import Size
from ...storage import new_storage
from .. import arguments, core, formats, writes
from ..convert import place
from ..core import Tensor
from ..elsewhere import need_strided
from ..operands import check_tensor
from ..row import FUNCTIONS, public, titled
from ..shape import sizes
from .generator import Generator, choose, default_for

Draw = tuple[int, int]

_BITS = PointOp("philox", drawn_ahead.BITS)
_MORE = PointOp("philox2", drawn_ahead.MORE)
_WORD = PointOp("philox_word", drawn_ahead.WORD)
_MASKED = PointOp("bits", "x & y")
# Formulas that codegen/drawn.py recognises: each reads one 32-bit half of a drawn word.
_LOW32 = PointOp("low32", drawn_ahead.LOWER)
_TOP24 = PointOp("top24", drawn_ahead.UPPER)
_TOP53 = PointOp("top53", "shr(x, 11) & 9007199254740991")
_UNIFORM = PointOp("uniform", "x * y * (w - z) + z")
# Box-Muller: x / 2**bits is uniform in (0, 1), y in [-1/4, 1/4] is a fraction of a turn. Its sine
# is a Chebyshev fit, relative error 3e-11 and 5e-22, because the builtins must reduce any argument
# and take longer than all the rest.
_TURN = PointOp("turn", "0.25 - abs(x * y - 0.5)")
_NORMAL = PointOp(
    "normal",
    "sqrt(-2.0 * unit_log((x + 0.5) * 2.3283064365386963e-10)) * y * (6.283185307 + y * y * "
    "(-41.34170212 + y * y * (81.60522621 + y * y * (-76.70428132 + y * y * (42.00980573 - y * y "
    "* 14.39413537))))) * w + z",
)
_NORMAL64 = PointOp(
    "normal",
    "sqrt(-2.0 * log((x + 0.5) * 1.1102230246251565e-16)) * y * (6.28318530717958648 + y * y * (-41.3417022403997602 + y * y * (81.605249276075051 + y * y * (-76.7058597530607235 + y * y * (42.0586939448287363 + y * y * (-15.0946425727035869 + y * y * (3.81995243491059147 + y * y * (-0.718118922583835631 + y * y * (0.104183096781898739 - y * y * 0.0116831038978907122))))))))) * w + z",
)
_BELOW32 = PointOp("below", "shr(shr(x, 32) * y + shr((x & 4294967295) * y, 32), 32) + z")
_BELOW64 = PointOp("below", "philox_below(x, y) + z")
_SHIFTED = PointOp("shift", "x + y")
_BERNOULLI = PointOp("bernoulli", "(x & 9007199254740991) < y")
_BERNOULLI_BY = PointOp("bernoulli", "x < y")
# Never 0 and never 1, so that its logarithm is neither 0 nor infinite.
_OPEN = PointOp("open", "min((x + 0.5) * 2.3283064365386963e-10, 0.9999999403953552)")
_OPEN64 = PointOp("open", "(x + 0.5) * 1.1102230246251565e-16")
_EXPONENTIAL = PointOp("exponential", "-log(x) / y")
_CAUCHY = PointOp("cauchy", "y + z * tan(pi * (x - 0.5))")
_EXP = PointOp("exp", "exp(x)")
_GEOMETRIC = PointOp("geometric", "max(ceil(log(x) / y), 1)")
_PRECISION = {dtypes.float16: 11, dtypes.bfloat16: 8, dtypes.float32: 24, dtypes.float64: 53}


# ---------------------------------------------------------------------- expressions


def _bits(shape: Size, draw: Draw, op: PointOp = _BITS) -> Expr:
    """64 random bits per element, as int64."""
    return Expr(
        op,
        dtypes.int64,
        dtypes.int64,
        shape,
        (core.index_expression(shape), Scalar(draw[0]), Scalar(draw[1])),
    )


def _word(shape: Size, draw: Draw) -> Expr:
    """32 random bits per element, as uint32: at half the price where codegen/drawn.py draws them ahead."""
    return Expr(_LOW32, dtypes.int64, dtypes.uint32, shape, (_bits(shape, draw, _WORD),))


def keys(shape: Size, dt: DType, draw: Draw) -> Expr:
    """64 random bits per element, as sort keys. `dt` is there because `drawn` passes it."""
    return _bits(shape, draw)


def wide_of(dt: DType) -> DType:
    """The dtype in which a distribution of dtype `dt` is computed: float64 or float32."""
    return dt if dt is dtypes.float64 else dtypes.float32


def uniform(shape: Size, dt: DType, draw: Draw, low: float = 0.0, high: float = 1.0) -> Expr:
    """Uniform in [low, high), with as many bits as the dtype's mantissa has."""
    bits = _PRECISION[dt]
    if bits == 53:
        word = Expr(_TOP53, dtypes.int64, dtypes.int64, shape, (_bits(shape, draw),))
    else:
        half = _word(shape, draw)
        word = Expr(_MASKED, dtypes.uint32, dtypes.int32, shape, (half, Scalar(2**bits - 1)))
    return Expr(
        _UNIFORM, wide_of(dt), dt, shape, (word, Scalar(2.0**-bits), Scalar(low), Scalar(high))
    )


def normal(shape: Size, dt: DType, draw: Draw, mean: float = 0.0, std: float = 1.0) -> Expr:
    """Normal numbers."""
    i64 = dtypes.int64
    bits = _bits(shape, draw)
    if dt is dtypes.float64:
        radius = Expr(_TOP53, i64, i64, shape, (bits,))
        angle = Expr(_TOP53, i64, i64, shape, (_bits(shape, draw, _MORE),))
        angle = Expr(_TURN, dt, dt, shape, (angle, Scalar(2.0**-53)))
        return Expr(_NORMAL64, dt, dt, shape, (radius, angle, Scalar(mean), Scalar(std)))
    radius = Expr(_LOW32, i64, dtypes.uint32, shape, (bits,))
    angle = Expr(_TOP24, i64, dtypes.int32, shape, (bits,))
    angle = Expr(_TURN, dtypes.float32, dtypes.float32, shape, (angle, Scalar(2.0**-24)))
    return Expr(_NORMAL, dtypes.float32, dt, shape, (radius, angle, Scalar(mean), Scalar(std)))


def integers(shape: Size, dt: DType, draw: Draw, low: int, high: int) -> Expr:
    """Integers in [low, high)."""
    count, u64 = high - low, dtypes.uint64
    bits = _bits(shape, draw)
    whole = dt if dt.category == 1 else dtypes.int64
    if count == 2**64:
        expr = Expr(_SHIFTED, u64, whole, shape, (bits, Scalar(low)))
    else:
        expr = Expr(
            _BELOW32 if count <= 2**32 else _BELOW64,
            u64,
            whole,
            shape,
            (bits, Scalar(count), Scalar(low)),
        )
    return expr if whole is dt else Expr(IDENTITY, dt, dt, shape, (expr,))


def coins(shape: Size, dt: DType, draw: Draw, p: float) -> Expr:
    """1 with probability p, else 0, exact to 53 bits."""
    return Expr(_BERNOULLI, dtypes.int64, dt, shape, (_bits(shape, draw), Scalar(round(p * 2**53))))


def kept(shape: Size, draw: Draw, p: float) -> Expr:
    """True with probability p, exact to 32 bits: even with p = 1, one element in 2**32 is false."""
    limit = Scalar(min(round(p * 2**32), 2**32 - 1))
    return Expr(_BERNOULLI_BY, dtypes.uint32, dtypes.bool, shape, (_word(shape, draw), limit))


def coins_by(p: Tensor, shape: Size, dt: DType, draw: Draw) -> Expr:
    """1 with the probability given per element, else 0."""
    wide = wide_of(p.dtype)
    source = uniform(shape, wide, draw)
    return Expr(_BERNOULLI_BY, wide, dt, shape, (source, core.operand(p, shape)))


def open_unit(shape: Size, dt: DType, draw: Draw) -> Expr:
    """Uniform in (0, 1), both ends left out."""
    if dt is dtypes.float64:
        top = Expr(_TOP53, dtypes.int64, dtypes.int64, shape, (_bits(shape, draw),))
        return Expr(_OPEN64, dt, dt, shape, (top,))
    return Expr(_OPEN, dtypes.float32, dtypes.float32, shape, (_word(shape, draw),))


def exponential(shape: Size, dt: DType, draw: Draw, rate: float) -> Expr:
    """Exponential numbers of a rate."""
    return Expr(_EXPONENTIAL, wide_of(dt), dt, shape, (open_unit(shape, dt, draw), Scalar(rate)))


def cauchy(shape: Size, dt: DType, draw: Draw, median: float, sigma: float) -> Expr:
    """Cauchy numbers."""
    return Expr(
        _CAUCHY, wide_of(dt), dt, shape, (open_unit(shape, dt, draw), Scalar(median), Scalar(sigma))
    )


def log_normal(shape: Size, dt: DType, draw: Draw, mean: float, std: float) -> Expr:
    """Exponentials of normal numbers."""
    wide = wide_of(dt)
    return Expr(_EXP, wide, dt, shape, (normal(shape, wide, draw, mean, std),))


def geometric(shape: Size, dt: DType, draw: Draw, p: float) -> Expr:
    """The number of trials up to the first success of probability p."""
    wide = wide_of(dt)
    inner = Expr(
        _GEOMETRIC, wide, wide, shape, (open_unit(shape, wide, draw), Scalar(math.log1p(-p)))
    )
    return inner if wide is dt else Expr(IDENTITY, dt, dt, shape, (inner,))


# ---------------------------------------------------------------------- making tensors


def drawn(
    make: Callable[..., Expr], shape: Size, dt: DType, dev: device, source: Generator, *params: Any
) -> Tensor:
    """Draw a tensor by one of the expressions above.

    Small draws of a kind seen before are launched at once, by a prepared launch.
    """
    draw = source.take(numel(shape))
    known = _prepared(make, shape, dt, dev, params)
    if known is not None:
        return known.launch(draw)
    return finish(make(shape, dt, draw, *params), dt, shape, dev)


def fill(t: Tensor, make: Callable[..., Expr], source: Generator, *params: Any) -> None:
    """Overwrite a tensor as `drawn` draws one, without a grad node."""
    shape, dt = t.shape, t.dtype
    draw = source.take(numel(shape))
    known = _prepared(make, shape, dt, t.device, params) if writes.is_replaced(t) else None
    if known is not None:
        t._storage.renew(known.run(draw))
    else:
        writes.write(t, make(shape, dt, draw, *params))


def _prepared(
    make: Callable[..., Expr], shape: Size, dt: DType, dev: device, params: tuple
) -> _Known | None:
    """Return a draw's kind with its prepared launch; None for a large draw, or one of a kind not seen before."""
    if not 0 < numel(shape) <= _SMALL or ACTIVE.recorder is not None or config.CONFIG.eager:
        return None
    key = (make, shape, dt, dev, repr(params))
    known = _known.get(key)
    if known is not None:
        return known
    if len(_known) >= _MOST:
        _known.clear()
    # A kind is prepared at its second draw, as most kinds are drawn once. Without a thread team a launch costs more,
    # and the draw stays pending, so that fusion spares the launch.
    again = key in _known and get_backend(dev).team is not None
    _known[key] = made = _Known(make, shape, dt, dev, params) if again else None
    return made


# Elements. For larger draws, fusing the draw with what reads it saves more time than a prepared launch saves in Python.
_SMALL = 1 << 14
_MOST = 1024  # kinds of draws that are remembered
_SEED, _FIRST = object(), object()


class _Known:
    """A kind of draw (distribution, shape, dtype, device, parameters) with its prepared launch: only seed and counter
    vary.
    """

    def __init__(
        self, make: Callable[..., Expr], shape: Size, dt: DType, dev: device, params: tuple
    ) -> None:
        self._backend, self._shape, self._dtype, self._device = get_backend(dev), shape, dt, dev
        expr = make(shape, dt, (_SEED, _FIRST), *params)
        self._nbytes = numel(shape) * dt.itemsize
        self._prepared = Prepared(new_storage(self._backend, expr, self._nbytes))

    def run(self, draw: Draw) -> Buffer:
        """Return a new buffer with the numbers of a draw."""
        return self._prepared.run(
            [
                draw[0] if v is _SEED else draw[1] if v is _FIRST else v
                for v in self._prepared.numbers
            ]
        )

    def launch(self, draw: Draw) -> Tensor:
        storage = new_storage(self._backend, self.run(draw), self._nbytes)
        return core.make(storage, self._shape, self._dtype, self._device)


_known: dict[tuple, _Known | None] = {}


def finish(expr: Expr, dt: DType, shape: Size, dev: device) -> Tensor:
    """Make the tensor of an expression; a complex one from an expression of its components."""
    get_backend(dev).require(dt)
    t = core.pending(expr, dev)
    return t if t.dtype is dt else core.make(t._storage, shape, dt, dev)


def floating(
    kind: str, function: str, shape: Size, dt: DType, *params: float
) -> tuple[Callable[..., Expr], Size, DType, tuple[float, ...]]:
    """Return the expression of a floating distribution with its shape, dtype and parameters; complex dtypes get one over
    their components.
    """
    if dt.category < 2:
        if kind == "normal" and not numel(shape):  # an empty draw does not check the dtype
            return _none, shape, dt, ()
        raise NotImplementedError(f"\"{function}\" not implemented for '{dt.scalar_name}'")
    make: Callable[..., Expr] = uniform if kind == "uniform" else normal
    if dt.is_complex:
        shape, dt = Size((*shape, 2)), dt.to_real()
        # The variance is that of the complex number, of which each component has half.
        if kind == "normal":
            params = tuple(
                v * math.sqrt(0.5) if i else v for i, v in enumerate(params or (0.0, 1.0))
            )
    return make, shape, dt, params


def _none(shape: Size, dt: DType, draw: Draw) -> Expr:
    return Expr(IDENTITY, dt, dt, shape, (normal(shape, dtypes.float32, draw),))


def drawn_floating(
    kind: str, function: str, shape: Size, dt: DType, dev: device, source: Generator, *params: float
) -> Tensor:
    """Draw a tensor of a floating distribution, as `drawn` does."""
    make, inner, part, given = floating(kind, function, shape, dt, *params)
    if part is dt:
        return drawn(make, shape, dt, dev, source, *given)
    return finish(make(inner, part, source.take(numel(inner)), *given), dt, shape, dev)


def parse_size(function: str, args: tuple, size: Any = None) -> Size:
    """Accept `size` as ints, one sequence, or by name."""
    if not args:
        if size is None:
            raise TypeError(f'{function}() missing 1 required positional arguments: "size"')
        if not isinstance(size, tuple | list):
            raise TypeError(
                f"{function}(): argument 'size' must be tuple of ints, not {type(size).__name__}"
            )
        args = (size,)
    elif size is not None:
        raise TypeError(f"{function}() got multiple values for argument 'size'")
    elif not (
        isinstance(args[0], int | tuple | list)
        or core.is_tensor(args[0])
        or hasattr(args[0], "__index__")
    ):
        raise TypeError(
            f"{function}(): argument 'size' (position 1) must be tuple of ints, not "
            f"{type(args[0]).__name__}"
        )
    return Size(check_shape(sizes(function, args, "size")))


def hand_over(t: Tensor, out: Tensor | None, requires_grad: bool) -> Tensor:
    if out is not None:
        if out.shape != t.shape:
            out.resize_(t.shape)
        writes.check_overlap(out, ())
        writes.overwrite(out, t, fresh=True)
        t = out
    if requires_grad:
        core.ask_gradient(t)
    return t


# What fills the memory of these in torch, and what its errors name.
_FILLS = {"rand": "uniform_", "randn": "normal_", "normal": "normal_", "randint": "random_.from", "randperm": "randperm.generator_out"}  # fmt: skip


def wanted(
    function: str, out: Tensor | None, dt: Any, layout: Any, dev: Any, usual: DType | None = None
) -> tuple[DType, device]:
    """Return dtype and device of a draw: those of `out`, which must agree with any asked for; else those asked for;
    else the defaults.
    """
    dt = None if dt is None else dtypes.asked(dt, function)
    if out is None:
        need_strided(_FILLS[function], layout)
    where = None if out is not None and dev is None else place(dev)
    if out is not None:
        return writes.dtype_into(out, dt, layout, where), out.device
    return dt or usual or dtypes.get_default_dtype(), where  # type: ignore[return-value]


def _factory(function: str, kind: str, kernel: str, doc: str) -> None:
    def draw(shape: Size, dt: DType, dev: device, source: Generator) -> Tensor:
        return drawn_floating(kind, kernel, shape, dt, dev, source)

    def make(
        *size: Any,
        generator: Generator | None = None,
        out: Tensor | None = None,
        dtype: DType | None = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
        **named: Any,
    ) -> Tensor:
        try:
            shape = parse_size(function, size, **named)
        except Exception:
            if (error := arguments.flaw_of(make, function, False, size, named)) is not None:
                raise error from None
            raise
        dt, dev = wanted(function, out, dtype, layout, device)
        return hand_over(draw(shape, dt, dev, choose(generator, dev)), out, requires_grad)

    def like(
        input: Tensor,
        *,
        generator: Generator | None = None,
        dtype: DType | None = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
        memory_format: Any = None,
    ) -> Tensor:
        return _alike(
            input,
            draw,
            function + "_like",
            dtype,
            layout,
            device,
            generator,
            requires_grad,
            memory_format,
        )

    for fn, name, text in (
        (make, function, doc),
        (like, function + "_like", doc + " Shape, dtype and device are the input's unless given."),
    ):
        titled(fn, name, text)
        public(name, method=False)(fn)


def _alike(
    input: Tensor,
    draw: Callable[[Size, DType, device, Generator], Tensor],
    function: str,
    dt: DType | None,
    layout: Any,
    dev: Any,
    generator: Generator | None,
    requires_grad: bool,
    memory_format: Any,
) -> Tensor:
    check_tensor(function, "input", 1, input)
    need_strided("empty_strided", layout)
    dt = dtypes.asked(dt, function) or input.dtype
    where = input.device if dev is None else place(dev)
    shape = Size(input.shape)
    t = draw(shape, dt, where, choose(generator, where))
    strides = formats.strides_like(function, input, memory_format)
    if strides is not None:
        t = core.make(t._storage, shape, dt, where, strides, 0)
    return hand_over(t, None, requires_grad)


_factory("rand", "uniform", "check_uniform_bounds", "Make a tensor of numbers uniform in [0, 1).")
_factory(
    "randn",
    "normal",
    "normal_kernel_cpu",
    "Make a tensor of normal numbers of mean 0 and variance 1.",
)
rand, randn, rand_like, randn_like = (
    FUNCTIONS[n] for n in ("rand", "randn", "rand_like", "randn_like")
)

_C_NAMES = {
    "Byte": "unsigned char",
    "Char": "signed char",
    "Short": "short",
    "Int": "int",
    "Long": "int64_t",
    "Bool": "bool",
    "Half": "at::Half",
    "BFloat16": "at::BFloat16",
    "Float": "float",
    "Double": "double",
    "UInt16": "unsigned short",
    "UInt32": "unsigned int",
    "UInt64": "uint64_t",
}


def check_range(dt: DType, low: int, high: int) -> None:
    """Raise torch's errors for an integer range that is empty or does not fit the dtype."""
    if dt.is_complex:
        raise RuntimeError(
            "check_random_bounds handles only integral, floating-point and boolean types"
        )
    if low >= high:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )
    if dt.category < 2:
        info = dtypes.iinfo(dt) if dt.category else None
        lowest, highest = (info.min, info.max) if info else (0, 1)
        for name, value in (("from", low), ("to - 1", high - 1)):
            if not lowest <= value <= highest:
                raise RuntimeError(f"{name} is out of bounds for {_C_NAMES[dt.scalar_name]}")


def whole_number(function: str, name: str, value: Any, position: int) -> int:
    if core.is_tensor(value) and value.numel() == 1 and value.dtype.category < 2:
        return int(value)
    if isinstance(value, bool | float | complex) or not hasattr(value, "__index__"):
        raise TypeError(
            f"{function}(): argument '{name}' (position {position}) must be int, not "
            f"{type(value).__name__}"
        )
    return value.__index__()


@public(method=False)
def randint(
    *args: Any,
    low: Any = None,
    high: Any = None,
    size: Any = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Make a tensor of integers uniform in [low, high): `randint(high, size)` or `randint(low,
    high, size)`.

    RuntimeError for an empty range or one that the dtype cannot hold.
    """
    given = list(args)
    if given and isinstance(given[-1], tuple | list) and size is None:
        size = given.pop()
    if len(given) == 2:
        low, high = given
    elif len(given) == 1:
        low, high = (low, given[0]) if high is None else (given[0], high)
    if high is None or size is None or len(given) > 2:
        raise TypeError(
            "randint() received an invalid combination of arguments: expected (int high, tuple "
            "of ints size) or (int low, int high, tuple of ints size)"
        )
    low = 0 if low is None else whole_number("randint", "low", low, 1)
    high = whole_number("randint", "high", high, len(given) or 1)
    shape = parse_size("randint", (), size)
    dt, dev = wanted("randint", out, dtype, layout, device, dtypes.int64)
    check_range(dt, low, high)
    made = drawn(integers, shape, dt, dev, choose(generator, dev), low, high)
    return hand_over(made, out, requires_grad)


@public(method=False)
def randint_like(
    input: Tensor,
    *args: Any,
    low: Any = None,
    high: Any = None,
    generator: Generator | None = None,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Make a tensor of the input's shape of integers uniform in [low, high): `(input, high)` or
    `(input, low, high)`."""
    if len(args) == 2:
        low, high = args
    elif len(args) == 1:
        low, high = (low, args[0]) if high is None else (args[0], high)
    if high is None:
        raise TypeError('randint_like() missing 1 required positional arguments: "high"')
    first = 0 if low is None else whole_number("randint_like", "low", low, 2)
    last = whole_number("randint_like", "high", high, 2)

    def draw(shape: Size, dt: DType, dev: Any, source: Generator) -> Tensor:
        check_range(dt, first, last)
        return drawn(integers, shape, dt, dev, source, first, last)

    return _alike(
        input, draw, "randint_like", dtype, layout, device, generator, requires_grad, memory_format
    )


def keep_mask(shape: Sequence[int], keep: float, dev: device) -> Tensor:
    """Make a bool tensor whose elements are true with probability `keep`, below 1: what dropout multiplies by."""
    size = Size(shape)
    return core.pending(kept(size, default_for(dev).take(numel(size)), keep), dev)
