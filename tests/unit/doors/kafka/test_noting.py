"""What Kafka clients do is counted as what any others do."""

from goqueue.model.codes import Code
from goqueue.telemetry.journeys import Step
from goqueue.wire.kafka.messages import fetch as wire_fetch
from goqueue.wire.kafka.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tests.brokers import data
from tests.unit.doors.kafka.share_members import ACCEPT, GROUP, REJECT, RELEASE, Guest, House, Member

LEASE_MS = 30_000


def counted(house: House, group: str = "") -> dict[str, int]:
    counts = house.broker.broker.journeys.counts
    return {step.name: counts[step]["orders", group] for step in Step if ("orders", group) in counts[step]}


def produce(guest: Guest, records: memoryview) -> Code:
    places = [PartitionProduceData(0, records)]
    request = ProduceRequest(None, -1, 1000, [TopicProduceData("orders", partition_data=places)])
    answer = guest.call(request, 8, ProduceResponse)
    return Code(answer.responses[0].partition_responses[0].error_code)


def test_a_producer_that_repeats_itself_is_counted_once() -> None:
    house = House()
    guest = Guest(house)
    for sequence in (0, 0, 2, 0, 2):
        batch = data(b"a", b"b", producer_id=1, producer_epoch=0, base_sequence=sequence)
        assert produce(guest, batch) is Code.NONE
    assert produce(guest, data(b"a", producer_id=1, producer_epoch=0, base_sequence=9)) is not Code.NONE
    assert counted(house) == {"RECEIVED": 4, "PERSISTED": 4, "REFUSED": 1}


def test_a_batch_that_is_none_is_refused_and_counted() -> None:
    house = House()
    assert produce(Guest(house), memoryview(b"")) is Code.CORRUPT_MESSAGE
    assert counted(house) == {"REFUSED": 1}


def test_a_reader_is_known_by_its_client_id() -> None:
    house = House()
    house.publish(b"a", b"b")
    wanted = [wire_fetch.FetchTopic("orders", partitions=[wire_fetch.FetchPartition(0, fetch_offset=0)])]
    wanted[0].partitions[0].partition_max_bytes = 1 << 20
    request = wire_fetch.FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=wanted)
    Guest(house).call(request, 11, wire_fetch.FetchResponse)
    assert counted(house) == {"RECEIVED": 2, "PERSISTED": 2, "FETCHED": 2}
    assert list(house.broker.broker.journeys.since(0))[-1].consumer == "test"


def test_share_members_accept_release_reject_and_let_leases_end() -> None:
    house = House()
    house.publish(b"a", b"b", b"c", b"d")
    member = Member(house, "anna")
    member.get()
    assert member.ack(0, 2, ACCEPT, RELEASE, REJECT) is Code.NONE
    house.advance(LEASE_MS)
    assert counted(house, GROUP) == {
        "LEASED": 4,
        "ACKED": 1,
        "NACKED": 1,
        "REJECTED": 1,
        "LEASE_ENDED": 1,
        "DEAD_LETTERED": 1,
    }
    leased = [note for note in house.broker.broker.journeys.since(0) if note.step is Step.LEASED]
    assert [note.consumer for note in leased] == ["anna"]


def test_what_a_lost_member_held_is_given_back() -> None:
    house = House()
    house.publish(b"a", b"b")
    member = Member(house)
    member.get()
    member.lose_connection()
    assert counted(house, GROUP) == {"LEASED": 2, "NACKED": 2}
