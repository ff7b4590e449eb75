"""Random words drawn ahead of the chain that reads them, for the CPU schedule of the pointwise family.

Owns which nodes of a program are draws, which parts of their words are read, and the text that fills and reads the arrays
of words (cl_kernels/random/words.cl). Knows nothing of the distributions that are made from the words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .language import lanes_of

if TYPE_CHECKING:
    from .pointwise import Program

# The formulas of draws; the stream of random numbers that each draws from; the formulas that read the lower or the
# upper half of a 64-bit word.
BITS, MORE, WORD = "philox_bits(x, y, z)", "philox_more(x, y, z)", "philox_word(x, y, z)"
STREAMS = {BITS: 0, MORE: 1, WORD: 0}
LOWER, UPPER = "x & 4294967295", "shr(x, 40) & 16777215"
# Elements whose words are drawn at once (CLT_DRAWN): those of the 8 vectors of 8 Philox blocks that are computed side by
# side; twice as many where all words have 32 bits.
COUNT = 128


class Draw(NamedTuple):
    """A draw of a program: the node that draws, its arguments, and which parts of its words are read."""

    node: int  # number of the node in the program
    stream: int  # of STREAMS
    seed: str  # name of the kernel's parameter
    offset: str  # name of the kernel's parameter
    # Which words the array holds: "all" (64-bit words), "apart" (their lower halves, then their upper ones) or "short"
    # (32-bit words). Part of the name of the function that fills it.
    form: str
    many: int = COUNT  # elements whose words are drawn at once, the same for all draws of a program

    @property
    def array(self) -> str:
        """Return the declaration of the array of words."""
        kind, count = (
            ("ulong", self.many)
            if self.form == "all"
            else ("uint", self.many * (1 + (self.form == "apart")))
        )
        return f"{kind} words{self.node}[{count}] __attribute__((aligned(128)));"

    @property
    def fill(self) -> str:
        """Return the statement that fills the array for `many` elements, from `first` on, a multiple of 4."""
        share = 2 if self.form == "short" else 1
        return (
            f"clt_drawn_{self.form}((ulong)({self.offset} + (first >> {share})), (ulong){self.seed}, "
            f"{self.stream}, words{self.node});"
        )

    def read(self) -> str:
        """Return the text that reads a vector of whole words, from `at` on."""
        return f"*(const clt_drawn_words *)(words{self.node} + at)"

    def read_half(self, text: str, lanes: int) -> str:
        """Return the text that reads, from `at` on, a vector of the halves that the formula `text` takes of words."""
        if text == LOWER:
            return f"*(const clt_drawn_halves *)(words{self.node} + at)"
        upper = f"*(const clt_drawn_halves *)(words{self.node} + {self.many} + at)"
        return f"as_{lanes_of('int', lanes)}({upper} >> 8)"


def draws(program: Program) -> dict[int, Draw]:
    """Return the draws of a program that can be made ahead of the chain, by the number of their node."""
    found: dict[int, Draw] = {}
    stored = {ref for ref, _, _ in program.outputs}
    for number, node in enumerate(program.nodes):
        stream = STREAMS.get(node.op.text)
        if stream is None or [kind for kind, _ in node.args] != ["t", "k", "k"]:
            continue
        (_, index), (_, seed), (_, offset) = node.args
        if program.nodes[index].op.name != "index":
            continue
        ref = ("t", number)
        texts = {n.op.text for n in program.nodes if ref in n.args}
        apart = ref not in stored and texts <= {LOWER, UPPER}
        form = "apart" if apart else "all"
        if node.op.text == WORD:
            if not apart or UPPER in texts:
                continue
            form = "short"
        found[number] = Draw(number, stream, f"k{seed}_", f"k{offset}_", form)
    if all(draw.form == "short" for draw in found.values()):
        return {n: draw._replace(many=2 * COUNT) for n, draw in found.items()}
    return found
