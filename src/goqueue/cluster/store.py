"""Where metadata is kept, as all that use it see it: keys with values, a revision for each change, and changes that are
made only if what they were decided from is still so. A node that is its own cluster keeps it in its data directory; a
cluster keeps it elsewhere, behind the same three calls.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from goqueue.model.errors import GoQueueError
from goqueue.model.placements import NodeInfo, Placement

ABSENT = 0
"""The revision of a key that there is not."""


class TopicKey(NamedTuple):
    name: str


class PartitionKey(NamedTuple):
    topic_id: bytes
    number: int


class NodeKey(NamedTuple):
    node_id: int


class TopicValue(NamedTuple):
    topic_id: bytes
    partitions: int
    overrides: Mapping[str, str]
    is_deleting: bool = False
    """Its logs have still to be removed; until then its name is taken."""


Key = TopicKey | PartitionKey | NodeKey
Value = TopicValue | Placement | NodeInfo


class Event(NamedTuple):
    """A key has another value now."""

    key: Key
    value: Value | None
    """None: there is none any more."""
    revision: int
    """At which it was given this value: rises with every change."""


class Listing(NamedTuple):
    """All that there is, at one moment."""

    revision: int
    entries: Sequence[Event]


class Compare(NamedTuple):
    """A change is made only if the key still has the value that it had at this revision."""

    key: Key
    revision: int
    """ABSENT: if there is no such key."""


class Put(NamedTuple):
    key: Key
    value: Value | None
    """None: delete it."""


class Committed(NamedTuple):
    revision: int


class Conflict(NamedTuple):
    """Something was not as the change expected it: nothing was changed, read again and decide anew."""

    revision: int


OnListed = Callable[[Listing], None]
OnEvents = Callable[[Sequence[Event]], None]
OnDone = Callable[[Committed | Conflict | GoQueueError], None]
"""An error: it may have been done or not. Read before it is tried again."""


class Store(Protocol):
    def list(self, on_listed: OnListed) -> None:
        """What nothing can take back any more."""

    def watch(self, on_events: OnEvents, on_lost: Callable[[], None]) -> None:
        """Be told of every change behind the last listing, those of one change together and in order. `on_lost`: some
        may have been missed, list anew."""

    def txn(self, compares: Sequence[Compare], puts: Sequence[Put], on_done: OnDone) -> None:
        """All of `puts`, if all of `compares` hold, else nothing."""
