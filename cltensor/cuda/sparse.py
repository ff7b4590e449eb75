"""`torch.cuda.sparse`: constructors and checks of sparse tensors on GPUs, by type name."""

from __future__ import annotations

from ..legacy import TENSOR_NAMES
from ..sparse.typed import TYPED, typed

_types = {f"{name}Tensor": typed(name, TENSOR_NAMES[name], "cuda") for name in TYPED}
globals().update(_types)

__all__ = [*_types]  # noqa: PLE0604 - the table decides
