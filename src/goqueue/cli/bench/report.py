"""What was found, as a table for people and as JSON for programs."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from goqueue.cli.bench.load import Load
from goqueue.model.own_version import own_version

QUANTILES = {"p50": 0.5, "p99": 0.99, "p999": 0.999}

LABELS = {
    "messages_per_s": "rate",
    "mib_per_s": "throughput",
    "messages_per_request": "messages in a request",
    "broker_cpu_us_per_message": "broker CPU for a message",
    "broker_cpu_us_per_request": "broker CPU for a request",
    "client_cpu_us_per_message": "client CPU for a message",
    "broker_rss_mib": "broker memory",
    "broker_rss_anonymous_mib": "broker memory without mapped files",
} | {
    f"{name}_{quantile}_ms": f"{words}, {quantile.replace('p999', 'p99.9')}"
    for name, words in (
        ("publish", "publish"),
        ("delivery", "delivery"),
        ("raw_echo", "raw echo"),
        ("raw_sync", "raw sync"),
    )
    for quantile in QUANTILES
}
"""Every figure that there can be: its key in JSON, which tells its unit, and its name in a table with a unit column."""


class Figure(NamedTuple):
    value: float
    unit: str
    raw: float | None = None
    """The raw operation on the same bytes in the same run."""

    @property
    def ratio(self) -> float | None:
        return self.value / self.raw if self.raw else None


@dataclass(frozen=True)
class Report:
    kind: str
    load: Load
    broker: str
    """Its address."""
    durability: str | None
    """As the broker itself says; None if it knows no such option."""
    filesystem: str | None
    """Under the broker's data, if it is our own."""
    counts: Mapping[str, int]
    figures: Mapping[str, Figure] = field(default_factory=dict)

    def as_json(self) -> str:
        load = self.load
        document = {
            "goqueue": own_version(),
            "bench": self.kind,
            "broker": {"kafka": self.broker, "is_own": self.filesystem is not None, "filesystem": self.filesystem},
            "load": {
                "messages": load.messages,
                "bytes": load.value_bytes,
                "batch": load.batch,
                "partitions": load.partitions,
                "durability": self.durability,
            },
            "counts": dict(self.counts),
            "figures": {name: {**each._asdict(), "ratio": each.ratio} for name, each in self.figures.items()},
        }
        return json.dumps(document, indent=2)

    def as_table(self) -> str:
        rows = [
            (LABELS[name], show(each.value), each.unit, show(each.raw), show(each.ratio))
            for name, each in self.figures.items()
        ]
        durability = f", durability {self.durability}" if self.durability else ""
        if self.filesystem is None:
            place = f"broker at {self.broker}: only what a client can see is measured"
        else:
            place = f"a broker of its own on {self.filesystem}; raw: the same bytes without a broker"
        counts = ", ".join(f"{number:,} {name}" for name, number in self.counts.items())
        head = [f"goqueue bench {self.kind}: {self.load.describe()}{durability}", place, counts, ""]
        return "\n".join([*head, *align([("figure", "value", "unit", "raw", "ratio"), *rows])])


def align(rows: Sequence[tuple[str, str, str, str, str]]) -> list[str]:
    """Columns of equal width: words to the left, numbers to the right; raw columns only if something is in them."""
    columns = [column for column in zip(*rows) if any(column[1:])]
    words = (0, 2)
    padded = []
    for number, column in enumerate(columns):
        width = max(map(len, column))
        padded.append([cell.ljust(width) if number in words else cell.rjust(width) for cell in column])
    return ["  ".join(cells).rstrip() for cells in zip(*padded)]


def show(value: float | None) -> str:
    """Three digits that matter: more would pretend a precision that no shared machine has."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def quantiles(samples: Sequence[float]) -> dict[str, float]:
    """Samples that were really seen, none in between: the smallest that so many others do not exceed."""
    ordered = sorted(samples)
    return {name: ordered[math.ceil(share * len(ordered)) - 1] for name, share in QUANTILES.items()}
