"""Modules and public names of torch that programs import: each is here, under torch's path."""

from __future__ import annotations

import importlib
import time
from datetime import datetime, timedelta
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
OTHERS: dict[str, str] = {
    "autograd.profiler_legacy": "",
    "autograd.profiler_util": "EventMetadata FormattedTimesMixin MemRecordsAcc StringTable",
    "distributed.algorithms.ddp_comm_hooks.debugging_hooks": "",
    "masked": "",
    "masked.maskedtensor.core": "",
    "masked.maskedtensor.creation": "",
    "monitor": "",
    "multiprocessing.pool": "clean_worker",
    "multiprocessing.queue": "ConnectionWrapper",
    "multiprocessing.spawn": "",
    "nn.modules.linear_cross_entropy": "",
    "serialization": "mkdtemp storage_to_tensor_type validate_cuda_device validate_hpu_device",
    "signal.windows.windows": "",
    "utils": "",
    "utils.benchmark.utils.common": "TaskSpec",
    "utils.benchmark.utils.compare": "Colorize",
    "utils.benchmark.utils.fuzzer": "",
    "utils.benchmark.utils.timer": "",
    "utils.dlpack": "",
    "utils.file_baton": "",
    "utils.flop_counter": "",
}
MODULES = DEVICES | OTHERS


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
        "accelerator.empty_cache()", "accelerator.current_device_index()", "accelerator.set_device_index(0)",
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


TOP = [
    "has_mkl", "has_lapack", "has_openmp", "has_spectral", "is_distributed", "is_vulkan_available", "dequantize", "detach_copy",
    "values_copy", "indices_copy", "crow_indices_copy", "col_indices_copy", "ccol_indices_copy", "row_indices_copy", "init_num_threads",
    "batch_norm_update_stats", "resize_as_sparse_", "sym_constrain_range", "sym_constrain_range_for_size", "qscheme", "FatalError",
    "DispatchKey", "DispatchKeySet", "DisableTorchFunction", "DisableTorchFunctionSubclass", "Event", "Stream", "monitor", "mtia",
]  # fmt: skip


@pytest.mark.ours
def test_names_of_the_top_level_are_there() -> None:
    assert not [n for n in TOP if not (hasattr(ct, n))]
    outs = [n for n in dir(th.return_types) if n.endswith("_out")]
    present = [n for n in outs if hasattr(ct.return_types, n.removesuffix("_out"))]
    assert len(present) > 15
    for name in present:
        fields = getattr(th.return_types, name).__match_args__
        ours = getattr(ct.return_types, name)
        assert ours.__match_args__ == fields
        values = tuple(range(len(fields)))
        assert repr(ours(values)) == repr(getattr(th.return_types, name)(values))
    assert not hasattr(ct.return_types, "nothing_out")


@pytest.mark.ours
@pytest.mark.parametrize(
    "call",
    [
        "torch.is_distributed(x)", "torch.is_vulkan_available()", "torch.dequantize(x.long())", "torch.detach_copy(x)", "torch.values_copy(c)",
        "torch.crow_indices_copy(c)", "torch.col_indices_copy(c)", "torch.ccol_indices_copy(r)", "torch.row_indices_copy(r)",
        "torch.indices_copy(x)", "torch.sym_constrain_range(3, min=1, max=4)", "torch.sym_constrain_range(7, min=1, max=4)",
        "torch.sym_constrain_range_for_size(3)", "torch.batch_norm_update_stats(x, None, None, 0.1)",
        "torch.batch_norm_update_stats(x, m, v, 0.1), m, v", "torch.resize_as_sparse_(x.to_sparse(), torch.zeros(4, 4).to_sparse()).to_dense()",
        "torch.init_num_threads()",
    ],
)  # fmt: skip
def test_seldom_functions_do_what_torchs_do(call: str) -> None:
    def outcome(torch: Any) -> Any:
        x = torch.arange(6.0).reshape(2, 3)
        names = {"torch": torch, "x": x, "c": x.to_sparse_csr(), "r": x.to_sparse_csc()}
        names |= {"m": torch.zeros(3), "v": torch.ones(3)}
        try:
            return repr(eval(call, names))
        except Exception as error:
            return type(error), str(error)

    assert outcome(ct) == outcome(th)


