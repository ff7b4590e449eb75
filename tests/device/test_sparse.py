"""Sparse tensors: the kernels of products in every schedule and dtype, patterns, gradients, and what dense tensors notice of them."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from support import data

import cltensor as torch
from cltensor.codegen.order import places as numbering
from cltensor.codegen.products import sparse as kernels
from cltensor.ops import arguments
from cltensor.sparse import dispatch
from cltensor.sparse.pattern import Pattern


def entries(rows: int, columns: int, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return the coordinates of `count` entries, with duplicates and empty rows, and their values."""
    random = np.random.default_rng(seed)
    places = np.stack([random.integers(0, rows, count), random.integers(0, columns, count)])
    places[0][places[0] == rows // 2] = 0
    return places, random.standard_normal(count)


def as_dense(places: np.ndarray, values: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    made = np.zeros(shape)
    np.add.at(made, tuple(places), values)
    return made


@pytest.mark.parametrize("schedule", ["cpu", "gpu"])
@pytest.mark.parametrize(
    ("dtype", "width"),
    [
        *(("float32", width) for width in (1, 3, 16, 64, 83)),
        *((dtype, width) for dtype in ("float64", "bfloat16") for width in (1, 83)),
    ],
)
def test_products(monkeypatch: Any, schedule: str, dtype: str, width: int) -> None:
    if dtype == "float64" and not torch.zeros(1)._storage.backend.info.fp64:
        pytest.skip("the device has no float64")
    monkeypatch.setattr(kernels, "is_gpu", lambda backend: schedule == "gpu")
    places, values = entries(23, 31, 120)
    dense = np.random.default_rng(1).standard_normal((31, width))
    dt = getattr(torch, dtype)
    v = torch.tensor(values, dtype=dt).requires_grad_()
    d = torch.tensor(dense, dtype=dt).requires_grad_()
    s = torch.sparse_coo_tensor(torch.tensor(places), v, (23, 31))
    out = torch.sparse.mm(s, d)
    g = torch.tensor(np.random.default_rng(2).standard_normal((23, width)), dtype=dt)
    out.backward(g)
    known = [t.detach().double().cpu().numpy() if dtype != "bfloat16" else t.detach().float().cpu().numpy() for t in (v, d, g)]  # fmt: skip
    whole = as_dense(places, known[0], (23, 31))
    close = {"rtol": 1e-4, "atol": 1e-5} if dtype != "bfloat16" else {"rtol": 2e-2, "atol": 5e-2}

    def same(found: Any, expected: np.ndarray) -> None:
        np.testing.assert_allclose(found.float().cpu().numpy(), expected, **close)

    same(out.detach(), whole @ known[1])
    same(d.grad, whole.T @ known[2])
    assert v.grad is not None
    same(v.grad, (known[2] @ known[1].T)[tuple(places)])


def test_many_workers_give_the_bits_of_one(monkeypatch: Any) -> None:
    places, values = entries(400, 300, 5000)
    s = torch.sparse_coo_tensor(torch.tensor(places), torch.tensor(values).float(), (400, 300))
    d = torch.rand(300, 70)
    one = torch.sparse.mm(s, d)
    monkeypatch.setattr(kernels, "workers", lambda backend, work: 7)
    assert torch.equal(torch.sparse.mm(s, d), one)
    assert torch.equal(torch.sparse.mm(s, d[:, :5].contiguous()), one[:, :5])


@pytest.mark.parametrize("far", [False, True])
def test_products_with_more_than_a_cache(monkeypatch: Any, far: bool) -> None:
    monkeypatch.setattr(kernels, "CACHE", 0 if far else 1 << 30)
    places, values = entries(40, 30, 300)
    v = torch.tensor(values).float().requires_grad_()
    s = torch.sparse_coo_tensor(torch.tensor(places), v, (40, 30))
    d = torch.tensor(np.random.default_rng(1).standard_normal((30, 1))).float()
    out = torch.sparse.mm(s, d)
    out.sum().backward()
    known, weights = d.cpu().numpy().astype(float), values.astype(np.float32).astype(float)
    whole = as_dense(places, weights, (40, 30))
    np.testing.assert_allclose(out.detach().cpu().numpy(), whole @ known, rtol=1e-4, atol=1e-5)
    assert v.grad is not None
    np.testing.assert_allclose(v.grad.cpu().numpy(), known[places[1], 0], rtol=1e-6)


@pytest.mark.parametrize("schedule", ["cpu", "alone", "gpu"])
@pytest.mark.parametrize("sizes", [(50,), (7, 11), (3, 5, 4), (9, 1, 2, 6), (1 << 20, 1 << 34)])
def test_places_by_number_and_by_coordinates(
    monkeypatch: Any, schedule: str, sizes: tuple[int, ...]
) -> None:
    monkeypatch.setattr(numbering, "is_gpu", lambda backend: schedule == "gpu")
    monkeypatch.setattr(numbering, "workers", lambda backend, work: 3)
    monkeypatch.setattr(numbering, "is_small", lambda backend, n: schedule == "alone")
    random = np.random.default_rng(0)
    for count in (2, 61):
        given = np.stack([random.integers(0, n, count) for n in sizes])
        given[:, 0] = given[:, -1]
        for indices in (given, given.T.copy().T):  # dims contiguous, then entries
            merged = Pattern(sizes, torch.tensor(indices)).merge
            keys = (given * (np.cumprod((1, *sizes[:0:-1]))[::-1, None])).sum(0)
            order = np.argsort(keys, kind="stable")
            first = np.unique(keys, return_index=True)[1]
            assert merged.order.tolist() == order.tolist()
            assert merged.pattern.indices.tolist() == given[:, first].tolist()
    for dim, bad in ((0, -1), (len(sizes) - 1, sizes[-1])):
        given[dim, -2] = bad
        with pytest.raises(RuntimeError, match=r"negative index -1|found index"):
            Pattern(sizes, torch.tensor(given)).keys


def test_operands_laid_out_anyhow_and_empty_ones() -> None:
    places, values = entries(9, 6, 20)
    s = torch.sparse_coo_tensor(torch.tensor(places), torch.tensor(values).float(), (9, 6))
    d = torch.rand(11, 6)
    whole = s.to_dense()
    torch.testing.assert_close(s @ d.t(), whole @ d.t())
    torch.testing.assert_close(s @ d.t()[:, 2:9], whole @ d.t()[:, 2:9])
    torch.testing.assert_close(s @ d.t()[:, ::3], whole @ d.t()[:, ::3])
    none = torch.sparse_coo_tensor(size=(9, 6))
    assert torch.equal(none @ d.t(), torch.zeros(9, 11))
    assert torch.equal(torch.sparse_coo_tensor(size=(0, 6)) @ d.t(), torch.zeros(0, 11))
    assert (s @ torch.zeros(6, 0)).shape == (9, 0)
    assert none.to_dense().sum() == 0
    assert none.coalesce()._nnz() == 0


def test_integers_and_complex_numbers_multiply_too() -> None:
    places, values = entries(9, 6, 20)
    for dtype in (torch.int64, torch.complex64):
        v = torch.tensor(values * 5).to(dtype)
        s = torch.sparse_coo_tensor(torch.tensor(places), v, (9, 6))
        d = torch.arange(24).reshape(6, 4).to(dtype)
        expected = (s.to_dense().unsqueeze(2) * d).sum(1)
        torch.testing.assert_close(s @ d, expected)


@pytest.mark.parametrize(
    ("name", "of"),
    {
        "sampled_addmm": lambda s, d: (s.to_sparse_csr(), d, d),
        "sspaddmm": lambda s, d: (s, s, d),
        "hspmm": lambda s, d: (s, d),
        "mv": lambda s, d: (s, d[0]),
    }.items(),
)
def test_results_of_products_are_written_where_asked(name: str, of: Any) -> None:
    args = of(torch.eye(2).to_sparse(), torch.arange(4.0).reshape(2, 2))
    product = getattr(torch.sparse, name, None) or getattr(torch, name)
    expected = product(*args)
    out = torch.zeros_like(expected)
    assert product(*args, out=out) is out
    torch.testing.assert_close(out, expected)


def test_second_derivatives() -> None:
    places, values = entries(4, 5, 9)
    indices = torch.tensor(places)
    v = torch.tensor(values).double().requires_grad_()
    d = torch.rand(5, 3, dtype=torch.float64, requires_grad=True)

    def product(v: Any, d: Any) -> Any:
        return torch.sparse.mm(torch.sparse_coo_tensor(indices, v, (4, 5)), d).sin()

    assert torch.autograd.gradcheck(product, (v, d))
    assert torch.autograd.gradgradcheck(product, (v, d))


def test_a_pattern_is_worked_out_once() -> None:
    places, values = entries(9, 6, 20)
    s = torch.sparse_coo_tensor(torch.tensor(places), torch.tensor(values).float(), (9, 6))
    s @ torch.ones(6, 2)
    kept = s._pattern.rows
    assert (s * 2)._pattern is s._pattern
    assert s._pattern.rows is kept
    before = s.to_dense()
    s._indices()[:] = s._indices().flip(1)  # what was derived from the old indices is stale
    assert s._pattern.rows is not kept
    assert not torch.equal(s.to_dense(), before)


def test_indices_out_of_range_are_never_followed() -> None:
    s = torch.sparse_coo_tensor([[0, 7]], [1.0, 2.0], (3,))
    for use in (lambda: s.to_dense(), lambda: s.coalesce(), lambda: torch.zeros(3) + s):
        with pytest.raises(RuntimeError, match="for dim 0, size is 3 but found index 7"):
            use()
    bad = torch.sparse_csr_tensor([0, 1, 2], [0, 9], [1.0, 2.0], (2, 2), check_invariants=False)
    with pytest.raises(RuntimeError, match="size is 2 but found index 9"):
        bad @ torch.ones(2, 2)
    with pytest.raises(RuntimeError, match="negative index -1"):
        torch.sparse_coo_tensor([[-1]], [1.0], (2,)).to_dense()


def test_gradients_of_a_leaf_add_up() -> None:
    places, values = entries(4, 5, 9)
    s = torch.sparse_coo_tensor(
        torch.tensor(places), torch.tensor(values).float(), (4, 5)
    ).requires_grad_()
    d = torch.rand(5, 3)
    torch.sparse.mm(s, d).sum().backward()
    first = s.grad
    assert first.is_sparse
    assert first.is_coalesced()
    once = first.to_dense()
    torch.sparse.mm(s, d).sum().backward()
    torch.testing.assert_close(s.grad.to_dense(), 2 * once)
    assert s.grad._pattern is first._pattern  # places were not sorted again


def test_a_leaf_takes_dense_gradients_of_its_sum() -> None:
    s = torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3,)).requires_grad_()
    s.sum().backward()
    assert s.grad.tolist() == [1, 1, 1]
    torch.sparse.sum(s).backward()
    assert s.grad.tolist() == [2, 2, 1]


