"""One topic, read at the same time as a queue by Kafka's share consumer, as a stream, and as a queue in process."""

import asyncio
from typing import Any

import confluent_kafka as ck
from aiokafka import AIOKafkaConsumer  # type: ignore[import-untyped]

from goqueue.testing import MemoryBroker, broker

COUNT = 60
VALUES = {b"%d" % number for number in range(COUNT)}


def share_all(address: str) -> list[bytes | None]:
    """Every message once, acknowledged by the next poll."""
    consumer = ck.ShareConsumer(
        {"bootstrap.servers": address, "group.id": "sharers", "fetch.wait.max.ms": 50, "log_level": 0}
    )
    consumer.subscribe(["orders"])
    found: list[bytes | None] = []
    while len(found) < COUNT:
        for message in consumer.poll(0.2):
            assert message.error() is None
            found.append(message.value())
    consumer.commit_sync(30)
    consumer.close()
    return found


async def stream_all(address: str) -> list[tuple[int, bytes | None]]:
    consumer = AIOKafkaConsumer("orders", bootstrap_servers=address, group_id="readers", auto_offset_reset="earliest")
    await consumer.start()
    try:
        return [((one := await consumer.getone()).offset, one.value) for _ in range(COUNT)]
    finally:
        await consumer.stop()


async def work_all(b: MemoryBroker) -> list[bytes | None]:
    found: list[bytes | None] = []
    while len(found) < COUNT:
        for message in await b.receive("orders", group="workers", max_messages=7, wait="1s"):
            await message.ack()
            found.append(message.value)
    return found


async def read_in_three_ways() -> None:
    async with broker(clock="real", kafka=True) as b:
        await b.create_topic("orders", partitions=1)
        options: Any = await b.ask(lambda done: b.broker.queues.set_options("sharers", {"start": "earliest"}, done))
        assert not isinstance(options, Exception)
        assert b.kafka is not None
        readers = asyncio.gather(asyncio.to_thread(share_all, b.kafka), stream_all(b.kafka), work_all(b))
        priorities = ("critical", "normal", "background")
        for number in range(COUNT):
            await b.publish("orders", b"%d" % number, priority=priorities[number % 3])
        shared, streamed, worked = await readers
        assert (sorted(shared, key=str), sorted(worked, key=str)) == (sorted(VALUES, key=str),) * 2
        assert streamed == [(number, b"%d" % number) for number in range(COUNT)]
        for group in ("sharers", "workers"):
            lag = await b.lag("orders", group=group)
            assert (lag.ready, lag.leased, lag.dead) == (0, 0, 0)


def test_share_consumer_stream_consumer_and_in_process_worker_each_get_every_message_once() -> None:
    asyncio.run(asyncio.wait_for(read_in_three_ways(), 60))
