"""What several test folders share: the module under test, seeded data, and comparing outcomes.

`CLTENSOR_TEST_MODULE=torch` runs the tutorials and the parity tests on torch itself: a test that
then fails asks for something torch does not do.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

SECOND_TIME = "Trying to backward through the graph a second time"

LAYOUTS = ("contiguous", "transposed", "expanded", "offset", "strided")

ct: Any = importlib.import_module(os.environ.get("CLTENSOR_TEST_MODULE", "cltensor"))


def data(*shape: int, seed: int = 0, dtype: str = "float32") -> np.ndarray:
    """Return seeded numbers: normal for floats, small for integers, coin flips for bool."""
    rng = np.random.default_rng([seed, *shape])
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype.startswith(("int", "uint")):
        low = 0 if dtype.startswith("uint") else -9
        return rng.integers(low, 10, shape).astype(dtype)
    if dtype.startswith("complex"):
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def leaf(*values: Any, dtype: Any = None) -> Any:
    """Return a tensor of these numbers that requires grad."""
    return ct.tensor(list(values), dtype=dtype or ct.float32, requires_grad=True)


def on_device(array: np.ndarray, *, requires_grad: bool = False) -> Any:
    """Return a copy of an array on the device under test. The copy is not shared with numpy: expressions over memory
    that numpy sees are not lazy."""
    return ct.tensor(array.copy(), requires_grad=requires_grad)


def launches(fn: Callable[[], Any]) -> int:
    """Run a function and compute its pending results; return the number of launches."""
    return _counted(fn, "launches")


def kernels_of(fn: Callable[[], Any]) -> list[str]:
    """Run a function and compute its pending results; return the names of the kernels that it runs."""
    with ct.profiler.profile() as prof:
        kept = fn()
        ct.opencl.synchronize()
    del kept
    return [e.name for e in prof.events() if not e.name.startswith("aten::")]


def builds(fn: Callable[[], Any]) -> int:
    """Run a function and compute its pending results; return the kernels that were built or loaded for it."""
    return _counted(fn, "builds", "disk_hits")


def _counted(fn: Callable[[], Any], *names: str) -> int:
    def count() -> int:
        return sum(ct.stats()[name] for name in names)

    ct.opencl.synchronize()
    before = count()
    out = fn()
    ct.opencl.synchronize()
    del out
    return count() - before


def laid(array: np.ndarray, how: str) -> tuple[Any, np.ndarray]:
    """Return a tensor with the named layout, and its values as an array."""
    if how == "contiguous":
        return ct.tensor(array), array
    if how == "transposed":
        return ct.tensor(np.ascontiguousarray(array.T)).t(), array
    if how == "expanded":
        row = array[:1]
        return ct.tensor(row).expand(array.shape), np.broadcast_to(row, array.shape)
    if how == "offset":
        wide = np.concatenate([array, array])
        return ct.tensor(wide)[array.shape[0] :], array
    return ct.tensor(np.repeat(array, 2, 1))[:, ::2], array


def poison(backend: Any, patch: Any) -> None:
    """Fill all memory that a backend allocates with 0xFF bytes: NaN for floats, indices out of range for integers."""
    alloc = backend.alloc

    def full(nbytes: int) -> Any:
        buffer = alloc(nbytes)
        backend.write(buffer, 0, np.full(nbytes, 0xFF, np.uint8))
        return buffer

    patch.setattr(backend, "alloc", full)


@contextlib.contextmanager
def one_by_one() -> Iterator[None]:
    """Run every op at once: compositions of the same few operators then share kernels instead of building their own."""
    from cltensor import config

    before = config.CONFIG
    config.CONFIG = dataclasses.replace(before, eager=True)
    try:
        yield
    finally:
        config.CONFIG = before


def choose_anew(patch: Any) -> None:
    """Forget chosen kernels of chains and recorded launches of functions, as if nothing had run before."""
    from cltensor.lazy import launch, tree
    from cltensor.ops import replay
    from cltensor.ops.random import draws

    patch.setattr(launch, "_kernels", {})
    patch.setattr(draws, "_known", {})
    patch.setattr(tree, "_entries", {})
    replay.forget()


def store_past_cache(patch: Any, nbytes: int = 1) -> None:
    """Use non-temporal stores, as for large results, for all results of at least `nbytes` bytes."""
    for name, module in list(sys.modules.items()):
        if name.startswith("cltensor.") and hasattr(module, "STREAM"):
            patch.setattr(module, "STREAM", nbytes)


def close(found: Any, expected: Any, tol: float = 1e-5) -> None:
    """Assert equal shapes and values within `tol`, absolute and relative; nan equals nan."""
    found, expected = (
        np.asarray(v.detach().tolist()).reshape(v.shape) if hasattr(v, "detach") else np.asarray(v)
        for v in (found, expected)
    )
    assert found.shape == expected.shape, f"shape {found.shape} != {expected.shape}"
    np.testing.assert_allclose(found, expected, rtol=tol, atol=tol, equal_nan=True)


def outcome(fn: Callable[[], Any]) -> tuple[str, Any]:
    """Run `fn` and return ("value", result) or ("error", exception)."""
    try:
        return "value", fn()
    except Exception as error:
        return "error", error


_FORKING = """
import os, sys
import cltensor as torch
for program in sys.argv[1:]:
    sys.stdout.flush()
    if not os.fork():
        try:
            exec(program, {"torch": torch})
            sys.stdout.flush()
        finally:
            os._exit(0)
    os.wait()
    print("\\0", end="")
