"""Random small graphs, in-place operations on views among them: the same gradients as torch.

A graph is a list of lines that torch draws once and both libraries run. `CLTENSOR_GRAPHS=500` tries more of them.
"""

from __future__ import annotations

import copy
import os
import random
import textwrap
from typing import Any

import pytest
from parity.oracle import (
    Ran,
    assert_same_error,
    assert_same_outcome,
    assert_same_value,
    lines,
    tensor,
    th,
)
from support import ct, data

GRAPHS = int(os.environ.get("CLTENSOR_GRAPHS", "60"))

# {x}, {y}: tensors made so far; {z}: the tensor to write. Where shapes do not fit, torch fails, and another line is
# drawn.
UNARY = """
{x}.sin()
{x}.tanh()
{x}.sigmoid()
{x}.relu()
{x}.abs()
{x}.square()
({x} * 0.3).exp()
({x}.abs() + 1).log()
({x}.square() + 1).sqrt()
{x} * 2 - 1
1 / ({x}.square() + 1)
{x}.clamp(-0.5, 0.5)
{x}.t()
{x}.reshape(-1)
{x}.unsqueeze(0)
{x}.expand(2, *{x}.shape)
{x}[0]
{x}[..., 1:]
{x}[::2]
{x}[[1, 0, 1]]
{x}[{x} > 0]
{x}.narrow(0, 1, 2)
{x}.flip(0)
{x}.sum(0)
{x}.sum(-1, keepdim=True)
{x}.mean(-1)
{x}.amax(0)
{x}.max(0).values
{x}.prod(-1)
{x}.var(-1)
{x}.logsumexp(-1)
{x}.softmax(-1)
{x}.log_softmax(0)
{x}.cumsum(0)
{x}.sort(-1).values
{x}.masked_fill({x} < -0.3, 0.5)
{x}.index_select(0, torch.tensor([1, 1]))
{x}.gather(0, torch.zeros_like({x}, dtype=torch.int64))
{x}.contiguous().view(-1)
{x}.unbind(0)[1]
{x}.chunk(2, -1)[0]
""".strip().splitlines()
BINARY = """
{x} + {y}
{x} - 2 * {y}
{x} * {y}
{x} / ({y}.square() + 1)
torch.maximum({x}, {y})
torch.where({x} > {y}, {x}, {y})
torch.atan2({x}, {y}.square() + 1)
{x} @ {y}.mT
{x} @ {y}
torch.cat(({x}, {y}))
torch.stack(({x}, {y}))
torch.lerp({x}, {y}, 0.3)
torch.addcmul({x}, {x}, {y})
""".strip().splitlines()
INPLACE = """
{z}.mul_(2)
{z}.add_({y})
{z}.mul_({y})
{z}[0] = 0.5
{z}[0] = {y}[1]
{z}[1:] *= 3
{z}[..., 0] = {y}[..., 1]
{z}[{z} > 0] = 0.1
{z}[..., 1:].sin_()
{z}.t().add_({y}.t())
{z}.narrow(0, 0, 1).mul_({y})
{z}.select(0, 1).copy_({y}[0])
{z}.view(-1)[1:3].zero_()
{z}.unsqueeze(0).sub_({y})
{z}.clamp_(-0.4, 0.4)
{z}.relu_()
{z}.gt_(0.1)
{z}[1:].le_({y}[1:])
{z}.renorm_(2, 0, 0.5)
{z}.abs_().add_(2).mvlgamma_(2)
{z}.tanh_()
{z}.masked_fill_({y} > 0, 0.2)
{z}.index_fill_(0, torch.tensor([0]), 0.3)
{z}.index_add_(0, torch.tensor([0, 0, 1]), {y})
{z}.copy_({z})
{z}.t_()
{z}.unsqueeze_(0)
""".strip().splitlines()
LEAVES = {"a": (3, 4), "b": (3, 4), "c": (4,), "d": (3, 1), "e": (4, 4)}


