"""HTTP/1.1 without TLS, on asyncio and the parser that the broker itself uses.

A command that asks one small question spends most of its time on imports; httpx alone takes twice as long as all the
rest. It still does what needs TLS, or a transport that somebody else brings: see `exchange_httpx`.
"""

import asyncio
import os
import selectors
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import NamedTuple, Protocol, Self

import httptools

from goqueue.ports.network import LoopNetwork, Network

READ_BYTES = 64 * 1024
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


class PlainExchange:
    def __init__(self, host: str, port: int | None, connect_s: float, network: Network | None = None) -> None:
        self._host = host
        self._port = port or DEFAULT_PORT
        self._connect_s = connect_s
        self._network = network or LoopNetwork()
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
            return _Connection(*await asyncio.wait_for(self._open(), self._connect_s))
        except TimeoutError as error:
            raise ExchangeTimedOut("no connection in time").unsent() from error
        except OSError as error:
            raise ExchangeFailed(_words(error)).unsent() from error

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        transport, _ = await self._network.connect(lambda: protocol, self._host, self._port)
        return reader, asyncio.StreamWriter(transport, protocol, reader, loop)

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

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
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
        if self._writer.is_closing() or self._reader.at_eof():
            return False
        its_socket = self._writer.get_extra_info("socket")
        if its_socket is None:  # a network that is no kernel's holds nothing back
            return True
        with selectors.DefaultSelector() as selector:
            selector.register(its_socket, selectors.EVENT_READ)
            return not selector.select(0)

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
            self._writer.write(head + (ask.content or b""))
            await self._writer.drain()
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
            data = await asyncio.wait_for(self._reader.read(READ_BYTES), read_s)
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
        self._writer.close()

    async def closed(self) -> None:
        try:
            await self._writer.wait_closed()
        except OSError:
            return


def _words(error: OSError) -> str:
    """asyncio says which call failed, not why."""
    is_plain = error.errno is not None and not isinstance(error, socket.gaierror)
    return os.strerror(error.errno).lower() if is_plain and error.errno else error.strerror or str(error)
