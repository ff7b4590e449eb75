"""`torch.utils.checkpoint`: trade time for memory. Tensors a function would save for backward are recomputed when needed.

Built on saved-tensor hooks: in the forward pass each saved tensor is replaced by its number; the first one that
backward unpacks makes the function run again, with the random numbers of its first run, and the tensors saved by this
second run are collected.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .. import cuda
from ..amp import autocast
from ..amp import state as casts
from ..autograd import Function, backward, enable_grad, is_grad_enabled, no_grad
from ..autograd.mode import GRAD
from ..autograd.saved import saved_tensors_hooks
from ..creation import empty
from ..ops.random.generator import default_for
from ..runtime import device
from ..tensor import Tensor
from ._pytree import tree_leaves
from .selective_checkpoint import (
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)

__all__ = [
    "CheckpointError",
    "CheckpointPolicy",
    "DefaultDeviceType",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_device_states",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
]

_EARLY_STOP = True


class DefaultDeviceType:
    """The type of device whose random state `checkpoint` keeps if no argument says it: stored, as states of all are kept."""

    _type = "cuda"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Store a type."""
        DefaultDeviceType._type = device

    @staticmethod
    def get_device_type() -> str:
        """Return the type."""
        return DefaultDeviceType._type


class CheckpointError(RuntimeError):
    """The second run of a function saved other tensors than the first."""


class _Enough(Exception):
    """Raised to end the second run early: all tensors that backward needs have been recomputed."""


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the inputs with each tensor detached, as a leaf with the same `requires_grad`."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            "Only tuple of tensors is supported. Got Unsupported input type: ",
            type(inputs).__name__,
        )
    return tuple([_apart(x) if isinstance(x, Tensor) else x for x in inputs])


def _apart(x: Tensor) -> Tensor:
    """Return a detached tensor of the same elements that requires grad if `x` does."""
    made = x.detach()
    made.requires_grad = x.requires_grad
    return made


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn if no tensor among the inputs requires grad."""
    if not any(x.requires_grad for x in inputs if isinstance(x, Tensor)):
        warnings.warn(
            "None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2
        )


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Set, for the block, whether recomputation ends as soon as all tensors that backward needs are there."""
    global _EARLY_STOP
    previous, _EARLY_STOP = _EARLY_STOP, enable
    try:
        yield
    finally:
        _EARLY_STOP = previous


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Accept torch's setting in place of `debug`, for the block; as `debug` itself, it adds nothing to errors here."""
    yield


_IMPLICIT = (
    "{}: the use_reentrant parameter should be passed explicitly. {} use_reentrant=False is "
    "recommended, but if you need to preserve the current default behavior, you can pass "
    "use_reentrant=True. Refer to docs for more details on the differences between the two variants."
)


def noop_context_fn() -> tuple[Any, Any]:
    """Return two contexts that do nothing: the default `context_fn`."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """Return the indices of the GPUs that hold tensors in the arguments, and the states of their generators."""
    places = [a.device for a in tree_leaves(args) if isinstance(a, Tensor)]
    ids = [p.index or 0 for p in places if p.type not in ("cpu", "meta")]
    return ids, [cuda.get_rng_state(i) for i in ids]


def set_device_states(
    devices: Iterable[int], states: Iterable[Tensor], *, device_type: str | None = None
) -> None:
    """Restore the states of GPUs' generators, as `get_device_states` returned them."""
    if device_type == "meta":
        return
    for index, state in zip(devices, states, strict=False):
        cuda.set_rng_state(state, index)


class _RandomState:
    """Seeds and counters of the generators that a function on some arguments may draw from."""

    def __init__(self, args: tuple[Any, ...]) -> None:
        places = {device("cpu"), *(a.device for a in args if isinstance(a, Tensor))}
        self.states = [(g := default_for(p), g.clone_state()) for p in places]

    @contextlib.contextmanager
    def again(self) -> Iterator[None]:
        """Repeat in the block the random numbers drawn since this object was made.

        Afterwards restore the present states.
        """
        now = [(g, g.clone_state()) for g, _ in self.states]
        self._set(self.states)
        try:
            yield
        finally:
            self._set(now)

    @staticmethod
    def _set(states: list[Any]) -> None:
        for generator, state in states:
            generator.go_back(state)


