"""Ops on channels-last and on transposed images return results with the strides torch gives them."""

from __future__ import annotations

import itertools

import pytest
from parity.oracle import assert_same_outcome, evaluate, lines
from support import data

IMAGES = """
F.max_pool2d(x, 2)
F.max_pool2d(x, 3, 2, 1, return_indices=True)[1]
F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2)
F.avg_pool2d(x, 2)
F.adaptive_avg_pool2d(x, 3)
F.adaptive_avg_pool2d(x, 1)
F.adaptive_max_pool2d(x, 3)
F.fractional_max_pool2d(x, 2, output_size=2, _random_samples=torch.full((2, 4, 2), 0.3))
F.batch_norm(x, None, None, None, None, True)
F.batch_norm(x, torch.zeros(4), torch.ones(4))
F.group_norm(x, 2)
F.instance_norm(x)
F.layer_norm(x, (6,))
F.rms_norm(x, (6,))
F.local_response_norm(x, 3)
F.pad(x, (1, 2, 0, 1))
F.pad(x, (-1, 2, 0, 1, 1, 1), value=2.0)
F.pad(x, (1, 2, 0, 1), "reflect")
F.pad(x, (1, 2, 0, 1), "replicate")
F.pad(x, (1, 2, 0, 1), "circular")
F.interpolate(x, scale_factor=2)
F.interpolate(x, scale_factor=2, mode="bilinear")
F.interpolate(x, size=(2, 3), mode="area")
F.pixel_shuffle(x, 2)
F.pixel_unshuffle(x, 2)
F.channel_shuffle(x, 2)
F.conv2d(x, torch.ones(3, 4, 2, 2))
F.conv2d(x.contiguous(), torch.ones(3, 4, 2, 2).to(memory_format=torch.channels_last))
F.conv_transpose2d(x, torch.ones(4, 3, 2, 2))
F.glu(x, 1)
x.pow(0.0)
x.float_power(0)
2**x
2 ** x.int()
2.5 ** z
x.renorm(2, 1, 0.5)
F.one_hot(x.int().long() + 4)
F.softmax(x, 1)
F.logsigmoid(x)
F.dropout(x, 0.5) * 0
torch.cat([x, x], 1)
torch.cat([x, x.contiguous()], 3)
torch.stack([x, x])
torch.stack([x, x], 4)
x.flip(2)
x.roll(1, 2)
(x > 0).nonzero()
torch.argwhere(x[..., ::2])
torch.nonzero(x, out=torch.empty(0, dtype=torch.int64))
torch.where(x > 0)[1]
torch.where(x > 9)[1]
x.rot90(1, [2, 3])
torch.einsum("bchw,dc->bhwd", x, torch.ones(3, 4))
torch.einsum("bchw,dc->bdhw", x, torch.ones(3, 4))
torch.einsum("bchw,bdw->bdch", x, torch.ones(2, 3, 6))
torch.einsum("chw,dw->cdh", x[0], torch.ones(3, 6))
torch.einsum("bchw,dw->dbch", x, torch.ones(3, 6))
x.sort(1)[1]
x.quantile(torch.tensor([0.2, 0.5]), 1)
x.quantile(torch.tensor([0.2, 0.5]), 1, keepdim=True)
x.nanquantile(torch.tensor([0.2, 0.5]), keepdim=True)
x.masked_fill(x > 0, 1.0)
x.scatter(1, torch.zeros(2, 4, 4, 6, dtype=torch.int64), 1.0)
x.index_add(1, torch.tensor([0, 1]), x[:, :2])
x.index_fill(1, torch.tensor([0, 1]), 2.0)
x.slice_scatter(x[:, :2], 1, 0, 2)
x.masked_scatter(x > 0, x)
x.unsqueeze(-1)[:, :, :1].double()
torch.rand_like(x[:, :, :1]) * 0
torch.add(x, x[0, :, 0, 0, None, None], out=torch.empty(0))
torch.exp(x, out=torch.empty(0))
torch.sort(x, 1, out=(torch.empty(0), torch.empty(0, dtype=torch.int64)))[0]
x[:, :, :1, :1].contiguous(memory_format=torch.channels_last) * 5
x[:, :, :1, :1].contiguous(memory_format=torch.channels_last) + x[0, :, :1, :1]
(x[:1, :1, :, ::2] + x[:1, :1, :, ::2]).permute(2, 0, 1, 3)
F.max_pool3d(x[:, :, None], (1, 2, 2))
F.pad(x[:, :, None], (1, 1, 1, 1, 1, 1), "replicate")
F.interpolate(x[:, :, None], scale_factor=2)
torch.autograd.grad(F.max_pool2d(z, 2).sum(), z)[0]
torch.autograd.grad(F.pad(z, (1, 1, 1, 1), "reflect").sum(), z)[0]
torch.autograd.grad(F.avg_pool2d(z, 2).sum(), z)[0]
torch.autograd.grad(F.conv2d(z, torch.ones(3, 4, 2, 2)), z, torch.ones(2, 3, 3, 5))[0]
(lambda w: torch.autograd.grad(F.conv2d(x, w), w, torch.ones(2, 3, 3, 5))[0])(torch.ones(3, 4, 2, 2, requires_grad=True))
torch.autograd.grad(F.batch_norm(z, torch.zeros(4), torch.ones(4)), z, torch.ones(2, 4, 4, 6))[0]
torch.autograd.grad(F.batch_norm(z, None, None, None, None, True).sin().sum(), z)[0]
"""
# Differentiated with a gradient of the result whose memory order is not the input's. The input's gradient has the
# memory order of that gradient for some of these functions, and the input's for others.
ACTIVATIONS = """
F.relu(z)
F.relu6(z)
F.elu(z)
F.selu(z)
F.celu(z)
F.leaky_relu(z)
F.rrelu(z)
F.rrelu(z, training=True)
F.gelu(z)
F.silu(z)
F.softplus(z)
F.softshrink(z)
F.hardshrink(z)
F.hardswish(z)
F.hardsigmoid(z)
F.glu(z, 1)
"""
ORDERS = {
    "images": "x.contiguous(memory_format=torch.channels_last)",
    "transposed": "x.transpose(0, 1).contiguous().transpose(0, 1)",
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("line", lines(IMAGES))
def test_results_lie_in_memory_as_torchs_do(line: str, order: str) -> None:
    _agree(line, order)


@pytest.mark.parametrize("order", ["x", *ORDERS.values()])
@pytest.mark.parametrize("line", lines(ACTIVATIONS))
def test_gradients_lie_in_memory_as_torchs_do(line: str, order: str) -> None:
    grad = "torch.ones(y.shape).transpose(2, 3).contiguous().transpose(2, 3)"
    call = f"(lambda y: (y.stride(), torch.autograd.grad(y, z, {grad})[0].stride()))({line})"
    program = f"(lambda x, F: (lambda z: {call})({order}.detach().requires_grad_()))(x, torch.nn.functional)"
    found, expected = evaluate(program, {"x": data(2, 4, 4, 6)})
    assert_same_outcome(found, expected)


@pytest.mark.parametrize("line", [*lines(IMAGES), "torch.cdist(x, x)"])
def test_results_with_a_gradient_may_be_written_to(line: str) -> None:
    written = "(lambda out: out.mul_(2) if out.requires_grad else out)"
    images = f"{ORDERS['images']}.detach().requires_grad_()"
    program = f"(lambda z, F: (lambda x: {written}({line}))(z))({images}, torch.nn.functional)"
    found, expected = evaluate(program, {"x": data(2, 4, 4, 6)})
    assert_same_outcome(found, expected)


def _agree(line: str, order: str) -> None:
    """Compare value and strides of a line on images whose memory order is `order`."""
    both = f"(lambda out: (out, out.stride()))({line})"
    z = "x.detach().requires_grad_()"
    program = f"(lambda x, F: (lambda z: {both})({z}))({ORDERS[order]}, torch.nn.functional)"
    found, expected = evaluate(program, {"x": data(2, 4, 4, 6)})
    assert_same_outcome(found, expected)


# Functions that read images in their memory order. That order is ambiguous where a size is 1: strides do not tell one
# channel from the width, nor one row from the batch.
THIN = """
F.max_pool2d(x, (min(2, x.shape[2]), 1))
F.max_pool2d(x, 1, return_indices=True)[1]
F.avg_pool2d(x, 1, (1, 2))
F.adaptive_avg_pool2d(x, 1)
F.adaptive_max_pool2d(x, 2)
F.pad(x, (1, 0, 0, 1))
F.pad(x, (1, 0, 1, 0), mode="replicate")
torch.cat([x, x + 1], 1)
x.flip(3)
F.interpolate(x, scale_factor=2, mode="bilinear")
F.batch_norm(x, None, None, training=x.numel() > 1)
F.conv2d(x, torch.ones(2, x.shape[1], 1, 1))
"""


@pytest.mark.parametrize(
    "shape", [(3, 1, 4, 8), (1, 1, 2, 6), (2, 3, 1, 8), (2, 1, 4, 1), (2, 1, 1, 5)]
)
@pytest.mark.parametrize("line", lines(THIN))
def test_images_of_one_channel_row_or_column(line: str, shape: tuple[int, ...]) -> None:
    grad = "torch.autograd.grad(y.sin().sum(), z)[0] if y.requires_grad else 0"
    images = "x.to(memory_format=torch.channels_last).requires_grad_()"
    program = f"(lambda z, F: (lambda y: (y, {grad}))((lambda x: {line})(z)))({images}, torch.nn.functional)"
    found, expected = evaluate(program, {"x": data(*shape)})
    assert_same_outcome(found, expected, 1e-4)


# Of a tensor whose dims are permuted; some dims have one element.
PERMUTED = """
x + 1
x * x
1 - x
x.relu() * 2 + x
torch.where(x > 0, x, x * 2)
torch.where(x > 0, x, 2.0)
x + x.contiguous()
x[:, :1] * x
x * x.sum((0, 2), keepdim=True)
x.clone().add_(x)
(x * 2 > 1) & (x < 5)
x[1:] * 2
"""


@pytest.mark.parametrize("order", [*itertools.permutations(range(4))])
@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 1, 3, 1)])
def test_permuted_operands_keep_their_order(shape: tuple[int, ...], order: tuple[int, ...]) -> None:
    calls = ", ".join(f"({line}, ({line}).stride())" for line in lines(PERMUTED))
    found, expected = evaluate(f"(lambda x: ({calls}))(x.permute({order}))", {"x": data(*shape)})
    assert_same_outcome(found, expected)


ATTENTION = """
x
x.transpose(1, 2).contiguous().transpose(1, 2)
x.permute(2, 0, 1, 3).contiguous().permute(1, 2, 0, 3)
x.transpose(2, 3).contiguous().transpose(2, 3)
x[:1].expand(2, -1, -1, -1)
torch.cat([x, x], 3).split(8, 3)[1]
x.transpose(1, 2).contiguous().transpose(1, 2)[0]
x[:, :1]
x[:, :, :1]
"""


@pytest.mark.parametrize(
    "more", ["q, q", "q, q[..., :5]", "q, q, q @ q.mT", "q, q, enable_gqa=True"]
)
@pytest.mark.parametrize("line", lines(ATTENTION))
def test_attention_lies_as_its_queries_do(line: str, more: str) -> None:
    if "gqa" in more:
        more = more.replace("q, q", "q[..., :1, :, :], q[..., :1, :, :]")
    program = f"(lambda q, F: F.scaled_dot_product_attention(q, {more}).stride())({line}, torch.nn.functional)"
    found, expected = evaluate(program, {"x": data(2, 4, 6, 8)})
    assert_same_outcome(found, expected)
