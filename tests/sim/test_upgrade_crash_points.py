"""A directory of an earlier version is read and written anew: whatever crashes meanwhile, the next start has it all."""

import tarfile
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from structlog.testing import capture_logs

from goqueue.machines.groups.facts import GROUP_FACTS
from goqueue.machines.groups.offsets import OffsetCommitted
from goqueue.machines.transactions.commands import InitProducer
from goqueue.node.upgrade import NEXT
from goqueue.replica.companions import LEDGER_OPTIONS
from goqueue.runtime.ledger import Ledger
from goqueue.testing import MemoryDisk, VirtualClock
from tests.brokers import Parts
from tests.unit.broker.queue_node import QueueNode
from tests.upgrade.make import DATA

NOW_MS = 1_794_880_800_000  # an hour after it was written: nothing has expired
NAMES = ("first-stopped", "first-killed")


@cache
def files(name: str) -> dict[str, bytes]:
    with tarfile.open(DATA / f"{name}.tar.xz") as archive:
        found = {}
        for member in archive.getmembers():
            file = archive.extractfile(member) if member.isfile() else None
            if file is not None:
                found[member.name.removeprefix("data/")] = file.read()
        return found


def unpacked(name: str) -> MemoryDisk:
    disk = MemoryDisk()
    for path, data in files(name).items():
        if path.startswith("logs/"):
            disk.make_directory(path.rpartition("/")[0])
            file = disk.open(path, create=True)
            file.write(0, [data])
            file.sync()
            file.close()
            disk.sync_directory(path.rpartition("/")[0])
    return disk.crashed()


def start(disk: MemoryDisk) -> QueueNode:
    with capture_logs():
        return QueueNode(disk, VirtualClock(NOW_MS))


def contents(node: QueueNode) -> dict[str, Any]:
    """All that was written anew."""
    broker = node.broker
    pending = broker.schedules.pending("reminders", None, None, 100)
    transactions = [broker.transactions.peek().get(name) for name in ("kept", "undone")]
    return {
        "groups": broker.groups.page(None, 100),
        "committed": sorted(
            (listed.group_id, place, each.offset, each.metadata)
            for listed, offsets in broker.groups.measured()
            for place, each in offsets.items()
        ),
        "delayed": [(found.schedule.key, found.schedule.due_ms, found.body) for found in pending],
        "recurring": [(each, broker.recurring.body(each)) for each in broker.recurring.all()],
        "transactions": transactions,
        "producers": [broker.transactions.ids.was_given(number) for number in range(4)],
    }


def test_all_is_there_after_the_first_start_and_after_the_second() -> None:
    for name in NAMES:
        node = start(unpacked(name))
        found = contents(node)
        assert found["groups"] == ["billing"]
        assert [offset for _, _, offset, _ in found["committed"]] == [11, 20]
        assert len(found["delayed"]) == 8
        assert [each.name for each, _ in found["recurring"]] == ["yearly"]
        assert [each.serial for each in found["transactions"]] == [3, 0]
        assert all(found["producers"])
        again = start(node.disk.crashed())
        assert contents(again) == found
        logs = again.disk.list("logs")
        assert "@delays" not in logs
        assert not [log for log in logs if log.endswith(".next")]
        new = again.ask(again.broker.transactions.submit, InitProducer("new", 60_000))
        assert new.producer_id >= 1000, "ids that were set aside before are not given again"


@pytest.mark.second_layer
def test_a_crash_anywhere_in_the_upgrade_loses_nothing() -> None:
    disk = unpacked("first-killed")
    since = disk.op_count
    wanted = contents(start(disk))
    last = max(number for number, line in enumerate(disk.trace()) if NEXT in line)
    ends: list[Callable[[int], list[int]]] = [lambda upto: [], disk.unsynced]
    for number, upto in enumerate(range(since, last + 3, 2)):
        lost = ends[number % 2](upto)  # nothing of what was not synced, or all of it
        assert contents(start(disk.crashed(upto, lost=lost))) == wanted, f"after {upto}, {len(lost)} operations lost"


def test_groups_that_are_too_large_for_one_batch_are_written_in_many() -> None:
    node = Parts(unpacked("first-stopped"), VirtualClock(NOW_MS))
    replica = node.replicas.open_ledger("@groups", 0, LEDGER_OPTIONS, node.clock.now_ms())
    old, at_ms = Ledger(replica, "groups", GROUP_FACTS), node.clock.now_ms()
    wanted = {number: f"{number}".rjust(25_000, ".") for number in range(700)}
    for number, text in wanted.items():
        old.append([OffsetCommitted("large", "orders", number, number, -1, text, None, at_ms, number)], at_ms)
    old.make_durable()
    new = start(node.disk.crashed())
    (offsets,) = [offsets for listed, offsets in new.broker.groups.measured() if listed.group_id == "large"]
    assert {place.partition: each.metadata for place, each in offsets.items()} == wanted
