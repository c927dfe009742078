"""A stream group is sent back while its members are reading, seen from a real client."""

import asyncio
from typing import Any

from aiokafka import AIOKafkaConsumer  # type: ignore[import-untyped]

from goqueue.records.replays import Where
from goqueue.testing import broker

VALUES = [b"%d" % number for number in range(5)]


async def take(consumer: AIOKafkaConsumer, count: int) -> list[bytes | None]:
    return [(await consumer.getone()).value for _ in range(count)]


async def read_twice() -> None:
    async with broker(clock="real", kafka=True) as b:
        await b.create_topic("orders", partitions=1)
        await b.publish_many("orders", VALUES)
        consumer = AIOKafkaConsumer(
            "orders",
            bootstrap_servers=b.kafka,
            group_id="readers",
            auto_offset_reset="earliest",
            heartbeat_interval_ms=100,
            enable_auto_commit=False,
        )
        await consumer.start()
        try:
            assert await take(consumer, 5) == VALUES
            await consumer.commit()
            moved: Any = await b.ask(
                lambda done: b.broker.replays.seek_stream("readers", "orders", Where(offset=2), done, is_live=True)
            )
            assert [tuple(each) for each in moved] == [(0, 5, 2)]
            assert await take(consumer, 3) == VALUES[2:]
        finally:
            await consumer.stop()


def test_a_live_group_reads_again_from_where_it_was_sent() -> None:
    asyncio.run(asyncio.wait_for(read_twice(), 60))
