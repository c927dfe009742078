"""From the descriptors of a service to what grpc serves: bytes in, a message to the service, its answer or its error
out. Requests are decoded here, since what cannot be decoded is the client's mistake and grpc calls it the server's.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, Generic, NoReturn, Protocol, TypeVar

import grpc
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass
from grpc import aio

from goqueue.broker.access import Access
from goqueue.broker.gate import Gate
from goqueue.broker.tenants.turns import Turn
from goqueue.doors.grpc.arrivals import Arrivals
from goqueue.doors.grpc.call import Call, Stopping
from goqueue.doors.grpc.carried import GrpcRequest, Told, Write
from goqueue.doors.grpc.charging import Charging
from goqueue.doors.grpc.counting import Counting
from goqueue.doors.grpc.credentials import admitted, peer_of
from goqueue.doors.grpc.errors import DETAILS, UNAVAILABLE, GrpcError, status_of
from goqueue.doors.grpc.forward import STATUSES, SpreadCalls, ours
from goqueue.doors.grpc.permissions import PERMISSIONS
from goqueue.model.access import OPEN, Permission
from goqueue.model.credentials import Credentials
from goqueue.model.errors import GoQueueError
from goqueue.model.ledgers import LedgerKind
from goqueue.model.listener import Api
from goqueue.ports.forwarding import Forwarding
from goqueue.ports.listening import plain
from goqueue.telemetry.logs import get_logger
from goqueue.wire.grpc import common_pb2 as pb

events = get_logger("grpc door")

Context = Any
"""aio.ServicerContext; its types say less than it does."""
T = TypeVar("T")
Made = Callable[[Call], object]
"""Makes a service for one method and one client."""
RESTS_ON = {
    "ListGroups": (LedgerKind.DELIVERIES,),
    "DescribeGroup": (LedgerKind.DELIVERIES,),
    "FetchOffsets": (LedgerKind.DELIVERIES,),
    "BeginTransaction": (LedgerKind.TRANSACTIONS,),
    "ListTransactions": (LedgerKind.TRANSACTIONS,),
    "DescribeTransaction": (LedgerKind.TRANSACTIONS,),
}
"""Methods that read a coordinator's state instead of asking it: they are answered when that is durable."""
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class StopsHere(GrpcError):
    def __init__(self) -> None:
        super().__init__("the node stops", UNAVAILABLE, pb.ERROR_CODE_BROKER_NOT_AVAILABLE)


class Writing(Protocol):
    """Where a service writes what it streams; waits while the client does not take it."""

    async def write(self, message: Message) -> None: ...


class Requests(Generic[T]):
    """What a client streams, decoded."""

    def __init__(
        self, read: Callable[[], Awaitable[Any]], decode: Callable[[bytes], Message], call: Callable[[], Call]
    ) -> None:
        self.call = call
        """For the request that came last: who streams may have other rights than when it began."""
        self._read = read
        self._decode = decode

    async def __aiter__(self) -> AsyncIterator[T]:
        while True:
            data = await self._read()
            if data is aio.EOF:
                return
            yield self._decode(data)  # type: ignore[misc]


class _Out:
    def __init__(self, write: Write) -> None:
        self._write = write

    async def write(self, message: Message) -> None:
        await self._write(message.SerializeToString())


NAMES = ("name", "topic", "group", "group_id")
"""Fields that say what a change is about."""


class Behaviour:
    """A method of a service, made for whoever calls it; kept, since that is mostly the same one."""

    def __init__(self, serving: "Serving", method: MethodDescriptor, make: Made, arrivals: Arrivals) -> None:
        self._serving = serving
        self._arrivals = arrivals
        self._name = snake(method.name)
        self.path = _path(method)
        self._full_name = method.full_name
        self._permission = PERMISSIONS[method.full_name]
        self._make = make
        self._call: Call | None = None
        self._serve: Callable[..., Awaitable[Any]] | None = None

    async def access(self, context: Context, turn: Turn | None) -> Access:
        """Of whoever calls, when it is their turn."""
        if self._permission is OPEN:
            return self._serving.gate.nobody()
        self._arrivals.arrive(peer_of(context), self._serving.gate.quotas.connect)
        access = await admitted(self._serving.gate, context, self._arrivals.connected(context))
        leave = self._serving.gate.enter(access.tenancy.tenant)
        if leave is not None:
            context.add_done_callback(lambda _context: leave())
        if turn is not None:
            await turn.begin(access.tenancy.tenant)  # a client that goes cancels this
        return access

    def charging(self, access: Access, context: Context, turn: Turn | None) -> Charging:
        return Charging(self._serving.gate, access, context, self._full_name, turn)

    async def audited(
        self, access: Access, context: Context, kind: Any, data: bytes, work: Callable[[], Awaitable[bytes]]
    ) -> bytes:
        gate, permission = self._serving.gate, self._permission
        audit = None if permission is OPEN else gate.audited(permission)
        if audit is None:
            if permission is not OPEN:
                gate.note(access, permission, "grpc", self._name)
            return await work()
        try:
            asked = kind.FromString(data)
        except DecodeError:
            return await work()  # which says what is wrong
        names = [str(getattr(asked, each)) for each in NAMES if each in kind.DESCRIPTOR.fields_by_name]
        host = peer_of(context).rpartition(":")[0]
        return await audit.carry_out(access.asked(host, "grpc", self._name, " ".join(names)), work)

    def call(self, access: Access) -> Call:
        """By the rights that there are now. NotAuthenticated: it is over."""
        return self._serving.call(access, self._permission)

    def admitted(self, access: Access) -> tuple[Call, Callable[..., Awaitable[Any]]]:
        call = self.call(access)
        if self._call is None or self._serve is None or self._call.broker is not call.broker:
            self._call, self._serve = call, getattr(self._make(call), self._name)
        return self._call, self._serve


