"""Places of queue groups in partitions that other nodes lead: commands go to the leader, and what a group as a whole
is told goes to all nodes.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from goqueue.broker.forwarding.calls import CALL_MS_MAX, Call
from goqueue.broker.forwarding.forwarding import Forwarding
from goqueue.broker.forwarding.parts import ask_leader, check_leads
from goqueue.broker.groups.member_progress import MemberProgress
from goqueue.broker.queues.queues import Place, Queues
from goqueue.broker.queues.stands import OnStands, stands_of
from goqueue.broker.topics.topics import Topics
from goqueue.machines.deliveries.commands import NO_LEASE, GiveBack, Seek, Settle, SettleBelow, SettleReply, Stand
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.refusal import Refused
from goqueue.ports.forwarding import Stop

STANDS_MS = 2000


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


COMMANDS: dict[type, Call[Any, Any]] = {
    Settle: Call("settle-runs", Settle, SettleReply),
    SettleBelow: Call("settle-below", SettleBelow, Code),
    Seek: Call("seek", Seek, Code),
}
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
        for call in COMMANDS.values():
            call.serve(forwarding, self._serve)
        OPEN.serve(forwarding, self._serve_open)
        EVEN.serve(forwarding, self._serve_even)
        DROP.serve(forwarding, self._serve_drop)
        STANDS.serve(forwarding, self._serve_stands)
        GIVE_BACK.serve(forwarding, self._serve_give_back)

    def _is_here(self, place: Place) -> bool:
        return self._forwarding.homes.partition(place.topic, place.partition) == self._forwarding.homes.me

    def submit(self, command: Any, on_reply: Callable[[Any], None] | None) -> bool:
        """False: it is for this node."""
        call = COMMANDS.get(type(command))
        if call is None or self._is_here(command.place):
            return False
        spot = command.place.topic, command.place.partition
        ask_leader(
            self._forwarding,
            spot,
            call,
            command,
            lambda done: self._queues.submit(command, done),
            on_reply or (lambda _reply: None),
        )
        return True

    def open(
        self,
        place: Place,
        start: str,
        on_open: Callable[[GoQueueError | None], None],
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

    def even(
        self, place: Place, committed: int, on_even: Callable[[int | GoQueueError], None], *, is_to_read: bool
    ) -> None:
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

    def drop(self, group_id: str, topics: Sequence[str] | None, on_reply: Callable[[Any], None]) -> None:
        """On all nodes; an error, if one of them cannot be asked."""
        others = self._forwarding.homes.others()
        replies: list[Any] = []

        def dropped(reply: Any) -> None:
            replies.append(reply)
            if len(replies) <= len(others):
                return
            wrong = [each for each in replies if isinstance(each, GoQueueError)]
            is_known = Code.NONE in replies
            on_reply(wrong[0] if wrong else Code.NONE if is_known else Code.GROUP_ID_NOT_FOUND)

        for node_id in others:
            DROP.ask(self._forwarding, node_id, DropPlaces(group_id, topics), dropped)
        self._queues.drop_here(group_id, topics, lambda reply: dropped(_code(reply)))

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

    def _serve_stands(self, wanted: FindStands, _timeout_ms: int, on_reply: Callable[[Any], None]) -> Stop | None:
        self._stands_here(wanted.group_id, wanted.places, on_reply)
        return None

    def _serve_drop(self, wanted: DropPlaces, _timeout_ms: int, on_reply: Callable[[Any], None]) -> Stop | None:
        self._queues.drop_here(wanted.group_id, wanted.topics, lambda reply: on_reply(_code(reply)))
        return None

    def _serve(self, command: Any, _timeout_ms: int, on_reply: Callable[[Any], None]) -> Stop | None:
        check_leads(self._forwarding, command.place)
        if isinstance(command, Seek):
            end = self._topics.end_offset(command.place.topic, command.place.partition) or 0
            if not 0 <= command.offset <= end:
                raise Refused(Code.OFFSET_OUT_OF_RANGE, f"{command.offset} is not from 0 to {end}")
        if isinstance(command, SettleBelow):  # nobody has done yet what lies beyond the end
            end = self._topics.end_offset(command.place.topic, command.place.partition) or 0
            command = SettleBelow(command.place, min(command.offset, end))
        if isinstance(command, Settle) and any(each.lease == NO_LEASE for each in command.settlements):
            self._queues.observe(command.place)  # what nobody has leased may not have been looked at yet
        self._queues.submit(command, on_reply)
        return None

    def _serve_open(self, wanted: OpenPlace, _timeout_ms: int, on_reply: Callable[[Any], None]) -> Stop | None:
        check_leads(self._forwarding, wanted.place)
        self._queues.open(wanted.place, wanted.start, on_reply, wanted.at, is_member=wanted.is_member)
        return None

    def _serve_even(self, wanted: EvenPlace, _timeout_ms: int, on_reply: Callable[[Any], None]) -> Stop | None:
        check_leads(self._forwarding, wanted.place)
        self._progress.even_here(wanted.place, wanted.committed, on_reply, is_to_read=wanted.is_to_read)
        return None

    def _serve_give_back(self, command: GiveBack, _timeout_ms: int, on_reply: Callable[[Any], None]) -> Stop | None:
        self._queues.give_back_here(command)
        on_reply(None)
        return None


def _code(reply: Any) -> Any:
    """Options are dropped last, and their store answers in its own way."""
    return reply if isinstance(reply, GoQueueError | Code) else reply.code
