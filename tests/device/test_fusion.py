"""Laziness: what fuses, what is counted, and that it never changes a value, whatever is written in place."""

import dataclasses
import os
import random

import numpy as np
import pytest
from backends import another_device
from support import builds, data, launches, on_device

import cltensor as ct
from cltensor import config
from cltensor.runtime import STATS


def chain(x, y):
    z = x * y + 2
    z = z * z - x
    return z.sigmoid() * y


def test_a_chain_is_one_launch():
    x, y = on_device(data(40, 5)), on_device(data(40, 5))
    assert launches(lambda: chain(x, y)) == 1


def test_a_chain_with_autograd_is_one_launch_and_its_backward_at_most_two():
    x, y = on_device(data(40, 5), requires_grad=True), on_device(data(40, 5), requires_grad=True)
    g = on_device(data(40, 5))
    forward = []
    assert launches(lambda: forward.append(chain(x, y))) == 1
    z = forward[0]
    assert launches(lambda: z.backward(g)) <= 2
    assert x.grad is not None and y.grad is not None


def test_another_shape_of_the_pattern_builds_nothing():
    chain(on_device(data(40, 5)), on_device(data(40, 5))).tolist()
    assert builds(lambda: chain(on_device(data(3, 7)), on_device(data(3, 7)))) == 0
    (on_device(data(4, 5)) + on_device(data(5))).tolist()
    assert builds(lambda: on_device(data(9, 3)) + on_device(data(3))) == 0


def test_an_unused_result_is_never_computed():
    x = on_device(data(8))
    assert launches(lambda: [x * 2 + 1, None][1]) == 0


def test_results_of_one_expression_share_a_kernel():
    x = on_device(data(10, 10))

    def several():
        y = x * 3
        return y + 1, y.sigmoid(), y

    assert launches(several) == 1


def test_broadcast_scalars_stay_in_the_chain():
    x, s = on_device(data(6, 4)), on_device(data(1))
    assert launches(lambda: x * (s * 2 + 1)) == 1


def test_in_place_on_a_whole_storage_fuses():
    x, y = on_device(data(12)), on_device(data(12))
    assert launches(lambda: (x + 1).mul_(y).add_(3).sigmoid_()) == 1


def test_in_place_reuses_the_memory_once_nobody_reads_the_old_value():
    x = on_device(data(1000))
    x._storage.buffer()
    before = x._storage.value.address
    for other in (1, on_device(data(1000)), on_device(data(1))):  # the last one broadcasts
        x.add_(other)
        x._storage.buffer()
        assert x._storage.value.address == before


def test_old_values_survive_an_in_place_write():
    x = on_device(data(1000))
    want = np.array(x.tolist(), np.float32) * 2
    y = x * 2
    z = y + 1
    x.zero_()
    x._storage.buffer()
    np.testing.assert_array_equal(np.array(y.tolist(), np.float32), want)
    np.testing.assert_array_equal(np.array(z.tolist(), np.float32), want + 1)


def test_a_shared_pending_operand_keeps_the_old_memory():
    x = on_device(data(64))
    base = np.array(x.tolist(), np.float32)
    t = x * 2
    b = t + 1  # pending, reads x through t
    x.add_(t)  # also reads t
    del t
    np.testing.assert_array_equal(np.array(x.tolist(), np.float32), base + base * 2)
    np.testing.assert_array_equal(np.array(b.tolist(), np.float32), base * 2 + 1)


def test_long_chains_are_split_and_counted():
    x = on_device(data(16))
    y = x
    before = STATS.snapshot()["splits"]
    for _ in range(300):
        y = y * 1.01 + 0.001
    y.tolist()
    after = STATS.snapshot()["splits"]
    assert after.get("nodes", 0) > before.get("nodes", 0)
    want = np.array(x.tolist(), np.float32)
    for _ in range(300):
        want = want * np.float32(1.01) + np.float32(0.001)
    np.testing.assert_allclose(np.array(y.tolist(), np.float32), want, rtol=1e-6)


def test_an_expression_that_shares_with_itself_is_walked_once_per_node():
    x = on_device(data(8))
    part = on_device(data(8))
    y = x * 2
    for _ in range(45):  # 2**45 paths lead through this graph
        y = y + y
    part[:4].copy_(y[:4])
    want = np.array(x.tolist()[:4]) * 2.0**46
    np.testing.assert_array_equal(part.tolist()[:4], want)


def test_many_operands_are_split():
    arrays = [data(5, seed=n) for n in range(100)]
    xs = [on_device(a) for a in arrays]
    found = []
    assert 2 <= launches(lambda: found.append(sum(xs[1:], xs[0]))) <= 8
    np.testing.assert_allclose(found[0].tolist(), np.sum(arrays, 0), rtol=1e-5, atol=1e-5)


