"""The sync face: the same client for threads."""

import threading
from concurrent.futures import wait

import pytest

from goqueue.client import Closed, ConnectionLost, DeliveryFailed, InvalidArgument
from goqueue.client.sync import Consumer, Job, Producer, Worker
from tests.integration.conftest import CreateTopic
from tests.integration.process import DEADLINE_S, Node


def test_send_and_read(node: Node, make_topic: CreateTopic, group: str) -> None:
    topic = make_topic(3)
    with Producer(node.address) as producer:
        assert producer.send(topic, b"0", key=b"k").offset == 0
        assert len(producer.send_many(topic, [b"%d" % number for number in range(1, 500)])) == 499
        with pytest.raises(InvalidArgument):
            producer.send(topic, "text")  # type: ignore[arg-type]
    with Consumer(node.address, topic, group=group) as consumer:
        first = [next(consumer) for _ in range(100)]
        assert consumer.assignment == {(topic, partition) for partition in range(3)}
    rest = []
    with Consumer(node.address, topic, group=group) as consumer:
        for message in consumer:
            rest.append(message)
            if len(rest) == 400:
                break
        consumer.seek(topic, 0, 0)
        assert next(consumer).offset == 0
        consumer.pause()
        consumer.resume()
        assert consumer.position(topic, 0) == 1
    assert sorted(int(one.value or b"") for one in first + rest) == list(range(500))


def test_many_threads_send_through_one_producer(node: Node, make_topic: CreateTopic) -> None:
    topic = make_topic(3)
    sent: list[tuple[int, int, bytes]] = []

    with Producer(node.address, buffer_bytes_max=10_000) as producer:

        def send(name: int) -> None:
            futures = []
            for number in range(300):
                value = b"%d %d" % (name, number)
                futures.append((value, producer.post(topic, value, partition=name % 3)))
            for value, future in futures:
                receipt = future.result(DEADLINE_S)
                sent.append((receipt.partition, receipt.offset, value))

        threads = [threading.Thread(target=send, args=(name,)) for name in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    with Consumer(node.address, topic) as consumer:
        found = [next(consumer) for _ in range(1800)]
        assert consumer.poll(timeout="50ms") == []
    assert sorted((one.partition, one.offset, one.value) for one in found) == sorted(sent)
    for name in range(6):
        mine = [int((one.value or b"").split()[1]) for one in found if (one.value or b"").startswith(b"%d " % name)]
        assert mine == list(range(300)), "the order of one thread"


def test_close_completes_what_was_posted(node: Node, make_topic: CreateTopic) -> None:
    topic = make_topic(3)
    producer = Producer(node.address, linger_ms=60_000).start()
    futures = [producer.post(topic, b"%d" % number) for number in range(1000)]
    producer.close()
    producer.close()
    assert not wait(futures, 0).not_done
    assert len({(future.result().partition, future.result().offset) for future in futures}) == 1000
    with pytest.raises(Closed):
        producer.send(topic, b"")


def test_whoever_waits_hears_of_the_close(node: Node, make_topic: CreateTopic, group: str) -> None:
    consumer = Consumer(node.address, make_topic(1), group=group).start()
    heard: list[BaseException] = []

    def read() -> None:
        try:
            next(consumer)
        except Closed as error:
            heard.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    thread.join(0.1)
    assert thread.is_alive()
    consumer.close()
    thread.join(DEADLINE_S)
    assert len(heard) == 1


def test_a_transaction(node: Node, make_topic: CreateTopic, group: str) -> None:
    topic, target = make_topic(1), make_topic(1)
    with Producer(node.address, transactional_id=f"sync-{topic}") as producer:
        with producer.transaction():
            producer.send_many(topic, [b"1", b"2"])
        with pytest.raises(ZeroDivisionError), producer.transaction():
            producer.send(topic, bytes(1 // 0))
        with Consumer(node.address, topic, group=group, auto_commit=False) as consumer:
            with producer.transaction():
                for _ in range(2):
                    producer.post(target, next(consumer).value)
                producer.send_offsets(consumer)
            assert consumer.committed(topic, 0) == 2
    with Consumer(node.address, target) as consumer:
        assert [next(consumer).value for _ in range(2)] == [b"1", b"2"]


def test_failures_are_raised(own_node: Node, make_topic: CreateTopic) -> None:
    topic = make_topic(1, cleanup_policy="compact")
    with Producer(own_node.address) as producer:
        future = producer.post(topic, b"without a key")
        with pytest.raises(DeliveryFailed, match="takes only records with a key"):
            producer.flush()
        assert future.exception(DEADLINE_S) is not None
    with pytest.raises(ConnectionLost):
        Producer("127.0.0.1:1", request_timeout="100ms").start()
    with pytest.raises(Closed, match="not started"):
        Producer(own_node.address).send(topic, b"")


def test_a_handler_that_exits_has_failed_and_the_worker_goes_on(
    node: Node, make_topic: CreateTopic, group: str
) -> None:
    topic = make_topic(1)
    with Producer(node.address) as producer:
        producer.send(topic, b"")
    worker = Worker(node.address, topic, group=group, retry=lambda attempt: 0)
    attempts: list[int] = []

    @worker.handle
    def exit_once(job: Job) -> None:
        attempts.append(job.attempt)
        if job.attempt == 1:
            raise SystemExit(3)
        threading.Thread(target=worker.stop).start()

    running = threading.Thread(target=worker.run, daemon=True)
    running.start()
    running.join(DEADLINE_S)
    assert not running.is_alive()
    assert attempts == [1, 2]


def test_a_stop_before_the_start_is_not_forgotten(node: Node, make_topic: CreateTopic, group: str) -> None:
    worker = Worker(node.address, make_topic(1), group=group)
    worker.handle(lambda job: None)
    worker.stop()
    running = threading.Thread(target=worker.run, daemon=True)
    running.start()
    running.join(DEADLINE_S)
    assert not running.is_alive()
