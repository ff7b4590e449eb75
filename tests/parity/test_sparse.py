"""Sparse tensors: values, gradients, printed forms, errors, optimisers and files are torch's."""

from __future__ import annotations

import copy
import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from parity.oracle import ct, lines, th


def setup(torch: Any) -> dict[str, Any]:
    """Return the operands that the cases name: COO with duplicates, empty rows or hybrid values, compressed, dense."""
    random = np.random.default_rng(0)

    def dense(*shape: int) -> Any:
        return torch.tensor(random.standard_normal(shape)).requires_grad_()

    i = torch.tensor(random.integers(0, 6, (2, 15)))
    v, v2, vh = dense(15), dense(15), dense(15, 2)
    s = torch.sparse_coo_tensor(i, v, (6, 7))
    s2 = torch.sparse_coo_tensor(i.flip(1), v2, (6, 7))
    d, b, e = dense(7, 19), dense(6, 19), dense(6, 7)
    c, h = s.coalesce(), torch.sparse_coo_tensor(i, vh, (6, 7, 2))
    return {
        "torch": torch, "F": torch.nn.functional, "s": s, "s2": s2, "c": c, "c2": s2.coalesce(), "h": h, "r": c.to_sparse_csr(),
        "q": c.to_sparse_csc(), "d": d, "b": b, "e": e, "leaves": [v, v2, vh, d, b, e], "L": torch.tensor,
        "at": torch.tensor([[1, 2], [1, 5]]),
    }  # fmt: skip


# "; no grad": the case's gradients are not compared, because torch does not differentiate it; this library does.
CASES = """
torch.sparse.mm(s, d)
torch.sparse.mm(c, d)
torch.sparse.mm(r, d)
torch.sparse.mm(r, d, "sum")
torch.sparse.mm(r, d, reduce="mean")
torch.sparse.mm(r, d, "amax")
torch.sparse.mm(r, d, "amin")
torch.sparse.mm(q, d); no grad
F.linear(d.t()[None], r); no grad
F.linear(d.t()[None], r, b[:, 0]); no grad
d.t()[None] @ c.t(); no grad
torch.addmv(b[:, 0], r, d[:, 0], beta=0.5, alpha=2); no grad
torch.sparse.addmm(b, s, d, beta=0.5, alpha=2)
torch.sparse.sampled_addmm(r, b, d.t(), beta=0.5, alpha=2)
torch.sparse.sampled_addmm(r.detach() * 1j, b.detach() * 1j, d.detach().t() + 2j)
torch.addmm(b, c, d, beta=0.5, alpha=2)
torch.mm(s.t(), d[:6])
torch.mv(s, d[:, 0])
d.t() @ s.t()
d[:, :6].contiguous() @ s
torch.sparse.mm(c, c.t())
torch.bmm(torch.stack([c, c2]).coalesce(), torch.stack([d, d]))
torch.hspmm(s.detach(), d); no grad
torch.sspaddmm(s.detach(), s.detach(), e.detach().t() @ e.detach())
torch.sparse.softmax(c, 1)
s.sum()
c.sum()
s * L(2.0).to_sparse()
torch.saddmm(s.detach(), s.detach(), e.detach().t() @ e.detach(), beta=0.5, alpha=2)
torch.mm(s.detach(), d.detach(), out=torch.zeros(6, 19, dtype=torch.float64))
torch.abs(c.detach(), out=torch.zeros(6, 7, dtype=torch.float64).to_sparse())
F.linear(s, d.t()); no grad
torch.sparse.softmax(h, 1)
torch.sparse.softmax(h, 0)
torch.sparse.softmax(h, 2)
torch.sparse.log_softmax(c, 0)
r.sum(0, keepdim=True); no grad
torch.sum(r.detach(), 1, keepdim=True, dtype=torch.float64)
torch.sum(r.detach().to(torch.int32), (0, -1), True)
torch.sparse.sum(s)
torch.sparse.sum(s, 0)
torch.sparse.sum(s, 1)
torch.sparse.sum(h, 0)
torch.sparse.sum(h, 1)
torch.sparse.sum(h, (0, 2))
torch.sparse.sum(s, dtype=torch.float32)
s * e
s.coalesce() * e
e * s
e + s
e - s
torch.add(e, s, alpha=3)
s + s2
c + c2
s - s2
h + h
s * 3
s * L(2.0)
s / 2
-s
c * c2
s * s2
r + r
r * 2
r * e; no grad
c.abs()
c.sin(); no grad
c.tanh(); no grad
c.relu()
c.pow(2)
s.float()
s.t()
s.transpose(0, 1)
h.transpose(0, 1)
r.t()
s.unsqueeze(1); no grad
s.unsqueeze(2); no grad
torch.cat([s, s2]); no grad
torch.cat([s, s2], 1); no grad
torch.stack([s, s2]); no grad
s.index_select(0, L([2, 0, 0])); no grad
c.index_select(1, L([2, 0, 6, 6])); no grad
s.select(0, 1); no grad
c[1]; no grad
c[1, 2]; no grad
h.select(1, 0); no grad
c.narrow_copy(1, 1, 3); no grad
s.norm(); no grad
c.values()
r.values()
h.coalesce().values()
s.to_dense()
h.to_dense()
r.to_dense()
c.to_sparse_csr()
r.to_sparse()
e.to_sparse()
e.to_sparse(1)
e.to_sparse_csr()
e.sparse_mask(c.detach())
F.embedding(at, e, sparse=True)
F.embedding(at, e, sparse=True, padding_idx=2)
F.embedding(at, e, sparse=True) + F.embedding(at, e, sparse=True)
F.embedding(at, e, sparse=True) + e[:2, None]
F.embedding_bag(at, e, sparse=True, mode="sum")
F.embedding_bag(at, e, sparse=True, mode="mean")
F.embedding_bag(at, e, sparse=True, mode="sum", per_sample_weights=e[:2, :2])
"""


