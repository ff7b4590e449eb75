"""Benchmark cases: programs in torch's API that declare the bytes they move and the operations they compute.

A case is written once and runs on every library that has torch's names. A case that uses only operators, NumPy's methods and
the few names of kits.py runs on other libraries, too. This module measures nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Run = Callable[[], Any]
Make = Callable[["Kit"], Run]
EVERY = ("numpy", "jax", "tinygrad")


class Kit:
    """A library with torch's names, and the device of its tensors; it makes the same inputs in every library.

    wait: returns when the device has done all work that was submitted.
    """

    like_torch = True  # whether the library has torch's names, so that it can run every case

    def __init__(
        self,
        name: str,
        torch: Any,
        device: str = "cpu",
        wait: Callable[[], Any] = lambda: None,
        version: str = "",
        submit: Callable[[], Any] = lambda: None,
    ) -> None:
        self.name, self.torch, self.device, self.wait, self.version = name, torch, device, wait, version  # fmt: skip
        self.submit = submit  # starts work that the library would defer

    def rand(self, *shape: int, seed: int = 0, dtype: str = "float32", grad: bool = False) -> Any:
        """Return uniform numbers in [-1, 1), or integers in (-1000, 1000), the same in every library."""
        values = np.random.default_rng(seed).random(shape, dtype=np.float32) * 2 - 1
        t = self.put(values * 1000 if "int" in dtype else values)
        if dtype != "float32":
            t = t.to(getattr(self.torch, dtype))
        return t.requires_grad_() if grad else t

    def randint(self, high: int, *shape: int, seed: int = 0) -> Any:
        """Return indices in [0, high), the same in every library."""
        return self.put(np.random.default_rng(seed).integers(0, high, shape))

    def put(self, values: np.ndarray) -> Any:
        """Copy an array to the device."""
        return self.torch.tensor(values, device=self.device)

    def program(self, fn: Callable[..., Any], *inputs: Any) -> Run:
        """Return the function to be timed: fn with the library's module and the inputs, compiled if possible."""
        return lambda: fn(self.torch, *inputs)

    def recorded(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """Return a step that the library records and replays without running its Python; the step itself if it cannot."""
        return getattr(self.torch, "capture", lambda fn: fn)(step)

    def host(self, value: Any) -> np.ndarray:
        """Return a result as a NumPy array."""
        if not hasattr(value, "detach"):
            return np.asarray(value)
        value = value.detach().cpu()
        return np.asarray(value.double() if value.is_floating_point() else value)


@dataclass(frozen=True)
class Case:
    """A benchmark.

    make: given a Kit, prepares inputs and returns the function to be timed. bytes, flops: the least that one run must
    move to and from memory, and compute. bound: the memory speed of the device to compare with: "copy"; "read" when
    next to nothing is written; "update" when the case overwrites what it read; "write" when several times as much is
    written as read: bytes then are those written. bar: the aim: how many times as fast as torch eager to be.
    quick: also run with --quick. check: compare the first result with the peers', up to `tolerance` relative to the
    largest number. also: libraries without torch's names whose kits can run `make`. alone: wait for each run, on a GPU,
    too.
    """

    family: str
    name: str
    make: Make
    bytes: float = 0.0
    flops: float = 0.0
    bar: float | None = None
    quick: bool = False
    check: bool = True
    tolerance: float = 1e-3
    bound: str = "copy"
    also: tuple[str, ...] = ()
    alone: bool = False

    @property
    def label(self) -> str:
        return f"{self.family}: {self.name}"


@dataclass(frozen=True)
class Index:
    """An input of random integers in [0, high)."""

    high: int
    shape: tuple[int, ...]


def on(
    fn: Callable[..., Any],
    *inputs: tuple[int, ...] | Index,
    dtype: str = "float32",
    grad: bool = False,
) -> Make:
    """Return the `make` of a case that runs fn(torch, *inputs), with random inputs of these shapes; with grad, forward
    and backward to every float input.
    """

    def make(kit: Kit) -> Run:
        made = [
            kit.randint(i.high, *i.shape, seed=k)
            if isinstance(i, Index)
            else kit.rand(*i, seed=k, dtype=dtype, grad=grad)
            for k, i in enumerate(inputs)
        ]
        return backward(kit, fn, *made) if grad else kit.program(fn, *made)

    return make


def backward(kit: Kit, fn: Callable[..., Any], *inputs: Any) -> Run:
    """Return a function that runs fn, and backward from its summed result to all inputs that require a gradient."""
    wanted = [x for x in inputs if x.requires_grad]

    def run() -> Any:
        out = fn(kit.torch, *inputs)
        return kit.torch.autograd.grad(out if out.ndim == 0 else out.sum(), wanted)

    return run