def test_a_chain_of_results_that_are_held_is_a_few_kernels():
    rewards = ct.tensor(data(64))

    def returns():
        held, after = [], 0.0
        for t in reversed(range(64)):
            after = rewards[t] + 0.5 * after
            held.append(after)
        return held

    wanted, after = [], 0.0
    for r in reversed(rewards.tolist()):
        after = r + 0.5 * after
        wanted.append(after)
    np.testing.assert_allclose(ct.stack(returns()).tolist(), wanted, rtol=1e-5)
    # 127 nodes; one kernel computes at most 64 of them, and fewer if it has many arguments.
    assert launches(returns) <= 12


def test_a_training_loop_in_steady_state_builds_nothing_and_holds_no_more():
    w = on_device(data(20, 20), requires_grad=True)
    x = on_device(data(20, 20))

    def step():
        loss = ((w * x - 1) * (w * x - 1)).sum()
        loss.backward()
        with ct.no_grad():
            w.sub_(w.grad * 0.01)
            w.grad.zero_()

    for _ in range(2):  # twice: what follows a synchronisation starts from realised weights
        for _ in range(3):
            step()
        ct.opencl.synchronize()
    held, made = ct.opencl.memory_allocated(), STATS.builds + STATS.disk_hits
    for _ in range(50):
        step()
    ct.opencl.synchronize()
    assert STATS.builds + STATS.disk_hits == made
    assert ct.opencl.memory_allocated() <= held


def test_ten_thousand_steps_hold_no_more():
    w = on_device(data(4, 4), requires_grad=True)
    x = on_device(data(4, 4))

    def step():
        (w * x).sigmoid().sum().backward()
        with ct.no_grad():
            w.sub_(w.grad, alpha=0.01)
            w.grad.zero_()

    for _ in range(100):
        step()
    ct.opencl.synchronize()
    held, reserved = ct.opencl.memory_allocated(), ct.opencl.memory_reserved()
    for _ in range(10_000):
        step()
    ct.opencl.synchronize()
    assert ct.opencl.memory_allocated() <= held
    assert ct.opencl.memory_reserved() <= 2 * reserved
    assert len(x._storage.backend.pending) < 300


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_running_every_op_at_once_gives_the_same_bits(dtype, monkeypatch):
    def run():
        x = ct.tensor(np.linspace(-3, 3, 37), dtype=getattr(ct, dtype))
        y = (x * 3 + 1) / 7 - x * x
        z = (y.sigmoid() * x).exp()
        return [v.double().tolist() for v in (y, z)]

    lazily = run()
    monkeypatch.setattr(config, "CONFIG", dataclasses.replace(config.CONFIG, eager=True))
    assert run() == lazily


# ------------------------------------------------------------------ random programs against numpy


