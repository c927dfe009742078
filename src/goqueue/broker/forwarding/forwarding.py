"""Questions to other nodes and their answers, by kind: a whole request of a client, or a call of the broker.

All of them are requests of one API of the peer door. Whoever asks may take its question back, as a client that leaves
does. What a node that is asked will not do is refused before anything was done, so that it may be asked elsewhere.
"""

from collections.abc import Callable
from functools import partial

import msgspec

from goqueue.broker.forwarding.homes import Homes
from goqueue.model.errors import GoQueueError, NotReached
from goqueue.ports.forwarding import NotHere, Serve, Stop
from goqueue.ports.peers import OnAnswer, PeerRequest, Peers
from goqueue.runtime.clock import Clock, Timer
from goqueue.telemetry.logs import get_logger

FORWARD = 20002
"""The API key."""
CANCEL = "cancel"
PATIENCE_MS = 4500
"""How long the next leader is looked for: a machine that vanished is replaced within four seconds, and some clients of
HTTP give up after five."""
LOOK_AGAIN_MS = 50
"""What was not reached may be, though nothing has changed in the metadata."""
NEWS_MS_MAX = 1000
"""How long one who is asked waits for metadata that the asker has already."""
CANCEL_MS_MAX = 2000
UNDER_WAY_MAX = 10_000
NUMBERS_PER_MS_BITS = 20

events = get_logger("forwarding")


class Question(msgspec.Struct, array_like=True):
    kind: str
    number: int
    """Of the node that asks: by it the question is taken back."""
    timeout_ms: int
    payload: bytes
    revision: int = 0
    """Of the metadata by which the asker has chosen this node."""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Question).decode


class Asked:
    """A question that is under way."""

    __slots__ = ("_forwarding", "is_over", "node_id", "number")

    def __init__(self, forwarding: "Forwarding", node_id: int, number: int) -> None:
        self._forwarding = forwarding
        self.node_id = node_id
        self.number = number
        self.is_over = False

    def cancel(self) -> None:
        """Its answer is of no use any more. It comes all the same."""
        if not self.is_over:
            self._forwarding.take_back(self)


class Forwarding:
    def __init__(self, peers: Peers, homes: Homes, clock: Clock) -> None:
        self.homes = homes
        self.clock = clock
        self._peers = peers
        self._number = clock.now_ms() << NUMBERS_PER_MS_BITS
        """Not what it was in an earlier life of this node, of which others may still work on questions."""
        self._kinds: dict[str, Serve] = {}
        self._under_way: dict[tuple[int, int], Stop | None] = {}
        """By the node that asks and its number: how to stop what is done for it."""
        self._waiting: dict[_Wait, None] = {}

    def image_changed(self) -> None:
        """There is newer metadata: somebody may lead what was looked for."""
        for each in [each for each in self._waiting if each.is_so()]:
            self._end_wait(each)

    def when(self, is_so: Callable[[], bool], call: Callable[[], None], ms_max: int) -> None:
        """Call as soon as the metadata makes it so, or when the time is over."""
        if is_so():
            self.clock.call_soon(call)
            return
        wait = _Wait(is_so, call)
        self._waiting[wait] = None
        wait.timer = self.clock.call_after(ms_max, lambda: self._end_wait(wait))

    def _end_wait(self, wait: "_Wait") -> None:
        if self._waiting.pop(wait, self) is None:
            if wait.timer is not None:
                wait.timer.cancel()
            self.clock.call_soon(wait.call)

    # -- asking

    def ask(self, node_id: int, kind: str, payload: bytes, on_done: OnAnswer, timeout_ms: int) -> Asked:
        """`on_done` is called once, with NotReached if it was not done, with Indeterminate if nobody knows."""
        self._number += 1
        asked = Asked(self, node_id, self._number)

        def done(answer: bytes | GoQueueError) -> None:
            asked.is_over = True
            on_done(answer)

        body = _encode(Question(kind, asked.number, timeout_ms, payload, self.homes.revision))
        self._peers.ask(node_id, FORWARD, body, done, timeout_ms)
        return asked

    def take_back(self, asked: Asked) -> None:
        body = _encode(Question(CANCEL, asked.number, CANCEL_MS_MAX, b""))
        self._peers.ask(asked.node_id, FORWARD, body, lambda _answer: None, CANCEL_MS_MAX)

    def when_moved(self, node_id: int | None, find: Callable[[], int | None], call: Callable[[], None]) -> None:
        """Call when the home that `find` gives is another than `node_id`, or might be reached by now."""
        self.when(lambda: find() not in (None, node_id), call, LOOK_AGAIN_MS)

    def ask_home(
        self, find: Callable[[], int | None], kind: str, payload: bytes, on_done: OnAnswer, timeout_ms: int
    ) -> "AskedHome":
        """Of whoever `find` names, or will name soon. NotHere: that is this node by now."""
        asked = AskedHome(self, find, (kind, payload, timeout_ms), on_done)
        self.clock.call_soon(asked.go_on)
        return asked

    # -- being asked

    def serve(self, kind: str, serve: Serve) -> None:
        assert kind not in self._kinds, f"two serve {kind}"
        self._kinds[kind] = serve

    def handle(self, request: PeerRequest) -> None:
        """What the peer door does with requests of this API."""
        try:
            question = _decode(request.body)
        except msgspec.DecodeError as error:
            request.refuse(f"not understood: {error}")
            return
        key = request.node_id, question.number
        if question.kind == CANCEL:
            self._stop(key)
            request.answer((b"",))
            return
        serve = self._kinds.get(question.kind)
        if serve is None or len(self._under_way) >= UNDER_WAY_MAX:
            request.refuse(f"{question.kind!r} is not served here" if serve is None else "too much is under way")
            return
        self._under_way[key] = None
        request.when_lost(lambda: self._stop(key))
        Served(self, request, question, serve, key).begin()

    def begin(self, key: tuple[int, int], serve: Callable[[], Stop | None]) -> None:
        """Unless the one that asked has taken it back."""
        if key not in self._under_way:
            return
        try:
            stop = serve()
        except BaseException:
            self._under_way.pop(key, None)
            raise
        if key in self._under_way:
            self._under_way[key] = stop

    def end(self, key: tuple[int, int]) -> None:
        self._under_way.pop(key, None)

    def _stop(self, key: tuple[int, int]) -> None:
        stop = self._under_way.pop(key, None)
        if stop is not None:
            stop()


