"""How the metrics of a node are wired, as its settings say."""

from collections.abc import Callable

from goqueue.broker.broker import Broker
from goqueue.broker.metrics.metrics import DoorFacts, MetricsOptions
from goqueue.doors.http.door import HttpDoor
from goqueue.doors.kafka.door import KafkaDoor
from goqueue.node.settings import Settings
from goqueue.node.values import Switch


def metrics_options(settings: Settings) -> MetricsOptions:
    return MetricsOptions(
        is_on=settings.metrics is Switch.ON,
        has_partitions=settings.metrics_partition_label is Switch.ON,
        series_max=settings.metrics_series_max,
    )


def watch_doors(broker: Broker, *doors: KafkaDoor | HttpDoor) -> None:
    for door in doors:
        broker.metrics.watch_door("kafka" if isinstance(door, KafkaDoor) else "http", _asker(door))


def _asker(door: KafkaDoor | HttpDoor) -> Callable[[], DoorFacts]:
    return lambda: DoorFacts(len(door.connections), door.requests, door.malformed)
