"""Who is in sync, as the leaders here see it, brought into the metadata: who has caught up joins, who has fallen behind
or is dead leaves, and nothing counts before the store has confirmed it.

A proposal holds the high watermark back from the moment it is made, since it may be in force at once. If its answer is
lost it may come into force at any later time: the key is written again until its revision has moved.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from goqueue.cluster.copies import Copies, id_of
from goqueue.cluster.store import Store
from goqueue.machines.cluster.election import Partition, change_isr, hand_over, joined, together, write_again
from goqueue.machines.partitions.replication import LAG_MS_MAX, Proposal
from goqueue.model.again import Again
from goqueue.model.errors import LogPoisoned
from goqueue.model.metadata import Committed, Conflict, PartitionKey, Step
from goqueue.model.placements import Placement
from goqueue.model.topics import Image
from goqueue.replica.replica import Replica
from goqueue.replica.roles import Leading
from goqueue.runtime.clock import Clock, Timer
from goqueue.telemetry.logs import get_logger

LOOK_MS = 1000
GATHER_MS = 50
"""Many copies catch up at the same time: they join together."""
AGAIN_MS = 1000
AT_ONCE_MAX = 8
PER_TURN = 120
"""Two transactions."""
LEFT_PER_TURN = 120
"""Whole transactions: each makes a new image on all nodes."""
LEFT_MS = 250
"""Between two turns in which a node that stops leaves ISRs."""
LEFT_TURNS_MAX = 12
"""It is there for some seconds more: by then nothing is to wait for it, however much there is."""

events = get_logger("replication")


class Proposed(NamedTuple):
    replica: Replica
    role: Leading
    step: Step
    isr: tuple[int, ...]

    @property
    def is_current(self) -> bool:
        return self.replica.role is self.role


class IsrKeeper:
    """`start`, tell it of candidates and of every new image, `stop`."""

    def __init__(
        self, copies: Copies, image: Callable[[], Image], store: Store, clock: Clock, lag_ms_max: int = LAG_MS_MAX
    ) -> None:
        self._copies = copies
        self._image = image
        self._store = store
        self._clock = clock
        self._lag_ms_max = lag_ms_max
        self._due: dict[Replica, None] = {}
        self._rounds: list[list[Proposed]] = []
        """Transactions that wait for others to be answered."""
        self._under_way = 0
        self._looking: Timer | None = None
        self._gathering: Timer | None = None
        self._seen = Image()
        self._leaving: dict[int, int] = {}
        """Followers that have said that they stop soon, each in which life."""
        self._handing_over: dict[int, int] = {}
        """Those of them that lead something still."""
        self._left: dict[Replica, None] = {}
        """To be looked at because of those that do not: bit by bit, since no write waits for it. Until it is the turn
        of one, those stay in its ISR."""
        self._left_per_turn = LEFT_PER_TURN
        self._leaving_timer: Timer | None = None
        self._is_stopped = False
        self.changes = 0
        """Proposals that were confirmed."""

    def start(self) -> None:
        self._looking = self._clock.call_after(LOOK_MS, self._look)

    def stop(self) -> None:
        self._is_stopped = True
        for timer in (self._looking, self._gathering, self._leaving_timer):
            if timer is not None:
                timer.cancel()

    # -- what is looked at

    def candidate(self, replica: Replica, _follower: int) -> None:
        """A follower has caught up, with the partition or a companion of it."""
        host = self._copies.host_of(id_of(replica))
        if host is not None:
            self._due[host] = None
            self._gather_soon()

    def leaving(self, follower: int, incarnation: int) -> None:
        """It stops soon: it leaves while it still follows, where the floor allows, and nobody waits for it then. First
        it hands over what it leads, for which clients wait."""
        if self._leaving.get(follower) != incarnation:
            self._leaving[follower] = incarnation
            self._handing_over[follower] = incarnation
            self._look_who_has_handed_over()

    def _look_who_has_handed_over(self) -> None:
        image = self._image()
        for node_id in [one for one, life in self._handing_over.items() if not _has_to_hand_over(image, one, life)]:
            del self._handing_over[node_id]
            self._left = dict.fromkeys(self._leading())
            self._left_per_turn = max(LEFT_PER_TURN, -(-len(self._left) // LEFT_TURNS_MAX))
            self._let_some_leave()

    def _let_some_leave(self) -> None:
        if self._leaving_timer is not None:
            self._leaving_timer.cancel()
            self._leaving_timer = None
        for host in list(self._left)[: self._left_per_turn]:
            self._due[host] = self._left.pop(host)
        self._gather_soon()
        if self._left and not self._is_stopped:
            self._leaving_timer = self._clock.call_after(LEFT_MS, self._let_some_leave)

    def image_changed(self) -> None:
        """Copies have taken their roles and their ISRs by then."""
        before, image = self._seen, self._image()
        self._seen = image
        is_somebody_gone = not before.nodes.keys() <= image.nodes.keys()
        if before.nodes is not image.nodes:
            self._due.update(dict.fromkeys(self._leading()))
        for place in image.placed_anew(before):
            host = self._copies.at(place)
            if host is not None and isinstance(host.role, Leading):
                self._forget_removed(host, image)
                for companion in self._copies.companions_of(host):
                    companion.copy_isr(host)
        if self._handing_over:
            self._look_who_has_handed_over()
        if self._due:
            self._gather_soon(0 if is_somebody_gone else GATHER_MS)  # writes wait for whoever is gone

    def _forget_removed(self, host: Replica, image: Image) -> None:
        """Nodes that have no copy any more: if they get another one, it begins empty."""
        placement = image.placement(*host.place)
        for one in (host, *self._copies.companions_of(host)):
            role = one.role
            if isinstance(role, Leading) and role.epoch == placement.epoch:
                for follower in [f for f in role.hears if f not in placement.replicas and f not in placement.adding]:
                    del role.hears[follower]
                    role.view.forget(follower)

    def _leading(self) -> list[Replica]:
        return [host for host in self._copies.hosts() if isinstance(host.role, Leading)]

    def _look(self) -> None:
        """At all that is led here, in slices."""
        self._looking = self._clock.call_after(LOOK_MS, self._look)
        rest, found = self._leading(), list[Proposed]()

        def some(again: Again) -> None:
            now_ms = self._now_ms()
            for host in rest[:PER_TURN]:
                for one in self.copies_of(host):
                    one.copy_isr(host)
                    one.look_who_is_heard(now_ms)
                    if isinstance(one.role, Leading):
                        one.role.look_at_end(one.end_offset)
                if (proposed := self._propose(host)) is not None:
                    found.append(proposed)
            del rest[:PER_TURN]
            if rest and not self._is_stopped:
                self._clock.call_soon(again)
            else:
                self._begin(found)

        Again(some)()

    def _gather_soon(self, delay_ms: int = GATHER_MS) -> None:
        if self._gathering is not None and delay_ms < GATHER_MS:
            self._gathering.cancel()
            self._gathering = None
        if self._gathering is None and not self._is_stopped:
            self._gathering = self._clock.call_after(delay_ms, self._gather)

    def _gather(self) -> None:
        """Some of what is due: where a node is gone it is all that is led here, and others want to be served."""
        if self._gathering is not None:
            self._gathering.cancel()
            self._gathering = None
        some = list(self._due)[:PER_TURN]
        for host in some:
            del self._due[host]
        self._begin([proposed for host in some if (proposed := self._propose(host)) is not None])
        if self._due:
            self._gather_soon(0)

    def _begin(self, found: Sequence[Proposed]) -> None:
        by_step = {proposed.step: proposed for proposed in found}
        for steps in together([proposed.step for proposed in found]):
            self._rounds.append([by_step[step] for step in steps])
        self._send()

    # -- proposing

    def _propose(self, host: Replica) -> Proposed | None:
        role = host.role
        if self._is_stopped or not isinstance(role, Leading):
            return None
        placement = self._image().placement(*host.place)
        view = role.view
        if placement.leader != view.me or placement.epoch != role.epoch or placement.revision != view.revision:
            return None  # the image is about another reign, or this copy has not heard of it yet
        if self._gives_up(host, role, placement):
            return None
        proposal = self._wanted(host, role, placement)
        if proposal is None:
            return None
        step = change_isr(self._partition(host, placement), proposal.isr, proposal.joining)
        if step is None:
            return None
        view.propose(proposal.isr)
        for companion in self._copies.companions_of(host):
            companion.copy_isr(host)
        return Proposed(host, role, step, proposal.isr)

    def _wanted(self, host: Replica, role: Leading, placement: Placement) -> Proposal | None:
        """A member that lags behind in a companion lags behind in the partition."""
        now_ms, view = self._now_ms(), role.view
        role.hear_again(host, now_ms)
        nodes = {
            node_id: node.incarnation
            for node_id, node in self._image().nodes.items()
            if self._leaving.get(node_id) != node.incarnation
            or ((node_id in self._handing_over or host in self._left) and node_id in view.isr)  # it leaves later
        }
        companions = []
        for one in self._copies.companions_of(host):
            if isinstance(one.role, Leading) and one.role.epoch == role.epoch:
                one.role.hear_again(one, now_ms)
                companions.append(one.role)
        parts = [(one.view, one.start_offset) for one in companions]
        replicas = (*placement.replicas, *placement.adding)
        proposal = view.proposal(now_ms, nodes, replicas, role.start_offset, parts, self._lag_ms_max)
        lagging: dict[int, None] = {}
        for led in companions:
            theirs = led.view.proposal(now_ms, nodes, (), led.start_offset, (), self._lag_ms_max)
            if theirs is not None:
                lagging.update(dict.fromkeys(sorted(view.isr - frozenset(theirs.isr))))
        if not lagging or view.pending_isr or view.is_unsure:
            return proposal
        members = list(proposal.isr if proposal is not None else sorted(view.isr))
        for member in lagging:
            if member in members and len(members) > max(1, view.minimum):
                members.remove(member)
        joining = proposal.joining if proposal is not None else {}
        return Proposal(tuple(members), joining) if frozenset(members) != view.isr else None

    def _partition(self, host: Replica, placement: Placement) -> Partition:
        return Partition(PartitionKey(*id_of(host)), placement, host.options.min_insync_replicas)

    def _send(self) -> None:
        while self._rounds and self._under_way < AT_ONCE_MAX and not self._is_stopped:
            proposed = self._rounds.pop(0)
            self._under_way += 1
            self._store.txn(joined([one.step for one in proposed]), partial(self._done, proposed))

    def _done(self, proposed: Sequence[Proposed], outcome: object) -> None:
        self._under_way -= 1
        current = [one for one in proposed if one.is_current]
        if isinstance(outcome, Committed):
            self.changes += len(proposed)
            first = proposed[0]  # one line for all: there are hundreds when a node comes or goes
            events.info(
                "in-sync replicas changed", partitions=len(proposed), first=first.replica.name, isr=list(first.isr)
            )
        elif isinstance(outcome, Conflict):
            if len(proposed) > 1:
                self._rounds += [[one] for one in current]
            else:
                self._refused(current)
        else:
            for one in current:
                one.role.view.on_unsure()
                self._clock.call_after(AGAIN_MS, partial(self._write_again, one.replica, one.role))
        self._send()

    def _refused(self, current: Sequence[Proposed]) -> None:
        for one in current:
            one.role.view.on_refused()
            for companion in self._copies.companions_of(one.replica):
                companion.copy_isr(one.replica)

    def _write_again(self, host: Replica, role: Leading) -> None:
        """Until the revision has moved, what was asked for may still be done."""
        placement = self._image().placement(*host.place)
        if self._is_stopped or host.role is not role or not role.view.is_unsure:
            return
        if placement.revision != role.view.revision or placement.epoch != role.epoch:
            return

        def done(_outcome: object) -> None:
            if role.view.is_unsure:
                self._clock.call_after(AGAIN_MS, partial(self._write_again, host, role))

        self._store.txn(write_again(self._partition(host, placement)), done)

    # -- giving a place up

    def is_at_end(self, host: Replica, follower: int) -> bool:
        """A member of the ISR that has all that the leader has, in the companions too."""
        role = host.role
        if not isinstance(role, Leading) or follower not in role.view.isr:
            return False
        return all(_is_at_end(one, follower) for one in self.copies_of(host))

    def is_settled(self, host: Replica) -> bool:
        """All members have: nobody waits for an acknowledgement any more."""
        return all(one.high_watermark >= one.end_offset for one in self.copies_of(host))

    def is_busy(self, host: Replica) -> bool:
        """Something was appended lately."""
        return any(isinstance(one.role, Leading) and one.role.is_busy(one.end_offset) for one in self.copies_of(host))

    def copies_of(self, host: Replica) -> list[Replica]:
        """The partition and its companions."""
        return [host, *self._copies.companions_of(host)]

    def _gives_up(self, host: Replica, role: Leading, placement: Placement) -> bool:
        if isinstance(host.log.failure, LogPoisoned):
            self._give_up(host, role, placement)
            return True
        return bool(host.log.damaged_batches) and self._give_away(host, placement)

    def _give_up(self, host: Replica, role: Leading, placement: Placement) -> None:
        """Its log has failed: whoever is in sync has all that was acknowledged, and goes on."""
        nodes = self._image().nodes
        for target in placement.replicas:
            noted = role.view.noted(target)
            if target == placement.leader or noted is None or noted.offset < host.high_watermark:
                continue
            step = hand_over(self._partition(host, placement), nodes, target)
            if step is not None:
                events.warning("a failed log is handed over", copy=host.name, to=target)
                self._store.txn(step, lambda outcome: None)
                return

    def _give_away(self, host: Replica, placement: Placement) -> bool:
        """A part of its log is damaged: somebody who has all of it goes on, and this copy is made anew from that one.
        False: there is nobody, and what can be read is served."""
        nodes = self._image().nodes
        for target in placement.replicas:
            if target == placement.leader or not self.is_at_end(host, target):
                continue
            step = hand_over(self._partition(host, placement), nodes, target)
            if step is not None:
                events.warning("a damaged log is handed over", copy=host.name, to=target)
                self._store.txn(step, lambda outcome: None)
                return True
        return False

    def _now_ms(self) -> int:
        return int(self._clock.monotonic_s() * 1000)


def _is_at_end(replica: Replica, follower: int) -> bool:
    role = replica.role
    noted = role.view.noted(follower) if isinstance(role, Leading) else None
    return noted is not None and noted.offset >= replica.end_offset


def _has_to_hand_over(image: Image, node_id: int, incarnation: int) -> bool:
    """It leads something, in this life, that another node could lead."""
    return any(
        one.leader == node_id and one.incarnation == incarnation and _has_heir(one, image)
        for topics in (image.ledgers, image.topics)
        for topic in topics.values()
        for one in topic.placements
    )


def _has_heir(placement: Placement, image: Image) -> bool:
    return any(one in image.nodes for one in placement.isr if one != placement.leader)
