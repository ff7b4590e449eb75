"""Questions put to child processes: a driver that hangs or crashes there ends the child alone.

A child runs a module of this package and answers with a line of JSON. Must not know what is asked.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def ask(arguments: Sequence[str], limit: float) -> tuple[dict[str, Any] | None, str]:
    """Run `python -m` with these arguments; return the object in the last line that it prints, and "".

    If the child fails, or takes more than `limit` seconds: None, and what went wrong.
    """
    environ = dict(os.environ)
    parent = str(Path(__file__).resolve().parents[2])
    environ["PYTHONPATH"] = os.pathsep.join(filter(None, (parent, environ.get("PYTHONPATH"))))
    command = [sys.executable, "-m", *arguments]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=limit, env=environ, check=False
        )
    except subprocess.TimeoutExpired:
        return None, f"took more than {limit:g} seconds"
    answer = done.stdout.strip().splitlines()
    if done.returncode == 0 and answer:
        return json.loads(answer[-1]), ""
    said = done.stderr.strip().splitlines()
    return None, f"{ended(done.returncode)}: {said[-1] if said else 'it said nothing'}"


def ended(code: int) -> str:
    """Return how a process ended, in words, from its exit status (negative: the number of the signal that ended it)."""
    if code >= 0:
        return f"failed with exit code {code}"
    try:
        return f"died of {signal.Signals(-code).name}"
    except ValueError:
        return f"died of signal {-code}"
