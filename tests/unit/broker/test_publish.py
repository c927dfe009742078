"""Publishing: whatever is refused has its code and leaves no trace."""

import errno
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from goqueue.model.codes import Code
from goqueue.model.error_codes import code_of
from goqueue.model.errors import GoQueueError, InvalidWish
from goqueue.model.refusal import InvalidRecords
from goqueue.records.batch import Codec
from goqueue.records.build import build_batch
from goqueue.records.control import ControlKind, build_control
from goqueue.records.messages import NewMessage
from goqueue.records.native import Headers
from goqueue.testing import MemoryDisk
from tests.brokers import TestBroker, data


def ready() -> TestBroker:
    broker = TestBroker()
    broker.create("orders", 2)
    broker.create("prices", cleanup_policy="compact")
    broker.create("small", max_message_bytes="100")
    return broker


def control() -> memoryview:
    return memoryview(
        build_control(ControlKind.COMMIT, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp=1)
    )


def changed(position: int, value: int) -> memoryview:
    made = data(b"hello")
    made[position] = value
    return made


@pytest.mark.parametrize(
    ("topic", "partition", "made", "code"),
    [
        ("nowhere", 0, data(b"x"), Code.UNKNOWN_TOPIC_OR_PARTITION),
        ("orders", 2, data(b"x"), Code.UNKNOWN_TOPIC_OR_PARTITION),
        ("orders", -1, data(b"x"), Code.UNKNOWN_TOPIC_OR_PARTITION),
        ("orders", 0, memoryview(bytearray(3)), Code.CORRUPT_MESSAGE),
        ("orders", 0, memoryview(bytearray(0)), Code.CORRUPT_MESSAGE),
        ("orders", 0, data(b"hello")[:-1], Code.CORRUPT_MESSAGE),
        ("orders", 0, changed(70, 0xFF), Code.CORRUPT_MESSAGE),
        ("orders", 0, changed(16, 1), Code.CORRUPT_MESSAGE),
        ("orders", 0, memoryview(bytearray(bytes(data(b"a")) + bytes(data(b"b")))), Code.INVALID_RECORD),
        ("orders", 0, control(), Code.INVALID_RECORD),
        ("small", 0, data(b"x" * 200), Code.MESSAGE_TOO_LARGE),
        ("prices", 0, data(b"x"), Code.INVALID_RECORD),
        ("prices", 0, data(b"x" * 999, codec=Codec.GZIP), Code.INVALID_RECORD),
        (
            "orders",
            0,
            data(b"x", producer_id=5, producer_epoch=0, base_sequence=0, transactional=True),
            Code.INVALID_PRODUCER_ID_MAPPING,
        ),
    ],
)
def test_what_is_refused_has_its_code_and_leaves_no_trace(
    topic: str, partition: int, made: memoryview, code: Code
) -> None:
    broker = ready()
    with pytest.raises(GoQueueError) as refused:
        broker.broker.publisher.publish(topic, partition, made)
    assert code_of(refused.value) is code, refused.value
    assert [replica.end_offset for replica in broker.replicas if not replica.name.startswith("@")] == [0] * 4
    assert broker.broker.publisher.batches == 0


def test_what_is_taken_gets_the_next_offsets_and_is_counted() -> None:
    broker = ready()
    assert broker.publish("orders", b"a", b"b") == 0
    assert broker.publish("orders", b"c") == 2
    assert broker.publish("orders", b"c", partition=1) == 0
    assert broker.publish("prices", b"c", key=b"k") == 0
    assert broker.broker.publisher.batches == 4


def test_an_acknowledgement_waits_for_the_disk() -> None:
    broker = ready()
    replica, appended = broker.broker.publisher.publish("orders", 0, data(b"a"))
    called: list[object] = []
    replica.when_reached(appended.next_offset, lambda: called.append(replica.failure))
    broker.clock.run()
    assert called == []
    broker.commit()
    assert called == [None]


def fail_sync(broker: TestBroker) -> None:
    broker.disk.faults.add("sync", errno.EIO, prefix="logs/orders/0")


def delete(broker: TestBroker) -> None:
    broker.replicas.retire("orders", [0])()


@pytest.mark.parametrize("end", [fail_sync, delete])
def test_what_cannot_be_acknowledged_any_more_is_said_to_have_failed(end: Callable[[TestBroker], None]) -> None:
    broker = ready()
    publisher = broker.broker.publisher
    replica, appended = publisher.publish("orders", 0, data(b"a"))
    called: list[bool] = []
    replica.when_reached(appended.next_offset, lambda: called.append(replica.failure is not None))
    with capture_logs():
        end(broker)
        broker.commit()
    assert called == [True]
    with pytest.raises(GoQueueError) as refused:
        publisher.publish("orders", 0, data(b"a"))
    expected = Code.KAFKA_STORAGE_ERROR if end is fail_sync else Code.UNKNOWN_TOPIC_OR_PARTITION
    assert code_of(refused.value) is expected
    assert broker.publish("orders", b"others go on", partition=1) == 0


def test_a_full_disk_refuses_and_takes_again_when_there_is_room() -> None:
    broker = ready()
    broker.disk.faults.add("allocate", errno.ENOSPC, prefix="logs/orders/0")
    with pytest.raises(GoQueueError) as refused:
        broker.publish("orders", b"a")
    assert code_of(refused.value) is Code.KAFKA_STORAGE_ERROR
    assert broker.publish("orders", b"a") == 0


