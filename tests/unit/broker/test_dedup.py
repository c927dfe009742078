"""An id that came before is not published again: through every path, over restarts, and only as long as it counts."""

import pytest

from goqueue.broker.publishing import dedup_ids
from goqueue.machines.controller_commands import SetOptions
from goqueue.machines.deliveries.commands import How
from goqueue.model.errors import GoQueueError, InvalidWish
from goqueue.records.batch import Codec
from goqueue.records.build import build_batch
from goqueue.records.messages import NewMessage, Sent
from goqueue.records.native import Headers
from goqueue.records.redrives import RedriveRequest
from tests.unit.broker.queue_node import QueueNode, queue_node
from tests.unit.broker.test_delays_kept import Idempotent, Transaction

MINUTE_MS = 60_000
WINDOW_MS = 5 * MINUTE_MS
TICK_MS = 10


def dedup_node(partitions: int = 1, **options: str) -> QueueNode:
    return queue_node(partitions=partitions, dedup_ms=str(WINDOW_MS), **options)


def with_id(given: bytes, value: bytes = b"x", **fields: object) -> NewMessage:
    return NewMessage(value, dedup_id=given, **fields)  # type: ignore[arg-type]


def ids(*given: bytes | None) -> list[tuple[bytes, Headers]]:
    return [(b"%d" % number, [] if one is None else [("gq-dedup-id", one)]) for number, one in enumerate(given)]


def publish(node: QueueNode, *given: bytes | None, codec: Codec = Codec.NONE) -> int:
    """As a Kafka producer without sequence numbers."""
    now_ms = node.clock.now_ms()
    data = build_batch([(now_ms, b"key", value, headers) for value, headers in ids(*given)], codec=codec)
    acknowledger, appended = node.broker.publisher.publish("orders", 0, memoryview(data))
    told: list[GoQueueError | None] = []
    acknowledger.when_reached(appended.next_offset, lambda: told.append(acknowledger.failure))
    node.commit()
    assert told == [None]
    assert acknowledger.high_watermark >= appended.next_offset
    assert acknowledger.start_offset == 0
    return appended.base_offset


def found(node: QueueNode) -> list[tuple[int, bytes | None]]:
    return [(each.offset, each.value) for each in node.records("orders")]


# -- what is sent message by message


def test_a_message_sent_again_is_answered_with_the_first_one() -> None:
    node = dedup_node()
    assert node.put("orders", with_id(b"a", b"first"), NewMessage(b"none")) == [0, 1]
    assert node.put("orders", with_id(b"a", b"second"), with_id(b"b"), with_id(b"b", b"same call")) == [0, 2, 2]
    assert node.values("orders") == [b"first", b"none", b"x"]


def test_an_id_counts_for_its_time_and_then_no_more() -> None:
    node = dedup_node()
    node.put("orders", with_id(b"a"))
    node.pass_ms(WINDOW_MS - 1)
    assert node.put("orders", with_id(b"a")) == [0]
    node.pass_ms(1)
    assert node.put("orders", with_id(b"a")) == [1]


@pytest.mark.parametrize("step_ms", [-60 * MINUTE_MS, 60 * MINUTE_MS])
def test_an_id_counts_for_its_time_though_the_clock_is_set(step_ms: int) -> None:
    node = dedup_node()
    node.put("orders", with_id(b"a"))
    publish(node, b"b")
    node.clock.step(step_ms)
    node.put("orders", with_id(b"c"))
    node.pass_ms(WINDOW_MS - 1)
    assert node.put("orders", with_id(b"a"), with_id(b"b"), with_id(b"c")) == [0, 1, 2]
    node.pass_ms(1)
    assert node.put("orders", with_id(b"c"), with_id(b"b"), with_id(b"a")) == [3, 4, 5]


