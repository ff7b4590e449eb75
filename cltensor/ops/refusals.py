"""What torch answers where a pointwise op has no kernel for a dtype: mostly `"<name>_cpu" not implemented for '<dtype>'`."""

from __future__ import annotations

from ..dtypes import dtype

_KERNELS = {
    "addcmul": "addcmul_cpu_out",
    "clamp_max": "minimum_cpu",
    "clamp_min": "maximum_cpu",
    "digamma": "digamma",
    "floor_divide": "div_floor_cpu",
    "gelu": "GeluKernelImpl",
    "gelu_tanh": "GeluKernelImpl",
    "lerp": "lerp_kernel_tensor",
    "lerp_number": "lerp_kernel_scalar",
    "ndtr": "erf_vml_cpu",
    "nan_to_num": "nan_to_num",
    "pow": "pow",
    "softshrink": "softshrink_check",
    **{
        name: f"{name}_vml_cpu"
        for name in ("ceil", "erf", "erfc", "erfinv", "floor", "i0", "lgamma", "round", "trunc")
    },
}
_BOOL = {
    "neg": "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` or "
    "`logical_not()` operator instead.",
    "relu": "Boolean inputs not supported for relu",
}
_COMPLEX = {
    "deg2rad": "deg2rad is not supported for complex tensors.",
    "fmax": "fmax not implemented for complex tensors.",
    "fmin": "fmin not implemented for complex tensors.",
    "heaviside": "heaviside is not yet implemented for complex tensors.",
    "isneginf": "isneginf does not support complex inputs.",
    "isposinf": "isposinf does not support complex inputs.",
    "maximum": "maximum not implemented for complex tensors.",
    "minimum": "minimum not implemented for complex tensors.",
    "rad2deg": "rad2deg is not supported for complex tensors.",
}
_COMPLEX_UNIMPLEMENTED = {
    "ceil": "ceil is not supported for complex inputs",
    "floor": "floor is not supported for complex inputs",
    "relu": "clamp is not supported for complex types",
    "sign": "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead.",
    "signbit": "signbit is not implemented for complex tensors.",
    "trunc": "trunc is not supported for complex inputs",
}


def refusal(row: str, dt: dtype) -> Exception:
    """Make the error for a row that has no formula for the dtype."""
    name = row.removeprefix("special_")
    if dt.category == 0 and name in _BOOL:
        return RuntimeError(_BOOL[name])
    if dt.category == 3 and name in _COMPLEX:
        return RuntimeError(_COMPLEX[name])
    if dt.category == 3 and name in _COMPLEX_UNIMPLEMENTED:
        return NotImplementedError(_COMPLEX_UNIMPLEMENTED[name])
    kernel = _KERNELS.get(name, f"{name}_cpu")
    return NotImplementedError(f"\"{kernel}\" not implemented for '{dt.scalar_name}'")
