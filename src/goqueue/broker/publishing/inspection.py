"""Looking at every record of a batch before it is published, on topics that ask for it: rules, schemas, `gq-` headers.

It is done in turns, and others publish meanwhile. What was found rests on what was known then, so it is asked again in
the turn in which the batch is appended whether it still holds; if not, it is found out anew.
"""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any, Protocol

from goqueue.broker.delays.firing import body_of, check_fits, do_all_fit
from goqueue.broker.delays.schedules import Delayed, Schedules
from goqueue.broker.publishing.dedup import Deduplication
from goqueue.broker.publishing.dedup_ids import Looked
from goqueue.broker.publishing.opening import SMALL_BYTES, TURN_RECORDS, in_portions, portions_published
from goqueue.broker.publishing.record_rules import RecordRules
from goqueue.broker.publishing.turns import Steps
from goqueue.broker.tenants.rooms import Room
from goqueue.model.errors import BatchTooLarge
from goqueue.model.refusal import Refused
from goqueue.model.topics import TopicOptions
from goqueue.records.batch import CODEC_MASK, Batch, check_batch, split
from goqueue.records.control import build_kept_free
from goqueue.records.decode import DecodedRecord
from goqueue.records.portions import portions
from goqueue.records.rewrite import encode_part, rebuild_batch
from goqueue.records.wishes import read_wishes
from goqueue.replica.replica import Appended, Replica
from goqueue.runtime.clock import Clock

OFF = "off"
NOTHING = Looked()
ONE_BATCH = 1
ENCODED_RECORDS = 200
"""Writing a record takes longer than looking at it."""


class Checking(Protocol):
    """Of the values of one batch against their schemas."""

    def refused(self, error: Refused) -> Refused:
        """How it is told that the batch cannot be opened."""

    def look(self, records: Sequence[DecodedRecord]) -> Steps[None]: ...

    def end(self, batch: Batch, records: list[DecodedRecord]) -> Steps[tuple[Batch, list[DecodedRecord], list[Any]]]:
        """The part of a batch that may be appended, the records in it, and what is wrong with the rest."""

    def still_holds(self) -> bool: ...


class Findings:
    """What was found out about one batch."""

    def __init__(self, replica: Replica, batch: Batch, room: Room | None = None) -> None:
        self._options = replica.options
        self.room = room
        """What its tenant may still publish, if that is limited."""
        self.batch = batch
        """What is left of it after validation; `rest`: and without what waits or came before."""
        self.rest = batch
        self.records: list[DecodedRecord] = []
        self.checking: Checking | None = None
        self.faults: list[Any] = []
        self.asks = False
        """Some of the records that came may have wishes. `has_wishes`: some of those that are left may."""
        self.has_wishes = False
        self.looked = NOTHING
        self.delayed: list[Delayed] = []
        self.revision: tuple[int, int] | None = None

    def forget(self) -> Steps[None]:
        """Giving back the memory of 100,000 records takes its time too."""
        self.faults, self.delayed, self.looked = [], [], NOTHING
        while self.records:
            del self.records[-4 * TURN_RECORDS :]
            yield None

    def is_of(self, replica: Replica) -> bool:
        """Whether the topic still asks for the same."""
        return self._options is replica.options


