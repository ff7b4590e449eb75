"""The kernel benchmark suite: `python -m benchmarks --help`."""
