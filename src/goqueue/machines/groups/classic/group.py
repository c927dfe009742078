"""One group of the classic protocol: members agree on an assignor, the leader assigns, and a generation number tells
who speaks from the past. What is asked is checked here; what follows from it is worked out in `classic_rebalance`.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

from msgspec.structs import replace

from goqueue.machines.groups.classic.rebalance import ClassicChanged, Draft, join_reply, sync_reply
from goqueue.machines.groups.classic.state import (
    ClassicForgotten,
    ClassicGeneration,
    ClassicState,
    Phase,
    restored,
    subscribed_topics,
    told_bytes,
)
from goqueue.machines.groups.commands import (
    CLASSIC,
    CodeReply,
    CommitOffsets,
    CommitTransactionOffsets,
    DescribedGroup,
    DescribedMember,
    FetchOffsets,
    GroupOptions,
    Heartbeat,
    JoinGroup,
    JoinReply,
    KnownTopics,
    LeaveGroup,
    LeaveReply,
    LeavingMember,
    ListedGroup,
    SyncGroup,
    SyncReply,
)
from goqueue.machines.groups.limits import member_bytes
from goqueue.machines.machine import Fact, Outcome, Tick
from goqueue.model.codes import Code


class SessionRenewed(Fact, frozen=True):
    """A member gave a sign of life: by far the most frequent fact, so it is a small one."""

    durable: ClassVar[bool] = False
    group_id: str
    member_id: str
    deadline_ms: int


class ClassicGroup:
    """Invariant: nothing of this state is ever handed out; replies are frozen copies."""

    kind: ClassVar[str] = CLASSIC

    def __init__(self, group_id: str, options: GroupOptions) -> None:
        self._group_id = group_id
        self._options = options
        self._state = ClassicState()

    def decide(self, command: Any, ticket: int, now_ms: int) -> Outcome:
        match command:
            case Heartbeat():
                return self._heartbeat(command, ticket, now_ms)
            case JoinGroup():
                return self._join(command, ticket, now_ms)
            case SyncGroup():
                return self._sync(command, ticket, now_ms)
            case LeaveGroup():
                return self._leave(command, ticket, now_ms)
            case Tick():
                return self._tick(now_ms)
        raise TypeError(f"no command for a classic group: {command!r}")

    def know(self, known: KnownTopics) -> None:
        """Its members look at topics for themselves."""

    def apply(self, fact: Any) -> None:
        match fact:
            case SessionRenewed():
                seat = self._state.seats[fact.member_id]
                self._state.seats[fact.member_id] = replace(seat, deadline_ms=fact.deadline_ms)
            case ClassicGeneration():
                self._state = restored(fact)
            case ClassicChanged():
                self._state = fact.state.merged()
            case _:
                raise TypeError(f"no fact about a classic group: {fact!r}")

    def forget(self, key: bytes) -> None:
        """All that is stored of a classic group lies under one key."""
        assert key == ClassicForgotten(self._group_id).key()
        self._state = ClassicState()

    def facts(self) -> Iterator[Fact]:
        if self._state.stored is not None:
            yield self._state.stored

    def next_deadline_ms(self) -> int | None:
        return self._state.deadline_ms()

    def deadline_set_ms(self, fact: Any) -> int | None:
        match fact:
            case SessionRenewed():
                return None  # only moves away, and so often that it must cost nothing
            case ClassicChanged():
                return fact.state.deadline_ms()
        return self.next_deadline_ms()

    # Join

    def _join(self, command: JoinGroup, ticket: int, now_ms: int) -> Outcome:
        refusal = self._join_refusal(command)
        if refusal is not Code.NONE:
            member_id = "" if refusal is Code.GROUP_MAX_SIZE_REACHED else command.member_id
            return Outcome([], [(ticket, JoinReply(refusal, member_id))])
        draft = Draft(self._group_id, self._state, self._options, now_ms)
        if command.member_id in self._state.seats:
            return self._rejoin(draft, command, ticket)
        if command.member_id:
            draft.add(command, command.member_id, ticket)
        elif command.instance_id in self._state.instances:
            return self._take_over(draft, command, ticket)
        elif command.instance_id is None and command.knows_member_id_required:
            draft.expect(command.new_member_id, command.session_timeout_ms)
            return draft.outcome(ticket, JoinReply(Code.MEMBER_ID_REQUIRED, command.new_member_id))
        else:
            draft.add(command, command.new_member_id, ticket)
        return draft.outcome()

    def _join_refusal(self, command: JoinGroup) -> Code:
        state, options = self._state, self._options
        if not options.session_ms_min <= command.session_timeout_ms <= options.session_ms_max:
            return Code.INVALID_SESSION_TIMEOUT
        is_pending = command.member_id in state.pending
        is_comeback = not command.member_id and command.instance_id in state.instances
        is_counted = is_pending or is_comeback or command.member_id in state.seats
        if not is_counted and len(state.seats) + len(state.pending) >= options.size_of(self._group_id):
            return Code.GROUP_MAX_SIZE_REACHED
        too_much = self._told_too_much(command)
        if too_much is not Code.NONE or not state.supports(command.protocol_type, command.protocols):
            return too_much or Code.INCONSISTENT_GROUP_PROTOCOL
        if not command.member_id or (is_pending and command.instance_id is None):
            return Code.NONE
        return state.member_refusal(command.member_id, command.instance_id)

    def _told_too_much(self, command: JoinGroup) -> Code:
        told = told_bytes(command.protocols)
        if told > self._options.member_bytes_max:
            return Code.INVALID_REQUEST
        seat = self._state.seats.get(command.member_id)
        more = told - (0 if seat is None else told_bytes(seat.member.protocols))
        is_full = more > 0 and self._state.told_bytes + more > self._options.bytes_max
        return Code.GROUP_MAX_SIZE_REACHED if is_full else Code.NONE

    def _rejoin(self, draft: Draft, command: JoinGroup, ticket: int) -> Outcome:
        """A member that brings nothing new is told what it missed; a leader that joins again wants a rebalance."""
        state = self._state
        brings_news = command.protocols != state.seats[command.member_id].member.protocols
        wants_rebalance = state.phase is Phase.STABLE and command.member_id == state.leader
        if state.phase is Phase.PREPARING or brings_news or wants_rebalance:
            draft.rejoin(command, command.member_id, ticket)
            return draft.outcome()
        return Outcome([], [(ticket, join_reply(state, command.member_id))])

    def _take_over(self, draft: Draft, command: JoinGroup, ticket: int) -> Outcome:
        """A static member is back under a new id. If nothing changes for the others, nobody has to rebalance."""
        assert command.instance_id is not None
        state, new_id = draft.state, command.new_member_id
        old_leader = state.leader
        draft.replace_static(command, state.instances[command.instance_id], new_id)
        if state.phase is not Phase.STABLE or state.chosen_protocol() != state.protocol:
            draft.await_join(new_id, ticket)
            return draft.outcome()
        if command.knows_skip_assignment:
            reply = join_reply(state, new_id, skip_assignment=new_id == state.leader)
        else:
            # Told that it leads, it would assign anew, and nobody would hear of that. The old leader's id prevents it.
            reply = replace(join_reply(state, new_id), leader=old_leader, members=())
        return draft.outcome(ticket, reply)

    # Sync, heartbeat, leave

    def _sync(self, command: SyncGroup, ticket: int, now_ms: int) -> Outcome:
        state = self._state
        refusal = self._sync_refusal(command)
        if refusal is not Code.NONE:
            return Outcome([], [(ticket, SyncReply(refusal))])
        draft = Draft(self._group_id, state, self._options, now_ms)
        if state.phase is Phase.STABLE:
            draft.mark_synced(command.member_id)
            return draft.outcome(ticket, sync_reply(state, state.seats[command.member_id].member.assignment))
        draft.await_sync(command.member_id, ticket)
        if command.member_id == state.leader:
            draft.assign(dict(command.assignments))
        return draft.outcome()

    def _sync_refusal(self, command: SyncGroup) -> Code:
        state = self._state
        refusal = self._speaker_refusal(command.member_id, command.instance_id, command.generation)
        if refusal is not Code.NONE:
            return refusal
        if state.phase is Phase.PREPARING:  # before all else: it may name what a consumer group has told it
            return Code.REBALANCE_IN_PROGRESS
        if command.protocol_type not in (None, state.protocol_type) or command.protocol not in (None, state.protocol):
            return Code.INCONSISTENT_GROUP_PROTOCOL
        return Code.NONE

    def _speaker_refusal(self, member_id: str, instance_id: str | None, generation: int) -> Code:
        refusal = self._state.member_refusal(member_id, instance_id)
        if refusal is Code.NONE and generation != self._state.generation:
            return Code.ILLEGAL_GENERATION
        return refusal

    def _heartbeat(self, command: Heartbeat, ticket: int, now_ms: int) -> Outcome:
        code = self._speaker_refusal(command.member_id, command.instance_id, command.generation)
        if code is not Code.NONE:
            return Outcome([], [(ticket, CodeReply(code))])
        if self._state.phase is Phase.PREPARING:
            code = Code.REBALANCE_IN_PROGRESS
        return Outcome(self._renewed(command.member_id, now_ms), [(ticket, CodeReply(code))])

    def _renewed(self, member_id: str, now_ms: int) -> list[Fact]:
        seat = self._state.seats[member_id]
        if seat.is_new:
            return []  # its first join has a longer deadline than its session
        return [SessionRenewed(self._group_id, member_id, now_ms + seat.member.session_timeout_ms)]

    def _leave(self, command: LeaveGroup, ticket: int, now_ms: int) -> Outcome:
        draft = Draft(self._group_id, self._state, self._options, now_ms)
        codes = tuple(_let_go(draft, leaving) for leaving in command.members)
        reply = LeaveReply(Code.NONE, codes)
        if Code.NONE not in codes:
            return Outcome([], [(ticket, reply)])
        draft.go_on()
        return draft.outcome(ticket, reply)

    def _tick(self, now_ms: int) -> Outcome:
        deadline_ms = self.next_deadline_ms()
        if deadline_ms is None or deadline_ms > now_ms:
            return Outcome([], [])
        draft = Draft(self._group_id, self._state, self._options, now_ms)
        draft.let_time_pass()
        return draft.outcome()

    # What offsets and operators ask

    @property
    def state(self) -> ClassicState:
        """To be read only."""
        return self._state

    def admit_commit(self, command: CommitOffsets | CommitTransactionOffsets, now_ms: int) -> tuple[Code, list[Fact]]:
        """Whether these offsets may be committed now, and what that means for the member's session."""
        state = self._state
        is_transactional = isinstance(command, CommitTransactionOffsets)
        if command.generation < 0 and state.phase is Phase.EMPTY:
            return Code.NONE, []
        if command.generation < 0 and not command.member_id and command.instance_id is None:
            # Old transactional clients do not say who they are.
            return (Code.NONE if is_transactional else Code.UNKNOWN_MEMBER_ID), []
        refusal = self._speaker_refusal(command.member_id, command.instance_id, command.generation)
        if refusal is not Code.NONE:
            return refusal, []
        if is_transactional:
            return Code.NONE, []
        if state.phase is Phase.COMPLETING:
            return Code.REBALANCE_IN_PROGRESS, []
        return Code.NONE, self._renewed(command.member_id, now_ms)

    def fetch_refusal(self, command: FetchOffsets) -> Code:  # noqa: ARG002 - other kinds of group fence their readers
        return Code.NONE

    def empty_since_ms(self) -> int | None:
        """None while there are members. A group that never was stable has been empty for ever."""
        if self._state.phase is not Phase.EMPTY:
            return None
        return self._state.stored.since_ms if self._state.stored is not None else 0

    def keeps_progress(self) -> bool:
        return False

    def subscribed_topics(self) -> frozenset[str] | None:
        return subscribed_topics(self._state)

    def held_bytes(self) -> int:
        return self._state.held_bytes

    def replaced_bytes(self, command: Any) -> int:
        if isinstance(command, SyncGroup):
            return self._state.assigned_bytes
        seat = self._state.seats.get(command.member_id)
        return 0 if seat is None else member_bytes(seat.member, seat.member.protocols)

    def listed(self) -> ListedGroup:
        state = self._state
        return ListedGroup(
            self._group_id,
            state.protocol_type,
            state.phase.value,
            self.kind,
            members=len(state.seats),
            generation=state.generation,
        )

    def described(self) -> DescribedGroup:
        """Metadata and assignments are told of a stable group only: before that they belong to no generation."""
        state = self._state
        is_stable = state.phase is Phase.STABLE
        members = tuple(
            DescribedMember(
                member_id=seat.member.member_id,
                instance_id=seat.member.instance_id,
                client_id=seat.member.client_id,
                client_host=seat.member.client_host,
                metadata=seat.member.metadata(state.protocol) if is_stable else b"",
                assignment=seat.member.assignment if is_stable else b"",
            )
            for seat in state.seats.values()
        )
        return DescribedGroup(
            code=Code.NONE,
            group_id=self._group_id,
            state=state.phase.value,
            protocol_type=state.protocol_type,
            protocol=state.protocol if is_stable else "",
            generation=state.generation,
            leader=state.leader,
            members=members,
        )

    def retire(self) -> list[Fact]:
        """Tombstones for all that the ledger holds of this group."""
        return [ClassicForgotten(self._group_id)]


def _let_go(draft: Draft, leaving: LeavingMember) -> Code:
    state, member_id = draft.state, leaving.member_id
    if leaving.instance_id is None and member_id in state.pending:
        del state.pending[member_id]
        return Code.NONE
    if leaving.instance_id is not None and not member_id:
        member_id = state.instances.get(leaving.instance_id, "")
    refusal = state.member_refusal(member_id, leaving.instance_id)
    if refusal is Code.NONE:
        draft.remove(member_id)
    return refusal
