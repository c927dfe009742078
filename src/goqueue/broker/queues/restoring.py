"""What a queue group has settled, put in place of what another one has: of all of it, or in one partition."""

from collections.abc import Callable
from typing import Any

from goqueue.broker.queues.companions import Spot
from goqueue.broker.queues.queue_groups import ask_all
from goqueue.broker.queues.queues import Queues
from goqueue.machines.deliveries.commands import DropGroup, GroupState, Place, RestoreGroup
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.group_options import FORK_OF
from goqueue.model.topics import Topic
from goqueue.runtime.ahead import OnReply


def restore(
    queues: Queues,
    group_id: str,
    state: GroupState,
    find_topic: Callable[[str], Topic],
    on_reply: OnReply[Code],
    *,
    origin: str | None,
) -> None:
    """Let a group be what `state` says, instead of what it was: place by place, and then its options. `origin`: the
    group that it is a fork of."""
    by_spot: dict[Spot, list[Any]] = {spot: [] for spot in queues.companions.spots(group_id)}
    for each in state.places:
        by_spot.setdefault((each.topic, each.partition), []).append(each)
    try:
        wanted = [
            (
                queues.companions.of_or_made(find_topic(topic), partition),
                RestoreGroup(group_id, GroupState({}, tuple(places))),
            )
            for (topic, partition), places in by_spot.items()
        ]
    except GoQueueError as error:
        on_reply(error.kept())
        return

    def restored(error: GoQueueError | None) -> None:
        if error is not None:
            on_reply(error)
        else:
            queues.replace_options(group_id, {**state.options, FORK_OF: origin}, on_reply)

    ask_all(wanted, restored)


def take_over_at(queues: Queues, place: Place, fork_id: str, on_reply: OnReply[bool]) -> None:
    """Let a group be in one partition what its fork is there. False: the fork does not read there, and the group stays
    as it is."""
    try:
        found = queues.companions.find(place.topic, place.partition)
        places = () if found is None else found.peek().state_of(fork_id).places
    except GoQueueError as error:
        on_reply(error.kept())
        return
    if found is None or not places:
        on_reply(False)
    else:
        command = RestoreGroup(place.group_id, GroupState({}, tuple(places)))
        found.submit(command, lambda reply: on_reply(reply if isinstance(reply, GoQueueError) else True))


def drop_at(queues: Queues, place: Place, on_reply: OnReply[bool]) -> None:
    """Forget a group in one partition. False: it does not read there."""
    try:
        found = queues.companions.find(place.topic, place.partition)
        is_there = found is not None and place in found.peek().places(place.group_id)
    except GoQueueError as error:
        on_reply(error.kept())
        return
    if found is None or not is_there:
        on_reply(False)
    else:
        command = DropGroup(place.group_id, None)
        found.submit(command, lambda reply: on_reply(reply if isinstance(reply, GoQueueError) else True))
