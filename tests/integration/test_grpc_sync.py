"""The gRPC client without `async`, on the real process."""

import threading
from collections.abc import Iterator

import pytest

from goqueue.client.errors import Closed
from goqueue.client.grpc import GrpcRefused
from goqueue.client.grpc.client import new_request
from goqueue.client.grpc.sync import GrpcClient
from goqueue.wire.grpc.publish_pb2 import PublishRequest
from goqueue.wire.grpc.topic_pb2 import DescribeTopicRequest
from tests.integration.conftest import CreateTopic
from tests.integration.process import DEADLINE_S, Node

COUNT = 100


def test_what_is_streamed_in_is_read_and_worked_off(node: Node, make_topic: CreateTopic, group: str) -> None:
    topic = make_topic(2)
    ones = [new_request(topic, b"%d" % number) for number in range(COUNT)]
    lists = [[new_request(topic, b"%d" % number) for number in range(COUNT, 2 * COUNT)]]
    values = {b"%d" % number for number in range(2 * COUNT)}
    with GrpcClient(node.grpc, channels=2) as client:
        answers = list(client.publish_stream([*ones, *lists]))
        assert sorted(int(each.correlation_id) for each in answers) == list(range(COUNT + 1))
        assert {each.value for each in client.consume(topic, until_end=True)} == values
        done = set()
        with client.subscribe(group, [topic], max_messages=10) as subscription:
            for message in subscription:
                done.add(message.value)
                client.ack(message)
                if done == values:
                    break
            assert subscription.member_id
            assert sorted(subscription.assigned) == [(topic, 0), (topic, 1)]
        told = client.ask(DescribeTopicRequest(name=topic))
        assert sum(each.end_offset for each in told.partitions) == 2 * COUNT


def test_messages_are_settled_one_way_or_another(node: Node, make_topic: CreateTopic, group: str) -> None:
    topic = make_topic(1)
    with GrpcClient(node.grpc) as client:
        for value in (b"again", b"bad", b"good"):
            client.publish(topic, value)
        with client.subscribe(group, [topic]) as subscription:
            messages = iter(subscription)
            again, bad, good = (next(messages) for _ in range(3))
            assert client.reject(bad, "why not").success
            assert client.extend(good, "1h").success
            assert client.nack(again, "0s").success
            once_more = next(messages)
            assert (once_more.value, once_more.retry_count) == (b"again", 1)
            assert client.ack_all([good, once_more]).success_count == 2
            for settle in (client.ack, client.nack, client.reject):
                with pytest.raises(GrpcRefused, match="settled before") as caught:
                    settle(good)
                assert caught.value.code == "ALREADY_SETTLED"
        with pytest.raises(GrpcRefused, match="no topic name"):
            client.publish("no name!", b"x")
    with pytest.raises(Closed):
        client.publish(topic, b"x")


@pytest.mark.parametrize("is_stream", [True, False])
def test_whoever_waits_hears_of_the_close(node: Node, make_topic: CreateTopic, group: str, is_stream: bool) -> None:
    topic = make_topic(1)
    client = GrpcClient(node.grpc).start()
    heard: list[BaseException] = []
    waiting, closed = threading.Event(), threading.Event()

    def read() -> None:
        try:
            with client.subscribe(group, [topic]) as subscription:
                for _ in subscription.events():  # the assignment, and then nothing
                    waiting.set()
        except Closed as error:
            heard.append(error)

    def publish() -> None:
        def messages() -> Iterator[PublishRequest]:
            yield new_request(topic, b"x")
            waiting.set()
            closed.wait(DEADLINE_S)

        try:
            list(client.publish_stream(messages()))
        except Closed as error:
            heard.append(error)

    thread = threading.Thread(target=read if is_stream else publish)
    thread.start()
    assert waiting.wait(DEADLINE_S)
    client.close()
    client.close()
    thread.join(DEADLINE_S)
    closed.set()
    assert not thread.is_alive()
    assert len(heard) == 1
