"""What the schedules of attention share: the record of a call, kernel parameters of operands, allocating results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ... import dtypes
from ...layouts import contiguous_strides, numel, preserve_strides
from ..operand import Operand
from ..products.product import LONG, Access, access_variables, accumulator, ceil_div
from ..source import include

if TYPE_CHECKING:
    from ...dtypes import dtype
    from ...runtime import Backend

INT = np.int32
# Up to this many queries, keys and values are read in place instead of being copied by tiles.
FEW = 3
STEP = 64  # keys that such a query takes between two rescalings of its online softmax


class Ragged(NamedTuple):
    """Sequences of different lengths behind each other: what a call's first batch dim counts, of stride 0 in all operands."""

    q_edges: Operand  # int32: where each sequence of queries begins, and where the last ends
    k_edges: Operand  # the same of keys
    used: Operand | None  # int32: of how many of its keys each sequence makes use; None: of all
    queries: int  # of the longest sequence
    keys: int
    left: int  # keys before a query's own place that it sees, and keys behind it; -1: all
    right: int

    @property
    def named(self) -> dict[str, Operand]:
        used = self.k_edges if self.used is None else self.used
        return {"q_edges": self.q_edges, "k_edges": self.k_edges, "used": used}

    def numbers(self, all_queries: int, all_keys: int) -> dict[str, int]:
        """Return the numbers that kernels are told, by name."""
        return {
            "limited": int(self.used is not None),
            "all_queries": all_queries,
            "all_keys": all_keys,
            "most_queries": self.queries,
            "most_keys": self.keys,
            "left": self.left,
            "right": self.right,
        }


class Attention(NamedTuple):
    """One call of attention: operands and settings, and the sizes that follow from them."""

    q: Operand
    k: Operand
    v: Operand
    mask: Operand | None  # bool (False hides a key), or numbers that are added to the scores
    causal: bool  # a query sees only the keys up to its own position
    scale: float  # of the scores
    ragged: Ragged | None = None

    @property
    def batch(self) -> tuple[int, ...]:
        return self.q.shape[:-2]

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """The numbers of queries and of keys (of the longest sequence), the widths of keys and of values."""
        if self.ragged is not None:
            return self.ragged.queries, self.ragged.keys, self.q.shape[-1], self.v.shape[-1]
        return self.q.shape[-2], self.v.shape[-2], self.q.shape[-1], self.v.shape[-1]

    @property
    def key(self) -> tuple[dtype, dtype | None, bool]:
        """The part of a kernel's key that depends on the call: dtypes of the operands and of the mask, raggedness."""
        mask = None if self.mask is None else self.mask.dtype
        return self.q.dtype, mask, self.ragged is not None

    @property
    def named(self) -> dict[str, Operand]:
        named = {"q": self.q, "k": self.k, "v": self.v}
        return named if self.mask is None else {**named, "mask": self.mask}

    def kernel_name(self, kind: str) -> str:
        of = "" if self.mask is None else f"_mask_{self.mask.dtype.code}"
        of += "_ragged" * (self.ragged is not None)
        return f"attention_{kind}_{self.q.dtype.code}{of}"

    def sides(
        self, known: dict[str, Operand] | None = None
    ) -> tuple[list[str], list[Any], list[Any]]:
        """Return the kernel parameters, their types and the arguments for the operands, and `known` ones of a gradient."""
        texts, types, args = sides({**self.named, **(known or {})}, ("lse", "delta"))
        if self.ragged is not None:
            for name, x in self.ragged.named.items():
                texts += [f"__global const int *{name}", f"const long {name}_o"]
                types += [None, LONG]
                args += [x.buffer, x.offset]
            numbers = self.ragged.numbers(self.q.shape[-2], self.v.shape[-2])
            texts += [f"const int {name}" for name in numbers]
            types += [INT] * len(numbers)
            args += numbers.values()
        return texts, types, args


