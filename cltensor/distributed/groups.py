"""The groups this process is in: making and ending them, and translating their ranks.

Owns the world: the default group and those made of its ranks. What a group does is in process_group.py.
"""

from __future__ import annotations

import hashlib
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, ClassVar, NoReturn

from ..errors import caller_level
from ..runtime import device
from .process_group import ProcessGroup
from .rendezvous import default_pg_timeout, rendezvous
from .store import PrefixStore, Store

__all__ = [
    "Backend", "GroupMember", "destroy_process_group", "get_backend", "get_backend_config", "get_default_backend_for_device",
    "get_global_rank", "get_group_rank", "get_node_local_rank", "get_pg_count", "get_process_group_ranks", "get_rank", "get_world_size",
    "group", "init_process_group", "is_backend_available", "is_gloo_available", "is_initialized", "is_mpi_available", "is_nccl_available",
    "is_torchelastic_launched", "is_ucc_available", "is_xccl_available", "new_group", "new_subgroups", "new_subgroups_by_enumeration",
]  # fmt: skip

_UNINITIALISED = (
    "Default process group has not been initialized, please make sure to call init_process_group."
)


class Backend(str):
    """The name of a backend, which carries a group's messages. Only "gloo" is available."""

    __slots__ = ()

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"
    XCCL = "xccl"
    FAKE = "fake"
    backend_list: ClassVar[list[str]] = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE]
    default_device_backend_map: ClassVar[dict[str, str]] = {"cpu": GLOO, "opencl": GLOO}
    backend_capability: ClassVar[dict[str, list[str]]] = {GLOO: ["cpu", "opencl"]}

    def __new__(cls, name: str) -> Any:
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return getattr(cls, name.upper(), name.lower())

    @classmethod
    def register_backend(cls, name: str, func: Callable, *args: Any, **kwargs: Any) -> NoReturn:
        """RuntimeError: groups are cltensor's own."""
        raise RuntimeError(f"register_backend: {name} cannot carry cltensor's tensors")


class _Group:
    """The data of a group that its ProcessGroup does not have: backend name, parent store, and the world's ranks in it."""

    def __init__(self, backend: str, store: Store, ranks: Sequence[int]) -> None:
        self.backend, self.store = backend, store
        self.ranks = {r: i for i, r in enumerate(ranks)}  # of the world -> of the group


class _World:
    default: ProcessGroup | None = None
    default_hook: Any = None
    groups: ClassVar[dict[ProcessGroup, _Group]] = {}
    count = 0  # groups made since the default one
    ever = 0  # groups ever made: a name in a store that outlives its group must not be used twice


