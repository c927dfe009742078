"""The listener with short limits: slow clients, clients that do not read, and a stop with requests under way."""

import asyncio
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace
from typing import Any

import pytest
import uvloop
from msgspec import Struct

from goqueue.broker.gate import Gate
from goqueue.doors.http import door
from goqueue.doors.http.app import HttpApp
from goqueue.doors.http.asgi import answer
from goqueue.doors.http.door import HttpDoor
from goqueue.doors.http.endpoint import Methods
from goqueue.doors.http.listener import HttpLimits
from goqueue.doors.http.operation import Events, Handlers
from goqueue.model.access import OPEN
from goqueue.testing import broker
from goqueue.wire.asgi import App, Receive, Scope, Send
from goqueue.wire.home import HERE
from goqueue.wire.rest.operation import EVENTS, Resource

GET = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
SOON_S = 0.05

tests = Resource("Tests")
handlers = Handlers()
ended: list[str] = []


class Nothing(Struct):
    """An empty answer."""


@handlers.handles(tests.add("wait", "GET /wait", Nothing, "Never answers.", home=HERE, waits=True), OPEN)
async def wait(call: Any) -> Nothing:
    try:
        await asyncio.Event().wait()
    finally:
        ended.append("wait")
    return Nothing()


released = asyncio.Event()


@handlers.handles(tests.add("stuck", "GET /stuck", Nothing, "Does not end when it is cancelled.", home=HERE), OPEN)
async def stuck(call: Any) -> Nothing:
    while not released.is_set():
        with suppress(asyncio.CancelledError):
            await released.wait()
    return Nothing()


@handlers.handles(tests.add("stream", "GET /stream", str, "One event.", home=HERE, waits=True, media_type=EVENTS), OPEN)
async def stream(call: Any) -> Events:
    async def pieces() -> AsyncGenerator[bytes, None]:
        try:
            yield b"data: first\n\n"
            await asyncio.Event().wait()
        finally:
            ended.append("stream")

    return Events(pieces())


@handlers.handles(
    tests.add("flood", "GET /flood", str, "Events without end.", home=HERE, waits=True, media_type=EVENTS), OPEN
)
async def flood(call: Any) -> Events:
    async def pieces() -> AsyncGenerator[bytes, None]:
        try:
            while True:
                yield bytes(1 << 16)
        finally:
            ended.append("flood")

    return Events(pieces())


NOBODY = SimpleNamespace(view=lambda _: None, principal=None, on_end={})
ANYBODY: Any = SimpleNamespace(forwarding=None, logins=None, nobody=lambda: NOBODY)
CALL: Any = SimpleNamespace(broker=None)
WAITING = {route.operation.path: Methods([route], CALL, ANYBODY) for route in handlers.all}


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["path"] == "/large":
        await answer(send, 200, bytes(32 << 20))
    elif scope["path"] in WAITING:
        await WAITING[scope["path"]](scope, receive, send)
    else:
        async with broker() as b:
            await HttpApp(Gate(b.broker))(scope, receive, send)


