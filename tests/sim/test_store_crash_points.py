"""The store of several processes on a disk that loses power at any operation: what was answered holds, and revisions
never fall back."""

from collections.abc import Callable
from typing import Any

import pytest

from goqueue.cluster.etcd.port import KeyCompare, KeyPut, Range, Txn
from goqueue.cluster.local.shared_store import SharedStore
from goqueue.machines.entries import ENTRY_FACTS, Entries
from goqueue.node.processes.member_names import KIND, STORE
from goqueue.replica.companions import LEDGER_OPTIONS
from goqueue.runtime.aside import Done, Work
from goqueue.runtime.coordinator import Coordinator
from goqueue.runtime.ledger import Ledger
from goqueue.testing import MemoryDisk
from tests.brokers import Parts
from tests.sim.crashes import Trace, all_images


def at_once(work: Work, done: Done) -> None:
    work()
    done(None)


class Life:
    """The store between a start and a crash."""

    def __init__(self, disk: MemoryDisk) -> None:
        self.parts = Parts(disk)
        clock = self.parts.clock
        replica = self.parts.replicas.open_ledger(STORE, 0, LEDGER_OPTIONS, clock.now_ms())
        ledger = Ledger(replica, KIND, ENTRY_FACTS, at_once)
        coordinator: Coordinator[Entries] = Coordinator(KIND, Entries, ledger, clock)
        coordinator.load_now()
        self.store = SharedStore(coordinator, clock)
        ready: list[Any] = []
        self.store.start(ready.append)
        self.parts.commit()
        assert ready == [None]

    def ask(self, call: Callable[..., None], *args: object) -> Any:
        answers: list[Any] = []
        call(*args, answers.append)
        self.parts.commit()
        (answer,) = answers
        return answer

    def known(self) -> tuple[int, dict[bytes, bytes | None]]:
        found = self.ask(self.store.list, b"")
        assert isinstance(found, Range)
        return found.revision, {each.key: each.value for each in found.entries}


@pytest.fixture
def trace() -> Trace:
    trace = Trace()
    life = Life(trace.disk)
    lease = life.ask(life.store.grant, 3)
    steps = [
        [KeyPut(b"topic", b"1"), KeyPut(b"live/1", b"", lease)],
        [KeyPut(b"topic", b"2"), KeyPut(b"partition", b"1")],
        [KeyPut(b"topic", None)],
        [KeyPut(b"topic", b"3"), KeyPut(b"partition", None)],
    ]
    revision = 0
    for puts in steps:
        done = life.ask(life.store.txn, [KeyCompare(b"partition", 99, False)], puts)
        assert isinstance(done, Txn)
        assert done.is_done
        assert done.revision > revision
        revision, kept = life.known()
        trace.promise((revision, {key: value for key, value in kept.items() if key != b"live/1"}))
    return trace


def test_whatever_was_answered_holds_after_a_crash_at_any_operation(trace: Trace) -> None:
    known = [(0, {}), *(fact for _, fact in trace.promised)]
    seen = 0
    for upto, label, image in all_images(trace.disk):
        revision, kept = Life(image).known()
        promised = trace.last_promise(upto) or known[0]
        assert kept in [each for at, each in known if at >= promised[0]], label
        assert revision >= promised[0], label
        assert b"live/1" not in kept, label
        seen += 1
    assert seen > 50
