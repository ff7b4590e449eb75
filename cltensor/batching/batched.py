"""`Batched`: the tensor class that functions get inside `vmap`, with one dimension hidden.

Owns the metadata and the methods of such tensors, and how dimensions are hidden and exposed. Knows no op: calls.py
intercepts calls on batched tensors before they reach an op, and an op that gets one nevertheless raises `NoRule` when
it accesses the memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from ..attributes import fields
from ..autograd.methods import DETACH_VIEW
from ..layouts import contiguous_strides, wrap_dim
from ..memory_format import contiguous_format
from ..size import Size
from ..tensor import Tensor
from .levels import STACK

_ITEM = (
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor, please try "
    "to rewrite what you're doing with other operations. If error is occurring somewhere inside PyTorch internals, please file a "
    "bug report."
)
_BRANCH = (
    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support that yet, please "
    "file an issue at https://github.com/pytorch/pytorch/issues ."
)
_BACKWARD = (
    "backward() called inside a functorch transform. This is not supported, please use functorch.grad or functorch.vjp instead or "
    "call backward() outside of functorch transforms."
)
_MEMORY = "Cannot access data pointer of Tensor that doesn't have storage"


class NoRule(Exception):
    """Raised on access to the memory of a batched tensor: the function that did so has to be run for each slice."""


class _NoStorage:
    """Stands in for a batched tensor's storage: access to any attribute raises `NoRule`."""

    waits = True

    def __getattr__(self, name: str) -> NoReturn:
        raise NoRule(name)


def _refusal(text: str) -> Exception:
    """Return torch's error for a user's call, `NoRule` for a call from a library function, which is then run for each slice."""
    return NoRule(text) if STACK.inside else RuntimeError(text)


def _passed(name: str) -> Any:
    """Return a property that reads and writes an attribute of the underlying tensor."""

    def read(self: Batched) -> Any:
        return getattr(self.value, name)

    def write(self: Batched, new: Any) -> None:
        setattr(self.value, name, new)

    return property(read, write)


def _denied(name: str) -> Any:
    """Return a property that raises `NoRule`: an op that reads it would see the underlying tensor's memory."""

    def read(self: Batched) -> NoReturn:
        raise NoRule(name)

    return property(read)


class Batched(Tensor):
    """A tensor of which `vmap` hides a dimension: `value` has all of them, `bdim` is the hidden one, `level` the `vmap`'s number."""

    value: Any
    bdim: int
    level: int

    @property
    def _storage(self) -> Any:  # type: ignore[override]
        own = fields(self)
        if "_nowhere" not in own:
            own["_nowhere"] = _NoStorage()
        return own["_nowhere"]

    _strides = _denied("strides")
    _offset = _denied("offset")
    _contig = _denied("contiguity")
    _fw = _denied("tangents")
    _vc = _passed("_vc")
    _node = _passed("_node")
    _nr = _passed("_nr")
    _requires = _passed("_requires")
    _view = _passed("_view")
    _hooks = _passed("_hooks")
    _post_hooks = _passed("_post_hooks")
    _retain = _passed("_retain")

    @property
    def _grad(self) -> Any:
        found = self.value._grad
        return None if found is None else hide(found, self.bdim, self.level)

    requires_grad = property(
        lambda self: self.value.requires_grad,
        lambda self, new: setattr(self.value, "requires_grad", new),
        doc="Whether gradients flow into what is beneath.",
    )
    grad_fn = property(lambda self: self.value.grad_fn, doc="The node that made what is beneath.")
    is_leaf = property(lambda self: self.value.is_leaf, doc="Whether no node made what is beneath.")

    # ------------------------------------------------------------------------------------- what it says of itself

    def _become(self, other: Any) -> Any:
        """Take over the underlying tensor and the shape of another tensor of the same level; return self."""
        self.value, self.bdim, self.shape = other.value, other.bdim, other.shape
        return self

    def stride(self, dim: int | None = None) -> Any:
        """Return the strides of the visible dimensions, or of one of them."""
        steps = self.value.stride()
        steps = steps[: self.bdim] + steps[self.bdim + 1 :]
        return steps if dim is None else steps[wrap_dim(dim, len(steps))]

    def storage_offset(self) -> int:
        """Return the underlying tensor's offset in its storage, in elements."""
        return self.value.storage_offset()

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Return whether the visible dimensions are contiguous in row-major order."""
        if memory_format not in (None, contiguous_format):
            raise RuntimeError(
                "NYI: querying is_contiguous inside of vmap for memory_format other than torch.contiguous_format"
            )
        pairs = zip(self.shape, self.stride(), contiguous_strides(self.shape), strict=True)
        return not self.numel() or all(n == 1 or have == want for n, have, want in pairs)

    def untyped_storage(self) -> Any:
        """Raise NotImplementedError: a batched tensor has no storage of its own."""
        raise NotImplementedError("Cannot access storage of BatchedTensorImpl")

    storage = untyped_storage

    def alias(self) -> Any:
        """Return a batched tensor of the same elements, detached from the graph."""
        return hide(self.value.detach(), self.bdim, self.level)

    detach = alias

    def detach_(self) -> Any:
        """Raise RuntimeError: a batched tensor is a view of the underlying one."""
        raise RuntimeError(DETACH_VIEW)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Raise RuntimeError: `func.grad` and its kin take derivatives inside of `vmap`."""
        raise RuntimeError(
            "You are attempting to call Tensor.requires_grad_() (or perhaps using torch.autograd.functional.* APIs) inside of a "
            "function being transformed by a functorch transform. This is unsupported, please attempt to use the functorch transforms "
            "(e.g. grad, vjp, jacrev, jacfwd, hessian) or call requires_grad_() outside of a function being transformed instead."
        )

    def _set_requires(self, value: bool, dtype_text: str) -> None:
        self.value._set_requires(value, dtype_text)

    def retain_grad(self) -> None:
        """Make `backward` keep the underlying tensor's gradient in `grad`."""
        self.value.retain_grad()

    def backward(self, *args: Any, **kwargs: Any) -> None:
        """Raise RuntimeError: inside `vmap`, derivatives are taken with `func.grad` and `func.vjp`."""
        raise RuntimeError(_BACKWARD)

    @property
    def data(self) -> Any:
        """Raise RuntimeError, as torch does."""
        raise RuntimeError("accessing `data` under vmap transform is not allowed")

    @data.setter
    def data(self, value: Any) -> None:
        raise RuntimeError("mutating directly with `.data` under vmap transform is not allowed.")

    def item(self) -> Any:
        """Raise RuntimeError: each slice has a number of its own."""
        raise _refusal(_ITEM)

    __float__ = __int__ = __complex__ = __index__ = item

    def __bool__(self) -> bool:
        raise _refusal(_BRANCH)

    is_nonzero = __bool__

    def data_ptr(self) -> int:
        """Raise RuntimeError: a batched tensor has no memory of its own."""
        raise _refusal(_MEMORY)

    def numpy(self, *, force: bool = False) -> Any:
        """Raise RuntimeError: a batched tensor has no memory of its own."""
        raise _refusal(_MEMORY)

    def tolist(self) -> Any:
        """Raise RuntimeError: each slice has elements of its own."""
        raise _refusal(_MEMORY)

    def _host(self) -> Any:
        raise _refusal(_MEMORY)

    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]
        inner = "\n".join("    " + line for line in repr(self.value).split("\n"))
        return f"BatchedTensor(lvl={self.level}, bdim={self.bdim}, value=\n{inner}\n)"

    def __format__(self, spec: str) -> str:
        return object.__format__(self, spec)

    def __hash__(self) -> int:
        return id(self)

    def __copy__(self) -> Any:
        return hide(self.value, self.bdim, self.level)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return memo.setdefault(id(self), self.clone())


