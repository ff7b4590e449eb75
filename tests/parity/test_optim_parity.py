"""Optimisers over 50 steps: losses, parameters, saved state and printed form agree with torch's; and so do errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from parity.oracle import Ran, assert_same_error, first_line, lines, numbers, th
from support import ct, data

# O is optim, ps a list of parameters.
OPTIMISERS = """
O.SGD(ps, 0.01)
O.SGD(ps, 0.01, 0.9, weight_decay=0.1, nesterov=True)
O.SGD(ps, 0.01, 0.9, 0.2, maximize=True)
O.SGD([{'params': ps[:2]}, {'params': ps[2:], 'lr': 0.02, 'momentum': 0.5}], 0.01)
O.Adam(ps, 0.01)
O.Adam(ps, 0.01, (0.4, 0.9), weight_decay=0.1, amsgrad=True)
O.Adam(ps, 0.01, maximize=True, foreach=True)
O.Adam(ps, torch.tensor(0.01, dtype=torch.float64), fused=False)
O.AdamW(ps, 0.01, weight_decay=0.1)
O.AdamW(ps, 0.01, fused=True)
O.Adamax(ps, 0.01, weight_decay=0.1)
O.NAdam(ps, 0.01, weight_decay=0.1)
O.NAdam(ps, 0.01, weight_decay=0.1, decoupled_weight_decay=True)
O.RAdam(ps, 0.01, weight_decay=0.1)
O.RAdam(ps, 0.01, (0.8, 0.95), weight_decay=0.1, decoupled_weight_decay=True)
O.RMSprop(ps, 0.01)
O.RMSprop(ps, 0.01, momentum=0.9, centered=True, weight_decay=0.1)
O.Adagrad(ps, 0.1, 0.1, 0.1, 0.1)
O.Adadelta(ps, 0.5, weight_decay=0.1)
O.ASGD(ps, 0.01, 0.01, t0=20, weight_decay=0.1)
O.Rprop(ps, 0.01)
O.Adafactor(ps, 0.1, weight_decay=0.1)
"""

ERRORS = """
O.SGD(ps[0])
O.SGD([])
O.SGD([{'params': set(ps)}])
O.SGD({'params': ps})
O.SGD([{'params': ps}, ps])
O.SGD([3])
O.SGD([ps[0] * 2])
O.SGD([('a', ps[0]), ps[1]])
O.SGD([{'params': ps[:1]}, {'params': ps[:2]}])
O.SGD([{'params': [('a', ps[0])]}, {'params': ps[1:]}])
O.SGD(ps, -1)
O.SGD(ps, momentum=-1)
O.SGD(ps, weight_decay=-1)
O.SGD(ps, nesterov=True)
O.SGD(ps, fused=True, foreach=True)
O.SGD(ps, fused=True, differentiable=True)
O.SGD(ps, torch.ones(2))
O.Adam(ps, -1.0)
O.Adam(ps, eps=-1)
O.Adam(ps, betas=(1.0, 0.5))
O.Adam(ps, betas=(0.1, -0.5))
O.Adam(ps, betas=(0.1, torch.tensor(0.5)))
O.Adam(ps, weight_decay=-1)
O.Adam(ps, torch.tensor(0.1), foreach=True)
O.Adam(ps, torch.ones(2))
O.Adamax(ps, eps=-1)
O.NAdam(ps, momentum_decay=-1)
O.RAdam(ps, betas=(2, 0))
O.RMSprop(ps, momentum=-1)
O.RMSprop(ps, alpha=-1)
O.Adagrad(ps, lr_decay=-1)
O.Adagrad(ps, initial_accumulator_value=-1)
O.Adagrad(ps, eps=-1)
O.Adadelta(ps, rho=2)
O.ASGD(ps, weight_decay=-1)
O.Rprop(ps, etas=(1, 2))
O.Adafactor(ps, -1)
O.Adafactor(ps, beta2_decay=1)
O.Adafactor(ps, eps=(-1, 0))
O.Adafactor(ps, d=0.5)
O.Muon(ps)
O.Muon(ps, lr=-1)
O.Muon(ps, adjust_lr_fn='x')
O.LBFGS(ps, -1)
O.LBFGS([{'params': ps[:1]}, {'params': ps[1:]}])
O.SparseAdam(ps, 0)
O.Optimizer(ps, {}).step()
O.Adam(ps).load_state_dict(O.Adam([{'params': ps[:1]}, {'params': ps[1:]}]).state_dict())
O.Adam(ps).load_state_dict(O.Adam(ps[:1]).state_dict())
"""

SHAPES = [(4, 3), (5,), (2, 3, 2), (1,)]


def parameters(module: Any, dtype: str) -> list[Any]:
    return [module.tensor(data(*s, seed=1, dtype=dtype)).requires_grad_() for s in SHAPES]


def build(module: Any, line: str, ps: list[Any]) -> Any:
    return eval(line, {"O": module.optim, "ps": ps, "torch": module})


def loss_of(module: Any, ps: list[Any]) -> Any:
    """Return a loss whose terms differ in curvature. All optimisers are tested on it, and so share its kernels."""
    terms = []
    for i, p in enumerate(ps):
        target = module.tensor(data(*p.shape, seed=2), dtype=p.dtype)
        terms.append(((p - target) ** 2).sum() * (i + 1) + 0.1 * (p**4).sum())
    return sum(terms)


def train(module: Any, line: str, dtype: str, steps: int = 50) -> tuple[Any, list, list[float]]:
    """Train, with the optimiser's state saved and loaded half-way; return optimiser, parameters and losses."""
    ps = parameters(module, dtype)
    o = build(module, line, ps)
    losses = []
    for step in range(steps):
        o.zero_grad(set_to_none=step != 3)
        loss = loss_of(module, ps)
        loss.backward()
        o.step()
        losses.append(loss.item())
        if step == steps // 2:
            saved = o.state_dict()
            o = build(module, line, ps)
            o.load_state_dict(saved)
    return o, ps, losses


