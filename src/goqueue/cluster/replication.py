"""All that brings records from leaders to followers, on one node: what it copies from others, what it gives to them,
and what it says of who is in sync.
"""

from collections.abc import Callable, Mapping

from goqueue.cluster.copies import Copies, id_of
from goqueue.cluster.copy_states import CopyStates
from goqueue.cluster.isr import IsrKeeper
from goqueue.cluster.leader_link import Myself
from goqueue.cluster.leader_links import LeaderLinks
from goqueue.cluster.peers import Peers
from goqueue.cluster.replica_fetch import ReplicaFetches
from goqueue.cluster.store import Store
from goqueue.cluster.throttle import Throttle
from goqueue.machines.partitions.replication import LAG_MS_MAX
from goqueue.model.kept_options import allows_unclean
from goqueue.model.placements import NodeInfo
from goqueue.model.topics import Image, Topic
from goqueue.ports.copying import Copying
from goqueue.ports.peers import PeerHandler
from goqueue.replica.companion_names import CompanionName
from goqueue.replica.replica import Replica
from goqueue.replica.replicas import Replicas
from goqueue.replica.roles import Leading
from goqueue.replica.standing import Standing
from goqueue.runtime.clock import Clock
from goqueue.wire.kafka.peering import COPIES, FETCH

CATCH_UP_BYTES_PER_S = 50_000_000


class Replication:
    """Made before copies are opened; `start` when the node has joined its cluster."""

    def __init__(
        self,
        replicas: Replicas,
        peers: Peers,
        image: Callable[[], Image],
        store: Store,
        clock: Clock,
        *,
        session_holds: Callable[[], bool],
        lag_ms_max: int = LAG_MS_MAX,
        catch_up_bytes_per_s: int = CATCH_UP_BYTES_PER_S,
    ) -> None:
        """`session_holds`: nobody can have taken this node's place."""
        self._replicas = replicas
        self._peers = peers
        self._image = image
        self._clock = clock
        self._session_holds = session_holds
        self.copies = Copies(replicas, clock)
        self._fetches = ReplicaFetches(self.copies, self._find, clock)
        self.throttle = Throttle(catch_up_bytes_per_s)
        self._links = LeaderLinks(peers.way, self._me, self.copies, clock, self.throttle, self._is_in_sync)
        self.states = CopyStates(replicas, peers, lambda: image().nodes)
        self.isr = IsrKeeper(self.copies, image, store, clock, lag_ms_max)
        self._fetches.on_candidate = self.isr.candidate
        self._fetches.on_leaving = self.isr.leaving
        self._leaves = False
        self._seen = Image()
        replicas.on_role.append(self.role_changed)

    @property
    def handlers(self) -> Mapping[int, PeerHandler]:
        """For the peer door."""
        return {FETCH: self._fetches.handle, COPIES: self.states.handle}

    def start(self) -> None:
        self.isr.start()

    def leave(self) -> None:
        """This node stops soon: leaders elsewhere take its copies out of the ISRs while these still follow, so that no
        write waits for them."""
        self._leaves = True

    def stop(self) -> None:
        """Nothing is copied, given or proposed any more."""
        self.isr.stop()
        self._links.close()
        self._fetches.close()

    # -- what it is told

    def role_changed(self, replica: Replica) -> None:
        """A copy was opened, or leads or follows in another epoch; companions too."""
        replica.freshness = self._is_fresh
        replica.needs_session = self._may_be_unclean(replica)
        self._links.role_changed(replica)
        companion = CompanionName.parse(*replica.place)
        if companion is not None and isinstance(replica.role, Leading):
            host = self.copies.host_of(id_of(replica))
            if host is not None:
                replica.copy_isr(host)  # with what is pending there
                self._fetches.companion_made(host)

    def image_changed(self) -> None:
        """After the copies have taken the roles and ISRs that it gives them."""
        before, self._seen = self._seen, self._image()
        if any(_has_other_options(topic, before.topics.get(name)) for name, topic in self._seen.topics.items()):
            self._look_at_options()
        if before.nodes is not self._seen.nodes:
            self._peers.nodes_changed()
        self.isr.image_changed()

    def _look_at_options(self) -> None:
        for replica in self.copies.hosts():
            may_be_unclean = self._may_be_unclean(replica)
            if replica.needs_session != may_be_unclean:
                for one in (replica, *self.copies.companions_of(replica)):
                    one.needs_session = may_be_unclean

    def withdraw(self, replica: Replica) -> None:
        """To be called before this node stands for election: none of its fetches speaks for the old leader any more,
        neither for the partition nor for its companions."""
        self._links.withdraw(replica)
        for companion in self.copies.companions_of(replica):
            self._links.withdraw(companion)

    def is_electable(self, replica: Replica) -> bool:
        """It lacks nothing that it is counted on to hold, as far as it can know."""
        return not any(one.is_doubtful for one in (replica, *self.copies.companions_of(replica)))

    # -- what it is asked

    def copying(self) -> Copying:
        """Numbers for those who look after the node."""
        lags: dict[int, int] = {}
        for replica in self.copies.hosts():
            role = replica.role
            if not isinstance(role, Leading):
                continue
            for follower in self._image().placement(*replica.place).replicas:
                if follower != role.view.me:
                    noted = role.view.noted(follower)
                    lag = replica.end_offset - (replica.start_offset if noted is None else noted.offset)
                    lags[follower] = max(lag, lags.get(follower, 0))
        return self._links.copying(lags)

    def _find(self, node_id: int) -> NodeInfo | None:
        return self._image().nodes.get(node_id)

    def _me(self) -> Myself:
        seat = self._replicas.seat
        return Myself(-1, 0) if seat is None else Myself(seat.node_id, seat.incarnation, self._leaves)

    def _is_fresh(self, replica: Standing) -> bool:
        if self._session_holds():
            return True
        return not replica.needs_session and replica.is_heard_fresh(int(self._clock.monotonic_s() * 1000))

    def _may_be_unclean(self, replica: Replica) -> bool:
        """Whether a leader may be elected that none of its ISR knows of, nor of its companions'."""
        host = self.copies.host_of(id_of(replica)) or replica
        topic = self._image().topics.get(host.place[0])
        return topic is not None and allows_unclean(topic.overrides)

    def _is_in_sync(self, replica: Replica) -> bool:
        host = self.copies.host_of(id_of(replica))
        return host is not None and self._me().node_id in self._image().placement(*host.place).isr


def _has_other_options(topic: Topic, before: Topic | None) -> bool:
    return topic is not before and (before is None or topic.has_other_options(before))
