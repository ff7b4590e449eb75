"""Counters of the runtime's work, as plain attributes: counting costs next to nothing.

Owns the names of the counters and how they are printed. Must not know when they are counted.
"""

from __future__ import annotations

from typing import Any


class Stats:
    """Counts since the start or the last `reset()`; not synchronised between threads."""

    __slots__ = (
        "build_seconds",
        "builds",
        "bytes_moved",
        "copies",
        "disk_hits",
        "launches",
        "replays",
        "splits",
    )

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Set every counter to zero."""
        self.launches = 0  # kernels run, on a queue or by a team
        self.replays = 0  # calls that repeated an earlier call's launches (Note [Replay])
        self.builds = 0  # programs compiled from source
        self.build_seconds = 0.0
        self.disk_hits = 0  # programs loaded from the disk cache
        self.bytes_moved = 0  # by transfers between host and device, and copies on a device
        self.copies = 0  # number of these transfers and copies
        self.splits: dict[str, int] = {}  # reason why a fusion ended -> count

    def snapshot(self) -> Snapshot:
        """Return the counters as they are now."""
        values: dict[str, Any] = {name: getattr(self, name) for name in sorted(self.__slots__)}
        values["splits"] = dict(self.splits)
        return Snapshot(values)


class Snapshot(dict[str, Any]):
    """A dict of counters that prints as a small table and can be subtracted from a later one."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __sub__(self, earlier: Snapshot) -> Snapshot:
        result = Snapshot()
        for name, value in self.items():
            if isinstance(value, dict):
                before = earlier[name]
                result[name] = {k: n for k, v in value.items() if (n := v - before.get(k, 0))}
            else:
                result[name] = value - earlier[name]
        return result

    def __repr__(self) -> str:
        width = max(map(len, self), default=0)
        lines = []
        for name, value in self.items():
            if isinstance(value, dict):
                lines.append(f"{name:{width}}  {sum(value.values())}")
                lines += [f"{'':{width}}    {n} x {why}" for why, n in value.items()]
            else:
                shown = f"{value:.3f}" if isinstance(value, float) else f"{value:,}"
                lines.append(f"{name:{width}}  {shown}")
        return "\n".join(lines)


STATS = Stats()
