"""`Reducer`: gradients of a replica averaged over all processes while backward goes on.

Parameters are divided into buckets, the last parameters first, as their gradients are ready in about that order. A
gradient is copied to its place in the bucket as soon as it is accumulated. The reduction of a bucket is begun when the
bucket is full and those of all buckets before it have been begun: the same order in every process. When the last one
has been begun, the end of backward waits for all of them and writes the results to the gradients.

Owns buckets, which gradients are ready, and the reductions. Must not know modules.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from .. import dtypes
from ..autograd import no_grad
from ..autograd.engine import queue_callback
from ..futures import Future
from ..layouts import is_non_overlapping_and_dense
from ..ops.row import FUNCTIONS
from .collectives import all_reduce

__all__ = ["FIRST_BUCKET", "GradBucket", "Reducer", "broadcast_coalesced"]

FIRST_BUCKET = 1 << 20  # bytes; small, so that the first reduction begins early

_UNFINISHED = (
    "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that your module has parameters "
    "that were not used in producing loss. You can enable unused parameter detection by passing the keyword argument `find_unused_parameters=True` "
    "to `torch.nn.parallel.DistributedDataParallel`, and by \nmaking sure all `forward` function outputs participate in calculating loss. \n"
    "If you already have done the above, then the distributed data parallel module wasn't able to locate the output tensors in the return value of "
    "your module's `forward` function. Please include the loss function and the structure of the return value of `forward` of your module when "
    "reporting this issue (e.g. list, dict, iterable)."
)
_HINT = (
    "\n In addition, you can set the environment variable TORCH_DISTRIBUTED_DEBUG to either INFO or DETAIL to print out information about which "
    "particular parameters did not receive gradient on this rank as part of this error"
)
_TWICE = (
    "Expected to mark a variable ready only once. This error is caused by one of the following reasons: 1) Use of a module parameter outside the "
    "`forward` function. Please make sure model parameters are not shared across multiple concurrent forward-backward passes. or try to use "
    "_set_static_graph() as a workaround if this module graph does not change during training loop.2) Reused parameters in multiple reentrant "
    "backward passes. For example, if you use multiple `checkpoint` functions to wrap the same part of your model, it would result in the same set "
    "of parameters been used by different reentrant backward passes multiple times, and hence marking a variable ready multiple times. DDP does "
    "not support such use cases in default. You can try to use _set_static_graph() as a workaround if your module graph does not change over "
    "iterations."
)


class GradBucket:
    """The argument of a communication hook: the gradients of some parameters, side by side in one buffer."""

    def __init__(
        self, index: int, last: bool, buffer: Any, views: list[Any], parameters: list[Any]
    ) -> None:
        self._index, self._last, self._buffer = index, last, buffer
        self._views, self._parameters = views, parameters

    def index(self) -> int:
        """Return the bucket's number: the order in which buckets are reduced."""
        return self._index

    def buffer(self) -> Any:
        """Return the gradients as a tensor of one dimension."""
        return self._buffer

    def gradients(self) -> list[Any]:
        """Return views of the buffer, one for each parameter's gradient."""
        return self._views

    def parameters(self) -> list[Any]:
        """Return the parameters."""
        return self._parameters

    def is_last(self) -> bool:
        """Tell whether no bucket follows."""
        return self._last

    def set_buffer(self, buffer: Any) -> None:
        """Replace the buffer, for the hook that this one wraps."""
        self._buffer = buffer


class _Bucket:
    """A buffer for the gradients of some parameters, all of one dtype and device; a sparse gradient has a bucket of its
    own.
    """

    def __init__(self, indices: list[int], parameters: Sequence[Any], sparse: bool) -> None:
        self.indices, self.sparse = indices, sparse
        self.parameters = [parameters[i] for i in indices]
        self.left = len(indices)
        self.result: Future[Any] | None = None
        first = self.parameters[0]
        if sparse:
            self.buffer, self.views = first, [first]  # placeholders until there is a gradient
            return
        total = sum(p.numel() for p in self.parameters)
        self.buffer = FUNCTIONS["zeros"]((total,), dtype=first.dtype, device=first.device)
        self.buffer._storage.buffer()
        self.buffer._storage.pinned = True
        self.views, at = [], 0
        for p in self.parameters:
            size = p.numel()
            part = self.buffer[at : at + size]
            permuted = not p.is_contiguous() and is_non_overlapping_and_dense(p.shape, p.stride())
            self.views.append(
                part.as_strided(p.shape, p.stride()) if permuted else part.view(p.shape)
            )
            at += size


def assign(
    parameters: Sequence[Any], first: int, most: int, sparse: Sequence[int] = ()
) -> list[list[int]]:
    """Divide parameters into buckets, the last parameters first; return the numbers of each bucket's parameters.

    A bucket is closed when it has reached `first` bytes (the first of its dtype and device) or `most` (the others).
    sparse: the parameters with sparse gradients, which have a bucket each.
    """
    found: list[list[int]] = []
    # By kind: the open bucket, its bytes, its limit.
    open_ones: dict[Any, tuple[list[int], int, int]] = {}
    for i in reversed(range(len(parameters))):
        p = parameters[i]
        if i in sparse:
            found.append([i])
            continue
        kind = (p.dtype, p.device)
        bucket, size, limit = open_ones.get(kind, ([], 0, first))
        if not bucket:
            found.append(bucket)
        bucket.append(i)
        size += p.numel() * p.element_size()
        open_ones[kind] = ([], 0, most) if size >= limit else (bucket, size, limit)
    return [sorted(bucket) for bucket in found]


