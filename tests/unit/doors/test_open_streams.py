"""Streams that were open when what a tenant may do was changed."""

import asyncio
from typing import Any

from google.protobuf.message import Message

from goqueue.wire.grpc.publish_pb2 import PublishStreamRequest, PublishStreamResponse
from tests.unit.doors.http.bare import TOPIC
from tests.unit.doors.tenant_node import TURNS, Called, TenantNode, tenant_node
from tests.unit.testing.loops import in_loop, turn


class Publishing(Called):
    """A stream of PublishStream."""

    def __init__(self, node: TenantNode) -> None:
        super().__init__()
        self._requests: asyncio.Queue[bytes] = asyncio.Queue()
        self._task = asyncio.ensure_future(node.behaviour("PublishStream")(None, self))

    async def read(self) -> Any:
        return await self._requests.get()

    async def ask(self, request: Message) -> list[Any]:
        self._requests.put_nowait(request.SerializeToString())
        for _ in range(TURNS):
            await turn()
        told, self.told = self.told, []
        return told

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.wait((self._task,))


@in_loop
async def test_a_stream_publishes_nothing_more_once_its_tenant_is_suspended() -> None:
    async with tenant_node() as node:
        stream = Publishing(node)
        (answer,) = await stream.ask(PublishStreamRequest(topic=TOPIC, value=b"before"))
        assert PublishStreamResponse.FromString(answer).offset == 0
        suspended = await node.of_default("POST", "/admin/tenants/acme/suspend", {"reason": "the bill is not paid"})
        assert suspended.status == 200, suspended.body
        told = await stream.ask(PublishStreamRequest(topic=TOPIC, value=b"after"))
        assert "the bill is not paid" in str(told)
        assert (await node.of_default("POST", "/admin/tenants/acme/activate")).status == 200
        assert [each.value for each in await node.b.read(f"acme~{TOPIC}")] == [b"before"]
        await stream.close()


@in_loop
async def test_a_quota_that_is_set_holds_for_streams_that_are_open() -> None:
    async with tenant_node() as node:
        pieces: list[bytes] = []
        following = asyncio.ensure_future(node.follow(f"/topics/{TOPIC}/follow", pieces.append))
        for _ in range(TURNS):
            await turn()
        await node.limit(consume_rate_limit=1)
        for number in range(5):
            assert (await node.publish(str(number))).status == 200
            for _ in range(TURNS):
                await turn()
        assert b"".join(pieces).count(b"event: message") == 2, "what was read too fast comes later"
        await node.b.advance("10s")
        assert b"".join(pieces).count(b"event: message") == 5
        following.cancel()
        await asyncio.wait((following,))
