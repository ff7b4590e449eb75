"""`torch.torch_version`: the version of torch's interface, which compares as versions do.

Owns TorchVersion. It does not know which version there is (version.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["TorchVersion"]


class TorchVersion(str):
    """A version string that compares by the rules of PEP 440 with strings, versions and tuples of numbers.

    `TorchVersion("2.13.0") >= (2, 2)` and `> "2.9"` are both true. With a string that is no version, strings are
    compared. With other values that are not iterable, comparisons return NotImplemented: `<` raises TypeError, `==`
    is false.
    """

    __slots__ = ()
    __hash__ = str.__hash__

    def _compare(self, other: Any, name: str) -> Any:
        # Imported late: most programs compare no versions.
        from packaging.version import InvalidVersion, Version

        if not isinstance(other, str | Version):
            if not isinstance(other, Iterable):
                return NotImplemented
            other = ".".join(str(part) for part in other)
        try:
            return getattr(Version(str(self)), name)(
                other if isinstance(other, Version) else Version(other)
            )
        except InvalidVersion:
            return getattr(super(), name)(other)

    def __lt__(self, other: Any) -> Any:
        return self._compare(other, "__lt__")

    def __le__(self, other: Any) -> Any:
        return self._compare(other, "__le__")

    def __gt__(self, other: Any) -> Any:
        return self._compare(other, "__gt__")

    def __ge__(self, other: Any) -> Any:
        return self._compare(other, "__ge__")

    def __eq__(self, other: object) -> Any:
        return self._compare(other, "__eq__")

    def __ne__(self, other: object) -> Any:
        return self._compare(other, "__ne__")
