"""A captured function's effects on tensor objects: found while it is recorded, repeated by each play.

Note [Host state]. A play runs no Python, but a function changes more than memory: it puts gradients at leaves,
removes them or adds to them, and increments version counters, by which stale saved tensors are found. So a recording
looks at every tensor of its device before and after the function. A gradient that existed before and is used is
rebound like an argument: each play uses the one that its leaf has at the time. A gradient that the function put at a
leaf is rebound like a result; later plays reuse its memory as long as only the leaf holds it. If a play found its
leaves in another state than the recording did (no gradient where one is added to, a gradient where there was none, a
parameter with other memory), it would not do what the function does: `fits` is False then, and the function is
recorded once more.

Owns these effects; capture.py owns the launches and the arguments.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator, Sequence
from sys import getrefcount
from typing import Any

from .autograd.version import VersionCounter
from .optim.stepper import Replaced, renew
from .runtime import Backend, Buffer
from .storage import Storage, new_storage
from .tensor import Tensor


def _tensors(backend: Backend) -> Iterator[Tensor]:
    """Yield every strided tensor of a device; the garbage collector lists them, once per recording."""
    for t in gc.get_objects():
        if issubclass(type(t), Tensor) and t._strided:
            storage = getattr(t, "_storage", None)
            if type(storage) is Storage and storage.backend is backend:
                yield t


class Before:
    """The state of a device's tensors before a function is recorded: versions, and the gradients of leaves."""

    def __init__(self, backend: Backend) -> None:
        self.replaced = Replaced.count
        self.versions: list[tuple[VersionCounter, int, weakref.ref[Storage]]] = []
        self.leaves: list[tuple[weakref.ref[Tensor], Storage, Any]] = []
        known: set[int] = set()
        for t in _tensors(backend):
            if t._node is None and (t._requires or type(t) is not Tensor):  # parameters, frozen too
                self.leaves.append((weakref.ref(t), t._storage, t._grad))
            if id(t._vc) not in known:
                known.add(id(t._vc))
                self.versions.append((t._vc, t._vc.value, weakref.ref(t._storage)))
            renew(t)


class _Used:
    """A gradient from before the recording whose memory its launches touch; each play binds the leaf's present one."""

    __slots__ = ("_layout", "_leaf", "_writes", "buffer", "storage")

    def __init__(self, leaf: weakref.ref[Tensor], grad: Tensor, writes: int) -> None:
        self._leaf, self.storage, self._writes = leaf, grad._storage, writes
        self._layout = _layout(grad)
        self.buffer: Buffer = grad._storage.buffer()

    def now(self) -> Storage | None:
        """Return the storage of the leaf's present gradient, None if its layout is not the recorded one's.

        If the leaf is gone: the recorded gradient's storage.
        """
        leaf = self._leaf()
        if leaf is None:
            return self.storage
        grad = leaf._grad
        if grad is None or not grad._strided or _layout(grad) != self._layout:
            return None
        return grad._storage

    def written(self) -> None:
        """Advance the gradient's version by the writes of a play."""
        leaf = self._leaf()
        if self._writes and leaf is not None:
            leaf._grad._vc.value += self._writes


def _layout(t: Tensor) -> tuple:
    return t.shape, t.dtype, t._strides, t._offset, t._storage.nbytes, t._storage.backend