def result_like(backend: Backend, like: Operand, dt: dtype, cols: int, as_it: bool) -> Operand:
    """Allocate a row of `cols` numbers for each of `like`'s: in its order of dims with `as_it`, else row-major."""
    shape = (*like.shape[:-1], cols)
    strides = preserve_strides(shape, like.strides) if as_it else contiguous_strides(shape)
    return Operand(backend.alloc(numel(shape) * dt.itemsize), dt, shape, strides)


def slope(backend: Backend, like: Operand, dt: dtype, cols: int, batch: tuple[int, ...]) -> Operand:
    """Allocate an operand's gradient: row-major where the operand is, else with rows outside the heads in memory."""
    shape = (*batch, like.shape[-2], cols)
    buffer = backend.alloc(numel(shape) * dt.itemsize)
    if _straight(like):
        return Operand(buffer, dt, shape, contiguous_strides(shape))
    heads = next((d for d in (1, 2) if shape[d - 1] != 1), 2)
    rows, inner = shape[3], shape[heads:3]
    strides = list(contiguous_strides((*shape[:heads], rows, *inner, cols)))
    return Operand(
        buffer, dt, shape, (*strides[:heads], *strides[heads + 1 : 4], strides[heads], 1)
    )


def _straight(x: Operand) -> bool:
    wanted = contiguous_strides(x.shape)
    return all(n == 1 or a == b for n, a, b in zip(x.shape, x.strides, wanted, strict=True))


def _mask_kind(mask: Operand | None) -> str:
    return "" if mask is None else "bool" if mask.dtype is dtypes.bool else "float"


def sides(
    named: dict[str, Operand], rows_only: tuple[str, ...] = ()
) -> tuple[list[str], list[Any], list[Any]]:
    """Return the kernel parameters, their types and the arguments for operands: buffer, offset and strides of each.

    Those in `rows_only` have no column stride.
    """
    texts: list[str] = []
    types: list[Any] = []
    args: list[Any] = []
    for name, x in named.items():
        steps = ("0", "1", "2", "r") if name in rows_only else ("0", "1", "2", "r", "c")
        texts.append(f"__global const {x.dtype.cl} *{name}")
        texts += [f"const long {name}_{s}" for s in ("o", *steps)]
        types += [None] + [LONG] * (1 + len(steps))
        args += [x.buffer, x.offset, *x.strides]
    return texts, types, args


def variables(asked: Attention, lanes: int) -> dict[str, Any]:
    """Return the template variables that all attention kernels share; `lanes`: of a vector."""
    q, mask = asked.q, asked.mask
    acc = accumulator(q.dtype)
    found = access_variables(q.dtype, q.dtype, lanes)
    if acc == "float":
        heads = list(found["headers"])
        if not any("CLT_LANES" in h for h in heads):
            heads.insert(0, f"#define CLT_LANES {lanes}")
        found["headers"] = [*heads, include("elementary/exp", "elementary/log")]
    found["headers"] = [*found["headers"], include("flush")]
    found["mask"] = _mask_kind(mask)
    found["ragged"] = asked.ragged is not None
    found["mask_type"] = "" if mask is None else mask.dtype.cl
    if mask is not None:
        if mask.dtype.code == "bf16" and q.dtype.code != "bf16":
            raise ValueError("a mask of 16 bits needs operands of its dtype")
        access = Access(mask.dtype.cl, acc, mask.dtype.code)
        found["mask_load"] = access.load
        found["mask_loadv"] = lambda place: access.loadv(place, lanes)
        typed = mask.dtype.cl if mask.dtype.code != "f16" else "ushort"
        if all(t != typed for t, _ in found["unaligned"]):
            found["unaligned"] = [*found["unaligned"], (typed, mask.dtype.itemsize)]
    else:
        found["mask_load"] = found["mask_loadv"] = None
    return found


def up(n: int, step: int) -> int:
    """Return `n`, rounded up to a multiple of `step`."""
    return ceil_div(n, step) * step


def room_of(width: int) -> int:
    """Return the width a GPU's kernel is built for: a power of two, for few kernels."""
    return max(32, 1 << (width - 1).bit_length())
