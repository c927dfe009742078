"""Queue reads: a record is leased to one consumer of a group at a time; who waits is woken when there is something."""

from typing import Any

import pytest

from goqueue.broker.queues.taking import ReceiveRequest
from goqueue.machines.deliveries.commands import How, Place
from goqueue.machines.transactions.commands import AddPartitions, EndTransaction, InitProducer
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.kept_options import LONG_MAX
from goqueue.model.refusal import Refused
from goqueue.records.build import build_batch
from goqueue.records.messages import NewMessage
from tests.brokers import data
from tests.unit.broker.queue_node import queue_node

LEASE_MS = 30_000
WAIT_MS = 20_000


def numbered(count: int, start: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(start, start + count)]


# -- leases


def test_a_leased_record_is_invisible_to_its_group_until_the_lease_ends() -> None:
    node = queue_node()
    node.put("orders", b"a")
    (first,) = node.receive()
    assert (first.attempt, first.deadline_ms) == (1, node.clock.now_ms() + LEASE_MS)
    node.pass_ms(LEASE_MS - 1)
    assert node.received(consumer="two") == []
    node.pass_ms(1)
    (second,) = node.receive(consumer="two")
    assert (second.value, second.attempt) == (b"a", 2)
    assert second.first_delivered_ms == first.first_delivered_ms


def test_a_consumer_may_choose_how_long_its_leases_are() -> None:
    node = queue_node(lease_ms="10000")
    node.put("orders", b"a", b"b")
    assert node.received(most=1, lease_ms=500) == [b"a"]
    assert node.received(most=1) == [b"b"]
    node.pass_ms(500)
    assert node.received(most=1) == [b"a"]
    node.pass_ms(9500)
    assert node.received() == [b"b"]


def test_options_of_a_group_go_before_those_of_its_topic_and_hold_at_once() -> None:
    node = queue_node(lease_ms="10000")
    node.put("orders", b"a")
    assert [each.deadline_ms - node.clock.now_ms() for each in node.receive()] == [10_000]
    node.reply(lambda done: node.broker.queues.set_options("workers", {"lease.ms": "500"}, done))
    node.put("orders", b"b")
    assert [each.deadline_ms - node.clock.now_ms() for each in node.receive()] == [500]
    node.reply(lambda done: node.broker.queues.set_options("workers", {"lease.ms": None}, done))
    node.put("orders", b"c")
    assert [each.deadline_ms - node.clock.now_ms() for each in node.receive()] == [10_000]


def test_unacked_records_are_delivered_again_after_a_restart() -> None:
    node = queue_node()
    node.put("orders", *numbered(4))
    node.ack(*node.receive(most=4)[1:3])
    for how in ("stop", "kill", "power"):
        node = node.restarted(how)
        assert node.received() == [b"0", b"3"]


# -- who gets what


def test_consumers_of_a_group_share_its_records_and_none_comes_twice() -> None:
    node = queue_node(partitions=3)
    node.put("orders", *numbered(60))
    got = [value for _ in range(4) for consumer in "abcde" for value in node.received(consumer=consumer, most=3)]
    assert sorted(value or b"" for value in got) == sorted(numbered(60))


def test_more_consumers_than_partitions_all_get_work() -> None:
    node = queue_node()
    node.put("orders", *numbered(20))
    by_consumer = {number: node.received(consumer=f"c{number}", most=2) for number in range(10)}
    assert [len(each) for each in by_consumer.values()] == [2] * 10
    assert sorted(value or b"" for each in by_consumer.values() for value in each) == sorted(numbered(20))


def test_two_groups_know_nothing_of_each_other() -> None:
    node = queue_node()
    node.put("orders", b"a", b"b")
    held = node.receive(group="g")
    assert node.received(group="h") == [b"a", b"b"]
    node.ack(*held)
    node.settle(node.receive(group="i"), How.REJECT)
    node.pass_ms(LEASE_MS)
    assert node.received(group="g") == []
    assert node.received(group="h") == [b"a", b"b"]


def test_one_receive_takes_from_many_partitions_and_begins_with_each_in_turn() -> None:
    node = queue_node(partitions=3)
    for partition in range(3):
        node.put("orders", *(NewMessage(b"%d%d" % (partition, number), partition=partition) for number in range(3)))
    firsts = {node.receive(most=1)[0].partition for _ in range(3)}
    assert firsts == {0, 1, 2}
    assert len(node.received(most=100)) == 6


def test_what_is_asked_for_is_a_limit_over_all_partitions() -> None:
    node = queue_node(partitions=3)
    node.put("orders", *numbered(30))
    assert [len(node.received(most=most)) for most in (7, 11, 100)] == [7, 11, 12]


