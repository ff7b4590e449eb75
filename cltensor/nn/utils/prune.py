"""Pruning: a parameter `name` becomes the product, taken before each call, of `name_orig` and a buffer `name_mask`.

A method chooses the elements that stay (`compute_mask`). Methods applied to one parameter in turn are joined by a
`PruningContainer`, where each chooses among what the former ones left.
"""

from __future__ import annotations

import builtins
import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

from ... import creation
from ...ops.row import FUNCTIONS
from ...tensor import Tensor
from .convert_parameters import parameters_to_vector

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


class BasePruningMethod(ABC):
    """A way to choose elements, and the hook that masks the parameter before each call of its module.

    A subclass defines `compute_mask` and PRUNING_TYPE: "unstructured" (it judges the elements left), "structured" (the
    channels left of its `dim`) or "global" (everything).
    """

    PRUNING_TYPE: str
    _tensor_name: str

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return ones where elements of `t` stay and zeros elsewhere; what `default_mask` prunes stays pruned."""

    def apply_mask(self, module: Any) -> Tensor:
        """Return the parameter's unpruned value (`name_orig`) times the mask."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        mask = getattr(module, self._tensor_name + "_mask")
        orig = getattr(module, self._tensor_name + "_orig")
        return mask.to(dtype=orig.dtype) * orig

    @classmethod
    def apply(
        cls, module: Any, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any
    ) -> Any:
        """Prune a parameter of a module by a new method of this class; return the hook.

        importance_scores: tensor to judge elements by in place of the parameter; AssertionError for another shape.
        """
        method = _joined(cls, module, name, args, kwargs)
        orig = getattr(module, name)
        if importance_scores is None:
            importance_scores = orig
        elif importance_scores.shape != orig.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}, got {importance_scores.shape} vs {orig.shape}"
            )
        first = not isinstance(method, PruningContainer)
        if first:
            module.register_parameter(name + "_orig", orig)
            del module._parameters[name]
            before = creation.ones_like(orig)
        else:
            before = getattr(module, name + "_mask").detach().clone()
        try:
            mask = method.compute_mask(importance_scores, default_mask=before)
            module.register_buffer(name + "_mask", mask)
            setattr(module, name, method.apply_mask(module))
            module.register_forward_pre_hook(method)
        except Exception:
            if first:
                module.register_parameter(name, orig)
                del module._parameters[name + "_orig"]
            raise
        return method

    def prune(
        self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Any = None
    ) -> Tensor:
        """Return a tensor with zeros in place of what this method prunes."""
        if importance_scores is None:
            importance_scores = t
        elif importance_scores.shape != t.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as tensor t, got {importance_scores.shape} vs {t.shape}"
            )
        before = creation.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(importance_scores, default_mask=before)

    def remove(self, module: Any) -> None:
        """Make the pruning permanent: the masked value becomes the parameter; `name_orig` and the mask are removed."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        name = self._tensor_name
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        orig = module._parameters.pop(name + "_orig")
        orig.data = weight.data
        del module._buffers[name + "_mask"]
        setattr(module, name, orig)


def _joined(
    cls: builtins.type[BasePruningMethod], module: Any, name: str, args: Any, kwargs: Any
) -> BasePruningMethod:
    """Make a method; if the parameter is pruned already, return a container of the former methods and the new one."""
    keys = [
        key
        for key, hook in module._forward_pre_hooks.items()
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name
    ]
    if len(keys) > 1:
        raise AssertionError(
            f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}. Use a PruningContainer."
        )
    old = module._forward_pre_hooks.pop(keys[0]) if keys else None
    method = cls(*args, **kwargs)
    method._tensor_name = name
    if old is None:
        return method
    container = old if isinstance(old, PruningContainer) else PruningContainer(old)
    container.add_pruning_method(method)
    return container


class PruningContainer(BasePruningMethod):
    """Methods that pruned one parameter, one after the other; only the last one computes a new mask."""

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if len(args) == 1:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Add a method. TypeError for an object that is no pruning method, ValueError for one of another parameter."""
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to PruningContainer {self}. "
                f"Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: int) -> BasePruningMethod:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Let the last method choose among what `default_mask` leaves."""
        method = self._pruning_methods[-1]
        left = _left(method, t, default_mask)
        mask = default_mask.to(dtype=t.dtype, copy=True)
        mask[left] = method.compute_mask(t[left], default_mask=default_mask[left]).to(mask.dtype)
        return mask


