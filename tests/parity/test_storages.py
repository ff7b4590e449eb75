"""Storages: elements, printed forms, errors, and files that contain storages, as in torch."""

from __future__ import annotations

import io
import pickle
import warnings
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest
from parity.oracle import Ran, assert_same_error, th
from support import ct

DTYPES = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64")  # fmt: skip


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def base(lib: Any) -> Any:
    return lib.arange(6, dtype=lib.float32).reshape(2, 3)


VALUES: dict[str, Callable[[Any, Any], Any]] = {
    "lengths": lambda lib, x: (len(x.storage()), x.storage().size(), x.storage().nbytes(), len(x.untyped_storage()), x.untyped_storage().size()),
    "elements": lambda lib, x: (x.storage()[1], x.storage()[-1], x.untyped_storage()[6], x[1].storage().tolist()),
    "sizes of elements": lambda lib, x: (x.storage().element_size(), x.untyped_storage().element_size()),
    "texts": lambda lib, x: (repr(x.storage()), repr(x.untyped_storage()), repr(lib.FloatStorage())),
    "slice of bytes": lambda lib, x: x.untyped_storage()[2:8].tolist(),
    "names": lambda lib, x: (x.storage().type(), x.untyped_storage().type(), x.storage().pickle_storage_type(), repr(lib.FloatStorage)),
    "casts": lambda lib, x: [repr(getattr(x.storage(), n)()) for n in ("double", "long", "half", "bool", "byte", "complex_float")],
    "cast of bytes": lambda lib, x: repr(lib.UntypedStorage([1, 2, 3]).float()),
    "made": lambda lib, x: (repr(lib.FloatStorage([1, 2])), len(lib.FloatStorage(2)), repr(lib.TypedStorage([1, 2], dtype=lib.int64)), repr(lib.UntypedStorage([1, 255]))),
    "wrapped": lambda lib, x: repr(lib.TypedStorage(wrap_storage=x.untyped_storage(), dtype=lib.int32)),
    "buffers": lambda lib, x: (repr(lib.FloatStorage.from_buffer(b"\0\0\x80?", "little")), repr(lib.ShortStorage.from_buffer(b"\0\1", "big"))),
    "isinstance": lambda lib, x: (isinstance(x.storage(), lib.FloatStorage), isinstance(x.storage(), lib.LongStorage), lib.is_storage(x.storage()), lib.is_storage(x)),
    "as tensors": lambda lib, x: (lib.tensor(x.storage()).tolist(), lib.FloatTensor(x.storage()).tolist(), lib.Tensor(lib.FloatStorage([1, 2])).tolist()),
    "set_": lambda lib, x: (lib.tensor([]).set_(x.storage()).tolist(), lib.tensor([], dtype=lib.int32).set_(x.untyped_storage()).tolist()),
    "same memory": lambda lib, x: (x.storage().data_ptr() == x.data_ptr(), x.untyped_storage() == x[1].untyped_storage(), x.storage().clone().data_ptr() == x.data_ptr()),
    "moved": lambda lib, x: (x.storage().cpu().data_ptr() == x.data_ptr(), x.storage().is_cuda, str(x.storage().device), x.storage().is_shared()),
    "torch.storage": lambda lib, x: (isinstance(x.storage(), lib.storage.TypedStorage), isinstance(x.untyped_storage(), lib.storage.UntypedStorage)),
    "class": lambda lib, x: (x.storage_type() is lib.FloatStorage, lib.LongStorage.dtype is lib.int64),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_values(name: str) -> None:
    assert VALUES[name](ct, base(ct)) == VALUES[name](th, base(th))


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_of_each_dtype(dtype: str) -> None:
    def said(lib: Any) -> Any:
        t = lib.tensor([0, 1, 2]).to(getattr(lib, dtype))
        return repr(t.storage()), t.storage().type(), t.untyped_storage().tolist()

    assert said(ct) == said(th)


def test_writes_are_seen_by_tensors() -> None:
    def said(lib: Any) -> Any:
        x = base(lib) + 1  # the result of an op, pending unless ops run at once
        x.storage()[0] = 9.5
        x.storage()[4:] = -1
        x.untyped_storage()[7] = 65
        first = x.tolist()
        x.storage().fill_(2)
        second = x.tolist()
        x.storage().copy_(lib.FloatStorage(range(6)))
        return first, second, x.tolist()

    assert said(ct) == said(th)


def test_sizes_change() -> None:
    def said(lib: Any) -> Any:
        x = base(lib)
        x.untyped_storage().resize_(0)
        none = x.untyped_storage().nbytes()
        x.untyped_storage().resize_(24)
        x.untyped_storage().copy_(base(lib).untyped_storage())
        return none, x.tolist()

    assert said(ct) == said(th)


ERRORS: dict[str, Callable[[Any, Any], Any]] = {
    "place": lambda lib, x: x.storage()[100],
    "place of a byte": lambda lib, x: x.untyped_storage()[100],
    "slice": lambda lib, x: x.storage()[1:3],
    "no index of bytes": lambda lib, x: x.untyped_storage()["a"],
    "no ints": lambda lib, x: lib.UntypedStorage([1.5]),
    "sizes": lambda lib, x: x.untyped_storage().copy_(lib.UntypedStorage(3)),
    "type of set_": lambda lib, x: lib.tensor([], dtype=lib.int32).set_(x.storage()),
    "type of a constructor": lambda lib, x: lib.DoubleTensor(x.storage()),
    "no dtype": lambda lib, x: lib.TypedStorage(wrap_storage=x.untyped_storage()),
    "a tensor of another dtype": lambda lib, x: lib.tensor(x.storage(), dtype=lib.float64),
    "a tensor of the default dtype": lambda lib, x: lib.tensor(x.long().storage()),
    "as_tensor of another dtype": lambda lib, x: lib.as_tensor(x.storage(), dtype=lib.float64),
    "asarray of another dtype": lambda lib, x: lib.asarray(x.bool().storage()),
    "new_tensor of another dtype": lambda lib, x: x.double().new_tensor(x.storage()),
    "new of another dtype": lambda lib, x: x.double().new(x.storage()),
    "typed by name": lambda lib, x: lib.LongTensor(x.storage()),
}


@pytest.mark.parametrize("name", ERRORS)
def test_refusals(name: str) -> None:
    got, want = (Ran(lib, lambda lib: ERRORS[name](lib, base(lib))) for lib in (ct, th))
    assert_same_error(got, want)


@pytest.mark.ours
def test_copies_and_pickles_have_memory_of_their_own() -> None:
    x = base(ct)
    for made in (deepcopy(x.storage()), pickle.loads(pickle.dumps(x.storage()))):
        assert made.tolist() == x.storage().tolist()
        assert made.data_ptr() != x.data_ptr()
    assert pickle.loads(pickle.dumps(x.untyped_storage())).tolist() == x.untyped_storage().tolist()
    both = deepcopy({"tensor": x, "storage": x.storage()})
    assert both["tensor"].data_ptr() == both["storage"].data_ptr()


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("writer", [ct, th])
def test_files_of_either_format_are_read_by_both(writer: Any, zipped: bool) -> None:
    x = base(writer)
    saved = {"x": x, "row": x[1], "s": x.storage(), "h": writer.ones(3, dtype=writer.bfloat16)}
    saved |= {"empty": writer.zeros(0), "l": writer.nn.Linear(2, 3).state_dict()}
    file = io.BytesIO()
    writer.save(saved, file, _use_new_zipfile_serialization=zipped)
    for reader in (ct, th):
        file.seek(0)
        got = reader.load(file)
        assert got["x"].tolist() == x.tolist() and got["h"].tolist() == [1, 1, 1]
        assert repr(got["s"]) == repr(x.storage())
        assert got["row"].untyped_storage().data_ptr() == got["x"].data_ptr()
        assert got["s"].data_ptr() == got["x"].data_ptr() and got["empty"].numel() == 0
        assert list(got["l"]) == ["weight", "bias"]


def test_one_memory_is_saved_as_one_type() -> None:
    def save(lib: Any) -> None:
        x = base(lib)
        lib.save([x, x.untyped_storage()], io.BytesIO())

    assert_same_error(Ran(ct, save), Ran(th, save))


STORAGE_LINES = """
torch.tensor(U)
torch.tensor(U, dtype=torch.uint8)
torch.tensor(U, dtype=torch.int16)
torch.tensor(U, dtype=torch.bool)
torch.tensor(U, dtype=torch.float32)
torch.tensor(torch.UntypedStorage(list(range(7))), dtype=torch.int16)
torch.as_tensor(U, dtype=torch.float32)
torch.asarray(U, dtype=torch.float32)
torch.asarray(U)
"""


@pytest.mark.parametrize("line", STORAGE_LINES.split("\n")[1:-1])
def test_bytes_are_read_as_numbers(line: str) -> None:
    results = []
    for torch in (th, ct):
        t = eval(line, {"torch": torch, "U": torch.UntypedStorage(list(range(16)))})
        results.append((str(t.dtype).rpartition(".")[2], t.tolist()))
    assert results[1] == results[0]


@pytest.mark.ours
def test_as_tensor_is_on_the_storage() -> None:
    storage = ct.UntypedStorage(list(range(16)))
    t = ct.as_tensor(storage, dtype=ct.uint8)
    t[3] = 99
    assert storage[3] == 99
    copy = ct.tensor(storage, dtype=ct.uint8)
    copy[3] = 7
    assert storage[3] == 99