class Program:
    """A random sequence of operations on shared memory, run on numpy and on tensors at once."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        base = np.random.RandomState(seed)
        self.pairs = []
        for shape in ((3, 4), (4,), (4, 3), (1, 4), (3, 1), (2, 3, 4)):
            a = base.randint(-4, 5, shape).astype(np.float64)
            self.pairs.append((a, ct.tensor(a)))

    def pick(self):
        return self.r.choice(self.pairs)

    def compatible(self, shape):
        found = []
        for a, t in self.pairs:
            try:
                if np.broadcast_shapes(a.shape, shape) == shape:
                    found.append((a, t))
            except ValueError:
                pass
        return self.r.choice(found) if found else (np.float64(2.0), 2.0)

    def step(self):
        r = self.r
        kind = r.randrange(12)
        a, t = self.pick()
        if kind < 3:
            b, u = self.compatible(a.shape)
            op = r.choice(["__add__", "__sub__", "__mul__"])
            self.keep(
                np.asarray(getattr(a, op)(b if isinstance(b, np.ndarray) else float(b))),
                getattr(t, op)(u),
            )
        elif kind == 3 and a.ndim >= 2:
            d = r.sample(range(a.ndim), 2)
            self.keep(a.swapaxes(*d), t.transpose(*d))
        elif kind == 4 and a.ndim:
            d = r.randrange(a.ndim)
            lo = r.randrange(a.shape[d])
            hi = r.randrange(lo, a.shape[d]) + 1
            index = tuple([slice(None)] * d + [slice(lo, hi)])
            self.keep(a[index], t.narrow(d, lo, hi - lo))
        elif kind == 5 and a.ndim:
            d = r.randrange(a.ndim)
            i = r.randrange(a.shape[d])
            self.keep(a[(*[slice(None)] * d, i, Ellipsis)], t.select(d, i))
        elif kind == 6:
            self.keep(a[None], t.unsqueeze(0))
        elif kind in (7, 8):
            b, u = self.compatible(a.shape)
            if isinstance(b, np.ndarray) and b is not a and np.shares_memory(a, b):
                b, u = np.float64(3.0), 3.0
            op, name = r.choice([(np.add, "add_"), (np.multiply, "mul_"), (np.subtract, "sub_")])
            op(a, b, out=a)
            getattr(t, name)(u)
            if np.abs(a).max(initial=0) > 1e6:
                np.clip(a, -8, 8, out=a)
                t.clamp_(-8, 8)
        elif kind == 9:
            b, u = self.compatible(a.shape)
            if isinstance(b, np.ndarray) and not np.shares_memory(a, b):
                a[...] = b
                t.copy_(u)
        elif kind == 10:
            v = float(r.randint(-3, 3))
            a[...] = v
            t.fill_(v)
        elif kind == 11:
            np.testing.assert_array_equal(np.array(t.tolist()).reshape(a.shape), a)

    def keep(self, a, t):
        if np.abs(a).max(initial=0) > 1e6:
            a, t = np.asarray(np.clip(a, -8, 8)), t.clamp(-8, 8)
        if len(self.pairs) > 14:
            self.pairs.pop(self.r.randrange(len(self.pairs)))
        self.pairs.append((a, t))

    def check(self):
        for a, t in self.pairs:
            np.testing.assert_array_equal(np.array(t.tolist()).reshape(a.shape), a)


@pytest.mark.parametrize("seed", range(int(os.environ.get("CLTENSOR_PROGRAMS", "8"))))
def test_random_programs_agree_with_numpy(seed):
    program = Program(seed)
    for _ in range(40):
        program.step()
    program.check()


def test_memory_read_as_other_dtypes_is_not_written_over() -> None:
    """Elements of another size have other addresses: writing the result in place would overwrite unread operands."""
    x = ct.arange(1000).float()
    wanted = x.clone().view(ct.int16)[:1000].clone().float()
    x.copy_(x.view(ct.int16)[:1000])
    assert ct.equal(x, wanted)
    y = ct.arange(1000).float()
    y.copy_((y.view(ct.int16)[:1000] >> 2) + 1)
    assert ct.equal(y, wanted.floor_divide(4) + 1)


def test_a_node_in_place_takes_its_own_memory() -> None:
    x = ct.arange(100).float()
    x._storage.buffer()
    before = x._storage.value.address
    x.mul_(2)
    x._storage.buffer()
    assert x._storage.value.address == before
    kept = x + 1  # reads the old memory
    x.mul_(2)
    x._storage.buffer()
    assert ct.equal(kept, ct.arange(100) * 2.0 + 1)
    assert ct.equal(x, ct.arange(100) * 4.0)


def test_a_write_into_what_a_seen_operand_reads_uses_other_memory():
    x = on_device(data(6, 6))
    y = np.array(x.tolist(), np.float32)
    x.copy_((x * 2).t() + x)
    assert np.array_equal(x.cpu().numpy(), (y * 2).T + y)


def test_what_is_light_and_held_is_computed_again_by_a_reduction_instead_of_stored():
    x, y = on_device(data(256, 96)) - 0.5, on_device(data(256, 96))  # small ones are run first

    def sums_of(make):
        ct.opencl.synchronize()
        before, kept = STATS.launches, make()
        total = (kept * 3).sum(1)
        made = STATS.launches - before
        assert np.allclose(total.cpu().numpy(), (kept.cpu().numpy() * 3).sum(1))
        return made

    assert sums_of(x.relu) == 1
    # Reading one stored result takes less memory traffic than reading its two operands again.
    assert sums_of(lambda: x + y) == 2


@pytest.mark.parametrize("length", [10, 100])
def test_operands_laid_out_alike_decide_as_one_how_a_sum_goes(length):
    """A sum has the same bits whether its operand is computed within its kernel or read from memory. So a gradient that
    is asked for twice has the same bits, too.
    """
    first, second = on_device(data(2, length, 1)), on_device(data(2, length, 1))
    rays = on_device(data(2, length, 3)) - 0.5
    mask = first > 0.5
    ct.opencl.synchronize()

    def at_once():
        return (first.where(mask, second) * rays).sum(1)

    assert launches(at_once) == 1
    weight = first.where(mask, second)
    weight.cpu()
    assert np.array_equal(at_once().cpu().numpy(), (weight * rays).sum(1).cpu().numpy())


def test_a_sum_that_grows_along_reductions_is_run_now_and_then():
    """Each norm along a residual stream reads the stream, not everything that was ever added to it."""
    parts = [on_device(data(8, 48)) * n for n in range(12)]
    ct.opencl.synchronize()

    def stream():
        total = parts[0]
        for part in parts[1:]:
            total = total + part
            norm = ct.softmax(total, 1)
        return norm, total

    assert launches(lambda: stream()[0]) == 11 + 5
    norm, total = stream()
    wanted = sum(range(12)) * on_device(data(8, 48)).cpu().numpy()
    assert np.allclose(total.cpu().numpy(), wanted)
    assert np.allclose(norm.cpu().numpy(), ct.softmax(ct.tensor(wanted), 1).cpu().numpy())


def _kept(state, decay, step):
    state = decay * state + step
    return state, state


def _mixed(state, decay, step):
    """The state itself is not what is written."""
    total, weight = state if isinstance(state, tuple) else (state, state)
    total, weight = total * decay + step, weight * decay + 1
    return (total, weight), total / weight


@pytest.mark.parametrize("take", [_kept, _mixed])
def test_a_step_of_a_recurrence_that_writes_into_a_tensor_does_not_begin_with_the_first(take):
    """More steps are more launches of the same kernels."""

    def states(steps, decays, inputs, out):
        state = inputs[:, 0] * 0
        for t in range(steps):
            state, out[:, t] = take(state, decays[:, t], inputs[:, t])
        return out

    decays, inputs = data(3, 24, 8), data(3, 24, 8, seed=1)
    for steps in (6, 24):
        a, x = on_device(decays[:, :steps]), on_device(inputs[:, :steps])
        out = on_device(np.zeros((3, steps, 8), np.float32))
        made = builds(lambda n=steps, a=a, x=x, out=out: states(n, a, x, out))
    assert made == 0
    wanted = states(24, decays, inputs, np.zeros((3, 24, 8), np.float32))
    assert np.allclose(out.cpu().numpy(), wanted, atol=1e-5)


@pytest.mark.parametrize("dtype", [ct.float16, ct.bfloat16])
def test_both_zeros_are_numbers_of_short_types(dtype):
    x = ct.ones(4, dtype=dtype)
    for zero in (-0.0, 0.0, -0.0):
        filled = x.masked_fill(x > 0, zero)
        assert np.signbit(filled.tolist()).tolist() == [np.signbit(zero)] * 4


@pytest.mark.elsewhere
def test_lanes_of_a_gpu_that_take_several_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a GPU with so few lanes that each processes several rounds of four or two elements."""
    another_device(monkeypatch, kind="gpu", lanes=1, compute_units=1)
    for n in (1, 127, 2049, 24571, 50001):
        for dtype in ("float32", "float16", "uint8", "int64", "complex64"):
            x = (ct.arange(n, device="cpu") % 251).to(getattr(ct, dtype))
            y = x.flip(0)
            there = [v.to("opencl:77") for v in (x, y)]

            def chain(x, y, dtype=dtype):
                return (x * 2 + y, x - y) if dtype != "uint8" else (~x, x & y)

            for mine, expected in zip(chain(*there), chain(x, y), strict=True):
                assert mine.device.index == 77
                np.testing.assert_array_equal(mine.cpu().numpy(), expected.numpy(), f"{n}, {dtype}")
        z = there[0]
        z += 1  # the result is written where its operand was read
        np.testing.assert_array_equal(z.cpu().numpy(), (x + 1).numpy())


