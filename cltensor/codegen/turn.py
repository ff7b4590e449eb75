"""OpenCL statements that transpose a square of elements held in vector registers: rows in, columns out.

Sub-squares whose rows have 16 bytes are transposed by interleaving the first half of their rows with the second half, log2(rows) times, for all
sub-squares side by side in the vectors at once; then the vectors exchange units of 16 bytes. Knows nothing of memory.
"""

from __future__ import annotations


def turn(n: int, lanes: int, kind: str) -> tuple[list[str], list[str]]:
    """Statements that transpose the square of `lanes` vectors r0, r1, … of type `kind`, and the columns' names.

    `n`: elements in 16 bytes.
    """
    lines: list[str] = []

    def join(a: str, b: str, picks: list[int]) -> str:
        lines.append(
            f"const {kind} q{len(lines)} = __builtin_shufflevector({a}, {b}, {', '.join(map(str, picks))});"
        )
        return f"q{len(lines) - 1}"

    def squares(rows: list[str]) -> list[str]:
        half = n // 2
        kept = [
            [
                at + k + other
                for at in range(part, lanes, n)
                for k in range(half)
                for other in (0, lanes)
            ]
            for part in (0, half)
        ]
        for _ in range(n.bit_length() - 1):
            rows = [
                join(a, b, picks)
                for a, b in zip(rows[:half], rows[half:], strict=True)
                for picks in kept
            ]
        return rows

    def exchange(rows: list[str]) -> list[str]:
        if len(rows) == 1:
            return rows
        parts = []
        for part in (0, n):
            picks = [
                other + at + k
                for other in (0, lanes)
                for at in range(part, lanes, 2 * n)
                for k in range(n)
            ]
            parts.append(
                exchange([join(a, b, picks) for a, b in zip(rows[::2], rows[1::2], strict=True)])
            )
        return [name for pair in zip(*parts, strict=True) for name in pair]

    turned = [squares([f"r{i}" for i in range(at, at + n)]) for at in range(0, lanes, n)]
    columns = [exchange(list(rows)) for rows in zip(*turned, strict=True)]
    return lines, [name for names in zip(*columns, strict=True) for name in names]
