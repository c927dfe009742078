"""Quotas at the Kafka door: what clients are told, when they are read again, and that nothing is lost."""

from typing import Any, TypeVar

import pytest

from goqueue.model.codes import Code
from goqueue.wire.kafka.apis import APIS
from goqueue.wire.kafka.frames import decode_response, request_frame, response_frame
from goqueue.wire.kafka.messages import quotas as wire
from goqueue.wire.kafka.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from goqueue.wire.kafka.messages.metadata import ApiVersionsRequest, MetadataRequest, MetadataResponse
from goqueue.wire.kafka.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from goqueue.wire.kafka.notation import Message
from tests.brokers import data
from tests.unit.doors.kafka.test_door_fuzz import Guest, House

T = TypeVar("T", bound=Message)
PRODUCED, CONSUMED, REQUESTS = "producer_byte_rate", "consumer_byte_rate", "request_rate"
TIME = "request_percentage"
USER, CLIENT = "user", "client-id"


def sent(message: Message, version: int, number: int, client_id: str = "app") -> bytes:
    parts = request_frame(message, version, number, client_id)
    return b"".join(part for part in parts if isinstance(part, bytes | memoryview))


def produce(number: int, size: int = 900, client_id: str = "app", acks: int = -1) -> bytes:
    records = data(b"%06d" % number + b"x" * size)
    topic = TopicProduceData("orders", bytes(16), [PartitionProduceData(1, records)])
    return sent(ProduceRequest(None, acks, 1000, [topic]), 9, number, client_id)


def fetch(number: int, offset: int = 0) -> bytes:
    topic = FetchTopic("orders", bytes(16), [FetchPartition(1, fetch_offset=offset, partition_max_bytes=1 << 20)])
    return sent(FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=[topic]), 11, number)


class Client(Guest):
    def __init__(self, house: House) -> None:
        super().__init__(house)
        self._house = house
        self._seen = 0

    def is_read(self) -> bool:
        return self.transport.is_reading_now

    def ask(self, frame: bytes, response: type[T], version: int) -> list[T]:
        """All that has been answered since."""
        self.send(frame)
        return self.answers(response, version)

    def answers(self, response: type[T], version: int) -> list[T]:
        self._house.broker.commit()
        self._house.broker.clock.run()
        replies = self.replies()[self._seen :]
        self._seen += len(replies)
        return [decode_response(response, version, each)[1] for each in replies]

    def alter(self, *limits: tuple[str, float | None], entity: dict[str, str | None] | None = None) -> list[int]:
        named = [wire.QuotaEntity(*each) for each in (entity or {USER: "ANONYMOUS"}).items()]
        ops = [wire.AlterQuotaOp(key, value or 0.0, value is None) for key, value in limits]
        request = wire.AlterClientQuotasRequest([wire.AlterQuotaEntry(named, ops)])
        (answer,) = self.ask(sent(request, 1, 7, "admin"), wire.AlterClientQuotasResponse, 1)
        return [each.error_code for each in answer.entries]


def limited(*limits: tuple[str, float | None], entity: dict[str, str | None] | None = None) -> House:
    house = House()
    admin = Client(house)
    assert admin.alter(*limits, entity=entity) == [Code.NONE]
    return house


def stored(house: House) -> list[int]:
    (replica,) = (each for each in house.broker.replicas if each.name == "orders/1")
    found = b"".join(bytes(batch.data) for batch in replica.batches_from(0))
    return [number for number in range(200) if b"%06d" % number in found]


def test_a_producer_is_told_to_wait_and_read_again_when_it_has() -> None:
    house = limited((PRODUCED, 10_000.0))
    client = Client(house)
    answers = client.ask(b"".join(produce(number) for number in range(30)), ProduceResponse, 9)
    assert not client.is_read()
    told = [each.throttle_time_ms for each in answers]
    assert all(each.responses[0].partition_responses[0].error_code == 0 for each in answers)
    assert 0 < len(answers) <= 30
    assert told[-1] > 0
    begun_s, seen = house.broker.clock.monotonic_s(), len(answers)
    for _ in range(100):
        if seen == 30 and client.is_read():
            break
        house.broker.clock.advance(50)
        seen += len(client.answers(ProduceResponse, 9))
    assert stored(house) == list(range(30)), "in order, and all of them"
    passed_s = house.broker.clock.monotonic_s() - begun_s
    assert passed_s >= (30 * 960 - 10_000) / 10_000 - 0.1
    assert passed_s < 4


def test_each_way_of_produce_says_how_long_and_mutes_as_long() -> None:
    """The first request is decoded, those after it go by what was learned from it."""
    house = limited((PRODUCED, 1000.0))
    client = Client(house)
    for number in range(3):
        (answer,) = client.ask(produce(number, 2900), ProduceResponse, 9)
        owed_ms = answer.throttle_time_ms
        assert 1900 <= owed_ms <= 3100
        assert not client.is_read()
        house.broker.clock.advance(owed_ms - 1)
        assert not client.is_read()
        house.broker.clock.advance(1)
        assert client.is_read()
    assert stored(house) == [0, 1, 2]


