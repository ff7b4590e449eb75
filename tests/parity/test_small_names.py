"""Minor public names of torch that programs use: their results equal torch's."""

from __future__ import annotations

import functools
import importlib
import io
import mmap
import subprocess
import sys
import zipfile
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest
from parity.oracle import th
from support import ct


def test_tags() -> None:
    ours, theirs = ({t.name: t.value for t in m.Tag.__members__.values()} for m in (ct, th))
    assert ours == theirs
    assert repr(ct.Tag.core) == repr(th.Tag.core)
    assert str(ct.Tag.pointwise) == str(th.Tag.pointwise)


@pytest.mark.parametrize("path", ["linalg", "fft", "special", "nn.functional"])
def test_functions_have_torchs_names(path: str) -> None:
    ours, theirs = (importlib.import_module(f"{m.__name__}.{path}") for m in (ct, th))
    # Functions that are also exported at the top or as methods have the name they have there: they are left out.
    elsewhere = {id(f) for home in (ct, ct.Tensor) for f in vars(home).values()}
    names, shared = {}, {"native_channel_shuffle", "adaptive_max_pool1d_with_indices", "threshold"}
    for name, fn in vars(ours).items():
        plain = getattr(fn, "__uncast__", fn)
        if isinstance(plain, FunctionType) and not {id(fn), id(plain)} & elsewhere:
            names[name] = fn.__name__
    names = {n: own for n, own in names.items() if n[0] != "_" and hasattr(theirs, n)}
    names = {n: own for n, own in names.items() if n not in shared}
    assert len(names) > 10
    assert names == {name: getattr(theirs, name).__name__ for name in names}


def test_a_namespace_of_operators_that_nothing_defines() -> None:
    for torch in (th, ct):
        space = torch.ops.nothing_defines_this
        assert space is torch.ops.nothing_defines_this
        assert repr(space) == "<module 'torch.ops.nothing_defines_this' from 'torch.ops'>"
        assert not hasattr(space, "op")
        with pytest.raises(AttributeError, match="'nothing_defines_this' object has no attribute"):
            space.op(torch.ones(2))


def test_every_submodule_of_the_operators_is_found() -> None:
    assert isinstance(importlib.import_module("cltensor.ops.return_types"), ModuleType)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("cltensor.ops.nothing_defines_this_either")
    probe = "from cltensor.ops import no_such_name as n, values as v; print(type(n).__name__, type(v).__name__)"
    shown = subprocess.run([sys.executable, "-c", probe], capture_output=True, check=True)
    assert shown.stdout.split() == [b"Namespace", b"module"]


def test_options_of_the_compiler_are_kept() -> None:
    for name in ("_jit_set_profiling_executor", "_jit_set_profiling_mode"):
        for torch in (th, ct):
            change = getattr(torch._C, name)
            before = change(False)
            assert before is True
            assert change(before) is False
    for torch in (th, ct):
        runs = torch._C._jit_get_num_profiled_runs()
        assert torch._C._jit_set_num_profiled_runs(3) == runs == 1
        assert torch._C._jit_get_num_profiled_runs() == 3
        torch._C._jit_set_num_profiled_runs(runs)
        assert torch._C._jit_set_texpr_fuser_enabled(False) is None
        assert torch._C._jit_texpr_fuser_enabled() is False
        torch._C._jit_set_texpr_fuser_enabled(True)
        assert torch._C._jit_override_can_fuse_on_cpu(True) is None
        assert torch._C._jit_can_fuse_on_cpu() is True
        torch._C._jit_override_can_fuse_on_cpu(False)
        before = torch.jit.set_fusion_strategy([("STATIC", 1)])
        assert before == [("STATIC", 2), ("DYNAMIC", 10)]
        assert torch.jit.set_fusion_strategy(before) == [("STATIC", 1)]


def test_calls_that_wait_for_a_gpu() -> None:
    for torch in (th, ct):
        called: list[int] = []
        torch.cuda._lazy_call(lambda called=called: called.append(1))
        assert len(called) == torch.cuda.is_available()


