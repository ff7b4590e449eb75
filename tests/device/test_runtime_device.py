"""`device` as torch has it, the default device, and what is found on this machine."""

from __future__ import annotations

import copy
import pickle
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from cltensor.runtime import (
    default_device,
    device,
    device_info,
    device_list,
    get_backend,
    loader,
    set_default_device,
)
from cltensor.runtime.platforms import describe, platforms, version


@pytest.mark.parametrize(
    ("args", "shown", "text"),
    [
        (("cpu",), "device(type='cpu')", "cpu"),
        (("cpu:0",), "device(type='cpu', index=0)", "cpu:0"),
        (("cuda", 0), "device(type='cuda', index=0)", "cuda:0"),
        (("cuda:3",), "device(type='cuda', index=3)", "cuda:3"),
        (("opencl",), "device(type='opencl')", "opencl"),
        ((1,), "device(type='opencl', index=1)", "opencl:1"),
        (("meta",), "device(type='meta')", "meta"),
        (("cuda", None), "device(type='cuda')", "cuda"),
    ],
)
def test_forms(args: tuple[Any, ...], shown: str, text: str) -> None:
    made = device(*args)
    assert (repr(made), str(made)) == (shown, text)
    assert device(made) == made == device(text)
    assert hash(device(text)) == hash(made)
    assert pickle.loads(pickle.dumps(made)) == made
    assert copy.deepcopy(made) == made


def test_keywords_and_comparison() -> None:
    assert device(type="cuda", index=1) == device("cuda:1")
    assert device("cuda") != device("cuda:0")
    assert device("cpu") != "cpu"
    assert len({device("cpu"), device("cpu"), device("cpu:0")}) == 2


@pytest.mark.parametrize(
    ("args", "error", "text"),
    [
        (("foo",), RuntimeError, r"Expected one of cpu, cuda, .*opencl.* device string: foo"),
        (("CUDA",), RuntimeError, "Expected one of cpu"),
        (("cuda:x",), RuntimeError, "Invalid device string: 'cuda:x'"),
        (("cuda:01",), RuntimeError, "Invalid device string: 'cuda:01'"),
        (("cuda:-1",), RuntimeError, "Invalid device string"),
        (("cuda:1:2",), RuntimeError, "Invalid device string"),
        (("cuda:",), RuntimeError, "Invalid device string"),
        (("",), RuntimeError, "Device string must not be empty"),
        (("cpu", -1), RuntimeError, "Device index must not be negative"),
        ((-1,), RuntimeError, "Device index must not be negative"),
        (("cuda:0", 1), RuntimeError, "must not include an index"),
        (("cuda", "a"), TypeError, "argument 'index' .position 2. must be int, not str"),
        ((1.5,), TypeError, "invalid combination of arguments - got .float"),
        ((), TypeError, "invalid combination of arguments"),
        ((device("cuda:3"), 1), TypeError, "argument 'type' .position 1. must be str"),
    ],
)
def test_errors(args: tuple[Any, ...], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        device(*args)


def test_immutable() -> None:
    with pytest.raises(AttributeError, match="not writable"):
        device("cpu").type = "cuda"


def test_default_device_scopes() -> None:
    outside = default_device()
    with device("meta") as made:
        assert default_device() is made
        with device("opencl:0"):
            assert default_device() == device("opencl:0")
        seen = []
        thread = threading.Thread(target=lambda: seen.append(default_device()))
        thread.start()
        thread.join()
        assert seen == [outside]
        assert default_device() == device("meta")
    assert default_device() == outside


def test_set_default_device() -> None:
    outside = default_device()
    try:
        set_default_device("opencl:0")
        assert default_device() == device("opencl", 0)
        with pytest.raises(RuntimeError, match="Expected one of"):
            set_default_device("foo")
        assert default_device() == device("opencl", 0)
    finally:
        set_default_device(outside)


def test_device_list_and_info() -> None:
    names = device_list()
    assert device("opencl", 0) in names
    assert names.count(device("cpu")) <= 1
    for name in names:
        info = device_info(name)
        assert info.kind in ("cpu", "gpu", "accelerator")
        assert info.compute_units > 0
        assert info.max_alloc > 0
        assert info.lanes == (16 if info.kind == "cpu" else 1)


def test_backends_are_shared() -> None:
    name = device_list()[0]
    assert get_backend(name) is get_backend(device(str(name)))
    assert get_backend(device("opencl")) is get_backend(device("opencl:0"))
    assert not get_backend(device("opencl:0")).info.host_shared
    if name == device("cpu"):
        assert get_backend(device("cpu:0")) is get_backend(name)
        assert get_backend(name) is not get_backend(device("opencl:0"))


def test_missing_devices() -> None:
    with pytest.raises(RuntimeError, match="opencl:99: invalid device ordinal"):
        get_backend(device("opencl:99"))
    with pytest.raises(RuntimeError, match="no backend for device type 'xpu'"):
        get_backend(device("xpu"))
    if not platforms().gpus:
        with pytest.raises(AssertionError, match=r"^Torch not compiled with CUDA enabled"):
            get_backend(device("cuda"))


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("OpenCL 3.0 PoCL 3.0-rc2  Linux, Release", (3, 0)),
        ("OpenCL 3.0 PoCL 6.0  Linux", (6, 0)),
        ("OpenCL 2.1 LINUX", (2, 1)),
        ("odd", (0, 0)),
    ],
)
def test_driver_versions(text: str, numbers: tuple[int, int]) -> None:
    assert version(text) == numbers


def test_rusticl_has_the_schedules_of_a_gpu_on_a_cpu_too() -> None:
    real = platforms().cpu
    if real is None:
        pytest.skip("there is no OpenCL device that is a CPU")

    class Renamed:
        platform = SimpleNamespace(name="rusticl", version="OpenCL 3.1")

        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

    info = describe(loader.load(), Renamed(), host_shared=True)
    assert (info.kind, info.lanes) == ("gpu", 1)
    assert "-DCLT_NO_PREFETCH" in info.build_options
