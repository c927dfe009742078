"""Is it alive, is it ready, which version, how much is in it."""

import platform

from goqueue.doors.http.call import Call
from goqueue.doors.http.errors import UNAVAILABLE
from goqueue.doors.http.operation import Operations, WithStatus
from goqueue.model.moments import format_moment
from goqueue.model.topics import Topic
from goqueue.wire.rest.infrastructure import BrokerFacts, Check, Health, Probe, ProbeQuery, Stats, TopicStats, Version

infrastructure = Operations("Node")

_UNITS_S = (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1))


@infrastructure.get("/health")
async def health(call: Call) -> Health:
    """Does the node answer at all?"""
    return Health(status="ok", timestamp=format_moment(call.now_ms))


@infrastructure.get("/livez")
async def livez(call: Call) -> Probe:
    """Is the process alive? For startup and liveness probes."""
    return _probe(call, "pass")


@infrastructure.get("/healthz", other_replies=((UNAVAILABLE, "Some partitions are out of service"),))
async def healthz(call: Call) -> Probe | WithStatus:
    """Are all partitions of this node in service?"""
    return _judged(call, is_verbose=False)


@infrastructure.get("/readyz", other_replies=((UNAVAILABLE, "Some partitions are out of service"),))
async def readyz(call: Call, query: ProbeQuery) -> Probe | WithStatus:
    """May clients be sent here? For readiness probes."""
    return _judged(call, is_verbose=query.verbose)


def _judged(call: Call, *, is_verbose: bool) -> Probe | WithStatus:
    topics = call.broker.topics
    failed = [
        f"{topic.name}/{number}"
        for topic in topics.image.topics.values()
        for number in range(topic.partitions)
        if topics.leader_epoch(topic.name, number) < 0
    ]
    words = f"{len(failed)} partitions are out of service: {', '.join(failed[:5])}" if failed else ""
    probe = _probe(call, "fail" if failed else "pass")
    if failed:
        probe.message = words
    if is_verbose:
        probe.checks = {
            "broker": Check(status="pass", message="answers"),
            "storage": Check(status=probe.status, message=words or "all partitions are in service"),
        }
        probe.broker = BrokerFacts(
            node_id=str(call.broker.identity.node_id),
            cluster_id=call.broker.identity.cluster_id,
            topic_count=len(topics.image.topics),
            total_size=sum(_size(call, topic)[1] for topic in topics.image.topics.values()),
        )
    return WithStatus(UNAVAILABLE, probe) if failed else probe


def _probe(call: Call, status: str) -> Probe:
    return Probe(status=status, timestamp=format_moment(call.now_ms), uptime=_uptime(call))


def _uptime(call: Call) -> str:
    left, words = max(0, call.now_ms - call.started_ms) // 1000, []
    for unit, unit_s in _UNITS_S:
        number, left = divmod(left, unit_s)
        if number:
            words.append(f"{number}{unit}")
    return "".join(words) or "0s"


@infrastructure.get("/version")
async def version(call: Call) -> Version:
    """Which GoQueue, on which Python."""
    return Version(version=call.version, python_version=platform.python_version())


@infrastructure.get("/stats")
async def stats(call: Call) -> Stats:
    """What is in this node, topic by topic."""
    found = {}
    for topic in call.broker.topics.image.topics.values():
        messages, size = _size(call, topic)
        found[topic.name] = TopicStats(
            name=topic.name, partitions=topic.partitions, total_messages=messages, total_size=size
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
