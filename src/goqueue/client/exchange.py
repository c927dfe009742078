"""HTTP/1.1 without TLS, with the parser that the broker itself uses, over any stream of bytes.

A command that asks one small question spends most of its time on imports; httpx alone takes twice as long as all the
rest. It still does what needs TLS, or a transport that somebody else brings: see `exchange_httpx`. Streams are those of
the event loop (`loop_streams`), or sockets that block, which need no asyncio (`cli.without_loop`).
"""

import os
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import NamedTuple, Protocol, Self

import httptools

IDLE_MAX = 10
"""Connections that are kept open for the next question."""
DEFAULT_PORT = 80
ANSWER_BYTES_MAX = 512 * 1024 * 1024
"""Of an answer that is kept in memory as a whole; a broker gives far less at once."""
SAFE = frozenset(("GET", "PUT", "DELETE"))
"""To be sent twice is to be sent once."""


class ExchangeFailed(Exception):
    """No answer came, or not all of it."""

    is_unsent = False
    """There was no connection: nothing was asked."""

    def unsent(self) -> Self:
        self.is_unsent = True
        return self


class ExchangeTimedOut(ExchangeFailed):
    pass


class Ask(NamedTuple):
    method: str
    target: str
    """Path and query, as they stand in the request line."""
    headers: Mapping[str, str]
    content: bytes | None
    read_s: float
    """How long nothing may come."""

    def __repr__(self) -> str:
        """Without headers, which have the credentials, and without the body: tracebacks are logged."""
        return f"Ask({self.method} {self.target})"


class Answer(NamedTuple):
    status: int
    reason: str
    body: bytes


class Streamed(NamedTuple):
    status: int
    reason: str
    pieces: AsyncIterator[bytes]


class Exchange(Protocol):
    async def ask(self, ask: Ask) -> Answer: ...

    def stream(self, ask: Ask) -> AbstractAsyncContextManager[Streamed]: ...

    async def close(self) -> None: ...


class ByteStream(Protocol):
    """One connection. What goes wrong is an OSError."""

    @property
    def is_quiet(self) -> bool:
        """It is open, and nothing has come that was not received."""

    async def send(self, data: bytes) -> None: ...

    async def receive(self, within_s: float) -> bytes:
        """Empty: the other side has ended it. TimeoutError: nothing came in time."""

    def close(self) -> None: ...

    async def closed(self) -> None: ...


class Streams(Protocol):
    async def connect(self, host: str, port: int, within_s: float) -> ByteStream:
        """OSError: nobody is there. TimeoutError: nobody has answered in time."""


class PlainExchange:
    def __init__(self, host: str, port: int | None, connect_s: float, streams: Streams) -> None:
        self._host = host
        self._port = port or DEFAULT_PORT
        self._connect_s = connect_s
        self._streams = streams
        self._idle: list[_Connection] = []

    async def ask(self, ask: Ask) -> Answer:
        connection = self._kept()
        if connection is not None:
            try:
                return await self._ask(connection, ask)
            except ExchangeTimedOut:
                raise
            except ExchangeFailed:
                # The server may close a connection that idles, just when the next question is on its way. Or it took
                # the question and died: nobody knows.
                if connection.has_answered or ask.method not in SAFE:
                    raise
        return await self._ask(await self._connect(), ask)

    def _kept(self) -> "_Connection | None":
        """A connection that is open still, as far as is known here."""
        while self._idle:
            connection = self._idle.pop()
            if connection.is_quiet:
                return connection
            connection.close()
        return None

    async def _ask(self, connection: "_Connection", ask: Ask) -> Answer:
        try:
            await connection.send(ask, self._authority)
            body = await connection.body(ask.read_s)
        except BaseException:
            connection.close()
            raise
        answer = Answer(connection.status, connection.reason, body)
        if connection.may_go_on and len(self._idle) < IDLE_MAX:
            self._idle.append(connection)
        else:
            connection.close()
        return answer

    @asynccontextmanager
    async def stream(self, ask: Ask) -> AsyncGenerator[Streamed, None]:
        connection = await self._connect()
        try:
            await connection.send(ask, self._authority)
            await connection.receive_head(ask.read_s)
            yield Streamed(connection.status, connection.reason, connection.pieces(ask.read_s))
        finally:
            connection.close()

    async def _connect(self) -> "_Connection":
        try:
            return _Connection(await self._streams.connect(self._host, self._port, self._connect_s))
        except TimeoutError as error:
            raise ExchangeTimedOut("no connection in time").unsent() from error
        except OSError as error:
            raise ExchangeFailed(_words(error)).unsent() from error

    @property
    def _authority(self) -> str:
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{host}:{self._port}"

    async def close(self) -> None:
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
        for connection in idle:
            await connection.closed()


class _Connection:
    """One at a time: a question, then its answer. The parser calls the `on_` methods."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._reset()

    def _reset(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._body: list[bytes] = []
        self._is_complete = False
        self._has_head = False
        self.has_answered = False
        self.may_go_on = False
        self.status = 0
        self.reason = ""

    def on_status(self, reason: bytes) -> None:
        self.reason += reason.decode("latin-1")

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        self._has_head = True

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        self._is_complete = True
        self.may_go_on = self._parser.should_keep_alive()

    @property
    def is_quiet(self) -> bool:
        """Nothing came since the last answer. What comes without a question is the end of the connection."""
        return self._stream.is_quiet

    async def send(self, ask: Ask, authority: str) -> None:
        self._reset()
        lines = [f"{ask.method} {ask.target} HTTP/1.1", f"host: {authority}"]
        lines += [f"{name}: {value}" for name, value in ask.headers.items()]
        if ask.content is not None:
            lines.append(f"content-length: {len(ask.content)}")
        try:
            head = "\r\n".join([*lines, "", ""]).encode("latin-1")
        except UnicodeEncodeError as error:
            raise ExchangeFailed(f"{error.object[error.start : error.end]!r} cannot stand in a header") from None
        try:
            await self._stream.send(head + (ask.content or b""))
        except OSError as error:
            raise ExchangeFailed(_words(error)) from error

    async def receive_head(self, read_s: float) -> None:
        while not self._has_head:
            await self._receive(read_s)

    async def body(self, read_s: float) -> bytes:
        pieces, size = [], 0
        async for piece in self.pieces(read_s):
            pieces.append(piece)
            size += len(piece)
            if size > ANSWER_BYTES_MAX:
                raise ExchangeFailed(f"the answer has more than {ANSWER_BYTES_MAX // 2**20} MiB")
        return b"".join(pieces)

    async def pieces(self, read_s: float) -> AsyncIterator[bytes]:
        while True:
            body, self._body = self._body, []
            for piece in body:
                yield piece
            if self._is_complete and not self._body:
                return
            await self._receive(read_s)

    async def _receive(self, read_s: float) -> None:
        try:
            data = await self._stream.receive(read_s)
        except TimeoutError as error:
            raise ExchangeTimedOut("no answer in time") from error
        except OSError as error:
            raise ExchangeFailed(_words(error)) from error
        if not data:
            raise ExchangeFailed("the connection was closed before all of the answer had come")
        self.has_answered = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            raise ExchangeFailed(f"what came is not HTTP: {error}") from error

    def close(self) -> None:
        self._stream.close()

    async def closed(self) -> None:
        await self._stream.closed()


def _words(error: OSError) -> str:
    """asyncio says which call failed, not why."""
    is_plain = error.errno is not None and not isinstance(error, socket.gaierror)
    return os.strerror(error.errno).lower() if is_plain and error.errno else error.strerror or str(error)
