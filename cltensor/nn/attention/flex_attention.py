"""`torch.nn.attention.flex_attention`: attention whose scores and mask are given as functions of indices.

These functions are called once, with tensors of indices that broadcast to the scores, and what they compute fuses with
the scale. Owns the block masks, which are kept as dense tensors of blocks here. Does not use attention's kernels, which
take no functions.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ... import creation
from ...dtypes import bool as bool_type
from ...tensor import Tensor

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

_DEFAULT_SPARSE_BLOCK_SIZE = 128
_DEFAULT_SIZE = _DEFAULT_SPARSE_BLOCK_SIZE


class AuxRequest(NamedTuple):
    """What `flex_attention` should return besides the result."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What `flex_attention` returned besides the result: log-sum-exps, and the largest scores."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def _indices(sizes: tuple[int, ...], device: Any) -> list[Tensor]:
    """Return the indices of each dim, which broadcast against one another."""
    shapes = ([-1 if i == j else 1 for j in range(len(sizes))] for i in range(len(sizes)))
    return [
        creation.arange(n, device=device).view(*shape)
        for n, shape in zip(sizes, shapes, strict=True)
    ]


def noop_mask(batch: Any, head: Any, token_q: Any, token_kv: Any) -> Any:
    """Let every query see every key."""
    return (batch + head + token_q + token_kv) >= 0


def and_masks(*mask_mods: Callable[..., Any]) -> Callable[..., Any]:
    """Return a mask function that is true where all of the given ones are. RuntimeError for what is no function."""
    return _joined(mask_mods, "and_masks", lambda a, b: a & b)


def or_masks(*mask_mods: Callable[..., Any]) -> Callable[..., Any]:
    """Return a mask function that is true where any of the given ones is. RuntimeError for what is no function."""
    return _joined(mask_mods, "or_masks", lambda a, b: a | b)


def _joined(
    mods: tuple[Any, ...], name: str, join: Callable[[Any, Any], Any]
) -> Callable[..., Any]:
    if not all(map(callable, mods)):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mods}")

    def joined(b: Any, h: Any, q: Any, kv: Any) -> Any:
        made = None
        for mod in mods:
            one = mod(b, h, q, kv)
            made = one if made is None else join(made, one)
        return made

    joined.__name__ = name
    return joined


