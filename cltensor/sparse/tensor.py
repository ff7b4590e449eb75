"""`SparseTensor`: a pattern of entries and their values, as a tensor of its own kind.

Owns the object: its properties, its copies, and how gradients pass between it and its values. All operations are
functions in the other files of this package, which `dispatch` attaches.

Note [Gradients]
    An operation takes a tensor's values with their history (`values_of`), computes with dense operations, and makes a
    sparse tensor of the result (`pack`). `values_of` and `pack` record a node each; between these nodes flows a sparse
    gradient over the same pattern, so that its values need no look-up. Where a tensor has several entries in one place,
    its gradient has one entry there: the gradient of that place.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from math import prod
from sys import getrefcount
from typing import Any, cast

from .. import dtypes, layouts
from ..attributes import restore, state
from ..autograd import record as graph
from ..autograd.mode import GRAD, INFERENCE, unrecorded
from ..autograd.version import InferenceVersion, VersionCounter
from ..autograd.views import LEAF_WRITTEN
from ..codegen.products import sparse as kernels
from ..memory_format import layout as Layout
from ..memory_format import sparse_coo, sparse_csc, sparse_csr
from ..ops import core
from ..ops.elsewhere import refuse_caller
from ..ops.row import FUNCTIONS as F
from ..ops.row import METHODS
from ..size import Size
from ..tensor import Tensor
from .pattern import Merge, Pattern

LAYOUT_NAMES = {sparse_coo: "Sparse", sparse_csr: "SparseCsr", sparse_csc: "SparseCsc"}


class SparseTensor(Tensor):
    """A tensor that stores only some elements, its entries; the others are zero."""

    _pattern: Pattern
    _v: Any  # values (entries, dense dims), without history
    _layout: Layout
    _strided = False
    _unmasked = False  # whether it takes dense gradients as leaves do, although it is none

    @classmethod
    def _of(
        cls, pattern: Pattern, values: Any, shape: Sequence[int], kind: Layout = sparse_coo
    ) -> SparseTensor:
        """Make one without history."""
        from .dispatch import install

        install()
        t = object.__new__(cls)
        t._pattern, t._v, t._layout = pattern, values, kind
        t.shape, t.dtype, t.device = Size(shape), values.dtype, values.device
        t._vc = InferenceVersion() if INFERENCE.used and GRAD.inference else VersionCounter()
        return t

    def _become(self, other: SparseTensor) -> SparseTensor:
        """Replace this tensor's entries and history by those of `other`, the result of an operation that is to be in
        place.
        """
        if GRAD.enabled and self._requires:
            raise RuntimeError(LEAF_WRITTEN)
        if other.dtype is not self.dtype:
            if not dtypes.can_cast(other.dtype, self.dtype):
                raise RuntimeError(
                    f"result type {other.dtype.scalar_name} can't be cast to the desired output type {self.dtype.scalar_name}"
                )
            other = cast(SparseTensor, other.to(self.dtype))
        self._pattern, self._v, self.shape = other._pattern, other._v, other.shape
        self._node, self._nr = other._node, other._nr
        self._vc.value += 1
        return self

    # ---- no memory of its own

    @property
    def _storage(self) -> Any:  # type: ignore[override]
        raise refuse_caller(METHODS)

    @property
    def _strides(self) -> Any:
        raise refuse_caller(METHODS)

    @property
    def _offset(self) -> Any:  # type: ignore[override]
        raise refuse_caller(METHODS)

    def untyped_storage(self) -> Any:
        """NotImplementedError: there is none."""
        raise NotImplementedError(f"Cannot access storage of {self._impl}")

    storage = untyped_storage

    def data_ptr(self) -> int:
        """RuntimeError: there is no storage."""
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    @property
    def _impl(self) -> str:
        return "SparseTensorImpl" if self._layout is sparse_coo else "SparseCsrTensorImpl"

    def storage_offset(self) -> int:
        """Return 0."""
        return 0

    def stride(self, dim: int | None = None) -> Any:
        """Return zeros; RuntimeError for a compressed matrix."""
        if self._layout is not sparse_coo:
            name = "CSR" if self._layout is sparse_csr else "CSC"
            raise RuntimeError(f"Sparse {name} tensors do not have strides")
        return (0,) * self.ndim if dim is None else 0

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Return False; RuntimeError for a compressed matrix."""
        if self._layout is not sparse_coo:
            name = "CSR" if self._layout is sparse_csr else "CSC"
            raise RuntimeError(f"Sparse {name} tensors do not have is_contiguous")
        return False

    @property
    def nbytes(self) -> int:
        """RuntimeError, as in torch: only its indices and values have a size in bytes."""
        raise RuntimeError(
            "nbytes is not defined for sparse tensors.  If you want the size of the constituent tensors, add the nbytes of the indices and "
            "values.  If you want the size of the  equivalent dense tensor, multiply numel() by element_size()"
        )

    def is_set_to(self, tensor: Tensor) -> bool:
        """Tell whether the other is the same tensor."""
        return self is tensor

    # ---- what it is

    @property
    def layout(self) -> Layout:
        """torch.sparse_coo, sparse_csr or sparse_csc."""
        return self._layout

    is_sparse = property(lambda self: self._layout is sparse_coo)
    is_sparse_csr = property(lambda self: self._layout is sparse_csr)

    def sparse_dim(self) -> int:
        """Return the number of sparse dims: those the indices are for."""
        return len(self._pattern.sizes)

    def dense_dim(self) -> int:
        """Return the number of dense dims: those of the value of one entry."""
        return self._v.ndim - 1

    def _nnz(self) -> int:
        return self._pattern.count

    def _need(self, name: str, *kinds: Layout, words: str = "sparse coordinate") -> None:
        if self._layout not in kinds:
            raise RuntimeError(
                f"{name} expected {words} tensor layout but got {LAYOUT_NAMES[self._layout]}"
            )

    def is_coalesced(self) -> bool:
        """Tell whether each place occurs once, in order."""
        self._need("is_coalesced", sparse_coo)
        return self._pattern.coalesced

    def _coalesced_(self, coalesced: bool) -> SparseTensor:
        p = self._pattern
        if coalesced is not p.coalesced:
            self._pattern = Pattern(p.sizes, p.indices, checked=p._checked)
            self._pattern.coalesced = coalesced
        return self

    def _indices(self) -> Any:
        self._need("_indices", sparse_coo)
        return self._pattern.indices

    def _values(self) -> Any:
        return self._v

    def indices(self) -> Any:
        """Return the coordinates (sparse dims, entries) of a coalesced tensor."""
        self._need("indices", sparse_coo)
        if not self._pattern.coalesced:
            raise RuntimeError(
                "Cannot get indices on an uncoalesced tensor, please call .coalesce() first"
            )
        return self._pattern.indices.detach()

    def values(self) -> Any:
        """Return the values of a coalesced tensor, or of a compressed matrix."""
        if self._layout is sparse_coo and not self._pattern.coalesced:
            raise RuntimeError(
                "Cannot get values on an uncoalesced tensor, please call .coalesce() first"
            )
        found = values_of(self)
        return found.detach() if found is self._v else found

    def _compressed(self, name: str, kind: Layout, words: str, part: int) -> Any:
        self._need(name, kind, words=words)
        assert self._pattern.compressed is not None
        return self._pattern.compressed[part].detach()

    def crow_indices(self) -> Any:
        """Return where each row of a CSR matrix begins among the entries, and the number of entries at the end."""
        return self._compressed("crow_indices", sparse_csr, "sparse row compressed", 0)

    def col_indices(self) -> Any:
        """Return the column of each entry."""
        return self._compressed("col_indices", sparse_csr, "sparse row compressed", 1)

    def ccol_indices(self) -> Any:
        """Return where each column of a CSC matrix begins among the entries, and the number of entries at the end."""
        return self._compressed("ccol_indices", sparse_csc, "sparse column compressed", 0)

    def row_indices(self) -> Any:
        """Return the row of each entry."""
        return self._compressed("row_indices", sparse_csc, "sparse column compressed", 1)

    def type(self, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        """Return the type's name, or convert."""
        if dtype is None:
            plain = self._v.type()
            return plain.replace("torch.", "torch.sparse.", 1)
        return super().type(dtype, non_blocking, **kwargs)

    # ---- history

    def alias(self) -> SparseTensor:
        """Return a new object with the same entries and version, without history."""
        t = SparseTensor._of(self._pattern, self._v, self.shape, self._layout)
        t._vc = self._vc
        return t

    @property
    def data(self) -> Any:
        """The same entries without history."""
        t = self.alias()
        t._vc = VersionCounter()
        return t

    @data.setter
    def data(self, value: Any) -> None:
        if not isinstance(value, SparseTensor):
            raise RuntimeError(
                "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor type."
            )
        self._pattern, self._v, self._layout = value._pattern, value._v, value._layout
        self.shape = value.shape
        self.dtype = value.dtype
        self.device = value.device
        self._acc = None

    def _kept(self, alone: bool) -> SparseTensor:
        """Return this tensor as the gradient stored in a leaf. Its values are copied unless reference counts show that
        nobody else holds them.

        `alone`: nobody but the caller holds the tensor (Note [References] in autograd/loop.py).
        """
        if GRAD.enabled:
            return self
        alone = alone and getrefcount(self._v) == 2 and getrefcount(self._v._storage) == 2
        values = self._v if alone else self._v.clone()
        return SparseTensor._of(self._pattern, values, self.shape, self._layout)

    # ---- to Python

    def _host(self) -> Any:
        raise refuse_caller(METHODS)

    def numpy(self, *, force: bool = False) -> Any:
        """TypeError: there is no array of it."""
        kind = "Sparse" if self._layout is sparse_coo else LAYOUT_NAMES[self._layout]
        raise TypeError(
            f"can't convert {kind} layout tensor to numpy. Use Tensor.to_dense() first."
        )

    def tolist(self) -> Any:
        """RuntimeError: there is no memory to read."""
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    def item(self) -> Any:
        """Return the only element as a Python number."""
        if self.numel() != 1:
            raise RuntimeError(
                f"a Tensor with {self.numel()} elements cannot be converted to Scalar"
            )
        return self.to_dense().item()

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("iteration over a 0-d tensor")
        return iter([self.select(0, i) for i in range(self.shape[0])])

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError("Cannot assign to a sparse tensor")

    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]
        from .printing import sparse_str

        return sparse_str(self)

    # ---- copies

    def __copy__(self) -> SparseTensor:
        t = self.alias()
        t._requires, t._node, t._nr = self._requires, self._node, self._nr
        t.__dict__.update(self.__dict__)
        return t

    def __deepcopy__(self, memo: dict[int, Any]) -> SparseTensor:
        if id(self) in memo:
            return memo[id(self)]
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  If you were attempting to "
                "deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, see https://github.com/pytorch/pytorch/pull/103001"
            )
        t = SparseTensor._of(
            self._pattern.clone(), self._v.detach().clone(), self.shape, self._layout
        )
        t._requires = self._requires
        memo[id(self)] = t
        t.__dict__.update(self.__dict__)
        t._grad = copy.deepcopy(self._grad, memo)
        return t

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        p = self._pattern
        parts = (p.indices,) if p.compressed is None else p.compressed[:2]
        made = (
            parts,
            self._v.detach(),
            tuple(self.shape),
            self._layout,
            p.coalesced,
            self._requires,
            state(self) or None,
        )
        return _rebuild, made


