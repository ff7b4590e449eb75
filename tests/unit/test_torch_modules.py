"""Imports and queries that torch programs make before their first tensor work, and do not start OpenCL."""

from __future__ import annotations

import importlib
import importlib.util
import multiprocessing
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

import cltensor as torch
from cltensor import library
from cltensor.runtime import survives_fork

ABSENT = [
    "backends.cudnn.is_available", "backends.mps.is_available", "backends.mkl.is_available", "backends.cuda.is_built",
    "distributed.is_nccl_available", "distributed.is_initialized", "jit.is_scripting", "xpu.is_available", "mps.is_available",
    "compiler.is_compiling", "onnx.is_in_onnx_export",
]  # fmt: skip


@pytest.mark.parametrize("name", ABSENT)
def test_what_is_absent_says_so(name: str) -> None:
    module, _, asked = name.rpartition(".")
    assert getattr(importlib.import_module(f"cltensor.{module}"), asked)() is False


def test_switches_are_kept() -> None:
    cudnn = torch.backends.cudnn
    cudnn.benchmark = True
    with cudnn.flags(enabled=True, deterministic=True):
        assert cudnn.deterministic
        assert not cudnn.benchmark
    assert cudnn.benchmark
    assert not cudnn.deterministic
    cudnn.benchmark = False
    torch.backends.cuda.enable_flash_sdp(False)
    assert not torch.backends.cuda.flash_sdp_enabled()
    torch.backends.cuda.enable_flash_sdp(True)
    assert torch.backends.cuda.matmul.allow_tf32 is False
    assert torch.version.cuda is None
    assert not torch.backends.flags_frozen()


def test_the_version_is_that_of_torchs_interface() -> None:
    version = torch.__version__
    assert version == torch.version.__version__ == f"2.13.0+cltensor{torch.version.package}"
    assert version >= (2, 2)
    assert version > "2.9"
    assert (1, 13) < version < "3"
    assert not version < "2.13.0"
    assert version != "2.13.0"
    assert version == Version(str(version))
    assert isinstance(version, torch.torch_version.TorchVersion)
    assert version < "no version"  # compared as text
    assert version != 2
    with pytest.raises(
        TypeError, match="'>' not supported between instances of 'TorchVersion' and 'int'"
    ):
        assert version > 2


def test_jit_gives_functions_back() -> None:
    @torch.jit.script
    def scripted(x: int) -> int:
        return x + 1

    @torch.jit.ignore
    def ignored(x: int) -> int:
        return x

    @torch.jit.ignore(drop=True)
    def dropped(x: int) -> int:
        return x

    calls = []
    assert torch.jit.trace(lambda x: calls.append(x) or x, (3,))(4) == 4
    assert calls == [3, 4]
    assert (scripted(1), ignored(2), dropped(3)) == (2, 2, 3)
    with pytest.raises(NotImplementedError, match="state_dict"):
        torch.jit.save(scripted, "x.pt")


def test_what_cannot_be_done_raises_by_name() -> None:
    with pytest.raises(RuntimeError, match="no sharded tensors"):
        torch.distributed.init_device_mesh("cpu", (2,))
    with pytest.raises(NotImplementedError, match=r"onnx\.export"):
        torch.onnx.export(None, None, "x.onnx")
    with pytest.raises(NotImplementedError, match=r"hub\.load"):
        torch.hub.load("pytorch/vision", "resnet18")


def test_hub_loads_once_and_checks_the_hash(tmp_path: Path) -> None:
    source = tmp_path / "weights-0000.pt"
    torch.save({"w": [1, 2]}, source)
    url = source.as_uri()
    folder = tmp_path / "kept"
    assert torch.hub.load_state_dict_from_url(url, str(folder), progress=False) == {"w": [1, 2]}
    with importlib.import_module("cltensor.utils.model_zoo").tqdm(total=4, disable=True) as bar:
        bar.update(2)
    source.write_bytes(b"changed")
    assert torch.utils.model_zoo.load_url(url, str(folder)) == {"w": [1, 2]}
    with pytest.raises(RuntimeError, match=r"invalid hash value"):
        torch.hub.load_state_dict_from_url(url, str(tmp_path / "other"), False, False, True)
    assert not any((tmp_path / "other").iterdir())
    torch.hub.set_dir(tmp_path)
    assert torch.hub.get_dir() == str(tmp_path)


