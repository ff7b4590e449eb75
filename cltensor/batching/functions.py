"""Rules for custom autograd Functions: call their `vmap` staticmethod, or map forward, backward and jvp (`generate_vmap_rule`)."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..autograd.function import Function, by_position
from ..utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_map, tree_unflatten
from .batched import Batched, first, hide
from .calls import Aside, Call, rule
from .levels import opened, without

_MORE = "For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"


class VmapInfo(NamedTuple):
    """The `info` argument of a Function's `vmap` staticmethod."""

    batch_size: int
    randomness: str


@rule("Function.apply")
def apply(call: Call, cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Run a Function whose arguments are batched."""
    own = cls.vmap is not Function.vmap
    if cls.setup_context is Function.setup_context:
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override the "
            f"setup_context staticmethod. {_MORE}"
        )
    args = by_position(cls, args, kwargs)
    if cls.generate_vmap_rule:
        if own:
            raise RuntimeError(
                f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an overridden vmap staticmethod. "
                f"Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid ambiguity. {_MORE}"
            )
        return _whole(call, cls, args)
    if not own:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override and implement the vmap "
            f"staticmethod or set generate_vmap_rule=True. {_MORE}"
        )
    in_dims = tree_map(lambda t: t.bdim if call.here(t) else None, args)
    given = tree_map(lambda t: t.value if call.here(t) else t, args)
    with without(call.level):
        result = cls.vmap(VmapInfo(call.size, call.randomness), in_dims, *given)
    text = (
        "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure compatible with the "
        "output. "
    )
    if not isinstance(result, tuple):
        raise RuntimeError(f"{text}Got a {type(result)} instead")
    if len(result) != 2:
        raise RuntimeError(f"{text}Got {len(result)} returns instead")
    out, out_dims = result
    flat, spec = tree_flatten(out)
    dims = _broadcast_to_and_flatten(out_dims, spec)
    if dims is None:
        raise RuntimeError(
            f"The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple. Expected "
            f"out_dims={out_dims} to be compatible with the structure of `output`. out_dims has structure "
            f"{tree_flatten(out_dims)[1]} but output has structure {spec}. {_MORE}"
        )
    made = [t if d is None else hide(t, d % t.dim(), call.level) for t, d in zip(flat, dims, strict=True)]  # fmt: skip
    return tree_unflatten(made, spec)


@rule("Operator.__call__")
def operator(call: Call, op: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a user-defined operator for each slice: its body may run code that is not intercepted, NumPy's say."""
    return call.loop()


class _Context:
    """The `ctx` of a mapped Function's methods: saves underlying tensors, returns them with their dims hidden."""

    def __init__(self, real: Any, number: int) -> None:
        self.__dict__["_real"], self.__dict__["_number"] = real, number

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._real, name, value)

    def _beneath(self, ts: Any) -> tuple[list[Any], list[int | None]]:
        """Return the underlying tensors, and the position of each one's hidden dim (None if it is not batched)."""
        own = [t.__class__ is Batched and t.level == self._number for t in ts]
        values = [t.value if o else t for t, o in zip(ts, own, strict=True)]
        return values, [t.bdim if o else None for t, o in zip(ts, own, strict=True)]

    def save_for_backward(self, *ts: Any) -> None:
        values, self._real._hidden_dims = self._beneath(ts)
        self._real.save_for_backward(*values)

    def save_for_forward(self, *ts: Any) -> None:
        values, self._real._hidden_dims = self._beneath(ts)
        self._real.save_for_forward(*values)

    def mark_dirty(self, *ts: Any) -> None:
        self._real.mark_dirty(*self._beneath(ts)[0])

    def mark_non_differentiable(self, *ts: Any) -> None:
        self._real.mark_non_differentiable(*self._beneath(ts)[0])

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        pairs = zip(self._real.saved_tensors, self._real._hidden_dims, strict=True)
        return tuple([t if d is None else hide(t, d, self._number) for t, d in pairs])


def _hidden(ts: Any, dims: Any, number: int) -> list[Any]:
    """Return the tensors with these dims hidden at a level; those whose dim is None, and None, as they are."""
    return [
        t if d is None or t is None else hide(t, d, number) for t, d in zip(ts, dims, strict=True)
    ]


def _shown(t: Any, number: int, dim: int | None, size: int) -> Any:
    """Return a gradient or tangent with the batch dim at `dim`: moved or expanded to it.

    If `dim` is None, the gradient is summed over the batch.
    """
    if not hasattr(t, "_vc"):
        return t
    own = t.__class__ is Batched and t.level == number
    if dim is None:
        return first(t.value, t.bdim).sum(0) if own else t
    if not own:
        return t.unsqueeze(dim).expand([*t.shape[:dim], size, *t.shape[dim:]])
    return t.value if t.bdim == dim else t.value.movedim(t.bdim, dim)


def _whole(call: Call, cls: Any, args: tuple) -> Any:
    """Apply a new Function, whose methods run those of `cls` under a level each, to the underlying tensors."""
    flat, spec = tree_flatten(args)
    in_dims = [t.bdim if call.here(t) else None for t in flat]
    size, randomness = call.size, call.randomness
    form: Any = None
    out_dims: list[int | None] = []

    def through(formula: Any, ctx: Any, given: Any, dims: Any, found_dims: Any) -> tuple:
        """Run `cls`'s backward or jvp under a level; `dims`, `found_dims`: the batch dims of arguments and results."""
        with Aside(), opened(size, randomness) as level:
            found = formula(_Context(ctx, level.number), *_hidden(given, dims, level.number))
            found = found if isinstance(found, tuple) else (found,)
            return tuple(
                [_shown(t, level.number, d, size) for t, d in zip(found, found_dims, strict=True)]
            )

    class Mapped(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(*values: Any) -> Any:
            nonlocal form
            with Aside(), opened(size, randomness) as level:
                given = tree_unflatten(_hidden(values, in_dims, level.number), spec)
                outs, form = tree_flatten(cls.forward(*given))
                out_dims[:] = [t.bdim if t.__class__ is Batched and t.level == level.number else None for t in outs]  # fmt: skip
            return tuple([t if d is None else t.value for t, d in zip(outs, out_dims, strict=True)])

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            with Aside(), opened(size, randomness) as level:
                given = tree_unflatten(_hidden(inputs, in_dims, level.number), spec)
                outs = tree_unflatten(_hidden(output, out_dims, level.number), form)
                cls.setup_context(_Context(ctx, level.number), given, outs)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return through(cls.backward, ctx, grads, out_dims, in_dims)

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            return through(cls.jvp, ctx, tangents, in_dims, out_dims)

    Mapped.__name__ = Mapped.__qualname__ = f"Vmapped{cls.__name__}"
    with without(call.level):
        outs = Mapped.apply(
            *[t.value if d is not None else t for t, d in zip(flat, in_dims, strict=True)]
        )
    return tree_unflatten(_hidden(outs, out_dims, call.level), form)
