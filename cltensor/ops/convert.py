"""Copies: between dtypes, devices, layouts and into existing tensors.

Must not know what complex numbers are made of (complex_numbers.py).
"""

from __future__ import annotations

from typing import Any

from .. import dtypes, layouts
from ..autograd import record as graph
from ..autograd import views
from ..autograd.mode import unrecorded
from ..codegen.pointwise import IDENTITY
from ..dtypes import dtype
from ..errors import warn_once
from ..lazy import Expr, Scalar
from ..memory_format import contiguous_format, preserve_format
from ..runtime import default_device, device, get_backend
from ..storage import Storage
from . import core, formats, writes
from .core import NUMBERS, Tensor, is_tensor
from .destination import destination
from .operands import check_tensor
from .row import FUNCTIONS, METHODS, public, titled
from .values import check_value


def canonical(dev: Any) -> device:
    """Return the device that tensors on `dev` carry: with an index, except for cpu.

    Raises for a device that does not exist.
    """
    key = dev if dev.__class__ is device else device(dev)
    found = _canonical.get(key)
    if found is None:
        backend = get_backend(key)
        name = (
            key
            if key.type == "cuda" and key.index is not None
            else device("cuda", 0)
            if key.type == "cuda"
            else backend.device
        )
        found = _canonical[key] = _canonical.setdefault(name, name)
    return found


def place(dev: Any) -> device:
    """Return the device that a `device=` argument names; None is the default one."""
    if dev is None:
        dev = default_device()
    elif dev.__class__ is int:
        dev = f"cuda:{dev}"
    return canonical(dev)


def wide(x: Tensor) -> Tensor:
    """Return a tensor of 16-bit floats as float32; any other tensor as it is."""
    return x.float() if x.dtype.itemsize == 2 else x


_canonical: dict[device, device] = {}


def _same_gradient(ctx: Any, g: Tensor) -> Tensor:
    return g


def cast(x: Tensor, dt: dtype) -> Tensor:
    """Return the tensor converted to another dtype, lazily; from complex to real the real part is kept, with a warning."""
    if x.dtype.is_complex and dt.category in (1, 2):
        warn_once("Casting complex values to real discards the imaginary part")
    out = _copied(x, dt, None if x._contig else formats.strides_like("to", x, None))
    if graph.needs_grad(x):
        graph.record("ToCopyBackward0", (x,), out, _same_gradient)
    return out


def _copied(x: Tensor, dt: dtype, strides: tuple[int, ...] | None) -> Tensor:
    """Return a lazy copy of dtype `dt` in dense strides (None: row-major), without history."""
    if strides is not None:
        return core.laid_out(IDENTITY, dt, dt, (x,), x.shape, x.device, strides)
    return core.pending(core.expression(IDENTITY, dt, dt, (x,), x.shape), x.device, x.shape)


def transfer(x: Tensor, dev: device) -> Tensor:
    """Return a contiguous copy on another device, without history."""
    source = x if x.is_contiguous() else x.detach().clone(memory_format=contiguous_format)
    nbytes = source.numel() * x.dtype.itemsize
    storage = Storage.empty(get_backend(dev), nbytes)
    if nbytes:
        src = source._storage
        data = src.host(source._offset * x.dtype.itemsize, nbytes)
        storage.backend.write(storage.value, 0, data)
    return core.make(storage, x.shape, x.dtype, dev)


def to_device(x: Tensor, dev: device) -> Tensor:
    """Copy to another device; the gradient is copied back."""
    out = transfer(x, dev)
    if graph.needs_grad(x):
        home = x.device
        graph.record("ToCopyBackward0", (x,), out, lambda ctx, g: to_device(g, home))
    return out


