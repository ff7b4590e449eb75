"""Forward mode: the same tangents as torch, of random graphs, of programs that write in place, nested, over and under reverse
mode, and the same errors.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from parity.oracle import Ran, assert_same_error, assert_same_outcome, assert_same_value, tensor, th
from parity.test_autograd_parity import LEAVES, draw, run_line
from support import ct, data

GRAPHS = int(os.environ.get("CLTENSOR_GRAPHS", "40"))


def duals(module: Any, names: str, *, requires: bool = False) -> dict[str, Any]:
    """Return the leaves of a graph; those whose letter is in `names` are dual tensors."""
    fw, made = module.autograd.forward_ad, {}
    for n, (name, shape) in enumerate(LEAVES.items()):
        x = tensor(module, data(*shape, seed=n))
        if name in names:
            x = fw.make_dual(x, tensor(module, data(*shape, seed=n + 50)))
        made[name] = x.requires_grad_(requires)
    return made


def tangents(module: Any, program: list[str], names: str) -> Any:
    """Run a graph in forward mode; return (value, tangent) of all its tensors, zeros for a missing tangent."""
    fw = module.autograd.forward_ad
    with fw.dual_level():
        made = duals(module, names)
        for line in program:
            run_line(line, made, module)
        found = [fw.unpack_dual(t) for t in made.values()]
        return [(p, p * 0 if t is None else t) for p, t in found]


def tangents_of_gradients(module: Any, program: list[str]) -> Any:
    """Run a graph on dual tensors and backward; return (value, tangent) of the leaves' gradients."""
    fw = module.autograd.forward_ad
    with fw.dual_level():
        made = duals(module, "abcde", requires=True)
        inputs = list(made.values())
        for line in program:
            run_line(line, made, module)
        if not made["loss"].requires_grad:
            return None
        grads = module.autograd.grad(made["loss"], inputs, allow_unused=True)
        found = [None if g is None else fw.unpack_dual(g) for g in grads]
        return [
            None if pair is None else (pair[0], pair[0] * 0 if pair[1] is None else pair[1])
            for pair in found
        ]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(GRAPHS))
@pytest.mark.parametrize("names", ["abcde", "b"])
def test_random_graph(seed: int, names: str) -> None:
    program = draw(seed)
    told = "\n".join(program)
    found, expected = (Ran(m, lambda m: tangents(m, program, names)) for m in (ct, th))
    assert expected.error is None, f"{told}\n{expected.error}"
    assert found.error is None, f"{told}\n{type(found.error).__name__}: {found.error}"
    assert_same_value(found.value, expected.value, tol=3e-4, where=told + "\n")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(GRAPHS))
def test_random_graph_over_reverse(seed: int) -> None:
    program = draw(seed)
    found, expected = (Ran(m, lambda m: tangents_of_gradients(m, program)) for m in (ct, th))
    assert_same_outcome(found, expected, 2e-3, "\n".join(program) + "\n")


