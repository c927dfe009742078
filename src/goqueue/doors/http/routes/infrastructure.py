"""Is it alive, is it ready, which version, how much is in it."""

import asyncio
import platform
from functools import partial

from goqueue.doors.http.call import Call
from goqueue.doors.http.errors import UNAVAILABLE, HttpError
from goqueue.doors.http.operation import Handlers, Text, WithStatus
from goqueue.doors.http.permissions import DESCRIBES_CLUSTER, DESCRIBES_TOPIC
from goqueue.model.access import EVERY_NAME, OPEN, Kind
from goqueue.model.health import Check as HealthCheck
from goqueue.model.health import Status
from goqueue.model.moments import format_moment
from goqueue.model.refusal import Refused
from goqueue.model.topics import Topic
from goqueue.wire.rest.infrastructure import (
    BrokerFacts,
    Check,
    Health,
    MetricsQuery,
    Probe,
    ProbeQuery,
    Stats,
    TopicStats,
    Version,
)
from goqueue.wire.rest.operations import infrastructure as operations

infrastructure = Handlers()

LASTING = frozenset({"storage", "ledgers", "damage"})
"""Checks that do not come right by waiting."""
ROOM = "disk"
"""Told to whoever asks for health, but no reason to restart a node: it does not make room."""

_UNITS_S = (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1))


@infrastructure.handles(operations.HEALTH, OPEN)
async def health(call: Call) -> Health:
    return Health(status="ok", timestamp=format_moment(call.now_ms))


@infrastructure.handles(operations.LIVEZ, OPEN)
async def livez(call: Call) -> Probe:
    return _probe(call, Status.PASS)


@infrastructure.handles(operations.HEALTHZ, DESCRIBES_TOPIC, is_open=True)
async def healthz(call: Call) -> Probe | WithStatus:
    checks = [check for check in call.broker.health.checks() if check.name in LASTING]
    checks += [
        check._replace(status=Status.WARN)
        for check in call.broker.health.checks()
        if check.name == ROOM and check.status is Status.FAIL
    ]
    return _judged(call, checks, is_verbose=False)


@infrastructure.handles(operations.READYZ, DESCRIBES_TOPIC, is_open=True)
async def readyz(call: Call, query: ProbeQuery) -> Probe | WithStatus:
    return _judged(call, call.broker.health.checks(), is_verbose=query.verbose)


def _judged(call: Call, checks: list[HealthCheck], *, is_verbose: bool) -> Probe | WithStatus:
    topics = call.broker.topics
    failed = any(check.status is Status.FAIL for check in checks)
    told = [check for check in checks if check.status is not Status.PASS]
    probe = _probe(call, Status.FAIL if failed else Status.WARN if told else Status.PASS)
    if not _may_be_told(call):
        return WithStatus(UNAVAILABLE, probe) if failed else probe
    if told:
        probe.message = "; ".join(check.message for check in told)
    if is_verbose:
        probe.checks = {check.name: Check(status=check.status, message=check.message) for check in checks}
        probe.broker = BrokerFacts(
            node_id=str(call.broker.identity.node_id),
            cluster_id=call.broker.identity.cluster_id,
            topic_count=len(topics.image.topics),
            total_size=sum(_size(call, topic)[1] for topic in topics.image.topics.values()),
        )
    return WithStatus(UNAVAILABLE, probe) if failed else probe


def _may_be_told(call: Call) -> bool:
    """What is wrong names topics and partitions: a stranger learns only whether something is."""
    try:
        call.broker.admit(Kind.TOPIC, EVERY_NAME)
    except Refused:
        return False
    return True


def _probe(call: Call, status: str) -> Probe:
    return Probe(status=status, timestamp=format_moment(call.now_ms), uptime=_uptime(call))


def _uptime(call: Call) -> str:
    left, words = max(0, call.now_ms - call.started_ms) // 1000, []
    for unit, unit_s in _UNITS_S:
        number, left = divmod(left, unit_s)
        if number:
            words.append(f"{number}{unit}")
    return "".join(words) or "0s"


@infrastructure.handles(operations.VERSION, OPEN)
async def version(call: Call) -> Version:
    return Version(version=call.version, python_version=platform.python_version())


@infrastructure.handles(operations.METRICS, DESCRIBES_CLUSTER)
async def metrics(call: Call, query: MetricsQuery) -> Text:
    if not call.broker.metrics.is_on:
        raise HttpError(UNAVAILABLE, "METRICS_OFF", "metrics are off: see the setting `metrics`")
    metrics = call.broker.metrics
    text, content_type = await call.in_turns(metrics.exposing(query.accept))
    others: dict[str, str] = await call.ask(partial(metrics.others, query.accept))
    if others:
        text = await asyncio.to_thread(metrics.together, text, others)
    return Text(text, content_type)


@infrastructure.handles(operations.STATS, DESCRIBES_TOPIC)
async def stats(call: Call) -> Stats:
    found = {}
    for topic in call.broker.topics.image.topics.values():
        messages, size = _size(call, topic)
        found[topic.name] = TopicStats(
            name=topic.name,
            partitions=topic.partitions,
            total_messages=messages,
            published=sum(each.high_watermark for each in call.replicas(topic).values()),
            total_size=size,
        )
    return Stats(
        node_id=str(call.broker.identity.node_id),
        uptime=_uptime(call),
        topics=len(found),
        total_size_bytes=sum(each.total_size for each in found.values()),
        topic_stats=found,
    )


def _size(call: Call, topic: Topic) -> tuple[int, int]:
    """Messages, counted by offsets, and bytes."""
    replicas = call.replicas(topic)
    messages = sum(each.high_watermark - each.start_offset for each in replicas.values())
    return messages, sum(each.size_bytes for each in replicas.values())