def _rebuild(
    parts: tuple[Any, ...],
    values: Any,
    shape: Any,
    kind: Layout,
    coalesced: bool,
    requires: bool,
    kept: Any = None,
) -> SparseTensor:
    if kind is sparse_coo:
        pattern = Pattern(shape[: parts[0].shape[0]], parts[0], coalesced=coalesced)
    else:
        pattern = Pattern(shape[:2], None, compressed=(*parts, int(kind is sparse_csc)))
    t = SparseTensor._of(pattern, values, shape, kind)
    t._requires = requires
    if kept is not None:
        restore(t, kept)
    return t


# ------------------------------------------------------------------------------------------- values and gradients


def pack(
    pattern: Pattern,
    values: Any,
    shape: Sequence[int],
    kind: Layout = sparse_coo,
    name: str = "SparseCooTensorWithDimsAndTensorsBackward0",
) -> SparseTensor:
    """Make a sparse tensor of values, with their history (see Note [Gradients])."""
    wanted = graph.needs_grad(values)
    s = SparseTensor._of(pattern, values.detach() if wanted else values, shape, kind)
    if wanted:
        graph.record(name, (values,), s, _to_values, {"pattern": pattern})
    return s


def like(s: SparseTensor, values: Any, name: str) -> SparseTensor:
    """Make a sparse tensor with the entries of another."""
    return pack(s._pattern, values, s.shape, s._layout, name)


