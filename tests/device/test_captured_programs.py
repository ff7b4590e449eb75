"""Random training programs give the same numbers whether or not parts of them are captured.

Parts are the whole step, the computation of gradients, the update, or both of these. Between calls a program changes
parameters, options, gradients and random numbers, keeps results and gradients, and calls with other shapes and layouts.
Sizes are those of one small network, so few kernels are built.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cltensor as torch

F = torch.nn.functional
EVENTS = (
    "",
    "",
    "lr",
    "mul",
    "zero",
    "eager",
    "draw",
    "seed",
    "collect",
    "data",
    "load",
    "options",
    "grads",
    "memory",
)


class Program:
    """A network, the way it is trained, and the events between steps, all drawn from a seed."""

    def __init__(self, seed: int, capture: Callable[[Any], Any]) -> None:
        self.choose = choose = random.Random(seed)
        torch.manual_seed(seed)
        layers = (
            torch.nn.Linear(4, 5),
            torch.nn.BatchNorm1d(5),
            torch.nn.Dropout(0.3),
            torch.nn.Linear(5, 3),
        )
        self.model = torch.nn.Sequential(*layers)
        self.frozen = choose.random() < 0.3
        self.model[0].bias.requires_grad_(not self.frozen)
        self.params = [p for p in self.model.parameters() if p.requires_grad]
        lr = torch.tensor(0.1)
        self.optimizer = choose.choice(
            (
                lambda: torch.optim.SGD(self.params, lr=0.1, momentum=0.9),
                lambda: torch.optim.Adam(self.params, lr=lr, capturable=True),
            )
        )()
        self.zero = choose.choice(("start", "end", "outside"))
        self.to_none = choose.random() < 0.6
        self.clips, self.again, self.by_hand = (choose.random() < 0.4 for _ in range(3))
        self.returned = choose.choice(("loss", "rows", "argument", "gradient"))
        self.kept: list[Any] = []
        parts = choose.choice(("whole", "gradients", "update", "two"))
        find = capture(self.find) if parts in ("gradients", "two") else self.find
        update = capture(self.update) if parts in ("update", "two") else self.update

        def step(x: Any, y: Any) -> Any:
            found = find(x, y)
            update()
            return found

        self.step = capture(step) if parts == "whole" else step

    def clear(self) -> None:
        self.optimizer.zero_grad(set_to_none=self.to_none)

    def find(self, x: Any, y: Any) -> Any:
        """Compute the loss and leave gradients in the parameters; return a tuple of the loss and what else is kept."""
        if self.zero == "start":
            self.clear()
        out = self.model(x)
        loss = F.cross_entropy(out, y)
        if self.by_hand:
            for p, g in zip(self.params, torch.autograd.grad(loss, self.params), strict=True):
                p.grad = g if p.grad is None else p.grad + g
        else:
            loss.backward(retain_graph=self.again)
            if self.again:
                loss.backward()
        if self.returned == "gradient":
            return loss, self.params[0].grad
        return {"rows": (loss, out[1:]), "argument": (loss, x)}.get(self.returned, (loss,))

    def update(self) -> None:
        """Update the parameters by their gradients."""
        if self.clips:
            torch.nn.utils.clip_grad_norm_(self.params, 0.5)
        self.optimizer.step()
        if self.zero == "end":
            self.clear()

    def happen(self, event: str, x: Any, y: Any) -> None:
        """Do what the event names, between steps and outside of captured functions."""
        p = self.choose.choice(list(self.model.parameters()))
        group = self.optimizer.param_groups[0]
        if event == "lr" and isinstance(group["lr"], torch.Tensor):
            group["lr"].mul_(0.5)
        elif event == "mul":
            with torch.no_grad():
                p.mul_(0.9)
        elif event == "zero":
            self.optimizer.zero_grad()
        elif event == "eager":
            F.cross_entropy(self.model(x), y).backward()
        elif event == "draw":
            torch.rand(5)
        elif event == "seed":
            torch.manual_seed(3)
        elif event == "collect":
            gc.collect()
        elif event == "data":
            p.data = p.data * 1.1
        elif event == "load":
            self.model.load_state_dict({k: v * 1 for k, v in self.model.state_dict().items()})
        elif event == "options":
            self.optimizer.load_state_dict(self.optimizer.state_dict())
        elif event == "grads":
            self.kept += [p.grad for p in self.params]
        elif event == "memory" and p.device.type == "cpu":
            self.kept.append(p.detach().numpy())

    def run(self) -> list[Any]:
        """Run a few steps; return what was kept on the way, and the model's and the optimiser's state in the end."""
        choose = self.choose
        for _ in range(choose.choice((4, 6, 8))):
            n = choose.choice((4, 4, 4, 3))
            x = torch.tensor(
                np.random.default_rng(choose.randrange(4)).random((4, n), np.float32)
            ).t()
            x = x if choose.random() < 0.2 else x.contiguous()
            y = torch.tensor([choose.randrange(3) for _ in range(n)])
            self.happen(choose.choice(EVENTS), x, y)
            if self.zero == "outside":
                self.clear()
            self.kept += self.step(x, y)
        self.kept += [*self.model.state_dict().values(), torch.rand(2)]
        self.kept += [v for p in self.params for v in (p.grad, *self.optimizer.state[p].values())]
        return [None if t is None else np.array(t.tolist()) for t in self.kept]


@pytest.mark.parametrize("seed", range(3))
def test_programs(seed: int) -> None:
    for number in range(3):
        wanted = Program(8 * seed + number, lambda fn: fn).run()
        found = Program(8 * seed + number, torch.capture).run()
        assert len(found) == len(wanted)
        for i, (a, b) in enumerate(zip(found, wanted, strict=True)):
            if a is None or b is None:
                assert a is b, f"{i} of program {8 * seed + number}"
            else:
                np.testing.assert_array_equal(a, b, f"{i} of program {8 * seed + number}")
