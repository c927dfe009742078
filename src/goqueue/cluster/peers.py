"""The way to other nodes: connections that are kept, made when they are first needed, and proved on both sides.

Whoever asks is told in the end, and whether what it asked may have been done. Nothing is asked twice here. A node whose
connection broke is suspected until it is reached again; one that refused two dials is told of: it is most likely dead.
From one whose session has ended no answer is waited for: others lead what it led.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from goqueue.cluster.peer_connection import OnBody, PeerConnection
from goqueue.model.errors import GoQueueError, NotReached
from goqueue.model.placements import NodeInfo
from goqueue.ports.dice import Dice
from goqueue.ports.network import Network
from goqueue.ports.peers import OnAnswer
from goqueue.runtime.clock import Clock, Timer
from goqueue.telemetry.logs import get_logger
from goqueue.wire.kafka.codec import decode, encode
from goqueue.wire.kafka.errors import MalformedRequest
from goqueue.wire.kafka.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from goqueue.wire.kafka.peering import (
    AUTHENTICATE_VERSION,
    HANDSHAKE_VERSION,
    MECHANISM,
    NONCE_BYTES,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    Hello,
    is_proof,
    proof,
)

DIAL_S_MAX = 2.0
"""With the proof."""
DIAL_AGAIN_MS = 50
"""After a dial that was refused when a connection broke."""
BACKOFF_MS = (50, 1000)
"""After dials that failed: the first, and the longest. Meanwhile nobody is made to wait."""
AHEAD_DIALS_MAX = 10
"""Of a node that is back, before anybody asks it. It joins before its door is open, so that it may refuse some."""
WAITING_MAX = 1000
"""Requests that wait for a connection."""
REFUSALS = 2
"""Of dials, after a connection broke, by which a node is taken for dead."""
SUSPECTED_S = 1.0
"""How long nobody is sent to a node whose connection broke, until it is reached again, or that is silent still. By then
its session was ended, if it is dead."""
LAST_WORDS_MS = 250
"""How long a node whose session has ended may be silent before its connections are given up. One that has only lost the
session still answers."""
GENERAL = "general"

events = get_logger("peers")


class _Waiting(NamedTuple):
    api_key: int
    body: bytes
    on_done: OnBody
    deadline_s: float


class Peers:
    """The port of that name, for one node of a cluster."""

    def __init__(
        self,
        me: int,
        secret: Callable[[], bytes],
        find: Callable[[int], NodeInfo | None],
        network: Network,
        clock: Clock,
        dice: Dice,
    ) -> None:
        """`secret`: of the cluster. `find`: a node that is alive, by its id."""
        self.me = me
        self.secret = secret
        self.find = find
        self.network_to: Callable[[int], Network] = lambda node_id: network
        """By which a node is dialed."""
        self.clock = clock
        self.dice = dice
        self.on_refused: Callable[[NodeInfo], None] = lambda node: None
        """Called with the life of a node whose connection broke and that refused two dials since."""
        self._suspected: dict[int, tuple[int, float]] = {}
        """By node: in which life, and until when."""
        self._broken: dict[int, tuple[int, float]] = {}
        """Likewise those whose connection broke, and that have not been reached since."""
        self._refusing: dict[int, int] = {}
        """By node: in which life it refused a dial after that. Its process is gone, and its machine is there."""
        self._ways: dict[tuple[int, str], PeerWay] = {}
        self._dials: dict[asyncio.Task[None], None] = {}

    def ask(self, node_id: int, api_key: int, body: bytes, on_done: OnAnswer, timeout_ms: int) -> None:
        node = self.find(node_id)
        if node is not None and self._is_in(
            self._suspected, node
        ):  # it would be waited for in vain, and not be known as not done
            why = NotReached(f"node {node_id} does not answer at the moment")
            self.clock.call_soon(lambda: on_done(why))
            return

        def done(answer: memoryview | GoQueueError) -> None:
            on_done(answer if isinstance(answer, GoQueueError) else bytes(answer))

        self.way(node_id).ask(api_key, body, done, timeout_ms)

    def way(self, node_id: int, purpose: str = GENERAL) -> "PeerWay":
        """One for each purpose, with a connection of its own: what is large need not hold up what is urgent."""
        found = self._ways.get((node_id, purpose))
        if found is None:
            found = self._ways[node_id, purpose] = PeerWay(self, node_id, purpose)
        return found

    def is_suspected(self, node: NodeInfo) -> bool:
        """It is most likely dead, and the metadata does not know it yet."""
        return self._is_in(self._suspected, node) or self._is_in(self._broken, node)

    def _is_in(self, known: dict[int, tuple[int, float]], node: NodeInfo) -> bool:
        if not known:
            return False
        incarnation, until_s = known.get(node.node_id, (0, 0.0))
        return incarnation == node.incarnation and self.clock.monotonic_s() < until_s

    def is_refusing(self, node: NodeInfo) -> bool:
        """Whoever dials it is told so at once."""
        return self._refusing.get(node.node_id) == node.incarnation

    def refused(self, node: NodeInfo) -> None:
        self._refusing[node.node_id] = node.incarnation
        self.suspect(node)

    def suspect(self, node: NodeInfo) -> None:
        self._suspected[node.node_id] = node.incarnation, self.clock.monotonic_s() + SUSPECTED_S

    def broke(self, node: NodeInfo) -> None:
        """Clients of a node that dies hear of it in the same moment, and ask at once who leads now."""
        self._broken[node.node_id] = node.incarnation, self.clock.monotonic_s() + SUSPECTED_S

    def reached(self, node_id: int) -> None:
        self._suspected.pop(node_id, None)
        self._broken.pop(node_id, None)
        self._refusing.pop(node_id, None)

    def nodes_changed(self) -> None:
        """Some may have come or gone."""
        for way in self._ways.values():
            way.look_who_is_there()

    def dial(self, way: "PeerWay") -> None:
        task = asyncio.get_running_loop().create_task(way.dial())
        self._dials[task] = None
        task.add_done_callback(lambda task: self._dials.pop(task, None))

    async def close(self) -> None:
        """Whoever waits is told so; nothing is under way when this returns."""
        for way in self._ways.values():
            way.close()
        for task in list(self._dials):
            task.cancel()
        await asyncio.gather(*self._dials, return_exceptions=True)


class PeerWay:
    """To one node, for one purpose."""

    def __init__(self, peers: Peers, node_id: int, purpose: str) -> None:
        self.node_id = node_id
        self._purpose = purpose
        self._peers = peers
        self._clock = peers.clock
        self._connection: PeerConnection | None = None
        self._life: NodeInfo | None = None
        """Of the node, as it was when the connection was proved."""
        self._broken_life: NodeInfo | None = None
        """Its connection broke, and it has not been reached since."""
        self._refusals = 0
        self._connections = 0
        """That were made so far."""
        self._waiting: deque[_Waiting] = deque()
        self._is_dialing = False
        self._ahead_life = self._ahead_dials = 0
        """In which life it is dialed before anybody asks it, and how often that may still fail."""
        self._failures = 0
        self._not_before_s = 0.0
        self._timer: Timer | None = None
        self._is_closed = False

    def ask(self, api_key: int, body: bytes, on_done: OnBody, timeout_ms: int) -> None:
        """As `Peers.ask`, but that the body of the answer is handed on as it came."""
        connection = self._connection
        if connection is not None and self._is_where_it_was():
            connection.send(api_key, body, on_done, timeout_ms)
            return
        why = self._why_not()
        if why:
            self._clock.call_soon(lambda: on_done(NotReached(why)))
            return
        self._waiting.append(_Waiting(api_key, body, on_done, self._clock.monotonic_s() + timeout_ms / 1000))
        self._dial()

    @property
    def connection_number(self) -> int:
        """Of the connection that there is, among all that were made; 0: there is none."""
        return 0 if self._connection is None else self._connections

    def _why_not(self) -> str:
        if self._is_closed:
            return "this node stops"
        if len(self._waiting) >= WAITING_MAX:
            return f"too many requests wait for node {self.node_id}"
        if not self._is_dialing and self._clock.monotonic_s() < self._not_before_s:
            return f"node {self.node_id} could not be reached a moment ago"
        return ""

    def _is_where_it_was(self) -> bool:
        """Else the connection is closed: a node that has another address now is reached there."""
        now = self._peers.find(self.node_id)
        if now is None or self._life is None or now.peer == self._life.peer:
            return True
        assert self._connection is not None
        self._connection.give_up()
        return False

    def look_who_is_there(self) -> None:
        """In another life, or none, the node leads nothing of what it was asked for."""
        connection, life, now = self._connection, self._life, self._peers.find(self.node_id)
        if connection is None and now is not None:
            self._connect_ahead(now)
        if connection is None or life is None or (now is not None and now.incarnation == life.incarnation):
            return
        self._life = life if now is None else now
        heard = connection.received

        def look() -> None:
            if connection.received == heard and connection.is_waited_for:
                connection.give_up("its session has ended, and it does not answer")

        self._clock.call_after(LAST_WORDS_MS, look)

    def _connect_ahead(self, now: NodeInfo) -> None:
        """It is back, and may lead something in a moment: nobody is to wait for a connection then."""
        if self._ahead_life != now.incarnation:
            self._ahead_life, self._ahead_dials = now.incarnation, AHEAD_DIALS_MAX
            self._dial()

    def silent(self) -> None:
        """It does not answer what it should have answered by now: nobody else is sent there, for a while."""
        node = self._peers.find(self.node_id)
        if node is not None:
            self._peers.suspect(node)

    def heard(self) -> None:
        self._peers.reached(self.node_id)

    # -- dialing

    def _dial(self) -> None:
        if not self._is_dialing and not self._is_closed:
            self._is_dialing = True
            self._peers.dial(self)

    async def dial(self) -> None:
        life, connection, why, is_refused = self._peers.find(self.node_id), None, "", False
        try:
            if life is None or life.peer is None:
                raise NotReached("it is not there")
            async with asyncio.timeout(DIAL_S_MAX):
                connection = await self._connect(life)
        except TimeoutError:
            why = "it did not answer in time"
        except (OSError, UnicodeError, GoQueueError, MalformedRequest) as error:
            why, is_refused = str(error), isinstance(error, ConnectionRefusedError)
        finally:
            self._is_dialing = False
        if connection is not None and life is not None:
            self._connected(connection, life)
        elif is_refused:
            self._refused(why)
        else:
            self._failed(why)

    async def _connect(self, life: NodeInfo) -> PeerConnection:
        assert life.peer is not None
        connection = PeerConnection(f"node {self.node_id}", self._clock, self._lost)
        try:
            await self._peers.network_to(self.node_id).connect(lambda: connection, *life.peer)
            await self._prove(connection)
        except BaseException:
            connection.give_up()
            raise
        return connection

    async def _prove(self, connection: PeerConnection) -> None:
        """NotReached: the other side does not know the secret, or takes this one for a stranger."""
        peers, timeout_ms = self._peers, DIAL_S_MAX * 1000
        secret = peers.secret()
        shake = encode(SaslHandshakeRequest(MECHANISM), HANDSHAKE_VERSION)
        answer = await connection.ask(SASL_HANDSHAKE, shake, timeout_ms)
        handshake, _ = decode(SaslHandshakeResponse, HANDSHAKE_VERSION, answer)
        if handshake.error_code:
            raise NotReached(f"it does not know {MECHANISM}")
        hello = Hello(peers.dice.randbytes(NONCE_BYTES), peers.me, self.node_id)
        answered = await self._authenticate(connection, hello.encode())
        nonce, given = answered[:NONCE_BYTES], answered[NONCE_BYTES:]
        if not is_proof(given, secret, b"asked", hello, nonce):
            raise NotReached("it does not know the secret of this cluster")
        await self._authenticate(connection, proof(secret, b"asking", hello, nonce))

    async def _authenticate(self, connection: PeerConnection, words: bytes) -> bytes:
        request = encode(SaslAuthenticateRequest(words), AUTHENTICATE_VERSION)
        answer = await connection.ask(SASL_AUTHENTICATE, request, DIAL_S_MAX * 1000)
        answered, _ = decode(SaslAuthenticateResponse, AUTHENTICATE_VERSION, answer)
        if answered.error_code:
            raise NotReached(answered.error_message or "it refused the proof")
        return bytes(answered.auth_bytes)

    def _connected(self, connection: PeerConnection, life: NodeInfo) -> None:
        if connection.is_closed or self._is_closed:
            connection.give_up()
            self._failed("the connection was lost")
            return
        self._peers.reached(self.node_id)
        self._connection, self._life, self._broken_life = connection, life, None
        self._connections += 1
        self._ahead_dials = 0
        self._failures, self._refusals, self._not_before_s = 0, 0, 0.0
        waiting, self._waiting = self._waiting, deque()
        now_s = self._clock.monotonic_s()
        for one in waiting:
            left_ms = (one.deadline_s - now_s) * 1000
            if left_ms > 0:
                connection.send(one.api_key, one.body, one.on_done, left_ms)
            else:
                one.on_done(NotReached(f"node {self.node_id} could not be reached in time"))

    def _refused(self, why: str) -> None:
        life = self._broken_life
        self._refusals += 1
        self._failed(why)
        if life is None or self._is_closed:
            return
        self._peers.refused(life)
        if self._refusals < REFUSALS:
            self._timer = self._clock.call_after(DIAL_AGAIN_MS, self._dial)
        elif self._refusals == REFUSALS:
            events.warning("node refuses connections", node=self.node_id, incarnation=life.incarnation)
            self._broken_life = None
            self._peers.on_refused(life)

    def _failed(self, why: str) -> None:
        first_ms, last_ms = BACKOFF_MS
        pause_ms = min(first_ms << min(self._failures, 10), last_ms)
        self._not_before_s = self._clock.monotonic_s() + pause_ms / 1000
        self._failures += 1
        if self._ahead_dials and not (self._is_closed or self._broken_life or self._peers.find(self.node_id) is None):
            self._ahead_dials -= 1
            self._timer = self._clock.call_after(pause_ms, self._dial)
        waiting, self._waiting = self._waiting, deque()
        for one in waiting:
            one.on_done(NotReached(f"node {self.node_id} could not be reached: {why}"))

    def _lost(self, connection: PeerConnection) -> None:
        """A connection that broke is made again at once: that is how a death is found."""
        if connection is not self._connection:
            return
        self._connection = None
        if connection.is_given_up or self._is_closed:
            return
        self._broken_life, self._refusals = self._life, 0
        if self._life is not None:
            self._peers.broke(self._life)
        self._dial()

    def close(self) -> None:
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._connection is not None:
            self._connection.give_up()
        self._failed("this node stops")
