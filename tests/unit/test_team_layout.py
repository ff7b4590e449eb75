"""The team's memory is laid out as runtime/team.py and the structs of team.cl each say."""

from __future__ import annotations

import re

from cltensor.runtime import team
from cltensor.runtime.folders import shipped

SOURCE = (shipped("cl_kernels") / "team.cl").read_text()
NUMBERS = {name: int(n) for name, n in re.findall(r"#define (\w+) (\d+)", SOURCE)}


def words() -> tuple[dict[str, int], dict[str, int]]:
    """Return the offset of each field, as "struct.field", and the size of each struct, in words of 8 bytes."""
    places: dict[str, int] = {}
    sizes: dict[str, int] = {"long": 1, "ulong": 1}
    for name, body in re.findall(r"^struct (\w+) \{\n(.*?)^\};", SOURCE, re.MULTILINE | re.DOTALL):
        at = 0
        for kind, fields in re.findall(r"^    (?:struct )?(\w+) ([^;]+);", body, re.MULTILINE):
            for field in fields.split(", "):
                label, count = re.fullmatch(r"(\w+)(?:\[([^\]]+)\])?", field).groups()
                places[f"{name}.{label}"] = at
                at += sizes[kind] * (eval(count.replace("/", "//"), {}, NUMBERS) if count else 1)
        sizes[name] = at
    return places, sizes


def test_offsets_are_those_of_the_structs() -> None:
    places, sizes = words()
    assert places == places | {
        "team.sem_wait": team._CALLS,
        "team.patience": team._PATIENCE,
        "team.members": team._MEMBERS,
        "team.local_memory": team._LOCALS,
        "team.local_bytes": team._LOCAL_BYTES,
        "team.sched_getcpu": team._PLACING,
        "team.here": team._HERE,
        "team.spare": team._SPARE,
        "team.flush": team._FLUSH,
        "team.done": team._DONE,
        "team.busy": team._BUSY,
        "member.thread": team._THREAD,
        "member.place": team._PLACE,
        "member.semaphore": team._SEMAPHORE,
        "member.next": team._NEXT,
        "job.function": team._FUNCTION,
        "job.a": team._A,
        "job.b": team._B,
        "job.groups": team._GROUPS,
        "job.locals": team._LOCAL_PLACES,
    }
    assert sizes["job"] == team._JOB_WORDS
    assert sizes["member"] == team._MEMBER_WORDS
    assert sizes["team"] <= team._TEAM_WORDS


def test_numbers_are_those_of_the_source() -> None:
    assert NUMBERS["PROCESSORS"] == team._PROCESSORS
    assert NUMBERS["LAUNCH_ARGS"] == team._MOST_ARGS
    assert NUMBERS["ORDERS"] == team._ORDERS
    shift = re.search(r"#define CLOSED \(1L << (\d+)\)", SOURCE)
    assert shift and 1 << int(shift[1]) == team._CLOSED
