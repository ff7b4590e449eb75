"""Memory shared with other libraries: DLPack both ways, the array API's namespace, checkpointed functions."""

from __future__ import annotations

import ctypes
import functools
import gc
import os
import pickle
from contextlib import nullcontext
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np
import pytest

import cltensor as torch
from cltensor import interchange
from cltensor.testing import assert_close
from cltensor.utils import checkpoint as ckpt
from cltensor.utils import dlpack


@pytest.fixture(autouse=True)
def _host_only(dev: Any) -> None:
    if dev.type != "cpu":
        pytest.skip("memory of other devices is not shared")


@pytest.mark.parametrize("name", ["bool", "uint8", "int16", "int64", "float16", "float32", "float64", "complex64"])  # fmt: skip
def test_numpy_sees_the_memory(name: str) -> None:
    t = torch.ones(2, 3, dtype=getattr(torch, name))
    array = np.from_dlpack(t)
    assert array.dtype == name
    array[0, 1] = 0
    assert not t[0, 1].item()
    t[1, 2] = 0
    assert not array[1, 2]


def test_who_has_the_address_may_write_there() -> None:
    x = torch.full((4,), 3.0)
    y = x * 2  # pending
    ctypes.memset(x.data_ptr(), 0, 8)
    assert x.tolist() == [0, 0, 3, 3]
    assert y.tolist() == [6, 6, 6, 6]


def test_values_are_where_an_address_says() -> None:
    """data_ptr() waits for the kernel that writes the memory, which without a team may still be running: safetensors,
    for one, reads from the address.
    """
    t = torch.ones(3)
    buffer, backend = t._storage.buffer(), t._storage.backend
    with backend.lock:
        backend.seq = buffer.seq = backend.seq + 1  # as if a kernel were running
    assert t.data_ptr() == buffer.address
    assert backend.finished == backend.seq


def test_layouts() -> None:
    t = torch.arange(24).reshape(4, 6)
    array = np.from_dlpack(t[1:, ::2].t())
    assert array.strides == (16, 48)
    assert array.tolist() == t[1:, ::2].t().tolist()
    assert np.from_dlpack(torch.tensor(3)).shape == ()
    assert np.from_dlpack(torch.zeros(0, 2)).shape == (0, 2)
    assert np.from_dlpack((torch.ones(2) + 1) * 2).tolist() == [4, 4]  # pending values are computed


def test_we_see_numpys_memory() -> None:
    array = np.arange(6.0).reshape(2, 3)
    t = torch.from_dlpack(array)
    array[0, 0] = 9
    assert t[0, 0].item() == 9
    t[1, 2] = 7
    assert array[1, 2] == 7
    assert torch.from_dlpack(array.T).stride() == (1, 3)
    assert torch.from_dlpack(np.zeros((0, 2))).shape == (0, 2)
    copy = torch.from_dlpack(array, copy=True)
    array[0, 0] = 1
    assert copy[0, 0].item() == 9


def test_memory_lives_as_long_as_somebody_looks() -> None:
    held = len(interchange._held)
    array = np.from_dlpack(torch.full((1000,), 3.0))
    gc.collect()
    assert array.sum() == 3000
    assert len(interchange._held) == held + 1
    del array
    assert len(interchange._held) == held
    t = torch.from_dlpack(np.full(1000, 2.0))
    gc.collect()
    assert t.sum().item() == 2000
    again = torch.from_dlpack(np.from_dlpack(torch.ones(5)))
    assert again.tolist() == [1] * 5
    del again
    gc.collect()
    assert len(interchange._held) == held


def test_capsules() -> None:
    held = len(interchange._held)
    capsule = dlpack.to_dlpack(torch.arange(3))
    assert dlpack.from_dlpack(capsule).tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError, match="DLTensor capsules can be consumed only once"):
        dlpack.from_dlpack(capsule)
    unused = torch.to_dlpack(torch.arange(3))
    del unused, capsule
    gc.collect()
    assert len(interchange._held) == held
    half = torch.arange(3).to(torch.bfloat16)
    again = torch.from_dlpack(torch.to_dlpack(half))
    assert again.dtype is torch.bfloat16
    assert again.data_ptr() == half.data_ptr()
    with pytest.raises(RuntimeError, match="invalid capsule"):
        torch.from_dlpack(3)


