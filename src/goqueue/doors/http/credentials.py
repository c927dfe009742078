"""Who asks over HTTP: what a request shows in its headers, or what another node says whose request it passes on."""

from urllib.parse import parse_qsl

from goqueue.broker.access import Access
from goqueue.broker.gate import Gate
from goqueue.doors.http.asgi import CONNECTED
from goqueue.doors.http.cookies import SHOWN, check_page, given
from goqueue.doors.http.errors import BAD_REQUEST, HttpError
from goqueue.model.credentials import Credentials
from goqueue.model.listener import IN_PROCESS, Connected
from goqueue.model.tenancy import TENANT_HEADER
from goqueue.wire.asgi import Scope
from goqueue.wire.forwarded import PEER, PRINCIPAL, VIA

HTTP = "http"
IN_URL = b"api_key="
TENANT = TENANT_HEADER.encode()
"""The tenant that an admin acts for; from others it is checked."""
CHALLENGES = ((b"www-authenticate", b'Bearer realm="goqueue"'),)
REGISTRY_CHALLENGES = (*CHALLENGES, (b"www-authenticate", b'Basic realm="goqueue", charset="UTF-8"'))
"""Elsewhere a browser would ask a person for a password."""


async def admitted(gate: Gate, scope: Scope, api: str, *, is_open: bool = False) -> Access:
    """`is_open`: who shows nothing, or a session that is over, is let in without any right."""
    if gate.logins is None:
        access = gate.admit(Credentials(api, tenant=_header(scope, TENANT)))
    else:
        found, sessions = shown(scope, api), gate.logins.sessions
        if api == HTTP and found.principal is None and not (found.key or found.basic):
            session = sessions.read(given(scope))
            is_nothing = is_open and session is not None and sessions.is_over(session)
            found = found._replace(session=None if is_nothing else session)
        access = gate.nobody() if is_open and gate.is_stranger(found) else await gate.admit_request(found)
        if found.session is not None:
            check_page(sessions, found.session, scope)
            scope[SHOWN] = found.session
    scope[PRINCIPAL] = access.told
    return access


def shown(scope: Scope, api: str) -> Credentials:
    """What nobody has looked at yet."""
    if scope.get(VIA):
        return Credentials(api, scope.get(PEER, ""), principal=scope.get(PRINCIPAL, ""))
    if IN_URL in scope["query_string"]:
        _refuse_in_url(scope["query_string"])
    authorization, api_key = _header(scope, b"authorization"), _header(scope, b"x-api-key")
    connected: Connected = scope.get("state", {}).get(CONNECTED, IN_PROCESS)
    scope[PEER] = connected.peer
    return Credentials.of_headers(api, connected, authorization, api_key, _header(scope, TENANT))


def _header(scope: Scope, wanted: bytes) -> str:
    """The last of this name, or nothing."""
    found = b""
    for name, value in scope["headers"]:
        if name == wanted:
            found = value
    return found.decode("latin-1")


def _refuse_in_url(query: bytes) -> None:
    if any(name == "api_key" for name, _ in parse_qsl(query.decode("latin-1"), keep_blank_values=True)):
        words = "an API key in a URL ends up in logs: send it in the header Authorization or X-API-Key"
        raise HttpError(BAD_REQUEST, "API_KEY_IN_URL", words)
