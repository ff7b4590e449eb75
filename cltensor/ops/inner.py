"""torch's underscored functions, which torch's own Python code and other libraries call, with arguments in other forms.

The public functions compute the results; functions that also return what backward saves are in native.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from .. import dtypes, layouts
from ..autograd import record as graph
from ..autograd.mode import unrecorded
from ..dtypes import dtype
from . import writes
from .core import Tensor
from .dims import one_dim
from .nn.activation import gelu
from .nn.attention import scaled_dot_product_attention
from .nn.average_pooling import adaptive_avg_pool2d, adaptive_avg_pool3d
from .nn.embedding import renormalize
from .nn.embedding_bag import reduce_bags
from .nn.interpolate import resampled
from .nn.softmax import log_softmax_back, softmax_back
from .norms import norm
from .refusals import raising
from .row import FUNCTIONS, METHODS, operator, public, titled
from .unique import unique
from .values import into

# --- weights by direction and magnitude ---------------------------------------------------------


@public(method=False)
def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """Return the norms over all dimensions but one, which are kept; over all for dim -1."""
    if dim == -1:
        return norm(v, pow)
    others = [d for d in range(v.ndim) if d != dim]
    return norm(v, pow, others, True) if others else v.abs()


@public(method=False)
def _weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """Return g * v / |v|."""
    return v * (g / norm_except_dim(v, 2, dim))


@public(method=False)
def _weight_norm_interface(v: Tensor, g: Tensor, dim: int = 0) -> tuple[Tensor, Tensor]:
    """Return g * v / |v|, and |v|."""
    size = norm_except_dim(v, 2, dim)
    return v * (g / size), size


# --- layers -------------------------------------------------------------------------------------


@public(method=False)
def _embedding_bag(
    weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False, mode: int = 0, sparse: bool = False,
    per_sample_weights: Tensor | None = None, include_last_offset: bool = False, padding_idx: int = -1,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Return `embedding_bag`; here a padding_idx of -1 means no padding index."""
    padding = None if padding_idx == -1 else padding_idx
    return reduce_bags(
        weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding
    )  # fmt: skip


@public(method=False)
def embedding_renorm_(input: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Scale the rows named by `indices` down to a norm of at most `max_norm`, in place."""
    renormalize(input, indices, max_norm, norm_type)
    return input


@public()
def _addmm_activation(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1, use_gelu: bool = False, out: Tensor | None = None
) -> Tensor:  # fmt: skip
    """Return `addmm`, and `relu` of it or `gelu`."""
    value = FUNCTIONS["addmm"](input, mat1, mat2, beta=beta, alpha=alpha)
    value = gelu(value) if use_gelu else value.relu()
    return into(value, out, "_addmm_activation", (input, mat1, mat2))


@public(method=False)
def _fused_sdp_choice(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0, is_causal: bool = False, *,
    scale: float | None = None, enable_gqa: bool = False,
) -> int:  # fmt: skip
    """Return the `nn.attention.SDPBackend` number: 1 (flash) where no matrix of scores is kept, else 0 (math)."""
    plain = attn_mask is None or not attn_mask.requires_grad
    return int(plain and not dropout_p and query.ndim == 4 and query.shape[-1] == value.shape[-1])


@public(method=False)
def _scaled_dot_product_attention_math(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0, is_causal: bool = False,
    dropout_mask: Tensor | None = None, *, scale: float | None = None, enable_gqa: bool = False,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return attention and its weights, before dropout. A mask is added, whatever its dtype."""
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    if enable_gqa:
        repeats = query.shape[-3] // key.shape[-3]
        key, value = (x.repeat_interleave(repeats, -3) for x in (key, value))
    scores = (query * math.sqrt(factor)) @ (key.mT * math.sqrt(factor))
    if is_causal:
        scores = scores.masked_fill(_ahead(scores), -math.inf)
    if attn_mask is not None:
        scores = scores + attn_mask
    weights = FUNCTIONS["_safe_softmax"](scores, -1)
    kept = weights
    if dropout_mask is not None:
        kept = weights.masked_fill(~dropout_mask, 0.0) / (1 - dropout_p)
    elif dropout_p:
        kept = FUNCTIONS["dropout"](weights, dropout_p, True)
    return kept @ value, weights


@public(method=False)
def _scaled_dot_product_flash_attention_for_cpu(
    query: Tensor, key: Tensor, value: Tensor, dropout_p: float = 0.0, is_causal: bool = False, *,
    attn_mask: Tensor | None = None, scale: float | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return attention, and the logarithm of each row's sum of exponentials. RuntimeError for dropout."""
    if dropout_p:
        raise RuntimeError(
            "scaled_dot_product_attention_flash_attention: Currently do not support dropout > 0"
        )
    out = scaled_dot_product_attention(
        query, key, value, attn_mask, is_causal=is_causal, scale=scale
    )
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = (query.detach() @ key.detach().mT) * factor
    if is_causal:
        scores = scores.masked_fill(_ahead(scores), -math.inf)
    if attn_mask is not None:
        scores = scores + attn_mask
    return out, scores.float().logsumexp(-1)


def _ahead(scores: Tensor) -> Tensor:
    """Return a mask of the scores whose key comes after the query (for causal attention)."""
    return scores.new_ones(scores.shape[-2:], dtype=dtypes.bool).triu(1)


@public(method=False)
def _convolution(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, transposed: bool, output_padding: Any,
    groups: int, benchmark: bool, deterministic: bool, cudnn_enabled: bool, allow_tf32: bool = True,
) -> Tensor:  # fmt: skip
    """Return `convolution`; the options for other devices (cuDNN, TF32) have no effect."""
    return FUNCTIONS["convolution"](
        input, weight, bias, stride, padding, dilation, transposed, output_padding, groups
    )


@public(method=False)
def _adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Return `adaptive_avg_pool2d`."""
    return adaptive_avg_pool2d(input, output_size)


@public(method=False)
def _adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Return `adaptive_avg_pool3d`."""
    return adaptive_avg_pool3d(input, output_size)


@public(method=False)
def _softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: dtype) -> Tensor:  # fmt: skip
    """Return the gradient of softmax's input from its output and the output's gradient."""
    at = layouts.wrap_dim(dim, output.ndim)
    return softmax_back(SimpleNamespace(result=output, dim=at), grad_output).to(input_dtype)


@public(method=False)
def _log_softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: dtype) -> Tensor:  # fmt: skip
    """Return the gradient of log_softmax's input from its output and the output's gradient."""
    at = layouts.wrap_dim(dim, output.ndim)
    return log_softmax_back(SimpleNamespace(result=output, dim=at), grad_output).to(input_dtype)


