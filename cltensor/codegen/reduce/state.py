"""What every running state of a reduction is: fields, an update per element, a merge, results; as C text for any number of lanes.

A state has fields (merged at the end, and what partial results consist of) and may have a block: short-lived accumulators
flushed into the fields every few steps, which is what keeps long sums accurate. Names are `<prefix><field>`.
"""

from __future__ import annotations

from ...dtypes import dtype
from ..language import SIGNED, lanes_of

BLOCK = 128  # steps between flushes


def select(condition: str, yes: str, no: str) -> str:
    """Choose per lane. The operator, not `select()`: that is a call into the builtin library on PoCL, 3 to 7 times slower."""
    return f"({condition} ? {yes} : {no})"


class State:
    """One kind of reduction over values of a compute dtype."""

    name = ""
    needs_index = False
    prime = False  # wants its first vector before it starts
    scale = False  # takes a number from the host (a count, or degrees of freedom)
    light = True  # worth several independent accumulators
    ahead = False  # whether an element takes so long that memory would wait, unless it is asked for the next ones
    headers: tuple[str, ...] = ()
    pairs = (
        False  # whether complex numbers may be reduced as vectors of parts, in the order of memory
    )
    paired: dtype | None = None  # what pairs of values are that leave the kernel as one
    turns = False  # whether lanes are real and imaginary parts in turn

    def __init__(self, compute: dtype, *, merging: bool = False) -> None:
        self.dt, self.base = compute, compute.reg
        self.merging = merging
        self.index = "long" if merging or compute.itemsize == 8 else "int"
        self.mask = SIGNED[self.base]

    @property
    def fields(self) -> tuple[tuple[str, str, str], ...]:
        """(name, C type, initial value) of what partial results hold."""
        raise NotImplementedError

    @property
    def block(self) -> tuple[tuple[str, str, str], ...]:
        """The same for the short-lived accumulators."""
        return ()

    def initial(self, first: str, kind: str, lanes: int) -> str:
        """A field or accumulator of `lanes` numbers of a C type, as it is before anything is seen."""
        return f"({lanes_of(kind, lanes)})({first})"

    def declare(self, p: str, lanes: int) -> list[str]:
        """Declare a fresh state."""
        return [
            f"{lanes_of(t, lanes)} {p}{n} = {self.initial(v, t, lanes)};"
            for n, t, v in (*self.fields, *self.block)
        ]

    def update(self, p: str, v: list[str], lanes: int, ok: str = "", index: str = "") -> list[str]:
        """Take in values; `ok` masks lanes, `index` is their position."""
        raise NotImplementedError

    def flush(self, p: str, lanes: int) -> list[str]:
        """Move the block into the fields."""
        return []

    def first(self, p: str, v: list[str]) -> list[str]:
        """Look at the first values (see `prime`)."""
        return []

    def together(self, p: str, v: list[str], lanes: int, index: str = "") -> list[str]:
        """See several vectors of values at once, the first at position `index`; nothing where that is no quicker than one by one."""
        return []

    @property
    def beside(self) -> tuple[tuple[str, str, str], ...]:
        """(name, C type, initial value) of what `together` keeps beside fields and block until `settle`."""
        return ()

    def settle(self, p: str, lanes: int) -> list[str]:
        """Move what is kept beside into the fields, at the end."""
        return []

    def merge(self, d: str, a: str, b: str, lanes: int) -> list[str]:
        """Store into `d` what states `a` and `b` have seen; `d` may be `a`."""
        raise NotImplementedError

    def results(self, p: str, lanes: int, origin: str) -> dict[str, tuple[str, dtype]]:
        """Name the final values: text and dtype. `origin` is the position the part began at."""
        raise NotImplementedError

    def partial(self, p: str, lanes: int, origin: str) -> list[tuple[str, str]]:
        """What a part hands on, field by field: text and C type of a lane."""
        return [(p + n, t + "2" * bool(self.paired)) for n, t, _ in self.fields]
