"""`cltensor.func`: transforms of functions into their derivatives or over a batch dimension; modules as pure functions.

`jvp`, `jacfwd` and the outer part of `hessian` use forward mode (autograd/dual.py), the others reverse mode.
Transforms nest; a result is differentiable if it depends on the inputs of an enclosing transform or on another tensor
that requires grad. `vmap` is batching/'s; it also computes all rows or columns of a Jacobian at once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from .autograd import dual, enable_grad
from .autograd.engine import grad_or_none
from .autograd.forward_ad import pair, parts
from .autograd.mode import GRAD
from .batching import base, first_slice, in_all_slices, vmap
from .batching.levels import differentiating
from .batching.rules.pointwise import UNBATCHED_SELF
from .errors import debug_line
from .nn.modules.batchnorm import _BatchNorm
from .nn.modules.module import Module
from .nn.utils import stateless
from .ops.row import FUNCTIONS
from .rearrange import rearrange
from .tensor import Tensor
from .utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

__all__ = [
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "rearrange",
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
    """Call a module with other parameters and buffers, given by name in one dict or in several.

    What the call assigns to them is found in the dict afterwards, if it is a single one.
    ValueError for a name in several dicts. tie_weights: a tensor that has several names is replaced under all of them.
    strict: RuntimeError unless all parameters and buffers are given.
    """
    given = parameter_and_buffer_dicts
    if not isinstance(given, dict):
        given = _joined(given)
    return stateless.call(module, given, args, kwargs, tie_weights=tie_weights, strict=strict)


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Remove the running statistics of all batch norms in a module, so that it can be `vmap`ped; return the module."""
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

    RuntimeError for an empty sequence, and for modules of different classes, training modes or `requires_grad`.
    """
    if len(models) == 0:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or all(not m.training for m in models)):
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval mode."
        )
    if not all(type(m) is type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    return (
        _stacked([dict(m.named_parameters()) for m in models]),
        _stacked([dict(m.named_buffers()) for m in models]),
    )


def _stacked(states: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Return one stacked leaf for each name. RuntimeError if only some of a name's tensors require grad."""
    stacked = {}
    for name in states[0]:
        tensors = [state[name] for state in states]
        wanted = {t.requires_grad for t in tensors}
        if len(wanted) > 1:
            raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
        stacked[name] = FUNCTIONS["stack"]([t.detach() for t in tensors])
        stacked[name].requires_grad_(wanted.pop())
    return stacked


# --- derivatives --------------------------------------------------------------------------------


def _fresh(t: Tensor) -> Tensor:
    """Return a new tensor equal to `t`, to differentiate with respect to; if `t` requires grad, a view of it."""
    t = in_all_slices(t)
    return t.view_as(t) if t.requires_grad else dual.carry(dual.leaf(t), t)


def _zeros_for_none(grads: Sequence[Tensor | None], like: Sequence[Tensor]) -> tuple[Tensor, ...]:
    return tuple(
        [x.new_zeros(x.shape) if g is None else g for g, x in zip(grads, like, strict=True)]
    )


def _reaches(t: Tensor, own: set[int]) -> bool:
    """Whether a tensor's history leads to a leaf other than those whose ids are in `own`."""
    t = base(t)
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
    """Detach results, and their tangents, whose history leads to the inputs `own` alone; under `no_grad`, all."""
    ids = {id(base(t)) for t in own}

    def release(t: Any) -> Any:
        if not isinstance(t, Tensor):
            return t
        made = t if GRAD.enabled and _reaches(t, ids) else t.detach()
        return dual.carry(made, t, release)

    return tree_map(release, tree)


def _tensors(leaves: Sequence[Any]) -> None:
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(leaf)}")


