"""One group as people look at it, whichever protocol its members speak."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from goqueue.broker.groups.groups import Groups
from goqueue.broker.groups.lag import EMPTY
from goqueue.broker.queues.queues import Queues
from goqueue.broker.topics.topics import Topics
from goqueue.machines.groups import commands
from goqueue.machines.groups.classic.payloads import CONSUMER_PROTOCOL_TYPE, partitions_of_assignment
from goqueue.machines.groups.consumer import facts as consumer_commands
from goqueue.machines.groups.share import facts as share_commands
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.refusal import Refused
from goqueue.model.topic_partition import TopicPartition

Counts = consumer_commands.ConsumerGroupCounts
Described = commands.DescribedGroup | consumer_commands.ConsumerGroupDescription | share_commands.ShareGroupDescription


class MemberView(NamedTuple):
    member_id: str
    client_id: str
    client_host: str
    generation: int
    partitions: tuple[TopicPartition, ...]
    joined_at_ms: int | None = None
    heard_ms: int | None = None


class GroupView(NamedTuple):
    group_id: str
    type: str
    state: str
    """As Kafka calls it."""
    generation: int
    assignor: str
    topics: tuple[str, ...]
    """That members subscribe to, or that the group reads as a queue."""
    members: tuple[MemberView, ...] = ()
    created_at_ms: int | None = None
    counts: Counts | None = None
    """Of a consumer group."""

    @property
    def leader_id(self) -> str:
        """Nobody leads: it is the member that has been there longest."""
        first = min(self.members, key=lambda each: (each.joined_at_ms or 0, each.member_id), default=None)
        return "" if first is None else first.member_id


class HasGroups(Protocol):
    """Of a broker."""

    @property
    def groups(self) -> Groups: ...

    @property
    def queues(self) -> Queues: ...

    @property
    def topics(self) -> Topics: ...


def with_topics(view: GroupView, may_see: Callable[[str], bool]) -> GroupView:
    """What is left of it for somebody who may see these topics."""
    members = (
        each._replace(partitions=tuple(one for one in each.partitions if may_see(one.topic))) for each in view.members
    )
    return view._replace(topics=tuple(filter(may_see, view.topics)), members=tuple(members))


def view_group(broker: HasGroups, group_id: str, on_view: Callable[[GroupView | GoQueueError], None]) -> None:
    """Refused: there is no such group."""
    replies: list[Described | GoQueueError] = []

    def collect(reply: Described | GoQueueError) -> None:
        replies.append(reply)
        if len(replies) == 3:
            failure = next((one for one in replies if isinstance(one, GoQueueError)), None)
            on_view(failure or _view(broker, group_id, replies))

    broker.groups.ask(commands.DescribeGroup(group_id), collect)
    broker.groups.ask(consumer_commands.DescribeConsumerGroup(group_id), collect)
    broker.groups.ask(share_commands.DescribeShareGroup(group_id), collect)


def _view(broker: HasGroups, group_id: str, replies: Sequence[Described | GoQueueError]) -> GroupView | Refused:
    """The replies are in any order: in a cluster a question may have been repeated, and be answered last."""
    (classic,) = [each for each in replies if isinstance(each, commands.DescribedGroup)]
    (consumer,) = [each for each in replies if isinstance(each, consumer_commands.ConsumerGroupDescription)]
    (share,) = [each for each in replies if isinstance(each, share_commands.ShareGroupDescription)]
    topics = broker.topics
    read = {place.topic for place in broker.queues.places(group_id)}
    if consumer.epoch:
        named = {name for member in consumer.members for name in member.topic_names}
        return GroupView(
            group_id,
            commands.CONSUMER,
            consumer.state,
            consumer.epoch,
            consumer.assignor,
            tuple(sorted(named | read)),
            tuple(_member(topics, each, consumer.heard_ms.get(each.member_id)) for each in consumer.members),
            consumer.created_at_ms or None,
            consumer.counts,
        )
    if share.epoch:
        named = {name for member in share.members for name in member.topic_names}
        members = tuple(_member(topics, each, None) for each in share.members)
        kind = commands.SHARE
        return GroupView(group_id, kind, share.state, share.epoch, share.assignor, tuple(sorted(named | read)), members)
    if classic.code is Code.NONE:
        members = tuple(_classic_member(classic, each) for each in classic.members)
        found = {partition.topic for member in members for partition in member.partitions} | read
        return GroupView(
            group_id,
            commands.CLASSIC,
            classic.state,
            max(0, classic.generation),
            classic.protocol,
            tuple(sorted(found)),
            members,
        )
    if read or broker.queues.options(group_id):
        return GroupView(group_id, commands.SHARE, EMPTY, 0, "", tuple(sorted(read)))
    return Refused(Code.GROUP_ID_NOT_FOUND, f"there is no group {group_id!r}")


def _member(
    topics: Topics, member: consumer_commands.ConsumerMember | share_commands.ShareMember, heard_ms: int | None
) -> MemberView:
    found = ((topics.image.by_id(each.topic_id), each.partitions) for each in member.assigned)
    partitions = (TopicPartition(topic.name, number) for topic, numbers in found if topic for number in numbers)
    return MemberView(
        member.member_id,
        member.client_id,
        member.client_host,
        member.epoch,
        tuple(sorted(partitions)),
        (member.joined_at_ms or None) if isinstance(member, consumer_commands.ConsumerMember) else None,
        heard_ms,
    )


def _classic_member(group: commands.DescribedGroup, member: commands.DescribedMember) -> MemberView:
    is_consumer = group.protocol_type == CONSUMER_PROTOCOL_TYPE
    partitions = partitions_of_assignment(member.assignment) or () if is_consumer else ()
    return MemberView(
        member.member_id, member.client_id, member.client_host, max(0, group.generation), tuple(sorted(partitions))
    )
