"""How the parts of a sharded tensor lie on a mesh of processes, said in torch's words: values that libraries make in their plans.

Only descriptions: no tensor here is sharded.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """How a tensor lies along one dim of a mesh."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Tell whether it is in parts, along `dim` if that is given."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Tell whether everybody has all of it."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Tell whether it is yet to be reduced, by `reduce_op` if that is given."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True, repr=False)
class Shard(Placement):
    """In parts along `dim`, as `chunk` makes them."""

    dim: int

    def __post_init__(self) -> None:
        if not hasattr(self.dim, "__index__"):
            raise TypeError(f"Shard(): argument 'dim' must be int, not {type(self.dim).__name__}")

    @staticmethod
    def local_shard_size_and_offset(
        curr_local_size: int, num_chunks: int, rank: int
    ) -> tuple[int, int]:
        """Return how many of `curr_local_size` elements part `rank` of `num_chunks` has, and the first's place."""
        if curr_local_size % num_chunks == 0:
            size = curr_local_size // num_chunks
            return size, size * rank
        size = -(-curr_local_size // num_chunks)
        start = min(size * rank, curr_local_size)
        return min(size, curr_local_size - start), start

    def __repr__(self) -> str:
        return f"Shard(dim={self.dim})"

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclass(frozen=True, repr=False)
class _StridedShard(Placement):
    """In parts along `dim` of each of `split_factor` groups."""

    dim: int
    split_factor: int = 1

    def __repr__(self) -> str:
        return f"_StridedShard(dim={self.dim}, sf={self.split_factor})"

    def __str__(self) -> str:
        return f"_S({self.dim}, {self.split_factor})"


@dataclass(frozen=True, repr=False)
class Replicate(Placement):
    """Whole everywhere."""

    def __repr__(self) -> str:
        return "Replicate()"

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True, repr=False)
class Partial(Placement):
    """To be reduced by `reduce_op` over everybody's."""

    reduce_op: str = "sum"

    def __post_init__(self) -> None:
        if not isinstance(self.reduce_op, str):
            given = type(self.reduce_op).__name__
            raise TypeError(f"Partial(): argument 'reduce_op' must be str, not {given}")

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"