def test_a_gradient_is_its_own_memory() -> None:
    table = torch.nn.Embedding(5, 3, sparse=True)
    out = table(torch.tensor([1, 1, 4]))
    out.retain_grad()
    out.sum().backward()
    table.weight.grad._values().mul_(5)
    assert torch.equal(out.grad, torch.ones(3, 3))


def test_two_leaves_with_one_gradient_do_not_share_it() -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            return a + b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            made.append(torch.sparse_coo_tensor([[0, 1]], torch.ones(2, 3), (5, 3)))
            return made[-1], made[-1]

    made: list[Any] = []
    a, b = (torch.zeros(5, 3, requires_grad=True) for _ in range(2))
    Twice.apply(a, b).sum().backward()
    a.grad._values().mul_(2)
    assert b.grad.sum().item() == made[0].sum().item() == 6
    held = b.grad
    Twice.apply(a, b).sum().backward()
    assert b.grad is held  # added to in place, as a dense one is
    assert held.sum().item() == 12


def test_gradients_of_a_table_keep_what_was_looked_up() -> None:
    table, at = torch.nn.Embedding(5, 3, sparse=True), torch.tensor([1, 4])
    table(at).sum().backward()
    at[0] = 2
    table(at).sum().backward()
    assert table.weight.grad._indices().tolist() == [[1, 4, 2, 4]]
    nothing = torch.nn.Embedding(0, 0, sparse=True)
    nothing(torch.tensor([], dtype=torch.int64)).sum().backward()
    assert nothing.weight.grad.shape == (0, 0)


