"""How a step runs: chains of formulas over all parameters at once, and counters that the host reads without waiting for
the device.

Knows the options of a group that several optimisers share (lr, maximize, weight_decay, ...), but no algorithm.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from .. import creation, dtypes
from ..attributes import fields
from ..autograd import enable_grad
from ..memory_format import preserve_format
from ..ops import multi
from ..runtime import ACTIVE, Buffer, device, get_backend
from ..tensor import Tensor

_ZERO = multi.chain("zero", "x = 0", "x", "")


def clear(tensors: Sequence[Tensor]) -> None:
    """Fill tensors with zeros, in few launches."""
    multi.apply(_ZERO, [tensors], {})


def zeros_like(params: Sequence[Tensor]) -> list[Tensor]:
    """Make a tensor of zeros like each parameter, in its memory order."""
    made = [
        creation.empty_like(p, memory_format=preserve_format, requires_grad=False) for p in params
    ]
    clear(made)
    return made


def update(
    name: str,
    lines: Sequence[str],
    writes: Mapping[str, Sequence[Tensor]],
    reads: Mapping[str, Sequence[Tensor]],
    numbers: Mapping[str, Any],
    *,
    differentiable: bool = False,
) -> None:
    """Run statements (`lines`) on lists of tensors; the keys are their names in the statements. Those in `writes` are
    updated in place.

    Numbers that are tensors are read by the kernels, not by the host.
    """
    text = "\n".join(lines)
    shared = {} if differentiable else _tensors_in(text, numbers)
    chain = multi.chain(name, text, " ".join(writes), " ".join(reads), " ".join(shared))
    lists = [*writes.values(), *reads.values()]
    multi.apply(chain, lists, numbers, list(shared.values()), differentiable=differentiable)


def _tensors_in(text: str, numbers: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return those numbers used in a text that are tensors."""
    found = {name: x for name, x in numbers.items() if isinstance(x, Tensor)}
    if not found:
        return {}
    used = set(re.findall(r"\w+", text))
    return {name: x for name, x in found.items() if name in used}


# ------------------------------------------------------------------------------------------- pieces of formulas


def gradient(group: Mapping[str, Any]) -> list[str]:
    """Return the statements that turn the gradient `g` into the direction to descend: the sign for `maximize`, and
    weight decay.

    Weight decay adds the L2 penalty to `g` or, if decoupled, shrinks `p`.
    """
    lines = ["g = -g"] if group["maximize"] else []
    if group["weight_decay"] != 0:
        decoupled = group.get("decoupled_weight_decay", False)
        lines.append("p = p * shrink" if decoupled else "g = g + p * weight_decay")
    return lines


def lerp(average: str, value: str, name: str, weight: Any) -> str:
    """Return the statement of torch's `average.lerp_(value, weight)`, in the form that is exact at the nearer end;
    `name` is the weight's.
    """
    if isinstance(weight, Tensor) or abs(weight) < 0.5:
        return f"{average} = {average} + ({value} - {average}) * {name}"
    return f"{average} = {value} - ({value} - {average}) * (1 - {name})"


# ------------------------------------------------------------------------------------------- numbers in tensors


def number(x: Any, keep: bool = False) -> Any:
    """Return a hyperparameter as a Python number; with `keep` a tensor stays a (0-dim) tensor, so that the host does
    not wait for it.
    """
    if not isinstance(x, Tensor):
        return x
    return x.reshape(()) if keep else x.item()


def exact(x: Tensor) -> Tensor:
    """Return a number on a device as float64, if that has doubles: for formulas with differences of large numbers."""
    return x.double() if get_backend(x.device).info.fp64 else x


def counter(value: float, place: Tensor | None = None, *, fused: bool = False) -> Tensor:
    """Make a 0-dim tensor that holds a number, on `place`'s device; by default on "cpu", where reading never waits."""
    double = not fused and dtypes.get_default_dtype() is dtypes.float64
    made = creation.tensor(
        float(value),
        dtype=dtypes.float64 if double else dtypes.float32,
        device=_host_device() if place is None else place.device,
    )
    if _apart(made) and float(np.float32(value)) == value:
        note(made, float(value))
    return made


def _host_device() -> Any:
    host = device("cpu")
    try:
        get_backend(host)
    except RuntimeError:  # there is no OpenCL CPU device
        return None
    return host


class Replaced:
    """`count`: how often an optimiser that had state was given other state or another group.

    Each time, recordings of steps made before become invalid.
    """

    count = 0


class _Known:
    """The number this module last wrote into a tensor, with the buffer and version it applies to.

    `cell`: the memory as a numpy array, None where the host does not share it.
    """

    __slots__ = ("buffer", "cell", "value", "version")

    def __init__(self, buffer: Buffer, version: int, value: float, cell: np.ndarray | None) -> None:
        self.buffer, self.version, self.value, self.cell = buffer, version, value, cell


def peek(t: Tensor) -> float:
    """Read a number, from what this module remembers to have written if the tensor is unchanged and numpy cannot see
    its memory.
    """
    known = fields(t).get("_known")
    if known is not None and known.buffer is t._storage.value and known.version == t._vc.value:
        if not known.buffer.exported:
            return known.value
    return float(t.item())


