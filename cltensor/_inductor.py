"""`torch._inductor`: options of the compiler that generates torch's kernels. Nothing reads them: kernels are fused at
run time.

Owns the options that programs set before they call `torch.compile`.
"""

from __future__ import annotations

from types import SimpleNamespace

from .compiler import Options
from .reexport import expose

__all__ = ["config"]


class _Options(Options):
    """torch's options for kernels, with its defaults."""

    allow_buffer_reuse = True
    benchmark_kernel = False
    conv_1x1_as_mm = False
    coordinate_descent_check_all_directions = False
    coordinate_descent_search_radius = 1
    coordinate_descent_tuning = False
    cpp_wrapper = False
    debug = False
    emulate_precision_casts = False
    epilogue_fusion = True
    fallback_random = False
    force_disable_caches = False
    force_fuse_int_mm_with_mul = False
    freezing = False
    fx_graph_cache = True
    layout_optimization = True
    max_autotune = False
    max_autotune_gemm = False
    pattern_matcher = True
    reorder_for_compute_comm_overlap = False
    shape_padding = True
    use_mixed_mm = True
    cpp = SimpleNamespace(threads=-1, simdlen=None)
    triton = SimpleNamespace(
        autotune_pointwise=True,
        cudagraph_skip_dynamic_graphs=False,
        cudagraph_trees=True,
        cudagraphs=False,
        unique_kernel_names=True,
    )


config = _Options(f"{__name__}.config", "Options that programs set; nothing reads them.")
expose(globals(), {"config": config})
