"""Reading a topic as a stream: in the order of its partitions, from where the group has come to.

async with Consumer("127.0.0.1:9092", "orders", group="billing") as consumer:
    async for message in consumer:
        print(message.value)
"""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Literal, Self

from goqueue.client.assigned import Assigned, Place
from goqueue.client.clock import Backoff, Clock
from goqueue.client.cluster import Cluster
from goqueue.client.connection import Limits
from goqueue.client.errors import ClientError, Closed, InvalidArgument
from goqueue.client.fetcher import Fetcher, FetchOptions
from goqueue.client.handover import Handover, HandoverOptions, OnChange
from goqueue.client.inbox import Inbox
from goqueue.client.membership import Hooks, Membership, Subscription
from goqueue.client.message import Message
from goqueue.client.offsets import NAMED, GroupOffsets, offsets_at, timestamp_of
from goqueue.client.options import MIB, between, one_of
from goqueue.client.security import Security
from goqueue.client.tasks import Tasks
from goqueue.client.times import Duration, Moment, duration_s
from goqueue.client.transaction import Consumed
from goqueue.model.errors import GoQueueError
from goqueue.model.names import check_topic_name
from goqueue.ports.dice import Dice
from goqueue.ports.network import Network
from goqueue.telemetry.logs import get_logger
from goqueue.wire.kafka.messages.fetch import FetchedPartition

READ_COMMITTED = "read committed"
ISOLATION = {"committed": READ_COMMITTED, "uncommitted": "read uncommitted"}
PARTITIONS_S = 30.0
"""How often a consumer without a group looks for new partitions."""
PATIENCE = 0.7
"""Of the rebalance timeout: after that the coordinator takes what it wants back."""

log = get_logger("goqueue.client")


