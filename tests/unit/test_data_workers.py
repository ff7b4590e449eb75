"""Data loading by worker processes: they do their work, fail and end cleanly."""

from __future__ import annotations

import gc
import multiprocessing
import os
import random
import subprocess
import sys
import textwrap
import time
import warnings
from pathlib import Path
from pickle import PicklingError
from typing import Any

import pytest
import worker_datasets as sets

import cltensor as torch
from cltensor.runtime import device, get_backend
from cltensor.utils import data
from cltensor.utils.data import DataLoader, worker

ROOT = Path(__file__).resolve().parents[2]


def children() -> set[int | None]:
    """Return the processes started by this one, directly or through a fork server."""
    return {process.pid for process in multiprocessing.active_children()}


def values(loader: DataLoader) -> list[Any]:
    return [batch.tolist() for batch in loader]


def test_workers_keep_the_order_and_end() -> None:
    before = children()
    found = list(DataLoader(sets.Squares(9), 2, num_workers=2))
    assert [b[1].tolist() for b in found] == [[0, 1], [4, 9], [16, 25], [36, 49], [64]]
    assert found[3][0].tolist() == [[6.0] * 3, [7.0] * 3]
    assert children() <= before


def test_slow_batches_come_in_order_or_as_they_are_made() -> None:
    ordered = DataLoader(sets.Slow(8), 2, num_workers=2)
    assert values(ordered) == [[0, 1], [2, 3], [4, 5], [6, 7]]
    free = values(DataLoader(sets.Slow(8), 2, num_workers=2, in_order=False))
    assert sorted(free) == [[0, 1], [2, 3], [4, 5], [6, 7]]


@pytest.mark.parametrize("method", [None, "spawn"])
def test_what_workers_know(method: str | None) -> None:
    loader = DataLoader(
        sets.Report(4), 1, num_workers=2, worker_init_fn=sets.mark, generator=torch.Generator().manual_seed(1),
        multiprocessing_context=method,
    )  # fmt: skip
    found = list(loader)
    assert [b["id"].item() for b in found] == [0, 1, 0, 1]
    assert [b["mark"] for b in found[:2]] == [["worker 0"], ["worker 1"]]
    assert {b["workers"].item() for b in found} == {2}
    assert found[1]["seed"].item() == found[0]["seed"].item() + 1
    assert found[0]["numpy"].item() != found[1]["numpy"].item()
    if method == "spawn":  # a fresh process, in which batches are not tensors
        assert not any(b["opencl"].item() for b in found)
    assert data.get_worker_info() is None


def test_persistent_workers_and_streams() -> None:
    before = children()
    loader = DataLoader(sets.Stream(7), 2, num_workers=2, persistent_workers=True)
    first = values(loader)
    processes = children() - before
    assert len(processes) == 2
    assert sorted(v for b in first for v in b) == list(range(7))
    assert first == [[0, 2], [1, 3], [4, 6], [5]]
    next(iter(loader))  # a pass that is abandoned
    assert values(loader) == first
    assert children() - before == processes
    del loader
    gc.collect()
    assert not processes & children()


def test_tensors_and_own_functions_in_workers() -> None:
    x = torch.arange(8.0).to(torch.bfloat16)
    whole = data.TensorDataset(x, torch.arange(8))
    loader = DataLoader(whole, 4, num_workers=1, persistent_workers=True)
    first = list(loader)
    assert first[1][0].dtype is torch.bfloat16
    assert (first[1][0].tolist(), first[1][1].tolist()) == ([4, 5, 6, 7], [4, 5, 6, 7])
    own = DataLoader(range(4), 2, num_workers=1, collate_fn=sets.doubled)
    assert values(own) == [[0, 2], [4, 6]]


def test_an_error_in_a_worker() -> None:
    iterator = iter(DataLoader(sets.Broken(6), 2, num_workers=1, collate_fn=sets.identity))
    assert next(iterator) == [0, 1]
    with pytest.raises(KeyError) as caught:
        next(iterator)
    text = str(caught.value)
    assert text.startswith("Caught KeyError in DataLoader worker process 0.\nOriginal Traceback")
    assert "no sample 3" in text
    assert next(iterator) == [4, 5]