def _wanted(mod: Callable[..., Any]) -> int:
    """Return how many arguments a function must be given."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    found = inspect.signature(mod).parameters.values()
    return sum(p.kind in kinds and p.default is p.empty for p in found)


def create_mask(
    mod_fn: Callable[..., Any], B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None,
) -> Tensor:  # fmt: skip
    """Return the mask (B, H, Q_LEN, KV_LEN) computed by a function of the four indices; B and H of None count as 1.

    A function of five arguments changes scores: the result is then the scores it computes from zeros.
    """
    sizes = (B or 1, H or 1, Q_LEN, KV_LEN)
    indices = _indices(sizes, device)
    if _wanted(mod_fn) == 5:
        return mod_fn(creation.zeros(sizes, device=device), *indices).expand(sizes)
    return mod_fn(*indices).to(bool_type).expand(sizes).contiguous()


class BlockMask:
    """A mask, with which blocks of queries and keys have anything visible, and which are visible entirely."""

    def __init__(
        self, seq_lengths: tuple[int, int], blocks: Tensor, full: Tensor, BLOCK_SIZE: tuple[int, int], mask_mod: Callable[..., Any],
    ) -> None:  # fmt: skip
        self.seq_lengths, self.BLOCK_SIZE, self.mask_mod = seq_lengths, BLOCK_SIZE, mask_mod
        self._blocks, self._full = blocks, full
        partial = blocks & ~full
        self.kv_num_blocks, self.kv_indices = _ordered(partial)
        self.full_kv_num_blocks, self.full_kv_indices = _ordered(full)
        self.q_num_blocks, self.q_indices = _ordered(partial.transpose(-2, -1))
        self.full_q_num_blocks, self.full_q_indices = _ordered(full.transpose(-2, -1))

    @property
    def shape(self) -> tuple[int, ...]:
        """Batches, heads, queries and keys."""
        return (*self._blocks.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """Return how many pairs of queries and keys there are."""
        return math.prod(self.shape)

    def to_dense(self) -> Tensor:
        """Return 1 for each block in which anything is visible, else 0."""
        return self._blocks.int()

    def sparsity(self) -> float:
        """Return the percentage of pairs that lie in blocks without anything visible."""
        seen = int(self._blocks.sum()) * math.prod(self.BLOCK_SIZE)
        return 100.0 * (1.0 - seen / self.numel())

    def to(self, device: Any) -> BlockMask:
        """Return the mask on another device."""
        blocks, full = self._blocks.to(device), self._full.to(device)
        return BlockMask(self.seq_lengths, blocks, full, self.BLOCK_SIZE, self.mask_mod)

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, BLOCK_SIZE={self.BLOCK_SIZE})"


def _ordered(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """Return the number of marked blocks in each row, and the indices of all its blocks, the marked ones first."""
    order = blocks.int().argsort(dim=-1, descending=True, stable=True)
    return blocks.int().sum(-1).int(), order.int().contiguous()


def create_block_mask(
    mask_mod: Callable[..., Any], B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SIZE, _compile: bool = False, **options: Any,
) -> BlockMask:  # fmt: skip
    """Return the block mask computed by a function of batch, head, query and key.

    AssertionError for other functions.
    """
    if _wanted(mask_mod) != 4:
        raise AssertionError(
            f"create_block_mask requires a mask_mod function, of 4 indices: {mask_mod}"
        )
    rows, cols = BLOCK_SIZE if isinstance(BLOCK_SIZE, tuple) else (BLOCK_SIZE, BLOCK_SIZE)
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    down, right = -Q_LEN % rows, -KV_LEN % cols
    padded = creation.zeros(
        (*mask.shape[:2], Q_LEN + down, KV_LEN + right), dtype=bool_type, device=mask.device
    )
    padded[..., :Q_LEN, :KV_LEN] = mask
    tiles = padded.view(*mask.shape[:2], (Q_LEN + down) // rows, rows, -1, cols)
    tiles = tiles.transpose(3, 4).flatten(4)
    return BlockMask((Q_LEN, KV_LEN), tiles.any(-1), tiles.all(-1), (rows, cols), mask_mod)


def flex_attention(
    query: Tensor, key: Tensor, value: Tensor, score_mod: Callable[..., Any] | None = None, block_mask: BlockMask | None = None,
    scale: float | None = None, enable_gqa: bool = False, return_lse: bool = False, kernel_options: Any = None,
    *, return_aux: AuxRequest | None = None,
) -> Any:  # fmt: skip
    """Attend, with scores changed by `score_mod(score, batch, head, query, key)`, where `block_mask` allows it.

    enable_gqa: groups of query heads share a head of keys and values. Rows that see nothing are zero. ValueError where
    heads or sizes do not fit.
    """
    if query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    heads, shared = query.shape[1], key.shape[1]
    if heads != shared:
        if not enable_gqa:
            raise ValueError(
                f"Expect query and key/value to have the same number of heads but got Hq={heads} and Hkv={shared}. "
                "Try setting enable_gqa=True for GQA."
            )
        if heads % shared:
            raise ValueError(
                f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={heads} and Hkv={shared}."
            )
        key, value = (t.repeat_interleave(heads // shared, 1) for t in (key, value))
    scores = (query @ key.transpose(-2, -1)) * (query.shape[-1] ** -0.5 if scale is None else scale)
    indices = _indices(tuple(scores.shape), query.device)
    if score_mod is not None:
        scores = score_mod(scores, *indices)
    if block_mask is not None:
        wanted = block_mask.seq_lengths
        if wanted[0] < query.shape[2] or wanted[1] < key.shape[2]:
            raise ValueError(
                f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={query.shape[2]} and "
                f"kv_len={key.shape[2]}. As the block mask was created for a smaller length than you're using it for, you likely need to create a new block mask."
            )
        scores = scores.masked_fill(~block_mask.mask_mod(*indices), -math.inf)
    lse = scores.logsumexp(-1, keepdim=True)
    weights = (scores - lse.masked_fill(lse == -math.inf, 0.0)).exp()
    out = weights.to(query.dtype) @ value
    if return_aux is not None:
        largest = scores.amax(-1) if return_aux.max_scores else None
        return out, AuxOutput(lse.squeeze(-1) if return_aux.lse else None, largest)
    return (out, lse.squeeze(-1)) if return_lse else out
