"""Replayed calls (Note [Replay] in ops/replay.py) equal first calls in values, layouts and errors, on fresh memory."""

from __future__ import annotations

import gc
import itertools
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from calls import CALLS, listed, places, whole
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import close, one_by_one

import cltensor as torch
from cltensor.ops import replay
from cltensor.ops.nn import rowwise
from cltensor.runtime import STATS

F = torch.nn.functional


def same(found: Any, wanted: Any) -> None:
    for a, b in zip(listed(found), listed(wanted), strict=True):
        assert a.dtype is b.dtype
        assert a.stride() == b.stride()
        assert a.device == b.device
        assert a.cpu().numpy().tobytes() == b.cpu().numpy().tobytes()


def the_long_way(fn: Callable, *operands: Any) -> Any:
    replay.forget()
    return fn(*operands)


@pytest.mark.parametrize("name", CALLS)
def test_values(name: str) -> None:
    fn, make = CALLS[name]
    cases = [make() for _ in range(5)]
    torch.opencl.synchronize()
    before = STATS.replays
    found = [fn(*operands) for operands in cases]
    assert STATS.replays > before, "nothing was remembered"
    for result, operands in zip(found, cases, strict=True):
        same(result, the_long_way(fn, *operands))


@pytest.mark.parametrize("name", CALLS)
def test_what_is_remembered_holds_no_memory(name: str) -> None:
    fn, make = CALLS[name]
    buffers = []
    for _ in range(4):
        tensors = [*make()]
        torch.opencl.synchronize()
        tensors += listed(fn(*tensors))
        buffers += [weakref.ref(t._storage.buffer()) for t in tensors]
        del tensors
    gc.collect()
    assert not any(ref() for ref in buffers)


CELLS = ("lstm_cell", "gru_cell", "rnn_tanh_cell", "lstm")
OTHERS = (
    "binary_cross_entropy",
    "cosine_similarity",
    "normalize",
    "local_response_norm",
    "multi-head attention",
    "glu",
    "prod",
)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [*itertools.product(CELLS, ("all", "weights")), *[(name, "all") for name in OTHERS]],
)
def test_gradients_of_several_ops(name: str, wanted: str) -> None:
    """Gradients of functions of several ops (a cell is two products and a few rows) are replayed as a whole, and equal
    those that can be differentiated again, which are computed op by op.
    """
    fn, make = CALLS[name]

    def gradients(operands: tuple, twice: bool) -> Any:
        leaves = [
            t.detach().requires_grad_(wanted == "all" or i > 2) for i, t in enumerate(operands)
        ]
        inputs = [t for t in leaves if t.requires_grad]
        loss = sum((t * t).sum() for t in listed(fn(*leaves)))
        found = torch.autograd.grad(loss, inputs, create_graph=twice)
        if twice:
            found += torch.autograd.grad(sum((g * g).sum() for g in found), inputs)
        return tuple(g.detach() for g in found)

    cases = [tuple((t + 0.25) / 8 for t in make()) for _ in range(5)]  # no row is zero
    before = STATS.replays
    found = [gradients(operands, False) for operands in cases]
    assert STATS.replays > before + 2
    for result, operands in zip(found, cases, strict=True):
        same(result, the_long_way(lambda *o: gradients(o, False), *operands))
        with one_by_one():  # kernels of chains this long take seconds to build
            steps = gradients(operands, True)
        for a, b in zip(result, steps, strict=False):
            np.testing.assert_allclose(a.cpu().numpy(), b.cpu().numpy(), rtol=1e-4, atol=1e-5)


def test_settings_that_are_equal_but_not_the_same_are_told_apart() -> None:
    x, y = whole(3, 5), whole(3, 5)
    for _ in range(3):
        F.cosine_similarity(x, y, 1)
    with pytest.raises(TypeError):
        F.cosine_similarity(x, y, 1.0)


