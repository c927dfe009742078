import pytest

from goqueue.spark.errors import SparkError
from goqueue.spark.options import OPTIONS, Options, Part, part_of


def test_names_are_known_in_any_case() -> None:
    options = Options({"MAXOFFSETSPERTRIGGER": "7", "subscribe": "a, b"}, Part.STREAM)
    assert (options.get("maxOffsetsPerTrigger"), options.get("subscribe")) == (7, ("a", "b"))


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(SparkError) as told:
        Options({"subscrib": "a", "minPartitions": "x", "endingOffsets": "latest"}, Part.STREAM)
    assert str(told.value) == (
        "there is no option 'subscrib'; did you mean subscribe?; "
        "minPartitions: 'x' is no whole number above 0; "
        "endingOffsets is no option of a stream read, but of batch read, segments"
    )


def test_what_was_not_given_has_its_default() -> None:
    options = Options({}, Part.BATCH)
    assert options.get("failOnDataLoss") is True
    assert options.get("subscribe") is None
    assert not options.has("failOnDataLoss")
    with pytest.raises(SparkError, match="a batch read needs"):
        options.need("kafka.bootstrap.servers")


@pytest.mark.parametrize(("given", "bytes_"), [("1048576", 1 << 20), ("512k", 512 << 10), ("10MiB", 10 << 20)])
def test_sizes(given: str, bytes_: int) -> None:
    assert Options({"maxBytesPerTrigger": given}, Part.STREAM).get("maxBytesPerTrigger") == bytes_


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_defaults_are_values_that_may_be_given(option: object) -> None:
    Options({}, Part.BATCH).get(option.name)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("given", "is_stream", "part"),
    [
        ({}, False, Part.BATCH),
        ({}, True, Part.STREAM),
        ({"Table": "dlq"}, False, Part.TABLE),
        ({"read": "segments"}, False, Part.SEGMENTS),
        ({"mode": "QUEUE"}, True, Part.QUEUE),
        ({"mode": "failfast"}, False, Part.BATCH),
    ],
)
def test_the_part_follows_from_the_options(given: dict[str, str], is_stream: bool, part: Part) -> None:
    assert part_of(given, is_stream=is_stream) is part


def test_every_option_is_there_once() -> None:
    known = [option.name.lower() for option in OPTIONS]
    assert len(set(known)) == len(known)
