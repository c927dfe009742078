"""One answer to one scrape: the values by metric and labels, and their text."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.samples import Exemplar

from goqueue.broker.metrics.catalogue import BY_NAME, COUNTER, HISTOGRAM
from goqueue.broker.metrics.lines import Lines, Values, quoted
from goqueue.model.tenancy import DEFAULT_TENANT, MARK, full, tenant_of
from goqueue.telemetry.histogram import Histogram
from goqueue.telemetry.trace_ids import Spot

NODE_ID = "node_id"
TOTAL = "_total"
OTHER = "_other"
"""Stands for all that are too many to have a series of their own."""


TENANT = "tenant"
NAMING = ("topic", "consumer_group")
"""Labels that are names; one of them is the first."""


def is_other(values: Values) -> bool:
    return values[0].rpartition(MARK)[2] == OTHER


class Bound:
    """Names that have series of their own: of each tenant the first that came, as long as they are there. So a series
    does not come and go because of others.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.tenants: Mapping[str, object] = {}
        self._named: dict[str, dict[Values, None]] = {}
        """By tenant."""
        self._seen: dict[Values, None] = {}

    def label(self, values: Values) -> Values:
        tenant = tenant_of(values[0], self.tenants) if self.tenants else DEFAULT_TENANT
        named = self._named.get(tenant)
        if named is None:
            named = self._named[tenant] = {}
        if values not in named:
            if len(named) >= self._most:
                return (full(tenant, OTHER),) * len(values)
            named[values] = None
        self._seen[values] = None
        return values

    def end(self) -> None:
        """Of a scrape: whoever was not seen makes room."""
        if len(self._seen) < sum(map(len, self._named.values())):
            seen = {tenant: [each for each in named if each in self._seen] for tenant, named in self._named.items()}
            self._named = {tenant: dict.fromkeys(named) for tenant, named in seen.items() if named}
        self._seen = {}


class Labels:
    """Of what is told: where there are tenants, names are plain and have the tenant beside them. Those of the default
    one have an empty label, which is the same to Prometheus as none."""

    def __init__(self, node_id: str, tenants: Mapping[str, object]) -> None:
        self._node_id = node_id
        self.tenants = tenants

    def names(self, labels: tuple[str, ...]) -> tuple[str, ...]:
        return (*labels, TENANT, NODE_ID) if self._splits(labels) else (*labels, NODE_ID)

    def values(self, labels: Sequence[str], values: Values) -> Values:
        """`labels`: without those that are added here, or with them."""
        if not self._splits(labels):
            return (*values, self._node_id)
        tenant = tenant_of(values[0], self.tenants)
        if tenant == DEFAULT_TENANT:
            return (*values, "", self._node_id)
        prefix = full(tenant, "")
        return (*(each.removeprefix(prefix) for each in values), tenant, self._node_id)

    def _splits(self, labels: Sequence[str]) -> bool:
        return bool(self.tenants) and labels[:1] != () and labels[0] in NAMING


class Page:
    def __init__(self, labels: Labels) -> None:
        self._told = labels
        self._numbers: dict[str, dict[Values, float]] = {}
        self._histograms: dict[str, dict[Values, Histogram]] = {}
        self._extra: dict[str, tuple[str, ...]] = {}

    def column(self, name: str) -> dict[Values, float]:
        """For whoever has much to add to one metric."""
        rows = self._numbers.get(name)
        if rows is None:
            rows = self._numbers[name] = {}
        return rows

    def add(self, name: str, values: Values, number: float) -> None:
        """To what there is under these labels."""
        rows = self.column(name)
        rows[values] = rows.get(values, 0) + number

    def fill(self, name: str, labels: Sequence[Values], numbers: Sequence[float]) -> None:
        """As `add` for each of them; what has labels of its own, as nearly all have, goes in at once."""
        column = self.column(name)
        new: dict[Values, float] = dict(zip(labels, numbers, strict=True))
        if len(new) < len(labels):
            for several in [values for values, times in Counter(labels).items() if times > 1]:
                new[several] = sum(number for values, number in zip(labels, numbers, strict=True) if values == several)
        if column:
            for values in column.keys() & new.keys():
                new[values] += column[values]
        column.update(new)

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
        return self._told.names((*BY_NAME[name].labels, *self._extra.get(name, ())))

    def of_tenant(self, tenant: str) -> "Page":
        """What is told of names of one tenant."""
        page, tenants = Page(self._told), self._told.tenants
        page._extra = self._extra
        named = {metric.name for metric in BY_NAME.values() if metric.labels and metric.labels[0] in NAMING}
        for name in sorted(named & self._numbers.keys()):
            rows = self._numbers[name]
            page._numbers[name] = {each: rows[each] for each in rows if tenant_of(each[0], tenants) == tenant}
        for name in sorted(named & self._histograms.keys()):
            several = self._histograms[name]
            found = {each: several[each] for each in several if tenant_of(each[0], tenants) == tenant}
            if found:
                page._histograms[name] = found
        return page

    # -- as prometheus-client has it

    def families(self, identify: "Identify") -> Iterator[Metric]:
        for name, rows in self._numbers.items():
            metric = BY_NAME[name]
            make = CounterMetricFamily if metric.kind == COUNTER else GaugeMetricFamily
            names = self._labels(name)
            family = make(name.removesuffix(TOTAL), metric.help, labels=names)
            for values, number in rows.items():
                family.add_metric(self._told.values(names, values), number)
            yield family
        for name, histograms in self._histograms.items():
            names = self._labels(name)
            histogram_family = HistogramMetricFamily(name, BY_NAME[name].help, labels=names)
            for values, histogram in histograms.items():
                buckets = [_bucket(*each) for each in _cumulated(histogram, identify)]
                histogram_family.add_metric(self._told.values(names, values), buckets, histogram.total)
            yield histogram_family

    # -- as text

    def text(self, identify: "Identify", lines: Lines, *, is_openmetrics: bool) -> str:
        text: list[str] = []
        for name, rows in self._numbers.items():
            metric = BY_NAME[name]
            _head(text, name.removesuffix(TOTAL) if is_openmetrics else name, metric.kind, metric.help)
            text += lines.of_numbers(name, self._labels(name), rows)
        for name, histograms in self._histograms.items():
            names = self._labels(name)
            _head(text, name, HISTOGRAM, BY_NAME[name].help)
            slow = {values: each for values, each in histograms.items() if each.examples} if is_openmetrics else {}
            plain = {values: each for values, each in histograms.items() if values not in slow} if slow else histograms
            if plain:
                text += lines.of_histograms(name, names, plain)
            for values, histogram in slow.items():
                labels = quoted(names, self._told.values(names, values))
                text.append(_with_examples(name, labels, histogram, identify))
        return "".join(text)


class Identify(Protocol):
    """Who knows which trace a record belongs to."""

    def trace_id(self, spot: Spot) -> str: ...


Bucket = tuple[str, int, Exemplar | None]


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
