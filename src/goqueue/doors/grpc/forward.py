"""Calls on a node of a cluster: done here, passed on to the node that has what they are about, or asked of all. What is
passed on goes as the bytes that came.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpc import StatusCode
from msgspec.structs import replace

from goqueue.broker.access import Access
from goqueue.broker.asking import Asking
from goqueue.doors.grpc.carried import OK, Carrying, Clock, Giving, GrpcReply, GrpcRequest, Told, Write
from goqueue.doors.grpc.errors import NOT_FOUND, UNAVAILABLE, GrpcError, status_of
from goqueue.doors.grpc.homes import HOMES, MERGES
from goqueue.model.errors import GoQueueError
from goqueue.ports.dice import Dice
from goqueue.ports.forwarding import Forwarding, NotHere, OnReply, Stop
from goqueue.telemetry.logs import get_logger
from goqueue.wire.forwarded import GRPC, GRPC_STREAM
from goqueue.wire.grpc import common_pb2
from goqueue.wire.home import GROUP, TRANSACTION, Way

LOOK_MS_MAX = 2000
WORK_MS_MAX = 30_000

events = get_logger("grpc door")

Here = Callable[[bytes, Access], Awaitable[bytes]]
InTurn = Callable[[str, Callable[[], Awaitable[bytes]]], Awaitable[bytes]]
OwnPart = Callable[[bytes], Awaitable[bytes]]
Find = Callable[[], int | None]
Streams = Callable[[Any, Write], Awaitable[None]]
"""Given the request, and where to write."""
StreamsOf = Callable[[bytes, Access, Write], Awaitable[None]]
"""How this node streams what another asks for."""
STATUSES: dict[int, StatusCode] = {each.value[0]: each for each in StatusCode}


_encode = msgspec.msgpack.Encoder().encode
_request = msgspec.msgpack.Decoder(GrpcRequest).decode
_reply = msgspec.msgpack.Decoder(GrpcReply).decode


class SpreadCalls(Asking):
    """`partitions`: how many a topic has. `admit`: whom another node names, and from where. `in_turn`: waits for the
    turn of a tenant."""

    def __init__(
        self,
        forwarding: Forwarding,
        clock: Clock,
        dice: Dice,
        partitions: Callable[[str], int],
        admit: Callable[[str, str], Access],
        in_turn: InTurn,
    ) -> None:
        self._admit = admit
        self._in_turn = in_turn
        self._forwarding = forwarding
        self._partitions = partitions
        self._here: dict[str, Here] = {}
        self._streams: dict[str, StreamsOf] = {}
        self._methods: dict[str, MethodDescriptor] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._carrying = Carrying(forwarding, clock, dice)
        self._giving = Giving(clock, self._give)
        forwarding.serve(GRPC, self._serve)
        forwarding.serve(GRPC_STREAM, self._giving.serve)

    def add(self, method: MethodDescriptor, here: Here) -> None:
        """How this node does it."""
        self._here[method.full_name] = here
        self._methods[method.full_name] = method

    def add_stream(self, method: MethodDescriptor, streams: StreamsOf) -> None:
        self._streams[method.full_name] = streams

    # -- whose it is

    def _way(self, method: MethodDescriptor, request: Any, access: Access) -> tuple[Way, Find]:
        """By names as they are kept, of the tenant of whoever asks."""
        home, homes = HOMES[method.full_name], self._forwarding.homes
        if home.way is not Way.HOME:
            return home.way, lambda: homes.me
        named = [getattr(request, field) for field in home.fields]
        if not named[0]:
            return home.otherwise or Way.HERE, lambda: homes.me
        kept = access.tenancy.full(named[0])
        if home.kind == GROUP:
            return Way.HOME, lambda: homes.group(kept)
        assert home.kind == TRANSACTION, home
        return Way.HOME, lambda: homes.transaction(kept)

    # -- one answer

    async def unary(self, method: MethodDescriptor, request: Message, data: bytes, access: Access, peer: str) -> bytes:
        serve = self._here[method.full_name]
        way, find = self._way(method, request, access)
        payload = _encode(GrpcRequest(method.full_name, data, access.told, peer))

        def here(data: bytes) -> Awaitable[bytes]:
            return serve(data, access)

        match way:
            case Way.HOME if find() != self._forwarding.homes.me:
                return await self._at_home(find, payload, here, data)
            case Way.EVERYWHERE:
                return await self._everywhere(method, request, payload, here, data)
            case Way.FIRST:
                return await self._first(payload, here, data)
        return await here(data)

    async def _at_home(self, find: Find, payload: bytes, here: OwnPart, data: bytes) -> bytes:
        try:
            answer: bytes = await self.ask(
                lambda done: self._forwarding.ask_home(find, GRPC, payload, done, WORK_MS_MAX)
            )
        except NotHere:
            return await here(data)
        return _told(answer)

    async def _part_of(self, node_id: int, payload: bytes) -> bytes:
        answer: bytes = await self.ask(lambda done: self._forwarding.ask(node_id, GRPC, payload, done, LOOK_MS_MAX))
        return _told(answer)

    async def _everywhere(
        self, method: MethodDescriptor, request: Message, payload: bytes, here: OwnPart, data: bytes
    ) -> bytes:
        """A node that does not answer fails the call: there is no place in these answers to name it."""
        parts: list[bytes | BaseException] = await asyncio.gather(
            here(data),
            *(self._part_of(each, payload) for each in self._forwarding.homes.others()),
            return_exceptions=True,
        )
        kind = GetMessageClass(method.output_type)
        found = [kind.FromString(each) for each in parts if isinstance(each, bytes)]
        wrong = [each for each in parts if isinstance(each, BaseException)]
        serious = [each for each in wrong if not _is_unknown(each)]
        if serious or not found:
            raise (serious or wrong)[0]
        return MERGES[method.full_name](found, request).SerializeToString()

    async def _first(self, payload: bytes, here: OwnPart, data: bytes) -> bytes:
        try:
            return await here(data)
        except GoQueueError as error:
            if not _is_unknown(error):
                raise
            unknown = error.kept()
        for node_id in self._forwarding.homes.others():
            try:
                return await self._part_of(node_id, payload)
            except GoQueueError as error:
                if not _is_unknown(error):
                    raise
        raise unknown

    # -- streams

    async def stream(
        self, method: MethodDescriptor, request: Any, call: GrpcRequest, access: Access, here: Streams, write: Write
    ) -> None:
        """`call`: what came. `here` is how this node does it."""
        if HOMES[method.full_name].way is Way.PARTS:
            await self._stream_in_parts(request, call, access.tenancy.full(request.topic), here, write)
            return
        way, find = self._way(method, request, access)
        node_id = find()
        if way is not Way.HOME or node_id == self._forwarding.homes.me:
            await here(request, write)
        else:
            await self._carry(node_id, call, write)

    async def _stream_in_parts(self, request: Any, call: GrpcRequest, kept: str, here: Streams, write: Write) -> None:
        """Each leader streams what it leads of a topic, which is kept under this name."""
        homes, writing = self._forwarding.homes, asyncio.Lock()
        by_node: dict[int | None, list[int]] = {}
        for number in list(request.partitions) or range(self._partitions(kept)):
            by_node.setdefault(homes.partition(kept, number), []).append(number)
        if by_node.keys() <= {homes.me}:
            await here(request, write)
            return

        async def write_one(piece: bytes) -> None:
            async with writing:
                await write(piece)

        async with asyncio.TaskGroup() as tasks:
            for node_id, numbers in by_node.items():
                part = type(request)()
                part.CopyFrom(request)
                del part.partitions[:]
                part.partitions.extend(numbers)
                if node_id == homes.me:
                    tasks.create_task(_until_end(here(part, write_one)))
                else:
                    carried = replace(call, data=part.SerializeToString())
                    tasks.create_task(self._carry(node_id, carried, write_one))

    async def _carry(self, node_id: int | None, call: GrpcRequest, write: Write) -> None:
        if node_id is None:
            raise GrpcError("it has no leader at the moment", UNAVAILABLE, common_pb2.ERROR_CODE_LEADER_NOT_AVAILABLE)
        await self._carrying.carry(node_id, call, write)

    async def _give(self, request: GrpcRequest, write: Write) -> GrpcReply:
        streams = self._streams.get(request.method)
        if streams is None:
            return GrpcReply(b"", UNAVAILABLE.value[0], f"{request.method} is not streamed here")

        async def streaming() -> bytes:
            await streams(request.data, self._admit(request.principal, request.peer), write)
            return b""

        return await _reply_of(streaming)

    async def close(self) -> None:
        self._giving.close()
        for task in list(self._tasks):
            task.cancel()

    # -- being asked

    def _serve(self, payload: bytes, _timeout_ms: int, on_reply: OnReply) -> Stop | None:
        try:
            question = _request(payload)
        except msgspec.DecodeError as error:
            on_reply(NotHere(f"the call is not understood: {error}"))
            return None
        here, method = self._here.get(question.method), self._methods.get(question.method)
        if here is None or method is None:
            on_reply(NotHere(f"{question.method} is not served here"))
            return None
        try:
            access = self._admit(question.principal, question.peer)
        except GoQueueError as error:
            on_reply(_encode(_refused(error)))
            return None
        way, find = self._way(method, GetMessageClass(method.input_type).FromString(question.data), access)
        if way is Way.HOME and find() != self._forwarding.homes.me:
            on_reply(NotHere("it belongs to another node"))
            return None

        async def answer() -> bytes:
            return await self._in_turn(access.tenancy.tenant, lambda: here(question.data, access))

        task = asyncio.get_running_loop().create_task(_answered(answer, on_reply))
        self._tasks[task] = None
        task.add_done_callback(self._forget)
        return None

    def _forget(self, task: "asyncio.Task[None]") -> None:
        self._tasks.pop(task, None)


async def _until_end(streaming: Awaitable[None]) -> None:
    await streaming


async def _answered(answer: Callable[[], Awaitable[bytes]], on_reply: OnReply) -> None:
    on_reply(_encode(await _reply_of(answer)))


async def _reply_of(answer: Callable[[], Awaitable[bytes]]) -> GrpcReply:
    try:
        return GrpcReply(await answer())
    except Exception as fault:  # noqa: BLE001  the one that asks must not wait for ever
        error = ours(fault)
        if error is not None:
            return _refused(error)
        events.error("a forwarded call failed", exc_info=fault)
        return GrpcReply(b"", StatusCode.INTERNAL.value[0], "a fault of the node; its log says more")


def _refused(error: GoQueueError) -> GrpcReply:
    status, words, details = status_of(error)
    return GrpcReply(b"", status.value[0], words, details)


def ours(fault: BaseException) -> GoQueueError | None:
    """Of a group, which tasks raise together: the first of them, if all are ours."""
    if isinstance(fault, BaseExceptionGroup):
        found = [ours(each) for each in fault.exceptions]
        return found[0] if None not in found else None
    return fault if isinstance(fault, GoQueueError) else None


def _told(answer: bytes) -> bytes:
    reply = _reply(answer)
    if reply.status != OK:
        raise Told(reply)
    return reply.data


def _is_unknown(error: BaseException) -> bool:
    if isinstance(error, Told):
        return STATUSES.get(error.reply.status) is NOT_FOUND
    return isinstance(error, GoQueueError) and status_of(error)[0] is NOT_FOUND
