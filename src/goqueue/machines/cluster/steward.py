"""What the steward does, the living node with the lowest id: all that is not urgent. Nobody elects it, and two of them
do no harm, since each step compares what it was decided from.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from goqueue.machines.cluster.election import Nodes, Partition, has_leader
from goqueue.model.metadata import (
    Compare,
    GoneKey,
    GoneValue,
    PartitionKey,
    Put,
    RemovedKey,
    Step,
    TopicKey,
    TopicValue,
)
from goqueue.model.placements import Placement

KEYS_AT_ONCE = 100
"""etcd takes 128 operations in one transaction."""
UNCLEAN_AFTER_MS = 30_000
"""How long no member of the ISR was alive, before a topic that allows it gets any leader."""


def steward_of(nodes: Nodes) -> int | None:
    """None: nobody is known to be alive."""
    return min(nodes, default=None)


def is_steward(nodes: Nodes, me: int) -> bool:
    return steward_of(nodes) == me


# -- reassignments


def holders(placement: Placement) -> tuple[int, ...]:
    """All nodes that have a copy, or are to have one."""
    return tuple(dict.fromkeys((*placement.replicas, *placement.adding, *placement.removing)))


def reassign(partition: Partition, topic: TopicKey, topic_revision: int, wanted: Sequence[int]) -> Step:
    """These are to be its replicas. Those that leave stay until all that come are in sync. A reassignment that is under
    way is replaced by it; who has come in sync by that one leaves as others do."""
    key, placement, _ = partition
    there = [
        node_id
        for node_id in holders(placement)
        if node_id not in placement.adding or node_id in placement.isr or node_id == placement.leader
    ]
    moved = placement._replace(
        replicas=(*wanted, *(node_id for node_id in there if node_id not in wanted)),
        adding=tuple(node_id for node_id in wanted if node_id not in there),
        removing=tuple(node_id for node_id in there if node_id not in wanted),
    )
    compares = (Compare(key, placement.revision), Compare(topic, topic_revision))
    return Step(compares, (Put(key, moved),))


def cancel(partition: Partition, topic: TopicKey, topic_revision: int) -> Step | None:
    """As it was before. None: nothing is under way."""
    placement = partition.placement
    if not placement.adding and not placement.removing:
        return None
    before = [node_id for node_id in holders(placement) if node_id not in placement.adding]
    return reassign(partition, topic, topic_revision, before)


def finish_reassignment(partition: Partition) -> Step | None:
    """None: nothing is under way, or not all that come are in sync, or the leader has to hand over first."""
    key, placement, minimum = partition
    if not placement.adding and not placement.removing:
        return None
    stay = tuple(node_id for node_id in placement.replicas if node_id not in placement.removing)
    isr = tuple(node_id for node_id in placement.isr if node_id not in placement.removing)
    is_in = all(node_id in placement.isr for node_id in placement.adding)
    if not is_in or placement.leader not in stay or len(isr) < max(1, min(minimum, len(stay))):
        return None
    done = placement._replace(replicas=stay, adding=(), removing=(), isr=isr)
    return Step((Compare(key, placement.revision),), (Put(key, done),))


def heir_of_removed(placement: Placement, nodes: Nodes) -> int | None:
    """To whom a leader that is to leave hands over; None: it stays, or nobody can take its place yet."""
    if placement.leader not in placement.removing:
        return None
    stay = (node_id for node_id in placement.replicas if node_id not in placement.removing)
    return next((node_id for node_id in stay if node_id in placement.isr and node_id in nodes), None)


def preferred(placement: Placement, nodes: Nodes) -> int | None:
    """Who should lead instead of whoever leads now: the first of the replicas, if it can."""
    if not has_leader(placement, nodes) or not placement.replicas:
        return None
    first = next(node_id for node_id in placement.replicas if node_id not in placement.removing)
    return first if first != placement.leader and first in placement.isr and first in nodes else None


def standing_without_isr(placement: Placement, nodes: Nodes) -> list[int]:
    """Who may be chosen in an unclean election, if nobody in sync is alive; empty: somebody is."""
    if any(node_id in nodes for node_id in placement.isr):
        return []
    return [node_id for node_id in placement.replicas if node_id in nodes]


# -- deletions


def finish_deletion(
    name: str,
    value: TopicValue,
    revision: int,
    placements: Mapping[int, Placement],
    removed: Iterable[int],
    nodes: Nodes,
    now_ms: int,
) -> list[Step]:
    """The steps that forget a topic, one after the other. Empty: a living node still has logs of it. A dead one learns
    from `gone/` that it may remove its own, so that is there first, and the topic goes last."""
    done = set(removed)
    waited_for = {node_id for placement in placements.values() for node_id in holders(placement) if node_id in nodes}
    if not value.is_deleting or not waited_for <= done:
        return []
    compare = Compare(TopicKey(name), revision)
    keys: list[PartitionKey | RemovedKey] = [PartitionKey(value.topic_id, number) for number in sorted(placements)]
    keys += [RemovedKey(value.topic_id, node_id) for node_id in sorted(done)]
    puts = [Put(GoneKey(value.topic_id), GoneValue(name, now_ms)), *(Put(key, None) for key in keys)]
    puts.append(Put(TopicKey(name), None))
    return [Step((compare,), tuple(some)) for some in _slices(puts)]


def _slices(puts: Sequence[Put]) -> Iterator[Sequence[Put]]:
    for start in range(0, len(puts), KEYS_AT_ONCE):
        yield puts[start : start + KEYS_AT_ONCE]
