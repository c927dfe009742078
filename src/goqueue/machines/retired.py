"""Facts that are not written any more and may still be in ledgers. A tag that is here is never used for another fact.

To retire one: move its class here or beside its reader, with its tag; name it in `RETIRED`; and let whoever reads the
ledger make of it what `becomes` says. It may go when no directory that holds it has to be opened any more.
"""

from typing import NamedTuple

from goqueue.machines.machine import Fact


class ProducerIdsReserved(Fact, frozen=True, tag="ProducerIdsReserved"):
    """Ids below `end` may be in use."""

    end: int

    def key(self) -> bytes:
        return b"producer-ids"


class TopicForgotten(Fact, frozen=True, array_like=True, tag="TopicForgotten"):
    """Of delays: all of this topic is doomed."""

    topic_id: bytes

    def key(self) -> bytes:
        return b"f" + self.topic_id


class Retired(NamedTuple):
    kind: str
    """Of ledger."""
    reader: type[Fact]
    becomes: str
    """At a start of this version, for whoever reads this."""

    @property
    def tag(self) -> str:
        return str(self.reader.__struct_config__.tag)


RETIRED: tuple[Retired, ...] = (
    Retired("transactions", ProducerIdsReserved, "ProducerIdsTaken in the ledger of metadata: no id is given twice"),
    Retired("delays", TopicForgotten, "nothing: what was delayed for the topic is not copied to its partitions"),
)
