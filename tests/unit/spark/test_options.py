import logging

import pytest

from goqueue.spark.errors import SparkError
from goqueue.spark.kafka_options import tell
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
        ({"mode": "stream"}, True, Part.STREAM),
    ],
)
def test_the_part_follows_from_the_options(given: dict[str, str], is_stream: bool, part: Part) -> None:
    assert part_of(given, is_stream=is_stream) is part


def test_options_of_kafka_clients_are_taken_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    given = {"kafka.max.poll.records": "5", "Kafka.Linger.Ms": "1", "fetchOffset.numRetries": "3"}
    options = Options({"subscribe": "a", **given}, Part.STREAM)
    assert sorted(options.unused) == sorted(given)
    assert Options({"kafka.compression.type": "zstd"}, Part.STREAM).unused == ["kafka.compression.type"]  # of a write
    with caplog.at_level(logging.INFO, "goqueue.spark"):
        for _ in range(2):
            tell(options.unused)
    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [
        ("INFO", "options that say nothing here: Kafka.Linger.Ms, fetchOffset.numRetries, kafka.max.poll.records")
    ]


def test_what_sparks_own_source_refuses_is_refused() -> None:
    with pytest.raises(SparkError, match=r"kafka.auto.offset.reset cannot be given: say startingOffsets"):
        Options({"kafka.auto.offset.reset": "earliest"}, Part.STREAM)


def test_a_slip_in_the_name_of_the_brokers_is_told() -> None:
    with pytest.raises(SparkError, match=r"and kafka.boostrap.servers is not it"):
        Options({"kafka.boostrap.servers": "127.0.0.1:9092"}, Part.BATCH).need("kafka.bootstrap.servers")


def test_every_option_is_there_once() -> None:
    known = [option.name.lower() for option in OPTIONS]
    assert len(set(known)) == len(known)
