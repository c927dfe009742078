"""What may be asked of the transaction coordinator and what it answers. Doors translate: they know Kafka's versions."""

from typing import NamedTuple, TypeAlias

from goqueue.machines.machine import Command
from goqueue.model.codes import Code
from goqueue.records.batch import NO_EPOCH, NO_PRODUCER

Partition: TypeAlias = tuple[str, int]
"""topic and number"""


class InitProducer(Command["ProducerReply"], frozen=True):
    """Make the sender the one producer of `transactional_id`. None: it only wants a producer id, and need not ask the
    coordinator.

    With the id and epoch that it has, it asks to go on with the next epoch after an error of its own (KIP-360).
    """

    transactional_id: str | None
    timeout_ms: int = 0
    producer_id: int = NO_PRODUCER
    epoch: int = NO_EPOCH
    new_producer_id: int = NO_PRODUCER
    """One that nobody has, to be used if the producer needs another. Without it the reply may be ProducerIdWanted."""


class AddPartitions(Command["CodeReply"], frozen=True):
    """Enlist partitions in the transaction, opening one if none is. In version 2 the broker says this for a publish."""

    transactional_id: str
    producer_id: int
    epoch: int
    partitions: tuple[Partition, ...]


class AddGroup(Command["CodeReply"], frozen=True):
    """Enlist the offsets of a group. In version 2 the broker says this for a commit of offsets."""

    transactional_id: str
    producer_id: int
    epoch: int
    group: str


class EndTransaction(Command["ProducerReply"], frozen=True):
    """Commit or abort. `bumps_epoch`: version 2 (KIP-890), the producer goes on with a new epoch, so that nothing it
    sent for this transaction can reach the next one.
    """

    transactional_id: str
    producer_id: int
    epoch: int
    commit: bool
    bumps_epoch: bool = False
    new_producer_id: int = NO_PRODUCER
    """As that of InitProducer."""


class EndTogether(Command["TogetherReply"], frozen=True):
    """Commit all of `transactions` (id, producer id, epoch) in one decision, or none of them; or abort (not `commit`).

    They are the transactions of one writer, `key`, and their ids begin with it and a slash. What else it has open is
    aborted: attempts that were given up. `mark` counts what the writer has committed: if one as high is known, this
    was committed before, and what is open now is a repetition of it.
    """

    key: str
    mark: int
    commit: bool
    transactions: tuple[tuple[str, int, int], ...] = ()
    forgets: bool = False
    """The writer is done: its ids need not be remembered. The mark is."""


class MarkersWritten(Command["CodeReply"], frozen=True):
    """Part or all of a `MarkerJob` is done and durable; said twice it does no harm."""

    transactional_id: str
    producer_id: int
    serial: int
    partitions: tuple[Partition, ...] = ()
    groups: tuple[str, ...] = ()


class ProducerReply(NamedTuple):
    """Who the producer is from now on, to InitProducer and EndTransaction; -1 in a refusal."""

    code: Code
    producer_id: int = NO_PRODUCER
    epoch: int = NO_EPOCH


class ProducerIdWanted(NamedTuple):
    """To InitProducer and EndTransaction: nothing was decided; say it again with a `new_producer_id`."""


class TogetherReply(NamedTuple):
    """To EndTogether."""

    code: Code
    is_repeated: bool = False
    """It was committed before, and what was sent again is aborted."""
    message: str = ""


class CodeReply(NamedTuple):
    """To AddPartitions, AddGroup and MarkersWritten."""

    code: Code


class MarkerJob(NamedTuple):
    """What is still to be written of one decided transaction: a marker in every partition, a word to every group."""

    transactional_id: str
    producer_id: int
    epoch: int
    """Of the markers: a higher one than the producer wrote with fences it wherever the marker lands."""
    written_epoch: int
    """The one that the producer wrote with."""
    coordinator_epoch: int
    serial: int
    commit: bool
    partitions: tuple[Partition, ...]
    groups: tuple[str, ...]