class Serving:
    """Makes handlers, and knows the streams that are open, so that a stop can end them."""

    def __init__(self, gate: Gate) -> None:
        self.counting = Counting(gate.meters)
        self.gate = gate
        self.spread = None if gate.forwarding is None else _spread(gate, gate.forwarding)
        """In a cluster."""
        self._stopping = Stopping()
        self._parked: set[asyncio.Task[Any]] = set()
        self._taken = 0
        """Calls whose answers have not left yet."""
        self._is_answered = asyncio.Event()

    def handler_of(
        self, service: ServiceDescriptor, make: Made, arrivals: Arrivals | None = None
    ) -> grpc.GenericRpcHandler:
        """What is made has a method for each of the service's, named as Python does."""
        through = arrivals or Arrivals(plain(Api.GRPC))
        methods = {each.name: self._method(each, Behaviour(self, each, make, through)) for each in service.methods}
        return grpc.method_handlers_generic_handler(service.full_name, methods)

    def stop(self) -> None:
        """Who waits for messages is told to go elsewhere."""
        self._stopping.stop()
        for task in self._parked:
            task.cancel()

    def call(self, access: Access, permission: Permission) -> Call:
        return Call(access.view(permission), self._stopping)

    def _method(self, method: MethodDescriptor, behaviour: "Behaviour") -> "grpc.RpcMethodHandler[Any, Any]":
        if method.client_streaming:
            return grpc.stream_stream_rpc_method_handler(self._both_ways(method, behaviour))
        if method.server_streaming:
            return grpc.unary_stream_rpc_method_handler(self._streaming(method, behaviour))
        return grpc.unary_unary_rpc_method_handler(self._unary(method, behaviour))

    def _unary(self, method: MethodDescriptor, behaviour: "Behaviour") -> Any:
        kind, name, spread = GetMessageClass(method.input_type), _path(method), self.spread

        async def here(data: bytes, access: Access) -> bytes:
            call, serve_one = behaviour.admitted(access)
            reply = await self._confirmed(method.name, call, serve_one(self._decode(kind, data)))
            return reply.SerializeToString()

        async def serve(data: bytes, context: Context) -> bytes:
            async def answer(turn: Turn | None) -> bytes:
                self._take(context)
                access = counted = await behaviour.access(context, turn)

                async def work() -> bytes:
                    if spread is None:
                        return await here(data, counted)
                    return await spread.unary(method, self._decode(kind, data), data, counted, peer_of(context))

                if not self.gate.quotas.are_set:
                    return await behaviour.audited(access, context, kind, data, work)
                charging = behaviour.charging(access, context, turn)
                charging.admit(len(data))
                counted = charging.access
                return await charging.measured(behaviour.audited(access, context, kind, data, work))

            return await self._guarded(name, context, answer)

        if spread is not None:
            spread.add(method, here)

        return serve

    async def _confirmed(self, method: str, call: Call, answering: Awaitable[Message]) -> Message:
        kinds = RESTS_ON.get(method)
        if kinds is None:
            return await answering
        try:
            reply = await answering
        except GoQueueError:  # that something is not there is an answer too
            await call.confirmed(call.broker.durable, kinds)
            raise
        await call.confirmed(call.broker.durable, kinds)
        return reply

    def _streaming(self, method: MethodDescriptor, behaviour: "Behaviour") -> Any:
        kind, name, spread = GetMessageClass(method.input_type), _path(method), self.spread

        async def for_another(data: bytes, access: Access, write: Write) -> None:
            _, serve_one = behaviour.admitted(access)
            streaming = partial(serve_one, self._decode(kind, data), _Out(write))
            await self._until_stop(self.gate.turns.of(access.tenancy.tenant, streaming))

        async def serve(data: bytes, context: Context) -> None:
            async def answer(turn: Turn | None) -> None:
                self._take(context)
                access = await behaviour.access(context, turn)
                _, serve_one = behaviour.admitted(access)
                charging = behaviour.charging(access, context, turn)
                charging.admit()
                request = self._decode(kind, data)
                if spread is None:
                    await self._until_stop(charging.measured(serve_one(request, _Out(charging.write))))
                    return
                streams = partial(_stream, serve_one)
                call = GrpcRequest(method.full_name, data, access.told, peer_of(context))
                streaming = spread.stream(method, request, call, access, streams, charging.write)
                await self._until_stop(charging.measured(streaming))

            await self._guarded(name, context, answer)

        if spread is not None:
            spread.add_stream(method, for_another)

        return serve

    def _both_ways(self, method: MethodDescriptor, behaviour: "Behaviour") -> Any:
        kind, name = GetMessageClass(method.input_type), _path(method)

        async def serve(_requests: object, context: Context) -> None:
            async def answer(turn: Turn | None) -> None:
                self._take(context)
                access = await behaviour.access(context, turn)
                _, serve_one = behaviour.admitted(access)
                charging = behaviour.charging(access, context, turn)
                charging.admit()
                call = lambda: behaviour.call(charging.access)  # noqa: E731  quotas may change
                requests: Requests[Any] = Requests(charging.read, partial(self._decode, kind), call)
                await charging.measured(serve_one(requests, _Out(charging.write)))

            await self._guarded(name, context, answer)

        return serve

    def _take(self, context: Context) -> None:
        if self._stopping.is_stopping:
            raise StopsHere
        self._taken += 1
        context.add_done_callback(self._answered)

    def _answered(self, _context: Context) -> None:
        self._taken -= 1
        if not self._taken:
            self._is_answered.set()

    async def when_answered(self, within_s: float) -> None:
        """After `stop`: until what was taken before is answered, so long at most."""
        self._is_answered.clear()
        if self._taken:
            with suppress(TimeoutError):
                async with asyncio.timeout(within_s):
                    await self._is_answered.wait()

    async def _until_stop(self, streaming: Awaitable[T]) -> T:
        task: asyncio.Task[Any] | None = asyncio.current_task()
        assert task is not None
        self._parked.add(task)
        try:
            return await streaming
        except asyncio.CancelledError:
            if not self._stopping.is_stopping:
                raise
            task.uncancel()
            raise StopsHere from None
        finally:
            self._parked.discard(task)
            del task  # it holds what ends it, and that holds this frame

    async def _guarded(self, name: str, context: Context, answer: Callable[[Turn | None], Coroutine[Any, Any, T]]) -> T:
        turn = self.gate.turns.request()
        with self.counting.call(name, context):
            try:
                return await (answer(None) if turn is None else turn.timed(answer(turn)))
            except Exception as fault:
                if isinstance(fault, aio.AbortError):
                    raise
                error = ours(fault)
                if error is None:
                    events.error("a request failed", exc_info=fault)
                    await context.abort(grpc.StatusCode.INTERNAL, "a fault of the node; its log says more")
                    raise
            try:
                return await _abort(context, error)
            finally:
                del error  # it holds this frame

    def _decode(self, kind: type[Message], data: bytes) -> Message:
        with suppress(DecodeError):
            return kind.FromString(data)
        self.counting.malformed += 1
        raise GrpcError(f"this is no {kind.DESCRIPTOR.full_name}")


def _stream(serve_one: Callable[..., Awaitable[Any]], part: Message, write: Write) -> Awaitable[Any]:
    return serve_one(part, _Out(write))


def _spread(gate: Gate, forwarding: Forwarding) -> SpreadCalls:
    def admit(principal: str, peer: str) -> Access:
        return gate.admit(Credentials("grpc", peer, principal=principal))

    return SpreadCalls(forwarding, gate.clock, gate.dice, gate.partitions, admit, gate.turns.of)


def _path(method: MethodDescriptor) -> str:
    return f"{method.containing_service.full_name}/{method.name}"


async def _abort(context: Context, error: GoQueueError) -> NoReturn:
    if isinstance(error, Told):
        status, words, details = STATUSES[error.reply.status], error.reply.words, error.reply.details
    else:
        status, words, details = status_of(error)
    del error  # what is raised below holds this frame
    await context.abort(status, words, ((DETAILS, details),))
    raise AssertionError("abort raises")


def snake(name: str) -> str:
    return _HUMP.sub("_", name).lower()
