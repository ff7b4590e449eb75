"""`vmap` by batching: a function is called once, with tensors of which a dimension is hidden (Note [Batching] in calls.py).

levels.py: the running `vmap`s; batched.py: the tensor class; calls.py: interception and dispatch of calls; places.py:
the functions that are intercepted; signatures.py: binding of their arguments; rules/: how each kind of function treats
the hidden dimension; derivatives.py and functions.py: rules for autograd and custom Functions; mapping.py: `vmap`
itself.
"""

from .batched import Batched, base, first_slice, in_all_slices
from .levels import STACK
from .mapping import vmap

__all__ = ["STACK", "Batched", "base", "in_all_slices", "first_slice", "vmap"]
