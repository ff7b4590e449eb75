"""GPUs on paper: backends that render kernels for a device that is not present, and launch nothing.

The records hold what drivers report of such devices. A kernel's text, launch sizes and arguments are then those that the device would get.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from cltensor.runtime import DeviceInfo, Kernel, device, registry
from cltensor.runtime.meta import _INFO, MetaBackend

_KIB, _GIB = 1 << 10, 1 << 30
_numbers = itertools.count(90)  # a unique name for each device, as kernel caches are keyed by names


def _gpu(
    name: str, vendor: str, units: int, group: int, local: int, arguments: int, **more: Any
) -> DeviceInfo:
    facts = {"fp64": False, "fp16": True, "subgroups": True, "int64_atomics": False} | more
    return dataclasses.replace(
        _INFO, kind="gpu", lanes=1, native_lanes=1, name=name, vendor=vendor, compute_units=units, max_group=group,
        local_mem=local * _KIB, arg_bytes=arguments, max_alloc=4 * _GIB, global_mem=16 * _GIB, **facts,
    )  # fmt: skip


RECORDS = {
    "H200": _gpu("NVIDIA H200", "NVIDIA Corporation", 132, 1024, 48, 32764, fp64=True, fp16=False, int64_atomics=True, subgroups=False, platform="NVIDIA CUDA"),
    "RDNA3": _gpu("gfx1100", "Advanced Micro Devices, Inc.", 48, 256, 64, 1024, fp64=True, int64_atomics=True),
    "Arc": _gpu("Intel(R) Arc(TM) A770 Graphics", "Intel(R) Corporation", 512, 1024, 64, 2048),
    "Mali": _gpu("Mali-G710", "ARM", 10, 1024, 32, 1024),
    "small": _gpu("the least there is", "", 4, 128, 16, 1024, fp16=False, subgroups=False),
}  # fmt: skip


class Text(NamedTuple):
    """A kernel as a device would receive it."""

    name: str
    source: str
    options: tuple[str, ...]
    arg_types: tuple[Any, ...]


class Launch(NamedTuple):
    """The sizes of a launch."""

    name: str
    global_size: tuple[int, ...]
    local_size: tuple[int, ...] | None


class Paper(MetaBackend):
    """A backend for a device of `RECORDS`: records the kernels to be built and the launches. All values read are
    zero."""

    def __init__(self, record: DeviceInfo) -> None:
        super().__init__()
        self.device, self.info = device("opencl", next(_numbers)), record
        self.inline = self.queue = None
        self.texts: set[Text] = set()
        self.launches: set[Launch] = set()

    def kernel(
        self, name: str, source: str, arg_types: Sequence[Any], options: Sequence[str] = ()
    ) -> Kernel:
        self.texts.add(Text(name, source, tuple(options), tuple(arg_types)))
        return super().kernel(name, source, arg_types, options)

    def launch_held(
        self,
        kernel: Kernel,
        global_size: Any,
        local_size: Any,
        args: Any,
        nbytes: int = 0,
        flops: int = 0,
    ) -> None:
        self.launches.add(Launch(kernel.name, global_size, local_size))
        super().launch_held(kernel, global_size, local_size, args, nbytes, flops)

    def read(self, buffer: Any, offset_bytes: int, nbytes: int) -> np.ndarray:
        return np.zeros(nbytes, np.uint8)


@contextmanager
def paper(record: DeviceInfo) -> Iterator[Paper]:
    """Make a device on paper the default one, within the context."""
    import cltensor

    made = Paper(record)
    registry.backends[made.device] = made
    cltensor.set_default_device(made.device)
    try:
        yield made
    finally:
        cltensor.set_default_device(None)
        del registry.backends[made.device]


def compute(work: dict[str, Callable[[], Any]]) -> dict[str, Exception]:
    """Run each function and read its results; return the errors of those that failed, as some need actual values."""
    failed = {}
    for name, make in work.items():
        try:
            found = make()
            for item in found if isinstance(found, tuple | list) else (found,):
                item.detach().tolist()
        except (RuntimeError, IndexError, ValueError) as error:
            failed[name] = error
    return failed


def argument_bytes(text: Text) -> int:
    """Return the size of a kernel's arguments in bytes."""
    return sum(8 if kind is None else np.dtype(kind).itemsize for kind in text.arg_types)