def run_line(line: str, names: dict[str, Any], module: Any) -> None:
    exec(line, {"torch": module}, names)


def leaves(module: Any) -> dict[str, Any]:
    return {
        name: tensor(module, data(*shape, seed=n), requires_grad=True)
        for n, (name, shape) in enumerate(LEAVES.items())
    }


def draw(seed: int) -> list[str]:
    """Return the lines of a graph that torch can run."""
    r = random.Random(seed)
    names, program = leaves(th), []
    while len(program) < 6:
        known = list(names)
        x, y = r.choice(known[-2:] if r.random() < 0.6 else known), r.choice(known)
        new = f"t{len(program)}"
        kind = r.random()
        if kind < 0.4:
            line = f"{new} = {r.choice(UNARY).format(x=x)}"
        elif kind < 0.7:
            line = f"{new} = {r.choice(BINARY).format(x=x, y=y)}"
        else:
            copy = "" if x[0] == "t" and r.random() < 0.4 else ".clone()"
            line = f"{new} = {x}{copy}; " + r.choice(INPLACE).format(z=new, y=y)
        trial = dict(names)
        if Ran(th, lambda m, line=line, trial=trial: run_line(line, trial, m)).error:
            continue
        made = trial[new]
        if not made.numel() or made.numel() > 200 or not bool(th.isfinite(made).all()):
            continue
        if float(made.detach().abs().max()) > 50:
            continue
        names, program = trial, [*program, line]
    used = [f"t{i}" for i in range(len(program))][-3:]
    program.append("loss = " + " + ".join(f"{t}.square().mean()" for t in used))
    return program


def gradients(module: Any, program: list[str]) -> Any:
    """Run a graph, then its backward pass twice.

    Returns the loss, the leaves' gradients after the first pass, the tensors' versions, and the second pass's error.
    """
    names = leaves(module)
    for line in program:
        run_line(line, names, module)
    loss = names["loss"]
    versions = [t._version for n, t in sorted(names.items()) if n[0] == "t" and n[1:].isdigit()]
    if not loss.requires_grad:
        return versions
    loss.backward()
    found = [
        loss.detach(),
        *(None if g is None else g.clone() for g in (names[n].grad for n in LEAVES)),
    ]
    try:
        loss.backward()
    except RuntimeError as error:
        return [*found, *versions, str(error)[:40]]
    return [*found, *versions]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(GRAPHS))
def test_random_graph(seed: int) -> None:
    program = draw(seed)
    found, expected = (Ran(m, lambda m: gradients(m, program)) for m in (ct, th))
    assert_same_outcome(found, expected, 3e-4, "\n".join(program) + "\n")


