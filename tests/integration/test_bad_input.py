"""Whatever is sent to the port: a clear answer or a closed connection, and nobody else notices."""

import random
import struct
from collections.abc import Iterator

import pytest

from goqueue.model.codes import Code
from goqueue.records.batch import check_batch
from goqueue.records.control import ControlKind, build_control
from goqueue.records.encode import sign
from goqueue.wire.kafka.messages import produce
from goqueue.wire.kafka.messages.metadata import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from goqueue.wire.kafka.notation import Message as WireMessage
from tests.integration.bare_producer import NOW_MS, plain_batch, send_batch
from tests.integration.clients import Consumer, Message, Record
from tests.integration.confluent_client import Confluent
from tests.integration.conftest import CreateTopic
from tests.integration.process import Node
from tests.integration.test_transactions import visible
from tests.integration.wire import CLIENT_ID, Closed, Wire

HEADER = struct.Struct(">hhih")
DELTA_AT, COUNT_AT = 23, 57


@pytest.fixture
def wire(node: Node) -> Iterator[Wire]:
    with Wire(node) as connection:
        yield connection


@pytest.fixture
def bystander(node: Node, make_topic: CreateTopic, group: str) -> Iterator[Consumer]:
    """A member of a group that receives before and after, on the connections that it has had all the time."""
    topic = make_topic(1)
    producer = Confluent.producer(node.address)
    member = Confluent.member(node.address, group, [topic])

    def receive(value: bytes) -> None:
        (offset,) = producer.send(topic, [Message(0, value)])
        records: list[Record] = []
        while not records:
            records = member.poll(1)
        assert [record.place for record in records] == [(0, offset, value)]

    receive(b"before")
    yield member
    receive(b"after")
    producer.close()
    member.close()


def header(api_key: int, version: int, correlation_id: int = 1) -> bytes:
    return HEADER.pack(api_key, version, correlation_id, len(CLIENT_ID)) + CLIENT_ID.encode()


BABBLE = {
    "http": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "tls": bytes.fromhex("160301020001000 1fc0303".replace(" ", "")) + bytes(512),
    "negative length": struct.pack(">i", -1),
    "zero length": struct.pack(">i", 0),
    "huge length": struct.pack(">i", 2**31 - 1),
    "short header": struct.pack(">i", 3) + b"abc",
    "unknown api": struct.pack(">i", 14) + header(999, 0),
    "unknown version": struct.pack(">i", 14) + header(3, 99),
    "unimplemented produce": struct.pack(">i", 14) + header(0, 1),
    "cut body": struct.pack(">i", 16) + header(3, 4) + b"\x00\x00",
    "array of two billion": struct.pack(">i", 18) + header(3, 4) + b"\x7f\xff\xff\xff",
    "negative string": struct.pack(">i", 20) + header(10, 0) + b"\xff\xf0" + b"abcd",
    "bad utf-8": struct.pack(">i", 12) + HEADER.pack(3, 4, 1, 2) + b"\xff\xfe",
}


@pytest.mark.parametrize("name", BABBLE)
def test_babble_closes_its_own_connection_only(node: Node, wire: Wire, bystander: Consumer, name: str) -> None:
    wire.send_bytes(BABBLE[name])
    assert wire.wait_closed() == b""


def test_random_bytes_never_bring_the_node_down(node: Node, bystander: Consumer) -> None:
    dice = random.Random(20261115)
    for _ in range(60):
        frame = bytearray(header(dice.choice((*range(48), 60, 61, 65, 66, 68, 69)), dice.randrange(14)))
        frame += dice.randbytes(dice.randrange(200))
        with Wire(node) as wire:
            wire.send_frame(bytes(frame))
            wire.send_bytes(struct.pack(">i", -1))  # if the first was understood after all, this ends it
            wire.wait_closed()


def test_a_newer_api_versions_is_answered_with_what_there_is(wire: Wire) -> None:
    wire.send_frame(header(18, 99, 7) + b"\x00")
    number, answer = wire.receive(ApiVersionsResponse, 0)
    assert (number, answer.error_code) == (7, Code.UNSUPPORTED_VERSION)
    assert 18 in {api.api_key for api in answer.api_keys}
    assert wire.call(ApiVersionsRequest("bare", "1"), 3, ApiVersionsResponse).error_code == Code.NONE


