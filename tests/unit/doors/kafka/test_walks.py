"""What a request costs does not grow with the number of groups and transactional ids, unless it lists them."""

from goqueue.wire.kafka.apis import Api
from tests.steps import count_steps
from tests.unit.doors.kafka.every_api import OFFERED
from tests.unit.doors.kafka.share_members import House
from tests.unit.doors.kafka.test_garbage import Client

FEW, MANY = 5, 60
MORE_AT_MOST = 1.2
SOME_LINES = 200
WAIT_MS = 10
OTHER = "other"
OTHER_ID = OTHER.encode().ljust(16, b".")

LISTS = {"ListGroups", "ListTransactions", "ListConfigResources"}
"""The protocol has no pages for them."""
LINES_OF_ONE = 200
"""Of a group or a transactional id in a list: some microseconds."""


def world(count: int) -> House:
    """Groups of every kind that read another topic than the one that is asked about."""
    house = House()
    house.broker.create(OTHER)
    client = Client(house)
    who = {"subscribed_topic_names": [OTHER], "member_epoch": 0}
    for number in range(count):
        assert (
            client.ask(
                "ConsumerGroupHeartbeat", group_id=f"modern-{number}", member_id="m", topic_partitions=[], **who
            ).error_code
            == 0
        )
        assert client.ask("ShareGroupHeartbeat", group_id=f"share-{number}", **who).error_code == 0
        client.ask("AlterShareGroupOffsets", group_id=f"queue-{number}", topic_name=OTHER)
        client.ask("JoinGroup", 3, group_id=f"classic-{number}", member_id="", name="range")
        client.ask(
            "OffsetCommit",
            group_id=f"stream-{number}",
            topic_id=OTHER_ID,
            generation_id_or_member_epoch=-1,
            member_id="",
        )
        assert client.ask("InitProducerId", 4, transactional_id=f"id-{number}", producer_id=-1).error_code == 0
    return house


def lines(house: House, api: Api) -> int:
    """Of the second time: the first may have to get ready."""
    client = Client(house)

    def once() -> None:
        client.put(api.name, max_wait_ms=WAIT_MS)
        house.advance(WAIT_MS)
        client.take()

    once()
    return count_steps(once)


def test_no_request_walks_all_groups_but_those_that_list_them() -> None:
    few, many = world(FEW), world(MANY)
    costs = {api.name: (lines(few, api), lines(many, api)) for api in OFFERED if api.name not in LISTS}
    assert {name: pair for name, pair in costs.items() if pair[1] > MORE_AT_MOST * pair[0] + SOME_LINES} == {}


def test_a_list_costs_little_for_each_that_it_names() -> None:
    few, many = world(FEW), world(MANY)
    costs = {api.name: (lines(few, api), lines(many, api)) for api in OFFERED if api.name in LISTS}
    assert costs.keys() == LISTS
    assert {name: pair for name, pair in costs.items() if pair[1] - pair[0] > LINES_OF_ONE * (MANY - FEW)} == {}
