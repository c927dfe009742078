"""One connection against a server that misbehaves in every way."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from struct import pack

import pytest

from goqueue.client.clock import LoopClock
from goqueue.client.connection import Connection, Limits, connect
from goqueue.client.errors import ConnectionLost, TimedOut, Unsupported
from goqueue.model.codes import Code
from goqueue.ports.network import LoopNetwork
from goqueue.wire.kafka.frames import decode_request, read_request_header, response_frame
from goqueue.wire.kafka.messages.metadata import (
    AdvertisedApi,
    ApiVersionsResponse,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from goqueue.wire.kafka.messages.produce import ProduceRequest
from goqueue.wire.kafka.notation import Message
from tests.unit.testing.loops import in_loop

METADATA_KEY = 3
OFFERED = [AdvertisedApi(METADATA_KEY, 0, 13), AdvertisedApi(18, 0, 3)]
Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def read_frame(reader: asyncio.StreamReader) -> memoryview:
    size = int.from_bytes(await reader.readexactly(4), "big")
    return memoryview(await reader.readexactly(size))


def joined(response: Message, version: int, number: int) -> bytes:
    return b"".join(response_frame(response, version, number))  # type: ignore[arg-type]


async def hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    header = read_request_header(await read_frame(reader))
    writer.write(joined(ApiVersionsResponse(api_keys=OFFERED), header.api_version, header.correlation_id))


@asynccontextmanager
async def server(answer: Answer) -> AsyncIterator[str]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionResetError):
            pass
        finally:
            writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = listening.sockets[0].getsockname()
    try:
        yield f"{host}:{port}"
    finally:
        listening.close()


async def connected(address: str, limits: Limits | None = None) -> Connection:
    return await connect(address, "tests", LoopClock(), LoopNetwork(), limits or Limits(), "1")


@in_loop
async def test_many_requests_are_under_way_and_each_gets_its_answer() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await hello(reader, writer)
        numbers = []
        for _ in range(20):
            frame = await read_frame(reader)
            header = read_request_header(frame)
            request, _ = decode_request(header, frame)
            assert isinstance(request, MetadataRequest)
            assert request.topics is not None
            numbers.append((header, request.topics[0].name))
        for header, name in reversed(numbers):  # no real broker would
            topics = [
                MetadataResponseTopic(name=name),
                *[MetadataResponseTopic(name="x" * 200)] * (len(name or "") * 99),
            ]
            writer.write(joined(MetadataResponse(topics=topics), header.api_version, header.correlation_id))
        await writer.drain()
        await reader.read()

    async with server(answer) as address:
        connection = await connected(address)
        names = [f"{number:0{1 + number}}" for number in range(20)]
        questions = [MetadataRequest([MetadataRequestTopic(name=name)]) for name in names]
        answers = await asyncio.gather(*(connection.ask(one, MetadataResponse) for one in questions))
        assert [one.topics[0].name for one in answers] == names
        assert [len(one.topics) for one in answers] == [1 + len(name) * 99 for name in names]
        await connection.close()
        assert not connection.is_open


@in_loop
async def test_without_an_answer_in_time_the_connection_is_closed() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await hello(reader, writer)
        await reader.read()

    async with server(answer) as address:
        connection = await connected(address, Limits(request_s_max=0.05))
        futures = [connection.send(MetadataRequest()), connection.send(MetadataRequest(), wait_s=10)]
        await asyncio.wait(futures)
        assert [type(future.exception()) for future in futures] == [TimedOut, TimedOut]
        assert not connection.is_open
        with pytest.raises(TimedOut, match="did not answer in time"):
            await connection.ask(MetadataRequest(), MetadataResponse)


@pytest.mark.parametrize(
    "garbage", [b"HTTP/1.1 400 Bad Request\r\n\r\n", pack(">ii", 4, 99), pack(">iiihh", 12, 0, -5, 3, 3), bytes(4)]
)
def test_garbage_closes_the_connection(garbage: bytes) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_frame(reader)
        writer.write(garbage)
        await writer.drain()
        await reader.read()

    @in_loop
    async def scenario() -> None:
        async with server(answer) as address:
            with pytest.raises(ConnectionLost, match="does not answer as a Kafka broker would"):
                await connected(address)

    scenario()


@in_loop
async def test_a_server_that_hangs_up_or_is_not_there() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await hello(reader, writer)
        await read_frame(reader)

    async with server(answer) as address:
        connection = await connected(address)
        with pytest.raises(ConnectionLost, match="was lost"):
            await connection.ask(MetadataRequest(), MetadataResponse)
    with pytest.raises(ConnectionLost, match=r"cannot connect to 127\.0\.0\.1:1: "):
        await connected("127.0.0.1:1")


@in_loop
async def test_an_old_broker_answers_hello_in_its_own_words() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        header = read_request_header(await read_frame(reader))
        old = ApiVersionsResponse(error_code=Code.UNSUPPORTED_VERSION, api_keys=[AdvertisedApi(METADATA_KEY, 0, 2)])
        writer.write(joined(old, 0, header.correlation_id))
        await reader.read()

    async with server(answer) as address:
        connection = await connected(address)
        assert connection.version_of(MetadataRequest) == 2
        with pytest.raises(Unsupported, match="does not speak Produce"):
            connection.version_of(ProduceRequest)
        await connection.close()


@in_loop
async def test_no_more_than_so_many_are_under_way() -> None:
    go_on = asyncio.Event()

    async def answer_in_order(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await hello(reader, writer)
        for _ in range(6):
            header = read_request_header(await read_frame(reader))
            await go_on.wait()
            writer.write(joined(MetadataResponse(), header.api_version, header.correlation_id))
        await reader.read()

    async with server(answer_in_order) as address:
        connection = await connected(address, Limits(in_flight_max=2))
        asking = [asyncio.ensure_future(connection.ask(MetadataRequest(), MetadataResponse)) for _ in range(6)]
        await asyncio.wait(asking, timeout=0.05)
        assert not connection.has_room
        assert len(connection._pending) == 2
        go_on.set()
        assert len(await asyncio.gather(*asking)) == 6
        await connection.close()
