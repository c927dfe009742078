"""Large batches on topics that look at every record: nobody waits for them, and they are kept whole or not at all."""

import sys
from typing import Any

import pytest

from goqueue.broker.publishing.opening import TURN_RECORDS
from goqueue.broker.reading.scan import Reader
from goqueue.broker.schemas.schemas import Given
from goqueue.machines.controller_commands import CreateTopic, DeleteTopic, SetOptions
from goqueue.model.codes import Code
from goqueue.model.schemas import SchemaKind
from goqueue.records.batch import Codec
from goqueue.records.build import NewRecord, build_batch
from goqueue.runtime.aside import Done, Work
from goqueue.wire.kafka.messages.metadata import ApiVersionsRequest, ApiVersionsResponse
from goqueue.wire.kafka.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tests.layers import in_layers
from tests.steps import count_steps
from tests.unit.doors.kafka.share_members import Guest, House, topic_id

COUNT = 20 * TURN_RECORDS
LINES_MAX = 60 * TURN_RECORDS
"""Of one turn: for each of its records some, and nothing that grows with the batch."""
VERSION = 9
SCHEMA = '{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}'
NOW_MS = 1_700_000_000_000
KINDS: dict[str, dict[str, str]] = {
    "compacted": {"cleanup_policy": "compact"},
    "validated": {"schema_validation": "reject", "schema_subject": "fixed"},
    "validated to dead letters": {"schema_validation": "dead-letter", "schema_subject": "fixed"},
    "deduplicated": {"dedup_ms": "600000"},
    "with wishes": {"wishes": "all"},
    "with wishes in order": {"wishes": "all", "delay_order": "hold_key"},
    "bounded in time": {"message_timestamp_before_max_ms": "3600000"},
}


def house(kind: str) -> House:
    made = House()
    made.broker.clock.advance(NOW_MS - made.broker.clock.now_ms())
    register(made)
    made.broker.broker.publisher.turns.work_aside(uncounted)
    made.broker.create("looked", **KINDS[kind])  # type: ignore[arg-type]
    return made


def uncounted(work: Work, done: Done) -> None:
    """As a thread would do it."""
    counting = sys.gettrace()
    sys.settrace(None)
    work()
    sys.settrace(counting)
    done(None)


def register(made: House) -> None:
    replies: list[Any] = []
    given = Given(SCHEMA, SchemaKind.JSON)
    made.broker.broker.schemas.register("fixed", given, replies.append)
    made.broker.commit()


def records(count: int = COUNT, first: int = 0, last: dict[str, Any] | None = None) -> list[NewRecord]:
    made: list[NewRecord] = [
        (NOW_MS, b"k%d" % number, b'{"n": %d}' % number, [("gq-dedup-id", b"i%d" % number)])
        for number in range(first, first + count)
    ]
    if last:
        timestamp, key, value, headers = made[-1]
        fields = {"timestamp": timestamp, "key": key, "value": value, "headers": headers} | last
        made[-1] = (fields["timestamp"], fields["key"], fields["value"], fields["headers"])
    return made


def request(*batches: bytes | bytearray, acks: int = -1, topic: str = "looked") -> ProduceRequest:
    places = [PartitionProduceData(number, memoryview(bytes(each))) for number, each in enumerate(batches)]
    return ProduceRequest(None, acks, 1000, [TopicProduceData(topic, topic_id(topic), places)])


def large(codec: Codec = Codec.LZ4, **fields: Any) -> bytearray:
    return build_batch(
        records(**{key: fields.pop(key) for key in ("count", "first", "last") if key in fields}), codec=codec, **fields
    )


def turns(made: House) -> list[int]:
    """The lines of each turn until nothing is left to do."""
    clock, lines = made.broker.clock, []
    while clock._soon:
        lines.append(count_steps(clock._soon.popleft()))
    made.broker.commit()
    return lines


def some_turns(made: House, count: int = 5) -> None:
    for _ in range(count):
        made.broker.clock._soon.popleft()()


def results(guest: Guest) -> list[PartitionProduceResponse]:
    found = guest.replies(ProduceResponse, VERSION)
    return [part for reply in found for part in reply.responses[0].partition_responses]


def codes(guest: Guest) -> list[int]:
    return [part.error_code for part in results(guest)]