# Programs on x, y (3, 4), their tangents s, t, and v (4,); `out` is compared. fw is torch.autograd.forward_ad.
PROGRAMS = {
    "values and tangents are shared": """
        d = fw.make_dual(x, s); d.mul_(y); out = (x, s, fw.unpack_dual(x))""",
    "a primal is not dual": """
        d = fw.make_dual(x, s); p, q = fw.unpack_dual(d); out = fw.unpack_dual(p)[1] is None, q is s""",
    "a tangent of another layout is copied": """
        d = fw.make_dual(x, torch.ones(4, 3).t()); q = fw.unpack_dual(d)[1]; out = q, q.stride(), fw.unpack_dual(d.view(-1))""",
    "a tangent of part of a storage": """
        d = fw.make_dual(x[1:], s[1:]); q = fw.unpack_dual(d[1])[1]; d.as_strided((2,), (1,), 0); out = q, q is s""",
    "a view is written": """
        d = fw.make_dual(x, s); d[1:].mul_(2); out = fw.unpack_dual(d), fw.unpack_dual(x)""",
    "a base gets a tangent through a view": """
        b = y.clone(); w = b.t(); w.add_(fw.make_dual(x, s).t()); w.mul_(2); out = fw.unpack_dual(b), fw.unpack_dual(w)""",
    "a view sees what another wrote": """
        b = y.clone(); w, u = b[0], b[:2]; w.copy_(fw.make_dual(x, s)[1]); out = fw.unpack_dual(u), fw.unpack_dual(b)""",
    "setting a part": """
        b = torch.zeros(3, 4); b[0] = fw.make_dual(x, s)[1]; b[1:, 2] = fw.make_dual(y, t)[0, 0]; out = fw.unpack_dual(b)""",
    "written over": """
        d = fw.make_dual(x, s); d.copy_(y); e = fw.make_dual(y, t); e.zero_(); out = fw.unpack_dual(d), fw.unpack_dual(e)""",
    "filled with numbers": """
        d = fw.make_dual(x, s); d.fill_(2.0); d[0] = 1.0; out = fw.unpack_dual(d)""",
    "detach": """
        d = fw.make_dual(x, s); out = fw.unpack_dual(d.detach())[1], fw.unpack_dual(d.data)[1], fw.unpack_dual(d.clone().detach_())[1]""",
    "a detached view is not tracked": """
        b = y.clone(); w = b.detach(); w.add_(fw.make_dual(x, s)); out = fw.unpack_dual(b)[1], fw.unpack_dual(w)[1]""",
    "clone and conversions": """
        d = fw.make_dual(x, s); out = [fw.unpack_dual(z) for z in (d.clone(), d.double(), d.t().contiguous(), d.long(), d > 0)]""",
    "no_grad": """
        d = fw.make_dual(x, s)
        with torch.no_grad(): out = fw.unpack_dual(d.exp() * d)""",
    "inference mode": """
        d = fw.make_dual(x, s)
        with torch.inference_mode(): out = fw.unpack_dual(d.exp())""",
    "masked by a number": """
        d = fw.make_dual(x, s); out = fw.unpack_dual(d.masked_fill(y > 0, fw.make_dual(v[0], v[1]))), fw.unpack_dual(y.clamp(fw.make_dual(v[0], v[1])))""",
    "copies of views": """
        d = fw.make_dual(x, s); out = [fw.unpack_dual(z) for z in (torch.diag(v.diag() @ d.t()), torch.t_copy(d), *torch.unbind_copy(d))]""",
    "running logarithms of sums": """
        z = fw.make_dual(torch.complex(x, y), torch.complex(s, t)); out = [fw.unpack_dual(w.logcumsumexp(1)) for w in (fw.make_dual(x, s), fw.make_dual(x * 3, s), z)]""",
    "embedding": """
        d = fw.make_dual(x, s); out = fw.unpack_dual(torch.nn.functional.embedding(torch.tensor([[0, 2], [1, 0]]), d, padding_idx=0))""",
    "norms at zero": """
        d = fw.make_dual(x * 0, s); out = [fw.unpack_dual(torch.linalg.vector_norm(d, p, 1)) for p in (2, 3)]""",
    "reflectors over reverse": """
        d = fw.make_dual(x.t().contiguous(), s.t().contiguous()).requires_grad_(); e = torch.linalg.householder_product(d, y[0, :3].contiguous())
        g, = torch.autograd.grad((e * e * e).sum(), d); out = fw.unpack_dual(g)""",
    "recurrent layers": """
        out = []
        for kind in (torch.nn.LSTM, torch.nn.GRU):
            net = kind(4, 2).double(); w = {k: p.detach() * 0 + 0.3 for k, p in net.named_parameters()}
            d = fw.make_dual(x.double(), s.double()); e = torch.func.functional_call(net, w, (d,))[0]; out.append(fw.unpack_dual(e))
            d = fw.make_dual(x.double(), s.double()).requires_grad_(); e = torch.func.functional_call(net, w, (d,))[0]
            g, = torch.autograd.grad((e * e).sum(), d); out.append(fw.unpack_dual(g))
        out.append(fw.unpack_dual(fw.make_dual(x, s).exp())[1].requires_grad)""",
    "step functions": """
        d = fw.make_dual(x, s); out = [fw.unpack_dual(z) for z in (d.floor(), d.sign(), d.round(), torch.zeros_like(d))]""",
    "the level ends": """
        d = fw.make_dual(x, s); fw.exit_dual_level(); out = fw.unpack_dual(d); fw.enter_dual_level(); out = (*out, fw.unpack_dual(d))""",
    "switched off": """
        d = fw.make_dual(x, s)
        with fw._set_fwd_grad_enabled(False): e = d * 2; on = fw._is_fwd_grad_enabled()
        out = fw.unpack_dual(e)[1], on, fw._is_fwd_grad_enabled()""",
    "views in place": """
        d = fw.make_dual(x.clone(), s); d.t_(); d.unsqueeze_(0); out = fw.unpack_dual(d * 2)""",
    "real and imaginary parts": """
        z = fw.make_dual(torch.complex(x, y), torch.complex(s, t)); z.real.mul_(2); out = fw.unpack_dual(z), fw.unpack_dual(z.imag), fw.unpack_dual(z.abs())""",
    "complex": """
        z = fw.make_dual(torch.complex(x, y), torch.complex(s, t)); w = z.conj() * z.exp() + x * z; out = fw.unpack_dual(w / (z @ z.mT).sum())""",
    "several views": """
        d = fw.make_dual(x.clone(), s); out = [fw.unpack_dual(z) for z in (*d.unbind(0), *d.split(2, 1), *d.chunk(2))]""",
    "reverse over forward": """
        x.requires_grad_(); s.requires_grad_(); p, q = fw.unpack_dual((fw.make_dual(x, s) * y).sin().tanh()); out = torch.autograd.grad((q * q).sum(), (x, s))""",
    "forward over reverse": """
        d = fw.make_dual(x, s).requires_grad_(); e = (d.exp() * y).cumsum(0).tanh(); g, = torch.autograd.grad(e.sum(), d); out = fw.unpack_dual(g)""",
    "a layer": """
        f = lambda w, b: torch.nn.functional.layer_norm(torch.nn.functional.linear(y, w, b), (3,)).relu()
        out = fw.unpack_dual(f(fw.make_dual(x, s), fw.make_dual(v[:3], v[1:])))""",
    "a module with other parameters": """
        m = torch.nn.Linear(4, 3); w = {"weight": fw.make_dual(x, s), "bias": fw.make_dual(v[:3], v[1:])}
        out = fw.unpack_dual(torch.func.functional_call(m, w, (y,)))""",
    "cross entropy": """
        d = fw.make_dual(x, s).requires_grad_(); e = torch.nn.functional.cross_entropy(d, torch.tensor([1, 0, 3])); g, = torch.autograd.grad(e, d)
        out = fw.unpack_dual(e), fw.unpack_dual(g)""",
    "convolution and pooling": """
        k = fw.make_dual(x[:2, :2].reshape(1, 1, 2, 2), s[:2, :2].reshape(1, 1, 2, 2)); d = fw.make_dual(y.view(1, 1, 3, 4), t.view(1, 1, 3, 4))
        out = fw.unpack_dual(torch.nn.functional.max_pool2d(torch.nn.functional.conv2d(d, k), 2, 1))""",
    "attention": """
        q = fw.make_dual(x.view(1, 3, 4), s.view(1, 3, 4)); out = fw.unpack_dual(torch.nn.functional.scaled_dot_product_attention(q, q * 2, y.view(1, 3, 4)))""",
    "printed": """
        d = fw.make_dual(x[0], s[0]); out = str(d), str(fw.unpack_dual(d)[0]), str(fw.make_dual(v.clone().requires_grad_(), v))""",
    "jvp of jvp": """
        fw.exit_dual_level(); f = lambda a: (a.exp() * a).cumprod(1).softmax(0); J = lambda a: torch.func.jvp(f, (a,), (s,))[1]
        out = torch.func.jvp(J, (x,), (t,)); fw.enter_dual_level()""",
    "jvp of grad, grad of jvp": """
        fw.exit_dual_level(); f = lambda a: (a.sin() * a).prod(); J = lambda a: torch.func.jvp(f, (a,), (s,))[1]
        out = torch.func.jvp(torch.func.grad(f), (x,), (s,)), torch.func.grad(J)(x); fw.enter_dual_level()""",
    "jacfwd, hessian": """
        fw.exit_dual_level(); f = lambda a, b: ((a * b).sum(0), a[0]); g = lambda a: (a[0] ** 3).sum() * a.sum()
        out = torch.func.jacfwd(f, (0, 1))(x, v), torch.func.jacfwd(g)(x), torch.func.hessian(g)(x); fw.enter_dual_level()""",
    "jacfwd with aux": """
        fw.exit_dual_level(); out = torch.func.jacfwd(lambda a: (a * a, a.sum()), has_aux=True)(v); fw.enter_dual_level()""",
    "linearize": """
        fw.exit_dual_level(); o, f = torch.func.linearize(lambda a: (a.exp() * a).cumsum(0), x); out = o, f(s), f(t); fw.enter_dual_level()""",
    "functional.jacobian": """
        fw.exit_dual_level(); F = torch.autograd.functional; f = lambda a: (a * v).sum(1).exp()
        out = F.jacobian(f, x, vectorize=True, strategy="forward-mode"), F.hessian(lambda a: f(a).prod(), x[:, :1].contiguous(), vectorize=True, outer_jacobian_strategy="forward-mode"); fw.enter_dual_level()""",
}  # fmt: skip
ERRORS = {
    "no level": "fw.exit_dual_level(); out = fw.make_dual(x, s)",
    "nested": "fw.enter_dual_level()",
    "another level": "fw.exit_dual_level(level=3)",
    "size": "fw.make_dual(x, v)",
    "dual primal": "fw.make_dual(fw.make_dual(x, s), s)",
    "dual tangent": "fw.make_dual(x, fw.make_dual(s, s))",
    "integer primal": "fw.make_dual(x.long(), s)",
    "integer tangent": "fw.make_dual(x, s.long())",
    "invalid level": "fw.make_dual(x, s, level=2)",
    "out=": "torch.add(fw.make_dual(x, s), y, out=torch.empty(3, 4))",
    "out= is dual": "torch.mul(x, y, out=fw.make_dual(torch.empty(3, 4), s))",
    "no derivative": "torch.igamma(fw.make_dual(x.abs(), s), y.abs())",
    "running statistics": "torch.nn.functional.batch_norm(fw.make_dual(x, s), fw.make_dual(v, v), v * v)",
    "primals": "fw.exit_dual_level(); torch.func.jvp(torch.sin, x, s)",
    "structure": "fw.exit_dual_level(); torch.func.jvp(torch.sin, (x,), (s, s))",
    "no tensors": "fw.exit_dual_level(); torch.func.jvp(torch.sin, (), ())",
    "not a tensor": "fw.exit_dual_level(); torch.func.jvp(torch.sin, (1.0,), (1.0,))",
    "not a result": "fw.exit_dual_level(); torch.func.jvp(lambda a: 1, (x,), (s,))",
    "independent": "fw.exit_dual_level(); torch.func.jvp(lambda a: y, (x,), (s,), strict=True)",
    "complex of reverse mode": "fw.exit_dual_level(); torch.func.jacrev(lambda a: a)(torch.complex(x, y))",
    "complex outputs of reverse mode": "fw.exit_dual_level(); torch.func.jacrev(lambda a: torch.complex(a, a))(x)",
    "complex in slices": "fw.exit_dual_level(); torch.func.vmap(torch.func.grad(lambda a: (a * a).sum()))(torch.complex(x, y))",
    "complex": "fw.exit_dual_level(); torch.func.jacfwd(lambda a: a)(torch.complex(x, y))",
    "no argnums": "fw.exit_dual_level(); torch.func.jacfwd(torch.sin, argnums=())(x)",
    "argnums twice": "fw.exit_dual_level(); torch.func.grad(torch.sin, argnums=(0, 0))(x)",
    "argnums no numbers": "fw.exit_dual_level(); torch.func.jacrev(torch.sin, argnums=0.0)(x)",
    "argnums": "fw.exit_dual_level(); torch.func.jacfwd(torch.sin, argnums=2)(x)",
    "aux": "fw.exit_dual_level(); torch.func.jvp(lambda a: (a, [a, 1]), (x,), (s,), has_aux=True)",
    "aux of grad": "fw.exit_dual_level(); torch.func.grad(lambda a: (a.sum(), 1), has_aux=True)(x)",
    "linearize": "fw.exit_dual_level(); torch.func.linearize(torch.sin, x)[1](v)",
}


