"""Eigenvalues and singular values, with vectors, of tridiagonal and bidiagonal matrices: by plane rotations or, for
large matrices, by divide and conquer.

Here `beside` stands for the off-diagonals. Nothing here records gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import layouts
from ...codegen.factor import conquer, rotations
from ...codegen.operand import Operand
from ...runtime import get_backend
from .. import core
from ..composite import at_once
from ..core import Tensor
from ..replay import Replayed
from ..row import FUNCTIONS
from .matrices import LinAlgError


def _flat(x: Tensor) -> Operand:
    """View diagonals (…, n) as [count, n]."""
    n = x.shape[-1]
    return core.kernel_operand(x)._replace(shape=(x.numel() // n, n), strides=(n, 1))


@Replayed.of_memory
def _rotated(xs: Sequence[Tensor], kind: str, vectors: bool, lower: bool) -> list[Tensor | None]:
    """Diagonalise matrices, given as diagonals and off-diagonals (…, n), in place, until all are done or the room for
    rotations is full.

    `lower`: bidiagonal matrices are lower triangles. Returns the three lists of `rotations.Lists`, and the products of
    the rotations laid out as `rotations.begin` does.
    """
    d, e = map(_flat, xs)
    backend, dev = get_backend(xs[0].device), xs[0].device
    with backend.lock:
        lists, products = rotations.begin(backend, kind, d, vectors)
        rotations.go_on(backend, kind, d, e, lists, products, lower)
    return [None if x is None else core.result(x, dev) for x in (*lists, products)]


def diagonalized(
    kind: str,
    values: Tensor,
    beside: Tensor,
    vectors: bool,
    function: str,
    lower: bool = False,
    whole: tuple[Tensor, Tensor] | None = None,
) -> Tensor:
    """Overwrite diagonals (…, n) by the values; return the vectors laid out as by `rotations.begin`. Waits for the
    device.

    `whole`: diagonals and off-diagonals of the whole matrices, where `values` and `beside` are blocks of them. An error
    names these.
    """
    found = _rotated([values, beside], kind, vectors, lower)
    states, products = found[0], found[3]
    if states.is_meta:
        return products
    backend = get_backend(values.device)
    while True:
        codes: Any = states._host()[:, 1]
        if (codes == 2).any():
            d, e = whole or (values, beside)
            blocks = len(codes) // (d.numel() // d.shape[-1])
            raise _failed(kind, d, e, int((codes == 2).argmax()) // blocks, function)
        if not codes.any():
            return products
        states_of, *lists = (None if x is None else core.kernel_operand(x) for x in found)
        assert states_of is not None
        with backend.lock:
            rotations.go_on(
                backend,
                kind,
                _flat(values),
                _flat(beside),
                rotations.Lists(states_of, lists[0], lists[1]),
                lists[2],
            )


def unconverged(function: str, where: int | None, why: str) -> LinAlgError:
    """Return torch's error for an iteration that does not converge; where: the place in the batch, if there is one."""
    place = "" if where is None else f"(Batch element {where}): "
    return LinAlgError(
        f"{function}: {place}The algorithm failed to converge because the input matrix {why}"
    )


def repeated(kind: str, code: int) -> str:
    """Return why, in torch's words, "eigenvalues" or "singular values" of a finite matrix are not found."""
    return f"is ill-conditioned or has too many repeated {kind} (error code: {code})."


def _failed(kind: str, values: Tensor, beside: Tensor, where: int, function: str) -> LinAlgError:
    n = values.shape[-1]
    left = values.reshape(-1, n)[where].sum() + beside.reshape(-1, n)[where, : n - 1].sum()
    if kind == "singular_values" and not bool(left.isfinite()):
        why = "contained non-finite values."
    else:
        why = repeated(kind.replace("_", " "), max(n - 1, 1))
    return unconverged(function, where if values.ndim > 1 else None, why)


# ------------------------------------------------------------------------------------------- divide and conquer


def _padded(d: Tensor, e: Tensor, blocks: int, m: int) -> tuple[Tensor, Tensor]:
    """Divide diagonals and off-diagonals (…, n) into blocks (…, blocks, m).

    Padding rows at the end of the last block are decoupled, and their value is greater than all others, so that they
    sort last.
    """
    *batch, n = d.shape
    beside = e.narrow(-1, 0, n - 1)
    edge = d.new_zeros((*batch, blocks * m - n + 1))
    more = d.abs().amax(-1, keepdim=True) + 2 * beside.abs().amax(-1, keepdim=True)
    join = FUNCTIONS["cat"]
    d = join([d, (2 * more + 1).expand(*batch, blocks * m - n)], -1)
    return d.view(*batch, blocks, m), join([beside, edge], -1).view(*batch, blocks, m)


@at_once
def _apart(xs: Sequence[Tensor], blocks: int, m: int) -> list[Tensor]:
    """Tear tridiagonal matrices (…, n) into blocks: return the blocks' diagonals with the couplings subtracted, the
    blocks' off-diagonals (0 at each end), and the off-diagonals as they were, couplings included; each (…, blocks, m).
    """
    d, e = xs
    d, beside = _padded(d, e, blocks, m)
    cut = beside.narrow(-1, m - 1, 1)
    size, edge = cut.abs(), FUNCTIONS["zeros_like"](cut)
    before = FUNCTIONS["cat"]([edge.narrow(-2, 0, 1), size.narrow(-2, 0, blocks - 1)], -2)
    d = d - FUNCTIONS["cat"]([before, d.new_zeros((*d.shape[:-1], m - 2)), size], -1)
    return [d, FUNCTIONS["cat"]([beside.narrow(-1, 0, m - 1), edge], -1), beside]


