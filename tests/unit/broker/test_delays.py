"""Delayed records: nobody reads them before they are due, everybody does then, once."""

from typing import Any

import pytest

from goqueue.broker.reading.wants import Limits, Want
from goqueue.model.errors import BatchTooLarge, InvalidWish
from goqueue.model.lanes import Lane
from goqueue.records.batch import Codec, split
from goqueue.records.build import build_batch
from goqueue.records.delayed import PUBLISHED_AT, SCHEDULED_AS
from goqueue.records.messages import NewMessage, Sent
from goqueue.records.native import Headers
from tests.unit.broker.queue_node import QueueNode, queue_node

TICK_MS = 10
MINUTE_MS = 60_000


def later(value: bytes, delay_ms: int = 1000, **fields: Any) -> NewMessage:
    return NewMessage(value, delay_ms=delay_ms, **fields)


def publish(node: QueueNode, *records: tuple[bytes, Headers], key: bytes | None = None, **fields: Any) -> int:
    """One batch as a Kafka client sends it; the offset of its first record, once it is acknowledged."""
    data = build_batch([(node.clock.now_ms(), key, value, headers) for value, headers in records], **fields)
    acknowledger, appended = node.broker.publisher.publish("orders", 0, memoryview(data))
    acknowledged: list[bool] = []
    acknowledger.when_reached(appended.next_offset, lambda: acknowledged.append(acknowledger.failure is None))
    node.commit()
    assert acknowledged == [True]
    return appended.base_offset


# -- when


def test_a_delayed_record_is_read_when_it_is_due_and_not_before() -> None:
    node = queue_node()
    node.put("orders", later(b"late", 5000))
    node.pass_ms(5000 - 1)
    assert (node.values("orders"), node.received()) == ([], [])
    node.pass_ms(1 + TICK_MS)
    assert (node.values("orders"), node.received()) == ([b"late"], [b"late"])
    node.pass_ms(MINUTE_MS)
    assert node.values("orders") == [b"late"]


def test_a_record_is_delivered_at_the_time_that_it_names() -> None:
    node = queue_node()
    now_ms = node.clock.now_ms()
    node.put("orders", NewMessage(b"late", deliver_at_ms=now_ms + 3 * 24 * 60 * MINUTE_MS))
    node.pass_ms(3 * 24 * 60 * MINUTE_MS - 1)
    assert node.values("orders") == []
    node.pass_ms(1 + TICK_MS)
    assert node.values("orders") == [b"late"]


@pytest.mark.parametrize(("delay_ms", "deliver_at_ms"), [(0, None), (None, 0), (None, 999_999_999_999), (None, 10**12)])
def test_no_delay_or_a_time_that_has_passed_means_at_once(delay_ms: int | None, deliver_at_ms: int | None) -> None:
    node = queue_node()
    assert node.clock.now_ms() == 10**12
    assert node.put("orders", NewMessage(b"now", delay_ms=delay_ms, deliver_at_ms=deliver_at_ms)) == [0]
    assert node.values("orders") == [b"now"]
    assert node.broker.schedules.measure().pending == 0


@pytest.mark.parametrize("delay_ms", range(1, 2 * TICK_MS))
def test_a_delay_under_a_tick_is_not_a_revolution_late(delay_ms: int) -> None:
    node = queue_node()
    node.pass_ms(3)
    node.put("orders", later(b"soon", delay_ms))
    node.pass_ms(delay_ms + TICK_MS)
    assert node.values("orders") == [b"soon"]


def test_records_become_visible_in_the_order_of_their_times_not_of_their_sending() -> None:
    node = queue_node()
    node.put("orders", later(b"third", 3000), later(b"first", 1000), later(b"second", 2000))
    node.put("orders", b"before them")
    node.pass_ms(3000 + TICK_MS)
    assert node.values("orders") == [b"before them", b"first", b"second", b"third"]


def test_a_consumer_that_waits_is_woken_when_a_record_is_due() -> None:
    node = queue_node()
    node.put("orders", later(b"late", 5000))
    parked = node.park(wait_ms=20_000)
    node.pass_ms(4999)
    assert not parked.is_over
    node.pass_ms(1 + TICK_MS)
    assert parked.values == [b"late"]


# -- where


