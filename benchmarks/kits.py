"""The libraries that take part: cltensor, torch, and libraries without torch's names.

Each gets the same inputs, the same number of threads and its own fastest way to run a function. A library without
torch's names gets a stand-in for the torch module with a few functions (`_names`): cases that call no others can run on
it.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import types
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.case import Kit, Run


def ours(device: str) -> Kit:
    """Return the kit of cltensor."""
    import cltensor
    from cltensor import lazy

    backend = cltensor.runtime.get_backend(cltensor.device(device))
    submit = functools.partial(lazy.flush, backend)
    wait, version = cltensor.opencl.synchronize, cltensor.__version__
    return Kit("cltensor", cltensor, device, wait, version, submit)


def is_gpu(device: str) -> bool:
    import cltensor

    return cltensor.runtime.get_backend(cltensor.device(device)).info.kind == "gpu"


def peers(device: str, threads: int, wanted: Iterable[str]) -> Iterator[Kit]:
    """Yield the kits of the requested libraries; print a line for each that is missing or cannot take part."""
    import cltensor

    backend = cltensor.runtime.get_backend(cltensor.device(device))
    gpu = is_gpu(device)
    makers: dict[str, Callable[[], Kit]] = {
        "torch": lambda: _torch(gpu, threads),
        "numpy": _Numpy,
        "jax": lambda: _Jax(gpu),
        "tinygrad": lambda: _Tinygrad(backend.cl_device),
    }
    for name in wanted:
        if name not in makers:
            continue
        try:
            yield makers[name]()
        except Exception as error:
            print(f"{name} does not take part: {reason(error)}")


def reason(error: BaseException) -> str:
    """Return the first line of an error's text, after its type."""
    return f"{type(error).__name__}: {str(error).strip()}".splitlines()[0][:90]


def _torch(gpu: bool, threads: int) -> Kit:
    import torch

    torch.set_num_threads(threads)
    if gpu and torch.cuda.is_available():
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        return Kit("torch", torch, "cuda", torch.cuda.synchronize, torch.__version__)
    return Kit("torch", torch, version=torch.__version__)


def _names(**functions: Callable[..., Any]) -> types.SimpleNamespace:
    """Return a stand-in for the torch module, with these functions also in its nn.functional."""
    names = types.SimpleNamespace(**functions)
    names.nn = types.SimpleNamespace(functional=names)
    return names


def _layer_norm(sqrt: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda x, _: (x - x.mean(1, keepdims=True)) / sqrt(x.var(1, keepdims=True) + 1e-5)


class _Numpy(Kit):
    like_torch = False

    def __init__(self) -> None:
        def softmax(x: Any, dim: int) -> Any:
            e = np.exp(x - x.max(dim, keepdims=True))
            return e / e.sum(dim, keepdims=True)

        names = _names(
            sigmoid=lambda x: 1 / (1 + np.exp(-x)),
            softmax=softmax,
            layer_norm=_layer_norm(np.sqrt),
            cumsum=np.cumsum,
            sort=lambda x: (np.sort(x),),
        )
        super().__init__("numpy", names, version=np.__version__)

    def put(self, values: np.ndarray) -> Any:
        return values


class _Jax(Kit):
    """jax: every program is compiled by jax.jit. A GPU runs programs in order, so waiting for the last result waits for
    all."""

    like_torch = False

    def __init__(self, gpu: bool) -> None:
        if not gpu:
            os.environ["JAX_PLATFORMS"] = "cpu"
        import jax
        import jax.numpy as jnp

        def attention(q: Any, k: Any, v: Any, is_causal: bool) -> Any:
            turned = (jnp.swapaxes(x, 1, 2) for x in (q, k, v))
            return jnp.swapaxes(jax.nn.dot_product_attention(*turned, is_causal=is_causal), 1, 2)

        names = _names(
            sigmoid=jax.nn.sigmoid,
            softmax=jax.nn.softmax,
            layer_norm=_layer_norm(jnp.sqrt),
            cumsum=jnp.cumsum,
            sort=lambda x: (jnp.sort(x),),
            conv2d=lambda x, w, padding: jax.lax.conv_general_dilated(
                x, w, (1, 1), [(padding, padding)] * 2
            ),
            scaled_dot_product_attention=attention,
        )
        self.jax, self.queued, self.last = jax, gpu, None
        super().__init__("jax", names, str(jax.devices()[0]), self._wait, jax.__version__)

    def _wait(self) -> None:
        self.jax.block_until_ready(self.last)
        self.last = None

    def put(self, values: np.ndarray) -> Any:
        return self.jax.numpy.asarray(values)

    def program(self, fn: Callable[..., Any], *inputs: Any) -> Run:
        fast = self.jax.jit(lambda *x: fn(self.torch, *x))

        def run() -> Any:
            self.last = fast(*inputs)
            return self.last if self.queued else self.jax.block_until_ready(self.last)

        return run


class _Tinygrad(Kit):
    """tinygrad on the same OpenCL device as cltensor, instead of the one it chooses by itself; TinyJit records every
    program."""

    like_torch = False

    def __init__(self, cl_device: Any) -> None:
        if driver := _driver():
            os.environ.setdefault("OPENCL_PATH", driver)
        import tinygrad
        from tinygrad.runtime.ops_cl import CLDevice, cl

        handle = ctypes.cast(cl_device.int_ptr, cl.cl_device_id)
        CLDevice.device_ids = (cl.cl_device_id * 1)(handle)
        self.tiny, opened = tinygrad, tinygrad.Device["CL"]
        if opened.device_name != cl_device.name:
            raise OSError(f"it opens {opened.device_name}, another OpenCL device")
        names = _names(
            sigmoid=lambda x: x.sigmoid(),
            softmax=lambda x, dim: x.softmax(dim),
            layer_norm=lambda x, _: x.layernorm(),
            conv2d=lambda x, w, padding: x.conv2d(w, padding=padding),
            scaled_dot_product_attention=lambda q, k, v, is_causal: q.scaled_dot_product_attention(
                k, v, is_causal=is_causal
            ),
        )
        super().__init__("tinygrad", names, "CL", opened.synchronize, metadata.version("tinygrad"))

    def put(self, values: np.ndarray) -> Any:
        return self.tiny.Tensor(values, device="CL").realize()

    def program(self, fn: Callable[..., Any], *inputs: Any) -> Run:
        fast = self.tiny.TinyJit(lambda *x: fn(self.torch, *x).contiguous().realize())
        for _ in range(2):  # TinyJit records the second call
            fast(*inputs)
        return lambda: fast(*inputs)

    def host(self, value: Any) -> np.ndarray:
        return value.numpy()


def _driver() -> str | None:
    """Return the OpenCL library that came with pyopencl; None if the system's is used."""
    with contextlib.suppress(ImportError):
        import pyopencl

        for path in sorted(Path(pyopencl.__file__).parent.glob(".libs/libOpenCL*")):
            return str(path)
    return None
