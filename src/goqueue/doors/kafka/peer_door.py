"""The listener for other nodes of the cluster. A connection proves first that it knows the secret of the cluster; then
it may ask what no client may: to copy partitions, and to have things done in the name of the cluster.

Who answers which API stands in a table, to which the parts of the node add theirs. Answers are given in any order: what
waits, a fetch above all, holds up nothing else.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from goqueue.doors.kafka.complaints import Complaints
from goqueue.doors.kafka.connection import Connection
from goqueue.doors.kafka.frame_sizes import RECEIVE_BYTES
from goqueue.doors.kafka.limits import KafkaLimits
from goqueue.doors.kafka.surroundings import Clock, Timer
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.node_names import node_principal
from goqueue.ports.dice import Dice
from goqueue.ports.listening import Listening
from goqueue.ports.network import Listener
from goqueue.ports.peers import PeerHandler
from goqueue.telemetry.calls import call_each
from goqueue.telemetry.logs import get_logger
from goqueue.wire.kafka.codec import decode, encode
from goqueue.wire.kafka.errors import MalformedRequest
from goqueue.wire.kafka.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from goqueue.wire.kafka.notation import Message
from goqueue.wire.kafka.peering import (
    AUTHENTICATE_VERSION,
    HANDSHAKE_VERSION,
    MECHANISM,
    NONCE_BYTES,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    Hello,
    PeerHead,
    is_proof,
    peer_response,
    proof,
    read_peer_request,
)

STRANGER_BYTES_MAX = 4096
STRANGER_MS_MAX = 5000
STRANGERS_MAX = 200
"""Connections that have not proved themselves, and how long one may take for it."""
PENDING_MAX = 10_000
"""Requests of one connection that are not answered."""
STRANGER_LIMITS = KafkaLimits(frame_bytes_max=STRANGER_BYTES_MAX, produce_bytes_max=STRANGER_BYTES_MAX)
PEER_LIMITS = KafkaLimits(frame_bytes_max=256 * 1024 * 1024, produce_bytes_max=256 * 1024 * 1024)

events = get_logger("peer door")


class PeerClock(Clock, Protocol):
    def monotonic_s(self) -> float: ...


@dataclass(slots=True)
class _Guest:
    """What is known of a connection."""

    stranger_timer: Timer
    hello: Hello | None = None
    nonce: bytes = b""
    nonce_ms: int = 0
    is_proved: bool = False
    is_leaving: bool = False
    name: str | None = None
    """With TLS: what its certificate calls it."""
    pending: "dict[Asked, None]" = field(default_factory=dict)


class Asked:
    """A request of another node, as its handler sees it: see `PeerRequest`."""

    __slots__ = ("_door", "_guest", "_head", "_on_lost", "body", "connection", "node_id", "not_before_ms")

    def __init__(
        self, door: "PeerDoor", guest: _Guest, connection: Connection, head: PeerHead, body: memoryview
    ) -> None:
        assert guest.hello is not None
        self._door = door
        self._guest = guest
        self._head = head
        self._on_lost: Callable[[], None] | None = None
        self.connection = connection
        self.body = body
        self.node_id = guest.hello.node_id
        self.not_before_ms = guest.nonce_ms
        guest.pending[self] = None

    @property
    def version(self) -> int:
        return self._head.version

    def when_lost(self, call: Callable[[], None]) -> None:
        self._on_lost = call

    def lose(self) -> None:
        call, self._on_lost = self._on_lost, None
        if call is not None:
            call()

    def answer(self, body: Sequence[bytes | memoryview]) -> None:
        self._send(body, b"")

    def refuse(self, why: str) -> None:
        self._send((), why.encode() or b"refused")

    def _send(self, body: Sequence[bytes | memoryview], error: bytes) -> None:
        self._on_lost = None
        if self not in self._guest.pending:
            return  # its connection is gone, or it was answered
        del self._guest.pending[self]
        frame = peer_response(self._head.api_key, self._head.correlation_id, body, error)
        self.connection.expect_reply().send(frame)


class PeerDoor:
    """`handlers`: by API key. Each answers its request now or later."""

    def __init__(
        self, me: int, secret: Callable[[], bytes], clock: PeerClock, dice: Dice, listening: Listening
    ) -> None:
        self._me = me
        self._secret = secret
        self._clock = clock
        self._dice = dice
        self._listening = listening
        self.handlers: dict[int, PeerHandler] = {}
        self._shared = memoryview(bytearray(RECEIVE_BYTES))
        self.kept_bytes = 0
        self._server: Listener | None = None
        self._guests: dict[Connection, _Guest] = {}
        self._strangers = 0
        self._is_empty = asyncio.Event()
        self._is_empty.set()
        self.waiting_bytes = 0
        self.requests = 0
        self._complaints = Complaints(clock, events)
        self.refused = 0
        """Connections that did not prove themselves."""

    async def open(self, host: str, port: int) -> tuple[str, int]:
        """Listen; port 0 picks a free one. Returns the real address."""
        self._server = await self._listening.network.listen(self._connect, host, port)
        return host, self._server.port

    def _connect(self) -> Connection:
        connection = Connection(self._shared, STRANGER_LIMITS, self._clock, self)
        connection.on_made = self._made
        return connection

    def _made(self, connection: Connection, transport: asyncio.BaseTransport) -> None:
        timer = self._clock.call_after(STRANGER_MS_MAX, lambda: self._send_away(connection, "no proof came in time"))
        self._guests[connection] = _Guest(timer)
        self._strangers += 1
        self._is_empty.clear()
        if self._strangers > STRANGERS_MAX:
            self._oldest_stranger().close("too many connections without a proof")
        if self._listening.tls is not None:
            try:
                self._guests[connection].name = self._listening.connected(transport).principal
            except GoQueueError as error:
                self._send_away(connection, str(error))

    def _oldest_stranger(self) -> Connection:
        """It makes room for a newer one, which may be a node: that needs milliseconds for its proof, and somebody who
        holds all places without one would keep every node out."""
        connection, guest = next(
            (each, guest) for each, guest in self._guests.items() if not guest.is_proved and not guest.is_leaving
        )
        guest.is_leaving = True
        self.refused += 1
        return connection

    # -- from connections

    def handle(self, connection: Connection, frame: memoryview) -> None:
        self.requests += 1
        guest = self._guests.get(connection)
        if guest is None:
            return
        try:
            head = read_peer_request(frame)
            if guest.is_proved:
                self._dispatch(guest, connection, head, frame[head.body_at :])
            else:
                self._greet(guest, connection, head, frame[head.body_at :])
        except MalformedRequest as error:
            self.complain(connection, str(error))

    def _dispatch(self, guest: _Guest, connection: Connection, head: PeerHead, body: memoryview) -> None:
        asked = Asked(self, guest, connection, head, body)
        handler = self.handlers.get(head.api_key)
        if handler is None:
            asked.refuse(f"API {head.api_key} is not offered")
        elif len(guest.pending) > PENDING_MAX:
            asked.refuse("too many requests wait for their answers")
        else:
            try:
                handler(asked)
            except MalformedRequest:
                raise
            except Exception as error:  # noqa: BLE001  a bug of ours must not leave its asker waiting, nor touch another
                events.error("request failed", peer=connection.peer, api_key=head.api_key, exc_info=error)
                connection.close("a fault of the broker")

    def read_began(self, data: memoryview | None) -> None: ...

    def read_ended(self, connection: Connection, end: int) -> None: ...

    def complain(self, connection: Connection, why: str) -> None:
        self._complaints.log(connection.peer, why)
        connection.close(why)

    def lost(self, connection: Connection, _why: str) -> None:
        guest = self._guests.pop(connection, None)
        if guest is None:
            return
        guest.stranger_timer.cancel()
        if not guest.is_proved:
            self._strangers -= 1
        pending = list(guest.pending)
        guest.pending.clear()
        if not self._guests:
            self._is_empty.set()
        call_each(asked.lose for asked in pending)

    # -- the proof

    def _greet(self, guest: _Guest, connection: Connection, head: PeerHead, body: memoryview) -> None:
        if head.api_key == SASL_HANDSHAKE and head.version == HANDSHAKE_VERSION:
            shake, _ = decode(SaslHandshakeRequest, HANDSHAKE_VERSION, body)
            code = Code.NONE if shake.mechanism == MECHANISM else Code.UNSUPPORTED_SASL_MECHANISM
            _answer(connection, head, SaslHandshakeResponse(code, [MECHANISM]), HANDSHAKE_VERSION)
        elif head.api_key == SASL_AUTHENTICATE and head.version == AUTHENTICATE_VERSION:
            request, _ = decode(SaslAuthenticateRequest, AUTHENTICATE_VERSION, body)
            self._authenticate(guest, connection, head, bytes(request.auth_bytes))
        else:
            self._send_away(connection, f"API {head.api_key} was asked without a proof")

    def _authenticate(self, guest: _Guest, connection: Connection, head: PeerHead, words: bytes) -> None:
        if guest.hello is None:
            hello = Hello.decode(words)
            if hello.wanted_id != self._me:
                self._deny(connection, head, f"this is node {self._me}, not {hello.wanted_id}")
                return
            if self._listening.tls is not None and guest.name != node_principal(hello.node_id):
                self._deny(connection, head, f"the certificate of {guest.name} is not that of node {hello.node_id}")
                return
            guest.hello, guest.nonce = hello, self._dice.randbytes(NONCE_BYTES)
            guest.nonce_ms = int(self._clock.monotonic_s() * 1000)
            answer = guest.nonce + proof(self._secret(), b"asked", hello, guest.nonce)
        elif is_proof(words, self._secret(), b"asking", guest.hello, guest.nonce):
            guest.is_proved, answer = True, b""
            guest.stranger_timer.cancel()
            self._strangers -= 1
            connection.trust(PEER_LIMITS)
        else:
            self._deny(connection, head, "the proof does not hold: another cluster, or a stranger")
            return
        _answer(connection, head, SaslAuthenticateResponse(auth_bytes=answer), AUTHENTICATE_VERSION)

    def _deny(self, connection: Connection, head: PeerHead, why: str) -> None:
        denied = SaslAuthenticateResponse(Code.SASL_AUTHENTICATION_FAILED, why)
        _answer(connection, head, denied, AUTHENTICATE_VERSION)
        self._clock.call_soon(lambda: self._send_away(connection, why))

    def _send_away(self, connection: Connection, why: str) -> None:
        self.refused += 1
        self.complain(connection, why)

    # -- the end

    def stop_reading(self) -> None:
        """The first step of a stop: nothing new comes in, what came may still be answered."""
        if self._server is not None:
            self._server.close()
            for connection in self._guests:
                connection.stop_reading()

    async def close(self) -> None:
        """Returns when no connection is left."""
        if self._server is None:
            return
        self._server.close()
        for connection in list(self._guests):
            connection.close("the node stops")
        drain = self._clock.call_after(KafkaLimits.drain_ms_max, self._abort)
        await self._is_empty.wait()
        drain.cancel()
        await self._server.wait_closed()
        self._server = None

    def _abort(self) -> None:
        for connection in list(self._guests):
            connection.abort("the node stops")


def _answer(connection: Connection, head: PeerHead, response: Message, version: int) -> None:
    body = (encode(response, version),)
    connection.expect_reply().send(peer_response(head.api_key, head.correlation_id, body))