def test_a_consumer_holds_no_more_than_it_may() -> None:
    node = queue_node(unacked_max="5")
    node.put("orders", *numbered(12))
    held = node.receive(most=100)
    assert [each.value for each in held] == numbered(5)
    assert node.received(most=100) == []
    assert node.received(consumer="two", most=100) == numbered(5, 5)
    node.ack(*held[:2])
    assert node.received(most=100) == numbered(2, 10)


# -- order by key


def test_with_order_by_key_no_two_records_of_a_key_are_leased_at_once() -> None:
    node = queue_node(lease_order="key")
    node.put("orders", *(NewMessage(b"%d" % number, key=b"ab"[number % 2 :][:1]) for number in range(6)), b"free")
    first = node.receive()
    assert [each.value for each in first] == [b"0", b"1", b"free"]
    assert node.received(consumer="two") == []
    node.ack(first[0])
    assert node.received(consumer="two") == [b"2"]
    node.settle([first[1]], How.RETRY, delay_ms=1000)
    assert node.received(consumer="two") == []
    node.pass_ms(1000)
    assert node.received() == [b"1"]


def test_a_rejected_record_lets_the_next_of_its_key_go() -> None:
    node = queue_node(lease_order="key")
    node.put("orders", NewMessage(b"1", key=b"k"), NewMessage(b"2", key=b"k"))
    node.settle(node.receive(), How.REJECT)
    assert node.received() == [b"2"]


# -- where a group begins


def test_a_new_group_begins_at_the_end_that_it_asks_for() -> None:
    node = queue_node()
    node.put("orders", b"old")
    assert node.received(group="all", start="earliest") == [b"old"]
    assert node.received(group="new", start="latest") == []
    node.put("orders", b"new")
    assert node.received(group="all", start="latest") == [b"new"]
    assert node.received(group="new", start="earliest") == [b"new"]


def test_the_option_of_a_group_says_where_it_begins() -> None:
    node = queue_node()
    node.put("orders", b"old")
    node.reply(lambda done: node.broker.queues.set_options("workers", {"start": "latest"}, done))
    assert node.received(start="earliest") == []
    node.put("orders", b"new")
    assert node.received() == [b"new"]


def test_where_a_group_began_is_kept_over_a_restart() -> None:
    node = queue_node()
    node.put("orders", b"old")
    assert node.received(start="latest") == []
    node = node.restarted("power")
    node.put("orders", b"new")
    assert node.received(start="earliest") == [b"new"]


# -- what is not there


def test_only_committed_records_are_delivered_and_aborted_ones_are_passed_over() -> None:
    node = queue_node()
    submit = node.broker.transactions.submit
    producer = node.ask(submit, InitProducer("shop", 600_000))
    who = {"producer_id": producer.producer_id, "producer_epoch": producer.epoch, "transactional": True}
    sequence = 0
    for value, commit in ((b"aborted", False), (b"committed", True)):
        assert (
            node.ask(submit, AddPartitions("shop", producer.producer_id, producer.epoch, (("orders", 0),))).code
            is Code.NONE
        )
        batch = build_batch([(1000, None, value, [])] * 2, base_sequence=sequence, **who)
        node.broker.publisher.publish("orders", 0, memoryview(batch))
        sequence += 2
        node.put("orders", b"behind " + value)
        assert node.received() == []
        assert node.ask(submit, EndTransaction("shop", producer.producer_id, producer.epoch, commit)).code is Code.NONE
        expected = [b"behind aborted"] if not commit else [b"committed", b"committed", b"behind committed"]
        assert node.received() == expected


def test_gaps_in_the_log_are_passed_over() -> None:
    node = queue_node()
    node.put("orders", *(NewMessage(b"later", delay_ms=10_000_000) for _ in range(12)), b"visible")
    assert node.received(most=1) == [b"visible"]
    node.put("orders", b"next")
    assert node.received(most=1) == [b"next"]


def test_a_record_that_the_disk_does_not_give_back_was_not_delivered() -> None:
    node = queue_node()
    node.put("orders", b"a")
    assert node.received() == [b"a"]  # lets the group observe it
    node.pass_ms(LEASE_MS)
    fault = node.disk.faults.add("read", 5, prefix="logs/orders/", forever=True)
    node.broker.topics.replica("orders", 0).log.segments.active.found = None  # as if others were looked for since
    assert [len(node.park().errors) for _ in range(5)] == [1] * 5
    assert fault.hits >= 5
    node.disk.faults.clear()
    assert [(each.value, each.attempt) for each in node.receive()] == [(b"a", 2)]


