"""A group changes its protocol while it has members (KIP-848): the first member of the new protocol makes a classic
group a consumer group, and when the last of them goes it becomes a classic group again. Members and what they have
stay.
"""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from goqueue.machines.groups.classic.payloads import (
    CONSUMER_PROTOCOL_TYPE,
    partitions_of_assignment,
    partitions_owned,
    topics_of_subscription,
)
from goqueue.machines.groups.classic.rebalance import Draft
from goqueue.machines.groups.classic.state import ClassicGeneration, ClassicMember, ClassicState, restored
from goqueue.machines.groups.commands import GroupOptions, JoinGroup, JoinReply, SyncReply
from goqueue.machines.groups.consumer.classic_members import assignment_bytes, with_ids
from goqueue.machines.groups.consumer.facts import (
    ConsumerGroupGone,
    ConsumerGroupKept,
    ConsumerMember,
    ConsumerMemberGone,
    ConsumerMemberKept,
    packed,
    unpacked,
)
from goqueue.machines.groups.consumer.state import ConsumerGroupState
from goqueue.machines.groups.consumer.subscriptions import Subscriptions
from goqueue.machines.machine import Fact, Outcome
from goqueue.model.codes import Code
from goqueue.model.topics import Topic


def can_upgrade(state: ClassicState) -> bool:
    """Its members are consumers, and say what they consume."""
    return state.protocol_type == CONSUMER_PROTOCOL_TYPE and all(
        topics_of_subscription(_subscription(state, seat.member)) is not None for seat in state.seats.values()
    )


def upgraded(group_id: str, state: ClassicState, topics: Mapping[str, Topic], now_ms: int) -> list[Fact]:
    """The consumer group that this classic one becomes; its generation is the epoch of all members."""
    held = _held(state, topics)
    members = []
    for seat in state.seats.values():
        one = seat.member
        assigned = held[one.member_id]
        members.append(
            ConsumerMember(
                one.member_id,
                one.instance_id,
                client_id=one.client_id,
                client_host=one.client_host,
                rebalance_timeout_ms=one.rebalance_timeout_ms,
                topic_names=tuple(sorted(set(topics_of_subscription(_subscription(state, one)) or ()))),
                epoch=state.generation,
                previous_epoch=state.generation,
                assigned=packed(assigned),
                target=packed(assigned),
                session_ms=one.session_timeout_ms,
                joined_at_ms=now_ms,
                classic_protocols=one.protocols,
            )
        )
    kept = ConsumerGroupKept(
        group_id,
        epoch=state.generation,
        target_epoch=state.generation,
        topics=Subscriptions(group_id, topics).used(members),
        created_at_ms=now_ms,
    )
    return [kept, *(ConsumerMemberKept(group_id, member) for member in members)]


def _held(state: ClassicState, topics: Mapping[str, Topic]) -> dict[str, set[tuple[bytes, int]]]:
    """What each member may have: what it was given, and what it said that it had when it joined. It may not have heard
    yet that it shall give that up, so nobody else gets it before it joins again.
    """
    members = [seat.member for seat in state.seats.values()]
    given = [(one, partitions_of_assignment(one.assignment) or []) for one in members]
    owned = [(one, partitions_owned(_subscription(state, one))) for one in members]
    held: dict[str, set[tuple[bytes, int]]] = {one.member_id: set() for one in members}
    taken: set[tuple[bytes, int]] = set()
    for one, named in (*given, *owned):
        new = unpacked(with_ids(named, topics)) - taken  # a leader may have given one twice
        taken |= new
        held[one.member_id] |= new
    return held


def turned_away(state: ClassicState) -> list[tuple[int, Any]]:
    """Who waits for the classic group is told to join again.

    Who waits in a join hears that the group is being loaded, where Kafka says that it rebalances: every client tries
    again after the first, but aiokafka gives up after the second.
    """
    replies: list[tuple[int, Any]] = []
    for member_id, seat in state.seats.items():
        if seat.join_ticket is not None:
            replies.append((seat.join_ticket, JoinReply(Code.COORDINATOR_LOAD_IN_PROGRESS, member_id)))
        if seat.sync_ticket is not None:
            replies.append((seat.sync_ticket, SyncReply(Code.REBALANCE_IN_PROGRESS)))
    return replies


def _subscription(state: ClassicState, member: ClassicMember) -> bytes:
    return member.metadata(state.protocol) or member.protocols[0].metadata


def downgraded(
    state: ConsumerGroupState, command: Any, outcome: Outcome, options: GroupOptions, now_ms: int
) -> Outcome:
    """`outcome` of a command to a consumer group; or, if that leaves members of the classic protocol alone, the classic
    group that it becomes. These are called to join at once: they have to assign again.
    """
    gone = {fact.member_id for fact in outcome.facts if isinstance(fact, ConsumerMemberGone)}
    left = [member for member_id, member in state.members.items() if member_id not in gone]
    is_alone = bool(gone and left) and all(member.classic_protocols for member in left)
    if not is_alone or isinstance(command, JoinGroup):  # who joins was told how, and stays
        return outcome
    assert state.group is not None
    group_id, members = state.group_id, tuple(_classic_member(each, state.topics or {}) for each in left)
    kept = ClassicGeneration(
        group_id, state.group.epoch, CONSUMER_PROTOCOL_TYPE, "", members[0].member_id, members, now_ms
    )
    kept = replace(kept, protocol=restored(kept).chosen_protocol())
    draft = Draft(group_id, restored(kept), options, now_ms)
    draft.rebalance()
    # Were this forgotten, nobody would read what the others have left.
    kept = draft.state.stored = replace(kept, is_to_assign=True)
    forgotten = [*(ConsumerMemberGone(group_id, each) for each in state.members), ConsumerGroupGone(group_id)]
    return Outcome([*forgotten, kept, *draft.outcome().facts], outcome.replies)


def _classic_member(member: ConsumerMember, topics: Mapping[str, Topic]) -> ClassicMember:
    return ClassicMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.session_ms,
        member.rebalance_timeout_ms,
        member.classic_protocols,
        assignment_bytes(member, topics),
    )