def test_an_id_of_a_transaction_counts_for_its_time_though_the_clock_is_set() -> None:
    node = dedup_node()
    transaction = Transaction(node)
    transaction.send((b"a", [("gq-dedup-id", b"a")]))
    transaction.end(commit=True)
    assert node.put("orders", with_id(b"a")) == [0]
    node.clock.step(60 * MINUTE_MS)
    node.pass_ms(WINDOW_MS - 1)
    assert node.put("orders", with_id(b"a")) == [0]
    node.pass_ms(1)
    assert node.put("orders", with_id(b"a")) == [2]


def test_an_id_counts_for_the_topic_whatever_the_key() -> None:
    node = dedup_node(partitions=8)
    node.create("others", 8, dedup_ms=str(WINDOW_MS))
    (first,) = node.send("orders", with_id(b"a", key=b"anna"))
    (again,) = node.send("orders", with_id(b"a", key=b"ben"))
    assert first == again
    (other,) = node.send("others", with_id(b"a", key=b"anna"))
    assert other.error is None
    assert len(node.values("others", other.partition)) == 1


def test_an_id_may_count_for_its_key_only() -> None:
    node = dedup_node(dedup_scope="key")
    assert node.put("orders", with_id(b"a", key=b"anna"), with_id(b"a", key=b"ben"), with_id(b"a", key=b"anna")) == [
        0,
        1,
        0,
    ]


def test_a_topic_that_does_not_ask_for_it_publishes_all() -> None:
    node = queue_node()
    assert node.put("orders", with_id(b"a"), with_id(b"a")) == [0, 1]


@pytest.mark.parametrize("given", [b"", b"x" * 257])
def test_an_id_that_is_none_is_refused_and_the_others_are_published(given: bytes) -> None:
    node = dedup_node()
    sent = node.send("orders", with_id(b"a"), with_id(given), with_id(b"a"))
    assert sent[0] == sent[2] == Sent(0, 0)
    assert isinstance(sent[1].error, InvalidWish)


def test_a_message_that_was_refused_was_not_published_and_its_id_is_free() -> None:
    node = dedup_node(max_message_bytes="300")
    (sent,) = node.send("orders", with_id(b"a", b"x" * 1000))
    assert sent.error is not None
    assert node.put("orders", with_id(b"a")) == [0]


# -- what Kafka producers send


def test_in_a_mixed_batch_the_places_of_what_came_before_stay_free() -> None:
    node = dedup_node()
    assert publish(node, b"a", b"b") == 0
    assert publish(node, b"c", b"a", None, b"c", b"d") == 2
    assert found(node) == [(0, b"0"), (1, b"1"), (2, b"0"), (4, b"2"), (6, b"4")]
    assert node.put("orders", with_id(b"d"), with_id(b"c")) == [6, 2]


def test_a_batch_of_which_all_came_before_is_answered_with_where_it_is() -> None:
    node = dedup_node()
    assert publish(node, b"a", b"b", b"c") == 0
    assert publish(node, b"b", b"c") == 1
    assert node.broker.topics.end_offset("orders", 0) == 3
    assert publish(node, b"c", b"a") == 3  # not in a row
    assert [offset for offset, _ in found(node)] == [0, 1, 2]
    assert node.put("orders", b"next") == [5]


def test_what_came_before_in_another_partition_leaves_its_place_free() -> None:
    node = dedup_node(partitions=2)
    assert node.send("orders", with_id(b"a", partition=1)) == [Sent(1, 0)]
    assert publish(node, b"a") == 0
    assert (node.values("orders", 0), node.values("orders", 1)) == ([], [b"x"])


def test_compressed_batches_are_opened() -> None:
    node = dedup_node()
    publish(node, b"a", codec=Codec.ZSTD)
    publish(node, b"a", b"b", codec=Codec.GZIP)
    assert found(node) == [(0, b"0"), (2, b"1")]