KINDS = [(0, 32, 1), (1, 64, 1), (2, 16, 1), (4, 16, 1), (5, 32, 1), (5, 64, 1), (6, 8, 1), (2, 128, 1), (0, 128, 1), (2, 8, 1), (5, 16, 1), (4, 32, 1), (6, 16, 1), (2, 32, 4), (3, 64, 1)]  # fmt: skip
READ = [torch.int32, torch.uint64, torch.float16, torch.bfloat16, torch.complex32, torch.complex64, torch.bool]  # fmt: skip
REFUSED = ["kFloat bits 128", "kInt bits 128", "kFloat bits 8", "kFloat bits 16", "kFloat bits 32", "kDLBool bits 16", "lanes != 1 for dtype code2", "code 3"]  # fmt: skip


@pytest.mark.parametrize(("kind", "expected"), list(zip(KINDS, READ + REFUSED, strict=True)))
def test_capsules_of_other_types(kind: tuple[int, int, int], expected: Any) -> None:
    held = len(interchange._held)
    capsule = dlpack.to_dlpack(torch.zeros(2, 3, dtype=torch.float64))
    address = interchange._pointer(id(capsule), b"dltensor")
    managed = ctypes.cast(address, ctypes.POINTER(interchange._Managed)).contents
    managed.array.dtype.code, managed.array.dtype.bits, managed.array.dtype.lanes = kind
    if isinstance(expected, torch.dtype):
        made = dlpack.from_dlpack(capsule)
        assert (made.dtype, made.shape) == (expected, (2, 3))
        assert not made.ne(0).any()
        del made
    else:
        for _ in range(2):  # what is refused stays in the capsule
            with pytest.raises(BufferError, match=expected):
                dlpack.from_dlpack(capsule)
    del capsule
    gc.collect()
    assert len(interchange._held) == held


def test_what_cannot_be_shared() -> None:
    t = torch.ones(2, requires_grad=True)
    with pytest.raises(BufferError, match="Can't export tensors that require gradient"):
        t.__dlpack__()
    assert t.__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError):
        torch.ones(2).__dlpack__(dl_device=(2, 0))

    class Elsewhere:
        def __dlpack_device__(self) -> tuple[int, int]:
            return 2, 0

        def __dlpack__(self, **kwargs: Any) -> Any:
            raise AssertionError

    with pytest.raises(BufferError):
        torch.from_dlpack(Elsewhere())


def test_the_array_api_namespace() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    xp: Any = x.__array_namespace__()
    assert xp.sum(x).item() == 15
    assert xp.mean(x, axis=0).tolist() == [1.5, 2.5, 3.5]
    assert xp.prod(x + 1, axis=(0, 1)).item() == 720
    assert xp.max(x, axis=1, keepdims=True).tolist() == [[2], [5]]
    assert xp.concat([x, x], axis=1).shape == (2, 6)
    assert xp.permute_dims(x, (1, 0)).shape == (3, 2)
    assert xp.cumulative_sum(x, axis=1, include_initial=True).tolist() == [
        [0, 0, 1, 3],
        [0, 3, 7, 12],
    ]
    assert xp.isdtype(x.dtype, ("integral", "real floating"))
    assert xp.result_type(xp.int64, xp.float32) is torch.float32
    assert xp.can_cast(xp.int8, xp.int64)
    assert xp.astype(x, xp.int64).dtype is torch.int64
    assert xp.std(xp.asarray([1.0, 3.0])).item() == 1


def test_einops() -> None:
    einops = pytest.importorskip("einops")
    interchange.register_einops()
    gc.collect()  # einops refers to its backends weakly
    x = torch.arange(24.0).reshape(2, 3, 4)
    assert (
        einops.rearrange(x, "a b c -> (a c) b").tolist()
        == x.permute(0, 2, 1).reshape(8, 3).tolist()
    )
    assert einops.reduce(x, "a b c -> a", "max").tolist() == [11, 23]
    assert einops.repeat(x, "a b c -> a b c d", d=2).shape == (2, 3, 4, 2)


# ------------------------------------------------------------------------------------- checkpointed functions


class Counted:
    """A function that counts its calls and draws random numbers."""

    def __init__(self, w: Any) -> None:
        self.w, self.calls = w, 0

    def __call__(self, x: Any, scale: float = 1.0) -> Any:
        self.calls += 1
        return ((x @ self.w).tanh() * torch.rand(3, 4) * scale).exp()


