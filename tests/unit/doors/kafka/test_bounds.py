"""What one request may ask for, and what one client may make the broker keep."""

from typing import Any

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from goqueue.doors.kafka.handlers.metadata import CREATED_MAX
from goqueue.doors.kafka.request import PER_TURN
from goqueue.machines.groups.commands import MEMBER_BYTES_MAX
from goqueue.machines.transactions.facts import State
from goqueue.model.codes import Code
from goqueue.model.ids import GROUP_ID_CHARS_MAX, MEMBER_ID_CHARS_MAX, TRANSACTIONAL_ID_CHARS_MAX
from goqueue.wire.kafka.apis import Api
from goqueue.wire.kafka.bounds import entries_max
from goqueue.wire.kafka.messages.classic_groups import JoinGroupRequestProtocol
from goqueue.wire.kafka.messages.metadata import MetadataRequestTopic
from goqueue.wire.kafka.messages.share_offsets import AlterShareGroupOffsetsRequestPartition
from goqueue.wire.kafka.notation import Message
from goqueue.wire.kafka.schema import Field, fields_of
from tests.steps import count_steps
from tests.unit.doors.kafka.every_api import OFFERED, sample
from tests.unit.doors.kafka.share_members import Guest, House
from tests.unit.doors.kafka.transports import feed

BY_NAME = {api.name: api for api in OFFERED}
LEGAL = 10_000
BY_PART = {"AlterShareGroupOffsets": AlterShareGroupOffsetsRequestPartition}
FAULTS = {"request failed", "response failed", "coordinator stopped"}


def arrays(api: Api) -> list[Field]:
    """Those of the request itself."""
    fields = fields_of(api.request)
    return [one for one in fields if one.is_array and one.tag is None and api.versions.last in one.versions]


def with_many(api: Api, field: Field, count: int) -> Message:
    version = api.versions.last
    if field.message is not None:
        one: Any = sample(field.message, version)
    else:
        one = "x" if field.kind == "string" else 0
    values: dict[str, Any] = {field.name: [one] * count}
    made: Message = sample(api.request, version, **values)
    return made


WITH_ARRAYS = [(api, field) for api in OFFERED for field in arrays(api)]


@pytest.mark.parametrize(("api", "field"), WITH_ARRAYS, ids=lambda each: each.name)
def test_a_request_for_too_much_is_refused_before_it_costs_anything(api: Api, field: Field) -> None:
    house = House()
    guest = Guest(house)
    limit = entries_max(api.request.__name__)
    assert limit is not None
    version = api.versions.last
    has_code = any(one.name == "error_code" and version in one.versions for one in fields_of(api.response))
    frame = guest.encode(with_many(api, field, limit + 1), version)
    with capture_logs() as told:
        assert count_steps(lambda: feed(guest._connection, frame)) < limit, "mostly to compile the decoder"
    assert [event for event in told if event["event"] in FAULTS] == []
    if has_code:
        (answer,) = guest.replies(api.response, version)
        assert answer.error_code == Code.INVALID_REQUEST  # type: ignore[attr-defined]
        assert not guest._transport.closed
    else:
        assert guest._transport.closed
        assert [event["event"] for event in told] == ["bad request"]
        assert "ask for fewer" in told[0]["reason"]


@pytest.mark.parametrize(
    ("name", "field"),
    [("Fetch", "partitions"), ("ListOffsets", "partitions"), ("OffsetCommit", "partitions"), ("Metadata", "topics")],
)
def test_a_request_for_ten_thousand_partitions_is_answered(name: str, field: str) -> None:
    house = House()
    guest = Guest(house)
    api = BY_NAME[name]
    version = api.versions.last
    request = sample(api.request, version, max_wait_ms=0, allow_auto_topic_creation=False)
    holder = request if field == "topics" else request.topics[0]
    setattr(holder, field, [sample(type(getattr(holder, field)[0]), version, **numbered(n)) for n in range(LEGAL)])
    guest.send(request, version)
    (answer,) = guest.replies(api.response, version)
    found = (getattr(answer, "topics", None) or getattr(answer, "responses", None) or [])[:]
    assert (len(found) if field == "topics" else len(found[0].partitions)) == LEGAL


