"""`LazyModuleMixin`: layers that learn the sizes of their parameters from their first input, and become ordinary ones.

Owns when this happens; each family says how (`initialize_parameters`).
"""

from __future__ import annotations

from typing import Any

from ...autograd import no_grad
from ..parameter import is_lazy


class LazyModuleMixin:
    """Mix into a layer, before its class: its parameters may be uninitialised until the first call."""

    cls_to_become: Any = None

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(
            self._infer_parameters, with_kwargs=True
        )

    def _save_to_state_dict(self: Any, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, value in self._own_state().items():
            destination[prefix + name] = value if keep_vars or is_lazy(value) else value.detach()

    def _lazy_load_hook(
        self: Any, state_dict: Any, prefix: str, local_metadata: Any, strict: bool,
        missing_keys: list[str], unexpected_keys: list[str], error_msgs: list[str],
    ) -> None:  # fmt: skip
        """Give uninitialised parameters the shapes of the values about to be loaded."""
        for name, value in [*self._parameters.items(), *self._buffers.items()]:
            found = state_dict.get(prefix + name)
            if found is not None and is_lazy(value) and not is_lazy(found):
                with no_grad():
                    value.materialize(found.shape)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Materialise the parameters for these arguments of forward; to be defined by every family."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )

    def has_uninitialized_params(self: Any) -> bool:
        """Tell whether a parameter or buffer waits for its shape."""
        return any(is_lazy(v) for v in [*self._parameters.values(), *self._buffers.values()])

    def _infer_parameters(self: Any, module: Any, args: Any, kwargs: Any = None) -> None:
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        for name in ("_initialize_hook", "_load_hook"):
            getattr(module, name).remove()
            delattr(module, name)
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become
