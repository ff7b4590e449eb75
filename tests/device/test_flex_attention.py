"""Attention whose scores and masks are given by functions of indices: values, gradients, block masks, refusals."""

from __future__ import annotations

import math
from typing import Any

import pytest

import cltensor as torch
from cltensor.nn.attention import flex_attention as flex
from cltensor.testing import assert_close


def causal(b: Any, h: Any, q: Any, kv: Any) -> Any:
    return q >= kv


def window(b: Any, h: Any, q: Any, kv: Any) -> Any:
    return q - kv < 4


def operands(dev: Any, shared: int = 4) -> list[Any]:
    torch.manual_seed(0)
    shapes = ((2, 4, 10, 8), (2, shared, 12, 8), (2, shared, 12, 8))
    return [torch.randn(s, device=dev, requires_grad=True) for s in shapes]


def test_scores_and_masks_are_those_of_the_functions(dev: Any) -> None:
    q, k, v = operands(dev)
    table = torch.randn(4, 10, 12, device=dev)
    mask = flex.create_block_mask(flex.and_masks(causal, window), None, None, 10, 12, dev, 4)
    out = flex.flex_attention(
        q, k, v, lambda s, b, h, i, j: s + table[h, i, j] + b, block_mask=mask, scale=0.3
    )
    grads = torch.autograd.grad(out.square().sum(), (q, k, v))
    i, j = torch.arange(10, device=dev)[:, None], torch.arange(12, device=dev)
    scores = q @ k.mT * 0.3 + table + torch.arange(2, device=dev).view(2, 1, 1, 1)
    plain = scores.masked_fill(~((i >= j) & (i - j < 4)), -math.inf).softmax(-1) @ v
    assert_close(out, plain)
    for a, b in zip(grads, torch.autograd.grad(plain.square().sum(), (q, k, v)), strict=True):
        assert_close(a, b)


def test_rows_that_see_nothing_are_zero(dev: Any) -> None:
    q, k, v = operands(dev)
    mask = flex.create_block_mask(lambda b, h, i, j: (j >= 0) & (i != 5), 2, 4, 10, 12, dev, 4)
    out, lse = flex.flex_attention(q, k, v, block_mask=mask, return_lse=True)
    assert out[:, :, 5].abs().max().item() == 0
    assert bool((lse[:, :, 5] == -math.inf).all())
    (grad,) = torch.autograd.grad(out.sum(), q)
    assert bool(torch.isfinite(grad).all())


def test_groups_of_heads_share_keys(dev: Any) -> None:
    q, k, v = operands(dev, 2)
    out = flex.flex_attention(q, k, v, enable_gqa=True)
    many = [t.repeat_interleave(2, 1) for t in (k, v)]
    assert_close(out, torch.nn.functional.scaled_dot_product_attention(q, *many))
    with pytest.raises(ValueError, match="Try setting enable_gqa=True"):
        flex.flex_attention(q, k, v)


def test_blocks(dev: Any) -> None:
    mask = flex.create_block_mask(flex.or_masks(causal, flex.noop_mask), 1, 1, 8, 8, dev, 4)
    assert mask.full_kv_num_blocks.tolist() == [[[2, 2]]]
    mask = flex.create_block_mask(flex.and_masks(causal, window), None, None, 10, 12, dev, 4)
    assert mask.to_dense().tolist() == [[[[1, 0, 0], [1, 1, 0], [0, 1, 1]]]]
    assert (mask.shape, mask.numel()) == ((1, 1, 10, 12), 120)
    assert mask.kv_num_blocks.tolist() == [[[1, 2, 2]]]
    assert mask.kv_indices.tolist() == [[[[0, 1, 2], [0, 1, 2], [1, 2, 0]]]]
    assert mask.q_num_blocks.tolist() == [[[2, 2, 1]]]
    assert mask.sparsity() == pytest.approx(100 / 3)
    with pytest.raises(AssertionError, match="requires a mask_mod function"):
        flex.create_block_mask(lambda q: q, 1, 1, 3, 3, dev)
    q, k, v = operands(dev)
    with pytest.raises(ValueError, match="but got q_len=10 and kv_len=12"):
        flex.flex_attention(
            q, k, v, block_mask=flex.create_block_mask(causal, None, None, 3, 3, dev)
        )
