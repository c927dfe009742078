"""The listener: takes connections, reads requests, finds their handlers, and keeps babblers out."""

import asyncio
from dataclasses import dataclass
from typing import Any

from goqueue.broker.gate import Access, Credentials, Gate
from goqueue.doors.kafka.connection import RECEIVE_BYTES, Connection
from goqueue.doors.kafka.handlers.metadata import api_versions
from goqueue.doors.kafka.handlers.table import HANDLERS, Api
from goqueue.doors.kafka.produce_run import ProduceRun
from goqueue.doors.kafka.request import Endpoint, Request
from goqueue.doors.kafka.routes import Routes
from goqueue.doors.kafka.share_sessions import ShareSessions
from goqueue.model.access import OPEN
from goqueue.model.codes import Code
from goqueue.model.refusal import Refused
from goqueue.ports.network import Listener, LoopNetwork, Network
from goqueue.telemetry.logs import get_logger
from goqueue.wire.kafka.apis import APIS
from goqueue.wire.kafka.errors import MalformedRequest, TooManyEntries
from goqueue.wire.kafka.frames import RequestHeader, decode_request, read_request_header, response_frame
from goqueue.wire.kafka.messages.produce import ProduceRequest
from goqueue.wire.kafka.schema import fields_of

API_VERSIONS = 18
PRODUCE = HANDLERS[0]
LONG_S = 0.005
"""A connection whose request took longer lets others go first."""
COMPLAINTS_PER_MINUTE = 10
WILDCARDS = frozenset(("", "0.0.0.0", "::"))  # noqa: S104  nothing is bound here

events = get_logger("kafka door")


@dataclass
class KafkaLimits:
    frame_bytes_max: int = 8 * 1024 * 1024
    produce_bytes_max: int = 100 * 1024 * 1024
    pending_max: int = 200
    pending_bytes_max: int = 8 * 1024 * 1024
    waiting_bytes_max: int = 256 * 1024 * 1024
    """Likewise of all connections together. They cannot just be read later: a member that has joined waits for others,
    whose requests have yet to come."""
    gather_ms: int = 1
    frame_ms_max: int = 60_000
    write_ms_max: int = 60_000
    drain_ms_max: int = 2_000
    """How long a node that stops waits for its clients to take their last replies."""
    connections_max: int = 20_000


