"""Collating: making a batch of a list of samples, by a function chosen for the type of the first sample.

`default_collate_fn_map` is the registry of types; programs add their own. In a worker process the same recursion ends
in other functions, which leave arrays on the host (`HostTensor`); the receiving process makes tensors of them, so that
no worker starts OpenCL.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ...creation import as_tensor, from_numpy, parse, tensor
from ...host import host_array
from ...ops.convert import canonical
from ...ops.row import FUNCTIONS
from ...runtime import get_backend
from ...size import Size
from ...storage import Storage
from ...tensor import Tensor

default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)
np_str_obj_array_pattern = re.compile(r"[SaUO]")

FnMap = dict[Any, Callable[..., Any]]


def collate(batch: Any, *, collate_fn_map: FnMap | None = None) -> Any:
    """Collate samples by the function registered for the type of the first, containers without a function item by item.

    TypeError for a type that is neither registered nor a container, RuntimeError for sequences of different lengths.
    """
    first = batch[0]
    for kind, fn in (collate_fn_map or {}).items():
        if type(first) is kind:
            return fn(batch, collate_fn_map=collate_fn_map)
    for kind, fn in (collate_fn_map or {}).items():
        if isinstance(first, kind):
            return fn(batch, collate_fn_map=collate_fn_map)

    def down(samples: Any) -> Any:
        return collate(samples, collate_fn_map=collate_fn_map)

    if isinstance(first, Mapping):
        return like_mapping(first, {key: down([d[key] for d in batch]) for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(down(samples) for samples in zip(*batch, strict=False)))
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [down(samples) for samples in zip(*batch, strict=True)]
        return columns if isinstance(first, tuple) else like_sequence(first, columns)
    raise TypeError(default_collate_err_msg_format.format(type(first)))


def like_mapping(model: Any, items: dict[Any, Any]) -> Any:
    """Return the items in a mapping of the model's type; in a copy of the model, with its attributes, if it is mutable.

    Return a plain dict if such a mapping cannot be made.
    """
    try:
        if isinstance(model, MutableMapping):
            made = copy.copy(model)
            made.update(items)
            return made
        return type(model)(items)
    except TypeError:
        return items


def like_sequence(model: Any, items: list[Any]) -> Any:
    """Return the items in a sequence of the model's type, or in a list if none can be made."""
    try:
        if isinstance(model, MutableSequence):
            made = copy.copy(model)
            for i, item in enumerate(items):
                made[i] = item
            return made
        return type(model)(items)
    except TypeError:
        return items


def collate_tensor_fn(batch: Any, *, collate_fn_map: FnMap | None = None) -> Any:
    """Stack tensors."""
    return FUNCTIONS["stack"](list(batch), 0)


def _refuse_text(array: np.ndarray) -> None:
    if np_str_obj_array_pattern.search(array.dtype.str) is not None:
        raise TypeError(default_collate_err_msg_format.format(array.dtype))


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: FnMap | None = None) -> Any:
    """Stack arrays into a tensor."""
    return _to_tensor(_host_arrays(batch))


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: FnMap | None = None) -> Any:
    """Make a tensor from numpy's scalars."""
    return as_tensor(np.asarray(batch))


def collate_float_fn(batch: Any, *, collate_fn_map: FnMap | None = None) -> Any:
    """Make a float64 tensor from numbers."""
    return tensor(batch, dtype=dtypes.float64)


def collate_int_fn(batch: Any, *, collate_fn_map: FnMap | None = None) -> Any:
    """Make an integer (or bool) tensor from numbers."""
    return tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: FnMap | None = None) -> Any:
    """Leave text as it is."""
    return batch


default_collate_fn_map: FnMap = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_collate(batch: Any) -> Any:
    """Put samples together: tensors, arrays and numbers are stacked along a new first dimension, containers keep their kind.

    >>> torch.utils.data.default_collate([(0, 1.5), (2, 3.5)])
    [tensor([0, 2]), tensor([1.5000, 3.5000], dtype=torch.float64)]
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def default_convert(data: Any) -> Any:
    """Turn numpy's arrays and scalars inside containers into tensors; leave everything else."""
    return _convert(data, as_tensor)


