"""Clients of others come in with tokens of an identity provider: Kafka, HTTP and gRPC."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import grpc
import httpx
from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped]
from aiokafka.abc import AbstractTokenProvider  # type: ignore[import-untyped]
from confluent_kafka import Producer as ConfluentProducer
from kafka import KafkaProducer  # type: ignore[import-untyped]
from kafka.net.sasl.oauth import AbstractTokenProvider as KafkaPythonTokens  # type: ignore[import-untyped]

from goqueue.broker.accounts.logins import Logins
from goqueue.broker.gate import Gate
from goqueue.client import Producer, Security
from goqueue.doors.grpc.door import GrpcDoor
from goqueue.doors.http.app import HttpApp
from goqueue.doors.http.door import HttpDoor
from goqueue.doors.kafka.door import KafkaDoor
from goqueue.doors.kafka.limits import KafkaLimits
from goqueue.testing import broker
from goqueue.wire.grpc.topic_pb2 import ListTopicsRequest, ListTopicsResponse
from tests.tokens import token, tokens

LIST_TOPICS = "/goqueue.v1.TopicService/ListTopics"


def fresh(**claims: Any) -> str:
    return token(int(time.time() * 1000), roles=["producer"], **claims)


class TokensOfAiokafka(AbstractTokenProvider):  # type: ignore[misc]
    async def token(self) -> str:
        return fresh()


class TokensOfKafkaPython(KafkaPythonTokens):  # type: ignore[misc]
    def token(self) -> str:
        return fresh()


class Doors(NamedTuple):
    b: Any
    kafka: str
    http: str
    grpc: str


@asynccontextmanager
async def closed_doors(session_ms_max: int = 0) -> AsyncIterator[Doors]:
    async with broker(clock="real") as b:
        node = b.broker
        await b.create_topic("orders")
        checked = tokens(node.clock, roles_claim="roles")
        logins = Logins(node.accounts, node.clock, node.dice, b"secret", checked)
        gate = Gate(node, logins=logins, is_closed=True)
        opened: list[Any] = [
            KafkaDoor(gate, KafkaLimits(gather_ms=0, session_ms_max=session_ms_max)),
            HttpDoor(HttpApp(gate)),
            GrpcDoor(gate),
        ]
        ports = [(await door.open("127.0.0.1", 0))[1] for door in opened]
        kafka, http, rpc = (f"127.0.0.1:{port}" for port in ports)
        try:
            yield Doors(b, kafka, f"http://{http}", rpc)
        finally:
            for door in opened:
                await door.close()


def by_confluent(server: str) -> None:
    failed: list[Any] = []
    producer = ConfluentProducer(
        {
            "bootstrap.servers": server,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "oauth_cb": lambda _config: (fresh(), time.time() + 300),
        }
    )
    producer.produce("orders", b"confluent", on_delivery=lambda error, _: failed.append(error))
    producer.flush(60)
    assert failed == [None]


def by_kafka_python(server: str) -> None:
    producer = KafkaProducer(
        bootstrap_servers=server,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        sasl_oauth_token_provider=TokensOfKafkaPython(),
    )
    producer.send("orders", b"kafka-python").get(60)
    producer.close()


async def by_aiokafka(server: str) -> None:
    producer = AIOKafkaProducer(
        bootstrap_servers=server,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        sasl_oauth_token_provider=TokensOfAiokafka(),
    )
    await producer.start()
    await producer.send_and_wait("orders", b"aiokafka")
    await producer.stop()


async def by_our_own(server: str) -> None:
    async with Producer(server, security=Security(token=fresh)) as producer:
        await producer.send("orders", b"own", partition=0)


def test_kafka_clients_come_in_by_oauthbearer() -> None:
    async def inside() -> None:
        async with closed_doors() as doors:
            await asyncio.to_thread(by_confluent, doors.kafka)
            await asyncio.to_thread(by_kafka_python, doors.kafka)
            await by_aiokafka(doors.kafka)
            await by_our_own(doors.kafka)
            sent = [b"confluent", b"kafka-python", b"aiokafka", b"own"]
            assert sorted(each.value for each in await doors.b.read("orders")) == sorted(sent)

    asyncio.run(inside())


def test_http_and_grpc_take_tokens_and_refuse_wrong_ones() -> None:
    async def inside() -> None:
        async with closed_doors() as doors, httpx.AsyncClient(base_url=doors.http) as http:
            good, wrong = ({"authorization": f"Bearer {each}"} for each in (fresh(), fresh(aud="billing")))
            assert (await http.get("/topics", headers=good)).json()["topics"] == ["orders"]
            refused = await http.get("/topics", headers=wrong)
            assert (refused.status_code, refused.json()["code"]) == (401, "NOT_AUTHENTICATED")
            assert refused.headers["www-authenticate"] == 'Bearer realm="goqueue"'
            assert (await http.get("/subjects", headers=good)).json() == []
            async with grpc.aio.insecure_channel(doors.grpc) as channel:
                call = channel.unary_unary(
                    LIST_TOPICS, ListTopicsRequest.SerializeToString, ListTopicsResponse.FromString
                )
                found = await call(ListTopicsRequest(), metadata=tuple(good.items()))
                assert list(found.names) == ["orders"]
                try:
                    await call(ListTopicsRequest(), metadata=tuple(wrong.items()))
                except grpc.aio.AioRpcError as error:
                    assert error.code() is grpc.StatusCode.UNAUTHENTICATED
                else:
                    raise AssertionError("a wrong token was taken")

    asyncio.run(inside())


def sent_by_confluent(server: str, messages: int) -> list[Any]:
    """Sends until its session has ended more than once; what failed is returned."""
    failed: list[Any] = []
    asked: list[float] = []

    def get_token(_config: str) -> tuple[str, float]:
        asked.append(time.time())
        return fresh(exp=int(time.time()) + 2), time.time() + 2

    producer = ConfluentProducer(
        {
            "bootstrap.servers": server,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "enable.idempotence": True,
            "oauth_cb": get_token,
        }
    )
    for number in range(messages):
        producer.produce("orders", b"%d" % number, partition=0, on_delivery=lambda error, _: failed.append(error))
        producer.flush(60)
    while len(asked) < 4:  # tokens are asked for at four fifths of their life
        producer.produce("orders", b"more", partition=0, on_delivery=lambda error, _: failed.append(error))
        producer.flush(60)
        producer.poll(0.1)
    return [each for each in failed if each is not None]


def test_confluent_goes_on_with_tokens_that_do_not_live_long() -> None:
    """Its sessions end every second; it logs in again by itself, and loses nothing."""

    async def inside() -> None:
        async with closed_doors(session_ms_max=1000) as doors:
            assert await asyncio.to_thread(sent_by_confluent, doors.kafka, 20) == []
            values = [each.value for each in await doors.b.read("orders", partition=0)]
            assert values[:20] == [b"%d" % number for number in range(20)]
            assert set(values[20:]) == {b"more"}

    asyncio.run(inside())
