"""What introductions to tensors show: making, printing, viewing, indexing, types, algebra."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from support import close, ct, data


def T(*shape: int, seed: int = 0) -> Any:
    return ct.tensor(data(*shape, seed=seed))


# ---------------------------------------------------------------- making and printing
def test_legacy_constructor() -> None:
    a = ct.Tensor([[1, 2, 3], [4, 5, 6]])
    assert repr(a) == "tensor([[1., 2., 3.],\n        [4., 5., 6.]])"
    assert a.tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    b = ct.Tensor(2, 3)
    assert str(b.size()) == str(b.shape) == "torch.Size([2, 3])"
    assert b.numel() == b.nelement() == 6
    assert ct.Tensor(b.size()).shape == (2, 3)
    assert repr(ct.Tensor((2, 3))) == "tensor([2., 3.])"


def test_constructors_of_the_table() -> None:
    assert repr(ct.arange(1, 6, 2)) == "tensor([1, 3, 5])"
    assert repr(ct.eye(2, 3)) == "tensor([[1., 0., 0.],\n        [0., 1., 0.]])"
    assert repr(ct.zeros(2, 3)) == "tensor([[0., 0., 0.],\n        [0., 0., 0.]])"
    assert repr(ct.zeros(2, 1, 2)) == "tensor([[[0., 0.]],\n\n        [[0., 0.]]])"
    close(ct.linspace(1, 10, 4), [1, 4, 7, 10])
    assert ct.arange(0, 1, 0.25).dtype is ct.float32
    assert ct.full((2,), 7).dtype is ct.int64
    assert ct.empty(4, 3).shape == (4, 3)
    assert not hasattr(ct, "zero")


def test_dtype_follows_the_data() -> None:
    made = [ct.tensor(v).dtype for v in ([1], [1, 2.0], [True], np.ones(1))]
    assert made == [ct.int64, ct.float32, ct.bool, ct.float64]
    assert repr(ct.tensor([1.0], dtype=ct.float64)) == "tensor([1.], dtype=torch.float64)"


def test_random_tensors() -> None:
    u, n = np.array(ct.rand(4000).tolist()), np.array(ct.randn(4000).tolist())
    assert 0 <= u.min() < u.max() < 1
    assert abs(u.mean() - 0.5) < 0.04
    assert abs(n.mean()) < 0.1
    assert abs(n.std() - 1) < 0.08
    assert sorted(ct.randperm(50).tolist()) == list(range(50))
    ct.manual_seed(3)
    first = ct.randn(5).tolist()
    ct.manual_seed(3)
    assert ct.randn(5).tolist() == first
    t = ct.empty(500)
    assert t.uniform_(2, 5) is t
    assert t.min().item() >= 2


def test_item_and_conversions() -> None:
    assert [type(ct.tensor(v).item()) for v in (5, 5.0, True)] == [int, float, bool]
    s = ct.ones(2, 3).sum()
    assert (s.dim(), float(s), int(s)) == (0, 6.0, 6)
    with pytest.raises(
        RuntimeError, match="a Tensor with 2 elements cannot be converted to Scalar"
    ):
        ct.ones(2).item()


# ---------------------------------------------------------------- views
def test_view_shares_memory_and_keeps_the_count() -> None:
    a = ct.arange(0, 6)
    b = a.view(2, 3)
    assert a.view(-1, 2).shape == (3, 2)
    a[1] = 100
    assert b[0, 1].item() == 100
    b[1, 2] = -7
    assert a[5].item() == -7
    with pytest.raises(RuntimeError, match=r"shape '\[4\]' is invalid for input of size 6"):
        a.view(4)
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        b.t().view(6)
    assert b.t().reshape(6).shape == (6,)


def test_unsqueeze_and_squeeze() -> None:
    b = ct.arange(0, 6).view(2, 3)
    assert repr(b.unsqueeze(1)) == "tensor([[[0, 1, 2]],\n\n        [[3, 4, 5]]])"
    assert b.unsqueeze(1).size() == b.unsqueeze(-2).size() == (2, 1, 3)
    c = b.view(1, 1, 1, 2, 3)
    assert repr(c) == "tensor([[[[[0, 1, 2],\n           [3, 4, 5]]]]])"
    assert c.squeeze(0).shape == (1, 1, 2, 3)
    assert c.squeeze().shape == (2, 3)


def test_resize_keeps_what_fits() -> None:
    a = ct.arange(6)
    assert a.resize_(1, 3) is a
    assert repr(a) == "tensor([[0, 1, 2]])"
    a.resize_(3, 3)
    assert a[:2].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_every_view_sees_the_base_and_the_base_every_view() -> None:
    for view in (
        lambda t: t.unsqueeze(0),
        lambda t: t.t(),
        lambda t: t.permute(1, 0),
        lambda t: t.narrow(0, 0, 1),
        lambda t: t.select(0, 0),
        lambda t: t.view(6),
        lambda t: t.detach(),
        lambda t: t[0:1],
        lambda t: t[..., 0],
        lambda t: t.diagonal(),
        lambda t: t.chunk(2)[0],
        lambda t: t.unbind(0)[0],
    ):
        x = ct.zeros(2, 3)
        v = view(x)
        x[0, 0] = 5.0
        assert 5.0 in np.ravel(v.tolist())
        v.fill_(8.0)
        assert x[0, 0].item() == 8.0


def test_contiguity() -> None:
    a = T(2, 3)
    b = a.t()
    assert (a.is_contiguous(), b.is_contiguous()) == (True, False)
    assert (a.stride(), b.stride()) == ((3, 1), (1, 3))
    c = b.contiguous()
    assert c.is_contiguous()
    assert a.contiguous() is a
    c[0, 0] = 99.0
    assert a[0, 0].item() != 99.0


# ---------------------------------------------------------------- arithmetic, in place, out=
def test_forms_of_addition_agree() -> None:
    x, y, result = ct.ones(2, 3), T(2, 3), ct.Tensor(5, 3)
    expected = 1 + data(2, 3)
    with pytest.warns(UserWarning, match=r"was resized since it had shape \[5, 3\]"):
        ct.add(x, y, out=result)
    for found in (x + y, ct.add(x, y), x.add(y), result):
        close(found, expected)
    assert y.add_(x) is y
    close(y, expected)


def test_function_and_method_forms_agree() -> None:
    a = T(3, 4)
    for name, args in (
        ("sum", (0,)),
        ("mean", (1,)),
        ("exp", ()),
        ("cumsum", (0,)),
        ("clamp", (-0.5, 0.5)),
        ("t", ()),
        ("std", ()),
        ("argmax", ()),
    ):
        close(getattr(ct, name)(a, *args), getattr(a, name)(*args))


def test_underscored_names_change_their_tensor() -> None:
    x = T(2, 3)
    y = x.t()
    assert x.shape == (2, 3)
    assert x.t_() is x
    assert x.shape == y.shape == (3, 2)
    base = abs(data(2, 3)) + 0.5
    for name, args, expected in (
        ("mul_", (2.0,), base * 2),
        ("sqrt_", (), np.sqrt(base)),
        ("zero_", (), base * 0),
        ("clamp_", (0.6, 1.0), base.clip(0.6, 1)),
    ):
        t = ct.tensor(base)
        assert getattr(t, name)(*args) is t
        close(t, expected)


def test_where_results_go() -> None:
    x, y = ct.tensor([1, 2]), ct.tensor([3, 4])
    held, place = y, y.data_ptr()
    y[:] = y + x
    ct.add(x, y, out=y)
    y += x
    assert y is held
    assert y.data_ptr() == place
    assert y.tolist() == [6, 10]
    y = y + x
    assert y is not held
    assert y.data_ptr() != place


def test_promotion() -> None:
    i, f = ct.tensor([3, 4]), ct.tensor([1.5, 2.5])
    assert [(i + f).dtype, (i / 2).dtype, (i // 2).dtype, (i + 1.5).dtype] == [
        ct.float32,
        ct.float32,
        ct.int64,
        ct.float32,
    ]
    assert (f + ct.tensor(1.0, dtype=ct.float64)).dtype is ct.float32
    with pytest.raises(
        RuntimeError, match="result type Float can't be cast to the desired output type Long"
    ):
        i.add_(1.5)


# ---------------------------------------------------------------- indexing
def test_indexing_shares_masks_and_lists_copy() -> None:
    n = data(3, 4)
    a = ct.tensor(n)
    assert a[0].tolist() == n[0].tolist()
    assert a[:, 0].tolist() == n[:, 0].tolist()
    assert a[0][2].item() == a[0, 2].item() == n[0, 2]
    mask = a > 0
    assert mask.dtype is ct.bool
    assert mask.type() == "torch.BoolTensor"
    picked = a[mask]
    assert picked.tolist() == a.masked_select(mask).tolist() == n[n > 0].tolist()
    rows = a[ct.LongTensor([0, 1])]
    rows.zero_()
    picked.zero_()
    assert a.tolist() == n.tolist()
    a[0].zero_()
    assert a[0].tolist() == [0.0] * 4
    with pytest.raises(IndexError, match="index 3 is out of bounds for dimension 0 with size 3"):
        a[3]


def test_byte_mask_is_deprecated() -> None:
    a = ct.tensor([1.0, -1.0, 2.0])
    with pytest.warns(UserWarning, match=r"indexing with dtype torch.uint8 is now deprecated"):
        assert a[(a > 0).byte()].tolist() == [1.0, 2.0]


def test_assignment_through_indices() -> None:
    n = data(3, 4)
    a = ct.tensor(n)
    for index, value in (
        (0, 1.0),
        ((slice(None), 1), [7.0, 8.0, 9.0]),
        ((slice(1, None), slice(2, None)), [5.0, 6.0]),
    ):
        a[index] = ct.tensor(value)
        n[index] = value
    a[a > 5.5] = 0.0
    n[n > 5.5] = 0
    assert a.tolist() == n.tolist()


def test_selection_functions() -> None:
    a = ct.arange(0, 16).view(4, 4)
    assert a.gather(0, ct.LongTensor([[0, 1, 2, 3]])).tolist() == [[0, 5, 10, 15]]
    assert a.gather(1, ct.LongTensor([[3, 2, 1, 0]]).t()).tolist() == [[3], [6], [9], [12]]
    both = ct.LongTensor([[0, 1, 2, 3], [3, 2, 1, 0]]).t()
    f = ct.zeros(4, 4, dtype=ct.long)
    assert f.scatter_(1, both, a.gather(1, both)) is f
    assert f.tolist() == [[0, 0, 0, 3], [0, 5, 6, 0], [0, 9, 10, 0], [12, 0, 0, 15]]
    assert ct.index_select(a, 1, ct.tensor([3, 0])).tolist() == [[3, 0], [7, 4], [11, 8], [15, 12]]
    assert ct.nonzero(ct.tensor([[1, 0], [0, 3]])).tolist() == [[0, 0], [1, 1]]
    assert a.take(ct.tensor([0, -1])).tolist() == [0, 15]
    with pytest.raises(RuntimeError, match="out of bounds"):
        a.gather(0, ct.LongTensor([[4]]))


def test_iteration_and_truth() -> None:
    a = ct.arange(6).view(2, 3)
    assert [row.tolist() for row in a] == [[0, 1, 2], [3, 4, 5]]
    assert 4 in a
    assert bool(ct.tensor([1]))
    with pytest.raises(
        RuntimeError, match="Boolean value of Tensor with more than one value is ambiguous"
    ):
        bool(a)


# ---------------------------------------------------------------- types
@pytest.mark.parametrize(
    ("name", "dtype", "method", "size"),
    [
        ("Float", "float32", "float", 4),
        ("Double", "float64", "double", 8),
        ("Half", "float16", "half", 2),
        ("Byte", "uint8", "byte", 1),
        ("Char", "int8", "char", 1),
        ("Short", "int16", "short", 2),
        ("Int", "int32", "int", 4),
        ("Long", "int64", "long", 8),
        ("Bool", "bool", "bool", 1),
    ],
)
def test_tensor_types(name: str, dtype: str, method: str, size: int) -> None:
    x = getattr(ct.tensor([1.0, 0.0, 2.0]), method)()
    assert x.type() == f"torch.{name}Tensor"
    assert x.element_size() == size
    assert repr(x.dtype) == f"torch.{dtype}"
    assert repr(x).endswith(
        ")" if dtype in ("float32", "int64", "bool") else f"dtype=torch.{dtype})"
    )
    legacy = getattr(ct, f"{name}Tensor")
    assert legacy([1, 0, 2]).dtype is getattr(ct, dtype)
    assert isinstance(x, legacy)
    assert hasattr(ct.cuda, f"{name}Tensor")


@pytest.mark.filterwarnings("ignore")
def test_default_tensor_type() -> None:
    ct.set_default_tensor_type("torch.DoubleTensor")
    try:
        assert ct.ones(1).dtype is ct.float64
        assert repr(ct.ones(1)) == "tensor([1.])"
        assert repr(ct.ones(1).float()) == "tensor([1.], dtype=torch.float32)"
    finally:
        ct.set_default_tensor_type("torch.FloatTensor")
    assert ct.Tensor(2, 3).type() == "torch.FloatTensor"


def test_conversions_and_new() -> None:
    a = ct.Tensor([1.9, -1.9])
    assert a.int().tolist() == [1, -1]
    assert repr(a.int()) == "tensor([ 1, -1], dtype=torch.int32)"
    assert a.new(2, 3).shape == (2, 3)
    assert a.double().new([1, 2]).dtype is ct.float64
    assert ct.tensor([65504.0, 70000.0]).half().tolist() == [65504.0, float("inf")]
    assert (ct.tensor([255], dtype=ct.uint8) + 1).tolist() == [0]


def test_to_and_devices() -> None:
    x = ct.ones(2)
    assert x.to("cpu") is x.to(ct.float32) is x.cpu() is x
    assert x.to("cpu", ct.double).dtype is ct.float64
    d = ct.device("cuda:0")
    assert (d.type, d.index, repr(d)) == ("cuda", 0, "device(type='cuda', index=0)")
    available = ct.cuda.is_available()
    assert type(available) is bool
    assert (ct.cuda.device_count() > 0) == available
    y = ct.ones_like(ct.empty(3, 3), device=ct.device("cpu"))
    assert repr(y[0]) == "tensor([1., 1., 1.])"


def test_memory_is_elements_times_size() -> None:
    big = ct.ones(1).expand(1000, 1000, 1000)
    assert big.numel() * big.element_size() == 4 * 10**9


# ---------------------------------------------------------------- algebra
def test_products() -> None:
    p, q, batch = data(2, 3), data(3, 4, seed=1), data(5, 3, 4)
    a, b = ct.tensor(p), ct.tensor(q)
    close(a.mm(b), p @ q)
    close(a @ b, p @ q)
    close(ct.matmul(a, ct.tensor(batch)), p @ batch)
    close(ct.mv(a, ct.tensor(q[:, 0])), p @ q[:, 0])
    close(ct.addmm(ct.ones(2, 4), a, b, beta=0.5, alpha=2), 0.5 + 2 * (p @ q))
    close(ct.outer(a[0], b[0]), np.outer(p[0], q[0]))
    close(ct.dot(a[0], a[1]), p[0] @ p[1])
    close(T(5, 3).mm(ct.ones(5, 3).t()), data(5, 3) @ np.ones((3, 5)))
    with pytest.raises(
        RuntimeError, match=r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 2x3\)"
    ):
        a.mm(a)


def test_diagonals_triangles_transposes() -> None:
    n = data(3, 3)
    a = ct.tensor(n)
    close(ct.trace(a), np.trace(n), 1e-4)
    close(a.diag(1), np.diag(n, 1))
    close(ct.triu(a, 1), np.triu(n, 1))
    close(a.tril(), np.tril(n))
    close(ct.t(a), n.T)
    with pytest.raises(
        RuntimeError, match=r"t\(\) expects a tensor with <= 2 dimensions, but self is 3D"
    ):
        ct.ones(2, 2, 2).t()


def test_decompositions() -> None:
    n = data(3, 3) + 3 * np.eye(3, dtype="float32")
    a = ct.tensor(n)
    close(a.inverse().mm(a), np.eye(3), 1e-4)
    u, s, v = ct.svd(a)
    close(u.mm(ct.diag(s)).mm(v.t()), n, 1e-4)
    close(s, np.linalg.svd(n, compute_uv=False), 1e-4)
    with pytest.raises(RuntimeError, match="singular"):
        ct.inverse(ct.zeros(2, 2))


# ---------------------------------------------------------------- broadcasting
def test_broadcast_is_unsqueeze_and_expand() -> None:
    a, b = T(3, 2), T(2, 3, 1, seed=1)
    by_hand = a.unsqueeze(0).expand(2, 3, 2) + b.expand(2, 3, 2)
    assert (a + b).tolist() == by_hand.tolist()
    close(by_hand, data(3, 2) + data(2, 3, 1, seed=1))
    assert repr(ct.ones(3, 2) + ct.zeros(2, 3, 1)).startswith(
        "tensor([[[1., 1.],\n         [1., 1.],"
    )
    with pytest.raises(
        RuntimeError, match=r"size of tensor a \(3\) must match the size of tensor b \(4\)"
    ):
        ct.ones(2, 3) + ct.ones(2, 4)


def test_expand_takes_no_memory() -> None:
    a = ct.ones(3, 1)
    e = a.expand(3, 1000)
    assert e.stride() == (1, 0)
    assert e.data_ptr() == a.data_ptr()
    assert e.untyped_storage().nbytes() == 12
    huge = ct.ones(1, 1).expand(10**6, 10**6)
    assert huge.numel() == 10**12
    assert huge[5, 7].item() == 1.0


# ---------------------------------------------------------------- numpy, files
def test_numpy_shares_memory_both_ways() -> None:
    a = ct.ones(5)
    b = a.numpy()
    a += 1
    assert b.tolist() == [2.0] * 5
    b += 1
    assert repr(a) == "tensor([3., 3., 3., 3., 3.])"
    m = np.zeros(5)
    n = ct.from_numpy(m)
    m += 1
    assert repr(n) == "tensor([1., 1., 1., 1., 1.], dtype=torch.float64)"
    n += 1
    assert m.tolist() == [2.0] * 5
    copied = ct.tensor(m)
    m += 1
    assert copied.tolist() == [2.0] * 5


def test_save_and_load() -> None:
    t, buffer = T(3, 4), io.BytesIO()
    ct.save({"a": t, "n": 3}, buffer)
    buffer.seek(0)
    back = ct.load(buffer)
    assert back["a"].tolist() == t.tolist()
    assert back["n"] == 3
