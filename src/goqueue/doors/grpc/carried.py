"""Streams of clients that another node has to give: it is asked for them in portions, over the connections between
nodes, which are proved and encrypted whatever clients use.

The next portion is asked for when the client has taken the one before. So a slow client holds up its stream where that
is made, and each node has one portion of it in memory.
"""

import asyncio
from collections.abc import Awaitable, Callable
from enum import IntEnum
from functools import partial
from typing import Any, Protocol

import msgspec

from goqueue.broker.asking import Asking
from goqueue.doors.grpc.errors import UNAVAILABLE, GrpcError
from goqueue.model.again import Again
from goqueue.model.errors import GoQueueError, Indeterminate, NotReached
from goqueue.ports.dice import Dice
from goqueue.ports.forwarding import Forwarding, NotHere, OnReply, Stop
from goqueue.wire.forwarded import GRPC_STREAM
from goqueue.wire.grpc import common_pb2

PORTION_BYTES = 1024 * 1024
"""A node that makes a stream waits while so much of it was not taken."""
WAIT_MS = 10_000
"""How long a question waits for something to come. Then it is answered with nothing."""
ASK_MS_MAX = 2 * WAIT_MS
KEEP_MS = 15_000
IDLE_MS_MAX = 60_000
"""A stream that nobody has asked about for so long is given up: the node that did so is gone."""
TELL_MS_MAX = 2000
ID_BYTES = 16
OK = 0

Write = Callable[[bytes], Awaitable[Any]]


class Timer(Protocol):
    def cancel(self) -> None: ...


class Clock(Protocol):
    def call_after(self, delay_ms: float, call: Callable[[], None]) -> Timer: ...


class GrpcReply(msgspec.Struct, array_like=True):
    data: bytes
    status: int = OK
    words: str = ""
    details: bytes = b""


class GrpcRequest(msgspec.Struct, array_like=True):
    method: str
    """Its full name."""
    data: bytes
    principal: str = ""
    """Who called. Nodes believe it of each other, since each has proved that it is one of the cluster."""
    peer: str = ""
    """From where, as the node that was called saw it: rules may be about addresses."""


class Told(GoQueueError):
    """A refusal of another node, to be told as it is."""

    def __init__(self, reply: GrpcReply) -> None:
        super().__init__(reply.words)
        self.reply = reply


class Step(IntEnum):
    NEXT = 0
    KEEP = 1
    """The client is slow, and still there."""
    END = 2


class Asked(msgspec.Struct, array_like=True):
    stream: bytes
    """Chosen by the node that asks."""
    step: Step = Step.NEXT
    begin: GrpcRequest | None = None
    """With the first question."""


class Portion(msgspec.Struct, array_like=True):
    pieces: list[bytes]
    end: GrpcReply | None = None
    """Nothing comes after it."""


_encode = msgspec.msgpack.Encoder().encode
_asked = msgspec.msgpack.Decoder(Asked).decode
_portion = msgspec.msgpack.Decoder(Portion).decode


class Carrying(Asking):
    """The node that has the client."""

    def __init__(self, forwarding: Forwarding, clock: Clock, dice: Dice) -> None:
        self._forwarding = forwarding
        self._clock = clock
        self._dice = dice

    async def carry(self, node_id: int, request: GrpcRequest, write: Write) -> None:
        """Until the other node has ended it."""
        stream, end = self._dice.randbytes(ID_BYTES), None
        asked = Asked(stream, Step.NEXT, request)
        try:
            while end is None:
                portion = await self._next(node_id, asked)
                await self._hand_on(node_id, stream, portion.pieces, write)
                asked, end = Asked(stream), portion.end
        finally:
            if end is None:
                self._tell(node_id, Asked(stream, Step.END))
        if end.status != OK:
            raise Told(end)

    async def _next(self, node_id: int, asked: Asked) -> Portion:
        payload, forwarding = _encode(asked), self._forwarding
        try:
            answer: bytes = await self.ask(lambda done: forwarding.ask(node_id, GRPC_STREAM, payload, done, ASK_MS_MAX))
        except (NotHere, NotReached, Indeterminate) as error:
            words = f"node {node_id} does not stream any more: {error}"
            raise GrpcError(words, UNAVAILABLE, common_pb2.ERROR_CODE_BROKER_NOT_AVAILABLE) from None
        return _portion(answer)

    async def _hand_on(self, node_id: int, stream: bytes, pieces: list[bytes], write: Write) -> None:
        timer: Timer

        def keep(again: Again) -> None:
            nonlocal timer
            self._tell(node_id, Asked(stream, Step.KEEP))
            timer = self._clock.call_after(KEEP_MS, again)

        timer = self._clock.call_after(KEEP_MS, Again(keep))
        try:
            for piece in pieces:
                await write(piece)
        finally:
            timer.cancel()

    def _tell(self, node_id: int, asked: Asked) -> None:
        self._forwarding.ask(node_id, GRPC_STREAM, _encode(asked), lambda _answer: None, TELL_MS_MAX)


