"""The printed form of a tensor, character for character torch's, and `set_printoptions`.

Owns number formats, brackets, line breaks and suffixes. Works on anything that has a tensor's
attributes, `narrow`, `detach` and `tolist`; of a large tensor only the corners that are shown are
read. Must not know of storages or devices.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from . import dtypes
from .autograd import TensorBase
from .autograd.forward_ad import unpack_dual
from .autograd.mode import FORWARD
from .runtime import home_type


class PrintOptions(NamedTuple):
    """Options of the printed form; `sci_mode` None chooses the notation by the values."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_PROFILES = {
    "default": PrintOptions(),
    "short": PrintOptions(precision=2, edgeitems=2),
    "full": PrintOptions(threshold=math.inf),
}
_options = PrintOptions()
_PLAIN_KINDS = ("Tensor", "Parameter", "Buffer")  # others print under their own name


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set the digits after the point, the numel above which to summarise, edge items and columns.

    `profile` ("default", "short", "full") sets all of them first. `sci_mode` None returns to the
    automatic choice.
    """
    global _options
    base = _options if profile is None else _PROFILES.get(profile.lower(), _options)
    given: dict[str, Any] = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    changes = {name: value for name, value in given.items() if value is not None}
    _options = base._replace(sci_mode=sci_mode, **changes)


def get_printoptions() -> dict[str, Any]:
    """Return the current options as keyword arguments of `set_printoptions`."""
    return _options._asdict()


@contextlib.contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Set print options inside a `with` block."""
    global _options
    before = _options
    set_printoptions(**options)
    try:
        yield
    finally:
        _options = before


# -- reading --------------------------------------------------------------------------------------


def values(t: Any, edge: int | None = None) -> Any:
    """Return the values of `t` as nested lists (a number when 0-dim).

    With `edge`, a dimension longer than 2 * edge gives its first and last `edge` entries only; no
    more is read.
    """
    return _corners(t.detach(), edge, 0)


def _corners(t: Any, edge: int | None, dim: int) -> Any:
    if edge is not None:
        shape = t.shape
        for d in range(dim, len(shape)):
            if shape[d] > 2 * edge:
                first = _corners(t.narrow(d, 0, edge), edge, d + 1)
                return _join(first, _corners(t.narrow(d, shape[d] - edge, edge), edge, d + 1), d)
    return t.tolist()


def _join(a: Any, b: Any, depth: int) -> Any:
    if depth == 0:
        return a + b
    return [_join(x, y, depth - 1) for x, y in zip(a, b, strict=True)]


def _flat(nested: Any, ndim: int) -> list[Any]:
    if ndim == 0:
        return [nested]
    for _ in range(ndim - 1):
        nested = [item for part in nested for item in part]
    return nested


# -- numbers --------------------------------------------------------------------------------------

Format = Callable[[Any], str]


def _plain_format(items: list[Any]) -> tuple[Format, int]:
    width = max((len(str(item)) for item in items), default=1)
    return (lambda item: str(item).rjust(width)), width


def _float_format(items: list[float], o: PrintOptions) -> tuple[Format, int]:
    """Choose notation (whole, fixed, scientific) and width from the finite nonzero values."""
    width = 1
    whole = True
    sci = False
    telling = [x for x in items if x and math.isfinite(x)]
    fixed_spec, sci_spec = f".{o.precision}f", f".{o.precision}e"
    if telling:
        sizes = [abs(x) for x in telling]
        low, high = min(sizes), max(sizes)
        whole = all(x.is_integer() for x in telling)
        if o.sci_mode is None:
            sci = high / low > 1000.0 or high > 1.0e8 or (not whole and low < 1.0e-4)
        else:
            sci = o.sci_mode
        # A whole number is followed by a bare point.
        spec = sci_spec if sci else (".0f" if whole else fixed_spec)
        width = max(width, max(len(format(x, spec)) for x in telling) + (whole and not sci))

    def write(x: float) -> str:
        if sci:
            text = format(x, sci_spec)
        elif whole:
            text = format(x, ".0f") + ("." if math.isfinite(x) else "")
        else:
            text = format(x, fixed_spec)
        return text.rjust(width)

    return write, width


def _complex_format(items: list[complex], o: PrintOptions) -> tuple[Format, int]:
    real, real_width = _float_format([z.real for z in items], o)
    imag, imag_width = _float_format([z.imag for z in items], o)

    def write(z: complex) -> str:
        second = imag(z.imag).lstrip() + "j"
        return real(z.real) + ("" if second[0] in "+-" else "+") + second

    return write, real_width + imag_width + 1


def _choose_format(d: Any, items: list[Any], o: PrintOptions) -> tuple[Format, int]:
    if d.is_complex:
        return _complex_format(items, o)
    if d.is_floating_point:
        return _float_format(items, o)
    return _plain_format(items)