@pytest.mark.ours
def test_statistics_of_a_window_are_logged() -> None:
    logged = []
    for torch in (ct, th):
        monitor = importlib.import_module(f"{torch.__name__}.monitor")
        seen: list[Any] = []
        handle = monitor.register_event_handler(seen.append)
        names = ("MEAN", "COUNT", "SUM", "MAX", "MIN")
        kinds = [monitor.Aggregation.__members__[name] for name in names]
        stat = monitor.Stat("loss", kinds, timedelta(days=1), 3)
        found: list[Any] = [{k.name: v for k, v in stat.get().items()}]
        for value in (1.0, 4.0, 2.5, 9.0):
            stat.add(value)
            found.append((stat.count, {k.name: v for k, v in stat.get().items()}))
        short = monitor.Stat("short", kinds, timedelta(milliseconds=200), 9)
        short.add(2.0)
        time.sleep(0.25)
        short.add(6.0)  # too late for the window
        found.append({k.name: v for k, v in short.get().items()})
        last = monitor.Stat("last", kinds[:1], timedelta(days=1))
        last.add(3.0)
        del stat, short, last
        monitor.unregister_event_handler(handle)
        monitor.log_event(monitor.Event("after", datetime.now(), {}))
        logged.append((found, [(e.name, e.data) for e in seen]))
    assert logged[0] == logged[1]


@pytest.mark.ours
def test_units_of_times() -> None:
    ours, theirs = (
        importlib.import_module(f"{m.__name__}.utils.benchmark.utils.common") for m in (ct, th)
    )
    for seconds in (3.0, 0.0012, 4e-5, 7e-8):
        (a, x), (b, y) = ours.select_unit(seconds), theirs.select_unit(seconds)
        assert a == b
        assert x == pytest.approx(y)
        assert ours.unit_to_english(a) == theirs.unit_to_english(b)
    for x, n in ((1234.567, 3), (0.012345, 2), (9.99, 1)):
        assert ours.trim_sigfig(x, n) == pytest.approx(theirs.trim_sigfig(x, n))
    assert ours.ordered_unique([3, 1, 3]) == theirs.ordered_unique([3, 1, 3])


@pytest.mark.ours
def test_the_report_of_versions_has_torchs_fields() -> None:
    ours, theirs = (importlib.import_module(f"{m.__name__}.utils.collect_env") for m in (ct, th))
    made = ours.get_env_info()
    assert made._fields == theirs.SystemEnv._fields
    assert made.os == theirs.get_os(theirs.run)
    assert made.libc_version == theirs.get_libc_version()
    assert made.python_platform == theirs.get_python_platform()
    assert made.gcc_version == theirs.get_gcc_version(theirs.run)
    assert made.torch_version == ct.__version__
    text = ours.pretty_str(made)
    assert "OpenCL devices:" in text
    assert "numpy==" in text


@pytest.mark.ours
def test_a_baton_is_held_by_one() -> None:
    import tempfile

    for torch in (ct, th):
        baton = importlib.import_module(f"{torch.__name__}.utils.file_baton").FileBaton
        with tempfile.TemporaryDirectory() as folder:
            first, second = (baton(f"{folder}/lock", 0.01) for _ in range(2))
            assert first.try_acquire()
            assert not second.try_acquire()
            first.release()
            second.wait()
            assert second.try_acquire()
            second.release()


@pytest.mark.ours
def test_references_to_storages() -> None:
    for torch in (ct, th):
        module = importlib.import_module(f"{torch.__name__}.multiprocessing.reductions")
        x = torch.ones(3)
        first, second = (module.StorageWeakRef(t.untyped_storage()) for t in (x, x.view(3, 1)))
        other = module.StorageWeakRef(torch.ones(3).untyped_storage())
        assert first == second
        assert len({first, second}) == 1
        assert not first.expired()
        assert other.expired()
        assert first != other
    assert callable(ct.multiprocessing.spawn)
    spawn = importlib.import_module(f"{ct.__name__}.multiprocessing.spawn")
    assert spawn.spawn is ct.multiprocessing.spawn