def outcome(torch: Any, line: str) -> list[Any]:
    """Return the layout, shape, dtype and elements of a result, then layout and elements of every leaf's gradient."""
    case, _, grad = line.partition(";")
    names = setup(torch)
    found = eval(case, names)
    dense = found.to_dense()
    left: list[Any] = [(str(found.layout), tuple(found.shape), str(found.dtype)), dense]
    if found.requires_grad and not grad:
        (dense * dense.cos()).sum().backward()
        for leaf in names["leaves"]:
            g = leaf.grad
            # torch gives a dense factor a sparse gradient, this library a dense one with the same elements.
            left += [None] if g is None else ["*" in case or str(g.layout), g.to_dense()]
    return left


@pytest.mark.parametrize("line", lines(CASES))
def test_results_and_gradients(line: str) -> None:
    found, expected = outcome(ct, line), outcome(th, line)
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        if hasattr(theirs, "detach"):
            np.testing.assert_allclose(
                mine.detach().numpy(), theirs.detach().numpy(), rtol=1e-5, atol=1e-7
            )
        else:
            assert mine == theirs


SHOWN = """
S
S.coalesce()
U
U.coalesce()
H
S.to_sparse_csr()
S.to_sparse_csc()
S.double()
S.half()
S.long()
S.requires_grad_()
S.requires_grad_() * 2
torch.sparse_coo_tensor(size=(3, 4))
torch.sparse_coo_tensor(I.float(), V)
torch.sparse_coo_tensor(I, V[:2])
torch.sparse_coo_tensor(I, V, (2, 3, 1))
torch.sparse_coo_tensor(-I, V)
torch.sparse_coo_tensor(I[0], V)
torch.sparse_coo_tensor(I, V, (2, 2), check_invariants=True)
torch.sparse_coo_tensor(I, V, is_coalesced=True)
torch.sparse_coo_tensor(I, V, dtype=torch.float64, requires_grad=True)
torch.sparse_csr_tensor(torch.tensor([0, 1, 3]), torch.tensor([2, 0, 2]), V)
torch.sparse_compressed_tensor([0, 1, 3], [2, 0, 2], [1.0, 2, 3], (2, 3), layout=torch.sparse_csr)
torch.sparse_csc_tensor([0, 1, 1, 3], [1, 0, 1], [1.0, 2, 3], (2, 3))
torch.sparse.FloatTensor(I, V, torch.Size([2, 3]))
torch.sparse.FloatTensor(2, 3)
torch.sparse.LongTensor(I, V.long())
isinstance(S, torch.sparse.FloatTensor), isinstance(S, torch.FloatTensor), isinstance(S, torch.Tensor)
S.type(), S.layout, S.is_sparse, S.is_sparse_csr, S.to_sparse_csr().is_sparse_csr, len(S), S.dim(), S.numel()
H.sparse_dim(), H.dense_dim(), D.sparse_dim(), D.dense_dim(), S._nnz(), S.is_coalesced(), S.stride()
U.indices()
U.values()
S.tolist()
S.numpy()
S.item()
S.data_ptr()
S.untyped_storage()
S.contiguous()
S.expand(2, 2, 3)
S.reshape(3, 2)
S + D
S + 1
1 + S
S - D
S.add_(D)
S / S
S / D
D / S
D.div_(S)
D.long().add_(S)
D.long().sub_(S)
S - S.bool()
D.sub_(S.bool())
S.mm(D)
S.clone()
S.zero_()
S.add_(S)
S.mul_(3)
S.neg_()
S.copy_(U)
D.copy_(S)
D.add_(S)
S[0]
S[0, 1]
S[:, 1]
list(S)
torch.cat([S, D])
torch.zeros_like(S)
torch.zeros(2, 3, layout=torch.sparse_coo)
torch.empty(2, 3, layout=torch.sparse_coo)
torch.ones(2, 3, layout=torch.sparse_coo)
torch.zeros_like(D, layout=torch.sparse_coo)
D.to_sparse()
D.to_sparse(1)
D.to_sparse(3)
D.to_sparse(layout=torch.sparse_csr)
D.coalesce()
D.indices()
D.values()
D.is_coalesced()
D.crow_indices()
S.to_sparse_csr().indices()
S.to_sparse(1)
S.any(), S.isnan(), S.sign(), S.square(), S ** 2
S.sum(0)
S.sum(1)
torch.sparse_coo_tensor([[0, 0, 1]], [[1.0, 2], [2, 4], [3, 5]], (3, 2)).sum(1)
S.sparse_resize_((3, 3), 2, 0)
S.floor_divide(2)
torch.smm(S, D.t())
S.new_zeros(2, 2), S.new_empty((2,)), S.new_tensor([1.0]), S.new()
S.unbind(0), S.nbytes
S.__setitem__(0, 1.0)
D.mul_(S)
S.sin_()
S.coalesce().sin_()
torch.Tensor.abs_(S.coalesce())
torch.Tensor.nan_to_num_(S.coalesce())
S._coalesced_(True).is_coalesced(), S.clone()._coalesced_(False).is_coalesced()
torch.cat([H, S])
torch.zeros(2, 3).to_sparse(1) + S
torch._validate_sparse_coo_tensor_args(I, V, (2, 2))
torch.dsmm(S, D.t())
S.unbind(0)
S.resize_as_(torch.zeros(3, 4).to_sparse())
S.permute(dims=(1, 0))
S * torch.ones(2, 3, 1).to_sparse()
S * torch.tensor(2.0).to_sparse()
S.mv(S)
torch.sparse_coo_tensor([[0], [1]], [1.0], (2, 2)).is_coalesced()
torch.empty_like(S, memory_format=torch.channels_last)
torch.sparse_csr_tensor([0, 1], [5], [1.0], (1, 2), check_invariants=True)
S.to_sparse(layout=torch.strided)
torch.arctan(S.coalesce(), out=torch.zeros(2, 3).to_sparse())
torch.sparse.spdiags(torch.ones(2, 2), torch.zeros(2, 2, dtype=torch.int64), (2, 2))
torch.sparse.spdiags(torch.arange(6.0).reshape(2, 3), torch.tensor([0, 1]), (3, 3))
torch.stack([S, S]).bmm(torch.stack([S, S]))
torch.sparse.check_sparse_tensor_invariants.is_enabled()
torch.optim.SparseAdam([torch.nn.Parameter(S)])
torch.sub(S, 2 * S, out=U).to_dense() + U
torch.mul(S, 2, out=U) is U
torch.div(S, 2, rounding_mode="floor", out=U).to_dense() + U
torch.pow(S.coalesce(), 2)
torch.zeros(2, 3).to_sparse().t().is_coalesced(), S.coalesce().t().is_coalesced()
torch.pow(S, 3.5, out=U)
"""


