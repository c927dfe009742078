"""The listener: takes connections, reads requests, finds their handlers, and keeps babblers out."""

import asyncio
from functools import partial
from typing import Any

from goqueue.broker.access import Access
from goqueue.broker.gate import Gate
from goqueue.doors.kafka.audited import names_in
from goqueue.doors.kafka.complaints import Complaints
from goqueue.doors.kafka.connection import Connection
from goqueue.doors.kafka.fetch_sessions import FetchSessions
from goqueue.doors.kafka.frame_sizes import RECEIVE_BYTES
from goqueue.doors.kafka.handlers.metadata import api_versions
from goqueue.doors.kafka.handlers.table import HANDLERS, Api
from goqueue.doors.kafka.in_turn import IN_TURN, waits_for_turn
from goqueue.doors.kafka.limits import STRANGER_LIMITS, KafkaLimits
from goqueue.doors.kafka.produce_run import ProduceRun
from goqueue.doors.kafka.request import Endpoint, Request
from goqueue.doors.kafka.routes import Routes
from goqueue.doors.kafka.sasl import SaslExchange
from goqueue.doors.kafka.seating import Seating
from goqueue.doors.kafka.sessions import Sessions
from goqueue.doors.kafka.share_sessions import ShareSessions
from goqueue.doors.kafka.surroundings import Timer
from goqueue.doors.kafka.tenant_turns import TenantTurns
from goqueue.doors.kafka.waiting import who_goes
from goqueue.model.access import OPEN
from goqueue.model.codes import Code
from goqueue.model.credentials import Credentials
from goqueue.model.errors import GoQueueError
from goqueue.model.listener import IN_PROCESS, Connected
from goqueue.model.listener import Api as ApiName
from goqueue.model.refusal import Refused
from goqueue.ports.listening import Listening, plain
from goqueue.ports.network import Listener, Network
from goqueue.telemetry.calls import call_each
from goqueue.telemetry.door_facts import DoorFacts, FetchSessionFacts
from goqueue.telemetry.logs import get_logger
from goqueue.wire.kafka.apis import APIS
from goqueue.wire.kafka.errors import MalformedRequest, TooManyEntries
from goqueue.wire.kafka.frames import RequestHeader, decode_request, read_request_header, response_frame
from goqueue.wire.kafka.messages.produce import ProduceRequest
from goqueue.wire.kafka.schema import fields_of

SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE = 17, 18, 36
EARLY_APIS = frozenset({SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE})
"""Those that a connection may use before it has shown who it is."""
STRANGER_MS_MAX, STRANGERS_MAX = 10_000, 1000
RETIRE_MS = 1000
"""An old connection whose requests are not all answered is looked at again after so long."""
ROUTES = "kafka routes"
"""What an access keeps for this door."""
PRODUCE, LONG_S = HANDLERS[0], 0.005
"""A connection whose request took longer lets others go first."""

events = get_logger("kafka door")