@pytest.mark.ours
def test_settings_and_checks_of_files() -> None:
    import mmap
    from types import SimpleNamespace

    def outcomes(torch: Any) -> list[Any]:
        files, found = torch.serialization, []
        module = SimpleNamespace(__name__="m", __version__="1.2.3")
        for version in ((1, 2, 3), (1, 2, 4), (0, 9), (1, 2)):
            found.append(files.check_module_version_greater_or_equal(module, version))
        module.__version__ = "new"
        found.append(files.check_module_version_greater_or_equal(module, (1,), False))
        with pytest.raises(RuntimeError) as raised:
            files.check_module_version_greater_or_equal(module, (1,))
        found += [str(raised.value), files.get_crc32_options(), files.get_default_mmap_options()]
        files.set_crc32_options(False)
        found.append(files.get_crc32_options())
        files.set_crc32_options(True)
        with files.set_default_mmap_options(mmap.MAP_SHARED):
            found.append(files.get_default_mmap_options())
        found.append(files.get_default_mmap_options())
        with pytest.raises(ValueError, match="expected mmap") as invalid:
            files.set_default_mmap_options(3)
        return [*found, str(invalid.value)]

    assert outcomes(ct) == outcomes(th)


@pytest.mark.ours
def test_small_helpers() -> None:
    import warnings

    for given in (None, {"device": 1}, {"dtype": 2, "factory_kwargs": {"device": 3}}):
        assert ct.nn.factory_kwargs(given) == th.nn.factory_kwargs(given)
    for given in ({"x": 1}, {"device": 1, "factory_kwargs": {"device": 2}}):
        words = []
        for torch in (ct, th):
            with pytest.raises(TypeError) as raised:
                torch.nn.factory_kwargs(given)
            words.append(str(raised.value))
        assert words[0] == words[1]
    kinds = [importlib.import_module(f"{m.__name__}.utils.dlpack").DLDeviceType for m in (ct, th)]
    numbers = [{n: int(v) for n, v in kind.__members__.items()} for kind in kinds]
    assert numbers[0] == numbers[1]

    def hook(g: Any) -> Any:
        return g

    told = []
    for torch in (ct, th):
        hooks = importlib.import_module(f"{torch.__name__}.utils.hooks")
        x, y = (torch.ones(2, requires_grad=True) for _ in range(2))
        x.register_hook(hook)
        y.register_hook(hooks.unserializable_hook(lambda g: g))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for t in (x, y, torch.ones(1)):
                hooks.warn_if_has_hooks(t)
        told.append([str(w.message) for w in caught])
    assert told[0] == told[1]
    assert len(told[0]) == 1


@pytest.mark.ours
def test_functions_know_their_names() -> None:
    """An alias has its own name: graphs and modes show it. `is_neg` and a few others stand for other functions here."""
    others = {"get_default_device", "is_neg", "sym_sqrt", "symeig", "to_dlpack", "dsmm", "hsmm", "saddmm"}  # fmt: skip
    others |= {
        "const_data_ptr",
        "ndimension",
        "nelement",
        "_make_subclass",
        "__class__",
        "__init_subclass__",
    }
    found = [
        f"{name}: {mine.__name__}"
        for here, there in ((ct, th), (ct.Tensor, th.Tensor))
        for name in sorted({*dir(there)} & {*dir(here)} - others)
        if not name.startswith("__")
        and hasattr(mine := getattr(here, name), "__code__")
        and mine.__name__ != getattr(getattr(there, name), "__name__", "")
    ]
    assert not found


@pytest.mark.ours
@pytest.mark.parametrize("kind", ["jagged", "masked", "sparse"])
def test_aliases_are_what_they_stand_for(kind: str) -> None:
    x = ct.tensor([[1.0, -2.0], [0.0, 3.0]])
    if kind == "jagged":
        made = ct.nested.nested_tensor([x[0], x[1, :1]], layout=ct.jagged)
    else:
        made = x.to_sparse() if kind == "sparse" else ct.masked.masked_tensor(x, x > 0)
    for alias, name in (("arctan", "atan"), ("negative", "neg"), ("absolute", "abs")):
        mine, plain = getattr(ct, alias)(made), getattr(ct, name)(made)
        assert type(mine) is type(plain)
        assert mine.layout is plain.layout
        assert str(getattr(made, alias)()) == str(mine)
