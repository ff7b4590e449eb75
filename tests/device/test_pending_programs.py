"""Random programs of pending chains, views and writes in place give what running every op at once gives.

Here numpy computes chains instead of kernels: nothing is built, so a hundred programs take a second. Under test are
which results a launch stores, which stay pending, and whose memory is overwritten. A launch that writes to memory of
which it also reads other elements is a fault, even though numpy, which reads all operands first, gives the right
values.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import cltensor as torch
from cltensor import config, layouts
from cltensor.lazy import recompute, schedule, tree
from cltensor.lazy.expression import Leaf, Scalar, View

SIDE = 4
NAMES = {"where": np.where, "fabs": np.abs, "abs": np.abs, "max": np.maximum, "min": np.minimum}
RESULTS = (
    "{a} + {b}", "{a} * {b}", "{a} * 2", "{a}.relu()", "{a}.t()", "{a} - {b}", "{a}[:]", "{a} + {b}[0]", "{a} + {b}[:, :1]",
    "torch.where({a} > {b}, {a}, {c})", "{a}.detach()", "{a}.clone()", "{a} + 1", "{a}.t() + {b}", "{a}.view(-1)",
    "{a}.expand(2, *{a}.shape)[1]", "torch.addcmul({a}, {b}[:, :1], {c}[:, 1:2])", "{a}.expand(2, *{a}.shape) * {b}",
)  # fmt: skip
WRITES = (
    "{a}.add_({b})", "{a}.mul_(0.5)", "{a}.copy_({b})", "{a}.relu_()", "{a}[0] = 1.5", "{a}[:, 1].mul_(2)", "{a}.zero_()",
    "{a}.sub_({b}.t().clone())", "{a}.t().add_({b})", "{a}.add_({b}.t() * 1)", "{a}[0] = {b}[1].clone()", "{a}.fill_(2)",
)  # fmt: skip
ENDS = ("done({a})", "done({a})", "del {a}", "{a} = None")


def _seen(buffer: Any, dt: Any, shape: Any, strides: Any, offset: int) -> np.ndarray:
    """Return the elements of a buffer that an operand of this layout reads, as a view of the buffer's memory."""
    memory = buffer.backend.host_view(buffer)
    memory = memory[: memory.size // dt.itemsize * dt.itemsize].view(dt.np)[offset:]
    steps = layouts.contiguous_strides(shape) if strides is None else strides
    return np.lib.stride_tricks.as_strided(memory, shape, [s * dt.itemsize for s in steps])


def _place(strides: Any, offset: int, shape: Any) -> tuple[Any, int]:
    """Return strides and offset without dims of size 1: what decides which elements are visited, in which order."""
    steps = layouts.contiguous_strides(shape) if strides is None else strides
    return [st for st, n in zip(steps, shape, strict=True) if n > 1], offset


def _value(op: Any, compute: Any, result: Any, shape: Any, operands: list[Any]) -> np.ndarray:
    xs = [np.asarray(x).astype(compute.np) for x in operands]
    with np.errstate(all="ignore"):
        found = eval(op.text.strip(), NAMES, dict(zip("xyzw", xs, strict=False)))
    return np.broadcast_to(found, shape).astype(result.np)


class Interpreter:
    """Runs fusions and small trees in numpy, and notes launches that write to memory of which they read other elements."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self._run_tree, self._write_tree = tree.run_tree, tree.write_tree

    def launch(self, backend: Any, fusion: Any, outputs: list[Any]) -> None:
        shape = fusion.shape
        for leaf in fusion.leaves:
            for _, _, buffer, strides, offset in outputs:
                place = _place(leaf.strides, leaf.offset, shape)
                if leaf.buffer is buffer and place != _place(strides, offset, shape):
                    self.faults.append("a launch")
        of = {
            "a": [
                _seen(x.buffer, x.dtype, shape, x.strides, x.offset).copy() for x in fusion.leaves
            ],
            "k": fusion.scalars,
            "t": [],
        }
        for node in fusion.nodes:
            operands = [of[kind][k] for kind, k in node.args]
            of["t"].append(_value(node.op, node.compute, node.result, shape, operands))
        for (kind, k), dt, buffer, strides, offset in outputs:
            _seen(buffer, dt, shape, strides, offset)[...] = of[kind][k]

    def run_tree(self, storage: Any, expr: Any) -> bool:
        if expr.flags & ~tree.DECIDED or expr.size > tree.MOST:
            return False
        values: dict[int, tuple[Any, np.ndarray]] = {}
        elsewhere: list[Any] = []
        self._evaluate(expr, False, values, elsewhere)
        before = [e for e, _ in values.values() if e.value is None]
        if not self._run_tree(storage, expr):
            return False
        if any(storage.value is buffer for buffer in elsewhere):
            self.faults.append("a tree")
        for e in before:
            if e.value is not None:
                _seen(e.value, e.dtype, e.shape, None, 0)[...] = values[id(e)][1]
        return True

    def write_tree(
        self, backend: Any, expr: Any, buffer: Any, strides: tuple[int, ...], offset: int
    ) -> bool:
        if not self._write_tree(backend, expr, buffer, strides, offset):
            return False
        values: dict[int, tuple[Any, np.ndarray]] = {}
        elsewhere: list[Any] = []
        value = self._evaluate(expr, False, values, elsewhere, (strides, offset))
        if any(buffer is other for other in elsewhere):
            self.faults.append("a part written")
        _seen(buffer, expr.dtype, expr.shape, strides, offset)[...] = value
        return True

    def _evaluate(
        self,
        e: Any,
        moved: bool,
        values: dict[int, tuple[Any, np.ndarray]],
        elsewhere: list[Any],
        written: tuple[Any, int] = (None, 0),
    ) -> np.ndarray:
        """Return a tree's value. Append to `elsewhere` the buffers of which other elements are read than those that are
        `written` (strides and offset).
        """
        if e.value is not None:
            if moved or written[0] is not None:
                elsewhere.append(e.value)
            return _seen(e.value, e.dtype, e.shape, None, 0).copy()
        operands: list[Any] = []
        for a in e.args:
            if isinstance(a, Scalar):
                operands.append(a.value)
            elif isinstance(a, Leaf):
                if moved or _place(a.strides, a.offset, e.shape) != _place(*written, e.shape):
                    elsewhere.append(a.buffer)
                operands.append(_seen(a.buffer, a.dtype, e.shape, a.strides, a.offset).copy())
            elif isinstance(a, View):
                x = self._evaluate(a.expr, True, values, elsewhere, written)
                operands.append(_rearranged(x, a.dims, e.shape))
            else:
                operands.append(self._evaluate(a, moved, values, elsewhere, written))
        found = _value(e.op, e.compute, e.dtype, e.shape, operands)
        values[id(e)] = e, found
        return found


def _rearranged(x: np.ndarray, dims: tuple[int, ...] | None, shape: Any) -> np.ndarray:
    if dims is None:
        return x.reshape(shape)
    used = [d for d in dims if d >= 0]
    x = x.transpose(*used, *[d for d in range(x.ndim) if d not in used])
    return np.broadcast_to(x.reshape([1 if d < 0 else n for d, n in zip(dims, _sizes(x, dims), strict=True)]), shape)  # fmt: skip


def _sizes(x: np.ndarray, dims: tuple[int, ...]) -> list[int]:
    sizes = iter(x.shape)
    return [1 if d < 0 else next(sizes) for d in dims]


@pytest.fixture
def interpreter(dev: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Interpreter]:
    if dev.type != "cpu":
        pytest.skip("numpy sees the host's memory only")
    torch.opencl.synchronize()
    found = Interpreter()
    monkeypatch.setattr(schedule, "launch", found.launch)
    monkeypatch.setattr(schedule, "run_tree", found.run_tree)
    monkeypatch.setattr(schedule, "write_tree", found.write_tree)
    monkeypatch.setattr(tree, "start", lambda *args: None)
    monkeypatch.setattr(tree, "scalar_args", lambda *args: [])
    monkeypatch.setattr(tree, "_of_kind", lambda *args: tree._Entry((), [], (), None, ()))
    monkeypatch.setattr(tree, "_entries", {})
    yield found
    torch.opencl.synchronize()  # run what is still pending while numpy stands in for kernels


def _program(choose: random.Random) -> list[str]:
    names, lines = ["v0", "v1", "v2"], []
    for _ in range(choose.choice((4, 6, 8, 12, 20))):
        given = dict(zip("abc", choose.choices(names[-4:], k=3), strict=True))
        kind = choose.random()
        if kind < 0.5:
            names.append(f"v{len(names)}")
            lines.append(f"{names[-1]} = {choose.choice(RESULTS).format(**given)}")
        else:
            lines.append(choose.choice(WRITES if kind < 0.8 else ENDS).format(**given))
    return lines


def _run(lines: list[str], pending: bool) -> dict[str, np.ndarray]:
    names: dict[str, Any] = {"torch": torch, "done": lambda t: t._storage.buffer()}
    for k in range(3):
        data = np.random.default_rng(k).integers(-2, 3, (SIDE, SIDE)).astype("f") / 2
        names[f"v{k}"] = torch.tensor(data) * 1 if pending else torch.tensor(data)
    for line in lines:
        try:
            exec(line, names)
        except (NameError, RuntimeError, IndexError, AttributeError, TypeError):
            continue  # shapes do not fit, or a name is deleted: the same in both runs
    return {
        name: x.numpy(force=True).copy()
        for name, x in names.items()
        if name[0] == "v" and x is not None
    }


@pytest.mark.parametrize("seed", range(16))
def test_programs(seed: int, interpreter: Interpreter, monkeypatch: pytest.MonkeyPatch) -> None:
    once = dataclasses.replace(config.CONFIG, eager=True)
    for number in range(80):
        choose = random.Random(f"{seed} {number}")
        lines, pending = _program(choose), choose.random() < 0.5
        monkeypatch.setattr(recompute, "LARGE", choose.choice((1, 1 << 23)))
        found = _run(lines, pending)
        with monkeypatch.context() as patch:
            patch.setattr(config, "CONFIG", once)
            wanted = _run(lines, pending)
        text = "\n".join(lines)
        assert not interpreter.faults, text
        assert found.keys() == wanted.keys()
        for name, x in found.items():
            np.testing.assert_array_equal(x, wanted[name], f"{name} of\n{text}")
