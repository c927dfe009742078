"""A stream that another node makes: fetched in portions, at the pace of the client, and given up with it."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest
from grpc import StatusCode

from goqueue.doors.grpc.carried import (
    IDLE_MS_MAX,
    KEEP_MS,
    PORTION_BYTES,
    WAIT_MS,
    Asked,
    Carrying,
    Giving,
    GrpcReply,
    GrpcRequest,
    Told,
    Write,
)
from goqueue.doors.grpc.errors import GrpcError
from goqueue.model.errors import GoQueueError, NotReached
from goqueue.ports.forwarding import NotHere, Stop
from goqueue.testing import broker
from tests.unit.testing.loops import in_loop

PIECE = b"x" * (PORTION_BYTES // 4)
REQUEST = GrpcRequest("goqueue.v1.ConsumeService.Consume", b"", "User:alice", "10.0.0.5:4000")


class Link:
    """The way to one other node."""

    homes: Any = None

    def __init__(self, giving: Giving) -> None:
        self._giving = giving
        self.is_cut = False
        self.asked = 0

    def ask(self, _node: int, _kind: str, payload: bytes, on_done: Callable[[Any], None], timeout_ms: int) -> "Link":
        self.asked += 1

        def reply(found: bytes | NotHere) -> None:
            on_done(NotReached(str(found)) if isinstance(found, NotHere) else found)

        if self.is_cut:
            on_done(NotReached("cut"))
        else:
            self._stop: Stop | None = self._giving.serve(payload, timeout_ms, reply)
        return self

    def cancel(self) -> None:
        if self._stop is not None:
            self._stop()

    ask_home: Any = None
    serve: Any = None


class House:
    """Two nodes with one clock. `begin`: what the other one streams."""

    def __init__(self, b: Any, begin: Callable[[Write], Awaitable[GrpcReply]]) -> None:
        self.written = 0
        self.cancelled = 0
        self.clock = b.broker.clock

        async def run(request: GrpcRequest, write: Write) -> GrpcReply:
            assert request == REQUEST

            async def counted(piece: bytes) -> None:
                await write(piece)
                self.written += 1

            try:
                return await begin(counted)
            except asyncio.CancelledError:
                self.cancelled += 1
                raise

        self.giving = Giving(self.clock, run)
        self.link = Link(self.giving)
        self.carrying = Carrying(self.link, self.clock, Random(7))

    def carry(self, write: Write) -> "asyncio.Task[None]":
        return asyncio.ensure_future(self.carrying.carry(2, REQUEST, write))


async def settle() -> None:
    """Until nothing has anything left to do but to wait."""
    for _ in range(50):
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        turn.get_loop().call_soon(turn.set_result, None)
        await turn


async def ten(write: Write) -> GrpcReply:
    for number in range(10):
        await write(b"%d" % number + PIECE)
    return GrpcReply(b"")


async def for_ever(write: Write) -> GrpcReply:
    await write(b"one")
    await asyncio.Event().wait()
    raise AssertionError


@in_loop
async def test_all_pieces_come_in_order_and_then_the_end() -> None:
    async with broker() as b:
        house, found = House(b, ten), []

        async def write(piece: bytes) -> None:
            found.append(piece[:1])

        await house.carry(write)
        assert found == [b"%d" % number for number in range(10)]
        asked = house.link.asked
        await b.advance("2m")
        assert house.link.asked == asked


@in_loop
async def test_a_refusal_of_the_other_node_is_told_as_it_is() -> None:
    async def refuse(_write: Write) -> GrpcReply:
        return GrpcReply(b"", StatusCode.PERMISSION_DENIED.value[0], "no", b"details")

    async with broker() as b:
        with pytest.raises(Told) as told:
            await House(b, refuse).carry(_drop)
        assert (told.value.reply.words, told.value.reply.details) == ("no", b"details")


async def _drop(_piece: bytes) -> None: ...


@in_loop
async def test_a_slow_client_holds_up_the_stream_and_keeps_it() -> None:
    async with broker() as b:
        house, may_go_on, found = House(b, ten), asyncio.Event(), []

        async def write(piece: bytes) -> None:
            await may_go_on.wait()
            found.append(piece[:1])

        carrying = house.carry(write)
        await settle()
        assert house.written == 5  # one that is being handed on, and a portion that waits
        for _ in range(4 * IDLE_MS_MAX // KEEP_MS):
            await b.advance(KEEP_MS)
        assert house.cancelled == 0
        may_go_on.set()
        await carrying
        assert len(found) == 10


@in_loop
async def test_a_stream_ends_with_its_client() -> None:
    async with broker() as b:
        house = House(b, for_ever)
        carrying = house.carry(_drop)
        await settle()
        carrying.cancel()
        await settle()
        assert house.cancelled == 1


@in_loop
async def test_a_stream_that_nobody_asks_about_is_given_up() -> None:
    async with broker() as b:
        house, never = House(b, for_ever), asyncio.Event()

        async def write(_piece: bytes) -> None:
            await never.wait()

        carrying = house.carry(write)
        await settle()
        house.link.is_cut = True
        await b.advance(IDLE_MS_MAX - 1)
        assert house.cancelled == 0
        await b.advance(1)
        await settle()
        assert house.cancelled == 1
        carrying.cancel()


@in_loop
async def test_a_quiet_stream_goes_on_and_a_lost_node_is_unavailable() -> None:
    async with broker() as b:
        house = House(b, for_ever)
        carrying = house.carry(_drop)
        await settle()
        for _ in range(10):
            await b.advance(WAIT_MS)
            await settle()
        assert house.cancelled == 0
        house.link.is_cut = True
        await b.advance(WAIT_MS)
        with pytest.raises(GrpcError, match="node 2 does not stream any more"):
            await carrying


def test_what_is_no_question_is_refused() -> None:
    giving = Giving(None, None)  # type: ignore[arg-type]
    said: list[Any] = []
    for payload in (b"", b"\xc1", Asked.__name__.encode()):
        assert giving.serve(payload, 1000, said.append) is None
    assert [isinstance(each, GoQueueError) for each in said] == [True] * 3
