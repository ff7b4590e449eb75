"""`torch.autograd.functional`: Jacobians, Hessians and their products with vectors, for Python functions of tensors.

Owns vjp, jvp, jacobian, hessian, vhp and hvp. All use reverse mode (jvp and hvp differentiate a VJP with respect to its
weights); jacobian and hessian use forward mode if asked to. Knows only `grad`, dual tensors and the tensors' methods.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .engine import grad, grad_or_none, stack
from .forward_ad import dual_level, make_dual, unpack_dual
from .mode import enable_grad
from .record import TensorBase
from .views import requires

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Tensors = Any


def _as_tuple(
    value: Any, arg: str | None = None, fn: str | None = None
) -> tuple[bool, tuple[Any, ...]]:
    """Return whether `value` is a tuple, and `value` as a tuple; torch's TypeError for items that are not tensors."""
    if isinstance(value, tuple):
        for i, item in enumerate(value):
            if not isinstance(item, TensorBase):
                raise TypeError(
                    f"The {arg} given to {fn} must be either a Tensor or a tuple of Tensors but the value at index {i} has type {type(item)}."
                )
        return True, value
    if not isinstance(value, TensorBase):
        raise TypeError(
            f"The {arg} given to {fn} must be either a Tensor or a tuple of Tensors but the given {arg} has type {type(value)}."
        )
    return False, (value,)


def _prepare(inputs: tuple[Any, ...], create_graph: bool, need_graph: bool) -> tuple[Any, ...]:
    """Return new tensor objects for the inputs, so that only what the function does with them is
    differentiated.
    """
    fresh = []
    for t in inputs:
        if create_graph and requires(t):
            fresh.append(t.view_as(t))
        else:
            fresh.append(t.detach().requires_grad_(need_graph))
    return tuple(fresh)


def _finish(items: tuple[Any, ...], create_graph: bool) -> tuple[Any, ...]:
    """Detach the results, unless `create_graph`."""
    return items if create_graph else tuple(t.detach() for t in items)


def _shape_back(items: tuple[Any, ...], was_tuple: bool) -> Any:
    return items if was_tuple else items[0]


def _check_weights(v: tuple[Any, ...], like: tuple[Any, ...], is_tuple: bool) -> None:
    if len(v) != len(like):
        if len(like) > 1:
            raise RuntimeError(
                f"v is a tuple of invalid length: should be {len(like)} but got {len(v)}."
            )
        raise RuntimeError("The given v should contain a single Tensor.")
    for i, (have, want) in enumerate(zip(v, like)):
        if have.shape != want.shape:
            prefix = f"Entry {i} in " if is_tuple else ""
            raise RuntimeError(
                f"{prefix}v has invalid size: should be {want.size()} but got {have.size()}."
            )


_INDEPENDENT = {
    "hessian": (
        "The hessian of the user-provided function with respect to input {i} is independent of the input. This is not allowed in strict mode. You should ensure that your function is thrice differentiable and that the hessian depends on the inputs."
    ),
    "jacobian": (
        "While computing the hessian, found that the jacobian of the user-provided function with respect to input {i} is independent of the input. This is not allowed in strict mode. You should ensure that your function is twice differentiable and that the jacobian depends on the inputs (this would be violated by a linear function for example)."
    ),
    "grad_inputs": (
        "The gradient with respect to input {i} is independent of the inputs of the user-provided function. This is not allowed in strict mode."
    ),
    "outputs": (
        "Output {i} of the user-provided function does not require gradients. The outputs must be computed in a differentiable manner from the input when running in strict mode."
    ),
}


def _check_depends(items: Sequence[Any], what: str, strict: bool) -> None:
    """In strict mode, raise torch's RuntimeError for a tensor that is missing or requires no grad."""
    if not strict:
        return
    for i, t in enumerate(items):
        if t is None:
            raise RuntimeError(
                f"The output of the user-provided function is independent of input {i}. This is not allowed in strict mode."
            )
        if not requires(t):
            raise RuntimeError(_INDEPENDENT[what].format(i=i))


_MISSING = {
    "back": "The output of the user-provided function is independent of input {i}. This is not "
    "allowed in strict mode.",
    "back_trick": (
        "The gradient with respect to the input is independent of entry {i} in the grad_outputs when using the double backward trick to compute forward mode gradients. This is not allowed in strict mode."
    ),
    "double_back": (
        "The jacobian of the user-provided function is independent of input {i}. This is not "
        "allowed in strict mode."
    ),
    "double_back_trick": (
        "The hessian of the user-provided function is independent of entry {i} in the grad_jacobian. This is not allowed in strict mode as it prevents from using the double backward trick to replace forward mode AD."
    ),
}


