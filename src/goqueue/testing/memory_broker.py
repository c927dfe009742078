"""A real broker in a test: no port, no file, no thread, and time that passes when the test says so."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Self, TypeAlias

from goqueue.broker.dead_letters.writing import dead_letters_of
from goqueue.broker.queues.settle import Wanted
from goqueue.broker.queues.taking import LeasedPlace, ReceiveRequest
from goqueue.broker.reading.scan import scan
from goqueue.machines.controller_commands import CreateTopic, DeleteTopic
from goqueue.machines.delays.commands import ScheduleKey
from goqueue.machines.deliveries.commands import Place, Verdict
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError, InvalidWish
from goqueue.model.lag import GroupLag
from goqueue.model.lanes import Lane
from goqueue.model.moments import parse_duration_ms, parse_moment_ms
from goqueue.model.recurring import Recurring
from goqueue.model.refusal import Refused
from goqueue.model.starts import EARLIEST
from goqueue.model.topics import Topic
from goqueue.records.decode import DecodedRecord
from goqueue.records.messages import NewMessage, Sent
from goqueue.testing.broker_care import BrokerCare
from goqueue.testing.memory_disk import MemoryDisk
from goqueue.testing.message import (
    DeadLetter,
    Duration,
    HeadersGiven,
    Lag,
    Message,
    Record,
    Scheduled,
    fields_of,
    header_pairs,
    new_message,
)

Given: TypeAlias = bytes | Mapping[str, Any]
"""A value, or what `publish` takes by name: {"value": b"hello", "key": b"k", "delay": "10m"}."""

PENDING_AT_ONCE = 1000


def broker(
    *,
    clock: Literal["virtual", "real"] = "virtual",
    kafka: bool = False,
    http: bool = False,
    grpc: bool = False,
    now: str | int | None = None,
    disk: MemoryDisk | None = None,
) -> "MemoryBroker":
    """For `async with broker() as b`. `now` sets the virtual clock; `disk` may be one that an earlier broker left."""
    return MemoryBroker(clock=clock, kafka=kafka, http=http, grpc=grpc, now=now, disk=disk)


class MemoryBroker(BrokerCare):
    """Whatever goes wrong is raised as a GoQueueError from the call that asked for it."""

    def __init__(
        self,
        *,
        clock: Literal["virtual", "real"] = "virtual",
        kafka: bool = False,
        http: bool = False,
        grpc: bool = False,
        now: str | int | None = None,
        disk: MemoryDisk | None = None,
    ) -> None:
        doors = [name for name, is_wanted in (("kafka", kafka), ("http", http), ("grpc", grpc)) if is_wanted]
        super().__init__(clock, doors, now, disk)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # -- topics

    async def create_topic(self, name: str, partitions: int = 1, **options: str | int) -> None:
        """Options by their names, `**{"lease.ms": "10000"}`, or with underscores, `lease_ms=10000`."""
        overrides = {option.replace("_", "."): str(value) for option, value in options.items()}
        await self._change(CreateTopic(name, self.broker.topics.new_id(), partitions, overrides))

    async def delete_topic(self, name: str) -> None:
        await self._change(DeleteTopic(name))

    async def topics(self) -> list[str]:
        """Their names; those of dead letters too."""
        return sorted(self.broker.topics.image.topics)

    async def _change(self, command: CreateTopic | DeleteTopic) -> None:
        result: Any = await self.ask(lambda done: self.broker.topics.submit(command, done))
        _check(result)

    def _topic(self, name: str) -> Topic:
        topic = self.broker.topics.image.topics.get(name)
        if topic is None:
            raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
        return topic

    # -- publishing

    async def publish(  # noqa: PLR0913  a record and its wishes
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: HeadersGiven = (),
        priority: str | int = Lane.NORMAL,
        delay: Duration | None = None,
        at: str | int | None = None,
        ttl: Duration | None = None,
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> Sent:
        """Where it is now, durably. A delayed message is not in its topic yet: what is told is its name until then."""
        message = new_message(
            self.now_ms,
            value,
            key=key,
            headers=headers,
            priority=priority,
            delay=delay,
            at=at,
            ttl=ttl,
            partition=partition,
            timestamp=timestamp,
        )
        (sent,) = await self._send(topic, [message])
        return sent

    async def publish_many(self, topic: str, messages: Iterable[Given]) -> list[Sent]:
        """The error of the first that could not be published is raised; the others are published all the same."""
        now_ms = self.now_ms
        given = [{"value": each} if isinstance(each, bytes) else each for each in messages]
        return await self._send(topic, [new_message(now_ms, **each) for each in given])

    async def _send(self, topic: str, messages: Sequence[NewMessage]) -> list[Sent]:
        sent: list[Sent] = await self.ask(lambda done: self.broker.sender.send(topic, messages, done, at_once=True))
        for each in sent:
            if each.error is not None:
                raise each.error
        return sent

    # -- reading as a queue

    async def receive(
        self,
        topic: str,
        group: str = "workers",
        *,
        max_messages: int = 10,
        wait: Duration = 0,
        consumer: str = "consumer",
        lease: Duration | None = None,
        partition: int | None = None,
        start: str = EARLIEST,
    ) -> list[Message]:
        """Leased to `consumer` until they are settled. Without a `lease` as long as topic and group say. With `wait`
        on the virtual clock: until somebody publishes, or advances.
        """
        partitions = range(self._topic(topic).partitions) if partition is None else [partition]
        request = ReceiveRequest(
            group_id=group,
            consumer=consumer,
            places=[(topic, each) for each in partitions],
            records_max=max_messages,
            wait_ms=parse_duration_ms(wait),
            lease_ms=None if lease is None else parse_duration_ms(lease),
            start=start,
        )
        found: list[LeasedPlace] = await self.ask(lambda done: self.broker.receiver.receive(request, done))
        messages = [message for leased in found if leased.error is None for message in self._messages(leased, group)]
        for leased in found:
            if leased.error is not None and not messages:
                raise leased.error
        return messages

    def _messages(self, leased: LeasedPlace, group: str) -> list[Message]:
        place = Place(group, leased.topic, leased.partition)
        return [
            Message(
                **fields_of(leased.topic, leased.partition, record),
                group=group,
                attempt=run.attempt,
                first_delivered=run.first_delivered_ms,
                lease_until=leased.deadline_ms,
                receipt=self.broker.settler.receipt(place, record.offset, leased.lease, leased.epoch),
                _settle=self._settle,
            )
            for record, run in self.broker.receiver.read(leased, group)
        ]

    async def _settle(self, wanted: Wanted) -> Verdict:
        answers: list[Verdict | GoQueueError] = await self.ask(lambda done: self.broker.settler.settle([wanted], done))
        (verdict,) = answers
        if isinstance(verdict, GoQueueError):
            raise verdict
        return verdict

    async def lag(self, topic: str, group: str = "workers") -> Lag:
        """Refused: this group has never received from this topic."""
        queues = self.broker.queues
        places = [place for place in queues.places(group) if place.topic == topic] or [Place(group, topic, 0)]
        lags = [queues.lag(place) for place in places]
        return Lag(
            ready=sum(sum(lag.ready) for lag in lags),
            leased=sum(sum(lag.leased) for lag in lags),
            waiting=sum(lag.waiting for lag in lags),
            dead=sum(lag.dying for lag in lags),
            oldest_age_ms=max((lag.oldest_age_ms for lag in lags if lag.oldest_age_ms is not None), default=None),
        )

    async def group_lag(self, group: str = "workers") -> GroupLag:
        """Of a group in all topics that it reads, as a queue or as a stream. Refused: there is no such group."""
        found: GroupLag | GoQueueError = await self.ask(lambda done: self.broker.lag.of_group(group, done))
        assert isinstance(found, GroupLag)
        return found

    async def dead_letters(self, topic: str) -> list[DeadLetter]:
        """Of all groups that read this topic."""
        name = dead_letters_of(self.broker.topics, topic)
        if name not in self.broker.topics.image.topics:
            return []
        return [
            DeadLetter(**fields_of(name, partition, record))
            for partition in range(self._topic(name).partitions)
            for record in await self._read(name, partition, 0)
        ]

    # -- reading as a stream

    async def read(self, topic: str, partition: int | None = None, offset: int = 0) -> list[Record]:
        """All committed records from `offset` on, of one partition or of all."""
        partitions = range(self._topic(topic).partitions) if partition is None else [partition]
        return [
            Record(**fields_of(topic, each, record))
            for each in partitions
            for record in await self._read(topic, each, offset)
        ]

    async def _read(self, topic: str, partition: int, offset: int, limit: int | None = None) -> list[DecodedRecord]:
        replica = self.broker.topics.replica(topic, partition)
        found: list[DecodedRecord] = []

        def take(records: list[DecodedRecord]) -> bool:
            found.extend(records)
            return limit is None or len(found) < limit

        bounds = offset, replica.last_stable_offset
        ended: GoQueueError | None = await self.ask(lambda done: scan(replica, bounds, self.broker.clock, take, done))
        assert ended is None
        return found[:limit]

    # -- what waits for its time

    async def scheduled(self, topic: str) -> list[Scheduled]:
        found: list[Scheduled] = []
        after: ScheduleKey | None = None
        while pending := self.broker.schedules.pending(topic, None, after, PENDING_AT_ONCE):
            found += [Scheduled.of(each) for each in pending]
            after = pending[-1].schedule.key
        return found

    async def cancel(self, topic: str, partition: int, offset: int) -> None:
        """Never publish it. Refused: nothing of that name waits."""
        key = ScheduleKey(topic, partition, offset)
        _check(await self.ask(lambda done: self.broker.schedules.cancel(key, done)))

    async def reschedule(
        self, topic: str, partition: int, offset: int, *, delay: Duration | None = None, at: str | int | None = None
    ) -> None:
        """Publish it `delay` from now, or `at` a time, instead."""
        if (delay is None) == (at is None):
            raise InvalidWish("say either delay or at")
        now_ms = self.now_ms
        due_ms = now_ms + parse_duration_ms(delay) if delay is not None else parse_moment_ms(at or 0, now_ms)
        key = ScheduleKey(topic, partition, offset)
        _check(await self.ask(lambda done: self.broker.schedules.reschedule(key, due_ms, done)))

    async def repeat(
        self,
        name: str,
        topic: str,
        value: bytes | None,
        *,
        cron: str,
        timezone: str = "UTC",
        key: bytes | None = None,
        headers: HeadersGiven = (),
    ) -> int:
        """Publish it whenever `cron` says so, under a name that stands for this one thing. Returns when first."""
        wanted = Recurring(name, topic, cron, value, key, header_pairs(headers), timezone)
        reply: Any = await self.ask(lambda done: self.broker.recurring.store(wanted, done))
        _check(reply)
        return int(reply.next_ms)

    async def stop_repeating(self, name: str) -> None:
        _check(await self.ask(lambda done: self.broker.recurring.drop(name, done)))


def _check(reply: Any) -> None:
    if reply.code is not Code.NONE:
        raise Refused(reply.code, reply.message)
