"""Rules for random functions, which obey the `randomness` of the `vmap`: an error, different numbers for each slice, or
the same.

The numbers are drawn with the level closed (`without`): these rules are called even if no argument is batched, and
would otherwise intercept their own calls.
"""

from __future__ import annotations

import math
from typing import Any

from ...ops.row import FUNCTIONS
from ...ops.shape import sizes
from ...tensor import Tensor
from ..batched import top
from ..calls import Call, rule
from ..levels import without
from ..signatures import bound

_REFUSED = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' randomness flags on "
    "vmap or perform the randomness operation out of vmap"
)
_SAME = "Vmap does not currently support same randomness with a batched tensor input. Please file an issue with functorch"
_OUT = "vmap: We do not support calling out variants of random operations inside of vmap. Please use non-out variants as a workaround"
_IN_PLACE = (
    "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same randomness. If this is "
    "necessary for your usage, please file an issue with functorch."
)


def _allowed(call: Call, kwargs: dict[str, Any]) -> bool:
    """Return whether slices get different numbers; raise torch's error if randomness is refused."""
    if kwargs.get("out") is not None:
        raise RuntimeError(_OUT)
    if call.randomness == "error":
        raise RuntimeError(_REFUSED)
    return call.randomness == "different"


@rule("rand randn", always=True)
def made(call: Call, *size: Any, **kwargs: Any) -> Any:
    """Return random numbers of a given shape, uniform or normal."""
    differ = _allowed(call, kwargs)
    with without(call.level):
        if not differ:
            return call.f(*size, **kwargs)
        if "size" in kwargs:
            size = (kwargs.pop("size"),)
        return call.hide(call.f((call.size, *sizes(call.name, size, "size")), **kwargs))


@rule("randint", always=True)
def randint(call: Call, *args: Any, **kwargs: Any) -> Any:
    """Return random integers of a given shape."""
    differ = _allowed(call, kwargs)
    with without(call.level):
        if not differ:
            return call.f(*args, **kwargs)
        if "size" in kwargs:
            kwargs["size"] = (call.size, *kwargs["size"])
            return call.hide(call.f(*args, **kwargs))
        return call.hide(call.f(*args[:-1], (call.size, *args[-1]), **kwargs))


@rule("randperm", always=True)
def randperm(call: Call, n: int, **kwargs: Any) -> Any:
    """Return a random permutation of 0 … n - 1."""
    differ = _allowed(call, kwargs)
    with without(call.level):
        if not differ:
            return call.f(n, **kwargs)
        return call.hide(FUNCTIONS["stack"]([call.f(n, **kwargs) for _ in range(call.size)]))


@rule("rand_like randn_like randint_like", always=True)
def like(call: Call, input: Any, *args: Any, **kwargs: Any) -> Any:
    """Return random numbers of another tensor's shape."""
    differ = _allowed(call, kwargs)
    with without(call.level):
        if not differ:
            one = call.front(input)[0] if call.here(input) else input
            return call.f(one, *args, **kwargs)
        return call.hide(call.f(call.full(input), *args, **kwargs))


@rule(
    "bernoulli poisson _standard_gamma _sample_dirichlet multinomial binomial normal", always=True
)
def drawn(call: Call, *args: Any, **kwargs: Any) -> Any:
    """Draw from distributions whose parameters are tensors."""
    differ = _allowed(call, kwargs)
    given = [*args, *kwargs.values()]
    if not differ and top(given) == call.level:
        raise RuntimeError(_SAME)
    tensors = [t for t in given if isinstance(t, Tensor)]
    with without(call.level):
        if not differ:
            return call.f(*args, **kwargs)
        if not tensors:
            shape = kwargs.pop("size", args[2] if len(args) > 2 else None)
            return call.hide(call.f(*args[:2], size=(call.size, *shape), **kwargs))
        ndim = max(len(t.shape) for t in tensors)
        if call.name == "multinomial" and ndim == 2:
            rows = call.full(args[0])
            out = call.f(rows.flatten(0, 1), *args[1:], **kwargs)
            return call.hide(out.unflatten(0, rows.shape[:2]))
        made = [_wide(call, a, ndim) for a in args]
        return call.hide(call.f(*made, **{k: _wide(call, v, ndim) for k, v in kwargs.items()}))


