"""Ready-made parametrisations: orthogonal matrices, weight and spectral normalisation."""

from __future__ import annotations

from typing import Any

from ... import creation, dtypes
from ...autograd import no_grad
from ...ops.inner import _weight_norm, norm_except_dim
from ...ops.linalg.orthogonal import householder_product
from ...ops.linalg.solve import solve
from ...ops.row import FUNCTIONS
from ...tensor import Tensor
from .. import functional as F
from ..modules.module import Module
from . import parametrize
from .spectral_norm import default_dim, rows

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

_MAPS = ("matrix_exp", "cayley", "householder")


def _weight_of(module: Any, name: str) -> Tensor:
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


def _identity(n: int, like: Tensor) -> Tensor:
    return creation.eye(n, dtype=like.dtype, device=like.device)


def _is_orthogonal(q: Tensor) -> bool:
    n, k = q.shape[-2:]
    limit = 10.0 * n * dtypes.finfo(q.dtype).eps
    return FUNCTIONS["allclose"](q.mH @ q, _identity(k, q).expand(*q.shape[:-2], k, k), atol=limit)


def _make_orthogonal(a: Tensor) -> Tensor:
    """Return the Q of a's QR decomposition whose R has a positive diagonal."""
    x, tau = FUNCTIONS["geqrf"](a)
    q = householder_product(x, tau)
    return q * x.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _Orthogonal(Module):
    """Maps matrices to orthogonal ones, or to their products with `base` (Lezcano-Casado, arXiv 1909.09501)."""

    base: Tensor | None

    def __init__(
        self, weight: Tensor, orthogonal_map: str, *, use_trivialization: bool = True
    ) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape, self.orthogonal_map = weight.shape, orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x: Tensor) -> Tensor:
        wide = x.size(-2) < x.size(-1)
        x = x.mT if wide else x
        q = self._householder(x) if self.orthogonal_map == "householder" else self._exponential(x)
        if hasattr(self, "base"):
            q = self.base @ q
        return q.mT if wide else q

    def _exponential(self, x: Tensor) -> Tensor:
        n, k = x.shape[-2:]
        x = x.tril()
        if n != k:
            zeros = x.new_zeros(n, n - k).expand(*x.shape[:-2], -1, -1)
            x = FUNCTIONS["cat"]([x, zeros], -1)
        a = x - x.mH
        if self.orthogonal_map == "matrix_exp":
            q = FUNCTIONS["matrix_exp"](a)
        else:
            eye = _identity(n, a)
            q = solve(eye - a * 0.5, eye + a * 0.5)
        return q[..., :k]

    @staticmethod
    def _householder(x: Tensor) -> Tensor:
        a = x.tril(-1)
        tau = 2.0 / (1.0 + (a * a).sum(-2))
        q = householder_product(a, tau)
        # The diagonal holds only signs, 1 or -1, and is not learnt.
        return q * x.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)

    @no_grad()
    def right_inverse(self, q: Tensor) -> Tensor:
        """Return a matrix that is mapped to q, or to an orthogonal one near it."""
        if q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {q.shape}."
            )
        given = q
        wide = q.size(-2) < q.size(-1)
        q = q.mT if wide else q
        if not hasattr(self, "base"):
            if self.orthogonal_map != "householder":
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley parametrizations when use_trivialization=False."
                )
            a, tau = FUNCTIONS["geqrf"](q)
            diagonal = a.diagonal(dim1=-2, dim2=-1)
            diagonal.copy_(diagonal.sign() * FUNCTIONS["where"](tau == 0.0, -1.0, 1.0))
            return a.mT if wide else a
        n, k = q.shape[-2:]
        if n != k:
            rest = q.new_empty((*q.shape[:-2], n, n - k)).normal_()
            q = _make_orthogonal(FUNCTIONS["cat"]([q, rest], -1))
        else:
            q = q.clone() if _is_orthogonal(q) else _make_orthogonal(q)
        self.base = q
        start = FUNCTIONS["zeros_like"](given)
        start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return start


def orthogonal(
    module: Any, name: str = "weight", orthogonal_map: str | None = None, *,
    use_trivialization: bool = True,
) -> Any:  # fmt: skip
    """Keep a matrix (or batch of them) orthogonal, or its columns or rows orthonormal; returns the module."""
    weight = _weight_of(module, name)
    if weight.ndim < 2:
        raise ValueError(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions."
        )
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in _MAPS:
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    made = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, made, unsafe=True)


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return _weight_norm(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Return magnitude and direction."""
        return norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Learn magnitude and direction of a parameter (Salimans & Kingma, arXiv 1602.07868); returns the module."""
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(state_dict: Any, prefix: str, *args: Any) -> None:
        """Rename entries of a state dict that `nn.utils.weight_norm` saved."""
        old = [f"{prefix}{name}_{s}" for s in "gv"]
        if all(key in state_dict for key in old):
            for i, key in enumerate(old):
                new = f"{prefix}parametrizations.{name}.original{i}"
                state_dict[new] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(rename)
    return module


class _SpectralNorm(Module):
    _u: Tensor
    _v: Tensor

    def __init__(
        self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__()
        n = weight.ndim
        if not -n <= dim < n:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{n}, {n - 1}] but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim, self.eps = dim % n, eps
        if n == 1:
            return
        self.n_power_iterations = n_power_iterations
        matrix = rows(weight.detach(), self.dim)
        for name, size in (("_u", matrix.size(0)), ("_v", matrix.size(1))):
            drawn = matrix.new_empty(size).normal_(0, 1)
            self.register_buffer(name, F.normalize(drawn, dim=0, eps=eps))
        self._power_method(matrix, 15)

    @no_grad()
    def _power_method(self, matrix: Tensor, n_power_iterations: int) -> None:
        for _ in range(n_power_iterations):
            self._u.copy_(F.normalize(matrix.mv(self._v), dim=0, eps=self.eps))
            self._v.copy_(F.normalize(matrix.mH.mv(self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = rows(weight, self.dim)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # Copies, so that a second forward does not change what the first one's backward has saved.
        u, v = self._u.clone(), self._v.clone()
        return weight / FUNCTIONS["vdot"](u, matrix.mv(v))

    def right_inverse(self, value: Tensor) -> Tensor:
        """Return the value itself: normalising a value that is already normalised does not change it."""
        return value


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
    dim: int | None = None,
) -> Any:  # fmt: skip
    """Divide a parameter by its largest singular value (Miyato et al., arXiv 1802.05957); returns the module."""
    weight = _weight_of(module, name)
    dim = default_dim(module) if dim is None else dim
    made = _SpectralNorm(weight, n_power_iterations, dim, eps)
    return parametrize.register_parametrization(module, name, made)