def numbered(number: int) -> dict[str, Any]:
    return {"partition": number, "partition_index": number, "name": f"t{number}", "topic_id": bytes(16)}


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("DescribeGroups", "groups"),
        ("DeleteGroups", "groups_names"),
        ("ConsumerGroupDescribe", "group_ids"),
        ("ShareGroupDescribe", "group_ids"),
    ],
)
def test_others_are_served_while_many_names_are_answered(name: str, field: str) -> None:
    house = House()
    many, other = Guest(house), Guest(house)
    api = BY_NAME[name]
    version = api.versions.last
    names = [f"group-{number}" for number in range(40 * PER_TURN)]
    values: dict[str, Any] = {field: names}
    many.post(sample(api.request, version, **values), version)
    versions = BY_NAME["ApiVersions"]
    other.post(sample(versions.request, 0), 0)
    assert len(other.replies(versions.response, 0)) == 1
    assert many.replies(api.response, version) == []
    house.broker.commit()
    (answer,) = many.replies(api.response, version)
    answered = getattr(answer, "groups", None) or getattr(answer, "results", None)
    assert answered is not None
    assert sorted(one.group_id for one in answered) == sorted(names)


def test_others_are_served_while_many_offsets_of_share_groups_are_told_or_set() -> None:
    house = House(partitions=200)
    many, other = Guest(house), Guest(house)
    versions = BY_NAME["ApiVersions"]
    for name in ("AlterShareGroupOffsets", "DescribeShareGroupOffsets"):
        api = BY_NAME[name]
        version = api.versions.last
        request = sample(api.request, version, group_id="g2", topic_name="orders", partitions=[])
        topic = (request if name.startswith("Alter") else request.groups[0]).topics[0]
        if name.startswith("Alter"):
            part = sample(BY_PART[name], version, start_offset=0)
            topic.partitions = [replace(part, partition_index=number) for number in range(200)]
        else:
            topic.partitions = list(range(200))
        many.post(request, version)
        other.post(sample(versions.request, 0), 0)
        assert len(other.replies(versions.response, 0)) == 1
        assert many.replies(api.response, version) == []
        house.broker.commit()
        (answer,) = many.replies(api.response, version)
        topics = answer.responses if name.startswith("Alter") else answer.groups[0].topics  # type: ignore[attr-defined]
        found = topics[0].partitions
        assert [(one.partition_index, one.error_code) for one in found] == [(number, 0) for number in range(200)]


LONG_GROUP, LONG_MEMBER, LONG_TRANSACTIONAL = (
    "x" * (most + 1) for most in (GROUP_ID_CHARS_MAX, MEMBER_ID_CHARS_MAX, TRANSACTIONAL_ID_CHARS_MAX)
)
TOO_LONG: list[tuple[str, dict[str, Any], Code]] = [
    ("JoinGroup", {"group_id": LONG_GROUP, "member_id": ""}, Code.INVALID_GROUP_ID),
    ("JoinGroup", {"group_id": "j", "member_id": LONG_MEMBER}, Code.INVALID_REQUEST),
    ("JoinGroup", {"group_id": "j", "member_id": "", "group_instance_id": LONG_MEMBER}, Code.INVALID_REQUEST),
    ("SyncGroup", {"group_id": LONG_GROUP}, Code.INVALID_GROUP_ID),
    ("Heartbeat", {"group_id": LONG_GROUP}, Code.INVALID_GROUP_ID),
    ("LeaveGroup", {"group_id": LONG_GROUP}, Code.INVALID_GROUP_ID),
    ("ConsumerGroupHeartbeat", {"group_id": LONG_GROUP}, Code.INVALID_GROUP_ID),
    ("ConsumerGroupHeartbeat", {"group_id": "c", "member_id": LONG_MEMBER}, Code.INVALID_REQUEST),
    ("ShareGroupHeartbeat", {"group_id": LONG_GROUP}, Code.INVALID_GROUP_ID),
    ("ShareFetch", {"group_id": LONG_GROUP, "share_session_epoch": 0}, Code.INVALID_GROUP_ID),
    ("ShareFetch", {"member_id": LONG_MEMBER, "share_session_epoch": 0}, Code.INVALID_REQUEST),
    ("AlterShareGroupOffsets", {"group_id": LONG_GROUP, "topic_name": "orders"}, Code.INVALID_GROUP_ID),
    ("InitProducerId", {"transactional_id": LONG_TRANSACTIONAL, "producer_id": -1}, Code.INVALID_REQUEST),
]


@pytest.mark.parametrize(("name", "values", "expected"), TOO_LONG)
def test_an_id_that_is_too_long_is_refused_and_nothing_is_kept(
    name: str, values: dict[str, Any], expected: Code
) -> None:
    house = House()
    guest, api = Guest(house), BY_NAME[name]
    version = api.versions.last
    guest.send(sample(api.request, version, **values), version)
    (answer,) = guest.replies(api.response, version)
    assert answer.error_code == expected  # type: ignore[attr-defined]
    broker = house.broker.broker
    assert broker.groups.page(None, 10) == []
    assert broker.queues.page(None, 10) == ["g"], "whose options the test has set"
    assert broker.transactions.peek().page(State, None, 10) == []


