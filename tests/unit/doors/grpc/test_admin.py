"""Topics, groups, offsets and transactions over gRPC."""

import errno
from collections.abc import Callable
from typing import Any

import grpc
from structlog.testing import capture_logs

from goqueue.wire.grpc import group_pb2, offset_pb2, topic_pb2, transaction_pb2
from goqueue.wire.grpc.ack_pb2 import AckRequest, BatchAckRequest, ExtendVisibilityRequest, NackRequest, RejectRequest
from goqueue.wire.grpc.common_pb2 import TopicPartition
from tests.unit.doors.grpc.door_client import Door, next_of, served

NOT_FOUND, INVALID = grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT
PRECONDITION = grpc.StatusCode.FAILED_PRECONDITION


@served
async def test_topics_are_made_looked_at_configured_and_deleted(door: Door) -> None:
    made = await door.ask(topic_pb2.CreateTopicRequest(name="orders", options={"retention.ms": "1000"}))
    assert (made.name, made.partitions) == ("orders", 3)
    await door.client.publish("orders", b"x", partition=1)
    told = await door.ask(topic_pb2.DescribeTopicRequest(name="orders"))
    assert [(each.start_offset, each.end_offset) for each in told.partitions] == [(0, 0), (0, 1), (0, 0)]
    change = topic_pb2.ConfigureTopicRequest(name="orders", options={"lease.ms": "500"}, unset=["retention.ms"])
    assert dict((await door.ask(change)).options) == {"lease.ms": "500"}
    assert list((await door.ask(topic_pb2.ListTopicsRequest())).names) == ["orders"]
    await door.ask(topic_pb2.DeleteTopicRequest(name="orders"))
    assert list((await door.ask(topic_pb2.ListTopicsRequest())).names) == []
    for request, status, code in (
        (topic_pb2.CreateTopicRequest(), INVALID, "INVALID_ARGUMENT"),
        (topic_pb2.CreateTopicRequest(name="a/b"), INVALID, "INVALID_TOPIC"),
        (topic_pb2.CreateTopicRequest(name="a", partitions=-1), INVALID, "INVALID_ARGUMENT"),
        (topic_pb2.CreateTopicRequest(name="a", options={"no": "1"}), INVALID, "INVALID_ARGUMENT"),
        (topic_pb2.DeleteTopicRequest(name="a"), NOT_FOUND, "TOPIC_NOT_FOUND"),
        (topic_pb2.DescribeTopicRequest(name="a"), NOT_FOUND, "TOPIC_NOT_FOUND"),
        (topic_pb2.ConfigureTopicRequest(name="a"), NOT_FOUND, "TOPIC_NOT_FOUND"),
    ):
        await door.refused(door.ask(request), status, code)


@served
async def test_groups_are_listed_described_configured_and_deleted(door: Door) -> None:
    await door.topic()
    change = group_pb2.ConfigureGroupRequest(group_id="workers", options={"lease.ms": "700"})
    assert dict((await door.ask(change)).options) == {"lease.ms": "700"}
    async with door.client.subscribe("workers", ["orders"]) as subscription:
        events = subscription.events()
        while not subscription.assigned:
            await next_of(events, "assignment")
        (listed,) = (await door.ask(group_pb2.ListGroupsRequest())).groups
        assert (listed.group_id, listed.members, list(listed.topics)) == ("workers", 1, ["orders"])
        told = await door.ask(group_pb2.DescribeGroupRequest(group_id="workers"))
        assert [each.member_id for each in told.members] == [subscription.member_id]
        assert dict(told.options) == {"lease.ms": "700"}
        busy = group_pb2.DeleteGroupRequest(group_id="workers")
        await door.refused(door.ask(busy), PRECONDITION, "GROUP_NOT_EMPTY")
    await door.ask(group_pb2.DeleteGroupRequest(group_id="workers", force=True))
    await door.refused(door.ask(group_pb2.DeleteGroupRequest(group_id="workers")), NOT_FOUND, "GROUP_NOT_FOUND")
    await door.refused(door.ask(group_pb2.DescribeGroupRequest(group_id="x")), NOT_FOUND, "GROUP_NOT_FOUND")
    await door.refused(door.ask(group_pb2.DescribeGroupRequest()), INVALID, "INVALID_ARGUMENT")
    wrong = group_pb2.ConfigureGroupRequest(group_id="g", options={"no": "1"})
    await door.refused(door.ask(wrong), INVALID, "INVALID_ARGUMENT")


