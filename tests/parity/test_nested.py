"""Nested tensors: values, gradients, texts, files and errors are torch's."""

from __future__ import annotations

import copy
import io
import re
import warnings
from typing import Any

import numpy as np
import pytest
from parity.oracle import ct, lines, th

# N: (3, *, 4) with an empty tensor, M: alike, with the same offsets; H: (3, 2, *, 4); I: indices; G: with gaps
JAGGED = """
N * 2 - M
1 - N
2 / (N.abs() + 1)
N ** 2 + 2 ** N
N > M
(N > 0) & (M > 0)
torch.where(N > 0, N, M)
N.sin().exp()
torch.nn.functional.gelu(N)
torch.nn.functional.silu(N)
torch.nn.functional.dropout(N, 0.5, training=False)
N.clamp(-0.5, 0.5)
N.masked_fill(N > 0, 3.0)
N + W
N + W[None, None]
N * B[:, None]
N + D
N.to(torch.float64)
N.half()
N.int()
N.clone()
N.detach()
N.sum()
N.mean()
N.sum(1)
N.sum(1, keepdim=True)
N.sum(-1)
N.sum(2, keepdim=True)
N.sum((0, 1))
N.sum((0, 1, 2))
L.mean(1)
N.mean(-1)
N.mean((0, 1))
L.amax(1)
L.amin(1)
N.amax(-1)
L.max(1)[0]
L.max(1)[1]
N.max(2)[0]
N.max()
N.min()
L.argmax(1)
N.prod(2)
N.any(1)
(N > -9).all(1)
N.softmax(-1)
N.softmax(1)
N.log_softmax(-1)
N.transpose(1, 2)
N.transpose(1, 2).transpose(1, 2)
N.permute(0, 2, 1)
N.unsqueeze(-1)
N.unsqueeze(1)
N.unsqueeze(2).squeeze(2)
N.chunk(2, -1)
N.split([1, 3], -1)
N.narrow(2, 1, 2)
N[1]
N[2, 1]
N[..., 1]
N[..., :2]
N.select(2, 1)
N.view(3, -1, 2, 2)
N.view(3, -1, 2, 2).transpose(1, 2)
N.reshape(3, -1, 2, 2).flatten(2, 3)
N.unflatten(-1, (2, 2))
H.transpose(1, 2).flatten(-2)
N.unbind()
N.to_padded_tensor(0.5)
torch.nested.to_padded_tensor(N, 9.0, (3, 5, 4))
torch.cat([N, M], -1)
torch.stack([N, M], -1)
N @ X
torch.nn.functional.linear(N, X.T, X[0])
N.bmm(X.expand(3, 4, 3))
torch.nn.functional.layer_norm(N, (4,), W, W)
torch.nn.functional.rms_norm(N, (4,), W)
torch.nn.functional.embedding(I, X)
torch.nn.functional.scaled_dot_product_attention(H, H, H)
torch.nn.functional.scaled_dot_product_attention(H, H, H, scale=0.3)
torch.zeros_like(N)
torch.full_like(N, 2.0)
N.size(0), N.size(2), N.dim(), N.numel(), N.is_nested, N.layout, N.is_contiguous(), N.dtype
N.transpose(1, 2).is_contiguous()
str(N.shape), str(N.stride())
N.size(1) == M.size(1), N.size(1) == 2, N.size(1) > 1, str(3 * N.size(1))
len(N), [x.shape for x in N]
repr(N), repr(N * 2), repr(G)
G * 2
G.lengths(), G.offsets()
G.unbind()
G.contiguous()
G.numel()
torch.nested.masked_select(D[:, :, 0], D[:, :, 0] > 0)
torch.nested.as_nested_tensor(D, layout=torch.jagged)
torch.nested.as_nested_tensor(list(D), layout=torch.jagged)
torch.nested.nested_tensor([[1, 2], [3]], layout=torch.jagged)
torch.nested.nested_tensor_from_jagged(V, lengths=torch.tensor([1, 4]))
torch.nested.nested_tensor_from_jagged(V, torch.tensor([0, 1, 5]), jagged_dim=1)
torch.nested.narrow(D, 1, 1, 2, layout=torch.jagged)
torch.nested.narrow(D, 1, torch.tensor([0, 1, 1]), torch.tensor([3, 1, 2]), layout=torch.jagged)
"""

