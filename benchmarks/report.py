"""Results as files, tables and pictures."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from benchmarks.suite import line, rate, unit


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())


def write(path: Path, results: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")


def label(result: dict[str, Any]) -> str:
    return f"{result['family']}: {result['name']}"


def merge(path: Path, fresh: dict[str, Any]) -> dict[str, Any]:
    """Put new cases in the place of old ones of the same name; cases not run now stay."""
    if not path.exists() or "cases" not in (old := read(path)):
        return fresh
    again = {label(c): c for c in fresh["cases"]}
    kept = [again.pop(label(c), c) for c in old["cases"]]
    return {**old, **fresh, "cases": kept + list(again.values())}


def summary(results: dict[str, Any]) -> str:
    """How many bars hold, and the missed ones from the worst on."""
    barred = [c for c in results["cases"] if c["bar"] and "torch" in c["peers"]]
    missed = [c for c in barred if c["peers"]["torch"]["ratio"] < c["bar"]]
    missed.sort(key=lambda c: c["peers"]["torch"]["ratio"] / c["bar"])
    head = f"\n{len(barred) - len(missed)} of {len(barred)} aims reached"
    return "\n".join([head, *(line(c, results["peak"]) for c in missed)])


def compare(old_path: Path, new_path: Path) -> int:
    """Print what moved by more than both runs' spread of ratios to torch; 1 when something got slower."""
    old, new = ({label(c): c for c in read(p)["cases"]} for p in (old_path, new_path))
    slower = 0
    for name in old.keys() & new.keys():
        a, b = (x[name]["peers"].get("torch") for x in (old, new))
        if a is None or b is None:
            continue
        if b["low"] > a["high"]:
            print(f"faster  {name}: {a['ratio']:.2f} -> {b['ratio']:.2f}")
        elif b["high"] < a["low"]:
            print(f"SLOWER  {name}: {a['ratio']:.2f} -> {b['ratio']:.2f}")
            slower += 1
    for name in old.keys() ^ new.keys():
        print(f"only in {'the first' if name in old else 'the second'}: {name}")
    return 1 if slower else 0


def readme_table(results: dict[str, Any]) -> str:
    """The cases that have an aim, as a Markdown table."""
    rows = [
        "| case | cltensor | rate | of peak | times faster than torch |",
        "|---|---|---|---|---|",
    ]
    for c in results["cases"]:
        if c["bar"] and "torch" in c["peers"]:
            speed, share = rate(c, results["peak"])
            rows.append(
                f"| {label(c)} | {unit(c['median_s'])} | {speed} | {share} | {c['peers']['torch']['ratio']:.2f} |"
            )
    return "\n".join(rows)


def draw(path: Path, results: dict[str, Any]) -> None:
    """Draw a roofline and a bar chart of ratios; says so and draws nothing without matplotlib."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        print("matplotlib is not installed: no picture")
        return
    cases = [c for c in results["cases"] if "torch" in c["peers"]]
    figure = Figure(figsize=(13, max(5, 0.22 * len(cases))), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    roof, bars = figure.subplots(1, 2, width_ratios=(1, 1.3))
    peak = results["peak"]

    both = [c for c in cases if c["flops"] and c["bytes"]]
    intensities = [2.0**k for k in range(-4, 11)]
    roof.loglog(intensities, [min(peak["flops"], i * peak["copy"]) for i in intensities], "k-")
    roof.loglog(
        [c["flops"] / c["bytes"] for c in both], [c["flops"] / c["median_s"] for c in both], "o"
    )
    roof.set(xlabel="operations per byte", ylabel="operations per second", title=results["device_name"])  # fmt: skip

    cases.sort(key=lambda c: c["peers"]["torch"]["ratio"])
    values = [c["peers"]["torch"]["ratio"] for c in cases]
    colours = ["tab:red" if c["bar"] and v < c["bar"] else "tab:blue" for c, v in zip(cases, values, strict=True)]  # fmt: skip
    bars.barh([label(c) for c in cases], [math.log2(v) for v in values], color=colours)
    bars.axvline(0, color="black", linewidth=0.8)
    bars.tick_params(axis="y", labelsize=6)
    ticks = range(-6, 7, 2)
    bars.set_xticks(list(ticks), [f"{2.0**t:g}" for t in ticks])
    bars.set(xlabel="times faster than torch eager (red: below the aim)")
    canvas.print_png(path)
