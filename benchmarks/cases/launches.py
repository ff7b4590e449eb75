"""What a call costs when there is next to nothing to compute: on sixteen numbers, once, a hundred times, and recorded."""

from __future__ import annotations

from typing import Any

from benchmarks.case import EVERY, Case, Kit, Make, Run, on

N = 100


def _apart(fn: Any, recorded: bool = False) -> Make:
    """Return the `make` of a case that calls fn on each of a hundred tensors."""

    def make(kit: Kit) -> Run:
        inputs = [kit.rand(16, seed=k) for k in range(N)]

        def run() -> list[Any]:
            return [fn(x) for x in inputs]

        return kit.recorded(run) if recorded else run

    return make


def _in_turn(torch: Any, x: Any) -> Any:
    for _ in range(N):
        x = torch.sin(x)
    return x


CASES = [
    Case("launch", "a + 1, 16, waited for", on(lambda t, a: a + 1, (16,)), also=EVERY, alone=True),
    Case("launch", "a + 1, 16, read by the host", on(lambda t, a: (a + 1).tolist(), (16,))),
    Case("launch", "sum, 16, waited for", on(lambda t, a: a.sum(), (16,)), also=EVERY, alone=True),
    Case("launch", "matrix product 16³, waited for", on(lambda t, a, b: a @ b, (16, 16), (16, 16)), also=EVERY, alone=True),
    Case("launch", "100 independent a + 1, 16", _apart(lambda x: x + 1)),
    Case("launch", "100 independent a + 1, 16, captured", _apart(lambda x: x + 1, recorded=True)),
    Case("launch", "100 independent sums, 16", _apart(lambda x: x.sum())),
    Case("launch", "100 independent sums, 16, captured", _apart(lambda x: x.sum(), recorded=True)),
    Case("launch", "100 sines of each other, 16", on(_in_turn, (16,))),
]  # fmt: skip
