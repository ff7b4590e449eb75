"""`vmap` by batching: one call and as many launches as for one slice, derivatives inside and around it, what it refuses."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from support import outputs_of_forks

import cltensor as torch
from cltensor import errors, func, interception, library
from cltensor.batching import Batched, calls
from cltensor.func import functional_call, grad, vmap

F = torch.nn.functional


def launches(run: Callable[[], Any]) -> int:
    run()
    before = torch.stats()["launches"]
    out = run()
    for t in out if isinstance(out, tuple) else (out,):
        t._storage.buffer()
    return torch.stats()["launches"] - before


OPS: dict[str, Callable[..., Any]] = {
    "sum": lambda x: x.sum(),
    "softmax": lambda x: x.softmax(-1),
    "chain": lambda x: (x.sin() * 2 + x).exp(),
    "var": lambda x: x.var(0),
    "cumsum": lambda x: x.cumsum(0),
    "sort": lambda x: x.sort(0)[0],
    "argmax": lambda x: x.argmax(1),
    "matmul": lambda x: x @ torch.ones(6, 3),
    "layer_norm": lambda x: F.layer_norm(x, (6,)),
    "getitem": lambda x: x[1:, ::2] * 1,
    "index": lambda x: x[torch.tensor([0, 2])],
    "cat": lambda x: torch.cat([x, x]),
    "pad": lambda x: F.pad(x, (1, 1)),
    "mse": lambda x: F.mse_loss(x, torch.zeros(5, 6), reduction="none"),
}


@pytest.mark.parametrize("name", OPS)
def test_a_mapped_op_is_launched_once(name: str) -> None:
    f, x = OPS[name], torch.randn(7, 5, 6)
    calls.LOOPED.clear()
    one = launches(lambda: f(x[0].clone()))
    all_of_them = launches(lambda: vmap(f)(x))
    assert not calls.LOOPED
    assert all_of_them <= one
    assert torch.allclose(vmap(f)(x), torch.stack([f(t) for t in x]), atol=1e-5)


def test_the_function_is_called_once_with_what_looks_like_a_slice() -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        assert torch._C.is_batchedtensor(x)
        seen.append((x.shape, x.dim(), x.dtype, x.stride(), isinstance(x, torch.Tensor), repr(x)))
        return x * 2

    x = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert torch.equal(vmap(f)(x), x * 2)
    where = "" if x.device.type == "cpu" else f", device='{x.device}'"
    text = f"BatchedTensor(lvl=1, bdim=0, value=\n    tensor([[1., 2.],\n            [3., 4.],\n            [5., 6.]]{where})\n)"
    assert seen == [((2,), 1, torch.float32, (1,), True, text)]


def test_functions_are_themselves_again_afterwards() -> None:
    # Of functions that autocast, the library has objects of its own (see amp/install.py).
    found = (torch.sum, torch.Tensor.sum, F.softmax)
    functions = [getattr(fn, "__uncast__", fn) for fn in found]
    code = [fn.__code__ for fn in functions]

    def f(x: Any) -> Any:
        assert functions[0].__code__ is not code[0]
        return vmap(torch.sin)(x).sum()

    vmap(f)(torch.ones(2, 3))
    with pytest.raises(ZeroDivisionError):
        vmap(lambda x: 1 / 0)(torch.ones(2))
    assert code == [fn.__code__ for fn in functions]


def test_a_failed_return_to_interception_keeps_no_lock(monkeypatch: Any) -> None:
    def fails() -> None:
        raise MemoryError

    monkeypatch.setattr(calls, "_running", 1)
    monkeypatch.setattr(calls, "_come_back", lambda: None)
    monkeypatch.setattr(calls, "_stand_aside", fails)
    monkeypatch.setattr(calls, "_ENTRIES", [])
    with pytest.raises(MemoryError), interception.for_good():
        pass
    taken: list[bool] = []

    def take() -> None:
        if calls._LOCK.acquire(timeout=1):
            calls._LOCK.release()
            taken.append(True)

    other = threading.Thread(target=take)
    other.start()
    other.join()
    assert taken


def test_what_has_no_rule_is_called_for_each_slice() -> None:
    x = torch.randn(4, 5)
    calls.LOOPED.clear()
    out = vmap(lambda x: torch.histc(x, 4, -1, 1))(x)
    assert list(calls.LOOPED) == ["histc"]
    assert torch.equal(out, torch.stack([torch.histc(t, 4, -1, 1) for t in x]))


def test_gradients_for_each_sample() -> None:
    model = torch.nn.Sequential(
        torch.nn.Conv2d(2, 3, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(12, 4)
    )
    params = {k: p.detach() for k, p in model.named_parameters()}
    x, y = torch.randn(5, 2, 4, 4), torch.randint(0, 4, (5,))

    def loss(params: Any, x: Any, y: Any) -> Any:
        return F.cross_entropy(functional_call(model, params, (x[None],)), y[None])

    calls.LOOPED.clear()
    found = vmap(grad(loss), in_dims=(None, 0, 0))(params, x, y)
    assert not calls.LOOPED
    for k, got in found.items():
        want = torch.stack([grad(loss)(params, a, b)[k] for a, b in zip(x, y, strict=True)])
        assert torch.allclose(got, want, atol=1e-5), k


def test_an_ensemble_is_one_model() -> None:
    models = [torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Tanh(), torch.nn.Linear(6, 2)) for _ in range(3)]  # fmt: skip
    params, buffers = func.stack_module_state(models)
    x = torch.randn(5, 4)

    def run(p: Any, b: Any, x: Any) -> Any:
        return functional_call(models[0], (p, b), (x,))

    found = vmap(run, in_dims=(0, 0, None))(params, buffers, x)
    assert torch.allclose(found, torch.stack([m(x) for m in models]), atol=1e-6)
    found.sum().backward()
    assert params["0.weight"].grad.shape == (3, 6, 4)


def test_derivatives_inside_and_around(one_by_one: None) -> None:
    x = torch.randn(4, 3)

    def f(v: Any) -> Any:
        return (v.sin().sum() * v).tanh()

    for transform in (func.jacrev, func.jacfwd):
        got = vmap(transform(f))(x)
        assert torch.allclose(got, torch.stack([transform(f)(v) for v in x]), atol=1e-6)
    want = torch.stack([func.hessian(lambda v: (v**3).sum() * v[0])(v) for v in x])
    assert torch.allclose(vmap(func.hessian(lambda v: (v**3).sum() * v[0]))(x), want, atol=1e-5)
    _, pull = func.vjp(f, x[0])
    assert torch.allclose(vmap(pull)(torch.eye(3))[0], func.jacrev(f)(x[0]), atol=1e-6)
    assert torch.equal(grad(lambda s: vmap(lambda v: v * s)(x).sum())(torch.tensor(2.0)), x.sum())
    cubes = vmap(vmap(grad(lambda v: v**3)))(x)
    assert torch.allclose(cubes, 3 * x * x)
    _, pushed = func.jvp(lambda z: vmap(lambda r: r.sin().sum())(z), (x,), (x,))
    assert torch.allclose(pushed, (x * x.cos()).sum(1), atol=1e-6)
    w = torch.tensor(3.0, requires_grad=True)  # the function closes over it
    vmap(lambda v: (v * w).sum())(x).sum().backward()
    assert w.grad is not None
    assert torch.allclose(w.grad, x.sum(), atol=1e-5)


def test_a_jacobian_is_one_pass() -> None:
    runs: list[int] = []

    class Counted(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            runs.append(1)
            return g * ctx.saved_tensors[0].cos()

    x = torch.randn(6)
    assert torch.allclose(func.jacrev(Counted.apply)(x), torch.diag(x.cos()))
    assert len(runs) == 1
    assert torch.allclose(func.jacrev(Counted.apply, chunk_size=4)(x), torch.diag(x.cos()))
    assert len(runs) == 3


class Scaled(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any, y: Any) -> Any:
        return x * y.sum()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        return g * y.sum(), (g * x).sum().expand(y.shape)


@pytest.mark.parametrize("dims", [(0, 0), (0, None), (None, 0)])
def test_custom_functions(dims: Any) -> None:
    a, b = (torch.randn(4, 3) if d == 0 else torch.randn(3) for d in dims)
    for n in (0, 1):
        got = vmap(grad(lambda x, y: Scaled.apply(x, y).sum(), argnums=n), dims)(a, b)
        want = vmap(grad(lambda x, y: (x * y.sum()).sum(), argnums=n), dims)(a, b)
        assert torch.allclose(got, want, atol=1e-6)

    class Own(Scaled):
        generate_vmap_rule = False

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any, y: Any) -> Any:
            assert (info.batch_size, info.randomness, in_dims) == (4, "error", dims)
            return x.new_ones(3, 4), 1

    assert torch.equal(vmap(Own.apply, dims)(a, b), torch.ones(4, 3))

    class Neither(Scaled):
        generate_vmap_rule = False

    with pytest.raises(RuntimeError, match="does not have vmap support"):
        vmap(Neither.apply, dims)(a, b)


def test_operators_of_programs_are_called_for_each_slice() -> None:
    @library.custom_op("mapped::double", mutates_args=())
    def double(x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(x.cpu().numpy() * 2).to(x.device)

    assert torch.equal(vmap(double)(torch.ones(3, 2)), torch.full((3, 2), 2.0))


def test_writing_in_place() -> None:
    x, y = torch.randn(3, 4), torch.zeros(4)

    def f(x: Any) -> Any:
        z = x.new_zeros(4)
        z[1:] = x[1:]
        z.view(2, 2)[0] += 1
        return z

    want = torch.stack([f(t) for t in x])
    assert torch.equal(vmap(f)(x), want)
    assert torch.equal(vmap(lambda x: x.mul_(2))(z := x.clone()), x * 2)
    assert torch.equal(z, x * 2)
    with pytest.raises(RuntimeError, match="vmap: inplace arithmetic"):
        vmap(lambda x: y.add_(x))(x)


def test_random_numbers() -> None:
    x = torch.zeros(3, 500)
    with pytest.raises(RuntimeError, match="randomness error mode"):
        vmap(lambda x: x + torch.randn(500))(x)
    same = vmap(lambda x: x + torch.randn(500), randomness="same")(x)
    assert torch.equal(same[0], same[1])
    other = vmap(lambda x: F.dropout(x + 1, 0.5) + torch.rand(500), randomness="different")(x)
    assert not torch.equal(other[0], other[1])
    assert vmap(lambda x: vmap(lambda y: torch.rand(2), randomness="different")(x), randomness="different")(x[:, :4]).unique().numel() == 24  # fmt: skip
    # A function that is called for each slice, and draws its own numbers.
    y = vmap(lambda x: F.fractional_max_pool2d(x, 2, output_size=2), randomness="different")(x[:, :36].view(3, 1, 6, 6))  # fmt: skip
    assert y.shape == (3, 1, 2, 2)
    with pytest.raises(RuntimeError, match="Only allowed values for randomness"):
        vmap(torch.sin, randomness="some")


def test_a_batch_of_no_slices_and_chunks() -> None:
    assert vmap(lambda x: x.sin().sum())(torch.zeros(0, 3)).shape == (0,)
    assert vmap(lambda x: torch.histc(x, 4))(torch.zeros(0, 3)).shape == (0, 4)
    x = torch.randn(5, 3)
    assert torch.equal(vmap(torch.sin, chunk_size=2)(x), x.sin())


def test_a_tensor_that_left_its_map() -> None:
    kept: list[Any] = []
    vmap(lambda x: kept.append(x) or x)(torch.ones(2))
    assert kept[0].__class__ is Batched
    with pytest.raises(RuntimeError, match="escaped"):
        vmap(lambda x: vmap(lambda y: y)(x).sum() + _inner(kept, x))(torch.ones(2, 2))


def _inner(kept: list[Any], x: Any) -> Any:
    def f(y: Any) -> Any:
        kept.append(y)
        return y

    vmap(f)(x)
    return kept[-1] + 1


def test_only_debug_three_speaks(monkeypatch: Any, capsys: Any) -> None:
    vmap(lambda x: torch.histc(x, 4))(torch.ones(2, 3))
    assert not capsys.readouterr().err
    monkeypatch.setattr(errors, "CONFIG", dataclasses.replace(errors.CONFIG, debug=3))
    vmap(lambda x: torch.histc(x, 4))(torch.ones(2, 3))
    assert "vmap: histc is called for each slice" in capsys.readouterr().err


_TOGETHER = """
import cltensor as torch