@public(method=False)
def _masked_softmax(
    input: Tensor, mask: Tensor, dim: int | None = None, mask_type: int | None = None
) -> Tensor:
    """Return softmax over the elements that the mask does not hide; zeros where it hides all.

    `mask_type` 0: the mask is one of (L, L) for all scores (B, heads, L, L), 1: of keys (B, L), 2: of the input's own shape.
    """
    if mask.dtype is not dtypes.bool:
        raise RuntimeError("Mask should be a boolean tensor")
    if mask_type == 1 and mask.shape != input.shape:
        mask = mask[:, None, None, :]
    kept = input.masked_fill(mask.expand(input.shape), -math.inf)
    return FUNCTIONS["_safe_softmax"](kept, input.ndim - 1 if dim is None else dim)


@public(method=False)
def _prelu_kernel(input: Tensor, weight: Tensor) -> Tensor:
    """Return `prelu` of slopes that broadcast."""
    return FUNCTIONS["where"](input > 0, input, weight * input)


def _dropping(name: str) -> None:
    """Add a form of dropout that overwrites its input."""
    drop = FUNCTIONS[name]

    def dropping(input: Tensor, p: float, train: bool) -> Tensor:
        return input.copy_(drop(input, p, train)) if train else input

    public(f"{name}_", method=False)(titled(dropping, f"{name}_", f"In-place form of `{name}`."))


for _name in ("alpha_dropout", "feature_dropout", "feature_alpha_dropout"):
    _dropping(_name)


@operator()
def max_pool2d_with_indices_backward(
    grad_output: Tensor, input: Tensor, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, indices: Tensor
) -> Tensor:  # fmt: skip
    """Return gradients at the positions that their windows' largest elements had in their planes, zeros elsewhere."""
    planes = [t.flatten(-2) for t in (indices, grad_output)]
    value = input.new_zeros(input.shape).flatten(-2).scatter_add(-1, *planes)
    return value.view(input.shape)


