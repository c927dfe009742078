"""Validation on publish: on topics that ask for it, records must fit their schema, whichever door they came through.

A record names its schema in the header `schema-id` or before its value, as Confluent's serializers write it: a zero
byte and four bytes of id. A record that names none must be JSON and fit the latest schema of the topic's subject.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from typing import NamedTuple, Protocol, TypeAlias

from goqueue.broker.dead_letters.writing import dead_letters_of, make_dead_letter_topic, when_shown
from goqueue.broker.delays.firing import record_bytes
from goqueue.broker.publishing.acknowledgements import Acknowledger as Waiting
from goqueue.broker.publishing.inspection import OFF, without
from goqueue.broker.publishing.joint_acknowledgement import JointAcknowledger
from goqueue.broker.publishing.publish import Acknowledger, Publisher
from goqueue.broker.publishing.turns import Steps
from goqueue.broker.schemas.formats.parsed import TURN_BYTES_MAX, Allowance, Parsed
from goqueue.broker.schemas.schemas import Schemas
from goqueue.broker.schemas.study import Failed, Text, read_schema
from goqueue.broker.topics.topics import Topics
from goqueue.broker.tracing.noting import DETAIL_CHARS_MAX
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.refusal import Refused, SchemaMismatch
from goqueue.model.schema_subjects import subjects_of
from goqueue.model.schemas import InvalidSchema, SchemaKind
from goqueue.model.topics import TopicOptions
from goqueue.records.batch import HEADER_BYTES, Batch
from goqueue.records.build import NewRecord, build_fitting
from goqueue.records.dead_letters import misfit_headers
from goqueue.records.decode import DecodedRecord
from goqueue.records.schema_framing import HEADER, LATEST, PREFIX_BYTES, named_schema
from goqueue.replica.replica import Appended
from goqueue.runtime.clock import Clock
from goqueue.telemetry.journeys import Journeys, Step
from goqueue.telemetry.meters import Meters

REJECT = "reject"
PASSED, FAILED = "passed", "failed"
FAULT_CHARS_MAX = 1000
LETTERS_BYTES = 512 * 1024
LETTERS_PER_TURN = 200
TURN_COST, VALUE_COST = 64 * 1024, 192
"""Bytes of values that are checked in one turn, and how many of them a value costs however small it is."""
STEPS_MAX, STEPS_PER_BYTE = 50_000, 2
"""For all values of one batch together: no more than schemas that are good for something ever need."""

Header: TypeAlias = tuple[str, bytes | None]
Check: TypeAlias = Callable[[], str | None]


class Unread(Enum):
    """A schema that nobody has read since the start."""

    UNREAD = 0


UNREAD = Unread.UNREAD


class Fault(NamedTuple):
    record: DecodedRecord
    why: str


class AppendsElsewhere(Protocol):
    """Partitions that other nodes lead."""

    def is_elsewhere(self, topic: str, partition: int) -> bool: ...

    def bytes_max(self, topic: str) -> int: ...

    def wait(self, topic: str, partition: int, batch: bytearray) -> tuple[Waiting, Appended]: ...


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
        publisher.inspector.begin_check = self.begin
        self.appends: AppendsElsewhere | None = None
        """In a cluster: to dead letters whose partition another node leads."""
        self.rejected = 0
        self.dead_lettered = 0

    def begin(self, topic: str, options: TopicOptions) -> "Checking":
        return Checking(self, _Judge(self._schemas, subjects_of(topic, options)), topic, options)

    def checked(self, topic: str, passed: int, failed: int, seconds: float, *, are_refused: bool) -> None:
        """So many values were looked at."""
        self._meters.checks_took(topic, seconds)
        self._meters.checked(topic, PASSED, passed)
        if failed:
            self._meters.checked(topic, FAILED, failed)
            self.rejected += failed if are_refused else 0

    def now_s(self) -> float:
        return self._clock.monotonic_s()

    def dead_letter(
        self,
        acknowledger: Acknowledger,
        appended: Appended,
        base_offset: int,
        faults: Sequence[Fault],
        place: tuple[str, int],
    ) -> JointAcknowledger:
        """Make dead letters of records that were left out of a batch; the batch is acknowledged when they are safe.
        Their places in the log stay free, so that the offsets which their producer counts are true.
        """
        held = JointAcknowledger(acknowledger, appended.base_offset)
        shift = appended.base_offset - base_offset
        turns = self._publisher.turns
        held.when_settled = lambda: turns.run(self._note(place, shift, faults), lambda result: None)
        self._write(place, shift, faults, held)
        return held

    def _note(self, place: tuple[str, int], shift: int, faults: Sequence[Fault]) -> Steps[None]:
        self.dead_lettered += len(faults)
        now_ms, where = self._clock.now_ms(), dead_letters_of(self._topics, place[0])
        for number, fault in enumerate(faults, 1):
            offset = fault.record.offset + shift
            detail = f"schema: {fault.why[:DETAIL_CHARS_MAX]}; now in {where}"
            self._journeys.note(now_ms, Step.DEAD_LETTERED, *place, offset, offset, detail=detail)
            if not number % LETTERS_PER_TURN:
                yield None

    def check_one(self, topic: str, options: TopicOptions, value: bytes | None, headers: Sequence[Header]) -> None:
        """SchemaMismatch: such a record could not be published, now or later."""
        if options.schema_validation != OFF and value is not None:
            why = _Judge(self._schemas, subjects_of(topic, options)).fault_at_once(value, headers)
            self._meters.checked(topic, PASSED if why is None else FAILED, 1)
            if why is not None:
                raise SchemaMismatch(why, {0: why})

    # -- dead letters

    def _write(self, place: tuple[str, int], shift: int, faults: Sequence[Fault], held: JointAcknowledger) -> None:
        source = self._topics.image.topics.get(place[0])
        name = dead_letters_of(self._topics, place[0])
        if source is not None and name not in self._topics.image.topics:

            def made(reply: object) -> None:
                if isinstance(reply, GoQueueError):
                    held.settled(reply)
                else:
                    when_shown(self._topics, name, self._clock, lambda: self._write(place, shift, faults, held))

            make_dead_letter_topic(self._topics, source, made)
            return

        def written(acknowledgers: list[tuple[Waiting, Appended]] | Exception) -> None:
            if isinstance(acknowledgers, Exception):
                is_ours = isinstance(acknowledgers, GoQueueError)
                held.settled(acknowledgers if is_ours else Refused(Code.UNKNOWN_SERVER_ERROR, str(acknowledgers)))
            else:
                _when_all_reached(acknowledgers, held)

        self._publisher.turns.run(self._letters(name, place, shift, faults), written)

    def _letters(
        self, name: str, place: tuple[str, int], shift: int, faults: Sequence[Fault]
    ) -> Steps[list[tuple[Waiting, Appended]]]:
        target, now_ms = self._topics.image.topics.get(name), self._clock.now_ms()
        partition = place[1] % (target.partitions if target else 1)
        acknowledgers: list[tuple[Waiting, Appended]] = []
        for start in range(0, len(faults), LETTERS_PER_TURN):
            if start:
                yield None
            some = faults[start : start + LETTERS_PER_TURN]
            letters = [_letter(fault, place, fault.record.offset + shift, now_ms) for fault in some]
            for data in self._batches(name, partition, letters):
                if self.appends is not None and self.appends.is_elsewhere(name, partition):
                    acknowledgers.append(self.appends.wait(name, partition, data))
                else:
                    kept = yield from self._publisher.told_steps(name, partition, memoryview(data), is_own=True)
                    acknowledgers.append(kept)
        return acknowledgers

    def _batches(self, name: str, partition: int, letters: Sequence[NewRecord]) -> list[bytearray]:
        if self.appends is not None and self.appends.is_elsewhere(name, partition):
            limit = self.appends.bytes_max(name)
        else:
            limit = self._topics.replica(name, partition).log.options.batch_bytes_max
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


def _when_all_reached(acknowledgers: Sequence[tuple[Waiting, Appended]], held: JointAcknowledger) -> None:
    waiting = len(acknowledgers)

    def reached() -> None:
        nonlocal waiting
        waiting -= 1
        if not waiting:
            failure = next(
                (acknowledger.failure for acknowledger, _ in acknowledgers if acknowledger.failure is not None), None
            )
            held.settled(failure)

    for acknowledger, appended in acknowledgers:
        acknowledger.when_reached(appended.next_offset, reached)


class Checking:
    """Of the values of one batch, in turns."""

    def __init__(self, validation: Validation, judge: "_Judge", topic: str, options: TopicOptions) -> None:
        self._validation = validation
        self._judge = judge
        self._topic = topic
        self._options = options
        self._faults: list[Fault] = []
        self._seconds = 0.0
        self._room = TURN_COST
        """For values of this turn."""

    def refused(self, error: Refused) -> SchemaMismatch:
        return SchemaMismatch(str(error), code=error.code)

    def look(self, records: Sequence[DecodedRecord]) -> Steps[None]:
        started_s = self._validation.now_s()
        for record in records:
            value = record.value
            if value is None:  # a tombstone has no fields
                continue
            check = self._judge.check_of(value, record.headers)
            if check is UNREAD or self._room <= 0:
                self._seconds += self._validation.now_s() - started_s
                yield None
                if check is UNREAD:
                    self._judge.learn((yield self._judge.study))
                    check = self._judge.check_of(value, record.headers)
                self._room = TURN_COST
                started_s = self._validation.now_s()
            assert callable(check)
            why = (yield check) if len(value) > self._judge.turn_bytes_max else check()
            self._room -= VALUE_COST + len(value)
            if why is not None:
                self._faults.append(Fault(record, why[:FAULT_CHARS_MAX]))
        self._seconds += self._validation.now_s() - started_s

    def end(self, batch: Batch, records: list[DecodedRecord]) -> Steps[tuple[Batch, list[DecodedRecord], list[Fault]]]:
        """What may be appended, and what is wrong with the rest. SchemaMismatch: the topic wants all or nothing."""
        faults, are_refused = self._faults, self._options.schema_validation == REJECT
        passed = len(records) - len(faults)
        self._validation.checked(self._topic, passed, len(faults), self._seconds, are_refused=are_refused)
        if not faults:
            return batch, records, []
        if are_refused:
            raise _mismatch(faults, batch)
        left, good = yield from without(batch, records, {fault.record.offset for fault in faults})
        return left, good, faults

    def still_holds(self) -> bool:
        return self._judge.still_holds()


class _Judge:
    """Of the records of one batch: what was found out about a schema holds for all of them."""

    def __init__(self, schemas: Schemas, subjects: Sequence[str]) -> None:
        self._schemas = schemas
        self._subjects = subjects
        self._allowance = Allowance(STEPS_MAX)
        self._known: dict[int, Parsed | str] = {}
        """By id: what checks values, or why nothing can."""
        self._basis: dict[int, object] = {}
        """By id: what the registry said of it."""
        self._unread: Text | None = None
        self.turn_bytes_max = TURN_BYTES_MAX
        """What `check_of` gave last takes longer than a moment for a larger value, and belongs into another thread."""

    def check_of(self, value: bytes, headers: Sequence[Header]) -> "Check | Unread":
        """What says why a value does not fit; it touches nothing of the broker's. UNREAD: its schema has to be
        understood first, which takes long: `study` it, and `learn` what came of it."""
        try:
            schema_id, is_framed = named_schema(value, headers)
        except ValueError as error:
            return partial(str, str(error))
        known = self._known.get(schema_id)
        if known is None:
            found = self._find(schema_id)
            if isinstance(found, Unread):
                return found
            known = self._known[schema_id] = found
            self._basis[schema_id] = self._basis_of(schema_id)
        if isinstance(known, str):
            return partial(str, known)
        self.turn_bytes_max = known.turn_bytes_max
        self._allowance.left += STEPS_PER_BYTE * len(value)
        payload = value[PREFIX_BYTES:] if is_framed else value
        return partial(_fault, known, payload, is_framed, self._allowance, self._name(schema_id))

    def fault_at_once(self, value: bytes, headers: Sequence[Header]) -> str | None:
        while isinstance(check := self.check_of(value, headers), Unread):
            self.learn(self.study())
        return check()

    def study(self) -> Parsed | Failed:
        assert self._unread is not None
        return read_schema(self._unread)

    def learn(self, found: Parsed | Failed) -> None:
        assert self._unread is not None
        self._schemas.learn(self._unread, found)

    def still_holds(self) -> bool:
        """Whether the registry still says what it said."""
        return all(self._basis_of(schema_id) == said for schema_id, said in self._basis.items())

    def _basis_of(self, schema_id: int) -> object:
        return self._latest_id() if schema_id == LATEST else self._is_ours(schema_id)

    def _is_ours(self, schema_id: int) -> bool:
        return any(each.subject in self._subjects for each in self._schemas.peek().uses(schema_id))

    def _name(self, schema_id: int) -> str:
        latest = self._latest_id() if schema_id == LATEST else schema_id
        return f"schema {latest}"

    def _latest_id(self) -> int | None:
        found = (self._schemas.peek().latest(subject) for subject in self._subjects)
        return next((each.schema_id for each in found if each is not None), None)

    def _find(self, schema_id: int) -> Parsed | str | Unread:
        if schema_id != LATEST:
            if not self._is_ours(schema_id):
                return f"schema {schema_id} is none of subject {' or '.join(self._subjects)}"
            return self._parsed(schema_id)
        latest = self._latest_id()
        if latest is None:
            return f"names no schema, and subject {' or '.join(self._subjects)} has none"
        kind = self._schemas.schema(latest).kind
        if kind is not SchemaKind.JSON:
            return f"names no schema: {kind} values need the header {HEADER} or an id before the value"
        return self._parsed(latest)

    def _parsed(self, schema_id: int) -> Parsed | str | Unread:
        try:
            self._unread = self._schemas.unread(schema_id)
            if self._unread is not None:
                return UNREAD
            found = self._schemas.parsed(schema_id)
        except InvalidSchema as error:  # a library of ours has become stricter than the one that took it
            return f"schema {schema_id} cannot be used: {error}"
        return found or f"there is no schema {schema_id}"


def _fault(known: Parsed, payload: bytes, is_framed: bool, allowance: Allowance, name: str) -> str | None:
    why = known.fault(payload, is_framed, allowance)
    return None if why is None else f"does not fit {name}: {why}"


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
