"""The memory that a team shares with its kernels: the offsets of fields in the structs of cl_kernels/team.cl.

Owns these offsets, those in PoCL's context, and the alignment; tests/unit/test_team_layout.py compares them with team.cl.
Offsets and sizes count words of 8 bytes. Must not know what is written where, or when.
"""

from __future__ import annotations

import numpy as np

# The kernels of team.cl and their numbers of arguments.
CODE = {"team_run": 4, "team_post": 4, "team_wait": 3, "team_help": 3, "team_probe": 3}
# Constants of team.cl, by the same names.
LAUNCH_ARGS = 96
CLOSED = 1 << 62
PROCESSORS = 1024
ORDERS = 64
NOWHERE = (1 << 64) - 1  # -1, in the place of a processor

# struct team
TEAM_CALLS = 24  # the first of sem_wait, sem_post, sched_yield
TEAM_PATIENCE, TEAM_MEMBERS, TEAM_LOCALS, TEAM_LOCAL_BYTES = 27, 28, 29, 30
TEAM_PLACING = 31  # the first of sched_getcpu, sched_setaffinity
TEAM_HERE, TEAM_SPARE, TEAM_FLUSH, TEAM_DONE, TEAM_BUSY, TEAM_WORDS = 33, 34, 51, 64, 65, 200
# struct member
MEMBER_THREAD, MEMBER_PLACE, MEMBER_SEMAPHORE, MEMBER_NEXT, MEMBER_WORDS = 1, 2, 8, 16, 120
# struct job
JOB_FUNCTION, JOB_A, JOB_B, JOB_GROUPS, JOB_LOCALS, JOB_WORDS = 0, 1, 2, 4, 5, 6
# PoCL's context, by which a kernel learns its launch's number of groups, global offset and local size along each
# dimension; the rest of it is for printf.
CONTEXT_GROUPS, CONTEXT_LOCAL, CONTEXT_WORDS = 0, 6, 16

ALIGN = 128  # bytes; the alignment of all this memory, and of local arrays in it


def aligned_words(count: int) -> np.ndarray:
    """Return `count` zeroed 8-byte words, aligned to `ALIGN` bytes."""
    raw = np.zeros(count + ALIGN // 8, np.uint64)
    start = -(raw.ctypes.data // 8) % (ALIGN // 8)
    return raw[start : start + count]