@pytest.mark.parametrize("requires", [False, True])
def test_what_torch_does_not_save_may_be_written_before_the_gradient(requires: bool) -> None:
    layer = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    for _ in range(3):
        x, y = (torch.rand(4, 8).requires_grad_() for _ in range(2))
        bank = (y.detach() * 1).requires_grad_(requires)
        (expected,) = torch.autograd.grad(F.cosine_similarity(x, y).sum(), x)
        found = F.cosine_similarity(x, bank).sum()
        with torch.no_grad():
            bank.zero_()
        close(torch.autograd.grad(found, x, retain_graph=True)[0], expected)
        if requires:
            close(
                torch.autograd.grad(found, bank)[0],
                torch.autograd.grad(F.cosine_similarity(x, y).sum(), y)[0],
            )
        mask = torch.rand(4, 4)
        (expected,) = torch.autograd.grad(layer(x, x, x, attn_mask=mask)[0].square().sum(), x)
        found = layer(x, x, x, attn_mask=mask)[0].square().sum()
        mask.zero_()
        close(torch.autograd.grad(found, x)[0], expected)


def test_autocast_reaches_the_steps_of_a_function() -> None:
    x = (whole(3, 5) + 0.5).bfloat16()
    kind = "cpu" if x.device.type == "cpu" else "opencl"
    plain = [F.normalize(x) for _ in range(3)]
    with torch.autocast(kind, torch.bfloat16):
        cast = F.normalize(x)
    assert {t.dtype for t in plain} == {torch.bfloat16}
    assert cast.dtype is (torch.bfloat16 if kind == "cpu" else torch.float32)  # norm's dtype


def test_steps_of_a_cell_are_followed_by_a_counter_of_operations() -> None:
    operands = CALLS["gru_cell"][1]()
    counts = []
    for _ in range(4):
        with torch.utils.flop_counter.FlopCounterMode(display=False) as counter:
            torch.gru_cell(*operands)
        counts.append(counter.get_total_flops())
    assert counts == [2 * 2 * 12 * (3 + 4)] * 4


def test_divisors_are_looked_at_by_a_replay() -> None:
    """Only the cpu device refuses divisors of 0."""
    x, n = torch.arange(6, device="cpu"), torch.arange(1, 7, device="cpu")
    before = STATS.replays
    assert [(x % n).tolist() for _ in range(4)] == [[0, 1, 2, 3, 4, 5]] * 4
    assert STATS.replays >= before + 2
    for divide in (torch.floor_divide, torch.remainder, torch.fmod):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            divide(x, n - 3)