"""


def outputs_of_forks(programs: list[str]) -> list[str]:
    """Run programs, each in a process that has done nothing before but `import cltensor as torch`; return what each prints.

    The processes are forks of one, because importing takes longer than most programs.
    """
    run = [sys.executable, "-c", _FORKING, *programs]
    done = subprocess.run(run, check=False, capture_output=True, text=True)
    outputs = [text.strip() for text in done.stdout.split("\0")[:-1]]
    assert len(outputs) == len(programs) and all(outputs), done.stderr
    return outputs


def built_quickly(load: Callable[..., Any], whole: bool = False) -> Callable[..., Any]:
    """Return `ProgramCache._load_or_build` with large kernels built by PoCL in less time; their text is the same.

    Kernels with barriers, which only GPU schedules have, are built without optimisation: PoCL makes loops over
    work-items between two barriers, and optimising those takes seconds instead of 0.1 s. Bodies that need every
    register become functions, which are compiled once instead of three times, unless they are to stay `whole`.
    """
    from cltensor.runtime.pocl import BUILTINS

    def quickly(self: Any, name: str, source: str, options: tuple[str, ...]) -> Any:
        if self._pocl and "barrier(" in source:
            options = (*options, "-cl-opt-disable")
        if BUILTINS in options and not whole:
            source = source.replace("#define CLT_WHOLE\n", "\n")
        return load(self, name, source, options)

    return quickly


def each_dim(value: Any, dims: int) -> tuple[int, ...]:
    return (value,) * dims if isinstance(value, int) else value


def seen_by_taps(x: np.ndarray, taps: Any, stride: Any, padding: Any, dilation: Any) -> np.ndarray:
    """Return the input that every tap reads: [N, C, *places, *taps]."""
    x = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)])
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, taps)]
    dims = tuple(range(2, x.ndim))
    seen = np.lib.stride_tricks.sliding_window_view(x, reach, dims)
    cut = [slice(None)] * 2 + [slice(None, None, s) for s in (*stride, *dilation)]
    return seen[tuple(cut)]


def convolved(
    x: np.ndarray, w: np.ndarray, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> np.ndarray:  # fmt: skip
    """Convolve with plain numpy."""
    dims = x.ndim - 2
    seen = seen_by_taps(x, w.shape[2:], *(each_dim(v, dims) for v in (stride, padding, dilation)))
    letters = "defghi"[: 2 * dims]
    places, taps = letters[:dims], letters[dims:]
    parts = [
        np.einsum(f"nc{letters},oc{taps}->no{places}", a, b)
        for a, b in zip(np.split(seen, groups, 1), np.split(w, groups, 0))
    ]
    return np.concatenate(parts, 1)


def scored(q: Any, k: Any, mask: Any = None, causal: bool = False) -> np.ndarray:
    """Return attention's scores in float64; -inf where a key is not seen."""
    q, k = (np.asarray(x, np.float64) for x in (q, k))
    s = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    if mask is not None:
        s = np.where(mask, s, -np.inf) if mask.dtype == bool else s + mask
    return np.where(np.tril(np.ones(s.shape[-2:], bool)), s, -np.inf) if causal else s


def attended(
    q: Any, k: Any, v: Any, mask: Any = None, causal: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Compute attention in float64; return the result and the logarithms of rows' sums, inf for rows that see no key."""
    s = scored(q, k, mask, causal)
    top = s.max(-1, keepdims=True)
    top = np.where(np.isinf(top), 0, top)
    p = np.exp(s - top)
    total = p.sum(-1, keepdims=True)
    blind = total == 0
    total = np.where(blind, 1, total)
    sums = np.where(blind, np.inf, top + np.log(total))
    return p / total @ np.asarray(v, np.float64), sums[..., 0]


@contextlib.contextmanager
def constants_restored() -> Iterator[None]:
    """Restore, on leaving, what tests/families.py changes: constants of cltensor's modules, and `mask.is_small`."""
    from cltensor.codegen.order import mask

    is_small = mask.is_small
    kept = [
        (module, {name: value for name, value in vars(module).items() if name.isupper()})
        for where, module in [*sys.modules.items()]
        if where.startswith("cltensor.")
    ]
    try:
        yield
    finally:
        mask.is_small = is_small
        for module, values in kept:
            vars(module).update(values)