@public(function=False)
def to(
    self: Tensor,
    *args: Any,
    device: Any = None,
    dtype: Any = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
    tensor: Any = None,
) -> Tensor:
    """Convert dtype and/or device; return the tensor itself if nothing changes.

    Takes (dtype), (device, dtype) or (tensor).
    """
    device, dtype, _, copies = destination(
        args, device, dtype, non_blocking or None, copy or None, tensor
    )
    out = self
    if device is not None:
        dev = canonical(device)
        if dev != self.device:
            out = to_device(out, dev)
    if dtype is not None and dtype is not out.dtype:
        out = cast(out, dtype)
    if copies and out is self:
        return clone(self, memory_format=memory_format)
    if memory_format is None or memory_format is preserve_format:
        return out
    if out is self:
        done = formats.suggested(out) is memory_format
    else:  # a copy must have exactly the format's strides, also those of dims of size 1, which could be any
        wanted = formats.strides("to", memory_format, out.shape)
        done = out._strides == (wanted or layouts.contiguous_strides(tuple(out.shape)))
    return out if done else clone(out, memory_format=memory_format)


@public(function=False)
def to_dense(
    self: Tensor, dtype: dtype | None = None, *, masked_grad: bool | None = None
) -> Tensor:
    """Return the tensor itself, which is strided already, or its conversion to `dtype`."""
    return self if dtype is None else to(self, dtype)


def _caster(name: str, dt: dtype) -> None:
    def method(self: Tensor, memory_format: Any = None) -> Tensor:
        if memory_format is not None:
            return to(self, dtype=dt, memory_format=memory_format)
        return self if self.dtype is dt else cast(self, dt)

    titled(method, name, f"Convert to {dt!r}.")
    METHODS[name] = method


for _name, _dt in {
    "float": dtypes.float32, "double": dtypes.float64, "half": dtypes.float16, "bfloat16": dtypes.bfloat16, "int": dtypes.int32, "long": dtypes.int64,
    "short": dtypes.int16, "char": dtypes.int8, "byte": dtypes.uint8, "bool": dtypes.bool, "cfloat": dtypes.complex64, "cdouble": dtypes.complex128, "chalf": dtypes.complex32,
}.items():  # fmt: skip
    _caster(_name, _dt)


@public(function=False)
def type_as(self: Tensor, other: Tensor) -> Tensor:
    """Convert to the other tensor's dtype and device."""
    check_tensor("type_as", "other", 1, other)
    return to(self, other)


@public()
def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """Copy; the order of dims in memory is kept unless a format is asked for."""
    out = _copied(input, input.dtype, formats.strides_like("clone", input, memory_format))
    if graph.needs_grad(input):
        if views.inferred((input,)):  # the clone of an inference tensor is recorded all the same
            return copy_(out, input)
        graph.record("CloneBackward0", (input,), out, _same_gradient)
    return out


@public(function=False)
def contiguous(self: Tensor, *, memory_format: Any = contiguous_format) -> Tensor:
    """Return the tensor itself if it is dense in the order of the format, row-major by default, else a copy that is."""
    formats.strides("contiguous", memory_format, self.shape)
    if formats.is_in(self, memory_format):
        return self
    if memory_format is preserve_format:
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    return clone(self, memory_format=memory_format)


# ------------------------------------------------------------------------------------------- writing