@pytest.mark.parametrize("line", lines(SHOWN))
def test_printed_forms_and_refusals(line: str) -> None:
    def program(torch: Any) -> str:
        i, v = torch.tensor([[0, 1, 1], [2, 0, 2]]), torch.tensor([3.0, 4, 5])
        names = {
            "torch": torch, "I": i, "V": v, "S": torch.sparse_coo_tensor(i, v, (2, 3)), "D": torch.arange(6.0).reshape(2, 3),
            "U": torch.sparse_coo_tensor([[0, 0], [1, 1]], [1.0, 2.0], (2, 3)),
            "H": torch.sparse_coo_tensor([[0, 1]], [[1.0, 2.0], [3, 4]], (3, 2)),
        }  # fmt: skip
        try:
            return repr(eval(line, names))
        except Exception as error:
            return f"{type(error).__name__}: {str(error).splitlines()[0]}"

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert program(ct) == program(th)


OPTIMISERS = """
SGD(ps, lr=0.1)
SGD(ps, lr=0.1, momentum=0.9)
SGD(ps, lr=0.1, momentum=0.9, nesterov=True)
SGD(ps, lr=0.1, momentum=0.9, dampening=0.5, maximize=True)
SGD(ps, lr=0.1, weight_decay=0.1)
Adagrad(ps, lr=0.1)
Adagrad(ps, lr=0.1, lr_decay=0.1, initial_accumulator_value=0.5, maximize=True)
Adagrad(ps, lr=0.1, weight_decay=0.1)
SparseAdam(ps, lr=0.1)
SparseAdam(ps, lr=0.1, betas=(0.5, 0.9), maximize=True)
LBFGS(ps, lr=0.1)
Adam(ps)
AdamW(ps)
RMSprop(ps)
Adadelta(ps)
Adamax(ps)
ASGD(ps)
NAdam(ps)
RAdam(ps)
Rprop(ps)
Muon(ps)
Adafactor(ps)
"""