def test_in_a_mixed_batch_the_places_of_delayed_records_stay_free() -> None:
    node = queue_node()
    assert node.put("orders", b"a", later(b"B"), b"c", later(b"D"), b"e") == [0, 1, 2, 3, 4]
    assert [(each.offset, each.value) for each in node.records("orders")] == [(0, b"a"), (2, b"c"), (4, b"e")]
    assert node.put("orders", b"f") == [5]
    node.pass_ms(1000 + TICK_MS)
    assert [(each.offset, each.value) for each in node.records("orders")] == [
        (0, b"a"),
        (2, b"c"),
        (4, b"e"),
        (5, b"f"),
        (6, b"B"),
        (7, b"D"),
    ]


def test_a_batch_of_which_all_is_delayed_still_takes_its_offsets() -> None:
    node = queue_node()
    assert node.put("orders", later(b"A"), later(b"B", 2000)) == [0, 1]
    assert node.put("orders", b"c") == [2]
    assert node.values("orders") == [b"c"]
    node.pass_ms(2000 + TICK_MS)
    assert [(each.offset, each.value) for each in node.records("orders")] == [(2, b"c"), (3, b"A"), (4, b"B")]


def test_a_kafka_fetch_over_free_places_ends_where_the_log_ends() -> None:
    node = queue_node()
    node.put("orders", b"a", later(b"B"))
    node.put("orders", later(b"C"))
    replica = node.broker.topics.replica("orders", 0)
    answers: list[Any] = []
    node.broker.fetcher.fetch([Want("orders", 0, 0, 1 << 20)], Limits(1, 1 << 20, 0), answers.append)
    (((_, got),),) = answers
    batches = list(split(got.piece.view()))
    assert batches[-1].next_offset == replica.high_watermark == 3
    assert sum(batch.record_count for batch in batches if not batch.is_control) == 1


def test_a_delayed_offset_hides_nothing_in_another_partition() -> None:
    node = queue_node(partitions=2)
    sent = node.send("orders", later(b"late", partition=0), NewMessage(b"now", partition=1))
    assert sent == [Sent(0, 0), Sent(1, 0)]
    assert (node.values("orders", 0), node.values("orders", 1)) == ([], [b"now"])
    assert node.received() == [b"now"]
    node.pass_ms(1000 + TICK_MS)
    assert (node.values("orders", 0), node.values("orders", 1)) == ([b"late"], [b"now"])


# -- what


def test_what_becomes_visible_is_what_was_sent_and_says_when_that_was() -> None:
    node = queue_node()
    sent_ms = node.clock.now_ms()
    node.put("orders", later(b"late", 5000, key=b"k", headers=[("trace", b"1"), ("trace", b"2"), ("empty", None)]))
    node.pass_ms(MINUTE_MS)
    (record,) = node.records("orders")
    assert (record.key, record.value, record.timestamp) == (b"k", b"late", sent_ms + 5000)
    assert record.headers == [
        ("trace", b"1"),
        ("trace", b"2"),
        ("empty", None),
        (PUBLISHED_AT, b"%d" % sent_ms),
        (SCHEDULED_AS, b"0/0"),
    ]


def test_a_delay_counts_from_when_the_record_says_that_it_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    node = queue_node()
    real, looks = node.clock.now_ms, iter(range(10**6))
    monkeypatch.setattr(node.clock, "now_ms", lambda: real() + next(looks))  # publishing takes its time
    node.put("orders", later(b"late", 1000))
    monkeypatch.undo()
    node.pass_ms(1000 + TICK_MS + next(looks))
    (record,) = node.records("orders")
    assert dict(record.headers)[PUBLISHED_AT] == b"%d" % (record.timestamp - 1000)


def test_a_delayed_record_keeps_its_priority() -> None:
    node = queue_node()
    node.put("orders", b"n", NewMessage(b"C", lane=Lane.CRITICAL, delay_ms=1000), NewMessage(b"h", lane=Lane.HIGH))
    node.pass_ms(1000 + TICK_MS)
    assert [node.received(most=1) for _ in range(3)] == [[b"C"], [b"h"], [b"n"]]


def test_a_record_without_value_can_be_delayed() -> None:
    node = queue_node()
    node.send("orders", NewMessage(None, key=b"k", delay_ms=1000))
    node.pass_ms(1000 + TICK_MS)
    assert [(each.key, each.value) for each in node.records("orders")] == [(b"k", None)]


# -- time to live


def test_a_time_to_live_runs_from_publish_so_a_delay_is_part_of_it() -> None:
    node = queue_node(message_ttl_ms="5000", expired_messages="drop")
    node.put("orders", later(b"lives one second", 4000), later(b"is dead by then", 6000))
    node.pass_ms(4000 + TICK_MS)
    assert node.received(lease_ms=100) == [b"lives one second"]
    node.pass_ms(10_000)
    assert node.received() == []
    assert node.values("orders") == [b"lives one second", b"is dead by then"]


