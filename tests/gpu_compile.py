"""Compile every kernel that GPUs get with LLVM; no GPU is needed.

    python tests/gpu_compile.py                       families and benchmarks, for each record of tests/paper.py; exit 0 when all compile
    python tests/gpu_compile.py --all gemm attention  kernels whose names begin with these, with registers and memory of each
    python tests/gpu_compile.py --keep /tmp/kernels   also write the kernels' texts and assembly to that folder

Needs clang with the targets NVPTX and AMDGPU, and libclc (Debian: apt install clang-19 libclc-14-dev). If they are on PATH, NVIDIA's
assembler reports registers (`ptxas`: pip install nvidia-cuda-nvcc-cu12) and Intel's compiler is run, too (`ocloc`: Debian's intel-opencl-icd).
NVIDIA's driver compiles with other passes than clang does: reports of spills and private memory are hints, failures to compile are
errors.

A kernel is reported when it does not compile, calls a function that the device lacks, needs more local memory than there is, or keeps
numbers in private memory: an array with indices known at run time only, or spilled registers. Spills of up to SPILLED bytes are accepted:
fewer registers let more work-groups run at once.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
TARGETS = {
    "nvidia": ["--target=nvptx64--nvidiacl", "-march=sm_80"],
    "rdna3": ["--target=amdgcn-amd-amdhsa", "-mcpu=gfx1100"],
    "cdna": ["--target=amdgcn-amd-amdhsa", "-mcpu=gfx90a"],
    "strict": ["--target=spir64", "-emit-llvm", "-Xclang", "-cl-ext=-all"],
}
OF = {
    "H200": ("nvidia",), "RDNA3": ("rdna3", "cdna"), "Arc": ("strict", "intel"), "Mali": ("strict",), "small": ("strict", "rdna3"),
}  # fmt: skip
SPILLED = 1024  # bytes of a work-item's registers
BUILTINS = {"nvptx64--nvidiacl": "nvptx64--nvidiacl.bc", "amdgcn-amd-amdhsa": "amdgcn--amdhsa.bc"}
FLAGS = [
    "-x", "cl", "-cl-std=CL1.2", "-Xclang", "-finclude-default-header", "-nogpulib", "-O3", "-S",
    "-cl-fp32-correctly-rounded-divide-sqrt", "-Wdouble-promotion", "-Wvla", "-Wno-ignored-pragmas",
]  # fmt: skip


class Report(NamedTuple):
    """A compiler's report on a kernel, per work-item: `private`, bytes of private memory; `spilled`, bytes of spilled
    registers."""

    trouble: str = ""
    registers: int = 0
    private: int = 0
    spilled: int = 0
    local: int = 0
    waves: int = 0


@cache
def clang() -> str:
    """Return the newest clang found, or "". Clang 14 does not do: it declares no `vload_half` without cl_khr_fp16."""
    for name in (*(f"clang-{n}" for n in range(22, 15, -1)), "clang"):
        if (found := shutil.which(name)) and _version(found) >= 16:
            return found
    return ""


@cache
def _version(compiler: str) -> int:
    said = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"version (\d+)", said.stdout)
    return int(found[1]) if found else 0


@cache
def builtins(triple: str) -> Path | None:
    """Return libclc's bitcode for a target, so that the functions a kernel calls are compiled with it."""
    name = BUILTINS.get(triple, "")
    found = sorted(p for root in ("/usr/lib/clc", "/usr/lib/llvm-*/lib/clc") for p in Path("/").glob(f"{root[1:]}/{name}"))  # fmt: skip
    return found[-1] if name and found else None