def entries(s: SparseTensor, values: Any) -> SparseTensor:
    """Make a sparse tensor of new values in the places of another, without history."""
    return SparseTensor._of(s._pattern, values, s.shape, s._layout)


def values_of(s: SparseTensor) -> Any:
    """Return the values of all entries, with the tensor's history (see Note [Gradients])."""
    if not graph.needs_grad(s):
        return s._v
    out = s._v.alias()
    out._requires = False
    graph.record(
        "ValuesBackward0",
        (s,),
        out,
        _to_sparse,
        {"pattern": s._pattern, "sizes": tuple(s.shape), "kind": s._layout},
    )
    return out


def _to_sparse(ctx: Any, g: Any) -> SparseTensor:
    p: Pattern = ctx.pattern
    if p.compressed is None:
        merge = p.merge
        p = merge.pattern
        if (first := merge.first) is not None:
            g = g.index_select(0, first)
    return pack(p, g, ctx.sizes, ctx.kind)


def _to_values(ctx: Any, g: Any) -> Any:
    return at(g, ctx.pattern)


def at(x: Any, p: Pattern) -> Any:
    """Return what a tensor, sparse or dense, has in the places of a pattern, with its history."""
    if not isinstance(x, SparseTensor):
        dims = len(p.sizes)
        if dims and not any(x._strides[:dims]) and prod(p.sizes):  # expanded: the same everywhere
            return x[(0,) * dims].expand(p.count, *x.shape[dims:])
        return (
            x.reshape(prod(p.sizes), *x.shape[len(p.sizes) :]).index_select(0, p.keys)
            if p.sizes
            else x.unsqueeze(0).expand(p.count, *x.shape)
        )
    q = x._pattern
    if q is p and (p.coalesced or p.compressed is not None):
        return values_of(x)
    merge = p.merge
    if q is merge.pattern:
        return values_of(x) if merge.group is None else values_of(x).index_select(0, merge.group)
    x = coalesced(x)
    values = values_of(x)
    if not x._pattern.count:
        return values.new_zeros((p.count, *values.shape[1:]))
    found, place = x._pattern.find(p)
    there = found.reshape(p.count, *[1] * (values.ndim - 1))
    return F["where"](there, values.index_select(0, place), 0)


