"""In a cluster dead letters are written to partitions that other nodes lead, and an answer may be lost. Each place that
writes some is an idempotent producer, and sends the same batch again until it knows: so the leader recognises the
repetition, and no dead letter is there twice.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from goqueue.broker.transactions.producer_ids import ProducerIds
from goqueue.machines.deliveries.commands import DeadLetter, Place
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError, Indeterminate, LogPoisoned
from goqueue.model.refusal import NotLeader, Refused
from goqueue.records.build import NewRecord

KNOWN_MAX = 10_000
"""Places; those beyond begin anew with another producer id."""
SEQUENCE_MASK = 0x7FFF_FFFF
LOST_TRACK = (Code.OUT_OF_ORDER_SEQUENCE_NUMBER, Code.UNKNOWN_PRODUCER_ID, Code.INVALID_PRODUCER_EPOCH)
"""The log that it writes to has lost some of what it wrote: it goes on as another producer."""


class Target(NamedTuple):
    """Which place writes to which partition."""

    place: Place
    topic: str
    partition: int


class Identity(NamedTuple):
    """Of the next batch."""

    producer_id: int
    producer_epoch: int
    base_sequence: int


class LetterBatch(NamedTuple):
    """Built, and perhaps written already."""

    target: Target
    data: bytes
    records: Sequence[NewRecord]
    written: Sequence[DeadLetter]
    """Which its records are."""
    settles: Sequence[DeadLetter]
    """Those, and letters whose records are gone."""


class LetterProducers:
    def __init__(self, ids: ProducerIds) -> None:
        self._ids = ids
        self._known: dict[Target, Identity] = {}
        self._unsure: dict[Place, LetterBatch] = {}
        """What was sent and not answered for sure."""

    def take(self, target: Target, on_identity: Callable[[Identity | None], None]) -> None:
        """None: there is no id to be had now. A dead letter that may be there twice is better than none."""
        known = self._known.get(target)
        if known is not None:
            on_identity(known)
            return

        def taken(producer_id: int | GoQueueError) -> None:
            if isinstance(producer_id, GoQueueError):
                on_identity(None)
                return
            while len(self._known) >= KNOWN_MAX:
                del self._known[next(iter(self._known))]
            self._known[target] = Identity(producer_id, 0, 0)
            on_identity(self._known[target])

        self._ids.take(taken)

    def unsure(self, place: Place, due: Sequence[DeadLetter]) -> LetterBatch | None:
        """What must be sent again, as it is, if all of it is still due: another leader may have written it since."""
        batch = self._unsure.pop(place, None)
        offsets = {each.offset for each in due}
        return batch if batch is not None and all(each.offset in offsets for each in batch.written) else None

    def failed(self, batch: LetterBatch, error: GoQueueError) -> None:
        if isinstance(error, Indeterminate | NotLeader | LogPoisoned):
            self._unsure[batch.target.place] = batch
        elif isinstance(error, Refused) and error.code in LOST_TRACK:
            self._known.pop(batch.target, None)

    def succeeded(self, batch: LetterBatch) -> None:
        known = self._known.get(batch.target)
        if known is not None:
            following = (known.base_sequence + len(batch.records)) & SEQUENCE_MASK
            self._known[batch.target] = known._replace(base_sequence=following)
