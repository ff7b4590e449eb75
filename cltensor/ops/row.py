"""A pointwise op is one `Row`: formula, gradient, dtype rule and names; function, method, in-place and `out=` forms follow.

`FUNCTIONS` and `METHODS` collect what is public: `cltensor/__init__.py` exports the functions, operators.py attaches the methods to Tensor,
and the tests walk `ROWS`; `OPERATORS` is for `torch.ops.aten` alone. Immediate ops (reductions, products, indexing) are functions exported by `@public`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from .. import dtypes, layouts
from ..autograd import record as graph
from ..autograd import views
from ..autograd.node import WrappingNode, op_class, read_saved
from ..codegen.pointwise import PointOp
from . import arguments, core, writes
from .alike import apply_alike
from .core import NUMBERS, Tensor
from .elsewhere import Strideless, elsewhere, foreign
from .operands import normal, plain, refuse_numbers
from .refusals import raising, refusal

SAME, FLOAT, BOOL, REAL = "same", "int to float", "bool", "complex to real"
OPERANDS = "xyzw"  # names of a row's operands in formulas and gradient functions, in order
# NumPy's argument names, which torch accepts besides its own.
NUMPYS = {"input": ("x", "a", "x1"), "other": ("x2",)}
_LETTERS = "bifc"  # the dtype categories 0 to 3, as a row's formulas name them
_KINDS = ("bool", "integer", "floating", "complex")
_PLACES = {letter: place for place, letter in enumerate(OPERANDS)}
_CATEGORIES = {bool: 0, int: 1, float: 2, complex: 3}

ROWS: dict[str, Row] = {}
FUNCTIONS: dict[str, Callable] = {}
METHODS: dict[str, Callable] = {}
OPERATORS: dict[str, Callable] = {}
# Further names of public functions -> the names of those that they call.
ALIASES: dict[str, str] = {}


class MixedDevicesError(Exception):
    """Raised if operands lie on different devices, and those apart from the others are 0-dim cpu tensors, which can be moved."""


class Row:
    """One pointwise op. Its operands are named x, y, z, w, in the order of a call.

    formula: text for every dtype, or a dict from letters of "bifc" (bool, integer, floating, complex) to text.
    grad: for operands that have a gradient: a function from the result's gradient `g` to the operand's. Its further
        parameters (x, y, z, w or result) name the values that it needs: these are saved.
    promote: SAME, FLOAT (integers compute in the default dtype), BOOL (compares, result is bool) or REAL (of complex operands).
    args: torch's names of the operands. aliases: further names of the public forms.
    node: torch's name of the gradient node, in `number_nodes` that of a call with a number as the operand of the key.
    masks: letters of operands that are conditions: only whether they are nonzero counts, and their dtype takes no part in
        promotion. weak: letters of other operands (numbers) whose type takes no part in promotion.
    public, inplace: whether it has public forms, and an in-place one. numbers: letters of their operands that may be numbers.
    graph_from, graph_inputs: operands[graph_from:graph_inputs] are the node's inputs in the autograd graph.
    step: the gradient is a step function of the operands, whose derivative torch takes to be zero.
    inplace_nodes: torch's name of the in-place form's node where it differs, then optionally the name with a number as the last
        operand. For a row without `grad` (a comparison), the in-place form's gradient is zero: the old value is overwritten.
    wraps: saved numbers count as saved tensors, because torch wraps them in tensors: a second backward raises for them, too.
    final: a function from the other operands of an in-place call to torch's reason for refusing its gradient, "" if none.
    exact: numbers beside 16-bit tensors are used as they are; other rows round them to the tensors' dtype, as torch does.
    underivable: the name under which backward refuses to differentiate, where torch has no derivative but records a node.
    doc: one sentence that says what a public row computes; a description of the accepted dtypes is appended.
    reference, domain: for the tests, NumPy's function and the interval from which its arguments are sampled.
    """

    short = True  # whether operands that are alike may take the short path instead of `general`

    def __init__(
        self,
        name: str,
        formula: str | dict[str, str],
        *,
        grad: dict[str, Callable] | None = None,
        promote: str = SAME,
        args: Sequence[str] = ("input",),
        node: str | None = None,
        masks: str = "",
        weak: str = "",
        reference: Callable | None = None,
        domain: tuple[float, float] = (-2.0, 2.0),
        aliases: Sequence[str] = (),
        inplace: bool = True,
        public: bool = True,
        graph_from: int = 0,
        graph_inputs: int | None = None,
        number_nodes: dict[str, str] | None = None,
        numbers: str = "",
        underivable: str = "",
        step: bool = False,
        inplace_nodes: tuple[str, ...] = (),
        exact: bool = False,
        wraps: bool = False,
        final: Callable[..., str] | None = None,
        doc: str = "",
    ) -> None:
        if underivable:
            node = "NotImplemented"
            grad = dict.fromkeys(OPERANDS[: len(args)], _refusal(underivable))
        self.name, self.doc = name, doc
        self.args, self.aliases = tuple(args), tuple(aliases)
        self.numbers = tuple(letter in numbers for letter in OPERANDS[: len(args)])
        self.reference, self.domain = reference, domain

        self.ops = _ops_by_category(name, formula, masks, rounds=not exact)
        self.promote, self.masks, self.unpromoted = promote, masks, masks + weak
        self._types: dict[Any, core.Types] = {}  # by the dtype of the operands
        # The same by the dtype of the leading operand, for `apply_alike`; empty if that is never to be tried.
        self._alike = self._types if self.short else {}
        self._conditional = (
            "x" in masks
        )  # whether the first operand is a condition, so that another one leads

        self.node = node or name.title().replace("_", "") + "Backward0"
        self.inplace_nodes = inplace_nodes
        self.number_nodes = {OPERANDS.index(k): v for k, v in (number_nodes or {}).items()}
        self.grads = _gradients(grad or {})
        self.differentiable = bool(grad)
        self.graph_from = graph_from
        self.graph_inputs = len(args) if graph_inputs is None else graph_inputs
        self.step, self.final = step, final
        if wraps:
            op_class(self.node, WrappingNode)

        ROWS[name] = self
        if public:
            assert doc, f"the row {name} has no doc"
            self._publish(inplace)

    def op(self, category: int) -> PointOp:
        """Return the formula for a dtype category; there must be one."""
        found = self.ops[category]
        assert found is not None, f"{self.name} has no formula for category {category}"
        return found

    # ---- calls
    def __call__(self, *xs: Any) -> Tensor:
        """Return the pending result of applying the op to tensors and numbers; record its gradient if one is needed."""
        try:
            types = self._alike.get(xs[0].dtype)
        except (AttributeError, IndexError):
            types = None
        try:
            if types is not None and (out := apply_alike(self, types, xs)) is not None:
                return out
            out = self.general(xs)
        except MixedDevicesError:
            xs = core.on_one_device(xs)
            out = self.forward(xs)
        except Strideless:
            return elsewhere(self.name, xs)
        except (AttributeError, IndexError):
            refuse_numbers(self.name, self.args[:1], xs[:1], (False,))
            raise
        if self.grads and graph.needs_grad(*xs):
            self.record(xs, out)
        return out

    def forward(self, xs: Sequence[Any]) -> Tensor:
        """Return the pending result, without recording a gradient."""
        types = self._alike.get(getattr(xs[0], "dtype", None))
        if types is not None and (out := apply_alike(None, types, xs)) is not None:
            return out
        return self.general(xs)

    def general(self, xs: Sequence[Any]) -> Tensor:
        """Do what `forward` does, for operands of any kinds."""
        shape, dt, dev = self._unify(xs)
        op, compute, result = self._types.get(dt) or self._typed(dt)
        return core.compute(op, compute, result, xs, shape, dev)

    def _typed(self, dt: dtypes.dtype) -> core.Types:
        """Return the formula, compute dtype and result dtype for operands that promote to `dt`."""
        given, category, promote = dt, dt.category, self.promote
        if category < 2 and promote is FLOAT:
            dt = dtypes.get_default_dtype()
            category = 2
        op = self.ops[category]
        if op is None:
            raise refusal(self.name, dt)
        result = (
            dtypes.bool
            if promote is BOOL
            else dt.to_real()
            if promote is REAL and category == 3
            else dt
        )
        types = core.Types(op, dt, result)
        if types.compute is given:  # else it is the default float dtype, which may change
            self._types[given] = types
        return types

    def _unify(self, xs: Sequence[Any]) -> tuple:
        """Return the operands' common shape, dtype and device; written for speed, as all broadcasting calls run it."""
        unpromoted, tensors = self.unpromoted, []
        dt: Any = None
        same, highest = True, 0
        for letter, x in zip(OPERANDS, xs, strict=False):
            kind = x.__class__
            if kind not in NUMBERS:
                tensors.append(x)
                if letter not in unpromoted:
                    if dt is None:
                        dt = x.dtype
                    elif x.dtype is not dt:
                        same = False
            elif letter not in unpromoted and (category := _CATEGORIES[kind]) > highest:
                highest = category
        shape, dev = tensors[0].shape, tensors[0].device
        for x in tensors:
            if x.device is not dev:
                dev = core.common_device(tensors)
                if any(t.device != dev for t in tensors):
                    raise MixedDevicesError
        try:
            for x in tensors:
                if x.shape != shape:
                    shape = layouts.broadcast_shapes(shape, x.shape)
        except RuntimeError:
            for x in tensors:
                x._storage  # noqa: B018  # raises Strideless, for tensors with errors of their own
            raise
        if dt is None or not same or highest > dt.category:
            dt = core.result_type([x for i, x in enumerate(xs) if OPERANDS[i] not in unpromoted])
        return shape, dt, dev

    def record(self, xs: Sequence[Any], out: Tensor) -> None:
        """Record the gradient of a call."""
        if out.dtype.category < 2:
            return
        graph.record(
            self._node_name(xs) if self.number_nodes else self.node,
            xs[self.graph_from : self.graph_inputs],
            out,
            self.backward,
            self._saved(xs, out),
            self.push,
        )

    def _node_name(self, xs: Sequence[Any]) -> str:
        for index, name in self.number_nodes.items():
            if xs[index].__class__ in NUMBERS:
                return name
        return self.node

    def _saved(self, xs: Sequence[Any], out: Tensor) -> dict[str, Any]:
        saved: dict[str, Any] = {}
        for index, _, names in self.grads:
            x = xs[index]
            if not names or x.__class__ in NUMBERS:
                continue
            if len(self.grads) == 1 or graph.needs_grad(x):
                for name in names:
                    saved[name] = out if name == "result" else xs[_PLACES[name]]
        return saved

    def backward(self, ctx: Any, g: Tensor) -> tuple:
        """Apply the row's gradient formulas to the saved tensors; return one gradient (or None) per graph input."""
        first, count = self.graph_from, self.graph_inputs - self.graph_from
        needs = ctx.needs if count > 1 else (True,)
        grads: list[Any] = [None] * count
        for index, fn, names in self.grads:
            if needs[index - first]:
                values = [g]
                for name in names:
                    values.append(read_saved(ctx, name))
                grads[index - first] = fn(*values)
        if self.step:
            grads = [None if v is None else graph.tie(ctx, v) for v in grads]
        return tuple(grads)

    def push(self, ctx: Any, out: Tensor, *tangents: Any) -> Any:
        """Return the tangent (JVP): of real pointwise ops, whose Jacobian is diagonal, the gradient formulas applied to the tangents."""
        if out.dtype.category == 3:
            return NotImplemented
        total = None
        for index, fn, names in self.grads:
            t = tangents[index - self.graph_from]
            if t is None:
                continue
            if t.dtype is not out.dtype:
                if t.dtype.category == 3:
                    return NotImplemented
                t = t.to(out.dtype)
            if t.device != out.device:
                t = t.to(out.device)
            t = t.expand(out.shape)
            value = fn(t, *[read_saved(ctx, name) for name in names])
            if value is None:
                continue
            if value.shape != out.shape:  # a sum: the gradient of a number
                return NotImplemented
            total = value if total is None else total + value
        return out.new_zeros(out.shape) if total is None else total

    def inplace(self, t: Tensor, *others: Any) -> Tensor:
        """Write the result into `t`, the first operand, and return it; torch's errors for shapes, dtypes, overlaps and leaves."""
        recorded = bool(self.grads or self.inplace_nodes)
        if recorded:
            views.check_inplace(t, *others)
        else:  # logical operations: torch lets them write into leaves, too
            views.check_inference(t)
        xs = (t, *others)
        record = recorded and graph.needs_grad(*xs)
        if not record and self._replaces(t, others):
            types = self._alike.get(t.dtype)
            if types is not None and types.result is t.dtype:
                if apply_alike(self, types, xs, t._storage) is not None:
                    t._vc.value += 1
                    return t
        if record and any(
            name == "x" for i, _, names in self.grads if graph.needs_grad(xs[i]) for name in names
        ):
            xs = (writes.before(t), *others)
        try:
            value = self.forward(xs)
        except MixedDevicesError:
            xs = core.on_one_device(xs)
            value = self.forward(xs)
        except Strideless:
            return elsewhere(self.name + "_", xs)
        if value.shape != t.shape:
            raise RuntimeError(
                f"output with shape {list(t.shape)} doesn't match the broadcast shape {list(value.shape)}"
            )
        if value.dtype is not t.dtype and not dtypes.can_cast(value.dtype, t.dtype):
            raise RuntimeError(
                f"result type {value.dtype.scalar_name} can't be cast to the desired output type {t.dtype.scalar_name}"
            )
        apart = t._contig
        for o in others:
            if o.__class__ not in NUMBERS and o._storage is t._storage:
                apart = False
        if not apart:
            writes.check_overlap(t, others)
        writes.overwrite(t, value, own=True)
        if record and t.dtype.category >= 2:
            why = self.final(*others) if self.final else ""
            back = self.backward if self.grads else _zeros_back
            graph.rebase(
                t,
                self._inplace_name(xs),
                (t, *others)[: self.graph_inputs],
                raising(why) if why else back,
                self._saved(xs, t),
                self.push,
            )
        return t

    def _replaces(self, t: Tensor, others: tuple) -> bool:
        """Return whether `t` covers its whole storage and nothing else reads it, so that the result can replace it."""
        storage = t._storage
        if self.masks or not t._contig or t._offset or storage.pinned:
            return False
        for o in others:
            if o.__class__ not in NUMBERS and o._storage is storage:
                return False
        return prod(t.shape) * t.dtype.itemsize == storage.nbytes and not storage.shared

    def _inplace_name(self, xs: Sequence[Any]) -> str:
        if not self.inplace_nodes:
            return self._node_name(xs)
        return self.inplace_nodes[-1 if xs[-1].__class__ in NUMBERS else 0]

    # ---- public forms
    def _publish(self, inplace: bool) -> None:
        arity, name, args, numbers = len(self.args), self.name, self.args, self.numbers
        apply, registry = self.__call__, core.Registry  # bound: calling the row takes longer

        def form(said: str, method: bool) -> Callable:
            def function(*xs: Any, **kwargs: Any) -> Tensor:
                if arity == len(xs) == 1 and xs[0].__class__ is registry.tensor and not kwargs:
                    return apply(*xs)  # fast path: most calls are such
                if kwargs or len(xs) != arity or not plain(xs, numbers):
                    try:
                        xs, out = self.bind(given := xs, {**kwargs}, said)
                    except TypeError as error:
                        if not foreign(function, given, kwargs):
                            raise self._flaw(said, method, given, kwargs) or error from None
                        return function(*given, **kwargs)
                    if out is not None:
                        can = self.differentiable
                        return writes.deliver(self(*xs), out, name, xs, differentiable=can)
                return apply(*xs)

            titled(function, said, f"{self.doc}\n\n{self._told()}")
            function.__signature__ = _signature(args, numbers, out=True)  # type: ignore[attr-defined]
            return function

        for table, method in ((FUNCTIONS, False), (METHODS, True)):
            table |= {said: form(said, method) for said in (name, *self.aliases)}
        if inplace and self.promote is not REAL:
            METHODS.update({f"{n}_": self._inplace_form(f"{n}_") for n in (name, *self.aliases)})
        for said in self.aliases:
            ALIASES.update({said: name, f"{said}_": f"{name}_"})

    def _inplace_form(self, said: str) -> Callable:
        """Return the method called `said`, the in-place form under one of the row's names."""
        others, operands = self.numbers[1:], len(self.args) - 1

        def method_(t: Tensor, *xs: Any, **kwargs: Any) -> Tensor:
            if kwargs or len(xs) != operands or not plain(xs, others, True):
                given = (t, *xs)
                try:
                    xs = self.bind(given, {**kwargs}, said)[0][1:]
                except TypeError as error:
                    if not foreign(method_, given, kwargs):
                        raise self._flaw(said, True, given, kwargs) or error from None
                    return method_(*given, **kwargs)
            return self.inplace(t, *xs)

        titled(method_, said, f"In-place form of `{said.removesuffix('_')}`.")
        method_.__signature__ = _signature(self.args, self.numbers, out=False)  # type: ignore[attr-defined]
        return method_

    def _flaw(self, name: str, method: bool, xs: tuple, kwargs: dict[str, Any]) -> Any:
        """Return torch's TypeError for what is wrong with the kinds of the arguments, None if nothing is."""
        given = {
            next((n for n in self.args if key in NUMPYS.get(n, ())), key): value
            for key, value in kwargs.items()
        }
        return arguments.flaw(
            arguments.signature_of(self.args, self.numbers, not name.endswith("_")),
            name,
            method,
            xs,
            given,
        )

    def _told(self) -> str:
        """Return the docstring's sentence on the dtypes that the row accepts and returns, and on broadcasting."""
        made = self.promote is FLOAT  # integers and bool need no formula of their own
        kinds = [
            k for k, op in zip(_KINDS, self.ops, strict=True) if op or (made and k in _KINDS[:2])
        ]
        alone, more = len(self.args) == 1, ", ".join(kinds[:-1])
        taken = f"{more} {'and' if alone else 'or'} {kinds[-1]}" if more else kinds[-1]
        given = {
            FLOAT: "; integers and bool give the default float dtype",
            BOOL: "; the result is bool",
        }.get(self.promote)
        if alone:
            return f"Takes {taken} dtypes{given or ', and keeps them'}."
        names = " and ".join(f"`{a}`" for a in self.args)
        return f"{names} broadcast and promote to one dtype, {taken}{given or ', which the result has'}."

    def bind(self, xs: tuple, kwargs: dict[str, Any], name: str = "") -> tuple[tuple, Any]:
        """Match arguments to operands by torch's names; return the operands and `out`. Raises torch's TypeError."""
        name = name or self.name
        out = kwargs.pop("out", None)
        values = list(xs)
        if len(values) > len(self.args):
            raise TypeError(
                f"{name}() takes {len(self.args)} positional argument{'s' * (len(self.args) != 1)} but {len(values)} were given"
            )
        for place, arg in enumerate(self.args[len(values) :], len(values)):
            key = next((n for n in (arg, *NUMPYS.get(arg, ())) if n in kwargs), None)
            if key is None:
                raise TypeError(f"{name}(){arguments.lacking(self.args[place:])}")
            values.append(kwargs.pop(key))
        if kwargs:
            raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(kwargs))}'")
        refuse_numbers(name, self.args, values, self.numbers)
        return normal(name, self.args, values), out


