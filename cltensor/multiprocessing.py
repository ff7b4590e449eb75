"""`cltensor.multiprocessing`: Python's, forking only where the cpu device survives that (Note [Forks] in
runtime/forks.py).

Tensors are sent by value: the receiving process gets a copy, unless `share_memory_` was called on the tensor. Shared
memory is a file that each process maps, and the file's name is sent. Only host-shared memory can be shared.
"""

from __future__ import annotations

import multiprocessing as _python
import os
import pickle
import signal
import sys
import tempfile
import traceback
import weakref
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np

from .attributes import of_class
from .nn.parameter import Parameter
from .reexport import lend
from .runtime import device, get_backend, start_method
from .storage import Storage
from .tensor import Tensor


def __getattr__(name: str) -> Any:
    if name.startswith("__") or name not in dir(_python):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name != "set_start_method" and _python.get_start_method(allow_none=True) is None:
        found = getattr(_python.get_context(start_method()), name, None)
        if found is not None:  # Process, Queue, Pool, Lock, ...
            return found
    return getattr(_python, name)


class ProcessException(Exception):
    """A process started by `spawn` failed."""

    def __init__(self, msg: str, error_index: int, pid: int | None) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid


class ProcessRaisedException(ProcessException):
    """A process started by `spawn` raised an exception."""


