"""Benchmark results as files, tables and charts."""

from __future__ import annotations

import json
import math
import statistics
from pathlib import Path
from typing import Any

from benchmarks.suite import ENOUGH, LARGE, line, peak_words, percent, rate, unit

# The panels of the chart: title -> families of cases.
GROUPS = {
    "launches, pointwise": ("launch", "pointwise", "broadcast"),
    "copies, indexing": ("copy", "index"),
    "reductions, scans, sorting": ("reduction", "scan", "sort"),
    "rows and losses": ("rows", "loss"),
    "products": ("gemm", "gemv", "linear", "solve", "sparse"),
    "images, signals": ("conv", "pool", "norm", "image", "fourier"),
    "attention, random numbers, training": ("attention", "random", "optimiser", "training"),
}
COLUMNS = 4
PEER_MARKS = {
    "torch.compile": ("D", "tab:purple"),
    "numpy": ("v", "tab:olive"),
    "jax": ("s", "tab:orange"),
    "tinygrad": ("^", "tab:green"),
}
WIDEST = 8  # the axis of ratios ends at 2**WIDEST; marks beyond are drawn there


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())


def write(path: Path, results: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")


def label(result: dict[str, Any]) -> str:
    return f"{result['family']}: {result['name']}"


def merge(path: Path, fresh: dict[str, Any]) -> dict[str, Any]:
    """Return the results in a file with fresh ones in place of cases of the same name; cases not run this time are
    kept.

    The fresh results alone, if there is no file or its format is old.
    """
    old = read(path) if path.exists() else {}
    if not all("limit" in c for c in old.get("cases", [{}])):
        return fresh
    again = {label(c): c for c in fresh["cases"]}
    kept = [again.pop(label(c), c) for c in old["cases"]]
    return {**old, **fresh, "cases": kept + list(again.values())}


def _if_any(count: int, of: list[Any], words: str) -> list[str]:
    """Return a line "3 of 4 …", or no line where nothing was counted."""
    return [f"{count} of {len(of)} {words}"] if of else []


def summary(results: dict[str, Any]) -> str:
    """Return a text: how many cases reach their aim, those that miss it, worst first, how many reach the device's
    speed, and cases faster than the peak, which need an explanation.
    """
    barred = [c for c in results["cases"] if c["bar"] and "torch" in c["peers"]]
    missed = [c for c in barred if c["peers"]["torch"]["ratio"] < c["bar"]]
    missed.sort(key=lambda c: c["peers"]["torch"]["ratio"] / c["bar"])
    lines = ["", *_if_any(len(barred) - len(missed), barred, "aims reached")]
    lines += [line(c) for c in missed]
    large = [c for c in results["cases"] if c["limit"] not in ("", "flops") and c["bytes"] >= LARGE]
    quick = sum(c["of_peak"] >= ENOUGH for c in large)
    computing = sum((c.get("in_cache") or 0) >= ENOUGH for c in large)
    lines += _if_any(
        quick,
        large,
        f"cases that move {LARGE >> 20} MiB and more reach {percent(ENOUGH)} of the device's own speed; "
        f"{computing} others reach as much of their own speed on data in a cache: arithmetic is their limit",
    )
    for c in results["cases"]:
        if (c["of_peak"] or 0) > 1.05:
            lines.append(
                f"beyond the peak, {percent(c['of_peak'])} (in a cache, or by fewer operations than counted): {label(c)}"
            )
    return "\n".join(lines)


def compare(old_path: Path, new_path: Path) -> int:
    """Print the cases that changed by more than the spread of both runs; return 1 if one got slower, else 0.

    The ratios to torch are compared, as these do not depend on how busy the machine was; times, where there is no torch.
    """
    first, second = read(old_path), read(new_path)
    for key in ("device_name", "driver", "threads", "versions", "queued"):
        if first.get(key, False) != second.get(key, False):
            print(f"{key}: {first.get(key)} -> {second.get(key)}")
    old, new = ({label(c): c for c in x["cases"]} for x in (first, second))
    slower = same = 0
    for name in (n for n in old if n in new):
        (low, value, high), (new_low, new_value, new_high), what = _speeds(old[name], new[name])
        if new_low > high:
            print(f"faster  {name}: {what} {value:.3g} -> {new_value:.3g}")
        elif new_high < low:
            print(f"SLOWER  {name}: {what} {value:.3g} -> {new_value:.3g}")
            slower += 1
        else:
            same += 1
    print(f"{same} cases within the spread")
    for path, here, there in ((old_path, old, new), (new_path, new, old)):
        if alone := [name for name in here if name not in there]:
            print(f"{len(alone)} only in {path.name}: {'; '.join(alone)}")
    return 1 if slower else 0


def _speeds(*results: dict[str, Any]) -> tuple[Any, ...]:
    """Return (low quartile, median, high quartile) of a speed for each result, then the speed's unit: times as fast as
    torch where all results have that, else runs per second."""
    torch = [r["peers"].get("torch") for r in results]
    if all(torch):
        return *((t["low"], t["ratio"], t["high"]) for t in torch), "times as fast as torch,"
    return *((1 / r["high_s"], 1 / r["median_s"], 1 / r["low_s"]) for r in results), "runs a second,"  # fmt: skip


def families(results: dict[str, Any]) -> str:
    """Return a Markdown table of the families: how many cases, how many times as fast as torch, and the slowest."""
    ratios: dict[str, list[tuple[float, str]]] = {}
    for c in results["cases"]:
        if "torch" in c["peers"]:
            ratios.setdefault(c["family"], []).append((c["peers"]["torch"]["ratio"], c["name"]))
    rows = [
        "| family | cases | times as fast as torch: median | most | least | where least |",
        "|---|---|---|---|---|---|",
    ]
    for family, found in ratios.items():
        values = [ratio for ratio, _ in found]
        least, name = min(found)
        rows.append(
            f"| {family} | {len(found)} | {statistics.median(values):.2f} | {max(values):.2f} | {least:.2f} | {name} |"
        )
    return "\n".join(rows)


def aims(results: dict[str, Any]) -> str:
    """Return a Markdown table of the cases that have an aim."""
    rows = [
        "| case | cltensor | rate | of peak | aim | times as fast as torch |",
        "|---|---|---|---|---|---|",
    ]
    for c in results["cases"]:
        if c["bar"] and "torch" in c["peers"]:
            rows.append(
                f"| {label(c)} | {unit(c['median_s'])} | {rate(c)} | {percent(c['of_peak'])} | {c['bar']:g} | "
                f"{c['peers']['torch']['ratio']:.2f} |"
            )
    return "\n".join(rows)


def draw(path: Path, results: dict[str, Any]) -> None:
    """Draw a roofline plot, and bar charts of the ratios to the peers, a panel for each group, into a PNG file; without
    matplotlib print a message instead."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        print("matplotlib is not installed: no picture")
        return
    groups = {
        title: cases
        for title, families in GROUPS.items()
        if (cases := [c for c in results["cases"] if c["family"] in families and c["peers"]])
    }
    columns = _columns({title: len(cases) + 4 for title, cases in groups.items()}, COLUMNS)
    tall = max((sum(len(groups[t]) + 4 for t in column) for column in columns), default=1)
    figure = Figure(figsize=(28, 5 + 0.17 * tall), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    top, below = figure.subfigures(2, 1, height_ratios=(5, 0.17 * tall))
    words, roof = top.subplots(1, 2, width_ratios=(1, 2))
    _facts(words, results)
    _roofline(roof, results, groups)
    for part, column in zip(below.subfigures(1, COLUMNS, squeeze=False)[0], columns):
        heights = [len(groups[t]) + 2 for t in column]
        left_over = tall - sum(heights) - 2 * len(column)
        panels = part.subplots(len(column) + 1, 1, height_ratios=(*heights, max(left_over, 0.01)), squeeze=False)[:, 0]  # fmt: skip
        panels[-1].axis("off")
        for panel, title in zip(panels, column):
            _bars(panel, title, groups[title])
    canvas.print_png(path)


def _columns(heights: dict[str, int], count: int) -> list[list[str]]:
    """Return the panels' titles divided among `count` columns: tallest first, each into the shortest column so far."""
    columns: list[list[str]] = [[] for _ in range(count)]
    for title in sorted(heights, key=lambda t: -heights[t]):
        min(columns, key=lambda c: sum(heights[t] for t in c)).append(title)
    return [c for c in columns if c]


def _facts(axes: Any, results: dict[str, Any]) -> None:
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    facts = [
        results["device_name"],
        results["driver"],
        f"{results['host']}; {results['threads']} threads each; {results['when']}",
        versions,
        peak_words(results["peak"]),
        "Bars: times as fast as torch eager; red where an aim is missed; a whisker from quartile to quartile.",
        "Marks: times as fast as the other libraries.",
    ]
    axes.axis("off")
    axes.text(0, 0.95, "\n\n".join(facts), va="top", wrap=True, fontsize=11)


def _roofline(axes: Any, results: dict[str, Any], groups: dict[str, list[dict[str, Any]]]) -> None:
    peak = results["peak"]
    intensities = [2.0**k for k in range(-4, 11)]
    for name in (n for n in peak if n != "flops"):
        roof = [min(peak["flops"], i * peak[name]) for i in intensities]
        axes.loglog(intensities, roof, "k-" if name == "copy" else "k:", linewidth=1)
    for title, cases in groups.items():
        both = [c for c in cases if c["flops"] and c["bytes"]]
        if both:
            xs = [c["flops"] / c["bytes"] for c in both]
            axes.loglog(xs, [c["flops"] / c["median_s"] for c in both], "o", label=title)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="lower right")
    axes.set(xlabel="operations per byte", ylabel="operations per second")
    axes.set_title("roofline: copies (line), reads, writes and updates (dotted), multiply-adds")


