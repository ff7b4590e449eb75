"""torch's tensors, autograd and operators on any OpenCL device: `import cltensor as torch`.

Importing this package touches no OpenCL; the first tensor does.
"""

from __future__ import annotations

import builtins as _builtins
import math as _math
import sys as _sys
import typing as _typing

from . import autograd, dtypes
from .autograd import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from .dtypes import (
    bfloat16,
    bool,
    cdouble,
    cfloat,
    chalf,
    complex32,
    complex64,
    complex128,
    double,
    dtype,
    finfo,
    float,
    float16,
    float32,
    float64,
    get_default_dtype,
    half,
    iinfo,
    int,
    int8,
    int16,
    int32,
    int64,
    long,
    set_default_dtype,
    short,
    uint8,
    uint16,
    uint32,
    uint64,
)  # fmt: skip
from .errors import AcceleratorError, OutOfMemoryError
from .runtime import device, get_default_device, set_default_device
from .size import Size

from .tensor import Tensor  # isort: skip
from . import operators  # isort: skip
from . import creation  # isort: skip
from . import subclasses  # isort: skip
from . import amp, cuda, legacy, linalg, nn, opencl, random, special, storages  # isort: skip
from . import sparse  # isort: skip
from .amp import GradScaler, autocast  # isort: skip
from .assertions import *
from .legacy import *
from .placement import *
from .storages import *
from .switches import *
from .symbolic import *

from .ops import return_types  # isort: skip
from .reexport import SCRIPT as _SCRIPT  # isort: skip
from .reexport import absent as _absent  # isort: skip
from .reexport import expose as _expose  # isort: skip
from .runtime import device as _device  # isort: skip
from .runtime import device as DeviceObjType  # isort: skip
from .futures import Future  # isort: skip
from .memory_format import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    jagged,
    layout,
    memory_format,
    preserve_format,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
)  # isort: skip

from .interception import twin as _twin  # isort: skip
from .ops.numpy_names import answered as _answered  # isort: skip
from .ops.operands import check_tensor as _check_tensor  # isort: skip
from .ops.row import FUNCTIONS as _FUNCTIONS  # isort: skip

if _typing.TYPE_CHECKING:
    from . import (
        accelerator,
        array_api,
        backends,
        compiler,
        cpu,
        distributed,
        distributions,
        fft,
        func,
        futures,
        fx,
        hub,
        jit,
        library,
        masked,
        monitor,
        mps,
        mtia,
        multiprocessing,
        nested,
        onnx,
        optim,
        overrides,
        profiler,
        signal,
        testing,
        types,
        utils,
        xpu,
    )
    from ._surface import *
from .printing import set_printoptions  # isort: skip
from .random import (
    Generator,
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)  # isort: skip

from .runtime.stats import STATS as _STATS  # isort: skip
from .serialization import load, save  # isort: skip
from .amp.install import separate as _separate  # isort: skip
from .capture import capture  # isort: skip
from .interchange import from_dlpack, to_dlpack  # isort: skip
from . import torch_version, version  # isort: skip

autograd.engine.VMAP.append(lambda: _sys.modules[__name__].vmap)

__version__ = torch_version.TorchVersion(version.__version__)

PyTorchFileReader, PyTorchFileWriter = _absent(
    "cltensor.serialization",
    "PyTorchFileReader PyTorchFileWriter",
    "`load` and `save` read and write checkpoints",
)
legacy_contiguous_format = contiguous_format  # torch's older name
e, pi, inf, nan, newaxis = _math.e, _math.pi, _math.inf, _math.nan, None

globals().update(dtypes.FOREIGN)
globals().update(_FUNCTIONS)
globals().update(amp.SWITCHES)

