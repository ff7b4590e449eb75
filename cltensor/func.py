"""`cltensor.func`: functions that turn functions into their derivatives or map them over a dimension; modules as functions.

Derivatives are by reverse mode: `jvp` differentiates a vjp with respect to its weights, `jacfwd` gives what `jacrev` gives.
They nest, and a result is differentiable where an enclosing derivative, or a tensor that requires grad, is behind it.
`vmap` calls the function once for each slice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .autograd import enable_grad
from .autograd.functional import _fill, _grads
from .nn.modules.batchnorm import _BatchNorm
from .nn.modules.module import Module
from .nn.utils import stateless
from .ops.row import FUNCTIONS
from .tensor import Tensor
from .utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: dict[str, Any] | Sequence[dict[str, Any]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other parameters and buffers, named in a dict or in several, which it gets back changed.

    ValueError for a name in several dicts. tie_weights: a tensor that has several names is replaced under all of them.
    strict: RuntimeError unless all are named.
    """
    given = parameter_and_buffer_dicts
    if not isinstance(given, dict):
        given = _joined(given)
    return stateless.call(module, given, args, kwargs, tie_weights=tie_weights, strict=strict)


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Make every batch norm in a module normalise by its batch alone, for `vmap` over models; returns the module, changed."""
    for module in root.modules():
        if isinstance(module, _BatchNorm) and module.track_running_stats:
            module.track_running_stats = False
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                setattr(module, name, None)
    return root


def _joined(dicts: Any) -> dict[str, Any]:
    if not isinstance(dicts, Sequence):
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(dicts)}"
        )
    if not all(isinstance(d, dict) for d in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    names = [name for d in dicts for name in d]
    repeated = [n for n in dict.fromkeys(names) if names.count(n) > 1]
    if repeated:
        raise ValueError(
            f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous"
        )
    return {name: value for d in dicts for name, value in d.items()}


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Stack the parameters, and the buffers, of modules of one kind along a new first dimension.

    RuntimeError for no module, or modules of several classes or not all in the same mode.
    """
    if len(models) == 0:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or all(not m.training for m in models)):
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval mode."
        )
    if not all(type(m) is type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    stack = FUNCTIONS["stack"]
    params = {
        name: stack([dict(m.named_parameters())[name].detach() for m in models]).requires_grad_(
            p.requires_grad
        )
        for name, p in models[0].named_parameters()
    }
    buffers = {
        name: stack([dict(m.named_buffers())[name].detach() for m in models]).requires_grad_(
            b.requires_grad
        )
        for name, b in models[0].named_buffers()
    }
    return params, buffers


# --- derivatives --------------------------------------------------------------------------------


def _fresh(t: Tensor) -> Tensor:
    """Another identity for a tensor, to which derivatives are taken; what it came from stays reachable."""
    return t.view_as(t) if t.requires_grad else t.detach().requires_grad_()


def _reaches(t: Tensor, own: set[int]) -> bool:
    """Whether a tensor's history leads to a leaf that is not one of ours."""
    todo, seen = [t.grad_fn], set()
    if t.grad_fn is None:
        return t.requires_grad and id(t) not in own
    while todo:
        node = todo.pop()
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        variable = getattr(node, "variable", None)
        if variable is not None and id(variable) not in own:
            return True
        todo += [n for n, _ in node.next_functions]
    return False


def _released(tree: Any, own: Sequence[Tensor]) -> Any:
    """Cut the history of results that lead to our own inputs alone."""
    ids = {id(t) for t in own}
    return tree_map(
        lambda t: t if not isinstance(t, Tensor) or _reaches(t, ids) else t.detach(), tree
    )


def _tensors(leaves: Sequence[Any], what: str) -> None:
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"{what}: Expected all inputs to be differentiated to be Tensors, got {type(leaf).__name__}"
            )


class _Inputs:
    """The arguments of a call that are differentiated: their leaves, and the form they came in."""

    def __init__(self, args: tuple, argnums: int | tuple[int, ...], what: str) -> None:
        numbers = argnums if isinstance(argnums, tuple) else (argnums,)
        for n in numbers:
            if not -len(args) <= n < len(args):
                raise RuntimeError(f"Got argnum={n}, but only {len(args)} positional inputs")
        picked = [args[n] for n in numbers]
        leaves, self.spec = tree_flatten(tuple(picked) if isinstance(argnums, tuple) else picked[0])
        _tensors(leaves, what)
        self.leaves = [_fresh(t) for t in leaves]
        made = list(args)
        again = tree_unflatten(self.leaves, self.spec)
        for n, value in zip(
            numbers, again if isinstance(argnums, tuple) else (again,), strict=True
        ):
            made[n] = value
        self.args = tuple(made)

    def shaped(self, values: Sequence[Any]) -> Any:
        """Return values for the leaves in the form of the arguments."""
        return tree_unflatten(values, self.spec)