def examine(path: Path, options: Iterable[str], target: str) -> Report:
    """Compile one kernel's text for one target."""
    if target == "intel":
        return _by_ocloc(path)
    flags = TARGETS[target]
    made = path.with_suffix(f".{target}")
    library = builtins(flags[0].partition("=")[2])
    linked = ["-Xclang", "-mlink-builtin-bitcode", "-Xclang", str(library)] if library else []
    asked = [o for o in options if o.startswith(("-D", "-cl-")) and "-nv-" not in o]
    most = [o.removeprefix("-cl-nv-") for o in options if o.startswith("-cl-nv-maxrregcount")]
    words = [clang(), *FLAGS, *asked, *flags, *linked, str(path), "-o", str(made)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode or "warning: double" in done.stderr:
        return Report(trouble=done.stderr)
    text = made.read_text()
    if target == "nvidia":
        return _assembled(made, [f"-{o}" for o in most])
    if target == "strict":
        return Report()

    def largest(name: str) -> int:
        return max(map(int, re.findall(rf"\.{name}:\s+(\d+)", text)), default=0)

    waves = re.findall(r"; Occupancy: (\d+)", text)
    return Report(
        "", largest("vgpr_count"), largest("private_segment_fixed_size"), largest("vgpr_spill_count") * 4,
        largest("group_segment_fixed_size"), min(map(int, waves), default=0),
    )  # fmt: skip


def _by_ocloc(path: Path) -> Report:
    """Return the report of Intel's compiler, if it is installed."""
    if shutil.which("ocloc") is None:
        return Report()
    words = ["ocloc", "compile", "-file", str(path), "-device", "dg2", "-out_dir", str(path.parent)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    if done.returncode:
        return Report(trouble=said)
    spilled = sum(map(int, re.findall(r"spilled around (\d+)", said)))
    return Report(registers=128 * bool(spilled), private=spilled, spilled=spilled)


def _assembled(made: Path, options: list[str]) -> Report:
    """Return the report of NVIDIA's assembler on PTX."""
    if shutil.which("ptxas") is None:
        local = re.findall(r"\.shared .*?\[(\d+)\]", made.read_text())
        depot = re.findall(r"\.local .*?\[(\d+)\]", made.read_text())
        return Report(local=sum(map(int, local)), private=sum(map(int, depot)))
    words = ["ptxas", "-arch", "sm_90", "-v", *options, str(made), "-o", "/dev/null"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        return Report(trouble=done.stderr)

    def most(pattern: str) -> int:
        return max(map(int, re.findall(pattern, done.stderr)), default=0)

    return Report(
        "", most(r"Used (\d+) registers"), most(r"(\d+) bytes stack frame"), most(r"(\d+) bytes spill stores"),
        most(r"(\d+) bytes smem"),
    )  # fmt: skip


def cases(torch: Any) -> dict[str, Any]:
    """The families of tests/families.py and the benchmarks' cases, as calls without arguments."""
    import families

    from benchmarks import cases as benchmarks
    from benchmarks.case import Kit

    kit = Kit("cltensor", torch, str(torch.get_default_device()))
    kit.recorded = lambda step: step  # type: ignore[method-assign]

    def of(case: Any) -> Any:
        def run() -> tuple[()]:
            step = case.make(kit)
            step(), step()
            torch.opencl.synchronize()
            return ()

        return run

    def large(dtype: str) -> Any:
        x = torch.zeros(16384, 64, dtype=getattr(torch, dtype))
        return x @ x.T

    def heads(width: int) -> Any:
        q, k, v = (torch.zeros(2, 4, 64, width, requires_grad=True) for _ in range(3))
        done = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        return torch.autograd.grad(done.sum(), (q, k, v))

    def by_units(dtype: str) -> Any:
        """Use the device's matrix instructions where it has them; families use their twin in plain OpenCL C."""
        gemm_mma.TWIN = 0
        x = torch.zeros(16384, 64, dtype=getattr(torch, dtype))
        found = [x @ x.T, x[:300].T @ x[:300], x[:100, :63] @ x[:63, :40], (x @ x[:64]).relu()]
        for width in (32, 64, 128):
            q, k, v = (
                torch.zeros(2, 4, 64, width, dtype=x.dtype).requires_grad_() for _ in range(3)
            )
            done = torch.nn.functional.scaled_dot_product_attention(q, k, v)
            found += torch.autograd.grad(done.sum(), (q, k, v))
        return found

    def doubles_by_units() -> Any:
        gemm_mma.TWIN = 0
        x, y = torch.zeros(8192, 64, dtype=torch.float64), torch.zeros(64, 512, dtype=torch.float64)
        return x @ x.T, y.T @ y, (x[:1024] @ x[:1024].T).relu()

    from cltensor.codegen.products import gemm_mma

    first = {f"by matrix units, {n}": partial(by_units, n) for n in ("bfloat16", "float16")}
    more = {f"large product, {n}": partial(large, n) for n in ("float32", "bfloat16", "int32")}
    more |= {f"wide heads, {n}": partial(heads, n) for n in (64, 128)}
    first["by matrix units, float64"] = doubles_by_units
    return first | families.families(torch) | more | {c.label: of(c) for c in benchmarks.load([])}


def main() -> int:
    """Render and compile the kernels, and print the reports."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="kernels whose names begin so")
    parser.add_argument("--record", action="append", help="of these devices alone")
    parser.add_argument("--all", action="store_true", help="a line for each kernel")
    parser.add_argument("--keep", help="a folder for texts and assembly")
    given = parser.parse_args()
    if not clang():
        print("clang is not installed: nothing examined")
        return 0
    os.environ.setdefault("CLTENSOR_CACHE_SIZE", "0")
    sys.path[:0] = [str(HERE), str(HERE.parent)]
    from paper import RECORDS, compute, paper

    import cltensor
    from cltensor.codegen.products import gemm_mma
    from cltensor.codegen.source import include

    bad = 0
    with tempfile.TemporaryDirectory() as scratch:
        for record in given.record or RECORDS:
            with paper(RECORDS[record]) as backend:
                gemm_mma._found[backend] = "nvidia" in OF[record]
                gemm_mma._double[backend] = include("mma_double") * ("nvidia" in OF[record])
                for name, error in compute(cases(cltensor)).items():
                    if "has no float64" not in str(error) and not name.startswith("sparse"):  # fmt: skip
                        print(f"BAD  {record}  {name}: {error}")
                        bad += 1
            texts = sorted(
                t for t in backend.texts if not given.names or t.name.startswith(tuple(given.names))
            )
            folder = Path(given.keep or scratch, record)
            folder.mkdir(parents=True, exist_ok=True)
            jobs = []
            for text in texts:
                digest = hashlib.sha256("\0".join(text[1:2] + text.options).encode()).hexdigest()
                path = folder / f"{text.name[:80]}-{digest[:8]}.cl"
                path.write_text(text.source)
                jobs += [(path, text.options, target) for target in OF[record]]
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                reports = list(pool.map(lambda job: examine(*job), jobs))
            for (path, _, target), found in zip(jobs, reports, strict=True):
                kept = found.private - found.spilled > 16 or found.spilled > SPILLED
                wrong = found.trouble or kept or found.local > RECORDS[record].local_mem
                bad += bool(wrong)
                if wrong or given.all:
                    print(
                        f"{'BAD ' if wrong else 'ok  '} {record:6} {target:7} {path.stem:60} {found.registers:4} registers, "
                        f"{found.private} private, {found.spilled} spilled, {found.local} local"
                        + (f", {found.waves} waves" if found.waves else "")
                    )
                    print(found.trouble[:2000], end="")
            print(f"{record}: {len(texts)} kernels for {', '.join(OF[record])}", flush=True)
    print(f"{bad} with complaints" if bad else "all compile, and none keeps numbers in memory")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
