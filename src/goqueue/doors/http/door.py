"""The listener: uvicorn's connections on our own event loop, without its process around them."""

import asyncio
from email.utils import formatdate

from uvicorn.config import Config
from uvicorn.server import ServerState

from goqueue.doors.http.asgi import App
from goqueue.doors.http.listener import HttpConnection

BACKLOG = 1024
IDLE_S_MAX = 60
CONNECTIONS_MAX = 10_000
DRAIN_S_MAX = 2
"""How long a node that stops waits for the requests that it has begun to answer."""


class HttpDoor:
    def __init__(self, app: App) -> None:
        self._config = Config(
            app,
            http=HttpConnection,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            timeout_keep_alive=IDLE_S_MAX,
            limit_concurrency=CONNECTIONS_MAX,
            interface="asgi3",
            proxy_headers=False,
        )
        self._state = ServerState()
        self._server: asyncio.Server | None = None
        self._dating: asyncio.TimerHandle | None = None

    async def open(self, host: str, port: int) -> tuple[str, int]:
        """Listen; port 0 picks a free one. Returns the real address."""
        self._config.load()
        loop = asyncio.get_running_loop()
        self._date()
        self._server = await loop.create_server(self._connect, host, port, backlog=BACKLOG)
        return host, self._server.sockets[0].getsockname()[1]

    def _connect(self) -> HttpConnection:
        return HttpConnection(config=self._config, server_state=self._state, app_state={})

    def _date(self) -> None:
        self._state.default_headers = [(b"date", formatdate(usegmt=True).encode()), (b"server", b"goqueue")]
        self._dating = asyncio.get_running_loop().call_later(1, self._date)

    def stop_reading(self) -> None:
        """The first step of a stop: no new connection, and none is kept for another request."""
        if self._server is not None:
            self._server.close()
            for connection in list(self._state.connections):
                connection.shutdown()

    async def close(self) -> None:
        """Returns when no request is left. One that takes too long, as a long poll may, is cut off."""
        if self._server is None:
            return
        self.stop_reading()
        if self._dating is not None:
            self._dating.cancel()
        if self._state.tasks:
            _, late = await asyncio.wait(self._state.tasks, timeout=DRAIN_S_MAX)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)
        for connection in list(self._state.connections):
            transport = getattr(connection, "transport", None)
            if transport is not None:
                transport.abort()
        await self._server.wait_closed()
        self._server = None
