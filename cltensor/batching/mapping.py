"""`vmap` itself: validation of its arguments with torch's errors, and unwrapping of the results."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from ..ops.row import FUNCTIONS
from ..random import get_rng_state, set_rng_state
from ..tensor import Tensor
from ..utils._pytree import (
    TreeSpec,
    _broadcast_to_and_flatten,
    tree_flatten,
    tree_leaves,
    tree_unflatten,
)
from .batched import hide, is_batched
from .calls import Aside
from .levels import opened


def vmap(
    func: Callable, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error",
    *, chunk_size: int | None = None,
) -> Callable:  # fmt: skip
    """Return a function that maps `func` over a dimension of its arguments, as if called for each slice, and stacks the results.

    in_dims: the dimension of each argument, None for one that is not mapped; an int for all. out_dims: the position of
    the mapped dimension in the results. `func` is called once, with tensors that hide the dimension (once for each
    chunk_size slices, if that is given). randomness: whether random functions are an "error", or give slices
    "different" or the "same" numbers.

    >>> cltensor.func.vmap(torch.dot)(torch.ones(2, 3), torch.ones(2, 3))
    tensor([3., 3.])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}"
        )
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        for d in () if isinstance(out_dims, int) else tree_leaves(out_dims):
            if d is not None and not isinstance(d, int):
                raise ValueError(
                    f"vmap({_get_name(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of "
                    "ints representing where in the outputs the vmapped dimension should appear."
                )
        size, dims, leaves, spec = _process_batched_inputs(in_dims, args, func)
        if chunk_size is None:
            return _mapped(func, size, dims, leaves, spec, out_dims, randomness, kwargs)
        ends = [*range(chunk_size, size, chunk_size), size]
        found: list[list[Any]] = []
        form: Any = None
        state = get_rng_state() if randomness == "same" else None
        for start, end in zip([0, *ends], ends, strict=False):
            if state is not None:
                set_rng_state(state)
            part = [
                t if d is None else t.narrow(d, start, end - start)
                for t, d in zip(leaves, dims, strict=True)
            ]
            out = _mapped(func, end - start, dims, part, spec, out_dims, randomness, kwargs)
            flat, form = tree_flatten(out)
            found.append(flat)
        places = _broadcast_to_and_flatten(out_dims, form)
        assert places is not None
        joined = [
            FUNCTIONS["cat"](list(c), d)
            for c, d in zip(zip(*found, strict=True), places, strict=True)
        ]
        return tree_unflatten(joined, form)

    named = isinstance(getattr(func, "__name__", None), str)
    return functools.wraps(func, updated=())(wrapped) if named else wrapped


def _mapped(
    func: Callable, size: int, dims: Sequence[int | None], leaves: Sequence[Any], spec: TreeSpec,
    out_dims: Any, randomness: str, kwargs: dict[str, Any],
) -> Any:  # fmt: skip
    """Call `func` once under a new level of `size` slices; return its results with their hidden dimensions exposed."""
    with Aside(), opened(size, randomness) as level:
        given = _create_batched_inputs(dims, leaves, level.number, spec)
        out = func(*given, **kwargs)
        return _unwrap_batched(out, out_dims, level.number, size, func)


def _create_batched_inputs(
    flat_in_dims: Sequence[int | None], flat_args: Sequence[Any], vmap_level: int, args_spec: TreeSpec
) -> Any:  # fmt: skip
    """Return the arguments with their mapped dimensions hidden."""
    pairs = zip(flat_args, flat_in_dims, strict=True)
    given = [t if d is None else _add_batch_dim(t, d, vmap_level) for t, d in pairs]
    return tree_unflatten(given, args_spec)


