"""How the text of a kernel loads and stores elements of a dtype: what all families that compute share.

A dtype has two forms: in memory (`dtype.cl`), and in registers (`dtype.reg`), which for 16-bit floats is float32. The
functions that the text calls are those of templates/lanes.mako and cl_kernels/half.cl. Knows nothing of layouts.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..dtypes import dtype
from .language import lanes_of


class Memory:
    """Source text that loads and stores values of a storage dtype: one at a time, `lanes` at a time, or gathered.

    Pointers and values are C expressions; loads are expressions, too, and stores statements without a semicolon.
    """

    def __init__(self, dt: dtype, lanes: int) -> None:
        self.dt, self.lanes = dt, lanes
        self.code, self.cl, self.reg = dt.code, dt.cl, lanes_of(dt.reg, lanes)

    def spread(self, number: str) -> str:
        """Broadcast a number to all lanes."""
        made = f"spread_{self.reg}" if self.dt.is_complex and self.lanes > 1 else f"({self.reg})"
        return f"{made}({number})"

    def scalar_load(self, pointer: str) -> str:
        """Load one number into a register."""
        if self.code == "f16":
            return f"vload_half(0, {pointer})"
        if self.code == "bf16":
            return f"as_float((uint)*({pointer}) << 16)"
        if self.code == "c32":
            return f"vload_half2(0, (__global const half *)({pointer}))"
        return f"*({pointer})"

    def scalar_store(self, pointer: str, value: str) -> str:
        """Store one number, rounded if it has 16 bits in memory."""
        if self.code == "f16":
            return f"vstore_half_rte({value}, 0, {pointer})"
        if self.code == "bf16":
            return f"*({pointer}) = clt_to_bf16_float({value})"
        if self.code == "c32":
            return f"vstore_half2_rte({value}, 0, (__global half *)({pointer}))"
        return f"*({pointer}) = {value}"

    def of_bits(self, bits: str) -> str:
        """Make a register vector from its elements' bits in memory (unsigned integers for 16-bit floats)."""
        n = self.lanes
        if self.code == "bf16":
            return f"as_float{n}(convert_uint{n}(as_ushort{n}({bits})) << 16)"
        if self.code == "f16":
            return f"clt_of_f16_float{n}(as_ushort{n}({bits}))"
        return f"as_{self.reg}({bits})"

    def to_bits(self, vector: str) -> str:
        """Round a register vector of a 16-bit float to its bits in memory; return one of another dtype as it is."""
        short = self.code in ("f16", "bf16")
        return f"clt_to_{self.code}_float{self.lanes}({vector})" if short else vector

    def gathered(self, places: Sequence[str]) -> str:
        """Make a vector of the numbers at the pointers `places`; 16-bit floats are gathered as bits, widened together."""
        if self.code in ("f16", "bf16"):
            bits = ", ".join([f"*(__global const ushort *)({place})" for place in places])
            return self.of_bits(f"(ushort{self.lanes})({bits})")
        return f"({self.reg})({', '.join(map(self.scalar_load, places))})"

    def scattered(self, places: Sequence[str], name: str, value: str) -> str:
        """Write a vector's lanes to the pointers `places`; the statements declare a variable `name` for the vector."""
        kind, cast = self.reg, ""
        if self.code in ("f16", "bf16"):
            kind, value, cast = f"ushort{self.lanes}", self.to_bits(value), "(__global ushort *)"
        writes = [f"*{cast}({place}) = {name}.s{k:x}" for k, place in enumerate(places)]
        return "; ".join([f"const {kind} {name} = {value}", *writes])

    def vector_load(self, pointer: str) -> str:
        """Load a full vector; memory need only have the alignment of an element."""
        n = self.lanes
        if self.dt.is_complex:
            return f"load_{self.code}({pointer}, {n})"
        if self.code == "f16":
            return f"clt_load_f16_float{n}({pointer})"
        if self.code == "bf16":
            return f"clt_load_bf16_float{n}({pointer})"
        return f"*(__global const u_{self.code} *)({pointer})"

    def vector_store(self, pointer: str, value: str) -> str:
        """Store a full vector; memory need only have the alignment of an element."""
        n = self.lanes
        if self.code == "f16":
            return f"clt_store_f16_float{n}({value}, {pointer})"
        if self.code == "bf16":
            return f"clt_store_bf16_float{n}({value}, {pointer})"
        return f"*(__global u_{self.code} *)({pointer}) = {value}"