@pytest.mark.parametrize("line", lines(OPTIMISERS))
def test_optimisers(line: str) -> None:
    def program(torch: Any) -> Any:
        table = torch.nn.Embedding(6, 2, sparse=True)
        table.weight.data.copy_(torch.arange(12.0).reshape(6, 2) / 8)
        step = eval(line, {**vars(torch.optim), "ps": list(table.parameters())})

        def closure(at: Any = None) -> Any:
            step.zero_grad()
            loss = (table(torch.tensor([1, 2, 1] if at is None else at)) ** 2).sum()
            loss.backward()
            return loss

        try:
            for at in ([1, 2, 1], [4, 1, 2]):
                step.step(lambda at=at: closure(at))
        except RuntimeError as error:
            return str(error)
        step.zero_grad(set_to_none=False)
        return table.weight.detach().numpy(), table.weight.grad._nnz()

    found, expected = program(ct), program(th)
    if isinstance(expected, str):
        assert found == expected
    else:
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-5, atol=1e-6)
        assert found[1] == expected[1]


@pytest.mark.ours
def test_checkpoints_of_both(tmp_path: Path) -> None:
    def made(torch: Any) -> dict[str, Any]:
        s = torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4, 5], (2, 3))
        hybrid = torch.sparse_coo_tensor([[0, 1]], [[1.0, 2], [3, 4]], (3, 2))
        return {"s": s, "c": s.coalesce(), "r": s.to_sparse_csr(), "q": s.to_sparse_csc(), "h": hybrid}  # fmt: skip

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for writer in (ct, th):
            file = tmp_path / "state.pt"
            writer.save(made(writer), file)
            for reader in (ct, th):
                loaded = reader.load(file)
                assert repr(loaded) == repr(made(th))
                assert [loaded[k].is_coalesced() for k in "sch"] == [False, True, False]
        file_of_bad = io.BytesIO()
        th.save(th.sparse_coo_tensor([[5]], [1.0], (2,), check_invariants=False), file_of_bad)
        file_of_bad.seek(0)
        with pytest.raises(RuntimeError, match="size is 2 but found index 5"):
            ct.load(file_of_bad)


