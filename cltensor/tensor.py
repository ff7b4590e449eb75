"""`Tensor`: a storage, a layout and, if it has a history, a node of the autograd graph; conversions to Python, copies.

What ops compute is in `ops/`, gradients are in `autograd/`; operators.py attaches operators and the rows' methods.
"""

from __future__ import annotations

import copy as copying
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from . import layouts, printing
from .attributes import of_class, restore, slots, state
from .autograd import AutogradMixin
from .autograd.mode import GRAD, INFERENCE
from .autograd.version import InferenceVersion, VersionCounter
from .dtypes import dtype
from .errors import warn_once
from .host import host_array, shared_array, widen
from .memory_format import contiguous_format, strided
from .memory_format import layout as _layout
from .ops import complex_numbers, convert, core, formats
from .ops import index as indexing
from .ops import row as rows
from .ops import shape as view_ops
from .ops.core import NUMBERS
from .runtime import device, get_backend
from .size import Size
from .storage import Storage
from .storages import CLASSES, TypedStorage, UntypedStorage, warn_typed

if TYPE_CHECKING:
    from ._surface import Methods
else:
    Methods = object


class _Strides:
    """Row-major strides of a tensor made without strides; after the first read an attribute of the instance."""

    def __get__(self, t: Any, owner: Any) -> Any:
        if t is None:
            return self
        t._strides = strides = layouts.contiguous_strides(t.shape)
        return strides