@pytest.mark.parametrize("reentrant", [False, True, None])
def test_checkpoint(reentrant: bool | None) -> None:
    torch.manual_seed(0)
    w, x = torch.randn(4, 4, requires_grad=True), torch.randn(3, 4, requires_grad=True)
    state = torch.get_rng_state()
    Counted(w)(x).sum().backward()
    expected = w.grad, x.grad
    w.grad = x.grad = None
    torch.set_rng_state(state)
    counted = Counted(w)
    with (
        pytest.warns(UserWarning, match="passed explicitly") if reentrant is None else nullcontext()
    ):
        out = ckpt.checkpoint(counted, x, use_reentrant=reentrant)
    after = torch.rand(1).item()
    out.sum().backward()
    assert counted.calls == 2
    assert_close((w.grad, x.grad), expected)
    torch.set_rng_state(state)
    Counted(w)(x)
    assert torch.rand(1).item() == after  # the second run leaves the random numbers alone


def test_checkpoint_is_differentiable_twice_and_nests() -> None:
    x = torch.linspace(-1, 1, 5).requires_grad_()

    def f(a: Any) -> Any:
        return (a * a).exp()

    def twice(y: Any) -> Any:
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        return torch.autograd.grad(g.sum(), x)[0]

    again = functools.partial(ckpt.checkpoint, use_reentrant=False)
    assert_close(twice(again(f, x)), twice(f(x)))
    nested = again(lambda a: again(f, a).sin(), x)
    assert_close(
        torch.autograd.grad(nested.sum(), x)[0], torch.autograd.grad(f(x).sin().sum(), x)[0]
    )


@pytest.mark.parametrize("early", [True, False])
def test_checkpoint_of_what_differentiates(early: bool) -> None:
    x = torch.linspace(-1, 1, 5).requires_grad_()

    def slope(a: Any) -> Any:
        return torch.autograd.grad((a * a).exp().sin().sum(), a, create_graph=True)[0]

    with ckpt.set_checkpoint_early_stop(early):
        out = ckpt.checkpoint(lambda a: slope(a * 2).sin(), x, use_reentrant=False)
        found = torch.autograd.grad(out.sum(), x)[0]
    assert_close(found, torch.autograd.grad(slope(x * 2).sin().sum(), x)[0])


def test_checkpoint_sequential() -> None:
    x = torch.linspace(-1, 1, 5).requires_grad_()
    parts = [torch.sin, torch.exp, torch.tanh, torch.cos, torch.sin]
    out = ckpt.checkpoint_sequential(parts, 2, x, use_reentrant=False)
    plain = x.sin().exp().tanh().cos().sin()
    assert_close(out, plain)
    assert_close(torch.autograd.grad(out.sum(), x)[0], torch.autograd.grad(plain.sum(), x)[0])


def test_reentrant_checkpoint_refuses_partial_passes() -> None:
    x = torch.ones(3, requires_grad=True)
    out = ckpt.checkpoint(torch.exp, x, use_reentrant=True).sum()
    with pytest.raises(RuntimeError, match=r"incompatible with \.grad"):
        torch.autograd.grad(out, x)
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        ckpt.checkpoint(torch.exp, x.detach(), use_reentrant=True)
    with pytest.warns(UserWarning, match="checkpoint_sequential: the use_reentrant parameter"):
        ckpt.checkpoint_sequential([torch.sin, torch.cos], 1, x)


def test_checkpoint_notices_another_run() -> None:
    x = torch.ones(3, requires_grad=True)
    shapes = iter((3, 2))
    out = ckpt.checkpoint(lambda a: a[: next(shapes)].exp(), x, use_reentrant=False)
    with pytest.raises(ckpt.CheckpointError, match="different metadata"):
        out.sum().backward()
    deeper = iter((2, 1))
    out = ckpt.checkpoint(
        lambda a: a.exp() if next(deeper) == 1 else a.exp().exp(), x, use_reentrant=False
    )
    with pytest.raises(ckpt.CheckpointError, match="A different number of tensors"):
        out.sum().backward()
    with pytest.raises(ValueError, match="Unexpected keyword arguments: scale"):
        ckpt.checkpoint(lambda a: a, x, use_reentrant=True, scale=2)


