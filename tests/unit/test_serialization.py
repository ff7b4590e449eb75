"""Checkpoints: saved objects load again, shared memory stays shared, and a damaged or hostile file raises an error."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from collections import Counter, OrderedDict, defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cltensor as torch
from cltensor import serialization, storages
from cltensor.serialization import load, save

DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


def saved(obj: Any, **kwargs: Any) -> io.BytesIO:
    file = io.BytesIO()
    save(obj, file, **kwargs)
    file.seek(0)
    return file


def again(obj: Any, **kwargs: Any) -> Any:
    return load(saved(obj), **kwargs)


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype(name: str) -> None:
    t = torch.tensor([[1, 0, 1], [0, 1, 1]]).to(getattr(torch, name))
    found = again(t)
    assert found.dtype is t.dtype
    assert found.tolist() == t.tolist()


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("protocol", [2, 4])
def test_containers_and_plain_values(weights_only: bool, protocol: int) -> None:
    obj = {
        "list": [1, -5, 2**70, 2.5, True, None, "ü", b"xy", 1j], "tuple": (1, (2, ()), [3]), "set": {1, 2}, "bytes": bytearray(b"q"), 3: OrderedDict(a=1),
        "counter": Counter("aab"), "size": torch.Size([1, 2]), "dtype": torch.float32, "device": torch.device("cuda", 1),
        "format": torch.channels_last, "nested": {"deep": [{"er": torch.ones(2)}]},
    }  # fmt: skip
    found = load(saved(obj, pickle_protocol=protocol), weights_only=weights_only)
    tensor = found["nested"]["deep"][0].pop("er")
    assert tensor.tolist() == [1, 1]
    obj["nested"]["deep"][0].pop("er")
    assert found == obj
    assert type(found["size"]) is torch.Size
    assert type(found[3]) is OrderedDict


def test_attributes_of_an_ordered_dict() -> None:
    state = OrderedDict(w=torch.ones(1))
    state._metadata = {"": {"version": 1}}
    assert again(state)._metadata == {"": {"version": 1}}


def test_views_share_memory_again() -> None:
    base = torch.arange(12.0).reshape(3, 4)
    found = again({"base": base, "part": base[1:, ::2].t(), "same": base, "row": base[2]})
    assert found["same"] is found["base"]
    assert found["part"].stride() == base[1:, ::2].t().stride()
    found["base"][2, 0] = 99
    assert found["part"][0, 1].item() == 99
    assert found["row"][0].item() == 99


def test_pending_values_are_computed() -> None:
    assert again((torch.ones(3) + 1) * 2).tolist() == [4, 4, 4]


def test_requires_grad() -> None:
    found = again([torch.ones(2, requires_grad=True), torch.ones(2)])
    assert found[0].requires_grad
    assert found[0].is_leaf
    assert not found[1].requires_grad


def test_empty_and_scalar_tensors() -> None:
    found = again([torch.zeros(0, 3), torch.tensor(3.5), torch.tensor(7)])
    assert found[0].shape == (0, 3)
    assert found[1].item() == 3.5
    assert found[2].item() == 7


def test_one_storage_as_two_types_is_refused() -> None:
    x = torch.ones(4)
    with pytest.raises(RuntimeError, match="view the same data as different types"):
        saved([x, x.view(torch.int32)])


# ------------------------------------------------------------------------------------------- files


def test_paths_and_the_layout_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "my.model.pt"
    save({"a": torch.arange(5), "b": torch.ones(3)}, path)
    assert load(str(path))["a"].tolist() == [0, 1, 2, 3, 4]
    with zipfile.ZipFile(path) as z:
        assert z.testzip() is None
        assert [n.partition("/")[2] for n in z.namelist()] == [
            "data.pkl", ".format_version", ".storage_alignment", "byteorder", "data/0", "data/1", "version", ".data/serialization_id",
        ]  # fmt: skip
        assert z.read("my.model/version") == b"3\n"
        assert z.read("my.model/byteorder") == b"little"
        for info in z.infolist():
            assert info.compress_type == zipfile.ZIP_STORED
            with z.open(info) as entry:
                assert entry._orig_compress_start % 64 == 0


def test_a_failed_save_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    save(torch.ones(1), path)
    with pytest.raises((TypeError, pickle.PicklingError, AttributeError)):
        save([torch.ones(2), lambda: 0], path)
    assert load(path).tolist() == [1]
    assert os.listdir(tmp_path) == ["x.pt"]
    with pytest.raises(RuntimeError, match="Parent directory"):
        save(1, tmp_path / "no" / "x.pt")
    with pytest.raises(AttributeError, match="expected 'f' to be"):
        save(1, 3)


def test_mmap(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    save([torch.arange(1000), torch.zeros(0)], path)
    assert load(path, mmap=True)[0].sum().item() == 499500
    with pytest.raises(ValueError, match="mmap"):
        load(saved(1), mmap=True)


def test_map_location() -> None:
    file = saved(torch.ones(2))
    for where in (
        "cpu",
        torch.device("cpu"),
        {"cpu": "cpu"},
        lambda storage, location: storage,
        lambda storage, location: None,
    ):
        file.seek(0)
        assert load(file, map_location=where).device == torch.device("cpu")
    file.seek(0)
    with pytest.raises(RuntimeError, match="don't know how to restore data location"):
        load(file, map_location=lambda storage, location: "nowhere")


def test_a_file_of_the_other_byte_order() -> None:
    file = saved(
        {
            "f": torch.tensor([1.0, 2.5]),
            "c": torch.tensor([1 + 2j]),
            "h": torch.tensor([258], dtype=torch.int16),
        }
    )
    turned = io.BytesIO()
    widths = {"archive/data/0": 4, "archive/data/1": 4, "archive/data/2": 2}
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(turned, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name in widths:
                data = np.frombuffer(data, f"u{widths[name]}").byteswap().tobytes()
            new.writestr(name, b"big" if name.endswith("byteorder") else data)
    turned.seek(0)
    found = load(turned)
    assert found["f"].tolist() == [1.0, 2.5]
    assert found["c"].tolist() == [1 + 2j]
    assert found["h"].tolist() == [258]


# ------------------------------------------------------------------------------------------- damage and malice


def test_damaged_files() -> None:
    with pytest.raises(EOFError):
        load(io.BytesIO())
    whole = saved({"a": torch.arange(100.0)}).getvalue()
    for end in (4, 30, len(whole) // 2, len(whole) - 1):
        with pytest.raises(RuntimeError, match="PytorchStreamReader"):
            load(io.BytesIO(whole[:end]))
    at = whole.index(torch.arange(100.0).numpy().tobytes())
    with pytest.raises(RuntimeError, match=r"CRC|failed reading"):
        load(io.BytesIO(whole[: at + 8] + b"\xff" + whole[at + 9 :]))
    with pytest.raises(pickle.UnpicklingError):
        load(io.BytesIO(b"hello world"))


def test_file_objects_need_only_write_or_read() -> None:
    parts: list[bytes] = []
    save({"a": torch.ones(3)}, SimpleNamespace(write=lambda data: parts.append(bytes(data))))
    file = io.BytesIO(b"".join(parts))
    assert load(SimpleNamespace(read=file.read, seek=file.seek, tell=file.tell))["a"].sum() == 3
    with pytest.raises(
        AttributeError, match=r"no attribute 'seek'. You can only torch.load from a file that is seekable. Please pre-load .* into a buffer"
    ):  # fmt: skip
        load(SimpleNamespace())


def rewritten(file: io.BytesIO, changes: dict[str, bytes | None]) -> io.BytesIO:
    """Copy a checkpoint with entries replaced (or left out)."""
    out = io.BytesIO()
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            short = name.partition("/")[2]
            data = changes.get(short, old.read(name))
            if data is not None:
                new.writestr(name, data)
    out.seek(0)
    return out


def test_missing_and_short_storages() -> None:
    with pytest.raises(RuntimeError, match="failed locating file data/0"):
        load(rewritten(saved(torch.ones(4)), {"data/0": None}))
    with pytest.raises(RuntimeError, match="storage 0 has 3 bytes"):
        load(rewritten(saved(torch.ones(4)), {"data/0": b"abc"}))


class Evil:
    def __reduce__(self) -> Any:
        return os.system, ("echo pwned",)


class Harmless:
    def __init__(self) -> None:
        self.x = 1


class Slotted:
    __slots__ = ("__dict__", "a")

    def __init__(self) -> None:
        self.a, self.b = 1, 2


class Reduced(torch.Tensor):
    def __reduce_ex__(self, protocol: Any) -> Any:
        return again_ten_times, (self.tolist(),)


def again_ten_times(values: list[float]) -> Any:
    return torch.tensor(values).as_subclass(Reduced) * 10


class Wrapped(torch.Tensor):
    __slots__ = ("inner", "unset")

    @staticmethod
    def __new__(cls, inner: Any) -> Any:
        made = torch.Tensor._make_subclass(cls, inner.to("meta"), inner.requires_grad)
        made.inner = inner
        return made


class Stateful(torch.Tensor):
    def __getstate__(self) -> Any:
        return "state", dict(self.__dict__)

    def __setstate__(self, state: Any) -> None:
        self.__dict__ = state[1]
        self.mark = state[0]


def test_subclasses_say_how_they_are_pickled() -> None:
    wrapped = Wrapped(torch.ones(2))
    wrapped.note = 1
    stateful = torch.zeros(3).as_subclass(Stateful)
    stateful.note = 2
    for copied in (lambda x: again(x, weights_only=False), lambda x: pickle.loads(pickle.dumps(x))):
        made = copied(torch.ones(2).as_subclass(Reduced))
        assert type(made) is Reduced and made.tolist() == [10, 10]
        made = copied(wrapped)
        assert type(made) is Wrapped and made.is_meta and made.shape == (2,)
        assert made.inner.tolist() == [1, 1] and made.note == 1 and not hasattr(made, "unset")
        made = copied(stateful)
        assert type(made) is Stateful and made.tolist() == [0, 0, 0]
        assert dict(made.__dict__) == {"note": 2, "mark": "state"}


class Spoofed:
    def __init__(self, name: str, *args: Any) -> None:
        self.made = getattr(torch._utils, name), args

    def __reduce__(self) -> Any:
        return self.made


def test_what_rebuilds_tensors_is_written_under_torchs_name() -> None:
    parameter = again(Spoofed("_rebuild_parameter", torch.ones(3), True, {}))
    assert type(parameter) is torch.nn.Parameter and parameter.tolist() == [1, 1, 1]
    parts = (torch.tensor([[5]]), torch.ones(1), (3,))
    with pytest.raises(RuntimeError, match="size is inconsistent with indices"):
        again(Spoofed("_rebuild_sparse_tensor", torch.sparse_coo, parts))


def test_other_classes_are_refused_by_name() -> None:
    with pytest.raises(
        pickle.UnpicklingError, match=r"module posix is blocked|module nt is blocked"
    ):
        again(Evil())
    with pytest.raises(
        pickle.UnpicklingError,
        match=r"Unsupported global: GLOBAL .*Harmless was not an allowed global by default.*add_safe_globals",
    ):
        again(Harmless())
    with pytest.raises(pickle.UnpicklingError, match=r"numpy\._?core\.multiarray\.scalar"):
        again(np.float64(3))
    assert again(Harmless(), weights_only=False).x == 1


def test_the_users_own_list() -> None:
    with serialization.safe_globals([Harmless]):
        assert again(Harmless()).x == 1
    with pytest.raises(pickle.UnpicklingError):
        again(Harmless())
    serialization.add_safe_globals([Harmless])
    assert serialization.get_safe_globals() == [Harmless]
    assert again(Harmless()).x == 1
    serialization.clear_safe_globals()
    assert serialization.get_safe_globals() == []


def test_arrays_load_where_the_list_has_what_they_are_made_of() -> None:
    """The pickle does not name the class of a dtype, which is therefore checked; states of classes may have slots."""
    array = np.arange(3, dtype=np.uint32)
    made_by: list[Any] = [array.__reduce__()[0], np.ndarray, np.dtype]
    with (
        serialization.safe_globals(made_by),
        pytest.raises(pickle.UnpicklingError, match=r"Can only build .*UInt32DType"),
    ):
        again(array)
    with serialization.safe_globals([*made_by, type(array.dtype), Slotted]):
        assert again({"state": array})["state"].tolist() == [0, 1, 2]
        slotted = again(Slotted())
        assert (slotted.a, slotted.b) == (1, 2)


def hostile(body: bytes) -> io.BytesIO:
    return rewritten(saved(torch.ones(4)), {"data.pkl": b"\x80\x02" + body + b"."})


STORAGE = (
    b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQ"
)


def rebuilt(offset: bytes, size: bytes, stride: bytes) -> io.BytesIO:
    return hostile(
        b"ctorch._utils\n_rebuild_tensor_v2\n("
        + STORAGE
        + offset
        + size
        + stride
        + b"\x89ccollections\nOrderedDict\n)RtR"
    )


def test_tensors_must_fit_their_storage() -> None:
    assert load(rebuilt(b"K\x01", b"K\x03\x85", b"K\x01\x85")).tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError, match="out of bounds for storage of size 16"):
        load(rebuilt(b"K\x01", b"K\x04\x85", b"K\x01\x85"))
    with pytest.raises(RuntimeError, match="out of bounds"):
        load(rebuilt(b"K\x00", b"K\x02\x85", b"K\x09\x85"))
    with pytest.raises(RuntimeError, match="strides"):
        load(rebuilt(b"K\x00", b"K\x02\x85", b"J\xff\xff\xff\xff\x85"))
    with pytest.raises(RuntimeError, match="offset"):
        load(rebuilt(b"J\xff\xff\xff\xff", b"K\x02\x85", b"K\x01\x85"))


@pytest.mark.parametrize(
    "body",
    [
        b"cbuiltins\neval\n(X\x01\x00\x00\x001tR", b"cos\nsystem\n(X\x02\x00\x00\x00lstR", b"cbuiltins\ngetattr\n(NNtR",
        b"ctorch\nload\n(X\x01\x00\x00\x00xtR", b"cbuiltins\nbytearray\n(J\xff\xff\xff\x7ftR", b"ctorch\nTensor\n(K\x01tR", b"h\x05", b"R", b"]u", b"(K\x01K\x02a",
        b"]}X\x01\x00\x00\x00aK\x01sb", b"ccollections\nOrderedDict\n}X\x01\x00\x00\x00aK\x01sb", b"ctorch._utils\n_rebuild_tensor_v2\n}X\x01\x00\x00\x00aK\x01sb",
        b"X\xff\xff\xff\x7f", b"I1\n", b"i__main__\nFoo\n", b"K\x01Q", b"(K\x01tQ", b"\xff",
    ],
)  # fmt: skip
def test_hostile_pickles(body: bytes) -> None:
    with pytest.raises((pickle.UnpicklingError, RuntimeError, EOFError)):
        load(hostile(body))


def test_attributes_of_a_tensor_cannot_be_overwritten() -> None:
    body = (
        b"ctorch._utils\n_rebuild_tensor_v2\n("
        + STORAGE
        + b"K\x00K\x02\x85K\x01\x85\x89ccollections\nOrderedDict\n)RtR"
    )
    t = load(
        hostile(
            body
            + b"}(X\x05\x00\x00\x00shapeK\x63X\x08\x00\x00\x00_stridesK\x01X\x04\x00\x00\x00noteK\x07ub"
        )
    )
    assert t.shape == (2,)
    assert t.note == 7
    assert t.stride() == (1,)


def test_pickle_modules_of_the_user_read_trusted_files() -> None:
    class Strict(pickle.Unpickler):
        def load(self) -> Any:
            raise RuntimeError("read by the user's module")

    for new in (True, False):
        file = saved(torch.ones(2), _use_new_zipfile_serialization=new)
        with pytest.raises(RuntimeError, match="read by the user's module"):
            load(file, pickle_module=SimpleNamespace(Unpickler=Strict))


@pytest.mark.parametrize("weights_only", [True, False])
def test_older_files_follow_each_other(weights_only: bool) -> None:
    file = io.BytesIO()
    for k in (2, 3):
        pickle.dump(k, file)
        save(torch.full((k,), k), file, _use_new_zipfile_serialization=False)
    file.seek(0)
    for k in (2, 3):
        assert pickle.load(file) == k
        assert load(file, weights_only=weights_only).tolist() == [k] * k


def test_texts_of_python_2_may_stay_bytes() -> None:
    data = (
        b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}.\x80\x02](U\x01a(U\x07storagectorch\nFloatStorage\n"
        b"U\x0212U\x03cpuK\x01NtQU\x01be.\x80\x02]U\x0212a.\x01\0\0\0\0\0\0\0\0\0\x80?"
    )
    for weights_only in (True, False):
        first, storage, last = load(io.BytesIO(data), encoding="bytes", weights_only=weights_only)
        assert (first, storage.tolist(), last) == (b"a", [1.0], b"b")


def test_empty_storages_of_several_dtypes_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storages, "_warned", False)  # the warning is shown once per process
    empty = torch.tensor([], dtype=torch.float64)
    with pytest.warns(UserWarning, match="TypedStorage is deprecated") as seen:
        other = torch.TypedStorage(wrap_storage=empty.untyped_storage(), dtype=torch.int32)
    assert seen[0].filename == __file__
    for new in (True, False):
        _, found = load(saved([empty, other], _use_new_zipfile_serialization=new))
        assert found.dtype is torch.int32


def test_names_that_are_refused_can_be_listed() -> None:
    for protocol in (2, 4):
        file = saved([torch.ones(2), Path("a"), Counter("a")], pickle_protocol=protocol)
        assert len(serialization.get_unsafe_globals_in_checkpoint(file)) == 1
        with serialization.safe_globals([type(Path("a"))]):
            file.seek(0)
            assert serialization.get_unsafe_globals_in_checkpoint(file) == []
    with pytest.raises(ValueError, match=r"returned by torch\.save"):
        serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(b"no zip file"))


def test_files_that_do_not_tell_their_byte_order() -> None:
    file = saved(torch.tensor([1], dtype=torch.int16), _disable_byteorder_record=True)
    assert load(file).item() == 1
    serialization.set_default_load_endianness(serialization.LoadEndianness.BIG)
    try:
        file.seek(0)
        assert load(file).item() == 256
    finally:
        serialization.set_default_load_endianness(None)
    with pytest.raises(TypeError, match="Invalid argument type"):
        serialization.set_default_load_endianness("big")


def test_places_of_a_programs_own(monkeypatch: pytest.MonkeyPatch) -> None:
    table = list(serialization._package_registry)
    monkeypatch.setattr(serialization.packages, "_package_registry", table)
    for name in ("TAG", "RESTORE"):
        monkeypatch.setattr(serialization.rebuild, name, None)
    x = torch.arange(3.0)
    assert serialization.location_tag(x.untyped_storage()) == str(x.device)
    with pytest.raises(RuntimeError, match=r"don't know how to restore .* \(tagged with vault\)"):
        serialization.default_restore_location(x.untyped_storage(), "vault")
    seen: list[str] = []

    def bring(storage: Any, location: str) -> Any:
        seen.append(location)
        return storage if location == "vault" else None

    serialization.register_package(
        5, lambda storage: "vault" if storage.nbytes() == 12 else None, bring
    )
    assert serialization.location_tag(x.untyped_storage()) == "vault"
    for how in ({}, {"map_location": {"vault": "vault"}}, {"map_location": lambda s, place: None}):
        file = io.BytesIO()
        torch.save({"x": x, "y": torch.ones(2)}, file)
        file.seek(0)
        found = torch.load(file, **how)
        assert found["x"].tolist() == [0, 1, 2]
        assert found["y"].tolist() == [1, 1]
        assert b"vault" in file.getvalue()
    assert "vault" in seen and str(x.device) in seen


@pytest.mark.parametrize("protocol", [2, 4])
def test_classes_that_protocol_2_calls_by_old_names(protocol: int) -> None:
    for value in (int, range(3), ValueError, defaultdict(int, a=1)):
        file = io.BytesIO()
        save(value, file, pickle_protocol=protocol)
        file.seek(0)
        assert load(file, weights_only=False) == value


def test_sparse_tensors_in_older_files() -> None:
    dense = torch.tensor([[0.0, 2, 0], [0, 0, 3]])
    made = [dense.to_sparse(), dense.to_sparse_csr(), dense.to_sparse_csc()]
    for weights_only in (True, False):
        file = saved(made, _use_new_zipfile_serialization=False)
        for t, found in zip(made, load(file, weights_only=weights_only), strict=True):
            assert found.layout is t.layout and found.to_dense().tolist() == dense.tolist()
            assert (found * 2).to_dense().tolist() == (dense * 2).tolist()
    for layout, *parts in (
        (torch.sparse_coo, torch.tensor([[5]]), torch.ones(1), (3,)),
        (torch.sparse_csr, torch.tensor([1, 1]), torch.tensor([0]), torch.ones(1), (1, 2)),
    ):
        spoofed = Spoofed("_rebuild_sparse_tensor", layout, tuple(parts))
        file = saved(spoofed, _use_new_zipfile_serialization=False)
        with pytest.raises(
            RuntimeError, match=r"size is inconsistent|`crow_indices\[..., 0\] == 0`"
        ):
            load(file)
