"""All operators: importing this package fills `row.ROWS`, `row.FUNCTIONS` and `row.METHODS`."""

import importlib.util
from typing import TYPE_CHECKING, NoReturn

# In an order in which each finds what it builds on.
from . import (  # isort: skip
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
    einsum,
    reduce,
    extremes,
    moments,
    scan,
    sort,
)
from .nn import (  # isort: skip
    activation,
    softmax,
    losses,
    normalization,
    dropout,
    embedding,
    padding,
    pixel,
    embedding_bag,
    grid,
    ctc,
    convolution,
    loss_numbers,
    max_pooling,
    average_pooling,
    recurrent,
)
from .random import (  # isort: skip
    draws,
    permutation,
    parametrised,
    fill,
    gamma,
)
from .linalg import (  # isort: skip
    table,
    lowrank,
    lobpcg,
    ldl,
)
from . import (  # isort: skip
    special,
    fft,
    stft,
    unique,
    statistics,
    distances,
    ranking,
    copies,
    polynomials,
    differences,
    fake_quantize,
    segments,
    positions,
    profiler,
    foreach,
    native,
    inner,
    host_loops,
    histogramdd,
    memory,
    removed,
    numpy_names,
    old_forms,
)

from .aten import aten  # isort: skip
from .namespaces import Namespace  # isort: skip


def load_library(path: str) -> NoReturn:
    """OSError: what is compiled against torch's own binaries cannot be loaded. (Programs say `torch.ops.load_library`.)"""
    raise OSError(f"Could not load this library: {path}: it is made for torch's own binaries")


if not TYPE_CHECKING:  # mypy would take any name for one of this package

    def __getattr__(name: str) -> Namespace:
        """Return the namespace of a library that defines operators, or will do so."""
        if name.startswith("__") or importlib.util.find_spec(f"{__name__}.{name}"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        made = globals()[name] = Namespace(name)
        return made


numpy_names.install(linalg=table.LINALG, fft=fft.FFT, special=special.SPECIAL)
old_forms.install()
row.name_apart()