# -- brackets -------------------------------------------------------------------------------------


def _contents(t: Any, indent: int, o: PrintOptions) -> str:
    """Write the brackets and numbers of a tensor that is not empty.

    `indent` is the column of the first bracket.
    """
    shape = tuple(t.shape)
    ndim = len(shape)
    edge = o.edgeitems if math.prod(shape) > o.threshold else None
    nothing = edge == 0 and ndim > 0
    nested = [] if nothing else values(t, edge)
    write, width = _choose_format(t.dtype, [] if nothing else _flat(nested, ndim), o)
    if ndim == 0:
        return write(nested)
    gaps = [edge is not None and size > 2 * edge for size in shape]

    def row(items: list[Any], column: int) -> str:
        texts = ["..."] if nothing else [write(item) for item in items]
        if gaps[-1] and edge:
            texts.insert(edge, " ...")
        per_line = max(1, (o.linewidth - column) // (width + 2))
        lines = [", ".join(texts[i : i + per_line]) for i in range(0, len(texts), per_line)]
        return "[" + (",\n" + " " * (column + 1)).join(lines) + "]"

    def block(items: list[Any], dim: int, column: int) -> str:
        if dim == ndim - 1:
            return row(items, column)
        parts = [block(item, dim + 1, column + 1) for item in items]
        if gaps[dim] and edge is not None:
            parts.insert(edge, "...")
        return "[" + ("," + "\n" * (ndim - dim - 1) + " " * (column + 1)).join(parts) + "]"

    return block(nested, 0, indent)


def _suffixes(t: Any, o: PrintOptions, meta: bool) -> Iterator[str]:
    shape = tuple(t.shape)
    device = t.device
    name = t.dtype.name if isinstance(t.dtype, dtypes.dtype) else str(t.dtype).rpartition(".")[2]
    default = dtypes.get_default_dtype().name
    if device.type != home_type():
        yield f"device='{device}'"
    if meta:
        yield f"size={shape}"
    elif 0 in shape:
        if len(shape) != 1:
            yield f"size={shape}"
    elif not o.edgeitems:
        yield f"size={shape}"
    if meta:
        plain: tuple[str, ...] = (default,)
    elif 0 in shape:
        # No element tells that the type is int64 or bool.
        plain = (default,)
    else:
        plain = (default, "complex128" if default == "float64" else "complex64", "int64", "bool")
    if name not in plain:
        yield f"dtype=torch.{name}"
    try:
        grad_fn = t.grad_fn
        made = None if grad_fn is None else type(grad_fn).__name__
    except RuntimeError:  # a view that has lost its place in the graph
        made = "Invalid"
    if made is not None:
        yield f"grad_fn=<{made}>"
    elif t.requires_grad:
        yield "requires_grad=True"
    if FORWARD.open and isinstance(t, TensorBase):
        tangent = unpack_dual(t).tangent
        if tangent is not None:
            yield f"tangent={tangent}"


def add_suffixes(
    text: str, suffixes: Iterable[str], indent: int, force_newline: bool = False
) -> str:
    """Return a text with suffixes ("dtype=torch.int8") and the closing parenthesis added, broken at `linewidth`."""
    column = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if force_newline or column + len(suffix) + 2 > _options.linewidth:
            text += ",\n" + " " * indent + suffix
            column, force_newline = indent + len(suffix), False
        else:
            text += ", " + suffix
            column += len(suffix) + 2
    return text + ")"


def contents(t: Any, indent: int) -> str:
    """Return the values of a tensor in brackets, for a text whose first bracket stands at column `indent`."""
    return "[]" if 0 in t.shape else _contents(t, indent, _options)


def tensor_str(t: Any, tensor_contents: str | None = None) -> str:
    """Return the printed form of a tensor.

    `tensor_contents` replaces the values and their brackets.
    """
    o = _options
    kind = type(t).__name__
    prefix = "tensor(" if kind in _PLAIN_KINDS else f"{kind}("
    indent = len(prefix)
    meta = t.device.type == "meta"
    if tensor_contents is None:
        if meta:
            tensor_contents = "..."
        elif 0 in t.shape:
            tensor_contents = "[]"
        else:
            tensor_contents = _contents(t, indent, o)
    text = add_suffixes(prefix + tensor_contents, _suffixes(t, o, meta), indent)
    learnt = getattr(t, "_is_param", getattr(t, "_mark", "") == "_is_param")
    return f"Parameter({text})" if learnt and kind not in _PLAIN_KINDS else text


def parameter_str(t: Any) -> str:
    """Return the printed form of an nn.Parameter or of a subclass of it."""
    return "Parameter containing:\n" + tensor_str(t)
