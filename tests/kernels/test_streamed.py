"""Large results written by non-temporal stores have the same bits as others, whatever their shape, dtype and
surrounding memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import kernels_of, store_past_cache

import cltensor as torch
from cltensor.codegen.move import copies
from cltensor.codegen.reduce import rowwise
from cltensor.lazy import launch

SIZES = st.tuples(st.integers(1, 3), st.integers(1, 40), st.integers(1, 80).map(lambda n: 8 * n))


@pytest.fixture(autouse=True)
def _cpu_schedule(dev: Any) -> None:
    if not torch.opencl.get_device_properties(dev).host_shared:
        pytest.skip("such a device does not say where its buffers lie")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Return a function that sets the size in bytes from which on non-temporal stores are used; at first it is 1."""

    def set_to(nbytes: int) -> None:
        store_past_cache(monkeypatch, nbytes)

    set_to(1)
    return set_to


WAYS: dict[str, Callable[[Any], Any]] = {
    "chain": lambda x: (x * 2 + 1).sigmoid(),
    "row": lambda x: x + x[:1, :1],
    "mask": lambda x: x > 0,
    "number of elements": lambda x: (x * 100).to(torch.int64),
    "double": lambda x: x.double() / 3,
    "half": lambda x: x.half() * 2,
    "bfloat16": lambda x: (x.bfloat16() / 3).view(torch.int16),
    "turned": lambda x: x.transpose(1, 2).contiguous(),
    "turned bytes": lambda x: (x > 0).transpose(1, 2).contiguous(),
    "turned round": lambda x: x.flip(2),
    "bytes turned round": lambda x: (x > 0).flip(0, 2),
    "rolled": lambda x: torch.roll(x, 3, 2),
    "softmax": lambda x: torch.softmax(x, 2),
    "norms of rows": lambda x: torch.nn.functional.rms_norm(x, x.shape[2:]),
    "norms of runs": lambda x: torch.nn.functional.batch_norm(x, None, None, training=True),
    "beside": lambda x: torch.cat([x, x * 2], 1),
    "in turn": lambda x: torch.stack([x, x * 2, x + 1], -1),
    "padded": lambda x: torch.nn.functional.pad(x, (1, 2, 1, 0), value=3),
    "bytes padded around": lambda x: torch.nn.functional.pad((x > 0).half(), (1, 3), "circular"),
    "rows chosen": lambda x: x[torch.tensor([0, -1, 0])],
    "rows of bytes chosen": lambda x: (x > 0)[torch.tensor([-1, 0])],
    "bytes in turn": lambda x: torch.stack([x > 0, x > 1], -1),
}


@pytest.mark.parametrize("way", WAYS)
@given(shape=SIZES, seed=st.integers(0, 9))
@settings(max_examples=12, deadline=None, derandomize=True)
def test_bits(way: str, shape: tuple[int, ...], seed: int) -> None:
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    x = torch.tensor(values)
    plain = WAYS[way](x).cpu().numpy()
    with pytest.MonkeyPatch.context() as patch:
        store_past_cache(patch)
        streamed = WAYS[way](x).cpu().numpy()
    np.testing.assert_array_equal(streamed, plain)


def test_which_results_go_past_the_cache(small: Callable[[int], None]) -> None:
    x, odd, fresh = torch.rand(64, 64), torch.rand(64, 65), torch.rand(64, 64)
    long = torch.rand(64, 257)
    wide = torch.rand(2, 2 * rowwise.KEPT)

    def streamed(fn: Callable[[], Any]) -> bool:
        (name,) = kernels_of(fn)
        return name.endswith("_streamed")

    assert streamed(lambda: x + 1)
    assert streamed(lambda: x.t().contiguous())
    assert streamed(lambda: x.log_softmax(1))
    assert streamed(lambda: x.softmax(1))
    assert not streamed(lambda: wide.softmax(1))  # the kernel reads its exponentials back
    assert streamed(lambda: odd.flip(1))
    rows = torch.tensor([5, 63, 0, 5])
    assert streamed(lambda: x[rows])
    assert not streamed(lambda: odd[rows])
    assert streamed(lambda: torch.stack([x, fresh], 2))
    assert not streamed(lambda: odd.log_softmax(1))
    assert not streamed(lambda: fresh.add_(1))  # its cache lines are read anyway
    assert not streamed(
        lambda: odd + odd[:1]
    )  # each cache line spans two rows, or is next to one that does
    assert streamed(lambda: long + long[:1])
    small(4 * 64 * 64 + 1)
    assert not streamed(lambda: x + 1)


@pytest.mark.parametrize("kind", ["uint8", "float32", "float64"])
@pytest.mark.parametrize("width", [1025, 2047])
def test_chains_whose_rows_begin_anywhere(
    kind: str, width: int, small: Callable[[int], None]
) -> None:
    """Aligned whole vectors between a first and a last partial one in each row; rows are also divided between
    threads."""
    values = (np.random.default_rng(0).random((67, width + 3)) * 100).astype(kind)
    x = torch.tensor(values)
    (name,) = kernels_of(lambda: x[:, 3:] + x[:1, :width])
    assert name.endswith("_streamed")
    for part, want in (
        (lambda: x[:, 3:] + x[:1, :width], values[:, 3:] + values[:1, :width]),
        (lambda: x[:, :width] + x[:, -1:], values[:, :width] + values[:, -1:]),
        (lambda: x[:, 1 : width + 1] > x[:, :1], values[:, 1 : width + 1] > values[:, :1]),
    ):
        junk = torch.full(
            (67 * width,), 7, dtype=x.dtype
        )  # its memory is reused: elements that are not written would show 7
        torch.opencl.synchronize()
        del junk
        np.testing.assert_array_equal(part().cpu().numpy(), want)


