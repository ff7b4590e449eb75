"""Data loading: datasets and samplers give the documented samples, and the loader in this process gives batches of
them."""

from __future__ import annotations

import importlib
from collections import Counter, OrderedDict, namedtuple
from typing import Any

import numpy as np
import pytest
import worker_datasets as sets

import cltensor as torch
from cltensor.utils import data
from cltensor.utils.data import DataLoader


def values(loader: DataLoader) -> list[Any]:
    return [batch.tolist() for batch in loader]


# ------------------------------------------------------------------------------------- datasets


def test_tensor_dataset() -> None:
    x, y = torch.arange(6.0).reshape(3, 2), torch.arange(3)
    made = data.TensorDataset(x, y)
    assert len(made) == 3
    assert [t.tolist() for t in made[1]] == [[2, 3], 1]
    with pytest.raises(AssertionError, match="Size mismatch between tensors"):
        data.TensorDataset(x, torch.arange(4))


def test_stack_dataset() -> None:
    a, b = sets.Squares(3), data.Subset(sets.Squares(9), [4, 5, 6])
    rows = data.StackDataset(a, b)
    assert rows[1][1][1] == 25
    assert [r[0][1] for r in rows.__getitems__([2, 0])] == [4, 0]
    named = data.StackDataset(first=a, second=b)
    assert len(named) == 3
    assert named[2]["second"][1] == 36
    assert [r["second"][1] for r in named.__getitems__([0])] == [16]
    for bad in (lambda: data.StackDataset(), lambda: data.StackDataset(a, x=b)):
        with pytest.raises(ValueError):
            bad()
    with pytest.raises(ValueError, match="Size mismatch between datasets"):
        data.StackDataset(a, sets.Squares(4))


def test_concatenated_datasets() -> None:
    made = sets.Squares(2) + sets.Squares(3)
    assert isinstance(made, data.ConcatDataset)
    assert [made[i][1] for i in range(5)] == [0, 1, 0, 1, 4]
    assert made[-1][1] == 4
    with pytest.raises(ValueError, match="absolute value of index"):
        made[-6]
    with pytest.raises(AssertionError, match="empty iterable"):
        data.ConcatDataset([])
    with pytest.raises(AssertionError, match="does not support IterableDataset"):
        data.ConcatDataset([sets.Stream(2)])
    chain = sets.Stream(2) + sets.Stream(3)
    assert list(chain) == [0, 1, 0, 1, 2]
    with pytest.raises(AssertionError, match="only supports IterableDataset"):
        list(data.ChainDataset([sets.Squares(2)]))
    with pytest.raises(NotImplementedError, match="should implement __getitem__"):
        data.Dataset()[0]


def test_random_split() -> None:
    whole = range(10)
    parts = data.random_split(whole, [7, 3], generator=torch.Generator().manual_seed(1))
    assert [len(p) for p in parts] == [7, 3]
    assert sorted(i for p in parts for i in p) == list(whole)
    again = data.random_split(whole, [7, 3], generator=torch.Generator().manual_seed(1))
    assert [p.indices for p in parts] == [p.indices for p in again]
    assert [len(p) for p in data.random_split(range(11), [0.5, 0.25, 0.25])] == [6, 3, 2]
    with pytest.raises(ValueError, match="Sum of input lengths"):
        data.random_split(whole, [5, 4])
    with pytest.raises(ValueError, match="Fraction at index 0 is not between 0 and 1"):
        data.random_split(whole, [-0.5, 1.5])
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
        data.random_split(range(1), [1.0, 0.0])


# ------------------------------------------------------------------------------------- samplers


def test_samplers() -> None:
    whole = range(10)
    assert list(data.SequentialSampler(whole)) == list(whole)
    assert sorted(data.RandomSampler(whole)) == list(whole)
    longer = Counter(data.RandomSampler(whole, num_samples=25))
    assert set(longer.values()) == {2, 3}
    drawn = list(data.RandomSampler(whole, replacement=True, num_samples=1500))
    assert len(drawn) == 1500
    assert set(drawn) == set(whole)
    assert sorted(data.SubsetRandomSampler([3, 5, 8])) == [3, 5, 8]
    weighted = list(data.WeightedRandomSampler([0, 1, 0, 3], 100))
    assert set(weighted) == {1, 3}
    assert sorted(data.WeightedRandomSampler([1, 1, 1], 3, replacement=False)) == [0, 1, 2]
    batches = data.BatchSampler(range(5), 2, False)
    assert list(batches) == [[0, 1], [2, 3], [4]]
    assert len(batches) == 3
    short = data.BatchSampler(range(5), 2, True)
    assert list(short) == [[0, 1], [2, 3]]
    assert len(short) == 2


