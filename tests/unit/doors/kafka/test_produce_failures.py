"""Produce on a disk that fails, the short way and the general one: what is not on the disk is not acknowledged."""

import errno
from typing import Any

import pytest
from structlog.testing import capture_logs

from goqueue.model.codes import Code
from tests.unit.doors.kafka.test_door_fuzz import House
from tests.unit.doors.kafka.test_produce_run import ask, learned, results, the_general_way, wishing


def retried(made: House, *asks: bytes) -> list[list[int]]:
    """The codes of each read, sent twice over the connection that the route is known for."""
    guest = learned(made)
    found = []
    for _ in range(2):
        guest.send(b"".join(asks))
        made.settle()
        found.append([one.error_code for _, one in results(guest)])
        guest.transport.written.clear()
    return found


@pytest.mark.parametrize("kind", ["write", "sync"])
@pytest.mark.parametrize("is_general", [True, False])
def test_a_batch_that_failed_is_not_acknowledged_when_it_is_sent_again(kind: Any, is_general: bool) -> None:
    made = House()
    fault = made.broker.disk.faults.add(kind, errno.EIO, prefix="logs/orders/0", suffix=".log", nth=2)
    fields: list[dict[str, Any]] = [
        {"producer_id": 1, "producer_epoch": 0, "base_sequence": number} for number in range(3)
    ]
    with the_general_way(is_general), capture_logs():
        found = retried(made, *(ask(number, **each) for number, each in enumerate(fields)))
    assert fault.hits == 1
    assert found == [[Code.KAFKA_STORAGE_ERROR] * 3] * 2


def test_a_repeated_batch_waits_for_the_sync_of_the_first() -> None:
    made = House()
    guest = learned(made)
    for number in range(2):
        guest.send(ask(number, producer_id=1, producer_epoch=0, base_sequence=0))
    made.broker.clock.run()
    assert guest.replies() == []
    made.broker.commit()
    assert [(one.error_code, one.base_offset) for _, one in results(guest)] == [(0, 3), (0, 3)]


def test_a_partition_that_failed_answers_once_beside_one_that_waits() -> None:
    made = House()
    guest = learned(made, index=1)
    guest.send(ask(0))
    made.broker.commit()
    guest.transport.written.clear()
    made.broker.disk.faults.add("write", errno.EIO, prefix="logs/orders/0", suffix=".log")
    with capture_logs():
        guest.send(ask(1) + ask(2, index=1))
        made.settle()
    assert [(number, one.error_code) for number, one in results(guest)] == [(1, Code.KAFKA_STORAGE_ERROR), (2, 0)]


@pytest.mark.parametrize("durability", ["disk", "os"])
def test_a_delayed_record_whose_schedule_finds_no_room_is_not_acknowledged(durability: str) -> None:
    made = House()
    made.broker.create("prices", durability=durability)
    guest = made.knock()
    guest.send(ask(1, topic="prices", records=wishing(10)))
    made.settle()
    (log,) = [one.log for one in made.broker.replicas.ledgers if one.name.startswith("@delays")]
    made.broker.disk.faults.add("allocate", errno.ENOSPC, prefix="logs/@delays", forever=True)
    log._active.allocated = log._active.size
    guest.send(ask(2, topic="prices", records=wishing(10)))
    made.settle()
    assert [one.error_code for _, one in results(guest)] == [0, Code.KAFKA_STORAGE_ERROR]


@pytest.mark.parametrize("doing", ["make_directory", "create"])
def test_a_delayed_record_whose_ledger_cannot_be_made_is_not_acknowledged(doing: Any) -> None:
    made = House()
    made.broker.create("prices")
    made.broker.disk.faults.add(doing, errno.EIO, prefix="logs/@delays")
    guest = made.knock()
    with capture_logs():
        guest.send(ask(1, topic="prices", records=wishing(10)))
        made.settle()
    guest.send(ask(2, topic="prices", records=wishing(10)) + ask(3, topic="prices"))
    made.settle()
    assert [one.error_code for _, one in results(guest)] == [Code.KAFKA_STORAGE_ERROR, 0, 0]
