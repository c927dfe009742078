"""The store of several processes, in what it costs: most watches know all but the last change."""

import errno
from collections import deque
from collections.abc import Iterator
from typing import Any

from goqueue.cluster.etcd.port import EtcdFault, KeyPut, KeyValue, Txn
from goqueue.cluster.local.shared_store import LOOK_MS
from goqueue.node.processes.member_names import STORE
from goqueue.storage.segment import ALLOCATION_BYTES_MIN
from goqueue.testing import MemoryDisk
from tests.sim.test_store_crash_points import Life

CHANGES = 500
WATCHES = 4
TTL_S = 3


class CountingHistory(deque[Any]):
    looked_at = 0

    def __iter__(self) -> Iterator[Any]:
        for each in super().__iter__():
            self.looked_at += 1
            yield each

    def __reversed__(self) -> Iterator[Any]:
        for each in super().__reversed__():
            self.looked_at += 1
            yield each


def test_a_watch_looks_at_what_it_was_not_told_and_not_at_all_that_is_kept() -> None:
    life = Life(MemoryDisk())
    history = life.store._history = CountingHistory(life.store._history)
    first = life.store._revision + 1
    told: list[list[KeyValue]] = [[] for _ in range(WATCHES)]
    for each in told:
        life.store.watch(b"topic/", first, lambda revision, found, each=each: each.extend(found), lambda fault: None)  # type: ignore[misc]
    for number in range(CHANGES):
        life.ask(life.store.txn, [], [KeyPut(b"topic/%d" % number, b"1"), KeyPut(b"other", b"1")])
    names = [b"topic/%d" % number for number in range(CHANGES)]
    assert [[found.key for found in each] for each in told] == [names] * WATCHES
    assert history.looked_at <= 3 * CHANGES * WATCHES
    late: list[KeyValue] = []
    life.store.watch(b"topic/", first, lambda revision, found: late.extend(found), lambda fault: None)
    life.parts.commit()
    assert [found.key for found in late] == names


def test_on_a_full_disk_changes_and_ends_of_sessions_wait_for_room() -> None:
    disk = MemoryDisk()
    life = Life(disk)
    store, clock = life.store, life.parts.clock
    lease = life.ask(store.grant, TTL_S)
    assert isinstance(life.ask(store.txn, [], [KeyPut(b"live/1", b"", lease)]), Txn)
    told: list[KeyValue] = []
    store.watch(b"", life.known()[0] + 1, lambda revision, found: told.extend(found), lambda fault: None)
    disk.faults.add("allocate", errno.ENOSPC, prefix=f"logs/{STORE}", forever=True)
    value = b"1" * 4096  # until what was allocated before is used up
    changes = (
        life.ask(store.txn, [], [KeyPut(b"topic", value)]) for _ in range(ALLOCATION_BYTES_MIN // len(value) + 1)
    )
    refused = next(each for each in changes if not isinstance(each, Txn))
    assert isinstance(refused, EtcdFault)
    assert "no room" in str(refused)
    told.clear()
    clock.advance(2 * TTL_S * 1000)
    life.parts.commit()
    assert life.ask(store.renew, lease) == 0, "it is over, whether that is stored or not"
    assert isinstance(life.ask(store.txn, [], [KeyPut(b"live/1", b"", lease)]), EtcdFault)
    disk.faults.clear()
    clock.advance(LOOK_MS)
    life.parts.commit()
    assert (b"live/1", None) in [(each.key, each.value) for each in told]
    assert isinstance(life.ask(store.txn, [], [KeyPut(b"topic", value)]), Txn)
    assert life.known()[1] == {b"topic": value}