def values(made: House, topic: str = "looked") -> list[bytes | None]:
    made.broker.commit()
    found: list[bytes | None] = []
    replica = made.broker.broker.topics.replica(topic, 0)
    reader = Reader(replica, 0, replica.last_stable_offset)
    while (taken := reader.take()) is not None:
        found += [each.value for each in taken]
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("codec", in_layers([Codec.LZ4, Codec.NONE], first=1))
def test_others_are_served_while_a_large_batch_is_looked_at(kind: str, codec: Codec) -> None:
    made = house(kind)
    guest, other = Guest(made), Guest(made)
    batch = request(large(codec))
    first = count_steps(lambda: guest.post(batch, VERSION))
    other.post(ApiVersionsRequest(), 0)
    assert len(other.replies(ApiVersionsResponse, 0)) == 1
    assert results(guest) == []
    lines = turns(made)
    assert max(first, *lines) < LINES_MAX
    assert codes(guest) == [0]
    assert values(made) == [b'{"n": %d}' % number for number in range(COUNT)]


def test_a_small_batch_is_published_in_the_turn_in_which_it_comes() -> None:
    for kind in KINDS:
        made = house(kind)
        made.broker.broker.schemas.parsed(1)
        guest = Guest(made)
        guest.post(request(large(count=50)), VERSION)
        assert made.broker.broker.topics.replica("looked", 0).end_offset == 50


BAD: dict[str, dict[str, Any]] = {
    "compacted": {"key": None},
    "validated": {"value": b'{"n": "x"}'},
    "deduplicated": {"headers": [("gq-dedup-id", b"")]},
    "with wishes": {"headers": [("gq-delay-ms", b"soon")]},
    "bounded in time": {"timestamp": 1},
}


@pytest.mark.parametrize("kind", BAD)
def test_one_bad_record_at_the_end_refuses_the_whole_batch(kind: str) -> None:
    made = house(kind)
    guest = Guest(made)
    about: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0}
    guest.post(request(large(last=BAD[kind], base_sequence=0, **about)), VERSION)
    assert max(turns(made)) < LINES_MAX
    (refused,) = results(guest)
    assert refused.error_code in (Code.INVALID_RECORD, Code.INVALID_TIMESTAMP)
    assert [one.batch_index for one in refused.record_errors] == [COUNT - 1]
    assert values(made) == []
    guest.send(request(large(base_sequence=0, **about)), VERSION)
    assert codes(guest) == [0]
    assert len(values(made)) == COUNT


