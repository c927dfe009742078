"""Seek and replay: to deliver again what was settled."""

import pytest

from goqueue.machines.deliveries.commands import (
    OLD_LEASE,
    How,
    Observe,
    Place,
    Policy,
    Replay,
    ReplayReply,
    Seek,
    SetPolicy,
    Span,
    Verdict,
)
from goqueue.machines.deliveries.facts import ReplayStored
from goqueue.machines.deliveries.groups import CHOSEN_MAX, REPLAYS_MAX
from goqueue.model.codes import Code
from tests.unit.machines.delivery_driver import PLACE, Driver, offsets_of

NOWHERE = Place("nobody", "orders", 0)


@pytest.fixture
def driver() -> Driver:
    """Ten records, of which 0..5 are settled."""
    driver = Driver(Policy(unacked_max=100_000))
    driver.see(10)
    driver.settle(driver.lease(6).lease, 0, 5)
    return driver


def replay(driver: Driver, *chosen: tuple[int, int], rate: int = 0, first: int = 0, end: int = 10) -> ReplayReply:
    reply = driver.ask(Replay(PLACE, first, end, chosen, rate))
    assert isinstance(reply, ReplayReply)
    return reply


def observe_replays(driver: Driver) -> None:
    for window, observed, limit in driver.machine.replays(PLACE):
        driver.observe(Span(observed, limit - 1), window=window)


def test_a_replay_delivers_what_was_chosen_and_settled_once_more(driver: Driver) -> None:
    reply = replay(driver, (1, 1), (3, 4), (5, 8))
    assert reply == ReplayReply(Code.NONE, 1, 4)
    assert driver.machine.replays(PLACE) == [(1, 1, 6)]
    driver.machine.woken.clear()
    observe_replays(driver)
    assert list(driver.machine.woken) == [PLACE]
    assert driver.measure().replaying == 4
    leased = driver.lease()
    assert sorted(offsets_of(leased.runs)) == [1, 3, 4, 5, 6, 7, 8, 9]
    assert driver.settle(leased.lease, 3, 9) is Verdict.DONE
    assert driver.measure().start_offset == 10
    assert driver.settle(leased.lease, 1) is Verdict.DONE
    driver.advance()
    assert driver.machine.replays(PLACE) == []
    assert {fact for fact in driver.machine.facts() if isinstance(fact, ReplayStored)} == set()
    assert driver.take() == []


def test_a_replay_outlives_a_restart(driver: Driver) -> None:
    replay(driver, (0, 4))
    observe_replays(driver)
    leased = driver.lease(2, "other")
    taken = offsets_of(leased.runs)
    replayed = driver.lease(2, "third")
    runs = {*taken, *offsets_of(replayed.runs)}
    assert runs == {0, 1, 6, 7}
    for reply in (leased, replayed):
        for run in reply.runs:
            assert driver.settle(reply.lease, run.first, run.last) is Verdict.DONE
    driver.restart()
    driver.observe(Span(6, 9))
    observe_replays(driver)
    assert sorted(driver.take()) == [2, 3, 4, 8, 9]


def test_leases_alternate_between_the_log_and_replays(driver: Driver) -> None:
    driver.see(10)
    replay(driver, (0, 5))
    observe_replays(driver)
    taken = [driver.take(1)[0] for _ in range(8)]
    assert [offset < 6 for offset in taken] == [True, False] * 4 or [offset < 6 for offset in taken] == [
        False,
        True,
    ] * 4


def test_a_second_replay_leaves_what_the_first_has_not_delivered_yet(driver: Driver) -> None:
    replay(driver, (0, 3))
    assert replay(driver, (2, 5)).records == 2
    observe_replays(driver)
    assert sorted(driver.take()) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]


def test_a_replay_of_nothing_is_none(driver: Driver) -> None:
    assert replay(driver, (6, 9)) == ReplayReply(Code.NONE, 0, 0)
    assert replay(driver) == ReplayReply(Code.NONE, 0, 0)
    assert replay(driver, (0, 5), first=7) == ReplayReply(Code.NONE, 0, 0)
    assert driver.ask(Replay(NOWHERE, 0, 1, ((0, 0),))).code is Code.UNKNOWN_TOPIC_OR_PARTITION


def test_replays_are_limited(driver: Driver) -> None:
    for number in range(REPLAYS_MAX):
        driver.settle(driver.lease(1).lease, 6 + number)
        driver.see(1)
        assert replay(driver, (6 + number, 6 + number), end=100).records == 1
    assert replay(driver, (0, 0)).code is Code.INVALID_REQUEST


def test_the_choices_of_a_replay_are_limited(driver: Driver) -> None:
    chosen = tuple((2 * number, 2 * number) for number in range(CHOSEN_MAX + 1))
    assert replay(driver, *chosen).code is Code.INVALID_REQUEST


def test_a_replay_keeps_to_its_rate() -> None:
    driver = Driver(Policy(unacked_max=1000), checks=False)
    driver.see(300)
    driver.settle(driver.lease(300).lease, 0, 299)
    replay(driver, (0, 299), rate=100, end=300)
    observe_replays(driver)
    times: list[int] = []
    while len(times) < 300:
        taken = driver.take(1000)
        times += [driver.now_ms] * len(taken)
        driver.machine.woken.clear()
        deadline_ms = driver.machine.next_deadline_ms()
        assert deadline_ms is not None
        driver.advance(max(0, deadline_ms - driver.now_ms))
        assert list(driver.machine.woken) == [PLACE]
    assert 2850 <= times[-1] - times[0] <= 3000
    for start in range(0, 300, 50):
        in_a_second = [each for each in times if times[start] <= each < times[start] + 1000]
        assert len(in_a_second) <= 110


