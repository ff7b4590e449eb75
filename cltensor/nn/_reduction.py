"""`torch.nn._reduction`: names and numbers of reductions, which libraries of losses ask for."""

from ..ops.nn.reductions import get_enum, legacy_get_enum, legacy_get_string

__all__ = ["get_enum", "legacy_get_enum", "legacy_get_string"]
