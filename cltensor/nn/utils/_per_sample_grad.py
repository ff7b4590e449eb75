"""`torch.nn.utils._per_sample_grad`: a module's forward whose backward leaves each sample's gradients in `grad_sample`.

Each sample gets parameters of its own, expanded without taking memory, and `vmap` runs the module once for all samples.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...func import functional_call, vmap
from ...tensor import Tensor
from ...utils._pytree import tree_leaves, tree_map
from ..modules.module import Module
from ..parameter import Parameter

__all__ = ["call_for_per_sample_grads"]


def call_for_per_sample_grads(
    module: Module,
    *,
    batch_size: int | None = None,
    loss_reduction: str = "sum",
    batch_first: bool = True,
) -> Callable[..., Any]:
    """Return the forward of a module; backward through it gives each parameter a `grad_sample` of (N, *shape), and no `grad`.

    Tensors among the arguments have N samples in their first dim, or in their second unless `batch_first`. With "mean" as
    `loss_reduction` gradients are multiplied by N, for a loss that is a mean over samples. RuntimeError for other arguments.
    """
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(
            f"Expected loss_reduction argument to be sum or mean, got {loss_reduction}"
        )
    if not isinstance(module, Module):
        raise RuntimeError(f"Module passed must be nn.Module, got {type(module).__name__}")
    if not (batch_size is None or isinstance(batch_size, int)):
        raise RuntimeError(
            f"Batch size passed must be None or an integer, got {type(batch_size).__name__}"
        )
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"Batch size must be positive, got {batch_size}")
    for weight in module.parameters():
        if getattr(weight, "grad_sample", None) is not None:
            raise RuntimeError(
                "Current Expanded Weights accumulates the gradients, which will be incorrect for multiple "
                f"calls without clearing gradients. Please clear out the grad_sample parameter of {weight} or "
                "post an issue to pytorch/pytorch to prioritize correct behavior"
            )
    dim = 0 if batch_first else 1

    @functools.wraps(module.forward)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        count = batch_size or _samples((args, kwargs), dim)
        factor = count if loss_reduction == "mean" else 1
        params = {
            name: _of_each(weight, count, factor)
            for name, weight in module.named_parameters()
            if weight.requires_grad
        }

        def one(params: Any, args: Any, kwargs: Any) -> Any:
            args, kwargs = tree_map(lambda x: _with_batch(x, dim), (args, kwargs))
            made = functional_call(module, params, args, kwargs)
            return tree_map(lambda y: y.squeeze(dim) if isinstance(y, Tensor) else y, made)

        places = tree_map(lambda x: dim if isinstance(x, Tensor) else None, (args, kwargs))
        each = vmap(one, (0, *places), out_dims=dim, randomness="different")
        return each(params, args, kwargs)

    return wrapper


def _samples(tree: Any, dim: int) -> int:
    """Return the number of samples of the tensors in a tree; RuntimeError where they do not agree."""
    counts = [x.shape[dim] for x in tree_leaves(tree) if isinstance(x, Tensor)]
    if not counts:
        raise RuntimeError(
            "Unable to find a tensor in the passed args and kwargs. They may not be pytree-able "
            "and so ExpandedWeights cannot compute the batch size from the inputs. Please specify "
            "it explicitly"
        )
    for count in counts[1:]:
        if count != counts[0]:
            raise RuntimeError(
                "When computing batch size, found at least one input with batch size "
                f"{counts[0]} and one with batch size {count}. Please specify it "
                "explicitly using the batch size kwarg in call_for_per_sample_grads"
            )
    return counts[0]


def _of_each(weight: Parameter, count: int, factor: int) -> Tensor:
    """Return the parameter expanded to one for each sample, whose gradient becomes the parameter's `grad_sample`."""
    copies = weight.detach().expand(count, *weight.shape).requires_grad_()

    def keep(grad: Tensor) -> None:
        grad = (grad * factor if factor != 1 else grad).contiguous()
        before: Any = getattr(weight, "grad_sample", None)
        weight.grad_sample = grad if before is None else before + grad  # type: ignore[attr-defined]

    copies.register_hook(keep)
    return copies


def _with_batch(x: Any, dim: int) -> Any:
    return x.unsqueeze(dim) if isinstance(x, Tensor) else x
