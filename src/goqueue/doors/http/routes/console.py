"""The numbers that the console shows: one reading for all who look, and of it what each may see."""

from collections.abc import Iterator

from msgspec import UNSET, UnsetType

from goqueue.broker.readings import GROUP, TOPIC, GroupFacts, Reading, TopicRow
from goqueue.doors.http.call import Call
from goqueue.doors.http.operation import Handlers
from goqueue.doors.http.permissions import DESCRIBES_GROUP
from goqueue.doors.http.visit import Visit
from goqueue.model.access import EVERY_NAME, Kind
from goqueue.model.health import Status
from goqueue.model.ledgers import LedgerKind
from goqueue.model.refusal import Refused
from goqueue.wire.rest.console import (
    ConsoleReading,
    GroupReading,
    GroupTopicReading,
    NodeReading,
    ReadingQuery,
    TopicReading,
)
from goqueue.wire.rest.infrastructure import Check
from goqueue.wire.rest.operations import console as operations

KEPT = "console reading"
TOLD_MAX = 100
"""Answers that are remembered for one principal: pages that opened at different times ask for different ones."""

console = Handlers(rests_on=(LedgerKind.DELAYS, LedgerKind.DELIVERIES, LedgerKind.GROUPS))


@console.handles(operations.CONSOLE_READING, DESCRIBES_GROUP)
async def console_reading(call: Call, visit: Visit, query: ReadingQuery) -> ConsoleReading:
    found = await visit.gate.readings.latest()
    me = call.broker.identity.node_id
    since = _since(query.since).get(me, 0)
    if not found.first <= since <= found.cursor:
        since = 0
    cursor, told = visit.access.kept.get(KEPT, (-1, {}))
    if cursor != found.cursor or len(told) >= TOLD_MAX:
        visit.access.kept[KEPT] = found.cursor, (told := {})
    if since not in told:
        told[since] = _told(call, found, since)
    return ConsoleReading(
        version=call.version,
        cluster_id=call.broker.identity.cluster_id,
        node_id=me,
        console=call.console,
        nodes={str(me): told[since]},
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
        at=call.now_ms,
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
    try:
        call.broker.admit(Kind.TOPIC, EVERY_NAME)
    except Refused:
        return UNSET
    wrong = (each for each in call.broker.health.checks() if each.status is not Status.PASS)
    return {each.name: Check(status=each.status, message=each.message) for each in wrong}
