"""Batch normalisation, and what layers with running statistics share.

Owns the statistics as buffers and how old checkpoints without a count are read; instancenorm.py builds on `_NormBase`.
"""

from __future__ import annotations

from typing import Any

from ... import creation, dtypes
from ...tensor import Tensor
from .. import functional as F
from .. import init
from ..parameter import UninitializedBuffer, UninitializedParameter
from .layer import new_parameter, own_init
from .lazy import LazyModuleMixin
from .module import Module

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "SyncBatchNorm",
]


class _NormBase(Module):
    """Parameters per channel, and running statistics if they are tracked."""

    _version = 2
    _dims: tuple[int, ...] = ()  # the numbers of dims that an input may have

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1,
        affine: bool = True, track_running_stats: bool = True, device: Any = None,
        dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        shape = (num_features,)
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, new_parameter(shape, device, dtype) if wanted else None)
        for name in ("running_mean", "running_var", "num_batches_tracked"):
            self.register_buffer(name, None)
        if track_running_stats:
            self.running_mean = creation.zeros(shape, device=device, dtype=dtype)
            self.running_var = creation.ones(shape, device=device, dtype=dtype)
            self.num_batches_tracked = _count(device)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Reset the running statistics."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Reset the running statistics; set weight to ones and bias to zeros."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        if len(input.shape) not in self._dims:
            ranks = " or ".join(f"{n}D" for n in self._dims)
            raise ValueError(f"expected {ranks} input (got {input.dim()}D input)")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, *args: Any
    ) -> None:
        version = local_metadata.get("version", None)
        if (version is None or version < 2) and self.track_running_stats:
            kept = self.num_batches_tracked
            counted = kept is not None and not kept.is_meta
            state_dict.setdefault(prefix + "num_batches_tracked", kept if counted else _count(None))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)


def _count(device: Any) -> Tensor:
    return creation.tensor(0, dtype=dtypes.int64, device=device)


class _BatchNorm(_NormBase):
    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        training = self.training
        factor = 0.0 if self.momentum is None else self.momentum
        mean: Any = self.running_mean
        var: Any = self.running_var
        if training and self.track_running_stats:
            count = self.num_batches_tracked
            if count is not None:
                count.add_(1)
                if self.momentum is None:
                    factor = 1.0 / float(count)
        elif training:
            mean = var = None
        of_batch = training or (mean is None and var is None)
        return self._normalised(input, mean, var, of_batch, factor)

    def _normalised(
        self, input: Tensor, mean: Any, var: Any, of_batch: bool, factor: float
    ) -> Tensor:
        return F.batch_norm(input, mean, var, self.weight, self.bias, of_batch, factor, self.eps)


class _LazyNormBase(LazyModuleMixin):
    """A norm that takes its number of channels from its first input."""

    def __init__(
        self: Any, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, device: Any = None, dtype: Any = None, *,
        bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=False)
        self.affine, self.track_running_stats = affine, track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = _count(device)

    def reset_parameters(self: Any) -> None:
        """Initialise the parameters if they have a shape."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self: Any, input: Tensor) -> None:
        """Take the number of channels from dim 1."""
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        for value in (self.weight, self.bias, self.running_mean, self.running_var):
            if value is not None:
                value.materialize((self.num_features,))
        self.reset_parameters()


class BatchNorm1d(_BatchNorm):
    """Normalise each channel of (N, C) or (N, C, L) over the batch (Ioffe & Szegedy, arXiv 1502.03167)."""

    _dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Normalise each channel of (N, C, H, W) over the batch."""

    _dims = (4,)


class BatchNorm3d(_BatchNorm):
    """Normalise each channel of (N, C, D, H, W) over the batch."""

    _dims = (5,)


class LazyBatchNorm1d(_LazyNormBase, BatchNorm1d):
    """`BatchNorm1d` that takes num_features from its first input."""

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNormBase, BatchNorm2d):
    """`BatchNorm2d` that takes num_features from its first input."""

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNormBase, BatchNorm3d):
    """`BatchNorm3d` that takes num_features from its first input."""

    cls_to_become = BatchNorm3d


class SyncBatchNorm(_BatchNorm):
    """`BatchNorm` over the batches of all processes of a group in training, whatever the input's rank.

    Without a group, over its own batch. Unlike torch's it also takes tensors on the cpu device.
    """

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1,
        affine: bool = True, track_running_stats: bool = True, process_group: Any = None,
        device: Any = None, dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")
        if input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    def _normalised(
        self, input: Tensor, mean: Any, var: Any, of_batch: bool, factor: float
    ) -> Tensor:
        if of_batch and self.training:
            from ... import distributed
            from .sync_batchnorm import sync_batch_norm

            if distributed.is_initialized():
                group = self.process_group or distributed.group.WORLD
                if distributed.get_world_size(group) > 1:
                    return sync_batch_norm(
                        input, self.weight, self.bias, mean, var, self.eps, factor, group
                    )
        return super()._normalised(input, mean, var, of_batch, factor)

    @classmethod
    def convert_sync_batchnorm(cls, module: Any, process_group: Any = None) -> Any:
        """Return a module with all its batch norms replaced, on the same parameters and buffers."""
        made = module
        if isinstance(module, _BatchNorm):
            made = SyncBatchNorm(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            made._parameters.update(module._parameters)
            made._buffers.update(module._buffers)
            made.training = module.training
        for name, child in module.named_children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made


own_init(_BatchNorm)
