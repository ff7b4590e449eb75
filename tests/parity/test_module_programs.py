"""Whole programs around modules, run on both libraries: walks, hooks, state dicts, moves, containers, parametrisations,
clipping, pruning.
"""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import pytest
from parity.oracle import Ran, assert_same_value, ct, th


def _net(torch: Any) -> Any:
    """Two linear layers and a shared batch norm, with weights that both libraries agree on."""
    nn = torch.nn
    norm = nn.BatchNorm1d(3)
    net = nn.Sequential(nn.Linear(2, 3), norm, nn.Linear(3, 3, bias=False), norm)
    for i, p in enumerate(net.parameters()):
        p.data = torch.arange(float(p.numel())).reshape(p.shape) * 0.1 - 0.2 * i
    return net


def walks(torch: Any) -> Any:
    net = _net(torch)
    net.register_module("none", None)
    net[0].register_buffer("b", torch.zeros(1), persistent=False)
    return [
        [n for n, _ in net.named_parameters()],
        [n for n, _ in net.named_parameters("x", remove_duplicate=False)],
        [n for n, _ in net.named_parameters(recurse=False)],
        [n for n, _ in net.named_buffers()],
        [n for n, _ in net.named_modules()],
        [n for n, _ in net.named_modules(prefix="p", remove_duplicate=False)],
        [n for n, _ in net.named_children()],
        len(list(net.modules())),
        list(net.state_dict(prefix="a.")),
        next(iter(net.state_dict(keep_vars=True).values())).requires_grad,
        [m.training for m in net.eval().children()],
        [p.requires_grad for p in net.requires_grad_(False).parameters()],
        "none" in dir(net),
        str(net),
    ]


def members(torch: Any) -> Any:
    nn = torch.nn
    m = nn.Module()
    m.a = nn.Parameter(torch.ones(1))
    m.b = nn.Buffer(torch.ones(2), persistent=False)
    m.c = nn.ReLU()
    m.d = 3
    seen = [[*m._parameters], [*m._buffers], [*m._modules], m.d, [*m.state_dict()]]
    m.a = None
    m.b = torch.zeros(3)
    m.c = None
    m.d = nn.Parameter(torch.ones(1))
    seen += [[*m._parameters], [*m._buffers], [*m._modules], "d" in m.__dict__, [*m.state_dict()]]
    del m.b
    m.b = torch.zeros(1)
    m.a = nn.Parameter(torch.zeros(1))
    m.register_parameter("e", None)
    del m.c
    seen += [[*m._parameters], [*m._buffers], [*m._modules], m.e is None, "b" in m.__dict__]
    return seen


def forward_hooks(torch: Any) -> Any:
    said: list[Any] = []
    m = torch.nn.Linear(2, 2)

    def pre(_m: Any, args: Any) -> Any:
        said.append(("pre", len(args)))
        return args[0] * 0

    def pre_kwargs(_m: Any, args: Any, kwargs: Any) -> Any:
        said.append(("pre_kwargs", len(args), sorted(kwargs)))
        return (kwargs["input"],) if kwargs else args, {}

    def post(_m: Any, args: Any, out: Any) -> Any:
        said.append(("post", args[0].sum().item()))
        return out * 0 + 7

    def post_kwargs(_m: Any, args: Any, kwargs: Any, out: Any) -> None:
        said.append(("post_kwargs", sorted(kwargs), out.sum().item()))

    def always(_m: Any, args: Any, out: Any) -> None:
        said.append(("always", out is None))

    first = m.register_forward_pre_hook(pre)
    m.register_forward_pre_hook(pre_kwargs, with_kwargs=True, prepend=True)
    m.register_forward_hook(post)
    m.register_forward_hook(post_kwargs, with_kwargs=True)
    m.register_forward_hook(always, always_call=True, prepend=True)
    said.append(m(input=torch.ones(1, 2)).sum().item())
    first.remove()
    try:
        m(torch.ones(1, 5))
    except RuntimeError:
        said.append("raised")
    with torch.nn.modules.module.register_module_forward_hook(lambda m, a, o: o + 1):
        said.append(m(torch.ones(1, 2)).sum().item())
    said.append(m(torch.ones(1, 2)).sum().item())
    return said


