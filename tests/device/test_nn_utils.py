"""nn.utils and func: gradient clipping, parameters as a vector, parametrisations, fused layers, functional_call."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from support import close, data

import cltensor as ct
from cltensor import nn
from cltensor.func import functional_call
from cltensor.nn import functional as F
from cltensor.nn import utils
from cltensor.runtime import STATS

pytestmark = pytest.mark.usefixtures("one_by_one")


def _params(*shapes: tuple[int, ...]) -> list[Any]:
    made = []
    for i, shape in enumerate(shapes):
        p = nn.Parameter(ct.zeros(*shape))
        p.grad = ct.tensor(data(*shape, seed=i).tolist())
        made.append(p)
    return made


def _joined(params: list[Any]) -> np.ndarray:
    return np.concatenate([np.asarray(p.grad.tolist()).reshape(-1) for p in params])


# ------------------------------------------------------------------------------------------- gradients


@pytest.mark.parametrize("norm_type", [1.0, 2.0, float("inf")])
def test_clip_grad_norm(norm_type: float) -> None:
    params = [*_params((3, 4), (20000,), (5,), (2, 1, 2)), nn.Parameter(ct.zeros(2))]
    before = _joined(params[:-1])
    want = np.linalg.norm(before, norm_type)
    close(utils.clip_grad_norm_(params, want / 4, norm_type), want, 1e-4)
    close(_joined(params[:-1]), before / 4, 1e-4)
    kept = _joined(params[:-1])
    utils.clip_grad_norm_(params, want, norm_type)  # already small enough
    close(_joined(params[:-1]), kept, 1e-6)
    close(utils.get_total_norm([p.grad for p in params[:-1]], norm_type), want / 4, 1e-4)


def test_clipping_reads_nothing_back() -> None:
    params = _params((3, 4), (5,), (20000,))
    utils.clip_grad_norm_(params, 1.0)
    utils.clip_grad_value_(params, 0.1)
    ct.synchronize() if hasattr(ct, "synchronize") else None
    before = STATS.snapshot()
    utils.clip_grad_norm_(params, 1.0)
    utils.clip_grad_value_(params, 0.1)
    after = STATS.snapshot()
    assert after["copies"] == before["copies"]


def test_clip_grad_value() -> None:
    params = _params((3, 4), (5,))
    before = _joined(params)
    utils.clip_grad_value_(params, 0.3)
    close(_joined(params), before.clip(-0.3, 0.3))


def test_clipping_nothing() -> None:
    assert utils.clip_grad_norm_([], 1.0).item() == 0
    with pytest.warns(UserWarning, match="empty generator"):
        utils.clip_grad_norm_((p for p in ()), 1.0)
    params = _params((2,))
    params[0].grad[0] = float("inf")
    with pytest.raises(RuntimeError, match="for gradients from `parameters` is non-finite"):
        utils.clip_grad_norm_(params, 1.0, error_if_nonfinite=True)


def test_vector_of_parameters() -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    vector = utils.parameters_to_vector(net.parameters())
    assert vector.shape == (13,) and vector.requires_grad
    utils.vector_to_parameters(vector.detach() * 2, net.parameters())
    close(utils.parameters_to_vector(net.parameters()), vector * 2)
    assert all(p.is_leaf for p in net.parameters())
    with pytest.raises(TypeError, match="but got: int"):
        utils.vector_to_parameters(3, net.parameters())


# ------------------------------------------------------------------------------------------- parametrisations


class Symmetric(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.triu() + x.triu(1).mT

    def right_inverse(self, x: Any) -> Any:
        return x.triu()


def test_parametrisation_there_and_back() -> None:
    layer = nn.Linear(3, 3)
    weight = layer.weight
    utils.parametrize.register_parametrization(layer, "weight", Symmetric())
    assert layer.parametrizations.weight.original is weight
    close(layer.weight, layer.weight.T)
    layer(ct.ones(2, 3)).sum().backward()
    assert weight.grad is not None
    again = copy.deepcopy(layer)
    close(again.weight, layer.weight)
    with pytest.raises(RuntimeError, match="only supported through state_dict"):
        pickle.dumps(layer)
    value = layer.weight.detach().clone()
    utils.parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear and layer.weight is weight
    close(layer.weight, value)
    assert type(again) is not nn.Linear


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)], ids=str)
@pytest.mark.parametrize("by", ["matrix_exp", "cayley", "householder"])
def test_orthogonal_stays_orthogonal(shape: tuple[int, int], by: str) -> None:
    layer = nn.Linear(shape[1], shape[0], bias=False)
    utils.parametrizations.orthogonal(layer, orthogonal_map=by)

    def check() -> None:
        w = layer.weight if shape[0] >= shape[1] else layer.weight.T
        close(w.T @ w, np.eye(min(shape)), 1e-4)

    check()
    (layer(ct.ones(1, shape[1])) * ct.arange(float(shape[0]))).sum().backward()
    original = layer.parametrizations.weight.original
    with ct.no_grad():
        original.sub_(original.grad * 0.1)
    check()


def test_weight_norm_splits_size_and_direction() -> None:
    layer = nn.Linear(3, 2)
    weight = layer.weight.detach().clone()
    utils.parametrizations.weight_norm(layer)
    size, direction = (getattr(layer.parametrizations.weight, f"original{i}") for i in (0, 1))
    close(layer.weight, weight)
    close(size, weight.norm(dim=1, keepdim=True))
    with ct.no_grad():
        size.mul_(2)
        direction.mul_(5)
    close(layer.weight, weight * 2, 1e-4)
    old = nn.Linear(3, 2)
    with pytest.warns(FutureWarning, match="parametrizations.weight_norm"):
        utils.weight_norm(old)
    layer.load_state_dict(old.state_dict())
    close(layer.weight, old.weight)


def test_spectral_norm_divides_by_the_largest_singular_value() -> None:
    ct.manual_seed(0)
    for norm in (utils.parametrizations.spectral_norm, utils.spectral_norm):
        layer = nn.Linear(4, 3)
        weight = np.asarray(layer.weight.tolist())
        norm(layer, n_power_iterations=30)
        layer(ct.ones(1, 4)).sum().backward()
        close(layer.weight, weight / np.linalg.norm(weight, 2), 1e-3)
        layer.load_state_dict(layer.state_dict())
    utils.remove_spectral_norm(layer)
    assert list(layer.state_dict()) == ["bias", "weight"]


# ------------------------------------------------------------------------------------------- fused layers


def _settled(norm: Any) -> Any:
    n = norm.num_features
    norm.running_mean, norm.running_var = ct.arange(float(n)), ct.arange(1.0, n + 1)
    nn.init.uniform_(norm.weight)
    nn.init.uniform_(norm.bias)
    return norm.eval()


@pytest.mark.parametrize("bias", [True, False])
def test_folding_a_batch_norm(bias: bool) -> None:
    x = ct.tensor(data(2, 4).tolist())
    linear, norm = nn.Linear(4, 3, bias=bias).eval(), _settled(nn.BatchNorm1d(3))
    close(utils.fuse_linear_bn_eval(linear, norm)(x), norm(linear(x)), 1e-4)
    image = ct.tensor(data(1, 2, 4, 4).tolist())
    for conv, turned in (
        (nn.Conv2d(2, 3, 3, bias=bias), False),
        (nn.ConvTranspose2d(2, 3, 3, bias=bias), True),
    ):
        norm = _settled(nn.BatchNorm2d(3))
        fused = utils.fuse_conv_bn_eval(conv.eval(), norm, turned)
        close(fused(image), norm(conv(image)), 1e-4)
    with pytest.raises(AssertionError, match="Fusion only for eval"):
        utils.fuse_conv_bn_eval(conv.train(), norm)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_linear_cross_entropy_in_pieces(reduction: str) -> None:
    x, w = (ct.tensor(data(*s).tolist(), requires_grad=True) for s in ((7, 4), (9, 4)))
    y, weight = ct.tensor([0, 1, 8, 30, 3, 4, 2]), ct.arange(1.0, 10.0)
    options = nn.LinearCrossEntropyOptions(batch_chunk_size=3)
    losses = [
        F.linear_cross_entropy(
            x, w, y, weight=weight, reduction=reduction, ignore_index=30, options=o
        )
        for o in (None, options)
    ]
    close(losses[1], losses[0])
    grads = [ct.autograd.grad(loss.sum(), (x, w)) for loss in losses]
    for a, b in zip(*grads, strict=True):
        close(a, b)


@pytest.mark.parametrize("ends", [[2, 6], [0, 6], [3, 5]])
def test_grouped_products_are_the_groups_products(ends: list[int]) -> None:
    offs = ct.tensor(ends, dtype=ct.int32)
    a, b, c = (
        ct.tensor(data(*s).tolist(), requires_grad=True) for s in ((6, 3), (2, 3, 4), (6, 4))
    )
    groups = [slice(0, ends[0]), slice(ends[0], ends[1])]

    rows = F.grouped_mm(a, b, offs=offs)
    close(rows[: ends[1]], ct.cat([a[g] @ b[i] for i, g in enumerate(groups)]))
    assert rows.shape == (6, 4) and not rows[ends[1] :].any()
    columns = F.grouped_mm(b.mT, a.t(), offs=offs)
    close(columns, rows.t())
    inner = F.grouped_mm(a.t(), c, offs=offs)
    close(inner, ct.stack([a[g].t() @ c[g] for g in groups]))
    (grad,) = ct.autograd.grad(rows, b, c)
    close(grad, inner)


def test_what_is_no_grouped_product() -> None:
    a, b, offs = ct.ones(4, 3), ct.ones(2, 3, 5), ct.tensor([2, 4], dtype=ct.int32)
    close(F.grouped_mm(b.mT, b), b.mT @ b)
    for call, text in (
        (
            lambda: F.grouped_mm(a.double(), b, offs=offs),
            "Expected mat_a to be Float32, BFloat16 or Float16",
        ),
        (lambda: F.grouped_mm(a[0], b, offs=offs), "mat_a has to be 2 or 3d"),
        (lambda: F.grouped_mm(a, b), "Have to provide offsets if there is a 2d matrix"),
        (lambda: F.grouped_mm(b.mT, b, offs=offs), "or no offset if both matrices are 3d"),
        (lambda: F.grouped_mm(a.t(), b, offs=offs), "contraction dimension of mat_a and mat_b"),
        (lambda: F.grouped_mm(a, b, offs=offs[None]), "offs has to be 1D"),
        (lambda: F.grouped_mm(a, b, offs=offs.long()), "Offsets have to be int32"),
        (lambda: F.grouped_mm(a, b, offs=offs[:1]), "matrix batch sizes have to match"),
        (lambda: F.grouped_mm(b.mT, b[:1]), "batched dimension has to match"),
        (lambda: F.grouped_mm(a, b, offs=offs, bias=a), "Bias not supported yet"),
        (lambda: F.grouped_mm(a, b, offs=offs, out_dtype=ct.bfloat16), "must match `mat_a` dtype"),
        (lambda: F.grouped_mm(a, b.half(), offs=offs), "expected m1 and m2 to have the same dtype"),
    ):
        with pytest.raises(RuntimeError, match=text):
            call()


# ------------------------------------------------------------------------------------------- other parameters


def test_functional_call_leaves_the_module_as_it_was() -> None:
    layer = nn.Linear(2, 2)
    weight, x = layer.weight, ct.ones(1, 2)
    given = {"weight": ct.zeros(2, 2, requires_grad=True)}
    close(functional_call(layer, given, x), layer.bias.unsqueeze(0))
    assert layer.weight is weight
    with pytest.raises(RuntimeError):
        functional_call(layer, given, ct.ones(5))
    assert layer.weight is weight
    functional_call(layer, given, x).sum().backward()
    assert given["weight"].grad is not None and weight.grad is None


def test_functional_call_hands_changed_buffers_back() -> None:
    norm = nn.BatchNorm1d(2)
    given = {k: v.clone() for k, v in norm.named_buffers()}
    functional_call(norm, given, ct.ones(3, 2))
    assert given["num_batches_tracked"].item() == 1
    assert norm.num_batches_tracked.item() == 0


def test_functional_call_ties_what_is_tied() -> None:
    net = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    net[1].weight = net[0].weight
    x, eye = ct.ones(1, 2), ct.eye(2) * 3
    close(functional_call(net, {"0.weight": eye}, x), [[9, 9]])
    close(functional_call(net, {"0.weight": eye, "1.weight": eye}, x), [[9, 9]])
    with pytest.raises(ValueError, match="which are tied"):
        functional_call(net, {"0.weight": eye, "1.weight": ct.ones(2, 2)}, x)
    loose = {"0.weight": eye, "1.weight": ct.ones(2, 2)}
    close(functional_call(net, loose, x, tie_weights=False), [[6, 6]])


def test_skip_init_draws_no_random_numbers() -> None:
    ct.manual_seed(1)
    expected = ct.rand(2)
    ct.manual_seed(1)
    assert nn.utils.skip_init(nn.Linear, 3, 2, dtype=ct.float64).weight.dtype is ct.float64
    assert ct.equal(ct.rand(2), expected)


def test_functional_call_leaves_nothing_behind() -> None:
    module, x = nn.Linear(2, 2), ct.ones(1, 2)
    extra = {"more": nn.Parameter(ct.ones(1)), "other": ct.ones(1)}
    functional_call(module, extra, x)
    assert list(module._parameters) == ["weight", "bias"]
    assert not hasattr(module, "more")
    assert not hasattr(module, "other")
    with pytest.raises(TypeError, match=r"^7 is not an instance of torch\.Tensor$"):
        functional_call(module, {"weight": 7}, x)
    with pytest.raises(TypeError, match=r"^attribute `training`: True is not an instance of"):
        functional_call(module, {"training": x}, x)
    with pytest.raises(RuntimeError, match=r"Missing key\(s\): 'bias', 'weight'\."):
        functional_call(module, {}, x, strict=True)
    assert ct.nn.utils.stateless._functional_call(module, {"bias": None}, x).shape == (1, 2)


def test_data_parallel_names_devices_where_there_is_a_gpu() -> None:
    net = nn.DataParallel(nn.Linear(2, 2), device_ids=[0])
    assert net.device_ids == ([0] if ct.cuda.is_available() else [])
    assert list(net.state_dict()) == ["module.weight", "module.bias"]
    assert net(ct.ones(1, 2)).shape == (1, 2)


def test_replicas_share_all_but_their_parameters() -> None:
    module = nn.Sequential(nn.BatchNorm1d(2))
    replica = module[0]._replicate_for_data_parallel()
    assert type(replica) is nn.BatchNorm1d and not list(replica.parameters())
    assert replica.running_mean is module[0].running_mean and replica._is_replica
    replica._buffers.clear()
    assert module[0].running_mean is not None and len(list(module.parameters())) == 2


def test_unpadded_sequences_are_copies() -> None:
    x = ct.arange(12.0).reshape(3, 2, 2)
    first, second = utils.rnn.unpad_sequence(x, ct.tensor([3, 1]))
    assert first.is_contiguous() and first.tolist() == [[0, 1], [4, 5], [8, 9]]
    second.zero_()
    assert x[0, 1].tolist() == [2, 3]


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("batch_first", [True, False])
def test_gradients_of_each_sample(batch_first: bool, reduction: str) -> None:
    from cltensor.nn.utils._per_sample_grad import call_for_per_sample_grads

    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2, bias=False))
    net[0].bias.requires_grad_(False)
    x = ct.tensor(data(5, 2, 3)) if batch_first else ct.tensor(data(2, 5, 3))
    made = call_for_per_sample_grads(net, batch_first=batch_first, loss_reduction=reduction)(x)
    close(made, net(x))
    (made.square().sum() / (5 if reduction == "mean" else 1)).backward()
    assert not hasattr(net[0].bias, "grad_sample")
    weights = [net[0].weight, net[2].weight]
    assert all(w.grad is None and w.grad_sample.is_contiguous() for w in weights)
    for i, sample in enumerate(x.unbind(0 if batch_first else 1)):
        for w, g in zip(
            weights, ct.autograd.grad(net(sample).square().sum(), weights), strict=True
        ):
            close(w.grad_sample[i], g)
    with pytest.raises(RuntimeError, match="accumulates the gradients"):
        call_for_per_sample_grads(net)


def test_what_has_no_gradients_of_samples() -> None:
    from cltensor.nn.utils._per_sample_grad import call_for_per_sample_grads as per_sample

    net = nn.Bilinear(2, 2, 1)
    with pytest.raises(RuntimeError, match="to be sum or mean, got no"):
        per_sample(net, loss_reduction="no")
    with pytest.raises(RuntimeError, match=r"must be nn\.Module, got int"):
        per_sample(1)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="None or an integer, got str"):
        per_sample(net, batch_size="a")  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="must be positive, got 0"):
        per_sample(net, batch_size=0)
    with pytest.raises(RuntimeError, match="with batch size 3 and one with batch size 4"):
        per_sample(net)(ct.ones(3, 2), ct.ones(4, 2))
    with pytest.raises(RuntimeError, match="Unable to find a tensor"):
        per_sample(net)()
