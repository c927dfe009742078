"""What a leader knows of one follower node: all copies that follow it here, and what each was told. Only what has
changed is named, in the follower's fetches and in the answers, so that a thousand idle partitions cost nothing.

An answer leaves at once when there are records, and soon when only a high watermark has moved. A copy that was sent
records gets no more until the follower names it again: then it has them on its disk.
"""

from collections.abc import Callable
from functools import partial

from goqueue.cluster.copies import Copies, CopyId
from goqueue.machines.partitions.replication import BeginAnew, Diverged, Records
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.placements import NOBODY
from goqueue.ports.peers import PeerRequest
from goqueue.replica.replica import Replica
from goqueue.replica.roles import Fetched, Following, Leading, Role
from goqueue.runtime.clock import Clock, Timer
from goqueue.wire.kafka.codec import encoder
from goqueue.wire.kafka.messages.common import LeaderIdAndEpoch
from goqueue.wire.kafka.messages.fetch import (
    EpochEndOffset,
    FetchedPartition,
    FetchedTopic,
    FetchPartition,
    FetchRequest,
    FetchResponse,
)

VERSION = 18
WATERMARK_MS = 10
"""How long a high watermark may wait for company: nobody's acknowledgement depends on what a follower knows of it."""
WAIT_MS_MAX = 500
PARTITION_BYTES_MAX = 1024 * 1024
"""So that one copy leaves room for others in an answer."""
NO_RECORDS = b""


class Entry:
    """One copy on the follower, and what it was told."""

    __slots__ = (
        "companions",
        "copy",
        "fetched",
        "is_whole",
        "replica",
        "role",
        "session",
        "start",
        "waits",
        "watermark",
    )

    def __init__(self, session: "FetchSession", copy: CopyId, replica: Replica, role: Leading) -> None:
        self.session = session
        self.copy = copy
        self.replica = replica
        self.role = role
        self.fetched: Fetched
        self.waits = False
        """It was sent records and has not said yet that it has them."""
        self.watermark = self.start = -1
        self.companions = 0
        self.is_whole = False

    @property
    def sent_ms(self) -> int:
        return self.session.sent_ms

    @property
    def last(self) -> Fetched:
        """Every fetch of the session says it again."""
        return Fetched(*self.fetched[:-1], self.session.sent_ms)