# Methods of Tensor, and then functions of nn.functional, that torch also offers at its top level.
_METHODS = [
    "abs_",
    "acos_",
    "acosh_",
    "addmv_",
    "arccos_",
    "arccosh_",
    "arcsin_",
    "arcsinh_",
    "arctan_",
    "arctanh_",
    "as_strided_",
    "asin_",
    "asinh_",
    "atan_",
    "atanh_",
    "ceil_",
    "clamp_",
    "clamp_max_",
    "clamp_min_",
    "clip_",
    "conj_physical_",
    "cos_",
    "cosh_",
    "deg2rad_",
    "detach",
    "detach_",
    "erf_",
    "erfc_",
    "exp2_",
    "exp_",
    "expm1_",
    "fix_",
    "floor_",
    "frac_",
    "gcd_",
    "get_device",
    "i0_",
    "index_put_",
    "is_conj",
    "is_inference",
    "is_neg",
    "is_signed",
    "lcm_",
    "ldexp_",
    "log10_",
    "log1p_",
    "log2_",
    "log_",
    "logit_",
    "nan_to_num_",
    "neg_",
    "negative_",
    "rad2deg_",
    "reciprocal_",
    "resize_as_",
    "round_",
    "rsqrt_",
    "sigmoid_",
    "sin_",
    "sinc_",
    "sinh_",
    "sqrt_",
    "square_",
    "tan_",
    "tanh_",
    "trunc_",
    "xlogy_",
]
for _name in _METHODS:
    _method = getattr(Tensor, _name)
    globals()[_name] = _answered(_method, _name) if _name.endswith("_") else _method
for _name in (
    *_FUNCTIONS,
    *_METHODS,
):  # functions that are no attributes of their own module are pickled by their name here
    _fn = globals()[_name]
    if _fn.__qualname__ == _name and getattr(_sys.modules[_fn.__module__], _name, None) is not _fn:
        _fn.__module__ = __name__
_ACTIVATIONS = [
    "celu",
    "selu",
    "rrelu",
    "celu_",
    "relu_",
    "selu_",
    "rrelu_",
    "threshold_",
    "cosine_similarity",
    "pairwise_distance",
]
for _name in _ACTIVATIONS:
    globals()[_name] = getattr(nn.functional, _name)
for _name in ("celu", "rrelu", "selu"):  # traced, these are told apart from nn.functional's
    _fn = globals()[_name] = _answered(_twin(getattr(nn.functional, _name).__wrapped__), _name)
    _fn.__module__ = __name__
del _name
_separate()


def stats():
    """Return a snapshot of the counters: launches, builds, disk hits, copies, bytes moved, splits by reason."""
    return _STATS.snapshot()


def is_tensor(obj: object) -> _builtins.bool:
    """Tell whether an object is a tensor."""
    return isinstance(obj, Tensor)


def typename(obj: object) -> str:
    """Return a tensor's type as torch names it ("torch.FloatTensor"), another object's type with its module."""
    if isinstance(obj, Tensor):
        return obj.type()
    kind = obj if callable(obj) and hasattr(obj, "__qualname__") else type(obj)
    module = "" if kind.__module__ in (None, "builtins") else f"{kind.__module__}."
    return module + kind.__qualname__


def is_storage(obj: object) -> _builtins.bool:
    """Tell whether an object is a tensor's storage."""
    return isinstance(obj, storages.UntypedStorage | storages.TypedStorage)


def is_floating_point(input: Tensor) -> _builtins.bool:
    """Tell whether the dtype is a real floating type."""
    _check_tensor("is_floating_point", "input", 1, input)
    return input.dtype.is_floating_point


def is_complex(input: Tensor) -> _builtins.bool:
    """Tell whether the dtype is complex."""
    _check_tensor("is_complex", "input", 1, input)
    return input.dtype.is_complex


def is_nonzero(input: Tensor) -> _builtins.bool:
    """Tell whether the only element is not zero."""
    _check_tensor("is_nonzero", "input", 1, input)
    return input.is_nonzero()


def numel(input: Tensor) -> _builtins.int:
    """Return the number of elements."""
    _check_tensor("numel", "input", 1, input)
    return input.numel()


def broadcast_shapes(*shapes):
    """Return the shape that shapes, or sizes of one dimension, broadcast to.

    ValueError for a negative size, RuntimeError for what is no shape or does not broadcast.
    """
    from .layouts import joint_shape

    return Size(joint_shape(shapes))


def is_same_size(input: Tensor, other: Tensor) -> _builtins.bool:
    """Tell whether shapes agree."""
    return input.is_same_size(other)


def get_device_module(device: _typing.Any = None) -> _typing.Any:
    """Return the module for a type of device, `cpu`, `cuda`, ...; by default for the best device available.

    RuntimeError for a type without a module, and for anything that is not a device.
    """
    if isinstance(device, _builtins.int) or not isinstance(device, str | _device | None):
        raise RuntimeError(f"Invalid value of device '{device}', expect torch.device, str, or None")
    kind = ("cuda" if cuda.is_available() else "cpu") if device is None else _device(device).type
    module = getattr(_sys.modules[__name__], kind, None)
    if module is None:
        raise RuntimeError(
            f"Device '{kind}' does not have a corresponding module registered as 'torch.{kind}'."
        )
    return module


