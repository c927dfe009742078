"""Reading: limits, parked reads and who wakes them, and what a reader of committed records may see."""

from typing import Any

import pytest

from goqueue.broker.reading.fetch_session import FetchSession
from goqueue.broker.reading.wants import Got, Limits, Want
from goqueue.model.codes import Code
from goqueue.records.batch import check_batch, split
from goqueue.records.control import ControlKind, build_control
from goqueue.records.decode import decode
from goqueue.replica.roles import Reign
from tests.brokers import TestBroker, data

MANY = 1 << 30


class Reader(TestBroker):
    """A broker with two topics, and what its reads gave."""

    def __init__(self) -> None:
        super().__init__()
        self.create("orders", 2, durability="os")
        self.create("safe")
        self.answers: list[list[Got]] = []

    def fetch(
        self, *wants: Want, min_bytes: int = 1, max_bytes: int = MANY, wait_ms: int = 500, committed: bool = False
    ) -> FetchSession | None:
        """None: it was answered at once."""
        before = len(self.answers)
        limits = Limits(min_bytes, max_bytes, wait_ms, committed)
        session = self.broker.fetcher.fetch(
            wants, limits, lambda answer: self.answers.append([got for _, got in answer])
        )
        return session if len(self.answers) == before else None

    def values(self, answer: int = 0) -> list[list[bytes | None]]:
        return [values(got) for got in self.answers[answer]]


def values(got: Got) -> list[bytes | None]:
    if got.piece is None:
        return []
    return [record.value for one in split(got.piece.view()) for record in decode(one) if not one.is_control]


def want(offset: int = 0, *, topic: str = "orders", partition: int = 0, max_bytes: int = MANY, epoch: int = -1) -> Want:
    return Want(topic, partition, offset, max_bytes, epoch)


def test_what_is_there_is_given_at_once() -> None:
    reader = Reader()
    reader.publish("orders", b"a", b"b")
    assert reader.fetch(want()) is None
    assert reader.values() == [[b"a", b"b"]]
    (got,) = reader.answers[0]
    assert (got.high_watermark, got.last_stable_offset, got.start_offset) == (2, 2, 0)


def test_what_is_not_durable_is_not_shown() -> None:
    reader = Reader()
    reader.publish("safe", b"a")
    reader.fetch(want(topic="safe"))
    reader.clock.run()
    assert reader.answers == []
    reader.commit()
    assert reader.values() == [[b"a"]]


