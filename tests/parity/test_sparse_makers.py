"""Sparse tensors made after others, by type or into `out=`, copies, sizes, and products that stay sparse: results and errors are torch's."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from parity.oracle import ct, th

# x, u: COO, coalesced and not; c, b, k: CSR, CSR, CSC; z, y: of no dims; d: dense; e: without entries.
CASES = """
torch.ones_like(c)
torch.full_like(k, 2)
torch.full_like(c, 2.5, dtype=torch.int64)
torch.ones_like(c, requires_grad=True).requires_grad
torch.randn_like(c).col_indices()
torch.randn_like(k, dtype=torch.float64).dtype
torch.empty_like(c).crow_indices()
torch.zeros_like(c)
torch.ones_like(x, layout=torch.strided)
torch.full_like(x, 3, layout=torch.strided)
torch.rand_like(x, layout=torch.strided).shape
torch.ones_like(x)
torch.randn_like(x)
torch.rand_like(c)
torch.randint_like(k, 3)
torch.ones_like(c, layout=torch.strided)
torch.zeros_like(c, layout=torch.strided)
torch.empty_like(c, layout=torch.sparse_csc)
torch.empty_like(x, memory_format=torch.preserve_format)
torch.zeros_like(x, memory_format=torch.contiguous_format)
torch.empty_like(x, layout=torch.strided, memory_format=torch.channels_last)
torch.zeros_like(d, layout=torch.sparse_coo)
torch.zeros_like(d, layout=torch.sparse_coo, memory_format=torch.preserve_format)
torch.empty_like(d, layout=torch.sparse_coo)
torch.rand_like(d, layout=torch.sparse_coo)
torch.rand(2, 3, layout=torch.sparse_coo)
torch.randn(2, 3, layout=torch.sparse_coo)
torch.randint(3, (2,), layout=torch.sparse_coo)
torch.randperm(3, layout=torch.sparse_coo)
x.new_zeros(2, 3)
c.new_zeros((2, 3))
x.new_zeros(2, 3, layout=torch.strided)
x.new_ones(2, 3)
x.new_full((2, 3), 1.0)
x.new_full((2, 3), 1.0, layout=torch.strided)
torch.zeros((2, 3), out=x.new())
torch.zeros((3, 3), out=c.clone())
torch.empty((2, 3), out=x.clone()).shape
torch.ones((2, 3), out=x.clone())
torch.zeros((2, 3), out=x.clone(), dtype=torch.float64)
x.new(2, 3)
x.new(size=(2, 3))
x.new([6])
x.new(d)
x.new("a")
x.new(x)
x.new(i, v)
x.new(i, v, (2, 3))
x.new(i.int(), v)
x.new(device="cuda")
x.new(i, v, device="cuda")
torch.sparse.FloatTensor([6])
torch.sparse.FloatTensor(d)
torch.sparse.FloatTensor(i, v, device="cuda")
z * y
y * z
x * y
y * x
(z * y).dtype
torch.tensor(2.0).to_sparse() * z
z * torch.tensor(2.0).to_sparse()
torch.zeros((2, 3), out=x.clone(), requires_grad=True).requires_grad
z / z
z // z
x / x
x.narrow_copy(1, 1, 2)
x.narrow_copy(-1, 0, 1)
x.narrow_copy(10, 0, 1)
x.narrow_copy(0, 0, -1)
x.norm(dtype=torch.float64)
x.norm(3, dtype=torch.float64)
x.norm("abc")
x.norm("nuc")
x.permute(0, 1, 2)
x.broadcast_to((4, 2, 3))
u._coalesced_(False).clone().is_coalesced()
torch.hsmm(x, d.t()).to_dense()
torch.hsmm(u, d.t()).to_dense()
torch.hsmm(d, d)
torch.hsmm(x, x)
torch.hsmm(x, x.t())
torch.hsmm(x, d)
torch.hsmm(x, d[0])
torch.smm(x, d.t())
torch.smm(u, d.t())
torch.smm(d, d)
torch.smm(x, x)
torch.smm(x, d)
torch.smm(x, d[0])
torch.sspaddmm(e, x, d.t())
torch.saddmm(q, x, d.t(), beta=2, alpha=3)
torch.sspaddmm(x, x, d.t())
torch.sspaddmm(e, d, d.t())
torch.sspaddmm(e, x, d)
c.clone().copy_(x)
x.clone().copy_(c)
d.clone().copy_(c)
d.clone().copy_(x)
c.clone().copy_(d)
c.clone().copy_(k)
c.clone().copy_(-c.double())
c.clone().copy_(b)
c.clone().copy_(c.t().to_sparse_csr())
x.clone().copy_(x.t())
x.clone().copy_(e)
e.clone().copy_(x)
c.clone().resize_(2, 4)
c.clone().resize_(4, 3)
k.clone().resize_((4, 4))
c.clone().resize_(1, 3)
c.clone().resize_(0, 3)
c.clone().resize_(2, 2)
c.clone().resize_(4)
c.clone().resize_as_(torch.ones(3, 4))
c.clone().sparse_resize_((3, 3), 2, 0)
c.clone().fill_(2)
k.clone().normal_().row_indices()
x.clone().fill_(2)
x.clone().normal_()
c + b.t()
c + b
c.angle()
torch.angle(k.to(torch.complex64))
x.angle()
c.to(torch.complex64).abs_()
x.to(torch.complex64).abs_()
torch.zeros(2, layout=torch.sparse_csr)
torch.empty((), layout=torch.sparse_csc)
torch.sparse_coo_tensor(i, d.t(), (2, 3))
torch.sparse_coo_tensor(i, d.t(), (2, 3, 2))
torch.sparse_coo_tensor(i + 9, v, (2, 3, 1), check_invariants=True)
torch.sparse_coo_tensor(i + 9, d, (2, 3, 4), check_invariants=True)
""".strip().splitlines()


def operands(torch: Any) -> dict[str, Any]:
    """Return the operands that the cases name."""
    i, v = torch.tensor([[0, 1], [2, 0]]), torch.tensor([3.0, 4.0])
    x = torch.sparse_coo_tensor(i, v, (2, 3)).coalesce()
    none = torch.zeros((0, 2), dtype=torch.int64)
    return {
        "torch": torch, "i": i, "v": v, "x": x, "u": x + x, "c": x.to_sparse_csr(), "k": x.to_sparse_csc(), "d": torch.ones(2, 3),
        "z": torch.sparse_coo_tensor(none, v.double(), ()), "y": torch.sparse_coo_tensor(none, v, ()),
        "b": torch.eye(3, 2)[:2].repeat(1, 2)[:, :3].to_sparse_csr(), "e": torch.sparse_coo_tensor((2, 2)), "q": torch.sparse_coo_tensor(i[:1, :1].repeat(2, 1), v[:1], (2, 2)),
    }  # fmt: skip


def told(torch: Any, case: str) -> str:
    """Return what a case gives, or its error without the list of what torch has for other backends."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            made = eval(case, operands(torch))
        except (RuntimeError, TypeError, ValueError) as error:
            kind = NotImplementedError if isinstance(error, NotImplementedError) else type(error)
            text = str(error).partition(" This could be because")[0]
            return f"{kind.__name__}: {text.replace('SparseCsrCPU', 'SparseCPU')}"
        sparse = getattr(made, "layout", None) is torch.sparse_coo
        return f"{made!r} {made.is_coalesced() if sparse else ''}"


