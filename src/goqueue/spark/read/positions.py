"""The offsets of a stream as the checkpoint has them: {"orders": {"0": 23}}, as Spark's Kafka source writes them.

Spark keeps where a micro-batch of a Python source ends, but not where the very first one began: after a crash it asks
again, and gets another answer. So the end of the first one also says where it began.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

from goqueue.client.assigned import Place
from goqueue.spark.errors import SparkError

Document: TypeAlias = dict[str, dict[str, Any]]
BEGAN = "<began>"
"""No topic has such a name."""


def written(offsets: Mapping[Place, int], began: Document | None = None) -> Document:
    document: Document = {}
    for (topic, partition), offset in sorted(offsets.items()):
        document.setdefault(topic, {})[str(partition)] = offset
    return document if began is None else document | {BEGAN: began}


def read(document: Document) -> dict[Place, int]:
    try:
        return {
            (topic, int(partition)): int(offset)
            for topic, partitions in document.items()
            if topic != BEGAN
            for partition, offset in partitions.items()
        }
    except (AttributeError, TypeError, ValueError):
        raise SparkError(f"the checkpoint is not one of a stream of topics: it says {document!r}") from None


def start_of(start: Document, end: Document) -> Document:
    """Where the micro-batch really began that is to be planned, perhaps once more."""
    return end[BEGAN] if BEGAN in end and BEGAN not in start else start