def test_a_producer_that_wants_no_answer_is_held_back_all_the_same() -> None:
    house = limited((PRODUCED, 1000.0))
    client = Client(house)
    assert client.ask(produce(0, 2900, acks=0), ProduceResponse, 9) == []
    assert not client.is_read()


def test_clients_without_a_quota_are_not_held_back_by_those_that_have_one() -> None:
    house = limited((PRODUCED, 1000.0), entity={CLIENT: "slow"})
    slow, fast = Client(house), Client(house)
    assert slow.ask(produce(0, 5000, "slow"), ProduceResponse, 9)[0].throttle_time_ms > 0
    for number in range(1, 50):
        (answer,) = fast.ask(produce(number, 5000, "fast"), ProduceResponse, 9)
        assert answer.throttle_time_ms == 0
    assert fast.is_read()


def test_a_quota_counts_for_routes_that_were_learned_before_and_no_longer_when_it_is_gone() -> None:
    house = House()
    client, admin = Client(house), Client(house)
    for number in range(3):
        assert client.ask(produce(number, 2900), ProduceResponse, 9)[0].throttle_time_ms == 0
    admin.alter((PRODUCED, 1000.0))
    throttle_ms = client.ask(produce(3, 2900), ProduceResponse, 9)[0].throttle_time_ms
    assert throttle_ms > 0
    house.broker.clock.advance(throttle_ms)
    admin.alter((PRODUCED, None))
    for number in range(4, 8):
        assert client.ask(produce(number, 2900), ProduceResponse, 9)[0].throttle_time_ms == 0
    assert stored(house) == list(range(8))


def test_a_reader_in_debt_is_shown_nothing_until_it_has_waited() -> None:
    house = limited((CONSUMED, 2000.0))
    writer, reader = Client(house), Client(house)
    writer.ask(produce(0, 5000), ProduceResponse, 9)
    (first,) = reader.ask(fetch(1), FetchResponse, 11)
    assert first.responses[0].partitions[0].records, "one batch may go beyond"
    assert first.throttle_time_ms > 1000
    assert not reader.is_read()
    another = Client(house)
    (empty,) = another.ask(fetch(2), FetchResponse, 11)
    assert (empty.error_code, empty.responses) == (Code.NONE, [])
    assert empty.throttle_time_ms > 1000
    house.broker.clock.advance(first.throttle_time_ms + 100)
    assert reader.is_read()
    (again,) = reader.ask(fetch(3), FetchResponse, 11)
    assert again.responses[0].partitions[0].records


def test_a_fetch_brings_no_more_than_a_second_gives() -> None:
    house = limited((CONSUMED, 2000.0))
    writer, reader = Client(house), Client(house)
    writer.send(b"".join(produce(number) for number in range(20)))
    writer.answers(ProduceResponse, 9)
    (got,) = reader.ask(fetch(1), FetchResponse, 11)
    records = got.responses[0].partitions[0].records
    assert isinstance(records, memoryview)
    assert 900 < len(records) < 3000


def test_requests_of_any_kind_count_and_those_before_a_login_do_not() -> None:
    house = limited((REQUESTS, 10.0), entity={CLIENT: "app"})
    client = Client(house)
    metadata = sent(MetadataRequest([]), 9, 1)
    told = [client.ask(metadata, MetadataResponse, 9)[0].throttle_time_ms for _ in range(11)]
    assert told == [0] * 10 + [100]
    assert not client.is_read()
    house.broker.clock.advance(100)
    early = Client(house)
    for number in range(30):
        early.send(sent(ApiVersionsRequest(), 0, number))
    assert early.is_read()


def test_every_answer_can_say_how_long_to_wait() -> None:
    """In versions that have no field for it nothing is said, and the connection is muted."""
    for key, api in APIS.items():
        if "throttle_time_ms" in api.response.__struct_fields__:
            for version in api.versions:
                response = api.response()
                response.throttle_time_ms = 5  # type: ignore[attr-defined]
                assert response_frame(response, version, 1), key


def test_a_muted_connection_that_is_lost_leaves_no_timer() -> None:
    house = limited((PRODUCED, 1000.0))
    client = Client(house)
    client.ask(produce(0, 5000) + produce(1, 5000), ProduceResponse, 9)
    client.leave()
    house.broker.clock.advance(60_000)
    assert stored(house) == [0]


def described(client: Client, *components: tuple[str, int, str | None], strict: bool = False) -> dict[str, object]:
    filters = [wire.QuotaFilterComponent(*each) for each in components]
    request = wire.DescribeClientQuotasRequest(filters, strict)
    (answer,) = client.ask(sent(request, 1, 1, "admin"), wire.DescribeClientQuotasResponse, 1)
    assert answer.error_code == Code.NONE
    return {
        ",".join(f"{part.entity_type}={part.entity_name}" for part in each.entity): {
            one.key: one.value for one in each.values
        }
        for each in answer.entries or []
    }