def _left(method: Any, t: Tensor, mask: Tensor) -> Any:
    """Return the index of the elements that a method chooses among."""
    kind = method.PRUNING_TYPE
    everything = [slice(None)] * t.dim()
    if kind == "unstructured":
        return mask == 1
    if kind == "global":
        return tuple(everything)
    if kind != "structured":
        raise ValueError(f"Unrecognized PRUNING_TYPE {kind}")
    if not hasattr(method, "dim"):
        raise AttributeError(
            'Pruning methods of PRUNING_TYPE "structured" need to have the attribute `dim` defined.'
        )
    dim = method.dim + t.dim() if method.dim < 0 else method.dim
    if dim < 0:
        raise IndexError(f"Index is out of bounds for tensor with dimensions {t.dim()}")
    everything[dim] = mask.sum(dim=[d for d in range(t.dim()) if d != dim]) != 0
    return tuple(everything)


# These functions have torch's names, because pruning methods in other programs call them.


def _validate_pruning_amount_init(amount: Any) -> None:
    """Raise TypeError or ValueError for an amount that is neither a count nor a share."""
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    whole = isinstance(amount, numbers.Integral)
    if amount < 0 or (not whole and float(amount) > 1):
        raise ValueError(
            f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer"
        )


def _validate_pruning_amount(amount: Any, tensor_size: int) -> None:
    """Raise ValueError for an amount larger than the tensor."""
    if isinstance(amount, numbers.Integral) and amount > tensor_size:
        raise ValueError(
            f"amount={amount} should be smaller than the number of parameters to prune={tensor_size}"
        )


def _compute_nparams_toprune(amount: Any, tensor_size: int) -> int:
    """Return how many of `tensor_size` elements to prune."""
    return int(amount) if isinstance(amount, numbers.Integral) else round(amount * tensor_size)


def _validate_structured_pruning(t: Tensor) -> None:
    """Raise ValueError for tensors without channels."""
    if t.dim() <= 1:
        raise ValueError(
            f"Structured pruning can only be applied to multidimensional tensors. Found tensor of shape {t.shape} with {t.dim()} dims"
        )


def _validate_pruning_dim(t: Tensor, dim: int) -> None:
    """Raise IndexError for a dim that does not exist."""
    if dim >= t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _compute_norm(t: Tensor, n: Any, dim: int) -> Tensor:
    """Return the `n`-norm of each channel."""
    others = [d for d in range(t.dim()) if d != dim % t.dim()]
    return FUNCTIONS["norm"](t, n, others)


class _ByAmount(BasePruningMethod):
    """Prunes a number of elements or channels (an int) or a share of them (a float)."""

    def __init__(self, amount: Any) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def _count(self, size: int) -> int:
        count = _compute_nparams_toprune(self.amount, size)
        _validate_pruning_amount(count, size)
        return count


class _Unstructured(_ByAmount):
    PRUNING_TYPE = "unstructured"

    def _scores(self, t: Tensor) -> Tensor:
        """Return a number for each element; the elements with the smallest are pruned."""
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = self._count(t.nelement())
        mask = default_mask.clone().contiguous()
        if count:
            lowest = self._scores(t).reshape(-1).topk(count, largest=False).indices
            mask.view(-1)[lowest] = 0
        return mask


class _Structured(_ByAmount):
    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def _scores(self, t: Tensor) -> Tensor:
        """Return a number for each channel; the channels with the smallest are pruned."""
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        size = t.shape[self.dim]
        count = self._count(size)
        if not count:
            return default_mask
        mask = creation.zeros_like(t)
        at: list[Any] = [slice(None)] * t.dim()
        at[self.dim] = self._scores(t).topk(size - count).indices
        mask[tuple(at)] = 1
        return mask * default_mask.to(mask.dtype)


