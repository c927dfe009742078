"""How far a group has come, kept in two ways: as committed offsets, and as what is settled of a queue. Here they are
kept in step.
"""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Protocol

from goqueue.broker.groups.groups import Groups
from goqueue.broker.queues.queues import Queues
from goqueue.broker.topics.topics import Topics
from goqueue.machines.deliveries.commands import Place, SettleBelow
from goqueue.machines.groups import commands
from goqueue.machines.groups.consumer import facts as consumer_commands
from goqueue.machines.groups.consumer.facts import ConsumerMember
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.refusal import Refused
from goqueue.model.starts import EARLIEST
from goqueue.model.topic_partition import TopicPartition


class EvensElsewhere(Protocol):
    """Places in partitions that other nodes lead."""

    def even(
        self, place: Place, committed: int, on_even: Callable[[int | GoQueueError], None], *, is_to_read: bool
    ) -> None:
        """Tells what is to be committed there; NO_OFFSET: nothing."""


class MemberProgress:
    def __init__(self, groups: Groups, queues: Queues, topics: Topics) -> None:
        self._groups = groups
        self._queues = queues
        self._topics = topics
        self.elsewhere: EvensElsewhere | None = None
        """In a cluster."""

    def commit(
        self,
        group_id: str,
        member_id: str,
        generation: int,
        offsets: Mapping[TopicPartition, int],
        on_reply: Callable[[GoQueueError | None], None],
    ) -> None:
        """All before these offsets is done, both ways. All of them or none."""
        wanted = []
        for (topic, partition), offset in offsets.items():
            try:
                if self._is_here(topic, partition):
                    self._topics.replica(topic, partition)
            except Refused as error:
                on_reply(error)
                return
            wanted.append(self._to_commit(TopicPartition(topic, partition), offset))

        def committed(reply: commands.CommitReply | GoQueueError) -> None:
            failure = failure_of(reply)
            is_unknown = isinstance(failure, Refused) and failure.code is Code.GROUP_ID_NOT_FOUND
            if is_unknown and self._groups.kind_of(group_id) == commands.SHARE:
                words = f"{group_id!r} is a share group: its messages are acknowledged one by one"
                failure = Refused(Code.INCONSISTENT_GROUP_PROTOCOL, words)
            if failure is not None:
                on_reply(failure)
                return
            left = len(wanted)

            def settled(_reply: object) -> None:
                nonlocal left
                left -= 1
                if not left:
                    on_reply(None)

            for each in wanted:
                place, offset = Place(group_id, each.topic, each.partition), each.offset
                if self._is_here(each.topic, each.partition):
                    # Nobody has done yet what lies beyond the end.
                    offset = min(offset, self._topics.end_offset(each.topic, each.partition) or 0)
                self._queues.submit(SettleBelow(place, offset), settled)

        command = commands.CommitOffsets(group_id, tuple(wanted), generation, member_id, knows_group_not_found=True)
        self._groups.submit(command, committed)

    def start_at(
        self, group_id: str, starts: Mapping[TopicPartition, int], on_done: Callable[[GoQueueError | None], None]
    ) -> None:
        """Where the group has neither committed nor read as a queue, it begins at these offsets."""

        def fetched(reply: commands.FetchOffsetsReply | GoQueueError) -> None:
            failure = failure_of(reply)
            if failure is not None:
                on_done(failure)
                return
            assert isinstance(reply, commands.FetchOffsetsReply)
            known = {TopicPartition(each.topic, each.partition) for each in reply.offsets if each.offset >= 0}
            new = ((Place(group_id, *each), offset) for each, offset in starts.items() if each not in known)
            try:
                unread = [one for one in new if self._queues.settled_below(one[0]) is None]
            except GoQueueError as error:
                on_done(error.kept())
            else:
                self._open(unread, on_done)

        self._groups.submit(commands.FetchOffsets(group_id, tuple(starts)), fetched)

    def even_out(
        self,
        group_id: str,
        member: ConsumerMember,
        partitions: Collection[TopicPartition],
        on_even: Callable[[GoQueueError | None], None],
        *,
        is_to_read: bool = False,
    ) -> None:
        """A partition may have been read by a member that commits offsets, and may be read by one next: what either
        side knows to be done is done for both. `is_to_read`: from now on, as a queue.
        """
        if not partitions:
            on_even(None)
            return

        def fetched(reply: commands.FetchOffsetsReply | GoQueueError) -> None:
            failure = failure_of(reply)
            if failure is not None:
                on_even(failure)
            else:
                assert isinstance(reply, commands.FetchOffsetsReply)
                committed = {TopicPartition(each.topic, each.partition): each.offset for each in reply.offsets}
                self._even(group_id, member, committed, on_even, is_to_read=is_to_read)

        self._groups.submit(commands.FetchOffsets(group_id, tuple(partitions)), fetched)

    def _even(
        self,
        group_id: str,
        member: ConsumerMember,
        committed: Mapping[TopicPartition, int],
        on_even: Callable[[GoQueueError | None], None],
        *,
        is_to_read: bool,
    ) -> None:
        behind: list[commands.OffsetToCommit] = []
        unopened: list[tuple[Place, int]] = []
        distant: list[tuple[TopicPartition, int]] = []
        for partition, offset in committed.items():
            if not self._is_here(*partition):
                distant.append((partition, offset))
                continue
            try:
                settled = self._settled(Place(group_id, *partition), offset, unopened)
            except GoQueueError as error:
                if not isinstance(error, Refused) and error.retriable:  # it would begin elsewhere than where it is
                    on_even(error.kept())
                    return
                continue  # whoever receives there is told
            if settled != commands.NO_OFFSET:
                behind.append(self._to_commit(partition, settled))

        def all_even(error: GoQueueError | None = None) -> None:
            if error is not None:
                on_even(error)
                return
            if behind:
                command = commands.CommitOffsets(group_id, tuple(behind), member.epoch, member.member_id)
                self._groups.submit(command, lambda reply: None)
            self._open(unopened if is_to_read else [], on_even)

        self._even_elsewhere(group_id, distant, behind, all_even, is_to_read=is_to_read)

    def _settled(self, place: Place, offset: int, unopened: list[tuple[Place, int]]) -> int:
        """What is to be committed there; NO_OFFSET: nothing."""
        replica = self._topics.replica(place.topic, place.partition)
        start = self._queues.settled_below(place)
        # An offset beyond the end counts like none: to settle up to there would lose what is still to come.
        known = offset if offset <= replica.high_watermark else commands.NO_OFFSET
        if start is None:
            unopened.append((place, known))
        elif known > start:
            self._queues.submit(SettleBelow(place, known))
        elif start > max(known, replica.start_offset):
            return start
        return commands.NO_OFFSET

    def _is_here(self, topic: str, partition: int) -> bool:
        return self.elsewhere is None or bool(self._topics.led(topic, (partition,)))

    def _even_elsewhere(
        self,
        group_id: str,
        distant: list[tuple[TopicPartition, int]],
        behind: list[commands.OffsetToCommit],
        on_done: Callable[[GoQueueError | None], None],
        *,
        is_to_read: bool,
    ) -> None:
        waiting = len(distant)

        def even(partition: TopicPartition, reply: int | GoQueueError) -> None:
            nonlocal waiting
            waiting -= 1
            # A leader that cannot be reached now is asked again by the next poll; others are read meanwhile.
            if not isinstance(reply, GoQueueError) and reply != commands.NO_OFFSET:
                behind.append(self._to_commit(partition, reply))
            if not waiting:
                on_done(None)

        if not distant:
            on_done(None)
        for partition, offset in distant:
            assert self.elsewhere is not None
            place = Place(group_id, *partition)
            self.elsewhere.even(place, offset, partial(even, partition), is_to_read=is_to_read)

    def even_here(
        self, place: Place, committed: int, on_even: Callable[[int | GoQueueError], None], *, is_to_read: bool
    ) -> None:
        """For the coordinator of the group, which is another node."""
        unopened: list[tuple[Place, int]] = []
        try:
            settled = self._settled(place, committed, unopened)
        except GoQueueError as error:
            on_even(error.kept())
            return
        self._open(unopened if is_to_read else [], lambda error: on_even(settled if error is None else error))

    def _open(self, places: list[tuple[Place, int]], on_open: Callable[[GoQueueError | None], None]) -> None:
        left = len(places)

        def opened(_error: GoQueueError | None) -> None:
            nonlocal left
            left -= 1
            if not left:
                on_open(None)

        if not places:
            on_open(None)
        for place, offset in places:
            self._queues.open(place, EARLIEST, opened, at=offset if offset >= 0 else None, is_member=True)

    def _to_commit(self, partition: TopicPartition, offset: int) -> commands.OffsetToCommit:
        topic = self._topics.image.topics[partition.topic]
        return commands.OffsetToCommit(*partition, offset, topic_id=topic.id)


def failure_of(
    reply: consumer_commands.ConsumerHeartbeatReply
    | consumer_commands.FoundConsumerMember
    | commands.CodeReply
    | commands.CommitReply
    | commands.FetchOffsetsReply
    | GoQueueError,
) -> GoQueueError | None:
    """None: it was done."""
    if isinstance(reply, GoQueueError):
        return reply
    if isinstance(reply, commands.CommitReply):
        return next((Refused(code) for code in reply.codes if code is not Code.NONE), None)
    if reply.code is Code.NONE:
        return None
    return Refused(
        reply.code, reply.message or "" if isinstance(reply, consumer_commands.ConsumerHeartbeatReply) else ""
    )