# ------------------------------------------------------------------------------------------- hiding and showing


def hide(value: Any, bdim: int, level: int) -> Any:
    """Return a `Batched` that hides dimension `bdim` (not negative) of a tensor at a level."""
    t = object.__new__(Batched)
    shape = value.shape
    t.value, t.bdim, t.level = value, bdim, level
    t.shape = Size(shape[:bdim] + shape[bdim + 1 :])
    t.dtype, t.device = value.dtype, value.device
    return t


def is_batched(t: Any, level: int) -> bool:
    """Return whether a value's own level, the innermost that hides a dimension of it, is this one."""
    return t.__class__ is Batched and t.level == level


def first(value: Any, dim: int) -> Any:
    """Move a dimension to the front."""
    return value if not dim else value.movedim(dim, 0)


def strip(t: Any, level: int, size: int) -> Any:
    """Expose a level's hidden dimension as the first, expanding a tensor that has none.

    Dimensions of inner levels stay hidden.
    """
    if t.__class__ is Batched and t.level >= level:
        if t.level == level:
            return first(t.value, t.bdim)
        inner = strip(t.value, level, size)
        return hide(inner, t.bdim + 1, t.level)
    return t.unsqueeze(0).expand(size, *t.shape)


def restore(t: Any, level: int) -> Any:
    """Undo `strip`: hide the first visible dimension at a level, below the dimensions that inner levels hide."""
    if t.__class__ is Batched and t.level > level:
        return hide(restore_at(t.value, level, int(t.bdim == 0)), max(t.bdim - 1, 0), t.level)
    return hide(t, 0, level)


def restore_at(value: Any, level: int, dim: int) -> Any:
    """Hide dimension `dim` of a tensor from which an inner level's dimension has been exposed; for `restore`."""
    if value.__class__ is Batched and value.level > level:
        return restore(value if not dim else value.movedim(dim, 0), level)
    return hide(value, dim, level)


def has(t: Any, level: int) -> bool:
    """Return whether a level hides a dimension of a tensor, possibly below other levels."""
    while t.__class__ is Batched:
        if t.level == level:
            return True
        t = t.value
    return False


def in_all_slices(t: Any) -> Any:
    """Expand a tensor to be batched at all open levels, so that a change to one slice does not affect others."""
    for level in STACK.levels:
        if not has(t, level.number):
            t = restore(strip(t, level.number, level.size), level.number)
    return t


def first_slice(t: Any) -> Any:
    """Return the first slice of a tensor batched at the innermost open level; any other tensor as it is."""
    if STACK.levels and is_batched(t, STACK.levels[-1].number):
        return t.value.select(t.bdim, 0)
    return t


def base(t: Any) -> Any:
    """Return the innermost underlying tensor, of which no level hides a dimension."""
    while t.__class__ is Batched:
        t = t.value
    return t


def top(values: Sequence[Any]) -> int:
    """Return the innermost level among tensors, also in lists, tuples and dicts of them; 0 where none is batched."""
    found = 0
    for v in values:
        kind = v.__class__
        if kind is Batched:
            if v.level > found:
                found = v.level
        elif kind is tuple or kind is list:
            if v and (inner := top(v)) > found:
                found = inner
        elif kind is dict and v and (inner := top(list(v.values()))) > found:
            found = inner
    return found