class Consumer:
    """Starts with `async with` or `start()`. For one event loop; for threads there is `goqueue.client.sync`.

    With a `group`, its members share the partitions, and begin where the group has committed; without one, this
    consumer reads them all. `start` is for partitions of which nothing is committed: "earliest", "latest", or a moment
    such as "-10m". `auto_commit` commits what is processed, every `commit_every`, before partitions are given back and
    at the end: a message counts as processed when its reader asks for the next.
    """

    def __init__(  # noqa: PLR0913  one for each option, by name only
        self,
        servers: str | Iterable[str],
        *topics: str,
        group: str | None = None,
        start: Moment = "earliest",
        isolation: Literal["committed", "uncommitted"] = "committed",
        auto_commit: bool = True,
        commit_every: Duration = "5s",
        client_id: str = "goqueue",
        instance_id: str | None = None,
        assignor: str | None = None,
        rebalance_timeout: Duration = "5m",
        request_timeout: Duration = "30s",
        fetch_wait_ms: int = 500,
        fetch_bytes_max: int = 8 * MIB,
        partition_bytes_max: int = MIB,
        prefetch_bytes_max: int = 8 * MIB,
        on_assigned: OnChange | None = None,
        on_revoked: OnChange | None = None,
        backoff: Backoff | None = None,
        clock: Clock | None = None,
        dice: Dice | None = None,
        network: Network | None = None,
        security: Security | None = None,
    ) -> None:
        self._topics = _checked(topics, start)
        is_committed = one_of("isolation", isolation, ISOLATION) == READ_COMMITTED
        fetching = FetchOptions(
            is_committed,
            between("fetch_wait_ms", fetch_wait_ms, 0, 300_000),
            between("fetch_bytes_max", fetch_bytes_max, 1, 128 * MIB),
            between("partition_bytes_max", partition_bytes_max, 1, 128 * MIB),
            between("prefetch_bytes_max", prefetch_bytes_max, 1, 2**40),
        )
        rebalance_s = duration_s("rebalance_timeout", rebalance_timeout)
        self._commits = auto_commit and group is not None
        self._commit_s = duration_s("commit_every", commit_every)
        limits = Limits(request_s_max=duration_s("request_timeout", request_timeout))
        cluster = partial(Cluster, servers, client_id=client_id, limits=limits, backoff=backoff)
        self._cluster = cluster(clock=clock, dice=dice, network=network, security=security)
        self._tasks = Tasks()
        self._fetcher = Fetcher(self._cluster, fetching, self._tasks, self._gone)
        self._inbox = Inbox(self._fetcher)
        self._offsets = None if group is None else GroupOffsets(self._cluster, group)
        self._handover = Handover(
            self._cluster,
            self._fetcher,
            self._inbox,
            self._offsets,
            HandoverOptions(start, is_committed, self._commits, rebalance_s * PATIENCE, on_assigned, on_revoked),
        )
        self._membership: Membership | None = None
        if self._offsets is not None and group is not None:
            wanted = Subscription(group, self._topics, instance_id, int(rebalance_s * 1000), assignor)
            hooks = Hooks(self._handover.give_back, self._handover.lose, self._handover.begin, self._fail)
            self._membership = Membership(self._cluster, wanted, self._offsets, self._tasks, hooks)
        self._is_started = False
        self._is_closed = False
        self._failure: GoQueueError | None = None

    # -- its life

    async def start(self) -> Self:
        """Until a server has answered; `async with` does it."""
        if self._is_closed:
            raise Closed("the consumer is closed")
        if not self._is_started:
            self._is_started = True
            try:
                await self._cluster.start()
                if self._membership is None:
                    await self._read_all_partitions()
                    self._tasks.start(self._watch_partitions(), "goqueue consumer: new partitions")
                else:
                    with suppress(ClientError):  # a group may wait for topics that are still to be made
                        await self._cluster.refresh(self._topics)
                    self._tasks.start(self._membership.run(), "goqueue consumer: heartbeats")
                if self._commits:
                    self._tasks.start(self._commit_often(), "goqueue consumer: commits")
            except BaseException:
                await self.close()
                raise
        return self

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close(is_last_done=error is None)

    async def close(self) -> None:
        """Commit what is processed (with `auto_commit`), leave the group, and end. A second time is fine. What was
        handed out counts as processed; not so where an exception ends an `async with`.
        """
        await self._close(is_last_done=True)

    async def _close(self, *, is_last_done: bool) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if is_last_done:
            self._inbox.user_is_back()
        try:
            await self._tasks.stop()
            if self._membership is not None and self._failure is None:
                await self._handover.let_go(set(self._fetcher.states))
                await self._membership.leave()
        finally:
            self._fetcher.tell()
            await self._cluster.close()

    def _fail(self, error: GoQueueError) -> None:
        self._failure = error
        self._fetcher.tell()

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._is_closed or not self._is_started:
            raise Closed(
                "the consumer is closed" if self._is_closed else "the consumer was not started: use async with"
            )

    # -- reading

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message:
        """The next message, whenever it comes. Cancelled while it waits, nothing is lost."""
        if not self._handover.is_waiting:
            message = self._inbox.next()
            if message is not None:
                return message
        while True:
            self._check()
            if self._handover.is_waiting:
                await self._handover.user_is_back()
            message = self._inbox.next()
            if message is not None:
                return message
            if self._inbox.load():
                await asyncio.sleep(0)  # heartbeats go on while there is always a next message
            else:
                await self._fetcher.arrival()

    async def poll(self, max_messages: int = 500, timeout: Duration | None = None) -> list[Message]:  # noqa: ASYNC109
        """Up to `max_messages`, as soon as there are some; none if none came within `timeout`."""
        between("max_messages", max_messages, 1, 2**31)
        deadline_s = None if timeout is None else asyncio.get_running_loop().time() + duration_s("timeout", timeout)
        while True:
            self._check()
            if self._handover.is_waiting:
                await self._handover.user_is_back()
            await asyncio.sleep(0)  # heartbeats go on while there are always messages
            messages = self._inbox.take(max_messages)
            if messages:
                return messages
            try:
                async with asyncio.timeout_at(deadline_s):
                    await self._fetcher.arrival()
            except TimeoutError:
                return []

    # -- positions

    @property
    def assignment(self) -> set[Place]:
        """Topic and partition of all that this consumer reads now."""
        return set(self._fetcher.states)

    def position(self, topic: str, partition: int) -> int:
        """The offset of the message that comes next."""
        self._inbox.mark()
        return self._state(topic, partition).position

    def lag(self, topic: str, partition: int) -> int | None:
        """How many offsets the position is behind the end, as of the last fetch; None: nothing was fetched yet."""
        state = self._state(topic, partition)
        return None if state.high_watermark < 0 else max(0, state.high_watermark - self.position(topic, partition))

    async def seek(self, topic: str, partition: int, offset: int | Literal["earliest", "latest"]) -> None:
        """Go on from there; what was read ahead is forgotten."""
        state = self._state(topic, partition)
        if isinstance(offset, str):
            wanted = {state.place: one_of("offset", offset, NAMED)}
            self._jump(await offsets_at(self._cluster, wanted, is_committed=self._is_committed))
        else:
            self._jump({state.place: between("offset", offset, 0, 2**63 - 1)})

    async def seek_to_time(self, moment: Moment, topic: str | None = None, partition: int | None = None) -> None:
        """Go on with the first message at or after a time ("-10m", RFC 3339, milliseconds since 1970): of all
        partitions that are assigned, of those of one topic, or of one.
        """
        timestamp = timestamp_of(moment, self._cluster.clock.now_ms())
        wanted = {state.place: timestamp for state in self._states(topic, partition)}
        if wanted:
            self._jump(await offsets_at(self._cluster, wanted, is_committed=self._is_committed))

    def pause(self, topic: str | None = None, partition: int | None = None) -> None:
        """Hand out no more of these (of all) until `resume`; heartbeats go on."""
        for state in self._states(topic, partition):
            state.is_paused = True

    def resume(self, topic: str | None = None, partition: int | None = None) -> None:
        for state in self._states(topic, partition):
            if state.is_paused:
                state.is_paused = False
                self._fetcher.resume(state)
        self._fetcher.changed()

    async def commit(self, offsets: Message | Mapping[Place, int] | None = None) -> None:
        """All that was handed out, everything up to one message (that one too), or the offsets to go on from."""
        self._check_group()
        assert self._offsets is not None
        if isinstance(offsets, Message):
            wanted: Mapping[Place, int] = {(offsets.topic, offsets.partition): offsets.offset + 1}
        elif offsets is None:
            delivered = self._inbox.delivered(self._fetcher.states.values())
            wanted = self._uncommitted(delivered) | self._handover.leaving
        else:
            wanted = offsets
            for (topic, partition), offset in offsets.items():
                if offset < 0:
                    raise InvalidArgument(f"offset {offset} of {topic}/{partition} is negative")
        await self._commit(wanted)

    async def committed(self, topic: str, partition: int) -> int | None:
        """What the group has committed there; None: nothing."""
        self._check_group()
        assert self._offsets is not None
        return (await self._offsets.committed([(topic, partition)])).get((topic, partition))

    def consumed(self) -> Consumed:
        """For a transaction that commits them: all offsets that were handed out; group, member id and epoch."""
        self._check_group()
        assert self._offsets is not None
        offsets = self._inbox.delivered(self._fetcher.states.values())
        return Consumed(offsets, self._offsets.group, self._offsets.member_id, self._offsets.member_epoch)

    def _check_group(self) -> None:
        if self._offsets is None:
            raise InvalidArgument("without a group there is nothing to commit to")

    def _uncommitted(self, offsets: Mapping[Place, int]) -> dict[Place, int]:
        states = self._fetcher.states
        return {place: offset for place, offset in offsets.items() if states[place].committed != offset}

    async def _commit(self, offsets: Mapping[Place, int]) -> None:
        assert self._offsets is not None
        await self._offsets.commit(offsets)
        for place, offset in offsets.items():
            state = self._fetcher.states.get(place)
            if state is not None:
                state.committed = offset

    async def _commit_often(self) -> None:
        while True:
            await self._cluster.clock.sleep(self._commit_s)
            try:
                await self._commit(self._uncommitted(self._inbox.processed(self._fetcher.states.values())))
            except ClientError as error:
                log.warning("offsets were not committed; it is tried again", why=str(error))

    @property
    def _is_committed(self) -> bool:
        return self._fetcher.is_committed

    def _state(self, topic: str, partition: int) -> Assigned:
        state = self._fetcher.states.get((topic, partition))
        if state is None:
            raise InvalidArgument(f"partition {partition} of {topic!r} is not assigned to this consumer")
        return state

    def _states(self, topic: str | None, partition: int | None) -> list[Assigned]:
        if topic is not None and partition is not None:
            return [self._state(topic, partition)]
        return [state for state in self._fetcher.states.values() if topic in (None, state.topic)]

    def _jump(self, offsets: Mapping[Place, int]) -> None:
        self._inbox.forget(offsets)
        for place, offset in offsets.items():
            state = self._fetcher.states.get(place)
            if state is not None:
                state.jump(offset)
        self._fetcher.jumped()

    # -- without a group, and when an offset is gone

    async def _read_all_partitions(self) -> None:
        places = set()
        for name in self._topics:
            topic = await self._cluster.topic(name)
            places |= {(name, number) for number in range(len(topic.leaders))}
        missing = places - self._fetcher.states.keys()
        if missing:
            await self._handover.begin(missing)

    async def _watch_partitions(self) -> None:
        while True:
            await self._cluster.clock.sleep(PARTITIONS_S)
            with suppress(ClientError):
                await self._cluster.refresh(self._topics)
                await self._read_all_partitions()

    def _gone(self, state: Assigned, answer: FetchedPartition) -> None:
        self._tasks.start(self._reset(state, answer.log_start_offset), "goqueue consumer: lost offset")

    async def _reset(self, state: Assigned, log_start: int) -> None:
        version, wanted = state.version, state.fetch_offset
        try:
            if wanted < log_start:  # it was deleted by age or size: go on with what is left
                offset = log_start
            else:
                offset = (await self._handover.starts([state.place]))[state.place]
        except ClientError as error:
            state.error = error
            state.is_resetting = False
            self._fetcher.tell()
            return
        if state.version == version:
            log.warning(
                "an offset is gone", topic=state.topic, partition=state.partition, offset=wanted, goes_on_with=offset
            )
            self._jump({state.place: offset})


def _checked(topics: tuple[str, ...], start: Moment) -> tuple[str, ...]:
    """What is wrong is said when the consumer is made, not when it reads."""
    if not topics:
        raise InvalidArgument("no topic was named")
    for topic in topics:
        check_topic_name(topic)
    some_ms = 2**41  # relative moments need one to be relative to
    timestamp_of(start, some_ms)
    return tuple(dict.fromkeys(topics))