def test_all_of_utils_needs_no_other_package() -> None:
    code = "import sys; sys.modules['tensorboard'] = None; from cltensor.utils import *; print(data.__name__)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert shown.stdout.split() == [b"cltensor.utils.data"]


def test_settings_of_files(tmp_path: Path) -> None:
    """Those of `serialization` and of `utils.serialization.config` are the same ones; reading follows them."""
    for torch in (th, ct):
        config = importlib.import_module(f"{torch.__name__}.utils.serialization.config")
        assert torch.utils.serialization.config is config
        assert (config.load.mmap, config.load.mmap_flags) == (False, mmap.MAP_PRIVATE)
        big = torch.serialization.LoadEndianness.BIG
        torch.serialization.set_default_load_endianness(big)
        torch.serialization.set_crc32_options(False)
        assert (config.load.endianness, config.save.compute_crc32) == (big, False)
        config.load.endianness, config.save.compute_crc32 = None, True
        assert torch.serialization.get_default_load_endianness() is None
        assert torch.serialization.get_crc32_options() is True
        file = io.BytesIO()
        torch.save(torch.ones(2), file)
        (tmp_path / "t.pt").write_bytes(file.getvalue())
        with config.patch("load.mmap", True):
            assert config.load.mmap is True
            assert torch.load(tmp_path / "t.pt").tolist() == [1, 1]
            with pytest.raises(ValueError, match="f must be a file path"):
                torch.load(io.BytesIO(file.getvalue()))
        with config.patch({"load.mmap": True, "save.compute_crc32": False}):
            assert torch.serialization.get_crc32_options() is False
        assert (config.load.mmap, config.save.compute_crc32) == (False, True)
        with pytest.raises(AttributeError, match="does not exist"), config.patch("load.map", True):
            pass


def test_torchs_own_tensors_are_refused() -> None:
    class Mine(ct.Tensor):
        """With a subclass, functions ask their arguments' classes."""

    for x in (ct.ones(2), ct.ones(2).as_subclass(Mine)):
        with pytest.raises(TypeError, match="must be Tensor, not Tensor"):
            ct.add(x, th.ones(2))
        with pytest.raises(TypeError, match="must be Tensor, not Parameter"):
            ct.add(x, th.nn.Parameter(th.ones(2)))


def test_capabilities() -> None:
    theirs, ours = th.cpu.get_capabilities(), ct.cpu.get_capabilities()
    asked = {k for k, v in theirs.items() if isinstance(v, bool)} & set(ours)
    asked -= {"avx10_1", "avx10_2"}  # Linux may not report these for a processor that has them
    assert {k: ours[k] for k in asked} == {k: theirs[k] for k in asked}
    assert ours["architecture"] == theirs["architecture"]
    with pytest.raises(TypeError):
        ours["avx"] = 1  # type: ignore[index]


def test_no_generator_of_a_thread() -> None:
    assert th.random.thread_safe_generator() is ct.random.thread_safe_generator() is None


def test_skip_data() -> None:
    for torch in (th, ct):
        x = torch.arange(6.0).reshape(2, 3)
        empty, full = io.BytesIO(), io.BytesIO()
        with torch.serialization.skip_data():
            torch.save({"x": x}, empty)
        torch.save({"x": x}, full)
        assert abs(len(empty.getvalue()) - len(full.getvalue())) < 64
        for reader in (th, ct):
            empty.seek(0)
            assert reader.load(empty)["x"].tolist() == [[0.0] * 3] * 2
        full.seek(0)
        with torch.serialization.skip_data():
            assert torch.load(full)["x"].shape == (2, 3)
        full.seek(0)
        assert torch.load(full)["x"].tolist() == x.tolist()


ASKED = [
    "u.stride()", "u.is_contiguous()", "u.untyped_storage()", "u.detach()", "u.dim()", "u.numel()", "u.data_ptr()", "u.element_size()",
    "u.storage_offset()", "u.type()", "u.numpy()", "u.tolist()", "u.zero_()", "u.fill_(1)", "u.pin_memory()",
]  # fmt: skip


