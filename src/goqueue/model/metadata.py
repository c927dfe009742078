"""The metadata of a cluster as keys and values, and changes of it that are made only if what they were decided from is
still so. A node that is its own cluster keeps it in its data directory, a cluster keeps it in etcd; whoever decides a
change sees the same words.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from goqueue.model.access import Rule
from goqueue.model.accounts import ApiKey, User
from goqueue.model.placements import NodeInfo, Placement
from goqueue.model.quotas import Quota
from goqueue.model.secret import hides
from goqueue.model.sessions import EndedSessions
from goqueue.model.tenancy import Tenant

ABSENT = 0
"""The revision of a key that there is not."""
NO_LEASE = 0

# Keys are no tuples: those of two kinds with the same name would be equal.


@dataclass(frozen=True, slots=True)
class ClusterKey:
    """The one of its kind."""


@dataclass(frozen=True, slots=True)
class NodeKey:
    """A node that belongs to the cluster, alive or not."""

    node_id: int


@dataclass(frozen=True, slots=True)
class LiveKey:
    """The session of a node: the key is there while its lease is renewed. It is put once and never changed, so its
    revision names one life of the node: its incarnation."""

    node_id: int


@dataclass(frozen=True, slots=True)
class TopicKey:
    name: str


@dataclass(frozen=True, slots=True)
class PartitionKey:
    topic_id: bytes
    number: int


@dataclass(frozen=True, slots=True)
class GoneKey:
    """A topic was deleted: whoever finds a log of it may remove it."""

    topic_id: bytes


@dataclass(frozen=True, slots=True)
class RemovedKey:
    """A node has removed its logs of a topic that is being deleted."""

    topic_id: bytes
    node_id: int


@dataclass(frozen=True, slots=True)
class GroupKey:
    group_id: str


@dataclass(frozen=True, slots=True)
class ProducerIdsKey:
    """The one of its kind."""


@dataclass(frozen=True, slots=True)
class ScheduleKey:
    name: str


@dataclass(frozen=True, slots=True)
class UserKey:
    name: str


@dataclass(frozen=True, slots=True)
class ApiKeyKey:
    key_id: str


@dataclass(frozen=True, slots=True)
class RuleKey:
    rule_id: str


@dataclass(frozen=True, slots=True)
class QuotaOf:
    quota_id: str


@dataclass(frozen=True, slots=True)
class TenantKey:
    tenant_id: str


@dataclass(frozen=True, slots=True)
class EndedKey:
    """Of sessions that were ended."""

    principal: str


@hides("secret")
class ClusterValue(NamedTuple):
    cluster_id: str
    secret: bytes
    groups: int
    """How many ledgers groups are spread over; it never changes."""
    transactions: int
    format: int = 1
    halted: str = ""
    """Why nobody may elect: metadata that was restored from a backup may name replicas that lack records."""
    recoveries: int = 0
    """How often an operator has decided what to go on with after such a backup."""


class NodeValue(NamedTuple):
    directory: str
    """The id of its data directory. A node with another disk is another node."""
    rack: str | None = None
    wanted: str = "in"
    """`in`, `drain` or `out`."""


class TopicValue(NamedTuple):
    topic_id: bytes
    partitions: int
    overrides: Mapping[str, str]
    is_deleting: bool = False
    """Its logs have still to be removed; until then its name is taken."""
    is_making: bool = False
    """Not all of its partitions have a place yet; nobody is shown it."""
    replication_factor: int = 1


class GoneValue(NamedTuple):
    name: str
    at_ms: int


class RemovedValue(NamedTuple):
    at_ms: int


class GroupValue(NamedTuple):
    options: Mapping[str, str]


class ProducerIdsValue(NamedTuple):
    end: int
    """Every producer id that was ever given is below it."""


class ScheduleValue(NamedTuple):
    """Where a recurring schedule lives."""

    topic_id: bytes
    partition: int


Key = (
    ClusterKey
    | NodeKey
    | LiveKey
    | TopicKey
    | PartitionKey
    | GoneKey
    | RemovedKey
    | GroupKey
    | ProducerIdsKey
    | ScheduleKey
    | UserKey
    | ApiKeyKey
    | RuleKey
    | QuotaOf
    | TenantKey
    | EndedKey
)
Value = (
    ClusterValue
    | NodeValue
    | NodeInfo
    | TopicValue
    | Placement
    | GoneValue
    | RemovedValue
    | GroupValue
    | ProducerIdsValue
    | ScheduleValue
    | User
    | ApiKey
    | Rule
    | Quota
    | Tenant
    | EndedSessions
)


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


class CompareGone(NamedTuple):
    """A change is made only if the key has *not* the value of this revision: the life that it names is over."""

    key: Key
    revision: int


class Put(NamedTuple):
    key: Key
    value: Value | None
    """None: delete it."""
    lease: int = NO_LEASE
    """The key goes when this lease ends."""


class Step(NamedTuple):
    """A change that is decided: all of `puts` if all of `compares` hold, else nothing."""

    compares: tuple[Compare | CompareGone, ...]
    puts: tuple[Put, ...]


class Committed(NamedTuple):
    revision: int


class Conflict(NamedTuple):
    """Something was not as the change expected it: nothing was changed, read again and decide anew."""

    revision: int