def test_dense_and_sparse_gradients_of_one_leaf() -> None:
    w = torch.ones(5, 3, requires_grad=True)
    look = torch.nn.functional.embedding
    for loss in (
        lambda: look(torch.tensor([1, 1]), w, sparse=True).sum() + (w * 2).sum(),
        lambda: (w * 2).sum() + look(torch.tensor([1, 1]), w, sparse=True).sum(),
    ):
        w.grad = None
        loss().backward()
        assert not w.grad.is_sparse
        assert w.grad[:, 0].tolist() == [2, 4, 2, 2, 2]
        look(torch.tensor([3]), w, sparse=True).sum().backward()
        assert w.grad[:, 0].tolist() == [2, 4, 2, 3, 2]
    w.grad = None
    look(torch.tensor([3]), w, sparse=True).sum().backward()
    (w * 2).sum().backward()
    assert w.grad[:, 0].tolist() == [2, 2, 2, 3, 2]


def test_copies_and_pickles() -> None:
    s = torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2), requires_grad=True)
    for made in (copy.deepcopy(s), pickle.loads(pickle.dumps(s)), copy.copy(s), s.detach().clone()):
        assert torch.equal(made.to_dense(), s.to_dense())
    assert copy.deepcopy(s).requires_grad
    c = s.detach().to_sparse_csr()
    assert torch.equal(pickle.loads(pickle.dumps(c)).crow_indices(), c.crow_indices())
    model = torch.nn.Module()
    model.register_buffer("adjacency", s.detach())
    assert model.double().adjacency.dtype is torch.float64
    assert "adjacency" in model.state_dict()