def _as_sparse(grad: Any, p: Any) -> Any:
    """Return a gradient as a sparse tensor; an empty one where there is none."""
    if grad is None:
        grad = p.detach().new_zeros(p.shape)
    return grad.to_sparse(1) if grad._strided else grad


def _telling(reducer: weakref.ref[Reducer], i: int) -> Callable[[Any], None]:
    """Return the hook of a parameter.

    It holds the reducer weakly, so that parameters do not keep it alive after its module.
    """

    def tell(_: Any) -> None:
        there = reducer()
        if there is not None:
            there._arrived(i)

    return tell


class Reducer:
    """Averages the gradients of one replica over all replicas.

    find_unused: parameters without a gradient at the end of backward count as unused. static: which parameters get
    gradients, and how often, is recorded in the first pass and the same in all others. as_view: gradients are views of
    the buckets.
    """

    def __init__(
        self,
        parameters: Sequence[Any],
        group: Any,
        cap: int,
        first: int,
        find_unused: bool,
        as_view: bool,
        sparse: Sequence[int] = (),
    ) -> None:
        self.parameters, self.group = list(parameters), group
        self.find_unused, self.as_view, self.static = find_unused, as_view, False
        self.divisor = float(group.size())
        self.hook: tuple[Any, Callable[[Any, GradBucket], Any]] | None = None
        with no_grad():
            self.buckets = [
                _Bucket(b, self.parameters, b[0] in sparse)
                for b in assign(self.parameters, first, cap, sparse)
            ]
        self._place = {
            i: (bucket, k) for bucket in self.buckets for k, i in enumerate(bucket.indices)
        }
        self._expects = False  # whether a forward has announced a backward
        self._begun: list[_Bucket] = []
        self._ready: set[int] = set()
        # Gradients accumulated in this pass, per parameter.
        self._fired = [0] * len(self.parameters)
        # The same in each pass of a static graph, known after its first.
        self._times: list[int] | None = None
        # Parameters with gradients in this process since the last reduction.
        self._used: set[int] = set()
        self._ends = False  # whether `_end` is queued for the end of this backward
        self._handles = [
            p.register_post_accumulate_grad_hook(_telling(weakref.ref(self), i))
            for i, p in enumerate(self.parameters)
        ]

    def __del__(self) -> None:
        for handle in getattr(self, "_handles", ()):
            handle.remove()

    def set_hook(self, state: Any, hook: Callable[[Any, GradBucket], Any]) -> None:
        """Let a hook reduce the buckets. RuntimeError for a second one."""
        if self.hook is not None:
            raise RuntimeError(
                "register_comm_hook or register_builtin_comm_hook can only be called once."
            )
        self.hook = (state, hook)

    # --- one pass

    def prepare(self) -> None:
        """Expect a backward. RuntimeError, in torch's words, if the last one left parameters without gradients."""
        if self._expects and self._ready and len(self._ready) < len(self.parameters):
            missing = [i for i in range(len(self.parameters)) if i not in self._ready]
            text = f"\nParameter indices which did not receive grad for rank {self.group.rank()}: {' '.join(map(str, missing))}"
            raise RuntimeError(_UNFINISHED + text + _HINT)
        self._expects, self._ends = True, False
        self._ready.clear()
        self._begun.clear()
        self._fired = [0] * len(self.parameters)
        for bucket in self.buckets:
            bucket.left, bucket.result = len(bucket.indices), None

    def prepare_for_backward(self, outputs: Sequence[Any] = ()) -> None:
        """Expect a backward from a forward that did not announce one: libraries call this that end `no_sync` after the
        forward.
        """
        self.prepare()

    @property
    def waits_for_end(self) -> bool:
        """Whether only the end of backward shows which parameters get gradients."""
        return self.find_unused or (self.static and self._times is None)

    def at_end(self) -> None:
        """Have `_end` called at the end of this backward: parameters without a gradient then count as unused."""
        if self._expects and not self._ends:
            self._ends = True
            queue_callback(self._end)

    def _arrived(self, i: int) -> None:
        """Note that a gradient has been accumulated."""
        self._used.add(i)
        if not self._expects:
            return
        self._fired[i] += 1
        if self.waits_for_end:
            self.at_end()  # in case no hook of an output has
        if self.static:
            if self._times is None:
                return
            if not self._ready:  # do not wait for parameters that never get a gradient
                for never in [k for k, n in enumerate(self._times) if not n]:
                    self._mark(never)
            if self._fired[i] < self._times[i]:
                return
        elif i in self._ready:
            raise RuntimeError(_TWICE)
        self._mark(i)
        if len(self._begun) == len(self.buckets) and not self._ends:
            queue_callback(self._finish)

    def _mark(self, i: int) -> None:
        """Copy a final gradient to its bucket, and begin the reductions that can be begun."""
        if i in self._ready:
            return
        self._ready.add(i)
        bucket, k = self._place[i]
        grad, view = self.parameters[i].grad, bucket.views[k]
        with no_grad():
            if bucket.sparse:
                bucket.buffer = self._scaled(_as_sparse(grad, self.parameters[i])).detach()
                bucket.views = [bucket.buffer]
            elif grad is None:
                view.zero_()
            elif not grad._strided:
                raise RuntimeError(
                    "DistributedDataParallel: sparse gradients are not reduced; use dense ones (sparse=False)"
                )
            else:
                scaled = self._scaled(grad)
                if scaled is not view:
                    view.copy_(scaled.detach())
        bucket.left -= 1
        while len(self._begun) < len(self.buckets) and not self.buckets[len(self._begun)].left:
            self._begin(self.buckets[len(self._begun)])

    def _scaled(self, grad: Any) -> Any:
        return grad if self.hook is not None else grad * (1.0 / self.divisor)

    def _begin(self, bucket: _Bucket) -> None:
        number = len(self._begun)
        self._begun.append(bucket)
        with no_grad():
            if self.hook is None:
                bucket.result = self.group.allreduce([bucket.buffer]).get_future()
                return
            state, hook = self.hook
            shown = GradBucket(
                number, bucket is self.buckets[-1], bucket.buffer, bucket.views, bucket.parameters
            )
            result = hook(state, shown)
        if not isinstance(result, Future):
            raise RuntimeError(
                "DDP communication hook's callback must return a torch.futures.Future object, but got "
                f"{type(result).__module__}.{type(result).__name__}"
            )
        bucket.result = result

    def _end(self) -> None:
        """End a backward: parameters without a gradient get none any more."""
        if self.static and self._times is None:
            self._times = list(self._fired)
        for i in range(len(self.parameters)):
            self._mark(i)
        self._finish()

    def _finish(self) -> None:
        """Wait for all buckets and write the gradients."""
        unused = self._unused_everywhere()
        with no_grad():
            for bucket in self.buckets:
                assert bucket.result is not None
                value = bucket.result.wait()
                value = value[0] if isinstance(value, list | tuple) else value
                if bucket.sparse:
                    if bucket.indices[0] not in unused:
                        bucket.parameters[0].grad = value
                    continue
                if value is not bucket.buffer:
                    bucket.buffer.copy_(value)
                for i, p, view in zip(bucket.indices, bucket.parameters, bucket.views):
                    if i not in unused:
                        self._write(p, view)
        self._expects = False
        self._used.clear()

    def _write(self, p: Any, view: Any) -> None:
        if self.as_view:
            p.grad = view
        elif p.grad is None:
            p.grad = view.clone()
        else:
            p.grad.copy_(view)

    def _unused_everywhere(self) -> set[int]:
        """Return the parameters that no process used."""
        here = {i for i in range(len(self.parameters)) if i not in self._used}
        if self.static and not self.find_unused:
            return here
        if not self.find_unused:
            return set()
        counts = self._used_map(self._used)
        all_reduce(counts, group=self.group)
        return {i for i, n in enumerate(counts.tolist()) if not n}

    def _used_map(self, used: set[int]) -> Any:
        flags = FUNCTIONS["zeros"]((len(self.parameters),), dtype=dtypes.int32, device="cpu")
        for i in used:
            flags[i] = 1
        return flags

    # --- for a process that has no more inputs

    def shadow(self) -> None:
        """Take part in the others' pass with gradients of zero."""
        self.prepare()
        for bucket in self.buckets:
            if bucket.sparse:
                bucket.buffer = _as_sparse(None, bucket.parameters[0])
            else:
                bucket.buffer.zero_()
            self._begin(bucket)
        for bucket in self.buckets:
            assert bucket.result is not None
            bucket.result.wait()
        if self.find_unused:
            all_reduce(self._used_map(set()), group=self.group)
        self._expects = False


def broadcast_coalesced(group: Any, tensors: Sequence[Any], size: int, root: int) -> None:
    """Copy the root's tensors to all members, in place, many in one message of about `size` bytes.

    Versions are not counted up.
    """
    parts: dict[Any, list[Any]] = {}
    for t in tensors:
        parts.setdefault((t.dtype, t.device), []).append(t)
    with no_grad():
        for alike in parts.values():
            while alike:
                some: list[Any] = []
                nbytes = 0
                while alike and (not some or nbytes < size):
                    some.append(alike.pop(0))
                    nbytes += some[-1].numel() * some[-1].element_size()
                _broadcast_together(group, some, root)


def _broadcast_together(group: Any, tensors: list[Any], root: int) -> None:
    flat = FUNCTIONS["cat"]([t.detach().reshape(-1) for t in tensors])
    group.broadcast(flat, root, False).wait()
    if group.rank() == root:
        return
    at = 0
    for t in tensors:
        version = t._vc.value
        t.detach().copy_(flat[at : at + t.numel()].view(t.shape))
        t._vc.value = version
        at += t.numel()
