"""Batches with a producer, and a transaction coordinator that is driven as the broker drives it."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import msgspec

from goqueue.machines.machine import Fact
from goqueue.machines.transactions.commands import (
    EndTransaction,
    InitProducer,
    MarkerJob,
    MarkersWritten,
    ProducerIdWanted,
)
from goqueue.machines.transactions.facts import MarkSet, TransactionChanged
from goqueue.machines.transactions.machine import TransactionMachine, TransactionOptions
from goqueue.model.codes import Code
from goqueue.records.batch import TRANSACTIONAL_BIT, Batch, check_batch
from goqueue.records.control import ControlKind, build_control

NOW_MS = 1_700_000_000_000
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS


def data_batch(
    producer_id: int,
    sequence: int,
    *,
    count: int = 1,
    epoch: int = 0,
    offset: int = 0,
    transactional: bool = False,
    timestamp: int = NOW_MS,
) -> Batch:
    """The header of a batch: no more is looked at."""
    attributes = TRANSACTIONAL_BIT if transactional else 0
    header = (offset, 49, 0, 2, 0, attributes, count - 1, timestamp, timestamp, producer_id, epoch, sequence, count)
    return Batch(*header, memoryview(b""))


def marker(producer_id: int, *, epoch: int = 0, commit: bool = True, offset: int = 0, coordinator: int = 0) -> Batch:
    data = build_control(
        ControlKind.COMMIT if commit else ControlKind.ABORT,
        producer_id=producer_id,
        producer_epoch=epoch,
        coordinator_epoch=coordinator,
        timestamp=NOW_MS,
    )
    return check_batch(memoryview(data))._replace(base_offset=offset)


StoredFact = TransactionChanged | MarkSet
_decode_fact = msgspec.msgpack.Decoder(StoredFact).decode


class Ledger:
    """Keys and values as they would lie in a partition, so that nothing comes back that was not stored."""

    def __init__(self) -> None:
        self.entries: list[tuple[bytes, bytes | None]] = []

    def append(self, fact: Fact) -> None:
        if fact.durable:
            self.entries.append((fact.key(), None if fact.is_tombstone else msgspec.msgpack.encode(fact)))

    def compacted(self) -> list[tuple[bytes, bytes | None]]:
        last = {key: place for place, (key, _) in enumerate(self.entries)}
        return [entry for place, entry in enumerate(self.entries) if last[entry[0]] == place]


def replayed(
    entries: list[tuple[bytes, bytes | None]], options: TransactionOptions | None = None, coordinator_epoch: int = 0
) -> TransactionMachine:
    machine = TransactionMachine(options, coordinator_epoch)
    for key, value in entries:
        if value is None:
            machine.forget(key)
        else:
            machine.apply(_decode_fact(value))
    return machine


def restored(machine: TransactionMachine, options: TransactionOptions | None = None) -> TransactionMachine:
    """From a snapshot."""
    made = TransactionMachine(options)
    for fact in machine.facts():
        made.apply(_decode_fact(msgspec.msgpack.encode(fact)))
    return made


class Bench:
    """A coordinator with its ledger: every command is decided, stored and applied."""

    def __init__(self, options: TransactionOptions | None = None) -> None:
        self.options = options
        self.machine = TransactionMachine(options)
        self.ledger = Ledger()
        self.now_ms = NOW_MS
        self.ids = count()
        """As the controller gives them out."""

    def ask(self, command: Any) -> Any:
        reply = self.ask_once(command)
        if isinstance(reply, ProducerIdWanted):
            reply = self.ask_once(msgspec.structs.replace(command, new_producer_id=next(self.ids)))
        return reply

    def ask_once(self, command: Any) -> Any:
        outcome = self.machine.decide(command, 7, self.now_ms)
        for fact in outcome.facts:
            self.ledger.append(fact)
            self.machine.apply(fact)
        assert [ticket for ticket, _ in outcome.replies] in ([7], [])
        return outcome.replies[0][1] if outcome.replies else None

    def crash(self) -> None:
        self.machine = replayed(self.ledger.entries, self.options)

    def init(self, name: str = "tx", *, claimed: tuple[int, int] = (-1, -1), timeout_ms: int = MINUTE_MS) -> Any:
        return self.ask(InitProducer(name, timeout_ms, *claimed))

    def begin(self, name: str = "tx") -> tuple[int, int]:
        """A producer of its own epoch, as (producer id, epoch)."""
        code, producer_id, epoch = self.init(name)
        assert code is Code.NONE
        return producer_id, epoch

    def end(self, who: tuple[int, int], *, commit: bool, bumps_epoch: bool = False, name: str = "tx") -> Any:
        return self.ask(EndTransaction(name, *who, commit, bumps_epoch))

    def finish(self) -> list[MarkerJob]:
        """Write all markers that are due."""
        jobs = self.machine.markers_due()
        for job in jobs:
            assert self.ask(MarkersWritten(*identity_of(job), job.partitions, job.groups)).code is Code.NONE
        return jobs

    def known(self, name: str = "tx") -> TransactionChanged:
        found = self.machine.get(name)
        assert found is not None
        return found


def identity_of(job: MarkerJob) -> tuple[str, int, int]:
    return job.transactional_id, job.producer_id, job.serial


def everything(machine: TransactionMachine) -> tuple[Any, ...]:
    """All that can be asked of a machine, to be compared."""

    def rows() -> Iterator[Any]:
        yield from machine.facts()
        yield from machine.markers_due()
        yield machine.next_deadline_ms()

    return tuple(rows())