def test_trees() -> None:
    from cltensor.utils._pytree import tree_flatten, tree_map, tree_unflatten

    tree = {"a": [1, (2, 3)], "b": 4}
    leaves, spec = tree_flatten(tree)
    assert leaves == [1, 2, 3, 4]
    assert tree_unflatten(leaves, spec) == tree
    assert tree_map(lambda a, b: a + b, tree, tree) == {"a": [2, (4, 6)], "b": 8}
    with pytest.raises(ValueError, match="length 1 but"):
        tree_unflatten([1], spec)


def test_sizes_and_prefixes() -> None:
    from cltensor.nn.modules.utils import _pair, consume_prefix_in_state_dict_if_present

    assert _pair(3) == (3, 3)
    assert _pair([1, 2]) == (1, 2)
    state = {"module.w": 1, "b": 2}
    consume_prefix_in_state_dict_if_present(state, "module.")
    assert state == {"w": 1, "b": 2}


def _square(index: int, folder: str) -> None:
    Path(folder, str(index)).write_text(str(index * index))


def _fail(index: int) -> None:
    if index == 1:
        raise ValueError("no")


def _put(queue: Any, t: torch.Tensor) -> None:
    t += 1
    queue.put((t * 2).sum())


def test_processes_start_as_python_starts_them() -> None:
    mp = torch.multiprocessing
    assert mp.set_start_method == multiprocessing.set_start_method
    with pytest.raises(AttributeError, match="has no attribute 'no'"):
        mp.no
    if mp.get_start_method() == "fork" and not survives_fork():
        pytest.skip("a forked child has no device here")
    t, shared = torch.arange(4.0), torch.arange(4.0).share_memory_()
    for argument in (t, shared):
        queue = mp.Queue()
        process = mp.Process(target=_put, args=(queue, argument))
        process.start()
        assert float(queue.get(timeout=60)) == 20
        process.join()
        assert process.exitcode == 0
    assert t.tolist() == [0, 1, 2, 3] and shared.tolist() == [1, 2, 3, 4]


def test_spawned_processes(tmp_path: Path) -> None:
    torch.multiprocessing.spawn(_square, (str(tmp_path),), nprocs=2)
    assert sorted(p.read_text() for p in tmp_path.iterdir()) == ["0", "1"]
    with pytest.raises(torch.multiprocessing.ProcessRaisedException, match="ValueError: no"):
        torch.multiprocessing.spawn(_fail, nprocs=2)


def test_importing_them_starts_nothing() -> None:
    program = (
        "import sys, cltensor as torch\n"
        "import cltensor.backends.cudnn as cudnn, cltensor.distributed, cltensor.multiprocessing, cltensor.jit, cltensor.onnx\n"
        "from cltensor.nn.parallel import DistributedDataParallel\n"
        "from cltensor.nn.attention import SDPBackend, sdpa_kernel\n"
        "from cltensor.utils.benchmark import Timer\n"
        "assert 'pyopencl' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_futures_are_set_once() -> None:
    Future = torch.Future
    first: torch.futures.Future[int] = Future()
    seen: list[int] = []
    doubled = first.then(lambda f: f.value() * 2)
    first.add_done_callback(lambda f: seen.append(f.value()))
    both = torch.futures.collect_all([first, doubled])
    assert not both.done()
    first.set_result(4)
    assert (first.wait(), doubled.wait(), seen) == (4, 8, [4])
    assert [f.value() for f in both.wait()] == [4, 8]
    assert torch.futures.wait_all([first, doubled]) == [4, 8]
    with pytest.raises(RuntimeError, match="only be marked completed once"):
        first.set_result(5)
    with pytest.raises(AssertionError, match="not an Exception"):
        Future().set_exception(3)
    failed: torch.futures.Future[int] = Future()
    failed.set_exception(ValueError("late"))
    with pytest.raises(ValueError, match="late"):
        torch.futures.wait_all([first, failed])
    with pytest.raises(
        RuntimeError, match=r"running the callback: ValueError: late\n\nAt:\n  .*value"
    ):
        failed.then(lambda f: f.value()).wait()
    with pytest.raises(RuntimeError, match="TypeError: unsupported operand"):
        first.then(lambda f: f + 1).wait()  # type: ignore[operator]


def test_futures_refuse_what_they_cannot_take(capsys: pytest.CaptureFixture[str]) -> None:
    future: torch.futures.Future[int] = torch.Future()
    with pytest.raises(TypeError, match=r"then\(\): incompatible function arguments"):
        future.then(3)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="Can not pickle"):
        pickle.dumps(future)
    with pytest.raises(RuntimeError, match="can't be None"):
        torch.futures.wait_all([future, None])  # type: ignore[list-item]
    future.add_done_callback(lambda f: [].pop())
    future.set_result(1)
    assert "IndexError: pop from empty list" in capsys.readouterr().err