def test_a_generator_repeats_the_order() -> None:
    orders = [
        list(data.RandomSampler(range(50), generator=torch.Generator().manual_seed(3)))
        for _ in range(2)
    ]
    assert orders[0] == orders[1]
    torch.manual_seed(5)
    first = [list(data.RandomSampler(range(50))) for _ in range(2)]
    torch.manual_seed(5)
    assert first == [list(data.RandomSampler(range(50))) for _ in range(2)]
    assert first[0] != first[1]


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: data.RandomSampler([1], replacement=1), TypeError, "replacement should be a boolean"),
        (lambda: data.RandomSampler([]), ValueError, "num_samples should be a positive integer"),
        (lambda: data.WeightedRandomSampler([1], 0), ValueError, "num_samples should be a positive"),
        (lambda: data.WeightedRandomSampler([[1.0]], 1), ValueError, "weights should be a 1d sequence"),
        (lambda: data.BatchSampler([1], 0, False), ValueError, "batch_size should be a positive"),
        (lambda: data.BatchSampler([1], 1, 0), ValueError, "drop_last should be a boolean"),
        (lambda: data.DistributedSampler([1]), ValueError, "Default process group has not been initialized"),
        (lambda: data.DistributedSampler([1], 2, 2), ValueError, "Invalid rank 2, rank should be in"),
    ],
)  # fmt: skip
def test_samplers_refuse(make: Any, error: type, text: str) -> None:
    with pytest.raises(error, match=text):
        make()


def test_distributed_sampler() -> None:
    whole = range(10)
    parts = [data.DistributedSampler(whole, 3, r, shuffle=False) for r in range(3)]
    assert [list(p) for p in parts] == [[0, 3, 6, 9], [1, 4, 7, 0], [2, 5, 8, 1]]
    cut = [list(data.DistributedSampler(whole, 3, r, drop_last=True)) for r in range(3)]
    assert [len(c) for c in cut] == [3, 3, 3]
    assert len({i for c in cut for i in c}) == 9
    sampler = data.DistributedSampler(whole, 2, 0)
    first = list(sampler)
    assert first == list(sampler)
    sampler.set_epoch(1)
    assert first != list(sampler)


# ------------------------------------------------------------------------------------- collating

Point = namedtuple("Point", "x y")


def test_default_collate() -> None:
    def same(found: Any, expected: Any, dtype: Any) -> None:
        assert isinstance(found, torch.Tensor)
        assert (found.tolist(), found.dtype) == (expected, dtype)

    collate = data.default_collate
    same(collate([1, 2]), [1, 2], torch.int64)
    same(collate([1.5, 2]), [1.5, 2], torch.float64)
    same(collate([True, False]), [True, False], torch.bool)
    same(collate([np.float32(1), np.float32(2)]), [1, 2], torch.float32)
    same(collate([np.ones(2, np.int16), np.zeros(2, np.int16)]), [[1, 1], [0, 0]], torch.int16)
    same(collate([torch.ones(2), torch.zeros(2)]), [[1, 1], [0, 0]], torch.float32)
    assert collate(["a", "b"]) == ["a", "b"]
    named = collate([Point(1, 2), Point(3, 4)])
    assert type(named) is Point
    assert named.y.tolist() == [2, 4]
    ordered = collate([OrderedDict(a=1), OrderedDict(a=2)])
    assert type(ordered) is OrderedDict
    assert ordered["a"].tolist() == [1, 2]
    pairs = collate([(1, [2, 3]), (4, [5, 6])])
    assert pairs[0].tolist() == [1, 4]
    assert [t.tolist() for t in pairs[1]] == [[2, 5], [3, 6]]
    with pytest.raises(RuntimeError, match="each element in list of batch should be of equal size"):
        collate([[1], [1, 2]])
    with pytest.raises(TypeError, match="default_collate: batch must contain tensors"):
        collate([object()])
    with pytest.raises(TypeError, match="found <U1"):
        collate([np.array("a")])


def test_default_convert() -> None:
    found = data.default_convert({"a": np.arange(2), "b": [np.float64(1), "text"], "c": 3})
    assert found["a"].tolist() == [0, 1]
    assert found["b"][0].dtype is torch.float64
    assert (found["b"][1], found["c"]) == ("text", 3)


def test_own_types_in_the_registry() -> None:
    class Own:
        pass

    table = {Own: lambda batch, *, collate_fn_map=None: len(batch)}
    assert data.collate([Own(), Own()], collate_fn_map=table) == 2


# ------------------------------------------------------------------------------------- the loader in this process


