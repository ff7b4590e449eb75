"""Products of sparse and dense matrices, their gradients, coalescing, and training steps with sparse gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.case import Case, Kit, Make, Run

NODES, EDGES, WIDTH = 20_000, 1_000_000, 64
READ = 12.0 * EDGES + 8.0 * NODES * WIDTH
FLOPS = 2.0 * EDGES * WIDTH


def _matrix(kit: Kit, layout: str = "coo", grad: bool = False) -> Any:
    places = kit.randint(NODES, 2, EDGES)
    made = kit.torch.sparse_coo_tensor(places, kit.rand(EDGES), (NODES, NODES)).coalesce()
    made = made if layout == "coo" else made.to_sparse_csr()
    return made.detach().requires_grad_() if grad else made


def _times(fn: Callable[..., Any], layout: str, *shape: int) -> Make:
    def make(kit: Kit) -> Run:
        matrix, dense = _matrix(kit, layout), kit.rand(*shape)
        return kit.program(fn, matrix, dense)

    return make


def _gradients(of_entries: bool) -> Make:
    """Return the `make` of a product, forward and backward to the sparse matrix's entries or to the dense operand."""

    def make(kit: Kit) -> Run:
        matrix, dense = _matrix(kit, grad=of_entries), kit.rand(NODES, WIDTH, grad=not of_entries)

        def run() -> Any:
            out = kit.torch.sparse.mm(matrix, dense)
            (g,) = kit.torch.autograd.grad(out.sum(), [matrix if of_entries else dense])
            return g._values() if of_entries else g

        return run

    return make


def _coalesce(kit: Kit) -> Run:
    places, values = kit.randint(NODES, 2, EDGES), kit.rand(EDGES)

    def run() -> Any:
        return kit.torch.sparse_coo_tensor(places, values, (NODES, NODES)).coalesce()._values()

    return run


def _table_step(name: str, batch: int) -> Make:
    """Return the `make` of a training step of a large table of which few rows are looked up, by this optimiser."""

    def make(kit: Kit) -> Run:
        torch = kit.torch
        table = kit.rand(100_000, WIDTH).requires_grad_()
        step = getattr(torch.optim, name)([table], lr=1e-3)
        places = kit.randint(100_000, batch, 8)

        def run() -> Any:
            step.zero_grad()
            rows = torch.nn.functional.embedding(places, table, sparse=True)
            (rows * rows).sum().backward()
            step.step()
            return table.detach()

        return run

    return make


GRAPH = "20,000², 1 M entries"
# A step reads the rows looked up and writes their gradient; it reads that again, and reads and writes the rows, with
# Adam also two averages.
ROW_STEP = 4.0 * 65_536 * WIDTH
CASES = [
    Case("sparse", f"mm, {GRAPH}, 64 columns", _times(lambda t, s, d: t.sparse.mm(s, d), "coo", NODES, WIDTH), READ, FLOPS, bar=1.0, quick=True),
    Case("sparse", f"CSR @, {GRAPH}, 64 columns", _times(lambda t, s, d: s @ d, "csr", NODES, WIDTH), READ, FLOPS, bar=1.0),
    Case("sparse", f"mv, {GRAPH}", _times(lambda t, s, d: t.mv(s, d), "coo", NODES), 12.0 * EDGES, 2.0 * EDGES),
    Case("sparse", "mm, forward and backward to the dense operand", _gradients(False), 2 * READ, 2 * FLOPS, bar=1.0),
    Case("sparse", "mm, forward and backward to the entries", _gradients(True), 2 * READ, 2 * FLOPS),
    Case("sparse", f"coalesce, {GRAPH}", _coalesce, 40.0 * EDGES),
    Case("sparse", "SparseAdam step, 256 rows of 100,000 x 64", _table_step("SparseAdam", 32), check=False),
    Case("sparse", "SparseAdam step, 65,536 rows of 100,000 x 64", _table_step("SparseAdam", 8192), 9 * ROW_STEP, check=False),
    Case("sparse", "SGD step, 65,536 rows of 100,000 x 64", _table_step("SGD", 8192), 5 * ROW_STEP, check=False),
]  # fmt: skip
