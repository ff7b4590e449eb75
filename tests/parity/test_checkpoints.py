"""Checkpoints go both ways between the libraries: what one writes the other reads, with storages shared as before."""

from __future__ import annotations

import copy
import importlib
import io
import pickle
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
from support import ct

from cltensor.serialization import load, save

th: Any = pytest.importorskip("torch", minversion="2.13", reason="torch 2.13 is the oracle")
pytestmark = pytest.mark.ours

DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float64",
    "complex64",
    "complex128",
]
NEWER = ["uint16", "uint32", "uint64"]


def content(module: Any, dtypes: list[str] = DTYPES + NEWER) -> dict[Any, Any]:
    """Return what a checkpoint may contain: tensors that share memory, every dtype, and Python objects."""
    base = module.arange(12.0).reshape(3, 4)
    state = OrderedDict(
        a=base,
        b=base[1:, ::2].t(),
        scalar=module.tensor(3),
        empty=module.zeros(0, 3),
        grad=module.ones(2, requires_grad=True),
    )
    for name in dtypes:
        state[name] = module.ones(3, dtype=getattr(module, name))
    state._metadata = OrderedDict(version=1)
    return {
        "state": state, "again": base, "set": {1, 2}, "size": module.Size([1, 2]), "dtype": module.float32, "device": module.device("cuda:1"), "bytes": b"xy",
        "complex": 1j, "none": None, "tuple": (1, 2.5, "ü", True, 2**70, -5, [1]), 1: 2, "array": bytearray(b"q"),
    }  # fmt: skip


def assert_same(found: dict[Any, Any], expected: dict[Any, Any]) -> None:
    """Assert that a loaded `content` equals the expected one, and that its two tensors still share memory."""
    assert list(found) == list(expected)
    assert found["state"]._metadata == expected["state"]._metadata
    assert list(found["state"]) == list(expected["state"])
    for key, b in expected["state"].items():
        a = found["state"][key]
        assert type(a) is type(b)
        assert (a.tolist(), str(a.dtype), a.shape, a.stride(), a.requires_grad) == (
            b.tolist(),
            str(b.dtype),
            b.shape,
            b.stride(),
            b.requires_grad,
        )
    found["again"][1, 0] = 99
    assert found["state"]["b"][0, 0].item() == 99
    for key in ("set", "size", "dtype", "device", "bytes", "complex", "none", "tuple", 1, "array"):
        assert found[key] == expected[key]


@pytest.mark.parametrize("weights_only", [True, False])
def test_torch_reads_ours(weights_only: bool, tmp_path: Path) -> None:
    path = tmp_path / "ours.pt"
    save(content(ct), path)
    assert_same(th.load(path, weights_only=weights_only), content(th))
    assert_same(th.load(path, mmap=True, weights_only=weights_only), content(th))


@pytest.mark.parametrize("weights_only", [True, False])
def test_we_read_torchs(weights_only: bool, tmp_path: Path) -> None:
    path = tmp_path / "torchs.pt"
    th.save(content(th), path)
    assert_same(load(path, weights_only=weights_only), content(ct))
    assert_same(load(path, mmap=True, weights_only=weights_only), content(ct))


@pytest.mark.parametrize("weights_only", [True, False])
def test_we_read_torchs_older_format(weights_only: bool) -> None:
    file = io.BytesIO()
    th.save(content(th, DTYPES), file, _use_new_zipfile_serialization=False)
    file.seek(0)
    assert_same(load(file, weights_only=weights_only), content(ct, DTYPES))


def test_a_state_dict_of_torch_modules() -> None:
    net = th.nn.Sequential(th.nn.Linear(3, 4), th.nn.BatchNorm1d(4))
    optimizer = th.optim.Adam(net.parameters())
    net(th.randn(5, 3)).sum().backward()
    optimizer.step()
    file = io.BytesIO()
    th.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    found = load(file)
    for key, value in net.state_dict().items():
        assert found["net"][key].tolist() == value.tolist()
    assert (
        found["optimizer"]["state"][0]["exp_avg"].tolist()
        == optimizer.state_dict()["state"][0]["exp_avg"].tolist()
    )
    back = io.BytesIO()
    save(found, back)
    back.seek(0)
    net.load_state_dict(th.load(back)["net"])
    back.seek(0)
    optimizer.load_state_dict(th.load(back)["optimizer"])


