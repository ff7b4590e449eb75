"""Private paths of torch's under which libraries take names from it, mostly to write them in annotations."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import cltensor as torch


def test_the_chosen_device_is_told_and_chosen_for_a_function() -> None:
    from cltensor.utils import _device

    assert _device.CURRENT_DEVICE is None
    torch.set_default_device("meta")
    try:
        assert torch.device("meta") == _device.CURRENT_DEVICE
    finally:
        torch.set_default_device(None)
    assert _device.CURRENT_DEVICE is None

    @_device.set_device("meta")
    def made(size: int) -> torch.Tensor:
        """Make one."""
        return torch.empty(size)

    assert (made(3).device.type, made.__doc__) == ("meta", "Make one.")
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = _device.nothing


def test_the_tracer_can_be_imported_and_says_that_it_records_nothing() -> None:
    from cltensor.jit import _get_trace_graph

    with pytest.raises(
        NotImplementedError, match=r"jit\._get_trace_graph: there is no TorchScript"
    ):
        _get_trace_graph(torch.nn.Linear(2, 2), (3,))


TENSORBOARD = """
    compat/proto/event_pb2.py Event
    compat/proto/summary_pb2.py HistogramProto Summary SummaryMetadata
    compat/proto/tensor_pb2.py TensorProto
    compat/proto/tensor_shape_pb2.py TensorShapeProto
    summary/writer/event_file_writer.py EventFileWriter
"""


def test_the_writer_of_summaries_has_the_path_of_its_module(tmp_path: Path) -> None:
    for line in (
        TENSORBOARD.strip().splitlines()
    ):  # what the module takes from the package, which need not be there
        path, *names = line.split()
        file = tmp_path / "tensorboard" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"class {name}: ...\n" for name in names))
    program = """
        from cltensor.utils.tensorboard.writer import SummaryWriter
        from cltensor.utils import tensorboard
        assert tensorboard.SummaryWriter is SummaryWriter
    """
    subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=tmp_path,
        env={"PYTHONPATH": f"{tmp_path}:{Path(torch.__file__).parents[1]}"},
        check=True,
    )


def test_a_class_of_storages_is_found_by_its_name() -> None:
    from cltensor.serialization import normalize_storage_type

    for kind in (torch.FloatStorage, torch.UntypedStorage, torch.storage.TypedStorage):
        assert normalize_storage_type(kind) is kind
    with pytest.raises(AttributeError, match="has no attribute 'Path'"):
        normalize_storage_type(Path)


def test_options_of_the_kernels_compiler_are_kept() -> None:
    config = importlib.import_module("cltensor._inductor.config")
    assert torch._inductor.config is config
    assert (config.coordinate_descent_tuning, config.triton.unique_kernel_names) == (False, True)
    with config.patch(max_autotune=True), config.patch("epilogue_fusion", False):
        assert (config.max_autotune, config.epilogue_fusion) == (True, False)
    assert (config.max_autotune, config.epilogue_fusion) == (False, True)
    with pytest.raises(AttributeError, match="nothing"), config.patch({"nothing": 1}):
        pass


def test_a_missing_tensorboard_is_a_missing_module(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in sys.modules if n.partition(".")[0] == "tensorboard"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "cltensor.utils.tensorboard", raising=False)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    monkeypatch.delattr(torch.utils, "tensorboard", raising=False)
    assert dict(inspect.getmembers(torch.utils)).keys() >= {"data", "checkpoint"}
    with pytest.raises(ModuleNotFoundError, match="pip install tensorboard") as missing:
        importlib.import_module("cltensor.utils.tensorboard")
    assert (missing.value.name or "").startswith("tensorboard")
