"""Copies are closed several at a time, what is durable already is not synced again, and nobody waits for one that is
gone."""

import errno
from threading import Barrier, get_ident

import pytest

from goqueue.model.errors import LogClosed
from goqueue.records.batch import check_batch
from goqueue.replica.replica import Replica
from goqueue.storage.crew import Crew
from goqueue.testing import MemoryDisk
from tests.brokers import Parts, data

LOGS = 8


def filled(parts: Parts) -> list[Replica]:
    """The last of them has something that is not synced."""
    replicas = [parts.replica("orders", number) for number in range(LOGS)]
    for replica in replicas:
        replica.append(check_batch(data(b"a", b"b")), 1000)
    parts.commit()
    replicas[-1].append(check_batch(data(b"c")), 1000)
    return replicas


def test_logs_are_closed_side_by_side_and_who_waits_is_told_in_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    disk, crew, told = MemoryDisk(), Crew(LOGS), list[int]()
    parts = Parts(disk)
    replicas = filled(parts)
    replicas[-1].when_reached(3, lambda: told.append(get_ident()))
    meet = Barrier(LOGS)  # which nobody passes alone
    close_log = Replica.close_log

    def close_together(replica: Replica) -> None:
        if replica.log.failure is None:
            meet.wait(60)
        close_log(replica)

    monkeypatch.setattr(Replica, "close_log", close_together)
    parts.replicas.side_by_side = crew
    parts.replicas.close()
    parts.clock.run()
    crew.stop()
    assert told == [get_ident()]
    assert all(isinstance(each.log.failure, LogClosed) for each in replicas)
    again = Parts(disk)
    assert [again.replica("orders", number).end_offset for number in range(LOGS)] == [2] * (LOGS - 1) + [3]
    assert again.directory.report == []


def test_only_logs_with_something_new_are_synced() -> None:
    disk = MemoryDisk()
    parts = Parts(disk)
    replicas = filled(parts)
    faults = [disk.faults.add("sync", errno.EIO, prefix=f"logs/orders/{number}/") for number in range(LOGS)]
    parts.replicas.sync()
    assert [fault.hits for fault in faults] == [0] * (LOGS - 1) + [1]
    assert [each.log.failure is None for each in replicas] == [True] * (LOGS - 1) + [False]


def test_a_log_that_cannot_be_closed_costs_the_others_nothing() -> None:
    disk, crew = MemoryDisk(), Crew(2)
    parts = Parts(disk)
    filled(parts)
    fault = disk.faults.add("sync", errno.EIO, prefix="logs/orders/3/")
    parts.replicas.side_by_side = crew
    parts.replicas.close()
    crew.stop()
    assert fault.hits == 1
    again = Parts(disk)
    assert [again.replica("orders", number).end_offset for number in range(LOGS)] == [2] * (LOGS - 1) + [3]


def test_whoever_waits_while_a_copy_rests_is_told_though_it_is_deleted_meanwhile() -> None:
    parts, told = Parts(), list[bool]()
    replica = parts.replica()
    replica.rest()
    replica.when_awake(lambda: told.append(replica.failure is not None))
    parts.replicas.retire("orders", [0])
    parts.clock.run()
    assert told == [True]
