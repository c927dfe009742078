"""A crash at every operation of a transaction over two partitions and a group's offsets: all of it or nothing, and an
answered commit is never taken back.
"""

from collections import Counter
from collections.abc import Iterable

from structlog.testing import capture_logs

from goqueue.machines.groups import commands
from goqueue.machines.groups.commands import NO_OFFSET, CommitTransactionOffsets, OffsetToCommit
from goqueue.machines.transactions.commands import (
    AddGroup,
    AddPartitions,
    EndTogether,
    EndTransaction,
    InitProducer,
    TogetherReply,
)
from goqueue.model.codes import Code
from goqueue.model.topic_partition import TopicPartition
from goqueue.records.batch import Batch
from goqueue.records.control import ControlKind, decode_control
from goqueue.testing import MemoryDisk
from tests.brokers import TestBroker
from tests.sim.crashes import Trace, images

NAME = "payments"
TIMEOUT_MS = 10_000
PLACES = (("orders", 0), ("orders", 1))
GROUP = "readers"
ALL, NOTHING = (True, True, 1), (False, False, NO_OFFSET)


class Bank(TestBroker):
    def begin(self) -> tuple[int, int]:
        """A transaction with a record in each place and an offset; who writes it."""
        transactions = self.broker.transactions
        _, producer_id, epoch = self.ask(transactions.submit, InitProducer(NAME, TIMEOUT_MS))
        assert self.ask(transactions.submit, AddPartitions(NAME, producer_id, epoch, PLACES)).code is Code.NONE
        for topic, number in PLACES:
            fields = {"producer_id": producer_id, "producer_epoch": epoch, "base_sequence": 0, "transactional": True}
            self.publish(topic, b"paid", partition=number, **fields)
        assert self.ask(transactions.submit, AddGroup(NAME, producer_id, epoch, GROUP)).code is Code.NONE
        offset = OffsetToCommit("orders", 0, 1)
        reply = self.ask(self.broker.groups.submit, CommitTransactionOffsets(GROUP, producer_id, epoch, (offset,)))
        assert reply.codes == (Code.NONE,)
        return producer_id, epoch

    def settled(self) -> tuple[bool, bool, int]:
        """What readers of committed records see once nothing is undecided, and the group's offset."""
        self.clock.advance(TIMEOUT_MS + 5_000)
        self.commit()
        seen = []
        for topic, number in PLACES:
            replica = self.broker.topics.replica(topic, number)
            assert replica.last_stable_offset == replica.high_watermark, "it is undecided"
            aborted = replica.producers.open_transactions.aborted_in(0, replica.high_watermark)
            seen.append(replica.high_watermark > 0 and not aborted)
        command = commands.FetchOffsets(GROUP, (TopicPartition("orders", 0),), require_stable=True)
        (fetched,) = self.ask(self.broker.groups.submit, command).offsets
        assert fetched.code is Code.NONE, "its offset is undecided"
        return seen[0], seen[1], fetched.offset


def settled(image: MemoryDisk) -> tuple[bool, bool, int]:
    with capture_logs():
        return Bank(image).settled()


def test_a_crash_at_any_operation_of_a_commit_leaves_all_or_nothing() -> None:
    trace = Trace()
    bank = Bank(trace.disk)
    bank.create("orders", 2)
    identity = bank.begin()
    bank.commit()
    since = trace.disk.op_count
    reply = bank.ask(bank.broker.transactions.submit, EndTransaction(NAME, *identity, commit=True))
    assert reply.code is Code.NONE
    trace.promise("committed")
    bank.clock.advance(1)
    bank.commit()
    found = set()
    for upto in range(since, trace.disk.op_count + 1):
        is_promised = trace.last_promise(upto) == "committed"
        for label, image in images(trace.disk, upto):
            state = settled(image)
            assert state in ((ALL,) if is_promised else (ALL, NOTHING)), label
            found.add(state)
    assert found == {ALL, NOTHING}, "the scenario tells the two apart"


