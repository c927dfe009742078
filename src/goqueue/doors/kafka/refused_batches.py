"""Batches of idempotent producers that a connection was refused for now, as while no leader is elected.

A client has up to five requests under way. If one is refused, and the next comes when the partition has a leader again,
the next has a gap before it. OUT_OF_ORDER_SEQUENCE_NUMBER would be true of it, but librdkafka then begins a new
producer epoch and sends all that it is not sure of again: messages stored in other partitions would be stored twice. So
what was sent behind a refused batch is refused for the same reason, until that batch comes again.

A client may also have given that batch up. Then it must be told of the gap, or it would send the next ones for ever:
each of them is refused so but once, and no more of them than can have been under way.
"""

from typing import Final

from goqueue.model.codes import Code
from goqueue.records.batch import HEADER, NO_PRODUCER

FOR_NOW: Final = frozenset((Code.NOT_LEADER_OR_FOLLOWER, Code.NOT_ENOUGH_REPLICAS))
"""Clients send such a batch again, with the sequence that it had."""
PLACES_MAX = 10_000
"""A connection that was refused at more places forgets the first of them."""
BEHIND_MAX = 4
"""Idempotent producers have at most five requests under way."""
_PRODUCER_AT, _BASE_SEQUENCE_AT = 9, 11
_SEQUENCE_MASK, _SEQUENCES_AHEAD = 0x7FFF_FFFF, 1 << 30
"""Sequences wrap from 2^31 - 1 to 0; up to half of them are ahead of one, the others behind."""

Place = tuple[str, int]
Sent = tuple[int, int, int]
"""Producer id, its epoch, base sequence."""


def sent_by(records: memoryview) -> Sent | None:
    """None: not by an idempotent producer."""
    if len(records) < HEADER.size:
        return None
    producer_id, epoch, base_sequence = HEADER.unpack_from(records)[_PRODUCER_AT : _BASE_SEQUENCE_AT + 1]
    return None if producer_id == NO_PRODUCER else (producer_id, epoch, base_sequence)


class _Refusal:
    __slots__ = ("behind", "code", "sent")

    def __init__(self, sent: Sent, code: Code) -> None:
        self.sent = sent
        self.code = code
        self.behind: set[int] = set()
        """The sequences of those that were refused because of it, since anything was last refused for a reason of its
        own."""

    def covers(self, sent: Sent) -> bool:
        """Whether that one is refused because of it."""
        if sent[:2] != self.sent[:2] or sent[2] in self.behind or len(self.behind) >= BEHIND_MAX:
            return False
        return 0 < (sent[2] - self.sent[2]) & _SEQUENCE_MASK < _SEQUENCES_AHEAD


class RefusedBatches:
    __slots__ = ("at",)

    def __init__(self) -> None:
        self.at: dict[Place, _Refusal] = {}
        """The first that was refused at a place, until something is accepted there. A place that is led elsewhere now
        may stay for as long as the connection."""

    def covers(self, place: Place, sent: Sent) -> bool:
        """Whether it was sent behind a refused batch, and must not be stored before that one."""
        refusal = self.at.get(place)
        return refusal is not None and refusal.covers(sent)

    def refused(self, place: Place, sent: Sent, code: Code) -> Code:
        """The code to refuse it with."""
        before = self.at.get(place)
        if code is Code.OUT_OF_ORDER_SEQUENCE_NUMBER and before is not None and before.covers(sent):
            before.behind.add(sent[2])
            return before.code
        if code not in FOR_NOW:
            self.at.pop(place, None)
        elif before is None or before.sent[:2] != sent[:2]:
            if len(self.at) >= PLACES_MAX:
                del self.at[next(iter(self.at))]
            self.at[place] = _Refusal(sent, code)
        else:
            before.behind.clear()  # a client that gives it up has what comes next refused likewise
        return code

    def accepted(self, place: Place) -> None:
        self.at.pop(place, None)