def _unwrap_batched(
    batched_outputs: Any, out_dims: Any, vmap_level: int, batch_size: int, func: Callable
) -> Any:
    """Return the results with their hidden dimensions exposed at the positions that `out_dims` names."""
    name, out = _get_name(func), batched_outputs
    flat, form = tree_flatten(out)

    def incompatible() -> NoReturn:
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of `outputs`. "
            f"out_dims has structure {tree_flatten(out_dims)[1]} but outputs has structure {form}."
        )

    places: list[Any] | None
    if isinstance(out, Tensor):
        if isinstance(out_dims, int) or out_dims is None:
            places = [out_dims]
        elif isinstance(out_dims, tuple) and len(out_dims) == 1:
            places = list(out_dims)
        else:
            incompatible()
    else:
        places = _broadcast_to_and_flatten(out_dims, form)
        if places is None:
            incompatible()
    made = [
        _maybe_remove_batch_dim(name, t, vmap_level, batch_size, place)
        for t, place in zip(flat, places, strict=True)
    ]
    return tree_unflatten(made, form)


def _maybe_remove_batch_dim(
    name: str, batched_output: Any, vmap_level: int, batch_size: int, out_dim: int | None
) -> Any:
    """Return a result with its hidden dimension exposed at `out_dim`.

    If `out_dim` is None, return the result unchanged; ValueError if it is batched.
    """
    if out_dim is None:
        if is_batched(batched_output, vmap_level):
            raise ValueError(
                f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None"
            )
        return batched_output
    if not isinstance(batched_output, Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(batched_output)}. Did you mean to set out_dims= to "
            "None for output?"
        )
    return _remove_batch_dim(batched_output, vmap_level, batch_size, out_dim)


_add_batch_dim = hide


def _remove_batch_dim(t: Any, level: int, batch_size: int, out_dim: int) -> Any:
    """Expose a result's hidden dimension at `out_dim`; a result that is not batched is expanded to have one there."""
    ndim = len(t.shape) + 1
    if not -ndim <= out_dim < ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {out_dim})"
        )
    place = out_dim % ndim
    if is_batched(t, level):
        return t.value if t.bdim == place else t.value.movedim(t.bdim, place)
    shape = list(t.shape)
    shape.insert(place, batch_size)
    return t.unsqueeze(place).expand(shape)


def _process_batched_inputs(
    in_dims: Any, args: tuple, func: Callable
) -> tuple[int, list[Any], list[Any], TreeSpec]:
    """Return the mapped dimension's size, the mapped dim of each leaf of the arguments (or None), the leaves, and their tree spec."""
    name = _get_name(func)
    if not isinstance(in_dims, int | tuple):
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): expected `in_dims` to be int or a (potentially nested) tuple "
            f"matching the structure of inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a function "
            "with no inputs. The latter is unsupported."
        )
    leaves, spec = tree_flatten(args)
    dims = _broadcast_to_and_flatten(in_dims, spec)
    head = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): "
    if dims is None:
        raise ValueError(
            f"{head}in_dims is not compatible with the structure of `inputs`. in_dims has structure {tree_flatten(in_dims)[1]} "
            f"but inputs has structure {spec}."
        )
    for i, (arg, dim) in enumerate(zip(leaves, dims, strict=True)):
        if dim is None:
            continue
        if not isinstance(dim, int):
            raise ValueError(
                f"{head}Got in_dim={dim} for an input but in_dim must be either an integer dimension or None."
            )
        if not isinstance(arg, Tensor):
            raise ValueError(
                f"{head}Got in_dim={dim} for an input but the input is of type {type(arg)}. We cannot vmap over non-Tensor "
                "arguments, please use None as the respective in_dim"
            )
        ndim = len(arg.shape)
        if not -ndim <= dim < ndim:
            raise ValueError(
                f"{head}Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {ndim} so expected in_dim "
                f"to satisfy -{ndim} <= in_dim < {ndim}."
            )
        dims[i] = dim % ndim
    return _size(dims, leaves), dims, leaves, spec


def _size(dims: Sequence[int | None], leaves: Sequence[Any]) -> int:
    """Return the size of the mapped dimension; ValueError if the arguments have none, or different ones."""
    sizes = [t.shape[d] for t, d in zip(leaves, dims, strict=True) if d is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(n != sizes[0] for n in sizes):
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped dimension"
        )
    return sizes[0]


def _get_name(func: Any) -> str:
    """Return the function's name in error texts."""
    if hasattr(func, "__name__"):
        return func.__name__
    if isinstance(func, functools.partial):
        return f"functools.partial({_get_name(func.func)}, ...)"
    return repr(func)
