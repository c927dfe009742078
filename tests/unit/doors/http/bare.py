"""Requests of the HTTP listener without a client library, which would leave traces of its own: every operation that the
door offers, with the example that its document tells.
"""

import asyncio
import json
from collections.abc import Callable, MutableMapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from goqueue.broker.gate import Gate
from goqueue.doors.http.app import HttpApp
from goqueue.doors.http.openapi import document
from goqueue.doors.http.postman import example
from goqueue.doors.http.routes.table import ROUTES
from goqueue.doors.sqs.app import TARGET, SqsApp
from goqueue.model.access import Rights
from goqueue.testing import MemoryBroker
from tests.unit.testing.loops import turn

TOPIC, GROUP = "orders", "workers"
TURNS = 10
"""Of the event loop, until a client leaves."""
IN_PATHS = {"topic": TOPIC, "group": GROUP, "partition": "0", "offset": "0", "id": "1", "version": "1"}


class Asked(NamedTuple):
    method: str
    path: str
    body: Any = None


class Answered(NamedTuple):
    status: int
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def samples() -> dict[str, Asked]:
    """By the names of the operations; whatever may wait waits for nothing."""
    told = document(ROUTES, "1")
    schemas = told["components"]["schemas"]
    found = {}
    for path, methods in told["paths"].items():
        for method, operation in methods.items():
            words, query = path, {}
            for each in operation.get("parameters", ()):
                value = IN_PATHS.get(each["name"]) or example(each["schema"], schemas)
                if each["in"] == "path":
                    words = words.replace("{" + each["name"] + "}", str(value))
                elif each["required"]:
                    query[each["name"]] = value
            body = operation.get("requestBody")
            content = example(body["content"]["application/json"]["schema"], schemas) if body else None
            found[operation["operationId"]] = Asked(
                method.upper(), words + (f"?{urlencode(query)}" if query else ""), content
            )
    return found


class Bare:
    """The door of a broker, asked as a listener asks it."""

    def __init__(self, b: MemoryBroker, rights: Rights | None = None) -> None:
        self.b = b
        gate = Gate(b.broker, rights)
        self._app = HttpApp(gate, by_header={TARGET: SqsApp(gate)})

    async def ask(
        self,
        asked: Asked,
        *,
        headers: tuple[tuple[bytes, bytes], ...] = (),
        leaves: bool = False,
        on_piece: Callable[[bytes], object] = lambda _piece: None,
    ) -> Answered:
        path, _, query = asked.path.partition("?")
        status, pieces, is_read = 0, [], False
        stays = asyncio.get_running_loop().create_future()

        async def receive() -> dict[str, Any]:
            nonlocal is_read
            if is_read and leaves:
                for _ in range(TURNS):
                    await turn()
                return {"type": "http.disconnect"}
            if is_read:
                await stays
            is_read = True
            return {"type": "http.request", "body": b"" if asked.body is None else json.dumps(asked.body).encode()}

        async def send(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            status = message.get("status", status)
            pieces.append(message.get("body", b""))
            on_piece(pieces[-1])

        scope = {
            "type": "http",
            "method": asked.method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(b"host", b"localhost"), (b"content-type", b"application/json"), *headers],
            "client": ("127.0.0.1", 5555),
            "server": ("127.0.0.1", 8080),
        }
        await self._app(scope, receive, send)
        return Answered(status, b"".join(pieces))