def test_weak_dictionaries_join_plain_ones() -> None:
    from cltensor.utils.weak import WeakIdKeyDictionary

    x, y = torch.nn.Module(), torch.nn.Module()
    joined = {x: 1, y: 2} | WeakIdKeyDictionary({y: 3})
    assert type(joined) is WeakIdKeyDictionary
    assert (joined[x], joined[y]) == (1, 3)


def test_names_that_model_libraries_reach_for() -> None:
    with pytest.raises(NotImplementedError, match="top level of a module"):
        torch.fx.wrap("leaf")
    assert not isinstance(3, torch.SymInt | torch.SymFloat | torch.SymBool)
    torch._assert(True, "held")
    with pytest.raises(AssertionError, match="not held"):
        torch._assert(False, "not held")
    assert torch.cuda.OutOfMemoryError is torch.OutOfMemoryError
    assert torch.cuda.is_current_stream_capturing() is False
    assert torch.cuda._initialized is torch.cuda.is_initialized()
    with pytest.warns(FutureWarning, match="renamed to"):
        assert torch.cuda.memory_cached() == 0
    with (
        pytest.warns(FutureWarning, match="sdp_kernel"),
        torch.backends.cuda.sdp_kernel(enable_math=False),
    ):
        pass
    assert issubclass(torch.jit.TracerWarning, Warning)
    assert torch.hub.HASH_REGEX.search("net-0a1b.pth")


def test_private_names_that_libraries_import() -> None:
    from cltensor.distributions.utils import _standard_normal, _sum_rightmost
    from cltensor.nn.init import _no_grad_normal_, _no_grad_uniform_
    from cltensor.nn.modules.module import _IncompatibleKeys
    from cltensor.nn.modules.transformer import _get_activation_fn
    from cltensor.optim.optimizer import ParamsT
    from cltensor.utils.checkpoint import get_device_states, set_device_states

    noise = _standard_normal((3, 2), dtype=torch.float64, device=torch.device("cpu"))
    assert (noise.shape, noise.dtype) == ((3, 2), torch.float64)
    assert _sum_rightmost(noise, 1).shape == (3,)
    leaf = torch.zeros(4, requires_grad=True)
    assert _no_grad_uniform_(leaf, 1.0, 2.0) is _no_grad_normal_(leaf, 0.0, 1.0) is leaf
    assert _IncompatibleKeys([], []).missing_keys == []
    assert _get_activation_fn("relu") is torch.nn.functional.relu
    assert ParamsT is not None
    devices, states = get_device_states(noise, [noise], 3)
    assert (devices, states) == ([], [])
    set_device_states(devices, states)


def test_classes_are_registered_as_trees() -> None:
    from collections import deque

    from cltensor.utils import _pytree

    class Pair:
        def __init__(self, left: object, right: object, name: str) -> None:
            self.left, self.right, self.name = left, right, name

    def register() -> None:
        _pytree.register_pytree_node(
            Pair, lambda p: ((p.left, p.right), p.name), lambda c, name: Pair(*c, name)
        )

    register()
    with pytest.raises(ValueError, match="already registered"):
        register()
    tree = {"a": Pair(1, [2, 3], "p"), "b": deque([4], maxlen=2)}
    assert _pytree.tree_leaves(tree) == [1, 2, 3, 4]
    made = _pytree.tree_map(lambda x: -x, tree)
    assert (made["a"].left, made["a"].right, made["a"].name) == (-1, [-2, -3], "p")
    assert (made["b"], made["b"].maxlen) == (deque([-4]), 2)
    assert _pytree.tree_structure(made) == _pytree.tree_structure(tree)