def test_deepcopy_keeps_the_gradient() -> None:
    for torch in (th, ct):
        s = torch.tensor([[0.0, 1.0], [2.0, 0.0]]).to_sparse().requires_grad_()
        torch.sparse.sum(s * 2).backward()
        twin = copy.deepcopy(s)
        assert twin.grad is not s.grad
        assert twin.grad.layout is torch.sparse_coo
        assert twin.grad.to_dense().tolist() == [[0.0, 2.0], [2.0, 0.0]]


def test_narrow_copy_is_a_function_too() -> None:
    for torch in (th, ct):
        s = torch.arange(12.0).reshape(3, 4).to_sparse()
        got = torch.narrow_copy(s, 0, 1, 2)
        assert got.layout is torch.sparse_coo
        assert got.to_dense().tolist() == torch.arange(4.0, 12.0).reshape(2, 4).tolist()
        assert torch.narrow_copy(s.to_dense(), 1, 0, 1).tolist() == [[0.0], [4.0], [8.0]]


def test_gradcheck_takes_sparse_inputs() -> None:
    def outcomes(torch: Any) -> list[str]:
        x = torch.tensor([[1.5, 0.0, 2.0], [0.0, -1.0, 0.0]], dtype=torch.float64)
        d = torch.ones(3, 2, dtype=torch.float64).requires_grad_()
        full, told = (x + 5).to_sparse().requires_grad_(), []
        for s in (x.to_sparse().requires_grad_(), x.to_sparse_csr().requires_grad_()):
            for fn, args, how in (
                (torch.sparse.mm, (s, d), {"masked": True}),
                (torch.sparse.mm, (s, d), {"masked": True, "fast_mode": True}),
                (torch.mm, (s, d), {}),
                (torch.mm, (s, d), {"fast_mode": True}),
                (torch.sparse.mm, (s, d), {"raise_exception": False}),
                (torch.sparse.mm, (full, d), {}),
                (lambda a: a * 2, (s,), {}),
                (lambda a: a.to_dense(masked_grad=False), (s,), {}),
                (lambda a: a.to_dense(masked_grad=True), (s,), {"masked": True}),
            ):
                try:
                    told.append(str(torch.autograd.gradcheck(fn, args, **how)))
                except ValueError as error:
                    told.append(str(error))
        return told

    assert outcomes(ct) == outcomes(th)


def test_gradients_of_products_lie_where_the_other_factor_has_entries() -> None:
    def outcomes(torch: Any) -> list[Any]:
        told: list[Any] = []
        for made in (lambda x: x.to_sparse(), lambda x: x.to_sparse_csr()):
            x = made(torch.tensor([[2.0, 0.0], [0.0, 3.0]])).requires_grad_()
            y = made(torch.tensor([[0.0, 5.0], [0.0, 7.0]])).requires_grad_()
            product = x * y
            product.backward(made(torch.tensor([[1.0, 2.0], [3.0, 0.0]])))
            told += [product.grad_fn.name(), x.grad.layout, y.grad.layout]
            told += [x.grad.to_dense().tolist(), y.grad.to_dense().tolist()]
        return [str(t) for t in told]

    assert outcomes(ct) == outcomes(th)