def test_batches() -> None:
    loader = DataLoader(sets.Squares(5), 2)
    found = list(loader)
    assert len(loader) == len(found) == 3
    assert [b[1].tolist() for b in found] == [[0, 1], [4, 9], [16]]
    assert found[2][0].tolist() == [[4, 4, 4]]
    assert len(list(DataLoader(sets.Squares(5), 2, drop_last=True))) == 2
    one = next(iter(DataLoader(sets.Squares(5), None)))
    assert one[0].tolist() == [0, 0, 0]
    own = DataLoader(sets.Squares(5), batch_sampler=[[4, 0], [1]])
    assert [b[1].tolist() for b in own] == [[16, 0], [1]]
    assert sorted(v for b in DataLoader(range(9), 2, shuffle=True) for v in b.tolist()) == [
        *range(9)
    ]


def test_rows_of_tensors_are_gathered() -> None:
    x = torch.arange(12.0).reshape(6, 2).requires_grad_()
    y = torch.arange(6)
    whole = data.TensorDataset(x, y)
    assert [b[0].tolist() for b in DataLoader(whole, 4)] == [x[:4].tolist(), x[4:].tolist()]
    part = data.Subset(whole, [5, 1, 3])
    first = next(iter(DataLoader(part, 2)))
    assert type(first) is list
    assert (first[0].tolist(), first[1].tolist()) == ([[10, 11], [2, 3]], [5, 1])
    first[0].sum().backward()
    assert x.grad.sum(1).tolist() == [0, 2, 0, 0, 0, 2]


def test_streams() -> None:
    assert values(DataLoader(sets.Stream(5), 2)) == [[0, 1], [2, 3], [4]]
    assert values(DataLoader(sets.Stream(5), 2, drop_last=True)) == [[0, 1], [2, 3]]
    assert list(DataLoader(sets.Stream(3), None)) == [0, 1, 2]
    with pytest.raises(TypeError):
        len(DataLoader(sets.Stream(5), 2))


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"num_workers": -1}, ValueError, "num_workers option should be non-negative"),
        ({"timeout": -1}, ValueError, "timeout option should be non-negative"),
        ({"prefetch_factor": 2}, ValueError, "prefetch_factor option could only be specified in multi"),
        ({"persistent_workers": True}, ValueError, "persistent_workers option needs num_workers > 0"),
        ({"shuffle": True, "sampler": [0]}, ValueError, "sampler option is mutually exclusive with shuffle"),
        ({"batch_sampler": [[0]], "drop_last": True}, ValueError, "batch_sampler option is mutually exclusive"),
        ({"batch_size": None, "drop_last": True}, ValueError, "batch_size=None option disables auto-batching"),
        ({"batch_size": 0}, ValueError, "batch_size should be a positive integer"),
        ({"multiprocessing_context": "spawn"}, ValueError, "multiprocessing_context can only be used with"),
        ({"multiprocessing_context": "no", "num_workers": 1}, ValueError, "should specify a valid start method"),
        ({"multiprocessing_context": 3, "num_workers": 1}, TypeError, "should be a valid context object"),
    ],
)  # fmt: skip
def test_the_loader_refuses(arguments: dict[str, Any], error: type, text: str) -> None:
    with pytest.raises(error, match=text):
        DataLoader(range(3), **arguments)


def test_the_loader_refuses_what_streams_cannot() -> None:
    for name, value in {"shuffle": True, "sampler": [1], "batch_sampler": [[1]]}.items():
        with pytest.raises(ValueError, match=f"expected unspecified {name} option"):
            DataLoader(sets.Stream(3), **{name: value})
    loader = DataLoader(range(3))
    with pytest.raises(ValueError, match="batch_size attribute should not be set after"):
        loader.batch_size = 3


def test_collating_is_found_where_torch_keeps_it() -> None:
    from cltensor.utils.data._utils.collate import default_collate_err_msg_format

    from cltensor.utils.data import _utils, default_collate

    assert _utils.collate.default_collate is default_collate
    with pytest.raises(TypeError) as found:
        default_collate([object()])
    assert str(found.value) == default_collate_err_msg_format.format(object)


def test_pin_memory_reaches_into_containers_and_calls_the_methods_of_batches():
    from cltensor.utils.data._utils.pin_memory import pin_memory

    class Batch:
        pinned = False

        def pin_memory(self):
            self.pinned = True
            return self

    x, batch = torch.ones(2), Batch()
    got = pin_memory({"a": (x, "text", 3), "b": [batch]})
    assert got["a"][0] is x and got["a"][1:] == ["text", 3]
    assert got["b"] == [batch] and batch.pinned


def test_iterators_have_torchs_names() -> None:
    loader = importlib.import_module("cltensor.utils.data.dataloader")
    found = iter(data.DataLoader([1, 2]))
    assert type(found) is loader._SingleProcessDataLoaderIter
    assert isinstance(found, loader._BaseDataLoaderIter)
    assert issubclass(loader._MultiProcessingDataLoaderIter, loader._BaseDataLoaderIter)
