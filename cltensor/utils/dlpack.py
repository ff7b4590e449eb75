"""`torch.utils.dlpack`: capsules on shared memory. The work is done in `interchange.py`."""

from ..interchange import from_dlpack, to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
