"""Where kernel text comes from: the folders `cl_kernels/` and `templates/`.

Mako translates templates to Python modules. Where kernels come from the disk cache, that is most of the time to a first
result; so the modules are kept on disk as well, in a folder for each state of the templates.
Headers are pasted into a kernel's source, so the hash of this text identifies the kernel.
"""

from __future__ import annotations

import functools
import hashlib
import re
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from ..config import CONFIG
from ..errors import debug_line
from ..runtime.folders import cache_dir, shipped, writable

KERNELS = shipped("cl_kernels")
TEMPLATES = shipped("templates")
_INCLUDE = re.compile(r'^#include "([\w/]+)\.cl"\n', re.MULTILINE)
_KEPT = 30 * 86400  # seconds for which translations of another state of the templates are kept


@functools.cache
def _lookup(keep: bool) -> Any:
    from mako.lookup import TemplateLookup  # a seventh of this package's import time

    folder = _modules() if keep else None
    modules = None if folder is None else str(folder)
    return TemplateLookup([str(TEMPLATES)], strict_undefined=True, module_directory=modules)


def _modules() -> Path | None:
    """Return the folder of the translated templates; None if the disk cache is turned off or not writable."""
    if CONFIG.cache_size == 0:
        return None
    import mako

    facts = [mako.__version__, sys.version, str(TEMPLATES)]
    for path in sorted(TEMPLATES.rglob("*.mako")):
        stat = path.stat()
        facts.append(f"{path.relative_to(TEMPLATES)} {stat.st_size} {stat.st_mtime_ns}")
    parent = cache_dir() / "templates"
    folder = parent / hashlib.sha256("\n".join(facts).encode()).hexdigest()[:24]
    if not folder.is_dir():
        if not writable(folder):
            return None
        for old in parent.iterdir():
            if old != folder and old.stat().st_mtime < time.time() - _KEPT:
                shutil.rmtree(old, ignore_errors=True)
    return folder


@functools.cache
def include(*names: str) -> str:
    """Return the texts of `cl_kernels/<name>.cl` ("elementary/exp"), each once and after those that it includes."""
    texts: dict[str, str] = {}

    def add(name: str) -> None:
        if name not in texts:
            text = (KERNELS / f"{name}.cl").read_text()
            for needed in _INCLUDE.findall(text):
                add(needed)
            texts[name] = _INCLUDE.sub("", text)

    for name in names:
        add(name)
    return "".join(texts.values())


def lane_macros(lanes: int, double: bool = False) -> str:
    """Return the macros that must precede included `cl_kernels/`: the width of vectors, whether there are doubles."""
    return "#define CLT_DOUBLE 1\n" * double + f"#define CLT_LANES {lanes}\n"


def render(template: str, /, **variables: Any) -> str:
    """Render `templates/<template>.mako` ("sort/rows"); an undefined variable is an error.

    cl_kernels/truth.cl, which masks need, is put in front of a text that uses its macros.
    """
    file = f"{template}.mako"
    try:
        text = _lookup(True).get_template(file).render(**variables)
    except OSError as error:  # the translation could not be written to disk
        debug_line(1, "templates are translated in memory: %s", error)
        text = _lookup(False).get_template(file).render(**variables)
    return include("truth") + text if "CLT_TRUTH(" in text or "CLT_BYTES(" in text else text