class KafkaDoor:
    def __init__(self, gate: Gate, limits: KafkaLimits | None = None, network: Network | None = None) -> None:
        self._gate = gate
        self._clock = gate.clock
        self._limits = limits or KafkaLimits()
        self._shared = memoryview(bytearray(RECEIVE_BYTES))
        self._network = network or LoopNetwork()
        self._server: Listener | None = None
        self._endpoint = Endpoint("", 0)
        self._sessions = ShareSessions()
        self._routes: dict[Access, Routes] = {}
        self._run = ProduceRun()
        self.connections: dict[Connection, None] = {}
        self._is_empty = asyncio.Event()
        self._is_empty.set()
        self.requests = 0
        self.malformed = 0
        self.waiting_bytes = 0
        self._complaints = 0

    async def open(self, host: str, port: int, advertised: tuple[str, int] | None = None) -> tuple[str, int]:
        """Listen; port 0 picks a free one. Returns the real address."""
        self._server = await self._network.listen(self._connect, host, port)
        real = (host, self._server.port)
        self._endpoint = Endpoint(*(advertised or real))
        return real

    def tell_http(self, host: str, port: int) -> None:
        """Let Kafka clients find the HTTP door. Where it listens everywhere, they reach it as they reach this one."""
        shown = self._endpoint.host if host in WILDCARDS else host
        self._endpoint.http = f"[{shown}]:{port}" if ":" in shown else f"{shown}:{port}"

    def _connect(self) -> Connection:
        access = self._gate.admit(Credentials("kafka"))
        connection = Connection(self._shared, self._limits, self._clock, self)
        connection.access, connection.routes = access, self._routes_of(access)
        self.connections[connection] = None
        self._is_empty.clear()
        if len(self.connections) > self._limits.connections_max:
            connection.close("too many connections")
        return connection

    def _routes_of(self, access: Access) -> Routes:
        """A route is learned through a view: that there is one is the permission, and nobody else may have it."""
        found = self._routes.get(access)
        if found is None:
            found = self._routes[access] = Routes(access.view(PRODUCE.permission))
        return found

    def lost(self, connection: Connection, _why: str) -> None:
        self.connections.pop(connection, None)
        self._sessions.lost(connection)
        if not self.connections:
            self._is_empty.set()

    def handle(self, connection: Connection, frame: memoryview) -> None:
        self.requests += 1
        request: Request | None = None
        try:
            if self._run.take(connection, frame):
                return
            self._run.finish(connection)
            header = read_request_header(frame)
            api, offered = APIS.get(header.api_key), HANDLERS.get(header.api_key)
            if api is None or offered is None or header.api_version not in api.versions:
                self._refuse(connection, header)
                return
            try:
                message, _ = decode_request(header, frame)
            except TooManyEntries as error:
                self._refuse_size(connection, header, str(error))
                return
            size = len(frame)
            if isinstance(message, ProduceRequest):
                connection.routes.learn(connection, frame, header, message)
                size = 0  # its records are in the log, whoever waits
            started_s = self._clock.monotonic_s()
            request = self._admit(offered, connection, header, message, size)
            if request is None:
                return
            offered.handle(request)
            if self.waiting_bytes > self._limits.waiting_bytes_max and size and request.reply.buffers is None:
                self.complain(connection, "as many requests wait for their replies as may: come back later")
            if self._clock.monotonic_s() - started_s > LONG_S:
                connection.rest()
        except MalformedRequest as error:
            self.complain(connection, str(error))
        except Exception as error:  # noqa: BLE001  a bug of ours must not leave its client waiting, nor touch another
            if request is not None and request.reply.buffers is None:
                request.fail(error)
            else:
                self._fail(connection, error)

    def _admit(
        self, api: Api, connection: Connection, header: RequestHeader, message: Any, size: int
    ) -> Request | None:
        """None: it was refused."""
        try:
            view = connection.access.view(api.permission)
        except Refused as error:
            view = connection.access.view(OPEN)
            Request(view, self._endpoint, self._sessions, connection, header, message, size).fail(error)
            return None
        return Request(view, self._endpoint, self._sessions, connection, header, message, size)

    def read_began(self, data: memoryview) -> None:
        self._run.begin(data)

    def read_ended(self, connection: Connection) -> None:
        try:
            self._run.end(connection)
        except Exception as error:  # noqa: BLE001  as above
            self._fail(connection, error)

    def _fail(self, connection: Connection, error: Exception) -> None:
        events.error("request failed", peer=connection.peer, exc_info=error)
        connection.close("a fault of the broker")

    def _refuse(self, connection: Connection, header: RequestHeader) -> None:
        """A newer ApiVersions has an answer in the protocol; nothing else that we did not offer has."""
        if header.api_key != API_VERSIONS:
            self.complain(connection, f"API {header.api_key} v{header.api_version} was not offered")
            return
        response = api_versions(0, Code.UNSUPPORTED_VERSION)
        connection.expect_reply().send(response_frame(response, 0, header.correlation_id))  # type: ignore[arg-type]

    def _refuse_size(self, connection: Connection, header: RequestHeader, why: str) -> None:
        """An answer that has room for one error says it; the others can only say it of each name, and are not made."""
        response = APIS[header.api_key].response()
        fields = {field.name for field in fields_of(type(response)) if header.api_version in field.versions}
        if "error_code" not in fields:
            self.complain(connection, why)
            return
        response.error_code = Code.INVALID_REQUEST  # type: ignore[attr-defined]
        if "error_message" in fields:
            response.error_message = why  # type: ignore[attr-defined]
        frame = response_frame(response, header.api_version, header.correlation_id)
        connection.expect_reply().send(frame)  # type: ignore[arg-type]

    def complain(self, connection: Connection, why: str) -> None:
        """Counted always, logged within reason: a babbler must not fill the disk."""
        self.malformed += 1
        if self._complaints < COMPLAINTS_PER_MINUTE:
            if not self._complaints:
                self._clock.call_after(60_000, self._forget_complaints)
            self._complaints += 1
            events.warning("bad request", peer=connection.peer, reason=why)
        connection.close(why)

    def _forget_complaints(self) -> None:
        self._complaints = 0

    def stop_reading(self) -> None:
        """The first step of a stop: nothing new comes in, what came may still be answered."""
        if self._server is not None:
            self._server.close()
            for connection in self.connections:
                connection.stop_reading()

    async def close(self) -> None:
        """Returns when no connection is left. One whose client does not take its replies is cut off."""
        if self._server is None:
            return
        self._server.close()
        for connection in list(self.connections):
            connection.close("the node stops")
        drain = self._clock.call_after(self._limits.drain_ms_max, self._abort)
        await self._is_empty.wait()
        drain.cancel()
        await self._server.wait_closed()
        self._server = None

    def _abort(self) -> None:
        for connection in list(self.connections):
            connection.abort("the node stops")