def test_compressed_matrices_that_are_not_built_say_so() -> None:
    d = torch.eye(4)
    for call in (
        lambda: d.to_sparse_bsr((2, 2)),
        lambda: torch.sparse_bsr_tensor([0], [0], [1.0]),
        lambda: torch.eye(2).expand(3, 2, 2).to_sparse_csr(),
        lambda: torch.sparse.spsolve(d.to_sparse_csr(), d),
        lambda: d.to_sparse().exp(),
        lambda: torch.sigmoid(d.to_sparse()),
        lambda: torch.softmax(d.to_sparse(), 1),
        lambda: torch.nn.utils.clip_grad_norm_(graded(), 1.0),
    ):
        with pytest.raises(NotImplementedError):
            call()


def graded() -> Any:
    table = torch.nn.Embedding(3, 2, sparse=True)
    table(torch.tensor([1])).sum().backward()
    return table.parameters()


def test_functions_taken_before_take_sparse_tensors_and_dense_ones_pay_nothing_before() -> None:
    text = (
        "import cltensor as torch\n"
        "from cltensor import mm, cat\n"
        "from cltensor.sparse import dispatch\n"
        "plain = mm.__code__\n"
        "mm(torch.ones(2, 2), torch.ones(2, 2))\n"
        "assert not dispatch.STATE.made and mm.__code__ is plain\n"
        "s = torch.eye(2).to_sparse()\n"
        "assert dispatch.STATE.made\n"
        "assert mm(s, torch.ones(2, 3)).tolist() == [[1, 1, 1]] * 2\n"
        "assert cat([s, s]).is_sparse and not cat([torch.ones(1), torch.ones(1)]).is_sparse\n"
        "assert (torch.nn.Parameter(torch.ones(2, 2)) @ s).shape == (2, 2)\n"
    )
    subprocess.run([sys.executable, "-c", text], check=True)


def test_functions_of_lists_refuse_what_is_none_in_their_own_words() -> None:
    dispatch.install()
    with pytest.raises(
        TypeError, match=r"stack\(\): argument 'tensors' \(position 1\) must be tuple"
    ):
        torch.stack(3)


def test_functions_know_sparse_operands_though_autocast_came_first() -> None:
    text = (
        "import cltensor as torch\n"
        "with torch.autocast('cpu', dtype=torch.bfloat16): torch.ones(2, 2) @ torch.ones(2, 2)\n"
        "assert torch.nn.functional.linear(torch.eye(3).to_sparse(), torch.ones(4, 3)).tolist() == [[1.0] * 4] * 3\n"
    )
    subprocess.run([sys.executable, "-c", text], check=True)


def test_find() -> None:
    dispatch.install()
    a = Pattern((3, 4), torch.tensor([[0, 1, 2], [3, 0, 2]]), coalesced=True)
    b = Pattern((3, 4), torch.tensor([[2, 0, 1], [2, 0, 0]]))
    there, which = a.find(b)
    assert there.tolist() == [True, False, True]
    assert which.tolist() == [2, 0, 1]


