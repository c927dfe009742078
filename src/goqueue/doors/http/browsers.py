"""What a browser may do for a web page. Every page that somebody opens can send requests to the ports of that person's
machine, so a node on localhost is reachable from any site, without any network in between.

Three things tell such a request apart, and a page cannot forge any of them:

- `Sec-Fetch-Site` and `Origin` say whose page it is. A page of another origin is refused, unless a setting names it.
- `Host` says which name the browser resolved. A site that lets its own name point to 127.0.0.1 (DNS rebinding) counts
  as the same origin, so on a loopback address only names of this node are answered.
- The content type: a page may send forms and text without asking first, but not JSON.
"""

from collections.abc import Iterable
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

from goqueue.doors.http.asgi import JSON, header
from goqueue.doors.http.errors import FORBIDDEN, MISDIRECTED, UNSUPPORTED_MEDIA_TYPE, HttpError
from goqueue.wire.asgi import Scope

ANY_HOST = "*"
LINKED = "goqueue.linked"
"""In a scope: a link on a page of another site led here. It may show something, and must not take anything."""
KNOWN_MAX = 1000
SAFE_METHODS = frozenset({"GET", "HEAD"})
OWN_SITES = frozenset({b"same-origin", b"none"})
"""Values of Sec-Fetch-Site: a page of ours, or the person at the browser."""


class Refusal(NamedTuple):
    status: int
    code: str
    message: str


class Visitors:
    """Decides which requests may come in. `hosts` are names of this node beside localhost; `origins` are those of the
    web pages that may ask. Hosts are checked `everywhere`, or on loopback addresses alone.
    """

    def __init__(self, hosts: Iterable[str] = (), origins: Iterable[str] = (), *, everywhere: bool = False) -> None:
        self._hosts = {"localhost", *(host.lower().strip("[]") for host in hosts)}
        self.origins = frozenset(origins)
        self._is_everywhere = everywhere
        self._known: set[tuple[str, bytes]] = set()
        """Of (address, Host): looked at before, and found right."""

    def refusal(self, scope: Scope, origin: bytes | None) -> Refusal | None:
        """None: come in."""
        hosts, site = [], None
        for name, value in scope["headers"]:
            if name == b"host":
                hosts.append(value)
            elif name == b"sec-fetch-site":
                site = value
        server = scope.get("server")
        address = "" if server is None else server[0]
        for host in hosts:
            if (address, host) not in self._known and not self._is_ours(address, host):
                return Refusal(MISDIRECTED, "UNKNOWN_HOST", _unknown_host(host))
        if origin is None and site is None:
            return None
        if self._is_own_page(origin, site, hosts) or (origin is not None and origin.decode("latin-1") in self.origins):
            return None
        if origin is None and _is_link(scope):
            scope[LINKED] = True
            return None
        return Refusal(FORBIDDEN, "FOREIGN_ORIGIN", _foreign(origin))

    def _is_ours(self, address: str, host: bytes) -> bool:
        if ANY_HOST not in self._hosts and (self._is_everywhere or is_loopback(address)):
            name = _name(host)
            if name and name not in self._hosts and not _is_address_of_ours(name, address):
                return False
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        self._known.add((address, host))
        return True

    @staticmethod
    def _is_own_page(origin: bytes | None, site: bytes | None, hosts: list[bytes]) -> bool:
        if site is not None:
            return site in OWN_SITES
        # Browsers do not send Sec-Fetch-Site to plain http on other machines, nor did older ones anywhere.
        return origin is not None and [origin.partition(b"://")[2].lower()] == [host.lower() for host in hosts]


def read_only(scope: Scope, origin: bytes | None) -> Refusal | None:
    """Where the console changes nothing, no page of this node does: neither that nor /docs. Logging in is allowed."""
    path = scope["path"].removeprefix("/v1")
    if scope["method"] in (*SAFE_METHODS, "OPTIONS") or path == "/session":
        return None
    if origin is None and not any(name == b"sec-fetch-site" for name, _ in scope["headers"]):
        return None
    words = "pages of this node may look and change nothing: see the setting console"
    return Refusal(FORBIDDEN, "CONSOLE_READ_ONLY", words)


def _is_link(scope: Scope) -> bool:
    """A click on a link, which opens what it leads to in a tab of its own; not a frame, an image or a script."""
    if scope["method"] not in SAFE_METHODS:
        return False
    said = {name: value for name, value in scope["headers"] if name.startswith(b"sec-fetch-")}
    return said.get(b"sec-fetch-mode") == b"navigate" and said.get(b"sec-fetch-dest") == b"document"


def _name(host: bytes) -> str:
    """Of a Host header, without its port; "?" for what is no host at all."""
    try:
        return (urlsplit(b"//" + host).hostname or b"").decode("ascii").rstrip(".")
    except ValueError:
        return "?"


def is_loopback(address: str) -> bool:
    return address.startswith(("127.", "::ffff:127.")) or address == "::1"


def _is_address_of_ours(name: str, address: str) -> bool:
    """A name can be made to point anywhere, a number cannot. Off the loopback address every number is fine: only the
    network knows which of them lead here.
    """
    try:
        ip_address(name)
    except ValueError:
        return False
    return name == address or is_loopback(name) or not is_loopback(address)


def _unknown_host(host: bytes) -> str:
    shown = host.decode("latin-1")[:100]
    return f"this node is not called {shown!r}; if it should be, name it in the setting http_allowed_hosts"


def _foreign(origin: bytes | None) -> str:
    whose = "another site" if origin is None else origin.decode("latin-1")[:100]
    return f"web pages of {whose} may not use this node; name their origin in the setting http_allowed_origins"


def check_content_type(scope: Scope, body: bytes) -> None:
    """A web page may send forms, text and what has no type to any server without asking first, but not JSON."""
    given = header(scope, b"content-type")
    if given is None and not body:
        return
    kind = (given or b"none").partition(b";")[0].strip().lower()
    if kind != JSON and not (kind.startswith(b"application/") and kind.endswith(b"+json")):
        message = f"the body must be sent as application/json, not as {kind.decode('latin-1')[:100]}"
        raise HttpError(UNSUPPORTED_MEDIA_TYPE, "UNSUPPORTED_MEDIA_TYPE", f"{message}; with curl: --json instead of -d")