def _wide(call: Call, t: Any, ndim: int) -> Any:
    """Return a tensor expanded to all slices and padded with dims of size 1 to `ndim`; other values as they are."""
    if not isinstance(t, Tensor):
        return t
    missing = ndim - len(t.shape)
    value = call.full(t)
    return value.reshape(value.shape[0], *(1,) * missing, *value.shape[1:]) if missing else value


@rule(
    "dropout alpha_dropout feature_dropout feature_alpha_dropout dropout_ dropout1d dropout2d dropout3d native_dropout rrelu",
    always=True,
)
def dropped(call: Call, input: Any, *args: Any, **kwargs: Any) -> Any:
    """Apply dropout to elements or channels, or `rrelu`.

    With randomness "same", the mask is found by dropping from ones of a slice's shape, and applied to all slices.
    """
    given = bound(call.entry, call.args, call.kwargs)
    training = given.get("training", given.get("train", True))
    p = given.get("p", 0.5)
    inplace = given.pop("inplace", False)
    if not training or (call.name != "rrelu" and not p):
        return _quiet(call, given)
    differ = _allowed(call, kwargs)
    if not differ and call.here(input):
        if call.name == "rrelu":
            raise RuntimeError(_SAME)
        with without(call.level):
            found = call.f(FUNCTIONS["ones_like"](call.front(input)[0]), *args, **_plain(kwargs))
        out = _alpha(input, found, p) if "alpha" in call.name else input * found
    else:
        with without(call.level):
            if not differ:
                out = call.f(input, *args, **_plain(kwargs))
            elif any(k in call.name for k in ("1d", "2d", "3d", "feature")):
                value = call.full(input)
                own = {"1d": 2, "2d": 3, "3d": 4}.get(call.name[-2:], len(input.shape) - 1)
                rows = value.reshape(-1, *value.shape[value.ndim - own :])
                out = call.hide(call.f(rows, *args, **_plain(kwargs)).reshape(value.shape))
            else:
                out = call.hide(call.f(call.full(input), *args, **_plain(kwargs)))
    return input.copy_(out) if inplace or call.name == "dropout_" else out


def _alpha(input: Any, found: Any, p: float) -> Any:
    """Apply alpha dropout where `found`, the result of alpha dropout on ones, shows that an element was dropped."""
    least = -1.7580993408473766
    scale = 1 / math.sqrt((least * least * p + 1) * (1 - p)) if p < 1 else 0.0
    shift = -scale * least * p
    dropped = scale * least + shift
    return (input * scale + shift).where(found > (scale + shift + dropped) / 2, dropped)


def _plain(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments without `inplace`: the rule writes into the input itself."""
    return {k: v for k, v in kwargs.items() if k != "inplace"}


def _quiet(call: Call, given: dict[str, Any]) -> Any:
    """Execute a call that draws no random numbers, and so acts on each element alone."""
    input = given["input"]
    if not call.here(input):
        with without(call.level):
            return call.again(given)
    given["input"] = call.front(input)
    return call.hide(call.again(given))


@rule(
    "uniform_ normal_ random_ bernoulli_ exponential_ cauchy_ log_normal_ geometric_", always=True
)
def filled(call: Call, self: Any, *args: Any, **kwargs: Any) -> Any:
    """Fill a tensor with random numbers, in place."""
    differ = _allowed(call, kwargs)
    if differ and not call.here(self):
        raise RuntimeError(_IN_PLACE)
    if not differ and top([*args, *kwargs.values()]) == call.level:
        raise RuntimeError(_SAME)
    with without(call.level):
        if not call.here(self):
            return call.entry.original(self, *args, **kwargs)
        value = call.front(self)
        if differ:
            made = [call.front(a) for a in args]
            call.f(value, *made, **{k: call.front(v) for k, v in kwargs.items()})
        else:
            one = FUNCTIONS["empty_like"](value[0])
            value.copy_(call.f(one, *args, **kwargs))
    return self
