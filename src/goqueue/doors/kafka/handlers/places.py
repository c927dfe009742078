"""Which brokers there are and where partitions are, as the image of the cluster says."""

from collections.abc import Iterator

from goqueue.doors.kafka.request import Request
from goqueue.model.codes import Code
from goqueue.model.topics import Topic


def brokers(request: Request) -> Iterator[tuple[int, str, int]]:
    """Number, host and port of each that is alive. This one is where the asker has found it."""
    me, at = request.broker.identity.node_id, request.endpoint
    for node in request.broker.topics.image.nodes.values():
        if node.node_id == me:
            yield me, at.host, at.port
        elif (address := node.kafka_of(at.listener.name)) is not None:
            yield node.node_id, *address


def controller_id(request: Request) -> int:
    """Every node takes what is asked of a controller; the one with the lowest number tidies up."""
    return min(request.broker.topics.image.nodes, default=request.broker.identity.node_id)


def place(request: Request, topic: Topic, number: int) -> tuple[Code, int, int, int]:
    """What is wrong with a partition, its number, its leader and the leader's epoch."""
    topics = request.broker.topics
    placement = topics.image.placement(topic.name, number)
    if placement.leader != request.broker.identity.node_id:
        leader = topics.image.leader_of(topic.name, number)
        code = Code.LEADER_NOT_AVAILABLE if leader is None else Code.NONE
        return code, number, placement.leader, placement.epoch
    epoch = topics.leader_epoch(topic.name, number)
    return (Code.NONE if epoch >= 0 else Code.KAFKA_STORAGE_ERROR), number, placement.leader, epoch


def copies(topic: Topic, number: int) -> tuple[list[int], list[int]]:
    """Where they are to be, and which of them are in sync."""
    placement = topic.placements[number]
    return list(placement.replicas), list(placement.isr)