class Begin(Protocol):
    async def __call__(self, request: GrpcRequest, write: Write) -> GrpcReply:
        """Stream it, and say how it ended."""


class Giving:
    """The node that makes the stream."""

    def __init__(self, clock: Clock, begin: Begin) -> None:
        self._clock = clock
        self._begin = begin
        self._streams: dict[bytes, _Stream] = {}

    def serve(self, payload: bytes, _timeout_ms: int, on_reply: OnReply) -> Stop | None:
        try:
            asked = _asked(payload)
        except msgspec.DecodeError as error:
            on_reply(NotHere(f"the question is not understood: {error}"))
            return None
        if asked.begin is not None and asked.stream not in self._streams:
            self._streams[asked.stream] = _Stream(self._clock, partial(self._streams.pop, asked.stream, None))
            self._streams[asked.stream].run(partial(self._begin, asked.begin))
        stream = self._streams.get(asked.stream)
        if stream is None:
            on_reply(NotHere("there is no such stream"))
            return None
        if asked.step is Step.NEXT:
            stream.ask(on_reply)
            return stream.give_up
        if asked.step is Step.END:
            stream.give_up()
        else:
            stream.keep()
        on_reply(b"")
        return None

    def close(self) -> None:
        for stream in list(self._streams.values()):
            stream.give_up()


class _Stream:
    def __init__(self, clock: Clock, forget: Callable[[], object]) -> None:
        self._clock = clock
        self._forget = forget
        self._pieces: list[bytes] = []
        self._size = 0
        self._room = asyncio.Event()
        self._end: GrpcReply | None = None
        self._on_reply: OnReply | None = None
        self._timer: Timer | None = None
        self._task: asyncio.Task[None] | None = None

    def run(self, begin: Callable[[Write], Awaitable[GrpcReply]]) -> None:
        async def streaming() -> None:
            self._end = await begin(self._write)
            self._task = None
            self._answer()

        self._task = asyncio.get_running_loop().create_task(streaming())

    async def _write(self, piece: bytes) -> None:
        while self._size >= PORTION_BYTES:
            self._room.clear()
            await self._room.wait()
        self._pieces.append(piece)
        self._size += len(piece)
        self._answer()

    def ask(self, on_reply: OnReply) -> None:
        """There is one question at a time."""
        self._on_reply = on_reply
        self._after(WAIT_MS, self._say)
        self._answer()

    def keep(self) -> None:
        if self._on_reply is None:
            self._after(IDLE_MS_MAX, self.give_up)

    def _answer(self) -> None:
        if self._on_reply is not None and (self._pieces or self._end is not None):
            self._say()

    def _say(self) -> None:
        on_reply, self._on_reply = self._on_reply, None
        assert on_reply is not None
        pieces, self._pieces, self._size = self._pieces, [], 0
        self._room.set()
        if self._end is None:
            self._after(IDLE_MS_MAX, self.give_up)
        else:
            self.give_up()
        on_reply(_encode(Portion(pieces, self._end)))

    def _after(self, delay_ms: int, call: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._clock.call_after(delay_ms, call)

    def give_up(self) -> None:
        """Nobody asks any more."""
        self._forget()
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
