"""Measure this machine's OpenCL device and the libraries installed beside cltensor.

python -m benchmarks                      every case, some 20 minutes; results in benchmarks/results/<device>.json
python -m benchmarks --quick              the main cases beside torch and NumPy, under 3 minutes
python -m benchmarks gemm "rows: softmax" start     families, or cases by the beginning of their label; memory: of trainings
python -m benchmarks --list               the list of cases
python -m benchmarks gemm --kernels --device opencl:0     the device's own time, its share of the peak, its kernels (written where --out says)
python -m benchmarks --compare a.json b.json     what moved beyond the spread
python -m benchmarks --table a.json       a Markdown table of families, as in the README
python -m benchmarks --aims a.json        a Markdown table of the cases that have an aim
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.environment import PEERS, limit_threads

RESULTS = Path(__file__).resolve().parent / "results"


def options(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("families", nargs="*")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=2, help="for every library alike")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seconds", type=float, default=None, help="for each case and library")
    parser.add_argument("--peers", default=None, help=f"of {','.join(PEERS)}; those installed")
    parser.add_argument("--compile", action="store_true", help="torch.compile as a peer, too")
    parser.add_argument("--out", type=Path, default=None, help="where the JSON goes")
    parser.add_argument("--no-write", action="store_true")
    parser.add_argument("--kernels", action="store_true", help="the device's own time, by kernels")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--compare", nargs=2, type=Path, metavar="JSON")
    parser.add_argument("--table", type=Path, metavar="JSON")
    parser.add_argument("--aims", type=Path, metavar="JSON")
    args = parser.parse_args(words)
    args.peers = args.peers.split(",") if args.peers else _usual(args.quick)
    if unknown := set(args.peers) - set(PEERS):
        parser.error(f"no peer is called {', '.join(sorted(unknown))}")
    if args.compile:
        args.peers.append("torch.compile")
    return args


def _usual(quick: bool) -> list[str]:
    """Return the peers measured by default. jax and tinygrad compile for seconds, torch.compile for half a minute per
    case."""
    return ["torch", "numpy"] if quick else ["torch", "numpy", "jax", "tinygrad"]


def main() -> int:
    args = options()
    limit_threads(args.threads)
    from benchmarks import cases, kernels, memory, report, start, suite

    if args.compare:
        return report.compare(*args.compare)
    if args.table:
        print(report.families(report.read(args.table)))
        return 0
    if args.aims:
        print(report.aims(report.read(args.aims)))
        return 0
    chosen = [c for c in cases.load(args.families) if c.quick or not args.quick]
    if args.list:
        print("\n".join(f"{c.label}{' (quick)' if c.quick else ''}" for c in chosen))
        return 0
    if args.kernels:
        watched = kernels.run(chosen, args.device, args.threads, args.peers)
        if args.out:
            report.write(args.out, watched)
        return 0
    begin = not args.families or "start" in args.families
    hold = "memory" in args.families or not (args.families or args.quick)
    if not (chosen or begin or hold):
        print(f"no case begins with {' or '.join(args.families)}", file=sys.stderr)
        return 2
    seconds = args.seconds or (0.3 if args.quick else 3.0)
    found = suite.run(chosen, args.device, args.threads, seconds, args.peers)
    if begin:
        found["start"] = start.measure(
            2 if args.quick else 5, args.device, found["devices"].get("torch", "cpu")
        )
        print("\n".join(start.lines(found["start"])))
    if hold:
        found["memory"] = memory.measure(args.device, args.threads)
        print("\n".join(memory.lines(found["memory"])))
    print(report.summary(found))
    if not args.no_write:
        path = args.out or RESULTS / f"{args.device.replace(':', '-')}.json"
        whole = report.merge(path, found)
        report.write(path, whole)
        report.draw(path.with_suffix(".png"), whole)
        print(f"written: {path} and {path.with_suffix('.png').name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
