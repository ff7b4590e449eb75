"""The team's memory is laid out as runtime/team_layout.py and the structs of team.cl each say."""

from __future__ import annotations

import re

from cltensor.runtime import team_layout
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
        "team.sem_wait": team_layout.TEAM_CALLS,
        "team.patience": team_layout.TEAM_PATIENCE,
        "team.members": team_layout.TEAM_MEMBERS,
        "team.local_memory": team_layout.TEAM_LOCALS,
        "team.local_bytes": team_layout.TEAM_LOCAL_BYTES,
        "team.sched_getcpu": team_layout.TEAM_PLACING,
        "team.here": team_layout.TEAM_HERE,
        "team.spare": team_layout.TEAM_SPARE,
        "team.flush": team_layout.TEAM_FLUSH,
        "team.done": team_layout.TEAM_DONE,
        "team.busy": team_layout.TEAM_BUSY,
        "member.thread": team_layout.MEMBER_THREAD,
        "member.place": team_layout.MEMBER_PLACE,
        "member.semaphore": team_layout.MEMBER_SEMAPHORE,
        "member.next": team_layout.MEMBER_NEXT,
        "job.function": team_layout.JOB_FUNCTION,
        "job.a": team_layout.JOB_A,
        "job.b": team_layout.JOB_B,
        "job.groups": team_layout.JOB_GROUPS,
        "job.locals": team_layout.JOB_LOCALS,
    }
    assert sizes["job"] == team_layout.JOB_WORDS
    assert sizes["member"] == team_layout.MEMBER_WORDS
    assert sizes["team"] <= team_layout.TEAM_WORDS


def test_numbers_are_those_of_the_source() -> None:
    assert NUMBERS["PROCESSORS"] == team_layout.PROCESSORS
    assert NUMBERS["LAUNCH_ARGS"] == team_layout.LAUNCH_ARGS
    assert NUMBERS["ORDERS"] == team_layout.ORDERS
    shift = re.search(r"#define CLOSED \(1L << (\d+)\)", SOURCE)
    assert shift and 1 << int(shift[1]) == team_layout.CLOSED