def test_a_client_id_of_any_length_that_is_taken_gives_a_member_id_that_is_taken() -> None:
    house = House()
    made = house.broker.broker.groups.new_member_id("c" * MEMBER_ID_CHARS_MAX)
    assert len(made) == MEMBER_ID_CHARS_MAX


def test_a_name_that_is_repeated_is_answered_once() -> None:
    house = House()
    guest = Guest(house)
    metadata, version = BY_NAME["Metadata"], 12
    asked = sample(metadata.request, version, topics=[MetadataRequestTopic(name="orders")] * 5000)
    answer = guest.call(asked, version, metadata.response)
    assert [topic.name for topic in answer.topics] == ["orders"]  # type: ignore[attr-defined]


def test_one_request_makes_few_topics_and_who_asks_again_gets_the_next() -> None:
    house = House()
    guest = Guest(house)
    api, version = BY_NAME["Metadata"], 12
    names = [f"t{number}" for number in range(2 * CREATED_MAX + 5)]
    asked = [MetadataRequestTopic(name=name) for name in names]
    made = []
    for _ in range(3):
        answer: Any = guest.call(
            sample(api.request, version, topics=asked, allow_auto_topic_creation=True), version, api.response
        )
        codes = {topic.name: topic.error_code for topic in answer.topics}
        assert set(codes) == set(names)
        assert set(codes.values()) <= {Code.NONE, Code.LEADER_NOT_AVAILABLE}
        made.append(sum(code == Code.NONE for code in codes.values()))
    assert made == [CREATED_MAX, 2 * CREATED_MAX, len(names)]


def join(guest: Guest, size: int, member_id: str = "") -> Any:
    api = BY_NAME["JoinGroup"]
    protocols = [JoinGroupRequestProtocol("range", bytes(size))]
    guest.send(sample(api.request, 3, group_id="stream", member_id=member_id, protocols=protocols), 3)
    return next(iter(guest.replies(api.response, 3)), None)


def test_a_member_that_tells_too_much_of_itself_is_refused() -> None:
    house = House()
    assert join(Guest(house), MEMBER_BYTES_MAX).error_code == Code.INVALID_REQUEST
    assert join(Guest(house), MEMBER_BYTES_MAX // 2).error_code == Code.NONE


def test_a_group_keeps_so_much_and_no_more() -> None:
    house = House()
    size = MEMBER_BYTES_MAX - 100
    answers = [join(Guest(house), size) for _ in range(20)]
    refused = [answer for answer in answers if answer is not None and answer.error_code]
    assert [answer.error_code for answer in refused] == [Code.GROUP_MAX_SIZE_REACHED] * 4
    assert join(Guest(house), 100) is None, "who tells little finds room, and waits for the others"


def test_a_client_whose_requests_wait_is_not_read_beyond_a_size() -> None:
    house = House()
    house.door._limits.pending_bytes_max = 60_000
    guest = Guest(house)
    api = BY_NAME["Fetch"]
    version = api.versions.last
    request = sample(api.request, version)
    request.topics[0].partitions *= 1000
    was_read = []
    for _ in range(3):
        was_read.append(guest._transport.is_reading_now)
        guest.send(request, version)
    assert was_read == [True, True, False]
    house.advance(1000)
    assert len(guest.replies(api.response, version)) == 3
    assert guest._transport.is_reading_now


def test_clients_together_keep_so_many_bytes_waiting_and_who_comes_too_many_is_turned_away() -> None:
    house = House()
    house.door._limits.waiting_bytes_max = 100_000
    api = BY_NAME["Fetch"]
    version = api.versions.last
    request = sample(api.request, version)
    request.topics[0].partitions *= 1000
    guests = [Guest(house) for _ in range(5)]
    size = len(guests[0].encode(request, version)) - 4
    fit = 100_000 // size
    assert 1 < fit < 4
    with capture_logs() as told:
        for guest in guests:
            guest.send(request, version)
            if guest._transport.closed:
                guest._connection.connection_lost(None)
    assert [guest._transport.closed for guest in guests] == [False] * fit + [True] * (5 - fit)
    assert {event["event"] for event in told} == {"bad request"}
    assert house.door.waiting_bytes == fit * size
    small = Guest(house)
    small.send(sample(BY_NAME["ApiVersions"].request, 0), 0)
    assert len(small.replies(BY_NAME["ApiVersions"].response, 0)) == 1, "what is answered at once is answered"
    house.advance(1000)
    assert house.door.waiting_bytes == 0
    assert [len(guest.replies(api.response, version)) for guest in guests[:fit]] == [1] * fit