def backward_hooks(torch: Any) -> Any:
    said: list[Any] = []
    net = _net(torch)
    layer = net[2]

    def note(name: str, *grads: Any) -> None:
        said.append((name, [[None if g is None else g.sum().item() for g in gs] for gs in grads]))

    layer.register_full_backward_pre_hook(lambda m, out: note("pre", out))
    layer.register_full_backward_hook(lambda m, i, o: note("full", i, o))
    layer.register_full_backward_hook(lambda m, i, o: None if i[0] is None else (i[0] * 2,))
    x = torch.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
    y = layer(net[0](x))
    y.sum().backward()
    said.append(x.grad.clone())
    layer(torch.ones(1, 3)).sum().backward()
    try:
        layer.register_backward_hook(print)
    except RuntimeError as error:
        said.append(str(error))
    old = _net(torch)[0]
    old.register_backward_hook(lambda m, i, o: note("old", o))
    old(x).sum().backward()
    return said


def states(torch: Any) -> Any:
    nn = torch.nn
    said: list[Any] = []

    class Extra(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.zeros(2))
            self.kept = 1

        def get_extra_state(self) -> Any:
            return self.kept

        def set_extra_state(self, state: Any) -> None:
            self.kept = state

    m = nn.Sequential(Extra(), nn.Linear(2, 2))
    m.register_state_dict_pre_hook(lambda m, p, k: said.append(("saving", p, k)))
    m.register_load_state_dict_pre_hook(lambda m, s, p, *a: said.append(("loading", sorted(s))))
    m.register_load_state_dict_post_hook(lambda m, keys: said.append(("loaded", str(keys))))
    state = m.state_dict()
    said.append(list(state))
    state["0._extra_state"] = 5
    said += [str(m.load_state_dict(state)), m[0].kept]
    del state["1.bias"]
    state["foo"] = torch.ones(1)
    said.append(str(m.load_state_dict(state, strict=False)))
    fresh = {"0.w": torch.ones(2), "1.weight": torch.ones(2, 2), "1.bias": torch.ones(2)}
    before = m[0].w
    m.load_state_dict(fresh, strict=False, assign=True)
    said += [m[0].w is before, m[0].w.requires_grad, m[0].w]
    m.register_state_dict_post_hook(lambda m, s, p, meta: s.pop("0.w"))
    try:
        m.state_dict()
    except RuntimeError as error:
        said.append(str(error))
    old = nn.BatchNorm1d(2)
    state = {k: v for k, v in old.state_dict().items() if "tracked" not in k}
    return [*said, str(old.load_state_dict(state))]


def moves(torch: Any) -> Any:
    net = _net(torch)
    weight = net[0].weight
    net(torch.ones(2, 2)).sum().backward()
    grad = weight.grad
    net.double()
    said = [net[0].weight is weight, weight.dtype, weight.grad is grad, weight.grad.dtype]
    said += [b.dtype for b in net.buffers()]
    net.to(torch.ones(1)).zero_grad(set_to_none=False)
    said += [weight.dtype, weight.grad.sum().item()]
    net.zero_grad()
    return [
        *said,
        weight.grad,
        net.half()[0].bias.dtype,
        net.to("cpu", torch.float64)[0].bias.dtype,
    ]


def lazy(torch: Any) -> Any:
    nn = torch.nn
    net = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(2))
    said: list[Any] = [str(net), [*net.state_dict()], str(net[0].weight)]
    said.append(tuple(net.double()(torch.ones(2, 3, 5, 5, dtype=torch.float64)).shape))
    said += [str(net), [tuple(p.shape) for p in net.parameters()], type(net[3]).__name__]
    other = nn.LazyLinear(2)
    other.load_state_dict(net[3].state_dict())
    said.append(tuple(other.weight.shape))
    wrong = nn.LazyConv1d(2, 3, groups=2)
    for shape in [(2,), (1, 3, 5)]:
        try:
            wrong(torch.ones(shape))
        except (RuntimeError, ValueError) as error:
            said.append(str(error).split("\n")[0])
    return said


