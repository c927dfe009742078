"""Moves: what a queue group has not settled of one topic, sent elsewhere, some at a time, and settled when it is there.

That is how SQS empties a dead-letter queue: its consumers and the move share one group, so nothing is both received and
moved. A move lives in memory. A restart ends it, and what it had not moved is still where it was.
"""

from collections import deque
from collections.abc import Callable, Sequence

from goqueue.broker.dead_letters.redrive import DeadLetters
from goqueue.broker.queues.leased_records import Leased
from goqueue.broker.queues.queues import Queues
from goqueue.broker.queues.receive import Receiver
from goqueue.broker.queues.taking import LeasedPlace, ReceiveRequest
from goqueue.broker.topics.topics import Topics
from goqueue.machines.deliveries.commands import How, Place, Settle, Settlement
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.moves import Move, MoveStatus
from goqueue.model.refusal import Refused
from goqueue.model.topics import TopicsChange
from goqueue.records.decode import DecodedRecord
from goqueue.records.messages import Sent
from goqueue.records.redrives import GROUP
from goqueue.runtime.clock import Clock

CONSUMER = "gq.move"
RECORDS_PER_TURN = 100
LEASE_MS = 60_000
SECOND_MS = 1000
REMEMBERED = 10
"""Moves of one topic that are over."""


class Moves:
    def __init__(self, queues: Queues, receiver: Receiver, letters: DeadLetters, topics: Topics, clock: Clock) -> None:
        self.queues = queues
        self.receiver = receiver
        self.letters = letters
        self.clock = clock
        self._topics = topics
        self._next_number = 1
        self._by_source: dict[str, deque[Move]] = {}
        """The newest first."""
        self.ready_elsewhere: Callable[[str, str, Callable[[int | GoQueueError], None]], None] | None = None
        """In a cluster: what other nodes count."""

    def count_elsewhere(self, group_id: str, source: str, on_count: Callable[[int | GoQueueError], None]) -> None:
        """How many records there are to be moved in partitions that other nodes lead."""
        if self.ready_elsewhere is None:
            on_count(0)
        else:
            self.ready_elsewhere(group_id, source, on_count)

    def ready_here(self, group_id: str, source: str) -> int:
        topic = self._topics.image.topics.get(source)
        led = [] if topic is None else self._topics.led(source, range(topic.partitions))
        return sum(self._ready(Place(group_id, source, each)) for each in led)

    def of(self, source: str) -> list[Move]:
        return list(self._by_source.get(source, ()))

    def origins(self, source: str) -> list[str]:
        """The topics that its records may go back to."""
        return [name for name in self._topics.image.topics if self.letters.name_of(name) == source]

    def start(self, group_id: str, source: str, to: str | None, rate: int, elsewhere: int = 0) -> Move:
        """Refused: there is one under way, or no such topic. `elsewhere`: what other nodes have of it."""
        if any(not move.is_over for move in self.of(source)):
            raise Refused(Code.INVALID_REQUEST, f"records of {source!r} are being moved already")
        topic = self._topics.image.topics.get(source)
        if topic is None:
            raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {source!r}")
        records = self.ready_here(group_id, source) + elsewhere
        move = Move(self._next_number, source, to, rate, records, self.clock.now_ms())
        self._next_number += 1
        self._by_source.setdefault(source, deque(maxlen=REMEMBERED)).appendleft(move)
        places = [(source, partition) for partition in range(topic.partitions)]
        _Moving(self, move, group_id, places).go_on()
        return move

    def _ready(self, place: Place) -> int:
        try:
            lag = self.queues.lag(place)
        except GoQueueError:  # it has never been there: all of it is to come
            replica = self._topics.replica(place.topic, place.partition)
            return replica.last_stable_offset - replica.start_offset
        return sum(lag.ready) + lag.waiting + lag.beyond

    def cancel(self, source: str, number: int) -> None:
        """After what is being sent at this moment."""
        for move in self.of(source):
            if move.number == number and move.status is MoveStatus.RUNNING:
                move.status = MoveStatus.CANCELLING

    def topics_changed(self, change: TopicsChange) -> None:
        for source in self._by_source.keys() - change.image.topics.keys():
            if all(move.is_over for move in self._by_source[source]):
                del self._by_source[source]