class _WorldMeta(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The default group."""
        return _World.default

    @WORLD.setter
    def WORLD(cls, pg: ProcessGroup | None) -> None:
        _World.default = pg


class group(metaclass=_WorldMeta):
    """`group.WORLD`: the default group."""


class GroupMember(metaclass=_WorldMeta):
    """`GroupMember.WORLD`: the default group; NON_GROUP_MEMBER: what `new_group` returns to those who are not in it."""

    NON_GROUP_MEMBER = -100


def is_initialized() -> bool:
    """Tell whether there is a default group."""
    return _World.default is not None


def is_gloo_available() -> bool:
    """Return True: "gloo" names cltensor's own groups over TCP."""
    return True


def is_nccl_available() -> bool:
    """Return False."""
    return False


is_mpi_available = is_ucc_available = is_xccl_available = is_nccl_available


def is_backend_available(backend: str) -> bool:
    """Tell whether every backend in a name, such as "gloo" or "cpu:gloo", is available."""
    return all(part.rpartition(":")[2] == "gloo" for part in backend.lower().split(","))


def is_torchelastic_launched() -> bool:
    """Tell whether `cltensor.distributed.run` started this process."""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def rank_not_in_group(pg: Any) -> bool:
    """Tell whether a group is NON_GROUP_MEMBER, which `new_group` returns to processes that are not in the group."""
    return pg is not None and pg == GroupMember.NON_GROUP_MEMBER


def outside(group: Any, call: str) -> bool:
    """Tell, with a warning, whether this process is not in a group, so that a call does nothing in it."""
    if not rank_not_in_group(group):
        return False
    rank = -1 if _World.default is None else _World.default.rank()
    warnings.warn(
        f"Running {call} on global rank {rank} which does not belong to the given group.",
        stacklevel=caller_level(),
    )
    return True


def default_group() -> ProcessGroup:
    """Return the default group; ValueError before `init_process_group`."""
    if _World.default is None:
        raise ValueError(_UNINITIALISED)
    return _World.default


def group_or_default(pg: Any) -> Any:
    """Return a group, the default one for None."""
    return default_group() if pg is None else pg


def _known(pg: Any) -> _Group:
    found = _World.groups.get(pg)
    if found is None:
        raise ValueError(
            f"Group {pg} is not registered, please create group with torch.distributed.new_group API"
        )
    return found


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """Return the rank in a group of a rank of the world. ValueError if that is not a member."""
    if group is _World.default:
        return global_rank
    ranks = _known(group).ranks
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return ranks[global_rank]


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """Return the rank in the world of a group's rank. ValueError if the group has no such rank."""
    if group is _World.default:
        return group_rank
    for rank, inside in _known(group).ranks.items():
        if inside == group_rank:
            return rank
    raise ValueError(f"Group rank {group_rank} is not part of group {group}")


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """Return the world's ranks of a group's members."""
    return list(_known(group or default_group()).ranks)


def rank_in_group(
    pg: ProcessGroup, global_rank: int | None, group_rank: int | None, in_world: bool = False
) -> int:
    """Return a rank in a group (in the world if `in_world`), given as one of the two. ValueError for both or none."""
    if group_rank is not None:
        if global_rank is not None:
            raise ValueError("Can't specify both group_rank and global_rank")
        return get_global_rank(pg, group_rank) if in_world else group_rank
    if global_rank is None:
        raise ValueError("Must specify global_rank or group_rank")
    return global_rank if in_world else get_group_rank(pg, global_rank)


def get_rank(group: Any = None) -> int:
    """Return this process's rank in a group, -1 if it is not a member."""
    if rank_not_in_group(group):
        return -1
    world = default_group()
    return world.rank() if group is None or group is world else get_group_rank(group, world.rank())


def get_world_size(group: Any = None) -> int:
    """Return the number of a group's members, -1 if this process is none of them."""
    if rank_not_in_group(group):
        return -1
    world = default_group()
    return world.size() if group is None or group is world else len(_known(group).ranks)


def get_backend(group: Any = None) -> str:
    """Return the name of a group's backend."""
    pg = group or default_group()
    if rank_not_in_group(pg):
        raise ValueError("Invalid process group specified")
    return Backend(_known(pg).backend)


def get_backend_config(group: Any = None) -> str:
    """Return which backend carries which device's tensors."""
    if rank_not_in_group(group or default_group()):
        raise ValueError("Invalid process group specified")
    return "cpu:gloo,opencl:gloo"


def get_default_backend_for_device(device: Any) -> str:
    """Return the backend that carries a device's tensors."""
    kind = _device_type(device)
    if kind not in Backend.default_device_backend_map:
        raise ValueError(f"Default backend not registered for device : {device}")
    return Backend.default_device_backend_map[kind]


def _device_type(place: Any) -> str:
    return device(place).type


def get_pg_count() -> int:
    """Return how many groups have been made."""
    return _World.count


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """Return this process's number on its machine, by the environment variable LOCAL_RANK, else `fallback_rank`."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to work, assuming you are not "
        "running in a multi-device context and want the code to run locally instead."
    )


def check_timeout(timeout: Any) -> None:
    """Raise TypeError unless given a timedelta."""
    if not isinstance(timeout, timedelta):
        raise TypeError(
            f"Expected timeout argument to be of type datetime.timedelta, got {timeout}"
        )


def _check_backend(name: str) -> None:
    """Raise, in torch's words, for a backend that is not available."""
    for part in name.lower().split(","):
        kind = part.rpartition(":")[2]
        if kind in (Backend.GLOO, Backend.UNDEFINED):
            continue
        if kind == Backend.MPI:
            raise RuntimeError(
                "Distributed package doesn't have MPI built in. MPI is only included if you build PyTorch from source on a host that has MPI installed."
            )
        if kind in (Backend.NCCL, Backend.UCC, Backend.XCCL):
            raise RuntimeError(f"Distributed package doesn't have {kind.upper()} built in")
        raise AssertionError(f"Unknown backend type {kind}")


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
    _ranks: list[int] | None = None,
) -> None:
    """Make the default group of all processes, which call this with the same `init_method` or with a `store` each.

    backend: "gloo" or None, which is the same: it carries tensors of all devices. init_method: "env://" (the default,
    by the variables RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT), "tcp://host:port", "file:///path". timeout: the time
    without progress after which a collective fails; by default half an hour.
    """
    if _World.default is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if not (store is None or init_method is None):
        raise AssertionError("Cannot specify both init_method and store.")
    if store is not None:
        if not world_size > 0:
            raise AssertionError("world_size must be positive if using store")
        if not rank >= 0:
            raise AssertionError("rank must be non-negative if using store")
    backend = Backend("undefined" if backend is None else backend)
    timeout = default_pg_timeout if timeout is None else timeout
    check_timeout(timeout)
    if backend in (Backend.NCCL, Backend.MPI, Backend.UCC, Backend.XCCL):
        _check_backend(backend)
    if store is None:
        store, rank, world_size = next(
            rendezvous(init_method or "env://", rank, world_size, timeout=timeout)
        )
        store.set_timeout(timeout)
    _check_backend(backend)
    _World.default = _make(
        PrefixStore("default_pg", store),
        list(range(world_size)),
        rank,
        backend,
        timeout,
        "default_pg",
    )
    _name_errors(rank)


