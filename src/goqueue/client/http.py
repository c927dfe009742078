"""Questions over HTTP: asked again where that is safe, and answered with a type or an error."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from goqueue.client.clock import Backoff, LoopClock, Sleeper
from goqueue.client.errors import ClientError, ConnectionLost, InvalidArgument, TimedOut
from goqueue.client.events import Event, events_of
from goqueue.client.exchange import (
    SAFE,
    Answer,
    Ask,
    Exchange,
    ExchangeFailed,
    ExchangeTimedOut,
    PlainExchange,
    Streams,
)
from goqueue.client.exchanges import Exchanges
from goqueue.client.times import duration_s
from goqueue.model.tenancy import TENANT_HEADER
from goqueue.wire.rest.common import ErrorReply
from goqueue.wire.rest.operation import JSON, Operation

if TYPE_CHECKING:
    import httpx

    from goqueue.client.security import Security
    from goqueue.ports.dice import Dice
    from goqueue.ports.network import Network

LATER = frozenset((429, 503))
NOT_FOUND, CONFLICT = 404, 409
CONTENT_TYPE = {"content-type": JSON}
WAITS = ("wait", "timeout")
"""How long a poll waits, as the operations that poll call it."""
LINE_BYTES_MAX = 512 * 1024 * 1024
EVENTS_SILENCE_S = 60.0
"""Four times what a broker waits before it says that it is still there."""

R = TypeVar("R")


class HttpRefused(ClientError):
    """The broker turned a request down: `status` and `code` say why."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.retriable = status in LATER


