"""The meta device: results have the shape, strides and dtype they have on other devices, and no values."""

from __future__ import annotations

import io
import pickle
from typing import Any

import pytest
from support import ct as torch

from cltensor.runtime import STATS

nn, F = torch.nn, torch.nn.functional

PROGRAMS = """
x + 1, x * row, x > 0, x // 2, -x.int(), x.to(torch.bfloat16) * 2
x.sum(), x.mean(1), x.amax(0, keepdim=True), x.argmax(1), x.var(0), x.cumsum(1), x.norm()
x.t() + 1, x.t()[1:, ::2] * 2, x.unsqueeze(1).expand(3, 2, 4) + x[:, None]
x @ x.t(), x.t() @ x, torch.bmm(x[None], x.t()[None]), torch.einsum("ij,kj->ik", x, x), torch.addmm(x[:, :3], x, x.t())
torch.cat([x, x], 1), torch.stack([x, x], 1), x.flip(1), x.roll(1), x.tril(), x.repeat(2, 1), *x.chunk(2, 1)
*x.sort(1), *x.topk(2), x.gather(1, places), x[places[0]], x.index_select(1, places[0]), x.scatter(1, places, 2.0)
F.softmax(x, 0), F.layer_norm(x, (4,), row, row), F.cross_entropy(x, places[:, 0]), F.gelu(x), F.dropout(x), F.one_hot
F.conv2d(images, filters), F.conv2d(images, filters, stride=2, padding=1), F.max_pool2d(images, 2), F.interpolate(images, scale_factor=2)
F.conv2d(images.contiguous(memory_format=torch.channels_last), filters), F.batch_norm(images, None, None, training=True)
F.scaled_dot_product_attention(images, images, images), torch.fft.rfft(x), x.to(torch.complex64) * 2j, torch.where(x > 0, x, 0)
nn.LSTM(4, 5, device=x.device)(x)[0], nn.GRU(4, 5, device=x.device)(x)[0], nn.Embedding(9, 3, device=x.device)(places)
torch.zeros_like(x), x.new_ones(2, 3), torch.arange(5, device=x.device), torch.eye(3, device=x.device), torch.rand(2, 3, device=x.device)
x.clone().fill_(2), x.clone().add_(row), x.clone().t().copy_(x.t()), x.clone().requires_grad_() * 2
"""


def operands(device: Any) -> dict[str, Any]:
    def empty(*shape: int, dtype: Any = torch.float32) -> Any:
        return torch.zeros(shape, dtype=dtype, device=device)

    return {
        "torch": torch, "F": F, "nn": nn, "x": empty(3, 4), "row": empty(4), "places": empty(3, 2, dtype=torch.int64),
        "images": empty(2, 3, 8, 8), "filters": empty(5, 3, 3, 3),
    }  # fmt: skip


def looks(t: Any) -> tuple[Any, ...]:
    if not isinstance(t, torch.Tensor):
        return (type(t),)
    return tuple(t.shape), t.stride(), t.dtype, t.requires_grad, str(t.grad_fn).partition(" ")[0]


@pytest.mark.parametrize("line", PROGRAMS.strip().split("\n"))
def test_results_look_as_elsewhere(line: str) -> None:
    found = eval(f"[{line}]", operands("meta"))
    assert all(t.is_meta for t in found if isinstance(t, torch.Tensor))
    assert [looks(t) for t in found] == [looks(t) for t in eval(f"[{line}]", operands(None))]


def test_nothing_is_launched_and_no_memory_taken() -> None:
    torch.opencl.synchronize()
    launches, held = STATS.launches, torch.opencl.memory_allocated()
    huge = torch.rand(10**6, 10**6, device="meta", requires_grad=True)
    for _ in range(3):  # the second call of a function is recorded
        F.softmax(huge @ huge, 1).sum().backward()
    assert huge.grad.shape == (10**6, 10**6)
    assert (STATS.launches, torch.opencl.memory_allocated()) == (launches, held)


def test_there_are_no_values() -> None:
    x = torch.ones(2, 3, device="meta")
    assert repr(x) == "tensor(..., device='meta', size=(2, 3))"
    for ask in (x.cpu, x.tolist, x.nonzero, lambda: x[x > 0], lambda: torch.ones(2, 3).copy_(x)):
        with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
            ask()
    for ask in (x[0, 0].item, lambda: bool(x.sum() > 0), lambda: float(x[0, 0])):
        with pytest.raises(
            RuntimeError, match=r"Tensor\.item\(\) cannot be called on meta tensors"
        ):
            ask()
    with pytest.raises(TypeError, match="can't convert meta device type tensor to numpy"):
        x.numpy()
    with pytest.raises(RuntimeError, match="on the same device"):
        x + torch.ones(3)
    assert x.copy_(torch.ones(2, 3)).is_meta and torch.ones(3).to("meta").is_meta


def test_modules_are_made_without_memory_and_filled_later() -> None:
    with torch.device("meta"):
        model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    assert all(p.is_meta for p in (*model.parameters(), *model.buffers()))
    with pytest.raises(NotImplementedError, match=r"use torch\.nn\.Module\.to_empty\(\) instead"):
        model.to("cpu")
    real = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    with pytest.warns(UserWarning, match="copying from a non-meta parameter in the checkpoint"):
        model.load_state_dict(real.state_dict())
    model.load_state_dict(real.state_dict(), assign=True)
    x = torch.rand(5, 3)
    torch.testing.assert_close(model.eval()(x), real.eval()(x))
    empty = nn.Linear(3, 4, device="meta").to_empty(device="cpu")
    assert empty.weight.shape == (4, 3) and not empty.weight.is_meta


def test_a_step_of_training() -> None:
    model = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, device="meta")
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.rand(2, 5, 8, device="meta")).square().mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    state = optimizer.state[model.linear1.weight]
    assert state["exp_avg"].is_meta and state["exp_avg"].shape == (16, 8)


def test_files_and_pickles() -> None:
    t = torch.empty(3, 4, device="meta").t()[1:]
    parameter = nn.Parameter(torch.empty(2, device="meta"))
    file = io.BytesIO()
    torch.save({"t": t, "p": parameter}, file)
    assert len(file.getvalue()) < 3000
    file.seek(0)
    for made in (torch.load(file), pickle.loads(pickle.dumps({"t": t, "p": parameter}))):
        assert made["t"].is_meta and looks(made["t"]) == looks(t)
        assert type(made["p"]) is nn.Parameter and made["p"].is_meta and made["p"].requires_grad
    file = io.BytesIO()
    torch.save(torch.ones(3), file)
    file.seek(0)
    assert torch.load(file, map_location="meta").is_meta


def test_an_older_checkpoint_has_no_count_of_batches_and_lists_print() -> None:
    with torch.device("meta"):
        norm = torch.nn.BatchNorm1d(2)
    norm.load_state_dict({}, strict=False, assign=True)
    assert norm.num_batches_tracked.item() == 0
    weights = nn.ParameterList([torch.ones(2, device="meta")])
    assert str(weights).endswith("(0): Parameter containing: [torch.float32 of size 2])")
