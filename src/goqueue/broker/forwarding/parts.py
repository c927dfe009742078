"""A request that concerns several partitions, done in parts: each by the leader of its partitions, all at once. A part
whose leader cannot be reached, and that was not begun, is tried again with whoever leads by then.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, TypeVar

from goqueue.broker.forwarding.calls import Call, OnDone
from goqueue.broker.forwarding.forwarding import PATIENCE_MS, Forwarding, not_reached
from goqueue.model.errors import GoQueueError, NotReached, NotTaken
from goqueue.model.refusal import NotAppended
from goqueue.ports.forwarding import NotHere

A = TypeVar("A")
R = TypeVar("R")
Spot = tuple[str, int]
"""Topic and partition."""
NOT_DONE = (NotReached, NotTaken, NotAppended)
"""Errors of what was certainly not done."""
Answered = Callable[[Sequence[R] | GoQueueError], None]
"""One reply for each item of a part, in their order; or an error of all."""


class InParts(Generic[R]):
    """`here` and `there` are given the numbers of items and where to put their replies; `error_of` says what went wrong
    with an item, if anything did, and `failed` makes such a reply."""

    def __init__(
        self,
        forwarding: Forwarding,
        spots: Sequence[Spot],
        here: Callable[[list[int], Answered[R]], None],
        there: Callable[[int, list[int], Answered[R]], None],
        error_of: Callable[[R], GoQueueError | None],
        failed: Callable[[int, GoQueueError], R],
        on_all: Callable[[list[R]], None],
    ) -> None:
        self._forwarding = forwarding
        self._spots = spots
        self._here = here
        self._there = there
        self._error_of = error_of
        self._failed = failed
        self._on_all = on_all
        self._replies: dict[int, R] = {}
        self._give_up_s = forwarding.clock.monotonic_s() + PATIENCE_MS / 1000

    def start(self) -> None:
        if self._spots:
            self._divide(list(range(len(self._spots))))
        else:
            self._on_all([])

    def _divide(self, numbers: list[int]) -> None:
        by_node: dict[int | None, list[int]] = {}
        for number in numbers:
            by_node.setdefault(self._forwarding.homes.partition(*self._spots[number]), []).append(number)
        for node_id, part in by_node.items():
            if node_id is None:
                self._try_again(None, part, not_reached("/".join(map(str, self._spots[part[0]]))))
            elif node_id == self._forwarding.homes.me:
                self._here(part, partial(self._told, node_id, part))
            else:
                self._there(node_id, part, partial(self._told, node_id, part))

    def _told(self, node_id: int, part: list[int], reply: Sequence[R] | GoQueueError) -> None:
        """What a leader that hands over has not begun goes to the next one; the rest was done, or may have been."""
        if isinstance(reply, GoQueueError):
            if isinstance(reply, NOT_DONE):
                self._try_again(node_id, part, reply)
            else:
                self._answered(part, reply)
            return
        not_done: dict[Spot, tuple[GoQueueError, list[int]]] = {}
        done: list[int] = []
        replies: list[R] = []
        for number, each in zip(part, reply, strict=True):
            error = self._error_of(each)
            if isinstance(error, NOT_DONE):
                not_done.setdefault(self._spots[number], (error, []))[1].append(number)
            else:
                done.append(number)
                replies.append(each)
        self._answered(done, replies)
        for why, numbers in not_done.values():
            self._try_again(node_id, numbers, why)

    def _try_again(self, node_id: int | None, part: list[int], error: GoQueueError) -> None:
        """All of `part` in one partition, or not begun for one reason: it is looked at where the first of it is led."""
        if self._forwarding.clock.monotonic_s() >= self._give_up_s:
            self._answered(part, error)
        else:
            spot = self._spots[part[0]]
            find = self._forwarding.homes.partition
            self._forwarding.when_moved(node_id, lambda: find(*spot), lambda: self._divide(part))

    def _answered(self, part: list[int], reply: Sequence[R] | GoQueueError) -> None:
        for place, number in enumerate(part):
            self._replies[number] = (
                self._failed(number, reply.kept()) if isinstance(reply, GoQueueError) else reply[place]
            )
        if part and len(self._replies) == len(self._spots):
            self._on_all([self._replies[number] for number in range(len(self._spots))])


def in_parts(
    forwarding: Forwarding,
    spots: Sequence[Spot],
    here: Callable[[list[int], Answered[R | GoQueueError]], None],
    there: Callable[[int, list[int], Answered[R | GoQueueError]], None],
    on_all: Callable[[list[R | GoQueueError]], None],
) -> None:
    """Items whose reply is an error where they fail."""

    def error_of(reply: R | GoQueueError) -> GoQueueError | None:
        return reply if isinstance(reply, GoQueueError) else None

    InParts[R | GoQueueError](forwarding, spots, here, there, error_of, lambda _number, error: error, on_all).start()


def ask_leader(
    forwarding: Forwarding,
    spot: Spot,
    call: Call[A, R],
    arguments: A,
    here: Callable[[OnDone[R]], object],
    on_reply: OnDone[R],
) -> None:
    """A call about one partition, of its leader, who may be this node."""

    def answer_to(answered: Answered[R | GoQueueError]) -> OnDone[R]:
        return lambda reply: answered(reply if isinstance(reply, GoQueueError) else [reply])

    def there(node_id: int, _part: list[int], answered: Answered[R | GoQueueError]) -> None:
        call.ask(forwarding, node_id, arguments, answer_to(answered))

    def at_home(_part: list[int], answered: Answered[R | GoQueueError]) -> None:
        here(answer_to(answered))

    in_parts(forwarding, [spot], at_home, there, lambda replies: on_reply(replies[0]))


def check_leads(forwarding: Forwarding, topic: str, partition: int) -> None:
    """NotHere: another node leads it."""
    if not forwarding.homes.leads(topic, partition):
        raise NotHere(f"{topic}/{partition} is not led here")