def assert_same_state(found: Any, expected: Any, tol: float) -> None:
    """Assert that two optimisers' states agree in names, dtypes, shapes and values."""
    assert found.keys() == expected.keys()
    for k, state in expected.items():
        assert list(found[k]) == list(state)
        for name, value in state.items():
            mine = found[k][name]
            assert str(mine.dtype) == str(value.dtype)
            assert tuple(mine.shape) == tuple(value.shape)
            np.testing.assert_allclose(
                numbers(mine), numbers(value), rtol=tol * 10, atol=tol, err_msg=name
            )


@pytest.mark.parametrize("line", lines(OPTIMISERS))
@pytest.mark.parametrize(("dtype", "tol"), [("float32", 1e-4), ("float64", 1e-9)])
def test_training(line: str, dtype: str, tol: float) -> None:
    o, ps, losses = train(ct, line, dtype)
    to, tps, tlosses = train(th, line, dtype)
    np.testing.assert_allclose(losses, tlosses, rtol=tol)
    for p, q in zip(ps, tps, strict=True):
        np.testing.assert_allclose(numbers(p), numbers(q), rtol=tol, atol=tol)
    assert_same_state(o.state_dict()["state"], to.state_dict()["state"], tol)
    if "torch" not in line:
        assert repr(o) == repr(to)
        assert o.state_dict()["param_groups"] == to.state_dict()["param_groups"]


@pytest.mark.parametrize("kind", ["Adam", "Rprop", "Adagrad", "NAdam"])
def test_complex_parameters_are_pairs(kind: str) -> None:
    found = []
    for module in (ct, th):
        p = module.tensor(data(6, dtype="complex64")).requires_grad_()
        o = getattr(module.optim, kind)([p], lr=0.1)
        for _ in range(4):
            o.zero_grad()
            (p * p.conj()).real.sum().backward()
            o.step()
        found.append(numbers(p))
    np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"adjust_lr_fn": "match_rms_adamw", "nesterov": False}])
def test_muon(options: dict) -> None:
    """Muon iterates in bfloat16, where a sum in another order differs in the last bits; so the tolerance is wide."""
    found = []
    for module in (ct, th):
        p = module.tensor(data(6, 4)).requires_grad_()
        o = module.optim.Muon([p], lr=0.02, **options)
        for _ in range(5):
            o.zero_grad()
            (p**2).sum().backward()
            o.step()
        found.append(numbers(p))
    np.testing.assert_allclose(*found, atol=5e-3)


