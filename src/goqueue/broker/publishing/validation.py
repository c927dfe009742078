"""Validation on publish: on topics that ask for it, records must fit their schema, whichever door they came through.

A record names its schema in the header `schema-id` or before its value, as Confluent's serializers write it: a zero
byte and four bytes of id. A record that names none must be JSON and fit the latest schema of the topic's subject.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from goqueue.broker.dead_letters.writing import dead_letters_of, make_dead_letter_topic
from goqueue.broker.delays.firing import record_bytes
from goqueue.broker.publishing.opening import open_published
from goqueue.broker.publishing.publish import OFF, Appended, Batch, Held, Keeper, Publisher, Replica
from goqueue.broker.schemas.formats.parsed import Allowance, Parsed
from goqueue.broker.schemas.schemas import Schemas
from goqueue.broker.topics.topics import Topics
from goqueue.broker.tracing.noting import DETAIL_CHARS_MAX, Journeys, Step
from goqueue.model.errors import GoQueueError
from goqueue.model.refusal import Refused, SchemaMismatch
from goqueue.model.schemas import InvalidSchema, SchemaKind
from goqueue.model.topics import DEFAULTS, TopicOptions
from goqueue.records.batch import HEADER_BYTES, check_batch
from goqueue.records.build import NewRecord, build_fitting
from goqueue.records.control import build_kept_free
from goqueue.records.dead_letters import misfit_headers
from goqueue.records.decode import DecodedRecord
from goqueue.records.rewrite import rebuild_batch
from goqueue.records.schema_framing import HEADER, LATEST, PREFIX_BYTES, named_schema
from goqueue.runtime.clock import Clock
from goqueue.telemetry.meters import Meters

REJECT = "reject"
PASSED, FAILED = "passed", "failed"
FAULT_CHARS_MAX = 1000
LETTERS_BYTES = 512 * 1024
STEPS_MAX, STEPS_PER_BYTE = 50_000, 2
"""For all values of one batch together: no more than schemas that are good for something ever need."""

Header: TypeAlias = tuple[str, bytes | None]


def subjects_of(topic: str, options: TopicOptions) -> tuple[str, ...]:
    """Whose schemas the records of a topic may have; the first that has any says which is the latest."""
    named = options.schema_subject.replace("{topic}", topic)
    return (named, topic) if options.schema_subject == DEFAULTS.schema_subject else (named,)


class Fault(NamedTuple):
    record: DecodedRecord
    why: str


class Validation:
    def __init__(
        self, schemas: Schemas, topics: Topics, publisher: Publisher, clock: Clock, journeys: Journeys, meters: Meters
    ) -> None:
        self._schemas = schemas
        self._topics = topics
        self._publisher = publisher
        self._clock = clock
        self._journeys = journeys
        self._meters = meters
        publisher.gate = self
        self.rejected = 0
        self.buried = 0

    def check(self, replica: Replica, topic: str, batch: Batch) -> tuple[Batch, list[Fault]]:
        """What may be appended, and what is wrong with the rest. SchemaMismatch: the topic wants all or nothing."""
        started_s = self._clock.monotonic_s()
        try:
            records = open_published(batch, replica.options)
        except Refused as error:
            raise SchemaMismatch(str(error), code=error.code) from error
        faults = self._faults(records, topic, replica.options)
        self._meters.checks_took(topic, self._clock.monotonic_s() - started_s)
        self._meters.checked(topic, PASSED, len(records) - len(faults))
        if not faults:
            return batch, []
        self._meters.checked(topic, FAILED, len(faults))
        if replica.options.schema_validation == REJECT:
            self.rejected += len(faults)
            raise _mismatch(faults, batch)
        bad = {fault.record.offset for fault in faults}
        good = [record for record in records if record.offset not in bad]
        made = rebuild_batch(batch, good) if good else build_kept_free(batch)
        return check_batch(memoryview(made)), faults

    def bury(
        self, keeper: Keeper, appended: Appended, base_offset: int, faults: Sequence[Fault], place: tuple[str, int]
    ) -> Held:
        """Make dead letters of records that were left out of a batch; the batch is acknowledged when they are safe.
        Their places in the log stay free, so that the offsets which their producer counts are true.
        """
        held = Held(keeper, appended.base_offset)
        shift = appended.base_offset - base_offset
        now_ms = self._clock.now_ms()
        letters = [_letter(fault, place, fault.record.offset + shift, now_ms) for fault in faults]
        held.when_settled = lambda: self._note(place, shift, faults)
        self._write(place, letters, held)
        return held

    def _note(self, place: tuple[str, int], shift: int, faults: Sequence[Fault]) -> None:
        self.buried += len(faults)
        now_ms, where = self._clock.now_ms(), dead_letters_of(self._topics, place[0])
        for fault in faults:
            offset = fault.record.offset + shift
            detail = f"schema: {fault.why[:DETAIL_CHARS_MAX]}; now in {where}"
            self._journeys.note(now_ms, Step.DEAD_LETTERED, *place, offset, offset, detail=detail)

    def check_one(self, topic: str, options: TopicOptions, value: bytes | None, headers: Sequence[Header]) -> None:
        """SchemaMismatch: such a record could not be published, now or later."""
        if options.schema_validation != OFF and value is not None:
            why = _Judge(self._schemas, subjects_of(topic, options)).fault(value, headers)
            self._meters.checked(topic, PASSED if why is None else FAILED, 1)
            if why is not None:
                raise SchemaMismatch(why, {0: why})

    def _faults(self, records: Sequence[DecodedRecord], topic: str, options: TopicOptions) -> list[Fault]:
        judge = _Judge(self._schemas, subjects_of(topic, options))
        found = []
        for record in records:
            if record.value is not None:  # a tombstone has no fields
                why = judge.fault(record.value, record.headers)
                if why is not None:
                    found.append(Fault(record, why[:FAULT_CHARS_MAX]))
        return found

    # -- burying

    def _write(self, place: tuple[str, int], letters: list[NewRecord], held: Held) -> None:
        topic, partition = place
        name = dead_letters_of(self._topics, topic)
        source, target = (self._topics.image.topics.get(each) for each in (topic, name))
        if source is not None and target is None:

            def made(reply: Any) -> None:
                if isinstance(reply, GoQueueError):
                    held.settled(reply)
                else:
                    self._clock.call_soon(lambda: self._write(place, letters, held))

            make_dead_letter_topic(self._topics, source, made)
            return
        try:
            keepers = [
                self._publisher.publish(name, partition % (target.partitions if target else 1), memoryview(data))
                for data in self._batches(name, letters)
            ]
        except GoQueueError as error:
            held.settled(error)
            return
        waiting = len(keepers)

        def reached() -> None:
            nonlocal waiting
            waiting -= 1
            if not waiting:
                failure = next((keeper.failure for keeper, _ in keepers if keeper.failure is not None), None)
                held.settled(failure)

        for keeper, appended in keepers:
            keeper.when_reached(appended.next_offset, reached)

    def _batches(self, name: str, letters: Sequence[NewRecord]) -> list[bytearray]:
        limit = self._topics.replica(name, 0).log.options.batch_bytes_max
        bytes_max = min(LETTERS_BYTES, limit) - HEADER_BYTES
        batches: list[list[NewRecord]] = []
        size = bytes_max + 1
        for letter in letters:
            size += record_bytes(letter)
            if size > bytes_max:
                batches.append([])
                size = record_bytes(letter)
            batches[-1].append(letter)
        return [build_fitting(each, limit) for each in batches]


class _Judge:
    """Of the records of one batch: what was found out about a schema holds for all of them."""

    def __init__(self, schemas: Schemas, subjects: Sequence[str]) -> None:
        self._schemas = schemas
        self._subjects = subjects
        self._allowance = Allowance(STEPS_MAX)
        self._known: dict[int, Parsed | str] = {}
        """By id: what checks values, or why nothing can."""

    def fault(self, value: bytes, headers: Sequence[Header]) -> str | None:
        try:
            schema_id, is_framed = named_schema(value, headers)
        except ValueError as error:
            return str(error)
        known = self._known.get(schema_id)
        if known is None:
            known = self._known[schema_id] = self._latest() if schema_id == LATEST else self._by_id(schema_id)
        if isinstance(known, str):
            return known
        self._allowance.left += STEPS_PER_BYTE * len(value)
        why = known.fault(value[PREFIX_BYTES:] if is_framed else value, is_framed, self._allowance)
        return None if why is None else f"does not fit {self._name(schema_id)}: {why}"

    def _name(self, schema_id: int) -> str:
        latest = self._latest_id() if schema_id == LATEST else schema_id
        return f"schema {latest}"

    def _latest_id(self) -> int | None:
        found = (self._schemas.machine.latest(subject) for subject in self._subjects)
        return next((each.schema_id for each in found if each is not None), None)

    def _latest(self) -> Parsed | str:
        latest = self._latest_id()
        if latest is None:
            return f"names no schema, and subject {' or '.join(self._subjects)} has none"
        kind = self._schemas.schema(latest).kind
        if kind is not SchemaKind.JSON:
            return f"names no schema: {kind} values need the header {HEADER} or an id before the value"
        return self._parsed(latest)

    def _by_id(self, schema_id: int) -> Parsed | str:
        if not any(each.subject in self._subjects for each in self._schemas.machine.uses(schema_id)):
            return f"schema {schema_id} is none of subject {' or '.join(self._subjects)}"
        return self._parsed(schema_id)

    def _parsed(self, schema_id: int) -> Parsed | str:
        try:
            found = self._schemas.parsed(schema_id)
        except InvalidSchema as error:  # a library of ours has become stricter than the one that took it
            return f"schema {schema_id} cannot be used: {error}"
        return found or f"there is no schema {schema_id}"


def _mismatch(faults: Sequence[Fault], batch: Batch) -> SchemaMismatch:
    numbered = {fault.record.offset - batch.base_offset: fault.why for fault in faults}
    first = next(iter(numbered))
    where = f"record {first}: " if batch.record_count > 1 else ""
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return SchemaMismatch(f"{where}{numbered[first]}{more}", numbered)


def _letter(fault: Fault, place: tuple[str, int], offset: int, now_ms: int) -> NewRecord:
    record = fault.record
    headers = misfit_headers(record.headers, (*place, offset), fault.why, record.timestamp, now_ms)
    return now_ms, record.key, record.value, headers
