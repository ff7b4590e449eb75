"""A pending expression has the values its operands had when it was made, whatever is written to them later."""

from __future__ import annotations

import dataclasses
import textwrap
from typing import Any

import numpy as np
import pytest

import cltensor as torch
from cltensor import config

OTHER_SHAPE = """
        c = a * 2
        t = c + 1
        u = t.expand(2, 3, 3) * 3
        w = t * 4
        del t
        done(w)"""
SMALL_TREE = """
        c = a * 2
        m = c + 1
        y = c + m.t()
        done(y)"""
# At the start `a` and `b` are pending. `done` computes a result; `found` is what is compared in the end.
PROGRAMS = {
    "held, and only seen rearranged": """
        c = a * a
        b.copy_(c)
        c.t().add_(b)
        found = b, c, a""",
    "of another shape": OTHER_SHAPE
    + """
        c[0] = 100
        found = u, c""",
    "of another shape, all changed": OTHER_SHAPE
    + """
        c.mul_(3)
        done(c)
        found = u, c""",
    "in a small tree": SMALL_TREE
    + """
        c[0] = 100
        found = m, c""",
    "in a small tree, all changed twice": SMALL_TREE
    + """
        c.add_(1)
        c.add_(1)
        done(c)
        found = m, c""",
    "old values beside the same rearranged": """
        a = a * 1
        done(a)
        a.mul_(2)
        a.sub_(a.t() * 1)
        found = (a,)""",
    "old values and what is computed from them rearranged": """
        a = a * 1
        done(a)
        a.mul_(2)
        c = a.t() + a
        a.add_(c)
        found = a, c""",
    "run with a later operand": """
        a = a * 1
        c = a.neg()
        m = a + 1
        del a
        y = torch.addcmul(c, m[:, :1], m[:, 1:2])
        c.add_(1)
        done(c)
        found = y, c""",
    "read by what is seen in two ways": """
        c = a * 2
        m = c + 1
        u = c.expand(2, 3, 3) * 3
        y = m + m.t() + c
        del m
        done(y)
        c[0] = 100
        found = u, c""",
}


@pytest.mark.parametrize("title", PROGRAMS)
def test_values_are_those_of_the_time(
    dev: Any, title: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = textwrap.dedent(PROGRAMS[title])

    def run() -> list[np.ndarray]:
        names: dict[str, Any] = {"torch": torch, "done": lambda t: t._storage.buffer()}
        for k, name in enumerate("ab"):
            data = torch.arange(9.0, device=dev).reshape(3, 3)
            torch.opencl.synchronize()
            names[name] = data + k
        exec(source, names)
        return [t.numpy(force=True).copy() for t in names["found"]]

    found = run()
    monkeypatch.setattr(config, "CONFIG", dataclasses.replace(config.CONFIG, eager=True))
    for ours, wanted in zip(found, run(), strict=True):
        np.testing.assert_array_equal(ours, wanted)


def test_chains_alike_but_for_what_is_held_are_told_apart(dev: Any) -> None:
    for held in (1, 2, 3):
        chain = [torch.full((3,), 2.0, device=dev)]
        for _ in range(4):
            chain.append(chain[-1].pow(2))
        kept, last = chain[held], chain[-1]
        del chain
        assert last.tolist() == [2.0**16] * 3
        assert kept.tolist() == [2.0**2**held] * 3
