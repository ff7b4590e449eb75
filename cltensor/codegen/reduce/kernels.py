"""Kernels of the reduction family: from what a kernel is built for to its name, parameters and text, each built once.

Knows nothing of how work is divided, except what the text depends on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...dtypes import dtype
from ..language import convert
from ..memory import Memory
from ..pointwise import scalar_type
from ..region import LINE
from ..source import include, lane_macros, render
from .arrivals import SHOW
from .extremes import Extreme
from .gpu import AT_ONCE, Division
from .prologue import Reader
from .state import BLOCK, State

if TYPE_CHECKING:
    from ...runtime import Backend

# On a GPU: a chain that costs more than WRITTEN_OUT is in the kernel's text only once, in a loop, instead of once for
# each of the elements that a lane reads at once; with more than MANY_READ operands, a lane reads fewer elements at
# once.
WRITTEN_OUT, MANY_READ = 64, 3
# Limits, in bytes and in vectors, of the running states of a strip of outputs in 'col': a work-item passes over the
# whole strip with a few rows before it takes the next ones, so that states are loaded and stored once for several rows.
COL_BYTES = 1 << 15
COL_VECTORS = 256
# In 'col', rows are read one after another, instead of several together, if a strip has at least SHORT[0] vectors and
# at most SHORT[1], or SHORT[2] for a state with `together`.
SHORT = (8, 64, 24)
# Prefetch distance in bytes along rows: hardware prefetches end at a page
FURTHER = 1 << 13
_NUMPY = {"uchar": np.uint8, "char": np.int8, "ushort": np.uint16, "short": np.int16, "uint": np.uint32, "int": np.int32, "ulong": np.uint64, "long": np.int64, "float": np.float32, "double": np.float64, "float2": np.complex64, "double2": np.complex128}  # fmt: skip

Outputs = tuple[tuple[str, dtype], ...]  # names of results with their dtypes
_kernels: dict[tuple, Any] = {}


def stored(state: State) -> list[str]:
    """Return the C types of what a part's state is stored as."""
    return [kind for _, kind in state.partial("", 1, "0")]


def sizes(state: State) -> list[int]:
    """Return the bytes of each field of a part's state."""
    return [np.dtype(_NUMPY[t]).itemsize for t in stored(state)]