class Inspector:
    begin_check: Callable[[str, TopicOptions], Checking]
    """Set before the first batch comes."""

    def __init__(self, schedules: Schedules, dedup: Deduplication, clock: Clock) -> None:
        self._schedules = schedules
        self._dedup = dedup
        self._clock = clock

    def look(self, found: Findings, replica: Replica, topic: str, has_wishes: bool) -> Steps[None]:
        """What its records say by themselves."""
        options, batch = replica.options, found.batch
        found.asks = found.has_wishes = has_wishes
        is_checked = options.schema_validation != OFF
        if is_checked:
            found.checking = self.begin_check(topic, options)
        room = found.room
        bytes_max = None if room is None or room.may_pass(batch.size) else room.message_bytes_max
        is_ruled = has_rules(replica) or bytes_max is not None
        rules = RecordRules(batch, options, self._clock.now_ms(), bytes_max) if is_ruled else None
        if rules is None and not is_checked and not has_wishes:
            return
        is_kept = is_checked or has_wishes
        opened = portions_published(batch, options, are_kept=is_kept)
        is_later = False
        while (records := self._next(opened, found.checking if rules is None else None)) is not None:
            if is_later:
                yield None
            is_later = True
            if rules is not None:
                rules.look(records)
            if found.checking is not None:
                yield from found.checking.look(records)
            if is_kept:
                found.records += records
        if rules is not None:
            rules.check()
        if found.checking is not None:
            found.batch, found.records, found.faults = yield from found.checking.end(batch, found.records)
            found.rest = found.batch
            found.has_wishes &= not found.batch.is_control

    def _next(
        self, opened: Iterator[Sequence[DecodedRecord]], checking: Checking | None
    ) -> Sequence[DecodedRecord] | None:
        try:
            records = next(opened, None)
        except Refused as error:
            if checking is None:
                raise
            raise checking.refused(error) from error
        return records

    def plan(self, found: Findings, replica: Replica, place: tuple[str, int]) -> Steps[None]:
        """What its records say beside those that are there."""
        batch, options, now_ms = found.batch, replica.options, self._clock.now_ms()
        found.rest, found.delayed, found.looked = batch, [], NOTHING
        if options.dedup_ms:
            found.looked = yield from self._dedup.look(place, batch, found.records, replica)
        duplicates = found.looked.duplicates
        try:
            found.revision = self._schedules.revision(place, options)
            is_changed = False
            for number, records in enumerate(in_portions(found.records)):
                if number:
                    yield None
                is_changed |= found.revision != self._schedules.revision(place, options)
                found.delayed += self._schedules.find(records, place, options, now_ms, duplicates)
                found.revision = self._schedules.revision(place, options)
            if found.room is not None:
                found.room.check_delays(batch.base_offset, found.delayed, now_ms)
            if found.delayed or duplicates:
                found.rest = yield from self._without(found, duplicates, replica)
        except BaseException:
            self._schedules.not_held(place)
            raise
        if is_changed:
            found.revision = (-1, -1)

    def still_holds(self, found: Findings, replica: Replica, place: tuple[str, int]) -> bool:
        return (
            found.is_of(replica)
            and (found.checking is None or found.checking.still_holds())
            and (
                not found.has_wishes
                or (
                    found.revision == self._schedules.revision(place, replica.options)
                    and (
                        not replica.options.dedup_ms
                        or self._dedup.still_holds(place[0], found.looked, found.batch, replica)
                    )
                )
            )
        )

    def _without(self, found: Findings, duplicates: Mapping[int, object], replica: Replica) -> Steps[Batch]:
        """The limits of a topic hold for what waits too: its time must not come in vain."""
        batch, bytes_max = found.batch, replica.log.options.batch_bytes_max
        if batch.size > bytes_max:
            raise BatchTooLarge(f"{batch.size} bytes, at most {bytes_max} are taken")
        all_fit = not batch.attributes & CODEC_MASK and do_all_fit(batch.size, bytes_max)
        for number, one in enumerate(() if all_fit else found.delayed, 1):
            if not number % TURN_RECORDS:
                yield None
            check_fits(body_of(one.record, replica.options.message_ttl_ms, 0), bytes_max)
        waiting = {one.record.offset for one in found.delayed}
        rest, _ = yield from without(batch, found.records, waiting | duplicates.keys())
        return rest


def without(
    batch: Batch, records: Sequence[DecodedRecord], left_out: Container[int]
) -> Steps[tuple[Batch, list[DecodedRecord]]]:
    """`batch`, whose records these are, with only those that are not left out."""
    others: list[DecodedRecord] = []
    encoded = bytearray()
    for number, portion in enumerate(in_portions(records, ENCODED_RECORDS)):
        if number:
            yield None
        part = [each for each in portion if each.offset not in left_out]
        others += part
        encoded += encode_part(batch, part)
    if not others:
        return check_batch(memoryview(build_kept_free(batch))), others

    def made() -> bytearray:
        return rebuild_batch(batch, others, encoded=encoded)

    is_small = len(encoded) <= SMALL_BYTES and len(others) <= TURN_RECORDS
    return check_batch(memoryview(made() if is_small else (yield made))), others


def missing(
    found: Findings, replica: Replica, appended: Appended, now_ms: int, left_out: Container[int]
) -> Steps[list[Delayed]]:
    """Records of a batch that was sent before and stands in the log without them: they were delayed then, and a crash
    may have come before they were stored. Those that were are known and will not be scheduled again.
    """
    piece = replica.read(appended.base_offset, ONE_BATCH, replica.end_offset)
    if piece is None or piece.first_offset != appended.base_offset:  # retention was faster
        return []
    shift = appended.base_offset - found.batch.base_offset
    there: set[int] = set()
    for batch in split(memoryview(piece.read())):  # the log's memory is not ours beyond this turn
        for portion in portions(batch) if not batch.is_control else ():  # a place kept free holds no record
            there.update(record.offset - shift for record in portion.records)
            if len(there) > TURN_RECORDS:
                yield None
    delayed = []
    for number, records in enumerate(in_portions(found.records)):
        if number:
            yield None
        for record in records:
            if record.offset not in there and record.offset not in left_out:
                wish = read_wishes(record.headers, now_ms)
                delayed.append(Delayed(record, max(now_ms, wish.deliver_at_ms), wish.is_delay, now_ms))
    return delayed


def has_rules(replica: Replica) -> bool:
    return replica.log.compacts or replica.options.bounds_time