def get_num_threads() -> _builtins.int:
    """Return how many threads work on the cpu device."""
    from .runtime import get_backend

    backend = get_backend(device("cpu"))
    return backend.info.compute_units if backend.team is None else backend.team.threads


def set_num_threads(n: _builtins.int) -> None:
    """Let at most `n` threads work on the cpu device; without effect where an OpenCL driver owns the threads.

    RuntimeError for anything but a positive int.
    """
    from .ops.replay import forget
    from .runtime import get_backend, loader, survives_fork

    if n.__class__ is _builtins.bool or not hasattr(n, "__index__"):
        raise RuntimeError(f"set_num_threads expects an int, but got {type(n).__name__}")
    n = n.__index__()
    if n <= 0:
        raise RuntimeError("set_num_threads expects a positive integer")
    if n >> 63:
        raise ValueError("Overflow when unpacking long long")
    if loader.forked() and not survives_fork():  # this process cannot compute anything
        return
    backend = get_backend(device("cpu"))
    if backend.team is not None:
        with backend.lock:
            backend.team.threads = n
        forget()


_expose(
    globals(),
    {
        "functional": "atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod cdist chain_matmul "
        "einsum istft lu meshgrid norm pca_lowrank split stft svd_lowrank tensordot unique unique_consecutive unravel_index",
        "return_types": return_types,
    },
)

# Modules loaded when they are first used, so that importing the package is quick.
_LATE = (
    "_C",
    "_VF",
    "__config__",
    "__future__",
    "_custom_ops",
    "_dynamo",
    "_functorch",
    "_guards",
    "_higher_order_ops",
    "_inductor",
    "_jit_internal",
    "_subclasses",
    "_tensor",
    "_tensor_str",
    "_utils",
    "_vmap_internals",
    "accelerator",
    "ao",
    "array_api",
    "backends",
    "compiler",
    "cpu",
    "distributed",
    "distributions",
    "fft",
    "func",
    "futures",
    "fx",
    "hub",
    "jit",
    "library",
    "masked",
    "monitor",
    "mps",
    "mtia",
    "multiprocessing",
    "nested",
    "onnx",
    "optim",
    "overrides",
    "profiler",
    "quantization",
    "quasirandom",
    "signal",
    "testing",
    "types",
    "utils",
    "xpu",
)
_SELDOM = (
    "FatalError batch_norm_update_stats ccol_indices_copy col_indices_copy crow_indices_copy dequantize has_lapack has_mkl has_openmp "
    "has_spectral indices_copy init_num_threads is_distributed is_vulkan_available qscheme resize_as_sparse_ row_indices_copy "
    "sym_constrain_range sym_constrain_range_for_size values_copy"
)
# Names available here that modules loaded late define, with the module.
_LENT = {
    **dict.fromkeys(_SCRIPT.split(), "_C"),
    **dict.fromkeys(_SELDOM.split(), "seldom"),
    "DisableTorchFunction": "_C",
    "DisableTorchFunctionSubclass": "_C",
    "DispatchKey": "_C",
    "DispatchKeySet": "_C",
    "Event": "cuda.streams",
    "Stream": "cuda.streams",
    "ScriptFunction": "jit",
    "ScriptModule": "jit",
    "Tag": "library",
    "compile": "compiler",
    "cond": "_higher_order_ops",
    "fork": "jit",
    "vmap": "func",
    "while_loop": "_higher_order_ops",
    "wait": "jit",
}


if not _typing.TYPE_CHECKING:  # to a type checker every name would exist

    def __getattr__(name: str) -> object:
        import importlib

        if name in _LATE:
            return importlib.import_module(f"{__name__}.{name}")
        if name == "torch":  # torch has itself as an attribute, which some annotations use
            return _sys.modules[__name__]
        if name in _LENT:
            return getattr(importlib.import_module(f"{__name__}.{_LENT[name]}"), name)
        if name == "Storage":  # the storage class of the default dtype
            return next(c for c in storages.CLASSES.values() if c.dtype is get_default_dtype())
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE, *_LENT, "Storage"})
