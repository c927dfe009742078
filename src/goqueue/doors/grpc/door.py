"""The listener: grpc's own server on our event loop, with limits."""

import asyncio
import errno
import os
import socket
from dataclasses import dataclass

from google.protobuf.descriptor import ServiceDescriptor
from grpc import aio
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection

from goqueue.broker.gate import Gate
from goqueue.doors.grpc.acks import AckService
from goqueue.doors.grpc.arrivals import Arrivals
from goqueue.doors.grpc.consume import ConsumeService
from goqueue.doors.grpc.cutting import cut_off
from goqueue.doors.grpc.groups import GroupService
from goqueue.doors.grpc.health import own_health, standard_health
from goqueue.doors.grpc.offsets import OffsetService
from goqueue.doors.grpc.publish import PublishService
from goqueue.doors.grpc.serving import Made, Serving
from goqueue.doors.grpc.topics import TopicService
from goqueue.doors.grpc.transactions import TransactionService
from goqueue.model.listener import Api
from goqueue.ports.listening import Listening, plain
from goqueue.telemetry.door_facts import DoorFacts
from goqueue.wire.grpc import (
    ack_pb2,
    consume_pb2,
    group_pb2,
    offset_pb2,
    publish_pb2,
    topic_pb2,
    transaction_pb2,
)
from goqueue.wire.grpc import health_pb2 as own_health_pb2

MIB = 1024 * 1024
RPCS_MAX = 10_000
"""Of all connections together; whoever comes on top is told RESOURCE_EXHAUSTED."""
METADATA_BYTES_MAX = 16 * 1024
AGE_GRACE_MS = 60_000
"""For what a client has begun on an old connection."""


@dataclass(frozen=True)
class GrpcLimits:
    message_bytes_max: int = 4 * MIB
    """That are taken; what is sent keeps below 4 MiB by itself, but for a single larger message."""
    streams_max: int = 100
    """Of one connection at once."""
    keepalive_ms: int = 30_000
    keepalive_timeout_ms: int = 10_000
    """A connection that does not answer a ping for so long is cut."""
    ping_interval_ms_min: int = 5_000
    """Clients that ping more often are sent away."""
    drain_s_max: float = 5.0
    age_ms_max: int = 0
    """Older connections are closed; 0: none is."""
    shares_ports: bool = False
    """Other processes listen at the same addresses."""

    def options(self) -> list[tuple[str, int]]:
        return [
            ("grpc.max_receive_message_length", self.message_bytes_max),
            ("grpc.max_send_message_length", -1),
            ("grpc.max_concurrent_streams", self.streams_max),
            ("grpc.max_metadata_size", METADATA_BYTES_MAX),
            ("grpc.keepalive_time_ms", self.keepalive_ms),
            ("grpc.keepalive_timeout_ms", self.keepalive_timeout_ms),
            # What grpc really goes by; else it waits for a minute.
            ("grpc.http2.ping_timeout_ms", self.keepalive_timeout_ms),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.min_ping_interval_without_data_ms", self.ping_interval_ms_min),
            ("grpc.http2.min_recv_ping_interval_without_data_ms", self.ping_interval_ms_min),
            # Else a second node would share the port in silence.
            ("grpc.so_reuseport", int(self.shares_ports)),
            *((("grpc.max_connection_age_ms", self.age_ms_max),) if self.age_ms_max else ()),
            *((("grpc.max_connection_age_grace_ms", AGE_GRACE_MS),) if self.age_ms_max else ()),
        ]


class GrpcDoor:
    def __init__(self, gate: Gate, limits: GrpcLimits | None = None, *, reflection: bool = False) -> None:
        self.limits = limits or GrpcLimits()
        self._has_reflection = reflection
        self._serving = Serving(gate)
        self._servers: list[aio.Server] = []
        self._addresses: list[tuple[str, int]] = []

    def facts(self) -> DoorFacts:
        counted = self._serving.counting
        return DoorFacts(len(counted.peers), counted.requests, counted.malformed, counted.open)

    def _services(self) -> list[tuple[ServiceDescriptor, Made]]:
        pairs: list[tuple[ServiceDescriptor, Made]] = [
            (publish_pb2.DESCRIPTOR.services_by_name["PublishService"], PublishService),
            (consume_pb2.DESCRIPTOR.services_by_name["ConsumeService"], ConsumeService),
            (ack_pb2.DESCRIPTOR.services_by_name["AckService"], AckService),
            (offset_pb2.DESCRIPTOR.services_by_name["OffsetService"], OffsetService),
            (transaction_pb2.DESCRIPTOR.services_by_name["TransactionService"], TransactionService),
            (topic_pb2.DESCRIPTOR.services_by_name["TopicService"], TopicService),
            (group_pb2.DESCRIPTOR.services_by_name["GroupService"], GroupService),
        ]
        own = own_health_pb2.DESCRIPTOR.services_by_name["HealthService"]
        standard = health_pb2.DESCRIPTOR.services_by_name["Health"]
        names = {each.full_name for each, _ in pairs} | {own.full_name, standard.full_name}
        return [*pairs, (own, lambda _: own_health(names)), (standard, lambda _: standard_health(names))]

    async def open(self, host: str, port: int, listening: Listening | None = None) -> tuple[str, int]:
        """Listen, beside where it listens already; port 0 picks a free one. Returns the real address. Each listener has
        a server of its own: grpc does not say through which port of one a call has come."""
        services, arrivals = self._services(), Arrivals(listening or plain(Api.GRPC))
        server = aio.server(options=self.limits.options(), maximum_concurrent_rpcs=RPCS_MAX)
        server.add_generic_rpc_handlers([self._serving.handler_of(*pair, arrivals) for pair in services])
        if self._has_reflection:
            names = [service.full_name for service, _ in services]
            reflection.enable_server_reflection([*names, reflection.SERVICE_NAME], server)
        shown = f"[{host}]" if ":" in host else host
        await _try_address(host, port, shares_ports=self.limits.shares_ports)
        try:
            real = arrivals.bind(server, f"{shown}:{port}")
        except RuntimeError as error:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE)) from error
        await server.start()
        self._servers.append(server)
        self._addresses.append((host, real))
        return host, real

    def stop_reading(self) -> None:
        """The first step of a stop: no new call. Who waits is sent elsewhere; what was taken is answered."""
        if self._servers:
            self._serving.stop()

    async def close(self) -> None:
        """Returns when no call and no connection is left; what takes too long is cut off."""
        if self._servers:
            self.stop_reading()
            await self._serving.when_answered(self.limits.drain_s_max)
            for host, port in self._addresses:
                cut_off(host, port)
            for server in self._servers:
                await server.stop(None)
            if self._serving.spread is not None:
                await self._serving.spread.close()
            self._servers.clear()
            self._addresses.clear()


async def _try_address(host: str, port: int, *, shares_ports: bool) -> None:
    """OSError that says why nobody can listen there: grpc itself says only that, and writes to stderr on its own."""
    failure: OSError | None = None
    for family, kind, protocol, _, address in await asyncio.get_running_loop().getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    ):
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if shares_ports:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            try:
                probe.bind(address)
            except OSError as error:
                failure = failure or error
            else:
                return
    if failure:
        raise failure