ANSWERS: dict[str, Callable[[torch.Tensor], Any]] = {
    "equal": lambda x: torch.equal(x, torch.ones(6, device=x.device)),
    "allclose": lambda x: torch.allclose(x, torch.ones(6, device=x.device), rtol=0.0),
    "allclose, loosely": lambda x: torch.allclose(x, torch.ones(6, device=x.device), atol=3.0),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_questions_about_values_are_replayed_and_answered_anew(name: str) -> None:
    yes, no = torch.ones(6), torch.ones(6) * 7
    torch.opencl.synchronize()
    before = STATS.replays
    assert [ANSWERS[name](x) for x in (yes, no, yes, no, no, yes)] == [True, False] * 2 + [
        False,
        True,
    ]
    assert STATS.replays >= before + 4


@pytest.mark.parametrize("loss", [F.cross_entropy, F.nll_loss])
def test_a_loss_of_classes_and_its_mean_are_one_call(loss: Callable[..., torch.Tensor]) -> None:
    for n in range(4):
        x, target = whole(5, 7), places(5, below=7)
        torch.opencl.synchronize()
        before = STATS.replays
        loss(x, target)
        assert n < 2 or STATS.replays == before + 1
    with pytest.raises(IndexError, match=r"Target 9 is out of bounds\."):
        loss(x, torch.full((5,), 9)).item()


def test_elements_that_a_mask_keeps_are_counted_by_each_replay() -> None:
    """A GPU reads the count before it moves the elements, so that only the cpu device replays."""
    x = torch.arange(6.0, device="cpu").reshape(2, 3)
    for n, numbers in enumerate(([0, 4, 5], [], [2], [0, 1, 2, 3, 4, 5], [1, 3])):
        m = torch.tensor([i in numbers for i in range(6)], device="cpu").reshape(2, 3)
        before = STATS.replays
        kept, found = x[m], m.nonzero()
        assert STATS.replays - before >= (2 if n > 1 else 0)
        assert kept.tolist() == x.masked_select(m).tolist() == numbers
        assert kept.untyped_storage().nbytes() == 4 * len(numbers)
        assert found.tolist() == [[*divmod(i, 3)] for i in numbers]
        assert found.stride() == (1, len(numbers)), "each coordinate's numbers are side by side"


def test_checks_of_what_is_drawn_by_are_replayed() -> None:
    """Checks of the probabilities of a draw are replayed and find bad values. Only the cpu device makes such checks."""
    good = [torch.tensor([0.5, 1.0, 0.0], device="cpu") for _ in range(4)]
    bad = torch.tensor([0.5, 1.5, 0.0], device="cpu")
    none = torch.zeros(3, device="cpu")
    before = STATS.replays
    for p in good:
        torch.bernoulli(p)
        assert torch.multinomial(p, 1).item() < 2
    assert STATS.replays >= before + 4
    with pytest.raises(RuntimeError, match="Expected p_in >= 0"):
        torch.bernoulli(bad)
    for weights in (-bad, bad * torch.inf, bad / 0.0):
        with pytest.raises(RuntimeError, match="contains either `inf`, `nan` or element < 0"):
            torch.multinomial(weights, 1)
    with pytest.raises(RuntimeError, match="sum of probabilities <= 0"):
        torch.multinomial(none, 1)


def test_classes_out_of_range_are_found_by_a_replay() -> None:
    for _ in range(3):
        F.one_hot(places(6, below=3), 3)
    with pytest.raises(RuntimeError, match="smaller than num_classes"):
        F.one_hot(torch.tensor([0, 1, 2, 3, 0, 0]), 3)
    with pytest.raises(RuntimeError, match="non-negative"):
        F.one_hot(torch.tensor([0, 1, -2, 2, 0, 0]), 3)


def test_launches_are_counted_as_ever() -> None:
    x = whole(5, 7)
    x.data_ptr()
    counts = []
    for _ in range(4):
        before = STATS.launches
        x.sum(0)
        counts.append(STATS.launches - before)
    assert counts == [1] * 4


def test_operands_that_were_the_same_and_then_are_not() -> None:
    a, b = whole(6, 6), whole(6, 6)
    for left, right in ((a, a), (a, a), (a, a), (a, b), (b, a), (a, b), (b, b), (a, a)):
        assert np.array_equal(
            (left @ right).cpu().numpy(), left.cpu().numpy() @ right.cpu().numpy()
        )


def test_layouts_and_settings_tell_calls_apart() -> None:
    base = whole(6, 6)
    views = [base, base.t(), base[1:, 1:], base[:5, :5], base[::2], base[:, ::2], base[0]]
    for _ in range(3):
        for v in views:
            for dim in range(v.ndim):
                for keep in (False, True):
                    assert np.array_equal(
                        v.sum(dim, keep).cpu().numpy(), v.cpu().numpy().sum(dim, keepdims=keep)
                    )
    for dt in (torch.float64, torch.int32, torch.float16) * 3:
        assert base.to(dt).sum().dtype == (torch.int64 if dt is torch.int32 else dt)
    for eps in (1e-5, 1.0) * 3:
        x = whole(2, 4)
        want = (x.cpu().numpy() - x.cpu().numpy().mean(1, keepdims=True)) / np.sqrt(
            x.cpu().numpy().var(1, keepdims=True) + eps
        )
        assert np.allclose(F.layer_norm(x, (4,), eps=eps).cpu().numpy(), want, atol=1e-5)


def test_results_are_fresh_and_operands_not_kept() -> None:
    x = whole(4, 4)
    results = [x.cumsum(0) for _ in range(4)]
    assert len({r.data_ptr() for r in results}) == 4
    results[3].add_(1)
    same(x.cumsum(0), results[2])
    held = torch.opencl.memory_allocated()
    big, i = torch.zeros(1 << 10, 1 << 10), places(4, below=5)
    for use in (torch.sum, lambda x: x.index_select(1, i), lambda x: x[i], lambda x: x @ x[0]):
        for _ in range(4):
            use(big)
    big.data_ptr()
    del big
    assert torch.opencl.memory_allocated() < held + (1 << 20)


def test_bad_indices_are_found_at_each_call() -> None:
    table, good = whole(5, 7), places(4, below=5)
    for _ in range(4):
        table[good]
    for _ in range(2):
        with pytest.raises(
            IndexError, match="index 9 is out of bounds for dimension 0 with size 5"
        ):
            table[torch.tensor([0, 1, 9, 2])]
            torch.opencl.synchronize()
        same(table[good], the_long_way(lambda: table[good]))


def test_an_index_error_of_what_is_still_running(monkeypatch: pytest.MonkeyPatch, dev: Any) -> None:
    """If a kernel was queued, the log of index errors is examined only when the kernel is done."""
    from cltensor.codegen import checks
    from cltensor.runtime import get_backend

    backend = get_backend(dev)
    if backend.team is None:
        pytest.skip("without a team every look waits")
    log = checks.CheckLog(backend)
    words = log.buffer.host.view(np.int64)

    def finish() -> None:
        words[0], backend.finished = 1, backend.seq

    monkeypatch.setattr(backend, "finish", finish)
    backend.seq = log.buffer.seq = backend.seq + 1
    log.pending.append(lambda value, ordinal: IndexError("found"))
    with pytest.raises(IndexError, match="found"):
        log.examine(backend)


def test_gradients() -> None:
    def gradients(x: Any, w: Any, t: Any) -> tuple:
        leaves = [v.detach().requires_grad_() for v in (x, w)]
        F.cross_entropy(F.layer_norm(leaves[0], (8,)) @ leaves[1], t).backward()
        return tuple(v.grad for v in leaves)

    cases = [(whole(5, 8), whole(8, 3), places(5, below=3)) for _ in range(4)]
    found = [gradients(*case) for case in cases]
    for result, case in zip(found, cases, strict=True):
        same(result, the_long_way(gradients, *case))


def test_inside_a_recording_and_under_a_profiler() -> None:
    x, i = whole(5, 7), places(4, below=5)

    def both(x: Any, i: Any) -> Any:
        return x.sum(0) + x[i].softmax(1).sum()

    plain, captured = [both(x, i) for _ in range(3)], torch.capture(both)
    for _ in range(4):
        assert torch.allclose(captured(x, i), plain[-1])
    with torch.profiler.profile() as watched:
        x.sum(0)
    assert any("sum" in event.key for event in watched.key_averages())


def test_memory_that_numpy_sees(dev: Any) -> None:
    if dev.type != "cpu":
        pytest.skip("numpy sees memory of the cpu device only")
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    x = torch.from_numpy(array)
    for n in range(5):
        array[:] = n
        assert x.sum().item() == 12 * n
        assert np.array_equal(x.cumsum(0).cpu().numpy()[-1], array.sum(0))


def test_several_threads() -> None:
    wrong: list[Any] = []

    def work(seed: int) -> None:
        for n in range(50):
            x = torch.full((5, 7), float(seed * 100 + n))
            if not np.array_equal(
                (x.cumsum(0) @ x.t()).cpu().numpy(), x.cpu().numpy().cumsum(0) @ x.cpu().numpy().T
            ):
                wrong.append((seed, n))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_few_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "MOST", 3)
    for n in range(1, 8):
        for _ in range(3):
            assert whole(n).cumsum(0).shape == (n,)
    assert all(len(r._calls) <= 3 for r in replay._all)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    shape=st.lists(st.integers(1, 5), min_size=2, max_size=3),
    order=st.randoms(use_true_random=False),
    names=st.lists(st.sampled_from(["sum", "cumsum", "cat", "sort", "max", "index"]), max_size=4),
)
def test_any_layouts(shape: list[int], order: Any, names: list[str]) -> None:
    dims = list(range(len(shape)))
    order.shuffle(dims)
    i = places(3, below=shape[dims[0]])
    do: dict[str, Callable] = {
        "sum": lambda x: x.sum(0),
        "cumsum": lambda x: x.cumsum(-1),
        "cat": lambda x: torch.cat([x, x], 1),
        "sort": lambda x: tuple(x.sort(0)),
        "max": lambda x: tuple(x.max(-1)),
        "index": lambda x: x[i],
    }
    cases = [whole(*shape).permute(dims) for _ in range(3)]
    for name in names:
        found = [do[name](x) for x in cases]
        for result, x in zip(found, cases, strict=True):
            same(result, the_long_way(do[name], x))


