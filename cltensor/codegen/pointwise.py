"""The pointwise family: a fused program of formulas becomes one kernel.

A `Program` is the canonical form of a chain: its operands by dtype and class, its nodes in order, its outputs. It holds no
shape, no buffer and no scalar value, so it is the cache key of the kernel. Operand classes, after all layouts have been
collapsed together:

    d  dense: element i of the iteration           v  rows of unit stride, outer strides free
    c  one element for all                         s  one element per row
                                                   g  any inner stride
    where rows are narrow (see `narrowed`):
    D  as v, rows adjacent in memory               V, G  as v and g, the same row for all (outer stride 0)
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from math import gcd
from typing import Any, NamedTuple

from .. import dtypes
from ..dtypes import dtype
from .drawn import Draw, draws
from .language import (
    OPERANDS,
    Emitter,
    Formula,
    convert,
    lanes_of,
    parse,
    round_to,
    truth,
)
from .memory import Memory
from .source import include, lane_macros, render

# A kernel takes many rows at a time (see `narrowed`) if a row has at most NARROW elements, there are at least
# SEVERAL_ROWS, and the copies of the chain in the kernel's text cost at most NARROW_COST together.
NARROW, SEVERAL_ROWS, NARROW_COST = 48, 64, 256
# (bytes, many): a GPU's lane loads `many` elements before it stores the first, if computing an element reads at most
# `bytes` of memory. For dense operands, and for operands in rows.
AT_ONCE, AT_ONCE_OF_ROWS = ((2, 8), (8, 4), (16, 2)), ((16, 4), (32, 2))
# A GPU's lane makes random numbers for as many adjacent elements as a store of STORED bytes holds, so that lanes fill
# cache lines together; for twice as many where the chain costs more than DEAR (computing then takes longer than
# storing), since adjacent Philox blocks share what follows from the key.
STORED, DEAR = 16, 200
# The cost of a chain, in units of an addition, up to which several elements are computed together (`at_once`, `unrolled`).
AT_ONCE_COST = 24

_ids = itertools.count()


class PointOp:
    """A named formula. Keys of programs compare it by identity. The text is parsed at first use."""

    __slots__ = ("formula", "heavy", "id", "masks", "name", "rounds", "text")

    formula: Formula
    heavy: bool

    def __init__(self, name: str, text: str, masks: str = "", rounds: bool = False) -> None:
        self.name = name
        self.text = text
        # Letters of operands that are conditions: read as true where they are not zero.
        self.masks = frozenset(masks)
        # Whether Python numbers beside operands of a 16-bit float dtype are first rounded to that dtype.
        self.rounds = rounds
        self.id = next(_ids)

    def __getattr__(self, name: str) -> Any:  # asked only while the slots are empty
        if name not in ("formula", "heavy"):
            raise AttributeError(name)
        self.formula = parse(self.text)
        self.heavy = self.formula.heavy
        return getattr(self, name)

    def __repr__(self) -> str:
        return f"<PointOp {self.name}: {self.text}>"


IDENTITY = PointOp("copy", "x")
# The linear index of the element being computed. The kernel supplies the value; the formula is a placeholder.
INDEX = PointOp("index", "x")


class Node(NamedTuple):
    """A formula applied to operands of a program.

    A reference (kind, index) names a value of the program: ("a", i) is operand i in memory, ("k", i) number i,
    ("t", i) the result of node i.
    """

    op: PointOp
    compute: dtype  # operands are converted to it, and the formula computes in it
    result: dtype  # the formula's value is converted to it
    args: tuple[tuple[str, int], ...]  # a reference for each operand of the formula


class Program(NamedTuple):
    """The canonical form of a fused chain; hashable, and free of every number that varies at run time.

    Classes are the letters of the module's docstring.
    """

    leaves: tuple[tuple[dtype, str], ...]  # operands in memory: dtype, class
    scalars: tuple[dtype, ...]  # compute dtypes of the nodes that use the numbers
    nodes: tuple[Node, ...]  # operands before the nodes that read them
    # What is stored: reference, stored dtype, class.
    outputs: tuple[tuple[tuple[str, int], dtype, str], ...]
    rank: int  # dims of the collapsed iteration space; 0: one linear index serves all operands and outputs
    # Dense outputs are written with non-temporal stores; the launcher has checked that they begin at multiples of
    # region.STREAM_ALIGN.
    streamed: bool = False
    # The length of a row, where many rows are taken at a time (see `narrowed`); else 0.
    narrow: int = 0
    ahead: bool = False  # operands come from beyond the cache, and are prefetched


def as_bits(program: Program) -> Program:
    """Turn a copy of 16-bit floats into one of int16, which needs no widening; return any other program as it is."""
    if len(program.nodes) != 1 or program.nodes[0].op is not IDENTITY or len(program.leaves) != 1:
        return program
    ((dt, kind),), (node,) = program.leaves, program.nodes
    stored = {dt for _, dt, _ in program.outputs}
    if dt.code not in ("f16", "bf16") or {node.compute, node.result, *stored} != {dt}:
        return program
    bits = dtypes.int16
    return program._replace(
        leaves=((bits, kind),),
        nodes=(node._replace(compute=bits, result=bits),),
        outputs=tuple([(ref, bits, cls) for ref, _, cls in program.outputs]),
    )


def foreseen(operands: Sequence[tuple[dtype, str]]) -> bool:
    """Return whether several dense operands are read: the hardware's own prefetches then keep memory busy."""
    dense = [dt.itemsize for dt, kind in operands if kind == "d"]
    return len(dense) > 1 and sum(dense) > 4


