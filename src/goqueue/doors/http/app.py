"""The door as an ASGI application: finds the operation for a request, at the root and under /v1."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from urllib.parse import unquote

from starlette.middleware.cors import CORSMiddleware

from goqueue.broker.access import Access
from goqueue.broker.gate import Gate
from goqueue.doors.http import follow_parts
from goqueue.doors.http.asgi import answer_error, header
from goqueue.doors.http.browsers import Visitors, read_only
from goqueue.doors.http.call import Call
from goqueue.doors.http.console_files import console_files
from goqueue.doors.http.credentials import admitted, shown
from goqueue.doors.http.endpoint import Methods, answer_fault
from goqueue.doors.http.errors import NOT_FOUND, TOO_MANY, HttpError
from goqueue.doors.http.forwarded import ForwardedRequests
from goqueue.doors.http.operation import SLASH_SIGN, Route
from goqueue.doors.http.paths import Paths
from goqueue.doors.http.permissions import READS_TOPIC
from goqueue.doors.http.request_rate import RequestRate
from goqueue.doors.http.routes.follow import look_at_part
from goqueue.doors.http.routes.table import ROUTES
from goqueue.model.access import OPEN
from goqueue.model.codes import Code
from goqueue.model.console import Console
from goqueue.model.credentials import Credentials
from goqueue.model.errors import GoQueueError
from goqueue.model.own_version import own_version
from goqueue.model.refusal import Refused
from goqueue.telemetry.calls import call_each
from goqueue.wire.asgi import ACCESS, ASKED_AS, App, Message, Receive, Scope, Send
from goqueue.wire.forwarded import HTTP

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
        self,
        gate: Gate,
        *,
        by_header: Mapping[bytes, App] | None = None,
        requests_per_second_max: int = 0,
        visitors: Visitors | None = None,
        console: Console = Console.ON,
    ) -> None:
        view = gate.nobody().view(OPEN)
        call = Call(view, gate.clock.now_ms(), own_version(), gate.forwarding, console=console)
        self._call = call
        self._gate = gate
        self._paths = _paths(ROUTES, call, gate)
        self._is_read_only = console is Console.READ_ONLY
        self._by_header = by_header or {}
        self._forwarded = ForwardedRequests(self._dispatch)
        if gate.forwarding is not None:
            gate.forwarding.serve(HTTP, self._forwarded.serve)
            follow_parts.serve(gate.forwarding, partial(look_at_part, self._following))
        self._rate = RequestRate(gate.clock.monotonic_s, requests_per_second_max) if requests_per_second_max else None
        self._id = gate.dice.randbytes(4).hex().encode()
        self._requests = 0
        self._meters = gate.meters
        self._visitors = visitors or Visitors()
        self._for_pages: App = CORSMiddleware(
            self._route,
            allow_origins=sorted(self._visitors.origins),
            allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"],
            allow_headers=["*"],
            expose_headers=["X-Request-ID", "X-RateLimit-Limit", "X-RateLimit-Remaining", "Retry-After"],
            max_age=PREFLIGHT_S,
        )

    def _following(self, principal: str, host: str) -> Call:
        """As whoever follows a topic may use the broker. Another node says who that is."""
        view = self._gate.admit(Credentials("http", f"{host}:", principal=principal)).view(READS_TOPIC)
        return replace(self._call, broker=view, principal=principal)

    def stop(self) -> None:
        """What would go on for ever comes to its end."""
        call_each(list(self._call.on_stop))
        # In the next turn: those who have their answer by now tell it first.
        asyncio.get_running_loop().call_soon(self._forwarded.stop)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        given = origin = None
        for name, value in scope["headers"]:
            if name == b"x-request-id":
                given = value
            elif name == b"origin":
                origin = value
        if given is None or not _REQUEST_ID.fullmatch(given):
            self._requests += 1
            given = b"%b-%x" % (self._id, self._requests)
        scope[ASKED_AS] = given.decode("latin-1")
        is_started = False

        async def send_named(message: Message) -> None:
            nonlocal is_started
            if message["type"] == "http.response.start":
                is_started = True
                self._meters.answered(message["status"])
                message["headers"].append((b"x-request-id", given))
            await send(message)

        try:
            refusal = self._visitors.refusal(scope, origin) or (
                read_only(scope, origin) if self._is_read_only else None
            )
            if refusal is not None:
                await answer_error(send_named, *refusal)
            else:
                await (self._route if origin is None else self._for_pages)(scope, receive, send_named)
        except Exception as error:
            if is_started:
                raise
            await answer_fault(scope, send_named, error)

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        if path.startswith(PREFIX) and path[len(PREFIX) : len(PREFIX) + 1] in ("", "/"):
            path = scope["path"] = path[len(PREFIX) :] or "/"
        resource = path[1:].partition("/")[0]
        if resource in NAMES_WITH_SLASHES and _SLASH.search(scope.get("raw_path", b"")):
            path = scope["path"] = _keep_slashes(scope["raw_path"]).removeprefix(PREFIX)
        if self._rate is not None and resource not in NOT_LIMITED:
            headers = self._rate.take()
            if headers is not None:
                await answer_error(send, TOO_MANY, "TOO_MANY_REQUESTS", "too many requests; try again later", headers)
                return
        await self._dispatch(scope, receive, send)

    async def _dispatch(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        resource = path[1:].partition("/")[0]
        if not resource or resource not in self._paths.first_words:
            for name, other in self._by_header.items():
                if header(scope, name) is not None:
                    scope[ACCESS] = await self._access(scope)
                    await other(scope, receive, send)
                    return
        found = self._paths.find(path)
        if found is None:
            await _not_found(scope, receive, send)
            return
        app, scope["path_params"] = found
        await app(scope, receive, send)

    async def _access(self, scope: Scope) -> Access | Credentials | GoQueueError:
        """For an application of another protocol, which refuses in its own words. Credentials: a signature, which it
        has to check itself, since the body is signed too."""
        try:
            credentials = shown(scope, "sqs")
            if credentials.signature:
                return credentials
            return await admitted(self._gate, scope, "sqs")
        except HttpError as error:  # of this protocol: others know no such errors
            return Refused(Code.INVALID_REQUEST, str(error))
        except GoQueueError as error:
            return error.kept()


def _keep_slashes(raw_path: bytes) -> str:
    """A slash inside a name does not part names. Until a handler has it, it is a sign that no name may hold."""
    return unquote(_SLASH.sub(SLASH_SIGN.encode(), raw_path).decode("ascii", "replace"))


async def _not_found(scope: Scope, _receive: Receive, send: Send) -> None:
    await answer_error(send, NOT_FOUND, "NO_SUCH_ROUTE", f"there is no {scope['path']} here; see /docs")


def _paths(routes: list[Route], call: Call, gate: Gate) -> Paths:
    by_path: dict[str, list[Route]] = {}
    for route in routes:
        by_path.setdefault(route.operation.path, []).append(route)
    files = {} if call.console is Console.OFF else console_files()
    return Paths({**{path: Methods(each, call, gate) for path, each in by_path.items()}, **files})