def test_writing_calls() -> None:
    """In-place calls accumulate exactly once a call, the first call included, and pending results that read the old
    content are computed before.
    """
    for _ in range(2):
        t, index, source = torch.zeros(5, 3), torch.tensor([0, 4, 0]), whole(3, 3)
        read = []
        for _ in range(5):
            read.append(t + 0)  # pending; reads the content from before the write
            t.index_add_(0, index, source)
        once = np.zeros((5, 3), np.float32)
        np.add.at(once, index.cpu().numpy(), source.cpu().numpy())
        for n, seen in enumerate([*read, t]):
            assert np.array_equal(seen.cpu().numpy(), n * once)
    t, rows = torch.zeros(4, 4), torch.tensor([[0, 1], [2, 3]])
    for value in (1.0, 2, True, -0.0, 0.0):
        for _ in range(3):
            t.scatter_(1, rows, value)
            assert np.array_equal(t[:2].cpu().numpy()[0, :2], np.full(2, value, np.float32))
            assert np.signbit(t.cpu().numpy()[0, 0]) == np.signbit(np.float32(value))
    for n in range(4):
        t[rows[0]] = whole(2, 4) * 0 + n
        assert t[:2].sum().item() == 8 * n


def test_pending_operands() -> None:
    """Calls on pending operands are told apart by the operands' expressions and the numbers in them."""
    a, b = whole(4, 6), whole(4, 6)
    for k in (2.0, 3.0, 0.0, -0.0, 2.0, 2.0, 2):
        for _ in range(3):
            x, y = a.clone(), b.clone()
            torch.opencl.synchronize()
            assert ((x - y) * k).sum().item() == (
                (a.cpu().numpy() - b.cpu().numpy()) * np.float32(k)
            ).sum()
            assert ((x * x) * k).sum(1).tolist() == ((a.cpu().numpy() ** 2) * np.float32(k)).sum(
                1
            ).tolist()
            assert ((x * y) * k).sum(1).tolist() == (
                (a.cpu().numpy() * b.cpu().numpy()) * np.float32(k)
            ).sum(1).tolist()
    one = torch.ones(3)
    one.data_ptr()
    signs = [np.signbit(torch.amax(one * k).item()) for k in (0.0, 0.0, 0.0, -0.0, -0.0, -0.0)]
    assert signs == [False] * 3 + [True] * 3