def test_a_partition_that_cannot_be_opened_is_refused_and_the_others_are_served() -> None:
    broker = ready()
    broker.publish("orders", b"a")
    broker.stop()
    image: MemoryDisk = broker.disk.crashed()
    image.faults.add("open", errno.EIO, prefix="logs/orders/0", suffix=".log", forever=True)
    with capture_logs():
        again = TestBroker(image)
    with pytest.raises(GoQueueError) as refused:
        again.publish("orders", b"a")
    assert code_of(refused.value) is Code.KAFKA_STORAGE_ERROR
    assert again.publish("orders", b"a", partition=1) == 0


def test_an_open_transaction_lets_its_producer_in_and_its_end_is_marked_everywhere() -> None:
    from goqueue.machines.transactions.commands import AddPartitions, EndTransaction, InitProducer

    broker = ready()
    submit = broker.broker.transactions.submit
    producer = broker.ask(submit, InitProducer("tx", 60_000))
    fields: dict[str, Any] = {"producer_id": producer.producer_id, "producer_epoch": producer.epoch}
    partitions = (("orders", 0), ("orders", 1))
    reply = broker.ask(submit, AddPartitions("tx", producer.producer_id, producer.epoch, partitions))
    assert reply.code is Code.NONE
    for partition in (0, 1):
        broker.publish("orders", b"x", partition=partition, base_sequence=0, transactional=True, **fields)
    broker.commit()
    replicas = [broker.broker.topics.replica(*place) for place in partitions]
    assert [one.last_stable_offset for one in replicas] == [0, 0]
    broker.ask(submit, EndTransaction("tx", producer.producer_id, producer.epoch, True))
    assert [(one.end_offset, one.last_stable_offset) for one in replicas] == [(2, 2), (2, 2)]


def test_records_outside_the_time_bounds_of_their_topic_are_refused_and_the_bad_ones_named() -> None:
    broker = TestBroker()
    broker.create("orders", message_timestamp_before_max_ms="1000", message_timestamp_after_max_ms="500")
    now_ms = broker.clock.now_ms()
    at = [now_ms - 1000, now_ms - 1001, now_ms, now_ms + 500, now_ms + 501]
    batch = memoryview(build_batch([(each, None, b"x", []) for each in at]))
    with pytest.raises(InvalidRecords) as refused:
        broker.broker.publisher.publish("orders", 0, batch)
    assert (refused.value.code, set(refused.value.faults)) == (Code.INVALID_TIMESTAMP, {1, 4})
    good = memoryview(build_batch([(at[place], None, b"x", []) for place in (0, 2, 3)]))
    assert broker.broker.publisher.publish("orders", 0, good)[1].base_offset == 0


def test_a_topic_that_stamps_records_itself_does_not_mind_what_they_say() -> None:
    broker = TestBroker()
    broker.create("orders", message_timestamp_before_max_ms="1000", message_timestamp_type="LogAppendTime")
    assert broker.publish("orders", b"x") == 0


def test_the_records_without_a_key_are_named_when_a_compacted_topic_refuses_a_batch() -> None:
    broker = ready()
    batch = memoryview(build_batch([(1000, key, b"x", []) for key in (b"a", None, b"c", None)]))
    with pytest.raises(InvalidRecords) as refused:
        broker.broker.publisher.publish("prices", 0, batch)
    assert (refused.value.code, set(refused.value.faults)) == (Code.INVALID_RECORD, {1, 3})


def test_what_must_be_on_more_copies_than_there_are_is_refused() -> None:
    """An older node let a topic have it: now it is kept, and holds."""
    broker = ready()
    replica = broker.broker.topics.replica("orders", 0)
    replica.options = replace(replica.options, min_insync_replicas=2)
    with pytest.raises(GoQueueError) as refused:
        broker.publish("orders", b"x")
    assert code_of(refused.value) is Code.NOT_ENOUGH_REPLICAS
    assert replica.end_offset == 0
    _, appended = broker.broker.publisher.publish("orders", 0, data(b"x"), needs_all_copies=False)
    assert appended.base_offset == 0
    sent: list[Any] = []
    broker.broker.sender.send("orders", [NewMessage(b"x", partition=0)], sent.extend)
    broker.clock.run()
    assert [code_of(one.error) for one in sent] == [Code.NOT_ENOUGH_REPLICAS]


def test_the_records_whose_wishes_cannot_be_are_named_when_a_batch_is_refused() -> None:
    broker = TestBroker()
    broker.create("orders", dedup_ms="1000")
    headers: list[Headers] = [[], [("gq-delay-ms", b"soon")], [("gq-delay-ms", b"5")], [("gq-dedup-id", b"")]]
    batch = build_batch([(1000, None, b"x", each) for each in headers])
    publisher = broker.broker.publisher
    with pytest.raises(GoQueueError) as refused:
        publisher.publish("orders", 0, memoryview(batch))
    assert code_of(refused.value) is Code.INVALID_RECORD
    assert isinstance(refused.value, InvalidWish)
    assert set(refused.value.faults) == {1, 3}
