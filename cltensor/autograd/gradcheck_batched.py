"""The part of `gradcheck` that compares derivatives along several directions computed at once, by `vmap`, with those
computed singly.

Owns that comparison alone; the checks of single derivatives are in gradcheck.py and gradcheck_forward.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .engine import VMAP, grad
from .forward_ad import dual_level, make_dual, unpack_dual
from .gradcheck_forward import as_tuple
from .record import TensorBase
from .views import requires

_BACKWARD = "gradcheck or gradgradcheck failed while testing batched gradient computation."
_FORWARD = "gradcheck failed while testing batched gradient computation with forward-mode AD."
_DIRECTIONS = 2


class BatchedError(Exception):
    """Raised when batched derivatives differ from single ones, or cannot be computed; the text says where."""


def _rows(t: Any, rng: np.random.Generator) -> Any:
    """Return random directions with a tensor's shape and dtype, stacked along a new leading dimension."""
    values = rng.uniform(0.1, 1.0, (_DIRECTIONS, *t.shape))
    if t.dtype.is_complex:
        values = values + 1j * rng.uniform(0.1, 1.0, values.shape)
    return t.detach().new_tensor(values.astype(t.dtype.np if t.dtype.np is not None else "f4"))


def _together(compute: Callable[..., Any], rows: Any, text: str) -> Any:
    """Return `compute(rows)`; a RuntimeError in it becomes a BatchedError."""
    try:
        return compute(rows)
    except RuntimeError as error:
        raise BatchedError(
            f"While computing batched gradients, got: {error}\n\n{text}\n"
        ) from error


def _compare(batched: Any, singles: list[Any], out: int, inp: int, text: str) -> None:
    expected = np.stack([np.array(s._host()) for s in singles])
    if not np.allclose(np.array(batched._host()), expected):
        raise BatchedError(
            f"\nFor output {out} and input {inp}:\n\n{text}\n\nGot:\n{batched}\n\nExpected:\n{batched.new_tensor(expected)}\n"
        )


def check_backward(out: Any, tested: list[Any], index: int) -> None:
    """Compare batched with single gradients for several weights of one output; BatchedError where they differ."""
    weights = _rows(out, np.random.default_rng(1))
    how: dict[str, bool] = {"retain_graph": True, "allow_unused": True}
    singles = [grad(out, tested, w, **how) for w in weights]
    batched = _together(
        lambda w: grad(out, tested, w, is_grads_batched=True, **how), weights, _BACKWARD
    )

    for k, (b, *each) in enumerate(zip(batched, *singles)):
        if each[0] is not None:
            _compare(b, each, index, k, _BACKWARD)


def check_forward(func: Callable[..., Any], inputs: tuple[Any, ...]) -> None:
    """Compare batched with single output tangents for several tangents of each input, while the other inputs
    have none.
    """
    rng = np.random.default_rng(1)
    for i, t in enumerate(inputs):
        if not (isinstance(t, TensorBase) and requires(t)):
            continue

        def push(tangent: Any, i: int = i) -> tuple[Any, ...]:
            plain = [x.detach() if hasattr(x, "detach") else x for x in inputs]
            with dual_level():
                plain[i] = make_dual(plain[i], tangent)
                outs = [unpack_dual(o) for o in as_tuple(func(*plain)) if isinstance(o, TensorBase)]
            return tuple(p.new_zeros(p.shape) if moved is None else moved for p, moved in outs)

        rows = _rows(t, rng)
        singles = [push(row) for row in rows]
        batched = _together(VMAP[0]()(push), rows, _FORWARD)
        for k, (b, *each) in enumerate(zip(batched, *singles)):
            _compare(b, each, k, i, _FORWARD)
