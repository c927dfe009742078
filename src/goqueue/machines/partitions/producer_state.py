"""What one partition remembers of its producers, so that a batch sent twice is stored once and none is skipped.

It is rebuilt from the partition's own batches and needs no ledger: `record` is told of every batch, now or at recovery.
A log that is truncated gets a new one: from the last snapshot before the cut, and the batches between the two.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from goqueue.machines.partitions.open_transactions import OpenTransactions
from goqueue.model.codes import Code
from goqueue.model.errors import DamagedFile
from goqueue.records.batch import CONTROL_BIT, NO_EPOCH, TRANSACTIONAL_BIT, Batch
from goqueue.records.control import ControlKind, decode_control
from goqueue.records.encode import NO_SEQUENCE

ACCEPT: Final = Code.NONE
"""The answer to a batch that may be appended. A name of its own, because looking up enum members costs."""

BATCHES_KEPT = 5
"""As many as a client may have under way: it never asks for one that is older."""
EXPIRY_MS = 24 * 60 * 60 * 1000
_HEARD = -1
"""Instead of how long it was silent: a batch came since anybody looked."""

NO_TIMESTAMP = -1
_SEQUENCE_MASK = 0x7FFF_FFFF  # sequences wrap from 2^31 - 1 to 0
_SPECIAL = TRANSACTIONAL_BIT | CONTROL_BIT
"""Both: a marker. The control bit alone: a batch whose records are not there yet, but whose sequences count."""
_VERSION = 2
_WITH_TIMES = 1
"""The version of snapshots that say when a producer was last heard, by the wall clock: these count as heard now."""

_INVALID_RECORD: Final = Code.INVALID_RECORD
_INVALID_EPOCH: Final = Code.INVALID_PRODUCER_EPOCH
_INVALID_STATE: Final = Code.INVALID_TXN_STATE
_OUT_OF_ORDER: Final = Code.OUT_OF_ORDER_SEQUENCE_NUMBER

_Kept = tuple[int, int, int, int, int]
"""base sequence, last sequence, base offset, last offset, timestamp"""


class Duplicate(NamedTuple):
    """Where the batch already is. Its sender may be told as soon as `last_offset` is as durable as it asks for."""

    base_offset: int
    last_offset: int
    timestamp: int


class Before(NamedTuple):
    """What was known of one producer before a write that may fail."""

    state: tuple[int, list[_Kept], bool, int] | None
    is_in_transaction: bool


class ProducerView(NamedTuple):
    """One producer as DescribeProducers shows it; -1: there is none."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_start: int


class _Producer:
    __slots__ = ("batches", "coordinator_epoch", "epoch", "is_epoch_new", "silent_ms")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        """Invariant: it never falls."""
        self.batches: list[_Kept] = []
        """The last ones. Invariant: all are of `epoch`: a new epoch counts its sequences from 0 again."""
        self.is_epoch_new = False
        """True: a marker raised the epoch, so no batch of it can have come before."""
        self.coordinator_epoch = NO_EPOCH
        self.silent_ms = _HEARD
        """A duration, and no time of the wall clock: that may be set. The time while a node is down does not count."""


class _SavedProducer(msgspec.Struct, array_like=True, frozen=True):
    producer_id: int
    epoch: int
    is_epoch_new: bool
    coordinator_epoch: int
    silent_ms: int
    batches: list[_Kept]


class _Saved(msgspec.Struct, array_like=True, frozen=True):
    version: int
    producers: list[_SavedProducer]
    open_transactions: bytes


_decode_saved = msgspec.msgpack.Decoder(_Saved).decode