class _Casting:
    """A snapshot of the autocast settings of all device types."""

    def __init__(self) -> None:
        self.modes = {kind: self._now(kind) for kind in casts.DEVICE_TYPES}

    @staticmethod
    def _now(kind: str) -> tuple[Any, ...]:
        switch = casts.is_autocast_enabled(kind)
        return switch, casts.get_autocast_dtype(kind), casts.is_autocast_cache_enabled()

    @contextlib.contextmanager
    def again(self) -> Iterator[None]:
        """Apply the settings of the snapshot in the block."""
        with contextlib.ExitStack() as stack:
            for kind, (switch, dt, cache) in self.modes.items():
                if self._now(kind) != (switch, dt, cache):
                    stack.enter_context(autocast("opencl" if kind == "cuda" else kind, dt, switch, cache))  # fmt: skip
            yield


class _Frame:
    """One call under `checkpoint`: how to run the function again, and the tensors that the last run saved."""

    def __init__(
        self, run: Callable[[], Any], early_stop: bool, check: Callable[[Tensor], Any]
    ) -> None:
        self.run, self.early_stop, self.check = run, early_stop, check
        self.facts: list[Any] = []  # metadata of each tensor saved in the first run
        self.values: dict[int, Tensor] = {}
        self.done = False  # whether the first run has ended; gradients taken inside that run may unpack before

    def pack(self, t: Tensor) -> int:
        self.facts.append(self.check(t))
        return len(self.facts) - 1

    def unpack(self, number: int) -> Tensor:
        if number not in self.values:
            self._recompute()
        return self.values.pop(number)

    def _recompute(self) -> None:
        found: list[Tensor] = []

        def keep(t: Tensor) -> Tensor:
            found.append(t.detach() if t.requires_grad else t)
            if self.early_stop and len(found) == len(self.facts):
                raise _Enough
            return t

        try:
            with enable_grad(), saved_tensors_hooks(keep, lambda t: t):
                self.run()
        except _Enough:
            pass
        if not self.done:
            del found[len(self.facts) :]
        if len(found) != len(self.facts):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(self.facts)}\n"
                f"Number of tensors saved during recomputation: {len(found)}."
            )
        wrong = [
            f"tensor at position {i}:\nsaved metadata: {fact}\nrecomputed metadata: {self.check(t)}\n"
            for i, (fact, t) in enumerate(zip(self.facts, found, strict=True))
            if fact != self.check(t)
        ]
        if wrong:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during "
                f"the forward pass.\n{''.join(wrong)}."
            )
        self.values = dict(enumerate(found))


def _metadata(t: Tensor) -> dict[str, Any]:
    return {"shape": t.shape, "dtype": t.dtype, "device": t.device}


class _Held(Function):
    """Keeps the second run's arguments as saved tensors of a node, so that in-place writes to them are detected."""

    @staticmethod
    def forward(ctx: Any, tied: Tensor, *args: Any) -> Tensor:
        ctx.save_for_backward(*[a for a in args if isinstance(a, Tensor)])
        ctx.plain = [(isinstance(a, Tensor), None if isinstance(a, Tensor) else a) for a in args]
        return tied.new_empty(0)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise AssertionError("only keeps tensors")


