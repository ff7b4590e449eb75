"""Sampling of images at the points of a grid, and grids of affine maps (Jaderberg et al., arXiv 1506.02025)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from ...autograd import record as graph
from ...autograd.engine import grad as engine_grad
from ...autograd.mode import unrecorded
from ...codegen.resample import grid as family
from ...errors import caller_level
from ...runtime import get_backend
from .. import core
from ..composite import in_one
from ..core import Tensor
from ..kinds import Sizes
from ..operands import same_dtype
from ..refusals import no_kernel
from ..replay import Replayed
from ..row import FUNCTIONS, public
from .grid_formula import composed

_CHANGED = (
    "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
    "align_corners=True if the old behavior is desired. See the documentation of grid_sample for details."
)


def _check(input: Tensor, grid: Tensor, mode: int) -> None:
    if input.device != grid.device:
        raise RuntimeError(
            f"grid_sampler(): expected input and grid to be on same device, but input is on {input.device} and grid is on {grid.device}"
        )
    if input.shape[0] != grid.shape[0]:
        raise RuntimeError(
            "grid_sampler(): expected grid and input to have same batch size, but got input with sizes "
            f"{list(input.shape)} and grid with sizes {list(grid.shape)}"
        )
    if grid.shape[-1] != input.ndim - 2:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {input.ndim - 2} in last dimension, but got grid with sizes {list(grid.shape)}"
        )
    for d, size in enumerate(input.shape[2:], 2):
        if size <= 0:
            raise RuntimeError(
                "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes "
                f"{list(input.shape)} with dimension {d} being empty"
            )
    if input.ndim not in (4, 5) or input.ndim != grid.ndim:
        raise RuntimeError(
            "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but got input with sizes "
            f"{list(input.shape)} and grid with sizes {list(grid.shape)}"
        )
    if input.ndim == 5 and mode == 2:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if input.dtype.category != 2:
        raise no_kernel(f"grid_sampler_{input.ndim - 2}d_cpu_kernel_impl", input.dtype)
    same_dtype(input, grid)


def _back(ctx: Any, g: Tensor) -> tuple:
    input, grid, way = ctx.input, ctx.grid, ctx.way
    if graph.needs_grad(g, input, grid):
        return _back_again(ctx, g)
    at, slope = grid.detach().contiguous(), g.detach().contiguous()
    by_input = by_grid = None
    if ctx.needs[0]:
        by_input = _by_input((at, slope), Sizes(ctx.shapes[0]), way)[0].to(g.dtype)
    if ctx.needs[1] and way.mode == "nearest":
        by_grid = at.new_zeros(at.shape)
    elif ctx.needs[1]:
        (by_grid,) = _by_grid((input.detach(), at, slope), way)
    return by_input, by_grid


@Replayed.of_memory
def _sampled(xs: Sequence[Tensor], way: family.Way) -> list[Tensor]:
    backend, (src, at) = get_backend(xs[0].device), map(core.kernel_operand, xs)
    with backend.lock:
        return [core.result(family.sample(backend, src, at, way), xs[0].device)]


@Replayed.of_memory
def _by_input(xs: Sequence[Tensor], shape: tuple[int, ...], way: family.Way) -> list[Tensor]:
    backend, (at, slope) = get_backend(xs[0].device), map(core.kernel_operand, xs)
    with backend.lock:
        return [core.result(family.by_input(backend, shape, at, slope, way), xs[0].device)]


@Replayed.of_memory
def _by_grid(xs: Sequence[Tensor], way: family.Way) -> list[Tensor]:
    backend, (src, at, slope) = get_backend(xs[0].device), map(core.kernel_operand, xs)
    with backend.lock:
        return [core.result(family.by_grid(backend, src, at, slope, way), xs[0].device)]


def _back_again(ctx: Any, g: Tensor) -> tuple:
    """Return gradients that can be differentiated: those of the same sampling written with plain ops."""
    inputs = (ctx.input, ctx.grid)
    wanted = [t for t, need in zip(inputs, ctx.needs, strict=True) if need]
    out = composed(*inputs, ctx.way)
    found = (
        iter(engine_grad(out, wanted, g, create_graph=True, allow_unused=True))
        if graph.needs_grad(out)
        else iter([None] * len(wanted))
    )
    grads = [next(found) if need else None for need in ctx.needs]
    # "nearest" does not depend on the points: as in torch, their gradient is zeros with a grad node.
    return tuple(
        [
            t * 0 if need and grad is None else grad
            for t, need, grad in zip(inputs, ctx.needs, grads, strict=True)
        ]
    )


@public(aliases=("grid_sampler_2d", "grid_sampler_3d"), method=False)
def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Sample as `grid_sample` does, with mode and padding by number: bilinear, nearest, bicubic; zeros, border, reflection."""
    _check(input, grid, interpolation_mode)
    way = family.Way(
        family.MODES[interpolation_mode], family.PADDINGS[padding_mode], bool(align_corners)
    )
    with unrecorded():
        (out,) = _sampled((input.detach(), grid.detach().contiguous()), way)
    if graph.needs_grad(input, grid):
        node = f"GridSampler{input.ndim - 2}DBackward0"
        graph.record(node, (input, grid), out, _back, {"input": input, "grid": grid, "way": way})
    return out


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Sample `input` (N, C, H, W) at `grid` (N, Ho, Wo, 2), or (N, C, D, H, W) at (N, Do, Ho, Wo, 3); result (N, C, out).

    A point's coordinates, x first, go from -1 to 1 over the image. mode: "bilinear", "nearest", "bicubic" (4-D). padding_mode says what
    lies outside: "zeros", "border" (the edge goes on), "reflection".
    """
    if mode not in family.MODES:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in family.PADDINGS:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', "
            f"but got: '{padding_mode}'"
        )
    if align_corners is None:
        warnings.warn(_CHANGED, stacklevel=caller_level())
        align_corners = False
    return grid_sampler(
        input, grid, family.MODES.index(mode), family.PADDINGS.index(padding_mode), align_corners
    )


def _steps(n: int, align_corners: bool, like: Tensor) -> Tensor:
    """Coordinates of n elements' centres between -1 and 1."""
    if n <= 1:
        return like.new_zeros(max(n, 0))
    i = FUNCTIONS["linspace"](-1, 1, n, dtype=like.dtype, device=like.device)
    return i if align_corners else i * ((n - 1) / n)