def _fill(
    grads: Sequence[Any], like: Sequence[Any], strict: bool, create_graph: bool, stage: str
) -> tuple[Any, ...]:
    """Return the gradients with zeros for missing ones; in strict mode a missing one raises RuntimeError."""
    filled = []
    for i, g in enumerate(grads):
        if g is None:
            if strict:
                raise RuntimeError(_MISSING[stage].format(i=i))
            g = like[i].new_zeros(like[i].shape)
        elif strict and create_graph and not requires(g):
            what = "hessian" if "double" in stage else "jacobian"
            raise RuntimeError(
                f"The {what} of the user-provided function is independent of input {i}. This is not allowed in strict mode when create_graph=True."
            )
        filled.append(g)
    return tuple(filled)


def vjp(
    func: Callable[..., Any],
    inputs: Tensors,
    v: Tensors = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Return `func(*inputs)` and the product of `v` with its Jacobian, shaped as the inputs."""
    with enable_grad():
        in_tuple, ins = _as_tuple(inputs, "inputs", "vjp")
        ins = _prepare(ins, create_graph, True)
        out_tuple, outs = _as_tuple(func(*ins), "outputs of the user-provided function", "vjp")
        _check_depends(outs, "outputs", strict)
        weights = None
        if v is not None:
            v_tuple, weights = _as_tuple(v, "v", "vjp")
            weights = _prepare(weights, create_graph, False)
            _check_weights(weights, outs, v_tuple)
        elif len(outs) != 1 or outs[0].numel() != 1:
            raise RuntimeError(
                "The vector v can only be None if the user-provided function returns a single Tensor with a single element."
            )
        products = grad_or_none(outs, ins, weights, create_graph=create_graph)
        products = _fill(products, ins, strict, create_graph, "back")
    return (
        _shape_back(_finish(outs, create_graph), out_tuple),
        _shape_back(_finish(products, create_graph), in_tuple),
    )


def jvp(
    func: Callable[..., Any],
    inputs: Tensors,
    v: Tensors = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Return `func(*inputs)` and the product of its Jacobian with `v`, shaped as the outputs."""
    with enable_grad():
        _, ins = _as_tuple(inputs, "inputs", "jvp")
        ins = _prepare(ins, create_graph, True)
        weights = None
        if v is not None:
            v_tuple, weights = _as_tuple(v, "v", "jvp")
            weights = _prepare(weights, create_graph, False)
            _check_weights(weights, ins, v_tuple)
        elif len(ins) != 1 or ins[0].numel() != 1:
            raise RuntimeError(
                "The vector v can only be None if the input to the user-provided function is a single Tensor with a single element."
            )
        out_tuple, outs = _as_tuple(func(*ins), "outputs of the user-provided function", "jvp")
        _check_depends(outs, "outputs", strict)
        # The VJP is linear in its weights, so its derivative with respect to them is the JVP.
        dummies = tuple(o.new_zeros(o.shape).requires_grad_() for o in outs)
        pulled = grad_or_none(outs, ins, dummies, create_graph=True)
        _check_depends(pulled, "grad_inputs", strict)
        pushed = grad_or_none(
            pulled, dummies, _weights_or_ones(weights, ins), create_graph=create_graph
        )
        pushed = _fill(pushed, outs, strict, create_graph, "back_trick")
    return (
        _shape_back(_finish(outs, create_graph), out_tuple),
        _shape_back(_finish(pushed, create_graph), out_tuple),
    )


def _weights_or_ones(weights: tuple[Any, ...] | None, like: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(t.new_ones(t.shape) for t in like) if weights is None else weights


def jacobian(
    func: Callable[..., Any],
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Return the Jacobian: for output shape S and input shape T a tensor of shape S + T, nested in
    tuples as the outputs and then the inputs are.

    `strategy` "reverse-mode" computes row by row, or with `vectorize` all rows at once by `vmap`;
    "forward-mode" computes column by column.
    """
    _check_strategy(strategy, create_graph, strict, vectorize)
    if strategy == "forward-mode":
        return _by_columns(func, inputs)
    with enable_grad():
        in_tuple, ins = _as_tuple(inputs, "inputs", "jacobian")
        ins = _prepare(ins, create_graph, True)
        out_tuple, outs = _as_tuple(func(*ins), "outputs of the user-provided function", "jacobian")
        _check_depends(outs, "outputs", strict)
        if vectorize and strict:
            raise RuntimeError(
                "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. Please either set `strict=False` or `vectorize=False`."
            )
        blocks = (
            _blocks_at_once(outs, ins, create_graph)
            if vectorize
            else [_blocks(i, out, ins, create_graph, strict) for i, out in enumerate(outs)]
        )
        table = [_finish(row, create_graph) for row in blocks]
    if out_tuple:
        return tuple(_shape_back(row, in_tuple) for row in table)
    return _shape_back(table[0], in_tuple)


def _check_strategy(strategy: str, create_graph: bool, strict: bool, vectorize: bool) -> None:
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your '
            'function has more outputs than inputs, "forward-mode" tends to be more performant. '
            'Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError(
                "torch.autograd.functional.jacobian: `create_graph=True` and "
                '`strategy="forward-mode"` are not supported together (yet). Please either set '
                '`create_graph=False` or `strategy="reverse-mode"`.'
            )
        if strict:
            raise RuntimeError(
                "torch.autograd.functional.jacobian: `strict=True` and "
                '`strategy="forward-mode"` are not supported together (yet). Please either set '
                '`strict=False` or `strategy="reverse-mode"`.'
            )
        if not vectorize:
            raise NotImplementedError(
                "Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented for `vectorize=True`."
            )


def _by_columns(func: Callable[..., Any], inputs: Tensors) -> Any:
    """Return the Jacobian computed by forward mode, with one call of `func` for each element of the inputs."""
    in_tuple, ins = _as_tuple(inputs, "inputs", "jacobian")
    columns: list[Any] = []
    out_tuple = False
    outs: tuple[Any, ...] = ()
    for i, t in enumerate(ins):
        for k in range(t.numel()):
            along = [x.new_zeros(x.shape) for x in ins]
            along[i].view(-1)[k] = 1
            with dual_level():
                duals = [make_dual(x, v) for x, v in zip(ins, along)]
                out_tuple, outs = _as_tuple(func(*duals), "outputs", "jacobian")
                found = [unpack_dual(o) for o in outs]
                columns.append([p.new_zeros(p.shape) if v is None else v for p, v in found])
    table = []
    for o, column in enumerate(zip(*columns)):
        rest = list(column)
        row = []
        for t in ins:
            mine, rest = rest[: t.numel()], rest[t.numel() :]
            shape = (*outs[o].shape, *t.shape)
            flat = stack(mine).reshape(len(mine), -1).t() if mine else outs[o].new_zeros(shape)
            row.append(flat.reshape(shape))
        table.append(tuple(row))
    if out_tuple:
        return tuple(_shape_back(row, in_tuple) for row in table)
    return _shape_back(table[0], in_tuple)


def _blocks(
    i: int, out: Any, ins: tuple[Any, ...], create_graph: bool, strict: bool
) -> tuple[Any, ...]:
    """Return the Jacobian of output `i` with respect to each input, computed row by row."""
    columns: list[list[Any]] = [[] for _ in ins]
    flat = out.reshape(-1)
    for j in range(out.numel()):
        row = grad_or_none((flat[j],), ins, create_graph=create_graph, retain_graph=True)
        for k, (g, t) in enumerate(zip(row, ins)):
            if g is None:
                if strict:
                    raise RuntimeError(
                        f"Output {i} of the user-provided function is independent of input {k}. "
                        "This is not allowed in strict mode."
                    )
                g = t.new_zeros(t.shape)
            elif strict and create_graph and not requires(g):
                raise RuntimeError(
                    f"The jacobian of the user-provided function is independent of input {i}. "
                    "This is not allowed in strict mode when create_graph=True."
                )
            columns[k].append(g)
    shapes = [(*out.shape, *t.shape) for t in ins]
    return tuple(
        stack(rows).reshape(shape) if rows else t.new_zeros(shape)
        for rows, shape, t in zip(columns, shapes, ins)
    )


def _blocks_at_once(
    outs: tuple[Any, ...], ins: tuple[Any, ...], create_graph: bool
) -> list[tuple[Any, ...]]:
    """Return the Jacobian of each output with respect to each input, computed by one batched backward pass."""
    used = [o for o in outs if requires(o) and o.numel()]
    count = sum(o.numel() for o in used)
    weights, start = [], 0
    for o in used:
        w = o.new_zeros((count, o.numel()))
        w[start : start + o.numel()].diagonal().fill_(1)
        weights.append(w.reshape((count, *o.shape)))
        start += o.numel()
    rows: tuple[Any, ...] = (None,) * len(ins)
    if used:
        rows = grad(
            used, ins, weights, True, create_graph, allow_unused=True, is_grads_batched=True
        )
    table, start = [], 0
    for o in outs:
        there = requires(o) and o.numel()
        end = start + o.numel() if there else start
        table.append(
            tuple(
                g[start:end].reshape((*o.shape, *t.shape))
                if there and g is not None
                else t.new_zeros((*o.shape, *t.shape))
                for g, t in zip(rows, ins)
            )
        )
        start = end
    return table


def _single(out: Any, fn: str) -> Any:
    if isinstance(out, tuple):
        raise RuntimeError(f"The function given to {fn} should return a single Tensor")
    if out.numel() != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {fn} should contain a single element"
        )
    return out


def hessian(
    func: Callable[..., Any],
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Return the Hessian of a scalar function: for input shapes S, T tensors of shape S + T, nested
    as the inputs.
    """
    in_tuple, ins = _as_tuple(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def scalar(*args: Any) -> Any:
        out = func(*args)
        _, outs = _as_tuple(out, "outputs of the user-provided function", "hessian")
        _check_depends(outs, "outputs", strict)
        return _single(out, "hessian").reshape(())

    def first(*args: Any) -> Any:
        if outer_jacobian_strategy == "forward-mode":
            args = tuple(t.requires_grad_(True) for t in args)
        rows = jacobian(scalar, args, create_graph=True)
        _check_depends(rows, "jacobian", strict)
        return rows

    result = jacobian(
        first,
        ins,
        create_graph=create_graph,
        strict=strict,
        vectorize=vectorize,
        strategy=outer_jacobian_strategy,
    )
    return result if in_tuple else result[0][0]


def _weights(v: Any, ins: tuple[Any, ...], create_graph: bool, fn: str) -> tuple[Any, ...] | None:
    if v is not None:
        v_tuple, weights = _as_tuple(v, "v", fn)
        weights = _prepare(weights, create_graph, False)
        _check_weights(weights, ins, v_tuple)
        return weights
    if len(ins) != 1 or ins[0].numel() != 1:
        raise RuntimeError(
            "The vector v can only be None if the input to the user-provided function is a single Tensor with a single element."
        )
    return None


def _slopes(
    func: Callable[..., Any], inputs: Tensors, v: Tensors, create_graph: bool, strict: bool, fn: str
) -> tuple[bool, Any, Any, Any, Any]:
    """Compute what `vhp` and `hvp` start from: the first derivatives.

    Returns whether the inputs are a tuple, the inputs, the weights `v`, the value of `func` and its gradients.
    """
    in_tuple, ins = _as_tuple(inputs, "inputs", fn)
    ins = _prepare(ins, create_graph, True)
    weights = _weights(v, ins, create_graph, fn)
    out = func(*ins)
    _, outs = _as_tuple(out, "outputs of the user-provided function", fn)
    _check_depends(outs, "outputs", strict)
    _single(out, fn)
    slopes = grad_or_none(outs, ins, create_graph=True)
    _check_depends(slopes, "jacobian", strict)
    return in_tuple, ins, weights, outs, slopes


def vhp(
    func: Callable[..., Any],
    inputs: Tensors,
    v: Tensors = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Return a scalar function's value and the product of `v` with its Hessian, shaped as the
    inputs.
    """
    with enable_grad():
        in_tuple, ins, weights, outs, slopes = _slopes(func, inputs, v, create_graph, strict, "vhp")
        product = grad_or_none(
            slopes, ins, _weights_or_ones(weights, ins), create_graph=create_graph
        )
        product = _fill(product, ins, strict, create_graph, "double_back")
    return _finish(outs, create_graph)[0], _shape_back(_finish(product, create_graph), in_tuple)


def hvp(
    func: Callable[..., Any],
    inputs: Tensors,
    v: Tensors = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Return a scalar function's value and the product of its Hessian with `v`, shaped as the
    inputs.
    """
    with enable_grad():
        in_tuple, ins, weights, outs, slopes = _slopes(func, inputs, v, create_graph, strict, "hvp")
        dummies = tuple(t.new_zeros(t.shape).requires_grad_() for t in ins)
        pulled = grad_or_none(slopes, ins, dummies, create_graph=True)
        _check_depends(pulled, "hessian", strict)
        product = grad_or_none(
            pulled, dummies, _weights_or_ones(weights, ins), create_graph=create_graph
        )
        product = _fill(product, ins, strict, create_graph, "double_back_trick")
    return _finish(outs, create_graph)[0], _shape_back(_finish(product, create_graph), in_tuple)
