"""Two thousand random calls at the surface: each gives the oracle's value or an ordinary exception.

Shapes go down to 0-d and empty, dims and sizes may be wrong. The oracle is torch where it is
installed, else numpy. What the oracle refuses must raise, with torch in the same class of error.
`CLTENSOR_RANDOM=1` draws new calls instead of the same ones, `CLTENSOR_CALLS` sets their number.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cltensor

CALLS = int(os.environ.get("CLTENSOR_CALLS", "2000"))
SHAPES = [(), (1,), (3,), (0,), (4, 3), (1, 3), (4, 1), (4, 0), (2, 4, 3), (2, 1, 1)]
DTYPES = ["float32", "int64", "bool"]
ERRORS = (RuntimeError, IndexError, TypeError, ValueError, ZeroDivisionError, NotImplementedError)

Call = tuple[str, Callable[[Any], Any], Callable[[], Any]]


def array(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    rng = np.random.default_rng([seed, len(shape), *shape])
    if dtype == "bool":
        return rng.random(shape) < 0.6
    if dtype == "int64":
        return rng.integers(-5, 6, shape)
    return np.round(rng.standard_normal(shape) * 2, 2).astype(dtype)


def wide(a: np.ndarray) -> np.ndarray:
    """Return integers and bools as float32, to which torch promotes them in floating-point functions, floats as they
    are.
    """
    return a if a.dtype.kind == "f" else a.astype(np.float32)


# One op for each way to treat dtypes. Ops that differ from these by their formulas alone are tested in test_rows.py.
UNARY: dict[str, Callable[[np.ndarray], Any]] = {
    "neg": np.negative,
    "exp": lambda a: np.exp(wide(a)),
    "floor": np.floor,
    "sign": np.sign,
    "logical_not": np.logical_not,
    "isnan": lambda a: np.isnan(wide(a)),
    "clone": np.copy,
    "flatten": np.ravel,
    "contiguous": np.copy,
}
BINARY: dict[str, Callable[[np.ndarray, np.ndarray], Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "div": lambda a, b: wide(a) / wide(b),
    "lt": np.less,
    "logical_and": np.logical_and,
    "matmul": np.matmul,
}
REDUCE: dict[str, Callable[..., Any]] = {
    "sum": np.sum,
    "mean": np.mean,
    "amax": np.max,
    "all": np.all,
    "argmax": np.argmax,
    "cumsum": lambda a, axis: np.cumsum(a, axis).reshape(a.shape),
}


KINDS = ["unary", "binary", "scalar", "reduce", "all", "view", "size", "index", "pick", "join", "where"]  # fmt: skip


@st.composite
def calls(draw: st.DrawFn, kind: str) -> Call:
    """Draw a call: its text for messages, a function that makes it with a tensor library, and one with numpy."""
    shape, dtype = draw(st.sampled_from(SHAPES)), draw(st.sampled_from(DTYPES))
    seed = draw(st.integers(0, 3))
    a = array(shape, dtype, seed)
    dim = draw(st.integers(-4, 3))
    told = f"{dtype}{list(shape)}"

    def call(text: str, do: Callable[..., Any], numpy: Callable[[], Any]) -> Call:
        return f"{text} of {told}", do, numpy

    def t(m: Any, x: np.ndarray = a) -> Any:
        return m.tensor(x)

    match kind:
        case "unary":
            name = draw(st.sampled_from(sorted(UNARY)))
            return call(name, lambda m: getattr(t(m), name)(), lambda: UNARY[name](a))
        case "binary":
            name = draw(st.sampled_from(sorted(BINARY)))
            other = draw(st.sampled_from(SHAPES))
            b = array(other, draw(st.sampled_from([dtype, "float32"])), seed + 1)
            return call(
                f"{name} with {b.dtype}{list(other)}",
                lambda m: getattr(m, name)(t(m), t(m, b)),
                lambda: BINARY[name](a, b),
            )
        case "scalar":
            name = draw(st.sampled_from(["add", "sub", "div", "lt"]))
            s = draw(st.sampled_from([0, 2, -3, 0.5, True]))
            return call(
                f"{name} {s!r}",
                lambda m: getattr(t(m), name)(s),
                lambda: BINARY[name](a, np.asarray(s)),
            )
        case "reduce":
            name = draw(st.sampled_from(sorted(REDUCE)))
            keep = {} if name == "cumsum" else {"keepdim": draw(st.booleans())}
            keeps = {"keepdims": keep["keepdim"]} if keep else {}
            return call(
                f"{name}({dim}, {keep})",
                lambda m: getattr(t(m), name)(dim, **keep),
                lambda: REDUCE[name](a, axis=dim, **keeps),
            )
        case "all":
            name = draw(st.sampled_from(sorted(set(REDUCE) - {"cumsum"})))
            return call(f"{name}()", lambda m: getattr(t(m), name)(), lambda: REDUCE[name](a))
        case "view":
            sizes = draw(st.lists(st.sampled_from([-1, 0, 1, 2, 3, 4, 6, 12]), max_size=3))
            return call(
                f"reshape({sizes})", lambda m: t(m).reshape(sizes), lambda: a.reshape(sizes)
            )
        case "size":
            other = draw(st.integers(-4, 3))
            name = draw(st.sampled_from(["transpose", "unsqueeze", "flip", "permute"]))
            if name == "transpose":
                return call(
                    f"transpose({dim}, {other})",
                    lambda m: t(m).transpose(dim, other),
                    lambda: a.swapaxes(dim, other),
                )
            if name == "unsqueeze":
                return call(
                    f"unsqueeze({dim})",
                    lambda m: t(m).unsqueeze(dim),
                    lambda: np.expand_dims(a, dim),
                )
            if name == "flip":
                return call(f"flip({dim})", lambda m: t(m).flip(dim), lambda: np.flip(a, dim))
            return call(
                f"permute({dim}, {other})",
                lambda m: t(m).permute(dim, other),
                lambda: a.transpose(dim, other),
            )
        case "index":
            part = st.one_of(
                st.integers(-4, 4),
                st.sampled_from([None, Ellipsis, slice(None), slice(1, None), slice(None, -1, 2)]),
            )
            index = tuple(draw(st.lists(part, max_size=3)))
            return call(f"[{index}]", lambda m: t(m)[index], lambda: a[index])
        case "pick":
            rows = draw(st.lists(st.integers(-4, 4), max_size=3))
            return call(
                f"index_select({dim}, {rows})",
                lambda m: m.index_select(t(m), dim, m.tensor(rows, dtype=m.int64)),
                lambda: pick(a, rows, dim),
            )
        case "join":
            name = draw(st.sampled_from(["cat", "stack"]))
            b = array(draw(st.sampled_from([shape, *SHAPES])), dtype, seed + 1)
            join = np.concatenate if name == "cat" else np.stack
            return call(
                f"{name} with {list(b.shape)}, {dim}",
                lambda m: getattr(m, name)((t(m), t(m, b)), dim),
                lambda: join((a, b), dim),
            )
        case _:
            b = array(draw(st.sampled_from([shape, *SHAPES])), dtype, seed + 1)
            cut = draw(st.sampled_from([0, 1]))
            return call(
                f"where with {list(b.shape)}",
                lambda m: m.where(t(m) > cut, t(m), t(m, b)),
                lambda: np.where(a > cut, a, b),
            )


def pick(a: np.ndarray, rows: list[int], dim: int) -> np.ndarray:
    if any(r < 0 for r in rows):
        raise IndexError("negative")
    if a.ndim == 0:
        return np.take(a[None], rows, axis=dim)[0] if len(rows) == 1 else np.take(a, rows, axis=9)
    return np.take(a, np.asarray(rows, np.int64), axis=dim)


def outcome(do: Callable[[], Any]) -> tuple[Any, Exception | None]:
    try:
        with np.errstate(all="ignore"):
            return do(), None
    except Exception as error:
        return None, error


def torch_or_none() -> Any:
    try:
        import torch
    except ImportError:
        return None
    return torch


torch = torch_or_none()
# Where numpy refuses what torch does or does what torch refuses: bool arithmetic, empty reductions,
# int means, an empty vector in cat.
DIFFER = (
    "argmax",
    "amax",
    "neg",
    "sub",
    "cat",
    "sign",
    "floor",
    "matmul",
    "unsqueeze",
    "mean",
)


@pytest.mark.parametrize("kind", KINDS)
@settings(
    max_examples=CALLS // len(KINDS),
    derandomize="CLTENSOR_RANDOM" not in os.environ,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_random_call(data: st.DataObject, kind: str) -> None:
    told, do, numpy = data.draw(calls(kind))
    found, error = outcome(lambda: settled(host(do(cltensor))))
    assert error is None or isinstance(error, ERRORS), f"{told}: {type(error).__name__}: {error}"
    if torch is not None:
        expected, refused = outcome(lambda: host(do(torch)))
    else:
        expected, refused = outcome(numpy)
        zero_d = "[]" in told.split(" of ")[-1]
        differ = zero_d or told.startswith(DIFFER) or told.count("Ellipsis") > 1
        if (refused is None) != (error is None) and differ:
            return
    if refused is not None:
        if error is None and "not implemented for" in str(refused):
            return  # a dtype that torch has no kernel for
        assert error is not None, f"{told}: {found!r}; the oracle: {refused}"
        if torch is not None:
            alike = isinstance(error, type(refused)) or isinstance(refused, type(error))
            # torch takes IndexError or RuntimeError for one mistake, depending on which loop it chose.
            alike |= told.startswith("index_select") and isinstance(
                error, IndexError | RuntimeError
            )
            assert alike, f"{told}: {error!r}; torch: {refused!r}"
        return
    assert error is None, f"{told}: {type(error).__name__}: {error}; the oracle: {expected!r}"
    expected = np.asarray(expected)
    assert found.shape == expected.shape, f"{told}: {found.shape} != {expected.shape}"
    if torch is not None:
        assert found.dtype == expected.dtype, f"{told}: {found.dtype} != {expected.dtype}"
    np.testing.assert_allclose(
        found.astype(np.float64), expected.astype(np.float64), rtol=1e-4, atol=1e-5, err_msg=told
    )


def settled(found: np.ndarray) -> np.ndarray:
    """Wait for the device and return `found`: devices other than the cpu report a bad index then at the latest."""
    cltensor.opencl.synchronize()
    return found


def host(tensor: Any) -> np.ndarray:
    return tensor.detach().cpu().numpy()