def test_a_producer_that_sends_a_batch_again_loses_nothing_and_doubles_nothing() -> None:
    node = dedup_node()
    producer = Idempotent(node)
    assert producer.send(*ids(b"a", b"b")) == 0
    assert producer.send(*ids(b"a", b"b"), again=True) == 0
    assert producer.send(*ids(b"b", b"c", b"c")) == 2  # two places stay free
    assert producer.send(*ids(b"b", b"c", b"c"), again=True) == 2
    assert producer.send(*ids(b"a")) == 5
    assert producer.send(*ids(b"d")) == 6  # sequences go on
    assert [offset for offset, _ in found(node)] == [0, 1, 3, 6]
    assert node.broker.schedules.measure().pending == 0


def test_a_duplicate_is_not_acknowledged_before_the_first_one_is() -> None:
    node = dedup_node(partitions=2)
    told: list[str] = []
    node.broker.sender.send("orders", [with_id(b"a", partition=1)], lambda sent: told.append("first"))
    node.broker.sender.send("orders", [with_id(b"a", partition=0)], lambda sent: told.append("duplicate"))
    data = build_batch([(1000, b"key", b"x", [("gq-dedup-id", b"a")])])
    acknowledger, appended = node.broker.publisher.publish("orders", 0, memoryview(data))
    acknowledger.when_reached(appended.next_offset, lambda: told.append("batch"))
    assert told == []
    assert acknowledger.high_watermark == 0
    node.commit()
    assert sorted(told) == ["batch", "duplicate", "first"]
    assert acknowledger.high_watermark == 1


# -- delays and transactions


def test_a_delayed_message_counts_from_its_sending_and_once() -> None:
    node = dedup_node()
    assert node.put("orders", with_id(b"a", delay_ms=MINUTE_MS)) == [0]
    assert node.put("orders", with_id(b"a"), with_id(b"a", delay_ms=1)) == [0, 0]
    assert publish(node, b"a") == 0
    node.pass_ms(MINUTE_MS + TICK_MS)
    assert len(found(node)) == 1
    assert node.put("orders", with_id(b"a")) == [0]
    node.pass_ms(WINDOW_MS - MINUTE_MS - TICK_MS)
    assert node.put("orders", with_id(b"a")) == [2]


def test_a_twin_does_not_hold_its_key() -> None:
    node = dedup_node(delay_order="hold_key")
    node.put("orders", with_id(b"a", b"1", key=b"k"))
    data = build_batch(
        [(1000, b"k", b"again", [("gq-dedup-id", b"a"), ("gq-delay-ms", b"60000")])],
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
    )
    node.broker.publisher.publish("orders", 0, memoryview(data))
    node.put("orders", with_id(b"b", b"2", key=b"k"))
    assert node.values("orders") == [b"1", b"2"]


def test_what_a_transaction_published_counts_from_its_commit() -> None:
    node = dedup_node()
    transaction = Transaction(node)
    assert transaction.send(*ids(b"a", b"b")) == 0
    transaction.end(commit=True)
    assert node.put("orders", with_id(b"a"), with_id(b"b")) == [0, 1]


def test_what_was_aborted_never_was() -> None:
    node = dedup_node()
    transaction = Transaction(node)
    transaction.send(*ids(b"a"))
    transaction.end(commit=False)
    assert node.put("orders", with_id(b"a", b"for real")) == [2]
    assert node.values("orders") == [b"for real"]


# -- restarts


@pytest.mark.parametrize("how", ["stop", "kill", "power"])
def test_ids_survive_a_restart_and_their_time_goes_on(how: str) -> None:
    node = dedup_node(partitions=2)
    first = node.send("orders", with_id(b"a"), with_id(b"later", delay_ms=2 * MINUTE_MS), with_id(b"soon", delay_ms=1))
    node.pass_ms(MINUTE_MS)
    node = node.restarted(how, after_ms=MINUTE_MS)
    node.pass_ms(MINUTE_MS)  # all have been published by now
    assert node.send("orders", with_id(b"a"), with_id(b"later"), with_id(b"soon")) == first
    node = node.restarted(how)
    assert node.send("orders", with_id(b"a"), with_id(b"later"), with_id(b"soon")) == first
    node.pass_ms(2 * MINUTE_MS)
    assert node.send("orders", with_id(b"a"), with_id(b"later"), with_id(b"soon")) != first
    assert sum(len(node.values("orders", partition)) for partition in (0, 1)) == 6


