"""Selective checkpointing: a policy decides for each operation whether its result is kept or recomputed. Part of `checkpoint`.

The contexts intercept calls of public functions, and give the policy the names of the operators that torch would run
for them. An operation whose result is kept does not run again: instead the tensors that it saved for backward are saved
again, in the same order, taken from its arguments and the kept result.
"""

from __future__ import annotations

import enum
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any

from ..autograd.mode import GRAD
from ..autograd.saved import saved_tensors_hooks
from ..ops.aten import Overload, aten
from ..subclasses import TorchFunctionMode
from ..tensor import Tensor
from ._pytree import tree_leaves, tree_map


class CheckpointPolicy(enum.Enum):
    """Whether an operation's result is kept.

    PREFER and MUST are the same here (compilers distinguish them); offloading just keeps.
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_AGAIN = (CheckpointPolicy.MUST_RECOMPUTE, CheckpointPolicy.PREFER_RECOMPUTE)


class SelectiveCheckpointContext:
    """The context passed to a policy: whether this is the second run of the function."""

    def __init__(self, *, is_recompute: bool) -> None:
        self.is_recompute = is_recompute


def _operator(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Overload:
    """Return the name of the operator that torch runs for a call of a function."""
    name = getattr(func, "__name__", "")
    name = name.strip("_") if name.startswith("__") else name
    if name in ("linear", "matmul"):
        bias = args[2] if len(args) > 2 else kwargs.get("bias")
        left = args[0] if args else kwargs["input"]
        right = args[1] if len(args) > 1 else kwargs.get("weight", kwargs.get("other"))
        if name == "linear":
            name = "addmm" if bias is not None else "mm"
        elif left.ndim == 1 or right.ndim == 1:
            name = "dot" if left.ndim == right.ndim else "mv"
        else:
            name = "mm" if right.ndim == 2 else "bmm"
    elif name.startswith("conv"):
        name = "convolution"
    elif name == "scaled_dot_product_attention":
        name = "_scaled_dot_product_flash_attention_for_cpu"
    return getattr(aten, name).default


class _Kept:
    """A kept result, and for each tensor that the operation saved for backward, where the second run takes it from.

    `plan` lists these sources: ("given", index among the arguments' tensors), ("made", index among the result's) or
    ("own", the tensor).
    """

    def __init__(self, result: Any, plan: list[tuple[str, Any]]) -> None:
        self.plan = plan
        self.versions = [t._version for t in tree_leaves(result) if isinstance(t, Tensor)]
        self.result = tree_map(lambda t: _apart(t) if isinstance(t, Tensor) else t, result)

    def check(self) -> None:
        """Raise RuntimeError if a kept tensor has been written to since."""
        now = [t._version for t in tree_leaves(self.result) if isinstance(t, Tensor)]
        if now != self.versions:
            raise RuntimeError(
                "Tensor cached during selective activation checkpoint has been mutated. Set allow_cache_entry_mutation=True to bypass."
            )


def _apart(t: Tensor) -> Tensor:
    return t.detach().requires_grad_(t.requires_grad) if t.dtype.is_floating_point or t.dtype.is_complex else t.detach()  # fmt: skip


def _alike(a: Tensor, b: Tensor) -> bool:
    return a._storage is b._storage and a.shape == b.shape and a.stride() == b.stride() and a.storage_offset() == b.storage_offset()  # fmt: skip


class _Store:
    """State shared by both runs: for each operation, its kept results in the order of calls, None for one to recompute."""

    def __init__(self, policy: Callable[..., Any], mutation: bool) -> None:
        self.policy, self.mutation = policy, mutation
        self.calls: dict[Overload, deque[_Kept | None]] = defaultdict(deque)


class _Keeping(TorchFunctionMode):
    """The mode of the first run: keeps the results that the policy wants kept."""

    def __init__(self, store: _Store) -> None:
        self.store = store

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run a function, and keep its result if the policy says so."""
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") == "__get__":
            return func(*args, **kwargs)
        operator = _operator(func, args, kwargs)
        context = SelectiveCheckpointContext(is_recompute=False)
        wanted = self.store.policy(context, operator, *args, **kwargs)
        outer = GRAD.pack
        if isinstance(wanted, bool):
            wanted = CheckpointPolicy.MUST_SAVE if wanted else CheckpointPolicy.PREFER_RECOMPUTE
        if wanted in _AGAIN or outer is None:
            self.store.calls[operator].append(None)
            return func(*args, **kwargs)
        saved: list[Any] = []

        def pack(t: Tensor) -> Any:
            number = outer[0](t)
            saved.append(t)
            return number

        with saved_tensors_hooks(pack, outer[1]):
            result = func(*args, **kwargs)
        given = [t for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
        made = [t for t in tree_leaves(result) if isinstance(t, Tensor)]
        plan = [_source(t, given, made) for t in saved]
        self.store.calls[operator].append(_Kept(result, plan))
        return result


def _source(t: Tensor, given: list[Tensor], made: list[Tensor]) -> tuple[str, Any]:
    for kind, tensors in (("given", given), ("made", made)):
        for i, other in enumerate(tensors):
            if _alike(t, other):
                return kind, i
    return "own", t.detach()  # neither an argument nor a result, so it is kept itself


class _Giving(TorchFunctionMode):
    """The mode of the second run: returns kept results, and saves for backward what their operations saved."""

    def __init__(self, store: _Store) -> None:
        self.store = store

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Return the kept result of a function; run it where there is none."""
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") == "__get__":
            return func(*args, **kwargs)
        operator = _operator(func, args, kwargs)
        calls = self.store.calls.get(operator)
        if calls is None:
            raise RuntimeError(f"{operator} encountered during backward, but not found in storage")
        if not calls:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any region computed under selective "
                "activation checkpoint."
            )
        kept = calls.popleft()
        if kept is None:
            return func(*args, **kwargs)
        if not self.store.mutation:
            kept.check()
        given = [t for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
        made = [t for t in tree_leaves(kept.result) if isinstance(t, Tensor)]
        for kind, value in kept.plan:
            GRAD.pack[0](
                given[value] if kind == "given" else made[value] if kind == "made" else value
            )
        return kept.result


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> tuple[_Keeping, _Giving]:
    """Return the contexts of `checkpoint(context_fn=)` that keep the results of some operations.

    policy_fn_or_list: operators whose results are kept, as `[torch.ops.aten.mm.default]`, or a function of a
    `SelectiveCheckpointContext`, an operator and its arguments that returns a `CheckpointPolicy`. RuntimeError in backward where a
    kept tensor was written to, unless that is allowed.
    """
    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            if not isinstance(op, Overload):
                raise ValueError(
                    f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}. "
                )
        listed = list(policy_fn_or_list)

        def policy(ctx: Any, op: Overload, *args: Any, **kwargs: Any) -> CheckpointPolicy:
            return CheckpointPolicy.MUST_SAVE if op in listed else CheckpointPolicy.PREFER_RECOMPUTE

    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    store = _Store(policy, allow_cache_entry_mutation)
    return _Keeping(store), _Giving(store)
