"""Delays on a real ledger: bodies come back from it, and whatever was promised before a crash still holds after it."""

from typing import Any

from goqueue.machines.delays.commands import (
    CancelSchedule,
    FiringDone,
    NewSchedule,
    Reschedule,
    Schedule,
    ScheduleKey,
    StoreRecurring,
    TakeProducer,
)
from goqueue.machines.delays.facts import DELAY_FACTS, RecurringStored, Scheduled
from goqueue.machines.delays.machine import Delays
from goqueue.model.codes import Code
from goqueue.runtime.coordinator import Coordinator
from goqueue.runtime.ledger import Ledger
from goqueue.storage.compaction import compact, install, plan
from goqueue.testing import MemoryDisk, VirtualClock
from tests.brokers import Parts
from tests.sim.crashes import Trace, images

ID = b"0123456789abcdef"
HOUR_MS = 60 * 60 * 1000


class DelayNode(Parts):
    """One ledger, and a broker that publishes by writing down."""

    def __init__(self, disk: MemoryDisk | None = None, clock: VirtualClock | None = None) -> None:
        super().__init__(disk, clock)
        self.ledger_replica = self.replica("@delays", cleanup_policy="compact", segment_bytes="65536")
        ledger = Ledger(self.ledger_replica, "delays", DELAY_FACTS)
        self.coordinator = Coordinator("delays", lambda: Delays("t", ID, 0), ledger, self.clock)
        self.published: list[bytes] = []
        self.coordinator.load_now()

    @property
    def machine(self) -> Delays:
        return self.coordinator.peek()

    def ask(self, command: Any) -> Any:
        replies: list[Any] = []
        self.coordinator.submit(command, replies.append)
        self.commit()
        (reply,) = replies
        return reply

    def schedule(self, offset: int, delay_ms: int, body: bytes) -> ScheduleKey:
        new = NewSchedule(offset, self.clock.now_ms() + delay_ms, body)
        assert self.ask(Schedule((new,))).code is Code.NONE
        return ScheduleKey("t", 0, offset)

    def body(self, ledger_offset: int) -> bytes:
        fact = self.coordinator.read_fact(ledger_offset)
        assert isinstance(fact, Scheduled | RecurringStored)
        return fact.body

    def publish(self) -> None:
        for job in self.machine.firing():
            self.published += [self.body(due.ledger_offset) for due in job.records]
            assert self.ask(FiringDone(job.number)).code is Code.NONE

    def pass_time(self, ms: int) -> None:
        self.clock.advance(ms)
        self.commit()
        self.publish()

    def again(self) -> "DelayNode":
        return DelayNode(self.disk.crashed(), VirtualClock(self.clock.now_ms()))

    def compact(self) -> None:
        log = self.ledger_replica.log
        log.roll(self.clock.now_ms())
        log.sync()
        work = plan(log, self.clock.now_ms())
        assert work is not None
        manifest = compact(self.disk, work)
        if manifest is not None:
            assert install(log, manifest)


def test_bodies_come_back_from_the_ledger_also_after_compaction_and_restarts() -> None:
    node = DelayNode()
    node.ask(TakeProducer(3, 0))
    for offset in range(300):
        node.schedule(offset, HOUR_MS, b"body %d" % offset)
    assert node.ask(CancelSchedule(7)).code is Code.NONE
    again = Reschedule(3, node.clock.now_ms() + 2 * HOUR_MS, b"body 3")
    assert node.ask(again).code is Code.NONE
    recurring = StoreRecurring("r", "30 * * * *", "UTC", b"recurring")
    assert node.ask(recurring).code is Code.NONE
    node.compact()
    for restart in range(3):
        if restart:
            node.coordinator.stop()
        node = node.again()
        found = list(node.machine.walk())
        assert len(found) == 299
        assert {(each.key.offset, node.body(each.ledger_offset)) for each in found} == {
            (offset, b"body %d" % offset) for offset in range(300) if offset != 7
        }
    node.pass_time(HOUR_MS + 10)
    assert sorted(set(node.published)) == sorted(
        {b"recurring", *(b"body %d" % offset for offset in range(300) if offset not in {3, 7})}
    )
    node.pass_time(HOUR_MS)
    assert node.published.count(b"body 3") == 1
    assert list(node.again().machine.walk()) == []


def test_the_coordinator_ticks_when_something_is_due() -> None:
    node = DelayNode()
    node.schedule(0, 0, b"now")
    node.schedule(1, 500, b"soon")
    node.schedule(2, 10 * HOUR_MS, b"late")
    node.commit()
    node.publish()
    assert node.published == [b"now"]
    node.pass_time(490)
    assert node.published == [b"now"]
    node.pass_time(20)
    assert node.published == [b"now", b"soon"]
    node.pass_time(10 * HOUR_MS)
    assert node.published == [b"now", b"soon", b"late"]
    assert node.clock.timers == 0


def test_a_crash_at_every_operation_keeps_what_was_promised() -> None:
    """What was acknowledged is there, what was cancelled is not, and a job that was given out comes back alike."""
    trace = Trace()
    node = DelayNode(trace.disk)
    since = trace.disk.op_count
    keys = [node.schedule(offset, 1000 * offset, b"%d" % offset) for offset in range(4)]
    promised: list[tuple[set[int], set[int]]] = []

    def promise(kept: set[int], gone: set[int]) -> None:
        promised.append((kept, gone))
        trace.promise(len(promised))

    promise({0, 1, 2, 3}, set())
    assert node.ask(CancelSchedule(keys[2].offset)).code is Code.NONE
    promise({0, 1, 3}, {2})
    node.clock.advance(1500)
    node.commit()
    jobs = [(job.number, job.sequence, list(job.records)) for job in node.machine.firing()]
    assert [due.key.offset for _, _, records in jobs for due in records] == [0, 1]
    promise({0, 1, 3}, {2})
    for number, _, _ in jobs:
        node.ask(FiringDone(number))
    promise({3}, {0, 1, 2})
    for upto in range(since, trace.disk.op_count + 1):
        reached = trace.last_promise(upto)
        for label, image in images(trace.disk, upto):
            found = DelayNode(image).machine
            firing = {due.key.offset for job in found.firing() for due in job.records}
            pending = {each.key.offset for each in found.walk()}
            assert not firing & pending, label
            if reached:
                kept, gone = promised[reached - 1]
                later = set.union(set(), *(after for _, after in promised[reached:]))
                assert kept - later <= pending | firing, label
                assert not gone & (pending | firing), label
            for job in found.firing():
                assert (job.number, job.sequence, list(job.records)) in jobs, label
