"""What a classic group remembers: the last stable generation is stored, joins under way are in memory only."""

from collections import Counter
from collections.abc import Callable, Iterable, MutableMapping
from enum import StrEnum
from typing import Any, ClassVar, TypeVar

import msgspec

from goqueue.machines.groups.classic.payloads import CONSUMER_PROTOCOL_TYPE, topics_of_subscription
from goqueue.machines.groups.commands import CLASSIC, GroupProtocol, JoinGroup, ledger_key
from goqueue.machines.groups.limits import member_bytes
from goqueue.machines.machine import Fact
from goqueue.machines.overlay import Overlay
from goqueue.model.codes import Code

V = TypeVar("V")

NOT_STARTED = 0
"""A session clock that starts at the next tick, as all do after a restart."""


class Phase(StrEnum):
    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    """Members are called to join; who has joined waits for the others."""
    COMPLETING = "CompletingRebalance"
    """All know the new generation; they wait for the leader's assignment."""
    STABLE = "Stable"


class ClassicMember(msgspec.Struct, frozen=True):
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[GroupProtocol, ...]
    assignment: bytes = b""

    def protocol_names(self) -> set[str]:
        return {offer.name for offer in self.protocols}

    def metadata(self, protocol: str) -> bytes:
        return next((offer.metadata for offer in self.protocols if offer.name == protocol), b"")


class ClassicGeneration(Fact, frozen=True, tag="ClassicGeneration"):
    """A generation with its assignments, or that the group has become empty. Members carry on in it after a restart."""

    group_id: str
    generation: int
    protocol_type: str
    protocol: str
    leader: str
    members: tuple[ClassicMember, ...]
    since_ms: int
    is_to_assign: bool = False
    """It was a consumer group until now: its members have what they had there, and must assign anew."""

    def key(self) -> bytes:
        return ledger_key(CLASSIC, self.group_id)


class ClassicForgotten(Fact, frozen=True):
    is_tombstone: ClassVar[bool] = True
    group_id: str

    def key(self) -> bytes:
        return ledger_key(CLASSIC, self.group_id)


class Seat(msgspec.Struct, frozen=True):
    """A member and what is under way with it."""

    member: ClassicMember
    deadline_ms: int = NOT_STARTED
    join_ticket: int | None = None
    sync_ticket: int | None = None
    is_new: bool = False
    """It has not been told its first generation."""
    has_synced: bool = True

    def expires_ms(self) -> int | None:
        """Whoever waits for us cannot send heartbeats. A new member may be gone for good, so its waiting has an end."""
        is_kept = self.sync_ticket is not None or (self.join_ticket is not None and not self.is_new)
        return None if is_kept else self.deadline_ms