class Served:
    def __init__(self, door: HttpDoor, address: tuple[str, int]) -> None:
        self.door = door
        self.address = address

    @asynccontextmanager
    async def client(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        reader, writer = await asyncio.open_connection(*self.address)
        yield reader, writer
        writer.close()

    async def send(self, data: bytes) -> bytes:
        """All that comes back until the door hangs up."""
        async with self.client() as (reader, writer):
            writer.write(data)
            return await all_of(reader)


async def all_of(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""


@asynccontextmanager
async def serve(what: App = app, **limits: Any) -> AsyncIterator[Served]:
    ended.clear()
    door = HttpDoor(what, HttpLimits(sweep_s=SOON_S / 5, **limits))
    try:
        yield Served(door, await door.open("127.0.0.1", 0))
    finally:
        await door.close()
    await door.close()
    assert not door._state.connections
    assert not door._state.tasks
    assert not door._parked


def run(inside: Callable[[], Coroutine[Any, Any, None]]) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(asyncio.wait_for(inside(), 30))


SLOW = {
    "nothing": (b"", b""),
    "half a line": (GET[:9], b"408"),
    "half a head": (GET[:-2], b"408"),
    "empty lines": (b"\r\n\r\n", b"408"),
    "half a second head": (GET + GET[:20], b"200"),
    "half a body": (b"POST /topics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n{", b"408"),
    "half a chunk": (b"POST /topics HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{", b"408"),
    "a body that nobody wants": (b"POST /no HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n{", b"404"),
    "a connection kept for later": (GET, b"200"),
}


@pytest.mark.parametrize("name", SLOW)
def test_slow_clients_are_cut_off(name: str) -> None:
    sent, status = SLOW[name]

    async def inside() -> None:
        async with serve(head_s_max=SOON_S, body_s_max=SOON_S, idle_s_max=1) as served:
            answer = await served.send(sent)
            assert answer[9:12] == status, answer
            if status == b"408":
                assert b"connection: close" in answer
                assert b'"REQUEST_TOO_SLOW"' in answer

    run(inside)


def test_trailers_and_padding_without_end_are_refused() -> None:
    head = b"POST /topics HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    chunked = head + b"Transfer-Encoding: chunked\r\n\r\n"

    async def inside() -> None:
        async with serve() as served:
            for rest in (b"0\r\nTrailer: " + b"a" * 900_000, b"2;" + b"a" * 900_000):
                assert b"too little body in too many bytes" in await served.send(chunked + rest)
            one_by_one = b"1\r\n \r\n" * 200_000
            close = chunked.replace(b"Host", b"Connection: close\r\nHost")
            assert b"Object missing required field" in await served.send(close + one_by_one + b"2\r\n{}\r\n0\r\n\r\n")

    run(inside)


@pytest.mark.parametrize("path", [b"/large", b"/flood"])
def test_a_client_that_does_not_read_is_cut_off(path: bytes) -> None:
    async def inside() -> None:
        async with serve(write_s_max=SOON_S) as served:
            with socket.create_connection(served.address) as client:
                client.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
                while not served.door._state.connections:
                    await turn()
                while served.door._state.connections:
                    await turn()
                assert served.door.malformed == 1
        assert ended == (["flood"] if path == b"/flood" else [])

    run(inside)


async def turn() -> None:
    done = asyncio.Event()
    asyncio.get_running_loop().call_later(SOON_S / 10, done.set)
    await done.wait()


def test_too_many_connections_are_refused_and_those_that_there_are_go_on() -> None:
    async def inside() -> None:
        async with serve(connections_max=2) as served, served.client() as (reader, writer), served.client():
            writer.write(GET)
            assert (await reader.readuntil(b"}"))[9:12] == b"200"
            assert b'"TOO_MANY_CONNECTIONS"' in await served.send(b"")
            writer.write(GET)
            assert (await reader.readuntil(b"}"))[9:12] == b"200"

    run(inside)


@pytest.mark.parametrize("path", [b"/wait", b"/stream"])
@pytest.mark.parametrize("more", [b"", GET], ids=["alone", "pipelined"])
def test_a_client_that_leaves_ends_its_wait(path: bytes, more: bytes) -> None:
    async def inside() -> None:
        async with serve() as served:
            async with served.client() as (_, writer):
                writer.write(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
                while not served.door._parked:
                    await turn()
                if more:
                    writer.write(more)
                    while not any(connection.pipeline for connection in served.door.connections):
                        await turn()
                    for connection in served.door.connections:
                        connection.transport.resume_reading()  # a paused one learns it when it is written to
            while served.door._parked:
                await turn()
            assert ended == [path[1:].decode()]
            assert not served.door.malformed

    run(inside)


def test_a_node_that_will_stop_answers_all_and_ends_connections_with_their_next_answer() -> None:
    async def inside() -> None:
        async with serve() as served, served.client() as (reader, writer):
            writer.write(GET)
            assert b"connection: close" not in await reader.readuntil(b"}")
            served.door.leave()
            writer.write(GET)
            said = await all_of(reader)
            assert said[9:12] == b"200"
            assert b"connection: close" in said
            said = await served.send(GET)  # whoever comes anew is answered too
            assert said[9:12] == b"200"
            assert b"connection: close" in said

    run(inside)


def test_a_node_that_others_take_over_from_waits_longer_for_the_first_request_of_a_connection() -> None:
    async def inside() -> None:
        async with serve(drain_s_max=20, first_s_max=0) as served, served.client() as (reader, writer):
            while not served.door.connections:
                await turn()
            served.door.leave()
            closing = asyncio.ensure_future(served.door.close())
            for _ in range(10):
                await turn()
            writer.write(GET)
            said = await all_of(reader)
            assert said[9:12] == b"200"
            assert b"connection: close" in said
            await closing

    run(inside)


def test_a_request_that_has_reached_the_machine_is_answered_though_its_connection_seemed_idle() -> None:
    async def inside() -> None:
        async with serve(drain_s_max=20) as served:
            with socket.create_connection(served.address) as client:
                client.sendall(GET)
                while not any(each.is_idle and each._running for each in served.door.connections):
                    await turn()
                client.sendall(GET)  # the door has had no turn since
                await served.door.close()
                said = client.makefile("rb").read()
            assert said.count(b"HTTP/1.1 200") == 2
            assert said.count(b"connection: close") == 1

    run(inside)


def test_a_stop_answers_those_who_wait_and_ends_streams() -> None:
    async def inside() -> None:
        async with (
            serve(drain_s_max=20) as served,
            served.client() as (waits, asks),
            served.client() as (streams, listens),
            served.client(),
        ):
            asks.write(b"GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n")
            listens.write(b"GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await streams.readuntil(b"first\n\n")
            while len(served.door._parked) < 2:
                await turn()
            await served.door.close()
            refused = await waits.read()
            assert refused[9:12] == b"503"
            assert b'"NODE_STOPS"' in refused
            assert await streams.read() == b"\r\n0\r\n\r\n"
        assert sorted(ended) == ["stream", "wait"]

    run(inside)


def test_whoever_has_connected_when_the_node_stops_is_answered() -> None:
    """Whether the door has seen the connection or not, and whether the request has come or not: nothing that was sent
    is lost with a connection."""

    async def inside() -> None:
        async with serve(drain_s_max=20, first_s_max=20) as served:
            clients = [socket.create_connection(served.address) for _ in range(3)]  # the door has had no turn since
            for client in clients[:2]:
                client.sendall(GET)
            closing = asyncio.ensure_future(served.door.close())
            await turn()
            clients[2].sendall(GET)
            await closing
            for client in clients:
                said = client.makefile("rb").read()
                client.close()
                assert said[9:12] == b"200"
                assert b"connection: close" in said
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(served.address)

    run(inside)


def test_a_stop_does_not_wait_for_one_that_does_not_read_but_for_one_that_does() -> None:
    async def inside() -> None:
        async with serve(drain_s_max=SOON_S) as served:
            with socket.create_connection(served.address) as client:
                client.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
                while not served.door._state.connections:
                    await turn()
                await served.door.close()
        async with serve(drain_s_max=20) as served, served.client() as (reader, writer):
            writer.write(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await reader.readuntil(b"\r\n\r\n")
            closing = asyncio.ensure_future(served.door.close())
            assert len(await reader.read()) == 32 << 20
            await closing

    run(inside)


def test_a_stop_does_not_wait_for_a_request_that_cannot_be_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "CANCELLED_S_MAX", SOON_S)

    async def inside() -> None:
        async with serve(drain_s_max=SOON_S) as served, served.client() as (_, writer):
            writer.write(b"GET /stuck HTTP/1.1\r\nHost: localhost\r\n\r\n")
            while not served.door._state.tasks:
                await turn()
            async with asyncio.timeout(20):
                await served.door.close()
            assert served.door._state.tasks
            released.set()
            while served.door._state.tasks:
                await turn()

    run(inside)


def test_what_waits_has_no_head() -> None:
    async def inside() -> None:
        async with serve() as served:
            answer = await served.send(b"HEAD /stream HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert answer[9:12] == b"405"

    run(inside)


def test_a_port_in_use_is_told_and_leaves_nothing_behind() -> None:
    async def inside() -> None:
        async with serve() as served:
            second = HttpDoor(app)
            with pytest.raises(OSError, match="in use"):
                await second.open(*served.address)
            await second.close()

    run(inside)
