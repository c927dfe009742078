"""A member that waits for messages: it counts as alive meanwhile, and follows the group when partitions move."""

from collections.abc import Callable
from math import ceil
from typing import NamedTuple, TypeAlias

from goqueue.broker.groups.members import Members
from goqueue.broker.queues.receive import Receiver
from goqueue.broker.queues.taking import BYTES_MAX, LeasedPlace, Parked, ReceiveRequest
from goqueue.machines.groups.consumer.facts import ConsumerMember, FoundConsumerMember
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.members import ANY_GENERATION, Who
from goqueue.model.refusal import Refused
from goqueue.model.topic_partition import TopicPartition

BEATS_PER_SESSION = 3
PAUSE_MS = 100


class PollRequest(NamedTuple):
    who: Who
    records_max: int
    bytes_max: int = BYTES_MAX
    wait_ms: int = 0
    lease_ms: int | None = None
    """None: as topics and group say."""


class Polled(NamedTuple):
    generation: int
    found: list[LeasedPlace]
    revoking: tuple[TopicPartition, ...] = ()
    """What a cooperative member shall give up."""


OnPolled: TypeAlias = Callable[[Polled | GoQueueError], None]


def poll(members: Members, receiver: Receiver, request: PollRequest, on_polled: OnPolled) -> "MemberPoll":
    """What is returned can be cancelled."""
    waiting = MemberPoll(members, receiver, request, on_polled)
    waiting.start()
    return waiting


class MemberPoll:
    """Invariant: while it is not over, it watches its group, and either waits in `_parked` or for an answer."""

    def __init__(self, members: Members, receiver: Receiver, request: PollRequest, on_polled: OnPolled) -> None:
        self._members = members
        self._receiver = receiver
        self._request = request
        self._on_polled = on_polled
        self._group_id = request.who.group_id
        self._parked: Parked | None = None
        self._has_changed = False
        self._due_s = members.clock.monotonic_s() + request.wait_ms / 1000
        self._generation = 0
        self._revoking: tuple[TopicPartition, ...] | None = None
        """None: it has not looked yet."""
        self.is_over = False

    def start(self) -> None:
        self._members.groups.watch(self._group_id, self._changed)
        self._look(self._request.who)

    def cancel(self) -> None:
        """Its client is gone."""
        if not self.is_over:
            self.is_over = True
            self._members.groups.unwatch(self._group_id, self._changed)
            self._unpark()

    def _unpark(self) -> None:
        if self._parked is not None:
            self._parked.cancel()
            self._parked = None

    def _finish(self, outcome: Polled | GoQueueError) -> None:
        if not self.is_over:
            self.cancel()
            self._on_polled(outcome)

    def _changed(self) -> None:
        """Who has what in this group is no longer as it was."""
        if self._parked is None:
            self._has_changed = True
        else:
            self._unpark()
            self._look_again()

    def _look_again(self) -> None:
        """Later, since this comes from within replies. As of any generation: the client has said which it knows."""
        who = self._request.who._replace(generation=ANY_GENERATION)
        self._members.clock.call_soon(lambda: self._look(who))

    def _look(self, who: Who) -> None:
        if self.is_over:
            return
        self._has_changed = False
        self._members.find(who, self._found)

    def _found(self, reply: FoundConsumerMember | GoQueueError) -> None:
        if self.is_over or isinstance(reply, GoQueueError):
            if isinstance(reply, GoQueueError):
                self._finish(reply)
            return
        assert reply.member is not None
        beat_ms = reply.session_ms // BEATS_PER_SESSION

        def taken(member: ConsumerMember | GoQueueError) -> None:
            if isinstance(member, GoQueueError):
                self._finish(member)
                return
            self._generation = member.epoch
            before, self._revoking = self._revoking, self._members.named(member.revoking)
            if before is not None and not before and self._revoking:
                self._finish(Polled(self._generation, [], self._revoking))  # it shall hear of it soon
                return
            places = self._members.named(member.assigned)
            self._members.progress.even_out(
                self._group_id,
                member,
                places,
                lambda error: self._even(error, list(places), beat_ms),
                is_to_read=True,
            )

        self._members.serve(self._group_id, reply.member, taken)

    def _even(self, error: GoQueueError | None, places: list[tuple[str, int]], beat_ms: int) -> None:
        if error is not None:
            self._finish(error)
            return
        if self.is_over:
            return
        # Rounded up: in what is left of the last millisecond it would ask again and again, without a pause.
        left_ms = ceil((self._due_s - self._members.clock.monotonic_s()) * 1000)
        if self._has_changed and left_ms > 0:
            self._look_again()
            return
        request = ReceiveRequest(
            group_id=self._group_id,
            consumer=self._request.who.member_id,
            places=places,
            records_max=self._request.records_max,
            bytes_max=self._request.bytes_max,
            wait_ms=max(0, min(left_ms, beat_ms)),
            lease_ms=self._request.lease_ms,
            is_member=True,
        )
        try:
            parked = self._receiver.receive(request, self._leased)
        except GoQueueError as refused:
            self._finish(refused)
            return
        if parked is not None and not parked.is_over:
            self._parked = parked

    def _leased(self, found: list[LeasedPlace]) -> None:
        self._parked = None
        there = [each for each in found if not _is_gone(each.error)]
        if there or self._members.clock.monotonic_s() >= self._due_s:
            self._finish(Polled(self._generation, there, self._revoking or ()))
        elif found:  # the group has not heard yet that they are gone
            self._members.clock.call_after(PAUSE_MS, self._look_again)
        else:
            self._look_again()


def _is_gone(error: GoQueueError | None) -> bool:
    """The topic was deleted: that is no fault of who reads others, too."""
    return isinstance(error, Refused) and error.code is Code.UNKNOWN_TOPIC_OR_PARTITION
