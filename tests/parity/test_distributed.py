"""Collectives between two processes give the same values, dtypes and errors in both libraries.

The calls are in tests/collective_calls.py.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import collective_calls
import pytest
from support import ct

pytest.importorskip("torch", minversion="2.13", reason="torch 2.13 is the oracle")
pytestmark = pytest.mark.ours


def _outcomes(library: str, folder: Path) -> list[list[Any]]:
    """Run all calls in two processes of a library; return each process's list of (call, outcome)."""
    program = collective_calls.__file__
    started = [
        subprocess.Popen(
            [sys.executable, program, library, str(rank), str(folder / library), str(folder / f"{library}{rank}")],
            stderr=subprocess.PIPE, text=True,
        )
        for rank in range(2)
    ]  # fmt: skip
    for process in started:
        _, said = process.communicate(timeout=300)
        assert process.returncode == 0, said
    return [json.loads((folder / f"{library}{rank}").read_text()) for rank in range(2)]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("distributed")
    if not torch_has_gloo():
        pytest.skip("torch has no gloo here")
    return {name: _outcomes(name, folder) for name in ("torch", ct.__name__)}


def torch_has_gloo() -> bool:
    import torch.distributed

    return torch.distributed.is_available() and torch.distributed.is_gloo_available()


def _rounded(outcome: Any) -> Any:
    """Return an outcome with its numbers rounded, because their sums may be added in another order."""
    if isinstance(outcome, list):
        return [_rounded(o) for o in outcome]
    try:
        return round(float(outcome), 4) + 0.0 if isinstance(outcome, str) else outcome
    except ValueError:
        return outcome


def _comparable(outcome: Any) -> Any:
    """Return an error without the parts of its text in which the libraries differ; any other outcome as it is."""
    if not isinstance(outcome, str) or not re.match(r"\w+(Error|Exception): ", outcome):
        return outcome
    outcome = outcome.replace("cltensor.", "torch.")
    if "invalid tensor type" in outcome or "incompatible function arguments" in outcome:
        return outcome.partition(" (expected")[0].partition("(): ")[2]
    return re.sub(r"0x[0-9a-f]+|distributed\.(distributed_c10d|process_group)\.", "", outcome)


@pytest.mark.parametrize("number", range(len(collective_calls.CALLS)))
def test_processes_get_what_torchs_get(outcomes: dict[str, Any], number: int) -> None:
    for rank in range(2):
        call, expected = outcomes["torch"][rank][number]
        assert outcomes[ct.__name__][rank][number][0] == call
        found = outcomes[ct.__name__][rank][number][1]
        if call.startswith("replicas."):
            found, expected = _rounded(found), _rounded(expected)
        assert _comparable(found) == _comparable(expected), (rank, call)