class Http:
    def __init__(  # noqa: PLR0913  one for each option, by name only
        self,
        server: str,
        *,
        api_key: str | None = None,
        security: "Security | None" = None,
        timeout_s: float = 30.0,
        attempts_max: int = 5,
        backoff: Backoff | None = None,
        clock: Sleeper | None = None,
        dice: "Dice | None" = None,
        network: "Network | None" = None,
        streams: Streams | None = None,
        transport: "httpx.AsyncBaseTransport | None" = None,
    ) -> None:
        """`server`: an address, or those of several nodes of one cluster, with commas between them. `streams`: other
        connections than those of the event loop."""
        addresses = [_address(each) for each in server.split(",") if each.strip()] or [server]
        self._server = ",".join(addresses)
        if streams is None:
            from goqueue.client.loop_streams import LoopStreams  # not before it is needed: asyncio takes its time

            streams = LoopStreams(network)
        found = [_exchange(each, server, timeout_s, streams, transport, security) for each in addresses]
        self._base_path = found[0][0]
        if any(path != self._base_path for path, _ in found):
            raise InvalidArgument(f"{server!r}: the addresses of one cluster have the same path")
        self._exchange = found[0][1] if len(found) == 1 else Exchanges([each for _, each in found])
        self._timeout_s = timeout_s
        self._security: Security | None = None
        if api_key is not None and not (api_key.isascii() and api_key.isprintable()):
            raise InvalidArgument("the API key has characters that a header cannot carry, such as the end of a line")
        self._headers = {} if api_key is None else {"authorization": f"Bearer {api_key}"}
        if security is not None and security.has_credentials:
            self._headers = {}
            self._security = security
        self._tenant = {} if security is None or not security.tenant else {TENANT_HEADER: security.tenant}
        self._attempts_max = attempts_max
        self._backoff = backoff or Backoff()
        self._clock = clock
        self._dice = dice

    def _shown(self) -> dict[str, str]:
        """Who asks, now: a token may be another than the last time."""
        shown = self._headers if self._security is None else {"authorization": self._security.authorization}
        return shown | self._tenant

    async def close(self) -> None:
        await self._exchange.close()

    async def call(self, operation: Operation[R], given: Mapping[str, Any]) -> R:
        """What is None is not said."""
        target, body = self._target(operation, given)
        content = None if operation.body_type is None else msgspec.json.encode(body)
        headers = self._shown() if content is None else self._shown() | CONTENT_TYPE
        ask = Ask(operation.method, target, headers, content, self._timeout_s + _wait_s(operation, given))
        attempt = 0
        while True:
            try:
                return await self._ask(operation, ask)
            except ClientError as error:
                # A refusal was not done; whether a request without an answer was, nobody knows.
                is_safe = operation.method in SAFE or isinstance(error, HttpRefused)
                attempt += 1
                if not error.retriable or not is_safe or attempt == self._attempts_max:
                    raise
            await self.pause(attempt)

    async def events(self, operation: Operation[str], given: Mapping[str, Any]) -> AsyncGenerator[Event, None]:
        """What comes, until somebody ends it. A broker that is silent for long is lost: it speaks now and then."""
        target, _ = self._target(operation, given)
        ask = Ask(operation.method, target, self._shown(), None, EVENTS_SILENCE_S)
        try:
            async with self._exchange.stream(ask) as streamed:
                if not _is_success(streamed.status):
                    body = b"".join([piece async for piece in streamed.pieces])
                    raise _refusal(Answer(streamed.status, streamed.reason, body))
                async with aclosing(events_of(_lines(streamed.pieces))) as events:
                    async for event in events:
                        yield event
        except ExchangeFailed as error:
            raise ConnectionLost(f"cannot follow {self._server}: {error}") from error
        raise ConnectionLost(f"{self._server} ended the connection")

    async def pause(self, attempt: int) -> None:
        if self._dice is None:
            from goqueue.ports.dice import system_dice

            self._dice = system_dice()
        await self.sleep(self._backoff.pause_s(attempt, self._dice))

    async def sleep(self, delay_s: float) -> None:
        if self._clock is None:
            self._clock = LoopClock()
        await self._clock.sleep(delay_s)

    def _target(self, operation: Operation[Any], given: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Path and query in one, and the fields of the body."""
        steps: dict[str, str] = {}
        query: dict[str, Any] = {}
        body: dict[str, Any] = {}
        for name, value in given.items():
            if name not in operation.places:
                raise InvalidArgument(f"{operation.name} takes no {name!r}; it takes {', '.join(operation.places)}")
            if value is None:
                continue
            part, encoded = operation.places[name]
            if part == "path":
                steps[encoded] = quote(str(value), safe="")
            elif part == "query":
                query[encoded] = str(value).lower() if isinstance(value, bool) else value
            else:
                body[encoded] = value
        try:
            path = self._base_path + operation.path.format_map(steps)
        except KeyError as error:
            raise InvalidArgument(f"{operation.name} needs {error.args[0]!r}") from None
        return (f"{path}?{urlencode(query, doseq=True)}" if query else path), body

    async def _ask(self, operation: Operation[R], ask: Ask) -> R:
        try:
            answer = await self._exchange.ask(ask)
        except ExchangeTimedOut as error:
            raise TimedOut(f"{self._server} did not answer in time") from error
        except ExchangeFailed as error:
            raise ConnectionLost(f"cannot ask {self._server}: {error}") from error
        if _is_success(answer.status):
            try:
                if operation.media_type != JSON:
                    return msgspec.convert(answer.body.decode(errors="replace"), operation.reply)
                return msgspec.json.decode(answer.body, type=operation.reply)
            except msgspec.MsgspecError as error:
                raise ClientError(f"{self._server} does not answer as GoQueue would: {error}") from None
        raise _refusal(answer)


def _address(text: str) -> str:
    given = text.strip()
    return (given if "://" in given else f"http://{given}").rstrip("/")


def _exchange(
    address: str,
    shown: str,
    timeout_s: float,
    streams: Streams,
    transport: "httpx.AsyncBaseTransport | None",
    security: "Security | None",
) -> tuple[str, Exchange]:
    """The path before all paths, and how to ask."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        parts, host, port = urlsplit(""), None, None
    if parts.scheme not in ("http", "https") or not host:
        raise InvalidArgument(f"{shown!r} is no HTTP address, such as http://127.0.0.1:8080")
    if parts.scheme == "http" and transport is None:
        return parts.path, PlainExchange(host, port, timeout_s, streams)
    from goqueue.client.exchange_httpx import HttpxExchange

    tls = None if security is None else security.ssl_context()
    return parts.path, HttpxExchange(f"{parts.scheme}://{parts.netloc}", timeout_s, transport, tls)


def _wait_s(operation: Operation[Any], given: Mapping[str, Any]) -> float:
    """How long the broker may take on purpose."""
    wait = next((given[name] for name in WAITS if given.get(name)), 0) if operation.waits else 0
    return duration_s("wait", wait)


def _is_success(status: int) -> bool:
    return status // 100 == 2


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[str]:
    rest = b""
    async for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        if len(rest) > LINE_BYTES_MAX:
            raise ExchangeFailed(f"a line has more than {LINE_BYTES_MAX // 2**20} MiB")
        for line in lines:
            yield line.removesuffix(b"\r").decode(errors="replace")


def _refusal(answer: Answer) -> HttpRefused:
    try:
        said = msgspec.json.decode(answer.body, type=ErrorReply)
    except msgspec.MsgspecError:
        return HttpRefused(answer.status, "UNKNOWN", f"{answer.status} {answer.reason}")
    return HttpRefused(answer.status, said.code, said.error)