def _ops_by_category(
    name: str, formula: str | dict[str, str], masks: str, *, rounds: bool
) -> list[PointOp | None]:
    """Return the PointOp of each dtype category, None without a formula; equal formulas share one PointOp."""
    if isinstance(formula, str):
        formula = dict.fromkeys(_LETTERS, formula)
    made = {text: PointOp(name, text, masks, rounds) for text in dict.fromkeys(formula.values())}
    ops: list[PointOp | None] = [None] * len(_LETTERS)
    for letters, text in formula.items():
        for letter in letters:
            ops[_LETTERS.index(letter)] = made[text]
    return ops


def _gradients(grad: dict[str, Callable]) -> list[tuple[int, Callable, tuple[str, ...]]]:
    """Return, per operand with a gradient: its position, the gradient function, and its argument names after `g`."""
    return [
        (OPERANDS.index(operand), fn, tuple(inspect.signature(fn).parameters)[1:])
        for operand, fn in grad.items()
    ]


def _refusal(function: str) -> Callable:
    def refuse(g: Tensor) -> Any:
        raise RuntimeError(f"derivative for aten::{function} is not implemented")

    return refuse


def refused(what: str) -> Callable:
    """Return a gradient function that raises torch's error, for an operand by which torch cannot differentiate."""

    def refuse(g: Tensor) -> Any:
        raise NotImplementedError(f"the derivative for '{what}' is not implemented.")

    return refuse