def test_quotas_are_shown_as_they_were_set_and_filtered_as_kafka_does() -> None:
    client = Client(House())
    entities: list[dict[str, str | None]] = [
        {USER: "alice"},
        {USER: None},
        {CLIENT: "app"},
        {USER: "alice", CLIENT: "app"},
        {USER: "alice", CLIENT: None},
    ]
    for number, entity in enumerate(entities):
        assert client.alter((PRODUCED, 10.0 + number), entity=entity) == [Code.NONE]
    assert len(described(client)) == 5
    of_alice = described(client, (USER, 0, "alice"))
    assert set(of_alice) == {"user=alice", "user=alice,client-id=app", "user=alice,client-id=None"}
    assert described(client, (USER, 0, "alice"), strict=True) == {"user=alice": {PRODUCED: 10.0}}
    assert described(client, (USER, 1, None)) == {"user=None": {PRODUCED: 11.0}}
    assert set(described(client, (USER, 2, None), strict=True)) == {"user=alice", "user=None"}
    both = described(client, (USER, 0, "alice"), (CLIENT, 1, None), strict=True)
    assert both == {"user=alice,client-id=None": {PRODUCED: 14.0}}
    assert described(client, ("ip", 2, None)) == {}
    for ip, rate in (("10.0.0.1", 20.0), (None, 5.0)):
        assert client.alter(("connection_creation_rate", rate), entity={"ip": ip}) == [Code.NONE]
    assert described(client, ("ip", 2, None)) == {
        "ip=10.0.0.1": {"connection_creation_rate": 20.0},
        "ip=None": {"connection_creation_rate": 5.0},
    }
    assert described(client, ("ip", 0, "10.0.0.1"), strict=True).keys() == {"ip=10.0.0.1"}
    assert client.alter((PRODUCED, None), (REQUESTS, 2.5), entity={USER: "alice"}) == [Code.NONE]
    assert described(client, (USER, 0, "alice"), strict=True) == {"user=alice": {REQUESTS: 2.5}}


@pytest.mark.parametrize(
    ("entity", "limit"),
    [
        ({"ip": "10.0.0.1"}, (PRODUCED, 1.0)),
        ({"ip": "localhost"}, ("connection_creation_rate", 1.0)),
        ({"ip": "10.0.0.1", USER: "alice"}, ("connection_creation_rate", 1.0)),
        ({"group": "g"}, (PRODUCED, 1.0)),
        ({USER: ""}, (PRODUCED, 1.0)),
        ({USER: "alice"}, (PRODUCED, 0.0)),
        ({USER: "alice"}, ("connection_creation_rate", 50.0)),
    ],
)
def test_what_there_is_no_quota_of_is_refused(entity: dict[str, str | None], limit: tuple[str, float]) -> None:
    client = Client(House())
    assert client.alter(limit, entity=entity) == [Code.INVALID_REQUEST]
    assert described(client) == {}


def test_a_check_alone_changes_nothing() -> None:
    client = Client(House())
    entry = wire.AlterQuotaEntry([wire.QuotaEntity(USER, "alice")], [wire.AlterQuotaOp(PRODUCED, 5.0)])
    request = wire.AlterClientQuotasRequest([entry], True)
    (answer,) = client.ask(sent(request, 1, 1), wire.AlterClientQuotasResponse, 1)
    assert [each.error_code for each in answer.entries] == [Code.NONE]
    assert described(client) == {}


@pytest.mark.parametrize("is_learned", [False, True])
def test_a_client_that_takes_the_time_of_the_node_is_read_later(is_learned: bool) -> None:
    """By either way of produce. Nothing is lost."""
    house = limited((TIME, 10.0))
    client = Client(house)
    clock, publisher = house.broker.clock, house.broker.broker.publisher
    if is_learned:
        client.ask(produce(0), ProduceResponse, 9)
    whole, wholes = publisher._append, publisher.append

    def slow(*args: Any, **kwargs: Any) -> Any:
        clock.advance(300)
        return whole(*args, **kwargs)

    def slow_run(*args: Any) -> Any:
        clock.advance(300)
        return wholes(*args)

    publisher._append, publisher.append = slow, slow_run  # type: ignore[assignment, method-assign]
    client.ask(produce(1), ProduceResponse, 9)
    assert not client.is_read()
    publisher._append, publisher.append = whole, wholes  # type: ignore[method-assign]
    clock.advance(2100)
    assert client.is_read()
    (answer,) = client.ask(produce(2), ProduceResponse, 9)
    assert answer.throttle_time_ms == 0
    assert stored(house)[-2:] == [1, 2]


def test_a_producer_that_owes_nothing_is_read_without_a_pause() -> None:
    house = limited((TIME, 100_000.0))
    client = Client(house)
    client.ask(produce(1), ProduceResponse, 9)
    timers = house.broker.clock.timers
    client.send(produce(2))
    assert client.is_read()
    assert house.broker.clock.timers == timers