def strip(state: State, lanes: int) -> int:
    """Return how many vectors of outputs a strip of 'col' has, such that their states stay in a core's own cache."""
    fields = state.block or state.fields
    size = sum(np.dtype(_NUMPY[t]).itemsize for _, t, _ in fields) * lanes
    return max(16, min(COL_VECTORS, COL_BYTES // size))


class Form(NamedTuple):
    """What a kernel is built for."""

    state: State
    reader: Reader
    unroll: int  # vectors that a CPU's work-item reads per step: neighbours in a row, or in 'col' of several rows
    lanes: Division | None  # of a GPU's work-group; None on a CPU
    outputs: Outputs
    partial: bool  # whether it stores states of parts, which are merged
    narrow: int = 0  # vectors of a row of outputs whose states registers hold; 0: any other width
    rest: bool = False  # whether rows are left over by those that are taken side by side as one
    abreast: bool = False  # whether the lanes of several rows are merged together
    joining: State | None = (
        None  # merges the parts in the last group to finish; None if that is another launch
    )

    @property
    def schedule(self) -> str:
        """What the lanes of a vector lie along: 'row' (reduced dims) or 'col' (kept ones)."""
        return "row" if self.reader.row else "col"

    @property
    def at_once(self) -> int:
        """Elements that a GPU's lane reads before it adds the first; 1 on a CPU."""
        state, lanes, program = self.state, self.lanes, self.reader.program
        if lanes is None:
            return 1
        if sum(node.op.formula.cost for node in program.nodes) > WRITTEN_OUT or not state.light:
            return 1 if state.light else AT_ONCE // 2
        read = len(program.leaves) - len(self.reader.still)
        if read > MANY_READ or state.dt.itemsize > 8:
            return AT_ONCE // 2
        # States of extremes take few registers, and with lanes along outputs a compute unit has few lanes to hide
        # latency.
        long = not self.reader.row and lanes.pchunk >= lanes.along * AT_ONCE * 4
        return 2 * AT_ONCE if long and isinstance(state, Extreme) else AT_ONCE

    @property
    def finds_first(self) -> bool:
        """Whether positions are found along rows on a CPU, which has a template of its own."""
        return self.lanes is None and self.reader.row and self.state.needs_index

    @property
    def prefetches(self) -> bool:
        """Whether a CPU's kernel asks for the next elements ahead, as memory would idle otherwise.

        That is so where an update takes long, or the elements of a row are widened from 16 bits (measured; not from 8).
        """
        if self.lanes is not None:
            return False
        short = any(cls == "v" and dt.itemsize == 2 for dt, cls in self.reader.program.leaves)
        return (
            self.finds_first
            or self.schedule in self.state.ahead
            or (self.schedule == "row" and short)
        )

    def key(self) -> tuple:
        """Return what the text depends on."""
        state, reader, lanes, joins = self.state, self.reader, self.lanes, self.joining is not None
        return (
            self.at_once,
            state.name,
            state.dt,
            state.paired,
            state.turns and state.name,
            reader.key,
            reader.values,
            self.unroll,
            lanes and (lanes.across, lanes.along, lanes.narrow),
            None if self.partial and not joins else self.outputs,
            joins,
            self.partial,
            self.narrow,
            self.rest,
            self.abreast,
        )

    def name(self) -> str:
        """Return the kernel's name, which says what it computes, of which dtypes, and by which schedule."""
        state, reader, lanes = self.state, self.reader, self.lanes
        ops = "".join(node.op.name + "_" for node in reader.program.nodes)[:48]
        used = (*(dt for dt, _ in reader.program.leaves), state.dt, *(dt for _, dt in self.outputs))
        how = self.schedule
        if lanes is not None:
            how = f"gpu_{how}{lanes.across}x{lanes.along}"
        elif state.paired:
            how = f"pairs_{how}"
        elif state.turns and state.name == "prod":
            how = f"turns_{how}"
        marks = f"_n{self.narrow}" if self.narrow else ""
        marks += "_rest" * self.rest + "_abreast" * self.abreast
        marks += "p" * self.partial + "j" * (self.joining is not None)
        classes = "".join(c for _, c in reader.program.leaves)
        return f"{state.name}__{ops}{_codes(used)}__{how}_{classes}{reader.kept_rank}{reader.reduced_rank}{marks}"

    def parameters(self) -> list[tuple[str, Any]]:
        """Return the kernel's parameters, each with the type of its argument as `Backend.kernel` takes it."""
        state, joins = self.state, self.joining is not None
        counts = ("nout", "ochunk", "nred", "parts", "pchunk")
        found: list[tuple[str, Any]] = [(f"const long {n}", np.int64) for n in counts]
        found += zip(self.reader.parameters(), self.reader.argument_types(), strict=True)
        if state.scale and (joins or not self.partial):
            found.append(_scale(state.dt))
        if self.rest:
            found.append(("const long rest", np.int64))
        written = [dt.cl for _, dt in self.outputs]
        found += _pointers("q", stored(state) if self.partial else written)
        if joins:
            found.append(("volatile __global int *arrived", None))
            found += _pointers("w", written)
        return found

    def text(self, name: str, parameters: list[str]) -> str:
        """Return the kernel's text."""
        state, reader, lanes, ahead = self.state, self.reader, self.lanes, self.prefetches
        common = {
            "fn": name, "state": state, "reader": reader, "compute": (state.dt,) * len(reader.values),
            "headers": SHOW * (self.joining is not None) + include("ahead") * ahead + reader.headers(state.dt) + include(*state.headers),
            "memories": reader.memories, "parameters": parameters, "outputs": self.outputs, "partial": self.partial, "convert": convert,
        }  # fmt: skip
        if lanes is not None:
            return render(
                "reduce/gpu", **common, across=lanes.across, along=lanes.along, narrow=lanes.narrow, at_once=self.at_once,
                block=BLOCK, joining=self.joining,
            )  # fmt: skip
        return render(
            "reduce/first" if self.finds_first else "reduce/reduce", **common, schedule=self.schedule, lanes=reader.lanes,
            unroll=self.unroll, block=16 if self.finds_first else BLOCK, vectors=strip(state, reader.lanes), ahead=ahead,
            short=SHORT, narrow=self.narrow, rest=self.rest, abreast=self.abreast, FURTHER=FURTHER, LINE=LINE,
        )  # fmt: skip


def reducing(backend: Backend, form: Form) -> Any:
    """Return the kernel of a form."""
    key = (backend.device, *form.key())
    kernel = _kernels.get(key)
    if kernel is None:
        name, parameters = form.name(), form.parameters()
        text = form.text(name, [text for text, _ in parameters])
        kernel = _kernels[key] = backend.kernel(name, text, [kind for _, kind in parameters])
    return kernel


def merging(backend: Backend, state: State, outputs: Outputs, lanes: Division | None) -> Any:
    """Return the kernel that merges the states of parts into results; `lanes`: of a GPU's work-group, None on a CPU."""
    compute = state.dt
    shape = lanes and (lanes.across, lanes.along, lanes.narrow)
    key = (backend.device, "merge", state.name, compute, outputs, shape)
    kernel = _kernels.get(key)
    if kernel is not None:
        return kernel
    found: list[tuple[str, Any]] = [
        (f"const long {n}", np.int64) for n in ("nout", "ochunk", "parts")
    ]
    if state.scale:
        found.append(_scale(compute))
    found += _pointers("p", [f"const {t}" for _, t, _ in state.fields])
    found += _pointers("q", [dt.cl for _, dt in outputs])
    parameters, types = [text for text, _ in found], [kind for _, kind in found]
    name = f"{state.name}__{compute.code}_{_codes([dt for _, dt in outputs])}__merge{f'_gpu{lanes.across}x{lanes.along}' if lanes else ''}"
    used = [compute, *(dt for _, dt in outputs)]
    # Outputs are merged as vectors of 16, a cache line, where the state's functions take vectors.
    abreast = lanes is None and compute.reg == "float" and not state.needs_index
    head = lane_macros(16 if abreast else 1, compute.reg in ("double", "double2"))
    head += include("half") if any(d.code in ("f16", "bf16") for d in used) else ""
    head += include("complex") if any(d.is_complex for d in used) else ""
    common = {
        "fn": name, "state": state, "reader": None, "compute": (compute,), "headers": head + include(*state.headers),
        "memories": {dt.code: Memory(dt, 1) for dt in used}, "parameters": parameters, "outputs": outputs, "partial": False,
        "convert": convert,
    }  # fmt: skip
    if lanes is not None:
        text = render(
            "reduce/gpu", **common, across=lanes.across, along=lanes.along, narrow=lanes.narrow, at_once=1, block=BLOCK,
            joining=None,
        )  # fmt: skip
    else:
        text = render(
            "reduce/reduce", **common, schedule="merge", lanes=1, unroll=1, block=BLOCK, vectors=1, short=SHORT, ahead=False,
            FURTHER=FURTHER, LINE=LINE, narrow=0, rest=False, abreast=abreast,
        )  # fmt: skip
    kernel = _kernels[key] = backend.kernel(name, text, types)
    return kernel


def _codes(used: Iterable[dtype]) -> str:
    return "_".join(dict.fromkeys([dt.code for dt in used]))


def _pointers(letter: str, types: Sequence[str]) -> list[tuple[str, Any]]:
    """Return parameters for buffers of these C types."""
    return [(f"__global {t} *{letter}{k}", None) for k, t in enumerate(types)]


def _scale(dt: dtype) -> tuple[str, Any]:
    """Return the parameter by which sums are divided."""
    real = dt.to_real() if dt.is_complex else dt
    return f"const {real.reg} scale", scalar_type(dt)
