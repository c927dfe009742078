"""Batches of idempotent producers that a connection was refused for now, as while no leader is elected.

A client has up to five requests under way. If one is refused, and the next comes when the partition has a leader again,
the next has a gap before it. OUT_OF_ORDER_SEQUENCE_NUMBER would be true of it, but librdkafka then begins a new
producer epoch and sends all that it is not sure of again: messages stored in other partitions would be stored twice. So
what was sent behind a refused batch is refused for the same reason, until that batch comes again.
"""

from typing import Final

from goqueue.model.codes import Code
from goqueue.records.batch import HEADER, NO_PRODUCER

FOR_NOW: Final = frozenset((Code.NOT_LEADER_OR_FOLLOWER, Code.NOT_ENOUGH_REPLICAS))
"""Clients send such a batch again, with the sequence that it had."""
PLACES_MAX = 10_000
"""A connection that was refused at more places forgets the first of them."""
_PRODUCER_AT, _BASE_SEQUENCE_AT = 9, 11

Place = tuple[str, int]
Sent = tuple[int, int, int]
"""Producer id, its epoch, base sequence."""


def sent_by(records: memoryview) -> Sent | None:
    """None: not by an idempotent producer."""
    if len(records) < HEADER.size:
        return None
    producer_id, epoch, base_sequence = HEADER.unpack_from(records)[_PRODUCER_AT : _BASE_SEQUENCE_AT + 1]
    return None if producer_id == NO_PRODUCER else (producer_id, epoch, base_sequence)


class RefusedBatches(dict[Place, tuple[Sent, Code]]):
    """The first that was refused at a place, and why. A dict, since each Produce request asks whether it is empty."""

    __slots__ = ()

    def refused(self, place: Place, sent: Sent, code: Code) -> Code:
        """The code to refuse it with."""
        before = self.get(place)
        if code is Code.OUT_OF_ORDER_SEQUENCE_NUMBER and before is not None:
            (producer_id, epoch, base_sequence), reason = before
            if sent[:2] == (producer_id, epoch) and sent[2] != base_sequence:
                return reason
        if code not in FOR_NOW:
            self.pop(place, None)
        elif before is None or before[0][:2] != sent[:2]:
            if len(self) >= PLACES_MAX:
                del self[next(iter(self))]
            self[place] = sent, code
        return code

    def accepted(self, place: Place) -> None:
        self.pop(place, None)
