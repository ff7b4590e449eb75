"""Fourier transforms as ops: arguments, normalization, gradients, and lengths with large prime factors (Bluestein's way).

Three differentiable ops carry everything: complex to complex, real to (half) complex, half complex to real. The kernels of smooth
lengths are codegen/fft/'s; this module knows no schedule.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import dtypes, layouts
from ..autograd import record as graph
from ..autograd.mode import unrecorded
from ..codegen.fft import dims as family
from ..codegen.fft import lengths, passes, tables
from ..codegen.fft.dims import Step
from ..codegen.operand import Operand
from ..dtypes import dtype
from ..runtime import Backend, get_backend
from . import core, writes
from .convert import cast
from .core import Tensor, is_tensor
from .dims import whole
from .join import cat
from .nn.padding import constant_pad
from .operands import check_tensor
from .parts import slice_dim
from .reducing import positions
from .refusals import no_kernel
from .replay import Replayed
from .row import FUNCTIONS, titled
from .selection import where
from .turns import flip, roll

FFT: dict[str, Any] = {}
Dims = tuple[int, ...]


# ------------------------------------------------------------------------------------------- one line


def _along(x: Tensor, *steps: Step) -> Tensor:
    """Transform along one dim after the other, without history."""
    dt = x.dtype.to_complex()
    backend = get_backend(x.device)
    if all(family.takes(backend, dt, step) for step in steps):
        return _transformed((x,), steps)[0]
    for step in steps:
        direct = family.takes(backend, dt, step)
        x = _transformed((x,), (step,))[0] if direct else _whole(x, step)
    return x


@Replayed.of_memory
def _transformed(xs: Sequence[Tensor], steps: tuple[Step, ...]) -> list[Tensor]:
    x, *window = xs
    backend = get_backend(x.device)
    with backend.lock:
        operands = [core.kernel_operand(t) for t in (x, *window)]
        found = family.transforms(backend, operands[0], steps, *operands[1:])
    return [core.result(found, x.device)]


def windowed(frames: Tensor, window: Tensor, scale: float) -> Tensor | None:
    """Return the half spectrum of real `frames` (..., n) times `window` (n,), without history.

    None where no kernel multiplies while it transforms, so that the product must be computed first.
    """
    if frames.dtype.is_complex or frames.dtype is not window.dtype:
        return None
    backend, n = get_backend(frames.device), window.shape[0]
    given = supported(frames).detach(), window.detach()
    with backend.lock:
        frames_there, window_there = map(core.kernel_operand, given)
        if not passes.windows(backend, frames_there, n, window_there):
            return None
    return _transformed(given, (Step(frames.ndim - 1, n, True, scale, half=True),))[0]


def _whole(x: Tensor, step: Step) -> Tensor:
    """Do what `_along` does, by a complex transform of full length."""
    dim, n = step.dim, step.n
    if step.real:
        head = slice_dim(x, dim, 0, n // 2 + 1)
        x = cat([head, flip(slice_dim(head, dim, 1, (n + 1) // 2), dim).conj()], dim)
    plain = step._replace(half=False, real=False)
    y = _along(x, plain) if lengths.is_smooth(n) else _bluestein(x, plain)
    if step.half:
        y = slice_dim(y, dim, 0, step.results()).contiguous()
    return FUNCTIONS["real"](y).contiguous() if step.real else y


@functools.lru_cache(maxsize=8)
def _chirp(backend: Backend, dt: dtype, n: int, forward: bool) -> tuple[Operand, Operand]:
    """Return the chirp exp(-pi i k^2 / n) for 0 <= k < n, and the transform of its conjugate, mirrored around 0."""
    k = np.arange(n, dtype=np.int64)
    chirp = tables.unit_roots(k * k % (2 * n), 2 * n)
    chirp = chirp if forward else chirp.conj()
    around = np.zeros(lengths.next_smooth(2 * n - 1), np.complex128)
    around[:n] = chirp.conj()
    around[len(around) - n + 1 :] = around[n - 1 : 0 : -1]
    there = tables.table(backend, dt, around)
    spectrum = family.transforms(backend, there, [Step(0, len(around), True, 1.0)])
    return tables.table(backend, dt, chirp), spectrum


def _bluestein(x: Tensor, step: Step) -> Tensor:
    """Transform along a dim of any length n as a circular convolution with a chirp, of smooth length."""
    dim, n, forward, scale, *_ = step
    backend = get_backend(x.device)
    along = [-1 if d == dim else 1 for d in range(x.ndim)]
    with backend.lock:
        chirps = _chirp(backend, x.dtype.to_complex(), n, forward)
    chirp, spectrum = (core.result(t, x.device).reshape(along) for t in chirps)
    m = spectrum.shape[dim]
    y = _resize(x * chirp, dim, m)
    y = _along(y, Step(dim, m, True, 1.0)) * spectrum
    y = _along(y, Step(dim, m, False, scale / m))
    return (slice_dim(y, dim, 0, n) * chirp).contiguous()


def _resize(x: Tensor, dim: int, n: int) -> Tensor:
    """Truncate a dim to n elements, or pad it with zeros at its end."""
    have = x.shape[dim]
    if have > n:
        return slice_dim(x, dim, 0, n)
    return constant_pad(x, [0, 0] * (x.ndim - 1 - dim) + [0, n - have]) if have < n else x


# ------------------------------------------------------------------------------------------- differentiable ops


def supported(x: Tensor) -> Tensor:
    """Return the tensor; RuntimeError in torch's words for numbers of 16 bits."""
    if x.dtype is dtypes.complex32 or (x.dtype.category == 2 and x.dtype.itemsize == 2):
        kind = "BFloat16" if x.dtype.name == "bfloat16" else "Half"
        raise RuntimeError(f"MKL FFT doesn't support tensors of type: {kind}")
    return x


