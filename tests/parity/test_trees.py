"""`torch.utils._pytree`: the same leaves, specs, key paths and errors as torch's."""

from __future__ import annotations

import dataclasses
import importlib
import re
from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any

import pytest
from parity.oracle import Ran, th
from support import ct

pytestmark = pytest.mark.filterwarnings("ignore")
Pair = namedtuple("Pair", "a b")
TREES = [
    (1, 2), [1, [2]], {"b": 1, "a": 2}, OrderedDict(a=1), defaultdict(list, a=1), deque([1, 2], 3), Pair(1, (2,)), 3, None, {"b": [1, (2, 3)], "a": {}},
]  # fmt: skip
LINES = [
    "p.tree_unflatten([1], p.tree_structure([1, (3, 4)]))",
    "p.tree_map(lambda a, b: (a, b), [1, 2], [1, (2, 3)])",
    "p.tree_map(lambda a, b: (a, b), [1, (2, 3)], [1, 2])",
    "p.tree_map(lambda a, b: (a, b), [1, (2, 3)], [1, (2,)])",
    "p.tree_map(lambda a, b: (a, b), {'a': 1, 'b': 2}, {'b': 3, 'a': 4})",
    "p.tree_map(lambda a, b: (a, b), {'a': 1, 'b': 2}, {'c': 3, 'a': 4})",
    "p.tree_map(lambda a, b: (a, b), {'a': 1}, OrderedDict(a=2))",
    "p.tree_map(lambda a, b: (a, b), OrderedDict(a=[1], b=2), {'b': 3, 'a': [4]})",
    "p.tree_map(lambda a, b: (a, b), defaultdict(list, a=1, b=2), {'b': 3, 'a': 4})",
    "p.tree_map(lambda a, b: (a, b), deque([1, 2], 3), deque([1, 2], 4))",
    "p.tree_map(lambda a, b: (a, b), Pair(1, 2), Pair(3, 4))",
    "p.tree_map(lambda a, b: (a, b), Pair(1, 2), (3, 4))",
    "p._broadcast_to_and_flatten(1, p.tree_structure([1, (2, 3)]))",
    "p._broadcast_to_and_flatten([1, 2], p.tree_structure([1, (2, 3)]))",
    "p._broadcast_to_and_flatten((1, 2), p.tree_structure([1, (2, 3)]))",
    "p.tree_map_only((int, str), lambda x: 0, [1, 2.0, 'a'])",
    "p.tree_map_only(int | str, lambda x: 0, [1, 2.0, 'a'])",
    "p.tree_map_only(lambda x: x == 2, lambda x: 0, [1, 2.0, 'a'])",
    "p.tree_all_only(int, lambda x: x > 0, [1, -2.0]), p.tree_any(lambda x: x < 0, (1, [-1]))",
    "p.tree_structure({'b': 1, 'a': 2}) == p.tree_structure({'a': 1, 'b': 2})",
    "p.TreeSpec(list, None, [p.LeafSpec()]) == p.tree_structure([1])",
    "p.arg_tree_leaves(1, [2, {'b': 3, 'a': 4}], c=(5, None), a=6), p.arg_tree_leaves()",
    "p.key_get({'a': [1, (2, 3)]}, p.tree_flatten_with_path({'a': [1, (2, 3)]})[0][2][0]), p.key_get(1j, (p.GetAttrKey('imag'),))",
    "p.key_get([1], (p.SequenceKey(2),))",
    "p.register_pytree_node(list, None, None)",
    "p._get_node_type(3), p._get_node_type([3]), list(p.SUPPORTED_NODES)[:3]",
    "p.SUPPORTED_NODES[dict].flatten_fn({'a': 1}), p.SUPPORTED_NODES[dict]._fields",
    "p.tree_structure([1, (2,)]).flatten_up_to([5, (6,)]), p.tree_structure((1, 2)).children(), p.tree_structure((1, 2)).child(0)",
]