def choose_lanes(program: Program, preferred: int, complexes: bool = False) -> int:
    """Pick the vector width all values of a kernel share. Complex values take more than one lane only with `complexes`.

    `complexes`: the kernel has vectors of complex numbers (cl_kernels/complex.cl).
    """
    if preferred == 1:
        return 1
    wide = drawn = False  # a value takes more than four bytes; random words are drawn
    for node in program.nodes:
        if (node.compute.is_complex or node.result.is_complex) and not complexes:
            return 1
        if "c32" in (node.compute.code, node.result.code):
            return 1
        formula = node.op.formula
        if formula.scalar_only:
            return 1
        drawn |= "random/philox" in formula.headers
        wide |= _bytes(node.compute) > 4 or _bytes(node.result) > 4
    for dt in [dt for dt, _ in program.leaves] + [dt for _, dt, _ in program.outputs]:
        if dt.code == "c32" or (dt.is_complex and not complexes):
            return 1
        wide |= _bytes(dt) > 4
    # Vectors hold the 32-bit halves of a draw's 64-bit words, so these words alone do not halve the width.
    if drawn and wide:
        values = [dt for node in program.nodes for dt in (node.compute, node.result)]
        stored = [dt for _, dt, _ in program.outputs] + [dt for dt, _ in program.leaves]
        wide = any(_bytes(dt) > 4 for dt in stored)
        wide |= any(_bytes(dt) > 4 and dt.category > 1 for dt in values)
    return preferred // 2 if wide else preferred


def _bytes(dt: dtype) -> int:
    """Return the bytes of one lane: those of a number, or of the real part of a complex one."""
    return dt.itemsize // 2 if dt.is_complex else dt.itemsize


