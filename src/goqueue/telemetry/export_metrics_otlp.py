"""Metrics to a collector: OTLP over HTTP, by the OpenTelemetry SDK. Imported only where it is switched on.

It takes what any collector of prometheus-client yields, and keeps names and labels as they are: a query or a panel
works the same on both ways.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics import Exemplar
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from prometheus_client import Metric as Family
from prometheus_client.samples import Sample

from goqueue.telemetry.otlp import MS_NS, NOT_TAKEN, SCOPE, TIMEOUT_S, resource

POINTS_PER_REQUEST = 5000
"""About a megabyte: collectors refuse requests that are too large."""
S_NS = 1_000_000_000
UNITS = {"seconds": "s", "bytes": "By"}
"""OpenTelemetry's words for a unit that is in the name."""
CUMULATIVE = AggregationTemporality.CUMULATIVE
NO_SPAN = 0
"""An exemplar names the trace; which of its spans was slow is told there."""

Labels = Mapping[str, str]


class OtlpMetricsSink:
    name = "otlp"

    def __init__(self, endpoint: str, about: Labels, started_ms: int) -> None:
        """`started_ms`: since when counters count."""
        self._resource = resource(about)
        self._started_ns = started_ms * MS_NS
        self._exporter = OTLPMetricExporter(
            endpoint=endpoint, timeout=TIMEOUT_S, max_export_batch_size=POINTS_PER_REQUEST
        )

    def write(self, families: Iterable[Family], at_ms: int) -> None:
        """OSError: it cannot be done now."""
        span_ns = self._started_ns, at_ms * MS_NS
        metrics = [metric for family in families for metric in _metrics(family, *span_ns)]
        scope = ScopeMetrics(SCOPE, metrics, "")
        data = MetricsData([ResourceMetrics(self._resource, [scope], "")])
        if self._exporter.export(data) is not MetricExportResult.SUCCESS:
            raise OSError(NOT_TAKEN)

    def close(self) -> None:
        self._exporter.shutdown()


def _metrics(family: Family, start_ns: int, at_ns: int) -> Iterator[Metric]:
    """None, if there is nothing in it."""
    if not family.samples:
        return
    if family.type == "histogram":
        points = list(_histograms(family.samples, start_ns, at_ns))
        yield Metric(family.name, family.documentation, _unit(family.name), Histogram(points, CUMULATIVE))
        return
    name = family.samples[0].name
    numbers = [NumberDataPoint(each.labels, start_ns, at_ns, each.value) for each in family.samples]
    is_counter = family.type == "counter"
    yield Metric(
        name,
        family.documentation,
        _unit(name),
        Sum(numbers, CUMULATIVE, is_monotonic=True) if is_counter else Gauge(numbers),
    )


def _unit(name: str) -> str | None:
    return next((unit for word, unit in UNITS.items() if word in name.split("_")), None)


def _histograms(samples: Iterable[Sample], start_ns: int, at_ns: int) -> Iterator[HistogramDataPoint]:
    """Prometheus has a line for every bucket, with all that are lower; OpenTelemetry has a point for every histogram,
    and counts each in one bucket.
    """
    for labels, some in groupby(samples, _labels_but_bound):
        lines = list(some)
        buckets = [line for line in lines if line.name.endswith("_bucket")]
        upto = [int(bucket.value) for bucket in buckets]
        (total,) = (line.value for line in lines if line.name.endswith("_sum"))
        yield HistogramDataPoint(
            labels,
            start_ns,
            at_ns,
            count=upto[-1],
            sum=total,
            bucket_counts=[after - before for before, after in pairwise((0, *upto))],
            explicit_bounds=[float(bucket.labels["le"]) for bucket in buckets[:-1]],
            min=None,  # type: ignore[arg-type]  # which leaves it out: nobody keeps it
            max=None,  # type: ignore[arg-type]
            exemplars=_exemplars(buckets),
        )


def _labels_but_bound(sample: Sample) -> dict[str, str]:
    return {name: value for name, value in sample.labels.items() if name != "le"}


def _exemplars(buckets: Sequence[Sample]) -> list[Exemplar]:
    return [
        Exemplar({}, each.value, int(float(each.timestamp or 0) * S_NS), NO_SPAN, int(each.labels["trace_id"], 16))
        for each in (bucket.exemplar for bucket in buckets)
        if each is not None
    ]
