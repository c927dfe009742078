"""How the metrics of a node are wired and exported, as its settings say."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from goqueue.broker.broker import Broker
from goqueue.broker.metrics.export import MetricsExport
from goqueue.broker.metrics.sources import MetricsOptions
from goqueue.doors.http.door import HttpDoor
from goqueue.doors.kafka.door import KafkaDoor
from goqueue.node.settings import Settings
from goqueue.node.tracing import about
from goqueue.node.values import MetricsExporter, Switch
from goqueue.telemetry.door_facts import DoorFacts

if TYPE_CHECKING:  # grpc takes time to import, and a broker in a test may do without
    from goqueue.doors.grpc.door import GrpcDoor


def metrics_options(settings: Settings) -> MetricsOptions:
    return MetricsOptions(
        is_on=settings.metrics is Switch.ON,
        has_partitions=settings.metrics_partition_label is Switch.ON,
        series_max=settings.metrics_series_max,
    )


def metrics_export(settings: Settings, broker: Broker) -> MetricsExport | None:
    if settings.metrics_export is MetricsExporter.NONE:
        return None
    from goqueue.telemetry.export_metrics_otlp import OtlpMetricsSink

    sink = OtlpMetricsSink(settings.metrics_otlp_endpoint, about(broker.identity), broker.clock.now_ms())
    return MetricsExport(broker.metrics, broker.clock, sink, settings.metrics_export_interval_ms)


def watch_doors(broker: Broker, *doors: "KafkaDoor | HttpDoor | GrpcDoor") -> None:
    for door in doors:
        if isinstance(door, KafkaDoor):
            broker.metrics.watch_door("kafka", door.facts)
        elif isinstance(door, HttpDoor):
            broker.metrics.watch_door("http", _asker(door))
        else:
            broker.metrics.watch_door("grpc", door.facts)


def _asker(door: HttpDoor) -> Callable[[], DoorFacts]:
    return lambda: DoorFacts(len(door.connections), door.requests, door.malformed)
