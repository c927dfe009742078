"""The readers as Spark calls them, without a JVM around: what they plan, and what their splits give."""

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import confluent_kafka as ck
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition

from goqueue.spark import GoQueueDataSource
from goqueue.spark.read.positions import BEGAN, IDS
from goqueue.spark.read.splits import Range, Split
from tests.integration.process import DEADLINE_S, Node

R = TypeVar("R")
START_MS = 1_700_000_000_000


class Row(NamedTuple):
    topic: str
    partition: int
    offset: int
    value: bytes | None


def publish(
    node: Node, topic: str, values: Iterable[bytes], partition: int = 0, config: Mapping[str, Any] | None = None
) -> None:
    """In their order; the first is of START_MS, each other a millisecond younger."""
    producer = ck.Producer({"bootstrap.servers": node.address, "log_level": 0, **(config or {})})
    for number, value in enumerate(values):
        while True:
            try:
                producer.produce(topic, value, partition=partition, timestamp=START_MS + number)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(DEADLINE_S) == 0


def source(node: Node, options: Mapping[str, str]) -> GoQueueDataSource:
    return GoQueueDataSource({"kafka.bootstrap.servers": node.address, **options})


def batch_reader(node: Node, **options: str) -> DataSourceReader:
    found = source(node, dotted(options))
    return found.reader(found.schema())


def stream_reader(node: Node, **options: str) -> DataSourceStreamReader:
    found = source(node, dotted(options))
    return found.streamReader(found.schema())


def dotted(options: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "."): value for name, value in options.items()}


def sent(what: R) -> R:
    """To an executor."""
    return pickle.loads(pickle.dumps(what))  # type: ignore[no-any-return]


def ranges(splits: Sequence[InputPartition]) -> list[Range]:
    return [split.range._replace(topic_id=b"") for split in splits if isinstance(split, Split)]


def offsets(document: Mapping[str, Any]) -> dict[str, Any]:
    """What a position says of offsets, without the ids of topics."""
    began = {BEGAN: offsets(document[BEGAN])} if BEGAN in document else {}
    return {name: each for name, each in document.items() if name not in (BEGAN, IDS)} | began


def rows(reader: DataSourceReader | DataSourceStreamReader, splits: Sequence[InputPartition]) -> list[Row]:
    return [row for split in splits for batch in sent(reader).read(split) for row in rows_in(batch)]


def rows_in(batch: Any) -> Iterator[Row]:
    for row in batch.to_pylist():
        yield Row(row["topic"], row["partition"], row["offset"], row["value"])


def read_all(node: Node, **options: str) -> list[Row]:
    reader = batch_reader(node, **options)
    return rows(reader, reader.partitions())
