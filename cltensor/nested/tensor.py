"""`NestedTensor` and its two layouts: tensors of different sizes as one object.

Owns the objects: what they are, their history, printing and copies. Operations are functions of the other files, which
`table` finds by name.

Note [Nested history]
    A nested tensor keeps its numbers in one plain tensor, its values, and has no history of its own: the values have
    it. What is asked of its history (`requires_grad`, `grad`, `backward`) is asked of the values, and operations on
    values record the gradients.

Note [Nested calls]
    The classes have a `__torch_function__` from the first nested tensor on, and only then do functions ask their
    arguments (subclasses.py): programs without nested tensors pay nothing.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..autograd import engine
from ..interception import Ask, ask_first, for_good
from ..memory_format import jagged, strided
from ..ops.row import FUNCTIONS as F
from ..overrides import is_tensor_like
from ..size import Size
from ..subclasses import stand_in
from ..tensor import Tensor
from .ragged import Ragged
from .table import JAGGED, STRIDED, answer


class NestedTensor(Tensor):
    """A batch of tensors of different sizes."""

    _v: Any  # the values, with history
    _strided = False
    _table: dict[str, Any]
    _by_elements: Any  # what computes functions of single elements: fn(func, args, kwargs)

    is_nested = property(lambda self: True, doc="Whether this is a nested tensor: yes.")

    # ---- no memory of its own

    def _none(self, name: str) -> Any:
        raise NotImplementedError(f"{name}(): not supported for NestedTensor")

    _storage = property(lambda self: self._none("storage"))
    _strides = property(lambda self: self._none("stride"))
    _offset = property(lambda self: self._none("storage_offset"))

    def untyped_storage(self) -> Any:
        """Return the memory of the values."""
        return self._v.untyped_storage()

    def data_ptr(self) -> int:
        """Return the address of the values."""
        return self._v.data_ptr()

    def numpy(self, *, force: bool = False) -> Any:
        """RuntimeError: there is no array of it."""
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def tolist(self) -> Any:
        """RuntimeError: there are no rectangular lists."""
        raise RuntimeError(".tolist() is not supported for tensor subclasses, got NestedTensor")

    def item(self) -> Any:
        """Return the only element as a Python number."""
        if self.numel() != 1:
            raise RuntimeError(
                f"a Tensor with {self.numel()} elements cannot be converted to Scalar"
            )
        return self._v.item()

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Any]:
        return iter(self.unbind())

    def __bool__(self) -> bool:
        return bool(self.item())

    @property
    def _count(self) -> int:
        raise NotImplementedError

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.numel() * self.dtype.itemsize

    # ---- history (Note [Nested history])

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow into the values."""
        return self._v.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._v.requires_grad = value

    def _set_requires(self, value: bool, dtype_text: str) -> None:
        self._v._set_requires(value, dtype_text)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Ask for gradients of this leaf, or stop doing so; return it."""
        self._v.requires_grad_(requires_grad)
        return self

    grad_fn = property(lambda self: self._v.grad_fn, doc="The node that made the values.")
    is_leaf = property(lambda self: self._v.is_leaf, doc="Whether no operation made the values.")
    _version = property(lambda self: self._v._version)
    _vc = property(lambda self: self._v._vc)
    _node = property(lambda self: self._v._node)
    _nr = property(lambda self: self._v._nr)
    retains_grad = property(lambda self: self._v.retains_grad)

    @property
    def grad(self) -> Any:
        """The gradient accumulated in this leaf, nested alike."""
        found = self._v.grad
        return None if found is None else self._like(found)

    @grad.setter
    def grad(self, value: Any) -> None:
        self._v.grad = value._v if isinstance(value, NestedTensor) else value

    def retain_grad(self) -> None:
        """Keep the gradient of this tensor, which is no leaf."""
        self._v.retain_grad()

    def register_hook(self, hook: Any) -> Any:
        """Call `hook` with the gradient, nested alike; what it returns replaces it."""

        def on_values(g: Any) -> Any:
            made = hook(self._like(g))
            return made._v if isinstance(made, NestedTensor) else made

        return self._v.register_hook(on_values)

    def backward(
        self,
        gradient: Any = None,
        retain_graph: Any = None,
        create_graph: bool = False,
        inputs: Any = None,
    ) -> None:
        """Add the gradients of this tensor's history to the leaves; `gradient` is nested alike."""
        if gradient is None:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        engine.backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    def to_padded_tensor(self, padding: float, output_size: Any = None) -> Any:
        """Return a dense tensor of the largest sizes, or of larger ones, filled up with `padding`."""
        return self._table["to_padded_tensor"](self, padding, output_size)

    def detach(self) -> Any:
        """Return the same memory without history."""
        return self._like(self._v.detach())

    def alias(self) -> Any:
        """Return a new object with the same values, without history."""
        return self._like(self._v.detach())

    @property
    def data(self) -> Any:
        """The same values without history."""
        return self._like(self._v.data)

    @data.setter
    def data(self, value: Any) -> None:
        self._v.data = value._v

    def _like(self, values: Any) -> Any:
        """Return a tensor of other values in the same places."""
        raise NotImplementedError

    def __copy__(self) -> Any:
        return self._like(self._v)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            made = memo[id(self)] = self._like(copy.deepcopy(self._v, memo))
            made.__dict__.update(self.__dict__)
        return memo[id(self)]


