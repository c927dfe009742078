"""Which copy a partition goes on with when the metadata does not say who is in sync: after etcd was restored from a
backup, or where no in-sync replica is left and the topic allows any other. What the copies themselves hold decides.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from goqueue.machines.cluster.election import Nodes, Partition
from goqueue.model.metadata import (
    ClusterKey,
    ClusterValue,
    Compare,
    LiveKey,
    PartitionKey,
    ProducerIdsKey,
    ProducerIdsValue,
    Put,
    Step,
)
from goqueue.model.placements import Lost

EPOCHS_MARGIN = 1000
"""Epochs in which nothing was written left no trace in a log, and clients remember them: they take no leader of an
earlier one."""
IDS_MARGIN = 100_000
"""Producer ids that were given and have written nothing yet."""
IDS_PER_BLOCK = 1000
NO_PRODUCER = -1


class CopyState(NamedTuple):
    """What one node holds of a partition."""

    topic_id: bytes
    partition: int
    start: int
    end: int
    last_epoch: int
    """Of its last batch."""
    seen_epoch: int
    """The highest that it has heard of, written to or not."""
    producer_id: int
    """The highest that has written to it, as far as it is remembered; NO_PRODUCER: none has."""
    is_doubtful: bool


Held = Mapping[int, Mapping[PartitionKey, CopyState]]
"""By node."""


def best(copies: Mapping[int, CopyState], order: Sequence[int]) -> int | None:
    """The one whose last batch is of the latest epoch, and of those the longest. None: there is no copy.

    A leader that was elected held all that was committed before, so what a later epoch wrote has all of that below it.
    """
    known = [node_id for node_id in order if node_id in copies]
    return max(known, key=lambda node_id: _rank(copies[node_id]), default=None)


def _rank(copy: CopyState) -> tuple[int, int, bool]:
    return copy.last_epoch, copy.end, not copy.is_doubtful


class Chosen(NamedTuple):
    """A partition, and with which copy it goes on."""

    partition: Partition
    node_id: int
    epoch: int
    """Its next one."""
    copies: Mapping[int, CopyState]
    missing: tuple[int, ...]
    """Replicas that did not tell what they hold."""


class Plan(NamedTuple):
    chosen: tuple[Chosen, ...]
    left: tuple[Partition, ...]
    """Nobody that was asked has a copy: they stay as they are."""
    missing: tuple[int, ...]
    """All nodes that did not tell of a copy that they should have."""
    producer_ids_end: int
    """Every producer id that was ever given is below it."""


def plan(
    partitions: Iterable[Partition],
    held: Held,
    producer_ids_end: int,
    choices: Mapping[PartitionKey, int],
) -> Plan:
    """`choices`: of an operator who knows better than the rule."""
    chosen, left = [], []
    missing: dict[int, None] = {}
    for partition in partitions:
        key, placement = partition.key, partition.placement
        copies = {node_id: held[node_id][key] for node_id in sorted(held) if key in held[node_id]}
        absent = tuple(node_id for node_id in placement.replicas if node_id not in copies)
        missing.update(dict.fromkeys(absent))
        node_id = choices.get(key, best(copies, (*placement.replicas, *placement.adding)))
        if node_id is None or node_id not in copies:
            left.append(partition)
            continue
        epoch = max(placement.epoch, *(copy.seen_epoch for copy in copies.values())) + EPOCHS_MARGIN
        chosen.append(Chosen(partition, node_id, epoch, copies, absent))
    highest = max((copy.producer_id for copies in held.values() for copy in copies.values()), default=NO_PRODUCER)
    blocks = -(-max(producer_ids_end, highest + 1) // IDS_PER_BLOCK)
    return Plan(tuple(chosen), tuple(left), tuple(sorted(missing)), blocks * IDS_PER_BLOCK + IDS_MARGIN)


def not_accounted_for(found: Plan, without: Collection[int]) -> tuple[int, ...]:
    """Nodes that may hold more than any other, and that nobody has given up."""
    return tuple(node_id for node_id in found.missing if node_id not in without)


def recover(one: Chosen, nodes: Nodes, cluster_revision: int, now_ms: int, why: str) -> Step:
    """The chosen copy leads and is alone in sync; the others copy from it. Only while all is halted: that is what
    the cluster's revision stands for."""
    key, placement, _ = one.partition
    lost = Lost(now_ms, one.node_id, one.copies[one.node_id].end, why)
    led = placement._replace(
        leader=one.node_id,
        incarnation=nodes[one.node_id].incarnation,
        epoch=one.epoch,
        isr=(one.node_id,),
        lost=(*placement.lost, lost),
    )
    compares = (
        Compare(key, placement.revision),
        Compare(LiveKey(one.node_id), nodes[one.node_id].incarnation),
        Compare(ClusterKey(), cluster_revision),
    )
    return Step(compares, (Put(key, led),))


def go_on(cluster: ClusterValue, cluster_revision: int, ids_revision: int, producer_ids_end: int) -> Step:
    """The last step: leaders are elected again. Nodes that remember more of the time before need not ask any more."""
    compares = (Compare(ClusterKey(), cluster_revision), Compare(ProducerIdsKey(), ids_revision))
    healed = cluster._replace(halted="", recoveries=cluster.recoveries + 1)
    return Step(compares, (Put(ProducerIdsKey(), ProducerIdsValue(producer_ids_end)), Put(ClusterKey(), healed)))