@operator()
def _upsample_bilinear2d_aa(
    input: Tensor, output_size: Sequence[int] | None, align_corners: bool, scales_h: Any = None, scales_w: float | None = None, *,
    scale_factors: Sequence[float] | None = None, out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Return `interpolate` with antialias, to a size, and then perhaps by scales of it; or by two scale factors, which may stand for scales_h."""
    if isinstance(scales_h, list | tuple):
        scales_h, scale_factors = None, scales_h
    size, factors = output_size or (), None
    if scales_h is not None and scales_w is not None:
        factors = [scales_h, scales_w]
    if (output_size is None) == (scale_factors is None):
        raise RuntimeError("Must specify exactly one of output_size and scale_factors")
    if input.ndim != 4:
        raise RuntimeError(f"It is expected input_size equals to 4, but got size {input.ndim}")
    if scale_factors is not None:
        factors = [*scale_factors]
        size = [int(n * f) for n, f in zip(input.shape[2:], factors, strict=False)]
    if len(size) != 2:
        raise RuntimeError(f"It is expected output_size equals to 2, but got size {len(size)}")
    value = resampled(input, size, factors, "bilinear", align_corners, True)
    return into(value, out, "_upsample_bilinear2d_aa", (input,))


# --- distinct values, parts and products --------------------------------------------------------


@public(method=False)
def _unique2(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """Return `unique`'s three results; those not asked for are empty tensors."""
    values, *more = unique(input, sorted, True, True)
    none = more[0].new_empty(0)
    return (
        values,
        more[0] if return_inverse else none,
        more[1] if return_counts else none,
    )


@public(method=False)
def _unique(
    input: Tensor, sorted: bool = True, return_inverse: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the distinct values, and each element's position among them (empty unless asked for)."""
    return _unique2(input, sorted, return_inverse)[:2]


@public(method=False)
def _shape_as_tensor(input: Tensor) -> Tensor:
    """Return the tensor's shape as a tensor."""
    return FUNCTIONS["tensor"](list(input.shape), dtype=dtypes.int64)


@public(method=False)
def _dim_arange(like: Tensor, dim: int) -> Tensor:
    """Return 0, 1, 2, … along a dimension of `like`."""
    return FUNCTIONS["arange"](like.shape[dim], device=like.device)


@public(method=False)
def _aminmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return `aminmax`."""
    return tuple(FUNCTIONS["aminmax"](input, dim=dim, keepdim=keepdim))


@public(method=False)
def _euclidean_dist(x1: Tensor, x2: Tensor) -> Tensor:
    """Return the distances between all pairs of rows, from one matrix product."""
    return FUNCTIONS["cdist"](x1, x2, 2.0, "use_mm_for_euclid_dist")


@public()
def _is_all_true(input: Tensor) -> Tensor:
    """Return whether all elements of a bool tensor are True."""
    _refuse_numbers(input)
    return input.all()


@public()
def _is_any_true(input: Tensor) -> Tensor:
    """Return whether any element of a bool tensor is True."""
    _refuse_numbers(input)
    return input.any()


def _refuse_numbers(input: Tensor) -> None:
    if input.dtype is not dtypes.bool:
        raise RuntimeError(
            "Expected self.scalar_type() == at::kBool to be true, but got false.  "
            "(Could this error message be improved?  If so, please report an enhancement request to PyTorch.)"
        )


@public(method=False)
def _trilinear(
    i1: Tensor, i2: Tensor, i3: Tensor, expand1: Sequence[int], expand2: Sequence[int], expand3: Sequence[int], sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> Tensor:  # fmt: skip
    """Return the sum over the dimensions `sumdim` of the product of three tensors, each with size-1 dimensions
    inserted.
    """
    product = _expanded(i1, expand1) * _expanded(i2, expand2) * _expanded(i3, expand3)
    return product.sum(tuple(sumdim)) if sumdim else product


def _expanded(x: Tensor, dims: Sequence[int]) -> Tensor:
    for dim in sorted(dims):
        x = x.unsqueeze(dim)
    return x


@public(method=False)
def _unsafe_index(input: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    """Return `input[indices]`, where None takes a whole dimension."""
    return input[tuple([slice(None) if i is None else i for i in indices])]


@public(method=False)
def _unsafe_index_put(
    input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False
) -> Tensor:
    """Return `index_put`."""
    return FUNCTIONS["index_put"](input, indices, values, accumulate)


def _inside(
    name: str, input: Tensor, indices: Sequence[Tensor | None]
) -> tuple[Tensor | None, ...]:
    """Move indices to where there is an element. RuntimeError for dtypes that are no indices."""
    for i in indices:
        if i is not None and i.dtype not in (dtypes.int64, dtypes.int32):
            raise RuntimeError(f"{name} found unexpected index type {i.dtype.scalar_name}")
    return tuple([None if i is None else i.clamp(-n, n - 1) for i, n in zip(indices, input.shape)])


@public(method=False)
def _unsafe_masked_index(
    input: Tensor, mask: Tensor, indices: Sequence[Tensor | None], fill: complex
) -> Tensor:
    """Return `input[indices]` where the mask is True, elsewhere `fill`; indices there may be out of range."""
    if not input.numel():  # then torch takes dimensions without an index to have no elements
        given = [d < len(indices) and indices[d] is not None for d in range(input.ndim)]
        filled = input.new_full([int(has) for has in given], fill)
        return _unsafe_index(filled, _inside("_unsafe_masked_index", filled, indices))
    inside = _inside("_unsafe_masked_index", input, indices)
    return _unsafe_index(input, inside).masked_fill(mask.logical_not(), fill)


@public(method=False)
def _unsafe_masked_index_put_accumulate(
    input: Tensor, mask: Tensor, indices: Sequence[Tensor | None], values: Tensor
) -> Tensor:
    """Return `input` with the values added at `indices` where the mask is True; elsewhere indices may be out of range."""
    inside = _inside("_unsafe_masked_index_put_accumulate", input, indices)
    if not input.numel():
        return input.clone()
    return FUNCTIONS["index_put"](input, inside, values.masked_fill(mask.logical_not(), 0), True)


@public(method=False)
def _index_put_impl_(
    input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False, unsafe: bool = False
) -> Tensor:  # fmt: skip
    """Do `index_put_`."""
    return METHODS["index_put_"](input, indices, values, accumulate)


@public(method=False)
def _int_mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the product of matrices of 8 bits in 32."""
    if input.dtype not in (dtypes.int8, dtypes.uint8):
        raise RuntimeError(f"int_mm_out_cpu: Expected self dtype to be int8 or uint8 but got {input.dtype.scalar_name.lower()}")  # fmt: skip
    if mat2.dtype is not dtypes.int8:
        raise RuntimeError(f"int_mm_out_cpu: Expected mat2 dtype to be of type int8 but got {mat2.dtype.scalar_name.lower()}")  # fmt: skip
    value = input.to(dtypes.int32) @ mat2.to(dtypes.int32)
    for dim, n in enumerate(value.shape if out is not None else ()):
        if out.shape[dim] != n:
            raise RuntimeError(f"int_mm_out_cpu: Expected result.size({dim}) to be {n} but got {out.shape[dim]}")  # fmt: skip
    return writes.deliver(value, out, "_int_mm", (input, mat2))


@operator("slice")
def _every(
    input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """Return the view of every `step`-th index of a dimension from `start` to before `end`."""
    if not input.ndim:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    at = one_dim("slice", dim, input.ndim)
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    index = *[slice(None)] * at, slice(start, end, step)
    return input[index]


@public(method=False)
def _stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Return `stack`."""
    return FUNCTIONS["stack"](tensors, dim)


_refuse = raising("derivative for aten::_chunk_cat is not implemented")


@public(method=False)
def _chunk_cat(
    tensors: Sequence[Tensor], dim: int, num_chunks: int, *, out: Tensor | None = None
) -> Tensor:
    """Split each tensor along `dim` into `num_chunks` chunks, zero-padded at the end, and join all tensors' first
    chunks, etc.

    Returns (..., num_chunks, n): the dimensions before `dim`, in which all tensors agree, then each chunk flattened.
    """
    if num_chunks < 1:
        raise RuntimeError("_chunk_cat expects positive num_chunks")
    if not len(tensors):
        raise RuntimeError("_chunk_cat expects a non-empty input tensor list")
    dim = one_dim("_chunk_cat", dim, tensors[0].ndim)
    for t in tensors:
        if not t.numel():
            raise RuntimeError("_chunk_cat expects non-empty tensor")
        if t.dtype is not tensors[0].dtype:
            raise RuntimeError("_chunk_cat expects all input tensors with the same dtype")
        if t.shape[:dim] != tensors[0].shape[:dim]:
            raise RuntimeError(
                "_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors"
            )
    rows = []
    with unrecorded():
        for t in tensors:
            ends = [*[0, 0] * (t.ndim - dim - 1), 0, -t.shape[dim] % num_chunks]
            whole = FUNCTIONS["constant_pad_nd"](t, ends)
            rows.append(whole.reshape(*t.shape[:dim], num_chunks, -1))
        value = FUNCTIONS["cat"](rows, dim + 1)
    if graph.needs_grad(*tensors):
        graph.record("NotImplemented", tuple(tensors), value, _refuse)
    return into(value, out, "_chunk_cat", tuple(tensors))


@public(method=False)
def _logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """Return `logcumsumexp`."""
    return FUNCTIONS["logcumsumexp"](input, dim)


@public()
def _conj(input: Tensor) -> Tensor:
    """Return `conj`."""
    return FUNCTIONS["conj"](input)


@public()
def _conj_physical(input: Tensor) -> Tensor:
    """Return `conj_physical`."""
    return FUNCTIONS["conj_physical"](input)


def _casting(name: str, kind: dtype) -> None:
    def cast(input: Tensor, non_blocking: bool = False) -> Tensor:
        return input.to(kind, non_blocking=non_blocking)

    public(f"_cast_{name}", method=False)(
        titled(cast, f"_cast_{name}", f"Convert to {kind.name}, as `to` does.")
    )


for _name, _kind in {
    "Byte": dtypes.uint8, "Char": dtypes.int8, "Short": dtypes.int16, "Int": dtypes.int32, "Long": dtypes.int64, "Half": dtypes.float16,
    "Float": dtypes.float32, "Double": dtypes.float64,
}.items():  # fmt: skip
    _casting(_name, _kind)