class FetchSession:
    def __init__(
        self,
        number: int,
        node_id: int,
        incarnation: int,
        copies: Copies,
        clock: Clock,
        on_candidate: Callable[[Replica, int], None],
    ) -> None:
        """`on_candidate`: called with a copy and a follower that is not in its ISR and might be."""
        self.number = number
        self._node_id = node_id
        self._incarnation = incarnation
        self._copies = copies
        self._clock = clock
        self._on_candidate = on_candidate
        self.sent_ms = 0
        """The last fetch was sent after this, on the monotonic clock here."""
        self._entries: dict[CopyId, Entry] = {}
        self._due: dict[Entry, None] = {}
        """There are records, or something that must be told at once."""
        self._late: dict[Entry, None] = {}
        """There is something that may be told a little later."""
        self._replies: dict[CopyId, FetchedPartition] = {}
        """To copies that get no records: they must be told something else first."""
        self._parked: PeerRequest | None = None
        self._parked_epoch = 0
        self._room = 0
        self._answered_ms: dict[int, int] = {}
        """When each of the last answers was given, by its session epoch."""
        self._timer: Timer | None = None
        self._late_timer: Timer | None = None
        self._is_waking = False

    def __len__(self) -> int:
        return len(self._entries)

    def is_of(self, number: int, incarnation: int, request: PeerRequest, connection: object) -> bool:
        """The follower means this session, in the same life and over the same connection."""
        return number == self.number and incarnation == self._incarnation and request.connection is connection

    # -- what the follower says

    def take(self, request: PeerRequest, message: FetchRequest) -> None:
        now_ms = self._now_ms()
        self.sent_ms = max(self.sent_ms, self._answered_ms.get(message.gq_heard, request.not_before_ms))
        for gone in message.forgotten_topics_data:
            for number in gone.partitions:
                self._forget(CopyId(gone.topic_id, number))
        for topic in message.topics:
            for one in topic.partitions:
                self._name(CopyId(topic.topic_id, one.partition), one, now_ms)
        if self._parked is not None:
            self._answer()
        self._parked, self._parked_epoch = request, message.session_epoch
        self._room = message.max_bytes
        request.when_lost(self._lost)
        if self._due or self._replies:
            self._answer()
        else:
            self._timer = self._clock.call_after(min(message.max_wait_ms, WAIT_MS_MAX), self._answer)
            if self._late:
                self._tell_later()

    def _name(self, copy: CopyId, one: FetchPartition, now_ms: int) -> None:
        replica = self._copies.find(copy)
        if replica is None:
            self._reply(copy, FetchedPartition(copy.partition, Code.UNKNOWN_TOPIC_ID))
            return
        role = replica.role
        if not isinstance(role, Leading) or one.current_leader_epoch != role.epoch or replica.log.failure is not None:
            self._reply(copy, _refusal(copy, replica, one.current_leader_epoch))
            return
        fetched = Fetched(
            self._node_id,
            self._incarnation,
            one.current_leader_epoch,
            one.fetch_offset,
            one.last_fetched_epoch,
            one.gq_tombstones_told,
            self.sent_ms,
        )
        verdict = replica.heard(fetched, now_ms)
        match verdict:
            case Records():
                self._follows(copy, replica, role, fetched, one)
            case Diverged(epoch, end):
                reply = FetchedPartition(copy.partition, diverging_epoch=EpochEndOffset(epoch, end))
                self._reply(copy, _described(reply, replica))
            case BeginAnew():
                reply = _described(FetchedPartition(copy.partition, Code.OFFSET_OUT_OF_RANGE), replica)
                reply.log_start_offset = replica.first_offset
                self._reply(copy, reply)
            case _:
                self._reply(copy, _refusal(copy, replica, one.current_leader_epoch))

    def _follows(self, copy: CopyId, replica: Replica, role: Leading, fetched: Fetched, one: FetchPartition) -> None:
        entry = self._entries.get(copy)
        if entry is None or entry.role is not role:
            self._drop(copy)
            entry = self._entries[copy] = Entry(self, copy, replica, role)
            replica.watch_end(entry, partial(self._touch, entry))
        entry.fetched, entry.waits = fetched, False
        entry.watermark, entry.start = one.high_watermark, one.log_start_offset
        entry.companions = 0  # it may have failed to open one, and is told again
        role.hears[self._node_id] = entry
        replica.heard_start(self._node_id, one.log_start_offset)
        if self._node_id not in role.view.isr and role.view.may_join(self._node_id, role.start_offset):
            self._on_candidate(replica, self._node_id)
        self._touch(entry)

    def _reply(self, copy: CopyId, reply: FetchedPartition) -> None:
        self._drop(copy)
        self._replies[copy] = reply

    def _forget(self, copy: CopyId) -> None:
        """The follower speaks for it no longer: its copy may be gone."""
        entry = self._entries.get(copy)
        if entry is not None and entry.role.hears.get(self._node_id) is entry:
            entry.role.view.forget(self._node_id)
        self._drop(copy)

    def _drop(self, copy: CopyId) -> None:
        self._replies.pop(copy, None)
        entry = self._entries.pop(copy, None)
        if entry is None:
            return
        entry.replica.unwatch_end(entry)
        if entry.role.hears.get(self._node_id) is entry:  # else another session of the same node has it
            del entry.role.hears[self._node_id]
        self._due.pop(entry, None)
        self._late.pop(entry, None)

    # -- what has changed here

    def _touch(self, entry: Entry) -> None:
        """Called with every append: it only takes a note."""
        replica = entry.replica
        if replica.role is not entry.role or replica.log.failure is not None:
            self._due[entry] = None
        elif entry.waits:
            return
        elif replica.log.end_offset > entry.fetched.offset:
            self._due[entry] = None
        elif self._has_news(entry):
            self._late[entry] = None
            if self._parked is not None:
                self._tell_later()
            return
        else:
            return
        if self._parked is not None and not self._is_waking:
            self._is_waking = True
            self._clock.call_soon(self._woken)

    def _has_news(self, entry: Entry) -> bool:
        replica = entry.replica
        if replica.high_watermark > entry.watermark or replica.start_offset > entry.start:
            return True
        companions, is_whole = self._family(entry)
        return (is_whole and not entry.is_whole) or companions != entry.companions

    def tell_companions(self, host: CopyId) -> None:
        """A companion was made: whoever follows the partition has to copy it."""
        entry = self._entries.get(host)
        if entry is not None:
            self._touch(entry)

    def _family(self, entry: Entry) -> tuple[int, bool]:
        """Which companions there are, a bit for each; and whether the copy stands where a new member of the ISR must,
        in the companions too."""
        role, node_id, bits = entry.role, self._node_id, 0
        is_whole = role.view.may_join(node_id, role.start_offset)
        for bit, companion in self._copies.kinds_of(entry.replica):
            bits |= bit
            is_whole = is_whole and may_join(companion, node_id)
        return bits, is_whole

    def _tell_later(self) -> None:
        if self._late_timer is None:
            self._late_timer = self._clock.call_after(WATERMARK_MS, self._tell_late)

    def _tell_late(self) -> None:
        self._late_timer = None
        if self._parked is not None and (self._late or self._due):
            self._answer()

    def _woken(self) -> None:
        self._is_waking = False
        if self._parked is not None and self._due:
            self._answer()

    # -- what is answered

    def _answer(self) -> None:
        request, self._parked = self._parked, None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if request is None:
            return
        response = FetchResponse(session_id=self.number)
        topics: dict[bytes, FetchedTopic] = {}
        self._gather(topics)
        response.responses = list(topics.values())
        parts, _ = encoder(FetchResponse, VERSION)(response)
        self._answered_ms[self._parked_epoch] = self._now_ms()
        while len(self._answered_ms) > 4:
            del self._answered_ms[next(iter(self._answered_ms))]
        request.answer(parts)  # type: ignore[arg-type]  # no stretches: all records are in memory

    def _gather(self, topics: dict[bytes, FetchedTopic]) -> None:
        replies, self._replies = self._replies, {}
        for copy, reply in replies.items():
            _add(topics, copy, reply)
        due = {**self._due, **self._late}
        self._due.clear()
        self._late.clear()
        for entry in due:
            if self._room <= 0 and not entry.waits and entry.replica.end_offset > entry.fetched.offset:
                self._due[entry] = None
                continue
            told = self._tell(entry)
            if told is not None:
                _add(topics, entry.copy, told)

    def _tell(self, entry: Entry) -> FetchedPartition | None:
        replica, copy = entry.replica, entry.copy
        if replica.role is not entry.role or replica.log.failure is not None:
            self._drop(copy)
            return _refusal(copy, replica, entry.role.epoch)
        if entry.waits:
            return None
        reply = _described(FetchedPartition(copy.partition), replica)
        if replica.log.end_offset > entry.fetched.offset:
            try:
                self._add_records(entry, reply)
            except GoQueueError:
                self._drop(copy)
                return FetchedPartition(copy.partition, Code.KAFKA_STORAGE_ERROR)
        elif not self._has_news(entry):
            return None
        entry.watermark, entry.start = reply.high_watermark, reply.log_start_offset
        entry.companions, entry.is_whole = reply.gq_companions, reply.gq_whole = self._family(entry)
        return reply

    def _add_records(self, entry: Entry, reply: FetchedPartition) -> None:
        log = entry.replica.log
        piece = log.read(max(entry.fetched.offset, log.start_offset), min(self._room, PARTITION_BYTES_MAX))
        if piece is not None:
            reply.records = piece.view()
            self._room -= piece.length
            entry.waits = True

    # -- the end

    def _lost(self) -> None:
        """Nobody can take the answer: its connection is gone, and the session with it."""
        self.close()

    def close(self) -> None:
        self._parked = None
        for timer in (self._timer, self._late_timer):
            if timer is not None:
                timer.cancel()
        self._timer = self._late_timer = None
        for copy in list(self._entries):
            self._drop(copy)

    def _now_ms(self) -> int:
        return int(self._clock.monotonic_s() * 1000)


