"""What a stream does about offsets that are not there any more."""

import pytest

from goqueue.client.assigned import Place
from goqueue.spark.errors import SparkError
from goqueue.spark.read.bounds import Extent
from goqueue.spark.read.loss import planned, still_there
from goqueue.spark.read.positions import IDS, Position, read, written
from goqueue.spark.read.splits import Range

A, B = ("a", 0), ("b", 1)
EXTENT = Extent({A: 10, B: 0}, {A: 100, B: 5})


def plan(start: dict[Place, int], end: dict[Place, int], *, fails: bool = True) -> list[Range]:
    return planned(Position(start), Position(end), EXTENT, fails_on_loss=fails)


def test_what_lies_between_two_positions() -> None:
    assert plan({A: 10, B: 2}, {A: 100, B: 2}) == [Range("a", 0, 10, 100)]


def test_a_new_partition_is_read_from_its_beginning() -> None:
    assert plan({A: 100}, {A: 100, B: 5}) == [Range("b", 1, 0, 5)]


@pytest.mark.parametrize(
    ("start", "end", "lenient"),
    [
        ({A: 5}, {A: 50}, [Range("a", 0, 10, 50)]),
        ({A: 50}, {A: 120}, [Range("a", 0, 50, 100)]),
        ({A: 50, ("gone", 0): 1}, {A: 60, ("gone", 0): 9}, [Range("a", 0, 50, 60)]),
    ],
)
def test_what_is_gone_fails_or_is_left_out(
    start: dict[Place, int], end: dict[Place, int], lenient: list[Range]
) -> None:
    with pytest.raises(SparkError, match="failOnDataLoss=false"):
        plan(start, end)
    assert plan(start, end, fails=False) == lenient


def test_a_topic_that_was_made_anew_is_read_from_its_beginning() -> None:
    assert plan({B: 70}, {B: 5}, fails=False) == [Range("b", 1, 0, 5)]


@pytest.mark.parametrize(
    ("start", "said"),
    [
        ({A: 100, B: 5, ("gone", 3): 1}, "partition 3 of topic gone is gone"),
        ({A: 101, B: 5}, "partition 0 of topic a ends at offset 100, and the query has read up to 101"),
        ({B: 5}, "partition 0 of topic a is new to the query, and its offsets before 10 are gone"),
    ],
)
def test_a_query_hears_of_a_loss_before_it_goes_on(start: dict[Place, int], said: str) -> None:
    with pytest.raises(SparkError, match=said):
        still_there(Position(start), EXTENT.end, EXTENT, fails_on_loss=True)
    still_there(Position(start), EXTENT.end, EXTENT, fails_on_loss=False)


OLD, NEW = {"a": b"old"}, {"a": b"new"}
MADE_AGAIN = Extent({A: 0}, {A: 100}, NEW)


def test_a_topic_of_the_same_name_is_known_to_be_another_one() -> None:
    """It has grown past where the query stands, so that its offsets tell nothing."""
    start, middle, end = Position({A: 50}, OLD), Position({A: 60}, OLD), Position({A: 100}, NEW)
    with pytest.raises(SparkError, match="topic a was deleted and made again since the query read it: its id was 6f6c"):
        still_there(start, MADE_AGAIN.end, MADE_AGAIN, fails_on_loss=True)
    with pytest.raises(SparkError, match="topic a was deleted and made again"):  # a micro-batch of the old one
        planned(start, middle, MADE_AGAIN, fails_on_loss=True)
    assert planned(start, middle, MADE_AGAIN, fails_on_loss=False) == []
    assert planned(middle, end, MADE_AGAIN, fails_on_loss=False) == [Range("a", 0, 0, 100, b"new")]
    assert planned(Position({A: 60}), end, MADE_AGAIN, fails_on_loss=True) == [Range("a", 0, 60, 100, b"new")]


def test_positions_are_written_as_sparks_kafka_source_does() -> None:
    document = {"a": {"0": 3, "1": 4}, "b": {"0": 5}}
    assert read(document) == ({("a", 0): 3, ("a", 1): 4, ("b", 0): 5}, {})  # as versions before this one wrote it
    assert written(read(document)) == document
    with_ids = document | {IDS: {"a": "6f6c64", "b": "6e6577"}}
    assert read(with_ids).ids == {"a": b"old", "b": b"new"}
    assert written(read(with_ids)) == with_ids


def test_a_checkpoint_of_something_else_is_refused() -> None:
    with pytest.raises(SparkError, match="the checkpoint is not one of a stream of topics"):
        read({"batch": 3})  # type: ignore[dict-item]
