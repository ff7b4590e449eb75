"""Every test in this folder creates its tensors on the device named by `--device`."""

from kernel_fixtures import *  # noqa: F403 - pytest finds fixtures by their names here