def test_an_array_is_an_operand() -> None:
    t, array = torch.tensor([1.0, 2.0, 4.0]), np.array([1.0, 4.0, 4.0], np.float32)
    assert (t == array).tolist() == (array == t).tolist() == [True, False, True]
    assert (t != array).tolist() == [False, True, False]
    assert (array / t).tolist() == [1, 2, 1]
    total = t
    total += array  # no tensor is written: a new one takes its name
    assert total.tolist() == [2, 6, 8] and t.tolist() == [1, 2, 4]


def test_numpys_functions_wrap_what_they_find() -> None:
    t = torch.tensor([-1.0, 2.0])
    assert isinstance(np.abs(t), torch.Tensor) and np.abs(t).tolist() == [1, 2]
    found = np.isnan(t)
    assert found.dtype is torch.uint8 and found.tolist() == [0, 0]


def test_tensors_of_lent_memory() -> None:
    class Lender:
        def __init__(self, array: Any) -> None:
            self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__

    array = np.arange(3)
    shared, copied = torch.as_tensor(Lender(array)), torch.tensor(Lender(array))
    capsule = torch.asarray(dlpack.to_dlpack(torch.arange(3)), dtype=torch.int32)
    array[0] = 7
    assert shared.tolist() == [7, 1, 2] and copied.tolist() == capsule.tolist() == [0, 1, 2]
    with pytest.raises(AssertionError, match="stream should be None on cpu"):
        shared.__dlpack__(stream=1)


def test_swapped_tensors_keep_their_names() -> None:
    a = torch.nn.Parameter(torch.ones(2))
    b = torch.zeros(3)
    total, known = (a * 2).sum(), a
    torch.utils.swap_tensors(a, b)
    assert known is a and a.shape == (3,) and type(b) is torch.nn.Parameter
    total.backward()
    assert b.grad.tolist() == [2, 2] and a.grad is None


def test_memory_that_processes_share() -> None:
    t = torch.arange(6.0).reshape(2, 3)
    part = t[1]
    assert not t.is_shared()
    assert t.share_memory_() is t and part.is_shared()
    sent = bytes(ForkingPickler.dumps([part, torch.nn.Parameter(t), torch.ones(1)]))
    path, _ = torch.multiprocessing._shared[t._storage]
    theirs = np.memmap(path, np.float32, "r+")  # as another process maps it
    theirs[3] = 9
    t.add_(1)
    assert theirs.tolist() == [1, 2, 3, 10, 5, 6]
    row, weight, plain = pickle.loads(sent)
    row.zero_()
    assert t.tolist() == weight.tolist() == [[1, 2, 3], [0, 0, 0]] and weight.requires_grad
    assert type(weight) is torch.nn.Parameter and not plain.is_shared()
    del t, part, row, weight
    gc.collect()
    assert not os.path.exists(path)
    layer = torch.nn.Linear(2, 1).share_memory()
    assert layer.weight.is_shared() and layer.bias.is_shared()


def test_what_is_pending_reads_memory_as_it_was_before_numpy_saw_it() -> None:
    x, w = torch.ones(3), torch.ones(3, 3)
    x.tolist()
    pending = [
        x + 1,
        (x * 2).exp() * 0 + x,
        x.expand(2, 3) + 0,
        x[1:] * 2,
        x @ w,
        x.view(1, 3) @ w + 1,
    ]
    expected = [
        t.tolist()
        for t in (x + 1, x * 1, x.expand(2, 3) + 0, x[1:] * 2, x @ w, x.view(1, 3) @ w + 1)
    ]
    x.numpy()[:] = 7
    assert [t.tolist() for t in pending] == expected
    assert x.tolist() == [7, 7, 7]


@pytest.mark.parametrize("name", ["float8_e4m3fn", "uint4"])
def test_types_of_which_there_are_no_tensors_are_refused(name: str) -> None:
    kind = getattr(torch, name)
    x = torch.ones(2)
    for call in (
        lambda: torch.zeros(2, dtype=kind),
        lambda: torch.tensor([1.0], dtype=kind),
        lambda: x.to(kind),
        lambda: x.to("cpu", kind),
        lambda: x.type(kind),
        lambda: x.view(kind),
        lambda: x.sum(dtype=kind),
        lambda: torch.empty_like(x, dtype=kind),
        lambda: torch.nn.Linear(2, 2).to(kind),
        lambda: torch.rand(2, dtype=kind),
    ):
        with pytest.raises(NotImplementedError, match=f"there are no tensors of torch.{name}"):
            call()
    with pytest.raises(TypeError, match="supported as the default type"):
        torch.set_default_dtype(kind)
