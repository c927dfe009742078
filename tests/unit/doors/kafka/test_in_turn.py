"""What a client is told of where things are is true when it is told, though it asked behind a fetch that waits."""

from goqueue.wire.kafka.frames import decode_response
from goqueue.wire.kafka.messages import fetch as wire_fetch
from goqueue.wire.kafka.messages.metadata import MetadataRequest, MetadataResponse
from tests.unit.doors.kafka.share_members import Guest, House
from tests.unit.doors.kafka.transports import feed

FETCH_MS, FETCH_VERSION, METADATA_VERSION = 500, 11, 9


def waiting_fetch() -> wire_fetch.FetchRequest:
    place = wire_fetch.FetchPartition(0, fetch_offset=0)
    place.partition_max_bytes = 1 << 20
    topics = [wire_fetch.FetchTopic("orders", partitions=[place])]
    return wire_fetch.FetchRequest(max_wait_ms=FETCH_MS, min_bytes=1, max_bytes=1 << 20, topics=topics)


def frames(guest: Guest) -> list[memoryview]:
    found, rest = [], memoryview(bytes(guest._transport.written))
    while rest:
        end = 4 + int.from_bytes(rest[:4], "big")
        found.append(rest[4:end])
        rest = rest[end:]
    return found


def names(frame: memoryview) -> list[str | None]:
    return [topic.name for topic in decode_response(MetadataResponse, METADATA_VERSION, frame)[1].topics]


def test_metadata_behind_a_fetch_that_waits_is_as_new_as_its_answer() -> None:
    house = House()
    guest = Guest(house)
    guest.send(waiting_fetch(), FETCH_VERSION)
    for _ in range(2):
        guest.send(MetadataRequest(None), METADATA_VERSION)
    house.broker.create("news", 1)
    assert frames(guest) == []
    house.advance(FETCH_MS)
    fetched, first, second = frames(guest)
    assert not decode_response(wire_fetch.FetchResponse, FETCH_VERSION, fetched)[1].responses[0].partitions[0].records
    assert sorted(map(str, names(first))) == sorted(map(str, names(second))) == ["news", "orders"]


def test_metadata_that_nothing_is_before_is_answered_at_once_and_a_lost_client_asks_for_nothing() -> None:
    house = House()
    guest, gone = Guest(house), Guest(house)
    guest.send(MetadataRequest(None), METADATA_VERSION)
    assert [names(frame) for frame in frames(guest)] == [["orders"]]
    gone.send(waiting_fetch(), FETCH_VERSION)
    gone.send(MetadataRequest(None), METADATA_VERSION)
    gone._connection.connection_lost(None)
    house.advance(FETCH_MS)
    assert frames(gone) == []


MANY = 2000
"""More than calls may be nested, and than a client should have under way: one read brings them all."""


def test_however_many_wait_behind_a_fetch_all_are_answered_and_others_have_their_turn_in_between() -> None:
    house = House()
    guest = Guest(house)
    guest.send(waiting_fetch(), FETCH_VERSION)
    feed(guest._connection, b"".join(guest.encode(MetadataRequest([]), METADATA_VERSION) for _ in range(MANY)))
    writes = guest._transport.writes
    house.advance(FETCH_MS)
    assert len(frames(guest)) == 1 + MANY
    assert guest._transport.writes - writes >= MANY  # one in each turn of the loop
