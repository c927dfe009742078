"""`read = segments`: the files of a real broker, read while it runs and after it was killed."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.integration.conftest import CreateTopic
from tests.integration.process import DEADLINE_S, Node
from tests.integration.spark.pages import run_examples

START_MS = 1_700_000_000_000
EACH = 3000
PARTITIONS = 2


def fill(node: Node, topic: str) -> None:
    """Committed numbers in order, aborted ones between them; a codec for each partition."""
    for partition, codec in enumerate(("lz4", "none")):
        producer = Producer(
            {
                "bootstrap.servers": node.address,
                "transactional.id": f"filler-{topic}-{partition}",
                "compression.type": codec,
                "batch.num.messages": 50,
            }
        )
        producer.init_transactions(DEADLINE_S)
        for first in range(0, EACH, 1000):
            for is_kept in (False, True):
                producer.begin_transaction()
                for number in range(first, first + 1000):
                    value = b"%06d " % number + bytes(90) if is_kept else b"aborted"
                    headers: Any = [("partition", str(partition))] if is_kept else []
                    # A time leads to the first record in the log that is not before it, aborted or not.
                    moment = START_MS + (number if is_kept else first)
                    producer.produce(topic, value, b"k", partition, timestamp=moment, headers=headers)
                if is_kept:
                    producer.commit_transaction(DEADLINE_S)
                else:
                    producer.flush(DEADLINE_S)
                    producer.abort_transaction(DEADLINE_S)


def segments(spark: SparkSession, directory: Path, topic: str, **given: str) -> DataFrame:
    read = spark.read.format("goqueue").option("read", "segments").option("subscribe", topic)
    return read.options(**{name.replace("_", "."): value for name, value in given.items()}).load(str(directory))


def numbers(frame: DataFrame) -> list[tuple[int, int]]:
    """Partition and number of each row, in log order."""
    rows = sorted(frame.select("partition", "offset", "value").collect())
    return [(row.partition, int(bytes(row.value)[:6])) for row in rows]


def test_segments_are_what_the_topic_holds(
    spark: SparkSession, own_node: Node, make_topic: CreateTopic, tmp_path: Path
) -> None:
    topic = make_topic(partitions=PARTITIONS, segment_bytes="32768")
    fill(own_node, topic)
    data = own_node.data_dir
    everything = [(partition, number) for partition in range(PARTITIONS) for number in range(EACH)]

    # All of it while the broker runs, and the same as the broker gives, column by column.
    whole = segments(spark, data, topic, activeSegments="true", includeHeaders="true")
    assert numbers(whole) == everything
    served = spark.read.format("goqueue").option("kafka.bootstrap.servers", own_node.address)
    from_broker = served.option("includeHeaders", "true").load(topic)
    assert whole.schema == from_broker.schema
    assert whole.exceptAll(from_broker).count() == 0

    # Sealed segments are a part of it, from the start on, and there are several tasks.
    sealed = numbers(segments(spark, data, topic))
    for partition in range(PARTITIONS):
        there = [number for home, number in sealed if home == partition]
        assert there == list(range(len(there)))
        assert 0 < len(there) < EACH
    assert segments(spark, data, topic).rdd.getNumPartitions() > PARTITIONS

    # kill -9, and a backup: nothing is repaired for us.
    own_node.kill()
    backup = tmp_path / "backup"
    shutil.copytree(data, backup)
    assert numbers(segments(spark, backup, topic, activeSegments="true")) == everything

    # A time range reads what it needs: damage elsewhere is not met.
    files = sorted((backup / "logs" / topic / "1").glob("*.log"))
    damage(files[0], 200)
    late = {"startingTimestamp": str(START_MS + 1500), "endingTimestamp": str(START_MS + 1600)}
    some = numbers(segments(spark, backup, topic, activeSegments="true", **late))
    assert some == [(partition, number) for partition in range(PARTITIONS) for number in range(1500, 1600)]

    with pytest.raises(PySparkException) as told:
        segments(spark, backup, topic, activeSegments="true").count()
    assert f"{files[0]}: damaged batch at byte 0, offsets 0 to" in str(told.value)
    rows = segments(spark, backup, topic, activeSegments="true", badRows="permissive").cache()
    (lost,) = rows.where("_error is not null").collect()
    assert (lost.topic, lost.partition, lost.offset, lost.value) == (topic, 1, 0, None)
    assert set(everything) - set(numbers(rows.where("_error is null"))) <= {(1, number) for number in range(50)}

    replaced = {'"subscribe", "clicks"': f'"subscribe", "{topic}"', "/var/lib/goqueue": str(data)}
    assert run_examples("spark-segments.md", own_node, {}, replaced) == 2


def damage(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 0xFF
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, "is no data directory of GoQueue"),
        ({"startingOffsets": "soon"}, "startingOffsets: 'soon' is neither earliest nor latest nor JSON"),
    ],
)
def test_what_cannot_be_read_is_one_line(spark: SparkSession, tmp_path: Path, given: dict[str, Any], why: str) -> None:
    read = spark.read.format("goqueue").option("read", "segments").options(**given)
    with pytest.raises(PySparkException) as told:
        read.load(str(tmp_path)).count()
    assert why in str(told.value)
    assert "Traceback" not in str(told.value)
