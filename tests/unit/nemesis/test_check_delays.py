from collections.abc import Sequence

import pytest

from tests.unit.nemesis.histories import done, failed, kinds, unknown
from tools.nemesis.check_delays import check_delays
from tools.nemesis.history import Operation, Window

DUE = 100.0


def delay() -> Operation:
    return done("p", "delay", (1, 2), {"topic": "t", "id": "m", "due": DUE})


def cancel() -> Operation:
    return done("p", "cancel", (3, 4), {"topic": "t", "id": "m"})


def arrived(at: float, place: str = "0/7") -> Operation:
    return done("r", "arrived", (9, 9), {}, topic="t", id="m", at=at, place=place)


@pytest.mark.parametrize(
    "history",
    [
        [delay(), arrived(DUE)],
        [delay(), arrived(DUE + 4.9), arrived(DUE + 4.9)],
        [delay(), cancel()],
        [unknown("p", "delay", 1, topic="t", id="m", due=DUE)],
        [unknown("p", "delay", 1, topic="t", id="m", due=DUE), arrived(DUE)],
        [delay(), failed("p", "cancel", (3, 4), topic="t", id="m"), arrived(DUE)],
        [delay(), unknown("p", "cancel", 3, topic="t", id="m")],
        [delay(), unknown("p", "cancel", 3, topic="t", id="m"), arrived(DUE)],
    ],
)
def test_good_delays_have_no_faults(history: Sequence[Operation]) -> None:
    assert check_delays(history) == []


@pytest.mark.parametrize(
    ("history", "kind"),
    [
        ([delay(), arrived(DUE - 0.1)], "early"),
        ([delay(), arrived(DUE + 5.1)], "late"),
        ([delay()], "never"),
        ([delay(), failed("p", "cancel", (3, 4), topic="t", id="m")], "never"),
        ([delay(), cancel(), arrived(DUE)], "after cancel"),
        ([delay(), arrived(DUE), arrived(DUE, "0/8")], "twice"),
        ([arrived(DUE)], "phantom"),
        ([failed("p", "delay", (1, 2), topic="t", id="m", due=DUE), arrived(DUE)], "phantom"),
    ],
)
def test_every_fault_of_a_delay_is_found(history: Sequence[Operation], kind: str) -> None:
    assert kinds(check_delays(history)) == [kind]


def test_a_delay_may_wait_for_the_end_of_an_outage_and_not_longer() -> None:
    outage = [Window(DUE - 1, DUE + 20)]
    assert check_delays([delay(), arrived(DUE + 24)], outage) == []
    assert kinds(check_delays([delay(), arrived(DUE + 26)], outage)) == ["late"]
    assert kinds(check_delays([delay(), arrived(DUE + 24)], [Window(10, 20)])) == ["late"]


def test_a_clock_that_is_ahead_makes_delays_as_much_earlier_and_not_more() -> None:
    jump = [Window(DUE - 10, DUE + 1, ahead_s=5.0)]
    assert check_delays([delay(), arrived(DUE - 5)], jump) == []
    assert kinds(check_delays([delay(), arrived(DUE - 6)], jump)) == ["early"]
    assert kinds(check_delays([delay(), arrived(DUE - 5)], [Window(10, 20, ahead_s=5.0)])) == ["early"]
    assert kinds(check_delays([delay(), arrived(DUE - 0.1)], [Window(DUE - 10, DUE + 1, ahead_s=-5.0)])) == ["early"]
