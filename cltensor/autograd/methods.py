"""The autograd methods and attributes of a tensor: `requires_grad`, `grad`, `backward`, hooks.

Owns `AutogradMixin`, from which the Tensor class inherits. Of a tensor it uses only `shape`,
`dtype`, `device`, layout and methods. The private attributes of a tensor that belong to autograd:
`_requires` (a leaf that requires grad), `_node` and `_nr` (the node that made the tensor, and the
number of its output), `_grad`, `_acc` (weak reference to the leaf's AccumulateGrad), `_vc` (version
counter, shared with views), `_view` (ViewMeta or None), `_hooks`, `_post_hooks`, `_retain`.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ..attributes import Fields
from ..dtypes import C_NAMES, dtype
from . import dual, engine
from .hooks import RemovableHandle
from .mode import GRAD
from .node import Node
from .record import TensorBase
from .version import InferenceVersion
from .views import grad_node, requires, retain_on

_NON_LEAF_GRAD = "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you access the leaf Tensor instead. See github.com/pytorch/pytorch/pull/30531 for more information."
_NOT_LEAF = "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a subgraph that doesn't require differentiation use var_no_grad = var.detach()."
DETACH_VIEW = "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence detach_() cannot be called on these gradients. To fix this error, please refer to the Optimizer.zero_grad() function in torch/optim/optimizer.py as the solution."


class AutogradMixin(Fields, TensorBase):
    """The part of a tensor that belongs to autograd."""

    _vc: Any

    @property
    def requires_grad(self) -> bool:
        """True if gradients flow into this tensor: it is a leaf that asked for them, or was computed
        from one.
        """
        if self._requires or self._node is not None:
            return True
        return self._view is not None and requires(self)

    @requires_grad.deleter
    def requires_grad(self) -> None:
        raise RuntimeError("requires_grad must be a bool")

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise RuntimeError("requires_grad must be a bool")
        self._set_requires(
            value, "only Tensors of floating point and complex dtype can require gradients"
        )

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Ask for gradients of this leaf, or stop doing so; return it."""
        if not isinstance(requires_grad, bool):
            raise TypeError(
                "requires_grad_(): argument 'requires_grad' (position 1) must be bool, not "
                f"{type(requires_grad).__name__}"
            )
        self._set_requires(
            requires_grad, "only Tensors of floating point dtype can require gradients"
        )
        return self

    def _set_requires(self, value: bool, dtype_text: str) -> None:
        if grad_node(self) is not None:
            if not value:
                raise RuntimeError(_NOT_LEAF)
            return
        if value:
            if type(self._vc) is InferenceVersion and not GRAD.inference:
                raise RuntimeError(
                    "Setting requires_grad=True on inference tensor outside InferenceMode is not "
                    "allowed."
                )
            if self.dtype.category < 2:  # type: ignore[attr-defined]
                raise RuntimeError(dtype_text)
        if self._requires is not value:
            self._requires = value

    @property
    def is_leaf(self) -> bool:
        """True if no recorded op made this tensor."""
        return (self._node if self._view is None else grad_node(self)) is None

    @property
    def grad_fn(self) -> Node | None:
        """The node of the op that made this tensor, None for a leaf."""
        return self._node if self._view is None else grad_node(self)

    @property
    def output_nr(self) -> int:
        """Which output of `grad_fn` this tensor is."""
        if self._view is not None:
            grad_node(self)
        return self._nr

    @property
    def grad(self) -> Any:
        """The gradient accumulated so far, None before the first backward."""
        g = self._grad
        if g is None and not self._retain and not self.is_leaf:
            warnings.warn(_NON_LEAF_GRAD, stacklevel=2)
        return g

    @grad.setter
    def grad(self, value: Any) -> None:
        if value is not None:
            self._check_grad(value)
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    @property
    def grad_dtype(self) -> Any:
        """The dtype to which this leaf's gradients are cast; None allows any dtype.

        RuntimeError if the tensor is no leaf.
        """
        if not self.is_leaf:
            raise RuntimeError("grad_dtype can only be accessed on leaf tensors.")
        return self.dtype if self._grad_dtype is ... else self._grad_dtype  # type: ignore[attr-defined]

    @grad_dtype.setter
    def grad_dtype(self, value: Any) -> None:
        if value is not None and not isinstance(value, dtype):
            raise RuntimeError(
                f"grad_dtype must be a torch.dtype or None, but got {type(value).__name__}"
            )
        if not self.is_leaf:
            raise RuntimeError("grad_dtype can only be set on leaf tensors.")
        have = None if self._grad is None else self._grad.dtype
        if None not in (have, value) and have is not value:
            raise RuntimeError(
                f"Cannot set grad_dtype to '{value.scalar_name}' because there is already a gradient with dtype "
                f"'{C_NAMES[have.name]}'. Please clear the gradient (.grad = None) before changing "
                "grad_dtype, or ensure the new grad_dtype matches the existing gradient's dtype."
            )
        self._grad_dtype = value
        sink = self._acc and self._acc()
        if sink is not None:
            sink.look_again()

    def _check_grad(self, g: Any) -> None:
        if not isinstance(g, TensorBase):
            raise TypeError(
                "assigned grad expected to be a Tensor or None but got grad of type "
                f"{type(g).__name__}"
            )
        if g is self:
            raise RuntimeError("can't assign Variable as its own grad")
        have: Any = g
        mine: Any = self
        wanted = mine.dtype if mine._grad_dtype is ... else mine._grad_dtype
        if have.dtype is not wanted and wanted is not None:
            raise RuntimeError(
                f"attempting to assign a gradient with dtype '{C_NAMES[have.dtype.name]}' to a tensor with grad_dtype '{wanted.scalar_name}'. The gradient must match the tensor's grad_dtype (defaults to the tensor's dtype). You can set the tensor's grad_dtype attribute with a specific dtype, or None to allow any dtype. Set grad_dtype with caution. Diverging the dtypes of a tensor and its gradient may break downstream systems that assume they match."
            )
        if have.device.type != mine.device.type:
            raise RuntimeError(
                f"attempting to assign a gradient with device type '{have.device.type}' to a tensor with device type '{mine.device.type}'. Please ensure that the gradient and the tensor are on the same device"
            )
        if have.device != mine.device:
            raise RuntimeError(
                f"attempting to assign a gradient located on device with index '{have.device.index}' to a tensor located on device with index '{mine.device.index}'. Please ensure that the gradient and the tensor are on the same device"
            )
        if have.shape != mine.shape:
            raise RuntimeError(
                f"attempting to assign a gradient of size '{list(have.shape)}' to a tensor of size "
                f"'{list(mine.shape)}'. Please ensure that the gradient and the tensor are the "
                "same size"
            )

    def backward(
        self,
        gradient: Any = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
    ) -> None:
        """Add the gradient of this tensor, weighted by `gradient`, to the `.grad` of every leaf it
        was made from.

        A one-element tensor needs no `gradient`. RuntimeError if the graph was freed by an earlier
        pass.
        """
        engine.backward(self, gradient, retain_graph, create_graph, None, inputs)

    def retain_grad(self) -> None:
        """Make backward also fill the `.grad` of this tensor, if it is not a leaf."""
        if not requires(self):
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        node = grad_node(self)
        if node is None or self._retain:
            return
        self._retain = True
        retain_on(self, node, self._nr)

    @property
    def retains_grad(self) -> bool:
        """True for a non-leaf on which `retain_grad()` was called."""
        return self._retain and not self.is_leaf

    def register_hook(self, hook: Callable[[Any], Any]) -> RemovableHandle:
        """Call `hook(grad)` when this tensor's gradient is known; if it returns a tensor, that replaces
        the gradient.
        """
        if not requires(self):
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        node = grad_node(self)
        hooks = self._hooks
        if hooks is None:
            hooks = OrderedDict()
            if node is not None:
                extra = node._extras()
                if extra.tensor_hooks is None:
                    extra.tensor_hooks = {}
                hooks = extra.tensor_hooks.setdefault(self._nr, hooks)
            self._hooks = hooks
        handle = RemovableHandle(hooks)
        hooks[handle.id] = hook
        return handle

    def register_post_accumulate_grad_hook(self, hook: Callable[[Any], None]) -> RemovableHandle:
        """Call `hook(tensor)` after backward has added to this leaf's `.grad`."""
        if not requires(self):
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if grad_node(self) is not None:
            raise RuntimeError(
                "post accumulate grad hooks cannot be registered on non-leaf tensors"
            )
        if self._post_hooks is None:
            self._post_hooks = OrderedDict()
        handle = RemovableHandle(self._post_hooks)
        self._post_hooks[handle.id] = hook
        return handle

    @property
    def _backward_hooks(self) -> Any:
        return self._hooks

    @_backward_hooks.deleter
    def _backward_hooks(self) -> None:
        raise RuntimeError("Deletion of _backwards_hooks not allowed!")

    @_backward_hooks.setter
    def _backward_hooks(self, value: Any) -> None:
        self._hooks = value

    @property
    def _post_accumulate_grad_hooks(self) -> Any:
        return self._post_hooks

    @_post_accumulate_grad_hooks.setter
    def _post_accumulate_grad_hooks(self, value: Any) -> None:
        self._post_hooks = value

    def detach_(self) -> Any:
        """Detach this tensor from its graph, making it a leaf that requires no grad. RuntimeError for a
        view.
        """
        if self._view is not None:
            raise RuntimeError(DETACH_VIEW)
        self._node = None
        self._nr = 0
        self._requires = False
        self._hooks = None
        self._retain = False
        dual.drop(self)
        return self

    @property
    def _version(self) -> int:
        vc = self._vc
        if type(vc) is InferenceVersion:
            raise RuntimeError("Inference tensors do not track version counter.")
        return vc.value

    @property
    def _cdata(self) -> int:
        return id(self)

    def is_inference(self) -> bool:
        """True if the tensor was made in inference mode."""
        return type(self._vc) is InferenceVersion

    @property
    def _base(self) -> Any:
        view = self._view
        return None if view is None else view.base

    def _is_view(self) -> bool:
        return self._view is not None
