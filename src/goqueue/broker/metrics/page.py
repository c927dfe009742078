"""One answer to one scrape: the values by metric and labels, and their text.

The text is what prometheus-client would write, and tests compare the two; but it takes 10 us for a line, and a node
with a thousand topics has tens of thousands.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate
from typing import Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.samples import Exemplar

from goqueue.broker.metrics.catalogue import BY_NAME, COUNTER, GAUGE, HISTOGRAM
from goqueue.telemetry.histogram import Histogram
from goqueue.telemetry.trace_ids import Spot

NODE_ID = "node_id"
LABELS = "\0"
"""Where the labels go in a template."""
TOTAL = "_total"
OTHER = "_other"
"""Stands for all that are too many to have a series of their own."""

Values = tuple[str, ...]


class Bound:
    """Names that have series of their own: the first that came, as long as they are there. So a series does not come
    and go because of others.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._named: dict[Values, None] = {}
        self._seen: dict[Values, None] = {}

    def label(self, values: Values) -> Values:
        if values not in self._named:
            if len(self._named) >= self._most:
                return (OTHER,) * len(values)
            self._named[values] = None
        self._seen[values] = None
        return values

    def end(self) -> None:
        """Of a scrape: whoever was not seen makes room."""
        if len(self._seen) < len(self._named):
            self._named = {values: None for values in self._named if values in self._seen}
        self._seen = {}


class Page:
    def __init__(self, node_id: str) -> None:
        self._node_id = node_id
        self._numbers: dict[str, dict[Values, float]] = {}
        self._histograms: dict[str, dict[Values, Histogram]] = {}
        self._extra: dict[str, tuple[str, ...]] = {}

    def add(self, name: str, values: Values, number: float) -> None:
        """To what there is under these labels."""
        rows = self._numbers.get(name)
        if rows is None:
            rows = self._numbers[name] = {}
        rows[values] = rows.get(values, 0) + number

    def add_partition(self, name: str, values: Values, number: float) -> None:
        """As `add`, with the number of a partition behind the other labels."""
        self._extra[name] = ("partition",)
        self.add(name, values, number)

    def observe(self, name: str, values: Values, histogram: Histogram) -> None:
        rows = self._histograms.setdefault(name, {})
        before = rows.get(values)
        if before is not None:
            both = before.copied()
            both.add(histogram)
            histogram = both
        rows[values] = histogram

    def detach(self) -> None:
        """From what goes on being counted, so that another thread may read it."""
        for rows in self._histograms.values():
            for values, histogram in rows.items():
                rows[values] = histogram.copied()

    def number(self, name: str, values: Values = ()) -> float:
        return self._numbers.get(name, {}).get(values, 0)

    def _labels(self, name: str) -> tuple[str, ...]:
        return (*BY_NAME[name].labels, *self._extra.get(name, ()), NODE_ID)

    # -- as prometheus-client has it

    def families(self, identify: "Identify") -> Iterator[Metric]:
        for name, rows in self._numbers.items():
            metric = BY_NAME[name]
            make = CounterMetricFamily if metric.kind == COUNTER else GaugeMetricFamily
            family = make(name.removesuffix(TOTAL), metric.help, labels=self._labels(name))
            for values, number in rows.items():
                family.add_metric((*values, self._node_id), number)
            yield family
        for name, histograms in self._histograms.items():
            histogram_family = HistogramMetricFamily(name, BY_NAME[name].help, labels=self._labels(name))
            for values, histogram in histograms.items():
                buckets = [_bucket(*each) for each in _cumulated(histogram, identify)]
                histogram_family.add_metric((*values, self._node_id), buckets, histogram.total)
            yield histogram_family

    # -- as text

    def text(self, identify: "Identify", *, is_openmetrics: bool) -> str:
        lines: list[str] = []
        known: dict[tuple[tuple[str, ...], Values], str] = {}
        for name, rows in self._numbers.items():
            names = self._labels(name)
            metric = BY_NAME[name]
            _head(lines, name.removesuffix(TOTAL) if is_openmetrics else name, metric.kind, metric.help)
            for values, number in rows.items():
                labels = known.get((names, values))
                if labels is None:
                    labels = known[names, values] = _quoted(names, (*values, self._node_id))
                lines.append(f"{name}{{{labels}}} {number}\n")
        for name, histograms in self._histograms.items():
            names = self._labels(name)
            _head(lines, name, HISTOGRAM, BY_NAME[name].help)
            for values, histogram in histograms.items():
                labels = known.get((names, values)) or _quoted(names, (*values, self._node_id))
                if is_openmetrics and histogram.examples:
                    lines.append(_with_examples(name, labels, histogram, identify))
                else:
                    lines.append(_plain(name, labels, histogram))
        return "".join(lines)


class Identify(Protocol):
    """Who knows which trace a record belongs to."""

    def trace_id(self, spot: Spot) -> str: ...


Bucket = tuple[str, int, Exemplar | None]


def _plain(name: str, labels: str, histogram: Histogram) -> str:
    """All lines at once: most of a page are buckets."""
    counts = tuple(accumulate(histogram.counts))
    template = _template(name, tuple(histogram.bounds)).replace(LABELS, labels.replace("%", "%%"))
    return template % (*counts, counts[-1], histogram.total)


@cache
def _template(name: str, bounds: tuple[float, ...]) -> str:
    buckets = "".join(f'{name}_bucket{{le="{bound}",{LABELS}}} %d\n' for bound in (*bounds, "+Inf"))
    return f"{buckets}{name}_count{{{LABELS}}} %d\n{name}_sum{{{LABELS}}} %r\n"


def _with_examples(name: str, labels: str, histogram: Histogram, identify: Identify) -> str:
    buckets = "".join(
        f'{name}_bucket{{le="{bound}",{labels}}} {count}{_exemplar(example) if example is not None else ""}\n'
        for bound, count, example in _cumulated(histogram, identify)
    )
    return f"{buckets}{name}_count{{{labels}}} {histogram.count}\n{name}_sum{{{labels}}} {histogram.total}\n"


def _cumulated(histogram: Histogram, identify: Identify) -> Iterator[Bucket]:
    count = 0
    for number, (bound, more) in enumerate(zip((*map(str, histogram.bounds), "+Inf"), histogram.counts, strict=True)):
        count += more
        example = histogram.examples.get(number)
        if example is None:
            yield bound, count, None
        else:
            labels = {"trace_id": identify.trace_id(example.spot)}
            yield bound, count, Exemplar(labels, example.seconds, example.at_ms / 1000)


def _bucket(bound: str, count: int, exemplar: Exemplar | None) -> tuple[str, float] | tuple[str, float, Exemplar]:
    return (bound, count) if exemplar is None else (bound, count, exemplar)


def _exemplar(exemplar: Exemplar) -> str:
    return f' # {{trace_id="{exemplar.labels["trace_id"]}"}} {exemplar.value} {exemplar.timestamp}'


def _head(lines: list[str], name: str, kind: str, meaning: str) -> None:
    lines.append(f"# HELP {name} {meaning}\n# TYPE {name} {kind}\n")


def _quoted(names: Sequence[str], values: Values) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True))


def _escaped(value: str) -> str:
    if value.isascii() and value.isprintable() and "\\" not in value and '"' not in value:
        return value
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


__all__ = ["COUNTER", "GAUGE", "Bound", "Identify", "Page", "Values"]