class ClassicState(msgspec.Struct):
    """Invariant: `instances` names exactly the static members among `seats`.
    Invariant: seats hold join tickets only while PREPARING, sync tickets only while COMPLETING; each of the two phases
    has its deadline, so every ticket is answered some day.
    Invariant: `stored` is what the ledger holds under this group's key.
    Invariant: `joined`, `offers` and the bytes are counted in `put` and `drop`, which alone change who has a seat or
    a ticket. So a member that joins costs the same in a group of any size.
    """

    phase: Phase = Phase.EMPTY
    generation: int = 0
    protocol_type: str = ""
    protocol: str = ""
    leader: str = ""
    seats: MutableMapping[str, Seat] = msgspec.field(default_factory=dict)
    joined: int = 0
    """Seats with a join ticket."""
    offers: MutableMapping[str, int] = msgspec.field(default_factory=dict)
    """Protocol -> how many members offer it."""
    told_bytes: int = 0
    """Of all that members tell of themselves."""
    held_bytes: int = 0
    """Likewise with their ids and assignments."""
    assigned_bytes: int = 0
    instances: MutableMapping[str, str] = msgspec.field(default_factory=dict)
    """Static members: instance id -> member id."""
    pending: MutableMapping[str, int] = msgspec.field(default_factory=dict)
    """Ids given out and not yet joined with -> when they are void."""
    join_deadline_ms: int | None = None
    initial_until_ms: int | None = None
    """Set while the first members of an empty group wait for more: how far that may be prolonged."""
    has_grown: bool = False
    """Somebody new came during the present part of that wait."""
    sync_deadline_ms: int | None = None
    """When members that have not fetched their assignment are given up."""
    stored: ClassicGeneration | None = None

    def draft(self) -> "ClassicState":
        """One that may be changed while this one stays as it is."""
        return self._with_mappings(Overlay)

    def merged(self) -> "ClassicState":
        """The state that this draft has come to; the one that it was drafted on is no more."""
        return self._with_mappings(lambda mapping: mapping.merge() if isinstance(mapping, Overlay) else mapping)

    def _with_mappings(self, change: Callable[[Any], Any]) -> "ClassicState":
        return msgspec.structs.replace(
            self,
            seats=change(self.seats),
            offers=change(self.offers),
            instances=change(self.instances),
            pending=change(self.pending),
        )

    def put(self, member_id: str, seat: Seat) -> None:
        before = self.seats.get(member_id)
        self.seats[member_id] = seat
        self._count(before, seat)

    def drop(self, member_id: str) -> Seat:
        seat = self.seats.pop(member_id)
        self._count(seat, None)
        return seat

    def _count(self, before: Seat | None, after: Seat | None) -> None:
        for seat, change in ((before, -1), (after, 1)):
            if seat is not None and seat.join_ticket is not None:
                self.joined += change
        if before is not None and after is not None and before.member is after.member:
            return
        for seat, change in ((before, -1), (after, 1)):
            if seat is not None:
                assigned = len(seat.member.assignment)
                self.assigned_bytes += change * assigned
                self.held_bytes += change * (assigned + member_bytes(seat.member, seat.member.protocols))
        if before is not None and after is not None and before.member.protocols is after.member.protocols:
            return
        for seat, change in ((before, -1), (after, 1)):
            if seat is not None:
                self.told_bytes += change * told_bytes(seat.member.protocols)
            for name in seat.member.protocol_names() if seat is not None else ():
                count = self.offers.pop(name, 0) + change
                if count:
                    self.offers[name] = count

    def awaiting_join(self) -> bool:
        return self.joined > 0

    def all_joined(self) -> bool:
        return not self.pending and self.joined == len(self.seats)

    def rebalance_ms(self) -> int:
        return max((seat.member.rebalance_timeout_ms for seat in self.seats.values()), default=0)

    def member_refusal(self, member_id: str, instance_id: str | None) -> Code:
        """Why this member may not speak; an instance id lets only its latest holder through."""
        if instance_id is not None:
            holder = self.instances.get(instance_id)
            if holder is not None and holder != member_id:
                return Code.FENCED_INSTANCE_ID
            if holder is None:
                return Code.UNKNOWN_MEMBER_ID
        return Code.NONE if member_id in self.seats else Code.UNKNOWN_MEMBER_ID

    def supports(self, protocol_type: str, protocols: Iterable[GroupProtocol]) -> bool:
        """Whether, with such a member, there would still be a protocol that all support."""
        names = {offer.name for offer in protocols}
        if not self.seats:
            return bool(protocol_type and names)
        return protocol_type == self.protocol_type and not names.isdisjoint(self.common_protocols())

    def common_protocols(self) -> set[str]:
        return {name for name, count in self.offers.items() if count == len(self.seats)}

    def chosen_protocol(self) -> str:
        """Every member votes for the first of its protocols that all support; equal votes go to the one named first."""
        common = self.common_protocols()
        votes = Counter(
            next(offer.name for offer in seat.member.protocols if offer.name in common) for seat in self.seats.values()
        )
        return votes.most_common(1)[0][0]

    def deadline_ms(self) -> int | None:
        """The first of all; of a draft, the first of those that are new, or earlier."""
        dues = [self.join_deadline_ms, self.sync_deadline_ms, *_set_in(self.pending)]
        dues += [seat.expires_ms() for seat in _set_in(self.seats)]
        return min((due_ms for due_ms in dues if due_ms is not None), default=None)


def told_bytes(protocols: Iterable[GroupProtocol]) -> int:
    return sum(len(each.name) + len(each.metadata) for each in protocols)


def restored(fact: ClassicGeneration) -> ClassicState:
    """The state in which the fact leaves a group that nothing is under way in."""
    phase = Phase.STABLE if fact.members else Phase.EMPTY
    state = ClassicState(
        phase=Phase.PREPARING if fact.is_to_assign else phase,
        generation=fact.generation,
        protocol_type=fact.protocol_type,
        protocol=fact.protocol,
        leader=fact.leader,
        instances={member.instance_id: member.member_id for member in fact.members if member.instance_id is not None},
        stored=fact,
    )
    for member in fact.members:
        state.put(member.member_id, Seat(member))
    return state


def _set_in(mapping: MutableMapping[str, V]) -> Iterable[V]:
    return mapping.changed() if isinstance(mapping, Overlay) else mapping.values()


def member_of(command: JoinGroup, member_id: str, assignment: bytes = b"") -> ClassicMember:
    rebalance_ms = command.rebalance_timeout_ms
    return ClassicMember(
        member_id=member_id,
        instance_id=command.instance_id,
        client_id=command.client_id,
        client_host=command.client_host,
        session_timeout_ms=command.session_timeout_ms,
        rebalance_timeout_ms=rebalance_ms if rebalance_ms >= 0 else command.session_timeout_ms,
        protocols=command.protocols,
        assignment=assignment,
    )


def subscribed_topics(state: ClassicState) -> frozenset[str] | None:
    """What the members consume; None if that cannot be told."""
    if state.seats and state.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return None
    topics: set[str] = set()
    for seat in state.seats.values():
        for offer in seat.member.protocols:
            named = topics_of_subscription(offer.metadata)
            if named is None:
                return None
            topics.update(named)
    return frozenset(topics)
