"""No answer over Kafka's protocol rests on what a loss of power could take back."""

import errno
from typing import Any

import pytest
from structlog.testing import capture_logs

from goqueue.machines.deliveries.commands import Place
from goqueue.machines.transactions.commands import InitProducer
from goqueue.model.codes import Code
from goqueue.wire.kafka.apis import APIS
from goqueue.wire.kafka.frames import decode_response
from goqueue.wire.kafka.messages import describe_transactions as transactions
from goqueue.wire.kafka.messages import share_offsets
from goqueue.wire.kafka.messages.describe_groups import ListGroupsRequest
from goqueue.wire.kafka.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from goqueue.wire.kafka.notation import Message
from tests.unit.doors.kafka.test_door_fuzz import House, frame

NEWEST = -3


def ask(house: House, message: Message, key: int) -> Any:
    """A guest who asked, and what reads the answer."""
    api = APIS[key]
    version = max(api.versions)
    guest = house.knock()
    guest.send(frame(message, version, 1))
    house.broker.clock.run()

    def answer() -> Any:
        replies = guest.replies()
        return decode_response(api.response, version, replies[0])[1] if replies else None

    return answer


def house_with_producer_ids() -> House:
    """They come in blocks from the controller: the first producer has to wait for one."""
    house = House()
    house.broker.broker.transactions.submit(InitProducer(None, 60_000), lambda reply: None)
    house.broker.commit()
    return house


def begin(house: House) -> None:
    house.broker.broker.transactions.submit(InitProducer("pay", 60_000), lambda reply: None)


def open_group(house: House) -> None:
    house.broker.broker.queues.open(Place("workers", "orders", 0), "earliest", lambda error: None)


def publish(house: House) -> None:
    house.broker.publish("orders", b"new", producer_id=7, producer_epoch=0, base_sequence=0, timestamp=5000)


QUESTIONS: dict[str, tuple[Any, int, Message]] = {
    "a transaction": (begin, 65, transactions.DescribeTransactionsRequest(["pay"])),
    "transactions": (begin, 66, transactions.ListTransactionsRequest()),
    "groups": (open_group, 16, ListGroupsRequest()),
    "progress of a group": (
        open_group,
        90,
        share_offsets.DescribeShareGroupOffsetsRequest(
            [share_offsets.DescribeShareGroupOffsetsRequestGroup("workers", None)]
        ),
    ),
    "producers": (
        publish,
        61,
        transactions.DescribeProducersRequest([transactions.DescribeProducersTopic("orders", [0])]),
    ),
    "the newest record": (
        publish,
        2,
        ListOffsetsRequest(-1, 0, [ListOffsetsTopic("orders", [ListOffsetsPartition(0, timestamp=NEWEST)])]),
    ),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_what_is_not_durable_yet_is_not_told(name: str) -> None:
    change, key, message = QUESTIONS[name]
    house = house_with_producer_ids()
    before = ask(house, message, key)()
    assert before is not None, "nothing stands against an answer"
    change(house)
    answer = ask(house, message, key)
    assert answer() is None
    house.broker.commit()
    after = answer()
    assert after is not None
    assert after != before


LEDGERS = {begin: "@transactions", open_group: "@deliveries", publish: "orders"}


def codes(message: Message) -> set[int]:
    found = {getattr(message, "error_code", 0)}
    for name in message.__struct_fields__:
        value = getattr(message, name)
        found |= {
            code
            for part in (value if isinstance(value, list) else ())
            if isinstance(part, Message)
            for code in codes(part)
        }
    return found - {0}


@pytest.mark.parametrize("name", QUESTIONS)
def test_what_could_not_be_stored_is_never_told(name: str) -> None:
    change, key, message = QUESTIONS[name]
    house = house_with_producer_ids()
    fault = house.broker.disk.faults.add("sync", errno.EIO, prefix=f"logs/{LEDGERS[change]}", forever=True)
    change(house)
    early = ask(house, message, key)
    with capture_logs():
        house.broker.commit()
    assert fault.hits
    late = ask(house, message, key)
    expected = Code.KAFKA_STORAGE_ERROR if change is publish else Code.COORDINATOR_NOT_AVAILABLE
    for answer in (early, late):
        assert codes(answer()) == {expected}