class Body:
    """Statements that compute a program's nodes, given register variables for its leaves and scalars.

    stored: the values of outputs are used by stores only, so that a node read by nothing but stores of its own dtype
    need not be rounded: the store rounds. drawn: the random draws, by node number, whose words are read from arrays
    that were filled ahead of the chain.
    """

    def __init__(
        self,
        program: Program,
        lanes: int,
        index: str = "i",
        *,
        stored: bool = False,
        drawn: dict[int, Draw] | None = None,
    ) -> None:
        self.program, self.lanes = program, lanes
        self._drawn = drawn or {}
        self._unrounded = _only_stored(program) if stored else frozenset()
        self.lines: list[str] = []
        self._converted: dict[tuple[str, int, dtype], str] = {}
        for number, node in enumerate(program.nodes):
            if number in self._drawn and self._drawn[number].form != "all":
                continue  # the nodes that use a half of the word read it from the array themselves
            self.lines.append(
                f"const {lanes_of(node.result.reg, lanes)} t{number} = {self._node(number, node, index)};"
            )

    def value(self, ref: tuple[str, int]) -> tuple[str, dtype]:
        """Return the register variable and the dtype of the operand, number or node that a reference names."""
        kind, number = ref
        program = self.program
        if kind == "a":
            return f"a{number}", program.leaves[number][0]
        if kind == "k":
            return f"k{number}", program.scalars[number]
        return f"t{number}", program.nodes[number].result

    def cast(self, ref: tuple[str, int], target: dtype) -> str:
        """Return the variable of a value converted to a dtype; each conversion is declared once.

        A number is passed in the compute dtype of its only reader already.
        """
        name, source = self.value(ref)
        if ref[0] == "k":
            return name
        text = convert(name, source, target, self.lanes)
        if text == name:
            return name
        key = (*ref, target)
        if key not in self._converted:
            fresh = f"{name}_{target.code}"
            self.lines.append(f"const {lanes_of(target.reg, self.lanes)} {fresh} = {text};")
            self._converted[key] = fresh
        return self._converted[key]

    def _node(self, number: int, node: Node, index: str) -> str:
        lanes, op = self.lanes, node.op
        if op is INDEX:
            if lanes == 1:
                return f"(long)({index})"
            return f"(long{lanes})({index}) + (long{lanes})({', '.join(map(str, range(lanes)))})"
        if number in self._drawn:
            return self._drawn[number].read()
        source = self._drawn.get(node.args[0][1]) if node.args and node.args[0][0] == "t" else None
        if source is not None and source.form != "all":
            return source.read_half(op.text, lanes)
        operands = {}
        for name, ref in zip(OPERANDS, node.args, strict=False):
            if name in op.masks:
                operands[name] = self._mask(ref, node.compute)
            else:
                operands[name] = self.cast(ref, node.compute)
        emitter = Emitter(node.compute, lanes, operands, op.masks)
        text, kind = emitter.emit(op.formula.tree)
        if kind == "mask":
            if node.result.category == 0:
                return f"(uchar)({text})" if lanes == 1 else truth(text, lanes)
            text = emitter.from_mask(text)
        if number in self._unrounded and node.compute.reg == node.result.reg:
            return text
        text = convert(text, node.compute, node.result, lanes)
        return round_to(text, node.result, lanes) if node.result is node.compute else text

    def _mask(self, ref: tuple[str, int], compute: dtype) -> str:
        name, _source = self.value(ref)
        if self.lanes == 1:
            return f"({name} != 0)"
        signed = {1: "char", 2: "short", 4: "int", 8: "long"}[
            _bytes(compute) if compute.category < 2 else max(4, _bytes(compute))
        ]
        wide = f"{signed}{self.lanes}"
        return f"(convert_{wide}({name}) != ({wide})(0))"


def _only_stored(program: Program) -> frozenset[int]:
    """Return the numbers of nodes that are read only by stores of their own dtype."""
    read = {ref for node in program.nodes for ref in node.args}
    stored = {ref: dt for ref, dt, _ in program.outputs if ref[0] == "t" and ref not in read}
    return frozenset(n for (_, n), dt in stored.items() if dt is program.nodes[n].result)


