"""torch's `library.opcheck`: checks that a program's operator agrees with its schema, gradient and fake.

Owns the checks and the error of a failed one. It runs operators and compares results; library.py owns the operators.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from . import library
from .tensor import Tensor
from .testing import assert_close
from .utils._pytree import tree_leaves, tree_map

__all__ = ["OpCheckError", "opcheck"]


class OpCheckError(Exception):
    """A check of an operator failed."""


def _copied(value: Any) -> Any:
    """Return copies of arguments as new leaves, with the same layouts and `requires_grad`."""

    def copy(t: Any) -> Any:
        return t.detach().clone().requires_grad_(t.requires_grad) if isinstance(t, Tensor) else t

    return tree_map(copy, value)


def _tensors(value: Any) -> list[Tensor]:
    return [t for t in tree_leaves(value) if isinstance(t, Tensor)]


def _alike(found: Any, expected: Any, atol: Any, rtol: Any) -> None:
    for f, e in zip(_tensors(found), _tensors(expected), strict=True):
        assert_close(f.detach(), e.detach(), atol=atol, rtol=rtol, equal_nan=True)


def _written(schema: str) -> dict[str, bool]:
    """Return for each argument of a schema, by name and in order, whether the operator writes to it."""
    inside = schema[schema.index("(") + 1 : schema.rindex(")", 0, schema.rindex("->"))]
    parts = re.split(r",\s*(?![^(\[]*[)\]])", inside)  # at commas outside brackets
    declared = [part.partition("=")[0].split() for part in parts if part.strip() not in ("", "*")]
    return {words[-1]: "!" in words[0] for words in declared}


def _schema(op: library.Operator, args: Any, kwargs: Any, atol: Any, rtol: Any) -> None:
    args, kwargs = _copied((args, kwargs))
    before = _copied((args, kwargs))
    outs = op(*args, **kwargs)
    written = _written(op._schema)
    now, then = (dict(zip(written, a, strict=False)) | k for a, k in ((args, kwargs), before))
    for name in now.keys() - {name for name, writes in written.items() if writes}:
        for t, old in zip(_tensors(now[name]), _tensors(then[name]), strict=True):
            if t.shape != old.shape or not bool(((t == old) | ((t != t) & (old != old))).all()):
                raise RuntimeError("Argument is not defined as mutable but was mutated")
    memory = {id(t._storage) for t in _tensors((args, kwargs))}
    for t in _tensors(outs):
        if id(t._storage) in memory and "!" not in op._schema.rpartition("->")[2]:
            name = op.qualname.partition("::")[2]
            raise RuntimeError(
                f"{name}: The output of this custom operator (1) must not also be an input to this custom operator and (2) may not alias "
                "any inputs to this custom operator or other returns. The most common way to trigger this error is if we have "
                "y = custom_op(x) and y and x are the same Tensor. Please instead return a clone of the offending output tensor(s) "
                "(e.g. return x.clone()) or refactor the custom operator to not return y."
            )
        memory.add(id(t._storage))


def _registration(op: library.Operator, args: Any, kwargs: Any, atol: Any, rtol: Any) -> None:
    """Check nothing: here a gradient can be registered in one place only, which cannot be wrong."""


def _fake(op: library.Operator, args: Any, kwargs: Any, atol: Any, rtol: Any) -> None:
    fake = library._FAKES.get(op.qualname)
    if fake is None:
        name = op.qualname.partition("::")[2]
        raise RuntimeError(
            f"There was no fake impl registered for <CustomOpDef({op.qualname})>. This is necessary for torch.compile/export/fx tracing to "
            f"work. Please use `{name}.register_fake` to add an fake impl."
        )
    real = op(*_copied(args), **_copied(kwargs))
    empty = tree_map(lambda t: t.to("meta") if isinstance(t, Tensor) else t, (args, kwargs))
    made = fake(*empty[0], **empty[1])
    start = f"When comparing the output of {op}.default on FakeTensor and concrete Tensors, found mismatched"
    found, expected = _tensors(made), _tensors(real)
    if len(found) != len(expected):
        raise AssertionError(f"{start} number of tensors: {len(found)} and {len(expected)}")
    for f, e in zip(found, expected, strict=True):
        if f.shape != e.shape:
            raise AssertionError(
                f"{start} tensor metadata: Shapes torch.Size({list(f.shape)}) and torch.Size({list(e.shape)}) are not equal!"
            )
        for what, a, b in (("Dtypes", f.dtype, e.dtype), ("Strides", f.stride(), e.stride())):
            if a != b:
                raise AssertionError(f"{start} tensor metadata: {what} {a} and {b} are not equal!")


def _twice(op: library.Operator, args: Any, kwargs: Any, atol: Any, rtol: Any) -> None:
    """Check schema and fake, and, for want of a compiled run, that two runs give the same results and gradients."""
    _schema(op, args, kwargs, atol, rtol)
    if not op.mutates():
        _fake(op, args, kwargs, atol, rtol)
    runs = []
    for _ in range(2):
        given = _copied((args, kwargs))
        outs = op(*given[0], **given[1])
        total = [t.sum() for t in _tensors(outs) if t.requires_grad]
        if total:
            sum(total[1:], total[0]).abs().backward()
        runs.append((outs, [t.grad for t in _tensors(given) if t.requires_grad]))
    _alike(runs[0], runs[1], atol, rtol)


_CHECKS: dict[str, Callable[..., None]] = {
    "test_schema": _schema,
    "test_autograd_registration": _registration,
    "test_faketensor": _fake,
    "test_aot_dispatch_static": _twice,
    "test_aot_dispatch_dynamic": _twice,
}
DEFAULT = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")  # fmt: skip


def opcheck(
    op: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = DEFAULT,
    raise_exception: bool = True,
    atol: Any = None,
    rtol: Any = None,
) -> dict[str, Any]:
    """Check an operator on sample arguments; return the outcome of each check by name, "SUCCESS" or its error.

    OpCheckError for the first check that fails, unless `raise_exception` is False. ValueError for unknown checks, and
    if `op` is not an operator.
    """
    if (atol is None) ^ (rtol is None):
        raise ValueError("opcheck(op, ...): if you specify one of atol/rtol, you must specify both")
    found = op._opoverload if isinstance(op, library.CustomOpDef) else op
    if not isinstance(found, library.Operator):
        raise ValueError(
            f"opcheck(op, ...): op must be instance of torch._ops.OpOverload, e.g. torch.ops.aten.sin.default, got {type(op)}"
        )
    names = (test_utils,) if isinstance(test_utils, str) else tuple(test_utils)
    if not set(names) <= set(_CHECKS):
        raise ValueError(
            f"opcheck(op, ..., test_utils={names}), expected test_utils to be subset of {tuple(_CHECKS)} but it was not"
        )
    results: dict[str, Any] = {}
    for name in names:
        try:
            _CHECKS[name](found, tuple(args), kwargs or {}, atol, rtol)
            results[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(
                    f"opcheck(op, ...): {name} failed with {error} (scroll up for stack trace)"
                ) from error
            results[name] = error
    return results