# S: (3, *, *) of strided layout, K: (3, *, 4)
STRIDED = """
S
S * 2
S + S
-K
K.relu()
torch.nn.functional.gelu(K)
K.sum(-1, True)
K.softmax(-1)
S.softmax(1)
K.transpose(1, 2)
K.matmul(K.transpose(1, 2))
torch.nn.functional.linear(K, X.T)
torch.nn.functional.linear(K, X.T, X[0])
torch.nn.functional.layer_norm(K, (4,), W, W)
K.unbind()
S[1]
K.select(1, 0)
K.chunk(2, -1)
K.split([1, 3], -1)
K.reshape(3, -1, 2, 2)
S.to_padded_tensor(0.5)
torch.nested.to_padded_tensor(S, 0.5, (3, 6, 7))
K.clone()
K.half()
torch.zeros_like(K)
torch.cat([K, K])
K.masked_fill(K > 0, 3.0)
K.size(0), K.size(2), K.dim(), K.numel(), K.is_nested, K.layout
K.is_same_size(K * 2), torch.is_same_size(K, S), N.is_same_size(M), N.is_same_size(L)
repr(S), repr(K * 2)
repr(torch.nested.nested_tensor([torch.ones(2, 1), torch.zeros(1, 2)], requires_grad=True))
torch.nested.nested_tensor([])
torch.nested.as_nested_tensor(D)
torch.nested.narrow(D, 0, 1, 2)
"""

REFUSALS = """
N.sum(0)
N.sum((1, 2))
N.softmax(0)
N.transpose(0, 1)
N.permute(1, 0, 2)
N.permute(0, 1)
N.unsqueeze(0)
N.chunk(2, 1)
N.split(1, 1)
N.flatten(1, 2)
N.view(-1)
N.view(3, 5, 4)
N.unbind(1)
torch.cat([N, N], 0)
torch.cat([N, N], 1)
torch.stack([N, N], 0)
N + torch.ones(3, 4)
N @ N.transpose(1, 2)
N.cumsum(1)
N.std()
N.sort()
N.tolist()
N.numpy()
N.item()
N.backward()
torch.linalg.svd(N)
G.softmax(1)
torch.nested.to_padded_tensor(K, 0.0, (3, 1, 1))
K.size(1)
S.shape
S.cat(S)
K.is_same_size(D)
N.is_same_size(D)
D.is_same_size(N)
torch.is_same_size(D, K)
torch.nested.nested_tensor([torch.ones(2), torch.ones(2, 2)])
torch.nested.nested_tensor([torch.ones(2), torch.ones(2, 2)], layout=torch.jagged)
torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(3, 2)], layout=torch.jagged)
torch.nested.nested_tensor([], layout=torch.jagged)
torch.nested.nested_tensor([torch.ones(())], layout=torch.jagged)
torch.nested.nested_tensor([torch.ones(2), torch.ones(2).int()], layout=torch.jagged)
torch.nested.nested_tensor([torch.ones(2)], layout=torch.sparse_coo)
torch.nested.nested_tensor(3)
torch.nested.as_nested_tensor(3)
torch.nested.as_nested_tensor(torch.ones(3))
torch.nested.as_nested_tensor(N)
torch.nested.nested_tensor_from_jagged(V)
torch.nested.nested_tensor_from_jagged(V, torch.tensor([0, 5]), jagged_dim=0)
torch.nested.nested_tensor_from_jagged(V, torch.tensor([0, 5]), torch.tensor([1, 2]))
torch.nested.narrow(D, 2, 0, 1, layout=torch.jagged)
torch.nested.narrow(D, 1, 0.5, 1)
torch.nested.narrow(D, 1, torch.tensor([0]), 1)
torch.nn.functional.scaled_dot_product_attention(H, H, H, attn_mask=torch.ones(2, 2))
torch.nn.functional.scaled_dot_product_attention(H, H, torch.ones(3, 2, 5, 4))
"""
# Errors whose class torch chooses differently by accident of its implementation
OTHER_CLASSES = {
    "S.cat(S)",
    "torch.nn.functional.scaled_dot_product_attention(H, H, torch.ones(3, 2, 5, 4))",
}


def arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    sizes = {"V": (5, 4), "U": (5, 4), "W": (4,), "B": (3, 4), "D": (3, 3, 4), "X": (4, 3), "T": (5, 2, 4)}  # fmt: skip
    return {k: rng.standard_normal(s).astype(np.float32) for k, s in sizes.items()}


def names(torch: Any, grad: bool = False) -> tuple[dict[str, Any], list[Any]]:
    """Return the names of the lines, and the dense leaves that nested ones are made of."""
    made = {k: torch.tensor(v, requires_grad=grad) for k, v in arrays().items()}
    jagged = torch.nested.nested_tensor_from_jagged
    at = torch.tensor([0, 2, 2, 5])
    # Without the greatest length torch pads to the sum of all.
    known = {"min_seqlen": 0, "max_seqlen": 3}
    nested = {"N": jagged(made["V"], at, **known), "M": jagged(made["U"], at, **known)}
    nested["L"] = jagged(made["V"], torch.tensor([0, 2, 5]), min_seqlen=2, max_seqlen=3)
    nested["H"] = jagged(made["T"], torch.tensor([0, 2, 4, 5])).transpose(1, 2)
    nested["I"] = jagged(torch.tensor([0, 3, 1, 2, 2]), at)
    nested["G"] = jagged(made["V"], torch.tensor([0, 2, 5]), torch.tensor([1, 2]))
    parts = [made["D"][0], made["D"][1, :2, :3], made["D"][2, 1:]]
    nested["S"] = torch.nested.as_nested_tensor(parts)
    nested["K"] = torch.nested.as_nested_tensor([made["D"][0], made["D"][1, :1], made["D"][2, 1:]])
    return {"torch": torch, **made, **nested}, list(made.values())


def described(x: Any) -> Any:
    """Return what a value is in plain Python: arrays of dense and nested tensors with their kind and dtype."""
    if isinstance(x, tuple | list):
        return [described(v) for v in x]
    if getattr(x, "is_nested", False):
        jagged = str(x.layout) == "torch.jagged"
        own = [x.offsets().tolist(), x.lengths() is not None, x._ragged_idx] if jagged else []
        parts = [p.detach().double().numpy() for p in x.unbind()]
        return ["nested", str(x.layout), x.dim(), str(x.dtype).split(".")[1], *own, *parts]
    if hasattr(x, "detach"):
        return ["dense", str(x.dtype).split(".")[1], x.detach().double().numpy()]
    if isinstance(x, str):
        return re.sub(r"object at 0x\w+", "object", re.sub(r"j\d+", "j", x))
    return x if isinstance(x, int | float) else str(x)


def same(a: Any, b: Any) -> None:
    assert type(a) is type(b)
    if isinstance(a, list):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    elif isinstance(a, np.ndarray):
        np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-3 if a.size else 0)
        np.testing.assert_allclose(a, b, rtol=3e-4, atol=3e-4)
        assert a.shape == b.shape
    else:
        assert a == b


