"""The door as an ASGI application: finds the operation for a request, at the root and under /v1."""

import re
import secrets
from collections.abc import Mapping
from importlib.metadata import version
from urllib.parse import unquote

from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route, Router

from goqueue.broker.broker import Broker
from goqueue.doors.http.asgi import App, Message, Receive, Scope, Send, answer_error, header
from goqueue.doors.http.call import Call
from goqueue.doors.http.endpoint import Methods
from goqueue.doors.http.errors import NOT_FOUND, TOO_MANY
from goqueue.doors.http.operation import SLASH_SIGN, Operation
from goqueue.doors.http.request_rate import RequestRate
from goqueue.doors.http.routes.table import OPERATIONS

PREFIX = "/v1"
NOT_LIMITED = frozenset({"health", "healthz", "readyz", "livez", "metrics", "version"})
NAMES_WITH_SLASHES = frozenset({"subjects", "schemas", "config", "mode", "compatibility"})
"""Confluent's clients name subjects after files that a Protobuf schema imports."""
PREFLIGHT_S = 300

_SLASH = re.compile(rb"%2f", re.IGNORECASE)
_REQUEST_ID = re.compile(rb"[\x21-\x7e]{1,128}")


class HttpApp:
    """`by_header` are doors of other protocols on this listener: who sends that header wants to go there."""

    def __init__(
        self, broker: Broker, *, by_header: Mapping[bytes, App] | None = None, requests_per_second_max: int = 0
    ) -> None:
        call = Call(broker, broker.clock.now_ms(), version("goqueue"), OPERATIONS)
        self._resources = _routers(OPERATIONS, call)
        self._by_header = by_header or {}
        self._rate = RequestRate(broker.clock.now_ms, requests_per_second_max) if requests_per_second_max else None
        self._handle: App = CORSMiddleware(
            self._route,
            allow_origins=["*"],
            allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"],
            allow_headers=["*"],
            expose_headers=["X-Request-ID", "X-RateLimit-Limit", "X-RateLimit-Remaining", "Retry-After"],
            max_age=PREFLIGHT_S,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        given = header(scope, b"x-request-id")
        if given is None or not _REQUEST_ID.fullmatch(given):
            given = secrets.token_hex(8).encode()

        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"].append((b"x-request-id", given))
            await send(message)

        await self._handle(scope, receive, send_named)

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        if path.startswith("/v1/"):
            path = scope["path"] = path[len(PREFIX) :]
        resource = path[1:].partition("/")[0]
        if resource in NAMES_WITH_SLASHES and _SLASH.search(scope.get("raw_path", b"")):
            scope["path"] = _keep_slashes(scope["raw_path"]).removeprefix(PREFIX)
        if self._rate is not None and resource not in NOT_LIMITED:
            headers = self._rate.take()
            if headers is not None:
                await answer_error(send, TOO_MANY, "TOO_MANY_REQUESTS", "too many requests; try again later", headers)
                return
        router = self._resources.get(resource)
        if router is not None:
            await router(scope, receive, send)
            return
        for name, app in self._by_header.items():
            if header(scope, name) is not None:
                await app(scope, receive, send)
                return
        await _not_found(scope, receive, send)


def _keep_slashes(raw_path: bytes) -> str:
    """A slash inside a name does not part names. Until a handler has it, it is a sign that no name may hold."""
    return unquote(_SLASH.sub(SLASH_SIGN.encode(), raw_path).decode("ascii", "replace"))


async def _not_found(scope: Scope, _receive: Receive, send: Send) -> None:
    await answer_error(send, NOT_FOUND, "NO_SUCH_ROUTE", f"there is no {scope['path']} here; see /docs")


def _routers(operations: list[Operation], call: Call) -> dict[str, Router]:
    """One for each first word of a path: a router tries its routes one after the other."""
    by_path: dict[str, list[Operation]] = {}
    for operation in operations:
        by_path.setdefault(operation.path, []).append(operation)
    routers: dict[str, Router] = {}
    for path in sorted(by_path, key=_literal_first):
        router = routers.setdefault(
            path[1:].partition("/")[0],
            Router(redirect_slashes=False, default=_not_found),
        )
        router.routes.append(Route(path, Methods(by_path[path], call)))
    return routers


def _literal_first(path: str) -> list[tuple[bool, str]]:
    return [(word.startswith("{"), word) for word in path.split("/")]
