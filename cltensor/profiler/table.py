"""A profile as a table: torch's columns, and for kernels what the benchmark suite would say of them.

Must not know how events are collected.
"""

from __future__ import annotations

from typing import Any

from .events import DeviceType, EventList, device_attribute, format_time

_WIDTH = 12
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
    device = (events.use_device or rows[0].use_device or "None").upper()
    on_device = any(e.self_device_time_total > 0 for e in rows)
    memory = events.profile_memory
    device_memory = memory and any(e.device_memory_usage for e in rows)
    scale = _flops_scale(rows) if events.with_flops else None
    cpu_total = sum(e.self_cpu_time_total for e in rows)
    device_total = sum(
        e.self_device_time_total for e in rows if e.device_type is not DeviceType.CPU
    )

    heads = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
    if on_device:
        heads += [f"Self {device}", f"Self {device} %", f"{device} total", f"{device} time avg"]
    if memory:
        heads += ["CPU Mem", "Self CPU Mem"]
    if device_memory:
        heads += [f"{device} Mem", f"Self {device} Mem"]
    heads.append("# of Calls")
    if on_device:
        heads += ["Bytes", "Rate", "% of peak"]
    shapes = any(e.input_shapes for e in rows)
    if shapes:
        heads.append("Input Shapes")
    if scale:
        heads.append(f"Total {_SCALES[scale]}")
    stacks = any(e.stack for e in rows)
    if stacks:
        heads.append("Source Location")

    def cells(e: Any) -> list[str]:
        out = [
            _cut(e.key, name_width),
            _share(e.self_cpu_time_total, cpu_total),
            format_time(e.self_cpu_time_total, unit),
            _share(e.cpu_time_total, cpu_total),
            format_time(e.cpu_time_total, unit),
            format_time(e.cpu_time, unit),
        ]
        if on_device:
            out += [
                format_time(e.self_device_time_total, unit),
                _share(e.self_device_time_total, device_total),
                format_time(e.device_time_total, unit),
                format_time(e.device_time, unit),
            ]
        if memory:
            out += [_bytes(e.cpu_memory_usage), _bytes(e.self_cpu_memory_usage)]
        if device_memory:
            out += [_bytes(e.device_memory_usage), _bytes(e.self_device_memory_usage)]
        out.append(str(e.count))
        if on_device:
            out += [_bytes(e.nbytes) if e.nbytes else "--", *(text or "--" for text in e.rate)]
        if shapes:
            out.append(str(e.input_shapes)[: shapes_width or None])
        if scale:
            out.append(f"{e.flops / 1000**scale:8.3f}" if e.flops else "--")
        return out

    shown = [e for e in rows if not (top_level_only and e.cpu_parent is not None)]
    shown = shown[: row_limit if row_limit >= 0 else None]
    lines = [cells(e) for e in shown]
    widths = [max(_WIDTH, len(h)) for h in heads]
    widths[0] = min(max(len(e.key) for e in rows) + 4, name_width or 1 << 30)
    if shapes:
        at = heads.index("Input Shapes")
        widths[at] = min(max(len(str(e.input_shapes)) for e in rows) + 4, shapes_width or 1 << 30)
    if stacks:
        longest = max(len(entry) for e in rows for entry in e.stack) + 4
        widths[-1] = min(longest, source_width or 1 << 30)

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
    blank = [""] * (len(heads) - 1)
    for e, values in zip(shown, lines, strict=True):
        frames = [_tail(entry, widths[-1]) for entry in e.stack] if stacks else []
        text.append(line(values + (frames[:1] or [""]) if stacks else values))
        text += [line([*blank, frame]) for frame in [*frames[1:], ""]] if stacks else []
    text += [rule, f"Self CPU time total: {format_time(cpu_total, unit)}"]
    if on_device:
        text.append(f"Self {device} time total: {format_time(device_total, unit)}")
    return "\n".join(text) + "\n"


def _flops_scale(rows: list[Any]) -> int | None:
    found = [e.flops for e in rows if e.flops > 0]
    if not found:
        return None
    scale = 0
    while scale < len(_SCALES) - 1 and min(found) >= 1000 ** (scale + 1):
        scale += 1
    return scale
