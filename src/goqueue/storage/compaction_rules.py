"""Which records survive a compaction: Kafka's rules, so that its clients see what they expect.

- A record goes when a later one has its key. Records without a key stay.
- A tombstone (no value) stays readable for a day after its first compaction, so that slow readers learn of the
  deletion.
- Records of aborted transactions go. A transaction's marker stays as long as any of its records, then for a day.
- A producer's last batch leaves at least its header for a day, because its sequence numbers are judged by it; the
  marker that ends it stays as long.
- Tombstones and markers stay longer if a snapshot beside the log does not know of them.
"""

from collections.abc import Iterable
from contextlib import suppress

from goqueue.model.errors import CorruptBatch
from goqueue.records.batch import NO_PRODUCER, Batch, check_batch
from goqueue.records.decode import DecodedRecord, decode
from goqueue.records.rewrite import delete_horizon_ms, rebuild_batch
from goqueue.records.transactions import FOR_EVER, Transactions


class Survey:
    """How the transactions of a log ended, and which batch of each producer is the last; from the headers alone."""

    def __init__(self) -> None:
        self._transactions = Transactions()
        self._last_batch: dict[int, int] = {}

    def add(self, batch: Batch) -> None:
        producer = batch.producer_id
        if producer == NO_PRODUCER:
            return
        if not batch.is_marker:
            self._last_batch[producer] = batch.base_offset
            if batch.is_transactional:
                self._transactions.wrote(producer, batch.base_offset)
            return
        with suppress(CorruptBatch):  # else the transaction counts as open: nothing of it is touched
            self._transactions.ended(batch)

    def end_of_decided(self) -> int:
        """Every transactional record below it belongs to a transaction whose end is known."""
        return self._transactions.end_of_decided()

    def is_aborted(self, batch: Batch) -> bool:
        if not batch.is_transactional or batch.is_control:
            return False
        return self._transactions.is_aborted(batch.producer_id, batch.base_offset)

    def is_last_of_producer(self, batch: Batch) -> bool:
        return self._last_batch.get(batch.producer_id) == batch.base_offset


class Keep:
    """Decides batch by batch, in log order."""

    def __init__(
        self, survey: Survey, latest: dict[bytes, int], now_ms: int, tombstone_ms: int, remembered_from: int | None
    ) -> None:
        self._survey = survey
        self._latest = latest
        self._now_ms = now_ms
        self._tombstone_ms = tombstone_ms
        self._remembered_from = FOR_EVER if remembered_from is None else remembered_from
        self.tombstones_to = 0
        """Behind the last tombstone that went."""
        self._has_records: set[int] = set()
        """Producers whose transaction at this point of the log still has records."""
        self._has_header: set[int] = set()
        """Those of which it has a batch without records: whoever reads that takes the transaction for open until the
        marker comes."""

    def rebuild(self, batch: Batch, records: list[DecodedRecord] | None) -> Batch | None:
        """What is left of a batch: itself, a smaller one, or None."""
        if batch.is_marker:
            return self._rebuild_marker(batch)
        if batch.is_control:
            return batch if self._is_needed(batch) else None
        if self._survey.is_aborted(batch):
            kept: list[DecodedRecord] = []
        elif records is None:
            return self._note(batch)
        else:
            kept = [record for record in records if self._is_kept(batch, record)]
        if not kept:
            return self._header(batch) if self._is_needed(batch) else None
        wants_horizon = delete_horizon_ms(batch) is None and any(record.value is None for record in kept)
        if records is not None and len(kept) == len(records) and not wants_horizon:
            return self._note(batch)
        horizon = self._now_ms + self._tombstone_ms if wants_horizon else None
        return self._note(_checked(rebuild_batch(batch, kept, delete_horizon_ms=horizon)))

    def pass_over(self, batches: Iterable[Batch]) -> None:
        """These stay as they are, and so must their markers."""
        for batch in batches:
            if batch.is_marker:
                self._has_records.discard(batch.producer_id)
                self._has_header.discard(batch.producer_id)
            else:
                self._note(batch)

    def _is_needed(self, batch: Batch) -> bool:
        """Though it has no records: its producer may go on behind it."""
        return self._survey.is_last_of_producer(batch) and batch.max_timestamp > self._now_ms - self._tombstone_ms

    def _header(self, batch: Batch) -> Batch:
        if batch.is_transactional:
            self._has_header.add(batch.producer_id)
        return _checked(rebuild_batch(batch, []))

    def _note(self, batch: Batch) -> Batch:
        if batch.is_transactional:
            self._has_records.add(batch.producer_id)
        return batch

    def _is_kept(self, batch: Batch, record: DecodedRecord) -> bool:
        if record.key is None:
            return True
        if self._latest.get(record.key, -1) > record.offset:
            return False
        if record.value is not None or not self._may_go(batch, record.offset):
            return True
        self.tombstones_to = max(self.tombstones_to, record.offset + 1)
        return False

    def _may_go(self, batch: Batch, offset: int) -> bool:
        """A tombstone or a marker that has been compacted before."""
        horizon = delete_horizon_ms(batch)
        return horizon is not None and horizon <= self._now_ms and offset < self._remembered_from

    def _rebuild_marker(self, batch: Batch) -> Batch | None:
        has_header = batch.producer_id in self._has_header
        self._has_header.discard(batch.producer_id)
        if batch.producer_id in self._has_records:
            self._has_records.discard(batch.producer_id)
            return batch
        if delete_horizon_ms(batch) is not None:
            return None if self._may_go(batch, batch.base_offset) and not has_header else batch
        try:
            marker = decode(batch)
        except CorruptBatch:
            return batch
        return _checked(rebuild_batch(batch, marker, delete_horizon_ms=self._now_ms + self._tombstone_ms))


def _checked(data: bytearray) -> Batch:
    return check_batch(memoryview(data))
