import pytest

from goqueue.model.errors import StaleEpoch
from goqueue.records.epochs import EpochHistory


def test_an_offset_belongs_to_the_epoch_that_began_last_before_it() -> None:
    history = EpochHistory([(3, 0), (5, 10), (6, 12)])
    assert [history.at(offset) for offset in (0, 9, 10, 11, 12, 99)] == [3, 3, 5, 5, 6, 6]


def test_an_epoch_ends_where_the_next_one_begins() -> None:
    history = EpochHistory([(3, 0), (5, 10), (8, 30)])
    assert history.end_of(3, log_end=50) == (3, 10)
    assert history.end_of(4, log_end=50) == (3, 10)  # nobody wrote in 4: what 3 wrote is what a follower may share
    assert history.end_of(5, log_end=50) == (5, 30)
    assert history.end_of(8, log_end=50) == (8, 50)


def test_an_epoch_yet_to_come_has_no_end() -> None:
    assert EpochHistory([(3, 0)]).end_of(4, log_end=50) == (-1, -1)
    assert EpochHistory().end_of(0, log_end=0) == (-1, -1)


def test_an_epoch_older_than_all_that_is_left_ends_where_the_log_begins() -> None:
    assert EpochHistory([(3, 20)]).end_of(1, log_end=50) == (1, 20)


def test_an_older_leader_is_refused() -> None:
    history = EpochHistory([(3, 0)])
    for epoch in (2, 3):
        with pytest.raises(StaleEpoch):
            history.begin(epoch, 10)


def test_an_epoch_that_wrote_nothing_is_forgotten_when_the_next_one_begins() -> None:
    history = EpochHistory([(3, 0), (4, 10)])
    history.begin(5, 10)
    assert history.entries() == [(3, 0), (5, 10)]


def test_truncation_forgets_the_epochs_behind_it() -> None:
    history = EpochHistory([(3, 0), (5, 10), (8, 30)])
    assert history.truncate(30)
    assert history.entries() == [(3, 0), (5, 10)]
    assert not history.truncate(30)


def test_epochs_that_ended_before_the_oldest_segment_are_forgotten() -> None:
    history = EpochHistory([(3, 0), (5, 10), (8, 30)])
    history.forget_below(15)
    assert history.entries() == [(5, 10), (8, 30)]
    assert history.at(15) == 5
