"""The recurrent family: all time steps of a layer in one direction in one launch, and their gradient in another.

The rows of a batch are independent of each other, so a work-item (a work-group on a GPU) takes its rows from the first
step to the last. Owns the packing of weights, the division of work and the tile of a step. Knows nothing of tensors, of
the products before and after (the projected input, the gradients of weights), nor of projections of the state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import dtypes
from .operand import Operand
from .products.product import LONG, accumulator, built, ceil_div, tile
from .region import empty, from_host
from .source import include, render

if TYPE_CHECKING:
    from ..dtypes import dtype
    from ..runtime import Backend

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
KEPT = {"lstm": 4, "gru": 4, "rnn_tanh": 1, "rnn_relu": 1}  # numbers per unit kept for backward
GRAIN = 1 << 17  # multiplications that are worth a work-item
PACK_GRAIN = 1 << 16  # numbers to copy that are worth a work-item
LANES = 128  # hidden units that a GPU's work-group takes at a time, at most
# Lanes of such a work-group, if the device allows: where they are more than the units, several lanes share the terms
# of a unit's dot product.
GROUP = 512
REGISTERS = 1 << 16  # registers for all lanes of a work-group on NVIDIA's devices
GPU_ROWS = 4  # rows of a work-group, at most
ROWS = (1, 2, 3, 4, 5, 8)  # rows that a CPU's register tile may have


class Steps(NamedTuple):
    """The time steps of a sequence, packed: each step's rows follow those of the step before."""

    number: int  # of steps
    rows: int  # of all steps together
    batch: int  # rows of the largest step
    reverse: bool  # the steps are walked from the last to the first
    # int64 pairs (first row of the step, its number of rows) in the order of the walk; None if all steps have `batch`
    # rows.
    plan: Operand | None


class Walk(NamedTuple):
    """The results of a layer of width H; the last three are for its gradient, and None without a trace."""

    out: Operand  # hidden states after each step (rows, H)
    hn: Operand  # last hidden state (batch, H)
    cn: Operand | None  # last cell state (batch, H); lstm only
    cells: Operand | None  # cell states after each step (rows, H); lstm only
    kept: Operand | None  # gates of each step (rows, KEPT[mode] * H)
    before: Operand | None  # hidden states before each step (rows, H)


class Slopes(NamedTuple):
    """Gradients by the two terms of the gates' arguments, and by the initial states."""

    by_h: Operand  # by the product of hidden state and weights (rows, gates * H)
    by_x: Operand  # by the projected input (rows, gates * H): the same operand as `by_h`, except for gru
    h0: Operand
    c0: Operand | None  # lstm only


def plan(backend: Backend, sizes: Sequence[int], reverse: bool) -> Steps:
    """Return the steps for `sizes` rows each, which do not grow from one step to the next."""
    rows, batch = sum(sizes), sizes[0]
    if sizes[-1] == batch:
        return Steps(len(sizes), rows, batch, reverse, None)
    ends = np.cumsum(sizes)
    pairs = np.stack([ends - sizes, np.asarray(sizes)], 1).astype(np.int64)
    pairs = pairs[::-1] if reverse else pairs
    return Steps(
        len(sizes), rows, batch, reverse, from_host(backend, dtypes.int64, pairs.reshape(-1))
    )


def forward(
    backend: Backend,
    mode: str,
    by_x: Operand,
    h0: Operand,
    c0: Operand | None,
    weights: Operand,
    bias: Operand | None,
    steps: Steps,
    trace: bool,
    *,
    schedule: str | None = None,
) -> Walk:
    """Run a layer over all steps.

    by_x (rows, gates * H) is the projected input; h0 and c0 are (batch, H), weights (gates * H, H), all dense. With
    `trace` what `backward` needs is kept. `schedule` is "cpu" or "gpu"; by default the device decides.
    """
    job = _Job(backend, mode, h0, steps, "forward", schedule)
    dt, width, rows = h0.dtype, h0.shape[1], steps.rows
    packed = job.pack(weights, bias)
    out, hn = empty(backend, dt, (rows, width)), empty(backend, dt, h0.shape)
    cn = cells = kept = before = None
    operands: list[Any] = [(by_x, True), (h0, True)]
    if c0 is not None:
        cells, cn = empty(backend, dt, (rows, width)), empty(backend, dt, h0.shape)
        operands += [(c0, True), (cells, False), (cn, False)]
    if trace:
        kept = empty(backend, dt, (rows, KEPT[mode] * width))
        before = empty(backend, dt, (rows, width))
        operands += [(kept, False), (before, False)]
    if steps.plan is not None:
        operands.append((steps.plan, False))
    operands += [(out, False), (hn, False), (packed, False)]
    job.walk(operands, trace)
    return Walk(out, hn, cn, cells if trace else None, kept, before)


