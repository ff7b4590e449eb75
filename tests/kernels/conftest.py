"""Tests of kernels against the plain way, in every schedule: on the device named by `--device`, or a backend that takes the schedule."""

from kernel_fixtures import *  # noqa: F403 - pytest finds fixtures by their names here