class _Moving:
    def __init__(self, moves: Moves, move: Move, group_id: str, places: list[tuple[str, int]]) -> None:
        self._moves = moves
        self._move = move
        self._group_id = group_id
        self._places = places
        self._back = moves.letters.way_back()

    def go_on(self) -> None:
        move = self._move
        if move.status is MoveStatus.CANCELLING:
            move.status = MoveStatus.CANCELLED
            return
        most = min(RECORDS_PER_TURN, move.rate or RECORDS_PER_TURN, move.records - move.moved)
        if most <= 0:
            move.status = MoveStatus.COMPLETED
            return
        request = ReceiveRequest(self._group_id, CONSUMER, self._places, most, lease_ms=LEASE_MS)
        self._moves.receiver.receive(request, self._leased)

    def _leased(self, found: list[LeasedPlace]) -> None:
        failed = next((each.error for each in found if each.error is not None), None)
        leased = [each for each in found if each.error is None]
        if failed is not None:
            self._fail(failed)
        turns = [(place, self._moves.receiver.read(place, self._group_id)) for place in leased]
        turns = [turn for turn in turns if turn[1]]
        if failed is not None or not turns:
            for place, records in turns:
                self._settle(place, records, How.UNDO)
            if failed is None:
                self._move.status = MoveStatus.COMPLETED
            return
        self._send(turns, 0)

    def _send(self, turns: list[tuple[LeasedPlace, list[Leased]]], sent_before: int) -> None:
        """One partition after the other."""
        if not turns or self._move.is_over:
            for place, records in turns:
                self._settle(place, records, How.UNDO)
            if not self._move.is_over:
                self._pause(sent_before)
            return
        (place, leased), others = turns[0], turns[1:]
        try:
            letters = [(self._target(record), record) for record, _ in leased]
        except Refused as refusal:
            self._fail(refusal)
            self._send(turns, sent_before)
            return

        def sent(answers: list[Sent]) -> None:
            done = [one for one, answer in zip(leased, answers, strict=True) if answer.error is None]
            left = [one for one, answer in zip(leased, answers, strict=True) if answer.error is not None]
            error = next((answer.error for answer in answers if answer.error is not None), None)
            self._move.moved += len(done)
            self._settle(place, left, How.UNDO)
            if error is not None:
                self._fail(error)
            self._settle(place, done, How.ACK, lambda: self._send(others, sent_before + len(done)))

        self._moves.letters.send_back(self._back, letters, sent)

    def _target(self, letter: DecodedRecord) -> str:
        return self._move.to or self._moves.letters.origin(self._move.source, letter)

    def _settle(
        self, place: LeasedPlace, leased: Sequence[Leased], how: How, then: Callable[[], None] = lambda: None
    ) -> None:
        if not leased:
            then()
            return
        offsets = sorted(record.offset for record, _ in leased)
        settlements = tuple(Settlement(offset, offset, how, 0, lease=place.lease) for offset in offsets)
        command = Settle(Place(self._group_id, place.topic, place.partition), settlements)

        def settled(reply: object) -> None:
            if isinstance(reply, GoQueueError):
                self._fail(reply)
            if how is How.ACK:  # whoever sends dead letters back by hand must not send these again
                self._moves.letters.settle(Place(GROUP, place.topic, place.partition), offsets, lambda error: then())
            else:
                then()

        self._moves.queues.submit(command, settled)

    def _pause(self, sent: int) -> None:
        clock, rate = self._moves.clock, self._move.rate
        if rate:
            clock.call_after(sent * SECOND_MS / rate, self.go_on)
        else:
            clock.call_soon(self.go_on)

    def _fail(self, error: GoQueueError) -> None:
        self._move.error = error.kept()
        self._move.status = MoveStatus.FAILED