def test_errors_before_and_after_a_sample() -> None:
    with pytest.raises(ValueError, match="Caught ValueError in DataLoader worker process 0"):
        list(DataLoader(sets.Squares(2), num_workers=1, worker_init_fn=sets.fail))
    with pytest.raises(
        (AttributeError, PicklingError, RuntimeError, TypeError, ValueError),
        match="in DataLoader worker process 0",
    ):
        list(DataLoader(sets.Unpicklable(2), num_workers=1, collate_fn=sets.identity))
    with pytest.raises(Exception, match=r"pickle|local object"):
        iter(
            DataLoader(
                sets.Squares(2),
                num_workers=1,
                collate_fn=lambda x: x,
                multiprocessing_context="spawn",
            )
        )


def test_a_killed_worker() -> None:
    before = children()
    with pytest.raises(
        RuntimeError, match=r"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly"
    ):
        list(DataLoader(sets.Killed(6), 1, num_workers=2))
    assert children() <= before


def test_a_forked_child_leaves_the_workers_to_its_parent() -> None:
    iterator = iter(DataLoader(sets.Squares(9), 1, num_workers=2))
    next(iterator)
    child = os.fork()
    if not child:
        del iterator
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert [int(y) for _, y in iterator] == [i * i for i in range(1, 9)]


def test_timeout_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "GRACE", 0.5)
    before = children()
    start = time.monotonic()
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0\.5 seconds"):
        list(DataLoader(sets.Sleeper(2), num_workers=1, timeout=0.5))
    assert children() <= before
    assert time.monotonic() - start < 30


def test_a_deleted_iterator_leaves_nothing_behind() -> None:
    before = children()
    iterator = iter(DataLoader(sets.Squares(1000), 1, num_workers=1, prefetch_factor=8))
    next(iterator)
    assert len(children() - before) == 1
    del iterator
    gc.collect()
    assert children() <= before


def test_an_interrupted_program_leaves_nothing_behind(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(f"""
        import os, signal, sys
        sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / "tests")!r}]
        import worker_datasets as datasets
        from cltensor.utils.data import DataLoader
        if __name__ == "__main__":
            loader = iter(DataLoader(datasets.Squares(1000), 1, num_workers=1))
            next(loader)
            print(*(p.pid for p, _ in loader.pool.pairs), flush=True)
            os.kill(os.getpid(), getattr(signal, sys.argv[1]))
            next(loader)
    """)
    )
    for name in ("SIGINT", "SIGKILL"):
        done = subprocess.run(
            [sys.executable, str(program), name], capture_output=True, text=True, check=False
        )
        pids = [int(p) for p in done.stdout.split()]
        assert pids, done.stderr
        limit = time.monotonic() + 20
        while any(_alive(p) for p in pids) and time.monotonic() < limit:
            time.sleep(0.05)
        assert not any(_alive(p) for p in pids), name


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_the_length_of_a_stream_is_watched() -> None:
    class Wrong(sets.Stream):
        def __len__(self) -> int:
            return 1

    loader = DataLoader(Wrong(2), None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # No warning, as len() was not called before this pass; Python 3.10's list(loader) calls it.
        list(iter(loader))
    assert len(loader) == 1
    with pytest.warns(UserWarning, match="was reported to be 1"):
        list(loader)


def test_more_workers_than_cores_is_a_warning() -> None:
    with pytest.warns(UserWarning, match="This DataLoader will create 1000 worker processes"):
        DataLoader(sets.Squares(2), num_workers=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DataLoader(sets.Squares(2), num_workers=1, pin_memory=True)


def test_python_seeds_differ_between_passes() -> None:
    random.seed(0)
    loader = DataLoader(sets.Report(1), 1, num_workers=1)
    assert next(iter(loader))["seed"].item() != next(iter(loader))["seed"].item()


def test_a_script_needs_no_main_guard_where_processes_fork(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
        import cltensor as torch
        from cltensor.utils.data import DataLoader, Dataset, TensorDataset

        class Scaled(Dataset):
            scale = torch.tensor(2.0)
            def __len__(self):
                return 4
            def __getitem__(self, i):
                return (torch.arange(3.0) + i) * self.scale

        torch.ones(2).sum().item()
        loader = DataLoader(Scaled(), 2, num_workers=2, collate_fn=lambda batch: torch.stack(batch).sum(1))
        print([batch.tolist() for batch in loader])
        """)
    )
    if (
        get_backend(device("cpu")).team is None
        or multiprocessing.get_all_start_methods()[0] != "fork"
    ):
        pytest.skip("processes are not forked here")
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[[6.0, 12.0], [18.0, 24.0]]"
