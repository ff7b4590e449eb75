"""The running state of a reduction: fields, an update per element, a merge, results; as C text for any number of lanes.

A state has fields, of which partial results consist and which are merged at the end. It may have a block: short-lived
accumulators that are flushed into the fields every BLOCK steps, which keeps long sums accurate. C names are
`<prefix><field>`.
"""

from __future__ import annotations

from ...dtypes import dtype
from ..language import SIGNED, lanes_of

BLOCK = 128  # steps between flushes


def select(condition: str, yes: str, no: str) -> str:
    """Choose per lane. Uses `?:`, as `select()` is a call into the builtin library on PoCL, 3 to 7 times slower."""
    return f"({condition} ? {yes} : {no})"


class State:
    """One kind of reduction over values of a compute dtype."""

    name = ""
    needs_index = False  # `update` takes positions
    prime = False  # `first` looks at the first vector before any update
    scale = False  # the kernel takes a number from the host (a count, or degrees of freedom)
    light = True  # updates are so cheap that several independent accumulators pay
    # Schedules in which an update takes so long that memory would idle without prefetches of the next elements
    ahead: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    # Complex numbers may be reduced as vectors of real and imaginary parts in turn, as they lie in memory
    pairs = False
    paired: dtype | None = (
        None  # complex dtype of the results, where the kernel ends with pairs of real lanes
    )
    turns = False  # lanes are real and imaginary parts in turn

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
        """(name, C type, initial value) of the short-lived accumulators."""
        return ()

    def initial(self, first: str, kind: str, lanes: int) -> str:
        """Return the initial value of a field or accumulator of `lanes` numbers of C type `kind`."""
        return f"({lanes_of(kind, lanes)})({first})"

    def declare(self, p: str, lanes: int) -> list[str]:
        """Declare a fresh state."""
        return [
            f"{lanes_of(t, lanes)} {p}{n} = {self.initial(v, t, lanes)};"
            for n, t, v in (*self.fields, *self.block)
        ]

    def update(self, p: str, v: list[str], lanes: int, ok: str = "", index: str = "") -> list[str]:
        """Update the state `p` with values; `ok`: mask of lanes that count; `index`: the values' position."""
        raise NotImplementedError

    def flush(self, p: str, lanes: int) -> list[str]:
        """Move the block into the fields."""
        return []

    def first(self, p: str, v: list[str]) -> list[str]:
        """Look at the first values (see `prime`)."""
        return []

    def together(self, p: str, v: list[str], lanes: int, index: str = "") -> list[str]:
        """Update with several vectors of values at once, the first at position `index`.

        Empty if the state has no quicker way than `update` for each.
        """
        return []

    @property
    def beside(self) -> tuple[tuple[str, str, str], ...]:
        """(name, C type, initial value) of what `together` keeps in addition to fields and block, until `settle`."""
        return ()

    def settle(self, p: str, lanes: int) -> list[str]:
        """Move `beside` into the fields, at the end."""
        return []

    def merge(self, d: str, a: str, b: str, lanes: int) -> list[str]:
        """Merge the states `a` and `b` into `d`, which may be `a`."""
        raise NotImplementedError

    def results(self, p: str, lanes: int, origin: str) -> dict[str, tuple[str, dtype]]:
        """Return the final values by name: text and dtype. `origin`: the position where the part begins."""
        raise NotImplementedError

    def partial(self, p: str, lanes: int, origin: str) -> list[tuple[str, str]]:
        """Return a part's state as it is stored, field by field: text and C type of a lane."""
        return [(p + n, t + "2" * bool(self.paired)) for n, t, _ in self.fields]
