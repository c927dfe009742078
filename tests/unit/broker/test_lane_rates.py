from goqueue.broker.queues.taking import ReceiveRequest
from goqueue.machines.deliveries.commands import Place
from goqueue.model.lanes import Lane
from goqueue.records.messages import NewMessage
from tests.brokers import TestBroker

PLACE = Place("workers", "orders", 0)


def send(node: TestBroker, lane: Lane, count: int) -> None:
    node.broker.sender.send("orders", [NewMessage(b"x", lane=lane)] * count, lambda sent: None)
    node.commit()


def receive(node: TestBroker, count: int) -> None:
    node.broker.receiver.receive(ReceiveRequest("workers", "one", [("orders", 0)], count), lambda leased: None)
    node.commit()


def test_lanes_are_counted_and_their_rates_are_measured_between_two_looks_f168() -> None:
    node = TestBroker()
    node.create("orders")
    send(node, Lane.HIGH, 10)
    receive(node, 4)
    first = node.broker.queues.lanes(PLACE)
    assert (first.ready, first.in_flight) == ((0, 6, 0, 0, 0), (0, 4, 0, 0, 0))
    assert first.enqueue_rate == first.dequeue_rate == (0.0,) * 5
    send(node, Lane.LOW, 20)
    receive(node, 6)
    node.clock.advance(2_000)
    second = node.broker.queues.lanes(PLACE)
    assert list(second.enqueue_rate) == [0, 0, 0, 10, 0]
    assert list(second.dequeue_rate) == [0, 3, 0, 0, 0]
    node.clock.advance(100)
    assert node.broker.queues.lanes(PLACE) == second
    node.clock.advance(2_000)
    assert node.broker.queues.lanes(PLACE).enqueue_rate == (0.0,) * 5