def _both(line: str) -> None:
    names = {"OrderedDict": OrderedDict, "defaultdict": defaultdict, "deque": deque, "Pair": Pair}
    ours, theirs = (Ran(m, lambda m: eval(line, {**names, "p": m.utils._pytree})) for m in (ct, th))
    show = [re.sub(r"0x[0-9a-f]+", "", f"{r.error!r} {r.value!r}") for r in (ours, theirs)]
    assert show[0] == show[1]


@pytest.mark.parametrize("line", LINES)
def test_trees(line: str) -> None:
    _both(line)


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_forms_and_ways(tree: Any) -> None:
    found = []
    for module in (ct, th):
        p = module.utils._pytree
        leaves, spec = p.tree_flatten(tree)
        ways = [(p.keystr(way), leaf) for way, leaf in p.tree_leaves_with_path(tree)]
        numbers = (spec.num_leaves, spec.num_nodes, spec.num_children, spec.is_leaf())
        found.append((leaves, repr(spec), numbers, ways, p.tree_unflatten(leaves, spec)))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "text", ["Size([2, 3])", "[Size([]), 1]", "fx.immutable_collections.immutable_list([1, (2, 3)])", "fx.immutable_collections.immutable_dict(b=1, a=[2])"],
)  # fmt: skip
def test_containers_of_torch(text: str) -> None:
    found = []
    for module in (ct, th):
        p = importlib.import_module(f"{module.__name__}.utils._pytree")
        importlib.import_module(f"{module.__name__}.fx")
        tree = eval(text, {"Size": module.Size, "fx": module.fx})
        leaves, spec = p.tree_flatten(tree)
        ways = [(p.keystr(way), leaf) for way, leaf in p.tree_leaves_with_path(tree)]
        again = p.tree_unflatten(leaves, spec)
        found.append((leaves, repr(spec), ways, again, type(again).__name__))
    assert found[0] == found[1]


def test_what_functions_return_is_a_tree() -> None:
    found = []
    for module in (ct, th):
        p = module.utils._pytree
        spec = p.tree_structure(module.max(module.ones(2, 2), 0))
        found.append((repr(spec), p.tree_unflatten([1, 2], spec).values))
    assert found[0] == found[1]


def test_workers_seed_numpy_as_torchs_do() -> None:
    for seed, worker in ((1, 0), (12345678901, 3)):
        found = [m.utils.data._utils.worker._generate_state(seed, worker) for m in (ct, th)]
        assert found[0] == found[1]


@dataclasses.dataclass
class _Point:
    x: Any
    y: Any = None


class _Plain:
    def __init__(self, a: Any, b: Any = 2) -> None:
        self.a, self.b = a, b


@dataclasses.dataclass(frozen=True)
class _Setting:
    name: str


def test_dataclasses_and_constants() -> None:
    outcomes = []
    for torch in (th, ct):
        tree = importlib.import_module(f"{torch.__name__}.utils._pytree")
        point, plain, setting = (type(c.__name__, (c,), {}) for c in (_Point, _Plain, _Setting))
        tree.register_dataclass(point)
        tree.register_dataclass(plain, field_names=["a"])
        tree.register_constant(setting)
        made = tree.tree_map(lambda n: n + 1, [point(1, 2), point(3), plain(4, 5)])
        seen: list[Any] = [[(p.x, p.y) for p in made[:2]], (made[2].a, made[2].b)]
        paths, _ = tree.tree_flatten_with_path({"k": point(1, 2)})
        seen.append([tree.keystr(path) for path, _ in paths])
        leaves, form = tree.tree_flatten([setting("l2"), 3])
        seen += [leaves, tree.tree_unflatten(leaves, form)[0].name, tree.is_constant_class(setting)]
        for line in (
            "p.register_dataclass(plain)",
            "p.register_dataclass(point, field_names=['x'])",
            "p.register_dataclass(point, field_names=['x', 'y', 'z'])",
            "p.register_constant(plain)",
            "p.register_constant(point)",
        ):
            with pytest.raises((ValueError, TypeError)) as raised:
                eval(line, {"p": tree, "plain": _Plain, "point": _Point})
            seen.append((type(raised.value), str(raised.value)))
        outcomes.append(seen)
    assert outcomes[1] == outcomes[0]