@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin", "mean"])
def test_masked_reductions_of_coordinates(name: str) -> None:
    def told(torch: Any) -> list[str]:
        i = torch.tensor([[0, 1, 2, 2], [0, 1, 2, 0]])
        s = torch.sparse_coo_tensor(i, torch.tensor([0.5, -0.25, 3.0, 2.0]), (3, 4)).coalesce()
        kept = torch.tensor([[1, 1, 0, 0], [0, 0, 0, 0], [1, 0, 1, 0]], dtype=torch.bool)
        mask = torch.sparse_coo_tensor(i[:, :2].flip(1), torch.tensor([True, False]), (3, 4))
        inputs = (s, s.long(), torch.sparse_coo_tensor((3, 4)))
        cases = [(x, m) for x in inputs for m in (None, kept, mask, kept[0])]
        h = torch.sparse_coo_tensor(i, torch.arange(12.0).reshape(4, 3), (3, 4, 3)).coalesce()
        found = []
        for x, m in (*cases, (h, None)):
            for dim in (None, 0, (0, 1), 2):
                for keepdim in (False, True):
                    try:
                        r = getattr(torch.masked, name)(x, dim, keepdim=keepdim, mask=m).coalesce()
                        found.append(f"{r.shape} {r.dtype} {r.indices()} {r.values()}")
                    except (ValueError, IndexError) as error:
                        found.append(str(error))
        return found

    assert told(ct) == told(th)


@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin", "mean"])
def test_masked_reductions_of_rows_and_hybrids(name: str) -> None:
    def told(torch: Any) -> list[str]:
        x = torch.tensor([[0.5, 0.0, 3.0, 2.0], [0.0, -0.25, 0.0, 1.0], [4.0, 0.0, 7.0, 0.0]])
        kept = torch.tensor([[1, 1, 0, 0], [0, 1, 0, 0], [1, 0, 1, 0]], dtype=torch.bool)
        none = torch.zeros(3, 4, dtype=torch.bool)
        rows = x.to_sparse_csr()
        cases: list[tuple[Any, Any]] = [(rows, None), (x.to_sparse(1), kept.to_sparse())]
        cases += [
            (rows, m) for m in (kept, kept.to_sparse(), kept.to_sparse_csr(), kept.to_sparse(1))
        ]
        cases += [(x.to_sparse(), kept.to_sparse(1)), (x.to_sparse(), kept.to_sparse_csr())]
        point = torch.sparse_coo_tensor(torch.zeros(0, 1).long(), torch.tensor([1.5]), ())
        cases += [(point, torch.ones((), dtype=torch.bool).to_sparse())]
        found = []
        for x, m in cases:
            for dim in (None, 0, 1):
                try:
                    r = getattr(torch.masked, name)(x, dim, keepdim=True, mask=m)
                    found.append(f"{r.shape} {r.dtype} {r.layout} {r._nnz()} {r.to_dense() + 0}")
                except (ValueError, IndexError, AssertionError, RuntimeError) as error:
                    found.append(str(error))
        for m in (None, kept.to_sparse_csr()):
            try:
                getattr(torch.masked, name)(rows, mask=m)
            except (ValueError, AssertionError, RuntimeError) as error:
                found.append(f"{type(error)} {error}")
        empty = getattr(torch.masked, name)(rows, 0, keepdim=True, mask=none)
        return [*found, f"{empty.layout} {empty._nnz()} {empty.shape}"]

    assert told(ct) == told(th)