@pytest.mark.parametrize("kind", ["uint8", "float32", "float64"])
def test_turned_rows_that_begin_anywhere(kind: str, small: Callable[[int], None]) -> None:
    """Transposition to rows of different alignment: whole cache lines are streamed, and the partial ones before and
    after are written, too."""
    side = 64 // np.dtype(kind).itemsize
    for rows, columns in ((4 * side + 1, side + 9), (9 * side - 1, 16), (6 * side, 3 * side + 1)):
        many = 2 + (1 << 16) // (rows * columns)
        values = (np.random.default_rng(0).random((many, rows, columns)) * 100).astype(kind)
        x = torch.tensor(values)
        found: list[Any] = []
        names = kernels_of(lambda x=x, found=found: found.append(x.transpose(1, 2).contiguous()))
        assert any("_phased" in name for name in names) == bool(rows % side)
        np.testing.assert_array_equal(found[0].cpu().numpy(), values.transpose(0, 2, 1))
        wide = torch.zeros(columns + 2, rows + 5, dtype=x.dtype)
        wide[1:-1, 3:-2] = x[1].t()
        want = np.zeros((columns + 2, rows + 5), kind)
        want[1:-1, 3:-2] = values[1].T
        np.testing.assert_array_equal(wide.cpu().numpy(), want)


@pytest.mark.parametrize(
    ("width", "kind"), [*((w, "float32") for w in (257, 16 * 17 - 1, 512)), (257, "float64")]
)
def test_rows_of_norms_that_begin_anywhere(
    kind: str, width: int, small: Callable[[int], None], poisoned: None
) -> None:
    """Whole cache lines between a first and a last partial one in each run, whether runs are contiguous or not."""
    values = np.random.default_rng(0).random((3, 5, width)).astype(kind)
    x, grad = torch.tensor(values), torch.tensor(values[::-1].copy())
    ways: list[Callable[[Any], Any]] = [
        lambda x: torch.nn.functional.batch_norm(x, None, None, training=True),
        lambda x: torch.nn.functional.layer_norm(x, (width,)),
        lambda x: x.softmax(2),
        lambda x: torch.nn.functional.layer_norm(x, (5, width)),
    ]

    def both(way: Callable[[Any], Any]) -> list[np.ndarray]:
        own = x.detach().requires_grad_()
        out = way(own)
        return [t.detach().cpu().numpy() for t in (out, *torch.autograd.grad(out, own, grad))]

    for way in ways if kind == "float32" else ways[2:3]:
        assert any(name.endswith("_streamed") for name in kernels_of(lambda way=way: both(way)))
        past = both(way)
        small(1 << 40)
        plain = both(way)
        small(1)
        for one, other in zip(past, plain, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kind", ["uint8", "float64"])
def test_large_blocks_are_read_once_where_they_are_repeated(
    kind: str, small: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "REPEATED", 1)
    monkeypatch.setattr(copies, "_PIECE", 1 << 10)
    values = (np.random.default_rng(0).random((5, 7004)) * 100).astype(kind)
    x = torch.tensor(values)
    ways: list[tuple[bool, Callable[[], Any], np.ndarray]] = [
        (True, lambda: x.repeat(3, 1), np.tile(values, (3, 1))),
        (True, lambda: x.repeat(1, 4), np.tile(values, (1, 4))),
        (True, lambda: x[1:].repeat(3, 1, 1), np.tile(values[1:], (3, 1, 1))),
        (
            True,
            lambda: x[:, None].expand(5, 3, 7004).contiguous(),
            np.repeat(values[:, None], 3, 1),
        ),
        (False, lambda: x.repeat(2, 3), np.tile(values, (2, 3))),
        (False, lambda: x[:, 1:].repeat(1, 4), np.tile(values[:, 1:], (1, 4))),
    ]
    for whole, way, wanted in ways:
        found: list[Any] = []
        names = kernels_of(lambda way=way, found=found: found.append(way()))
        assert (names == ["repeat"]) == whole
        np.testing.assert_array_equal(found[0].cpu().numpy(), wanted)


def test_what_is_read_from_beyond_the_cache_is_asked_for() -> None:
    """A single large operand from beyond the cache is prefetched; several operands are not, as they keep memory busy.
    Values are the same."""
    x = torch.rand(launch.STREAM // 4 + 5)
    ways: list[Callable[[Any], Any]] = [
        lambda t: (t * 300).to(torch.uint8),
        lambda t: t.bfloat16(),
        lambda t: t > 0.5,
    ]
    found: list[Any] = []
    for way in ways:
        (name,) = kernels_of(lambda way=way: found.append(way(x)))
        assert name.endswith("_ahead")
    for way, large in zip(ways, found, strict=True):
        for part in (slice(1000), slice(-1000, None)):
            assert large[part].tolist() == way(x[part].clone()).tolist()
    y = x.clone()
    (name,) = kernels_of(lambda: x > y)
    assert not name.endswith("_ahead")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("way", ["step", "slice", "turned", "whole"])
def test_copies_of_half_the_size_are_copies_of_bits(way: str, dtype: str) -> None:
    """Copies of 16-bit floats preserve every bit pattern, also those of NaNs."""
    bits = torch.arange(-(1 << 15), 1 << 15, dtype=torch.int32).to(torch.int16).reshape(256, 256)
    part = {
        "step": lambda t: t[:, ::2],
        "slice": lambda t: t[1:-1, 3:-2],
        "turned": lambda t: t.t(),
        "whole": lambda t: t,
    }[way]
    some = part(bits.clone().view(getattr(torch, dtype)))
    copied = some.clone(memory_format=torch.contiguous_format)
    assert copied.view(torch.int16).tolist() == part(bits).tolist()