class JaggedTensor(NestedTensor):
    """A batch whose tensors differ in one dimension: dim `_at`, along which `values` has them behind each other."""

    _pattern: Ragged
    _at: int
    _table = JAGGED

    @property
    def layout(self) -> Any:
        """torch.jagged."""
        return jagged

    @property
    def _count(self) -> int:
        return self._pattern.count

    def _like(self, values: Any) -> Any:
        return make(values, self._pattern, self._at)

    def values(self) -> Any:
        """Return all numbers: dense, of one dim less, with the sequences behind each other."""
        return self._v

    def offsets(self) -> Any:
        """Return where each sequence begins along the ragged dim of the values."""
        return self._pattern.offsets

    def lengths(self) -> Any:
        """Return the lengths of sequences if there are gaps between them, else None."""
        return self._pattern.lengths

    def _get_max_seqlen(self) -> int:
        return self._pattern.longest

    def _get_min_seqlen(self) -> int:
        return self._pattern.shortest

    # Torch's attributes, which libraries read.
    _values, _offsets, _lengths = property(values), property(offsets), property(lengths)
    _max_seqlen, _min_seqlen = property(_get_max_seqlen), property(_get_min_seqlen)
    _ragged_idx = property(lambda self: self._at)

    def dim(self) -> int:
        """Return the number of dims, the batch's included."""
        return self._v.ndim + 1

    ndimension = dim
    ndim = property(dim)

    def size(self, dim: int | None = None) -> Any:
        """Return the shape, in which a symbol stands for the ragged size, or the size of one dim."""
        return self.shape if dim is None else self.shape[place(dim, self.ndim)]

    def numel(self) -> int:
        """Return the number of elements."""
        p = self._pattern
        if p.lengths is None:
            return self._v.numel()
        rows = self._v.shape[self._at - 1]
        return self._v.numel() // rows * sum(p.sizes) if rows else 0

    nelement = numel

    def stride(self, dim: int | None = None) -> Any:
        """Return the strides; that of the batch is a multiple of the ragged size."""
        inner = self._v.stride()
        found = (self._pattern.size * inner[self._at - 1], *inner)
        return found if dim is None else found[place(dim, self.ndim)]

    def storage_offset(self) -> int:
        """Return where the values begin in their storage."""
        return self._v.storage_offset()

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Tell whether the values are contiguous, without gaps between sequences."""
        return self._pattern.lengths is None and self._v.is_contiguous()

    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]
        history = ", requires_grad=True" if self.requires_grad else ""
        if self.grad_fn:
            history = f", grad_fn={self.grad_fn}"
        size = ", ".join(map(str, self.shape))
        return f"NestedTensor(size=({size}), offsets={self._pattern.offsets}{history}, contiguous={self.is_contiguous()})"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        p = self._pattern
        named = {
            "values": self._v.detach(),
            "offsets": p.offsets,
            "lengths": p.lengths,
            "_ragged_idx": self._at,
        }
        return rebuild, ({**named, "requires_grad": self.requires_grad},)


class StridedNestedTensor(NestedTensor):
    """A batch of tensors of the same number of dims, all of whose numbers are in one flat buffer."""

    _pattern: tuple[Size, ...]  # the shapes
    _table = STRIDED

    @property
    def layout(self) -> Any:
        """torch.strided."""
        return strided

    @property
    def _count(self) -> int:
        return len(self._pattern)

    def _like(self, values: Any) -> Any:
        return flat(values, self._pattern)

    @property
    def shape(self) -> Any:  # type: ignore[override]
        """RuntimeError: sizes differ; see `size(dim)`."""
        raise RuntimeError(
            "Internal error: NestedTensorImpl doesn't support sizes. Please file an issue."
        )

    def dim(self) -> int:
        """Return the number of dims, the batch's included."""
        return 1 + (len(self._pattern[0]) if self._pattern else 0)

    ndimension = dim
    ndim = property(dim)

    def size(self, dim: int | None = None) -> Any:
        """Return the size of a dim in which all tensors agree; RuntimeError where they do not."""
        if dim is None:
            return self.shape
        d = place(dim, self.ndim)
        if d == 0:
            return self._count
        found = {s[d - 1] for s in self._pattern}
        if len(found) != 1:
            raise RuntimeError(f"Given dimension {d} is irregular and does not have a size.")
        return found.pop()

    def numel(self) -> int:
        """Return the number of elements."""
        return self._v.numel()

    nelement = numel

    def stride(self, dim: int | None = None) -> Any:
        """RuntimeError: there are no strides of the whole."""
        raise RuntimeError(
            "Internal error: NestedTensorImpl doesn't support strides. Please file an issue."
        )

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Return True: numbers are always in order."""
        return True

    def values(self) -> Any:
        """Return all numbers, flat."""
        return self._v

    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]
        parts = []
        for x in self.detach().unbind():
            text = repr(x).replace("\n", "\n  ")
            text = f"{text[:-1]}, requires_grad=True)" if self.requires_grad else text
            parts.append(f"  {text}")
        history = ", requires_grad=True" if self.requires_grad else ""
        if self.grad_fn:
            history = f", grad_fn=<{self.grad_fn.name()}>"
        return "nested_tensor([\n" + ",\n".join(parts) + f"\n]{history})"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        shapes = [tuple(s) for s in self._pattern]
        return rebuild_flat, (self._v.detach(), shapes, self.requires_grad)


def place(dim: int, ndim: int) -> int:
    """Return a dim counted from the front; IndexError for one that is not there."""
    if not -ndim <= dim < ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})"
        )
    return dim % ndim


# ------------------------------------------------------------------------------------------- making them


def make(values: Any, ragged: Ragged, at: int = 1) -> JaggedTensor:
    """Make a jagged tensor of values whose dim at - 1 has the sequences behind each other."""
    install()
    t = object.__new__(JaggedTensor)
    t._v, t._pattern, t._at = values, ragged, at
    inner = tuple(values.shape)
    t.shape = tuple.__new__(Size, (ragged.count, *inner[: at - 1], ragged.size, *inner[at:]))
    t.dtype, t.device = values.dtype, values.device
    return t


def flat(values: Any, shapes: Sequence[Any]) -> StridedNestedTensor:
    """Make a strided nested tensor of a flat buffer and the shapes of its tensors."""
    install()
    t = object.__new__(StridedNestedTensor)
    t._v, t._pattern = values, tuple(map(Size, shapes))
    t.dtype, t.device = values.dtype, values.device
    return t


def rebuild(named: dict[str, Any]) -> JaggedTensor:
    """Make a jagged tensor of what was pickled."""
    offsets, lengths, at = named["offsets"], named["lengths"], named["_ragged_idx"]
    made = make(named["values"], Ragged.of(offsets, lengths), at)
    return made.requires_grad_(True) if named["requires_grad"] else made


def rebuild_flat(values: Any, shapes: list[Any], requires_grad: bool) -> StridedNestedTensor:
    """Make a strided nested tensor of what was pickled."""
    made = flat(values, shapes)
    return made.requires_grad_(True) if requires_grad else made


@functools.cache
def install() -> None:
    """Let functions ask nested tensors from now on (Note [Nested calls])."""
    for kind in (JaggedTensor, StridedNestedTensor):
        kind.__torch_function__ = classmethod(answer)
    stand_in()
    with for_good():
        ask_first(engine.backward, _of_values)  # type: ignore[arg-type]
        ask_first(engine.grad, _of_values)  # type: ignore[arg-type]


def _of_values(plain: Any) -> Ask:
    """Return the ask of a function of autograd: it gets values for nested tensors, and what it returns is nested again."""

    def ask(args: Any, kwargs: Any) -> Any:
        args = [_listed(a) for a in args]
        kwargs = {k: _listed(a) for k, a in kwargs.items()}
        wanted = kwargs.get("inputs", args[1] if len(args) > 1 else None)
        made = plain(*[_values(a) for a in args], **{k: _values(a) for k, a in kwargs.items()})
        inputs = wanted if type(wanted) is tuple else (wanted,)
        if made is None or not any(isinstance(x, NestedTensor) for x in inputs):
            return made
        return tuple(
            x._like(g) if isinstance(x, NestedTensor) and g is not None else g
            for x, g in zip(inputs, made, strict=True)
        )

    return ask


def _listed(a: Any) -> Any:
    """Return what has several items as a tuple, for it may be an iterator and is looked at twice; other things as they are."""
    if isinstance(a, engine.GradientEdge) or is_tensor_like(a) or not isinstance(a, Iterable):
        return a
    return tuple(a)


def _values(a: Any) -> Any:
    if isinstance(a, NestedTensor):
        return a._v
    return tuple(map(_values, a)) if type(a) is tuple else a


def compact(t: JaggedTensor) -> JaggedTensor:
    """Return the tensor without gaps between its sequences."""
    p = t._pattern
    if p.lengths is None:
        return t
    return make(t._v.index_select(t._at - 1, p.rows), p.packed, t._at)


def from_list(tensors: Sequence[Any]) -> StridedNestedTensor:
    """Make a strided nested tensor of tensors, whose gradients it passes on."""
    if not tensors:
        return flat(F["zeros"](0), ())
    return flat(F["cat"]([x.reshape(-1) for x in tensors]), [x.shape for x in tensors])


__all__ = [
    "JaggedTensor",
    "NestedTensor",
    "StridedNestedTensor",
    "compact",
    "flat",
    "from_list",
    "make",
]
