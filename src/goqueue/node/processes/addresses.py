"""Where each member listens. HTTP, gRPC and metrics have one address for all of them, at which the system divides
connections (SO_REUSEPORT). Kafka clients have to reach each member: they are at the next ports.

The supervisor binds every address first, and keeps it without listening there: so it knows that nobody else has it, a
port 0 is the same for all, and no other program gets it while a member is down.
"""

import asyncio
import errno
import socket
from dataclasses import replace
from pathlib import Path

from goqueue.model.listener import Api
from goqueue.node.doors import DoorStaysShut, opening
from goqueue.node.listener_values import ListenerSetting
from goqueue.node.listeners import ANY_ADDRESS
from goqueue.node.processes.member_names import member_directory
from goqueue.node.settings import Settings
from goqueue.node.values import Address

LOOPBACK = Address("127.0.0.1", 0)
PORT_MAX = 65535


class Addresses:
    """Invariant: an address is kept until `close`."""

    def __init__(self) -> None:
        self._kept: list[socket.socket] = []
        self._taken: list[tuple[str, Address]] = []
        """By whose door; each host is one that the system has."""

    async def members(self, settings: Settings) -> list[Settings]:
        """The settings of each. DoorStaysShut: somebody else has one of their addresses."""
        try:
            shared = replace(
                settings,
                http=await self._keep(Api.HTTP, settings.http) if _is_used(settings, Api.HTTP) else settings.http,
                grpc=await self._keep(Api.GRPC, settings.grpc) if _is_used(settings, Api.GRPC) else settings.grpc,
                listeners=tuple([await self._listener(each) for each in settings.listeners]),
            )
            return [await self._member(shared, number) for number in range(1, settings.processes + 1)]
        except BaseException:
            self.close()
            raise

    async def _listener(self, each: ListenerSetting) -> ListenerSetting:
        return each if each.api is Api.KAFKA else each._replace(address=await self._keep(each.api, each.address))

    async def _member(self, shared: Settings, number: int) -> Settings:
        by = number - 1
        listeners = []
        for each in shared.listeners:
            if each.api is Api.KAFKA:
                address = await self._keep(Api.KAFKA, _next(each.address, by))
                advertised = None if each.advertised is None else _next(each.advertised, by)
                listeners.append(each._replace(address=address, advertised=advertised))
            else:
                listeners.append(each)
        kafka, advertised = _next(shared.kafka, by), shared.kafka_advertised
        return replace(
            shared,
            node_id=number,
            data_dir=Path(shared.data_dir, member_directory(number)),
            listeners=tuple(listeners),
            kafka=await self._keep(Api.KAFKA, kafka) if _is_used(shared, Api.KAFKA) else kafka,
            kafka_advertised=None if advertised is None else _next(advertised, by),
            peer=await self._keep("peer", LOOPBACK),
            peer_advertised=None,
            peer_ca_file=None,
            peer_cert_file=None,
            peer_key_file=None,
            default_replication_factor=shared.default_replication_factor or 1,
        )

    async def _keep(self, name: str, address: Address) -> Address:
        with opening(name, address):
            found = await asyncio.get_running_loop().getaddrinfo(
                *address, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )
            port, failure = address.port, None
            for family, kind, protocol, _, where in dict.fromkeys(found):
                try:
                    self._check_not_ours(name, Address(str(where[0]), port))
                    port = self._bind(family, kind, protocol, (where[0], port, *where[2:]))
                    self._taken.append((name, Address(str(where[0]), port)))
                except OSError as error:
                    if error.errno != errno.EADDRNOTAVAIL:  # a name may mean an address that this machine lacks
                        raise
                    failure = error
            if port == 0 or (failure is not None and len(found) == 1):
                raise failure or OSError(errno.EADDRNOTAVAIL, "no address")
        return Address(address.host, port)

    def _check_not_ours(self, name: str, address: Address) -> None:
        """DoorStaysShut: a port would have two meanings. Those who share it are not told by the system."""
        for other, taken in self._taken:
            is_same = taken.host == address.host or (
                {taken.host, address.host} & set(ANY_ADDRESS) and (":" in taken.host) == (":" in address.host)
            )
            if address.port and taken.port == address.port and is_same:
                raise DoorStaysShut(
                    f"cannot open the {name} door at {address}: the {other} door is there. Each member has the next"
                    " port for each of its Kafka addresses: leave room for all of them"
                )

    def _bind(self, family: int, kind: int, protocol: int, where: tuple[object, ...]) -> int:
        """Alone first: who shares a port is asked for nothing. What is kept shares with members alone: with
        SO_REUSEADDR, whoever has that too could have the port for as long as no member listens there."""
        port = self._bind_once(family, kind, protocol, where, shares=False, reuses=True)
        where = (where[0], port, *where[2:])
        try:
            return self._bind_once(family, kind, protocol, where, shares=True, reuses=False)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            # Connections of one process that was there before have still to end (TIME_WAIT).
            return self._bind_once(family, kind, protocol, where, shares=True, reuses=True)

    def _bind_once(
        self, family: int, kind: int, protocol: int, where: tuple[object, ...], *, shares: bool, reuses: bool
    ) -> int:
        bound = socket.socket(family, kind, protocol)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuses)
            if family == socket.AF_INET6:
                bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            if shares:
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            bound.bind(where)
            if not shares:
                bound.listen(1)  # to bind is allowed beside one who listens, and this is not
            port = bound.getsockname()[1]
        except BaseException:
            bound.close()
            raise
        if shares:
            self._kept.append(bound)
        else:
            bound.close()
        assert isinstance(port, int)
        return port

    def close(self) -> None:
        for each in self._kept:
            each.close()
        self._kept.clear()
        self._taken.clear()


def _is_used(settings: Settings, api: Api) -> bool:
    """The setting of its own name, and not `listeners`."""
    return all(each.api is not api for each in settings.listeners)


def _next(address: Address, by: int) -> Address:
    """DoorStaysShut: there is no such port."""
    if address.port + by > PORT_MAX:
        words = f"member {by + 1} of several processes would be at port {address.port + by}"
        raise DoorStaysShut(f"kafka = {address}: {words}, and {PORT_MAX} is the last one there is")
    return Address(address.host, address.port + by if address.port else 0)
