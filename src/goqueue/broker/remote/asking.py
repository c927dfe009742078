"""Asking the leader of a partition or ledger, wherever it is by now. An asker whose metadata is older than that of the
node it asked waits until it is as new; one that does not know whether something was done does not do it again, unless
that does no harm.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import msgspec

from goqueue.broker.remote.commands import decode_reply, encode_command, travels
from goqueue.broker.remote.messages import (
    API_KEY,
    Answered,
    Failed,
    NotHere,
    Request,
    Submit,
    decode_answer,
    encode,
    error_of,
    is_loading,
)
from goqueue.machines.machine import Command
from goqueue.model.errors import GoQueueError, Indeterminate, NotCoordinator, NotReached
from goqueue.model.placements import Placement
from goqueue.model.topics import Image
from goqueue.ports.peers import Peers
from goqueue.runtime.clock import Clock, Timer

R = TypeVar("R")
TIMEOUT_MS = 5000
IMAGE_MS_MAX = 2000
"""How long an asker waits for metadata that another node has already."""
AGAIN_MS = (5, 50)
"""After which a leader that could not be reached, or is being loaded, is asked again: the first time, and at most."""
ASKED_MAX = 10_000

OnAnswered = Callable[[Answered | GoQueueError], None]


class Where(NamedTuple):
    """A partition of a topic, or a shard of a ledger (whose name begins with `@`)."""

    name: str
    number: int


class Asking:
    """For one node."""

    def __init__(self, me: int, peers: Peers, image: Callable[[], Image], clock: Clock) -> None:
        self.me = me
        self.peers = peers
        self.image = image
        self.clock = clock
        self.serve: Callable[[bytes, Callable[[bytes], None]], None] | None = None
        """Answers what this node asks of itself: it may have become the leader meanwhile."""
        self._waiting: dict[_Asked, None] = {}
        """For another image."""
        self.under_way = 0

    def ask(
        self,
        where: Where,
        make: Callable[[int, int], Request],
        on_answer: OnAnswered,
        *,
        timeout_ms: int = TIMEOUT_MS,
        is_repeatable: bool = False,
    ) -> None:
        """`make`: the request for a leader's epoch, and for the milliseconds that are left. NotReached: it was not
        done. Indeterminate: nobody knows."""
        if self.under_way >= ASKED_MAX:
            on_answer(NotReached(f"{ASKED_MAX} requests to other nodes are under way"))
            return
        self.under_way += 1
        _Asked(self, where, make, on_answer, timeout_ms, is_repeatable=is_repeatable).go_on()

    def ask_node(self, node_id: int, request: Request, on_answer: OnAnswered, timeout_ms: int) -> None:
        """One node, whatever it leads; once."""

        def answered(answer: bytes | GoQueueError) -> None:
            found = read_answer(answer)
            on_answer(NotReached("asked of the wrong node") if isinstance(found, NotHere) else found)

        if node_id == self.me and self.serve is not None:
            self.serve(encode(request), answered)
        else:
            self.peers.ask(node_id, API_KEY, encode(request), answered, timeout_ms)

    def image_changed(self) -> None:
        """Those who waited for it ask again."""
        waiting, self._waiting = list(self._waiting), {}
        for each in waiting:
            each.image_changed()

    def wait(self, asked: "_Asked") -> None:
        self._waiting[asked] = None

    def forget(self, asked: "_Asked") -> None:
        self._waiting.pop(asked, None)


class _Asked:
    """One request on its way, perhaps to several nodes in turn."""

    def __init__(
        self,
        asking: Asking,
        where: Where,
        make: Callable[[int, int], Request],
        on_answer: OnAnswered,
        timeout_ms: int,
        *,
        is_repeatable: bool,
    ) -> None:
        self._asking = asking
        self._where = where
        self._make = make
        self._on_answer = on_answer
        self._is_repeatable = is_repeatable
        self._due_s = asking.clock.monotonic_s() + timeout_ms / 1000
        self._needs_revision = 0
        self._error: GoQueueError = NotReached(f"nobody leads {where.name}/{where.number}")
        """What is told when the time is over."""
        self._timer: Timer | None = None
        self._refusals = 0

    def go_on(self) -> None:
        asking = self._asking
        left_ms = int((self._due_s - asking.clock.monotonic_s()) * 1000)
        if left_ms <= 0:
            self._end(self._error)
            return
        image = asking.image()
        placement, leader = image.placement(*self._where), image.leader_of(*self._where)
        if leader is None or image.revision < self._needs_revision:
            self._later(min(left_ms, IMAGE_MS_MAX))
            return
        request = encode(self._make(_epoch(placement), left_ms))
        if leader.node_id == asking.me and asking.serve is not None:
            asking.serve(request, self._answered)
        else:
            asking.peers.ask(leader.node_id, API_KEY, request, self._answered, left_ms)

    def _answered(self, answer: bytes | GoQueueError) -> None:
        found = read_answer(answer)
        if isinstance(found, NotHere):
            self._error = NotCoordinator(f"{self._where.name}/{self._where.number} is led elsewhere")
            is_behind = found.revision > self._asking.image().revision
            self._needs_revision = found.revision
            self._later(IMAGE_MS_MAX if is_behind else self._again_ms())
        elif isinstance(found, NotReached) or (isinstance(found, Indeterminate) and self._is_repeatable):
            self._error = found
            self._later(self._again_ms())
        elif isinstance(found, Loading):
            self._error = found.error
            self._later(self._again_ms())
        else:
            self._end(found)

    def _again_ms(self) -> int:
        first_ms, last_ms = AGAIN_MS
        self._refusals += 1
        return min(first_ms << min(self._refusals - 1, 10), last_ms)

    def image_changed(self) -> None:
        self._stop_timer()
        self._asking.clock.call_soon(self.go_on)

    def _later(self, wait_ms: int) -> None:
        self._asking.wait(self)
        self._timer = self._asking.clock.call_after(wait_ms, self._waited)

    def _waited(self) -> None:
        self._timer = None
        self._asking.forget(self)
        self._needs_revision = 0  # the other node may be told of a change that this one is not
        self.go_on()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None

    def _end(self, answer: Answered | GoQueueError) -> None:
        self._asking.under_way -= 1
        self._on_answer(answer)


class Loading(GoQueueError):
    """It was not done, and may be soon."""

    retriable = True

    def __init__(self, error: GoQueueError) -> None:
        super().__init__(str(error))
        self.error = error


def _epoch(placement: Placement) -> int:
    return placement.epoch


def read_answer(answer: bytes | GoQueueError) -> Any:
    """Answered, NotHere, or an error."""
    if isinstance(answer, GoQueueError):
        return answer
    try:
        found = decode_answer(answer)
    except msgspec.MsgspecError as error:
        return Indeterminate(f"an answer that cannot be read: {error}")
    if is_loading(found):
        assert isinstance(found, Failed)
        return Loading(error_of(found))
    return error_of(found) if isinstance(found, Failed) else found


class RemoteCoordinator:
    """The coordinator of a ledger that another node leads. It is asked as one of this node is; what it decides comes
    later."""

    def __init__(self, asking: Asking, kind: str, where: Where, topic_id: bytes = b"") -> None:
        self._asking = asking
        self._kind = kind
        self._where = where
        self._topic_id = topic_id

    def submit(self, command: Command[R], on_reply: Callable[[R | GoQueueError], None] | None = None) -> None:
        kind = travels(command)

        def make(epoch: int, left_ms: int) -> Submit:
            number = self._where.number
            return Submit(self._kind, self._topic_id, number, epoch, kind.tag, encode_command(command), left_ms)

        def answered(answer: Answered | GoQueueError) -> None:
            if on_reply is None:
                return
            if isinstance(answer, GoQueueError):
                on_reply(answer.error if isinstance(answer, Loading) else answer)
                return
            on_reply(decode_reply(kind.tag, answer.place, answer.value))

        self._asking.ask(self._where, make, answered, is_repeatable=kind.is_repeatable)
