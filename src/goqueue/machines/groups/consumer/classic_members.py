"""Members of a consumer group that still speak the classic protocol, as KIP-848 lets them: nobody leads, and what a
join and a sync would bring about is told from the group's own assignment.
"""

from collections import Counter
from collections.abc import Mapping

from goqueue.machines.groups.classic.payloads import (
    CONSUMER_PROTOCOL_TYPE,
    assignment_of_partitions,
    partitions_owned,
    topics_of_subscription,
)
from goqueue.machines.groups.commands import Heartbeat, JoinGroup, JoinReply, LeavingMember, SyncGroup, SyncReply
from goqueue.machines.groups.consumer.facts import (
    JOIN_EPOCH,
    Assignment,
    ConsumerGroupOptions,
    ConsumerHeartbeat,
    ConsumerMember,
    MemberState,
    TopicPartitions,
    packed,
    unpacked,
)
from goqueue.machines.groups.consumer.state import ConsumerGroupState
from goqueue.model.codes import Code
from goqueue.model.topic_partition import TopicPartition
from goqueue.model.topics import Topic


def join_refusal(state: ConsumerGroupState, options: ConsumerGroupOptions, command: JoinGroup) -> Code:
    member_id, instance_id = command.member_id, command.instance_id
    if state.topics is None:
        return Code.COORDINATOR_LOAD_IN_PROGRESS
    if not options.session_ms_min <= command.session_timeout_ms <= options.session_ms_max:
        return Code.INVALID_SESSION_TIMEOUT
    if not _is_understood(state, command):
        return Code.INCONSISTENT_GROUP_PROTOCOL
    holder = state.instances.get(instance_id) if instance_id is not None else None
    if instance_id is not None and member_id and holder != member_id:
        return Code.UNKNOWN_MEMBER_ID if holder is None else Code.FENCED_INSTANCE_ID
    is_counted = member_id in state.members or holder is not None
    if not is_counted and len(state.members) >= options.size_of(state.group_id):
        return Code.GROUP_MAX_SIZE_REACHED
    return Code.NONE


def _is_understood(state: ConsumerGroupState, command: JoinGroup) -> bool:
    """It is a consumer, and all classic members could agree on a protocol if they had to: they may be alone again."""
    if command.protocol_type != CONSUMER_PROTOCOL_TYPE or not command.protocols:
        return False
    if topics_of_subscription(command.protocols[0].metadata) is None:
        return False
    others = [one for one in state.members.values() if one.classic_protocols and one.member_id != command.member_id]
    offers = Counter(name for one in others for name in {offer.name for offer in one.classic_protocols})
    return any(offers[offer.name] == len(others) for offer in command.protocols)


def as_heartbeat(state: ConsumerGroupState, command: JoinGroup) -> ConsumerHeartbeat:
    """What a member of the new protocol would say in its place. Who comes back under an instance id owns nothing."""
    member = state.members.get(command.member_id)
    metadata = command.protocols[0].metadata
    owned: Assignment = ()
    if member is not None and member.epoch > JOIN_EPOCH:
        assert state.topics is not None
        owned = with_ids(partitions_owned(metadata), state.topics)
    return ConsumerHeartbeat(
        group_id=command.group_id,
        member_id=command.member_id or command.new_member_id,
        member_epoch=JOIN_EPOCH if member is None else member.epoch,
        instance_id=command.instance_id,
        rebalance_timeout_ms=max(command.rebalance_timeout_ms, 0) or command.session_timeout_ms,
        subscribed_topic_names=tuple(topics_of_subscription(metadata) or ()),
        subscribed_topic_regex="",
        owned=owned,
        client_id=command.client_id,
        client_host=command.client_host,
        session_ms=command.session_timeout_ms,
        classic_protocols=command.protocols,
    )


def with_ids(partitions: list[TopicPartition], topics: Mapping[str, Topic]) -> tuple[TopicPartitions, ...]:
    """Of topics and partitions that there are."""
    known = ((topics.get(name), number) for name, number in partitions)
    return packed({(topic.id, number) for topic, number in known if topic and 0 <= number < topic.partitions})


def join_reply(member: ConsumerMember) -> JoinReply:
    """It is no leader, whoever is: it shall ask for its assignment with a sync, and assign nothing."""
    return JoinReply(
        Code.NONE, member.member_id, member.epoch, CONSUMER_PROTOCOL_TYPE, member.classic_protocols[0].name
    )


def speaker(state: ConsumerGroupState, member_id: str, instance_id: str | None) -> ConsumerMember | Code:
    if instance_id is not None:
        holder = state.instances.get(instance_id)
        if holder != member_id:
            return Code.UNKNOWN_MEMBER_ID if holder is None else Code.FENCED_INSTANCE_ID
    member = state.members.get(member_id)
    return member if member is not None and member.classic_protocols else Code.UNKNOWN_MEMBER_ID


def leaver(state: ConsumerGroupState, leaving: LeavingMember) -> ConsumerMember | Code:
    """Who is known by its instance id alone is removed by an operator, whatever it speaks."""
    if leaving.member_id or leaving.instance_id is None:
        return speaker(state, leaving.member_id, leaving.instance_id)
    holder = state.instances.get(leaving.instance_id)
    return Code.UNKNOWN_MEMBER_ID if holder is None else state.members[holder]


def spoken(state: ConsumerGroupState, command: SyncGroup | Heartbeat) -> ConsumerMember | Code:
    member = speaker(state, command.member_id, command.instance_id)
    if isinstance(member, ConsumerMember) and command.generation != member.epoch:
        return Code.ILLEGAL_GENERATION
    return member


def sync_reply(state: ConsumerGroupState, member: ConsumerMember, command: SyncGroup) -> SyncReply:
    assert state.group is not None
    # Who gives up partitions has joined for this epoch already, and joins once more when it has. Others may name what
    # the classic group had chosen before it became this one, and shall only join again.
    if state.group.epoch > member.epoch and member.state is not MemberState.UNREVOKED:
        return SyncReply(Code.REBALANCE_IN_PROGRESS)
    protocol = member.classic_protocols[0].name
    if command.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE) or command.protocol not in (None, protocol):
        return SyncReply(Code.INCONSISTENT_GROUP_PROTOCOL)
    return SyncReply(Code.NONE, CONSUMER_PROTOCOL_TYPE, protocol, assignment_bytes(member, state.topics or {}))


def assignment_bytes(member: ConsumerMember, topics: Mapping[str, Topic]) -> bytes:
    names = {topic.id: name for name, topic in topics.items()}
    assigned = {names[each.topic_id]: each.partitions for each in member.assigned if each.topic_id in names}
    return assignment_of_partitions(assigned)


def must_join_again(state: ConsumerGroupState, member: ConsumerMember) -> bool:
    """There is a new epoch; or it has something to give up; or all that it waits for has become free."""
    assert state.group is not None
    if member.epoch < state.group.epoch or member.state is MemberState.UNREVOKED:
        return True
    if member.state is not MemberState.UNRELEASED:
        return False
    missing = unpacked(member.target) - unpacked(member.assigned)
    return all(partition not in state.owners for partition in missing)
