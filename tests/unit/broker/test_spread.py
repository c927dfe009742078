"""Several nodes: whichever is asked, messages go to the leaders of their partitions, come from them, and are settled by
them; and what is lost on the way is told or done again, never both.
"""

from typing import Any

from goqueue.broker.forwarding.forwarding import FORWARD, PATIENCE_MS
from goqueue.broker.queues.settle import Settled, Wanted
from goqueue.broker.shards import SHARDS
from goqueue.machines.deliveries.commands import GiveBack, How, Place, Verdict
from goqueue.model.errors import Indeterminate, MalformedReceipt, NotReached
from goqueue.model.receipts import decode_receipt
from goqueue.model.transactions import Producer
from goqueue.records.messages import NewMessage, Sent
from goqueue.wire.kafka import peering
from tests.unit.broker.spread_nodes import KEY, SpreadNodes

PARTITIONS = 4


def to_all() -> list[NewMessage]:
    return [NewMessage(b"p%d" % number, partition=number) for number in range(PARTITIONS)]


def test_the_api_has_the_number_that_nodes_know() -> None:
    assert FORWARD == peering.FORWARD


# -- publishing


def test_each_message_is_published_by_the_leader_of_its_partition() -> None:
    nodes = SpreadNodes(3)
    sent = nodes.send(0, *to_all())
    assert [(each.partition, each.offset, each.error) for each in sent] == [(n, 0, None) for n in range(PARTITIONS)]
    for number in range(PARTITIONS):
        for node_number, node in enumerate(nodes.all):
            assert node.values("orders", number) == ([b"p%d" % number] if node_number == number % 3 else [])


def test_one_message_that_is_refused_elsewhere_does_not_harm_others() -> None:
    nodes = SpreadNodes()
    large = NewMessage(bytes(2_000_000), partition=1)
    sent = nodes.send(
        0, NewMessage(b"a", partition=0), large, NewMessage(b"b", partition=1), NewMessage(b"c", partition=9)
    )
    assert [each.error is None for each in sent] == [True, False, True, False]
    assert nodes.all[1].values("orders", 1) == [b"b"]


def test_a_leader_that_is_not_reached_is_looked_for_elsewhere() -> None:
    nodes = SpreadNodes()
    nodes.cuts[1].is_down = True
    replies: list[list[Sent]] = []
    nodes.all[0].broker.sender.send("orders", [NewMessage(b"a", partition=1)], replies.append)
    nodes.pass_ms(200)
    assert replies == []
    nodes.leaders["orders", 1] = 0
    nodes.revision += 1
    nodes.pass_ms(300)
    ((sent,),) = replies
    assert sent.error is None
    assert nodes.all[0].values("orders", 1) == [b"a"]


def test_after_a_while_without_a_leader_it_may_be_tried_again() -> None:
    nodes = SpreadNodes()
    nodes.leaders["orders", 1] = None
    replies: list[list[Sent]] = []
    nodes.all[0].broker.sender.send("orders", [NewMessage(b"a", partition=1)], replies.append)
    nodes.pass_ms(4000)
    assert replies == []
    nodes.pass_ms(1000)
    ((sent,),) = replies
    assert isinstance(sent.error, NotReached)
    assert sent.error.retriable


def test_a_publish_whose_answer_was_lost_is_never_repeated() -> None:
    nodes = SpreadNodes()
    nodes.cuts[1].loses_answers = 1
    (sent,) = nodes.send(0, NewMessage(b"a", partition=1))
    assert isinstance(sent.error, Indeterminate)
    assert nodes.all[1].values("orders", 1) == [b"a"]


def test_a_node_that_does_not_lead_publishes_nothing() -> None:
    nodes = SpreadNodes()
    nodes.all[0].broker.sender.send("orders", [NewMessage(b"a", partition=1)], lambda sent: None)
    nodes.leaders["orders", 1] = 0  # before it is asked
    nodes.revision += 1
    nodes.run()
    assert nodes.all[1].values("orders", 1) == []