def test_comparison_of_layouts() -> None:
    x = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    kinds = (x, x.to_sparse(), x.to_sparse_csr())
    for a in kinds:
        for b in kinds:
            torch.testing.assert_close(a, b, check_layout=False)
            if a.layout is not b.layout:
                with pytest.raises(AssertionError, match="'layout' do not match"):
                    torch.testing.assert_close(a, b)
                with pytest.raises(AssertionError, match="Tensor-likes are not close"):
                    torch.testing.assert_close(a.to_dense() + x, b, check_layout=False)


def test_comparison_of_sparse_tensors() -> None:
    x = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    for kind, name in (("to_sparse", "COO"), ("to_sparse_csr", "CSR"), ("to_sparse_csc", "CSC")):
        a = getattr(x, kind)()
        torch.testing.assert_close(a, getattr(x.clone(), kind)())
        with pytest.raises(AssertionError, match=f"Sparse {name} values are not close!"):
            torch.testing.assert_close(a, getattr(x * 2, kind)())
        with pytest.raises(AssertionError, match=f"Sparse {name} .*indices are not equal!"):
            torch.testing.assert_close(a, getattr(x.flip(1), kind)())
        with pytest.raises(AssertionError, match=f"values in sparse {name} tensors does not match"):
            torch.testing.assert_close(a, getattr(x + 1, kind)())


def test_gradients_of_values_where_rows_lie_apart() -> None:
    """Gradients have the same bits whether the dense operand is a part of a wider matrix or contiguous."""
    places = torch.tensor([[0, 0, 1, 3], [2, 6, 5, 0]])
    wide = torch.tensor(data(7, 50))
    g = torch.tensor(data(4, 37, seed=1))
    found = []
    for dense in (wide[:, 5:42], wide[:, 5:42].contiguous()):
        values = torch.tensor(data(4, seed=2), requires_grad=True)
        out = torch.sparse.mm(torch.sparse_coo_tensor(places, values, (4, 7)), dense)
        found.append([*torch.autograd.grad(out, values, g), out.detach()])
    for a, b in zip(*found, strict=True):
        assert a.tolist() == b.tolist()


def test_the_class_of_all_tensors_asks_sparse_ones() -> None:
    x = torch.tensor([[0.0, 2.0], [1.0, 0.0]])
    names = {
        x.to_sparse(): "_values _indices values indices coalesce is_coalesced",
        x.to_sparse_csr(): "values crow_indices col_indices",
        x.to_sparse_csc(): "values ccol_indices row_indices",
    }
    both = "_nnz sparse_dim dense_dim to_dense to_sparse to_sparse_coo to_sparse_csr to_sparse_csc"
    for s, own in names.items():
        for name in f"{own} {both}".split():
            assert str(getattr(torch.Tensor, name)(s)) == str(getattr(s, name)())
    assert (torch.Tensor.sparse_dim(x), torch.Tensor.dense_dim(x)) == (0, 2)
    assert torch.Tensor.to_dense(x) is x
    with pytest.raises(RuntimeError, match="values expected sparse tensor layout but got Strided"):
        torch.Tensor.values(x)
    with pytest.raises(RuntimeError, match="crow_indices expected sparse row compressed"):
        torch.Tensor.crow_indices(x.to_sparse())


def test_errors_about_arguments_do_not_depend_on_whether_there_are_sparse_tensors() -> None:
    torch.ones(2).to_sparse()
    arguments._signature.cache_clear()  # `sum` has been intercepted by now
    with pytest.raises(TypeError, match=r"sum\(\) received an invalid combination of arguments"):
        torch.ones(2).sum(bogus=1)


def test_sums_of_16_bit_floats_are_rounded_once() -> None:
    x = np.random.default_rng(0).standard_normal((60, 5)).astype(np.float16)
    for made in (torch.tensor(x).to_sparse_csr(), torch.tensor(x).to_sparse_csc()):
        for dim in (0, 1):
            found = made.sum(dim, keepdim=True).to_dense().cpu().numpy()
            expected = x.sum(dim, dtype=np.float32, keepdims=True)
            np.testing.assert_allclose(found, expected, rtol=2**-10, atol=2**-10)
