"""Functions refuse dtypes by torch's errors: those of matrices all but LAPACK's four, convolutions two different ones."""

from __future__ import annotations

from typing import Any

import pytest
from parity.oracle import Ran, assert_same_error, ct, first_line, lines, th

CALLS = """
L.cholesky(a)
L.cholesky_ex(a)
torch.cholesky(a)
torch.cholesky_inverse(a)
torch.cholesky_solve(a, a)
L.inv(a)
torch.inverse(a)
L.solve(a, a)
L.solve_ex(a, a)
L.det(a)
L.slogdet(a)
torch.logdet(a)
L.lu(a)
L.lu_factor(a)
L.lu_factor_ex(a)
L.lu_solve(a, pivots, a)
L.qr(a)
torch.qr(a)
torch.geqrf(a)
L.householder_product(a, v)
torch.ormqr(a, v, a)
L.svd(a)
torch.svd(a)
L.svdvals(a)
L.eigh(a)
L.eigvalsh(a)
L.eig(a)
L.eigvals(a)
L.pinv(a)
L.pinv(a, hermitian=True)
L.matrix_rank(a)
L.matrix_rank(a, hermitian=True)
L.lstsq(a, a)
L.cond(a)
L.matrix_norm(a, 2)
L.matrix_norm(a, "nuc")
torch.norm(a, "nuc")
L.ldl_factor(a)
L.ldl_solve(a, pivots, a)
torch.triangular_solve(a, a)
L.solve_triangular(a, a, upper=True)
L.tensorsolve(a, v)
"""


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int64", "bool"])
@pytest.mark.parametrize("line", lines(CALLS))
def test_refused(line: str, dtype: str) -> None:
    def program(torch: Any) -> Any:
        dt = getattr(torch, dtype)
        names = {"torch": torch, "L": torch.linalg, "pivots": torch.tensor([1, 2]).int()}
        return eval(line, names | {"a": torch.ones(2, 2, dtype=dt), "v": torch.ones(2, dtype=dt)})

    found, expected = Ran(ct, program), Ran(th, program)
    assert_same_error(found, expected)
    assert found.error is not None
    assert first_line(found.error) == first_line(expected.error)


# Where the processor does not compute with bfloat16, torch refuses in the words of another implementation.
@pytest.mark.skipif(
    not th.ops.mkldnn._is_mkldnn_bf16_supported(), reason="needs a processor with bfloat16"
)
def test_a_convolution_of_two_dtypes_is_refused() -> None:
    def program(torch: Any) -> Any:
        image = torch.ones(1, 1, 3, 3, dtype=torch.bfloat16)
        return torch.nn.functional.conv2d(image, torch.ones(1, 1, 2, 2))

    found, expected = Ran(ct, program), Ran(th, program)
    assert_same_error(found, expected)
    assert first_line(found.error) == first_line(expected.error)
