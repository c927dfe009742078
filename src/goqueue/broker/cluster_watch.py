"""How the cluster is, as this node sees it: counts over the image, and what has changed from one image to the next.

Every node sees the same image, so every node answers the same; what has happened is told since this node started.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol

from goqueue.machines.cluster.recovery import Plan
from goqueue.machines.cluster.steward import steward_of
from goqueue.model.placements import NodeInfo, Placement
from goqueue.model.topics import Image, Topic, TopicsChange, minimum_in_sync
from goqueue.ports.copying import Copying
from goqueue.runtime.clock import Clock
from goqueue.runtime.standby import StandbyCounts

EVENTS_MAX = 1000
GONE_S = 10.0
"""How long a node that is gone is remembered: clients have heard by then who leads what it led."""

OnStood = Callable[[int | str], None]
"""The offset from which on records may be gone; or why it was not done."""
LeadUnclean = Callable[[str, int, str, OnStood], None]
"""Topic, partition, and who wants it for what reason."""


class Recovered(Protocol):
    """What the copies hold after etcd was restored from a backup, and with which of them it goes on."""

    @property
    def names(self) -> Mapping[bytes, str]:
        """Of topics, by their ids."""

    @property
    def halted(self) -> str:
        """Why all was halted."""

    @property
    def plan(self) -> Plan: ...

    @property
    def is_done(self) -> bool: ...


Recover = Callable[
    [tuple[bool, Sequence[int], Sequence[tuple[str, int, int]], str], Callable[[Recovered | str], None]], None
]
"""Whether it is a dry run, nodes that are given up, (topic, partition, node) that an operator chose, and the reason."""


class Happened(StrEnum):
    NODE_UP = "node_up"
    NODE_DOWN = "node_down"
    LEADER_CHANGED = "leader_changed"
    OFFLINE = "offline"
    UNCLEAN_ELECTION = "unclean_election"
    ISR_SHRUNK = "isr_shrunk"
    ISR_EXPANDED = "isr_expanded"


class ClusterEvent(NamedTuple):
    number: int
    """They are counted from the start of this node: who asks for those behind the last one misses none."""
    at_ms: int
    kind: Happened
    node_id: int | None
    topic: str | None
    partition: int | None
    message: str


class PartitionState(StrEnum):
    """The worst that is true of it."""

    ONLINE = "online"
    UNDER_REPLICATED = "under_replicated"
    UNDER_MIN_ISR = "under_min_isr"
    """Reads are served, writes with acks=all wait."""
    OFFLINE = "offline"


class Placed(NamedTuple):
    topic: Topic
    number: int
    placement: Placement
    state: PartitionState


class Counts(NamedTuple):
    nodes: int
    """Those that are alive, and those that should hold a copy of something and are not."""
    nodes_alive: int
    partitions: int
    offline: int
    under_min_isr: int
    under_replicated: int
    """Those without all of their copies in sync, whatever else is wrong with them."""
    not_preferred: int
    """Led by another node than the one that should."""


class ClusterWatch:
    """Told of every new image by `changed`."""

    def __init__(self, clock: Clock, node_id: int) -> None:
        self._clock = clock
        self.node_id = node_id
        self.image = Image()
        self.events: deque[ClusterEvent] = deque(maxlen=EVENTS_MAX)
        self.elections = 0
        """Changes of leaders that this node has seen, first leaders of new partitions not counted."""
        self.unclean_elections = 0
        self.isr_shrinks = 0
        self.isr_expands = 0
        self._numbers = 0
        self.session_holds: Callable[[], bool] = lambda: True
        """Whether etcd has heard of this node of late. A node that is its own cluster needs no session."""
        self.access_age_s: Callable[[], float] = lambda: 0.0
        """For how long changes of users, keys and rules have not been heard of, in a cluster."""
        self.lead_unclean: LeadUnclean = _refuse
        self.standbys: Callable[[], StandbyCounts] = StandbyCounts
        """Of this node. One that is its own cluster has none."""
        self.halted: Callable[[], str] = lambda: ""
        """Why nobody leads anything: etcd was restored from a backup, and an operator has to decide."""
        self.recover: Recover = lambda wish, on_done: on_done("this node is its own cluster: it has no etcd")
        self.metadata_faults: Callable[[], int] | None = None
        """Of the machine that decides about metadata; and what that could not take in. None: a coordinator has it."""
        self.metadata_skipped: Callable[[], int] | None = None
        self.copying: Callable[[], Copying] = Copying
        self.is_suspected: Callable[[NodeInfo], bool] = lambda node: False
        """Whether a node is most likely dead, though its session has not ended yet."""
        self.is_refusing: Callable[[NodeInfo], bool] = lambda node: False
        """Whether a node refuses connections: who tries it hears so at once, and does not wait for it."""
        self._gone: dict[int, tuple[NodeInfo, float]] = {}
        """As they were when they went, and until when they are remembered."""

    # -- how it is

    @property
    def controller(self) -> int:
        """The node that looks after what is not urgent; this one, while none is known to be alive."""
        steward = steward_of(self.image.nodes)
        return self.node_id if steward is None else steward

    @property
    def is_controller(self) -> bool:
        return self.controller == self.node_id

    def placed(self, topic: str | None = None) -> Iterator[Placed]:
        """The partitions of a topic, or of all: topics first, then the cluster's own ledgers."""
        image = self.image
        for each in [*image.topics.values(), *image.ledgers.values()]:
            if topic is None or each.name == topic:
                for number, placement in enumerate(each.placements):
                    yield Placed(each, number, placement, state_of(image, each, placement))

    def counts(self) -> Counts:
        states: Counter[PartitionState] = Counter()
        not_preferred = 0
        for _, _, placement, state in self.placed():
            states[state] += 1
            not_preferred += state is not PartitionState.OFFLINE and placement.leader != placement.replicas[0]
        broken = states.total() - states[PartitionState.ONLINE]
        offline, under_min = states[PartitionState.OFFLINE], states[PartitionState.UNDER_MIN_ISR]
        alive = len(self.image.nodes)
        return Counts(len(self.known_nodes()), alive, states.total(), offline, under_min, broken, not_preferred)

    def known_nodes(self) -> Sequence[int]:
        """Also those that are only known by what they should hold."""
        holders = {node for each in self.placed() for node in each.placement.replicas}
        return sorted(holders | self.image.nodes.keys())

    def held(self) -> Mapping[int, tuple[int, int]]:
        """Of each node: partitions that it leads, and copies that it has."""
        leaders: Counter[int] = Counter()
        copies: Counter[int] = Counter()
        for _, _, placement, state in self.placed():
            copies.update(placement.replicas)
            if state is not PartitionState.OFFLINE:
                leaders[placement.leader] += 1
        return {node: (leaders[node], copies[node]) for node in self.known_nodes()}

    def refusing_of_late(self) -> list[NodeInfo]:
        """Nodes that refuse connections, and are there still as the metadata says, or were some seconds ago."""
        now_s = self._clock.monotonic_s()
        self._gone = {number: each for number, each in self._gone.items() if now_s < each[1]}
        known = [*self.image.nodes.values(), *(node for node, _ in self._gone.values())]
        return [node for node in known if self.is_refusing(node)]

    # -- what has happened

    def changed(self, change: TopicsChange) -> None:
        before, self.image = change.before, change.image
        self._nodes(before.nodes, self.image.nodes)
        for name in sorted(change.names):
            topic, old = self.image.find(name), before.find(name)
            if topic is None or old is None or topic.id != old.id:
                continue
            for number in topic.placed_anew(old):
                if number < len(old.placements):
                    self._partition(name, number, old.placements[number], topic.placements[number])
        for node_id in before.nodes.keys() - self.image.nodes.keys():
            self._offline(node_id)

    def _nodes(self, before: Mapping[int, NodeInfo], now: Mapping[int, NodeInfo]) -> None:
        if before is now:
            return
        for node_id in sorted(before.keys() | now.keys()):
            was, becomes = before.get(node_id), now.get(node_id)
            if was is not None and (becomes is None or becomes.incarnation != was.incarnation):
                self._note(Happened.NODE_DOWN, f"node {node_id} is gone", node_id)
                self._gone[node_id] = was, self._clock.monotonic_s() + GONE_S
            if becomes is not None and (was is None or was.incarnation != becomes.incarnation):
                self._note(Happened.NODE_UP, f"node {node_id} is there", node_id)
                self._gone.pop(node_id, None)

    def _partition(self, topic: str, number: int, was: Placement, now: Placement) -> None:
        place = topic, number
        if len(now.lost) > len(was.lost):
            self.unclean_elections += 1
            lost = now.lost[-1]
            text = f"unclean election of {lost.leader}: records from {lost.offset} on may be gone"
            self._note(Happened.UNCLEAN_ELECTION, text, now.leader, *place)
        if now.epoch != was.epoch:
            self.elections += 1
            text = f"led by node {now.leader} in epoch {now.epoch}, before by {was.leader}"
            self._note(Happened.LEADER_CHANGED, text, now.leader, *place)
        gone, come = sorted(set(was.isr) - set(now.isr)), sorted(set(now.isr) - set(was.isr))
        if gone:
            self.isr_shrinks += 1
            self._note(Happened.ISR_SHRUNK, f"in sync: {_listed(now.isr)}, without {_listed(gone)}", None, *place)
        if come:
            self.isr_expands += 1
            self._note(Happened.ISR_EXPANDED, f"in sync: {_listed(now.isr)}, with {_listed(come)}", None, *place)

    def _offline(self, node_id: int) -> None:
        led = sum(1 for each in self.placed() if each.placement.leader == node_id)
        if led:
            self._note(Happened.OFFLINE, f"{led} partitions have no leader until others are elected", node_id)

    def _note(
        self, kind: Happened, message: str, node_id: int | None, topic: str | None = None, partition: int | None = None
    ) -> None:
        self._numbers += 1
        self.events.append(ClusterEvent(self._numbers, self._clock.now_ms(), kind, node_id, topic, partition, message))


def state_of(image: Image, topic: Topic, placement: Placement) -> PartitionState:
    leader = image.nodes.get(placement.leader)
    if leader is None or leader.incarnation != placement.incarnation:
        return PartitionState.OFFLINE
    if len(placement.isr) < minimum_in_sync(topic.overrides, topic.replication_factor):
        return PartitionState.UNDER_MIN_ISR
    if len(placement.isr) < len(placement.replicas):
        return PartitionState.UNDER_REPLICATED
    return PartitionState.ONLINE


def _refuse(topic: str, partition: int, why: str, on_done: OnStood) -> None:  # noqa: ARG001  as a cluster takes it
    on_done("this node is its own cluster: there is no other copy")


def _listed(nodes: Sequence[int]) -> str:
    return ", ".join(map(str, nodes))
