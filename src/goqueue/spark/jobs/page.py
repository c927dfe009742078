"""The page of a report: one HTML file with everything in it."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from html import escape
from typing import Any

from goqueue.spark.jobs.charts import Points, bars, lines
from goqueue.spark.jobs.telling import cell

Rows = Sequence[Mapping[str, Any]]
BARS_MAX = 20

_STYLE = """
:root { color-scheme: light dark; --ink: #1f2937; --pale: #6b7280; --line: #e5e7eb; --back: #ffffff; }
@media (prefers-color-scheme: dark) { :root { --ink: #e5e7eb; --pale: #9ca3af; --line: #374151; --back: #111827; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--back); margin: 2rem auto;
  max-width: 62rem; padding: 0 1rem; }
h1 { margin-bottom: 0; } h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); }
.pale, .none { color: var(--pale); } .tiles { display: flex; flex-wrap: wrap; gap: 1rem; margin: 1.5rem 0; }
.tiles div { border: 1px solid var(--line); border-radius: 8px; padding: .6rem 1.1rem; }
.tiles b { display: block; font-size: 1.5rem; }
svg { width: 100%; height: auto; display: block; } svg text { font-size: 11px; fill: var(--pale); }
svg .grid { stroke: var(--line); } .legend span { margin-right: 1.2rem; font-size: 13px; }
.legend i { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: .4rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: 13px; margin: 1rem 0; }
th, td { padding: .25rem .8rem .25rem 0; text-align: left; border-bottom: 1px solid var(--line); white-space: nowrap; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
details summary { cursor: pointer; color: var(--pale); }
"""


def page(tables: Mapping[str, Rows], *, title: str, span: str, made: datetime) -> str:
    body = [
        f"<h1>{escape(title)}</h1><p class='pale'>{escape(span)}; made {made:%Y-%m-%d %H:%M:%S} UTC</p>",
        _tiles(tables),
        *(_section(heading, chart(tables[name]), tables[name]) for name, heading, chart in _SECTIONS if name in tables),
    ]
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>\n'
        f"<body>{''.join(body)}</body></html>\n"
    )


def _tiles(tables: Mapping[str, Rows]) -> str:
    def total(table: str, column: str) -> int:
        return sum(row[column] or 0 for row in tables.get(table, ()))

    worst = max((row["p99_ms"] for row in tables.get("latency", ()) if row["stage"] == "end to end"), default=None)
    tiles = {
        "messages": f"{total('throughput', 'messages'):,}",
        "end to end, p99": "-" if worst is None else f"{worst:,} ms",
        "delivered in vain": f"{total('retries', 'nacked') + total('retries', 'lease_ended'):,}",
        "dead letters": f"{total('dead_letters', 'messages'):,}",
        "lag now": f"{total('lag', 'lag'):,}",
    }
    return '<div class="tiles">' + "".join(f"<div><b>{each}</b>{name}</div>" for name, each in tiles.items()) + "</div>"


def _section(heading: str, chart: str, rows: Rows) -> str:
    if not rows:
        return f'<h2>{escape(heading)}</h2><p class="none">nothing found</p>'
    return f"<h2>{escape(heading)}</h2>{chart}<details><summary>{len(rows)} rows</summary>{_table(rows)}</details>"


def _table(rows: Rows) -> str:
    titles = list(rows[0])
    numbers = {title for title in titles if all(isinstance(row[title], int | float | None) for row in rows)}

    def line(tag: str, texts: Mapping[str, str]) -> str:
        cells = (
            f"<{tag}{' class=number' if title in numbers else ''}>{escape(text)}</{tag}>"
            for title, text in texts.items()
        )
        return f"<tr>{''.join(cells)}</tr>"

    head = line("th", {title: title.replace("_", " ") for title in titles})
    body = "".join(line("td", {title: cell(row[title]) for title in titles}) for row in rows)
    return f'<div class="wide"><table>{head}{body}</table></div>'


def _over_time(value: str, *names: str, unit: str = "") -> Callable[[Rows], str]:
    def draw(rows: Rows) -> str:
        series: dict[str, list[tuple[datetime, float]]] = defaultdict(list)
        for row in rows:
            series[_label(row, names)].append((row["window"], float(row[value])))
        found: Mapping[str, Points] = series
        return lines(found, unit)

    return draw


def _latency(rows: Rows) -> str:
    chosen = sorted(rows, key=lambda row: (row["stage"] != "end to end", -row["p99_ms"]))[:BARS_MAX]
    values = {
        _label(row, ("topic", "group", "lane", "stage")): [float(row[name]) for name in ("p50_ms", "p95_ms", "p99_ms")]
        for row in chosen
    }
    return bars(values, ("p50", "p95", "p99"), " ms")


def _counted(value: str, *names: str) -> Callable[[Rows], str]:
    def draw(rows: Rows) -> str:
        chosen = sorted(rows, key=lambda row: -(row[value] or 0))[:BARS_MAX]
        return bars({_label(row, names): [float(row[value] or 0)] for row in chosen}, (value,))

    return draw


def _label(row: Mapping[str, Any], names: Sequence[str]) -> str:
    return " · ".join(str(row[name]) for name in names if row[name] not in (None, "normal"))


_SECTIONS: tuple[tuple[str, str, Callable[[Rows], str]], ...] = (
    ("throughput", "Messages a second", _over_time("messages_per_second", "topic", "lane")),
    ("latency", "Latency", _latency),
    ("lag_over_time", "Lag over time", _over_time("lag", "topic", "group")),
    ("lag", "Lag now", _counted("lag", "group", "topic")),
    ("retries", "Deliveries in vain", _counted("nacked", "topic", "group", "lane")),
    ("dead_letters", "Dead letters", _counted("messages", "topic", "group", "reason", "lane")),
)
