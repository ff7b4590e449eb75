"""Small expression trees that skip the fusion (lazy/tree.py) reach the same kernels and values as fused ones."""

import numpy as np
import pytest
from support import builds, choose_anew, data, launches, on_device

import cltensor as ct
from cltensor.runtime import STATS


def test_small_trees_are_run_without_a_fusion(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inner nodes that are held or read several times are computed once, in the kernel that a fusion would have made. A
    tree with an inner node that another pending result reads is left to a fusion.
    """
    from cltensor.lazy import schedule, tree

    a, b = on_device(data(6, 5)), on_device(data(6, 5))
    x, y = (np.array(t.tolist(), np.float32) for t in (a, b))
    turned = ct.tensor(x.T.tolist()).t()

    def held() -> tuple:
        inner = a + b
        return inner * inner - a, inner

    def shared() -> tuple:
        inner = a * b
        return ((inner + 1) * inner + inner,)

    def needed_by_others() -> tuple:
        inner = a - b
        return inner * 2, inner + 3

    def strided() -> tuple:
        return ((a + b[0]) * b[:, :1] - turned,)

    def seen() -> tuple:
        row = b[0] * 2
        return (a * row + row.unsqueeze(0) * (a.t() + 1).t(),)

    def held_and_seen() -> tuple:
        number = a[0, 0] + 1  # one element: a kernel over more elements does not return it
        return (a * number + number,)

    wanted = {
        seen: (x * (y[0] * 2) + y[0] * 2 * (x + 1),),
        held_and_seen: (x * (x[0, 0] + 1) + (x[0, 0] + 1),),
        strided: ((x + y[0]) * y[:, :1] - x,),
        held: ((x + y) * (x + y) - x, x + y),
        shared: ((x * y + 1) * (x * y) + x * y,),
        needed_by_others: ((x - y) * 2, (x - y) + 3),
    }
    calls = []

    def counted(*args: object) -> bool:
        calls.append(tree.run_tree(*args))
        return calls[-1]

    ct.opencl.synchronize()
    monkeypatch.setattr(schedule, "run_tree", counted)
    for make, values in wanted.items():
        calls.clear()
        before = STATS.launches
        found = make()
        found[0]._storage.buffer()
        assert calls == [make is not needed_by_others]
        for result, value in zip(found, values, strict=True):
            assert not result._storage.waits
            np.testing.assert_array_equal(np.array(result.tolist(), np.float32), value)
        assert STATS.launches - before == 1


def test_single_operations_take_one_kernel_by_the_short_cut_and_without(monkeypatch):
    from cltensor.lazy import tree

    x, y = on_device(data(40)), on_device(data(40))
    u, v = (np.array(t.tolist(), np.float32) for t in (x, y))
    short: list[bool] = []
    by_short_cut = tree._run_node

    def counted(*args):
        short.append(by_short_cut(*args))
        return short[-1]

    ct.opencl.synchronize()  # what others left pending does not count
    monkeypatch.setattr(tree, "_run_node", counted)

    for make, change, value in (
        (lambda: x + y, lambda t: t.add_(y), u + v),
        (lambda: x + x, lambda t: t.add_(t), u + u),
        (lambda: x * 2.5, lambda t: t.mul_(2.5), u * np.float32(2.5)),
        (lambda: x[3:] * x[:-3], None, u[3:] * u[:-3]),
        (lambda: x[3:] * x[3:], None, u[3:] * u[3:]),
    ):
        short.clear()
        assert launches(make) == 1
        assert short == [True]
        np.testing.assert_array_equal(make().cpu().numpy(), value)
        if change is not None:
            t = x.clone()
            memory = t._storage.buffer()
            short.clear()
            assert builds(lambda change=change, t=t: change(t)) == 0
            assert short == [True]
            assert t._storage.buffer() is memory
            np.testing.assert_array_equal(np.array(t.tolist(), np.float32), value)
            # The result goes into other memory if a pending result still reads the old.
            reader = change(t.copy_(x)) - y
            older = t * 1
            change(t)
            t._storage.buffer()
            np.testing.assert_array_equal(np.array(older.tolist(), np.float32), value)
            np.testing.assert_array_equal(np.array(reader.tolist(), np.float32), value - v)
    short.clear()
    empty = on_device(data(0)) + on_device(data(0))
    empty._storage.buffer()
    assert short == [False]


def test_a_node_that_is_seen_twice_through_one_view_is_computed_once():
    x = on_device(data(5, 5))
    product = ct.full((), 3.0) * x  # read twice, its number only once
    total = product + product.t()
    y = np.array(x.tolist(), np.float32)
    np.testing.assert_array_equal(np.array(total.tolist(), np.float32), 3 * y + 3 * y.T)


def test_large_broadcast_trees_need_no_collecting_and_what_is_turned_first_does(monkeypatch):
    from cltensor.lazy import schedule, tree

    x, row = on_device(data(300, 260)), on_device(data(260))
    y, z = (np.array(t.tolist(), np.float32) for t in (x, row))
    calls = []

    def counted(*args: object) -> bool:
        calls.append(tree.run_tree(*args))
        return calls[-1]

    ct.opencl.synchronize()
    monkeypatch.setattr(schedule, "run_tree", counted)
    for make, value, small in (
        (lambda: x * row, y * z, True),
        (lambda: x.t() * row[0], (y * z[0]).T, True),
        (
            lambda: x.t() * row.unsqueeze(1) + x.reshape(260, 300),
            y.T * z[:, None] + y.reshape(260, 300),
            False,
        ),
    ) * 2:
        calls.clear()
        found = make()
        found._storage.buffer()
        assert calls == [small]
        np.testing.assert_array_equal(found.cpu().numpy(), value)


def test_trees_that_differ_in_one_thing_are_told_apart(monkeypatch):
    """Trees are told apart by the places of numbers, operands that occur twice, strides, and sizes that no stride
    shows.
    """
    x, y, z = (on_device(data(4, 4)) + k for k in (1, 2, 3))
    ct.opencl.synchronize()
    # Copies, because expressions over memory that numpy sees do not stay pending.
    a, b, c = (np.array(t.tolist(), np.float32) for t in (x, y, z))
    two = np.float32(2)
    trees = [
        (lambda: x - 2, a - two),
        (lambda: 2 - x, two - a),
        (lambda: (x - 2) - x, (a - two) - a),
        (lambda: x - (2 - x), a - (two - a)),
        (lambda: x * x + y, a * a + b),
        (lambda: x * y + x, a * b + a),
        (lambda: x * y + y, a * b + b),
        (lambda: x * y + z, a * b + c),
        (lambda: x + y, a + b),
        (lambda: x + y.t(), a + b.T),
        (lambda: x + y[0], a + b[0]),
        (lambda: x + y[:, :1], a + b[:, :1]),
        (lambda: x * 2 + (y * 2).t(), a * two + (b * two).T),
        (lambda: x * 2 + (y * 2)[0], a * two + (b * two)[0]),
        (lambda: (x * 2).t() + (y * 2).t(), (a * two).T + (b * two).T),
        (lambda: z + (x * 2 + y[0] * 2).t(), c + (a * two + b[0] * two).T),
        (lambda: z + (x * 2 + (y[:, 0] * 2).unsqueeze(1)).t(), c + (a * two + b[:, :1] * two).T),
        (lambda: z + (x[0] * 2 + y[1]), c + (a[0] * two + b[1])),
        (lambda: ct.where(x > 1.5, 2.0, y), np.where(a > 1.5, two, b)),
        (lambda: ct.where(x > 1.5, y, 2.0), np.where(a > 1.5, b, two)),
    ]
    for order in (trees, trees[::-1]):
        choose_anew(monkeypatch)
        for k, (make, wanted) in enumerate(order):
            np.testing.assert_array_equal(make().cpu().numpy(), wanted, err_msg=str(k))
    column = on_device(data(3))
    for n in (4, 6, 5):
        wide = on_device(data(3, n))
        found = wide + (column * 2).unsqueeze(1)
        wanted = np.array(wide.tolist(), "f") + np.array(column.tolist(), "f")[:, None] * two
        np.testing.assert_array_equal(found.cpu().numpy(), wanted)


def test_what_is_kept_on_the_way_takes_its_old_memory():
    x = on_device(data(50)) + 1
    home = x._storage.buffer()
    x += 1
    y = x * 2
    y._storage.buffer()
    assert x._storage.value is home


def test_a_result_that_is_not_registered_yet_is_left_alone() -> None:
    """One thread may flush between another's new value of a listed storage and that value's registration."""
    from cltensor import lazy

    a = on_device(data(6, 5))
    t = a + 1
    storage = t._storage
    storage.value.cell = None
    ct.opencl.synchronize()
    lazy.register(storage.backend, storage, storage.value)
    assert t.tolist() == (np.array(a.tolist(), np.float32) + 1).tolist()
