"""The store of several processes, in what it costs: most watches know all but the last change."""

from collections import deque
from collections.abc import Iterator
from typing import Any

from goqueue.cluster.etcd.port import KeyPut, KeyValue
from goqueue.testing import MemoryDisk
from tests.sim.test_store_crash_points import Life

CHANGES = 500
WATCHES = 4


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
