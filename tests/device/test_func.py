"""`cltensor.func`: derivatives of functions, nested too, and functions mapped over a dimension."""

from __future__ import annotations

from typing import Any

import pytest

import cltensor as torch
from cltensor import func

pytestmark = pytest.mark.usefixtures("one_by_one")  # compositions share kernels of single operators


def cube(x: Any) -> Any:
    return (x**3).sum()


def test_gradients_nest_and_release_their_graphs() -> None:
    x = torch.tensor([1.0, 2.0])
    found = func.grad(cube)(x)
    assert found.tolist() == [3.0, 12.0]
    assert not found.requires_grad
    second = func.grad(lambda x: func.grad(cube)(x).sum())(x)
    assert second.tolist() == [6.0, 12.0]
    w = torch.tensor(2.0, requires_grad=True)  # a gradient reaches what the function closes over
    through = func.grad(lambda x: (w * x * x).sum())(x)
    assert torch.autograd.grad(through.sum(), w)[0].item() == 6.0


def test_structures_aux_and_argnums() -> None:
    params = {"w": torch.tensor([1.0, 3.0]), "b": torch.tensor(2.0)}

    def loss(p: Any, x: Any) -> Any:
        out = (p["w"] * x).sum() + p["b"]
        return out, out.detach() * 2

    found, (value, aux) = func.grad_and_value(loss, has_aux=True)(params, torch.tensor([2.0, 4.0]))
    assert found["w"].tolist() == [2.0, 4.0]
    assert (found["b"].item(), value.item(), aux.item()) == (1.0, 16.0, 32.0)
    assert func.grad(torch.mul, argnums=(0, 1))(torch.tensor(2.0), torch.tensor(5.0))[1].item() == 2


def test_jacobians() -> None:
    x = torch.tensor([1.0, 2.0, 3.0])
    assert torch.equal(func.jacrev(torch.square)(x), torch.diag(2 * x))
    assert torch.equal(func.jacfwd(torch.square)(x), func.jacrev(torch.square)(x))
    assert torch.equal(func.hessian(cube)(x), torch.diag(6 * x))
    out, pull = func.vjp(torch.sin, x)
    assert torch.equal(out, x.sin())
    assert torch.allclose(pull(x)[0], x * x.cos())
    assert torch.allclose(func.jvp(torch.sin, (x,), (x,))[1], x * x.cos())


def test_vmap() -> None:
    a, b = torch.randn(4, 3), torch.randn(3, 4)
    assert torch.allclose(func.vmap(torch.dot, (0, 1))(a, b), (a * b.t()).sum(1))
    assert torch.equal(torch.vmap(lambda x: x * 2, out_dims=1)(a), a.t() * 2)
    per_sample = func.vmap(func.grad(cube))(a)
    assert torch.allclose(per_sample, 3 * a * a)
    found = func.vmap(lambda d, s: d["x"] * s, ({"x": 0}, None))({"x": a}, torch.tensor(3.0))
    assert torch.equal(found, a * 3)


def test_refusals() -> None:
    x = torch.randn(3)
    with pytest.raises(RuntimeError, match="got tensor with 1 dims"):
        func.grad(torch.sin)(x)
    with pytest.raises(RuntimeError, match="argnum=1"):
        func.grad(cube, argnums=1)(x)
    with pytest.raises(ValueError, match="expected `in_dims` to be int or"):
        func.vmap(torch.sin, in_dims=None)(x)
    with pytest.raises(ValueError, match="same size"):
        func.vmap(torch.add)(x, torch.randn(4))


def test_stacked_models() -> None:
    models = [torch.nn.Linear(3, 2) for _ in range(3)]
    params, _ = func.stack_module_state(models)
    x = torch.randn(3, 5, 3)
    found = func.vmap(lambda p, x: func.functional_call(models[0], p, (x,)))(params, x)
    for i, model in enumerate(models):
        assert torch.allclose(found[i], model(x[i]))


def test_tables_of_times() -> None:
    from cltensor.utils.benchmark import Compare, Measurement

    def made(sub: str, what: str, times: list[float], threads: int = 1) -> Measurement:
        return Measurement(10, times, f"sizes: {sub}", "sizes", sub, what, "", threads)

    slow, fast = made("[64]", "mul", [6e-3, 6.2e-3]), made("[64]", "dot", [1e-3])
    compare = Compare([slow, fast, made("[8]", "mul", [2e-3], 2)])
    lines = str(compare).splitlines()
    assert " sizes " in lines[0]
    assert [c.strip() for c in lines[1].split("|")] == ["", "mul", "dot"]
    assert lines[2].startswith("1 threads: ---")
    assert [c.strip() for c in lines[3].split("|")] == ["[64]", "610.0", "100.0"]
    assert lines[4].startswith("2 threads: ---")
    assert "Times are in microseconds (us)." in lines
    assert slow.significant_figures == 1
    assert fast.significant_figures == 5
    assert [len(m.times) for m in Measurement.merge([slow, slow, fast])] == [4, 1]
    compare.trim_significant_figures()
    compare.colorize(rowwise=True)
    compare.highlight_warnings()
    row = str(compare).splitlines()[3]
    assert [c.strip() for c in row.split("|")][1:] == [
        "\x1b[31m 600  \x1b[0m",
        "\x1b[92m100.00\x1b[0m",
    ]
    with pytest.raises(ValueError, match="Expected an instance of `Measurement`"):
        compare.extend_results([1])  # type: ignore[list-item]
    noisy = Compare([made("[64]", "mul", [1e-3, 2e-3, 3e-3])])
    noisy.highlight_warnings()
    assert "(! 50%)" in str(noisy)
    assert "XX is the IQR" in str(noisy)


def test_timing() -> None:
    from cltensor.utils.benchmark import Compare, Timer

    x = torch.randn(100)
    found = Timer("x + 1", globals={"x": x}, label="add", description="here").blocked_autorange(
        min_run_time=0.02
    )
    assert 0 < found.median < 1
    assert "Median" in repr(found) or "measurement" in repr(found)
    assert "here" in str(Compare([found]))
    before = torch.stats()
    Timer("x + 1, [x * 2]", globals={"x": x}).timeit(5)
    assert torch.stats().launches - before.launches >= 10  # although nothing reads them
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    (x * 2).tolist()
    end.record()
    assert begin.elapsed_time(end) > 0


def test_transforms_go_by_the_name_of_what_they_transform() -> None:
    def own(x: Any) -> Any:
        """Say something."""
        return x.square().sum()

    for name in ("grad", "grad_and_value", "jacrev", "jacfwd", "hessian", "vmap"):
        made = getattr(torch.func, name)(own)
        assert (made.__name__, made.__doc__) == ("own", "Say something.")
        getattr(torch.func, name)(torch.nn.Linear(2, 2))  # which has no name


def test_derivatives_where_gradients_are_off_are_constants() -> None:
    def less(x: Any) -> Any:
        with torch.no_grad():
            slope, value = func.grad_and_value(lambda y: y**3)(x)
        return x**3 * slope - value

    x = torch.tensor(2.0, requires_grad=True)
    found = func.grad(less)(x)
    assert found.item() == 144  # 3 x² times the 12 that the slope is at 2
    assert torch.autograd.grad(found, x)[0].item() == 144
    value, pull = func.vjp(torch.square, x)
    with torch.no_grad():
        made = [func.grad(torch.square)(x), *pull(torch.ones(())), func.jacrev(torch.square)(x)]
    assert value.requires_grad
    assert [(t.item(), t.requires_grad) for t in made] == [(4, False)] * 3


def test_forward_mode_jacobians_of_functions_that_write_in_place() -> None:
    x = torch.arange(3.0)

    def column(x: Any) -> Any:
        made = torch.zeros(3, 2)
        made[:, 0] = x * x
        return made

    def part(x: Any) -> Any:
        made = torch.zeros(3)
        made[1:].add_(x[:2] ** 2)
        return made

    for f in (column, part, lambda x: torch.empty(3).copy_(x).sin_()):
        assert torch.equal(func.jacfwd(f)(x), func.jacrev(f)(x))
    found, twice = func.jacfwd(lambda x: (part(x), x * 2), has_aux=True)(x)
    assert torch.equal(found, func.jacrev(part)(x))
    assert torch.equal(twice, x * 2)
    assert torch.equal(func.hessian(lambda x: torch.zeros(3).add_(x**3).sum())(x), (6 * x).diag())
    with pytest.raises(RuntimeError, match="inplace arithmetic"):
        func.vmap(lambda x: torch.zeros(3).add_(x))(torch.ones(2, 3))


def test_functionalize() -> None:
    """Writes to an argument reach it; derivatives and `vmap` pass through; an unknown `remove` is refused at once."""

    def add_one(x: Any, by: dict[str, Any]) -> Any:
        x.view(-1).add_(1)
        return x * by["scale"]

    x = torch.ones(2, 2)
    for remove in ("mutations", "mutations_and_views"):
        made = func.functionalize(add_one, remove=remove)
        assert made.__name__ == "add_one"
        assert made(x, by={"scale": 2.0}).sum().item() == 8 * x[0, 0].item()
    assert x.tolist() == [[3.0, 3.0], [3.0, 3.0]]
    slope = func.grad(func.functionalize(lambda x: (x.clone().add_(1) ** 2).sum()))
    assert func.vmap(slope)(torch.tensor([[1.0], [2.0]])).tolist() == [[4.0], [6.0]]
    with pytest.raises(RuntimeError, match=r"received invalid argument for remove=views. Valid"):
        func.functionalize(cube, remove="views")


def test_running_transforms_are_told() -> None:
    """As libraries ask for it, to write in place only outside of transforms."""
    seen: list[bool] = []

    def noted(x: Any) -> Any:
        seen.append(torch._C._are_functorch_transforms_active())
        return cube(x)

    x = torch.tensor([1.0, 2.0])
    func.grad(noted)(x)
    func.jvp(noted, (x,), (x,))
    pull = func.vjp(noted, x)[1]
    func.vmap(noted)(x)
    with pytest.raises(RuntimeError, match="return a scalar Tensor"):
        func.grad(lambda x: noted(x) * x)(x)
    assert seen == [True] * 5
    noted(pull(torch.tensor(1.0))[0])
    assert not seen[5]


def test_batched_gradients_are_told_in_backward() -> None:
    batched: list[bool] = []

    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return 2 * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            batched.append(torch._C._functorch.is_legacy_batchedtensor(g))
            return 2 * g

    x = torch.ones(2, requires_grad=True)
    y = Doubled.apply(x)
    for weights, many in ((torch.eye(2), True), (torch.ones(2), False)):
        torch.autograd.grad(y, x, weights, retain_graph=True, is_grads_batched=many)
    assert batched == [True, False]
