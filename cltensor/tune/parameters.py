"""The sizes that may be tuned: their candidates, and the cases by which candidates are measured.

A size belongs here only if no value of it can change a result: it divides independent work, or orders copies. A size
that determines the order of a sum (blocks of K, parts of a reduction, panels on which these depend) does not belong
here. Owns the cases; runtime/tuning.py owns the limits.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

Case = Callable[[], Any]


class Parameter(NamedTuple):
    """One tunable size: its candidates, the cases to run, and the caches that must be cleared after a change.

    `cases(torch, small)` returns functions without arguments, by name. Each is timed with each candidate, and its
    results are compared with those of the default size. `small` asks for few cases.
    """

    name: str  # "family.size", as code asks for it: `backend.tuned.get("copy.vectors", default)`
    candidates: tuple[int, ...]  # besides the default
    cases: Callable[[Any, bool], dict[str, Case]]
    # Kinds of device (`DeviceInfo.kind`) whose kernels read the size.
    kinds: tuple[str, ...] = ("cpu",)
    caches: tuple[str, ...] = ()
    """`module:name` of what remembers kernels or plans without the size in its key."""

    @property
    def family(self) -> str:
        """The part of the name before the dot, by which the command line selects parameters."""
        return self.name.partition(".")[0]

    def forget(self) -> None:
        """Clear the caches, so that the next run reads the size again."""
        for place in self.caches:
            module, _, name = place.partition(":")
            cache = getattr(importlib.import_module(module), name)
            (getattr(cache, "cache_clear", None) or cache.clear)()


def _random(torch: Any, *shape: int, dtype: str = "float32") -> Any:
    generator = torch.Generator(device=torch.get_default_device()).manual_seed(5)
    made = torch.rand(*shape, generator=generator)
    return (made * 100).to(getattr(torch, dtype)) if dtype != "float32" else made


def _chain(torch: Any, x: Any, y: Any) -> Any:
    return torch.sigmoid(x * y + 2) * y


def _turn(x: Any) -> Any:
    return x.t().contiguous()


def _chains(torch: Any, sizes: Sequence[int]) -> dict[str, Case]:
    cases: dict[str, Case] = {}
    for n in sizes:
        x, y = _random(torch, n), _random(torch, n)
        cases[f"x + y, {n}"] = partial(torch.add, x, y)
        cases[f"a chain with sigmoid, {n}"] = partial(_chain, torch, x, y)
    return cases


def _grains(torch: Any, small: bool) -> dict[str, Case]:
    sizes = (
        [1 << 14, 1 << 16, 1 << 18]
        if small
        else [12345, 1 << 14, 1 << 15, 1 << 16, 1 << 17, 1 << 18, 1 << 19]
    )
    return _chains(torch, sizes)


def _large_chains(torch: Any, small: bool) -> dict[str, Case]:
    rows, row = _random(torch, 2000, 1031), _random(torch, 1031)
    cases = _chains(torch, [1 << 22] if small else [1 << 20, 1 << 21, 1 << 22, 1 << 24])
    return cases | {"rows * row": partial(torch.mul, rows, row)}


def _turned(torch: Any, small: bool) -> dict[str, Case]:
    shapes = [("float32", 2048, 1024), ("float32", 777, 1000)]
    if not small:
        shapes += [
            ("uint8", 2048, 2048),
            ("float64", 1024, 1024),
            ("float32", 4096, 4096),
            ("int16", 513, 2047),
        ]
    cases: dict[str, Case] = {}
    for dtype, m, n in shapes:
        x = _random(torch, m, n, dtype=dtype)
        cases[f"transposed copy, {dtype} {m} x {n}"] = partial(_turn, x)
    return cases


def _products(torch: Any, small: bool) -> dict[str, Case]:
    cases: dict[str, Case] = {}
    for n in (64, 333) if small else (64, 333, 1024, 2048):
        a, b = _random(torch, n, n), _random(torch, n, n)
        cases[f"a product, {n}"] = partial(torch.matmul, a, b)
    x, weight = _random(torch, 4, 16, 32, 32), _random(torch, 32, 16, 3, 3)
    cases["a convolution of 4 x 16 x 32 x 32"] = partial(torch.conv2d, x, weight)
    return cases


def _moves(torch: Any, small: bool) -> dict[str, Case]:
    cases: dict[str, Case] = {}
    for n in (1 << 13, 1 << 16) if small else (5000, 1 << 13, 1 << 14, 1 << 16, 1 << 18, 1 << 20):
        x, at = _random(torch, n), torch.arange(n).flip(0)
        cases[f"gather, {n}"] = partial(torch.gather, x, 0, at)
        table, rows = _random(torch, 1000, 64), torch.arange(n // 64) % 1000
        cases[f"rows of a table, {n // 64} x 64"] = partial(torch.index_select, table, 0, rows)
    return cases


def _rows(torch: Any, small: bool) -> dict[str, Case]:
    shapes = (
        [(64, 128), (512, 512)]
        if small
        else [(31, 33), (64, 128), (128, 256), (512, 512), (2048, 1000)]
    )
    cases: dict[str, Case] = {}
    for m, n in shapes:
        x = _random(torch, m, n)
        cases[f"softmax, {m} x {n}"] = partial(torch.softmax, x, -1)
        cases[f"layer_norm, {m} x {n}"] = partial(torch.nn.functional.layer_norm, x, (n,))
    return cases


def _steps(torch: Any, small: bool) -> dict[str, Case]:
    cases: dict[str, Case] = {}
    for n in (1 << 10, 1 << 16) if small else (300, 1 << 10, 1 << 13, 1 << 16, 1 << 18):
        start = [_random(torch, n) for _ in range(8)]

        def step(start: Any = start) -> Any:
            weights = [w.clone() for w in start]
            for w, g in zip(weights, start, strict=True):
                w.grad = g
            torch.optim.SGD(weights, lr=0.1, momentum=0.9).step()
            return torch.stack(weights)

        cases[f"a step of SGD, 8 x {n}"] = step
    return cases


_FUSED = ("cltensor.lazy.launch:_kernels", "cltensor.lazy.tree:_entries")
PARAMETERS = (
    Parameter("pointwise.grain", (1 << 16, 1 << 17, 1 << 18, 1 << 20, 1 << 21), _grains, caches=_FUSED),
    Parameter("pointwise.items", (1, 2, 8, 16), _large_chains, caches=_FUSED),
    Parameter("pointwise.group", (32, 64, 256), _large_chains, ("gpu", "accelerator"), _FUSED),
    Parameter("copy.vectors", (2, 4, 16), _turned),
    Parameter("copy.tile", (8, 16), _turned, ("gpu", "accelerator")),
    Parameter("gemm.step", (8, 32), _products, ("gpu", "accelerator"), ("cltensor.codegen.products.product:_kernels",)),
    Parameter("move.grain", (1 << 11, 1 << 12, 1 << 14, 1 << 15, 1 << 16), _moves),
    Parameter("rows.grain", (1 << 11, 1 << 12, 1 << 14, 1 << 15, 1 << 16), _rows),
    Parameter("multi.grain", (1 << 10, 1 << 11, 1 << 13, 1 << 14, 1 << 15), _steps),
)  # fmt: skip


def chosen(kind: str, families: Sequence[str]) -> list[Parameter]:
    """Return the parameters for a kind of device, limited to `families` if any are named.

    ValueError for an unknown family.
    """
    known = sorted({p.family for p in PARAMETERS})
    for family in families:
        if family not in known:
            raise ValueError(f"there is no family {family!r}; there are {', '.join(known)}")
    return [p for p in PARAMETERS if kind in p.kinds and (not families or p.family in families)]
