"""Optimisers on the device: few launches for many tensors, nothing built twice, any layout, hooks, state and its saving."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from backends import another_device, backend_for
from support import close, data, one_by_one

import cltensor as torch
from cltensor import optim
from cltensor.codegen import multi as kernels
from cltensor.codegen.index.lookup import bounds_error
from cltensor.codegen.operand import Operand
from cltensor.ops import multi
from cltensor.optim import stepper

# The simplest of optimisers, p = p - w * g, for tests of the machinery.
STEP = multi.chain("test_step", "p = p - w * g", "p", "g")


def parameters(*shapes: tuple[int, ...], dtype: str = "float32") -> list[Any]:
    made = [torch.tensor(data(*s, dtype=dtype)).requires_grad_() for s in shapes]
    for p in made:
        p.grad = torch.tensor(data(*p.shape, seed=1, dtype=dtype))
    return made


def adam(p: np.ndarray, g: np.ndarray, steps: int, lr: float = 0.01) -> np.ndarray:
    """Return `p` after some steps of Adam with a constant gradient, in numpy, as textbooks state it."""
    m, v = np.zeros_like(p), np.zeros_like(p)
    for t in range(1, steps + 1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        p = p - lr * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return p


# ------------------------------------------------------------------------------------------- launches


def counts() -> tuple[int, int]:
    now = torch.stats()
    return now["launches"], now["builds"] + now["disk_hits"]


def test_a_step_over_100_tensors_is_a_few_launches_and_builds_once() -> None:
    ps = parameters(*[(i % 7 + 1, 3) for i in range(100)])
    before = [p.tolist() for p in ps]
    o = optim.Adam(ps, 0.01)
    o.step()
    torch.opencl.synchronize()
    for step in range(2):
        o.param_groups[0]["lr"] = 0.01 + step * 0
        launches, builds = counts()
        o.step()
        torch.opencl.synchronize()
        assert counts()[0] - launches <= 8
        assert counts()[1] == builds
    for p, start in zip(ps, before, strict=True):
        close(p, adam(np.array(start), np.array(p.grad.tolist()), 3), 1e-5)


def test_numbers_are_no_part_of_a_kernel() -> None:
    ps = parameters((5,), (4, 2))
    o = optim.Adam(ps, 0.01)
    o.step()
    _, builds = counts()
    o.param_groups[0].update(lr=0.5, betas=(0.8, 0.99), eps=1e-3)
    o.step()
    torch.opencl.synchronize()
    assert counts()[1] == builds


@pytest.mark.parametrize(
    ("dtype", "how"), [("float32", {}), ("bfloat16", {"weight_decay": 0.1, "maximize": True})]
)
def test_adafactor_takes_parameters_of_a_shape_together(dtype: str, how: dict[str, Any]) -> None:
    shapes = [(5, 3), (4,), (), (2, 3, 2, 2), (0, 2)] if dtype == "float32" else [(5, 3), (4,)]
    found, expected = ([], [])
    for ps in (found, expected):
        for i, shape in enumerate([*shapes, *shapes[:-1]]):
            p = torch.tensor(data(*shape, seed=i)).to(getattr(torch, dtype))
            if i == 3 and p.ndim == 4:
                p = p.contiguous(memory_format=torch.channels_last)
            ps.append(p.requires_grad_())
            p.grad = torch.tensor(data(*shape, seed=i + 50)).to(p.dtype)
    o = optim.Adafactor(found, 0.1, **how)
    alone = [optim.Adafactor([p], 0.1, **how) for p in expected]
    for _ in range(3 if dtype == "float32" else 2):
        o.step()
        with one_by_one():
            for each in alone:
                each.step()
    for p, q, each in zip(found, expected, alone, strict=True):
        close(p, q.detach(), 1e-5 if dtype == "float32" else 2e-2)
        for name, value in each.state[q].items():
            assert o.state[p][name].shape == value.shape
            assert o.state[p][name].dtype is value.dtype
            close(o.state[p][name], value, 1e-5 if dtype == "float32" else 2e-2)


def test_a_step_of_adafactor_is_few_launches() -> None:
    ps = parameters(*[(4, 3)] * 30)
    o = optim.Adafactor(ps)
    o.step()
    launches, _ = counts()
    o.step()
    torch.opencl.synchronize()
    assert counts()[0] - launches < 20


def test_zeroing_gradients_is_one_launch() -> None:
    ps = parameters(*[(3, 2)] * 20)
    o = optim.SGD(ps)
    torch.opencl.synchronize()
    launches, _ = counts()
    o.zero_grad(set_to_none=False)
    assert counts()[0] - launches == 1
    assert all(p.grad.tolist() == [[0.0, 0.0]] * 3 for p in ps)
    o.zero_grad()
    assert all(p.grad is None for p in ps)


def test_slots_fit_the_arguments_of_the_device() -> None:
    backend = torch.zeros(1)._storage.backend
    for operands in ("g", "g h i j k l"):
        chain = multi.chain("test_slots", "p = p - g", "p", operands)
        slots = kernels.slot_limit(backend, chain)
        assert slots >= 8
        assert 8 * (2 + slots * len(chain.operands)) <= backend.info.arg_bytes


def test_tensors_begin_and_end_anywhere() -> None:
    """Many tensors are updated, some of them empty, some as long as a work-group takes, one element more, or less."""
    sizes = [1, 511, 512, 513, 0, 2, 1025, 7, 4099, 0, 300] * 13
    starts = [torch.tensor(data(n, seed=k)) for k, n in enumerate(sizes)]
    steps = [torch.tensor(data(n, seed=k + 1)) for k, n in enumerate(sizes)]
    expected = [
        np.array(p.tolist()) - 0.5 * np.array(g.tolist())
        for p, g in zip(starts, steps, strict=True)
    ]
    multi.apply(STEP, [starts, steps], {"w": 0.5})
    for p, e in zip(starts, expected, strict=True):
        close(p, e)


# ------------------------------------------------------------------------------------------- layouts and dtypes


def applied(p: Any, g: Any, w: float = 0.5) -> None:
    expected = (np.array(p.tolist()) - w * np.array(g.tolist())).reshape(p.shape)
    version = p._version
    multi.apply(STEP, [[p], [g]], {"w": w})
    close(p, expected)
    assert p._version > version


def test_layouts() -> None:
    base = torch.tensor(data(24))
    applied(base[4:16], torch.tensor(data(12)))  # an offset
    applied(base[4:10].reshape(2, 3).t(), torch.tensor(data(3, 2)))  # dense in another order
    applied(base.reshape(4, 6)[:, 1:4], torch.tensor(data(4, 3)))  # gaps: by operators
    applied(torch.tensor(data(4, 3)), base.reshape(4, 6)[:, 1:4])
    applied(torch.tensor(data(4, 3)), torch.tensor(data(3)).expand(4, 3))
    applied(torch.tensor(3.0), torch.tensor(2.0))
    applied(torch.zeros(0, 3), torch.zeros(0, 3))
    applied(torch.tensor(data(6, dtype="float64")), torch.tensor(data(6, dtype="float64")))
    assert base.tolist()[16:19] == data(24).tolist()[16:19]


def test_sizes_around_vectors_and_chunks() -> None:
    sizes = [1, 15, 16, 17, 4095, 4096, 4097, 70_001]
    ps = [torch.full((n,), float(i)) for i, n in enumerate(sizes)]
    gs = [torch.arange(n).float() for n in sizes]
    multi.apply(STEP, [ps, gs], {"w": 2.0})
    for i, (p, n) in enumerate(zip(ps, sizes, strict=True)):
        assert np.array_equal(p.cpu().numpy(), i - 2.0 * np.arange(n, dtype=np.float32))


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_16_bit_floats_compute_in_float32(name: str) -> None:
    kind = getattr(torch, name)
    p, g = torch.tensor(data(20), dtype=kind), torch.tensor(data(20, seed=1), dtype=kind)
    expected = (p.float() - 0.3 * g.float()).to(kind)
    multi.apply(STEP, [[p], [g]], {"w": 0.3})
    assert torch.equal(p, expected)


def test_complex_tensors_are_pairs() -> None:
    p, g = (torch.tensor(data(5, seed=i, dtype="complex64")) for i in range(2))
    applied(p, g)


def test_a_tensor_listed_twice_is_updated_twice() -> None:
    p, g = torch.zeros(3), torch.ones(3)
    multi.apply(STEP, [[p, p], [g, g]], {"w": 1.0})
    assert p.tolist() == [-2.0] * 3


def test_pending_values_are_run_first_and_readers_keep_theirs() -> None:
    p = torch.tensor(data(6)) * 2
    later = p + 1
    expected = np.array(data(6) * 2 + 1)
    multi.apply(STEP, [[p], [p * 0 + 1]], {"w": 1.0})
    close(later, expected)
    close(p, data(6) * 2 - 1)


def test_a_gpu_runs_the_same_chain() -> None:
    backend = backend_for("gpu")
    parts, rows = [], []
    for n in (3, 5000, 129):
        p, g = data(n), data(n, seed=1)
        buffers = [backend.alloc(4 * n) for _ in "pg"]
        for buffer, values in zip(buffers, (p, g), strict=True):
            backend.write(buffer, 0, values)
        parts.append((n, tuple(buffers), (0, 0), ()))
        rows.append((buffers[0], p - np.float32(0.5) * g))
    kernels.apply(backend, STEP, (torch.float32, torch.float32), parts, {"w": 0.5})
    for buffer, expected in rows:
        found = backend.read(buffer, 0, expected.nbytes).view(np.float32)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("schedule", ["cpu", "gpu"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_a_chain_runs_over_rows_that_keys_name(schedule: str, dtype: str) -> None:
    backend, kind = backend_for(schedule), getattr(torch, dtype)
    for width in (1, 7, 16, 37):
        p, g = data(9, width, dtype=dtype), data(4, width, seed=1, dtype=dtype)
        keys = np.array([7, 0, 3, 8])
        buffers = [backend.alloc(x.nbytes) for x in (p, g, keys)]
        for buffer, values in zip(buffers, (p, g, keys), strict=True):
            backend.write(buffer, 0, values)
        at = Operand(buffers[2], torch.int64, (4,), (1,), 0)
        kernels.apply_rows(
            backend,
            STEP,
            kind,
            buffers[:2],
            (0, 0),
            at,
            (9, width),
            {"w": 0.5},
            bounds_error(RuntimeError, [0], [9]),
        )
        found = backend.read(buffers[0], 0, p.nbytes).view(dtype).reshape(p.shape)
        p[keys] -= (0.5 * g).astype(dtype)
        np.testing.assert_allclose(found, p, rtol=2e-3 if dtype == "float16" else 1e-6)


def test_rows_that_are_not_there_are_refused() -> None:
    p, g = torch.ones(3, 2), torch.ones(2, 2)
    with pytest.raises(RuntimeError, match="out of bounds"):
        multi.apply_rows(STEP, [p], [g], torch.tensor([1, 3]), {"w": 1.0})
        p.tolist()


def test_many_tensors_are_updated_after_what_reads_them() -> None:
    """Long lists, which are examined attribute by attribute: views, pending values, a tensor listed twice, versions."""
    base, other = torch.tensor(data(40)), torch.tensor(data(8, seed=2))
    ps = [base[:8], base[8:16], base[16:24], base[24:], other * 2]
    gs = [torch.tensor(data(*p.shape, seed=1)) * 1 for p in ps[:-1]] + [ps[0] * 3]
    later, expected = ps[0] + 1, [np.array(p.tolist()) for p in ps]
    wanted = [
        p - 0.5 * np.array((g * 1).tolist(), np.float32) for p, g in zip(expected, gs, strict=True)
    ]
    versions = [p._version for p in ps]
    multi.apply(STEP, [ps, gs], {"w": 0.5})
    for p, want in zip(ps, wanted, strict=True):
        close(p, want)
    close(later, expected[0] + 1)
    assert all(p._version > old for p, old in zip(ps, versions, strict=True))
    multi.apply(STEP, [[other] * 5, [torch.ones(8)] * 5], {"w": 1.0})
    close(other, data(8, seed=2) - 5)


# ------------------------------------------------------------------------------------------- the optimiser


def test_step_hooks() -> None:
    seen: list[str] = []
    (p,) = parameters((3,))
    o = optim.SGD([p], 0.1)
    handles = [
        o.register_step_pre_hook(lambda *a: seen.append("pre")),
        o.register_step_post_hook(lambda *a: seen.append("post")),
        optim.optimizer.register_optimizer_step_pre_hook(lambda *a: seen.append("all pre")),
        optim.optimizer.register_optimizer_step_post_hook(lambda *a: seen.append("all post")),
    ]
    o.step()
    assert seen == ["all pre", "pre", "post", "all post"]
    for handle in handles:
        handle.remove()
    o.step()
    assert len(seen) == 4
    o.register_step_pre_hook(lambda *a: 3)
    with pytest.raises(RuntimeError, match="must return None or a tuple"):
        o.step()


def test_state_dict_hooks() -> None:
    seen: list[str] = []
    (p,) = parameters((3,))
    o = optim.Adam([p])
    o.register_state_dict_pre_hook(lambda o: seen.append("save"))
    o.register_state_dict_post_hook(lambda o, d: {**d, "more": 1})
    o.register_load_state_dict_pre_hook(
        lambda o, d: {k: v for k, v in d.items() if k != "more"}, prepend=True
    )
    o.register_load_state_dict_post_hook(lambda o: seen.append("load"))
    saved = o.state_dict()
    assert saved["more"] == 1
    o.load_state_dict(saved)
    assert seen == ["save", "load"]


def test_closures_run_with_gradients() -> None:
    (p,) = parameters((3,))
    o = optim.RMSprop([p])

    def closure() -> Any:
        o.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    first = o.step(closure)
    assert o.step(closure).item() < first.item()
    assert not p.grad.requires_grad


def test_parameters_without_gradient_are_left_alone() -> None:
    a, b = parameters((3,), (2,))
    b.grad = None
    before = b.tolist()
    o = optim.Adam([a, b])
    o.step()
    assert b.tolist() == before
    assert list(o.state) == [a]


def test_counters_follow_what_is_written_to_them() -> None:
    ps = parameters((3,), (3,))
    o = optim.Adam(ps, 0.01)
    o.step()
    count = o.state[ps[0]]["step"]
    assert (count.item(), count.dtype, count.shape) == (1.0, torch.float32, ())
    count.fill_(10)
    late = count + 0
    o.step()
    assert [o.state[p]["step"].item() for p in ps] == [11.0, 2.0]
    assert late.item() == 10.0


def test_counters_in_memory_of_their_own_are_counted_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where there is no CPU device, step counts are in the device's memory, and a step copies nothing between host and
    device.
    """
    apart = another_device(monkeypatch)
    monkeypatch.setattr(stepper, "_host_device", lambda: apart)
    ps = parameters(*[(3,)] * 5)
    o = optim.Adam(ps, 0.01)
    before = torch.stats()
    o.step()
    counts = [o.state[p]["step"] for p in ps]
    assert {str(c.device) for c in counts} == {"opencl:77"}
    moved = torch.stats() - before
    assert moved.copies >= len(ps), moved  # initial zeros, and the launch's table
    for _ in range(3):
        before = torch.stats()
        o.step()
        moved = torch.stats() - before
        assert (moved.copies, moved.launches) == (0, 2), moved
    counts[1].fill_(10)  # a write that the optimiser does not know of
    o.step()
    assert [c.item() for c in counts] == [5.0, 11.0, 5.0, 5.0, 5.0]
    close(ps[0], adam(data(3), data(3, seed=1), 5), 1e-5)
    again = optim.Adam(ps, 0.01)
    again.load_state_dict(o.state_dict())
    again.step()
    assert [again.state[p]["step"].item() for p in ps] == [6.0, 12.0, 6.0, 6.0, 6.0]


