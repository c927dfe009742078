"""What a node knows of the metadata in etcd, kept up to date by events: the keys as they stand, and the same as the
controller machine sees them, so that one set of rules decides on one node and in a cluster.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count

from goqueue.cluster.accounts import account_fact
from goqueue.machines.controller import Controller
from goqueue.machines.controller_commands import DEFAULT_FACTOR, Copies, CreateTopic, Result
from goqueue.machines.controller_facts import (
    ClusterNamed,
    ProducerIdsTaken,
    ScheduleForgotten,
    SchedulePlaced,
    TopicForgotten,
    TopicStored,
)
from goqueue.machines.group_options import GroupOptionsForgotten, GroupOptionsStored
from goqueue.machines.machine import Fact
from goqueue.machines.name_table import NameTable
from goqueue.model.codes import Code
from goqueue.model.metadata import (
    ABSENT,
    ApiKeyKey,
    ClusterKey,
    ClusterValue,
    EndedKey,
    Event,
    GoneKey,
    GoneValue,
    GroupKey,
    GroupValue,
    Key,
    Listing,
    LiveKey,
    NodeKey,
    NodeValue,
    PartitionKey,
    ProducerIdsKey,
    ProducerIdsValue,
    QuotaOf,
    RemovedKey,
    RuleKey,
    ScheduleKey,
    ScheduleValue,
    TenantKey,
    TopicKey,
    TopicValue,
    UserKey,
    Value,
)
from goqueue.model.names import LEDGER_PREFIX
from goqueue.model.partition_limits import PartitionLimits
from goqueue.model.placements import NodeInfo, Placement
from goqueue.telemetry.logs import get_logger

events = get_logger("cluster")

FACTOR_WITHOUT_A_WISH = 3


class Mirror:
    """Invariant: all is known up to `revision`, and nothing is older than that."""

    def __init__(self, limits: PartitionLimits, default_factor: int) -> None:
        self._known: dict[Key, Event] = {}
        self._listed_at = 0
        self.revision = 0
        """Of the last listing or change that was taken in."""
        self._placements: dict[bytes, dict[int, Event]] = {}
        """By topic id and number."""
        self._removed: dict[bytes, dict[int, int]] = {}
        """By topic id: which nodes have removed their logs of it, and at which revision they said so."""
        self.nodes: dict[int, NodeInfo] = {}
        """Those that are alive."""
        self._limits = limits
        self._copies = NodeCopies(self, default_factor)
        self._revisions = count(1)
        self.machine = self._new_machine()
        self.faults = 0
        """How often the machine could not take in what it was told, and was made anew."""
        self.skipped_facts = 0
        """What it could not take in when it was made anew last."""
        self.schedules: Mapping[str, tuple[bytes, int]] = {}
        self.group_options: NameTable[Mapping[str, str]] = NameTable()
        self.changed_groups: dict[str, None] = {}
        """Those whose options were changed. Whoever tells of it clears it."""

    def _new_machine(self) -> Controller:
        return Controller(self._limits, self._revisions, self._copies)

    # -- what is known

    def all(self) -> list[Event]:
        return list(self._known.values())

    def find(self, key: Key) -> Value | None:
        known = self._known.get(key)
        return None if known is None else known.value

    def revision_of(self, key: Key) -> int:
        """ABSENT: there is no such key."""
        known = self._known.get(key)
        return ABSENT if known is None else known.revision

    def topic(self, name: str) -> TopicValue | None:
        """Also a ledger; also one that is being made or deleted."""
        value = self.find(TopicKey(name))
        return value if isinstance(value, TopicValue) else None

    def topics(self) -> Iterator[tuple[str, TopicValue]]:
        """All of them, also ledgers, in the order of their names."""
        names = sorted(key.name for key in self._known if isinstance(key, TopicKey))
        for name in names:
            value = self.topic(name)
            if value is not None:
                yield name, value

    def placements(self, topic_id: bytes) -> Mapping[int, Event]:
        """Those that there are, by number."""
        return self._placements.get(topic_id, {})

    def removed(self, topic_id: bytes) -> Mapping[int, int]:
        return self._removed.get(topic_id, {})

    def gone_before(self, moment_ms: int) -> list[GoneKey]:
        """Of topics that were deleted before this."""
        gone = ((key, one.value) for key, one in self._known.items() if isinstance(key, GoneKey))
        return [key for key, value in gone if isinstance(value, GoneValue) and value.at_ms < moment_ms]

    @property
    def cluster(self) -> ClusterValue:
        value = self.find(ClusterKey())
        assert isinstance(value, ClusterValue), "a node registers before it asks"
        return value

    def members(self) -> dict[int, NodeValue]:
        """Nodes that belong to the cluster and are to have copies, alive or not."""
        found = {key.node_id: each.value for key, each in self._known.items() if isinstance(key, NodeKey)}
        return {
            number: value
            for number, value in sorted(found.items())
            if isinstance(value, NodeValue) and value.wanted == "in"
        }

    def leaving(self) -> set[int]:
        """Nodes that are to have no copies any more."""
        values = ((key.node_id, one.value) for key, one in self._known.items() if isinstance(key, NodeKey))
        return {node for node, value in values if isinstance(value, NodeValue) and value.wanted == "drain"}

    # -- what has changed

    def listed(self, listing: Listing) -> list[Event]:
        """What has changed since the last one: absence is told by nothing else. One that was overtaken by changes tells
        nothing: they would be taken back, and are not told again."""
        if listing.revision < self.revision:
            return []
        found = {entry.key for entry in listing.entries}
        gone = [Event(key, None, listing.revision) for key in self._known if key not in found]
        new = [one for one in listing.entries if self._known.get(one.key) != one]
        self._listed_at = self.revision = listing.revision
        self._take_in([*gone, *new])
        return [*gone, *new]

    def changed(self, events: Sequence[Event]) -> list[Event]:
        """Those of them that are news."""
        news = [event for event in events if event.revision > self._listed_at]
        self.revision = max([self.revision, *(event.revision for event in news)])
        self._take_in(news)
        return news

    def _take_in(self, events: Sequence[Event]) -> None:
        for event in events:
            key, value, before = event.key, event.value, self._known.get(event.key)
            if value is None:
                self._known.pop(key, None)
            else:
                self._known[key] = event
            match key:
                case LiveKey():
                    self.nodes.pop(key.node_id, None)
                    if isinstance(value, NodeInfo):
                        self.nodes[key.node_id] = value
                case PartitionKey():
                    self._place(key, event)
                case RemovedKey():
                    nodes = self._removed.setdefault(key.topic_id, {})
                    nodes.pop(key.node_id, None)
                    if value is not None:
                        nodes[key.node_id] = event.revision
                case TenantKey() if before is not None and before.value == value:
                    """Something was made for it: it has another revision, and nobody's access has changed."""
                case _:
                    self._tell_machine(key, value)

    def _place(self, key: PartitionKey, event: Event) -> None:
        placed = self._placements.setdefault(key.topic_id, {})
        if isinstance(event.value, Placement):
            placed[key.number] = event
        else:
            placed.pop(key.number, None)
            if not placed:
                del self._placements[key.topic_id]

    def _tell_machine(self, key: Key, value: Value | None) -> None:
        fact = _fact(key, value)
        if fact is not None:
            try:
                self.machine.apply(fact)
            except Exception as fault:  # noqa: BLE001  from here on the state is not what etcd says
                self.faults += 1
                events.error("metadata not applied", key=str(key), exc_info=fault)
                self._make_anew()
        if isinstance(key, ScheduleKey):
            self.schedules = self.machine.schedules()
        elif isinstance(key, GroupKey):
            self.changed_groups[key.group_id] = None
            self.group_options.pop(key.group_id, None)
            if isinstance(value, GroupValue):
                self.group_options[key.group_id] = value.options

    def _make_anew(self) -> None:
        """Nothing is believed of a machine that met a fault: the next one is told all that is known. What that cannot
        take in either is left out, as a coordinator leaves out what it cannot read of its ledger."""
        self.machine, self.skipped_facts = self._new_machine(), 0
        for each in self._known.values():
            fact = _fact(each.key, each.value)
            if fact is None:
                continue
            try:
                self.machine.apply(fact)
            except Exception as fault:  # noqa: BLE001  whatever it was, the others are told
                self.skipped_facts += 1
                events.error("metadata left out", key=str(each.key), exc_info=fault)
        self.schedules = self.machine.schedules()


