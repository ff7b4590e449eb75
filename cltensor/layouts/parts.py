"""Cutting a dimension into pieces: their lengths and bounds."""

from __future__ import annotations

from collections.abc import Sequence


def split_sizes(size: int, split: int | Sequence[int], dim: int = 0) -> list[int]:
    """Return the lengths of the pieces of a dimension of `size`.

    RuntimeError when they do not fit.
    """
    if isinstance(split, int):
        if split < 0:
            raise RuntimeError(
                f"split expects split_size be non-negative, but got split_size={split}"
            )
        if split == 0:
            if size:
                raise RuntimeError(
                    "split_size can only be 0 if dimension size is 0, but got dimension size of "
                    f"{size}"
                )
            return [0]
        return [min(split, size - start) for start in range(0, size, split)] or [0]
    if any(length < 0 for length in split):
        raise RuntimeError(
            "split_with_sizes expects split_sizes have only non-negative entries, but got "
            f"split_sizes={list(split)}"
        )
    if sum(split) != size:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size at dimension {dim}), but got split_sizes={list(split)}"
        )
    return list(split)


def chunk_sizes(size: int, chunks: int) -> list[int]:
    """Return the lengths of at most `chunks` equal pieces (the last may be shorter)."""
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    if size == 0:
        return [0] * chunks
    return split_sizes(size, -(-size // chunks))


def tensor_split_bounds(size: int, sections: int | Sequence[int]) -> list[tuple[int, int]]:
    """Return (start, stop) of each of `sections` near-equal pieces, or cut at given indices."""
    if isinstance(sections, int):
        if sections <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
        small, extra = divmod(size, sections)
        cuts = [i * small + min(i, extra) for i in range(1, sections)]
    else:
        cuts = list(sections)
    starts, stops = [0, *cuts], [*cuts, size]
    return [slice(a, b).indices(size)[:2] for a, b in zip(starts, stops, strict=True)]
