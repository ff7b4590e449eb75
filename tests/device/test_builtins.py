"""Builtins that cltensor defines in kernels for pip's PoCL (runtime/builtin_header.py) do what OpenCL C promises, at
every width.
"""

from __future__ import annotations

import numpy as np
import pytest

from cltensor.runtime import Backend, device, device_list, get_backend

FLOATS = {
    "fmin(a, b)": np.fmin,
    "fmax(a, b)": np.fmax,
    "fabs(a)": lambda x, y: np.abs(x),
    "floor(a)": lambda x, y: np.floor(x),
    "rint(a)": lambda x, y: np.rint(x),
    "sqrt(fabs(a))": lambda x, y: np.sqrt(np.abs(x)),
    "copysign(a, b)": np.copysign,
}
ASKED = {
    "isfinite(a) ? 1 : 2": lambda x, y: np.where(np.isfinite(x), 1, 2),
    "isinf(a) ? 1 : 2": lambda x, y: np.where(np.isinf(x), 1, 2),
    "isnan(a) ? 1 : 2": lambda x, y: np.where(np.isnan(x), 1, 2),
}
INTEGERS = {"min(a, b)": np.minimum, "max(a, b)": np.maximum}
KINDS = {"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4", "long": "i8", "ulong": "u8"}  # fmt: skip
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 0.5, 1.5, -2.5, -0.4999999, 1e30, -1e-30, 8388607.5]


@pytest.fixture(params=[str(d) for d in device_list()])
def backend(request: pytest.FixtureRequest) -> Backend:
    return get_backend(device(request.param))


def run(
    backend: Backend, kind: str, lanes: int, values: dict, x: np.ndarray, y: np.ndarray
) -> np.ndarray:
    """Return the values of the expressions of x and y, computed in vectors of `lanes`: a row for each expression."""
    n, name = str(lanes) if lanes > 1 else "", f"builtins_{kind}{lanes}"
    load, store = (
        ("vload{0}(i, {1})", "vstore{0}({1}, i, {2})") if n else ("{1}[i]", "({2})[i] = {1}")
    )
    stores = [store.format(n, f"({text})", f"out + {k * x.size}") for k, text in enumerate(values)]
    source = f"""
__kernel void {name}(__global {kind} *out, __global const {kind} *x, __global const {kind} *y) {{
  for (int i = 0; i < {x.size // lanes}; i++) {{
    const {kind}{n} a = {load.format(n, "x")}, b = {load.format(n, "y")};
    {"; ".join(stores)};
  }}
}}"""
    out, *given = [backend.alloc(size) for size in (x.nbytes * len(values), x.nbytes, y.nbytes)]
    for buffer, numbers in zip(given, (x, y), strict=True):
        backend.write(buffer, 0, numbers)
    kernel = backend.kernel(name, source, (None,) * 3, backend.info.build_options)
    backend.launch(kernel, (1,), (1,), [out, *given])
    return backend.read(out, 0, out.nbytes).view(x.dtype).reshape(len(values), -1)


@pytest.mark.parametrize("lanes", [1, 4, 16])
@pytest.mark.parametrize("kind", ["float", pytest.param("double", marks=pytest.mark.fp64)])
def test_of_floats(backend: Backend, kind: str, lanes: int) -> None:
    pairs = np.array(np.meshgrid(SPECIAL, SPECIAL)).reshape(2, -1)
    x, y = np.concatenate([pairs, np.random.default_rng(0).normal(size=(2, 16)) * 9], 1).astype(
        {"float": "f4", "double": "f8"}[kind]
    )
    values = FLOATS | (ASKED if lanes == 1 else {})
    got = run(backend, kind, lanes, values, x, y)
    for row, (text, wanted) in zip(got, values.items(), strict=True):
        np.testing.assert_array_equal(row, wanted(x, y).astype(x.dtype), err_msg=text)
        if text[:4] not in ("fmin", "fmax"):  # which may return either of 0 and -0
            np.testing.assert_array_equal(np.signbit(row), np.signbit(wanted(x, y)), err_msg=text)


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("kind", KINDS)
def test_of_integers(backend: Backend, kind: str, lanes: int) -> None:
    dtype = np.dtype(KINDS[kind])
    x, y = np.random.default_rng(1).integers(0, 256, (2, 64 * dtype.itemsize), np.uint8).view(dtype)
    got = run(backend, kind, lanes, INTEGERS, x, y)
    for row, (text, wanted) in zip(got, INTEGERS.items(), strict=True):
        np.testing.assert_array_equal(row, wanted(x, y), err_msg=text)


PRIVATE = """
__kernel void builtins_private(__global float *out, __global const float *x) {
  float p[64];
  uchar q[64];
  for (int i = 0; i < 64; i++) p[i] = x[i], q[i] = (uchar)i;
  vstore16(vload16(0, p + 1), 2, p + 3);
  vstore4(vload4(3, p), 0, p + 1);
  vstore8(vload8(1, q + 5), 3, q);
  vstore2(vload2(7, q), 0, q + 1);
  for (int i = 0; i < 64; i++) out[i] = p[i] + q[i];
}"""


def test_of_private_memory(backend: Backend) -> None:
    x = np.arange(64, dtype=np.float32) * 1000
    out, given = backend.alloc(256), backend.alloc(256)
    backend.write(given, 0, x)
    kernel = backend.kernel("builtins_private", PRIVATE, (None, None), backend.info.build_options)
    backend.launch(kernel, (1,), (1,), [out, given])
    p, q = x.copy(), np.arange(64, dtype=np.uint8)
    p[35:51] = x[1:17]
    p[1:5] = p[12:16]
    q[24:32] = np.arange(13, 21)
    q[1:3] = q[14:16]
    np.testing.assert_array_equal(backend.read(out, 0, 256).view(np.float32), p + q)
