"""A closed HTTP door in virtual time, and a browser in front of it: it keeps cookies, and sends them along."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx

from goqueue.broker.accounts.logins import Logins
from goqueue.broker.gate import Gate
from goqueue.doors.http.app import HttpApp
from goqueue.doors.http.browsers import Visitors
from goqueue.doors.sqs.app import TARGET, SqsApp
from goqueue.testing import MemoryBroker, broker
from tests.unit.doors.http.test_credentials import done_of
from tests.unit.testing.loops import turn

TURNS = 20
HOST = "mq.example.org"


class Door:
    def __init__(self, b: MemoryBroker, app: HttpApp, key: str, gate: Gate) -> None:
        self.b = b
        self.gate = gate
        self._app = app
        self.key = key
        """Of an admin."""
        self.cookies: dict[str, str] = {}
        self.is_secure = True
        self._advances = False
        self.server = ("127.0.0.1", 8443)

    @property
    def now_ms(self) -> int:
        return self.b.broker.clock.now_ms()

    async def advance(self, ms: int) -> None:
        await self.b.advance(ms)

    async def settle(self) -> None:
        for _ in range(TURNS):
            await turn()

    async def log_in(self, user: str = "alice", password: str = "secret") -> httpx.Response:
        return await self.ask("POST", "/session", {}, {"user": user, "password": password})

    async def get(self, path: str) -> httpx.Response:
        return await self.ask("GET", path, {})

    async def as_admin(self, method: str, path: str, **body: Any) -> None:
        reply = await self.ask(method, path, {"x-api-key": self.key}, body)
        assert reply.status_code < 300, reply.text

    async def ask(self, method: str, path: str, headers: dict[str, str], body: Any = None) -> httpx.Response:
        """A refusal is told a little later: time passes until there is an answer."""
        asked = asyncio.ensure_future(self._ask(method, path, headers, body))
        await self.settle()
        while not asked.done():
            if not self._advances:
                self._advances = True
                await self.advance(10)
                self._advances = False
            await self.settle()
        reply = await asked
        for each in reply.headers.get_list("set-cookie"):
            name, _, rest = each.partition("=")
            self.cookies[name] = rest.partition(";")[0]
            if "Max-Age=0" in rest:
                del self.cookies[name]
        return reply

    def follow(self, path: str) -> "asyncio.Future[bytes]":
        """All that a stream told, when it ends."""

        async def content() -> bytes:
            return (await self._ask("GET", path, {}, None)).content

        return asyncio.ensure_future(content())

    async def _ask(self, method: str, path: str, headers: dict[str, str], body: Any) -> httpx.Response:
        said = {"host": HOST, **headers}
        if self.cookies:
            said["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        content = b"" if body is None else json.dumps(body).encode()
        if body is not None:
            said["content-type"] = "application/json"
        place, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "scheme": "https" if self.is_secure else "http",
            "path": place,
            "raw_path": place.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in said.items()],
            "server": self.server,
            "client": ("127.0.0.1", 5000),
        }
        told: list[Any] = []
        waiting = [{"type": "http.request", "body": content, "more_body": False}]

        async def receive() -> Any:
            if waiting:
                return waiting.pop()
            return await asyncio.Future[Any]()

        async def send(message: Any) -> None:
            told.append(message)

        await self._app(scope, receive, send)
        pieces = b"".join(each.get("body", b"") for each in told[1:])
        return httpx.Response(told[0]["status"], headers=told[0]["headers"], content=pieces)


@asynccontextmanager
async def session_door(
    prepare: Callable[[Gate], None] = lambda _gate: None, *, access_age_ms_max: int = 0
) -> AsyncIterator[Door]:
    """With a user, alice, whose password is `secret`."""
    async with broker() as b:
        node = b.broker
        logins = Logins(node.accounts, node.clock, node.dice, b"secret")
        gate = Gate(node, logins=logins, is_closed=True, access_age_ms_max=access_age_ms_max)
        prepare(gate)
        made = await done_of(lambda done: node.accounts.create_key("root", ("admin",), 0, {}, done))
        app = HttpApp(gate, by_header={TARGET: SqsApp(gate)}, visitors=Visitors([HOST]))
        door = Door(b, app, made.text.reveal(), gate)
        await door.as_admin("POST", "/admin/users", name="alice", password="secret", roles=["operator"])
        yield door


def in_door(test: Callable[[Door], Awaitable[None]]) -> Callable[[], None]:
    async def inside() -> None:
        async with session_door() as door:
            await test(door)

    def run() -> None:
        asyncio.run(inside())

    run.__name__ = test.__name__
    return run
