"""Notes of what happens to records: counted all, remembered by sampling."""

import pytest

from goqueue.telemetry.journeys import ALWAYS, Journeys, Note, Step


def test_a_record_is_found_in_the_ranges_that_hold_it() -> None:
    journeys = Journeys()
    journeys.note(1, Step.RECEIVED, "orders", 0, 0, 99)
    journeys.note(2, Step.RECEIVED, "orders", 1, 0, 99)
    journeys.note(3, Step.LEASED, "orders", 0, 40, 49, "packers", "anna")
    journeys.note(4, Step.LEASED, "orders", 0, 50, 59, "packers", "ben")
    assert journeys.of("orders", 0, 49) == [
        Note(1, Step.RECEIVED, "orders", 0, 0, 99),
        Note(3, Step.LEASED, "orders", 0, 40, 49, "packers", "anna"),
    ]
    assert journeys.of("orders", 0, 100) == []


@pytest.mark.parametrize(("sampling", "kept"), [(1.0, 300), (0.01, 3), (0.0, 0)])
def test_all_is_counted_and_some_is_remembered(sampling: float, kept: int) -> None:
    journeys = Journeys(sampling)
    for offset in range(300):
        journeys.note(0, Step.RECEIVED, "orders", 0, offset, offset)
    assert journeys.counts[Step.RECEIVED] == {("orders", ""): 300}
    assert journeys.noted == kept
    assert sum(journeys.is_sampled(offset) for offset in range(300)) == kept


def test_a_range_is_remembered_if_one_of_it_is_chosen() -> None:
    journeys = Journeys(0.01)
    for first, last in ((0, 0), (1, 99), (1, 100), (100, 100), (101, 199), (101, 250)):
        journeys.note(0, Step.ACKED, "orders", 0, first, last)
    assert [(note.first, note.last) for note in journeys.since(0)] == [(0, 0), (1, 100), (100, 100), (101, 250)]


@pytest.mark.parametrize("step", sorted(ALWAYS))
def test_what_went_wrong_is_always_remembered(step: Step) -> None:
    journeys = Journeys(0)
    journeys.note(0, step, "orders", 0, 7, 7, detail="why")
    assert [note.detail for note in journeys.of("orders", 0, 7)] == ["why"]


def test_the_oldest_notes_make_room() -> None:
    journeys = Journeys(capacity=10)
    for offset in range(25):
        journeys.note(0, Step.RECEIVED, "orders", 0, offset, offset)
    assert [note.first for note in journeys.since(0)] == list(range(15, 25))
    assert [note.first for note in journeys.since(22)] == [22, 23, 24]
    assert list(journeys.since(25)) == []


def test_counters_of_a_topic_go_with_it() -> None:
    journeys = Journeys()
    journeys.note(0, Step.RECEIVED, "orders", 0, 0, 0)
    journeys.note(0, Step.RECEIVED, "bills", 0, 0, 0)
    journeys.forget_topic("orders")
    assert journeys.counts[Step.RECEIVED] == {("bills", ""): 1}
