"""The whole door in process: whatever comes in, nothing escapes, every request that can be read is answered or ends its
connection, and the others notice nothing."""

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from goqueue.broker.gate import Gate
from goqueue.doors.kafka.door import KafkaDoor
from goqueue.doors.kafka.handlers.table import HANDLERS
from goqueue.wire.kafka.apis import APIS, Api
from goqueue.wire.kafka.frames import decode_response, request_frame
from goqueue.wire.kafka.messages.metadata import ApiVersionsRequest, ApiVersionsResponse
from goqueue.wire.kafka.notation import Message
from goqueue.wire.kafka.schema import fields_of
from tests.brokers import TestBroker, data
from tests.layers import half_in_each_layer
from tests.unit.doors.kafka.transports import FakeTransport, feed
from tests.unit.wire.kafka.samples import messages
from tests.unit.wire.kafka.test_fuzz import MUTATIONS, mutate

OFFERED = sorted((api for key, api in APIS.items() if key in HANDLERS), key=lambda api: api.key)
MONTH_MS = 31 * 24 * 3600 * 1000
FAULTS = {"request failed", "response failed", "command failed", "callback failed", "coordinator stopped"}
fuzz = settings(
    max_examples=4,
    phases=[Phase.generate],  # shrinking a failure takes minutes here, and whole houses
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

TOPIC_ID = b"orders".ljust(16, b".")
PLAUSIBLE: dict[str, st.SearchStrategy[Any]] = {
    "topic": st.sampled_from(["orders", "nowhere"]),
    "name": st.sampled_from(["orders", "prices", "nowhere", "range"]),
    "resource_name": st.sampled_from(["orders", "1"]),
    "resource_type": st.sampled_from([2, 4, 0, 32]),
    "topic_id": st.sampled_from([TOPIC_ID, bytes(16)]),
    "group_id": st.sampled_from(["g", "h", ""]),
    "member_id": st.sampled_from(["", "m"]),
    "transactional_id": st.sampled_from(["tx", "", None]),
    "v3_and_below_transactional_id": st.just("tx"),
    "partition": st.integers(-1, 2),
    "index": st.integers(-1, 2),
    "partition_index": st.integers(-1, 2),
    "acks": st.sampled_from([-1, 0, 1, 5]),
    "fetch_offset": st.integers(-1, 4),
    "current_leader_epoch": st.sampled_from([-1, 0, 1]),
    "num_partitions": st.integers(-1, 3),
    "count": st.integers(0, 4),
    "replication_factor": st.sampled_from([-1, 1, 2]),
    "session_timeout_ms": st.sampled_from([6000, 30_000, 0]),
    "rebalance_timeout_ms": st.sampled_from([1000, 60_000, -1]),
    "protocol_type": st.sampled_from(["consumer", ""]),
    "producer_id": st.integers(-1, 2),
    "producer_epoch": st.integers(-1, 1),
    "transaction_timeout_ms": st.sampled_from([1000, 60_000, -1]),
    "topic_name": st.sampled_from(["orders", "nowhere"]),
    "member_epoch": st.sampled_from([0, 1, -1]),
    "share_session_epoch": st.sampled_from([0, 1, -1]),
    "max_records": st.integers(0, 3),
    "max_bytes": st.sampled_from([0, 100, 1_000_000]),
    "first_offset": st.integers(-1, 2),
    "last_offset": st.integers(-1, 2),
    "start_offset": st.integers(-1, 3),
}


class House:
    """A broker behind its door, without a network."""

    def __init__(self) -> None:
        self.broker = TestBroker()
        self.broker.create("orders", 2)
        self.broker.publish("orders", b"a", b"b")
        self.broker.commit()
        self.door = KafkaDoor(Gate(self.broker.broker))

    def knock(self) -> "Guest":
        return Guest(self)

    def settle(self) -> None:
        """All that is waited for comes about."""
        for _ in range(4):
            self.broker.commit()
            self.broker.clock.advance(MONTH_MS)


class Guest:
    def __init__(self, house: House) -> None:
        self._connection = house.door._connect()
        self.transport = FakeTransport()
        self._connection.connection_made(self.transport)

    def send(self, sent: bytes) -> None:
        feed(self._connection, sent)

    def leave(self) -> None:
        self._connection.connection_lost(None)

    def replies(self) -> list[memoryview]:
        found, rest = [], memoryview(bytes(self.transport.written))
        while rest:
            end = 4 + int.from_bytes(rest[:4], "big")
            found.append(rest[4:end])
            rest = rest[end:]
        return found


def expect_health(house: House) -> None:
    """A new client is served."""
    guest = house.knock()
    guest.send(frame(ApiVersionsRequest(), 0, 99))
    house.broker.commit()
    (reply,) = guest.replies()
    correlation_id, response, _ = decode_response(ApiVersionsResponse, 0, reply)
    assert (correlation_id, response.error_code) == (99, 0)
    guest.leave()


def frame(message: Message, version: int, correlation_id: int = 7) -> bytes:
    parts = request_frame(message, version, correlation_id, "fuzz")
    return b"".join(part for part in parts if isinstance(part, bytes | memoryview))


def make_plausible(draw: st.DataObject, message: Message, version: int) -> None:
    for field in fields_of(type(message)):
        if version not in field.versions:
            continue
        value = getattr(message, field.name)
        if field.message is not None:
            for one in value if isinstance(value, list) else [value] if value is not None else []:
                make_plausible(draw, one, version)
        elif field.kind == "records" and value is not None:
            setattr(message, field.name, data(b"x", key=b"k") if draw.draw(st.booleans()) else value)
        elif field.name in PLAUSIBLE and not field.is_array:
            chosen = draw.draw(PLAUSIBLE[field.name])
            if chosen is not None or value is None:
                setattr(message, field.name, chosen)


def wants_reply(message: Message) -> bool:
    return getattr(message, "acks", 1) != 0


@half_in_each_layer
@pytest.mark.parametrize("api", OFFERED, ids=lambda api: api.name)
@fuzz
@given(draw=st.data())
def test_every_request_that_can_be_read_is_answered_or_ends_its_connection(
    half: int, api: Api, draw: st.DataObject
) -> None:
    version = draw.draw(st.integers(api.versions.first, api.versions.last), "version")
    asked = draw.draw(st.lists(messages(api.request, version), min_size=1, max_size=3), "messages")
    for one in asked:
        make_plausible(draw, one, version)
    house = House()
    guest = house.knock()
    with capture_logs() as told:
        for number, one in enumerate(asked):
            guest.send(frame(one, version, number))
        house.settle()
    assert [event for event in told if event["event"] in FAULTS] == []
    if not guest.transport.closed:
        expected = [number for number, one in enumerate(asked) if wants_reply(one)]
        assert [decode_response(api.response, version, reply)[0] for reply in guest.replies()] == expected
    guest.leave()
    expect_health(house)


@half_in_each_layer
@pytest.mark.parametrize("api", OFFERED, ids=lambda api: api.name)
@fuzz
@given(draw=st.data(), mutations=MUTATIONS)
def test_a_mutilated_request_harms_nobody_else(
    half: int, api: Api, draw: st.DataObject, mutations: list[tuple[float, str, bytes]]
) -> None:
    version = draw.draw(st.integers(api.versions.first, api.versions.last), "version")
    message = draw.draw(messages(api.request, version), "message")
    make_plausible(draw, message, version)
    body = mutate(frame(message, version)[4:], mutations) or b"\0"
    house = House()
    guest = house.knock()
    with capture_logs() as told:
        guest.send(len(body).to_bytes(4, "big") + body)
        guest.send(frame(ApiVersionsRequest(), 0, 55))
        house.settle()
    assert [event for event in told if event["event"] in FAULTS] == []
    guest.leave()
    expect_health(house)


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.binary(max_size=60), max_size=6))
def test_babble_harms_nobody_else(pieces: list[bytes]) -> None:
    house = House()
    guest = house.knock()
    with capture_logs() as told:
        for piece in pieces:
            if not guest.transport.closed:
                guest.send(piece)
        house.settle()
    assert [event for event in told if event["event"] in FAULTS] == []
    guest.leave()
    expect_health(house)


