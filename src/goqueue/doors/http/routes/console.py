"""The numbers that the console shows: one reading for all who look, and of it what each may see."""

import gzip
from collections.abc import Hashable, Iterator

import msgspec
from msgspec import UNSET, UnsetType

from goqueue.broker.readings import GROUP, TOPIC, GroupFacts, Reading, TopicRow
from goqueue.doors.http.asgi import header
from goqueue.doors.http.call import Call
from goqueue.doors.http.operation import Handlers, Text
from goqueue.doors.http.permissions import DESCRIBES_GROUP
from goqueue.doors.http.visit import Visit
from goqueue.model.access import Kind
from goqueue.model.health import Status
from goqueue.wire.forwarded import VIA
from goqueue.wire.rest.console import (
    ConsoleReading,
    GroupReading,
    GroupTopicReading,
    NodeReading,
    ReadingQuery,
    TopicReading,
)
from goqueue.wire.rest.infrastructure import Check
from goqueue.wire.rest.operation import JSON
from goqueue.wire.rest.operations import console as operations

encode = msgspec.json.Encoder().encode
ALIKE = "who is shown the same of a console reading"
TOLD_MAX = 100
TOLD_BYTES_MAX = 16 * 1024 * 1024
"""Of the answers that are remembered of one reading: pages that opened at different times ask for different ones."""
PACKED_BYTES = range(1024, 128 * 1024)
"""Answers of these sizes are sent as gzip: a smaller one gains nothing, a larger one would hold up the loop."""
PACK_LEVEL = 1
VARIES = (b"vary", b"accept-encoding")
PACKED = (VARIES, (b"content-encoding", b"gzip"))

console = Handlers()


@console.handles(operations.CONSOLE_READING, DESCRIBES_GROUP)
async def console_reading(call: Call, visit: Visit, query: ReadingQuery) -> ConsoleReading | Text:
    """Made once for all who are shown the same: a page more costs what it takes to send it."""
    found = await visit.gate.readings.latest()
    kept = visit.access.kept
    alike = kept.get(ALIKE)
    if alike is None:
        call.broker.check_active()
        alike = kept[ALIKE] = call.broker.alike
    asked = alike, query.since
    content = found.told.get(asked)
    if content is None:
        content = _keep(found, asked, encode(_reading(call, found, query.since)))
    if VIA in visit.scope or call.forwarding is not None or len(content) not in PACKED_BYTES:
        return Text(content, JSON, (VARIES,))
    if b"gzip" not in (header(visit.scope, b"accept-encoding") or b""):
        return Text(content, JSON, (VARIES,))
    packed = found.told.get((PACKED, *asked))
    if packed is None:
        packed = _keep(found, (PACKED, *asked), gzip.compress(content, PACK_LEVEL, mtime=0))
    return Text(packed, JSON, PACKED)


def _keep(found: Reading, asked: Hashable, content: bytes) -> bytes:
    told = found.told
    if len(told) >= TOLD_MAX or sum(map(len, told.values())) + len(content) > TOLD_BYTES_MAX:
        told.clear()
    told[asked] = content
    return content


def _reading(call: Call, found: Reading, asked: str) -> ConsoleReading:
    me = call.broker.identity.node_id
    since = _since(asked).get(me, 0)
    if not found.first <= since <= found.cursor:
        since = 0
    return ConsoleReading(
        version=call.version,
        cluster_id=call.broker.identity.cluster_id,
        node_id=me,
        console=call.console,
        nodes={str(me): _told(call, found, since)},
    )


def _since(text: str) -> dict[int, int]:
    pairs = (each.partition(":") for each in text.split(",") if each)
    return {int(node): int(cursor) for node, _, cursor in pairs}


def _told(call: Call, found: Reading, since: int) -> NodeReading:
    topics, gone_topics = {}, []
    for kept, name in _seen(call, found, TOPIC, since):
        if kept in found.topics:
            topics[name] = _topic(found.topics[kept])
        else:
            gone_topics.append(name)
    groups, gone_groups = {}, []
    for kept, name in _seen(call, found, GROUP, since):
        if kept in found.groups:
            groups[name] = _group(call, found.groups[kept])
        else:
            gone_groups.append(name)
    return NodeReading(
        cursor=found.cursor,
        at=found.at_ms,
        whole=not since,
        topics=topics,
        groups=groups,
        gone_topics=gone_topics if since else [],
        gone_groups=gone_groups if since else [],
        checks=_checks(call),
    )


def _seen(call: Call, found: Reading, kind: str, since: int) -> Iterator[tuple[str, str]]:
    """Names as they are kept, and as this client knows them."""
    right = Kind.TOPIC if kind == TOPIC else Kind.GROUP
    for (of, kept), changed in found.changed.items():
        if of == kind and changed > since:
            name = call.broker.seen(right, kept)
            if name is not None:
                yield kept, name


def _topic(row: TopicRow) -> TopicReading:
    return TopicReading(**row._asdict())


def _group(call: Call, facts: GroupFacts) -> GroupReading:
    rows = ((call.broker.seen(Kind.TOPIC, topic), row) for topic, row in facts.topics)
    return GroupReading(
        type=facts.type,
        state=facts.state,
        members=facts.members,
        paused=facts.paused,
        topics={topic: GroupTopicReading(**row._asdict()) for topic, row in rows if topic is not None},
    )


def _checks(call: Call) -> dict[str, Check] | UnsetType:
    """What is wrong names topics and partitions."""
    if not call.broker.sees_total(Kind.TOPIC):
        return UNSET
    wrong = (each for each in call.broker.health.checks() if each.status is not Status.PASS)
    return {each.name: Check(status=each.status, message=each.message) for each in wrong}
