"""Refusals that name the leader: a client that came to the wrong node goes to the right one without asking."""

from collections.abc import Iterable
from typing import Protocol

from goqueue.doors.kafka.handlers.places import address_of, leader_of
from goqueue.doors.kafka.request import Request
from goqueue.model.codes import Code
from goqueue.wire.kafka.messages.common import LeaderIdAndEpoch, NodeEndpoint

ELSEWHERE = frozenset((Code.NOT_LEADER_OR_FOLLOWER, Code.FENCED_LEADER_EPOCH))


class Refusable(Protocol):
    """What a partition is answered."""

    current_leader: LeaderIdAndEpoch | None


def name_leaders(request: Request, answers: Iterable[tuple[str, int, Refusable]]) -> list[NodeEndpoint]:
    """In answers of partitions, by topic and number, that are led `ELSEWHERE`. Returns where those leaders are."""
    image = request.broker.topics.image
    found: dict[int, NodeEndpoint] = {}
    for topic, number, answer in answers:
        leader = leader_of(request, topic, number)
        if leader is None:
            continue
        answer.current_leader = LeaderIdAndEpoch(leader.node_id, image.placement(topic, number).epoch)
        address = address_of(request, leader)
        if address is not None:
            found[leader.node_id] = NodeEndpoint(leader.node_id, *address, leader.rack)
    return list(found.values())
