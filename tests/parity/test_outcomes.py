"""What a line of everyday code gives, or how it is refused: value, words of the error and warnings are torch's."""

from __future__ import annotations

import pickle
import types
from typing import Any

import numpy as np
import pytest
from parity.oracle import Ran, assert_same_error, assert_same_value, ct, first_line, lines, th

LINES = """
F.cosine_embedding_loss(torch.ones(5, 2), torch.ones(5, 2), torch.ones(5, 1))
F.cosine_embedding_loss(torch.ones(5, 2), torch.ones(2), torch.ones(2))
F.cosine_embedding_loss(torch.ones(5), torch.ones(5), torch.tensor(-1))
F.cosine_similarity(torch.ones(3, 4, dtype=torch.int8), torch.ones(3, 4, dtype=torch.int8))
F.cosine_similarity(torch.ones(3, 4, dtype=torch.int64), torch.ones(3, 4))
F.kl_div(torch.ones(3), torch.ones(3))
F.kl_div(torch.ones(2, 3), torch.ones(2, 3), reduction="batchmean")
torch.kl_div(torch.ones(3), torch.ones(3))
F.soft_margin_loss(torch.ones(3, 2), torch.ones(3, 3))
F.nll_loss(torch.ones(3), torch.zeros(3, dtype=torch.int64))
F.nll_loss(torch.ones(3), torch.tensor([1]), reduction="none")
F.nll_loss(torch.ones(3, 4), torch.zeros(3, 2, dtype=torch.int64))
F.nll_loss(torch.ones(3, 4, 2), torch.ones(3, 3))
F.nll_loss(torch.ones(3, 4, 2, 2), torch.zeros(3, 2, 3, dtype=torch.int64))
F.nll_loss(torch.ones(3, 4, 2, 2), torch.zeros(3, 2, dtype=torch.int64))
F.cross_entropy(torch.ones(3), torch.zeros(3, dtype=torch.int64))
F.cross_entropy(torch.ones(3), torch.zeros(2, dtype=torch.int64))
F.cross_entropy(torch.ones(3), torch.tensor([1]), reduction="none")
F.cross_entropy(torch.ones(3, 4), torch.ones(3, 4), ignore_index=2)
F.cross_entropy(torch.ones(3, 4), torch.ones(3, 4), weight=torch.ones(3))
F.cross_entropy(torch.ones(5, 0), torch.ones(5, 0))
F.glu(torch.tensor(1.0))
F.group_norm(torch.ones(1, 3), 3)
F.batch_norm(torch.ones(1, 3), None, None, training=True)
F.rms_norm(torch.ones(2, 3), (2, 3, 1))
F.rms_norm(torch.ones(2, 3), (2, 2))
F.pad(torch.ones(2, 3), (1,))
F.pad(torch.ones(2), (1, 1, 1, 1))
F.pad(torch.ones(3), (1, 1), mode="reflect")
F.pad(torch.ones(1, 3), (1, 1), mode="reflect", value=2)
F.fold(torch.ones(1, 12, 12), (4, 5), (2, 2), dilation=(8, 8))
F.scaled_dot_product_attention(*[torch.ones(1, 2, 3)] * 3, attn_mask=torch.ones(2, 2), is_causal=True)
F.dropout1d(torch.ones(2, 2, 2, 2))
F.dropout2d(torch.ones(2, 2, 2), 0.0)
F.dropout2d(torch.ones(2, 2), 0.0)
F.dropout3d(torch.ones(2, 2), 0.0)
F.feature_alpha_dropout(torch.ones(2), training=True)
F.dropout(torch.ones(2, 3, 4, 5).contiguous(memory_format=torch.channels_last), 1e-9).stride()
torch.addcmul(torch.ones(2), 2.0, torch.ones(2))
torch.addcdiv(1, torch.ones(2), torch.ones(2))
torch.searchsorted(torch.ones(2) * 1j, torch.ones(2))
torch.searchsorted(torch.ones(2, dtype=torch.bool), torch.ones(2, dtype=torch.bool))
torch.linalg.norm(torch.ones(2, 2), dim=())
torch.linalg.norm(torch.ones(2, 2), dim=[0, 1, 1])
torch.add(torch.ones(2), torch.ones(2), 3)
torch.addmm(*[torch.ones(2, 2)] * 3, beta=torch.tensor(2.0), alpha=torch.tensor(3))
torch.baddbmm(*[torch.ones(1, 2, 2)] * 3, alpha=torch.tensor(2.0))
torch.add(x1=torch.ones(2), x2=torch.ones(2))
torch.where(torch.ones(2) > 0, x1=torch.ones(2), x2=torch.zeros(2))
torch.matmul(x=torch.ones(2, 2), x2=torch.ones(2))
torch.clamp(a=torch.ones(2), max=0.5)
torch.flip(x=torch.arange(3), dims=(0,))
torch.sum(torch.ones(2), dim=0, axis=0)
torch.logcumsumexp(torch.tensor([complex(float("-inf"), 1), 2, 3]), 0)
torch.logcumsumexp(torch.tensor([0, 3.1415926j], dtype=torch.complex128), 0).real < -16
torch.Tensor._make_subclass(nn.Parameter, torch.ones(2)).requires_grad
torch.Tensor._make_subclass(nn.Parameter, torch.ones(2) * 2, True)
torch.Tensor._make_subclass(int, torch.ones(2))
torch.Tensor._make_subclass(nn.Parameter, torch.ones(2, dtype=torch.int64), True)
(lambda x: torch.autograd.grad([F.relu(x).sum(), F.hardshrink(x).sum()], x)[0])(torch.tensor([float("nan")] * 16, requires_grad=True))
torch.quasirandom.SobolEngine(6).fast_forward(5).draw_base2(0)
torch.quasirandom.SobolEngine(6).draw_base2(3)
torch.quasirandom.SobolEngine(6).fast_forward(1).draw_base2(1)
torch.quasirandom.SobolEngine(0)
repr(torch.quasirandom.SobolEngine(3, True, seed=2))
F.relu("a")
F.relu(3)
F.elu(torch.ones(2, dtype=torch.int64))
F.leaky_relu([1.0])
F.layer_norm(torch.ones(2, 4), 4)
F.pad(torch.ones(2, 4), 1)
torch.full(2, 3.0)
torch.ones(2).new_full(2, 3.0)
torch.zeros([2, "a"])
torch.zeros(2.5)
torch.zeros([2.5, 1])
torch.zeros(2).copy_(3)
torch.zeros(2, dtype=torch.int64).copy_(True)
torch.zeros(3, 4).copy_(torch.ones(3))
torch.zeros(4).copy_(torch.ones(3, 4))
torch.zeros(4).copy_("a")
torch.cdist(torch.ones(2, 4), torch.ones(2, 3, dtype=torch.int64))
nn.Linear(2, 3).to("cpu", True)
nn.Linear(2, 3).to(torch.float32, "cpu")
nn.Linear(2, 3).to("cpu", torch.float64, copy=False)
nn.Linear(2, 3).to("cpu", float, True).weight.dtype
nn.Linear(2, 3).to(torch.ones(1, dtype=torch.float64), True).weight.dtype
nn.LazyLinear(2).share_memory()
str(nn.LazyLinear(2).load_state_dict(nn.LazyLinear(2).state_dict()))
nn.Conv2d(3, 4, (3, 3, 3))(torch.ones(1, 3, 5, 5))
pickle.loads(pickle.dumps(torch.ones(2, requires_grad=True) * 2))
torch.cuda.is_tf32_supported()
torch.ones(1).expand(6).masked_fill_(torch.tensor([True, False, True, True, False, False]), 0.0)
torch.ones(1).expand(6).index_put_((torch.tensor([True, False] * 3),), torch.tensor(2.0))
torch.ones(1).expand(6).index_fill_(0, torch.tensor([2, 0]), 3.0)
torch.ones(1).expand(6).index_put_((torch.tensor([2, 0]),), torch.ones(2))
[x.index_add_(0, torch.tensor([2, 1]), x[:2]) for x in [torch.ones(4)]]
[x.index_copy_(0, torch.tensor([2, 1]), x[2:]) for x in [torch.ones(4)]]
[x.scatter_(0, x, 1) for x in [torch.tensor([2, 1, 0])]]
[x.put_(torch.tensor([2, 1]), x[1:3]) for x in [torch.ones(4)]]
[x.__setitem__(torch.tensor([2, 1]), x[:2]) for x in [torch.ones(4)]]
(torch.set_warn_always(True), torch.tensor([1 + 2j]).float(), torch.set_warn_always(False))
(torch.set_warn_always(True), torch.zeros(1).copy_(torch.tensor([1 + 2j])), torch.set_warn_always(False))
torch.tensor([float("inf"), float("nan"), -1e20, 3e9, -1.5] * 4).to(torch.int32)
torch.tensor([float("inf"), float("nan"), -1e20, 70000.0, -1.5] * 4, dtype=torch.float64).to(torch.int16)
torch.tensor([float("inf"), float("nan"), -1e20, 300.0, -1.5] * 4).to(torch.uint8)
torch.addcmul(torch.tensor([3]), torch.tensor([2]), torch.tensor([5]), value=1.5)
torch.addcmul(torch.ones(1), torch.ones(1), torch.ones(1), value=1j)
torch.addcmul(torch.tensor([True]), torch.tensor([True]), torch.tensor([True]))
torch.addcmul(torch.ones(1), torch.ones(1), torch.ones(1), value=torch.ones((), requires_grad=True))
torch.addr(torch.ones(1, 1, dtype=torch.int64), torch.tensor([1]), torch.tensor([1]), beta=0.5)
torch.add(torch.ones(2), torch.ones(2), alpha=np.float32(2))
torch.add(torch.ones(2), torch.ones(2), alpha="a")
torch.full((2,), torch.ones((), requires_grad=True))
torch.ones(2).clamp(np.float32(2))
torch.lerp(torch.zeros(2), torch.ones(2), torch.tensor(1))
F.leaky_relu(-torch.ones(2), np.float32(0.5))
F.leaky_relu(-torch.ones(2), None)
torch.sum(torch.ones(2), 0, dtype=torch.float64, out=torch.zeros(()))
torch.cumsum(torch.ones(2, dtype=torch.int8), 0, dtype=torch.int16, out=torch.zeros(2, dtype=torch.int64))
torch.sum(torch.tensor([1.5, 1.5]), 0, out=torch.zeros((), dtype=torch.int64))
torch.softmax(torch.ones(2), 0, out=torch.zeros(2, dtype=torch.float64))
torch.linalg.vector_norm(torch.ones(2), out=torch.zeros((), dtype=torch.float64))
torch.nansum(torch.tensor([1j]))
torch.sum(torch.zeros([1] * 65), 0)
torch.histogram(torch.tensor([1.0, 5.0]), 2, range=(1.0, 1.0))
torch.logcumsumexp(torch.tensor([complex(float("inf"), float("inf")), 1, 2]), 0)
torch.tensor([[[1, 2, 3]], [[]]])
torch.tensor([[], [1]])
torch.tensor([1, [2]])
torch.tensor(["a"])
torch.ones(2, 3, 4).H
torch.ones(2, dtype=torch.complex64).abs_()
torch.testing.make_tensor((2,), dtype=torch.float64, device="cpu", low=10**399, high=10**400)
torch.arange(3.0) == np.array([0, 5, 2], np.float32)
torch.asarray(torch.ones(2).__dlpack__(), dtype=torch.float64)
torch.as_tensor(types.SimpleNamespace(__dlpack__=torch.ones(2).__dlpack__, __dlpack_device__=torch.ones(2).__dlpack_device__))
torch.ones(3, dtype=torch.int32).masked_fill(torch.tensor([True, False, True]), 0.5)
torch.ones(3, dtype=torch.int8).masked_fill_(torch.tensor([True, False, True]), -0.5)
torch.ones(1, dtype=torch.uint8).fill_(-0.5)
torch.ones(1, dtype=torch.uint8).fill_(-1)
torch.full((1,), 255.9, dtype=torch.uint8)
torch.full((1,), -128.9, dtype=torch.int8)
torch.ones(2, 3).dim_order(ambiguity_check=True)
torch.ones(2, 1).dim_order(ambiguity_check=True)
torch.ones(1, 2, 3, 4).dim_order(ambiguity_check=[torch.contiguous_format, torch.channels_last])
torch.ones(2, 3).dim_order(ambiguity_check="x")
torch.ones(4).unflatten("A", (2, 2))
torch.device("foo:1")
torch.ones(3).map2_(torch.ones(3), torch.full((1,), 2.0), lambda a, b, c: a + b * c)
(lambda t: t.set_(t.untyped_storage(), 5, (2, 3)).storage_offset())(torch.ones(1))
torch.autograd.functional.vjp(lambda a: 3 * a, torch.ones(2), (torch.ones(2), torch.ones(2)))
torch.autograd.functional.jvp(lambda a: 3 * a, torch.ones(2), (torch.ones(2), torch.ones(2)))
torch.tensor([-1.0], dtype=torch.uint8)
torch.ones(2).__dlpack__(stream=1)
torch.swapaxes(torch.ones(2, 3), axis0=0, axis1=1).shape
torch.empty((), dtype=torch.float64).resize_([2, 4, 2**29, 2**29])
torch.empty(()).resize_([0, 4, 2**61])
torch.empty(2**31, 2**29, 8)
torch.empty_strided([2**62], [8])
torch.ones(8, 1, 3, 3).to(torch.float64, memory_format=torch.channels_last).stride()
torch.ones(8, 3, 1, 1).double(memory_format=torch.channels_last).stride()
torch.Storage.__name__
torch.ones(2).addcdiv_(torch.ones(2, dtype=torch.int64), torch.ones(2, dtype=torch.bool))
torch.ones(2, dtype=torch.int64).addcdiv_(torch.ones(2, dtype=torch.int64), torch.ones(2, dtype=torch.int64))
torch.zeros(2, dtype=torch.int64, out=torch.ones(2))
torch.zeros(2, layout=torch.sparse_coo, out=torch.ones(2))
torch.rand(2, layout=torch.sparse_coo, out=torch.ones(2))
torch.randint(3, (2,), dtype=torch.int32, out=torch.ones(2))
torch.normal(0.0, 1.0, (2,), dtype=torch.float64, out=torch.ones(2))
torch.empty(2, out=torch.ones(2), requires_grad=True).requires_grad
torch.full((2,), 1, out=torch.ones(2), requires_grad=True).requires_grad
torch.zeros(2, out=torch.ones(2, dtype=torch.int64), requires_grad=True)
[F.batch_norm(x, None, None, training=True).stride() for x in (torch.ones(4, 5, 1, 1).to(memory_format=torch.channels_last), torch.ones(1, 3, 2, 1).permute(0, 2, 1, 3))]
[F.batch_norm(x, *torch.ones(2, x.shape[1])).stride() for x in (torch.ones(4, 1, 2, 2).to(memory_format=torch.channels_last), torch.ones(1, 3, 2, 1).permute(0, 2, 1, 3))]
[repr(f(a, b)) for f in (torch.sym_max, torch.sym_min) for a, b in ((1, 2.5), (2, 2.0), (np.int64(3), 1), (-1.0, 4))]
[torch.sym_int(-1.5), torch.sym_float(2), torch.sym_not(True), torch.sym_ite(False, 1, 2), torch.sym_sqrt(9), torch.sym_sum([1, 2]), torch.sym_sum(1, 2, 3)]
torch.sym_max("a", 1)
torch.sym_ite(True, 1, 2.0)
torch.sym_ite(1, 1, 2)
[getattr(torch.Tensor, n).__name__ for n in ("round_", "clamp_max_", "nan_to_num_", "polygamma", "addcmul_")]
"""


@pytest.mark.parametrize("line", lines(LINES))
def test_outcome(line: str) -> None:
    def program(torch: Any) -> Any:
        names = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional}
        names |= {"np": np, "pickle": pickle, "types": types}
        return eval(line, names)

    found, expected = Ran(ct, program), Ran(th, program)
    if expected.error is None:
        if found.error is not None:
            raise found.error
        assert_same_value(found.value, expected.value)
    else:
        assert_same_error(found, expected)
        assert found.error is not None
        assert first_line(found.error) == first_line(expected.error)
    assert found.warnings == expected.warnings
