"""All operators: importing this package fills `row.ROWS`, `row.FUNCTIONS` and `row.METHODS`."""

from typing import NoReturn

# In an order in which each finds what it builds on.
from . import (  # isort: skip
    activation,
    arithmetic,
    compare,
    convert,
    core,
    parts,
    power,
    row,
    shape,
    complex_numbers,
    unary,
    floats,
    index,
    diagonal,
    join,
    repeats,
    turns,
    meshes,
    matmul,
    contract,
    reduce,
    extremes,
    moments,
    scan,
    sort,
    softmax,
    losses,
    random,
    random_draw,
    random_fill,
    random_gamma,
    linalg,
    special,
    fft,
    stft,
    normalization,
    dropout,
    embedding,
    unique,
    statistics,
    ranking,
    padding,
    copies,
    pixel,
    embedding_bag,
    grid,
    ctc,
    convolution,
    polynomials,
    differences,
    segments,
    positions,
    lowrank,
    lobpcg,
    foreach,
    native,
    host_loops,
    loss_numbers,
    ldl,
    histogramdd,
    max_pooling,
    average_pooling,
    recurrent,
    memory,
    removed,
    numpy_names,
    old_forms,
)

from .aten import aten  # isort: skip


def load_library(path: str) -> NoReturn:
    """OSError: what is compiled against torch's own binaries cannot be loaded. (Programs say `torch.ops.load_library`.)"""
    raise OSError(f"Could not load this library: {path}: it is made for torch's own binaries")


numpy_names.install(linalg.LINALG, fft.FFT, special.SPECIAL)
old_forms.install()