def test_the_ways_to_the_leaves_of_a_tree() -> None:
    from cltensor.utils import _pytree

    tree = {"b": [1, (2, 3)], "a": 4}
    leaves, spec = _pytree.tree_flatten_with_path(tree)
    assert [(_pytree.keystr(way), leaf) for way, leaf in leaves] == [
        ("['b'][0]", 1),
        ("['b'][1][0]", 2),
        ("['b'][1][1]", 3),
        ("['a']", 4),
    ]
    assert spec == _pytree.tree_structure(tree)
    assert leaves[0][0] == (_pytree.MappingKey("b"), _pytree.SequenceKey(0))
    made = _pytree.tree_map_with_path(lambda way, x, y: (len(way), x + y), tree, tree)
    assert made == {"b": [(2, 2), ((3, 4), (3, 6))], "a": (1, 8)}

    class Pair:
        def __init__(self, *parts: int) -> None:
            self.parts = parts

    def keyed(p: Pair) -> Any:
        return [(_pytree.GetAttrKey(f"part{i}"), x) for i, x in enumerate(p.parts)], None

    _pytree.register_pytree_node(
        Pair, lambda p: (p.parts, None), lambda parts, _: Pair(*parts), flatten_with_keys_fn=keyed
    )
    (way, leaf), _ = _pytree.tree_flatten_with_path([Pair(5, 6)])[0]
    assert (_pytree.keystr(way), leaf) == ("[0].part0", 5)
    assert _pytree._dict_flatten({"k": 1}) == ([1], ["k"])


def test_batches_are_divided_among_devices() -> None:
    from cltensor.jit.annotations import List

    from cltensor.nn.parallel.scatter_gather import gather, scatter, scatter_kwargs
    from cltensor.serialization import MAP_LOCATION

    assert List[int] is not None
    assert MAP_LOCATION is not None
    places = ["opencl:0", "opencl:0"]
    x = torch.arange(6.0).view(3, 2)
    (first, flag), (second, _) = scatter((x, True), places)
    assert (first.tolist(), second.tolist(), flag) == ([[0, 1], [2, 3]], [[4, 5]], True)
    assert str(second.device) == "opencl:0"
    assert [p["x"].shape[0] for p in scatter({"x": x}, places)] == [2, 1]
    given, named = scatter_kwargs((x,), None, places)
    assert (len(given), named) == (2, ({}, {}))
    whole = gather([{"y": (first, first.sum())}, {"y": (second, second.sum())}], "cpu")
    assert whole["y"][0].tolist() == x.tolist()
    assert whole["y"][1].tolist() == [6.0, 9.0]
    with pytest.raises(ValueError, match="non cpu device"):
        scatter(x, ["cpu"])


def test_autocast_is_off_where_there_is_no_such_device() -> None:
    kinds = ("cpu", "cuda", "mps", "xpu", "xla")
    assert not any(torch.is_autocast_enabled(kind) for kind in kinds)
    assert torch.get_autocast_dtype("mps") is torch.float16
    assert torch.get_autocast_dtype("xla") is torch.bfloat16
    with pytest.raises(RuntimeError, match="unknown device type for autocast"):
        torch.is_autocast_enabled("meta")


