"""Answers that describe many groups of one protocol."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from goqueue.doors.kafka.request import Request
from goqueue.machines.groups.commands import GroupCommand
from goqueue.machines.groups.consumer.facts import TopicPartitions
from goqueue.model.errors import GoQueueError
from goqueue.wire.kafka.messages.consumer_groups import ConsumerGroupDescribeResponse
from goqueue.wire.kafka.messages.describe_groups import DescribeGroupsResponse
from goqueue.wire.kafka.messages.share_groups import ShareGroupDescribeResponse

R = TypeVar("R")
HAS_HIDDEN_TOPICS = "its members are assigned topics that this client may not describe"
Descriptions = DescribeGroupsResponse | ConsumerGroupDescribeResponse | ShareGroupDescribeResponse


def describe_each(
    request: Request,
    response: Descriptions,
    group_ids: Iterable[str],
    question: Callable[[str], GroupCommand[R]],
    described: Callable[[R | GoQueueError, str], Any],
) -> None:
    """Ask for each group once, and answer when all have replied. `question`: the command about one. `described`: what
    stands in the response, by the reply and the name."""
    names = list(dict.fromkeys(group_ids))
    submit = request.broker.groups.submit

    def collect(reply: R | GoQueueError, name: str) -> None:
        response.groups.append(described(reply, name))
        if len(response.groups) == len(names):
            request.answer(response)

    if not names:
        request.answer(response)
    request.each(names, lambda name: submit(question(name), lambda reply: collect(reply, name)))


def has_hidden(request: Request, assigned: Iterable[TopicPartitions]) -> bool:
    """Who may not describe one of these topics is told nothing of the group, as in Kafka."""
    return any(request.broker.hides(one.topic_id) for one in assigned)
