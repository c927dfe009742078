from collections.abc import Sequence

import pytest

from tests.unit.nemesis.histories import done, failed, kinds, unknown
from tools.nemesis.check_queue import check_queues
from tools.nemesis.history import Operation, Window

LEASE_MS = 10_000


def publish(at: tuple[float, float] = (0, 1)) -> Operation:
    return done("p", "publish", at, {"queue": "q", "id": "m"})


def receive(at: tuple[float, float], receipt: str, worker: str = "w1") -> Operation:
    messages = [{"id": "m", "receipt": receipt, "lease_ms": LEASE_MS}]
    return done(worker, "receive", at, {"queue": "q"}, messages=messages)


def settle(at: tuple[float, float], receipt: str, how: str = "ack") -> Operation:
    return done("w1", "settle", at, {"queue": "q", "id": "m", "receipt": receipt, "how": how})


def lost_settle(began: float, receipt: str, how: str = "ack") -> Operation:
    return unknown("w1", "settle", began, queue="q", id="m", receipt=receipt, how=how)


@pytest.mark.parametrize(
    "more",
    [
        [receive((2, 3), "r1"), settle((4, 5), "r1")],
        [receive((2, 3), "r1"), settle((4, 5), "r1"), settle((5, 6), "r1")],
        [receive((2, 3), "r1"), receive((12, 13), "r2"), settle((14, 15), "r2")],
        [receive((2, 3), "r1"), settle((4, 5), "r1", "nack"), receive((5, 6), "r2"), settle((7, 8), "r2")],
        [receive((2, 3), "r1"), lost_settle(4, "r1"), receive((13, 14), "r2"), settle((15, 16), "r2")],
        [receive((2, 3), "r1"), lost_settle(4, "r1")],
        [receive((2, 3), "r1"), receive((4, 14), "r2"), settle((3, 5), "r1")],
    ],
    ids=[
        "plain",
        "acked twice",
        "lease ended",
        "nacked",
        "answer lost",
        "answer lost for good",
        "asked before the ack",
    ],
)
def test_a_good_queue_has_no_faults(more: Sequence[Operation]) -> None:
    assert check_queues([publish(), *more]) == []


@pytest.mark.parametrize(
    ("history", "kind"),
    [
        ([publish()], "lost"),
        ([publish(), receive((2, 3), "r1")], "unsettled"),
        ([publish(), receive((2, 3), "r1"), settle((4, 5), "r1", "nack")], "unsettled"),
        ([receive((2, 3), "r1"), settle((4, 5), "r1")], "phantom"),
        ([failed("p", "publish", (0, 1), queue="q", id="m"), receive((2, 3), "r1")], "phantom"),
        (
            [publish(), receive((2, 3), "r1"), receive((13, 14), "r2"), settle((4, 5), "r1"), settle((15, 16), "r2")],
            "settled twice",
        ),
        ([publish(), receive((2, 3), "r1"), settle((4, 5), "r1"), receive((30, 31), "r2")], "after settled"),
        ([publish(), receive((2, 3), "r1"), receive((4, 5), "r2"), settle((6, 7), "r2")], "too early"),
    ],
)
def test_every_fault_of_a_queue_is_found(history: Sequence[Operation], kind: str) -> None:
    assert kind in kinds(check_queues(history))


def test_a_change_of_leader_forgets_leases_and_nothing_else() -> None:
    early = [publish(), receive((2, 3), "r1"), receive((4, 5), "r2"), settle((6, 7), "r2")]
    assert check_queues(early, [Window(3, 4)]) == []
    assert kinds(check_queues(early, [Window(20, 21)])) == ["too early"]
    again = [publish(), receive((2, 3), "r1"), settle((4, 5), "r1"), receive((6, 7), "r2")]
    assert "after settled" in kinds(check_queues(again, [Window(0, 100)]))


def test_a_delete_of_sqs_is_firm_while_the_lease_was_surely_held() -> None:
    again = [publish(), receive((2, 3), "r1"), settle((4, 5), "r1", "delete"), receive((30, 31), "r2")]
    assert kinds(check_queues(again)) == ["after settled"]
    assert check_queues(again, [Window(3, 4)]) == []
    late = [publish(), receive((2, 3), "r1"), settle((12, 13), "r1", "delete"), receive((30, 31), "r2")]
    assert check_queues(late) == []
    both = [
        receive((2, 3), "r1"),
        receive((4, 5), "r2"),
        settle((6, 7), "r1", "delete"),
        settle((6, 7), "r2", "delete"),
    ]
    assert check_queues([publish(), *both], [Window(3, 4)]) == []


def test_a_delete_of_a_fifo_queue_may_be_said_twice_and_is_always_firm() -> None:
    deletes = [settle((14, 15), "r2", "fifo delete"), settle((16, 17), "r1", "fifo delete")]
    late = [publish(), receive((2, 3), "r1"), receive((12, 13), "r2"), *deletes]
    assert check_queues(late) == []
    assert kinds(check_queues([*late, receive((30, 31), "r3")], [Window(0, 100)])) == ["after settled"]


def test_a_run_that_is_not_over_says_nothing_of_what_is_still_to_come() -> None:
    assert check_queues([publish()], is_drained=False) == []
