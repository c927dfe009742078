"""Who leads a partition, and who is in sync: each change as the step that brings it about. A step compares all that it
was decided from, so two nodes that take it at once do no harm: one of the two fails.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from goqueue.model.metadata import (
    ABSENT,
    ClusterKey,
    Compare,
    CompareGone,
    LiveKey,
    PartitionKey,
    Put,
    Step,
)
from goqueue.model.placements import NOBODY, Lost, NodeInfo, Placement

NEXT_HEIR_MS = 300
"""How long each heir waits for the one before it."""
PUTS_AT_ONCE = 60
COMPARES_AT_ONCE = 120
"""etcd takes 128 operations of each kind in one transaction."""

Nodes = Mapping[int, NodeInfo]
"""Those that are alive, as the image has them."""


class Partition(NamedTuple):
    """As it was read."""

    key: PartitionKey
    placement: Placement
    minimum: int
    """`min.insync.replicas`: the ISR is not made smaller than this."""

    @property
    def floor(self) -> int:
        return max(1, min(self.minimum, len(self.placement.replicas)))


def is_alive(nodes: Nodes, node_id: int, incarnation: int) -> bool:
    node = nodes.get(node_id)
    return node is not None and node.incarnation == incarnation


def has_leader(placement: Placement, nodes: Nodes) -> bool:
    """In the life in which it was elected: one that was started again leads anew."""
    return is_alive(nodes, placement.leader, placement.incarnation)


# -- elections


def heirs(placement: Placement, nodes: Nodes) -> list[int]:
    """Who may lead next, in order: the replicas in sync that are alive."""
    in_sync = [node_id for node_id in placement.replicas if node_id in placement.isr]
    others = [node_id for node_id in placement.isr if node_id not in placement.replicas]
    return [node_id for node_id in (*in_sync, *others) if node_id in nodes]


def stand_after_ms(placement: Placement, nodes: Nodes, me: int, *, is_doubtful: bool) -> int | None:
    """How long this node waits before it stands for election. None: it does not stand. A doubtful replica never does,
    whatever the ISR says; the others only wait for it in vain."""
    if is_doubtful or has_leader(placement, nodes):
        return None
    order = heirs(placement, nodes)
    return order.index(me) * NEXT_HEIR_MS if me in order else None


def elect(partition: Partition, nodes: Nodes, me: int, cluster_revision: int) -> Step:
    """This node leads, in a new epoch; also when it led before and was started again. Members of the ISR that are dead
    are taken out, as long as enough are left."""
    key, placement, _ = partition
    isr = tuple(node_id for node_id in placement.isr if node_id in nodes)
    if len(isr) < partition.floor:
        isr = placement.isr
    dead = [Compare(LiveKey(node_id), ABSENT) for node_id in placement.isr if node_id not in isr]
    led = placement._replace(leader=me, incarnation=nodes[me].incarnation, epoch=placement.epoch + 1, isr=isr)
    return Step((*_election(partition, nodes, me, cluster_revision), *dead), (Put(key, led),))


def elect_unclean(
    partition: Partition,
    nodes: Nodes,
    chosen: int,
    cluster_revision: int,
    lost: Lost,
    passed_over: Collection[int] = (),
) -> Step:
    """`chosen` leads though it may lack what was acknowledged, and `lost` says so. All others of the ISR must be gone,
    but for those that an operator passes over."""
    key, placement, _ = partition
    gone = [
        Compare(LiveKey(node_id), ABSENT)
        for node_id in placement.isr
        if node_id != chosen and node_id not in passed_over
    ]
    led = placement._replace(
        leader=chosen,
        incarnation=nodes[chosen].incarnation,
        epoch=placement.epoch + 1,
        isr=(chosen,),
        lost=(*placement.lost, lost),
    )
    compares = (_known(partition), *_lives(nodes, chosen), Compare(ClusterKey(), cluster_revision), *gone)
    return Step(compares, (Put(key, led),))


def _election(partition: Partition, nodes: Nodes, me: int, cluster_revision: int) -> list[Compare | CompareGone]:
    """What every election compares. `cluster`, because nobody may elect while it says that all is halted."""
    placement = partition.placement
    compares = [_known(partition), *_lives(nodes, me), Compare(ClusterKey(), cluster_revision)]
    if placement.leader == NOBODY:
        return compares
    return [*compares, CompareGone(LiveKey(placement.leader), placement.incarnation)]


def _known(partition: Partition) -> Compare | CompareGone:
    return Compare(partition.key, partition.placement.revision)


def _lives(nodes: Nodes, *node_ids: int) -> list[Compare | CompareGone]:
    return [Compare(LiveKey(node_id), nodes[node_id].incarnation) for node_id in node_ids]


# -- what a leader does


def hand_over(partition: Partition, nodes: Nodes, target: int, *, leaves: bool = False) -> Step | None:
    """The leader gives its place to a member of the ISR, which must be at its end, in companions too: that is for the
    leader to see to. `leaves`: it stops soon, and leaves the ISR as long as enough are left, so that its heir waits for
    it with no write. None: it cannot be."""
    key, placement, _ = partition
    if target == placement.leader or target not in placement.isr or target not in nodes:
        return None
    isr = tuple(node_id for node_id in placement.isr if node_id != placement.leader) if leaves else placement.isr
    if len(isr) < partition.floor:
        isr = placement.isr
    led = placement._replace(leader=target, incarnation=nodes[target].incarnation, epoch=placement.epoch + 1, isr=isr)
    compares = (
        _known(partition),
        Compare(LiveKey(placement.leader), placement.incarnation),
        *_lives(nodes, target),
    )
    return Step(compares, (Put(key, led),))


def change_isr(partition: Partition, isr: Iterable[int], joining: Mapping[int, int]) -> Step | None:
    """The leader has seen who is in sync now. `joining`: those that were not, with the life in which they fetched: one
    that was started again since may have lost what it had. None: it would leave too few."""
    key, placement, _ = partition
    wanted = frozenset(isr)
    members = tuple(dict.fromkeys(node_id for node_id in (*placement.replicas, *sorted(wanted)) if node_id in wanted))
    shrinks = not set(placement.isr) <= set(members)
    if placement.leader not in members or (shrinks and len(members) < partition.floor):
        return None
    joiners = [Compare(LiveKey(node_id), joining[node_id]) for node_id in members if node_id not in placement.isr]
    compares = (_known(partition), Compare(LiveKey(placement.leader), placement.incarnation), *joiners)
    return Step(compares, (Put(key, placement._replace(isr=members)),))


def write_again(partition: Partition) -> Step:
    """The same once more. Its revision moves, so that a request whose answer was lost, and that may still arrive, finds
    its compare broken."""
    key, placement, _ = partition
    compares = (_known(partition), Compare(LiveKey(placement.leader), placement.incarnation))
    return Step(compares, (Put(key, placement),))


# -- many at once


def together(steps: Sequence[Step]) -> list[list[Step]]:
    """Which of them go into one transaction: what they compare in common is compared once."""
    rounds: list[list[Step]] = []
    compares: dict[Compare | CompareGone, None] = {}
    puts = 0
    for step in steps:
        new = [compare for compare in step.compares if compare not in compares]
        if not rounds or puts + len(step.puts) > PUTS_AT_ONCE or len(compares) + len(new) > COMPARES_AT_ONCE:
            rounds.append([])
            compares, puts = {}, 0
        rounds[-1].append(step)
        compares.update(dict.fromkeys(step.compares))
        puts += len(step.puts)
    return rounds


def joined(steps: Iterable[Step]) -> Step:
    """All of them or none."""
    steps = list(steps)
    compares = dict.fromkeys(compare for step in steps for compare in step.compares)
    return Step(tuple(compares), tuple(put for step in steps for put in step.puts))
