"""One Subscribe stream: a member of a group for as long as it is open. It waits for whatever comes first: messages, a
rebalance, room for more of them, or time for a heartbeat. There is no polling, and one timer at most.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from goqueue.broker.groups.member_poll import BEATS_PER_SESSION, Polled, PollRequest, poll
from goqueue.broker.queues.taking import LeasedPlace
from goqueue.doors.grpc.call import Call, named
from goqueue.doors.grpc.convert import duration_ms_of, message_of, payload_bytes, timestamp_of, topic_partitions
from goqueue.doors.grpc.errors import GrpcError, error_of
from goqueue.doors.grpc.serving import Writing
from goqueue.machines.deliveries.commands import Place
from goqueue.model.errors import GoQueueError
from goqueue.model.members import SESSION_MS_MAX, SESSION_MS_MIN, Joining, Membership, Who
from goqueue.model.starts import EARLIEST
from goqueue.model.topic_partition import TopicPartition
from goqueue.records.replays import Moved, Where
from goqueue.wire.grpc import consume_pb2 as pb

TOPICS_MAX = 100
LEASE_MS_MAX = 12 * 3_600_000
BEAT_MS_MIN = 10
PAUSE_MS = 1000
ANOTHER = -1
"""As the id of a node: one of the others, until they are asked."""
OVERHEAD_BYTES = 512
"""Of a leased message: its place, its time, its trace and its receipt."""


class Subscription:
    """Invariant: while it runs it is a member; when it ends, however it does, it leaves, and what it holds goes to
    others.
    """

    def __init__(self, call: Call, request: pb.SubscribeRequest, messages_max: int, bytes_max: int) -> None:
        self._call = call
        self._group_id = named("group_id", request.group_id)
        self._topics = tuple(dict.fromkeys(request.topics))
        if not self._topics or len(self._topics) > TOPICS_MAX:
            raise GrpcError(f"say 1 to {TOPICS_MAX} topics")
        self._consumer_id = request.consumer_id
        self._messages_max = messages_max
        self._bytes_max = bytes_max
        self._session_ms = 0
        if request.HasField("session_timeout"):
            self._session_ms = duration_ms_of(
                "session_timeout", request.session_timeout, SESSION_MS_MIN, SESSION_MS_MAX
            )
        self._beat_ms: int | None = None
        for name in ("heartbeat_interval", "max_wait"):
            if self._beat_ms is None and request.HasField(name):
                self._beat_ms = duration_ms_of(name, getattr(request, name), BEAT_MS_MIN)
        self._lease_ms: int | None = None
        if request.HasField("lease"):
            self._lease_ms = duration_ms_of("lease", request.lease, 1, LEASE_MS_MAX)
        self._who = Who(self._group_id, "")
        self._news = asyncio.Event()
        self._has_moved = False
        self._assigned: tuple[TopicPartition, ...] = ()
        self._generation = 0
        self._held: dict[int, int] = {}
        """How much it holds on other nodes, at most, by their ids."""
        self._beat_due_s = 0.0
        """While it waits for room: when it shows again that it lives, however often it is woken before."""

    async def run(self, where: Where, out: Writing) -> None:
        broker = self._call.broker
        joining = Joining(self._group_id, self._consumer_id, self._topics, session_ms=self._session_ms)
        membership: Membership = await self._join(joining)
        try:
            await self._begin(where)  # after joining: what is read by nobody's members is a share group
            broker.members.groups.watch(self._group_id, self._moved)
            beat_ms = min(self._beat_ms or SESSION_MS_MAX, membership.session_ms // BEATS_PER_SESSION)
            self._generation, self._assigned = membership.generation, membership.assigned
            await out.write(self._assignment())
            while True:
                await self._turn(beat_ms, out)
        finally:
            broker.members.groups.unwatch(self._group_id, self._moved)
            broker.members.leave(self._who, lambda _: None)

    async def _join(self, joining: Joining) -> Membership:
        """If nobody waits any more when it has joined, it leaves at once."""
        members = self._call.broker.members
        is_awaited = True

        def submit(done: Any) -> None:
            def joined(reply: Membership | GoQueueError) -> None:
                if isinstance(reply, Membership):
                    self._who = Who(self._group_id, reply.member_id)
                    if not is_awaited:
                        members.leave(self._who, lambda _: None)
                done(reply)

            members.join(joining, joined)

        try:
            membership: Membership = await self._call.ask(submit)
        except asyncio.CancelledError:
            is_awaited = False
            if self._who.member_id:
                members.leave(self._who, lambda _: None)
            raise
        return membership

    async def _begin(self, where: Where) -> None:
        """Where the group begins in partitions that it has never read."""
        broker = self._call.broker
        for name in self._topics:
            self._call.topic(name)
        if where.end == EARLIEST:  # which is where it begins if nobody says otherwise
            return
        starts: dict[TopicPartition, int] = {}
        for name in self._topics:
            looked: list[Moved] = await self._call.ask(partial(broker.replays.look, self._group_id, name, where, None))
            starts |= {TopicPartition(name, each.partition): each.after for each in looked}
        _: object = await self._call.ask(lambda done: broker.members.progress.start_at(self._group_id, starts, done))

    # -- one turn

    async def _turn(self, beat_ms: int, out: Writing) -> None:
        self._news.clear()
        if self._has_moved:
            self._has_moved = False
            await self._follow(out)
        room = await self._room()
        if room > 0:
            polled = await self._poll(room, beat_ms)
            self._beat_is_due_in(beat_ms)
        else:
            polled = await self._wait_for_room(beat_ms)
        if polled is None:
            return
        if polled.found:
            await self._deliver(polled.found, out)
            if all(each.error is not None for each in polled.found) and not self._has_moved:
                self._news.clear()
                await self._rest(min(beat_ms, PAUSE_MS))  # what is out of service is not asked again and again
        elif not self._has_moved:
            now = timestamp_of(self._call.now_ms)
            await out.write(pb.ConsumeResponse(heartbeat=pb.Heartbeat(timestamp=now)))

    async def _room(self) -> int:
        """For how many more. What other nodes have given is counted until they are asked, which is done when there
        seems to be little room left."""
        queues = self._call.broker.queues
        free = self._messages_max - queues.held_by(self._group_id, self._who.member_id)
        if free <= 0 or sum(self._held.values()) > free // 2:
            self._held = await self._call.ask(partial(queues.count_elsewhere, self._group_id, self._who.member_id))
        return free - sum(self._held.values())

    def _moved(self) -> None:
        self._has_moved = True
        self._news.set()

    async def _follow(self, out: Writing) -> None:
        """The group has changed: what is no longer the member's it has given up with this, as its answer says."""
        membership: Membership = await self._call.ask(lambda done: self._call.broker.members.beat(self._who, done))
        before, after = set(self._assigned), set(membership.assigned)
        if before == after and membership.generation == self._generation:
            return
        self._generation, self._assigned = membership.generation, membership.assigned
        for kind, moved in (
            (pb.REBALANCE_TYPE_REVOKE, before - after),
            (pb.REBALANCE_TYPE_ASSIGN, after - before),
        ):
            if moved:
                partitions = topic_partitions(sorted(moved))
                notice = pb.RebalanceNotification(type=kind, partitions=partitions, generation=self._generation)
                await out.write(pb.ConsumeResponse(rebalance=notice))
        await out.write(self._assignment())

    def _assignment(self) -> pb.ConsumeResponse:
        partitions = topic_partitions(self._assigned)
        return pb.ConsumeResponse(
            assignment=pb.Assignment(generation=self._generation, partitions=partitions, member_id=self._who.member_id)
        )

    async def _poll(self, room: int, beat_ms: int) -> Polled | None:
        """None: something else came first."""
        broker = self._call.broker
        replies: list[Polled | GoQueueError] = []

        def answered(reply: Polled | GoQueueError) -> None:
            replies.append(reply)
            self._news.set()

        request = PollRequest(self._who, room, self._bytes_max, beat_ms, self._lease_ms)
        parked = poll(broker.members, broker.receiver, request, answered)
        try:
            await self._news.wait()
        finally:
            parked.cancel()
        if not replies:
            return None
        if isinstance(replies[0], GoQueueError):
            raise replies[0]
        return replies[0]

    async def _wait_for_room(self, beat_ms: int) -> Polled | None:
        """It shows that it lives all the same."""
        queues = self._call.broker.queues

        def freed() -> None:
            if queues.held_by(self._group_id, self._who.member_id) + sum(self._held.values()) < self._messages_max:
                self._news.set()

        left_ms = int((self._beat_due_s - self._call.broker.clock.monotonic_s()) * 1000)
        queues.watch(self._group_id, freed)
        # Twice as long: that nothing has changed is not worth waking for before it is time for a heartbeat.
        stop = queues.watch_elsewhere(self._group_id, self._who.member_id, self._held, 2 * beat_ms, self._news.set)
        try:
            is_time = left_ms <= 0 or await self._rest(left_ms)
        finally:
            queues.unwatch(self._group_id, freed)
            stop()
        if not is_time:
            return None
        self._beat_is_due_in(beat_ms)
        _: object = await self._call.ask(lambda done: self._call.broker.members.beat(self._who, done))
        return Polled(self._generation, [])

    def _beat_is_due_in(self, beat_ms: int) -> None:
        self._beat_due_s = self._call.broker.clock.monotonic_s() + beat_ms / 1000

    async def _rest(self, rest_ms: int) -> bool:
        """Until there are news, or so long: then True."""
        is_time = False

        def wake() -> None:
            nonlocal is_time
            is_time = True
            self._news.set()

        timer = self._call.broker.clock.call_after(rest_ms, wake)
        try:
            await self._news.wait()
        finally:
            timer.cancel()
        return is_time

    async def _deliver(self, found: Sequence[LeasedPlace], out: Writing) -> None:
        for leased in found:
            if leased.error is not None:
                await out.write(pb.ConsumeResponse(error=error_of(leased.error)))
                continue
            for batch in self._batches(leased):
                await out.write(pb.ConsumeResponse(messages=batch))

    def _batches(self, leased: LeasedPlace) -> list[pb.MessageBatch]:
        broker = self._call.broker
        place = Place(self._group_id, leased.topic, leased.partition)
        topic = broker.topics.image.topics.get(leased.topic)
        topic_id = b"" if topic is None else topic.id
        until = timestamp_of(leased.deadline_ms)
        end = leased.end if leased.replica is None else leased.replica.high_watermark
        batches = [pb.MessageBatch(high_watermark=end)]
        size = 0
        for record, run in broker.receiver.read(leased, self._group_id):
            message = message_of(leased.topic, topic_id, leased.partition, record)
            message.retry_count = run.attempt - 1
            message.receipt_handle = broker.settler.receipt(place, record.offset, leased.lease, leased.epoch)
            message.lease_until.CopyFrom(until)
            weight = OVERHEAD_BYTES + payload_bytes(record)
            size += weight
            if size > self._bytes_max and batches[-1].messages:
                batches.append(pb.MessageBatch(high_watermark=end))
                size = weight
            batches[-1].messages.append(message)
        if leased.replica is None:
            self._held[ANOTHER] = self._held.get(ANOTHER, 0) + sum(len(each.messages) for each in batches)
        return [each for each in batches if each.messages]
