"""Native functions, which also return what backward needs, private functions, conversions of modules, against torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from parity.oracle import assert_same_error, assert_same_value, evaluate, th
from support import ct, data

LINES = [
    "torch.native_layer_norm(x, [4], w, b, 1e-5)",
    "torch.native_layer_norm(x, (3, 4), None, None, 1e-5)",
    "torch.native_layer_norm(x.bfloat16(), [4], w.bfloat16(), b.bfloat16(), 1e-5)[0]",
    "torch.native_group_norm(x, s, s, 2, 3, 4, 3, 1e-5)",
    "torch.native_group_norm(x, None, None, 2, 3, 4, 1, 1e-5)",
    "torch.native_batch_norm(x, s, s, r, q, True, 0.1, 1e-5), r, q",
    "torch.native_batch_norm(x, s, s, r, q, False, 0.1, 1e-5)",
    "torch.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5)",
    "torch.native_dropout(x, 0.0, True), torch.native_dropout(x, 0.5, False), torch.native_dropout(x, 1.0, True)",
    "torch._safe_softmax(m, -1), torch._safe_softmax(x, 1, dtype=torch.float64), torch.ops.aten._safe_softmax(m, -1)",
    "torch._softmax(x, -1, False), torch._log_softmax(x, 1, False)",
    "torch.autograd.grad((torch._safe_softmax(m.requires_grad_(), -1) * x).sum(), m)",
    "torch.autograd.grad(torch.native_layer_norm(x.requires_grad_(), [4], w, b, 1e-5)[0].pow(3).sum(), x)",
    "torch.autograd.grad(torch.native_batch_norm(x.requires_grad_(), s, s, r, q, True, 0.1, 1e-5)[0].pow(3).sum(), x)",
    "torch.autograd.grad(torch.native_group_norm(x.requires_grad_(), s, s, 2, 3, 4, 1, 1e-5)[0].pow(3).sum(), x)",
    "torch.autograd.grad([v.pow(3).sum() for v in torch.native_group_norm(x.requires_grad_(), s, s, 2, 3, 4, 1, 1e-5)], x)",
    "type(torch._safe_softmax(x.requires_grad_(), 0).grad_fn).__name__, type(torch.native_dropout(x, 0.5, True)[0].grad_fn).__name__",
    "torch._foreach_powsum([x, x[0]], 2), torch._foreach_powsum([x], 3), torch._foreach_powsum([x], 1, dtype=torch.float64)",
    "torch._foreach_powsum([x], 0), torch._foreach_powsum([x], 0.5), torch._foreach_powsum([x], float('inf'))",
    "torch._weight_norm(x[0], x[0, :, :1]), torch._weight_norm_interface(x[0], x[0, :1], 1), torch.norm_except_dim(x, 2, -1), torch.norm_except_dim(x)",
    "torch._embedding_bag(w4, i, o, mode=1), torch._embedding_bag(w4, i, o, mode=2, padding_idx=2)[0], torch._embedding_bag(w4, i, o)[0]",
    "torch.embedding_renorm_(w4.clone(), i, 1.0, 2.0), torch.alpha_dropout_(x.clone(), 0.5, False), torch.feature_dropout_(x.clone(), 1.0, True)",
    "torch._addmm_activation(e[:3], x[0], e), torch._addmm_activation(e[0], x[0], e, use_gelu=True, beta=0.5), e[:3]._addmm_activation(x[0], e, alpha=2), torch._addmm_activation(e[:3], x[0], e, out=torch.ones(3, 5))",
    "[torch._fused_sdp_choice(*v) for v in ((x[None],) * 3, (x,) * 3, (x[None], x[None], x[None], None, 0.1))]",
    "torch._scaled_dot_product_attention_math(x, x, x, is_causal=True, scale=0.3), torch._scaled_dot_product_attention_math(x, x, x, e[:3, :3] > 0)",
    "tuple(torch._scaled_dot_product_flash_attention_for_cpu(x[None], x[None], x[None])), torch._scaled_dot_product_flash_attention_for_cpu(x[None], x[None], x[None], 0.0, True)[1]",
    "torch._convolution(x, x[:, :, :3], None, [1], [1], [1], False, [0], 1, False, False, True)",
    "torch._softmax_backward_data(x, x.softmax(-1), -1, torch.float32), torch._log_softmax_backward_data(x, x.log_softmax(0), 0, torch.float32)",
    "torch._masked_softmax(e, e > 0, 1), torch._prelu_kernel(x, s[:, None]), torch._adaptive_avg_pool2d(x, (2, 2))",
    "torch._unique(i), torch._unique2(i, True, True), torch._unique2(i, return_counts=True), torch._aminmax(x), torch._aminmax(x, 1, True)",
    "torch._shape_as_tensor(x), torch._dim_arange(x, 1), torch._euclidean_dist(x[0], x[1]), torch._cast_Float(i), torch._cast_Byte(i)",
    "torch._is_all_true(x > 0), (x > 0)._is_any_true(), torch._trilinear(x[0], x[0], e[:3], [2], [2], [1], [0]), torch._stack([x, x], 1)",
    "torch._unsafe_index(x, [i % 2]), torch._unsafe_index_put(x, [i % 2], x[0], True), torch._logcumsumexp(x, 1)",
    "torch._index_put_impl_(x.clone(), [i % 2], x[0]), torch._conj_physical(x * 1j), torch._int_mm((x[0] * 9).to(torch.int8), (e * 9).to(torch.int8))",
    "torch._VF.norm(x), torch._vmap_internals.vmap(lambda v: v * 2)(x), torch._vmap_internals._vmap(torch.sum, 1)(x)",
    "torch.view_as_complex_copy(x[..., :2])",
    "torch._native_batch_norm_legit(x, s, s, r, q, True, 0.1, 1e-5), r, q, torch._native_batch_norm_legit(x, None, s, True, 0.1, eps=1e-5)",
    "torch.ops.aten._batch_norm_with_update(x, s, s, r, q, 0.1, 1e-5), r, q",
    "torch.ops.aten.native_dropout_backward(x, x > 0, 2.0)",
    "torch.ops.aten.slice(x, 1, 1, 9, 2), torch.ops.aten.slice.Tensor(x), torch.ops.aten.slice(x, -1, -3)",
    "torch.ops.aten._upsample_bilinear2d_aa(p, [3, 4], False), torch.ops.aten._upsample_bilinear2d_aa(p, [3, 4], True, 0.4, 0.6), torch.ops.aten._upsample_bilinear2d_aa.vec(p, None, False, [0.5, 0.7])",
    "[torch.ops.aten.max_pool2d_with_indices_backward(v.cos(), p, [3, 3], [2, 2], [1, 1], [1, 1], False, k) for v, k in [torch.nn.functional.max_pool2d(p, 3, 2, 1, return_indices=True)]]",
    "torch._unsafe_masked_index(x, (i < 3)[:, None], [i % 2, i % 4 - 1], 2.5), torch._unsafe_masked_index(x[:, :0], i < 3, [i], 1)",
    "torch._unsafe_masked_index_put_accumulate(x, (i < 3)[:, None], [i % 2, i % 4 - 1], x[0, 0] + i[:, None]), torch._unsafe_masked_index_put_accumulate(x[:0], i < 3, [i], x[0, 0] + i[:, None])",
    "torch._chunk_cat([x, x[:, :2], x[:, :, 1:]], 1, 2), torch._chunk_cat([e, s], 0, 3), torch._chunk_cat([s, r], -1, 4, out=torch.empty(4, 2))",
    "torch._int_mm((e * 9).to(torch.int8), (e * 9).to(torch.int8).t(), out=(o := torch.empty(4, 4, dtype=torch.int32))), o",
]  # fmt: skip
ERRORS = [
    "torch._int_mm(x[0], x[1])",
    "torch._scaled_dot_product_flash_attention_for_cpu(x[None], x[None], x[None], 0.1)",
    "torch._foreach_powsum([])",
    "torch._foreach_powsum([torch.arange(3)], 2)",
    "torch._softmax(x, -1, True)",
    "torch.ops.aten.slice(x, 3)",
    "torch.ops.aten.slice(s[0], 0)",
    "torch.ops.aten.slice(x, 0, None, None, 0)",
    "torch.ops.aten._upsample_bilinear2d_aa(p, None, False, None)",
    "torch.ops.aten._upsample_bilinear2d_aa(p, [3], False)",
    "torch.ops.aten._upsample_bilinear2d_aa(x, [3, 3], False)",
    "torch.ops.aten._upsample_bilinear2d_aa(p, [3, 3], False, [0.5, 0.5])",
    "torch._unsafe_masked_index(x, i < 3, [x], 0)",
    "torch._unsafe_masked_index_put_accumulate(x, i < 3, [i > 1], x)",
    "torch._chunk_cat([], 0, 2)",
    "torch.autograd.grad((torch._chunk_cat([e.requires_grad_(), e[:3]], 0, 3) ** 2).sum(), e)",
    "torch._chunk_cat([x], 3, 2)",
    "torch._chunk_cat([x], 0, 0)",
    "torch._chunk_cat([x, x.double()], 0, 2)",
    "torch._chunk_cat([x, x[:, :0]], 0, 2)",
    "torch._chunk_cat([x, x[:1]], 1, 2)",
]


def _arrays() -> dict[str, Any]:
    masked = data(2, 3, 4)
    masked[0, 0] = -float("inf")
    masked[1, 2, 1] = -float("inf")
    return {"x": data(2, 3, 4), "w": data(4, seed=1), "b": data(4, seed=2), "s": data(3, seed=3), "r": data(3, seed=4), "q": data(3, seed=5) ** 2, "m": masked, "e": data(4, 5, seed=6), "i": np.array([0, 2, 1, 5, 2]), "o": np.array([0, 2]), "w4": data(6, 4, seed=7), "p": data(2, 3, 7, 6, seed=8)}  # fmt: skip


@pytest.mark.parametrize("line", LINES)
def test_values(line: str) -> None:
    ours, theirs = evaluate(line, _arrays())
    assert ours.error is None, ours.error
    assert_same_value(ours.value, theirs.value)


@pytest.mark.parametrize("line", ERRORS)
def test_errors(line: str) -> None:
    assert_same_error(*evaluate(line, _arrays()))


def test_dropped_elements() -> None:
    x = ct.ones(1000).requires_grad_()
    out, kept = ct.native_dropout(x, 0.25, True)
    assert kept.dtype is ct.bool
    assert out.detach().cpu().numpy() == pytest.approx(kept.cpu().numpy() / 0.75)
    out.sum().backward()
    assert x.grad is not None
    assert x.grad.cpu().numpy() == pytest.approx(kept.cpu().numpy() / 0.75)


@pytest.mark.ours
def test_where_all_are_kept_nothing_is_drawn() -> None:
    before = ct.get_rng_state()
    out, kept = ct.native_dropout(ct.ones(1000), 0.0, True)
    assert kept.all() and (out == 1).all()
    assert ct.equal(ct.get_rng_state(), before)


@pytest.mark.parametrize(("overwrite", "swap"), [(False, False), (True, False), (True, True)])
def test_conversions_of_modules(overwrite: bool, swap: bool) -> None:
    found = []
    for module in (ct, th):
        future = module.__future__
        layer = module.nn.Linear(2, 2)
        layer(module.ones(1, 2)).sum().backward()
        future.set_overwrite_module_params_on_conversion(overwrite)
        future.set_swap_module_params_on_conversion(swap)
        found.append(_converted(module, layer))
    assert found[0] == found[1]


def _converted(module: Any, layer: Any) -> Any:
    """Convert a layer to float64, then reset the settings.

    Returns whether its weight is the same object as before, the weight's dtype and flag, and its gradient's dtype.
    """
    future = module.__future__
    first = id(layer.weight)
    try:
        layer.double()
        kept = id(layer.weight) == first
        grad = layer.weight.grad
        return (
            kept,
            str(layer.weight.dtype),
            layer.weight.requires_grad,
            grad is not None and str(grad.dtype),
        )
    finally:
        future.set_overwrite_module_params_on_conversion(False)
        future.set_swap_module_params_on_conversion(False)