class KafkaDoor:
    def __init__(self, gate: Gate, limits: KafkaLimits | None = None, network: Network | None = None) -> None:
        self._gate = gate
        self._clock = gate.clock
        self._limits = limits or KafkaLimits()
        self._shared = memoryview(bytearray(RECEIVE_BYTES))
        self._plain = plain(ApiName.KAFKA, network)
        self._servers: list[Listener] = []
        self.endpoints: list[Endpoint] = []
        """What the clients of each listener are told, in the order in which they were opened."""
        self.sessions = Sessions(ShareSessions(tenants=gate.tenants), FetchSessions(self._clock, gate.tenants))
        self._seating = Seating(gate)
        self._turns = TenantTurns(gate)
        self._run = ProduceRun(self._clock, self._handle, self._fail)
        self._strangers: dict[Connection, Timer] = {}
        """Connections that have not shown who they are, and when they are closed."""
        self._sessions_end: dict[Connection, Timer] = {}
        """When credentials end that a connection was made with."""
        self._ages: dict[Connection, Timer] = {}
        """When a connection is old."""
        gate.on_change.append(self._access_changed)
        gate.when_topics_change(lambda _change: self._forget_routes())
        self.connections: dict[Connection, None] = {}
        self._is_empty = asyncio.Event()
        self._is_empty.set()
        self.requests = 0
        self.malformed = 0
        self.waiting_bytes = 0
        self.complaints = Complaints(self._clock, events)

    async def open(self, host: str, port: int, listening: Listening | None = None) -> tuple[str, int]:
        """Listen, beside where it listens already; port 0 picks a free one. Returns the real address."""
        listening = listening or self._plain
        endpoint = Endpoint(host, port, listening.listener)
        server = await listening.network.listen(partial(self._accept, listening, endpoint), host, port)
        self._servers.append(server)
        self.endpoints.append(endpoint)
        endpoint.host, endpoint.port = listening.listener.advertised or (host, server.port)
        return host, server.port

    def _accept(self, listening: Listening, endpoint: Endpoint) -> Connection:
        connection = Connection(self._shared, self._limits, self._clock, self)
        connection.endpoint = endpoint
        connection.on_made = partial(self._made, listening)
        return connection

    def _made(self, listening: Listening, connection: Connection, transport: asyncio.BaseTransport) -> None:
        try:
            self._begin(connection, listening.connected(transport))
            self._seating.arrive(connection, self._clock)
        except GoQueueError as error:
            self.connections[connection] = None
            self._is_empty.clear()
            self.complain(connection, str(error))

    def _connect(self, connected: Connected = IN_PROCESS) -> Connection:
        """Of whoever brings a transport."""
        connection = Connection(self._shared, self._limits, self._clock, self)
        connection.endpoint = Endpoint("", 0, self._plain.listener)
        self._begin(connection, connected)
        return connection

    def _begin(self, connection: Connection, connected: Connected) -> None:
        is_stranger = self._gate.needs_credentials(connected)
        connection.sasl = SaslExchange(
            self._gate, partial(self._admitted, connection), connected, self._limits.session_ms_max
        )
        self.connections[connection] = None
        self._is_empty.clear()
        if self._limits.age_ms_max:
            self._ages[connection] = self._clock.call_after(self._limits.age_ms_max, partial(self._retire, connection))
        if is_stranger:
            connection.trust(STRANGER_LIMITS)
            self._close_unless_shown(connection, "it did not show who it is in time")
        else:
            self._set_access(connection, self._gate.admit(Credentials("kafka", connected.peer, connected)))
        if len(self.connections) > self._limits.connections_max or len(self._strangers) > STRANGERS_MAX:
            connection.close("too many connections")

    def _close_unless_shown(self, connection: Connection, why: str) -> None:
        self._strangers[connection] = self._clock.call_after(STRANGER_MS_MAX, lambda: connection.close(why))

    def _set_access(self, connection: Connection, access: Access) -> None:
        connection.access, connection.routes = access, self._routes_of(access)
        self._seating.take(connection, access.tenancy.tenant)

    def _admitted(self, connection: Connection, access: Access, lifetime_ms: int) -> None:
        """It has shown who it is, or has done so again."""
        if connection not in self.connections:
            return  # it was lost meanwhile
        if _cancel(self._strangers, connection):
            connection.trust(self._limits)
        self._set_access(connection, access)
        _cancel(self._sessions_end, connection)
        if lifetime_ms:
            self._sessions_end[connection] = self._clock.call_after(lifetime_ms, lambda: self._end_login(connection))

    def _end_login(self, connection: Connection) -> None:
        """It may log in again, and do nothing else before. What it has asked for is answered."""
        self._sessions_end.pop(connection, None)
        connection.access = None
        self._close_unless_shown(connection, "its credentials have ended")

    def _access_changed(self) -> None:
        """Whoever is gone is closed at once; all others learn their routes anew, by the rights that they have now."""
        self._run.finish()
        for connection in list(self.connections):
            access = connection.access
            if access is not None and access.is_over:
                connection.close(f"{access.principal} is gone")
            elif access is not None and connection.sasl is not None:
                self._set_access(connection, self._gate.access_now(access, connection.sasl.connected))

    def _routes_of(self, access: Access) -> Routes:
        """A route is learned through a view: that there is one is the permission, and nobody else may have it."""
        found: Routes | None = access.kept.get(ROUTES)
        if found is None:
            found = access.kept[ROUTES] = Routes(access.view(PRODUCE.permission), access.allowance)
        return found

    def _forget_routes(self) -> None:
        for connection in self.connections:
            if connection.access is not None:
                connection.routes.forget()

    def _retire(self, connection: Connection) -> None:
        """It is old. What it has asked for is answered; its client dials again for the rest."""
        connection.stop_reading()
        self._run.finish()
        if connection.is_idle:
            connection.close("it is old")
        else:
            self._ages[connection] = self._clock.call_after(RETIRE_MS, partial(self._retire, connection))

    def lost(self, connection: Connection, _why: str) -> None:
        connection.sasl = None  # which knows it, too
        self.connections.pop(connection, None)
        for timers in (self._strangers, self._sessions_end, self._ages):
            _cancel(timers, connection)
        if not self.connections:
            self._is_empty.set()
        call_each(partial(call, connection) for call in (self.sessions.lost, self._seating.leave, self._turns.lost))

    def handle(self, connection: Connection, frame: memoryview) -> None:
        self.requests += 1
        try:
            if connection.heads and connection.access is not None and self._run.take(connection, frame):
                return
        except Exception as error:  # noqa: BLE001  a bug of ours must not leave its client waiting, nor touch another
            self._fail(connection, error)
            return
        self._run.finish()
        self._handle(connection, frame)

    def _handle(self, connection: Connection, frame: memoryview) -> None:
        request: Request | None = None  # whatever it is, it is not one of a run
        try:
            header = read_request_header(frame)
            api, offered = APIS.get(header.api_key), HANDLERS.get(header.api_key)
            is_early = connection.access is None and header.api_key not in EARLY_APIS
            if is_early or api is None or offered is None or header.api_version not in api.versions:
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
            if self._gate.quotas.are_set and header.api_key not in EARLY_APIS:
                self._charge(connection, request, len(frame))
            self._carry_out(offered, request, frame)
            if self.waiting_bytes > self._limits.waiting_bytes_max and size and request.reply.buffers is None:
                who = who_goes(self.connections, connection)
                self.complain(who, "as many requests wait for their replies as may: come back later")
            spent_s = self._clock.monotonic_s() - started_s
            if request.allowance is not None:
                request.spent(request.allowance, spent_s)
            if spent_s > LONG_S:
                connection.rest()
        except MalformedRequest as error:
            self.complain(connection, str(error))
        except Exception as error:  # noqa: BLE001  as above
            if request is not None and request.reply.buffers is None:
                request.fail(error)
            else:
                self._fail(connection, error)

    def _admit(
        self, api: Api, connection: Connection, header: RequestHeader, message: Any, size: int
    ) -> Request | None:
        """None: it was refused."""
        access = connection.access or self._gate.nobody()
        try:
            view = access.view(api.permission)
        except Refused as error:
            view = access.view(OPEN)
            Request(view, connection.endpoint, self.sessions, connection, header, message, size).fail(error)
            return None
        return Request(view, connection.endpoint, self.sessions, connection, header, message, size)

    def _carry_out(self, offered: Api, request: Request, frame: memoryview) -> None:
        """A change that is audited is carried out when its record is durable. What comes behind it waits."""
        if request.header.api_key in IN_TURN and waits_for_turn(request, frame, partial(self._carry_out, offered)):
            return
        connection, access = request.connection, request.connection.access
        audit = None if access is None else self._gate.audited(offered.permission)
        if access is None or audit is None:
            if access is not None:
                self._gate.note(access, offered.permission, "kafka", type(request.message).__name__)
            offered.handle(request)
            return
        # By then others have read into the memory that it came in.
        request.message, _ = decode_request(request.header, memoryview(bytes(frame)))
        is_begun = is_held = False

        def begun(found: int | GoQueueError) -> None:
            nonlocal is_begun
            is_begun = True
            try:
                if isinstance(found, GoQueueError):
                    request.fail(found)
                else:
                    offered.handle(request)
            except Exception as error:  # noqa: BLE001  as for any other request
                request.fail(error)
            if is_held:
                connection.go_on()

        host = connection.peer.rpartition(":")[0]
        names = " ".join(names_in(request.message))
        audit.begin(access.asked(host, "kafka", type(request.message).__name__, names), begun)
        if not is_begun:
            is_held = True
            connection.hold()

    def _charge(self, connection: Connection, request: Request, size: int) -> None:
        allowance = None if connection.access is None else connection.access.allowance(request.header.client_id or "")
        if allowance is not None:
            request.charge(allowance, size)

    def read_began(self, data: memoryview | None) -> None:
        if self._gate.turns.are_taken:
            self._turns.read_began()
        if data is not None:
            self._run.begin(data)

    def read_ended(self, connection: Connection, end: int) -> None:
        are_turns_taken = self._gate.turns.are_taken
        self._run.end(connection, end, is_alone=are_turns_taken)
        if are_turns_taken:
            self._turns.read_ended(connection)

    @property
    def kept_bytes(self) -> int:
        return self._run.kept_bytes

    def _fail(self, connection: Connection, error: Exception) -> None:
        events.error("request failed", peer=connection.peer, exc_info=error)
        connection.close("a fault of the broker")

    def _refuse(self, connection: Connection, header: RequestHeader) -> None:
        """A newer ApiVersions has an answer in the protocol; nothing else that we did not offer has."""
        if connection.access is None and connection.sasl is not None and connection.sasl.has_ended:
            connection.close("its credentials have ended")
            return
        if header.api_key != API_VERSIONS:
            when = " to those who have not shown who they are" if connection.access is None else ""
            self.complain(connection, f"API {header.api_key} v{header.api_version} was not offered{when}")
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
        self.malformed += 1
        self.complaints.log(connection.peer, why)
        connection.close(why)

    def facts(self) -> DoorFacts:
        kept = self.sessions.fetch
        fetch_sessions = FetchSessionFacts(len(kept), kept.partitions, kept.evictions)
        return DoorFacts(len(self.connections), self.requests, self.malformed, fetch_sessions=fetch_sessions)

    def stop_reading(self) -> None:
        """The first step of a stop: nothing new comes in, what came may still be answered."""
        for server in self._servers:
            server.close()
        for connection in self.connections:
            connection.stop_reading()
        self._run.finish()

    async def close(self) -> None:
        """Returns when no connection is left. One whose client does not take its replies is cut off."""
        if not self._servers:
            return
        for server in self._servers:
            server.close()
        self._run.finish()
        for connection in list(self.connections):
            connection.close("the node stops")
        drain = self._clock.call_after(self._limits.drain_ms_max, self._abort)
        await self._is_empty.wait()
        drain.cancel()
        for server in self._servers:
            await server.wait_closed()
        self._servers.clear()

    def _abort(self) -> None:
        for connection in list(self.connections):
            connection.abort("the node stops")


def _cancel(timers: dict[Connection, Timer], connection: Connection) -> bool:
    """False: there was none."""
    timer = timers.pop(connection, None)
    if timer is not None:
        timer.cancel()
    return timer is not None
