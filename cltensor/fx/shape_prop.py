"""`torch.fx.passes.shape_prop`: run a graph on example inputs, and store the shape and type of values in the nodes."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..memory_format import channels_last, channels_last_3d, contiguous_format
from ..tensor import Tensor
from .interpreter import Interpreter
from .node import Node, map_aggregate


class TensorMetadata(NamedTuple):
    """A tensor's metadata: all but its values."""

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    """Return a tensor's metadata; the memory format is None if `include_contiguity` is False, or if none fits."""
    forms = (contiguous_format, channels_last, channels_last_3d)
    fits = (f for f in forms if _lies(result, f)) if include_contiguity else iter(())
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, result.stride(), next(fits, None), False, {})  # fmt: skip


def _lies(t: Tensor, form: Any) -> bool:
    if (form is channels_last and t.dim() != 4) or (form is channels_last_3d and t.dim() != 5):
        return False
    return t.is_contiguous(memory_format=form)


class ShapeProp(Interpreter):
    """Runs a graph module; stores in each node's `meta` its value's "type" and, for tensors, "tensor_meta"."""

    def __init__(self, gm: Any, fake_mode: Any = None) -> None:
        super().__init__(gm)
        if fake_mode is not None:
            raise NotImplementedError("fx.passes.shape_prop: tensors always have values")

    def run_node(self, n: Node) -> Any:
        """Return the value of a node, and store its metadata and type in the node's `meta`."""
        try:
            result = super().run_node(n)
        except Exception as error:
            raise RuntimeError(f"ShapeProp error for: node={n.format_node()} with meta={n.meta}") from error  # fmt: skip
        found = False

        def note(value: Any) -> Any:
            nonlocal found
            if isinstance(value, Tensor):
                found = True
                return _extract_tensor_metadata(value)
            return value

        meta = map_aggregate(result, note)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph on example inputs, and return its results."""
        return super().run(*args)
