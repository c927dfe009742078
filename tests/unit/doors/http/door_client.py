"""The HTTP door in process: a real broker in virtual time, asked without a socket."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx

from goqueue.broker.gate import Gate
from goqueue.doors.http.app import HttpApp
from goqueue.testing import MemoryBroker, broker


class Client:
    """Asks, and gives back the decoded body of an answer with the status that was expected."""

    def __init__(self, b: MemoryBroker, http: httpx.AsyncClient) -> None:
        self.b = b
        self.http = http

    async def restart(self) -> None:
        """The broker, and the door of the new one."""
        await self.b.restart()
        self.http._transport = httpx.ASGITransport(HttpApp(Gate(self.b.broker)))

    async def ask(self, method: str, path: str, json: Any = None, *, status: int = 200, **more: Any) -> Any:
        reply = await self.http.request(method, path, json=json, **more)
        assert reply.status_code == status, f"{method} {path}: {reply.status_code} {reply.text}"
        body = reply.json()
        if status >= 400 and "error" in body:
            assert body["status"] == status
            assert body["error"]
        return body

    async def get(self, path: str, *, status: int = 200, **query: Any) -> Any:
        return await self.ask("GET", path, status=status, params=query)

    async def post(self, path: str, *, status: int = 200, **body: Any) -> Any:
        return await self.ask("POST", path, body, status=status)

    async def put(self, path: str, *, status: int = 200, **body: Any) -> Any:
        return await self.ask("PUT", path, body, status=status)

    async def patch(self, path: str, *, status: int = 200, **body: Any) -> Any:
        return await self.ask("PATCH", path, body, status=status)

    async def delete(self, path: str, *, status: int = 200) -> Any:
        return await self.ask("DELETE", path, status=status)


@asynccontextmanager
async def door(**options: Any) -> AsyncIterator[Client]:
    """For `async with door() as client`; `client.b` is the broker behind it."""
    async with broker() as b:
        app = HttpApp(Gate(b.broker), **options)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://goqueue") as http:
            yield Client(b, http)


def served(test: Callable[[Client], Awaitable[None]]) -> Callable[[], None]:
    """A test that gets a client of a door of its own."""

    async def inside() -> None:
        async with door() as client:
            await test(client)

    def run() -> None:
        asyncio.run(inside())

    run.__name__ = test.__name__
    run.__doc__ = test.__doc__
    return run