def _results(out: Any, what: str) -> tuple[list[Tensor], Any]:
    """Return the leaves of a function's result and its tree structure. RuntimeError if none, or one is no tensor."""
    leaves, spec = tree_flatten(out)
    if not leaves or leaves == [None]:
        raise RuntimeError(
            f"{what}: Expected f to be a function that has non-empty output (got output = {leaves})"
        )
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{what}: expected f(*primals) to return only tensors, got unsupported type {type(leaf)}"
            )
    return leaves, spec


def _numbers(argnums: Any, count: int) -> tuple[int, ...]:
    """Return `argnums` as a tuple, checked for a call with `count` arguments."""
    if not isinstance(argnums, int | tuple):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)
    if not numbers:
        raise RuntimeError("argnums must be non-empty")
    for n in numbers:
        if not isinstance(n, int):
            raise RuntimeError(f"argnum must be int, got: {type(n)}")
        if not -count <= n < count:
            raise RuntimeError(f"Got argnum={n}, but only {count} positional inputs")
    if len({n % count for n in numbers}) != len(numbers):
        raise RuntimeError(f"argnums elements must be unique, got {numbers}")
    return numbers


class _Inputs:
    """The arguments of a call with respect to which it is differentiated: fresh leaves, and their tree structure."""

    def __init__(self, args: tuple, argnums: int | tuple[int, ...]) -> None:
        numbers = _numbers(argnums, len(args))
        picked = [args[n] for n in numbers]
        leaves, self.spec = tree_flatten(tuple(picked) if isinstance(argnums, tuple) else picked[0])
        _tensors(leaves)
        self.leaves = [_fresh(t) for t in leaves]
        made = list(args)
        again = tree_unflatten(self.leaves, self.spec)
        for n, value in zip(
            numbers, again if isinstance(argnums, tuple) else (again,), strict=True
        ):
            made[n] = value
        self.args = tuple(made)

    def shaped(self, values: Sequence[Any]) -> Any:
        """Return one value per leaf in the tree structure of the arguments."""
        return tree_unflatten(values, self.spec)