@Replayed.of_memory
def _merged(xs: Sequence[Tensor]) -> list[Tensor]:
    """Run `conquer.merge` on tensors; its docstring describes the operands."""
    backend, dev = get_backend(xs[0].device), xs[0].device
    with backend.lock:
        found = conquer.merge(backend, *map(core.kernel_operand, xs))
    return [core.result(x, dev) for x in found]


def _conquered(values: Tensor, vectors: Tensor, *beside: Tensor) -> tuple[Tensor, Tensor]:
    """Merge pairs of blocks until the matrices are whole: return their values (…, n') and vectors [sides, count, n',
    n'] as rows.

    Operands: the blocks' values [blocks, m], vectors [sides, blocks, m, m] as columns, and the whole matrices'
    off-diagonals (for singular values also the diagonals) (…, blocks, m).
    """
    *batch, blocks, m = beside[0].shape
    sides = len(vectors)
    diagonals = [x.view(-1) for x in beside]
    while blocks > 1:
        values, columns = _merged([values, values.argsort(-1), vectors[0], *diagonals])
        columns = columns.view(-1, m, columns.shape[-1]).narrow(-1, 0, 2 * m)
        vectors = vectors.view(-1, m, m) @ columns
        blocks, m = blocks // 2, 2 * m
        values, vectors = values.view(-1, m), vectors.view(sides, -1, m, m)
    return values.view(*batch, m), vectors.mT.contiguous()


def eigenvectors(values: Tensor, beside: Tensor, function: str) -> tuple[Tensor, Tensor]:
    """Return the eigenvalues (…, n') of tridiagonal matrices (…, n), and the vectors [1, count, n', n'] as rows.

    n' >= n; all but the n smallest eigenvalues belong to padding.
    """
    blocks, m = conquer.divided(values.shape[-1])
    d, e, coupled = _apart([values, beside], blocks, m)
    rows = diagonalized("eigenvalues", d, e, True, function, whole=(values, beside))
    vectors = rows.narrow(-1, 0, m).mT.contiguous()
    return _conquered(d.view(-1, m), vectors.unsqueeze(0), coupled)


@at_once
def _square_blocks(xs: Sequence[Tensor], blocks: int, m: int) -> list[Tensor]:
    """Divide upper bidiagonal matrices (…, n): return diagonals and off-diagonals (…, blocks, m), and what
    `conquer.made_square` makes of these.

    The last row of each block couples it to the next one.
    """
    d, e = xs
    d, e = _padded(d, e, blocks, m)
    return [d, e, *_made_square([d, e])]


@Replayed.of_memory
def _made_square(xs: Sequence[Tensor]) -> list[Tensor]:
    *batch, m = xs[0].shape
    backend, dev = get_backend(xs[0].device), xs[0].device
    with backend.lock:
        d, e, numbers = conquer.made_square(backend, *map(_flat, xs))
    shape = (*batch, m - 1)
    made = [x._replace(shape=shape, strides=layouts.contiguous_strides(shape)) for x in (d, e)]
    return [core.result(x, dev) for x in (*made, numbers)]


@Replayed.of_memory
def _made_wide(xs: Sequence[Tensor]) -> list[Tensor]:
    backend, dev = get_backend(xs[0].device), xs[0].device
    with backend.lock:
        return [core.result(conquer.made_wide(backend, *map(core.kernel_operand, xs)), dev)]


@at_once
def _bordered(xs: Sequence[Tensor], m: int) -> list[Tensor]:
    """Take square blocks back to wide ones: return the values' magnitudes [blocks, m], padded with inf, and vectors [2,
    blocks, m, m] as columns.

    Operands: values [blocks, m - 1], their vectors as rows, and the rotations of `conquer.made_square`. The last row
    and column of the vectors are the identity's before those rotations are applied.
    """
    values, rows, numbers = xs
    pad = FUNCTIONS["constant_pad_nd"]
    rows = rows.narrow(-1, 0, m - 1).reshape(2, *values.shape, m - 1)
    corner = pad(values.new_ones((1, 1)), [m - 1, 0, m - 1, 0], 0)
    signs = FUNCTIONS["where"](values < 0, -1.0, 1.0).to(values.dtype)
    right, left = pad(rows.mT, [0, 1, 0, 1], 0) + corner
    right = right * pad(signs, [0, 1], 1).unsqueeze(-2)
    vectors = FUNCTIONS["stack"]([_made_wide([right, numbers])[0], left])
    return [pad(values.abs(), [0, 1], float("inf")), vectors]


def singular_vectors(values: Tensor, beside: Tensor, function: str) -> tuple[Tensor, Tensor]:
    """Return the singular values (…, n') of upper bidiagonal matrices (…, n), and the vectors [2, count, n', n'] as
    rows, the right ones first.

    n' > n; all but the n smallest values belong to padding.
    """
    blocks, m = conquer.divided(values.shape[-1] + 1)
    diagonal, coupled, d, e, numbers = _square_blocks([values, beside], blocks, m)
    rows = diagonalized("singular_values", d, e, True, function, True, (values, beside))
    found, vectors = _bordered([d.view(-1, m - 1), rows, numbers], m)
    return _conquered(found, vectors, coupled, diagonal)
