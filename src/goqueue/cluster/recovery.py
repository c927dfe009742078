"""After etcd was restored from a backup: an operator sees what the copies hold, says with which one each partition goes
on, and everything that was halted goes on.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from goqueue.cluster.changes import Change
from goqueue.cluster.controller import ClusterController
from goqueue.cluster.copy_states import CopyStates
from goqueue.cluster.mirror import Mirror
from goqueue.machines.cluster import recovery
from goqueue.machines.cluster.election import Partition, joined, together
from goqueue.machines.cluster.recovery import Held, Plan
from goqueue.model.metadata import ClusterKey, Committed, PartitionKey, ProducerIdsKey
from goqueue.model.placements import Placement
from goqueue.model.topics import minimum_in_sync
from goqueue.runtime.clock import Clock
from goqueue.telemetry.logs import get_logger

events = get_logger("cluster")

NOT_HALTED = "the cluster is not halted: there is nothing to recover from"
CHANGED = "something has changed meanwhile; look again"


class Wish(NamedTuple):
    """Of an operator."""

    is_dry_run: bool
    without: tuple[int, ...]
    """Nodes that will not come back, or whose copies are given up."""
    choices: tuple[tuple[str, int, int], ...]
    """Topic, partition and node: instead of what the rule would choose."""
    why: str


class Found(NamedTuple):
    """What was found, and whether it was done."""

    names: Mapping[bytes, str]
    """Of topics, by their ids."""
    halted: str
    plan: Plan
    is_done: bool


OnRecovered = Callable[["Found | str"], None]
"""Or why it was not done."""


class Recovery:
    def __init__(self, controller: ClusterController, states: CopyStates, clock: Clock) -> None:
        self._controller = controller
        self._mirror: Mirror = controller.mirror
        self._states = states
        self._clock = clock

    def recover(
        self, wish: tuple[bool, Sequence[int], Sequence[tuple[str, int, int]], str], on_done: OnRecovered
    ) -> None:
        is_dry_run, without, choices, why = wish
        wanted = Wish(is_dry_run, tuple(without), tuple(choices), why)
        if not self._mirror.cluster.halted:
            on_done(NOT_HALTED)
            return
        self._states.ask(lambda held: self._decide(wanted, held, on_done))

    def _decide(self, wish: Wish, held: Held, on_done: OnRecovered) -> None:
        cluster, names = self._mirror.cluster, {value.topic_id: name for name, value in self._mirror.topics()}
        ids = {name: topic_id for topic_id, name in names.items()}
        unknown = [topic for topic, _, _ in wish.choices if topic not in ids]
        if unknown:
            on_done(f"there is no topic {unknown[0]!r}")
            return
        choices = {PartitionKey(ids[topic], number): node_id for topic, number, node_id in wish.choices}
        if not cluster.halted:
            on_done(NOT_HALTED)
            return
        plan = recovery.plan(self._partitions(), held, self._controller.producer_ids_end, choices)
        found = Found(names, cluster.halted, plan, is_done=False)
        if wish.is_dry_run:
            on_done(found)
            return
        if absent := recovery.not_accounted_for(plan, wish.without):
            on_done(
                f"nodes {_listed(absent)} have not told what they hold, and may hold more than others: start them, or"
                " say that they are given up"
            )
            return

        def ended(reply: object) -> None:
            on_done(found._replace(is_done=True) if reply is True else CHANGED)

        self._controller.run(self._change(plan, wish.why or cluster.halted), ended)

    def _partitions(self) -> Iterator[Partition]:
        """Of all topics and ledgers."""
        for _, topic in self._mirror.topics():
            least = minimum_in_sync(topic.overrides, topic.replication_factor)
            for number, event in sorted(self._mirror.placements(topic.topic_id).items()):
                assert isinstance(event.value, Placement)
                yield Partition(PartitionKey(topic.topic_id, number), event.value, least)

    def _change(self, plan: Plan, why: str) -> Change[object]:
        """Partitions first: while one is left, all stays halted, and it can be done again."""
        nodes, mirror, now_ms = self._mirror.nodes, self._mirror, self._clock.now_ms()
        revision = mirror.revision_of(ClusterKey())
        if any(one.node_id not in nodes for one in plan.chosen):
            return False
        steps = [recovery.recover(one, nodes, revision, now_ms, why) for one in plan.chosen]
        for some in together(steps):
            outcome = yield joined(some)
            if not isinstance(outcome, Committed):
                return False
        ids = mirror.revision_of(ProducerIdsKey())
        outcome = yield recovery.go_on(mirror.cluster, revision, ids, plan.producer_ids_end)
        if isinstance(outcome, Committed):
            events.warning("recovered from a restored etcd", partitions=len(plan.chosen), left=len(plan.left))
        return isinstance(outcome, Committed)


def _listed(nodes: Collection[int]) -> str:
    return ", ".join(map(str, nodes))
