"""Tests of kernels against plain computations, in every schedule: on the device named by `--device`, or on a backend
that uses the schedule."""

from kernel_fixtures import *  # noqa: F403 - pytest finds fixtures by their names here
