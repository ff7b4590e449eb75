"""The elements that a reducing kernel reads: a fused expression over an iteration of kept and reduced dims.

Owns the split of every operand's layout into kept and reduced dims, the choice of the dim that vectors run along, and
the C text that decodes positions and loads values. Knows nothing of what is computed from the values.

Operand classes, along the vectors' dim: v unit stride, s one element, g any stride, c one element for the whole kernel.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ... import dtypes
from ...dtypes import dtype
from ...symbols import remembered
from ..language import lanes_of
from ..memory import Memory
from ..operand import Operand
from ..pointwise import Body, Node, Program, choose_lanes, headers, scalar_type
from ..region import collapse

if TYPE_CHECKING:
    from ...runtime import Buffer

Strides = tuple[int, ...]
_new: Any = tuple.__new__  # makes a named tuple in half the time of its own constructor

LITTLE = 1 << 14  # elements up to which all orders of reading them cost about the same


class Source(NamedTuple):
    """What a kernel reads: values for each position of a shape, computed from operands by a fused expression."""

    shape: tuple[int, ...]
    # Operands: buffer, dtype, strides over `shape`, offset.
    leaves: tuple[tuple[Buffer, dtype, Strides, int], ...]
    scalars: tuple[Any, ...]  # numbers in the expression
    scalar_types: tuple[dtype, ...]  # the compute dtypes of the nodes that use them
    nodes: tuple[Node, ...]
    # The values: references as in `Node`, to operands, numbers or nodes.
    values: tuple[tuple[str, int], ...]

    def pattern(self) -> Source:
        """Return the source without buffers, offsets and numbers: what a kernel and its division of work depend on."""
        leaves = tuple([(None, dt, strides, 0) for _, dt, strides, _ in self.leaves])
        return _new(Source, (self.shape, leaves, (), self.scalar_types, self.nodes, self.values))


def of_operands(*operands: Operand) -> Source:
    """Read plain memory: one value per operand, all of one shape."""
    leaves = tuple([(x.buffer, x.dtype, tuple(x.strides), x.offset) for x in operands])
    return Source(
        tuple(operands[0].shape), leaves, (), (), (), tuple([("a", k) for k in range(len(leaves))])
    )


class Split(NamedTuple):
    """Kept and reduced dims, each collapsed for all operands together."""

    kept: tuple[int, ...]  # sizes of the collapsed kept dims
    reduced: tuple[int, ...]  # sizes of the collapsed reduced dims
    kept_strides: tuple[Strides, ...]  # each operand's strides over `kept`
    reduced_strides: tuple[Strides, ...]  # each operand's strides over `reduced`
    constant: tuple[bool, ...]  # whether an operand is one element for the whole kernel
    nout: int  # outputs: product of the kept sizes
    nred: int  # elements of an output: product of the reduced sizes


@remembered(4096)
def split(
    shape: tuple[int, ...],
    layouts: tuple[Strides, ...],
    dims: tuple[int, ...],
    extra: tuple[Strides, ...] = (),
    *,
    ordered: bool = False,
) -> Split:
    """Separate kept from reduced `dims`; `ordered` keeps the reduced dims in row-major order.

    `extra` are layouts that are collapsed along with them (of outputs over the whole iteration); their strides come last.
    """
    sizes = [d for d, n in enumerate(shape) if n != 1]
    constant = tuple([not [d for d in sizes if st[d]] for st in layouts])
    every = (*layouts, *extra)
    kept = [d for d in range(len(shape)) if d not in dims]
    reduced = list(dims)
    if not ordered and len(reduced) > 1:
        reduced.sort(key=lambda d: -sum([abs(st[d]) for st in every]))

    def part(dims: list[int]) -> tuple[tuple[int, ...], tuple[Strides, ...]]:
        strides = [[st[d] for d in dims] for st in every] or [[0] * len(dims)]
        return collapse([shape[d] for d in dims], strides)

    nred, nout = math.prod([shape[d] for d in reduced]), math.prod([shape[d] for d in kept])
    empty = (1,), ((0,),) * max(len(every), 1)
    kept_sizes, kept_strides = part(kept)
    red_sizes, red_strides = part(reduced) if nred else empty
    return Split(kept_sizes, red_sizes, kept_strides, red_strides, constant, nout, nred)


def along_reduced(parts: Split, least: int = 48) -> bool:
    """Return whether vectors run along the innermost reduced dim ('row') instead of the innermost kept one ('col').

    Operands that vary both along and across rows decide by majority, or if there are none, what is written: operands that
    are one number per row cost little either way. Where there is little work, operands of the same layout count once, as
    their result would if it lay in memory: so a small sum mostly has the same bits whether its operand is computed in the
    kernel or was computed before. `least`: the shortest contiguous rows that vectors run along.
    """
    if parts.nout == 1:
        return True
    small = parts.nout * parts.nred <= LITTLE
    layouts: list[tuple[Strides, Strides]] = []
    for pair, constant in zip(
        zip(parts.kept_strides, parts.reduced_strides, strict=True), parts.constant, strict=False
    ):
        if not (constant or (small and pair in layouts)):
            layouts.append(pair)
    whole = [pair for pair in layouts if any(pair[0]) and any(pair[1])]
    given = len(parts.constant)
    whole = whole or [*zip(parts.kept_strides[given:], parts.reduced_strides[given:], strict=True)]
    row = sum(reduced[-1] == 1 for _, reduced in whole or layouts)
    col = sum(kept[-1] == 1 for kept, _ in whole or layouts)
    if row == col and (
        read := whole or layouts
    ):  # the smaller step finds more of what it reads in one line
        across, along = sum([kept[-1] for kept, _ in read]), sum([red[-1] for _, red in read])
        row, col = across > along, along > across
    if row > col:
        return parts.reduced[-1] >= least or parts.kept[-1] < 16
    if col > row:
        return parts.kept[-1] < 8 and parts.reduced[-1] >= 64
    return parts.reduced[-1] >= parts.kept[-1]


def _dtypes(program: Program, refs: Sequence[tuple[str, int]]) -> list[dtype]:
    """Return the dtypes of references to leaves, scalars and nodes."""
    of = {
        "a": [dt for dt, _ in program.leaves],
        "k": list(program.scalars),
        "t": [n.result for n in program.nodes],
    }
    return [of[kind][number] for kind, number in refs]


class Reader:
    """C text that reads a source: arguments, base pointers and values. `row`: vectors run along the reduced dim.

    The vector width suits the dtypes of `outputs`, which are stored as vectors; and those of `beside`, computed at the
    end only, if operands are gathered: longer vectors would then gain less than that costs. `wide`: the kernel computes
    in 8-byte numbers. `turned`: index of the operand that the kernel transposes first.
    """

    def __init__(
        self,
        source: Source,
        parts: Split,
        *,
        row: bool,
        lanes: int,
        outputs: Sequence[dtype] = (),
        beside: Sequence[dtype] = (),
        wide: bool = False,
        turned: int | None = None,
        gpu: bool = False,
    ) -> None:
        self.turned = turned  # the kernel has this operand's rows, from row `begun` on, contiguous in its memory `turned`
        self.row, self.kept_rank, self.reduced_rank = row, len(parts.kept), len(parts.reduced)
        leaves = []
        for k, ((_, dt, _, _), kept, reduced, constant) in enumerate(
            zip(
                source.leaves,
                parts.kept_strides,
                parts.reduced_strides,
                parts.constant,
                strict=False,
            )
        ):
            step = 1 if k == turned else (reduced if row else kept)[-1]
            leaves.append(
                (dt, "c" if constant else "v" if step == 1 else "s" if step == 0 else "g")
            )
        # Operands that are one number for all elements of an output: a GPU's lane reads them once.
        still = [gpu and not any(steps) for steps in parts.reduced_strides]
        self.still = tuple([k for k in range(len(leaves)) if still[k] and leaves[k][1] != "c"])
        # Values that are such an operand, or one that is a single number for the whole kernel.
        once = {k for k, (_, cls) in enumerate(leaves) if gpu and (cls == "c" or still[k])}
        self.fixed = {n for n, (of, k) in enumerate(source.values) if of == "a" and k in once}
        outputs = [*outputs, *beside]
        narrow = (
            len(outputs) if any(cls == "g" for _, cls in leaves) else len(outputs) - len(beside)
        )
        program = Program(
            tuple(leaves),
            source.scalar_types,
            source.nodes,
            tuple([(source.values[0], dt, "d") for dt in outputs[:narrow]]),
            0,
        )
        # Complex values are not reduced as vectors; intermediate complex results may be vectors.
        lanes = choose_lanes(
            program,
            lanes,
            complexes=not any(dt.is_complex for dt in _dtypes(program, source.values)),
        )
        self.lanes = min(lanes, 8) if wide and lanes > 1 else lanes
        self.program = program
        self.values = source.values
        self.key = (program, row, self.kept_rank, self.reduced_rank, self.lanes, turned, self.still)
        self.types = [dt for dt, _ in leaves] + outputs

    @functools.cached_property
    def memories(self) -> dict[str, Memory]:
        """Text of loads and stores, by dtype code."""
        return {dt.code: Memory(dt, self.lanes) for dt in self.types}

    def headers(self, compute: dtype) -> str:
        """Return the text of the device functions that the expression needs in a kernel that computes in `compute`."""
        return headers(self.program, self.lanes, double=compute.reg in ("double", "double2"))

    # ---- arguments
    def parameters(self) -> list[str]:
        """Return the kernel's parameters: kept sizes, reduced sizes, operands with strides, scalars."""
        out = [f"const long n{d}" for d in range(self.kept_rank)] + [
            f"const long m{d}" for d in range(self.reduced_rank)
        ]
        for k, (dt, cls) in enumerate(self.program.leaves):
            out += [f"__global const {dt.cl} *p{k}", f"const long o{k}"]
            if cls != "c":
                out += [f"const long s{k}_{d}" for d in range(self.kept_rank)]
                out += [f"const long r{k}_{d}" for d in range(self.reduced_rank)]
        for k, dt in enumerate(self.program.scalars):
            if dt.is_complex:
                out += [f"const {dt.reg[:-1]} k{k}_re", f"const {dt.reg[:-1]} k{k}_im"]
            else:
                out.append(f"const {dt.reg} k{k}_")
        return out

    def argument_types(self) -> list:
        """Return the types of `parameters` for the backend."""
        i64 = dtypes.int64.np.type
        types: list = [i64] * (self.kept_rank + self.reduced_rank)
        for _, cls in self.program.leaves:
            types += [None, i64] + (
                [] if cls == "c" else [i64] * (self.kept_rank + self.reduced_rank)
            )
        for dt in self.program.scalars:
            types += [scalar_type(dt)] * (2 if dt.is_complex else 1)
        return types

    def arguments(self, source: Source, parts: Split) -> list:
        """Return the values of `parameters` for a source of this pattern."""
        args: list = [*parts.kept, *parts.reduced]
        for (buffer, _, _, offset), kept, reduced, constant in zip(
            source.leaves, parts.kept_strides, parts.reduced_strides, parts.constant, strict=False
        ):
            args += [buffer, offset]
            if not constant:
                args += [*kept, *reduced]
        return args + list(source.scalars)

    def scalars(self) -> list[str]:
        """Declare the registers that hold the scalar arguments."""
        out = []
        for k, dt in enumerate(self.program.scalars):
            reg = lanes_of(dt.reg, self.lanes)
            if dt.is_complex:
                number = f"(({dt.reg})(k{k}_re, k{k}_im))"
                spread = f"spread_{reg}" if self.lanes > 1 else ""
                out.append(f"const {reg} k{k} = {spread}{number};")
            else:
                out.append(f"const {reg} k{k} = ({reg})(k{k}_);")
        return out

    # ---- positions
    def kept_bases(
        self, position: str, *, inner: str | None = None, index: str = "long"
    ) -> list[str]:
        """Declare the pointers h0.. to the operands' first elements for the output at `position`.

        With `inner`, the index along the innermost kept dim, `position` counts the outer ones only. `index`: the type of
        positions; "int", where they fit, is divided in a fraction of the time on a GPU.
        """
        rank, cast = self.kept_rank, "" if index == "long" else f"({index})"
        out = [f"{index} kq = {position};"]
        last = rank - 1 if inner is not None else rank
        for d in range(last - 1, 0, -1):
            out.append(f"const {index} x{d} = kq % {cast}n{d}; kq /= {cast}n{d};")
        names = [f"x{d}" for d in range(last)]
        if last:
            out.append(f"const {index} x0 = kq;")
        if inner is not None:
            names.append(inner)
        return out + self._pointers("h", lambda k: f"p{k} + o{k}", "s", names)

    def reduced_bases(self, position: str, index: str = "long") -> list[str]:
        """Declare the pointers b0.. to run number `position` along the innermost reduced dim.

        Operands that are one number for a run are read here.
        """
        rank, cast = self.reduced_rank, "" if index == "long" else f"({index})"
        out = [f"{index} rq = {position};"] if rank > 1 else []
        for d in range(rank - 2, 0, -1):
            out.append(f"const {index} y{d} = rq % {cast}m{d}; rq /= {cast}m{d};")
        if rank > 1:
            out.append(f"const {index} y0 = rq;")
        out += self._pointers("b", lambda k: f"h{k}", "r", [f"y{d}" for d in range(rank - 1)])
        for k, (dt, cls) in enumerate(self.program.leaves):
            if self._held(cls):
                place = f"p{k} + o{k}" if cls == "c" else f"b{k}"
                number = self._fetch(dt, cls, place, "0", str(self.lanes))
                out.append(f"const {lanes_of(dt.reg, self.lanes)} once{k} = {number};")
        return out

    def _held(self, cls: str) -> bool:
        """Return whether an operand is read once per run, of which it is one number.

        The compiler cannot hoist such a load out of a loop, as it cannot know that stores leave the operand unchanged.
        """
        return self.row and self.lanes > 1 and cls in "cs"

    def _pointers(self, name: str, base: Any, stride: str, positions: list[str]) -> list[str]:
        out = []
        for k, (dt, cls) in enumerate(self.program.leaves):
            if cls != "c" and not (name == "b" and k in self.still):
                terms = "".join(f" + {x} * {stride}{k}_{d}" for d, x in enumerate(positions))
                if name == "b" and k == self.turned:
                    terms, place = "", f"(__global const {dt.cl} *)(turned + (o - begun) * across)"
                else:
                    place = base(k)
                out.append(f"__global const {dt.cl} *{name}{k} = {place}{terms};")
        return out

    # ---- values
    def load(self, at: str, m: str, vector: str = "0") -> list[str]:
        """Load `m` lanes of all operands at `at` along the innermost reduced dim.

        `vector`: a 'col' vector's offset along the innermost kept dim.
        """
        out = []
        for k, (dt, cls) in enumerate(self.program.leaves):
            reduced = f"r{k}_{self.reduced_rank - 1}"
            step = reduced if self.row else f"s{k}_{self.kept_rank - 1}"
            if self._held(cls):
                out.append(f"const {lanes_of(dt.reg, self.lanes)} a{k} = once{k};")
                continue
            if cls == "c":
                pointer = f"p{k} + o{k}"
            elif k in self.still:
                pointer = f"h{k}"
            elif self.row:
                pointer = f"b{k} + ({at})" + ("" if cls == "v" else f" * {step}")
            else:
                along = {"v": f" + {vector}", "s": "", "g": f" + ({vector}) * {step}"}[cls]
                pointer = f"b{k} + ({at}) * {reduced}{along}"
            out.append(
                f"const {lanes_of(dt.reg, self.lanes)} a{k} = {self._fetch(dt, cls, pointer, step, m)};"
            )
        return out

    def _fetch(self, dt: dtype, cls: str, pointer: str, step: str, m: str) -> str:
        mem = self.memories[dt.code]
        if self.lanes == 1:
            return mem.scalar_load(pointer)
        if cls in "cs":
            return mem.spread(mem.scalar_load(pointer))
        if cls == "g":
            return f"gather_{dt.code}({pointer}, {step}, {m})"
        return (
            mem.vector_load(pointer) if m == str(self.lanes) else f"load_{dt.code}({pointer}, {m})"
        )

    def element(
        self, at: str, m: str, compute: Sequence[dtype], vector: str = "0"
    ) -> tuple[list[str], list[str]]:
        """Statements that load and compute at a position, and the names of the values in their compute dtypes."""
        body = Body(self.program, self.lanes)
        names = []
        for number, (ref, dt) in enumerate(zip(self.values, compute, strict=True)):
            text = body.cast(ref, dt)
            body.lines.append(f"const {lanes_of(dt.reg, self.lanes)} v{number} = {text};")
            names.append(f"v{number}")
        return self.load(at, m, vector) + body.lines, names
