"""Compressed matrices with dense dims: values, gradients, copies, files and errors are torch's."""

from __future__ import annotations

import io
import warnings
from typing import Any

import pytest
from parity.oracle import ct, lines, th

VALUES = """
R
Q
R * 2
-Q
R.sin()
R + R
R * R
torch.mul(R, D)
R.to(torch.float64)
R.clone()
R[1]
R.to_sparse_coo()
R.to_sparse_csc()
Q.to_sparse_csr()
H.to_sparse_csr()
H.to_sparse_csc()
D.to_sparse_csr(dense_dim=1)
D.to_sparse_csc(dense_dim=1)
D.to_sparse(layout=torch.sparse_csr, dense_dim=1)
D.to_sparse(dense_dim=1)
D.to_sparse(layout=torch.sparse_coo, dense_dim=2)
D.sparse_mask(R)
torch.zeros_like(R)
torch.sparse_csr_tensor(P, C, V)
torch.sparse_csr_tensor(P, C, V[:, :, None], (2, 3, 2, 1))
torch.sparse_compressed_tensor(P, C, V, (3, 2, 2), layout=torch.sparse_csc)
R.sparse_dim(), R.dense_dim(), R._nnz(), R.numel(), R.shape, R.values().shape
"""

REFUSALS = """
torch.sparse_csr_tensor(P, C, V, (2, 3), check_invariants=True)
torch.sparse_csr_tensor(P, C, V, (2,), check_invariants=True)
torch.sparse_csr_tensor(P, C, V[:, 0], (2, 3, 2), check_invariants=True)
torch.sparse_csr_tensor(P, C, V[:2], (2, 3, 2), check_invariants=True)
torch.sparse_csr_tensor(P, C[None], V, (2, 3, 2), check_invariants=True)
torch.sparse_csr_tensor(P, C, V[0, 0], (2, 3), check_invariants=True)
torch.sparse_csc_tensor(P[0], C[0], V, (2, 3, 2), check_invariants=True)
R.transpose(0, 1)
R.transpose(1, 2)
R.to_sparse_csc(dense_dim=1)
H.to_sparse_csr(dense_dim=1)
D.to_sparse_csr(dense_dim=2)
D.to_sparse_csc(dense_dim=-1)
D.to_sparse(layout=torch.sparse_coo, dense_dim=4)
D.to_sparse(1).to_sparse_csr()
D.to_sparse().to_sparse_csc()
"""


def operands(torch: Any) -> dict[str, Any]:
    """Return the operands that the lines name.

    R is a 2 x 3 CSR matrix of pairs, H the same as COO, D the same as a dense tensor; Q is a CSC matrix with the same
    places and values, in another order. P, C and V are R's row pointers, column indices and values.
    """
    pointer, plain = torch.tensor([0, 1, 3]), torch.tensor([1, 0, 2])
    values = torch.arange(6.0).reshape(3, 2)
    r = torch.sparse_csr_tensor(pointer, plain, values, (2, 3, 2))
    q = torch.sparse_csc_tensor(torch.tensor([0, 1, 2, 3]), torch.tensor([1, 0, 1]), values, (2, 3, 2))  # fmt: skip
    return {
        "torch": torch, "P": pointer, "C": plain, "V": values, "R": r, "Q": q,
        "H": r.to_sparse_coo(), "D": r.to_dense(),
    }  # fmt: skip


def both(line: str) -> tuple[str, str]:
    """Return the printed value of a line, or its error, for cltensor and for torch."""

    def program(torch: Any) -> str:
        try:
            return repr(eval(line, operands(torch)))
        except Exception as error:
            return f"{type(error).__name__}: {str(error).splitlines()[0]}"

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return program(ct), program(th)


@pytest.mark.parametrize("line", lines(VALUES))
def test_values(line: str) -> None:
    ours, theirs = both(line)
    assert "Error: " not in theirs
    assert ours == theirs


@pytest.mark.parametrize("line", lines(REFUSALS))
def test_refusals(line: str) -> None:
    ours, theirs = both(line)
    assert "Error: " in theirs
    assert ours == theirs


@pytest.mark.parametrize(
    "way", ["R.to_dense()", "R.values()", "R.to_sparse_csc().values()", "(R * 3).to_dense()"]
)
def test_gradients(way: str) -> None:
    def program(torch: Any) -> Any:
        names = operands(torch)
        leaf = names["V"].clone().requires_grad_()
        names["R"] = torch.sparse_csr_tensor(names["P"], names["C"], leaf, (2, 3, 2))
        eval(way, names).pow(2).sum().backward()
        return leaf.grad.tolist()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert program(ct) == program(th)


def test_checkpoints() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in "RQ":
            for writer in (ct, th):
                file = io.BytesIO()
                writer.save(operands(writer)[name], file)
                for reader in (ct, th):
                    file.seek(0)
                    assert repr(reader.load(file)) == repr(operands(th)[name])


@pytest.mark.ours
def test_values_of_another_shape_than_the_size_says_are_refused() -> None:
    # torch accepts such values, and fails where the matrix is first used.
    with pytest.raises(RuntimeError, match=r"dense dims \[2\], and a size of \[2, 3, 4\] wants"):
        ct.sparse_csr_tensor([0, 1, 3], [1, 0, 2], ct.ones(3, 2), (2, 3, 4))
