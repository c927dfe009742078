"""Places of queue groups in partitions that other nodes lead: commands go to the leader, and what a group as a whole
is told goes to all nodes.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec

from goqueue.broker.forwarding.calls import CALL_MS_MAX, Call, OnDone
from goqueue.broker.forwarding.forwarding import Forwarding
from goqueue.broker.forwarding.others import ask_others, first_error
from goqueue.broker.forwarding.parts import ask_leader, check_leads
from goqueue.broker.groups.member_progress import MemberProgress
from goqueue.broker.queues.queues import Queues
from goqueue.broker.queues.stands import OnStands, stands_of
from goqueue.broker.topics.topics import Topics
from goqueue.machines.deliveries.commands import (
    NO_LEASE,
    GiveBack,
    Place,
    PlaceCommand,
    Seek,
    Settle,
    SettleBelow,
    SettleReply,
    Stand,
)
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.refusal import Refused
from goqueue.ports.forwarding import Stop
from goqueue.runtime.ahead import OnReply

STANDS_MS = 2000

R = TypeVar("R")


class OpenPlace(msgspec.Struct, array_like=True):
    place: Place
    start: str
    at: int | None
    is_member: bool


class EvenPlace(msgspec.Struct, array_like=True):
    """What a group has committed and what it has settled there is to be brought into step."""

    place: Place
    committed: int
    is_to_read: bool


class DropPlaces(msgspec.Struct, array_like=True):
    group_id: str
    topics: Sequence[str] | None


class FindStands(msgspec.Struct, array_like=True):
    group_id: str
    places: Sequence[Place] | None
    """None: all that this node leads and the group reads."""


SETTLE: Call[Settle, SettleReply] = Call("settle-runs", Settle, SettleReply)
SETTLE_BELOW: Call[SettleBelow, Code] = Call("settle-below", SettleBelow, Code)
SEEK: Call[Seek, Code] = Call("seek", Seek, Code)
OPEN: Call[OpenPlace, None] = Call("open-place", OpenPlace, None)
EVEN: Call[EvenPlace, int] = Call("even-place", EvenPlace, int)
DROP: Call[DropPlaces, Code] = Call("drop-places", DropPlaces, Code)
STANDS: Call[FindStands, Sequence[Stand]] = Call("stands", FindStands, list[Stand])
GIVE_BACK: Call[GiveBack, None] = Call("give-back", GiveBack, None)


class SpreadPlaces:
    def __init__(self, forwarding: Forwarding, queues: Queues, progress: MemberProgress, topics: Topics) -> None:
        self._forwarding = forwarding
        self._queues = queues
        self._progress = progress
        self._topics = topics
        queues.elsewhere = self
        progress.elsewhere = self
        SETTLE.serve(forwarding, self._serve_settle)
        SETTLE_BELOW.serve(forwarding, self._serve_settle_below)
        SEEK.serve(forwarding, self._serve_seek)
        OPEN.serve(forwarding, self._serve_open)
        EVEN.serve(forwarding, self._serve_even)
        DROP.serve(forwarding, self._serve_drop)
        STANDS.serve(forwarding, self._serve_stands)
        GIVE_BACK.serve(forwarding, self._serve_give_back)

    def _check_leads(self, place: Place) -> None:
        check_leads(self._forwarding, place.topic, place.partition)

    def _is_here(self, place: Place) -> bool:
        return self._forwarding.homes.partition(place.topic, place.partition) == self._forwarding.homes.me

    def submit(self, command: PlaceCommand[R], on_reply: OnReply[R] | None) -> bool:
        """False: it is for this node. What `on_reply` gets is said by the command (`Queues.submit`)."""
        if self._is_here(command.place):
            return False
        spot, queues = (command.place.topic, command.place.partition), self._queues
        told: OnReply[Any] = on_reply or _unheard  # each command below has its own reply
        match command:
            case Settle():
                ask_leader(self._forwarding, spot, SETTLE, command, lambda done: queues.submit(command, done), told)
            case SettleBelow():
                ask_leader(
                    self._forwarding, spot, SETTLE_BELOW, command, lambda done: queues.submit(command, done), told
                )
            case Seek():
                ask_leader(self._forwarding, spot, SEEK, command, lambda done: queues.submit(command, done), told)
            case _:
                return False
        return True

    def open(
        self,
        place: Place,
        start: str,
        on_open: OnDone[None],
        at: int | None,
        *,
        is_member: bool,
    ) -> bool:
        if self._is_here(place):
            return False
        ask_leader(
            self._forwarding,
            (place.topic, place.partition),
            OPEN,
            OpenPlace(place, start, at, is_member),
            lambda done: self._queues.open(place, start, done, at, is_member=is_member),
            on_open,
        )
        return True

    def even(self, place: Place, committed: int, on_even: OnDone[int], *, is_to_read: bool) -> None:
        ask_leader(
            self._forwarding,
            (place.topic, place.partition),
            EVEN,
            EvenPlace(place, committed, is_to_read),
            lambda done: self._progress.even_here(place, committed, done, is_to_read=is_to_read),
            on_even,
        )

    def give_back(self, command: GiveBack) -> None:
        """To all others: a consumer may hold records anywhere. What a node that is not reached now was told by nobody
        comes back when its lease ends."""
        for node_id in self._forwarding.homes.others():
            GIVE_BACK.ask(self._forwarding, node_id, command, lambda _reply: None, CALL_MS_MAX)

    def drop(self, group_id: str, topics: Sequence[str] | None, on_reply: OnDone[Code]) -> None:
        """On all nodes; an error, if one of them cannot be asked."""

        def dropped(here: Code | GoQueueError) -> None:
            ask_others(self._forwarding, DROP, DropPlaces(group_id, topics), partial(dropped_there, here))

        def dropped_there(here: Code | GoQueueError, there: dict[int, Code | GoQueueError]) -> None:
            replies = [here, *there.values()]
            on_reply(first_error(replies) or (Code.NONE if Code.NONE in replies else Code.GROUP_ID_NOT_FOUND))

        self._queues.drop_here(group_id, topics, dropped)

    def stands(self, group_id: str, places: Sequence[Place] | None, on_stands: OnStands) -> None:
        """Each leader tells of its own; of one that does not answer only what was asked for by name is told."""
        homes = self._forwarding.homes
        parts: dict[int, list[Place] | None] = dict.fromkeys(homes.nodes())
        if places is not None:
            leaders = [homes.partition(place.topic, place.partition) for place in places]
            known = [each for each in dict.fromkeys(leaders) if each is not None]
            parts = {each: [one for one, node in zip(places, leaders) if node == each] for each in known}
        found = {
            (place.topic, place.partition): Stand(place.topic, place.partition, code=Code.LEADER_NOT_AVAILABLE)
            for place in places or ()
        }
        waiting = len(parts) + 1

        def told(reply: Sequence[Stand] | GoQueueError) -> None:
            nonlocal waiting
            waiting -= 1
            for one in () if isinstance(reply, GoQueueError) else reply:
                found[one.topic, one.partition] = one
            if not waiting:
                on_stands(sorted(found.values(), key=lambda one: (one.topic, one.partition)))

        for node_id, part in parts.items():
            if node_id == homes.me:
                self._stands_here(group_id, part, told)
            else:
                STANDS.ask(self._forwarding, node_id, FindStands(group_id, part), told, STANDS_MS)
        told(())

    def _stands_here(self, group_id: str, places: Sequence[Place] | None, on_stands: OnStands) -> None:
        wanted = list(self._queues.places(group_id)) if places is None else places
        stands_of(self._queues, wanted, self._forwarding.clock, on_stands)

    def _serve_stands(self, wanted: FindStands, _timeout_ms: int, on_reply: OnDone[Sequence[Stand]]) -> Stop | None:
        self._stands_here(wanted.group_id, wanted.places, on_reply)
        return None

    def _serve_drop(self, wanted: DropPlaces, _timeout_ms: int, on_reply: OnDone[Code]) -> Stop | None:
        self._queues.drop_here(wanted.group_id, wanted.topics, on_reply)
        return None

    def _serve_settle(self, command: Settle, _timeout_ms: int, on_reply: OnDone[SettleReply]) -> Stop | None:
        self._check_leads(command.place)
        unleased = [each.last for each in command.settlements if each.lease == NO_LEASE]
        if unleased:
            if max(unleased) >= self._end(command.place):
                raise Refused(Code.OFFSET_OUT_OF_RANGE, f"{max(unleased)} is not there yet")
            self._queues.observe(command.place)  # what nobody has leased may not have been looked at yet
        self._queues.submit(command, on_reply)
        return None

    def _serve_settle_below(self, command: SettleBelow, _timeout_ms: int, on_reply: OnDone[Code]) -> Stop | None:
        self._check_leads(command.place)
        below = min(command.offset, self._end(command.place))  # nobody has done yet what lies beyond the end
        self._queues.submit(SettleBelow(command.place, below), on_reply)
        return None

    def _serve_seek(self, command: Seek, _timeout_ms: int, on_reply: OnDone[Code]) -> Stop | None:
        self._check_leads(command.place)
        end = self._end(command.place)
        if not 0 <= command.offset <= end:
            raise Refused(Code.OFFSET_OUT_OF_RANGE, f"{command.offset} is not from 0 to {end}")
        self._queues.submit(command, on_reply)
        return None

    def _end(self, place: Place) -> int:
        return self._topics.end_offset(place.topic, place.partition) or 0

    def _serve_open(self, wanted: OpenPlace, _timeout_ms: int, on_reply: OnDone[None]) -> Stop | None:
        self._check_leads(wanted.place)
        self._queues.open(wanted.place, wanted.start, on_reply, wanted.at, is_member=wanted.is_member)
        return None

    def _serve_even(self, wanted: EvenPlace, _timeout_ms: int, on_reply: OnDone[int]) -> Stop | None:
        self._check_leads(wanted.place)
        self._progress.even_here(wanted.place, wanted.committed, on_reply, is_to_read=wanted.is_to_read)
        return None

    def _serve_give_back(self, command: GiveBack, _timeout_ms: int, on_reply: OnDone[None]) -> Stop | None:
        self._queues.give_back_here(command)
        on_reply(None)
        return None


def _unheard(reply: object) -> None:
    """Nobody waits for it."""
