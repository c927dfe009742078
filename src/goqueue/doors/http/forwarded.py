"""Requests that other nodes pass on: they enter the application as if a client had sent them here."""

import asyncio
from collections.abc import Callable

import msgspec

from goqueue.doors.http.errors import UNAVAILABLE
from goqueue.ports.forwarding import NotHere, OnReply, Stop
from goqueue.telemetry.logs import get_logger
from goqueue.wire.asgi import TURN, App, Message, Scope
from goqueue.wire.forwarded import (
    NOT_MINE,
    PEER,
    PRINCIPAL,
    VIA,
    Headers,
    HttpReply,
    HttpRequest,
    decode_request,
    encode,
)

events = get_logger("http door")


class ForwardedRequests:
    """`Serve` for questions of this kind."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._tasks: dict[asyncio.Task[None], None] = {}

    def serve(self, payload: bytes, _timeout_ms: int, on_reply: OnReply) -> Stop | None:
        try:
            request = decode_request(payload)
        except msgspec.DecodeError as error:
            on_reply(NotHere(f"the request is not understood: {error}"))
            return None
        asked = _Asked(request)
        task = asyncio.get_running_loop().create_task(asked.run(self._app, on_reply))
        self._tasks[task] = None
        task.add_done_callback(self._forget)
        return asked.leave

    def _forget(self, task: "asyncio.Task[None]") -> None:
        self._tasks.pop(task, None)

    def stop(self) -> None:
        for task in list(self._tasks):
            task.cancel()


class _Asked:
    def __init__(self, request: HttpRequest) -> None:
        self._body: bytes | None = request.body
        self._gone = asyncio.Event()
        self._status = 0
        self._headers: Headers = []
        self._pieces: list[bytes] = []
        self._scope: Scope = {
            "type": "http",
            "method": request.method,
            "scheme": "http",
            "path": request.path,
            "raw_path": request.raw_path,
            "query_string": request.query,
            "headers": request.headers,
            VIA: True,
            PRINCIPAL: request.principal,
            PEER: request.peer,
        }

    def leave(self) -> None:
        """The one that asked waits no more."""
        self._gone.set()
        if TURN in self._scope:
            self._scope[TURN].leave()

    async def run(self, app: App, on_reply: Callable[[bytes | NotHere], None]) -> None:
        try:
            await app(self._scope, self._receive, self._send)
        except Exception as error:  # noqa: BLE001  the one that asks must not wait for ever
            events.error("forwarded request failed", path=self._scope["path"], exc_info=error)
        if self._scope.get(NOT_MINE):
            on_reply(NotHere("it belongs to another node"))
        elif self._status:
            on_reply(encode(HttpReply(self._status, self._headers, b"".join(self._pieces))))
        else:
            on_reply(encode(HttpReply(UNAVAILABLE, [], b"")))

    async def _receive(self) -> Message:
        body, self._body = self._body, None
        if body is not None:
            return {"type": "http.request", "body": body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._headers = [(bytes(name), bytes(value)) for name, value in message["headers"]]
        else:
            self._pieces.append(message.get("body", b""))