@served
async def test_offsets_are_reset_by_every_strategy(door: Door) -> None:
    await door.topic()
    for number in range(5):
        await door.client.publish("orders", b"%d" % number)
    at = TopicPartition(topic="orders", partition=0)
    commit = [offset_pb2.OffsetCommit(topic="orders", offset=3)]
    await door.ask(offset_pb2.CommitOffsetsRequest(group_id="g", offsets=commit))
    seen = []
    for strategy, fields in (
        (offset_pb2.OFFSET_RESET_STRATEGY_EARLIEST, {"partitions": [at]}),
        (offset_pb2.OFFSET_RESET_STRATEGY_LATEST, {"partitions": [at], "dry_run": True}),
        (offset_pb2.OFFSET_RESET_STRATEGY_LATEST, {"partitions": [at]}),
        (offset_pb2.OFFSET_RESET_STRATEGY_TIMESTAMP, {"partitions": [at], "timestamp": {"seconds": 1}}),
        (
            offset_pb2.OFFSET_RESET_STRATEGY_OFFSET,
            {"offsets": [offset_pb2.OffsetCommit(topic="orders", offset=2)]},
        ),
    ):
        request = offset_pb2.ResetOffsetsRequest(group_id="g", strategy=strategy, **fields)
        (result,) = (await door.ask(request)).results
        seen.append((result.old_offset, result.new_offset))
    assert seen == [(3, 0), (0, 5), (0, 5), (5, 0), (0, 2)]
    for bad, status, code in (
        (offset_pb2.ResetOffsetsRequest(group_id="g", partitions=[at]), INVALID, "INVALID_ARGUMENT"),
        (
            offset_pb2.ResetOffsetsRequest(group_id="g", strategy="OFFSET_RESET_STRATEGY_LATEST"),
            INVALID,
            "INVALID_ARGUMENT",
        ),
        (offset_pb2.CommitOffsetsRequest(group_id="g"), INVALID, "INVALID_ARGUMENT"),
        (
            offset_pb2.CommitOffsetsRequest(group_id="g", offsets=[offset_pb2.OffsetCommit(topic="x")]),
            NOT_FOUND,
            "TOPIC_NOT_FOUND",
        ),
        (
            offset_pb2.CommitOffsetsRequest(group_id="g", offsets=[offset_pb2.OffsetCommit(topic="orders", offset=-1)]),
            INVALID,
            "INVALID_ARGUMENT",
        ),
        (
            offset_pb2.CommitOffsetsRequest(
                group_id="g", member_id="nobody", offsets=[offset_pb2.OffsetCommit(topic="orders", offset=1)]
            ),
            NOT_FOUND,
            "GROUP_NOT_FOUND",
        ),
    ):
        await door.refused(door.ask(bad), status, code)
    found = (await door.ask(offset_pb2.FetchOffsetsRequest(group_id="nobody", partitions=[at]))).offsets
    assert [each.offset for each in found] == [-1]


@served
async def test_a_transaction_is_seen_as_a_whole_or_not_at_all(door: Door) -> None:
    await door.topic()
    who = await door.ask(transaction_pb2.InitProducerRequest(transactional_id="pay"))
    me = {"transactional_id": "pay", "producer_id": who.producer_id, "epoch": who.epoch}
    fields = {"producer_id": who.producer_id, "producer_epoch": who.epoch}
    for end in (transaction_pb2.AbortTransactionRequest, transaction_pb2.CommitTransactionRequest):
        begun = await door.ask(transaction_pb2.BeginTransactionRequest(**me))
        await door.ask(transaction_pb2.AddPartitionRequest(topic="orders", **me))
        for value in (b"a", b"b"):
            await door.client.publish("orders", end.__name__.encode() + value, **fields)
        assert await door.read() == []
        told = await door.ask(transaction_pb2.DescribeTransactionRequest(transaction_id=begun.transaction_id))
        assert (told.transaction.state, told.transaction.partitions[0].topic) == ("Ongoing", "orders")
        (listed,) = (await door.ask(transaction_pb2.ListTransactionsRequest())).transactions
        assert listed.transaction_id == begun.transaction_id
        await door.ask(end(**me))
    values = [each.value for each in await door.read()]
    assert values == [b"CommitTransactionRequesta", b"CommitTransactionRequestb"]
    await door.refused(door.ask(transaction_pb2.CommitTransactionRequest(**me)), PRECONDITION, "INVALID_TXN_STATE")
    await door.refused(door.client.publish("orders", b"x", **fields), PRECONDITION, "INVALID_TXN_STATE")
    await door.ask(transaction_pb2.InitProducerRequest(transactional_id="pay"))
    await door.refused(door.ask(transaction_pb2.BeginTransactionRequest(**me)), PRECONDITION, "PRODUCER_FENCED")
    unknown = transaction_pb2.BeginTransactionRequest(producer_id=77_777)
    await door.refused(door.ask(unknown), NOT_FOUND, "PRODUCER_NOT_FOUND")
    missing = transaction_pb2.DescribeTransactionRequest(transaction_id="x")
    await door.refused(door.ask(missing), NOT_FOUND, "TRANSACTION_NOT_FOUND")
    await door.refused(
        door.ask(transaction_pb2.InitProducerRequest(transaction_timeout_ms=-1)), INVALID, "INVALID_ARGUMENT"
    )


