"""Tensors in `.safetensors` and `.npz` files, by name. Files hold data only: nothing in them is ever run.

A safetensors file is the length of a header, the header in JSON, and the elements; it is read and written here, and needs no
package. `.npz` goes through numpy. Paths are replaced only when everything is written.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import dtypes
from ..creation import tensor
from ..serialization import archive
from ..tensor import Tensor, host_array

__all__ = ["load_file", "load_npz", "metadata", "save_file", "save_npz"]

_NAMES = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "int16": "I16", "uint16": "U16", "int32": "I32", "uint32": "U32", "int64": "I64",
    "uint64": "U64", "float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64", "complex64": "C64",
}  # fmt: skip
_DTYPES = {code: getattr(dtypes, name) for name, code in _NAMES.items()}


_MOST = 100_000_000  # bytes of a header, the format's own limit


def _bytes(t: Tensor) -> np.ndarray:
    return np.ascontiguousarray(host_array(t.detach())).reshape(-1).view(np.uint8)


def _check(tensors: Mapping[str, Tensor]) -> None:
    for name, t in tensors.items():
        if not isinstance(name, str) or not isinstance(t, Tensor):
            raise ValueError(f"expected a dict from names to tensors, but {name!r} is {type(t)}")


def save_file(
    tensors: Mapping[str, Tensor], filename: Any, metadata: dict[str, str] | None = None
) -> None:
    """Write tensors, and texts beside them, to a safetensors file.

    ValueError for a value that is no tensor, TypeError for a dtype the format lacks.
    """
    _check(tensors)
    header: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    end = 0
    # The largest elements first, so that each lies at a multiple of its size.
    order = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    for name in order:
        t = tensors[name]
        if t.dtype.name not in _NAMES:
            raise TypeError(f"safetensors has no type for tensor {name!r} of dtype {t.dtype}")
        header[name] = {
            "dtype": _NAMES[t.dtype.name],
            "shape": list(t.shape),
            "data_offsets": [end, end + t.nbytes],
        }
        end += t.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with archive.output(filename) as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in order:
            file.write(_bytes(tensors[name]).data)


def _damaged(what: str) -> RuntimeError:
    return RuntimeError(f"the safetensors file is damaged: {what}")


def _read(filename: Any) -> tuple[dict[str, Any], bytes]:
    """The header and the elements."""
    with open(os.fspath(filename), "rb") as file:
        content = file.read()
    size = int.from_bytes(content[:8], "little")
    if len(content) < 8 or size > min(_MOST, len(content) - 8):
        raise _damaged("its header is longer than the file")
    try:
        header = json.loads(content[8 : 8 + size])
    except (ValueError, RecursionError) as error:
        raise _damaged("its header is no JSON") from error
    if not isinstance(header, dict):
        raise _damaged("its header is no table")
    return header, content[8 + size :]


def metadata(filename: Any) -> dict[str, str]:
    """Return the texts stored beside the tensors of a safetensors file. RuntimeError for a damaged file."""
    return _read(filename)[0].get("__metadata__") or {}


def load_file(filename: Any, device: Any = "cpu") -> dict[str, Tensor]:
    """Read the tensors of a safetensors file to a device. RuntimeError for a damaged file."""
    header, data = _read(filename)
    header.pop("__metadata__", None)
    return {name: _tensor(name, entry, data, device) for name, entry in header.items()}


def _tensor(name: str, entry: Any, data: bytes, device: Any) -> Tensor:
    try:
        dt, shape, (start, end) = _DTYPES.get(entry["dtype"]), entry["shape"], entry["data_offsets"]
        sound = all(n.__class__ is int and n >= 0 for n in (*shape, start, end))
    except (TypeError, KeyError, ValueError) as error:
        raise _damaged(f"tensor {name!r} is not described") from error
    if dt is None:
        raise _damaged(f"tensor {name!r} has the unknown type {entry['dtype']!r}")
    if not sound or end > len(data) or end - start != math.prod(shape) * dt.itemsize:
        raise _damaged(
            f"tensor {name!r} has {shape} elements in bytes {start} to {end} of {len(data)}"
        )
    kind = np.dtype(np.int16) if dt.np is None else dt.np
    made = tensor(np.frombuffer(data[start:end], kind).reshape(shape), device=device)
    return made if dt.np is not None else made.view(dt)


def save_npz(tensors: Mapping[str, Tensor], file: Any, compressed: bool = False) -> None:
    """Write tensors to an `.npz` file that numpy reads; the name is not changed. TypeError for dtypes numpy lacks."""
    _check(tensors)
    for name, t in tensors.items():
        if t.dtype.np is None:
            raise TypeError(f"numpy has no type for tensor {name!r} of dtype {t.dtype}")
    arrays: dict[str, Any] = {name: host_array(t.detach()) for name, t in tensors.items()}
    with archive.output(file) as out:
        (np.savez_compressed if compressed else np.savez)(out, **arrays)


def load_npz(file: Any, device: Any = "cpu") -> dict[str, Tensor]:
    """Read the arrays of an `.npz` file to a device. ValueError where it holds Python objects, which are never unpickled."""
    with np.load(file, allow_pickle=False) as found:
        return {name: tensor(found[name], device=device) for name in found.files}