def outcome(torch: Any, line: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(line, names(torch)[0])


@pytest.mark.parametrize("line", [*lines(JAGGED), *lines(STRIDED)])
def test_values(line: str) -> None:
    same(described(outcome(ct, line)), described(outcome(th, line)))


def slopes(torch: Any, line: str) -> list[Any]:
    """Return the gradients of all dense leaves of a weighted sum of what a line gives."""
    found, leaves = names(torch, grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = eval(line, found)
        total = torch.zeros(())
        for x in made if isinstance(made, tuple | list) else (made,):
            parts = x.unbind() if getattr(x, "is_nested", False) else (x,)
            for part in parts:
                if part.is_floating_point():
                    weights = torch.arange(part.numel()).reshape(part.shape) % 3 + 1.0
                    total = total + (part.float() * weights).sum()
        if not total.requires_grad:
            return []
        got = torch.autograd.grad(total, leaves, allow_unused=True)
    return [None if g is None else g.double().numpy() for g in got]


# Lines without gradients, those whose gradient torch does not have, and those that crash it
_PLAIN = re.compile(
    r"like|same_size|size\(|len|repr|str\(|detach|prod|lengths|numel|int\(\)|>|nested\.n|is_contiguous|half"
)
_NOT_THERE = re.compile(
    r"N.sum\(.|log_softmax|[LN].(mean|max|amin|amax)\([1(]|N\[\.|select|unsqueeze|split|narrow|chunk|K, K|G.contiguous|softmax\(1|N \+ D"
)


@pytest.mark.parametrize(
    "line",
    [
        x
        for x in (*lines(JAGGED), *lines(STRIDED))
        if not _PLAIN.search(x) and not _NOT_THERE.search(x)
    ],
)
def test_gradients(line: str) -> None:
    for a, b in zip(slopes(ct, line), slopes(th, line), strict=True):
        if (
            a is None or b is None
        ):  # one of them leaves out a leaf that the result does not depend on
            assert a is None or not a.any()
            assert b is None or not b.any()
        else:
            np.testing.assert_allclose(a, b, rtol=3e-4, atol=3e-4)


@pytest.mark.parametrize("line", lines(REFUSALS))
def test_refusals(line: str) -> None:
    kinds = []
    for torch in (ct, th):
        with pytest.raises(Exception) as caught:
            outcome(torch, line)
        kinds.append(caught.type.__name__)
    if line not in OTHER_CLASSES:
        assert kinds[0] == kinds[1]


SIZES = [
    "torch.Size((2, s[1]))",
    "torch.Size([2, s[1], 4]) == s",
    "s[:2] + (8,)",
    "(8, *s[:2]), (8,) + s[:2]",
    "torch.Size(reversed(s)), s * 2",
    "s[1] in torch.Size((2, s[1])), s.index(s[1])",
    "torch.Size((2, s[1], 1.5))",
    "isinstance(s[1], torch.SymInt), isinstance(s[1], int)",
]


@pytest.mark.parametrize("line", SIZES)
def test_ragged_sizes(line: str) -> None:
    texts = []
    for module in (ct, th):
        parts = [module.ones(2, 4), module.ones(3, 4)]
        nested = module.nested.nested_tensor(parts, layout=module.jagged)
        try:
            found = str(eval(line, {"torch": module, "s": nested.shape}))
        except TypeError as error:
            found = str(error)
        texts.append(re.sub(r"j\d+", "j", found))
    assert texts[0] == texts[1]


PARTS = ["_values", "_offsets", "_lengths", "_ragged_idx", "_max_seqlen", "_min_seqlen"]


def test_attributes_that_libraries_read() -> None:
    texts = []
    for module in (ct, th):
        nested = module.nested.nested_tensor([module.ones(2, 4), module.ones(3, 4)], layout=module.jagged)  # fmt: skip
        lengths = module.tensor([2, 3]), module.tensor([0, 1])
        gaps = module.nested.narrow(module.ones(2, 5, 3), 1, *lengths[::-1], layout=module.jagged)
        texts.append(
            [str(getattr(t, n)) for t in (nested, gaps, nested.transpose(1, 2)) for n in PARTS]
        )
    assert texts[0] == texts[1]


class Pair:
    """A tensor-like object of several tensors, which can be iterated over."""

    def __init__(self, *parts: Any) -> None:
        self.parts = parts

    def __iter__(self) -> Any:
        return iter(self.parts)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        parts = [getattr(a[0] if type(a) is tuple else a, "parts", a) for a in args]
        return Pair(*func(*parts, **(kwargs or {})))


def test_gradients_of_tensor_like_objects_beside_nested_tensors() -> None:
    for module in (ct, th):
        module.nested.nested_tensor([module.ones(2)], layout=module.jagged)
        x = Pair(module.ones(2).requires_grad_(), module.ones(3).requires_grad_())
        found = module.autograd.grad(Pair(*[p.sum() * 3 for p in x]), x)
        assert type(found) is Pair
        assert [p.tolist() for p in found] == [[3.0] * 2, [3.0] * 3]


def test_leaves_get_nested_gradients() -> None:
    for torch in (ct, th):
        made = [torch.tensor(x) for x in arrays()["D"]]

        def leaf(torch: Any = torch, made: Any = made) -> Any:
            parts = [made[0], made[1][:1]]
            return torch.nested.nested_tensor(parts, layout=torch.jagged, requires_grad=True)

        n = leaf()
        assert n.is_leaf
        (n * n + n * 2).sum().backward()
        for g, x in zip(n.grad.unbind(), n.unbind(), strict=True):
            np.testing.assert_allclose(g.numpy(), 2 * x.detach().numpy() + 2, rtol=1e-6)
        n = leaf()
        (found,) = torch.autograd.grad(n.sin().sum(), n)
        expected = n.detach().values().cos().numpy()
        np.testing.assert_allclose(found.values().numpy(), expected, rtol=1e-6)
        (n * 3).backward(torch.ones_like(n))
        np.testing.assert_allclose(n.grad.values().numpy(), np.full((4, 4), 3.0))


def test_a_network_trains_alike() -> None:
    """Embedding, attention of heads, norms and linear maps on a ragged batch: losses and gradients are torch's."""
    losses = []
    for torch in (ct, th):
        nn = torch.nn
        rng = np.random.default_rng(1)
        maps = [nn.Linear(8, 8) for _ in range(3)]
        layers = nn.ModuleList([nn.Embedding(11, 8), nn.LayerNorm(8), nn.Linear(8, 3), *maps])
        with torch.no_grad():
            for p in layers.parameters():
                p.copy_(torch.tensor(rng.standard_normal(tuple(p.shape)).astype(np.float32)) / 2)
        words = torch.nested.nested_tensor(
            [torch.tensor(rng.integers(0, 11, n)) for n in (3, 1, 6)], layout=torch.jagged
        )
        optimiser = torch.optim.SGD(layers.parameters(), lr=0.1)
        run = []
        for _ in range(3):
            x = layers[0](words)
            q, k, v = (m(x).unflatten(-1, (2, 4)).transpose(1, 2) for m in maps)
            y = nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(-2)
            hidden = layers[2](layers[1](x + y)).relu()
            pooled = torch.stack([row.mean(0) for row in hidden.unbind()])
            loss = nn.functional.cross_entropy(pooled, torch.tensor([0, 2, 1]))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            run.append(loss.item())
        losses.append(run)
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)
    assert losses[0][2] < losses[0][0]


@pytest.mark.parametrize("layout", ["jagged", "strided"])
def test_a_parameter_may_be_nested(layout: str) -> None:
    for torch in (ct, th):
        rows = [torch.tensor(x[:, 0]) for x in arrays()["D"][:2]]
        data = torch.nested.nested_tensor(rows, layout=getattr(torch, layout))
        p = torch.nn.Parameter(data)
        (p * p).to_padded_tensor(0.0).sum().backward()
        same(described(p.grad), described(p.detach() * 2))
        for other in (p, copy.deepcopy(p)):
            assert isinstance(other, torch.nn.Parameter)
            assert other.requires_grad
        assert not torch.nn.Parameter(data, requires_grad=False).requires_grad


def with_weights(module: Any, torch: Any) -> Any:
    """Return a module for inference, with weights that are alike in both libraries."""
    rng = np.random.default_rng(2)
    for p in module.parameters():
        p.data.copy_(torch.tensor(rng.standard_normal(tuple(p.shape)).astype(np.float32)))
    return module.eval()


def sequences(torch: Any, layout: str = "strided") -> Any:
    rng = np.random.default_rng(3)
    rows = [torch.tensor(rng.standard_normal((n, 8)).astype(np.float32)) for n in (2, 5, 3)]
    return torch.nested.nested_tensor(rows, layout=getattr(torch, layout))


MODULES = {
    "weights": lambda nn: nn.MultiheadAttention(8, 2, batch_first=True),
    "encoder layer": lambda nn: nn.TransformerEncoderLayer(8, 4, 16, batch_first=True),
    "norms first": lambda nn: nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", batch_first=True, norm_first=True),
    "encoder": lambda nn: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2, nn.LayerNorm(8)),
}  # fmt: skip


