"""Charts as inline SVG: no script, no font and no other file, so that a page with them can be mailed or kept."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from math import ceil, floor, log10

WIDTH, HEIGHT = 720, 220
LEFT, RIGHT, TOP, BOTTOM = 64, 12, 12, 26
COLOURS = ("#2563eb", "#ea580c", "#059669", "#7c3aed", "#dc2626", "#0891b2", "#a16207", "#be185d")
LINES_MAX = len(COLOURS)
BAR, GAP = 18, 8
LABEL, VALUES = 250, 140

Points = Sequence[tuple[datetime, float]]


def lines(series: Mapping[str, Points], unit: str = "") -> str:
    """Values over time, one line for each name. The largest ones, where there are more than colours."""
    shown = dict(sorted(series.items(), key=lambda one: -max((y for _, y in one[1]), default=0))[:LINES_MAX])
    times = sorted({at.timestamp() for points in shown.values() for at, _ in points})
    if not times:
        return '<p class="none">nothing to draw</p>'
    begin, end = times[0], max(times[-1], times[0] + 1)
    top = nice_top(max(value for points in shown.values() for _, value in points))

    def x(at: float) -> float:
        return LEFT + (at - begin) / (end - begin) * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM)

    parts = [_grid(top, unit, y)]
    for number in range(5):
        at = begin + (end - begin) * number / 4
        anchor = ("start", "middle", "middle", "middle", "end")[number]
        label = datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S" if end - begin < 86_400 else "%m-%d %H:%M")
        parts.append(f'<text x="{x(at):.1f}" y="{HEIGHT - 8}" text-anchor="{anchor}">{label}</text>')
    for colour, points in zip(COLOURS, shown.values()):
        places = [(x(at.timestamp()), y(value)) for at, value in sorted(points)]
        path = " ".join(f"{left:.1f},{up:.1f}" for left, up in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{left:.1f}" cy="{up:.1f}" r="2.5" fill="{colour}"/>' for left, up in places]
    legend = "".join(
        f'<span><i style="background:{colour}"></i>{escape(name)}</span>' for colour, name in zip(COLOURS, shown)
    )
    left_out = f"<span>and {len(series) - len(shown)} smaller ones</span>" if len(series) > len(shown) else ""
    return _svg(HEIGHT, parts) + f'<p class="legend">{legend}{left_out}</p>'


def _grid(top: float, unit: str, y: "object") -> str:
    assert callable(y)
    parts = []
    for number in range(5):
        value = top * number / 4
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}" class="grid"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{short(value)}{unit}</text>')
    return "".join(parts)


def bars(values: Mapping[str, Sequence[float]], names: Sequence[str], unit: str = "") -> str:
    """For each label one bar inside the other: the last of its values is the longest and the palest."""
    if not values:
        return '<p class="none">nothing to draw</p>'
    top = max(max(each) for each in values.values()) or 1
    room = WIDTH - LABEL - VALUES
    parts = []
    for number, (label, each) in enumerate(values.items()):
        up = number * (BAR + GAP)
        cut = label if len(label) <= 38 else f"{label[:37]}…"
        parts.append(
            f'<text x="{LABEL - 8}" y="{up + 13}" text-anchor="end">{escape(cut)}<title>{escape(label)}</title></text>'
        )
        for depth, value in reversed(list(enumerate(each))):
            opacity = 1 - depth * 0.6 / max(1, len(each) - 1)
            width = max(1.0, value / top * room)
            parts.append(
                f'<rect x="{LABEL}" y="{up}" width="{width:.1f}" height="{BAR}" rx="2" fill="{COLOURS[0]}"'
                f' opacity="{opacity:.2f}"><title>{escape(names[depth])} {short(value)}{unit}</title></rect>'
            )
        told = " / ".join(short(value) for value in each)
        end = LABEL + max(each) / top * room + 6
        parts.append(f'<text x="{end:.1f}" y="{up + 13}">{told}{unit}</text>')
    legend = f'<p class="legend"><span>{escape(" / ".join(names))}</span></p>' if len(names) > 1 else ""
    return _svg(len(values) * (BAR + GAP), parts) + legend


def _svg(height: int, parts: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img">{"".join(parts)}</svg>'


def nice_top(highest: float) -> float:
    """The end of an axis: a round number at or above the highest value."""
    if highest <= 0:
        return 1.0
    power = 10.0 ** floor(log10(highest))
    return next(power * step for step in (1, 2, 4, 5, 8, 10) if power * step >= highest * 0.999)


def short(value: float) -> str:
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            return f"{value / (1e3 if unit == 'k' else limit):.3g}{unit}"
    if value == int(value):
        return f"{int(value)}"
    return f"{value:.3g}" if abs(value) < 100 else f"{ceil(value)}"
