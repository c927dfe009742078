"""Publishing: one batch into one partition, checked the same way whichever door it came through."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Protocol, TypeAlias

from goqueue.broker.delays.schedules import Schedules
from goqueue.broker.publishing.acknowledgements import Acknowledgements
from goqueue.broker.publishing.dedup import Deduplication
from goqueue.broker.publishing.dedup_ids import DuplicateAcknowledger, all_before
from goqueue.broker.publishing.inspection import OFF, Findings, Inspector, has_rules, missing
from goqueue.broker.publishing.joint_acknowledgement import JointAcknowledger
from goqueue.broker.publishing.opening import TURN_RECORDS
from goqueue.broker.publishing.record_rules import check_small, wish_faults
from goqueue.broker.publishing.turns import Steps, Turns, Waiting, run_at_once
from goqueue.broker.tenants.rooms import Room
from goqueue.broker.topics.topics import Topics
from goqueue.broker.tracing.noting import note_refused
from goqueue.model.codes import Code
from goqueue.model.error_codes import code_of
from goqueue.model.errors import GoQueueError, InvalidWish
from goqueue.model.ranges import merge, subtract
from goqueue.model.refusal import Refused
from goqueue.records.batch import (
    CODEC_MASK,
    CONTROL_BIT,
    LENGTH_END,
    TRANSACTIONAL_BIT,
    Batch,
    check_batch,
)
from goqueue.records.weigh import RECORD_BYTES_MIN
from goqueue.records.wishes import mentioned_in, mentions_wishes
from goqueue.replica.replica import Appended, Replica
from goqueue.runtime.clock import Clock
from goqueue.telemetry.histogram import SLOW_S, Example
from goqueue.telemetry.journeys import Journeys, Step
from goqueue.telemetry.meters import NO_TOPIC, Meters
from goqueue.telemetry.trace_ids import Spot

TOGETHER_MS = 5
"""What is received in one partition within that time is one range."""
NOT_PLAIN_BITS = CODEC_MASK | TRANSACTIONAL_BIT | CONTROL_BIT
_RECEIVED: Final = Step.RECEIVED  # looking up enum members costs

VerifyTransaction = Callable[[Batch, str, int], Code]
Acknowledger: TypeAlias = Replica | JointAcknowledger | DuplicateAcknowledger
"""Whoever keeps what was published, and can be asked to call when it may be acknowledged."""
Publishing: TypeAlias = Steps[tuple[Acknowledger, Appended]]


TRIES = 3
"""What was found out in turns, and others made void meanwhile, is found out anew so often before it is done at once."""


class Gate(Protocol):
    """What keeps records elsewhere that do not fit their schemas, on topics that ask for it."""

    def dead_letter(
        self,
        acknowledger: Acknowledger,
        appended: Appended,
        base_offset: int,
        faults: Sequence[Any],
        place: tuple[str, int],
    ) -> JointAcknowledger: ...


class Publisher:
    gate: Gate
    """Set before the first batch comes."""

    def __init__(
        self,
        topics: Topics,
        clock: Clock,
        verify_transaction: VerifyTransaction,
        schedules: Schedules,
        dedup: Deduplication,
        journeys: Journeys,
        meters: Meters,
    ) -> None:
        self._topics = topics
        self._clock = clock
        self._verify_transaction = verify_transaction
        self._schedules = schedules
        self._dedup = dedup
        self._journeys = journeys
        self._to_note: dict[Replica, list[int]] = {}
        """What was received and is not noted yet: from where, to where, since when."""
        self._meters = meters
        self.acknowledgements = Acknowledgements(clock)
        self.inspector = Inspector(schedules, dedup, clock)
        self.turns = Turns(clock)
        self.rooms: Callable[[str], Room | None] = lambda topic: None
        """By topic: what its tenant may still publish, if that is limited."""
        self.batches = 0
        self.bytes = 0

    def publish(self, topic: str, partition: int, data: memoryview, **asked: bool) -> tuple[Acknowledger, Appended]:
        """Append the one batch in `data`, whose memory is written to. Raises one of our errors if it may not be.

        `acknowledgements` tells when its high watermark has reached `next_offset`. `asked`: as of `steps`.
        """
        return run_at_once(self.told_steps(topic, partition, data, **asked))

    def refused(self, topic: str, partition: int, count: int, error: GoQueueError) -> None:
        """So many records were turned away for good, here or by whoever ran its `steps`."""
        replica = self._topics.find_replica(topic, partition)
        note_refused(self._journeys, replica, topic, count, error, self._clock.now_ms())
        self._meters.refused(topic if topic in self._topics.image.topics else NO_TOPIC, code_of(error).name, count)

    def now_s(self) -> float:
        """For `acknowledged`: when a request was taken up."""
        return self._clock.monotonic_s()

    def acknowledged(self, topic: str, partition: int, offset: int, started_s: float, requests: int = 1) -> None:
        """So many requests that were taken up then are answered now. `offset`: of one of their records."""
        seconds = self._clock.monotonic_s() - started_s
        self._meters.published(topic, seconds, requests)
        if seconds > SLOW_S and self._journeys.is_sampled(offset):
            self._meters.keep_example(Example(Spot(topic, partition, offset), seconds, self._clock.now_ms()))

    def told_steps(self, topic: str, partition: int, data: memoryview, **asked: bool) -> Publishing:
        """As `publish`, in turns; the error says which records are why."""
        try:
            return (yield from self.steps(topic, partition, data, **asked))
        except GoQueueError as error:
            self.refused(topic, partition, _count(data), error)
            if isinstance(error, InvalidWish) and not error.faults:
                options = self._topics.replica(topic, partition).options
                error.faults = yield from wish_faults(check_batch(data), options, self._clock.now_ms())
            raise

    def steps(
        self,
        topic: str,
        partition: int,
        data: memoryview,
        *,
        needs_all_copies: bool = True,
        begins_at_zero: bool = False,
        is_behind: bool = False,
        is_own: bool = False,
    ) -> Publishing:
        """As `publish`, in turns: there is but one where nobody looks at the records, or these are few. Nothing of it
        is kept before the last one. The memory of `data` must last as long.

        `needs_all_copies`: as many as the topic's `min.insync.replicas` says; only a Kafka producer that asks for less
        (acks 0 or 1) goes without. `begins_at_zero`: see `misses_first`. `is_behind`: its producer has sent another
        batch before this one, which was turned away.
        `is_own`: the broker itself has to put it there, such as a dead letter; no quota of a tenant keeps it out.
        """
        place = topic, partition
        replica = self._topics.replica(topic, partition)
        if replica.is_resting:
            yield Waiting(replica.when_awake)
            replica = self._topics.replica(topic, partition)  # NotLeader: it was handed over
        self._check_copies(replica, needs_all_copies)
        batch = self.admit(topic, partition, data)
        self._check_first(replica, batch, begins_at_zero, is_behind)
        room = None if is_own else self._room(topic, replica, batch)
        is_small = room is None or room.admit(len(data))
        if is_small and not self.must_open(replica, topic, partition, batch):
            return replica, self._append(replica, batch, len(data))
        found = Findings(replica, batch, room)
        try:
            for tries_left in reversed(range(TRIES + 1)):
                finding = self._find_out(found, replica, place)
                if tries_left:
                    yield from finding
                else:
                    run_at_once(finding)
                if replica.is_resting and tries_left:
                    yield Waiting(replica.when_awake)
                # From here on nothing comes between.
                if self._topics.replica(topic, partition) is not replica:
                    raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, f"{topic!r} was deleted while this was published")
                self._check_copies(replica, needs_all_copies)
                self._check_transaction(batch, topic, partition)
                self._check_first(replica, batch, begins_at_zero, is_behind)
                if not tries_left or self._still_holds(found, replica, place, batch):
                    break
                self._schedules.not_held(place)
                found = Findings(replica, batch, room)
            return (yield from self._append_found(found, replica, place, len(data)))
        except GoQueueError:
            if found.has_wishes:
                self._schedules.not_held(place)
            raise
        finally:
            if len(found.records) > TURN_RECORDS:
                self.turns.run(found.forget(), lambda result: None)

    def _room(self, topic: str, replica: Replica, batch: Batch) -> Room | None:
        """None: nothing is limited; or the batch is stored already, and its producer has to learn that, however full
        the tenant is by now."""
        room = self.rooms(topic)
        return room if room is None or replica.find_sent(batch) is None else None

    def _find_out(self, found: Findings, replica: Replica, place: tuple[str, int]) -> Steps[None]:
        has_wishes = self.has_wishes(replica, *place, found.batch)
        yield from self.inspector.look(found, replica, place[0], has_wishes)
        if found.has_wishes:
            yield from self.inspector.plan(found, replica, place)

    def _append_found(self, found: Findings, replica: Replica, place: tuple[str, int], size: int) -> Publishing:
        if found.has_wishes:
            acknowledger, appended = yield from self._grant(found, replica, place, size)
        else:
            acknowledger, appended = replica, self._append(replica, found.batch, size)
        if found.faults:
            acknowledger = self.gate.dead_letter(acknowledger, appended, found.batch.base_offset, found.faults, place)
        return acknowledger, appended

    def _still_holds(self, found: Findings, replica: Replica, place: tuple[str, int], batch: Batch) -> bool:
        is_asked = found.asks or not self.has_wishes(replica, *place, batch)
        return is_asked and self.inspector.still_holds(found, replica, place)

    def _append(self, replica: Replica, batch: Batch, size: int, *, is_noted: bool = True) -> Appended:
        batches_before, now_ms = replica.appended_batches, self._clock.now_ms()
        appended = replica.append(batch, now_ms)
        if replica.appended_batches > batches_before:  # else it was here already
            self.batches += 1
            self.bytes += size
            if is_noted:
                self._received(replica, appended.base_offset, appended.next_offset, now_ms)
        return appended

    def _check_copies(self, replica: Replica, needs_all: bool) -> None:
        if needs_all and replica.lacks_copies:
            needed, found = replica.options.min_insync_replicas, replica.copies_in_sync
            words = f"min.insync.replicas of {replica.place[0]!r} is {needed}, and {found} replica(s) are in sync"
            raise Refused(Code.NOT_ENOUGH_REPLICAS, words)

    def _check_transaction(self, batch: Batch, topic: str, partition: int) -> None:
        if batch.attributes & TRANSACTIONAL_BIT:
            verdict = self._verify_transaction(batch, topic, partition)
            if verdict is not Code.NONE:
                raise Refused(verdict)

    def _check_first(self, replica: Replica, batch: Batch, begins_at_zero: bool, is_behind: bool) -> None:
        if begins_at_zero and self.misses_first(replica, batch):
            raise Refused(Code.OUT_OF_ORDER_SEQUENCE_NUMBER, "the first batch of the transaction has not come")
        # A producer that nothing is known of may begin with any sequence, but not with this one.
        if is_behind and not replica.producers.knows(batch.producer_id, batch.producer_epoch):
            raise Refused(Code.OUT_OF_ORDER_SEQUENCE_NUMBER, "the batch before it was refused, and has not come again")

    def may_take_turns(self, topic: str, partition: int, data: memoryview) -> bool:
        """Whether `steps` may need the memory of `data` for longer than a turn."""
        replica = self._topics.find_replica(topic, partition)
        if replica is None:
            return False
        options = replica.options
        if replica.is_resting or not options.is_plain or options.wishes == "all" or options.dedup_ms:
            return True
        return options.wishes != OFF and len(data) > TURN_RECORDS * RECORD_BYTES_MIN

    def misses_first(self, replica: Replica, batch: Batch) -> bool:
        """For transactions version 2, where each has an epoch of its own that begins at sequence 0: whether the batch
        before this one was turned away, so that it must not stand in the log before that one.
        """
        return (
            batch.is_transactional
            and batch.base_sequence != 0
            and not replica.producers.knows(batch.producer_id, batch.producer_epoch)
        )

    def must_open(
        self, replica: Replica, topic: str, partition: int, batch: Batch, has_none_in_plain: bool = False
    ) -> bool:
        """Whether `batch` cannot simply be appended: its records have to be looked at in turns, or one is bad."""
        is_checked = replica.options.schema_validation != OFF
        if is_checked or self.has_wishes(replica, topic, partition, batch, has_none_in_plain):
            return True
        if has_rules(replica):
            try:
                check_small(batch, replica.options, self._clock.now_ms())
            except GoQueueError:
                return True
        return False

    def sees_no_wishes(self, data: memoryview) -> bool:
        """Whether no batch that lies in `data`, and is not compressed, can have any: for many batches at once."""
        return not mentioned_in(data)

    def has_wishes(
        self, replica: Replica, topic: str, partition: int, batch: Batch, has_none_in_plain: bool = False
    ) -> bool:
        """Whether records of `batch` may have to wait, or came before: then it cannot simply be appended.
        `has_none_in_plain`: see `sees_no_wishes`.
        """
        options = replica.options
        return options.wishes != "off" and (
            mentions_wishes(batch, options.wishes == "all" or options.dedup_ms > 0, has_none_in_plain)
            or (options.delay_order != "pass" and self._schedules.holds_keys((topic, partition), options))
        )

    def admit(self, topic: str, partition: int, data: memoryview) -> Batch:
        """The one batch in `data`, if it may be published. Changes nothing, so that it may be asked twice."""
        batch = check_batch(data)
        attributes = batch.attributes
        if batch.length != len(data) - LENGTH_END:
            raise Refused(Code.INVALID_RECORD, "exactly one batch per partition is taken")
        if batch.record_count != batch.last_offset_delta + 1 or attributes & CONTROL_BIT:
            raise Refused(Code.INVALID_RECORD, f"{batch!r} is not what a producer may send")
        self._check_transaction(batch, topic, partition)
        return batch

    def admit_plain(self, replica: Replica, data: memoryview, start: int, end: int) -> Batch | None:
        """The one batch that stands there in `data`, if it needs no more than that nobody saw a wish in it, as most do.
        None: `admit` and `must_open` have to be asked.
        """
        batch = check_batch(data, start)
        if (
            batch.length + LENGTH_END == end - start
            and batch.record_count == batch.last_offset_delta + 1
            and not batch.attributes & NOT_PLAIN_BITS
            and replica.options.is_plain
        ):
            return batch
        return None

    def append(self, replica: Replica, batches: Sequence[Batch]) -> list[Appended | GoQueueError]:
        """Append admitted batches in one write: for each where it stands, or why it was turned away."""
        batches_before, bytes_before = replica.appended_batches, replica.appended_bytes
        first, now_ms = replica.end_offset, self._clock.now_ms()
        results = replica.append_all(batches, now_ms)
        appended = replica.appended_batches - batches_before
        if appended:
            self._received(replica, first, replica.end_offset, now_ms)
        if appended < len(batches):  # some were here already, or turned away
            for batch, result in zip(batches, results, strict=True):
                if isinstance(result, GoQueueError):
                    note_refused(self._journeys, replica, "", batch.record_count, result, now_ms)
                    self._meters.refused(replica.place[0], code_of(result).name, batch.record_count)
        self.batches += appended
        self.bytes += replica.appended_bytes - bytes_before
        return results

    def _received(self, replica: Replica, first: int, next_offset: int, now_ms: int) -> None:
        """Noted before anything else is, or a few milliseconds later: what comes together is one range."""
        received = self._to_note.get(replica)
        if received is not None and received[1] == first and now_ms - received[2] < TOGETHER_MS:
            received[1] = next_offset
            return
        if received is not None:
            self.note_received()
        self._to_note[replica] = [first, next_offset, now_ms]
        self._journeys.before_note = self.note_received
        if self._journeys.on_news is not None:
            self._journeys.tell_news()

    def _received_but(self, replica: Replica, appended: Appended, base_offset: int, duplicates: Iterable[int]) -> None:
        """Noted now, before what is known of those that wait; without those that came before."""
        shift = appended.base_offset - base_offset
        again = merge((offset + shift, offset + shift) for offset in duplicates)
        for first, last in subtract([(appended.base_offset, appended.next_offset - 1)], again):
            self._received(replica, first, last + 1, self._clock.now_ms())
        self.note_received()

    def note_received(self) -> None:
        self._journeys.before_note = None
        to_note, self._to_note = self._to_note, {}
        for replica, (first, next_offset, at_ms) in to_note.items():
            self._journeys.note(at_ms, _RECEIVED, *replica.place, first, next_offset - 1)
            replica.tell_persisted(at_ms)

    def _grant(self, found: Findings, replica: Replica, place: tuple[str, int], size: int) -> Publishing:
        """A record that shall wait is kept apart; the place that it would have had in the log stays free."""
        batch, looked, delayed = found.batch, found.looked, found.delayed
        before = all_before(batch, place[1], looked)
        if before is not None:
            return before
        end_offset = replica.end_offset
        is_whole = not delayed and not looked.duplicates
        appended = self._append(replica, found.rest, size, is_noted=is_whole)
        if replica.end_offset == end_offset:  # it was sent again
            self._schedules.not_held(place)
            delayed = yield from missing(found, replica, appended, self._clock.now_ms(), looked.duplicates)
        elif not is_whole:
            for place_of_duplicate in looked.duplicates:
                taken = appended.base_offset + place_of_duplicate - batch.base_offset
                self._schedules.second_places.add(replica, taken, taken)
            self._received_but(replica, appended, batch.base_offset, looked.duplicates)
        acknowledger: Acknowledger = replica
        if delayed:
            acknowledger = self._schedules.hold(replica, batch, appended, delayed, place)
        self._dedup.remember(place, batch, appended.base_offset, looked, acknowledger)
        if looked.duplicates:
            acknowledger = DuplicateAcknowledger(acknowledger, appended.base_offset, looked.duplicates.values())
        return acknowledger, appended


def _count(data: memoryview) -> int:
    """How many records a batch that was turned away says it has: at most as many as it can hold."""
    try:
        return max(1, min(check_batch(data).record_count, len(data)))
    except GoQueueError:
        return 1