def test_what_retention_or_a_delete_took_is_not_waited_for() -> None:
    node = queue_node()
    node.put("orders", *numbered(5))
    node.put("orders", *numbered(5, 5))
    held = node.receive(most=3)
    node.broker.topics.replica("orders", 0).delete_before(7)
    assert node.received(most=100) == numbered(3, 7)
    assert [each.offset for each in held] == [0, 1, 2]
    assert node.broker.queues.measure(Place("workers", "orders", 0)).start_offset == 7


# -- times to live


def test_an_expired_record_is_not_delivered() -> None:
    node = queue_node(message_ttl_ms="1000")
    now_ms = node.clock.now_ms()
    node.put("orders", b"topic's", NewMessage(b"own", expires_at_ms=now_ms + 3000))
    node.put("orders", NewMessage(b"over", expires_at_ms=now_ms - 1))
    node.pass_ms(1000)
    assert node.received(lease_ms=500) == [b"own"]
    node.pass_ms(2500)
    assert node.received() == []
    assert sorted(value or b"" for value in node.values("orders.dlq")) == [b"over", b"own", b"topic's"]


@pytest.mark.parametrize(("ttl_ms", "timestamp"), [(60_000, LONG_MAX), (LONG_MAX, None), (LONG_MAX, LONG_MAX)])
def test_times_as_large_as_a_number_can_be_keep_no_queue_from_its_records(ttl_ms: int, timestamp: int | None) -> None:
    """A producer chooses the timestamp: it must not be able to stop all groups of a topic."""
    node = queue_node(message_ttl_ms=str(ttl_ms))
    node.put("orders", NewMessage(b"odd", timestamp_ms=timestamp), NewMessage(b"later", delay_ms=1000), b"even")
    assert node.received() == [b"odd", b"even"]
    node.pass_ms(2000)
    assert node.received(group="others") == [b"odd", b"even", b"later"]


def test_a_record_that_expires_while_it_is_leased_may_still_be_acked() -> None:
    node = queue_node(message_ttl_ms="1000")
    node.put("orders", b"a", b"b")
    acked, lost = node.receive(lease_ms=5000)
    node.pass_ms(2000)
    node.ack(acked)
    node.pass_ms(3000)
    assert node.received() == []
    assert node.values("orders.dlq") == [lost.value]


# -- how much


def test_bytes_limit_an_answer_but_one_batch_always_comes() -> None:
    node = queue_node()
    for value in numbered(5):
        node.put("orders", value * 1000)
    sizes = [len(node.received(most=100, bytes_max=2500)) for _ in range(4)]
    assert sizes == [2, 2, 1, 0]
    node.put("orders", *(value * 1000 for value in numbered(3)))
    assert len(node.received(most=100, bytes_max=1)) == 3


def test_what_did_not_fit_counts_as_never_delivered() -> None:
    node = queue_node()
    for value in numbered(6):
        node.put("orders", value * 1000)
    assert len(node.received(most=100, bytes_max=2500)) == 2
    rest = node.receive(most=100)
    assert [(each.value, each.attempt) for each in rest] == [(value * 1000, 1) for value in numbered(4, 2)]


def test_a_large_backlog_is_looked_at_in_turns_and_delivered_in_full() -> None:
    node = queue_node(unacked_max="100000", message_ttl_ms="3600000")
    big = b"x" * 4000
    for _ in range(24):
        node.broker.publisher.publish("orders", 0, data(*[big] * 100, timestamp=node.clock.now_ms()))
    node.put("orders", NewMessage(b"urgent", headers=[("gq-priority", b"critical")]))
    assert node.broker.topics.replica("orders", 0).size_bytes > 8 * 1024 * 1024
    offsets: list[int] = []
    while got := node.receive(most=500):
        offsets += [each.offset for each in got]
        node.ack(*got)
    assert sorted(offsets) == list(range(2401))
    assert offsets.index(2400) == 500  # the first once it was seen


# -- nothing to receive from


@pytest.mark.parametrize(("topic", "partition"), [("nowhere", 0), ("orders", 7)])
def test_a_place_that_is_not_there_answers_so_and_the_others_are_served(topic: str, partition: int) -> None:
    node = queue_node()
    node.put("orders", b"a")
    replies: list[Any] = []
    node.broker.receiver.receive(
        ReceiveRequest("workers", "one", [(topic, partition), ("orders", 0)], 10, wait_ms=WAIT_MS), replies.append
    )
    node.commit()
    served, failed = replies[0]
    assert [each.value for each in node.opened(served, "workers")] == [b"a"]
    assert isinstance(failed.error, Refused)
    assert failed.error.code is Code.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("group_id", ["", "g" * 256, "ü" * 128])
def test_a_group_needs_a_name_that_fits_a_receipt(group_id: str) -> None:
    node = queue_node()
    with pytest.raises(GoQueueError, match="1 to 255 bytes"):
        node.park(group=group_id)
