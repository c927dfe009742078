"""A data directory for another number of processes than it was made for: of one for several, of several for fewer or
for one. Logs are renamed and never copied, so it takes no room and no time to speak of. What the metadata says is
written anew, in the form of those who read it next.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from goqueue.cluster.accounts import AccountKey, account_change, account_fact
from goqueue.cluster.etcd.codec import decode_entry, encode_puts
from goqueue.cluster.etcd.keys import prefix_of
from goqueue.cluster.etcd.port import KeyValue
from goqueue.cluster.registration import LEDGERS
from goqueue.cluster.steward import GROUPS, SCHEMAS, TRANSACTIONS
from goqueue.machines.accounts import AccountFact
from goqueue.machines.cluster.placement import Host, assign
from goqueue.machines.controller import Controller
from goqueue.machines.controller_facts import ClusterNamed, ProducerIdsTaken, SchedulePlaced, TopicStored
from goqueue.machines.entries import FIRST_REVISION, Entries, EntryStored, RevisionReached
from goqueue.machines.group_options import GroupOptionsStored
from goqueue.machines.machine import Fact
from goqueue.model.errors import CannotJoin
from goqueue.model.metadata import (
    ClusterKey,
    ClusterValue,
    Event,
    GroupKey,
    GroupValue,
    Key,
    LiveKey,
    NodeKey,
    PartitionKey,
    ProducerIdsKey,
    ProducerIdsValue,
    Put,
    ScheduleKey,
    ScheduleValue,
    TopicKey,
    TopicValue,
    Value,
)
from goqueue.model.placements import NOBODY, Placement
from goqueue.replica.companions import LEDGER_OPTIONS

SHARDS = {GROUPS: LEDGERS, TRANSACTIONS: LEDGERS, SCHEMAS: 1}
"""Ledgers that are divided as topics are, and how many logs each has."""
MIN_INSYNC_REPLICAS = "min.insync.replicas"

Known = Mapping[Key, Value]


class Place(NamedTuple):
    """Where one log is to be, by the member that has it."""

    topic: str
    topic_id: bytes
    number: int
    source: int
    """The member that has it; 0: one process."""
    target: int


class Divided(NamedTuple):
    facts: list[Fact]
    """The metadata for those who read it next."""
    places: list[Place]
    epoch: int
    """Nothing was led in a later one."""


def for_several(controller: Controller, epoch: int, processes: int, ids: Mapping[str, bytes], prefix: str) -> Divided:
    """Of one process. `epoch`: of its last start. `ids`: by which the logs of ledgers are known."""
    members = [Host(number) for number in range(1, processes + 1)]
    topics = {
        each.name: TopicValue(each.topic_id, each.partitions, each.overrides, each.is_deleting)
        for each in controller.topics.values()
    }
    topics |= {name: TopicValue(ids[name], size, LEDGER_OPTIONS) for name, size in SHARDS.items()}
    known: dict[Key, Value] = dict(_metadata(controller))
    places = []
    for name, topic in topics.items():
        known[TopicKey(name)] = topic
        for number in range(topic.partitions):
            # Ids that are unique in a topic need one place that knows all of them; schemas have copies everywhere.
            turn = 0 if _is_together(topic) else number
            (target,) = (1,) if name == SCHEMAS else assign(topic.topic_id, turn, members, 1)
            known[PartitionKey(topic.topic_id, number)] = Placement(NOBODY, 0, epoch, (target,), (target,))
            places.append(Place(name, topic.topic_id, number, 0, target))
    return Divided(_entries(known, prefix), places, epoch)


def _is_together(topic: TopicValue) -> bool:
    return topic.overrides.get("dedup.ms", "0") != "0" and topic.overrides.get("dedup.scope", "topic") == "topic"


def _metadata(controller: Controller) -> Iterator[tuple[Key, Value]]:
    yield ClusterKey(), ClusterValue(controller.cluster_id, controller.secret, LEDGERS, LEDGERS)
    for fact in controller.facts():
        match fact:
            case ProducerIdsTaken():
                yield ProducerIdsKey(), ProducerIdsValue(fact.end)
            case SchedulePlaced():
                yield ScheduleKey(fact.name), ScheduleValue(fact.topic_id, fact.partition)
            case GroupOptionsStored():
                yield GroupKey(fact.group_id), GroupValue(fact.options)
            case _ if isinstance(fact, AccountFact):
                key, value = account_change(fact)
                assert value is not None, fact
                yield key, value


def _entries(known: Known, prefix: str, revision: int = FIRST_REVISION + 1) -> list[Fact]:
    puts = encode_puts(prefix, [Put(key, value) for key, value in known.items()])
    stored = [EntryStored(put.key, put.value, revision, revision) for put in puts if put.value is not None]
    return [RevisionReached(revision), *stored]


def for_fewer(entries: Entries, processes: int, cluster_name: str) -> Divided:
    """Of several processes, for fewer or for one. CannotJoin: it cannot be known what they have."""
    prefix = prefix_of(cluster_name)
    known = {event.key: event.value for event in _events(entries, prefix) if event.value is not None}
    cluster = known.get(ClusterKey())
    if not isinstance(cluster, ClusterValue) or cluster.halted:
        why = cluster.halted if isinstance(cluster, ClusterValue) else f"they know of no cluster {cluster_name!r}"
        raise CannotJoin(f"this data directory belongs to several processes and cannot be given to {processes}: {why}")
    topics = dict(_made(known))
    places = [place for name, topic in topics.items() for place in _fewer(name, topic, known, processes)]
    epoch = max((value.epoch for value in known.values() if isinstance(value, Placement)), default=0)
    if processes == 1:
        return Divided(list(_facts(known, topics)), places, epoch)
    gone = [key for key in known if isinstance(key, LiveKey) or (isinstance(key, NodeKey) and key.node_id > processes)]
    left = {key: value for key, value in known.items() if key not in gone}
    return Divided(_entries({**left, **_placed(places, topics, known)}, prefix, entries.revision + 1), places, epoch)


def _events(entries: Entries, prefix: str) -> Iterator[Event]:
    for each in entries.below(prefix.encode()):
        standing = KeyValue(each.name, each.value, each.revision, each.created, each.lease)
        if (event := decode_entry(prefix, standing)) is not None:
            yield event


def _made(known: Known) -> Iterator[tuple[str, TopicValue]]:
    """Topics and ledgers that were ever shown to anybody."""
    for key, value in known.items():
        if isinstance(key, TopicKey) and isinstance(value, TopicValue) and not value.is_making:
            yield key.name, value


def _fewer(name: str, topic: TopicValue, known: Known, processes: int) -> Iterator[Place]:
    """Copies in sync stay where they are, if that is one of those who go on; else one of them is moved."""
    members = [Host(number) for number in range(1, processes + 1)]
    for number in range(topic.partitions):
        placed = known.get(PartitionKey(topic.topic_id, number))
        if not isinstance(placed, Placement) or not placed.isr:
            continue
        best = placed.leader if placed.leader in placed.isr else placed.isr[0]
        staying = [member for member in placed.replicas if member in placed.isr and member <= processes]
        if processes == 1:
            yield Place(name, topic.topic_id, number, best, 0)
        elif staying:
            yield from (Place(name, topic.topic_id, number, member, member) for member in staying)
        else:
            (target,) = assign(topic.topic_id, number, members, 1)
            yield Place(name, topic.topic_id, number, best, target)


def _placed(places: Iterable[Place], topics: Mapping[str, TopicValue], known: Known) -> dict[Key, Value]:
    copies: dict[tuple[str, int], list[int]] = {}
    for place in places:
        copies.setdefault((place.topic, place.number), []).append(place.target)
    changed: dict[Key, Value] = {}
    for (name, number), members in copies.items():
        topic, key = topics[name], PartitionKey(topics[name].topic_id, number)
        before = known[key]
        assert isinstance(before, Placement)
        here = tuple(members)
        changed[key] = Placement(NOBODY, 0, before.epoch, here, here, lost=before.lost)
        least = min(len(each) for (other, _), each in copies.items() if other == name)
        if least < topic.replication_factor:
            overrides = _with_minimum(topic.overrides, least)
            changed[TopicKey(name)] = topic._replace(replication_factor=least, overrides=overrides)
    return changed


def _with_minimum(overrides: Mapping[str, str], copies: int) -> dict[str, str]:
    """Nothing could be published if more copies had to be in sync than there are."""
    wish = overrides.get(MIN_INSYNC_REPLICAS)
    return {**overrides, MIN_INSYNC_REPLICAS: str(copies)} if wish and int(wish) > copies else dict(overrides)


def _facts(known: Known, topics: Mapping[str, TopicValue]) -> Iterator[Fact]:
    """For one process."""
    for key, value in known.items():
        match value:
            case ClusterValue():
                yield ClusterNamed(value.cluster_id, value.secret)
            case ProducerIdsValue():
                yield ProducerIdsTaken(value.end)
            case ScheduleValue():
                assert isinstance(key, ScheduleKey)
                yield SchedulePlaced(key.name, value.topic_id, value.partition)
            case GroupValue():
                assert isinstance(key, GroupKey)
                yield GroupOptionsStored(key.group_id, dict(value.options))
            case _ if isinstance(key, AccountKey):
                yield account_fact(key, value)
    for name, topic in topics.items():
        if name not in SHARDS:
            overrides = _with_minimum(topic.overrides, 1)
            yield TopicStored(name, topic.topic_id, topic.partitions, overrides, topic.is_deleting)
