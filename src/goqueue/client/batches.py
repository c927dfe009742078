"""Messages on their way to one partition: batches that fill, wait, are under way, and what becomes of them.

A batch gets its sequence when it is first sent and keeps it as long as it may have been stored: sent again it is then
known to the broker, so it is stored once. Only what was certainly not stored is numbered anew.
"""

import asyncio
from collections import deque
from struct import Struct

from goqueue.client.message import MIXED, Receipt
from goqueue.model.errors import GoQueueError
from goqueue.records.batch import Codec
from goqueue.records.build import NewRecord, build_batch
from goqueue.records.encode import sign

IN_FLIGHT_MAX = 5
"""Batches of one partition: as many as a broker remembers of a producer."""
SEQUENCE_MASK = 0x7FFFFFFF
EPOCH_MAX = 32766
SEQUENCE_HALF = 1 << 30
UNSENT = -1
NO_GAP = -1

_PRODUCER_AT = 43
_PRODUCER = Struct(">qhi")


class Batch:
    __slots__ = (
        "bytes",
        "data",
        "deadline_s",
        "futures",
        "has_doubt",
        "lane",
        "place",
        "records",
        "sequence",
        "signed_for",
    )

    def __init__(self, place: tuple[str, int], deadline_s: float, lane: int) -> None:
        self.place = place
        self.records: list[NewRecord] = []
        self.futures: list[asyncio.Future[Receipt]] = []
        """One per record; one that was cancelled changes nothing."""
        self.bytes = 0
        self.deadline_s = deadline_s
        self.lane = lane
        self.data: bytearray | None = None
        self.sequence = UNSENT
        self.signed_for: tuple[int, int, int] | None = None
        """Producer id, epoch and sequence that stand in `data`."""
        self.has_doubt = False
        """True: it was sent, and no answer said whether it was stored."""

    @property
    def count(self) -> int:
        """How many messages."""
        return len(self.records)

    def add(self, record: NewRecord, size: int, lane: int, future: "asyncio.Future[Receipt]") -> None:
        self.records.append(record)
        self.futures.append(future)
        self.bytes += size
        if lane != self.lane:
            self.lane = MIXED

    def encode(self, codec: Codec, producer_id: int, epoch: int, transactional: bool) -> bytearray:
        """The bytes to send. They are made once; another sequence is written into them."""
        signer = (producer_id, epoch, self.sequence)
        if self.data is None:
            self.data = build_batch(
                self.records,
                codec=codec,
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=self.sequence,
                transactional=transactional,
                lane=None if self.lane == MIXED else self.lane,
            )
        elif signer != self.signed_for:
            _PRODUCER.pack_into(self.data, _PRODUCER_AT, *signer)
            sign(memoryview(self.data))
        self.signed_for = signer
        return self.data

    def succeed(self, base_offset: int, append_time_ms: int, durability: str | None = None) -> None:
        """`base_offset` -1: it is stored, but nobody knows where any more."""
        topic, partition = self.place
        step = 0 if base_offset < 0 else 1
        offset = base_offset
        for record, future in zip(self.records, self.futures):
            if not future.done():
                timestamp = record[0] if append_time_ms < 0 else append_time_ms
                future.set_result(Receipt(topic, partition, offset, timestamp, durability))
            offset += step

    def fail(self, error: GoQueueError) -> None:
        for future in self.futures:
            if not future.done():
                future.set_exception(error)

    def split(self) -> "tuple[Batch, Batch]":
        """Two halves, as if they had been so from the start."""
        half = len(self.records) // 2
        first, second = Batch(self.place, self.deadline_s, self.lane), Batch(self.place, self.deadline_s, self.lane)
        first.records, second.records = self.records[:half], self.records[half:]
        first.futures, second.futures = self.futures[:half], self.futures[half:]
        first.bytes = self.bytes * half // len(self.records)
        second.bytes = self.bytes - first.bytes
        return first, second