def _split(value: Any, has_aux: bool, what: str) -> tuple[Any, Any]:
    if not has_aux:
        return value, None
    if not (isinstance(value, tuple) and len(value) == 2):
        raise RuntimeError(
            f"{what}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    for t in tree_leaves(value[1]):
        if not isinstance(t, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(t)}")
    return value


def grad_and_value(
    func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable:
    """Return a function that computes the gradient of a scalar function, and its value; with aux, (value, aux)."""

    @functools.wraps(func, updated=())
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        what = "grad_and_value(f)(*args)"
        with enable_grad(), differentiating():
            inputs = _Inputs(args, argnums)
            out, aux = _split(func(*inputs.args, **kwargs), has_aux, what)
            if not isinstance(out, Tensor):
                raise RuntimeError(f"{what}: Expected f(*args) to return a Tensor, got {type(out)}")
            if out.ndim:
                raise RuntimeError(
                    f"{what}: Expected f(*args) to return a scalar Tensor, got tensor with {out.ndim} dims. "
                    "Maybe you wanted to use the vjp or jacrev APIs instead?"
                )
            found = grad_or_none((out,), inputs.leaves, create_graph=True)
            found = _zeros_for_none(found, inputs.leaves)
        found, out, aux = _released((list(found), out, aux), inputs.leaves)
        value = inputs.shaped(found)
        return (value, (out, aux)) if has_aux else (value, out)

    return wrapper


def grad(func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable:
    """Return a function that computes the gradient of a scalar function with respect to its arguments `argnums`.

    Gradients have the tree structure of those arguments. With `has_aux`, `func` returns (scalar, aux), and the
    function made of it (gradient, aux).

    >>> cltensor.func.grad(lambda x: (x ** 3).sum())(torch.tensor(2.0))
    tensor(12.)
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func, updated=())
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return wrapper


def vjp(func: Callable, *primals: Any, has_aux: bool = False) -> Any:
    """Return `func(*primals)` and a function from its cotangents to a tuple of the primals' cotangents; aux comes last.

    RuntimeError for cotangents whose tree structure is not the result's.
    """
    with enable_grad(), differentiating():
        inputs = _Inputs(primals, tuple(range(len(primals))))
        out, aux = _split(func(*inputs.args), has_aux, _VJP)
    outs, spec = _results(out, _VJP)

    def pull(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        weights, given = tree_flatten(cotangents)
        if given != spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. "
                f"cotangents: {_form(given)}, primal output: {_form(spec)}"
            )
        with enable_grad():
            found = grad_or_none(
                outs,
                inputs.leaves,
                weights,
                create_graph=create_graph is not False,
                retain_graph=retain_graph,
            )
            found = _zeros_for_none(found, inputs.leaves)
        return inputs.shaped(_released(list(found), inputs.leaves))

    shown, aux = _released((out, aux), inputs.leaves)
    return (shown, pull, aux) if has_aux else (shown, pull)


class _Leaf:
    """Stands for a leaf where a tree structure is printed."""

    def __repr__(self) -> str:
        return "*"


def _form(spec: Any) -> str:
    return repr(tree_unflatten([_Leaf()] * spec.num_leaves, spec))


_JVP, _VJP = "jvp(f, primals, tangents)", "vjp(f, *primals)"


def _leaves(tree: Any, name: str) -> tuple[list[Tensor], Any]:
    """Return the leaves of a tree and its structure. RuntimeError if there is none, or one is no tensor."""
    leaves, spec = tree_flatten(tree)
    if not leaves:
        raise RuntimeError(f"{_JVP}: Expected {name} to contain at least one Tensor.")
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"{_JVP}: Expected {name} to only contain Tensors, got {type(leaf)}")
    return leaves, spec


def jvp(
    func: Callable, primals: tuple, tangents: tuple, *, strict: bool = False, has_aux: bool = False
) -> Any:
    """Return `func(*primals)` and its derivative along the tangents; aux comes last.

    Runs the function once, in forward mode. strict: RuntimeError if a result does not depend on the primals.

    >>> cltensor.func.jvp(torch.sin, (torch.tensor(0.0),), (torch.tensor(2.0),))
    (tensor(0.), tensor(2.))
    """
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"{_JVP}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    flat, spec = tree_flatten(primals)
    along, form = tree_flatten(tangents)
    if spec != form:
        raise RuntimeError(
            f"{_JVP}: Expected primals and tangents to have the same python structure. For example, if primals is a tuple of 3 "
            f"tensors, tangents also must be. Got primals with structure {spec} and tangents with structure {form}"
        )
    _leaves(primals, "primals")
    _leaves(tangents, "tangents")
    with dual.inside() as level, differentiating():
        duals = [pair(p, t, level) for p, t in zip(flat, along, strict=True)]
        out, aux = _split(func(*tree_unflatten(duals, spec)), has_aux, _JVP)
        outs, form = _results(out, _JVP)
        found = [_both(o, level, strict) for o in outs]
        aux = tree_map(lambda t: parts(t, level).primal if isinstance(t, Tensor) else t, aux)
    values, pushed = (tree_unflatten(list(column), form) for column in zip(*found, strict=True))
    return (values, pushed, aux) if has_aux else (values, pushed)


def _both(out: Any, level: dual.Level, strict: bool) -> tuple[Tensor, Tensor]:
    """Return the value and the tangent of a result; zeros for a result that depends on no primal."""
    primal, tangent = parts(out, level)
    if tangent is None:
        if strict:
            raise RuntimeError(
                f"{_JVP}: The output of f is independent of the inputs. This is not allowed with strict=True."
            )
        tangent = primal.new_zeros(primal.shape)
    return primal, tangent


def linearize(func: Callable, *primals: Any) -> tuple[Any, Callable]:
    """Return `func(*primals)` and its JVP as a function of the tangents, which does not run `func` again."""
    inputs = _Inputs(primals, tuple(range(len(primals))))
    with enable_grad():
        out = func(*inputs.args)
        outs, spec = tree_flatten(out)
        # The VJP is linear in its cotangents (`weights`): the VJP of that function of them is the JVP.
        weights = [dual.leaf(o.new_zeros(o.shape)) for o in outs]
        pulled = grad_or_none(outs, inputs.leaves, weights, create_graph=True)
    own = [*inputs.leaves, *weights]

    def push(*tangents: Any) -> Any:
        along, form = tree_flatten(tangents)
        if form != inputs.spec:
            raise RuntimeError(
                f"Expected the tangents {form} to have the same argspec as the primals {inputs.spec}"
            )
        for i, (t, p) in enumerate(zip(along, inputs.leaves, strict=True)):
            for name in ("shape", "device", "dtype"):
                have, want = getattr(t, name), getattr(p, name)
                if have != want:
                    raise RuntimeError(
                        f"tangent:{i} with {name} {have} in flattened pytree doesn't match the {name} {want} of the "
                        "corresponding primal."
                    )
        with enable_grad():
            found = grad_or_none(pulled, weights, along, create_graph=True, retain_graph=True)
            found = _zeros_for_none(found, outs)
        return tree_unflatten(_released(list(found), own), spec)

    return _released(out, own), push


def jacrev(
    func: Callable, argnums: int | tuple[int, ...] = 0, *, has_aux: bool = False,
    chunk_size: int | None = None, _preallocate_and_copy: bool = False,
) -> Callable:  # fmt: skip
    """Return a function that computes the Jacobian: for outputs of shape S and arguments of shape T, tensors S + T.

    chunk_size: how many rows are computed at once, None for all of them.
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func, updated=())
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        _refuse_complex("jacrev", args, "inputs")
        with enable_grad():
            inputs = _Inputs(args, argnums)
            out, aux = _split(func(*inputs.args, **kwargs), has_aux, _VJP)
            outs, spec = _results(out, _VJP)
            _refuse_complex("jacrev", outs, "outputs")
            rows = _jacobian_rows(outs, inputs.leaves, chunk_size)
            blocks = [inputs.shaped(row) for row in rows]
        found, aux = _released((tree_unflatten(blocks, spec), aux), inputs.leaves)
        return (found, aux) if has_aux else found

    return wrapper


def _jacobian_rows(
    outs: Sequence[Tensor], leaves: Sequence[Tensor], chunk_size: int | None
) -> list[list[Tensor]]:
    """Return each output's Jacobian with respect to each leaf: a backward pass, `vmap`ped over all output elements."""
    sizes = [o.numel() for o in outs]

    def pull(*weights: Tensor) -> tuple[Tensor, ...]:
        found = grad_or_none(outs, leaves, weights, create_graph=True, retain_graph=True)
        return _zeros_for_none(found, leaves)

    if not sum(sizes):
        return [[t.new_zeros((*o.shape, *t.shape)) for t in leaves] for o in outs]
    found = vmap(pull, randomness="same", chunk_size=chunk_size)(*_basis(outs))
    parts = [t.split(sizes) for t in found]
    return [
        [p[i].reshape((*o.shape, *t.shape)) for p, t in zip(parts, leaves, strict=True)]
        for i, o in enumerate(outs)
    ]


def _basis(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the unit vectors of all tensors' elements together: each tensor's part of them, along a new first dim."""
    sizes = [t.numel() for t in tensors]
    made, start = [], 0
    for t, n in zip(tensors, sizes, strict=True):
        rows = FUNCTIONS["zeros"]((sum(sizes), n), dtype=t.dtype, device=t.device)
        rows.narrow(0, start, n).diagonal().fill_(1)
        made.append(rows.reshape((-1, *t.shape)) if n else rows.reshape((sum(sizes), *t.shape)))
        start += n
    return made


def _columns(push: Callable, basis: Sequence[Tensor], randomness: str) -> tuple[Tensor, ...]:
    """Return `push` of all vectors of a basis, stacked: by `vmap`, or one by one if that refuses an in-place write."""
    try:
        return vmap(push, randomness=randomness)(*basis)
    except RuntimeError as refused:
        if str(refused) != UNBATCHED_SELF:
            raise
    debug_line(3, "jacfwd: the function is called for each column")
    pushed = [push(*along) for along in zip(*basis, strict=True)]
    return tuple([FUNCTIONS["stack"](column) for column in zip(*pushed, strict=True)])


def jacfwd(
    func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False, *,
    randomness: str = "error",
) -> Callable:  # fmt: skip
    """Return a function that computes the Jacobian (see `jacrev`) by forward mode, all argument elements at once."""

    @functools.wraps(func, updated=())
    def wrapper(*args: Any) -> Any:
        numbers = _numbers(argnums, len(args))
        picked = tuple([args[n] for n in numbers])
        flat, spec = tree_flatten(picked)
        _leaves(picked, "primals")
        _refuse_complex("jacfwd", args, "inputs")
        aux: list[Any] = []

        def partial(*values: Any) -> Any:
            made = list(args)
            for n, value in zip(numbers, values, strict=True):
                made[n] = value
            out, other = _split(func(*made), has_aux, _JVP)
            aux[:] = [other]
            _refuse_complex("jacfwd", out, "outputs")
            return out

        form: Any = None

        def push(*along: Tensor) -> tuple[Tensor, ...]:
            nonlocal form
            _, pushed = jvp(partial, picked, tree_unflatten(along, spec))
            found, form = tree_flatten(pushed)
            aux[:] = [tree_map(_alike, aux[0])]
            return tuple(found)

        sizes = [t.numel() for t in flat]
        if sum(sizes):
            columns = _columns(push, _basis(flat), randomness)
        else:  # no argument has an element
            found, form = tree_flatten(partial(*picked))
            columns = tuple([o.new_zeros((0, *o.shape)) for o in found])
        blocks = []
        for column in columns:
            pieces = column.movedim(0, -1).split(sizes, -1)
            shaped = [
                p.reshape((*column.shape[1:], *t.shape)) for p, t in zip(pieces, flat, strict=True)
            ]
            whole = tree_unflatten(shaped, spec)
            blocks.append(whole if isinstance(argnums, tuple) else whole[0])
        result = tree_unflatten(blocks, form)
        return (result, aux[0]) if has_aux else result

    return wrapper


def _alike(t: Any) -> Any:
    """Return an aux value without the batch dimension: aux does not depend on tangents, so all slices are equal."""
    return first_slice(t) if isinstance(t, Tensor) else t


def _refuse_complex(name: str, tree: Any, what: str) -> None:
    for i, t in enumerate(tree_leaves(tree)):
        if isinstance(t, Tensor) and t.is_complex():
            raise RuntimeError(
                f"{name}: Expected all {what} to be real but received complex tensor at flattened input idx: {i}"
            )


def hessian(func: Callable, argnums: int | tuple[int, ...] = 0) -> Callable:
    """Return a function that computes the Hessian of a function, by forward mode over reverse mode."""
    return jacfwd(jacrev(func, argnums), argnums)


def functionalize(func: Callable, *, remove: str = "mutations") -> Callable:
    """Return a function with `func`'s results: torch's keeps in-place writes from its tracers, and there are none here.

    remove: "mutations" or "mutations_and_views".
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid options are:\n"
            "     remove='mutations': all inplace and out= operators will be removed from the program, and replaced with "
            "their out-of-place equivalents.\n"
            "     remove='mutations_and_views': In addition to the above, all aliasing operators {view} will be replaced "
            "with their non-aliasing counterparts, {view}_copy.\n"
        )

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    return wrapped
