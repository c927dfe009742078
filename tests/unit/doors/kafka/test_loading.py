"""While a coordinator reads its ledger, clients of Kafka's protocol are asked to try again, and then they succeed."""

from collections.abc import Callable
from typing import Any

import pytest

from goqueue.machines.transactions.commands import InitProducer
from goqueue.model.codes import Code
from goqueue.runtime.coordinator import WAIT_MS_MAX
from goqueue.telemetry.calls import call_each
from goqueue.wire.kafka.apis import APIS
from goqueue.wire.kafka.frames import decode_response
from goqueue.wire.kafka.messages import describe_transactions as transactions
from goqueue.wire.kafka.messages.classic_groups import HeartbeatRequest, SyncGroupRequest
from goqueue.wire.kafka.messages.offsets import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic
from goqueue.wire.kafka.notation import Message
from tests.unit.doors.kafka.test_door_fuzz import House, frame
from tests.unit.doors.kafka.test_durable_answers import ask, codes, house_with_producer_ids

LOADING = {Code.COORDINATOR_LOAD_IN_PROGRESS, Code.COORDINATOR_NOT_AVAILABLE}
QUESTIONS: dict[str, tuple[int, Message]] = {
    "a transaction": (65, transactions.DescribeTransactionsRequest(["pay"])),
    "transactions": (66, transactions.ListTransactionsRequest()),
}


def begun() -> tuple[House, list[Any]]:
    house = house_with_producer_ids()
    house.broker.broker.transactions.submit(InitProducer("pay", 60_000), lambda reply: None)
    house.broker.commit()
    return house, list(house.broker.broker.health._coordinators.of_kind("transactions"))


def reload(house: House, coordinators: list[Any]) -> None:
    def later(work: Callable[[], None], done: Callable[[None], None]) -> None:
        house.broker.clock.call_after(5000, lambda: call_each((work, lambda: done(None))))

    for each in coordinators:
        each.unload()
        each._ledger._aside = later
        each.load()


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_about_a_state_that_is_being_read_is_to_be_asked_again(name: str) -> None:
    key, message = QUESTIONS[name]
    house, coordinators = begun()
    before = ask(house, message, key)()
    reload(house, coordinators)
    refused = codes(ask(house, message, key)()) - {Code.NONE}
    assert refused
    assert refused <= LOADING
    house.broker.clock.advance(5000)
    house.broker.commit()
    assert ask(house, message, key)() == before, "nothing is lost"


def test_commits_wait_for_a_group_that_is_being_read_and_are_refused_after_a_while() -> None:
    house, _ = begun()
    message = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", None, -1, None)])
    before = ask(house, message, 9)()
    reload(house, list(house.broker.broker.health._coordinators.of_kind("groups")))
    patient = ask(house, message, 9)
    assert patient() is None, "it waits for a moment"
    house.broker.clock.advance(WAIT_MS_MAX)
    assert codes(patient()) - {Code.NONE} == {Code.COORDINATOR_LOAD_IN_PROGRESS}
    house.broker.clock.advance(5000)
    house.broker.commit()
    assert ask(house, message, 9)() == before


@pytest.mark.parametrize(
    ("key", "message", "code"),
    [(12, HeartbeatRequest("g", 1, "me"), Code.NONE), (14, SyncGroupRequest("g", 1, "me"), Code.REBALANCE_IN_PROGRESS)],
    ids=["heartbeat", "sync"],
)
def test_members_of_a_group_that_is_being_read_hear_what_kafka_says(key: int, message: Message, code: Code) -> None:
    """That it is being loaded is a code that aiokafka ends at, here."""
    house, _ = begun()
    ask(house, OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", None, -1, None)]), 9)
    reload(house, list(house.broker.broker.health._coordinators.of_kind("groups")))
    patient = ask(house, message, key)
    house.broker.clock.advance(WAIT_MS_MAX)
    assert patient() is not None
    assert codes(patient()) - {Code.NONE} == {code} - {Code.NONE}


@pytest.mark.parametrize("version", [1, 3, 7])
def test_each_partition_of_an_old_offset_fetch_has_the_error_of_its_group(version: int) -> None:
    """Clients that look at partitions only would take one that is missing for "nothing was committed"."""
    house, _ = begun()
    ask(house, OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", None, -1, None)]), 9)
    reload(house, list(house.broker.broker.health._coordinators.of_kind("groups")))
    message = OffsetFetchRequest("g", [OffsetFetchRequestTopic("orders", [0, 1])])
    guest = house.knock()
    guest.send(frame(message, version, 1))
    house.broker.clock.run()
    house.broker.clock.advance(WAIT_MS_MAX)
    (reply,) = guest.replies()
    response: Any = decode_response(APIS[9].response, version, reply)[1]
    (topic,) = response.topics
    told = [(each.partition_index, each.committed_offset, each.error_code) for each in topic.partitions]
    assert told == [(number, -1, Code.COORDINATOR_LOAD_IN_PROGRESS) for number in (0, 1)]