def joined(x):
    return torch.cat([x, x.softmax(0)]).sum()

def first_ones(x):
    if {inside}:
        made.update(one_of_each())
    return joined(x)

def one_of_each():
    class Own(torch.Tensor):
        pass

    return {{"own": torch.ones(3).as_subclass(Own), "sparse": torch.eye(3).to_sparse()}}

x, made = torch.arange(12.0).view(3, 4), {{}}
wanted = torch.vmap(joined)(x).tolist()
if not {inside}:
    made.update(one_of_each())
for _ in range(2):
    assert torch.vmap(first_ones)(x).tolist() == wanted
    assert type(made["own"].sum()) is type(made["own"]) is not torch.Tensor
    assert torch.equal(made["sparse"] @ x, x)
    assert torch.equal(torch.cat([x, x]).sum(0), 2 * x.sum(0))
from cltensor.batching.calls import LOOPED
assert not LOOPED, LOOPED
"""


@pytest.mark.parametrize("inside", [False, True])
def test_subclasses_and_sparse_tensors_ask_beside_it(inside: bool) -> None:
    """Calls on subclasses, on sparse tensors and in maps are all intercepted (Note [Interception]), whether the first
    subclass and sparse tensor are made before a map or while one runs.
    """
    text = _TOGETHER.format(inside=inside)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


_AFTER_AUTOCAST = """
import cltensor as torch
F = torch.nn.functional
w = torch.randn(3, 6)
ops = (
    lambda t: t @ w.t(), lambda t: F.linear(t, w), lambda t: torch.mm(t, w.t()),
    lambda t: F.softmax(t, 1), lambda t: F.layer_norm(t, (6,)), lambda t: t.cumsum(0), lambda t: torch.einsum("ij,kj->ik", t, w),
    lambda t: F.conv1d(t[None], w[:, :5, None])[0], lambda t: t.exp().sum(1, keepdim=True), lambda t: F.mse_loss(t, t * 2),
)
x = torch.randn(7, 5, 6)
with torch.autocast("cpu"):
    assert ops[0](x[0]).dtype is torch.bfloat16
for f in ops:
    torch.testing.assert_close(torch.vmap(f)(x), torch.stack([f(t) for t in x]))
with torch.autocast("cpu"):
    assert torch.vmap(ops[0])(x).dtype is torch.bfloat16
from cltensor.batching.calls import LOOPED
assert not LOOPED, LOOPED
"""


def test_listed_ops_are_met_after_autocast() -> None:
    """`vmap` intercepts the function that casts operands, and the one beneath, which the library's own modules call."""
    done = subprocess.run(
        [sys.executable, "-c", _AFTER_AUTOCAST], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_properties_are_mapped_where_functions_ask_their_arguments() -> None:
    program = """
class Of(torch.Tensor): pass
torch.ones(2).as_subclass(Of)
x = torch.tensor([[1 + 2j, 3], [0, 1j]])
print(torch.vmap(lambda x: x.real - x.imag)(x).tolist())
"""
    assert outputs_of_forks([program]) == ["[[-1.0, 3.0], [0.0, -1.0]]"]
