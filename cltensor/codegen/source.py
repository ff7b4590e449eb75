"""Where kernel text comes from: the folders `cl_kernels/` and `templates/`.

Headers are pasted into the source, so the text that is hashed is the whole truth of a kernel.
"""

from __future__ import annotations

import functools
from typing import Any

from ..runtime.folders import shipped

KERNELS = shipped("cl_kernels")
TEMPLATES = shipped("templates")


@functools.cache
def _lookup() -> Any:
    from mako.lookup import TemplateLookup  # a seventh of this package's import time

    return TemplateLookup(directories=[str(TEMPLATES)], strict_undefined=True)


@functools.cache
def include(name: str) -> str:
    """Return the text of `cl_kernels/<name>.cl`."""
    return (KERNELS / f"{name}.cl").read_text()


def render(template: str, /, **variables: Any) -> str:
    """Render `templates/<template>.mako`; an undefined variable is an error."""
    return _lookup().get_template(f"{template}.mako").render(**variables)
