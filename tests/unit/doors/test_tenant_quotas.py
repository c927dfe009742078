"""Quotas of a tenant as each API tells them, that nothing is lost by them, and that other tenants notice nothing."""

from typing import Any

import pytest

from goqueue.broker.reading.wants import Got, Want
from goqueue.doors.grpc.charging import _messages_in
from goqueue.doors.kafka.handlers.fetch import BATCHES_COUNTED_MAX, _messages
from goqueue.model.codes import Code
from goqueue.model.quotas import CONSUMED, PRODUCED
from goqueue.records.slice import Slice
from goqueue.wire.grpc.common_pb2 import Message
from goqueue.wire.grpc.consume_pb2 import ConsumeResponse, Heartbeat, MessageBatch
from goqueue.wire.grpc.publish_pb2 import PublishRequest, PublishStreamRequest
from goqueue.wire.kafka.messages.fetch import FetchResponse
from goqueue.wire.kafka.messages.produce import ProduceResponse
from tests.brokers import data
from tests.unit.doors.kafka.test_quotas import fetch, produce
from tests.unit.doors.tenant_node import KafkaTenant, refusal, tenant_node
from tests.unit.testing.loops import in_loop


@in_loop
async def test_messages_a_second_are_limited_for_a_tenant_over_http() -> None:
    async with tenant_node(publish_rate_limit=5, consume_rate_limit=5) as node:
        assert (await node.publish(*"abcdefgh")).status == 200, "one request may go beyond"
        refused = await node.publish("i")
        assert (refused.status, b"publish_rate_limit of 5" in refused.body) == (429, True)
        assert (await node.of_default("POST", "/topics", {"name": "other"})).status == 201
        await node.b.advance("601ms")
        assert (await node.publish("i")).status == 200
        receive = "/topics/orders/receive", {"group": "workers", "max_messages": 8}
        assert len((await node.http("POST", *receive)).json["messages"]) == 8
        assert (await node.http("POST", *receive)).status == 429
        await node.b.advance("1s")
        (last,) = (await node.http("POST", *receive)).json["messages"]
        assert last["value"] == "i"
        for _ in range(10):
            assert (await node.http("POST", *receive)).status == 200, "who finds nothing has read nothing"
        assert node.b.broker.metrics.meters.throttles == {"publish_rate_limit": 1, "consume_rate_limit": 1}


@in_loop
async def test_messages_a_second_are_limited_for_a_tenant_over_sqs() -> None:
    async with tenant_node(publish_rate_limit=2, consume_rate_limit=1) as node:
        assert await node.sqs("CreateQueue", QueueName="jobs") == (200, "")
        url = {"QueueUrl": "http://localhost/000000000000/jobs"}
        many = [{"Id": str(number), "MessageBody": str(number)} for number in range(4)]
        assert await node.sqs("SendMessageBatch", Entries=many, **url) == (200, "")
        assert await node.sqs("SendMessage", MessageBody="x", **url) == (403, "RequestThrottled")
        assert await node.sqs("ReceiveMessage", MaxNumberOfMessages=4, **url) == (200, "")
        assert await node.sqs("ReceiveMessage", **url) == (403, "RequestThrottled")
        await node.b.advance("4s")
        assert await node.sqs("SendMessage", MessageBody="x", **url) == (200, "")
        assert await node.sqs("ReceiveMessage", **url) == (200, "")


@in_loop
@pytest.mark.parametrize("unknown", [{"messages": 1}, {"messages": []}, {"Messages": []}, {"Entries": []}])
async def test_fields_that_sqs_does_not_know_make_no_message_cheaper(unknown: dict[str, Any]) -> None:
    async with tenant_node(publish_rate_limit=2) as node:
        assert await node.sqs("CreateQueue", QueueName="jobs") == (200, "")
        url = {"QueueUrl": "http://localhost/000000000000/jobs"}
        many = {"Entries": [{"Id": str(number), "MessageBody": str(number)} for number in range(3)]}
        assert await node.sqs("SendMessageBatch", **{**url, **unknown, **many}) == (200, "")
        assert await node.sqs("SendMessage", MessageBody="x", **url, **unknown) == (403, "RequestThrottled")
        await node.b.advance("1s")
        for _ in range(2):
            assert await node.sqs("SendMessage", MessageBody="x", **url, **unknown) == (200, "")
        assert await node.sqs("SendMessage", MessageBody="x", **url, **unknown) == (403, "RequestThrottled")


