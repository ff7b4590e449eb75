"""Tensors in `.safetensors` files, by name, through the safetensors package. Files hold data only: nothing in them is ever run.

The package lays out and checks the bytes. It takes memory, not arrays, so that bfloat16, for which numpy has no type,
can be written and read, too. An existing file is replaced only when the new one is complete.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

try:
    from safetensors import SafetensorError, TensorSpec, deserialize, safe_open, serialize
except ImportError as error:
    raise ImportError(
        "safetensors files need the safetensors package: install it with `pip install 'safetensors>=0.8'`"
    ) from error

from .. import dtypes
from ..creation import tensor
from ..host import host_array
from ..serialization import archive
from ..tensor import Tensor
from .npz import check_names

__all__ = ["load", "load_file", "metadata", "save", "save_file"]

_DTYPES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "I16": "int16", "U16": "uint16", "I32": "int32", "U32": "uint32", "I64": "int64",
    "U64": "uint64", "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64", "C64": "complex64",
}  # fmt: skip


@contextmanager
def _damage_told() -> Iterator[None]:
    try:
        yield
    except SafetensorError as error:
        raise RuntimeError(f"the safetensors file is damaged: {error}") from error


def _spec(name: str, t: Tensor, array: np.ndarray) -> TensorSpec:
    """Describe a tensor whose elements lie in `array`, which must outlive the description."""
    try:
        return TensorSpec(
            dtype=t.dtype.name,
            shape=tuple(t.shape),
            data_ptr=array.ctypes.data,
            data_len=array.nbytes,
        )
    except SafetensorError as error:
        raise TypeError(
            f"safetensors has no type for tensor {name!r} of dtype {t.dtype}"
        ) from error


def save(tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """Return the bytes of a safetensors file that holds tensors and, as metadata, texts.

    ValueError for a value that is no tensor, TypeError for a dtype the format lacks or metadata that are not texts.
    """
    check_names(tensors)
    arrays = {name: np.ascontiguousarray(host_array(t.detach())) for name, t in tensors.items()}
    specs = {name: _spec(name, t, arrays[name]) for name, t in tensors.items()}
    return serialize(specs, metadata=metadata)


def save_file(
    tensors: Mapping[str, Tensor], filename: Any, metadata: dict[str, str] | None = None
) -> None:
    """Write tensors and metadata to a safetensors file. Errors are those of `save`."""
    content = save(tensors, metadata)
    with archive.output(filename) as file:
        file.write(content)


def load(data: bytes, device: Any = "cpu") -> dict[str, Tensor]:
    """Return the tensors that the bytes of a safetensors file hold, on `device`.

    RuntimeError for damaged bytes, TypeError for a type of the format that cltensor has no dtype for.
    """
    with _damage_told():
        found = deserialize(data)
    return {name: _tensor(name, entry, device) for name, entry in found}


def load_file(filename: Any, device: Any = "cpu") -> dict[str, Tensor]:
    """Read the tensors of a safetensors file, onto `device`. Errors are those of `load`."""
    with open(os.fspath(filename), "rb") as file:
        return load(file.read(), device)


def metadata(filename: Any) -> dict[str, str]:
    """Return the metadata (texts) of a safetensors file. RuntimeError for a damaged file."""
    with _damage_told(), safe_open(os.fspath(filename), framework="np") as file:
        return file.metadata() or {}


def _tensor(name: str, entry: Mapping[str, Any], device: Any) -> Tensor:
    code = entry["dtype"]
    if code not in _DTYPES:
        raise TypeError(f"tensor {name!r} is stored as {code}, which no dtype here can hold")
    dt = getattr(dtypes, _DTYPES[code])
    kind = np.dtype(np.int16) if dt.np is None else dt.np
    made = tensor(np.frombuffer(entry["data"], kind).reshape(entry["shape"]), device=device)
    return made if dt.np is not None else made.view(dt)