def _fact(key: Key, value: Value | None) -> Fact | None:  # noqa: PLR0911  one for each kind of key
    match key, value:
        case TopicKey(name), _ if name.startswith(LEDGER_PREFIX):
            return None
        case TopicKey(name), TopicValue():
            return TopicStored(name, value.topic_id, value.partitions, dict(value.overrides), value.is_deleting)
        case TopicKey(name), _:
            return TopicForgotten(name)
        case ScheduleKey(name), ScheduleValue():
            return SchedulePlaced(name, value.topic_id, value.partition)
        case ScheduleKey(name), _:
            return ScheduleForgotten(name)
        case GroupKey(group_id), GroupValue():
            return GroupOptionsStored(group_id, dict(value.options))
        case GroupKey(group_id), _:
            return GroupOptionsForgotten(group_id)
        case UserKey() | ApiKeyKey() | RuleKey() | QuotaOf() | TenantKey() | EndedKey(), _:
            return account_fact(key, value)
        case ProducerIdsKey(), ProducerIdsValue():
            return ProducerIdsTaken(value.end)
        case ClusterKey(), ClusterValue():
            return ClusterNamed(value.cluster_id, value.secret)
        case _:
            return None


class NodeCopies(Copies):
    """As many as there are nodes to have them."""

    is_spread = True

    def __init__(self, mirror: Mirror, default_factor: int) -> None:
        self._mirror = mirror
        self._default_factor = default_factor

    def of(self, name: str) -> int:
        topic = self._mirror.topic(name)
        return 1 if topic is None else topic.replication_factor

    def planned(self, command: CreateTopic) -> int | Result:
        members = self._mirror.members()
        if command.assignments:
            return self._assigned(command, members)
        factor = command.replication_factor
        if factor == DEFAULT_FACTOR:
            return self._default_factor or min(FACTOR_WITHOUT_A_WISH, max(1, len(members)))
        if not 1 <= factor <= len(members):
            text = f"{factor} copies of each partition, but there are {len(members)} nodes to have them"
            return Result(Code.INVALID_REPLICATION_FACTOR, text)
        return factor

    def _assigned(self, command: CreateTopic, members: Mapping[int, NodeValue]) -> int | Result:
        first = command.assignments[0]
        for nodes in command.assignments:
            strangers = [node for node in nodes if node not in members]
            if not nodes or strangers or len(set(nodes)) < len(nodes) or len(nodes) != len(first):
                text = f"copies on nodes {list(nodes)}: each may be named once, as many for each partition, of"
                return Result(Code.INVALID_REPLICA_ASSIGNMENT, f"{text} {sorted(members)}")
        return len(first)