# Whole programs on x, y (3, 4) and v (4,), which require grad, and c, which does not; `out` is compared.
PROGRAMS = {
    "base changed after a view was taken": """
        b = x.clone(); v0 = b[0]; b.mul_(2); out = (v0 * y[0]).sum(); out.backward()""",
    "view changed, base read": """
        b = x * 1; b[0].mul_(3); out = b.sin().sum(); out.backward()""",
    "view of a view changed": """
        b = x * 1; b.t()[1:3].view(2, 3)[0].exp_(); out = (b * y).sum(); out.backward()""",
    "overwritten part gives no gradient": """
        b = x * 2; b[1] = v; out = (b * b).sum(); out.backward()""",
    "constant base takes a tracked value": """
        b = torch.zeros(3, 4); b[0] = v; b[1:] = y[1:]; out = b.square().sum(); out.backward()""",
    "in place on an expanded operand's base": """
        b = v.clone(); e = b.expand(3, 4); b.mul_(2); out = (e * x).sum(); out.backward()""",
    "saved output changed": """
        b = x.exp(); b.add_(1); out = b.sum(); out.backward()""",
    "saved input changed": """
        b = x * 1; z = b * y; b.add_(1); out = z.sum(); out.backward()""",
    "saved through a view": """
        b = x * 1; z = b[0] * v; b[1].add_(1); out = z.sum(); out.backward()""",
    "not saved, so changing it is fine": """
        b = x * 1; z = b + y; b.mul_(0); out = z.sum(); out.backward()""",
    "detached then changed": """
        b = x * 1; z = b * b; b.detach().zero_(); out = z.sum(); out.backward()""",
    "no_grad view changed": """
        b = x * 1
        with torch.no_grad(): w = b[0]
        w.mul_(2); out = b.sum(); out.backward()""",
    "unbind view changed": """
        b = x * 1; p, q, r = b.unbind(0); p.mul_(2); out = b.sum(); out.backward()""",
    "retain_grad": """
        b = x * y; b.retain_grad(); b.sin().sum().backward(); out = b.grad""",
    "hook changes the gradient": """
        b = x * 2; b.register_hook(lambda g: g * 10); b.sum().backward(); out = x.grad""",
    "second order": """
        (g,) = torch.autograd.grad((x ** 3 * y.tanh()).sum(), x, create_graph=True)
        out = g.square().sum(); out.backward()""",
    "third order": """
        f = (x.sin() * y).sum()
        for _ in range(3): (f,) = torch.autograd.grad(f.sum(), x, create_graph=True)
        out = f""",
    "second order of softmax": """
        (g,) = torch.autograd.grad((x.softmax(1) * c).sum(), x, create_graph=True)
        out = g.square().sum(); out.backward()""",
    "second order of a matrix product": """
        (g,) = torch.autograd.grad((x @ y.t()).square().sum(), x, create_graph=True)
        out = (g * c).sum(); out.backward()""",
    "cross entropy": """
        out = torch.nn.functional.cross_entropy(x, torch.tensor([1, 0, 3])); out.backward()""",
    "gradients accumulate": """
        (x * 2).sum().backward(); (x * y).sum().backward(); out = x.grad""",
    "unused input": """
        out = torch.autograd.grad(x.sum(), (x, y), allow_unused=True)""",
    "materialised": """
        out = torch.autograd.grad(x.sum(), (x, y), allow_unused=True, materialize_grads=True)""",
    "grad of several outputs": """
        out = torch.autograd.grad((x * 2, y * x), (x, y), (c, c))""",
    "ties share": """
        b = (x > 0) * 1.0 * x / x.detach(); out = b.amax(); out.backward()""",
    "gradient of abs, sign, clamp at the edges": """
        z = torch.tensor([-1.0, 0.0, 1.0], requires_grad=True)
        (z.abs() + z.clamp(-1, 1) + z.relu() + z.sign()).sum().backward(); out = z.grad""",
    "sqrt at zero": """
        z = torch.zeros(3, requires_grad=True); z.sqrt().sum().backward(); out = z.grad""",
    "norm at zero": """
        z = torch.zeros(3, requires_grad=True); z.norm().backward(); out = z.grad""",
    "prod with zeros": """
        z = torch.tensor([0.0, 2.0, 3.0], requires_grad=True); z.prod().backward(); out = z.grad""",
    "pow at zero": """
        z = torch.tensor([0.0, 1.0], requires_grad=True); (z ** 2 + z ** 0).sum().backward(); out = z.grad""",
    "what is constant takes no infinite gradient": """
        b = x.floor() + x.sign() + x.round() + x.trunc() + x.sgn() + x.ceil() + x ** 0 + x.div(y, rounding_mode="floor")
        z = y * 1; z.zero_(); w = y * 1; w.fill_(2); u = y * 1; u.copy_(v); t = y * 1; t[0] = 1
        out = b + z + w + u + t; out.backward(torch.full((3, 4), float("inf")))""",
    "nan is not cut off": """
        z = torch.tensor([float("nan"), 0.5, 7.0], requires_grad=True); F = torch.nn.functional
        (F.relu6(z) + F.hardtanh(z) + z.relu() + F.hardshrink(z) + F.softshrink(z)).sum().backward(); out = z.grad""",
    "power pooling of zeros": """
        z = torch.tensor([[0.0, 0.0, 1.0, -2.0]], requires_grad=True)
        out = torch.nn.functional.lp_pool1d(z, 2.0, 2); out.sum().backward(); out = z.grad""",
    "where hides nothing": """
        z = torch.tensor([0.0, 4.0], requires_grad=True)
        torch.where(z > 0, z.sqrt(), torch.zeros(2)).sum().backward(); out = z.grad""",
    "dtype of a gradient": """
        (x.double() * 2).sum().backward(); out = x.grad""",
    "backward again through a number's product": """
        out = (x * 2).sum(); out.backward(); out.backward()""",
    "backward again through a number's quotient": """
        out = (x / 2).sum(); out.backward(); out.backward()""",
    "backward again through what keeps nothing": """
        out = torch.trapezoid(x - 1, dx=2.0).sum(); out.backward(); out.backward()""",
    "saved, then turned in place": """
        b = x * 1; z = b * y; b.t_(); out = z.sum(); out.backward()""",
    "saved, then copied onto itself": """
        b = x * 1; z = b * y; b.copy_(b); out = z.sum(); out.backward()""",
    "checkpointed argument changed": """
        b = x * 1; z = torch.utils.checkpoint.checkpoint(torch.sin, b, use_reentrant=False)
        with torch.no_grad(): b.mul_(2)
        out = z.sum(); out.backward()""",
    "frozen after use": """
        out = (x * y).sum(); x.requires_grad_(False); y.detach_(); out.backward()""",
    "set_grad_enabled": """
        torch.set_grad_enabled(False); b = x * 2; torch.set_grad_enabled(True); out = b, x * 2""",
    "inference result saved": """
        with torch.inference_mode(): b = x * 2
        out = (b * x).sum(); out.backward()""",
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("title", PROGRAMS)
def test_program(title: str) -> None:
    source = textwrap.dedent(PROGRAMS[title]).strip()

    def program(module: Any) -> Any:
        names: dict[str, Any] = {"torch": module}
        for n, (name, shape) in enumerate((("x", (3, 4)), ("y", (3, 4)), ("v", (4,)))):
            names[name] = tensor(module, data(*shape, seed=n), requires_grad=True)
        names["c"] = tensor(module, data(3, 4, seed=9))
        exec(source, names)
        return names["out"], names["x"].grad, names["y"].grad, names["v"].grad

    found, expected = (Ran(m, program) for m in (ct, th))
    if expected.error is not None:
        assert_same_error(found, expected)
        words = str(expected.error).split(".")[0].split(":")[0]
        assert words in str(found.error)
        return
    assert found.error is None, f"{type(found.error).__name__}: {found.error}"
    assert_same_value(found.value, expected.value, tol=1e-4)


HOOKS = """
x = torch.tensor([1.0], requires_grad=True)
y = {call}
seen = []
y.register_hook(lambda g: g * 10)
y.grad_fn.register_prehook(lambda given: (given[0] * 2,))
y.grad_fn.register_prehook(lambda given: None)
y.grad_fn.register_hook(lambda made, given: seen.append((made[0].item(), given[0].item())))
y.grad_fn.register_hook(lambda made, given: (made[0] * 3, *made[1:]))
y.sum().backward()
out = seen, x.grad.item()
"""
EDGES = """
(x * x).sum()
x * x
(x * x, torch.ones(4))
(x * x, torch.ones(3, dtype=torch.complex64))
(x * x, torch.ones(3))
x.sum(keepdim=True, dim=0)
"""


def test_nodes_are_printed_as_torch_prints_them() -> None:
    def program(torch: Any) -> Any:
        class Same(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return x.clone()

        x = torch.ones(2, requires_grad=True)
        return [str(y.grad_fn).split(" object")[0] for y in (Same.apply(x), x * 2)]

    assert program(ct) == program(th)


@pytest.mark.parametrize("call", ["x * 2", "Twice.apply(x)"])
def test_hooks_of_a_node_see_what_the_ones_before_it_made(call: str) -> None:
    def program(torch: Any) -> Any:
        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return x * 2

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return g * 2

        names = {"torch": torch, "Twice": Twice}
        exec(HOOKS.format(call=call), names)
        return names["out"]

    found, expected = (Ran(m, program) for m in (ct, th))
    assert found.error is None
    assert found.value == expected.value


@pytest.mark.parametrize("line", EDGES.strip().splitlines())
def test_gradients_from_an_edge(line: str) -> None:
    def program(torch: Any) -> Any:
        x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        made = eval(line, {"torch": torch, "x": x})
        y, g = made if isinstance(made, tuple) else (made, None)
        edge = torch.autograd.graph.get_gradient_edge(y)
        return torch.autograd.grad(edge, (x,), g)

    found, expected = (Ran(m, program) for m in (ct, th))
    if expected.error is not None:
        assert_same_error(found, expected)
        assert str(found.error) == str(expected.error)
        return
    assert found.error is None
    assert_same_value(found.value, expected.value)


# Ops whose formulas read a saved tensor more than once; `x` (4, 6), `i` (2, 3, 6, 6).
UNPACKED = """
F.conv2d(i, x.reshape(2, 3, 2, 2))
F.batch_norm(x, None, None, x[0].detach(), x[1].detach(), True)
F.layer_norm(x, (6,), x[0], x[1])
F.prelu(x, x[0, :1])
x / x.cos()
torch.where(x > 0, x, -x)
torch.atan2(x, x + 1)
torch.addcdiv(x, x, x + 1)
F.max_pool2d(i, 2)
"""


@pytest.mark.parametrize("line", lines(UNPACKED))
def test_saved_tensors_are_unpacked_once(line: str) -> None:
    def counts(module: Any) -> bool:
        seen: list[int] = []

        def pack(t: Any) -> tuple[int, Any]:
            return len(seen), (seen.append(0), t)[1]

        def unpack(packed: Any) -> Any:
            seen[packed[0]] += 1
            return packed[1]

        x, i = (tensor(module, data(*s), True) for s in ((4, 6), (2, 3, 6, 6)))
        with module.autograd.graph.saved_tensors_hooks(pack, unpack):
            y = eval(line, {"torch": module, "F": module.nn.functional, "x": x, "i": i})
        for times in (1, 2):
            y.sum().backward(retain_graph=True)
            if seen != [times] * len(seen):
                return False
        return bool(seen)

    assert counts(th)
    assert counts(ct)


def test_what_is_checkpointed_runs_twice() -> None:
    def counted(module: Any) -> list[int]:
        nn, seen = module.nn, []
        block = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 2, 3))
        block.register_forward_hook(lambda *args: seen.append(1))
        x = tensor(module, data(2, 3, 6, 6), True)
        module.utils.checkpoint.checkpoint(block, x, use_reentrant=False).sum().backward()
        return [len(seen), int(block[1].num_batches_tracked)]

    assert counted(ct) == counted(th)


def test_a_copy_of_a_result_is_a_leaf() -> None:
    def run(module: Any) -> Any:
        x = module.ones(3, requires_grad=True)
        made = [copy.copy(t) for t in (x, x * 2, x.view(3, 1), x.detach())]
        return [(t.is_leaf, t.requires_grad, t.grad_fn is None) for t in made]

    assert run(ct) == run(th)


def test_hooks_of_results_that_no_gradient_reaches_get_none() -> None:
    def told(torch: Any) -> list[Any]:
        x = torch.ones(3, 2).requires_grad_()
        a, b, c = x.unbind()
        seen: list[Any] = []
        for t in (a, b, c):
            t.register_hook(lambda g: seen.append(g if g is None else g.tolist()))
        b.sum().backward(retain_graph=True)
        a.register_hook(lambda g: b.detach())
        with pytest.raises(RuntimeError, match="can't replace a None gradient"):
            b.sum().backward()
        return [*seen, x.grad.tolist()]

    assert told(ct) == told(th)
