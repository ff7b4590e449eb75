"""Convolutions computed as matrix products: 1 x 1 filters; on a CPU also disjoint patches, 1 x 1 images, many channels.

Owns which correlations are computed so, what is copied for that, and the products; correlation.py asks here first. On a
GPU nothing is copied. All outputs at one place are computed from the same row of numbers. Where these rows cannot be
viewed in memory (as for 1 x 1 at stride 1) the input is copied, once where patches are disjoint, else once per tap
(templates/conv/unfold.mako). For small images with many channels that pays, because a product computes none of the junk
positions between the rows of a box (cpu.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...layouts import collapse, contiguous_strides, numel
from ..move import copies
from ..operand import Operand
from ..products import gemm
from ..products.product import LONG, WIDE, access_variables, accumulator, built, ceil_div
from ..region import empty
from ..source import include, render
from .window import LONGS, Window, numbers

if TYPE_CHECKING:
    from ...dtypes import dtype
    from ...runtime import Backend

LEAST = 4  # output channels, and terms of an output's sum, at least
COPIED = 32  # output channels from which on a copy of the input is cheap beside the product
TAPS = 4  # taps that are adjacent in memory, at least: shorter runs are copied slowly
UNFOLDED = 1 << 22  # numbers copied at a time where patches overlap
IMAGE = 1 << 20  # numbers (of 4 bytes) copied for one image, at most
FEW = 64  # output places per image below which the images of a batch share register tiles
SMALL = 256  # output places per image below which the boxes of cpu.py have much junk
# Numbers of a transposed correlation's product that are summed over taps at a time.
FOLDED = 1 << 20
# A transposed correlation as a product pays where each tap sums over at least SPREAD channels, if images have at
# least SPREAD_PLACES places and no more taps than the stride has remainders. More taps or fewer places take a
# multiple of SPREAD; up to SPREAD_CHANNELS result channels do not, for they do not fill the register tile of cpu.py.
SPREAD, SPREAD_PLACES, SPREAD_CHANNELS = 32, 256, 3
FOLD_ROOM = 4096  # numbers of local memory for a row in which taps are added up
FOLD_SLACK = 64  # numbers that vectors may access past the row
TILE = 64  # rows and columns of a product's tile, of a GPU's work-group
# Work-groups per compute unit that splitting the places of a weight gradient aims at, and the fewest places in a part.
SHARE, PART = 3, 256


def correlate(
    backend: Backend, x: Operand, f: Operand, y: Operand, window: Window, bias: Operand | None
) -> bool:
    """Compute `correlation.correlate` as a product; False, with nothing done, where it is none or that does not pay."""
    if _spread(backend, x, f, y, window, bias):
        return True
    weights, target = _joined(f, 2), _places(y)
    if weights is None or target is None:
        return False
    apart = _apart(x, f.shape, y, window)
    # No other schedule has the processor's dot products of 16-bit pairs, so 16-bit floats take this one also for large
    # images.
    large, least = (
        (False, COPIED) if x.dtype.itemsize == 2 else (target.shape[2] >= SMALL, 4 * COPIED)
    )
    if not apart and (large or not _overlapping(x, f.shape, y, least)):
        return False
    for some, made in _parts(x, y, f.shape, 0 if apart else UNFOLDED):
        _correlate(backend, some, f.shape, weights, made, window, bias)
    return True


def _correlate(
    backend: Backend,
    x: Operand,
    shape: tuple[int, ...],
    weights: Operand,
    y: Operand,
    window: Window,
    bias: Operand | None,
) -> None:
    target = _places(y)
    assert target is not None
    few = target.shape[2] < FEW
    rows, target = _merged(_rows(backend, x, shape, y, window, few), target)
    if target.shape[1] == 1 or not few:
        _multiply(backend, weights, rows, target, bias)
        return
    by_column = empty(backend, y.dtype, tuple(target.shape[d] for d in _COLUMNS))
    made = _seen(by_column, _BACK)
    _multiply(backend, weights, *_merged(_columns(backend, rows), made), bias)
    _copy_runs(backend, made, target)


def weigh(
    backend: Backend, x: Operand, y: Operand, shape: tuple[int, ...], window: Window
) -> Operand | None:
    """Compute `correlation.weigh` for a result [G, O, C, *taps]; None where it is no product or that does not pay."""
    apart = _apart(x, shape, y, window)
    narrow = x.dtype.itemsize == 2
    least = COPIED if narrow else 2 * COPIED
    if _places(y) is None or not (apart or _overlapping(x, shape, y, least)):
        return None
    places, outputs, each = numel(y.shape[3:]), shape[1], numel(shape[2:])
    # A partial sum per image, which the caller adds up; one sum over all images where the partial sums would be more
    # numbers than the operands.
    few = outputs * each > places * (outputs + each)
    parts = _parts(x, y, shape, 0 if apart else UNFOLDED)
    wide = WIDE[accumulator(x.dtype)]
    out = empty(backend, wide, (len(parts) if few else x.shape[1], *shape))
    matrix = outputs * each
    done = 0
    for some, slopes in parts:
        rows, slopes = _factors(backend, some, shape, slopes, window, few)
        sums = out._replace(
            shape=(*slopes.shape[:2], outputs, each),
            strides=(matrix, x.shape[0] * matrix, each, 1),
            offset=done * x.shape[0] * matrix,
        )
        if each > outputs and not few:  # the larger factor is read where it lies, the other copied
            gemm.matmul(backend, _seen(rows, _TURNED), slopes, _seen(sums, _TURNED))
        else:
            gemm.matmul(backend, _seen(slopes, _TURNED), rows, sums)
        done += slopes.shape[1]
    # Images were merged into one dim, so there are fewer partial sums than images.
    if done < out.shape[0]:
        out = out._replace(shape=(done, *shape))
    return out


def correlate_single(
    backend: Backend, x: Operand, f: Operand, y: Operand, window: Window, bias: Operand | None
) -> bool:
    """Compute `correlation.correlate` with 1 x 1 filters on a GPU, as a product of views of the operands.

    False, with nothing done, for other filters, where the operands cannot be viewed as matrices, and where the tiles
    that cover an image's places would hold too much padding.
    """
    rows, target = _single(x, f.shape, y, window), _places(y)
    if rows is None or target is None:
        return False
    rows, target = _merged(rows, target)
    places = target.shape[2]
    if 8 * ceil_div(places, TILE) * TILE > 9 * places:
        return False
    weights = f._replace(shape=f.shape[:3], strides=f.strides[:3])
    _multiply(backend, weights, rows, target, bias)
    return True


def weigh_single(
    backend: Backend, x: Operand, y: Operand, shape: tuple[int, ...], window: Window
) -> Operand | None:
    """Compute `correlation.weigh` for 1 x 1 filters on a GPU, one partial sum for each part of each image.

    None for other filters and where the operands cannot be viewed as matrices.
    """
    rows, slopes = _single(x, shape, y, window), _places(y)
    if rows is None or slopes is None:
        return None
    (groups, images, places, channels), outputs = rows.shape, shape[1]
    tiles = groups * images * ceil_div(outputs, TILE) * ceil_div(channels, TILE)
    wanted = min(SHARE * backend.info.compute_units // tiles, places // PART) if groups == 1 else 1
    parts = next((n for n in range(wanted, 1, -1) if places % n == 0), 1)
    out = empty(backend, WIDE[accumulator(x.dtype)], (images * parts, *shape))
    first, second = (_cut(v, parts) for v in (_seen(slopes, _TURNED), _seen(rows, _TURNED)))
    sums = out._replace(
        shape=(groups, images, parts, outputs, channels),
        strides=(outputs * channels, parts * out.strides[0], out.strides[0], channels, 1),
    )
    gemm.matmul(backend, first, _seen(second, (0, 1, 2, 4, 3)), sums)
    return out


def _single(x: Operand, shape: tuple[int, ...], y: Operand, window: Window) -> Operand | None:
    """View what 1 x 1 filters read as matrices over output places; None for other filters or where no view exists."""
    if shape[3:] != (1, 1, 1) or window.pad != (0, 0, 0) or not (numel(x.shape) and numel(y.shape)):
        return None
    strides = tuple(n * by for n, by in zip(window.stride, x.strides[3:], strict=True))
    return _places(
        x._replace(shape=(*x.shape[:3], *y.shape[3:]), strides=(*x.strides[:3], *strides))
    )


def _cut(v: Operand, parts: int) -> Operand:
    """View matrices [group, image, number, place] as [group, image, part, number, place within the part]."""
    g, b, n, p = v.strides
    each = v.shape[3] // parts
    return v._replace(shape=(*v.shape[:2], parts, v.shape[2], each), strides=(g, b, each * p, n, p))


def spread(
    backend: Backend, y: Operand, f: Operand, x: Operand, window: Window, bias: Operand | None
) -> bool:
    """Compute `correlation.spread` by a product for all taps at all places, and a sum over taps.

    The sum is templates/conv/fold.mako's. False, with nothing done, where that costs more than the other schedules.
    """
    weights, pitch = _joined(f, 2), _fold_pitch(x, y, f.shape, window)
    if weights is None or _places(y) is None or not _foldable(x, y, f.shape, window, pitch):
        return False
    weights = _seen(weights, (0, 2, 1))
    for some, slopes in _parts(x, y, f.shape, FOLDED):
        matrix = _places(slopes)
        assert matrix is not None
        groups, images, places = matrix.shape[:3]
        few = places < FEW and images > 1
        order = _COLUMNS if few else (0, 1, 3, 2)
        sizes = groups, images, places, weights.shape[1]
        made = empty(backend, y.dtype, tuple(sizes[d] for d in order))
        made = _seen(made, _BACK if few else _TURNED)
        if few:
            _multiply(backend, weights, *_merged(_columns(backend, matrix), made), None)
        else:
            _multiply(backend, weights, matrix, made, None)
        _fold(backend, made, some, slopes, f.shape, window, bias, pitch)
    return True


def _foldable(x: Operand, y: Operand, shape: tuple[int, ...], window: Window, pitch: int) -> bool:
    """Return whether product and sum over taps pay: channels are enough, and an image's product is not too large."""
    taps, stride, places = numel(shape[3:]), window.stride, numel(y.shape[3:])
    by, remainders = 8, numel(stride)
    if shape[2] <= SPREAD_CHANNELS:
        by = 1
    elif places >= SPREAD_PLACES:
        by = 1 if taps <= remainders else 2 if taps < 3 * remainders else 4
    return (
        stride != (1, 1, 1)
        and _floats(x, y)
        and taps > 0
        and shape[1] >= by * SPREAD
        and min(window.pad) >= 0
        and shape[0] * numel(shape[2:]) * places <= 4 * IMAGE
        and max(pitch * stride[2], x.shape[5]) <= FOLD_ROOM - FOLD_SLACK
    )


