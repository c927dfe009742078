"""What the transaction coordinator stores, and how one stored state follows from another.

Everything about a transactional id is one fact, so that the last one alone rebuilds it and a ledger compacts to it.
"""

from enum import StrEnum
from typing import TypeAlias

from msgspec.structs import replace

from goqueue.machines.machine import Fact
from goqueue.machines.transactions.commands import Partition
from goqueue.records.batch import NO_EPOCH, NO_PRODUCER

Identity: TypeAlias = tuple[int, int]
"""producer id and epoch"""

NOBODY: Identity = (NO_PRODUCER, NO_EPOCH)
NOT_STARTED = -1

EPOCH_GIVEN_MAX = 32766
"""The highest epoch that a producer is given. Its field holds one more: that one is left for fencing it."""

_KEY_PREFIX = b"transaction/"
_MARK_PREFIX = b"mark/"


class State(StrEnum):
    """As Kafka names them. DEAD is never stored: it is the tombstone of an id that expired."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"


PREPARED = frozenset({State.PREPARE_COMMIT, State.PREPARE_ABORT})
COMPLETE = frozenset({State.COMPLETE_COMMIT, State.COMPLETE_ABORT})


def transaction_key(transactional_id: str) -> bytes:
    return _KEY_PREFIX + transactional_id.encode()


def transactional_id_of(key: bytes) -> str:
    assert key.startswith(_KEY_PREFIX), key
    return key.removeprefix(_KEY_PREFIX).decode()


def mark_key(name: str) -> bytes:
    return _MARK_PREFIX + name.encode()


def mark_name_of(key: bytes) -> str | None:
    """None: it is no key of a mark."""
    return key.removeprefix(_MARK_PREFIX).decode() if key.startswith(_MARK_PREFIX) else None


class TransactionChanged(Fact, frozen=True, tag="TransactionChanged"):
    """All that is known of a transactional id."""

    transactional_id: str
    producer_id: int
    epoch: int
    timeout_ms: int
    state: State
    updated_ms: int
    serial: int = 0
    """Counts its transactions, so that a late report about one is never taken for the next."""
    start_ms: int = NOT_STARTED
    partitions: tuple[Partition, ...] = ()
    """Invariant: with `groups`, not empty while ongoing or prepared, empty in all other states."""
    groups: tuple[str, ...] = ()
    last: Identity = NOBODY
    """Who the producer was before it was given its present identity at its own wish. If it asks again as that one, it
    has not heard the answer. NOBODY: nobody may go on from what was before."""
    next_producer_id: int = NO_PRODUCER
    """Prepared only: who the producer is once this transaction is complete, its epochs being used up."""
    is_last: bool = False
    """Prepared only: nobody will come back for this id, so it is forgotten once the transaction is complete."""

    def key(self) -> bytes:
        return transaction_key(self.transactional_id)

    @property
    def is_prepared(self) -> bool:
        """Decided, and its markers are to be written."""
        return self.state in PREPARED

    @property
    def identity(self) -> Identity:
        """Who the producer is: the one identity that may act."""
        if self.next_producer_id != NO_PRODUCER:
            return self.next_producer_id, 0
        return self.producer_id, self.epoch

    @property
    def written_epoch(self) -> int:
        """Prepared to commit: under which epoch the producer wrote. In version 2 the decision gave it the next one."""
        return self.epoch if self.last == NOBODY else self.last[1]


class TransactionExpired(Fact, frozen=True):
    is_tombstone = True
    transactional_id: str

    def key(self) -> bytes:
        return transaction_key(self.transactional_id)


class MarkSet(Fact, frozen=True, tag="MarkSet"):
    """How far the writer `name` has come with transactions that end together."""

    name: str
    mark: int
    set_ms: int
    is_over: bool = False
    """It has ended for good: a task of it that is late may not begin."""

    def key(self) -> bytes:
        return mark_key(self.name)


TRANSACTION_FACTS: tuple[type[Fact], ...] = (TransactionChanged, MarkSet)


class MarkExpired(Fact, frozen=True):
    is_tombstone = True
    name: str

    def key(self) -> bytes:
        return mark_key(self.name)


class MarkersNoted(Fact, frozen=True):
    """Volatile: after a restart all markers of the transaction are asked for again, and partitions know theirs."""

    durable = False
    transactional_id: str
    partitions: tuple[Partition, ...]
    groups: tuple[str, ...]


def handed_over(
    old: TransactionChanged, identity: Identity, last: Identity, timeout_ms: int, now_ms: int
) -> TransactionChanged:
    """The transactional id belongs to `identity` now, with no transaction open."""
    return replace(
        old,
        producer_id=identity[0],
        epoch=identity[1],
        timeout_ms=timeout_ms,
        state=State.EMPTY,
        updated_ms=now_ms,
        start_ms=NOT_STARTED,
        last=last,
    )


def enlisted(
    old: TransactionChanged, partitions: tuple[Partition, ...], groups: tuple[str, ...], now_ms: int
) -> TransactionChanged:
    """More takes part in the transaction; it begins with the first."""
    is_new = old.state is not State.ONGOING
    return replace(
        old,
        state=State.ONGOING,
        updated_ms=now_ms,
        serial=old.serial + is_new,
        start_ms=now_ms if is_new else old.start_ms,
        partitions=tuple(dict.fromkeys(old.partitions + partitions)),
        groups=tuple(dict.fromkeys(old.groups + groups)),
        last=NOBODY,
    )


def fenced(old: TransactionChanged, last: Identity, now_ms: int) -> TransactionChanged:
    """Abort an ongoing transaction over its producer's head: the markers carry an epoch that nobody was given."""
    return replace(old, state=State.PREPARE_ABORT, epoch=old.epoch + 1, last=last, updated_ms=now_ms)


def decided(
    old: TransactionChanged, *, commit: bool, bumps_epoch: bool, next_producer_id: int, now_ms: int
) -> TransactionChanged:
    """The outcome at its producer's wish. A transaction in which nothing took part is complete at once."""
    new = replace(old, state=State.PREPARE_COMMIT if commit else State.PREPARE_ABORT, updated_ms=now_ms)
    if old.state is not State.ONGOING:
        new = replace(new, serial=old.serial + 1, start_ms=now_ms)
    if bumps_epoch:
        new = replace(new, epoch=old.epoch + 1, last=(old.producer_id, old.epoch), next_producer_id=next_producer_id)
    return new if new.partitions or new.groups else completed(new, now_ms)


def completed(old: TransactionChanged, now_ms: int) -> TransactionChanged:
    """Every marker is written."""
    producer_id, epoch = old.identity
    return replace(
        old,
        producer_id=producer_id,
        epoch=epoch,
        state=State.COMPLETE_COMMIT if old.state is State.PREPARE_COMMIT else State.COMPLETE_ABORT,
        updated_ms=now_ms,
        partitions=(),
        groups=(),
        next_producer_id=NO_PRODUCER,
    )