def run(module: Any, program: str) -> Any:
    """Execute a program at a new dual level and return its `out`; levels that it leaves open are closed."""
    import textwrap

    fw = module.autograd.forward_ad
    names = {
        "torch": module,
        "fw": fw,
        **{k: tensor(module, data(3, 4, seed=n)) for n, k in enumerate("xyst")},
        "v": tensor(module, data(4, seed=9)),
        "out": None,
    }
    fw.enter_dual_level()
    try:
        exec(textwrap.dedent(program), names)
        return names["out"]
    finally:
        while fw._current_level >= 0:
            fw.exit_dual_level()


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    found, expected = (Ran(m, lambda m: run(m, PROGRAMS[name])) for m in (ct, th))
    assert expected.error is None, expected.error
    assert found.error is None, f"{type(found.error).__name__}: {found.error}"
    assert_same_value(found.value, expected.value, tol=3e-4, where=name)


@pytest.mark.parametrize("name", ERRORS)
def test_error(name: str) -> None:
    found, expected = (Ran(m, lambda m: run(m, ERRORS[name])) for m in (ct, th))
    assert expected.error is not None
    assert_same_error(found, expected)


def test_modules_with_backward_hooks() -> None:
    def run(module: Any) -> Any:
        layer = module.nn.Linear(2, 2)
        with module.no_grad():
            layer.weight.fill_(0.5), layer.bias.fill_(0.1)
        layer.register_full_backward_pre_hook(lambda mod, go: None)
        layer.register_full_backward_hook(lambda mod, gi, go: None)
        x = module.arange(4.0).reshape(2, 2)
        out, tangent = module.func.jvp(layer, (x,), (x + 1,))
        return out.detach(), tangent.detach()

    found, expected = Ran(ct, run), Ran(th, run)
    assert_same_outcome(found, expected)
