"""Requests that a proxy passes on: it says from which address they came, and whether that was over TLS. Its word counts
if its own address is one of the setting `trusted_proxies`; it says addresses, and never who somebody is.
"""

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network, ip_address, ip_network
from typing import Any

from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from goqueue.doors.http.app import HttpApp
from goqueue.doors.http.asgi import CONNECTED
from goqueue.wire.asgi import Receive, Scope, Send

MAPPED_BITS = 96
"""In front of an IPv4 address, where it is written as one of IPv6."""


class BehindProxies:
    """The same application, for clients of these proxies too."""

    def __init__(self, app: HttpApp, proxies: Sequence[str]) -> None:
        self._app = app
        self.stop = app.stop
        self._serve: Any = ProxyHeadersMiddleware(self._renamed, list(_both_ways(proxies)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._serve(scope, receive, send)

    async def _renamed(self, scope: Any, receive: Any, send: Any) -> None:
        connected, client = scope.get("state", {}).get(CONNECTED), scope.get("client")
        if connected is not None and client is not None:
            host, _, port = connected.peer.rpartition(":")
            said = _address(client[0])
            if not said:
                scope["client"] = host, int(port)
            elif said != host:
                scope["state"][CONNECTED] = connected._replace(peer=f"{said}:{client[1]}")
        await self._app(scope, receive, send)


def behind(app: HttpApp, proxies: Sequence[str]) -> HttpApp | BehindProxies:
    return BehindProxies(app, proxies) if proxies else app


def _address(said: str) -> str:
    """Empty: it is none, so the proxy has to do."""
    try:
        return str(ip_address(said))
    except ValueError:
        return ""


def _both_ways(proxies: Sequence[str]) -> Iterator[str]:
    """A listener on :: sees addresses of IPv4 as some of IPv6."""
    for each in proxies:
        network = ip_network(each)
        yield str(network)
        if isinstance(network, IPv4Network):
            yield f"::ffff:{network.network_address}/{MAPPED_BITS + network.prefixlen}"
