"""The arguments common to all convolution kernels: window, sizes and strides of a correlation (see correlation.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ...layouts import numel

if TYPE_CHECKING:
    from ..operand import Operand

Three = tuple[int, int, int]
# A GPU's kernel uses 32-bit indices if there are fewer places, taps and elements than this.
FAR = 1 << 30


class Window(NamedTuple):
    """Stride, dilation (`step`) and padding of each of three spatial dims; `pad` may be negative."""

    stride: Three
    step: Three
    pad: Three

    def exchanged(self) -> Window:
        """Return the window in which taps and places have exchanged roles: stride and step exchanged."""
        return Window(self.step, self.stride, self.pad)


# The numbers of a correlation in the order kernels take them; x: input, f: filter, y: output, d: bias.
LONGS = (
    *("x_off", "x_g", "x_b", "x_c", "x_0", "x_1", "x_2"),
    *("f_off", "f_g", "f_o", "f_c", "f_0", "f_1", "f_2"),
    *("y_off", "y_g", "y_b", "y_o", "y_0", "y_1", "y_2"),
    *("d_off", "d_g", "d_o"),
    *("groups", "batch", "channels", "rows"),
    *("s0", "s1", "s2", "k0", "k1", "k2", "p0", "p1", "p2"),
    *("stride0", "stride1", "stride2", "step0", "step1", "step2", "pad0", "pad1", "pad2"),
)


def numbers(
    x: Operand, f: Operand, y: Operand, bias: Operand | None, window: Window
) -> tuple[int, ...]:
    """Return the values of LONGS."""
    groups, batch, channels = x.shape[:3]
    d = (0, 0, 0) if bias is None else (bias.offset, *bias.strides)
    return (
        *(x.offset, *x.strides),
        *(f.offset, *f.strides),
        *(y.offset, *y.strides),
        *d,
        *(groups, batch, channels, f.shape[1]),
        *(*x.shape[3:], *f.shape[3:], *y.shape[3:]),
        *(*window.stride, *window.step, *window.pad),
    )


def reach(v: Operand, window: Window) -> int:
    """Return a bound of the indices a kernel uses with an operand.

    It covers the distance in elements from its first to its last, padding included, and its number of places.
    """
    sizes = tuple(n + 2 * abs(p) for n, p in zip(v.shape[3:], window.pad, strict=True))
    steps = zip((v.shape[2], *sizes), v.strides[2:], strict=True)
    return max(sum((n - 1) * abs(s) for n, s in steps), *sizes, numel(v.shape[2:]))


def counter(*most: int) -> str:
    """Return the index type for indices up to these bounds: "int" or "long"."""
    return "long" if max(most) >= FAR else "int"