@pytest.mark.parametrize("case", CASES)
def test_makers(case: str) -> None:
    assert told(ct, case) == told(th, case)


def test_products_that_stay_sparse_are_functions() -> None:
    names = ("hsmm", "hspmm", "saddmm", "smm", "sspaddmm", "dsmm", "spmm")
    assert [hasattr(ct.Tensor, n) for n in names] == [hasattr(th.Tensor, n) for n in names]
    assert [hasattr(ct, n) for n in names] == [hasattr(th, n) for n in names]


@pytest.mark.parametrize("name", ["sparse_csr_tensor", "sparse_csc_tensor"])
@pytest.mark.parametrize(
    "parts",
    [
        "P(0), E(0, 1, 0, 2), v, (2, 3)", "P(0, 2, 4), P(0), v, (2, 3)", "P(0, 2), E(0, 1, 0, 2), v, (2, 3)",
        "P(0, 2, 4, 4), E(0, 1, 0, 2), v, (2, 3)", "P(0, 2, 4), E(0, 1, 0), v, (2, 3)", "P(1, 2, 4), E(0, 1, 0, 1), v, (2, 2)",
        "P(0, 2, 5), E(0, 1, 0, 1), v, (2, 2)", "P(0, 5, 4), E(0, 1, 0, 1), v, (2, 2)", "P(0, 2, 4), E(0, -1, 0, 1), v, (2, 2)",
        "P(0, 2, 4), E(0, 1, 0, 2), v, (2, 2)", "P(1, 2, 4), E(0, 1, 0, 2), v, (2, 2)", "P(0, 2, 4), E(1, 0, 0, 1), v, (2, 2)",
        "P(0, 2, 4), E(0, 0, 0, 1), v, (2, 2)", "P(0, 2, 4), E(0, 1, 0, 1), v, (2, 2)", "P(0, 2, 4).int(), E(0, 1, 0, 1), v, (2, 2)",
        "P(0, 2, 4).float(), E(0, 1, 0, 1).float(), v, (2, 2)", "P(0, 2, 4).short(), E(0, 1, 0, 1).short(), v, (2, 2)",
        "P(0, 2, 4).int(), E(0, 1, 0, 1).int(), v, (2, 2)", "P(0, 0, 0), E(), v[:0], (2, 2)",
    ],
)  # fmt: skip
def test_checks_of_compressed_indices(name: str, parts: str) -> None:
    def made(torch: Any) -> str:
        def several(*numbers: int) -> Any:
            return torch.tensor(numbers, dtype=torch.int64)

        given = {"P": lambda *n: several(*n) if n != (0,) else torch.tensor(0), "E": several, "v": torch.arange(4.0)}  # fmt: skip
        try:
            return repr(getattr(torch, name)(*eval(parts, given), check_invariants=True))
        except RuntimeError as error:
            return str(error).partition("\n")[0]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert made(ct) == made(th)


