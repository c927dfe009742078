"""Calls on a node of a cluster: done here, passed on to the node that has what they are about, or asked of all. What is
passed on goes as the bytes that came; streams go through a channel to the other node's own listener.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import msgspec
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpc import StatusCode, aio

from goqueue.broker.asking import Asking
from goqueue.broker.gate import Access
from goqueue.doors.grpc.credentials import AS, PROOF
from goqueue.doors.grpc.errors import DETAILS, NOT_FOUND, UNAVAILABLE, GrpcError, status_of
from goqueue.doors.grpc.homes import HOMES, MERGES
from goqueue.model.errors import GoQueueError
from goqueue.model.placements import HostPort
from goqueue.ports.forwarding import Forwarding, NotHere, OnReply, Stop
from goqueue.telemetry.logs import get_logger
from goqueue.wire.forwarded import GRPC
from goqueue.wire.grpc import common_pb2
from goqueue.wire.home import GROUP, TRANSACTION, Way

LOOK_MS_MAX = 2000
WORK_MS_MAX = 30_000
VIA = "gq-via"
OK = 0

events = get_logger("grpc door")

Here = Callable[[bytes, Access], Awaitable[bytes]]
Vouch = Callable[[str, bytes], bytes]
"""The proof that a node of this cluster names a principal, for a request."""
OwnPart = Callable[[bytes], Awaitable[bytes]]
Find = Callable[[], int | None]
Write = Callable[[bytes], Awaitable[Any]]
Streams = Callable[[Any, Write], Awaitable[None]]
"""Given the request, and where to write."""
STATUSES: dict[int, StatusCode] = {each.value[0]: each for each in StatusCode}


class GrpcRequest(msgspec.Struct, array_like=True):
    method: str
    """Its full name."""
    data: bytes
    principal: str = ""
    """Who called. Nodes believe it of each other, since each has proved that it is one of the cluster."""


class GrpcReply(msgspec.Struct, array_like=True):
    data: bytes
    status: int = OK
    words: str = ""
    details: bytes = b""


_encode = msgspec.msgpack.Encoder().encode
_request = msgspec.msgpack.Decoder(GrpcRequest).decode
_reply = msgspec.msgpack.Decoder(GrpcReply).decode


class Told(GoQueueError):
    """A refusal of another node, to be told as it is."""

    def __init__(self, reply: GrpcReply) -> None:
        super().__init__(reply.words)
        self.reply = reply


class SpreadCalls(Asking):
    """`address`: of the gRPC listener of a node. `partitions`: how many a topic has."""

    def __init__(
        self,
        forwarding: Forwarding,
        address: Callable[[int], HostPort | None],
        partitions: Callable[[str], int],
        admit: Callable[[str], Access],
        vouch: Vouch | None = None,
    ) -> None:
        self._admit = admit
        self._vouch = vouch
        self._forwarding = forwarding
        self._partitions = partitions
        self._address = address
        self._here: dict[str, Here] = {}
        self._methods: dict[str, MethodDescriptor] = {}
        self._channels: dict[HostPort, aio.Channel] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}
        forwarding.serve(GRPC, self._serve)

    def add(self, method: MethodDescriptor, here: Here) -> None:
        """How this node does it."""
        self._here[method.full_name] = here
        self._methods[method.full_name] = method

    # -- whose it is

    def _way(self, method: MethodDescriptor, request: Any) -> tuple[Way, Find]:
        home, homes = HOMES[method.full_name], self._forwarding.homes
        if home.way is not Way.HOME:
            return home.way, lambda: homes.me
        named = [getattr(request, field) for field in home.fields]
        if not named[0]:
            return home.otherwise or Way.HERE, lambda: homes.me
        if home.kind == GROUP:
            return Way.HOME, lambda: homes.group(named[0])
        assert home.kind == TRANSACTION, home
        return Way.HOME, lambda: homes.transaction(named[0])

    # -- one answer

    async def unary(self, method: MethodDescriptor, request: Message, data: bytes, access: Access) -> bytes:
        serve = self._here[method.full_name]
        way, find = self._way(method, request)
        payload = _encode(GrpcRequest(method.full_name, data, access.principal))

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
        self, method: MethodDescriptor, request: Any, data: bytes, context: Any, here: Streams, principal: str
    ) -> None:
        """`here` is how this node does it."""
        if any(name == VIA for name, _ in context.invocation_metadata() or ()):
            await here(request, context.write)
            return
        if HOMES[method.full_name].way is Way.PARTS:
            await self._stream_in_parts(method, request, context, here, principal)
            return
        way, find = self._way(method, request)
        node_id = find()
        if way is not Way.HOME or node_id == self._forwarding.homes.me:
            await here(request, context.write)
        else:
            await self._carry(node_id, method, data, context.write, principal)

    async def _stream_in_parts(
        self, method: MethodDescriptor, request: Any, context: Any, here: Streams, principal: str
    ) -> None:
        """Each leader streams what it leads."""
        homes, writing = self._forwarding.homes, asyncio.Lock()
        by_node: dict[int | None, list[int]] = {}
        for number in list(request.partitions) or range(self._partitions(request.topic)):
            by_node.setdefault(homes.partition(request.topic, number), []).append(number)
        if by_node.keys() <= {homes.me}:
            await here(request, context.write)
            return

        async def write(piece: bytes) -> None:
            async with writing:
                await context.write(piece)

        async with asyncio.TaskGroup() as tasks:
            for node_id, numbers in by_node.items():
                part = type(request)()
                part.CopyFrom(request)
                del part.partitions[:]
                part.partitions.extend(numbers)
                if node_id == homes.me:
                    tasks.create_task(_until_end(here(part, write)))
                else:
                    tasks.create_task(self._carry(node_id, method, part.SerializeToString(), write, principal))

    async def _carry(
        self, node_id: int | None, method: MethodDescriptor, data: bytes, write: Write, principal: str
    ) -> None:
        if node_id is None:
            raise GrpcError("it has no leader at the moment", UNAVAILABLE, common_pb2.ERROR_CODE_LEADER_NOT_AVAILABLE)
        path = f"{method.containing_service.full_name}/{method.name}"
        channel: Any = self._channel(node_id)
        said: list[tuple[str, str | bytes]] = [(VIA, str(self._forwarding.homes.me))]
        if self._vouch is not None:
            said += [(AS, principal), (PROOF, self._vouch(principal, f"{path}\0".encode() + data))]
        call = channel.unary_stream(f"/{path}")(data, metadata=tuple(said))
        try:
            async for piece in call:
                await write(piece)
        except aio.AioRpcError as error:
            trailing: Any = error.trailing_metadata() or ()
            details = next((value for name, value in trailing if name == DETAILS), b"")
            raise Told(GrpcReply(b"", error.code().value[0], error.details() or "", details)) from None
        finally:
            call.cancel()

    def _channel(self, node_id: int) -> aio.Channel:
        address = self._address(node_id)
        if address is None:
            words = f"node {node_id} offers no gRPC"
            raise GrpcError(words, UNAVAILABLE, common_pb2.ERROR_CODE_BROKER_NOT_AVAILABLE)
        found = self._channels.get(address)
        if found is None:
            host, port = address
            shown = f"[{host}]" if ":" in host else host
            found = self._channels[address] = aio.insecure_channel(f"{shown}:{port}")
        return found

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        for channel in self._channels.values():
            await channel.close()
        self._channels.clear()

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
        way, find = self._way(method, GetMessageClass(method.input_type).FromString(question.data))
        if way is Way.HOME and find() != self._forwarding.homes.me:
            on_reply(NotHere("it belongs to another node"))
            return None
        answering = _answered(here, question.data, partial(self._admit, question.principal), on_reply)
        task = asyncio.get_running_loop().create_task(answering)
        self._tasks[task] = None
        task.add_done_callback(self._forget)
        return None

    def _forget(self, task: "asyncio.Task[None]") -> None:
        self._tasks.pop(task, None)


async def _until_end(streaming: Awaitable[None]) -> None:
    await streaming


async def _answered(here: Here, data: bytes, admit: Callable[[], Access], on_reply: OnReply) -> None:
    try:
        reply = GrpcReply(await here(data, admit()))
    except GoQueueError as error:
        status, words, details = status_of(error)
        reply = GrpcReply(b"", status.value[0], words, details)
    except Exception as fault:  # noqa: BLE001  the one that asks must not wait for ever
        events.error("a forwarded call failed", exc_info=fault)
        reply = GrpcReply(b"", StatusCode.INTERNAL.value[0], "a fault of the node; its log says more")
    on_reply(_encode(reply))


def _told(answer: bytes) -> bytes:
    reply = _reply(answer)
    if reply.status != OK:
        raise Told(reply)
    return reply.data


def _is_unknown(error: BaseException) -> bool:
    if isinstance(error, Told):
        return STATUSES.get(error.reply.status) is NOT_FOUND
    return isinstance(error, GoQueueError) and status_of(error)[0] is NOT_FOUND