class Served:
    """A question of another node. What it is about may be given to this node by metadata that only the other has."""

    def __init__(
        self, forwarding: Forwarding, request: PeerRequest, question: Question, serve: Serve, key: tuple[int, int]
    ) -> None:
        self._forwarding = forwarding
        self._request = request
        self._question = question
        self._serve = serve
        self._key = key
        self._has_waited = False

    def begin(self) -> None:
        question = self._question
        serve = partial(self._serve, question.payload, question.timeout_ms, self._answered)
        self._forwarding.begin(self._key, serve)

    def _answered(self, reply: bytes | NotHere) -> None:
        if isinstance(reply, bytes):
            self._forwarding.end(self._key)
            self._request.answer((reply,))
        elif self._has_waited or self._is_as_new():
            self._forwarding.end(self._key)
            self._request.refuse(str(reply))
        else:
            self._has_waited = True
            self._forwarding.when(self._is_as_new, self._begin_again, NEWS_MS_MAX)

    def _is_as_new(self) -> bool:
        return self._forwarding.homes.revision >= self._question.revision

    def _begin_again(self) -> None:
        try:
            self.begin()
        except BaseException:
            self._request.refuse("a fault of the node")
            raise


class _Wait:
    def __init__(self, is_so: Callable[[], bool], call: Callable[[], None]) -> None:
        self.is_so = is_so
        self.call = call
        self.timer: Timer | None = None


class AskedHome:
    """A question to the home of something, which may move meanwhile."""

    def __init__(
        self,
        forwarding: Forwarding,
        find: Callable[[], int | None],
        question: tuple[str, bytes, int],
        on_done: OnAnswer,
    ) -> None:
        self._forwarding = forwarding
        self._find = find
        self._question = question
        self._on_done = on_done
        self._asked: Asked | None = None
        self._is_cancelled = False
        self._give_up_s = forwarding.clock.monotonic_s() + PATIENCE_MS / 1000

    def go_on(self) -> None:
        node_id = self._find()
        if self._is_cancelled:
            return
        if node_id == self._forwarding.homes.me:
            self._on_done(NotHere("it is led here"))
        elif node_id is None:
            self._later(None, not_reached("what was asked for"))
        else:
            kind, payload, timeout_ms = self._question
            self._asked = self._forwarding.ask(node_id, kind, payload, partial(self._told, node_id), timeout_ms)

    def _told(self, node_id: int, answer: bytes | GoQueueError) -> None:
        if isinstance(answer, NotReached):
            self._later(node_id, answer)
        else:
            self._on_done(answer)

    def _later(self, node_id: int | None, error: GoQueueError) -> None:
        if self._is_cancelled or self._forwarding.clock.monotonic_s() >= self._give_up_s:
            self._on_done(error)
        else:
            self._forwarding.when_moved(node_id, self._find, self.go_on)

    def cancel(self) -> None:
        self._is_cancelled = True
        if self._asked is not None:
            self._asked.cancel()


def not_reached(what: str) -> NotReached:
    return NotReached(f"{what} has no leader that can be reached at the moment; try again")
