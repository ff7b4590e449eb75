"""`torch.utils.flop_counter`: count floating-point operations of products, convolutions and attention, by module.

While a counter is active, the few functions that all of these go through, forward and backward, are replaced by
wrappers that count; at other times they cost nothing extra. Must not know the kernels.
"""

from __future__ import annotations

import functools
import warnings
from collections import defaultdict
from collections.abc import Callable
from math import prod
from typing import Any

from .. import library
from ..ops import added_products, composite, dense, matmul, products
from ..ops.nn import attention, convolution, correlation
from ..tensor import Tensor
from ._pytree import tree_map
from .module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "register_flop_formula"]

Count = tuple[str, int]


def _product(out: Any, a: Any, b: Any, bias: Any = None, *rest: Any) -> Count:
    plain, added = ("mm", "addmm") if a.ndim == 2 else ("bmm", "baddbmm")
    return plain if bias is None else added, 2 * prod(a.shape) * b.shape[-1]


def _piece(out: Any, kind: str, a: Any, b: Any, *rest: Any) -> Count:
    """Count a convolution or one of its gradients. As in torch, the count for the weight's gradient ignores groups."""
    node = rest[2] if len(rest) > 2 else correlation.AGAIN
    name = "convolution_backward" if node == correlation.AGAIN else "convolution"
    if kind == "w":
        return name, 2 * prod(a.shape) * b.shape[1] * prod(out.shape[2:])
    y = out if kind == "y" else a
    return name, 2 * y.shape[0] * prod(y.shape[2:]) * prod(b.shape)


def _attention(out: Any, *args: Any) -> Count:
    *_, shapes, _as_query = args
    batch, length, keys, width, depth = shapes
    return "_scaled_dot_product_flash_attention", 2 * prod(batch) * length * keys * (width + depth)


def _attention_back(out: Any, ctx: Any, g: Any) -> Count:
    batch, length, keys, width, depth = ctx.joint
    flops = 2 * prod(batch) * length * keys * (3 * width + 2 * depth)
    return "_scaled_dot_product_flash_attention_backward", flops


_WATCHED: tuple[tuple[tuple[Any, ...], str, Callable[..., Count]], ...] = (
    ((dense, products, added_products, matmul), "run", _product),
    ((correlation, convolution), "piece", _piece),
    ((attention,), "_fused", _attention),
    ((attention,), "_back", _attention_back),
)


_registered: dict[Any, Callable[..., int]] = {}


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Callable], Callable]:
    """Return a decorator: its function counts the operations of a custom operator, or several, in every later counter.

    The function gets shapes in place of tensors, and the result's shape as `out_shape`; with `get_raw` tensors.
    RuntimeError for an operator that has a formula.
    """
    if get_raw:
        raise NotImplementedError("register_flop_formula: formulas get shapes, not tensors")

    def register(formula: Callable[..., int]) -> Callable[..., int]:
        for op in targets if isinstance(targets, list | tuple) else (targets,):
            if not isinstance(op, library.Operator):
                raise ValueError(
                    f"register_flop_formula(targets): expected each target to be OpOverloadPacket (i.e. torch.ops.mylib.foo), got {op} which is of type {type(op)}"
                )
            if op in _registered:
                raise RuntimeError(f"duplicate registrations for {op}")
            _registered[op] = formula
        return formula

    return register


