"""`gradcheck` and `gradgradcheck`: gradients compared with finite differences.

Owns the comparison. Numbers are compared on the host, in numpy; the functions under test run on
their tensors' device.

Note [Complex gradients]
    The gradient of a real L at z = x + iy is dL/dx + i dL/dy. So for a complex output o the weights
    1 and 1j give the gradients of Re(o) and Im(o), and a step h changes L by Re(sum(conj(g) * h)).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import gradcheck_batched, gradcheck_forward
from .engine import grad
from .gradcheck_forward import as_tuple
from .record import TensorBase, record
from .views import requires

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]

Array = np.ndarray[Any, Any]

_NONDET = "\n\nNOTE: If your op relies on non-deterministic operations i.e., it is listed here:\nhttps://pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html\nthis failure might be expected.\n\nIf you are adding a new operator, please file an issue and then use one of the\nworkarounds. The workaround depends on how your test invokes gradcheck/gradgradcheck.\n"
_BC_TEXT = (
    "Backwards compatibility: New undefined gradient support checking feature is enabled by default, but it may break existing callers of this "
    'function. If this is true for you, you can call this function with "check_undefined_grad=False" to disable the feature'
)
_UNDEFINED_NOTES = (
    'Please look at "Notes about undefined output gradients" in "tools/autograd/derivatives.yaml"'
)


_ONLY_FAST = (
    "Fast gradcheck failed but element-wise differences are small. This means "
    "that the test might've passed in slow_mode!"
)


class GradcheckError(RuntimeError):
    """Raised when a gradient differs from its finite difference, or violates another requirement on gradients."""


def _host(t: Any) -> Array:
    return np.array(t._host())


def _differentiable(out: Any) -> tuple[Any, ...]:
    return tuple(o for o in as_tuple(out) if isinstance(o, TensorBase) and requires(o))


def _tested(inputs: Sequence[Any]) -> list[Any]:
    return [t for t in inputs if isinstance(t, TensorBase) and requires(t)]


def _check_inputs(inputs: tuple[Any, ...]) -> None:
    found = False
    for i, t in enumerate(inputs):
        if not (isinstance(t, TensorBase) and requires(t)):
            continue
        x: Any = t
        if x.dtype.name not in ("float64", "complex128"):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or complex. This check will likely fail if all the inputs are not of double precision floating point or complex. ",
                stacklevel=4,
            )
        if x._strided and not all(st > 0 or n <= 1 for st, n in zip(x.stride(), x.shape)):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are non-overlapping to be able to compute the numerical gradients correctly. You should call .contiguous on the input before passing it to gradcheck."
            )
        found = True
    if not found:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them "
            "have requires_grad=True."
        )


def _densely(
    func: Callable[..., Any], inputs: tuple[Any, ...], masked: bool
) -> tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]:
    """Replace sparse inputs that require grad by dense ones, and wrap the function so that it takes these.

    Returns the wrapped function, the one that finite differences call, and the inputs. If not `masked`, finite
    differences also perturb elements that the sparse tensor does not store.
    """
    places, everywhere, dense = {}, {}, list(inputs)
    for i, x in enumerate(inputs):
        if not isinstance(x, TensorBase) or x._strided or not requires(x):
            continue
        s: Any = x.detach()  # type: ignore[attr-defined]
        coordinates = s.is_sparse
        places[i] = s.coalesce() if coordinates else s
        dense[i] = s.to_dense().requires_grad_()
        ones = dense[i].new_ones(s.shape)
        everywhere[i] = (
            ones.to_sparse(s.sparse_dim()) if coordinates else ones.to_sparse(layout=s.layout)
        )
    if not places:
        return func, func, inputs

    def made(a: Any, mask: Any) -> Any:
        if masked:
            return a.sparse_mask(mask)
        s = a.detach().sparse_mask(mask)  # recorded below with a gradient that is not masked
        s._unmasked = True
        record("SparseMaskBackward0", (a,), s, lambda ctx, g: g if g._strided else g.to_dense())
        return s

    def at(kept: dict[int, Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            out = func(*(made(a, kept[i]) if i in kept else a for i, a in enumerate(args)))
            if any(isinstance(o, TensorBase) and not o._strided for o in as_tuple(out)):
                raise ValueError(
                    "Sparse output is not supported at gradcheck yet. Please call to_dense(masked_grad=...) on the output of fn for gradcheck."
                )
            return out

        return call

    return at(places), at(places if masked else everywhere), tuple(dense)


class _Steps:
    """Evaluates a function with one input perturbed: the input's memory is written and later restored,
    without changing its version.
    """

    def __init__(
        self,
        func: Callable[..., Any],
        inputs: tuple[Any, ...],
        pick: Callable[[Any], Sequence[Any]],
    ) -> None:
        self.func = func
        self.inputs = inputs
        self.pick = pick

    def at(self, t: Any, values: Array) -> list[tuple[Array, dict[str, Any]]]:
        t.data.copy_(t.new_tensor(values))
        outs = self.pick(self.func(*self.inputs))
        return [(_host(o), {"shape": o.shape, "dtype": o.dtype}) for o in outs]

    def slope(self, t: Any, base: Array, step: Array, eps: float, where: str = "") -> list[Array]:
        """Return (f(base + step) - f(base - step)) / (2 eps) for every output.

        `where` describes the step in error texts.
        """
        try:
            pairs = list(zip(self.at(t, base - step), self.at(t, base + step)))
        finally:
            t.data.copy_(t.new_tensor(base))
        for kind in ("shape", "dtype"):
            for (_, down), (_, up) in pairs:
                if down[kind] != up[kind]:
                    raise AssertionError(
                        f"Expected `func` to return outputs with the same {kind} when inputs are perturbed{where} by {eps}, but got: {kind}s {down[kind]} and {up[kind]}."
                    )
        return [(up - down) / (2 * eps) for (down, _), (up, _) in pairs]


def _numerical(steps: _Steps, t: Any, sizes: Sequence[tuple[int, bool]], eps: float) -> list[Array]:
    """Return for every output its numerical Jacobian with respect to `t`, of shape (parts, elements of
    t, elements of the output).

    Parts are the real and, for complex outputs, the imaginary one. `sizes`: for each output the number
    of elements and whether it is complex.
    """
    base = _host(t)
    complex_in = base.dtype.kind == "c"
    made = [
        np.zeros((2 if c else 1, base.size, n), complex if complex_in else float) for n, c in sizes
    ]
    for k in range(base.size):
        for unit in (1.0, 1j) if complex_in else (1.0,):
            step = np.zeros_like(base, order="C")
            step.reshape(-1)[k] = eps * unit
            where = f" on index {tuple(map(int, np.unravel_index(k, base.shape)))}"
            for block, (_, c), slope in zip(made, sizes, steps.slope(t, base, step, eps, where)):
                block[0, k] += slope.real.reshape(-1) * unit
                if c:
                    block[1, k] += slope.imag.reshape(-1) * unit
    return made


def _analytical(out: Any, tested: list[Any], parts: int) -> tuple[list[Array], bool]:
    """Return the Jacobians of one output with respect to all inputs, computed row by row by `grad`, and
    whether the gradients' dtypes matched the inputs'.
    """
    made = [
        np.zeros((parts, t.numel(), out.numel()), complex if t.dtype.is_complex else float)
        for t in tested
    ]
    dtypes_ok = True
    for j in range(out.numel()):
        for part, unit in enumerate((1.0, 1j)[:parts]):
            weights = np.zeros(tuple(out.shape), complex if parts == 2 else float)
            weights.reshape(-1)[j] = unit
            g = out.new_tensor(weights.astype(_host_dtype(out)))
            for block, t, got in zip(
                made, tested, grad(out, tested, g, retain_graph=True, allow_unused=True)
            ):
                if got is None:
                    continue
                if got.shape != t.shape:
                    raise GradcheckError("Analytical gradient has incorrect size")
                dtypes_ok = dtypes_ok and got.dtype is t.dtype
                block[part, :, j] = _host(got).reshape(-1)
    return made, dtypes_ok


def _host_dtype(t: Any) -> Any:
    return t.dtype.np if t.dtype.np is not None else np.float32


def _mismatch(
    analytical: Array, numerical: Array, out: int, inp: int, t: Any, imag: bool | None
) -> GradcheckError:
    prefix = ""
    if imag is not None:
        part = "imaginary" if imag else "real"
        prefix = f"While considering the {part} part of complex outputs only, "
    show = t.detach().new_tensor
    return GradcheckError(
        f"{prefix}Jacobian mismatch for output {out} with respect to input {inp},\n"
        f"numerical:{show(numerical)}\nanalytical:{show(analytical)}\n"
    )


def _check_slow(
    func: Callable[..., Any],
    inputs: tuple[Any, ...],
    outputs: tuple[Any, ...],
    tested: list[Any],
    eps: float,
    atol: float,
    rtol: float,
    nondet_tol: float,
    check_grad_dtypes: bool,
) -> None:
    """Compare all elements of the Jacobians; GradcheckError for the first that differs."""
    steps = _Steps(func, inputs, _differentiable)
    sizes = [(o.numel(), o.dtype.is_complex) for o in outputs]
    numerical = [_numerical(steps, t, sizes, eps) for t in tested]
    places = [i for i, x in enumerate(inputs) if any(x is t for t in tested)]
    for i, (out, (_, is_complex)) in enumerate(zip(outputs, sizes)):
        parts = 2 if is_complex else 1
        analytical, dtypes_ok = _analytical(out, tested, parts)
        again, _ = _analytical(out, tested, parts)
        if check_grad_dtypes and not dtypes_ok:
            raise GradcheckError("Gradient has dtype mismatch")
        for k, t in enumerate(tested):
            for part in reversed(range(parts)):
                a, n = analytical[k][part], numerical[k][i][part]
                if not np.allclose(a, n, rtol, atol):
                    raise _mismatch(a, n, i, places[k], t, bool(part) if is_complex else None)
        for first, second in zip(analytical, again):
            _check_reentrant(first, second, nondet_tol)


def _check_reentrant(first: Array, second: Array, tolerance: float) -> None:
    if first.size and not (abs(first - second).max() <= tolerance):
        raise GradcheckError(
            f"Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different values, although analytical gradient matches numerical gradient.The tolerance for nondeterminism was {tolerance}.{_NONDET}"
        )


def _random(rng: np.random.Generator, t: Any) -> Array:
    v = rng.uniform(0.1, 1.0, tuple(t.shape))
    return (v + 1j * rng.uniform(0.1, 1.0, tuple(t.shape))) if t.dtype.is_complex else v


def _check_fast(
    func: Callable[..., Any],
    inputs: tuple[Any, ...],
    outputs: tuple[Any, ...],
    tested: list[Any],
    eps: float,
    atol: float,
    rtol: float,
    nondet_tol: float,
    check_grad_dtypes: bool,
) -> None:
    """Compare one random projection of every Jacobian."""
    rng = np.random.default_rng(0)
    steps = _Steps(func, inputs, _differentiable)
    places = [i for i, x in enumerate(inputs) if any(x is t for t in tested)]
    weights = [_random(rng, o) for o in outputs]

    def back() -> list[Any]:
        return [
            grad(
                o,
                tested,
                o.new_tensor(w.astype(_host_dtype(o))),
                retain_graph=True,
                allow_unused=True,
            )
            for o, w in zip(outputs, weights)
        ]

    analytical, again = back(), back()
    for k, t in enumerate(tested):
        base, u = _host(t), _random(rng, t)
        slopes = steps.slope(t, base, eps * u, eps)
        for i, (slope, w) in enumerate(zip(slopes, weights)):
            numerical = float((np.conj(w) * slope).real.sum())
            g = analytical[i][k]
            if g is not None:
                if check_grad_dtypes and g.dtype is not t.dtype:
                    raise GradcheckError("Gradient has dtype mismatch")
                _check_reentrant(_host(g), _host(again[i][k]), nondet_tol)
            got = 0.0 if g is None else float((np.conj(_host(g)) * u).real.sum())
            scale = float(abs(w).sum() * abs(u).sum())
            if not abs(got - numerical) <= atol * max(scale, 1.0) + rtol * abs(numerical):
                raise _mismatch(
                    np.array(got),
                    np.array(numerical),
                    i,
                    places[k],
                    t.real if t.dtype.is_complex else t,
                    None,
                )


def _zeros(outputs: Sequence[Any]) -> list[Any]:
    return [o.new_zeros(o.shape) for o in outputs]


def _check_linear(outputs: tuple[Any, ...], tested: list[Any], masked: bool) -> None:
    """Raise GradcheckError unless zero weights give zero gradients of the right dtype, device and shape."""
    if not tested:
        raise GradcheckError("no Tensors requiring grad found in input")
    got = grad(outputs, tested, _zeros(outputs), retain_graph=True, allow_unused=True)
    for g, t in zip(got, tested):
        if g is None:
            continue
        values = _host(g)
        if not (np.allclose(values, 0) if masked else (values == 0).all()):
            raise GradcheckError("backward not multiplied by grad_output")
        if g.dtype is not t.dtype:
            raise GradcheckError("grad is incorrect type")
        if g.device != t.device:
            raise GradcheckError("grad is incorrect device")
        if g.shape != t.shape:
            raise GradcheckError("grad is incorrect size")


def _no_gradient(ctx: Any, g: Any) -> None:
    return None


def _undefine(t: Any) -> Any:
    """Return an alias of `t` through which no gradient flows back."""
    out = t.alias()
    record("UndefinedGradBackward0", (t,), out, _no_gradient)
    return out


def _check_undefined(func: Callable[..., Any], inputs: tuple[Any, ...], tested: list[Any]) -> None:
    """Raise GradcheckError unless backward works when some or all outputs get no gradient."""
    count = len(_differentiable(func(*inputs)))
    for which in [None, *range(count)] if count > 1 else [None]:
        outs = _differentiable(func(*inputs))
        outs = tuple(_undefine(o) if which in (None, i) else o for i, o in enumerate(outs))
        try:
            got = grad(outs, tested, _zeros(outs), allow_unused=True)
        except RuntimeError as error:
            warnings.warn(_BC_TEXT, stacklevel=4)
            raise GradcheckError(
                f"Expected backward function to handle undefined output grads. {_UNDEFINED_NOTES}"
            ) from error
        for g in got:
            if g is not None and (_host(g) != 0).any():
                warnings.warn(_BC_TEXT, stacklevel=4)
                raise GradcheckError(
                    f"Expected all input grads to be undefined or zero when all output grads are undefined or zero. {_UNDEFINED_NOTES}"
                )


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Return True if the gradients of `func` match finite differences at `inputs` (which should be
    float64).

    Every input that requires grad is perturbed by `eps`, one element at a time, or in one random direction with
    `fast_mode`. Of a sparse input all elements are perturbed, or only the stored ones if `masked`. `check_forward_ad`
    compares forward mode's tangents, too. GradcheckError, or False without `raise_exception`, where something differs.
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError(
            "Expected at least one of check_forward_ad or check_backward_ad to be True"
        )
    if check_batched_grad and not check_backward_ad:
        raise AssertionError(
            "Setting check_batched_grad=True requires check_backward_ad to be True"
        )
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError(
            "Setting check_batched_forward_grad=True requires check_forward_ad to be True"
        )
    ins = as_tuple(inputs)
    try:
        _check_inputs(ins)
        func, moved, ins = _densely(func, ins, bool(masked))
        tested = _tested(ins)
        outputs = _differentiable(func(*ins))
        if not outputs:
            _check_constant(moved, ins, tested, eps)
            return True
        limits = eps, atol, rtol, nondet_tol, check_grad_dtypes
        if check_backward_ad:
            if fast_mode:
                try:
                    _check_fast(moved, ins, outputs, tested, *limits)
                except GradcheckError as error:
                    _check_slow(moved, ins, outputs, tested, *limits)  # says which elements differ
                    raise GradcheckError(_ONLY_FAST) from error
            else:
                _check_slow(moved, ins, outputs, tested, *limits)
            if check_batched_grad:
                for i, out in enumerate(outputs):
                    gradcheck_batched.check_backward(out, tested, i)
            _check_linear(outputs, tested, bool(masked))
            if check_undefined_grad:
                _check_undefined(func, ins, tested)
        if check_forward_ad:
            how = eps, (atol, rtol), check_grad_dtypes, check_undefined_grad
            _check_forward(func, ins, *how, fast=fast_mode)
            if check_batched_forward_grad:
                gradcheck_batched.check_forward(func, ins)
    except (GradcheckError, gradcheck_batched.BatchedError) as error:
        if not raise_exception:
            return False
        if isinstance(error, gradcheck_batched.BatchedError):
            raise GradcheckError(str(error)) from error
        raise
    return True


def _check_forward(
    func: Callable[..., Any],
    inputs: tuple[Any, ...],
    eps: float,
    limits: tuple[float, float],
    dtypes: bool,
    undefined: bool,
    *,
    fast: bool,
) -> None:
    steps = _Steps(func, inputs, _differentiable)

    def compare(fast: bool) -> None:
        try:
            gradcheck_forward.check(
                func,
                inputs,
                lambda t, base, step: steps.slope(t, base, step, eps),
                eps,
                limits,
                dtypes=dtypes,
                fast=fast,
                undefined=undefined,
            )
        except gradcheck_forward.MismatchError as error:
            raise GradcheckError(str(error)) from None

    try:
        compare(fast)
    except GradcheckError as error:
        if fast and "mismatch for output" in str(error):
            compare(False)  # says which elements differ
            raise GradcheckError(_ONLY_FAST) from error
        raise


def _check_constant(
    func: Callable[..., Any], inputs: tuple[Any, ...], tested: list[Any], eps: float
) -> None:
    """Raise GradcheckError if any output changes with the inputs; called when no output is differentiable."""

    def pick(out: Any) -> list[Any]:
        return [o for o in as_tuple(out) if isinstance(o, TensorBase)]

    steps = _Steps(func, inputs, pick)
    sizes = [(o.numel(), o.dtype.is_complex) for o in pick(func(*inputs))]
    for t in tested:
        for block in _numerical(steps, t, sizes, eps):
            if (block != 0).any():
                raise GradcheckError("Numerical gradient for function expected to be zero")


def _random_weights(outs: Any, apart: bool) -> tuple[Any, ...]:
    """Return random weights for each output; with `apart` they are not contiguous."""
    rng = np.random.default_rng(2)
    made = []
    for o in outs:
        values = _random(rng, o).astype(_host_dtype(o))
        if not values.size:  # an empty numpy array has strides of 0
            made.append(o.new_empty(o.shape, requires_grad=True))
        elif apart and values.ndim:
            values = np.repeat(values, 2, axis=-1)
            made.append(o.detach().new_tensor(values)[..., ::2].requires_grad_())
        else:
            made.append(o.detach().new_tensor(values).requires_grad_())
    return tuple(made)


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Return True if the second derivatives of `func` match finite differences of its first.

    `grad_outputs` are the weights of the outputs, random if not given. As `gradcheck` otherwise.
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError(
            "Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True"
        )
    if check_batched_grad and not check_rev_over_rev:
        raise AssertionError(
            "Setting check_batched_grad=True requires check_rev_over_rev to be True"
        )
    ins = as_tuple(inputs)
    if grad_outputs is None:
        weights = _random_weights(_differentiable(func(*ins)), gen_non_contig_grad_outputs)
    else:
        weights = as_tuple(grad_outputs)
    count = len(weights)
    wanted = [i for i, t in enumerate(ins) if isinstance(t, TensorBase) and requires(t)]

    def first(*args: Any) -> tuple[Any, ...]:
        xs, ws = args[: len(args) - count], args[len(args) - count :]
        for i in wanted:  # forward mode is checked on tensors without history
            if not requires(xs[i]):
                xs[i].requires_grad_()
        outs = _differentiable(func(*xs))
        got = grad(outs, [xs[i] for i in wanted], ws, create_graph=True, allow_unused=True)
        return tuple(g for g in got if g is not None)

    return gradcheck(
        first,
        ins + weights,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )
