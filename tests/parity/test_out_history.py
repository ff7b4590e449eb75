"""`out=` where an operand or `out` itself requires grad: refused, recorded, or recorded without a derivative."""

from __future__ import annotations

from typing import Any

import pytest
from parity.oracle import Ran, assert_same_value, evaluate, first_line, lines
from support import data

# a float32 (3, 4), s (3, 3) and u (4,) require grad in the first round, o empty, in the second one
TABLE = """
torch.diff(a, out=o)
torch.diff(a[:0, 0], 0, out=o)
torch.quantile(a, 0.5, out=o)
torch.nanquantile(a, 0.25, 1, out=o)
torch.inner(u, u, out=o)
torch.tensordot(a, a, ([1], [1]), out=o)
torch.special.ndtr(a, out=o)
torch.norm(s, 'nuc', (0, 1), out=o)
torch.linalg.norm(a, out=o)
torch.linalg.norm(u, 1, out=o)
torch.linalg.norm(s, 'fro', out=o)
torch.linalg.matrix_norm(s, 1, out=o)
torch.linalg.cond(s, out=o)
torch.linalg.tensorinv(s, 1, out=o)
torch.linalg.tensorsolve(s, u[:3], out=o)
torch.diag(u, out=o)
torch.diag(s, out=o)
torch.conj_physical(a, out=o)
torch.floor_divide(a, 2, out=o)
torch.heaviside(a, a, out=o)
torch.softmax(a, 1, out=o)
torch.log_softmax(a, 1, out=o)
torch.slice_scatter(a, a[:1], 0, 0, 1, out=o)
torch.alias_copy(a, out=o)
torch.view_copy(a, (12,), out=o)
torch.select_copy(a, 0, 1, out=o)
torch.linalg.ldl_factor(s, out=(o, torch.zeros(3, dtype=torch.int32)))[0]
torch.linalg.eigvals(s, out=c)
torch.fft.ifft(a, out=c)
torch.split_copy(u, 2, 0, out=[torch.zeros(2), torch.zeros(2)])
torch.square(a, out=o)
torch.float_power(a, 2, out=d)
torch.outer(u, u, out=o)
torch.kron(u, u, out=o)
torch.msort(a, out=o)
torch.max(a, a, out=o)
torch.min(a, a, out=o)
torch.nanmean(a, out=o)
torch.fft.fft(a, out=c)
torch.fft.fft2(a, out=c)
torch.fft.hfft(a, out=o)
torch.fft.rfftn(a, out=c)
torch.fft.irfft(a, out=o)
torch.linalg.vecdot(u, u, out=o)
torch.linalg.vecdot(a, a, out=o)
torch.linalg.multi_dot([a, u], out=o)
torch.linalg.det(s, out=o)
torch.linalg.inv(s, out=o)
torch.linalg.solve(s, s, out=o)
torch.linalg.svdvals(s, out=o)
torch.linalg.cholesky(s @ s.t(), out=o)
torch.linalg.eigvalsh(s, out=o)
torch.nn.functional.logsigmoid(a, out=o)
torch.add(a, a, out=o)
torch.matmul(a, u, out=o)
torch.std(a, 1, out=o)
torch.cumsum(a, 1, out=o)
"""


@pytest.mark.parametrize("requiring", ["operands", "out"])
@pytest.mark.parametrize("line", lines(TABLE))
def test_history_of_a_result_written_through_out(line: str, requiring: str) -> None:
    arrays = {"a": data(3, 4), "s": data(3, 3, seed=5) + 4, "u": data(4)}
    names = [*arrays] if requiring == "operands" else ["o", "c", "d"]

    def run(module: Any) -> Any:
        given = {name: module.tensor(value) for name, value in arrays.items()}
        given["o"], given["c"] = module.zeros(0), module.zeros(0, dtype=module.complex64)
        given["d"] = module.zeros(0, dtype=module.float64)
        for name in names:
            given[name].requires_grad_()
        return given, eval(line, {"torch": module}, given)

    found, expected = evaluate("run(torch)", {}, run=run)
    if expected.error is not None:
        assert found.error is not None, f"torch raises {expected.error}"
        assert type(found.error) is type(expected.error)
        assert first_line(found.error) == first_line(expected.error)
        return
    assert found.error is None, found.error
    (given, value), (th_given, th_value) = found.value, expected.value
    if value is None:
        assert th_value is None
        value, th_value = given["o"], th_given["o"]
    assert_same_value(value, th_value)
    assert (value.grad_fn is None) is (th_value.grad_fn is None)
    if value.grad_fn is None:
        return
    assert value.grad_fn.name() == th_value.grad_fn.name()
    backs = [Ran(None, lambda _, v=v: v.abs().sum().backward()) for v in (value, th_value)]
    assert [str(b.error) for b in backs[:1]] == [str(b.error) for b in backs[1:]]
    for name in names:
        assert (given[name].grad is None) is (th_given[name].grad is None)
        if given[name].grad is not None:
            assert_same_value(given[name].grad, th_given[name].grad, 2e-4, f"gradient of {name} ")
