"""Fetch from other nodes: followers that copy what this node leads. They have proved that they are nodes; which life of
theirs it is that fetches is checked here, since an earlier one may have had another disk.
"""

from collections.abc import Callable
from itertools import count

from goqueue.cluster.copies import Copies, id_of
from goqueue.cluster.fetch_session import VERSION, FetchSession
from goqueue.model.codes import Code
from goqueue.model.placements import NodeInfo
from goqueue.ports.peers import PeerRequest
from goqueue.replica.replica import Replica
from goqueue.runtime.clock import Clock
from goqueue.wire.kafka.codec import decode, encode
from goqueue.wire.kafka.messages.fetch import FetchRequest, FetchResponse


class ReplicaFetches:
    """`handle` answers Fetch on the peer door."""

    def __init__(self, copies: Copies, find: Callable[[int], NodeInfo | None], clock: Clock) -> None:
        """`find`: a node that is alive, by its id."""
        self._copies = copies
        self._find = find
        self._clock = clock
        self._numbers = count(1)
        self._sessions: dict[tuple[int, bool], tuple[object, FetchSession]] = {}
        """With the connection of each: two for each follower, for copies near the end and for those that catch up."""
        self.on_candidate: Callable[[Replica, int], None] = lambda replica, follower: None
        """Called with a copy and a follower that is not in its ISR and might be."""
        self.on_leaving: Callable[[int, int], None] = lambda follower, incarnation: None
        """Called with a follower, in this life of it, that stops soon."""

    def handle(self, request: PeerRequest) -> None:
        # The copy of the body is the message's own: a parked fetch outlives the memory it came in.
        message, _ = decode(FetchRequest, VERSION, bytes(request.body))
        state = message.replica_state
        node = self._find(request.node_id)
        is_known = state is not None and node is not None and state.replica_id == request.node_id
        if not is_known or state is None or node is None or state.replica_epoch != node.incarnation:
            _refuse(request, Code.STALE_BROKER_EPOCH)
            return
        if message.gq_leaves:
            self.on_leaving(request.node_id, node.incarnation)
        key = request.node_id, message.gq_catches_up
        connection, session = self._sessions.get(key, (None, None))
        if message.session_id == 0:
            if session is not None:
                session.close()
            session = FetchSession(
                next(self._numbers),
                request.node_id,
                node.incarnation,
                self._copies,
                self._clock,
                self._tell_candidate,
            )
            self._sessions[key] = request.connection, session
        elif session is None or not session.is_of(message.session_id, node.incarnation, request, connection):
            _refuse(request, Code.FETCH_SESSION_ID_NOT_FOUND)
            return
        session.take(request, message)

    def _tell_candidate(self, replica: Replica, follower: int) -> None:
        self.on_candidate(replica, follower)

    def companion_made(self, host: Replica) -> None:
        """Followers of the partition are to copy it."""
        for _, session in self._sessions.values():
            session.tell_companions(id_of(host))

    def close(self) -> None:
        sessions, self._sessions = self._sessions, {}
        for _, session in sessions.values():
            session.close()


def _refuse(request: PeerRequest, code: Code) -> None:
    request.answer((encode(FetchResponse(error_code=code), VERSION),))
