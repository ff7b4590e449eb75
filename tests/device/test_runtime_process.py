"""Behaviour that only a fresh process shows: lazy import, cold and warm cache, fork, a system without `ld`, exit."""

from __future__ import annotations

import json
import math
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cltensor.runtime import disk_cache
from cltensor.runtime.folders import cache_dir

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import json, sys
import numpy as np
from cltensor.runtime import STATS, device, get_backend

SOURCE = '''
__kernel void twice(__global float *a, long n) {
  for (long i = get_global_id(0); i < n; i += get_global_size(0)) a[i] *= 2.0f;
}
__kernel void thrice(__global float *a, long n) {
  for (long i = get_global_id(0); i < n; i += get_global_size(0)) a[i] *= 3.0f;
}
'''
def result(name="cpu"):
    backend = get_backend(device(name))
    a = backend.alloc(40)
    backend.write(a, 0, np.ones(10, np.float32))
    for kernel, size, group in (("twice", 2, 1), ("thrice", 8, 4)):
        kernel = backend.kernel(kernel, SOURCE, (None, np.int64))
        backend.launch(kernel, (size,), (group,), (a, 10))
    return backend.read(a, 0, 40).view(np.float32).tolist()
def report(**more):
    print(json.dumps({"builds": STATS.builds, "disk_hits": STATS.disk_hits, **more}))
"""


def environment(cache: Path, **environ: str) -> dict[str, str]:
    """Return the environment of a process: no variables of cltensor and PoCL but the cache's folder, and those given,
    so that all processes use the same driver.
    """
    env = {k: v for k, v in os.environ.items() if not k.startswith(("CLTENSOR_", "POCL_"))}
    return {**env, "CLTENSOR_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT), **environ}


def run(
    code: str, cache: Path, check: bool = True, **environ: str
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(cache, **environ),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if check:
        assert done.returncode == 0, done.stderr
    return done


def answer(code: str, cache: Path, **environ: str) -> Any:
    return json.loads(run(PROGRAM + code, cache, **environ).stdout.splitlines()[-1])


def entries(cache: Path) -> list[Path]:
    return sorted((cache / "kernels").glob("*.bin"))


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any, str]:
    """Return a cache that one process has filled, what that process reported, and its debug lines. The cache is for
    reading; see `filled`.
    """
    cache = tmp_path_factory.mktemp("first")
    done = run(PROGRAM + "report(result=result())", cache, CLTENSOR_DEBUG="2")
    return cache, json.loads(done.stdout.splitlines()[-1]), done.stderr


@pytest.fixture
def filled(first: tuple[Path, Any, str], tmp_path: Path) -> Path:
    """Return a copy of the cache that `first` filled, which the test may change."""
    return Path(shutil.copytree(first[0], tmp_path / "filled"))


def test_import_touches_no_opencl(tmp_path: Path) -> None:
    run("import cltensor.runtime, sys; assert 'pyopencl' not in sys.modules", tmp_path)


def test_second_process_builds_nothing(first: tuple[Path, Any, str], filled: Path) -> None:
    cold = first[1]
    assert cold["result"] == [6.0] * 10
    assert cold["builds"] == 2  # the probe and one program of two kernels
    assert cold["disk_hits"] == 0
    assert len(entries(filled)) == 2
    warm = answer("report(result=result())", filled)
    assert warm == {"result": [6.0] * 10, "builds": 0, "disk_hits": 2}
    # The driver's files were deleted when the process ended.
    assert not list((filled / "pocl").glob("*"))


def test_damaged_entries_are_replaced(filled: Path) -> None:
    whole = {path: path.read_bytes() for path in entries(filled)}
    first, second = whole
    first.write_bytes(whole[first][:-100])
    second.write_bytes(whole[first])  # a valid entry, but another key's
    again = answer("report(result=result())", filled)
    assert again == {"result": [6.0] * 10, "builds": 2, "disk_hits": 0}
    assert answer("report()\nresult()\nreport()", filled)["disk_hits"] == 2


def test_binary_that_the_driver_rejects(filled: Path) -> None:
    keys = [path.stem for path in entries(filled)]
    code = f"""
from cltensor.runtime import disk_cache
for key in {keys}:
    disk_cache.write(key, b"not a binary")
