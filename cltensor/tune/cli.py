"""The command line of the tuner: it tries candidates in child processes and decides which to keep.

Owns the verdicts and the printing. Runs no kernel itself, so that a driver's crash cannot end it.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Sequence
from typing import Any

from cltensor.runtime import DeviceInfo, children, device, device_info, tuning

from .child import answer
from .parameters import Parameter, chosen

LIMIT = 120.0  # seconds of one candidate
_WORTH = 1.03  # the least speed-up of a candidate to be kept, as the geometric mean over its cases
_LOSS = 0.95  # the least relative speed allowed in any single case


def main(arguments: Sequence[str] = ()) -> int:
    """Tune a device; return 0 when the table was written, 1 when it could not be, 2 for bad arguments."""
    if list(arguments[:1]) == ["--child"]:
        print(json.dumps(answer(json.loads(arguments[1]))))
        return 0
    parser = argparse.ArgumentParser(
        prog="python -m cltensor.tune",
        description="Measure a device, and keep the kernel sizes that are faster and give the same bits.",
    )
    parser.add_argument("--device", default="cpu", help="cpu (default), opencl:0, ...")
    parser.add_argument(
        "--family", default="", help="families to tune, with commas; all by default"
    )
    parser.add_argument("--quick", action="store_true", help="fewer cases and rounds")
    parser.add_argument(
        "--limit",
        type=float,
        default=LIMIT,
        help=f"seconds that a candidate may take (default: {LIMIT:g})",
    )
    given = parser.parse_args(list(arguments))
    try:
        info = device_info(device(given.device))
        wanted = chosen(info.kind, [f for f in given.family.split(",") if f])
    except (ValueError, RuntimeError, AssertionError) as error:
        print(error)
        return 2
    return Tuner(given.device, info, given.quick, given.limit).run(wanted)


class Tuner:
    """Tries candidates one by one and maintains the device's table."""

    def __init__(self, name: str, info: DeviceInfo, quick: bool, limit: float) -> None:
        self.name, self.info, self.quick, self.limit = name, info, quick, limit
        self.table = tuning.load(info)
        self.notes: dict[str, Any] = {"when": time.strftime("%Y-%m-%d"), "faster": {}}

    def run(self, wanted: Sequence[Parameter]) -> int:
        """Measure the peaks, then each parameter, saving the table after each; return the exit status."""
        where = tuning.path(self.info)
        print(f"{self.name}: {self.info.name} ({self.info.platform})\n  table {where}")
        peaks, trouble = self.ask({"what": "peaks"})
        if peaks is None:
            print(f"  peaks: {trouble}")
        else:
            self.table.peaks.update(peaks)
            copy, flops = peaks["copy"] / 1e9, peaks["flops"] / 1e9
            print(f"  copies {copy:.1f} GB/s, multiplies and adds {flops:.0f} GFLOP/s", flush=True)
        if not self.save():
            return 1
        for parameter in wanted:
            self.table.pop(parameter.name, None)
            if not self.save():
                return 1
            best = self.best_of(parameter)
            if best is not None:
                value, faster = best
                self.table[parameter.name] = value
                self.notes["faster"][parameter.name] = round(faster, 3)
            print(
                f"  {parameter.name}: {'default' if best is None else f'{best[0]}, {best[1]:.2f} times faster'}",
                flush=True,
            )
            if not self.save():
                return 1
        return 0

    def save(self) -> bool:
        """Write the table; print a message and return False if that fails."""
        try:
            tuning.save(self.info, self.table, self.notes)
        except OSError as error:
            print(f"  the table cannot be saved: {error}")
            return False
        return True

    def best_of(self, parameter: Parameter) -> tuple[int, float] | None:
        """Return the candidate that wins twice, and its speed-up; None if the default stays."""
        found = []
        for value in parameter.candidates:
            faster, note = self.verdict(parameter, value, "quick" if self.quick else "full")
            print(f"    {parameter.name} = {value}: {note}", flush=True)
            if faster is not None:
                found.append((faster, value))
        for _, value in sorted(found, reverse=True)[:2]:
            faster, note = self.verdict(parameter, value, "confirm")
            print(f"    {parameter.name} = {value}, once more: {note}", flush=True)
            if faster is not None:
                return value, faster
        return None

    def verdict(self, parameter: Parameter, value: int, effort: str) -> tuple[float | None, str]:
        """Measure a candidate; return its speed-up if it is to be kept, else None, and a sentence about it."""
        result, trouble = self.ask({"what": parameter.name, "value": value, "effort": effort})
        if result is None:
            return None, trouble
        if "differs" in result:
            return None, f"other results than the default: {', '.join(result['differs'])}"
        return judge(result["times"])

    def ask(self, task: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
        """Let a child process do a task.

        Return its answer, or None and what went wrong if it fails or takes too long.
        """
        question = json.dumps({"device": self.name, **task})
        return children.ask(("cltensor.tune", "--child", question), self.limit)


def judge(times: dict[str, list[float]]) -> tuple[float | None, str]:
    """Return the geometric mean of a candidate's speed-ups if it is to be kept, else None, and a sentence
    about them.
    """
    gains = {name: default / own for name, (default, own) in times.items()}
    mean = math.exp(sum(map(math.log, gains.values())) / len(gains))
    worst = min(gains, key=lambda name: gains[name])
    note = f"{mean:.2f} times the default's speed, {gains[worst]:.2f} in the worst case ({worst})"
    return (mean if mean >= _WORTH and gains[worst] >= _LOSS else None), note