def test_a_dead_letter_of_a_replay_is_written_like_any_other(driver: Driver) -> None:
    replay(driver, (2, 2))
    observe_replays(driver)
    leased = driver.lease()
    driver.settle(leased.lease, 2, 2, How.REJECT)
    driver.restart()
    assert [letter.offset for letter in driver.write_letters()] == [2]
    observe_replays(driver)
    driver.advance()
    assert driver.machine.replays(PLACE) == []


def test_what_waits_to_be_a_dead_letter_is_not_replayed(driver: Driver) -> None:
    driver.settle(driver.lease(1).lease, 6, 6, How.REJECT)
    driver.ask(Seek(PLACE, 8))
    assert replay(driver, (5, 7)).records == 2
    assert [letter.offset for letter in driver.write_letters()] == [6]
    assert replay(driver, (5, 7)).records == 1


def test_a_lease_forgotten_before_a_seek_is_over(driver: Driver) -> None:
    leased = driver.lease(2)
    driver.ask(SetPolicy(PLACE, Policy(orders_by_key=True)))
    driver.ask(Seek(PLACE, 6))
    driver.observe(Span(6, 9))
    assert driver.settle(leased.lease, 6) is Verdict.EXPIRED


def test_what_retention_removes_ends_a_replay(driver: Driver) -> None:
    reply = replay(driver, (1, 4))
    driver.ask(Observe(PLACE, (), 5, 7, reply.window))
    driver.advance()
    assert driver.machine.replays(PLACE) == []
    assert driver.measure().start_offset == 7


def test_a_replayed_record_is_not_settled_by_a_lease_of_its_first_life(driver: Driver) -> None:
    driver.restart()
    reply = replay(driver, (0, 3))
    assert reply.records == 4
    assert driver.settle(OLD_LEASE, 1) is Verdict.EXPIRED


@pytest.mark.parametrize("how", [How.ACK, How.REJECT])
@pytest.mark.parametrize("consumer", [None, "c"])
def test_a_repeated_settlement_is_known_while_the_log_is_observed_again(
    driver: Driver, how: How, consumer: str | None
) -> None:
    driver.settle(driver.lease(3).lease, 8)
    replay(driver, (8, 8))
    driver.ask(SetPolicy(PLACE, Policy(orders_by_key=True)))
    observe_replays(driver)
    leased = driver.lease()
    assert offsets_of(leased.runs) == [8]
    assert driver.settle(leased.lease, 8, how=how, consumer=consumer) is Verdict.DONE
    assert driver.settle(leased.lease, 8, how=how, consumer=consumer) is Verdict.REPEATED
    driver.write_letters()
    driver.advance()
    assert driver.machine.replays(PLACE) == []
    assert driver.machine.observed_end(PLACE) == 6
    assert driver.settle(leased.lease, 8, how=how, consumer=consumer) is Verdict.REPEATED
    assert driver.settle(leased.lease, 7, how=how, consumer=consumer) is Verdict.UNKNOWN


# Seek


def test_seek_back_delivers_all_from_there_again(driver: Driver) -> None:
    leased = driver.lease(2)
    assert driver.ask(Seek(PLACE, 3)) is Code.NONE
    assert driver.machine.observed_end(PLACE) == 3
    assert driver.settle(leased.lease, 6) is Verdict.UNKNOWN
    driver.observe(Span(3, 9))
    assert driver.settle(leased.lease, 6) is Verdict.EXPIRED
    assert driver.take() == [3, 4, 5, 6, 7, 8, 9]
    assert driver.settle(OLD_LEASE, 3) is Verdict.EXPIRED
    driver.restart()
    driver.observe(Span(3, 9))
    assert driver.take() == [3, 4, 5, 6, 7, 8, 9]


def test_seek_forward_skips_what_lies_between(driver: Driver) -> None:
    replay(driver, (0, 5))
    leased = driver.lease(1)
    driver.settle(leased.lease, 6, 6, How.REJECT)
    assert driver.ask(Seek(PLACE, 100)) is Code.NONE
    assert driver.machine.replays(PLACE) == []
    assert driver.take() == []
    assert [letter.offset for letter in driver.write_letters()] == [6]
    driver.restart()
    assert driver.machine.observed_end(PLACE) == 100
    assert driver.write_letters() == []
    driver.observe(Span(100, 101))
    assert driver.take() == [100, 101]


def test_seek_back_brings_dead_letters_back_to_life(driver: Driver) -> None:
    driver.settle(driver.lease(1).lease, 6, 6, How.REJECT)
    driver.ask(Seek(PLACE, 0))
    assert driver.write_letters() == []
    driver.observe(Span(0, 9))
    assert driver.take() == list(range(10))


def test_seek_needs_a_place(driver: Driver) -> None:
    assert driver.ask(Seek(NOWHERE, 0)) is Code.UNKNOWN_TOPIC_OR_PARTITION
