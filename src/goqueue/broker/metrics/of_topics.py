"""Topics and their logs: one walk over all partitions."""

from collections.abc import Mapping
from contextlib import suppress
from itertools import chain
from operator import add

from goqueue.broker.metrics.page import Bound, Page
from goqueue.broker.metrics.sources import Sources
from goqueue.model.codes import Code
from goqueue.model.errors import CoordinatorFailed, CoordinatorLoading
from goqueue.model.names import LEDGER_PREFIX
from goqueue.replica.replica import Replica
from goqueue.telemetry.journeys import Step
from goqueue.telemetry.meters import NO_TOPIC

STREAM_READER = ""
COUNTED_OF_A_LOG = (
    "goqueue_storage_bytes_written_total",
    "goqueue_storage_bytes_read_total",
    "goqueue_storage_damaged_batches_total",
    "goqueue_storage_missing_offsets_total",
    "goqueue_storage_segments_created_total",
    "goqueue_storage_segments_deleted_total",
    "goqueue_storage_compaction_runs_total",
    "goqueue_storage_compaction_bytes_reclaimed_total",
)
OF_A_LOG = (
    "goqueue_storage_log_end_offset",
    "goqueue_storage_log_start_offset",
    "goqueue_storage_log_size_bytes",
    "goqueue_storage_segments",
)
FAILED = "goqueue_broker_messages_failed_total"
LOST = Code.KAFKA_STORAGE_ERROR.name
ERRORS = (LOST, Code.INVALID_RECORD.name)
"""Kinds that every topic starts with at zero: of a series that begins with its first error, no rate is known."""
BY_STEP = (
    (Step.ACKED, "goqueue_broker_messages_acked_total"),
    (Step.NACKED, "goqueue_broker_messages_nacked_total"),
    (Step.REJECTED, "goqueue_broker_messages_rejected_total"),
    (Step.LEASE_ENDED, "goqueue_broker_leases_timed_out_total"),
    (Step.EXPIRED, "goqueue_broker_messages_expired_total"),
    (Step.DEAD_LETTERED, "goqueue_broker_messages_dead_lettered_total"),
    (Step.REDRIVEN, "goqueue_broker_messages_redriven_total"),
    (Step.LEASED, "goqueue_broker_messages_consumed_total"),
    (Step.FETCHED, "goqueue_broker_messages_consumed_total"),
)
DELAYS_BY_STEP = (
    (Step.SCHEDULED, "goqueue_broker_delayed_messages_scheduled_total"),
    (Step.DUE, "goqueue_broker_delayed_messages_fired_total"),
    (Step.CANCELLED, "goqueue_broker_delayed_messages_cancelled_total"),
)


class Names:
    """The labels of one scrape."""

    def __init__(self, series_max: int) -> None:
        self.topics = Bound(series_max)
        self.groups = Bound(series_max)
        self.pairs = Bound(series_max)
        self.partitions = Bound(series_max)
        self.shares = Bound(series_max)

    def topic(self, topic: str) -> tuple[str, ...]:
        return self.topics.label((topic,))

    def group(self, group: str) -> tuple[str, ...]:
        return self.groups.label((group,))

    def pair(self, topic: str, group: str) -> tuple[str, ...]:
        return self.pairs.label((topic, group))

    def begin(self, tenants: Mapping[str, object]) -> None:
        for bound in (self.topics, self.groups, self.pairs, self.partitions, self.shares):
            bound.tenants = tenants

    def end(self) -> None:
        for bound in (self.topics, self.groups, self.pairs, self.partitions, self.shares):
            bound.end()


def read_topics(page: Page, sources: Sources, names: Names, *, has_partitions: bool) -> None:
    second_places = sources.schedules.second_places
    second_places.look_at_all(sources.replicas)
    counts = sources.journeys.counts
    persisted = counts[Step.PERSISTED]
    pending: Mapping[str, int] = {}
    with suppress(CoordinatorFailed, CoordinatorLoading):
        pending = sources.schedules.pending_by_topic()
    topics = sources.topics.image.topics
    page.add("goqueue_broker_topic_count", (), len(topics))
    labels = [names.topic(name) for name in topics]
    page.fill("goqueue_broker_topic_partitions", labels, [topic.partitions for topic in topics.values()])
    page.fill(
        "goqueue_broker_messages_published_total",
        labels,
        [persisted.get((name, STREAM_READER), 0) - second_places.passed(name) for name in topics],
    )
    page.fill("goqueue_broker_delayed_messages_pending", labels, [pending.get(name, 0) for name in topics])
    for step, metric in DELAYS_BY_STEP:
        page.fill(metric, labels, [counts[step].get((name, STREAM_READER), 0) for name in topics])
    for kind in ERRORS:
        page.fill(FAILED, [(*label, kind) for label in labels], [0] * len(labels))
    _read_logs(page, sources, names, has_partitions=has_partitions)
    _read_steps(page, sources, names)
    _read_meters(page, sources, names)


