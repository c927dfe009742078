"""What offsets do to a queue: settling all below one, giving back what a consumer holds, and the tally of it all."""

import pytest

from goqueue.machines.deliveries.commands import GiveBack, How, Policy, Replay, SettleBelow, Span, Tally, Verdict
from goqueue.model.codes import Code
from tests.unit.machines.delivery_driver import PLACE, Driver


@pytest.fixture
def driver() -> Driver:
    return Driver(Policy(attempts_max=3))


def test_a_commit_settles_all_below_whoever_holds_it(driver: Driver) -> None:
    driver.see(10)
    mine, other = driver.lease(4), driver.lease(3, "other")
    driver.settle(mine.lease, 3, how=How.RETRY, delay_ms=60_000)
    assert driver.ask(SettleBelow(PLACE, 6)) is Code.NONE
    driver.check()
    assert driver.measure().start_offset == 6
    assert driver.settle(mine.lease, 0) is Verdict.REPEATED
    assert driver.settle(other.lease, 6) is Verdict.DONE
    assert driver.take() == [7, 8, 9]
    driver.restart()
    driver.see(3)
    assert driver.take() == [7, 8, 9]


def test_a_commit_never_goes_back(driver: Driver) -> None:
    driver.see(10)
    driver.ask(SettleBelow(PLACE, 6))
    driver.ask(SettleBelow(PLACE, 2))
    assert driver.written == 0
    assert driver.take() == [6, 7, 8, 9]


@pytest.mark.parametrize("how", ["whole", "compacted", "snapshot"])
def test_a_commit_beyond_what_was_looked_at_counts(driver: Driver, how: str) -> None:
    driver.see(3)
    driver.take()
    driver.ask(SettleBelow(PLACE, 8))
    driver.check()
    assert driver.measure().start_offset == 8
    driver.restart(how)
    assert driver.measure().start_offset == 8
    driver.see(2)
    assert driver.take() == [8, 9]


def test_a_commit_leaves_what_is_replayed_alone(driver: Driver) -> None:
    driver.see(6)
    driver.ask(SettleBelow(PLACE, 4))
    driver.ask(Replay(PLACE, 0, 2, ((0, 1),)))
    driver.ask(SettleBelow(PLACE, 5))
    ((window, *_),) = driver.machine.replays(PLACE)
    driver.observe(Span(0, 1), window=window)
    assert sorted(driver.take()) == [0, 1, 5]


def test_a_dead_letter_below_a_commit_is_still_written(driver: Driver) -> None:
    driver.see(4)
    leased = driver.lease(2)
    driver.settle(leased.lease, 0, how=How.REJECT, reason="bad")
    driver.ask(SettleBelow(PLACE, 3))
    assert [each.offset for each in driver.write_letters()] == [0]
    assert driver.machine.dead_due(PLACE) == []
    assert driver.take() == [3]


def test_what_a_consumer_holds_is_given_back_at_once(driver: Driver) -> None:
    driver.see(6)
    gone, other = driver.lease(3, "gone"), driver.lease(2, "other")
    driver.settle(gone.lease, 1)
    assert driver.ask(GiveBack(PLACE.group_id, "gone")) is Code.NONE
    driver.check()
    again = driver.lease(10, "next")
    assert [(run.first, run.last, run.attempt) for run in sorted(again.runs)] == [(0, 0, 2), (2, 2, 2), (5, 5, 1)]
    assert driver.settle(gone.lease, 0) is Verdict.EXPIRED
    assert driver.settle(other.lease, 3, 4) is Verdict.DONE


def test_giving_back_is_an_attempt_and_may_be_the_last(driver: Driver) -> None:
    driver.see(1)
    for _ in range(3):
        assert driver.take() == [0]
        driver.ask(GiveBack(PLACE.group_id, "c", (PLACE,)))
    assert driver.take() == []
    assert [(each.reason, each.attempts) for each in driver.write_letters()] == [("attempts", 3)]


def test_nothing_is_given_back_elsewhere(driver: Driver) -> None:
    driver.see(3)
    driver.take(2)
    elsewhere = PLACE._replace(partition=PLACE.partition + 1)
    for command in (
        GiveBack(PLACE.group_id, "c", (elsewhere,)),
        GiveBack("other", "c"),
        GiveBack(PLACE.group_id, "nobody"),
    ):
        assert driver.ask(command) is Code.NONE
    assert driver.take() == [2]
    assert driver.ask(SettleBelow(elsewhere, 2)) is Code.UNKNOWN_TOPIC_OR_PARTITION


def test_a_consumer_may_commit_as_far_as_it_holds_all(driver: Driver) -> None:
    driver.see(10)
    mine = driver.lease(3, "me")
    assert driver.machine.held.reach(PLACE, "me") == 3
    driver.lease(2, "other")
    driver.lease(5, "me")
    assert driver.machine.held.reach(PLACE, "me") == 3
    assert driver.machine.held.reach(PLACE, "other") == 0
    driver.settle(mine.lease, 1)
    assert driver.machine.held.reach(PLACE, "me") == 3
    driver.ask(SettleBelow(PLACE, 5))
    assert driver.machine.held.reach(PLACE, "me") == 10


def test_a_record_is_looked_at(driver: Driver) -> None:
    driver.see(4)
    leased = driver.lease(3)
    driver.settle(leased.lease, 0, how=How.RETRY, delay_ms=5000)
    driver.settle(leased.lease, 1, how=How.REJECT)
    driver.settle(leased.lease, 2)
    looks = [driver.machine.look(PLACE, offset) for offset in range(4)]
    assert looks == [
        (1, False, False, driver.now_ms + 5000),
        (1, True, True, 0),
        (1, True, False, 0),
        (0, False, False, 0),
    ]
    assert driver.machine.look(PLACE._replace(topic="none"), 0) is None


def test_all_is_counted(driver: Driver) -> None:
    driver.see(8)
    leased = driver.lease(8)
    driver.settle(leased.lease, 0, 1)
    driver.settle(leased.lease, 2, how=How.RETRY, delay_ms=0)
    driver.settle(leased.lease, 3, how=How.REJECT)
    driver.settle(leased.lease, 4, how=How.EXTEND, delay_ms=90_000)
    driver.settle(leased.lease, 5, how=How.UNDO)
    driver.advance(30_000)
    assert driver.machine.tally == Tally(
        leased=8, acked=2, nacked=1, rejected=1, lapsed=2, retried=3, died=1, extended=1
    )
    driver.ask(GiveBack(PLACE.group_id, "c"))
    assert driver.machine.tally.lapsed == 3
    assert driver.replayed().tally == Tally(), "a restart begins anew"
