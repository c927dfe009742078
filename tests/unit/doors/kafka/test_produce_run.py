"""The short way of Produce: whatever comes, it answers and stores to the last bit what the general way does."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from goqueue.doors.kafka import routes as routes_module
from goqueue.doors.kafka.produce_run import RUN_MAX
from goqueue.doors.kafka.routes import Routes
from goqueue.model.codes import Code
from goqueue.records.batch import Codec
from goqueue.records.build import build_batch
from goqueue.wire.kafka.frames import decode_response, request_frame
from goqueue.wire.kafka.messages.metadata import ApiVersionsRequest
from goqueue.wire.kafka.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from goqueue.wire.kafka.varint import encode_varint
from tests.brokers import data
from tests.unit.doors.kafka.test_door_fuzz import TOPIC_ID, Guest, House, frame
from tests.unit.wire.kafka.test_fuzz import MUTATIONS, mutate

PRICES_ID = b"prices".ljust(16, b".")
TOPICS = {"orders": TOPIC_ID, "prices": PRICES_ID, "nowhere": b"?" * 16}
LATEST = 13


def idempotent(sequence: int, count: int, producer: int) -> memoryview:
    return data(*[b"i"] * count, producer_id=producer, producer_epoch=0, base_sequence=sequence)


def wishing(size: int) -> bytes:
    """A record that shall wait for a minute."""
    return bytes(build_batch([(1000, None, b"w" * size, [("gq-delay-ms", b"60000")])]))


batches = st.one_of(
    st.builds(lambda size: bytes(data(b"x" * size)), st.sampled_from([0, 30, 200, 20_000])),
    st.builds(idempotent, st.integers(0, 4), st.integers(1, 2), st.integers(1, 2)).map(bytes),
    st.builds(lambda codec: bytes(data(b"c" * 100, codec=codec)), st.sampled_from(list(Codec))),
    st.just(bytes(data(b"t", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True))),
    st.sampled_from([bytes(data(b"ab")[:-1]), b"nonsense", b"", None]),
)


@st.composite
def asked(draw: st.DrawFn) -> bytes:
    """Nearly always what a client sends; sometimes not, so that the two ways take turns."""
    rarely = draw(st.integers(0, 9)) == 0
    version = draw(st.integers(3, LATEST) if rarely else st.sampled_from([7, 10, 12, LATEST]))
    topics = []
    for _ in range(draw(st.integers(0, 2)) if rarely else 1):
        name = draw(st.sampled_from([*TOPICS] if rarely else ["orders", "prices"]))
        places = [
            PartitionProduceData(draw(st.integers(0, 2 if rarely else 1)), draw(batches))  # type: ignore[arg-type]
            for _ in range(draw(st.integers(0, 2)) if rarely else 1)
        ]
        topics.append(TopicProduceData(name, TOPICS[name], places))
    acks = draw(st.sampled_from([-1, 1, 0, 5]) if rarely else st.just(-1))
    transactional_id = draw(st.sampled_from([None, "", "tx"])) if rarely else None
    parts = request_frame(
        ProduceRequest(transactional_id, acks, 1000, topics), version, draw(st.integers(0, 99)), draw(CLIENTS)
    )
    return b"".join(part for part in parts if isinstance(part, bytes | memoryview))


CLIENTS = st.sampled_from(["rdkafka", "producer-1"])
OTHER = frame(ApiVersionsRequest(), 0, 42)


@contextmanager
def the_general_way(is_meant: bool) -> Iterator[None]:
    find = Routes.find
    if is_meant:
        Routes.find = lambda self, connection, frame: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        Routes.find = find  # type: ignore[method-assign]


def house(stamp: str = "CreateTime") -> House:
    made = House()
    made.broker.create("prices", 2, message_timestamp_type=stamp, max_message_bytes="10000")
    return made


def outcome(made: House, guest: Guest) -> dict[str, Any]:
    return {
        "written": bytes(guest.transport.written),
        "closed": guest.transport.closed,
        "malformed": made.door.malformed,
        "requests": made.door.requests,
        "batches": made.broker.broker.publisher.batches,
        "bytes": made.broker.broker.publisher.bytes,
        "counted": [dict(counts) for counts in made.broker.broker.journeys.counts],
        "stored": {
            one.name: [bytes(batch.data) for batch in one.batches_from(0)]
            for one in made.broker.replicas
            if one.failure is None and not one.name.startswith("@")
        },
    }


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    st.lists(st.lists(asked() | st.just(OTHER), max_size=6).map(b"".join), max_size=4),
    st.integers(1, 40_000),
    st.sampled_from(["CreateTime", "LogAppendTime"]),
    st.booleans(),
)
def test_both_ways_answer_and_store_the_same(reads: list[bytes], chunk: int, stamp: str, is_broken: bool) -> None:
    outcomes = []
    for is_general in (True, False):
        with the_general_way(is_general), capture_logs():
            made = house(stamp)
            guest = made.knock()
            if is_broken:
                made.broker.disk.faults.add("sync", errno.EIO, prefix="logs/orders/1", forever=True)
            for read in reads:
                for start in range(0, len(read), chunk):
                    if not guest.transport.closed:
                        guest.send(read[start : start + chunk])
                made.broker.clock.run()
            made.settle()
            outcomes.append(outcome(made, guest))
    assert outcomes[0] == outcomes[1]


def both_ways(*reads: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    outcomes = []
    for is_general in (True, False):
        with the_general_way(is_general), capture_logs():
            made = house()
            guest = made.knock()
            for read in reads:
                guest.send(read)
            made.settle()
            outcomes.append(outcome(made, guest))
    return outcomes[0], outcomes[1]


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from([7, 9, 12, LATEST]), MUTATIONS)
def test_a_mutilated_repetition_fares_as_it_would_the_general_way(
    version: int, mutations: list[tuple[float, str, bytes]]
) -> None:
    """First the sound request, which is learned; then one that nearly is the same."""
    body = mutate(ask(0, version)[4:], mutations) or b"\0"
    general, short = both_ways(ask(0, version) * 2, len(body).to_bytes(4, "big") + body)
    assert general == short


@pytest.mark.parametrize("error", [-(2**31), -1000, -2, -1, 1, 2, 3, 4, 1000, 2**31 - 100])
@pytest.mark.parametrize("version", [7, 10])
def test_records_of_another_length_than_they_say_fare_as_the_general_way(version: int, error: int) -> None:
    sound = ask(0, version)
    records = bytes(data(b"x"))
    behind = len(sound) - sound.index(records) - len(records)
    length = max(-1, len(records) + error)
    told = encode_varint(length + 1) if version >= 9 else length.to_bytes(4, "big", signed=True)
    before = sound[4 : sound.index(records) - (1 if version >= 9 else 4)]
    body = before + told + records + sound[len(sound) - behind :]
    general, short = both_ways(sound * 2, len(body).to_bytes(4, "big") + body)
    assert general == short


def ask(
    number: int,
    version: int = 10,
    *,
    topic: str = "orders",
    index: int = 0,
    acks: int = -1,
    client: str = "rdkafka",
    records: bytes = b"",
    **fields: Any,
) -> bytes:
    place = PartitionProduceData(index, memoryview(records) if records else data(b"x", **fields))
    request = ProduceRequest(None, acks, 1000, [TopicProduceData(topic, TOPICS[topic], [place])])
    parts = request_frame(request, version, number, client)
    return b"".join(part for part in parts if isinstance(part, bytes | memoryview))


def results(guest: Guest, version: int = 10) -> list[tuple[int, PartitionProduceResponse]]:
    found = []
    for reply in guest.replies():
        number, response, _ = decode_response(ProduceResponse, version, reply)
        found.append((number, response.responses[0].partition_responses[0]))
    return found


def learned(made: House, version: int = 10, **place: Any) -> Guest:
    """A client that was seen before."""
    guest = made.knock()
    guest.send(ask(0, version, **place))
    made.broker.commit()
    guest.transport.written.clear()
    return guest


@pytest.mark.parametrize("version", [7, 8, 9, 12, LATEST])
def test_what_comes_in_one_read_is_one_write_and_one_reply(version: int) -> None:
    made = House()
    guest = learned(made, version)
    operations, writes = made.broker.disk.op_count, guest.transport.writes
    guest.send(b"".join(ask(number, version) for number in range(50)))
    made.broker.clock.run()
    assert made.broker.disk.op_count == operations + 1
    made.broker.commit()
    assert guest.transport.writes == writes + 1
    assert [(number, one.error_code, one.base_offset) for number, one in results(guest, version)] == [
        (number, 0, 3 + number) for number in range(50)
    ]


def test_a_batch_that_was_refused_in_one_partition_costs_the_others_nothing() -> None:
    """A partition that is led elsewhere now may never be written to on this connection again."""
    made = House()
    guest = learned(made, index=1)
    made.broker.broker.topics.replica("orders", 0).follow(3, leader=2)
    guest.send(ask(1, records=bytes(idempotent(0, 1, 7))))
    assert [one.error_code for _, one in results(guest)] == [Code.NOT_LEADER_OR_FOLLOWER]
    operations = made.broker.disk.op_count
    guest.send(b"".join(ask(number, index=1) for number in range(50)))
    made.broker.clock.run()
    assert made.broker.disk.op_count == operations + 1


@pytest.mark.parametrize("version", [7, LATEST])
def test_what_was_seen_in_one_read_says_nothing_of_the_next(version: int) -> None:
    """A read without any wish, then a frame with one that is so large that it is received into memory of its own."""
    made = House()
    guest = learned(made, version)
    guest.send(ask(1, version) + ask(2, version))
    guest.send(ask(3, version, records=wishing(200_000)))
    guest.send(ask(4, version, records=wishing(10)) + ask(5, version))
    made.broker.commit()
    assert [number for number, one in results(guest, version) if one.error_code == 0] == [1, 2, 3, 4, 5]
    pending = made.broker.broker.schedules.pending("orders", 0, None, 10)
    assert [found.schedule.key.offset for found in pending] == [5, 6]


def test_records_of_a_compacted_topic_need_a_key_on_the_short_way_too() -> None:
    made = House()
    made.broker.create("prices", cleanup_policy="compact")
    keyed = bytes(build_batch([(1000, b"key", b"value", [])]))
    guest = made.knock()
    guest.send(b"".join(ask(number, topic="prices", records=keyed) for number in (1, 2)) + ask(3, topic="prices"))
    made.broker.commit()
    assert [one.error_code for _, one in results(guest)] == [0, 0, Code.INVALID_RECORD]


def test_records_wait_behind_their_key_on_the_short_way_too() -> None:
    made = House()
    made.broker.create("prices", delay_order="hold_key")
    plain = bytes(build_batch([(1000, b"key", b"value", [])]))
    delayed = bytes(build_batch([(1000, b"key", b"value", [("gq-delay-ms", b"60000")])]))
    guest = made.knock()
    for records in (plain, plain, delayed, plain):
        guest.send(ask(0, topic="prices", records=records))
        made.broker.commit()
    pending = made.broker.broker.schedules.pending("prices", 0, None, 10)
    assert [found.schedule.key.offset for found in pending] == [2, 3]


@pytest.mark.parametrize(("acks", "codes"), [(-1, [0, 0]), (1, [0, 0]), (0, []), (5, [Code.INVALID_REQUIRED_ACKS] * 2)])
def test_only_who_asks_for_an_answer_gets_one(acks: int, codes: list[int]) -> None:
    made = House()
    guest = learned(made, acks=acks)
    guest.send(ask(1, acks=acks) + ask(2, acks=acks))
    made.broker.commit()
    assert [one.error_code for _, one in results(guest)] == codes


def test_a_long_run_is_cut_and_keeps_its_order() -> None:
    made = House()
    guest = learned(made)
    count = RUN_MAX * 2 + 10
    guest.send(b"".join(ask(number) for number in range(count)))
    made.broker.commit()
    assert [(number, one.base_offset) for number, one in results(guest)] == [
        (number, 3 + number) for number in range(count)
    ]


def test_nothing_is_acknowledged_before_it_is_durable() -> None:
    made = House()
    guest = learned(made)
    guest.send(ask(1) + ask(2))
    made.broker.clock.run()
    assert guest.replies() == []
    made.broker.commit()
    assert len(results(guest)) == 2


def test_what_comes_on_the_short_way_while_a_leader_hands_over_waits_and_is_not_appended() -> None:
    made = House()
    guest = learned(made)
    replica = made.broker.broker.topics.replica("orders", 0)
    end_offset = replica.end_offset
    replica.rest()
    guest.send(ask(1) + ask(2))
    assert results(guest) == []
    replica.follow(replica.leader_epoch + 1, 7)
    made.broker.clock.run()
    assert [one.error_code for _, one in results(guest)] == [Code.NOT_LEADER_OR_FOLLOWER] * 2
    assert replica.end_offset == end_offset


@pytest.mark.parametrize("is_general", [True, False])
def test_what_is_not_acknowledged_in_time_is_said_to_have_timed_out(is_general: bool) -> None:
    made = House()
    guest = learned(made)
    with the_general_way(is_general):
        guest.send(ask(1) + ask(2))
    made.broker.clock.advance(999)
    assert guest.replies() == []
    made.broker.clock.advance(201)
    expected = [(number, Code.REQUEST_TIMED_OUT, -1) for number in (1, 2)]
    assert [(number, one.error_code, one.base_offset) for number, one in results(guest)] == expected
    made.broker.commit()
    assert len(guest.replies()) == 2, "the acknowledgement comes too late to be told"
    assert made.broker.broker.topics.replica("orders", 0).high_watermark == 5


def test_replies_keep_their_order_among_other_requests() -> None:
    made = House()
    guest = learned(made)
    guest.send(ask(1) + OTHER + ask(2) + OTHER + ask(3))
    made.broker.commit()
    assert [int.from_bytes(reply[:4], "big") for reply in guest.replies()] == [1, 42, 2, 42, 3]


def test_a_topic_that_was_deleted_and_made_again_is_not_taken_for_the_old_one() -> None:
    made = House()
    guest = learned(made, LATEST)
    from goqueue.machines.controller_commands import CreateTopic, DeleteTopic

    submit = made.broker.broker.topics.submit
    made.broker.ask(submit, DeleteTopic("orders"))
    made.broker.ask(submit, CreateTopic("orders", b"another".ljust(16, b"."), 1, {}))
    guest.send(ask(1, LATEST))
    made.broker.commit()
    assert [one.error_code for _, one in results(guest, LATEST)] == [Code.UNKNOWN_TOPIC_ID]


def test_a_connection_finds_topics_whose_names_differ_in_length() -> None:
    made = house()
    made.broker.create("x")
    TOPICS["x"] = b"x".ljust(16, b".")
    guest = made.knock()
    places = [("x", 0), ("orders", 0), ("prices", 1)]
    reads = b"".join(ask(0, topic=topic, index=index) for topic, index in places * 4)
    guest.send(reads)
    made.broker.commit()
    before = made.broker.disk.op_count
    guest.send(reads)
    made.broker.commit()
    writes = [line for line in made.broker.disk.trace()[before:] if "write" in str(line) and ".log" in str(line)]
    assert len(writes) == len(places)


def test_what_is_refused_again_and_again_is_remembered_once() -> None:
    made = House()
    guest = learned(made)
    for number in range(20):
        guest.send(ask(number, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True))
        made.knock().send(ask(number))
    made.broker.commit()
    assert [one.error_code for _, one in results(guest)] == [Code.INVALID_PRODUCER_ID_MAPPING] * 20
    assert guest._connection.routes._count == 1


def test_what_is_remembered_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes_module, "ROUTES_MAX", 4)
    made = House()
    guest = made.knock()
    for number in range(20):
        guest.send(ask(number, client="c" * number))
        assert guest._connection.routes._count <= 4
    made.broker.commit()
    assert len(results(guest)) == 20
    assert len(guest._connection.heads) <= routes_module.HEADS_MAX
