"""nn.Module: identity of parameters when moved, hooks on the device, copies, pickles, files, learning."""

from __future__ import annotations

import copy
import io
import pickle
import weakref
from typing import Any

import pytest
from support import close, data

import cltensor as ct
from cltensor import nn

pytestmark = pytest.mark.usefixtures("one_by_one")


class Net(nn.Module):
    """A layer, a buffer that is not saved, and two names for one parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.norm = nn.BatchNorm1d(4)
        self.second = nn.Linear(4, 4)
        self.tied = self.second
        self.register_buffer("scale", ct.ones(1), persistent=False)

    def forward(self, x: Any) -> Any:
        return self.tied(self.norm(self.first(x)).relu()) * self.scale


def _batch(n: int = 5) -> Any:
    return ct.tensor(data(n, 3).tolist())


def test_parameters_are_on_the_default_device_and_learnt() -> None:
    for p in Net().parameters():
        assert p.device == ct.get_default_device()
        assert p.requires_grad and p.is_leaf


def test_parameters_keep_their_identity_when_converted() -> None:
    net = Net()
    params = list(net.parameters())
    net(_batch()).sum().backward()
    grads = [p.grad for p in params]
    other = weakref.ref(net.scale)
    net.double()
    assert all(a is b for a, b in zip(params, net.parameters(), strict=True))
    assert all(p.grad is g and g.dtype == ct.float64 for p, g in zip(params, grads, strict=True))
    assert {p.dtype for p in params} == {ct.float64}
    assert net.norm.num_batches_tracked.dtype == ct.int64
    assert net.scale.dtype == ct.float64
    assert other() is None  # buffers are replaced
    net.to("cpu", ct.float32)
    assert {p.device.type for p in params} == {"cpu"}
    net.to_empty(device=ct.get_default_device())
    assert params[0].device == ct.get_default_device()


def test_copies_share_nothing_and_compute_the_same() -> None:
    net = Net().eval()
    x = _batch()
    want = net(x)
    hooked: list[int] = []
    net.register_forward_hook(lambda m, a, o: hooked.append(1))
    again = copy.deepcopy(net)
    assert again.tied is again.second
    close(again(x), want)
    assert hooked == [1]
    with ct.no_grad():
        again.first.weight.zero_()
    close(net(x), want)


def test_pickle_and_files() -> None:
    net = Net().eval()
    x = _batch()
    close(pickle.loads(pickle.dumps(net))(x), net(x))
    for value, load in ((net.state_dict(), {}), (net, {"weights_only": False})):
        file = io.BytesIO()
        ct.save(value, file)
        file.seek(0)
        found = ct.load(file, **load)
        if isinstance(found, nn.Module):
            close(found(x), net(x))
        else:
            fresh = Net().eval()
            assert str(fresh.load_state_dict(found)) == "<All keys matched successfully>"
            close(fresh(x), net(x))


def test_state_dict_shares_memory_and_load_keeps_it() -> None:
    a, b = nn.Linear(2, 2), nn.Linear(2, 2)
    weight, state = b.weight, b.state_dict()
    b.load_state_dict(a.state_dict())
    assert b.weight is weight
    close(state["weight"], a.weight)
    with ct.no_grad():
        b.weight.fill_(3)
    close(state["weight"], [[3, 3], [3, 3]])
    assert not state["weight"].requires_grad


def test_state_dict_of_a_tied_parameter_has_both_names() -> None:
    names = list(Net().state_dict())
    assert "tied.weight" in names and "second.weight" in names and "scale" not in names
    assert sum(1 for _ in Net().parameters()) == 6


def test_errors_of_a_failed_load_are_all_told() -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    with pytest.raises(RuntimeError) as found:
        net.load_state_dict({"0.weight": ct.ones(1, 2), "0.bias": ct.ones(3), "2.x": ct.ones(1)})
    text = str(found.value)
    assert text.startswith("Error(s) in loading state_dict for Sequential:\n\tMissing key(s)")
    assert '"1.weight", "1.bias"' in text and 'Unexpected key(s) in state_dict: "2.x"' in text
    assert "size mismatch for 0.weight: copying a param with shape torch.Size([1, 2])" in text
    close(net[0].bias, [1, 1, 1])  # what fits was copied


def test_hooks_see_and_change_what_flows() -> None:
    layer = nn.Linear(2, 2, bias=False)
    seen: dict[str, Any] = {}
    layer.register_forward_pre_hook(lambda m, args: (args[0] * 2,))
    layer.register_forward_hook(lambda m, args, out: seen.update(out=out) or out + 1)
    layer.register_full_backward_hook(lambda m, gi, go: seen.update(gi=gi, go=go))
    layer.register_full_backward_pre_hook(lambda m, go: (go[0] * 3,))
    x = ct.ones(1, 2, requires_grad=True)
    y = layer(x)
    close(y, seen["out"] + 1)
    y.sum().backward()
    close(seen["go"][0], [[3, 3]])
    close(seen["gi"][0], layer.weight.sum(0, keepdim=True) * 3)
    close(x.grad, seen["gi"][0] * 2)


def test_a_hook_that_always_runs_does_so_when_forward_fails() -> None:
    layer = nn.Linear(2, 2)
    seen: list[Any] = []
    layer.register_forward_hook(lambda m, args, out: seen.append(out), always_call=True)
    with pytest.raises(RuntimeError):
        layer(ct.ones(3))
    assert seen == [None]


def test_global_hooks_are_removed_by_their_handles() -> None:
    seen: list[str] = []
    handle = nn.modules.module.register_module_forward_pre_hook(
        lambda m, args: seen.append(type(m).__name__)
    )
    Net()(_batch())
    handle.remove()
    Net()(_batch())
    assert seen == ["Net", "Linear", "BatchNorm1d", "Linear"]


def test_full_backward_hook_without_an_input_that_requires_grad_warns() -> None:
    layer = nn.Linear(2, 2)
    seen: list[Any] = []
    layer.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go[0].sum().item())))
    with pytest.warns(UserWarning, match="Full backward hook is firing") as shown:
        layer(ct.ones(1, 2)).sum().backward()
    assert shown[0].filename == __file__
    assert seen == [((None,), 2.0)]


def test_warnings_name_the_line_of_the_caller() -> None:
    a = ct.rand(2, 3)
    for warned in (
        lambda: nn.functional.softmax(a),
        lambda: nn.Softmax()(a),
        lambda: nn.MSELoss()(a, ct.rand(3)),
        lambda: nn.functional.kl_div(a, a),
        lambda: ct.var(ct.rand(1)),
        lambda: ct.rand(1).std(),
    ):
        with pytest.warns(UserWarning, match="dim|size|reduction|freedom") as shown:
            warned()
        assert shown[0].filename == __file__


def test_a_module_without_init_says_so() -> None:
    class Late(nn.Module):
        def __init__(self) -> None:
            self.layer = nn.Linear(1, 1)

    with pytest.raises(AttributeError, match="cannot assign module before Module"):
        Late()


def test_a_plain_tensor_attribute_is_neither_saved_nor_moved() -> None:
    net = nn.Module()
    net.plain = ct.ones(1)
    assert not list(net.state_dict()) and net.double().plain.dtype == ct.float32


def test_learning_by_hand() -> None:
    ct.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))
    x = _batch(32)
    y = x.sum(1, keepdim=True)
    losses = []
    for _ in range(40):
        loss = nn.functional.mse_loss(net(x), y)
        net.zero_grad()
        loss.backward()
        with ct.no_grad():
            for p in net.parameters():
                p -= 0.1 * p.grad
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 10


def test_functions_among_the_attributes_of_a_class_are_no_methods() -> None:
    class Named(nn.Module):
        product = ct.matmul
        layer = nn.functional.linear
        filled = ct.zeros
        reset = nn.Linear.reset_parameters

    x = ct.ones(2, 2)
    module = Named()
    assert module.product(x, x).tolist() == module.layer(x, x).tolist() == [[2, 2], [2, 2]]
    assert module.filled(2).tolist() == [0, 0]
    assert module.reset.__self__ is module


def test_a_derived_list_finds_its_own_items_by_place() -> None:
    class Listed(nn.ModuleList):
        def __getitem__(self, idx: Any) -> Any:
            return self._modules[self._get_abs_string_index(idx)]

    listed = Listed([nn.ReLU(), nn.Tanh()])
    assert listed[-1] is listed[1]
    assert nn.ParameterList([ct.ones(1), ct.ones(2)])._get_abs_string_index(-1) == "1"
    with pytest.raises(IndexError, match="index 2 is out of range"):
        listed[2]


def test_a_compiled_module_has_the_original_as_its_child() -> None:
    net = nn.Sequential(nn.Linear(3, 2), nn.Dropout())
    made = ct.compile(net, mode="max-autotune")
    assert made._orig_mod is net
    assert not isinstance(made, nn.Sequential)
    assert isinstance(made, ct._dynamo.OptimizedModule)
    assert list(made.state_dict()) == ["_orig_mod.0.weight", "_orig_mod.0.bias"]
    assert made.load_state_dict(made.state_dict()).missing_keys == []
    assert made.eval() is made
    assert not net.training and not net[1].training
    assert made(_batch()).tolist() == net(_batch()).tolist()
    assert ct.compile(made) is made
    assert ct.compile(net, disable=True) is net
    assert ct.compile(backend="eager")(net)._orig_mod is net
    assert ct.compile(_batch) is _batch
    with pytest.raises(AssertionError, match="A callable function is expected, but <class 'int'>"):
        ct.compile(3)


def test_options_that_torchs_compile_does_not_have_are_refused() -> None:
    for options, said in (
        ({"mode": "fastest"}, "Unrecognized mode=fastest, should be one of: default, lite"),
        ({"mode": "default", "options": {}}, "Either mode or options can be specified"),
    ):
        for given in ((_batch,), ()):
            with pytest.raises(RuntimeError, match=said):
                ct.compile(*given, **options)
    with pytest.raises(TypeError, match="unexpected keyword argument 'mood'"):
        ct.compile(_batch, mood="default")
    assert ct.compile(_batch, mode="a backend's own", backend="eager") is _batch


def test_attributes_of_a_compiled_module_are_those_of_the_original() -> None:
    net = Net()
    made = ct.compile(net)
    made.tag, made.extra = "tag", nn.Parameter(ct.ones(1))
    assert net.tag == made.tag == "tag"
    assert made.extra is net.extra and made.first is net.first
    assert {"tag", "first", "_orig_mod"} <= {*dir(made)}
    del made.tag
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'tag'"):
        made.tag
    for other in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert type(other) is type(made) and other._orig_mod is not net
        assert other.first.weight.tolist() == net.first.weight.tolist()
    assert len(ct.compile(nn.Sequential(net))) == 1
