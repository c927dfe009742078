"""Publishing: one batch into one partition, checked the same way whichever door it came through."""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias

from goqueue.broker.delays.firing import body_of, check_fits
from goqueue.broker.delays.schedules import Delayed, Schedules
from goqueue.broker.publishing.acknowledgements import Acknowledgements
from goqueue.broker.publishing.dedup import Deduplication, Known, Looked, Twinned
from goqueue.broker.publishing.joint_acknowledgement import Held
from goqueue.broker.publishing.opening import open_published
from goqueue.broker.publishing.record_rules import check_records, wish_faults
from goqueue.broker.topics.topics import Topics, code_of
from goqueue.broker.tracing.noting import Journeys, Step, note_refused
from goqueue.model.codes import Code
from goqueue.model.errors import BatchTooLarge, GoQueueError, InvalidWish
from goqueue.model.ranges import merge, subtract
from goqueue.model.refusal import InvalidRecords, Refused
from goqueue.records.batch import (
    CODEC_MASK,
    CONTROL_BIT,
    LENGTH_END,
    NO_PRODUCER,
    TRANSACTIONAL_BIT,
    Batch,
    check_batch,
)
from goqueue.records.control import build_kept_free
from goqueue.records.rewrite import rebuild_batch
from goqueue.records.wishes import mentioned_in, mentions_wishes
from goqueue.replica.replica import NO_TIMESTAMP, Appended, Replica
from goqueue.runtime.clock import Clock
from goqueue.telemetry.histogram import SLOW_S, Example
from goqueue.telemetry.meters import NO_TOPIC, Meters
from goqueue.telemetry.trace_ids import Spot

__all__ = ["Acknowledgements", "Appended", "Batch", "Held", "Keeper", "Publisher", "Replica"]

TOGETHER_MS = 5
"""What is received in one partition within that time is one range."""
NOT_PLAIN_BITS = CODEC_MASK | TRANSACTIONAL_BIT | CONTROL_BIT
_RECEIVED: Final = Step.RECEIVED  # looking up enum members costs

VerifyTransaction = Callable[[Batch, str, int], Code]
Keeper: TypeAlias = Replica | Held | Twinned
"""Whoever keeps what was published, and can be asked to call when it may be acknowledged."""


NONE = Looked({}, {})
OFF = "off"


