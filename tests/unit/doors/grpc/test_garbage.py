"""No method leaves reference cycles of ours: what grpc makes of a call is not looked at, so there is no server here."""

import asyncio
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpc import aio

from goqueue.broker.gate import Gate
from goqueue.doors.grpc.door import GrpcDoor
from goqueue.testing import broker
from tests.garbage import garbage
from tests.unit.testing.loops import turn

TOPIC = "orders"
TEXTS = {"topic": TOPIC, "name": TOPIC, "topics": TOPIC, "group": "workers", "group_id": "workers"}
TIMES = 20
WARM_UP = 2
TURNS = 10


class Details(grpc.HandlerCallDetails):
    def __init__(self, method: str) -> None:
        self.method, self.invocation_metadata = method, ()


class Context:
    """What a method needs to know of its call."""

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.OK

    def peer(self) -> str:
        return "ipv4:127.0.0.1:5555"

    async def read(self) -> Any:
        return aio.EOF

    async def write(self, message: bytes) -> None:
        pass

    async def abort(self, *_why: Any) -> None:
        raise aio.AbortError

    def __getattr__(self, name: str) -> Any:
        return lambda *_: ()


def sample(kind: Descriptor, *, is_filled: bool) -> Message:
    """Of an empty one, most methods say what is missing."""
    message = GetMessageClass(kind)()
    for field in kind.fields if is_filled else ():
        if field.name in TEXTS and field.type == FieldDescriptor.TYPE_STRING:
            if field.is_repeated:
                getattr(message, field.name).append(TEXTS[field.name])
            else:
                setattr(message, field.name, TEXTS[field.name])
    return message


async def call_once(handler: Any, method: MethodDescriptor, data: bytes) -> None:
    """What waits is left alone after a while, as by a client that goes away."""
    behaviour = handler.unary_unary or handler.unary_stream or handler.stream_stream
    task = asyncio.ensure_future(behaviour(data, Context()))
    for _ in range(TURNS):
        await turn()
    if not task.done():
        assert method.server_streaming, f"{method.name} is not done"
        task.cancel()
    await asyncio.wait((task,))
    if not task.cancelled():
        assert isinstance(task.exception(), aio.AbortError | None)


async def leftovers(method: MethodDescriptor) -> dict[str, int]:
    async with broker() as b:
        await b.create_topic(TOPIC)
        await b.publish(TOPIC, b"x")
        door = GrpcDoor(Gate(b.broker))
        (served,) = (one for service, one in door._services() if service is method.containing_service)
        handlers = door._serving.handler_of(method.containing_service, served)
        handler = handlers.service(Details(f"/{method.containing_service.full_name}/{method.name}"))
        asked = [sample(method.input_type, is_filled=each).SerializeToString() for each in (True, False)]
        for data in asked * WARM_UP:
            await call_once(handler, method, data)
        with garbage() as found:
            for data in asked * TIMES:
                await call_once(handler, method, data)
    return dict(found)


async def _methods() -> list[MethodDescriptor]:
    async with broker() as b:
        return [method for service, _ in GrpcDoor(Gate(b.broker))._services() for method in service.methods]


METHODS = asyncio.run(_methods())


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.full_name)
def test_no_method_leaves_garbage(method: MethodDescriptor) -> None:
    assert asyncio.run(leftovers(method)) == {}
