"""What a follower asks for, and what it does with its leader's answer."""

from typing import Any

import pytest

from goqueue.machines.partitions.following import (
    Answered,
    Asking,
    AskLater,
    FollowerView,
    OwnLog,
    Restart,
    Take,
    Truncate,
    doubt,
    is_made_doubtful,
)
from goqueue.machines.partitions.replication import BeginAnew, Diverged, Records, Unheard

EPOCH = 7


def epoch_end(epoch: int) -> tuple[int, int]:
    """Of a log with epochs 2, from 0, and 5, from 60."""
    if epoch < 0 or epoch > 5:
        return -1, -1
    return (5, 100) if epoch == 5 else (2, 60)


def answered(verdict: Any, own: OwnLog | None = None, **said: Any) -> Any:
    return FollowerView(EPOCH).on_answer(Answered(verdict, **said), own or OwnLog(10, 100, 100), epoch_end)


def test_it_asks_with_what_is_on_its_disk_and_not_before_all_is() -> None:
    view = FollowerView(EPOCH)
    assert view.fetch(OwnLog(10, 100, 99), 5) is None
    assert view.fetch(OwnLog(10, 100, 100), 5) == Asking(EPOCH, 100, 5, 0)


def test_it_takes_what_it_is_sent_and_learns_what_was_said_with_it() -> None:
    assert answered(Records(100, 90)) == Take(90, 0, 0, becomes_whole=False)
    told = answered(Records(100, 90), start=20, compacted_to=150, is_whole=True)
    assert told == Take(90, 150, 20, becomes_whole=False)
    doubtful = OwnLog(10, 100, 100, is_doubtful=True)
    assert answered(Records(100, 90), doubtful, is_whole=True) == Take(90, 0, 0, becomes_whole=True)
    assert answered(Records(100, 90), doubtful) == Take(90, 0, 0, becomes_whole=False)


def test_gaps_are_allowed_only_where_it_has_nothing_yet() -> None:
    assert answered(Records(100, 90), compacted_to=100).gaps_to == 0
    assert answered(Records(100, 90), compacted_to=101).gaps_to == 101


@pytest.mark.parametrize(
    ("told", "cut"),
    [
        (Diverged(5, 80), 80),  # the leader ended the epoch earlier
        (Diverged(2, 70), 60),  # it ended the epoch later: what is here behind it is of another one
        (Diverged(3, 60), 60),
        (Diverged(6, 90), 90),  # an epoch that is not known here
        (Diverged(-1, 0), 10),  # nothing in common: but not below its start
    ],
)
def test_it_truncates_to_where_the_two_logs_parted(told: Diverged, cut: int) -> None:
    assert answered(told) == Truncate(cut)


def test_a_copy_that_begins_anew_tells_the_leader_of_the_bound_that_it_was_told() -> None:
    view = FollowerView(EPOCH)
    told = Answered(BeginAnew(30), tombstones_to=55)
    assert view.on_answer(told, OwnLog(10, 20, 20), epoch_end) == Restart(30, 55)
    assert view.fetch(OwnLog(30, 30, 30, is_doubtful=True), -1) == Asking(EPOCH, 30, -1, 55)
    assert FollowerView(EPOCH + 1).told_bound == 0, "another leader may have dropped other tombstones"


def test_a_damaged_copy_begins_anew_and_only_with_a_leader_that_answers() -> None:
    damaged = OwnLog(10, 100, 100, is_damaged=True)
    assert answered(Records(100, 90), damaged) == Restart(0, 0)
    assert answered(Unheard(), damaged) == AskLater()


def test_a_refusal_says_nothing_of_the_copy() -> None:
    assert answered(Unheard()) == AskLater()


def test_a_copy_is_doubtful_if_it_may_lack_what_the_isr_says_it_holds() -> None:
    assert [is_made_doubtful(epoch) for epoch in (0, 1)] == [False, True]
    assert "was its high watermark" in doubt(9, 10, is_unsynced=False, machine_went_down=False)
    assert not doubt(10, 10, is_unsynced=False, machine_went_down=True)
    assert not doubt(10, 10, is_unsynced=True, machine_went_down=False)
    assert "went down" in doubt(10, 10, is_unsynced=True, machine_went_down=True)