@pytest.mark.parametrize("line", ASKED)
def test_uninitialised_parameters_name_what_was_asked(line: str) -> None:
    def words(torch: Any) -> str:
        with pytest.raises(
            ValueError, match="Attempted to use an uninitialized parameter"
        ) as raised:
            eval(line, {"u": torch.nn.UninitializedParameter()})
        return str(raised.value)

    assert words(ct) == words(th)


def test_skipped_data_is_filled_in_later() -> None:
    for torch in (th, ct):
        x = torch.arange(1.0, 7.0)
        empty = io.BytesIO()
        with torch.serialization.skip_data():
            torch.save(x, empty)
        with zipfile.ZipFile(empty) as names:
            name = next(n for n in names.namelist() if n.endswith("data/0"))
            with names.open(name) as entry:
                start = entry._orig_compress_start  # type: ignore[attr-defined]
        whole = bytearray(empty.getvalue())
        whole[start : start + 24] = x.cpu().numpy().tobytes()
        for reader in (th, ct):
            assert reader.load(io.BytesIO(bytes(whole))).tolist() == x.tolist()


def test_indices_of_rows() -> None:
    for kind in ("int64", "int32"):
        for rows in ([], [0, 0, 2, 3], [4]):
            made = [
                torch._convert_indices_from_coo_to_csr(
                    torch.tensor(rows, dtype=getattr(torch, kind)), 5, out_int32=kind == "int32"
                )
                for torch in (th, ct)
            ]
            assert made[0].tolist() == made[1].tolist()
            assert str(made[0].dtype) == str(made[1].dtype)
    for ends, columns in (([0, 2, 2, 3], [1, 0, 2]), ([[0, 2, 2], [0, 1, 2]], [[1, 0], [0, 0]])):
        for turned in (False, True):
            both = [
                torch._convert_indices_from_csr_to_coo(
                    torch.tensor(ends), torch.tensor(columns), out_int32=turned, transpose=turned
                )
                for torch in (th, ct)
            ]
            assert both[0].tolist() == both[1].tolist()
            assert str(both[0].dtype) == str(both[1].dtype)
    for bad in ([[1]], [0.5]):
        errors = []
        for torch in (th, ct):
            with pytest.raises(RuntimeError) as raised:
                torch._convert_indices_from_coo_to_csr(torch.tensor(bad), 2)
            errors.append((raised.type, str(raised.value)))
        assert errors[0] == errors[1]


def test_tensors_by_device_and_dtype() -> None:
    def sorted_out(torch: Any) -> Any:
        module = importlib.import_module(f"{torch.__name__}.utils._foreach_utils")
        group = module._group_tensors_by_device_and_dtype
        a = [
            torch.ones(2),
            torch.ones(3, dtype=torch.float64),
            torch.zeros(1),
        ]
        made = group([a, [None, a[1], a[0]], []], with_indices=True)
        return {
            (where.type, str(kind)): (
                [[None if t is None else t.tolist() for t in part] for part in lists],
                places,
            )
            for (where, kind), (lists, places) in made.items()
        }

    assert sorted_out(ct) == sorted_out(th)


def test_private_helpers_of_distributions() -> None:
    x = [[4.0, 1.0], [1.0, 3.0]]
    ours, theirs = (
        m.distributions.multivariate_normal._precision_to_scale_tril(m.tensor(x)) for m in (ct, th)
    )
    assert ours.flatten().tolist() == pytest.approx(theirs.flatten().tolist())
    ours, theirs = (
        m.distributions.transforms._clipped_sigmoid(m.tensor([-300.0, 0.5, 300.0]))
        for m in (ct, th)
    )
    assert ours.tolist() == pytest.approx(theirs.tolist())


@pytest.mark.ours
def test_print_options_for_a_while() -> None:
    from torch import _tensor_str as theirs

    from cltensor import _tensor_str as ours

    shown = []
    for torch, module in ((th, theirs), (ct, ours)):
        with module.printoptions(precision=2, sci_mode=True):
            shown.append(str(torch.tensor([1.2345])))
        shown.append(str(torch.tensor([1.2345])))
    assert shown[:2] == shown[2:]


