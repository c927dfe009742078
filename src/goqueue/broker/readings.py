"""What the console shows of this node, read once for all who look at it.

Nothing is read while nobody asks. A reading takes its time in turns, and the next one is not before it was paid for:
at most one part in `REST` of the node's time goes into readings, however many pages are open.
"""

import asyncio
from collections.abc import Callable, Hashable, Iterator
from typing import NamedTuple

from goqueue.broker.asking import Asking
from goqueue.broker.broker import Broker
from goqueue.machines.deliveries.commands import Measure
from goqueue.model.errors import GoQueueError
from goqueue.model.group_options import DELIVERY, PAUSED
from goqueue.model.ledgers import LedgerKind
from goqueue.model.topics import Topic
from goqueue.records.redrives import GROUP as REDRIVE
from goqueue.replica.replica import Replica
from goqueue.telemetry.journeys import Step

EVERY_S = 1.0
REST = 50
PER_TURN = 100
"""Topics, or places of groups, that are read before others get their turn."""
GONE_MAX = 1000
"""Names that are remembered as gone. Who missed more is told everything."""


class TopicRow(NamedTuple):
    """Of the partitions that this node leads."""

    partitions: int
    """Of the whole topic."""
    messages: int
    published: int
    """Offsets that were given so far."""
    size_bytes: int
    delivered: int
    """Leased or fetched since the start."""
    delayed: int
    dead: int
    """Of a topic of dead letters: that nobody has dealt with."""
    paused: bool


class GroupRow(NamedTuple):
    """Of one group and one topic."""

    ready: int
    in_flight: int
    waiting: int
    """For a retry, or for an earlier message of their key."""
    lag: int
    served: int
    """Leased since the start."""


class GroupFacts(NamedTuple):
    type: str
    state: str
    members: int
    paused: bool
    """The group itself says so; a topic of it may be paused besides."""
    topics: tuple[tuple[str, GroupRow], ...]


class Reading(NamedTuple):
    cursor: int
    """Readings are in the order of these, also over a restart. It is a time in milliseconds, or a little more."""
    first: int
    """Who has seen this one or a later one can be told what has changed since."""
    topics: dict[str, TopicRow]
    groups: dict[str, GroupFacts]
    changed: dict[tuple[str, str], int]
    """By kind and name: the reading in which it last changed. What is gone is in here, too."""
    at_ms: int
    told: dict[Hashable, bytes]
    """What an API has made of it, for all who are told the same. It goes with the reading."""


TOPIC, GROUP = "topic", "group"
RESTS_ON = (LedgerKind.DELAYS, LedgerKind.DELIVERIES, LedgerKind.GROUPS)


