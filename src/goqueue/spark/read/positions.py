"""The offsets of a stream as the checkpoint has them: {"orders": {"0": 23}}, as Spark's Kafka source writes them.

Spark keeps where a micro-batch of a Python source ends, but not where the very first one began: after a crash it asks
again, and gets another answer. So the end of the first one also says where it began. And the ids of the topics are
kept: offsets mean nothing in a topic of the same name that was made later.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from goqueue.client.assigned import Place
from goqueue.spark.errors import SparkError

Document: TypeAlias = dict[str, dict[str, Any]]
BEGAN = "<began>"
IDS = "<ids>"
"""No topic has such a name."""


class Position(NamedTuple):
    offsets: Mapping[Place, int]
    ids: Mapping[str, bytes] = {}
    """Of the topics. Checkpoints of older versions have none, and one of a topic that is gone may lack its id."""

    def at(self, place: Place, ids: Mapping[str, bytes]) -> int | None:
        """Where the stream stands in the partition of the topic that has the name now; None: it is new to it."""
        return None if self.is_of_another(place[0], ids) else self.offsets.get(place)

    def is_of_another(self, topic: str, ids: Mapping[str, bytes]) -> bool:
        """Whether the topic that has this name now is not the one that the position was taken in."""
        return topic in self.ids and topic in ids and self.ids[topic] != ids[topic]


def written(position: Position, began: Document | None = None) -> Document:
    document: Document = {}
    for (topic, partition), offset in sorted(position.offsets.items()):
        document.setdefault(topic, {})[str(partition)] = offset
    ids = {topic: position.ids[topic].hex() for topic in document if topic in position.ids}
    if ids:
        document[IDS] = ids
    return document if began is None else document | {BEGAN: began}


def read(document: Document) -> Position:
    try:
        offsets = {
            (topic, int(partition)): int(offset)
            for topic, partitions in document.items()
            if topic not in (BEGAN, IDS)
            for partition, offset in partitions.items()
        }
        return Position(offsets, {topic: bytes.fromhex(id_) for topic, id_ in document.get(IDS, {}).items()})
    except (AttributeError, TypeError, ValueError):
        raise SparkError(f"the checkpoint is not one of a stream of topics: it says {document!r}") from None


def start_of(start: Document, end: Document) -> Document:
    """Where the micro-batch really began that is to be planned, perhaps once more."""
    return end[BEGAN] if BEGAN in end and BEGAN not in start else start