def _steps(x: Tensor, over: Dims, scale: float, forward: bool) -> list[Step]:
    """Return the steps of a complex transform over some dims, the last one first; the last step scales."""
    last = len(over) - 1
    return [
        Step(d, x.shape[d], forward, scale if i == last else 1.0)
        for i, d in enumerate(reversed(over))
    ]


def c2c(x: Tensor, over: Dims, scale: float, forward: bool) -> Tensor:
    """Transform complex numbers over some dims, times `scale`."""
    y = supported(x).detach()
    with unrecorded():
        y = _along(y, *_steps(y, over, scale, forward))
    if graph.needs_grad(x):
        saved = {"dim": over, "normalization": scale, "forward": forward}
        graph.record("FftC2CBackward0", (x,), y, _c2c_back, saved)
    return y


def _c2c_back(ctx: Any, g: Tensor) -> Tensor:
    return c2c(g, ctx.dim, ctx.normalization, not ctx.forward)


def r2c(x: Tensor, over: Dims, scale: float, onesided: bool) -> Tensor:
    """Transform real numbers forward over some dims; `onesided` keeps the first half of the last one."""
    first, *rest = _steps(x, over, scale, True)
    with unrecorded():
        y = _along(x.detach(), first._replace(half=onesided), *rest)
    if graph.needs_grad(x):
        saved = {"dim": over, "normalization": scale, "onesided": onesided}
        graph.record("FftR2CBackward0", (x,), y, _r2c_back, saved)
    return y


def _weighted(half: Tensor, dim: int, n: int, inner: float) -> Tensor:
    """Multiply by `inner` the elements of a half spectrum that stand for a conjugate pair of the full one."""
    k = positions(half.shape[dim], dim, half.ndim, half.device)
    return half * where((k == 0) | (k * 2 == n), 1.0, inner)


def _r2c_back(ctx: Any, g: Tensor) -> Tensor:
    if not ctx.onesided:
        return FUNCTIONS["real"](c2c(g, ctx.dim, ctx.normalization, False))
    last = ctx.dim[-1]
    n = ctx.shapes[0][last]
    return c2r(_weighted(g, last, n, 0.5), ctx.dim, ctx.normalization, n)


def c2r(x: Tensor, over: Dims, scale: float, n: int) -> Tensor:
    """Transform a half spectrum back over some dims into real numbers; the last one becomes n long."""
    y = supported(x).detach()
    last = Step(over[-1], n, False, scale, real=True)
    with unrecorded():
        y = _along(y, *_steps(y, over[:-1], 1.0, False), last)
    if graph.needs_grad(x):
        saved = {"dim": over, "normalization": scale, "last_dim_size": n}
        graph.record("FftC2RBackward0", (x,), y, _c2r_back, saved)
    return y


def _c2r_back(ctx: Any, g: Tensor) -> Tensor:
    y = r2c(g, ctx.dim, ctx.normalization, True)
    return _weighted(y, ctx.dim[-1], ctx.last_dim_size, 2.0)


# ------------------------------------------------------------------------------------------- arguments


def _tensor(name: str, x: Any) -> Tensor:
    check_tensor(f"fft_{name}", "input", 1, x)
    return x


