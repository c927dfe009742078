"""uvicorn's HTTP/1.1 connection with the limits that it lacks: on the time and size of heads, on the time of bodies,
and on clients that do not read. Whoever breaks one loses the connection, and nobody else notices.

Deadlines are looked at by a sweep over all connections: a timer for each of them would cost every request more.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any, Protocol
from urllib.parse import unquote

import httptools
import msgspec
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from goqueue.doors.http.asgi import CONNECTED
from goqueue.doors.http.cycle import make_cycle
from goqueue.doors.http.errors import BAD_REQUEST, HEAD_TOO_LARGE, TOO_MANY, TOO_SLOW, UNAVAILABLE
from goqueue.model.errors import GoQueueError
from goqueue.ports.listening import Listening
from goqueue.wire.asgi import ENDS_WITH_CLIENT, TURN
from goqueue.wire.rest.common import ErrorReply

HEADER_OVERHEAD_BYTES = 4
CHUNK_OVERHEAD_MAX = 8
"""Bytes around each byte of a chunked body: chunks of one byte have five."""


@dataclass
class HttpLimits:
    head_bytes_max: int = 64 * 1024
    head_s_max: float = 10
    """From the first byte of a connection, or of a request on it, to the end of the headers."""
    body_s_max: float = 60
    """From the end of the headers to the end of the body."""
    write_s_max: float = 60
    """How long a client may take nothing of what was sent to it."""
    linger_s_max: float = 2
    """How long a client that was refused may go on sending until it reads why."""
    idle_s_max: int = 60
    first_s_max: float = 0.5
    """How long a node that stops waits for the first request of a connection that it has just taken. If other nodes
    take over, it waits for `drain_s_max`: their clients are told nothing but to connect again."""
    drain_s_max: float = 2
    """How long a node that stops waits for the requests that it has begun to answer."""
    connections_max: int = 10_000
    sweep_s: float = 2
    age_s_max: float = inf
    """Of an older connection the next request is the last."""


class Owner(Protocol):
    limits: HttpLimits
    is_leaving: bool

    @property
    def arrive(self) -> Callable[[str], int]:
        """Whether one more connection from an address may be: 0, or the milliseconds until then."""

    def complain(self, peer: str, why: str) -> None: ...

    def lost(self) -> None: ...


class HttpConnection(HttpToolsProtocol):
    def __init__(
        self, config: Config, state: ServerState, app_state: dict[str, Any], owner: Owner, listening: Listening
    ) -> None:
        super().__init__(config, state, app_state)
        self._owner = owner
        self._listening = listening
        self._limits = owner.limits
        self._running: RequestResponseCycle | None = None
        """The request that is being answered; `cycle` is the last one that came."""
        self._head_bytes = 0
        self._overhead_bytes = 0
        self._is_in_body = False
        self._is_over = False
        """Whatever still comes is thrown away."""
        self._refusal: tuple[int, str, str] | None = None
        self._deadline = inf
        self._old_from = inf
        self._unsent_bytes = 0
        self._unsent_since = 0.0

    @property
    def is_idle(self) -> bool:
        """All that has come is answered, and nothing of a next request is here."""
        is_answered = self._running is None or self._running.response_complete
        return is_answered and not self._head_bytes and not self._is_in_body

    @property
    def is_awaited(self) -> bool:
        """Its client has connected and sent no request yet, or the beginning of one."""
        return not self._is_over and not self.transport.is_closing() and (self._running is None or self._head_bytes > 0)

    # -- from the event loop

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._deadline = self.loop.time() + self._limits.head_s_max
        self._old_from = self.loop.time() + self._limits.age_s_max
        try:
            self.app_state[CONNECTED] = self._listening.connected(transport)
        except GoQueueError as error:
            self._owner.complain(self._peer, str(error))
            self._is_over = True
            transport.close()
            return
        if len(self.connections) > self._limits.connections_max:
            self._refuse(UNAVAILABLE, "TOO_MANY_CONNECTIONS", "too many connections; try again later")
        elif delay_ms := self._owner.arrive((transport.get_extra_info("peername") or ("",))[0]):
            words = f"the quota connection_creation_rate of this address is used up; try again in {delay_ms} ms"
            self._refuse(TOO_MANY, "THROTTLING_QUOTA_EXCEEDED", words)

    def connection_lost(self, exc: Exception | None) -> None:
        for cycle in (self._running, *(queued for queued, _ in self.pipeline)):
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
                turn: Any = cycle.scope.get(TURN)
                if turn is not None:
                    turn.leave()
        self.pipeline.clear()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)
        self._owner.lost()

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """A client may say that it has sent all that it will send, and still read. One whose long poll or stream this
        ends would rather be gone.
        """
        cycle = self._running
        is_answering = cycle is not None and not cycle.response_complete
        if not is_answering or self._is_over or self._is_in_body or self._is_in_head or self.scheme == "https":
            return None  # with TLS, nobody who has said so can read any more
        assert cycle is not None
        if cycle.scope.get(ENDS_WITH_CLIENT):
            return None
        self._last_is(self.cycle)
        return True

    def data_received(self, data: bytes) -> None:
        if self._is_over:
            return
        if self._is_in_body:
            self._overhead_bytes += len(data)
        else:
            self._head_bytes += len(data)
            if self._deadline == inf and (self._running is None or self._running.response_complete):
                self._deadline = self.loop.time() + self._limits.head_s_max
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:  # to no protocol that we speak: the request is answered as any other
            self._last_is(self.cycle)
            self._is_over = True
        except httptools.HttpParserError as error:
            self._refuse(*(self._refusal or (BAD_REQUEST, "INVALID_HTTP", f"not HTTP/1.1: {_reason(error)}")))
            return
        if self._is_in_body:
            if self._overhead_bytes > self._limits.head_bytes_max:
                self._refuse(BAD_REQUEST, "INVALID_HTTP", "too little body in too many bytes")
        elif self._head_bytes > self._limits.head_bytes_max:
            self._refuse(*self._head_too_large())

    # -- from the parser

    @property
    def _is_in_head(self) -> bool:
        return not self._is_in_body and self._deadline != inf

    def on_message_begin(self) -> None:
        if self._deadline == inf:
            self._deadline = self.loop.time() + self._limits.head_s_max
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._is_in_body:  # a trailer, which nobody asked for
            return
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self._head_bytes > self._limits.head_bytes_max:  # or the beginning of a body came along
            size = len(self.url) + sum(len(name) + len(value) + HEADER_OVERHEAD_BYTES for name, value in self.headers)
            if size > self._limits.head_bytes_max:
                self._refusal = self._head_too_large()
                raise ValueError(self._refusal)
        self._head_bytes = self._overhead_bytes = 0
        self._is_in_body = True
        self._deadline = self.loop.time() + self._limits.body_s_max
        self._begin_request()
        if self._owner.is_leaving or self.loop.time() >= self._old_from:
            self._last_is(self.cycle)
        if not self.pipeline:
            self._running = self.cycle

    def _begin_request(self) -> None:
        parser, scope = self.parser, self.scope
        scope["method"] = parser.get_method().decode("ascii")
        version = parser.get_http_version()
        if version != "1.1":
            scope["http_version"] = version
        url = httptools.parse_url(self.url)
        scope["raw_path"], scope["query_string"] = url.path, url.query or b""
        path = url.path.decode("ascii")
        scope["path"] = unquote(path) if "%" in path else path
        before: RequestResponseCycle | None = self.cycle
        is_kept = version != "1.0" and parser.should_keep_alive()
        self.cycle = make_cycle(self, keep_alive=is_kept)
        if before is None or before.response_complete:
            self._start_asgi_task(self.cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))

    def on_body(self, body: bytes) -> None:
        self._overhead_bytes -= CHUNK_OVERHEAD_MAX * len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._is_in_body = False
        self._deadline = inf
        super().on_message_complete()

    # -- answers

    def on_response_complete(self) -> None:
        following = self.pipeline[-1][0] if self.pipeline else None
        super().on_response_complete()
        if following is not None:
            self._running = following

    def sweep(self, now: float) -> None:
        """Cut off who is too slow."""
        if now > self._deadline:
            if self._is_in_body and self.flow.read_paused:  # it is we who do not read
                self._deadline = now + self._limits.body_s_max
            elif self._is_over or (self._running is None and not self._head_bytes):
                self.transport.abort()
            else:
                part = "body" if self._is_in_body else "head"
                self._refuse(TOO_SLOW, "REQUEST_TOO_SLOW", f"the {part} of the request took too long to arrive")
        unsent = self.transport.get_write_buffer_size()
        if not unsent or unsent < self._unsent_bytes or not self._unsent_bytes:
            self._unsent_since = now
        elif now - self._unsent_since > self._limits.write_s_max:
            self._owner.complain(self._peer, "the client does not read its answers")
            self.transport.abort()
        self._unsent_bytes = unsent

    @property
    def _peer(self) -> str:
        return f"{self.client[0]}:{self.client[1]}" if self.client else "?"

    def _head_too_large(self) -> tuple[int, str, str]:
        most = self._limits.head_bytes_max
        return HEAD_TOO_LARGE, "HEAD_TOO_LARGE", f"path and headers of a request may have {most} bytes at most"

    def _last_is(self, cycle: RequestResponseCycle | None) -> None:
        """The connection ends with the answer to this request."""
        if cycle is not None:
            cycle.keep_alive = False

    def _refuse(self, status: int, code: str, message: str) -> None:
        """Say why, if nothing else is being said, and hang up. What came before is answered."""
        self._is_over = True
        self._deadline = inf
        self._owner.complain(self._peer, message)
        if self.transport.is_closing():
            return
        failed = self.cycle if self._is_in_body else None
        if failed is not None and failed is not self._running:
            self.pipeline.popleft()
        if self.pipeline:
            self._last_is(self.pipeline[0][0])
            return
        running = self._running
        if running is not None and not running.response_complete:
            if running is not failed:
                self._last_is(running)
                return
            running.disconnected = True
            running.message_event.set()
            if running.response_started:
                self.transport.abort()
                return
        self._say(status, code, message)

    def _say(self, status: int, code: str, message: str) -> None:
        body = msgspec.json.encode(ErrorReply(error=message, status=status, code=code))
        later = b"retry-after: 1\r\n" if status == TOO_MANY else b""
        head = b"content-type: application/json\r\ncontent-length: %d\r\n%bconnection: close\r\n\r\n" % (
            len(body),
            later,
        )
        names = b"".join(b"%b: %b\r\n" % pair for pair in self.server_state.default_headers)
        self.transport.write(STATUS_LINE[status] + names + head + body)
        if not self.transport.can_write_eof():  # with TLS
            self.transport.close()
            return
        # To close with something unread would take the answer back.
        self.transport.write_eof()
        self._deadline = self.loop.time() + self._limits.linger_s_max
        self.flow.resume_reading()


def _reason(error: httptools.HttpParserError) -> str:
    cause = error.__context__ or error
    return str(cause)[:200] if isinstance(cause, httptools.HttpParserError) else "its target cannot be read"