def _split(value: Any, has_aux: bool, what: str) -> tuple[Any, Any]:
    if not has_aux:
        return value, None
    if not (isinstance(value, tuple) and len(value) == 2):
        raise RuntimeError(
            f"{what}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    return value


def grad_and_value(
    func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable:
    """Return a function that gives the gradient of a scalar function, and its value (with aux: a pair of value and aux)."""

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        what = "grad_and_value(f)(*args)"
        with enable_grad():
            inputs = _Inputs(args, argnums, what)
            out, aux = _split(func(*inputs.args, **kwargs), has_aux, what)
            if not isinstance(out, Tensor):
                raise RuntimeError(
                    f"{what}: Expected f(*args) to return a tensor, got unsupported type {type(out)}"
                )
            if out.ndim:
                raise RuntimeError(
                    f"{what}: Expected f(*args) to return a scalar Tensor, got tensor with {out.ndim} dims. "
                    "Maybe you wanted to use the vjp or jacrev APIs instead?"
                )
            found = _fill(
                _grads((out,), inputs.leaves, create_graph=True), inputs.leaves, False, True, "back"
            )
        found, out, aux = _released((list(found), out, aux), inputs.leaves)
        value = inputs.shaped(found)
        return (value, (out, aux)) if has_aux else (value, out)

    return wrapper


def grad(func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable:
    """Return a function that gives the gradient of a scalar function with respect to its arguments `argnums`.

    Gradients have the form of those arguments. With `has_aux` the function returns (scalar, aux), and this (gradient, aux).

    >>> cltensor.func.grad(lambda x: (x ** 3).sum())(torch.tensor(2.0))
    tensor(12.)
    """
    both = grad_and_value(func, argnums, has_aux)

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return wrapper


def vjp(func: Callable, *primals: Any, has_aux: bool = False) -> Any:
    """Return `func(*primals)` and a function from its cotangents to a tuple of those of the primals; aux comes last."""
    with enable_grad():
        inputs = _Inputs(primals, tuple(range(len(primals))), "vjp(f, *primals)")
        out, aux = _split(func(*inputs.args), has_aux, "vjp(f, *primals)")
    outs = tree_leaves(out)

    def pull(*cotangents: Any) -> Any:
        weights = tree_leaves(cotangents[0] if len(cotangents) == 1 else cotangents)
        if [w.shape for w in weights] != [o.shape for o in outs]:
            raise RuntimeError(
                f"vjp(f, *primals): Expected cotangents of shapes {[tuple(o.shape) for o in outs]}, "
                f"got {[tuple(w.shape) for w in weights]}"
            )
        with enable_grad():
            found = _grads(outs, inputs.leaves, weights, create_graph=True, retain_graph=True)
            found = _fill(found, inputs.leaves, False, True, "back")
        return inputs.shaped(_released(list(found), inputs.leaves))

    shown, aux = _released((out, aux), inputs.leaves)
    return (shown, pull, aux) if has_aux else (shown, pull)


def jvp(
    func: Callable, primals: tuple, tangents: tuple, *, strict: bool = False, has_aux: bool = False
) -> Any:
    """Return `func(*primals)` and its derivative along the tangents; aux comes last."""
    what = "jvp(f, primals, tangents)"
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"{what}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    with enable_grad():
        inputs = _Inputs(primals, tuple(range(len(primals))), what)
        along = tree_leaves(tangents)
        if [t.shape for t in along] != [p.shape for p in inputs.leaves]:
            raise RuntimeError(f"{what}: Expected primals and tangents to have the same shapes")
        out, aux = _split(func(*inputs.args), has_aux, what)
        outs, spec = tree_flatten(out)
        # The vjp is linear in its weights: its derivative with respect to them is the jvp.
        weights = [o.new_zeros(o.shape).requires_grad_() for o in outs]
        pulled = _grads(outs, inputs.leaves, weights, create_graph=True)
        pushed = _fill(_grads(pulled, weights, along, create_graph=True), outs, False, True, "back")
    own = [*inputs.leaves, *weights]
    out, pushed, aux = _released((out, list(pushed), aux), own)
    found = tree_unflatten(pushed, spec)
    return (out, found, aux) if has_aux else (out, found)


def jacrev(
    func: Callable, argnums: int | tuple[int, ...] = 0, *, has_aux: bool = False,
    chunk_size: int | None = None, _preallocate_and_copy: bool = False,
) -> Callable:  # fmt: skip
    """Return a function that gives the Jacobian: for each output of shape S and argument of shape T a tensor of shape S + T."""

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        what = "jacrev(f)(*args)"
        with enable_grad():
            inputs = _Inputs(args, argnums, what)
            out, aux = _split(func(*inputs.args, **kwargs), has_aux, what)
            outs, spec = tree_flatten(out)
            blocks = [inputs.shaped(_rows(o, inputs.leaves)) for o in outs]
        found, aux = _released((tree_unflatten(blocks, spec), aux), inputs.leaves)
        return (found, aux) if has_aux else found

    return wrapper


def _rows(out: Tensor, leaves: Sequence[Tensor]) -> list[Tensor]:
    """The Jacobian of one output, an element of it at a time."""
    flat = out.reshape(-1)
    rows = [
        _fill(
            _grads((flat[i],), leaves, create_graph=True, retain_graph=True),
            leaves,
            False,
            True,
            "back",
        )
        for i in range(out.numel())
    ]
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(leaves)
    return [
        FUNCTIONS["stack"](list(column)).reshape((*out.shape, *leaf.shape))
        if column
        else leaf.new_zeros((*out.shape, *leaf.shape))
        for leaf, column in zip(leaves, columns, strict=True)
    ]


def jacfwd(
    func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False, *,
    randomness: str = "error",
) -> Callable:  # fmt: skip
    """Return what `jacrev` does."""
    return jacrev(func, argnums, has_aux=has_aux)


def hessian(func: Callable, argnums: int | tuple[int, ...] = 0) -> Callable:
    """Return a function that gives the second derivatives of a function: the Jacobian of its Jacobian."""
    return jacrev(jacrev(func, argnums), argnums)


# --- mapping ------------------------------------------------------------------------------------


def vmap(
    func: Callable, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error",
    *, chunk_size: int | None = None,
) -> Callable:  # fmt: skip
    """Return a function that maps `func` over a dimension of its arguments and stacks the results.

    in_dims: the dimension of each argument, None for one that is not mapped; an int for all. out_dims: where the results'
    dimension goes. The function is called once for each slice. ValueError for arguments of different sizes or none mapped.
    """

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = tree_flatten(args)
        dims = _dims_of(args, in_dims)
        sizes = {t.shape[d] for t, d in zip(leaves, dims, strict=True) if d is not None}
        if not sizes:
            raise ValueError(
                f"vmap({getattr(func, '__name__', func)}, in_dims={in_dims}, ...)(<inputs>): at least one input must be mapped"
            )
        if len(sizes) > 1:
            raise ValueError(
                "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
                f"{[t.shape[d] for t, d in zip(leaves, dims, strict=True) if d is not None]} for the mapped dimension"
            )
        results, form = [], None
        for i in range(sizes.pop()):
            slices = [t if d is None else t.select(d, i) for t, d in zip(leaves, dims, strict=True)]
            found, form = tree_flatten(func(*tree_unflatten(slices, spec), **kwargs))
            for value in found:
                if not isinstance(value, Tensor):
                    raise ValueError(
                        f"vmap({getattr(func, '__name__', func)}, ...): `{getattr(func, '__name__', func)}` must only return "
                        f"Tensors, got type {type(value)} as a return."
                    )
            results.append(found)
        if form is None:
            raise RuntimeError(
                "vmap: the mapped dimension has size 0, the results' shapes are not known"
            )
        places = _dims_of(tree_unflatten([None] * form.num_leaves, form), out_dims)
        stacked = [
            FUNCTIONS["stack"](list(column), 0 if place is None else place)
            for column, place in zip(zip(*results, strict=True), places, strict=True)
        ]
        return tree_unflatten(stacked, form)

    return wrapper


def _dims_of(tree: Any, dims: Any) -> list[int | None]:
    """One dimension for each leaf of a tree: `dims` is an int, None, or a tree that is the upper part of the other."""
    if dims is None or isinstance(dims, int):
        return [
            dims if dims is None or leaf is None or isinstance(leaf, Tensor) else None
            for leaf in tree_leaves(tree)
        ]
    if isinstance(tree, dict):
        return [d for key in tree for d in _dims_of(tree[key], dims[key])]
    if not isinstance(tree, tuple | list) or len(tree) != len(dims):
        raise ValueError(
            f"vmap: in_dims or out_dims {dims} is not compatible with the structure of what it is for"
        )
    return [d for part, own in zip(tree, dims, strict=True) for d in _dims_of(part, own)]
