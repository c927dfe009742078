"""Who asks over HTTP: what a request shows in its headers, or what another node says whose request it passes on."""

import asyncio
import base64
import binascii
from urllib.parse import parse_qsl

from goqueue.broker.gate import Access, Credentials, Gate, NotAuthenticated, Principal
from goqueue.doors.http.asgi import CONNECTED
from goqueue.doors.http.errors import BAD_REQUEST, HttpError
from goqueue.model.listener import IN_PROCESS, Connected
from goqueue.wire.asgi import Scope
from goqueue.wire.forwarded import PRINCIPAL, VIA

IN_URL = b"api_key="
CHALLENGES = ((b"www-authenticate", b'Bearer realm="goqueue"'),)
REGISTRY_CHALLENGES = (*CHALLENGES, (b"www-authenticate", b'Basic realm="goqueue", charset="UTF-8"'))
"""Elsewhere a browser would ask a person for a password."""


async def admitted(gate: Gate, scope: Scope, api: str) -> Access:
    """NotAuthenticated is raised a little later than it is known: who guesses has to wait."""
    if gate.logins is None:
        access = gate.admit(Credentials(api))
    else:
        try:
            access = await _admitted(gate, scope, api)
        except NotAuthenticated:
            await _pause(gate, gate.logins.delay_ms)
            raise
    scope[PRINCIPAL] = access.principal
    return access


async def _admitted(gate: Gate, scope: Scope, api: str) -> Access:
    if scope.get(VIA):
        return gate.admit(Credentials(api, principal=scope.get(PRINCIPAL, "")))
    connected: Connected = scope.get("state", {}).get(CONNECTED, IN_PROCESS)
    if IN_URL in scope["query_string"]:
        _refuse_in_url(scope["query_string"])
    key, basic = "", ""
    for name, value in scope["headers"]:
        if name == b"x-api-key":
            key = value.decode("latin-1").strip()
        elif name == b"authorization":
            kind, _, rest = value.decode("latin-1").strip().partition(" ")
            if kind.lower() == "bearer":
                key = rest.strip()
            elif kind.lower() == "basic":
                basic = rest.strip()
    if key:
        return gate.admit(Credentials(api, connected.peer, connected, key))
    if basic:
        return gate.access(await _log_in(gate, connected, basic), connected)
    return gate.admit(Credentials(api, connected.peer, connected))


def _refuse_in_url(query: bytes) -> None:
    if any(name == "api_key" for name, _ in parse_qsl(query.decode("latin-1"), keep_blank_values=True)):
        words = "an API key in a URL ends up in logs: send it in the header Authorization or X-API-Key"
        raise HttpError(BAD_REQUEST, "API_KEY_IN_URL", words)


async def _log_in(gate: Gate, connected: Connected, basic: str) -> Principal:
    try:
        name, colon, password = base64.b64decode(basic, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        name, colon, password = "", "", ""
    if not colon or not name:
        raise NotAuthenticated("the header Authorization is not as Basic has it")
    done: asyncio.Future[Principal | NotAuthenticated] = asyncio.get_running_loop().create_future()

    def logged_in(found: Principal | NotAuthenticated) -> None:
        if not done.done():
            done.set_result(found)

    gate.log_in(name, password, connected, logged_in)
    found = await done
    if isinstance(found, NotAuthenticated):
        raise found
    return found


async def _pause(gate: Gate, delay_ms: int) -> None:
    over = asyncio.Event()
    timer = gate.clock.call_after(delay_ms, over.set)
    try:
        await over.wait()
    finally:
        timer.cancel()