def headers(program: Program, lanes: int, drawn: int = 0, double: bool = False) -> str:
    """Return the text of the device functions a program needs.

    `drawn`: elements whose random words are drawn ahead, 0 for none. `double`: the surrounding kernel uses doubles.
    """
    names = sorted({h for node in program.nodes for h in node.op.formula.headers_for(node.compute)})
    if drawn:
        names.append("random/words")
    if any(n.op.formula.divides and n.compute.category < 2 for n in program.nodes):
        names.append("elementary/quotient")
    used = [d for node in program.nodes for d in (node.compute, node.result)] + [
        d for d, _ in program.leaves
    ]
    if any(d.is_complex for d in used) and "complex" not in names:
        names.insert(0, "complex")
    if any(d.code in ("f16", "bf16", "c32") for d in used + [o[1] for o in program.outputs]):
        names.insert(0, "half")
    double = (
        double
        or any(d.reg in ("double", "double2") for d in used)
        or any("double" in node.op.formula.text for node in program.nodes)
    )
    names = ["stream"] * program.streamed + ["ahead"] * program.ahead + names
    many = f"#define CLT_DRAWN {drawn}\n" if drawn else ""
    return many + lane_macros(lanes, double) + include(*names)


def kernel_name(program: Program) -> str:
    """Return the kernel's name: ops, dtypes, and classes of operands and results."""
    ops = "_".join(node.op.name for node in program.nodes)
    stored = [dt for _, dt, _ in program.outputs]
    types = "_".join(dict.fromkeys(dt.code for dt in (*(dt for dt, _ in program.leaves), *stored)))
    classes = (
        "".join(c for _, c in program.leaves) + "_" + "".join(c for _, _, c in program.outputs)
    )
    width = f"_w{program.narrow}" if program.narrow else ""
    past = "_streamed" if program.streamed else "_ahead" * program.ahead
    return f"{ops[:64]}__{types}__{classes}{program.rank}{width}{past}"


def neighbours(program: Program) -> bool:
    """Return whether a GPU's lane computes adjacent elements: random numbers, which come two or four at a time.

    Only where one linear index serves all operands and results.
    """
    if program.rank or any(cls not in "dc" for _, cls in program.leaves):
        return False
    if any(cls != "d" for _, _, cls in program.outputs):
        return False
    return any("random/philox" in node.op.formula.headers for node in program.nodes)


