"""Processes that compute together. This module starts them; what the three ranks do and assert is in
tests/three_ranks.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import cltensor as ct
from cltensor.distributed.wire import Memory

TESTS = Path(__file__).resolve().parents[1]


def test_three_processes(dev: Any, tmp_path: Path) -> None:
    program = str(TESTS / "three_ranks.py")
    started = [
        subprocess.Popen(
            [sys.executable, program, str(rank), str(tmp_path / "store"), str(dev)],
            stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        for rank in range(3)
    ]  # fmt: skip
    said = [process.communicate(timeout=300)[1] for process in started]
    assert [process.returncode for process in started] == [0, 0, 0], "\n".join(said)


def test_what_is_sent_is_computed(dev: Any) -> None:
    """Memory to be sent is waited for: without a team, the kernel that writes it may still be running."""
    memory = Memory(ct.zeros(4, device=dev), True)
    storage = memory.flat._storage
    backend, buffer = storage.backend, storage.buffer()
    with backend.lock:
        backend.seq = buffer.seq = backend.seq + 1  # as if a kernel were running
    assert memory.part(1, 3).nbytes == 8
    assert backend.finished == backend.seq


SCRIPT = """
import os, sys
import cltensor as torch, cltensor.distributed as dist
from cltensor.distributed.elastic.multiprocessing.errors import record

@record
def main():
    dist.init_process_group("gloo")
    ranks = [None] * dist.get_world_size()
    dist.all_gather_object(ranks, (dist.get_rank(), dist.get_node_local_rank(), torch.get_num_threads()))
    if dist.get_rank() == 1 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        raise ValueError("the first time")
    dist.barrier()
    if dist.get_rank() == 0:
        print(ranks, sys.argv[1:], dist.is_torchelastic_launched())
    dist.destroy_process_group()

main()
"""


def _run(script: Path, *options: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "cltensor.distributed.run", "--nproc-per-node", "2"]
    env = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"}
    return subprocess.run(
        [*command, *options, str(script), "--lr", "1"],
        env=env, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def test_scripts_are_started_and_started_again(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    again = _run(script, "--standalone", "--max-restarts=1")
    assert again.returncode == 0, again.stderr
    assert "[(0, 0, 1), (1, 1, 1)] ['--lr', '1'] True" in again.stdout
    failed = _run(script)
    assert failed.returncode == 1
    assert "rank 1 (local_rank: 1), exitcode: 1" in failed.stderr
    assert "ValueError: the first time" in failed.stderr