class Put:
    """Gradients that the function put at leaves, all in one storage, which had `buffer` when it was recorded.

    `argument`: the index of the argument whose memory this is, if any; `known`: whether the storage existed before.
    """

    __slots__ = ("_grads", "argument", "buffer", "known", "storage")

    def __init__(self, storage: Storage, argument: int | None, known: bool) -> None:
        self.storage, self.buffer = storage, storage.buffer()
        self.argument, self.known = argument, known
        self._grads: list[tuple[weakref.ref[Tensor], Tensor]] = []

    def add(self, leaf: weakref.ref[Tensor], grad: Tensor) -> None:
        """Add the gradient of one more leaf in this storage."""
        self._grads.append((leaf, grad))

    def ready(self) -> bool:
        """Prepare the leaves' gradients for a play, which writes over their memory. Return whether they got new memory.

        That is so if anything but the leaves holds the gradients or their storage, or can see the memory
        (Note [References] in autograd/loop.py).
        """
        kept = getrefcount(self.storage) != len(self._grads) + 2  # each gradient has one
        storage = self.storage
        value = storage.value
        kept = kept or value.__class__ is not Buffer or value.exported or storage.pinned
        for entry in self._grads:
            leaf = entry[0]()
            if leaf is None or leaf._grad is not entry[1]:
                kept = kept or getrefcount(entry[1]) != 2
                if leaf is not None:
                    leaf._grad = entry[1]
            elif getrefcount(entry[1]) != 3:  # the leaf has one
                kept = True
        if kept:
            backend = storage.backend
            self._lie_in(new_storage(backend, backend.alloc(storage.nbytes), storage.nbytes))
        return kept

    def _lie_in(self, storage: Storage) -> None:
        self.storage, grads = storage, self._grads
        self._grads = []
        for ref, t in grads:
            strides = None if t._contig else t._strides
            grad = t._make(storage, t.shape, t.dtype, t.device, strides, t._offset)
            self._grads.append((ref, grad))
            leaf = ref()
            if leaf is not None:
                leaf._grad = grad

    def leave(self, arguments: Sequence[Tensor]) -> None:
        """Give the leaves their gradients if the memory is an argument's or existed before the recording."""
        if self.argument is not None:
            self._lie_in(arguments[self.argument]._storage)
        elif self.known:
            for ref, grad in self._grads:
                leaf = ref()
                if leaf is not None:
                    leaf._grad = grad


class HostState:
    """What a recording did to the tensors that existed before it, and the state in which it expects them."""

    def __init__(
        self, before: Before, touched: set[int], known: set[int], arguments: Sequence[Storage]
    ) -> None:
        """`touched`: ids of the buffers in the recorded launches; `known`: ids of the storages that existed before."""
        changed = [(vc, vc.value - was, ref) for vc, was, ref in before.versions if vc.value != was]
        writes = {id(vc): count for vc, count, _ in changed}
        self._leaves: list[tuple[weakref.ref[Tensor], weakref.ref[Storage]]] = []
        self._replaced = before.replaced
        self._without: list[weakref.ref[Tensor]] = []  # leaves that had no gradient
        self._cleared: list[weakref.ref[Tensor]] = []
        self.used: list[_Used] = []
        put: dict[int, Put] = {}
        places = {id(storage): i for i, storage in enumerate(arguments)}
        for ref, storage, old in before.leaves:
            leaf = ref()
            if leaf is None:
                continue
            new = leaf._grad
            if id(storage.value) in touched:
                self._leaves.append((ref, weakref.ref(storage)))
                if old is None and new is None:  # the function may have given it one meanwhile
                    self._without.append(ref)
            if old is not None and old._strided and id(old._storage.value) in touched:
                self.used.append(_Used(ref, old, writes.pop(id(old._vc), 0)))
            elif old is None and new is not None:
                self._without.append(ref)
            if new is None and old is not None:
                self._cleared.append(ref)
            elif new is not old and new._strided:
                if new._node is not None:
                    leaf._grad = new = new.detach()
                key = id(new._storage)
                if key not in put:
                    put[key] = Put(new._storage, places.get(key), key in known)
                put[key].add(ref, new)
        self.put = [x for x in put.values() if x.argument is None and not x.known]
        self.others = [x for x in put.values() if x.argument is not None or x.known]
        self._versions = [(vc, count) for vc, count, _ in changed if id(vc) in writes]
        self._written = {id(x): ref for _, _, ref in changed if (x := ref()) is not None}

    def fits(self) -> bool:
        """Whether the function would launch the same now, as far as the state of leaves and optimisers decides it."""
        if self._replaced != Replaced.count:
            return False
        for ref, storage in self._leaves:
            leaf = ref()
            if leaf is not None and leaf._storage is not storage():
                return False
        for ref in self._without:
            leaf = ref()
            if leaf is not None and leaf._grad is not None:
                return False
        found: dict[int, Storage] = {}
        for used in self.used:
            now = used.now()
            if now is None or found.setdefault(id(used.buffer), now) is not now:
                return False
        return True

    def writes(self, storage: Storage) -> bool:
        """Whether a play writes to this storage."""
        ref = self._written.get(id(storage))
        return ref is not None and ref() is storage

    def count(self) -> None:
        """Advance version counters by the writes of a play."""
        for vc, count in self._versions:
            vc.value += count
        for used in self.used:
            used.written()

    def leave(self, arguments: Sequence[Tensor]) -> None:
        """Remove the gradients that the function removed, and set those whose memory is an argument's or older."""
        for ref in self._cleared:
            leaf = ref()
            if leaf is not None:
                leaf._grad = None
        for put in self.others:
            put.leave(arguments)
