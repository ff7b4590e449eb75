"""torch as the oracle: the same program on both libraries, and what has to be equal afterwards.

A program is a line of Python in which `torch` is the library. It runs once with cltensor's names
and once with torch's, on tensors made from the same numpy arrays.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from support import ct

th: Any = pytest.importorskip("torch", minversion="2.13", reason="torch 2.13 is the oracle")

TOLERANCE = {
    "float16": 2e-3,
    "bfloat16": 2e-2,
    "float32": 2e-5,
    "complex64": 2e-5,
    "float64": 1e-10,
    "complex128": 1e-10,
}


class Ran:
    """The outcome of a program: its value or its error, and its warnings."""

    def __init__(self, module: Any, program: Callable[[Any], Any]) -> None:
        self.value: Any = None
        self.error: Exception | None = None
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            try:
                self.value = program(module)
                force(self.value)
            except Exception as error:
                self.error = error
        self.warnings = [
            (w.category, re.sub(r" \(Triggered internally at .*\)$", "", str(w.message)))
            for w in seen
        ]


def force(value: Any) -> None:
    """Run pending work now, so that an error in it is attributed to the program that caused it."""
    if isinstance(value, (tuple, list)):
        for item in value:
            force(item)
    elif hasattr(value, "detach"):
        value.detach().tolist() if value.numel() < 10_000 else None


def evaluate(line: str, arrays: Mapping[str, np.ndarray], **extra: Any) -> tuple[Ran, Ran]:
    """Run an expression with cltensor and with torch on tensors made from `arrays`."""

    def program(module: Any) -> Any:
        names = {k: tensor(module, v) for k, v in arrays.items()}
        return eval(line, {"torch": module, "np": np, "inf": float("inf"), **names, **extra})

    return Ran(ct, program), Ran(th, program)


def tensor(module: Any, array: np.ndarray, requires_grad: bool = False) -> Any:
    """Return a tensor with the array's values and dtype, in memory of its own."""
    made = module.tensor(array)
    return made.requires_grad_() if requires_grad else made


def dtype_name(value: Any) -> str:
    """Return the name of a tensor's dtype without the module: "float32"."""
    return str(value.dtype).rpartition(".")[2]


def numbers(value: Any) -> np.ndarray:
    """Return a tensor's values as an array; 16-bit floats become float32, because NumPy has no bfloat16."""
    value = value.detach()
    if dtype_name(value) in ("bfloat16", "float16"):
        value = value.float()
    return (
        value.cpu().resolve_conj().resolve_neg().numpy()
        if value.is_complex()
        else value.cpu().numpy()
    )


def assert_same_value(found: Any, expected: Any, tol: float | None = None, where: str = "") -> None:
    """Assert that two results agree: kinds, shapes, dtypes, values, and whether they require grad."""
    if isinstance(expected, th.Tensor):
        assert isinstance(found, ct.Tensor), f"{where}a {type(found).__name__}, not a Tensor"
        assert tuple(found.shape) == tuple(expected.shape), (
            f"{where}shape {tuple(found.shape)} != {tuple(expected.shape)}"
        )
        assert dtype_name(found) == dtype_name(expected), (
            f"{where}dtype {found.dtype} != {expected.dtype}"
        )
        assert found.requires_grad == expected.requires_grad, (
            f"{where}requires_grad {found.requires_grad}"
        )
        limit = tol or TOLERANCE.get(dtype_name(expected), 0)
        np.testing.assert_allclose(
            numbers(found), numbers(expected), rtol=limit, atol=limit, err_msg=where
        )
    elif isinstance(expected, (tuple, list)):
        assert len(found) == len(expected), f"{where}{len(found)} results, not {len(expected)}"
        for i, (f, e) in enumerate(zip(found, expected, strict=True)):
            assert_same_value(f, e, tol, f"{where}[{i}] ")
    elif isinstance(expected, (th.dtype, th.device, th.Size)):
        assert str(found) == str(expected), f"{where}{found} != {expected}"
    elif isinstance(expected, (float, complex)):
        assert type(found) is type(expected), f"{where}a {type(found).__name__}"
        np.testing.assert_allclose(
            found, expected, rtol=tol or 2e-5, atol=tol or 2e-5, err_msg=where
        )
    else:
        assert type(found) is type(expected), (
            f"{where}a {type(found).__name__}, not {type(expected).__name__}"
        )
        assert found == expected, f"{where}{found!r} != {expected!r}"


def assert_same_error(found: Ran, expected: Ran) -> None:
    """Assert that both programs failed, with errors of the same class, or of a class derived from the other's."""
    assert expected.error is not None
    assert found.error is not None, (
        f"returned {found.value!r}; torch raises {type(expected.error).__name__}: {expected.error}"
    )
    related = (
        isinstance(found.error, type(expected.error))
        or isinstance(expected.error, type(found.error))
        or type(found.error).__name__.lstrip("_") == type(expected.error).__name__.lstrip("_")
    )
    assert related, (
        f"{type(found.error).__name__}: {found.error}\n"
        f"torch: {type(expected.error).__name__}: {expected.error}"
    )


def assert_same_outcome(
    found: Ran, expected: Ran, tol: float | None = None, where: str = ""
) -> None:
    """Assert that both programs ran and agree, or both failed alike.

    Where torch has no kernel for a dtype, cltensor may return a result.
    """
    if expected.error is not None:
        if found.error is None and "not implemented for" in str(expected.error):
            return
        assert_same_error(found, expected)
        return
    if found.error is not None:
        raise AssertionError(
            f"{where}{type(found.error).__name__}: {found.error}\ntorch returns {expected.value!r}"
        ) from found.error
    assert_same_value(found.value, expected.value, tol, where)


def first_line(error: Exception) -> str:
    """Return an error's text with what differs between the libraries (module names, addresses) replaced."""
    line = str(error).strip().split("\n")[0]
    return re.sub(r"0x[0-9a-f]+", "0x", line.replace("cltensor.", "torch."))


def lines(table: str) -> list[str]:
    """Return the programs of a table: one per line; `#` starts a comment."""
    return [
        s for line in table.splitlines() if (s := line.partition("  #")[0].strip()) and s[0] != "#"
    ]