def _fold_pitch(x: Operand, y: Operand, shape: tuple[int, ...], window: Window) -> int:
    """Return the length of one remainder's part of a row in local memory: room for all terms and for the result."""
    stride, step, pad = window.stride[2], window.step[2], window.pad[2]
    margin = ceil_div(pad, stride)
    last = margin + ((shape[5] - 1) * step - pad) // stride + y.shape[5]
    return max(last, margin + ceil_div(x.shape[5], stride))


def _fold(
    backend: Backend,
    u: Operand,
    x: Operand,
    y: Operand,
    shape: tuple[int, ...],
    window: Window,
    bias: Operand | None,
    pitch: int,
) -> None:
    longs = (*LONGS, "u_g", "u_b", "u_k", "span", "pitch")

    def make() -> tuple[str, str, list[Any]]:
        name = f"conv_fold_{x.dtype.code}"
        index = "int" if x.dtype.itemsize == 4 else "long"
        variables = access_variables(x.dtype, x.dtype, 32 // x.dtype.itemsize)
        rooms = {"room": FOLD_ROOM, "slack": FOLD_SLACK}
        source = render("conv/fold", fn=name, longs=longs, index=index, **rooms, **variables)
        return name, source, [None] * 3 + [np.int32] + [LONG] * len(longs)

    groups, images, channels = x.shape[:3]
    span = _span(backend, groups * images, channels)
    f = x._replace(shape=shape, strides=(0,) * 6)
    values = numbers(x, f, y, bias, window)
    args = (
        *(u.buffer, x.buffer, (bias or x).buffer, int(bias is not None), *values),
        *(*u.strides[:2], u.strides[3], span, pitch),
    )
    grid = ceil_div(channels, span), images, groups
    kernel = built(backend, ("conv fold", x.dtype), make)
    backend.launch(kernel, grid, (1, 1, 1), args, x.nbytes + u.nbytes)


def _span(backend: Backend, tasks: int, channels: int) -> int:
    """Return how many channels of an image a work-item takes; `tasks` is how many images divide the work already."""
    wanted = ceil_div(4 * backend.info.compute_units, tasks)
    return ceil_div(channels, min(wanted, channels))


def _factors(
    backend: Backend, x: Operand, shape: tuple[int, ...], y: Operand, window: Window, few: bool
) -> tuple[Operand, Operand]:
    """Return the two matrices whose product is the weight gradient; with `few` the images are merged into one."""
    slopes = _places(y)
    assert slopes is not None
    rows, slopes = _merged(_rows(backend, x, shape, y, window, few), slopes)
    if few and slopes.shape[1] > 1:
        rows, slopes = _merged(_columns(backend, rows), _columns(backend, slopes))
    return rows, slopes


def _parts(
    x: Operand, y: Operand, shape: tuple[int, ...], most: int
) -> list[tuple[Operand, Operand]]:
    """Split input and output into batches of images whose unfolded input is about `most` numbers; 0: a single batch."""
    images = x.shape[1]
    each = x.shape[0] * numel(y.shape[3:]) * numel(shape[2:])
    many = max(most // each, 1) if most else images
    many = ceil_div(images, ceil_div(images, many))
    starts = range(0, images, many)
    return [(_images(x, first, many), _images(y, first, many)) for first in starts]


def _images(v: Operand, first: int, many: int) -> Operand:
    """View up to `many` images from `first` on."""
    shape = (v.shape[0], min(many, v.shape[1] - first), *v.shape[2:])
    return v._replace(shape=shape, offset=v.offset + first * v.strides[1])


# Orders of dims for `_seen`. Matrices are [group, image, place, number]; a number is a channel, or a channel and a tap.
_TURNED, _COLUMNS, _BACK = (0, 1, 3, 2), (0, 3, 1, 2), (0, 2, 3, 1)


def _multiply(
    backend: Backend, weights: Operand, rows: Operand, target: Operand, bias: Operand | None
) -> None:
    out, (g, o, k) = _seen(target, _TURNED), weights.strides
    filters = weights._replace(shape=(*out.shape[:3], weights.shape[2]), strides=(g, 0, o, k))
    shift = None
    if bias is not None:
        g, o = bias.strides
        shift = bias._replace(shape=out.shape, strides=(g, 0, o, 0))
    beta = int(bias is not None)
    gemm.matmul(backend, filters, _seen(rows, _TURNED), out, beta=beta, bias=shift)


def _overlapping(x: Operand, shape: tuple[int, ...], y: Operand, least: int) -> bool:
    """Return whether a product pays although each input number is copied once per place that reads it.

    It takes at least `least` output channels.
    """
    adjacent = x.strides[5] == 1 or x.shape[5] == 1
    enough = shape[2] >= COPIED or x.dtype.itemsize == 2
    fits = unfolds(shape[1], numel(shape[2:]), numel(y.shape[3:]), least, x.dtype)
    return _floats(x, y) and adjacent and enough and fits


def unfolds(outputs: int, each: int, places: int, least: int, dt: dtype) -> bool:
    """Return whether unfolding images (`places` times `each` numbers) pays for this many output channels."""
    few = dt.itemsize == 2 and each < 4 * COPIED  # a product of short rows does not make up for it
    return outputs >= least and not few and places * each * dt.itemsize <= 4 * IMAGE


def _apart(x: Operand, shape: tuple[int, ...], y: Operand, window: Window) -> bool:
    """Return whether patches are disjoint and within the input, and a product of them pays."""
    taps, outputs, numbers = shape[3:], shape[1], numel(shape[2:])
    dims = list(zip(taps, y.shape[3:], x.shape[3:], window.stride, window.step, strict=True))
    single = y.shape[3:] == (1, 1, 1)
    return (
        _floats(x, y)
        and window.pad == (0, 0, 0)
        and all(k == 1 or p == 1 or (s >= k and d == 1) for k, p, _, s, d in dims)
        and all((p - 1) * s + (k - 1) * d < n for k, p, n, s, d in dims)
        and min(outputs, numbers) >= LEAST
        and (single or window.stride == (1, 1, 1) or outputs >= COPIED)
        and (single or taps == (1, 1, 1) or taps[2] >= TAPS)
    )


def _floats(x: Operand, y: Operand) -> bool:
    return x.dtype.is_floating_point and bool(numel(x.shape) and numel(y.shape))


def _spread(
    backend: Backend, x: Operand, f: Operand, y: Operand, window: Window, bias: Operand | None
) -> bool:
    """Correlate 1 x 1 images: each output place reads one tap, so the filters themselves are the other matrix.

    False, with nothing done, for other correlations.
    """
    places = y.shape[3:]
    each = zip(places, f.shape[3:], window.pad, strict=True)
    if (
        x.shape[3:] != (1, 1, 1)
        or window.stride != (1, 1, 1)
        or window.step != (1, 1, 1)
        or bias is not None
        or not all(p - 1 <= pad < k for p, k, pad in each)
        or not _floats(x, y)
        or min(x.shape[2], f.shape[1] * numel(places)) < LEAST
    ):
        return False
    # Place p reads tap pad - p, hence the negative strides.
    first = sum(pad * by for pad, by in zip(window.pad, f.strides[3:], strict=True))
    turned = f._replace(
        shape=(*f.shape[:3], *places),
        strides=(*f.strides[:3], *(-by for by in f.strides[3:])),
        offset=f.offset + first,
    )
    taps, target = _joined(_seen(turned, (0, 2, 1, 3, 4, 5)), 2), _joined(y, 2)
    if taps is None or target is None:
        return False
    numbers = x._replace(shape=x.shape[:3], strides=x.strides[:3])
    gemm.matmul(backend, numbers, taps, target)
    return True


def _rows(
    backend: Backend, x: Operand, shape: tuple[int, ...], y: Operand, window: Window, few: bool
) -> Operand:
    """Return what output places read as matrices, a view or a copy; with `few` a full copy has its images adjacent."""
    if not _apart(x, shape, y, window):
        return _unfolded(backend, x, shape, y, window, few)
    along = x.strides[3:]
    by_place = tuple(n * by for n, by in zip(window.stride, along, strict=True))
    by_tap = tuple(n * by for n, by in zip(window.step, along, strict=True))
    g, b, c = x.strides[:3]
    seen = x._replace(
        shape=(*x.shape[:2], *y.shape[3:], x.shape[2], *shape[3:]),
        strides=(g, b, *by_place, c, *by_tap),
    )
    numbers = _joined(seen, 5)
    if numbers is not None:
        ready = _joined(_seen(numbers, (0, 1, 5, 2, 3, 4)), 3)
        if ready is not None and (1 in ready.strides[2:] or ready.shape[3] == 1):
            return _seen(ready, _TURNED)
    # Copy in an order that keeps neighbours in memory neighbours: places of a channel, or the taps of a place.
    sizes = x.shape[0], x.shape[1], numel(y.shape[3:]), numel(shape[2:])
    if shape[3:] == (1, 1, 1):
        made = _copy(backend, seen, (0, 5, 6, 7, 8, 1, 2, 3, 4))
        return _seen(_dense(made, tuple(sizes[d] for d in _COLUMNS)), _BACK)
    return _dense(_copy(backend, seen, tuple(range(9))), sizes)


def _unfolded(
    backend: Backend, x: Operand, shape: tuple[int, ...], y: Operand, window: Window, few: bool
) -> Operand:
    """Unfold the input: copy what each place reads, with neighbouring places adjacent in memory."""
    (groups, images), places, each = x.shape[:2], numel(y.shape[3:]), numel(shape[2:])
    order = _COLUMNS if few else (0, 1, 3, 2)
    made = empty(backend, x.dtype, [(groups, images, places, each)[d] for d in order])
    made = _seen(made, _BACK if few else _TURNED)
    _unfold(backend, x, shape, y, window, made)
    return made


def _unfold(
    backend: Backend,
    x: Operand,
    shape: tuple[int, ...],
    y: Operand,
    window: Window,
    made: Operand,
) -> None:
    groups, images = x.shape[:2]
    longs = (*LONGS, "u_g", "u_b", "u_k", "span", "many")

    def make() -> tuple[str, str, list[Any]]:
        name = f"conv_unfold_{x.dtype.code}"
        variables = access_variables(x.dtype, x.dtype, 32 // x.dtype.itemsize)
        if x.dtype.itemsize == 2:
            variables |= _bits(variables["V"])
        source = render("conv/unfold", fn=name, longs=longs, **variables)
        return name, source, [None] * 2 + [LONG] * len(longs)

    # Where images are adjacent in the copy, one work-item writes all of them, in that order.
    many = images if made.strides[1] < made.strides[3] else 1
    span = _span(backend, groups * images // many, x.shape[2])
    f = x._replace(shape=shape, strides=(0,) * 6)
    values = numbers(x, f, y, None, window)
    args = (x.buffer, made.buffer, *values, *made.strides[:2], made.strides[3], span, many)
    grid = ceil_div(x.shape[2], span), images // many, groups
    kernel = built(backend, ("conv unfold", x.dtype), make)
    backend.launch(kernel, grid, (1, 1, 1), args, x.nbytes + made.nbytes)


def _bits(lanes: int) -> dict[str, Any]:
    """Return template variables that copy 16-bit floats bit by bit, without converting them."""
    return {
        "ta": "ushort",
        "acc": "ushort",
        "unaligned": [("ushort", 2)],
        "headers": [include("limits")],
        "load": lambda place: place,
        "loadv": lambda place: f"*(__global const ushort{lanes}_u *)({place})",
    }


def _columns(backend: Backend, rows: Operand) -> Operand:
    """Return matrices whose image and place dims can be merged into one: these, or a copy."""
    if len(collapse(rows.shape[1:3], [rows.strides[1:3]])[0]) == 1:
        return rows
    made = _seen(empty(backend, rows.dtype, tuple(rows.shape[d] for d in _COLUMNS)), _BACK)
    _copy_runs(backend, rows, made)
    return made


def _copy_runs(backend: Backend, v: Operand, to: Operand) -> None:
    """Copy matrices of images; where places have unit stride in both, by the unfolding kernel with 1 x 1 filters."""
    if v.strides[2] != 1 or to.strides[2] != 1:
        copies.copy_strided(backend, v, to)
        return
    (g, b, p, c), (groups, images, places, channels) = v.strides, v.shape
    x = v._replace(shape=(groups, images, channels, 1, 1, places), strides=(g, b, c, 0, 0, p))
    shape = (groups, 1, channels, 1, 1, 1)
    window = Window((1, 1, 1), (1, 1, 1), (0, 0, 0))
    _unfold(backend, x, shape, x, window, to)


def _copy(backend: Backend, v: Operand, order: tuple[int, ...]) -> Operand:
    made = empty(backend, v.dtype, tuple(v.shape[d] for d in order))
    copies.copy_strided(backend, _seen(v, order), made)
    return made


def _dense(v: Operand, shape: tuple[int, ...]) -> Operand:
    return v._replace(shape=shape, strides=contiguous_strides(shape))


def _seen(v: Operand, order: tuple[int, ...]) -> Operand:
    return v._replace(
        shape=tuple(v.shape[d] for d in order), strides=tuple(v.strides[d] for d in order)
    )


def _joined(v: Operand, first: int) -> Operand | None:
    """View the dims from `first` on as one; None where strides do not allow it."""
    dims, (by,) = collapse(v.shape[first:], [v.strides[first:]])
    if len(dims) > 1:
        return None
    size, step = (dims[0], by[0]) if dims else (1, 1)
    return v._replace(shape=(*v.shape[:first], size), strides=(*v.strides[:first], step))


def _places(v: Operand) -> Operand | None:
    """View [G, B, C, s0, s1, s2] as matrices [G, B, place, C]; None where strides do not allow it."""
    joined = _joined(v, 3)
    return None if joined is None else _seen(joined, _TURNED)


def _merged(a: Operand, b: Operand) -> tuple[Operand, Operand]:
    """Merge the image and place dims of two matrices, where strides allow it in both; else return them as they are."""
    dims, strides = collapse(a.shape[1:3], [a.strides[1:3], b.strides[1:3]])
    if len(dims) > 1:
        return a, b
    size = dims[0] if dims else 1
    steps = (s[0] if dims else 1 for s in strides)
    first, second = (
        v._replace(shape=(v.shape[0], 1, size, v.shape[3]), strides=(v.strides[0], 0, step, v.strides[3]))
        for v, step in zip((a, b), steps)
    )  # fmt: skip
    return first, second