def lists(torch: Any) -> Any:
    nn = torch.nn
    s = nn.Sequential(nn.ReLU(), nn.Tanh())
    s.append(nn.Sigmoid()).insert(1, nn.ELU()).extend([nn.GELU()])
    s[0] = nn.Mish()
    del s[-1]
    said: list[Any] = [str(s), str(s[1:3]), str(s + s[:1]), str(s * 2), str(s.pop(0)), len(s)]
    m = nn.ModuleList([nn.ReLU()])
    m += [nn.Tanh(), nn.Tanh()]
    m.insert(0, nn.ELU())
    said += [str(m), str(m[::2]), str(m + [nn.GELU()]), str(m.pop(-1)), len(m)]
    d = nn.ModuleDict([["a", nn.ReLU()], ["b", nn.Tanh()]])
    d.update({"c": nn.ELU()})
    said += [str(d), list(d), "a" in d, str(d.pop("a")), [k for k, _ in d.items()], len(d)]
    p = nn.ParameterDict({"b": torch.ones(1), "a": torch.zeros(2)})
    p["c"] = 3
    said += [list(p), list(reversed(p)), p.get("z", 1), str(p), p.popitem()[0], len(p), "a" in p]
    said += [
        list(p | {"q": torch.ones(1)}),
        p.setdefault("r", 1),
        list(p.copy()),
        list(p.fromkeys("xy")),
    ]
    q = nn.ParameterList([torch.ones(1), 5]).append(torch.zeros(2))
    q[1] = torch.ones(3)
    return [*said, str(q), len(q[1:]), [k for k, _ in q.named_parameters()]]


def parametrised(torch: Any) -> Any:
    nn = torch.nn
    utils = nn.utils.parametrize

    class Symmetric(nn.Module):
        def forward(self, x: Any) -> Any:
            return x.triu() + x.triu(1).mT

        def right_inverse(self, x: Any) -> Any:
            return x.triu()

    layer = _net(torch)[2]
    utils.register_parametrization(layer, "weight", Symmetric())
    said = [str(layer), [*layer.state_dict()], layer.weight, utils.is_parametrized(layer, "bias")]
    layer.weight = torch.ones(3, 3)
    said += [
        layer.parametrizations.weight.original,
        utils.type_before_parametrizations(layer).__name__,
    ]
    with utils.cached():
        said.append(layer.weight is layer.weight)
    utils.remove_parametrizations(layer, "weight")
    said += [str(layer), layer.weight]
    normed = nn.utils.parametrizations.weight_norm(_net(torch)[0], dim=1)
    said += [[*normed.state_dict()], normed.weight, normed.parametrizations.weight.original0]
    return said


def folded(torch: Any) -> Any:
    net = _net(torch).eval()
    fused = torch.nn.utils.fuse_linear_bn_eval(net[0], net[1])
    vector = torch.nn.utils.parameters_to_vector(net.parameters())
    torch.nn.utils.vector_to_parameters(vector * 2, net.parameters())
    given = {"0.weight": torch.ones(3, 2), "1.running_mean": torch.ones(3)}
    called = torch.func.functional_call(net, given, torch.ones(1, 2))
    alone = str(torch.func.replace_all_batch_norm_modules_(_net(torch)))
    return [
        fused.weight,
        fused.bias,
        vector,
        net[0].weight,
        called,
        net[0].weight.sum().item(),
        alone,
    ]


def clipped(torch: Any) -> Any:
    params = [torch.nn.Parameter(torch.zeros(3, 2)), torch.nn.Parameter(torch.zeros(4))]
    said: list[Any] = []
    utils = torch.nn.utils
    for kind in (2.0, float("inf"), 0.0):
        for i, p in enumerate(params):
            p.grad = torch.arange(float(p.numel())).reshape(p.shape) - i
        said += [utils.clip_grad_norm_(params, 1.5, kind), *[p.grad.clone() for p in params]]
        utils.clip_grad_value_(params, 0.1)
        said += [*[p.grad.clone() for p in params], utils.get_total_norm([p.grad for p in params])]
    params[0].grad[0, 0] = float("nan")
    try:
        utils.clip_grad_norm_(params, 1.0, error_if_nonfinite=True)
    except RuntimeError as error:
        said.append(str(error))
    return [
        *said,
        utils.clip_grad_norm_(iter([]), 1.0),
        utils.clip_grad_norm_((p for p in ()), 1.0),
    ]