def _promoted(x: Tensor, complex_too: bool = False) -> Tensor:
    """Convert integers to the default dtype, and real numbers to complex ones if asked for."""
    if x.dtype.name in ("float16", "bfloat16"):
        raise RuntimeError(f"Unsupported dtype {x.dtype.scalar_name}")
    dt = x.dtype if x.dtype.category >= 2 else dtypes.get_default_dtype()
    if complex_too:
        dt = dt.to_complex()
    return x if x.dtype is dt else cast(x, dt)


def _one_dim(x: Tensor, dim: int) -> int:
    if not x.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return layouts.wrap_dim(dim, x.ndim)


def _points(n: int) -> int:
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")
    return n


def _factor(norm: Any, forward: bool, count: int) -> float:
    """Return the factor by which `norm` scales a transform of `count` numbers."""
    if norm not in (None, "forward", "backward", "ortho"):
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    if norm == "ortho":
        return 1 / math.sqrt(count)
    return 1 / count if forward == (norm == "forward") else 1.0


def _deliver(name: str, y: Tensor, out: Tensor | None, x: Tensor) -> Tensor:
    """Write into `out`, which must be complex or real as the result is."""
    if out is None:
        return y
    if not is_tensor(out):
        raise TypeError(f"fft_{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    if out.dtype.is_complex is not y.dtype.is_complex or out.dtype.category < 2:
        kind = "complex" if y.dtype.is_complex else "floating point"
        raise RuntimeError(
            f"{name} expects a {kind} output tensor, but got {out.dtype.scalar_name}"
        )
    return writes.deliver(y, out, _step(name, x), (x,))


def _step(name: str, x: Tensor) -> str:
    """Return the function that torch's text names for an `out=` where `x` requires grad: the last step of `name`."""
    if name.startswith(("hfft", "irfft")):
        return "_fft_c2r"
    if name in ("ifft", "ihfft") and not x.dtype.is_complex:
        return "conj_physical"
    real = name.startswith("rfft") or (name == "fft" and not x.dtype.is_complex)
    return "_fft_r2c" if real else "_fft_c2c"


class Shape(NamedTuple):
    """Dims of an n-dimensional transform and the sizes they are brought to."""

    dims: Dims
    sizes: Dims


def _numbers(name: str, argument: str, values: Any) -> Dims:
    if hasattr(values, "__index__") and not isinstance(values, bool):
        return (values.__index__(),)
    if not isinstance(values, tuple | list) and not hasattr(values, "__iter__"):
        raise TypeError(
            f"fft_{name}(): argument '{argument}' must be tuple of ints, not {type(values).__name__}"
        )
    return tuple(whole(f"fft_{name}", argument, v) for v in values)


def _shape(name: str, x: Tensor, s: Any, dim: Any) -> Shape:
    """Match `s` and `dim` as torch does: all dims, or the last ones, where `dim` is None; -1 keeps a size."""
    wanted = None if s is None else _numbers(name, "s", s)
    if dim is not None:
        given = _numbers(name, "dim", dim)
        dims = tuple(_one_dim(x, d) for d in given)
        if len(set(dims)) < len(dims):
            raise RuntimeError("FFT dims must be unique")
        if wanted is not None and len(wanted) != len(dims):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
    elif wanted is not None:
        if len(wanted) > x.ndim:
            raise RuntimeError(
                f"Got shape with {len(wanted)} values but input tensor only has {x.ndim} dimensions."
            )
        dims = tuple(range(x.ndim - len(wanted), x.ndim))
    else:
        dims = tuple(range(x.ndim))
    asked = wanted or (-1,) * len(dims)
    sizes = [x.shape[d] if n == -1 else n for d, n in zip(dims, asked, strict=True)]
    return Shape(dims, tuple(_points(n) for n in sizes))


def _some_dims(name: str, shape: Shape) -> Shape:
    if not shape.dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    return shape


def _half_shape(name: str, x: Tensor, s: Any, dim: Any) -> tuple[Shape, int]:
    """Return the shape of a spectrum whose last dim is a half one, and the size that dim is transformed to."""
    shape = _some_dims(name, _shape(name, x, s, dim))
    wanted = None if s is None else _numbers(name, "s", s)
    n = 2 * (x.shape[shape.dims[-1]] - 1) if not wanted or wanted[-1] == -1 else shape.sizes[-1]
    _points(n)
    return Shape(shape.dims, (*shape.sizes[:-1], n // 2 + 1)), n


def _resized(x: Tensor, shape: Shape) -> Tensor:
    for d, n in zip(*shape, strict=True):
        x = _resize(x, d, n)
    return x


# ------------------------------------------------------------------------------------------- one-dimensional functions


def _export(name: str, help: str, fn: Callable, forward: bool) -> None:
    def function(
        input: Tensor,
        n: int | None = None,
        dim: int = -1,
        norm: str | None = None,
        *,
        out: Tensor | None = None,
    ) -> Tensor:
        n = None if n is None else whole(f"fft_{name}", "n", n)
        x = _tensor(name, input)
        y = fn(name, x, n, whole(f"fft_{name}", "dim", dim), norm, forward)
        return _deliver(name, y, out, x)

    titled(function, f"fft_{name}", help)
    FFT[name] = function


def _whole_1d(name: str, x: Tensor, n: int | None, dim: int, norm: Any, forward: bool) -> Tensor:
    x = _promoted(x)
    d = _one_dim(x, dim)
    n = _points(x.shape[d] if n is None else n)
    scale = _factor(norm, forward, n)
    x = _resize(x, d, n)
    if x.dtype.is_complex:
        return c2c(x, (d,), scale, forward)
    y = r2c(x, (d,), scale, False)
    return y if forward else y.conj()


def _half_1d(name: str, x: Tensor, n: int | None, dim: int, norm: Any, forward: bool) -> Tensor:
    if x.dtype.is_complex:
        raise RuntimeError(f"{name} expects a real input tensor, but got {x.dtype.scalar_name}")
    x = _promoted(x)
    d = _one_dim(x, dim)
    n = _points(x.shape[d] if n is None else n)
    y = r2c(_resize(x, d, n), (d,), _factor(norm, forward, n), True)
    return y if forward else y.conj()


def _real_1d(name: str, x: Tensor, n: int | None, dim: int, norm: Any, forward: bool) -> Tensor:
    x = _promoted(x, True)
    d = _one_dim(x, dim)
    n = _points(2 * (x.shape[d] - 1) if n is None else n)
    scale = _factor(norm, forward, n)
    x = _resize(x, d, n // 2 + 1)
    return c2r(x.conj() if forward else x, (d,), scale, n)


_export(
    "fft",
    "Transform along `dim`, cut or filled up with zeros to n numbers; complex result.",
    _whole_1d,
    True,
)
_export("ifft", "Transform back along `dim`: the inverse of `fft`.", _whole_1d, False)
_export(
    "rfft",
    "The first n // 2 + 1 numbers of the transform of real ones along `dim`.",
    _half_1d,
    True,
)
_export(
    "irfft",
    "Transform n // 2 + 1 numbers back to n real ones: the inverse of `rfft`.",
    _real_1d,
    False,
)
_export(
    "hfft",
    "Transform n // 2 + 1 numbers, half of a Hermitian signal, to a real spectrum.",
    _real_1d,
    True,
)
_export(
    "ihfft",
    "The inverse of `hfft`: half of the Hermitian signal of a real spectrum.",
    _half_1d,
    False,
)


# ------------------------------------------------------------------------------------------- n-dimensional functions


def _export_nd(name: str, help: str, fn: Callable, forward: bool) -> None:
    """Make `<name>n`, over all dims by default, and `<name>2`, over the last two."""

    def make(suffix: str, default: Dims | None) -> Callable:
        def function(
            input: Tensor,
            s: Dims | None = None,
            dim: Dims | None = default,
            norm: str | None = None,
            *,
            out: Tensor | None = None,
        ) -> Tensor:
            x = _tensor(name + suffix, input)
            return _deliver(f"{name}n", fn(f"{name}n", x, s, dim, norm, forward), out, x)

        function.__name__ = function.__qualname__ = f"fft_{name}{suffix}"
        function.__doc__ = help + (" Over the last two dims by default." if default else "")
        return function

    FFT[name + "n"], FFT[name + "2"] = make("n", None), make("2", (-2, -1))


def _whole_nd(name: str, x: Tensor, s: Any, dim: Any, norm: Any, forward: bool) -> Tensor:
    x = _promoted(x, True)
    shape = _shape(name, x, s, dim)
    scale = _factor(norm, forward, math.prod(shape.sizes))
    x = _resized(x, shape)
    return c2c(x, shape.dims, scale, forward) if shape.dims else x.clone()


def _half_nd(name: str, x: Tensor, s: Any, dim: Any, norm: Any, forward: bool) -> Tensor:
    if x.dtype.is_complex and forward:
        raise RuntimeError(
            f"{name} expects a real-valued input tensor, but got {x.dtype.scalar_name}"
        )
    shape = _some_dims(name, _shape(name, x, s, dim))
    if x.dtype.is_complex:
        raise RuntimeError(f"Only supports floating-point dtypes, but found: {x.dtype.scalar_name}")
    x = _resized(_promoted(x), shape)
    scale = _factor(norm, forward, math.prod(shape.sizes))
    if forward:
        return r2c(x, shape.dims, scale, True)
    y = r2c(x, shape.dims[-1:], scale, True).conj()
    return c2c(y, shape.dims[:-1], 1.0, False) if shape.dims[1:] else y


def _real_nd(name: str, x: Tensor, s: Any, dim: Any, norm: Any, forward: bool) -> Tensor:
    shape, n = _half_shape(name, x, s, dim)
    x = _resized(_promoted(x, True), shape)
    scale = _factor(norm, forward, math.prod(shape.sizes[:-1]) * n)
    if not forward:
        return c2r(x, shape.dims, scale, n)
    if shape.dims[1:]:
        x = c2c(x, shape.dims[:-1], 1.0, True)
    return c2r(x.conj(), shape.dims[-1:], scale, n)


_export_nd(
    "fft", "Transform over `dim`, cut or filled up with zeros to the sizes `s`.", _whole_nd, True
)
_export_nd("ifft", "Transform back over `dim`: the inverse of `fftn`.", _whole_nd, False)
_export_nd(
    "rfft", "Transform real numbers over `dim`, of which the last is halved.", _half_nd, True
)
_export_nd("irfft", "Transform back to real numbers: the inverse of `rfftn`.", _real_nd, False)
_export_nd(
    "hfft", "Transform half of a Hermitian signal over `dim` to a real spectrum.", _real_nd, True
)
_export_nd("ihfft", "The inverse of `hfftn`.", _half_nd, False)


# ------------------------------------------------------------------------------------------- frequencies and shifts


def _frequencies(
    name: str,
    n: int,
    d: float,
    count: int,
    wrap: int,
    out: Tensor | None,
    dtype: Any,
    options: dict[str, Any],
) -> Tensor:
    """Return k / (n d) for 0 <= k < `count`; from k = `wrap` on, (k - n) / (n d), the negative frequencies."""
    dt = dtype or (dtypes.get_default_dtype() if out is None else out.dtype)
    if dt.category < 2:
        raise RuntimeError(f"{name} requires a floating point or complex dtype")
    if dt.is_complex:
        raise no_kernel("arange_cpu", dt)
    requires_grad = options.pop("requires_grad", False)
    if out is not None:
        writes.check_out(out, out.dtype, out.device, f"aten::fft_{name}", ())
        k = FUNCTIONS["arange"](count, dtype=dtype, out=out, **options)  # checks the dtype, resizes
    else:
        k = FUNCTIONS["arange"](count, dtype=dt, **options)
    unit = 1 / (n * d) if n * d else math.inf
    value = writes.deliver(where(k >= wrap, k - n, k) * unit, out, f"fft_{name}")
    return value.requires_grad_() if requires_grad else value


def fftfreq(
    n: int, d: float = 1.0, *, out: Tensor | None = None, dtype: Any = None, **options: Any
) -> Tensor:
    """Frequencies of the n results of `fft` for samples `d` apart: 0, 1, …, then the negative ones, over n d."""
    return _frequencies("fftfreq", n, d, n, (n + 1) // 2, out, dtype, options)


def rfftfreq(
    n: int, d: float = 1.0, *, out: Tensor | None = None, dtype: Any = None, **options: Any
) -> Tensor:
    """Frequencies of the n // 2 + 1 results of `rfft` for samples `d` apart."""
    count = n // 2 + 1
    return _frequencies("rfftfreq", n, d, count, count, out, dtype, options)


def _shifted(input: Tensor, dim: Any, amount: Callable[[int], int]) -> Tensor:
    dims: Sequence[int]
    if dim is None:
        dims = range(input.ndim)
    else:
        dims = [layouts.wrap_dim(d, input.ndim) for d in _numbers("fftshift", "dim", dim)]
    return roll(input, [amount(input.shape[d]) for d in dims], list(dims))


def fftshift(input: Tensor, dim: Dims | None = None) -> Tensor:
    """Roll `dim` (all by default) so that frequency 0 comes to the middle."""
    return _shifted(input, dim, lambda n: n // 2)


def ifftshift(input: Tensor, dim: Dims | None = None) -> Tensor:
    """Undo `fftshift`."""
    return _shifted(input, dim, lambda n: (n + 1) // 2)


FFT |= {"fftfreq": fftfreq, "rfftfreq": rfftfreq, "fftshift": fftshift, "ifftshift": ifftshift}
