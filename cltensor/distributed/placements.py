"""torch's descriptions of how a tensor is distributed over a mesh of processes, which libraries make in their plans.

Descriptions only: no tensor is sharded here.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """How a tensor is distributed along one dim of a mesh."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Tell whether the tensor is divided into shards, along `dim` if that is given."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Tell whether every process has the whole tensor."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Tell whether the processes' values are yet to be reduced, by `reduce_op` if that is given."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True, repr=False)
class Shard(Placement):
    """Divided along `dim`, into the parts that `chunk` makes."""

    dim: int

    def __post_init__(self) -> None:
        if not hasattr(self.dim, "__index__"):
            raise TypeError(f"Shard(): argument 'dim' must be int, not {type(self.dim).__name__}")

    @staticmethod
    def local_shard_size_and_offset(
        curr_local_size: int, num_chunks: int, rank: int
    ) -> tuple[int, int]:
        """Return the size of part `rank` of `num_chunks` of `curr_local_size` elements, and where it begins."""
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
    """Divided along `dim` in each of `split_factor` groups."""

    dim: int
    split_factor: int = 1

    def __repr__(self) -> str:
        return f"_StridedShard(dim={self.dim}, sf={self.split_factor})"

    def __str__(self) -> str:
        return f"_S({self.dim}, {self.split_factor})"


@dataclass(frozen=True, repr=False)
class Replicate(Placement):
    """The whole tensor in every process."""

    def __repr__(self) -> str:
        return "Replicate()"

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True, repr=False)
class Partial(Placement):
    """Values yet to be reduced over all processes, by `reduce_op`."""

    reduce_op: str = "sum"

    def __post_init__(self) -> None:
        if not isinstance(self.reduce_op, str):
            given = type(self.reduce_op).__name__
            raise TypeError(f"Partial(): argument 'reduce_op' must be str, not {given}")

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"