KEY = "job"
TASKS = (f"{KEY}/0", f"{KEY}/1", f"{KEY}/2")


class Job(TestBroker):
    """A writer with three tasks, of which each writes into every place."""

    def write(self) -> EndTogether:
        """What the tasks leave open, and what commits it."""
        members = []
        for name in TASKS:
            submit = self.broker.transactions.submit
            reply = self.ask(submit, InitProducer(name, TIMEOUT_MS))
            if reply.code is Code.CONCURRENT_TRANSACTIONS:  # what a crash has left open is aborted first
                reply = self.ask(submit, InitProducer(name, TIMEOUT_MS))
            _, producer_id, epoch = reply
            assert self.ask(submit, AddPartitions(name, producer_id, epoch, PLACES)).code is Code.NONE
            for topic, number in PLACES:
                fields = {
                    "producer_id": producer_id,
                    "producer_epoch": epoch,
                    "base_sequence": 0,
                    "transactional": True,
                }
                self.publish(topic, name.encode(), partition=number, **fields)
            members.append((name, producer_id, epoch))
        self.commit()
        return EndTogether(KEY, 5, True, tuple(members))

    def committed(self) -> list[int]:
        """How many records of each place readers of committed records see."""
        counts = []
        for topic, number in PLACES:
            replica = self.broker.topics.replica(topic, number)
            assert replica.last_stable_offset == replica.high_watermark, "it is undecided"
            counts.append(_seen(replica.batches_from(0)))
        return counts


def _seen(batches: Iterable[Batch]) -> int:
    """A coordinator of a new epoch may write a marker where there is nothing to end: markers say nothing of it."""
    undecided, seen = Counter[int](), 0
    for batch in batches:
        if not batch.is_marker:
            undecided[batch.producer_id] += batch.record_count
            continue
        mark = decode_control(batch)
        assert mark is not None
        records = undecided.pop(batch.producer_id, 0)
        seen += records if mark.kind is ControlKind.COMMIT else 0
    return seen


def test_a_crash_at_any_operation_of_a_common_commit_leaves_all_or_nothing_and_a_repetition_makes_it_once() -> None:
    trace = Trace()
    job = Job(trace.disk)
    job.create("orders", 2)
    command = job.write()
    since = trace.disk.op_count
    assert job.ask(job.broker.transactions.end_together, command) == TogetherReply(Code.NONE)
    assert job.committed() == [3, 3], "answered when it is seen"
    trace.promise("committed")
    found = set()
    for upto in range(since, trace.disk.op_count + 1):
        is_promised = trace.last_promise(upto) == "committed"
        for label, image in images(trace.disk, upto):
            with capture_logs():
                again = Job(image)
                is_done = again.broker.transactions.peek().mark(KEY) == 5
                assert is_done or not is_promised, label
                retried = Job(image.crashed(image.op_count))  # the driver asks again, having heard nothing
                assert retried.ask(retried.broker.transactions.end_together, command) == (Code.NONE, is_done, ""), label
                assert retried.committed() == [3, 3], label
                # Or it crashed too, and the tasks are run again.
                repeated = again.write()
                assert again.ask(again.broker.transactions.end_together, repeated) == (Code.NONE, is_done, ""), label
                again.clock.advance(1)
                again.commit()
                assert again.committed() == [3, 3], label
            found.add(is_done)
    assert found == {True, False}, "the scenario tells the two apart"


def test_one_that_timed_out_between_the_flush_and_the_commit_refuses_the_whole() -> None:
    job = Job()
    job.create("orders", 2)
    command = job.write()
    job.clock.advance(TIMEOUT_MS)
    reply = job.ask(job.broker.transactions.end_together, command)
    assert reply.code is Code.PRODUCER_FENCED
    assert "took longer than its timeout" in reply.message
    job.commit()
    assert job.committed() == [0, 0]
    assert job.ask(job.broker.transactions.end_together, job.write()) == TogetherReply(Code.NONE)
    assert job.committed() == [3, 3]
