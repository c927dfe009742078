"""Which listeners a node opens, with which certificates, and whether it may open them."""

import asyncio
import socket
from collections.abc import Iterator
from ipaddress import ip_address
from typing import NamedTuple

from goqueue.model.listener import Api, ClientAuth, Listener, Protocol
from goqueue.node.listener_values import ListenerSetting
from goqueue.node.settings import Settings
from goqueue.node.values import Address, Authentication, Switch
from goqueue.ports.tls import TlsFiles

ANY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104  nobody listens on these here
NAME = Protocol.PLAINTEXT.value
"""Of the one listener of an API that the setting `listeners` does not name."""


class Plan(NamedTuple):
    """A listener that is to be opened."""

    listener: Listener
    address: Address
    files: TlsFiles | None = None

    @property
    def told(self) -> Address:
        """Where others reach it."""
        return Address(*(self.listener.advertised or self.address))

    def __str__(self) -> str:
        return f"{self.listener.api}://{self.address} ({self.listener.name}, {self.listener.protocol})"


def plans(settings: Settings) -> list[Plan]:
    """All that a node opens for clients, in the order in which they are opened."""
    return [_plan(settings, each) for api in Api for each in _settings_of(settings, api)]


def _settings_of(settings: Settings, api: Api) -> Iterator[ListenerSetting]:
    named = [each for each in settings.listeners if each.api is api]
    if named:
        yield from named
    elif api is not Api.METRICS:
        yield ListenerSetting(api, getattr(settings, api), NAME, advertised=getattr(settings, f"{api}_advertised"))


def _plan(settings: Settings, each: ListenerSetting) -> Plan:
    client_auth, files = ClientAuth.NONE, None
    if each.protocol.has_tls:
        client_auth = each.client_auth or settings.tls_client_auth
        cert, key, password = settings.tls_cert_file, settings.tls_key_file, settings.tls_key_password_file
        if each.cert_file is not None:
            cert, key, password = each.cert_file, each.key_file, each.key_password_file
        if cert is not None and key is not None:
            files = TlsFiles(cert, key, password, each.ca_file or settings.tls_ca_file)
    is_closed = settings.is_closed or each.is_closed or client_auth is ClientAuth.REQUIRE or each.protocol.has_sasl
    listener = Listener(each.api, each.name, each.protocol, is_closed, client_auth, each.advertised)
    return Plan(listener, each.address, files)


def problems(settings: Settings) -> list[str]:
    """What can be said without looking at a file or a network."""
    found = []
    for plan in plans(settings):
        listener = plan.listener
        if listener.protocol.has_tls and plan.files is None:
            found.append(f"{plan}: TLS needs a certificate: name tls_cert_file and tls_key_file")
        elif listener.client_auth is not ClientAuth.NONE and (plan.files is None or plan.files.ca is None):
            found.append(f"{plan}: certificates of clients cannot be checked: name their authority with tls_ca_file")
        if listener.api is Api.GRPC and listener.client_auth is ClientAuth.REQUEST:
            found.append(f"{plan}: gRPC cannot ask for a certificate and do without: client_auth is none or require")
        if settings.etcd and listener.api is not Api.METRICS and not _can_be_dialed(plan.told):
            where = f"{listener.api}_advertised" if listener.name == NAME else "advertised"
            found.append(f"{listener.api} = {plan.told}: other nodes cannot dial that; say where they can with {where}")
        if settings.processes != 1 and listener.api is Api.KAFKA and plan.told.host in ANY_ADDRESS:
            where = "kafka_advertised" if listener.name == NAME else "advertised"
            found.append(f"kafka = {plan.told}: with several processes clients are told where each of them is; {where}")
    if settings.etcd and settings.processes != 1:
        found.append("etcd and processes: one of them; several processes of one machine keep their metadata themselves")
    peer = settings.peer_advertised or settings.peer
    if settings.etcd and not _can_be_dialed(peer):
        found.append(f"peer = {peer}: other nodes cannot dial that; say where they can with peer_advertised")
    files = (settings.peer_ca_file, settings.peer_cert_file, settings.peer_key_file)
    if any(files) and not all(files):
        found.append("peer_ca_file, peer_cert_file and peer_key_file: all of them, or none")
    if settings.dev is Switch.ON and settings.insecure is Switch.ON:
        found.append("dev and insecure: one of them; dev opens nothing that others can reach")
    if settings.dev is Switch.ON and settings.authentication is Authentication.ON:
        found.append("dev and authentication = on: one of them; dev is open to everybody on this machine")
    return found


def _can_be_dialed(address: Address) -> bool:
    return address.port != 0 and address.host not in ANY_ADDRESS


class Exposed(NamedTuple):
    """An address that other machines can reach, and that lacks something."""

    where: str
    lacks: str


async def exposed(settings: Settings) -> list[Exposed]:
    """All listeners on addresses other than loopback; `lacks` is empty where nothing is missing. OSError: nobody knows
    one of the hosts."""
    found = []
    for plan in plans(settings):
        if not await is_loopback(plan.address):
            listener = plan.listener
            missing = [] if listener.protocol.has_tls else ["TLS"]
            missing += [] if listener.requires_authentication else ["authentication"]
            found.append(Exposed(str(plan), " and ".join(missing)))
    if settings.etcd and not await is_loopback(settings.peer):
        found.append(Exposed(f"peer {settings.peer}", "" if settings.peer_ca_file else "TLS between nodes"))
    return found


async def is_loopback(address: Address) -> bool:
    """By what the name means now: all of it must be this machine's own."""
    host, port = address
    results = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return all(ip_address(str(result[4][0]).partition("%")[0]).is_loopback for result in results)


def refusal(settings: Settings, found: list[Exposed]) -> str:
    """Why this node must not start; empty: it may."""
    if settings.dev is Switch.ON and found:
        return f"--dev is open to everybody, so it listens on this machine only: {found[0].where} is not loopback"
    lacking = [each for each in found if each.lacks]
    if lacking and settings.insecure is not Switch.ON:
        told = "; ".join(f"{each.where} lacks {each.lacks}" for each in lacking)
        return (
            f"others can reach this node without being asked who they are: {told}. Listen on 127.0.0.1, use TLS and"
            " authentication (docs/security.md), or say --insecure"
        )
    return ""