def test_parameters() -> None:
    file = io.BytesIO()
    th.save(th.nn.Parameter(th.ones(2)), file)
    file.seek(0)
    found = load(file)
    assert type(found) is ct.nn.Parameter
    assert found.requires_grad
    back = io.BytesIO()
    save([found, ct.nn.Parameter(ct.zeros(1), requires_grad=False)], back)
    back.seek(0)
    first, second = th.load(back)
    assert type(first) is type(second) is th.nn.Parameter
    assert (first.requires_grad, second.requires_grad) == (True, False)
    assert first.tolist() == [1, 1]


# ------------------------------------------------------------------------------------- many structures, both ways


def _optimizer(torch: Any) -> Any:
    state = {"step": torch.tensor(3.0), "exp_avg": torch.ones(2), "max_exp_avg_sq": None}
    groups = [{"lr": 1e-3, "betas": (0.9, 0.999), "amsgrad": False, "params": [0, 1]}]
    return {"state": {0: state, 1: {}}, "param_groups": groups}


def _with_metadata(torch: Any) -> Any:
    made = OrderedDict([("0.weight", torch.ones(2, 2)), ("0.bias", torch.zeros(2))])
    made._metadata = OrderedDict([("", {"version": 1}), ("0", {"version": 2})])
    return made


def _shared(torch: Any) -> Any:
    base = torch.arange(24.0).reshape(2, 3, 4)
    views = [base[1], base.permute(2, 0, 1), base[..., ::2], base[0].diagonal(), base[:0]]
    return {"all": base, "views": views}


def _again(torch: Any) -> Any:
    made: list[Any] = [torch.ones(1)]
    made.append((made[0], {"again": made[0]}))
    return made


STRUCTURES: dict[str, Any] = {
    "none": lambda t: None,
    "true": lambda t: True,
    "small int": lambda t: [0, 1, 255, 256, 65535, 65536, -1, -(2**31)],
    "large int": lambda t: [2**31, 2**63, -(2**63), 2**200, -(2**200)],
    "float": lambda t: [0.0, -0.0, 1e308, 5e-324, float("inf")],
    "complex": lambda t: 1 - 2j,
    "text": lambda t: ["", "a", "ü€😀", "x" * 300, "line\nbreak"],
    "bytes": lambda t: [b"\x00\xff", b"y" * 300],
    "bytearray": lambda t: bytearray(b"abc"),
    "empty list": lambda t: [],
    "empty tuple": lambda t: (),
    "empty dict": lambda t: {},
    "tuples": lambda t: ((1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), ((), ((),))),
    "long list": lambda t: list(range(2500)),
    "long dict": lambda t: {i: str(i) for i in range(1500)},
    "set": lambda t: {1, "a", (2, 3)},
    "deep": lambda t: [[[[[[{"a": ({"b": [t.ones(1)]},)}]]]]]],
    "ordered": lambda t: OrderedDict([("z", 1), ("a", 2)]),
    "keys": lambda t: {1: "a", "b": 2, (3, 4): None, 2.5: True, None: 0},
    "same object": lambda t: [a := [1, 2], a, a],
    "size": lambda t: [t.Size([]), t.Size([0]), t.Size([2, 3, 4])],
    "dtypes": lambda t: [t.float32, t.bfloat16, t.int64, t.bool, t.complex128, t.uint16],
    "devices": lambda t: [t.device("cpu"), t.device("cuda"), t.device("cuda", 3)],
    "0-dim": lambda t: t.tensor(7.25),
    "0-dim bool": lambda t: t.tensor(True),
    "empty": lambda t: t.zeros(0),
    "empty 3d": lambda t: t.zeros(2, 0, 3),
    "long tensor": lambda t: t.arange(5000),
    "transposed": lambda t: t.arange(6.0).reshape(2, 3).t(),
    "strided": lambda t: t.arange(20)[3::4],
    "expanded": lambda t: t.ones(1, 3).expand(4, 3),
    "offset": lambda t: t.arange(10.0)[7:],
    "permuted": lambda t: t.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1),
    "channels last": lambda t: t.ones(2, 4, 5, 3).permute(0, 3, 1, 2),
    "diagonal": lambda t: t.arange(9.0).reshape(3, 3).diagonal(),
    "unfolded": lambda t: t.arange(7.0).unfold(0, 3, 2),
    "specials": lambda t: t.tensor([float("inf"), -float("inf"), -0.0, 1e-45]),
    "requires grad": lambda t: t.ones(2, requires_grad=True),
    "list of tensors": lambda t: [t.full((i,), float(i)) for i in range(20)],
    "shared": _shared,
    "twice": lambda t: [x := t.ones(3), x],
    "two halves": lambda t: list(t.arange(8.0).chunk(2)),
    "again": _again,
    "parameter": lambda t: t.nn.Parameter(t.ones(2)),
    "frozen parameter": lambda t: t.nn.Parameter(t.ones(2), requires_grad=False),
    "parameter of a view": lambda t: t.nn.Parameter(t.arange(6.0).reshape(2, 3).t()),
    "metadata": _with_metadata,
    "optimizer": _optimizer,
    "training": lambda t: {"epoch": 3, "model": _with_metadata(t), "optimizer": _optimizer(t), "best": 0.25, "args": {"lr": 0.1}},
    "scheduler": lambda t: {"base_lrs": [0.1], "last_epoch": 2, "_step_count": 3, "_last_lr": [0.05]},
    **{f"dtype {name}": lambda t, name=name: t.tensor([[1, 0], [0, 1]]).to(getattr(t, name)).t() for name in [*DTYPES, *NEWER, "float32"]},
}  # fmt: skip


