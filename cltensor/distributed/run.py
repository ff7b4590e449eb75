"""`python -m cltensor.distributed.run`: start a script in several processes that find each other, as torchrun does.

    python -m cltensor.distributed.run --nproc-per-node 2 SCRIPT --lr 0.1
    python -m cltensor.distributed.run --nnodes 2 --node-rank 0 --master-addr 10.0.0.1 --nproc-per-node 4 SCRIPT

This launcher (on the first machine) keeps the store and watches the processes of its machine: when one fails, it ends
the others and starts all of them again, at most `--max-restarts` times. Owns processes and their environment. Must not
know tensors.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from .elastic.multiprocessing.errors import ChildFailedError, ProcessFailure, record
from .tcp_store import TCPStore

__all__ = ["main", "run"]

_PORT = 29500
_LOOK = 0.05  # seconds between two looks at the processes
_GRACE = 30.0  # seconds that a process has to end after SIGTERM


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line: torchrun's options, with dashes or underscores."""
    made = argparse.ArgumentParser(
        "cltensor.distributed.run", description=__doc__.partition("\n")[0]
    )

    def option(name: str, **how: Any) -> None:
        names = {f"--{name}", f"--{name.replace('-', '_')}"}
        made.add_argument(*sorted(names), **how)

    option("nnodes", default="1", help="machines, or MIN:MAX of which the latter counts")
    option("nproc-per-node", default="1", help='processes on this machine, or "auto", "cpu", "gpu"')
    option("standalone", action="store_true", help="one machine, any port")
    option(
        "node-rank",
        type=int,
        default=None,
        help="this machine's number; machines count themselves without it",
    )
    option("master-addr", default=None, help="the first machine")
    option("master-port", type=int, default=None, help=f"its port ({_PORT})")
    option(
        "rdzv-backend",
        default="static",
        help='"static" or "c10d": both are the store at the endpoint',
    )
    option("rdzv-endpoint", default="", help="host:port of the first machine")
    option("rdzv-id", default="none", help="name of the run")
    option("rdzv-conf", default="", help="accepted")
    option("max-restarts", type=int, default=0)
    option(
        "monitor-interval",
        type=float,
        default=_LOOK,
        help="seconds between two looks at the processes",
    )
    option("role", default="default")
    option("local-addr", default=None, help="accepted")
    option("start-method", default="spawn", help="accepted")
    option("log-dir", default=None, help="where output goes with --redirects or --tee")
    made.add_argument(
        "-r",
        "--redirects",
        default="0",
        help="3: output goes to files in --log-dir; 1 or 2: stdout or stderr alone",
    )
    made.add_argument("-t", "--tee", default="0", help="accepted: output goes to the terminal")
    made.add_argument("-m", "--module", action="store_true", help="run a module, as python -m")
    option("no-python", action="store_true", help="run a program")
    made.add_argument("training_script")
    made.add_argument("training_script_args", nargs=argparse.REMAINDER)
    for action in made._actions:  # as in torchrun, the variable PET_<OPTION> gives a default
        if action.option_strings and action.dest != "help":
            given = os.environ.get(f"PET_{action.dest.upper()}")
            if given is not None:
                action.default = bool(int(given)) if action.nargs == 0 else given
    return made


def _processes(text: str) -> int:
    """Return the number of processes that --nproc-per-node asks for."""
    if text.isdigit():
        return int(text)
    if text in ("cpu", "auto"):
        return (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        )
    if text == "gpu":
        from ..runtime import device_list

        count = sum(1 for place in device_list() if place.type == "opencl")
        if not count:
            raise ValueError("No OpenCL device is available.")
        return count
    raise ValueError(f"Unsupported nproc_per_node value: {text}")


