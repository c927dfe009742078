"""Groups of every kind in one list: those with members or offsets, and those of which only deliveries are known."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from goqueue.broker.broker import Broker
from goqueue.machines.groups import commands
from goqueue.model.errors import GoQueueError

EMPTY = "Empty"
PER_TURN = 200
"""Groups that are looked at before others get their turn."""


class GroupSummary(NamedTuple):
    group_id: str
    type: str
    state: str
    members: int
    generation: int
    topics: tuple[str, ...]
    """Sorted."""


def group_page(broker: Broker, after: str | None, count: int) -> list[str]:
    return sorted({*broker.groups.page(after, count), *broker.queues.page(after, count)})[:count]


def page_of_names(broker: Broker, after: str | None, count: int) -> tuple[list[str], str | None]:
    """The next `count` names behind `after`, and where to go on; None: that was all. Whoever goes on from there sees
    every group once that is there all the while, whatever comes and goes.
    """
    names = group_page(broker, after, count + 1)
    return names[:count], names[count - 1] if len(names) > count else None


def pages(page: Callable[[str | None, int], list[str]]) -> Iterator[list[str]]:
    """All names that `page` gives. Others may have their turn, and groups may come and go, between one and the next."""
    names = page(None, PER_TURN)
    while names:
        yield names
        names = page(names[-1], PER_TURN) if len(names) == PER_TURN else []


def summarize(
    broker: Broker, names: Sequence[str], on_reply: Callable[[list[GroupSummary] | GoQueueError], None]
) -> None:
    """What these groups are, in this order. One that went meanwhile is left out."""

    def listed(reply: list[commands.ListedGroup] | GoQueueError) -> None:
        if isinstance(reply, GoQueueError):
            on_reply(reply)
            return
        known = {each.group_id: each for each in reply}
        found = (_summary(broker, name, known.get(name)) for name in names)
        on_reply([each for each in found if each is not None])

    broker.groups.listed(names, listed, with_topics=True)


def _summary(broker: Broker, group_id: str, known: commands.ListedGroup | None) -> GroupSummary | None:
    leased_from = {place.topic for place in broker.queues.places(group_id)}
    if known is None:
        if not leased_from and not broker.queues.options(group_id):
            return None
        return GroupSummary(group_id, commands.SHARE, EMPTY, 0, 0, tuple(sorted(leased_from)))
    topics = tuple(sorted(leased_from.union(known.topics or ())))
    return GroupSummary(group_id, known.type, known.state, known.members, known.generation, topics)
