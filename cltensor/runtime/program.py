"""`ProgramCache`: programs built from source once, and kept in memory and on disk.

Owns builds, and what a program's key on disk depends on. Must not know tensors or templates.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cltensor import version
from cltensor.config import CONFIG
from cltensor.errors import BuildError, debug_line, number_lines

from . import disk_cache, eventless, machine_code, pocl
from .folders import cache_dir, writable
from .kernel import BuiltProgram, Kernel, kinds
from .stats import STATS

if TYPE_CHECKING:
    from .backend import Backend
    from .machine_code import Function
    from .team import Team

_FORMAT = 3
# Environment variables that change what a compiler generates, and so are part of a program's key: PoCL's, other
# drivers'.
_POCL_SETTINGS = ("POCL_WORK_GROUP_SPECIALIZATION",)
_OTHER_SETTINGS = ("CL_CONFIG_USE_VECTORIZER", "CL_CONFIG_CPU_TARGET_ARCH")
_SAVE_AT_ONCE = 16  # launched programs not yet on disk
_SAVE_AFTER = 2.0  # seconds

# Kernels the team refused to run. Tests assert that none of cltensor's own is among them.
queued: list[str] = []


class ProgramCache:
    """The kernels of one backend. The backend's lock guards it."""

    def __init__(self, backend: Backend) -> None:
        import pyopencl

        info = backend.info
        settings = _POCL_SETTINGS if info.is_pocl else _OTHER_SETTINGS
        self._module = backend.module
        self._context = backend.context
        self._device = backend.cl_device
        self.identity = "\0".join(
            (
                str(_FORMAT),
                version.package,
                pyopencl.VERSION_TEXT,
                info.platform,
                info.platform_version,
                info.name,
                info.device_version,
                info.driver_version,
                info.compiled_for,
                *(os.environ.get(name, "") for name in settings),
            )
        )
        cl = backend.module
        self.enqueue = cl.enqueue_nd_range_kernel if info.kind == "cpu" else eventless.enqueue(cl)
        self._pocl = info.is_pocl
        self._base_options = info.build_options
        self._kernels: dict[Any, Kernel] = {}
        self._programs: dict[tuple[str, tuple[str, ...]], BuiltProgram] = {}
        self._failed: dict[tuple[str, tuple[str, ...]], BuildError] = {}
        self.unsaved: list[BuiltProgram] = []
        self._unsaved_since = 0.0
        self.team: Team | None = None  # the team that runs machine code, once it is formed
        self.wants_code = False  # whether there is a team or one is being formed

    def kernel(
        self, name: str, source: str, arg_types: Sequence[Any], options: Sequence[str] = ()
    ) -> Kernel:
        """Return the kernel `name` of `source`; BuildError when the driver rejects it."""
        key = (name, source, tuple(arg_types), tuple(options))
        found = self._kernels.get(key)
        if found is None:
            found = self._kernels[key] = self._make(name, source, key[2], key[3])
        return found

    def on_driver(self, kernel: Kernel) -> Any:
        """Return a new kernel object of the driver's for `kernel`, so that its arguments can be set independently."""
        return self._module.Kernel(self._on_driver(kernel.program), kernel.name)

    def first_launch(self, kernel: Kernel) -> None:
        """Note that `kernel` has been launched, so that its program is now worth saving to disk."""
        kernel.fresh = False
        if kernel.program.unsaved:
            kernel.program.unsaved = False
            if kernel.program.coded:
                return
            if not self.unsaved:
                self._unsaved_since = time.monotonic()
            self.unsaved.append(kernel.program)

    def save(self) -> None:
        """Write the binaries of programs first launched since the last call to disk; the queue must be finished."""
        programs, self.unsaved = self.unsaved, []
        for program in programs:
            binary = self._ask_binary(program)
            if binary is not None:
                disk_cache.write(program.key, binary)

    def code(self, name: str, source: str, arguments: int) -> Function:
        """Return the machine code of a kernel; RuntimeError where the driver gives none, or none of a known format."""
        program = self._program(name, source, self._options(()))
        binary = self._code_of(program)
        if binary is None:
            raise RuntimeError("the driver gives no machine code out")
        return machine_code.load(binary, name, arguments)

    def _code_of(self, program: BuiltProgram) -> bytes | None:
        """Return the binary of a program whose machine code the team runs.

        None for other programs, or if it is gone from the disk.
        """
        return program.binary or (disk_cache.read(program.key) if program.coded else None)

    def _ask_binary(self, program: BuiltProgram) -> bytes | None:
        try:
            found = program.cl.get_info(self._module.program_info.BINARIES)
        except self._module.Error:
            return None
        binary = next((bytes(b) for b in found if b), None)  # one per device of the context
        # A binary without machine code (its files in PoCL's folder were deleted) would crash PoCL when loaded.
        return None if binary is None or (self._pocl and b".so" not in binary) else binary

    @property
    def save_due(self) -> bool:
        """Whether it is time to `save`.

        When asked for a binary, PoCL first compiles a version for any work-group size (50 ms). So saving waits for a
        few programs or seconds: first results come sooner, and a crash loses little.
        """
        unsaved = self.unsaved
        return bool(unsaved) and (
            not self._pocl
            or len(unsaved) >= _SAVE_AT_ONCE
            or time.monotonic() - self._unsaved_since > _SAVE_AFTER
        )

    def _make(
        self, name: str, source: str, arg_types: tuple[Any, ...], options: tuple[str, ...]
    ) -> Kernel:
        options = self._options(options)
        program, code = self._with_code(name, source, options)
        if code is not None:
            kernel = self._for_team(program, code, name, arg_types)
            if kernel is not None:
                return kernel
        kernel = self._for_queue(program, name, source, arg_types, options)
        if self.team is not None:
            queued.append(name)
        return kernel

    def _with_code(
        self, name: str, source: str, options: tuple[str, ...]
    ) -> tuple[BuiltProgram, bytes | None]:
        """Return a program, and the binary with the machine code that the team is to run; None if it is to run none.

        A program whose binary is gone from the disk is built again.
        """
        program = self._program(name, source, options)
        if self.team is None or not program.coded:
            return program, None
        code = self._code_of(program)
        if code is None:
            del self._programs[source, options]
            program = self._program(name, source, options)
            code = program.binary
        return program, code

    def _for_team(
        self, program: BuiltProgram, code: bytes, name: str, arg_types: tuple[Any, ...]
    ) -> Kernel | None:
        """Return a kernel that the team runs; None where its machine code is not as known."""
        assert self.team is not None
        try:
            function = machine_code.load(code, name, len(arg_types))
            call = self.team.launcher(name, function, kinds(arg_types))
        except RuntimeError as error:
            debug_line(1, "%s goes to the queue: %s", name, error)
            return None
        if not program.unsaved:
            program.binary = None
        return Kernel(name, None, program, arg_types, function, call)

    def _for_queue(
        self,
        program: BuiltProgram,
        name: str,
        source: str,
        arg_types: tuple[Any, ...],
        options: tuple[str, ...],
    ) -> Kernel:
        """Return a kernel that the driver runs; TypeError if it has another number of arguments."""
        try:
            made = self._module.Kernel(self._on_driver(program), name)
        except self._module.Error as error:
            # PoCL's cache may hold an entry that a killed build left half-written: another text is another entry.
            if not self._pocl or "INVALID_KERNEL_NAME" not in str(error) or name not in source:
                raise _build_error(name, source, options, str(error)) from None
            program = self._program(name, f"{source}\n// {os.getpid()}\n", options)
            made = self._module.Kernel(self._on_driver(program), name)
        if made.num_args != len(arg_types):
            raise TypeError(
                f"kernel {name} has {made.num_args} arguments, {len(arg_types)} types were given"
            )
        return Kernel(name, made, program, arg_types, enqueue=self.enqueue)

    def _options(self, options: tuple[str, ...]) -> tuple[str, ...]:
        options += tuple(o for o in self._base_options if o not in options)
        if "-w" not in options and CONFIG.debug < 4:
            options += ("-w",)  # clang prints its warnings past Python, straight to stderr
        return options

    def _on_driver(self, program: BuiltProgram) -> Any:
        """Return the driver's program object, made from the binary if so far only its machine code was used."""
        if program.cl is None:
            binary = self._code_of(program)
            if binary is None:
                raise RuntimeError("a compiled kernel has vanished from the cache on disk")
            program.cl = self._module._cl._Program(self._context, [self._device], [binary])
            self._build(program.cl, ())
        return program.cl

    def _program(self, name: str, source: str, options: tuple[str, ...]) -> BuiltProgram:
        found = self._programs.get((source, options))
        if found is None:
            if failed := self._failed.get((source, options)):
                raise BuildError(*failed.args)
            found = self._programs[source, options] = self._load_or_build(name, source, options)
        return found

    def _load_or_build(self, name: str, source: str, options: tuple[str, ...]) -> BuiltProgram:
        key = self._key(source, options)
        return self._load(name, key, options) or self._from_source(name, source, options, key)

    def _key(self, source: str, options: tuple[str, ...]) -> str:
        """Return the program's key on disk: a digest of everything on which its binary depends."""
        revision = (pocl.revision(),) if pocl.BUILTINS in options else ()
        text = "\0".join((self.identity, source, *options, *revision))
        return hashlib.sha256(text.encode()).hexdigest()

    def _load(self, name: str, key: str, options: tuple[str, ...]) -> BuiltProgram | None:
        """Return the program whose binary is on disk under `key`; None without one that the driver accepts."""
        binary = disk_cache.read(key)
        if binary is None:
            return None
        if self.wants_code and machine_code.known(binary):
            made = BuiltProgram(None, key, unsaved=False, binary=binary)
        else:
            try:
                program = self._module._cl._Program(self._context, [self._device], [binary])
                self._build(program, options)
            except (self._module.Error, RuntimeError):
                debug_line(1, "the driver rejects the cached binary of %s: rebuilding it", name)
                return None
            made = BuiltProgram(program, key, unsaved=False)
        STATS.disk_hits += 1
        return made

    def _from_source(
        self, name: str, source: str, options: tuple[str, ...], key: str
    ) -> BuiltProgram:
        """Return the program built from its text, without the options that are hints if it does not build with them."""
        debug_line(4, "source of %s:\n%s", name, number_lines(source))
        start = time.perf_counter()
        try:
            text = pocl.with_builtins(source) if pocl.BUILTINS in options else source
            program = self._module._cl._Program(self._context, text)
            self._build(program, options)
        except (self._module.Error, RuntimeError) as error:
            needed = tuple(o for o in options if not _is_hint(o))
            if needed != options:
                hints = " ".join(o for o in options if o not in needed)
                debug_line(1, "%s does not build with %s: tried without", name, hints)
                program = self._load_or_build(name, source, needed)
                if pocl.BUILTINS in options:
                    pocl.lacking.append(name)
                return program
            failed = _build_error(name, source, options, str(error))
            self._failed[source, options] = failed
            raise failed from None
        made = BuiltProgram(program, key, unsaved=True)
        if self.wants_code and (binary := self._ask_binary(made)) is not None:
            made = BuiltProgram(program, key, unsaved=True, binary=binary)
            disk_cache.write(key, binary)
        seconds = time.perf_counter() - start
        STATS.builds += 1
        STATS.build_seconds += seconds
        debug_line(1, "built %s in %.0f ms", name, seconds * 1e3)
        return made

    def _build(self, program: Any, options: tuple[str, ...]) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pyopencl warns whenever the compiler printed anything
            program.build(" ".join(options).encode(), [self._device])


def _is_hint(option: str) -> bool:
    """Return whether an option may be dropped if the driver rejects a build with it."""
    return option == pocl.BUILTINS or option.startswith("-cl-nv-")


def _build_error(name: str, source: str, options: tuple[str, ...], log: str) -> BuildError:
    digest = hashlib.sha256(source.encode()).hexdigest()[:12]
    file = f"{re.sub(r'[^A-Za-z0-9_]', '_', name)[:60]}-{digest}.cl"
    folder = cache_dir() / "failed"
    if not writable(folder):
        folder = Path(tempfile.gettempdir())
    path = folder / file
    try:
        path.write_text(source)
        saved = f"source saved as {path}"
    except OSError as error:
        saved = f"the source could not be saved: {error}"
    return BuildError(
        f"the OpenCL driver rejects kernel {name} (options: {' '.join(options) or 'none'})\n"
        f"{log.strip()}\n{number_lines(source)}\n{saved}"
    )
