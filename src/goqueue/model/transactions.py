"""Who writes in a transaction, and what became of it."""

from typing import NamedTuple


class Writer(NamedTuple):
    """Who writes, as its request says."""

    transactional_id: str
    producer_id: int
    epoch: int


class Producer(NamedTuple):
    """Who somebody says to be."""

    producer_id: int
    epoch: int
    transactional_id: str | None = None
    """None: not told; the producer id says it."""


class Placed(NamedTuple):
    partition: int
    offset: int
    is_duplicate: bool
    """It was sent before under the same sequence, and stands there since."""
    durability: str = "disk"
    """As that of `Sent`."""


class Hanging(NamedTuple):
    """A transaction that is open in a partition and that its coordinator does not know."""

    producer_id: int
    epoch: int
    coordinator_epoch: int
    commit: bool