@pytest.mark.parametrize(
    "options",
    [
        {"lr": 0.1, "history_size": 3, "max_iter": 8},
        {"line_search_fn": "strong_wolfe"},
        {"line_search_fn": "strong_wolfe", "history_size": 4, "max_iter": 7},
    ],
)
def test_lbfgs(options: dict) -> None:
    found = []
    for module in (ct, th):
        x = module.tensor(data(8, dtype="float64")).requires_grad_()
        o = module.optim.LBFGS([x], **options)
        losses: list[float] = []

        def closure(module=module, x=x, o=o, losses=losses) -> Any:
            o.zero_grad()
            loss = ((1 - x[:-1]) ** 2 + 20 * (x[1:] - x[:-1] ** 2) ** 2).sum()
            loss.backward()
            losses.append(loss.item())
            return loss

        for _ in range(4):
            o.step(closure)
        state = o.state_dict()["state"][0]
        found.append((losses, numbers(x), state["func_evals"], state["n_iter"]))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-6, atol=1e-9)
    assert found[0][2:] == found[1][2:]


# Adam's tolerance is wider, because torch's differentiable Adam computes its bias corrections from float32 counters.
@pytest.mark.parametrize(
    ("kind", "tol"),
    [("SGD", 1e-9), ("Adam", 5e-4), ("RMSprop", 1e-9), ("Adagrad", 1e-9), ("Adadelta", 1e-9)],
)
def test_gradients_go_through_a_differentiable_step(kind: str, tol: float) -> None:
    found = []
    for module in (ct, th):
        x = module.tensor(data(5, dtype="float64")).requires_grad_()
        rate = module.tensor(0.1, dtype=module.float64, requires_grad=kind in ("SGD", "Adam"))
        p = x.clone()
        o = getattr(module.optim, kind)([p], lr=rate, differentiable=True)
        for _ in range(2):
            p.grad = 2 * p + x
            o.step()
        (p**2).sum().backward()
        found.append((numbers(x.grad), rate.grad.item() if rate.grad is not None else 0.0))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=tol)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=tol)


def test_gradients_reach_the_product_of_momenta() -> None:
    found = []
    for module in (ct, th):
        p = module.tensor(data(5, dtype="float64")).requires_grad_().clone()
        product = module.tensor(0.5, dtype=module.float64, requires_grad=True)
        o = module.optim.NAdam([p], lr=0.1, differentiable=True)
        average = p.detach().abs()
        o.state[p] = {"step": module.tensor(3.0), "mu_product": product.clone(), "exp_avg": average.clone(), "exp_avg_sq": average.clone()}  # fmt: skip
        p.grad = p.detach() + 1
        o.step()
        (p**2).sum().backward()
        found.append(product.grad.item())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)


def test_a_checkpoint_of_torch_goes_on(tmp_path: Any) -> None:
    line, dtype = "O.Adam(ps, 0.01, amsgrad=True)", "float32"
    to, tps, _ = train(th, line, dtype, 6)
    th.save({"o": to.state_dict(), "p": [p.detach() for p in tps]}, tmp_path / "a.pt")
    saved = ct.load(tmp_path / "a.pt", map_location=ct.get_default_device())
    ps = [p.requires_grad_() for p in saved["p"]]
    o = build(ct, line, ps)
    o.load_state_dict(saved["o"])
    for module, opt, params in ((ct, o, ps), (th, to, tps)):
        opt.zero_grad()
        loss_of(module, params).backward()
        opt.step()
    for p, q in zip(ps, tps, strict=True):
        np.testing.assert_allclose(numbers(p), numbers(q), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("line", lines(ERRORS))
def test_errors(line: str) -> None:
    def program(module: Any) -> Any:
        return build(module, line, parameters(module, "float32"))

    found, expected = Ran(ct, program), Ran(th, program)
    assert_same_error(found, expected)
    assert first_line(found.error) == first_line(expected.error)


@pytest.mark.parametrize("kind", ["SGD", "Adam", "Rprop", "SparseAdam", "LBFGS"])
def test_parameters_made_in_inference_mode_are_refused(kind: str) -> None:
    def program(module: Any) -> None:
        with module.inference_mode():
            layer = module.nn.Embedding(3, 2, sparse=kind == "SparseAdam")
        optimiser = getattr(module.optim, kind)(layer.parameters())
        grad = module.ones(3, 2)
        layer.weight.grad = grad.to_sparse(1) if kind == "SparseAdam" else grad
        optimiser.step(lambda: module.tensor(1.0))

    found, expected = Ran(ct, program), Ran(th, program)
    assert expected.error is not None
    assert_same_error(found, expected)
    assert first_line(found.error) == first_line(expected.error)
