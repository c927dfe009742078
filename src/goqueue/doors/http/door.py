"""The listener: uvicorn's connections on our own event loop, without its process around them."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from email.utils import formatdate
from functools import partial
from typing import Generic, TypeVar, cast

from uvicorn.config import Config
from uvicorn.server import ServerState

from goqueue.doors.http.asgi import PARKED
from goqueue.doors.http.deadlines import DEADLINES, Deadlines
from goqueue.doors.http.listener import HttpConnection, HttpLimits
from goqueue.model.listener import Api
from goqueue.ports.listening import Listening, plain
from goqueue.ports.network import Listener, Network
from goqueue.telemetry.logs import get_logger
from goqueue.wire.asgi import App

COMPLAINTS_PER_MINUTE = 10
STANDING_HEADERS = (
    (b"server", b"goqueue"),
    # Browsers must not take what a message holds for a page or a script, nor give it to pages of others.
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
)

CLOSE = (b"connection", b"close")
CLOSED_PER_TURN = 50
LOOK_AGAIN_S = 0.01
CANCELLED_S_MAX = 1.0
"""How long requests that were cut off are waited for."""

events = get_logger("http door")

T = TypeVar("T")


class InOrder(Generic[T]):
    """What uvicorn keeps in sets, in the order in which it came: which of two is closed first does not depend on where
    in memory they are.
    """

    def __init__(self) -> None:
        self._items: dict[T, None] = {}

    def add(self, item: T) -> None:
        self._items[item] = None

    def discard(self, item: T) -> None:
        self._items.pop(item, None)

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)


class HttpDoor:
    def __init__(
        self,
        app: App,
        limits: HttpLimits | None = None,
        *,
        network: Network | None = None,
        now_ms: Callable[[], int] | None = None,
        arrive: Callable[[str], int] | None = None,
    ) -> None:
        """`arrive`: whether one more connection from an address may be, as quotas have it."""
        self.limits = limits or HttpLimits()
        self.arrive: Callable[[str], int] = arrive or (lambda _host: 0)
        self._config = Config(
            app,
            http=HttpConnection,
            ws="none",
            lifespan="off",
            log_config=None,
            # Its complaints have no limit and no address; ours have. What a handler raises is caught by the app.
            log_level=logging.CRITICAL,
            access_log=False,
            timeout_keep_alive=self.limits.idle_s_max,
            interface="asgi3",
            proxy_headers=False,
        )
        self._state = ServerState()
        self._state.connections = InOrder()  # type: ignore[assignment]
        self._state.tasks = InOrder()  # type: ignore[assignment]
        self._stop_app: Callable[[], None] = getattr(app, "stop", lambda: None)
        self._parked: dict[asyncio.Task[None], None] = {}
        self._deadlines = Deadlines()
        self._app_state = {PARKED: self._parked, DEADLINES: self._deadlines}
        self._plain = plain(Api.HTTP, network)
        self._now_ms = now_ms
        self._servers: list[Listener] = []
        self._is_empty = asyncio.Event()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self.is_leaving = False
        """The node stops soon: each connection ends with the next answer, which says so."""
        self._has_heirs = False
        """Other nodes take over: clients see nothing of the stop but that they have to connect again."""
        self.malformed = 0
        """Requests that were refused before the app saw them."""
        self._complaints = 0

    async def open(self, host: str, port: int, listening: Listening | None = None) -> tuple[str, int]:
        """Listen, beside where it listens already; port 0 picks a free one. Returns the real address."""
        if not self._config.loaded:
            self._config.load()
        listening = listening or self._plain
        server = await listening.network.listen(partial(self._connect, listening), host, port)
        if not self._servers:
            self._date()
            self._sweep()
        self._servers.append(server)
        return host, server.port

    def _connect(self, listening: Listening) -> HttpConnection:
        return HttpConnection(self._config, self._state, dict(self._app_state), self, listening)

    def _date(self) -> None:
        now_s = None if self._now_ms is None else self._now_ms() / 1000
        headers = [(b"date", formatdate(now_s, usegmt=True).encode()), *STANDING_HEADERS]
        self._state.default_headers = [*headers, CLOSE] if self.is_leaving else headers
        self._timers["date"] = asyncio.get_running_loop().call_later(1, self._date)

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        self._deadlines.sweep(loop.time())
        for connection in self.connections:
            connection.sweep(loop.time())
        self._timers["sweep"] = loop.call_later(self.limits.sweep_s, self._sweep)

    @property
    def requests(self) -> int:
        """That the app was given."""
        return self._state.total_requests

    @property
    def connections(self) -> list[HttpConnection]:
        return cast(list[HttpConnection], list(self._state.connections))

    def complain(self, peer: str, why: str) -> None:
        """Counted always, logged within reason: a babbler must not fill the disk."""
        self.malformed += 1
        if self._complaints < COMPLAINTS_PER_MINUTE:
            if not self._complaints:
                self._timers["complaints"] = asyncio.get_running_loop().call_later(60, self._forget_complaints)
            self._complaints += 1
            events.warning("bad request", peer=peer, reason=why)

    def _forget_complaints(self) -> None:
        self._complaints = 0

    def lost(self) -> None:
        if not self._state.connections:
            self._is_empty.set()

    def leave(self) -> None:
        """Before a stop, while others take over: all requests are answered, and their clients go elsewhere with the
        next. A connection that is closed without a word may take a request along that was on its way.
        """
        self._has_heirs = True
        self._say_close()

    def _say_close(self) -> None:
        self.is_leaving = True
        self._state.default_headers = [*self._state.default_headers, CLOSE]

    def stop_reading(self) -> None:
        """The first step of a stop: no new connection, and none is kept for another request. Requests that are on
        their way are waited for by `close`."""
        if self._servers:
            if not self.is_leaving:
                self._say_close()
            for server in self._servers:
                server.close(takes_waiting=True)
            self._stop_app()

    async def close(self) -> None:
        """Returns when no request and no connection is left. Who waits for messages is told to go elsewhere; what takes
        too long is cut off.
        """
        if not self._servers:
            return
        self.stop_reading()
        await self._last_requests()
        self._stop_app()  # also for those that have come since
        for task in list(self._parked):
            task.cancel()
        for timer in self._timers.values():
            timer.cancel()
        loop = asyncio.get_running_loop()
        give_up = loop.time() + self.limits.drain_s_max
        if self._state.tasks:
            _, late = await asyncio.wait(self._state.tasks, timeout=self.limits.drain_s_max)
            for task in [task for task in self._state.tasks if task in late]:
                task.cancel()
            if late:
                _, stuck = await asyncio.wait(late, timeout=CANCELLED_S_MAX)
                if stuck:  # the process ends all the same
                    events.error("requests did not end when they were cancelled", requests=len(stuck))
        await self._drain(give_up)
        for server in self._servers:
            await server.wait_closed()
        self._servers.clear()

    async def _last_requests(self) -> None:
        """Of connections that were taken just before the stop, and of idle ones, if they have come by now."""
        for server in self._servers:
            await server.wait_taken()
        wait_s = self.limits.drain_s_max if self._has_heirs else self.limits.first_s_max
        for _ in range(int(wait_s / LOOK_AGAIN_S)):
            if not any(each.is_awaited for each in self.connections):
                break
            await asyncio.sleep(LOOK_AGAIN_S)
        for number, connection in enumerate(self.connections):
            if number % CLOSED_PER_TURN == 0:
                await self._read_what_has_come()
            if connection.is_idle:
                connection.transport.close()

    async def _read_what_has_come(self) -> None:
        """A request that has reached this machine is answered: to close a connection with something unread would take
        it along. In one turn of the loop it is noticed, in the next it is here."""
        for _ in range(2):
            await asyncio.sleep(0)

    async def _drain(self, give_up: float) -> None:
        """What was answered may still leave, if the client takes it."""
        for connection in self.connections:
            connection.transport.close()
        self._is_empty.clear()
        if self._state.connections:
            cut_off = asyncio.get_running_loop().call_at(give_up, self._abort)
            await self._is_empty.wait()
            cut_off.cancel()

    def _abort(self) -> None:
        for connection in self.connections:
            connection.transport.abort()
