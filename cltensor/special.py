"""`cltensor.special`: special functions under torch's names."""

from .ops.special import SPECIAL as _SPECIAL

globals().update(_SPECIAL)
__all__ = sorted(_SPECIAL)  # noqa: PLE0605 - the table decides