def _zeros_back(ctx: Any, g: Tensor) -> tuple:
    return tuple([writes.nothing(g) if need else None for need in ctx.needs])


def _signature(names: Sequence[str], numbers: Sequence[bool], *, out: bool) -> inspect.Signature:
    """Return the signature of a row's public form; its annotations tell stubs which operands may be numbers."""
    p = inspect.Parameter
    parameters = [
        p(name, p.POSITIONAL_OR_KEYWORD, annotation="Tensor | complex" if number else "Tensor")
        for name, number in zip(names, numbers, strict=True)
    ]
    if out:
        parameters.append(p("out", p.KEYWORD_ONLY, default=None, annotation="Tensor | None"))
    return inspect.Signature(parameters, return_annotation="Tensor")


def public(
    name: str = "", *, function: bool = True, method: bool = True, aliases: Sequence[str] = ()
) -> Callable:
    """Decorator: export a function under torch's name, which it gets, as a function and as a method."""

    def register(fn: Callable) -> Callable:
        fn.__name__ = name or fn.__name__
        for n in (name or fn.__name__, *aliases):
            if function:
                FUNCTIONS[n] = fn
            if method:
                METHODS[n] = fn
        return fn

    return register


def operator(name: str = "") -> Callable:
    """Decorator: export a function as an operator that is reachable through `torch.ops.aten` only."""

    def register(fn: Callable) -> Callable:
        OPERATORS[name or fn.__name__] = fn
        return fn

    return register