# -- publishing as a producer that is known by its number


def producer_of(nodes: SpreadNodes, transactional_id: str | None) -> Producer:
    """One that has begun a transaction on the first node, if it has a name."""
    steps = nodes.all[0].broker.transaction_steps
    made = nodes.reply(lambda done: steps.init(transactional_id, 60_000, done))
    producer = Producer(made.producer_id, made.epoch)
    if transactional_id is not None:
        nodes.reply(lambda done: steps.begin(producer, done))
    return producer


def publish_as(nodes: SpreadNodes, number: int, producer: Producer) -> Any:
    replies: list[Any] = []
    steps = nodes.all[number].broker.transaction_steps
    steps.publish_as(producer, "orders", NewMessage(b"x", partition=0), None, replies.append)
    nodes.pass_ms(PATIENCE_MS + 1000)
    (reply,) = replies
    return reply


def test_a_message_of_a_transaction_is_part_of_it_whichever_node_is_asked() -> None:
    nodes = SpreadNodes()
    producer = producer_of(nodes, "writer")
    placed = publish_as(nodes, 1, producer)
    replica = nodes.all[0].broker.topics.replica("orders", 0)
    assert (placed.offset, replica.high_watermark, replica.last_stable_offset) == (0, 1, 0)


def test_a_message_that_may_be_of_a_transaction_is_not_published_without_it() -> None:
    nodes = SpreadNodes()
    producer = producer_of(nodes, "writer")
    nodes.cuts[0].is_down = True
    nodes.leaders["orders", 0] = 1
    assert isinstance(publish_as(nodes, 1, producer), NotReached)
    assert nodes.all[1].broker.topics.replica("orders", 0).end_offset == 0


def test_a_producer_without_transactions_publishes_through_any_node() -> None:
    nodes = SpreadNodes()
    producer = producer_of(nodes, None)
    for number in range(SHARDS):  # in a cluster they are made at its first start
        nodes.all[0].broker.transactions.coordinators.of_or_new(number)
    nodes.all[1].broker.transactions.ids._taken_end = lambda: producer.producer_id + 1000
    for offset in range(2):
        assert publish_as(nodes, 1, producer).offset == offset
    replica = nodes.all[0].broker.topics.replica("orders", 0)
    assert replica.last_stable_offset == 2


# -- receiving


def test_all_messages_come_through_any_node() -> None:
    nodes = SpreadNodes(3)
    nodes.send(1, *to_all())
    got = nodes.drain(2)
    assert sorted(each.value or b"" for each in got) == [b"p0", b"p1", b"p2", b"p3"]
    assert nodes.drain(0) == []
    assert nodes.settle(0, *(Wanted(each.receipt) for each in got)) == [Verdict.DONE] * PARTITIONS


def test_a_receive_that_waits_gets_what_comes_to_another_node() -> None:
    nodes = SpreadNodes(3)
    parked = nodes.park(0, wait_ms=20_000)
    assert not parked.is_over
    nodes.send(2, NewMessage(b"late", partition=1))
    assert parked.values == [b"late"]


def test_what_was_leased_for_an_answer_that_came_too_late_is_given_back() -> None:
    nodes = SpreadNodes(3)
    parked = nodes.park(0, wait_ms=20_000)
    for number in (1, 2):  # both at once
        node = nodes.all[number]
        node.broker.sender.send_here("orders", [NewMessage(b"n%d" % number, partition=number)], lambda sent: None)
    nodes.run()
    (first,) = parked.values
    (other,) = nodes.drain(1)
    assert {first, other.value} == {b"n1", b"n2"}
    assert other.attempt == 1