def test_products_with_dense_tensors_of_more_dims() -> None:
    def told(torch: Any) -> list[str]:
        x = torch.tensor([[0.0, 1.0, 2.0], [3.0, 0.0, -1.0]])
        y = torch.arange(1.0, 49.0).reshape(2, 4, 2, 3)
        i = torch.tensor([[1, 0, 1], [2, 0, 2]])
        found = []
        for s in (
            x.to_sparse(),
            x.to_sparse(1),
            torch.sparse_coo_tensor(i, x[:, 0].repeat(2)[:3], (2, 3)),
        ):
            for d in (y, y[0], y[0, :, :1], y[:, :, :, :1]):
                for r in (s * d, d * s):
                    dense = r.to_dense()
                    assert torch.equal(dense, s.to_dense() * d)
                    found.append(f"{r.shape} {r.sparse_dim()} {r.coalesce()._nnz()} {dense}")
        return found

    assert told(ct) == told(th)
    s, d = ct.tensor([[0.0, 2.0]]).to_sparse().requires_grad_(), ct.ones(3, 1, 2)
    (s * d.requires_grad_()).to_dense().sum().backward()
    assert s.grad.to_dense().tolist() == [[0, 3]] and d.grad.tolist() == [[[0, 2]]] * 3
    with pytest.raises(RuntimeError, match="incompatible sizes"):
        s.detach().mul_(d.detach())


def test_products_of_compressed_matrices_and_sizes() -> None:
    def outcomes(torch: Any) -> list[str]:
        a = torch.sparse_csr_tensor([0, 2, 3, 3], [0, 2, 1], [1.0, 2, 3], (3, 3))
        b, c, ones = a.to_dense().t().contiguous().to_sparse_csr(), a.to_sparse_csc(), torch.ones
        h = torch.sparse_coo_tensor(torch.tensor([[0, 1]]), torch.arange(6.0).reshape(2, 3), (2, 3))
        r, grown = torch.eye(3).to_sparse_csr(), [h.clone().sparse_resize_((4, 5), 1, 1)]
        v, m, far = torch.empty(3), torch.empty(3, 3), torch.tensor([[2**40], [2**40]])
        asked = [
            lambda: (a @ b).layout,
            lambda: [(x @ y).layout for x in (c, a) for y in (c, a)],
            lambda: (c @ b).to_dense().tolist(),
            lambda: torch.addmm(a, a, b, out=r) is r,
            lambda: (r.layout, r.to_dense().tolist()),
            lambda: torch.addmm(ones(3, 3), a, ones(3, 3), out=m).tolist(),
            lambda: torch.addmv(ones(3), a, ones(3), out=v).tolist(),
            lambda: torch.mm(a, ones(2, 2)),
            lambda: torch.mm(a.to_sparse().double(), a.to_sparse()),
            lambda: torch.mm(a.to_sparse().double(), ones(3, 3)),
            lambda: torch.sparse.spdiags(m, torch.arange(3), (3, 3), torch.strided),
            lambda: torch.mv(a, ones(2)),
            lambda: a.is_contiguous(),
            lambda: c.is_contiguous(),
            lambda: a.to_sparse() + h.to_dense().to_sparse(),
            lambda: ones(4, 4).add_(a.to_sparse()),
            lambda: torch.sparse_coo_tensor(far, ones(1), (2**41, 2**41)),
            lambda: torch.sparse_coo_tensor((2**32, 2**31)),
            lambda: torch.sparse_coo_tensor((2**32, 2**31 - 1)).shape,
            lambda: [(x.shape, x.values().view(-1)[:6].tolist()) for x in grown],
            lambda: h.clone().sparse_resize_((4, 2), 1, 1),
            lambda: h.clone().sparse_resize_((1, 3), 1, 1),
            lambda: h.clone().sparse_resize_((2, 3, 4), 1, 2),
        ]
        told = []
        for ask in asked:
            try:
                told.append(str(ask()))
            except RuntimeError as error:
                told.append(str(error))
        return told

    assert outcomes(ct) == outcomes(th)