class PartitionQueue:
    """What one partition has to get, in order."""

    __slots__ = (
        "epoch",
        "failures",
        "gap",
        "has_failed",
        "in_flight",
        "is_known",
        "needs_epoch",
        "next_sequence",
        "open",
        "partition",
        "place",
        "producer_id",
        "retry_at_s",
        "topic",
        "unanswered",
        "unknown_since_s",
        "waiting",
    )

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.place = (topic, partition)
        self.open: Batch | None = None
        """Still filling."""
        self.waiting: deque[Batch] = deque()
        self.in_flight: list[Batch] = []
        """In the order of their sequences. One that failed stays until all others are answered too."""
        self.unanswered = 0
        """How many of them the broker has still to answer."""
        self.producer_id = -1
        self.epoch = 0
        self.next_sequence = 0
        self.is_known = False
        """Whether the broker has stored a batch of this producer and epoch here. Until then it would take any sequence,
        and one behind a batch that it turns away: so the first one goes alone.
        """
        self.gap = NO_GAP
        """The sequence of a batch that was turned away for good: the broker goes on waiting for it."""
        self.needs_epoch = False
        """What was sent so far no longer counts: count anew, in a new epoch."""
        self.failures = 0
        """How often in a row what was under way has failed."""
        self.has_failed = False
        """Something of what is under way has."""
        self.retry_at_s = 0.0
        self.unknown_since_s: float | None = None
        """Since when the broker says that there is no such topic."""

    @property
    def is_idle(self) -> bool:
        return self.open is None and not self.waiting and not self.in_flight

    def may_send(self, now_s: float) -> bool:
        """After a failure nothing is sent until it is clear what became of all that is under way."""
        if not self.waiting or self.unanswered >= (IN_FLIGHT_MAX if self.is_known else 1) or now_s < self.retry_at_s:
            return False
        return len(self.in_flight) == self.unanswered and not (self.unanswered and (self.gap >= 0 or self.needs_epoch))

    def seal(self) -> bool:
        """The open batch is full, old enough or wanted now."""
        if self.open is None:
            return False
        self.waiting.append(self.open)
        self.open = None
        return True

    def adopt(self, producer_id: int, epoch: int) -> None:
        """Count anew, as a producer that this partition has not met."""
        assert not self.in_flight
        self.producer_id, self.epoch, self.next_sequence = producer_id, epoch, 0
        self.gap, self.needs_epoch, self.is_known = NO_GAP, False, False
        for batch in self.waiting:
            batch.sequence = UNSENT

    def take(self) -> Batch:
        """The next one to send."""
        batch = self.waiting.popleft()
        if batch.sequence == UNSENT:
            batch.sequence = self.next_sequence
            self.next_sequence = (self.next_sequence + batch.count) & SEQUENCE_MASK
        self.in_flight.append(batch)
        self.unanswered += 1
        return batch

    def finish(self, batch: Batch) -> None:
        """It is stored."""
        self.in_flight.remove(batch)
        self.is_known = True

    def turn_away(self, batch: Batch, *halves: Batch) -> None:
        """It will never be stored as it is; `halves` try again in its place. What was sent behind it leaves a gap."""
        at = self.in_flight.index(batch)
        self.in_flight[at : at + 1] = halves
        if batch.has_doubt:
            self.needs_epoch = True
        elif self.gap == NO_GAP:
            self.gap = batch.sequence

    def count_anew(self) -> None:
        """The broker lacks what came before: nothing that waits for an answer can be stored."""
        self.needs_epoch = True
        for batch in self.in_flight:
            batch.has_doubt = False

    def settle(self) -> None:
        """All are answered: what failed waits again, in front of all others."""
        assert not self.unanswered
        self.waiting.extendleft(reversed(self.in_flight))
        self.in_flight.clear()
        if self.gap != NO_GAP and not self.needs_epoch:
            # Nothing behind a gap can have been stored, so it is all numbered anew from there.
            self.next_sequence = self.gap
            for batch in self.waiting:
                if batch.sequence != UNSENT and (batch.sequence - self.gap) & SEQUENCE_MASK < SEQUENCE_HALF:
                    batch.sequence, batch.has_doubt = UNSENT, False
        self.gap = NO_GAP
