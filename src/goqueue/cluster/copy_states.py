"""What the copies of all living nodes hold, asked of each of them: for decisions that the metadata cannot make."""

from collections.abc import Callable, Mapping
from functools import partial

import msgspec

from goqueue.cluster.copies import id_of
from goqueue.machines.cluster.recovery import CopyState
from goqueue.model.errors import GoQueueError
from goqueue.model.metadata import PartitionKey
from goqueue.ports.peers import PeerRequest, Peers
from goqueue.replica.replica import Replica
from goqueue.replica.replicas import Replicas
from goqueue.telemetry.logs import get_logger
from goqueue.wire.kafka.peering import COPIES

ANSWER_MS_MAX = 2000

OnStates = Callable[[dict[int, dict[PartitionKey, CopyState]]], None]

events = get_logger("cluster")
_decode = msgspec.msgpack.Decoder(list[CopyState]).decode
_encode = msgspec.msgpack.encode


class CopyStates:
    """`handle` answers other nodes."""

    def __init__(self, replicas: Replicas, peers: Peers, nodes: Callable[[], Mapping[int, object]]) -> None:
        """`nodes`: those that are alive."""
        self._replicas = replicas
        self._peers = peers
        self._nodes = nodes

    def handle(self, request: PeerRequest) -> None:
        request.answer([_encode(list(self._here().values()))])

    def ask(self, on_done: OnStates) -> None:
        """By node: also of this one. Who does not answer in time is not in it."""
        seat = self._replicas.seat
        me = -1 if seat is None else seat.node_id
        found = {me: self._here()}
        waiting = dict.fromkeys(node_id for node_id in sorted(self._nodes()) if node_id != me)
        if not waiting:
            on_done(found)
            return

        def answered(node_id: int, answer: bytes | GoQueueError) -> None:
            try:
                if isinstance(answer, GoQueueError):
                    raise answer
                found[node_id] = {PartitionKey(one.topic_id, one.partition): one for one in _decode(answer)}
            except (GoQueueError, msgspec.MsgspecError) as error:
                events.warning("a node does not tell what it holds", node=node_id, reason=str(error))
            del waiting[node_id]
            if not waiting:
                on_done(found)

        for node_id in list(waiting):
            self._peers.ask(node_id, COPIES, b"", partial(answered, node_id), ANSWER_MS_MAX)

    def _here(self) -> dict[PartitionKey, CopyState]:
        whole = [replica for replica in self._replicas.hosts() if replica.log.failure is None]
        return {PartitionKey(*id_of(replica)): state_of(replica) for replica in whole}


def state_of(replica: Replica) -> CopyState:
    return CopyState(
        *id_of(replica),
        replica.start_offset,
        replica.end_offset,
        replica.last_epoch,
        max(replica.leader_epoch, replica.log.state.epochs.latest),
        replica.producers.highest_id,
        replica.is_doubtful,
    )