def test_a_half_sent_frame_waits_and_disturbs_nobody(node: Node, wire: Wire, bystander: Consumer) -> None:
    frame = header(18, 0, 5)
    data = struct.pack(">i", len(frame)) + frame
    for end in range(1, len(data)):
        wire.send_bytes(data[end - 1 : end])
    with Wire(node) as other:
        assert other.call(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == Code.NONE
    wire.send_bytes(data[-1:])
    assert wire.receive(ApiVersionsResponse, 0)[0] == 5


def test_pipelined_requests_are_answered_in_order(wire: Wire, make_topic: CreateTopic) -> None:
    """Slow ones (a synced publish) and fast ones in turn, sent before the first answer is read."""
    topic = make_topic(1)
    sent: list[tuple[int, type[WireMessage], int]] = []
    for number in range(40):
        place = produce.PartitionProduceData(0, memoryview(bytes(plain_batch(b"%d" % number))))
        request = produce.ProduceRequest(None, -1, 30_000, [produce.TopicProduceData(topic, partition_data=[place])])
        sent.append((wire.send(request, 8), produce.ProduceResponse, 8))
        sent.append((wire.send(ApiVersionsRequest(), 0), ApiVersionsResponse, 0))
        sent.append((wire.send(MetadataRequest([]), 4), MetadataResponse, 4))
    offsets = []
    for number, response, version in sent:
        answered, message = wire.receive(response, version)
        assert answered == number
        if isinstance(message, produce.ProduceResponse):
            result = message.responses[0].partition_responses[0]
            offsets.append((result.error_code, result.base_offset))
    assert offsets == [(0, number) for number in range(40)]


def test_two_hundred_idle_connections_cost_nobody_anything(node: Node, bystander: Consumer) -> None:
    idle = [Wire(node) for _ in range(200)]
    try:
        for wire in idle:
            assert wire.call(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == Code.NONE
        for wire in reversed(idle):
            assert wire.call(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == Code.NONE
    finally:
        for wire in idle:
            wire.__exit__(None, None, None)


def lie(at: int, value: int, size: str) -> bytearray:
    """A batch of two records with another number in its header, and a checksum that agrees."""
    data = plain_batch(b"a", b"b")
    struct.pack_into(size, data, at, value)
    sign(memoryview(data))
    return data


def broken() -> bytearray:
    data = plain_batch(b"a", b"b")
    data[-1] ^= 1
    return data


def control() -> bytearray:
    return build_control(ControlKind.COMMIT, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp=NOW_MS)


REFUSED = {
    "bad checksum": (broken, Code.CORRUPT_MESSAGE),
    "cut short": (lambda: plain_batch(b"a")[:-3], Code.CORRUPT_MESSAGE),
    "old format": (lambda: lie(16, 1, ">b"), Code.CORRUPT_MESSAGE),
    "too many counted": (lambda: lie(COUNT_AT, 5, ">i"), Code.CORRUPT_MESSAGE),
    "none counted": (lambda: lie(COUNT_AT, 0, ">i"), Code.INVALID_RECORD),
    "wrong last offset": (lambda: lie(DELTA_AT, 7, ">i"), Code.INVALID_RECORD),
    "two batches": (lambda: plain_batch(b"a") + plain_batch(b"b"), Code.INVALID_RECORD),
    "control batch": (control, Code.INVALID_RECORD),
    "too large": (lambda: plain_batch(bytes(2 * 1024 * 1024)), Code.MESSAGE_TOO_LARGE),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_batch_is_refused_with_its_reason_and_stores_nothing(
    node: Node, wire: Wire, make_topic: CreateTopic, name: str
) -> None:
    topic = make_topic()
    make, code = REFUSED[name]
    assert send_batch(wire, topic, make())[0] is code
    assert send_batch(wire, topic, plain_batch(b"good")) == (Code.NONE, 0)
    assert visible(node, topic) == {(0, 0, b"good")}


def test_what_does_not_exist_is_refused_by_name(wire: Wire, make_topic: CreateTopic) -> None:
    topic = make_topic()
    assert send_batch(wire, topic, plain_batch(b"x"), partition=3)[0] is Code.UNKNOWN_TOPIC_OR_PARTITION
    assert send_batch(wire, "no-such-topic", plain_batch(b"x"))[0] is Code.UNKNOWN_TOPIC_OR_PARTITION


def test_a_closed_connection_is_noticed_by_the_bare_one(node: Node) -> None:
    """The checks above rest on it."""
    with Wire(node) as wire:
        wire.send_bytes(BABBLE["http"])
        with pytest.raises(Closed):
            wire.receive_frame()
    assert check_batch(memoryview(plain_batch(b"x"))).record_count == 1


@pytest.mark.parametrize(
    ("version", "code"),
    [(10, Code.UNKNOWN_TOPIC_OR_PARTITION), (11, Code.UNKNOWN_TOPIC_OR_PARTITION), (12, Code.UNKNOWN_TOPIC_ID)],
)
def test_a_topic_asked_for_by_its_id_alone(wire: Wire, version: int, code: Code) -> None:
    """Before version 12, requests can say it, and answers cannot."""
    asked = MetadataRequest([MetadataRequestTopic(b"no such topic id", None)], allow_auto_topic_creation=False)
    (found,) = wire.call(asked, version, MetadataResponse).topics or []
    assert found.error_code == code
