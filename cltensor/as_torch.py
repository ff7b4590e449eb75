"""Run programs and libraries that import torch on cltensor, as they are: `python -m cltensor.as_torch SCRIPT ARGUMENTS`.

In a program, or a notebook's first cell, `cltensor.as_torch.install()` does the same for all that is imported after it.

`torch` and its modules are then this package's, the same objects under a second name, whether torch is installed or
not; `importlib.metadata` knows "torch" by the version whose interface this is, because libraries ask whether it is
there. Compiled extensions of torch (torchvision's operators, for example) cannot be loaded. Python processes that the
program starts have cltensor in the place of torch, too: forked ones inherit it, spawned ones find
_children/sitecustomize.py by PYTHONPATH.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import runpy
import sys
from collections.abc import Iterable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from .version import __version__

__all__ = ["install"]

_PACKAGE = __name__.partition(".")[0]
_HOMES = {"torch": _PACKAGE, "functorch": f"{_PACKAGE}._functorch.deprecated"}
_USAGE = "usage: python -m cltensor.as_torch (SCRIPT | -m MODULE) [ARGUMENT ...]"


class _Release(Distribution):
    """What `importlib.metadata` knows of torch."""

    def read_text(self, filename: str) -> str | None:
        if filename != "METADATA":
            return None
        return f"Metadata-Version: 2.1\nName: torch\nVersion: {__version__}\n"

    def locate_file(self, path: Any) -> Any:
        return Path(__file__).parent.parent / path


class _Finder(MetaPathFinder, Loader):
    """Finds `torch.<name>` as the module `cltensor.<name>`, and functorch."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        root, dot, rest = fullname.partition(".")
        if root not in _HOMES:
            return None
        known = fullname in sys.modules
        try:
            module = importlib.import_module(_HOMES[root] + dot + rest)
        except ModuleNotFoundError as error:
            if error.name is not None and error.name.partition(".")[0] == _PACKAGE:
                return None
            raise
        if not known:
            # It has been named half loaded, by a module that it imports as torch's: it would be loaded anew.
            sys.modules.pop(fullname, None)
        spec = ModuleSpec(fullname, self, is_package=hasattr(module, "__path__"))
        spec.loader_state = module, module.__spec__
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return spec.loader_state[0]

    def exec_module(self, module: ModuleType) -> None:
        """Take back the spec that importing under a second name has put in place of the module's own."""
        if module.__spec__ is not None and module.__spec__.loader is self:
            module.__spec__ = module.__spec__.loader_state[1]
        if module.__name__ == _PACKAGE:
            # Libraries find what they patch by these names, and a tensor's library by its class's.
            module.__name__ = module.Tensor.__module__ = "torch"
            module.nn.Parameter.__module__ = "torch.nn.parameter"
            module.nn.Buffer.__module__ = "torch.nn.parameter"
        _name_alike()

    def get_code(self, fullname: str) -> CodeType | None:
        """Return a module's code, which `python -m torch.<name>` runs."""
        root, dot, rest = fullname.partition(".")
        spec = importlib.util.find_spec(_HOMES[root] + dot + rest)
        assert spec is not None
        return spec.loader.get_code(spec.name)

    def find_distributions(self, context: DistributionFinder.Context) -> Iterable[Distribution]:
        return [_Release()] if context.name in (None, "torch") else []


FINDER = _Finder()


def _name_alike() -> None:
    """Give the modules that are loaded their second names; some are parts of modules that are no packages."""
    for name, module in [*sys.modules.items()]:
        if name.startswith(f"{_PACKAGE}.") and name != __name__:
            sys.modules.setdefault(f"torch{name[len(_PACKAGE) :]}", module)


def install() -> None:
    """Let `import torch` mean cltensor in this process and in those it starts, from now on.

    RuntimeError: torch itself is imported already.
    """
    if FINDER in sys.meta_path:
        return
    if "torch" in sys.modules:
        raise RuntimeError(
            "cltensor.as_torch.install: torch itself is imported already; call install() before that"
        )
    insert()
    importlib.import_module("torch")


def insert() -> Any:
    """Let this process and those it starts find torch, without importing it; return the finder."""
    sys.meta_path.insert(0, FINDER)
    children = str(Path(__file__).parent / "_children")
    places = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if children not in places:
        os.environ["PYTHONPATH"] = os.pathsep.join([children, *filter(None, places)])
    return FINDER


def main(arguments: Sequence[str]) -> int:
    """Run a script, or a module after `-m`, as Python does, with cltensor in the place of torch.

    Return 2 if nothing is named that could be run.
    """
    if arguments and arguments[0] in ("-h", "--help"):
        print(_USAGE)
        return 0
    module = bool(arguments) and arguments[0] == "-m"
    program = [*arguments[module:]]
    if not program or program[0].startswith("-"):
        print(_USAGE, file=sys.stderr)
        return 2
    if not module and not os.path.exists(program[0]):
        print(f"cltensor.as_torch: can't open file {program[0]!r}", file=sys.stderr)
        return 2
    install()
    sys.argv = program
    if module:
        runpy.run_module(program[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(program[0]))
        runpy.run_path(program[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    # Through the module's own name: what is run may call install(), too.
    sys.exit(importlib.import_module("cltensor.as_torch").main(sys.argv[1:]))
