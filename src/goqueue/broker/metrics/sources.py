"""What metrics are read from."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from goqueue.broker.delays.schedules import Schedules
from goqueue.broker.groups.groups import Groups
from goqueue.broker.health import Health
from goqueue.broker.publishing.publish import Publisher
from goqueue.broker.queues.queues import Queues
from goqueue.broker.schemas.schemas import Schemas
from goqueue.broker.topics.topics import Topics
from goqueue.broker.transactions.transactions import Transactions
from goqueue.replica.replicas import Replicas
from goqueue.telemetry.door_facts import DoorFacts
from goqueue.telemetry.journeys import Journeys
from goqueue.telemetry.meters import Meters


class Sources(NamedTuple):
    topics: Topics
    replicas: Replicas
    groups: Groups
    queues: Queues
    schedules: Schedules
    transactions: Transactions
    schemas: Schemas
    publisher: Publisher
    journeys: Journeys
    meters: Meters
    health: Health
    doors: dict[str, Callable[[], DoorFacts]]
    tenants: Callable[[], Mapping[str, object]]
    """All but the default one."""


class MetricsOptions(NamedTuple):
    is_on: bool = True
    has_partitions: bool = False
    """Whether what is true of a partition is told of each."""
    series_max: int = 1000
    """Of one metric: topics, groups and pairs of them beyond are summed up as `_other`."""