def summed(values: Any, group: Any, count: int) -> Any:
    """Sum values [entries, …] over `count` groups; `group` has the number of each entry's group."""
    zeros = values.new_zeros((count, *values.shape[1:]))
    if values.dtype is dtypes.bool:
        return zeros.to(dtypes.int32).index_add(0, group, values.to(dtypes.int32)) > 0
    return zeros.index_add(0, group, values)


def _brought_together(values: Any, merge: Merge) -> Any:
    """Sum the values of entries in the same place: one value for each place of `merge.pattern`."""
    if values.dtype not in kernels.DTYPES:
        return summed(values, merge.group, merge.pattern.count)
    with unrecorded():
        rows = values.reshape(values.shape[0], prod(values.shape[1:])).contiguous()
        backend = rows._storage.backend
        starts, order = core.kernel_operand(merge.starts), core.kernel_operand(merge.order)
        found = kernels.lines_by_matrix(backend, starts, order, None, core.kernel_operand(rows))
        out = core.result(found, values.device).view(merge.pattern.count, *values.shape[1:])
    if graph.needs_grad(values):
        graph.record("CoalesceBackward0", (values,), out, _back_apart, {"merge": merge})
    return out


def _back_apart(ctx: Any, g: Any) -> Any:
    return g.index_select(0, ctx.merge.group)


def coalesced(s: SparseTensor) -> SparseTensor:
    """Return the tensor with each place once and in order; the same object if it is coalesced already."""
    p = s._pattern
    if p.coalesced:
        return s
    merge = p.merge
    values = values_of(s)
    if merge.order is not None:
        values = _brought_together(values, merge)
    return pack(merge.pattern, values, s.shape, sparse_coo, "CoalesceBackward0")


def check_dims(s: SparseTensor, dims: Any) -> list[int]:
    """Return `dims`, a number or several, as a list of non-negative dims of the tensor."""
    given = [dims] if isinstance(dims, int) else list(dims)
    return [layouts.wrap_dim(d, s.ndim) for d in given]