class ProducerStates:
    """One per partition. Call `check`, append, call `record`: with no other batch of the partition in between."""

    __slots__ = ("_producers", "open_transactions")

    def __init__(self) -> None:
        self._producers: dict[int, _Producer] = {}
        self.open_transactions = OpenTransactions()

    def check(  # noqa: PLR0911  an answer per reason, on the hot path
        self, batch: Batch, *, from_zero: bool = False
    ) -> Code | Duplicate:
        """May a client's batch be appended? ACCEPT, where it already is, or why not.

        A producer that nothing is known of may begin with any sequence: its state may have expired, or its batches
        were deleted by age, and refusing would stop it for good. `from_zero`: it is a producer of transactions
        version 2, where every transaction is a new epoch that begins at 0 and cannot expire; so a later sequence
        means that the batch before it was turned away.
        """
        producer_id, epoch, base = batch.producer_id, batch.producer_epoch, batch.base_sequence
        attributes = batch.attributes
        if producer_id < 0:
            return _INVALID_RECORD if attributes & _SPECIAL else ACCEPT
        if attributes & _SPECIAL == _SPECIAL or epoch < 0 or base < 0:
            return _INVALID_RECORD
        producer = self._producers.get(producer_id)
        if producer is None:
            return _OUT_OF_ORDER if from_zero and base else ACCEPT
        if epoch != producer.epoch:
            if epoch < producer.epoch:
                return _INVALID_EPOCH
            expected = 0
        elif producer.batches:
            expected = (producer.batches[-1][1] + 1) & _SEQUENCE_MASK
        else:
            expected = 0 if producer.is_epoch_new or from_zero else base
        if base != expected:
            return _find_duplicate(producer, batch) or _OUT_OF_ORDER
        if not attributes & _SPECIAL and producer_id in self.open_transactions:
            return _INVALID_STATE
        return ACCEPT

    def next_sequence(self, producer_id: int, epoch: int) -> int:
        """The one that a batch of this producer must have here; 0 if nothing is known of it."""
        producer = self._producers.get(producer_id)
        if producer is None or producer.epoch != epoch or not producer.batches:
            return 0
        return (producer.batches[-1][1] + 1) & _SEQUENCE_MASK

    def knows(self, producer_id: int, epoch: int) -> bool:
        """Whether a batch of this producer must have a certain sequence here."""
        producer = self._producers.get(producer_id)
        return producer is not None and producer.epoch == epoch and bool(producer.batches)

    @property
    def highest_id(self) -> int:
        """Of all producers that are remembered; -1: there are none."""
        return max(self._producers, default=-1)

    def last_batches(self) -> list[tuple[int, int]]:
        """First and last offset of every batch that its producer may send again."""
        return [(kept[2], kept[3]) for producer in self._producers.values() for kept in producer.batches]

    def check_marker(self, producer_id: int, epoch: int, coordinator_epoch: int) -> Code:
        """May the coordinator end the transaction of a producer here?

        INVALID_TXN_STATE: it is over already, and the marker would fence nobody. After a lost answer a coordinator asks
        again for markers that were written, and counts this as written. A new coordinator's marker is always
        accepted, even where there is nothing to end: it says in the log, and so to every later leader, that markers
        of the old coordinator are refused from here on.
        """
        producer = self._producers.get(producer_id)
        if producer is None:
            return ACCEPT
        if coordinator_epoch < producer.coordinator_epoch:
            return Code.TRANSACTION_COORDINATOR_FENCED
        if epoch < producer.epoch:
            return _INVALID_EPOCH
        is_known = epoch == producer.epoch and coordinator_epoch == producer.coordinator_epoch
        if is_known and producer_id not in self.open_transactions:
            return _INVALID_STATE
        return ACCEPT

    def record(self, batch: Batch, base_offset: int) -> None:
        """`batch` stands in the log at `base_offset`. One found at recovery counts as new: when it was appended is not
        known, and a state that is kept too long does no harm.
        """
        producer_id = batch.producer_id
        if producer_id < 0:
            return
        attributes = batch.attributes
        if attributes & _SPECIAL == _SPECIAL:
            self._record_marker(batch, base_offset)
            return
        epoch = batch.producer_epoch
        producer = self._producers.get(producer_id)
        if producer is None:
            producer = self._producers[producer_id] = _Producer(epoch)
        elif epoch > producer.epoch:
            producer.epoch = epoch
            producer.batches = []
        if epoch == producer.epoch:
            # The span of offsets, not the number of records: compaction may have taken some.
            base, delta = batch.base_sequence, batch.last_offset_delta
            last = (base + delta) & _SEQUENCE_MASK
            kept = producer.batches
            kept.append((base, last, base_offset, base_offset + delta, batch.max_timestamp))
            if len(kept) > BATCHES_KEPT:
                del kept[0]
        producer.silent_ms = _HEARD
        if attributes & TRANSACTIONAL_BIT:
            self.open_transactions.begin(producer_id, base_offset)

    def before(self, producer_id: int) -> Before:
        """For `restore`, should the batches that are recorded from here on not be written after all."""
        known = self._producers.get(producer_id)
        state = None if known is None else (known.epoch, known.batches[:], known.is_epoch_new, known.silent_ms)
        return Before(state, producer_id in self.open_transactions)

    def restore(self, producer_id: int, before: Before) -> None:
        """Forget what was recorded since: a batch that is not in the log must never be taken for a duplicate."""
        if before.state is None:
            self._producers.pop(producer_id, None)
        else:
            known = self._producers[producer_id]
            known.epoch, known.batches, known.is_epoch_new, known.silent_ms = before.state
        if not before.is_in_transaction:
            self.open_transactions.not_begun(producer_id)

    def replay(self, batches: Iterable[Batch]) -> None:
        """Record what recovery found in the log."""
        for batch in batches:
            self.record(batch, batch.base_offset)

    def expire(self, passed_ms: int, expiry_ms: int = EXPIRY_MS) -> int:
        """So much time has passed since it was last called. Forget producers that were silent for as long, unless a
        transaction of theirs is open; gives their number.
        """
        silent = []
        for producer_id, producer in self._producers.items():
            producer.silent_ms = 0 if producer.silent_ms == _HEARD else producer.silent_ms + passed_ms
            if producer.silent_ms >= expiry_ms and producer_id not in self.open_transactions:
                silent.append(producer_id)
        for producer_id in silent:
            del self._producers[producer_id]
        return len(silent)

    def describe(self) -> list[ProducerView]:
        views = []
        for producer_id, producer in self._producers.items():
            last = producer.batches[-1] if producer.batches else None
            views.append(
                ProducerView(
                    producer_id,
                    producer.epoch,
                    last[1] if last else NO_SEQUENCE,
                    last[4] if last else NO_TIMESTAMP,
                    producer.coordinator_epoch,
                    self.open_transactions.first_offset(producer_id),
                )
            )
        return views

    def encode(self) -> bytes:
        """A snapshot, to be stored beside a segment: recovery then reads only the batches behind it."""
        producers = [
            _SavedProducer(number, each.epoch, each.is_epoch_new, each.coordinator_epoch, each.silent_ms, each.batches)
            for number, each in self._producers.items()
        ]
        return msgspec.msgpack.encode(_Saved(_VERSION, producers, self.open_transactions.encode()))

    @classmethod
    def decode(cls, data: bytes) -> "ProducerStates":
        try:
            saved = _decode_saved(data)
        except msgspec.DecodeError as damage:
            raise DamagedFile(f"snapshot of producers: {damage}") from None
        if saved.version not in (_VERSION, _WITH_TIMES):
            raise DamagedFile(f"snapshot of producers: version {saved.version}")
        made = cls()
        made.open_transactions = OpenTransactions.decode(saved.open_transactions)
        for each in saved.producers:
            producer = made._producers[each.producer_id] = _Producer(each.epoch)
            producer.batches = list(each.batches)
            producer.is_epoch_new = each.is_epoch_new
            producer.coordinator_epoch = each.coordinator_epoch
            producer.silent_ms = each.silent_ms if saved.version == _VERSION else _HEARD
        return made

    def _record_marker(self, batch: Batch, base_offset: int) -> None:
        mark = decode_control(batch)
        if mark is not None and mark.kind is ControlKind.UNKNOWN:
            return
        producer = self._producers.get(batch.producer_id)
        if producer is None:
            producer = self._producers[batch.producer_id] = _Producer(batch.producer_epoch)
        elif batch.producer_epoch > producer.epoch:
            # Whoever still writes with the epoch before is fenced from here on.
            producer.epoch = batch.producer_epoch
            producer.batches = []
            producer.is_epoch_new = True
        producer.silent_ms = _HEARD
        if mark is not None:
            producer.coordinator_epoch = max(producer.coordinator_epoch, mark.coordinator_epoch)
        # Compaction empties a marker once no record of its transaction is left: then nothing needs hiding.
        aborted = mark is not None and mark.kind is ControlKind.ABORT
        self.open_transactions.end(batch.producer_id, base_offset, aborted=aborted)


def _find_duplicate(producer: _Producer, batch: Batch) -> Duplicate | None:
    """The same batch among the last ones: the answer to it is the offset of the first time."""
    if batch.producer_epoch == producer.epoch:
        last = (batch.base_sequence + batch.last_offset_delta) & _SEQUENCE_MASK
        for kept in producer.batches:
            if kept[0] == batch.base_sequence and kept[1] == last:
                return Duplicate(kept[2], kept[3], kept[4])
    return None
