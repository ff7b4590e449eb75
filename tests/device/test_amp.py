"""Autocast's lists, switches and cache, custom functions under it, and the gradient scaler."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from support import close, data, outputs_of_forks

import cltensor as torch
from cltensor.nn import functional as F


@pytest.fixture
def kind(dev: Any) -> str:
    """Return the device type that autocast knows the tested device by."""
    return "cpu" if dev.type == "cpu" else "opencl"


@pytest.fixture
def ab() -> tuple[Any, Any]:
    return tuple(torch.tensor(data(4, 4, seed=i)) for i in range(2))


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    assert not torch.is_autocast_enabled("cpu")
    assert not torch.is_autocast_enabled("cuda")


def test_listed_ops_choose_their_dtype(kind: str, ab: tuple[Any, Any]) -> None:
    a, b = ab
    with torch.autocast(kind, dtype=torch.bfloat16):
        low = a @ b
        results = [
            low,
            torch.mm(a, b),
            a.matmul(b),
            F.linear(a, b),
            torch.einsum("ij,jk->ik", a, b),
        ]
        assert [r.dtype for r in results] == [torch.bfloat16] * 5
        assert F.mse_loss(low, low).dtype is torch.float32
        assert torch.cat([low, a]).dtype is torch.float32
        assert (low + 1).dtype is torch.bfloat16
        assert (a + 1).dtype is torch.float32
        assert (a.double() @ b.double()).dtype is torch.float64
        with torch.autocast(kind, enabled=False):
            assert (a @ b).dtype is torch.float32
        assert (a @ b).dtype is torch.bfloat16
    assert (a @ b).dtype is torch.float32
    close(low.float(), (a @ b).tolist(), 5e-2)


def test_the_gpu_lists(dev: Any, ab: tuple[Any, Any]) -> None:
    """A CPU stands in for a GPU when it is asked for as an OpenCL device."""
    place = next((d for d in torch.opencl.devices() if d.type == "opencl"), None)
    if place is None:
        pytest.skip("no OpenCL device by that name")
    a, b = (t.to(place) for t in ab)
    with torch.autocast("opencl"):
        low = a @ b
        assert low.dtype is torch.float16
        assert low.softmax(0).dtype is torch.float32
        assert low.softmax(0, dtype=torch.float16).dtype is torch.float16
        assert (low.abs() + 1).log().dtype is torch.float32
        assert (low**2).dtype is torch.float32
        assert torch.is_autocast_enabled("cuda")
        with pytest.raises(RuntimeError, match="unsafe to autocast"):
            F.binary_cross_entropy(a.sigmoid(), b.sigmoid())


def test_other_devices_are_left_alone(kind: str, ab: tuple[Any, Any]) -> None:
    a, b = ab
    with torch.autocast("opencl" if kind == "cpu" else "cpu", dtype=torch.bfloat16):
        assert (a @ b).dtype is torch.float32


def test_gradients_arrive_in_the_parameters_dtype(kind: str, ab: tuple[Any, Any]) -> None:
    x, w = ab
    w.requires_grad_()
    with torch.autocast(kind, dtype=torch.bfloat16):
        loss = F.mse_loss(F.linear(F.linear(x, w), w), x)
    loss.backward()
    assert w.grad.dtype is torch.float32
    plain = w.detach().clone().requires_grad_()
    F.mse_loss(F.linear(F.linear(x, plain), plain), x).backward()
    close(w.grad, plain.grad.tolist(), 0.1)


def test_parameters_are_cast_once(kind: str, ab: tuple[Any, Any]) -> None:
    from cltensor.amp.state import STATE

    x, w = ab
    w.requires_grad_()
    with torch.autocast(kind, dtype=torch.bfloat16):
        F.linear(x, w)
        (copy,) = [cast for _, cast in STATE.casts.values()]
        F.linear(x, w)
        assert [cast for _, cast in STATE.casts.values()] == [copy]
    assert not STATE.casts
    with torch.autocast(kind, dtype=torch.bfloat16, cache_enabled=False):
        F.linear(x, w)
        assert not STATE.casts


def test_decorator_threads_and_switches(kind: str, ab: tuple[Any, Any]) -> None:
    a, b = ab

    @torch.autocast(kind, dtype=torch.bfloat16)
    def product() -> Any:
        return a @ b

    assert product().dtype is torch.bfloat16
    found: list[bool] = []
    with torch.autocast(kind, dtype=torch.bfloat16):
        thread = threading.Thread(target=lambda: found.append(torch.is_autocast_enabled(kind)))
        thread.start()
        thread.join()
    assert found == [False]
    torch.set_autocast_enabled(kind, True)
    torch.set_autocast_dtype(kind, torch.float16)
    assert (a @ b).dtype is torch.float16
    torch.set_autocast_enabled(kind, False)
    torch.set_autocast_dtype(kind, torch.bfloat16 if kind == "cpu" else torch.float16)


def test_errors_and_warnings() -> None:
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        torch.autocast(3)
    with pytest.raises(RuntimeError, match="unsupported autocast device_type 'x'"):
        torch.autocast("x")
    with pytest.raises(TypeError, match="requires a callable"):
        torch.autocast("cpu")(3)
    with pytest.warns(UserWarning, match="In CPU autocast, but the target dtype is not supported"):
        assert not torch.autocast("cpu", dtype=torch.float64)._enabled
    assert torch.amp.is_autocast_available("opencl")
    assert not torch.amp.is_autocast_available("x")
    with pytest.warns(FutureWarning, match=r"torch.cuda.amp.autocast\(args...\)` is deprecated"):
        torch.cuda.amp.autocast(enabled=False)
    with pytest.warns(FutureWarning, match=r"torch.cpu.amp.autocast\(args...\)` is deprecated"):
        torch.cpu.amp.autocast(enabled=False)


def test_custom_functions(kind: str, ab: tuple[Any, Any]) -> None:
    seen: list[Any] = []

    class Product(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type=kind, cast_inputs=torch.float32)
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(a, b)
            seen.append((a @ b).dtype)
            return a @ b

        @staticmethod
        @torch.amp.custom_bwd(device_type=kind)
        def backward(ctx: Any, g: Any) -> Any:
            a, b = ctx.saved_tensors
            seen.append((g @ b.T).dtype)
            return g @ b.T, a.T @ g

    a, b = ab
    a.requires_grad_()
    with torch.autocast(kind, dtype=torch.bfloat16):
        out = Product.apply(a.bfloat16(), b)
    out.sum().backward()
    assert seen == [torch.float32, torch.float32]
    assert a.grad.dtype is torch.float32


# ------------------------------------------------------------------------------------------- the scaler


def scaled(kind: str, **options: Any) -> tuple[Any, Any, Any]:
    p = torch.ones(3, requires_grad=True)
    return p, torch.optim.SGD([p], 0.1), torch.amp.GradScaler(kind, **options)


def test_scaler(kind: str) -> None:
    p, o, scaler = scaled(kind, init_scale=8.0, growth_interval=2)
    scales = []
    for step in range(5):
        o.zero_grad()
        before = p.tolist()
        loss = (p * p).sum() * (float("inf") if step == 2 else 1.0)
        scaler.scale(loss).backward()
        scaler.step(o)
        scaler.update()
        scales.append(scaler.get_scale())
        if step == 2:
            assert p.tolist() == before
        else:
            close(p, [0.8 * v for v in before])
    assert scales == [8.0, 16.0, 8.0, 8.0, 16.0]
    saved = scaler.state_dict()
    assert saved["scale"] == 16.0
    other = scaled(kind)[2]
    other.load_state_dict(saved)
    assert other.state_dict() == saved


def test_unscaling_many_gradients_reads_the_host_once(kind: str) -> None:
    ps = [torch.ones(3, requires_grad=True) for _ in range(40)]
    o, scaler = torch.optim.SGD(ps, 0.1), torch.amp.GradScaler(kind, init_scale=4.0)
    scaler.scale(sum(ps).sum()).backward()
    torch.opencl.synchronize()
    launches = torch.stats()["launches"]
    scaler.unscale_(o)
    assert torch.stats()["launches"] - launches <= 4
    close(ps[39].grad, [1.0] * 3)
    ps[7].grad[1] = float("nan")
    torch.nn.utils.clip_grad_norm_(ps[:3], 1.0)
    with pytest.raises(RuntimeError, match="already been called on this optimizer"):
        scaler.unscale_(o)
    scaler.step(o)  # not skipped: unscale_ looked for infinities before the nan was written
    with pytest.raises(RuntimeError, match="already been called since the last update"):
        scaler.step(o)
    with pytest.raises(RuntimeError, match="being called after step"):
        scaler.unscale_(o)


def test_scaler_refusals(kind: str) -> None:
    p, o, scaler = scaled(kind)
    with pytest.raises(AssertionError, match="_scale is None"):
        scaler.step(o)
    with pytest.raises(ValueError, match="iterable of Tensors"):
        scaler.scale(3)
    assert [t.item() for t in scaler.scale([torch.tensor(1.0), torch.tensor(2.0)])] == [
        65536,
        131072,
    ]
    with pytest.raises(AssertionError, match="No inf checks were recorded prior"):
        scaler.update()
    with pytest.raises(RuntimeError, match="Closure use is not"):
        scaler.step(o, closure=lambda: None)
    q = torch.ones(2, dtype=torch.float16, requires_grad=True)
    q.grad = torch.ones(2, dtype=torch.float16)
    with pytest.raises(ValueError, match="Attempting to unscale FP16"):
        scaler.unscale_(torch.optim.SGD([q]))
    off = torch.amp.GradScaler(kind, enabled=False)
    assert off.scale(p) is p
    assert (off.get_scale(), off.state_dict(), off.is_enabled()) == (1.0, {}, False)
    with pytest.raises(AssertionError, match="growth factor"):
        torch.amp.GradScaler(kind, growth_factor=1.0)


def test_a_scaler_set_by_hand(kind: str) -> None:
    p, o, scaler = scaled(kind)
    scaler.scale((p * p).sum()).backward()
    scaler.step(o)
    scaler.update(32.0)
    assert scaler.get_scale() == 32.0


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpoint_runs_again_as_it_ran(kind: str, reentrant: bool) -> None:
    seen = []

    def run(a: Any, b: Any) -> Any:
        seen.append((a @ b).dtype)
        return ((a @ b).relu() @ b).float()

    def gradients(inside: bool) -> list[Any]:
        a, b = (torch.tensor(data(4, 4, seed=i), requires_grad=True) for i in range(2))
        with torch.autocast(kind, dtype=torch.bfloat16, enabled=inside):
            y = torch.utils.checkpoint.checkpoint(run, a, b, use_reentrant=reentrant).sum()
        with torch.autocast(kind, dtype=torch.bfloat16, enabled=not inside):
            y.backward()
        return [a.grad, b.grad]

    assert all(g.dtype is torch.float32 for g in gradients(True) + gradients(False))
    assert seen == [torch.bfloat16] * 2 + [torch.float32] * 2


def test_recurrent_layers_are_listed(kind: str) -> None:
    x = torch.ones(2, 1, 3)
    with torch.autocast(kind, dtype=torch.bfloat16):
        found = [cell(3, 2)(x)[0].dtype for cell in (torch.nn.LSTM, torch.nn.RNN, torch.nn.GRU)]
    low = torch.bfloat16
    assert found == [low, low, torch.float32 if kind == "cpu" else low]


def test_in_a_process_that_has_not_used_the_namespaces() -> None:
    """Autocast's lists also cover functions of subpackages that are not loaded yet when it is entered."""
    text = (
        "import cltensor as torch\n"
        "with torch.autocast('cpu', dtype=torch.bfloat16):\n"
        "    print(torch.fft.fft(torch.ones(0, 4).bfloat16()).dtype)"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "torch.complex64"


_HELD = """
import pickle
F, linalg = torch.nn.functional, torch.linalg
names = [(torch, "einsum"), (torch, "sum"), (F, "mse_loss"), (F, "linear"), (linalg, "solve"), (torch.fft, "rfft"), (torch.Tensor, "mm")]
held = [getattr(home, name) for home, name in names]
einsum, _, mse_loss, linear = held[:4]
mm = torch.ones(2, 2).mm
"""
_SAME = """
print([getattr(home, name) is f for (home, name), f in zip(names, held)], [pickle.loads(pickle.dumps(f)) is f for f in held[:6]])
"""
_CAST = """
x = torch.ones(2, 2)
with torch.autocast("cpu"):
    print([t.dtype for t in (einsum("ij,jk", x, x), linear(x, x), mm(x), mse_loss(x.bfloat16(), x.bfloat16()))])
"""
_ASK = """
class Plain:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func in held
print([f(Plain()) for f in (torch.sum, torch.fft.rfft)] + [linear(Plain(), x) for x in (Plain(), 1)])
"""
_SPARSE = """
x = torch.eye(2).to_sparse()
print(torch.sum(x).item(), torch.mm(x, torch.ones(2, 2)).dtype)
"""


def test_functions_that_programs_hold_cast_ask_and_stay_the_same() -> None:
    """They are imported by name before the first autocast, and are keys of tables."""
    same = "[True, True, True, True, True, True, True] [True, True, True, True, True, True]"
    cast = "[torch.bfloat16, torch.bfloat16, torch.bfloat16, torch.float32]"
    asked = "[True, True, True, True]"
    for parts, expected in (
        ((_ASK, _SAME, _CAST), (asked, same, cast)),
        ((_CAST, _SPARSE, _SAME, _ASK), (cast, "2.0 torch.float32", same, asked)),
        ((_SPARSE, _CAST, _SPARSE), ("2.0 torch.float32", cast, "2.0 torch.float32")),
    ):
        assert outputs_of_forks([_HELD + "".join(parts)])[0].split("\n") == list(expected)