report(result=result())
"""
    again = answer(code, filled)
    assert again == {"result": [6.0] * 10, "builds": 2, "disk_hits": 0}
    assert answer("result()\nreport()", filled)["builds"] == 0


def test_cache_off(tmp_path: Path) -> None:
    answer("result()\nreport()", tmp_path, CLTENSOR_CACHE_SIZE="0")
    assert not entries(tmp_path)


def test_size_cap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_cache, "folder", lambda: tmp_path / "kernels")
    for i in range(10):
        disk_cache.write(f"{i:064d}", bytes(1000))
        os.utime(tmp_path / "kernels" / f"{i:064d}.bin", (i, i))
    disk_cache.read(f"{0:064d}")  # now the most recently used
    disk_cache.prune(5000)
    assert [int(path.stem) for path in entries(tmp_path)] == [0, 8, 9]


@pytest.mark.skipif(os.name != "posix", reason="needs a folder in the way")
def test_unwritable_cache_is_survived_with_one_warning(tmp_path: Path) -> None:
    tmp_path.joinpath("kernels").write_text("a file where the folder should be")
    done = run(PROGRAM + "result()\nreport(result=result())", tmp_path)
    assert json.loads(done.stdout)["result"] == [6.0] * 10
    assert done.stderr.count("cltensor cannot save compiled kernels") == 1
    blocked = tmp_path / "kernels" / "below"  # the whole folder cannot be made
    assert answer("report(result=result())", blocked)["result"] == [6.0] * 10


def test_two_processes_at_once(tmp_path: Path) -> None:
    env = environment(tmp_path)
    code = PROGRAM + "report(result=result())"
    both = [
        subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE)
        for _ in "ab"
    ]
    for process in both:
        out, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        assert json.loads(out)["result"] == [6.0] * 10
    assert answer("result()\nreport()", tmp_path)["builds"] == 0


FORK = """
import os
def in_child(f):
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            text = repr(f())
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(write, text.encode())
        sys.exit(0)
    status = os.waitpid(pid, 0)[1]
    return os.read(read, 4000).decode(), status
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_fork(first: tuple[Path, Any, str]) -> None:
    cache = first[0]
    code = FORK + "text, status = in_child(result)\nreport(text=text, status=status)"
    found = answer(code, cache)
    assert found["text"] == repr([6.0] * 10)  # the parent had not used a device
    assert found["status"] == 0
    code = FORK + (
        "result('opencl:0')\nkeep = get_backend(device('opencl:0')); buffer = keep.alloc(10)\n"
        "texts = [in_child(f) for f in (lambda: result('opencl:0'), keep.finish, lambda: keep.read(buffer, 0, 10), "
        "lambda: globals().pop('buffer') and 1, lambda: get_backend(device('opencl:0')))]\n"
        "report(texts=texts, still=result('opencl:0'))"
    )
    found = answer(code, cache)
    assert found["still"] == [6.0] * 10
    for index, (text, status) in enumerate(found["texts"]):
        assert status == 0
        if index != 3:
            assert text.startswith("RuntimeError: Cannot re-initialize OpenCL in forked subprocess")
            assert "'spawn' start method" in text


CHILD = """
import time
from cltensor.runtime import in_use, survives_fork
import cltensor as torch
if not survives_fork(): report(none=True); sys.exit()
x = torch.arange(40000.0).reshape(200, 200).requires_grad_()
kept = (x * 2).sum(1)
before = float((x @ x).sum())
def train():
    team = get_backend(device("cpu")).team
    assert team.idle == (team.size > 1)
    (x @ x).sum().backward()
    x.data.zero_()
    assert torch.cdist(torch.ones(3, 2), torch.zeros(5, 2)).shape == (3, 5)
    global SOURCE
    SOURCE, before = f"{SOURCE}// {os.getpid()} {time.time_ns()}", STATS.builds
    assert result() == [6.0] * 10
    assert STATS.builds == before + 1  # here, whatever the cache holds
    return [float(kept[0]), round(float(x.grad[0, 0]))]
found = in_child(train)
queue = in_child(lambda: get_backend(device("cpu")).queue)
report(none=False, before=before, found=found, queue=queue, after=float((x @ x).sum()), grad=x.grad is None)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_has_the_cpu_device_where_a_team_runs_its_kernels() -> None:
    found = answer(FORK + CHILD, cache_dir())  # the cache shared with other tests
    if found["none"]:
        pytest.skip("the driver's threads run kernels here")
    x = np.arange(40000, dtype=np.float64).reshape(200, 200)
    assert found["found"] == [repr([float(2 * x[0].sum()), round(x[0].sum() + x[:, 0].sum())]), 0]
    assert found["before"] == found["after"] and found["grad"]
    text, status = found["queue"]
    assert text.startswith("RuntimeError: Cannot re-initialize OpenCL") and status == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_has_the_cpu_device_where_its_parent_only_asked_what_there_is(
    first: tuple[Path, Any, str],
) -> None:
    code = FORK + (
        "from cltensor.runtime import device_list, survives_fork\n"
        "device_list()\ntext, status = in_child(lambda: result('cpu:0'))\nreport(text=text, status=status, survives=survives_fork())"
    )
    found = answer(code, first[0])
    if found["survives"]:
        assert (found["text"], found["status"]) == (repr([6.0] * 10), 0)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="PoCL's wheel is for Linux")
def test_no_linker(tmp_path: Path) -> None:
    """Where the system has no `ld` and no compiler's libraries, cltensor's own linker links kernels."""
    empty = tmp_path / "bin"
    empty.mkdir()
    code = """
