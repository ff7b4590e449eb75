"""Where random numbers come from: a `Generator` is a seed and a counter, and each draw takes a range of counters when it is called.

Owns the generators, one per device unless the caller brings their own, and the key and counter each draw is made of.
What the bits become is in `draws.py`.

Note [Reproducible]. Element i of a draw is a function of seed, first counter and i (see cl_kernels/random/philox.cl), so numbers are the
same on every device, for every launch shape, and whenever the draw runs.
"""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np

from ... import dtypes
from ...errors import class_name
from ...runtime import device, get_backend
from ...size import Size
from ...storage import Storage
from .. import convert, core

DEFAULT_SEED = 67280421310721
_STATE_BYTES = 16
_lock = threading.Lock()


class Generator:
    """A source of random numbers: a 64-bit seed and the number of counters taken so far.

    >>> g = torch.Generator().manual_seed(7)
    >>> torch.equal(torch.rand(3, generator=g), torch.rand(3, generator=g.manual_seed(7)))
    True
    """

    __slots__ = ("_made_in", "_offset", "_seed", "device")

    def __repr__(self) -> str:
        return f"<torch._C.Generator object at {id(self):#x}>"

    _watch: Any = None  # the recording in progress, if any (for all generators)

    def __init__(self, device: Any = "cpu") -> None:
        self.device = _as_device(device)
        if self.device.type not in ("cpu", "opencl", "cuda", "meta"):
            raise RuntimeError(f"{self.device.type.upper()} device type not an accelerator.")
        self._seed, self._offset = DEFAULT_SEED, 0
        # A generator made during a recording is not watched: each play draws the numbers that were recorded.
        self._made_in = self._watch

    def manual_seed(self, seed: Any) -> Generator:
        """Start over from a seed in [-2**63, 2**64), negative ones counting from 2**64; returns
        self."""
        if not hasattr(seed, "__index__"):
            raise RuntimeError(f"manual_seed expected a long, but got {class_name(seed)}")
        seed = int(seed)
        if not -(2**63) <= seed < 2**64:
            raise ValueError("Overflow when unpacking long long")
        self._refuse_recorded()
        with _lock:
            self._seed, self._offset = seed % 2**64, 0
        return self

    def seed(self) -> int:
        """Start over from a seed of the operating system; returns it."""
        value = int.from_bytes(os.urandom(8), "little")
        self.manual_seed(value)
        return value

    def initial_seed(self) -> int:
        """Return the seed this generator was last started from."""
        return self._seed

    def take(self, count: int) -> tuple[int, int]:
        """Reserve counters: (seed, first counter)."""
        with _lock:
            first = self._offset
            self._offset = (first + count) % 2**64
        if self._watch is not None and self._made_in is not self._watch:
            return self._watch.counters(self, count)
        return self._seed, first

    def get_offset(self) -> int:
        """Return how many counters were taken. RuntimeError on the cpu device, as in torch."""
        self._refuse_cpu()
        return self._offset

    def set_offset(self, offset: int) -> None:
        """Go to a counter. RuntimeError on the cpu device, as in torch."""
        self._refuse_cpu()
        self._refuse_recorded()
        self._offset = offset % 2**64

    def _refuse_cpu(self) -> None:
        if self.device.type == "cpu":
            raise RuntimeError("CPU Generator does not use offset")

    def go_back(self, state: Generator) -> None:
        """Return to `state`, a copy of this generator's state at another time.

        Allowed in a recording while the seed is the same: each play then moves the counter by the same amounts.
        """
        if state._seed != self._seed:
            self._refuse_recorded()
        with _lock:
            self._seed, self._offset = state._seed, state._offset

    def _refuse_recorded(self) -> None:
        """Raise in a recording, whose plays count on from where the generator is."""
        if self._watch is not None and self._made_in is not self._watch:
            self._watch.refuse()

    def get_state(self) -> core.Tensor:
        """Return seed and counter as a uint8 tensor of 16 bytes on cpu."""
        place = convert.canonical(device("cpu"))
        storage = Storage.from_host(
            get_backend(place), np.array([self._seed, self._offset], np.uint64).view(np.uint8)
        )
        return core.make(storage, Size((_STATE_BYTES,)), dtypes.uint8, place)

    def set_state(self, new_state: core.Tensor) -> Generator:
        """Go back to what `get_state` returned. TypeError for another dtype, RuntimeError for
        another size."""
        if not core.is_tensor(new_state):
            raise TypeError(f"expected a torch.ByteTensor, but got {type(new_state).__name__}")
        if new_state.dtype is not dtypes.uint8 or new_state.device.type != "cpu":
            raise TypeError("RNG state must be a torch.ByteTensor")
        if new_state.numel() != _STATE_BYTES:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {_STATE_BYTES} but found the input "
                f"RNG state size to be {new_state.numel()}"
            )
        self._refuse_recorded()
        seed, offset = np.array(new_state.reshape(-1).tolist(), np.uint8).view(np.uint64).tolist()
        with _lock:
            self._seed, self._offset = seed, offset
        return self

    def clone_state(self) -> Generator:
        """Return a new generator in the same state."""
        other = Generator(self.device)
        other._seed, other._offset = self._seed, self._offset
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.device, self._seed, self._offset)


def _restore(dev: device, seed: int, offset: int) -> Generator:
    made = Generator(dev)
    made._seed, made._offset = seed, offset
    return made


def _as_device(dev: Any) -> device:
    return (
        dev
        if dev.__class__ is device
        else device("cuda", dev)
        if dev.__class__ is int
        else device(dev)
    )


class _Defaults:
    """The generators used where none is given. Those of devices first used later start from the last
    common seed, too."""

    def __init__(self) -> None:
        self.cpu = Generator()
        self.cpu.seed()
        self.common = self.cpu.initial_seed()
        self.others: dict[device, Generator] = {}


defaults = _Defaults()
default_generator = defaults.cpu


def default_for(dev: device) -> Generator:
    """Return a device's own generator."""
    if dev.type == "cpu":
        return defaults.cpu
    made = defaults.others.get(dev)
    if made is None:
        made = defaults.others.setdefault(dev, Generator(dev).manual_seed(defaults.common))
        made._made_in = None
    return made


def seed_all(seed: int) -> Generator:
    """Start every device's generator from a seed, also those of devices not used yet; returns the
    generator of "cpu"."""
    default_generator.manual_seed(seed)
    defaults.common = default_generator.initial_seed()
    for other in list(defaults.others.values()):
        other.manual_seed(seed)
    return default_generator


def choose(generator: Generator | None, dev: device) -> Generator:
    """Return the generator of a draw on a device. RuntimeError for one of another kind of
    device."""
    if generator is None:
        return default_for(dev)
    if not isinstance(generator, Generator):
        raise TypeError(
            f"argument 'generator' must be torch.Generator, not {type(generator).__name__}"
        )
    if generator.device.type != dev.type:
        raise RuntimeError(
            f"Expected a '{dev.type}' device type for generator but found '{generator.device.type}'"
        )
    return generator