def _make(
    store: Store,
    ranks: list[int],
    rank: int,
    backend: str,
    timeout: timedelta,
    desc: str,
    name: str = "",
) -> ProcessGroup:
    """Make a group of some of the world's ranks, of which this process is `rank`."""
    name = name or str(_World.ever)
    _count_one()
    inside = PrefixStore(name, store)
    pg = ProcessGroup(inside, ranks.index(rank), len(ranks), timeout, name, desc)
    _World.groups[pg] = _Group(backend, store, ranks)
    return pg


def _count_one() -> None:
    _World.count += 1
    _World.ever += 1


def _name_errors(rank: int) -> None:
    """Have the traceback of an exception that ends this process name its rank."""
    before = _World.default_hook = sys.excepthook

    def named(kind: Any, error: Any, trace: Any) -> None:
        if before is not sys.__excepthook__:
            before(kind, error, trace)
            return
        lines = "".join(traceback.format_exception(kind, error, trace)).split("\n")
        sys.stderr.write("\n".join(f"[rank{rank}]: {line}" if line else "" for line in lines))

    sys.excepthook = named


def destroy_process_group(group: Any = None) -> None:
    """End a group, or, for the default one, all groups: finish what was begun, and close the connections."""
    if rank_not_in_group(group):
        return
    pg = _World.default if group is None else group
    if pg is None:
        raise AssertionError("Process group cannot be None")
    if pg not in _World.groups:
        raise ValueError("Invalid process group specified")
    if pg is not _World.default:
        pg.shutdown()
        del _World.groups[pg]
        return
    for each in reversed(list(_World.groups)):
        each.shutdown()
    _World.groups.clear()
    _World.default, _World.count = None, 0
    if _World.default_hook is not None:
        sys.excepthook, _World.default_hook = _World.default_hook, None


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> Any:
    """Make a group of some ranks of the world. All processes must call this, in the same order, also those not in the
    group.

    With `use_local_synchronization` only its members must.
    """
    world = default_group()
    known = _World.groups[world]
    backend = Backend(backend or known.backend)
    timeout = default_pg_timeout if timeout is None else timeout
    check_timeout(timeout)
    if use_local_synchronization and ranks is not None and world.rank() not in ranks:
        return None
    members = list(range(world.size())) if ranks is None else list(ranks)
    if sort_ranks:
        members.sort()
    if len(set(members)) != len(members):
        raise ValueError(f"ranks list must not contain duplicate entries, got {members}")
    if len(members) > world.size():
        raise ValueError(
            "the new group's world size should be less or equal to the world size set by init_process_group"
        )
    for rank in members:
        if not 0 <= rank < world.size():
            raise ValueError(
                f"Rank {rank} is out of range. Valid ranks are 0 to {world.size() - 1} (world_size={world.size()})"
            )
    _check_backend(backend)
    name = ""
    # Members may have made different numbers of groups, so the name cannot come from a counter.
    if use_local_synchronization:
        text = "_".join(map(str, members))
        key = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
        again = sum(g.group_name.startswith(key) for g in _World.groups)
        name = f"{key}_{again}"
    if world.rank() not in members:
        _count_one()
        return GroupMember.NON_GROUP_MEMBER
    return _make(
        known.store, members, world.rank(), backend, timeout, group_desc or "undefined", name
    )


def new_subgroups(
    group_size: int | None = None,
    group: Any = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Divide a group into groups of `group_size` consecutive ranks; return this process's group and a list of all."""
    if group_size is None:
        raise ValueError(
            "Default group size only takes effect when CUDA is available.If your subgroup using a backend that does not depend on CUDA,"
            "please pass in 'group_size' correctly."
        )
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    size = get_world_size(group)
    if size < group_size:
        raise ValueError(
            f"The arg 'group_size' ({group_size}) must not exceed the world size ({size})"
        )
    if size % group_size:
        raise ValueError(f"The world size ({size}) must be divisible by '{group_size=}'")
    ranks = get_process_group_ranks(group)
    divided = [ranks[i : i + group_size] for i in range(0, len(ranks), group_size)]
    return new_subgroups_by_enumeration(divided, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: list[list[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Make a group of each list of ranks, no rank in two of them; return this process's group and a list of all."""
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    made: list[Any] = []
    mine: Any = None
    seen: dict[int, list[int]] = {}
    for ranks in ranks_per_subgroup_list:
        made.append(new_group(ranks, timeout, backend, pg_options, group_desc=group_desc))
        for rank in ranks:
            if rank in seen:
                raise ValueError(
                    f"Rank {rank} has appeared in both subgroup {seen[rank]} and {ranks}"
                )
            seen[rank] = ranks
            if rank == get_rank():
                mine = made[-1]
    return mine, made
