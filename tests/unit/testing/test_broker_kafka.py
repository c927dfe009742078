"""Kafka clients and the test's own calls meet in one broker, on the virtual clock too."""

import asyncio

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition  # type: ignore[import-untyped]

from goqueue.client.clock import LoopClock
from goqueue.client.connection import Limits, connect
from goqueue.doors.kafka.frame_sizes import REQUESTS_AHEAD
from goqueue.ports.network import LoopNetwork
from goqueue.testing import BrokerDown, MemoryBroker, broker
from goqueue.wire.kafka.messages.metadata import MetadataRequest, MetadataResponse
from tests.unit.testing.loops import in_loop


async def produce(b: MemoryBroker, *values: bytes, headers: list[tuple[str, bytes]] | None = None) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=b.kafka)
    await producer.start()
    try:
        for value in values:
            await producer.send_and_wait("orders", value, partition=0, headers=headers)
    finally:
        await producer.stop()


@in_loop
async def test_what_a_kafka_client_sends_is_received() -> None:
    async with broker(kafka=True) as b:
        await b.create_topic("orders")
        await produce(b, b"1", b"2")
        messages = await b.receive("orders")
        assert [message.value for message in messages] == [b"1", b"2"]


@in_loop
async def test_what_is_published_reaches_a_kafka_client_when_it_is_due() -> None:
    async with broker(kafka=True) as b:
        await b.create_topic("orders")
        await produce(b, b"later", headers=[("gq-delay-ms", b"3600000")])
        consumer = AIOKafkaConsumer(bootstrap_servers=b.kafka, auto_offset_reset="earliest")
        await consumer.start()
        try:
            consumer.assign([TopicPartition("orders", 0)])
            waiting = asyncio.ensure_future(consumer.getone())
            await b.advance("59m")
            assert not waiting.done()
            await b.publish("orders", b"now")
            assert (await waiting).value == b"now"
            await b.advance("1m")
            later = await consumer.getone()
            assert (later.value, later.timestamp) == (b"later", b.now_ms)
        finally:
            await consumer.stop()


@in_loop
async def test_the_door_is_at_the_same_place_after_a_crash() -> None:
    async with broker(kafka=True, clock="real") as b:
        address = b.kafka
        await b.create_topic("orders")
        await produce(b, b"1")
        await b.crash()
        with pytest.raises(BrokerDown):
            _ = b.kafka
        await b.restart()
        assert b.kafka == address
        await produce(b, b"2")
        assert [record.value for record in await b.read("orders")] == [b"1", b"2"]


@in_loop
async def test_a_door_must_be_opened() -> None:
    with pytest.raises(BrokerDown, match="async with"):
        await broker(kafka=True).topics()
    async with broker() as b:
        with pytest.raises(BrokerDown, match="kafka=True"):
            _ = b.kafka


@in_loop
async def test_many_requests_at_once_are_answered_while_time_stands_still() -> None:
    async with broker(kafka=True) as b:
        connection = await connect(b.kafka, "tests", LoopClock(), LoopNetwork(), Limits(), "1")
        for _ in range(3):
            asked = [connection.ask(MetadataRequest([]), MetadataResponse) for _ in range(3 * REQUESTS_AHEAD)]
            assert [len(answer.brokers) for answer in await asyncio.gather(*asked)] == [1] * len(asked)
        await connection.close()
