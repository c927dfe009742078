"""What a node does with its copy: it stands for election, leads and keeps the ISR, or follows. The decisions are those
of `goqueue.machines`; here they are only carried out."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from goqueue.cluster.copies import CopyId
from goqueue.cluster.followed import Followed
from goqueue.machines.cluster import steward
from goqueue.machines.cluster.election import Partition, change_isr, elect, hand_over, stand_after_ms, write_again
from goqueue.machines.partitions.replication import BeginAnew, Diverged, Records, Unheard, Verdict
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.metadata import ClusterKey, Committed, Conflict, Step
from goqueue.model.placements import Placement
from goqueue.replica.replica import Replica
from goqueue.replica.roles import Fetched, Following, Leading, Reign
from goqueue.runtime.clock import Timer
from goqueue.wire.kafka.messages.fetch import EpochEndOffset, FetchedPartition
from tests.sim.cluster.sim_node import Life

FETCH_BYTES = 3000
PARKED_MS = 500
FETCH_MS_MAX = 1500
ISR_MS = 200


class Asked(NamedTuple):
    """A fetch, on its way."""

    connection: tuple[int, int, int]
    """Node, life and number: whoever gets no answer opens another one."""
    number: int
    fetched: Fetched
    high_watermark: int


class Answer(NamedTuple):
    asked: Asked
    said: FetchedPartition


class NoCompanions:
    """`cluster.followed.CompanionMaker`."""

    def make_companions(self, host: Replica, kinds: int) -> list[Replica]:
        raise NotImplementedError


def put(verdict: Verdict, bound: int) -> FetchedPartition:
    """A verdict without records, as a leader puts it on the wire."""
    match verdict:
        case Diverged():
            return FetchedPartition(diverging_epoch=EpochEndOffset(verdict.epoch, verdict.end))
        case BeginAnew():
            code = Code.OFFSET_OUT_OF_RANGE
            return FetchedPartition(error_code=code, log_start_offset=verdict.start, gq_tombstones_gone_to=bound)
        case _:
            return FetchedPartition(error_code=Code.FENCED_LEADER_EPOCH)


class DutifulLife(Life):
    _connections = 0
    _number = 0
    _followed: Followed | None = None
    _outstanding: Asked | None = None
    _standing: Timer | None = None
    _is_keeping = False
    _isr_is_asked = False
    _stood_at = 0

    def begin(self) -> None:
        self._answered: dict[tuple[int, int, int], int] = {}
        """When the last fetch on a connection was answered: the next was not sent before that."""
        self._parked: dict[tuple[int, int, int], Callable[[], None]] = {}
        super().begin()

    # -- roles

    def look(self) -> None:
        placement, replica = self.placement, self.replica
        if placement is None or replica is None or not self.incarnation:
            return
        if (placement.leader, placement.incarnation) == (self.node.node_id, self.incarnation):
            if placement.epoch > replica.leader_epoch:
                self._stop_following()
                self.lead(placement)
            elif self.leading is not None and self.leading.epoch == placement.epoch:
                self.leading.view.on_placement(placement.isr, placement.revision)
                self._advance()
        elif placement.epoch > replica.leader_epoch:
            self._stop_following()
            replica.follow(placement.epoch, placement.leader)
            self.on_follow()
        self._follow()
        self._stand()
        self._do_chores(placement)

    def lead(self, placement: Placement) -> None:
        assert self.replica is not None
        self.replica.lead(
            Reign(placement.epoch, self.node.node_id, placement.isr, len(placement.replicas)),
        )
        assert self.leading is not None
        self.leading.view.on_placement(placement.isr, placement.revision)
        self._isr_is_asked = False
        self.replica.watch_end(self, self._answer_parked)
        if not self._is_keeping:
            self._is_keeping = True
            self.after(ISR_MS, self._keep_isr)

    def on_follow(self) -> None:
        """A new leader is followed."""

    def on_session_lost(self) -> None:
        self._stop_following()

    def _advance(self) -> None:
        """The watermark may rise, since the ISR has changed."""
        role = self.leading
        if self.replica is not None and role is not None:
            self.replica.set_isr(role.view.isr, role.view.revision)

    # -- elections

    def _stand(self) -> None:
        if self._standing is not None:
            self._standing.cancel()
            self._standing = None
        placement, replica = self.placement, self.replica
        if placement is None or replica is None or not self.incarnation:
            return
        delay_ms = stand_after_ms(placement, self.nodes, self.node.node_id, is_doubtful=replica.is_doubtful)
        if delay_ms is not None:
            again_ms = 400 if self._stood_at == placement.revision else 0
            self._standing = self.after(delay_ms + again_ms, self._elect)

    def _elect(self) -> None:
        """A fetch speaks for this copy: it stops fetching before it stands."""
        placement = self.placement
        assert placement is not None
        nodes = self.nodes
        cluster = self.known.get(ClusterKey())
        if not self.incarnation or self.node.node_id not in nodes or cluster is None:
            return
        if nodes[self.node.node_id].incarnation != self.incarnation:
            return
        self._stop_following()
        self._stood_at = placement.revision
        step = elect(self._partition(placement), nodes, self.node.node_id, cluster.revision)
        self.txn(step, lambda outcome: self.look())

    def txn(self, step: Step, on_done: Callable[[Committed | Conflict | GoQueueError], None]) -> None:
        self.store.txn(step, self.guard(on_done))

    def _partition(self, placement: Placement) -> Partition:
        return Partition(self.node.world.key, placement, self.node.world.minimum)

    def _do_chores(self, placement: Placement) -> None:
        """Of the steward: here only the end of a reassignment."""
        if not steward.is_steward(self.nodes, self.node.node_id):
            return
        step = steward.finish_reassignment(self._partition(placement))
        if step is not None and self._stood_at != -placement.revision:
            self._stood_at = -placement.revision
            self.txn(step, lambda outcome: None)

    # -- the ISR

    def _keep_isr(self) -> None:
        role, placement = self.leading, self.placement
        if role is None:
            self._is_keeping = False
            return
        self.after(ISR_MS, self._keep_isr)
        if placement is None or placement.epoch != role.epoch or self._isr_is_asked:
            return
        if role.view.is_unsure:
            self._ask_isr(role, write_again(self._partition(placement)))
            return
        living = {node_id: node.incarnation for node_id, node in self.nodes.items()}
        wanted = role.view.proposal(self.now_ms(), living, placement.replicas, role.start_offset)
        step = change_isr(self._partition(placement), wanted.isr, wanted.joining) if wanted is not None else None
        if wanted is not None and step is not None:
            role.view.propose(wanted.isr)
            self._advance()
            self._ask_isr(role, step)
        elif not role.view.pending_isr:
            self._hand_over(role, placement)

    def _hand_over(self, role: Leading, placement: Placement) -> None:
        """To whoever is to lead instead, once it has all that is here."""
        assert self.replica is not None
        target = steward.heir_of_removed(placement, self.nodes) or steward.preferred(placement, self.nodes)
        noted = role.view.noted(target) if target is not None else None
        if target is None or noted is None or noted.offset < self.replica.end_offset:
            return
        step = hand_over(self._partition(placement), self.nodes, target)
        if step is not None and self.node.world.dice.random() < 0.2:
            self.txn(step, lambda outcome: None)

    def _ask_isr(self, role: Leading, step: Step) -> None:
        self._isr_is_asked = True
        self.txn(step, partial(self._isr_answered, role))

    def _isr_answered(self, role: Leading, outcome: Committed | Conflict | GoQueueError) -> None:
        if self.leading is not role:
            return
        self._isr_is_asked = False
        if isinstance(outcome, Conflict):
            role.view.on_refused()
        elif isinstance(outcome, GoQueueError):
            role.view.on_unsure()
            self.reread(role)
        self.look()
        self._advance()

    def reread(self, role: Leading) -> None:
        """What there is now may be what there was, and the request may still arrive."""

        def found(event: object) -> None:
            value = getattr(event, "value", None)
            if isinstance(value, Placement) and self.leading is role and value.epoch == role.epoch:
                role.view.on_placement(value.isr, value.revision)
                self._advance()

        self.store.read(self.node.world.key, self.guard(found))

    # -- leading

    def on_hello(self, connection: tuple[int, int, int]) -> None:
        self._answered[connection] = self.now_ms()
        self.send(connection[0], lambda life: life.on_welcome(connection))

    def on_fetch(self, asked: Asked) -> None:
        replica, fetched = self.replica, asked.fetched
        known = self.nodes.get(fetched.follower)
        if replica is None or asked.connection not in self._answered:
            return  # another life of this node was connected
        if not self.knows_life(fetched, known.incarnation if known is not None else 0):
            self._answer(asked, put(Unheard(), 0))
            return
        fetched = fetched._replace(sent_ms=self._answered[asked.connection])
        verdict = replica.heard(fetched, self.now_ms())
        role = self.leading
        if role is None or not isinstance(verdict, Records):
            self._answer(asked, put(verdict, replica.log.state.tombstones_to))
            return
        if replica.end_offset > fetched.offset or replica.high_watermark > asked.high_watermark:
            self._answer_records(asked, role)
            return
        answer = self.guard(partial(self._answer_records, asked, role))
        self._parked[asked.connection] = answer
        self.after(PARKED_MS, lambda: answer() if self._parked.get(asked.connection) is answer else None)

    def knows_life(self, fetched: Fetched, incarnation: int) -> bool:
        return fetched.incarnation == incarnation

    def _answer_parked(self) -> None:
        parked, self._parked = self._parked, {}
        for answer in parked.values():
            self.clock.call_soon(answer)

    def _answer_records(self, asked: Asked, role: Leading) -> None:
        self._parked.pop(asked.connection, None)
        replica = self.replica
        assert replica is not None
        if replica.role is not role or replica.log.failure is not None:
            self._answer(asked, put(Unheard(), 0))
            return
        found = replica.log.read(asked.fetched.offset, FETCH_BYTES)
        is_whole = role.view.may_join(asked.fetched.follower, role.start_offset, (), asked.fetched.incarnation)
        said = FetchedPartition(
            high_watermark=replica.high_watermark,
            log_start_offset=replica.start_offset,
            records=memoryview(bytearray(found.read())) if found is not None else b"",
            gq_whole=is_whole,
        )
        self._answer(asked, said)

    def _answer(self, asked: Asked, said: FetchedPartition) -> None:
        self._answered[asked.connection] = self.now_ms()
        self.send(asked.connection[0], lambda life: life.on_answer(Answer(asked, said)))

    def send(self, node_id: int, call: "Callable[[DutifulLife], None]") -> None:
        self.node.world.send(self.node.node_id, node_id, call)

    # -- following: `cluster.followed` does it, and this is its `Link`

    def _stop_following(self) -> None:
        self._followed = self._outstanding = None

    def _follow(self) -> None:
        replica, placement = self.replica, self.placement
        assert replica is not None
        assert placement is not None
        role = replica.role
        if self._followed is not None or not isinstance(role, Following) or role.leader < 0:
            return
        if role.epoch != placement.epoch or role.leader not in self.nodes:
            return
        if self._stood_at == placement.revision:
            return
        key = self.node.world.key
        followed = Followed(CopyId(key.topic_id, key.number), replica, role, NoCompanions(), self)
        role.on_synced = self.guard(followed.on_synced)
        self._followed = followed
        self._connect(followed)

    def name(self, followed: Followed) -> None:
        self._fetch(followed)

    def name_later(self, followed: Followed, delay_ms: int) -> None:
        self.after(delay_ms, lambda: self._fetch(followed))

    def remove(self, copy: CopyId) -> None:
        self._stop_following()

    def adopt(self, replica: Replica) -> None:
        raise NotImplementedError

    def _connect(self, followed: Followed) -> None:
        if self._followed is followed:
            self._connections += 1
            self._outstanding = None
            connection = (self.node.node_id, self.number, self._connections)
            self.send(followed.role.leader, lambda life: life.on_hello(connection))
            self.after(FETCH_MS_MAX, lambda: self._connect(followed) if self._is_silent(followed, connection) else None)

    def _is_silent(self, followed: Followed, connection: tuple[int, int, int]) -> bool:
        return self._followed is followed and connection[2] == self._connections and self._outstanding is None

    def on_welcome(self, connection: tuple[int, int, int]) -> None:
        if connection == (self.node.node_id, self.number, self._connections) and self._followed is not None:
            self._fetch(self._followed)

    def _fetch(self, followed: Followed) -> None:
        replica = self.replica
        assert replica is not None
        if self._followed is not followed or not followed.is_current or self._outstanding is not None:
            return
        wanted = followed.request()
        if wanted is None:
            return  # when it is synced
        self._number += 1
        connection = (self.node.node_id, self.number, self._connections)
        fetched = Fetched(
            self.node.node_id,
            self.incarnation,
            wanted.current_leader_epoch,
            wanted.fetch_offset,
            wanted.last_fetched_epoch,
            wanted.gq_tombstones_told,
            0,
        )
        asked = self._outstanding = Asked(connection, self._number, fetched, replica.high_watermark)
        self.send(followed.role.leader, lambda life: life.on_fetch(asked))
        self.after(FETCH_MS_MAX, lambda: self._connect(followed) if self._outstanding is asked else None)

    def on_answer(self, answer: Answer) -> None:
        followed, replica = self._followed, self.replica
        if self._outstanding is not answer.asked or followed is None or replica is None or not followed.is_current:
            return
        self._outstanding = None
        if answer.said.gq_whole:
            self.node.is_wiped = False
        followed.take(answer.said, self.clock.now_ms())
        if not answer.said.error_code:
            self._fetch(followed)
