"""A profile as a table: torch's columns, and for kernels also bytes, rate and share of the device's peak.

Must not know how events are collected.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .events import DeviceType, EventList, device_attribute, format_time

_WIDTH = 12
_SHAPES = "Input Shapes"
_SCALES = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.2f}%" if whole else "NaN"


def _bytes(count: int) -> str:
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(count) >= size:
            return f"{count / size:.2f} {unit}"
    return f"{count} B"


def _cut(text: str, width: int | None) -> str:
    return text if width is None or len(text) < width - 3 else text[: width - 3] + "..."


def _tail(path: str, width: int) -> str:
    return path if len(path) <= width else "..." + path[len(path) - width + 3 :]


def table(
    events: EventList,
    sort_by: str | None,
    row_limit: int,
    source_width: int | None,
    name_width: int | None,
    shapes_width: int | None,
    header: str | None,
    top_level_only: bool,
    unit: str | None,
) -> str:
    """Return the table that `EventList.table` describes; "" for no events, AttributeError for an unknown key."""
    if not events:
        return ""
    rows = list(events)
    if sort_by is not None:
        rows.sort(key=lambda e: getattr(e, device_attribute(sort_by)), reverse=True)
    columns = _columns(events, rows, name_width, shapes_width, unit)
    heads = [head for head, _ in columns]
    widths = [max(_WIDTH, len(head)) for head in heads]
    widths[0] = min(max(len(e.key) for e in rows) + 4, name_width or 1 << 30)
    if _SHAPES in heads:
        longest = max(len(str(e.input_shapes)) for e in rows) + 4
        widths[heads.index(_SHAPES)] = min(longest, shapes_width or 1 << 30)
    stacks = any(e.stack for e in rows)
    if stacks:
        heads.append("Source Location")
        widths.append(min(max(len(f) for e in rows for f in e.stack) + 4, source_width or 1 << 30))

    def line(values: list[str]) -> str:
        right = [f"{v:>{w}}  " for v, w in zip(values, widths, strict=False)]
        if stacks and len(values) == len(widths):
            right[-1] = f"{values[-1]:<{widths[-1]}}  "
        return "".join(right)

    rule = "".join("-" * w + "  " for w in widths)
    text = []
    if header is not None:
        text += ["=" * (len(rule) - 2), header]
    if top_level_only:
        text += ["=" * (len(rule) - 2), "This report only display top-level ops statistics"]
    text += [rule, line(heads), rule]
    shown = [e for e in rows if not (top_level_only and e.cpu_parent is not None)]
    for e in shown[: row_limit if row_limit >= 0 else None]:
        values = [cell(e) for _, cell in columns]
        if stacks:
            first, *more = [_tail(entry, widths[-1]) for entry in e.stack] or [""]
            text.append(line([*values, first]))
            text += [line([*[""] * len(values), frame]) for frame in (*more, "")]
        else:
            text.append(line(values))
    return "\n".join([*text, rule, *_totals(events, rows, unit)]) + "\n"


def _columns(
    events: EventList,
    rows: list[Any],
    name_width: int | None,
    shapes_width: int | None,
    unit: str | None,
) -> list[tuple[str, Callable[[Any], str]]]:
    """Return the columns that these rows need: each one's heading, and the function from a row to its text."""
    cpu, device = _self_cpu(rows), _device_name(events, rows)
    columns: list[tuple[str, Callable[[Any], str]]] = [
        ("Name", lambda e: _cut(e.key, name_width)),
        ("Self CPU %", lambda e: _share(e.self_cpu_time_total, cpu)),
        ("Self CPU", lambda e: format_time(e.self_cpu_time_total, unit)),
        ("CPU total %", lambda e: _share(e.cpu_time_total, cpu)),
        ("CPU total", lambda e: format_time(e.cpu_time_total, unit)),
        ("CPU time avg", lambda e: format_time(e.cpu_time, unit)),
    ]
    if _on_device(rows):
        whole = _self_device(rows)
        columns += [
            (f"Self {device}", lambda e: format_time(e.self_device_time_total, unit)),
            (f"Self {device} %", lambda e: _share(e.self_device_time_total, whole)),
            (f"{device} total", lambda e: format_time(e.device_time_total, unit)),
            (f"{device} time avg", lambda e: format_time(e.device_time, unit)),
        ]
    if events.profile_memory:
        columns += [
            ("CPU Mem", lambda e: _bytes(e.cpu_memory_usage)),
            ("Self CPU Mem", lambda e: _bytes(e.self_cpu_memory_usage)),
        ]
        if any(e.device_memory_usage for e in rows):
            columns += [
                (f"{device} Mem", lambda e: _bytes(e.device_memory_usage)),
                (f"Self {device} Mem", lambda e: _bytes(e.self_device_memory_usage)),
            ]
    columns.append(("# of Calls", lambda e: str(e.count)))
    if _on_device(rows):
        columns += [
            ("Bytes", lambda e: _bytes(e.nbytes) if e.nbytes else "--"),
            ("Rate", lambda e: e.rate[0] or "--"),
            ("% of peak", lambda e: e.rate[1] or "--"),
        ]
    if any(e.input_shapes for e in rows):
        columns.append((_SHAPES, lambda e: str(e.input_shapes)[: shapes_width or None]))
    scale = _flops_scale(rows) if events.with_flops else None
    if scale is not None:
        each = 1000**scale
        columns.append(
            (f"Total {_SCALES[scale]}", lambda e: f"{e.flops / each:8.3f}" if e.flops else "--")
        )
    return columns


def _totals(events: EventList, rows: list[Any], unit: str | None) -> list[str]:
    text = [f"Self CPU time total: {format_time(_self_cpu(rows), unit)}"]
    if _on_device(rows):
        total = format_time(_self_device(rows), unit)
        text.append(f"Self {_device_name(events, rows)} time total: {total}")
    return text


def _device_name(events: EventList, rows: list[Any]) -> str:
    return (events.use_device or rows[0].use_device or "None").upper()


def _on_device(rows: list[Any]) -> bool:
    return any(e.self_device_time_total > 0 for e in rows)


def _self_cpu(rows: list[Any]) -> float:
    return sum(e.self_cpu_time_total for e in rows)


def _self_device(rows: list[Any]) -> float:
    return sum(e.self_device_time_total for e in rows if e.device_type is not DeviceType.CPU)


def _flops_scale(rows: list[Any]) -> int | None:
    found = [e.flops for e in rows if e.flops > 0]
    if not found:
        return None
    scale = 0
    while scale < len(_SCALES) - 1 and min(found) >= 1000 ** (scale + 1):
        scale += 1
    return scale