def test_records_that_fit_no_schema_become_dead_letters_in_turns() -> None:
    made = house("validated to dead letters")
    guest = Guest(made)
    bad = [(at, key, b"[]", headers) for at, key, _, headers in records(COUNT // 2, COUNT)]
    guest.post(request(build_batch([*records(COUNT // 2), *bad], codec=Codec.LZ4)), VERSION)
    assert max(turns(made)) < LINES_MAX
    assert codes(guest) == [0]
    assert values(made) == [b'{"n": %d}' % number for number in range(COUNT // 2)]
    assert values(made, "looked.dlq") == [b"[]"] * (COUNT // 2)


@pytest.mark.parametrize("kind", KINDS)
def test_batches_that_come_behind_a_large_one_do_not_overtake_it(kind: str) -> None:
    made = house(kind)
    guest = Guest(made)
    about: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0}
    sent = [
        guest.encode(request(large(base_sequence=0, **about)), VERSION),
        guest.encode(request(large(count=3, first=COUNT, base_sequence=COUNT, **about)), VERSION),
        guest.encode(request(large(first=COUNT + 3, base_sequence=COUNT + 3, **about)), VERSION),
    ]
    feed_as_read(guest, b"".join(sent))
    assert [(part.error_code, part.base_offset) for part in results(guest)] == [(0, 0), (0, COUNT), (0, COUNT + 3)]
    assert values(made) == [b'{"n": %d}' % number for number in range(2 * COUNT + 3)]


def feed_as_read(guest: Guest, data: bytes) -> None:
    """As a socket is read: not while its connection does not want to."""
    left = memoryview(data)
    while left:
        assert guest._transport.is_reading_now
        room = memoryview(guest._connection.get_buffer(-1))
        size = min(len(room), len(left))
        room[:size] = left[:size]
        left = left[size:]
        guest._connection.buffer_updated(size)
        guest.house.broker.commit()


def test_all_partitions_of_a_request_are_answered_together() -> None:
    made = House()
    made.broker.create("looked", 3, cleanup_policy="compact")
    guest = Guest(made)
    guest.send(request(large(), large(last={"key": None}), large(count=2)), VERSION)
    assert codes(guest) == [0, Code.INVALID_RECORD, 0]
    ends = [made.broker.broker.topics.replica("looked", number).end_offset for number in range(3)]
    assert ends == [COUNT, 0, 2]


@pytest.mark.parametrize("acks", [-1, 0])
def test_a_batch_whose_client_goes_meanwhile_is_kept_whole(acks: int) -> None:
    made = house("deduplicated")
    guest = Guest(made)
    guest.post(request(large(), acks=acks), VERSION)
    some_turns(made)
    guest.lose_connection()
    assert len(values(made)) == COUNT
    assert made.broker.broker.publisher.turns.count == 0


@pytest.mark.parametrize("kind", KINDS)
def test_of_a_batch_under_way_nothing_is_kept_when_the_node_stops(kind: str) -> None:
    made = house(kind)
    guest = Guest(made)
    guest.post(request(large()), VERSION)
    some_turns(made)
    made.broker.broker.publisher.turns.stop()
    made.broker.commit()
    assert results(guest) == []
    assert values(made) == []


def beside(made: House, command: Any) -> None:
    """Have it done while a batch is looked at, with as few turns as it takes."""
    replies: list[Any] = []
    made.broker.broker.topics.submit(command, replies.append)
    for _ in range(15):
        made.broker.committer.run_once()
        if replies:
            break
        some_turns(made, 1)
    assert replies
    assert made.broker.broker.publisher.turns.count == 1


@pytest.mark.parametrize("is_made_again", [False, True])
def test_a_topic_deleted_meanwhile_gets_nothing(is_made_again: bool) -> None:
    made = house("compacted")
    guest = Guest(made)
    guest.post(request(large()), VERSION)
    beside(made, DeleteTopic("looked"))
    if is_made_again:
        beside(made, CreateTopic("looked", topic_id("again"), 1, {}))
    made.broker.commit()
    assert codes(guest) == [Code.UNKNOWN_TOPIC_OR_PARTITION]
    if is_made_again:
        assert values(made) == []


def test_what_a_topic_asks_for_meanwhile_holds_for_the_batch() -> None:
    made = house("bounded in time")
    guest = Guest(made)
    guest.post(request(large(last={"key": None})), VERSION)
    beside(made, SetOptions("looked", {"cleanup.policy": "compact"}))
    made.broker.commit()
    assert codes(guest) == [Code.INVALID_RECORD]
    assert values(made) == []


def test_an_id_that_another_publishes_meanwhile_is_not_published_again() -> None:
    made = house("deduplicated")
    guest, other = Guest(made), Guest(made)
    guest.post(request(large()), VERSION)
    some_turns(made, COUNT // TURN_RECORDS + 3)
    other.post(request(large(count=1, first=5)), VERSION)
    made.broker.commit()
    assert codes(other) == [0]
    assert codes(guest) == [0]
    expected = [b'{"n": 5}', *(b'{"n": %d}' % number for number in range(COUNT) if number != 5)]
    assert values(made) == expected


def test_a_schema_that_nobody_has_read_since_the_start_is_read_aside() -> None:
    made = house("validated")
    schemas = made.broker.broker.schemas
    schemas._parsed.clear()
    schemas._study._parsed.clear()
    waiting: list[tuple[Work, Done]] = []
    made.broker.broker.publisher.turns.work_aside(lambda work, done: waiting.append((work, done)))
    guest = Guest(made)
    guest.send(request(large(count=2)), VERSION)
    assert (len(waiting), results(guest)) == (1, [])
    work, done = waiting.pop()
    work()
    done(None)
    made.broker.commit()
    assert codes(guest) == [0]
    assert len(values(made)) == 2


def test_many_ids_whose_time_is_over_are_forgotten_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goqueue.broker.publishing.dedup_ids.SWEPT_MAX", 1000)
    made = house("deduplicated")
    guest = Guest(made)
    guest.send(request(large(count=3500)), VERSION)
    made.broker.clock.advance(600_001)
    ids = made.broker.broker.sender._dedup._ids["looked"]
    kept = []
    for number in range(5):
        guest.send(request(large(count=1, first=10_000 + number)), VERSION)
        kept.append(len(ids.known))
    assert kept == [2501, 1502, 503, 4, 5]
    guest.send(request(large(count=3500)), VERSION)
    assert codes(guest) == [0] * 7
    assert len(values(made)) == 7005
