"""A partition, as groups name it."""

from typing import NamedTuple


class TopicPartition(NamedTuple):
    topic: str
    partition: int
