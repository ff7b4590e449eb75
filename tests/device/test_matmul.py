"""Products of every rank against numpy: values, gradients, the graph they leave, dtypes and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import close, data

import cltensor as torch
from cltensor.ops import einsum


def t(array: np.ndarray, grad: bool = False) -> Any:
    made = torch.tensor(array)
    return made.requires_grad_() if grad else made


def r(*shape: int) -> Any:
    return t(data(*shape, seed=sum(shape)), True)


def tree(node: Any) -> str:
    """Return an autograd graph as text: nested node names, with @ for each leaf."""
    if node is None:
        return "-"
    name = node.name().removesuffix("Backward0").removeprefix("torch::autograd::")
    if name == "AccumulateGrad":
        return "@"
    return f"{name}({', '.join(tree(n) for n, _ in node.next_functions)})"


SHAPES = [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)), ((5, 2, 3), (3,)), ((3,), (5, 3, 4)),
    ((5, 2, 3), (5, 3, 4)), ((1, 2, 3), (5, 3, 4)), ((5, 2, 3), (1, 3, 4)), ((6, 5, 2, 3), (6, 5, 3, 4)), ((6, 5, 2, 3), (5, 3, 4)), ((6, 1, 2, 3), (5, 3, 4)),
    ((31, 33), (33, 32)), ((0, 3), (3, 4)), ((2, 0), (0, 4)), ((2, 3), (3, 0)), ((0, 2, 3), (0, 3, 4)), ((5, 2, 0), (5, 0, 4)), ((0,), (0,)),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b"), SHAPES, ids=str)
def test_matmul_is_numpys(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    x, y = data(*a, seed=1), data(*b, seed=2)
    close(t(x) @ t(y), x @ y, 1e-4)
    out = torch.empty(0)
    assert torch.matmul(t(x), t(y), out=out) is out
    close(out, x @ y, 1e-4)


@pytest.mark.usefixtures("one_by_one")
@pytest.mark.parametrize(("a", "b"), SHAPES, ids=str)
def test_matmul_gradients(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    if not np.prod(a) or not np.prod(b):
        pytest.skip("nothing to differentiate")
    x, y = (t(data(*s, seed=i, dtype="float64"), True) for i, s in enumerate((a, b)))
    if np.prod(a) < 200:
        assert torch.autograd.gradcheck(torch.matmul, (x, y))
    g = torch.ones((x @ y).shape, dtype=torch.float64)
    first = torch.autograd.grad(x @ y, (x, y), g, create_graph=True)
    again = torch.autograd.grad(sum((f * f).sum() for f in first), (x, y))
    assert all(f.shape == s.shape for f, s in zip(again, (x, y), strict=True))


GRAPHS = {
    "r(2, 3) @ r(3)": "Mv(@, @)",
    "r(3) @ r(3, 4)": "SqueezeBackward4(Mm(Unsqueeze(@), @))",
    "r(3) @ r(3)": "Dot(@, @)",
    "r(2, 3) @ r(3, 4)": "Mm(@, @)",
    "r(5, 2, 3) @ r(3, 4)": "UnsafeView(Mm(View(@), @))",
    "r(2, 3) @ r(5, 3, 4)": "Clone(Transpose(UnsafeView(Mm(UnsafeView(Clone(Transpose(@))), T(@)))))",
    "r(5, 2, 3) @ r(3)": "UnsafeView(Mv(View(@), @))",
    "r(5, 2, 3) @ r(5, 3, 4)": "UnsafeView(Bmm(View(Expand(@)), View(Expand(@))))",
    "r(5, 2, 3) @ r(1, 3, 4)": "UnsafeView(Mm(View(@), SqueezeBackward1(@)))",
    "r(6, 5, 2, 3) @ r(5, 3, 4)": "UnsafeView(Bmm(View(Expand(@)), UnsafeView(Clone(Expand(@)))))",
    "r(3).detach() @ r(5, 3, 4)": "UnsafeView(Bmm(-, View(Expand(@))))",
    "torch.outer(r(3), r(4))": "Mul(View(@), @)",
    "torch.addmm(r(4), r(2, 3), r(3, 4))": "Addmm(@, @, @)",
    "torch.tensordot(r(2, 3, 4), r(3, 4, 5))": "View(Mm(View(Permute(@)), View(Permute(@))))",
    "torch.einsum('ij->ji', r(2, 3))": "Permute(@)",
    "torch.einsum('i,j->ij', r(3), r(4))": "Mul(Permute(Unsqueeze(@)), Permute(Unsqueeze(@)))",
    "torch.kron(r(2, 3), r(4, 5))": "UnsafeView(Mul(UnsafeView(@), UnsafeView(@)))",
    "torch.matrix_power(r(3, 3), 5)": "Mm(@, Mm(Mm(@, @), Mm(@, @)))",
    "torch.chain_matmul(r(2, 3), r(3, 4), r(4, 5))": "View(Mm(Mm(@, @), @))",
    "torch.cross(r(2, 3), r(2, 3), dim=1)": "LinalgCross(@, @)",
    "torch.bilinear(r(2, 3), r(2, 4), r(5, 3, 4))": "View(Trilinear(View(@), @, View(@)))",
}


@pytest.mark.filterwarnings("ignore:torch.chain_matmul")
@pytest.mark.parametrize("line", GRAPHS)
def test_graph(line: str) -> None:
    value = eval(line, {"torch": torch, "r": r})
    assert tree(value.grad_fn) == GRAPHS[line]


@pytest.mark.parametrize(
    "dtype",
    [
        "float16",
        "bfloat16",
        "float64",
        "complex64",
        "complex128",
        "int8",
        "uint8",
        "int16",
        "int32",
        "int64",
    ],
)
def test_dtypes(dtype: str) -> None:
    base = {"float16": "float32", "bfloat16": "float32"}.get(dtype, dtype)
    x, y = data(5, 33, dtype=base), data(33, 4, seed=3, dtype=base)
    dt = getattr(torch, dtype)
    a, b = t(x).to(dt), t(y).to(dt)
    expected = np.array(a.tolist()) @ np.array(b.tolist())
    if base.startswith(("int", "uint")):
        expected = (x.astype("int64") @ y.astype("int64")).astype(dtype)
    found = a @ b
    assert found.dtype is dt
    close(found.cpu(), expected, {"float16": 2e-2, "bfloat16": 0.3}.get(dtype, 1e-4))
    close(
        (a.t()[:, 1:].t() @ b).cpu(),
        expected[1:],
        {"float16": 2e-2, "bfloat16": 0.3}.get(dtype, 1e-4),
    )


def test_strided_operands() -> None:
    x, y = data(6, 8), data(8, 6, seed=1)
    a, b = t(x), t(y)
    close(a[::2, 1::3] @ b[1::3], x[::2, 1::3] @ y[1::3])
    close(a.t() @ b.t(), x.T @ y.T)
    close(a[0].expand(4, 8) @ b, np.broadcast_to(x[0], (4, 8)) @ y)


def test_sums_with_beta_and_alpha() -> None:
    m, a, b = data(2, 4), data(2, 3, seed=1), data(3, 4, seed=2)
    close(torch.addmm(t(m), t(a), t(b), beta=2, alpha=3), 2 * m + 3 * (a @ b))
    close(torch.addmm(t(m[0]), t(a), t(b)), m[0] + a @ b)
    close(torch.addmm(t(np.full(4, np.nan, "float32")), t(a), t(b), beta=0), a @ b)
    x = t(m)
    assert x.addmm_(t(a), t(b), beta=0.5) is x
    close(x, 0.5 * m + a @ b)
    close(torch.addmv(t(m[:, 0]), t(a), t(b[:, 0]), alpha=2), m[:, 0] + 2 * (a @ b[:, 0]))
    close(torch.addr(t(m), t(m[:, 0]), t(b[0]), beta=3), 3 * m + np.outer(m[:, 0], b[0]))
    p, q, s = data(5, 2, 3), data(5, 3, 4), data(5, 2, 4)
    close(torch.baddbmm(t(s), t(p), t(q), beta=2, alpha=3), 2 * s + 3 * (p @ q))
    close(torch.addbmm(t(m), t(p), t(q), beta=2, alpha=3), 2 * m + 3 * (p @ q).sum(0), 1e-4)


@pytest.mark.usefixtures("one_by_one")
def test_gradients_of_sums() -> None:
    for fn, shapes in (
        (torch.addmm, ((4,), (2, 3), (3, 4))), (torch.addmv, ((1,), (2, 3), (3,))), (torch.addr, ((2, 3), (2,), (3,))),
        (torch.baddbmm, ((2, 4), (3, 2, 3), (3, 3, 4))), (torch.addbmm, ((2, 4), (3, 2, 3), (3, 3, 4))),
    ):  # fmt: skip
        xs = tuple(t(data(*s, seed=i, dtype="float64"), True) for i, s in enumerate(shapes))

        def scaled(*a: Any, fn: Any = fn) -> Any:
            return fn(*a, beta=2, alpha=3)

        assert torch.autograd.gradcheck(scaled, xs)
        assert torch.autograd.gradgradcheck(scaled, xs)


@pytest.mark.usefixtures("one_by_one")
def test_complex_gradients() -> None:
    x, y = (t(data(*s, seed=i, dtype="complex128"), True) for i, s in enumerate(((2, 3), (3, 2))))
    assert torch.autograd.gradcheck(torch.mm, (x, y))
    assert torch.autograd.gradcheck(torch.vdot, (x[0], y[:, 0]))


EINSUMS = [
    ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("bij,bjk->bik", (5, 2, 3), (5, 3, 4)), ("ii", (3, 3)), ("ii->i", (3, 3)), ("i,i->", (3,), (3,)),
    ("i,j->ij", (3,), (4,)), ("ij->", (2, 3)), ("ij->j", (2, 3)), ("ij,ij->ij", (2, 3), (2, 3)), ("...ij,...jk->...ik", (5, 2, 3), (3, 4)), ("...i->...", (5, 2, 3)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)), ("bn,anm,bm->ba", (2, 5), (3, 5, 4), (2, 4)), ("ijk,jil->kl", (3, 4, 5), (4, 3, 2)), ("ij,kl->", (2, 3), (4, 5)),
    ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)), ("iij->j", (3, 3, 2)), ("b...,b...->...b", (2, 3, 4), (2, 3, 4)),
]  # fmt: skip


@pytest.mark.parametrize("case", EINSUMS, ids=lambda c: c[0])
def test_einsum_is_numpys(case: Any) -> None:
    equation, *shapes = case
    xs = [data(*s, seed=i) for i, s in enumerate(shapes)]
    close(torch.einsum(equation, *map(t, xs)), np.einsum(equation, *xs), 1e-4)


@pytest.mark.parametrize("equation", ["ij,jk->ik", "bij,bkj->bik", "bij,bjk->kbi", "ki,jk", "bhqd,bhkd->bqhk", "ij,ij->", "i,ij->j"])  # fmt: skip
def test_einsum_of_one_product_is_the_general_one(equation: str) -> None:
    sizes = dict(zip("bhijkqd", (2, 3, 4, 5, 6, 7, 8), strict=True))
    a, b = equation.partition("->")[0].split(",")
    xs = [t(data(*map(sizes.get, labels), seed=i), True) for i, labels in enumerate((a, b))]
    found = torch.einsum(equation, *xs)
    assert einsum._product(xs, equation) is not None
    general = einsum._einsum(xs, *einsum._parse(equation, 2))
    assert torch.equal(found, general) and found.stride() == general.stride()
    assert found.grad_fn.name() == general.grad_fn.name()
    both = [torch.autograd.grad((y * y).sum(), xs) for y in (found, general)]
    assert all(torch.equal(p, q) for p, q in zip(*both, strict=True))


def test_einsum_forms() -> None:
    a, b = data(2, 3), data(3, 4)
    close(torch.einsum(t(a), [0, 1], t(b), [1, 2], [0, 2]), a @ b)
    close(torch.einsum(t(a), [..., 0, 1], [..., 1, 0]), a.T)
    close(torch.einsum("ij , jk -> ki", [t(a), t(b)]), (a @ b).T)
    xs = tuple(
        t(data(*s, seed=i, dtype="float64"), True) for i, s in enumerate(((2, 3), (3, 3, 4)))
    )
    assert torch.autograd.gradcheck(lambda x, y: torch.einsum("ij,jjk->ki", x, y), xs)


def test_tensor_products() -> None:
    a, b = data(2, 3, 4), data(3, 4, 5)
    close(torch.tensordot(t(a), t(b)), np.tensordot(a, b), 1e-4)
    close(torch.tensordot(t(a), t(b), ([1, 2], [0, 1])), np.tensordot(a, b, ([1, 2], [0, 1])), 1e-4)
    close(torch.tensordot(t(a), t(a), 0), np.tensordot(a, a, 0))
    close(torch.inner(t(a), t(data(5, 4))), np.inner(a, data(5, 4)))
    close(
        torch.kron(
            t(data(2, 3)),
            t(
                data(
                    4,
                )
            ),
        ),
        np.kron(data(2, 3), data(4)),
    )
    turned = torch.kron(t(data(4, 2)).mT, t(data(5, 3, seed=1)).mT)
    close(turned, np.kron(data(4, 2).T, data(5, 3, seed=1).T))
    turned = torch.kron(t(data(2, 1)).mT, t(data(1, 3)).mT)
    close(turned, np.kron(data(2, 1).T, data(1, 3).T))
    close(
        torch.cross(t(data(2, 3)), t(data(2, 3, seed=1)), dim=1),
        np.cross(data(2, 3), data(2, 3, seed=1)),
    )
    close(torch.outer(t(data(3)), t(data(4))), np.outer(data(3), data(4)))
    close(
        torch.bilinear(t(data(6, 3)), t(data(6, 4)), t(data(5, 3, 4)), t(data(5))),
        np.einsum("ni,oij,nj->no", data(6, 3), data(5, 3, 4), data(6, 4)) + data(5),
        1e-4,
    )


ERRORS = {
    "torch.mm(r(2, 3), r(2, 3))": "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)",
    "torch.mm(r(2, 3), r(3))": "mat2 must be a matrix",
    "torch.mm(r(2, 3), r(3, 4).double())": "expected m1 and m2 to have the same dtype, but got: float != double",
    "torch.mm(r(2, 3) > 0, r(3, 4) > 0)": "\"addmm_impl_cpu_\" not implemented for 'Bool'",
    "torch.bmm(r(2, 2, 3), r(2, 2, 3))": "Expected size for first two dimensions of batch2 tensor to be: [2, 3] but got: [2, 2].",
    "torch.matmul(r(5, 2, 3), r(4, 3, 3))": "The size of tensor a (5) must match the size of tensor b (4) at non-singleton dimension 0",
    "r(2, 3) @ torch.tensor(1.0)": "both arguments to matmul need to be at least 1D, but they are 2D and 0D",
    "torch.mv(r(2, 3), r(2))": "size mismatch, got input (2), mat (2x3), vec (2)",
    "torch.dot(r(3), r(4))": "inconsistent tensor size, expected tensor [3] and src [4] to have the same number of elements, but got 3 and 4 elements respectively",
    "torch.addmm(r(3), r(2, 3), r(3, 4))": "The expanded size of the tensor (4) must match the existing size (3) at non-singleton dimension 1.  Target sizes: [2, 4].  Tensor sizes: [3]",
    "torch.einsum('ij->ik', r(2, 3))": "einsum(): output subscript k does not appear in the equation for any input operand",
    "torch.einsum('ij,jk->ik', r(2, 3), r(2, 3))": "einsum(): subscript j has size 2 for operand 1 which does not broadcast with previously seen size 3",
    "torch.tensordot(r(2, 3), r(4, 3), 1)": "contracted dimensions need to match, but first has size 3 in dim -1 and second has size 4 in dim 0",
    "torch.matrix_power(r(2, 3), 2)": "linalg.matrix_power: A must be batches of square matrices, but they are 2 by 3 matrices",
    "torch.mm(r(2, 3).detach(), r(3, 4).detach(), out=r(2, 4).detach().double())": "Expected out tensor to have dtype float, but got double instead",
}


@pytest.mark.parametrize("line", ERRORS)
def test_errors(line: str) -> None:
    with pytest.raises(RuntimeError) as error:
        eval(line, {"torch": torch, "r": r})
    assert str(error.value) == ERRORS[line]


def test_a_second_shape_builds_nothing() -> None:
    (torch.ones(40, 50) @ torch.ones(50, 60)).sum().item()
    (torch.ones(41, 50) @ torch.ones(50, 60)).sum().item()
    before = torch.stats()
    (torch.ones(42, 51) @ torch.ones(51, 61)).sum().item()
    assert torch.stats().builds == before.builds
