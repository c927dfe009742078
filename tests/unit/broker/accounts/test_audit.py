"""The audit trail: written before a change is made, summed up where somebody guesses, and a chain that shows holes."""

import asyncio
import hashlib
from typing import Any

import msgspec
import pytest

from goqueue.broker.accounts.audit import AUDIT, SUM_MS, SUMS_MAX, Audit
from goqueue.model.access import Kind, Operation, Permission
from goqueue.model.audit import Asked, AuditLevel, AuditRecord, Outcome
from goqueue.model.codes import Code
from goqueue.model.errors import DiskFull, GoQueueError
from goqueue.model.refusal import Refused
from goqueue.records.batch import check_batch
from goqueue.records.build import build_batch
from goqueue.testing import MemoryDisk
from tests.brokers import Parts
from tests.unit.testing.loops import turn

CREATES = Asked("User:alice", "10.0.0.1", "http", "create_topic", "/topics orders", ("name", "partitions"))


def power_cut(disk: MemoryDisk) -> MemoryDisk:
    """What is left when nothing survives that was not synced."""
    return disk.crashed(lost=disk.unsynced())


class House(Parts):
    def __init__(self, disk: MemoryDisk | None = None, level: AuditLevel = AuditLevel.ADMIN) -> None:
        super().__init__(disk)
        self.trail = self.replicas.open_ledger(AUDIT, 0, {}, self.clock.now_ms())
        self.commit()
        self.audit = Audit(self.trail, self.clock, 1, level)

    def told(self) -> list[tuple[str, str, str, int]]:
        found = self.audit.read(0, 1000)
        return [
            (each.record.principal, each.record.operation, each.record.outcome, each.record.count) for each in found
        ]


async def carried_out(house: House, work: Any) -> Any:
    task = asyncio.ensure_future(house.audit.carry_out(CREATES, work))
    for _ in range(5):
        await turn()
        house.commit()
    return await task


def test_a_change_is_durable_in_the_trail_before_it_is_made_and_again_when_it_is_done() -> None:
    house = House()
    seen: list[list[Any]] = []

    async def change() -> str:
        seen.append(House(power_cut(house.disk)).told())
        return "made"

    assert asyncio.run(carried_out(house, change)) == "made"
    begun, done = ("User:alice", "create_topic", "begun", 1), ("User:alice", "create_topic", "done", 1)
    assert seen == [[begun]]
    assert House(power_cut(house.disk)).told() == [begun, done]
    assert house.audit.read(1, 1)[0].record.change == 0
    assert house.audit.read(0, 1)[0].record.fields == ("name", "partitions")


def test_a_change_that_cannot_be_written_down_is_not_made() -> None:
    house = House()
    house.trail.hold_appends(DiskFull("no room"))

    async def change() -> None:
        raise AssertionError("it was made")

    with pytest.raises(GoQueueError, match="no room"):
        asyncio.run(carried_out(house, change))


def test_a_power_cut_before_the_record_is_durable_leaves_neither_it_nor_the_change() -> None:
    house = House()
    begun: list[Any] = []
    house.audit.begin(CREATES, begun.append)
    assert begun == []
    assert House(power_cut(house.disk)).told() == []
    house.commit()
    assert begun == [0]


def test_a_refusal_and_a_fault_are_outcomes_too() -> None:
    house = House()

    async def refuse() -> None:
        raise Refused(Code.TOPIC_ALREADY_EXISTS)

    async def fail() -> None:
        raise ZeroDivisionError

    for work, error in ((refuse, Refused), (fail, ZeroDivisionError)):
        with pytest.raises(error):
            asyncio.run(carried_out(house, work))
    found = [(each.record.outcome, each.record.code, each.record.change) for each in house.audit.read(0, 10)]
    assert found == [
        ("begun", "", -1),
        ("refused", "TOPIC_ALREADY_EXISTS", 0),
        ("begun", "", -1),
        ("failed", "ZeroDivisionError", 2),
    ]


def test_what_is_refused_again_and_again_is_one_record_a_minute() -> None:
    house = House()
    denied = Asked("User:bob", "", "", "read", "topic payroll")
    for _ in range(1000):
        house.audit.note(denied, Outcome.REFUSED)
    house.audit.note(denied._replace(resource="topic orders"), Outcome.REFUSED)
    assert house.told() == []
    house.clock.advance(SUM_MS)
    house.commit()
    assert house.told() == [("User:bob", "read", "refused", 1000), ("User:bob", "read", "refused", 1)]
    for number in range(3 * SUMS_MAX):
        house.audit.note(denied._replace(resource=f"topic {number}"), Outcome.REFUSED)
    house.audit.flush()
    assert house.trail.end_offset == 2 + SUMS_MAX + 1
    assert house.audit.read(house.trail.end_offset - 1, 1)[0].record.count == 2 * SUMS_MAX


def test_the_chain_goes_on_over_restarts_and_shows_what_was_changed() -> None:
    house = House()
    for _ in range(3):
        house.audit.note(CREATES)
        house.audit.flush()
    house.commit()
    again = House(power_cut(house.disk))
    again.audit.note(CREATES)
    again.audit.flush()
    assert [each.is_chained for each in again.audit.read(0, 10)] == [True] * 4
    forged = msgspec.json.encode(AuditRecord(1, 1, "x", "", "", "", "", "done", "0"))
    again.trail.append(check_batch(memoryview(build_batch([(1, None, forged, [])]))), 1)
    again.audit.note(CREATES)
    again.audit.flush()
    assert [each.is_chained for each in again.audit.read(0, 10)] == [True, True, True, True, False, False]
    assert [each.is_chained for each in again.audit.read(5, 10)] == [False]
    value = again.audit.read(0, 1)[0].record.previous
    assert value == hashlib.sha256(b"").hexdigest()


def test_levels_say_what_is_noted() -> None:
    reads, describes, alters = (
        Permission({Kind.TOPIC: each}) for each in (Operation.READ, Operation.DESCRIBE, Operation.ALTER_CONFIGS)
    )
    publishes = Permission({Kind.TOPIC: (Operation.WRITE, Operation.CREATE)})
    noted = {
        level: [
            House(level=level).audit.is_noted(who, each) for who in ("User:a", "Key:k") for each in (reads, describes)
        ]
        for level in AuditLevel
    }
    assert noted == {
        AuditLevel.ADMIN: [False] * 4,
        AuditLevel.ACCESS: [True, False, False, False],
        AuditLevel.ALL: [True] * 4,
    }
    resets = Permission({Kind.GROUP: Operation.READ, Kind.TOPIC: Operation.READ}, is_change=True)
    changes = [each.is_change for each in (reads, describes, publishes, alters, resets)]
    assert changes == [False, False, False, True, True]