class FlopCounterMode:
    """Within the block, count floating-point operations by module and op; print a table of them after it.

    A multiply-add counts as two operations. depth: levels of nested modules that the table shows. custom_mapping:
    formulas for custom operators, called with the operator's arguments, shapes in place of tensors, and with the
    result's shape as `out_shape`. What such an operator itself calls is not counted.

    >>> import cltensor as torch
    >>> with FlopCounterMode(display=False) as counter:
    ...     _ = torch.ones(2, 3) @ torch.ones(3, 4)
    >>> counter.get_total_flops()
    48
    """

    def __init__(
        self,
        mods: Any = None,
        depth: int | None = 2,
        display: bool = True,
        custom_mapping: dict[Any, Callable[..., int]] | None = None,
    ) -> None:
        if mods is not None:
            warnings.warn(
                "mods argument is not needed anymore, you can stop passing it", stacklevel=2
            )
        self.flop_counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self.depth, self.display = depth, display
        self.mod_tracker = ModuleTracker()
        self._found: list[tuple[Any, str, Any]] = []
        self._formulas: dict[library.Operator, Callable[..., int]] = {}
        self._within = False  # whether an operator from `custom_mapping` is running
        for op, formula in {**_registered, **(custom_mapping or {})}.items():
            if not isinstance(op, library.Operator):
                raise NotImplementedError(
                    f"custom_mapping: {op} is no operator that a program made"
                )
            self._formulas[op] = formula

    def get_total_flops(self) -> int:
        """Return the total number of operations."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[str, int]]:
        """Return the numbers of operations as a dict: module name -> op -> number."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        composite.FOLLOWED.append(self)
        for holders, name, formula in _WATCHED:
            for holder in holders:
                fn = getattr(holder, name)
                self._found.append((holder, name, fn))
                setattr(holder, name, self._counting(fn, formula))
        if self._formulas:
            call = library.Operator.__call__
            self._found.append((library.Operator, "__call__", call))
            library.Operator.__call__ = self._counting_operators(call)  # type: ignore[method-assign]
        return self

    def __exit__(self, *exc: Any) -> None:
        while self._found:
            setattr(*self._found.pop())
        composite.FOLLOWED.remove(self)
        self.mod_tracker.__exit__()
        if self.display:
            print(self.get_table())

    def _counting(self, fn: Callable, formula: Callable[..., Count]) -> Callable:
        @functools.wraps(fn)
        def counting(*args: Any, **how: Any) -> Any:
            out = fn(*args, **how)
            if not self._within:
                op, flops = formula(out, *args)
                self._count(f"aten.{op}", flops)
            return out

        return counting

    def _count(self, op: str, flops: int) -> None:
        for name in self.mod_tracker.parents:
            self.flop_counts[name][op] += flops

    def _counting_operators(self, fn: Callable) -> Callable:
        @functools.wraps(fn)
        def counting(op: library.Operator, *args: Any, **how: Any) -> Any:
            formula = self._formulas.get(op)
            if formula is None or self._within:
                return fn(op, *args, **how)
            self._within = True
            try:
                out = fn(op, *args, **how)
            finally:
                self._within = False
            if getattr(formula, "_get_raw", False):
                flops = formula(*args, **how, out_val=out)
            else:
                sizes, named, made = tree_map(_shape, (args, how, out))
                flops = formula(*sizes, **named, out_shape=made)
            self._count(repr(op), flops)
            return out

        return counting

    def get_table(self, depth: int | None = None) -> str:
        """Return a table of modules down to `depth` and of their ops."""
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()
        power = max(0, min(4, (len(str(total)) - 2) // 3))

        def line(indent: int, name: str, flops: int) -> tuple[str, str, str]:
            share = f"{flops / total:.2%}" if total else "0%"
            return " " * indent + name, f"{flops / 1000**power:.3f}{' KMBT'[power].strip()}", share

        def lines(name: str, indent: int) -> list[tuple[str, str, str]]:
            counts = self.flop_counts[name]
            ops = [line(indent, f" - {op}", flops) for op, flops in counts.items()]
            return [line(indent, name, sum(counts.values())), *ops]

        modules = [m for m in sorted(self.flop_counts) if m != "Global"]
        shown = [m for m in modules if depth is None or m.count(".") < depth]
        whole = any(sum(self.flop_counts[m].values()) >= total for m in shown)
        rows = [] if whole or not total else lines("Global", 0)
        for m in shown:
            rows += lines(m, m.count(".") + bool(rows))
        return _laid_out([("Module", "FLOP", "% Total"), *(rows or [("Global", "0", "0%")])])


def _shape(x: Any) -> Any:
    return x.shape if isinstance(x, Tensor) else x


def _laid_out(rows: list[tuple[str, str, str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rows.insert(1, ("-" * widths[0], "-" * widths[1], "-" * widths[2]))
    return "\n".join(f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in rows)
