"""The doors of a node, each with its listeners."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from goqueue.broker.broker import Broker
from goqueue.broker.gate import Gate
from goqueue.doors.grpc.door import GrpcDoor, GrpcLimits
from goqueue.doors.http.app import HttpApp
from goqueue.doors.http.browsers import Visitors
from goqueue.doors.http.door import HttpDoor
from goqueue.doors.http.listener import HttpLimits
from goqueue.doors.http.metrics_only import MetricsOnly
from goqueue.doors.http.proxies import behind
from goqueue.doors.kafka.door import KafkaDoor
from goqueue.doors.kafka.limits import KafkaLimits
from goqueue.doors.sqs.app import TARGET, SqsApp
from goqueue.model.listener import Api, Listener
from goqueue.node.certificates import Certificates
from goqueue.node.listeners import Plan, plans
from goqueue.node.metrics import watch_doors
from goqueue.node.ports import NodePorts
from goqueue.node.settings import Settings
from goqueue.node.values import Address, Switch
from goqueue.ports.tls import BadCertificate


class DoorStaysShut(Exception):
    """A door's address cannot be listened on; the message is for the person who chose it."""


class Doors:
    """`open`, and `all` of them until the node closes them."""

    def __init__(self, settings: Settings, ports: NodePorts, broker: Broker, gate: Gate, certs: Certificates) -> None:
        self._settings = settings
        self._network = ports.network
        self._certificates = certs
        self.sqs = SqsApp(gate)
        app = HttpApp(
            gate,
            by_header={TARGET: self.sqs},
            requests_per_second_max=settings.http_requests_per_second_max,
            visitors=_visitors(settings),
            console=settings.console,
        )
        now_ms = broker.clock.now_ms
        age_ms, http_limits = settings.connection_age_ms_max, HttpLimits()
        if age_ms:
            http_limits.age_s_max = age_ms / 1000
        kafka_limits = KafkaLimits(session_ms_max=settings.sasl_session_ms_max, age_ms_max=age_ms)
        self.kafka = KafkaDoor(gate, kafka_limits, network=ports.network)
        known = behind(app, settings.trusted_proxies)
        self.http = HttpDoor(known, http_limits, network=ports.network, now_ms=now_ms, arrive=gate.quotas.connect)
        self._metrics = HttpDoor(MetricsOnly(app), network=ports.network, now_ms=now_ms)
        self._grpc: GrpcDoor | None = None
        if ports.has_grpc:
            limits = GrpcLimits(settings.grpc_message_bytes_max, settings.grpc_streams_max, age_ms_max=age_ms)
            limits = replace(limits, shares_ports=ports.shares_ports)
            self._grpc = GrpcDoor(gate, limits, reflection=settings.grpc_reflection is Switch.ON)
        watch_doors(broker, *self._served)

    @property
    def _served(self) -> list[KafkaDoor | HttpDoor | GrpcDoor]:
        return [self.kafka, self.http, *([] if self._grpc is None else [self._grpc])]

    @property
    def all(self) -> list[KafkaDoor | HttpDoor | GrpcDoor]:
        return [*self._served, self._metrics]

    async def open(self) -> dict[Api, list[Address]]:
        """Where each listens. DoorStaysShut."""
        by_api: dict[Api, KafkaDoor | HttpDoor | GrpcDoor | None]
        by_api = {Api.KAFKA: self.kafka, Api.HTTP: self.http, Api.GRPC: self._grpc, Api.METRICS: self._metrics}
        opened: dict[Api, list[Address]] = {}
        found: list[tuple[Plan, Address]] = []
        for plan in plans(self._settings):
            door = by_api[plan.listener.api]
            if door is None:
                continue
            with opening(plan.listener.api, plan.address):
                listening = self._certificates.listening(plan, self._network)
                real = Address(*await door.open(*plan.address, listening))
            opened.setdefault(plan.listener.api, []).append(real)
            found.append((plan, real))
        self._tell_http([each for each in found if each[0].listener.api is Api.HTTP])
        return opened

    def _tell_http(self, opened: list[tuple[Plan, Address]]) -> None:
        """Kafka clients are told the HTTP listener that is called like theirs, or one that is as safe, or the first."""
        for endpoint in self.kafka.endpoints:
            plan, real = min(opened, key=partial(_distance, endpoint.listener))
            host, port = plan.listener.advertised or real
            endpoint.tell_http(host, port, has_tls=plan.listener.protocol.has_tls)


def _distance(mine: Listener, other: tuple[Plan, Address]) -> tuple[bool, bool]:
    found = other[0].listener
    return found.name != mine.name, found.protocol.has_tls != mine.protocol.has_tls


def _visitors(settings: Settings) -> Visitors:
    """What this machine and its settings call the node is a name of it."""
    hosts = [socket.gethostname(), *settings.http_allowed_hosts]
    for plan in plans(settings):
        hosts += [plan.address.host, plan.told.host]
    return Visitors(hosts, settings.http_allowed_origins, everywhere=bool(settings.http_allowed_hosts))


@contextmanager
def opening(name: str, address: Address) -> Iterator[None]:
    try:
        yield
    except BadCertificate as error:
        raise DoorStaysShut(f"cannot open the {name} door at {address}: {error}") from error
    except OSError as error:
        # asyncio repeats the address in its words; a name that nobody knows has no number of the system's.
        why = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error.strerror)
        raise DoorStaysShut(
            f"cannot open the {name} door at {address}: {why}; choose another address with --{name} HOST:PORT"
        ) from error