def may_join(replica: Replica, follower: int) -> bool:
    role = replica.role
    return isinstance(role, Leading) and role.view.may_join(follower, role.start_offset)


def _described(reply: FetchedPartition, replica: Replica) -> FetchedPartition:
    state = replica.log.state
    reply.aborted_transactions = None
    reply.high_watermark = replica.high_watermark
    reply.log_start_offset = replica.start_offset
    reply.gq_compacted_to = max(state.compacted_to, state.gaps_to)
    reply.gq_tombstones_gone_to = state.tombstones_to
    return reply


def _refusal(copy: CopyId, replica: Replica, epoch: int) -> FetchedPartition:
    role: Role = replica.role
    code = Code.KAFKA_STORAGE_ERROR
    if epoch != role.epoch:
        code = Code.FENCED_LEADER_EPOCH if epoch < role.epoch else Code.UNKNOWN_LEADER_EPOCH
    elif isinstance(role, Following):
        code = Code.NOT_LEADER_OR_FOLLOWER
    leader = role.leader if isinstance(role, Following) else role.view.me
    current = LeaderIdAndEpoch(leader, role.epoch) if leader != NOBODY else None
    return FetchedPartition(copy.partition, code, current_leader=current)


def _add(topics: dict[bytes, FetchedTopic], copy: CopyId, reply: FetchedPartition) -> None:
    topic = topics.get(copy.topic_id)
    if topic is None:
        topic = topics[copy.topic_id] = FetchedTopic(topic_id=copy.topic_id)
    topic.partitions.append(reply)
