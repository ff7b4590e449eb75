"""All operators: importing this package fills `row.ROWS`, `row.FUNCTIONS` and `row.METHODS`."""

import importlib

from . import activation, arithmetic, compare, convert, core, parts, power, row, shape, unary

for _name in (
    "index",
    "join",
    "matmul",
    "reduce",
    "extremes",
    "moments",
    "scan",
    "sort",
    "softmax",
    "losses",
    "random",
    "linalg",
    "special",
    "stft",
    "normalization",
    "dropout",
    "embedding",
    "unique",
    "statistics",
    "ranking",
    "padding",
    "copies",
    "pixel",
    "embedding_bag",
    "grid",
    "ctc",
    "convolution",
    "polynomials",
    "differences",
    "segments",
    "positions",
    "lowrank",
    "lobpcg",
    "host_loops",
    "loss_numbers",
    "ldl",
    "histogramdd",
    "max_pooling",
    "average_pooling",
    "recurrent",
):
    try:
        importlib.import_module(f"{__name__}.{_name}")
    except ModuleNotFoundError as _error:
        if _error.name != f"{__name__}.{_name}":
            raise

__all__ = ["activation", "arithmetic", "compare", "convert", "core", "parts", "power", "row", "shape", "unary"]
