"""A pointwise chain applied to a product's elements in registers, before they are stored.

Owns the layout of the chain's operands over rows and columns and the text of the device function `finish`, which product
kernels paste and call for each run of adjacent elements whose sums are complete. Must not know how the product is
computed.

Operand classes along a row: v unit stride, s one element per row (column stride 0), g any other stride, c one element
for the whole matrix, p the product itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..memory import Memory
from ..pointwise import Body, Node, Program, choose_lanes, headers, scalar_type
from ..source import render
from .product import LONG

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...dtypes import dtype
    from ...runtime import Backend, Buffer


class Place(NamedTuple):
    """A matrix in memory: buffer, offset and the strides of rows and columns, in elements."""

    buffer: Buffer
    offset: int
    row: int
    col: int

    def kind(self) -> str:
        """Return the operand class along a row: v, g, s or c (see the module's docstring)."""
        if self.col == 1:
            return "v"
        return "g" if self.col else "s" if self.row else "c"


class Epilogue(NamedTuple):
    """A pointwise chain: its operands (the product is the leaf without a place), its nodes, and where results go."""

    leaves: tuple[tuple[dtype, Place | None], ...]
    scalars: tuple[Any, ...]  # numbers, as kernel arguments: a complex one is two
    scalar_types: tuple[dtype, ...]  # the compute dtypes of the nodes that use them
    nodes: tuple[Node, ...]
    # Reference as in `Node`, stored dtype, where it goes.
    outputs: tuple[tuple[tuple[str, int], dtype, Place], ...]

    def transposed(self) -> Epilogue:
        """Return the same chain for the transposed product: rows and columns of every operand and output exchanged."""

        def turn(place: Place) -> Place:
            return place._replace(row=place.col, col=place.row)

        return self._replace(
            leaves=tuple([(dt, turn(p) if p else None) for dt, p in self.leaves]),
            outputs=tuple([(ref, dt, turn(p)) for ref, dt, p in self.outputs]),
        )

    def program(self) -> Program:
        """Return the kernel's key: dtypes, operand classes and nodes, without sizes, strides or scalar values."""
        leaves = tuple([(dt, p.kind() if p else "p") for dt, p in self.leaves])
        outputs = tuple([(ref, dt, p.kind()) for ref, dt, p in self.outputs])
        return Program(leaves, self.scalar_types, self.nodes, outputs, 0)

    def arguments(self) -> list[Any]:
        """Return the values of `Finish.parameters`."""
        args: list[Any] = []
        for _, place in self.leaves:
            args += place or ()
        args += self.scalars
        for _, _, place in self.outputs:
            args += place
        return args


class Finish(NamedTuple):
    """The source of the device function `finish`, and the parameters that its callers declare and pass on."""

    lanes: int  # elements that a call of `finish` computes together
    text: str
    parameters: tuple[str, ...]  # their declarations
    names: tuple[str, ...]  # their names, to pass them on
    types: tuple[Any, ...]  # their types, as `Backend.kernel` takes them


def fitted(backend: Backend, epilogue: Epilogue | None, span: int) -> tuple[Program | None, int]:
    """Return an epilogue's program and its vector width in lanes.

    The width is 0 where the kernel, which completes runs of `span` adjacent numbers, cannot run the chain.
    """
    if epilogue is None:
        return None, 1
    program = epilogue.program()
    lanes = choose_lanes(program, backend.info.lanes if span > 1 else 1)
    fits = 1 < lanes <= span or span == 1
    arguments = 320 + 8 * len(epilogue.arguments())
    return program, lanes if fits and arguments <= backend.info.arg_bytes else 0


def suffix(program: Program | None) -> str:
    """Return the suffix of a kernel's name that lists a chain's first eight operations; empty without a chain."""
    return "".join([f"_{node.op.name}" for node in program.nodes[:8]]) if program else ""


def finish(program: Program, lanes: int) -> Finish:
    """Render the device function of a chain."""
    declared: list[tuple[str, Any]] = []

    def matrix(name: str, cl: str) -> None:
        declared.append((f"__global {cl} *{name}", None))
        declared.extend((f"const long {name}{what}", LONG) for what in ("_at", "_row", "_col"))

    for k, (dt, kind) in enumerate(program.leaves):
        if kind != "p":
            matrix(f"p{k}", f"const {dt.cl}")
    for k, dt in enumerate(program.scalars):
        declared.append((f"const {dt.reg} k{k}_", scalar_type(dt)))
    body = Body(program, lanes)
    stores = []
    for k, (ref, dt, kind) in enumerate(program.outputs):
        matrix(f"q{k}", dt.cl)
        stores.append((k, dt, kind, body.cast(ref, dt)))
    parameters = tuple([text for text, _ in declared])
    used = [dt for dt, _ in program.leaves] + [o[1] for o in program.outputs]
    text = render(
        "gemm/epilogue",
        program=program,
        lanes=lanes,
        body=body.lines,
        stores=stores,
        memories={dt.code: Memory(dt, lanes) for dt in used},
        headers=headers(program, lanes),
        parameters=parameters,
    )
    names = tuple([p.split()[-1].lstrip("*") for p in parameters])
    return Finish(lanes, text, parameters, names, tuple([t for _, t in declared]))


def options(backend: Backend, finish: Finish | None) -> Sequence[str]:
    """Return the build options of a product's kernel: those of pointwise kernels if it has an epilogue, else none."""
    return backend.info.build_options if finish else ()