@pytest.mark.parametrize("key", sorted({*APIS, 4, 99, 1000, -1} - set(HANDLERS)))
def test_an_api_that_is_not_offered_ends_the_connection_and_is_counted(key: int) -> None:
    house = House()
    guest = house.knock()
    with capture_logs() as told:
        guest.send((10).to_bytes(4, "big") + key.to_bytes(2, "big", signed=True) + bytes(6) + b"\xff\xff")
    assert guest.transport.closed
    assert house.door.malformed == 1
    assert [event["event"] for event in told] == ["bad request"]


def test_babblers_are_all_counted_and_some_are_logged() -> None:
    house = House()
    with capture_logs() as told:
        for _ in range(100):
            house.knock().send(b"GET / HTTP/1.1\r\n")
    assert house.door.malformed == 100
    assert 0 < len(told) <= 10
    assert "HTTP" in told[0]["reason"]
    house.broker.clock.advance(61_000)
    with capture_logs() as told:
        house.knock().send(b"\x16\x03\x01\x00\x00")
    assert len(told) == 1


def test_a_newer_api_versions_is_told_what_we_speak() -> None:
    house = House()
    guest = house.knock()
    guest.send((11).to_bytes(4, "big") + b"\0\x12\0\x63" + (5).to_bytes(4, "big") + b"\xff\xff\0")
    house.broker.commit()
    (reply,) = guest.replies()
    correlation_id, response, _ = decode_response(ApiVersionsResponse, 0, reply)
    assert (correlation_id, response.error_code) == (5, 35)
    assert {one.api_key for one in response.api_keys} == set(HANDLERS)


def test_more_connections_than_allowed_are_closed_and_the_others_stay() -> None:
    house = House()
    house.door._limits.connections_max = 2
    guests = [house.knock() for _ in range(4)]
    assert [guest.transport.closed for guest in guests] == [False, False, True, True]
    for guest in guests[1:]:
        guest.leave()
    assert not house.knock().transport.closed
