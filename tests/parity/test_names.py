"""Modules and public names of torch that programs import: each is here, under torch's path."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from parity.oracle import th
from support import ct

# Modules -> names of theirs that are left out, with the reason in README's limits: quantised tensors, Triton, CUDA's tools.
DEVICES: dict[str, str] = {
    "accelerator": "",
    "accelerator.graphs": "",
    "accelerator.memory": "",
    "backends.cusparselt": "",
    "backends.kleidiai": "",
    "backends.mkl": "",
    "backends.mps": "",
    "backends.nnpack": "",
    "cpu": "",
    "cuda": "jiterator nccl nvtx profiler sparse tunable",  # modules, which stand below
    "cuda.amp.autocast_mode": "",
    "cuda.amp.common": "",
    "cuda.amp.grad_scaler": "",
    "cuda.comm": "",
    "cuda.gds": "",
    "cuda.graphs": "",
    "cuda.green_contexts": "",
    "cuda.jiterator": "",
    "cuda.memory": "",
    "cuda.nccl": "",
    "cuda.nvtx": "",
    "cuda.profiler": "",
    "cuda.random": "",
    "cuda.sparse": "",
    "cuda.streams": "",
    "cuda.tunable": "",
    "mps": "",
    "mps.event": "",
    "mps.profiler": "",
    "mtia": "",
    "mtia.memory": "",
    "mtia.mtia_graph": "",
    "nn.parallel": "",
    "nn.parallel.comm": "",
    "nn.parallel.parallel_apply": "",
    "nn.parallel.replicate": "",
    "xpu": "",
    "xpu.graphs": "",
    "xpu.memory": "",
    "xpu.random": "",
    "xpu.streams": "",
}
MODULES = DEVICES


def public(module: Any) -> set[str]:
    """Return a module's public names: those it lists, or else those that it defines."""
    if hasattr(module, "__all__"):
        return set(module.__all__)
    own = (k for k, v in vars(module).items() if getattr(v, "__module__", "") == module.__name__)
    return {k for k in own if k[0] != "_"}


@pytest.mark.ours
@pytest.mark.parametrize("path", MODULES)
def test_names_are_there(path: str) -> None:
    ours, theirs = (importlib.import_module(f"{m.__name__}.{path}") for m in (ct, th))
    asked = public(theirs) - set(MODULES[path].split())
    assert not sorted(name for name in asked if not hasattr(ours, name))


@pytest.mark.ours
@pytest.mark.parametrize(
    "call",
    [
        "cuda.get_arch_list()", "cuda.get_gencode_flags()", "cuda.memory_stats()", "cuda.memory_stats_as_nested_dict()", "cuda.has_magma",
        "cuda.default_generators", "cuda.host_memory_stats()", "cuda.get_rng_state_all()", "cuda.max_memory_reserved()", "cuda.init()",
        "cuda.can_device_access_peer(0, 1)", "cuda.set_per_process_memory_fraction(0.5)", "cuda.get_sync_debug_mode()", "cuda.cudart()",
        "cuda.utilization()", "cuda.temperature()", "cuda.power_draw()", "cuda.clock_rate()", "cuda.mem_get_info()",
        "cuda.device_of(torch.ones(2)).__enter__()", "cuda.profiler.start()", "cuda.current_blas_handle()", "cuda.memory_usage()",
        "accelerator.get_memory_info()", "accelerator.current_stream()", "accelerator.memory_stats()", "accelerator.get_device_capability()",
        "accelerator.reset_accumulated_memory_stats()", "mps.synchronize()", "mps.current_allocated_memory()", "mps.seed()", "xpu.init()",
        "xpu.memory_allocated()", "xpu.get_device_name()", "xpu.memory_stats()", "xpu.temperature()", "xpu.empty_cache()", "xpu.get_arch_list()",
        "mtia.is_available()", "mtia.memory_stats()", "mtia.get_rng_state_all()", "mtia.synchronize()", "mtia.init()", "mtia.is_bf16_supported()",
        "backends.cusparselt.version()", "backends.cusparselt.is_available()", "backends.miopen.immediate", "backends.kleidiai.is_available()",
        "backends.cuda.is_flash_attention_available()", "backends.cuda.preferred_linalg_library('magma')",
        "backends.cuda.preferred_linalg_library('x')", "compiler.get_default_backend()", "compiler.save_cache_artifacts()",
    ],
)  # fmt: skip
def test_without_devices_they_answer_as_torch_does(call: str) -> None:
    def outcome(torch: Any) -> Any:
        try:
            return eval(f"torch.{call}", {"torch": torch})
        except Exception as error:
            return type(error)

    for torch in (ct, th):
        importlib.import_module(f"{torch.__name__}.mtia")
    assert outcome(ct) == outcome(th)


@pytest.mark.ours
def test_numpy_functions_take_tensors() -> None:
    import numpy as np

    made = []
    for torch in (th, ct):
        wrapped = torch.compiler.wrap_numpy(lambda x, y: (np.maximum(x, y["k"]), 3))
        value, number = wrapped(torch.tensor([1.0, 5.0]), {"k": torch.tensor([2.0, 4.0])})
        assert isinstance(value, torch.Tensor)
        made.append((value.tolist(), number))
    assert made[0] == made[1] == ([2.0, 5.0], 3)