def _convert(data: Any, leaf: Callable[[Any], Any]) -> Any:
    if isinstance(data, Tensor):
        return data
    if type(data).__module__ == "numpy":
        if (
            isinstance(data, np.ndarray)
            and np_str_obj_array_pattern.search(data.dtype.str) is not None
        ):
            return data
        return leaf(data)
    if isinstance(data, Mapping):
        return like_mapping(data, {key: _convert(value, leaf) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(_convert(value, leaf) for value in data))
    if isinstance(data, tuple):
        return [_convert(value, leaf) for value in data]
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        return like_sequence(data, [_convert(value, leaf) for value in data])
    return data


# ------------------------------------------------------------------------------------- on the host, in worker processes


class HostTensor:
    """The host memory and the metadata of a tensor, as sent between processes; `made` makes a tensor from them."""

    __slots__ = ("array", "device", "dtype", "requires_grad", "shape")

    def __init__(
        self,
        array: np.ndarray,
        shape: tuple[int, ...],
        dt: dtypes.dtype,
        device: str = "cpu",
        requires_grad: bool = False,
    ) -> None:
        self.array, self.shape, self.dtype = array, shape, dt
        self.device, self.requires_grad = device, requires_grad

    def made(self) -> Tensor:
        """Make the tensor, on its device."""
        place = canonical(self.device)
        data = np.frombuffer(self.array, np.uint8) if self.array.nbytes else self.array
        t = Tensor._make(
            Storage.from_host(get_backend(place), data),
            Size(self.shape),
            self.dtype,
            place,
            None,
            0,
        )
        t._requires = self.requires_grad
        return t


def to_host(t: Tensor) -> HostTensor:
    """Return a tensor's elements, read to the host, and metadata as a HostTensor."""
    array = np.ascontiguousarray(host_array(t.detach()))
    return HostTensor(array, tuple(t.shape), t.dtype, str(t.device), t.requires_grad)


def _host_arrays(batch: Any) -> HostTensor:
    for array in batch:
        _refuse_text(array)
    array = np.stack(batch)
    return HostTensor(array, array.shape, dtypes.from_numpy(array.dtype))


def _to_tensor(host: HostTensor) -> Tensor:
    return from_numpy(host.array)


def _host_tensors(batch: Any, *, collate_fn_map: FnMap | None = None) -> HostTensor:
    first = batch[0]
    if any(t.shape != first.shape for t in batch):
        FUNCTIONS["stack"](list(batch), 0)  # raises torch's error
    array = np.stack([host_array(t.detach()) for t in batch])
    return HostTensor(array, (len(batch), *first.shape), first.dtype, str(first.device))


def _host_numbers(batch: Any, *, collate_fn_map: FnMap | None = None) -> HostTensor:
    floating = type(batch[0]) is float or isinstance(batch[0], float)
    array, dt = parse(list(batch), dtypes.float64 if floating else None)
    array = np.ascontiguousarray(array, dt.np)
    return HostTensor(array, array.shape, dt)


_HOST_FORM: dict[Any, Callable[..., Any]] = {
    collate_tensor_fn: _host_tensors,
    collate_numpy_array_fn: lambda batch, *, collate_fn_map=None: _host_arrays(batch),
    collate_numpy_scalar_fn: lambda batch, *, collate_fn_map=None: _host_leaf(np.asarray(batch)),
    collate_float_fn: _host_numbers,
    collate_int_fn: _host_numbers,
}


def _host_leaf(value: Any) -> HostTensor:
    array = np.ascontiguousarray(value)
    return HostTensor(array, np.shape(value), dtypes.from_numpy(array.dtype))


def host_form(collate_fn: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return what a worker runs for a collate function: for a default one, the variant that makes HostTensors."""
    if collate_fn is default_collate:
        table = {kind: _HOST_FORM.get(fn, fn) for kind, fn in default_collate_fn_map.items()}
        return lambda batch: collate(batch, collate_fn_map=table)
    if collate_fn is default_convert:
        return lambda data: _convert(data, _host_leaf)
    return collate_fn