@in_one
def _places(like: Sequence[Tensor], spatial: tuple[int, ...], align_corners: bool) -> list[Tensor]:
    """Return the homogeneous coordinates of an image's elements, (1, elements, dims + 1)."""
    dims = len(spatial)
    base = like[0].new_empty((*spatial, dims + 1))
    for i, n in enumerate(reversed(spatial)):
        base[..., i] = _steps(n, align_corners, like[0]).reshape(*([n] + [1] * i))
    base[..., dims] = 1.0
    return [base.reshape(1, -1, dims + 1)]


@public("affine_grid_generator", method=False)
def affine_points(theta: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    """Return the points to which affine maps (N, 2, 3) or (N, 3, 4) send the elements of images of a size (N, C, …)."""
    spatial = tuple(size[2:])
    dims = len(spatial)
    (places,) = _places((theta.detach(),), spatial, align_corners)
    with unrecorded():
        base = places.expand(size[0], -1, dims + 1)
        out = FUNCTIONS["bmm"](base, theta.detach().transpose(1, 2))
        out = out.reshape(size[0], *spatial, dims)

    def backward(ctx: Any, g: Tensor) -> Tensor:
        flat = g.reshape(size[0], -1, dims)
        return FUNCTIONS["bmm"](base.transpose(1, 2), flat).transpose(1, 2)

    if graph.needs_grad(theta):
        graph.record("AffineGridGeneratorBackward0", (theta,), out, backward)
    return out


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Return the points (N, H, W, 2) or (N, D, H, W, 3) of affine maps (N, 2, 3) or (N, 3, 4), for `grid_sample`."""
    if align_corners is None:
        warnings.warn(_CHANGED, stacklevel=caller_level())
        align_corners = False
    if theta.dtype.category != 2:
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    if len(size) not in (4, 5):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. "
            f"Got size {size}."
        )
    dims = len(size) - 2
    if theta.ndim != 3 or tuple(theta.shape[1:]) != (dims, dims + 1):
        raise ValueError(
            f"Expected a batch of {dims}D affine matrices of shape Nx{dims}x{dims + 1} for size {size}. Got {theta.shape}."
        )
    if align_corners and min(size[-dims:]) == 1:
        warnings.warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. "
            "This is not an intended use case of affine_grid. See the documentation of affine_grid for details.",
            stacklevel=caller_level(),
        )
    elif min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    return affine_points(theta, tuple(size), align_corners)
