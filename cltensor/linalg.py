"""torch.linalg: factorizations, solvers, norms and products of (batches of) matrices."""

from __future__ import annotations

from .ops.linalg.matrices import LinAlgError
from .ops.linalg.table import LINALG as _LINALG
from .ops.row import FUNCTIONS as _FUNCTIONS
from .ops.row import METHODS as _METHODS
from .reexport import settle as _settle

globals().update(_LINALG)
_settle(globals(), _LINALG, _FUNCTIONS, _METHODS)

__all__ = ["LinAlgError", *sorted(_LINALG)]  # noqa: PLE0604 - the table holds names