def _same(a: Any, b: Any) -> None:
    """Assert that two nested structures are equal, tensors in layout, dtype and class, too."""
    if hasattr(b, "detach"):
        facts = [
            (t.shape, t.stride(), t.storage_offset(), str(t.dtype), t.requires_grad) for t in (a, b)
        ]
        assert facts[0] == facts[1]
        assert a.tolist() == b.tolist()
        assert type(a).__name__ == type(b).__name__
    elif isinstance(b, (list, tuple)):
        assert type(a).__name__ == type(b).__name__
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            _same(x, y)
    elif isinstance(b, dict):
        assert type(a) is type(b)
        assert list(a) == list(b)
        for key, value in b.items():
            _same(a[key], value)
        assert getattr(a, "_metadata", None) == getattr(b, "_metadata", None)
    elif type(b).__module__.partition(".")[0] in ("torch", "cltensor"):
        assert str(a) == str(b)
    else:
        assert a == b
        assert type(a) is type(b)


def _storages(value: Any, seen: list[int]) -> list[int]:
    """Return, for each non-empty tensor in `value`, the index of the first one that has the same storage."""
    if hasattr(value, "untyped_storage"):
        if value.numel():
            seen.append(value.untyped_storage().data_ptr())
    elif isinstance(value, (list, tuple, dict)):
        for v in value.values() if isinstance(value, dict) else value:
            _storages(v, seen)
    return [seen.index(p) for p in seen]


@pytest.mark.parametrize("name", STRUCTURES)
def test_structures(name: str, tmp_path: Path) -> None:
    make, path = STRUCTURES[name], tmp_path / "x.pt"
    ours, theirs = make(ct), make(th)
    save(ours, path)
    found = th.load(path, weights_only=True)
    _same(found, theirs)
    assert _storages(found, []) == _storages(theirs, [])
    th.save(theirs, path)
    back = load(path)
    _same(back, ours)
    assert _storages(back, []) == _storages(ours, [])
    _same(load(path, weights_only=False, map_location="cpu"), ours)