def copy_(self: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    """Overwrite with `src`, a tensor or a number, broadcast and converted."""
    if not is_tensor(src):
        if src.__class__ not in core.NUMBERS:
            check_tensor("copy_", "other", 1, src)
        src = core.Registry.tensor._scalar(src)
    views.check_inplace(self, src)
    moved = src if src.device == self.device else to_device(src, self.device)
    if moved.shape != self.shape:
        joint = layouts.broadcast_shapes(self.shape, moved.shape)
        if joint != self.shape:
            raise RuntimeError(
                f"output with shape {list(self.shape)} doesn't match the broadcast shape {list(joint)}"
            )
        with unrecorded():
            moved = moved.detach().expand(self.shape)
    if moved.dtype.is_complex and self.dtype.category in (1, 2):
        warn_once("Casting complex values to real discards the imaginary part")
    if src is self or _covers(moved, self):  # as after `x[1:] += 1`
        self._vc.value += 1  # still counts as a write
    else:
        writes.check_overlap(self, (src,))
        writes.overwrite(self, moved)
    if self.dtype.category >= 2 and graph.needs_grad(self, src):
        graph.rebase(self, "CopyBackwards", (self, src), _copy_back, {"home": src.device})
    return self


def _covers(a: Tensor, b: Tensor) -> bool:
    """Return whether two tensors of one shape are the same elements of one storage."""
    return (
        a._storage is b._storage
        and a._offset == b._offset
        and a.dtype is b.dtype
        and a._strides == b._strides
    )


def _copy_back(ctx: Any, g: Tensor) -> tuple:
    return (
        writes.nothing(g) if ctx.needs[0] else None,
        (g if g.device == ctx.home else to_device(g, ctx.home)) if ctx.needs[1] else None,
    )


METHODS["copy_"] = copy_


def fill_(self: Tensor, value: Any) -> Tensor:
    """Set every element to a number or a 0-dim tensor's value."""
    views.check_inplace(self)
    if is_tensor(value):
        if value.ndim:
            raise RuntimeError(
                f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions."
            )
        moved = value if value.device == self.device else to_device(value, self.device)
        expr = core.expression(IDENTITY, self.dtype, self.dtype, (moved,), self.shape)
    else:
        if value.__class__ not in NUMBERS:
            value = value.item() if hasattr(value, "item") else value
        if not isinstance(value, NUMBERS):
            raise TypeError(
                f"fill_(): argument 'value' (position 1) must be Number, not {type(value).__name__}"
            )
        value = check_value(value, self.dtype)
        expr = Expr(IDENTITY, self.dtype, self.dtype, self.shape, (Scalar(value),))
    writes.write(self, expr)
    self._vc.value += 1
    if graph.needs_grad(self, value if is_tensor(value) else None):
        graph.rebase(
            self,
            "FillBackward2" if not is_tensor(value) else "FillBackward3",
            (self, value),
            _fill_back,
        )
    return self


def _fill_back(ctx: Any, g: Tensor) -> tuple:
    return writes.nothing(g), g.sum() if ctx.needs[1] else None


METHODS["fill_"] = FUNCTIONS["fill_"] = fill_


@public(function=False)
def zero_(self: Tensor) -> Tensor:
    """Set every element to zero."""
    views.check_inplace(self)
    writes.write(self, Expr(IDENTITY, self.dtype, self.dtype, self.shape, (Scalar(0),)))
    self._vc.value += 1
    if graph.needs_grad(self):
        graph.rebase(self, "ZeroBackward0", (self,), lambda ctx, g: (writes.nothing(g),))
    return self


FUNCTIONS["zero_"] = zero_


@public()
def fill(input: Tensor, value: Any) -> Tensor:
    """Return a copy with every element set to the value."""
    with unrecorded():
        out = fill_(input.detach().clone(), value)
    if graph.needs_grad(input, value):
        graph.record(
            "FillBackward1" if is_tensor(value) else "FillBackward0",
            (input, value),
            out,
            _fill_back,
        )
    return out


@public(function=False)
def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Set the main diagonal of a matrix (or of a cube of equal sides) to a value."""
    if self.ndim < 2:
        raise RuntimeError("dimensions must larger than 1")
    if self.ndim == 2:
        rows, cols = self.shape
        count = min(rows, cols)
        places = [(0, count)]
        if wrap and rows > cols:
            places = [(start, min(cols, rows - start)) for start in range(0, rows, cols + 1)]
        for start, n in places:
            self.as_strided(
                (n,),
                (self._strides[0] + self._strides[1],),
                self._offset + start * self._strides[0],
            ).fill_(fill_value)
        return self
    if len(set(self.shape)) != 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    self.as_strided((self.shape[0],), (sum(self._strides),), self._offset).fill_(fill_value)
    return self