def titled(fn: Any, name: str, doc: str) -> Any:
    """Set the name and docstring of a generated function, and return the function."""
    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = doc
    return fn


def name_apart() -> None:
    """Give every name without an underscore a function of its own with that name, as torch's aliases have: it calls the other.

    Whoever intercepts or dispatches a function thus serves its aliases, too. To be called once all functions are in the tables.
    """
    for table in (FUNCTIONS, METHODS):
        for name, fn in table.items():
            if not name.startswith("_") and fn.__name__ not in (name, "<lambda>"):
                ALIASES[name] = fn.__name__
                table[name] = titled(_passing(fn), name, fn.__doc__ or "")


def first_name(fn: Any) -> str:
    """Return a function's name, an alias's function's instead of the alias's; "" for what has no name."""
    name = getattr(fn, "__name__", "")
    return ALIASES.get(name, name)


def _passing(fn: Callable) -> Callable:
    @functools.wraps(fn)
    def alias(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return alias


def with_inplace(name: str, fn: Callable) -> None:
    """Add the method `<name>_`, which replaces the tensor's values, and its autograd history, by those of `fn(self, …)`."""

    def method_(t: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        try:
            return writes.assign(t, lambda x: fn(x, *args, **kwargs))
        except Exception:
            wrong = arguments.flaw_of(fn, name + "_", True, (t, *args), kwargs)
            if wrong is not None:
                raise wrong from None
            raise

    METHODS[name + "_"] = titled(method_, name + "_", f"In-place form of `{name}`.")
