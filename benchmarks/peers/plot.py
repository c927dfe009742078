"""Curves as SVG, in a few lines: text that git can compare, without a library to draw."""

from collections.abc import Mapping, Sequence
from math import ceil, floor, log10

from goqueue.cli.bench.report import show

WIDTH, HEIGHT = 720, 400
FONT = 'font-family="sans-serif" font-size="13"'
LEFT, RIGHT, TOP, BOTTOM = 80, 210, 50, 60
COLOURS = ("#0b63b5", "#c1440e", "#2a8a3e", "#7a3fa0", "#a57c00", "#4d4d4d")

Curve = Sequence[tuple[float, float]]
"""Points by growing x."""


def plot(title: str, x_title: str, y_title: str, curves: Mapping[str, Curve]) -> str:
    """Both axes are logarithmic: what doubles with every doubling is a straight line, what does not grow is flat."""
    xs = sorted({x for curve in curves.values() for x, _ in curve})
    ys = [y for curve in curves.values() for _, y in curve]
    x_low, x_high = log10(xs[0]), max(log10(xs[-1]), log10(xs[0]) + 0.1)
    y_low, y_high = floor(log10(min(ys))), max(ceil(log10(max(ys))), floor(log10(min(ys))) + 1)

    def x_at(x: float) -> float:
        return LEFT + (log10(x) - x_low) / (x_high - x_low) * (WIDTH - LEFT - RIGHT)

    def y_at(y: float) -> float:
        return HEIGHT - BOTTOM - (log10(y) - y_low) / (y_high - y_low) * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {FONT}>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        _text(LEFT, 26, title, "start", 'font-weight="bold"'),
        _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 16, x_title, "middle"),
        _text(LEFT, TOP - 8, y_title, "start"),
    ]
    for x in xs:
        parts.append(_line(x_at(x), TOP, x_at(x), HEIGHT - BOTTOM))
        parts.append(_text(x_at(x), HEIGHT - BOTTOM + 18, show(float(x)), "middle"))
    for power in range(y_low, y_high + 1):
        parts.append(_line(LEFT, y_at(10.0**power), WIDTH - RIGHT, y_at(10.0**power)))
        parts.append(_text(LEFT - 8, y_at(10.0**power) + 4, show(10.0**power), "end"))
    for number, (name, curve) in enumerate(curves.items()):
        colour = COLOURS[number % len(COLOURS)]
        points = " ".join(f"{x_at(x):.1f},{y_at(y):.1f}" for x, y in curve)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x_at(x):.1f}" cy="{y_at(y):.1f}" r="3.5" fill="{colour}"/>' for x, y in curve]
        at = TOP + 20 + 22 * number
        parts.append(f'<rect x="{WIDTH - RIGHT + 16}" y="{at - 9}" width="12" height="8" fill="{colour}"/>')
        parts.append(_text(WIDTH - RIGHT + 34, at, name, "start"))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _text(x: float, y: float, words: str, anchor: str, more: str = "") -> str:
    escaped = words.replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{escaped}</text>'.replace(" >", ">")


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#dddddd"/>'