def _bars(axes: Any, title: str, cases: list[dict[str, Any]]) -> None:
    places = range(len(cases))
    for place, c in zip(places, cases):
        if (t := c["peers"].get("torch")) is not None:
            low, value, high = (math.log2(t[k]) for k in ("low", "ratio", "high"))
            axes.barh(place, value, color="tab:red" if c["bar"] and t["ratio"] < c["bar"] else "tab:blue")  # fmt: skip
            axes.plot((low, high), (place, place), "k-", linewidth=0.8)
    for name, (mark, colour) in PEER_MARKS.items():
        found = [(k, c["peers"][name]["ratio"]) for k, c in zip(places, cases) if name in c["peers"]]  # fmt: skip
        if found:
            xs = [min(math.log2(ratio), WIDEST) for _, ratio in found]
            axes.plot(xs, [k for k, _ in found], mark, color=colour, label=name, markersize=5)
            axes.legend(loc="lower right", fontsize=8)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(list(places), [label(c) for c in cases], fontsize=8)
    axes.set_ylim(len(cases) - 0.4, -0.6)
    axes.set_xlim(-WIDEST / 2, WIDEST)
    ticks = range(-WIDEST // 2, WIDEST + 1, 2)
    axes.set_xticks(list(ticks), [f"{2.0**t:g}" for t in ticks])
    axes.grid(axis="x", linewidth=0.3)
    axes.set_title(title, fontsize=10)