class Identity(BasePruningMethod):
    """Prunes nothing, but makes the mask and the hook."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask

    @classmethod
    def apply(cls, module: Any, name: str) -> Any:  # type: ignore[override]
        return super().apply(module, name)


class RandomUnstructured(_Unstructured):
    """Prunes elements drawn at random."""

    def _scores(self, t: Tensor) -> Tensor:
        return FUNCTIONS["rand_like"](t)

    @classmethod
    def apply(cls, module: Any, name: str, amount: Any) -> Any:  # type: ignore[override]
        return super().apply(module, name, amount=amount)


class L1Unstructured(_Unstructured):
    """Prunes the elements nearest to zero."""

    def _scores(self, t: Tensor) -> Tensor:
        return t.abs()

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Any, name: str, amount: Any, importance_scores: Any = None
    ) -> Any:
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class RandomStructured(_Structured):
    """Prunes channels drawn at random."""

    def _scores(self, t: Tensor) -> Tensor:
        return FUNCTIONS["rand"](t.shape[self.dim], device=t.device)

    @classmethod
    def apply(cls, module: Any, name: str, amount: Any, dim: int = -1) -> Any:  # type: ignore[override]
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_Structured):
    """Prunes the channels of the smallest `n`-norms."""

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _scores(self, t: Tensor) -> Tensor:
        return _compute_norm(t, self.n, self.dim)

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Any, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None
    ) -> Any:
        return super().apply(
            module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores
        )


class CustomFromMask(BasePruningMethod):
    """Prunes the elements for which a given mask is zero."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape {self.mask.shape}"
            )
        return default_mask * self.mask.to(default_mask.dtype)

    @classmethod
    def apply(cls, module: Any, name: str, mask: Tensor) -> Any:  # type: ignore[override]
        return super().apply(module, name, mask=mask)


# ------------------------------------------------------------------------------------------- functions


def identity(module: Any, name: str) -> Any:
    """Give a parameter a mask of ones; returns the module, as all these functions do."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Any, name: str, amount: Any) -> Any:
    """Prune `amount` elements (int) or that share of them (float), drawn at random."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Any, name: str, amount: Any, importance_scores: Any = None) -> Any:
    """Prune the `amount` elements, or that share, of the smallest magnitude."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Any, name: str, amount: Any, dim: int) -> Any:
    """Prune `amount` channels of `dim`, or that share, drawn at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Any, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None
) -> Any:
    """Prune the `amount` channels of `dim`, or that share, of the smallest `n`-norm."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Any, name: str, mask: Tensor) -> Any:
    """Prune the elements for which `mask` is zero."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Any, pruning_method: Any, importance_scores: Any = None, **kwargs: Any
) -> None:
    """Prune several parameters by one unstructured method that judges all their elements together.

    parameters: pairs of module and name. importance_scores: dict from such pairs to tensors to judge elements by in
    place of the parameters. TypeError for other arguments and for methods that are not unstructured.
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    pairs = list(parameters)
    found = parameters_to_vector(
        [scores.get((module, name), getattr(module, name)) for module, name in pairs]
    )
    before = parameters_to_vector(
        [
            getattr(module, name + "_mask", creation.ones_like(getattr(module, name)))
            for module, name in pairs
        ]
    )
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method {pruning_method} of type {method.PRUNING_TYPE}'
        )
    method._tensor_name = "together"
    mask, start = PruningContainer(method).compute_mask(found, before), 0
    for module, name in pairs:
        param = getattr(module, name)
        custom_from_mask(module, name, mask[start : start + param.numel()].view_as(param))
        start += param.numel()


def remove(module: Any, name: str) -> Any:
    """Make the pruning of a parameter permanent. ValueError if there is none."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(
        f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
    )


def is_pruned(module: Any) -> bool:
    """Tell whether a parameter of a module or of one inside it is pruned."""
    return any(
        isinstance(hook, BasePruningMethod)
        for _, inner in module.named_modules()
        for hook in inner._forward_pre_hooks.values()
    )
