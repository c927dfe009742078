"""A crash at every operation of a transaction over two partitions and a group's offsets: all of it or nothing, and an
answered commit is never taken back.
"""

from structlog.testing import capture_logs

from goqueue.broker.groups import commands
from goqueue.broker.transactions import AddGroup, AddPartitions, EndTransaction, InitProducer
from goqueue.machines.group_commands import NO_OFFSET, CommitTransactionOffsets, OffsetToCommit, TopicPartition
from goqueue.model.codes import Code
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
        offset = OffsetToCommit("orders", 0, 1, 1)
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