def pruned(torch: Any) -> Any:
    prune = importlib.import_module(f"{torch.__name__}.nn.utils.prune")
    net = _net(torch)
    a, b = net[0], net[2]
    prune.l1_unstructured(a, "weight", 2)
    prune.ln_structured(a, "weight", 0.34, 2, 0)
    prune.custom_from_mask(a, "bias", torch.tensor([1, 0, 1]))
    prune.identity(b, "weight")
    prune.global_unstructured([(a, "weight"), (b, "weight")], prune.L1Unstructured, amount=3)
    said = [[*net.state_dict()], a.weight, a.weight_mask, a.bias, b.weight, b.weight_mask]
    net(torch.ones(2, 2)).sum().backward()
    said += [a.weight_orig.grad, prune.is_pruned(net), len(a._forward_pre_hooks)]
    said += [type(h).__name__ for h in a._forward_pre_hooks.values()]
    prune.remove(a, "weight")
    said += [[*a.state_dict()], a.weight, a(torch.ones(1, 2))]
    drawn = prune.random_structured(torch.nn.Linear(4, 6), "weight", 2, 1)
    said += [drawn.weight_mask.sum(0).sort().values, drawn.weight_mask.sum()]
    drawn = prune.random_unstructured(torch.nn.Linear(4, 6), "weight", 0.25)
    said += [drawn.weight_mask.sum()]
    scores = torch.arange(6.0).reshape(2, 3)
    said += [prune.LnStructured(1, 1).prune(scores), prune.L1Unstructured(0.5).prune(scores)]
    said += [prune._compute_nparams_toprune(n, 17) for n in (0, 3, 0.4, 1.0)]
    said += [prune._compute_norm(scores, 2, -1)]
    for wrong in (
        lambda: prune._validate_pruning_amount_init(-1),
        lambda: prune._validate_pruning_amount(20, 19),
        lambda: prune._validate_structured_pruning(scores[0]),
        lambda: prune._validate_pruning_dim(scores, 2),
        lambda: prune.l1_unstructured(b, "weight", 1.5),
        lambda: prune.l1_unstructured(b, "weight", "x"),
        lambda: prune.l1_unstructured(net[0], "weight", 99),
        lambda: prune.ln_structured(a, "bias", 1, 2, 0),
        lambda: prune.ln_structured(net[0], "weight", 1, 2, 7),
        lambda: prune.remove(net[1], "weight"),
        lambda: prune.custom_from_mask(net[0], "weight", torch.ones(1)),
    ):
        try:
            wrong()
        except (ValueError, TypeError, IndexError, AssertionError) as error:
            said.append(f"{type(error).__name__}: {error}")
    return said


def padded_encoders(torch: Any) -> Any:
    """Inference with padding on the right gives zeros there; everything else gives what the layers compute."""
    nn = torch.nn

    def encoder(**given: Any) -> Any:
        layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
        made = nn.TransformerEncoder(layer, 2, **given).eval()
        for p in made.parameters():
            p.data = (torch.arange(float(p.numel())).reshape(p.shape) * 0.7).sin()
        return made

    right = torch.tensor([[False, False, False], [False, True, True]])
    left = right.flip(1)
    x = torch.arange(24.0).reshape(2, 3, 4).cos()
    plain, unchecked = encoder(), encoder(mask_check=False)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The PyTorch API of nested tensors")
        said = [
            plain(x, src_key_padding_mask=m)
            for m in (right, left, right[1:] | right.any(1, keepdim=True))
        ]
        said += [unchecked(x, src_key_padding_mask=left)]
        said += [encoder(norm=nn.LayerNorm(4))(x, src_key_padding_mask=right)]
        said += [encoder(enable_nested_tensor=False)(x, src_key_padding_mask=right)]
        said += [encoder().train()(x, src_key_padding_mask=right)]
        said += [plain(x, mask=torch.zeros(3, 3).bool(), src_key_padding_mask=right)]
        said += [plain(x[1], src_key_padding_mask=right[1])]
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            said += [
                plain(x, src_key_padding_mask=right),
                torch.backends.mha.get_fastpath_enabled(),
            ]
        finally:
            torch.backends.mha.set_fastpath_enabled(True)
    said += [plain(x, src_key_padding_mask=right)]
    plain.requires_grad_(False)
    return [*said, plain(x, src_key_padding_mask=right)]


PROGRAMS = [
    walks, members, forward_hooks, backward_hooks, states, moves, lazy, lists, parametrised, folded,
    clipped, pruned, padded_encoders,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_program(program: Any) -> None:
    found, expected = Ran(ct, program), Ran(th, program)
    assert expected.error is None, expected.error
    if found.error is not None:
        raise found.error
    assert_same_value(found.value, expected.value, 1e-5)
    assert [str(w[1]) for w in found.warnings] == [str(w[1]) for w in expected.warnings]
