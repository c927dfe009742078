"""One topic, written and read at the same time by boto3, confluent-kafka, HTTP and our own client."""

import asyncio
from collections import Counter

import confluent_kafka as ck
import httpx
import pytest

from goqueue.client import Consumer, Job, Producer, Worker
from tests.integration.process import Node
from tests.integration.sqs_door import client_of

pytestmark = pytest.mark.smoke

EACH = 100
WRITERS = ("boto3", "confluent-kafka", "http", "goqueue")
ALL = Counter(f"{writer}-{number}".encode() for writer in WRITERS for number in range(EACH))


def values_of(writer: str) -> list[str]:
    return [f"{writer}-{number}" for number in range(EACH)]


# -- writers


def write_sqs(url: str, queue: str) -> None:
    sqs = client_of(url)
    values = values_of("boto3")
    for first in range(0, EACH, 10):
        entries = [{"Id": str(number), "MessageBody": values[number]} for number in range(first, first + 10)]
        assert len(sqs.send_message_batch(QueueUrl=queue, Entries=entries)["Successful"]) == 10


def write_kafka(address: str) -> None:
    producer = ck.Producer({"bootstrap.servers": address, "enable.idempotence": True})
    for value in values_of("confluent-kafka"):
        producer.produce("orders", value.encode())
    assert producer.flush(30) == 0


async def write_http(url: str) -> None:
    async with httpx.AsyncClient(base_url=url) as http:
        reply = await http.post(
            "/topics/orders/messages", json={"messages": [{"value": each} for each in values_of("http")]}
        )
        assert not [each for each in reply.json()["results"] if "error" in each]


async def write_ours(address: str) -> None:
    async with Producer(address) as producer:
        await producer.send_many("orders", [value.encode() for value in values_of("goqueue")])


# -- readers, each with a group of its own


def read_sqs(url: str, queue: str) -> Counter[bytes]:
    sqs, found = client_of(url), Counter[bytes]()
    while sum(found.values()) < sum(ALL.values()):
        messages = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, WaitTimeSeconds=10)["Messages"]
        found.update(each["Body"].encode() for each in messages)
        entries = [{"Id": str(number), "ReceiptHandle": each["ReceiptHandle"]} for number, each in enumerate(messages)]
        assert len(sqs.delete_message_batch(QueueUrl=queue, Entries=entries)["Successful"]) == len(messages)
    return found


def read_kafka(address: str) -> Counter[bytes]:
    consumer = ck.Consumer({"bootstrap.servers": address, "group.id": "kafka", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    found = Counter[bytes]()
    while sum(found.values()) < sum(ALL.values()):
        for message in consumer.consume(100, 1):
            assert message.error() is None, message.error()
            found[message.value() or b""] += 1
    consumer.close()
    return found


async def read_http(url: str) -> Counter[bytes]:
    found = Counter[bytes]()
    async with httpx.AsyncClient(base_url=url, timeout=30) as http:
        while sum(found.values()) < sum(ALL.values()):
            wanted = {"group": "http", "max_messages": 50, "wait": "10s"}
            messages = (await http.post("/topics/orders/receive", json=wanted)).json()["messages"]
            found.update(each["value"].encode() for each in messages)
            receipts = [each["receipt_handle"] for each in messages]
            reply = await http.post("/messages/ack/batch", json={"receipt_handles": receipts})
            assert all(each["success"] for each in reply.json()["results"]), reply.text
    return found


async def work_ours(address: str) -> Counter[bytes]:
    found = Counter[bytes]()
    worker = Worker(address, "orders", group="workers")

    @worker.handle
    async def count(job: Job) -> None:
        found[job.value or b""] += 1
        if sum(found.values()) == sum(ALL.values()):
            worker.stop()

    await worker.run()
    return found


async def read_ours(address: str) -> Counter[bytes]:
    found = Counter[bytes]()
    async with Consumer(address, "orders", group="readers") as consumer:
        while sum(found.values()) < sum(ALL.values()):
            found.update(message.value or b"" for message in await consumer.poll())
    return found


def test_every_reader_gets_what_every_writer_wrote_once(own_node: Node) -> None:
    url, address = own_node.url, own_node.address
    queue = client_of(url).create_queue(QueueName="orders")["QueueUrl"]

    async def all_at_once() -> None:
        *found, _, _, _, _ = await asyncio.gather(
            asyncio.to_thread(read_sqs, url, queue),
            asyncio.to_thread(read_kafka, address),
            read_http(url),
            work_ours(address),
            read_ours(address),
            asyncio.to_thread(write_sqs, url, queue),
            asyncio.to_thread(write_kafka, address),
            write_http(url),
            write_ours(address),
        )
        assert found == [ALL] * 5

    asyncio.run(asyncio.wait_for(all_at_once(), 120))
