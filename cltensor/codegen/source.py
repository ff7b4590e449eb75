"""Where kernel text comes from: the only module that knows the folders `cl_kernels/` and `templates/`.

In a checkout both lie beside the package; in an installed wheel they are mapped into it (see pyproject.toml).
Headers are pasted into the source, so the text that is hashed is the whole truth of a kernel.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).resolve().parent.parent


def _folder(name: str) -> Path:
    inside = _PACKAGE / name
    return inside if inside.is_dir() else _PACKAGE.parent / name


KERNELS = _folder("cl_kernels")
TEMPLATES = _folder("templates")


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
