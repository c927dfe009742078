"""The offsets of a stream as the checkpoint has them: {"orders": {"0": 23}}, as Spark's Kafka source writes them."""

from collections.abc import Mapping
from typing import TypeAlias

from goqueue.client.assigned import Place
from goqueue.spark.errors import SparkError

Document: TypeAlias = dict[str, dict[str, int]]


def written(offsets: Mapping[Place, int]) -> Document:
    document: Document = {}
    for (topic, partition), offset in sorted(offsets.items()):
        document.setdefault(topic, {})[str(partition)] = offset
    return document


def read(document: Document) -> dict[Place, int]:
    try:
        return {
            (topic, int(partition)): int(offset)
            for topic, partitions in document.items()
            for partition, offset in partitions.items()
        }
    except (AttributeError, TypeError, ValueError):
        raise SparkError(f"the checkpoint is not one of a stream of topics: it says {document!r}") from None
