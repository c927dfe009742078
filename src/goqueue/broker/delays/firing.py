"""A delayed record on its way back: what the ledger keeps of it, and the batches in which it is published when due."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from goqueue.machines.delays.commands import RECURRING
from goqueue.machines.delays.jobs import FiringJob
from goqueue.machines.delays.machine import Delays
from goqueue.model.codes import Code
from goqueue.model.errors import BatchTooLarge
from goqueue.model.moments import MOMENT_MS_MAX
from goqueue.model.refusal import Refused
from goqueue.model.topics import UNLIMITED
from goqueue.records.batch import HEADER_BYTES, check_batch
from goqueue.records.build import NewRecord, build_batch
from goqueue.records.decode import DecodedRecord
from goqueue.records.delayed import LOST, PUBLISHED_AT, SCHEDULED_AS
from goqueue.records.native import Headers
from goqueue.records.wishes import EXPIRES_AT, without_delay
from goqueue.replica.replica import Replica
from goqueue.runtime.coordinator import Coordinator
from goqueue.telemetry.logs import get_logger

events = get_logger("broker")

SEQUENCE_MASK = 0x7FFF_FFFF
SIZE_UNKNOWN = 1 << 62
FRAME_BYTES = 32
"""More than a record takes beside its key, value and headers."""
HEADER_FRAME_BYTES = 10
ADDED_BYTES = 144
"""More than the headers that we add."""
EXPIRY_BYTES = 64
"""More than one that says when it expires."""


class Body(msgspec.Struct, array_like=True, frozen=True):
    """A record as it lies in the ledger."""

    published_ms: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]

    def encode(self) -> bytes:
        return _encode(self)


_encode = msgspec.msgpack.Encoder().encode
decode_body = msgspec.msgpack.Decoder(Body).decode


class Bodies(NamedTuple):
    """Of one job, as they were read back."""

    bodies: list[Body]
    stored_bytes: int
    """What they took in the ledger."""

    def fit(self, bytes_max: int) -> bool:
        """Whether one batch takes them all for sure; found without a look at any. There a header has three bytes
        beside its text at least, and in a batch it has HEADER_FRAME_BYTES at most.
        """
        return HEADER_BYTES + len(self.bodies) * (FRAME_BYTES + ADDED_BYTES) + 4 * self.stored_bytes <= bytes_max


def body_of(record: DecodedRecord, ttl_ms: int, now_ms: int) -> Body:
    """Its time to live runs from now: the delay is part of it."""
    headers: Headers = without_delay(record.headers)
    if ttl_ms != UNLIMITED and all(name != EXPIRES_AT for name, _ in headers):
        headers = [*headers, (EXPIRES_AT, b"%d" % min(now_ms + ttl_ms, MOMENT_MS_MAX))]
    return Body(now_ms, record.key, record.value, headers)


def check_fits(body: Body, batch_bytes_max: int) -> None:
    """BatchTooLarge: it could not be published when its time comes."""
    size = HEADER_BYTES + ADDED_BYTES + record_bytes((0, body.key, body.value, body.headers))
    if size > batch_bytes_max:
        raise BatchTooLarge(f"a delayed record takes up to {size} bytes, at most {batch_bytes_max} are taken")


def do_all_fit(records_bytes: int, batch_bytes_max: int) -> bool:
    """Whether that is so of each record of a batch that takes so many bytes, for sure and found without a look at any:
    what a header takes there beside its text is a fifth of HEADER_FRAME_BYTES at least."""
    return HEADER_BYTES + ADDED_BYTES + EXPIRY_BYTES + FRAME_BYTES + 5 * records_bytes <= batch_bytes_max


def read_bodies(coordinator: Coordinator[Delays], job: FiringJob) -> Bodies:
    places = job.records.ledger_offsets
    facts: dict[int, Any] = coordinator.read_facts(places)
    try:
        stored = [facts[place].body for place in places]
    except KeyError:
        return Bodies([_body(job, number, facts) for number in range(len(places))], SIZE_UNKNOWN)
    return Bodies(list(map(decode_body, stored)), sum(map(len, stored)))


def _body(job: FiringJob, number: int, facts: dict[int, Any]) -> Body:
    """A record that the disk has lost is told of where it would have been: the others of its batch go on."""
    due = job.records[number]
    if due.ledger_offset in facts:
        return decode_body(facts[due.ledger_offset].body)
    name = f"{due.key.topic}/{due.key.partition}/{due.key.offset}"
    return lost_body(name, due.due_ms)


def lost_body(name: str, due_ms: int) -> Body:
    """Of a record that the disk cannot give back."""
    events.error("delayed record unreadable", name=name)
    return Body(due_ms, None, None, [(LOST, name.encode())])


def publish_job(replica: Replica, job: FiringJob, bodies: Bodies, producer: tuple[int, int], now_ms: int) -> int:
    """Append the records of a job, in as many batches as the topic's limit asks for; nothing that is in the log by
    now. All of it is durable when the high watermark has reached what is returned.
    """
    records = _records(job, bodies.bodies, now_ms)
    bytes_max = replica.log.options.batch_bytes_max
    cuts: Iterable[tuple[int, int]] = ((0, len(records)),)
    if not bodies.fit(bytes_max) and sum(map(record_bytes, records)) + HEADER_BYTES > bytes_max:
        cuts = _cut(records, _published(replica, job, producer), bytes_max)
    try:
        _append(replica, job, records, cuts, producer, now_ms)
    except Refused as refusal:
        if refusal.code is not Code.OUT_OF_ORDER_SEQUENCE_NUMBER:
            raise
        # Before a crash it was published in other batches, under another limit.
        first = _published(replica, job, producer)
        if not first:
            raise
        _append(replica, job, records, _cut(records, first, bytes_max), producer, now_ms)
    return replica.end_offset


def _records(job: FiringJob, bodies: Sequence[Body], now_ms: int) -> list[NewRecord]:
    dues, partition = job.records, job.partition
    times: Sequence[int] = dues.due_ms
    if max(times) > now_ms:  # the clock was set back
        times = [min(due_ms, now_ms) for due_ms in times]
    return [
        (
            time_ms,
            body.key,
            body.value,
            body.headers if offset == RECURRING else [*body.headers, *_about(partition, offset, body)],
        )
        for offset, time_ms, body in zip(dues.offsets, times, bodies, strict=True)
    ]


def _about(partition: int, offset: int, body: Body) -> Headers:
    return [(PUBLISHED_AT, b"%d" % body.published_ms), (SCHEDULED_AS, b"%d/%d" % (partition, offset))]


def _append(
    replica: Replica,
    job: FiringJob,
    records: list[NewRecord],
    cuts: Iterable[tuple[int, int]],
    producer: tuple[int, int],
    now_ms: int,
) -> None:
    for begin, end in cuts:
        batch = build_batch(
            records[begin:end],
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=(job.sequence + begin) & SEQUENCE_MASK,
        )
        replica.append(check_batch(memoryview(batch)), now_ms)


def _cut(records: Sequence[NewRecord], first: int, bytes_max: int) -> Iterator[tuple[int, int]]:
    """One that is too large for any batch goes alone."""
    begin, size = first, HEADER_BYTES
    for number in range(first, len(records)):
        more = record_bytes(records[number])
        if number > begin and size + more > bytes_max:
            yield begin, number
            begin, size = number, HEADER_BYTES
        size += more
    if begin < len(records):
        yield begin, len(records)


def _published(replica: Replica, job: FiringJob, producer: tuple[int, int]) -> int:
    """How many records of a job are in the log: its partition knows the last sequence of every producer."""
    for view in replica.producers.describe():
        if (view.producer_id, view.epoch) == producer and view.last_sequence >= 0:
            count = (view.last_sequence + 1 - job.sequence) & SEQUENCE_MASK
            return min(count, len(job.records)) if count <= SEQUENCE_MASK // 2 else 0
    return 0


def record_bytes(record: NewRecord) -> int:
    """At most."""
    _, key, value, headers = record
    size = FRAME_BYTES + len(key or b"") + len(value or b"")
    return size + sum(len(name.encode()) + len(text or b"") + HEADER_FRAME_BYTES for name, text in headers)