def backward(
    backend: Backend,
    mode: str,
    grads: Sequence[Operand],
    c0: Operand | None,
    weights: Operand,
    walk: Walk,
    steps: Steps,
    *,
    schedule: str | None = None,
) -> Slopes:
    """Compute the gradients of `forward` from those of the output rows, the last h and (lstm) the last c, all dense."""
    job = _Job(backend, mode, walk.hn, steps, "backward", schedule)
    dt, (batch, width) = walk.hn.dtype, walk.hn.shape
    wide = (steps.rows, GATES[mode] * width)
    packed = job.pack(weights, None)
    by_h, gh0 = empty(backend, dt, wide), empty(backend, dt, (batch, width))
    by_x, gc0 = by_h, None
    operands: list[Any] = [(g, True) for g in grads]
    if mode == "lstm":
        gc0 = empty(backend, dt, (batch, width))
        operands += [(c0, True), (walk.cells, False), (gc0, False)]
    elif mode == "gru":
        by_x = empty(backend, dt, wide)
        operands += [(walk.before, False), (by_x, False)]
    if mode in ("lstm", "gru"):
        operands.append((empty(backend, dt, (2, batch, width)), False))
    if steps.plan is not None:
        operands.append((steps.plan, False))
    operands += [(walk.kept, False), (by_h, False), (gh0, False), (packed, True)]
    job.walk(operands, True)
    return Slopes(by_h, by_x, gh0, gc0)


