"""One request on its way through the door, and the way back."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, TypeAlias, TypeVar, overload

from goqueue.broker.accounts.quotas import Allowance
from goqueue.broker.view.view import View
from goqueue.doors.kafka.confirming import RESTS_ON, refuse
from goqueue.doors.kafka.connection import Connection
from goqueue.doors.kafka.refusing import forbidden
from goqueue.doors.kafka.reply import Reply
from goqueue.doors.kafka.sessions import Sessions
from goqueue.model.access import FORBIDDEN
from goqueue.model.again import Again
from goqueue.model.codes import Code
from goqueue.model.errors import CoordinatorFailed, CoordinatorLoading, GoQueueError, NotCoordinator
from goqueue.model.listener import Listener
from goqueue.model.quotas import CONSUMED, PRODUCED, REQUESTS, TIME, QuotaKey
from goqueue.model.refusal import Refused
from goqueue.telemetry.logs import get_logger
from goqueue.wire.kafka.apis import APIS
from goqueue.wire.kafka.frames import RequestHeader, response_frame
from goqueue.wire.kafka.notation import Message

PRODUCE, FETCH, SHARE_FETCH = 0, 1, 78
PARTLY_FROM = {19: 6, 20: 5, 37: 3}
"""Makes and deletes topics and partitions: from this version on a client asks again for those that were too many."""
PER_TURN = 50
"""Names of a request that are answered before others get their turn: each takes some 10 to 200 us."""
T = TypeVar("T")
NOT_ACTIVE = (CoordinatorLoading, CoordinatorFailed, NotCoordinator)
OnDone: TypeAlias = Callable[[], object]

events = get_logger("kafka door")


WILDCARDS = frozenset(("", "0.0.0.0", "::"))  # noqa: S104  nothing is bound here


class Endpoint:
    """Where clients of one listener reach this node: what they are told to dial."""

    __slots__ = ("host", "http", "listener", "port")

    def __init__(self, host: str, port: int, listener: Listener) -> None:
        self.host = host
        self.port = port
        self.listener = listener
        self.http = ""
        """The HTTP door, as host:port, or with https:// before it; empty: there is none."""

    def tell_http(self, host: str, port: int, *, has_tls: bool = False) -> None:
        """Let clients find the HTTP door. Where it listens everywhere, they reach it as they reach this one."""
        shown = self.host if host in WILDCARDS else host
        address = f"[{shown}]:{port}" if ":" in shown else f"{shown}:{port}"
        self.http = f"https://{address}" if has_tls else address