def _is_here(host: str) -> bool:
    """Tell whether a host is this machine: whether a socket can be bound to its address."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.bind((socket.gethostbyname(host), 0))
        return True
    except OSError:
        return False


class _Machine:
    """This machine's part of a run: its number, the ranks of its processes, and the store."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.local = _processes(args.nproc_per_node)
        self.count = int(str(args.nnodes).rpartition(":")[2])
        host, _, port = args.rdzv_endpoint.rpartition(":")
        host = host or args.rdzv_endpoint or args.master_addr or "127.0.0.1"
        self.port = int(port) if port.isdigit() else args.master_port
        self.name = args.rdzv_id
        if args.standalone or (self.count == 1 and self.port is None):
            host, self.port, self.name = "localhost", 0, str(uuid.uuid4())
        self.port = _PORT if self.port is None else self.port
        self.host = host
        rank = 0 if self.count == 1 else args.node_rank
        timeout = timedelta(minutes=15)
        self.store = self._store(rank, timeout)
        self.port = self.store.port
        self.rank = self.store.add(f"{self.name}/machines", 1) - 1 if rank is None else int(rank)
        self.store.set(f"{self.name}/processes/{self.rank}", str(self.local))
        counts = [int(self.store.get(f"{self.name}/processes/{i}")) for i in range(self.count)]
        self.first, self.world = sum(counts[: self.rank]), sum(counts)

    def _store(self, rank: int | None, timeout: timedelta) -> TCPStore:
        if rank == 0 or (rank is None and _is_here(self.host)):
            try:
                return TCPStore(self.host, self.port, None, True, timeout)
            except RuntimeError:
                if rank == 0:
                    raise  # else another launcher on this machine has the port
        return TCPStore(self.host, self.port, None, False, timeout)

    def environment(
        self, local: int, args: argparse.Namespace, attempt: int, errors: str
    ) -> dict[str, str]:
        """Return the environment of a process."""
        rank, world = str(self.first + local), str(self.world)
        own = {
            "LOCAL_RANK": str(local), "RANK": rank, "GROUP_RANK": str(self.rank), "ROLE_RANK": rank, "ROLE_NAME": args.role,
            "LOCAL_WORLD_SIZE": str(self.local), "WORLD_SIZE": world, "GROUP_WORLD_SIZE": str(self.count), "ROLE_WORLD_SIZE": world,
            "MASTER_ADDR": self.host, "MASTER_PORT": str(self.port), "TORCHELASTIC_RESTART_COUNT": str(attempt),
            "TORCHELASTIC_MAX_RESTARTS": str(args.max_restarts), "TORCHELASTIC_RUN_ID": self.name,
            "TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_ERROR_FILE": os.path.join(errors, f"{attempt}-{local}.json"),
        }  # fmt: skip
        if self.local > 1:  # by default each process would use all processors
            own["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS", "1")
        return {**os.environ, **own}


def _command(args: argparse.Namespace) -> list[str]:
    if args.no_python:
        if args.module:
            raise ValueError(
                "Don't use both the '--no-python' flag and the '--module' flag at the same time."
            )
        return [args.training_script, *args.training_script_args]
    python = [os.environ.get("PYTHON_EXEC", sys.executable), "-u"]
    return [
        *python,
        *(["-m"] if args.module else []),
        args.training_script,
        *args.training_script_args,
    ]


def _outputs(args: argparse.Namespace, local: int) -> dict[str, Any]:
    """Return the files for a process's output, as keyword arguments of Popen."""
    if args.redirects == "0" or not args.log_dir:
        return {}
    folder = os.path.join(args.log_dir, str(local))
    os.makedirs(folder, exist_ok=True)
    found = {}
    for flag, name in ((1, "stdout"), (2, "stderr")):
        if int(args.redirects) & flag:
            found[name] = open(os.path.join(folder, f"{name}.log"), "ab")  # noqa: SIM115 - the process keeps it
    return found


def _end(processes: Sequence[subprocess.Popen]) -> None:
    """Terminate processes, and kill those that have not ended after the grace period."""
    for process in processes:
        if process.poll() is None:
            process.terminate()
    end = time.monotonic() + _GRACE
    for process in processes:
        try:
            process.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _attempt(
    machine: _Machine, args: argparse.Namespace, attempt: int, errors: str
) -> dict[int, ProcessFailure]:
    """Run all processes of this machine once, ending the others when one fails; return those that failed, by rank."""
    processes: list[subprocess.Popen] = []
    told = []
    try:
        for local in range(machine.local):
            told.append(machine.environment(local, args, attempt, errors))
            processes.append(
                subprocess.Popen(_command(args), env=told[-1], **_outputs(args, local))
            )
        while True:
            codes = [process.poll() for process in processes]
            if any(codes) or None not in codes:
                break
            time.sleep(args.monitor_interval)
    finally:
        _end(processes)
    return {
        machine.first + i: ProcessFailure(i, processes[i].pid, code, told[i]["TORCHELASTIC_ERROR_FILE"])
        for i, code in enumerate(codes)
        if code
    }  # fmt: skip


def _stop(number: int, frame: Any) -> None:
    raise SystemExit(128 + number)


def run(args: argparse.Namespace) -> None:
    """Start the processes that a command line asks for, and wait for them.

    ChildFailedError after the last permitted restart.
    """
    machine = _Machine(args)
    if machine.local > 1 and "OMP_NUM_THREADS" not in os.environ:
        sys.stderr.write(
            f"{machine.local} processes: each has OMP_NUM_THREADS=1, set it to choose another number of threads\n"
        )
    signal.signal(signal.SIGTERM, _stop)
    with tempfile.TemporaryDirectory(prefix="cltensor-run-") as errors:
        for attempt in range(int(args.max_restarts) + 1):
            failed = _attempt(machine, args, attempt, errors)
            if not failed:
                break
            if machine.count > 1 or attempt == int(args.max_restarts):
                raise ChildFailedError(args.training_script, failed)
    if machine.count > 1:  # the store stays until all machines are done
        done = machine.store.add(f"{machine.name}/done", 1)
        while machine.rank == 0 and done < machine.count:
            time.sleep(_LOOK)
            done = machine.store.add(f"{machine.name}/done", 0)


@record
def main(args: Sequence[str] | None = None) -> None:
    """Run what a command line (by default this process's) asks for; exit with 1 if it fails."""
    try:
        run(parser().parse_args(args))
    except ChildFailedError as error:
        sys.stderr.write(f"{error}\n")
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
