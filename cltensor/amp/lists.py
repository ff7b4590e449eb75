"""Which ops autocast changes, and how: torch's lists for the cpu and for GPUs.

LOWER: operands are cast to autocast's dtype. FLOAT32: to float32. WIDEST: to the widest dtype among them. DTYPE: the op
gets `dtype=float32` unless the caller gave a dtype. RESULT: operands stay, the result is cast to autocast's dtype,
because torch's op ends with a matrix product. BANNED: the op raises. A name in `linalg` or `fft` is written with that
prefix. An op that torch composes of listed ops and this library computes as one is listed as its parts are.
"""

from __future__ import annotations

LOWER = "lower"
FLOAT32 = "float32"
DTYPE = "dtype"
WIDEST = "widest"
RESULT = "result"
BANNED = "banned"

_BOTH_LOWER = """
    conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d prelu linear matmul __matmul__ __rmatmul__
    mm bmm addmm addbmm baddbmm linalg_vecdot linalg_multi_dot chain_matmul einsum scaled_dot_product_attention
    multi_head_attention_forward lstm rnn_tanh rnn_relu rnn_tanh_cell rnn_relu_cell
"""
_BOTH_FLOAT32 = """
    cosine_embedding_loss cross_entropy hinge_embedding_loss huber_loss kl_div l1_loss margin_ranking_loss mse_loss
    multi_margin_loss multilabel_margin_loss nll_loss poisson_nll_loss smooth_l1_loss soft_margin_loss triplet_margin_loss
    binary_cross_entropy_with_logits cdist
"""

LISTS = {
    "cpu": {
        LOWER: _BOTH_LOWER + "tensordot",
        FLOAT32: _BOTH_FLOAT32
        + """
    avg_pool3d max_pool3d adaptive_avg_pool3d adaptive_max_pool3d max_unpool2d max_unpool3d fractional_max_pool2d
    fractional_max_pool3d grid_sample binary_cross_entropy ctc_loss polar prod quantile nanquantile stft trace view_as_complex
    cholesky cholesky_inverse cholesky_solve inverse lu_solve orgqr ormqr pinverse geqrf qr svd triangular_solve
    fft_fft fft_ifft fft_fft2 fft_ifft2 fft_fftn fft_ifftn fft_rfft fft_irfft fft_rfft2 fft_irfft2 fft_rfftn fft_irfftn
    fft_hfft fft_ihfft linalg_cond linalg_matrix_rank linalg_solve linalg_cholesky linalg_cholesky_ex linalg_svdvals
    linalg_eigvals linalg_eigvalsh linalg_inv linalg_inv_ex linalg_householder_product linalg_tensorinv linalg_tensorsolve
    linalg_eig linalg_eigh linalg_qr linalg_svd linalg_lstsq
""",
        WIDEST: "stack cat concat concatenate index_copy gru gru_cell lstm_cell",
        RESULT: "linalg_pinv",
    },
    "cuda": {
        LOWER: _BOTH_LOWER + "addmv addr mv gru lstm_cell gru_cell",
        FLOAT32: _BOTH_FLOAT32
        + """
    acos arccos asin arcsin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow __pow__ __rpow__ softplus
    layer_norm native_layer_norm group_norm frobenius_norm nuclear_norm cosine_similarity dist pdist renorm logsumexp norm
    interpolate upsample upsample_nearest upsample_bilinear
""",
        DTYPE: "prod softmax log_softmax cumprod cumsum linalg_vector_norm linalg_matrix_norm sum",
        WIDEST: "addcdiv addcmul atan2 arctan2 bilinear cross dot vdot grid_sample index_put tensordot scatter_add stack cat concat concatenate",
        RESULT: "linalg_pinv",
        BANNED: "binary_cross_entropy",
    },
}


def policies() -> dict[str, dict[str, str]]:
    """Return the policy of each listed op: name -> device type -> LOWER, FLOAT32, ..."""
    table: dict[str, dict[str, str]] = {}
    for device_type, lists in LISTS.items():
        for policy, names in lists.items():
            for name in names.split():
                table.setdefault(name, {})[device_type] = policy
    return table