class Request:
    __slots__ = (
        "allowance",
        "broker",
        "connection",
        "endpoint",
        "header",
        "is_in_debt",
        "message",
        "reply",
        "sessions",
        "throttle_ms",
    )

    def __init__(
        self,
        broker: View,
        endpoint: Endpoint,
        sessions: Sessions,
        connection: Connection,
        header: RequestHeader,
        message: Any,
        size: int = 0,
    ) -> None:
        self.broker = broker
        self.endpoint = endpoint
        self.sessions = sessions
        self.connection = connection
        self.header = header
        self.message = message
        self.reply: Reply = connection.expect_reply(1, size)
        self.allowance: Allowance | None = None
        self.throttle_ms = 0
        self.is_in_debt = False
        """Its client has read more than it may in a second: for now it is shown nothing."""

    def charge(self, allowance: Allowance, size: int) -> None:
        """What came, by the quotas of whoever sent it."""
        self.allowance = allowance
        self._throttle(max(allowance.take(REQUESTS, 1), allowance.owed_ms(TIME)))
        if self.header.api_key == PRODUCE:
            self._throttle(allowance.take(PRODUCED, size))
        elif allowance.limits_mutations:
            is_strict = self.header.api_version >= PARTLY_FROM.get(self.header.api_key, 0)
            self.broker = self.broker.charged(allowance, self._throttle, is_strict=is_strict)
        if self.header.api_key in (FETCH, SHARE_FETCH):
            owed_ms = allowance.owed_ms(CONSUMED)
            self.is_in_debt = owed_ms > 0
            self._throttle(owed_ms)

    def spent(self, allowance: Allowance, seconds: float) -> None:
        """So long everybody else had to wait for it. It may be answered already: then the next one is told."""
        self._throttle(allowance.take_time(seconds))

    def count(self, key: QuotaKey, messages: int) -> None:
        """So many are published, or read, by whoever asks."""
        if self.allowance is not None:
            self._throttle(self.allowance.take_messages(key, messages))

    def _throttle(self, delay_ms: int) -> None:
        """As Kafka does: the answer tells it and leaves at once, and what comes next is read that much later."""
        if delay_ms:
            self.throttle_ms = max(self.throttle_ms, delay_ms)
            self.connection.mute(delay_ms)

    @property
    def version(self) -> int:
        return self.header.api_version

    def each(self, items: Sequence[T], take: Callable[[T], object], then: Callable[[], object] | None = None) -> None:
        """`take` every one of them, and `then` go on. Many are taken in turns, since others want to be served too."""
        rest = iter(items)
        left = len(items)

        def turn(again: Again) -> None:
            nonlocal left
            left -= PER_TURN
            for item in islice(rest, PER_TURN):
                take(item)
            if left > 0:
                self.broker.clock.call_soon(again)
            elif then is not None:
                then()

        Again(turn)()

    def walk(self, pages: Iterator[T], take: Callable[[T, Callable[[], object]], object], then: OnDone) -> None:
        """`take` one page after the other, and `then` go on. Whoever has taken one says so, and others have their turn
        before the next: no client chose how long a list of all groups is.
        """

        def turn(again: Again, page: T | None) -> None:
            if page is None:
                then()
            else:
                take(page, partial(taken, again))

        def taken(again: Again) -> None:
            following = next(pages, None)
            if following is None:
                then()
            else:
                self.broker.clock.call_soon(partial(again, following))

        Again(turn)(next(pages, None))

    def answer(self, response: Message) -> None:
        states = RESTS_ON.get(self.header.api_key)
        if states is None:
            self._send(response)
        else:
            self.broker.durable.confirm(states, partial(self._confirmed, response))

    def _confirmed(self, response: Message, error: GoQueueError | None) -> None:
        if error is not None:
            refuse(response)
        self._send(response)

    def _send(self, response: Message) -> None:
        try:
            frame = response_frame(response, self.header.api_version, self.header.correlation_id)
            if self.allowance is not None:
                frame = self._charged(self.allowance, response, frame)
        except Exception as error:  # noqa: BLE001  a bug of ours; whoever called may have others to answer
            events.error("response failed", response=type(response).__name__, version=self.version, exc_info=error)
            self.connection.close("a fault of the broker")
            return
        self.reply.send(frame)  # type: ignore[arg-type]

    def _charged(self, allowance: Allowance, response: Message, frame: list[Any]) -> list[Any]:
        """What leaves, if it was read from topics."""
        if self.header.api_key in (FETCH, SHARE_FETCH):
            self._throttle(allowance.take(CONSUMED, sum(map(len, frame))))
        if not self.throttle_ms or "throttle_time_ms" not in response.__struct_fields__:
            return frame
        response.throttle_time_ms = self.throttle_ms  # type: ignore[attr-defined]
        return response_frame(response, self.header.api_version, self.header.correlation_id)

    def fail(self, error: Exception) -> None:
        """A bug of ours must not leave its client waiting, nor a coordinator that is not active, nor a refusal."""
        if isinstance(error, Refused) and error.code in FORBIDDEN:
            self._forbid(error)
            return
        if isinstance(error, NOT_ACTIVE):
            self._refuse_for_now(error)
            return
        events.error("request failed", peer=self.connection.peer, exc_info=error)
        self.connection.close("a fault of the broker")

    def _forbid(self, error: Refused) -> None:
        response = forbidden(APIS[self.header.api_key], self.version, self.message, error)
        if response is None:
            self.connection.close(str(error))
        else:
            self._send(response)

    def _refuse_for_now(self, error: GoQueueError) -> None:
        """With the error, if an answer as a whole can have one; else the client has to connect, and ask, again."""
        response = APIS[self.header.api_key].response
        if "error_code" in response.__struct_fields__:
            self._send(response(error_code=failure_code(error)))
        else:
            self.connection.close(str(error))

    def answer_nothing(self) -> None:
        """The client asked for no reply (acks 0)."""
        self.reply.send(())


@overload
def failure_code(reply: GoQueueError) -> Code: ...


@overload
def failure_code(reply: object) -> Code | None: ...


def failure_code(reply: object) -> Code | None:
    """What to tell a client whose coordinator could not answer: it asks again, or looks for another first. None: it did
    answer."""
    if isinstance(reply, CoordinatorLoading):
        return Code.COORDINATOR_LOAD_IN_PROGRESS
    if isinstance(reply, NotCoordinator):
        return Code.NOT_COORDINATOR
    if isinstance(reply, Refused) and (reply.code in FORBIDDEN or reply.code is Code.POLICY_VIOLATION):
        return reply.code
    return Code.COORDINATOR_NOT_AVAILABLE if isinstance(reply, GoQueueError) else None
