"""A ledger: the facts of one machine, in an internal partition. Written as keyed records, so that compaction keeps the
last word on each subject, and snapshotted, so that a restart is quick.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import or_

import msgspec

from goqueue.machines.machine import Fact, Machine
from goqueue.model.errors import GoQueueError
from goqueue.records.batch import check_batch
from goqueue.records.build import NewRecord, build_batch
from goqueue.records.decode import decode
from goqueue.replica.replica import Replica
from goqueue.telemetry.logs import get_logger

__all__ = ["Fact", "Ledger", "Machine"]

SNAPSHOT_EVERY_RECORDS = 10_000
SNAPSHOT_EVERY_MS = 5 * 60 * 1000

events = get_logger("runtime")


class Ledger:
    def __init__(self, replica: Replica, kind: str, stored_facts: Sequence[type[Fact]]) -> None:
        self._replica = replica
        self._snapshots = replica.snapshots(kind)
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(reduce(or_, stored_facts))
        self._since_snapshot = 0
        self._snapshot_size = 0
        self._snapshot_ms = 0

    def replay(self, machine: Machine, now_ms: int) -> None:
        """Rebuild `machine`, which is empty, from the last snapshot and what came after it."""
        offset = self._replica.start_offset
        snapshot = self._snapshots.latest(up_to=self._replica.end_offset)
        if snapshot is not None and snapshot.offset >= offset:
            for _, value in snapshot.entries:
                machine.apply(self._decoder.decode(value))
            offset = snapshot.offset
            self._snapshot_size = len(snapshot.entries)
        self._snapshot_ms = now_ms
        for batch in self._replica.batches_from(offset):
            for record in decode(batch):
                if record.value is None:
                    machine.forget(record.key or b"")
                else:
                    machine.apply(self._decoder.decode(record.value))
                self._since_snapshot += 1

    def append(self, facts: Iterable[Fact], now_ms: int) -> None:
        """Store the durable ones, in one batch. LogPoisoned or DiskFull: nothing was decided."""
        records: list[NewRecord] = [
            (now_ms, fact.key(), None if fact.is_tombstone else self._encoder.encode(fact), [])
            for fact in facts
            if fact.durable
        ]
        if records:
            self._replica.append(check_batch(memoryview(build_batch(records))), now_ms)
            self._since_snapshot += len(records)

    def when_durable(self, call: Callable[[], None]) -> None:
        """Call when all that was appended so far is durable, at once if it is."""
        self._replica.when_reached(self._replica.end_offset, call)

    @property
    def failure(self) -> GoQueueError | None:
        return self._replica.failure

    def maybe_snapshot(self, machine: Machine, now_ms: int) -> None:
        """A snapshot costs as much as the state is large, so a large state is saved after as many new records."""
        is_due = self._since_snapshot >= max(SNAPSHOT_EVERY_RECORDS, self._snapshot_size)
        is_old = self._since_snapshot > 0 and now_ms - self._snapshot_ms >= SNAPSHOT_EVERY_MS
        if is_due or is_old:
            self.snapshot(machine, now_ms)

    def snapshot(self, machine: Machine, now_ms: int) -> None:
        """Synced first: a snapshot must not know what the ledger could still lose."""
        entries = [(fact.key(), self._encoder.encode(fact)) for fact in machine.facts()]
        try:
            self._replica.sync()
            self._snapshots.save(self._replica.end_offset, now_ms, entries)
        except (OSError, GoQueueError) as error:
            events.error("snapshot not saved", ledger=self._replica.name, reason=str(error))
        self._since_snapshot = 0
        self._snapshot_size = len(entries)
        self._snapshot_ms = now_ms