class Readings(Asking):
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._now_s: Callable[[], float] = broker.clock.monotonic_s
        self._latest = Reading(0, 0, {}, {}, {}, 0, {})
        self._next_s = 0.0
        self._walk: Iterator[None] | None = None
        self._took_s = 0.0
        self.taken = 0
        """Readings so far."""
        self._sure = 0
        """The last one of which all is durable."""

    async def latest(self) -> Reading:
        """At most as old as a reading may get, and durable, which is asked once for all who are given it. Whoever waits
        for it takes part in the work, so that it is done also if the first who asked goes away."""
        if self._walk is None and self._now_s() >= self._next_s:
            self._walk, self._took_s = self._take(), 0.0
        while self._walk is not None:
            self._step(self._walk)
            await asyncio.sleep(0)
        found = self._latest
        if self._sure < found.cursor:
            await self.confirmed(self._broker.durable, RESTS_ON)
            self._sure = max(self._sure, found.cursor)
        return found

    def _step(self, walk: Iterator[None]) -> None:
        begun_s = self._now_s()
        try:
            next(walk)
        except StopIteration:
            self._walk = None
        except BaseException:
            self._walk = None
            raise
        self._took_s += self._now_s() - begun_s
        if self._walk is None:
            self._next_s = self._now_s() + max(EVERY_S, REST * self._took_s)

    def _take(self) -> Iterator[None]:
        topics: dict[str, TopicRow] = {}
        places: dict[str, dict[str, GroupRow]] = {}
        dead: dict[str, int] = {}
        yield from self._read_queues(places, dead)
        yield from self._read_topics(topics, dead)
        groups: dict[str, GroupFacts] = {}
        yield from self._read_groups(groups, places)
        self._keep(topics, groups)

    def _keep(self, topics: dict[str, TopicRow], groups: dict[str, GroupFacts]) -> None:
        before = self._latest
        now_ms = self._broker.clock.now_ms()
        cursor = max(before.cursor + 1, now_ms)
        changed = before.changed
        for kind, was, now in ((TOPIC, before.topics, topics), (GROUP, before.groups, groups)):
            for name in now:  # a row that is equal has not changed
                if was.get(name) != now[name]:
                    changed[kind, name] = cursor
            for name in was.keys() - now.keys():
                changed[kind, name] = cursor
        first = before.first or cursor
        if len(changed) > len(topics) + len(groups) + GONE_MAX:
            changed = {key: at for key, at in changed.items() if key[1] in (topics if key[0] is TOPIC else groups)}
            first = cursor
        self._latest = Reading(cursor, first, topics, groups, changed, now_ms, {})
        self.taken += 1

    # -- what there is

    def _read_queues(self, places: dict[str, dict[str, GroupRow]], dead: dict[str, int]) -> Iterator[None]:
        """`dead`: what of dead letters was dealt with, by topic."""
        for number, (place, measure) in enumerate(self._broker.queues.measured(), 1):
            if number % PER_TURN == 0:
                yield
            replica = self._broker.topics.find_replica(place.topic, place.partition)
            if replica is None:
                continue
            row = _place(replica, measure)
            if place.group_id == REDRIVE:
                dealt = replica.high_watermark - replica.start_offset - row.ready - row.in_flight - row.waiting
                dead[place.topic] = dead.get(place.topic, 0) + dealt
                continue
            of_group = places.setdefault(place.group_id, {})
            known = of_group.get(place.topic)
            of_group[place.topic] = row if known is None else GroupRow(*map(sum, zip(known, row)))

    def _read_topics(self, topics: dict[str, TopicRow], dead: dict[str, int]) -> Iterator[None]:
        broker = self._broker
        delivered: dict[str, int] = {}
        for step in (Step.LEASED, Step.FETCHED):
            for (name, _), count in broker.journeys.counts[step].items():
                delivered[name] = delivered.get(name, 0) + count
        try:
            delayed = broker.schedules.pending_by_topic()
        except GoQueueError:  # a coordinator is being loaded
            delayed = {}
        letters = {broker.dead_letters.name_of(name) for name in broker.topics.image.topics}
        for number, topic in enumerate(broker.topics.image.topics.values(), 1):
            if number % PER_TURN == 0:
                yield
            name = topic.name
            row = self._topic(topic, delivered.get(name, 0), delayed.get(name, 0))
            if name in letters:
                row = row._replace(dead=max(0, row.messages - dead.get(name, 0)))
            topics[name] = row

    def _topic(self, topic: Topic, delivered: int, delayed: int) -> TopicRow:
        messages = published = size = 0
        topics = self._broker.topics
        for number in topics.led(topic.name, range(topic.partitions)):
            replica = topics.find_replica(topic.name, number)
            if replica is not None:
                messages += replica.high_watermark - replica.start_offset
                published += replica.high_watermark
                size += replica.size_bytes
        is_paused = topic.overrides.get(DELIVERY) == PAUSED
        return TopicRow(topic.partitions, messages, published, size, delivered, delayed, 0, is_paused)

    def _read_groups(self, groups: dict[str, GroupFacts], places: dict[str, dict[str, GroupRow]]) -> Iterator[None]:
        for number, (group, committed) in enumerate(self._broker.groups.measured(), 1):
            if number % PER_TURN == 0:
                yield
            rows = dict(places.pop(group.group_id, {}))
            for (topic, partition), commit in committed.items():
                replica = self._broker.topics.find_replica(topic, partition)
                if replica is not None:
                    lag = max(0, replica.high_watermark - max(commit.offset, replica.start_offset))
                    known = rows.get(topic, GroupRow(0, 0, 0, 0, 0))
                    rows[topic] = known._replace(lag=known.lag + lag)
            of_group = group.type, group.state, group.members, self._is_paused(group.group_id)
            groups[group.group_id] = GroupFacts(*of_group, tuple(sorted(rows.items())))
        for name, rows in places.items():
            groups[name] = GroupFacts("share", "Empty", 0, self._is_paused(name), tuple(sorted(rows.items())))

    def _is_paused(self, group_id: str) -> bool:
        return self._broker.queues.options(group_id).get(DELIVERY) == PAUSED


def _place(replica: Replica, measure: Measure) -> GroupRow:
    beyond = max(0, replica.high_watermark - max(measure.end_offset, replica.start_offset))
    return GroupRow(
        sum(measure.ready) + measure.replaying + beyond,
        sum(measure.leased),
        measure.waiting + measure.held,
        max(0, replica.high_watermark - max(measure.start_offset, replica.start_offset)),
        sum(measure.served),
    )
