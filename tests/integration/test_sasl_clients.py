"""Kafka clients of others log in to a closed door, by every mechanism that they and we know."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped]
from confluent_kafka import Producer
from kafka import KafkaProducer  # type: ignore[import-untyped]
from kafka.net.sasl.scram import ScramClient as ScramOfKafkaPython  # type: ignore[import-untyped]

from goqueue.broker.accounts.logins import Logins
from goqueue.broker.gate import Gate
from goqueue.doors.kafka.door import KafkaDoor
from goqueue.doors.kafka.limits import KafkaLimits
from goqueue.testing import broker
from tests.unit.doors.http.test_credentials import done_of

USER, PASSWORD = "alice", "s3 cret,="
ODD = "bob,=x"


def by_confluent(server: str, mechanism: str, user: str = USER) -> None:
    failed: list[Any] = []
    producer = Producer(
        {
            "bootstrap.servers": server,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": PASSWORD,
        }
    )
    producer.produce("orders", b"confluent", on_delivery=lambda error, _: failed.append(error))
    producer.flush(60)
    assert failed == [None]


def by_kafka_python(server: str, mechanism: str, user: str = USER) -> None:
    producer = KafkaProducer(
        bootstrap_servers=server,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism=mechanism,
        sasl_plain_username=user,
        sasl_plain_password=PASSWORD,
    )
    producer.send("orders", b"kafka-python").get(60)
    producer.close()


async def by_aiokafka(server: str, mechanism: str, user: str = USER) -> None:
    producer = AIOKafkaProducer(
        bootstrap_servers=server,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism=mechanism,
        sasl_plain_username=user,
        sasl_plain_password=PASSWORD,
    )
    await producer.start()
    await producer.send_and_wait("orders", b"aiokafka")
    await producer.stop()


@asynccontextmanager
async def closed_door(*users: str) -> AsyncIterator[tuple[Any, str]]:
    async with broker(clock="real") as b:
        node = b.broker
        await b.create_topic("orders")
        gate = Gate(node, logins=Logins(node.accounts, node.clock, node.dice, b"secret"), is_closed=True)
        door = KafkaDoor(gate, KafkaLimits(gather_ms=0))
        _, port = await door.open("127.0.0.1", 0)
        for name in users:
            await done_of(partial(node.accounts.create_user, name, PASSWORD, ("producer",)))
        try:
            yield b, f"127.0.0.1:{port}"
        finally:
            await door.close()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_clients_of_others_log_in(mechanism: str) -> None:
    async def inside() -> None:
        async with closed_door(USER) as (b, server):
            await asyncio.to_thread(by_confluent, server, mechanism)
            await asyncio.to_thread(by_kafka_python, server, mechanism)
            await by_aiokafka(server, mechanism)
            assert [each.value for each in await b.read("orders")] == [b"confluent", b"kafka-python", b"aiokafka"]

    asyncio.run(inside())


def test_a_name_with_a_comma_is_escaped_by_clients_but_for_kafka_python() -> None:
    """RFC 5802 wants `,` and `=` as =2C and =3D. kafka-python sends a name as it is given: its users write it so."""
    first: bytes = ScramOfKafkaPython(ODD, PASSWORD, "SCRAM-SHA-256").first_message()
    assert first.startswith(b"n,,n=bob,=x,r="), "kafka-python escapes by now: say so in docs/access.md"

    async def inside() -> None:
        async with closed_door(ODD) as (b, server):
            await asyncio.to_thread(by_confluent, server, "SCRAM-SHA-256", ODD)
            await by_aiokafka(server, "SCRAM-SHA-256", ODD)
            await asyncio.to_thread(by_kafka_python, server, "SCRAM-SHA-256", "bob=2C=3Dx")
            assert [each.value for each in await b.read("orders")] == [b"confluent", b"aiokafka", b"kafka-python"]

    asyncio.run(inside())