@pytest.mark.parametrize("kind", ["to_sparse", "to_sparse_csr"])
@pytest.mark.parametrize(
    "call",
    [
        "torch.mm(s, d)", "s @ d", "d @ s", "torch.mv(s, d[0])", "torch.addmm(d, s, d)", "torch.sparse.mm(s, d)",
        "torch.sparse.addmm(d, s, d)", "torch.mm(s, d) + torch.sparse.mm(s, d)", "torch.mm(s, d) + s.to_dense()",
    ],
)  # fmt: skip
def test_a_leaf_takes_dense_gradients_of_its_product(call: str, kind: str) -> None:
    def made(torch: Any, dtype: str) -> list[str]:
        x = torch.tensor([[1.0, 2.0], [0.0, 3.0]]).to(getattr(torch, dtype))
        x = x * (1 + 2j) if x.is_complex() else x
        s = getattr(x, kind)().requires_grad_()
        d = (x + 1).requires_grad_()
        out = eval(call, {"torch": torch, "s": s, "d": d})
        out.abs().sum().backward()
        return [str(s.grad), str(d.grad)]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype in ("float32", "complex64"):
            assert made(ct, dtype) == made(th, dtype)


def test_second_derivatives_of_a_product_with_a_leaf() -> None:
    def made(torch: Any) -> list[str]:
        s = torch.eye(3).to_sparse().requires_grad_()
        d = torch.arange(6.0).reshape(3, 2).requires_grad_()
        out = torch.mm(s, d)
        (g,) = torch.autograd.grad((out**2).sum(), s, create_graph=True)
        (g * g).sum().backward()
        return [out.grad_fn.name(), str(s.grad), str(d.grad)]

    assert made(ct) == made(th)