def poke(t: Tensor, value: float) -> float:
    """Write a number without a kernel; return it as the tensor holds it (rounded).

    Raises in a recording, whose plays would write the same number again.
    """
    if ACTIVE.recorder is not None:
        ACTIVE.recorder.refuse("counts on the host")
    kind = t.dtype.np
    if kind is None or prod(t.shape) != 1:
        t.fill_(value)
        return value
    storage, version = t._storage, t._vc
    known = fields(t).get("_known")
    cell = None
    if known is not None and known.buffer is storage.value and known.version == version.value:
        buffer, cell = known.buffer, None if storage.reads else known.cell
    if cell is None or buffer.seq > storage.backend.finished:
        buffer, cell = _write(t, value)
        value = kind.type(value).item()  # not read from memory: the write may still be queued
    else:
        cell[0] = value
        value = cell.item()
    version.value += 1
    fields(t)["_known"] = _Known(buffer, version.value, value, cell)
    return value


def _one_more(t: Tensor) -> float:
    """Count a step: `poke(t, peek(t) + 1)`, by a shortcut where the number is known and the host shares its memory."""
    known = getattr(t, "_known", None)
    if known is not None and known.cell is not None and ACTIVE.recorder is None:
        storage, version, buffer = t._storage, t._vc, known.buffer
        if (
            buffer is storage.value
            and known.version == version.value
            and not (buffer.exported or storage.reads or buffer.seq > storage.backend.finished)
        ):
            known.cell[0] = known.value + 1
            known.value = value = known.cell.item()
            version.value = known.version = known.version + 1
            return value
    return poke(t, peek(t) + 1)


def _write(t: Tensor, value: float) -> tuple[Buffer, np.ndarray | None]:
    """Write through the backend, in order with its launches; return the buffer, and its memory as a numpy array if the
    host shares it.
    """
    storage, kind = t._storage, t.dtype.np
    assert kind is not None
    buffer, start = storage.for_write(), t._offset * kind.itemsize
    storage.backend.write(buffer, start, np.array([value], kind))
    host = buffer.host
    return buffer, None if host is None else host[start : start + kind.itemsize].view(kind)


# ------------------------------------------------------------------------------------------- the step


def by_count(params: Sequence[Tensor], state: Mapping[Tensor, dict]) -> list[tuple[float, list]]:
    """Add 1 to every parameter's counter; return pairs of a number of steps and the parameters that have made it."""
    if params and ACTIVE.recorder is None and all(_apart(state[p]["step"]) for p in params):
        return list(_count(params, state).items())
    parts: dict[float, list[Tensor]] = {}
    last, some = -1.0, []
    for p in params:
        count = state[p]["step"]
        value = _one_more(count)
        if value != last:
            last, some = value, parts.setdefault(value, [])
        some.append(p)
    return list(parts.items())


def by_count_on_device(params: Sequence[Tensor], state: Mapping[Tensor, dict]) -> list[tuple]:
    """Do as `by_count` for counters that stay on the device; in the number's place is the first parameter's counter."""
    return [(state[some[0]]["step"], some) for some in _count(params, state).values()]


def _count(params: Sequence[Tensor], state: Mapping[Tensor, dict]) -> dict[float, list[Tensor]]:
    """Add 1 to every parameter's counter by a kernel; return number of steps (from the host's notes) -> parameters."""
    counters = [state[p]["step"] for p in params]
    parts: dict[float, list[Tensor]] = {}
    tallies = [1 + tally(count) for count in counters]
    for p, made in zip(params, tallies, strict=True):
        parts.setdefault(made, []).append(p)
    update("count", ["t = t + 1"], {"t": counters}, {}, {})
    for count, made in zip(counters, tallies, strict=True):
        note(count, made)
    return parts


def _apart(t: Tensor) -> bool:
    """Return whether the host can write a number only by a transfer, as where there is no OpenCL CPU device."""
    value = t._storage.value
    return value.__class__ is Buffer and value.host is None


def tally(t: Tensor) -> float:
    """Return a number on the device as the host noted it (`note`); read it from the device where no note is valid."""
    version, value = fields(t).get("_tally", (None, 0.0))
    return value if version == t._vc.value else float(t.item())


def note(t: Tensor, value: float) -> None:
    """Remember the value of a number on the device, until something else writes to the tensor."""
    fields(t)["_tally"] = (t._vc.value, value)


def renew(t: Tensor) -> None:
    """Read a number on the device again if its note is outdated: to be called before a recording, which cannot read."""
    if fields(t).get("_tally") is not None:
        note(t, tally(t))


def put(tensors: Sequence[Tensor], value: Tensor, noted: float) -> None:
    """Write one number into several tensors on the device; `noted` is the host's note of its value."""
    update("put", ["x = value"], {"x": tensors}, {}, {"value": value})
    for t in tensors:
        note(t, noted)


def run_closure(closure: Callable[[], Any] | None) -> Any:
    """Call a step's closure, if there is one, with gradients enabled; return its loss."""
    if closure is None:
        return None
    with enable_grad():
        return closure()


def require(condition: Any, text: str) -> None:
    """Raise ValueError(text) unless a condition on an option holds."""
    if not condition:
        raise ValueError(text)


def check_options(
    lr: Any,
    weight_decay: Any = 0,
    *,
    eps: Any = 0.0,
    betas: Sequence[Any] | None = None,
) -> None:
    """Raise torch's ValueError for a bad learning rate, epsilon, beta or weight decay."""
    if isinstance(lr, Tensor):
        require(lr.numel() == 1, "Tensor lr must be 1-element")
    require(lr >= 0.0, f"Invalid learning rate: {lr}")
    require(eps >= 0.0, f"Invalid epsilon value: {eps}")
    for i, beta in enumerate(betas or ()):
        require(0.0 <= beta < 1.0, f"Invalid beta parameter at index {i}: {beta}")
    require(weight_decay >= 0.0, f"Invalid weight_decay value: {weight_decay}")