@served
async def test_receipts_that_are_none_are_refused(door: Door) -> None:
    await door.topic()
    for request, code in (
        (AckRequest(), "INVALID_ARGUMENT"),
        (AckRequest(receipt_handle="junk"), "RECEIPT_HANDLE_INVALID"),
        (AckRequest(receipt_handle="junk", group_id="g"), "RECEIPT_HANDLE_INVALID"),
        (AckRequest(topic="orders", group_id="g"), "INVALID_ARGUMENT"),
        (NackRequest(receipt_handle="x" * 100_000), "RECEIPT_HANDLE_INVALID"),
        (NackRequest(receipt_handle="x", visibility_timeout={"seconds": -1}), "INVALID_ARGUMENT"),
        (RejectRequest(receipt_handle="ü"), "RECEIPT_HANDLE_INVALID"),
        (RejectRequest(receipt_handle="x", reason="y" * 2000), "INVALID_ARGUMENT"),
        (ExtendVisibilityRequest(receipt_handle="x"), "INVALID_ARGUMENT"),
        (ExtendVisibilityRequest(receipt_handle="x", visibility_timeout={"seconds": 10**9}), "INVALID_ARGUMENT"),
        (BatchAckRequest(), "INVALID_ARGUMENT"),
    ):
        await door.refused(door.ask(request), INVALID, code)


@served
async def test_transactions_that_could_not_be_stored_are_not_told_of(door: Door) -> None:
    fault = door.b.faults.add("sync", errno.EIO, prefix="logs/@transactions")
    unavailable = grpc.StatusCode.UNAVAILABLE, "BROKER_NOT_AVAILABLE"
    with capture_logs():
        await door.refused(door.ask(transaction_pb2.InitProducerRequest(transactional_id="pay")), *unavailable)
        assert fault.hits
        await door.refused(door.ask(transaction_pb2.ListTransactionsRequest()), *unavailable)
    assert not (await door.ask(group_pb2.ListGroupsRequest())).groups, "others are none the worse for it"


@served
async def test_groups_and_transactions_are_listed_in_pages(door: Door) -> None:
    for number in range(7):
        await door.ask(group_pb2.ConfigureGroupRequest(group_id=f"g{number}", options={"lease.ms": "700"}))
        await door.ask(transaction_pb2.InitProducerRequest(transactional_id=f"t{number}"))
    listed: list[tuple[Callable[..., Any], Callable[[Any], list[str]]]] = [
        (group_pb2.ListGroupsRequest, lambda page: [each.group_id for each in page.groups]),
        (transaction_pb2.ListTransactionsRequest, lambda page: [each.transactional_id for each in page.transactions]),
    ]
    for request, found_in in listed:
        whole = await door.ask(request())
        assert not whole.next_page_token
        found, sizes, token = [], [], ""
        while True:
            page = await door.ask(request(page_size=3, page_token=token))
            found += found_in(page)
            sizes.append(len(found_in(page)))
            token = page.next_page_token
            if not token:
                break
        assert found == found_in(whole) == sorted(found)
        assert sizes == [3, 3, 1]
        for size in (-1, 1001):
            await door.refused(door.ask(request(page_size=size)), INVALID, "INVALID_ARGUMENT")


@served
async def test_an_id_that_is_too_long_is_an_invalid_argument(door: Door) -> None:
    await door.ask(topic_pb2.CreateTopicRequest(name="orders"))
    group, name = "g" * 256, "t" * 1025
    offset = offset_pb2.CommitOffsetsRequest(group_id=group)
    offset.offsets.add(topic="orders", partition=0, offset=0)
    await door.refused(door.ask(offset), INVALID, "INVALID_ARGUMENT")
    options = {"lease.ms": "700"}
    for request in (
        group_pb2.ConfigureGroupRequest(group_id=group, options=options),
        transaction_pb2.InitProducerRequest(transactional_id=name),
    ):
        await door.refused(door.ask(request), INVALID, "INVALID_ARGUMENT")
    assert not (await door.ask(group_pb2.ListGroupsRequest())).groups
    assert not (await door.ask(transaction_pb2.ListTransactionsRequest())).transactions
    await door.ask(group_pb2.ConfigureGroupRequest(group_id=group[1:], options=options))
    await door.ask(transaction_pb2.InitProducerRequest(transactional_id=name[1:]))