def test_values_with_types() -> None:
    for torch in (th, ct):
        assert tuple(torch.jit.Attribute(3, int)) == (3, int)
        assert issubclass(torch.jit.Error, Exception)
        assert torch.serialization.DEFAULT_PROTOCOL == 2
    assert ct.segment_reduce is ct._segment_reduce


def test_a_marked_tensor_is_no_lazy_parameter() -> None:
    for torch in (th, ct):

        class Own(torch.Tensor):
            pass

        made = torch.nn.Parameter(torch.ones(2).as_subclass(Own))
        kinds = (
            torch.nn.Parameter,
            torch.nn.UninitializedParameter,
            torch.nn.parameter._ParameterMeta("Other", (torch.Tensor,), {}),
        )
        assert [isinstance(made, kind) for kind in kinds] == [True, False, False]
        assert not torch.nn.parameter.is_lazy(made)


def test_what_would_be_compiled_says_why_it_is_not() -> None:
    from cltensor.distributed.fsdp import CPUOffload, MixedPrecision

    from cltensor.utils import cpp_extension

    assert cpp_extension.CUDA_HOME is None
    for absent in (cpp_extension.load, cpp_extension.CppExtension, CPUOffload, MixedPrecision):
        with pytest.raises(RuntimeError):
            absent("anything")


def test_attributes_of_devices_that_are_not_there() -> None:
    names = ["is_mps", "is_xpu", "is_mtia", "is_maia", "is_ipu", "is_xla", "is_vulkan", "name"]
    for torch in (th, ct):
        x = torch.nn.Parameter(torch.ones(2, device="cpu"))
        assert [getattr(x, name) for name in names] == [False] * 7 + [None]
        assert x.is_distributed() is False
        with pytest.raises(AttributeError, match=r"attribute 'name' of .* is not writable"):
            x.name = "x"  # type: ignore[misc]
        with pytest.raises(NotImplementedError, match="'aten::record_stream' with arguments from"):
            x.record_stream(torch.Stream("cpu"))


@pytest.mark.ours
def test_recording_a_stream_needs_nothing() -> None:
    x = ct.ones(2, device="opencl")
    x.record_stream(ct.cuda.Stream)
    assert x.tolist() == [1, 1]


def test_modules_that_are_there_without_an_import_of_their_own() -> None:
    for name in ("nn.modules.utils", "utils.weak"):
        text = f"import cltensor; print(cltensor.{name}.__name__)"
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)  # fmt: skip
        assert done.stdout.strip() == f"cltensor.{name}"


def test_names_of_before_and_marks() -> None:
    for torch in (th, ct):
        with pytest.warns(FutureWarning, match="`NLLLoss2d` has been deprecated"):
            loss = torch.nn.NLLLoss2d(ignore_index=1)
        assert isinstance(loss, torch.nn.NLLLoss)
        with pytest.warns(FutureWarning, match="`nn.Container` is deprecated"):
            net = torch.nn.Container(a=loss, b=torch.nn.ReLU())
        assert [name for name, _ in net.named_children()] == ["a", "b"] and net.a is loss
        hook = torch.utils.hooks.unserializable_hook(lambda g: g)
        assert hook.__torch_unserializable__ is True
        x = torch.ones(2, requires_grad=True)
        importlib.import_module(f"{torch.__name__}.multiprocessing")
        ForkingPickler.dumps(x)
        with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf"):
            ForkingPickler.dumps(x * 2)


@pytest.mark.parametrize("path", ["nn.functional", "linalg", "fft", "special"])
def test_no_name_is_exported_that_torch_lacks(path: str) -> None:
    """What these modules export asks `__torch_function__`, which helpers of the library must not."""
    found, wanted = (functools.reduce(getattr, path.split("."), m) for m in (ct, th))
    assert set(found.__all__) <= set(dir(wanted))


def test_accelerator_and_cudnn_of_the_core() -> None:
    for torch in (th, ct):
        assert torch._C._get_cudnn_enabled() is torch.backends.cudnn.enabled
        expected = torch.accelerator.current_accelerator() or torch.device("cpu")
        assert torch._C._get_accelerator().type == expected.type