def at_once(program: Program) -> int:
    """Return how many elements a GPU's lane reads before it writes the first: loads in flight hide memory's latency.

    Long chains give 1, because the kernel has a copy of the chain for each element. Operands or results in rows give
    more than 1 even if nothing is read, because the addresses of several elements are then computed together.
    """
    if neighbours(program):
        widest = max(dt.itemsize for _, dt, _ in program.outputs)
        dear = sum(node.op.formula.cost for node in program.nodes) > DEAR and widest == 4
        return max(2, min(4, STORED // widest)) * (1 + dear)
    if any(node.op is INDEX for node in program.nodes):
        return 1
    read = sum(dt.itemsize for dt, cls in program.leaves if cls != "c")
    cost = sum(node.op.formula.cost for node in program.nodes)
    if cost > AT_ONCE_COST or not (read or program.rank):
        return 1
    table = AT_ONCE_OF_ROWS if program.rank else AT_ONCE
    return next((many for size, many in table if read <= size), 1)


def unrolled(program: Program) -> int:
    """Return how many vectors of 16 elements a CPU's step takes: 64 bytes of the widest dtype, where all dtypes are
    bool or integers of 8 or 16 bits and the chain is cheap; else 1.
    """
    types = {dt for dt, _ in program.leaves} | {dt for _, dt, _ in program.outputs}
    types |= {dt for node in program.nodes for dt in (node.compute, node.result)}
    widest = max(dt.itemsize for dt in types)
    if widest > 2 or any(dt.category > 1 for dt in types):
        return 1
    if program.rank or any(node.op is INDEX for node in program.nodes):
        return 1
    cost = sum(node.op.formula.cost for node in program.nodes)
    return 4 // widest if cost <= AT_ONCE_COST else 1


def source(program: Program, lanes: int, gpu: bool, group: int = 128) -> tuple[str, str, list]:
    """Render a program: (kernel name, text, argument types). `group`: lanes of a GPU's work-group."""
    name = kernel_name(program)
    drawn = draws(program) if lanes > 1 and not gpu else {}
    body = Body(program, lanes, stored=True, drawn=drawn)
    stores = [
        (number, dt, cls, body.cast(ref, dt))
        for number, (ref, dt, cls) in enumerate(program.outputs)
    ]
    in_memory = [dt for dt, _ in program.leaves] + [dt for _, dt, _ in program.outputs]
    text = render(
        "pointwise",
        name=name,
        program=program,
        lanes=lanes,
        gpu=gpu,
        group=group,
        headers=headers(program, lanes, max((d.many for d in drawn.values()), default=0)),
        body=body.lines,
        stores=stores,
        memories={dt.code: Memory(dt, lanes) for dt in in_memory},
        drawn=drawn.values(),
        at_once=at_once(program),
        beside=neighbours(program),
        unrolled=unrolled(program) if lanes == 16 else 1,
        stride_count=stride_count,
    )
    return name, text, argument_types(program)


def argument_types(program: Program) -> list:
    """Return the types of the kernel's parameters in the template's order; `None` stands for a buffer."""
    i64 = dtypes.int64.np.type
    types: list = [i64, i64]
    if program.rank:
        types += [i64] * program.rank
    for _, cls in program.leaves:
        types += [None, i64] + [i64] * stride_count(cls, program.rank)
    for dt in program.scalars:
        types += [scalar_type(dt)] * (2 if dt.is_complex else 1)
    for _, _, cls in program.outputs:
        types += [None, i64] + [i64] * stride_count(cls, program.rank)
    return types


def narrowed(
    sizes: Sequence[int], nodes: Sequence[Node], stored: Iterable[dtype], lanes: int
) -> int:
    """Return the length of an iteration's rows if a CPU's kernel takes many of them at a time, else 0.

    That requires many short rows, and a cheap chain: the kernel has one copy of it for each vector that those rows fill.
    """
    if lanes < 8 or len(sizes) < 2 or sizes[-1] > NARROW or sizes[-2] < SEVERAL_ROWS:
        return 0
    if any(dt.is_complex for dt in stored):
        return 0
    if any(n.compute.is_complex or n.op.formula.scalar_only for n in nodes):
        return 0
    width = int(sizes[-1])
    _, vectors = rows_at_a_time(width, 16)
    cost = vectors * sum(node.op.formula.cost for node in nodes)
    return width if width % 16 and vectors < 16 and cost <= NARROW_COST else 0


def rows_at_a_time(width: int, lanes: int) -> tuple[int, int]:
    """Return how many narrow rows are taken at a time, and how many vectors these fill: whole ones, about four."""
    fewest = lanes // gcd(width, lanes)
    rows = min(lanes, fewest * max(1, 4 * lanes // (fewest * width)))
    return rows, rows * width // lanes


def narrow_class(cls: str, strides: Sequence[int], width: int) -> str:
    """Return the class of an operand or result where rows are narrow, from its class otherwise and its strides."""
    if cls not in "vg":
        return cls
    step = strides[-1] if cls == "v" else strides[-2]
    if step == 0:
        return cls.upper() if cls == "g" else "V"
    return "D" if cls == "v" and step == width else cls


def stride_count(cls: str, rank: int) -> int:
    """Return how many strides the kernel takes for an operand of a class."""
    return {"d": 0, "c": 0, "v": rank - 1, "s": rank - 1, "g": rank}[plain(cls)]


def plain(cls: str) -> str:
    """Return the class that an operand has where rows are taken one after the other."""
    return {"D": "v", "V": "v", "G": "g"}.get(cls, cls)


def scalar_type(dt: dtype) -> type:
    """Return the numpy type as which a scalar of a compute dtype is passed to the kernel."""
    if dt.is_complex:
        dt = dt.to_real()
    if dt.category == 2 and dt.itemsize == 2:
        dt = dtypes.float32
    return dtypes.uint8.np.type if dt.category == 0 else dt.np.type
