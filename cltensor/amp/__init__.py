"""`cltensor.amp`: automatic mixed precision, by `autocast` and `GradScaler`."""

from . import grad_scaler
from .autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from .grad_scaler import SCALING, GradScaler
from .state import PUBLIC

SWITCHES = {fn.__name__: fn for fn in (*PUBLIC, *SCALING)}  # what torch offers at its top level

__all__ = [
    "GradScaler",
    "autocast",
    "custom_bwd",
    "custom_fwd",
    "grad_scaler",
    "is_autocast_available",
]