class Gate(Protocol):
    """What looks at every record, on topics that ask for it."""

    def check(self, replica: Replica, topic: str, batch: Batch) -> tuple[Batch, list[Any]]:
        """The part of a batch that may be appended, and what is wrong with the rest."""

    def bury(
        self, keeper: Keeper, appended: Appended, base_offset: int, faults: Sequence[Any], place: tuple[str, int]
    ) -> Held:
        """Keep the rest elsewhere."""


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
        self.batches = 0
        self.bytes = 0

    def publish(
        self,
        topic: str,
        partition: int,
        data: memoryview,
        *,
        needs_all_copies: bool = True,
        begins_at_zero: bool = False,
    ) -> tuple[Keeper, Appended]:
        """Append the one batch in `data`, whose memory is written to. Raises one of our errors if it may not be.

        `acknowledgements` tells when the keeper's high watermark has reached `next_offset`. `needs_all_copies`: as many
        as the topic's `min.insync.replicas` says; only a Kafka producer that asks for less (acks 0 or 1) goes without.
        `begins_at_zero`: see `misses_first`.
        """
        try:
            return self.try_publish(
                topic, partition, data, needs_all_copies=needs_all_copies, begins_at_zero=begins_at_zero
            )
        except GoQueueError as error:
            self.refused(topic, partition, _count(data), error)
            raise

    def refused(self, topic: str, partition: int, count: int, error: GoQueueError) -> None:
        """So many records were turned away for good, here or by whoever asked for `try_publish`."""
        replica = self._topics.find_replica(topic, partition)
        note_refused(self._journeys, replica, topic, count, error, self._clock.now_ms())
        self._meters.refused(topic if topic in self._topics.image.topics else NO_TOPIC, code_of(error).name, count)

    def faults_of(self, topic: str, partition: int, data: memoryview, error: GoQueueError) -> Mapping[int, str]:
        """Which records of a refused batch are why, by their places in it. Empty: it is the batch that cannot be."""
        if isinstance(error, InvalidWish):
            options = self._topics.replica(topic, partition).options
            return wish_faults(check_batch(data), options, self._clock.now_ms())
        return error.faults if isinstance(error, InvalidRecords) else {}

    def now_s(self) -> float:
        """For `acknowledged`: when a request was taken up."""
        return self._clock.monotonic_s()

    def acknowledged(self, topic: str, partition: int, offset: int, started_s: float, requests: int = 1) -> None:
        """So many requests that were taken up then are answered now. `offset`: of one of their records."""
        seconds = self._clock.monotonic_s() - started_s
        self._meters.published(topic, seconds, requests)
        if seconds > SLOW_S and self._journeys.is_sampled(offset):
            self._meters.keep_example(Example(Spot(topic, partition, offset), seconds, self._clock.now_ms()))

    def try_publish(
        self,
        topic: str,
        partition: int,
        data: memoryview,
        *,
        needs_all_copies: bool = True,
        begins_at_zero: bool = False,
    ) -> tuple[Keeper, Appended]:
        """As `publish`, for who tries again with less if it is refused."""
        replica = self._topics.replica(topic, partition)
        if needs_all_copies and replica.lacks_copies:
            needed = replica.options.min_insync_replicas
            raise Refused(
                Code.NOT_ENOUGH_REPLICAS, f"min.insync.replicas of {topic!r} is {needed}, and there is one copy"
            )
        batch = self.admit(replica, topic, partition, data)
        if begins_at_zero and self.misses_first(replica, batch):
            raise Refused(Code.OUT_OF_ORDER_SEQUENCE_NUMBER, "the first batch of the transaction has not come")
        faults: list[Any] = []
        if replica.options.schema_validation != OFF:
            batch, faults = self.gate.check(replica, topic, batch)
        batches_before = replica.appended_batches
        keeper: Keeper = replica
        if not batch.is_control and self.has_wishes(replica, topic, partition, batch):
            keeper, appended = self._grant(replica, batch, topic, partition)
        else:
            appended = replica.append(batch, self._clock.now_ms())
        if replica.appended_batches > batches_before:  # else it was here already
            self.batches += 1
            self.bytes += len(data)
            if keeper is replica:  # else it was noted before what waits was
                self._received(replica, appended.base_offset, appended.next_offset, self._clock.now_ms())
        if faults:
            keeper = self.gate.bury(keeper, appended, batch.base_offset, faults, (topic, partition))
        return keeper, appended

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
        """Whether `batch` cannot simply be appended: somebody has to look at its records first."""
        is_checked = replica.lacks_copies or replica.options.schema_validation != OFF
        return is_checked or self.has_wishes(replica, topic, partition, batch, has_none_in_plain)

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

    def admit(self, replica: Replica, topic: str, partition: int, data: memoryview) -> Batch:
        """The one batch in `data`, if it may be published. Changes nothing, so that it may be asked twice."""
        batch = check_batch(data)
        attributes = batch.attributes
        if batch.length != len(data) - LENGTH_END:
            raise Refused(Code.INVALID_RECORD, "exactly one batch per partition is taken")
        if batch.record_count != batch.last_offset_delta + 1 or attributes & CONTROL_BIT:
            raise Refused(Code.INVALID_RECORD, f"{batch!r} is not what a producer may send")
        if attributes & TRANSACTIONAL_BIT:
            verdict = self._verify_transaction(batch, topic, partition)
            if verdict is not Code.NONE:
                raise Refused(verdict)
        if replica.log.compacts or replica.options.bounds_time:
            check_records(batch, replica.options, self._clock.now_ms())
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

    def _received_but(self, replica: Replica, appended: Appended, base_offset: int, twins: Iterable[int]) -> None:
        """Noted now, before what is known of those that wait; without those that came before."""
        shift = appended.base_offset - base_offset
        again = merge((offset + shift, offset + shift) for offset in twins)
        for first, last in subtract([(appended.base_offset, appended.next_offset - 1)], again):
            self._received(replica, first, last + 1, self._clock.now_ms())
        self.note_received()

    def note_received(self) -> None:
        self._journeys.before_note = None
        to_note, self._to_note = self._to_note, {}
        for replica, (first, next_offset, at_ms) in to_note.items():
            self._journeys.note(at_ms, _RECEIVED, *replica.place, first, next_offset - 1)
            replica.tell_persisted(at_ms)

    def _grant(self, replica: Replica, batch: Batch, topic: str, partition: int) -> tuple[Keeper, Appended]:
        """A record that shall wait is kept apart; the place that it would have had in the log stays free."""
        now_ms, place = self._clock.now_ms(), (topic, partition)
        looked = (
            self._dedup.look(topic, partition, batch, replica.options, replica.find_sent(batch))
            if replica.options.dedup_ms
            else NONE
        )
        before = _all_before(batch, partition, looked)
        if before is not None:
            return before
        end_offset = replica.end_offset
        try:
            delayed = self._schedules.find(batch, place, replica.options, now_ms, looked.twins)
            rest = self._without(batch, delayed, looked.twins, replica) if delayed or looked.twins else batch
            appended = replica.append(rest, now_ms)
        except GoQueueError:
            self._schedules.not_held(place)
            raise
        if replica.end_offset == end_offset:  # it was sent again
            self._schedules.not_held(place)
            delayed = self._schedules.find_missing(replica, batch, appended, now_ms, looked.twins)
        if (delayed or looked.twins) and replica.end_offset > end_offset:
            for place_of_twin in looked.twins:
                taken = appended.base_offset + place_of_twin - batch.base_offset
                self._schedules.second_places.add(replica, taken, taken)
            self._received_but(replica, appended, batch.base_offset, looked.twins)
        keeper: Keeper = replica
        if delayed:
            keeper = self._schedules.hold(replica, batch, appended, delayed, place)
        self._dedup.remember(topic, partition, batch, appended.base_offset, looked.fresh, keeper)
        if looked.twins:
            keeper = Twinned(keeper, appended.base_offset, looked.twins.values())
        return keeper, appended

    def _without(self, batch: Batch, delayed: Sequence[Delayed], twins: Container[int], replica: Replica) -> Batch:
        """The limits of a topic hold for what waits too: its time must not come in vain."""
        bytes_max = replica.log.options.batch_bytes_max
        if batch.size > bytes_max:
            raise BatchTooLarge(f"{batch.size} bytes, at most {bytes_max} are taken")
        for one in delayed:
            check_fits(body_of(one.record, replica.options.message_ttl_ms, 0), bytes_max)
        waiting = {one.record.offset for one in delayed}
        records = open_published(batch, replica.options)
        others = [each for each in records if each.offset not in waiting and each.offset not in twins]
        return check_batch(memoryview(rebuild_batch(batch, others) if others else build_kept_free(batch)))


def _all_before(batch: Batch, partition: int, looked: Looked) -> tuple[Keeper, Appended] | None:
    """A batch of which every record came before, in this partition and in a row, is answered with where they are."""
    if batch.producer_id != NO_PRODUCER or len(looked.twins) < batch.record_count:
        return None
    found: list[Known] = [each for each in looked.twins.values() if each is not None]
    first = found[0] if found else None
    if first is None or [each[:2] for each in found] != [
        (partition, first.offset + number) for number in range(batch.record_count)
    ]:
        return None
    keeper = first.keeper
    return Twinned(keeper, first.offset, found), Appended(first.offset, first.offset + len(found), NO_TIMESTAMP)


def _count(data: memoryview) -> int:
    """How many records a batch that was turned away says it has: at most as many as it can hold."""
    try:
        return max(1, min(check_batch(data).record_count, len(data)))
    except GoQueueError:
        return 1
