"""Measure this machine's OpenCL device and the libraries installed beside cltensor.

python -m benchmarks                            every case, some 20 minutes; results in benchmarks/results/<device>.json
python -m benchmarks --quick                    the main cases beside torch and NumPy, under 3 minutes
python -m benchmarks gemm "rows: softmax"       families, or cases by the beginning of their label
python -m benchmarks start memory               starting times alone, and the peak memory of training
python -m benchmarks --list                     the list of cases
python -m benchmarks gemm --kernels             the device's own time, kernel by kernel
python -m benchmarks --compare a.json b.json    what changed by more than the spread of two runs
python -m benchmarks --table a.json             a Markdown table of families, as in the README
python -m benchmarks --aims a.json              a Markdown table of the cases that have an aim
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.environment import PEERS, limit_threads

if TYPE_CHECKING:
    from benchmarks.case import Case

RESULTS = Path(__file__).resolve().parent / "results"
# The others compile: jax and tinygrad for seconds, torch.compile for half a minute per case.
QUICK_PEERS = ("torch", "numpy")
OTHERS = ("start", "memory")  # what is measured beside the cases


def options(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "families", nargs="*", help="families, beginnings of labels, start, memory; all by default"
    )
    parser.add_argument("--device", default="cpu", help="cpu (default), opencl:0, ...")
    parser.add_argument(
        "--threads", type=int, default=2, help="of every library alike (default: 2)"
    )
    parser.add_argument("--quick", action="store_true", help="the main cases, a tenth of the time each")  # fmt: skip
    parser.add_argument(
        "--seconds", type=float, help="for each case and library (default: 3, with --quick 0.3)"
    )
    parser.add_argument(
        "--peers",
        help=f"with commas (default: {','.join(PEERS)}; with --quick {','.join(QUICK_PEERS)}); "
        "those that are not installed are left out",
    )
    parser.add_argument("--compile", action="store_true", help="torch.compile as a peer, too")
    parser.add_argument(
        "--out", type=Path, help="the file of results; a run adds to those of other cases there"
    )
    parser.add_argument("--no-write", action="store_true", help="print the results only")
    parser.add_argument(
        "--kernels", action="store_true", help="the device's own time; written with --out only"
    )
    parser.add_argument("--list", action="store_true", help="print the cases, and run none")
    parser.add_argument("--compare", nargs=2, type=Path, metavar="JSON", help="compare two runs")
    parser.add_argument("--table", type=Path, metavar="JSON", help="print a run's table of families")  # fmt: skip
    parser.add_argument("--aims", type=Path, metavar="JSON", help="print a run's cases with an aim")
    args = parser.parse_args(words)
    usual = QUICK_PEERS if args.quick else PEERS
    args.peers = args.peers.split(",") if args.peers else [*usual]
    if unknown := set(args.peers) - set(PEERS):
        parser.error(f"no peer is called {', '.join(sorted(unknown))}")
    if args.compile and "torch" not in args.peers:
        parser.error("--compile needs torch among the peers")
    if args.compile:
        args.peers.append("torch.compile")
    return args


def _trouble(words: list[str], chosen: list[Case]) -> str:
    """Return why these words choose nothing, or in part nothing; "" if each chooses something."""
    from benchmarks import cases

    labels = [case.label for case in cases.load([])]
    unknown = [w for w in words if w not in OTHERS and not any(x.startswith(w) for x in labels)]
    if unknown:
        return f"no case begins with {' or '.join(unknown)}: see --list"
    if words and not chosen and not {*words} & {*OTHERS}:
        return "none of these cases is measured with --quick: see --list"
    return ""


def _measure(args: argparse.Namespace, chosen: list[Case]) -> None:
    """Measure cases, starting times and peak memory, as far as they are asked for; print and write what was found."""
    from benchmarks import memory, report, start, suite

    seconds = args.seconds or (0.3 if args.quick else 3.0)
    found = suite.run(chosen, args.device, args.threads, seconds, args.peers)
    if not args.families or "start" in args.families:
        found["start"] = start.measure(
            2 if args.quick else 5, args.device, found["devices"].get("torch", "cpu")
        )
        print("\n".join(start.lines(found["start"])))
    if "memory" in args.families or not (args.families or args.quick):
        found["memory"] = memory.measure(args.device, args.threads)
        print("\n".join(memory.lines(found["memory"])))
    print(report.summary(found))
    if not args.no_write:
        path = args.out or RESULTS / f"{args.device.replace(':', '-')}.json"
        whole = report.merge(path, found)
        report.write(path, whole)
        report.draw(path.with_suffix(".png"), whole)
        print(f"written: {path} and {path.with_suffix('.png').name}")


def main(words: list[str] | None = None) -> int:
    """Do what the command line asks for; return 0, 1 if a comparison finds a slower case, 2 if no case is chosen."""
    args = options(words)
    limit_threads(args.threads)
    from benchmarks import (
        cases,
        kernels,
        report,
    )  # after limit_threads: NumPy reads its variable now

    if args.compare:
        return report.compare(*args.compare)
    if args.table:
        print(report.families(report.read(args.table)))
        return 0
    if args.aims:
        print(report.aims(report.read(args.aims)))
        return 0
    chosen = [c for c in cases.load(args.families) if c.quick or not args.quick]
    if trouble := _trouble(args.families, chosen):
        print(trouble, file=sys.stderr)
        return 2
    if args.list:
        print("\n".join(f"{c.label}{' (quick)' if c.quick else ''}" for c in chosen))
    elif args.kernels:
        watched = kernels.run(chosen, args.device, args.threads, args.peers)
        if args.out:
            report.write(args.out, watched)
    else:
        _measure(args, chosen)
    return 0


if __name__ == "__main__":
    sys.exit(main())
