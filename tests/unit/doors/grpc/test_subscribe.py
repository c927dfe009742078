"""A member of a group over one stream: receipts, flow control, rebalances, and nothing left behind when it ends."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import grpc
import pytest

from goqueue.broker.queues.settle import Wanted
from goqueue.client.errors import ClientError
from goqueue.client.grpc import GrpcRefused
from goqueue.client.grpc.calls import METHODS
from goqueue.machines.deliveries.commands import Verdict
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.refusal import Refused
from goqueue.wire.grpc import ack_pb2, common_pb2, consume_pb2
from goqueue.wire.grpc.group_pb2 import DescribeGroupRequest
from goqueue.wire.grpc.offset_pb2 import CommitOffsetsRequest, FetchOffsetsRequest, OffsetCommit
from tests.unit.doors.grpc.door_client import Door, next_of, served

INVALID = grpc.StatusCode.INVALID_ARGUMENT
BEAT_MS = 200


async def fill(door: Door, topic: str, count: int, partition: int = 0) -> None:
    for number in range(count):
        await door.client.publish(topic, b"%s-%d-%d" % (topic.encode(), partition, number), partition=partition)


@served
async def test_messages_of_a_subscription_have_receipts_that_acknowledge(door: Door) -> None:
    await door.topic()
    await fill(door, "orders", 2)
    async with door.client.subscribe("workers", ["orders"]) as subscription:
        batch = await next_of(subscription.events(), "messages")
        first, second = batch.messages
        assert first.receipt_handle
        assert first.lease_until.seconds > first.timestamp.seconds
        await door.client.ack(first)
        with pytest.raises(GrpcRefused, match="settled before"):
            await door.client.ack(first)
        with pytest.raises(GrpcRefused, match="settled before"):
            await door.ask(ack_pb2.AckRequest(receipt_handle=first.receipt_handle))
        await door.client.ack(second)
    (offset,) = (await door.ask(FetchOffsetsRequest(group_id="workers"))).offsets
    assert (offset.topic, offset.partition, offset.offset) == ("orders", 0, 2)


@served
async def test_a_subscription_reads_all_its_topics(door: Door) -> None:
    for topic in ("orders", "bills"):
        await door.topic(topic)
        await fill(door, topic, 1)
    found = set()
    async with door.client.subscribe("workers", ["orders", "bills"]) as subscription:
        async for message in subscription:
            found.add(message.value)
            if len(found) == 2:
                break
    assert found == {b"orders-0-0", b"bills-0-0"}


@served
async def test_the_assignment_tells_the_member_id_and_the_stream_keeps_it_alive(door: Door) -> None:
    """Longer than its session, with nothing to do and while it may get no more. gRPC knows real time only, and a busy
    machine may stop this process for a second: so a session is some of them."""
    await door.topic()
    fields: dict[str, Any] = {"session": "4s", "heartbeat": "100ms", "consumer_id": "me", "max_messages": 1}
    async with door.client.subscribe("workers", ["orders"], **fields) as subscription:
        events = subscription.events()
        assignment = await next_of(events, "assignment")
        for is_full in (False, True):
            if is_full:
                await fill(door, "orders", 2)
                await next_of(events, "messages")
            until = asyncio.get_running_loop().time() + 4.5
            while asyncio.get_running_loop().time() < until:
                await next_of(events, "heartbeat")
            (member,) = (await door.ask(DescribeGroupRequest(group_id="workers"))).members
            assert (member.member_id, member.consumer_id) == (assignment.member_id, "me")
            assert assignment.member_id.startswith("me-")


@served
async def test_no_more_than_max_messages_are_unacknowledged(door: Door) -> None:
    await door.topic(partitions=2)
    for partition in (0, 1):
        await fill(door, "orders", 5, partition)
    held: list[common_pb2.Message] = []
    seen: set[bytes] = set()
    async with door.client.subscribe("workers", ["orders"], max_messages=3, heartbeat="100ms") as subscription:
        events = subscription.events()
        async for event in events:
            held += event.messages.messages
            seen |= {each.value for each in event.messages.messages}
            assert len(held) <= 3
            if event.HasField("heartbeat"):
                assert len(held) == 3 or len(seen) == 10
                for message in held:
                    await door.client.ack(message)
                if len(seen) == 10:
                    break
                held = []
    assert len(seen) == 10


class RestlessNodes:
    """Other nodes of a cluster, at which the member holds nothing, and which say so all the time."""

    def __init__(self, door: Door) -> None:
        self._call_after = door.b.broker.clock.call_after
        self.woken = 0
        door.b.broker.queues.held_elsewhere = self

    def count(self, _group_id: str, _consumer: str, on_counts: Callable[[dict[int, int]], None]) -> None:
        on_counts({2: 0, 3: 0})

    def watch(
        self, _group_id: str, _consumer: str, counts: Mapping[int, int], wait_ms: int, on_change: Callable[[], None]
    ) -> Callable[[], None]:
        assert counts == {2: 0, 3: 0}
        assert wait_ms > BEAT_MS

        def woken() -> None:
            self.woken += 1
            on_change()

        return self._call_after(BEAT_MS / 4, woken).cancel


@served
async def test_a_member_without_room_shows_that_it_lives_however_often_other_nodes_wake_it(door: Door) -> None:
    await door.topic()
    await fill(door, "orders", 2)
    others = RestlessNodes(door)
    async with door.client.subscribe("workers", ["orders"], max_messages=1, heartbeat=f"{BEAT_MS}ms") as subscription:
        events = subscription.events()
        await next_of(events, "messages")
        for _ in range(2):
            await next_of(events, "heartbeat")
    assert others.woken


@served
async def test_room_that_an_acknowledgement_makes_is_used_at_once(door: Door) -> None:
    await door.topic()
    await fill(door, "orders", 50)
    began = asyncio.get_running_loop().time()
    found = 0
    async with door.client.subscribe("workers", ["orders"], max_messages=1, heartbeat="20s") as subscription:
        async for message in subscription:
            found += 1
            await door.client.ack(message)
            if found == 50:
                break
    assert asyncio.get_running_loop().time() - began < 20


@served
async def test_rebalances_are_told(door: Door) -> None:
    await door.topic(partitions=2)
    async with door.client.subscribe("workers", ["orders"]) as first:
        events = first.events()
        alone = await next_of(events, "assignment")
        if len(alone.partitions) < 2:
            alone = await next_of(events, "assignment")
        assert len(alone.partitions) == 2
        async with door.client.subscribe("workers", ["orders"]) as second:
            others = second.events()
            await next_of(others, "assignment")
            revoked = await next_of(events, "rebalance")
            assert revoked.type == consume_pb2.REBALANCE_TYPE_REVOKE
            assert len(revoked.partitions) == 1
            shared = await next_of(events, "assignment")
            assert shared.generation > alone.generation
            while len(second.assigned) < 1:
                await next_of(others, "assignment")
            assert {*first.assigned, *second.assigned} == {("orders", 0), ("orders", 1)}
        back = await next_of(events, "rebalance")
        assert back.type == consume_pb2.REBALANCE_TYPE_ASSIGN


@served
async def test_a_cancelled_stream_gives_back_what_it_holds(door: Door) -> None:
    await door.topic()
    await fill(door, "orders", 3)
    async with door.client.subscribe("workers", ["orders"], lease="1h") as first:
        assert len((await next_of(first.events(), "messages")).messages) == 3
    async with door.client.subscribe("workers", ["orders"]) as second:
        found = []
        async for message in second:
            found.append((message.offset, message.retry_count))
            if len(found) == 3:
                break
    assert [offset for offset, _ in found] == [0, 1, 2]


@served
async def test_a_deadline_ends_the_stream_and_gives_back_what_it_holds(door: Door) -> None:
    await door.topic()
    await fill(door, "orders", 1)
    request = consume_pb2.SubscribeRequest(group_id="workers", topics=["orders"])
    call = door.client._calls._multi("unary_stream", METHODS["Subscribe"])(request, timeout=1)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        async for _ in call:
            pass
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    async with door.client.subscribe("workers", ["orders"]) as second:
        assert [each.offset for each in (await next_of(second.events(), "messages")).messages] == [0]


@served
async def test_a_new_group_begins_where_it_wants_to(door: Door) -> None:
    await door.topic()
    await fill(door, "orders", 2)
    async with door.client.subscribe("late", ["orders"], start="latest") as subscription:
        events = subscription.events()
        await next_of(events, "assignment")
        await door.client.publish("orders", b"new")
        assert [each.value for each in (await next_of(events, "messages")).messages] == [b"new"]
    async with door.client.subscribe("early", ["orders"], start=0) as subscription:
        assert len((await next_of(subscription.events(), "messages")).messages) == 3


@served
async def test_a_nack_waits_as_long_as_it_says(door: Door) -> None:
    await door.topic()
    await fill(door, "orders", 1)
    async with door.client.subscribe("workers", ["orders"]) as subscription:
        events = subscription.events()
        (message,) = (await next_of(events, "messages")).messages
        told = await door.client.nack(message, delay="700ms")
        due_ms = told.next_visible_at.seconds * 1000 + told.next_visible_at.nanos // 1_000_000
        (again,) = (await next_of(events, "messages")).messages
        assert door.b.now_ms >= due_ms
        assert again.retry_count == 1
        later = await door.client.extend(again, "1h")
        assert later.new_deadline.seconds > again.lease_until.seconds
        rejected = await door.client.reject(again, "broken")
        assert rejected.dlq_topic == "orders.dlq"


@served
async def test_offsets_are_acknowledged_and_committed_as_the_member(door: Door) -> None:
    await door.topic()
    await fill(door, "orders", 6)
    async with door.client.subscribe("workers", ["orders"]) as subscription:
        batch = await next_of(subscription.events(), "messages")
        assert len(batch.messages) == 6
        me: dict[str, Any] = {"group_id": "workers", "member_id": subscription.member_id}
        await door.ask(ack_pb2.AckRequest(topic="orders", offset=0, **me))
        told = await door.ask(ack_pb2.NackRequest(topic="orders", offset=5, **me))
        assert told.HasField("next_visible_at")
        offsets = [ack_pb2.OffsetAck(topic="orders", offset=number) for number in (1, 2, 99)]
        done = await door.ask(
            ack_pb2.BatchAckRequest(offsets=offsets, receipt_handles=[batch.messages[3].receipt_handle, "junk"], **me)
        )
        assert done.success_count == 3
        assert {(each.offset, each.receipt_handle) for each in done.failures} == {(99, ""), (0, "junk")}
        assert all(each.error.message for each in done.failures)
        commit = CommitOffsetsRequest(offsets=[OffsetCommit(topic="orders", offset=5)], **me)
        assert [each.success for each in (await door.ask(commit)).results] == [True]
        (offset,) = (await door.ask(FetchOffsetsRequest(group_id="workers"))).offsets
        assert offset.offset == 5
        stranger = ack_pb2.AckRequest(group_id="workers", member_id="nobody", topic="orders", offset=5)
        await door.refused(door.ask(stranger), grpc.StatusCode.FAILED_PRECONDITION, "RECEIPT_HANDLE_EXPIRED")
        foreign = ack_pb2.AckRequest(group_id="others", receipt_handle=batch.messages[5].receipt_handle)
        await door.refused(door.ask(foreign), INVALID, "RECEIPT_HANDLE_INVALID")


@served
async def test_bad_subscriptions_are_refused(door: Door) -> None:
    await door.topic()
    bad: list[tuple[str, list[str], dict[str, Any], str]] = [
        ("", ["orders"], {}, "INVALID_ARGUMENT"),
        ("workers", [], {}, "INVALID_ARGUMENT"),
        ("workers", ["none"], {}, "TOPIC_NOT_FOUND"),
        ("workers", ["orders"], {"session": "1ms"}, "INVALID_ARGUMENT"),
        ("workers", ["orders"], {"lease": "90d"}, "INVALID_ARGUMENT"),
        ("workers", ["orders"], {"max_messages": -3}, "INVALID_ARGUMENT"),
        ("workers", ["orders"], {"start_position": 2}, "INVALID_ARGUMENT"),
        ("w" * 300, ["orders"], {}, "INVALID_ARGUMENT"),
    ]
    for group_id, topics, fields, code in bad:
        async with door.client.subscribe(group_id, topics, **fields) as subscription:
            with pytest.raises(ClientError) as caught:
                await next_of(subscription.events(), "messages")
        assert isinstance(caught.value, GrpcRefused)
        assert caught.value.code == code, (group_id, topics, fields, caught.value)


@served
async def test_a_partition_out_of_service_is_told_now_and_then_and_not_without_pause(door: Door) -> None:
    await door.topic()
    async with door.client.subscribe("workers", ["orders"], heartbeat="200ms") as subscription:
        events = subscription.events()
        await next_of(events, "heartbeat")
        topics, replica = door.b.broker.topics, door.b.broker.topics.replica

        def broken(topic: str, partition: int) -> NoReturn:
            raise Refused(Code.KAFKA_STORAGE_ERROR, "the disk is gone")

        topics.replica = broken  # type: ignore[method-assign]
        began = asyncio.get_running_loop().time()
        for _ in range(4):
            error = await next_of(events, "error")
            assert error.code == common_pb2.ERROR_CODE_BROKER_NOT_AVAILABLE
        assert asyncio.get_running_loop().time() - began > 0.5
        topics.replica = replica  # type: ignore[method-assign]
        await fill(door, "orders", 1)
        assert len((await next_of(events, "messages")).messages) == 1


@served
async def test_an_acknowledgement_through_another_door_makes_room_too(door: Door) -> None:
    await door.topic()
    await fill(door, "orders", 2)
    async with door.client.subscribe("workers", ["orders"], max_messages=1, heartbeat="20s") as subscription:
        events = subscription.events()
        (first,) = (await next_of(events, "messages")).messages
        # There is room when it is settled, and the answer comes when that is durable: maybe after the next message.
        settled: asyncio.Future[list[Verdict | GoQueueError]] = asyncio.get_running_loop().create_future()
        door.b.broker.settler.settle([Wanted(first.receipt_handle)], settled.set_result)
        (second,) = (await next_of(events, "messages")).messages
        assert (first.offset, second.offset, await settled) == (0, 1, [Verdict.DONE])