def test_a_time_to_live_of_its_own_goes_before_that_of_the_topic() -> None:
    node = queue_node(message_ttl_ms="1000")
    node.put("orders", NewMessage(b"x", delay_ms=2000, expires_at_ms=node.clock.now_ms() + 3000))
    node.pass_ms(2000 + TICK_MS)
    assert node.received() == [b"x"]


# -- compressed batches


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_wishes_in_compressed_batches_count_where_the_topic_looks_for_them(codec: Codec) -> None:
    node = queue_node(wishes="all")
    assert publish(node, (b"a", []), (b"B", [("gq-delay-ms", b"1000")]), (b"c", []), codec=codec) == 0
    assert [(each.offset, each.value) for each in node.records("orders")] == [(0, b"a"), (2, b"c")]
    node.pass_ms(1000 + TICK_MS)
    assert [(each.offset, each.value) for each in node.records("orders")] == [(0, b"a"), (2, b"c"), (3, b"B")]


@pytest.mark.parametrize(("wishes", "codec"), [("plain", Codec.GZIP), ("off", Codec.GZIP), ("off", Codec.NONE)])
def test_where_a_topic_does_not_look_for_wishes_they_are_mere_headers(wishes: str, codec: Codec) -> None:
    node = queue_node(wishes=wishes)
    publish(node, (b"a", [("gq-delay-ms", b"1000")]), codec=codec)
    (record,) = node.records("orders")
    assert record.headers == [("gq-delay-ms", b"1000")]


# -- what cannot be


@pytest.mark.parametrize(
    ("headers", "says"),
    [
        ([("gq-delay-ms", b"soon")], "header gq-delay-ms is b'soon', but must be milliseconds"),
        ([("gq-delay-ms", b"-5")], "header gq-delay-ms is b'-5', but must be milliseconds"),
        ([("gq-delay-ms", None)], "header gq-delay-ms is None, but must be milliseconds"),
        ([("gq-delay-ms", b"253402300799999")], "must end before the year 10000"),
        ([("gq-deliver-at", b"tomorrow")], "header gq-deliver-at is b'tomorrow', but must be milliseconds since 1970"),
        ([("gq-deliver-at", b"1"), ("gq-delay-ms", b"1")], "contradict each other"),
        ([("gq-priority", b"urgent")], "header gq-priority is b'urgent', but must be critical, high"),
        ([("gq-expires-at", b"never")], "header gq-expires-at is b'never', but must be"),
    ],
)
def test_a_wish_that_cannot_be_is_refused_with_what_it_says(headers: Headers, says: str) -> None:
    node = queue_node()
    (sent,) = node.send("orders", NewMessage(b"x", headers=headers))
    assert isinstance(sent.error, InvalidWish)
    assert says in str(sent.error)
    with pytest.raises(InvalidWish):
        publish(node, (b"fine", []), (b"x", headers))
    assert (node.values("orders"), node.broker.schedules.measure().pending) == ([], 0)


def test_a_record_that_could_not_be_published_when_due_is_refused_at_once() -> None:
    node = queue_node(max_message_bytes="400", wishes="all")
    sent = node.send("orders", later(b"x" * 500), later(b"fits"))
    assert isinstance(sent[0].error, BatchTooLarge)
    assert sent[1].error is None
    with pytest.raises(BatchTooLarge, match="delayed record takes up to"):
        publish(node, (b"x" * 5000, [("gq-delay-ms", b"1")]), codec=Codec.ZSTD)
    node.pass_ms(1000 + TICK_MS)
    assert node.values("orders") == [b"fits"]


def test_many_small_records_due_together_fit_through_a_small_limit() -> None:
    node = queue_node(max_message_bytes="500")
    values = [b"%02d" % number * 50 for number in range(20)]
    for value in values:
        node.put("orders", later(value))
    node.pass_ms(1000 + TICK_MS)
    assert node.values("orders") == values
    node.put("orders", later(b"goes on", 10))
    node.pass_ms(10 + TICK_MS)
    assert node.values("orders") == [*values, b"goes on"]


# -- the end of a topic


def test_what_waits_for_a_deleted_topic_is_gone_with_it() -> None:
    node = queue_node()
    node.put("orders", later(b"old"))
    node.delete("orders")
    assert node.broker.schedules.pending("orders", None, None, 10) == []
    node.create("orders", delay_order="hold_key")
    node.put("orders", later(b"new", 5000))
    node.pass_ms(MINUTE_MS)
    assert node.values("orders") == [b"new"]
    assert node.broker.schedules.measure().pending == 0
