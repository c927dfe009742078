"""Questions over HTTP: asked again where that is safe, and answered with a type or an error."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from random import Random
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from goqueue.client.clock import Backoff, Clock, LoopClock
from goqueue.client.errors import ClientError, ConnectionLost, InvalidArgument, TimedOut
from goqueue.client.events import Event, events_of
from goqueue.wire.rest.common import ErrorReply

SAFE = frozenset(("GET", "PUT", "DELETE"))
"""To be sent twice is to be sent once."""
LATER = frozenset((429, 503))
NOT_FOUND, CONFLICT = 404, 409
JSON = {"content-type": "application/json"}
EVENTS_SILENCE_S = 60.0
"""Four times what a broker waits before it says that it is still there."""

T = TypeVar("T")


class HttpRefused(ClientError):
    """The broker turned a request down: `status` and `code` say why."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.retriable = status in LATER


class Http:
    def __init__(
        self,
        server: str,
        *,
        api_key: str | None = None,
        timeout_s: float = 30.0,
        attempts_max: int = 5,
        backoff: Backoff | None = None,
        clock: Clock | None = None,
        dice: Random | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        address = server if "://" in server else f"http://{server}"
        if not address.startswith(("http://", "https://")):
            raise InvalidArgument(f"{server!r} is no HTTP address, such as http://127.0.0.1:8080")
        headers = {} if api_key is None else {"authorization": f"Bearer {api_key}"}
        self._server = address.rstrip("/")
        # Certificates take longer to load than most questions to answer, and plain HTTP needs none.
        is_tls = address.startswith("https://")
        self._client = httpx.AsyncClient(
            base_url=self._server, timeout=timeout_s, headers=headers, transport=transport, verify=is_tls
        )
        self._attempts_max = attempts_max
        self._backoff = backoff or Backoff()
        self._clock = clock
        self._dice = dice or Random()  # noqa: S311  jitter

    async def close(self) -> None:
        await self._client.aclose()

    async def ask(
        self,
        reply: type[T],
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, Any] | None = None,
        wait_s: float = 0.0,
    ) -> T:
        """What is None in `body` or `query` is not said. `wait_s`: how long the broker may take on purpose."""
        content = None if body is None else msgspec.json.encode(said(body))
        attempt = 0
        while True:
            try:
                return await self._ask(reply, method, path, content, said(query or {}), wait_s)
            except ClientError as error:
                # A refusal was not done; whether a request without an answer was, nobody knows.
                is_safe = method in SAFE or isinstance(error, HttpRefused)
                attempt += 1
                if not error.retriable or not is_safe or attempt == self._attempts_max:
                    raise
            await self.pause(attempt)

    async def events(self, path: str, query: Mapping[str, Any]) -> AsyncGenerator[Event, None]:
        """What comes, until somebody ends it. A broker that is silent for long is lost: it speaks now and then."""
        timeout = httpx.Timeout(self._client.timeout.connect, read=EVENTS_SILENCE_S)
        try:
            async with self._client.stream("GET", path, params=said(query), timeout=timeout) as response:
                if not response.is_success:
                    await response.aread()
                    raise _refusal(response)
                async with aclosing(events_of(response.aiter_lines())) as events:
                    async for event in events:
                        yield event
        except httpx.HTTPError as error:
            raise ConnectionLost(f"cannot follow {self._server}: {str(error) or type(error).__name__}") from error
        raise ConnectionLost(f"{self._server} ended the connection")

    async def pause(self, attempt: int) -> None:
        await self.sleep(self._backoff.pause_s(attempt, self._dice))

    async def sleep(self, delay_s: float) -> None:
        if self._clock is None:
            self._clock = LoopClock()
        await self._clock.sleep(delay_s)

    async def _ask(
        self, reply: type[T], method: str, path: str, content: bytes | None, query: dict[str, Any], wait_s: float
    ) -> T:
        timeout = httpx.Timeout(self._client.timeout.connect, read=(self._client.timeout.read or 0) + wait_s)
        try:
            response = await self._client.request(
                method, path, content=content, headers=None if content is None else JSON, params=query, timeout=timeout
            )
        except httpx.TimeoutException as error:
            raise TimedOut(f"{self._server} did not answer in time") from error
        except httpx.HTTPError as error:
            raise ConnectionLost(f"cannot ask {self._server}: {error}") from error
        if response.is_success:
            try:
                return msgspec.json.decode(response.content, type=reply)
            except msgspec.MsgspecError as error:
                raise ClientError(f"{self._server} does not answer as GoQueue would: {error}") from None
        raise _refusal(response)


def _refusal(response: httpx.Response) -> HttpRefused:
    try:
        said = msgspec.json.decode(response.content, type=ErrorReply)
    except msgspec.MsgspecError:
        return HttpRefused(response.status_code, "UNKNOWN", f"{response.status_code} {response.reason_phrase}")
    return HttpRefused(response.status_code, said.code, said.error)


def said(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


def word(text: str) -> str:
    """One step of a path."""
    return quote(text, safe="")
