"""Printed forms against torch's, character for character.

They are tested twice: cltensor's formatter on torch's own tensors, and `repr` of cltensor's tensors
made from the same values.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from cltensor import dtypes, printing

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf")

NAMES = [d.name for d in dtypes.ALL]
SHAPES = [
    (),
    (1,),
    (3,),
    (30,),
    (0,),
    (0, 3),
    (2, 0),
    (1, 1),
    (2, 3),
    (7, 1),
    (4, 25),
    (2, 1, 3),
    (2, 2, 2, 3),
]
KINDS = ["normal", "scaled", "whole", "spread", "nonfinite", "large whole", "zero", "half zero"]


@pytest.fixture(autouse=True)
def default_options() -> Iterator[None]:
    yield
    torch.set_printoptions(profile="default")
    printing.set_printoptions(profile="default")


def sample(rng: random.Random, name: str, shape: tuple[int, ...], kind: str) -> Any:
    """Return a torch tensor of random values; each kind is printed in its own notation."""
    torch.manual_seed(rng.randrange(1 << 30))
    x = torch.randn(shape, dtype=torch.float64)
    chance = torch.rand(shape)
    if kind == "scaled":
        x = x * 10 ** rng.uniform(-8, 8)
    elif kind == "whole":
        x = (x * 10).round()
    elif kind == "spread":
        x = x * 10 ** (torch.rand(shape, dtype=torch.float64) * 8 - 4)
    elif kind == "nonfinite":
        for at, value in ((0.2, float("nan")), (0.4, float("inf")), (0.6, -float("inf"))):
            x = torch.where((chance < at) & (chance > at - 0.2), value, x)
    elif kind == "large whole":
        x = (x * 10 ** rng.uniform(0, 9)).round()
    elif kind == "zero":
        x = x * 0
    elif kind == "half zero":
        x = torch.where(chance < 0.5, 0.0, x)
    target = getattr(torch, name)
    if target.is_complex:
        x = torch.complex(x, x.flip(-1) if x.dim() else -x)
    elif not target.is_floating_point:
        x = torch.nan_to_num(x).clamp(-1e9, 1e9)
        if name.startswith("uint"):
            x = x.abs()
        if name != "bool":
            info = torch.iinfo(target)
            x = x.clamp(max(info.min, -(2**40)), min(info.max, 2**40))
    return x.to(target)


def cases() -> list[tuple[str, tuple[int, ...], str]]:
    """Return (dtype, shape, kind of values): every dtype with every shape, and random ones."""
    rng = random.Random(7)
    found = [(name, shape, KINDS[i % 8]) for i, name in enumerate(NAMES) for shape in SHAPES]
    found += [(rng.choice(NAMES), rng.choice(SHAPES), kind) for kind in KINDS for _ in range(16)]
    return found


CASES = cases()
OPTIONS: list[dict[str, Any]] = [
    {"precision": 2},
    {"precision": 8, "linewidth": 120},
    {"threshold": 5},
    {"threshold": 5, "edgeitems": 1},
    {"threshold": 0, "edgeitems": 0},
    {"linewidth": 30},
    {"sci_mode": True},
    {"sci_mode": False},
    {"profile": "short"},
    {"profile": "full", "precision": 0},
    {"profile": "short", "sci_mode": True, "linewidth": 40},
]


@pytest.mark.parametrize("part", range(8))
def test_formatter(part: int) -> None:
    rng = random.Random(part)
    for case in CASES[part::8]:
        x = sample(rng, *case)
        assert printing.tensor_str(x) == repr(x), case
        options = rng.choice(OPTIONS)
        torch.set_printoptions(profile="default")
        torch.set_printoptions(**options)
        with printing.printoptions(**options):
            assert printing.tensor_str(x) == repr(x), (case, options)
        torch.set_printoptions(profile="default")


def test_formatter_summary_and_suffixes() -> None:
    torch.manual_seed(0)
    leaf = torch.randn(40, 50, requires_grad=True)
    for x in (
        torch.randn(2000),
        torch.randn(3, 400),
        torch.randn(400, 3).t(),
        torch.randn(8, 8, 8, 8),
        torch.arange(5000).reshape(50, 100),
        torch.randn(20, 20, 20, dtype=torch.complex64),
        torch.ones(3000) > 0,
        torch.randn(5, 6, 7, 8).half(),
        leaf,
        leaf * 2,
        leaf[:2] * 2,
        leaf.sum(),
        torch.randn(4, 9, requires_grad=True),
        torch.nn.Parameter(torch.ones(2)).data,
        torch.ones(3, device="meta"),
        torch.ones((), device="meta"),
        torch.ones(0, 3, device="meta"),
        torch.ones(3, device="meta", dtype=torch.int64),
    ):
        assert printing.tensor_str(x) == repr(x)
    assert printing.parameter_str(torch.nn.Parameter(leaf[:2])) == repr(
        torch.nn.Parameter(leaf[:2])
    )


@pytest.mark.parametrize("default", ["float64", "float16"])
def test_formatter_default_dtype(default: str) -> None:
    torch.set_default_dtype(getattr(torch, default))
    dtypes.set_default_dtype(dtypes.BY_NAME[default])
    try:
        for name in NAMES:
            for shape in ((), (2,), (0,)):
                x = torch.ones(shape, dtype=getattr(torch, name))
                assert printing.tensor_str(x) == repr(x)
    finally:
        torch.set_default_dtype(torch.float32)
        dtypes.set_default_dtype(dtypes.float32)


def test_numbers_without_values_in_text() -> None:
    import cltensor

    assert f"{cltensor.ones((), device='meta')}" == f"{torch.ones((), device='meta')}"


def test_options() -> None:
    before = printing.get_printoptions()
    with printing.printoptions(precision=7):
        assert printing.get_printoptions()["precision"] == 7
    assert printing.get_printoptions() == before
    for profile in ("default", "short", "full"):
        printing.set_printoptions(profile=profile)
        torch.set_printoptions(profile=profile)
        assert printing.get_printoptions() == torch._tensor_str.get_printoptions()


def pair(case: tuple[str, tuple[int, ...], str], rng: random.Random) -> tuple[Any, Any]:
    import cltensor

    theirs = sample(rng, *case)
    ours = cltensor.tensor(theirs.tolist(), dtype=getattr(cltensor, case[0])).reshape(case[1])
    return ours, theirs


@pytest.mark.parametrize("part", range(8))
def test_repr(part: int) -> None:
    import cltensor

    rng = random.Random(part)
    for case in CASES[part::8]:
        if case[0] == "complex32":
            continue  # a dtype to store, not to compute with
        ours, theirs = pair(case, rng)
        assert repr(ours) == repr(theirs), case
        options = rng.choice(OPTIONS)
        torch.set_printoptions(profile="default")
        torch.set_printoptions(**options)
        cltensor.set_printoptions(**options)
        assert repr(ours) == repr(theirs), (case, options)
        torch.set_printoptions(profile="default")
        cltensor.set_printoptions(profile="default")


def test_repr_summary_and_suffixes() -> None:
    import cltensor

    def forms(lib: Any) -> list[str]:
        line = lib.arange(6000.0)
        leaf = lib.arange(12.0).reshape(3, 4).requires_grad_()
        grown = leaf * 2
        return [
            repr(x)
            for x in (
                line,
                line.reshape(60, 100),
                line.reshape(100, 60).t(),
                line.reshape(10, 10, 60) / 7,
                line[::2].to(lib.int32),
                line[3:5],
                leaf,
                grown,
                grown.sum(),
                grown + 1.5,
                leaf.t(),
                leaf.detach(),
                leaf.to(lib.float64),
                leaf > 3,
                lib.nn.Parameter(lib.ones(2, 2)),
                lib.empty(0),
                lib.empty(2, 0),
                lib.empty(0, dtype=lib.int64),
                lib.ones(2).size(),
            )
        ]

    assert forms(cltensor) == forms(torch)


def test_subclasses_of_parameter() -> None:
    import cltensor

    def forms(lib: Any) -> list[str]:
        p = type("Own", (lib.nn.Parameter,), {})(lib.ones(2, 3))
        marked = lib.nn.Parameter(lib.ones(2).as_subclass(type("Marked", (lib.Tensor,), {})))
        plain = lib.Tensor.__repr__(lib.nn.Parameter(lib.ones(2)))
        found = [repr(p), str(p), f"{p}", lib.Tensor.__repr__(p), repr(marked), plain]
        return [*found, repr(p.detach()), repr(p * 2)]

    assert forms(cltensor) == forms(torch)


def test_pieces_that_libraries_print_with() -> None:
    from cltensor import _tensor_str as ours

    theirs = torch._tensor_str
    x = torch.arange(60.0).view(3, 20)
    assert ours._tensor_str(x, 5) == theirs._tensor_str(x, 5)
    suffixes = [f"name{i}={i * 1000}" for i in range(12)]
    for newline in (False, True):
        text = theirs._tensor_str(x, 5)
        assert ours._add_suffixes(text, suffixes, 5, newline) == theirs._add_suffixes(
            text, suffixes, 5, newline
        )
    assert ours.PRINT_OPTS.linewidth == theirs.PRINT_OPTS.linewidth
    with pytest.raises(AttributeError, match="has no attribute 'colour'"):
        ours.PRINT_OPTS.colour