@pytest.mark.parametrize("module", MODULES)
def test_transformers_take_nested_tensors_in_inference(module: str) -> None:
    found = []
    for torch in (ct, th):
        m, x = with_weights(MODULES[module](torch.nn), torch), sequences(torch)
        with torch.no_grad():
            made = (
                [m(x, x, x), m(x, x, x, average_attn_weights=False)]
                if module == "weights"
                else [[m(x)]]
            )
        assert all(y[0].is_nested for y in made)
        found.append([t.to_padded_tensor(0.0) if t.is_nested else t for y in made for t in y])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5, atol=1e-5)


REFUSED = {
    "gradients": lambda torch, m, x: m(x, x, x),
    "training": lambda torch, m, x: m.train()(x, x, x),
    "others": lambda torch, m, x: m(x, sequences(torch), x),
    "masks": lambda torch, m, x: m(x, x, x, key_padding_mask=torch.zeros(3, 5, dtype=torch.bool)),
    "dtype": lambda torch, m, x: m(*[x.double()] * 3),
    "dims": lambda torch, m, x: m(*[torch.nested.nested_tensor([torch.ones(2, 2, 8)])] * 3),
    "jagged": lambda torch, m, x: m(*[sequences(torch, "jagged")] * 3),
    "batch": lambda torch, m, x: torch.nn.MultiheadAttention(8, 2).eval()(x, x, x),
    "odd": lambda torch, m, x: torch.nn.MultiheadAttention(8, 1, batch_first=True).eval()(x, x, x),
    "bias": lambda torch, m, x: torch.nn.MultiheadAttention(8, 2, add_bias_kv=True, batch_first=True).eval()(x, x, x),
    "zeros": lambda torch, m, x: torch.nn.MultiheadAttention(8, 2, add_zero_attn=True, batch_first=True).eval()(x, x, x),
    "widths": lambda torch, m, x: torch.nn.MultiheadAttention(8, 2, kdim=4, batch_first=True).eval()(x, x, x),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_attention_of_nested_tensors_outside_of_inference(case: str) -> None:
    texts = []
    for torch in (ct, th):
        m, x = with_weights(MODULES["weights"](torch.nn), torch), sequences(torch)
        with pytest.raises(AssertionError) as caught, torch.set_grad_enabled(case == "gradients"):
            REFUSED[case](torch, m, x)
        texts.append(str(caught.value))
    assert texts[0] == texts[1]


@pytest.mark.ours
def test_torch_reads_our_files() -> None:
    made, _ = names(ct)
    for name in ("N", "H", "G", "S", "K"):
        for own in (made[name], made[name].detach()):
            file = io.BytesIO()
            ct.save(own, file)
            for torch in (ct, th):
                file.seek(0)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    same(described(torch.load(file)), described(own))


@pytest.mark.ours
def test_torchs_files_are_read() -> None:
    made, _ = names(th)
    for name in ("N", "H", "G", "S", "K"):
        file = io.BytesIO()
        th.save(made[name].detach(), file)
        file.seek(0)
        same(described(ct.load(file)), described(made[name]))