def test_what_is_set_on_a_tensor_is_kept(tmp_path: Path) -> None:
    def made(module: Any) -> list[Any]:
        tensors = [module.ones(2), module.nn.Parameter(module.ones(2))]
        for t in tensors:
            t.label, t._hidden = ["x"], 3
        return tensors

    path = str(tmp_path / "file")
    for write, read in ((save, th.load), (th.save, load)):
        write(made(ct if write is save else th), path)
        assert [(t.label, t._hidden) for t in read(path)] == [(["x"], 3)] * 2
    tensor, parameter = made(ct)
    for copied in (copy.deepcopy(tensor), pickle.loads(pickle.dumps(tensor))):
        assert copied.label == ["x"] and copied.label is not tensor.label
    assert copy.copy(tensor).label is tensor.label
    assert pickle.loads(pickle.dumps(parameter)).label == ["x"]
    assert not hasattr(copy.deepcopy(parameter), "label")


def test_pickles_of_torch_open_where_this_package_stands_for_it() -> None:
    """A pickle made by torch holds torch's names; a program that replaced torch by this package looks them up here."""
    written = {
        **{name: th.ones(3, dtype=getattr(th, name)) for name in DTYPES},
        "view": th.arange(6.0).reshape(2, 3)[:, 1:],
        "parameter": th.nn.Parameter(th.ones(2)),
        "sparse": th.eye(2).to_sparse(),
    }

    class Renaming(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            root, _, rest = module.partition(".")
            return super().find_class(
                f"cltensor.{rest}".rstrip(".") if root == "torch" else module, name
            )

    read = Renaming(io.BytesIO(pickle.dumps(written))).load()
    assert isinstance(read["parameter"], ct.nn.Parameter)
    assert read["parameter"].requires_grad
    for name, expected in written.items():
        found = read[name].detach()
        assert str(found.dtype) == str(expected.dtype)
        assert found.to_dense().tolist() == expected.detach().to_dense().tolist(), name
    assert read["view"].stride() == (3, 1)


def test_functions_of_torch_are_found_under_the_names_it_pickles(tmp_path: Path) -> None:
    names = [
        "gelu",
        "linear",
        "logsigmoid",
        "softplus",
        "softshrink",
        "one_hot",
        "avg_pool2d",
        "relu",
        "silu",
    ]
    for name in (*names, "scaled_dot_product_attention"):
        th.save(getattr(th.nn.functional, name), tmp_path / "f")
        assert load(tmp_path / "f", weights_only=False) is getattr(ct.nn.functional, name)
    for name in ("tanh", "relu", "sigmoid"):
        th.save(getattr(th, name), tmp_path / "f")
        assert load(tmp_path / "f", weights_only=False) is getattr(ct, name)
    layer = th.nn.TransformerEncoderLayer(8, 2, 4, activation=th.nn.functional.gelu).eval()
    th.save(layer, tmp_path / "layer")
    x = th.arange(24.0).reshape(3, 1, 8).sin()
    ours = load(tmp_path / "layer", weights_only=False)(ct.from_numpy(x.numpy()))
    th.testing.assert_close(th.from_numpy(ours.detach().numpy()), layer(x).detach())


def _subclass(base: Any) -> Any:
    made = type("Own", (base,), {"__module__": __name__})
    globals()["Own"] = made
    return made


def _copies(torch: Any, x: Any) -> list[Any]:
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    return [torch.load(file, weights_only=False), pickle.loads(pickle.dumps(x)), copy.copy(x)]


def test_pickled_subclasses() -> None:
    """Parameters of a subclass become plain ones; all keep their attributes and requires_grad."""

    def told(torch: Any) -> list[Any]:
        found: list[Any] = []
        for base in (torch.nn.Parameter, torch.Tensor):
            x = _subclass(base)(torch.ones(2))
            for attributes in ({}, {"word": [1]}):
                x.__dict__.update(attributes)
                assert len(x.__reduce_ex__(2)) == 2  # subclasses add to the two
                for y in _copies(torch, x):
                    found += [type(y).__name__, y.requires_grad, y.tolist(), dict(y.__dict__)]
        return found

    assert told(ct) == told(th)


@pytest.mark.parametrize("named", [print, pickle.Pickler])
def test_what_weights_only_refuses_is_refused_in_torchs_words(named: Any) -> None:
    told = []
    for module in (ct, th):
        file = io.BytesIO()
        module.save({"a": named}, file)
        file.seek(0)
        with pytest.raises(pickle.UnpicklingError) as refused:
            module.load(file)
        told.append(str(refused.value))
    assert told[0] == told[1]


def _states_by_names(torch: Any) -> Any:
    """Pass the states of two modules and their optimisers on by name; return names, states, and errors."""
    states = importlib.import_module(f"{torch.__name__}.distributed.checkpoint.state_dict")
    nn, kept = torch.nn, states.StateDictOptions
    net, other = (nn.Sequential(nn.Linear(2, 1), nn.PReLU(), nn.Linear(1, 1)) for _ in "ab")
    net[2].bias.requires_grad_(False)
    for p in net.parameters():
        p.detach().fill_(0.5)
    sgd = torch.optim.SGD([{"params": net[0].parameters(), "lr": 0.5}], 0.1, momentum=0.9)
    adam = torch.optim.Adam([net[1].weight, net[2].weight], lr=0.2)
    first = states.get_optimizer_state_dict(net, [sgd, adam])
    net(torch.ones(3, 2)).sum().backward()
    sgd.step()
    adam.step()
    compiled = torch.compile(net, backend="eager")
    model, optim = states.get_state_dict(compiled, [sgd, adam])
    flat = states.get_optimizer_state_dict(
        net, adam, options=kept(flatten_optimizer_state_dict=True)
    )
    told = [list(states.get_model_state_dict(net, options=kept(ignore_frozen_params=True)))]

    sgd2 = torch.optim.SGD([{"params": other[0].parameters()}], 0.3, momentum=0.9)
    adam2 = torch.optim.Adam([other[2].weight, other[1].weight])
    told.append(
        states.set_state_dict(other, [sgd2, adam2], model_state_dict=model, optim_state_dict=optim)
    )
    told += [sgd2.state_dict(), adam2.state_dict(), first, model, optim, flat]
    adam3 = torch.optim.Adam([other[2].weight, other[1].weight])
    flattened = kept(flatten_optimizer_state_dict=True)
    states.set_optimizer_state_dict(other, adam3, flat, options=flattened)
    told.append(adam3.state_dict())
    some = {"0.weight": torch.ones(1, 2)}
    told.append(states.set_model_state_dict(other, some, options=kept(strict=False)))
    for wrong in (
        lambda: states.get_optimizer_state_dict(net, []),
        lambda: states.set_model_state_dict(other, some),
        lambda: states.set_optimizer_state_dict(other, torch.optim.Adam(other.parameters()), optim),
        lambda: states.get_model_state_dict(net, options=kept(broadcast_from_rank0=True)),
    ):
        with pytest.raises((RuntimeError, ValueError)) as refused:
            wrong()
        told.append(str(refused.value))
    return told


def _agree(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, dict):
        return [*ours] == [*theirs] and all(_agree(v, theirs[k]) for k, v in ours.items())
    if isinstance(ours, list | tuple):
        return len(ours) == len(theirs) and all(map(_agree, ours, theirs))
    if isinstance(ours, ct.Tensor):
        return ours.shape == theirs.shape and ct.allclose(ours, ct.tensor(theirs.tolist()))
    return bool(ours == theirs)


def test_states_pass_between_modules_by_the_names_of_parameters() -> None:
    ours, theirs = _states_by_names(ct), _states_by_names(th)
    for a, b in zip(ours, theirs, strict=True):
        assert _agree(a, b), (a, b)


def test_the_states_of_a_module_trained_in_parallel_have_the_names_of_the_bare_one() -> None:
    dist, nn = ct.distributed, ct.nn
    states = importlib.import_module("cltensor.distributed.checkpoint.state_dict")
    from_first = states.StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        net = nn.parallel.DistributedDataParallel(ct.compile(nn.Linear(2, 1)))
        sgd = ct.optim.SGD(net.parameters(), 0.1, momentum=0.9)
        model, optim = states.get_state_dict(net, sgd)
        assert [*model] == [*optim["state"]] == ["weight", "bias"]
        assert not states.set_model_state_dict(net, model, options=from_first).missing_keys
    finally:
        dist.destroy_process_group()