@pytest.mark.parametrize(
    ("change", "count"),
    [
        (lambda x: x[1:3].__imul__(2), 1),
        (lambda x: x[:, 1].__iadd__(x[:, 1]), 1),
        (lambda x: x[2:, ::3].__isub__(x[2:, ::3]), 1),
        (lambda x: x[4:6].__imul__(x[4:6] + x[6:8]), 2),  # the sum is a tensor that is held
        (lambda x: x[:, :6:2].__iadd__(x[:, 1:4]), 2),
        (lambda x: x[:8, ::2].__iadd__(x[:4, :8].T), 2),
        (lambda x: x[1:, 3].__isub__(x[:-1, 3]), 2),
    ],
)
def test_a_part_is_changed_by_one_launch_and_from_a_copy_where_it_reads_other_places(change, count):
    base = np.random.RandomState(1).rand(12, 8).astype(np.float32)
    x, y = ct.tensor(base), base.copy()
    for _ in range(2):
        assert launches(lambda: change(x)) == count
        change(y)
        np.testing.assert_array_equal(x.cpu().numpy(), y)
    kept, before = x * 2, y * 2  # kept is pending: it still has to read the old values
    change(x)
    change(y)
    np.testing.assert_array_equal(kept.cpu().numpy(), before)
    np.testing.assert_array_equal(x.cpu().numpy(), y)
