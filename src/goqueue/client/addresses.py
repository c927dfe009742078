"""Addresses as people write them: "host:port", several with commas, or a list of them."""

from collections.abc import Iterable

from goqueue.client.errors import InvalidArgument
from goqueue.model.moments import shown

DEFAULT_PORT = 9092
SERVERS_MAX = 100


def parse_servers(servers: str | Iterable[str]) -> list[str]:
    """Each as "host:port"; IPv6 hosts in brackets."""
    written = servers.split(",") if isinstance(servers, str) else list(servers)
    parsed = [_parse(one.strip()) for one in written if one.strip()]
    if not 0 < len(parsed) <= SERVERS_MAX:
        raise InvalidArgument(f"{shown(servers)} names {len(parsed)} servers, 1 to {SERVERS_MAX} are needed")
    return list(dict.fromkeys(parsed))


def _parse(text: str) -> str:
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, str(DEFAULT_PORT)
    is_bracketed = host.startswith("[") and host.endswith("]")
    if not host.strip("[]") or (":" in host and not is_bracketed) or "/" in host:
        raise InvalidArgument(f"{shown(text)} is no address: host:port is needed, such as 127.0.0.1:9092")
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise InvalidArgument(f"{shown(text)} is no address: the port must be a number from 1 to 65535")
    return f"{host}:{port}"


def join_address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
