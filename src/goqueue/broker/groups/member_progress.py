"""How far a group has come, kept in two ways: as committed offsets, and as what is settled of a queue. Here they are
kept in step.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from goqueue.broker.groups.groups import Groups, commands, consumer_commands
from goqueue.broker.queues.queues import EARLIEST, Place, Queues
from goqueue.broker.topics.topics import Topics
from goqueue.machines.deliveries.commands import SettleBelow
from goqueue.machines.groups.commands import TopicPartition
from goqueue.machines.groups.consumer.facts import ConsumerMember
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.refusal import Refused


class MemberProgress:
    def __init__(self, groups: Groups, queues: Queues, topics: Topics) -> None:
        self._groups = groups
        self._queues = queues
        self._topics = topics

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
                self._topics.replica(topic, partition)
            except Refused as error:
                on_reply(error)
                return
            wanted.append(self._to_commit(TopicPartition(topic, partition), offset))

        def committed(reply: Any) -> None:
            codes = () if isinstance(reply, GoQueueError) else reply.codes
            bad = next((code for code in codes if code is not Code.NONE), None)
            if bad is Code.GROUP_ID_NOT_FOUND and self._groups.kind_of(group_id) == commands.SHARE:
                words = f"{group_id!r} is a share group: its messages are acknowledged one by one"
                reply = Refused(Code.INCONSISTENT_GROUP_PROTOCOL, words)
            elif bad is not None:
                reply = Refused(bad)
            if isinstance(reply, GoQueueError):
                on_reply(reply)
                return
            left = len(wanted)

            def settled(_reply: Any) -> None:
                nonlocal left
                left -= 1
                if not left:
                    on_reply(None)

            for each in wanted:
                place, end = (
                    Place(group_id, each.topic, each.partition),
                    self._topics.end_offset(each.topic, each.partition),
                )
                # Nobody has done yet what lies beyond the end.
                self._queues.submit(SettleBelow(place, min(each.offset, end or 0)), settled)

        command = commands.CommitOffsets(group_id, tuple(wanted), generation, member_id, knows_group_not_found=True)
        self._groups.submit(command, committed)

    def start_at(
        self, group_id: str, starts: Mapping[TopicPartition, int], on_done: Callable[[GoQueueError | None], None]
    ) -> None:
        """Where the group has neither committed nor read as a queue, it begins at these offsets."""

        def fetched(reply: Any) -> None:
            failure = failure_of(reply)
            if failure is not None:
                on_done(failure)
                return
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

        def fetched(reply: Any) -> None:
            failure = failure_of(reply)
            if failure is not None:
                on_even(failure)
            else:
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
        for partition, offset in committed.items():
            place = Place(group_id, *partition)
            try:
                replica = self._topics.replica(*partition)
                start = self._queues.settled_below(place)
            except GoQueueError as error:
                if not isinstance(error, Refused) and error.retriable:  # it would begin elsewhere than where it is
                    on_even(error.kept())
                    return
                continue  # whoever receives there is told
            # An offset beyond the end counts like none: to settle up to there would lose what is still to come.
            known = offset if offset <= replica.high_watermark else commands.NO_OFFSET
            if start is None:
                unopened.append((place, known))
            elif known > start:
                self._queues.submit(SettleBelow(place, known))
            elif start > max(known, replica.start_offset):
                behind.append(self._to_commit(partition, start))
        if behind:
            command = commands.CommitOffsets(group_id, tuple(behind), member.epoch, member.member_id)
            self._groups.submit(command, lambda reply: None)
        self._open(unopened if is_to_read else [], on_even)

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
    reply: consumer_commands.ConsumerHeartbeatReply | commands.CodeReply | commands.CommitReply | GoQueueError,
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