def test_what_libraries_ask_of_torchs_core_and_compiler() -> None:
    assert torch.torch is torch
    assert "USE_MKL=OFF" in torch.__config__.show()
    assert "get_num_threads()" in torch.__config__.parallel_info()
    assert torch._C._get_tracing_state() is None
    assert torch._C._TensorMeta is type(torch.Tensor)
    assert torch._C._LinAlgError is torch.linalg.LinAlgError
    where, kind, waits_not, _ = torch._C._nn._parse_to("cpu", torch.float64, True)
    assert (where, kind, waits_not) == (torch.device("cpu"), torch.float64, True)
    assert torch._C._nn._parse_to(torch.float32)[0] is None
    assert not torch._C._is_torch_function_mode_enabled()
    with torch.overrides.TorchFunctionMode():
        assert torch._C._is_torch_function_mode_enabled()
    assert issubclass(torch.UntypedStorage, torch.StorageBase)
    assert not issubclass(torch.TypedStorage, torch.StorageBase)
    keys = torch._C.DispatchKey
    both = torch._C.DispatchKeySet(keys.CPU) | torch._C.DispatchKeySet(keys.CUDA)
    assert both.has(keys.CUDA)
    assert not both.has(keys.Meta)
    dynamo = importlib.import_module("cltensor._dynamo")
    with dynamo.config.patch(cache_size_limit=64):
        assert dynamo.config.cache_size_limit == 64
    assert dynamo.config.cache_size_limit == 8
    assert not importlib.import_module("cltensor._dynamo.utils").is_compile_supported("cpu")
    shapes = importlib.import_module("cltensor.fx.experimental.symbolic_shapes")
    assert shapes.guard_or_false(True) is True
    assert shapes.free_symbols((3, 4)) == set()
    assert importlib.import_module("cltensor._subclasses.fake_tensor").is_fake(3) is False
    assert torch._guards.detect_fake_mode([3]) is torch._guards.active_fake_mode() is None
    helper = importlib.import_module("cltensor.onnx.symbolic_helper")
    assert helper.parse_args("v")(len) is len
    assert importlib.import_module("cltensor._custom_ops").custom_op is library.custom_op
    assert torch.Stream is importlib.import_module("cltensor.cuda.streams").Stream
    assert not isinstance(3, torch.cuda.CUDAGraph)
    with torch.cuda.StreamContext(None):
        assert torch.get_device_module("cuda") is torch.cuda
    assert torch.get_device_module("cpu") is torch.cpu
    with pytest.raises(RuntimeError, match="Device 'meta' does not have a corresponding module"):
        torch.get_device_module("meta")
    with pytest.raises(RuntimeError, match="Invalid value of device '3'"):
        torch.get_device_module(3)
    assert importlib.import_module("cltensor.fx.node").Target is Any
    sharded = importlib.import_module("cltensor.distributed._composable.fsdp")
    assert not isinstance(3, sharded.FSDPModule)
    with pytest.raises(RuntimeError, match="data parallelism"):
        torch.distributed.rpc.init_rpc("worker")
    assert importlib.import_module("cltensor._tensor_str").PRINT_OPTS.edgeitems == 3
    assert not isinstance(3, torch.PyTorchFileReader | torch.PyTorchFileWriter)
    experimental = importlib.import_module("cltensor.distributed._tensor.experimental")
    with pytest.raises(RuntimeError, match="data parallelism"):
        experimental.implicit_replication()
    quantization = importlib.import_module("cltensor.ao.quantization")
    assert quantization.QuantStub()(3) == 3
    with pytest.raises(NotImplementedError, match="no quantization"):
        quantization.prepare()
    assert importlib.util.find_spec("cltensor.ao.quantization") is not None
    assert importlib.import_module("cltensor.quantization").QuantStub is quantization.QuantStub
    assert not isinstance(3, quantization.ObserverBase | torch.TensorType | torch.Graph)
    assert importlib.import_module("cltensor._tensor").Tensor is torch.Tensor
    assert importlib.import_module("cltensor._jit_internal").Optional[int] == int | None
    assert torch.onnx.TrainingMode.EVAL.value == 0
    assert not torch.overrides.has_torch_function_unary(3)
    assert not torch.overrides.has_torch_function_variadic(3, torch.ones(1))
    assert importlib.import_module("cltensor.jit.annotations").BroadcastingList2[int] == list[int]
    parallel = importlib.import_module("cltensor.distributed.tensor")
    assert not isinstance(3, parallel.DTensor)
    with pytest.raises(NotImplementedError, match="data parallelism"):
        parallel.DTensor()


def test_weak_dictionaries_know_tensors_by_identity() -> None:
    import gc

    from cltensor.utils.weak import TensorWeakRef, WeakIdKeyDictionary, WeakIdRef

    a, b = torch.empty(2), torch.empty(2)
    known = WeakIdKeyDictionary({a: 1})
    known[b] = [2]
    assert (known[a], known[b], len(known), a in known, 3 in known) == (1, [2], 2, True, False)
    assert [id(k) for k in known] == [id(a), id(b)]
    assert known == known.copy() != WeakIdKeyDictionary()
    assert WeakIdRef(a) == WeakIdRef(a) != WeakIdRef(b)
    ref = TensorWeakRef(b)
    assert ref() is b
    del b
    gc.collect()
    assert (len(known), list(known.values()), ref()) == (1, [1], None)
    with pytest.raises(KeyError):
        known[torch.empty(2)]
    with pytest.raises(AssertionError, match=r"expected torch\.Tensor"):
        TensorWeakRef(3)


def test_what_libraries_take_from_script_and_distributed_is_nobodys_type() -> None:
    from cltensor.distributed.optim import PostLocalSGDOptimizer

    layer = torch.nn.Linear(2, 2)
    assert not isinstance(layer, torch.ScriptModule | torch.jit.RecursiveScriptModule)
    assert not isinstance(test_spawned_processes, torch.ScriptFunction)

    class Compiled(torch.jit.ScriptModule):
        @torch.jit.script_method
        def forward(self, x: int) -> int:
            return x + 1

    assert Compiled()(1) == 2
    with pytest.raises(NotImplementedError, match="data parallelism"):
        PostLocalSGDOptimizer()