def test_a_receive_that_is_cancelled_leases_nothing_anywhere() -> None:
    nodes = SpreadNodes(3)
    parked = nodes.park(0, wait_ms=20_000)
    parked.cancel()
    nodes.run()
    nodes.send(0, NewMessage(b"a", partition=1))
    (got,) = nodes.drain(2)
    assert (got.value, got.attempt) == (b"a", 1)


def test_a_receive_that_waits_finds_the_next_leader() -> None:
    nodes = SpreadNodes(3)
    nodes.cuts[1].is_down = True
    parked = nodes.park(0, wait_ms=20_000)
    nodes.pass_ms(500)
    nodes.leaders["orders", 1] = 2
    nodes.revision += 1
    nodes.pass_ms(500)
    nodes.send(2, NewMessage(b"a", partition=1))
    nodes.pass_ms(500)
    assert parked.values == [b"a"]


def test_a_receive_that_finds_nothing_ends_in_time() -> None:
    nodes = SpreadNodes(3)
    parked = nodes.park(0, wait_ms=1000)
    nodes.pass_ms(900)
    assert not parked.is_over
    nodes.pass_ms(300)
    assert parked.got == []


def test_one_node_that_is_down_hides_no_messages_of_others() -> None:
    nodes = SpreadNodes(3)
    nodes.send(0, *to_all())
    nodes.cuts[1].is_down = True
    assert sorted(each.value or b"" for each in nodes.drain(0)) == [b"p0", b"p2", b"p3"]


# -- settling


def test_receipts_are_settled_by_their_leaders_in_the_order_of_the_request() -> None:
    nodes = SpreadNodes(3)
    nodes.send(0, *to_all())
    got = nodes.drain(0)
    wanted = [Wanted(got[0].receipt), Wanted("nonsense"), Wanted(got[1].receipt, How.REJECT), Wanted(got[0].receipt)]
    done, malformed, rejected, repeated = nodes.settle(1, *wanted)
    assert (done, rejected, repeated) == (Verdict.DONE, Verdict.DONE, Verdict.REPEATED)
    assert isinstance(malformed, MalformedReceipt)


def test_a_receipt_names_the_epoch_in_which_its_lease_was_given() -> None:
    nodes = SpreadNodes()
    nodes.send(0, NewMessage(b"a", partition=1))
    nodes.all[1].broker.topics.replica("orders", 1).leader_epoch = 3
    nodes.all[0].broker.topics.replica("orders", 1).leader_epoch = 4  # it is the next leader, and knows it already
    (got,) = nodes.drain(0)
    assert decode_receipt(got.receipt, KEY).epoch == 3


def test_a_settlement_whose_answer_was_lost_is_repeated_and_counts_as_done() -> None:
    nodes = SpreadNodes()
    nodes.send(0, NewMessage(b"a", partition=1))
    (got,) = nodes.drain(0)
    nodes.cuts[1].loses_answers = 1
    assert nodes.settle(0, Wanted(got.receipt)) == [Verdict.DONE]


def test_one_settlement_tells_what_its_leader_knows() -> None:
    nodes = SpreadNodes()
    nodes.send(0, NewMessage(b"a", partition=1), NewMessage(b"b", partition=1))
    got = nodes.drain(0)
    settler = nodes.all[0].broker.settler
    settled = nodes.reply(lambda done: settler.settle_one(Wanted(got[0].receipt), nodes.clock.now_ms(), done))
    assert isinstance(settled, Settled)
    assert (settled.verdict, settled.place, settled.settled_below, settled.leased) == (
        Verdict.DONE,
        Place("workers", "orders", 1),
        1,
        1,
    )


def test_what_a_consumer_that_left_holds_is_given_back_on_all_nodes() -> None:
    nodes = SpreadNodes(3)
    nodes.send(0, *to_all())
    assert len(nodes.drain(0)) == PARTITIONS
    nodes.all[2].broker.queues.give_back(GiveBack("workers", "one"))
    nodes.run()
    assert len(nodes.drain(1)) == PARTITIONS