class Tensor(AutogradMixin, Methods):
    """An n-dimensional array on an OpenCL device.

    Attributes: `shape` (Size), `dtype`, `device`. Strides and offsets count elements. Results of pointwise operations are lazy:
    they run, fused, when their values are needed.

    >>> import cltensor as torch
    >>> torch.Tensor([[1, 2], [3, 4]]).sum(0)
    tensor([4., 6.])
    """

    shape: Size
    dtype: dtype
    device: device
    _storage: Storage
    _offset: int
    _contig: bool | None = None
    __array_priority__ = 1000

    def __new__(cls, *args: Any, device: Any = None) -> Tensor:
        """Make a tensor of the default dtype from sizes, a Size, a sequence, an array or another tensor."""
        from .creation import legacy_new

        made = legacy_new(args, None, device)
        return made if cls is Tensor else of_class(made, cls)

    @classmethod
    def _make(
        cls,
        storage: Storage,
        shape: tuple[int, ...],
        dt: Any,
        dev: Any,
        strides: tuple[int, ...] | None,
        offset: int,
    ) -> Tensor:
        t = object.__new__(cls)
        t._storage = storage
        t.shape = shape if shape.__class__ is Size else Size(shape)
        t.dtype = dt
        t.device = dev
        if strides is None:
            t._contig = True
        else:
            t._strides = strides
            # The first condition is there because the second one takes longer.
            if (not strides or strides[-1] == 1) and strides == layouts.contiguous_strides(t.shape):
                t._contig = True
        t._offset = offset
        t._requires, t._node, t._view = False, None, None
        t._vc = InferenceVersion() if INFERENCE.used and GRAD.inference else VersionCounter()
        return t

    @staticmethod
    def _dense(storage: Storage, shape: Size, dt: Any, dev: Any) -> Tensor:
        """Do what `_make` does, for a contiguous tensor at the beginning of its storage."""
        t = object.__new__(Tensor)
        t._storage, t.shape, t.dtype, t.device = storage, shape, dt, dev
        t._contig, t._offset = True, 0
        t._requires, t._node, t._view = False, None, None
        t._vc = InferenceVersion() if INFERENCE.used and GRAD.inference else VersionCounter()
        return t

    @staticmethod
    def _alias(
        x: Tensor, shape: tuple[int, ...], strides: tuple[int, ...] | None, offset: int
    ) -> Tensor:
        """Make a tensor of another layout on the memory of `x`, whose versions they share; without history."""
        t = object.__new__(Tensor)
        t._storage, t.dtype, t.device, t._vc = x._storage, x.dtype, x.device, x._vc
        t.shape = shape = shape if shape.__class__ is Size else Size(shape)
        if strides is None:
            t._contig = True
        else:
            t._strides = strides
            # The first condition is there because the second one takes longer.
            if (not strides or strides[-1] == 1) and strides == layouts.contiguous_strides(shape):
                t._contig = True
        t._offset = offset
        t._requires, t._node, t._view = False, None, None
        return t

    @staticmethod
    def _scalar(value: Any) -> Tensor:
        from .creation import tensor

        return tensor(value)

    # ------------------------------------------------------------------------------------- layout

    _strides: Any = _Strides()

    def _set_layout(self, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> None:
        self.shape = Size(shape)
        self._strides = strides
        self._offset = offset
        self._contig = True if strides == layouts.contiguous_strides(shape) else None

    def _take_layout(self, other: Tensor) -> Tensor:
        """Take layout, history and tangents from `other`, a view of self (for in-place view methods); return self."""
        self._set_layout(other.shape, other._strides, other._offset)
        if other._node is not None:
            self._node, self._nr = other._node, other._nr
        if other._fw is not None:
            self._fw = other._fw
        return self

    def size(self, dim: int | None = None) -> Any:
        """Return the shape, or the size of one dimension."""
        return self.shape if dim is None else self.shape[layouts.own_dim(dim, len(self.shape))]

    def stride(self, dim: int | None = None) -> Any:
        """Return the strides in elements, or that of one dimension."""
        return (
            self._strides if dim is None else self._strides[layouts.own_dim(dim, len(self.shape))]
        )

    def storage_offset(self) -> int:
        """Return the first element's place in the storage, in elements."""
        return self._offset

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def dim(self) -> int:
        """Return the number of dimensions."""
        return len(self.shape)

    ndimension = dim

    def numel(self) -> int:
        """Return the number of elements."""
        return layouts.numel(self.shape)

    nelement = numel

    def element_size(self) -> int:
        """Return the bytes of one element."""
        return self.dtype.itemsize

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.numel() * self.dtype.itemsize

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Tell whether elements lie without gaps in the order of the format, row-major by default."""
        if memory_format is not None and memory_format is not contiguous_format:
            return formats.is_in(self, memory_format)
        contig = self._contig
        if contig is None:
            contig = layouts.is_contiguous(tuple(self.shape), self._strides)
            if not contig or self._strides == layouts.contiguous_strides(self.shape):
                self._contig = contig  # True promises row-major strides in dims of size 1, too
        return contig

    def data_ptr(self) -> int:
        """Return the address of the first element; stays valid while the storage lives."""
        if not self.numel():
            return 0
        return self._storage.data_ptr() + self._offset * self.dtype.itemsize

    const_data_ptr = data_ptr

    def untyped_storage(self) -> UntypedStorage:
        """Return the memory this tensor shares with its views."""
        return UntypedStorage._over(self._storage, self.device)

    def storage(self) -> TypedStorage:
        """Return the memory this tensor shares with its views, as elements; deprecated, see `untyped_storage`."""
        warn_typed()
        return TypedStorage._over(self._storage, self.device, self.dtype)

    def storage_type(self) -> Any:
        """Return the class of `storage()` by name: `torch.FloatStorage` and its kin."""
        return CLASSES[self.storage().pickle_storage_type()]

    @property
    def is_cuda(self) -> bool:
        """Whether the device is a GPU named as `cuda`."""
        return self.device.type == "cuda"

    is_cpu = property(
        lambda self: self.device.type == "cpu", doc="Whether the device is the host's."
    )
    is_meta = property(
        lambda self: self.device.type == "meta",
        doc="Whether there are no values, only their shape.",
    )
    is_sparse = is_sparse_csr = is_quantized = is_mkldnn = is_nested = property(lambda self: False)
    is_mps = is_xpu = is_mtia = is_maia = is_ipu = is_xla = is_vulkan = is_sparse
    name = property(lambda self: None, doc="No name: a module's parameters have theirs there.")

    def is_floating_point(self) -> bool:
        """Tell whether the dtype is a real floating type."""
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        """Tell whether the dtype is complex."""
        return self.dtype.is_complex

    def is_signed(self) -> bool:
        """Tell whether the dtype has a sign."""
        return self.dtype.is_signed

    def is_conj(self) -> bool:
        """Tell whether a conjugation is pending: never."""
        return False

    is_neg = is_conj

    def is_nonzero(self) -> bool:
        """Tell whether the only element is not zero."""
        return bool(self)

    @property
    def layout(self) -> _layout:
        """How the elements are stored: always strided."""
        return strided

    def is_pinned(self, device: Any = None) -> bool:
        """Tell whether the memory is page-locked: never."""
        return False

    def pin_memory(self, device: Any = None) -> Tensor:
        """Return the tensor: transfers need no page-locked memory."""
        return self

    def get_device(self) -> int:
        """Return the device index, -1 on cpu."""
        return -1 if self.device.type == "cpu" else self.device.index or 0

    def is_same_size(self, other: Tensor) -> bool:
        """Tell whether shapes agree."""
        return self.shape == other.shape

    def is_set_to(self, tensor: Tensor) -> bool:
        """Tell whether the other tensor has the same storage and layout."""
        return (
            self._storage is tensor._storage
            and self.shape == tensor.shape
            and self._strides == tensor._strides
            and self._offset == tensor._offset
        )

    # ------------------------------------------------------------------------------------- history

    def alias(self) -> Tensor:
        """Return a new tensor object with the same storage, layout and version, without history."""
        t = object.__new__(Tensor)
        t._storage, t.shape, t.dtype, t.device = self._storage, self.shape, self.dtype, self.device
        t._strides = self._strides
        t._offset = self._offset
        t._contig = self._contig
        t._vc = self._vc
        return t

    def detach(self) -> Tensor:
        """Return the same memory without history."""
        return self.alias()

    @property
    def data(self) -> Tensor:
        """The same memory without history and with its own version counter."""
        t = self.alias()
        t._vc = type(self._vc)()
        return t

    @data.deleter
    def data(self) -> None:
        raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        if self._requires and value.dtype.category < 2:
            raise RuntimeError(
                "data set to a tensor that requires gradients must be floating point or complex dtype"
            )
        if value.layout is not self.layout:
            raise RuntimeError(
                "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor type."
            )
        self._storage = value._storage
        self.dtype = value.dtype
        self.device = value.device
        self._acc = None
        self._set_layout(value.shape, value._strides, value._offset)

    # ------------------------------------------------------------------------------------- to Python

    def _host(self) -> np.ndarray:
        """Return a numpy array of the elements, not to be kept: bits for bfloat16, pairs of them for complex32."""
        return host_array(self)

    def item(self) -> Any:
        """Return the only element as a Python number."""
        if self.numel() != 1:
            raise RuntimeError(
                f"a Tensor with {self.numel()} elements cannot be converted to Scalar"
            )
        size = self.dtype.itemsize
        try:
            raw = self._storage.host(self._offset * size, size)
        except NotImplementedError:
            if self.is_meta:
                raise RuntimeError("Tensor.item() cannot be called on meta tensors") from None
            raise
        if self.dtype.np is not None:
            return raw.view(self.dtype.np)[0].item()
        return widen(raw.view(np.uint16), self.dtype).reshape(-1)[0].item()

    def tolist(self) -> Any:
        """Return the elements as nested lists of Python numbers, a 0-dim tensor as a number."""
        array = host_array(self)
        return (array if self.dtype.np is not None else widen(array, self.dtype)).tolist()

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """Return a numpy array on the same memory; cpu only, unless `force` allows a copy."""
        if force:
            return self.detach().cpu().numpy()
        if self.device.type != "cpu":
            raise TypeError(
                f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
            )
        if GRAD.enabled and self.requires_grad:
            raise RuntimeError(
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
            )
        if self.dtype.np is None:
            raise TypeError(f"Got unsupported ScalarType {self.dtype.scalar_name}")
        return shared_array(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            array = array.astype(dtype, copy=True)
        return array.copy() if copy else array

    def __array_wrap__(
        self, array: np.ndarray, context: Any = None, return_scalar: bool = False
    ) -> Any:
        from .creation import from_numpy

        if array.dtype == bool:  # as torch, whose oldest versions had no bool
            array = array.astype(np.uint8)
        return from_numpy(np.atleast_1d(array) if array.ndim == 0 else array).reshape(array.shape)

    def _number(self, kind: type, what: str) -> Any:
        if self.numel() != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        value = self.item()
        if isinstance(value, complex) and kind is not complex and value.imag:
            raise RuntimeError(f"value cannot be converted to type {what} without overflow")
        return kind(value.real if isinstance(value, complex) and kind is not complex else value)

    def __float__(self) -> float:
        _warn_of_history(self)
        return self._number(float, "double")

    def __int__(self) -> int:
        return self._number(int, "int64_t")

    def __complex__(self) -> complex:
        _warn_of_history(self)
        return self._number(complex, "c10::complex<double>")

    def __index__(self) -> int:
        if self.numel() != 1 or self.dtype.category > 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def __bool__(self) -> bool:
        if self.numel() != 1:
            if not self.numel():
                raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
        return bool(self.item())

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self.shape:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __contains__(self, element: Any) -> bool:
        if isinstance(element, (Tensor, *NUMBERS)):
            return bool(rows.ROWS["eq"](self, element).any())
        raise RuntimeError(
            f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}."
        )

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        return printing.tensor_str(self, tensor_contents)

    def __format__(self, spec: str) -> str:
        if not self.shape and type(self) is Tensor and not self.is_meta:
            return self.item().__format__(spec)
        return object.__format__(self, spec)

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self.__dict__, "shape", "dtype", "device"})

    # ------------------------------------------------------------------------------------- copies

    def __copy__(self) -> Tensor:
        t = of_class(self.alias(), type(self))
        t._requires = self.requires_grad  # a leaf, as in torch
        t.__dict__.update(self.__dict__)
        for name, value in slots(self).items():
            setattr(t, name, value)
        return t

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  If you were attempting to "
                "deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, see https://github.com/pytorch/pytorch/pull/103001"
            )
        if id(self) in memo:
            return memo[id(self)]
        t = Tensor._make(
            copying.deepcopy(self._storage, memo),
            self.shape,
            self.dtype,
            self.device,
            self._strides,
            self._offset,
        )
        t = of_class(t, type(self))
        t._requires = self.requires_grad
        if self._grad is not None:
            t._grad = copying.deepcopy(self._grad, memo)
        memo[id(self)] = t
        t.__dict__.update(copying.deepcopy(dict(self.__dict__), memo))
        for name, value in slots(self).items():
            setattr(t, name, copying.deepcopy(value, memo))
        return t

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        extent = (
            layouts.storage_extent(tuple(self.shape), self._strides, self._offset)
            if self.numel()
            else 0
        )
        data = b""
        if extent and not self.is_meta:
            data = self._storage.host(0, extent * self.dtype.itemsize).tobytes()
        made = (
            type(self),
            data,
            tuple(self.shape),
            self._strides,
            self._offset,
            self.dtype,
            str(self.device),
            self.requires_grad,
            state(self) or None,
        )
        return _rebuild, made

    def cpu(self, memory_format: Any = None) -> Tensor:
        """Copy to the host's device; the tensor itself if it is there."""
        return self.to("cpu", memory_format=memory_format)

    def cuda(
        self, device: Any = None, non_blocking: bool = False, memory_format: Any = None
    ) -> Tensor:
        """Copy to a GPU."""
        return self.to(
            "cuda" if device is None else f"cuda:{device}" if isinstance(device, int) else device,
            memory_format=memory_format,
        )

    # ------------------------------------------------------------------------------------- operators

    __getitem__ = indexing.getitem
    __setitem__ = indexing.setitem

    def __reversed__(self) -> Tensor:
        return self.flip(0) if self.ndim else self

    def __delitem__(self, index: Any) -> None:
        raise TypeError("Tensor does not support deleting items")

    T = property(view_ops.numpy_T)
    mT = property(view_ops.matrix_T)
    H, mH = property(view_ops.numpy_H), property(view_ops.matrix_H)
    real = property(complex_numbers.real, complex_numbers.set_real)
    imag = property(complex_numbers.imag, complex_numbers.set_imag)


def _warn_of_history(t: Tensor) -> None:
    if (t._requires or t._node is not None) and GRAD.enabled:
        warn_once(
            "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
            "Consider using tensor.detach() first."
        )


def _rebuild(
    cls: type,
    data: bytes,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    offset: int,
    dt: dtype,
    dev: str,
    requires: bool,
    kept: Any = None,
) -> Tensor:
    place = convert.canonical(dev)
    storage = Storage.from_host(get_backend(place), np.frombuffer(data, np.uint8))
    t = of_class(Tensor._make(storage, shape, dt, place, strides, offset), cls)
    t._requires = requires
    if kept is not None:
        restore(t, kept)
    return t


def _refuse_writing(name: str) -> Any:
    def put(self: Tensor, value: Any = None) -> None:
        raise AttributeError(f"attribute '{name}' of 'torch._C.TensorBase' objects is not writable")

    return put


# Properties without a setter refuse writes and deletion in torch's words. `shape`, `dtype` and `device` could be written: they are
# plain attributes, because every op reads them and a descriptor would slow that down.
for _name in dir(Tensor):
    _found = getattr(Tensor, _name)
    if isinstance(_found, property) and _found.fset is None:
        _refuse = _refuse_writing(_name)
        setattr(Tensor, _name, _found.setter(_refuse).deleter(_refuse))

core.Registry.adopt(Tensor)