class CheckpointFunction(Function):
    """The reentrant variant: a node whose backward runs the function again, and a backward pass through that run."""

    @staticmethod
    def forward(ctx: Any, function: Any, preserve: bool, *args: Any) -> Any:
        if not any(a.requires_grad for a in args if isinstance(a, Tensor)):
            warnings.warn(
                "None of the inputs have requires_grad=True. Gradients will be None", stacklevel=4
            )
        ctx.function, ctx.args = function, args
        ctx.state, ctx.casting = _RandomState(args) if preserve else None, _Casting()
        ctx.save_for_backward(*(a for a in args if isinstance(a, Tensor)))
        with no_grad():
            return function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if GRAD.task.wanted is not None:
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or "
                "passing an `inputs` parameter to .backward(). To resolve this error, you can either "
                "set use_reentrant=False, or call .backward() without passing the `inputs` argument."
            )
        saved = iter(ctx.saved_tensors)
        args = []
        for a in ctx.args:
            if isinstance(a, Tensor):
                a = _apart(next(saved))
            args.append(a)
        again = ctx.state.again() if ctx.state else contextlib.nullcontext()
        with enable_grad(), ctx.casting.again(), again:
            outputs = ctx.function(*args)
        outputs = (outputs,) if isinstance(outputs, Tensor) else outputs
        pairs = [
            (o, g)
            for o, g in zip(outputs, grads, strict=True)
            if isinstance(o, Tensor) and o.requires_grad
        ]
        if not pairs:
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not necessary"
            )
        backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, *(a.grad if isinstance(a, Tensor) else None for a in args))


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Call a function without keeping what it saves for backward; backward runs it again, with the same random numbers.

    With `preserve_rng_state=False` the second run draws new random numbers. `context_fn` returns the contexts of the
    first and of the second run. With `determinism_check="none"` only the number of tensors that both runs save is
    compared, not shapes, dtypes and devices. With `use_reentrant=True`, the default with a warning, the second run is
    followed by a backward pass of its own, and the function takes no keyword arguments.
    """
    if use_reentrant is None:
        starting = "Starting in PyTorch 2.9, calling checkpoint without use_reentrant will raise an exception."
        warnings.warn(_IMPLICIT.format("torch.utils.checkpoint", starting), stacklevel=2)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug:
            raise ValueError(
                "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
            )
        return CheckpointFunction.apply(function, preserve, *args)
    if determinism_check not in ("default", "none"):
        raise ValueError(
            "determinism_check should be one of ['default', 'none'], but got " + determinism_check
        )
    first, second = context_fn()
    if not is_grad_enabled():
        with first:
            return function(*args, **kwargs)
    drawn = _RandomState((*args, *kwargs.values())) if preserve else None
    casting = _Casting()

    held = _Held.apply(empty(0, requires_grad=True), *args).grad_fn

    def again() -> None:
        saved = iter(held.saved_tensors)
        given = [next(saved) if kept else a for kept, a in held.plain]
        with drawn.again() if drawn else contextlib.nullcontext(), casting.again(), second:
            function(*given, **kwargs)

    check = _metadata if determinism_check == "default" else (lambda t: None)
    frame = _Frame(again, early_stop and _EARLY_STOP, check)
    with saved_tensors_hooks(frame.pack, frame.unpack), first:
        out = function(*args, **kwargs)
    frame.done = True
    return out


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Call functions (or the modules of a Sequential) one after the other, all but the last of `segments` parts under `checkpoint`."""
    if use_reentrant is None:
        starting = "In version 2.9 we will raise an exception if use_reentrant is not passed."
        where = "torch.utils.checkpoint.checkpoint_sequential"
        warnings.warn(_IMPLICIT.format(where, starting), stacklevel=2)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    parts = list(functions.children() if hasattr(functions, "children") else functions)
    size = len(parts) // segments

    def chain(some: list[Any]) -> Callable[[Any], Any]:
        def run(value: Any) -> Any:
            for fn in some:
                value = fn(value)
            return value

        return run

    at = size * (segments - 1)
    for start in range(0, at, size) if size else ():
        input = checkpoint(
            chain(parts[start : start + size]),
            input,
            use_reentrant=use_reentrant,
            preserve_rng_state=preserve,
        )
    return chain(parts[at:])(input)
