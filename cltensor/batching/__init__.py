"""`vmap` by batching: a function is called once, with tensors of which a dimension is hidden (Note [Batching] in calls.py).

levels.py which maps are running; batched.py the tensor; calls.py how calls are met; places.py which; signatures.py their
arguments; rules/ how each kind of function takes the hidden dimension; derivatives.py and functions.py
the same for autograd; mapping.py `vmap`.
"""

from .batched import Batched, base, first_slice, in_all_slices
from .levels import STACK
from .mapping import vmap

__all__ = ["STACK", "Batched", "base", "in_all_slices", "first_slice", "vmap"]