def test_pending_operands_are_told_apart_without_being_collected() -> None:
    """They are told apart by the memory they read: offsets, one buffer read twice, and pending results of which a view
    is read or which are held.
    """
    a, b = whole(6, 4), whole(6, 4)
    torch.opencl.synchronize()
    kinds = {
        "two": lambda: (a * b).sum(),
        "one twice": lambda: (a * a).sum(),
        "offset": lambda: (a[2:] * b[2:]).sum(),
        "other offset": lambda: (a[1:5] * b[2:]).sum(),
        "transposed": lambda: (a.t() * b.t()).sum(0),
        "a column": lambda: (a * b[:, :1]).sum(1),
        "rows of a product": lambda: torch.softmax((a * b)[2:4], 1),
        "two of them": lambda: F.layer_norm(a - b, (4,), a[0] * 2, b[0] + 1),
    }
    before = STATS.replays
    for f in kinds.values():
        wanted = f().cpu().numpy()
        for _ in range(3):
            assert np.array_equal(f().cpu().numpy(), wanted)
    assert STATS.replays >= before + 2 * len(kinds)

    def parts() -> tuple:
        c = a - b
        return (c * c).sum(), c

    for _ in range(3):
        found, c = parts()
        assert found.item() == ((a.cpu().numpy() - b.cpu().numpy()) ** 2).sum()
        assert np.array_equal(c.cpu().numpy(), a.cpu().numpy() - b.cpu().numpy())
    x = a * 1
    torch.opencl.synchronize()
    for n in range(4):
        y = x + b
        total = y.sum()  # computes y within its own kernel
        x.fill_(n)
        assert total.item() == (y - b).sum().item() + b.sum().item()


