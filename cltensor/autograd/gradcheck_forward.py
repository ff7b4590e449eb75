"""The part of `gradcheck` that compares tangents, computed by forward mode, with finite differences.

Owns that comparison alone; gradcheck.py perturbs the inputs and checks gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .forward_ad import dual_level, make_dual, unpack_dual
from .record import TensorBase
from .views import requires

Array = np.ndarray[Any, Any]
Slopes = Callable[[Any, Array, Array], list[Array]]


class MismatchError(Exception):
    """Raised when a tangent differs from its finite difference; the text says where."""


def check(
    func: Callable[..., Any],
    inputs: tuple[Any, ...],
    slopes: Slopes,
    eps: float,
    limits: tuple[float, float],
    *,
    dtypes: bool,
    fast: bool,
    undefined: bool,
) -> None:
    """Compare the tangents of `func` with finite differences; MismatchError where they differ.

    Each input gets a tangent along one element at a time, or with `fast` along one random direction. `slopes(t, base,
    step)` returns the finite differences of all outputs for the input `t` with the value `base`. `undefined`: also
    check inputs without a tangent.
    """
    rng = np.random.default_rng(3)
    outs = as_tuple(func(*inputs))
    places = [i for i, o in enumerate(outs) if isinstance(o, TensorBase) and requires(o)]
    for i, t in enumerate(inputs):
        if not _tested(t):
            continue
        base = np.array(t._host())
        steps = list(_one(base, rng) if fast else _all(base))
        found: list[list[tuple[Array, Array]]] = [[] for _ in places]
        for step in steps:
            numerical = slopes(t, base, eps * step)
            analytical = _tangents(func, inputs, {i: step}, places, dtypes)
            for pairs, a, n in zip(found, analytical, numerical, strict=True):
                pairs.append((a.reshape(-1), n.reshape(-1)))
        for k, pairs in enumerate(found):
            _compare(pairs, k, i, t, limits, fast)
    if undefined:
        _check_undefined(func, inputs, rng)


def as_tuple(x: Any) -> tuple[Any, ...]:
    """Return a tuple or list as a tuple, anything else as a tuple of one."""
    return x if isinstance(x, tuple) else tuple(x) if isinstance(x, list) else (x,)


def _tested(t: Any) -> bool:
    return isinstance(t, TensorBase) and requires(t)


def _all(base: Array) -> Iterator[Array]:
    """Yield a unit step along every element.

    For a complex input, those along the imaginary parts follow those along the real ones.
    """
    for unit in (1, 1j) if base.dtype.kind == "c" else (1,):
        for k in range(base.size):
            step = np.zeros_like(base, order="C")
            step.reshape(-1)[k] = unit
            yield step


def _one(base: Array, rng: np.random.Generator) -> Iterator[Array]:
    """Yield one step in a random direction."""
    step = np.asarray(rng.uniform(0.1, 1.0, base.shape))
    if base.dtype.kind == "c":
        step = step + 1j * rng.uniform(0.1, 1.0, base.shape)
    yield step


def _duals(inputs: tuple[Any, ...], along: dict[int, Array], missing: Any = None) -> list[Any]:
    """Return the inputs as dual tensors with the tangents `along`, zeros where none is given.

    Input number `missing` gets no tangent.
    """
    made = []
    for i, t in enumerate(inputs):
        if not _tested(t):
            made.append(t)
            continue
        plain = t.detach()
        if i == missing:
            made.append(plain)
            continue
        tangent = plain.new_zeros(plain.shape)
        if i in along:
            tangent = plain.new_tensor(along[i].astype(t.dtype.np))
        made.append(make_dual(plain, tangent))
    return made


def _tangents(
    func: Callable[..., Any],
    inputs: tuple[Any, ...],
    along: dict[int, Array],
    places: Sequence[int],
    dtypes: bool,
) -> list[Array]:
    """Return the tangents of the outputs numbered `places`, for inputs with the tangents `along`."""
    from .gradcheck import GradcheckError

    found = []
    with dual_level():
        outs = as_tuple(func(*_duals(inputs, along)))
        for place in places:
            primal, tangent = unpack_dual(outs[place])
            if tangent is None:
                tangent = primal.new_zeros(primal.shape)
            if dtypes and primal.is_complex() != tangent.is_complex():
                raise GradcheckError("Forward AD gradient has dtype mismatch.")
            found.append(np.array(tangent.detach()._host()))
    return found


def _compare(
    pairs: list[tuple[Array, Array]],
    out: int,
    place: int,
    t: Any,
    limits: tuple[float, float],
    fast: bool,
) -> None:
    atol, rtol = limits
    if not pairs:
        return
    analytical, numerical = (np.stack(list(side)) for side in zip(*pairs, strict=True))
    if fast:
        atol *= max(t.numel(), 1)
    is_complex = t.is_complex()
    half = len(pairs) // 2
    for part in ((half, None), (0, half)) if is_complex and not fast else ((0, None),):
        a, n = analytical[slice(*part)], numerical[slice(*part)]
        if np.allclose(a, n, rtol, atol):
            continue
        prefix = ""
        if is_complex and not fast:
            prefix = f"While considering the {'imaginary' if part[0] else 'real'} part of complex inputs only, "
        show = (t.detach() if a.dtype.kind != "c" or is_complex else t.detach() + 0j).new_tensor
        raise MismatchError(
            f"{prefix}Jacobian computed with forward mode mismatch for output {out} with respect to input {place},\n"
            f"numerical:{show(n)}\nanalytical:{show(a)}\n"
        )


def _check_undefined(
    func: Callable[..., Any], inputs: tuple[Any, ...], rng: np.random.Generator
) -> None:
    """Raise GradcheckError unless an input without a tangent counts as one whose tangent is zero."""
    from .gradcheck import GradcheckError

    along = {i: next(_one(np.array(t._host()), rng)) for i, t in enumerate(inputs) if _tested(t)}
    for i in along:
        others = {k: v for k, v in along.items() if k != i}
        with dual_level():
            both = [
                [unpack_dual(o).tangent for o in as_tuple(func(*made)) if _floating(o)]
                for made in (_duals(inputs, others), _duals(inputs, others, missing=i))
            ]
            for k, (zero, none) in enumerate(zip(*both, strict=True)):
                if zero is not None and none is not None and not zero.allclose(none):
                    raise GradcheckError(
                        "Mismatch in tangent values for output with index: ", k, " when input: ", inputs[i],
                        " has an undefined tangent value. ", " Got: ", zero, " but expected: ", none,
                    )  # fmt: skip


def _floating(t: Any) -> bool:
    return isinstance(t, TensorBase) and t.dtype.category >= 2  # type: ignore[attr-defined]
