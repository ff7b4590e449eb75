"""Processes of a run, and how they fail."""

from . import errors

__all__ = ["errors"]
