"""Spectral normalisation, w / σ(w), by a hook that computes the weight before each call (the older form).

Owns the hook and its state dict's version; parametrizations.py has the newer form.
"""

from __future__ import annotations

from typing import Any

from ...autograd import no_grad
from ...ops.row import FUNCTIONS
from ...tensor import Tensor
from .. import functional as F
from ..modules.conv import _ConvTransposeNd
from ..parameter import Parameter, is_lazy

__all__ = ["SpectralNorm", "remove_spectral_norm", "rows", "spectral_norm"]


def rows(weight: Tensor, dim: int) -> Tensor:
    """Return a weight as a matrix with `dim` first."""
    if dim != 0:
        weight = weight.permute(dim, *[d for d in range(weight.ndim) if d != dim])
    return weight.reshape(weight.size(0), -1)


def default_dim(module: Any) -> int:
    """Return the dimension of the output channels of a layer's weight."""
    return 1 if isinstance(module, _ConvTransposeNd) else 0


class SpectralNorm:
    """The hook: computes the weight named `name` from `name_orig` and the singular vectors `name_u`, `name_v`."""

    _version = 1

    def __init__(
        self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.name, self.dim, self.eps = name, dim, eps
        self.n_power_iterations = n_power_iterations

    def compute_weight(self, module: Any, do_power_iteration: bool) -> Tensor:
        """Return the current weight; with `do_power_iteration`, first update u and v by power iterations."""
        weight = getattr(module, f"{self.name}_orig")
        u, v = getattr(module, f"{self.name}_u"), getattr(module, f"{self.name}_v")
        matrix = rows(weight, self.dim)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(matrix.t().mv(u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(matrix.mv(v), dim=0, eps=self.eps))
                u, v = u.clone(), v.clone()
        return weight / u.dot(matrix.mv(v))

    def remove(self, module: Any) -> None:
        """Make the current weight a parameter again."""
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        for suffix in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, module.training))

    @staticmethod
    def apply(
        module: Any, name: str, n_power_iterations: int, dim: int, eps: float
    ) -> SpectralNorm:
        """Replace a parameter by a normalised one; RuntimeError if that was done before."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(
                    f"Cannot register two spectral_norm hooks on the same parameter {name}"
                )
        fn = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        if is_lazy(weight):
            raise ValueError(
                "The module passed to `SpectralNorm` can't have uninitialized parameters. Make sure to run the dummy forward before applying "
                "spectral normalization"
            )
        with no_grad():
            height, width = rows(weight, dim).shape
            u, v = (
                F.normalize(weight.new_empty(n).normal_(0, 1), dim=0, eps=eps)
                for n in (height, width)
            )
        delattr(module, name)
        module.register_parameter(f"{name}_orig", weight)
        setattr(module, name, weight.data)
        module.register_buffer(f"{name}_u", u)
        module.register_buffer(f"{name}_v", v)
        module.register_forward_pre_hook(fn)
        module._register_state_dict_hook(_StateHook(fn))
        module._register_load_state_dict_pre_hook(_LoadHook(fn))
        return fn


class _StateHook:
    """Writes the version into the state dict's metadata."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(self, module: Any, state_dict: Any, prefix: str, local_metadata: Any) -> None:
        versions = local_metadata.setdefault("spectral_norm", {})
        key = f"{self.fn.name}.version"
        if key in versions:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        versions[key] = self.fn._version


class _LoadHook:
    """Completes state dicts that were saved before v was part of them."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool,
        missing_keys: list[str], unexpected_keys: list[str], error_msgs: list[str],
    ) -> None:  # fmt: skip
        fn = self.fn
        version = local_metadata.get("spectral_norm", {}).get(f"{fn.name}.version", None)
        if version is not None and version >= 1:
            return
        key = prefix + fn.name
        new = all(key + s in state_dict for s in ("_orig", "_u", "_v"))
        if version is None and new and key not in state_dict:
            return
        missing = [key + s for s in ("_orig", "", "_u") if key + s not in state_dict]
        if missing:
            missing_keys.extend(missing if strict else ())
            return
        with no_grad():
            original, u = state_dict[f"{key}_orig"], state_dict[f"{key}_u"]
            sigma = (original / state_dict.pop(key)).mean()
            state_dict[f"{key}_v"] = _solve_v(rows(original, fn.dim), u, sigma)


def _solve_v(matrix: Tensor, u: Tensor, sigma: Tensor) -> Tensor:
    """Return the v for which uᵀ W v is sigma."""
    t = matrix.t()
    v = (FUNCTIONS["pinverse"](t.mm(matrix)).mm(t)).mv(u)
    return v * (sigma / u.dot(matrix.mv(v)))


def spectral_norm(
    module: Any,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Any:
    """Divide a parameter by its largest singular value (Miyato et al., arXiv 1802.05957); returns the module."""
    dim = default_dim(module) if dim is None else dim
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """Undo `spectral_norm`; ValueError if there is none."""
    for key, hook in list(module._forward_pre_hooks.items()):
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            break
    else:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    for hooks in (module._state_dict_hooks, module._load_state_dict_pre_hooks):
        for key, hook in list(hooks.items()):
            inner = getattr(hook, "hook", hook)
            if isinstance(inner, (_StateHook, _LoadHook)) and inner.fn.name == name:
                del hooks[key]
    return module
