"""A node with the tenant acme that has quotas, and acme's requests through every API."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from google.protobuf.message import Message
from grpc import aio

from goqueue.broker.gate import Gate
from goqueue.doors.grpc.door import GrpcDoor
from goqueue.doors.kafka.door import KafkaDoor
from goqueue.doors.sqs.app import TARGET
from goqueue.machines.controller_commands import CreateTopic
from goqueue.machines.tenant_commands import ChangeTenant
from goqueue.model.tenancy import Tenant
from goqueue.testing import MemoryBroker, broker
from tests.unit.doors.grpc.test_garbage import METHODS, Context, Details
from tests.unit.doors.http.bare import TOPIC, Answered, Asked, Bare
from tests.unit.doors.kafka.test_door_fuzz import House
from tests.unit.doors.kafka.test_quotas import Client
from tests.unit.testing.loops import turn

ACME = ((b"x-goqueue-tenant", b"acme"),)
TURNS = 40


class Called(Context):
    def __init__(self) -> None:
        self.told: list[Any] = []
        self.on_done: list[Any] = []

    def invocation_metadata(self) -> Any:
        return (("goqueue-tenant", "acme"),)

    async def write(self, message: bytes) -> None:
        self.told.append(message)

    def add_done_callback(self, call: Any) -> None:
        self.on_done.append(call)

    async def abort(self, *why: Any) -> None:
        self.told.append(why)
        raise aio.AbortError


class TenantNode:
    def __init__(self, b: MemoryBroker) -> None:
        self.b = b
        self._bare = Bare(b)
        self._grpc = GrpcDoor(Gate(b.broker))

    async def limit(self, **quotas: int | None) -> None:
        set_ = await self._bare.ask(Asked("PUT", "/admin/tenants/acme/quotas", quotas))
        assert set_.status == 200, set_.body

    async def usage(self) -> Any:
        return (await self._bare.ask(Asked("GET", "/admin/tenants/acme/usage"))).json

    async def of_default(self, method: str, path: str, body: Any = None) -> Answered:
        return await self._bare.ask(Asked(method, path, body))

    async def http(self, method: str, path: str, body: Any = None) -> Answered:
        return await self._bare.ask(Asked(method, path, body), headers=ACME)

    async def follow(self, path: str, on_piece: Callable[[bytes], object]) -> None:
        await self._bare.ask(Asked("GET", path), headers=ACME, on_piece=on_piece)

    async def publish(self, *values: str, **fields: Any) -> Answered:
        messages = [{"value": value, **fields} for value in values]
        return await self.http("POST", f"/topics/{TOPIC}/messages", {"messages": messages})

    async def sqs(self, action: str, **body: Any) -> tuple[int, str]:
        headers = (*ACME, (TARGET, f"AmazonSQS.{action}".encode()))
        answer = await self._bare.ask(Asked("POST", "/", body), headers=headers)
        return answer.status, answer.json.get("__type", "").rpartition("#")[2]

    def behaviour(self, name: str) -> Any:
        """Of a method of gRPC."""
        (method,) = (each for each in METHODS if each.name == name)
        (served,) = (one for service, one in self._grpc._services() if service is method.containing_service)
        handlers = self._grpc._serving.handler_of(method.containing_service, served)
        handler: Any = handlers.service(Details(f"/{method.containing_service.full_name}/{method.name}"))
        return handler.unary_unary or handler.unary_stream or handler.stream_stream

    async def grpc(self, name: str, request: Message, *, lasts: bool = False) -> list[Any]:
        """What was told: an answer, or why it was not given. `lasts`: its client does not see it end."""
        context = Called()
        task = asyncio.ensure_future(self.behaviour(name)(request.SerializeToString(), context))
        for _ in range(TURNS):
            await turn()
        task.cancel()
        done, _ = await asyncio.wait((task,))
        for call in () if lasts else context.on_done:
            call(context)
        context.told += [each.result() for each in done if not each.cancelled() and not each.exception()]
        return context.told


def refusal(told: list[Any]) -> tuple[str, str]:
    """Of a gRPC call."""
    status, words = told[-1][0], told[-1][1]
    return status.name, words


@asynccontextmanager
async def tenant_node(**quotas: int) -> AsyncIterator[TenantNode]:
    async with broker() as b:
        node = TenantNode(b)
        assert (await node.of_default("POST", "/admin/tenants", {"id": "acme", "name": "acme"})).status == 201
        assert (await node.http("POST", "/topics", {"name": TOPIC, "num_partitions": 1})).status == 201
        if quotas:
            await node.limit(**quotas)
        yield node


class KafkaTenant(House):
    """The same behind the Kafka door; whoever knocks is of acme."""

    def __init__(self, **quotas: int) -> None:
        super().__init__()
        node, self.gate = self.broker, Gate(self.broker.broker)
        self.door = KafkaDoor(self.gate)
        node.broker.tenants.create(Tenant("acme", "acme"), lambda _reply: None)
        node.commit()
        node.broker.topics.submit(CreateTopic("acme~orders", bytes([1]) * 16, 2), lambda _reply: None)
        node.commit()
        self.limit(**quotas)

    def limit(self, **quotas: int | None) -> None:
        self.broker.broker.tenants.change(ChangeTenant("acme", quotas=dict(quotas)), lambda _reply: None)
        self.broker.commit()
        self.broker.clock.run()

    def client(self) -> Client:
        client = Client(self)
        self.door._set_access(client._connection, self.gate.trusted_in("acme"))
        return client
