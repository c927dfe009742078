"""A call that all other nodes are asked for at once, because what it is about may be on any of them."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from goqueue.broker.forwarding.calls import CALL_MS_MAX, Call
from goqueue.broker.forwarding.forwarding import Forwarding
from goqueue.model.errors import GoQueueError

A = TypeVar("A")
R = TypeVar("R")


def ask_others(
    forwarding: Forwarding,
    call: Call[A, R],
    arguments: A,
    on_all: Callable[[dict[int, R | GoQueueError]], None],
    timeout_ms: int = CALL_MS_MAX,
) -> None:
    """What each of them has answered, by node; nothing, and at once, if there is no other."""
    others = forwarding.homes.others()
    replies: dict[int, R | GoQueueError] = {}

    def told(node_id: int, reply: R | GoQueueError) -> None:
        replies[node_id] = reply
        if len(replies) == len(others):
            on_all({each: replies[each] for each in others})

    if not others:
        on_all({})
    for node_id in others:
        call.ask(forwarding, node_id, arguments, partial(told, node_id), timeout_ms)


def first_error(replies: Iterable[R | GoQueueError]) -> GoQueueError | None:
    return next((each for each in replies if isinstance(each, GoQueueError)), None)


def good_ones(replies: Iterable[R | GoQueueError]) -> list[R]:
    return [each for each in replies if not isinstance(each, GoQueueError)]