class ProcessExitedException(ProcessException):
    """A process started by `spawn` ended with an exit code other than 0."""

    def __init__(
        self, msg: str, error_index: int, error_pid: int | None, exit_code: int | None
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code


def _run(fn: Callable, index: int, args: tuple, errors: Any) -> None:
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass
    except Exception:
        errors.put(traceback.format_exc())
        sys.exit(1)


class ProcessContext:
    """The processes of a `spawn`."""

    def __init__(self, processes: list[Any], errors: list[Any]) -> None:
        self.processes, self._errors = processes, errors

    def pids(self) -> list[int]:
        """Return the ids of the processes."""
        return [int(p.pid) for p in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until one process ends; return whether all have. If one failed, stop the others and raise its error."""
        from multiprocessing.connection import wait

        alive = {p.sentinel: i for i, p in enumerate(self.processes) if p.exitcode is None}
        ended = [alive[s] for s in wait(list(alive), timeout)] if alive else []
        codes = [p.exitcode for p in self.processes]  # read once: a process may end at any time
        for i in (*ended, *range(len(codes))):
            if codes[i]:
                self._fail(i, self.processes[i])
        return None not in codes

    def _fail(self, index: int, failed: Any) -> None:
        for process in self.processes:
            if process.is_alive():
                process.terminate()
            process.join()
        if not self._errors[index].empty():
            text = self._errors[index].get()
            raise ProcessRaisedException(
                f"\n\n-- Process {index} terminated with the following error:\n{text}",
                index,
                failed.pid,
            )
        code = failed.exitcode
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        raise ProcessExitedException(
            f"process {index} terminated with {how}", index, failed.pid, code
        )


def spawn(
    fn: Callable,
    args: tuple = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run `fn(i, *args)` in `nprocs` processes; waits for them unless `join` is False.

    ProcessRaisedException or ProcessExitedException when one of them fails.
    """
    started, errors = [], []
    context = _python.get_context(start_method)
    for i in range(nprocs):
        queue = context.SimpleQueue()
        process: Any = context.Process(target=_run, args=(fn, i, args, queue), daemon=daemon)  # type: ignore[attr-defined]
        process.start()
        started.append(process)
        errors.append(queue)
    running = ProcessContext(started, errors)
    if not join:
        return running
    while not running.join():
        pass
    return None


start_processes = spawn
SpawnContext = ProcessContext

# ------------------------------------------------------------------------------------- shared memory

_shared: weakref.WeakKeyDictionary[Storage, tuple[str, Any]] = weakref.WeakKeyDictionary()
_mapped: weakref.WeakValueDictionary[str, Storage] = weakref.WeakValueDictionary()


def share(t: Tensor) -> None:
    """Move a tensor's memory to a file that other processes can map; nothing if it is shared or not host memory."""
    storage = t._storage
    if storage in _shared or not storage.nbytes or not storage.backend.info.host_shared:
        return
    folder = "/dev/shm" if os.path.isdir("/dev/shm") else None
    handle, path = tempfile.mkstemp(prefix="cltensor-", dir=folder)
    os.close(handle)
    storage.host().tofile(path)
    weakref.finalize(storage, _remove, path, os.getpid())
    _map(storage, path)


def _remove(path: str, owner: int) -> None:
    if os.getpid() == owner:  # not a forked child's copy of the storage
        os.unlink(path)


def shares(t: Tensor) -> bool:
    """Tell whether other processes can see a tensor's memory."""
    return t._storage in _shared


def _map(storage: Storage, path: str) -> None:
    """Back a storage by a file. A numpy view of it is kept, so that all writes happen in place and at once."""
    storage.value, storage.home = storage.backend.wrap(np.memmap(path, np.uint8, "r+")), None
    storage.pinned = True
    _shared[storage] = path, storage.host()
    _mapped[path] = storage


def _send(t: Tensor) -> tuple:
    """Reduce a tensor for another process: to the file's name if its memory is shared, else to its content."""
    if t.requires_grad and not t.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support crossing process boundaries.  If you just want to transfer the data, call detach() on the tensor before serializing (e.g., putting it on the queue)."
        )
    if t._storage not in _shared:
        return t.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
    layout = t.dtype, tuple(t.shape), t._strides, t._offset
    return _receive, (type(t), _shared[t._storage][0], t._storage.nbytes, layout, t.requires_grad)


def _receive(kind: type, path: str, nbytes: int, layout: tuple, requires_grad: bool) -> Tensor:
    dev = device("cpu")
    storage = _mapped.get(path)
    if storage is None:
        storage = Storage.empty(get_backend(dev), nbytes)
        _map(storage, path)
    dt, shape, strides, offset = layout
    made = Tensor._make(storage, shape, dt, get_backend(dev).device, strides, offset)
    return of_class(made, kind).requires_grad_(requires_grad)


for _kind in (Tensor, Parameter):
    ForkingPickler.register(_kind, _send)


def get_sharing_strategy() -> str:
    """Return "file_system": shared memory is a file, in /dev/shm if that exists."""
    return "file_system"


def set_sharing_strategy(new_strategy: str) -> None:
    """Do nothing: there is only one strategy."""


def get_all_sharing_strategies() -> set[str]:
    """Return the only strategy there is."""
    return {"file_system"}


# ------------------------------------------------------------------------------------- torch's modules


class StorageWeakRef:
    """A reference to a storage that does not keep it alive; equal to another one of the same memory."""

    def __init__(self, storage: Any) -> None:
        self._cell = weakref.ref(storage._storage)
        self._id = id(storage._storage)

    def expired(self) -> bool:
        """Tell whether the storage is gone."""
        return self._cell() is None

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StorageWeakRef) and other._cell() is self._cell() and other._id == self._id  # fmt: skip


def reduce_tensor(tensor: Tensor) -> tuple:
    """Return the function and the arguments with which another process rebuilds a tensor."""
    return _send(tensor)


def init_reductions() -> None:
    """Have tensors sent between processes as `reduce_tensor` says, which importing this module has done."""
    for kind in (Tensor, Parameter):
        ForkingPickler.register(kind, _send)


lend(
    globals(),
    {
        "pool": ("multiprocessing", "Pool"),
        "queue": ("multiprocessing", "Queue SimpleQueue"),
        "reductions": (
            "multiprocessing",
            "ForkingPickler StorageWeakRef init_reductions reduce_tensor",
        ),
        "spawn": (
            "multiprocessing",
            "ProcessContext ProcessException ProcessExitedException ProcessRaisedException SpawnContext spawn start_processes",
        ),
    },
)