def test_what_optimisers_written_for_torch_ask() -> None:
    def answers(torch: Any) -> list[Any]:
        module = importlib.import_module(f"{torch.__name__}.optim.optimizer")
        floats, ints = torch.ones(2), torch.ones(2, dtype=torch.int64)

        class Ascent(torch.optim.Optimizer):
            @module._use_grad_for_differentiable
            def step(self, closure: Any = None) -> bool:
                """Climb."""
                return torch.is_grad_enabled()

        found = [
            module._default_to_fused_or_foreach(params, differentiable, use_fused=fused)
            for params in ([floats], [floats, None], [floats, ints])
            for differentiable in (False, True)
            for fused in (False, True)
        ]
        found += [Ascent([floats], {"differentiable": on}).step() for on in (False, True)]
        grouped = torch.optim.Optimizer._group_tensors_by_device_and_dtype(
            [[floats, ints], [None, ints]]
        )
        found += sorted(
            [str(kind), lists[1] == [None], places]
            for (_, kind), (lists, places) in grouped.items()
        )
        return [*found, Ascent.step.__doc__, torch.is_grad_enabled()]

    assert answers(ct) == answers(th)


def test_reads_whose_results_keep_their_class() -> None:
    for torch in (th, ct):
        kept = importlib.import_module(f"{torch.__name__}.overrides").get_default_nowrap_functions()
        assert {torch.Tensor.grad.__get__, torch.Tensor._base.__get__} <= kept
        assert torch.Tensor.data.__get__ not in kept


def test_permuted_states_are_deprecated() -> None:
    told = []
    for torch in (ct, th):
        with pytest.warns(FutureWarning) as caught:
            made = torch.nn.modules.rnn.apply_permutation(torch.ones(2, 3), torch.tensor([1, 0]), 0)
        told.append((str(caught[0].message), list(made.shape)))
    assert told[0] == told[1]


def test_checkpoints_that_differ_in_their_second_run() -> None:
    told = []
    for torch in (ct, th):
        again = importlib.import_module(f"{torch.__name__}.utils.checkpoint")
        runs: list[int] = []

        def shorter(x: Any, runs: list[int] = runs) -> Any:
            runs.append(1)
            return x[: 3 - len(runs)].exp()

        x = torch.ones(2, requires_grad=True)
        with pytest.raises(ValueError, match="determinism_check") as refused:
            again.checkpoint(shorter, x, use_reentrant=False, determinism_check="x")
        with again.set_checkpoint_debug_enabled(False):
            out = again.checkpoint(shorter, x, use_reentrant=False, debug=True).sum()
        with pytest.raises(again.CheckpointError) as differ:
            out.backward()
        told.append([str(refused.value), str(differ.value).split("\n\n")[0]])
    assert told[0] == told[1]


def test_functions_of_layers_are_pickled_by_name() -> None:
    for name in ("max_pool2d", "threshold", "celu", "relu_", "gelu", "softplus", "one_hot", "pad"):
        function = getattr(ct.nn.functional, name)
        assert ForkingPickler.loads(ForkingPickler.dumps(function)) is function


def test_choices_of_sharding() -> None:
    for name in ("BackwardPrefetch", "OptimStateKeyType", "ShardingStrategy", "StateDictType"):
        found, expected = (
            getattr(importlib.import_module(f"{m.__name__}.distributed.fsdp"), name)
            for m in (ct, th)
        )
        assert [str(v) for v in found] == [str(v) for v in expected]
    assert not importlib.import_module("cltensor.distributed.rpc").is_available()


def test_notes_for_tracers() -> None:
    def program(torch: Any) -> Any:
        notes = importlib.import_module(f"{torch.__name__}.fx.traceback")
        seen = []

        @notes.annotate_fn({"in": "f"})
        def f(x: Any) -> Any:
            seen.append(dict(notes.get_current_meta()["custom"]))
            return x + 1

        with notes.annotate({"a": 1, "b": 2}), notes.annotate({"b": 3}):
            seen.append(dict(notes.current_meta["custom"]))
            f(torch.ones(1))
        with pytest.raises(ValueError, match="own"), notes.annotate({"c": 1}):
            raise ValueError("own")
        return seen, dict(notes.get_current_meta()), f.__name__

    assert program(ct) == program(th)
