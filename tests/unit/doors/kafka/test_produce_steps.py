"""What a Produce request costs, in lines of Python: the way that most requests take must not grow unnoticed."""

from collections.abc import Callable

import pytest

from goqueue.records.build import build_batch
from tests.steps import count_steps
from tests.unit.doors.kafka.test_door_fuzz import House
from tests.unit.doors.kafka.test_produce_run import ask, learned

FEW, MANY = 4, 14


def steps(requests: int, value_bytes: int = 100, connections: int = 1) -> int:
    """Of one turn of the loop, in which each connection brings so many, on a topic that need not wait for the disk."""
    made = House()
    made.broker.create("prices", durability="os")
    guests = [learned(made, topic="prices") for _ in range(connections)]
    records = bytes(build_batch([(1000, b"key", bytes(value_bytes), [("header", b"value")])]))
    read = b"".join(ask(number, topic="prices", records=records) for number in range(requests))
    clock = made.broker.clock

    def turn(act: Callable[[], object]) -> None:
        act()
        clock.run()

    def send() -> None:
        for guest in guests:
            guest.send(read)

    turn(send)  # what was read first is prepared for what comes next
    turn_alone = count_steps(lambda: turn(lambda: clock.call_soon(lambda: None)))
    return count_steps(lambda: turn(send)) - turn_alone


@pytest.mark.parametrize("value_bytes", [100, 1000, 17_000])
def test_one_request_more_in_a_read_costs_few_steps(value_bytes: int) -> None:
    assert (steps(MANY, value_bytes) - steps(FEW, value_bytes)) / (MANY - FEW) <= 101 + value_bytes // 1000


def test_one_connection_more_in_a_turn_costs_few_steps() -> None:
    """With a request of its own: less than half of what a lone one costs."""
    assert (steps(1, connections=MANY) - steps(1, connections=FEW)) / (MANY - FEW) <= 190


def test_a_turn_with_one_request_costs_few_steps() -> None:
    assert steps(1) <= 410