import os
from cltensor.runtime.platforms import is_pocl, platforms
import cltensor as torch
x = torch.arange(48.0).reshape(6, 8)
found = (x @ x.t()).softmax(1).sum().item(), (x + 1).double().lgamma().sum().item(), x.half().cumsum(0)[-1, -1].item()
report(pocl=is_pocl(platforms().cpu), ours="linker-" in os.environ.get("COMPILER_PATH", ""), result=result(), found=found)
"""
    found = answer(code, tmp_path, PATH=str(empty))
    if found.pop("pocl"):
        assert found.pop("ours") == (platform.machine() == "x86_64")
    assert found["result"] == [6.0] * 10
    rows, factorials, column = found["found"]
    assert rows == pytest.approx(6, rel=1e-6)
    assert factorials == pytest.approx(sum(map(math.lgamma, range(1, 49))), rel=1e-12)
    assert column == np.arange(7, 48, 8).sum()


def test_bodies_of_kernels_are_compiled_once(tmp_path: Path) -> None:
    """Bodies of kernels are moved to functions, which the driver compiles once, save those of kernels that need every
    register.
    """
    code = """
import cltensor as torch
from cltensor.runtime import outline, pocl
outlined, apart, whole = outline.outlined, [], []
def noted(source):
    made = outlined(source)
    names = [text.partition("(")[0] for text in source.split("__kernel void ")[1:]]
    (apart if made.count("CLT_BODY") == len(names) else whole).extend(names)
    return made
outline.outlined = noted
x = torch.arange(48.0).reshape(6, 8)
(x + 1).sum(1).tolist(), x.softmax(0).tolist(), x.sort(1)[0].tolist(), x.cumsum(0).tolist(), x[x > 3].tolist()
report(wanted=pocl.BUILTINS in get_backend(device("cpu")).info.build_options, apart=apart, whole=whole)
"""
    found = answer(code, tmp_path)
    if not found["wanted"]:
        pytest.skip("the driver is not pip's PoCL")
    kinds = {name.split("_")[0] for name in found["apart"]}
    assert kinds >= {"sum", "softmax", "sort", "cumsum"}
    assert {name.split("_")[0] for name in found["whole"]} == {"team", "mask"}


def test_what_other_code_put_into_programs_is_not_loaded(filled: Path) -> None:
    code = """
from cltensor.runtime import pocl
pocl.revision = lambda: "another"
report(result=result(), wanted=pocl.BUILTINS in get_backend(device("cpu")).info.build_options)
"""
    found = answer(code, filled)
    if not found["wanted"]:
        pytest.skip("the driver is not pip's PoCL")
    assert found == {"result": [6.0] * 10, "builds": 2, "disk_hits": 0, "wanted": True}
    assert answer(code, filled)["disk_hits"] == 2


def test_exit_with_work_queued_and_an_exception(tmp_path: Path) -> None:
    code = """
backend = get_backend(device("cpu"))
kernel = backend.kernel("twice", SOURCE, (None, np.int64))
a = backend.alloc(40 << 20)
for _ in range(20): backend.launch(kernel, (2,), (1,), (a, 10 << 20))
raise ValueError("as a user's program would")
"""
    done = run(PROGRAM + code, tmp_path, check=False)
    assert done.returncode == 1
    assert done.stderr.rstrip().endswith("ValueError: as a user's program would")
    assert len(entries(tmp_path)) == 2  # saved when the process exits


def test_debug_lines(first: tuple[Path, Any, str], filled: Path) -> None:
    said = first[2]
    assert "cltensor: cpu is " in said
    assert "cltensor: built twice in " in said
    lines = [line for line in said.splitlines() if line.startswith("cltensor: thrice 8 4 ")]
    assert len(lines) == 1
    assert "source of" not in said
    done = run(PROGRAM + "result()", filled, CLTENSOR_DEBUG="4")  # builds with other options
    assert "source of twice" in done.stderr


def test_environment_chooses_devices(tmp_path: Path) -> None:
    code = "from cltensor.runtime import default_device\nprint(json.dumps(str(default_device())))"
    assert answer(code, tmp_path, CLTENSOR_DEVICE="opencl:0") == "opencl:0"
    done = run(PROGRAM + "result()", tmp_path, check=False, CLTENSOR_CPU="nonesuch")
    assert "CLTENSOR_CPU=nonesuch matches no OpenCL platform" in done.stderr


def test_doctor(filled: Path, tmp_path: Path) -> None:
    env = {**os.environ, "CLTENSOR_CACHE_DIR": str(filled), "PYTHONPATH": str(ROOT)}

    def doctor() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "cltensor"]
        return subprocess.run(
            command, env=env, capture_output=True, text=True, timeout=300, check=False
        )

    done = doctor()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "self-test     ok" in done.stdout
    assert "Ready: " in done.stdout
    if sys.platform.startswith("linux"):
        env["PATH"] = str(tmp_path)
        done = doctor()
        assert done.returncode == 0, done.stdout + done.stderr
