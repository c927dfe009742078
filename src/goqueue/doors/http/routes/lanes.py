"""Lanes: what each priority has ready, in flight, and how fast it comes and goes."""

import asyncio
from collections.abc import Sequence

from goqueue.broker.groups.listing import pages
from goqueue.doors.http.call import Call
from goqueue.doors.http.errors import NOT_FOUND, HttpError
from goqueue.doors.http.operation import Handlers
from goqueue.doors.http.permissions import DESCRIBES_GROUP
from goqueue.machines.deliveries.commands import Place
from goqueue.model.lag import LaneStats
from goqueue.model.lanes import LANES, Lane
from goqueue.model.ledgers import LedgerKind
from goqueue.model.moments import format_duration
from goqueue.model.refusal import Refused
from goqueue.records.redrives import GROUP
from goqueue.wire.rest.lanes import (
    LaneReply,
    LanesQuery,
    PartitionLanes,
    PartitionPriority,
    PriorityStats,
    TopicLanes,
    TopicPriority,
)
from goqueue.wire.rest.operations import lanes as operations
from goqueue.wire.rest.topics import TopicPath

SECOND_MS = 1000
NAMES = [lane.name.lower() for lane in Lane]

lanes = Handlers(rests_on=(LedgerKind.DELAYS, LedgerKind.DELIVERIES))


@lanes.handles(operations.TOPIC_LANES, DESCRIBES_GROUP)
async def topic_lanes(call: Call, path: TopicPath, query: LanesQuery) -> TopicLanes:
    topic = call.topic(path.topic)
    places = [place for place in call.broker.queues.places(query.group) if place.topic == topic.name]
    if not places:
        raise HttpError(NOT_FOUND, "GROUP_ID_NOT_FOUND", f"no queue group {query.group!r} reads {topic.name!r}")
    found: list[PartitionLanes] = []
    for place in sorted(places):
        stats = call.broker.queues.lanes(place)
        ages = call.broker.queues.oldest_ages_ms(place)
        found.append(PartitionLanes(partition=place.partition, lanes=_lanes(stats, ages)))
        await asyncio.sleep(0)  # others want their turn
    return TopicLanes(
        topic=topic.name,
        group=query.group,
        lanes=[_together([each.lanes[lane] for each in found]) for lane in range(LANES)],
        partitions=found,
    )


def _lanes(stats: LaneStats, ages: Sequence[int | None]) -> list[LaneReply]:
    return [
        LaneReply(
            lane=NAMES[lane],
            ready=stats.ready[lane],
            in_flight=stats.in_flight[lane],
            enqueue_rate=stats.enqueue_rate[lane],
            dequeue_rate=stats.dequeue_rate[lane],
            oldest_ready_ms=ages[lane],
        )
        for lane in range(LANES)
    ]


def _together(some: Sequence[LaneReply]) -> LaneReply:
    return LaneReply(
        lane=some[0].lane,
        ready=sum(each.ready for each in some),
        in_flight=sum(each.in_flight for each in some),
        enqueue_rate=sum(each.enqueue_rate for each in some),
        dequeue_rate=sum(each.dequeue_rate for each in some),
        oldest_ready_ms=_oldest([each.oldest_ready_ms for each in some]),
    )


def _oldest(ages: Sequence[int | None]) -> int | None:
    return max((age for age in ages if age is not None), default=None)


@lanes.handles(operations.PRIORITY_STATS, DESCRIBES_GROUP)
async def priority_stats(call: Call) -> PriorityStats:
    queues = call.broker.queues
    partitions: dict[tuple[str, int], PartitionPriority] = {}
    ready, rates = [0] * LANES, [0.0] * LANES
    for names in pages(queues.page):
        for place in (place for name in names if name != GROUP for place in queues.places(name)):
            stats = _measured(call, place, partitions)
            if stats is not None:
                ready = _sum(ready, stats.ready)
                rates = [mine + other for mine, other in zip(rates, stats.dequeue_rate)]
            await asyncio.sleep(0)  # others want their turn
        await asyncio.sleep(0)
    topics: dict[str, TopicPriority] = {}
    for (name, number), found in sorted(partitions.items()):
        topic = topics.setdefault(name, TopicPriority(total_by_priority=[0] * LANES, partitions={}))
        topic.partitions[str(number)] = found
        topic.total_by_priority = _sum(topic.total_by_priority, found.total)
    total = [sum(topic.total_by_priority[lane] for topic in topics.values()) for lane in range(LANES)]
    waits = [None if not rate else format_duration(int(count / rate * SECOND_MS)) for count, rate in zip(ready, rates)]
    return PriorityStats(
        total_by_priority=total,
        messages_by_priority=dict(zip(NAMES, total)),
        avg_wait_time_by_priority=dict(zip(NAMES, waits)),
        topics=topics,
    )


def _measured(call: Call, place: Place, partitions: dict[tuple[str, int], PartitionPriority]) -> LaneStats | None:
    """Added to what other groups of the same partition say. None: it is out of service, or the group just left."""
    queues = call.broker.queues
    try:
        stats, measure, ages = queues.lanes(place), queues.measure(place), queues.oldest_ages_ms(place)
    except Refused:
        return None
    known = partitions.setdefault(
        (place.topic, place.partition),
        PartitionPriority(pending=[0] * LANES, consumed=[0] * LANES, total=[0] * LANES, oldest_pending=[None] * LANES),
    )
    known.pending = _sum(known.pending, measure.ready)
    known.consumed = _sum(known.consumed, measure.served)
    known.total = [max(pair) for pair in zip(known.total, measure.arrived)]
    known.oldest_pending = [_oldest(pair) for pair in zip(known.oldest_pending, ages)]
    return stats


def _sum(mine: Sequence[int], others: Sequence[int]) -> list[int]:
    return [one + other for one, other in zip(mine, others)]
