"""Instance normalisation: each channel of each sample by itself, with running statistics if they are asked for."""

from __future__ import annotations

import warnings
from typing import Any

from ...tensor import Tensor
from .. import functional as F
from .batchnorm import _LazyNormBase, _NormBase

__all__ = [
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]


class _InstanceNorm(_NormBase):
    """`_dims` are the ranks without and with a batch."""

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
        track_running_stats: bool = False, device: Any = None, dtype: Any = None, *,
        bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        alone = input.dim() == self._dims[0]
        dim = 0 if alone else 1
        if input.size(dim) != self.num_features:
            self._complain(dim, input.size(dim))
        if alone:
            return self._apply_instance_norm(input.unsqueeze(0)).squeeze(0)
        return self._apply_instance_norm(input)

    def _complain(self, dim: int, size: int) -> None:
        if self.affine:
            raise ValueError(
                f"expected input's size at dim={dim} to match num_features ({self.num_features}), but got: {size}."
            )
        warnings.warn(
            f"input's size at dim={dim} does not match num_features. You can silence this warning by not passing in num_features, which is not "
            "used because affine=False",
            stacklevel=3,
        )

    def _apply_instance_norm(self, input: Tensor) -> Tensor:
        of_input = self.training or not self.track_running_stats
        momentum = 0.0 if self.momentum is None else self.momentum
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            of_input,
            momentum,
            self.eps,
        )

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: Any, missing_keys: Any,
        unexpected_keys: Any, error_msgs: Any,
    ) -> None:  # fmt: skip
        if local_metadata.get("version", None) is None and not self.track_running_stats:
            keys = [prefix + n for n in ("running_mean", "running_var") if prefix + n in state_dict]
            if keys:
                names, kind = " and ".join(f'"{k}"' for k in keys), type(self).__name__
                error_msgs.append(
                    f"Unexpected running stats buffer(s) {names} for {kind} with track_running_stats=False. If state_dict is a checkpoint saved "
                    f"before 0.4.0, this may be expected because {kind} does not track running stats by default since 0.4.0. Please remove these "
                    "keys from state_dict. If the running stats are actually needed, instead set track_running_stats=True in "
                    f"{kind} to enable them. See the documentation of {kind} for details."
                )
            for key in keys:
                state_dict.pop(key)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class InstanceNorm1d(_InstanceNorm):
    """Normalise each channel of each sample of (N, C, L) or (C, L) (Ulyanov et al., arXiv 1607.08022)."""

    _dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Normalise each channel of each sample of (N, C, H, W) or (C, H, W)."""

    _dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Normalise each channel of each sample of (N, C, D, H, W) or (C, D, H, W)."""

    _dims = (4, 5)


class LazyInstanceNorm1d(_LazyNormBase, InstanceNorm1d):
    """`InstanceNorm1d` that takes num_features from its first input."""

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNormBase, InstanceNorm2d):
    """`InstanceNorm2d` that takes num_features from its first input."""

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNormBase, InstanceNorm3d):
    """`InstanceNorm3d` that takes num_features from its first input."""

    cls_to_become = InstanceNorm3d
