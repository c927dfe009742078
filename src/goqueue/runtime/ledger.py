"""A ledger: the facts of one machine, in an internal partition. Written as keyed records, so that compaction keeps the
last word on each subject, and snapshotted, so that a restart is quick.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from operator import or_
from typing import TypeAlias

import msgspec

from goqueue.machines.machine import Fact, Machine, apply_at, frozen_facts
from goqueue.model.errors import BatchTooLarge, GoQueueError
from goqueue.records.batch import Batch, split
from goqueue.records.decode import DecodedRecord, decode
from goqueue.records.plain import NumberRecord, plain_batch
from goqueue.records.portions import portions
from goqueue.replica.replica import Replica
from goqueue.runtime.aside import Aside, at_once
from goqueue.runtime.unread import NO_OFFSET, Carried, Unread
from goqueue.telemetry.logs import get_logger

SNAPSHOT_EVERY_RECORDS = 10_000
SNAPSHOT_EVERY_MS = 5 * 60 * 1000
NEWS_SHARE = 100
"""A state of which less than one fact in so many is new can wait longer, being large and its replay short."""
SNAPSHOT_AT_LATEST_MS = 60 * 60 * 1000
"""Compaction drops tombstones after a day. A snapshot that is older would bring back what they removed."""
SLICE_WEIGHT = 2048
"""So much of a snapshot is made in one go: a millisecond or so."""
SLICE_COST = 256
"""Of a replay, in facts: so many are applied in one go, in a millisecond or so."""
WEIGHT_PER_COST = 8
"""A fact that packs so many costs as much as one more."""
BYTES_PER_COST = 8 * 1024
COST_OF_BATCH = 8
"""To open one, beside what is in it: most have a single fact."""
READ_BYTES = 64 * 1024
BATCH_FACTS = 1000

Entries: TypeAlias = tuple[int, list[tuple[bytes, bytes]]] | None
"""Of a snapshot: up to which offset it knows everything, and what."""
TO_THE_END = 1 << 62

events = get_logger("runtime")


class Reading:
    """How far a machine was told what is in its ledger."""

    __slots__ = ("position", "until")

    def __init__(self, until: int = TO_THE_END) -> None:
        self.position = 0
        """Behind the batch whose facts were applied last, or are being applied."""
        self.until = until
        """No batch that ends behind this is read."""


class Ledger:
    def __init__(self, replica: Replica, kind: str, stored_facts: Sequence[type[Fact]], aside: Aside = at_once) -> None:
        self.replica = replica
        self._snapshots = replica.snapshots(kind)
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(reduce(or_, stored_facts))
        self._aside = aside
        self._saving: Saving | None = None
        """The snapshot that is under way."""
        self._since_snapshot = 0
        self._snapshot_size = 0
        self._snapshot_ms = 0
        self.unread = Unread(replica.name)
        self._epoch = replica.leader_epoch
        """Under which the machine was loaded, and decides: what another leader wrote since, it does not know."""

    def replay(self, machine: Machine, now_ms: int) -> None:
        """Rebuild `machine`, which is empty, from the last snapshot and what came after it: here and now."""
        self._epoch = self.replica.leader_epoch
        for _ in self._replaying(machine, self._latest(self.replica.end_offset), now_ms, Reading()):
            pass

    def replay_in_slices(
        self,
        machine: Machine,
        now_ms: int,
        on_ready: Callable[[Iterator[None]], None],
        reading: Reading | None = None,
    ) -> None:
        """As `replay`; `on_ready` gets the work, which stops after every slice. The snapshot is read aside before: one
        of a large state takes a second. `reading`: how far, and where that is noted."""
        self._epoch = self.replica.leader_epoch
        wanted = reading or Reading()
        up_to, found = min(wanted.until, self.replica.end_offset), list[Entries]()

        def done(error: BaseException | None) -> None:
            if error is not None:  # costs only the shortcut: all is in the log
                events.error("snapshot not read", ledger=self.replica.name, reason=str(error))
            on_ready(self._replaying(machine, found[0] if found else None, now_ms, wanted))

        def read() -> None:
            found.append(self._latest(up_to))

        self._aside(read, done)

    def read_on(self, machine: Machine, reading: Reading) -> Iterator[None]:
        """Tell a machine what comes behind its position, in slices: a follower's, which becomes a leader's by this."""
        self._epoch = self.replica.leader_epoch
        return self._reading_on(machine, reading)

    def _latest(self, end_offset: int) -> Entries:
        snapshot = self._snapshots.latest(up_to=end_offset)
        return None if snapshot is None else (snapshot.offset, snapshot.entries)

    def _replaying(self, machine: Machine, entries: Entries, now_ms: int, reading: Reading) -> Iterator[None]:
        self._saving = None  # of a machine that is no more
        self._since_snapshot = self._snapshot_size = 0
        self._snapshot_ms = now_ms
        self.unread.begin()
        offset, cost = self.replica.start_offset, 0
        reading.position = offset
        if entries is not None and offset <= entries[0] <= reading.until:
            reading.position = offset = entries[0]
            left = entries[1]
            left.reverse()
            while left:  # each goes when it was read: all of them together would take long to free
                cost += self._replay_entry(machine, *left.pop(), offset)
                if cost >= SLICE_COST:
                    cost = 0
                    yield
        yield from self._reading_on(machine, reading)

    def _reading_on(self, machine: Machine, reading: Reading) -> Iterator[None]:
        cost = 0
        for batch in self.replica.batches_from(max(reading.position, self.replica.start_offset)):
            if batch.next_offset > reading.until:
                return
            reading.position = batch.next_offset
            cost += COST_OF_BATCH
            for records in self._opened(batch):
                for record in records:
                    self._since_snapshot += 1
                    cost += self._replay_record(machine, record.key or b"", record.value, record.offset)
                    if cost >= SLICE_COST:
                        cost = 0
                        yield

    def _replay_entry(self, machine: Machine, key: bytes, value: bytes, offset: int) -> int:
        """What it cost, as `SLICE_COST` counts."""
        carried = Carried.of_entry(key, value)
        if carried is not None:
            return self._replay_record(machine, carried.key, carried.value, carried.offset)
        weight = 1
        try:
            fact = self._decoder.decode(value)
            machine.apply(fact)
            weight = fact.weight()
            self._snapshot_size += weight
        except Exception as error:  # noqa: BLE001  whatever it is, it is told
            self.unread.skip(f"in the snapshot at {offset}", error, Carried(key, NO_OFFSET, value))
        return 1 + weight // WEIGHT_PER_COST + len(value) // BYTES_PER_COST

    def _replay_record(self, machine: Machine, key: bytes, value: bytes | None, offset: int) -> int:
        """As `_replay_entry`."""
        try:
            if value is None:
                machine.forget(key)
            elif offset == NO_OFFSET:
                machine.apply(self._decoder.decode(value))
            else:
                apply_at(machine, self._decoder.decode(value), offset)
            if self.unread:
                self.unread.replace(key)
        except Exception as error:  # noqa: BLE001  whatever it is, it is told
            self.unread.skip(f"at {offset}", error, Carried(key, offset, value))
        return 1 + len(value or b"") // BYTES_PER_COST

    def _opened(self, batch: Batch) -> Iterator[Sequence[DecodedRecord]]:
        left = batch.record_count
        try:
            for portion in portions(batch):
                left -= len(portion.records)
                yield portion.records
        except GoQueueError as error:
            name = f"batch at {batch.base_offset}"
            self.unread.skip(name, error, Carried(name.encode(), batch.base_offset, bytes(batch.data)), left)

    def append(self, facts: Iterable[Fact], now_ms: int) -> int:
        """Store the durable ones, in one batch. Returns where the first of them lies. LogPoisoned, DiskFull,
        BatchTooLarge or NotLeader: nothing was decided.
        """
        records: list[tuple[bytes, bytes | None]] = []
        for fact in facts:
            if fact.is_tombstone:
                records += [(key, None) for key in fact.stored_keys()]
            elif fact.durable:
                records.append((fact.key(), self._encoder.encode(fact)))
        if not records:
            return self.replica.end_offset
        appended = self.replica.append(plain_batch(records, now_ms), now_ms, self._epoch)
        self._since_snapshot += len(records)
        if self.unread:
            for key, _ in records:
                self.unread.replace(key)
        return appended.base_offset

    def append_number(self, record: NumberRecord, number: int, now_ms: int) -> None:
        """As `append` of one fact that is the same as the last one under its key but for a number."""
        self.replica.append(record.batch(number, now_ms), now_ms, self._epoch)
        self._since_snapshot += 1

    def append_in_batches(self, facts: Sequence[Fact], now_ms: int) -> None:
        """As many as it takes: for facts that need not be stored together."""
        for first in range(0, len(facts), BATCH_FACTS):
            some = facts[first : first + BATCH_FACTS]
            try:
                self.append(some, now_ms)
            except BatchTooLarge:
                if len(some) == 1:
                    raise
                half = len(some) // 2
                self.append_in_batches(some[:half], now_ms)
                self.append_in_batches(some[half:], now_ms)

    def read_fact(self, offset: int) -> Fact | None:
        """What lies at `offset`; None: nothing any more, or a tombstone."""
        return self.read_facts((offset,)).get(offset)

    def read_facts(self, offsets: Iterable[int]) -> dict[int, Fact]:
        """What lies at these offsets, where there is anything; every batch is opened once."""
        start_offset, end_offset = self.replica.start_offset, self.replica.end_offset
        wanted = sorted(offset for offset in set(offsets) if start_offset <= offset < end_offset)
        found: dict[int, Fact] = {}
        position = 0
        while position < len(wanted):
            piece = self.replica.read(wanted[position], READ_BYTES, end_offset)
            if piece is None:
                break
            for batch in split(piece.view()):
                until = bisect_left(wanted, batch.next_offset, position)
                if until > position:  # those below the batch itself are gone: compacted or damaged
                    self._decode_some(batch, set(wanted[position:until]), found)
                    position = until
                if position == len(wanted) or wanted[position] >= piece.next_offset:
                    break
            position = max(position, bisect_left(wanted, piece.next_offset, position))
        return found

    def _decode_some(self, batch: Batch, offsets: set[int], found: dict[int, Fact]) -> None:
        try:
            for record in decode(batch):
                if record.offset in offsets and record.value is not None:
                    found[record.offset] = self._decoder.decode(record.value)
        except (GoQueueError, msgspec.MsgspecError) as error:
            events.error("fact not read", ledger=self.replica.name, batch=batch.base_offset, reason=str(error))

    @property
    def newest_ms(self) -> int:
        """The latest time at which anything was written, by the clock of whoever wrote it."""
        return self.replica.newest_ms

    def make_durable(self) -> None:
        if self.replica.log.synced_offset < self.replica.end_offset:
            self.replica.sync()

    @property
    def is_durable(self) -> bool:
        """Whether all that was appended is."""
        return self.replica.high_watermark >= self.replica.log.end_offset

    def when_durable(self, call: Callable[[], None]) -> None:
        """Call when all that was appended so far is durable, at once if it is."""
        self.replica.when_reached(self.replica.log.end_offset, call)

    @property
    def failure(self) -> GoQueueError | None:
        return self.replica.failure

    @property
    def is_stale(self) -> bool:
        """Another node may have been elected: nothing is answered that no committed write stands for."""
        return not self.replica.is_fresh

    def abandon_snapshot(self) -> None:
        """The one that is under way is of a machine that is no more."""
        self._saving = None

    def maybe_snapshot(self, machine: Machine, now_ms: int, offset: int | None = None) -> None:
        """A snapshot costs as much as the state is large, so a large state is saved after as many new records.
        `offset`: what the machine of a follower knows, all of it committed."""
        if self._since_snapshot < SNAPSHOT_EVERY_RECORDS and now_ms - self._snapshot_ms < SNAPSHOT_EVERY_MS:
            return  # as after most appends
        if self._saving is not None or self.unread.is_too_much:
            return
        is_due = self._since_snapshot >= max(SNAPSHOT_EVERY_RECORDS, self._snapshot_size)
        is_news = self._since_snapshot > self._snapshot_size // NEWS_SHARE
        age_ms = now_ms - self._snapshot_ms if self._since_snapshot else 0
        if is_due or age_ms >= (SNAPSHOT_EVERY_MS if is_news else SNAPSHOT_AT_LATEST_MS):
            self._since_snapshot = 0
            self._snapshot_ms = now_ms
            at = self.replica.end_offset if offset is None else offset
            carried = self.unread.entries()
            self._saving = Saving(at, now_ms, frozen_facts(machine), carried, is_committed=offset is not None)
            self._go_on(self._saving)

    def _go_on(self, saving: "Saving") -> None:
        """A slice after the other, and others have their turn in between: who is due must not wait for a snapshot."""
        if saving is not self._saving:
            return  # overtaken by the one that is made at the end
        try:
            is_unfinished = saving.encode_some(self._encoder)
        except Exception as fault:  # noqa: BLE001  the ledger has it all; the next snapshot may do better
            self._saved(fault)
            return
        if is_unfinished:
            self.replica.defer(lambda: self._go_on(saving))
            return
        self._snapshot_size = saving.size
        # A snapshot must not know what the ledger could still lose.
        if saving.is_committed:
            self._save(saving)
        else:
            self.replica.when_reached(saving.offset, lambda: self._save(saving))

    def _save(self, saving: "Saving") -> None:
        if saving is not self._saving:
            return
        failure = self.replica.log.failure if saving.is_committed else self.failure
        if failure is not None:
            self._saved(failure)
            return
        assert saving.is_committed or self.replica.high_watermark >= saving.offset, self.replica.name
        save, entries = self._snapshots.save, saving.entries
        self._aside(lambda: save(saving.offset, saving.now_ms, entries), self._saved)

    def _saved(self, error: BaseException | None) -> None:
        self._saving = None
        if error is not None:
            events.error("snapshot not saved", ledger=self.replica.name, reason=str(error))

    def snapshot(self, machine: Machine, now_ms: int) -> None:
        """Here and now, as the last thing: nothing that was put aside is under way any more."""
        if self.unread.is_too_much:
            return
        saving = self._saving = Saving(self.replica.end_offset, now_ms, machine.facts(), self.unread.entries())
        while saving.encode_some(self._encoder):
            pass
        self._since_snapshot = 0
        self._snapshot_size = saving.size
        self._snapshot_ms = now_ms
        try:
            self.replica.sync()  # first: see above
            if self.replica.high_watermark >= saving.offset:  # else other copies could still lose it
                self._snapshots.save(saving.offset, now_ms, saving.entries)
        except (OSError, GoQueueError) as error:
            self._saved(error)
        else:
            self._saved(None)


class Saving:
    """A snapshot on its way."""

    def __init__(
        self,
        offset: int,
        now_ms: int,
        facts: Iterator[Fact],
        carried: list[tuple[bytes, bytes]],
        *,
        is_committed: bool = False,
    ) -> None:
        """`carried`: entries that nobody can read; they come last, as what they say comes after what was read."""
        self.offset = offset
        self.is_committed = is_committed
        """Nothing that it knows can be lost: nobody need wait for the high watermark."""
        self.now_ms = now_ms
        self._facts = facts
        self._carried = carried
        self.entries: list[tuple[bytes, bytes]] = []
        self.size = 0

    def encode_some(self, encoder: msgspec.msgpack.Encoder) -> bool:
        """Whether there may be more."""
        until = self.size + SLICE_WEIGHT
        for fact in self._facts:
            self.entries.append((fact.key(), encoder.encode(fact)))
            self.size += fact.weight()
            if self.size >= until:
                return True
        self.entries += self._carried
        self._carried = []
        return False