@pytest.mark.parametrize(
    "kind", ["Adam", "AdamW", "Adamax", "RMSprop", "Adadelta", "RAdam", "NAdam", "Rprop", "ASGD"]
)
def test_a_capturable_step_reads_nothing(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for capturable in (False, True):
        ps = parameters((3,), (4, 2))
        rate = torch.tensor(0.1) if capturable else 0.1
        o = getattr(optim, kind)(ps, lr=rate, capturable=capturable)
        o.step()
        if capturable:
            monkeypatch.setattr(torch.Tensor, "item", lambda t: pytest.fail("read"))
        for _ in range(6):
            o.step()
        monkeypatch.undo()
        found.append([p.detach() for p in ps])
        assert [o.state[p]["step"].item() for p in ps] == [7.0, 7.0]
    for plain, kept in zip(*found, strict=True):
        close(kept, plain, 1e-5)


def test_groups_and_names() -> None:
    a, b = parameters((3,), (2,))
    o = optim.SGD([("a", a)], 0.1)
    o.add_param_group({"params": [("b", b)], "lr": 1.0})
    assert [g["param_names"] for g in o.state_dict()["param_groups"]] == [["a"], ["b"]]
    before = b.detach().clone()
    o.step()
    close(b, np.array(before.tolist()) - np.array(b.grad.tolist()))
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optim.SGD([a, a])


@pytest.mark.parametrize("kind", ["Adam", "SGD"])
def test_copies_and_pickles_go_on_alike(kind: str) -> None:
    (p,) = parameters((4,))
    o = getattr(optim, kind)([p], lr=0.1, **({"momentum": 0.9} if kind == "SGD" else {}))
    o.step()
    for twin in (copy.deepcopy(o), pickle.loads(pickle.dumps(o))):
        q = twin.param_groups[0]["params"][0]
        q.grad = p.grad.clone()
        keep = p.detach().clone()
        twin.step()
        assert q.tolist() != keep.tolist()
        assert p.tolist() == keep.tolist()


@pytest.mark.usefixtures("one_by_one")
def test_every_optimiser_descends() -> None:
    for kind in sorted(optim.__all__):
        cls = getattr(optim, kind)
        if kind in ("Optimizer", "SparseAdam") or not isinstance(cls, type):
            continue
        (p,) = parameters((4, 3))
        o = cls([p], lr=0.05)

        def closure(p=p, o=o) -> Any:
            o.zero_grad()
            loss = (p * p).sum()
            loss.backward()
            return loss

        first = closure().item()
        for _ in range(3):
            o.step(closure)
        assert closure().item() < first, kind


def test_sparse_adam_takes_no_dense_gradients() -> None:
    (p,) = parameters((3,))
    o = optim.SparseAdam([p])
    p.grad = None
    assert o.step(lambda: 3) == 3
    p.grad = torch.ones(3)
    with pytest.raises(RuntimeError, match="does not support dense gradients"):
        o.step()


# ------------------------------------------------------------------------------------------- averages


def test_averaged_models() -> None:
    model = torch.nn.Linear(3, 2)
    plain = optim.swa_utils.AveragedModel(model)
    smooth = optim.swa_utils.AveragedModel(
        model, multi_avg_fn=optim.swa_utils.get_ema_multi_avg_fn(0.75)
    )
    custom = optim.swa_utils.AveragedModel(model, avg_fn=lambda a, p, n: a + p)
    first = np.array(model.weight.tolist())
    for k in range(3):
        for averaged in (plain, smooth, custom):
            averaged.update_parameters(model)
        if k < 2:
            with torch.no_grad():
                model.weight += 1
    close(plain.module.weight, first + 1)
    close(smooth.module.weight, first + 0.25 * (0.75 + 2))
    close(custom.module.weight, 3 * first + 3, 1e-5)
    assert plain.n_averaged.item() == 3
    assert plain(torch.zeros(1, 3)).shape == (1, 2)
    with pytest.raises(ValueError, match="Invalid decay value"):
        optim.swa_utils.get_ema_avg_fn(2)


def test_update_bn() -> None:
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(3))
    batches = [torch.tensor(data(8, 3, seed=i)) for i in range(2)]
    optim.swa_utils.update_bn([(b, 0) for b in batches], model)
    expected = np.mean([data(8, 3, seed=i).mean(0) for i in range(2)], 0)
    close(model[0].running_mean, expected, 1e-5)
    assert model[0].momentum == 0.1


def test_a_count_is_right_before_the_queue_has_written_it(monkeypatch: pytest.MonkeyPatch) -> None:
    count = stepper.counter(1.0)
    stepper.poke(count, 2.0)
    known = count._known
    monkeypatch.setattr(known.buffer, "seq", 1 << 62)  # as if a reader were still to run
    monkeypatch.setattr(stepper, "_write", lambda t, value: (known.buffer, known.cell))
    assert stepper.poke(count, 3.0) == 3.0
