"""No request reaches a log of the broker's own: not by name, not by id, whatever API it uses."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from goqueue.broker.topics.topics import Topics
from goqueue.doors.kafka.handlers.table import HANDLERS
from goqueue.model.codes import Code
from goqueue.records.build import build_batch
from goqueue.testing import MemoryDisk, VirtualClock
from goqueue.wire.kafka.apis import APIS, Api
from goqueue.wire.kafka.frames import decode_response
from goqueue.wire.kafka.notation import Message
from goqueue.wire.kafka.schema import fields_of
from tests.brokers import TestBroker
from tests.unit.doors.kafka.test_door_fuzz import Guest, House, frame

LEDGERS = ("@metadata", "@groups", "@deliveries", "@delays", "@transactions", "@schemas")
NAMES = frozenset({"topic", "name", "topic_name", "resource_name", "topics", "topic_names", "subscribed_topic_names"})
IDS = frozenset({"topic_id", "topics_by_id"})
FILLED: dict[str, Any] = {
    "acks": -1,
    "resource_type": 2,
    "member_id": "m",
    "group_id": "g",
    "transactional_id": "tx",
    "v3_and_below_transactional_id": "tx",
    "max_bytes": 1_000_000,
    "partition_max_bytes": 1_000_000,
    "max_wait_ms": 0,
    "timeout_ms": 1000,
    "current_leader_epoch": -1,
    "replica_id": -1,
    "share_session_epoch": 0,
    "max_records": 100,
}
ASKED = [
    (api, version)
    for key, api in sorted(APIS.items())
    if key in HANDLERS
    for version in sorted({api.versions.first, api.versions.last})
]
UNKNOWN = {Code.UNKNOWN_TOPIC_OR_PARTITION, Code.UNKNOWN_TOPIC_ID, Code.INVALID_TOPIC_EXCEPTION}


def tombstone() -> memoryview:
    """Of the topic `orders`, were it taken for a fact of the metadata."""
    return memoryview(build_batch([(0, b"orders", None, [])]))


def filled(kind: type[Message], version: int, name: str, topic_id: bytes) -> Message:
    """A request with one of everything, for partition 0 of a ledger wherever a topic is named."""
    made = kind()
    for field in fields_of(kind):
        if version not in field.versions:
            continue
        value: Any = getattr(made, field.name)
        if field.message is not None:
            value = filled(field.message, version, name, topic_id)
        elif field.kind == "records":
            value = tombstone()
        elif field.name in IDS:
            value = topic_id
        elif field.name in NAMES:
            value = name
        elif field.name in FILLED:
            value = FILLED[field.name]
        elif field.is_array and field.kind.startswith("int"):
            value = 0
        elif not field.is_array:
            continue
        else:
            continue
        setattr(made, field.name, [value] if field.is_array else value)
    return made


def kept(house: House, name: str) -> list[tuple[int, int, bytes]]:
    """All that its logs hold."""
    found = []
    for replica in house.broker.replicas.ledgers:
        if replica.place[0] == name:
            data = b"".join(bytes(batch.data) for batch in replica.batches_from(replica.start_offset))
            found.append((replica.start_offset, replica.end_offset, data))
    return found


def asked(house: House, request: Message, version: int) -> list[memoryview]:
    guest = Guest(house)
    guest.send(frame(request, version))
    house.settle()
    replies = guest.replies()
    guest.leave()
    return replies


@pytest.mark.parametrize(("api", "version"), ASKED, ids=lambda one: one.name if isinstance(one, Api) else f"v{one}")
def test_no_request_reads_or_changes_a_ledger(api: Api, version: int) -> None:
    house = House()
    secret = house.broker.assembly._state.secret
    before = kept(house, "@metadata")
    for topic_id in (b"@metadata".ljust(16, b"\0"), bytes(16)):
        for reply in asked(house, filled(api.request, version, "@metadata", topic_id), version):
            assert secret not in bytes(reply)
    assert kept(house, "@metadata") == before
    assert set(house.broker.broker.topics.image.topics) == {"orders"}
    disk, clock = house.broker.disk, house.broker.clock
    house.broker.stop()
    assert "orders" in restarted(disk, clock).broker.topics.image.topics


def restarted(disk: MemoryDisk, clock: VirtualClock) -> TestBroker:
    return TestBroker(disk, clock)


@pytest.mark.parametrize("key", [0, 1, 2, 20, 21, 23, 37, 61])
def test_a_ledger_is_an_unknown_topic(key: int) -> None:
    """Produce, Fetch, ListOffsets, DeleteTopics, DeleteRecords, OffsetForLeaderEpoch, CreatePartitions,
    DescribeProducers."""
    api, house = APIS[key], House()
    for name, version in product(LEDGERS, {api.versions.first, api.versions.last}):
        before = kept(house, name)
        replies = asked(house, filled(api.request, version, name, name.encode().ljust(16, b"\0")), version)
        codes = {code for reply in replies for code in codes_in(decode_response(api.response, version, reply)[1])}
        assert codes & UNKNOWN
        assert not {code for code in codes if code != Code.NONE} - UNKNOWN
        assert kept(house, name) == before


def codes_in(message: Message) -> Iterator[int]:
    for field in fields_of(type(message)):
        value = getattr(message, field.name)
        if field.message is not None:
            for one in value if isinstance(value, list) else [value] if value is not None else []:
                yield from codes_in(one)
        elif field.name == "error_code":
            yield value


@pytest.mark.parametrize("name", LEDGERS)
def test_the_look_up_of_topics_finds_no_ledger(name: str) -> None:
    topics: Topics = House().broker.broker.topics
    assert topics.find_replica(name, 0) is None
    assert topics.end_offset(name, 0) is None
    assert topics.leader_epoch(name, 0) == -1


def test_a_forged_tombstone_deletes_no_topic() -> None:
    house = House()
    api = APIS[0]
    for name in ("@metadata", "__metadata"):
        asked(house, filled(api.request, api.versions.first, name, bytes(16)), api.versions.first)
    disk, clock = house.broker.disk, house.broker.clock
    house.broker.stop()
    assert set(restarted(disk, clock).broker.topics.image.topics) == {"orders"}
