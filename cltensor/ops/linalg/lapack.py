"""Transfers for the one computation that runs on the host, in numpy's LAPACK: eigenvalues of non-Hermitian matrices.

Each is counted in `STATS.host_ops`. Results come back column-major, as LAPACK leaves them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...dtypes import from_numpy
from ...layouts import contiguous_strides
from ...runtime import get_backend
from ...runtime.stats import STATS
from ...size import Size
from ...storage import Storage
from .. import core
from ..core import Tensor


def host(*tensors: Tensor) -> Any:
    """Return the tensors' values as numpy arrays, which must not be written to; counts one host op."""
    STATS.host_ops += 1
    arrays = [t._host() for t in tensors]
    return arrays[0] if len(arrays) == 1 else arrays


def device(array: Any, like: Tensor, *, columns: bool = True) -> Tensor:
    """Copy a result to the device of `like`; matrices stay column-major, as from LAPACK, if `columns`."""
    array = np.asarray(array)
    dt, shape = from_numpy(array.dtype), Size(array.shape)
    backend = get_backend(like.device)
    if array.ndim < 2 or not columns:
        return core.make(
            Storage.from_host(backend, np.ascontiguousarray(array)), shape, dt, like.device
        )
    storage = Storage.from_host(backend, np.ascontiguousarray(array.swapaxes(-1, -2)))
    strides = contiguous_strides((*shape[:-2], shape[-1], shape[-2]))
    return core.make(storage, shape, dt, like.device, (*strides[:-2], strides[-1], strides[-2]))