def test_a_pending_operand_that_a_later_one_has_run() -> None:
    a = whole(6, 6)
    for pending in (False, False, False, True):
        x = a * 2
        y = (x * 3).t() if pending else (a * 6).t()
        if not pending:  # a pending y is run by the call that reads it, and x with y
            y._storage.buffer()
        first, second = rowwise.sums("sums", (x, y), ("first", "second"), torch.float32)
        assert first.item() == 2 * a.sum().item()
        assert second.item() == 6 * a.sum().item()


def test_what_is_held_and_seen_rearranged_is_no_part_of_a_replay(dev: Any) -> None:
    rng = np.random.default_rng(0)
    for _ in range(5):
        arrays = [rng.standard_normal(s).astype("f") for s in [(2, 9)] * 2 + [(2, 3, 9)] * 2]
        a, b, x, y = (torch.tensor(v, device=dev) for v in arrays)
        a, b = a > 0, b > 0
        x.sum(), y.sum()
        mask = a & b
        found = (torch.where(mask.unsqueeze(1), x, 0.0) * y).sum(1, keepdim=True)
        inside = (arrays[0] > 0) & (arrays[1] > 0)
        want = (np.where(inside[:, None], arrays[2], 0) * arrays[3]).sum(1, keepdims=True)
        np.testing.assert_allclose(found.cpu().numpy(), want, 1e-5, 1e-6)


def test_calls_are_replayed_under_a_profile_and_find_bad_indices_there() -> None:
    table, good = whole(5, 7), places(4, below=5)
    wanted = table[good]
    for _ in range(3):
        table[good]
    with torch.profiler.profile() as prof:
        before = STATS.replays
        same(table[good], wanted)
        other = places(4, below=5)
        same(table[other], the_values(table, other))
        assert STATS.replays == before + 2
        with pytest.raises(IndexError, match="index 9 is out of bounds"):
            table[torch.tensor([0, 1, 9, 2])]
            torch.opencl.synchronize()
    assert [e for e in prof.events() if not e.name.startswith("aten::")]
    same(table[good], wanted)


def the_values(table: Any, index: Any) -> Any:
    return torch.tensor([table.tolist()[i] for i in index.tolist()])


def test_what_is_queued_ends_before_a_replay(dev: Any) -> None:
    from cltensor.runtime import get_backend

    backend, x = get_backend(dev), whole(5, 7)
    if backend.team is None:
        pytest.skip("there a replay is queued, too")
    for _ in range(3):
        x.cumsum(0)
    backend.finish()
    backend.seq += 1
    backend.queued = True  # as if something were queued
    x.cumsum(0)
    assert backend.finished == backend.seq


def test_small_functions_of_several_steps_are_one_replay() -> None:
    """A recurrent cell is one replay, and so is its gradient."""
    cell = torch.nn.GRUCell(6, 5)
    for _ in range(4):
        x, h = whole(3, 6), whole(3, 5)
        torch.opencl.synchronize()
        before = STATS.replays
        out = cell(x, h)
        forward = STATS.replays - before
        g = torch.ones_like(out)
        torch.opencl.synchronize()
        before = STATS.replays
        torch.autograd.grad(out, list(cell.parameters()), g)
        back = STATS.replays - before
    assert (forward, back) == (1, 1)


def test_results_that_are_an_operand_or_share_memory_are_not_remembered() -> None:
    same_again = replay.Replayed.of_memory(lambda operands: [operands[0]])
    twice = replay.Replayed.of_memory(lambda operands: [operands[0].cumsum(0)] * 2)
    x = whole(3)
    for _ in range(4):
        assert same_again([x])[0] is x
        one, other = twice([x])
        assert one is other