@in_loop
async def test_messages_a_second_are_limited_for_a_tenant_over_grpc() -> None:
    async with tenant_node(publish_rate_limit=2, consume_rate_limit=2) as node:
        for number in range(3):
            told = await node.grpc("Publish", PublishRequest(topic="orders", value=b"%d" % number))
            assert isinstance(told[0], bytes)
        status, words = refusal(await node.grpc("Publish", PublishRequest(topic="orders", value=b"3")))
        assert (status, "publish_rate_limit" in words) == ("RESOURCE_EXHAUSTED", True)
        await node.b.advance("1s")
        assert isinstance((await node.grpc("Publish", PublishRequest(topic="orders", value=b"3")))[0], bytes)


def test_messages_in_a_stream_of_grpc_are_counted() -> None:
    read = ConsumeResponse(messages=MessageBatch(messages=[Message(value=b"a"), Message(value=b"b")]))
    assert _messages_in(CONSUMED, read.SerializeToString()) == 2
    assert _messages_in(CONSUMED, ConsumeResponse(heartbeat=Heartbeat()).SerializeToString()) == 0
    one = PublishRequest(topic="orders", value=b"a")
    assert _messages_in(PRODUCED, PublishStreamRequest(batch=[one, one, one]).SerializeToString()) == 3
    assert _messages_in(PRODUCED, PublishStreamRequest(topic="orders", value=b"a").SerializeToString()) == 1
    assert _messages_in(PRODUCED, b"\xff") == 1


class Stored(bytearray):
    def view(self, position: int, length: int) -> memoryview:
        return memoryview(self)[position : position + length]

    def read(self, position: int, length: int) -> bytes:
        return bytes(self.view(position, length))

    def fileno(self) -> int:
        raise NotImplementedError


def stored(*batches: tuple[int, list[bytes]]) -> Got:
    """What a fetch finds: values, each batch of them at its offset."""
    pieces = Stored()
    for offset, values in batches:
        pieces += offset.to_bytes(8, "big") + bytes(data(*values))[8:]
    offset, values = batches[-1]
    return Got(Code.NONE, piece=Slice(pieces, 0, len(pieces), batches[0][0], offset + len(values)))


def test_offsets_that_compaction_left_free_are_no_messages() -> None:
    sparse = stored((0, [b"a", b"b"]), (1_000_000, [b"c"]), (5_000_000, [b"d"]))
    assert _messages(Want("orders", 0, 0, 1 << 20), sparse) == 4
    dense = stored((10, [b"a", b"b", b"c"]), (13, [b"d"]))
    assert _messages(Want("orders", 0, 12, 1 << 20), dense) == 2, "what was asked for"
    many = stored(*((number, [b"x"]) for number in range(0, 2 * BATCHES_COUNTED_MAX, 2)), (1 << 40, [b"x"] * 2))
    assert _messages(Want("orders", 0, 0, 1 << 20), many) == BATCHES_COUNTED_MAX + 1


@pytest.mark.parametrize("is_learned", [False, True])
def test_messages_a_second_are_limited_for_a_tenant_over_kafka(is_learned: bool) -> None:
    house = KafkaTenant(publish_rate_limit=2, consume_rate_limit=2)
    client = house.client()
    for number in range(2 if is_learned else 0):
        (answer,) = client.ask(produce(number), ProduceResponse, 9)
        assert answer.throttle_time_ms == 0
    answers = client.ask(b"".join(produce(number) for number in range(2, 7)), ProduceResponse, 9)
    assert answers[-1].throttle_time_ms > 0
    assert not client.is_read()
    for _ in range(60):
        house.broker.clock.advance(100)
        answers += client.answers(ProduceResponse, 9)
    assert [each.responses[0].partition_responses[0].error_code for each in answers] == [0] * 5
    reader = house.client()
    (got,) = reader.ask(fetch(1), FetchResponse, 11)
    assert got.responses[0].partitions[0].records
    assert got.throttle_time_ms >= 1500
    (empty,) = house.client().ask(fetch(2), FetchResponse, 11)
    assert (empty.responses, empty.throttle_time_ms > 0) == ([], True)