@pytest.mark.parametrize(
    ("one", "code"),
    [
        (want(topic="nowhere"), Code.UNKNOWN_TOPIC_OR_PARTITION),
        (want(partition=2), Code.UNKNOWN_TOPIC_OR_PARTITION),
        (want(3), Code.OFFSET_OUT_OF_RANGE),
        (want(-1), Code.OFFSET_OUT_OF_RANGE),
        (want(0), Code.OFFSET_OUT_OF_RANGE),
        (want(1, epoch=0), Code.FENCED_LEADER_EPOCH),
        (want(1, epoch=99), Code.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_a_refusal_is_told_at_once_and_beside_what_can_be_read(one: Want, code: Code) -> None:
    reader = Reader()
    reader.publish("orders", b"a", b"b")
    reader.publish("orders", b"c", partition=1)
    reader.broker.topics.replica("orders", 0).delete_before(1)
    reader.broker.topics.replica("orders", 0).lead(Reign(5))
    assert reader.fetch(one, want(partition=1), min_bytes=MANY) is None
    assert [got.code for got in reader.answers[0]] == [code, Code.NONE]
    assert reader.values() == [[], [b"c"]]


def test_a_read_without_patience_is_answered_empty() -> None:
    reader = Reader()
    assert reader.fetch(want(), wait_ms=0) is None
    assert reader.fetch(want(), wait_ms=-1) is None
    assert reader.fetch(want(), min_bytes=0) is None
    assert [reader.values(number) for number in range(3)] == [[[]]] * 3


def test_a_parked_read_is_woken_by_an_append_to_any_of_its_partitions() -> None:
    reader = Reader()
    assert reader.fetch(want(), want(partition=1)) is not None
    reader.clock.advance(499)
    assert reader.answers == []
    reader.publish("orders", b"x", partition=1)
    reader.clock.run()
    assert reader.values() == [[], [b"x"]]
    reader.publish("orders", b"y", partition=1)
    reader.clock.advance(10_000)
    assert len(reader.answers) == 1
    assert all(not replica._watchers for replica in reader.replicas)


def test_a_parked_read_waits_for_as_much_as_it_asked_for() -> None:
    reader = Reader()
    reader.publish("orders", b"x" * 100)
    reader.fetch(want(), want(partition=1), min_bytes=400)
    reader.publish("orders", b"y" * 100, partition=1)
    reader.clock.run()
    assert reader.answers == []
    reader.publish("orders", b"z" * 100, partition=1)
    reader.clock.run()
    assert reader.values() == [[b"x" * 100], [b"y" * 100, b"z" * 100]]


def test_a_parked_read_gets_at_its_deadline_what_there_is() -> None:
    reader = Reader()
    reader.publish("orders", b"x")
    reader.fetch(want(), min_bytes=MANY)
    reader.clock.advance(499)
    assert reader.answers == []
    reader.clock.advance(1)
    assert reader.values() == [[b"x"]]
    assert reader.clock.timers == 0


def test_a_cancelled_read_is_never_answered_and_leaves_nothing_behind() -> None:
    reader = Reader()
    parked = reader.fetch(want(), want(partition=1))
    assert parked is not None
    reader.publish("orders", b"x")  # its wake is due, but it will be gone by then
    parked.close()
    parked.close()
    reader.clock.advance(10_000)
    assert reader.answers == []
    assert reader.clock.timers == 0
    assert all(not replica._watchers for replica in reader.replicas)


def test_a_parked_read_of_a_topic_that_is_deleted_is_told() -> None:
    from goqueue.machines.controller_commands import DeleteTopic

    reader = Reader()
    reader.fetch(want(), min_bytes=MANY)
    reader.ask(reader.broker.topics.submit, DeleteTopic("orders"))
    assert [got.code for got in reader.answers[0]] == [Code.UNKNOWN_TOPIC_OR_PARTITION]


def test_many_parked_reads_are_all_answered() -> None:
    reader = Reader()
    for _ in range(1000):
        reader.fetch(want())
    reader.publish("orders", b"x")
    reader.clock.run()
    assert [reader.values(number) for number in range(1000)] == [[[b"x"]]] * 1000
    assert reader.clock.timers == 0


def test_a_reader_gets_past_a_batch_larger_than_its_limits() -> None:
    reader = Reader()
    reader.publish("orders", b"x" * 5000)
    reader.publish("orders", b"y")
    reader.fetch(want(max_bytes=10), max_bytes=20)
    assert reader.values() == [[b"x" * 5000]]
    reader.fetch(want(1, max_bytes=10))
    assert reader.values(1) == [[b"y"]]


def test_the_limits_of_a_partition_and_of_a_read_are_kept() -> None:
    reader = Reader()
    for partition in (0, 1):
        for _ in range(50):
            reader.publish("orders", b"x" * 100, partition=partition)
    reader.fetch(want(max_bytes=1000), want(partition=1))
    assert 0 < reader.answers[0][0].size <= 1000
    reader.fetch(want(), want(partition=1), max_bytes=2000)
    assert 0 < sum(got.size for got in reader.answers[1]) <= 2000
    reader.fetch(want(max_bytes=0), want(partition=1, max_bytes=-5), wait_ms=0)
    assert [got.code for got in reader.answers[2]] == [Code.NONE, Code.NONE]


def test_only_the_first_batch_of_a_read_may_be_larger_than_the_limit_of_its_partition() -> None:
    reader = Reader()
    for partition in (0, 1):
        reader.publish("orders", b"x" * 5000, partition=partition)
    reader.fetch(want(max_bytes=10), want(partition=1, max_bytes=10))
    assert reader.values() == [[b"x" * 5000], []]
    reader.fetch(want(1, max_bytes=10), want(partition=1, max_bytes=10))
    assert reader.values(1) == [[], [b"x" * 5000]]


def transaction(reader: Reader, value: bytes, kind: ControlKind | None, producer: int = 9) -> None:
    replica = reader.broker.topics.replica("orders", 0)
    fields: dict[str, Any] = {"producer_id": producer, "producer_epoch": 0, "transactional": True}
    now_ms = reader.clock.now_ms()
    known = {view.producer_id: view.last_sequence for view in replica.producers.describe()}
    replica.append(check_batch(data(value, base_sequence=known.get(producer, -1) + 1, **fields)), now_ms)
    if kind is not None:
        made = build_control(kind, producer_id=producer, producer_epoch=0, coordinator_epoch=0, timestamp=1)
        replica.append_marker(check_batch(memoryview(made)), 0, now_ms)


def test_a_reader_of_committed_records_sees_nothing_of_an_open_transaction_or_behind_it() -> None:
    reader = Reader()
    reader.publish("orders", b"before")
    transaction(reader, b"open", None)
    reader.publish("orders", b"behind")
    reader.fetch(want(), committed=True)
    assert reader.values() == [[b"before"]]
    assert (reader.answers[0][0].last_stable_offset, reader.answers[0][0].high_watermark) == (1, 3)
    reader.fetch(want())
    assert reader.values(1) == [[b"before", b"open", b"behind"]]
    assert reader.answers[1][0].aborted == ()


def test_a_reader_of_committed_records_at_the_open_transaction_waits_for_its_end() -> None:
    reader = Reader()
    transaction(reader, b"open", None)
    assert reader.fetch(want(), committed=True) is not None
    reader.publish("orders", b"behind")
    reader.clock.run()
    assert reader.answers == []
    replica = reader.broker.topics.replica("orders", 0)
    made = build_control(ControlKind.COMMIT, producer_id=9, producer_epoch=0, coordinator_epoch=0, timestamp=1)
    replica.append_marker(check_batch(memoryview(made)), 0, reader.clock.now_ms())
    reader.clock.run()
    assert reader.values() == [[b"open", b"behind"]]


def test_aborted_transactions_of_what_was_read_are_named_and_no_others() -> None:
    reader = Reader()
    transaction(reader, b"aborted", ControlKind.ABORT)  # 0, 1
    transaction(reader, b"committed", ControlKind.COMMIT)  # 2, 3
    transaction(reader, b"aborted too", ControlKind.ABORT, producer=10)  # 4, 5
    reader.fetch(want(), committed=True)
    assert sorted(reader.answers[0][0].aborted) == [(9, 0), (10, 4)]
    reader.fetch(want(2), committed=True)
    assert list(reader.answers[1][0].aborted) == [(10, 4)]
    reader.fetch(want(2, max_bytes=1), committed=True)
    assert list(reader.answers[2][0].aborted) == []


def test_behind_the_watermark_there_is_nothing_yet_and_that_is_no_error() -> None:
    """A reader that came from another leader may stand there; it would begin elsewhere if it were refused."""
    reader = Reader()
    reader.publish("safe", b"a")
    reader.publish("safe", b"b")
    for offset in (1, 2):
        assert reader.fetch(want(offset, topic="safe"), wait_ms=0) is None
        (got,) = reader.answers[-1]
        assert (got.code, got.high_watermark, got.size) == (Code.NONE, 0, 0)
    reader.fetch(want(3, topic="safe"))
    assert [got.code for got in reader.answers[-1]] == [Code.OFFSET_OUT_OF_RANGE]
    reader.fetch(want(1, topic="safe"))
    reader.commit()
    assert reader.values(-1) == [[b"b"]]
