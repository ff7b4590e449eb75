"""Operands of kernel-level tests from torch tensors and back.

torch is only the oracle here; kernels are run through the runtime's interface.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cltensor import dtypes
from cltensor.codegen.operand import Operand
from cltensor.runtime import Backend

torch = pytest.importorskip("torch")


def skip_untried(backend: Backend, dtype: str, on_gpu: set[str]) -> None:
    """Skip the running test if its dtype is not among those tested on GPU schedules."""
    if backend.info.kind == "gpu" and dtype not in on_gpu:
        pytest.skip("not among the dtypes tried on a GPU schedule")


def put(backend: Backend, tensor: Any) -> Operand:
    """Copy the whole storage of a torch tensor to the device; the operand keeps its layout."""
    tensor = torch.as_tensor(tensor)
    dt = dtypes.BY_NAME[str(tensor.dtype)[6:]]
    count = tensor.untyped_storage().nbytes() // tensor.element_size()
    flat = torch.as_strided(tensor, (count,), (1,), 0).contiguous()
    buffer = backend.alloc(count * dt.itemsize)
    if count:
        backend.write(buffer, 0, flat.view(torch.uint8).numpy())
    return Operand(buffer, dt, tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset())


def get(backend: Backend, x: Operand) -> Any:
    """Copy an operand to a torch tensor."""
    raw = backend.read(x.buffer, 0, x.buffer.nbytes)
    kind = getattr(torch, x.dtype.name)
    flat = (
        torch.frombuffer(bytearray(raw.tobytes()), dtype=kind)
        if raw.size
        else torch.empty(0, dtype=kind)
    )
    return torch.as_strided(flat, x.shape, x.strides, x.offset).clone()


def valid(backend: Backend, x: Operand, count: Operand | None) -> Operand:
    """Return as many elements of x, or of its rows, as `count`, which a kernel left on the device, says; None: all."""
    if count is None:
        return x
    n = int(get(backend, count))
    return x._replace(shape=(*x.shape[:-1], n), strides=(n, 1)[-len(x.shape) :])


def same(found: Any, expected: Any, tol: float = 0.0) -> None:
    """Assert equal dtype, shape and values (NaN equals NaN)."""
    assert found.dtype == expected.dtype, (found.dtype, expected.dtype)
    assert found.shape == expected.shape, (found.shape, expected.shape)
    torch.testing.assert_close(found, expected, rtol=tol, atol=tol, equal_nan=True)


def sample(shape: Any, dtype: Any, seed: int = 0, spread: float = 4.0) -> Any:
    """Return seeded values of any torch dtype."""
    rng = np.random.default_rng(seed)
    values = torch.as_tensor(rng.standard_normal(shape) * spread)
    if dtype.is_complex:
        values = values + 1j * torch.as_tensor(rng.standard_normal(shape))
    return values.abs().to(dtype) if dtype in (torch.uint8, torch.uint16) else values.to(dtype)


def integers(low: int, high: int, shape: Any, seed: int = 0) -> Any:
    """Return seeded int64 values in [low, high)."""
    return torch.as_tensor(np.random.default_rng(seed).integers(low, high, shape))
