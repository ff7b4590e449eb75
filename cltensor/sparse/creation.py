"""Functions that make sparse tensors of indices and values, and the optional checks of these."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from .. import creation, dtypes
from ..autograd.mode import unrecorded
from ..creation.factory import place, shape_of
from ..memory_format import layout as Layout
from ..memory_format import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided
from ..ops import core
from ..ops.core import is_tensor
from ..ops.elsewhere import HANDLERS, refuse
from ..ops.row import FUNCTIONS as F
from ..ops.row import public
from ..size import Size
from .pattern import Pattern, empty_pattern
from .tensor import SparseTensor, pack

Tensor = Any


class check_sparse_tensor_invariants:
    """Switch checks of the indices given for sparse tensors: a context manager, a decorator, and a global switch.

    With checks off (the default), indices are looked at only where no size is given. Indices outside the sizes are then
    found by the first operation that depends on it.
    """

    _enabled = False

    def __init__(self, enable: bool = True) -> None:
        self.state = enable
        self.before: bool | None = None

    @staticmethod
    def is_enabled() -> bool:
        """Tell whether checks are on."""
        return check_sparse_tensor_invariants._enabled

    @staticmethod
    def enable() -> None:
        """Turn checks on."""
        check_sparse_tensor_invariants._enabled = True

    @staticmethod
    def disable() -> None:
        """Turn checks off."""
        check_sparse_tensor_invariants._enabled = False

    def __enter__(self) -> None:
        if self.before is not None:
            raise RuntimeError(
                "This context manager instance is already activated. Use a different context manager instance for context nesting."
            )
        self.before = check_sparse_tensor_invariants._enabled
        check_sparse_tensor_invariants._enabled = self.state

    def __exit__(self, *exc: Any) -> None:
        assert self.before is not None
        check_sparse_tensor_invariants._enabled = self.before
        self.before = None

    def __call__(self, fn: Callable) -> Callable:
        @functools.wraps(fn)
        def checked(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.state):
                return fn(*args, **kwargs)

        return checked


def _wanted(check: bool | None) -> bool:
    return check_sparse_tensor_invariants._enabled if check is None else check


def _values(values: Any, dtype: Any, device: Any, like: Any = None) -> Tensor:
    if not is_tensor(values):
        where = like.device if device is None and is_tensor(like) else device
        return creation.tensor(values, dtype=dtype, device=where)
    if dtype is not None or device is not None:
        return values.to(device=device, dtype=dtype)
    return values


def _indices(indices: Any, values: Tensor, *, keep: bool = False) -> Tensor:
    if not is_tensor(indices):
        made = creation.tensor(indices, device=values.device)
        return made.to(dtypes.int64)
    made = indices.detach() if indices.device == values.device else indices.to(values.device)
    return made if keep else made.to(dtypes.int64)


def _asked(t: SparseTensor, requires_grad: bool) -> SparseTensor:
    if requires_grad and not t.requires_grad:
        core.ask_gradient(t)
    return t


# ------------------------------------------------------------------------------------------- coordinates


def _countable(size: Sequence[int]) -> None:
    """RuntimeError if the number of elements does not fit int64, so that places cannot be numbered."""
    if prod(size) >= 1 << 63:
        raise RuntimeError("numel: integer multiplication overflow")


def coo_of(
    indices: Tensor,
    values: Tensor,
    size: Sequence[int] | None = None,
    *,
    coalesced: bool = False,
    check: bool | None = None,
) -> SparseTensor:
    """Make a sparse tensor of tensors, checked as torch does: shapes always, indices where asked."""
    if indices.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(indices.shape)}")
    if not values.ndim:
        values = values.reshape(1)
    dims, count = indices.shape
    dense = tuple(values.shape[1:])
    if size is not None and len(size) != dims + len(dense):
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = {dims}, dense_dim = {len(dense)}"
        )
    if values.shape[0] != count:
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {count}, nnz from values: {values.shape[0]}"
        )
    if size is None:
        if count:
            with unrecorded():
                ends = F["stack"]([indices.amin(1), indices.amax(1)]).tolist() if dims else [[], []]
            for dim, low in enumerate(ends[0]):
                if low < 0:
                    raise RuntimeError(f"found negative index {low} for dim {dim}")
            size = (*[n + 1 for n in ends[1]], *dense)
        else:
            size = (*[0] * dims, *dense)
        _countable(size)
        return pack(Pattern(size[:dims], indices, coalesced=coalesced, checked=True), values, size)
    size = Size(size)
    pattern, checks = Pattern(size[:dims], indices, coalesced=coalesced), _wanted(check)
    if checks:
        pattern.check()
    if tuple(size[dims:]) != dense:
        raise RuntimeError(
            f"values has incorrect size, expected {[count, *size[dims:]]}, got {list(values.shape)}"
        )
    _countable(size)
    if checks and coalesced and count > 1:
        keys = pattern.keys
        if not bool((keys[1:] > keys[:-1]).all()):
            raise RuntimeError(
                "cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor"
            )
    return pack(pattern, values, size)


@public(method=False)
def sparse_coo_tensor(
    *args: Any,
    indices: Any = None,
    values: Any = None,
    size: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> SparseTensor:
    """Make a sparse tensor of coordinates (sparse dims, entries) and values (entries, dense dims); an empty one of a size alone.

    Entries in one place stand for their sum. Gradients flow to `values`.
    """
    given = list(args)
    if indices is None and given and not (len(given) == 1 and values is None):
        indices = given.pop(0)
    if values is None and indices is not None and given:
        values = given.pop(0)
    if given:
        size = given.pop(0)
    if given:
        raise TypeError("sparse_coo_tensor() received an invalid combination of arguments")
    if indices is None:
        if size is None:
            raise TypeError("sparse_coo_tensor() received an invalid combination of arguments")
        made = empty(size, dtype, device)
        return _asked(made, requires_grad)
    if values is None:
        raise TypeError("sparse_coo_tensor() received an invalid combination of arguments")
    values = _values(values, dtype, device, indices)
    made = coo_of(
        _indices(indices, values),
        values,
        size,
        coalesced=bool(is_coalesced),
        check=check_invariants,
    )
    return _asked(made, requires_grad)


def empty(
    size: Sequence[int], dtype: Any = None, device: Any = None, sparse: int | None = None
) -> SparseTensor:
    """Make a sparse tensor without entries; the first `sparse` of its dims are sparse, by default all."""
    shape = Size(size)
    _countable(shape)
    where = place(device)
    dims = len(shape) if sparse is None else sparse
    values = creation.zeros((0, *shape[dims:]), dtype=dtype, device=where)
    return pack(empty_pattern(shape[:dims], where), values, shape)


# ------------------------------------------------------------------------------------------- compressed

_PARTS = {
    sparse_csr: ("crow_indices", "col_indices", 0),
    sparse_csc: ("ccol_indices", "row_indices", 1),
}


def compressed_of(
    pointer: Tensor,
    plain: Tensor,
    values: Tensor,
    size: Sequence[int] | None,
    kind: Layout,
    check: bool | None = None,
) -> SparseTensor:
    """Make a CSR or CSC matrix of its index tensors and values; dims of `values` after the first are dense ones."""
    first, second, along = _PARTS[kind]
    if pointer.ndim < 1:
        raise RuntimeError(f"{first} must have dimensionality >= 1 but got {pointer.ndim}")
    if pointer.ndim != plain.ndim:
        raise RuntimeError(
            f"{first} and {second} dimensionalities must be equal but got {pointer.ndim} and {plain.ndim}, respectively"
        )
    if pointer.ndim > 1:
        raise NotImplementedError(f"batches of {kind} tensors are not built")
    if values.ndim < 1:
        raise RuntimeError(
            "values must have dimensionality > sum of batch and block dimensionalities (=0 + 0) but got 0"
        )
    if size is None:
        lines, across = pointer.shape[0] - 1, int(plain.max()) + 1 if plain.numel() else 0
        size = (*((lines, across) if along == 0 else (across, lines)), *values.shape[1:])
    size = Size(size)
    if len(size) != 1 + values.ndim:
        raise RuntimeError(
            "tensor dimensionality must be sum of batch, base, and dense dimensionalities "
            f"(=0 + 2 + {values.ndim - 1}) but got {len(size)}"
        )
    if size[2:] != values.shape[1:]:
        raise RuntimeError(
            f"values have dense dims {list(values.shape[1:])}, and a size of {list(size)} wants {list(size[2:])}"
        )
    if pointer.shape[0] != size[along] + 1:
        raise (
            RuntimeError(
                f"{first}.shape[-1] must be equal to the number of {'rows' if along == 0 else 'columns'} + 1 (={size[along] + 1}), but got {pointer.shape[0]}"
            )
            if _wanted(check)
            else RuntimeError(f"{first}.shape[-1] must be equal to nrows + 1")
        )
    if plain.shape[0] != values.shape[0]:
        raise RuntimeError(
            f"{second}.shape[-1] must be equal to nnz (={values.shape[0]}) as defined by values.shape[0], but got {plain.shape[0]}"
        )
    pattern = Pattern(size[:2], None, compressed=(pointer, plain, along))
    if _wanted(check):
        _check_compressed(pattern, first, second)
    return pack(pattern, values, size, kind, "SparseCompressedTensorBackward0")


def _check_compressed(pattern: Pattern, first: str, second: str) -> None:
    assert pattern.compressed is not None
    pointer, plain, along = pattern.compressed
    if pointer.dtype is not plain.dtype:
        raise RuntimeError(
            f"{first} and {second} must have the same dtype, bot got {pointer.dtype.scalar_name} and {plain.dtype.scalar_name}, respectively"
        )
    if pointer.dtype not in (dtypes.int32, dtypes.int64):
        raise RuntimeError(
            f"{first} and {second} dtype must be Int or Long, but got {pointer.dtype.scalar_name}"
        )
    across = pattern.sizes[1 - along]
    lines, others = ("nrows", "ncols") if along == 0 else ("ncols", "nrows")
    with unrecorded():
        if plain.numel() and (int(plain.amin()) < 0 or int(plain.amax()) >= across):
            raise RuntimeError(f"`0 <= {second} < {others}` is not satisfied.")
        if int(pointer[0]):
            raise RuntimeError(f"`{first}[..., 0] == 0` is not satisfied.")
        if int(pointer[-1]) != plain.shape[0]:
            raise RuntimeError(f"`{first}[..., -1] == nnz` is not satisfied.")
        steps = pointer[1:] - pointer[:-1]
        if steps.numel() and not bool(((steps >= 0) & (steps <= across)).all()):
            raise RuntimeError(
                f"`0 <= {first}[..., 1:] - {first}[..., :-1] <= {others}` is not satisfied."
            )
        indices = pattern.indices
        keys = indices[along] * across + indices[1 - along]
        if not bool((keys[1:] > keys[:-1]).all()):
            raise RuntimeError(
                f"`{second}[..., {first}[..., i - 1]:{first}[..., i]] for all i = 1, ..., {lines} are sorted and distinct along the last "
                "dimension values` is not satisfied."
            )


def _compressed(kind: Layout, parts: tuple, size: Any, dtype: Any, device: Any, requires_grad: bool, check: Any) -> SparseTensor:  # fmt: skip
    if kind in (sparse_bsr, sparse_bsc):
        raise NotImplementedError(f"{kind} tensors are not built: use sparse_csr or sparse_coo")
    if kind not in _PARTS:
        raise RuntimeError(
            "expected sparse compressed tensor layout but got "
            + {strided: "Strided", sparse_coo: "Sparse"}.get(kind, str(kind))
        )
    values = _values(parts[2], dtype, device, parts[0])
    pointer, plain = (_indices(x, values, keep=True) for x in parts[:2])
    return _asked(compressed_of(pointer, plain, values, size, kind, check), requires_grad)


@public(method=False)
def sparse_csr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> SparseTensor:
    """Make a sparse matrix by rows: where each begins among the entries, and the column and value of each entry."""
    parts = (crow_indices, col_indices, values)
    return _compressed(sparse_csr, parts, size, dtype, device, requires_grad, check_invariants)


@public(method=False)
def sparse_csc_tensor(
    ccol_indices: Any,
    row_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> SparseTensor:
    """Make a sparse matrix by columns: where each begins among the entries, and the row and value of each entry."""
    parts = (ccol_indices, row_indices, values)
    return _compressed(sparse_csc, parts, size, dtype, device, requires_grad, check_invariants)


@public(method=False)
def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> SparseTensor:
    """Make a sparse matrix compressed as `layout` says: by rows or by columns."""
    if layout is None:
        raise RuntimeError(
            "sparse_compressed_tensor expected sparse compressed tensor layout but got none"
        )
    parts = (compressed_indices, plain_indices, values)
    return _compressed(layout, parts, size, dtype, device, requires_grad, check_invariants)


@public("_validate_sparse_coo_tensor_args", method=False)
def validate_coo(
    indices: Tensor, values: Tensor, size: Any, is_coalesced: Any = None, check_pinning: Any = None
) -> None:
    """Raise the error that makers with `check_invariants` raise."""
    coo_of(indices, values, size, coalesced=bool(is_coalesced), check=True)


@public("_validate_sparse_compressed_tensor_args", method=False)
def validate_compressed(
    compressed_indices: Tensor,
    plain_indices: Tensor,
    values: Tensor,
    size: Any,
    layout: Layout,
    check_pinning: Any = None,
) -> None:
    """Raise the error that makers with `check_invariants` raise."""
    compressed_of(compressed_indices, plain_indices, values, size, layout, True)


def _not_built(name: str, kind: str) -> None:
    def make(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"{name}: {kind} tensors are not built: use sparse_csr or sparse_coo"
        )

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"NotImplementedError: {kind} tensors are not built."
    public(name, method=name.startswith("to_"), function=not name.startswith("to_"))(make)


for _kind in ("bsr", "bsc"):
    _not_built(f"sparse_{_kind}_tensor", f"sparse_{_kind}")
    _not_built(f"to_sparse_{_kind}", f"sparse_{_kind}")


# ------------------------------------------------------------------------------------------- by layout


def _zeros(name: str, like: bool) -> None:
    def make(
        *args: Any,
        size: Any = None,
        layout: Layout,
        dtype: Any,
        device: Any,
        requires_grad: bool,
        out: Any = None,
        memory_format: Any = None,
    ) -> SparseTensor:
        if memory_format is not None:
            raise RuntimeError("memory format option is only supported by strided tensors")
        if name == "empty_like":
            raise refuse("empty_strided")
        if out is not None:
            made = make(*args, size=size, layout=layout, dtype=dtype, device=device, requires_grad=False)  # fmt: skip
            return _asked(out._become(made), requires_grad)
        shape = args[0].shape if like else shape_of(name, args, size)
        dev = device or args[0].device if like else device
        if layout is sparse_coo:
            return _asked(
                empty(shape, dtype or (args[0].dtype if like else None), dev), requires_grad
            )
        if len(shape) < 2 and layout in _PARTS:
            raise RuntimeError(
                f"torch.{name}: Only batched sparse compressed (non-block) tensors are supported, but got size {list(shape)}"
            )
        if len(shape) != 2 or layout not in _PARTS:
            raise NotImplementedError(
                f"{name}: {layout} tensors of {len(shape)} dims are not built"
            )
        lines = shape[_PARTS[layout][2]]
        none = creation.zeros(0, dtype=dtypes.int64, device=dev)
        values = creation.zeros(0, dtype=dtype or (args[0].dtype if like else None), device=dev)
        pointer = none.new_zeros(lines + 1)
        return _asked(compressed_of(pointer, none, values, shape, layout), requires_grad)

    HANDLERS[f"{name} laid out"] = make


def _full(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError("full(...) is not implemented for sparse layout")


for _name in ("zeros", "empty"):
    _zeros(_name, False)
    _zeros(f"{_name}_like", True)
HANDLERS["ones laid out"] = HANDLERS["full laid out"] = _full
