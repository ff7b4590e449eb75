"""The code of a child process: it compares one candidate with the default, first the results, then the times.

Owns the measuring. The parent process decides what to try and judges the numbers.
"""

from __future__ import annotations

import math
import time
from typing import Any

from .parameters import PARAMETERS, Case, Parameter
from .peaks import peaks

_BLOCK = 0.01  # seconds of repeated runs with the same size
_ROUNDS = {"quick": 5, "full": 12, "confirm": 20}


def answer(task: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a task {"device", "what": "peaks" or a parameter's name, "value", "effort"}."""
    if task["what"] == "peaks":
        return peaks(task["device"])
    parameter = next(p for p in PARAMETERS if p.name == task["what"])
    return Trial(task["device"], parameter, task["value"]).run(task["effort"])


class Trial:
    """A comparison of a candidate with the default, alternating in one process."""

    def __init__(self, device: str, parameter: Parameter, value: int) -> None:
        import cltensor
        from cltensor.runtime import get_backend

        self.torch: Any = cltensor
        cltensor.set_default_device(device)
        self.backend = get_backend(cltensor.device(device))
        self.parameter, self.value = parameter, value

    def switch(self, candidate: bool) -> None:
        """Use the candidate, or the default."""
        tuned = self.backend.tuned
        tuned.pop(self.parameter.name, None)
        if candidate:
            tuned[self.parameter.name] = self.value
        self.parameter.forget()

    def wait(self) -> None:
        """Run everything pending, and wait for it."""
        self.torch.opencl.synchronize()

    def run(self, effort: str) -> dict[str, Any]:
        """Return {"differs": cases} or {"times": {case: [default's seconds, candidate's seconds]}}."""
        cases = self.parameter.cases(self.torch, effort == "quick")
        results = []
        for candidate in (False, True):
            self.switch(candidate)
            results.append({name: bits(case()) for name, case in cases.items()})
        differs = [name for name in cases if results[0][name] != results[1][name]]
        if differs:
            return {"differs": differs}
        del results
        return {
            "times": {name: self.compare(case, _ROUNDS[effort]) for name, case in cases.items()}
        }

    def compare(self, case: Case, rounds: int) -> list[float]:
        """Return the least times of a case, in seconds, with the default and with the candidate; the two alternate."""
        best = [math.inf, math.inf]
        repeat = 0
        for number in range(rounds):
            for which in (0, 1) if number % 2 else (1, 0):
                self.switch(bool(which))
                self.timed(case, 1)  # not counted: looks up kernels after the switch
                repeat = repeat or max(1, int(_BLOCK / self.timed(case, 3)))
                best[which] = min(best[which], self.timed(case, repeat))
        return best

    def timed(self, case: Case, repeat: int) -> float:
        """Return the average seconds of a run, over `repeat` runs in a row."""
        self.wait()
        begin = time.perf_counter()
        for _ in range(repeat):
            kept = case()
            self.wait()
            del kept  # only now: a pending result that nothing holds is never computed
        return (time.perf_counter() - begin) / repeat


def bits(value: Any) -> bytes:
    """Return a result's elements as bytes."""
    return value.detach().cpu().numpy().tobytes()