def _read_logs(page: Page, sources: Sources, names: Names, *, has_partitions: bool) -> None:
    """What is summed up by topic is summed up before it goes to the page: there may be thousands of partitions."""
    totals: dict[str, tuple[int, ...]] = {}
    for replica in chain(sources.replicas, sources.replicas.ledgers):
        topic, partition = replica.place
        is_companion = topic.startswith(LEDGER_PREFIX) and "." in topic
        if is_companion:  # all of a kind together: their names have ids that mean nothing to a person
            topic = topic.partition(".")[0]
        log = replica.log
        if log.failure is not None and not topic.startswith(LEDGER_PREFIX):
            lost = max(0, log.end_offset - replica.high_watermark)
            page.add(FAILED, (*names.topic(topic), LOST), lost)
        row = _row(replica)
        before = totals.get(topic)
        totals[topic] = row if before is None else tuple(map(add, before, row))
        if has_partitions and not is_companion:
            label = names.partitions.label((topic, str(partition)))
            for name, number in zip(OF_A_LOG, row[len(COUNTED_OF_A_LOG) :], strict=True):
                page.add_partition(name, label, number)
    labels = [names.topic(topic) for topic in totals]
    metrics = COUNTED_OF_A_LOG if has_partitions else COUNTED_OF_A_LOG + OF_A_LOG
    for metric, numbers in zip(metrics, zip(*totals.values(), strict=True), strict=False):
        page.fill(metric, labels, numbers)
    published = [(names.topic(topic), row[0]) for topic, row in totals.items() if not topic.startswith(LEDGER_PREFIX)]
    page.fill(
        "goqueue_broker_bytes_published_total", [label for label, _ in published], [size for _, size in published]
    )


def _row(replica: Replica) -> tuple[int, ...]:
    """As COUNTED_OF_A_LOG and OF_A_LOG name them."""
    log = replica.log
    segments = log.segments
    return (
        replica.appended_bytes,
        replica.read_bytes,
        log.damaged_batches,
        log.report.missing_offsets,
        segments.created,
        segments.dropped,
        segments.compactions,
        segments.compacted_away_bytes,
        log.end_offset,
        log.start_offset,
        segments.size_bytes,
        len(segments),
    )


def _read_steps(page: Page, sources: Sources, names: Names) -> None:
    for step, metric in BY_STEP:
        for (topic, group), records in sources.journeys.counts[step].items():
            page.add(metric, names.pair(topic, group), records)


def _read_meters(page: Page, sources: Sources, names: Names) -> None:
    meters = sources.meters
    for (topic, kind), messages in meters.failed.items():
        label = (topic,) if topic == NO_TOPIC else names.topic(topic)
        page.add(FAILED, (*label, kind), messages)
    for (topic, group), size in meters.fetched_bytes.items():
        page.add("goqueue_broker_bytes_consumed_total", names.pair(topic, group), size)
    for (topic, result), messages in meters.validated.items():
        page.add("goqueue_broker_schema_validations_total", (*names.topic(topic), result), messages)
    for topic, histogram in meters.validated_s.items():
        page.observe("goqueue_broker_schema_validation_latency_seconds", names.topic(topic), histogram)
    for (topic, how), histogram in meters.settled_s.items():
        page.observe("goqueue_broker_ack_latency_seconds", (*names.topic(topic), how), histogram)
    for topic, histogram in meters.published_s.items():
        page.observe("goqueue_broker_publish_latency_seconds", names.topic(topic), histogram)
    for topic, histogram in meters.fetched_s.items():
        page.observe("goqueue_broker_fetch_latency_seconds", names.topic(topic), histogram)