def test_pieces_that_containers_of_tensors_are_built_with() -> None:
    from cltensor._C import _functorch as parts
    from cltensor._functorch import vmap as pieces
    from cltensor.nn.utils._named_member_accessor import set_tensor, swap_tensor
    from cltensor.utils._contextlib import (
        _DecoratorContextManager,
        _NoParamDecoratorContextManager,
    )
    from cltensor.utils._python_dispatch import is_traceable_wrapper_subclass

    seen: list[int] = []

    class Noted(_DecoratorContextManager):
        def __init__(self, number: int) -> None:
            self.number = number

        def clone(self) -> Any:
            return type(self)(self.number)

        def __enter__(self) -> None:
            seen.append(self.number)

        def __exit__(self, *error: object) -> None:
            seen.append(-self.number)

    class Plain(_NoParamDecoratorContextManager):
        def __enter__(self) -> None:
            seen.append(0)

        def __exit__(self, *error: object) -> None: ...

    assert Noted(3)(lambda: seen.append(1))() is None
    assert Plain(lambda: 5)() == 5
    assert seen == [3, 1, -3, 0]
    x = torch.arange(6.0).view(2, 3)
    assert not is_traceable_wrapper_subclass(x)
    hidden = parts._add_batch_dim(x, 1, 1)
    assert (hidden.shape, parts.is_batchedtensor(hidden)) == ((2,), True)
    assert parts.get_unwrapped(hidden) is x
    assert parts._remove_batch_dim(hidden, 1, 3, 0).shape == (3, 2)
    size, dims, leaves, _ = pieces._process_batched_inputs((0, None), (x, 2), torch.add)
    assert (size, dims, len(leaves)) == (2, [0, None], 2)
    flat = torch._utils._flatten_dense_tensors([x, x[0]])
    assert [t.tolist() for t in torch._utils._unflatten_dense_tensors(flat, [x, x[0]])] == [
        x.tolist(),
        x[0].tolist(),
    ]
    try:
        {}["here"]
    except KeyError:
        kept = torch._utils.ExceptionWrapper(where="there")
    assert (kept.exc_type, kept.where) == (KeyError, "there")
    with pytest.raises(KeyError, match=r"Caught KeyError there\.\nOriginal Traceback"):
        kept.reraise()
    layer = torch.nn.Linear(2, 1)
    assert layer._call_impl(x[:, :2]).shape == layer._wrapped_call_impl(x[:, :2]).shape == (2, 1)
    weight = layer.weight
    assert swap_tensor(layer, "weight", x) is weight
    assert layer.weight is x
    set_tensor(layer, "weight", weight)
    assert layer.weight is weight
    with pytest.raises(AttributeError, match="has no attribute `none`"):
        swap_tensor(layer, "none")
    with pytest.raises(KeyError, match="tensor name can"):
        set_tensor(layer, "a.b", weight)


def test_placements_are_values() -> None:
    from cltensor.distributed.tensor import Partial, Replicate, Shard
    from cltensor.distributed.tensor.placement_types import _StridedShard

    assert [str(p) for p in (Shard(1), Replicate(), Partial("avg"), _StridedShard(0, 2))] == [
        "S(1)",
        "R",
        "P(avg)",
        "_S(0, 2)",
    ]
    assert {Shard(1), Shard(1), Replicate(), Replicate(), Partial()} == {
        Shard(dim=1),
        Replicate(),
        Partial("sum"),
    }
    assert Shard(1).is_shard(1) and not Shard(1).is_shard(0) and not _StridedShard(1).is_shard()
    assert Partial().is_partial("sum") and not Partial().is_partial("avg")
    assert Replicate().is_replicate() and not Replicate().is_partial()
    assert [Shard.local_shard_size_and_offset(7, 3, rank) for rank in range(3)] == [
        (3, 0),
        (3, 3),
        (1, 6),
    ]
    assert Shard.local_shard_size_and_offset(2, 4, 3) == (0, 2)
    for wrong, text in (
        (lambda: Shard("x"), "'dim' must be int"),
        (lambda: Partial(3), "'reduce_op'"),
    ):
        with pytest.raises(TypeError, match=text):
            wrong()
