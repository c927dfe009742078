"""How a classic group changes: one event (a join, a removal, a deadline) may end the rebalance that it starts, so a
decision is drafted over the group, step by step. It becomes one volatile fact, and a durable one if the ledger
must know.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec.structs import replace

from goqueue.machines.groups.classic.state import (
    NOT_STARTED,
    ClassicGeneration,
    ClassicState,
    Phase,
    Seat,
    member_of,
)
from goqueue.machines.groups.commands import GroupOptions, JoinedMember, JoinGroup, JoinReply, SyncReply
from goqueue.machines.machine import Fact, Outcome
from goqueue.model.codes import Code


class ClassicChanged(Fact, frozen=True):
    """A draft of what the group is now, with all that a restart may forget. Applying it merges that."""

    durable: ClassVar[bool] = False
    group_id: str
    state: ClassicState


class Draft:
    def __init__(self, group_id: str, state: ClassicState, options: GroupOptions, now_ms: int) -> None:
        self.state = state.draft()
        self._group_id = group_id
        self._options = options
        self._now_ms = now_ms
        self._replies: list[tuple[int, Any]] = []
        self._durable: list[Fact] = []
        self._has_lost_members = False

    def outcome(self, ticket: int = 0, reply: object = None) -> Outcome:
        """The facts and replies of this draft, and the reply to the command itself unless it has to wait."""
        if reply is not None:
            self._replies.append((ticket, reply))
        return Outcome([*self._durable, ClassicChanged(self._group_id, self.state)], self._replies)

    def _store(self, fact: ClassicGeneration) -> None:
        self.state.stored = fact
        self._durable = [fact]

    def _store_generation(self) -> None:
        state = self.state
        members = tuple(seat.member for seat in state.seats.values())
        self._store(
            ClassicGeneration(
                self._group_id,
                state.generation,
                state.protocol_type,
                state.protocol,
                state.leader,
                members,
                self._now_ms,
            )
        )

    # Members come and go

    def expect(self, member_id: str, session_timeout_ms: int) -> None:
        """An id was given out; a rebalance waits for it to be used, or void."""
        self.state.pending[member_id] = self._now_ms + session_timeout_ms

    def add(self, command: JoinGroup, member_id: str, ticket: int) -> None:
        state = self.state
        state.pending.pop(member_id, None)
        if not state.seats:
            state.protocol_type = command.protocol_type
            state.leader = member_id
        deadline_ms = self._now_ms + self._options.new_member_join_ms
        member = member_of(command, member_id)
        state.put(member_id, Seat(member, deadline_ms, join_ticket=ticket, is_new=True, has_synced=False))
        if command.instance_id is not None:
            state.instances[command.instance_id] = member_id
        state.has_grown = state.initial_until_ms is not None
        self.rebalance()

    def rejoin(self, command: JoinGroup, member_id: str, ticket: int) -> None:
        """A member joins again, perhaps with other protocols."""
        seat = self.state.seats[member_id]
        self._answer_waiting(seat, Code.REBALANCE_IN_PROGRESS)
        self._reseat(command, seat, member_id, ticket)
        self.rebalance()

    def replace_static(self, command: JoinGroup, old_id: str, new_id: str) -> None:
        """A static member is back under a new id: it takes the seat, and whoever waits under the old id is fenced."""
        state = self.state
        seat = state.seats[old_id]
        self._answer_waiting(seat, Code.FENCED_INSTANCE_ID)
        # The order of members decides who leads and who wins a vote; a comeback must not change it.
        state.seats = {new_id if member_id == old_id else member_id: each for member_id, each in state.seats.items()}
        assert command.instance_id is not None
        state.instances[command.instance_id] = new_id
        if state.leader == old_id:
            state.leader = new_id
        self._reseat(command, seat, new_id, None)
        self._restore_under_new_id(old_id, new_id)

    def await_join(self, member_id: str, ticket: int) -> None:
        self.state.put(member_id, replace(self.state.seats[member_id], join_ticket=ticket))
        self.rebalance()

    def _reseat(self, command: JoinGroup, seat: Seat, member_id: str, join_ticket: int | None) -> None:
        member = member_of(command, member_id, seat.member.assignment)
        reseated = replace(
            seat,
            member=replace(member, instance_id=seat.member.instance_id),
            deadline_ms=seat.deadline_ms if seat.is_new else self._now_ms + member.session_timeout_ms,
            join_ticket=join_ticket,
            sync_ticket=None,
        )
        self.state.put(member_id, reseated)

    def _restore_under_new_id(self, old_id: str, new_id: str) -> None:
        """Else a restart in the midst of a rebalance would bring the old id back, to fence the living member."""
        stored = self.state.stored
        if stored is None or old_id not in {member.member_id for member in stored.members}:
            return
        members = tuple(
            replace(member, member_id=new_id) if member.member_id == old_id else member for member in stored.members
        )
        leader = new_id if stored.leader == old_id else stored.leader
        self._store(replace(stored, members=members, leader=leader))

    def remove(self, member_id: str) -> None:
        """The caller goes on without them when all who go are gone."""
        state = self.state
        seat = state.drop(member_id)
        self._has_lost_members = True
        if seat.member.instance_id is not None:
            del state.instances[seat.member.instance_id]
        if state.leader == member_id:
            state.leader = ""  # the next generation has one, found once for all who go
        self._answer_waiting(seat, Code.UNKNOWN_MEMBER_ID)

    def _answer_waiting(self, seat: Seat, code: Code) -> None:
        if seat.join_ticket is not None:
            self._replies.append((seat.join_ticket, JoinReply(code, seat.member.member_id)))
        if seat.sync_ticket is not None:
            self._replies.append((seat.sync_ticket, SyncReply(code)))

    # The join phase

    def rebalance(self) -> None:
        """Call all members to join, unless that is under way."""
        if self.state.phase is not Phase.PREPARING:
            self._prepare()
        self._settle()

    def go_on(self) -> None:
        """After members, or ids given out, are gone."""
        if self._has_lost_members:
            self.rebalance()
        else:
            self._settle()

    def _settle(self) -> None:
        """End the join phase if nobody is missing."""
        state = self.state
        waits_for_more = state.initial_until_ms is not None or not state.all_joined()
        if state.phase is Phase.PREPARING and not (state.seats and waits_for_more):
            self._complete_join()

    def _prepare(self) -> None:
        state = self.state
        for member_id, seat in state.seats.items():
            if seat.sync_ticket is not None:
                self._replies.append((seat.sync_ticket, SyncReply(Code.REBALANCE_IN_PROGRESS)))
                deadline_ms = self._now_ms + seat.member.session_timeout_ms
                state.put(member_id, replace(seat, sync_ticket=None, deadline_ms=deadline_ms))
        state.sync_deadline_ms = None
        delay_ms = min(self._options.initial_rebalance_delay_ms, state.rebalance_ms())
        state.join_deadline_ms = self._now_ms + state.rebalance_ms()
        if state.phase is Phase.EMPTY and delay_ms > 0:
            state.initial_until_ms = state.join_deadline_ms
            state.join_deadline_ms = self._now_ms + delay_ms
        state.phase = Phase.PREPARING

    def _complete_join(self) -> None:
        """The next generation begins, without the dynamic members that did not join; static ones may come back."""
        state = self.state
        for member_id, seat in list(state.seats.items()):
            if seat.join_ticket is None and seat.member.instance_id is None:
                self.remove(member_id)
        state.initial_until_ms = None
        state.has_grown = False
        if state.seats and not state.awaiting_join():
            # Nobody is there to lead: the static members come back, or their sessions end.
            wait_ms = max(state.rebalance_ms(), self._options.session_ms_min)
            state.join_deadline_ms = self._now_ms + wait_ms
            return
        state.join_deadline_ms = state.sync_deadline_ms = None
        state.generation += 1
        if not state.seats:
            state.phase = Phase.EMPTY
            state.protocol = ""
            self._store_generation()
            return
        if not state.leader or state.seats[state.leader].join_ticket is None:
            state.leader = next(key for key, seat in state.seats.items() if seat.join_ticket is not None)
        state.protocol = state.chosen_protocol()
        state.phase = Phase.COMPLETING
        state.sync_deadline_ms = self._now_ms + state.rebalance_ms()
        self._announce_generation()

    def _announce_generation(self) -> None:
        state = self.state
        for member_id, seat in state.seats.items():
            if seat.join_ticket is not None:
                self._replies.append((seat.join_ticket, join_reply(state, member_id)))
            told = replace(
                seat,
                deadline_ms=self._now_ms + seat.member.session_timeout_ms,
                join_ticket=None,
                is_new=False,
                has_synced=False,
            )
            state.put(member_id, told)

    # The sync phase

    def await_sync(self, member_id: str, ticket: int) -> None:
        seat = self.state.seats[member_id]
        self._answer_waiting(seat, Code.REBALANCE_IN_PROGRESS)
        self.state.put(member_id, replace(seat, sync_ticket=ticket))
        self.mark_synced(member_id)

    def mark_synced(self, member_id: str) -> None:
        state = self.state
        seat = state.seats[member_id]
        deadline_ms = self._now_ms + seat.member.session_timeout_ms
        state.put(member_id, replace(seat, has_synced=True, deadline_ms=deadline_ms))

    def assign(self, assignments: Mapping[str, bytes]) -> None:
        """The leader has assigned: the generation is stable, and all who wait are told theirs."""
        state = self.state
        state.phase = Phase.STABLE
        for member_id, seat in state.seats.items():
            member = replace(seat.member, assignment=assignments.get(member_id, b""))
            if seat.sync_ticket is not None:
                self._replies.append((seat.sync_ticket, sync_reply(state, member.assignment)))
                deadline_ms = self._now_ms + member.session_timeout_ms
                state.put(member_id, replace(seat, member=member, sync_ticket=None, deadline_ms=deadline_ms))
            else:
                state.put(member_id, replace(seat, member=member))
        self._store_generation()

    # Deadlines

    def let_time_pass(self) -> None:
        state, now_ms = self.state, self._now_ms
        for member_id, seat in state.seats.items():
            if seat.deadline_ms == NOT_STARTED:
                state.put(member_id, replace(seat, deadline_ms=now_ms + seat.member.session_timeout_ms))
        if state.phase is Phase.PREPARING and state.join_deadline_ms is None:
            state.join_deadline_ms = now_ms + state.rebalance_ms()  # a restart forgot it
        is_sync_over = _is_past(state.sync_deadline_ms, now_ms)
        if is_sync_over:
            state.sync_deadline_ms = None
        overdue = [
            key
            for key, seat in state.seats.items()
            if _is_past(seat.expires_ms(), now_ms) or (is_sync_over and not seat.has_synced)
        ]
        for member_id in overdue:
            self.remove(member_id)
        void = [member_id for member_id, void_ms in state.pending.items() if void_ms <= now_ms]
        for member_id in void:
            del state.pending[member_id]
        self.go_on()
        if _is_past(state.join_deadline_ms, now_ms):
            self._end_join_phase()

    def _end_join_phase(self) -> None:
        state, now_ms = self.state, self._now_ms
        if state.initial_until_ms is not None and state.has_grown and now_ms < state.initial_until_ms:
            state.has_grown = False
            longer_ms = now_ms + self._options.initial_rebalance_delay_ms
            state.join_deadline_ms = min(longer_ms, state.initial_until_ms)
        else:
            self._complete_join()


def _is_past(deadline_ms: int | None, now_ms: int) -> bool:
    return deadline_ms is not None and deadline_ms <= now_ms


def join_reply(state: ClassicState, member_id: str, *, skip_assignment: bool = False) -> JoinReply:
    """The present generation, as this member is to see it."""
    members: tuple[JoinedMember, ...] = ()
    if member_id == state.leader:
        members = tuple(
            JoinedMember(key, seat.member.instance_id, seat.member.metadata(state.protocol))
            for key, seat in state.seats.items()
        )
    return JoinReply(
        code=Code.NONE,
        member_id=member_id,
        generation=state.generation,
        protocol_type=state.protocol_type,
        protocol=state.protocol,
        leader=state.leader,
        members=members,
        skip_assignment=skip_assignment,
    )


def sync_reply(state: ClassicState, assignment: bytes) -> SyncReply:
    return SyncReply(Code.NONE, state.protocol_type, state.protocol, assignment)
