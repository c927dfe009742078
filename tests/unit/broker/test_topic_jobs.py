"""Topics are made and removed aside: nobody sees one before it can be used, and nobody waits for another's."""

import errno
import gc
import weakref
from collections import deque
from typing import Any

import pytest
from structlog.testing import capture_logs

from goqueue.broker.topics.topics import PARTITIONS_PER_STEP
from goqueue.machines.controller_commands import AddPartitions, CreateTopic, DeleteTopic, Result, SetOptions
from goqueue.model.codes import Code
from goqueue.model.refusal import Refused
from goqueue.runtime.aside import Done, Work
from goqueue.testing import MemoryDisk
from tests.brokers import TestBroker

MANY = 3 * PARTITIONS_PER_STEP


class Hand:
    """An aside whose work is done when the test says so."""

    def __init__(self) -> None:
        self.waiting: deque[tuple[Work, Done]] = deque()
        self.done = 0

    def __call__(self, work: Work, done: Done) -> None:
        self.waiting.append((work, done))

    def step(self, error: BaseException | None = None) -> None:
        work, done = self.waiting.popleft()
        self.done += 1
        if error is None:
            try:
                work()
            except Exception as raised:  # noqa: BLE001  as a thread would
                error = raised
        done(error)


class Node(TestBroker):
    def __init__(self, disk: MemoryDisk | None = None) -> None:
        super().__init__(disk)
        self.hand = Hand()
        self.broker.topics.work_aside(self.hand)
        self.replies: dict[str, Result] = {}

    def submit(self, label: str, command: Any) -> None:
        def keep(reply: Any) -> None:
            assert label not in self.replies
            self.replies[label] = reply

        self.broker.topics.submit(command, keep)
        self.commit()

    def work(self) -> None:
        """Until nothing is left to do."""
        while self.hand.waiting:
            self.hand.step()
            self.commit()

    @property
    def codes(self) -> dict[str, Code]:
        return {label: reply.code for label, reply in self.replies.items()}

    @property
    def partitions(self) -> dict[str, int]:
        return {topic.name: topic.partitions for topic in self.broker.topics.image.topics.values()}

    def is_served(self, topic: str, partition: int) -> bool:
        try:
            return self.broker.topics.replica(topic, partition) is not None
        except Refused:
            return False


def create(name: str, partitions: int) -> CreateTopic:
    return CreateTopic(name, name.encode().ljust(16, b".")[:16], partitions)


def test_nobody_sees_a_topic_before_all_of_it_can_be_used() -> None:
    node = Node()
    seen: list[set[str]] = []
    node.broker.topics.on_change.append(lambda change: seen.append(set(change.image.topics)))
    node.submit("create", create("orders", MANY))
    for _ in range(3):
        assert not node.replies
        assert not node.partitions
        assert not node.is_served("orders", 0)
        node.hand.step()
    assert node.codes == {"create": Code.NONE}
    assert node.partitions == {"orders": MANY}
    assert all(node.is_served("orders", number) for number in range(MANY))
    assert [names for names in seen if names] == [{"orders"}]


def test_topics_take_turns_so_that_a_small_one_does_not_wait_for_a_large_one() -> None:
    node = Node()
    node.submit("large", create("large", 20 * PARTITIONS_PER_STEP))
    node.submit("small", create("small", 3))
    for _ in range(3):
        node.hand.step()
    assert node.codes == {"small": Code.NONE}
    assert node.partitions == {"small": 3}
    node.publish("small", b"x")
    node.work()
    assert node.partitions == {"small": 3, "large": 20 * PARTITIONS_PER_STEP}


def test_who_hears_that_a_topic_exists_can_use_it_and_a_refusal_waits_for_nobody() -> None:
    node = Node()
    node.submit("first", create("orders", 2))
    node.submit("second", create("orders", 2))
    node.submit("options", SetOptions("orders", {"retention.ms": "5000"}))
    node.submit("bad", create("no/name", 2))
    node.submit("too many", create("clicks", 1_000_000))
    assert node.codes == {"bad": Code.INVALID_TOPIC_EXCEPTION, "too many": Code.INVALID_PARTITIONS}
    node.work()
    assert node.codes == {
        "bad": Code.INVALID_TOPIC_EXCEPTION,
        "too many": Code.INVALID_PARTITIONS,
        "first": Code.NONE,
        "second": Code.TOPIC_ALREADY_EXISTS,
        "options": Code.NONE,
    }
    for number in range(2):
        replica = node.broker.topics.replica("orders", number)
        assert replica.options.retention_ms == 5000, "changed while it was made"
        assert replica.log.options.retention_ms == 5000


def test_a_topic_is_served_as_it_was_while_it_gets_more_partitions() -> None:
    node = Node()
    node.submit("create", create("orders", 1))
    node.work()
    node.submit("more", AddPartitions("orders", 5))
    assert node.partitions == {"orders": 1}
    assert node.publish("orders", b"meanwhile") == 0
    assert not node.is_served("orders", 1)
    node.submit("even more", AddPartitions("orders", 6))
    node.work()
    assert node.codes == {"create": Code.NONE, "more": Code.NONE, "even more": Code.NONE}
    assert node.partitions == {"orders": 6}
    assert [node.publish("orders", b"x", partition=number) for number in range(6)] == [1, 0, 0, 0, 0, 0]


