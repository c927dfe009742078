"""HTTP without TLS, against servers that behave well and badly: in the event loop, and in a thread without one."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Protocol, TypeVar

import pytest

from goqueue.cli import without_loop
from goqueue.cli.without_loop import BlockingStreams
from goqueue.client import exchange as plain
from goqueue.client.errors import InvalidArgument
from goqueue.client.exchange import Answer, Ask, ExchangeFailed, ExchangeTimedOut, PlainExchange
from goqueue.client.http import Http
from goqueue.client.loop_streams import LoopStreams
from tests.unit.testing.loops import in_loop

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
CONNECT_S = 30.0
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"


class Blocking:
    """Without a loop, and therefore in a thread."""

    def __init__(self, host: str, port: int, connect_s: float) -> None:
        self._exchange = PlainExchange(host, port, connect_s, BlockingStreams())

    async def ask(self, ask: Ask) -> Answer:
        return await asyncio.to_thread(without_loop.run, self._exchange.ask(ask))

    async def close(self) -> None:
        await asyncio.to_thread(without_loop.run, self._exchange.close())


class Asking(Protocol):
    async def ask(self, ask: Ask) -> Answer: ...

    async def close(self) -> None: ...


Make = Callable[[str, int, float], Asking]


def in_the_loop(host: str, port: int, connect_s: float) -> PlainExchange:
    return PlainExchange(host, port, connect_s, LoopStreams())


E = TypeVar("E", bound=Asking)
both_ways = pytest.mark.parametrize("make", [in_the_loop, Blocking])


@asynccontextmanager
async def serving(serve: Serve, make: Callable[[str, int, float], E]) -> AsyncGenerator[E, None]:
    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(served, "127.0.0.1", 0)
    exchange = make("127.0.0.1", server.sockets[0].getsockname()[1], CONNECT_S)
    try:
        yield exchange
    finally:
        await exchange.close()
        server.close()


def asked(content: bytes | None = None, read_s: float = 30.0) -> Ask:
    return Ask("POST" if content else "GET", "/a?b=c", {"x": "y"}, content, read_s)


async def request_of(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    _, found, length = head.partition(b"content-length: ")
    return head + (await reader.readexactly(int(length.split(b"\r")[0])) if found else b"")


@both_ways
@in_loop
async def test_a_question_is_asked_and_the_connection_kept(make: Make) -> None:
    requests, connections = [], []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        for _ in range(2):
            requests.append(await request_of(reader))
            writer.write(OK)

    async with serving(serve, make) as exchange:
        answers = [await exchange.ask(asked()), await exchange.ask(asked(b"body"))]
    assert [(each.status, each.reason, each.body) for each in answers] == [(200, "OK", b"hi")] * 2
    assert len(connections) == 1
    assert requests[0].startswith(b"GET /a?b=c HTTP/1.1\r\nhost: 127.0.0.1:")
    assert b"\r\nx: y\r\n" in requests[0]
    assert requests[1].endswith(b"content-length: 4\r\n\r\nbody")


@both_ways
@in_loop
async def test_an_answer_comes_in_pieces_of_any_size(make: Make) -> None:
    chunked = b"HTTP/1.1 404 Not Found\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        for byte in chunked:
            writer.write(bytes([byte]))
            await writer.drain()

    async with serving(serve, make) as exchange:
        answer = await exchange.ask(asked())
    assert (answer.status, answer.reason, answer.body) == (404, "Not Found", b"abcde")


@both_ways
@in_loop
async def test_a_connection_that_was_closed_meanwhile_is_replaced(make: Make) -> None:
    served = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal served
        await request_of(reader)
        served += 1
        writer.write(OK)

    async with serving(serve, make) as exchange:
        for _ in range(3):
            assert (await exchange.ask(asked(b"x"))).body == b"hi"
    assert served == 3


@both_ways
@in_loop
async def test_a_server_that_says_close_is_asked_on_a_new_connection(make: Make) -> None:
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await request_of(reader)
        writer.write(OK.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))

    async with serving(serve, make) as exchange:
        assert [(await exchange.ask(asked())).status for _ in range(2)] == [200, 200]
    assert connections == 2


@both_ways
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"", "closed before all of the answer"),
        (OK[:-1], "closed before all of the answer"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "not HTTP"),
    ],
)
@in_loop
async def test_half_an_answer_is_none(make: Make, answer: bytes, words: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        writer.write(answer)

    async with serving(serve, make) as exchange:
        with pytest.raises(ExchangeFailed, match=words):
            await exchange.ask(asked())


@both_ways
@in_loop
async def test_silence_has_an_end(make: Make) -> None:
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await ended.wait()

    async with serving(serve, make) as exchange:
        with pytest.raises(ExchangeTimedOut):
            await exchange.ask(asked(read_s=0.01))
        ended.set()


@both_ways
@in_loop
async def test_nobody_listens(make: Make) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise AssertionError

    async with serving(serve, make) as exchange:
        pass
    with pytest.raises(ExchangeFailed, match="refused"):
        await exchange.ask(asked())


@in_loop
async def test_what_comes_is_given_on_at_once() -> None:
    more = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n")
        await more.wait()
        writer.write(b"3\r\ntwo\r\n0\r\n\r\n")

    async with serving(serve, in_the_loop) as exchange, exchange.stream(asked()) as streamed:
        assert streamed.status == 200
        assert await anext(streamed.pieces) == b"one"
        more.set()
        assert [piece async for piece in streamed.pieces] == [b"two"]


@both_ways
@pytest.mark.parametrize("content", [b"publish", None])
@in_loop
async def test_what_may_have_been_done_is_not_asked_again(make: Make, content: bytes | None) -> None:
    """The server takes the question on a kept connection and dies before it answers."""
    served: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            served.append(await request_of(reader))
            if len(served) == 2:
                return
            writer.write(OK)

    async with serving(serve, make) as exchange:
        await exchange.ask(asked(content))
        if content is None:
            assert (await exchange.ask(asked(content))).body == b"hi"
        else:
            with pytest.raises(ExchangeFailed, match="closed"):
                await exchange.ask(asked(content))
        assert len(served) == (2 if content else 3)


@both_ways
@in_loop
async def test_a_question_that_was_not_answered_in_time_is_not_asked_again(make: Make) -> None:
    served: list[bytes] = []
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.append(await request_of(reader))
        writer.write(OK)
        served.append(await request_of(reader))
        await ended.wait()

    async with serving(serve, make) as exchange:
        await exchange.ask(asked())
        with pytest.raises(ExchangeTimedOut):
            await exchange.ask(asked(read_s=0.01))
        ended.set()
    assert len(served) == 2


@both_ways
@in_loop
async def test_an_endless_answer_is_not_kept(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain, "ANSWER_BYTES_MAX", 1000)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"5\r\nagain\r\n")
            try:
                await writer.drain()
            except OSError:
                return

    async with serving(serve, make) as exchange:
        with pytest.raises(ExchangeFailed, match="more than"):
            await exchange.ask(asked())


@pytest.mark.parametrize("key", ["secret\r\nx-forged: yes", "schl\u00fcssel", "\u9375"])
def test_a_key_that_no_header_can_carry_is_refused(key: str) -> None:
    with pytest.raises(InvalidArgument, match="API key"):
        Http("127.0.0.1:1", api_key=key)


def test_what_waits_for_an_event_loop_is_told_that_there_is_none() -> None:
    async def waits() -> None:
        await asyncio.Future(loop=loop)

    loop = asyncio.new_event_loop()
    try:
        with pytest.raises(AssertionError, match="event loop"):
            without_loop.run(waits())
    finally:
        loop.close()


def test_a_request_in_a_traceback_shows_no_credentials() -> None:
    asked = Ask("GET", "/topics", {"authorization": "Bearer gqk_secret"}, b"gqk_secret", 1.0)
    assert all("secret" not in shown for shown in (repr(asked), str(asked), f"{asked}"))
    assert "/topics" in repr(asked)