class _Job:
    """One walk over the steps on a device: its schedule, register tile, and rows per work-item or work-group."""

    def __init__(
        self,
        backend: Backend,
        mode: str,
        state: Operand,
        steps: Steps,
        kind: str,
        schedule: str | None,
    ) -> None:
        self.backend, self.mode, self.kind, self.steps = backend, mode, kind, steps
        self.dt, self.width = state.dtype, state.shape[1]
        self.gpu = (backend.info.kind if schedule is None else schedule) != "cpu"
        self.work = steps.rows * self.width * self.width * GATES[mode]
        units = backend.info.compute_units
        if self.gpu:
            self.share = max(1, min(GPU_ROWS, steps.batch // units))
            self.V = self.U = 1
            self.R = self.share
            self.lanes, self.parts = self._group()
            return
        self.lanes = self.parts = 1
        self.share = ceil_div(steps.batch, max(1, min(units, self.work // GRAIN)))
        self.V, self.U, self.R = _tile(backend, mode, kind, self.dt, self.width, self.share)

    def _group(self) -> tuple[int, int]:
        """Return how many units a GPU's work-group takes at a time, and how many lanes share the terms of each.

        The lanes' partial sums go through local memory.
        """
        info, lanes = self.backend.info, LANES
        while lanes >= 2 * self.width and lanes > 32:
            lanes //= 2
        numbers = self.R * self.vectors  # sums that a lane keeps in registers
        parts = max(min(GROUP if numbers <= 8 else GROUP // 2, info.max_group) // lanes, 1)
        sums = numbers * lanes * self.dt.itemsize
        while parts > 1 and (parts - 1) * sums > info.local_mem * 3 // 4:
            parts //= 2
        return lanes, parts

    @property
    def vectors(self) -> int:
        """Return how many vectors of weights a block has per term of the product."""
        return self.U * (GATES[self.mode] if self.kind == "forward" else 1)

    def _variables(self) -> dict[str, Any]:
        return {
            "mode": self.mode,
            "dt": self.dt,
            "G": GATES[self.mode],
            "V": self.V,
            "U": self.U,
            "R": self.R,
            "gpu": self.gpu,
            "lanes": self.lanes,
            "parts": self.parts,
            "exp": include("elementary/exp"),
        }

    def _name(self, kind: str, *marks: Any) -> str:
        tile = f"gpu{self.lanes}x{self.parts}" if self.gpu else f"{self.V}x{self.U}"
        return "_".join(map(str, ("recurrent", kind, self.dt.code, tile, *marks)))

    def pack(self, weights: Operand, bias: Operand | None) -> Operand:
        """Copy the weights into the order in which the walk reads them."""
        backend, width, forward = self.backend, self.width, self.kind == "forward"
        if self.gpu and not forward:
            return weights
        terms = width + 1 if forward else GATES[self.mode] * width
        blocks = ceil_div(width, self.V * self.U)
        packed = empty(backend, self.dt, (blocks, terms, self.vectors, self.V))
        name = self._name("pack", self.kind, GATES[self.mode], *["bias"] * (bias is not None))

        def make() -> tuple[str, str, list[Any]]:
            text = render("recurrent/pack", fn=name, transposed=forward, bias=bias is not None, **self._variables())  # fmt: skip
            return name, text, [None, LONG] * (1 + (bias is not None)) + [None, LONG]

        args = [weights.buffer, weights.offset]
        if bias is not None:
            args += [bias.buffer, bias.offset]
        args += [packed.buffer, width]
        numbers = packed.nbytes // self.dt.itemsize
        if self.gpu:
            size, group = ceil_div(min(numbers, 1 << 18), LANES) * LANES, LANES
        else:
            size, group = min(blocks, backend.info.compute_units, 1 + numbers // PACK_GRAIN), 1
        kernel = built(backend, ("recurrent", name), make)
        backend.launch(kernel, (size,), (group,), args, 2 * packed.nbytes)
        return packed

    def walk(self, operands: list[tuple[Operand, bool]], trace: bool) -> None:
        """Launch the walk; `operands` are pairs of an operand and whether the kernel takes its offset."""
        backend, steps = self.backend, self.steps
        planned = steps.plan is not None
        marks = ["planned"] * planned + ["trace"] * trace
        name = self._name(self.kind, self.R, self.mode, *marks)

        def make() -> tuple[str, str, list[Any], tuple[str, ...]]:
            text = render(f"recurrent/{self.kind}", fn=name, plan=planned, trace=trace, **self._variables())  # fmt: skip
            types: list[Any] = []
            for _, placed in operands:
                types += [None, LONG] if placed else [None]
            lanes = self.lanes * self.parts
            options = backend.info.with_registers(REGISTERS // lanes) if lanes >= GROUP else ()
            return name, text, [*types, LONG, LONG, LONG, np.int32, LONG], options

        args: list[Any] = []
        for x, placed in operands:
            args += [x.buffer, x.offset] if placed else [x.buffer]
        args += [steps.batch, steps.number, self.width, int(steps.reverse), self.share]
        items = ceil_div(steps.batch, self.share)
        kernel = built(backend, ("recurrent", name), make)
        group = self.lanes * self.parts
        nbytes = sum(x.nbytes for x, _ in operands)
        backend.launch(kernel, (items * group,), (group,), args, nbytes, 2 * self.work)


def _tile(
    backend: Backend, mode: str, kind: str, dt: dtype, width: int, share: int
) -> tuple[int, int, int]:
    """Return lanes, vectors of units and rows of a CPU's register tile.

    It is the one of least estimated cycles of those whose sums fit in registers.
    """
    rows, lanes = tile(backend, accumulator(dt))
    most = 20 if rows == 8 else 10  # sums in registers; `rows` tells 32 registers from 16
    while lanes > width:
        lanes //= 2
    gates = GATES[mode] if kind == "forward" else 1
    vectors = ceil_div(width, lanes)

    def cost(tried: tuple[int, int]) -> float:
        """Estimate cycles: multiply-adds, at least as many as hide their latency, and loads."""
        u, r = tried
        cycles = max(gates * u * r, 7) + (gates * u + r) / 2
        return ceil_div(share, r) * ceil_div(vectors, u) * cycles

    fitting = [(u, r) for u in (1, 2, 4) for r in ROWS if gates * u * r <= most]
    return lanes, *min(fitting, key=cost)
