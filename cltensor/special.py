"""`cltensor.special`: special functions under torch's names."""

from .ops.row import FUNCTIONS as _FUNCTIONS
from .ops.row import METHODS as _METHODS
from .ops.special import SPECIAL as _SPECIAL
from .reexport import settle as _settle

globals().update(_SPECIAL)
_settle(globals(), _SPECIAL, _FUNCTIONS, _METHODS)
__all__ = sorted(_SPECIAL)  # noqa: PLE0605 - the table decides
