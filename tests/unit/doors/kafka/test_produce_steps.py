"""What a Produce request costs, in lines of Python: the way that most requests take must not grow unnoticed."""

import pytest

from goqueue.records.build import build_batch
from tests.steps import count_steps
from tests.unit.doors.kafka.test_door_fuzz import House
from tests.unit.doors.kafka.test_produce_run import ask, learned

FEW, MANY = 4, 14


def steps(requests: int, value_bytes: int) -> int:
    """Of one read that brings so many, on a topic that need not wait for the disk."""
    made = House()
    made.broker.create("prices", durability="os")
    guest = learned(made, topic="prices")
    records = bytes(build_batch([(1000, b"key", bytes(value_bytes), [("header", b"value")])]))
    read = b"".join(ask(number, topic="prices", records=records) for number in range(requests))
    guest.send(read)  # what was read first is prepared for what comes next
    made.broker.clock.run()
    return count_steps(lambda: guest.send(read))


@pytest.mark.parametrize("value_bytes", [100, 1000, 17_000])
def test_one_request_more_in_a_read_costs_few_steps(value_bytes: int) -> None:
    assert (steps(MANY, value_bytes) - steps(FEW, value_bytes)) / (MANY - FEW) <= 95 + value_bytes // 1000


def test_a_read_with_one_request_costs_few_steps() -> None:
    assert steps(1, 100) <= 350
