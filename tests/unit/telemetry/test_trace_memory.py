"""What is known of traces is bounded, and goes with its topic."""

from goqueue.telemetry.journeys import Journeys, Note, Step
from goqueue.telemetry.moved import RANGES_MAX, Moved
from goqueue.telemetry.parents import Parents
from goqueue.telemetry.trace_ids import Spot, TraceParent


def parent(number: int) -> TraceParent:
    return TraceParent(f"{number:032x}", f"{number:016x}", is_sampled=True)


def test_the_oldest_parents_are_forgotten() -> None:
    parents = Parents(capacity=3)
    for offset in range(5):
        parents.add(Spot("orders", 0, offset), parent(1 + offset % 2))
    assert [parents.get(Spot("orders", 0, offset)) for offset in range(5)] == [
        None,
        None,
        parent(1),
        parent(2),
        parent(1),
    ]
    assert parents.spots(parent(1).trace_id) == [Spot("orders", 0, 2), Spot("orders", 0, 4)]
    assert (len(parents), parents.traces) == (3, 2)
    parents.forget_topic("orders")
    assert (len(parents), parents.spots(parent(1).trace_id)) == (0, [])


def test_a_moved_record_is_known_by_both_places() -> None:
    moved = Moved()
    moved.add(Note(0, Step.DUE, "orders", 0, 3, 5, detail="10"))
    assert moved.first(Spot("orders", 0, 11)) == Spot("orders", 0, 4)
    assert moved.now(Spot("orders", 0, 4)) == Spot("orders", 0, 11)
    for offset in (9, 13, 4):
        assert moved.first(Spot("orders", 0, offset)) == Spot("orders", 0, offset)
    assert moved.now(Spot("orders", 0, 6)) is None
    assert moved.now(Spot("bills", 0, 4)) is None
    moved.forget_topic("orders")
    assert moved.now(Spot("orders", 0, 4)) is None


def test_moves_are_bounded() -> None:
    moved = Moved()
    for number in range(RANGES_MAX + 1):
        moved.add(Note(0, Step.DUE, "orders", 0, number, number, detail=str(100_000 + number)))
    assert moved.now(Spot("orders", 0, 0)) is None
    assert moved.now(Spot("orders", 0, 1)) == Spot("orders", 0, 100_001)


def test_news_are_told_once() -> None:
    journeys, told = Journeys(), []
    journeys.on_news = lambda: told.append(1)
    for offset in range(3):
        journeys.note(0, Step.RECEIVED, "orders", 0, offset, offset)
    assert told == [1]


def test_restored_notes_come_before_new_ones_and_take_no_room_from_them() -> None:
    journeys = Journeys(capacity=4)
    old = [Note(0, Step.RECEIVED, "orders", 0, offset, offset) for offset in range(5)]
    journeys.note(1, Step.RECEIVED, "orders", 0, 5, 5)
    journeys.restore(old)
    assert [note.first for note in journeys.kept()] == [2, 3, 4, 5]
    assert [note.first for note in journeys.since(0)] == [5]
    assert journeys.counts[Step.RECEIVED] == {("orders", ""): 1}


def test_a_topic_that_is_made_again_has_no_past() -> None:
    journeys = Journeys()
    journeys.note(0, Step.RECEIVED, "orders", 0, 0, 9)
    journeys.note(0, Step.RECEIVED, "bills", 0, 0, 9)
    journeys.forget_topic("orders")
    assert journeys.of("orders", 0, 3) == []
    assert len(journeys.of("bills", 0, 3)) == 1
    assert len(journeys.since(0)) == 2