def test_a_delayed_message_is_known_after_a_restart_before_it_is_due() -> None:
    node = dedup_node()
    node.put("orders", with_id(b"a", delay_ms=2 * MINUTE_MS))
    node = node.restarted()
    assert node.put("orders", with_id(b"a")) == [0]


def test_a_transaction_that_ends_after_a_restart_counts_then() -> None:
    node = dedup_node(message_timestamp_type="LogAppendTime")
    transaction = Transaction(node)
    transaction.send(*ids(b"a"))
    node.put("orders", with_id(b"b"))
    node = node.restarted()
    assert node.put("orders", with_id(b"b")) == [1]
    transaction.node = node
    transaction.end(commit=True)
    assert node.put("orders", with_id(b"a")) == [0]


def test_a_delayed_record_of_a_transaction_that_may_be_aborted_does_not_count() -> None:
    node = dedup_node()
    transaction = Transaction(node)
    transaction.send((b"a", [("gq-dedup-id", b"a"), ("gq-delay-ms", b"60000")]))
    node = node.restarted()
    transaction.node = node
    transaction.end(commit=False)
    (sent,) = node.send("orders", with_id(b"a", b"for real"))
    assert sent.offset > 0
    assert node.values("orders") == [b"for real"]


def test_a_delayed_message_that_was_just_being_published_is_known_after_a_restart() -> None:
    node = dedup_node()
    node.put("orders", with_id(b"a", delay_ms=MINUTE_MS))
    node.clock.advance(MINUTE_MS + TICK_MS)  # due, and nothing of that is synced
    node = node.restarted()
    node.put("orders", with_id(b"a"))
    node.pass_ms(MINUTE_MS)
    assert len(node.values("orders")) == 1


def test_ids_count_from_the_moment_when_a_topic_is_told_to_look_at_them() -> None:
    node = queue_node()
    node.put("orders", with_id(b"a"))
    node.ask(node.broker.topics.submit, SetOptions("orders", {"dedup.ms": "1000"}))
    assert node.put("orders", with_id(b"a"), with_id(b"a")) == [1, 1]
    node.ask(node.broker.topics.submit, SetOptions("orders", {"dedup.ms": "60000"}))
    node.pass_ms(2000)
    assert node.put("orders", with_id(b"a")) == [1]
    node.ask(node.broker.topics.submit, SetOptions("orders", {"dedup.ms": None}))
    assert node.put("orders", with_id(b"a")) == [2]


def test_a_topic_made_anew_knows_no_ids() -> None:
    node = dedup_node()
    node.put("orders", with_id(b"a", b"old"))
    node.delete("orders")
    node.create("orders", 1, dedup_ms=str(WINDOW_MS))
    assert node.put("orders", with_id(b"a", b"new")) == [0]
    assert node.values("orders") == [b"new"]


# -- dead letters


def test_a_dead_letter_is_a_record_of_its_own_and_so_is_one_that_is_sent_back() -> None:
    node = dedup_node(dead_letter_topic="failed")
    node.create("failed", 1, dedup_ms=str(WINDOW_MS))
    node.put("orders", with_id(b"a"))
    for _ in range(2):
        node.settle(node.receive(), How.REJECT)
        node.commit()
        assert node.reply(lambda done: node.broker.dead_letters.redrive(RedriveRequest("orders"), done)).redriven == 1
    assert len(node.values("failed")) == 2
    (again,) = node.receive()
    assert dict(again.headers)["gq-former-dedup-id"] == b"a"
    assert "gq-dedup-id" not in dict(again.headers)


def test_more_ids_than_can_be_remembered_cost_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dedup_ids, "IDS_MAX", 2)
    node = dedup_node()
    node.put("orders", *(with_id(each) for each in (b"a", b"b", b"c")))
    assert node.put("orders", with_id(b"c"), with_id(b"b"), with_id(b"a")) == [2, 1, 3]
