"""How far groups are behind: what they have committed or settled, against where each partition ends now, and whose it
is.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from goqueue.broker.groups.groups import Groups
from goqueue.broker.queues.queues import Queues
from goqueue.broker.remote.ends import RemoteEnds
from goqueue.broker.topics.topics import Topics
from goqueue.machines.deliveries.commands import Place
from goqueue.machines.groups import commands
from goqueue.machines.groups.classic.payloads import CONSUMER_PROTOCOL_TYPE, partitions_of_assignment
from goqueue.machines.groups.consumer import facts as consumer_commands
from goqueue.machines.groups.share import facts as share_commands
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.lag import GroupLag, Owner, PartitionLag
from goqueue.model.refusal import Refused
from goqueue.model.topic_partition import TopicPartition
from goqueue.runtime.clock import Clock

EMPTY = "Empty"
Ends = Mapping[tuple[str, int], tuple[int, int]]
"""Of partitions that other nodes lead: start and high watermark."""
GROUPS_PER_TURN = 50
"""Of the event loop, when all groups are asked: others want to be served in between."""


class Reader(NamedTuple):
    """A group that reads a partition as a stream."""

    group_id: str
    committed: int | None
    owner: str
    """By its client id, or its member id; empty: nobody reads it now."""


OnReaders = Callable[[list[Reader]], None]


class Known(NamedTuple):
    """What its coordinator says of a group, whichever kind that is of."""

    offsets: commands.FetchOffsetsReply
    classic: commands.DescribedGroup
    consumer: consumer_commands.ConsumerGroupDescription
    share: share_commands.ShareGroupDescription

    @classmethod
    def of(cls, replies: Sequence[object]) -> "Known":
        """They come in the order of the questions."""
        offsets, classic, consumer, share = replies
        assert isinstance(offsets, commands.FetchOffsetsReply)
        assert isinstance(classic, commands.DescribedGroup)
        assert isinstance(consumer, consumer_commands.ConsumerGroupDescription)
        assert isinstance(share, share_commands.ShareGroupDescription)
        return cls(offsets, classic, consumer, share)


class Lag:
    def __init__(self, groups: Groups, queues: Queues, topics: Topics, clock: Clock) -> None:
        self._groups = groups
        self._queues = queues
        self._topics = topics
        self._clock = clock
        self.ends: RemoteEnds | None = None
        """In a cluster: where partitions end that other nodes lead."""
        self.readers_elsewhere: Callable[[str, int, OnReaders], None] | None = None
        """In a cluster: what coordinators on other nodes say of `readers`."""

    def of_group(self, group_id: str, on_reply: Callable[[GroupLag | GoQueueError], None]) -> None:
        """Refused with GROUP_ID_NOT_FOUND: there is no such group."""
        questions = (
            commands.FetchOffsets(group_id, None),
            commands.DescribeGroup(group_id),
            consumer_commands.DescribeConsumerGroup(group_id),
            share_commands.DescribeShareGroup(group_id),
        )
        replies: list[object] = []

        def collect(reply: object) -> None:
            replies.append(reply)
            if len(replies) < len(questions):
                return
            failure = next((one for one in replies if isinstance(one, GoQueueError)), None)
            if failure is not None:
                on_reply(failure)
                return
            known = Known.of(replies)
            if self.ends is None:
                on_reply(self._measured({}, known))
            else:
                self.ends.find(self._streamed(known), lambda ends: on_reply(self._measured(ends, known)))

        for question in questions:
            self._groups.ask(question, collect)

    def of_some(self, group_ids: Iterable[str], on_reply: Callable[[list[GroupLag] | GoQueueError], None]) -> None:
        """By name. A group that there is not, or that goes meanwhile, is left out."""
        self._in_turns(sorted(group_ids), [], on_reply)

    def readers(self, topic: str, partition: int, on_readers: OnReaders) -> None:
        """Groups that read it as a stream, as far as their coordinators can be asked, by name."""
        if self.readers_elsewhere is None:
            self.readers_here(topic, partition, on_readers)
            return

        def told(others: list[Reader]) -> None:
            self.readers_here(topic, partition, lambda own: on_readers(sorted([*own, *others])))

        self.readers_elsewhere(topic, partition, told)

    def readers_here(self, topic: str, partition: int, on_readers: OnReaders) -> None:
        """Of groups that are coordinated here."""

        def counted(reply: list[GroupLag] | GoQueueError) -> None:
            found = []
            for lag in () if isinstance(reply, GoQueueError) else reply:
                for one in lag.partitions:
                    is_stream = one.queue is None or one.committed is not None
                    if (one.topic, one.partition) == (topic, partition) and is_stream:
                        owner = "" if one.owner is None else one.owner.client_id or one.owner.member_id
                        found.append(Reader(lag.group_id, one.committed, owner))
            on_readers(found)

        self.of_some(self._groups.readers(topic), counted)

    def _in_turns(
        self, group_ids: list[str], found: list[GroupLag], on_reply: Callable[[list[GroupLag] | GoQueueError], None]
    ) -> None:
        now, later = group_ids[:GROUPS_PER_TURN], group_ids[GROUPS_PER_TURN:]
        replies: list[GroupLag | GoQueueError] = []

        def collect(reply: GroupLag | GoQueueError) -> None:
            replies.append(reply)
            if len(replies) < len(now):
                return
            failures = [one for one in replies if isinstance(one, GoQueueError) and not _is_gone(one)]
            if failures:
                on_reply(failures[0])
                return
            found.extend(one for one in replies if isinstance(one, GroupLag))
            self._clock.call_soon(lambda: self._in_turns(later, found, on_reply))

        if not now:
            on_reply(sorted(found, key=lambda one: one.group_id))
        for group_id in now:
            self.of_group(group_id, collect)

    def _streamed(self, known: Known) -> list[TopicPartition]:
        """What it has committed to, or reads as a stream."""
        committed = [TopicPartition(one.topic, one.partition) for one in known.offsets.offsets if one.offset >= 0]
        consumer = known.consumer
        owned = self._consumer_owners(consumer.members) if consumer.epoch else _classic_owners(known.classic)
        return [*committed, *(place for place, _ in owned)]

    def _measured(self, ends: Ends, known: Known) -> GroupLag | GoQueueError:
        try:
            return self._measure(ends, known)
        except GoQueueError as error:  # of the coordinator of its deliveries
            return error.kept()

    def _measure(self, ends: Ends, known: Known) -> GroupLag | Refused:
        offsets, classic, consumer, share = known
        group_id = classic.group_id
        read = {TopicPartition(place.topic, place.partition) for place in self._queues.places(group_id)}
        owners: dict[TopicPartition, Owner] = {}
        if consumer.epoch:
            kind, state = commands.CONSUMER, consumer.state
            owners = dict(self._consumer_owners(consumer.members))
        elif classic.code is Code.NONE:
            kind, state = commands.CLASSIC, classic.state
            owners = dict(_classic_owners(classic))
        elif share.epoch or read or self._queues.options(group_id):
            kind, state = commands.SHARE, share.state if share.epoch else EMPTY
        else:
            return Refused(Code.GROUP_ID_NOT_FOUND, f"there is no group {group_id!r}")
        committed = {TopicPartition(one.topic, one.partition): one.offset for one in offsets.offsets if one.offset >= 0}
        partitions = (
            self._partition(group_id, place, committed.get(place), owners.get(place), ends.get(place))
            for place in sorted(committed.keys() | owners.keys() | read)
        )
        return GroupLag(group_id, kind, state, tuple(partitions))

    def _partition(
        self,
        group_id: str,
        partition: TopicPartition,
        committed: int | None,
        owner: Owner | None,
        elsewhere: tuple[int, int] | None,
    ) -> PartitionLag:
        """`elsewhere`: where it begins and ends, if another node leads it."""
        if elsewhere is not None:
            start, end = elsewhere
            return PartitionLag(*partition, committed, end, max(0, end - max(start, committed or 0)), owner)
        place = Place(group_id, *partition)
        settled = self._queues.settled_below(place)
        try:
            replica = self._topics.replica(*partition)
            queue = None if settled is None else self._queues.lag(place)
        except Refused:
            return PartitionLag(*partition, committed, None, None, owner, settled)
        settled = self._queues.settled_below(place)  # a look at the log may have passed markers
        start, end = replica.start_offset, replica.high_watermark
        first = max(start, committed or 0, settled or 0)
        return PartitionLag(*partition, committed, end, max(0, end - first), owner, settled, queue)

    def _consumer_owners(
        self, members: Iterable[consumer_commands.ConsumerMember]
    ) -> Iterator[tuple[TopicPartition, Owner]]:
        for member in members:
            owner = Owner(member.member_id, member.client_id, member.client_host)
            for topic_id, number in consumer_commands.unpacked(member.assigned):
                topic = self._topics.image.by_id(topic_id)
                if topic is not None:
                    yield TopicPartition(topic.name, number), owner


def _classic_owners(group: commands.DescribedGroup) -> Iterator[tuple[TopicPartition, Owner]]:
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return
    for member in group.members:
        owner = Owner(member.member_id, member.client_id, member.client_host)
        for place in partitions_of_assignment(member.assignment) or ():
            yield place, owner


def _is_gone(error: GoQueueError) -> bool:
    return isinstance(error, Refused) and error.code is Code.GROUP_ID_NOT_FOUND
