"""The namespaces of `torch.ops` that hold a program's operators: one per name, made when the name is first asked for.

Must not know any operator: library.py defines them.
"""

from __future__ import annotations

from typing import Any


class Namespace:
    """The operators of one library, as `torch.ops.<name>`."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __repr__(self) -> str:
        return f"<module 'torch.ops.{self.__name__}' from 'torch.ops'>"

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"'_OpNamespace' '{self.__name__}' object has no attribute '{name}'")
