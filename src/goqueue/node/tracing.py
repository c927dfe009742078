"""How the journeys of a node are kept and exported, as its settings say."""

from collections.abc import Callable
from typing import NamedTuple

from goqueue.broker.broker import Identity
from goqueue.broker.delays.schedules import Schedules
from goqueue.broker.groups.lag import Lag
from goqueue.broker.queues.queues import Queues
from goqueue.broker.queues.receive import Receiver
from goqueue.broker.topics.topics import Topics
from goqueue.broker.tracing.journal import JOURNEYS, Journal, Kept
from goqueue.broker.tracing.noting import Forgetting
from goqueue.broker.tracing.trace_index import TraceIndex
from goqueue.broker.tracing.traces import Traces
from goqueue.broker.tracing.tracing import Tracing
from goqueue.broker.tracing.why import Why
from goqueue.model.errors import GoQueueError
from goqueue.node.settings import Settings
from goqueue.node.values import TraceExport
from goqueue.replica.replica import Replica
from goqueue.replica.replicas import Replicas
from goqueue.runtime.clock import Clock
from goqueue.telemetry.export import Exporting, Sink
from goqueue.telemetry.journeys import Journeys
from goqueue.telemetry.logs import get_logger
from goqueue.telemetry.moved import Moved
from goqueue.telemetry.parents import Parents
from goqueue.telemetry.spans import Identities, SpanMaker

TOPIC_ID_BYTES = 16
UNKNOWN_TOPIC = bytes(TOPIC_ID_BYTES)
MIB = 1024 * 1024

events = get_logger("node")

MakeSink = Callable[[Identity], Sink]


class TracingOptions(NamedTuple):
    sampling: float = 1.0
    stores: bool = False
    """In an internal topic, so that a restart does not forget."""
    retention_ms: int = 3 * 24 * 60 * 60 * 1000
    retention_bytes: int = 256 * MIB
    make_sink: MakeSink | None = None


class Memory:
    """What journeys are made of; there from the start."""

    def __init__(self, sampling: float) -> None:
        self.journeys = Journeys(sampling)
        self.parents = Parents()
        self.moved = Moved()


class Askable(NamedTuple):
    """Who knows what is the matter with a record now."""

    queues: Queues
    receiver: Receiver
    schedules: Schedules
    lag: Lag


def build_tracing(
    options: TracingOptions,
    memory: Memory,
    topics: Topics,
    replicas: Replicas,
    clock: Clock,
    identity: Identity,
    askable: Askable,
) -> Tracing:
    def topic_id(name: str) -> bytes | None:
        topic = topics.image.topics.get(name)
        return None if topic is None else topic.id

    identities = Identities(lambda name: topic_id(name) or UNKNOWN_TOPIC, memory.parents, memory.moved)
    index = TraceIndex(topics, askable.schedules, memory.parents, memory.moved, clock)
    exporting = None
    if options.make_sink is not None:
        exporting = Exporting(SpanMaker(memory.journeys, identities), options.make_sink(identity))
    kept = Kept(_open(options, replicas, clock) if options.stores else None, exporting)
    journal = Journal(memory.journeys, index, clock, topic_id, kept)
    topics.on_change.append(Forgetting(journal).topics_changed)
    journal.load()
    journal.start()
    traces = Traces(memory.journeys, identities, topics)
    why = Why(topics, traces, askable.queues, askable.receiver, askable.schedules, askable.lag, clock)
    return Tracing(memory.journeys, identities, index, journal, traces, why, exporting)


def _open(options: TracingOptions, replicas: Replicas, clock: Clock) -> Replica | None:
    """A node without it serves all the same."""
    overrides = {
        "cleanup.policy": "delete",
        "durability": "os",
        "segment.bytes": str(min(16 * MIB, max(MIB, options.retention_bytes // 4))),
        "max.message.bytes": str(15 * MIB),
        "retention.ms": str(options.retention_ms),
        "retention.bytes": str(options.retention_bytes),
    }
    try:
        return replicas.open_ledger(JOURNEYS, 0, overrides, clock.now_ms())
    except GoQueueError as error:
        events.warning("journeys are not stored", reason=str(error))
        return None


def tracing_options(settings: Settings) -> TracingOptions:
    return TracingOptions(
        sampling=settings.trace_sampling,
        stores=True,
        retention_ms=settings.trace_retention_ms,
        retention_bytes=settings.trace_retention_bytes,
        make_sink=None if settings.trace_export is TraceExport.NONE else lambda identity: _sink(settings, identity),
    )


def about(identity: Identity) -> dict[str, str]:
    """Who we are, to a collector."""
    return {"service.instance.id": f"node-{identity.node_id}", "goqueue.cluster.id": identity.cluster_id}


def _sink(settings: Settings, identity: Identity) -> Sink:
    if settings.trace_export is TraceExport.FILE:
        from goqueue.telemetry.export_file import FileSink

        return FileSink(settings.trace_file, settings.trace_file_bytes, settings.trace_files)
    if settings.trace_export is TraceExport.OTLP:
        from goqueue.telemetry.export_otlp import OtlpSink

        return OtlpSink(settings.trace_otlp_endpoint, about(identity))
    from goqueue.telemetry.export_stdout import StdoutSink

    return StdoutSink()
