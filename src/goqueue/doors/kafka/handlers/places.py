"""Which brokers there are and where partitions are, as the image of the cluster says. Nobody is sent to a node that is
most likely dead, before the image says so: a client that is told of it again takes that for an answer, and asks much
later.
"""

from collections.abc import Iterator

from goqueue.doors.kafka.request import Request
from goqueue.model.codes import Code
from goqueue.model.placements import NOBODY, HostPort, NodeInfo
from goqueue.model.topics import Topic


def brokers(request: Request) -> Iterator[tuple[int, str, int]]:
    """Number, host and port of each that is alive. This one always is, whatever the image says: a client that is told
    of no broker at all forgets those that it knows, and may never find one again."""
    me, at = request.broker.identity.node_id, request.endpoint
    yield me, at.host, at.port
    for node in _others(request):
        address = address_of(request, node)
        if address is not None:
            yield node.node_id, *address


def brokers_of_late(request: Request) -> Iterator[tuple[int, str, int]]:
    """Also those whose process has just ended. They lead nothing; but librdkafka forgets a broker that Metadata does
    not name, and with it the partitions that the same answer gives to others, for a second."""
    told = list(brokers(request))
    yield from told
    known = {number for number, _, _ in told}
    for node in request.broker.cluster.refusing_of_late():
        address = address_of(request, node)
        if node.node_id not in known and address is not None:
            yield node.node_id, *address


def controller_id(request: Request) -> int:
    """Every node takes what is asked of a controller; the one with the lowest number tidies up."""
    return min([request.broker.identity.node_id, *(node.node_id for node in _others(request))])


def _others(request: Request) -> Iterator[NodeInfo]:
    me, is_suspected = request.broker.identity.node_id, request.broker.cluster.is_suspected
    nodes = request.broker.topics.image.nodes.values()
    return (node for node in nodes if node.node_id != me and not is_suspected(node))


def address_of(request: Request, node: NodeInfo) -> HostPort | None:
    """This one is where the asker has found it. None: a node has no listener of that name."""
    at = request.endpoint
    is_here = node.node_id == request.broker.identity.node_id
    return (at.host, at.port) if is_here else node.kafka_of(at.listener.name)


def leader_of(request: Request, topic: str, number: int) -> NodeInfo | None:
    """Also of a ledger. None: nobody leads it at the moment."""
    leader = request.broker.topics.image.leader_of(topic, number)
    return None if leader is None or request.broker.cluster.is_suspected(leader) else leader


def place(request: Request, topic: Topic, number: int) -> tuple[Code, int, int, int]:
    """What is wrong with a partition, its number, its leader and the leader's epoch."""
    topics = request.broker.topics
    placement = topics.image.placement(topic.name, number)
    if placement.leader != request.broker.identity.node_id:
        leader = leader_of(request, topic.name, number)
        if leader is None:
            return Code.LEADER_NOT_AVAILABLE, number, NOBODY, placement.epoch
        return Code.NONE, number, placement.leader, placement.epoch
    epoch = topics.leader_epoch(topic.name, number)
    return (Code.NONE if epoch >= 0 else Code.KAFKA_STORAGE_ERROR), number, placement.leader, epoch


def copies(topic: Topic, number: int) -> tuple[list[int], list[int]]:
    """Where they are to be, and which of them are in sync."""
    placement = topic.placements[number]
    return list(placement.replicas), list(placement.isr)