def test_a_topic_that_is_deleted_while_it_is_made_is_gone_and_its_name_free() -> None:
    node = Node()
    node.submit("create", create("orders", MANY))
    node.hand.step()
    node.submit("delete", DeleteTopic("orders"))
    node.work()
    assert node.codes == {"create": Code.NONE, "delete": Code.NONE}
    assert not node.partitions
    assert "orders" not in node.disk.list("logs")
    assert node.disk.list("deleted") == []
    node.submit("again", create("orders", 1))
    node.work()
    assert node.codes["again"] is Code.NONE
    assert node.publish("orders", b"x") == 0


def test_a_deletion_is_answered_when_the_name_is_free() -> None:
    node = Node()
    node.submit("create", create("orders", MANY))
    node.work()
    node.publish("orders", b"old")
    node.submit("delete", DeleteTopic("orders"))
    assert not node.partitions
    assert not node.is_served("orders", 0)
    node.submit("too early", create("orders", 1))
    assert "delete" not in node.replies
    before = node.hand.done
    node.work()
    assert node.hand.done == before + 1
    assert node.codes == {"create": Code.NONE, "delete": Code.NONE, "too early": Code.TOPIC_ALREADY_EXISTS}
    node.submit("again", create("orders", 1))
    node.work()
    assert node.publish("orders", b"new") == 0


def test_a_topic_that_cannot_be_removed_keeps_its_name_until_the_next_start() -> None:
    node = Node()
    node.submit("create", create("orders", 1))
    node.work()
    node.disk.faults.add("rename", errno.EIO, prefix="logs/orders")
    with capture_logs() as logs:
        node.submit("delete", DeleteTopic("orders"))
        node.work()
    assert "topic not removed" in [line["event"] for line in logs]
    node.submit("taken", create("orders", 1))
    node.submit("other", create("clicks", 1))
    node.work()
    assert node.codes["taken"] is Code.TOPIC_ALREADY_EXISTS
    assert node.partitions == {"clicks": 1}
    node.stop()
    again = Node(node.disk.crashed())
    again.submit("free", create("orders", 1))
    again.work()
    assert again.codes == {"free": Code.NONE}


def test_what_a_stop_cuts_short_is_made_by_the_next_start() -> None:
    node = Node()
    node.submit("create", create("orders", MANY))
    node.hand.step()
    with capture_logs():
        while node.hand.waiting:
            node.hand.step(RuntimeError("the node is stopping"))
    node.stop()
    again = Node(node.disk.crashed())
    assert again.partitions == {"orders": MANY}
    assert [again.publish("orders", b"x", partition=number) for number in range(MANY)] == [0] * MANY


def test_one_partition_that_cannot_be_made_costs_the_others_nothing() -> None:
    node = Node()
    node.disk.faults.add("create", errno.EIO, prefix="logs/orders/1", suffix=".log")
    with capture_logs():
        node.submit("create", create("orders", 3))
        node.work()
    assert node.codes == {"create": Code.NONE}
    assert [node.is_served("orders", number) for number in range(3)] == [True, False, True]


def test_the_files_of_a_deleted_topic_are_closed_by_whoever_removes_them() -> None:
    node = Node()
    node.submit("create", create("orders", 2))
    node.work()
    node.publish("orders", b"x")
    node.commit()
    files = [weakref.ref(node.broker.topics.replica("orders", number).log) for number in range(2)]
    gc.collect()
    gc.disable()
    try:
        node.submit("delete", DeleteTopic("orders"))
        assert [file() is not None for file in files] == [True, True]
        node.work()
        assert [file() for file in files] == [None, None]
    finally:
        gc.enable()


@pytest.mark.parametrize("partitions", [1, 3, 32])
def test_a_new_partition_costs_two_syncs_and_its_topic_a_few(partitions: int) -> None:
    node = Node()
    node.submit("create", create("orders", partitions))
    before = node.disk.op_count
    node.hand.step()
    ops = [line.split()[1:] for line in node.disk.trace()[before:]]
    syncs = [op for op in ops if op[0].startswith("sync")]
    assert len(syncs) == 2 * partitions + 1
    before = node.disk.op_count
    node.publish("orders", b"x")
    ops = [line.split()[1:] for line in node.disk.trace()[before:]]
    assert [op[0] for op in ops] == ["allocate", "write"], "the first append waits for no sync"


def test_a_topic_whose_job_fails_for_a_fault_of_ours_is_given_up_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node()

    def fail(opening: object) -> None:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(node.replicas, "adopt", fail)
    with capture_logs() as logs:
        node.submit("made", CreateTopic("orders", b"o" * 16, 1))
        node.work()
    assert [each["attempt"] for each in logs if each["event"] == "topic job failed"] == [1, 2, 3]
    assert node.codes == {"made": Code.UNKNOWN_SERVER_ERROR}
    assert node.partitions == {}
    assert node.broker.topics.unfinished == ["orders"]
    told = {check.name: check for check in node.broker.health.checks()}
    assert (told["topics"].status, "orders" in told["topics"].message) == ("fail", True)
    monkeypatch.undo()
    node.submit("another", CreateTopic("clicks", b"c" * 16, 1))
    node.work()
    assert (node.codes["another"], node.is_served("clicks", 0)) == (Code.NONE, True)
