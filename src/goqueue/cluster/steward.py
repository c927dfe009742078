"""What is to be done in a cluster and is not urgent: the living node with the lowest number does it. Nobody elects it,
and two of them do no harm: every step compares what it was decided from.
"""

from collections.abc import Iterator, Mapping

from goqueue.cluster.changes import Change
from goqueue.cluster.controller import ClusterController
from goqueue.cluster.mirror import FACTOR_WITHOUT_A_WISH, Mirror
from goqueue.machines.cluster.election import Partition, joined
from goqueue.machines.cluster.placement import TooFewNodes, grown, hosts, replaced
from goqueue.machines.cluster.steward import finish_reassignment, is_steward, reassign
from goqueue.model.metadata import (
    Committed,
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
from goqueue.model.names import LEDGER_PREFIX
from goqueue.model.placements import Placement
from goqueue.model.topics import minimum_in_sync
from goqueue.ports.dice import Dice, random_id
from goqueue.runtime.clock import Clock, Timer
from goqueue.telemetry.logs import get_logger

LOOK_MS = 2000
"""Beside every change of the metadata."""
GATHER_MS = 50
"""Changes come many at a time when a node is gone, and each look walks over all partitions. Nothing here is urgent."""
ABANDONED_MS = 5000
"""A topic that is being made for so long has lost whoever made it."""
OPERATIONS_MAX = 60
MOVES_AT_ONCE = 8
GONE_KEPT_MS = 30 * 24 * 3600 * 1000
"""A node that comes back later than this finds its logs of deleted topics put aside."""
GROUPS, TRANSACTIONS, SCHEMAS = "@groups", "@transactions", "@schemas"

events = get_logger("cluster")


class Steward:
    """Invariant: one thing is under way for a topic."""

    def __init__(
        self,
        controller: ClusterController,
        node_id: int,
        clock: Clock,
        dice: Dice,
        ledger_options: Mapping[str, str],
        default_factor: int,
        nodes_expected: int = 1,
    ) -> None:
        """`nodes_expected`: so many must be there before ledgers are made, so that each gets its part of them."""
        self._controller = controller
        self._mirror: Mirror = controller.mirror
        self._node_id = node_id
        self._clock = clock
        self._dice = dice
        self._ledger_options = ledger_options
        self._factor = default_factor or FACTOR_WITHOUT_A_WISH
        self._nodes_expected = nodes_expected
        self._under_way: dict[str, None] = {}
        self._seen_making: dict[bytes, float] = {}
        self._timer: Timer | None = None
        self._is_due = False
        self._is_stopped = False

    def start(self) -> None:
        self._controller.on_change.append(self._look_soon)
        self._look()

    def stop(self) -> None:
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()

    @property
    def is_on_duty(self) -> bool:
        return is_steward(self._mirror.nodes, self._node_id) and not self._is_stopped

    def _look_soon(self) -> None:
        if not self._is_due and self.is_on_duty:
            self._is_due = True
            self._clock.call_after(GATHER_MS, self._look)

    def _look(self) -> None:
        self._is_due = False
        if self._timer is not None:
            self._timer.cancel()
        if self._is_stopped:
            return
        self._timer = self._clock.call_after(LOOK_MS, self._look)
        if self.is_on_duty and not self._mirror.cluster.halted:
            for name, change in self._wanted():
                self._begin(name, change)

    def _begin(self, name: str, change: Change[object]) -> None:
        if name in self._under_way:
            change.close()
            return
        self._under_way[name] = None

        def done(_: object) -> None:
            self._under_way.pop(name, None)

        self._controller.run(change, done)

    def _wanted(self) -> Iterator[tuple[str, Change[object]]]:
        for name, partitions in self._ledgers():
            if self._mirror.topic(name) is None and len(self._mirror.nodes) >= self._nodes_expected:
                yield name, self._controller.changes.make_ledger(name, self._new_ledger(name, partitions))
        now_s = self._clock.monotonic_s()
        making: dict[bytes, float] = {}
        for name, topic in list(self._mirror.topics()):
            if topic.is_making:
                since_s = making[topic.topic_id] = self._seen_making.get(topic.topic_id, now_s)
                if (now_s - since_s) * 1000 >= ABANDONED_MS or name.startswith(LEDGER_PREFIX):
                    yield name, self._controller.changes.finish(name, topic.topic_id)
            elif topic.is_deleting:
                if self._is_removed(topic):
                    yield name, self._forget(name, topic)
            elif (steps := list(self._moved(name, topic)))[:1]:
                yield name, _one(joined(steps[:OPERATIONS_MAX]))
            elif name.startswith(LEDGER_PREFIX) and (step := self._grown(name, topic)) is not None:
                yield name, _one(step)
        self._seen_making = making
        if old := self._mirror.gone_before(self._clock.now_ms() - GONE_KEPT_MS):
            yield "", _one(Step((), tuple(Put(key, None) for key in old[:OPERATIONS_MAX])))

    # -- ledgers

    def _ledgers(self) -> tuple[tuple[str, int], ...]:
        cluster = self._mirror.cluster
        return (GROUPS, cluster.groups), (TRANSACTIONS, cluster.transactions), (SCHEMAS, 1)

    def _copies_of(self, name: str) -> int:
        members = len(self._mirror.members())
        return members if name == SCHEMAS else min(self._factor, members)

    def _new_ledger(self, name: str, partitions: int) -> TopicValue:
        copies = sum(1 for node in self._mirror.members() if node in self._mirror.nodes)
        factor = max(1, min(self._copies_of(name), copies))
        options = self._ledger_options
        return TopicValue(random_id(self._dice), partitions, options, is_making=True, replication_factor=factor)

    def _grown(self, name: str, topic: TopicValue) -> Step | None:
        """A ledger was made when there were fewer nodes: it gets more copies, and says so when they are in sync. Each
        partition gets another preferred leader, to which its leader hands over (`HandingOver`)."""
        wanted = self._copies_of(name)
        living = hosts(self._mirror.members(), self._mirror.nodes, 1)
        puts: list[tuple[PartitionKey, Placement, int]] = []
        in_sync = wanted
        for number, event in sorted(self._mirror.placements(topic.topic_id).items()):
            placed = event.value
            assert isinstance(placed, Placement)
            in_sync = min(in_sync, len(placed.isr))
            if len(placed.replicas) >= wanted or placed.adding or placed.removing:
                continue
            replicas = grown(topic.topic_id, number, living, wanted, placed.replicas)
            if len(replicas) > len(placed.replicas):
                puts.append((PartitionKey(topic.topic_id, number), placed._replace(replicas=replicas), event.revision))
        key = TopicKey(name)
        mine = Compare(key, self._mirror.revision_of(key))
        if puts:
            some = puts[:OPERATIONS_MAX]
            compares = (mine, *(Compare(each, revision) for each, _, revision in some))
            return Step(compares, tuple(Put(each, value) for each, value, _ in some))
        if in_sync > topic.replication_factor:
            return Step((mine,), (Put(key, topic._replace(replication_factor=in_sync)),))
        return None

    # -- moves

    def _moved(self, name: str, topic: TopicValue) -> Iterator[Step]:
        """Reassignments that can be ended; and those that empty a node that is to leave, a few at a time."""
        key = TopicKey(name)
        revision, least = self._mirror.revision_of(key), minimum_in_sync(topic.overrides, topic.replication_factor)
        nodes = hosts(self._mirror.members(), self._mirror.nodes, 1)
        leaving = self._mirror.leaving()
        under_way = 0
        for number, event in sorted(self._mirror.placements(topic.topic_id).items()):
            placed = event.value
            assert isinstance(placed, Placement)
            partition = Partition(PartitionKey(topic.topic_id, number), placed, least)
            if placed.adding or placed.removing:
                under_way += 1
                if (step := finish_reassignment(partition)) is not None:
                    yield step
                continue
            node = next((one for one in placed.replicas if one in leaving), None)
            if node is not None and under_way < MOVES_AT_ONCE:
                under_way += 1
                try:
                    wanted = replaced(placed.replicas, node, nodes, {})
                except TooFewNodes:
                    continue  # it stays until there is one
                yield reassign(partition, key, revision, wanted)

    # -- deletions

    def _is_removed(self, topic: TopicValue) -> bool:
        """By all living nodes that have copies: one that comes back later finds that the topic is gone."""
        placements = self._mirror.placements(topic.topic_id).values()
        holders = {node for event in placements for node in _holders(event.value)}
        return all(node in self._mirror.removed(topic.topic_id) for node in holders if node in self._mirror.nodes)

    def _forget(self, name: str, topic: TopicValue) -> Change[object]:
        """Its partitions first, a part at a time: the topic says that it is being deleted until the end."""
        key, topic_id = TopicKey(name), topic.topic_id
        while True:
            stored = self._mirror.topic(name)
            if stored is None or stored.topic_id != topic_id or not stored.is_deleting:
                return None
            mine = Compare(key, self._mirror.revision_of(key))
            parts = [Put(PartitionKey(topic_id, number), None) for number in self._mirror.placements(topic_id)]
            parts += [Put(RemovedKey(topic_id, node), None) for node in self._mirror.removed(topic_id)]
            if len(parts) <= OPERATIONS_MAX:
                gone = Put(GoneKey(topic_id), GoneValue(name, self._clock.now_ms()))
                outcome = yield Step((mine,), (*parts, Put(key, None), gone))
                if isinstance(outcome, Committed):
                    events.info("topic forgotten", topic=name)
            else:
                outcome = yield Step((mine,), tuple(parts[:OPERATIONS_MAX]))
            if not isinstance(outcome, Committed):
                return None  # looked at again


def _one(step: Step) -> Change[object]:
    yield step
    return None


def _holders(value: object) -> tuple[int, ...]:
    return (*value.replicas, *value.adding) if isinstance(value, Placement) else ()
